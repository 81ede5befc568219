/* SPDX-License-Identifier: BSD-2-Clause */
/* UNIX and TCP sockets: listening, dialling. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "program.h"

enum {
    SOCKET_FLAGS = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
    BUFFER_BYTES = 1024 * 1024,
    HOST_LEN = 256,
    TCP_SILENT_MS = 4000,
    TCP_PROBE_S = 3,
    TCP_PROBES = 3, /* without an answer: the peer is gone */
};

/* ---- UNIX */

static bool unix_address(const char *path, struct sockaddr_un *address,
                         struct complaint *complaint)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address->sun_path)) {
        return complain(complaint,
                        "%s: the path of a socket has at most %zu bytes", path,
                        sizeof(address->sun_path) - 1);
    }
    memcpy(address->sun_path, path, strlen(path) + 1);
    return true;
}

bool check_dial_unix(const char *path, struct complaint *complaint)
{
    struct sockaddr_un address;

    return unix_address(path, &address, complaint);
}

int dial_unix(const char *path)
{
    struct complaint complaint;
    struct sockaddr_un address;
    int fd;

    if (!unix_address(path, &address, &complaint)) {
        return -1;
    }
    fd = socket(AF_UNIX, SOCKET_FLAGS, 0);
    if (fd >= 0 &&
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Remove a socket that nobody listens on any more; anything else stays. */
static bool unix_remove_stale(const char *path,
                              const struct sockaddr_un *address,
                              struct complaint *complaint)
{
    struct stat status;
    int fd, error;

    if (lstat(path, &status) != 0) {
        return true;
    }
    if (!S_ISSOCK(status.st_mode)) {
        return complain(complaint, "%s: exists and is no socket", path);
    }
    fd = socket(AF_UNIX, SOCKET_FLAGS, 0);
    error = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0
                ? 0
                : errno;
    (void)close(fd);
    if (error != ECONNREFUSED) {
        return complain(complaint, "%s: another program listens there", path);
    }
    return unlink(path) == 0 || complain(complaint, "%s: cannot replace it: %s",
                                         path, strerror(errno));
}

int listen_unix(const char *path, int backlog, struct complaint *complaint)
{
    struct sockaddr_un address;
    mode_t mask;
    int fd, status;

    if (!unix_address(path, &address, complaint) ||
        !unix_remove_stale(path, &address, complaint)) {
        return -1;
    }
    fd = socket(AF_UNIX, SOCKET_FLAGS, 0);
    mask = umask(0177); /* the owner only */
    status = bind(fd, (const struct sockaddr *)&address, sizeof(address));
    (void)umask(mask);
    if (status != 0 || listen(fd, backlog) != 0) {
        (void)complain(complaint, "%s: cannot listen: %s", path,
                       strerror(errno));
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* ---- TCP */

/* The parts of HOST:PORT or [HOST]:PORT. */
static bool tcp_split(const char *text, char host[HOST_LEN], const char **port)
{
    const char *colon = strrchr(text, ':');
    size_t len;

    if (colon == NULL || colon[1] == '\0') {
        return false;
    }
    len = (size_t)(colon - text);
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    } else if (memchr(text, ':', len) != NULL) {
        return false; /* IPv6 without brackets */
    }
    if (len == 0 || len >= HOST_LEN) {
        return false;
    }
    memcpy(host, text, len);
    host[len] = '\0';
    *port = colon + 1;
    return true;
}

static struct addrinfo *tcp_resolve(const char *text, int flags,
                                    struct complaint *complaint)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | flags};
    struct addrinfo *found = NULL;
    char host[HOST_LEN];
    const char *port;
    int status;

    if (!tcp_split(text, host, &port)) {
        (void)complain(complaint,
                       "%s: must be ADDRESS:PORT; an IPv6 address "
                       "stands in brackets",
                       text);
        return NULL;
    }
    status = getaddrinfo(host, port, &hints, &found);
    if (status != 0) {
        (void)complain(complaint, "%s: %s", text, gai_strerror(status));
        return NULL;
    }
    return found;
}

/* Numeric addresses only: to look a name up can block. */
bool check_dial_tcp(const char *address, struct complaint *complaint)
{
    struct addrinfo *found = tcp_resolve(address, AI_NUMERICHOST, complaint);

    if (found == NULL) {
        return false;
    }
    freeaddrinfo(found);
    return true;
}

int dial_tcp(const char *text, bool *in_progress)
{
    struct complaint complaint;
    struct addrinfo *found = tcp_resolve(text, AI_NUMERICHOST, &complaint);
    int fd;

    if (found == NULL) {
        return -1;
    }
    fd = socket(found->ai_family, SOCKET_FLAGS, 0);
    *in_progress = false;
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
        *in_progress = errno == EINPROGRESS;
        if (!*in_progress) {
            (void)close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

int listen_tcp(const char *text, struct complaint *complaint)
{
    struct addrinfo *found =
        tcp_resolve(text, AI_NUMERICHOST | AI_PASSIVE, complaint);
    int yes = 1, fd;

    if (found == NULL) {
        return -1;
    }
    fd = socket(found->ai_family, SOCKET_FLAGS, 0);
    if (fd < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
        listen(fd, 1) != 0) {
        (void)complain(complaint, "%s: cannot listen: %s", text,
                       strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

void tcp_address_text(int fd, char *text, size_t room)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof(address);
    char host[HOST_LEN], port[16];

    if (getsockname(fd, (struct sockaddr *)&address, &len) == 0 &&
        getnameinfo((const struct sockaddr *)&address, len, host, sizeof(host),
                    port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
        (void)snprintf(text, room,
                       address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s",
                       host, port);
    }
}

/* A peer that is alive and does not read acknowledges what was sent. */
bool tcp_peer_is_silent(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
           info.tcpi_unacked != 0 && info.tcpi_last_ack_recv >= TCP_SILENT_MS;
}

/*
 * All of these are improvements: without them the port works as well.  There is
 * no TCP_USER_TIMEOUT, because it would end the connection of a peer that is
 * alive and takes nothing for a while, and its frames would be lost.
 */
void tune_connection(int fd, bool is_tcp)
{
    int bytes = BUFFER_BYTES, yes = 1, probe_s = TCP_PROBE_S,
        probes = TCP_PROBES;

    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    if (is_tcp) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &probe_s,
                         sizeof(probe_s));
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe_s,
                         sizeof(probe_s));
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    }
}
