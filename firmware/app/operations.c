/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/operations.h"

#include "firmware/app/drive.h"
#include "firmware/app/drive_io.h"

enum { BUFFER_ALIGN = 4096 };

static uint8_t critical_warning(void *ctx)
{
    const struct drive *drive = ctx;

    return nvmf_target_health(drive->target)->critical_warning;
}

static void found_unreadable(void *ctx, uint32_t nsid, uint64_t lba)
{
    const struct drive *drive = ctx;

    nvmf_lba_unreadable(drive->target, nsid, lba);
}

/* ---- The seam. */

static void seam_start_self_test(void *ctx, const struct nvmf_self_test *test)
{
    self_test_start(&((struct drive *)ctx)->self_test, test);
}

static void seam_end_self_test(void *ctx, enum nvmf_self_test_end end)
{
    self_test_stop(&((struct drive *)ctx)->self_test, end);
}

static uint8_t seam_self_test_now(void *ctx, struct nvmf_self_test *test)
{
    return self_test_now(&((struct drive *)ctx)->self_test, test);
}

static bool seam_self_test_result(void *ctx, unsigned int i,
                                  struct nvmf_self_test_result *result)
{
    return self_test_result(&((struct drive *)ctx)->self_test, i, result);
}

static uint16_t seam_extended_minutes(void *ctx)
{
    return self_test_extended_minutes(&((struct drive *)ctx)->self_test);
}

static enum nvmf_volume_result seam_start_sanitize(
    void *ctx, const struct nvmf_sanitize *job)
{
    return sanitize_start(&((struct drive *)ctx)->sanitize, job);
}

static bool seam_exit_failure(void *ctx)
{
    return sanitize_exit_failure(&((struct drive *)ctx)->sanitize);
}

static void seam_sanitize_now(void *ctx, struct nvmf_sanitize_now *now)
{
    sanitize_read(&((struct drive *)ctx)->sanitize, now);
}

struct nvmf_operations operations_seam(struct drive *drive)
{
    return (struct nvmf_operations){
        .ctx = drive,
        .start_self_test = seam_start_self_test,
        .end_self_test = seam_end_self_test,
        .self_test_now = seam_self_test_now,
        .self_test_result = seam_self_test_result,
        .extended_minutes = seam_extended_minutes,
        .start_sanitize = seam_start_sanitize,
        .exit_sanitize_failure = seam_exit_failure,
        .sanitize_now = seam_sanitize_now,
    };
}

/* ---- The medium and the loop. */

static void end_sanitize(void *ctx, bool is_ok)
{
    struct drive *drive = ctx;

    if (is_ok) {
        volume_medium_erased(drive->volume);
        drive_forget_nand_failure(drive);
    }
    nvmf_sanitize_ended(drive->target);
}

void operations_note_write(void *ctx)
{
    sanitize_note_write(&((struct drive *)ctx)->sanitize);
}

enum loop_work operations_step(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;

    loop_call_at(step, self_test_step(&drive->self_test, step->now_us));
    loop_call_at(step, sanitize_step(&drive->sanitize, step->now_us));
    return LOOP_IDLE;
}

/* What erases all of the flash, if the medium is one. */
static void fill_wipe(const struct drive *drive, struct sanitize_config *config)
{
    if (drive->nand.ftl != NULL) {
        config->wipe = drive->stages == NULL ? nand_medium_wipe : stages_wipe;
    }
}

/* Whether a namespace extends beyond the end of the medium. */
static bool is_medium_short(const struct drive *drive)
{
    const struct volume_table *table = volume_now(drive->volume);
    bool is_short = false;

    for (uint32_t i = 0; i < VOLUME_NAMESPACES; i++) {
        is_short |= table->ns[i].creation != 0 && table->ns[i].is_cut;
    }
    return is_short;
}

static bool start_sanitize(struct drive *drive,
                           const struct drive_config *config)
{
    struct sanitize_config sanitize = {
        .log = config->log,
        .medium_blocks = drive->medium.size_blocks,
        .is_short = is_medium_short(drive),
        .buffer = dram_alloc(config->dram, SANITIZE_BUFFER_BYTES, BUFFER_ALIGN),
        .store = config->operations.sanitize,
        .submit = drive->medium.submit,
        .submit_ctx = drive->medium.ctx,
        .power_on_hours = drive_power_on_hours,
        .ended = end_sanitize,
        .ctx = drive,
    };

    if (sanitize.buffer == NULL) {
        return false;
    }
    fill_wipe(drive, &sanitize);
    sanitize_init(&drive->sanitize, &sanitize);
    if (sanitize_is_erased(&drive->sanitize)) {
        volume_watch_writes(drive->volume);
    }
    return true;
}

bool operations_start(struct drive *drive, const struct drive_config *config)
{
    struct self_test_config test = {
        .log = config->log,
        .medium_blocks = drive->medium.size_blocks,
        .volume = drive->volume,
        .buffer =
            dram_alloc(config->dram, SELF_TEST_BUFFER_BYTES, BUFFER_ALIGN),
        .store = config->operations.self_test,
        .submit = drive->medium.submit,
        .submit_ctx = drive->medium.ctx,
        .power_on_hours = drive_power_on_hours,
        .critical_warning = critical_warning,
        .found_unreadable = found_unreadable,
        .ctx = drive,
    };

    if (test.buffer == NULL) {
        return false;
    }
    self_test_init(&drive->self_test, &test);
    return start_sanitize(drive, config);
}
