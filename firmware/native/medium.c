/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/medium.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

void medium_init(struct medium *medium, uint64_t capacity_bytes)
{
    ASSERT(capacity_bytes % PAGE == 0);
    *medium = (struct medium){
        .capacity_bytes = capacity_bytes,
        .data = calloc(1, capacity_bytes),
        .durable = calloc(1, capacity_bytes),
        .is_dirty = calloc(1, capacity_bytes / PAGE),
    };
    ASSERT(medium->data != NULL && medium->durable != NULL &&
           medium->is_dirty != NULL);
}

void medium_end(struct medium *medium)
{
    free(medium->data);
    free(medium->durable);
    free(medium->is_dirty);
}

static void done(struct medium *medium, uint32_t id, int result)
{
    ASSERT(medium->done_count < ARRAY_LEN(medium->done));
    medium->done[medium->done_count++] = (struct medium_done){id, result};
}

static bool in_range(const struct medium *medium, uint64_t offset, uint64_t len)
{
    return offset <= medium->capacity_bytes &&
           len <= medium->capacity_bytes - offset;
}

static uint64_t total(const struct iovec *iov, unsigned int niov)
{
    uint64_t len = 0;

    for (unsigned int i = 0; i < niov; i++) {
        len += iov[i].iov_len;
    }
    return len;
}

static void mark(struct medium *medium, uint64_t offset, uint64_t len)
{
    for (uint64_t page = offset / PAGE; page * PAGE < offset + len; page++) {
        medium->is_dirty[page] = 1;
    }
}

static void do_readv(void *ctx, uint32_t id, uint64_t offset,
                     const struct iovec *iov, unsigned int niov)
{
    struct medium *medium = ctx;

    ASSERT(in_range(medium, offset, total(iov, niov)));
    for (unsigned int i = 0; i < niov && medium->fail_reads == 0; i++) {
        memcpy(iov[i].iov_base, medium->data + offset, iov[i].iov_len);
        offset += iov[i].iov_len;
    }
    done(medium, id, medium->fail_reads);
}

static void do_writev(void *ctx, uint32_t id, uint64_t offset,
                      const struct iovec *iov, unsigned int niov)
{
    struct medium *medium = ctx;

    ASSERT(in_range(medium, offset, total(iov, niov)));
    if (medium->fail_writes == 0) {
        mark(medium, offset, total(iov, niov));
    }
    for (unsigned int i = 0; i < niov && medium->fail_writes == 0; i++) {
        memcpy(medium->data + offset, iov[i].iov_base, iov[i].iov_len);
        offset += iov[i].iov_len;
    }
    done(medium, id, medium->fail_writes);
}

static void write_zeroes(void *ctx, uint32_t id, uint64_t offset, uint64_t len,
                         bool may_unmap)
{
    struct medium *medium = ctx;

    (void)may_unmap;
    ASSERT(in_range(medium, offset, len));
    if (medium->fail_writes == 0) {
        mark(medium, offset, len);
        memset(medium->data + offset, 0, len);
    }
    done(medium, id, medium->fail_writes);
}

/* Where data and durable differ, copy one way or the other. */
static void settle(struct medium *medium, bool keep)
{
    for (uint64_t page = 0; page * PAGE < medium->capacity_bytes; page++) {
        uint8_t *data = medium->data + page * PAGE;
        uint8_t *durable = medium->durable + page * PAGE;

        if (medium->is_dirty[page]) {
            medium->is_dirty[page] = 0;
            memcpy(keep ? durable : data, keep ? data : durable, PAGE);
        }
    }
}

static void flush(void *ctx, uint32_t id)
{
    settle(ctx, true);
    done(ctx, id, 0);
}

struct media_backend medium_backend(struct medium *medium)
{
    return (struct media_backend){
        .ctx = medium,
        .readv = do_readv,
        .writev = do_writev,
        .write_zeroes = write_zeroes,
        .flush = flush,
    };
}

bool medium_take_done(struct medium *medium, struct medium_done *taken)
{
    if (medium->done_count == 0) {
        return false;
    }
    *taken = medium->done[0];
    medium->done_count--;
    memmove(medium->done, medium->done + 1,
            medium->done_count * sizeof(medium->done[0]));
    return true;
}

void medium_power_cut(struct medium *medium)
{
    medium->done_count = 0;
    settle(medium, false);
}
