/* SPDX-License-Identifier: BSD-2-Clause */
/* MCTP control messages, byte by byte: DSP0236 1.3.1, clause 12. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firmware/bmc/mctp_control.h"

#include <string.h>

static const struct mctp_control start = {
    .eid = 0x09,
    .uuid = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
};

/* One request to an endpoint in the state `start`, and the whole response. */
struct control_row {
    size_t len;
    uint8_t request[8];
    size_t response_len;
    uint8_t response[MCTP_CONTROL_MAX];
};

static void check_row(const struct control_row *row, uint8_t eid)
{
    struct mctp_control control = start;
    uint8_t response[MCTP_CONTROL_MAX];

    memset(response, 0xa5, sizeof(response));
    assert_int_equal(
        mctp_control_execute(&control, row->request, row->len, response),
        row->response_len);
    assert_memory_equal(response, row->response, row->response_len);
    for (size_t i = row->response_len; i < sizeof(response); i++) {
        assert_int_equal(response[i], 0xa5);
    }
    assert_int_equal(control.eid, eid);
    assert_memory_equal(control.uuid, start.uuid, MCTP_UUID_LEN);
}

static void test_an_identifier_is_assigned(void **state)
{
    static const struct control_row set = {
        5, {0, 0x83, 1, 0, 0x42}, 7, {0, 0x03, 1, 0, 0, 0x42, 0}};
    static const struct control_row force = {
        5, {0, 0x9f, 1, 1, 0xfe}, 7, {0, 0x1f, 1, 0, 0, 0xfe, 0}};
    static const struct control_row lowest = {
        5, {0, 0x80, 1, 0, 0x08}, 7, {0, 0x00, 1, 0, 0, 0x08, 0}};

    (void)state;
    check_row(&set, 0x42);
    check_row(&force, 0xfe);
    check_row(&lowest, 0x08);
}

static void test_a_wrong_assignment_is_refused(void **state)
{
    static const struct control_row rows[] = {
        {5, {0, 0x80, 1, 0, 0x00}, 4, {0, 0, 1, 2}}, /* the null identifier */
        {5, {0, 0x80, 1, 0, 0x07}, 4, {0, 0, 1, 2}}, /* a reserved one */
        {5, {0, 0x80, 1, 0, 0xff}, 4, {0, 0, 1, 2}}, /* broadcast */
        {5, {0, 0x80, 1, 2, 0x42}, 4, {0, 0, 1, 2}}, /* Reset EID */
        {5, {0, 0x80, 1, 3, 0x42}, 4, {0, 0, 1, 2}}, /* Set Discovered Flag */
        {4, {0, 0x80, 1, 0}, 4, {0, 0, 1, 3}},       /* too short */
        {3, {0, 0x80, 1}, 4, {0, 0, 1, 3}},
        {6, {0, 0x80, 1, 0, 0x42, 0}, 4, {0, 0, 1, 3}}, /* too long */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_row(&rows[i], start.eid);
    }
}

static void test_what_the_endpoint_is(void **state)
{
    static const struct control_row rows[] = {
        {3, {0, 0x81, 2}, 7, {0, 1, 2, 0, 0x09, 0, 0}},
        {3, {0, 0x82, 3}, 20, {0, 2, 3, 0, 0,  1,  2,  3,  4,  5,
                               6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        /* MCTP is version 1.3.1, NVMe-MI over MCTP is 1.1.0. */
        {4, {0, 0x84, 4, 0xff}, 9, {0, 4, 4, 0, 1, 0xf1, 0xf3, 0xf1, 0}},
        {4, {0, 0x84, 4, 0x00}, 9, {0, 4, 4, 0, 1, 0xf1, 0xf3, 0xf1, 0}},
        {4, {0, 0x84, 4, 0x04}, 9, {0, 4, 4, 0, 1, 0xf1, 0xf1, 0xf0, 0}},
        {4, {0, 0x84, 4, 0x05}, 4, {0, 4, 4, 0x80}},
        {3, {0, 0x85, 5}, 6, {0, 5, 5, 0, 1, 4}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_row(&rows[i], start.eid);
    }
}

static void test_other_commands_are_unsupported(void **state)
{
    (void)state;
    for (unsigned int command = 0; command <= 0xff; command++) {
        struct control_row row = {
            3, {0, 0x80, (uint8_t)command}, 4, {0, 0, (uint8_t)command, 5}};

        if (command == 0 || command > 5) {
            check_row(&row, start.eid);
        }
    }
}

static void test_what_is_no_request_is_not_answered(void **state)
{
    static const struct control_row rows[] = {
        {.len = 3, .request = {0, 0x00, 2}},          /* a response */
        {.len = 3, .request = {0, 0xc0, 2}},          /* a datagram */
        {.len = 5, .request = {0, 0xc0, 1, 0, 0x42}}, /* changes nothing */
        {.len = 2, .request = {0, 0x80}},
        {.len = 1, .request = {0}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_row(&rows[i], start.eid);
    }
}
