/* SPDX-License-Identifier: BSD-2-Clause */
/* The members of a fault rule: docs/management.md, docs/faults.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/requests/fault_request.h"
#include "nvmeof/wire/cqe.h"

static struct fault_request rule;

static bool read_rule(const char *text)
{
    static char buf[512]; /* the members point into it */
    struct json_args args;

    strcpy(buf, text);
    assert_true(json_parse(&args, buf));
    return fault_request_read(&args, &rule);
}

static void test_a_rule_matches_everything_unless_it_is_told_less(void **state)
{
    (void)state;
    assert_true(read_rule("{\"rule\":7,\"do\":\"drop\"}"));
    assert_false(rule.is_pdu);
    assert_int_equal(rule.nvme.id, 7);
    assert_int_equal(rule.nvme.action, NVMF_FAULT_DROP);
    assert_int_equal(rule.nvme.queue, NVMF_FAULT_ANY_QUEUE);
    assert_int_equal(rule.nvme.opcode, NVMF_FAULT_ANY);
    assert_int_equal(rule.nvme.cntlid, NVMF_FAULT_ANY);
    assert_int_equal(rule.nvme.nsid, NVMF_FAULT_ANY);
    assert_false(rule.nvme.has_lba);
    assert_true(rule.nvme.trigger.chance == FAULT_CHANCE_ALWAYS);
    assert_int_equal(rule.nvme.trigger.times, 0);
    assert_int_equal(rule.nvme.trigger.random, 1);
}

static void test_a_rule_is_read_whole(void **state)
{
    (void)state;
    assert_true(read_rule(
        "{\"rule\":4294967295,\"place\":\"nvme\",\"do\":\"status\",\"status\":"
        "641,"
        "\"queue\":\"io\",\"opcode\":2,\"nsid\":3,\"controller\":4,"
        "\"first-lba\":5,\"last-lba\":6,\"nth\":7,\"every\":8,\"after\":9,"
        "\"times\":10,\"chance\":11,\"seed\":12}"));
    assert_int_equal(rule.nvme.id, UINT32_MAX);
    assert_int_equal(rule.nvme.action, NVMF_FAULT_STATUS);
    assert_int_equal(rule.nvme.status, 641);
    assert_int_equal(rule.nvme.queue, NVMF_FAULT_IO_QUEUE);
    assert_int_equal(rule.nvme.opcode, 2);
    assert_int_equal(rule.nvme.nsid, 3);
    assert_int_equal(rule.nvme.cntlid, 4);
    assert_true(rule.nvme.has_lba);
    assert_int_equal(rule.nvme.first_lba, 5);
    assert_int_equal(rule.nvme.last_lba, 6);
    assert_int_equal(rule.nvme.trigger.nth, 7);
    assert_int_equal(rule.nvme.trigger.every, 8);
    assert_int_equal(rule.nvme.trigger.after, 9);
    assert_int_equal(rule.nvme.trigger.times, 10);
    assert_int_equal(rule.nvme.trigger.chance, 11);
    assert_int_equal(rule.nvme.trigger.random, 12);
}

static void test_a_queue_is_a_kind_or_a_number(void **state)
{
    (void)state;
    assert_true(read_rule("{\"rule\":1,\"do\":\"drop\",\"queue\":\"admin\"}"));
    assert_int_equal(rule.nvme.queue, NVMF_FAULT_ADMIN_QUEUE);
    assert_true(read_rule("{\"rule\":1,\"do\":\"drop\",\"qid\":0}"));
    assert_int_equal(rule.nvme.queue, NVMF_FAULT_QID);
    assert_int_equal(rule.nvme.qid, 0);
    assert_true(read_rule("{\"rule\":1,\"do\":\"drop\",\"qid\":65535}"));
    assert_int_equal(rule.nvme.qid, UINT16_MAX);
}

