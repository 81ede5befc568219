/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hostile peer, by name: that its sequences get as far as they are meant
 * to, and each sequence that once broke the drive.
 */
#include "tests/fuzz/sequence/sequence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "nvmeof/wire/opcode.h"

static void run(const struct sequence_step *steps, size_t count)
{
    uint8_t data[SEQUENCE_STEPS_MAX * SEQUENCE_STEP_LEN];

    assert_true(count <= SEQUENCE_STEPS_MAX);
    for (size_t i = 0; i < count; i++) {
        sequence_step_emit(&steps[i], data + i * SEQUENCE_STEP_LEN);
    }
    sequence_end();
    sequence_run(data, count * SEQUENCE_STEP_LEN);
}

#define RUN(steps) run(steps, ARRAY_LEN(steps))

static int teardown(void **state)
{
    (void)state;
    sequence_end();
    return 0;
}

static const struct peer_queue *queue(unsigned int index)
{
    return &sequence_peer()->queues[index];
}

/* ---- The test itself: a peer that behaves gets served. */

static void test_a_peer_that_behaves_gets_its_answers(void **state)
{
    static const struct sequence_step steps[] = {
        {STEP_OPEN, 0, OPEN_ENABLE, 0, 0},
        {STEP_OPEN, 1, OPEN_CONNECT, 0, 0},
        {STEP_COMMAND, 0, COMMAND_IDENTIFY, CNS_CONTROLLER, 0},
        {STEP_COMMAND, 1, COMMAND_WRITE, 0, 9000},
        {STEP_COMMAND, 1, COMMAND_WRITE, 15, 9001},
        {STEP_COMMAND, 1, COMMAND_READ, 15, 9001},
        {STEP_COMMAND, 1, COMMAND_FLUSH, 0, 0},
        {STEP_TIME, 10, 0, 0, 0},
    };

    (void)state;
    RUN(steps);
    assert_int_equal(queue(0)->responses, 3);
    assert_int_equal(queue(0)->last_status, 0);
    assert_int_equal(queue(1)->responses, 5);
    assert_int_equal(queue(1)->last_status, 0);
}

static void test_a_peer_behaves_by_ipv6_too(void **state)
{
    static const struct sequence_step steps[] = {
        {STEP_HABITS, PEER_HABITS, 0, 2, 0},
        {STEP_OPEN, 0, OPEN_ENABLE, 0, 0},
        {STEP_COMMAND, 0, COMMAND_IDENTIFY, CNS_CONTROLLER, 0},
        {STEP_TIME, 10, 0, 0, 0},
    };

    (void)state;
    RUN(steps);
    assert_int_equal(queue(0)->responses, 3);
    assert_int_equal(queue(0)->last_status, 0);
}

static void test_a_bent_field_arrives_bent(void **state)
{
    static const struct sequence_step steps[] = {
        {STEP_OPEN, 0, OPEN_ENABLE, 0, 0},
        {STEP_BEND, PEER_LAYER_PAYLOAD, 1, SQE_OPCODE, 0xee},
        {STEP_COMMAND, 0, COMMAND_KEEP_ALIVE, 0, 0},
        {STEP_TIME, 10, 0, 0, 0},
    };

    (void)state;
    RUN(steps);
    assert_int_equal(queue(0)->responses, 3);
    assert_int_equal(queue(0)->last_status & NVME_SC_MASK,
                     NVME_SC_INVALID_OPCODE);
}

static void test_event_requests_are_held(void **state)
{
    static const struct sequence_step steps[] = {
        {STEP_OPEN, 0, OPEN_ENABLE, 0, 0},
        {STEP_COMMAND, 0, COMMAND_EVENT, 0, 0},
        {STEP_COMMAND, 0, COMMAND_EVENT, 0, 0},
        {STEP_COMMAND, 0, COMMAND_KEEP_ALIVE, 0, 0},
        {STEP_TIME, 10, 0, 0, 0},
    };

    (void)state;
    RUN(steps);
    assert_int_equal(queue(0)->responses, 3);
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, teardown)
    const struct CMUnitTest tests[] = {
        T(test_a_peer_that_behaves_gets_its_answers),
        T(test_a_peer_behaves_by_ipv6_too),
        T(test_a_bent_field_arrives_bent),
        T(test_event_requests_are_held),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
