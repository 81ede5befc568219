/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Core of the media engine: command queues, DMA, volatile write cache.
 * Reference: docs/hardware/media.md; registers in hw-model/regs/media.h.
 *
 * It has one execution context: the wrapper calls register accesses, run, timer
 * and back-end completions under one lock.
 *
 * Saved state is struct hw_media_regs alone: the wrapper quiesces the engine
 * first (hw_media_quiesce()), after which no command is under way and the cache
 * is empty.
 */
#ifndef ESSD_HW_MEDIA_H
#define ESSD_HW_MEDIA_H

#include "hw-model/core/env.h"
#include "hw-model/media/media_backend.h"
#include "hw-model/media/media_cache.h"
#include "lib/util.h"

/* Sizes from regs/media.h, repeated here; hw_media.c asserts that they agree.
 */
enum {
    HW_MEDIA_QUEUES = 4,
    HW_MEDIA_PIECES = 64,
    HW_MEDIA_OPS = 512,
    HW_MEDIA_COUNTERS = 17,
};

enum {
    HW_MEDIA_SLICES = 64,      /* requests for parts of a command */
    HW_MEDIA_BATCHES = 8,      /* destage requests at once */
    HW_MEDIA_BATCH_LINES = 64, /* of 4 KiB each */
};
_Static_assert(HW_MEDIA_OPS + HW_MEDIA_SLICES + HW_MEDIA_BATCHES + 1 ==
                   HW_MEDIA_IO_IDS,
               "every request has its id, see media_backend.h");

struct hw_media_config {
    struct dev_env env; /* interrupt line 0 */
    struct media_backend backend;
    uint64_t capacity_bytes; /* a multiple of 4096 */
    uint64_t cache_bytes;    /* a multiple of 4096; 0: no cache */
    void *cache_memory;      /* media_cache_memory_bytes() of it */
    bool keeps_dirty;        /* do not destage because of idleness or age */
};

/* ---- State that is saved */

struct hw_media_queue {
    uint32_t page[2]; /* low and high word of the address */
    uint32_t cmd[2];
    uint32_t cq[2];
    uint32_t sizes;

    /* Latched by ENABLE. */
    uint8_t is_on;
    uint64_t page_addr;
    uint64_t cmd_addr;
    uint64_t cq_addr;
    uint32_t cmd_mask;
    uint32_t cq_mask;

    uint32_t cmd_ci; /* commands taken */
    uint32_t cq_pi;  /* completions written */
};

struct hw_media_regs {
    uint32_t irq_status;
    uint32_t irq_enable;
    uint32_t block_shift;
    uint32_t cache_ctrl;
    uint32_t counter_high; /* latched by reading a low word */
    uint64_t counters[HW_MEDIA_COUNTERS];
    struct hw_media_queue queues[HW_MEDIA_QUEUES];
};

/* ---- State that is empty when the engine is quiet */

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
    uint8_t status;       /* enum media_cqe_status so far */
    bool is_durable;      /* must be on the medium when it completes */
    bool is_orphan;       /* its queue was disabled: write no completion */
    bool sync_started;    /* SYNC: a batch destages the cursor's line */
    uint8_t sync_batch;   /* that batch's index */
    uint32_t sync_serial; /* and its serial, which changes when it ends */
    bool touched_medium;  /* a read that needed the medium */
    uint16_t num_iov;
    uint16_t iov_index; /* the cursor's place in the buffer */
    uint32_t iov_offset;
    uint32_t pending; /* requests in progress */
    uint32_t epoch;   /* the one that HW_OP_DRAIN waits for */
    uint32_t next;    /* next operation of the list it is in */
    uint64_t cookie;
    uint64_t first; /* sectors of 512 bytes */
    uint64_t end;
    uint64_t cursor;
    struct iovec iov[HW_MEDIA_PIECES];
};

/* First in, first out, through hw_media_op.next. */
struct hw_media_list {
    uint32_t head;
    uint32_t tail;
};

