/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/medium/nand_seam.h"

#include <string.h>

#include "firmware/hal/relax.h"
#include "firmware/hal/time.h"
#include "lib/patience.h"

enum {
    MARKS_US = 1000000, /* longest wait for the marks of a die */
    REPEATS_MAX = 3,    /* repetitions of an operation that changed nothing */
};

_Static_assert((int)FTL_UNIT_DATA == (int)NAND_DATA_LEN &&
                   (int)FTL_UNIT_META == (int)NAND_META_LEN &&
                   (int)FTL_UNIT_SYSTEM == (int)NAND_SYSTEM_LEN &&
                   (int)FTL_PLANES_MAX == (int)NAND_PLANES_MAX &&
                   (int)FTL_PLANES_MAX == 4 &&
                   (int)FTL_OP_UNITS == (int)NAND_READ_ENTRIES_MAX,
               "the translation layer repeats these numbers");
_Static_assert((int)FTL_TAG_NUMBER == (int)NAND_TAG_NUMBER &&
                   (int)FTL_TAG_CAUSE_SHIFT == (int)NAND_TAG_CAUSE_SHIFT,
               "a tag of the translation layer is one of the controller");
_Static_assert((int)FTL_MOVE_COPY == (int)NAND_MOVE_COPY &&
                   (int)FTL_MOVE_XOR == (int)NAND_MOVE_XOR &&
                   (int)FTL_MOVE_ADD_GUARD == (int)NAND_MOVE_ADD_GUARD &&
                   (int)FTL_MOVE_PROTECT == (int)NAND_MOVE_PROTECT &&
                   (int)FTL_MOVE_ADD_ROW == (int)NAND_MOVE_ADD_ROW &&
                   (int)FTL_MOVE_BEGIN == (int)NAND_MOVE_BEGIN &&
                   (int)MEDIA_PI_TYPE == (int)NAND_MOVE_PI_TYPE &&
                   (int)MEDIA_CHECK_REF == (int)NAND_MOVE_CHECK_REF &&
                   (int)MEDIA_CHECK_APP == (int)NAND_MOVE_CHECK_APP &&
                   (int)MEDIA_CHECK_GUARD == (int)NAND_MOVE_CHECK_GUARD &&
                   (int)FTL_UNIT_DATA == (int)NAND_MOVE_BYTES_MAX &&
                   sizeof(struct ftl_move) == NAND_MOVE_LEN &&
                   offsetof(struct ftl_move, source) == NAND_MOVE_SOURCE &&
                   offsetof(struct ftl_move, target) == NAND_MOVE_TARGET &&
                   offsetof(struct ftl_move, length) == NAND_MOVE_LENGTH &&
                   offsetof(struct ftl_move, length) == NAND_MOVE_REF_TAG &&
                   offsetof(struct ftl_move, kind) == NAND_MOVE_OPCODE &&
                   offsetof(struct ftl_move, flags) == NAND_MOVE_FLAGS &&
                   offsetof(struct ftl_move, app_tag) == NAND_MOVE_APP_TAG &&
                   offsetof(struct ftl_move, app_mask) == NAND_MOVE_APP_MASK &&
                   offsetof(struct ftl_move, op) == NAND_MOVE_FREE,
               "and these");

static const uint8_t opcode_of[] = {
    [FTL_FLASH_READ] = NAND_CMD_READ,
    [FTL_FLASH_PROGRAM] = NAND_CMD_PROGRAM,
    [FTL_FLASH_ERASE] = NAND_CMD_ERASE,
};

static uint8_t *op_list(const struct nand_seam *seam, uint32_t cookie)
{
    return seam->lists + (size_t)cookie * FTL_OP_UNITS * NAND_ENTRY_LEN;
}

/* The controller's address of memory of the translation layer or of a host's
 * request, all of which is in the DRAM. */
static inline uint64_t memory_addr(const struct nand_seam *seam,
                                   const void *memory)
{
    return (uintptr_t)memory + seam->move_list.addr_offset;
}

static inline uint64_t memory_addr_or_zero(const struct nand_seam *seam,
                                           const void *memory)
{
    return memory != NULL ? memory_addr(seam, memory) : 0;
}

static inline void write_read_entry(const struct nand_seam *seam,
                                    uint8_t *entry,
                                    const struct ftl_flash_op *op,
                                    const struct ftl_flash_unit *unit)
{
    const struct nand_place place = {
        .wordline = op->wordline,
        .plane = unit->plane,
        .page = unit->page,
        .unit = unit->unit,
    };

    nand_entry_read_at(entry, &place, memory_addr_or_zero(seam, unit->data),
                       unit->offset, unit->length,
                       memory_addr_or_zero(seam, unit->meta), unit->more);
}

