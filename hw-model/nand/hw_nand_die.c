/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What dies do: the order of their operations, and the steps of each operation.
 * Reference: docs/hardware/nand.md, sections 4 and 6.
 *
 * A register of a die does a step when its state has ended: when its time has
 * passed, when the register gets the channel, or when the array has accessed
 * its storage.  The step enters the next state.  Registers whose state has
 * ended are in the list of ready registers.  This file has the steps of the
 * page register; those of the cache register are in hw_nand_cache.c.
 *
 * The clock of a register may be behind the time: it stands still while the
 * array accesses its storage, and timers may be late.  What follows happens at
 * the clock's time.  But a command does not exist before it was taken, at
 * hw_nand_op.taken_ns.
 *
 * Reads that take no time have no such states: see hw_nand_reads.c.
 */
#include "hw-model/nand/hw_nand_internal.h"

/* How many urgent reads in a row are taken before a command that waits. */
enum { PASSES_MAX = 16 };

static struct hw_nand_die *die_at(struct hw_nand *nand, uint32_t d)
{
    return &nand->dies[d];
}

static struct hw_nand_op *op_of(struct hw_nand *nand, uint32_t d)
{
    return &nand->ops[hw_nand_page(nand, d)->op];
}

/* ---- Suspension */

/* Whether an operation may be suspended.  It would end at `end_ns` if it went
 * on. */