/* A read of the part of a command that is not in the cache. */
struct hw_media_slice {
    uint32_t op;
    uint32_t next_free;
    struct iovec iov[HW_MEDIA_PIECES];
};

/* A request that writes cached lines to the medium. */
struct hw_media_batch {
    uint32_t next_free;
    uint32_t serial; /* counts the requests that this entry has had */
    uint32_t num_parts;
    struct media_cache_part parts[HW_MEDIA_BATCH_LINES];
    struct iovec iov[HW_MEDIA_BATCH_LINES];
};

struct hw_media {
    struct hw_media_config config; /* not state */
    struct hw_media_regs regs;

    struct media_cache cache;
    struct hw_media_op ops[HW_MEDIA_OPS];
    struct hw_media_slice slices[HW_MEDIA_SLICES];
    struct hw_media_batch batches[HW_MEDIA_BATCHES];
    uint32_t free_op;
    uint32_t free_slice;
    uint32_t free_batch;
    uint32_t active_ops;
    uint32_t outstanding[HW_MEDIA_QUEUES]; /* taken and not completed */
    uint32_t batches_inflight;

    struct hw_media_list room_waiters;  /* FILL: for lines and pages */
    struct hw_media_list io_waiters;    /* SYNC, IO: for any request to end */
    struct hw_media_list drain_waiters; /* DRAIN: in order of their epochs */
    struct hw_media_list flush_waiters; /* FLUSH: for the next one */
    struct hw_media_list flush_running; /* FLUSH: for the one under way */

    bool is_flushing;     /* the back-end's flush is under way */
    bool medium_dirty;    /* completed writes that no flush covers */
    bool is_draining;     /* empty the cache: idle, or stopping */
    bool above_threshold; /* empty it down to the low mark */
    bool is_stopped;      /* the machine stands still: take no commands */
    bool destage_failed;  /* pause until the timer, or the next flush */
    bool is_starved;      /* commands wait for an operation slot */
    bool timer_armed;
    bool is_resetting;      /* MEDIA_CTRL.RESET until active_ops is 0 */
    uint8_t destage_status; /* why it failed: enum media_cqe_status */
    uint8_t notify;         /* queues with new completions, a bit each */
    uint32_t writes;        /* into the cache, ever */
    uint32_t writes_at_timer;
    uint32_t timer_ticks;
};

/** Power-on: cache and registers empty. */
void hw_media_init(struct hw_media *media,
                   const struct hw_media_config *config);

/**
 * Machine reset: disables the queues and sets the registers as at power-on. The
 * cache keeps its content, since the power stays on.  Before DRAM is used again
 * the caller waits until hw_media_has_dma() is false.
 */
void hw_media_reset(struct hw_media *media);

/** Whether commands from before the reset still access DRAM. */
bool hw_media_has_dma(const struct hw_media *media);

/** Registers; `offset` is a multiple of 4.  @return false: no such register */
MUST_USE bool hw_media_read(struct hw_media *media, uint32_t offset,
                            uint32_t *value);
MUST_USE bool hw_media_write(struct hw_media *media, uint32_t offset,
                             uint32_t value);

/** Do the work for which the core called env.defer(). */
void hw_media_run(struct hw_media *media);

/** The deadline of env.set_timer() has passed. */
void hw_media_timer(struct hw_media *media);

/** A request to the back-end has ended. @param result  0 or -errno */
void hw_media_io_done(struct hw_media *media, uint32_t id, int result);

/**
 * The machine stops: take no more commands, let those in progress complete,
 * empty the cache and flush the medium.  It is done when hw_media_is_quiet().
 */
void hw_media_quiesce(struct hw_media *media);
void hw_media_resume(struct hw_media *media);

/** Nothing is in progress and, unless destaging fails, the cache is empty. */
bool hw_media_is_quiet(const struct hw_media *media);

/**
 * Check and adopt the fields of hw_media_regs after they were loaded.
 *
 * @return false when they are invalid; the engine must then not be used
 */
MUST_USE bool hw_media_loaded(struct hw_media *media);

#endif
