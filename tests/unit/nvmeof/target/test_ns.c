/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands that change namespaces, with a fake volume: their order, what they
 * wait for, and what a failure or the end of a connection leaves.
 */
#include "fake.h"

#include <string.h>

#include "lib/bytes.h"
#include "tests/test_fixture.h"

enum { NAMESPACES = 2 };

/* A volume with two namespaces, whose jobs a test ends. */
struct fake_volume {
    struct fake *fake;
    bool exists[NAMESPACES], is_detached[NAMESPACES], is_private;
    bool is_erasing, has_failed;
    uint8_t protection[NAMESPACES];
    enum nvmf_volume_result protect_result;
    unsigned int jobs;
    struct nvmf_volume_job job;
    bool is_pending;
    enum nvmf_volume_result attach_result;
};

static struct fake_volume volume; /* static, because tests run one by one */

static void get_capacity(void *ctx, struct nvmf_volume_capacity *capacity)
{
    (void)ctx;
    *capacity = (struct nvmf_volume_capacity){8 << 20, 6 << 20, 1 << 20, false};
}

static bool describe_ns(void *ctx, uint32_t nsid, struct nvmf_volume_ns *ns)
{
    (void)ctx;
    if (nsid > NAMESPACES || !volume.exists[nsid - 1]) {
        return false;
    }
    *ns = (struct nvmf_volume_ns){
        .media_ns = 69 + nsid,
        .owned_bytes = 1 << 20,
        .is_private = volume.is_private,
        .anagrpid = 1,
        .is_erasing = volume.is_erasing,
        .has_failed = volume.has_failed,
        .protection = volume.protection[nsid - 1],
    };
    return true;
}

static bool ns_is_attached(void *ctx, uint32_t nsid, const char *hostnqn,
                           uint16_t portid)
{
    (void)ctx;
    (void)portid;
    assert_string_equal(hostnqn, FAKE_HOSTNQN);
    return !volume.is_detached[nsid - 1];
}

static void start_job(void *ctx, const struct nvmf_volume_job *job)
{
    (void)ctx;
    assert_false(volume.is_pending); /* one at a time */
    assert_int_not_equal(job->host, 0);
    volume.is_pending = true;
    volume.job = *job;
    volume.jobs++;
}

static enum nvmf_volume_result attach_ns(void *ctx, uint32_t nsid,
                                         const struct nvmf_volume_host *hosts,
                                         uint16_t count, bool attach)
{
    (void)ctx;
    assert_int_equal(count, 1);
    assert_string_equal(hosts[0].hostnqn, FAKE_HOSTNQN);
    if (volume.attach_result == NVMF_VOLUME_OK) {
        volume.is_detached[nsid - 1] = !attach;
    }
    return volume.attach_result;
}

static enum nvmf_volume_result protect_ns(void *ctx, uint32_t nsid,
                                          enum nvmf_protection protection)
{
    (void)ctx;
    if (volume.protect_result == NVMF_VOLUME_OK) {
        volume.protection[nsid - 1] = (uint8_t)protection;
        volume.fake->is_protected[nsid - 1] =
            protection != NVMF_PROTECTION_NONE;
    }
    return volume.protect_result;
}

static int setup_volume(void **state)
{
    struct fake *fake = fake_new();

    volume = (struct fake_volume){.fake = fake, .exists = {true, true}};
    fake->config.namespace_count = 0;
    fake->config.volume = (struct nvmf_volume){
        &volume,   get_capacity, describe_ns, ns_is_attached,
        start_job, attach_ns,    protect_ns};
    fake_start(fake);
    *state = fake;
    return 0;
}

/* The volume has done its job. */
static void end_job(enum nvmf_volume_result result)
{
    uint32_t nsid = volume.job.nsid;

    assert_true(volume.is_pending);
    volume.is_pending = false;
    if (result == NVMF_VOLUME_OK && volume.job.op == NVMF_VOLUME_DELETE) {
        volume.exists[nsid - 1] = false;
    }
    if (result == NVMF_VOLUME_OK && volume.job.op == NVMF_VOLUME_CREATE) {
        nsid = volume.exists[0] ? 2 : 1;
        volume.exists[nsid - 1] = true;
        volume.is_detached[nsid - 1] = true;
    }
    nvmf_volume_done(volume.fake->target, result, nsid);
    fake_run(volume.fake);
}

static void pass_seconds(struct fake *fake, unsigned int seconds)
{
    for (unsigned int i = 0; i < 4 * seconds; i++) {
        fake->now_us += 250000;
        (void)nvmf_target_timer(fake->target, fake->now_us);
    }
}

static struct fake_request *send_delete(struct fake *fake, uint16_t admin,
                                        uint32_t nsid)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_NS_MANAGEMENT, nsid, 1, 0);
    struct fake_request *request = fake_send(fake, admin, &sqe, NULL, 0);

    fake_run(fake);
    return request;
}

static struct fake_request *send_format(struct fake *fake, uint16_t admin,
                                        uint32_t nsid)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_FORMAT_NVM, nsid, 0, 0);
    struct fake_request *request = fake_send(fake, admin, &sqe, NULL, 0);

    fake_run(fake);
    return request;
}

static uint16_t read_status(struct fake *fake, uint16_t io, uint32_t nsid)
{
    struct nvme_sqe sqe = fake_rw(NVM_READ, 0, 1);

    sqe.nsid = nsid;
    return fake_exec(fake, io, &sqe, fake->data, 512).status & NVME_SC_MASK;
}

static void test_a_deletion_waits_for_the_commands_in_flight(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 1);
    struct fake_request *reading, *deleting;

    fake->hold_media = true;
    reading = fake_send(fake, io, &read, fake->data, 512);
    fake_run(fake);
    deleting = send_delete(fake, admin, 1);
    assert_int_equal(volume.jobs, 0);
    /* New commands are refused at once. */
    assert_int_equal(read_status(fake, io, 1), NVME_SC_INVALID_FIELD);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(reading->cqe.status, 0);
    assert_int_equal(volume.jobs, 1);
    assert_int_equal(volume.job.nsid, 1);
    assert_false(deleting->is_answered);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(deleting->cqe.status, 0);
    assert_int_equal(read_status(fake, io, 2), NVME_SC_SUCCESS);
}

/* A scan of the namespace ends after the read that is at the medium. */
static void test_a_change_of_a_namespace_does_not_wait_for_whole_scans(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe scan = fake_admin(ADMIN_GET_LBA_STATUS, 1, 0, 0);
    struct fake_request *scans[3], *changing;

    for (int is_format = 0; is_format < 2; is_format++) {
        scan.nsid = is_format ? 1 : 2;
        scan.cdw12 = 3;
        scan.cdw13 = 0x10u << 24;
        fake->hold_media = true;
        for (size_t i = 0; i < ARRAY_LEN(scans); i++) {
            scans[i] = fake_send(fake, admin, &scan, fake->data, 16);
        }
        changing = is_format ? send_format(fake, admin, 1)
                             : send_delete(fake, admin, 2);
        assert_false(volume.is_pending);
        fake_run_media(fake);
        assert_int_equal(fake->media_count, 0);
        assert_true(volume.is_pending);
        fake->hold_media = false;
        fake_run(fake);
        for (size_t i = 0; i < ARRAY_LEN(scans); i++) {
            assert_int_equal(scans[i]->cqe.status & NVME_SC_MASK,
                             is_format ? NVME_SC_FORMAT_IN_PROGRESS
                                       : NVME_SC_INVALID_FIELD);
        }
        end_job(NVMF_VOLUME_OK);
        assert_int_equal(changing->cqe.status, 0);
    }
}

static void test_tracked_blocks_of_an_attached_namespace_are_news(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe aer = fake_admin(ADMIN_ASYNC_EVENT_REQUEST, 0, 0, 0);
    struct nvme_sqe config = fake_admin(
        ADMIN_SET_FEATURES, 0, FEATURE_ASYNC_EVENT_CONFIG, OAES_LBA_STATUS);
    const struct nvmf_counters *counters = nvmf_target_counters(fake->target);
    struct fake_request *event;

    volume.is_detached[1] = true;
    nvmf_target_ns_loaded(fake->target, 2);
    nvmf_lba_unreadable(fake->target, 2, 5);
    assert_int_equal(counters->lba_generation, 1);
    assert_int_equal(fake_exec(fake, admin, &config, NULL, 0).status, 0);
    event = fake_send(fake, admin, &aer, NULL, 0);
    fake->now_us += 10 * 1000 * 1000;
    nvmf_target_timer(fake->target, fake->now_us);
    fake_run(fake);
    assert_false(event->is_answered);
    volume.is_detached[1] = false;
    nvmf_target_ns_loaded(fake->target, 2);
    assert_int_equal(counters->lba_generation, 2);
    nvmf_target_ns_loaded(fake->target, 2); /* it is attached already */
    assert_int_equal(counters->lba_generation, 2);
    nvmf_target_timer(fake->target, fake->now_us);
    fake_run(fake);
    assert_true(event->is_answered);
}

