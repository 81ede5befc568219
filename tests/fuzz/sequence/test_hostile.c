/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named tests of the hostile peer: its sequences reach what they are meant to
 * reach, and the sequences that once broke the drive no longer do.
 */
#include "tests/fuzz/sequence/sequence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/bytes.h"
#include "nvmeof/wire/opcode.h"
#include "tests/test_fixture.h"

/* Run it in the world that exists. */
static void run_on(const struct sequence_step *steps, size_t count)
{
    uint8_t data[SEQUENCE_STEPS_MAX * SEQUENCE_STEP_LEN];

    assert_true(count <= SEQUENCE_STEPS_MAX);
    for (size_t i = 0; i < count; i++) {
        sequence_step_emit(&steps[i], data + i * SEQUENCE_STEP_LEN);
    }
    sequence_run(data, count * SEQUENCE_STEP_LEN);
}

static void run_steps(const struct sequence_step *steps, size_t count)
{
    sequence_end();
    run_on(steps, count);
}

#define RUN(steps) run_steps(steps, ARRAY_LEN(steps))

static int teardown(void **state)
{
    (void)state;
    sequence_end();
    return 0;
}

static const struct peer_queue *hostile_queue(unsigned int index)
{
    return &sequence_peer()->queues[index];
}

/* ---- Tests of the peer: when it behaves it is served. */

static void test_a_peer_that_behaves_gets_its_responses(void **state)
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
    assert_int_equal(hostile_queue(0)->responses, 3);
    assert_int_equal(hostile_queue(0)->last_status, 0);
    assert_int_equal(hostile_queue(1)->responses, 5);
    assert_int_equal(hostile_queue(1)->last_status, 0);
}

static void test_a_peer_that_behaves_is_served_over_ipv6(void **state)
{
    static const struct sequence_step steps[] = {
        {STEP_HABITS, PEER_HABITS, 0, 2, 0},
        {STEP_OPEN, 0, OPEN_ENABLE, 0, 0},
        {STEP_COMMAND, 0, COMMAND_IDENTIFY, CNS_CONTROLLER, 0},
        {STEP_TIME, 10, 0, 0, 0},
    };

    (void)state;
    RUN(steps);
    assert_int_equal(hostile_queue(0)->responses, 3);
    assert_int_equal(hostile_queue(0)->last_status, 0);
}

static void test_a_changed_field_reaches_the_drive(void **state)
{
    static const struct sequence_step steps[] = {
        {STEP_OPEN, 0, OPEN_ENABLE, 0, 0},
        {STEP_BEND, PEER_LAYER_PAYLOAD, 1, SQE_OPCODE, 0xee},
        {STEP_COMMAND, 0, COMMAND_KEEP_ALIVE, 0, 0},
        {STEP_TIME, 10, 0, 0, 0},
    };

    (void)state;
    RUN(steps);
    assert_int_equal(hostile_queue(0)->responses, 3);
    assert_int_equal(hostile_queue(0)->last_status & NVME_SC_MASK,
                     NVME_SC_INVALID_OPCODE);
}

static void test_event_requests_wait_for_events(void **state)
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
    assert_int_equal(hostile_queue(0)->responses, 3);
}

/* ---- Sequences that once broke the drive. */

enum { AT_MAD = PEER_LAYER_MAD, FOUR = 3, ONE = 1 };

/* The numbers of a host's connection are visible on the wire. */
struct victim {
    uint32_t guid[2];
    uint32_t comm_id, drive_comm_id;
    uint32_t qpn, drive_qpn;
};

static struct victim find_victim(void)
{
    const struct native_host *host;
    const struct cm_conn *cm;

    sequence_end();
    sequence_run(NULL, 0);
    host = sequence_host();
    cm = host->host.conn[1].cm;
    return (struct victim){
        .guid = {get_be32(host->identity.ca_guid),
                 get_be32(host->identity.ca_guid + 4)},
        .comm_id = cm->local_comm_id,
        .drive_comm_id = cm->remote_comm_id,
        .qpn = host->host.conn[1].queue.qpn,
        .drive_qpn = cm->remote_qpn,
    };
}

/* The drive found stale connections by the peer's GUID and numbers, and did not
 * check that they belonged to the sender. */
static void test_a_req_in_the_name_of_a_host_does_not_end_its_connection(
    void **state)
{
    struct victim v = find_victim();
    const struct sequence_step by_qpn[] = {
        {STEP_BEND, AT_MAD, FOUR, CM_REQ_LOCAL_CA_GUID, v.guid[0]},
        {STEP_BEND, AT_MAD, FOUR, CM_REQ_LOCAL_CA_GUID + 4, v.guid[1]},
        {STEP_BEND, AT_MAD, FOUR, CM_REQ_LOCAL_QPN, v.qpn << 8 | 4},
        {STEP_REQ, 0, 0, 0, 0},
    };
    const struct sequence_step by_id[] = {
        {STEP_BEND, AT_MAD, FOUR, CM_REQ_LOCAL_CA_GUID, v.guid[0]},
        {STEP_BEND, AT_MAD, FOUR, CM_REQ_LOCAL_CA_GUID + 4, v.guid[1]},
        {STEP_BEND, AT_MAD, FOUR, CM_REQ_LOCAL_COMM_ID, v.comm_id},
        {STEP_REQ, 0, 0, 0, 0},
    };

    (void)state;
    run_on(by_qpn, ARRAY_LEN(by_qpn));
    run_on(by_id, ARRAY_LEN(by_id));
}

/* The drive did not check who sent a REJ or a DREQ. */
static void test_only_the_peer_can_reject_or_end_a_connection(void **state)
{
    struct victim v = find_victim();
    const struct sequence_step rej[] = {
        {STEP_BEND, AT_MAD, FOUR, CM_REJ_LOCAL_COMM_ID, v.comm_id},
        {STEP_BEND, AT_MAD, ONE, CM_REJ_INFO_LEN, 8 << 1},
        {STEP_BEND, AT_MAD, FOUR, CM_REJ_ARI, v.guid[0]},
        {STEP_BEND, AT_MAD, FOUR, CM_REJ_ARI + 4, v.guid[1]},
        {STEP_CM, 0, 3, CM_ANSWERS_REP, CM_REJ_TIMEOUT},
    };
    const struct sequence_step dreq[] = {
        {STEP_BEND, AT_MAD, FOUR, CM_DREQ_LOCAL_COMM_ID, v.comm_id},
        {STEP_BEND, AT_MAD, FOUR, CM_DREQ_REMOTE_COMM_ID, v.drive_comm_id},
        {STEP_BEND, AT_MAD, FOUR, CM_DREQ_REMOTE_QPN, v.drive_qpn << 8},
        {STEP_CM, 0, 1, 0, 0},
    };

    (void)state;
    run_on(rej, ARRAY_LEN(rej));
    run_on(dreq, ARRAY_LEN(dreq));
}

TEST_FIXTURE(NULL, teardown)
