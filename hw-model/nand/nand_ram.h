/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Storage of a NAND array in memory, for native programs.  It completes
 * requests when it is told to, fails requests on demand, and in a power cut
 * leaves of each request in progress what a killed process leaves.
 */
#ifndef ESSD_HW_NAND_RAM_H
#define ESSD_HW_NAND_RAM_H

#include "hw-model/core/ram_queue.h"
#include "hw-model/core/sparse_bytes.h"
#include "hw-model/nand/nand_backend.h"
#include "hw-model/nand/nand_file.h"

enum {
    NAND_RAM_CHUNK = 4096,
    /* See `thin`. */
    NAND_RAM_THIN = 512,
    NAND_RAM_THIN_LEN = 16,
};

struct nand_ram {
    uint8_t *bytes;              /* the storage, or NULL if it is in `sparse` */
    struct sparse_bytes *sparse; /* or NULL */
    uint64_t size_bytes;
    struct ram_queue queue; /* requests in progress */

    /* Called for each request that ends: nand_array_io_done(). */
    void (*done)(void *ctx, uint32_t id, int result);
    void *ctx;

    /* One for each NAND_RAM_CHUNK bytes of storage: whether any of them were
     * written, since this was cleared.  May be NULL; not with `sparse`. */
    bool *written;

    /* Reads of all data of a unit to this memory copy only the first
     * NAND_RAM_THIN_LEN of every NAND_RAM_THIN bytes: its owner knows that
     * nobody looks at the others.  Discards are ignored then, which storage
     * may do.  NULL: all reads copy everything. */
    const uint8_t *thin;
    uint64_t thin_bytes;

    bool queues_programs; /* a native machine has NAND_GEOMETRY2.QUEUES */

    int fail_reads;  /* 0, or the errno with which every read fails */
    int fail_writes; /* the same of writes, discards and flushes */
    /*
     * Decides about each write, discard and flush, unless it is NULL.  Reduce
     * *len to the number of bytes from the beginning that are to be executed.
     * @return 0, or the errno with which the request fails
     */
    int (*judge)(void *ctx, const struct ram_request *request, uint64_t *len);
    void *judge_ctx;
};

/** `bytes` has `size_bytes` bytes and outlives `ram`. */
void nand_ram_init(struct nand_ram *ram, uint8_t *bytes, uint64_t size_bytes);

/** Use storage in which zeros take no memory. */
void nand_ram_init_sparse(struct nand_ram *ram, struct sparse_bytes *sparse);

/**
 * Copy storage and requests in progress.  `to` has `bytes` of the same size and
 * its own `done` and `ctx`.  Neither of the two is sparse.
 */
void nand_ram_copy(struct nand_ram *to, const struct nand_ram *from);

/** How many entries `written` needs. */
size_t nand_ram_chunks(const struct nand_ram *ram);

/** Somebody has changed bytes of `bytes` itself. */
void nand_ram_note_write(struct nand_ram *ram, uint64_t offset, uint64_t len);

/**
 * The same as nand_ram_copy() for storage that was a copy when `written` of it
 * was cleared: copy what was written since then, and clear it.
 */
void nand_ram_restore(struct nand_ram *to, const struct nand_ram *from);

/** The back-end to pass to the array, and the source to open it from. */
struct nand_backend nand_ram_backend(struct nand_ram *ram);
struct nand_file_source nand_ram_source(struct nand_ram *ram);

/** Write a new array. */
void nand_ram_create(struct nand_ram *ram, const struct nand_file *file);

/**
 * Complete the request at `index` (0: the oldest) of those in progress.
 *
 * @return false when there is none
 */
bool nand_ram_step(struct nand_ram *ram, uint32_t index);

/**
 * Fail the power.  Of each write in progress nothing is left, or everything, or
 * a part from the beginning: the seed decides.  Writes of up to 64 bytes are
 * not torn.
 */
void nand_ram_power_cut(struct nand_ram *ram, uint64_t seed);

#endif