static void test_a_changed_namespace_has_no_tracked_blocks(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    const struct nvmf_target *target = fake->target;

    nvmf_lba_unreadable(fake->target, 1, 5);
    nvmf_lba_unreadable(fake->target, 2, 5);
    (void)send_format(fake, admin, 1);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(target->lba.list.count, 1);
    assert_int_equal(target->lba.list.range[0].nsid, 2);
    (void)send_delete(fake, admin, 2);
    end_job(NVMF_VOLUME_FAILED); /* its data are still there */
    assert_int_equal(target->lba.list.count, 1);
    (void)send_delete(fake, admin, 2);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(target->lba.list.count, 0);
    assert_int_equal(target->ns[1].caution & CAUTION_TRACKED, 0);
}

/* ---- Copy: the namespaces of its source ranges. */

static void enable_format_2(struct fake *fake, uint16_t admin)
{
    struct nvme_sqe sqe =
        fake_admin(ADMIN_SET_FEATURES, 0, FEATURE_HOST_BEHAVIOR, 0);

    memset(fake->data, 0, 512);
    fake->data[4] = 1 << 2;
    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, 512).status, 0);
}

/* Copy a block from each of `count` namespaces to the first blocks of
 * namespace 1. */
static struct fake_request *send_copy(struct fake *fake, uint16_t io,
                                      const uint8_t *nsids, uint32_t count)
{
    struct nvme_sqe sqe = fake_rw(NVM_COPY, 0, count);
    static uint8_t ranges[4 * 32];
    struct fake_request *request;

    memset(ranges, 0, sizeof(ranges));
    for (uint32_t i = 0; i < count; i++) {
        ranges[32 * i] = nsids[i];
        put_le64(ranges + 32 * i + 8, 100 + i);
    }
    sqe.cdw12 |= 2 << 8;
    request = fake_send(fake, io, &sqe, ranges, count * 32);
    fake_run(fake);
    return request;
}

/* Also while a Copy reads it for another namespace. */
static void test_a_deletion_waits_for_a_copy_that_reads_the_namespace(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct fake_request *copying, *deleting;

    enable_format_2(fake, admin);
    fake->hold_media = true;
    copying = send_copy(fake, io, (uint8_t[]){2}, 1);
    assert_int_equal(fake->target->ns[1].users, 1);
    deleting = send_delete(fake, admin, 2);
    assert_int_equal(volume.jobs, 0);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(copying->cqe.status, 0);
    assert_int_equal(volume.jobs, 1);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(deleting->cqe.status, 0);
}

/* From the check of its ranges to its end, a Copy holds every source: those of
 * ranges that it has yet to read, and those that it has read. */
static void test_a_copy_holds_each_source_from_the_check_to_the_end(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct fake_request *copying, *formatting;

    enable_format_2(fake, admin);
    fake->hold_media = true;
    copying = send_copy(fake, io, (uint8_t[]){1, 2, 1, 2}, 4);
    /* It reads its first range, which is in its own namespace. */
    formatting = send_format(fake, admin, 2);
    for (unsigned int i = 0; i < 8; i++) {
        assert_int_equal(fake->target->ns[1].users, 1);
        assert_int_equal(volume.jobs, 0);
        assert_int_equal(fake->media_count, 1);
        assert_int_equal(fake->media[0].ns, i % 4 == 2 ? 71 : 70);
        fake_run_media(fake);
    }
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(copying->cqe.status, 0);
    assert_int_equal(fake->target->ns[1].users, 0);
    assert_int_equal(volume.jobs, 1);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(formatting->cqe.status, 0);
}

/* A host of its own, whose writes do not count from their arrival. */
static uint16_t connect_other_host(struct fake *fake)
{
    fake->hostid = 0x43;
    return fake_host(fake, 0);
}

/* A Copy that waits for an earlier write has checked its sources already. */
static void test_a_copy_holds_its_sources_while_it_waits_for_its_turn(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint16_t other = connect_other_host(fake);
    uint16_t other_io = fake_io_queue(fake, other, 1);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    struct fake_request *copying, *deleting;

    enable_format_2(fake, admin);
    fake->hold_media = true;
    (void)fake_send(fake, other_io, &write, fake->data, 512);
    fake_run(fake);
    copying = send_copy(fake, io, (uint8_t[]){2, 2}, 2);
    assert_int_equal(copying->req.state, NVMF_REQUEST_WAIT_TURN);
    deleting = send_delete(fake, other, 2);
    assert_int_equal(volume.jobs, 0);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(copying->cqe.status, 0);
    assert_int_equal(volume.jobs, 1);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(deleting->cqe.status, 0);
}

/* However a Copy ends, others have its sources again. */
static void test_a_copy_that_does_not_succeed_leaves_its_sources(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint16_t other = connect_other_host(fake);
    uint16_t other_io = fake_io_queue(fake, other, 1);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    struct nvme_sqe abort = {.opcode = ADMIN_ABORT};
    struct fake_request *copying;

    fake->hostid = 0;
    enable_format_2(fake, admin);
    fake->hold_media = true;
    (void)fake_send(fake, other_io, &write, fake->data, 512);
    fake_run(fake);
    copying = send_copy(fake, io, (uint8_t[]){2}, 1);
    abort.cdw10 = (uint32_t)copying->req.sqe.cid << 16 | 1;
    assert_int_equal(fake_exec(fake, admin, &abort, NULL, 0).dw0, 0);
    assert_int_equal(copying->cqe.status, NVME_SC_ABORT_REQUESTED);
    assert_int_equal(fake->target->ns[1].users, 0);

    (void)send_copy(fake, io, (uint8_t[]){2}, 1);
    assert_int_equal(fake->target->ns[1].users, 1);
    fake_close(fake, io); /* while it waits */
    assert_int_equal(fake->target->ns[1].users, 0);

    fake->hold_media = false;
    fake_run(fake);
    io = fake_io_queue(fake, admin, 1);
    fake->media_status = MEDIA_READ_ERROR;
    copying = send_copy(fake, io, (uint8_t[]){2}, 1);
    assert_int_equal(copying->cqe.status & NVME_SC_MASK, NVME_SC_READ_ERROR);
    assert_int_equal(fake->target->ns[1].users, 0);
    fake->media_status = MEDIA_OK;
    /* The second range cannot be read, so nothing is held. */
    copying = send_copy(fake, io, (uint8_t[]){2, 3}, 2);
    assert_int_equal(copying->cqe.status & NVME_SC_MASK, NVME_SC_INVALID_FIELD);
    assert_int_equal(fake->target->ns[1].users, 0);
    assert_int_equal(fake->target->ns[0].users, 0);
}

static void test_the_endurance_group_is_the_whole_medium(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe sqe = fake_admin(ADMIN_GET_LOG_PAGE, 0,
                                     127 << 16 | LOG_ENDURANCE_GROUP, 1 << 16);
    const uint8_t *page = fake->data;

    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, 512).status, 0);
    assert_int_equal(page[3], 100); /* available spare */
    assert_int_equal(page[4], 10);
    assert_int_equal(get_le64(page + 160), 8 << 20);
    assert_int_equal(get_le64(page + 176), 6 << 20);
    sqe.cdw11 = 0;
    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, 512).status &
                         NVME_SC_MASK,
                     NVME_SC_INVALID_FIELD);
    sqe.cdw11 = 2 << 16;
    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, 512).status &
                         NVME_SC_MASK,
                     NVME_SC_INVALID_FIELD);
}

static void test_a_deletion_that_fails_gives_the_namespace_back(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct fake_request *deleting = send_delete(fake, admin, 1);

    end_job(NVMF_VOLUME_FAILED);
    assert_int_equal(deleting->cqe.status & NVME_SC_MASK, NVME_SC_INTERNAL);
    assert_int_equal(read_status(fake, io, 1), NVME_SC_SUCCESS);
}

/*
 * A host is silent while its data are fetched or sent.  A command of another
 * host that formats or deletes the namespace ends its queue pair.  Commands
 * that have no buffers yet end at once.
 */
static void test_a_silent_host_does_not_hold_up_a_change(void **state)
{
    struct fake *fake = *state;
    uint16_t admin[2] = {fake_host(fake, 0), fake_host(fake, 0)};
    static uint8_t data[64 * 512];

    for (unsigned int i = 0; i < 4; i++) {
        uint16_t io = fake_io_queue(fake, admin[0], (uint16_t)(i + 1));
        bool is_read = i % 2 != 0;
        struct nvme_sqe sqe = fake_rw(is_read ? NVM_READ : NVM_WRITE, 0, 64);
        struct fake_request *changing, *waiting;
        int32_t room = fake->buffers_free;

        sqe.nsid = 1;
        fake->window_max = 8192;
        fake->hold_fetch = fake->hold_send = true;
        (void)fake_send(fake, io, &sqe, data, sizeof(data));
        fake->buffers_free = 0;
        waiting = fake_send(fake, io, &sqe, data, sizeof(data));
        fake_run(fake);
        assert_int_equal(waiting->req.state, NVMF_REQUEST_WAIT_BUFFER);
        fake->disconnect_count = 0;
        changing = i < 2 ? send_format(fake, admin[1], 1)
                         : send_delete(fake, admin[1], 1);
        assert_int_equal(waiting->cqe.status & NVME_SC_MASK,
                         NVME_SC_FORMAT_IN_PROGRESS);
        pass_seconds(fake, NVMF_PATIENCE_S - 2);
        assert_int_equal(fake->disconnect_count, 0);
        pass_seconds(fake, 3);
        assert_true(fake->disconnect_count >= 2);
        assert_int_equal(fake->disconnected[0], io);
        assert_false(nvmf_qpair_closed(fake->target, io));
        fake->hold_fetch = fake->hold_send = false;
        fake->fail_fetch = fake->fail_send = true;
        fake_run(fake);
        fake->fail_fetch = fake->fail_send = false;
        fake->buffers_free = room;
        end_job(NVMF_VOLUME_OK);
        assert_true(changing->is_answered);
        assert_int_equal(changing->cqe.status, 0);
        if (i == 2) {
            break; /* the namespace is gone */
        }
    }
}

