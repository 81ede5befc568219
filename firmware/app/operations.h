/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects the long-running operations (firmware/operations) with the target,
 * the medium and the main loop.
 */
#ifndef ESSD_APP_OPERATIONS_H
#define ESSD_APP_OPERATIONS_H

#include "firmware/loop/loop.h"
#include "firmware/operations/sanitize.h"
#include "firmware/operations/self_test.h"
#include "nvmeof/target/operations.h"

struct drive;
struct drive_config;

/** The records in flash.  Used during drive_init() only. */
struct operations_stores {
    struct operation_store self_test;
    struct operation_store sanitize;
    struct operation_store latency; /* of the latency monitor */
    struct operation_store shares;  /* of hosts */
};

/**
 * Start what is in flash.
 *
 * @return false when there is too little DRAM
 */
MUST_USE bool operations_start(struct drive *drive,
                               const struct drive_config *config);

/** The target's seam. */
struct nvmf_operations operations_seam(struct drive *drive);

/** A host is about to write, for the first time after a sanitize operation. */
void operations_note_write(void *drive);

/** The step of the main loop's component. */
enum loop_work operations_step(void *ctx, struct loop_step *step);

#endif
