/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/update/update_internal.h"

#include <string.h>

#include "firmware/store/flash_layout.h"

static const uint8_t *image_data(const struct updater *updater)
{
    return updater->config.image + FLASH_SLOT_IMAGE_OFFSET;
}

static uint32_t image_addr(const struct updater *updater)
{
    return slot_addr(updater->slot) + FLASH_SLOT_IMAGE_OFFSET;
}

static uint32_t piece_len(const struct updater *updater, uint32_t limit)
{
    return MIN(updater->header.len_bytes - updater->at, limit);
}

void update_step_preparing(struct updater *updater)
{
    if (!updater_prepare_record(updater)) {
        return;
    }
    if (update_slots_begin_store(&updater->slots, updater->slot)) {
        updater_enter(updater, UPDATER_ERASING);
    } else {
        updater_end(updater, NVMF_FIRMWARE_FAILED);
    }
}

void update_step_erasing(struct updater *updater)
{
    enum flash_progress progress =
        updater_erase(updater, slot_addr(updater->slot) + updater->at);

    if (progress == FLASH_BUSY) {
        return;
    }
    if (progress == FLASH_FAILED) {
        updater_fail_flash(updater);
        return;
    }
    updater->writes++;
    updater->at += FLASH_SECTOR_BYTES;
    if (updater->at >= FLASH_SLOT_IMAGE_OFFSET + updater->header.len_bytes) {
        updater_enter(updater, UPDATER_PROGRAMMING);
    }
}

void update_step_programming(struct updater *updater)
{
    uint32_t len = piece_len(updater, FLASH_PAGE_BYTES);

    if (!flash_program(updater->config.flash, image_addr(updater) + updater->at,
                       image_data(updater) + updater->at, len)) {
        updater_fail_flash(updater);
        return;
    }
    updater->writes++;
    updater->at += len;
    if (updater->at == updater->header.len_bytes) {
        updater_enter(updater, UPDATER_COMPARING);
    }
}

void update_step_comparing(struct updater *updater)
{
    uint32_t len = piece_len(updater, sizeof(updater->buf));

    flash_read(updater->config.flash, image_addr(updater) + updater->at,
               updater->buf, len);
    if (memcmp(updater->buf, image_data(updater) + updater->at, len) != 0) {
        updater_fail_flash(updater);
        return;
    }
    updater->at += len;
    if (updater->at == updater->header.len_bytes) {
        updater_enter(updater, UPDATER_RECORDING);
    }
}

/*
 * Write the header, and read it back.  An image that is only stored gets the
 * lowest sequence number, so that it does not start if the record is lost.
 */
static bool write_header(struct updater *updater)
{
    const struct flash *flash = updater->config.flash;
    uint32_t addr = slot_addr(updater->slot);
    uint8_t buf[IMAGE_HEADER_LEN];

    updater->header.sequence =
        updater->commit.activates ? updater->slots.newest + 1 : 0;
    image_header_set_sequence(updater->header_bytes, updater->header.sequence);
    updater->writes++;
    if (!flash_program(flash, addr, updater->header_bytes, IMAGE_HEADER_LEN)) {
        return false;
    }
    flash_read(flash, addr, buf, sizeof(buf));
    if (memcmp(buf, updater->header_bytes, sizeof(buf)) != 0) {
        return false;
    }
    update_slots_end_store(&updater->slots, updater->slot, &updater->header);
    return true;
}

void update_step_recording(struct updater *updater)
{
    uint8_t slot = updater->slot;

    if (updater->commit.activates &&
        update_slots_must_activate(&updater->slots, slot) &&
        !updater_prepare_record(updater)) {
        return;
    }
    if (updater->commit.stores && !write_header(updater)) {
        updater_fail_flash(updater);
        return;
    }
    if (updater->commit.activates &&
        !update_slots_activate(&updater->slots, slot)) {
        updater_end(updater, NVMF_FIRMWARE_FAILED);
        return;
    }
    log_line(updater->config.log, "firmware: slot %c holds version %s%s",
             "-AB"[slot], updater -> header.version,
             !updater->commit.activates ? ""
             : update_slots_next(&updater->slots) == slot
                 ? ", which starts after a subsystem reset or power cycle"
                 : ", which runs already");
    updater_end(updater, NVMF_FIRMWARE_OK);
}
