/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Seeded behaviour of a peer that sends, which is the same with every stack: it
 * depends on the seed and not on what the stack answers.
 */
#ifndef ESSD_TESTS_TCP_BEHAVIOUR_H
#define ESSD_TESTS_TCP_BEHAVIOUR_H

#include "tests/tcp/stacks/stack.h"

/* How a session ends; from LAST_DIFFERS on, stacks may differ. */
enum last {
    LAST_FIN,
    LAST_FIN_EARLY, /* before the bytes before it */
    LAST_RST,       /* with the next number */
    LAST_DIFFERS,
    LAST_NO_ACK = LAST_DIFFERS, /* bytes in a segment without ACK */
    LAST_ACK_BEYOND,            /* of bytes that were never sent */
    LAST_ACK_OLD,               /* of bytes before the stream */
    LAST_TIME_OLD,              /* an older timestamp than before */
    LAST_TIME_NONE,             /* no timestamp, although they are agreed */
    LAST_RST_INSIDE,            /* with a number in the window, not the next */
    LASTS
};

extern const char *const last_name[LASTS];

/* What a session has shown, step by step. */
enum { STEPS = 24, MOMENTS = STEPS + 5 };
struct session {
    enum last last;
    unsigned int count, filled; /* from `filled` on there was no gap */
    struct stack_state moments[MOMENTS];
    char what[MOMENTS][48];
    uint64_t
        offered; /* bytes in order that the peer has sent before its last */
};

/**
 * Have one peer, chosen by `seed`, talk to a stack.
 *
 * @param no_rst_inside  the peer sends such RSTs only as its last segment
 */
void behave(const struct stack *stack, uint32_t seed, bool no_rst_inside,
            struct session *session);

#endif
