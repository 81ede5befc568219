/* SPDX-License-Identifier: BSD-2-Clause */
/* What the engine's user may not do. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/unit/net/tcp/script.h"

void assert_failed(const char *expression, const char *file, int line)
{
    mock_assert(0, expression, file, line);
    abort();
}

static void consume_at_once(void *ctx, uint32_t id, const uint8_t *data,
                            uint32_t len)
{
    struct host *host = ctx;

    (void)data;
    tcp_consume(host->tcp, id, len, host->now_us);
}

static void close_at_once(void *ctx, uint32_t id)
{
    struct host *host = ctx;

    tcp_close(host->tcp, id, host->now_us);
}

/* A function of the user that calls the engine would change what the engine is
 * working on: it is stopped before. */
static void test_calls_inside_of_callbacks_are_refused(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    for (int i = 0; i < 2; i++) {
        script_begin(&script, &config, 0xfffffc00, 0xfffff800);
        script_run(&script, script_open_plain);
        if (i == 0) {
            script.host->user.deliver = consume_at_once;
            expect_assert_failure(
                script_run(&script, "< . 1:11(10) ack 1 win 65535\n"));
        } else {
            script.host->user.finished = close_at_once;
            expect_assert_failure(
                script_run(&script, "< F. 1:1(0) ack 1 win 65535\n"));
        }
        script_end(&script);
    }
}
