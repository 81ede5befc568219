/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs and erasures that fail although the flash is intact.
 *
 * The transfer of the data may have parity errors, or the file of the array
 * cannot be written, for example because its disk is full.  Then the same
 * operation can be repeated.  So the request is held, with all that it would
 * program, and sent again until it succeeds: first at once, and after a few
 * failures when some time has passed, or when another flush, or operation with
 * FUA, begins to wait until its contents are on flash.  Until then no other row
 * is programmed, operations that wait until something is programmed fail, and
 * the contents of the write buffer stay there.  A write that waits for a free
 * slot does not cause an attempt.
 *
 * So the drive goes on when the cause is gone.  The attempts use up no space
 * and need no erasures, so it does not matter how many there are.
 *
 * A row that fails in another way, for example because a word of it was lost in
 * DRAM, is not repeated: its units are put into another row.  The rest of its
 * superblock is given up, because no later row of the die may be programmed
 * there.  If this happens several times without a success, programs are held
 * for some time, too.
 */
#include "storage/ftl/base/ftl_phases.h"
#include "storage/ftl/ops/ops.h"

enum {
    /* Attempts of a request, or superblocks given up, before programs are held.
     */
    ROUNDS_MAX = 4,
    RETRY_US = 100000,
    POWER_RETRY_US = 1000, /* while capacitors supply the drive */
};

bool ftl_hold_is_waiting(const struct ftl_ops_floor *ftl)
{
    return ftl->hold.held_attempts >= ROUNDS_MAX &&
           ftl->now_us < ftl->hold.retry_us;
}

/* While the power fails, other rows are programmed nevertheless: some may
 * succeed, and later is too late. */
bool ftl_is_held(const struct ftl_ops_floor *ftl)
{
    return (ftl->hold.failed_rounds >= ROUNDS_MAX ||
            (ftl->hold.holds_row && ftl->hold.held_attempts >= ROUNDS_MAX)) &&
           ftl->now_us < ftl->hold.retry_us &&
           !ftl_power_is_failing(&ftl->base_floor);
}

bool ftl_hold_can_repeat(enum ftl_flash_status status)
{
    return status == FTL_FLASH_TRANSFER || status == FTL_FLASH_STORAGE;
}

static void hold_request(struct ftl_ops_floor *ftl, struct ftl_request *request)
{
    if (request->attempts < UINT8_MAX) {
        request->attempts++;
    }
    ftl->hold.held_attempts = MAX(ftl->hold.held_attempts, request->attempts);
    ftl->hold.holds_row |= request->kind == FTL_REQUEST_ROW;
    ftl->hold.retry_us =
        ftl->now_us +
        (ftl_power_is_failing(&ftl->base_floor) ? POWER_RETRY_US : RETRY_US);
    ftl_list_append(&ftl->hold.held, (uint16_t)request->flash.cookie);
}

/* Count the requests that storage refuses again and again. */
static void note_refusal(struct ftl_hold *hold, struct ftl_request *request,
                         bool is_refused)
{
    if (request->is_refused != is_refused) {
        request->is_refused = is_refused;
        hold->num_refused += is_refused ? 1U : UINT32_MAX;
    }
}

/* Whether a row that has failed must be put together anew. */
static bool is_spoilt(const struct ftl_request *request)
{
    return request->kind == FTL_REQUEST_ROW && request->lost_units != 0;
}

/*
 * Whether a row has not begun because the one before it was not transferred:
 * that one is held, or was sent again.  Then this one follows it again.  If
 * that one has failed for good, this one cannot be programmed in its place.
 */
static bool follows_row(const struct ftl_ops_floor *ftl,
                        const struct ftl_request *request,
                        enum ftl_flash_status status)
{
    if (status != FTL_FLASH_ABORTED || request->kind != FTL_REQUEST_ROW) {
        return false;
    }
    for (uint32_t i = 0; i < ftl->ops.num_requests; i++) {
        const struct ftl_request *other = &ftl->ops.requests[i];

        if (other->kind == FTL_REQUEST_ROW &&
            other->flash.die == request->flash.die &&
            other->flash.block == request->flash.block &&
            other->row < request->row) {
            return true;
        }
    }
    return false;
}

bool ftl_hold_request(struct ftl_ops_floor *ftl, struct ftl_request *request,
                      enum ftl_flash_status status)
{
    bool follows = follows_row(ftl, request, status);

    if ((!ftl_hold_can_repeat(status) && !follows) || is_spoilt(request)) {
        note_refusal(&ftl->hold, request, false);
        return false;
    }
    if (request->kind == FTL_REQUEST_ROW) {
        ftl->counters.program_errors += !follows;
    } else {
        ftl->counters.erase_errors++;
    }
    hold_request(ftl, request);
    note_refusal(&ftl->hold, request,
                 status == FTL_FLASH_STORAGE &&
                     request->attempts >= ROUNDS_MAX);
    return true;
}

bool ftl_hold_step(struct ftl_ops_floor *ftl)
{
    if (ftl->hold.held.count == 0 || ftl_hold_is_waiting(ftl)) {
        return false;
    }
    while (ftl->hold.held.count != 0) {
        ftl_request_send(&ftl->ops,
                         &ftl->ops.requests[ftl_list_pop(&ftl->hold.held)]);
    }
    ftl->hold.held_attempts = 0;
    ftl->hold.holds_row = false;
    return true;
}

void ftl_hold_drop(struct ftl_ops_floor *ftl)
{
    while (ftl->hold.held.count != 0) {
        ftl_request_free(&ftl->ops,
                         &ftl->ops.requests[ftl_list_pop(&ftl->hold.held)]);
    }
    ftl->hold.held_attempts = 0;
    ftl->hold.holds_row = false;
    ftl->hold.num_refused = 0;
}

void ftl_hold_note_round(struct ftl_ops_floor *ftl)
{
    ftl->hold.failed_rounds++;
    ftl->hold.retry_us = ftl->now_us + RETRY_US;
}

void ftl_hold_try_again(struct ftl_hold *hold)
{
    hold->retry_us = 0;
}