/* This is not inline, so that a read of one unit need not save the registers
 * that the loop uses. */
static __attribute__((noinline)) void write_read_entries(
    const struct nand_seam *seam, uint8_t *entry, const struct ftl_flash_op *op)
{
    for (unsigned int i = 0; i < op->num_units; i++) {
        write_read_entry(seam, entry + (size_t)i * NAND_ENTRY_LEN, op,
                         &op->units[i]);
    }
}

static __attribute__((noinline)) void write_program_entries(
    const struct nand_seam *seam, uint8_t *entry, const struct ftl_flash_op *op)
{
    const struct ftl_flash_unit *end = op->units + op->num_units;

    for (const struct ftl_flash_unit *unit = op->units; unit != end; unit++) {
        nand_entry_program_at(entry, memory_addr(seam, unit->data),
                              memory_addr_or_zero(seam, unit->meta),
                              unit->system);
        entry += NAND_ENTRY_LEN;
    }
}

/* Submit a read of one unit.  Most operations are such reads. */
static bool submit_read_of_unit(struct nand_seam *seam,
                                const struct ftl_flash_op *op)
{
    uint8_t *entry = op_list(seam, op->cookie);
    uint8_t *slot = nand_next_slot(seam->nand);
    struct nand_command command;

    if (slot == NULL) {
        return false;
    }
    write_read_entry(seam, entry, op, op->units);
    seam->ops[op->cookie] = (struct nand_seam_op){
        .flash = op,
        .is_read = true,
        .wants_system = op->units[0].system != NULL,
    };
    command = (struct nand_command){
        .opcode = NAND_CMD_READ,
        .channel = (uint8_t)(op->die / seam->dies),
        .die = (uint8_t)(op->die % seam->dies),
        .planes = op->planes,
        .urgent = op->is_urgent,
        .block = {op->block, op->block, op->block, op->block},
        .wordline = op->wordline,
        .entries = 1,
        .cookie = op->cookie,
        .tag = op->tag,
    };
    nand_write_command(seam->nand, slot, &command, memory_addr(seam, entry));
    return true;
}

static bool submit_command(struct nand_seam *seam,
                           const struct ftl_flash_op *op)
{
    uint8_t *slot = nand_next_slot(seam->nand);
    const struct nand_command command = {
        .opcode = (enum nand_opcode)opcode_of[op->kind],
        .channel = (uint8_t)(op->die / seam->dies),
        .die = (uint8_t)(op->die % seam->dies),
        .planes = op->planes,
        .urgent = op->is_urgent,
        .reuse = op->is_reused,
        .block = {op->block, op->block, op->block, op->block},
        .wordline = op->wordline,
        .entries = op->num_units,
        .cookie = op->cookie,
        .tag = op->tag,
    };

    if (slot == NULL) {
        return false;
    }
    nand_write_command(
        seam->nand, slot, &command,
        op->num_units != 0 ? memory_addr(seam, op_list(seam, op->cookie)) : 0);
    return true;
}

/* This is not inline for the same reason as write_read_entries(). */
static __attribute__((noinline)) bool submit_other(
    struct nand_seam *seam, const struct ftl_flash_op *op)
{
    uint8_t *list = op_list(seam, op->cookie);

    if (op->kind == FTL_FLASH_READ) {
        write_read_entries(seam, list, op);
    } else if (!op->is_listed) {
        write_program_entries(seam, list, op);
    }
    seam->ops[op->cookie] = (struct nand_seam_op){
        .flash = op,
        .is_read = op->kind == FTL_FLASH_READ,
        .wants_system = op->units[0].system != NULL,
    };
    return submit_command(seam, op);
}

static bool submit_op(void *ctx, const struct ftl_flash_op *op)
{
    struct nand_seam *seam = ctx;

    ASSERT(op->cookie < seam->num_ops);
    return op->kind == FTL_FLASH_READ && op->num_units == 1
               ? submit_read_of_unit(seam, op)
               : submit_other(seam, op);
}

static uint64_t list_units(void *ctx, const struct ftl_flash_op *op)
{
    const struct nand_seam *seam = ctx;

    write_program_entries(seam, op_list(seam, op->cookie), op);
    return memory_addr(seam, op_list(seam, op->cookie));
}

/* Remove the first `done` moves of the list. */
static void drop_moves(struct ftl_moves *moves, uint32_t done)
{
    moves->count -= done;
    memmove(moves->list, moves->list + done,
            moves->count * sizeof(moves->list[0]));
}

