/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine beside lwIP: the same peers, and after each of their segments the
 * same bytes have been delivered.  docs/tcp.md lists where they differ.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/tcp/stacks/compare.h"

/* RFC 9293 section 3.10.7.4 and RFC 5961 section 5.2: segments without ACK, and
 * those whose ACK is none of this connection, are dropped.  lwIP takes their
 * bytes; it has no PAWS (RFC 7323 section 5) and no rule for a segment without
 * the agreed timestamp (section 3.2). */
static const bool lwip_takes[LASTS] = {
    [LAST_NO_ACK] = true,   [LAST_ACK_BEYOND] = true, [LAST_ACK_OLD] = true,
    [LAST_TIME_OLD] = true, [LAST_TIME_NONE] = true,
};

static void test_engine_delivers_what_lwip_delivers(void **state)
{
    (void)state;
    assert_true(stacks_agree(stack_lwip(), lwip_takes, 1, 1000));
}
