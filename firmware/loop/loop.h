/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The firmware's main loop: it serves a table of components in turns.
 *
 * In each turn every component takes one step, in the order of the table.  A
 * step does a bounded amount of work and returns, so that no component can keep
 * the others from their turn: background work goes on beside host I/O, and host
 * I/O beside background work.  After the steps come the flushes, which hand to
 * the hardware what the steps have put into its rings.
 *
 * After a turn in which no component had work, the loop arms every component:
 * each asks its hardware for an interrupt at the next event, looks at its rings
 * once more, and objects if something has come meanwhile.  If none objects, the
 * hart may sleep until an interrupt or the earliest deadline of the last turn.
 *
 *   loop_init(&loop);
 *   loop_add(&loop, &components[i], ctx);
 *   for (;;) {
 *       if (!loop_turn(&loop, hal_now_us()) && loop_arm(&loop, &deadline_us)) {
 *           ... wait for an interrupt or deadline_us ...
 *           loop_irqs(&loop, lines);
 *       }
 *   }
 *
 * Why: docs/decisions/0005-main-loop.md
 */
#ifndef ESSD_LOOP_LOOP_H
#define ESSD_LOOP_LOOP_H

#include "lib/util.h"

#define LOOP_NO_DEADLINE UINT64_MAX

enum { LOOP_COMPONENTS_MAX = 24 };

/* What a step is told about its turn, and what it tells the loop. */
struct loop_step {
    uint64_t now_us;
    uint64_t deadline_us; /* lowered by loop_call_at() */
    uint32_t budget;      /* the component's, from the table */
};

/*
 * One row of the table.  Every function but `step` may be NULL.  All of them
 * get the context that the component was added with.
 */
struct component {
    const char *name;

    /* Units of work (completions, frames, characters) that one step may do; 0
     * for a component whose work is bounded by the size of its tables. */
    uint32_t budget;

    /**
     * Do what there is to do, within the budget, without waiting.  What is due
     * later goes to loop_call_at(), in every step anew.
     *
     * @return whether anything was done: if so, another turn follows at once
     */
    bool (*step)(void *ctx, struct loop_step *step);

    /** Hand to the hardware what this turn has put into its rings. */
    void (*flush)(void *ctx);

    /**
     * The hart is about to sleep: ask for an interrupt at whatever comes.
     *
     * @param deadline_us  when the loop is going to wake up; may be lowered
     * @return false when something has come meanwhile: the hart must not sleep
     */
    bool (*arm)(void *ctx, uint64_t *deadline_us);

    /** The hart has woken up; `irqs` has the lines that are up, one bit each:
     * one at least. */
    void (*irqs)(void *ctx, uint32_t irqs);
};

/* One function of a component, with what it is called with. */
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
    uint64_t deadline_us; /* of the last turn: the earliest that a step named */
    /* By function, in the order of the table: those that have it. */
    uint8_t step_count, flush_count, arm_count, irqs_count;
    struct loop_step_entry steps[LOOP_COMPONENTS_MAX];
    struct loop_flush_entry flushes[LOOP_COMPONENTS_MAX];
    struct loop_arm_entry arms[LOOP_COMPONENTS_MAX];
    struct loop_irqs_entry irqs[LOOP_COMPONENTS_MAX];
    const char *names[LOOP_COMPONENTS_MAX]; /* by step, for a debugger */
};

/** A loop without components. */
void loop_init(struct loop *loop);

/**
 * Append a component to the table.  Its place decides when its step is called:
 * one that others wait for in the same turn comes before them.
 *
 * @param component  is copied
 */
void loop_add(struct loop *loop, const struct component *component, void *ctx);

/** Within a step: be called again at `at_us` at the latest. */
static inline void loop_call_at(struct loop_step *step, uint64_t at_us)
{
    step->deadline_us = MIN(step->deadline_us, at_us);
}

/**
 * One turn: every component's step, then every flush.
 *
 * @return whether any component did anything: then another turn must follow
 */
bool loop_turn(struct loop *loop, uint64_t now_us);

/**
 * Before the hart sleeps, after a turn in which nothing was done.
 *
 * @param deadline_us  when the next turn is due even without an interrupt
 * @return false when something has come meanwhile: take another turn
 */
MUST_USE bool loop_arm(struct loop *loop, uint64_t *deadline_us);

/** After a sleep: tell the components which interrupt lines are up. */
void loop_irqs(const struct loop *loop, uint32_t irqs);

#endif
