/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes through connections of TCP, for tests/e2e/test_tcp_netem.py.
 *
 * tcp_load serve WINDOW
 *     echoes at port 7 and discards at port 9, with a receive window of at most
 *     WINDOW bytes, until it is ended
 * tcp_load ADDRESS PORT BYTES CONNECTIONS
 *     sends BYTES through that many connections at once, a part through each,
 *     and compares what comes back: from port 7 every byte, from port 9 nothing
 *
 * Prints one line: the seconds until the peers have closed, what all
 * connections together have sent again, and what the kernel knew of the first
 * one shortly before its end (struct tcp_info).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    ECHO = 7,
    DISCARD = 9,
    CONNECTIONS_MAX = 64,
    PATTERN_LEN =
        65521, /* a prime: more than a window, and aligned to nothing */
    PIECE = 32768,
    SILENT_MS = 120000,
};

struct connection {
    int fd;
    uint64_t sent, back; /* bytes */
    bool is_done;
};

static uint8_t pattern[PATTERN_LEN + PIECE];
static struct connection connections[CONNECTIONS_MAX];
static struct tcp_info info;
static uint32_t retransmits, dsacks; /* of all connections */

static void die_errno(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void pattern_make(void)
{
    uint64_t x = 88172645463325252u;

    for (size_t i = 0; i < PATTERN_LEN; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        pattern[i] = (uint8_t)x;
    }
    memcpy(pattern + PATTERN_LEN, pattern, PIECE);
}

/* ---- The server. */

static int listen_at(uint16_t port, int window)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6,
                              .sin6_port = htons(port),
                              .sin6_addr = IN6ADDR_ANY_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    int room = window * 2; /* the kernel doubles it, and a half is overhead */
    int on = 1;

    if (fd < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &window,
                   sizeof(window)) != 0 ||
        bind(fd, (const struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(fd, CONNECTIONS_MAX) != 0) {
        die_errno("listen");
    }
    return fd;
}

static void serve_connection(int fd, bool is_echo, int window)
{
    static uint8_t bytes[PIECE];
    ssize_t len;

    while ((len = read(fd, bytes, sizeof(bytes))) > 0) {
        /* The kernel forgets it when it learns how large segments are. */
        if (setsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &window,
                       sizeof(window)) != 0) {
            die_errno("TCP_WINDOW_CLAMP");
        }
        for (ssize_t at = 0; is_echo && at < len;) {
            ssize_t put = write(fd, bytes + at, (size_t)(len - at));

            if (put <= 0) {
                exit(1);
            }
            at += put;
        }
    }
    exit(len == 0 ? 0 : 1);
}

static void serve_ports(int window)
{
    struct pollfd wait[] = {{listen_at(ECHO, window), POLLIN, 0},
                            {listen_at(DISCARD, window), POLLIN, 0}};

    signal(SIGCHLD, SIG_IGN);
    while (poll(wait, 2, -1) > 0) {
        for (int i = 0; i < 2; i++) {
            int fd = (wait[i].revents & POLLIN) != 0
                         ? accept(wait[i].fd, NULL, NULL)
                         : -1;

            if (fd >= 0 && fork() == 0) {
                serve_connection(fd, i == 0, window);
            }
            if (fd >= 0) {
                close(fd);
            }
        }
    }
    die_errno("poll");
}

/* ---- The client. */

static int connect_to(const char *address, const char *port)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *to;
    int fd;

    if (getaddrinfo(address, port, &hints, &to) != 0) {
        fprintf(stderr, "%s: not an address\n", address);
        exit(1);
    }
    fd = socket(to->ai_family, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen) != 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
        die_errno("connect");
    }
    freeaddrinfo(to);
    return fd;
}

static void info_take(const struct connection *conn)
{
    struct tcp_info found;
    socklen_t len = sizeof(found);

    if (getsockopt(conn->fd, IPPROTO_TCP, TCP_INFO, &found, &len) != 0) {
        die_errno("TCP_INFO");
    }
    retransmits += found.tcpi_total_retrans;
    dsacks += found.tcpi_dsack_dups;
    if (conn == connections) {
        info = found;
    }
}

