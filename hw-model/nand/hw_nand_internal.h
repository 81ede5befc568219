/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the files of the NAND controller share.  No other file
 * includes this.
 */
#ifndef ESSD_HW_NAND_INTERNAL_H
#define ESSD_HW_NAND_INTERNAL_H

#include "lib/regfields.h"
#include "hw-model/core/dev_queue_rings.h"
#include "hw-model/nand/hw_nand.h"
#include "hw-model/regs/nand.h"
#include "lib/bytes.h"

static inline void *hw_nand_dma(const struct hw_nand *nand, uint64_t addr,
                                uint64_t len)
{
    return nand->config.env.dma(nand->config.env.ctx, addr, len);
}

/* The same for memory of which the controller overwrites all bytes. */
static inline void *hw_nand_dma_write(const struct hw_nand *nand, uint64_t addr,
                                      uint64_t len)
{
    return nand->config.env.dma_write(nand->config.env.ctx, addr, len);
}

static inline void hw_nand_defer(const struct hw_nand *nand)
{
    nand->config.env.defer(nand->config.env.ctx);
}

static inline uint64_t hw_nand_now_ns(const struct hw_nand *nand)
{
    return nand->config.env.now_ns(nand->config.env.ctx);
}

static inline void hw_nand_count(struct hw_nand *nand,
                                 enum nand_counter counter, uint64_t n)
{
    nand->regs.counters[counter] += n;
}

static inline uint32_t hw_nand_op_index(const struct hw_nand *nand,
                                        const struct hw_nand_op *op)
{
    return (uint32_t)(op - nand->ops);
}

/* Whether operations take time.  They do not with timing=fast, nor while a
 * reset or a stop ends all work. */
static inline bool hw_nand_is_timed(const struct hw_nand *nand)
{
    return nand->config.is_realtime && !nand->is_stopped && !nand->is_resetting;
}

/* The index of a die's cache register in hw_nand.registers, and pointers to its
 * two registers.  The index of its page register is `d`. */
static inline uint32_t hw_nand_cache_of(uint32_t d)
{
    return HW_NAND_DIES + d;
}

static inline struct hw_nand_register *hw_nand_page(struct hw_nand *nand,
                                                    uint32_t d)
{
    return &nand->registers[d];
}

static inline struct hw_nand_register *hw_nand_cache(struct hw_nand *nand,
                                                     uint32_t d)
{
    return &nand->registers[hw_nand_cache_of(d)];
}

/* Whether operations of a die overlap.  They do not if they take no time, or if
 * the part has no cache operations. */
static inline bool hw_nand_has_cache(const struct hw_nand *nand)
{
    return hw_nand_is_timed(nand) &&
           nand_array_profile(nand->array)->read_copy_ns != 0;
}

static inline bool hw_nand_die_is_dead(const struct hw_nand *nand, uint32_t d)
{
    return nand_array_die_is_dead(nand->array, d / nand->geometry.dies,
                                  d % nand->geometry.dies);
}

/* ---- hw_nand_time.c: when operations end */

/* The registers NAND_PROGRAM_TIME and NAND_OTHER_TIMES. */
uint32_t hw_nand_program_time(const struct hw_nand *nand);
uint32_t hw_nand_other_times(const struct hw_nand *nand);

void hw_nand_timers_init(struct hw_nand *nand);
void hw_nand_timer_start(struct hw_nand *nand, uint32_t timer, uint64_t end_ns);
void hw_nand_timer_stop(struct hw_nand *nand, uint32_t timer);

/* Let everything happen that is due at `now_ns`, in the order of time. */
void hw_nand_timers_run(struct hw_nand *nand, uint64_t now_ns);

/* ---- hw_nand_queue.c */

void hw_nand_update_irq(struct hw_nand *nand);

/* Take commands of all queues. */
void hw_nand_queues_run(struct hw_nand *nand);

/* Raise interrupts, and take commands later that had to wait. */
void hw_nand_queues_leave(struct hw_nand *nand);

/* Write the completion of `op`. */
void hw_nand_queue_complete(struct hw_nand *nand, const struct hw_nand_op *op);

/* Let the commands of queue `q`, which is off, end without a completion. */
void hw_nand_queue_abandon(struct hw_nand *nand, unsigned int q);

bool hw_nand_is_queue_offset(uint32_t offset);
bool hw_nand_queue_read(struct hw_nand *nand, uint32_t offset, uint32_t *value);
bool hw_nand_queue_write(struct hw_nand *nand, uint32_t offset, uint32_t value);

