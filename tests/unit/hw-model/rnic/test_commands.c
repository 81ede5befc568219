/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands: which arguments they refuse, and which objects are in use. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bed.h"
#include "lib/bytes.h"
#include "tests/test_fixture.h"

static int setup(void **state)
{
    struct bed *bed = bed_new();

    bed_start(bed);
    bed_connect(bed, 0, &(struct bed_path){0});
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    bed_free(*state);
    return 0;
}

/* One invalid argument in a command that is valid without it. */
struct row {
    uint8_t opcode;
    uint32_t index;
    uint8_t at, len;
    uint64_t value;
    uint8_t status;
};

static const uint64_t dram_end = BED_BASE + BED_DRAM_LEN;

static void good_arguments(uint8_t opcode, uint8_t *args)
{
    switch (opcode) {
    case RNIC_CMD_MR_CREATE:
        put_le64(args + RNIC_MR_VA, 0x1000);
        put_le64(args + RNIC_MR_LENGTH, 0x1000);
        put_le64(args + RNIC_MR_DRAM, BED_BASE);
        break;
    case RNIC_CMD_CQ_CREATE:
        args[RNIC_CQ_SIZE] = 4;
        put_le64(args + RNIC_CQ_BASE, BED_DATA_ADDR);
        put_le64(args + RNIC_CQ_RECORD, BED_DATA_ADDR + 4096);
        break;
    case RNIC_CMD_RQ_CREATE:
        args[RNIC_RQ_SIZE] = 4;
        put_le64(args + RNIC_RQ_BASE, BED_DATA_ADDR);
        put_le64(args + RNIC_RQ_RECORD, BED_DATA_ADDR + 4096);
        break;
    case RNIC_CMD_QP_CREATE:
        args[RNIC_QP_SQ_SIZE] = 4;
        put_le64(args + RNIC_QP_SQ_BASE, BED_DATA_ADDR);
        put_le64(args + RNIC_QP_SQ_RECORD, BED_DATA_ADDR + 4096);
        break;
    case RNIC_CMD_NEIGH_SET:
        put_le16(args + RNIC_NEIGH_VLAN, 0xffff);
        break;
    default:
        break;
    }
}

