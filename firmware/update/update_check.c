/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/update/update_internal.h"

#include <string.h>

#include "firmware/store/flash_layout.h"
#include "lib/crc32.h"

enum { HASH_BYTES = 16 * 1024 };

/* Enter a phase that checks an image piece by piece. */
static void begin_pieces(struct updater *updater, enum updater_phase next)
{
    updater->crc = 0;
    image_digest_begin(&updater->digest);
    updater_enter(updater, next);
}

/* Add `len` more bytes of an image to the CRC and the hash. */
static void add_piece(struct updater *updater, const uint8_t *data,
                      uint32_t len)
{
    updater->crc = crc32_update(updater->crc, data, len);
    if (updater->rules.key != NULL) {
        image_digest_add(&updater->digest, data, len);
    }
    updater->at += len;
}

/* Take the next piece of the image in a slot.  @return whether it was the last
 */
static bool add_slot_piece(struct updater *updater, uint8_t slot,
                           const struct image_header *header)
{
    uint32_t len =
        MIN(header->len_bytes - updater->at, (uint32_t)sizeof(updater->buf));

    flash_read(updater->config.flash,
               slot_addr(slot) + FLASH_SLOT_IMAGE_OFFSET + updater->at,
               updater->buf, len);
    add_piece(updater, updater->buf, len);
    return updater->at == header->len_bytes;
}

/* Compare CRC and hash with the header, when all pieces have been added. */
static enum update_verdict pieces_verdict(struct updater *updater,
                                          const struct image_header *header)
{
    uint8_t hash[IMAGE_HASH_LEN];

    if (updater->crc != header->image_crc) {
        return UPDATE_CRC;
    }
    if (updater->rules.key == NULL) {
        return UPDATE_GOOD;
    }
    image_digest_end(&updater->digest, hash);
    return memcmp(hash, header->hash, sizeof(hash)) == 0 ? UPDATE_GOOD
                                                         : UPDATE_SIGNATURE;
}

/* Begin to check the downloaded image.  If the power fails while its slot is
 * written, the other slot has to start.  So the image in that slot is checked
 * first, unless this was done before. */
static void start_store(struct updater *updater)
{
    uint8_t kept = slot_other(updater->slot);
    uint8_t buf[IMAGE_HEADER_LEN];
    enum update_verdict verdict =
        update_check_header(&updater->rules, updater->config.image,
                            updater->commit.len_bytes, &updater->header);

    if (verdict != UPDATE_GOOD) {
        updater_refuse_image(updater, verdict);
        return;
    }
    memcpy(updater->header_bytes, updater->config.image, IMAGE_HEADER_LEN);
    if (updater->slots.slot[kept - 1].is_checked) {
        begin_pieces(updater, UPDATER_HASHING);
    } else if (update_slots_read_header(&updater->slots, kept, &updater->kept,
                                        buf)) {
        begin_pieces(updater, UPDATER_PROVING);
    } else {
        updater_refuse_slot(updater, "the other slot holds no good image");
    }
}

/* Begin to check an image that a slot holds already. */
static void start_check(struct updater *updater)
{
    enum update_verdict verdict = UPDATE_NO_IMAGE;

    if (update_slots_read_header(&updater->slots, updater->slot,
                                 &updater->header, updater->header_bytes)) {
        verdict = update_check_slot_header(
            &updater->rules, updater->header_bytes, &updater->header);
    }
    if (verdict != UPDATE_GOOD) {
        updater_refuse_image(updater, verdict);
    } else {
        begin_pieces(updater, UPDATER_READING);
    }
}

void update_step_starting(struct updater *updater)
{
    const char *why = NULL;

    updater->rules.security = update_slots_security(&updater->slots);
    if (!updater->commit.stores) {
        start_check(updater);
        return;
    }
    switch (update_slots_check_store(&updater->slots, updater->slot, &why)) {
    case UPDATE_STORE_NOW:
        start_store(updater);
        break;
    case UPDATE_STORE_AFTER_TRIAL:
        log_line(updater->config.log,
                 "firmware: slot %c is written when the running image has "
                 "passed its trial",
                 "-AB"[updater->slot]);
        updater_enter(updater, UPDATER_WAITING);
        break;
    case UPDATE_STORE_NEVER:
        updater_refuse_slot(updater, why);
        break;
    }
}

/* At the end of the trial, begin the commit again. */
void update_step_waiting(struct updater *updater)
{
    if (!update_slots_is_on_trial(&updater->slots)) {
        updater_enter(updater, UPDATER_STARTING);
    } else if (updater->is_trial_stuck) {
        updater_end(updater, NVMF_FIRMWARE_FAILED);
    }
}

void update_step_proving(struct updater *updater)
{
    uint8_t kept = slot_other(updater->slot);
    bool is_good;

    if (!add_slot_piece(updater, kept, &updater->kept)) {
        return;
    }
    is_good = pieces_verdict(updater, &updater->kept) == UPDATE_GOOD;
    update_slots_set_checked(&updater->slots, kept, is_good);
    if (is_good) {
        begin_pieces(updater, UPDATER_HASHING);
    } else {
        updater_refuse_slot(updater, "the other slot holds no good image");
    }
}

void update_step_hashing(struct updater *updater)
{
    uint32_t len =
        MIN(updater->header.len_bytes - updater->at, (uint32_t)HASH_BYTES);
    enum update_verdict verdict;

    add_piece(updater,
              updater->config.image + FLASH_SLOT_IMAGE_OFFSET + updater->at,
              len);
    if (updater->at < updater->header.len_bytes) {
        return;
    }
    verdict = pieces_verdict(updater, &updater->header);
    if (verdict == UPDATE_GOOD) {
        updater_enter(updater, UPDATER_PREPARING);
    } else {
        updater_refuse_image(updater, verdict);
    }
}

void update_step_reading(struct updater *updater)
{
    enum update_verdict verdict;

    if (!add_slot_piece(updater, updater->slot, &updater->header)) {
        return;
    }
    verdict = pieces_verdict(updater, &updater->header);
    update_slots_set_checked(&updater->slots, updater->slot,
                             verdict == UPDATE_GOOD);
    if (verdict == UPDATE_GOOD) {
        updater_enter(updater, UPDATER_RECORDING);
    } else {
        updater_refuse_image(updater, verdict);
    }
}
