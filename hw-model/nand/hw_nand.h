/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Core of the NAND controller: command queues, DMA, order and time.
 * Reference: docs/hardware/nand.md; registers in hw-model/regs/nand.h.  What
 * the flash does, and its storage, is in nand_array.h.
 *
 * It has one execution context: the wrapper calls register accesses, run, timer
 * and the end of requests to storage under one lock.
 *
 * The saved state is struct hw_nand_regs alone.  The wrapper quiesces the
 * controller before it saves; after that, no command is in progress.
 */
#ifndef ESSD_HW_NAND_H
#define ESSD_HW_NAND_H

#include "hw-model/core/dev_queue.h"
#include "hw-model/core/env.h"
#include "hw-model/nand/nand_array.h"
#include "lib/trace.h"
#include "lib/util.h"

/* Sizes from regs/nand.h, repeated here; hw_nand.c asserts that they agree. */
enum {
    HW_NAND_QUEUES = 4,
    HW_NAND_OPS = 512,
    HW_NAND_COUNTERS = 10,
    HW_NAND_CHANNELS = 16,
    HW_NAND_DIES = 256, /* of all channels */
    HW_NAND_PLANES = 4,
    /* Registers of all dies: first the page registers, then the cache
     * registers. */
    HW_NAND_REGISTERS = 2 * HW_NAND_DIES,
};
/* The most reads that are in progress while operations take no time. */
enum {
    HW_NAND_DIE_READS = 32,     /* of one die */
    HW_NAND_MORE_READS = 128,   /* of all dies, without the first of each */
    HW_NAND_MORE_ENTRIES = 512, /* of these reads */
};
enum { HW_NAND_TIMERS = HW_NAND_REGISTERS + HW_NAND_OPS };
#define HW_NAND_NONE UINT32_MAX

/* A command that broke a rule of the flash (nand.md, section 1). */
struct hw_nand_violation {
    uint8_t opcode;
    uint8_t rule;
    uint8_t channel;
    uint8_t die;
    uint8_t planes;
    uint16_t block;    /* of the first plane */
    uint16_t wordline; /* of a READ or PROGRAM */
};

struct hw_nand_config {
    struct dev_env env;        /* interrupt line 0 */
    const struct trace *trace; /* outlives the controller; NULL: no tracing */
    /* Operations take the time of the profile; otherwise they take none. */
    bool is_realtime;
    /* Firmware may submit a program before the one before it has ended:
     * NAND_GEOMETRY2.QUEUES. */
    bool queues_programs;
    uint64_t nonce; /* of nand_array_config, if there is an array */
    /* Called once for each command that breaks a rule.  May be NULL. */
    void (*violated)(void *ctx, const struct hw_nand_violation *violation);
    void *ctx; /* of violated() */
};

/* ---- State that is saved */

struct hw_nand_regs {
    uint32_t irq_status;
    uint32_t irq_enable;
    uint32_t counter_high; /* latched by reading a low word */
    uint64_t counters[HW_NAND_COUNTERS];
    struct dev_queue queues[HW_NAND_QUEUES];
};

/* ---- State that is empty while the controller is quiet */

struct hw_nand_op { /* a command that was taken and has not completed */
    bool is_used;
    bool is_orphan; /* its queue was disabled: no completion is written */
    bool is_traced; /* its start was traced, and its end will be */
    bool is_urgent;
    bool is_slc;     /* ERASE */
    bool is_reused;  /* ERASE: the blocks are programmed again soon */
    bool is_served;  /* the array has completed its latest step */
    bool is_started; /* READ that takes no time: the units have been read */
    bool is_more;    /* a READ that takes no time, and which hw_nand.more_reads
                      * counts */
    uint8_t opcode;
    uint8_t queue;
    uint8_t planes;
    uint8_t status; /* enum nand_cqe_status found so far */
    uint8_t failed_planes;
    uint8_t detail;
    uint8_t steps;
    uint16_t bits;
    uint16_t wordline;
    uint16_t block[HW_NAND_PLANES];
    uint16_t entries;
    uint16_t cursor;   /* READ: first entry of the next read of the flash */
    uint16_t sent;     /* READ: first entry of what the cache register holds */
    uint32_t die;      /* of the array */
    uint32_t next;     /* next operation of the same list */
    uint64_t limit_ns; /* PROGRAM, ERASE: it is not suspended if it would then
                        * end at this time or later */
    uint32_t tag;      /* for traces: NAND_TAG_* */
    uint64_t cookie;
    uint64_t taken_ns;        /* when it was taken; it does not begin before */
    uint8_t *list;            /* in DRAM */
    struct nand_op *array_op; /* while the die executes it */
};

