/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns of the main loops of the native world: of hosts, of drives with one
 * hart, and of drives with several (firmware/stages/stages.h).
 */
#ifndef ESSD_NATIVE_NATIVE_TURN_H
#define ESSD_NATIVE_NATIVE_TURN_H

#include "firmware/native/native.h"

/** @return false when the hart stays asleep */
bool native_turn_wakes(struct native_sleep *sleep,
                       const struct machine *machine);

/** When a hart that sleeps wakes up by itself. */
uint64_t native_turn_sleep_ends(const struct native_sleep *sleep);

/**
 * One turn of a hart that is awake.
 * @return whether anything was done
 */
bool native_turn_or_sleep(struct loop *loop, struct native_sleep *sleep,
                          const struct machine *machine);

/** What runs on the machine of a drive. */
struct machine_software native_turn_of_drive(struct native_drive *drive);

#endif
