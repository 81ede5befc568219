/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What dies and channels do, one operation and one transfer at a time.
 * Reference: docs/hardware/nand.md, sections 4 and 6.
 *
 * A die does a step when its state has ended: when its time has passed, the
 * channel is its own, or the array has accessed its storage.  The step enters
 * the next state.  Dies whose state has ended are in the list of ready dies.
 *
 * Reads that take no time have no such states: see hw_nand_reads.c.
 */
#include "hw-model/nand/hw_nand_internal.h"

static struct hw_nand_die *die_at(struct hw_nand *nand, uint32_t d)
{
    return &nand->dies[d];
}

static struct hw_nand_op *op_of(struct hw_nand *nand, uint32_t d)
{
    return &nand->ops[nand->dies[d].op];
}

/* Let `duration_ns` pass. @return true when no time needs to pass */
static bool pass_time(struct hw_nand *nand, uint32_t d, uint64_t duration_ns)
{
    if (duration_ns == 0 || !hw_nand_is_timed(nand)) {
        return true;
    }
    hw_nand_timer_start(nand, d, die_at(nand, d)->clock_ns + duration_ns);
    return false;
}

void hw_nand_die_elapsed(struct hw_nand *nand, uint32_t d, uint64_t end_ns)
{
    die_at(nand, d)->clock_ns = end_ns;
    hw_nand_die_ready(nand, d);
}

/* ---- Suspension */

static bool can_be_suspended(const struct hw_nand *nand,
                             const struct hw_nand_op *op)
{
    return op->opcode != NAND_CMD_READ && hw_nand_is_timed(nand) &&
           nand_array_profile(nand->array)->suspend_ns != 0;
}

/* Whether `read` is of a block that `op` changes. */
static bool is_same_block(const struct hw_nand_op *op,
                          const struct hw_nand_op *read)
{
    for (unsigned int i = 0; i < HW_NAND_PLANES; i++) {
        if ((op->planes & read->planes & BIT(i)) &&
            op->block[i] == read->block[i]) {
            return true;
        }
    }
    return false;
}

/* Whether an urgent read shall begin before `op` continues. */
static bool is_overtaken(struct hw_nand *nand, uint32_t d,
                         const struct hw_nand_op *op)
{
    const struct hw_nand_op *read =
        hw_nand_list_first(nand, &die_at(nand, d)->urgent);

    return read != NULL && can_be_suspended(nand, op) &&
           !is_same_block(op, read);
}

static void suspend_operation(struct hw_nand *nand, uint32_t d,
                              uint64_t remaining_ns)
{
    struct hw_nand_die *die = die_at(nand, d);

    die->suspended = die->op;
    die->remaining_ns = remaining_ns;
    die->suspend_ns = nand_array_profile(nand->array)->suspend_ns;
    die->op = HW_NAND_NONE;
    die->state = HW_DIE_IDLE;
    hw_nand_count(nand, NAND_COUNT_SUSPENDS, 1);
}

static bool resume_operation(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_die *die = die_at(nand, d);

    die->op = die->suspended;
    die->suspended = HW_NAND_NONE;
    die->suspend_ns = 0;
    die->state = HW_DIE_BUSY;
    return pass_time(nand, d,
                     die->remaining_ns +
                         nand_array_profile(nand->array)->resume_ns);
}

/* ---- Steps.  They return whether the state that they enter has ended. */

static bool end_operation(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_die *die = die_at(nand, d);
    struct hw_nand_op *op = op_of(nand, d);
    uint64_t decode_ns = hw_nand_op_close(nand, op);

    die->op = HW_NAND_NONE;
    die->state = HW_DIE_IDLE;
    if (decode_ns == 0) {
        hw_nand_command_end(nand, op);
    } else {
        hw_nand_timer_start(nand, HW_NAND_DIES + hw_nand_op_index(nand, op),
                            die->clock_ns + decode_ns);
    }
    return true;
}

/* Whether an operation has to wait for reads that are in progress. */
static bool waits_for_reads(const struct hw_nand *nand, uint32_t d,
                            const struct hw_nand_op *op)
{
    return nand->dies[d].num_reads != 0 &&
           !hw_nand_reads_take(nand, &nand->dies[d], op);
}

/* Take the operation that is next, unless it has to wait. */
static struct hw_nand_op *next_operation(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_die *die = die_at(nand, d);
    struct hw_nand_list *list = &die->urgent;
    struct hw_nand_op *op = hw_nand_list_first(nand, list);

    if (die->suspended != HW_NAND_NONE) {
        return is_overtaken(nand, d, &nand->ops[die->suspended])
                   ? hw_nand_list_take(nand, list)
                   : NULL;
    }
    if (op == NULL) {
        list = &die->normal;
        op = hw_nand_list_first(nand, list);
    }
    return op == NULL || waits_for_reads(nand, d, op)
               ? NULL
               : hw_nand_list_take(nand, list);
}