/* ---- hw_nand_command.c */

/*
 * Take one command of queue `q`.  There is a free operation.
 * @param bytes  the command, or NULL when it is not in DRAM
 */
void hw_nand_command_start(struct hw_nand *nand, unsigned int q,
                           const uint8_t *bytes);

/* Complete `op`, whose status is set, and free it. */
void hw_nand_command_end(struct hw_nand *nand, struct hw_nand_op *op);

/* ---- hw_nand_entry.c */

/*
 * Check the entries of a READ or PROGRAM and fill in the units of its operation
 * on the array.
 */
enum nand_cqe_status hw_nand_entries_map(const struct hw_nand *nand,
                                         const struct hw_nand_op *op,
                                         struct nand_op *array_op);

/*
 * Write RESULT into the entries of a READ that has ended, count them, and set
 * its status.
 */
void hw_nand_entries_end(struct hw_nand *nand, struct hw_nand_op *op);

/* ---- hw_nand_op.c: operations of the array */

/*
 * Prepare the operation on the array that executes `op`.
 * @return false when the entries are refused; then the status says why
 */
MUST_USE bool hw_nand_op_open(struct hw_nand *nand, struct hw_nand_op *op);

/* Set the status of `op` to the result that the array has reported. */
void hw_nand_op_judge(struct hw_nand *nand, struct hw_nand_op *op);

/* A program has ended: note whether it has failed. */
void hw_nand_op_note_program(struct hw_nand *nand, const struct hw_nand_op *op);

/*
 * Release the operation on the array, and report the results of a READ.
 * @return the time that the error correction needs now
 */
uint64_t hw_nand_op_close(struct hw_nand *nand, struct hw_nand_op *op);

/* ---- hw_nand_reads.c: reads that take no time */

/* Whether `op` is such a read, and may begin now. */
MUST_USE bool hw_nand_reads_take(const struct hw_nand *nand,
                                 const struct hw_nand_die *die,
                                 const struct hw_nand_op *op);

/* Begin a read, also if other reads of the die are in progress. */
void hw_nand_reads_begin(struct hw_nand *nand, struct hw_nand_die *die,
                         struct hw_nand_op *op);

/* Complete the reads that have ended, in their order. */
void hw_nand_reads_end(struct hw_nand *nand, struct hw_nand_die *die);

/* ---- hw_nand_move.c */

/* Handle a write of `value` to NAND_MOVE: do the moves of the list there. */
void hw_nand_move(const struct hw_nand *nand, uint32_t value);

/* ---- hw_nand_wait.c: lists of those that wait */

void hw_nand_list_init(struct hw_nand_list *list);
void hw_nand_list_put(struct hw_nand *nand, struct hw_nand_list *list,
                      struct hw_nand_op *op);
void hw_nand_list_put_first(struct hw_nand *nand, struct hw_nand_list *list,
                            struct hw_nand_op *op);
/* The first operation, which stays in the list or is taken from it, or NULL. */
struct hw_nand_op *hw_nand_list_first(struct hw_nand *nand,
                                      const struct hw_nand_list *list);
struct hw_nand_op *hw_nand_list_take(struct hw_nand *nand,
                                     struct hw_nand_list *list);

/* The state of register `r` has ended: it has work to do. */
void hw_nand_register_ready(struct hw_nand *nand, uint32_t r);

/* @return false when the register has to wait for its channel */
bool hw_nand_channel_take(struct hw_nand *nand, uint32_t r);

/*
 * The transfer of the register ended at `end_ns`; the next register that waits
 * gets the channel.
 */
void hw_nand_channel_release(struct hw_nand *nand, uint32_t r, uint64_t end_ns);

/* Let the register wait for its channel no longer. */
void hw_nand_channel_leave(struct hw_nand *nand, uint32_t r);

/* ---- hw_nand_die.c: order of operations */

void hw_nand_dies_init(struct hw_nand *nand);

/* Whether an urgent read is next, although other commands, in the list or in
 * the cache register, may have waited longer. */
bool hw_nand_die_prefers_urgent(const struct hw_nand *nand, uint32_t d);

/* Give a checked command to its die. */
void hw_nand_die_submit(struct hw_nand *nand, struct hw_nand_op *op);

