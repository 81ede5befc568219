/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of the diagnostic echo service on a native host: it does what rping
 * does, and what a conformance suite does with the memory that the REP offers.
 * Anything unexpected fails the test.
 */
#ifndef ESSD_TEST_NATIVE_ECHO_CLIENT_H
#define ESSD_TEST_NATIVE_ECHO_CLIENT_H

#include "bed.h"

#include "firmware/echo/echo.h"

enum {
    ECHO_CLIENT_MESSAGES = 8,
    ECHO_CLIENT_STRIDE = 64,
    /* Room for source, sink and messages. */
    ECHO_CLIENT_BYTES = 2 * ECHO_PING_MAX + 4096,
};

enum echo_client_state {
    ECHO_CLIENT_CONNECTING,
    ECHO_CLIENT_LIVE,
    ECHO_CLIENT_REFUSED,
    ECHO_CLIENT_ENDED,
};

struct echo_client {
    struct bed *bed;
    struct cm_conn *cm;
    uint32_t qpn;
    uint32_t rkey; /* Key of source and sink. */
    enum echo_client_state state;
    struct cm_end end;
    struct echo_rep rep;
    unsigned int received, sent; /* Number of completions. */
    unsigned int waits_for;      /* How many completions are awaited. */
    enum verbs_wc_status status; /* The status of the last send. */
    uint8_t *source, *sink, *messages;
};

/** ECHO_CLIENT_BYTES of the host's DRAM, valid until the bed ends. */
uint8_t *echo_client_memory(struct bed *bed);

/**
 * Connect from local address `local` with this REQ; c->state has the result.
 */
void echo_client_open_with(struct echo_client *c, struct bed *bed,
                           uint8_t *memory, uint8_t local,
                           const void *private_data, size_t private_len);
void echo_client_open(struct echo_client *c, struct bed *bed, uint8_t *memory,
                      uint8_t local);

/** Wait until the connection has ended. @return false when it does not end */
MUST_USE bool echo_client_wait_end(struct echo_client *c);

/**
 * Wait until the drive has no connection. @return false when it still has one
 */
MUST_USE bool echo_client_wait_idle(struct echo_client *c);

/** Disconnect if necessary, and release the connection. */
void echo_client_close(struct echo_client *c);

/** Release the connection without a DREQ. */
void echo_client_vanish(struct echo_client *c);

/** Post one signaled work request and wait. @return its completion status */
enum verbs_wc_status echo_client_do(struct echo_client *c,
                                    struct verbs_send_wr *wr);
enum verbs_wc_status echo_client_send(struct echo_client *c, void *data,
                                      uint32_t len_bytes);
/** READ into the sink, or WRITE from the source. */
enum verbs_wc_status echo_client_transfer(struct echo_client *c,
                                          enum verbs_wr_opcode opcode,
                                          uint32_t rkey, uint64_t addr,
                                          uint32_t len_bytes);

/**
 * Tell the drive where a buffer is. @return whether the drive answers with a
 * go-ahead; otherwise the connection has ended
 */
MUST_USE bool echo_client_say(struct echo_client *c, const void *where,
                              uint32_t rkey, uint32_t size_bytes);

/** Run one round of rping, and compare its data. */
void echo_client_ping(struct echo_client *c, uint32_t size_bytes,
                      uint32_t seed);

#endif
