/* SPDX-License-Identifier: BSD-2-Clause */
/* Storage of a NAND array in memory: see nand_ram.h. */
#include "hw-model/nand/nand_ram.h"

#include <string.h>

#include "lib/random.h"

enum { TEAR_BYTES = 64 }; /* a write is torn at multiples of this */

void nand_ram_init(struct nand_ram *ram, uint8_t *bytes, uint64_t size_bytes)
{
    ram->bytes = bytes;
    ram->sparse = NULL;
    ram->size_bytes = size_bytes;
    ram_queue_init(&ram->queue, size_bytes, 1);
    ram->done = NULL;
    ram->ctx = NULL;
    ram->fail_reads = 0;
    ram->fail_writes = 0;
    ram->judge = NULL;
}

void nand_ram_init_sparse(struct nand_ram *ram, struct sparse_bytes *sparse)
{
    nand_ram_init(ram, NULL, sparse->size_bytes);
    ram->sparse = sparse;
}

void nand_ram_copy(struct nand_ram *to, const struct nand_ram *from)
{
    ASSERT(to->size_bytes == from->size_bytes && to->bytes != NULL &&
           from->bytes != NULL);
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
    if (ram->sparse != NULL) {
        sparse_bytes_read(ram->sparse, offset, buf, len);
    } else {
        memcpy(buf, ram->bytes + offset, len);
    }
    return true;
}

static void write_now(struct nand_ram *ram, uint64_t offset, const void *buf,
                      size_t len)
{
    if (ram->sparse != NULL) {
        sparse_bytes_write(ram->sparse, offset, buf, len);
    } else {
        memcpy(ram->bytes + offset, buf, len);
    }
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

    uint8_t header[NAND_FILE_HEADER_LEN], state[NAND_STATE_LEN];

    nand_header_emit(file, header);
    write_now(ram, 0, header, sizeof(header));
    nand_state_emit(&file->state, state);
    write_now(ram, nand_layout_state(file->state.number), state, sizeof(state));
    for (uint32_t i = 0; i < blocks; i++) {
        struct nand_record record;
        uint8_t buf[NAND_RECORD_LEN];

        nand_file_new_record(file, i, &record);
        nand_record_emit(&record, i, buf);
        write_now(ram, nand_layout_record(i), buf, sizeof(buf));
    }
}

static void execute_sparse(const struct ram_request *request,
                           struct sparse_bytes *sparse, uint64_t len)
{
    uint64_t offset = request->offset;

    if (request->kind == RAM_ZERO) {
        sparse_bytes_zero(sparse, offset, len);
    }
    for (unsigned int i = 0; i < request->niov && len != 0; i++) {
        const struct iovec *iov = &request->iov[i];
        size_t part = MIN(iov->iov_len, len);

        if (request->kind == RAM_READ) {
            sparse_bytes_read(sparse, offset, iov->iov_base, part);
        } else {
            sparse_bytes_write(sparse, offset, iov->iov_base, part);
        }
        offset += part;
        len -= part;
    }
}

static void execute_part(struct nand_ram *ram,
                         const struct ram_request *request, uint64_t len)
{
    if (ram->sparse != NULL) {
        execute_sparse(request, ram->sparse, len);
    } else {
        ram_request_execute(request, ram->bytes, len);
    }
}

/* Execute a request, or as much of it as does not fail. @return 0, or errno */
static int execute_request(struct nand_ram *ram,
                           const struct ram_request *request, uint64_t len)
{
    int failure =
        request->kind == RAM_READ ? ram->fail_reads : ram->fail_writes;

    if (failure != 0) {
        return failure;
    }
    if (ram->judge != NULL && request->kind != RAM_READ) {
        failure = ram->judge(ram->judge_ctx, request, &len);
    }
    execute_part(ram, request, len);
    return failure;
}

bool nand_ram_step(struct nand_ram *ram, uint32_t index)
{
    struct ram_request request;
    int failure;

    if (!ram_queue_take(&ram->queue, index, &request)) {
        return false;
    }
    failure = execute_request(ram, &request, request.len);
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
        (void)execute_request(ram, request, len);
    }
    ram->queue.count = 0;
}