static bool begin_operation(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_die *die = die_at(nand, d);
    struct hw_nand_op *op;

    hw_nand_reads_end(nand, die);
    op = next_operation(nand, d);
    if (op == NULL) {
        return die->suspended != HW_NAND_NONE && resume_operation(nand, d);
    }
    if (hw_nand_reads_take(nand, die, op)) {
        hw_nand_reads_begin(nand, die, op);
        return true;
    }
    die->op = hw_nand_op_index(nand, op);
    if (!hw_nand_op_open(nand, op)) {
        return end_operation(nand, d);
    }
    die->state = HW_DIE_ACCEPTS;
    return hw_nand_channel_take(nand, d);
}

static bool start_in_array(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_die *die = die_at(nand, d);
    struct hw_nand_op *op = op_of(nand, d);

    hw_nand_channel_release(nand, d, die->clock_ns);
    if (op->cursor > 0) { /* its data has been read with the first entries */
        die->state = HW_DIE_BUSY;
        return pass_time(nand, d, hw_nand_busy_ns(nand, op));
    }
    die->state = HW_DIE_STARTS;
    return nand_op_start(nand->array, op->array_op, hw_nand_now_ns(nand));
}

static bool begin_in_die(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_die *die = die_at(nand, d);
    struct hw_nand_op *op = op_of(nand, d);
    uint64_t busy_ns;

    hw_nand_op_judge(nand, op);
    if (op->status != NAND_CQE_OK && op->status != NAND_CQE_FAILED) {
        return end_operation(nand, d);
    }
    busy_ns = hw_nand_busy_ns(nand, op);
    if (is_overtaken(nand, d, op)) {
        suspend_operation(nand, d, busy_ns);
        return true;
    }
    busy_ns += die->suspend_ns;
    die->suspend_ns = 0;
    die->state = HW_DIE_BUSY;
    return pass_time(nand, d, busy_ns);
}

static bool end_in_die(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_die *die = die_at(nand, d);
    struct hw_nand_op *op = op_of(nand, d);

    if (op->opcode == NAND_CMD_READ) {
        die->state = HW_DIE_OFFERS;
        return hw_nand_channel_take(nand, d);
    }
    die->state = HW_DIE_FINISHES;
    return nand_op_finish(nand->array, op->array_op, hw_nand_now_ns(nand));
}

static void count_change(struct hw_nand *nand, const struct hw_nand_op *op)
{
    unsigned int planes = (unsigned int)__builtin_popcount(op->planes);
    unsigned int failed = (unsigned int)__builtin_popcount(op->failed_planes);

    if (op->opcode == NAND_CMD_PROGRAM) {
        hw_nand_count(nand, NAND_COUNT_UNITS_PROGRAMMED,
                      op->entries / planes * (planes - failed));
        hw_nand_count(nand, NAND_COUNT_PROGRAM_FAILURES, failed);
    } else {
        hw_nand_count(nand, NAND_COUNT_BLOCKS_ERASED, planes - failed);
        hw_nand_count(nand, NAND_COUNT_ERASE_FAILURES, failed);
    }
}

static bool end_in_array(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_op *op = op_of(nand, d);

    hw_nand_op_judge(nand, op);
    if (op->status == NAND_CQE_FAILED) {
        op->failed_planes = op->array_op->failed_planes;
    }
    if (op->opcode != NAND_CMD_READ &&
        (op->status == NAND_CQE_OK || op->status == NAND_CQE_FAILED)) {
        count_change(nand, op);
    }
    return end_operation(nand, d);
}

static bool end_transfer(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_die *die = die_at(nand, d);
    struct hw_nand_op *op = op_of(nand, d);

    hw_nand_channel_release(nand, d, die->clock_ns);
    op->cursor = hw_nand_read_end(op);
    if (op->cursor < op->entries) {
        die->state = HW_DIE_ACCEPTS;
        return hw_nand_channel_take(nand, d);
    }
    die->state = HW_DIE_FINISHES;
    return nand_op_finish(nand->array, op->array_op, hw_nand_now_ns(nand));
}

static bool do_step(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_die *die = die_at(nand, d);

    switch ((enum hw_nand_die_state)die->state) {
    case HW_DIE_IDLE:
        return begin_operation(nand, d);
    case HW_DIE_ACCEPTS:
        die->state = HW_DIE_RECEIVES;
        return pass_time(nand, d, hw_nand_input_ns(nand, op_of(nand, d)));
    case HW_DIE_RECEIVES:
        return start_in_array(nand, d);
    case HW_DIE_STARTS:
        return begin_in_die(nand, d);
    case HW_DIE_BUSY:
        return end_in_die(nand, d);
    case HW_DIE_FINISHES:
        return end_in_array(nand, d);
    case HW_DIE_OFFERS:
        die->state = HW_DIE_SENDS;
        return pass_time(nand, d, hw_nand_output_ns(nand, op_of(nand, d)));
    case HW_DIE_SENDS:
        return end_transfer(nand, d);
    }
    return false;
}

