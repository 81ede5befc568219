/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The witness: sees every frame between the drive and the hostile peer, whoever
 * loses or bends them afterwards, and knows from outside what must hold.
 *
 *  - An answer is sent once, is 16 bytes, and belongs to a command.
 *  - What is sent again is what was sent before.
 *  - The drive writes to no memory that no command named.
 *
 * It also remembers which connections the drive believes in, so that all of
 * them can be ended.
 */
#ifndef ESSD_TEST_SEQUENCE_WITNESS_H
#define ESSD_TEST_SEQUENCE_WITNESS_H

#include "firmware/native/native.h"

enum {
    WITNESS_CONNS = 64,
    WITNESS_CIDS = 256, /* counted by the low byte */
    WITNESS_SGLS = 64,
    WITNESS_PSNS = 256,
};

struct witness_sgl {
    uint64_t addr;
    uint32_t len_bytes;
    uint32_t key;
};

struct witness_answer {
    bool is_seen;
    uint32_t psn;
    uint32_t hash;
};

/* A connection that the drive has sent a REP for. */
struct witness_conn {
    uint32_t comm_id, drive_comm_id;
    uint32_t qpn, drive_qpn;
    uint8_t mac[6]; /* where the REP went */
    bool is_v6;
    uint8_t ip[16];
    uint32_t responses; /* sent, each counted once */
    bool is_mixed;      /* the peer sent other requests than SENDs */
    uint32_t sgl_count; /* above WITNESS_SGLS: not all are remembered */
    struct witness_sgl sgls[WITNESS_SGLS];
    uint16_t cids[WITNESS_CIDS];                 /* commands less answers */
    struct witness_answer answers[WITNESS_PSNS]; /* by PSN */
};

struct witness {
    const struct native_drive *drive;
    uint32_t conn_count; /* may be more than are remembered */
    struct witness_conn conns[WITNESS_CONNS];
};

void witness_init(struct witness *witness, const struct native_drive *drive);

/** Frames on the wire, as they are. */
void witness_from_drive(struct witness *witness, const uint8_t *data,
                        size_t len);
void witness_from_peer(struct witness *witness, const uint8_t *data,
                       size_t len);

/**
 * A command that by the specification ends other hosts' connections, or changes
 * the drive's settings: it is not to be sent.
 */
bool witness_is_fatal(const uint8_t *data, size_t len);

/** Its engine's queue pair, or NULL when the drive has none any more. */
const struct roce_qp *witness_qp(const struct witness *witness,
                                 const struct witness_conn *conn);

/** Say what is wrong and abort(). */
__attribute__((noreturn, format(printf, 1, 2))) void witness_fail(
    const char *format, ...);

#endif
