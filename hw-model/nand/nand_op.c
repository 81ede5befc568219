/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The course of an operation of a NAND array, from nand_op_start() to
 * nand_op_finish().
 */
#include "hw-model/nand/nand_array_internal.h"

/* ---- Requests to storage. */

uint32_t nand_op_new_request(struct nand_array *array, struct nand_op *op)
{
    ASSERT(op->work.num_io < NAND_IO_PER_OP);
    op->work.pending++;
    return nand_op_index(array, op) * NAND_IO_PER_OP + op->work.num_io++;
}

void nand_op_readv(struct nand_array *array, struct nand_op *op,
                   uint64_t offset, struct iovec *iov, unsigned int niov)
{
    const struct nand_backend *backend = &array->config.backend;

    backend->readv(backend->ctx, nand_op_new_request(array, op), offset, iov,
                   niov);
}

void nand_op_writev(struct nand_array *array, struct nand_op *op,
                    uint64_t offset, struct iovec *iov, unsigned int niov)
{
    const struct nand_backend *backend = &array->config.backend;

    backend->writev(backend->ctx, nand_op_new_request(array, op), offset, iov,
                    niov);
}

struct iovec *nand_op_vector(struct nand_op *op, void *base, size_t len)
{
    struct iovec *iov = &op->work.iov[op->work.num_iov];

    ASSERT(op->work.num_iov < NAND_OP_IOV);
    op->work.num_iov++;
    *iov = (struct iovec){.iov_base = base, .iov_len = len};
    return iov;
}

/* ---- The course. */

static bool end_op(struct nand_op *op, enum nand_verdict verdict)
{
    op->verdict = (uint8_t)verdict;
    nand_op_enter(op, STAGE_IDLE);
    return true;
}

/* Cut the power if a fault rule asks for it.  The operation has begun, or
 * breaks a rule of the flash. */
static void cut_power(const struct nand_array *array, struct nand_op *op)
{
    const struct nand_fault_hook *hook = &array->fault_hook;

    if (__builtin_expect(op->work.cuts_power, 0) && hook->power_cut != NULL) {
        op->work.cuts_power = false;
        hook->power_cut(hook->ctx, op->work.cut_by);
    }
}

/* All blocks are known.  @return whether the operation is started already */
static bool start_known(struct nand_array *array, struct nand_op *op)
{
    if (op->kind == NAND_OP_READ) {
        nand_op_enter(op, STAGE_READ);
        if (nand_op_read(array, op)) {
            return false;
        }
        nand_op_read_done(array, op);
        nand_op_enter(op, STAGE_STARTED);
        return true;
    }
    op->rule = nand_op_broken_rule(array, op);
    if (op->rule != 0) {
        cut_power(array, op);
        return end_op(op, NAND_VERDICT_RULE);
    }
    nand_op_set_busy(array, op, true);
    nand_op_enter(op, STAGE_TOUCH);
    if (nand_array_touch(array, op)) {
        nand_op_start_change(array, op);
    }
    return false;
}

/* Nobody learns that a die is dead before it will be dead after a power cut,
 * too. */
static bool wait_for_death(struct nand_array *array, struct nand_op *op)
{
    nand_op_enter(op, STAGE_DEATH);
    nand_array_kill_die(array, op);
    return false;
}

/*
 * Find out whether there is a fault of the whole operation.
 * @return the operation's verdict; OK: it goes on; DEAD: its die dies now
 */
static enum nand_verdict judge_fault(struct nand_array *array,
                                     struct nand_op *op)
{
    struct nand_fault hit;

    if (!nand_inject_is_on(array) ||
        !nand_inject_event(array, op, (unsigned int)__builtin_ctz(op->planes),
                           &op->units[0], true, &hit)) {
        return NAND_VERDICT_OK;
    }
    if (hit.effect == NAND_EFFECT_DIE) {
        return NAND_VERDICT_DEAD;
    }
    if (hit.effect == NAND_EFFECT_POWER_CUT) {
        op->work.cuts_power = true;
        op->work.cut_by = hit.rule;
        /* Storage must not hold the end of the operation before the cut. */
        op->finishes_at_once = false;
        if (op->kind == NAND_OP_READ) { /* It changes nothing. */
            cut_power(array, op);
        }
        return NAND_VERDICT_OK;
    }
    /* An erasure transfers no data. */
    return op->kind != NAND_OP_ERASE ? NAND_VERDICT_TRANSFER : NAND_VERDICT_OK;
}

