/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/loop/loop.h"

void loop_init(struct loop *loop)
{
    *loop = (struct loop){.deadline_us = LOOP_NO_DEADLINE};
}

void loop_add(struct loop *loop, const struct component *component, void *ctx)
{
    ASSERT(component->step != NULL);
    ASSERT(loop->step_count < LOOP_COMPONENTS_MAX);
    loop->names[loop->step_count] = component->name;
    loop->steps[loop->step_count++] =
        (struct loop_step_entry){component->step, ctx, component->budget};
    if (component->flush != NULL) {
        loop->flushes[loop->flush_count++] =
            (struct loop_flush_entry){component->flush, ctx};
    }
    if (component->arm != NULL) {
        loop->arms[loop->arm_count++] =
            (struct loop_arm_entry){component->arm, ctx};
    }
    if (component->irqs != NULL) {
        loop->irqs[loop->irqs_count++] =
            (struct loop_irqs_entry){component->irqs, ctx};
    }
}

bool loop_turn(struct loop *loop, uint64_t now_us)
{
    const struct loop_step_entry *steps_end = loop->steps + loop->step_count;
    const struct loop_flush_entry *flushes_end =
        loop->flushes + loop->flush_count;
    struct loop_step step = {now_us, LOOP_NO_DEADLINE, 0};
    bool is_busy = false;

    for (const struct loop_step_entry *entry = loop->steps; entry != steps_end;
         entry++) {
        step.budget = entry->budget;
        is_busy |= entry->step(entry->ctx, &step);
    }
    for (const struct loop_flush_entry *entry = loop->flushes;
         entry != flushes_end; entry++) {
        entry->flush(entry->ctx);
    }
    loop->deadline_us = step.deadline_us;
    return is_busy;
}

bool loop_arm(struct loop *loop, uint64_t *deadline_us)
{
    *deadline_us = loop->deadline_us;
    for (unsigned int i = 0; i < loop->arm_count; i++) {
        if (!loop->arms[i].arm(loop->arms[i].ctx, deadline_us)) {
            return false;
        }
    }
    return true;
}

void loop_irqs(const struct loop *loop, uint32_t irqs)
{
    if (irqs == 0) {
        return;
    }
    for (unsigned int i = 0; i < loop->irqs_count; i++) {
        loop->irqs[i].irqs(loop->irqs[i].ctx, irqs);
    }
}
