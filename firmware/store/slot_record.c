/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/slot_record.h"

#include <string.h>

#include "firmware/store/flash_layout.h"
#include "lib/bytes.h"

enum { /* byte offsets; fields have one byte, unused bytes are zero */
       STATE_VERSION = 0, /* 1: another one is not read */
       STATE_CHOSEN = 1,
       STATE_PREVIOUS = 2,
       STATE_TRIAL = 3,
       STATE_ATTEMPTS = 4,
       STATE_FAILED = 5,
       STATE_FAILURE = 6,
       STATE_UNREPORTED = 7,
       STATE_READ_ONLY = 8, /* bit 0: slot A.  No command and no tool sets it:
                             * it is for makers of drives that write it with
                             * the first image. */
       STATE_UNPROVEN = 9,  /* Older firmware always wrote 0.  Then the slot on
                             * trial is unproven; without a trial, the slot in
                             * STATE_FAILED is, unless it is STATE_CHOSEN. */
       STATE_LOST = 10,
       STATE_STORES = 12,   /* 4 bytes, little-endian */
       STATE_SECURITY = 16, /* 4 bytes, little-endian */
};

#define VERSION 1

void slot_record_emit(const struct slot_record *state, uint8_t *buf)
{
    memset(buf, 0, SLOT_RECORD_LEN);
    buf[STATE_VERSION] = VERSION;
    buf[STATE_CHOSEN] = state->chosen;
    buf[STATE_PREVIOUS] = state->previous;
    buf[STATE_TRIAL] = state->is_on_trial;
    buf[STATE_ATTEMPTS] = state->attempts;
    buf[STATE_FAILED] = state->failed;
    buf[STATE_FAILURE] = state->failure;
    buf[STATE_UNREPORTED] = state->is_unreported;
    buf[STATE_READ_ONLY] = state->is_a_read_only;
    buf[STATE_UNPROVEN] = state->unproven;
    buf[STATE_LOST] = state->was_lost;
    put_le32(buf + STATE_STORES, state->stores);
    put_le32(buf + STATE_SECURITY, state->security);
}

/* Find out which slot is unproven.  Records of older firmware have 0 in the
 * field. */
static uint8_t derive_unproven(const struct slot_record *state)
{
    if (state->is_on_trial) {
        return state->chosen;
    }
    return state->failed != state->chosen ? state->failed : 0;
}

bool slot_record_parse(struct slot_record *state, const uint8_t *buf,
                       size_t len)
{
    if (len < SLOT_RECORD_LEN || buf[STATE_VERSION] != VERSION ||
        buf[STATE_CHOSEN] > SLOT_COUNT || buf[STATE_PREVIOUS] > SLOT_COUNT ||
        buf[STATE_FAILED] > SLOT_COUNT || buf[STATE_UNPROVEN] > SLOT_COUNT ||
        buf[STATE_FAILURE] > SLOT_FAILURE_REFUSED) {
        return false;
    }
    *state = (struct slot_record){
        .chosen = buf[STATE_CHOSEN],
        .previous = buf[STATE_PREVIOUS],
        .is_on_trial = buf[STATE_TRIAL] != 0,
        .attempts = buf[STATE_ATTEMPTS],
        .failed = buf[STATE_FAILED],
        .failure = buf[STATE_FAILURE],
        .is_unreported = buf[STATE_UNREPORTED] != 0,
        .is_a_read_only = buf[STATE_READ_ONLY] & 1,
        .unproven = buf[STATE_UNPROVEN],
        .was_lost = buf[STATE_LOST] != 0,
        .stores = get_le32(buf + STATE_STORES),
        .security = get_le32(buf + STATE_SECURITY),
    };
    if (state->unproven == 0) {
        state->unproven = derive_unproven(state);
    }
    return true;
}

enum area_result slot_record_read(const struct flash *flash,
                                  struct slot_record *state, uint32_t *sequence)
{
    uint8_t buf[SLOT_RECORD_LEN];
    size_t len = 0;
    enum area_result result =
        area_read(flash, &slot_record_area, buf, sizeof(buf), &len, sequence);

    *state = (struct slot_record){0};
    if ((result == AREA_OK || result == AREA_OLDER) &&
        !slot_record_parse(state, buf, len)) {
        return AREA_DAMAGED;
    }
    return result;
}

enum area_repair slot_record_repair(const struct flash *flash,
                                    uint32_t *sequence)
{
    uint8_t buf[SLOT_RECORD_LEN];
    size_t len = 0;

    if (area_read(flash, &slot_record_area, buf, sizeof(buf), &len, sequence) !=
        AREA_OK) {
        return AREA_REPAIR_NONE;
    }
    return area_repair(flash, &slot_record_area, sequence, buf, len);
}

/* Read back what was written: a record that is not in both rings does not
 * count. */
static bool holds_record(const struct flash *flash, uint32_t sequence,
                         const uint8_t *buf)
{
    if (area_holds(flash, &slot_record_area, sequence, buf, SLOT_RECORD_LEN)) {
        return true;
    }
    area_take_back(flash, &slot_record_area, sequence);
    return false;
}

bool slot_record_write(const struct flash *flash,
                       const struct slot_record *state, uint32_t *sequence)
{
    uint8_t buf[SLOT_RECORD_LEN];

    slot_record_emit(state, buf);
    return area_write(flash, &slot_record_area, sequence, buf, sizeof(buf)) &&
           holds_record(flash, *sequence, buf);
}

bool slot_record_write_erased(const struct flash *flash,
                              const struct slot_record *state,
                              uint32_t *sequence)
{
    uint8_t buf[SLOT_RECORD_LEN];

    slot_record_emit(state, buf);
    return area_write_erased(flash, &slot_record_area, sequence, buf,
                             sizeof(buf)) &&
           holds_record(flash, *sequence, buf);
}

uint32_t slot_record_next_addr(uint32_t ring, uint32_t sequence)
{
    return area_next_addr(&slot_record_area, ring, sequence);
}

uint32_t slot_record_rings(void)
{
    return area_rings(&slot_record_area);
}

bool slot_record_trial_fails(const struct slot_record *state, uint8_t running,
                             const bool is_bad[SLOT_COUNT])
{
    return state->is_on_trial && state->previous != 0 &&
           !is_bad[state->previous - 1] && state->chosen == running;
}

uint8_t slot_other(uint8_t slot)
{
    return slot == 1 ? 2 : 1;
}

uint32_t slot_addr(uint8_t slot)
{
    return slot == 2 ? FLASH_SLOT_B_ADDR : FLASH_SLOT_A_ADDR;
}
