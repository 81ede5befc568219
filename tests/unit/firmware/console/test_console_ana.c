/* SPDX-License-Identifier: BSD-2-Clause */
/* The console's `ana` command, and what it asks of the target. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/console/console_ana.h"
#include "tests/test_fixture.h"

enum { NOW_US = 4711, ALL = NVMF_ANA_GROUPS * NVMF_ANA_PORTS };

static char said[4096]; /* what was printed, one line after another */
static unsigned int sets, checks;
static uint32_t last_group, last_ms;
static uint16_t last_portid;
static enum ana_state last_state;
/* The target refuses this group at this port identifier. */
static uint32_t refused_group;
static uint16_t refused_portid;
static enum ana_state states[NVMF_ANA_GROUPS + 1][NVMF_ANA_PORTS + 1];

static void add_line(const char *format, va_list args)
{
    size_t len = strlen(said);

    vsnprintf(said + len, sizeof(said) - len, format, args);
    strncat(said, "\n", sizeof(said) - strlen(said) - 1);
}

void log_text(struct log *log, const char *format, ...)
{
    va_list args;

    (void)log;
    va_start(args, format);
    add_line(format, args);
    va_end(args);
}

void log_line(struct log *log, const char *format, ...)
{
    va_list args;

    (void)log;
    va_start(args, format);
    add_line(format, args);
    va_end(args);
}

size_t log_format(char *buf, size_t size, const char *format, ...)
{
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(buf, size, format, args);
    va_end(args);
    return (size_t)len;
}

enum nvmf_ana_result nvmf_target_check_ana(const struct nvmf_target *target,
                                           uint32_t anagrpid, uint16_t portid,
                                           enum ana_state state,
                                           uint32_t transition_ms)
{
    (void)target;
    (void)state;
    checks++;
    if (anagrpid < 1 || anagrpid > NVMF_ANA_GROUPS) {
        return NVMF_ANA_NO_GROUP;
    }
    assert_in_range(portid, 1, NVMF_ANA_PORTS);
    if (transition_ms > 10000) {
        return NVMF_ANA_BAD_TIME;
    }
    return anagrpid == refused_group && portid == refused_portid ? NVMF_ANA_LOST
                                                                 : NVMF_ANA_OK;
}

enum nvmf_ana_result nvmf_target_set_ana(struct nvmf_target *target,
                                         uint32_t anagrpid, uint16_t portid,
                                         enum ana_state state,
                                         uint32_t transition_ms,
                                         uint64_t now_us)
{
    (void)target;
    assert_int_equal(now_us, NOW_US);
    sets++;
    last_group = anagrpid;
    last_portid = portid;
    last_state = state;
    last_ms = transition_ms;
    return NVMF_ANA_OK;
}

enum ana_state nvmf_target_ana(const struct nvmf_target *target,
                               uint32_t anagrpid, uint16_t portid)
{
    (void)target;
    return states[anagrpid][portid];
}

const char *nvmf_ana_name(enum ana_state state)
{
    return state == ANA_INACCESSIBLE ? "inaccessible" : "optimized";
}

bool nvmf_ana_by_name(const char *name, enum ana_state *state)
{
    *state =
        strcmp(name, "inaccessible") == 0 ? ANA_INACCESSIBLE : ANA_OPTIMIZED;
    return *state == ANA_INACCESSIBLE || strcmp(name, "optimized") == 0;
}

static int set_up(void **state)
{
    (void)state;
    said[0] = '\0';
    sets = checks = refused_group = refused_portid = 0;
    for (unsigned int g = 0; g <= NVMF_ANA_GROUPS; g++) {
        for (unsigned int p = 0; p <= NVMF_ANA_PORTS; p++) {
            states[g][p] = ANA_OPTIMIZED;
        }
    }
    return 0;
}

TEST_FIXTURE(set_up, NULL)

/* Type a line. @return what is printed */
static const char *type_words(const char *line)
{
    static char text[128];
    char *words[8];
    unsigned int count = 0;

    snprintf(text, sizeof(text), "%s", line);
    for (char *word = strtok(text, " "); word != NULL;
         word = strtok(NULL, " ")) {
        words[count++] = word;
    }
    said[0] = '\0';
    console_ana(NULL, NULL, words, count, NOW_US);
    return said;
}

static void test_a_group_changes_at_one_port(void **state)
{
    (void)state;
    assert_string_equal(type_words("ana 16 1 inaccessible"),
                        "ana: group 16 at port 1: inaccessible\nok\n");
    assert_int_equal(sets, 1);
    assert_int_equal(last_group, 16);
    assert_int_equal(last_portid, 2); /* NVMe counts ports from 1 */
    assert_int_equal(last_state, ANA_INACCESSIBLE);
    assert_int_equal(last_ms, 0);
}

static void test_all_groups_change_at_both_ports(void **state)
{
    (void)state;
    assert_string_equal(type_words("ana all all optimized 250"),
                        "ana: all groups at both ports: optimized, transition "
                        "of 250 ms\nok\n");
    assert_int_equal(sets, ALL);
    assert_int_equal(last_ms, 250);
}

static void test_nothing_changes_if_one_group_is_refused(void **state)
{
    (void)state;
    refused_group = NVMF_ANA_GROUPS;
    refused_portid = NVMF_ANA_PORTS;
    assert_string_equal(
        type_words("ana all all optimized"),
        "error: Only a start of the drive ends a persistent loss.\n");
    assert_int_equal(checks, ALL);
    assert_int_equal(sets, 0);
}

static void test_what_does_not_exist_is_refused(void **state)
{
    static const struct {
        const char *line, *answer;
    } rows[] = {
        {"ana 0 0 optimized", "no such group"},
        {"ana 17 0 optimized", "no such group"},
        {"ana 4294967297 0 optimized", "error"},
        {"ana 1 2 optimized", "no such port"},
        {"ana 1 0 best", "no such state"},
        {"ana 1 0 optimized 10001", "10000 ms at most"},
        {"ana 1 0 optimized 4294967296", "error"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_non_null(strstr(type_words(rows[i].line), rows[i].answer));
    }
    assert_int_equal(sets, 0);
}

static void test_a_line_that_is_no_command_is_explained(void **state)
{
    static const char *const lines[] = {
        "ana 1",
        "ana 1 0",
        "ana one 0 optimized",
        "ana 1 x optimized",
        "ana 1 0 optimized soon",
        "ana 1 0 optimized all",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_string_equal(type_words(lines[i]),
                            "error: write: ana GROUP|all PORT|all STATE "
                            "[TRANSITION-MS]\n");
    }
    assert_int_equal(sets, 0);
}

static void test_without_arguments_the_exceptions_are_shown(void **state)
{
    (void)state;
    assert_string_equal(type_words("ana"),
                        "all groups are optimized at both ports\n");
    states[3][2] = ANA_INACCESSIBLE;
    assert_string_equal(
        type_words("ana"),
        "group 3 at port 1: inaccessible\nall others: optimized\n");
}
