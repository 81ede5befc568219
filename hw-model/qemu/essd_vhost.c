/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The netdev "vhost-user" of the drive's machine: a cable to the network card
 * of a virtual machine, in memory that both share.  The drive is the back-end;
 * the cores are in hw-model/vhost.
 * Decision: docs/decisions/0069-vhost-user.md
 *
 * QEMU interface:
 *  + -netdev vhost-user,id=ID,chardev=ID; the chardev is a UNIX socket, at
 *    which a front-end connects, or listens
 *  + set_link and filter-dump, as for every netdev
 *
 * Messages are answered in the main loop, also while the machine is stopped.
 * Rings are read and written by whoever runs the data path (essd_data.h).  If
 * the driver has no buffers for a frame, the port's transmitter waits; while
 * the driver does not receive, frames are lost.  A front-end that breaks the
 * rules loses its connection, and nothing else.
 */
#include "qemu/osdep.h"

#include <poll.h>
#include <sys/eventfd.h>

#include "chardev/char-fe.h"
#include "net/net.h"
#include "qapi/error.h"
#include "qapi/qapi-types-net.h"
#include "qemu/error-report.h"
#include "qemu/iov.h"
#include "qemu/main-loop.h"
#include "net/clients.h"
#include "trace.h"

#include "hw-model/vhost/vhost_backend.h"
#include "hw-model/vhost/vhost_map.h"

enum {
    VHOST_BURST = 32,             /* frames that are passed on at once */
    VHOST_BURST_BYTES = 64 * 1024 /* about so many bytes */
};

typedef struct EssdVhostState {
    NetClientState nc;
    CharBackend chr;
    QEMUBH *bh;               /* does what nobody is notified of */
    NetPollChanged *poller;   /* not NULL: hart 0 polls the driver's ring */
    bool is_held;             /* a frame for the port waits in a queue */
    bool waits_for_room;      /* a frame for the driver waits in a queue */
    bool is_broken;           /* the connection has to end */
    unsigned int losses;      /* of mappings: what vhost_map has said */
    int watched[VHOST_RINGS]; /* descriptors with a handler; -1: none */

    struct vhost_backend vu;
    uint8_t head[VHOST_MSG_HEADER];
    struct vhost_backend_msg msg;
    uint32_t got; /* bytes of the message */

    uint8_t bytes[VHOST_BURST_BYTES + FRAME_LEN_MAX];
} EssdVhostState;

static const char lost_memory[] = "a page of the guest's memory is not there";

/* End the connection, but not from within a call of the data path. */
static void essd_vhost_break(EssdVhostState *s, const char *why)
{
    if (!s->is_broken) {
        s->is_broken = true;
        if (vhost_map_has_lost(&s->vu.memory, &s->losses)) {
            why = lost_memory; /* what was wrong was only zeroed memory */
        }
        warn_report("%s: the vhost-user connection ends: %s", s->nc.name, why);
        qemu_bh_schedule(s->bh);
    }
}

/* A ring that is in use, or NULL.  Whoever uses it asks for it first. */
static struct vhost_ring *essd_vhost_ring(EssdVhostState *s, unsigned int n)
{
    struct vhost_ring *ring = &s->vu.rings[n];

    vhost_map_begin();
    if (vhost_map_has_lost(&s->vu.memory, &s->losses)) {
        essd_vhost_break(s, lost_memory);
    }
    return ring->desc && !s->is_broken ? ring : NULL;
}

static void essd_vhost_publish(EssdVhostState *s, unsigned int n)
{
    static const uint64_t one = 1;
    int fd = s->vu.said[n].call_fd;

    /* A full pipe or counter notifies the driver, too. */
    if (vhost_ring_publish(&s->vu.rings[n]) && fd >= 0 &&
        write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN) {
        essd_vhost_break(s, "the driver cannot be notified");
    }
    (void)essd_vhost_ring(s, n); /* Was all that was used still there? */
}

