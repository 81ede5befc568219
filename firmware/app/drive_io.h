/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the completion of an operation of the medium goes. */
#ifndef ESSD_APP_DRIVE_IO_H
#define ESSD_APP_DRIVE_IO_H

#include "firmware/app/drive.h"

enum {
    /* Bits of a cookie that does not belong to the target. */
    DRIVE_FIRMWARE_COOKIES = OPERATIONS_COOKIE_BIT | 1,
};

/** An operation of the medium has ended: tell who has started it. */
static inline void drive_end_io(struct drive *drive, uint64_t cookie,
                                enum media_status status)
{
    if (__builtin_expect(cookie & DRIVE_FIRMWARE_COOKIES, 0)) {
        if (!volume_owns_cookie(cookie)) {
            operations_media_done(drive, cookie, status);
            return;
        }
        volume_media_done(drive->volume, cookie, status);
        return;
    }
    nvmf_media_done(drive->target, (void *)(uintptr_t)cookie, status);
}

/** A flash that was wiped can be relied upon again. */
void drive_forget_nand_failure(struct drive *drive);

/** If the power fails, begin to save the write buffer.
 * @return true in the one call that begins it */
bool drive_check_power(struct drive *drive, uint64_t now_us);

/** Tell the target of the NAND flash's wear and spare blocks when they have
 * changed. */
void drive_report_nand_health(struct drive *drive, struct loop_step *step);

#endif
