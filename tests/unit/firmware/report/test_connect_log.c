/* SPDX-License-Identifier: BSD-2-Clause */
/* What the console says of connections, and how much of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/hal/time.h"
#include "firmware/report/connect_log.h"
#include "nvmeof/auth/auth_wire.h"
#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/fabrics.h"
#include "tests/test_fixture.h"

enum { LINES_AT_ONCE = 8, SECOND_US = 1000000 };

static struct log the_log;
static struct connect_log connections;
static struct trace_record traced;
static unsigned int traces;
static char traced_text[256];
static uint32_t mask;

uint64_t hal_now_us(void)
{
    return 0;
}

static void keep_trace(void *ctx, const struct trace_record *record,
                       const char *text)
{
    (void)ctx;
    traces++;
    traced = *record;
    (void)snprintf(traced_text, sizeof(traced_text), "%s", text);
}

static const struct trace trace = {.mask = &mask, .emit = keep_trace};

static int start_log(void **state)
{
    (void)state;
    log_init(&the_log, (struct log_sink){0});
    connections = (struct connect_log){.log = &the_log, .trace = &trace};
    mask = 0;
    traces = 0;
    return 0;
}

TEST_FIXTURE(start_log, NULL)

/* What was logged since the last call. */
static const char *new_text(void)
{
    static char text[LOG_RING_BYTES + 1];
    size_t len = the_log.head - the_log.tail;

    for (size_t i = 0; i < len; i++) {
        text[i] = the_log.ring[(the_log.tail + i) % LOG_RING_BYTES];
    }
    text[len] = '\0';
    the_log.tail = the_log.head;
    return text;
}

static unsigned int count_lines(const char *text)
{
    unsigned int count = 0;

    for (; *text != '\0'; text++) {
        count += *text == '\n';
    }
    return count;
}

static struct nvmf_connect_end refused_connect(uint16_t status, uint32_t field)
{
    struct nvmf_connect_end end = {
        .qid = 3,
        .status = status,
        .field = field,
        .label = 17,
        .request = 5,
        .hostnqn = "nqn.2014-08.org.example:host",
        .host = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2},
    };

    return end;
}

static void expect_reason(uint16_t status, uint32_t field, const char *reason)
{
    struct nvmf_connect_end end = refused_connect(status, field);
    const char *text;

    connections.used = 0;
    connect_log_end(&connections, &end);
    text = new_text();
    if (strstr(text, reason) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", reason, text);
    }
    assert_non_null(strstr(text, "10.0.0.2: Connect to queue 3 refused"));
    assert_non_null(strstr(text, "host nqn.2014-08.org.example:host"));
    assert_int_equal(count_lines(text), 1);
}

static void test_each_refusal_has_its_reason(void **state)
{
    (void)state;
    expect_reason(NVME_SC_CONNECT_INVALID, CONNECT_QID,
                  "the queue ID is not allowed");
    expect_reason(NVME_SC_CONNECT_INVALID, CONNECT_SQSIZE,
                  "the queue size is out of range");
    expect_reason(NVME_SC_CONNECT_INVALID,
                  CONNECT_DATA_SUBNQN | CONNECT_IATTR_DATA,
                  "there is no such subsystem");
    expect_reason(NVME_SC_CONNECT_INVALID,
                  CONNECT_DATA_HOSTNQN | CONNECT_IATTR_DATA,
                  "the host NQN is missing or differs");
    expect_reason(NVME_SC_CONNECT_INVALID,
                  CONNECT_DATA_HOSTID | CONNECT_IATTR_DATA,
                  "the host ID differs");
    expect_reason(NVME_SC_CONNECT_INVALID,
                  CONNECT_DATA_CNTLID | CONNECT_IATTR_DATA,
                  "there is no such controller here");
    /* The same offset in the command means something else. */
    expect_reason(NVME_SC_CONNECT_INVALID, CONNECT_DATA_CNTLID,
                  "a parameter is invalid");
    expect_reason(NVME_SC_CONNECT_BUSY, 0, "no controller is free");
    expect_reason(NVME_SC_CONNECT_INVALID_HOST, 0,
                  "the host is not on the list of allowed hosts");
    expect_reason(NVME_SC_CONNECT_FORMAT, 0, "the record format is unknown");
    expect_reason(NVME_SC_COMMAND_SEQUENCE, 0,
                  "the queue is connected already");
    expect_reason(NVME_SC_INVALID_FIELD, 0, "the command is malformed");
}

