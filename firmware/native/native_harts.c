/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/native_harts.h"

#include "firmware/hal/time.h"
#include "firmware/native/blocks.h"

/* Interrupts that the stages look for by themselves. */
#define STAGE_IRQS (BIT(SOC_IRQ_RNIC) | BIT(SOC_IRQ_NAND))

void native_harts_use(struct native_drive *drive, unsigned int count,
                      uint64_t handover_ns, uint64_t message_ns)
{
    ASSERT(count >= 1 && count <= STAGE_HARTS);
    ASSERT(count == 1 || drive->drive.stages != NULL);
    drive->harts = (struct native_harts){
        .count = count,
        .handover_ns = handover_ns,
        .message_ns = message_ns,
    };
    if (drive->drive.stages != NULL) {
        stages_use_harts(drive->drive.stages, count);
    }
    native_drive_wake(drive);
}

static uint64_t now_ns(const struct native_drive *drive)
{
    return drive->machine.node.world->now_ns;
}

/* The hart is busy for the time of what it has executed. */
static void charge_hart(struct native_drive *drive, unsigned int hart,
                        uint64_t extra_ns)
{
    struct native_harts *harts = &drive->harts;
    uint64_t ns = native_world_charge(drive->machine.node.world,
                                      blocks_take() + harts->given[hart]) +
                  extra_ns;

    harts->given[hart] = 0;

    harts->end_ns[hart] = now_ns(drive) + ns;
    harts->busy_ns[hart] += ns;
    harts->stage_ns[harts->is_turn && hart == 0
                        ? (unsigned int)STAGES
                        : drive->drive.stages->stage_of[hart]] += ns;
    harts->waits_ns += extra_ns;
    harts->is_running[hart] = true;
}

/* What this takes is part of what the hart does next. */
static void give_stage(struct native_drive *drive, unsigned int hart)
{
    (void)blocks_count(true);
    stages_give(drive->drive.stages, hart);
    (void)blocks_count(false);
    drive->harts.given[hart] += blocks_take();
}

/* @return whether a hart has ended what it did */
static bool end_runs(struct native_drive *drive)
{
    struct native_harts *harts = &drive->harts;
    bool any = false;

    for (unsigned int hart = 0; hart < harts->count; hart++) {
        if (!harts->is_running[hart] || harts->end_ns[hart] > now_ns(drive)) {
            continue;
        }
        any = true;
        harts->is_running[hart] = false;
        if (harts->is_turn && hart == 0) {
            harts->is_turn = false;
        } else {
            give_stage(drive, hart);
        }
    }
    return any;
}

/* Hart 0 takes a turn of the main loop. */
static void take_turn(struct native_drive *drive)
{
    struct native_harts *harts = &drive->harts;

    machine_turn_begins(&drive->machine);
    loop_irqs(&drive->loop, drive->machine.irqs);
    (void)loop_turn(&drive->loop, hal_now_us());
    stages_end_turn(drive->drive.stages);
    (void)blocks_count(false);
    drive->sleep.is_asleep = false;
    harts->is_turn = true;
    harts->turns++;
    harts->has_run = false;
    harts->turn_us = loop_deadline_us(&drive->loop);
    charge_hart(drive, 0, 0);
    machine_turn_ends(&drive->machine, harts->end_ns[0] - now_ns(drive));
}

static uint64_t sum_of_stages(const uint64_t counts[STAGES])
{
    uint64_t sum = 0;

    for (unsigned int i = 0; i < STAGES; i++) {
        sum += counts[i];
    }
    return sum;
}

/* @return whether the hart has found something to do */
static bool take_stage(struct native_drive *drive, unsigned int hart,
                       uint64_t now_us)
{
    struct native_harts *harts = &drive->harts;
    struct stages *stages = drive->drive.stages;
    uint64_t lines = sum_of_stages(stages->lines);
    uint64_t moves = sum_of_stages(stages->moves);
    bool any;

    (void)blocks_count(true);
    any = stages_take(stages, hart, now_us);
    (void)blocks_count(false);
    if (!any) {
        (void)blocks_take(); /* a hart that has nothing to do may look around */
        return false;
    }
    lines = sum_of_stages(stages->lines) - lines;
    moves = sum_of_stages(stages->moves) - moves;
    charge_hart(drive, hart,
                moves * harts->handover_ns + lines * harts->message_ns);
    if (!harts->has_run) {
        uint64_t steps_us = hal_now_us() + LOOP_STEPS_WAIT_US;

        harts->has_run = true;
        harts->turn_us = MIN(harts->turn_us, steps_us);
    }
    return true;
}

static bool any_is_running(const struct native_harts *harts)
{
    for (unsigned int hart = 0; hart < harts->count; hart++) {
        if (harts->is_running[hart]) {
            return true;
        }
    }
    return false;
}

/* Nobody has anything to do. @return whether that has changed meanwhile */
static bool fall_asleep(struct native_drive *drive)
{
    if (drive->sleep.is_asleep || any_is_running(&drive->harts)) {
        return false;
    }
    drive->sleep.is_asleep = loop_arm(&drive->loop, &drive->sleep.deadline_us);
    if (!drive->sleep.is_asleep) {
        stages_request_turn(drive->drive.stages);
        return true;
    }
    drive->harts.turn_us = drive->sleep.deadline_us;
    return false;
}

bool native_harts_step(struct native_drive *drive)
{
    struct native_harts *harts = &drive->harts;
    struct stages *stages = drive->drive.stages;
    bool any = end_runs(drive);
    uint64_t now_us = hal_now_us() - loop_left_out_us(&drive->loop);

    if (harts->is_turn) {
        return any;
    }
    if (hal_now_us() >= harts->turn_us ||
        (drive->machine.irqs & ~STAGE_IRQS) != 0) {
        stages_request_turn(stages);
    }
    for (unsigned int hart = 0; hart < harts->count; hart++) {
        if (!stages_want_turn(stages) && !harts->is_running[hart]) {
            any |= take_stage(drive, hart, now_us);
        }
    }
    if (stages_want_turn(stages)) {
        (void)blocks_count(true);
        if (stages_begin_turn(stages)) {
            take_turn(drive);
            any = true;
        }
        (void)blocks_count(false);
    }
    return any || fall_asleep(drive);
}

uint64_t native_harts_deadline_ns(const struct native_drive *drive)
{
    const struct native_harts *harts = &drive->harts;
    uint64_t first_us = MIN(harts->turn_us, drive->drive.stages->medium_us);
    uint64_t first =
        first_us > UINT64_MAX / 1000 ? NATIVE_NO_DEADLINE : first_us * 1000;
    bool any = any_is_running(harts);

    if (any && (harts->is_turn || stages_want_turn(drive->drive.stages))) {
        first = NATIVE_NO_DEADLINE; /* after what is running */
    }
    for (unsigned int hart = 0; hart < harts->count; hart++) {
        if (harts->is_running[hart]) {
            first = MIN(first, harts->end_ns[hart]);
        }
    }
    return first;
}
