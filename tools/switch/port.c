/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports: from sockets to the switch and back, connections that come and go.
 * A stream is read and written in pieces as large as the socket has them.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "program.h"

static const uint64_t retry_first_ns = 100000000;
static const uint64_t retry_longest_ns = 2000000000;
static const uint64_t rival_wait_ns = 1000000000;

enum { DEVICE_EVENTS = EPOLLIN | EPOLLOUT | EPOLLRDHUP | (int)EPOLLET };

static bool port_is_frames(const struct port *port)
{
    return port->options.kind == PORT_TAP || port->options.kind == PORT_IFACE;
}

static bool port_is_tcp(const struct port *port)
{
    return port->options.kind == PORT_TCP ||
           port->options.kind == PORT_TCP_LISTEN;
}

/* Whether the port connects by itself, and tries again after every failure. */
static bool port_dials(const struct port *port)
{
    return port->options.kind == PORT_DIAL || port->options.kind == PORT_TCP ||
           port_is_frames(port);
}

/* ---- Connections come and go */

static void port_dial_later(struct program *program, struct port *port)
{
    port->retry_ns = program->now_ns + port->retry_wait_ns;
    port->retry_wait_ns = MIN(2 * port->retry_wait_ns, retry_longest_ns);
}

static void port_is_up(struct program *program, uint8_t number)
{
    struct port *port = &program->ports[number];

    port->connecting = false;
    port->readable = port->writable = true;
    port->hung_up = false;
    port->retry_wait_ns = retry_first_ns;
    port->connections++;
    switch_port_connect(program->core, number);
    log_port(program, number, "connected");
    control_announce(program, number);
}

/*
 * A port has one connection at a time: the next one waits in the listener's
 * queue.  Over TCP, a waiting connection may be a sign that the peer has lost
 * the first one.
 */
static void port_listen_more(struct program *program, struct port *port,
                             bool more)
{
    uint32_t events = EPOLLIN;

    if (!more) {
        events = port_is_tcp(port) ? EPOLLIN | (uint32_t)EPOLLET : 0;
    }
    source_change(program, &port->listener, events);
}

bool port_attach(struct program *program, uint8_t number, int fd)
{
    struct port *port = &program->ports[number];

    if (!source_open(program, &port->device, fd, (uint32_t)DEVICE_EVENTS)) {
        (void)close(fd);
        return false;
    }
    if (!port_is_frames(port)) {
        tune_connection(fd, port_is_tcp(port));
    }
    port_listen_more(program, port, false);
    port_is_up(program, number);
    return true;
}

void port_detach(struct program *program, uint8_t number, const char *why)
{
    struct port *port = &program->ports[number];

    source_close(&port->device);
    frames_close(port);
    port->readable = port->writable = port->hung_up = false;
    switch_port_disconnect(program->core, number);
    log_port(program, number, "disconnected: %s", why);
    control_announce(program, number);
    port_listen_more(program, port, true);
    if (port_dials(port)) {
        port_dial_later(program, port);
    }
}

static void port_accept(struct program *program, uint8_t number)
{
    int fd = accept4(program->ports[number].listener.fd, NULL, NULL,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0 && !port_attach(program, number, fd)) {
        log_port(program, number, "cannot take the connection: %s",
                 strerror(errno));
    }
}

/*
 * Somebody connects to a port that has a connection.  If its machine lost its
 * power, TCP would find out after a quarter of an hour only.
 */
static void port_look_at_rival(struct program *program, uint8_t number)
{
    struct port *port = &program->ports[number];
    struct pollfd listener = {.fd = port->listener.fd, .events = POLLIN};

    port->retry_ns = UINT64_MAX;
    if (port->device.fd < 0 || poll(&listener, 1, 0) != 1) {
        return;
    }
    if (tcp_peer_is_silent(port->device.fd)) {
        port_detach(program, number,
                    "the peer does not answer, and there is a new connection");
        port_accept(program, number);
    } else {
        port->retry_ns = program->now_ns + rival_wait_ns;
    }
}

static void port_listener_ready(struct program *program, struct source *source,
                                uint32_t events)
{
    struct port *port = &program->ports[source->number];

    (void)events;
    if (source->fd < 0) {
        return;
    }
    if (port->device.fd < 0) {
        port_accept(program, source->number);
    } else if (port->options.kind == PORT_TCP_LISTEN) {
        port_look_at_rival(program, source->number);
    }
}

