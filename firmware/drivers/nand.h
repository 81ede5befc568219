/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver of the NAND controller, for one of its queues.
 * Reference: docs/hardware/nand.md; registers in hw-model/regs/nand.h.
 *
 * Commands for one die complete in the order in which the controller takes
 * them, except urgent reads; commands for different dies in any order.  The
 * driver copies neither data nor entries: the caller writes the entries of a
 * command into DRAM with nand_entry_read() and nand_entry_program(), and reads
 * the results there.
 */
#ifndef ESSD_FIRMWARE_DRIVERS_NAND_H
#define ESSD_FIRMWARE_DRIVERS_NAND_H

#include <string.h>

#include "firmware/drivers/cmd_queue.h"
#include "firmware/hal/dram.h"
#include "lib/regfields.h"
#include "hw-model/regs/nand.h"
#include "lib/init_result.h"
#include "lib/util.h"

struct nand_config {
    uintptr_t regs;    /* address of the registers */
    struct dram *dram; /* rings are allocated here and never freed */
    uint8_t queue;     /* 0..3, one per hart; queue 0 resets the controller */
    uint16_t commands; /* most outstanding commands: a power of two, 2..4096 */
};

/* The array: see docs/hardware/nand.md, section 1. */
struct nand_info {
    uint8_t channels;
    uint8_t dies;         /* of a channel */
    uint8_t planes;       /* of a die */
    uint16_t blocks;      /* of a plane */
    uint16_t wordlines;   /* of a block */
    uint8_t pages;        /* of a wordline that is not in SLC mode */
    uint8_t units;        /* of a page */
    uint32_t endurance;   /* erasures that a block is rated for */
    uint16_t hard_bits;   /* bits of a unit that step 0 of the ECC corrects */
    uint8_t steps;        /* further steps of the ECC */
    bool queues_programs; /* NAND_GEOMETRY2.QUEUES */
    /* Microseconds; 0 if operations take no time. */
    uint16_t program_us;  /* a die programs a wordline of all planes */
    uint16_t transfer_us; /* the channel transfers the data before that */
    uint16_t erase_us;
    uint16_t read_us; /* the slowest page */
};

struct nand_command {
    enum nand_opcode opcode;
    bool slc;    /* ERASE: one bit per cell from now on */
    bool urgent; /* READ: before other commands of its die */
    bool reuse;  /* ERASE: the blocks are programmed again soon */
    uint8_t channel;
    uint8_t die;
    uint8_t planes;                  /* one bit for each */
    uint16_t block[NAND_PLANES_MAX]; /* indexed by plane */
    uint16_t wordline;               /* PROGRAM */
    uint16_t entries;                /* READ and PROGRAM: number in the list */
    uint8_t *list;   /* in DRAM, 64-byte aligned: entries; MARKS: a byte for
                      * each block of each plane */
    uint64_t cookie; /* returned in struct nand_done */
    uint32_t tag;    /* for traces of the controller: NAND_TAG_* */
};

struct nand_done {
    uint64_t cookie;
    enum nand_cqe_status status;
    uint8_t failed_planes; /* with FAILED: one bit per plane */
    uint8_t rule;          /* with RULE: its number in docs/hardware/nand.md */
    uint8_t steps;         /* most correction steps of an entry */
    uint16_t bits;         /* most corrected bits of an entry */
    uint64_t time_ns;      /* virtual time of the completion */
};

/* What an entry of a READ is about. */
struct nand_place {
    uint16_t wordline;
    uint8_t plane;
    uint8_t page;
    uint8_t unit;
};

/* RESULT and SYSTEM of an entry, after a READ has completed. */
struct nand_result {
    enum nand_cqe_status status; /* OK, UNCORRECTABLE or ERASED */
    uint8_t steps;
    uint16_t bits;
    uint8_t system[NAND_SYSTEM_LEN]; /* valid with OK */
};

/* Treat as opaque. */
struct nand {
    uintptr_t regs;
    struct cmd_queue queue;
    uint8_t index; /* of the queue */
};

