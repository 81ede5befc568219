/* SPDX-License-Identifier: BSD-2-Clause */
/* Sanitize at the target: when the operation may start, and who is refused. */
#include "fake.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/log.h"
#include "tests/test_fixture.h"

enum { BLOCK_ERASE = 2, EXIT_FAILURE_MODE = 1 };

static struct {
    unsigned int starts;
    enum nvmf_volume_result result;
    struct nvmf_sanitize_now now;
} drive;

static enum nvmf_volume_result start_sanitize(void *ctx,
                                              const struct nvmf_sanitize *job)
{
    const struct fake *fake = ctx;

    assert_int_equal(fake->media_count, 0);
    drive.starts++;
    if (drive.result == NVMF_VOLUME_OK) {
        drive.now.outcome = NVMF_SANITIZE_IN_PROGRESS;
        drive.now.is_blocking = false;
        drive.now.job = *job;
    }
    return drive.result;
}

static bool exit_failure(void *ctx)
{
    (void)ctx;
    drive.now.is_blocking = false;
    return true;
}

static void sanitize_now(void *ctx, struct nvmf_sanitize_now *now)
{
    (void)ctx;
    *now = drive.now;
}

static int setup(void **state)
{
    struct fake *fake = fake_new();

    memset(&drive, 0, sizeof(drive));
    fake->config.operations = (struct nvmf_operations){
        .ctx = fake,
        .start_sanitize = start_sanitize,
        .exit_sanitize_failure = exit_failure,
        .sanitize_now = sanitize_now,
    };
    fake_start(fake);
    *state = fake;
    return 0;
}

static uint16_t exec_admin(struct fake *fake, uint16_t admin, uint8_t opcode,
                           uint32_t cdw10)
{
    struct nvme_sqe sqe = fake_admin(opcode, 0, cdw10, 0);

    return fake_exec(fake, admin, &sqe, NULL, 0).status & NVME_SC_MASK;
}

static uint16_t exec_read(struct fake *fake, uint16_t io)
{
    struct nvme_sqe sqe = fake_rw(NVM_READ, 0, 1);

    return fake_exec(fake, io, &sqe, fake->data, 512).status & NVME_SC_MASK;
}

static void test_the_operation_starts_when_no_command_uses_a_namespace(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    struct nvme_sqe sanitize = fake_admin(ADMIN_SANITIZE, 0, BLOCK_ERASE, 0);
    struct fake_request *writing, *sanitizing;

    fake->hold_media = true;
    writing = fake_send(fake, io, &write, fake->data, 512);
    fake_run(fake);
    assert_int_equal(fake->media_count, 1);
    sanitizing = fake_send(fake, admin, &sanitize, NULL, 0);
    fake_run(fake);
    assert_false(sanitizing->is_answered);
    assert_int_equal(drive.starts, 0);
    /* New commands are refused already. */
    assert_int_equal(exec_read(fake, io), NVME_SC_SANITIZE_IN_PROGRESS);
    assert_int_equal(exec_admin(fake, admin, ADMIN_SANITIZE, BLOCK_ERASE),
                     NVME_SC_SANITIZE_IN_PROGRESS);
    fake_run_media(fake);
    fake_run(fake);
    assert_true(writing->is_answered);
    assert_int_equal(writing->cqe.status, 0);
    assert_true(sanitizing->is_answered);
    assert_int_equal(sanitizing->cqe.status, 0);
    assert_int_equal(drive.starts, 1);
}

static void test_a_scan_ends_when_the_operation_is_to_start(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe scan = fake_admin(ADMIN_GET_LBA_STATUS, 1, 0, 0);
    struct nvme_sqe sanitize = fake_admin(ADMIN_SANITIZE, 0, BLOCK_ERASE, 0);
    struct fake_request *scanning;

    scan.cdw13 = 0x10u << 24;
    fake->hold_media = true;
    scanning = fake_send(fake, admin, &scan, fake->data, 4);
    fake_run(fake);
    (void)fake_send(fake, admin, &sanitize, NULL, 0);
    fake_run(fake);
    assert_int_equal(drive.starts, 0);
    fake_run_media(fake);
    fake_run(fake);
    assert_int_equal(scanning->cqe.status & NVME_SC_MASK,
                     NVME_SC_SANITIZE_IN_PROGRESS);
    assert_int_equal(drive.starts, 1);
}