static void test_commands_get_format_in_progress_and_may_be_repeated(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 1);
    struct fake_request *formatting = send_format(fake, admin, 1);

    assert_int_equal(fake_exec(fake, io, &read, fake->data, 512).status & ~MORE,
                     NVME_SC_FORMAT_IN_PROGRESS);
    assert_int_equal(read_status(fake, io, 2), NVME_SC_SUCCESS);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(formatting->cqe.status, 0);
    assert_int_equal(read_status(fake, io, 1), NVME_SC_SUCCESS);
}

/* Otherwise it could never be used again. */
static void test_a_format_that_has_failed_can_be_repeated(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct fake_request *formatting = send_format(fake, admin, 1);

    volume.is_erasing = volume.has_failed = true;
    end_job(NVMF_VOLUME_FAILED);
    assert_int_equal(formatting->cqe.status & NVME_SC_MASK, NVME_SC_INTERNAL);
    assert_int_equal(read_status(fake, io, 1), NVME_SC_FORMAT_IN_PROGRESS);
    formatting = send_format(fake, admin, NVME_NSID_ALL);
    assert_int_equal(volume.job.nsid, 1);
    end_job(NVMF_VOLUME_FAILED);
    assert_int_equal(formatting->cqe.status & NVME_SC_MASK, NVME_SC_INTERNAL);
    formatting = send_format(fake, admin, 1);
    volume.is_erasing = volume.has_failed = false;
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(formatting->cqe.status, 0);
    assert_int_equal(read_status(fake, io, 1), NVME_SC_SUCCESS);
}

static void test_a_namespace_can_be_deleted_after_its_format_has_failed(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct fake_request *deleting;

    (void)send_format(fake, admin, 1);
    volume.is_erasing = volume.has_failed = true;
    end_job(NVMF_VOLUME_FAILED);
    deleting = send_delete(fake, admin, 1);
    /* The volume reports the end of something else that it did with it. */
    nvmf_target_ns_loaded(fake->target, 1);
    assert_int_equal(fake->target->ns[0].state, NS_DELETING);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(deleting->cqe.status, 0);
    assert_int_equal(fake->target->ns[0].state, NS_FREE);
}

static struct nvme_cqe set_protection(struct fake *fake, uint16_t admin,
                                      enum nvmf_protection protection)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_SET_FEATURES, 1,
                                     FEATURE_NS_WRITE_PROTECTION, protection);

    return fake_exec(fake, admin, &sqe, NULL, 0);
}

static struct fake_request *send_protection(struct fake *fake, uint16_t admin,
                                            uint32_t nsid,
                                            enum nvmf_protection protection)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_SET_FEATURES, nsid,
                                     FEATURE_NS_WRITE_PROTECTION, protection);
    struct fake_request *request = fake_send(fake, admin, &sqe, NULL, 0);

    fake_run(fake);
    return request;
}

static uint16_t write_status(struct fake *fake, uint16_t io, uint32_t nsid)
{
    struct nvme_sqe sqe = fake_rw(NVM_WRITE, 0, 1);

    sqe.nsid = nsid;
    return fake_exec(fake, io, &sqe, fake->data, 512).status & NVME_SC_MASK;
}

/* Success means that the contents are durable and that no write follows. */
static void test_protection_waits_for_writes_and_commits_the_cache(void **state)
{
    static const enum nvmf_protection states[] = {
        NVMF_PROTECTION_ON, NVMF_PROTECTION_UNTIL_POWER_CYCLE};
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint16_t other = fake_io_queue(fake, fake_host(fake, 0), 1);

    for (uint32_t i = 0; i < 2; i++) {
        struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
        struct nvme_sqe zeroes = fake_rw(NVM_WRITE_ZEROES, 8, 1);
        struct fake_request *writing, *zeroing, *protecting;

        write.nsid = zeroes.nsid = i + 1;
        fake->hold_media = true;
        writing = fake_send(fake, io, &write, fake->data, 512);
        fake_run(fake);
        zeroing = fake_send(fake, other, &zeroes, NULL, 0);
        fake_run(fake);
        protecting = send_protection(fake, admin, i + 1, states[i]);
        assert_int_equal(fake->target->ns[i].awaited, 2);
        assert_int_equal(write_status(fake, io, i + 1),
                         NVME_SC_NS_WRITE_PROTECTED);
        assert_int_equal(fake->media_count, 2);
        fake_run_media(fake);
        fake_run(fake);
        assert_int_equal(writing->cqe.status, 0);
        assert_int_equal(fake->media[0].op, MEDIA_WRITE_ZEROES);
        assert_int_equal(fake->media_count, 1);
        fake_run_media(fake);
        fake_run(fake);
        assert_int_equal(zeroing->cqe.status, 0);
        /* A protection that is in force after a power cut would tell the host
         * that the contents are those of this moment. */
        assert_int_equal(fake->media_count, 1);
        assert_int_equal(fake->media[0].op, MEDIA_FLUSH);
        assert_int_equal(fake->media[0].ns, 70 + i);
        assert_int_equal(volume.protection[i], NVMF_PROTECTION_NONE);
        assert_false(protecting->is_answered);
        fake_run_media(fake);
        fake_run(fake);
        assert_true(protecting->is_answered);
        assert_int_equal(protecting->cqe.status, 0);
        assert_int_equal(volume.protection[i], states[i]);
        fake->hold_media = false;
        assert_int_equal(write_status(fake, io, i + 1),
                         NVME_SC_NS_WRITE_PROTECTED);
        assert_int_equal(fake->target->ns[i].caution, 0);
        assert_int_equal(fake->target->ns[i].users, 0);
    }
}

enum { SELECT_DEFAULT = 1 << 8, SELECT_SAVED = 2 << 8, SUPPORTED = 3 << 8 };

static struct nvme_cqe get_protection(struct fake *fake, uint16_t admin,
                                      uint32_t nsid, uint32_t select)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_GET_FEATURES, nsid,
                                     FEATURE_NS_WRITE_PROTECTION | select, 0);

    return fake_exec(fake, admin, &sqe, NULL, 0);
}

static void test_get_features_has_the_protection_of_each_namespace(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    struct fake_request *protecting;

    for (uint32_t nsid = 1; nsid <= 2; nsid++) {
        assert_int_equal(get_protection(fake, admin, nsid, 0).status, 0);
        assert_int_equal(get_protection(fake, admin, nsid, 0).dw0, 0);
    }
    /* As long as a write is waited for, the namespace is not protected. */
    fake->hold_media = true;
    (void)fake_send(fake, io, &write, fake->data, 512);
    fake_run(fake);
    protecting = send_protection(fake, admin, 1, NVMF_PROTECTION_ON);
    assert_int_equal(get_protection(fake, admin, 1, 0).dw0, 0);
    fake->hold_media = false;
    fake_run(fake);
    assert_true(protecting->is_answered);
    assert_int_equal(protecting->cqe.status, 0);
    assert_int_equal(get_protection(fake, admin, 1, 0).dw0, NVMF_PROTECTION_ON);
    assert_int_equal(get_protection(fake, admin, 1, SELECT_DEFAULT).dw0,
                     NVMF_PROTECTION_NONE);
    assert_int_equal(get_protection(fake, admin, 2, 0).dw0,
                     NVMF_PROTECTION_NONE);
    /* Changeable, of the namespace, not saveable: bits 2, 1, 0. */
    assert_int_equal(get_protection(fake, admin, 1, SUPPORTED).dw0, 6);
    (void)send_protection(fake, admin, 2, NVMF_PROTECTION_UNTIL_POWER_CYCLE);
    assert_int_equal(get_protection(fake, admin, 2, 0).dw0,
                     NVMF_PROTECTION_UNTIL_POWER_CYCLE);
    assert_int_equal(set_protection(fake, admin, NVMF_PROTECTION_NONE).status,
                     0);
    assert_int_equal(get_protection(fake, admin, 1, 0).dw0, 0);
}

static void test_get_features_needs_a_namespace_for_its_protection(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    assert_int_equal(get_protection(fake, admin, 0, 0).status & NVME_SC_MASK,
                     NVME_SC_INVALID_NS);
    assert_int_equal(get_protection(fake, admin, 0xffffffff, 0).status &
                         NVME_SC_MASK,
                     NVME_SC_INVALID_NS);
    assert_int_equal(get_protection(fake, admin, 5, 0).status & NVME_SC_MASK,
                     NVME_SC_INVALID_FIELD);
}