bool nand_op_start(struct nand_array *array, struct nand_op *op,
                   uint64_t now_ns)
{
    enum nand_verdict verdict;

    ASSERT(op->work.is_used && op->work.stage == STAGE_IDLE);
    op->work.time_ns = nand_array_time(array, now_ns);
    op->work.crossed = 0;
    verdict = nand_op_check(array, op);
    if (verdict != NAND_VERDICT_OK) {
        return end_op(op, verdict);
    }
    if (nand_array_die_is_dying(array, op)) {
        return wait_for_death(array, op);
    }
    verdict = judge_fault(array, op);
    if (verdict == NAND_VERDICT_DEAD) {
        return wait_for_death(array, op);
    }
    if (verdict != NAND_VERDICT_OK) {
        return end_op(op, verdict);
    }
    return nand_op_look_up(array, op) && start_known(array, op);
}

static void op_started(struct nand_array *array, struct nand_op *op)
{
    cut_power(array, op);
    if (op->storage_errno != 0) {
        if (op->work.stage == STAGE_PROGRAM || op->work.stage == STAGE_ERASE) {
            nand_op_note_failure(array, op);
        }
        if (op->kind != NAND_OP_READ) {
            nand_op_set_busy(array, op, false);
        }
        end_op(op, NAND_VERDICT_STORAGE);
    } else {
        nand_op_enter(op, STAGE_STARTED);
    }
    array->config.started(array->config.ctx, op);
}

void nand_op_touched(struct nand_array *array, struct nand_op *op, int result)
{
    if (result == 0) {
        nand_op_start_change(array, op);
    } else {
        op->storage_errno = -result;
        op_started(array, op);
    }
}

/* If the state could not be written, the next operation for this die causes
 * another attempt. */
void nand_op_died(struct nand_array *array, struct nand_op *op, int result)
{
    op->storage_errno = -result;
    end_op(op, result == 0 ? NAND_VERDICT_DEAD : NAND_VERDICT_STORAGE);
    array->config.started(array->config.ctx, op);
}

/* Store the read counters that have reached a multiple of READS_STORED. */
static void store_reads(struct nand_array *array, struct nand_op *op)
{
    nand_op_enter(op, STAGE_FINISH);
    for (unsigned int plane = nand_op_plane(op, 0); plane < NAND_OP_PLANES;
         plane = nand_op_plane(op, plane + 1)) {
        if ((op->work.crossed & BIT(plane)) != 0) {
            struct nand_block *block = nand_op_state(array, op, plane);
            uint32_t index = nand_op_block(array, op, plane);

            nand_array_emit_record(block, index, op->work.time_ns,
                                   op->work.records[plane]);
            nand_op_writev(
                array, op, nand_layout_record(index),
                nand_op_vector(op, op->work.records[plane], NAND_RECORD_LEN),
                1);
        }
    }
}

bool nand_op_finish(struct nand_array *array, struct nand_op *op,
                    uint64_t now_ns)
{
    ASSERT(op->work.stage == STAGE_STARTED);
    if (op->kind == NAND_OP_READ) {
        if (op->work.crossed != 0) {
            store_reads(array, op);
            return false;
        }
        nand_op_enter(op, STAGE_IDLE);
        return true;
    }
    if (!op->finishes_at_once) {
        op->work.time_ns = nand_array_time(array, now_ns);
        if (nand_op_finish_change(array, op)) {
            return false;
        }
    }
    nand_op_end_change(array, op);
    nand_op_enter(op, STAGE_IDLE);
    return true;
}

void nand_op_continue(struct nand_array *array, struct nand_op *op)
{
    switch (op->work.stage) {
    case STAGE_LOOKUP:
        if (op->storage_errno != 0) {
            end_op(op, NAND_VERDICT_STORAGE);
        } else if (!nand_op_probe_done(array, op) ||
                   !nand_op_look_up(array, op) || !start_known(array, op)) {
            return;
        }
        array->config.started(array->config.ctx, op);
        return;
    case STAGE_READ:
        if (op->storage_errno == 0) {
            nand_op_read_done(array, op);
        }
        op_started(array, op);
        return;
    case STAGE_ERASE:
        if (op->storage_errno != 0 || op->keeps_storage) {
            op_started(array, op);
        } else {
            nand_op_discard(array, op);
        }
        return;
    case STAGE_DISCARD:
        /* Data of older erasures may stay: their erase number is another. */
        op->storage_errno = 0;
        op_started(array, op);
        return;
    case STAGE_PROGRAM:
        op_started(array, op);
        return;
    default:
        ASSERT(op->work.stage == STAGE_FINISH);
        if (op->kind == NAND_OP_READ) {
            op->storage_errno = 0; /* The counter is still in memory. */
        } else {
            nand_op_end_change(array, op);
        }
        nand_op_enter(op, STAGE_IDLE);
        array->config.finished(array->config.ctx, op);
        return;
    }
}
