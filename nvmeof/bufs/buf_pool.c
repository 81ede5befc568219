/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/bufs/buf_pool.h"

#include <string.h>

static void class_init(struct buf_class *pool, uint8_t *base,
                       uint32_t len_bytes, uint16_t *free, uint16_t count)
{
    *pool = (struct buf_class){
        .base = base,
        .len_bytes = len_bytes,
        .count = count,
        .free_count = count,
        .free = free,
    };
    for (uint16_t i = 0; i < count; i++) {
        free[i] = (uint16_t)(count - 1 - i);
    }
}

enum { SMALL, MEDIUM, LARGE };
_Static_assert(BUF_RESERVE *NVMF_BUF_OWNERS <= BUF_SMALL_COUNT,
               "the reserves of all owners fit into the small buffers");
_Static_assert(BUF_RESERVE_LONG <= BUF_RESERVE &&
                   (int)BUF_RESERVE_LONG <= (int)NVMF_MAX_PIECES,
               "a reserve holds one window, which is one command's pieces");
_Static_assert((int)NVMF_WINDOW_MIN <= BUF_RESERVE_LONG * BUF_SMALL_LEN &&
                   (int)NVMF_WINDOW_MIN <= (int)BUF_WINDOW_MIN,
               "every window has room for a block with its metadata");
_Static_assert((int)NVMF_SHORT_LEN == (int)BUF_SMALL_LEN,
               "a short command fits into one small buffer");
_Static_assert((int)NVMF_UNPROVEN_BUFS <= (int)BUF_RESERVE,
               "before the proof, a host gets no shared buffer");

void buf_pool_init(struct buf_pool *bufs, void *dram, uint32_t lkey)
{
    uint8_t *base = dram;

    bufs->lkey = lkey;
    memset(bufs->held, 0, sizeof(bufs->held));
    class_init(&bufs->classes[SMALL], base, BUF_SMALL_LEN, bufs->free_small,
               BUF_SMALL_COUNT);
    bufs->classes[SMALL].kept = BUF_RESERVE * NVMF_BUF_OWNERS;
    base += BUF_SMALL_LEN * BUF_SMALL_COUNT;
    class_init(&bufs->classes[MEDIUM], base, BUF_MEDIUM_LEN, bufs->free_medium,
               BUF_MEDIUM_COUNT);
    base += BUF_MEDIUM_LEN * BUF_MEDIUM_COUNT;
    class_init(&bufs->classes[LARGE], base, BUF_LARGE_LEN, bufs->free_large,
               BUF_LARGE_COUNT);
}

static inline void take_buffer(struct buf_pool *bufs, uint16_t *held,
                               unsigned int class_index, uint32_t len_bytes,
                               struct nvmf_piece *piece)
{
    struct buf_class *pool = &bufs->classes[class_index];
    uint32_t index = pool->free[--pool->free_count];

    if (class_index == SMALL && held[SMALL] < BUF_RESERVE) {
        pool->kept--;
    }
    held[class_index]++;
    *piece = (struct nvmf_piece){
        .ptr = pool->base + (size_t)index * pool->len_bytes,
        .len_bytes = len_bytes,
        .handle = bufs->lkey,
    };
}

/* Number of shared buffers of a class that an owner holds. */
static int held_shared(const uint16_t *held, unsigned int class_index)
{
    int reserve = class_index == SMALL ? BUF_RESERVE : 0;

    return MAX(held[class_index] - reserve, 0);
}

/* Whether an owner may take one more shared buffer of a class. */
static bool may_share(const struct buf_pool *bufs, const uint16_t *held,
                      unsigned int class_index)
{
    const struct buf_class *pool = &bufs->classes[class_index];

    return held_shared(held, class_index) * BUF_SHARE <
           pool->free_count - pool->kept;
}

/* How many shared buffers of a class an owner may take, one after the other:
 * each one taken also lowers the number of free ones. */
static uint16_t share_left(const struct buf_pool *bufs, const uint16_t *held,
                           unsigned int class_index)
{
    const struct buf_class *pool = &bufs->classes[class_index];
    int more = pool->free_count - pool->kept -
               held_shared(held, class_index) * BUF_SHARE;

    return (uint16_t)(more > 0 ? (more + BUF_SHARE) / (BUF_SHARE + 1) : 0);
}