/* A list, first in, first out, linked through hw_nand_op.next. */
struct hw_nand_list {
    uint32_t head;
    uint32_t tail;
};

/* What a register of a die does. */
enum hw_nand_die_state {
    HW_DIE_IDLE,     /* Has no operation. */
    HW_DIE_ACCEPTS,  /* Waits for the channel, to receive a command. */
    HW_DIE_RECEIVES, /* Receives command and data from the channel; timed. */
    HW_DIE_STARTS,   /* The array reads or writes its storage. */
    HW_DIE_BUSY,     /* Reads, programs or erases; timed. */
    HW_DIE_FINISHES, /* The array writes its storage. */
    HW_DIE_OFFERS,   /* Waits for the channel, to send data. */
    HW_DIE_SENDS,    /* Sends data to the channel; timed. */
    HW_DIE_HOLDS,    /* Holds data, and waits for the other register. */
    HW_DIE_COPIES,   /* Cache register: is copied from or to the page register;
                      * timed. */
};

/*
 * One of the two registers of a die: the page register, which the array uses,
 * and the cache register.  If no other operation overlaps it, an operation uses
 * only the page register, also for its transfer on the channel.
 */
struct hw_nand_register {
    uint8_t state;         /* enum hw_nand_die_state */
    bool is_ready;         /* in the list of registers with work to do */
    uint32_t op;           /* its operation, or HW_NAND_NONE */
    uint64_t clock_ns;     /* when its state began */
    uint32_t next_waiting; /* next register that waits for the channel */
    uint32_t next_ready;
};

struct hw_nand_die {
    uint32_t suspended;    /* the operation that it has suspended */
    uint8_t passes;        /* urgent reads that have passed the commands in
                            * `normal`, since one of these began */
    bool is_chained;       /* the data in the cache register was read while the
                            * data of another read was sent */
    uint64_t remaining_ns; /* time that the suspended operation still needs */
    uint64_t suspend_ns;   /* time before the next operation can begin */
    uint64_t busy_ns;      /* for which it has read, programmed or erased; not
                            * saved */
    uint64_t copy_ns; /* time for which the operation waits until registers are
                       * copied */
    struct hw_nand_list urgent; /* reads that have not begun */
    struct hw_nand_list normal; /* other commands that have not begun */
    struct hw_nand_list reads;  /* reads in progress that take no time */
    uint32_t num_reads;         /* in this list */
    /* The planes and blocks of the latest program that has failed, until one of
     * them is programmed. */
    uint8_t failed_planes;
    uint16_t failed_block[HW_NAND_PLANES];
};

struct hw_nand_channel {
    bool is_busy;
    uint64_t free_ns; /* when its last transfer ended */
    uint64_t busy_ns; /* of transfers that have ended; not saved */
    uint32_t head;    /* registers that wait for it, first in, first out */
    uint32_t tail;
};

/* The time at which a register's state, or the decoding of a READ, ends. */
struct hw_nand_timer {
    uint64_t end_ns;
    uint64_t serial;  /* of two with the same end, the lower one is first */
    uint32_t heap_at; /* its place in the heap, or HW_NAND_NONE */
};

struct hw_nand {
    struct hw_nand_config config; /* not part of the state */
    struct nand_array *array;     /* NULL: none */
    struct nand_geometry geometry;
    uint32_t num_dies;
    struct hw_nand_regs regs;

    struct hw_nand_op ops[HW_NAND_OPS];
    uint32_t free_op;
    uint32_t active_ops;
    uint32_t outstanding[HW_NAND_QUEUES]; /* commands taken, not completed */