/**
 * Called by nand_poll() for each completed command.  It may submit new
 * commands.
 */
typedef void nand_done_fn(void *ctx, const struct nand_done *done);

/**
 * Set up one queue.  Queue 0 must come first: it resets the controller, and
 * waits until the DMA that was started before the reset has ended.
 *
 * @return INIT_OK, or why the queue does not start; INIT_NO_DEVICE also when
 *         the controller has no array
 */
MUST_USE enum init_result nand_init(struct nand *nand,
                                    const struct nand_config *config);

/**
 * Read the geometry of the array, also before nand_init().
 *
 * @param regs  address of the registers
 * @return false when there is no array, or another device at this address
 */
MUST_USE bool nand_find(uintptr_t regs, struct nand_info *info);

/* ---- Private to the functions below, which are inline because every command
 * of a host executes them. */

static inline uint64_t nand_dma_addr_or_zero(const void *ptr)
{
    return ptr != NULL ? hal_dma_addr(ptr) : 0;
}

static inline uint64_t nand_command_head(const struct nand_command *command)
{
    uint8_t flags = command->slc ? NAND_CMD_SLC : 0;

    if (command->urgent) {
        flags |= NAND_CMD_URGENT;
    }
    if (command->reuse) {
        flags |= NAND_CMD_REUSE;
    }
    return (uint64_t)command->opcode | (uint64_t)flags << 8 |
           (uint64_t)command->entries << 16 | (uint64_t)command->channel << 32 |
           (uint64_t)command->die << 40 | (uint64_t)command->planes << 48;
}

static inline struct nand_done nand_parse_completion(const uint8_t *entry)
{
    return (struct nand_done){
        .cookie = dma_load64(entry, QUEUE_CQE_COOKIE),
        .time_ns = dma_load64(entry, QUEUE_CQE_TIMESTAMP),
        .status = (enum nand_cqe_status)dma_load8(entry, QUEUE_CQE_STATUS),
        .failed_planes = dma_load8(entry, NAND_CQE_FAILED_PLANES),
        .rule = dma_load8(entry, NAND_CQE_DETAIL),
        .steps = dma_load8(entry, NAND_CQE_STEPS),
        .bits = (uint16_t)dma_load32(entry, NAND_CQE_BITS),
    };
}

/**
 * Do the same as nand_entry_read(), with addresses for the controller instead
 * of pointers; 0: nowhere.  A caller that knows how its pointers become such
 * addresses needs no hal_dma_addr() for each unit.
 */
static inline void nand_entry_read_at(uint8_t *entry,
                                      const struct nand_place *place,
                                      uint64_t data, uint16_t offset_bytes,
                                      uint16_t len_bytes, uint64_t meta,
                                      bool more)
{
    dma_store64(entry, NAND_ENTRY_OFFSET,
                (uint64_t)offset_bytes | (uint64_t)len_bytes << 16 |
                    (uint64_t)place->wordline << 32 |
                    (uint64_t)place->plane << 48 | (uint64_t)place->page << 56);
    dma_store64(entry, NAND_ENTRY_UNIT,
                (uint64_t)place->unit | (more ? NAND_ENTRY_MORE << 8 : 0));
    dma_store64(entry, NAND_ENTRY_DATA, data);
    dma_store64(entry, NAND_ENTRY_META, meta);
}

/**
 * Write an entry of a READ.  The metadata of the unit goes to `meta` (64
 * bytes), or nowhere if it is NULL; the same for `data`.
 *
 * @param offset_bytes  of the part of the data that is wanted, a multiple of 8
 * @param len_bytes     of that part, a multiple of 8
 * @param more          the next entry is another part of the same unit
 */
static inline void nand_entry_read(uint8_t *entry,
                                   const struct nand_place *place, void *data,
                                   uint16_t offset_bytes, uint16_t len_bytes,
                                   void *meta, bool more)
{
    nand_entry_read_at(entry, place, nand_dma_addr_or_zero(data), offset_bytes,
                       len_bytes, nand_dma_addr_or_zero(meta), more);
}

