/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rebuilding units that cannot be read, from the rest of their stripe.
 *
 * A request whose units are not good does not end.  It is used again to read
 * the same units of the other dies, one die after another.  So a rescue needs
 * no other request, and cannot wait for one that itself waits for a rescue.
 *
 * The flash has no record of which dies are in a sum: a plane that was bad when
 * the superblock was opened is in no sum, and one that became bad later is in
 * some sums.  So the first attempt takes planes that are bad, and dead dies, as
 * a part of the sum, and the second attempt leaves them out.  The system bytes
 * of a rebuilt unit must name the logical unit to which the place belongs, and,
 * if there are two such planes or dies, the row number that the rest of its row
 * has.
 *
 * A mount scans the flash, loads a checkpoint, and reads pages, before it knows
 * which planes have failed.  So these reads, and those of units that it copies,
 * have a third attempt: what is erased or cannot be read is left out.  The
 * mount takes the result only if its row number is that of the rest of the row,
 * or of the checkpoint.  A scan then also knows which planes have failed.
 *
 * If a good plane of a stripe is erased although the stripe has parity, the
 * superblock is being erased, and nothing can be rebuilt from the stripe.  The
 * check byte does not show this, because the XOR of valid check bytes is a
 * valid check byte of the XOR.
 *
 * The controller makes the sums.  If it finds that a word of them is lost, the
 * dies are read again: see ftl_damage.c.
 */
#include "storage/ftl/ops/ftl_kinds.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/rows/ftl_rescue_sum.h"
#include "storage/ftl/rows/ftl_rescue_trace.h"
#include "storage/ftl/rows/rows_floor.h"
#include "storage/ftl/space/ftl_findings.h"
#include "storage/ftl/space/space.h"

#include <string.h>

enum { REPEATS_MAX = 3 }; /* of attempts in which a word was lost */

/* Whether a word was lost, so that the same dies have to be read again. */
static bool is_to_be_repeated(struct ftl_rescue *rescue)
{
    if (!rescue->has_lost_word || rescue->repeats == REPEATS_MAX) {
        return false;
    }
    rescue->repeats++;
    return true;
}

/* Find the next attempt. @return whether there is one */
static bool find_attempt(const struct ftl_rows_floor *ftl,
                         struct ftl_rescue *rescue)
{
    if (rescue->attempt == FTL_RESCUE_ALL &&
        (rescue->has_read_bad_planes || rescue->has_dead)) {
        rescue->attempt = FTL_RESCUE_GOOD;
        return true;
    }
    if (rescue->attempt == FTL_RESCUE_READABLE ||
        ftl_rescue_most_left_out(ftl, rescue) == 0 ||
        rescue->is_of_accumulator || !ftl_rescue_is_stripe_damaged(rescue)) {
        return false;
    }
    rescue->attempt = FTL_RESCUE_READABLE;
    return true;
}

/* Everything is read. @return whether another attempt is worthwhile */
static bool end_attempt(struct ftl_rows_floor *ftl, struct ftl_rescue *rescue)
{
    bool all = true;

    if (is_to_be_repeated(rescue)) {
        return true;
    }
    for (uint32_t i = 0; i < rescue->num_units; i++) {
        if (rescue->saved[rescue->entry[i]].status == FTL_UNIT_GOOD) {
            continue; /* An earlier attempt has rebuilt it. */
        }
        if (ftl_rescue_is_rebuilt(ftl, rescue, i) &&
            ftl_rescue_copy_unit(ftl, rescue, i)) {
            ftl->ops.requests[rescue->request].num_left_out[rescue->entry[i]] =
                rescue->num_left_out[i];
            ftl_reclaim_note_weak(&ftl->space_floor, rescue->flash.block,
                                  FTL_CAUSE_REBUILD);
            ftl->counters.rebuilt_units += !rescue->is_of_scan;
        } else {
            all = false;
            if (rescue->has_lost_word) {
                rescue->status = FTL_FLASH_ERROR; /* The unit is intact. */
            }
            if (!rescue->is_used[i] && !rescue->is_lost[i]) {
                rescue->saved[rescue->entry[i]].status = FTL_UNIT_ERASED;
            }
        }
    }
    if (is_to_be_repeated(rescue)) {
        return true;
    }
    return !all && find_attempt(ftl, rescue);
}

