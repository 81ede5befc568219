/* SPDX-License-Identifier: BSD-2-Clause */
/* Storage of a NAND array in memory: see nand_ram.h. */
#include "hw-model/nand/nand_ram.h"

#include <string.h>

#include "lib/random.h"

enum { TEAR_BYTES = 64 }; /* a write is torn at multiples of this */

static uint64_t total_bytes(const struct iovec *iov, unsigned int niov)
{
    uint64_t len = 0;

    for (unsigned int i = 0; i < niov; i++) {
        len += iov[i].iov_len;
    }
    return len;
}

static void start_request(struct nand_ram *ram,
                          const struct nand_ram_request *request)
{
    ASSERT(ram->count < ARRAY_LEN(ram->queue));
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
                  &(struct nand_ram_request){.kind = NAND_RAM_READ,
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
                  &(struct nand_ram_request){.kind = NAND_RAM_WRITE,
                                             .id = id,
                                             .niov = niov,
                                             .iov = iov,
                                             .offset = offset,
                                             .len = total_bytes(iov, niov)});
}

static void ram_discard(void *ctx, uint32_t id, uint64_t offset, uint64_t len)
{
    start_request(ctx, &(struct nand_ram_request){.kind = NAND_RAM_DISCARD,
                                                  .id = id,
                                                  .offset = offset,
                                                  .len = len});
}

static void ram_flush(void *ctx, uint32_t id)
{
    start_request(ctx,
                  &(struct nand_ram_request){.kind = NAND_RAM_FLUSH, .id = id});
}

void nand_ram_init(struct nand_ram *ram, uint8_t *bytes, uint64_t size_bytes)
{
    memset(ram, 0, sizeof(*ram));
    ram->bytes = bytes;
    ram->size_bytes = size_bytes;
}

struct nand_backend nand_ram_backend(struct nand_ram *ram)
{
    return (struct nand_backend){
        .ctx = ram,
        .readv = ram_readv,
        .writev = ram_writev,
        .discard = ram_discard,
        .flush = ram_flush,
    };
}

static bool read_now(void *ctx, uint64_t offset, void *buf, size_t len)
{
    const struct nand_ram *ram = ctx;

    if (ram->fail_reads != 0 || offset + len > ram->size_bytes) {
        return false;
    }
    memcpy(buf, ram->bytes + offset, len);
    return true;
}

struct nand_file_source nand_ram_source(struct nand_ram *ram)
{
    return (struct nand_file_source){
        .ctx = ram,
        .size_bytes = ram->size_bytes,
        .read = read_now,
    };
}

void nand_ram_create(struct nand_ram *ram, const struct nand_file *file)
{
    uint32_t blocks = nand_geometry_blocks(&file->geometry);

    nand_header_emit(file, ram->bytes);
    nand_state_emit(&file->state,
                    ram->bytes + nand_layout_state(file->state.number));
    for (uint32_t i = 0; i < blocks; i++) {
        struct nand_record record;

        nand_file_new_record(file, i, &record);
        nand_record_emit(&record, i, ram->bytes + nand_layout_record(i));
    }
}

/* Execute the first `len` bytes of a request. */
static int execute_request(struct nand_ram *ram,
                           const struct nand_ram_request *request, uint64_t len)
{
    uint8_t *at = ram->bytes + request->offset;
    int failure =
        request->kind == NAND_RAM_READ ? ram->fail_reads : ram->fail_writes;

    if (failure != 0) {
        return -failure;
    }
    if (request->kind == NAND_RAM_DISCARD) {
        memset(at, 0, len);
    }
    for (unsigned int i = 0; i < request->niov && len != 0; i++) {
        const struct iovec *iov = &request->iov[i];
        size_t part = MIN(iov->iov_len, len);

        if (request->kind == NAND_RAM_READ) {
            memcpy(iov->iov_base, at, part);
        } else {
            memcpy(at, iov->iov_base, part);
        }
        at += part;
        len -= part;
    }
    return 0;
}

bool nand_ram_step(struct nand_ram *ram, uint32_t index)
{
    struct nand_ram_request request;

    if (index >= ram->count) {
        return false;
    }
    request = ram->queue[index];
    ram->count--;
    memmove(&ram->queue[index], &ram->queue[index + 1],
            (ram->count - index) * sizeof(ram->queue[0]));
    ram->done(ram->ctx, request.id,
              execute_request(ram, &request, request.len));
    return true;
}

void nand_ram_power_cut(struct nand_ram *ram, uint64_t seed)
{
    for (uint32_t i = 0; i < ram->count; i++) {
        const struct nand_ram_request *request = &ram->queue[i];
        uint64_t choice = random_next(&seed) % 3, len = 0;

        if (request->kind == NAND_RAM_READ) {
            continue;
        }
        if (choice == 1) {
            len = request->len;
        } else if (choice == 2) {
            len = random_next(&seed) % (request->len / TEAR_BYTES + 1) *
                  TEAR_BYTES;
        }
        (void)execute_request(ram, request, len);
    }
    ram->count = 0;
}
