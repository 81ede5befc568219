/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two records that close a namespace are lost, or one and a Format or Sanitize
 * has failed: which commands open the namespace again, and that none of them
 * gives data to a host before.
 * Reference: docs/decisions/0083-two-lost-records.md
 */
#include "fake.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/reservation.h"
#include "tests/test_fixture.h"

enum {
    BLOCK_ERASE = 2,
    BLOCK_ERASE_AUSE = 10,
    EXIT_FAILURE_MODE = 1,
    KEY = 7,
};

/* What the drive's records say.  Namespace 1 is the only one. */
static struct {
    struct fake *fake;
    bool is_detached, is_erasing, has_failed;
    uint8_t protection;
    struct nvmf_sanitize_now sanitize;
    unsigned int sanitized;
    uint16_t admin, io;
} drive;

static void get_capacity(void *ctx, struct nvmf_volume_capacity *capacity)
{
    (void)ctx;
    *capacity = (struct nvmf_volume_capacity){8 << 20, 6 << 20, 1 << 20, false};
}

static bool describe_ns(void *ctx, uint32_t nsid, struct nvmf_volume_ns *ns)
{
    (void)ctx;
    *ns = (struct nvmf_volume_ns){
        .media_ns = 70,
        .owned_bytes = 1 << 20,
        .anagrpid = 1,
        .is_erasing = drive.is_erasing,
        .has_failed = drive.has_failed,
        .protection = drive.protection,
    };
    return nsid == 1;
}

static bool ns_is_attached(void *ctx, uint32_t nsid, const char *hostnqn,
                           uint16_t portid)
{
    (void)ctx;
    (void)nsid;
    (void)hostnqn;
    (void)portid;
    return !drive.is_detached;
}

static void start_job(void *ctx, const struct nvmf_volume_job *job)
{
    (void)ctx;
    assert_int_equal(job->op, NVMF_VOLUME_FORMAT);
    drive.is_erasing = drive.has_failed = false;
}

static enum nvmf_volume_result attach_ns(void *ctx, uint32_t nsid,
                                         const struct nvmf_volume_host *hosts,
                                         uint16_t count, bool attach)
{
    (void)ctx;
    (void)nsid;
    (void)hosts;
    (void)count;
    drive.is_detached = !attach;
    return NVMF_VOLUME_OK;
}

static enum nvmf_volume_result protect_ns(void *ctx, uint32_t nsid,
                                          enum nvmf_protection protection)
{
    (void)ctx;
    (void)nsid;
    drive.protection = (uint8_t)protection;
    drive.fake->is_protected[0] = protection != NVMF_PROTECTION_NONE;
    return NVMF_VOLUME_OK;
}

static enum nvmf_volume_result start_sanitize(void *ctx,
                                              const struct nvmf_sanitize *job)
{
    (void)ctx;
    drive.sanitized++;
    drive.sanitize.outcome = NVMF_SANITIZE_IN_PROGRESS;
    drive.sanitize.is_blocking = false;
    drive.sanitize.job = *job;
    return NVMF_VOLUME_OK;
}

static bool exit_failure(void *ctx)
{
    (void)ctx;
    drive.sanitize.is_blocking = false;
    return true;
}

static void sanitize_now(void *ctx, struct nvmf_sanitize_now *now)
{
    (void)ctx;
    *now = drive.sanitize;
}

static enum nvmf_volume_result save_reservation(
    void *ctx, uint32_t nsid, const uint8_t *uuid,
    const struct reservation *res, const struct reservation_saver *by)
{
    (void)ctx;
    (void)nsid;
    (void)uuid;
    (void)res;
    (void)by;
    return NVMF_VOLUME_OK;
}

