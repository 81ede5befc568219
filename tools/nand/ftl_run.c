/* SPDX-License-Identifier: BSD-2-Clause */
/* The translation layer on the file of an array: ftl_run.h. */
#include "ftl_run.h"

#include <stdlib.h>
#include <string.h>

enum { UNIT_SECTORS = FTL_UNIT_DATA / 512 };

#define RULE_BROKEN "the translation layer has broken a rule of the flash"

/* ---- The course of time. */

static bool has_failed(const struct ftl_run *run)
{
    return run->failure != MEDIA_OK || run->has_stalled ||
           run->flash.storage_errno != 0 || run->flash.rule_broken;
}

/* Do what is due.  @return whether anything was done */
static bool do_work(struct ftl_run *run, uint64_t *deadline_us)
{
    bool any = ftl_step(run->ftl, run->now_us, deadline_us);

    return array_flash_run(&run->flash) || any;
}

/* Do what is due.  If nothing is due, let time pass until something is.  If
 * there is nothing to wait for either, in two turns one after the other, the
 * run has stalled; one such turn may have ended an operation. */
static void take_turn(struct ftl_run *run)
{
    uint64_t deadline_us = UINT64_MAX;

    if (do_work(run, &deadline_us)) {
        run->was_idle = false;
    } else if (deadline_us != UINT64_MAX && deadline_us > run->now_us) {
        run->now_us = deadline_us;
    } else if (run->was_idle) {
        run->has_stalled = true;
    } else {
        run->was_idle = true;
    }
}

static void note_end(struct ftl_run *run, enum media_status status)
{
    if (status != MEDIA_OK && run->failure == MEDIA_OK) {
        run->failure = status;
    }
}

static void end_write(struct media_owner *owner, enum media_status status)
{
    struct ftl_run_write *write =
        container_of(owner, struct ftl_run_write, owner);
    struct ftl_run *run = write->run;

    note_end(run, status);
    write->next_free = run->first_free;
    run->first_free = (uint32_t)(write - run->writes);
}

static void end_flush(struct media_owner *owner, enum media_status status)
{
    struct ftl_run *run = container_of(owner, struct ftl_run, flush);

    note_end(run, status);
    run->is_flushed = true;
}

/* ---- Start. */