static void test_a_refusal_for_the_key_of_tls_has_its_reason(void **state)
{
    struct nvmf_connect_end end =
        refused_connect(NVME_SC_CONNECT_INVALID_HOST, 0);

    (void)state;
    end.is_other_host = true;
    connect_log_end(&connections, &end);
    assert_non_null(strstr(new_text(),
                           "the key of TLS is another host's or association's, "
                           "or not in force"));
}

static void test_what_is_not_printable_in_a_name_is_a_question_mark(
    void **state)
{
    struct nvmf_connect_end end = refused_connect(NVME_SC_CONNECT_BUSY, 0);

    (void)state;
    mask = BIT(TRACE_GROUP_CM);
    strcpy(end.hostnqn, "nqn.\x1b[2J\n\x7f\xc3host");
    connect_log_end(&connections, &end);
    assert_non_null(strstr(new_text(), "host nqn.?[2J???host"));
    assert_string_equal(traced_text, "nqn.?[2J???host");
}

static void test_a_host_without_a_name_is_unknown(void **state)
{
    struct nvmf_connect_end end = refused_connect(NVME_SC_CONNECT_BUSY, 0);

    (void)state;
    end.hostnqn[0] = '\0';
    connect_log_end(&connections, &end);
    assert_non_null(strstr(new_text(), "host unknown"));
}

static void test_every_end_is_traced_if_the_trace_wants_it(void **state)
{
    struct nvmf_connect_end end = refused_connect(0, 0);

    (void)state;
    end.cntlid = 9;
    connect_log_end(&connections, &end);
    assert_int_equal(traces, 0);
    mask = BIT(TRACE_GROUP_CM);
    connect_log_end(&connections, &end);
    assert_int_equal(traces, 1);
    assert_int_equal(traced.type, TRACE_CONNECT);
    assert_int_equal(traced.qpn, 17);
    assert_int_equal(traced.request, 5);
    assert_int_equal(traced.arg[0], 0);
    assert_int_equal(traced.arg[1], 3);
    assert_int_equal(traced.arg[2], 9);
    assert_string_equal(new_text(), ""); /* a success is no refusal */
}

static void test_a_flood_of_refusals_leaves_room_for_other_lines(void **state)
{
    struct nvmf_connect_end end = refused_connect(NVME_SC_CONNECT_BUSY, 0);
    const char *text;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        connect_log_end(&connections, &end);
    }
    assert_int_equal(count_lines(new_text()), LINES_AT_ONCE);

    /* A second earns one line, which also says how many were left out. */
    connections.now_us = SECOND_US - 1;
    connect_log_end(&connections, &end);
    assert_int_equal(count_lines(new_text()), 0);
    connections.now_us = SECOND_US;
    connect_log_end(&connections, &end);
    text = new_text();
    assert_int_equal(count_lines(text), 2);
    assert_non_null(strstr(text, "993 more connections were refused"));
    connect_log_end(&connections, &end);
    assert_int_equal(count_lines(new_text()), 0);

    /* A long pause earns no more than was there at first. */
    connections.now_us = 1000 * (uint64_t)SECOND_US;
    for (int i = 0; i < 20; i++) {
        connect_log_end(&connections, &end);
    }
    assert_int_equal(count_lines(new_text()), LINES_AT_ONCE + 1);
}