/* Take a medium buffer for a short command that may take no small one. */
static uint32_t get_medium(struct buf_pool *bufs, uint16_t *held, uint32_t len,
                           struct nvmf_piece *pieces, uint8_t *count)
{
    if (!may_share(bufs, held, MEDIUM)) {
        return 0;
    }
    take_buffer(bufs, held, MEDIUM, len, &pieces[0]);
    *count = 1;
    return len;
}

/*
 * Choose the class of the next piece: the smallest class whose buffers have
 * room for len_bytes, or the class above it.  If neither has a buffer left,
 * choose the largest class below that has one; the command then needs more
 * pieces.
 */
static unsigned int choose_class(const uint16_t *left,
                                 const struct buf_pool *bufs,
                                 uint32_t len_bytes)
{
    unsigned int fit = 0;

    while (fit < LARGE && bufs->classes[fit].len_bytes < len_bytes) {
        fit++;
    }
    if (left[fit] != 0) {
        return fit;
    }
    if (fit + 1 < BUF_CLASSES && left[fit + 1] != 0) {
        return fit + 1;
    }
    while (fit-- > 0) {
        if (left[fit] != 0) {
            return fit;
        }
    }
    return BUF_CLASSES;
}

/* Plan pieces from the shared buffers.  @return how many bytes of len fit */
static uint32_t plan_shared(const struct buf_pool *bufs, const uint16_t *held,
                            uint32_t len, uint8_t *plan, uint8_t *count)
{
    uint16_t left[BUF_CLASSES];
    uint32_t rest = len;

    left[SMALL] = share_left(bufs, held, SMALL);
    left[MEDIUM] = share_left(bufs, held, MEDIUM);
    left[LARGE] = share_left(bufs, held, LARGE);
    for (*count = 0; rest != 0 && *count < NVMF_MAX_PIECES; (*count)++) {
        unsigned int c = choose_class(left, bufs, rest);

        if (c == BUF_CLASSES) {
            break;
        }
        left[c]--;
        plan[*count] = (uint8_t)c;
        rest -= MIN(rest, bufs->classes[c].len_bytes);
    }
    return len - rest;
}

/* Plan a window from the owner's reserve.  If the owner holds larger buffers,
 * or so many small ones that the window would be too short for a block, the
 * command waits for these buffers instead.
 * @return how many bytes of len fit; 0: the command waits */
static uint32_t plan_reserve(const uint16_t *held, uint32_t len, uint8_t *plan,
                             uint8_t *count)
{
    uint32_t room;

    if (held[MEDIUM] != 0 || held[LARGE] != 0 ||
        held[SMALL] >= BUF_RESERVE_LONG) {
        return 0;
    }
    *count = (uint8_t)(BUF_RESERVE_LONG - held[SMALL]);
    memset(plan, SMALL, *count);
    room = (uint32_t)*count * BUF_SMALL_LEN;
    if (room < NVMF_WINDOW_MIN) {
        return 0;
    }
    return MIN(room, len);
}

static uint32_t get_pieces(struct buf_pool *bufs, uint16_t *held, uint32_t len,
                           struct nvmf_piece *pieces, uint8_t *count)
{
    uint8_t plan[NVMF_MAX_PIECES];
    uint32_t room = plan_shared(bufs, held, len, plan, count);
    uint32_t rest;

    if (room < len && room < BUF_WINDOW_MIN) {
        room = plan_reserve(held, len, plan, count);
    }
    rest = room;
    for (uint8_t i = 0; rest != 0; i++) {
        uint32_t n = MIN(rest, bufs->classes[plan[i]].len_bytes);

        take_buffer(bufs, held, plan[i], n, &pieces[i]);
        rest -= n;
        *count = (uint8_t)(i + 1);
    }
    return room;
}

/* Take one buffer that has room for all of len, which is the usual case, or
 * several smaller ones. */
static uint32_t get_long(struct buf_pool *bufs, uint16_t *held, uint32_t len,
                         struct nvmf_piece *pieces, uint8_t *count)
{
    unsigned int fit = len <= BUF_MEDIUM_LEN ? MEDIUM : LARGE;

    if (len > BUF_LARGE_LEN || !may_share(bufs, held, fit)) {
        return get_pieces(bufs, held, len, pieces, count);
    }
    take_buffer(bufs, held, fit, len, &pieces[0]);
    *count = 1;
    return len;
}