/* The controller has refused the first move of the list.  If the memory of the
 * move has a lost word, clear the word, so that the controller can do the move.
 * Otherwise let the hart do the move, and remove it from the list. */
static void handle_refusal(struct nand_seam *seam)
{
    if (seam->find_lost_words == NULL || !seam->find_lost_words(seam->ctx)) {
        /* No hart can do the moves of protection information.  The controller
         * does not refuse them, because their data is in memory that it can
         * access. */
        ASSERT(seam->moves.list[0].kind <= FTL_MOVE_XOR ||
               seam->moves.list[0].kind == FTL_MOVE_ADD_ROW);
        nand_move_by_hart(&seam->move_list, 0);
        drop_moves(&seam->moves, 1);
    }
}

/* The controller has stopped at the first move of the list. */
static void go_on_moving(struct nand_seam *seam)
{
    static const uint8_t check_of[] = {
        [NAND_MOVE_BAD_GUARD] = FTL_CHECK_GUARD,
        [NAND_MOVE_BAD_APP_TAG] = FTL_CHECK_APP_TAG,
        [NAND_MOVE_BAD_REF_TAG] = FTL_CHECK_REF_TAG,
    };
    enum nand_move_status status = nand_moves_take_status(&seam->move_list);

    if (status == NAND_MOVE_REFUSED) {
        handle_refusal(seam);
        return;
    }
    ASSERT(status < ARRAY_LEN(check_of));
    ftl_note_failed_check(seam->ftl, &seam->moves.list[0],
                          (enum ftl_check)check_of[status]);
    drop_moves(&seam->moves, 1);
}

static void run_moves(void *ctx)
{
    struct nand_seam *seam = ctx;
    struct ftl_moves *moves = &seam->moves;
    uint32_t done = nand_moves_run(&seam->move_list, moves->count);

    while (__builtin_expect(done != moves->count, 0)) {
        drop_moves(moves, done);
        go_on_moving(seam);
        done = moves->count != 0
                   ? nand_moves_run(&seam->move_list, moves->count)
                   : 0;
    }
    moves->count = 0;
}

static void report_failure(const struct nand_seam *seam, uint32_t cookie,
                           enum nand_seam_failure failure)
{
    if (seam->op_failed != NULL) {
        seam->op_failed(seam->ctx, seam->ops[cookie].flash, failure);
    }
}

/* Copy what the controller wrote into the entries of a read. */
static void take_results(const struct nand_seam *seam, uint32_t cookie)
{
    const struct nand_seam_op *op = &seam->ops[cookie];
    bool is_good = true;

    for (unsigned int i = 0; i < op->flash->num_units; i++) {
        struct ftl_flash_unit *unit = &op->flash->units[i];
        struct nand_result result;

        nand_entry_result(op_list(seam, cookie) + (size_t)i * NAND_ENTRY_LEN,
                          &result);
        unit->status = result.status == NAND_CQE_OK ? FTL_UNIT_GOOD
                       : result.status == NAND_CQE_ERASED
                           ? FTL_UNIT_ERASED
                           : FTL_UNIT_UNCORRECTABLE;
        unit->steps = result.steps;
        unit->wrong_bits = result.bits;
        is_good &= unit->status != FTL_UNIT_UNCORRECTABLE;
        if (unit->system != NULL && result.status == NAND_CQE_OK) {
            memcpy(unit->system, result.system, FTL_UNIT_SYSTEM);
        }
    }
    if (!is_good) {
        report_failure(seam, cookie, NAND_SEAM_UNCORRECTABLE);
    }
}

static enum ftl_flash_status flash_status(enum nand_cqe_status status)
{
    switch (status) {
    case NAND_CQE_OK:
    case NAND_CQE_ERASED:
    case NAND_CQE_UNCORRECTABLE:
        return FTL_FLASH_OK;
    case NAND_CQE_FAILED:
        return FTL_FLASH_FAILED;
    case NAND_CQE_DEAD:
        return FTL_FLASH_DEAD;
    case NAND_CQE_TRANSFER:
        return FTL_FLASH_TRANSFER;
    case NAND_CQE_STORAGE:
        return FTL_FLASH_STORAGE;
    case NAND_CQE_BAD_OPCODE:
    case NAND_CQE_BAD_ARGUMENT:
    case NAND_CQE_BAD_ADDRESS:
    case NAND_CQE_RULE:
    case NAND_CQE_ABORTED:
        break;
    }
    return FTL_FLASH_ERROR;
}

