/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/update/updater.h"

#include <string.h>

#include "firmware/store/flash_layout.h"
#include "lib/crc32.h"

enum {
    PACE_US = 100, /* between two flash commands, for other work */
    HASH_BYTES = 16 * 1024,
};

static const uint16_t phase_next[UPDATER_PHASES] = {
    [UPDATER_IDLE] = BIT(UPDATER_STARTING),
    [UPDATER_STARTING] = BIT(UPDATER_PROVING) | BIT(UPDATER_HASHING) |
                         BIT(UPDATER_READING) | BIT(UPDATER_IDLE),
    [UPDATER_PROVING] = BIT(UPDATER_HASHING) | BIT(UPDATER_IDLE),
    [UPDATER_HASHING] = BIT(UPDATER_ERASING) | BIT(UPDATER_IDLE),
    [UPDATER_ERASING] = BIT(UPDATER_PROGRAMMING) | BIT(UPDATER_IDLE),
    [UPDATER_PROGRAMMING] = BIT(UPDATER_COMPARING) | BIT(UPDATER_IDLE),
    [UPDATER_COMPARING] = BIT(UPDATER_RECORDING) | BIT(UPDATER_IDLE),
    [UPDATER_READING] = BIT(UPDATER_RECORDING) | BIT(UPDATER_IDLE),
    [UPDATER_RECORDING] = BIT(UPDATER_IDLE),
};

/* The only writer of updater->phase. */
static void updater_enter(struct updater *updater, enum updater_phase next)
{
    ASSERT(phase_next[updater->phase] & BIT(next));
    updater->phase = next;
    updater->at = 0;
}

static uint8_t other_slot(uint8_t slot)
{
    return slot == 1 ? 2 : 1;
}

static char slot_name(uint8_t slot)
{
    return "-AB"[slot];
}

/* ---- The slots. */

static bool read_slot_header(const struct updater *updater, uint8_t slot,
                             struct image_header *header,
                             uint8_t buf[IMAGE_HEADER_LEN])
{
    flash_read(updater->config.flash, slot_addr(slot), buf, IMAGE_HEADER_LEN);
    return image_header_parse(header, buf, IMAGE_HEADER_LEN) == IMAGE_OK &&
           image_header_fits(header, updater->rules.dram_addr,
                             updater->rules.dram_bytes);
}

static void read_slot(struct updater *updater, uint8_t slot)
{
    struct image_header header;
    uint8_t buf[IMAGE_HEADER_LEN];

    if (!read_slot_header(updater, slot, &header, buf)) {
        return;
    }
    memcpy(updater->version[slot - 1], header.version, sizeof(header.version));
    updater->is_good[slot - 1] = !updater->config.is_bad[slot - 1];
    updater->is_proven[slot - 1] = slot == updater->config.running;
    updater->newest = MAX(updater->newest, header.sequence);
    if (slot == updater->config.running) {
        updater->rules.security = header.security;
    }
}

static bool save_record(struct updater *updater)
{
    if (slot_record_write(updater->config.flash, &updater->record,
                          &updater->sequence)) {
        return true;
    }
    log_line(updater->config.log,
             "firmware: writing the state of the slots to flash failed");
    return false;
}

/*
 * Correct the record if another image runs than the one that it names.  If the
 * chosen image is not good, the boot ROM starts the other one, but does not
 * write that into the record.
 */
static void check_running(struct updater *updater)
{
    struct slot_record *record = &updater->record;
    uint8_t running = updater->config.running;

    if (record->chosen != 0 && record->chosen != running) {
        record->failed = record->chosen;
        record->failure = SLOT_FAILURE_REFUSED;
        record->is_unreported = true;
        record->chosen = running;
        record->is_on_trial = false;
        record->attempts = 0;
    }
    if (record->is_unreported) {
        updater->reported = record->failed;
        log_line(updater->config.log,
                 "firmware: the image in slot %c %s, so slot %c runs again; "
                 "commit another image when you know why",
                 slot_name(record->failed),
                 record->failure == SLOT_FAILURE_TRIAL
                     ? "was started and never ran for long enough"
                     : "was not accepted by the boot ROM",
                 slot_name(running));
    }
}