static void test_each_bad_argument_has_its_status(void **state)
{
    const struct row rows[] = {
        {200, 0, 0, 0, 0, RNIC_CMD_BAD_OPCODE},
        {RNIC_CMD_PD_CREATE, 256, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_PD_CREATE, 0, 0, 0, 0, RNIC_CMD_IN_USE},
        {RNIC_CMD_PD_DESTROY, 1, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_PD_DESTROY, 0, 0, 0, 0, RNIC_CMD_IN_USE},
        {RNIC_CMD_MR_CREATE, 9, 0, 0, 0, RNIC_CMD_OK},
        {RNIC_CMD_MR_CREATE, 1024, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_MR_CREATE, 1, 0, 0, 0, RNIC_CMD_IN_USE},
        {RNIC_CMD_MR_CREATE, 10, RNIC_MR_PD, 2, 1, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_MR_CREATE, 10, RNIC_MR_LENGTH, 8, 0, RNIC_CMD_BAD_ARGUMENT},
        {RNIC_CMD_MR_CREATE, 10, RNIC_MR_VA, 8, UINT64_MAX - 1,
         RNIC_CMD_BAD_ARGUMENT},
        {RNIC_CMD_MR_CREATE, 10, RNIC_MR_ACCESS, 1, 8, RNIC_CMD_BAD_ARGUMENT},
        {RNIC_CMD_MR_CREATE, 10, RNIC_MR_DRAM, 8, dram_end - 0xfff,
         RNIC_CMD_BAD_ADDRESS},
        {RNIC_CMD_MR_CREATE, 10, RNIC_MR_DRAM, 8, BED_BASE - 1,
         RNIC_CMD_BAD_ADDRESS},
        {RNIC_CMD_MR_DESTROY, 10, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_MR_DESTROY, 9, 0, 0, 0, RNIC_CMD_OK},
        {RNIC_CMD_MR_DESTROY, 9, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_CQ_CREATE, 64, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_CQ_CREATE, 0, 0, 0, 0, RNIC_CMD_IN_USE},
        {RNIC_CMD_CQ_CREATE, 9, RNIC_CQ_HART, 1, 4, RNIC_CMD_BAD_ARGUMENT},
        {RNIC_CMD_CQ_CREATE, 9, RNIC_CQ_SIZE, 1, 0, RNIC_CMD_BAD_ARGUMENT},
        {RNIC_CMD_CQ_CREATE, 9, RNIC_CQ_SIZE, 1, 17, RNIC_CMD_BAD_ARGUMENT},
        {RNIC_CMD_CQ_CREATE, 9, RNIC_CQ_BASE, 8, BED_BASE + 32,
         RNIC_CMD_BAD_ADDRESS},
        {RNIC_CMD_CQ_CREATE, 9, RNIC_CQ_BASE, 8, dram_end - 64,
         RNIC_CMD_BAD_ADDRESS},
        {RNIC_CMD_CQ_CREATE, 9, RNIC_CQ_RECORD, 8, BED_BASE + 2,
         RNIC_CMD_BAD_ADDRESS},
        {RNIC_CMD_CQ_CREATE, 9, 0, 0, 0, RNIC_CMD_OK},
        {RNIC_CMD_CQ_DESTROY, 0, 0, 0, 0, RNIC_CMD_IN_USE},
        {RNIC_CMD_CQ_DESTROY, 9, 0, 0, 0, RNIC_CMD_OK},
        {RNIC_CMD_CQ_DESTROY, 9, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_RQ_CREATE, 1026, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_RQ_CREATE, 0, 0, 0, 0, RNIC_CMD_IN_USE},
        {RNIC_CMD_RQ_CREATE, 9, RNIC_RQ_SIZE, 1, 16, RNIC_CMD_BAD_ARGUMENT},
        {RNIC_CMD_RQ_CREATE, 9, RNIC_RQ_PD, 2, 1, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_RQ_CREATE, 9, RNIC_RQ_RECORD, 8, dram_end,
         RNIC_CMD_BAD_ADDRESS},
        {RNIC_CMD_RQ_DESTROY, 0, 0, 0, 0, RNIC_CMD_IN_USE},
        {RNIC_CMD_RQ_DESTROY, 9, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_QP_CREATE, 2048, 0, 0, 0, RNIC_CMD_BAD_INDEX}, /* slot 0 */
        {RNIC_CMD_QP_CREATE, 1026, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_QP_CREATE, 0xffffff, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_QP_CREATE, 0x1000801, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_QP_CREATE, BED_SLOT, 0, 0, 0, RNIC_CMD_IN_USE},
        {RNIC_CMD_QP_CREATE, 1, 0, 0, 0, RNIC_CMD_BAD_ARGUMENT}, /* RC */
        {RNIC_CMD_QP_CREATE, 99, RNIC_QP_TYPE, 1, RNIC_QP_TYPES,
         RNIC_CMD_BAD_ARGUMENT},
        {RNIC_CMD_QP_CREATE, 99, RNIC_QP_SQ_SIZE, 1, 11, RNIC_CMD_BAD_ARGUMENT},
        {RNIC_CMD_QP_CREATE, 99, RNIC_QP_PD, 2, 1, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_QP_CREATE, 99, RNIC_QP_SEND_CQ, 2, 64, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_QP_CREATE, 99, RNIC_QP_RECV_CQ, 2, 5, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_QP_CREATE, 99, RNIC_QP_RQ, 2, 1025, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_QP_CREATE, 99, RNIC_QP_RQ, 2, 1026, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_QP_CREATE, 99, RNIC_QP_SQ_BASE, 8, BED_BASE + 8,
         RNIC_CMD_BAD_ADDRESS},
        {RNIC_CMD_QP_CREATE, 99, RNIC_QP_SQ_RECORD, 8, 0, RNIC_CMD_BAD_ADDRESS},
        {RNIC_CMD_QP_DESTROY, 99, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_QP_DESTROY, 1026, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_QP_MODIFY, 0xffffff, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_QP_QUERY, 2047, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_DRAIN, 1026, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_QP_QUERY, BED_SLOT, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_QP_MODIFY, BED_SLOT, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_DRAIN, BED_SLOT, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_LADDR_SET, 8, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_LADDR_SET, 7, RNIC_LADDR_PORT, 1, 2, RNIC_CMD_BAD_ARGUMENT},
        {RNIC_CMD_LADDR_CLEAR, 7, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_NEIGH_SET, 1024, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        {RNIC_CMD_NEIGH_SET, 9, RNIC_NEIGH_PORT, 1, 2, RNIC_CMD_BAD_ARGUMENT},
        {RNIC_CMD_NEIGH_SET, 9, RNIC_NEIGH_VLAN, 2, 4096,
         RNIC_CMD_BAD_ARGUMENT},
        {RNIC_CMD_NEIGH_SET, 9, 0, 0, 0, RNIC_CMD_OK},
        {RNIC_CMD_NEIGH_CLEAR, 9, 0, 0, 0, RNIC_CMD_OK},
        {RNIC_CMD_NEIGH_CLEAR, 9, 0, 0, 0, RNIC_CMD_BAD_INDEX},
        /* In use by QP 0. */
        {RNIC_CMD_NEIGH_CLEAR, 0, 0, 0, 0, RNIC_CMD_IN_USE},
        {RNIC_CMD_NOP, 0, 0, 0, 0, RNIC_CMD_OK},
    };
    struct bed *bed = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t args[RNIC_CMD_LEN] = {0};
        uint8_t value[8];

        good_arguments(rows[i].opcode, args);
        put_le64(value, rows[i].value);
        memcpy(args + rows[i].at, value, rows[i].len);
        assert_int_equal(bed_command(&bed->side[0], rows[i].opcode,
                                     rows[i].index, args, NULL),
                         rows[i].status);
    }
}

