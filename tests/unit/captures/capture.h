/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The captures of tests/fixtures/peers: the frames of stock peers, one after
 * the other, and the TCP streams in them.
 *
 * A capture has every frame of a cable in the order in which they came, so a
 * stream has no gap.  All checks are asserts of cmocka.
 */
#ifndef ESSD_TESTS_CAPTURE_H
#define ESSD_TESTS_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capture {
    uint8_t *bytes; /* the whole file */
    size_t len;
    size_t next; /* where the next block begins */
};

/** Read a capture.  @param name  "aoe" for tests/fixtures/peers/aoe.pcapng */
void capture_open(struct capture *capture, const char *name);

void capture_close(struct capture *capture);

/** Find the next frame.  @return its first byte; NULL at the end */
const uint8_t *capture_next(struct capture *capture, size_t *len);

enum { CAPTURE_CONNECTIONS_MAX = 4, CAPTURE_TURNS_MAX = 512 };

/* All bytes that one side of a connection has sent. */
struct capture_stream {
    uint8_t *bytes;
    size_t len;
    uint32_t first; /* the sequence number of its first byte */
    bool is_open;   /* SYN has come */
    bool is_closed; /* FIN or RST has come */
};

/* One segment has made a stream so long. */
struct capture_turn {
    bool is_client;
    size_t len;
};

struct capture_connection {
    uint16_t client_port;
    struct capture_stream from_client, from_server;
    struct capture_turn turns[CAPTURE_TURNS_MAX]; /* in the order of time */
    unsigned int turn_count;
};

struct capture_connections {
    struct capture_connection all[CAPTURE_CONNECTIONS_MAX];
    unsigned int count;
    unsigned int segments; /* that have come, on all connections */
};

/**
 * Put together all connections to this port of the server.  Our parsers read
 * every header of a segment, and its checksums are correct.
 */
void capture_connections_read(struct capture_connections *connections,
                              const char *name, uint16_t server_port);

void capture_connections_free(struct capture_connections *connections);

#endif
