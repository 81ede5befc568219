/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the chapter `roce` share: connections to the echo service
 * and its memory. */
#ifndef ESSD_CONFORM_ROCE_LIB_H
#define ESSD_CONFORM_ROCE_LIB_H

#include "firmware/echo/echo_wire.h"
#include "rc.h"

enum {
    ROCE_PSN_MASK = 0xffffff,
    ROCE_DATA_MAX = 65536,
    ROCE_QUIET_US = 20000, /* An answer that takes longer will not come. */
};

/* A connection to the diagnostic service, whose memory the test may use. */
struct echo_rc {
    struct rc *rc;
    struct echo_rep rep;
};

/**
 * Connect to the service. @param buffers, hold_ms  as in struct echo_req; 0:
 * defaults
 */
struct echo_rc *roce_echo(struct conf *conf, const struct rc_config *config,
                          uint8_t buffers, uint16_t hold_ms);

/**
 * Send a READ request with the next PSNs, and do not wait. @return its first
 * PSN
 */
uint32_t roce_request_read(struct rc *rc, uint64_t va, uint32_t rkey,
                           uint32_t len_bytes);

/**
 * Take the responses of a READ, check opcodes, PSNs and lengths, and copy the
 * data.
 */
void roce_take_read(struct rc *rc, uint32_t first_psn, uint32_t len_bytes,
                    uint8_t *data);

/** Send a READ request and take its responses. */
void roce_read(struct rc *rc, uint64_t va, uint32_t rkey, uint32_t len_bytes,
               uint8_t *data);

/**
 * Send one WRITE packet with the next PSN, which requests an acknowledgement;
 * `reth` is for FIRST and ONLY.
 */
void roce_write_packet(struct rc *rc, uint8_t opcode, const struct reth *reth,
                       const void *data, size_t len_bytes);

/**
 * Check that message number `k` of this connection is in the service's memory.
 */
void roce_expect_placed(struct echo_rc *echo, unsigned int k, const void *data,
                        size_t len_bytes);

/** Fill `data` with bytes that differ from place to place. */
void roce_pattern(uint8_t *data, size_t len_bytes, uint8_t salt);

/** Check that the connection works: a READ is answered. */
void roce_expect_works(struct echo_rc *echo);

/** Check that the queue pair is in error: a READ is not answered. */
void roce_expect_dead(struct echo_rc *echo);

#endif