static void essd_vhost_clear_kick(EssdVhostState *s, unsigned int n)
{
    uint64_t count;

    ssize_t len = read(s->vu.said[n].kick_fd, &count, sizeof(count));

    /* What cannot be read stays ready, and would be polled for ever. */
    if (len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR)) {
        essd_vhost_break(s, len == 0 ? "the driver's notifications have ended"
                                     : "the driver's notifications cannot be "
                                       "read");
    }
}

/* Frames from the driver. */

static void essd_vhost_sent(NetClientState *nc, ssize_t len)
{
    EssdVhostState *s = DO_UPCAST(EssdVhostState, nc, nc);

    s->is_held = false;
    qemu_bh_schedule(s->bh);
}

static void essd_vhost_deliver(EssdVhostState *s, const NetFrame *frames,
                               int count)
{
    for (int n = 0; n < count; n++) {
        n += qemu_sendv_burst_async(&s->nc, frames + n, count - n,
                                    essd_vhost_sent);
        s->is_held = s->is_held || n < count;
    }
}

/* Pass on some of the frames that are in the ring; return how many. */
static unsigned int essd_vhost_read_burst(EssdVhostState *s,
                                          struct vhost_ring *ring,
                                          unsigned int most)
{
    struct iovec iov[VHOST_BURST];
    NetFrame frames[VHOST_BURST];
    uint32_t at = 0, len;
    unsigned int n;
    int count = 0;

    for (n = 0; n < MIN(most, VHOST_BURST) && at < VHOST_BURST_BYTES; n++) {
        if (vhost_ring_take(ring, s->bytes + at, &len) != VHOST_OK) {
            essd_vhost_break(s, "bad descriptors of the driver");
            return 0;
        }
        if (len > 0) {
            iov[count] = (struct iovec){s->bytes + at, len};
            frames[count] = (NetFrame){&iov[count], 1};
            count++;
            at += len;
        }
    }
    essd_vhost_publish(s, VHOST_FROM_DRIVER);
    essd_vhost_deliver(s, frames, count);
    return n;
}

/*
 * Pass on what is in the ring.  The driver notifies us for what it adds later:
 * the number is fixed before, so that this ends.
 */
static void essd_vhost_read(EssdVhostState *s, bool is_notified)
{
    struct vhost_ring *ring = essd_vhost_ring(s, VHOST_FROM_DRIVER);
    unsigned int count;

    if (!ring || s->is_held) {
        return;
    }
    if (is_notified) {
        essd_vhost_clear_kick(s, VHOST_FROM_DRIVER);
    }
    if (vhost_ring_watch(ring, &count) != VHOST_OK) {
        essd_vhost_break(s, "bad ring of the driver");
        return;
    }
    while (count > 0 && !s->is_held) {
        unsigned int n = essd_vhost_read_burst(s, ring, count);

        /* Frames may have ended the connection, or have pulled the cable. */
        if (n == 0 || essd_vhost_ring(s, VHOST_FROM_DRIVER) != ring) {
            return;
        }
        count -= n;
    }
    (void)essd_vhost_ring(s, VHOST_FROM_DRIVER); /* Was the ring still there? */
}

/* Frames for the driver. */

/* Wait until the driver adds buffers; return whether it has just done so. */
static bool essd_vhost_wait_for_room(EssdVhostState *s, struct vhost_ring *ring,
                                     unsigned int before)
{
    unsigned int count;

    if (vhost_ring_watch(ring, &count) != VHOST_OK) {
        essd_vhost_break(s, "bad ring of the driver");
        return false;
    }
    return count > before;
}

static void essd_vhost_watch(EssdVhostState *s);

static bool essd_vhost_give(EssdVhostState *s, struct vhost_ring *ring,
                            const struct iovec *iov, int iovcnt)
{
    struct frame_piece pieces[FRAME_PIECES_MAX + 2];
    enum vhost_verdict verdict;
    unsigned int before;

    assert(iovcnt <= ARRAY_SIZE(pieces));
    for (int i = 0; i < iovcnt; i++) {
        pieces[i] = (struct frame_piece){iov[i].iov_base, iov[i].iov_len};
    }
    do {
        verdict = vhost_ring_count(ring, &before);
        if (verdict == VHOST_OK) {
            verdict = vhost_ring_give(ring, pieces, iovcnt);
        }
    } while (verdict == VHOST_EMPTY &&
             essd_vhost_wait_for_room(s, ring, before));
    if (verdict == VHOST_BROKEN) {
        essd_vhost_break(s, "bad descriptors of the driver");
    }
    return verdict == VHOST_OK;
}