static bool port_dial(struct program *program, uint8_t number)
{
    struct port *port = &program->ports[number];
    struct complaint complaint;
    bool in_progress = false;
    int fd;

    port->retry_ns = UINT64_MAX;
    if (port_is_frames(port)) {
        fd = frames_open(program, number, &complaint);
    } else if (port->options.kind == PORT_TCP) {
        fd = dial_tcp(port->options.address, &in_progress);
    } else {
        fd = dial_unix(port->options.address);
    }
    if (fd < 0) {
        return false;
    }
    if (!in_progress) {
        return port_attach(program, number, fd);
    }
    if (!source_open(program, &port->device, fd, (uint32_t)DEVICE_EVENTS)) {
        (void)close(fd);
        return false;
    }
    port->connecting = true;
    return true;
}

void ports_dial(struct program *program)
{
    for (uint8_t i = 0; i < program->port_count; i++) {
        struct port *port = &program->ports[i];

        if (port->retry_ns > program->now_ns) {
            continue;
        }
        if (port->options.kind == PORT_TCP_LISTEN) {
            port_look_at_rival(program, i);
        } else if (!port_dial(program, i)) {
            port_dial_later(program, port);
        }
    }
}

uint64_t ports_next_dial_ns(const struct program *program)
{
    uint64_t next_ns = UINT64_MAX;

    for (uint8_t i = 0; i < program->port_count; i++) {
        next_ns = MIN(next_ns, program->ports[i].retry_ns);
    }
    return next_ns;
}

/* connect() of a TCP socket has succeeded or failed. */
static void port_connect_ended(struct program *program, uint8_t number)
{
    struct port *port = &program->ports[number];
    socklen_t len = sizeof(int);
    int error = 0;

    if (getsockopt(port->device.fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 ||
        error != 0) {
        port->connecting = false;
        source_close(&port->device);
        port_dial_later(program, port);
        return;
    }
    tune_connection(port->device.fd, true);
    port_is_up(program, number);
}

static void port_device_ready(struct program *program, struct source *source,
                              uint32_t events)
{
    struct port *port = &program->ports[source->number];

    if (source->fd < 0) {
        return; /* closed by an earlier event of the same round */
    }
    if (port->connecting) {
        if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
            port_connect_ended(program, source->number);
        }
        return;
    }
    port->readable |=
        (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    port->writable |= (events & EPOLLOUT) != 0;
    port->hung_up |= (events & (EPOLLRDHUP | EPOLLHUP)) != 0;
}

/* ---- Streams */

/*
 * A peer that has hung up while its frames wait for a busy output would keep
 * the port occupied, and the next connection waiting: what it sent and was not
 * read yet is dropped.
 */
static void stream_read(struct program *program, uint8_t number)
{
    struct port *port = &program->ports[number];
    uint8_t *at;
    uint32_t room = switch_rx_room(program->core, number, &at);
    ssize_t n;

    if (room == 0) {
        if (port->hung_up) {
            port_detach(program, number, "the peer closed the connection");
        }
        return;
    }
    n = recv(port->device.fd, at, room, MSG_DONTWAIT);
    if (n > 0) {
        port->readable = (uint32_t)n == room || port->hung_up;
        if (!switch_rx_commit(program->core, number, (uint32_t)n,
                              program->now_ns)) {
            port_detach(program, number,
                        "the peer sent the length of a frame "
                        "that is longer than 69632 bytes");
        }
    } else if (n == 0) {
        port_detach(program, number, "the peer closed the connection");
    } else if (errno == EINTR) {
        return;
    } else if (errno == EAGAIN && !port->hung_up) {
        port->readable = false;
    } else if (errno == EAGAIN) {
        /* The peer has closed its receiving half only, so that nothing can be
         * sent to it. */
        port_detach(program, number, "the peer takes nothing any more");
    } else {
        port_detach(program, number, strerror(errno));
    }
}

static void stream_write(struct program *program, uint8_t number)
{
    struct port *port = &program->ports[number];
    struct tx_piece piece[2];
    struct iovec iov[2];
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = 2};
    size_t len = switch_tx_bytes(program->core, number, piece);
    ssize_t n;

    for (int i = 0; i < 2; i++) {
        iov[i] = (struct iovec){(void *)(uintptr_t)piece[i].data, piece[i].len};
    }
    n = sendmsg(port->device.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
        port->writable = (size_t)n == len;
        switch_tx_done(program->core, number, (size_t)n);
    } else if (errno == EAGAIN) {
        port->writable = false;
    } else if (errno != EINTR) {
        /* Frames that the peer sent before this may still have to be read. */
        port->writable = false;
        port->readable = port->hung_up = true;
    }
}

