/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ATA over Ethernet in the drive: its memory, and its frames at the ports.
 */
#ifndef ESSD_APP_AOE_SERVICE_H
#define ESSD_APP_AOE_SERVICE_H

#include "nvmeof/aoe/aoe.h"

struct drive;
struct drive_config;
struct config;

/* Treat as opaque, except for `aoe`. */
struct aoe_service {
    struct aoe *aoe; /* in DRAM; NULL: it is off */
};

/** DRAM that it needs with this configuration; 0: it is off. */
uint64_t aoe_service_dram(const struct config *config);

/** Start it if the configuration exports a namespace.  Whatever it lacks, the
 * drive serves its other hosts. */
void aoe_service_start(struct drive *drive, const struct drive_config *config);

/** The drive is being shut down. */
void aoe_service_stop(struct drive *drive);

#endif