/* Reads go on, and so does the other namespace. */
static void test_protection_waits_for_writes_of_its_namespace_only(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 1);
    struct fake_request *protecting;

    fake->hold_media = true;
    write.nsid = 2;
    (void)fake_send(fake, io, &write, fake->data, 512);
    (void)fake_send(fake, io, &read, fake->data, 512);
    fake_run(fake);
    protecting = send_protection(fake, admin, 1, NVMF_PROTECTION_ON);
    assert_int_equal(fake->media_count, 3);
    assert_int_equal(fake->media[2].op, MEDIA_FLUSH);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(protecting->cqe.status, 0);
    assert_int_equal(write_status(fake, io, 2), 0);
}

/* They have moved no data, so they end as if they came now. */
static void test_writes_that_wait_for_buffers_are_refused_by_protection(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 64);
    struct fake_request *writing[2], *protecting;

    fake->hold_media = true;
    fake->buffers_free = 0;
    for (unsigned int i = 0; i < 2; i++) {
        writing[i] = fake_send(fake, io, &write, fake->data, 64 * 512);
    }
    fake_run(fake);
    assert_int_equal(writing[1]->req.state, NVMF_REQUEST_WAIT_BUFFER);
    protecting = send_protection(fake, admin, 1, NVMF_PROTECTION_ON);
    assert_int_equal(writing[1]->cqe.status & ~MORE,
                     NVME_SC_NS_WRITE_PROTECTED | DNR);
    assert_false(protecting->is_answered);
    fake->hold_media = false;
    fake_run(fake);
    /* The first one has begun, and ends with all of its data written. */
    assert_int_equal(writing[0]->cqe.status, 0);
    assert_int_equal(protecting->cqe.status, 0);
}

/* The data of the Compare of a fused pair never come. */
static void test_protection_ends_a_queue_pair_with_a_silent_compare(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe first = fake_rw(NVM_COMPARE, 0, 1);
    struct nvme_sqe second = fake_rw(NVM_WRITE, 0, 1);
    struct fake_request *protecting;

    first.fuse = 1;
    second.fuse = 2;
    fake->has_spare = true;
    fake->hold_fetch = true;
    (void)fake_send(fake, io, &first, fake->data, 512);
    (void)fake_send(fake, io, &second, fake->data, 512);
    protecting = send_protection(fake, admin, 1, NVMF_PROTECTION_ON);
    assert_false(protecting->is_answered);
    pass_seconds(fake, NVMF_PATIENCE_S - 2);
    assert_int_equal(fake->disconnect_count, 0);
    pass_seconds(fake, 3);
    assert_true(fake->disconnect_count >= 2);
    assert_int_equal(fake->disconnected[0], io);
    assert_false(nvmf_qpair_closed(fake->target, io));
    fake->fail_fetch = true;
    fake_run_fetch(fake);
    fake_run(fake);
    assert_true(protecting->is_answered);
    assert_int_equal(protecting->cqe.status, 0);
    assert_int_equal(fake->target->ns[0].users, 0);
}

static void test_protection_that_fails_leaves_the_namespace_writable(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct fake_request *protecting;

    fake->media_status = MEDIA_WRITE_ERROR;
    protecting = send_protection(fake, admin, 1, NVMF_PROTECTION_ON);
    assert_int_equal(protecting->cqe.status & NVME_SC_MASK,
                     NVME_SC_WRITE_FAULT);
    fake->media_status = MEDIA_OK;
    assert_int_equal(volume.protection[0], NVMF_PROTECTION_NONE);
    assert_int_equal(write_status(fake, io, 1), 0);
    volume.protect_result = NVMF_VOLUME_TOO_OFTEN;
    protecting = send_protection(fake, admin, 1, NVMF_PROTECTION_ON);
    assert_int_equal(protecting->cqe.status & NVME_SC_MASK,
                     NVME_SC_COMMAND_INTERRUPTED);
    assert_int_equal(write_status(fake, io, 1), 0);
    assert_int_equal(fake->target->ns[0].users, 0);
}

/* While it waits for writes, and while the cache is committed. */
static void test_protection_ends_with_its_connection(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);

    for (unsigned int i = 0; i < 2; i++) {
        uint16_t admin = fake_host(fake, 0);
        struct fake_request *again;
        uint16_t other = fake_host(fake, 0);

        fake->hold_media = true;
        if (i == 0) {
            (void)fake_send(fake, io, &write, fake->data, 512);
            fake_run(fake);
        }
        (void)send_protection(fake, admin, 1, NVMF_PROTECTION_ON);
        again = send_protection(fake, other, 1, NVMF_PROTECTION_NONE);
        assert_false(again->is_answered); /* one after another */
        assert_int_equal(nvmf_qpair_closed(fake->target, admin), i == 0);
        fake->hold_media = false;
        fake_run(fake);
        assert_int_equal(again->cqe.status, 0);
        assert_int_equal(volume.protection[0], NVMF_PROTECTION_NONE);
        assert_int_equal(write_status(fake, io, 1), 0);
        assert_int_equal(fake->target->ns[0].users, 0);
        assert_null(fake->target->ns[0].protecting);
        fake_close(fake, other);
    }
}

/* Something happens while a host's command waits for a write to namespace 1, or
 * for the flush of namespace 2. */
static void expect_protection_that_ends(
    struct fake *fake, bool is_late, uint16_t status,
    void (*act)(struct fake *fake, uint16_t admin, uint32_t nsid))
{
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, connect_other_host(fake), 1);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    uint32_t nsid = is_late ? 2 : 1;
    const struct nvmf_ns *ns = &fake->target->ns[nsid - 1];
    struct fake_request *protecting;

    write.nsid = nsid;
    fake->hold_media = true;
    if (!is_late) {
        (void)fake_send(fake, io, &write, fake->data, 512);
        fake_run(fake);
    }
    protecting = send_protection(fake, admin, nsid, NVMF_PROTECTION_ON);
    assert_int_equal(fake->media[0].op, is_late ? MEDIA_FLUSH : MEDIA_WRITE);
    act(fake, admin, nsid);
    assert_false(protecting->is_answered);
    fake->hold_media = false;
    fake_run(fake);
    assert_true(protecting->is_answered);
    assert_int_equal(protecting->cqe.status & NVME_SC_MASK, status);
    assert_int_equal(volume.protection[nsid - 1], NVMF_PROTECTION_NONE);
    assert_false(ns->geometry.is_read_only);
    assert_null(ns->protecting);
    assert_int_equal(ns->users, 0);
    assert_int_equal(ns->awaited, 0);
}

static void detach_from_all(struct fake *fake, uint16_t admin, uint32_t nsid)
{
    struct nvme_sqe detach = fake_admin(ADMIN_NS_ATTACHMENT, nsid, 1, 0);
    struct nvme_sqe identify =
        fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLERS, 0);
    uint8_t list[4096];

    assert_int_equal(
        fake_exec(fake, admin, &identify, list, sizeof(list)).status, 0);
    (void)fake_send_in_capsule(fake, admin, &detach, list, sizeof(list));
    fake_run(fake);
    assert_true(volume.is_detached[nsid - 1]);
}

static void reset_ctrl(struct fake *fake, uint16_t admin, uint32_t nsid)
{
    (void)nsid;
    fake_property_set(fake, admin, PROPERTY_CC, 0);
}

/* Another host may get the namespace next, and would find it protected. */
static void test_protection_ends_when_its_host_loses_the_namespace(void **state)
{
    struct fake *fake = *state;

    expect_protection_that_ends(fake, false, NVME_SC_INVALID_FIELD,
                                detach_from_all);
    expect_protection_that_ends(fake, true, NVME_SC_INVALID_FIELD,
                                detach_from_all);
}

static void test_protection_ends_when_its_controller_is_reset(void **state)
{
    struct fake *fake = *state;

    expect_protection_that_ends(fake, false, NVME_SC_ABORT_REQUESTED,
                                reset_ctrl);
    expect_protection_that_ends(fake, true, NVME_SC_ABORT_REQUESTED,
                                reset_ctrl);
}

/* The second one must not succeed before the first. */
static void test_protecting_twice_commits_twice(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct fake_request *first, *second, *third;

    fake->hold_media = true;
    first = send_protection(fake, admin, 1, NVMF_PROTECTION_ON);
    second = send_protection(fake, admin, 1, NVMF_PROTECTION_ON);
    third = send_protection(fake, admin, 1, NVMF_PROTECTION_NONE);
    fake_run_media(fake);
    fake_run(fake);
    assert_int_equal(first->cqe.status, 0);
    assert_true(first->is_answered);
    assert_false(second->is_answered);
    assert_int_equal(fake->media[0].op, MEDIA_FLUSH);
    fake_run_media(fake);
    fake_run(fake);
    assert_true(second->is_answered);
    assert_true(third->is_answered);
    assert_int_equal(third->cqe.status, 0);
    assert_int_equal(volume.protection[0], NVMF_PROTECTION_NONE);
}

/* The flush of the first host fails, while the second host's command waits, and
 * again when its turn comes, or the first one's connection ends.  Neither takes
 * the flush of the other for its own. */