/* The data of an operation had a parity error between DRAM and die. */
static void note_transfer_error(struct nand_seam *seam, struct nand_seam_op *op)
{
    op->transfer_errors++;
    seam->transfer_errors++;
    if (seam->transfer_failed != NULL) {
        seam->transfer_failed(seam->ctx, op->flash);
    }
}

/*
 * An operation has failed, and the flash is unchanged.  After a parity error,
 * submit the operation again.  If its memory has a lost word, clear the word,
 * and submit a read again; do not submit a program again, because the
 * translation layer puts the units into another row.
 *
 * @return whether the operation is in progress again
 */
static bool repeat_op(struct nand_seam *seam, uint32_t cookie,
                      enum nand_cqe_status status)
{
    struct nand_seam_op *op = &seam->ops[cookie];

    bool is_parity = status == NAND_CQE_TRANSFER;

    if (is_parity) {
        note_transfer_error(seam, op);
    }
    if (status == NAND_CQE_BAD_ADDRESS && seam->find_lost_words != NULL) {
        (void)seam->find_lost_words(seam->ctx);
    }
    if ((!is_parity && (status != NAND_CQE_BAD_ADDRESS || !op->is_read)) ||
        op->repeats == REPEATS_MAX) {
        return false;
    }
    op->repeats++;
    return submit_command(seam, op->flash);
}

/* An operation has ended, and will not be submitted again. */
static void report_end(const struct nand_seam *seam, uint32_t cookie,
                       enum ftl_flash_status status)
{
    enum ftl_flash_kind kind = seam->ops[cookie].flash->kind;

    if (status == FTL_FLASH_TRANSFER) {
        report_failure(seam, cookie, NAND_SEAM_TRANSFER);
    } else if (status == FTL_FLASH_FAILED && kind != FTL_FLASH_READ) {
        report_failure(seam, cookie,
                       kind == FTL_FLASH_ERASE ? NAND_SEAM_ERASE
                                               : NAND_SEAM_PROGRAM);
    }
}

static void note_broken_rule(struct nand_seam *seam,
                             const struct ftl_flash_op *op, uint8_t rule)
{
    seam->rules_broken++;
    if (seam->rule_broken != NULL) {
        seam->rule_broken(seam->ctx, op, rule);
    }
}

/* Whether the data that a read has returned are all good, and nothing else is
 * wanted of it. */
static bool has_good_data(const struct nand_seam *seam,
                          const struct nand_done *done)
{
    return done->status == NAND_CQE_OK && done->steps == 0 &&
           done->bits <= seam->good_bits &&
           !seam->ops[(uint32_t)done->cookie].wants_system;
}

/* Whether a read has ended at its first attempt, with good data. */
static bool is_good_read(const struct nand_seam *seam,
                         const struct nand_done *done)
{
    const struct nand_seam_op *op = &seam->ops[(uint32_t)done->cookie];

    return op->is_read && op->transfer_errors == 0 && has_good_data(seam, done);
}

/* A command has ended, and it is no good read.  This is not inline, so that a
 * good read need not save registers. */
static __attribute__((noinline)) void end_other(struct nand_seam *seam,
                                                const struct nand_done *done)
{
    uint32_t cookie = (uint32_t)done->cookie;
    enum ftl_flash_status status = flash_status(done->status);

    if (__builtin_expect(seam->ops[cookie].transfer_errors != 0, 0) &&
        status == FTL_FLASH_OK) {
        seam->transfers_corrected += seam->ops[cookie].transfer_errors;
    }
    if (seam->ops[cookie].is_read && status == FTL_FLASH_OK) {
        if (has_good_data(seam, done)) {
            status = FTL_FLASH_GOOD;
        } else {
            take_results(seam, cookie);
        }
    } else if (done->status == NAND_CQE_ABORTED && !seam->ops[cookie].is_read) {
        status = FTL_FLASH_ABORTED;
    } else if ((status == FTL_FLASH_ERROR || status == FTL_FLASH_TRANSFER) &&
               repeat_op(seam, cookie, done->status)) {
        return;
    } else if (done->status == NAND_CQE_RULE) {
        note_broken_rule(seam, seam->ops[cookie].flash, done->rule);
    }
    if (__builtin_expect(
            status == FTL_FLASH_FAILED || status == FTL_FLASH_TRANSFER, 0)) {
        report_end(seam, cookie, status);
    }
    ftl_flash_done(seam->ftl, cookie, status, done->failed_planes);
}