static bool can_be_suspended(const struct hw_nand *nand,
                             const struct hw_nand_op *op, uint64_t end_ns)
{
    return op->opcode != NAND_CMD_READ && hw_nand_is_timed(nand) &&
           nand_array_profile(nand->array)->suspend_ns != 0 &&
           end_ns < op->limit_ns;
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

/* Whether an urgent read shall begin before `op` continues.  `op` would end at
 * `end_ns` if it went on. */
static bool is_overtaken(struct hw_nand *nand, uint32_t d,
                         const struct hw_nand_op *op, uint64_t end_ns)
{
    const struct hw_nand_op *read =
        hw_nand_list_first(nand, &die_at(nand, d)->urgent);

    return read != NULL && read->taken_ns < end_ns &&
           can_be_suspended(nand, op, end_ns) && !is_same_block(op, read);
}

static void suspend_operation(struct hw_nand *nand, uint32_t d,
                              uint64_t remaining_ns)
{
    struct hw_nand_die *die = die_at(nand, d);
    struct hw_nand_register *page = hw_nand_page(nand, d);

    die->suspended = page->op;
    die->remaining_ns = remaining_ns;
    die->suspend_ns = nand_array_profile(nand->array)->suspend_ns;
    page->op = HW_NAND_NONE;
    page->state = HW_DIE_IDLE;
    hw_nand_count(nand, NAND_COUNT_SUSPENDS, 1);
}

/* Suspend the operation that has begun in the array: its `busy_ns` begin at the
 * clock of the page register, and a read overtakes it, which may have come
 * later than that. */
static void suspend_at_read(struct hw_nand *nand, uint32_t d, uint64_t busy_ns)
{
    const struct hw_nand_op *read =
        hw_nand_list_first(nand, &die_at(nand, d)->urgent);
    struct hw_nand_register *page = hw_nand_page(nand, d);
    uint64_t begun_ns = page->clock_ns;

    if (read->taken_ns > begun_ns) {
        page->state = HW_DIE_BUSY;
        hw_nand_register_cut(nand, d, read->taken_ns);
    }
    suspend_operation(nand, d, begun_ns + busy_ns - page->clock_ns);
}

static bool resume_operation(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_die *die = die_at(nand, d);
    struct hw_nand_register *page = hw_nand_page(nand, d);

    page->op = die->suspended;
    die->suspended = HW_NAND_NONE;
    die->suspend_ns = 0;
    page->state = HW_DIE_BUSY;
    if (hw_nand_die_is_dead(nand, d) ||
        hw_nand_register_pass(nand, d,
                              die->remaining_ns +
                                  nand_array_profile(nand->array)->resume_ns)) {
        return true;
    }
    hw_nand_cache(nand, d)->clock_ns = page->clock_ns;
    hw_nand_cache_fill(nand, d);
    return false;
}

/* ---- Which operation is next */

bool hw_nand_die_prefers_urgent(const struct hw_nand *nand, uint32_t d)
{
    const struct hw_nand_die *die = &nand->dies[d];

    return die->urgent.head != HW_NAND_NONE && die->passes < PASSES_MAX;
}

/* Whether an urgent read is next, and came before another operation could begin
 * at `other_ns`.  While operations take no time, it passes all that wait. */
static bool has_urgent_at(struct hw_nand *nand, uint32_t d, uint64_t other_ns)
{
    const struct hw_nand_op *read =
        hw_nand_list_first(nand, &die_at(nand, d)->urgent);

    return hw_nand_die_prefers_urgent(nand, d) &&
           (read->taken_ns <= other_ns || !hw_nand_is_timed(nand));
}

/* When the first operation of the normal list could begin. */
static uint64_t normal_begins_ns(struct hw_nand *nand, uint32_t d)
{
    const struct hw_nand_op *op =
        hw_nand_list_first(nand, &die_at(nand, d)->normal);

    return op != NULL ? MAX(hw_nand_page(nand, d)->clock_ns, op->taken_ns)
                      : UINT64_MAX;
}

/* The list whose first operation is next; NULL: there is none. */
static struct hw_nand_list *next_list(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_die *die = die_at(nand, d);

    if (die->suspended != HW_NAND_NONE) {
        uint64_t end_ns = hw_nand_page(nand, d)->clock_ns + die->remaining_ns;

        return is_overtaken(nand, d, &nand->ops[die->suspended], end_ns)
                   ? &die->urgent
                   : NULL;
    }
    if (has_urgent_at(nand, d, normal_begins_ns(nand, d))) {
        return &die->urgent;
    }
    if (die->normal.head != HW_NAND_NONE) {
        return &die->normal;
    }
    return die->urgent.head != HW_NAND_NONE ? &die->urgent : NULL;
}

/* Take the first operation of the list that is next. */
static struct hw_nand_op *take_next(struct hw_nand *nand, uint32_t d,
                                    struct hw_nand_list *list)
{
    struct hw_nand_die *die = die_at(nand, d);

    if (list == &die->normal || die->normal.head == HW_NAND_NONE) {
        die->passes = 0;
    } else if (die->passes < PASSES_MAX) {
        die->passes++;
    }
    return hw_nand_list_take(nand, list);
}

/* The page register is idle, and takes the program that was transferred. */
static bool begin_cached_program(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_register *page = hw_nand_page(nand, d);
    struct hw_nand_register *cache = hw_nand_cache(nand, d);

    page->op = cache->op;
    page->clock_ns = MAX(page->clock_ns, cache->clock_ns);
    page->state = HW_DIE_STARTS;
    cache->op = HW_NAND_NONE;
    cache->state = HW_DIE_IDLE;
    die_at(nand, d)->copy_ns = 0;
    die_at(nand, d)->passes = 0;
    return nand_op_start(nand->array, op_of(nand, d)->array_op,
                         hw_nand_now_ns(nand));
}

/* Begin an operation while the cache register has data that was read: only
 * another read can begin. */
static bool begin_beside_read(struct hw_nand *nand, uint32_t d)
{
    const struct hw_nand_die *die = die_at(nand, d);
    const struct hw_nand_op *next;
    struct hw_nand_list *list;

    if (hw_nand_cache(nand, d)->state != HW_DIE_HOLDS) {
        return false; /* The data is being sent. */
    }
    list = next_list(nand, d);
    next = list != NULL ? hw_nand_list_first(nand, list) : NULL;
    if (next != NULL && next->opcode == NAND_CMD_READ &&
        next->taken_ns <= hw_nand_page(nand, d)->clock_ns) {
        return hw_nand_register_begin(nand, d, take_next(nand, d, list));
    }
    (void)hw_nand_cache_send(nand, d, die->is_chained);
    return false;
}

/* Whether the program in the cache register has to leave it.  An urgent read
 * needs both registers.  While an operation is suspended, no program begins,
 * because a die can suspend only one operation. */
static bool must_drop_program(struct hw_nand *nand, uint32_t d)
{
    const struct hw_nand_register *cache = hw_nand_cache(nand, d);
    uint64_t begins_ns =
        cache->state == HW_DIE_HOLDS
            ? MAX(hw_nand_page(nand, d)->clock_ns, cache->clock_ns)
            : UINT64_MAX;

    return die_at(nand, d)->suspended != HW_NAND_NONE ||
           has_urgent_at(nand, d, begins_ns);
}

/* Begin an operation while the cache register is not idle. */
static bool begin_beside_cache(struct hw_nand *nand, uint32_t d)
{
    const struct hw_nand_register *cache = hw_nand_cache(nand, d);

    if (cache->op != HW_NAND_NONE &&
        nand->ops[cache->op].opcode == NAND_CMD_READ) {
        return begin_beside_read(nand, d);
    }
    if (cache->op == HW_NAND_NONE || must_drop_program(nand, d)) {
        hw_nand_cache_drop(nand, d);
        return true;
    }
    return cache->state == HW_DIE_HOLDS && begin_cached_program(nand, d);
}

/* Whether an operation has to wait for reads that are in progress. */
static bool waits_for_reads(const struct hw_nand *nand, uint32_t d,
                            const struct hw_nand_op *op)
{
    return nand->dies[d].num_reads != 0 &&
           !hw_nand_reads_take(nand, &nand->dies[d], op);
}

static bool begin_operation(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_die *die = die_at(nand, d);
    struct hw_nand_list *list;
    struct hw_nand_op *op;

    hw_nand_reads_end(nand, die);
    if (hw_nand_cache(nand, d)->state != HW_DIE_IDLE) {
        return begin_beside_cache(nand, d);
    }
    list = next_list(nand, d);
    if (list == NULL) {
        return die->suspended != HW_NAND_NONE && resume_operation(nand, d);
    }
    if (waits_for_reads(nand, d, hw_nand_list_first(nand, list))) {
        return false;
    }
    op = take_next(nand, d, list);
    if (hw_nand_reads_take(nand, die, op)) {
        hw_nand_reads_begin(nand, die, op);
        return true;
    }
    return hw_nand_register_begin(nand, d, op);
}

/* ---- Steps.  They return whether the state that they enter has ended. */

static bool start_in_array(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_die *die = die_at(nand, d);
    struct hw_nand_register *page = hw_nand_page(nand, d);
    struct hw_nand_op *op = op_of(nand, d);

    hw_nand_channel_release(nand, d, page->clock_ns);
    die->copy_ns = hw_nand_cache(nand, d)->state == HW_DIE_HOLDS
                       ? hw_nand_cache_send(nand, d, true)
                       : 0;
    if (op->cursor > 0) { /* its data has been read with the first entries */
        page->state = HW_DIE_BUSY;
        return hw_nand_register_pass(nand, d,
                                     die->copy_ns + hw_nand_busy_ns(nand, op));
    }
    page->state = HW_DIE_STARTS;
    return nand_op_start(nand->array, op->array_op, hw_nand_now_ns(nand));
}

static bool begin_in_die(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_die *die = die_at(nand, d);
    struct hw_nand_op *op = op_of(nand, d);
    uint64_t clock_ns = hw_nand_page(nand, d)->clock_ns, busy_ns;

    hw_nand_op_judge(nand, op);
    if (op->status != NAND_CQE_OK && op->status != NAND_CQE_FAILED) {
        return hw_nand_register_end(nand, d);
    }
    busy_ns = hw_nand_busy_ns(nand, op);
    op->limit_ns = clock_ns + 2 * busy_ns;
    if (is_overtaken(nand, d, op, clock_ns + busy_ns)) {
        suspend_at_read(nand, d, busy_ns);
        return true;
    }
    busy_ns += die->suspend_ns + die->copy_ns;
    die->suspend_ns = 0;
    hw_nand_page(nand, d)->state = HW_DIE_BUSY;
    if (hw_nand_register_pass(nand, d, busy_ns)) {
        return true;
    }
    if (op->opcode == NAND_CMD_PROGRAM) {
        hw_nand_cache_copy(nand, d);
    }
    return false;
}

/* Whether data that the page register has read goes through the cache register.
 * A stop or a reset may begin while the cache register still has earlier data,
 * perhaps of the same operation: then the page register has to wait for it. */
static bool passes_cache(struct hw_nand *nand, uint32_t d)
{
    return hw_nand_has_cache(nand) ||
           hw_nand_cache(nand, d)->state != HW_DIE_IDLE;
}

static bool end_in_die(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_register *page = hw_nand_page(nand, d);
    struct hw_nand_op *op = op_of(nand, d);

    if (op->opcode == NAND_CMD_READ) {
        if (passes_cache(nand, d)) {
            page->state = HW_DIE_HOLDS;
            return true;
        }
        page->state = HW_DIE_OFFERS;
        return hw_nand_channel_take(nand, d);
    }
    page->state = HW_DIE_FINISHES;
    return nand_op_finish(nand->array, op->array_op, hw_nand_now_ns(nand));
}

static bool end_transfer(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_register *page = hw_nand_page(nand, d);
    struct hw_nand_op *op = op_of(nand, d);

    hw_nand_channel_release(nand, d, page->clock_ns);
    op->cursor = hw_nand_read_end(op, op->cursor);
    if (op->cursor < op->entries) {
        page->state = HW_DIE_ACCEPTS;
        return hw_nand_channel_take(nand, d);
    }
    page->state = HW_DIE_FINISHES;
    return nand_op_finish(nand->array, op->array_op, hw_nand_now_ns(nand));
}

static bool do_step(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_register *page = hw_nand_page(nand, d);

    switch ((enum hw_nand_die_state)page->state) {
    case HW_DIE_IDLE:
        return begin_operation(nand, d);
    case HW_DIE_ACCEPTS:
        page->state = HW_DIE_RECEIVES;
        return hw_nand_register_pass(nand, d,
                                     hw_nand_input_ns(nand, op_of(nand, d)));
    case HW_DIE_RECEIVES:
        return start_in_array(nand, d);
    case HW_DIE_STARTS:
        return begin_in_die(nand, d);
    case HW_DIE_BUSY:
        return end_in_die(nand, d);
    case HW_DIE_FINISHES:
        return hw_nand_register_finish(nand, d);
    case HW_DIE_HOLDS:
        return hw_nand_cache_take(nand, d);
    case HW_DIE_OFFERS:
        page->state = HW_DIE_SENDS;
        return hw_nand_register_pass(
            nand, d,
            hw_nand_output_ns(nand, op_of(nand, d), op_of(nand, d)->cursor));
    case HW_DIE_SENDS:
        return end_transfer(nand, d);
    case HW_DIE_COPIES: /* the cache register only */
        break;
    }
    return false;
}

static bool do_step_of(struct hw_nand *nand, uint32_t r)
{
    return r < HW_NAND_DIES ? do_step(nand, r)
                            : hw_nand_cache_step(nand, r - HW_NAND_DIES);
}

void hw_nand_dies_run(struct hw_nand *nand)
{
    while (nand->ready_head != HW_NAND_NONE) {
        uint32_t r = nand->ready_head;

        nand->ready_head = nand->registers[r].next_ready;
        nand->registers[r].is_ready = false;
        while (do_step_of(nand, r)) {
        }
    }
}

/* Whether the operation of a register waits for the channel and has not begun.
 */
static bool waits_to_begin(const struct hw_nand *nand, uint32_t r)
{
    const struct hw_nand_register *reg = &nand->registers[r];

    return reg->state == HW_DIE_ACCEPTS && !reg->is_ready &&
           nand->ops[reg->op].cursor == 0;
}

/* An urgent read has come at `now_ns`. */
static void overtake_operation(struct hw_nand *nand, uint32_t d,
                               uint64_t now_ns)
{
    const struct hw_nand_register *page = hw_nand_page(nand, d);

    if (waits_to_begin(nand, d) && !op_of(nand, d)->is_urgent &&
        hw_nand_die_prefers_urgent(nand, d)) {
        hw_nand_register_put_back(nand, d);
    } else if (page->state == HW_DIE_BUSY &&
               is_overtaken(nand, d, op_of(nand, d), nand->timers[d].end_ns)) {
        uint64_t end_ns = nand->timers[d].end_ns;

        hw_nand_register_cut(nand, d, now_ns);
        suspend_operation(nand, d, end_ns > now_ns ? end_ns - now_ns : 0);
    }
}

void hw_nand_die_submit(struct hw_nand *nand, struct hw_nand_op *op)
{
    uint32_t d = op->die;
    struct hw_nand_die *die = die_at(nand, d);
    struct hw_nand_register *page = hw_nand_page(nand, d);

    hw_nand_list_put(nand, op->is_urgent ? &die->urgent : &die->normal, op);
    if (op->is_urgent) {
        overtake_operation(nand, d, op->taken_ns);
    }
    if (page->state == HW_DIE_IDLE) {
        page->clock_ns = op->taken_ns;
        hw_nand_register_ready(nand, d);
    } else if (page->state == HW_DIE_BUSY && op->opcode == NAND_CMD_PROGRAM &&
               hw_nand_cache(nand, d)->state == HW_DIE_IDLE) {
        hw_nand_cache(nand, d)->clock_ns = op->taken_ns;
        hw_nand_cache_fill(nand, d);
    }
}

void hw_nand_die_served(void *ctx, struct nand_op *array_op)
{
    struct hw_nand *nand = ctx;
    struct hw_nand_op *op = array_op->owner;
    const struct hw_nand_register *cache = hw_nand_cache(nand, op->die);

    op->is_served = true;
    hw_nand_register_ready(nand, cache->state == HW_DIE_FINISHES &&
                                         cache->op == hw_nand_op_index(nand, op)
                                     ? hw_nand_cache_of(op->die)
                                     : op->die);
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

static bool receives_command(const struct hw_nand *nand, uint32_t r)
{
    const struct hw_nand_register *reg = &nand->registers[r];

    return reg->state == HW_DIE_RECEIVES && nand->ops[reg->op].cursor == 0;
}

static bool holds_program(const struct hw_nand *nand, uint32_t r)
{
    const struct hw_nand_register *reg = &nand->registers[r];

    return reg->state == HW_DIE_HOLDS &&
           nand->ops[reg->op].opcode == NAND_CMD_PROGRAM;
}

static void drop_operation(struct hw_nand *nand, uint32_t r)
{
    uint32_t d = r % HW_NAND_DIES;

    nand->ops[nand->registers[r].op].status = NAND_CQE_ABORTED;
    (void)hw_nand_register_end(nand, r);
    if (hw_nand_page(nand, d)->state == HW_DIE_IDLE) {
        /* The die may have a suspended operation, or data in its other
         * register. */
        hw_nand_register_ready(nand, d);
    }
}

void hw_nand_dies_reset(struct hw_nand *nand)
{
    for (uint32_t d = 0; d < nand->num_dies; d++) {
        drop_list(nand, &die_at(nand, d)->urgent);
        drop_list(nand, &die_at(nand, d)->normal);
        die_at(nand, d)->passes = 0;
        die_at(nand, d)->failed_planes = 0;
    }
    for (uint32_t r = 0; r < HW_NAND_REGISTERS; r++) {
        if (waits_to_begin(nand, r)) {
            hw_nand_channel_leave(nand, r);
            drop_operation(nand, r);
        } else if (holds_program(nand, r)) {
            drop_operation(nand, r);
        }
    }
    for (uint32_t r = 0; r < HW_NAND_REGISTERS; r++) {
        if (receives_command(nand, r)) {
            hw_nand_register_cut(nand, r, hw_nand_now_ns(nand));
            hw_nand_channel_release(nand, r, hw_nand_now_ns(nand));
            drop_operation(nand, r);
        }
    }
}

void hw_nand_dies_init(struct hw_nand *nand)
{
    for (uint32_t d = 0; d < HW_NAND_DIES; d++) {
        nand->dies[d] = (struct hw_nand_die){.suspended = HW_NAND_NONE};
        hw_nand_list_init(&nand->dies[d].urgent);
        hw_nand_list_init(&nand->dies[d].normal);
        hw_nand_list_init(&nand->dies[d].reads);
    }
    for (uint32_t r = 0; r < HW_NAND_REGISTERS; r++) {
        nand->registers[r] = (struct hw_nand_register){.op = HW_NAND_NONE};
    }
    for (uint32_t i = 0; i < HW_NAND_CHANNELS; i++) {
        nand->channels[i] = (struct hw_nand_channel){.head = HW_NAND_NONE,
                                                     .tail = HW_NAND_NONE};
    }
    nand->ready_head = HW_NAND_NONE;
    nand->ready_tail = HW_NAND_NONE;
}
