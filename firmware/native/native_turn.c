/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/native_turn.h"

#include "firmware/hal/time.h"
#include "firmware/native/blocks.h"
#include "firmware/native/native_harts.h"

bool native_turn_wakes(struct native_sleep *sleep,
                       const struct machine *machine)
{
    if (sleep->is_asleep && machine->irqs == 0 &&
        hal_now_us() < sleep->deadline_us) {
        return false;
    }
    sleep->is_asleep = false;
    return true;
}

uint64_t native_turn_sleep_ends(const struct native_sleep *sleep)
{
    if (!sleep->is_asleep || sleep->deadline_us > UINT64_MAX / 1000) {
        return NATIVE_NO_DEADLINE;
    }
    return sleep->deadline_us * 1000;
}

bool native_turn_or_sleep(struct loop *loop, struct native_sleep *sleep,
                          const struct machine *machine)
{
    bool is_busy;

    loop_irqs(loop, machine->irqs);
    is_busy = loop_turn(loop, hal_now_us());
    if (!is_busy) {
        sleep->is_asleep = loop_arm(loop, &sleep->deadline_us);
    }
    return is_busy || !sleep->is_asleep;
}

/* A function of its own, because tools/count_instructions.py counts it. */
static __attribute__((noinline)) bool drive_turn(struct native_drive *drive)
{
    bool is_busy;

    drive->turn_ns = 0;
    if (!native_turn_wakes(&drive->sleep, &drive->machine)) {
        return false;
    }
    (void)blocks_count(true);
    is_busy =
        native_turn_or_sleep(&drive->loop, &drive->sleep, &drive->machine);
    (void)blocks_count(false);
    drive->turn_ns =
        native_world_charge(drive->machine.node.world, blocks_take());
    return is_busy;
}

static bool drive_step(void *ctx)
{
    struct native_drive *drive = ctx;
    bool is_busy;

    if (drive->harts.count > 1) {
        return native_harts_step(drive);
    }
    if (machine_is_turning(&drive->machine)) {
        return false;
    }
    machine_turn_begins(&drive->machine);
    is_busy = drive_turn(drive);
    machine_turn_ends(&drive->machine, drive->turn_ns);
    return is_busy;
}

static uint64_t drive_deadline_ns(void *ctx)
{
    const struct native_drive *drive = ctx;

    return drive->harts.count > 1 ? native_harts_deadline_ns(drive)
                                  : native_turn_sleep_ends(&drive->sleep);
}

struct machine_software native_turn_of_drive(struct native_drive *drive)
{
    return (struct machine_software){drive, drive_step, drive_deadline_ns};
}
