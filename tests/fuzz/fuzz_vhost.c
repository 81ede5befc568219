/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a hostile machine may do to its end of a vhost-user link.  An input is a
 * sequence of steps: one byte that says what, and its bytes.  A message has a
 * length before it.  Whatever comes, no address outside of the shared memory is
 * used, which the sanitizers see, no descriptor is closed twice, and all are
 * closed at the end.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "hw-model/vhost/vhost_backend.h"
#include "lib/bytes.h"

enum {
    SHARED = 0x8000,
    FDS = 256,
    STEP_MESSAGE = 0, /* request, number of descriptors, length, payload */
    STEP_WRITE = 1,   /* offset (2), length, bytes: of the shared memory */
    STEP_TAKE = 2,
    STEP_GIVE = 3, /* length (2) */
    STEP_WATCH = 4,
    STEPS = 5,
    GIVEN_MAX = 9018,
};

struct world {
    struct vhost_backend vu;
    _Alignas(16) uint8_t shared[SHARED];
    uint8_t is_open[FDS];
    int next_fd;
    unsigned int mapped;
};

static struct world world;
static uint8_t frame[GIVEN_MAX];

static void check_that(bool good)
{
    if (!good) {
        abort();
    }
}

static uint8_t *map_shared(void *ctx, int fd, uint64_t size)
{
    struct world *w = ctx;

    check_that(fd >= 0 && fd < FDS && w->is_open[fd]);
    if (size > SHARED) {
        return NULL;
    }
    w->mapped++;
    return w->shared;
}

static void unmap_shared(void *ctx, uint8_t *data, uint64_t size)
{
    struct world *w = ctx;

    check_that(data == w->shared && size <= SHARED && w->mapped > 0);
    w->mapped--;
}

static void close_fd(void *ctx, int fd)
{
    struct world *w = ctx;

    check_that(fd >= 0 && fd < FDS && w->is_open[fd]);
    w->is_open[fd] = 0;
}

static bool run_message(struct world *w, struct input *in)
{
    struct vhost_backend_msg msg;
    uint8_t head[VHOST_MSG_HEADER] = {0};
    uint8_t reply[VHOST_REPLY_MAX];
    uint32_t reply_len;
    unsigned int fds;

    memset(&msg, 0, sizeof(msg));
    head[0] = take_byte(in);
    head[4] = 1 | (take_byte(in) & 8);
    fds = take_byte(in) % (VHOST_FDS + 1);
    head[8] = take_byte(in);
    if (!vhost_backend_parse(&msg, head)) {
        return false;
    }
    take_bytes(in, msg.payload, msg.len);
    while (msg.num_fds < fds && w->next_fd < FDS) {
        w->is_open[w->next_fd] = 1;
        msg.fds[msg.num_fds++] = w->next_fd++;
    }
    if (!vhost_backend_handle(&w->vu, &msg, reply, &reply_len)) {
        return false;
    }
    check_that(reply_len <= VHOST_REPLY_MAX);
    return true;
}

static bool run_ring(struct world *w, struct input *in, uint8_t step)
{
    struct vhost_ring *ring =
        &w->vu.rings[step == STEP_GIVE ? VHOST_TO_DRIVER : VHOST_FROM_DRIVER];
    uint32_t len;
    unsigned int count;
    bool ok;

    if (!ring->desc) {
        return true;
    }
    if (step == STEP_TAKE) {
        ok = vhost_ring_take(ring, frame, &len) != VHOST_BROKEN;
        check_that(len <= FRAME_LEN_MAX);
    } else if (step == STEP_WATCH) {
        ok = vhost_ring_watch(ring, &count) != VHOST_BROKEN;
        check_that(!ok || count <= ring->size);
    } else {
        uint8_t bytes[2] = {take_byte(in), take_byte(in)};
        const struct frame_piece piece = {frame, get_le16(bytes) % GIVEN_MAX};

        ok = vhost_ring_give(ring, &piece, 1) != VHOST_BROKEN;
    }
    if (ok) {
        (void)!vhost_ring_publish(ring);
    }
    return ok;
}

