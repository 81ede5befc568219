/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an application keeps of the persistent event log over a restart: the
 * events, and how many of them each host has caused.
 */
#ifndef ESSD_NVMEOF_TARGET_EVENTS_EVENT_STORE_H
#define ESSD_NVMEOF_TARGET_EVENTS_EVENT_STORE_H

#include "lib/util.h"

struct nvmf_target;

enum { NVMF_EVENT_MAX = 536 }; /* bytes of a persistent event */

/** The number of the newest persistent event; the drive's first one is 1. */
uint64_t nvmf_target_events(const struct nvmf_target *target);

/**
 * Read a persistent event, so that the application can store it.
 *
 * @param number  of an event since the start
 * @param event   NVMF_EVENT_MAX bytes
 * @return false when it is not in the log any more
 */
MUST_USE bool nvmf_target_event(const struct nvmf_target *target,
                                uint64_t number, uint8_t *event, uint16_t *len);

/** Restore a persistent event of an earlier power cycle, oldest first.  What is
 * no event is ignored. */
void nvmf_target_restore_event(struct nvmf_target *target, uint64_t number,
                               const uint8_t *event, uint16_t len);

/**
 * How far each host has used up the number of persistent events that it may
 * cause, to be kept over a restart.
 *
 * @param record  NVMF_EVENT_LIMITS_LEN bytes
 */
enum { NVMF_EVENT_LIMITS_LEN = 544 };
void nvmf_target_event_limits(const struct nvmf_target *target,
                              uint8_t *record);

/** Restore them, before hosts connect. */
void nvmf_target_restore_event_limits(struct nvmf_target *target,
                                      const uint8_t *record);

#endif
