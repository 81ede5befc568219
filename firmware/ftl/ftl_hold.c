/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that fail although the flash is intact, for example because the
 * transfer of the data has parity errors.
 *
 * After each such failure, the rest of the superblock is given up, because the
 * stream continues in another one.  If the failures go on, the translation
 * layer stops programming.  Then operations that wait until something is
 * programmed fail, and the contents of the write buffer stay there.  The
 * translation layer programs again when some time has passed, and when another
 * flush, or operation with FUA, begins to wait until its contents are on flash.
 * A write that waits for a free slot does not cause an attempt.  So the drive
 * writes again when the cause is gone.
 *
 * A superblock in which nothing was programmed is free again without an
 * erasure.  So the attempts do not wear out the flash.
 */
#include "firmware/ftl/ftl_internal.h"

enum {
    ROUNDS_MAX = 4, /* superblocks given up before programs are held */
    RETRY_US = 100000,
};

bool ftl_is_held(const struct ftl *ftl)
{
    return ftl->failed_rounds >= ROUNDS_MAX && ftl->now_us < ftl->retry_us &&
           !ftl_power_is_failing(ftl);
}

void ftl_hold_note_round(struct ftl *ftl)
{
    ftl->failed_rounds++;
    ftl->retry_us = ftl->now_us + RETRY_US;
}

void ftl_hold_note_row(struct ftl *ftl, const struct ftl_request *request,
                       enum ftl_flash_status status)
{
    struct ftl_superblock *at = &ftl->superblocks[request->flash.block];

    if (status != FTL_FLASH_TRANSFER) {
        at->is_untouched = false;
    }
    if (status == FTL_FLASH_OK) {
        ftl->failed_rounds = 0;
    } else if (status == FTL_FLASH_TRANSFER || status == FTL_FLASH_ERROR) {
        /* Several rows of the superblock may be in flight and fail; count only
         * the first failure. */
        if (!at->is_given_up) {
            ftl_hold_note_round(ftl);
        }
        at->is_given_up = true;
    }
}

void ftl_hold_try_again(struct ftl *ftl)
{
    ftl->retry_us = 0;
}
