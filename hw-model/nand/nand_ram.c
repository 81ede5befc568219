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
    ram->written = NULL;
    ram->thin = NULL;
    ram->thin_bytes = 0;
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

static void copy_rest(struct nand_ram *to, const struct nand_ram *from)
{
    ram_queue_copy(&to->queue, &from->queue);
    to->fail_reads = from->fail_reads;
    to->fail_writes = from->fail_writes;
}

void nand_ram_copy(struct nand_ram *to, const struct nand_ram *from)
{
    ASSERT(to->size_bytes == from->size_bytes && to->bytes != NULL &&
           from->bytes != NULL);
    memcpy(to->bytes, from->bytes, from->size_bytes);
    copy_rest(to, from);
}

size_t nand_ram_chunks(const struct nand_ram *ram)
{
    return (size_t)((ram->size_bytes + NAND_RAM_CHUNK - 1) / NAND_RAM_CHUNK);
}

void nand_ram_note_write(struct nand_ram *ram, uint64_t offset, uint64_t len)
{
    uint64_t first = offset / NAND_RAM_CHUNK;

    if (ram->written != NULL && len != 0) {
        memset(&ram->written[first], true,
               (offset + len - 1) / NAND_RAM_CHUNK - first + 1);
    }
}

void nand_ram_restore(struct nand_ram *to, const struct nand_ram *from)
{
    size_t chunks = nand_ram_chunks(to);

    ASSERT(to->size_bytes == from->size_bytes && to->written != NULL &&
           from->bytes != NULL);
    for (size_t i = 0; i < chunks; i++) {
        uint64_t offset = (uint64_t)i * NAND_RAM_CHUNK;

        if (to->written[i]) {
            memcpy(to->bytes + offset, from->bytes + offset,
                   MIN((uint64_t)NAND_RAM_CHUNK, to->size_bytes - offset));
            to->written[i] = false;
        }
    }
    copy_rest(to, from);
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
        nand_ram_note_write(ram, offset, len);
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

/* Whether a vector of a read is in the memory of which only a few bytes are
 * copied: see `thin`. */
static bool is_thin(const struct nand_ram *ram, const struct iovec *iov)
{
    const uint8_t *base = iov->iov_base;

    return base >= ram->thin && base < ram->thin + ram->thin_bytes &&
           iov->iov_len == NAND_UNIT_DATA;
}

static void read_thinly(const struct nand_ram *ram,
                        const struct ram_request *request)
{
    const uint8_t *at = ram->bytes + request->offset;

    for (unsigned int i = 0; i < request->niov; i++) {
        uint8_t *to = request->iov[i].iov_base;
        size_t len = request->iov[i].iov_len;

        if (!is_thin(ram, &request->iov[i])) {
            memcpy(to, at, len);
        } else {
            for (size_t j = 0; j < len; j += NAND_RAM_THIN) {
                memcpy(to + j, at + j, NAND_RAM_THIN_LEN);
            }
        }
        at += len;
    }
}

static void execute_part(struct nand_ram *ram,
                         const struct ram_request *request, uint64_t len)
{
    if (ram->sparse != NULL) {
        execute_sparse(request, ram->sparse, len);
    } else if (ram->thin != NULL && request->kind == RAM_READ) {
        read_thinly(ram, request);
    } else if (ram->thin == NULL || request->kind != RAM_ZERO) {
        ram_request_execute(request, ram->bytes, len);
        if (request->kind != RAM_READ) {
            nand_ram_note_write(ram, request->offset, len);
        }
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