/* ---- Every transition in every state. */

static void create_qp_in_state(struct bed *bed, unsigned int n, uint8_t state)
{
    static const struct bed_path path;

    bed_create_qp(&bed->side[0], n);
    for (uint8_t s = RNIC_QPS_INIT; s <= state; s++) {
        assert_int_equal(bed_modify(&bed->side[0], n, s, &path), RNIC_CMD_OK);
    }
}

static void destroy_qp(struct bed *bed, unsigned int n)
{
    struct bed_side *side = &bed->side[0];

    assert_int_equal(
        bed_command(side, RNIC_CMD_QP_DESTROY, bed_qpn(side, n), NULL, NULL),
        RNIC_CMD_OK);
    assert_int_equal(bed_command(side, RNIC_CMD_RQ_DESTROY, n, NULL, NULL),
                     RNIC_CMD_OK);
}

static void test_every_transition_in_every_state(void **state)
{
    static const bool may[RNIC_QP_STATES][RNIC_QP_STATES] = {
        /*          RESET INIT   RTR    RTS    ERROR */
        [RNIC_QPS_RESET] = {true, true, false, false, true},
        [RNIC_QPS_INIT] = {true, false, true, false, true},
        [RNIC_QPS_RTR] = {true, false, false, true, true},
        [RNIC_QPS_RTS] = {true, false, false, true, true},
        [RNIC_QPS_ERROR] = {true, false, false, false, true},
    };
    static const struct bed_path path;
    struct bed *bed = *state;

    for (uint8_t from = 0; from < RNIC_QP_STATES; from++) {
        for (uint8_t to = 0; to < RNIC_QP_STATES + 1; to++) {
            bool is_legal = to < RNIC_QP_STATES && may[from][to];

            create_qp_in_state(bed, 1, from);
            assert_int_equal(bed_modify(&bed->side[0], 1, to, &path),
                             is_legal ? RNIC_CMD_OK : RNIC_CMD_BAD_STATE);
            assert_int_equal(bed_state(&bed->side[0], 1), is_legal ? to : from);
            destroy_qp(bed, 1);
        }
    }
}

/* Posting, a deadline, DRAIN and destruction do no harm in any state. */
static void test_every_event_in_every_state(void **state)
{
    struct bed *bed = *state;
    struct bed_wc wc;
    struct bed_event event;

    for (uint8_t s = 0; s < RNIC_QP_STATES; s++) {
        bool flushed = s == RNIC_QPS_ERROR;

        create_qp_in_state(bed, 1, s);
        bed->loss_per_1000 = 1000;
        bed_recv(&bed->side[0], 1, 7, 0, 64);
        bed_send(&bed->side[0], 1,
                 &(struct bed_wr){.opcode = RNIC_WR_WRITE, .wr_id = 8});
        bed_run(bed);
        (void)bed_tick(bed);
        assert_int_equal(bed_command(&bed->side[0], RNIC_CMD_DRAIN,
                                     bed_qpn(&bed->side[0], 1), NULL, NULL),
                         RNIC_CMD_OK);
        assert_int_equal(bed_poll(&bed->side[0], &wc), flushed);
        if (flushed) {
            assert_int_equal(wc.status, RNIC_WC_FLUSHED);
            assert_int_equal(wc.wr_id, 8);
            assert_true(bed_poll(&bed->side[0], &wc));
            assert_int_equal(wc.wr_id, 7);
            assert_true(bed_poll_event(&bed->side[0], &event));
            assert_int_equal(event.type, RNIC_EVENT_QP_DRAINED);
        }
        assert_false(bed_poll_event(&bed->side[0], &event));
        destroy_qp(bed, 1);
        bed_settle(bed);
        assert_false(bed_poll(&bed->side[0], &wc));
        assert_false(bed_poll_event(&bed->side[0], &event));
    }
}

