/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's cable as a stream socket: QEMU's netdevs "stream" and "socket", a
 * 4-byte big-endian length before each frame.  Never drops: what the socket
 * does not take waits in the port.
 *
 * For programs that run in real time; tests use cables.
 */
#ifndef ESSD_NATIVE_SOCKET_LINK_H
#define ESSD_NATIVE_SOCKET_LINK_H

#include "firmware/native/machine.h"

enum { SOCKET_LINK_BUFFER = 1024 * 1024 };

struct socket_link {
    struct machine *machine;
    unsigned int port;
    int fd;
    bool was_full;
    bool is_broken;
    size_t out_at, out_len; /* what is to be written: out[out_at..out_len) */
    size_t in_len;
    uint8_t *out;
    uint8_t *in;
};

/** A client's socket. @return -1, with errno, when nobody listens */
MUST_USE int socket_link_connect(const char *path);

/** Wait for one client at a path that is created. @return -1 with errno */
MUST_USE int socket_link_accept(const char *path);

/** Plug the socket into a port.  The link owns fd from now on. */
void socket_link_init(struct socket_link *link, struct machine *machine,
                      unsigned int port, int fd);
void socket_link_end(struct socket_link *link);

/** The real time as the world's, then one round of it and of the links; sleep
 *  until something is due when there was nothing to do. */
void socket_link_run_once(struct native_world *world, struct socket_link *links,
                          unsigned int count);

#endif
