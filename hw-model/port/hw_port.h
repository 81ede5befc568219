/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Core of one Ethernet port: MAC, receive filter, raw frame rings, and the path
 * of frames to and from the RNIC and the TOE.
 * Reference: docs/hardware/port.md; registers in hw-model/regs/port.h.
 *
 * The core has one execution context: the wrapper makes all calls under one
 * lock.  All state is in struct hw_port, whose only pointers are those that the
 * wrapper passes in, so that it can be saved field by field.
 *
 * Not implemented: see "not modelled" in the guide.
 */
#ifndef ESSD_HW_PORT_H
#define ESSD_HW_PORT_H

#include "hw-model/core/env.h"
#include "hw-model/core/frame.h"
#include "hw-model/core/mdio.h"
#include "hw-model/port/port_fec.h"
#include "hw-model/port/port_phy.h"
#include "lib/util.h"

/* Sizes from regs/port.h, repeated here; hw_port.c asserts that they agree. */
enum {
    HW_PORT_MACS = 8,
    HW_PORT_MULTICASTS = 64,
    HW_PORT_VLAN_WORDS = 128,
    HW_PORT_COUNTERS = 59,
    HW_PORT_PRIORITIES = 8,
    HW_PORT_MMDS = 2, /* devices of the PHY that MDIO reaches */
    /* Slots in which frames may overtake a paused frame. */
    HW_PORT_TX_AHEAD = 64,
};

/* Calls to the rest of the hardware.  None may be NULL. */
struct hw_port_ops {
    void *ctx;

    /* Take RoCE frames for the RNIC, which reads them before it returns. */
    void (*rnic_rx)(void *ctx, const struct frame_rx *frames, unsigned int n);

    /* Take TCP frames for the TOE, which reads them before it returns. */
    void (*toe_rx)(void *ctx, const struct frame_rx *frames, unsigned int n);

    /*
     * hw_port_tx() took fewer frames than offered and can now take more, or the
     * paused priorities changed.  May be called from inside hw_port_tx().
     */
    void (*rnic_ready)(void *ctx);

    /* The link went up or down. */
    void (*link_changed)(void *ctx, bool is_up);
};

struct hw_port_config {
    struct dev_env env; /* interrupt line 0; timer: hw_port_timer() */
    struct hw_port_ops ops;
    struct frame_sink link; /* the link back-end, which sends the frames */
    uint8_t index;          /* which port of the drive */
};

struct hw_port {
    struct hw_port_config config; /* not part of the state */

    /* Registers. */
    uint32_t ctrl;
    uint32_t mtu;
    uint32_t link_ctrl;
    uint32_t irq_status;
    uint32_t irq_enable;
    uint32_t pause;         /* the pauses that are honoured, A_PORT_PAUSE */
    uint32_t tx_timeout_ms; /* 0: no time-out */
    uint32_t mac[2 * HW_PORT_MACS];             /* LO, HI, LO, HI... */
    uint32_t multicast[2 * HW_PORT_MULTICASTS]; /* LO, HI, LO, HI... */
    uint32_t vlan[HW_PORT_VLAN_WORDS];
    uint32_t page[2]; /* low and high word of the address */
    uint32_t rx[2];
    uint32_t tx[2];
    uint32_t ring_sizes;

    /* Latched by RING_ENABLE. */
    uint8_t rings_on;
    uint64_t page_addr;
    uint64_t rx_addr;
    uint64_t tx_addr;
    uint32_t rx_mask;
    uint32_t tx_mask;

    uint32_t rx_pi;       /* frames stored in the raw receive ring */
    uint32_t tx_ci;       /* frames taken from the raw transmit ring */
    uint8_t has_cable;    /* a cable is plugged */
    uint8_t link_up;      /* the link is up */
    uint8_t reason;       /* enum port_link_reason that was reported last */
    uint8_t link_blocked; /* the link back-end took fewer frames than offered */
    uint8_t raw_waiting;  /* the raw ring has frames that the link refused */
    uint8_t rnic_waiting; /* the RNIC has frames that the link refused */
    uint8_t rnic_priority; /* priority of the RNIC's first waiting frame */
    uint8_t rnic_turn;     /* at equal priority, the RNIC is served next */
    uint8_t paused;        /* bitmap of priorities that the partner paused */
    /* Paused priorities whose pause exceeds the time-out. */
    uint8_t pause_expired;
    uint64_t pause_until_ns[HW_PORT_PRIORITIES]; /* end of each pause */
    uint64_t
        /* Start of the pause time that is not counted yet. */
        pause_since_ns[HW_PORT_PRIORITIES];
    /* Start of the pause, with all extensions. */
    uint64_t pause_begin_ns[HW_PORT_PRIORITIES];
    uint64_t tx_ahead;     /* bit n: raw frame tx_ci + n was sent */
    uint32_t counter_high; /* latched by reading a low word */
    uint64_t counters[HW_PORT_COUNTERS];

