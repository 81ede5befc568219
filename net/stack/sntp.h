/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SNTP client: asks one server for the time, again and again.
 *
 *  + the question carries a random number where a clock would show: the answer
 *    has to bring it back, and nobody learns what time we think it is
 *  + an answer counts only from the server's address and port, in mode 4, of
 *    stratum 1 to 15, synchronised, and with a time in this century
 *  + no answer: asked again after 15, 30, 60 ... seconds up to the poll
 *    interval, each time from the next address of ours that reaches the server
 *  + a server gets no two questions within 15 seconds, unless that is how it is
 *    configured
 *  + kiss of death RATE: the interval doubles, up to 16 times what it was;
 *    DENY, RSTR: this server is not asked again before the link or the drive
 *    starts anew
 *
 * Spec: RFC 4330 sections 5 (a unicast client), 8 and 10; RFC 5905 section 7.4.
 *
 * Left out: more than one server, broadcast mode, slewing and drift: the clock
 * is set, half of the round trip (at most 5 ms of error for 10) added.
 */
#ifndef ESSD_NET_STACK_SNTP_H
#define ESSD_NET_STACK_SNTP_H

#include "net/stack/stack.h"
#include "net/wire/sntp.h"

enum {
    SNTP_POLL_S = 1024, /* default */
    SNTP_LEAST_S = 15,  /* RFC 4330 section 10 */
    SNTP_ANSWER_US = 1000000,
    SNTP_WAIT_US = 50000, /* for the neighbour, or for room */
    SNTP_CLIENT_PORT = 49123,
};

enum sntp_state {
    SNTP_IDLE,    /* no server, or it wants no more questions */
    SNTP_RESTING, /* waits for the time of the next question */
    SNTP_ASKING,  /* waits for the answer */
    SNTP_STATES,
};

/* Why an answer did not count. */
enum sntp_counter {
    SNTP_QUESTIONS,
    SNTP_ANSWERS, /* good ones */
    SNTP_TIMEOUTS,
    SNTP_STRAY,    /* from elsewhere, unasked for, or senseless */
    SNTP_KISSES,   /* of death */
    SNTP_UNUSABLE, /* unsynchronised, or an absurd time */
    SNTP_COUNTERS,
};

struct sntp_config {
    struct net_stack *stack; /* stays */
    struct ip_addr server;   /* all zero: there is none */
    uint16_t poll_s;         /* 0: 1024 */
    uint64_t random_seed;    /* differs from drive to drive and boot to boot */
    void *ctx;
    /* The time is `epoch_ms` since 1970-01-01, now. */
    void (*set_time)(void *ctx, uint64_t epoch_ms, const struct sntp *answer);
    /* The server does not serve us: see the kiss code.  May be NULL. */
    void (*kissed)(void *ctx, uint32_t code);
};

/* Opaque from here on. */
struct sntp_client {
    struct sntp_config config;
    uint64_t counters[SNTP_COUNTERS];
    uint64_t random;
    uint64_t cookie; /* in the question that is out */
    uint64_t asked_us;
    uint64_t due_us;
    uint64_t rests_until_us; /* this server gets no question before */
    uint32_t poll_s;         /* after kisses */
    uint32_t retry_s;        /* after the next timeout */
    unsigned int tries;      /* without an answer */
    uint8_t waits;           /* for neighbour or room, in a row */
    uint8_t state; /* enum sntp_state; sntp_enter() is the only writer */
};

/**
 * Bind the client's UDP port and ask as soon as it can.  Copies `config`.
 *
 * @return false when the stack has no room for it
 */
MUST_USE bool sntp_init(struct sntp_client *client,
                        const struct sntp_config *config, uint64_t now_us);

/** Another server from now on, asked at once; all zero: none. */
void sntp_set_server(struct sntp_client *client, const struct ip_addr *server,
                     uint64_t now_us);

/** Another interval from now on, in seconds; 0: 1024. */
void sntp_set_poll(struct sntp_client *client, uint16_t poll_s,
                   uint64_t now_us);

/** A link came up: ask as soon as this server may be asked. */
void sntp_link_up(struct sntp_client *client, uint64_t now_us);

/** Do what is due. @return when to call it again, UINT64_MAX for never */
uint64_t sntp_timer(struct sntp_client *client, uint64_t now_us);

static inline uint64_t sntp_counter_read(const struct sntp_client *client,
                                         enum sntp_counter counter)
{
    return client->counters[counter];
}

#endif
