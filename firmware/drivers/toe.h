/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver of the TCP offload engine.
 * Reference: docs/hardware/toe.md; registers in hw-model/regs/toe.h.
 *
 * It is polled.  A connection has a TID from event ASKED on until
 * toe_release().  Functions that return bool return false when the command ring
 * is full: nothing has happened; try again after a turn of the main loop.
 * Nothing starts before toe_kick().
 */
#ifndef ESSD_FIRMWARE_DRIVERS_TOE_H
#define ESSD_FIRMWARE_DRIVERS_TOE_H

#include "firmware/drivers/cmd_queue.h"
#include "hw-model/regs/toe.h"
#include "lib/init_result.h"

struct toe_config {
    uintptr_t regs;
    struct dram *dram;
    uint16_t commands; /* of the ring, and entries: a power of two */
};

struct toe_params {
    uint16_t mtu_bytes;       /* 1280..9000 */
    uint8_t ring_log2;        /* 12..20: bytes of each receive ring */
    const uint32_t secret[4]; /* unpredictable */
};

/* Treat as opaque. */
struct toe {
    uintptr_t regs;
    struct cmd_queue queue;
    uint8_t *tcb; /* TOE_TCB_LEN bytes, for toe_query() */
};

/* A completion or an event: enum toe_kind says which fields are valid. */
struct toe_entry {
    uint64_t cookie;
    uint32_t tid;
    uint32_t value;
    uint16_t port;
    uint8_t kind;
    uint8_t status;
};

/* A piece of memory. */
struct toe_piece {
    const void *data;
    uint32_t len_bytes;
};

/* Called by toe_poll() for each entry.  It may post commands. */
typedef void toe_entry_fn(void *ctx, const struct toe_entry *entry);

/** Reset the engine and give it its rings.  It stays off. */
MUST_USE enum init_result toe_init(struct toe *toe,
                                   const struct toe_config *config);

/**
 * Switch the engine on.
 *
 * @return false when it refuses a parameter
 */
MUST_USE bool toe_start(struct toe *toe, const struct toe_params *params);

/** Switch it off: every connection ends, and its peer is not told. */
void toe_stop(struct toe *toe);

/** How many commands may be posted now. */
uint32_t toe_room(struct toe *toe);

/** Wait for the engine's answer.  @return false when it refuses */
MUST_USE bool toe_listen(struct toe *toe, uint16_t port);
void toe_unlisten(struct toe *toe, uint16_t port);

/** Set own address 0..7, 16 bytes; `ip` NULL clears it.  `vlan` 0xffff:
 * untagged. */
MUST_USE bool toe_set_laddr(struct toe *toe, uint8_t index, uint8_t port,
                            const uint8_t *ip, uint16_t vlan);

/** @param ring  1 << ring_log2 bytes, which the engine owns until ENDED */
MUST_USE bool toe_accept(struct toe *toe, uint32_t tid, void *ring);

/**
 * Move the receive ring of an open connection: bytes that were not given back
 * are in the new one, too, and the old one is free.  Waits.
 *
 * @return false when nothing has happened: the connection has ended, or no
 *         command can be posted
 */
MUST_USE bool toe_move_ring(struct toe *toe, uint32_t tid, void *ring);

/**
 * Follow the PDUs of an open connection from the next byte on: docs/hardware/
 * toe.md, section 4.2.  Waits.
 *
 * @param len_bytes  all bytes that were received, and not given back; they are
 *                   given back
 * @return false when it does not: nothing has happened
 */
MUST_USE bool toe_follow(struct toe *toe, uint32_t tid, uint32_t len_bytes,
                         bool has_header_digest, bool has_data_digest);

struct toe_place {
    uint16_t ttag, cccid;
    uint32_t offset; /* of the first byte in the command's data */
};

/**
 * Say where the data of a TTAG go, of a connection that is followed; up to
 * TOE_PIECES_MAX pieces, which follow those of earlier calls.  The engine
 * writes to them until all data have come, or until the connection has ended or
 * toe_close() was carried out.
 */