static void test_blocks_stay_tracked_until_the_medium_is_erased(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    nvmf_lba_unreadable(fake->target, 1, 5);
    nvmf_lba_unreadable(fake->target, 2, 5);
    assert_int_equal(exec_admin(fake, admin, ADMIN_SANITIZE, BLOCK_ERASE), 0);
    drive.now.outcome = NVMF_SANITIZE_FAILED;
    drive.now.is_blocking = true;
    nvmf_sanitize_ended(fake->target);
    assert_int_equal(fake->target->lba.list.count, 2);
    assert_int_equal(exec_admin(fake, admin, ADMIN_SANITIZE, BLOCK_ERASE), 0);
    drive.now.outcome = NVMF_SANITIZE_DONE;
    drive.now.is_blocking = false;
    nvmf_sanitize_ended(fake->target);
    assert_int_equal(fake->target->lba.list.count, 0);
}

static void test_an_operation_that_does_not_start_changes_nothing(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);

    drive.result = NVMF_VOLUME_TOO_OFTEN;
    assert_int_equal(exec_admin(fake, admin, ADMIN_SANITIZE, BLOCK_ERASE),
                     NVME_SC_COMMAND_INTERRUPTED);
    assert_int_equal(exec_read(fake, io), 0);
}

static void test_namespaces_return_at_the_end(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);

    assert_int_equal(exec_admin(fake, admin, ADMIN_SANITIZE, BLOCK_ERASE), 0);
    assert_int_equal(exec_read(fake, io), NVME_SC_SANITIZE_IN_PROGRESS);
    drive.now.outcome = NVMF_SANITIZE_DONE;
    nvmf_sanitize_ended(fake->target);
    assert_int_equal(exec_read(fake, io), 0);
}

static void test_a_failure_blocks_until_it_is_left(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);

    assert_int_equal(exec_admin(fake, admin, ADMIN_SANITIZE, BLOCK_ERASE | 8),
                     0);
    drive.now.outcome = NVMF_SANITIZE_FAILED;
    drive.now.is_blocking = true;
    nvmf_sanitize_ended(fake->target);
    assert_int_equal(exec_read(fake, io), NVME_SC_SANITIZE_FAILED);
    assert_int_equal(exec_admin(fake, admin, ADMIN_SANITIZE, EXIT_FAILURE_MODE),
                     0);
    assert_int_equal(exec_read(fake, io), 0);
}

static void test_only_the_controller_that_asked_reports_the_end(void **state)
{
    struct fake *fake = *state;
    uint16_t other = fake_host(fake, 0);
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe aer = fake_admin(ADMIN_ASYNC_EVENT_REQUEST, 0, 0, 0);
    struct fake_request *ours = fake_send(fake, admin, &aer, NULL, 0);
    struct fake_request *theirs = fake_send(fake, other, &aer, NULL, 0);

    fake_run(fake);
    assert_int_equal(exec_admin(fake, admin, ADMIN_SANITIZE, BLOCK_ERASE), 0);
    assert_false(ours->is_answered);
    drive.now.outcome = NVMF_SANITIZE_DONE;
    nvmf_sanitize_ended(fake->target);
    fake_run(fake);
    assert_true(ours->is_answered);
    assert_int_equal(ours->cqe.dw0, 0x810106);
    assert_false(theirs->is_answered);
}

static void test_start_and_end_are_persistent_events(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint8_t event[NVMF_EVENT_MAX];
    uint16_t len;

    drive.result = NVMF_VOLUME_FAILED;
    exec_admin(fake, admin, ADMIN_SANITIZE, BLOCK_ERASE);
    assert_int_equal(nvmf_target_events(fake->target), 0);
    drive.result = NVMF_VOLUME_OK;
    exec_admin(fake, admin, ADMIN_SANITIZE, BLOCK_ERASE | 8);
    assert_true(nvmf_target_event(fake->target, 1, event, &len));
    assert_int_equal(event[PEL_EVENT_TYPE], PEL_TYPE_SANITIZE_START);
    assert_int_equal(get_le32(event + PEL_EVENT_HEADER_LEN), 0x40000006);
    assert_int_equal(get_le32(event + PEL_EVENT_HEADER_LEN + 4), 0xa);
    drive.now.outcome = NVMF_SANITIZE_FAILED;
    nvmf_sanitize_ended(fake->target);
    assert_true(nvmf_target_event(fake->target, 2, event, &len));
    assert_int_equal(event[PEL_EVENT_TYPE], PEL_TYPE_SANITIZE_END);
    assert_int_equal(get_le16(event + PEL_EVENT_HEADER_LEN), 0xffff);
    assert_int_equal(get_le16(event + PEL_EVENT_HEADER_LEN + 2), 3);
    assert_int_equal(nvmf_target_events(fake->target), 2);
}

TEST_FIXTURE(setup, fake_teardown)