    /* The far end and the cable.  A reset does not change them. */
    struct phy_partner partner;
    struct fec_lane lane_rx;
    struct fec_lane lane_tx;
    uint8_t tx_is_sound;   /* the next frame is not lost to bit errors */
    uint64_t partner_lost; /* frames that the partner lost to bit errors */

    /* The PHY on the MDIO bus. */
    uint16_t mdio_reg[HW_PORT_MMDS]; /* register of the next frame: PMA, PCS */
    uint8_t mdio_low; /* link bits that were 0 since they were read last */

    /*
     * Used while link_blocked.  Not saved, because a loaded machine has a new
     * link.
     */
    uint64_t blocked_since_ns; /* when the link took a frame last */
    /* The link is blocked for longer than the time-out. */
    uint8_t block_expired;

    /* Derived from the other fields, not saved. */
    uint8_t held;      /* priorities to hold back: `paused` of the sink */
    uint64_t timer_ns; /* last argument of env.set_timer() */
    uint64_t mac_match[HW_PORT_MACS]; /* addresses to match; UINT64_MAX: none */
    uint64_t multicast_hash;          /* one bit for each hashed address */
};

/**
 * Power-on.  `config` is copied.  There is no cable; the partner runs at 25
 * Gb/s and negotiates FEC; there are no bit errors.
 */
void hw_port_init(struct hw_port *port, const struct hw_port_config *config);

/** Machine reset or PORT_CTRL.RESET: as power-on, but the cable is kept. */
void hw_port_reset(struct hw_port *port);

/**
 * Access a register; `offset` is a multiple of 4.
 * @return false when there is no such register
 */
MUST_USE bool hw_port_read(struct hw_port *port, uint32_t offset,
                           uint32_t *value);
MUST_USE bool hw_port_write(struct hw_port *port, uint32_t offset,
                            uint32_t value);

/** Do the work that env.defer() asked for. */
void hw_port_run(struct hw_port *port);

/**
 * The deadline of env.set_timer() has passed: a pause has ended, or the link
 * has taken nothing for too long.
 */
void hw_port_timer(struct hw_port *port);

/**
 * Receive frames from the link.  All frames are accepted; those without a place
 * are dropped and counted.
 */
void hw_port_rx(struct hw_port *port, const struct frame_rx *frames,
                unsigned int n);

/**
 * Send frames of the RNIC: frame_sink.send with the port as ctx.  The sink's
 * `paused` is `held` of struct hw_port.
 */
unsigned int hw_port_tx(void *port, const struct frame_tx *burst,
                        unsigned int count);

/**
 * The link back-end has room again, after it has taken fewer frames than
 * offered.
 */
void hw_port_link_ready(struct hw_port *port);

/** A cable was plugged or unplugged, or the far end appeared or disappeared. */
void hw_port_set_cable(struct hw_port *port, bool is_live);

/** Set the far end's settings. */
void hw_port_set_partner(struct hw_port *port,
                         const struct phy_partner *partner);

/** Set the bit errors of both directions from now on: see fec_lane_init(). */
void hw_port_set_errors(struct hw_port *port, uint64_t seed, uint64_t ber_atto);

/** The current state of the link. */
struct phy_link hw_port_link(const struct hw_port *port);

/**
 * Handle a frame for the port's PHY: `frame` of struct mdio_bus.  `ctx` is the
 * port.
 */
uint16_t hw_port_mdio(void *ctx, const struct mdio_frame *frame);

/**
 * Check the fields after they were loaded, and derive those that are not saved.
 *
 * @return false when they are invalid; the port is then unusable
 */
MUST_USE bool hw_port_loaded(struct hw_port *port);

#endif
