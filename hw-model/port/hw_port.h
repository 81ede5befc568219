/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Core of one Ethernet port: MAC, receive filter, raw frame rings, and the
 * path of RoCE frames to and from the RNIC.
 * Reference: docs/hardware/port.md; registers in hw-model/regs/port.h.
 *
 * It has one execution context: the wrapper makes all calls under one lock. All
 * state is in struct hw_port and has no pointers but those that the wrapper
 * hands in, so that it can be saved field by field.
 *
 * Left out: see "not modelled" in the guide.
 */
#ifndef ESSD_HW_PORT_H
#define ESSD_HW_PORT_H

#include "hw-model/core/env.h"
#include "hw-model/core/frame.h"
#include "hw-model/port/port_fec.h"
#include "hw-model/port/port_phy.h"
#include "lib/util.h"

/* Sizes from regs/port.h, repeated here; hw_port.c asserts that they agree. */
enum {
    HW_PORT_MACS = 8,
    HW_PORT_MULTICASTS = 64,
    HW_PORT_VLAN_WORDS = 128,
    HW_PORT_COUNTERS = 58,
    HW_PORT_PRIORITIES = 8,
    HW_PORT_TX_AHEAD = 64, /* slots in which frames may pass a paused one */
};

/* Calls to the rest of the hardware.  None may be NULL. */
struct hw_port_ops {
    void *ctx;

    /* RoCE frames for the RNIC, which reads them before it returns. */
    void (*rnic_rx)(void *ctx, const struct frame_rx *frames, unsigned int n);

    /* hw_port_tx() took fewer frames than offered and can now take more, or the
     * paused priorities changed.  May be called from inside of hw_port_tx(). */
    void (*rnic_ready)(void *ctx);

    /* The link went up or down. */
    void (*link_changed)(void *ctx, bool is_up);
};

struct hw_port_config {
    struct dev_env env; /* interrupt line 0; timer: hw_port_timer() */
    struct hw_port_ops ops;
    struct frame_sink link; /* the link back-end, which takes frames out */
    uint8_t index;          /* which port of the drive */
};

struct hw_port {
    struct hw_port_config config; /* not state */

    /* Registers. */
    uint32_t ctrl;
    uint32_t mtu;
    uint32_t link_ctrl;
    uint32_t irq_status;
    uint32_t irq_enable;
    uint32_t pause;                             /* what is honoured */
    uint32_t tx_timeout_ms;                     /* 0: never */
    uint32_t mac[2 * HW_PORT_MACS];             /* LO, HI, LO, HI... */
    uint32_t multicast[2 * HW_PORT_MULTICASTS]; /* likewise */
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

    uint32_t rx_pi;        /* frames put into the raw ring */
    uint32_t tx_ci;        /* frames taken from it */
    uint8_t has_cable;     /* a cable is plugged */
    uint8_t link_up;       /* the link is up */
    uint8_t reason;        /* enum port_link_reason, last reported */
    uint8_t link_blocked;  /* the link back-end took fewer than offered */
    uint8_t raw_waiting;   /* the raw ring has frames that the link refused */
    uint8_t rnic_waiting;  /* the RNIC has such frames */
    uint8_t rnic_priority; /* priority of the first of them */
    uint8_t rnic_turn;     /* with equal priority, serve the RNIC next */
    uint8_t paused;        /* bitmap of priorities that the partner paused */
    uint8_t pause_expired; /* of those, paused longer than the time-out */
    uint64_t pause_until_ns[HW_PORT_PRIORITIES]; /* while paused */
    uint64_t
        pause_since_ns[HW_PORT_PRIORITIES]; /* start of the uncounted pause */
    uint64_t pause_begin_ns[HW_PORT_PRIORITIES]; /* paused without a break */
    uint64_t tx_ahead;     /* bit n: raw frame tx_ci + n was sent */
    uint32_t counter_high; /* latched by reading a low word */
    uint64_t counters[HW_PORT_COUNTERS];

    /* The far end and the cable: not touched by a reset. */
    struct phy_partner partner;
    struct fec_lane lane_rx;
    struct fec_lane lane_tx;
    uint8_t tx_is_sound;   /* the next frame passed lane_tx without loss */
    uint64_t partner_lost; /* frames that the partner lost to bit errors */

    /* While link_blocked.  Not saved: the link of a loaded machine is new. */
    uint64_t blocked_since_ns; /* when the link last took a frame */
    uint8_t block_expired;     /* it is blocked longer than the time-out */

    /* Derived from the rest: not saved. */
    uint8_t held;      /* priorities whose frames wait: the sink's `paused` */
    uint64_t timer_ns; /* last argument of env.set_timer() */
    uint64_t mac_match[HW_PORT_MACS]; /* UINT64_MAX: none */
    uint64_t multicast_hash;          /* a bit for each address */
};

/**
 * Power-on.  `config` is copied; there is no cable.  The partner runs at 25
 * Gb/s and negotiates FEC; there are no bit errors.
 */
void hw_port_init(struct hw_port *port, const struct hw_port_config *config);

/** Machine reset, or PORT_CTRL.RESET: as power-on, but the cable stays. */
void hw_port_reset(struct hw_port *port);

/** Registers; `offset` is a multiple of 4.  @return false: no such register */
MUST_USE bool hw_port_read(struct hw_port *port, uint32_t offset,
                           uint32_t *value);
MUST_USE bool hw_port_write(struct hw_port *port, uint32_t offset,
                            uint32_t value);

/** The work that env.defer() asked for. */
void hw_port_run(struct hw_port *port);

/** The deadline set with env.set_timer() has passed: a pause is over, or the
 *  link has taken nothing for too long. */
void hw_port_timer(struct hw_port *port);

/** Frames from the link; any number.  Never refuses: what has no place is
 *  dropped and counted. */
void hw_port_rx(struct hw_port *port, const struct frame_rx *frames,
                unsigned int n);

/** Frames from the RNIC: frame_sink.send with the port as ctx.  `paused` of the
 *  sink is `held` of struct hw_port. */
unsigned int hw_port_tx(void *port, const struct frame_tx *burst,
                        unsigned int count);

/** The link back-end, having taken fewer than offered, has room again. */
void hw_port_link_ready(struct hw_port *port);

/** A cable was plugged or pulled, or the far end came or went. */
void hw_port_set_cable(struct hw_port *port, bool is_live);

/** The far end's settings. */
void hw_port_set_partner(struct hw_port *port,
                         const struct phy_partner *partner);

/** Bit errors of both directions from now on: see fec_lane_init(). */
void hw_port_set_errors(struct hw_port *port, uint64_t seed, uint64_t ber_atto);

/** The link as it is. */
struct phy_link hw_port_link(const struct hw_port *port);

/**
 * After the fields were loaded: derive what is not saved.
 *
 * @return false when they make no sense; the port is then unusable
 */
MUST_USE bool hw_port_loaded(struct hw_port *port);

#endif
