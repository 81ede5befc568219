/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of chapter `roce` share: the echo service's memory. */
#ifndef ESSD_CONFORM_ROCE_LIB_H
#define ESSD_CONFORM_ROCE_LIB_H

#include "firmware/echo/echo_wire.h"
#include "rc.h"

enum {
    ROCE_PSN_MASK = 0xffffff,
    ROCE_DATA_MAX = 65536,
    ROCE_QUIET_US = 20000, /* no answer in that time: there is none */
};

/* A connection to the diagnostic service, whose memory is ours to use. */
struct echo_rc {
    struct rc *rc;
    struct echo_rep rep;
};

/** @param buffers, hold_ms  as in struct echo_req; 0: defaults */
struct echo_rc *roce_echo(struct conf *conf, const struct rc_config *config,
                          uint8_t buffers, uint16_t hold_ms);

/** READ request with the next PSNs; nothing is waited for.
 *  @return its first PSN */
uint32_t roce_request_read(struct rc *rc, uint64_t va, uint32_t rkey,
                           uint32_t len_bytes);

/** Take the responses of a READ: opcodes, PSNs, lengths checked; data copied.
 */
void roce_take_read(struct rc *rc, uint32_t first_psn, uint32_t len_bytes,
                    uint8_t *data);

/** Both. */
void roce_read(struct rc *rc, uint64_t va, uint32_t rkey, uint32_t len_bytes,
               uint8_t *data);

/** One WRITE packet of the next PSN, acknowledgement asked for; `reth` for
 *  FIRST and ONLY. */
void roce_write_packet(struct rc *rc, uint8_t opcode, const struct reth *reth,
                       const void *data, size_t len_bytes);

/** What message number k of this connection placed. */
void roce_expect_placed(struct echo_rc *echo, unsigned int k, const void *data,
                        size_t len_bytes);

/** Bytes that can be told apart. */
void roce_pattern(uint8_t *data, size_t len_bytes, uint8_t salt);

/** The connection still works: a READ is answered. */
void roce_expect_works(struct echo_rc *echo);

/** The queue pair is in error: a READ is not answered. */
void roce_expect_dead(struct echo_rc *echo);

#endif