/** The same as nand_entry_program(), with addresses for the controller instead
 * of pointers.  @param meta  0: the metadata is FFh */
static inline void nand_entry_program_at(uint8_t *entry, uint64_t data,
                                         uint64_t meta,
                                         const uint8_t system[NAND_SYSTEM_LEN])
{
    uint64_t words[NAND_SYSTEM_LEN / sizeof(uint64_t)];

    dma_store64(entry, NAND_ENTRY_DATA, data);
    dma_store64(entry, NAND_ENTRY_META, meta);
    dma_store64(entry, NAND_ENTRY_OFFSET, (uint64_t)NAND_DATA_LEN << 16);
    dma_store64(entry, NAND_ENTRY_UNIT, 0);
    memcpy(words, __builtin_assume_aligned(system, sizeof(words[0])),
           sizeof(words));
    dma_store64(entry, NAND_ENTRY_SYSTEM, words[0]);
    dma_store64(entry, NAND_ENTRY_SYSTEM + sizeof(words[0]), words[1]);
}

/**
 * Write an entry of a PROGRAM.  Without `meta` the metadata is FFh.
 *
 * @param system  aligned to 8 bytes
 */
static inline void nand_entry_program(uint8_t *entry, const void *data,
                                      const void *meta,
                                      const uint8_t system[NAND_SYSTEM_LEN])
{
    nand_entry_program_at(entry, hal_dma_addr(data),
                          nand_dma_addr_or_zero(meta), system);
}

/** Read what the controller wrote into an entry of a READ. */
void nand_entry_result(const uint8_t *entry, struct nand_result *result);

/**
 * The place of the next command in the ring, for nand_write_command().
 *
 * @return NULL when the configured number of commands is outstanding: try again
 *         after nand_poll()
 */
MUST_USE static inline uint8_t *nand_next_slot(struct nand *nand)
{
    struct cmd_queue *queue = &nand->queue;

    return cmd_queue_has_room(queue)
               ? queue->commands +
                     (size_t)(queue->cmd_pi & queue->mask) * NAND_CMD_LEN
               : NULL;
}

/**
 * The second half of nand_submit(): write a command to nand_next_slot(), with
 * the address of the list from `list` instead of `command->list`.  So a caller
 * that uses the same list for many commands converts its address only once, and
 * one that asks for the slot first can prepare the command in registers.
 *
 * @param list  hal_dma_addr() of the list; 0: the command has none
 */
static inline void nand_write_command(struct nand *nand, uint8_t *slot,
                                      const struct nand_command *command,
                                      uint64_t list)
{
    uint64_t blocks = 0;

    for (unsigned int i = NAND_PLANES_MAX; i-- > 0;) {
        blocks = blocks << 16 | command->block[i];
    }
    dma_store64(slot, NAND_CMD_OPCODE, nand_command_head(command));
    dma_store64(slot, NAND_CMD_COOKIE, command->cookie);
    dma_store64(slot, NAND_CMD_LIST, list);
    dma_store64(slot, NAND_CMD_BLOCK, blocks);
    dma_store64(slot, NAND_CMD_WORDLINE,
                (uint64_t)command->wordline | (uint64_t)command->tag << 32);
    nand->queue.cmd_pi++;
}

/**
 * Write one command into the ring.  The command is read before this returns;
 * its entries and buffers belong to the controller until the completion.
 * Nothing starts before nand_kick().
 *
 * @return false when the configured number of commands is outstanding; nothing
 *         was written, try again after nand_poll()
 */
MUST_USE static inline bool nand_submit(struct nand *nand,
                                        const struct nand_command *command)
{
    uint8_t *slot = nand_next_slot(nand);

    if (slot == NULL) {
        return false;
    }
    nand_write_command(nand, slot, command,
                       nand_dma_addr_or_zero(command->list));
    return true;
}

