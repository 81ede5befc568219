/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's cable as a stream socket, in the format of QEMU's netdevs "stream"
 * and "socket": a 4-byte big-endian length precedes each frame.  No frame is
 * dropped; frames that the socket does not take wait in the port.
 *
 * This is for programs that run in real time.  Tests use cables.
 */
#ifndef ESSD_NATIVE_SOCKET_LINK_H
#define ESSD_NATIVE_SOCKET_LINK_H

#include "firmware/native/machine.h"
#include "world/link.h"

enum { SOCKET_LINK_BUFFER = 1024 * 1024 };

struct socket_link {
    struct link_port plug; /* what is plugged in */
    struct machine *machine;
    unsigned int port;
    int fd;
    bool was_full;
    bool is_broken;
    size_t out_at, out_len; /* out[out_at..out_len) waits to be written */
    size_t in_len;
    uint8_t *out;
    uint8_t *in;
};

/**
 * Connect as a client.
 * @return -1, with errno set, when nobody listens
 */
MUST_USE int socket_link_connect(const char *path);

/**
 * Create the path and wait for one client.
 * @return -1 with errno set on failure
 */
MUST_USE int socket_link_accept(const char *path);

/** Make a link of a socket, which it owns from now on. */
struct link socket_link_open(struct socket_link *link, int fd);
void socket_link_close(struct socket_link *link);

/** The same, and plug a port into it until the end. */
void socket_link_init(struct socket_link *link, struct machine *machine,
                      unsigned int port, int fd);
void socket_link_end(struct socket_link *link);

/**
 * Set the world's time to the real time and take one round of the world and of
 * the links.  When there was nothing to do, sleep until something is due.
 */
void socket_link_run_once(struct native_world *world, struct socket_link *links,
                          unsigned int count);

#endif
