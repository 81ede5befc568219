/* SPDX-License-Identifier: BSD-2-Clause */
/* Fault rules: their text form, what they match, and when they fire. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hw-model/fault/fault_rule.h"
#include "tests/test_fixture.h"

/* A RoCEv2 SEND ONLY to queue pair 0x805 with an NVMe Read (opcode 2, NSID 1)
 * from 10.0.0.1 to 10.0.0.10. */
static const uint8_t capsule_frame[] = {
    0x02, 0xe5, 0x5e, 0,    0, 1, 0x02, 0xe5, 0x5e, 0,    1,    1, 0x08,
    0x00, /* Eth */
    0x45, 0,    0,    60,   0, 0, 0x40, 0,    64,   17,   0,    0, 10,
    0,    0,    1,    10,   0, 0, 10,   0xc0, 0x00, 0x12, 0xb7, 0, 40,
    0,    0, /* UDP to 4791 */
    0x04, 0x40, 0xff, 0xff, 0, 0, 0x08, 0x05, 0x80, 0,    0,    7, /* BTH */
    0x02, 0,    0x34, 0x12, 1, 0, 0,    0,    0,    0,    0,    0, /* SQE begins
                                                                    */
};

enum { ETH_IPV6_TCP = 14 + 40 + 20 };

static struct fault_rule parse_rule(const char *text)
{
    struct fault_rule rule;
    const char *wrong = NULL;

    if (!fault_rule_parse(text, &rule, &wrong)) {
        fail_msg("refused at \"%s\"", wrong);
    }
    return rule;
}

static void add_rule(struct fault_table *table, const char *text)
{
    struct fault_rule rule = parse_rule(text);

    assert_true(fault_table_add(table, &rule));
}

static struct fault_verdict judge_bytes(struct fault_table *table,
                                        const uint8_t *frame, uint32_t len)
{
    return fault_judge_frame(table, 0, FAULT_IN, frame, len);
}

static struct fault_verdict judge_capsule(struct fault_table *table)
{
    return judge_bytes(table, capsule_frame, sizeof(capsule_frame));
}

/* How often of `events` the rule fires. */
static unsigned int count_fired(const char *text, unsigned int events)
{
    struct fault_table table = {0};
    unsigned int fired = 0;

    add_rule(&table, text);
    for (unsigned int i = 0; i < events; i++) {
        fired += judge_capsule(&table).action != FAULT_NONE;
    }
    return fired;
}

/* A SYN from port 40000 to port 7, padded to 60 bytes; and a segment with ACK
 * and two bytes of data over IPv6. */
static const uint8_t syn_frame[60] = {0x02, 0xe5, 0x5e, 0,    0,
                                      1,    0x02, 0xe5, 0x5e, 0,
                                      1,    1,    0x08, 0x00, /* Eth */
                                      0x45, 0,    0,    40,   0,
                                      0,    0,    0,    64,   6,
                                      0,    0,    10,   0,    0,
                                      1,    10,   0,    0,    10, /* IPv4 */
                                      0x9c, 0x40, 0,    7,    0,
                                      0,    1,    0,    0,    0,
                                      0,    0,    0x50, 0x02, 0x10,
                                      0,    0,    0,    0,    0};
static const uint8_t data_frame[ETH_IPV6_TCP + 2] = {
    [12] = 0x86, [13] = 0xdd, [14] = 0x60,         [19] = 22, [20] = 6,
    [21] = 64,   [54] = 0x9c, [55] = 0x40,         [57] = 7,  [61] = 9,
    [66] = 0x50, [67] = 0x10, [ETH_IPV6_TCP] = 'x'};

static unsigned int fires_at(struct fault_table *table, const uint8_t *frame,
                             uint32_t len)
{
    return judge_bytes(table, frame, len).action != FAULT_NONE;
}

