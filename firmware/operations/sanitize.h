/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sanitize operation: it erases or overwrites the whole medium, whichever
 * namespace a block belongs to, and also what belongs to none.
 *
 *   block erase  all blocks are deallocated; they then read as zeroes.  When
 *                they must not be deallocated, zeroes are written instead.
 *   overwrite    a pattern is written once or several times, each time to the
 *                end of the medium and flushed before the next one begins.
 *                Then the blocks are deallocated, unless the command forbids
 *                it.
 *
 * A medium that keeps old contents, as NAND flash does, is wiped as a whole
 * before the first pass, and once more instead of the deallocation.
 *
 * The operation is in flash before anything is erased, so that a power cut only
 * suspends it.  Its progress is recorded at the end of each pass and once a
 * minute.
 * Spec: NVM Express Base 1.4 section 8.15; docs/hardware/flash.md, "Sanitize"
 */
#ifndef ESSD_OPERATIONS_SANITIZE_H
#define ESSD_OPERATIONS_SANITIZE_H

#include "firmware/hal/log.h"
#include "firmware/operations/operation_store.h"
#include "nvmeof/limits.h"
#include "storage/block/media.h"
#include "nvmeof/target/operations.h"

enum {
    SANITIZE_BUFFER_BYTES = 128 * 1024, /* holds the pattern */
    SANITIZE_WRITE_BYTES = SANITIZE_BUFFER_BYTES * NVMF_MAX_PIECES,
    SANITIZE_ERASE_BYTES = 64 * 1024 * 1024, /* of one erasure */
    SANITIZE_CHECKPOINT_US = 60 * 1000 * 1000,
    SANITIZE_RECORD_LEN = 64,
};

/* The state that a power cut must not destroy. */
struct sanitize_state {
    enum nvmf_sanitize_outcome outcome;
    bool is_blocking;         /* FAILED, and no recovery has taken place */
    bool is_erased;           /* nobody has written since the last success */
    struct nvmf_sanitize job; /* unless outcome is NEVER */
    uint8_t passes;           /* that are complete */
    uint64_t done_blocks;     /* of the current pass, 512 bytes each */
};

struct sanitize_config {
    struct log *log;
    uint64_t medium_blocks; /* of 512 bytes */
    bool is_short;          /* namespaces extend beyond the end of the medium */
    uint8_t *buffer;        /* SANITIZE_BUFFER_BYTES that the medium can use */
    struct operation_store store;

    /* Start an operation at the medium, in blocks of 512 bytes. */
    bool (*submit)(void *ctx, const struct media_io *io);
    /* Erase the whole medium, also contents that no block shows any more.
     * NULL: it needs no wipe, because deallocation erases its blocks. */
    bool (*wipe)(void *ctx, struct media_owner *owner);
    void *submit_ctx;

    uint64_t (*power_on_hours)(void *ctx);
    /* The operation has ended.  is_ok: nothing is left of the former data. */
    void (*ended)(void *ctx, bool is_ok);
    void *ctx;
};

/* Treat as opaque. */
struct sanitize {
    struct sanitize_config config;
    struct sanitize_state state;
    bool is_busy;             /* an operation is in progress at the medium */
    struct media_owner owner; /* of that operation */
    struct nvmf_piece pieces[NVMF_MAX_PIECES]; /* of that operation */
    bool has_status;                           /* it has ended with `status` */
    enum media_status status;
    bool is_flushing;       /* the operation at the medium is a flush */
    bool is_wiping;         /* it is a wipe */
    bool is_wiped;          /* the medium was wiped in this pass */
    uint32_t io_blocks;     /* its length, if it is no flush */
    bool is_filled;         /* the buffer has the pattern of this pass */
    bool is_clock_running;  /* checkpoint_us is set */
    uint64_t checkpoint_us; /* when the progress is recorded at the latest */
    uint32_t writes;        /* of the record, ever */
};

/** Start with what is in flash. */
void sanitize_init(struct sanitize *sanitize,
                   const struct sanitize_config *config);

/** The functions of the target's seam. */
enum nvmf_volume_result sanitize_start(struct sanitize *sanitize,
                                       const struct nvmf_sanitize *job);
MUST_USE bool sanitize_exit_failure(struct sanitize *sanitize);
void sanitize_read(const struct sanitize *sanitize,
                   struct nvmf_sanitize_now *now);

/** Whether a write of a host has to be reported by sanitize_note_write(). */
bool sanitize_is_erased(const struct sanitize *sanitize);

/** A host is about to write, for the first time after a success. */
void sanitize_note_write(struct sanitize *sanitize);

/**
 * Do what is due.
 *
 * @return when to call again at the latest; UINT64_MAX: only when a command has
 *         started an operation
 */
uint64_t sanitize_step(struct sanitize *sanitize, uint64_t now_us);

/** @param buf  SANITIZE_RECORD_LEN bytes, all written */
void sanitize_record_emit(const struct sanitize_state *state, uint8_t *buf);
MUST_USE bool sanitize_record_parse(struct sanitize_state *state,
                                    const uint8_t *buf, size_t len);

#endif