static void test_a_rule_for_pdus_is_read_whole(void **state)
{
    (void)state;
    assert_true(
        read_rule("{\"rule\":2,\"place\":\"pdu\",\"do\":\"data-digest\"}"));
    assert_true(rule.is_pdu);
    assert_int_equal(rule.pdu.action, NVME_TCP_FAULT_DATA_DIGEST);
    assert_int_equal(rule.pdu.type, NVME_TCP_FAULT_ANY);
    assert_true(rule.pdu.is_in && rule.pdu.is_out);
    assert_true(
        read_rule("{\"rule\":2,\"place\":\"pdu\",\"do\":\"reset\",\"type\":7,"
                  "\"directions\":2,\"qid\":1,\"nth\":3}"));
    assert_int_equal(rule.pdu.id, 2);
    assert_int_equal(rule.pdu.action, NVME_TCP_FAULT_RESET);
    assert_int_equal(rule.pdu.type, 7);
    assert_true(!rule.pdu.is_in && rule.pdu.is_out);
    assert_int_equal(rule.pdu.queue, NVMF_FAULT_QID);
    assert_int_equal(rule.pdu.qid, 1);
    assert_int_equal(rule.pdu.trigger.nth, 3);
}

static void test_limits_are_allowed(void **state)
{
    (void)state;
    assert_true(
        read_rule("{\"rule\":1,\"do\":\"delay\",\"delay-us\":4294967295}"));
    assert_true(rule.nvme.delay_us == UINT32_MAX);
    assert_true(read_rule("{\"rule\":1,\"do\":\"status\",\"status\":18431}"));
    assert_int_equal(rule.nvme.status, 0x7ff | NVME_STATUS_DNR);
    assert_true(read_rule("{\"rule\":1,\"do\":\"drop\",\"opcode\":255,"
                          "\"controller\":65535,\"nsid\":4294967295}"));
    assert_true(read_rule("{\"rule\":1,\"do\":\"drop\",\"chance\":0}"));
    assert_int_equal(rule.nvme.trigger.chance, 0);
}

static void test_what_is_wrong_is_refused(void **state)
{
    static const char *const wrong[] = {
        "{\"do\":\"drop\"}",
        "{\"rule\":0,\"do\":\"drop\"}",
        "{\"rule\":4294967296,\"do\":\"drop\"}",
        "{\"rule\":\"1\",\"do\":\"drop\"}",
        "{\"rule\":1}",
        "{\"rule\":1,\"do\":\"burn\"}",
        "{\"rule\":1,\"do\":\"reset\"}",
        "{\"rule\":1,\"do\":\"drop\",\"place\":\"frame\"}",
        "{\"rule\":1,\"do\":\"drop\",\"place\":\"pdu\"}",
        "{\"rule\":1,\"do\":\"delay\"}",
        "{\"rule\":1,\"do\":\"delay\",\"delay-us\":4294967296}",
        "{\"rule\":1,\"do\":\"status\"}",
        "{\"rule\":1,\"do\":\"status\",\"status\":0}",
        "{\"rule\":1,\"do\":\"status\",\"status\":16384}", /* DNR alone */
        "{\"rule\":1,\"do\":\"status\",\"status\":2048}",  /* no status's bit */
        "{\"rule\":1,\"do\":\"status\",\"status\":65535}",
        "{\"rule\":1,\"do\":\"drop\",\"queue\":\"cq\"}",
        "{\"rule\":1,\"do\":\"drop\",\"qid\":65536}",
        "{\"rule\":1,\"do\":\"drop\",\"opcode\":256}",
        "{\"rule\":1,\"do\":\"drop\",\"controller\":65536}",
        "{\"rule\":1,\"do\":\"drop\",\"nsid\":4294967296}",
        "{\"rule\":1,\"do\":\"drop\",\"nth\":4294967296}",
        "{\"rule\":1,\"do\":\"drop\",\"every\":4294967296}",
        "{\"rule\":1,\"do\":\"drop\",\"after\":4294967296}",
        "{\"rule\":1,\"do\":\"drop\",\"times\":4294967296}",
        "{\"rule\":1,\"do\":\"drop\",\"chance\":4294967297}",
        "{\"rule\":1,\"place\":\"pdu\",\"do\":\"reset\",\"type\":256}",
        "{\"rule\":1,\"place\":\"pdu\",\"do\":\"reset\",\"directions\":0}",
        "{\"rule\":1,\"place\":\"pdu\",\"do\":\"reset\",\"directions\":4}",
        "{\"rule\":1,\"place\":\"pdu\",\"do\":\"reset\",\"qid\":65536}",
        "{\"rule\":1,\"place\":\"pdu\",\"do\":\"reset\",\"chance\":4294967297}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        if (read_rule(wrong[i])) {
            fail_msg("%s was taken", wrong[i]);
        }
    }
}