static void test_refusals_of_all_kinds_share_the_lines(void **state)
{
    struct nvmf_conn_event event = {.trtype = TRTYPE_TCP, .status = 4};
    struct nvmf_auth_end auth = {.qid = 1, .result = NVMF_AUTH_EXPIRED};

    (void)state;
    for (int i = 0; i < LINES_AT_ONCE / 2; i++) {
        connect_log_event(&connections, &event);
        connect_log_auth(&connections, &auth);
    }
    assert_int_equal(count_lines(new_text()), LINES_AT_ONCE);
    connect_log_event(&connections, &event);
    connect_log_auth(&connections, &auth);
    assert_string_equal(new_text(), "");
    assert_int_equal(connections.left_out, 2);
}

static void test_connections_of_admin_queues_are_logged(void **state)
{
    struct nvmf_conn_event event = {.trtype = TRTYPE_RDMA,
                                    .is_connected = true};

    (void)state;
    connections.used = LINES_AT_ONCE; /* these are no refusals */
    connect_log_event(&connections, &event);
    assert_non_null(strstr(new_text(), "nvme-of: RDMA host :: connected"));
    event.is_connected = false;
    connect_log_event(&connections, &event);
    assert_non_null(strstr(new_text(), "RDMA host :: disconnected"));
    event.qid = 1;
    connect_log_event(&connections, &event);
    assert_string_equal(new_text(), "");
    connections.used = 0;
    event.status = 24;
    connect_log_event(&connections, &event);
    assert_non_null(
        strstr(new_text(), "refused: unknown reason (RDMA status 24)"));
    event.reason = "no queue pair is free";
    event.trtype = TRTYPE_TCP;
    connect_log_event(&connections, &event);
    assert_non_null(
        strstr(new_text(), "refused: no queue pair is free (TCP status 24)"));
}

static void test_each_end_of_an_authentication_has_its_reason(void **state)
{
    static const struct {
        uint8_t result, failure;
        const char *text;
    } ends[] = {
        {NVMF_AUTH_EXPIRED, 0, "no message came in time"},
        {NVMF_AUTH_DISPLACED, 0, "too many others are under way"},
        {NVMF_AUTH_SKIPPED, 0, "the host sent another command first"},
        {NVMF_AUTH_REFUSED, AUTH_FAILED_PROOF,
         "the secret of one side is wrong or missing"},
        {NVMF_AUTH_REFUSED, AUTH_FAILED_CONCAT,
         "the host asks for a secure channel that it cannot have"},
        {NVMF_AUTH_REFUSED, AUTH_FAILED_HASH,
         "the host offers only weak hash functions"},
        {NVMF_AUTH_REFUSED, AUTH_FAILED_DH, "the host offers only weak groups"},
        {NVMF_AUTH_REFUSED, AUTH_FAILED_PAYLOAD, "a message is malformed"},
        {NVMF_AUTH_REFUSED, AUTH_FAILED_MESSAGE, "a message came out of order"},
        {NVMF_AUTH_REFUSED, 0xff, "unknown reason"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct nvmf_auth_end end = {.qid = 2,
                                    .result = ends[i].result,
                                    .failure = ends[i].failure,
                                    .hostnqn = "nqn.host\n"};
        const char *text;

        connections.used = 0;
        connect_log_auth(&connections, &end);
        text = new_text();
        assert_non_null(strstr(text, "authentication of queue 2 failed: "));
        if (strstr(text, ends[i].text) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", ends[i].text, text);
        }
        assert_non_null(strstr(text, "host nqn.host?"));
    }
}

static void test_a_proof_is_logged_once_for_each_controller(void **state)
{
    struct nvmf_auth_end end = {.result = NVMF_AUTH_PROVEN,
                                .hash = AUTH_SHA256,
                                .dh = AUTH_FFDHE2048,
                                .hostnqn = "nqn.host"};

    (void)state;
    connect_log_auth(&connections, &end);
    assert_non_null(
        strstr(new_text(), "host nqn.host has authenticated with "));
    end.has_key = true;
    connect_log_auth(&connections, &end);
    assert_non_null(strstr(new_text(), "sha256, group ffdhe2048, and generated "
                                       "a key of TLS"));
    end.qid = 1;
    connect_log_auth(&connections, &end);
    assert_string_equal(new_text(), "");
}
