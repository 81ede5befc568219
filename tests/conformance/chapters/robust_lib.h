/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of chapter `robust` share: a hand on the wire that does one
 * thing to one packet, or things to packets at random; peers with little
 * patience, so that what is lost costs milliseconds.
 */
#ifndef ESSD_CONFORM_ROBUST_LIB_H
#define ESSD_CONFORM_ROBUST_LIB_H

#include "limits_lib.h"

enum {
    ROBUST_CM_TIMEOUT = 15,  /* 134 ms */
    ROBUST_ACK_TIMEOUT = 12, /* 17 ms */
    ROBUST_IDLE_US = 8000000,
};

/* ---- conf_host()'s packets. */

enum robust_kind { ROBUST_ANY, ROBUST_CM, ROBUST_RC };

enum robust_fault {
    ROBUST_LOSE,
    ROBUST_DOUBLE,
    ROBUST_DELAY, /* behind the next one, or a millisecond */
    ROBUST_BEND,  /* one bit, anywhere behind the MAC addresses */
};

/* RoCE packets only: what asks for addresses is left alone. */
struct robust_hand {
    struct conf *conf;
    bool is_active;
    /* One packet: number `at` of that kind and direction. */
    enum robust_kind kind;
    bool is_from_target;
    enum robust_fault fault;
    unsigned int at, seen;
    bool was_hit;
    /* Or each with that chance, of 1000, in both directions. */
    uint16_t chance[4]; /* enum robust_fault */
    unsigned int hits[4];
    bool is_deaf; /* nothing passes */
};

/** It is the test's filter from now on. */
struct robust_hand *robust_hand_new(struct conf *conf);

/** conf_host(), its CM and RC less patient. */
struct native_host *robust_host(struct conf *conf);

/** As conf_resolve(), with a short time-out for acknowledgements. */
void robust_resolve(struct conf *conf, const struct conf_session *session,
                    struct host_target *target);

/** As conf_connect() to that. */
void robust_connect(struct conf *conf, struct nvme_host *host,
                    const struct host_target *target);

/* ---- By hand. */

/** rc_open() and rc_make_req(), with short time-outs and one retry of each
 *  kind; *config may say more. */
struct rc *robust_rc(struct conf *conf, const struct rc_config *config);

/** The REQ of robust_rc() sent, the REP taken; no RTU. */
struct rc *robust_rc_half(struct conf *conf, const struct rc_config *config);

/** Admin queue, enabled, and I/O queue 1. */
struct nvmf_pair robust_pair(struct conf *conf);

/** Nothing is left of those that went, and the target works. */
void robust_expect_clean(struct conf *conf);

#endif