/* A bit for each of three frames at which a rule fires. */
static unsigned int find_tcp(const char *conditions)
{
    struct fault_table table = {0};
    char text[200] = "id=1 site=wire do=zero-window ";

    strncat(text, conditions, sizeof(text) - strlen(text) - 1);
    add_rule(&table, text);
    return fires_at(&table, syn_frame, sizeof(syn_frame)) |
           fires_at(&table, data_frame, sizeof(data_frame)) << 1 |
           fires_at(&table, capsule_frame, sizeof(capsule_frame)) << 2;
}

static void test_rules_see_tcp_headers_and_data(void **state)
{
    struct fault_table table = {0};

    (void)state;
    assert_int_equal(find_tcp("nth=1"), 1); /* the first of two */
    assert_int_equal(find_tcp("every=1"), 3);
    assert_int_equal(find_tcp("field=7:13:1:12:2:2"), 1); /* SYN, no ACK */
    assert_int_equal(find_tcp("field=7:13:1:10:10:10"), 2);
    assert_int_equal(find_tcp("field=7:2:2:ffff:7:7"), 3);
    assert_int_equal(find_tcp("field=7:4:4:ffffffff:9:9"), 2);
    /* Padding is no data. */
    assert_int_equal(find_tcp("field=8:0:1:ff:0:ff"), 2);
    add_rule(&table, "id=1 site=wire do=bad-checksum");
    assert_int_equal(judge_bytes(&table, data_frame, sizeof(data_frame)).tcp_at,
                     ETH_IPV6_TCP - 20);
    /* A frame that ends in the header is no segment. */
    assert_int_equal(judge_bytes(&table, syn_frame, 53).action, FAULT_NONE);
    assert_int_equal(judge_bytes(&table, syn_frame, 54).action, FAULT_CHECKSUM);
}

static void test_rule_text_gives_every_field(void **state)
{
    struct fault_rule rule = parse_rule(
        "id=7 site=wire do=delay argument=5000000 ports=2 directions=1 "
        "field=5:0:1:ff:4:c nth=3 every=2 after=1 times=9 "
        "chance=2147483648 seed=42");

    (void)state;
    assert_int_equal(rule.id, 7);
    assert_int_equal(rule.site, FAULT_WIRE);
    assert_int_equal(rule.action, FAULT_DELAY);
    assert_int_equal(rule.argument, 5000000);
    assert_int_equal(rule.ports, 2);
    assert_int_equal(rule.directions, FAULT_IN);
    assert_int_equal(rule.num_conditions, 1);
    assert_int_equal(rule.conditions[0].layer, FAULT_AT_BTH);
    assert_int_equal(rule.conditions[0].width, 1);
    assert_int_equal(rule.conditions[0].mask, 0xff);
    assert_int_equal(rule.conditions[0].low, 4);
    assert_int_equal(rule.conditions[0].high, 12);
    assert_int_equal(rule.trigger.nth, 3);
    assert_int_equal(rule.trigger.every, 2);
    assert_int_equal(rule.trigger.after, 1);
    assert_int_equal(rule.trigger.times, 9);
    assert_int_equal(rule.trigger.chance, 2147483648);
    assert_int_equal(rule.trigger.random, 42);
    assert_true(rule.is_on);

    rule = parse_rule("id=1 site=media do=error ops=3 first=4096 end=8192");
    assert_int_equal(rule.ops, FAULT_OP_READ | FAULT_OP_WRITE);
    assert_int_equal(rule.first, 4096);
    assert_int_equal(rule.end, 8192);
    rule =
        parse_rule("id=4294967295 site=rdma do=rnr argument=14 qpn=2053 ops=1");
    assert_int_equal(rule.qpn, 2053);
    assert_int_equal(rule.id, UINT32_MAX);
}

