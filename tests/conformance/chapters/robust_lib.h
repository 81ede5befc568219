/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the chapter `robust` share: a filter on the wire that
 * disturbs one packet, or packets at random; and peers with short time-outs, so
 * that a lost packet costs only milliseconds.
 */
#ifndef ESSD_CONFORM_ROBUST_LIB_H
#define ESSD_CONFORM_ROBUST_LIB_H

#include "limits_lib.h"

enum {
    ROBUST_CM_TIMEOUT = 15,  /* 134 ms. */
    ROBUST_ACK_TIMEOUT = 12, /* 17 ms; see robust_ack_timeout(). */
    ROBUST_IDLE_US = 8000000,
};

/* ---- conf_host()'s packets. */

enum robust_kind { ROBUST_ANY, ROBUST_CM, ROBUST_RC };

enum robust_fault {
    ROBUST_LOSE,
    ROBUST_DOUBLE,
    ROBUST_DELAY, /* Delivered after the next packet, or after a millisecond. */
    ROBUST_BEND,  /* One bit is inverted, anywhere after the MAC addresses. */
};

/*
 * The filter. It changes RoCE packets only, so that address resolution works.
 */
struct robust_hand {
    struct conf *conf;
    bool is_active;
    /* Disturb one packet: number `at` of that kind and direction. */
    enum robust_kind kind;
    bool is_from_target;
    enum robust_fault fault;
    unsigned int at, seen;
    bool was_hit;
    /* Or disturb each packet with that chance of 1000, in both directions. */
    uint16_t chance[4]; /* Indexed by enum robust_fault. */
    unsigned int hits[4];
    bool is_deaf; /* All packets are lost. */
};

/** Make the filter, and set it as the test's. */
struct robust_hand *robust_hand_new(struct conf *conf);

/**
 * ROBUST_ACK_TIMEOUT, or a longer one in real time, where this program may
 * stand still for a moment: see conf_patience().
 */
uint8_t robust_ack_timeout(const struct conf *conf);

/** conf_host() with shorter CM and RC time-outs. */
struct native_host *robust_host(struct conf *conf);

/** Like conf_resolve(), with a short acknowledgement time-out. */
void robust_resolve(struct conf *conf, const struct conf_session *session,
                    struct host_target *target);

/** Like conf_connect(), to that target. */
void robust_connect(struct conf *conf, struct nvme_host *host,
                    const struct host_target *target);

/* ---- Connections made by hand. */

/**
 * rc_open() and rc_make_req() with short time-outs and few retries, unless
 * *config sets others.
 */
struct rc *robust_rc(struct conf *conf, const struct rc_config *config);

/** Send robust_rc()'s REQ and take the REP, but send no RTU. */
struct rc *robust_rc_half(struct conf *conf, const struct rc_config *config);

/** Connect and enable an admin queue, and connect I/O queue 1. */
struct nvmf_pair robust_pair(struct conf *conf);

/** Wait until the target has given up peers of robust_rc() that vanished. */
void robust_let_retries_end(struct conf *conf);

/**
 * Check that the peers that vanished hold no resources, and that the target
 * works.
 */
void robust_expect_clean(struct conf *conf);

#endif