static void connection_send(struct connection *conn, uint64_t bytes)
{
    uint64_t left = bytes - conn->sent;
    ssize_t put = write(conn->fd, pattern + conn->sent % PATTERN_LEN,
                        left < PIECE ? (size_t)left : PIECE);

    if (put < 0 && errno != EAGAIN) {
        die_errno("write");
    }
    conn->sent += put > 0 ? (uint64_t)put : 0;
    if (conn->sent == bytes) {
        info_take(conn);
        shutdown(conn->fd, SHUT_WR);
    }
}

static void connection_read(struct connection *conn, uint64_t wanted)
{
    static uint8_t bytes[PIECE];
    ssize_t len = read(conn->fd, bytes, sizeof(bytes));

    if (len < 0 && errno != EAGAIN) {
        die_errno("read");
    }
    if (len == 0) {
        conn->is_done = true;
        if (conn->back != wanted) {
            fprintf(stderr, "%llu of %llu bytes came back\n",
                    (unsigned long long)conn->back, (unsigned long long)wanted);
            exit(1);
        }
    } else if (len > 0) {
        if (conn->back + (uint64_t)len > wanted ||
            memcmp(bytes, pattern + conn->back % PATTERN_LEN, (size_t)len) !=
                0) {
            fprintf(stderr, "other bytes came back, from %llu on\n",
                    (unsigned long long)conn->back);
            exit(1);
        }
        conn->back += (uint64_t)len;
    }
}

/* Wait for something to do, and do it.  @return whether any is left */
static bool client_turn(unsigned int count, uint64_t bytes, bool is_echo)
{
    struct pollfd wait[CONNECTIONS_MAX];
    unsigned int left = 0;

    for (unsigned int i = 0; i < count; i++) {
        wait[i] = (struct pollfd){
            connections[i].is_done ? -1 : connections[i].fd,
            (short)(POLLIN | (connections[i].sent < bytes ? POLLOUT : 0)), 0};
        left += !connections[i].is_done;
    }
    if (left != 0 && poll(wait, count, SILENT_MS) <= 0) {
        fprintf(stderr, "nothing happened for two minutes\n");
        exit(1);
    }
    for (unsigned int i = 0; i < count && left != 0; i++) {
        if ((wait[i].revents & POLLOUT) != 0 && connections[i].sent < bytes) {
            connection_send(&connections[i], bytes);
        }
        if ((wait[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
            connection_read(&connections[i], is_echo ? bytes : 0);
        }
    }
    return left != 0;
}

static void client_run(char **words)
{
    bool is_echo = atoi(words[1]) == ECHO;
    unsigned int count = (unsigned int)atoi(words[3]);
    uint64_t bytes;
    double begin;

    if (count == 0 || count > CONNECTIONS_MAX) {
        fprintf(stderr, "1 to %d connections\n", CONNECTIONS_MAX);
        exit(2);
    }
    bytes = strtoull(words[2], NULL, 10) / count;
    for (unsigned int i = 0; i < count; i++) {
        connections[i].fd = connect_to(words[0], words[1]);
    }
    begin = now_s();
    while (client_turn(count, bytes, is_echo)) {
        continue;
    }
    printf("{\"seconds\": %.6f, \"bytes\": %llu, \"options\": %u, "
           "\"rtt-us\": %u, \"rtt-deviation-us\": %u, \"least-rtt-us\": %u, "
           "\"cwnd\": %u, \"mss\": %u, \"retransmits\": %u, "
           "\"dsacks\": %u, \"reordering\": %u, \"window\": %u}\n",
           now_s() - begin, (unsigned long long)bytes * count,
           info.tcpi_options, info.tcpi_rtt, info.tcpi_rttvar,
           info.tcpi_min_rtt, info.tcpi_snd_cwnd, info.tcpi_snd_mss,
           retransmits, dsacks, info.tcpi_reord_seen, info.tcpi_snd_wnd);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    pattern_make();
    if (argc == 3 && strcmp(argv[1], "serve") == 0) {
        serve_ports(atoi(argv[2]));
    } else if (argc == 5) {
        client_run(argv + 1);
    } else {
        fprintf(stderr, "usage: tcp_load serve WINDOW | "
                        "tcp_load ADDRESS PORT BYTES CONNECTIONS\n");
        return 2;
    }
    return 0;
}