static int essd_vhost_receive_burst(NetClientState *nc, const NetFrame *frames,
                                    int count)
{
    EssdVhostState *s = DO_UPCAST(EssdVhostState, nc, nc);
    struct vhost_ring *ring = essd_vhost_ring(s, VHOST_TO_DRIVER);
    int n = 0;

    /*
     * Without a driver that receives, frames are lost, as in a card that nobody
     * has started: the next driver must not get frames for the one before.
     */
    if (!ring) {
        return count;
    }
    while (n < count &&
           essd_vhost_give(s, ring, frames[n].iov, frames[n].iovcnt)) {
        n++;
    }
    essd_vhost_publish(s, VHOST_TO_DRIVER);
    if (s->is_broken) {
        return count;
    }
    if (n < count && !s->waits_for_room) {
        s->waits_for_room = true;
        essd_vhost_watch(s);
    }
    return n;
}

static ssize_t essd_vhost_receive_iov(NetClientState *nc,
                                      const struct iovec *iov, int iovcnt)
{
    NetFrame frame = {iov, iovcnt};

    return essd_vhost_receive_burst(nc, &frame, 1) ? iov_size(iov, iovcnt) : 0;
}

static ssize_t essd_vhost_receive(NetClientState *nc, const uint8_t *buf,
                                  size_t size)
{
    struct iovec iov = {(void *)buf, size};

    return essd_vhost_receive_iov(nc, &iov, 1);
}

static void essd_vhost_has_room(EssdVhostState *s)
{
    struct vhost_ring *ring = essd_vhost_ring(s, VHOST_TO_DRIVER);

    if (s->waits_for_room) {
        s->waits_for_room = false;
        if (ring) {
            vhost_ring_unwatch(ring);
        }
        qemu_flush_queued_packets(&s->nc);
    }
}

/* The driver no longer receives: what waits for it is lost. */
static void essd_vhost_lose_waiting(EssdVhostState *s)
{
    s->waits_for_room = false;
    essd_vhost_watch(s);
    qemu_flush_queued_packets(&s->nc);
}

/* Notifications of the driver, in the main loop. */

static void essd_vhost_from_driver(void *opaque)
{
    essd_vhost_read(opaque, true);
}

static void essd_vhost_room(void *opaque)
{
    EssdVhostState *s = opaque;

    essd_vhost_clear_kick(s, VHOST_TO_DRIVER);
    essd_vhost_has_room(s);
    essd_vhost_watch(s);
}

static void essd_vhost_set_handler(EssdVhostState *s, unsigned int n, int fd,
                                   IOHandler *handler)
{
    if (s->watched[n] == fd) {
        return;
    }
    if (s->watched[n] >= 0) {
        qemu_set_fd_handler(s->watched[n], NULL, NULL, NULL);
    }
    s->watched[n] = fd;
    if (fd >= 0) {
        qemu_set_fd_handler(fd, handler, NULL, s);
    }
}

static int essd_vhost_kick_fd(EssdVhostState *s, unsigned int n)
{
    return essd_vhost_ring(s, n) ? s->vu.said[n].kick_fd : -1;
}

/* Wait for the notifications that are of interest now. */
static void essd_vhost_watch(EssdVhostState *s)
{
    bool reads = !s->poller && !s->is_held;

    essd_vhost_set_handler(s, VHOST_FROM_DRIVER,
                           reads ? essd_vhost_kick_fd(s, VHOST_FROM_DRIVER)
                                 : -1,
                           essd_vhost_from_driver);
    essd_vhost_set_handler(
        s, VHOST_TO_DRIVER,
        s->waits_for_room ? essd_vhost_kick_fd(s, VHOST_TO_DRIVER) : -1,
        essd_vhost_room);
    if (s->poller) {
        s->poller();
    }
}

