/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/boot/boot_slots.h"

#include <string.h>

#include "firmware/signature/signature.h"
#include "firmware/store/flash_layout.h"
#include "lib/crc32.h"

static enum sysctl_boot_verdict verdict_of(enum image_check check)
{
    static const enum sysctl_boot_verdict verdict[] = {
        [IMAGE_OK] = SYSCTL_VERDICT_UNTRIED,
        [IMAGE_EMPTY] = SYSCTL_VERDICT_EMPTY,
        [IMAGE_HEADER_CRC] = SYSCTL_VERDICT_HEADER_CRC,
        [IMAGE_VERSION] = SYSCTL_VERDICT_HEADER,
        [IMAGE_OTHER_BOARD] = SYSCTL_VERDICT_BOARD,
    };

    return verdict[check];
}

static void read_header(struct boot_slots *slots, uint8_t number)
{
    const struct boot_config *config = &slots->config;
    struct boot_slot *slot = &slots->slot[number - 1];
    uint8_t buf[IMAGE_HEADER_LEN];

    flash_read(config->flash, slot_addr(number), buf, sizeof(buf));
    slot->verdict =
        verdict_of(image_header_parse(&slot->header, buf, sizeof(buf)));
    if (slot->verdict != SYSCTL_VERDICT_UNTRIED) {
        return;
    }
    if (!image_header_fits(&slot->header, config->dram_addr,
                           config->dram_bytes)) {
        slot->verdict = SYSCTL_VERDICT_RANGE;
    } else if (config->key != NULL &&
               !signature_is_good(&slot->header, buf, config->key)) {
        slot->verdict = SYSCTL_VERDICT_SIGNATURE;
    }
}

static bool hash_is_right(const struct image_header *header,
                          const uint8_t *image)
{
    struct image_digest digest;
    uint8_t hash[IMAGE_HASH_LEN];

    image_digest_begin(&digest);
    image_digest_add(&digest, image, header->len_bytes);
    image_digest_end(&digest, hash);
    return memcmp(hash, header->hash, sizeof(hash)) == 0;
}

static void load_image(struct boot_slots *slots, uint8_t number)
{
    const struct boot_config *config = &slots->config;
    struct boot_slot *slot = &slots->slot[number - 1];
    const struct image_header *header = &slot->header;
    uint8_t *to = config->dram + (header->load_addr - config->dram_addr);

    /* If the image ends in the middle of a lost word, writing this part would
     * fail. */
    if (config->clear_lost_words != NULL) {
        config->clear_lost_words(config->clear_ctx, to, header->len_bytes);
    }
    flash_read(config->flash, slot_addr(number) + FLASH_SLOT_IMAGE_OFFSET, to,
               header->len_bytes);
    if (crc32_update(0, to, header->len_bytes) != header->image_crc) {
        slot->verdict = SYSCTL_VERDICT_IMAGE_CRC;
    } else if (config->key != NULL && !hash_is_right(header, to)) {
        slot->verdict = SYSCTL_VERDICT_SIGNATURE;
    } else {
        slot->verdict = SYSCTL_VERDICT_GOOD;
    }
}

static bool is_untried(const struct boot_slots *slots, uint8_t number)
{
    return number != 0 &&
           slots->slot[number - 1].verdict == SYSCTL_VERDICT_UNTRIED;
}

/* The next slot to try: the chosen slot if it was not tried yet, otherwise the
 * slot with the higher sequence number, A when both are equal; 0 when there is
 * none. */
static uint8_t next_slot(const struct boot_slots *slots, uint8_t chosen)
{
    bool has_a = is_untried(slots, 1);
    bool has_b = is_untried(slots, 2);

    if (is_untried(slots, chosen)) {
        return chosen;
    }
    if (has_a && has_b) {
        return slots->slot[1].header.sequence > slots->slot[0].header.sequence
                   ? 2
                   : 1;
    }
    return has_a ? 1 : has_b ? 2 : 0;
}

/*
 * Make a record instead of one that is lost.  A lost record may have proven an
 * image, or may have given one up.  So the chosen image of the older record, if
 * there is one, gets a trial, after which the other image starts.  The floor of
 * security versions is the highest that the lost record may have had: each
 * proven image is in a slot, or was replaced by one with no lower version.
 */