/* Do the steps of all registers that can do something now. */
void hw_nand_dies_run(struct hw_nand *nand);

/* The array has started or finished the operation of a die; ctx: struct
 * hw_nand.
 */
void hw_nand_die_served(void *ctx, struct nand_op *array_op);

/* Drop all commands that have not begun. */
void hw_nand_dies_reset(struct hw_nand *nand);

/* ---- hw_nand_register.c: steps that both registers of a die have.  They
 * return whether the state that they enter has ended. */

/* The state of a register has ended at `end_ns`, before its time has passed. */
void hw_nand_register_cut(struct hw_nand *nand, uint32_t r, uint64_t end_ns);

/* The time of a register's state has ended. */
void hw_nand_register_elapsed(struct hw_nand *nand, uint32_t r,
                              uint64_t end_ns);

/* Let `duration_ns` pass. @return true when no time needs to pass */
static inline bool hw_nand_register_pass(struct hw_nand *nand, uint32_t r,
                                         uint64_t duration_ns)
{
    if (duration_ns == 0 || !hw_nand_is_timed(nand)) {
        return true;
    }
    hw_nand_timer_start(nand, r, nand->registers[r].clock_ns + duration_ns);
    return false;
}

/* Give an operation to a register that has none. */
bool hw_nand_register_begin(struct hw_nand *nand, uint32_t r,
                            struct hw_nand_op *op);

/* Put a program or a read that has not begun in the array back into the list of
 * its die. */
void hw_nand_register_put_back(struct hw_nand *nand, uint32_t r);

/* The array has finished the register's operation: take the status from the
 * array, and complete the operation. */
bool hw_nand_register_finish(struct hw_nand *nand, uint32_t r);

/* Complete the register's operation, whose status is set. */
bool hw_nand_register_end(struct hw_nand *nand, uint32_t r);

/* ---- hw_nand_cache.c: what the cache register does beside the page register
 */

/* The next step of the cache register of die `d`. */
bool hw_nand_cache_step(struct hw_nand *nand, uint32_t d);

/*
 * Take the data that the page register has read.
 * @return whether the page register has a step to do
 */
bool hw_nand_cache_take(struct hw_nand *nand, uint32_t d);

/*
 * Send the data that the cache register holds.
 * @param copies  whether the data has to be copied from the page register
 *                before
 * @return the time of the copy
 */
uint64_t hw_nand_cache_send(struct hw_nand *nand, uint32_t d, bool copies);

/* The page register has begun to program.  When the data of this program has
 * been copied, let the next program be transferred. */
void hw_nand_cache_copy(struct hw_nand *nand, uint32_t d);

/* Let the next program be transferred, if the page register programs. */
void hw_nand_cache_fill(struct hw_nand *nand, uint32_t d);

/* Let a program that is in the cache register be transferred again later. */
void hw_nand_cache_drop(struct hw_nand *nand, uint32_t d);

/* ---- hw_nand_time.c: how long operations take */

/* Time on the channel for the command, and for the data of a PROGRAM. */
uint64_t hw_nand_input_ns(const struct hw_nand *nand,
                          const struct hw_nand_op *op);
/*
 * Time in the die.  For a READ it is the time of the entries from its cursor up
 * to hw_nand_read_end().
 */
uint64_t hw_nand_busy_ns(const struct hw_nand *nand,
                         const struct hw_nand_op *op);
/* Time on the channel for the data of a READ from entry `from` up to
 * hw_nand_read_end(). */
uint64_t hw_nand_output_ns(const struct hw_nand *nand,
                           const struct hw_nand_op *op, uint16_t from);
/* Time of the error correction, which begins after a READ's last transfer. */
uint64_t hw_nand_decode_ns(const struct hw_nand *nand,
                           const struct hw_nand_op *op);

/*
 * The end of the entries that one read of the flash delivers: from entry
 * `from`, those of the same wordline and page, in any planes.
 */
uint16_t hw_nand_read_end(const struct hw_nand_op *op, uint16_t from);

/* ---- hw_nand_trace.c */

void hw_nand_trace_start(struct hw_nand *nand, struct hw_nand_op *op);
void hw_nand_trace_end(const struct hw_nand *nand, const struct hw_nand_op *op);
/* A register ends a state that takes time.  @param is_cut  it was to last
 * longer */
void hw_nand_trace_phase(struct hw_nand *nand, uint32_t r, uint64_t end_ns,
                         bool is_cut);

#endif