static void test_rule_text_that_makes_no_sense_is_refused(void **state)
{
    static const struct {
        const char *text;
        const char *wrong; /* the rest of the text from the wrong word on */
    } cases[] = {
        {"", ""},
        {"id=1 site=wire do=drop ", ""},
        {"id=1  site=wire do=drop", " site=wire do=drop"},
        {"id=1 site=sea do=drop", "site=sea do=drop"},
        {"id=1 site=wire do=explode", "do=explode"},
        {"id=1 site=wire do=drop nth=x", "nth=x"},
        {"id=1 site=wire do=drop nth=", "nth="},
        {"id=1 site=wire do=drop nth=4294967296", "nth=4294967296"},
        {"id=1 site=wire do=drop seed=18446744073709551616",
         "seed=18446744073709551616"},
        {"id=1 site=wire do=drop chance=4294967297", "chance=4294967297"},
        {"id=1 site=wire do=drop ports=4", "ports=4"},
        {"id=1 site=wire do=drop field=9:0:1:ff:1:1", "field=9:0:1:ff:1:1"},
        {"id=1 site=wire do=drop field=0:0:9:ff:1:1", "field=0:0:9:ff:1:1"},
        {"id=1 site=wire do=drop field=0:0:0:ff:1:1", "field=0:0:0:ff:1:1"},
        {"id=1 site=wire do=drop field=0:0:1:ff:2:1", "field=0:0:1:ff:2:1"},
        {"id=1 site=wire do=drop field=0:0:1:ff:1", "field=0:0:1:ff:1"},
        {"id=1 site=wire do=drop field=0:0:1:ff:1:1:1", "field=0:0:1:ff:1:1:1"},
        {"id=1 site=wire do=drop field=0:0:1:fg:1:1", "field=0:0:1:fg:1:1"},
        {"id=1 site=wire do=drop extra=1", "extra=1"},
        {"id=1 site=wire do=drop =1", "=1"},
        /* An action of another site, no action, no id: the whole is wrong. */
        {"id=1 site=wire do=nak", "id=1 site=wire do=nak"},
        {"id=1 site=media do=drop", "id=1 site=media do=drop"},
        {"id=1 site=wire", "id=1 site=wire"},
        {"site=wire do=drop", "site=wire do=drop"},
        {"id=0 site=wire do=drop", "id=0 site=wire do=drop"},
    };

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(cases); i++) {
        struct fault_rule rule;
        const char *wrong = NULL;

        if (fault_rule_parse(cases[i].text, &rule, &wrong)) {
            fail_msg("accepted: \"%s\"", cases[i].text);
        }
        assert_string_equal(wrong, cases[i].wrong);
    }
}

static void test_rule_has_room_for_eight_fields(void **state)
{
    char text[512] = "id=1 site=wire do=drop";
    struct fault_rule rule;
    const char *wrong = NULL;

    (void)state;
    for (unsigned int i = 0; i < FAULT_CONDITIONS; i++) {
        strcat(text, " field=0:0:1:ff:2:2");
    }
    assert_true(fault_rule_parse(text, &rule, &wrong));
    strcat(text, " field=0:0:1:ff:2:2");
    assert_false(fault_rule_parse(text, &rule, &wrong));
}

static void test_rule_matches_fields_of_every_layer(void **state)
{
    static const struct {
        const char *field;
        bool matches;
    } cases[] = {
        {"field=0:0:6:ffffffffffff:2e55e000001:2e55e000001", true},
        {"field=0:12:2:ffff:800:800", true},
        {"field=0:12:2:ffff:86dd:86dd", false},
        {"field=1:0:2:fff:0:fff", false}, /* it has no VLAN tag */
        {"field=2:12:4:ffffffff:a000001:a000001", true},
        {"field=3:8:8:ffffffffffffffff:0:ffffffffffffffff", false},
        {"field=4:2:2:ffff:12b7:12b7", true},
        {"field=5:0:1:ff:4:4", true},
        {"field=5:5:3:ffffff:805:805", true},
        {"field=5:5:3:ffffff:806:900", false},
        {"field=6:0:1:ff:2:2", true},         /* opcode */
        {"field=6:2:2:ffff:1234:1234", true}, /* CID, little-endian */
        {"field=6:4:4:ffffffff:1:1", true},   /* NSID */
        {"field=6:12:1:ff:0:ff", false},      /* behind the frame's end */
        {"field=0:65535:8:ff:0:ff", false},
    };

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(cases); i++) {
        struct fault_table table = {0};
        char text[128] = "id=1 site=wire do=drop ";
        enum fault_action action;

        strcat(text, cases[i].field);
        add_rule(&table, text);
        action = judge_capsule(&table).action;
        if ((action == FAULT_DROP) != cases[i].matches) {
            fail_msg("%s", cases[i].field);
        }
    }
}