static void replace_record(struct boot_slots *slots)
{
    struct slot_record older = slots->state;
    struct slot_record *state = &slots->state;

    *state = (struct slot_record){
        .is_a_read_only = older.is_a_read_only,
        .stores = older.stores,
        .security = older.security,
        .was_lost = true,
    };
    for (uint8_t number = 1; number <= SLOT_COUNT; number++) {
        const struct image_header *header = &slots->slot[number - 1].header;

        if (is_untried(slots, number)) {
            state->security = MAX(state->security, header->security);
        }
    }
    state->chosen = next_slot(slots, older.chosen);
    if (state->chosen != 0 && is_untried(slots, slot_other(state->chosen))) {
        state->previous = slot_other(state->chosen);
        state->is_on_trial = true;
        state->unproven = state->chosen;
    }
}

void boot_slots_read(struct boot_slots *slots, const struct boot_config *config)
{
    enum area_result result;

    *slots = (struct boot_slots){.config = *config};
    for (uint8_t number = 1; number <= SLOT_COUNT; number++) {
        read_header(slots, number);
    }
    result = slot_record_read(config->flash, &slots->state, &slots->sequence);
    slots->has_lost = area_is_lost(result);
    if (slots->has_lost) {
        replace_record(slots);
    }
}

static bool try_slot(struct boot_slots *slots, uint8_t number)
{
    if (!is_untried(slots, number)) {
        return false;
    }
    load_image(slots, number);
    return slots->slot[number - 1].verdict == SYSCTL_VERDICT_GOOD;
}

/*
 * Count a start of the image on trial.
 *
 * @return false when the image has had all its starts, or when the flash does
 * not take the count: without it, the image could be started for ever
 */
static bool count_attempt(struct boot_slots *slots)
{
    struct slot_record *state = &slots->state;

    if (state->attempts >= SLOT_ATTEMPTS) {
        return false;
    }
    state->attempts++;
    slots->cannot_record =
        !slot_record_write(slots->config.flash, state, &slots->sequence);
    return !slots->cannot_record;
}

/* Record that the image on trial has failed, and that the previous image, which
 * is loaded, starts from now on. */
static void give_up(struct boot_slots *slots)
{
    struct slot_record *state = &slots->state;

    state->failed = state->chosen;
    state->failure = SLOT_FAILURE_TRIAL;
    state->is_unreported = true;
    state->unproven = state->chosen;
    state->chosen = state->previous;
    state->previous = state->failed;
    state->is_on_trial = false;
    state->attempts = 0;
    slots->gave_up = true;
    /* If the flash refuses this, the next start decides the same again. */
    slots->cannot_record =
        !slot_record_write(slots->config.flash, state, &slots->sequence);
}

/* Whether the chosen image has to wait for an orderly reset or a power cycle,
 * and the image that ran before is loaded.  If the record is lost, it is not
 * known which one ran. */
static bool loads_previous(struct boot_slots *slots)
{
    const struct slot_record *state = &slots->state;

    slots->waits = slots->config.is_unplanned && state->is_on_trial &&
                   !slots->has_lost && state->attempts == 0 &&
                   is_untried(slots, state->chosen) && state->previous != 0 &&
                   try_slot(slots, state->previous);
    return slots->waits;
}

uint8_t boot_slots_choose(struct boot_slots *slots)
{
    const struct slot_record *state = &slots->state;
    uint8_t number;

    if (slots->has_lost && !state->is_on_trial) {
        /* Else the count of starts writes it. */
        slots->cannot_record =
            !slot_record_write(slots->config.flash, state, &slots->sequence);
    }
    if (loads_previous(slots)) {
        return state->previous;
    }
    if (state->is_on_trial && is_untried(slots, state->chosen) &&
        !count_attempt(slots) && try_slot(slots, state->previous)) {
        number = state->previous;
        if (!slots->cannot_record) {
            give_up(slots);
        }
        return number;
    }
    while ((number = next_slot(slots, state->chosen)) != 0) {
        if (try_slot(slots, number)) {
            return number;
        }
    }
    return 0;
}