static void test_arguments_of_a_transition_are_checked(void **state)
{
    static const struct {
        uint8_t from, to, at, value;
    } rows[] = {
        {RNIC_QPS_INIT, RNIC_QPS_RTR, RNIC_MOD_LADDR, 3},
        {RNIC_QPS_INIT, RNIC_QPS_RTR, RNIC_MOD_LADDR, 8},
        {RNIC_QPS_INIT, RNIC_QPS_RTR, RNIC_MOD_NEIGH, 77},
        {RNIC_QPS_INIT, RNIC_QPS_RTR, RNIC_MOD_NEIGH + 1, 5},
        {RNIC_QPS_INIT, RNIC_QPS_RTR, RNIC_MOD_PATH_MTU, 0},
        {RNIC_QPS_INIT, RNIC_QPS_RTR, RNIC_MOD_PATH_MTU, 6},
        {RNIC_QPS_INIT, RNIC_QPS_RTR, RNIC_MOD_MAX_DEST_RD_ATOMIC, 17},
        {RNIC_QPS_INIT, RNIC_QPS_RTR, RNIC_MOD_DEST_QPN + 3, 1},
        {RNIC_QPS_INIT, RNIC_QPS_RTR, RNIC_MOD_RNR_TIMER, 32},
        {RNIC_QPS_INIT, RNIC_QPS_RTR, RNIC_MOD_PRIORITY, 8},
        {RNIC_QPS_INIT, RNIC_QPS_RTR, RNIC_MOD_DSCP, 64},
        {RNIC_QPS_RTR, RNIC_QPS_RTS, RNIC_MOD_MAX_RD_ATOMIC, 0},
        {RNIC_QPS_RTR, RNIC_QPS_RTS, RNIC_MOD_MAX_RD_ATOMIC, 129},
        {RNIC_QPS_RTR, RNIC_QPS_RTS, RNIC_MOD_ACK_TIMEOUT, 32},
        {RNIC_QPS_RTR, RNIC_QPS_RTS, RNIC_MOD_RETRIES, 8},
        {RNIC_QPS_RTR, RNIC_QPS_RTS, RNIC_MOD_RNR_RETRIES, 8},
        {RNIC_QPS_RTS, RNIC_QPS_RTS, RNIC_MOD_NEIGH, 77},
    };
    struct bed *bed = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t args[RNIC_CMD_LEN] = {0};

        create_qp_in_state(bed, 1, rows[i].from);
        args[RNIC_MOD_STATE] = rows[i].to;
        args[RNIC_MOD_PATH_MTU] = 1;
        args[RNIC_MOD_MAX_RD_ATOMIC] = 1;
        args[rows[i].at] = rows[i].value;
        assert_int_equal(bed_command(&bed->side[0], RNIC_CMD_QP_MODIFY,
                                     bed_qpn(&bed->side[0], 1), args, NULL),
                         RNIC_CMD_BAD_ARGUMENT);
        assert_int_equal(bed_state(&bed->side[0], 1), rows[i].from);
        destroy_qp(bed, 1);
    }
}

static void test_every_object_can_be_destroyed(void **state)
{
    struct bed *bed = *state;
    struct bed_side *side = &bed->side[0];

    destroy_qp(bed, 0);
    assert_int_equal(bed_command(side, RNIC_CMD_CQ_DESTROY, 0, NULL, NULL),
                     RNIC_CMD_OK);
    assert_int_equal(bed_command(side, RNIC_CMD_MR_DESTROY, 0, NULL, NULL),
                     RNIC_CMD_OK);
    assert_int_equal(bed_command(side, RNIC_CMD_MR_DESTROY, 1, NULL, NULL),
                     RNIC_CMD_OK);
    assert_int_equal(bed_command(side, RNIC_CMD_PD_DESTROY, 0, NULL, NULL),
                     RNIC_CMD_OK);
    assert_int_equal(bed_command(side, RNIC_CMD_NEIGH_CLEAR, 0, NULL, NULL),
                     RNIC_CMD_OK);
    assert_int_equal(bed_command(side, RNIC_CMD_LADDR_CLEAR, 0, NULL, NULL),
                     RNIC_CMD_OK);
}

TEST_FIXTURE(setup, teardown)
