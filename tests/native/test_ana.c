/* SPDX-License-Identifier: BSD-2-Clause */
/* ANA states on the console and over the management channel, and what a host
 * then gets over RDMA. */
#include "bed_fixture.h"

#include "tests/test_fixture.h"

TEST_FIXTURE(setup, teardown)

static void expect_answer(const char *line, const char *answer)
{
    const char *said = type_line(line);

    if (strstr(said, answer) == NULL) {
        fail_msg("%s: %s", line, said);
    }
}

static uint16_t read_status(void)
{
    return bed_read(&bed, 1, 0, 1, HOST_DATA_KEYED) & NVME_SC_MASK;
}

static void test_the_console_sets_the_state_of_a_port(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 16);
    assert_int_equal(read_status(), NVME_SC_SUCCESS);
    expect_answer("ana\r", "all groups are optimized at both ports");
    expect_answer("ana 1 1 inaccessible\r", "ok");
    assert_int_equal(read_status(), NVME_SC_SUCCESS); /* through port 0 */
    expect_answer("ana 1 0 inaccessible\r", "ok");
    assert_int_equal(read_status(), NVME_SC_ANA_INACCESSIBLE);
    expect_answer("ana\r", "group 1 at port 0: inaccessible");
    assert_non_null(strstr(machine_console(&bed.drive->machine),
                           "ana: group 1 at port 0: inaccessible"));
    expect_answer("ana all all optimized\r", "ok");
    assert_int_equal(read_status(), NVME_SC_SUCCESS);
    host_disconnect(&bed.host->host);
}

static void test_a_transition_ends_by_itself(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 16);
    expect_answer("ana all 0 non-optimized 3000\r", "ok");
    assert_int_equal(read_status(), NVME_SC_ANA_TRANSITION);
    native_world_pass(&bed.world, UINT64_C(3000000000));
    assert_int_equal(read_status(), NVME_SC_SUCCESS);
    expect_answer("ana\r", "group 1 at port 0: non-optimized");
    host_disconnect(&bed.host->host);
}

static void test_a_persistent_loss_ends_with_the_power(void **state)
{
    (void)state;
    expect_answer("ana all all persistent-loss\r", "ok");
    expect_answer("ana 3 1 optimized\r", "error: Only a start");
    bed_power_cycle(&bed);
    expect_answer("ana\r", "all groups are optimized at both ports");
    bed_connect(&bed, 0, 1, 16);
    assert_int_equal(read_status(), NVME_SC_SUCCESS);
    host_disconnect(&bed.host->host);
}

static void test_mistakes_are_refused_and_change_nothing(void **state)
{
    (void)state;
    expect_answer("ana 1 0\r", "error: write: ana");
    expect_answer("ana x 0 optimized\r", "error: write: ana");
    expect_answer("ana 1 0 perfect\r", "error: There is no such state");
    expect_answer("ana 17 0 inaccessible\r", "error: There is no such group");
    expect_answer("ana 0 0 inaccessible\r", "error: There is no such group");
    expect_answer("ana 1 2 inaccessible\r", "error: There is no such port");
    expect_answer("ana 1 0 change 10001\r", "error: A transition takes");
    expect_answer("ana 1 0 change all\r", "error: write: ana");
    expect_answer("ana\r", "all groups are optimized at both ports");
}
