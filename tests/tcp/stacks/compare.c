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

/* @param may_be_less  the other stack may have forgotten bytes beyond a gap
 * @param may_lack     or a FIN */
static bool is_equal(const struct stack_state *own,
                     const struct stack_state *other, bool may_be_less,
                     bool may_lack)
{
    return (own->delivered == other->delivered ||
            (may_be_less && own->delivered > other->delivered)) &&
           (own->has_fin == other->has_fin || (may_lack && own->has_fin)) &&
           own->is_reset == other->is_reset && !own->is_wrong &&
           !other->is_wrong;
}

/* What a stack must have delivered in the end. */
static bool last_is_right(const struct session *session, bool takes)
{
    const struct stack_state *state = &session->moments[session->count - 1];
    bool adds = session->last == LAST_FIN_EARLY ||
                (session->last >= LAST_DIFFERS &&
                 session->last != LAST_RST_INSIDE && takes);

    return !state->is_wrong &&
           state->delivered == session->offered + (adds ? 100 : 0) &&
           state->has_fin == (session->last <= LAST_FIN_EARLY) &&
           state->is_reset == (session->last == LAST_RST ||
                               (session->last == LAST_RST_INSIDE && takes));
}

static bool session_agrees(const struct stack *other, const bool *takes,
                           uint32_t seed)
{
    struct session own, others;
    unsigned int same;

    behave(stack_engine(), seed, takes[LAST_RST_INSIDE], &own);
    behave(other, seed, takes[LAST_RST_INSIDE], &others);
    same = own.count - (own.last >= LAST_DIFFERS ? 1 : 0);
    for (unsigned int i = 0; i < same; i++) {
        if (!is_equal(&own.moments[i], &others.moments[i],
                      other->forgets && i < own.filled,
                      other->forgets_fin && i + 1 < own.count)) {
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
