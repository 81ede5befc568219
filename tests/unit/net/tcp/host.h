/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A user of the TCP engine, for tests: it accepts connections, keeps what it
 * has to send, and checks what it receives.
 *
 * The engine's callbacks only note what has happened; host_settle() acts on it
 * between two calls of the engine.
 */
#ifndef ESSD_TESTS_TCP_HOST_H
#define ESSD_TESTS_TCP_HOST_H

#include "net/tcp/tcp.h"

enum {
    HOST_CONNS = 1024,
    HOST_PORTS = 128,  /* listeners have smaller ones */
    HOST_FRAMES = 256, /* segments that wait to be sent */
    HOST_SEGMENT_MAX = 9000,
};

/* What a connection does with received bytes. */
enum host_service {
    HOST_MANUAL,  /* Checks that they are host_pattern(); the test sends,
                   * consumes and closes. */
    HOST_ECHO,    /* Returns them; closes after the peer. */
    HOST_DISCARD, /* Consumes them; closes after the peer. */
    HOST_PATTERN, /* Checks that they are host_pattern(), consumes them;
                   * closes after the peer. */
    HOST_SOURCE,  /* Sends `source_bytes` of host_pattern(), then closes. */
};

struct host_conn {
    uint32_t id; /* TCP_NO_ID: unused */
    enum host_service service;
    uint64_t received, consumed, sent, acked;
    uint32_t to_consume; /* by host_settle() */
    uint32_t to_send;
    bool finished, closes;
    bool is_wrong; /* other bytes than expected were received */
    uint8_t *ring; /* HOST_ECHO: what was received, by offset */
};

struct host_frame {
    struct tcp_ends ends;
    uint64_t at_us; /* when it was sent */
    uint32_t route;
    uint8_t ecn;
    uint32_t len_bytes;
    uint8_t data[HOST_SEGMENT_MAX];
};

struct host {
    struct tcp *tcp;
    struct tcp_user user;
    struct tcp_config config;
    void *memory;
    uint64_t now_us;
    enum host_service services[HOST_PORTS];
    uint64_t source_bytes;
    struct host_conn conns[HOST_CONNS];    /* by the low half of the id */
    uint32_t asked[TCP_HALF_OPEN_MAX + 1]; /* ids that wait for an answer */
    unsigned int asked_count;
    bool refuses;        /* reject instead of accept */
    bool ignores;        /* neither */
    bool is_full;        /* send() returns false */
    uint32_t full_route; /* for this route, too; 0: none */
    uint32_t rooms;      /* 0: no limit; is_full after this many segments */
    uint32_t fetch_most; /* 0: no limit; bytes that fetch() finds at a time */
    uint32_t route;      /* of the segments that arrive */
    uint64_t lost_from;  /* fetch() finds nothing from this offset on */

    /* The last events, for tests. */
    uint32_t established_id;
    unsigned int established_count, ended_count;
    uint32_t ended_id;
    enum tcp_end end;

    struct host_frame frames[HOST_FRAMES];
    unsigned int frame_head, frame_count;
};

/** The byte at an offset of every HOST_PATTERN and HOST_SOURCE stream. */
uint8_t host_pattern(uint64_t offset);

struct host *host_new(const struct tcp_config *config);
void host_free(struct host *host);

/** Save the engine, and go on with another one that has loaded it. */
void host_reload(struct host *host);

void host_listen(struct host *host, uint16_t port, enum host_service service);

/** Give a segment to the engine, then act on what it reports. */
void host_input(struct host *host, const struct tcp_ends *from_peer,
                uint8_t ecn, const uint8_t *data, size_t len);
/** Do everything that is due at `host->now_us`. */
void host_settle(struct host *host);

struct host_conn *host_conn(struct host *host, uint32_t id);
/** Announce bytes of host_pattern(). */
void host_send(struct host *host, uint32_t id, uint32_t len);

/** The oldest segment to send, or NULL. */
struct host_frame *host_frame(struct host *host);
void host_frame_done(struct host *host);

#endif
