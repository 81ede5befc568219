/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects the memory patrol with the medium, the target and the buffers. */
#ifndef ESSD_APP_DRIVE_MEMORY_H
#define ESSD_APP_DRIVE_MEMORY_H

#include "firmware/app/drive.h"

/** Start the patrol. @param buffers  those of the pool of data buffers */
void drive_memory_start(struct drive *drive, const struct drive_config *config,
                        const void *buffers);

/** For nand_medium_config.find_lost_words. */
bool drive_memory_look(void *drive);

/** For nvmf_config.is_intact. */
bool drive_memory_is_intact(void *drive, const void *memory, size_t len_bytes);

/** The word of DRAM at which the firmware has stopped before, or 0. */
uint64_t drive_memory_trap_word(const struct drive_config *config);

/** DRAM that is allocated after that of the translation layer, with this
 * configuration. */
uint32_t drive_memory_of_services(const struct config *config);

#endif