MUST_USE bool toe_place(struct toe *toe, uint32_t tid,
                        const struct toe_place *place,
                        const struct toe_piece *pieces, uint8_t count);

/* A key of one direction of a connection: docs/hardware/toe.md, section 4.3. */
struct toe_key {
    bool receives;
    uint8_t len_bytes; /* 16 or 32 */
    uint8_t bytes[TOE_KEY_MAX];
    uint8_t iv[TOE_KEY_IV_LEN];
    uint64_t sequence; /* of the first record */
    uint32_t held;     /* first key of what is received: all bytes that were
                        * received, and not given back; the engine takes them
                        * back, and the ring begins anew */
};

/** How many connections can have keys; 0: the engine takes none. */
uint16_t toe_record_contexts(const struct toe *toe);

/** Let the engine open or seal records of TLS 1.3 from the next byte on.
 * Waits.  @return what it says; TOE_PENDING: there is no room for a command */
MUST_USE enum toe_status toe_set_key(struct toe *toe, uint32_t tid,
                                     const struct toe_key *key);

/** Send a record of another type than data, of a connection that has a key. */
MUST_USE bool toe_send_record(struct toe *toe, uint32_t tid, uint8_t type,
                              const void *data, uint32_t len_bytes,
                              uint64_t cookie);

/** Wait until all commands that were posted have been carried out. */
void toe_settle(struct toe *toe);

/** End a SYN, also after toe_accept(): ENDED follows at once. */
MUST_USE bool toe_reject(struct toe *toe, uint32_t tid);

/** Send bytes, which belong to the engine until TOE_KIND_SENT. */
MUST_USE bool toe_send(struct toe *toe, uint32_t tid, const void *data,
                       uint32_t len_bytes, uint64_t cookie);

/** The same with 1 to TOE_PIECES_MAX pieces, which TOE_KIND_SENT completes
 * together. */
MUST_USE bool toe_send_pieces(struct toe *toe, uint32_t tid,
                              const struct toe_piece *pieces, uint8_t count,
                              uint64_t cookie);

/** Give `len_bytes` of received bytes back. */
MUST_USE bool toe_credit(struct toe *toe, uint32_t tid, uint32_t len_bytes);
MUST_USE bool toe_close(struct toe *toe, uint32_t tid, uint64_t cookie);

/** End a connection with RST.  ENDED follows within 3 s, whatever the port
 * does. */
MUST_USE bool toe_abort(struct toe *toe, uint32_t tid, uint64_t cookie);

/** Give the TID back, after ENDED and all completions. */
MUST_USE bool toe_release(struct toe *toe, uint32_t tid);

/**
 * Read the state of a connection, or of whatever connection has a slot.
 *
 * @return TOE_TCB_LEN bytes, valid until the next call; NULL: there is none
 */
const uint8_t *toe_query(struct toe *toe, uint32_t tid);

/**
 * Read the state of the first connection from a place on: a slot, or TOE_SLOTS
 * + n for entry n of TIME-WAIT.  The lower half of its TID is its place.
 *
 * @return as toe_query()
 */
const uint8_t *toe_query_next(struct toe *toe, uint32_t place);

/** Entries in use. */
struct toe_usage {
    uint16_t connections, half_open, time_waits, pages;
};
struct toe_usage toe_usage(const struct toe *toe);

void toe_kick(struct toe *toe);

/** @return the number of entries reported, at most `budget` */
unsigned int toe_poll(struct toe *toe, unsigned int budget, toe_entry_fn *take,
                      void *ctx);

/** @return false when an entry is there already: do not sleep */
MUST_USE bool toe_arm(struct toe *toe);
void toe_irq_take(struct toe *toe);

/** Counters of the engine, and those of net/tcp. */
uint64_t toe_counter_read(const struct toe *toe, enum toe_counter counter);
uint64_t toe_tcp_counter_read(const struct toe *toe, unsigned int counter);

#endif