static void *allocate_memory(size_t bytes)
{
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void set_geometry(struct ftl_run *run)
{
    const struct nand_geometry *geometry = &run->image->file.geometry;

    run->config.geometry = (struct ftl_geometry){
        .dies = (uint16_t)nand_geometry_dies(geometry),
        .planes = geometry->planes,
        .blocks = geometry->blocks,
        .wordlines = geometry->wordlines,
        .pages = geometry->pages,
        .units = geometry->units,
    };
}

/* @return why this is not possible, or NULL */
static const char *choose_config(struct ftl_run *run,
                                 const struct nand_sizes *sizes)
{
    struct ftl_config *config = &run->config;
    uint8_t *bad;

    set_geometry(run);
    bad = calloc(config->geometry.blocks, config->geometry.dies);
    if (bad == NULL) {
        return "no memory";
    }
    config->bad_planes = bad;
    nand_sizes_begin(config, sizes);
    config->is_capacity_estimated =
        array_flash_read_marks(&run->flash, bad) != 0;
    if (!nand_sizes_choose(config, sizes)) {
        return "it has no space for data";
    }
    if (!config->is_capacity_estimated && !ftl_checkpoint_fits(config)) {
        return "its map does not fit into one superblock, so no drive can use "
               "it";
    }
    config->scrub_us = 0; /* Hardly any time passes. */
    config->memory = allocate_memory(ftl_bytes(config));
    config->keep = allocate_memory(ftl_keep_bytes(config));
    return config->memory != NULL && config->keep != NULL ? NULL : "no memory";
}

/* Why the translation layer has failed to mount the array. */
static const char *mount_failure(const struct ftl_run *run)
{
    if (run->flash.storage_errno != 0) {
        return strerror(run->flash.storage_errno);
    }
    if (run->flash.rule_broken) {
        return RULE_BROKEN;
    }
    switch (ftl_failure(run->ftl)) {
    case FTL_FAILURE_CAPACITY:
        return "it was written with another capacity than this drive's; use "
               "the drive's own array";
    case FTL_FAILURE_OLD_LAYOUT:
        return "an older firmware has written it; create a new array";
    default:
        return "it cannot be read, or has no space in which to repair what a "
               "power cut has torn; use a copy of the file, or a new array";
    }
}

/* @return why this is not possible, or NULL */
static const char *mount_array(struct ftl_run *run)
{
    run->ftl = ftl_start(&run->config);
    if (run->ftl == NULL) {
        return "the firmware does not support such an array";
    }
    run->flash.ftl = run->ftl;
    while (ftl_state(run->ftl) == FTL_MOUNTING && !has_failed(run)) {
        take_turn(run);
    }
    ftl_set_volatile(run->ftl, true);
    return ftl_state(run->ftl) == FTL_READY && !has_failed(run)
               ? NULL
               : mount_failure(run);
}

bool ftl_run_start(struct ftl_run *run, const struct image *image,
                   const struct nand_sizes *sizes)
{
    const char *why;

    *run = (struct ftl_run){.image = image};
    for (uint32_t i = 0; i < FTL_RUN_BUFFERS; i++) {
        run->writes[i].owner.done = end_write;
        run->writes[i].run = run;
        run->writes[i].next_free = i + 1;
        run->writes[i].piece = (struct nvmf_piece){.ptr = run->writes[i].data,
                                                   .len_bytes = FTL_UNIT_DATA};
    }
    if (!array_flash_open(&run->flash, image)) {
        return false;
    }
    run->config.flash = (struct ftl_flash){.ctx = &run->flash,
                                           .submit = array_flash_submit,
                                           .moves = &run->flash.moves,
                                           .run_moves = array_flash_move};
    run->flush.done = end_flush;
    why = choose_config(run, sizes);
    if (why == NULL) {
        why = mount_array(run);
    }
    if (why != NULL) {
        image_complain(image->path, "the translation layer cannot mount it: %s",
                       why);
        ftl_run_end(run);
    }
    return why == NULL;
}

void ftl_run_end(struct ftl_run *run)
{
    free((void *)(uintptr_t)run->config.bad_planes);
    free(run->config.memory);
    free(run->config.keep);
    array_flash_close(&run->flash);
}

/* ---- Operations. */

struct ftl_run_write *ftl_run_take(struct ftl_run *run)
{
    struct ftl_run_write *write;

    while (run->first_free == FTL_RUN_BUFFERS && !has_failed(run)) {
        take_turn(run);
    }
    if (has_failed(run)) {
        return NULL;
    }
    write = &run->writes[run->first_free];
    run->first_free = write->next_free;
    return write;
}

static bool submit_io(struct ftl_run *run, const struct media_io *io)
{
    while (!ftl_submit(run->ftl, io)) {
        take_turn(run);
        if (has_failed(run)) {
            return false;
        }
    }
    return true;
}

bool ftl_run_submit(struct ftl_run *run, struct ftl_run_write *write,
                    uint32_t unit)
{
    const struct media_io io = {
        .op = MEDIA_WRITE,
        .first_lba = (uint64_t)unit * UNIT_SECTORS,
        .count_blocks = UNIT_SECTORS,
        .piece_count = 1,
        .pieces = &write->piece,
        .owner = &write->owner,
    };

    return submit_io(run, &io);
}

/* Let time pass until nothing is due any more.  Meanwhile garbage collection
 * frees superblocks, so that there is one for a checkpoint. */
static void settle_medium(struct ftl_run *run)
{
    if (has_failed(run)) {
        return;
    }
    while (!has_failed(run)) {
        take_turn(run);
    }
    run->has_stalled = false;
    run->was_idle = false;
}

bool ftl_run_stop(struct ftl_run *run)
{
    const struct media_io flush = {.op = MEDIA_FLUSH, .owner = &run->flush};

    if (!submit_io(run, &flush)) {
        return false;
    }
    while (!run->is_flushed && !has_failed(run)) {
        take_turn(run);
    }
    settle_medium(run);
    ftl_complete_stripes(run->ftl);
    settle_medium(run);
    if (has_failed(run)) {
        return false;
    }
    ftl_stop(run->ftl);
    while (!ftl_is_stopped(run->ftl) && !has_failed(run)) {
        take_turn(run);
    }
    return !has_failed(run) && array_flash_sync(&run->flash);
}

static const char *failure_text(const struct ftl_run *run)
{
    if (run->flash.storage_errno != 0) {
        return strerror(run->flash.storage_errno);
    }
    if (run->flash.rule_broken) {
        return RULE_BROKEN;
    }
    switch (run->failure) {
    case MEDIA_READ_ONLY:
        return "so many blocks have failed that the drive is read-only from "
               "now on";
    case MEDIA_WRITE_ERROR:
        return "the medium is full";
    default:
        return "the translation layer stands still";
    }
}

int ftl_run_complain(const struct ftl_run *run)
{
    return image_complain(run->image->path,
                          "not all could be written: %s; the drive keeps what "
                          "was written until then, as after a power cut",
                          failure_text(run));
}
