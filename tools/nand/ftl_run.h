/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translation layer of the firmware, on the file of an array, without a
 * drive around it.
 */
#ifndef ESSD_TOOLS_NAND_FTL_RUN_H
#define ESSD_TOOLS_NAND_FTL_RUN_H

#include "array_flash.h"
#include "firmware/medium/nand_sizes.h"

enum { FTL_RUN_BUFFERS = 64 /* writes in progress, at most */ };

/* A write in progress. */
struct ftl_run;

struct ftl_run_write {
    struct media_owner owner;
    struct ftl_run *run;
    struct nvmf_piece piece;
    uint32_t next_free;
    uint8_t data[FTL_UNIT_DATA];
};

/* Treat as opaque. */
struct ftl_run {
    struct media_owner flush;
    const struct image *image;
    struct array_flash flash;
    struct ftl_config config;
    struct ftl *ftl;
    uint64_t now_us;           /* passes only while there is nothing to do */
    enum media_status failure; /* of the first write that has failed */
    bool was_idle;             /* the last turn has found nothing to do */
    bool has_stalled;
    bool is_flushed;
    uint32_t first_free; /* FTL_RUN_BUFFERS: all are in use */
    struct ftl_run_write writes[FTL_RUN_BUFFERS];
};

/**
 * Open the array, and mount it.
 *
 * @param sizes  as the drive has them
 * @return false when that is not possible; a line has been printed
 */
MUST_USE bool ftl_run_start(struct ftl_run *run, const struct image *image,
                            const struct nand_sizes *sizes);

/** Free everything.  If ftl_run_stop() was not called before, the file is as
 * after a power cut. */
void ftl_run_end(struct ftl_run *run);

/**
 * Take a buffer for the contents of a unit.  It is valid until
 * ftl_run_submit().
 * @return NULL when the medium has failed
 */
struct ftl_run_write *ftl_run_take(struct ftl_run *run);

/**
 * Write a unit.
 * @return false when the medium has failed
 */
MUST_USE bool ftl_run_submit(struct ftl_run *run, struct ftl_run_write *write,
                             uint32_t unit);

/**
 * Write everything to the file, as a drive does before it is switched off.
 * @return false when that is not possible
 */
MUST_USE bool ftl_run_stop(struct ftl_run *run);

/** Print why the medium has failed. @return STATUS_FAILED */
int ftl_run_complain(const struct ftl_run *run);

#endif