void updater_init(struct updater *updater, const struct updater_config *config)
{
    *updater = (struct updater){
        .config = *config,
        .rules =
            {
                .dram_addr = config->dram_addr,
                .dram_bytes = config->dram_bytes,
                .key = config->key,
            },
    };
    if (config->flash == NULL) {
        return;
    }
    for (uint8_t slot = 1; slot <= SLOT_COUNT; slot++) {
        read_slot(updater, slot);
    }
    if (slot_record_read(config->flash, &updater->record, &updater->sequence) ==
        AREA_DAMAGED) {
        log_line(config->log,
                 "firmware: the state of the slots in flash is damaged; the "
                 "image with the higher sequence number starts");
    }
    check_running(updater);
}

bool updater_is_pending(const struct updater *updater)
{
    return updater->record.chosen != 0 &&
           updater->record.chosen != updater->config.running;
}

/* Whether the slot that runs holds a new image, which is pending, too. */
static bool is_replaced(const struct updater *updater)
{
    return updater->record.is_on_trial && updater->record.attempts == 0;
}

uint8_t updater_given_up(const struct updater *updater)
{
    return updater->reported;
}

void updater_reported(struct updater *updater)
{
    updater->reported = 0;
    if (updater->record.is_unreported) {
        updater->record.is_unreported = false;
        (void)save_record(updater);
    }
}

bool updater_is_on_trial(const struct updater *updater)
{
    return updater->record.is_on_trial &&
           updater->record.chosen == updater->config.running &&
           !is_replaced(updater);
}

/* ---- Trial. */

/* The image has run for long enough. */
static void end_trial(struct updater *updater)
{
    struct slot_record before = updater->record;

    updater->record.is_on_trial = false;
    updater->record.attempts = 0;
    if (save_record(updater)) {
        log_line(updater->config.log,
                 "firmware: the image in slot %c has run for %u s, so its "
                 "trial is over",
                 slot_name(updater->config.running), UPDATE_TRIAL_US / 1000000);
    } else {
        updater->record = before;
    }
}

/* ---- Commits. */

static void end_commit(struct updater *updater,
                       enum nvmf_firmware_result result)
{
    struct nvmf_firmware_commit commit = updater->commit;

    updater_enter(updater, UPDATER_IDLE);
    commit.slot = updater->slot;
    updater->config.done(updater->config.ctx, &commit, result);
}

static void refuse_image(struct updater *updater, enum update_verdict verdict)
{
    log_line(updater->config.log,
             "firmware: the image for slot %c %s; it is not used",
             slot_name(updater->slot), update_verdict_text(verdict));
    end_commit(updater, verdict == UPDATE_SECURITY ? NVMF_FIRMWARE_PROHIBITED
                                                   : NVMF_FIRMWARE_INVALID);
}

static void fail_flash(struct updater *updater)
{
    log_line(updater->config.log,
             "firmware: writing slot %c failed, so it holds no image; commit "
             "again",
             slot_name(updater->slot));
    end_commit(updater, NVMF_FIRMWARE_FAILED);
}

static void refuse_slot(struct updater *updater, const char *why)
{
    log_line(updater->config.log,
             "firmware: slot %c cannot be written, because %s; use the other "
             "slot",
             slot_name(updater->slot), why);
    end_commit(updater, NVMF_FIRMWARE_READ_ONLY);
}

static void begin_hash(struct updater *updater)
{
    updater->crc = 0;
    image_digest_begin(&updater->digest);
}

static void start_store(struct updater *updater)
{
    uint8_t other = other_slot(updater->slot);
    enum update_verdict verdict;

    if (updater->slot == 1 && updater->record.is_a_read_only) {
        refuse_slot(updater, "it is read-only");
        return;
    }
    if (!updater->is_good[other - 1]) {
        refuse_slot(updater, "the other slot holds no good image");
        return;
    }
    verdict = update_check_header(&updater->rules, updater->config.image,
                                  updater->commit.len_bytes, &updater->header);
    if (verdict != UPDATE_GOOD) {
        refuse_image(updater, verdict);
        return;
    }
    memcpy(updater->header_bytes, updater->config.image, IMAGE_HEADER_LEN);
    updater_enter(updater, updater->is_proven[other - 1] ? UPDATER_HASHING
                                                         : UPDATER_PROVING);
}

