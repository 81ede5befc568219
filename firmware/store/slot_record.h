/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record that says which image slot starts.  The firmware writes it when a
 * host activates an image, and the boot ROM when an image that is on trial
 * starts or is given up.
 * Reference: docs/hardware/boot.md, "Trial of a new image"; docs/hardware/
 * flash.md, "State of the slots"
 */
#ifndef ESSD_STORE_SLOT_RECORD_H
#define ESSD_STORE_SLOT_RECORD_H

#include "firmware/store/area.h"
#include "lib/util.h"

enum {
    SLOT_COUNT = 2, /* slots 1 (A) and 2 (B) */
    SLOT_RECORD_LEN = 64,
    SLOT_ATTEMPTS = 3, /* starts that an image on trial gets */
};

enum slot_failure {
    SLOT_FAILURE_NONE,
    SLOT_FAILURE_TRIAL,   /* no start of SLOT_ATTEMPTS has lasted long enough */
    SLOT_FAILURE_REFUSED, /* the boot ROM did not accept the image */
};

struct slot_record {
    uint8_t chosen;     /* the slot that starts; 0: the one with the higher
                         * sequence number */
    uint8_t previous;   /* slot that starts if `chosen` is given up; 0: none */
    bool is_on_trial;   /* `chosen` has not declared itself good yet */
    uint8_t attempts;   /* starts of the trial so far */
    uint8_t failed;     /* the slot that was given up last; 0: none */
    uint8_t failure;    /* enum slot_failure: why */
    bool is_unreported; /* the firmware has not reported `failed` yet */
    bool is_a_read_only;
    uint8_t unproven;  /* the slot that holds no image, or one that has not
                        * passed its trial; 0: none.  While a slot is unproven,
                        * the other one is not written, so one slot always
                        * holds a proven image. */
    uint32_t stores;   /* number of images that were written to slots so far */
    uint32_t security; /* highest security version of a proven image; images
                        * with a lower one are refused */
    bool was_lost;     /* the record before was lost; the next start of the
                        * firmware reports it */
};

/**
 * Whether firmware that runs from this slot and cannot serve hosts has to reset
 * the drive: it is on trial, so that the boot ROM counts the start and, after
 * the last one, goes back to the previous image.  If the previous image is not
 * good, a reset would change nothing.
 *
 * @param is_bad  slots 1 and 2, as the boot ROM has found them
 */
bool slot_record_trial_fails(const struct slot_record *state, uint8_t running,
                             const bool is_bad[SLOT_COUNT]);

/** @param buf  SLOT_RECORD_LEN bytes, all written. */
void slot_record_emit(const struct slot_record *state, uint8_t *buf);

MUST_USE bool slot_record_parse(struct slot_record *state, const uint8_t *buf,
                                size_t len);

/**
 * Read the record.  If there is none, or it is damaged, `state` is all zero.
 *
 * @param sequence  set for slot_record_write()
 */
enum area_result slot_record_read(const struct flash *flash,
                                  struct slot_record *state,
                                  uint32_t *sequence);

/**
 * Make both rings hold the newest record if one of them has lost it, or if
 * older firmware, which knew one ring, has written it.
 *
 * @param sequence  set for slot_record_write()
 */
enum area_repair slot_record_repair(const struct flash *flash,
                                    uint32_t *sequence);

/** The slot that is not `slot`. */
uint8_t slot_other(uint8_t slot);

/**
 * Write the record, and read it back.
 *
 * @return false when the flash does not take the new record; the old one stays
 */
MUST_USE bool slot_record_write(const struct flash *flash,
                                const struct slot_record *state,
                                uint32_t *sequence);

/** As slot_record_write(), but the caller has erased the sectors at
 * slot_record_next_addr() of each ring. */
MUST_USE bool slot_record_write_erased(const struct flash *flash,
                                       const struct slot_record *state,
                                       uint32_t *sequence);

/** Where the next record is written: once in each ring. */
uint32_t slot_record_next_addr(uint32_t ring, uint32_t sequence);

uint32_t slot_record_rings(void);

/** Address of slot 1 or 2 in the flash. */
uint32_t slot_addr(uint8_t slot);

#endif
