/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/medium.h"

#include <stdlib.h>
#include <string.h>

#include "firmware/native/memory.h"

enum { PAGE = 4096 };

void medium_init(struct medium *medium, uint64_t capacity_bytes)
{
    ASSERT(capacity_bytes % PAGE == 0);
    *medium = (struct medium){
        .capacity_bytes = capacity_bytes,
        .data = native_memory_get_sparse(capacity_bytes),
        .durable = native_memory_get_sparse(capacity_bytes),
        .is_dirty = calloc(1, capacity_bytes / PAGE),
    };
    ASSERT(medium->is_dirty != NULL);
}

void medium_end(struct medium *medium)
{
    native_memory_free(medium->data);
    native_memory_free(medium->durable);
    free(medium->is_dirty);
}

static void request_done(struct medium *medium, uint32_t id, int result)
{
    ASSERT(medium->done_count < ARRAY_LEN(medium->done));
    medium->done[medium->done_count++] = (struct medium_done){id, result};
}

static bool in_range(const struct medium *medium, uint64_t offset, uint64_t len)
{
    return offset <= medium->capacity_bytes &&
           len <= medium->capacity_bytes - offset;
}

static uint64_t total_bytes(const struct iovec *iov, unsigned int niov)
{
    uint64_t len = 0;

    for (unsigned int i = 0; i < niov; i++) {
        len += iov[i].iov_len;
    }
    return len;
}

static void mark_sectors(struct medium *medium, uint64_t offset, uint64_t len)
{
    for (uint64_t page = offset / PAGE; page * PAGE < offset + len; page++) {
        medium->is_dirty[page] = 1;
    }
}

/* Where data and durable differ, copy from one to the other. */
static void settle_write(struct medium *medium, bool keep)
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

/* Copy bytes between memory and the medium, in either direction. */
static void move_data(struct medium *medium,
                      const struct medium_request *request)
{
    uint8_t *at = medium->data + request->offset;

    for (unsigned int i = 0; i < request->niov; i++) {
        const struct iovec *iov = &request->iov[i];

        if (request->kind == MEDIUM_READ) {
            memcpy(iov->iov_base, at, iov->iov_len);
        } else {
            memcpy(at, iov->iov_base, iov->iov_len);
        }
        at += iov->iov_len;
    }
}

static bool is_readable(const struct medium *medium,
                        const struct medium_request *request)
{
    return medium->fail_len != 0 &&
           (request->offset >= medium->fail_offset + medium->fail_len ||
            medium->fail_offset >= request->offset + request->len);
}

static void execute_request(struct medium *medium,
                            const struct medium_request *request)
{
    int result = 0;

    switch (request->kind) {
    case MEDIUM_READ:
        result = is_readable(medium, request) ? 0 : medium->fail_reads;
        break;
    case MEDIUM_WRITE:
    case MEDIUM_ZEROES:
        result = medium->fail_writes;
        break;
    case MEDIUM_FLUSH:
        settle_write(medium, true);
        break;
    }
    if (result == 0 &&
        (request->kind == MEDIUM_WRITE || request->kind == MEDIUM_ZEROES)) {
        mark_sectors(medium, request->offset, request->len);
    }
    if (result == 0 && request->kind == MEDIUM_ZEROES) {
        memset(medium->data + request->offset, 0, request->len);
    } else if (result == 0) {
        move_data(medium, request);
    }
    request_done(medium, request->id, result);
}

static void begin_request(struct medium *medium,
                          const struct medium_request *request)
{
    ASSERT(in_range(medium, request->offset, request->len));
    if (medium->is_held) {
        ASSERT(medium->held_count < ARRAY_LEN(medium->held));
        medium->held[medium->held_count++] = *request;
    } else {
        execute_request(medium, request);
    }
}

static void do_readv(void *ctx, uint32_t id, uint64_t offset,
                     const struct iovec *iov, unsigned int niov)
{
    begin_request(ctx,
                  &(struct medium_request){MEDIUM_READ, id, offset,
                                           total_bytes(iov, niov), iov, niov});
}

static void do_writev(void *ctx, uint32_t id, uint64_t offset,
                      const struct iovec *iov, unsigned int niov)
{
    begin_request(ctx,
                  &(struct medium_request){MEDIUM_WRITE, id, offset,
                                           total_bytes(iov, niov), iov, niov});
}

static void write_zeroes(void *ctx, uint32_t id, uint64_t offset, uint64_t len,
                         bool may_unmap)
{
    (void)may_unmap;
    begin_request(
        ctx, &(struct medium_request){MEDIUM_ZEROES, id, offset, len, NULL, 0});
}

static void flush_medium(void *ctx, uint32_t id)
{
    begin_request(ctx,
                  &(struct medium_request){MEDIUM_FLUSH, id, 0, 0, NULL, 0});
}

struct media_backend medium_backend(struct medium *medium)
{
    return (struct media_backend){
        .ctx = medium,
        .readv = do_readv,
        .writev = do_writev,
        .write_zeroes = write_zeroes,
        .flush = flush_medium,
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

void medium_release(struct medium *medium)
{
    medium->is_held = false;
    for (uint32_t i = 0; i < medium->held_count; i++) {
        execute_request(medium, &medium->held[i]);
    }
    medium->held_count = 0;
}

void medium_power_cut(struct medium *medium)
{
    medium->done_count = 0;
    medium->held_count = 0;
    settle_write(medium, false);
}
