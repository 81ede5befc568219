/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several harts of a drive in virtual time.
 *
 * A hart that is free takes a stage (firmware/stages/stages.h), executes it at
 * once, and is busy for as long as the instructions take.  Others see what it
 * has done when that time is over, because it gives the stage back then.  Harts
 * that are free at the same time take stages in the order of their numbers, so
 * that every run is the same.
 */
#ifndef ESSD_NATIVE_NATIVE_HARTS_H
#define ESSD_NATIVE_NATIVE_HARTS_H

#include "firmware/native/native.h"

/** Use so many harts from now on, 1 to STAGE_HARTS.  More than one needs
 * native_drive_config.has_stages.  No command may be in progress. */
void native_harts_use(struct native_drive *drive, unsigned int count,
                      uint64_t handover_ns, uint64_t message_ns);

/** @return whether anything was done */
bool native_harts_step(struct native_drive *drive);

/** When a hart has something to do. */
uint64_t native_harts_deadline_ns(const struct native_drive *drive);

#endif
