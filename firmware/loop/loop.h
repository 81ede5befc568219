/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The firmware's main loop: it serves a table of components in turns.
 *
 * A component has a poll, a step, or both.  Polls serve the commands of hosts
 * and run in every turn.  Steps do all other work, such as timers,
 * configuration and tools.  They run in full turns only, so that a command does
 * not pay for components that have nothing to do.  A turn is full
 *
 *   - when a deadline that was named in the last full turn has come,
 *   - after a turn in which a component did more than serve commands,
 *   - after an interrupt that no poll looks at, or when a component has refused
 *     a sleep,
 *   - when time before it is left out (see below), because that time counts for
 *     some steps,
 *   - at the latest LOOP_STEPS_WAIT_US after a command was served, because the
 *     command may have given a step something to do.
 *
 * A turn calls polls and steps in the order of the table.  Both do a bounded
 * amount of work and return, so that host I/O and background work cannot hold
 * each other up.  After them come the flushes, which pass what polls and steps
 * have put into rings to the hardware.
 *
 * After a turn in which no component had work, the loop arms every component:
 * each asks its hardware for an interrupt at the next event, looks at its rings
 * once more, and refuses if work has come meanwhile.  If none refuses, the hart
 * may sleep until an interrupt or until the earliest deadline.
 *
 * The time of the loop is the time in which it could have run.  The hart may be
 * held back: by one long call, or by a computer that stops the emulator or
 * gives it no processor.  Peers' frames then lie unread, and a peer that is not
 * read must not look silent.  So a turn that begins more than LOOP_LATE_US
 * after it was due begins, for polls and steps, LOOP_LATE_US after that; the
 * rest of the delay is left out for good.  Every deadline of the components is
 * in this time. It runs behind hal_now_us(), by loop_left_out_us(), so a
 * component does not compare one with the other.
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
 * Reasons: docs/decisions/0005-main-loop.md
 */
#ifndef ESSD_LOOP_LOOP_H
#define ESSD_LOOP_LOOP_H

#include "lib/util.h"

#define LOOP_NO_DEADLINE UINT64_MAX

enum {
    LOOP_COMPONENTS_MAX = 24,
    LOOP_STEPS_WAIT_US = 4000,
    LOOP_LATE_US = 100000, /* a turn may be late by this and count in full */
};

/* What a poll or a step did; in a turn, the greatest value counts.  Each value
 * has all bits of the smaller ones, so that OR yields the greatest. */
enum loop_work {
    LOOP_IDLE = 0,  /* There was nothing to do. */
    LOOP_IO = 1,    /* It served commands of hosts, which seldom concerns a
                     * step. */
    LOOP_EVENT = 3, /* It did other work: the next turn is full. */
};

/*
 * The loop fills this for a poll or step: its time, and its budget.  The poll
 * or step gives its next deadline back in it.
 */
struct loop_step {
    uint64_t now_us;
    /* The next deadline; loop_call_at() lowers it. */
    uint64_t deadline_us;
    uint32_t budget;      /* the budget of the component, from the table */
    uint64_t left_out_us; /* loop_left_out_us() */
};

/*
 * One row of the table.  Every function may be NULL, but not both poll and
 * step.  All of them get the context that the component was added with.
 */
struct component {
    const char *name;

    /*
     * Units of work (completions, frames, characters) that one poll or step may
     * do.  It is 0 for a component whose work is bounded by the size of its
     * tables.
     */
    uint32_t budget;

    /**
     * In every turn: do the work that is due, within the budget, without
     * waiting.  Each call tells loop_call_at() when later work is due.
     *
     * @return what was done; unless it is LOOP_IDLE, another turn follows at
     *         once
     */
    enum loop_work (*poll)(void *ctx, struct loop_step *step);

    /** The same in full turns, before the component's poll. */
    enum loop_work (*step)(void *ctx, struct loop_step *step);

    /** Pass what this turn has put into rings to the hardware. */
    void (*flush)(void *ctx);

    /**
     * Ask for interrupts, because the hart is about to sleep.
     *
     * @param deadline_us  when the loop is going to wake up; may be lowered
     * @return false when work has come meanwhile: the hart must not sleep, and
     *         the next turn is full
     */
    bool (*arm)(void *ctx, uint64_t *deadline_us);

    /* The interrupt lines for which irqs() is called, one bit each; 0: all. */
    uint32_t irq_lines;

    /**
     * The hart has woken up, and one of the lines in `irq_lines` is up.  The
     * argument has one bit for each line that is up, also for lines of other
     * components.
     *
     * @return whether the component's step has to run, because the interrupt is
     *         about something that its poll does not look at
     */
    bool (*irqs)(void *ctx, uint32_t irqs);
};

/* One function of a component, with its arguments. */
struct loop_step_entry {
    enum loop_work (*run)(void *ctx, struct loop_step *step);
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
    bool (*irqs)(void *ctx, uint32_t irqs);
    void *ctx;
    uint32_t lines; /* call it when one of these lines is up */
};

/* Treat as opaque. */
struct loop {
    uint64_t full_us;     /* when the next full turn is due at the latest */
    uint64_t deadline_us; /* when the next turn is due at the latest */
    uint64_t due_us;      /* when the next turn is due, asleep or awake */
    uint64_t left_out_us; /* hal_now_us() minus the time of the loop */
    /* The functions by kind, in the order of the table. */
    uint8_t poll_count, all_count, flush_count, arm_count, irqs_count;
    struct loop_step_entry polls[LOOP_COMPONENTS_MAX];
    struct loop_step_entry all[2 * LOOP_COMPONENTS_MAX]; /* steps and polls */
    struct loop_flush_entry flushes[LOOP_COMPONENTS_MAX];
    struct loop_arm_entry arms[LOOP_COMPONENTS_MAX];
    struct loop_irqs_entry irqs[LOOP_COMPONENTS_MAX];
    /* The components' names, for a debugger. */
    uint8_t component_count;
    const char *names[LOOP_COMPONENTS_MAX];
};

/** Make a loop without components.  Its first turn is full. */
void loop_init(struct loop *loop);

/**
 * Append a component to the table.  Polls and steps run in the order of the
 * table, so that a component whose results others need in the same turn comes
 * before them.
 *
 * @param component  is copied
 */
void loop_add(struct loop *loop, const struct component *component, void *ctx);

/** In a poll or step: ask to be called again at `at_us` at the latest. */
static inline void loop_call_at(struct loop_step *step, uint64_t at_us)
{
    step->deadline_us = MIN(step->deadline_us, at_us);
}

/**
 * Take one turn: every component's poll, in a full turn every step too, then
 * every flush.
 *
 * @param hal_us  hal_now_us()
 * @return whether any component did work: then another turn must follow
 */
bool loop_turn(struct loop *loop, uint64_t hal_us);

/**
 * Prepare to sleep, after a turn in which no work was done.
 *
 * @param deadline_us  set to when the next turn is due even without an
 *   interrupt, as hal_now_us() tells the time
 * @return false when work has come meanwhile: take another turn
 */
MUST_USE bool loop_arm(struct loop *loop, uint64_t *deadline_us);

/** For how long the loop was held back since the start. */
uint64_t loop_left_out_us(const struct loop *loop);

/** When the next turn is due at the latest, as hal_now_us() tells the time. */
uint64_t loop_deadline_us(const struct loop *loop);

/** After a sleep: tell the components which interrupt lines are up. */
void loop_irqs(struct loop *loop, uint32_t irqs);

/**
 * Make the next turn a full one, because code outside of the loop has changed
 * something that a step looks at.
 */
void loop_request_steps(struct loop *loop);

#endif