    struct hw_nand_die dies[HW_NAND_DIES];
    struct hw_nand_register registers[HW_NAND_REGISTERS];
    struct hw_nand_channel channels[HW_NAND_CHANNELS];
    uint32_t more_reads;   /* in progress, without the first of each die */
    uint32_t more_entries; /* of these reads */
    uint32_t ready_head;   /* registers with work to do, first in, first out */
    uint32_t ready_tail;

    struct hw_nand_timer timers[HW_NAND_TIMERS]; /* of registers, then of ops */
    uint32_t heap[HW_NAND_TIMERS]; /* indices of timers; first: next to end */
    uint32_t heap_count;
    uint64_t serial;
    uint64_t deadline_ns; /* what env.set_timer() was told last */

    bool is_stopped; /* the machine is stopped: no commands are taken */
    bool is_syncing; /* the array's storage is being made up to date */
    bool is_synced;  /* that has ended since the machine was stopped */
    bool sync_failed;
    bool is_resetting; /* NAND_CTRL.RESET is 1 until active_ops is 0 */
    bool is_starved;   /* commands wait for a free operation */
    uint8_t notify;    /* queues with new completions, one bit each */
};

/** Power-on: the registers have their reset values, and there is no array. */
void hw_nand_init(struct hw_nand *nand, const struct hw_nand_config *config);

/** Nanoseconds for which a die of the array has read, programmed or erased
 * since the controller was created; 0 if operations take no time. */
uint64_t hw_nand_busy_time(const struct hw_nand *nand, uint32_t die);

/** The same of a channel: for commands and data whose transfer has ended. */
uint64_t hw_nand_channel_time(const struct hw_nand *nand, uint32_t channel);

/** Bytes of memory that an array of this geometry needs in a controller. */
size_t hw_nand_array_bytes(const struct nand_geometry *geometry);

/** Identifiers of its requests to storage are less than this. */
uint32_t hw_nand_io_ids(const struct nand_geometry *geometry);

/**
 * Connect an array, whose state is read from its storage.
 *
 * @param file     from nand_file_open() with this source; it is copied
 * @param backend  copied; its requests end with hw_nand_io_done()
 * @param memory   hw_nand_array_bytes(), 64-byte aligned; it outlives the
 *                 controller
 * @param failure  why, when this fails
 * @return false when the state is damaged or cannot be read; there is no array
 */
MUST_USE bool hw_nand_attach(struct hw_nand *nand, const struct nand_file *file,
                             const struct nand_backend *backend, void *memory,
                             const struct nand_file_source *source,
                             struct nand_file_failure *failure);

/**
 * Machine reset, or NAND_CTRL.RESET: disables the queues and resets the
 * registers.  Programs and erasures that dies had begun complete soon, without
 * waiting for their time; other commands do not happen.  Before DRAM is used
 * again, the caller waits until hw_nand_has_dma() is false.
 */
void hw_nand_reset(struct hw_nand *nand);

/** Whether commands from before the reset still access DRAM. */
bool hw_nand_has_dma(const struct hw_nand *nand);

/**
 * Access a register; `offset` is a multiple of 4.
 * @return false when there is no such register
 */
MUST_USE bool hw_nand_read(struct hw_nand *nand, uint32_t offset,
                           uint32_t *value);
MUST_USE bool hw_nand_write(struct hw_nand *nand, uint32_t offset,
                            uint32_t value);

/** Do the work that env.defer() asked for. */
void hw_nand_run(struct hw_nand *nand);

/** The deadline of env.set_timer() has passed. */
void hw_nand_timer(struct hw_nand *nand);

/** A request of the array has ended. @param result  0 or -errno */
void hw_nand_io_done(struct hw_nand *nand, uint32_t id, int result);

/**
 * Stop the controller with the machine: it takes no more commands, completes
 * those that it has taken without waiting for their time, and brings the
 * array's storage up to date.  It has finished when hw_nand_is_quiet() is true.
 */
void hw_nand_quiesce(struct hw_nand *nand);
void hw_nand_resume(struct hw_nand *nand);

/** Whether nothing is in progress and the array's storage is up to date. */
bool hw_nand_is_quiet(const struct hw_nand *nand);

/**
 * Check and adopt the fields of hw_nand_regs after they were loaded.
 *
 * @return false when they are invalid; the controller must then not be used
 */
MUST_USE bool hw_nand_loaded(struct hw_nand *nand);

#endif
