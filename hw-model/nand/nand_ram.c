/* SPDX-License-Identifier: BSD-2-Clause */
/* Storage of a NAND array in memory: see nand_ram.h. */
#include "hw-model/nand/nand_ram.h"

#include <string.h>

#include "lib/random.h"

enum { TEAR_BYTES = 64 }; /* a write is torn at multiples of this */

void nand_ram_init(struct nand_ram *ram, uint8_t *bytes, uint64_t size_bytes)
{
    ram->bytes = bytes;
    ram->size_bytes = size_bytes;
    ram_queue_init(&ram->queue, size_bytes, 1);
    ram->done = NULL;
    ram->ctx = NULL;
    ram->fail_reads = 0;
    ram->fail_writes = 0;
}

void nand_ram_copy(struct nand_ram *to, const struct nand_ram *from)
{
    ASSERT(to->size_bytes == from->size_bytes);
    memcpy(to->bytes, from->bytes, from->size_bytes);
    ram_queue_copy(&to->queue, &from->queue);
    to->fail_reads = from->fail_reads;
    to->fail_writes = from->fail_writes;
}

struct nand_backend nand_ram_backend(struct nand_ram *ram)
{
    return (struct nand_backend){
        .ctx = &ram->queue,
        .readv = ram_queue_readv,
        .writev = ram_queue_writev,
        .discard = ram_queue_zero,
        .flush = ram_queue_flush,
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

bool nand_ram_step(struct nand_ram *ram, uint32_t index)
{
    struct ram_request request;
    int failure;

    if (!ram_queue_take(&ram->queue, index, &request)) {
        return false;
    }
    failure = request.kind == RAM_READ ? ram->fail_reads : ram->fail_writes;
    if (failure == 0) {
        ram_request_execute(&request, ram->bytes, request.len);
    }
    ram->done(ram->ctx, request.id, -failure);
    return true;
}

void nand_ram_power_cut(struct nand_ram *ram, uint64_t seed)
{
    for (uint32_t i = 0; i < ram->queue.count; i++) {
        const struct ram_request *request = &ram->queue.requests[i];
        uint64_t choice = random_next(&seed) % 3, len = 0;

        if (request->kind == RAM_READ) {
            continue;
        }
        if (choice == 1) {
            len = request->len;
        } else if (choice == 2) {
            len = random_next(&seed) % (request->len / TEAR_BYTES + 1) *
                  TEAR_BYTES;
        }
        if (ram->fail_writes == 0) {
            ram_request_execute(request, ram->bytes, len);
        }
    }
    ram->queue.count = 0;
}