/** Start the submitted commands, with at most one register write per burst. */
void nand_kick(struct nand *nand);

/**
 * Report at most `budget` completions.
 *
 * @return the number of completions reported
 */
static inline unsigned int nand_poll(struct nand *nand, unsigned int budget,
                                     nand_done_fn *done, void *ctx)
{
    unsigned int count = 0;
    const uint8_t *entry;

    while (count < budget && (entry = cmd_queue_next(&nand->queue)) != NULL) {
        struct nand_done found;

        hal_dma_rmb();
        found = nand_parse_completion(entry);
        nand->queue.cq_ci++;
        count++;
        done(ctx, &found);
    }
    if (count > 0) {
        cmd_queue_publish_taken(&nand->queue);
    }
    return count;
}

/**
 * As nand_poll(), up to the first completion that is no success.
 *
 * @param is_other  set to true if there is one
 */
static inline void nand_poll_good(struct nand *nand, unsigned int budget,
                                  nand_done_fn *done, void *ctx, bool *is_other)
{
    uint32_t start = nand->queue.cq_ci, end = start + budget;
    const uint8_t *entry;

    while (nand->queue.cq_ci != end &&
           (entry = cmd_queue_next(&nand->queue)) != NULL) {
        struct nand_done found;

        hal_dma_rmb();
        found = nand_parse_completion(entry);
        if (__builtin_expect(found.status != NAND_CQE_OK, 0)) {
            *is_other = true;
            break;
        }
        nand->queue.cq_ci++;
        done(ctx, &found);
    }
    if (nand->queue.cq_ci != start) {
        cmd_queue_publish_taken(&nand->queue);
    }
}

/** Number of commands that nand_poll() has not reported yet. */
static inline uint32_t nand_outstanding(const struct nand *nand)
{
    return cmd_queue_outstanding(&nand->queue);
}

/**
 * Before sleeping: make the controller interrupt at the next completion.
 *
 * @return false when a completion is there already: do not sleep
 */
MUST_USE bool nand_arm(struct nand *nand);

/** Enable the interrupt of this queue. */
void nand_irq_enable(struct nand *nand);

/** Acknowledge this queue's interrupt.  Only needed after an interrupt. */
void nand_irq_take(struct nand *nand);

/* ---- Moves: docs/hardware/nand.md, sections 9 and 10 */

/* A list of moves in DRAM.  Its owner writes the moves. */
struct nand_moves {
    uintptr_t regs;
    uint8_t *list;
    uint64_t list_addr;   /* address of the list for the controller */
    uint64_t addr_offset; /* address for the controller, less the hart's one */
};

/**
 * Allocate a list, which is never freed.
 *
 * @param regs  address of the registers
 * @return false when there is not enough DRAM
 */
MUST_USE bool nand_moves_init(struct nand_moves *moves, uintptr_t regs,
                              struct dram *dram);

/** The first of NAND_MOVES_MAX moves, each of NAND_MOVE_LEN bytes. */
static inline uint8_t *nand_moves_first(const struct nand_moves *moves)
{
    return moves->list + NAND_MOVE_HEADER_LEN;
}

/**
 * Do the first `count` moves of the list.
 *
 * @return how many were done.  If this is less than `count`,
 *         nand_moves_take_status() says why the controller has stopped at the
 *         next one.
 */
MUST_USE uint32_t nand_moves_run(const struct nand_moves *moves,
                                 uint32_t count);

/** Return why the controller has stopped, and forget it: NAND_MOVE_REFUSED if
 * the memory has an error, or the check of a PROTECT that has failed. */
enum nand_move_status nand_moves_take_status(const struct nand_moves *moves);

/** Let the hart do one move of the list: a COPY, XOR or ADD_ROW. */
void nand_move_by_hart(const struct nand_moves *moves, uint32_t index);

/** Read one of the controller's counters. */
uint64_t nand_counter_read(const struct nand *nand, enum nand_counter counter);

#endif