static bool run_step(struct world *w, struct input *in)
{
    uint8_t step = take_byte(in) % STEPS;
    uint8_t at[2];

    if (step == STEP_MESSAGE) {
        return run_message(w, in);
    }
    if (step != STEP_WRITE) {
        return run_ring(w, in, step);
    }
    at[0] = take_byte(in);
    at[1] = take_byte(in);
    take_bytes(in, w->shared + get_le16(at) % (SHARED - 256), take_byte(in));
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct vhost_backend_ops ops = {
        .ctx = &world,
        .map = map_shared,
        .unmap = unmap_shared,
        .close = close_fd,
    };
    struct input in = {data, len};

    memset(&world, 0, sizeof(world));
    vhost_backend_init(&world.vu, &ops);
    while (in.len > 0 && run_step(&world, &in)) {
    }
    vhost_backend_reset(&world.vu);
    check_that(world.mapped == 0);
    for (int fd = 0; fd < FDS; fd++) {
        check_that(!world.is_open[fd]);
    }
    return 0;
}

/* The seeds: a link that works. */

struct seed {
    uint8_t *at;
    uint8_t *end;
};

static void add_byte(struct seed *s, uint8_t value)
{
    if (s->at < s->end) {
        *s->at++ = value;
    }
}

static void add_message(struct seed *s, uint8_t request, uint8_t fds,
                        const uint64_t *words, uint8_t count)
{
    add_byte(s, STEP_MESSAGE);
    add_byte(s, request);
    add_byte(s, 8);
    add_byte(s, fds);
    add_byte(s, (uint8_t)(8 * count));
    for (uint8_t n = 0; n < count; n++) {
        for (unsigned int i = 0; i < 8; i++) {
            add_byte(s, (uint8_t)(words[n] >> (8 * i)));
        }
    }
}

static void add_write(struct seed *s, uint16_t at, const uint8_t *bytes,
                      uint8_t len)
{
    add_byte(s, STEP_WRITE);
    add_byte(s, (uint8_t)at);
    add_byte(s, (uint8_t)(at >> 8));
    add_byte(s, len);
    for (uint8_t n = 0; n < len; n++) {
        add_byte(s, bytes[n]);
    }
}

enum { GUEST = 0x10000, AVAIL = 0x800, USED = 0x1000, ENTRIES = 4 };

static void add_ring(struct seed *s, uint64_t n, bool is_for_device)
{
    uint64_t at = n * 0x2000;
    uint8_t desc[16] = {0};
    uint8_t avail[6] = {0, 0, 1, 0, 0, 0};

    put_le32(desc, GUEST + 0x5000);
    put_le32(desc + 8, 1024);
    desc[12] = is_for_device ? 2 : 0;
    add_message(s, 8, 0, (uint64_t[]){n | (uint64_t)ENTRIES << 32}, 1);
    add_message(s, 9, 0,
                (uint64_t[]){n | UINT64_C(1) << 32, GUEST + at,
                             GUEST + at + USED, GUEST + at + AVAIL,
                             GUEST + at + USED},
                5);
    add_message(s, 18, 0, (uint64_t[]){n | UINT64_C(1) << 32}, 1);
    add_message(s, 13, 1, (uint64_t[]){n}, 1);
    add_message(s, 12, 1, (uint64_t[]){n}, 1);
    add_write(s, (uint16_t)at, desc, sizeof(desc));
    add_write(s, (uint16_t)(at + AVAIL), avail, sizeof(avail));
}

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    struct seed s = {buf, buf + room};
    uint64_t features = UINT64_C(1) << 30 | UINT64_C(1) << 32;

    if (n > 1) {
        return 0;
    }
    if (n == 1) {
        features |= UINT64_C(1) << 29 | UINT64_C(1) << 15;
    }
    add_message(&s, 1, 0, NULL, 0);
    add_message(&s, 16, 0, (uint64_t[]){8}, 1);
    add_message(&s, 2, 0, &features, 1);
    add_message(&s, 5, 1, (uint64_t[]){1, GUEST, SHARED, GUEST, 0}, 5);
    add_ring(&s, 0, true);
    add_ring(&s, 1, false);
    add_byte(&s, STEP_WATCH);
    add_byte(&s, STEP_TAKE);
    add_byte(&s, STEP_GIVE);
    add_byte(&s, 60);
    add_byte(&s, 0);
    add_message(&s, 11, 0, (uint64_t[]){0}, 1);
    add_message(&s, 11, 0, (uint64_t[]){1}, 1);
    return (size_t)(s.at - buf);
}