static int setup(void **state)
{
    struct fake *fake = fake_new();

    memset(&drive, 0, sizeof(drive));
    drive.fake = fake;
    fake->config.namespace_count = 0;
    fake->config.volume = (struct nvmf_volume){
        .ctx = &drive,
        .capacity = get_capacity,
        .describe = describe_ns,
        .is_attached = ns_is_attached,
        .start = start_job,
        .attach = attach_ns,
        .protect = protect_ns,
    };
    fake->config.reservations.save = save_reservation;
    fake->config.operations = (struct nvmf_operations){
        .ctx = &drive,
        .start_sanitize = start_sanitize,
        .exit_sanitize_failure = exit_failure,
        .sanitize_now = sanitize_now,
    };
    *state = fake;
    return 0;
}

/* ---- What is lost. */

static void lose_table(void)
{
    drive.is_detached = true;
    drive.protection = NVMF_PROTECTION_ON;
    drive.fake->is_protected[0] = true;
}

static void fail_format(void)
{
    drive.is_erasing = drive.has_failed = true;
}

/* An operation that an older record says is in progress goes on, and fails;
 * without such a record, the drive lets hosts leave the failure. */
static void fail_sanitize(bool allows_exit)
{
    drive.sanitize = (struct nvmf_sanitize_now){
        .outcome = NVMF_SANITIZE_FAILED,
        .is_blocking = true,
        .job = {.action = NVMF_SANITIZE_BLOCK_ERASE,
                .passes = 1,
                .allows_exit = allows_exit},
    };
}

/* The records are as the test wants: the drive starts, and a host connects. */
static void start_drive(bool has_reservations)
{
    fake_start(drive.fake);
    if (!has_reservations) {
        drive.fake->target->reservation[0].ptpl = true;
        drive.fake->target->reservation[0].rtype = RTYPE_EXCLUSIVE_ACCESS_ALL;
        nvmf_target_ns_loaded(drive.fake->target, 1);
    }
    drive.admin = fake_host(drive.fake, 0);
    drive.io = fake_io_queue(drive.fake, drive.admin, 1);
}

/* Its registration is in the record, which is not lost. */
static void register_another_host(void)
{
    drive.fake->target->reservation[0].count = 1;
    drive.fake->target->reservation[0].registrant[0].hostid[0] = 1;
}

/* ---- Commands. */

static uint16_t run_admin(uint8_t opcode, uint32_t nsid, uint32_t cdw10,
                          uint32_t cdw11)
{
    struct nvme_sqe sqe = fake_admin(opcode, nsid, cdw10, cdw11);

    return fake_exec(drive.fake, drive.admin, &sqe, NULL, 0).status &
           NVME_SC_MASK;
}

static uint16_t run_sanitize(uint32_t cdw10)
{
    return run_admin(ADMIN_SANITIZE, 0, cdw10, 0);
}

static void end_sanitize(void)
{
    drive.sanitize.outcome = NVMF_SANITIZE_DONE;
    nvmf_sanitize_ended(drive.fake->target);
}

static uint16_t run_attach(bool attach)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_NS_ATTACHMENT, 1, attach ? 0 : 1, 0);
    uint8_t data[4096] = {0};

    put_le16(data, 1);
    put_le16(data + 2, drive.fake->target->ctrl[0].cntlid);
    return fake_exec(drive.fake, drive.admin, &sqe, data, sizeof(data)).status &
           NVME_SC_MASK;
}

static uint16_t end_protection(void)
{
    return run_admin(ADMIN_SET_FEATURES, 1, FEATURE_NS_WRITE_PROTECTION, 0);
}

static uint16_t run_io(uint8_t opcode)
{
    struct nvme_sqe sqe = fake_rw(opcode, 0, 1);

    return fake_exec(drive.fake, drive.io, &sqe, drive.fake->data, 512).status &
           NVME_SC_MASK;
}

static uint16_t run_register(void)
{
    struct nvme_sqe sqe = fake_admin(NVM_RESERVATION_REGISTER, 1, 0, 0);
    uint8_t data[16] = {0};

    put_le64(data + 8, KEY);
    return fake_exec(drive.fake, drive.io, &sqe, data, sizeof(data)).status &
           NVME_SC_MASK;
}

