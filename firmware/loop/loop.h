/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The firmware's main loop: it serves a table of components in turns.
 *
 * In each turn every component takes one step, in the order of the table.  A
 * step does a bounded amount of work and returns, so that host I/O and
 * background work cannot hold each other up.  After the steps come the flushes,
 * which pass what the steps have put into rings to the hardware.
 *
 * After a turn in which no component had work, the loop arms every component:
 * each asks its hardware for an interrupt at the next event, looks at its rings
 * once more, and refuses if work has come meanwhile.  If none refuses, the hart
 * may sleep until an interrupt or until the earliest deadline of the last turn.
 *
 *     loop_init(&loop);
 *     loop_add(&loop, &components[i], ctx);
 *     for (;;) {
 *         if (!loop_turn(&loop, hal_now_us()) && loop_arm(&loop, &deadline_us))
 * {
 *             ... wait for an interrupt or deadline_us ...
 *             loop_irqs(&loop, lines);
 *         }
 *     }
 *
 * Reasons: docs/decisions/0005-main-loop.md
 */
#ifndef ESSD_LOOP_LOOP_H
#define ESSD_LOOP_LOOP_H

#include "lib/util.h"

#define LOOP_NO_DEADLINE UINT64_MAX

enum { LOOP_COMPONENTS_MAX = 24 };

/*
 * What the loop tells a step about its turn, and what the step tells the loop.
 */
struct loop_step {
    uint64_t now_us;
    /* The step's next deadline; loop_call_at() lowers it. */
    uint64_t deadline_us;
    uint32_t budget; /* the budget of the component, from the table */
};

/*
 * One row of the table.  Every function but `step` may be NULL.  All of them
 * get the context that the component was added with.
 */
struct component {
    const char *name;

    /*
     * Units of work (completions, frames, characters) that one step may do.  It
     * is 0 for a component whose work is bounded by the size of its tables.
     */
    uint32_t budget;

    /**
     * Do the work that is due, within the budget, without waiting.  Each step
     * tells loop_call_at() when later work is due.
     *
     * @return whether any work was done; if so, another turn follows at once
     */
    bool (*step)(void *ctx, struct loop_step *step);

    /** Pass what this turn has put into rings to the hardware. */
    void (*flush)(void *ctx);

    /**
     * Ask for interrupts, because the hart is about to sleep.
     *
     * @param deadline_us  when the loop is going to wake up; may be lowered
     * @return false when work has come meanwhile: the hart must not sleep
     */
    bool (*arm)(void *ctx, uint64_t *deadline_us);

    /**
     * The hart has woken up.  `irqs` has one bit for each interrupt line that
     * is up, at least one.
     */
    void (*irqs)(void *ctx, uint32_t irqs);
};

/* One function of a component, with its arguments. */
struct loop_step_entry {
    bool (*step)(void *ctx, struct loop_step *step);
    void *ctx;
    uint32_t budget;
};

struct loop_flush_entry {
    void (*flush)(void *ctx);
    void *ctx;
};

struct loop_arm_entry {
    bool (*arm)(void *ctx, uint64_t *deadline_us);
    void *ctx;
};

struct loop_irqs_entry {
    void (*irqs)(void *ctx, uint32_t irqs);
    void *ctx;
};

/* Treat as opaque. */
struct loop {
    /* The earliest deadline that a step of the last turn named. */
    uint64_t deadline_us;
    /* The functions by kind, in the order of the table. */
    uint8_t step_count, flush_count, arm_count, irqs_count;
    struct loop_step_entry steps[LOOP_COMPONENTS_MAX];
    struct loop_flush_entry flushes[LOOP_COMPONENTS_MAX];
    struct loop_arm_entry arms[LOOP_COMPONENTS_MAX];
    struct loop_irqs_entry irqs[LOOP_COMPONENTS_MAX];
    /* Names of the steps' components, for a debugger. */
    const char *names[LOOP_COMPONENTS_MAX];
};

/** Make a loop without components. */
void loop_init(struct loop *loop);

/**
 * Append a component to the table.  Steps run in the order of the table, so
 * that a component whose results others need in the same turn comes before
 * them.
 *
 * @param component  is copied
 */
void loop_add(struct loop *loop, const struct component *component, void *ctx);

/** In a step: ask to be called again at `at_us` at the latest. */
static inline void loop_call_at(struct loop_step *step, uint64_t at_us)
{
    step->deadline_us = MIN(step->deadline_us, at_us);
}

/**
 * Take one turn: every component's step, then every flush.
 *
 * @return whether any component did work: then another turn must follow
 */
bool loop_turn(struct loop *loop, uint64_t now_us);

/**
 * Prepare to sleep, after a turn in which no work was done.
 *
 * @param deadline_us  set to when the next turn is due even without an
 *   interrupt
 * @return false when work has come meanwhile: take another turn
 */
MUST_USE bool loop_arm(struct loop *loop, uint64_t *deadline_us);

/** After a sleep: tell the components which interrupt lines are up. */
void loop_irqs(const struct loop *loop, uint32_t irqs);

#endif