static void test_rule_matches_through_vlan_tags(void **state)
{
    struct fault_table table = {0};
    uint8_t frame[sizeof(capsule_frame) + 4];

    (void)state;
    memcpy(frame, capsule_frame, 12);
    memcpy(frame + 12, "\x81\x00\x60\x64", 4);
    memcpy(frame + 16, capsule_frame + 12, sizeof(capsule_frame) - 12);
    add_rule(&table, "id=1 site=wire do=drop field=1:0:2:fff:64:64 "
                     "field=0:12:2:ffff:800:800 field=6:0:1:ff:2:2");
    assert_int_equal(judge_bytes(&table, frame, sizeof(frame)).action,
                     FAULT_DROP);
    assert_int_equal(judge_capsule(&table).action, FAULT_NONE);
}

/* Every length of the frame, so that nothing is read behind its end (under the
 * address sanitizer). */
static void test_rule_reads_no_byte_behind_a_short_frame(void **state)
{
    (void)state;
    for (uint32_t len = 0; len <= sizeof(capsule_frame); len++) {
        struct fault_table table = {0};
        uint8_t *frame = malloc(len + 1);
        uint8_t *exact = len > 0 ? malloc(len) : NULL;

        assert_non_null(frame);
        add_rule(&table, "id=1 site=wire do=drop field=6:8:4:ffffffff:0:0");
        if (exact != NULL) {
            memcpy(exact, capsule_frame, len);
            assert_int_equal(judge_bytes(&table, exact, len).action,
                             len == sizeof(capsule_frame) ? FAULT_DROP
                                                          : FAULT_NONE);
        }
        free(exact);
        free(frame);
    }
}

static void test_rule_fires_on_the_events_that_it_names(void **state)
{
    (void)state;
    assert_int_equal(count_fired("id=1 site=wire do=drop", 10), 10);
    assert_int_equal(count_fired("id=1 site=wire do=drop nth=3", 10), 1);
    assert_int_equal(count_fired("id=1 site=wire do=drop nth=3 after=8", 10),
                     0);
    assert_int_equal(count_fired("id=1 site=wire do=drop nth=2 after=8", 10),
                     1);
    assert_int_equal(count_fired("id=1 site=wire do=drop every=4", 12), 3);
    assert_int_equal(count_fired("id=1 site=wire do=drop times=2", 10), 2);
    assert_int_equal(count_fired("id=1 site=wire do=drop chance=0", 1000), 0);
}

static void test_rule_fires_with_its_probability_and_repeats(void **state)
{
    static const char text[] =
        "id=1 site=wire do=drop chance=429496730 seed=5"; /* 0.1 */
    unsigned int fired = count_fired(text, 10000);

    (void)state;
    assert_in_range(fired, 900, 1100);
    assert_int_equal(count_fired(text, 10000), fired);
    assert_int_not_equal(
        count_fired("id=1 site=wire do=drop chance=429496730 seed=6", 10000),
        fired);
}

static void test_rules_are_asked_in_order_until_one_fires(void **state)
{
    struct fault_table table = {0};

    (void)state;
    add_rule(&table, "id=1 site=wire do=drop nth=2");
    add_rule(&table, "id=2 site=wire do=corrupt argument=9");
    assert_int_equal(judge_capsule(&table).id, 2);
    assert_int_equal(judge_capsule(&table).id, 1);
    assert_int_equal(judge_capsule(&table).argument, 9);
    assert_int_equal(fault_table_find(&table, 1)->trigger.matched, 3);
    /* The second rule did not see the frame on which the first one fired. */
    assert_int_equal(fault_table_find(&table, 2)->trigger.matched, 2);
}