/* The rings have changed, or frames can be passed on again. */
static void essd_vhost_bh(void *opaque)
{
    EssdVhostState *s = opaque;

    if (s->is_broken) {
        qemu_chr_fe_disconnect(&s->chr);
        return;
    }
    essd_vhost_has_room(s);
    essd_vhost_read(s, false);
    essd_vhost_watch(s);
}

/* The data path. */

static void essd_vhost_set_poller(NetClientState *nc, NetPollChanged *poller)
{
    EssdVhostState *s = DO_UPCAST(EssdVhostState, nc, nc);

    s->poller = poller;
    essd_vhost_watch(s);
}

static int essd_vhost_poll_fd(NetClientState *nc, short *events)
{
    EssdVhostState *s = DO_UPCAST(EssdVhostState, nc, nc);

    *events = POLLIN;
    return s->is_held ? -1 : essd_vhost_kick_fd(s, VHOST_FROM_DRIVER);
}

static void essd_vhost_poll_ready(NetClientState *nc, short revents)
{
    EssdVhostState *s = DO_UPCAST(EssdVhostState, nc, nc);
    struct vhost_ring *ring = essd_vhost_ring(s, VHOST_FROM_DRIVER);
    unsigned int count;

    /* Nobody has polled if revents has POLLOUT: a look is cheaper. */
    if (ring && (!(revents & POLLOUT) ||
                 vhost_ring_count(ring, &count) != VHOST_OK || count > 0)) {
        essd_vhost_read(s, true);
    }
}

/* The operating system. */

static uint8_t *essd_vhost_map(void *ctx, int fd, uint64_t size)
{
    EssdVhostState *s = ctx;
    uint8_t *data = vhost_map(fd, size);

    if (!data) {
        essd_vhost_break(s, "the guest's memory cannot be shared: it is no "
                            "memfd and no file of tmpfs, or is too short, or "
                            "cannot be mapped");
    }
    return data;
}

static void essd_vhost_unmap(void *ctx, uint8_t *data, uint64_t size)
{
    vhost_unmap(data);
}

static void essd_vhost_close(void *ctx, int fd)
{
    EssdVhostState *s = ctx;

    for (unsigned int n = 0; n < VHOST_RINGS; n++) {
        if (s->watched[n] == fd) {
            essd_vhost_set_handler(s, n, -1, NULL);
        }
    }
    close(fd);
}

/* Messages. */

static void essd_vhost_handle(EssdVhostState *s)
{
    uint8_t reply[VHOST_REPLY_MAX];
    uint32_t len;

    trace_essd_vhost_message(s->nc.name, s->msg.request, s->msg.len,
                             s->msg.num_fds);
    s->got = 0;
    vhost_map_begin(); /* some messages make it read a ring */
    if (!vhost_backend_handle(&s->vu, &s->msg, reply, &len)) {
        essd_vhost_break(s, "bad message");
        return;
    }
    if (len > 0 && qemu_chr_fe_write(&s->chr, reply, len) != (int)len) {
        essd_vhost_break(s, "the front-end reads no replies");
        return;
    }
    if (s->waits_for_room && !essd_vhost_ring(s, VHOST_TO_DRIVER)) {
        essd_vhost_lose_waiting(s);
    }
    qemu_bh_schedule(s->bh);
}

static int essd_vhost_can_read(void *opaque)
{
    EssdVhostState *s = opaque;
    uint32_t head = sizeof(s->head);

    if (s->is_broken) {
        return 0;
    }
    return s->got < head ? head - s->got : head + s->msg.len - s->got;
}

static void essd_vhost_take_fds(EssdVhostState *s)
{
    int n = qemu_chr_fe_get_msgfds(&s->chr, s->msg.fds, VHOST_FDS);

    s->msg.num_fds = MAX(n, 0);
    for (unsigned int i = 0; i < s->msg.num_fds; i++) {
        g_unix_set_fd_nonblocking(s->msg.fds[i], true, NULL);
    }
}

static void essd_vhost_drop_fds(EssdVhostState *s)
{
    for (unsigned int i = 0; i < s->msg.num_fds; i++) {
        close(s->msg.fds[i]);
    }
    s->msg.num_fds = 0;
}