/* ---- All ports */

void ports_read(struct program *program)
{
    for (uint8_t i = 0; i < program->port_count; i++) {
        struct port *port = &program->ports[i];

        if (!port->readable) {
            continue;
        }
        if (port_is_frames(port)) {
            frames_read(program, i);
        } else {
            stream_read(program, i);
        }
    }
}

void ports_write(struct program *program)
{
    for (uint64_t left = switch_tx_ports(program->core); left != 0;
         left &= left - 1) {
        uint8_t i = (uint8_t)__builtin_ctzll(left);
        struct port *port = &program->ports[i];

        if (!port->writable) {
            continue;
        }
        if (port_is_frames(port)) {
            frames_write(program, i);
        } else {
            stream_write(program, i);
        }
    }
}

static bool port_can_read(struct program *program, uint8_t number)
{
    const struct port *port = &program->ports[number];
    uint8_t *at;

    if (port_is_frames(port)) {
        return frames_have_room(program, number);
    }
    return port->hung_up || switch_rx_room(program->core, number, &at) != 0;
}

bool ports_have_work(struct program *program)
{
    uint64_t sendable = switch_tx_ports(program->core);

    for (uint8_t i = 0; i < program->port_count; i++) {
        const struct port *port = &program->ports[i];

        if ((port->writable && (sendable >> i & 1)) ||
            (port->readable && port_can_read(program, i))) {
            return true;
        }
    }
    return false;
}

/* ---- Opening */

static int port_listen(struct port *port, struct complaint *complaint)
{
    if (port->options.kind == PORT_LISTEN) {
        return listen_unix(port->options.address, 1, complaint);
    }
    return listen_tcp(port->options.address, complaint);
}

static bool port_open_listener(struct program *program, uint8_t number,
                               struct complaint *complaint)
{
    struct port *port = &program->ports[number];
    int fd = port_listen(port, complaint);

    if (fd < 0) {
        return false;
    }
    if (!source_open(program, &port->listener, fd, EPOLLIN)) {
        (void)close(fd);
        return complain(complaint, "epoll: %s", strerror(errno));
    }
    if (port->options.kind == PORT_TCP_LISTEN) {
        tcp_address_text(fd, port->options.address,
                         sizeof(port->options.address));
    }
    return true;
}

static bool port_open_inherited(struct program *program, uint8_t number,
                                struct complaint *complaint)
{
    const char *text = program->ports[number].options.address;
    socklen_t len = sizeof(int);
    uint64_t fd;
    int type;

    if (!words_number(text, INT32_MAX, &fd) || fd < 3) {
        return complain(complaint, "fd=%s: must be 3 or more", text);
    }
    if (getsockopt((int)fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 ||
        type != SOCK_STREAM) {
        return complain(complaint, "fd=%s: is no stream socket", text);
    }
    return port_attach(program, number, (int)fd) ||
           complain(complaint, "fd=%s: %s", text, strerror(errno));
}

bool port_open(struct program *program, uint8_t number,
               struct complaint *complaint)
{
    struct port *port = &program->ports[number];
    const char *address = port->options.address;
    int fd;

    port->listener = (struct source){port_listener_ready, -1, number};
    port->device = (struct source){port_device_ready, -1, number};
    port->retry_ns = UINT64_MAX;
    port->retry_wait_ns = retry_first_ns;
    switch (port->options.kind) {
    case PORT_LISTEN:
    case PORT_TCP_LISTEN:
        return port_open_listener(program, number, complaint);
    case PORT_DIAL:
        port->retry_ns = 0;
        return check_dial_unix(address, complaint);
    case PORT_TCP:
        port->retry_ns = 0;
        return check_dial_tcp(address, complaint);
    case PORT_FD:
        return port_open_inherited(program, number, complaint);
    default:
        /* A failure is reported at the start, and not tried again. */
        fd = frames_open(program, number, complaint);
        return fd >= 0 && (port_attach(program, number, fd) ||
                           complain(complaint, "epoll: %s", strerror(errno)));
    }
}

void port_close(struct program *program, uint8_t number)
{
    struct port *port = &program->ports[number];

    if (port->options.kind == PORT_LISTEN && port->listener.fd >= 0) {
        (void)unlink(port->options.address);
    }
    source_close(&port->listener);
    source_close(&port->device);
    frames_close(port);
    capture_stop(program, number);
}
