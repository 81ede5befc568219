/* SPDX-License-Identifier: BSD-2-Clause */
/* Which characters of the console's `host` command are echoed as asterisks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firmware/console/console_hosts.h"
#include "tests/test_fixture.h"

#include <string.h>

void log_text(struct log *log, const char *format, ...)
{
    (void)log;
    (void)format;
    fail_msg("these functions print nothing");
}

/* Find where the secret of a line begins, character by character. */
static size_t secret_begin(const char *line)
{
    for (size_t i = 0; i < strlen(line); i++) {
        if (line[i] != ' ' && console_hosts_is_secret(line, i)) {
            return i;
        }
    }
    return strlen(line);
}

static void test_a_secret_is_hidden_however_its_line_is_spaced(void **state)
{
    static const char *const lines[] = {
        "host secret nqn.a SECRET",
        " host  secret   nqn.a    SECRET",
        "host drive-secret nqn.a SECRET more",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_ptr_equal(lines[i] + secret_begin(lines[i]),
                         strstr(lines[i], "SECRET"));
    }
}

static void test_everything_else_is_shown(void **state)
{
    static const char *const lines[] = {
        "host secret nqn.a",
        "host add nqn.a sha256 null",
        "hosts secret nqn.a SHOWN",
        "host secrets nqn.a SHOWN",
        "host",
        "",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_int_equal(secret_begin(lines[i]), strlen(lines[i]));
    }
}

TEST_FIXTURE(NULL, NULL)
