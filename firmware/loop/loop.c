/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/loop/loop.h"

enum { FULL_TURN_NOW = 0 }; /* a time that has passed already */

void loop_init(struct loop *loop)
{
    *loop = (struct loop){
        .full_us = FULL_TURN_NOW,
        .deadline_us = LOOP_NO_DEADLINE,
        .due_us = LOOP_NO_DEADLINE, /* the first turn is never late */
    };
}

void loop_add(struct loop *loop, const struct component *component, void *ctx)
{
    ASSERT(component->poll != NULL || component->step != NULL);
    ASSERT(loop->component_count < LOOP_COMPONENTS_MAX);
    loop->names[loop->component_count++] = component->name;
    if (component->step != NULL) {
        loop->all[loop->all_count++] =
            (struct loop_step_entry){component->step, ctx, component->budget};
    }
    if (component->poll != NULL) {
        const struct loop_step_entry poll = {component->poll, ctx,
                                             component->budget};

        loop->all[loop->all_count++] = poll;
        loop->polls[loop->poll_count++] = poll;
    }
    if (component->flush != NULL) {
        loop->flushes[loop->flush_count++] =
            (struct loop_flush_entry){component->flush, ctx};
    }
    if (component->arm != NULL) {
        loop->arms[loop->arm_count++] =
            (struct loop_arm_entry){component->arm, ctx};
    }
    if (component->irqs != NULL) {
        loop->irqs[loop->irqs_count++] = (struct loop_irqs_entry){
            component->irqs, ctx,
            component->irq_lines != 0 ? component->irq_lines : UINT32_MAX};
    }
}

/*
 * Call the functions of a list.
 * @return the greatest of their results
 */
static enum loop_work run_entries(const struct loop_step_entry *entries,
                                  unsigned int count, struct loop_step *step)
{
    const struct loop_step_entry *end = entries + count;
    unsigned int work = LOOP_IDLE;

    for (const struct loop_step_entry *entry = entries; entry != end; entry++) {
        step->budget = entry->budget;
        work |= (unsigned int)entry->run(entry->ctx, step);
    }
    return (enum loop_work)work;
}

static void run_flushes(const struct loop *loop)
{
    const struct loop_flush_entry *end = loop->flushes + loop->flush_count;

    for (const struct loop_flush_entry *entry = loop->flushes; entry != end;
         entry++) {
        entry->flush(entry->ctx);
    }
}

/* @return the time of the turn that begins; leaves out a delay before it */
static uint64_t turn_begins_us(struct loop *loop, uint64_t now_us)
{
    uint64_t begins_us = now_us - loop->left_out_us;

    if (begins_us > loop->due_us && begins_us - loop->due_us > LOOP_LATE_US) {
        begins_us = loop->due_us + LOOP_LATE_US;
        loop->left_out_us = now_us - begins_us;
        loop_request_steps(loop);
    }
    loop->due_us = begins_us;
    return begins_us;
}

uint64_t loop_left_out_us(const struct loop *loop)
{
    return loop->left_out_us;
}

bool loop_turn(struct loop *loop, uint64_t hal_us)
{
    uint64_t now_us = turn_begins_us(loop, hal_us);
    struct loop_step step = {now_us, LOOP_NO_DEADLINE, 0, loop->left_out_us};
    enum loop_work work;

    if (now_us >= loop->full_us) {
        work = run_entries(loop->all, loop->all_count, &step);
        loop->full_us = step.deadline_us;
    } else {
        work = run_entries(loop->polls, loop->poll_count, &step);
    }
    run_flushes(loop);
    if (work == LOOP_EVENT) {
        loop->full_us = FULL_TURN_NOW;
    } else if (work == LOOP_IO) {
        loop->full_us = MIN(loop->full_us, now_us + LOOP_STEPS_WAIT_US);
    }
    loop->deadline_us = MIN(loop->full_us, step.deadline_us);
    return work != LOOP_IDLE;
}

void loop_request_steps(struct loop *loop)
{
    loop->full_us = FULL_TURN_NOW;
}

uint64_t loop_deadline_us(const struct loop *loop)
{
    uint64_t deadline_us = MIN(loop->deadline_us, loop->full_us);

    return deadline_us == LOOP_NO_DEADLINE ? deadline_us
                                           : deadline_us + loop->left_out_us;
}

bool loop_arm(struct loop *loop, uint64_t *deadline_us)
{
    *deadline_us = loop->deadline_us;
    for (unsigned int i = 0; i < loop->arm_count; i++) {
        if (!loop->arms[i].arm(loop->arms[i].ctx, deadline_us)) {
            loop_request_steps(loop);
            return false;
        }
    }
    /* A deadline that has passed already is due now. */
    loop->due_us = MAX(loop->due_us, *deadline_us);
    if (*deadline_us != LOOP_NO_DEADLINE) {
        *deadline_us += loop->left_out_us;
    }
    return true;
}

void loop_irqs(struct loop *loop, uint32_t irqs)
{
    const struct loop_irqs_entry *end = loop->irqs + loop->irqs_count;

    if (irqs == 0) {
        return;
    }
    for (const struct loop_irqs_entry *entry = loop->irqs; entry != end;
         entry++) {
        if ((entry->lines & irqs) != 0 && entry->irqs(entry->ctx, irqs)) {
            loop_request_steps(loop);
        }
    }
}
