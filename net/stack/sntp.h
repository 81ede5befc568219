/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SNTP client: polls one server for the time.
 *
 *  + A request has a random number in its transmit timestamp, which the answer
 *    has to return.  So a request does not reveal our clock, and answers are
 *    hard to forge.
 *  + An answer is used only if it comes from the server's address and port, in
 *    mode 4, with stratum 1 to 15, synchronised, and with a time between 2020
 *    and 2100.
 *  + Without an answer the client asks again after 15, 30, 60 ... seconds, up
 *    to the poll interval, each time from the next own address that reaches
 *    the server.
 *  + A server gets no two requests within 15 seconds, unless the configured
 *    poll interval is shorter.
 *  + Kiss code RATE doubles the interval, up to 16 times the configured one.
 *    After DENY or RSTR the server is not asked again until the link comes up
 *    or the drive restarts.
 *
 * Spec: RFC 4330 sections 5 (a unicast client), 8 and 10; RFC 5905 section 7.4.
 *
 * Left out: more than one server, broadcast mode, slewing and drift.  The clock
 * is set to the server's time plus half of the round trip; the error is at
 * most that half.
 */
#ifndef ESSD_NET_STACK_SNTP_H
#define ESSD_NET_STACK_SNTP_H

#include "net/stack/stack.h"
#include "net/wire/sntp.h"

enum {
    SNTP_POLL_S = 1024, /* default poll interval */
    SNTP_LEAST_S = 15,  /* shortest time between requests: RFC 4330 10 */
    SNTP_ANSWER_US = 1000000,
    SNTP_WAIT_US = 50000, /* retry: no neighbour entry or transmit buffer */
    SNTP_CLIENT_PORT = 49123,
};

enum sntp_state {
    SNTP_IDLE,    /* No server, or DENY or RSTR; waits for a server or link. */
    SNTP_RESTING, /* Waits until the next request is due. */
    SNTP_ASKING,  /* Request sent; waits for the answer or time-out. */
    SNTP_STATES,
};

enum sntp_counter {
    SNTP_QUESTIONS,
    SNTP_ANSWERS, /* that set the clock */
    SNTP_TIMEOUTS,
    SNTP_STRAY,    /* of another sender, not requested, or malformed */
    SNTP_KISSES,   /* kiss-o'-death packets */
    SNTP_UNUSABLE, /* unsynchronised, or outside of 2020 to 2100 */
    SNTP_COUNTERS,
};

struct sntp_config {
    struct net_stack *stack; /* stays */
    struct ip_addr server;   /* all zero for no server */
    uint16_t poll_s;         /* 0 means 1024 */
    uint64_t random_seed;    /* differs from drive to drive and boot to boot */
    void *ctx;
    /* Called with the current time in milliseconds since 1970-01-01. */
    void (*set_time)(void *ctx, uint64_t epoch_ms, const struct sntp *answer);
    /* Called when the server has sent a kiss code.  May be NULL. */
    void (*kissed)(void *ctx, uint32_t code);
};

/* Opaque from here on. */
struct sntp_client {
    struct sntp_config config;
    uint64_t counters[SNTP_COUNTERS];
    uint64_t random;
    uint64_t nonce; /* transmit timestamp of the pending request */
    uint64_t asked_us;
    uint64_t due_us;
    uint64_t rests_until_us; /* earliest time of the next request */
    uint32_t poll_s;         /* present interval, longer after RATE */
    uint32_t retry_s;        /* wait after the next time-out */
    unsigned int tries;      /* requests since the last answer */
    uint8_t waits;           /* consecutive failures to send */
    uint8_t state; /* enum sntp_state; sntp_enter() is the only writer */
};

/**
 * Bind the client's UDP port and ask as soon as it can.  Copies `config`.
 *
 * @return false when the stack has no room for it
 */
MUST_USE bool sntp_init(struct sntp_client *client,
                        const struct sntp_config *config, uint64_t now_us);

/** Use another server and ask it at once; all zero means none. */
void sntp_set_server(struct sntp_client *client, const struct ip_addr *server,
                     uint64_t now_us);

/** Use another poll interval, in seconds; 0 means 1024. */
void sntp_set_poll(struct sntp_client *client, uint16_t poll_s,
                   uint64_t now_us);

/** A link came up: send a request as soon as the rate limit allows. */
void sntp_link_up(struct sntp_client *client, uint64_t now_us);

/** Do what is due. @return when to call it again, UINT64_MAX for never */
uint64_t sntp_timer(struct sntp_client *client, uint64_t now_us);

static inline uint64_t sntp_counter_read(const struct sntp_client *client,
                                         enum sntp_counter counter)
{
    return client->counters[counter];
}

#endif
