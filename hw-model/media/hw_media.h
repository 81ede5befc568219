/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Core of the media engine: command queues, DMA, volatile write cache.
 * Reference: docs/hardware/media.md; registers in hw-model/regs/media.h.
 *
 * It has one execution context: the wrapper calls register accesses, run, timer
 * and back-end completions under one lock.
 *
 * The saved state is struct hw_media_regs alone.  The wrapper quiesces the
 * engine before it saves (hw_media_quiesce()); after that, no command is in
 * progress and the cache is empty.
 */
#ifndef ESSD_HW_MEDIA_H
#define ESSD_HW_MEDIA_H

#include "hw-model/core/dev_queue.h"
#include "hw-model/core/env.h"
#include "hw-model/media/media_backend.h"
#include "hw-model/media/media_cache.h"
#include "lib/trace.h"
#include "lib/util.h"

/* Sizes from regs/media.h, repeated here; hw_media.c asserts that they agree.
 */
enum {
    HW_MEDIA_QUEUES = 4,
    HW_MEDIA_PIECES = 64,
    HW_MEDIA_OPS = 512,
    HW_MEDIA_COUNTERS = 19,
};

enum {
    HW_MEDIA_SLICES = 64, /* requests for parts of commands, at most */
    HW_MEDIA_BATCHES = 8, /* destage requests in progress, at most */
    /* Lines of 4 KiB in a destage request, at most. */
    HW_MEDIA_BATCH_LINES = 64,
    /* The ids of destage requests begin here: see media_backend.h. */
    HW_MEDIA_BATCH_ID0 = HW_MEDIA_OPS + HW_MEDIA_SLICES,
};
_Static_assert(HW_MEDIA_OPS + HW_MEDIA_SLICES + HW_MEDIA_BATCHES + 1 ==
                   HW_MEDIA_IO_IDS,
               "every request has its id, see media_backend.h");

struct hw_media_config {
    struct dev_env env; /* interrupt line 0 */
    struct media_backend backend;
    uint64_t capacity_bytes;   /* a multiple of 4096 */
    uint64_t cache_bytes;      /* a multiple of 4096; 0: no cache */
    void *cache_memory;        /* media_cache_memory_bytes() bytes of memory */
    const struct trace *trace; /* outlives the engine; NULL: no tracing */
    /* Dirty data is not destaged because of idleness or age. */
    bool keeps_dirty;
    /* Called when a host reads blocks of the cache: those of the medium from
     * byte `first` to byte `end`, excluded.  @return how many bits of a word of
     * these blocks are wrong.  NULL: the cache has no errors. */
    uint32_t (*cache_bits)(void *ctx, uint64_t first, uint64_t end);
    void *cache_ctx;
};

/* ---- State that is saved */

struct hw_media_regs {
    uint32_t irq_status;
    uint32_t irq_enable;
    uint32_t block_shift;
    uint32_t cache_ctrl;
    uint32_t counter_high; /* latched by reading a low word */
    uint64_t counters[HW_MEDIA_COUNTERS];
    struct dev_queue queues[HW_MEDIA_QUEUES];
};

/* ---- State that is empty while the engine is quiet */

enum hw_media_op_state {
    HW_OP_FREE,  /* Unused. */
    HW_OP_FILL,  /* Copies data into the cache; may wait for room there. */
    HW_OP_SYNC,  /* Destages its own blocks; waits for their batches. */
    HW_OP_DRAIN, /* Destages the whole cache; waits for its epoch. */
    HW_OP_IO,    /* Waits for its own requests to the medium. */
    HW_OP_FLUSH, /* Waits for a flush of the medium. */
    HW_OP_STATES,
};

struct hw_media_op {
    uint8_t state; /* enum hw_media_op_state */
    uint8_t opcode;
    uint8_t queue;
    uint8_t status;       /* enum media_cqe_status found so far */
    bool is_durable;      /* data must be on the medium when this completes */
    bool is_orphan;       /* its queue was disabled: no completion is written */
    bool sync_started;    /* SYNC: a batch destages the cursor's line */
    uint8_t sync_batch;   /* that batch's index */
    uint32_t sync_serial; /* and its serial, which changes when it ends */
    bool touched_medium;  /* the read needed the medium */
    bool is_traced;       /* its start was traced, and its end will be */
    bool has_range;       /* it is in the list of reads or of writes */
    uint16_t num_iov;
    uint16_t iov_index; /* position of the cursor in the buffer */
    uint32_t iov_offset;
    uint32_t pending; /* its requests in progress */
    uint32_t epoch;   /* the epoch that HW_OP_DRAIN waits for */
    uint32_t next;    /* next operation of the same list */
    uint32_t tag;     /* what traces call it */
    uint32_t range;   /* its index in the list of reads or of writes */
    uint64_t cookie;
    uint64_t started_ns; /* when it is traced: the time of its start */
    uint64_t first;      /* in sectors of 512 bytes */
    uint64_t end;
    uint64_t cursor;
    struct iovec iov[HW_MEDIA_PIECES];
};

/* A list, first in, first out, linked through hw_media_op.next. */
struct hw_media_list {
    uint32_t head;
    uint32_t tail;
};

