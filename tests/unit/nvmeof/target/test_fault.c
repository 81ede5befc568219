/* SPDX-License-Identifier: BSD-2-Clause */
/* Fault rules for NVMe commands: which commands fail, wait or get no answer. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#include "nvmeof/target/fault.h"
#include "tests/test_fixture.h"

static struct nvmf_fault any_command(uint32_t id, enum nvmf_fault_action action)
{
    return (struct nvmf_fault){
        .id = id,
        .action = (uint8_t)action,
        .opcode = NVMF_FAULT_ANY,
        .cntlid = NVMF_FAULT_ANY,
        .nsid = NVMF_FAULT_ANY,
        .status = NVME_SC_INTERNAL,
        .delay_us = 1000,
        .trigger = {.chance = FAULT_CHANCE_ALWAYS},
    };
}

static void add_fault(struct fake *fake, const struct nvmf_fault *fault)
{
    assert_true(nvmf_fault_add(fake->target, fault));
}

static uint16_t read_status(struct fake *fake, uint16_t io, uint64_t lba)
{
    struct nvme_sqe read = fake_rw(NVM_READ, lba, 8);

    return fake_exec(fake, io, &read, fake->data, 4096).status & NVME_SC_MASK;
}

static void wait_us(struct fake *fake, uint64_t us)
{
    fake->now_us += us;
    (void)nvmf_target_timer(fake->target, fake->now_us);
    fake_run(fake);
}

static void test_a_rule_refuses_the_command_that_it_names(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvmf_fault fault = any_command(1, NVMF_FAULT_STATUS);

    fault.opcode = NVM_READ;
    fault.trigger.nth = 2;
    add_fault(fake, &fault);
    assert_int_equal(read_status(fake, io, 0), NVME_SC_SUCCESS);
    assert_int_equal(read_status(fake, io, 0), NVME_SC_INTERNAL);
    assert_int_equal(read_status(fake, io, 0), NVME_SC_SUCCESS);
    assert_int_equal(nvmf_fault_at(fake->target, 0)->trigger.matched, 3);
    assert_int_equal(nvmf_fault_at(fake->target, 0)->trigger.fired, 1);
    /* The medium never saw the refused command. */
    assert_int_equal(fake->history_count, 2);
}

static void test_a_rule_matches_lba_namespace_queue_and_controller(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe identify = fake_admin(ADMIN_IDENTIFY, 0, 1, 0);
    struct nvmf_fault fault = any_command(1, NVMF_FAULT_STATUS);

    fault.has_lba = true;
    fault.first_lba = 107;
    fault.last_lba = 107;
    add_fault(fake, &fault);
    assert_int_equal(read_status(fake, io, 99), NVME_SC_SUCCESS);
    assert_int_equal(read_status(fake, io, 100), NVME_SC_INTERNAL);
    assert_int_equal(read_status(fake, io, 107), NVME_SC_INTERNAL);
    assert_int_equal(read_status(fake, io, 108), NVME_SC_SUCCESS);
    assert_int_equal(fake_exec(fake, 0, &identify, fake->data, 4096).status, 0);
    assert_true(nvmf_fault_remove(fake->target, 1));

    fault = any_command(1, NVMF_FAULT_STATUS);
    fault.queue = NVMF_FAULT_QID;
    fault.qid = 2;
    add_fault(fake, &fault);
    assert_int_equal(read_status(fake, io, 0), NVME_SC_SUCCESS);
    assert_true(nvmf_fault_remove(fake->target, 1));

    fault.queue = NVMF_FAULT_ADMIN_QUEUE;
    add_fault(fake, &fault);
    assert_int_equal(read_status(fake, io, 0), NVME_SC_SUCCESS);
    assert_int_not_equal(fake_exec(fake, 0, &identify, fake->data, 4096).status,
                         0);
    assert_true(nvmf_fault_remove(fake->target, 1));

    fault.queue = NVMF_FAULT_IO_QUEUE;
    fault.nsid = 2;
    add_fault(fake, &fault);
    assert_int_equal(read_status(fake, io, 0), NVME_SC_SUCCESS);
    assert_true(nvmf_fault_remove(fake->target, 1));

    fault.nsid = 1;
    fault.cntlid = 0xffee;
    add_fault(fake, &fault);
    assert_int_equal(read_status(fake, io, 0), NVME_SC_SUCCESS);
    assert_true(nvmf_fault_remove(fake->target, 1));

    fault.cntlid = NVMF_FAULT_ANY;
    add_fault(fake, &fault);
    assert_int_equal(read_status(fake, io, 0), NVME_SC_INTERNAL);
}

static void test_a_rule_delays_the_response_of_an_executed_command(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvmf_fault fault = any_command(1, NVMF_FAULT_DELAY);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 8);
    struct fake_request *delayed, *next;
    uint8_t data[4096] = {0x5a};

    fault.trigger.times = 1;
    add_fault(fake, &fault);
    delayed = fake_send(fake, io, &write, data, sizeof(data));
    next = fake_send(fake, io, &write, data, sizeof(data));
    fake_run(fake);
    assert_false(delayed->is_answered);
    assert_true(next->is_answered);
    assert_int_equal(fake->blocks[0][0], 0x5a);
    assert_int_equal(nvmf_target_timer(fake->target, fake->now_us),
                     fake->now_us + 1000);
    wait_us(fake, 999);
    assert_false(delayed->is_answered);
    wait_us(fake, 1);
    assert_true(delayed->is_answered);
    assert_int_equal(delayed->cqe.status, 0);
    assert_int_equal(fake->buffers_out, 0);
}

