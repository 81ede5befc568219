/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine of the drive beside another stack: see compare.h. */
#include "tests/tcp/stacks/compare.h"

#include <stdio.h>

#include "lib/util.h"

static void session_print(const struct session *a, const struct session *b,
                          unsigned int to)
{
    for (unsigned int i = 0; i <= to; i++) {
        fprintf(stderr, "  %-40s %6llu%s%s   %6llu%s%s\n", a->what[i],
                (unsigned long long)a->moments[i].delivered,
                a->moments[i].has_fin ? " FIN" : "",
                a->moments[i].is_reset ? " RST" : "",
                (unsigned long long)b->moments[i].delivered,
                b->moments[i].has_fin ? " FIN" : "",
                b->moments[i].is_reset ? " RST" : "");
    }
}

static bool is_equal(const struct stack_state *a, const struct stack_state *b,
                     bool may_be_less)
{
    return (a->delivered == b->delivered ||
            (may_be_less && a->delivered > b->delivered)) &&
           a->has_fin == b->has_fin && a->is_reset == b->is_reset &&
           !a->is_wrong && !b->is_wrong;
}

/* What a stack must have delivered in the end. */
static bool last_is_right(const struct session *session, bool takes)
{
    const struct stack_state *state = &session->moments[session->count - 1];
    uint64_t last = session->last == LAST_FIN_EARLY ||
                            (session->last >= LAST_DIFFERS && takes)
                        ? 100
                        : 0;

    return !state->is_wrong && state->delivered == session->offered + last &&
           state->has_fin == (session->last <= LAST_FIN_EARLY) &&
           state->is_reset == (session->last == LAST_RST);
}

static bool session_agrees(const struct stack *other, const bool *takes,
                           uint32_t seed)
{
    struct session own, others;
    unsigned int same;

    behave(stack_engine(), seed, &own);
    behave(other, seed, &others);
    same = own.count - (own.last >= LAST_DIFFERS ? 1 : 0);
    for (unsigned int i = 0; i < same; i++) {
        if (!is_equal(&own.moments[i], &others.moments[i],
                      other->forgets && i < own.filled)) {
            fprintf(stderr, "seed %u: the engine and %s differ:\n", seed,
                    other->name);
            session_print(&own, &others, i);
            return false;
        }
    }
    if (!last_is_right(&own, false) ||
        !last_is_right(&others, takes[own.last])) {
        fprintf(stderr, "seed %u: the end of the engine or of %s is wrong:\n",
                seed, other->name);
        session_print(&own, &others, own.count - 1);
        return false;
    }
    return true;
}

bool stacks_agree(const struct stack *other, const bool takes[LASTS],
                  uint32_t first_seed, uint32_t seeds)
{
    for (uint32_t i = 0; i < seeds; i++) {
        if (!session_agrees(other, takes, first_seed + i)) {
            return false;
        }
    }
    return true;
}
