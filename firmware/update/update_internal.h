/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The steps of a commit, private to this directory.  A step executes one flash
 * command or checks a piece of an image, but it does not wait for the end of an
 * erasure: a later step does what follows.  When its phase is over, a step
 * enters the next phase or ends the commit.
 */
#ifndef ESSD_UPDATE_UPDATE_INTERNAL_H
#define ESSD_UPDATE_UPDATE_INTERNAL_H

#include "firmware/update/updater.h"

/* ---- updater.c */

/* The only writer of updater->phase. */
void updater_enter(struct updater *updater, enum updater_phase next);

/* Erase a sector: the first call begins, and later calls say whether the
 * erasure has ended. */
enum flash_progress updater_erase(struct updater *updater, uint32_t addr);

/* Erase the sector of the next record of the slots.
 * @return whether the record can be written now; otherwise call this again in
 *         the next step */
bool updater_prepare_record(struct updater *updater);

/* End the commit. */
void updater_end(struct updater *updater, enum nvmf_firmware_result result);

/* End the commit, because the image, the slot or the flash is not good. */
void updater_refuse_image(struct updater *updater, enum update_verdict verdict);
void updater_refuse_slot(struct updater *updater, const char *why);
void updater_fail_flash(struct updater *updater);

/* ---- update_check.c: the checks before anything is written. */

void update_step_starting(struct updater *updater);
void update_step_waiting(struct updater *updater);
void update_step_proving(struct updater *updater);
void update_step_hashing(struct updater *updater);
void update_step_reading(struct updater *updater);

/* ---- update_write.c */

void update_step_preparing(struct updater *updater);
void update_step_erasing(struct updater *updater);
void update_step_programming(struct updater *updater);
void update_step_comparing(struct updater *updater);
void update_step_recording(struct updater *updater);

#endif