static void test_protection_after_one_that_failed_commits_for_itself(
    void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);

    for (unsigned int i = 0; i < 2; i++) {
        uint16_t admin = fake_host(fake, 0);
        uint16_t other = connect_other_host(fake);
        struct fake_request *second;

        fake->hold_media = true;
        (void)send_protection(fake, admin, 1, NVMF_PROTECTION_ON);
        second = send_protection(fake, other, 1, NVMF_PROTECTION_ON);
        assert_int_equal(fake->media_count, 1);
        if (i == 0) {
            fake->media_status = MEDIA_WRITE_ERROR;
        } else {
            assert_false(nvmf_qpair_closed(fake->target, admin));
        }
        fake_run_media(fake);
        fake->media_status = MEDIA_OK;
        fake_run(fake);
        assert_false(second->is_answered);
        assert_int_equal(volume.protection[0], NVMF_PROTECTION_NONE);
        assert_int_equal(fake->media_count, 1);
        assert_int_equal(fake->media[0].op, MEDIA_FLUSH);
        assert_int_equal(write_status(fake, io, 1), NVME_SC_NS_WRITE_PROTECTED);
        fake->hold_media = false;
        fake_run(fake);
        assert_true(second->is_answered);
        assert_int_equal(second->cqe.status, 0);
        assert_int_equal(volume.protection[0], NVMF_PROTECTION_ON);
        second = send_protection(fake, other, 1, NVMF_PROTECTION_NONE);
        assert_int_equal(second->cqe.status, 0);
        assert_int_equal(fake->target->ns[0].users, 0);
        fake_close(fake, other);
        if (i == 0) {
            fake_close(fake, admin);
        }
    }
}

/* The medium has taken them while the cache was on, and may leave their data
 * there.  The flush comes after them, so that nothing stays at risk. */
static void test_the_cache_is_flushed_after_the_writes_that_it_took(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe off =
        fake_admin(ADMIN_SET_FEATURES, 0, FEATURE_VOLATILE_WRITE_CACHE, 0);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    struct fake_request *request;

    fake->hold_media = true;
    for (uint32_t nsid = 1; nsid <= 2; nsid++) {
        write.nsid = nsid;
        (void)fake_send(fake, io, &write, fake->data, 512);
        fake_run(fake);
    }
    request = fake_send(fake, admin, &off, NULL, 0);
    fake_run(fake);
    assert_int_equal(fake->cache_on, 0);
    for (unsigned int i = 0; i < 2; i++) {
        assert_int_equal(fake->media_count, 2 - i);
        assert_int_equal(fake->media[0].op, MEDIA_WRITE);
        assert_false(request->is_answered);
        fake_run_media(fake);
        fake_run(fake);
    }
    assert_int_equal(fake->media_count, 1);
    assert_int_equal(fake->media[0].op, MEDIA_FLUSH);
    assert_int_equal(fake->media[0].ns, MEDIA_NS_ALL);
    fake->hold_media = false;
    fake_run(fake);
    assert_true(request->is_answered);
    assert_int_equal(request->cqe.status, 0);
    assert_int_equal(fake->target->ns[0].users, 0);
    assert_int_equal(fake->target->ns[1].users, 0);
}

/* A write of the protected namespace that waits behind another one. */
static void test_protection_waits_for_writes_that_wait_for_their_turn(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint16_t other = fake_io_queue(fake, connect_other_host(fake), 1);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    struct fake_request *waiting, *protecting;

    fake->hold_media = true;
    (void)fake_send(fake, io, &write, fake->data, 512);
    waiting = fake_send(fake, other, &write, fake->data, 512);
    fake_run(fake);
    assert_int_equal(waiting->req.state, NVMF_REQUEST_WAIT_TURN);
    protecting = send_protection(fake, admin, 1, NVMF_PROTECTION_ON);
    fake_run_media(fake);
    fake_run(fake);
    assert_int_equal(fake->media[0].op, MEDIA_WRITE);
    assert_false(protecting->is_answered);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(waiting->cqe.status, 0);
    assert_int_equal(protecting->cqe.status, 0);
    assert_int_equal(fake->history[fake->history_count - 1].op, MEDIA_FLUSH);
}

/* The protection would come too late, and would let commands in too early. */
static void test_protection_cannot_be_changed_during_a_format(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 1);
    struct fake_request *formatting;

    fake->hold_media = true;
    (void)fake_send(fake, io, &read, fake->data, 512);
    fake_run(fake);
    formatting = send_format(fake, admin, 1);
    assert_int_equal(volume.jobs, 0); /* the Read uses the namespace */
    assert_int_equal(set_protection(fake, admin, NVMF_PROTECTION_ON).status &
                         ~MORE,
                     NVME_SC_FORMAT_IN_PROGRESS);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(volume.jobs, 1);
    assert_int_equal(set_protection(fake, admin, NVMF_PROTECTION_ON).status &
                         ~MORE,
                     NVME_SC_FORMAT_IN_PROGRESS);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(formatting->cqe.status, 0);
    assert_int_equal(set_protection(fake, admin, NVMF_PROTECTION_ON).status, 0);
}

/*
 * A record that is lost protects all namespaces, also one whose Format has not
 * ended.  Without the end of that protection it could not be formatted, deleted
 * or sanitized.  Nobody changes it while the next Format runs.
 */
static void test_a_protected_format_that_has_failed_can_be_repeated(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct fake_request *formatting;

    volume.is_erasing = volume.has_failed = true;
    volume.protection[0] = NVMF_PROTECTION_ON;
    fake->is_protected[0] = true;
    nvmf_target_ns_loaded(fake->target, 1);
    assert_int_equal(fake->target->ns[0].state, NS_FORMATTING);
    formatting = send_format(fake, admin, 1);
    assert_int_equal(formatting->cqe.status & NVME_SC_MASK,
                     NVME_SC_NS_WRITE_PROTECTED);
    assert_int_equal(set_protection(fake, admin, NVMF_PROTECTION_ON).status &
                         ~MORE,
                     NVME_SC_FORMAT_IN_PROGRESS);
    assert_int_equal(set_protection(fake, admin, NVMF_PROTECTION_NONE).status,
                     0);
    assert_int_equal(volume.protection[0], NVMF_PROTECTION_NONE);
    assert_int_equal(read_status(fake, io, 1), NVME_SC_FORMAT_IN_PROGRESS);
    formatting = send_format(fake, admin, 1);
    assert_int_equal(volume.jobs, 1);
    assert_int_equal(set_protection(fake, admin, NVMF_PROTECTION_NONE).status &
                         ~MORE,
                     NVME_SC_FORMAT_IN_PROGRESS);
    volume.is_erasing = volume.has_failed = false;
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(formatting->cqe.status, 0);
    assert_int_equal(read_status(fake, io, 1), NVME_SC_SUCCESS);
    assert_int_equal(write_status(fake, io, 1), NVME_SC_SUCCESS);
}

/* A host that never sends the second half of a fused pair holds nobody up. */
static void test_no_half_of_a_fused_pair_holds_up_a_format(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe first = fake_rw(NVM_COMPARE, 0, 1);
    struct nvme_sqe second = fake_rw(NVM_WRITE, 0, 1);
    struct fake_request *compare, *write;

    fake->has_spare = true;
    first.fuse = 1;
    second.fuse = 2;
    for (unsigned int i = 0; i < 2; i++) {
        compare = fake_send(fake, io, &first, fake->data, 512);
        fake_run(fake);
        assert_false(compare->is_answered);
        (void)(i == 0 ? send_format(fake, admin, 1)
                      : send_delete(fake, admin, 1));
        assert_int_equal(compare->cqe.status & ~MORE, NVME_SC_FUSED_MISSING);
        assert_int_equal(volume.jobs, i + 1);
        end_job(NVMF_VOLUME_OK);
        write = fake_send(fake, io, &second, fake->data, 512);
        fake_run(fake);
        assert_true(write->is_answered);
        assert_int_not_equal(write->cqe.status, 0);
    }
}

static bool ctrl_has_ns1(const struct fake *fake, unsigned int index)
{
    return fake->target->ctrl[index].active_ns[0] & 1;
}

/* A host connects again before the drive knows that its old association is
 * lost, or has reset the subsystem. */
static void test_a_private_namespace_follows_its_host(void **state)
{
    struct fake *fake = *state;
    uint16_t old, new;

    volume.is_private = true;
    nvmf_target_ns_loaded(fake->target, 1);
    old = fake_host(fake, 0);
    new = fake_host(fake, 0);
    assert_true(ctrl_has_ns1(fake, 0));
    assert_false(ctrl_has_ns1(fake, 1));
    fake_close(fake, old);
    assert_true(ctrl_has_ns1(fake, 1));
    old = new;
    new = fake_host(fake, 0);
    assert_false(ctrl_has_ns1(fake, 0));
    assert_int_equal(
        fake_property_set(fake, old, PROPERTY_NSSR, NSSR_RESET).status, 0);
    assert_false(ctrl_has_ns1(fake, 0)); /* it ends, too */
    assert_int_equal(nvmf_qpair_closed(fake->target, new), true);
    new = fake_host(fake, 0);
    assert_true(ctrl_has_ns1(fake, 0));
}

static void test_a_format_of_all_goes_from_one_to_the_next(void **state)
{
    struct fake *fake = *state;
    struct fake_request *formatting =
        send_format(fake, fake_host(fake, 0), NVME_NSID_ALL);

    assert_int_equal(volume.job.nsid, 1);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(volume.job.nsid, 2);
    assert_false(formatting->is_answered);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(formatting->cqe.status, 0);
}

