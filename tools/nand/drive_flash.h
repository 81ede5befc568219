/* SPDX-License-Identifier: BSD-2-Clause */
/* What the SPI flash of a drive says about its medium: docs/hardware/flash.md.
 */
#ifndef ESSD_TOOLS_NAND_DRIVE_FLASH_H
#define ESSD_TOOLS_NAND_DRIVE_FLASH_H

#include "firmware/drivers/flash.h"
#include "storage/volume/volume_table.h"

struct drive_flash {
    struct flash
        flash; /* the first member: flash_read() gets a pointer to it */
    const char *path;
    int fd;
    bool has_failed;         /* a read or write of the file has failed */
    uint64_t capacity_bytes; /* of the identity; 0: the largest possible */
};

/**
 * Open the image of a flash, and read the drive's identity.
 * @param writes  whether drive_flash_add_erasures() will be called
 * @return false when that is not possible; a line has been printed
 */
MUST_USE bool drive_flash_open(struct drive_flash *drive, const char *path,
                               bool writes);
void drive_flash_close(struct drive_flash *drive);

/** Whether a sanitize operation is in progress, and goes on at the drive's next
 * start, or has failed, so that the drive refuses commands. */
bool drive_flash_is_sanitized(const struct drive_flash *drive);

/**
 * Note that each block has had more erasures than the drive has counted.  SMART
 * then includes them.
 * @return false when that is not possible; a line has been printed
 */
MUST_USE bool drive_flash_add_erasures(struct drive_flash *drive,
                                       uint64_t erasures);

/**
 * Read the table of namespaces.
 * @return false when the drive has no intact table; a line has been printed
 */
MUST_USE bool drive_flash_namespaces(struct drive_flash *drive,
                                     uint64_t medium_bytes,
                                     struct volume_table *table);

#endif
