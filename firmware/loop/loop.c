/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/loop/loop.h"

static void list_append(struct loop_list *list,
                        const struct component *component, void *ctx)
{
    ASSERT(list->count < LOOP_COMPONENTS_MAX);
    list->entries[list->count++] = (struct loop_entry){component, ctx};
}

void loop_init(struct loop *loop)
{
    *loop = (struct loop){.deadline_us = LOOP_NO_DEADLINE};
}

void loop_add(struct loop *loop, const struct component *component, void *ctx)
{
    ASSERT(component->step != NULL);
    list_append(&loop->steps, component, ctx);
    if (component->flush != NULL) {
        list_append(&loop->flushes, component, ctx);
    }
    if (component->arm != NULL) {
        list_append(&loop->arms, component, ctx);
    }
    if (component->irqs != NULL) {
        list_append(&loop->irqs, component, ctx);
    }
}

bool loop_turn(struct loop *loop, uint64_t now_us)
{
    struct loop_step step = {now_us, LOOP_NO_DEADLINE, 0};
    bool is_busy = false;

    loop->now_us = now_us;
    for (unsigned int i = 0; i < loop->steps.count; i++) {
        const struct loop_entry *entry = &loop->steps.entries[i];

        step.budget = entry->component->budget;
        is_busy |= entry->component->step(entry->ctx, &step);
    }
    for (unsigned int i = 0; i < loop->flushes.count; i++) {
        const struct loop_entry *entry = &loop->flushes.entries[i];

        entry->component->flush(entry->ctx);
    }
    loop->deadline_us = step.deadline_us;
    return is_busy;
}

bool loop_arm(struct loop *loop, uint64_t *deadline_us)
{
    *deadline_us = loop->deadline_us;
    for (unsigned int i = 0; i < loop->arms.count; i++) {
        const struct loop_entry *entry = &loop->arms.entries[i];

        if (!entry->component->arm(entry->ctx, deadline_us)) {
            return false;
        }
    }
    return true;
}

void loop_irqs(const struct loop *loop, uint32_t irqs)
{
    for (unsigned int i = 0; i < loop->irqs.count; i++) {
        const struct loop_entry *entry = &loop->irqs.entries[i];

        entry->component->irqs(entry->ctx, irqs);
    }
}
