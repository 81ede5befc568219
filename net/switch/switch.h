/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet switch: learns addresses, knows VLANs, loses nothing by default.
 *
 * A port is a stream of frames in each direction, each frame preceded by its
 * length (32 bits in network order), as QEMU's `-netdev stream` has it.  The
 * owner moves bytes between its sockets and the switch:
 *
 *     room = switch_rx_room(), read, switch_rx_commit()     for each port
 *     deadline = switch_run()
 *     switch_tx_bytes(), write, switch_tx_done()            for each port
 *
 * Lossless: a frame waits in its input until all of its outputs have room, and
 * the frames behind it wait too; an input that is full has no room, so that its
 * socket is not read, and its peer cannot write.  Hence a station that does not
 * read stops the senders that talk to it, and with them what they send to
 * others; stations that do not send to it go on.  A port that drops instead, at
 * once or after a time, is an option (switch_full, stall_ns).
 *
 * Spec: IEEE 802.1Q (MAC bridges, VLANs).  Left out: spanning tree, so cables
 * must not form a loop; link aggregation; priorities and PFC, which the
 * back-pressure replaces; multicast snooping; 802.1ad.
 */
#ifndef ESSD_NET_SWITCH_SWITCH_H
#define ESSD_NET_SWITCH_SWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/switch/fdb.h"
#include "net/switch/shaper.h"
#include "net/switch/tx_lane.h"
#include "net/switch/vlan.h"

enum {
    SWITCH_PORTS = 64,
    SWITCH_PREFIX = 4,                  /* bytes of the length of a frame */
    SWITCH_FRAME_MAX = 4096 + 65536,    /* QEMU's NET_BUFSIZE */
    SWITCH_RX_WORTH = 32 * 1024,        /* least switch_rx_room(), unless 0 */
    SWITCH_QUEUE_MIN = 128 * 1024,      /* bytes of an output queue */
    SWITCH_QUEUE_DEFAULT = 1024 * 1024, /* all are multiples of 4096 */
    SWITCH_QUEUE_MAX = 64 * 1024 * 1024,
};

enum switch_counter {
    SWITCH_RX_FRAMES, /* frames that came, dropped ones included */
    SWITCH_RX_BYTES,  /* their bytes, without FCS and length */
    SWITCH_RX_LOST,   /* lost by the cable, as its `loss` says */
    SWITCH_RX_SHORT,  /* shorter than an Ethernet header */
    SWITCH_RX_CUT,    /* incomplete when the connection ended */
    SWITCH_RX_LINK_DOWN,
    SWITCH_RX_BAD_SOURCE, /* from a group address */
    SWITCH_RX_BAD_VLAN,   /* of a VLAN that the port is no member of */
    SWITCH_RX_LINK_LOCAL, /* to 01-80-c2-00-00-0x: ends at every bridge */
    SWITCH_RX_NO_OUTPUT,  /* no other port that it could leave through */
    SWITCH_RX_PAUSES,     /* times that this input waited for an output */
    SWITCH_RX_OFFLOADED,  /* longer than the interface's MTU (GRO, LRO) */
    SWITCH_TX_FRAMES,     /* frames that the device has taken whole */
    SWITCH_TX_BYTES,
    SWITCH_TX_LOST,      /* lost by the cable, as its `loss` says */
    SWITCH_TX_FULL,      /* dropped: queue full, with SWITCH_FULL_DROP */
    SWITCH_TX_STALLED,   /* dropped: queue full, device stalled */
    SWITCH_TX_UNPLUGGED, /* dropped: the connection ended or the link went down
                          */
    SWITCH_TX_LONG,      /* too long with the tag, or for the interface */
    SWITCH_TX_REFUSED,   /* the interface did not take it */
    SWITCH_COUNTERS,
};

/** Names of the counters, such as "rx_frames". */
extern const char *const switch_counter_name[SWITCH_COUNTERS];

enum switch_full {
    SWITCH_FULL_PAUSE, /* the inputs wait */
    SWITCH_FULL_DROP,  /* frames that do not fit are dropped */
};

enum switch_direction {
    SWITCH_IN, /* from the device into the switch */
    SWITCH_OUT,
    SWITCH_DIRECTIONS,
};

/* What may change while the switch runs. */
struct switch_port_config {
    struct switch_vlan vlan;
    struct shaper_config cable[SWITCH_DIRECTIONS];
    uint64_t seed; /* of the losses and the jitter of this port */
    bool link_up;
    enum switch_full full;
    /*
     * With SWITCH_FULL_PAUSE: a full queue of which the device has taken
     * nothing for this time drops until the device goes on.  0: never.
     */
    uint64_t stall_ns;
};

struct switch_config {
    uint8_t port_count;                 /* 1 to SWITCH_PORTS */
    uint32_t queue_bytes[SWITCH_PORTS]; /* SWITCH_QUEUE_MIN to _MAX */
    uint64_t random_seed;               /* for the hash of the addresses */
    /*
     * Called for each frame that passes a port for which switch_port_capture()
     * was turned on.  The frame is in two pieces; the second is often empty.
     */
    void (*capture)(void *opaque, uint8_t port, const struct tx_piece data[2]);
    void *opaque;
};

