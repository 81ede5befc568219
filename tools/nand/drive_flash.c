/* SPDX-License-Identifier: BSD-2-Clause */
/* The SPI flash of a drive, in its file: drive_flash.h. */
#include "drive_flash.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "firmware/operations/sanitize.h"
#include "firmware/store/area.h"
#include "firmware/store/store.h"
#include "firmware/store/usage.h"
#include "image.h"

/* ---- The functions of firmware/drivers/flash.h. */

/* These functions get a const struct flash, but they change the struct
 * drive_flash of which it is a member. */
static struct drive_flash *drive_of(const struct flash *flash)
{
    return (struct drive_flash *)(uintptr_t)flash;
}

void flash_read(const struct flash *flash, uint32_t addr, void *buf,
                size_t len_bytes)
{
    struct drive_flash *drive = drive_of(flash);

    if (pread(drive->fd, buf, len_bytes, (off_t)addr) != (ssize_t)len_bytes) {
        drive->has_failed = true;
        memset(buf, 0xff, len_bytes);
    }
}

static bool write_file(struct drive_flash *drive, uint32_t addr,
                       const uint8_t *data, size_t len_bytes)
{
    if (pwrite(drive->fd, data, len_bytes, (off_t)addr) != (ssize_t)len_bytes) {
        drive->has_failed = true;
    }
    return !drive->has_failed;
}

bool flash_erase_sector(const struct flash *flash, uint32_t addr)
{
    uint8_t ones[FLASH_SECTOR_BYTES];

    memset(ones, 0xff, sizeof(ones));
    return write_file(drive_of(flash), addr, ones, sizeof(ones));
}

bool flash_program(const struct flash *flash, uint32_t addr, const void *data,
                   size_t len_bytes)
{
    const uint8_t *from = data;
    uint8_t buf[FLASH_PAGE_BYTES];

    if (len_bytes > sizeof(buf)) {
        return false;
    }
    flash_read(flash, addr, buf, len_bytes);
    for (size_t i = 0; i < len_bytes; i++) {
        buf[i] &= from[i];
    }
    return write_file(drive_of(flash), addr, buf, len_bytes);
}

/* ---- */

bool drive_flash_open(struct drive_flash *drive, const char *path, bool writes)
{
    struct identity identity;

    *drive = (struct drive_flash){.path = path};
    drive->fd = image_open_file(path, writes);
    if (drive->fd < 0) {
        return false;
    }
    if (!store_read_identity(&drive->flash, &identity) || drive->has_failed) {
        image_complain(path, "it is no SPI flash of a drive with an identity");
        drive_flash_close(drive);
        return false;
    }
    drive->capacity_bytes = identity.capacity_bytes;
    return true;
}

void drive_flash_close(struct drive_flash *drive)
{
    close(drive->fd);
}

bool drive_flash_is_sanitized(const struct drive_flash *drive)
{
    struct sanitize_state state;
    uint8_t record[SANITIZE_RECORD_LEN];
    uint32_t sequence;
    size_t len = 0;
    enum area_result result = area_read(&drive->flash, &sanitize_area, record,
                                        sizeof(record), &len, &sequence);
    bool is_known = result == AREA_OK || result == AREA_OLDER;

    return is_known && sanitize_record_parse(&state, record, len) &&
           (state.outcome == NVMF_SANITIZE_IN_PROGRESS ||
            (state.outcome == NVMF_SANITIZE_FAILED && state.is_blocking));
}

bool drive_flash_add_erasures(struct drive_flash *drive, uint64_t erasures)
{
    struct records_place place;
    struct usage usage;
    uint64_t added;

    store_read_usage(&drive->flash, &place, &usage);
    added = usage.flash.added_erasures + erasures;
    usage.flash.added_erasures =
        (uint32_t)MIN(added, (uint64_t)USAGE_ADDED_MOST);
    if (drive->has_failed ||
        !store_write_usage(&drive->flash, &place, &usage) ||
        fsync(drive->fd) != 0) {
        image_complain(drive->path,
                       "it could not be written, so SMART does not include "
                       "the erasures");
        return false;
    }
    return true;
}

/* A drive without a table has one namespace over the whole medium, unless its
 * settings divide it at its first start. */
static bool use_whole_medium(struct drive_flash *drive, uint64_t medium_bytes,
                             struct volume_table *table)
{
    static const struct volume_plan whole = {.block_shift = VOLUME_SHIFT_512};
    struct config config;

    if (store_read_config(&drive->flash, NULL, NULL, &config) &&
        config.network.namespaces.count != 0) {
        image_complain(drive->path, "the drive has no namespaces yet; start "
                                    "and stop it once");
        return false;
    }
    volume_table_init(table, medium_bytes);
    return volume_table_divide(table, &whole);
}

bool drive_flash_namespaces(struct drive_flash *drive, uint64_t medium_bytes,
                            struct volume_table *table)
{
    uint8_t *record = malloc(VOLUME_RECORD_MAX);
    uint32_t sequence;
    size_t len = 0;
    enum area_result result;
    bool success;

    if (record == NULL) {
        image_complain(drive->path, "no memory");
        return false;
    }
    result = area_read(&drive->flash, &namespace_area, record,
                       VOLUME_RECORD_MAX, &len, &sequence);
    if (result == AREA_EMPTY) {
        free(record);
        return use_whole_medium(drive, medium_bytes, table);
    }
    success = result == AREA_OK &&
              volume_record_parse(table, medium_bytes, record, len);
    free(record);
    if (!success) {
        image_complain(drive->path, "the table of namespaces is damaged; start "
                                    "the drive, and see its console");
    }
    return success;
}
