/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/socket_link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/bytes.h"

enum {
    PREFIX = 4,
    BURST = 64,
    LINKS_MAX = SOC_PORTS,
    MS = 1000000, /* ns */
};

static int make_socket(const char *path, struct sockaddr_un *addr)
{
    *addr = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(addr->sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(addr->sun_path, path, strlen(path));
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

int socket_link_connect(const char *path)
{
    struct sockaddr_un addr;
    int fd = make_socket(path, &addr);

    if (fd >= 0 &&
        connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int socket_link_accept(const char *path)
{
    struct sockaddr_un addr;
    int listener = make_socket(path, &addr);
    int fd = -1;

    if (listener < 0) {
        return -1;
    }
    unlink(path);
    if (bind(listener, (const struct sockaddr *)&addr, sizeof(addr)) == 0 &&
        listen(listener, 1) == 0) {
        fd = accept(listener, NULL, NULL);
    }
    close(listener);
    return fd;
}

/*
 * The port's frame sink: copy each frame, after its length, to the output
 * buffer, which flush_out() sends.
 * @return the number of frames that fitted
 */
static unsigned int send_burst(void *ctx, const struct frame_tx *burst,
                               unsigned int count)
{
    struct socket_link *link = ctx;

    for (unsigned int i = 0; i < count; i++) {
        uint32_t len = frame_tx_len(&burst[i]);
        uint8_t *at = link->out + link->out_len;

        if (link->out_len + PREFIX + len > SOCKET_LINK_BUFFER) {
            link->was_full = true;
            return i;
        }
        put_be32(at, len);
        (void)frame_tx_copy(at + PREFIX, &burst[i]);
        link->out_len += PREFIX + len;
    }
    return count;
}

static bool would_block(const struct socket_link *link, ssize_t n)
{
    (void)link;
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static bool flush_out(struct socket_link *link)
{
    ssize_t n;

    if (link->out_at == link->out_len) {
        return false;
    }
    n = send(link->fd, link->out + link->out_at, link->out_len - link->out_at,
             MSG_NOSIGNAL);
    if (n <= 0) {
        link->is_broken |= !would_block(link, n);
        return false;
    }
    link->out_at += (size_t)n;
    if (link->out_at == link->out_len) {
        link->out_at = 0;
        link->out_len = 0;
        if (link->was_full) {
            link->was_full = false;
            if (link->plug.room != NULL) {
                link->plug.room(link->plug.ctx);
            }
        }
    }
    return true;
}

static void pass_on(const struct socket_link *link,
                    const struct frame_rx *frames, unsigned int count)
{
    if (count != 0 && link->plug.receive != NULL) {
        link->plug.receive(link->plug.ctx, frames, count);
    }
}

/*
 * Pass whole frames to the port.
 * @return the number of bytes taken
 */
static size_t take_frames(struct socket_link *link)
{
    struct frame_rx burst[BURST];
    unsigned int n = 0;
    size_t at = 0;

    while (link->in_len - at >= PREFIX) {
        uint32_t len = get_be32(link->in + at);

        if (len > FRAME_LEN_MAX) {
            /* Framing is lost and cannot be found again. */
            link->is_broken = true;
            break;
        }
        if (link->in_len - at - PREFIX < len) {
            break;
        }
        burst[n++] = (struct frame_rx){
            .data = link->in + at + PREFIX,
            .len_bytes = len,
        };
        at += PREFIX + len;
        if (n == BURST) {
            pass_on(link, burst, n);
            n = 0;
        }
    }
    pass_on(link, burst, n);
    return at;
}

static bool read_in(struct socket_link *link)
{
    ssize_t n = recv(link->fd, link->in + link->in_len,
                     SOCKET_LINK_BUFFER - link->in_len, 0);
    size_t taken;

    if (n <= 0) {
        link->is_broken |= !would_block(link, n);
        return false;
    }
    link->in_len += (size_t)n;
    taken = take_frames(link);
    link->in_len -= taken;
    memmove(link->in, link->in + taken, link->in_len);
    return true;
}

/* ---- As a link. */

static void link_plug(void *ctx, const struct link_port *port)
{
    struct socket_link *link = ctx;

    link->plug = port != NULL ? *port : (struct link_port){0};
}

static uint64_t link_silent_until_ns(void *ctx)
{
    (void)ctx;
    return LINK_NO_TIME;
}

static bool link_grant(void *ctx, uint64_t now_ns)
{
    bool is_busy = read_in(ctx);

    (void)now_ns;
    return flush_out(ctx) || is_busy;
}

struct link socket_link_open(struct socket_link *link, int fd)
{
    static const struct link_ops ops = {
        .plug = link_plug,
        .send = send_burst,
        .silent_until_ns = link_silent_until_ns,
        .grant = link_grant,
    };

    *link = (struct socket_link){
        .fd = fd,
        .out = malloc(SOCKET_LINK_BUFFER),
        .in = malloc(SOCKET_LINK_BUFFER),
    };
    ASSERT(link->out != NULL && link->in != NULL);
    ASSERT(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0);
    return (struct link){link, &ops};
}

void socket_link_close(struct socket_link *link)
{
    close(link->fd);
    free(link->out);
    free(link->in);
}

void socket_link_init(struct socket_link *link, struct machine *machine,
                      unsigned int port, int fd)
{
    const struct link to = socket_link_open(link, fd);

    link->machine = machine;
    link->port = port;
    machine_attach(machine, port, &to);
}

void socket_link_end(struct socket_link *link)
{
    machine_attach(link->machine, link->port, NULL);
    socket_link_close(link);
}

/* ---- The loop of a program in real time. */

static uint64_t real_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void wait_for_work(const struct native_world *world,
                          const struct socket_link *links, unsigned int count)
{
    struct pollfd fds[LINKS_MAX];
    uint64_t deadline_ns = native_world_deadline(world);
    uint64_t now_ns = real_ns();
    int timeout_ms = 1000;

    for (unsigned int i = 0; i < count; i++) {
        fds[i] = (struct pollfd){
            .fd = links[i].fd,
            .events =
                (short)(POLLIN |
                        (links[i].out_at != links[i].out_len ? POLLOUT : 0)),
        };
    }
    if (deadline_ns <= now_ns) {
        timeout_ms = 0;
    } else if (deadline_ns - now_ns < 1000 * (uint64_t)MS) {
        timeout_ms = (int)((deadline_ns - now_ns + MS - 1) / MS);
    }
    poll(fds, count, timeout_ms);
}

void socket_link_run_once(struct native_world *world, struct socket_link *links,
                          unsigned int count)
{
    uint64_t now_ns = real_ns();
    bool is_busy;

    ASSERT(count <= LINKS_MAX);
    world->now_ns = MAX(world->now_ns, now_ns);
    is_busy = native_world_step(world);
    /* What the step has sent leaves before the sleep. */
    for (unsigned int i = 0; i < count; i++) {
        is_busy |= flush_out(&links[i]);
    }
    if (!is_busy) {
        wait_for_work(world, links, count);
    }
}
