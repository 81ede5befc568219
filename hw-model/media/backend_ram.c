/* SPDX-License-Identifier: BSD-2-Clause */
/* A medium in memory: see backend_ram.h. */
#include "hw-model/media/backend_ram.h"

#include <string.h>

static uint64_t total_bytes(const struct iovec *iov, unsigned int niov)
{
    uint64_t len = 0;

    for (unsigned int i = 0; i < niov; i++) {
        len += iov[i].iov_len;
    }
    return len;
}

static void start_request(struct backend_ram *ram,
                          const struct backend_ram_request *request)
{
    ASSERT(ram->count < ARRAY_LEN(ram->queue));
    ASSERT(request->offset % 512 == 0 && request->len % 512 == 0);
    ASSERT(request->offset + request->len <= ram->size_bytes);
    for (uint32_t i = 0; i < ram->count; i++) {
        ASSERT(ram->queue[i].id != request->id);
    }
    ram->queue[ram->count++] = *request;
    ram->requests++;
}

static void ram_readv(void *ctx, uint32_t id, uint64_t offset,
                      const struct iovec *iov, unsigned int niov)
{
    start_request(ctx,
                  &(struct backend_ram_request){.kind = BACKEND_RAM_READ,
                                                .id = id,
                                                .niov = niov,
                                                .iov = iov,
                                                .offset = offset,
                                                .len = total_bytes(iov, niov)});
}

static void ram_writev(void *ctx, uint32_t id, uint64_t offset,
                       const struct iovec *iov, unsigned int niov)
{
    start_request(ctx,
                  &(struct backend_ram_request){.kind = BACKEND_RAM_WRITE,
                                                .id = id,
                                                .niov = niov,
                                                .iov = iov,
                                                .offset = offset,
                                                .len = total_bytes(iov, niov)});
}

static void ram_write_zeroes(void *ctx, uint32_t id, uint64_t offset,
                             uint64_t len, bool may_unmap)
{
    (void)may_unmap;
    start_request(ctx, &(struct backend_ram_request){.kind = BACKEND_RAM_ZEROES,
                                                     .id = id,
                                                     .offset = offset,
                                                     .len = len});
}

static void ram_flush(void *ctx, uint32_t id)
{
    start_request(ctx, &(struct backend_ram_request){.kind = BACKEND_RAM_FLUSH,
                                                     .id = id});
}

void backend_ram_init(struct backend_ram *ram, uint8_t *written,
                      uint8_t *stable, uint64_t size_bytes)
{
    memset(ram, 0, sizeof(*ram));
    ram->written = written;
    ram->stable = stable;
    ram->size_bytes = size_bytes;
}

struct media_backend backend_ram_backend(struct backend_ram *ram)
{
    return (struct media_backend){
        .ctx = ram,
        .readv = ram_readv,
        .writev = ram_writev,
        .write_zeroes = ram_write_zeroes,
        .flush = ram_flush,
    };
}

static int execute_request(struct backend_ram *ram,
                           const struct backend_ram_request *request)
{
    uint8_t *at = ram->written + request->offset;
    int failure = 0;

    switch (request->kind) {
    case BACKEND_RAM_READ:
        failure = ram->fail_reads;
        break;
    case BACKEND_RAM_WRITE:
    case BACKEND_RAM_ZEROES:
        failure = ram->fail_writes;
        break;
    case BACKEND_RAM_FLUSH:
        failure = ram->fail_flushes;
        break;
    }
    if (failure != 0) {
        return -failure;
    }
    if (request->kind == BACKEND_RAM_ZEROES) {
        memset(at, 0, request->len);
    } else if (request->kind == BACKEND_RAM_FLUSH) {
        memcpy(ram->stable, ram->written, ram->size_bytes);
    }
    for (unsigned int i = 0; i < request->niov; i++) {
        const struct iovec *iov = &request->iov[i];

        if (request->kind == BACKEND_RAM_READ) {
            memcpy(iov->iov_base, at, iov->iov_len);
        } else {
            memcpy(at, iov->iov_base, iov->iov_len);
        }
        at += iov->iov_len;
    }
    return 0;
}

bool backend_ram_step(struct backend_ram *ram, uint32_t index)
{
    struct backend_ram_request request;

    if (index >= ram->count) {
        return false;
    }
    request = ram->queue[index];
    ram->count--;
    memmove(&ram->queue[index], &ram->queue[index + 1],
            (ram->count - index) * sizeof(ram->queue[0]));
    ram->done(ram->ctx, request.id, execute_request(ram, &request));
    return true;
}

void backend_ram_power_cut(struct backend_ram *ram)
{
    ram->count = 0;
    memcpy(ram->written, ram->stable, ram->size_bytes);
}
