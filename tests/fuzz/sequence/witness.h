/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The witness sees every frame between the drive and the hostile peer, before
 * any of them is lost or bent, and checks from outside:
 *
 *  - An answer has 16 bytes and belongs to a command, which gets only one.
 *  - A repeated answer equals the first one.
 *  - The drive accesses only memory that some command has named.
 *
 * It also remembers the connections that the drive has, so that all of them can
 * be ended.
 */
#ifndef ESSD_TEST_SEQUENCE_WITNESS_H
#define ESSD_TEST_SEQUENCE_WITNESS_H

#include "firmware/native/native.h"

enum {
    WITNESS_CONNS = 64,
    WITNESS_CIDS = 256, /* Counted by the low byte of the CID. */
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

/* A connection for which the drive has sent a REP. */
struct witness_conn {
    uint32_t comm_id, drive_comm_id;
    uint32_t qpn, drive_qpn;
    uint8_t mac[6]; /* The address to which the REP was sent. */
    bool is_v6;
    uint8_t ip[16];
    uint32_t responses; /* The answers that were sent, each counted once. */
    bool is_mixed;      /* The peer has sent other requests than SENDs. */
    uint32_t sgl_count; /* Above WITNESS_SGLS not all are remembered. */
    struct witness_sgl sgls[WITNESS_SGLS];
    /* Commands without an answer. */
    uint16_t cids[WITNESS_CIDS];
    struct witness_answer answers[WITNESS_PSNS]; /* Indexed by PSN. */
};

struct witness {
    const struct native_drive *drive;
    uint32_t conn_count; /* May be more than are remembered. */
    struct witness_conn conns[WITNESS_CONNS];
};

void witness_init(struct witness *witness, const struct native_drive *drive);

/** Frames as they are on the wire. */
void witness_from_drive(struct witness *witness, const uint8_t *data,
                        size_t len);
void witness_from_peer(struct witness *witness, const uint8_t *data,
                       size_t len);

/**
 * A command that by the specification ends other hosts' connections, or changes
 * the drive's settings, must not be sent.
 */
bool witness_is_fatal(const uint8_t *data, size_t len);

/**
 * The queue pair in the drive's engine; NULL when the drive has none any more.
 */
const struct roce_qp *witness_qp(const struct witness *witness,
                                 const struct witness_conn *conn);

/** Print what is wrong, and abort(). */
__attribute__((noreturn, format(printf, 1, 2))) void witness_fail(
    const char *format, ...);

#endif