/* Not inlined, so that the usual command need not save registers. */
static __attribute__((noinline)) uint32_t get_other(struct buf_pool *bufs,
                                                    uint16_t *held,
                                                    uint32_t len,
                                                    struct nvmf_piece *pieces,
                                                    uint8_t *count)
{
    ASSERT(len != 0 && len <= NVMF_MAX_TRANSFER);
    return len <= NVMF_SHORT_LEN ? get_medium(bufs, held, len, pieces, count)
                                 : get_long(bufs, held, len, pieces, count);
}

uint32_t buf_pool_get(void *ctx, uint8_t owner, uint32_t len_bytes,
                      struct nvmf_piece *pieces, uint8_t *count)
{
    struct buf_pool *bufs = ctx;
    uint16_t *held = bufs->held[owner];

    if (len_bytes - 1 >= NVMF_SHORT_LEN ||
        (held[SMALL] >= BUF_RESERVE && !may_share(bufs, held, SMALL))) {
        return get_other(bufs, held, len_bytes, pieces, count);
    }
    take_buffer(bufs, held, SMALL, len_bytes, &pieces[0]);
    *count = 1;
    return len_bytes;
}

/* Where a buffer is in the memory of a class; beyond that if it belongs to
 * another one. */
static size_t offset_in(const struct buf_pool *bufs, unsigned int class_index,
                        const struct nvmf_piece *piece)
{
    return (size_t)((const uint8_t *)piece->ptr -
                    bufs->classes[class_index].base);
}

/* The lengths are constants, so that no hart has to divide. */
static inline void give_buffer(struct buf_pool *bufs, uint16_t *held,
                               unsigned int class_index, uint32_t len_bytes,
                               uint32_t count, size_t offset)
{
    struct buf_class *pool = &bufs->classes[class_index];

    ASSERT(offset % len_bytes == 0);
    ASSERT(pool->free_count < count);
    ASSERT(held[class_index] > 0);
    pool->free[pool->free_count++] = (uint16_t)(offset / len_bytes);
    held[class_index]--;
    if (class_index == SMALL && held[SMALL] < BUF_RESERVE) {
        pool->kept++;
    }
}

static inline bool give_small(struct buf_pool *bufs, uint16_t *held,
                              const struct nvmf_piece *piece)
{
    size_t offset = offset_in(bufs, SMALL, piece);

    if (offset >= (size_t)BUF_SMALL_LEN * BUF_SMALL_COUNT) {
        return false;
    }
    give_buffer(bufs, held, SMALL, BUF_SMALL_LEN, BUF_SMALL_COUNT, offset);
    return true;
}

static void give_larger(struct buf_pool *bufs, uint16_t *held,
                        const struct nvmf_piece *piece)
{
    size_t offset = offset_in(bufs, MEDIUM, piece);

    if (offset < (size_t)BUF_MEDIUM_LEN * BUF_MEDIUM_COUNT) {
        give_buffer(bufs, held, MEDIUM, BUF_MEDIUM_LEN, BUF_MEDIUM_COUNT,
                    offset);
        return;
    }
    offset = offset_in(bufs, LARGE, piece);
    ASSERT(offset < (size_t)BUF_LARGE_LEN * BUF_LARGE_COUNT);
    give_buffer(bufs, held, LARGE, BUF_LARGE_LEN, BUF_LARGE_COUNT, offset);
}

static __attribute__((noinline)) void give_all(struct buf_pool *bufs,
                                               uint16_t *held,
                                               const struct nvmf_piece *pieces,
                                               uint8_t count)
{
    for (uint8_t i = 0; i < count; i++) {
        if (!give_small(bufs, held, &pieces[i])) {
            give_larger(bufs, held, &pieces[i]);
        }
    }
}

void buf_pool_put(void *ctx, uint8_t owner, const struct nvmf_piece *pieces,
                  uint8_t count)
{
    struct buf_pool *bufs = ctx;
    uint16_t *held = bufs->held[owner];

    if (count != 1 || !give_small(bufs, held, pieces)) {
        give_all(bufs, held, pieces, count);
    }
}

uint32_t buf_pool_used_bytes(const struct buf_pool *bufs)
{
    uint32_t used = 0;

    for (unsigned int i = 0; i < BUF_CLASSES; i++) {
        const struct buf_class *pool = &bufs->classes[i];

        used += (uint32_t)(pool->count - pool->free_count) * pool->len_bytes;
    }
    return used;
}

struct nvmf_bufs buf_pool_seam(struct buf_pool *pool)
{
    return (struct nvmf_bufs){
        .ctx = pool,
        .get = buf_pool_get,
        .put = buf_pool_put,
    };
}