/* The header of an image that a slot holds already. */
static void start_check(struct updater *updater)
{
    enum update_verdict verdict = UPDATE_NO_IMAGE;

    if (read_slot_header(updater, updater->slot, &updater->header,
                         updater->header_bytes)) {
        verdict = UPDATE_GOOD;
        if (updater->rules.key != NULL &&
            !signature_is_good(&updater->header, updater->header_bytes,
                               updater->rules.key)) {
            verdict = UPDATE_SIGNATURE;
        } else if (updater->header.security < updater->rules.security) {
            verdict = UPDATE_SECURITY;
        }
    }
    if (verdict != UPDATE_GOOD) {
        refuse_image(updater, verdict);
    } else {
        updater_enter(updater, UPDATER_READING);
    }
}

/* If a host can update the firmware, the running image has passed its trial. */
static void step_starting(struct updater *updater)
{
    if (updater_is_on_trial(updater)) {
        end_trial(updater);
    }
    begin_hash(updater);
    if (updater->commit.stores) {
        start_store(updater);
    } else {
        start_check(updater);
    }
}

/* The other slot has to start if the power fails while this one is written. */
static void step_proving(struct updater *updater)
{
    uint8_t other = other_slot(updater->slot);
    uint8_t buf[IMAGE_HEADER_LEN];
    struct image_header header;
    uint32_t len;

    if (!read_slot_header(updater, other, &header, buf)) {
        refuse_slot(updater, "the other slot holds no good image");
        return;
    }
    len = MIN(header.len_bytes - updater->at, (uint32_t)sizeof(updater->buf));
    flash_read(updater->config.flash,
               slot_addr(other) + FLASH_SLOT_IMAGE_OFFSET + updater->at,
               updater->buf, len);
    updater->crc = crc32_update(updater->crc, updater->buf, len);
    updater->at += len;
    if (updater->at < header.len_bytes) {
        return;
    }
    if (updater->crc != header.image_crc) {
        updater->is_good[other - 1] = false;
        refuse_slot(updater, "the other slot holds no good image");
        return;
    }
    updater->is_proven[other - 1] = true;
    begin_hash(updater);
    updater_enter(updater, UPDATER_HASHING);
}

/* Take `len` more bytes of the image, and check it at the end. */
static void hash_piece(struct updater *updater, const uint8_t *data,
                       uint32_t len)
{
    updater->crc = crc32_update(updater->crc, data, len);
    if (updater->rules.key != NULL) {
        image_digest_add(&updater->digest, data, len);
    }
    updater->at += len;
}

static enum update_verdict hash_verdict(struct updater *updater)
{
    uint8_t hash[IMAGE_HASH_LEN];

    if (updater->crc != updater->header.image_crc) {
        return UPDATE_CRC;
    }
    if (updater->rules.key == NULL) {
        return UPDATE_GOOD;
    }
    image_digest_end(&updater->digest, hash);
    return memcmp(hash, updater->header.hash, sizeof(hash)) == 0
               ? UPDATE_GOOD
               : UPDATE_SIGNATURE;
}

static const uint8_t *image_data(const struct updater *updater)
{
    return updater->config.image + FLASH_SLOT_IMAGE_OFFSET;
}

static uint32_t flash_image_addr(const struct updater *updater)
{
    return slot_addr(updater->slot) + FLASH_SLOT_IMAGE_OFFSET;
}

/*
 * Before a slot is written, record which slot starts.  Until the first update
 * there is no record, and the sequence numbers decide.  If the chosen slot
 * itself is written, its new image is on trial from now on, because it starts
 * after the next reset even if nothing more is recorded.
 */
