/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP with a program that reads a stream, counts its bytes and closes after
 * its peer: the engine of the drive, lwIP, smoltcp, or the kernel of this
 * computer.  The peer is a test, which hands over TCP segments without their IP
 * headers.
 */
#ifndef ESSD_TESTS_TCP_STACK_H
#define ESSD_TESTS_TCP_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STACK_ADDRESS = 0x0a580002, /* 10.88.0.2 */
    STACK_PEER = 0x0a580001,
    STACK_PORT = 9,
    STACK_SEGMENT_MAX = 2048,
};

struct stack_state {
    uint64_t delivered; /* bytes that the program has read */
    bool is_wrong;      /* others than host_pattern() */
    bool has_fin;       /* and then the end of the stream */
    bool is_reset;      /* or a reset */
};

struct stack {
    const char *name;
    bool forgets;     /* bytes beyond a gap, when others of them come */
    bool forgets_fin; /* a FIN beyond a gap */
    /* Take a segment, and let the program read. */
    void (*input)(const uint8_t *segment, size_t len);
    /* The next segment that was sent. @return its length, or 0 */
    size_t (*output)(uint8_t *segment);
    void (*pass)(uint32_t ms);
    struct stack_state (*state)(void);
    /* Forget the connection, and wait for the next one. */
    void (*renew)(void);
};

const struct stack *stack_engine(void);
const struct stack *stack_lwip(void);
/** @param path  the library of tests/tcp/stacks/smoltcp.  NULL if it cannot be
 *               loaded */
const struct stack *stack_smoltcp(const char *path);
/** @param tun  the name of a TUN device, which is made.  NULL if it cannot be
 */
const struct stack *stack_kernel(const char *tun);

/** Put an IP header before a segment from the peer.
 * @return the length of both */
size_t stack_packet(uint8_t *packet, const uint8_t *segment, size_t len);
/** The segment in a packet to the peer, or NULL. */
const uint8_t *stack_segment(const uint8_t *packet, size_t *len);
/** Check bytes that were read. */
void stack_read(struct stack_state *state, const uint8_t *data, size_t len);

#endif
