/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AF_MCTP sockets for a program on a kernel without MCTP: preload this library.
 *
 * socket(AF_MCTP) connects to the Unix socket that the environment variable
 * ESSD_MCTP_SOCKET names.  Each packet of this socket is one message, and
 * begins with the message type.  The program at the other end passes the
 * messages to a bus: tests/e2e/test_libnvme_mi.py.
 *
 * Left out: bind(), and tags; libnvme-mi has one request under way at a time.
 * Reference: Documentation/networking/mctp.rst of Linux.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { MCTP_FAMILY = 45, MESSAGE_MAX = 8192, PIECES_MAX = 8 };

/* As in linux/mctp.h. */
struct mctp_address {
    uint16_t family;
    uint16_t padding;
    uint32_t network;
    uint8_t eid;
    uint8_t type;
    uint8_t tag;
    uint8_t padding1;
};

static int mctp_fd = -1;

static int connect_bus(int fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("ESSD_MCTP_SOCKET");

    if (path == NULL || strlen(path) >= sizeof(address.sun_path)) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    return connect(fd, (const struct sockaddr *)&address, sizeof(address));
}

int socket(int domain, int type, int protocol)
{
    int (*next)(int, int, int) =
        (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
    int fd;

    if (domain != MCTP_FAMILY) {
        return next(domain, type, protocol);
    }
    fd = next(AF_UNIX, SOCK_SEQPACKET, 0);
    if (fd >= 0 && connect_bus(fd) == 0) {
        mctp_fd = fd;
        return fd;
    }
    return -1;
}

/* The type of a message is in its address; on the bus it is the first byte. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t (*next)(int, const struct msghdr *, int) =
        (ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT,
                                                           "sendmsg");
    struct mctp_address address;
    struct iovec pieces[PIECES_MAX + 1];
    struct msghdr plain = {.msg_iov = pieces};
    ssize_t sent;

    if (fd != mctp_fd) {
        return next(fd, message, flags);
    }
    if (message->msg_namelen < sizeof(address) ||
        message->msg_iovlen > PIECES_MAX) {
        errno = EINVAL;
        return -1;
    }
    memcpy(&address, message->msg_name, sizeof(address));
    pieces[0] = (struct iovec){.iov_base = &address.type, .iov_len = 1};
    memcpy(pieces + 1, message->msg_iov,
           message->msg_iovlen * sizeof(pieces[0]));
    plain.msg_iovlen = message->msg_iovlen + 1;
    sent = next(fd, &plain, flags);
    return sent > 0 ? sent - 1 : sent;
}

/* @return the number of bytes that fit into the pieces */
static size_t scatter_message(const uint8_t *bytes, size_t len,
                              const struct msghdr *message)
{
    size_t done = 0;

    for (size_t i = 0; i < message->msg_iovlen; i++) {
        size_t room = message->msg_iov[i].iov_len;
        size_t n = len - done < room ? len - done : room;

        memcpy(message->msg_iov[i].iov_base, bytes + done, n);
        done += n;
    }
    return done;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t (*next)(int, struct msghdr *, int) =
        (ssize_t(*)(int, struct msghdr *, int))dlsym(RTLD_NEXT, "recvmsg");
    static uint8_t bytes[MESSAGE_MAX];
    struct iovec piece = {.iov_base = bytes, .iov_len = sizeof(bytes)};
    struct msghdr plain = {.msg_iov = &piece, .msg_iovlen = 1};
    struct mctp_address address = {.family = MCTP_FAMILY, .network = 1};
    size_t len;
    ssize_t got;

    if (fd != mctp_fd) {
        return next(fd, message, flags);
    }
    got = next(fd, &plain, flags & ~MSG_TRUNC);
    if (got < 1) {
        return got;
    }
    len = (size_t)got - 1;
    address.type = bytes[0];
    if (message->msg_name != NULL && message->msg_namelen >= sizeof(address)) {
        memcpy(message->msg_name, &address, sizeof(address));
        message->msg_namelen = sizeof(address);
    }
    message->msg_flags =
        scatter_message(bytes + 1, len, message) < len ? MSG_TRUNC : 0;
    return (flags & MSG_TRUNC) || !message->msg_flags
               ? (ssize_t)len
               : (ssize_t)scatter_message(bytes + 1, len, message);
}