/* A namespace of no block could not be read from flash again. */
static uint16_t run_keys(struct fake *fake, uint16_t io, uint8_t opcode,
                         uint32_t cdw10, uint64_t key, uint64_t key2)
{
    struct nvme_sqe sqe = fake_admin(opcode, 2, cdw10, 0);
    uint8_t keys[16];

    put_le64(keys, key);
    put_le64(keys + 8, key2);
    return fake_exec(fake, io, &sqe, keys, sizeof(keys)).status & NVME_SC_MASK;
}

/* A host protects or reserves the second namespace while the first one is
 * changed, and is told that it has succeeded: its data stay. */
static void test_all_namespaces_are_checked_when_their_turn_comes(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct fake_request *changing;
    uint16_t other_io;

    fake->hostid = 7;
    other_io = fake_io_queue(fake, fake_host(fake, 0), 1);
    for (unsigned int is_reserved = 0; is_reserved < 2; is_reserved++) {
        uint16_t refusal = is_reserved ? NVME_SC_RESERVATION_CONFLICT
                                       : NVME_SC_NS_WRITE_PROTECTED;

        for (unsigned int is_format = 0; is_format < 2; is_format++) {
            volume.jobs = 0;
            changing = is_format ? send_format(fake, admin, NVME_NSID_ALL)
                                 : send_delete(fake, admin, NVME_NSID_ALL);
            assert_int_equal(volume.job.nsid, 1);
            if (is_reserved) {
                assert_int_equal(
                    run_keys(fake, other_io, NVM_RESERVATION_REGISTER, 0, 0, 5),
                    0);
                assert_int_equal(run_keys(fake, other_io,
                                          NVM_RESERVATION_ACQUIRE, 1 << 8, 5,
                                          0),
                                 0);
            } else {
                assert_int_equal(
                    send_protection(fake, admin, 2, NVMF_PROTECTION_ON)
                        ->cqe.status,
                    0);
            }
            end_job(NVMF_VOLUME_OK);
            assert_true(changing->is_answered);
            assert_int_equal(changing->cqe.status & ~MORE, refusal | DNR);
            assert_int_equal(volume.jobs, 1);
            assert_int_equal(read_status(fake, io, 2), 0);
            /* What was done stays done. */
            assert_int_equal(read_status(fake, io, 1),
                             is_format ? 0 : NVME_SC_INVALID_FIELD);
            assert_int_equal(fake->target->ns[1].state, NS_READY);
            volume.exists[0] = true;
            nvmf_target_ns_loaded(fake->target, 1);
            if (is_reserved) { /* clear, with the registration */
                assert_int_equal(
                    run_keys(fake, other_io, NVM_RESERVATION_RELEASE, 1, 5, 0),
                    0);
            } else {
                assert_int_equal(
                    send_protection(fake, admin, 2, NVMF_PROTECTION_NONE)
                        ->cqe.status,
                    0);
            }
        }
    }
}

/* The Format has checked the reservation, and waits for the commands that use
 * the namespace.  One of them must not reserve it. */
static void test_no_reservation_is_made_when_a_format_has_begun(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t other_io;
    struct nvme_sqe acquire = fake_admin(NVM_RESERVATION_ACQUIRE, 2, 1 << 8, 0);
    struct fake_request *acquiring, *changing;
    uint8_t keys[16] = {5};

    fake->hostid = 7;
    other_io = fake_io_queue(fake, fake_host(fake, 0), 1);
    assert_int_equal(
        run_keys(fake, other_io, NVM_RESERVATION_REGISTER, 0, 0, 5), 0);
    for (unsigned int is_format = 0; is_format < 2; is_format++) {
        fake->hold_fetch = true;
        acquiring = fake_send(fake, other_io, &acquire, keys, sizeof(keys));
        fake_run(fake);
        changing = is_format ? send_format(fake, admin, 2)
                             : send_delete(fake, admin, 2);
        assert_false(volume.is_pending);
        fake->hold_fetch = false;
        fake_run(fake);
        assert_int_equal(acquiring->cqe.status & ~MORE,
                         NVME_SC_FORMAT_IN_PROGRESS);
        end_job(is_format ? NVMF_VOLUME_OK : NVMF_VOLUME_FAILED);
        assert_int_equal(changing->cqe.status & NVME_SC_MASK,
                         is_format ? 0 : NVME_SC_INTERNAL);
    }
}

/* Another host may get the namespace next: nobody who has lost it may still
 * write to it or read it. */
static void test_a_detachment_waits_for_the_commands_of_its_host(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe detach = fake_admin(ADMIN_NS_ATTACHMENT, 2, 1, 0);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 64);
    struct nvme_sqe identify =
        fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLERS, 0);
    struct fake_request *writing[2], *copying, *detaching, *formatting;
    uint8_t list[4096];

    assert_int_equal(
        fake_exec(fake, admin, &identify, list, sizeof(list)).status, 0);
    enable_format_2(fake, admin);
    fake->hold_media = true;
    write.nsid = 2;
    copying = send_copy(fake, io, (uint8_t[]){1, 2}, 2);
    writing[0] = fake_send(fake, io, &write, fake->data, 64 * 512);
    fake->buffers_free = 0;
    writing[1] = fake_send(fake, io, &write, fake->data, 64 * 512);
    fake->buffers_free = 4 * NVMF_MAX_TRANSFER;
    detaching = fake_send_in_capsule(fake, admin, &detach, list, sizeof(list));
    fake_run(fake);
    assert_int_equal(writing[1]->cqe.status & ~MORE,
                     NVME_SC_INVALID_FIELD | DNR);
    assert_int_equal(fake->target->ns[1].awaited, 2);
    assert_int_equal(write_status(fake, io, 2), NVME_SC_INVALID_FIELD);
    formatting = send_format(fake, admin, 1);
    while (fake->media_count != 0) {
        assert_false(detaching->is_answered);
        fake_run_media(fake);
        fake_run(fake);
    }
    assert_int_equal(writing[0]->cqe.status, 0);
    assert_int_equal(copying->cqe.status, 0);
    assert_true(detaching->is_answered);
    assert_int_equal(detaching->cqe.status, 0);
    assert_int_equal(volume.job.nsid, 1); /* the next command has its turn */
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(formatting->cqe.status, 0);
}

/*
 * The end of a Copy ends a detachment, and with that begins the next one, which
 * must not wait for the Copy any more.
 */
static void test_a_copy_that_has_ended_is_not_waited_for(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe identify =
        fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLERS, 0);
    struct fake_request *copying, *changing[3];
    uint8_t list[4096];

    assert_int_equal(
        fake_exec(fake, admin, &identify, list, sizeof(list)).status, 0);
    enable_format_2(fake, admin);
    fake->hold_media = true;
    copying = send_copy(fake, io, (uint8_t[]){2}, 1);
    for (uint32_t i = 0; i < ARRAY_LEN(changing); i++) {
        bool is_detachment = i % 2 == 0;
        struct nvme_sqe sqe =
            fake_admin(ADMIN_NS_ATTACHMENT, 2, is_detachment, 0);

        changing[i] =
            fake_send_in_capsule(fake, admin, &sqe, list, sizeof(list));
    }
    assert_true(fake->target->manager.is_detaching);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(copying->cqe.status, 0);
    for (uint32_t i = 0; i < ARRAY_LEN(changing); i++) {
        assert_true(changing[i]->is_answered);
        assert_int_equal(changing[i]->cqe.status, 0);
    }
    assert_int_equal(fake->target->ns[1].awaited, 0);
    assert_int_equal(fake->target->ns[1].users, 0);
    assert_null(fake->target->manager.req);
}

/*
 * A Preempt and Abort waits for a command of the host that it preempts.  The
 * issuer loses the namespace meanwhile: the detachment waits for that command,
 * and neither of the two waits for the other one.  A Preempt and Abort whose
 * keys come after the detachment is refused.
 */
static void expect_detachment_with_preempt(struct fake *fake, bool is_late)
{
    enum { PREEMPT_AND_ABORT = 2 };
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint16_t other = fake_io_queue(fake, connect_other_host(fake), 1);
    struct nvme_sqe preempt =
        fake_admin(NVM_RESERVATION_ACQUIRE, 2, 1 << 8 | PREEMPT_AND_ABORT, 0);
    struct nvme_sqe detach = fake_admin(ADMIN_NS_ATTACHMENT, 2, 1, 0);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    struct nvme_sqe identify =
        fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLERS, 0);
    struct fake_request *preempting, *detaching;
    uint8_t list[4096], keys[16] = {7, [8] = 8};

    assert_int_equal(
        fake_exec(fake, admin, &identify, list, sizeof(list)).status, 0);
    assert_int_equal(run_keys(fake, io, NVM_RESERVATION_REGISTER, 0, 0, 7), 0);
    assert_int_equal(run_keys(fake, other, NVM_RESERVATION_REGISTER, 0, 0, 8),
                     0);
    fake->hold_media = true;
    write.nsid = 2;
    (void)fake_send(fake, other, &write, fake->data, 512);
    fake_run(fake);
    fake->hold_fetch = is_late;
    preempting = fake_send(fake, io, &preempt, keys, sizeof(keys));
    fake_run(fake);
    detaching = fake_send_in_capsule(fake, admin, &detach, list, sizeof(list));
    fake_run(fake);
    assert_true(fake->target->manager.is_detaching);
    assert_false(preempting->is_answered || detaching->is_answered);
    fake->hold_fetch = fake->hold_media = false;
    fake_run(fake);
    assert_true(preempting->is_answered && detaching->is_answered);
    assert_int_equal(preempting->cqe.status & ~MORE,
                     is_late ? NVME_SC_INVALID_FIELD | DNR : 0);
    assert_int_equal(detaching->cqe.status, 0);
    assert_int_equal(fake->target->ns[1].awaited, 0);
    assert_int_equal(fake->target->ns[1].users, 0);
}

