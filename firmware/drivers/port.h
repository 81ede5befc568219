/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver of one Ethernet port: filters, link and the raw frame rings.
 * Reference: docs/hardware/port.md; registers in hw-model/regs/port.h.
 *
 * Frames are built and read in place: every ring slot keeps its own buffer.
 * RoCE frames never come here, the hardware passes them to the RNIC.
 *
 * Left out: statistics by queue, promiscuous multicast.
 */
#ifndef ESSD_FIRMWARE_DRIVERS_PORT_H
#define ESSD_FIRMWARE_DRIVERS_PORT_H

#include "firmware/hal/dram.h"
#include "lib/regfields.h"
#include "hw-model/regs/port.h"
#include "lib/init_result.h"
#include "lib/util.h"

enum { PORT_FRAME_MAX = PORT_MTU_MAX + 18 }; /* bytes, tag, no FCS */

struct port_config {
    uintptr_t regs;     /* where the registers are */
    struct dram *dram;  /* rings and buffers are allocated here, for good */
    uint16_t rx_frames; /* a power of two, 2..4096; 9 KiB each */
    uint16_t tx_frames; /* likewise */
    uint16_t mtu_bytes; /* 68..9000 */
};

/* Treat as opaque. */
struct port {
    uintptr_t regs;
    uint8_t *page;
    uint8_t *rx_ring;
    uint8_t *rx_buffers;
    uint8_t *tx_ring;
    uint8_t *tx_buffers;
    uint32_t rx_mask, tx_mask;
    uint32_t rx_ci; /* published in the page as frames are popped */
    uint32_t rx_pi; /* what we last read of the port's */
    uint32_t tx_pi; /* slots committed */
    uint32_t tx_published;
    uint32_t tx_ci;             /* what we last read of the port's */
    bool tx_wanted;             /* port_tx_begin() failed: arm for room */
    const struct port *sibling; /* NULL: none */
};

struct port_link {
    bool is_up;
    bool has_signal;       /* something is received */
    bool has_local_fault;  /* enabled, but what is received makes no sense */
    bool has_remote_fault; /* the partner says that of what we send */
    uint8_t reason;        /* enum port_link_reason: why it is down */
    uint8_t fec;           /* enum port_fec in use */
    uint32_t speed_mbps;   /* 0 while down */
};

/* A received frame, in its slot's buffer. */
struct port_frame {
    const uint8_t *data;   /* from the destination address on, 4-byte aligned */
    uint32_t len_bytes;    /* 60 and more, without FCS */
    uint32_t flags;        /* enum port_rxd_flags */
    uint64_t timestamp_ns; /* the hardware's virtual time */
};

/**
 * Reset the port, allocate its rings, set the MTU and switch receiver,
 * transmitter and the path of RoCEv2 to the RNIC on.  The link stays off and
 * no address is set.
 *
 * @return INIT_OK, or why it does not start
 */
MUST_USE enum init_result port_init(struct port *port,
                                    const struct port_config *config);

/** Unicast address of slot 0..7; NULL: none. */
void port_set_mac(struct port *port, unsigned int slot, const uint8_t *mac);

/** Multicast address of entry 0..63; NULL: none. */
void port_set_multicast(struct port *port, unsigned int entry,
                        const uint8_t *mac);

/** Receive all unicast frames, whatever their destination. */
void port_set_promiscuous(struct port *port, bool is_on);

/** With the filter on, tagged frames need a member VLAN.  Off after init. */
void port_set_vlan_filter(struct port *port, bool is_on);

/** Make VLAN 1..4094 a member, or not. */
void port_set_vlan(struct port *port, unsigned int vlan, bool is_member);

/**
 * What makes the port pause: PFC frames for these priorities, a bit each, and
 * with `link` PAUSE frames, for all of them.  Nothing after init.
 */
void port_set_pause(struct port *port, uint8_t priorities, bool link);

/** Let the RNIC have RoCE v1 frames too, or drop them, as after init. */
void port_set_roce_v1(struct port *port, bool is_on);

/** Longest payload of a frame. @return false when not 68..9000 */
MUST_USE bool port_set_mtu(struct port *port, uint16_t mtu_bytes);

/**
 * Two ports of one drive: from now on neither is enabled with another speed
 * than the other.  Both stay where they are.
 */
void port_pair(struct port *a, struct port *b);

/**
 * Switch the link on with this speed and FEC, or change them.
 *
 * @return false when the port does not have them, or its sibling is enabled
 *         with another speed: nothing changed
 */
MUST_USE bool port_link_enable(struct port *port, uint32_t speed_mbps,
                               enum port_fec fec);

void port_link_disable(struct port *port);

/** The link as it is now: two register reads. */
void port_link_get(const struct port *port, struct port_link *link);

/**
 * The oldest received frame.  It stays ours, and may be read, until
 * port_rx_pop().
 *
 * @return false when there is none; costs one DRAM read, no register
 */
MUST_USE bool port_rx_peek(struct port *port, struct port_frame *frame);

/** Give the frame that port_rx_peek() showed back to the port. */
void port_rx_pop(struct port *port);

/**
 * The buffer of the next frame to send: PORT_FRAME_MAX bytes, dirty, 64-byte
 * aligned.  Asking again without port_tx_commit() gives the same buffer.
 *
 * @return NULL when the ring is full: try again after the next interrupt
 */
MUST_USE uint8_t *port_tx_begin(struct port *port);

/**
 * Queue the frame that was built in port_tx_begin()'s buffer, which is the
 * port's from here on.  Nothing leaves before port_tx_kick().
 *
 * @param len_bytes  14..PORT_FRAME_MAX, without FCS; the port pads it
 * @param priority   802.1p, 0..7
 */
void port_tx_commit(struct port *port, uint32_t len_bytes, uint8_t priority);

/** Send what was committed: at most one register write a burst. */
void port_tx_kick(struct port *port);

/**
 * Before sleeping: have the port interrupt at the next received frame, and at
 * room in the transmit ring if port_tx_begin() failed since.
 *
 * @return false when there is work already: do not sleep
 */
MUST_USE bool port_arm(struct port *port);

/** Let the interrupt line follow ring and link. */
void port_irq_enable(struct port *port);

/**
 * What the interrupt was about, and acknowledge it: bits of PORT_IRQ_STATUS.
 * Only needed after one: it reads a register.
 */
uint32_t port_irq_take(struct port *port);

/** One of the port's counters. */
uint64_t port_counter_read(const struct port *port, enum port_counter counter);

#endif