static bool prepare_record(struct updater *updater)
{
    struct slot_record *record = &updater->record;
    bool is_first = record->chosen == 0;

    if (is_first) {
        record->chosen = updater->config.running;
        record->previous = other_slot(record->chosen);
    }
    if (record->chosen == updater->slot) {
        record->previous = other_slot(updater->slot);
        record->is_on_trial = true;
        record->attempts = 0;
    } else if (!is_first) {
        return true;
    }
    return save_record(updater);
}

/* From now on the slot holds no image. */
static void forget_image(struct updater *updater)
{
    uint8_t i = (uint8_t)(updater->slot - 1);

    updater->version[i][0] = '\0';
    updater->is_good[i] = false;
    updater->is_proven[i] = false;
}

static void step_hashing(struct updater *updater)
{
    uint32_t len =
        MIN(updater->header.len_bytes - updater->at, (uint32_t)HASH_BYTES);
    enum update_verdict verdict;

    hash_piece(updater, image_data(updater) + updater->at, len);
    if (updater->at < updater->header.len_bytes) {
        return;
    }
    verdict = hash_verdict(updater);
    if (verdict != UPDATE_GOOD) {
        refuse_image(updater, verdict);
        return;
    }
    if (!prepare_record(updater)) {
        end_commit(updater, NVMF_FIRMWARE_FAILED);
        return;
    }
    forget_image(updater);
    updater_enter(updater, UPDATER_ERASING);
}

static void step_erasing(struct updater *updater)
{
    if (!flash_erase_sector(updater->config.flash,
                            slot_addr(updater->slot) + updater->at)) {
        fail_flash(updater);
        return;
    }
    updater->writes++;
    updater->at += FLASH_SECTOR_BYTES;
    if (updater->at >= FLASH_SLOT_IMAGE_OFFSET + updater->header.len_bytes) {
        updater_enter(updater, UPDATER_PROGRAMMING);
    }
}

static void step_programming(struct updater *updater)
{
    uint32_t len = MIN(updater->header.len_bytes - updater->at,
                       (uint32_t)FLASH_PAGE_BYTES);

    if (!flash_program(updater->config.flash,
                       flash_image_addr(updater) + updater->at,
                       image_data(updater) + updater->at, len)) {
        fail_flash(updater);
        return;
    }
    updater->writes++;
    updater->at += len;
    if (updater->at == updater->header.len_bytes) {
        updater_enter(updater, UPDATER_COMPARING);
    }
}

static uint32_t read_piece(struct updater *updater)
{
    uint32_t len = MIN(updater->header.len_bytes - updater->at,
                       (uint32_t)sizeof(updater->buf));

    flash_read(updater->config.flash, flash_image_addr(updater) + updater->at,
               updater->buf, len);
    return len;
}

static void step_comparing(struct updater *updater)
{
    uint32_t len = read_piece(updater);

    if (memcmp(updater->buf, image_data(updater) + updater->at, len) != 0) {
        fail_flash(updater);
        return;
    }
    updater->at += len;
    if (updater->at == updater->header.len_bytes) {
        updater_enter(updater, UPDATER_RECORDING);
    }
}

static void step_reading(struct updater *updater)
{
    enum update_verdict verdict;

    hash_piece(updater, updater->buf, read_piece(updater));
    if (updater->at < updater->header.len_bytes) {
        return;
    }
    verdict = hash_verdict(updater);
    if (verdict != UPDATE_GOOD) {
        refuse_image(updater, verdict);
    } else {
        updater_enter(updater, UPDATER_RECORDING);
    }
}

/*
 * Write the header.  An image that is only stored gets the lowest sequence
 * number, so that it does not start if the record is lost.
 */
static bool write_header(struct updater *updater)
{
    uint32_t sequence = updater->commit.activates ? updater->newest + 1 : 0;

    image_header_set_sequence(updater->header_bytes, sequence);
    if (!flash_program(updater->config.flash, slot_addr(updater->slot),
                       updater->header_bytes, IMAGE_HEADER_LEN)) {
        return false;
    }
    updater->writes++;
    updater->newest = MAX(updater->newest, sequence);
    updater->is_good[updater->slot - 1] = true;
    updater->is_proven[updater->slot - 1] = true;
    memcpy(updater->version[updater->slot - 1], updater->header.version,
           sizeof(updater->header.version));
    return true;
}

