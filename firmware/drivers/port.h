/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver of one Ethernet port: filters, link and the raw frame rings.
 * Reference: docs/hardware/port.md; registers in hw-model/regs/port.h.
 *
 * Frames are built and read in place: every ring slot keeps its own buffer.
 * The hardware passes RoCE frames to the RNIC, so that they do not appear here.
 *
 * Not implemented: statistics by queue, promiscuous multicast.
 */
#ifndef ESSD_FIRMWARE_DRIVERS_PORT_H
#define ESSD_FIRMWARE_DRIVERS_PORT_H

#include "firmware/hal/dram.h"
#include "lib/regfields.h"
#include "hw-model/regs/port.h"
#include "lib/init_result.h"
#include "lib/util.h"

/* In bytes, with a VLAN tag, without FCS. */
enum { PORT_FRAME_MAX = PORT_MTU_MAX + 18 };

struct port_config {
    uintptr_t regs; /* address of the registers */
    /* Rings and buffers are allocated here and never freed. */
    struct dram *dram;
    /* Slots of the receive ring: a power of two, 2..4096; 9 KiB each. */
    uint16_t rx_frames;
    uint16_t tx_frames; /* slots of the transmit ring, as rx_frames */
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
    uint32_t rx_ci; /* written to the page as frames are popped */
    uint32_t rx_pi; /* the port's index when last read */
    uint32_t tx_pi; /* slots committed */
    uint32_t tx_published;
    uint32_t tx_ci; /* the port's index when last read */
    bool tx_wanted; /* port_tx_begin() failed: interrupt when there is room */
    const struct port *sibling; /* the drive's other port; NULL: none */
};

struct port_link {
    bool is_up;
    bool has_signal; /* a signal is received */
    /* The link is enabled, but the received signal cannot be decoded. */
    bool has_local_fault;
    /* The partner cannot decode the signal that it receives. */
    bool has_remote_fault;
    uint8_t reason;      /* enum port_link_reason: why the link is down */
    uint8_t fec;         /* enum port_fec in use */
    uint32_t speed_mbps; /* 0 while the link is down */
};

/* A received frame in the buffer of its slot. */
struct port_frame {
    /* Starts with the destination address; 4-byte aligned. */
    const uint8_t *data;
    uint32_t len_bytes;    /* at least 60, without FCS */
    uint32_t flags;        /* enum port_rxd_flags */
    uint64_t timestamp_ns; /* virtual time of reception */
};

/**
 * Reset the port, allocate its rings, set the MTU, and enable the receiver, the
 * transmitter and the path of RoCE v2 frames to the RNIC.  The link stays off
 * and no address is set.
 *
 * @return INIT_OK, or why the port does not start
 */
MUST_USE enum init_result port_init(struct port *port,
                                    const struct port_config *config);

/** Set the unicast address of slot 0..7; NULL clears it. */
void port_set_mac(struct port *port, unsigned int slot, const uint8_t *mac);

/** Set the multicast address of entry 0..63; NULL clears it. */
void port_set_multicast(struct port *port, unsigned int entry,
                        const uint8_t *mac);

/** Receive all unicast frames, whatever their destination. */
void port_set_promiscuous(struct port *port, bool is_on);

/**
 * With the filter on, only tagged frames of member VLANs are received.  The
 * filter is off after port_init().
 */
void port_set_vlan_filter(struct port *port, bool is_on);

/** Make VLAN 1..4094 a member or remove it. */
void port_set_vlan(struct port *port, unsigned int vlan, bool is_member);

/**
 * Choose the frames that make the port pause: PFC frames for these priorities,
 * one bit each, and, with `link`, PAUSE frames, which stop all priorities.
 * After port_init() the port honours neither.
 */
void port_set_pause(struct port *port, uint8_t priorities, bool link);

/** Pass RoCE v1 frames to the RNIC, or drop them, as after port_init(). */
void port_set_roce_v1(struct port *port, bool is_on);

/** Pass TCP frames to the TOE, or to the raw ring, as after port_init(). */
void port_set_toe(struct port *port, bool is_on);

/**
 * Set the longest payload of a frame.
 * @return false when it is not 68..9000
 */
MUST_USE bool port_set_mtu(struct port *port, uint16_t mtu_bytes);

/**
 * Pair the two ports of a drive: from now on, neither can be enabled with
 * another speed than the other.  Both structures must stay where they are.
 */
void port_pair(struct port *a, struct port *b);

/**
 * Switch the link on with this speed and FEC, or change them.
 *
 * @return false when the port does not support them, or when its sibling is
 *         enabled with another speed; nothing changed
 */
MUST_USE bool port_link_enable(struct port *port, uint32_t speed_mbps,
                               enum port_fec fec);

void port_link_disable(struct port *port);

/** Read the state of the link: two register reads. */
void port_link_get(const struct port *port, struct port_link *link);

/** Whether a received frame waits; costs one DRAM read, no register. */
MUST_USE bool port_rx_is_waiting(const struct port *port);

/**
 * Show the oldest received frame.  The caller may read it until port_rx_pop().
 *
 * @return false when there is none; this costs one DRAM read and no register
 *         access
 */
MUST_USE bool port_rx_peek(struct port *port, struct port_frame *frame);

/** Give the frame that port_rx_peek() showed back to the port. */
void port_rx_pop(struct port *port);

/**
 * Return the buffer of the next frame to send: PORT_FRAME_MAX bytes, with old
 * contents, 64-byte aligned.  Without port_tx_commit(), the next call returns
 * the same buffer.
 *
 * @return NULL when the ring is full: try again after the next interrupt
 */
MUST_USE uint8_t *port_tx_begin(struct port *port);

/**
 * Queue the frame that was built in the buffer of port_tx_begin().  The buffer
 * belongs to the port from then on.  No frame leaves before port_tx_kick().
 *
 * @param len_bytes  14..PORT_FRAME_MAX, without FCS; the port pads it
 * @param priority   802.1p priority, 0..7
 */
void port_tx_commit(struct port *port, uint32_t len_bytes, uint8_t priority);

/** Send the committed frames, with at most one register write per burst. */
void port_tx_kick(struct port *port);

/**
 * Before sleeping: make the port interrupt at the next received frame and, if
 * port_tx_begin() failed since, at room in the transmit ring.
 *
 * @return false when there is work already: do not sleep
 */
MUST_USE bool port_arm(struct port *port);

/** Enable the interrupts of ring and link. */
void port_irq_enable(struct port *port);

/**
 * Read the causes of the interrupt, bits of PORT_IRQ_STATUS, and acknowledge
 * them.  Call this only after an interrupt, because it reads a register.
 */
uint32_t port_irq_take(struct port *port);

/** Read one of the port's counters. */
uint64_t port_counter_read(const struct port *port, enum port_counter counter);

#endif