/* Settings of the whole switch, which may change while it runs. */
struct switch_settings {
    uint32_t ageing_s; /* of learned addresses; 0: they do not age */
    /*
     * Pass link-local group addresses on, as a cable would: LLDP, LACP and
     * 802.1X then run between the stations.  MAC control frames (pause) are
     * for the other end of a cable only, and are never passed on.
     */
    bool forwards_link_local;
};

struct switch_port_status {
    bool connected;
    bool paused; /* waits for an output */
    uint32_t queued_bytes;
    uint32_t queued_frames;
    uint64_t counters[SWITCH_COUNTERS];
};

/* Opaque: its owner provides the memory. */
struct switch_core;

/** Size of the memory of a switch.  Pages that no frame needs are not touched.
 */
MUST_USE size_t switch_bytes(const struct switch_config *config);

/**
 * Make a switch.  Its ports are up, transparent to VLANs and not connected.
 *
 * @param memory  switch_bytes(), zeroed, aligned to 16 bytes
 */
struct switch_core *switch_init(void *memory,
                                const struct switch_config *config);

void switch_set(struct switch_core *core,
                const struct switch_settings *settings);
struct switch_settings switch_settings(const struct switch_core *core);

/**
 * Change the settings of a port.  A new seed has no effect until
 * switch_port_reseed().
 */
void switch_port_set(struct switch_core *core, uint8_t port,
                     const struct switch_port_config *config);
const struct switch_port_config *switch_port(const struct switch_core *core,
                                             uint8_t port);

/** Start the sequences of a port's losses and jitter again, with its seed. */
void switch_port_reseed(struct switch_core *core, uint8_t port);

/** Whether the frames of a port are handed to the owner's capture(). */
void switch_port_capture(struct switch_core *core, uint8_t port, bool captures);

/** Report that a device has connected.  Its stream begins with a new frame. */
void switch_port_connect(struct switch_core *core, uint8_t port);

/**
 * Report that the device has disconnected.  The switch drops the frames that
 * are queued for it, a frame of which it has received only a part, and the
 * addresses behind the port.  It still passes on the whole frames that it has
 * received.
 */
void switch_port_disconnect(struct switch_core *core, uint8_t port);

/**
 * Where to put what the device sends.
 *
 * @return the room there, at least SWITCH_RX_WORTH; 0: nothing can be taken now
 */
MUST_USE uint32_t switch_rx_room(struct switch_core *core, uint8_t port,
                                 uint8_t **at);

/**
 * Report that `len` bytes were stored where switch_rx_room() said.
 *
 * @return false when they hold a length that no frame has: the frames before it
 *         are passed on, and the owner has to end the connection
 */
MUST_USE bool switch_rx_commit(struct switch_core *core, uint8_t port,
                               uint32_t len, uint64_t now_ns);

/**
 * Pass frames on until none can be.
 *
 * @return when to call again at the latest; UINT64_MAX: when bytes were
 * received or sent
 */
MUST_USE uint64_t switch_run(struct switch_core *core, uint64_t now_ns);

/** Whether switch_run() would pass frames on. */
MUST_USE bool switch_has_work(const struct switch_core *core);

/** Ports that have bytes to send: bit n for port n. */
MUST_USE uint64_t switch_tx_ports(const struct switch_core *core);

/** Get the bytes to send, in two pieces.  @return the number of bytes */
MUST_USE size_t switch_tx_bytes(const struct switch_core *core, uint8_t port,
                                struct tx_piece piece[2]);

/**
 * For devices that take whole frames: the number of frames to send, and one of
 * them without its prefix.  After sending a frame of n bytes, call
 * switch_tx_done() with SWITCH_PREFIX + n.
 */
MUST_USE uint32_t switch_tx_frames(const struct switch_core *core,
                                   uint8_t port);
MUST_USE uint32_t switch_tx_frame(const struct switch_core *core, uint8_t port,
                                  uint32_t nth, struct tx_piece piece[2]);

/** Report that the device has taken the first `len` bytes to send. */
void switch_tx_done(struct switch_core *core, uint8_t port, size_t len);

/** Drop the first frame to send instead of sending it, and count why. */
void switch_tx_refuse(struct switch_core *core, uint8_t port,
                      enum switch_counter why);

void switch_count(struct switch_core *core, uint8_t port,
                  enum switch_counter counter);
void switch_port_reset_counters(struct switch_core *core, uint8_t port);
void switch_port_status(const struct switch_core *core, uint8_t port,
                        struct switch_port_status *status);

/** Forget the addresses behind one port, or with FDB_NO_PORT, behind all. */
void switch_forget(struct switch_core *core, uint8_t port);

/** The filtering database, to be shown. */
const struct fdb *switch_fdb(const struct switch_core *core);

/** The clock of the filtering database. */
static inline uint32_t switch_fdb_seconds(uint64_t now_ns)
{
    return (uint32_t)(now_ns / 1000000000u);
}

#endif