static void run_format(void)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_FORMAT_NVM, 1, 0, 0);
    struct fake_request *request =
        fake_send(drive.fake, drive.admin, &sqe, NULL, 0);

    fake_run(drive.fake);
    if (!request->is_answered) {
        nvmf_volume_done(drive.fake->target, NVMF_VOLUME_OK, 1);
        fake_run(drive.fake);
    }
    assert_int_equal(request->cqe.status, 0);
}

static void nobody_reads_or_writes(void)
{
    assert_int_not_equal(run_io(NVM_READ), 0);
    assert_int_not_equal(run_io(NVM_WRITE), 0);
    assert_int_not_equal(run_io(NVM_COMPARE), 0);
    assert_int_equal(drive.fake->history_count, 0);
}

static void the_host_reads_and_writes(void)
{
    assert_int_equal(run_io(NVM_READ), 0);
    assert_int_equal(run_io(NVM_WRITE), 0);
}

/* ---- Namespaces and reservations. */

static void open_namespace(void)
{
    assert_int_equal(run_attach(true), 0);
    nobody_reads_or_writes();
    assert_int_equal(end_protection(), 0);
    nobody_reads_or_writes();
    assert_int_equal(run_register(), 0);
    the_host_reads_and_writes();
}

/* Its Format has failed, too. */
static void open_and_format(void)
{
    assert_int_equal(run_attach(true), 0);
    assert_int_equal(end_protection(), 0);
    assert_int_equal(run_register(), 0);
    nobody_reads_or_writes();
    run_format();
    the_host_reads_and_writes();
}

static void test_a_detached_and_closed_namespace_is_attached(void **state)
{
    (void)state;
    lose_table();
    start_drive(false);
    assert_int_equal(run_register(), NVME_SC_INVALID_FIELD);
    assert_int_equal(end_protection(), NVME_SC_INVALID_FIELD);
    nobody_reads_or_writes();
    open_namespace();
}

/* Detaching is no way to open anything. */
static void test_a_closed_namespace_is_not_detached(void **state)
{
    (void)state;
    start_drive(false);
    assert_int_equal(run_attach(false), NVME_SC_RESERVATION_CONFLICT);
    assert_false(drive.is_detached);
    assert_int_equal(run_register(), 0);
    the_host_reads_and_writes();
}

/* Somebody holds this one: a host that is fenced off attaches nothing. */
static void test_a_reserved_namespace_is_not_attached(void **state)
{
    (void)state;
    lose_table();
    start_drive(false);
    register_another_host();
    assert_int_equal(run_attach(true), NVME_SC_RESERVATION_CONFLICT);
    assert_true(drive.is_detached);
}

/* ---- A Format that has failed, and reservations. */

static void test_a_host_registers_although_a_format_has_failed(void **state)
{
    struct nvme_sqe format = fake_admin(ADMIN_FORMAT_NVM, 1, 0, 0);

    (void)state;
    fail_format();
    start_drive(false);
    assert_int_equal(
        fake_exec(drive.fake, drive.admin, &format, NULL, 0).status &
            NVME_SC_MASK,
        NVME_SC_RESERVATION_CONFLICT);
    assert_int_equal(run_register(), 0);
    nobody_reads_or_writes();
    run_format();
    the_host_reads_and_writes();
}

/* While a Format runs, no command of reservations is let in, as before. */
static void test_no_host_registers_while_a_format_runs(void **state)
{
    (void)state;
    drive.is_erasing = true;
    start_drive(false);
    assert_int_equal(run_register(), NVME_SC_FORMAT_IN_PROGRESS);
}

static void test_a_failed_format_of_an_older_table_is_repeated(void **state)
{
    (void)state;
    lose_table();
    fail_format();
    start_drive(false);
    open_and_format();
}

/* ---- A restricted Sanitize that has failed. */