void nand_seam_done(void *ctx, const struct nand_done *done)
{
    struct nand_seam *seam = ctx;

    ASSERT(done->cookie < seam->num_ops);
    if (is_good_read(seam, done)) {
        ftl_flash_done(seam->ftl, (uint32_t)done->cookie, FTL_FLASH_GOOD, 0);
    } else {
        end_other(seam, done);
    }
}

unsigned int nand_seam_poll(struct nand_seam *seam, unsigned int budget)
{
    return nand_poll(seam->nand, budget, nand_seam_done, seam);
}

void nand_seam_poll_good(struct nand_seam *seam, unsigned int budget,
                         bool *is_other)
{
    nand_poll_good(seam->nand, budget, nand_seam_done, seam, is_other);
}

bool nand_seam_init(struct nand_seam *seam, struct nand *nand,
                    const struct nand_info *info, struct dram *dram,
                    const struct ftl_config *ftl)
{
    uint16_t num_ops = ftl->num_requests;

    *seam = (struct nand_seam){
        .nand = nand,
        .dies = info->dies,
        .num_ops = num_ops,
        .good_bits = ftl->reclaim_bits,
        .ops = dram_alloc(dram, num_ops * sizeof(seam->ops[0]), 64),
        .lists = dram_reserve(
            dram, (size_t)num_ops * FTL_OP_UNITS * NAND_ENTRY_LEN, 64),
    };
    if (seam->ops == NULL || seam->lists == NULL ||
        !nand_moves_init(&seam->move_list, nand->regs, dram)) {
        return false;
    }
    seam->moves = (struct ftl_moves){
        .list = (void *)nand_moves_first(&seam->move_list),
        .max = NAND_MOVES_MAX,
        .addr_offset = seam->move_list.addr_offset,
    };
    return true;
}

/* ---- The factory's marks. */

static void note_status(void *ctx, const struct nand_done *done)
{
    *(enum nand_cqe_status *)ctx = done->status;
}

/* Read the marks of a die. @return false when there is no answer in time */
static bool read_die(struct nand *nand, const struct nand_info *info,
                     unsigned int die, uint8_t *list,
                     enum nand_cqe_status *status)
{
    const struct nand_command command = {
        .opcode = NAND_CMD_MARKS,
        .channel = (uint8_t)(die / info->dies),
        .die = (uint8_t)(die % info->dies),
        .planes = (uint8_t)(BIT(info->planes) - 1),
        .list = list,
        .tag = ftl_tag(FTL_CAUSE_MOUNT, FTL_TAG_NUMBER),
    };
    struct patience patience;

    if (!nand_submit(nand, &command)) {
        return false;
    }
    nand_kick(nand);
    patience_start(&patience, hal_now_us(), MARKS_US);
    while (nand_poll(nand, 1, note_status, status) == 0) {
        if (patience_is_over(&patience, hal_now_us())) {
            return false;
        }
        hal_relax();
    }
    return true;
}

bool nand_seam_read_marks(struct nand *nand, const struct nand_info *info,
                          uint8_t *list, uint8_t *bad_planes,
                          struct nand_marks *marks)
{
    unsigned int dies = (unsigned int)info->channels * info->dies;

    *marks = (struct nand_marks){0};
    for (unsigned int die = 0; die < dies; die++) {
        enum nand_cqe_status status;

        if (!read_die(nand, info, die, list, &status) ||
            (status != NAND_CQE_OK && status != NAND_CQE_DEAD)) {
            return false;
        }
        marks->dead_dies += status == NAND_CQE_DEAD;
        for (unsigned int plane = 0; plane < info->planes; plane++) {
            for (unsigned int block = 0; block < info->blocks; block++) {
                bool is_marked = list[plane * info->blocks + block] != 0;

                if (status == NAND_CQE_OK && is_marked) {
                    bad_planes[block * dies + die] |= (uint8_t)BIT(plane);
                    marks->blocks++;
                }
            }
        }
    }
    return true;
}

struct ftl_geometry nand_seam_geometry(const struct nand_info *info)
{
    return (struct ftl_geometry){
        .dies = (uint16_t)(info->channels * info->dies),
        .planes = info->planes,
        .pages = info->pages,
        .units = info->units,
        .blocks = info->blocks,
        .wordlines = info->wordlines,
    };
}

struct ftl_flash nand_seam_flash(struct nand_seam *seam)
{
    return (struct ftl_flash){
        .ctx = seam,
        .submit = submit_op,
        .moves = &seam->moves,
        .run_moves = run_moves,
        .list_units = list_units,
    };
}
