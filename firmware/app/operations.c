/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/operations.h"

#include "firmware/app/drive.h"

enum { BUFFER_ALIGN = 4096 };

static uint64_t power_on_hours(void *ctx)
{
    const struct drive *drive = ctx;

    return usage_keeper_power_on_hours(&drive->keeper);
}

static uint8_t critical_warning(void *ctx)
{
    const struct drive *drive = ctx;

    return nvmf_target_health(drive->target)->critical_warning;
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

struct nvmf_operations operations_seam(struct drive *drive)
{
    return (struct nvmf_operations){
        .ctx = drive,
        .start_self_test = seam_start_self_test,
        .end_self_test = seam_end_self_test,
        .self_test_now = seam_self_test_now,
        .self_test_result = seam_self_test_result,
        .extended_minutes = seam_extended_minutes,
    };
}

/* ---- The medium and the loop. */

void operations_media_done(struct drive *drive, uint64_t cookie,
                           enum media_status status)
{
    ASSERT(cookie == OPERATIONS_COOKIE_SELF_TEST);
    self_test_media_done(&drive->self_test, status);
}

enum loop_work operations_step(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;

    loop_call_at(step, self_test_step(&drive->self_test, step->now_us));
    return LOOP_IDLE;
}

bool operations_start(struct drive *drive, const struct drive_config *config)
{
    struct media_info info;
    struct self_test_config test = {
        .log = config->log,
        .volume = drive->volume,
        .buffer =
            dram_alloc(config->dram, SELF_TEST_BUFFER_BYTES, BUFFER_ALIGN),
        .cookie = (void *)(uintptr_t)OPERATIONS_COOKIE_SELF_TEST,
        .store = config->operations.self_test,
        .submit = media_seam_submit,
        .submit_ctx = &drive->media,
        .power_on_hours = power_on_hours,
        .critical_warning = critical_warning,
        .ctx = drive,
    };

    if (test.buffer == NULL) {
        return false;
    }
    media_info_get(&drive->media, &info);
    test.medium_blocks = info.size_blocks << info.block_shift >> 9;
    self_test_init(&drive->self_test, &test);
    return true;
}