static void test_a_detachment_does_not_wait_for_a_preempt_and_abort(
    void **state)
{
    expect_detachment_with_preempt(*state, false);
}

static void test_a_preempt_and_abort_after_a_detachment_is_refused(void **state)
{
    expect_detachment_with_preempt(*state, true);
}

/* Nobody gets the answer of the detachment, and the next command has its turn.
 */
static void test_a_detachment_that_waits_can_lose_its_connection(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    uint16_t admin = fake_host(fake, 0);
    uint16_t other = fake_host(fake, 0);
    struct nvme_sqe detach = fake_admin(ADMIN_NS_ATTACHMENT, 1, 1, 0);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    struct nvme_sqe identify =
        fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLERS, 0);
    struct fake_request *deleting;
    uint8_t list[4096];

    assert_int_equal(
        fake_exec(fake, admin, &identify, list, sizeof(list)).status, 0);
    put_le16(list, 1);
    fake->hold_media = true;
    (void)fake_send(fake, io, &write, fake->data, 512);
    fake_run(fake);
    (void)fake_send(fake, admin, &detach, list, sizeof(list));
    fake_run(fake);
    assert_true(fake->target->manager.is_detaching);
    assert_false(nvmf_qpair_closed(fake->target, admin));
    deleting = send_delete(fake, other, 2);
    assert_false(volume.is_pending);
    fake->hold_media = false;
    fake_run(fake);
    assert_false(fake->target->manager.is_detaching);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(deleting->cqe.status, 0);
}

static void test_a_format_to_less_than_a_block_is_refused(void **state)
{
    static const uint32_t nsids[] = {1, NVME_NSID_ALL};
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    fake->target->ns[0].geometry.size_blocks = 7; /* of 512 bytes */
    for (size_t i = 0; i < ARRAY_LEN(nsids); i++) {
        struct nvme_sqe sqe = fake_admin(ADMIN_FORMAT_NVM, nsids[i], 1, 0);

        assert_int_equal(fake_exec(fake, admin, &sqe, NULL, 0).status &
                             NVME_SC_MASK,
                         NVME_SC_INVALID_FORMAT);
    }
    assert_int_equal(volume.jobs, 0);
}

/* A private namespace comes to the controller that formats all of its
 * namespaces, when the host's other controller ends. */
static void test_a_namespace_that_comes_during_a_format_of_all_is_checked(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t other = fake_host(fake, 0);
    struct nvme_sqe sqe = fake_admin(ADMIN_FORMAT_NVM, NVME_NSID_ALL, 1, 0);
    struct fake_request *formatting;

    volume.is_private = true;
    nvmf_target_ns_loaded(fake->target, 2);
    fake->target->ns[1].geometry.size_blocks = 7; /* of 512 bytes */
    formatting = fake_send(fake, admin, &sqe, NULL, 0);
    fake_run(fake);
    assert_int_equal(volume.job.nsid, 1);
    fake_close(fake, other);
    end_job(NVMF_VOLUME_OK);
    assert_true(formatting->is_answered);
    assert_int_equal(formatting->cqe.status & NVME_SC_MASK,
                     NVME_SC_INVALID_FORMAT);
    assert_int_equal(volume.jobs, 1);
}

static void test_all_namespaces_can_be_deleted_at_once(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct fake_request *deleting = send_delete(fake, admin, NVME_NSID_ALL);

    end_job(NVMF_VOLUME_OK);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(deleting->cqe.status, 0);
    /* Without any, there is nothing to do. */
    deleting = send_delete(fake, admin, NVME_NSID_ALL);
    assert_int_equal(deleting->cqe.status, 0);
    assert_int_equal(volume.jobs, 2);
}

/* Commands of several hosts run in their order, whatever ends meanwhile. */
static void test_commands_wait_for_their_turn(void **state)
{
    struct fake *fake = *state;
    uint16_t first = fake_host(fake, 0), second = fake_host(fake, 0);
    uint16_t third = fake_host(fake, 0);
    struct fake_request *a = send_delete(fake, first, 1);
    struct fake_request *b = send_format(fake, second, 2);
    struct fake_request *c = send_delete(fake, third, 1);
    struct fake_request *d = send_format(fake, first, 2);

    assert_int_equal(volume.jobs, 1);
    fake_close(fake, second); /* its command waits: it is dropped */
    assert_false(b->is_answered);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(a->cqe.status, 0);
    /* Namespace 1 is gone meanwhile. */
    assert_int_equal(c->cqe.status & NVME_SC_MASK, NVME_SC_INVALID_FIELD);
    assert_int_equal(volume.jobs, 2);
    assert_int_equal(volume.job.op, NVMF_VOLUME_FORMAT);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(d->cqe.status, 0);
}

static struct fake_request *send_create(struct fake *fake, uint16_t admin)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_NS_MANAGEMENT, 0, 0, 0);
    struct fake_request *request;

    memset(fake->data, 0, NVME_IDENTIFY_LEN);
    fake->data[ID_NS_NSZE] = fake->data[ID_NS_NCAP] = 8;
    request = fake_send(fake, admin, &sqe, fake->data, NVME_IDENTIFY_LEN);
    fake_run(fake);
    return request;
}

/* Else they hold all buffers, and a Format waits for a Read that waits for
 * buffers. */
static void test_few_commands_with_buffers_wait_for_their_turn(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0), other = fake_host(fake, 0);
    struct fake_request *formatting = send_format(fake, admin, 1);
    struct fake_request *waiting[3], *last;

    for (size_t i = 0; i < ARRAY_LEN(waiting); i++) {
        waiting[i] = send_create(fake, admin);
    }
    assert_false(waiting[0]->is_answered || waiting[1]->is_answered);
    assert_int_equal(waiting[2]->cqe.status & ~MORE,
                     NVME_SC_COMMAND_INTERRUPTED);
    assert_false(send_create(fake, other)->is_answered);
    last = send_format(fake, admin, 1); /* it holds no buffers */
    assert_false(last->is_answered);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(formatting->cqe.status, 0);
    for (unsigned int i = 0; i < 3; i++) {
        end_job(NVMF_VOLUME_NO_CAPACITY);
    }
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(last->cqe.status, 0);
    assert_false(volume.is_pending);
}

static void test_a_job_ends_after_its_host_has_gone(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct fake_request *deleting = send_delete(fake, admin, 1);

    assert_false(nvmf_qpair_closed(fake->target, admin));
    end_job(NVMF_VOLUME_OK);
    assert_false(deleting->is_answered);
    assert_int_equal(fake->drained_count, 1);
    admin = fake_host(fake, 0);
    deleting = send_delete(fake, admin, 2);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(deleting->cqe.status, 0);
}

static void test_each_refusal_of_the_volume_has_its_status(void **state)
{
    static const struct {
        enum nvmf_volume_result result;
        uint16_t status;
    } rows[] = {
        {NVMF_VOLUME_NO_CAPACITY, NVME_SC_NS_INSUFFICIENT_CAPACITY | DNR},
        {NVMF_VOLUME_NO_IDENTIFIER, NVME_SC_NS_IDENTIFIER_UNAVAILABLE | DNR},
        {NVMF_VOLUME_TOO_OFTEN, NVME_SC_COMMAND_INTERRUPTED},
        {NVMF_VOLUME_FAILED, NVME_SC_INTERNAL},
    };
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe create = fake_admin(ADMIN_NS_MANAGEMENT, 0, 0, 0);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fake_request *request;

        memset(fake->data, 0, 4096);
        fake->data[ID_NS_NSZE] = fake->data[ID_NS_NCAP] = 8;
        request = fake_send(fake, admin, &create, fake->data, 4096);
        fake_run(fake);
        assert_int_equal(volume.job.size_bytes, 8 * 512);
        assert_true(volume.job.is_private);
        end_job(rows[i].result);
        assert_int_equal(request->cqe.status & ~MORE, rows[i].status);
        assert_int_equal(request->cqe.dw0, 0);
    }
}

static void test_a_creation_names_its_ana_group(void **state)
{
    static const struct {
        uint8_t anagrpid, group;
    } rows[] = {{0, 1}, {1, 1}, {16, 16}};
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe create = fake_admin(ADMIN_NS_MANAGEMENT, 0, 0, 0);

    memset(fake->data, 0, 4096);
    fake->data[ID_NS_NSZE] = fake->data[ID_NS_NCAP] = 8;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        fake->data[ID_NS_ANAGRPID] = rows[i].anagrpid;
        fake_send(fake, admin, &create, fake->data, 4096);
        fake_run(fake);
        assert_int_equal(volume.job.anagrpid, rows[i].group);
        end_job(NVMF_VOLUME_NO_CAPACITY);
    }
    fake->data[ID_NS_ANAGRPID] = 17;
    assert_int_equal(fake_exec(fake, admin, &create, fake->data, 4096).status &
                         NVME_SC_MASK,
                     NVME_SC_ANA_GROUP_INVALID);
}