/* Read on, or end. @return whether the request goes on */
static bool go_on(struct ftl_rows_floor *ftl, struct ftl_rescue *rescue)
{
    while (!ftl_rescue_read_next_die(ftl, rescue)) {
        if (!end_attempt(ftl, rescue)) {
            return false;
        }
        ftl_rescue_begin_sum(ftl, rescue);
    }
    return true;
}

static struct ftl_rescue *find_free(struct ftl_rows_floor *ftl)
{
    for (unsigned int i = 0; i < FTL_RESCUES; i++) {
        if (ftl->parity.rescues[i].request == FTL_LIST_END) {
            return &ftl->parity.rescues[i];
        }
    }
    return NULL;
}

/* Begin, with a request whose units have their status. */
static void start_rescue(struct ftl_rows_floor *ftl, struct ftl_rescue *rescue,
                         struct ftl_request *request)
{
    rescue->request = (uint16_t)request->flash.cookie;
    rescue->row = request->row;
    rescue->flash = request->flash;
    memcpy(rescue->saved, request->units,
           request->flash.num_units * sizeof(request->units[0]));
    rescue->attempt = FTL_RESCUE_ALL;
    rescue->has_read_bad_planes = false;
    rescue->has_dead = false;
    rescue->row_number = ftl_mount_noted_row(&ftl->space_floor, request->row);
    rescue->status = FTL_FLASH_OK;
    rescue->repeats = 0;
    rescue->is_of_scan = request->kind == FTL_REQUEST_SCAN ||
                         request->kind == FTL_REQUEST_REPAIR;
    ftl_note_rescue(ftl, rescue);
    request->rescue = rescue;
    ftl_rescue_find_units(ftl, rescue);
    ftl_rescue_begin_sum(ftl, rescue);
}

/* Give the request back as it was.
 * @return its status: units are not lost if a read has failed, or if a word was
 *         lost again and again */
static enum ftl_flash_status end_rescue(struct ftl_rows_floor *ftl,
                                        struct ftl_rescue *rescue)
{
    struct ftl_request *request = &ftl->ops.requests[rescue->request];
    bool is_complete = ftl_rescue_is_complete(rescue);

    ftl_note_rebuilt(ftl, rescue, is_complete);
    request->row = rescue->row;
    request->flash = rescue->flash;
    memcpy(request->units, rescue->saved,
           request->flash.num_units * sizeof(request->units[0]));
    request->rescue = NULL;
    rescue->request = FTL_LIST_END;
    return is_complete ? FTL_FLASH_OK : rescue->status;
}

/* Whether units of a read must be rebuilt if they can be. */
static bool has_bad_unit(const struct ftl_request *request)
{
    /* Erased rows follow the last one of a checkpoint. */
    bool skips_erased = request->kind == FTL_REQUEST_LOAD;

    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        uint8_t status = request->units[i].status;

        if (status != FTL_UNIT_GOOD &&
            !(skips_erased && status == FTL_UNIT_ERASED)) {
            return true;
        }
    }
    return false;
}

/* Start requests that wait while there is a free rescue. */
static void start_waiting(struct ftl_rows_floor *ftl)
{
    struct ftl_rescue *rescue;

    while (ftl->parity.waiting.count != 0 &&
           (rescue = find_free(ftl)) != NULL) {
        struct ftl_request *request =
            &ftl->ops.requests[ftl_list_pop(&ftl->parity.waiting)];

        start_rescue(ftl, rescue, request);
        if (!go_on(ftl, rescue)) {
            if (!ftl_kinds[request->kind].read_done(ftl_whole(&ftl->ops_floor),
                                                    request,
                                                    end_rescue(ftl, rescue))) {
                ftl_request_free(&ftl->ops, request);
            }
        }
    }
}

