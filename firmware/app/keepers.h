/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts what keeps the latency monitor and the shares of hosts over restarts.
 */
#ifndef ESSD_APP_KEEPERS_H
#define ESSD_APP_KEEPERS_H

#include "nvmeof/target/target.h"

struct drive;
struct drive_config;

/** Read the records, and fill in what the target needs of them. */
void keepers_init(struct drive *drive, const struct drive_config *config,
                  struct nvmf_config *target);

/** Restore what the records say, before hosts connect and before the target
 * records its start. */
void keepers_start(struct drive *drive);

#endif