static void test_what_is_out_of_reach_is_not_managed(void **state)
{
    static const uint32_t nsids[] = {1, NVME_NSID_ALL};
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe detach = fake_admin(ADMIN_NS_ATTACHMENT, 1, 1, 0);

    assert_int_equal(nvmf_target_set_ana(fake->target, 1, 1, ANA_INACCESSIBLE,
                                         0, fake->now_us),
                     NVMF_ANA_OK);
    for (size_t i = 0; i < ARRAY_LEN(nsids); i++) {
        assert_int_equal(send_delete(fake, admin, nsids[i])->cqe.status & ~MORE,
                         NVME_SC_ANA_INACCESSIBLE);
        assert_int_equal(send_format(fake, admin, nsids[i])->cqe.status & ~MORE,
                         NVME_SC_ANA_INACCESSIBLE);
    }
    memset(fake->data, 0, 4096);
    assert_int_equal(fake_exec(fake, admin, &detach, fake->data, 4096).status &
                         ~MORE,
                     NVME_SC_ANA_INACCESSIBLE);
    assert_int_equal(volume.jobs, 0);
}

static void test_attaching_a_namespace_counts_as_a_change_of_its_group(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    const struct nvmf_ctrl *ctrl =
        &fake->target->ctrl[fake->target->qpair[admin].ctrl];

    volume.is_detached[0] = true;
    nvmf_target_ns_loaded(fake->target, 1);
    assert_int_equal(ctrl->ana_changes, 1);
    assert_int_equal(ctrl->ana_group_changes[0], 1);
    volume.is_detached[0] = false;
    nvmf_target_ns_loaded(fake->target, 1);
    assert_int_equal(ctrl->ana_changes, 2);
    nvmf_target_ns_loaded(fake->target, 1); /* attached as before */
    assert_int_equal(ctrl->ana_changes, 2);
}

static void test_a_detached_namespace_is_inactive_for_its_host(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe detach = fake_admin(ADMIN_NS_ATTACHMENT, 1, 1, 0);
    struct nvme_sqe identify =
        fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLERS, 0);
    uint8_t list[4096];

    assert_int_equal(
        fake_exec(fake, admin, &identify, list, sizeof(list)).status, 0);
    assert_int_equal(list[0], 1);
    volume.attach_result = NVMF_VOLUME_FAILED;
    assert_int_equal(
        fake_exec(fake, admin, &detach, list, sizeof(list)).status &
            NVME_SC_MASK,
        NVME_SC_INTERNAL);
    assert_int_equal(read_status(fake, io, 1), NVME_SC_SUCCESS);
    volume.attach_result = NVMF_VOLUME_OK;
    assert_int_equal(fake_exec(fake, admin, &detach, list, sizeof(list)).status,
                     0);
    assert_int_equal(read_status(fake, io, 1), NVME_SC_INVALID_FIELD);
    /* A new controller of the host does not have it either. */
    admin = fake_host(fake, 0);
    io = fake_io_queue(fake, admin, 1);
    assert_int_equal(read_status(fake, io, 1), NVME_SC_INVALID_FIELD);
    assert_int_equal(read_status(fake, io, 2), NVME_SC_SUCCESS);
}

static void test_a_target_without_a_volume_refuses_these_commands(void **state)
{
    static const uint8_t opcodes[] = {ADMIN_NS_MANAGEMENT, ADMIN_NS_ATTACHMENT,
                                      ADMIN_FORMAT_NVM};
    struct fake *plain = fake_new();
    uint16_t admin;

    (void)state;
    fake_start(plain);
    admin = fake_host(plain, 0);
    for (size_t i = 0; i < ARRAY_LEN(opcodes); i++) {
        struct nvme_sqe sqe = fake_admin(opcodes[i], 1, 0, 0);

        assert_int_equal(fake_exec(plain, admin, &sqe, plain->data, 0).status &
                             NVME_SC_MASK,
                         NVME_SC_INVALID_OPCODE);
    }
    fake_free(plain);
}

/* The data of the newest persistent event, which has this type. */
static const uint8_t *newest_event(struct fake *fake, uint8_t type)
{
    static uint8_t event[NVMF_EVENT_MAX];
    uint16_t len;

    assert_true(nvmf_target_event(
        fake->target, nvmf_target_events(fake->target), event, &len));
    assert_int_equal(event[PEL_EVENT_TYPE], type);
    return event + PEL_EVENT_HEADER_LEN;
}

static void test_creations_and_deletions_are_persistent_events(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe create = fake_admin(ADMIN_NS_MANAGEMENT, 0, 0, 0);
    const uint8_t *data;

    send_delete(fake, admin, 2);
    assert_int_equal(nvmf_target_events(fake->target), 0);
    end_job(NVMF_VOLUME_OK);
    data = newest_event(fake, PEL_TYPE_CHANGE_NS);
    assert_int_equal(get_le32(data), 1); /* dword 10: delete */
    assert_int_equal(get_le64(data + 8), FAKE_BLOCKS);
    assert_int_equal(get_le64(data + 24), FAKE_BLOCKS);
    assert_int_equal(data[34], NMIC_SHARED);
    assert_int_equal(get_le32(data + 36), 1);
    assert_int_equal(get_le32(data + 44), 2);

    memset(fake->data, 0, NVME_IDENTIFY_LEN);
    put_le64(fake->data + ID_NS_NSZE, 8);
    put_le64(fake->data + ID_NS_NCAP, 8);
    fake_send(fake, admin, &create, fake->data, NVME_IDENTIFY_LEN);
    fake_run(fake);
    end_job(NVMF_VOLUME_NO_CAPACITY);
    assert_int_equal(nvmf_target_events(fake->target), 1); /* not a change */
    fake_send(fake, admin, &create, fake->data, NVME_IDENTIFY_LEN);
    fake_run(fake);
    end_job(NVMF_VOLUME_OK);
    data = newest_event(fake, PEL_TYPE_CHANGE_NS);
    assert_int_equal(get_le32(data), 0);
    assert_int_equal(get_le32(data + 44), 2);

    send_delete(fake, admin, NVME_NSID_ALL);
    end_job(NVMF_VOLUME_OK);
    end_job(NVMF_VOLUME_OK);
    data = newest_event(fake, PEL_TYPE_CHANGE_NS);
    assert_int_equal(get_le64(data + 8), 0);
    assert_int_equal(get_le32(data + 44), NVME_NSID_ALL);
    assert_int_equal(nvmf_target_events(fake->target), 3);
}

static void test_formats_are_persistent_events(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    const uint8_t *data;

    send_format(fake, admin, 2);
    data = newest_event(fake, PEL_TYPE_FORMAT_START);
    assert_int_equal(get_le32(data), 2);
    end_job(NVMF_VOLUME_FAILED);
    data = newest_event(fake, PEL_TYPE_FORMAT_END);
    assert_int_equal(get_le32(data), 2);
    assert_int_equal(get_le16(data + 8) >> 1, NVME_SC_INTERNAL);
    send_format(fake, admin, NVME_NSID_ALL);
    end_job(NVMF_VOLUME_OK);
    newest_event(fake, PEL_TYPE_FORMAT_START);
    end_job(NVMF_VOLUME_OK);
    data = newest_event(fake, PEL_TYPE_FORMAT_END);
    assert_int_equal(get_le32(data), NVME_NSID_ALL);
    assert_int_equal(get_le16(data + 8), 0);
    assert_int_equal(nvmf_target_events(fake->target), 4);
}

WITH_FIXTURE(NULL, fake_teardown)
static void test_a_format_that_ends_after_a_restart_is_an_event(void **state)
{
    struct fake *fake;

    setup_volume(state);
    fake = *state;
    volume.is_erasing = true;
    fake_start(fake);
    volume.is_erasing = false;
    nvmf_target_ns_loaded(fake->target, 1);
    assert_int_equal(get_le32(newest_event(fake, PEL_TYPE_FORMAT_END)), 1);
    nvmf_target_ns_loaded(fake->target, 1);
    assert_int_equal(nvmf_target_events(fake->target), 1);
}

/* Success would tell the host that nothing is left of what it deletes. */
WITH_FIXTURE(NULL, fake_teardown)
static void test_all_namespaces_are_changed_only_if_each_of_them_can_be(
    void **state)
{
    struct fake_request *request;
    struct fake *fake;
    uint16_t admin;

    setup_volume(state);
    fake = *state;
    volume.is_erasing = true; /* since before a power cut */
    fake_start(fake);
    admin = fake_host(fake, 0);
    volume.is_erasing = false;
    nvmf_target_ns_loaded(fake->target, 2);
    request = send_delete(fake, admin, NVME_NSID_ALL);
    assert_int_equal(request->cqe.status & ~MORE, NVME_SC_FORMAT_IN_PROGRESS);
    request = send_format(fake, admin, NVME_NSID_ALL);
    assert_int_equal(request->cqe.status & ~MORE, NVME_SC_FORMAT_IN_PROGRESS);
    assert_int_equal(volume.jobs, 0);
    nvmf_target_ns_loaded(fake->target, 1);
    request = send_delete(fake, admin, NVME_NSID_ALL);
    end_job(NVMF_VOLUME_OK);
    end_job(NVMF_VOLUME_OK);
    assert_int_equal(request->cqe.status, 0);
}

TEST_FIXTURE(setup_volume, fake_teardown)
