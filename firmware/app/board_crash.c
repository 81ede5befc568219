/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/board_crash.h"

#include <string.h>

#include "firmware/app/version.h"
#include "firmware/drivers/ecc.h"
#include "firmware/hal/mmio.h"
#include "firmware/hal/time.h"
#include "firmware/store/area.h"
#include "hw-model/regs/soc.h"

void board_crash_init(struct board_crash *crash, void *region,
                      const uint8_t *build_id, uint32_t harts,
                      uintptr_t stack_bottom, uintptr_t stack_top)
{
    const struct crash_plan_config plan = {
        .build_id = build_id,
        .version = ESSD_FW_VERSION,
        .harts = harts,
        .stack_bottom = stack_bottom,
        .stack_top = stack_top,
    };

    struct ecc ecc;

    /* A lost word in the dump of the firmware that ran before damages the dump,
     * but must not stop this start. */
    if (ecc_init(&ecc, SOC_ECC_BASE)) {
        ecc_clear_memory(&ecc, region, CRASH_REGION_BYTES);
    }
    crash->region = region;
    crash_plan(region, &plan);
}

void board_crash_add_log(struct board_crash *crash, const struct log *log)
{
    const struct crash_ring ring = {
        .name = "log",
        .base = (const uint8_t *)log->ring,
        .size_bytes = LOG_RING_BYTES,
        .unit_bytes = 1,
        .head = &log->head,
        .max_bytes = LOG_RING_BYTES,
    };

    crash_plan_ring(crash->region, &ring);
}

void board_crash_keep(struct board_crash *crash, const struct flash *flash,
                      struct log *log)
{
    struct crash_summary summary;

    crash->flash = flash;
    crash->sequence = area_newest(flash, &crash_area);
    crash->pending = crash_pending(crash->region, &crash->pending_len);
    if (crash->pending == NULL) {
        crash->pending_len = 0;
        return;
    }
    if (!area_write(flash, &crash_area, &crash->sequence, crash->pending,
                    crash->pending_len)) {
        log_line(log, "crash: flash refuses the dump of the last crash; fetch "
                      "it before the next restart (nvme telemetry-log)");
        return;
    }
    crash_forget(crash->region);
    if (crash_summarise(&summary, crash->pending, crash->pending_len)) {
        log_line(log, "crash: dump %u (%s) is in flash; essd dump shows it",
                 crash->sequence, crash_cause_name(summary.cause));
    }
}

static bool read_dump(void *ctx, uint32_t below, uint8_t *buf, size_t *len,
                      uint32_t *number)
{
    const struct board_crash *crash = ctx;

    return area_read_older(crash->flash, &crash_area, below, buf,
                           CRASH_DUMP_MAX, len, number);
}

/* Functions of their own, so that a backtrace shows more than one. */
__attribute__((noinline)) static void provoke_assertion(void)
{
    ASSERT(hal_now_us() == UINT64_MAX);
}

__attribute__((noinline)) static void provoke_trap(void)
{
    mmio_write32(0, 0);
}

__attribute__((noinline)) static void provoke_hang(void)
{
    /* The compiler does not see that this never ends, so it saves ra. */
    while (hal_now_us() != 0) {
        hal_delay_us(1);
    }
}

static void provoke_crash(enum crash_cause cause)
{
    /* QEMU flips bits of memory instead: docs/hardware/ecc.md. */
    static void (*const provoke[])(void) = {
        [CRASH_ASSERTION] = provoke_assertion,
        [CRASH_TRAP] = provoke_trap,
        [CRASH_WATCHDOG] = provoke_hang,
        [CRASH_MEMORY] = NULL,
    };

    if (provoke[cause] != NULL) {
        provoke[cause]();
    }
}

struct crash_store board_crash_store(struct board_crash *crash)
{
    return (struct crash_store){
        .read = crash->flash != NULL ? read_dump : NULL,
        .ctx = crash,
        .provoke = provoke_crash,
        .latest = crash->pending,
        .latest_len = crash->pending_len,
    };
}