static void test_rules_are_added_removed_and_turned_off(void **state)
{
    struct fault_table table = {0};
    struct fault_rule rule = parse_rule("id=1 site=wire do=drop");

    (void)state;
    assert_false(fault_table_has(NULL, FAULT_WIRE));
    assert_false(fault_table_has(&table, FAULT_WIRE));
    assert_true(fault_table_add(&table, &rule));
    assert_false(fault_table_add(&table, &rule));
    assert_true(fault_table_has(&table, FAULT_WIRE));
    assert_false(fault_table_has(&table, FAULT_MEDIA));
    assert_true(fault_table_turn(&table, 1, false));
    assert_false(fault_table_has(&table, FAULT_WIRE));
    assert_int_equal(judge_capsule(&table).action, FAULT_NONE);
    assert_true(fault_table_turn(&table, 1, true));
    assert_int_equal(judge_capsule(&table).action, FAULT_DROP);
    assert_false(fault_table_turn(&table, 0, true));
    assert_false(fault_table_remove(&table, 0));
    assert_false(fault_table_remove(&table, 2));
    assert_true(fault_table_remove(&table, 1));
    assert_false(fault_table_has(&table, FAULT_WIRE));
    assert_null(fault_table_find(&table, 1));
    assert_null(fault_table_find(&table, 0));

    for (rule.id = 1; rule.id <= FAULT_RULES; rule.id++) {
        assert_true(fault_table_add(&table, &rule));
    }
    assert_false(fault_table_add(&table, &rule));
    assert_true(fault_table_remove(&table, FAULT_RULES / 2));
    assert_true(fault_table_add(&table, &rule));
    assert_non_null(fault_table_find(&table, FAULT_RULES));
}

static void test_rules_of_the_wire_know_ports_and_directions(void **state)
{
    struct fault_table table = {0};

    (void)state;
    add_rule(&table, "id=1 site=wire do=drop ports=2 directions=2");
    assert_int_equal(fault_judge_frame(&table, 0, FAULT_OUT, capsule_frame,
                                       sizeof(capsule_frame))
                         .action,
                     FAULT_NONE);
    assert_int_equal(fault_judge_frame(&table, 1, FAULT_IN, capsule_frame,
                                       sizeof(capsule_frame))
                         .action,
                     FAULT_NONE);
    assert_int_equal(fault_judge_frame(&table, 1, FAULT_OUT, capsule_frame,
                                       sizeof(capsule_frame))
                         .action,
                     FAULT_DROP);
}

static void test_rules_of_the_medium_know_operations_and_ranges(void **state)
{
    struct fault_table table = {0};

    (void)state;
    add_rule(&table, "id=1 site=media do=error ops=9 first=4096 end=8192");
    assert_int_equal(fault_judge_media(&table, FAULT_OP_READ, 0, 4096).action,
                     FAULT_NONE);
    assert_int_equal(fault_judge_media(&table, FAULT_OP_READ, 0, 4608).action,
                     FAULT_ERROR);
    assert_int_equal(
        fault_judge_media(&table, FAULT_OP_READ, 7680, 8192).action,
        FAULT_ERROR);
    assert_int_equal(
        fault_judge_media(&table, FAULT_OP_READ, 8192, 9216).action,
        FAULT_NONE);
    assert_int_equal(fault_judge_media(&table, FAULT_OP_WRITE, 0, 8192).action,
                     FAULT_NONE);
    assert_int_equal(fault_judge_media(&table, FAULT_OP_FLUSH, 0, 0).action,
                     FAULT_ERROR);
}

static void test_rules_for_the_cache_are_not_for_requests(void **state)
{
    struct fault_table table = {0};

    (void)state;
    add_rule(&table, "id=1 site=media do=bits argument=2 first=4096 end=8192");
    add_rule(&table, "id=2 site=media do=error");
    assert_int_equal(fault_judge_media(&table, FAULT_OP_READ, 4096, 8192).id,
                     2);
    assert_int_equal(fault_judge_cache(&table, 0, 4096), 0);
    assert_int_equal(fault_judge_cache(&table, 0, 4608), 2);
    assert_int_equal(fault_judge_cache(&table, 7680, 8192), 2);
    assert_int_equal(fault_judge_cache(&table, 8192, 9216), 0);
}