static void test_a_command_that_a_rule_refused_meets_no_other_rule(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvmf_fault drop = any_command(1, NVMF_FAULT_DROP);
    struct nvmf_fault refuse = any_command(2, NVMF_FAULT_STATUS);

    add_fault(fake, &drop);
    add_fault(fake, &refuse);
    assert_int_equal(read_status(fake, io, 0), NVME_SC_INTERNAL);
    assert_int_equal(nvmf_fault_at(fake->target, 0)->trigger.matched, 0);
}

static uint64_t count_errors(struct fake *fake)
{
    return nvmf_target_counters(fake->target)->error_log_entries;
}

/* A query leaves no trace, unless the error is one that somebody asked for. */
static void test_a_query_that_a_rule_refuses_is_in_the_error_log(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvmf_fault refuse = any_command(1, NVMF_FAULT_STATUS);
    struct nvmf_fault delay = any_command(2, NVMF_FAULT_DELAY);
    struct nvme_sqe right = fake_admin(ADMIN_GET_FEATURES, 0, 1, 0);
    struct nvme_sqe wrong = fake_admin(ADMIN_GET_FEATURES, 0, 0x77, 0);
    struct fake_request *delayed;

    refuse.trigger.times = 1;
    add_fault(fake, &refuse);
    assert_int_equal(fake_exec(fake, admin, &right, NULL, 0).status,
                     NVME_SC_INTERNAL | MORE);
    assert_int_equal(count_errors(fake), 1);

    add_fault(fake, &delay);
    delayed = fake_send(fake, admin, &wrong, NULL, 0);
    fake_run(fake);
    assert_false(delayed->is_answered);
    wait_us(fake, 1000);
    assert_int_equal(delayed->cqe.status, NVME_SC_INVALID_FIELD | DNR);
    assert_int_equal(count_errors(fake), 1);
}

static void test_a_dropped_response_comes_when_the_rule_goes(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvmf_fault fault = any_command(7, NVMF_FAULT_DROP);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);
    struct fake_request *dropped;

    add_fault(fake, &fault);
    dropped = fake_send(fake, io, &read, fake->data, 4096);
    wait_us(fake, 3600000000u);
    assert_false(dropped->is_answered);
    assert_true(nvmf_fault_remove(fake->target, 7));
    wait_us(fake, 0);
    assert_true(dropped->is_answered);
}

static void test_a_rule_that_is_off_keeps_its_counters(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvmf_fault fault = any_command(7, NVMF_FAULT_DROP);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);
    struct fake_request *dropped;

    add_fault(fake, &fault);
    dropped = fake_send(fake, io, &read, fake->data, 4096);
    fake_run(fake);
    assert_true(nvmf_fault_turn(fake->target, 7, false));
    wait_us(fake, 0);
    assert_true(dropped->is_answered);
    assert_int_equal(read_status(fake, io, 0), NVME_SC_SUCCESS);
    assert_int_equal(nvmf_fault_at(fake->target, 0)->trigger.fired, 1);
    assert_true(nvmf_fault_turn(fake->target, 7, true));
    (void)fake_send(fake, io, &read, fake->data, 4096);
    fake_run(fake);
    assert_int_equal(nvmf_fault_at(fake->target, 0)->trigger.fired, 2);
    assert_false(nvmf_fault_turn(fake->target, 8, true));
}

static void test_the_end_of_a_connection_ends_held_commands(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvmf_fault fault = any_command(7, NVMF_FAULT_DROP);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);

    add_fault(fake, &fault);
    for (unsigned int i = 0; i < 3; i++) {
        (void)fake_send(fake, io, &read, fake->data, 4096);
    }
    fake_run(fake);
    assert_int_not_equal(fake->buffers_out, 0);
    fake_close(fake, io);
    assert_int_equal(fake->buffers_out, 0);
    assert_null(((struct nvmf_target *)fake->target)->held.head);
}

static void test_a_controller_reset_ends_held_commands(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvmf_fault fault = any_command(7, NVMF_FAULT_DROP);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);

    fault.queue = NVMF_FAULT_IO_QUEUE;
    add_fault(fake, &fault);
    (void)fake_send(fake, io, &read, fake->data, 4096);
    fake_run(fake);
    assert_int_equal(fake_property_set(fake, admin, PROPERTY_CC, 0).status, 0);
    assert_int_equal(fake->disconnect_count, 1);
    assert_true(nvmf_qpair_closed(fake->target, io));
    assert_int_equal(fake->buffers_out, 0);
}

static void test_the_table_of_rules_is_bounded(void **state)
{
    struct fake *fake = *state;
    struct nvmf_fault fault = any_command(0, NVMF_FAULT_DROP);

    assert_false(nvmf_fault_add(fake->target, &fault));
    for (fault.id = 1; fault.id <= NVMF_FAULTS; fault.id++) {
        add_fault(fake, &fault);
    }
    assert_false(nvmf_fault_add(fake->target, &fault));
    assert_false(nvmf_fault_remove(fake->target, NVMF_FAULTS + 1));
    assert_true(nvmf_fault_remove(fake->target, 3));
    fault.id = 5; /* exists */
    assert_false(nvmf_fault_add(fake->target, &fault));
    fault.id = 3;
    add_fault(fake, &fault);
    assert_int_equal(nvmf_fault_at(fake->target, NVMF_FAULTS - 1)->id, 3);
    assert_null(nvmf_fault_at(fake->target, NVMF_FAULTS));
}

TEST_FIXTURE(fake_setup, fake_teardown)