/* The blocks of a command that has been taken and has not ended. */
struct hw_media_range {
    uint64_t first; /* in sectors of 512 bytes */
    uint64_t end;
    uint64_t serial; /* those that were taken later have larger ones */
    uint32_t op;
};

struct hw_media_ranges {
    uint32_t count;
    struct hw_media_range range[HW_MEDIA_OPS]; /* in any order */
};

/* A request to read a part of a command that is not in the cache. */
struct hw_media_slice {
    uint32_t op;
    uint32_t next_free;
    struct iovec iov[HW_MEDIA_PIECES];
};

/* A request that writes cached lines to the medium. */
struct hw_media_batch {
    uint32_t next_free;
    uint32_t serial; /* counts the requests that have used this entry */
    uint32_t num_parts;
    struct media_cache_part parts[HW_MEDIA_BATCH_LINES];
    struct iovec iov[HW_MEDIA_BATCH_LINES];
};

struct hw_media {
    struct hw_media_config config; /* not part of the state */
    struct hw_media_regs regs;

    struct media_cache cache;
    struct hw_media_op ops[HW_MEDIA_OPS];
    struct hw_media_slice slices[HW_MEDIA_SLICES];
    struct hw_media_batch batches[HW_MEDIA_BATCHES];
    uint32_t free_op;
    uint32_t free_slice;
    uint32_t free_batch;
    uint32_t active_ops;
    /* Commands taken and not completed. */
    uint32_t outstanding[HW_MEDIA_QUEUES];
    uint32_t batches_inflight;

    struct hw_media_ranges read_ranges;
    struct hw_media_ranges
        write_ranges; /* of all commands that change blocks */
    uint64_t next_serial;
    /* Operations that have not begun: they wait until earlier reads, or writes,
     * of their blocks have ended. */
    struct hw_media_list overlap_waiters;

    struct hw_media_list room_waiters; /* FILL: wait for lines and pages */
    struct hw_media_list io_waiters; /* SYNC, IO: wait for any request to end */
    /* DRAIN: wait, in the order of their epochs. */
    struct hw_media_list drain_waiters;
    struct hw_media_list flush_waiters; /* FLUSH: wait for the next flush */
    /* FLUSH: wait for the flush in progress. */
    struct hw_media_list flush_running;

    bool is_flushing;     /* a flush of the back-end is in progress */
    bool medium_dirty;    /* writes have completed that no flush covers */
    bool is_draining;     /* the cache is being emptied: idle, or stopping */
    bool above_threshold; /* the cache is being emptied down to the low mark */
    bool is_stopped;      /* the machine is stopped: no commands are taken */
    /* Destaging pauses until the timer or the next flush. */
    bool destage_failed;
    bool is_starved;    /* commands wait for a free operation */
    bool overlap_ended; /* a command has ended, and others may wait for it */
    bool timer_armed;
    bool is_resetting;      /* MEDIA_CTRL.RESET is 1 until active_ops is 0 */
    uint8_t destage_status; /* enum media_cqe_status: why destaging failed */
    uint8_t notify;         /* queues with new completions, one bit each */
    uint32_t writes;        /* number of writes into the cache so far */
    uint32_t writes_at_timer;
    uint32_t timer_ticks;
};

/** Power-on: the cache is empty and the registers have their reset values. */
void hw_media_init(struct hw_media *media,
                   const struct hw_media_config *config);

/**
 * Machine reset: disables the queues and resets the registers.  The cache keeps
 * its contents, since the power stays on.  Before DRAM is used again, the
 * caller waits until hw_media_has_dma() is false.
 */
void hw_media_reset(struct hw_media *media);

/** Whether commands from before the reset still access DRAM. */
bool hw_media_has_dma(const struct hw_media *media);

/**
 * Access a register; `offset` is a multiple of 4.
 * @return false when there is no such register
 */
MUST_USE bool hw_media_read(struct hw_media *media, uint32_t offset,
                            uint32_t *value);
MUST_USE bool hw_media_write(struct hw_media *media, uint32_t offset,
                             uint32_t value);

/** Do the work that env.defer() asked for. */
void hw_media_run(struct hw_media *media);

/** The deadline of env.set_timer() has passed. */
void hw_media_timer(struct hw_media *media);

/** A word of the cache had wrong bits when it was read.
 * @param is_lost  more than one */
void hw_media_note_cache_error(struct hw_media *media, bool is_lost);

/** A request to the back-end has ended. @param result  0 or -errno */
void hw_media_io_done(struct hw_media *media, uint32_t id, int result);

/**
 * Stop the engine with the machine: it takes no more commands, completes those
 * in progress, empties the cache and flushes the medium.  It has finished when
 * hw_media_is_quiet() is true.
 */
void hw_media_quiesce(struct hw_media *media);
void hw_media_resume(struct hw_media *media);

/**
 * Whether nothing is in progress and, unless destaging fails, the cache is
 * empty.
 */
bool hw_media_is_quiet(const struct hw_media *media);

/**
 * Check and adopt the fields of hw_media_regs after they were loaded.
 *
 * @return false when they are invalid; the engine must then not be used
 */
MUST_USE bool hw_media_loaded(struct hw_media *media);

#endif