/* At most as many bytes as essd_vhost_can_read() has said. */
static void essd_vhost_got(void *opaque, const uint8_t *buf, int size)
{
    EssdVhostState *s = opaque;
    uint32_t head = sizeof(s->head);

    if (s->got < head) {
        if (s->got == 0) {
            essd_vhost_take_fds(s);
        }
        memcpy(s->head + s->got, buf, size);
        s->got += size;
        if (s->got < head) {
            return;
        }
        if (!vhost_backend_parse(&s->msg, s->head)) {
            essd_vhost_drop_fds(s);
            essd_vhost_break(s, "no message of vhost-user");
            return;
        }
    } else {
        memcpy(s->msg.payload + s->got - head, buf, size);
        s->got += size;
    }
    if (s->got == head + s->msg.len) {
        essd_vhost_handle(s);
    }
}

static void essd_vhost_event(void *opaque, QEMUChrEvent event)
{
    EssdVhostState *s = opaque;

    if (event == CHR_EVENT_OPENED) {
        qemu_set_info_str(&s->nc, "vhost-user, connected");
        s->is_broken = false;
        s->got = 0;
    } else if (event == CHR_EVENT_CLOSED) {
        qemu_set_info_str(&s->nc, "vhost-user");
        if (s->got > 0) {
            essd_vhost_drop_fds(s);
        }
        vhost_backend_reset(&s->vu);
        s->is_broken = true;
        essd_vhost_lose_waiting(s);
    }
}

/* Creation. */

static void essd_vhost_cleanup(NetClientState *nc)
{
    EssdVhostState *s = DO_UPCAST(EssdVhostState, nc, nc);

    s->poller = NULL;
    qemu_chr_fe_disconnect(&s->chr);
    qemu_chr_fe_deinit(&s->chr, false);
    vhost_backend_reset(&s->vu);
    /* Frames that wait at the peer would schedule the bottom half later. */
    qemu_purge_queued_packets(nc);
    qemu_bh_delete(s->bh);
    s->bh = NULL;
}

static NetClientInfo essd_vhost_info = {
    .type = NET_CLIENT_DRIVER_VHOST_USER,
    .size = sizeof(EssdVhostState),
    .receive = essd_vhost_receive,
    .receive_iov = essd_vhost_receive_iov,
    .receive_burst = essd_vhost_receive_burst,
    .set_poller = essd_vhost_set_poller,
    .poll_fd = essd_vhost_poll_fd,
    .poll_ready = essd_vhost_poll_ready,
    .cleanup = essd_vhost_cleanup,
};

int net_init_vhost_user(const Netdev *netdev, const char *name,
                        NetClientState *peer, Error **errp)
{
    Chardev *chr = qemu_chr_find(netdev->u.vhost_user.chardev);
    NetClientState *nc;
    EssdVhostState *s;

    if (!chr || !qemu_chr_has_feature(chr, QEMU_CHAR_FEATURE_FD_PASS)) {
        error_setg(errp, "chardev \"%s\" is no UNIX socket",
                   netdev->u.vhost_user.chardev);
        return -1;
    }
    nc = qemu_new_net_client(&essd_vhost_info, peer, "vhost-user", name);
    s = DO_UPCAST(EssdVhostState, nc, nc);
    qemu_set_info_str(nc, "vhost-user");
    s->bh = qemu_bh_new(essd_vhost_bh, s);
    s->is_broken = true;
    s->watched[0] = -1;
    s->watched[1] = -1;
    vhost_backend_init(&s->vu, &(struct vhost_backend_ops){
                                   .ctx = s,
                                   .map = essd_vhost_map,
                                   .unmap = essd_vhost_unmap,
                                   .close = essd_vhost_close,
                               });
    if (!qemu_chr_fe_init(&s->chr, chr, errp)) {
        qemu_del_net_client(nc);
        return -1;
    }
    qemu_chr_fe_set_handlers(&s->chr, essd_vhost_can_read, essd_vhost_got,
                             essd_vhost_event, NULL, s, NULL, true);
    return 0;
}