/* Record that a slot starts after the next reset, and which slot starts if this
 * one is given up. */
static bool activate_slot(struct updater *updater)
{
    struct slot_record before = updater->record;
    struct slot_record *record = &updater->record;
    uint8_t running = updater->config.running;

    record->chosen = updater->slot;
    record->attempts = 0;
    record->previous = other_slot(updater->slot);
    /* The image that runs needs no trial, unless it was replaced. */
    record->is_on_trial = updater->slot != running || updater->commit.stores;
    if (!save_record(updater)) {
        updater->record = before;
        return false;
    }
    return true;
}

static void step_recording(struct updater *updater)
{
    if (updater->commit.stores && !write_header(updater)) {
        fail_flash(updater);
        return;
    }
    if (updater->commit.activates && !activate_slot(updater)) {
        end_commit(updater, NVMF_FIRMWARE_FAILED);
        return;
    }
    log_line(updater->config.log, "firmware: slot %c holds version %s%s",
             slot_name(updater->slot), updater->header.version,
             updater->commit.activates
                 ? ", which starts after a subsystem reset or power cycle"
                 : "");
    end_commit(updater, NVMF_FIRMWARE_OK);
}

/* ---- Interface. */

static uint64_t step_trial(struct updater *updater, uint64_t now_us)
{
    if (!updater->has_started) {
        updater->has_started = true;
        updater->started_us = now_us;
    }
    if (!updater_is_on_trial(updater)) {
        return UINT64_MAX;
    }
    if (now_us < updater->started_us + UPDATE_TRIAL_US) {
        return updater->started_us + UPDATE_TRIAL_US;
    }
    end_trial(updater);
    /* If the flash has refused the record, try again later. */
    updater->started_us = now_us;
    return now_us + UPDATE_TRIAL_US;
}

uint64_t updater_step(struct updater *updater, uint64_t now_us)
{
    static void (*const steps[UPDATER_PHASES])(struct updater *updater) = {
        [UPDATER_STARTING] = step_starting,
        [UPDATER_PROVING] = step_proving,
        [UPDATER_HASHING] = step_hashing,
        [UPDATER_ERASING] = step_erasing,
        [UPDATER_PROGRAMMING] = step_programming,
        [UPDATER_COMPARING] = step_comparing,
        [UPDATER_READING] = step_reading,
        [UPDATER_RECORDING] = step_recording,
    };
    uint64_t trial_us;

    if (updater->config.flash == NULL) {
        return UINT64_MAX;
    }
    trial_us = step_trial(updater, now_us);
    if (updater->phase == UPDATER_IDLE) {
        return trial_us;
    }
    steps[updater->phase](updater);
    return updater->phase != UPDATER_IDLE ? now_us + PACE_US : trial_us;
}

static bool seam_commit(void *ctx, const struct nvmf_firmware_commit *commit)
{
    struct updater *updater = ctx;

    updater->commit = *commit;
    updater->slot =
        commit->slot != 0 ? commit->slot : other_slot(updater->config.running);
    updater_enter(updater, UPDATER_STARTING);
    return true;
}

static void seam_describe(void *ctx, struct nvmf_firmware_now *now)
{
    const struct updater *updater = ctx;

    *now = (struct nvmf_firmware_now){
        .active = updater->config.running,
        .next = updater_is_pending(updater) || is_replaced(updater)
                    ? updater->record.chosen
                    : 0,
        .is_first_read_only = updater->record.is_a_read_only,
    };
    for (unsigned int i = 0; i < SLOT_COUNT; i++) {
        log_format(now->revision[i], sizeof(now->revision[i]), "%s",
                   updater->version[i]);
    }
}

struct nvmf_firmware updater_seam(struct updater *updater)
{
    return (struct nvmf_firmware){
        .ctx = updater,
        .image = updater->config.flash != NULL ? updater->config.image : NULL,
        .commit = seam_commit,
        .describe = seam_describe,
    };
}
