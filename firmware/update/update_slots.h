/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The image slots as the running firmware knows them, and the record that says
 * which slot starts.  These functions keep one rule: at most one slot is
 * unproven, which means that it holds no image, or one that has not passed its
 * trial.  While a slot is unproven, the other one is not written, and starts if
 * the image in the unproven slot does not come up.
 * Reference: docs/hardware/boot.md, "Trial of a new image"
 */
#ifndef ESSD_UPDATE_UPDATE_SLOTS_H
#define ESSD_UPDATE_UPDATE_SLOTS_H

#include "firmware/hal/log.h"
#include "firmware/store/slot_record.h"
#include "firmware/update/update_image.h"

struct update_slots_config {
    struct log *log;
    const struct flash *flash;
    uint8_t running;         /* the slot whose image runs: 1 or 2 */
    bool is_bad[SLOT_COUNT]; /* the boot ROM has refused the slot */
    bool is_unplanned;       /* see sysctl_reset_is_unplanned() */
    uint64_t dram_addr, dram_bytes;
};

struct update_slot {
    char version[IMAGE_VERSION_LEN + 1]; /* "": no image */
    uint32_t security;
    bool is_good;    /* the slot holds an image that can start */
    bool is_checked; /* since the start, all bytes of its image were checked */
};

/* Treat as opaque. */
struct update_slots {
    struct update_slots_config config;
    struct slot_record record;
    uint32_t sequence; /* of the record */
    struct update_slot slot[SLOT_COUNT];
    uint32_t newest;   /* the highest sequence number of an image */
    uint32_t security; /* security version of the running image */
    uint8_t reported;  /* slot whose image was given up, as long as this is to
                        * be reported; 0: none */
    bool is_replaced;  /* the running image is no longer in its slot */
    uint32_t erased;   /* number of the next record, if a sector was erased for
                        * it; 0: none was */
    uint32_t erased_rings; /* number of rings in which the place of record
                            * `erased` was erased */
};

/* Whether a slot can be written now. */
enum update_store {
    UPDATE_STORE_NOW,
    UPDATE_STORE_AFTER_TRIAL, /* not before the running image has passed */
    UPDATE_STORE_NEVER,
};

/** Read the slots and the record. */
void update_slots_init(struct update_slots *slots,
                       const struct update_slots_config *config);

/** Read the header of a slot.  @return false when it is not good */
MUST_USE bool update_slots_read_header(const struct update_slots *slots,
                                       uint8_t slot,
                                       struct image_header *header,
                                       uint8_t buf[IMAGE_HEADER_LEN]);

/** The slot that starts after the next subsystem reset, if it holds another
 * image than the running one; otherwise 0. */
uint8_t update_slots_next(const struct update_slots *slots);

/** Whether the running image is on trial. */
bool update_slots_is_on_trial(const struct update_slots *slots);

/** How many more images may be stored after so many hours of power-on.  This
 * limits how often the sectors of a slot are erased. */
uint64_t update_slots_stores_left(const struct update_slots *slots,
                                  uint64_t hours);
/** The same limit for the record of the slots. */
uint64_t update_slots_records_left(const struct update_slots *slots,
                                   uint64_t hours);

/** How many records a commit writes at most, until the trial of its image is
 * over. */
uint32_t update_slots_records_of(const struct update_slots *slots, uint8_t slot,
                                 bool stores, bool activates);

/** The next sector to erase for the next record.  Erase it, call
 * update_slots_note_erased(), and repeat until update_slots_is_erased(); then
 * writing the record erases nothing. */
uint32_t update_slots_next_addr(const struct update_slots *slots);
void update_slots_note_erased(struct update_slots *slots);
bool update_slots_is_erased(const struct update_slots *slots);

/** Record that the running image has passed its trial.  @return false when the
 * flash does not take the record */
MUST_USE bool update_slots_end_trial(struct update_slots *slots);

/** Choose the slot for an image whose host leaves the choice to the drive. */
uint8_t update_slots_choose(const struct update_slots *slots);

/** @param why  set to the reason for UPDATE_STORE_NEVER */
enum update_store update_slots_check_store(const struct update_slots *slots,
                                           uint8_t slot, const char **why);

/** The lowest security version of an image that may be stored or activated. */
uint32_t update_slots_security(const struct update_slots *slots);

/**
 * Record that a slot is going to be written: it is unproven from now on, and
 * the other slot starts.  Call this before the first sector is erased.
 *
 * @return false when the flash does not take the record: do not write the slot
 */
MUST_USE bool update_slots_begin_store(struct update_slots *slots,
                                       uint8_t slot);

/** Note that a slot was written and read back. */
void update_slots_end_store(struct update_slots *slots, uint8_t slot,
                            const struct image_header *header);

/** Note that all bytes of a slot's image were checked. */
void update_slots_set_checked(struct update_slots *slots, uint8_t slot,
                              bool is_good);

/** Record that a slot starts after the next reset.  Its image is then on trial,
 * unless it is proven and either runs or is the only proven one.
 * @return false when the flash does not take the record */
MUST_USE bool update_slots_activate(struct update_slots *slots, uint8_t slot);

/** Whether update_slots_activate() writes a record. */
bool update_slots_must_activate(const struct update_slots *slots, uint8_t slot);

/** Note that the slot in `slots->reported` was reported. */
void update_slots_set_reported(struct update_slots *slots);

#endif
