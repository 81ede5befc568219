/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection manager with fake verbs and paths, and a user that logs its
 * callbacks. */
#ifndef ESSD_TESTS_NET_CM_CM_TEST_H
#define ESSD_TESTS_NET_CM_CM_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/net/cm/fake_verbs.h"
#include "net/wire/rdma_ip_cm.h"

enum side_answer { ANSWER_LATER, ANSWER_ACCEPT, ANSWER_REJECT };

/* One end of a connection: a CM and its user. */
struct side {
    struct cm cm;
    struct verbs verbs;
    struct fake_paths paths;
    uint8_t *memory;

    /* Settings: how the user reacts. */
    enum side_answer answer;
    bool keep_after_end; /* do not release in disconnected */
    bool confirm_later;
    uint32_t next_qpn;

    /* The log of its callbacks. */
    struct cm_conn *conn; /* connection of the last callback */
    struct cm_request request;
    uint8_t private_data[256];
    struct cm_end end;
    unsigned int requests, replies, establishments, ends;
};

/* Make a side with GUID 0x1000 + number and address 10.0.0.number. */
struct side *side_new(uint8_t number, uint32_t generation);
void side_free(struct side *side);

/* The next message sent, which must be `expected`, without its MAD header. */
const uint8_t *side_sent(struct side *side, enum cm_attribute expected);
void side_sent_nothing(struct side *side);

/* Deliver a MAD to `to`, with side `number` as its source. */
void side_input(struct side *to, uint8_t number, const uint8_t *mad,
                uint32_t len);

/* The sum of all pins. */
int side_pins(const struct side *side);

struct verbs_ud_info side_from(uint8_t number, uint8_t to);

/* Parameters for a connection of `side` to 10.0.0.peer. */
struct cm_connect_param side_param(struct side *side, uint8_t number,
                                   uint8_t peer);

/* The REQ of a stock Linux host: 10.0.0.1 to 10.0.0.2, port 4420. */
extern const uint8_t linux_req[MAD_LEN];

#endif
