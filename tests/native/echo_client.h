/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of the diagnostic echo service on a native host: it does what rping
 * does, and what a conformance suite does with the memory that the REP offers.
 * What must not happen fails the test.
 */
#ifndef ESSD_TEST_NATIVE_ECHO_CLIENT_H
#define ESSD_TEST_NATIVE_ECHO_CLIENT_H

#include "bed.h"

#include "firmware/echo/echo.h"

enum {
    ECHO_CLIENT_MESSAGES = 8,
    ECHO_CLIENT_STRIDE = 64,
    ECHO_CLIENT_BYTES = 2 * ECHO_PING_MAX + 4096, /* source, sink, messages */
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
    uint32_t rkey; /* of source and sink */
    enum echo_client_state state;
    struct cm_end end;
    struct echo_rep rep;
    unsigned int received, sent; /* completions */
    unsigned int waits_for;      /* so many of them */
    enum verbs_wc_status status; /* of the last send */
    uint8_t *source, *sink, *messages;
};

/** ECHO_CLIENT_BYTES of the host's DRAM, until the bed's end. */
uint8_t *echo_client_memory(struct bed *bed);

/** Connect by local address `local`, with this in the REQ; state says how it
 *  went. */
void echo_client_open_with(struct echo_client *c, struct bed *bed,
                           uint8_t *memory, uint8_t local,
                           const void *private_data, size_t private_len);
void echo_client_open(struct echo_client *c, struct bed *bed, uint8_t *memory,
                      uint8_t local);

/** Until the connection has ended. @return false: it does not */
MUST_USE bool echo_client_wait_end(struct echo_client *c);

/** Until the drive has no connection left. @return false: it has */
MUST_USE bool echo_client_wait_idle(struct echo_client *c);

/** Disconnect if need be, and let go of it. */
void echo_client_close(struct echo_client *c);

/** Let go of it. */
void echo_client_vanish(struct echo_client *c);

/** Post one work request, signaled, and wait. @return how it completed */
enum verbs_wc_status echo_client_do(struct echo_client *c,
                                    struct verbs_send_wr *wr);
enum verbs_wc_status echo_client_send(struct echo_client *c, void *data,
                                      uint32_t len_bytes);
/** READ into the sink, or WRITE from the source. */
enum verbs_wc_status echo_client_transfer(struct echo_client *c,
                                          enum verbs_wr_opcode opcode,
                                          uint32_t rkey, uint64_t addr,
                                          uint32_t len_bytes);

/** Say where a buffer is. @return whether the drive answers with a go-ahead,
 *  else the connection has ended */
MUST_USE bool echo_client_say(struct echo_client *c, const void *where,
                              uint32_t rkey, uint32_t size_bytes);

/** A round of rping's, its data compared. */
void echo_client_ping(struct echo_client *c, uint32_t size_bytes,
                      uint32_t seed);

#endif
