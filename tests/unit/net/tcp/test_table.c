/* SPDX-License-Identifier: BSD-2-Clause */
/* Every state with every kind of segment: RFC 9293 section 3.10.7.4. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/net/tcp/script.h"

enum kind {
    DATA,       /* the next bytes; acknowledges all but our FIN */
    EARLY_DATA, /* with a gap before them */
    OLD_DATA,   /* the byte before the next one */
    FIN,
    FIN_ACK, /* acknowledges our FIN, too */
    ACK,     /* of our FIN */
    RST,
    RST_NEAR, /* in the window, but not the next byte */
    RST_FAR,  /* outside of it */
    SYN,
    NOTHING, /* no ACK */
    KINDS
};

struct row {
    const char *name;
    const char *lines; /* after script_open_plain */
    unsigned int next; /* the peer's next byte */
    const char *after[KINDS];
};

#define SAME(s)                                                                \
    [DATA] = s, [EARLY_DATA] = s, [OLD_DATA] = s, [RST] = "CLOSED",            \
    [RST_NEAR] = s, [RST_FAR] = s, [SYN] = s, [NOTHING] = s

static const struct row rows[] = {
    {"ESTABLISHED",
     "",
     1,
     {SAME("ESTABLISHED"), [FIN] = "CLOSE-WAIT", [FIN_ACK] = "ESTABLISHED",
      [ACK] = "ESTABLISHED"}},
    {"FIN-WAIT-1",
     "close\n"
     "> F. 1:1(0) ack 1\n",
     1,
     {SAME("FIN-WAIT-1"), [FIN] = "CLOSING", [FIN_ACK] = "CLOSED",
      [ACK] = "FIN-WAIT-2"}},
    {"FIN-WAIT-2",
     "close\n"
     "> F. 1:1(0) ack 1\n"
     "< . 1:1(0) ack 2 win 65535\n",
     1,
     {SAME("FIN-WAIT-2"), [FIN] = "CLOSED", [FIN_ACK] = "CLOSED",
      [ACK] = "FIN-WAIT-2"}},
    {"CLOSE-WAIT",
     "< F. 1:1(0) ack 1 win 65535\n"
     "> . 1:1(0) ack 2\n",
     2,
     {SAME("CLOSE-WAIT"), [FIN] = "CLOSE-WAIT", [FIN_ACK] = "CLOSE-WAIT",
      [ACK] = "CLOSE-WAIT"}},
    {"CLOSING",
     "close\n"
     "> F. 1:1(0) ack 1\n"
     "< F. 1:1(0) ack 1 win 65535\n"
     "> . 2:2(0) ack 2\n",
     2,
     {SAME("CLOSING"), [FIN] = "CLOSING", [FIN_ACK] = "CLOSED",
      [ACK] = "CLOSED"}},
    {"LAST-ACK",
     "< F. 1:1(0) ack 1 win 65535\n"
     "> . 1:1(0) ack 2\n"
     "close\n"
     "> F. 1:1(0) ack 2\n",
     2,
     {SAME("LAST-ACK"), [FIN] = "LAST-ACK", [FIN_ACK] = "CLOSED",
      [ACK] = "CLOSED"}},
};

/* One segment as a line. @param n  the peer's next byte */
static void segment_print(char *line, size_t room, enum kind kind,
                          unsigned int n)
{
    static const struct {
        const char *flags;
        int ahead;
        unsigned int len, ack; /* ack 0: none */
    } kinds[KINDS] = {
        [DATA] = {".", 0, 100, 1},        [EARLY_DATA] = {".", 50, 100, 1},
        [OLD_DATA] = {".", -1, 1, 1},     [FIN] = {"F.", 0, 0, 1},
        [FIN_ACK] = {"F.", 0, 0, 2},      [ACK] = {".", 0, 0, 2},
        [RST] = {"R", 0, 0, 0},           [RST_NEAR] = {"R", 1, 0, 0},
        [RST_FAR] = {"R", 1 << 20, 0, 0}, [SYN] = {"S", 0, 0, 0},
        [NOTHING] = {"P", 0, 100, 0},
    };
    unsigned int seq = n + (unsigned int)kinds[kind].ahead;
    char ack[16] = "";

    if (kinds[kind].ack != 0) {
        (void)snprintf(ack, sizeof(ack), "ack %u", kinds[kind].ack);
    }
    (void)snprintf(line, room, "< %s %u:%u(%u) %s win 65535\n",
                   kinds[kind].flags, seq, seq + kinds[kind].len,
                   kinds[kind].len, ack);
}

/* In no state and after no segment more than one segment is the answer, and
 * none is ever the answer to a RST. */
static void test_every_state_with_every_segment(void **state)
{
    struct tcp_config config = script_config();

    (void)state;
    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        for (unsigned int kind = 0; kind < KINDS; kind++) {
            struct script script;
            char line[80], want[32];

            script_begin(&script, &config, 0xfffffc00, 0xfffff800);
            script_run(&script, script_open_plain);
            script_run(&script, rows[r].lines);
            (void)snprintf(want, sizeof(want), "state %s\n", rows[r].name);
            script_run(&script, want);
            segment_print(line, sizeof(line), (enum kind)kind, rows[r].next);
            script_run(&script, line);
            (void)snprintf(want, sizeof(want), "state %s\n",
                           rows[r].after[kind]);
            script_run(&script, want);
            assert_in_range(script.host->frame_count, 0,
                            kind == RST || kind == RST_FAR ? 0 : 1);
            /* Whatever it was, a reset ends it without leaving anything. */
            script_run(&script, "abort\n"
                                "+61\n");
            assert_int_equal(tcp_usage(script.host->tcp).connections, 0);
            assert_int_equal(tcp_usage(script.host->tcp).pages, 0);
            script_end(&script);
        }
    }
}

/* RFC 5961 section 1.2: an attacker who knows the ends, but not the numbers,
 * and sends a RST into each window of 64 KiB: 65536 of them reset nothing. */
static void test_blind_resets_do_not_hit(void **state)
{
    struct tcp_config config = script_config();
    struct script script;
    unsigned int answers = 0;
    char line[64];

    (void)state;
    script_begin(&script, &config, 77777, 0);
    script_run(&script, script_open_plain);
    for (unsigned int i = 0; i < 1 << 16; i++) {
        (void)snprintf(line, sizeof(line), "< R %u:%u(0) win 0\n",
                       (i << 16) + 5, (i << 16) + 5);
        script_run(&script, line);
        answers += script.host->frame_count;
        while (host_frame(script.host) != NULL) {
            host_frame_done(script.host);
        }
    }
    script_run(&script, "state ESTABLISHED\n");
    assert_int_equal(answers, 1); /* the one in the window is challenged */
    script_end(&script);
}