static void test_rules_of_rdma_know_queue_pairs_and_requests(void **state)
{
    struct fault_table table = {0};

    (void)state;
    add_rule(&table, "id=1 site=rdma do=nak argument=2 qpn=5 ops=1");
    assert_int_equal(fault_judge_request(&table, 6, FAULT_REQUEST_SEND).action,
                     FAULT_NONE);
    assert_int_equal(fault_judge_request(&table, 5, FAULT_REQUEST_READ).action,
                     FAULT_NONE);
    assert_int_equal(fault_judge_request(&table, 5, FAULT_REQUEST_SEND).action,
                     FAULT_NAK);
}

static void test_rules_of_rdma_judge_fpdus(void **state)
{
    struct fault_table table = {0};

    (void)state;
    add_rule(&table, "id=1 site=rdma do=bad-checksum argument=0 qpn=5 nth=2");
    assert_false(fault_judge_fpdu(&table, 6));
    assert_false(fault_judge_fpdu(&table, 5));
    assert_int_equal(fault_judge_request(&table, 5, FAULT_REQUEST_SEND).action,
                     FAULT_NONE);
    assert_false(fault_judge_transfer(&table, 5, FAULT_IN));
    assert_true(fault_judge_fpdu(&table, 5));
    assert_false(fault_judge_fpdu(&table, 5));
}

static void test_rules_of_rdma_know_the_direction_of_transfers(void **state)
{
    struct fault_table table = {0};

    (void)state;
    add_rule(&table,
             "id=1 site=rdma do=transfer argument=0 directions=2 nth=2");
    assert_int_equal(fault_judge_request(&table, 5, FAULT_REQUEST_SEND).action,
                     FAULT_NONE);
    assert_false(fault_judge_transfer(&table, 5, FAULT_IN));
    assert_false(fault_judge_transfer(&table, 5, FAULT_OUT));
    assert_true(fault_judge_transfer(&table, 5, FAULT_OUT));
    assert_false(fault_judge_transfer(&table, 5, FAULT_OUT));
}

TEST_FIXTURE(NULL, NULL)

static void test_rules_of_nand_know_operations_stages_and_places(void **state)
{
    const int32_t place[FAULT_PLACES] = {1, 0, 3, 7, 2, -1, -1};
    const int32_t other[FAULT_PLACES] = {1, 0, 3, 10, 2, -1, -1};
    const uint32_t begins = BIT(FAULT_DIE), plane = BIT(FAULT_ERROR);
    struct fault_table table = {0};
    struct fault_rule rule;
    const char *wrong;

    (void)state;
    add_rule(&table, "id=1 site=nand do=error argument=0 ops=2 place=0:1:1 "
                     "place=3:7:9 place=5:2:2");
    assert_int_equal(fault_judge_nand(&table, 2, plane, place).action,
                     FAULT_ERROR);
    assert_int_equal(fault_judge_nand(&table, 4, plane, place).action,
                     FAULT_NONE);
    assert_int_equal(fault_judge_nand(&table, 2, begins, place).action,
                     FAULT_NONE);
    assert_int_equal(fault_judge_nand(&table, 2, plane, other).action,
                     FAULT_NONE);
    assert_int_equal(fault_table_find(&table, 1)->trigger.matched, 1);
    assert_false(
        fault_rule_parse("id=1 site=nand do=error place=7:0:0", &rule, &wrong));
    assert_false(
        fault_rule_parse("id=1 site=nand do=error place=1:3:2", &rule, &wrong));
    assert_false(
        fault_rule_parse("id=1 site=nand do=error place=1:3", &rule, &wrong));
    assert_false(fault_rule_parse("id=1 site=media do=die", &rule, &wrong));
}
