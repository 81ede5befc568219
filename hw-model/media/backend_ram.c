/* SPDX-License-Identifier: BSD-2-Clause */
/* A medium in memory: see backend_ram.h. */
#include "hw-model/media/backend_ram.h"

#include <string.h>

enum { SECTOR_BYTES = 512 };

static void write_zeroes(void *ctx, uint32_t id, uint64_t offset, uint64_t len,
                         bool may_unmap)
{
    (void)may_unmap;
    ram_queue_zero(ctx, id, offset, len);
}

void backend_ram_init(struct backend_ram *ram, uint8_t *written,
                      uint8_t *stable, uint64_t size_bytes)
{
    memset(ram, 0, sizeof(*ram));
    ram_queue_init(&ram->queue, size_bytes, SECTOR_BYTES);
    ram->written = written;
    ram->stable = stable;
    ram->size_bytes = size_bytes;
}

struct media_backend backend_ram_backend(struct backend_ram *ram)
{
    return (struct media_backend){
        .ctx = &ram->queue,
        .readv = ram_queue_readv,
        .writev = ram_queue_writev,
        .write_zeroes = write_zeroes,
        .flush = ram_queue_flush,
    };
}

static int failure_of(const struct backend_ram *ram, enum ram_kind kind)
{
    switch (kind) {
    case RAM_READ:
        return ram->fail_reads;
    case RAM_WRITE:
    case RAM_ZERO:
        return ram->fail_writes;
    case RAM_FLUSH:
        return ram->fail_flushes;
    }
    return 0;
}

bool backend_ram_step(struct backend_ram *ram, uint32_t index)
{
    struct ram_request request;
    int failure;

    if (!ram_queue_take(&ram->queue, index, &request)) {
        return false;
    }
    failure = failure_of(ram, request.kind);
    if (failure == 0) {
        ram_request_execute(&request, ram->written, request.len);
        if (request.kind == RAM_FLUSH) {
            memcpy(ram->stable, ram->written, ram->size_bytes);
        }
    }
    ram->done(ram->ctx, request.id, -failure);
    return true;
}

void backend_ram_power_cut(struct backend_ram *ram)
{
    ram->queue.count = 0;
    memcpy(ram->written, ram->stable, ram->size_bytes);
}
