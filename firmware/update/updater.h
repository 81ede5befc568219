/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Updates the firmware: checks a downloaded image, writes it to a slot in steps
 * of one flash command, and records which slot starts.  It also ends the trial
 * of a new image when this has run for long enough.  No step waits for the end
 * of an erasure, which takes up to 400 ms, so that commands of hosts go on.
 *
 * The slot that is written loses its header first and gets the new one last, so
 * that a power cut leaves an empty slot, never a mixed one.  While a slot is
 * written, the other slot must hold a proven image, so the last proven image is
 * never overwritten.
 * Reference: docs/hardware/boot.md, "Updating the firmware"
 */
#ifndef ESSD_UPDATE_UPDATER_H
#define ESSD_UPDATE_UPDATER_H

#include "firmware/hal/log.h"
#include "firmware/store/write_shares.h"
#include "firmware/update/update_image.h"
#include "firmware/update/update_slots.h"
#include "nvmeof/target/firmware.h"

enum {
    /* An image on trial declares itself good after it has run for so long. */
    UPDATE_TRIAL_US = 10 * 1000 * 1000,
    UPDATE_PIECE_BYTES = 4096,
};

struct updater_config {
    struct log *log;
    const struct flash *flash; /* NULL: none, and no firmware commands */
    uint8_t running;           /* the slot whose image runs: 1 or 2 */
    bool is_bad[SLOT_COUNT];   /* the boot ROM has refused the slot */
    bool is_unplanned;         /* see sysctl_reset_is_unplanned() */
    uint8_t *image;            /* NVMF_FIRMWARE_MAX bytes */
    uint64_t dram_addr, dram_bytes;
    const uint8_t *key; /* images are signed with it; NULL: none is fused */

    /* For how long the drive was on, which limits how often the flash is
     * written.  NULL: 0. */
    uint64_t (*power_on_hours)(void *ctx);

    /* A commit has ended. */
    void (*done)(void *ctx, const struct nvmf_firmware_commit *commit,
                 enum nvmf_firmware_result result);
    void *ctx;
};

enum updater_phase {
    UPDATER_IDLE,
    UPDATER_STARTING,  /* Checks the header of the image. */
    UPDATER_WAITING,   /* Waits until the running image has passed its trial. */
    UPDATER_PROVING,   /* Checks the image in the other slot. */
    UPDATER_HASHING,   /* Checks the CRC and the hash of the image. */
    UPDATER_PREPARING, /* Records that the slot is going to be written. */
    UPDATER_ERASING,   /* Erases the sectors of the slot, the header's first. */
    UPDATER_PROGRAMMING, /* Programs the image. */
    UPDATER_COMPARING,   /* Reads the image back. */
    UPDATER_READING,     /* Checks an image that a slot holds already. */
    UPDATER_RECORDING,   /* Writes the header; records which slot starts. */
    UPDATER_PHASES
};

/* Treat as opaque. */
struct updater {
    struct updater_config config;
    struct update_rules rules;
    struct update_slots slots;
    struct write_shares stores, records; /* of the hosts */

    enum updater_phase phase;
    struct nvmf_firmware_commit commit;
    uint8_t slot;
    uint32_t at; /* bytes of the current phase that are done */
    uint32_t crc;
    struct image_digest digest;
    struct image_header header; /* of the image that is committed */
    struct image_header kept;   /* of the image in the slot that is kept */
    uint8_t header_bytes[IMAGE_HEADER_LEN];
    uint8_t buf[UPDATE_PIECE_BYTES];
    uint64_t started_us;
    bool has_started;
    bool is_erasing;     /* updater_erase() has begun and not ended */
    bool is_trial_stuck; /* the end of the trial could not be recorded */
    uint64_t writes;     /* flash commands of all updates, for statistics */
};

/** Read the slots and the record. */
void updater_init(struct updater *updater, const struct updater_config *config);

/** What hosts have used of the writes to slots, and of the records of their
 * state, to be kept over a restart. */
struct write_shares *updater_store_shares(struct updater *updater);
struct write_shares *updater_record_shares(struct updater *updater);

/** The functions of this updater for the target. */
struct nvmf_firmware updater_seam(struct updater *updater);

/**
 * Do one flash command, look whether an erasure has ended, or check a piece of
 * an image.
 *
 * @return when to call this again; UINT64_MAX: not before a commit has begun
 */
uint64_t updater_step(struct updater *updater, uint64_t now_us);

/** The slot that starts after the next subsystem reset, if it holds another
 * image than the running one; otherwise 0. */
uint8_t updater_next(const struct updater *updater);

/** Whether a commit is in progress. */
bool updater_is_busy(const struct updater *updater);

/**
 * The slot whose image was given up before this start, 0 if none was.  The
 * report is over when updater_reported() is called.
 *
 * @param failure  set to the reason, unless it is NULL
 */
uint8_t updater_given_up(const struct updater *updater,
                         enum slot_failure *failure);
void updater_reported(struct updater *updater);

/** Whether the running image is on trial. */
bool updater_is_on_trial(const struct updater *updater);

#endif