void hw_nand_dies_run(struct hw_nand *nand)
{
    while (nand->ready_head != HW_NAND_NONE) {
        uint32_t d = nand->ready_head;

        nand->ready_head = nand->dies[d].next_ready;
        nand->dies[d].is_ready = false;
        while (do_step(nand, d)) {
        }
    }
}

/* Whether the die's operation waits for the channel and has not begun. */
static bool waits_to_begin(struct hw_nand *nand, uint32_t d)
{
    const struct hw_nand_die *die = die_at(nand, d);

    return die->state == HW_DIE_ACCEPTS && !die->is_ready &&
           op_of(nand, d)->cursor == 0;
}

/* Let the operation of a die that waits to begin be taken again later. */
static void put_back_operation(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_die *die = die_at(nand, d);
    struct hw_nand_op *op = op_of(nand, d);

    hw_nand_channel_leave(nand, d);
    nand_op_put(nand->array, op->array_op);
    op->array_op = NULL;
    hw_nand_list_put_first(nand, &die->normal, op);
    die->op = HW_NAND_NONE;
    die->state = HW_DIE_IDLE;
}

void hw_nand_die_submit(struct hw_nand *nand, struct hw_nand_op *op)
{
    uint32_t d = op->die;
    struct hw_nand_die *die = die_at(nand, d);

    hw_nand_list_put(nand, op->is_urgent ? &die->urgent : &die->normal, op);
    if (op->is_urgent && waits_to_begin(nand, d) &&
        !op_of(nand, d)->is_urgent) {
        put_back_operation(nand, d);
    } else if (op->is_urgent && die->state == HW_DIE_BUSY &&
               is_overtaken(nand, d, op_of(nand, d))) {
        uint64_t now_ns = hw_nand_now_ns(nand);
        uint64_t end_ns = nand->timers[d].end_ns;

        hw_nand_timer_stop(nand, d);
        suspend_operation(nand, d, end_ns > now_ns ? end_ns - now_ns : 0);
    }
    if (die->state == HW_DIE_IDLE) {
        die->clock_ns = hw_nand_now_ns(nand);
        hw_nand_die_ready(nand, d);
    }
}

void hw_nand_die_served(void *ctx, struct nand_op *array_op)
{
    struct hw_nand_op *op = array_op->owner;

    op->is_served = true;
    hw_nand_die_ready(ctx, op->die);
}

/* ---- Reset */

static void drop_list(struct hw_nand *nand, struct hw_nand_list *list)
{
    struct hw_nand_op *op;

    while ((op = hw_nand_list_take(nand, list)) != NULL) {
        op->status = NAND_CQE_ABORTED;
        hw_nand_command_end(nand, op);
    }
}

static bool receives_command(struct hw_nand *nand, uint32_t d)
{
    return die_at(nand, d)->state == HW_DIE_RECEIVES &&
           op_of(nand, d)->cursor == 0;
}

static void drop_operation(struct hw_nand *nand, uint32_t d)
{
    op_of(nand, d)->status = NAND_CQE_ABORTED;
    (void)end_operation(nand, d);
    hw_nand_die_ready(nand, d); /* it may have suspended an operation */
}

void hw_nand_dies_reset(struct hw_nand *nand)
{
    for (uint32_t d = 0; d < nand->num_dies; d++) {
        drop_list(nand, &die_at(nand, d)->urgent);
        drop_list(nand, &die_at(nand, d)->normal);
        if (waits_to_begin(nand, d)) {
            hw_nand_channel_leave(nand, d);
            drop_operation(nand, d);
        }
    }
    for (uint32_t d = 0; d < nand->num_dies; d++) {
        if (receives_command(nand, d)) {
            hw_nand_timer_stop(nand, d);
            hw_nand_channel_release(nand, d, hw_nand_now_ns(nand));
            drop_operation(nand, d);
        }
    }
}

void hw_nand_dies_init(struct hw_nand *nand)
{
    for (uint32_t d = 0; d < HW_NAND_DIES; d++) {
        nand->dies[d] =
            (struct hw_nand_die){.op = HW_NAND_NONE, .suspended = HW_NAND_NONE};
        hw_nand_list_init(&nand->dies[d].urgent);
        hw_nand_list_init(&nand->dies[d].normal);
        hw_nand_list_init(&nand->dies[d].reads);
    }
    for (uint32_t i = 0; i < HW_NAND_CHANNELS; i++) {
        nand->channels[i] = (struct hw_nand_channel){.head = HW_NAND_NONE,
                                                     .tail = HW_NAND_NONE};
    }
    nand->ready_head = HW_NAND_NONE;
    nand->ready_tail = HW_NAND_NONE;
}