static void refuse_all_but_a_restricted_sanitize(void)
{
    assert_int_equal(run_sanitize(EXIT_FAILURE_MODE), NVME_SC_SANITIZE_FAILED);
    assert_int_equal(run_sanitize(BLOCK_ERASE_AUSE), NVME_SC_SANITIZE_FAILED);
    assert_int_equal(run_attach(true), NVME_SC_SANITIZE_FAILED);
    nobody_reads_or_writes();
    assert_int_equal(drive.sanitized, 0);
}

static void sanitize_again(void)
{
    assert_int_equal(run_sanitize(BLOCK_ERASE), 0);
    assert_int_equal(drive.sanitized, 1);
    assert_int_equal(run_io(NVM_READ) == 0, false);
    end_sanitize();
}

static void test_a_lost_table_holds_no_restricted_sanitize_up(void **state)
{
    (void)state;
    lose_table();
    fail_sanitize(false);
    start_drive(true);
    refuse_all_but_a_restricted_sanitize();
    sanitize_again();
    /* The table is as closed as before. */
    nobody_reads_or_writes();
    assert_int_equal(run_attach(true), 0);
    assert_int_equal(end_protection(), 0);
    the_host_reads_and_writes();
}

static void test_lost_reservations_hold_no_restricted_sanitize_up(void **state)
{
    (void)state;
    fail_sanitize(false);
    start_drive(false);
    assert_int_equal(run_register(), NVME_SC_SANITIZE_FAILED);
    refuse_all_but_a_restricted_sanitize();
    sanitize_again();
    nobody_reads_or_writes();
    assert_int_equal(run_register(), 0);
    the_host_reads_and_writes();
}

static void test_a_failed_format_holds_no_restricted_sanitize_up(void **state)
{
    (void)state;
    fail_format();
    fail_sanitize(false);
    start_drive(true);
    refuse_all_but_a_restricted_sanitize();
    sanitize_again();
    nobody_reads_or_writes();
    run_format();
    the_host_reads_and_writes();
}

/* All of them at once. */
static void test_everything_that_may_be_lost_is_opened(void **state)
{
    (void)state;
    lose_table();
    fail_format();
    fail_sanitize(false);
    start_drive(false);
    refuse_all_but_a_restricted_sanitize();
    sanitize_again();
    nobody_reads_or_writes();
    open_and_format();
}

/* Of a host that has registered, and may come back. */
static void test_a_reservation_holds_a_restricted_sanitize_up(void **state)
{
    (void)state;
    fail_sanitize(false);
    start_drive(false);
    register_another_host();
    assert_int_equal(run_sanitize(BLOCK_ERASE), NVME_SC_RESERVATION_CONFLICT);
    assert_int_equal(drive.sanitized, 0);
}

static void test_a_format_that_runs_holds_a_restricted_sanitize_up(void **state)
{
    (void)state;
    drive.is_erasing = true;
    fail_sanitize(false);
    start_drive(true);
    assert_int_equal(run_sanitize(BLOCK_ERASE), NVME_SC_FORMAT_IN_PROGRESS);
    assert_int_equal(drive.sanitized, 0);
}

/* ---- A Sanitize whose record is lost. */

/* Hosts can leave this failure, so that what is protected stays. */
static void test_a_lost_sanitize_is_left_before_anything_is_erased(void **state)
{
    (void)state;
    lose_table();
    fail_format();
    fail_sanitize(true);
    start_drive(false);
    assert_int_equal(run_sanitize(BLOCK_ERASE), NVME_SC_RESERVATION_CONFLICT);
    drive.fake->target->reservation[0].rtype = RTYPE_NONE;
    assert_int_equal(run_sanitize(BLOCK_ERASE), NVME_SC_NS_WRITE_PROTECTED);
    drive.fake->target->reservation[0].rtype = RTYPE_EXCLUSIVE_ACCESS_ALL;
    nobody_reads_or_writes();
    assert_int_equal(run_sanitize(EXIT_FAILURE_MODE), 0);
    nobody_reads_or_writes();
    open_and_format();
}

TEST_FIXTURE(setup, fake_teardown);