/* Whether units of a read that has ended are to be rebuilt. */
static bool is_to_be_rebuilt(const struct ftl_rows_floor *ftl,
                             const struct ftl_request *request,
                             enum ftl_flash_status status)
{
    if (!ftl->layout.has_parity || status == FTL_FLASH_ERROR ||
        status == FTL_FLASH_STORAGE || ftl->state == FTL_FAILED) {
        return false;
    }
    if (status == FTL_FLASH_TRANSFER) {
        /* The unit on the flash is intact, so only operations of hosts, which
         * need its contents now, rebuild it. */
        return ftl->state == FTL_READY && (request->kind == FTL_REQUEST_READ ||
                                           request->kind == FTL_REQUEST_FILL);
    }
    /* If only single units are bad, FTL_MOUNT_REPAIR rebuilds them later. */
    return status == FTL_FLASH_DEAD ||
           (request->kind != FTL_REQUEST_SCAN && has_bad_unit(request));
}

/*
 * A read has ended.  If units of it are not good, begin to rebuild them.
 * @param status  becomes FTL_FLASH_OK where each unit has a status
 * @return whether the request goes on
 */
static bool begin_rescue(struct ftl_rows_floor *ftl,
                         struct ftl_request *request,
                         enum ftl_flash_status *status)
{
    struct ftl_rescue *rescue;

    if (*status == FTL_FLASH_DEAD) {
        ftl_dies_note_dead(&ftl->space_floor, request->flash.die);
    }
    if (!is_to_be_rebuilt(ftl, request, *status)) {
        return false;
    }
    if (*status != FTL_FLASH_OK) {
        for (uint32_t i = 0; i < request->flash.num_units; i++) {
            request->units[i].status = FTL_UNIT_UNCORRECTABLE;
        }
        *status = FTL_FLASH_OK;
    }
    rescue = find_free(ftl);
    if (rescue == NULL) {
        ftl_list_append(&ftl->parity.waiting, (uint16_t)request->flash.cookie);
        return true;
    }
    start_rescue(ftl, rescue, request);
    if (go_on(ftl, rescue)) {
        return true;
    }
    *status = end_rescue(ftl, rescue);
    return false;
}

/*
 * A read of a request that is being rebuilt has ended.
 * @param status  becomes the request's
 * @return whether the request goes on; otherwise it is as it was, and its units
 *         have their status
 */
static bool continue_rescue(struct ftl_rows_floor *ftl,
                            struct ftl_request *request,
                            enum ftl_flash_status *status)
{
    struct ftl_rescue *rescue = request->rescue;

    if (*status == FTL_FLASH_DEAD) {
        ftl_dies_note_dead(&ftl->space_floor, request->flash.die);
    }
    ftl_rescue_add_die(ftl, rescue, request, *status);
    rescue->next_die++;
    if (go_on(ftl, rescue)) {
        return true;
    }
    *status = end_rescue(ftl, rescue);
    return false;
}

bool ftl_rescue_read_done(struct ftl_rows_floor *ftl,
                          struct ftl_request *request,
                          enum ftl_flash_status status)
{
    if (request->rescue != NULL) {
        if (continue_rescue(ftl, request, &status)) {
            return true;
        }
    } else if (begin_rescue(ftl, request, &status)) {
        return true;
    } else if (request->kind == FTL_REQUEST_READ && status == FTL_FLASH_OK) {
        ftl_reclaim_note_read(&ftl->space_floor, request);
    }
    return ftl_kinds[request->kind].read_done(ftl_whole(&ftl->ops_floor),
                                              request, status);
}

bool ftl_rescue_step(struct ftl_rows_floor *ftl)
{
    if (ftl->parity.waiting.count == 0 || find_free(ftl) == NULL) {
        return false;
    }
    start_waiting(ftl);
    return true;
}
