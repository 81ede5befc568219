/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reservation commands of several hosts: what they forbid, report and tell, and
 * what the store keeps.
 */
#include "fake.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/reservation.h"
#include "tests/test_fixture.h"

enum {
    KEY_A = 0xaaaa,
    KEY_B = 0xbbbb,
    HOST_A = 0xa1,
    HOST_B = 0xb2,
    CONFLICT = NVME_SC_RESERVATION_CONFLICT,
};

struct host {
    uint16_t admin, io;
};

/* What the fake store has been given. */
static struct {
    unsigned int saves;
    enum nvmf_volume_result result;
    struct reservation kept;
    bool has_kept;
    uint8_t uuid[16];
    struct reservation_saver by; /* of the last save */
} store;                         /* static, because tests run one by one */

static enum nvmf_volume_result save_state(void *ctx, uint32_t nsid,
                                          const uint8_t *uuid,
                                          const struct reservation *res,
                                          const struct reservation_saver *by)
{
    (void)ctx;
    assert_int_equal(nsid, 1);
    store.saves++;
    store.by = *by;
    if (store.result == NVMF_VOLUME_OK) {
        store.kept = *res;
        store.has_kept = res->ptpl;
        memcpy(store.uuid, uuid, sizeof(store.uuid));
    }
    return store.result;
}

static bool load_state(void *ctx, uint32_t nsid, const uint8_t *uuid,
                       struct reservation *res)
{
    (void)ctx;
    if (nsid != 1 || !store.has_kept ||
        memcmp(uuid, store.uuid, sizeof(store.uuid)) != 0) {
        return false;
    }
    *res = store.kept;
    return true;
}

static void use_store(struct fake *fake)
{
    fake->config.reservations =
        (struct nvmf_reservations){.save = save_state, .load = load_state};
}

static int setup_store(void **state)
{
    struct fake *fake = fake_new();

    memset(&store, 0, sizeof(store));
    use_store(fake);
    fake_start(fake);
    *state = fake;
    return 0;
}

static struct host connect_host(struct fake *fake, uint8_t hostid)
{
    struct host host;

    fake->hostid = hostid;
    host.admin = fake_host(fake, 0);
    host.io = fake_io_queue(fake, host.admin, 1);
    return host;
}

static struct nvme_sqe make_sqe(uint8_t opcode, uint8_t action, uint8_t rtype)
{
    return fake_admin(opcode, 1, (uint32_t)rtype << 8 | action, 0);
}

static uint16_t run_keys(struct fake *fake, struct host host,
                         const struct nvme_sqe *sqe, uint64_t key,
                         uint64_t key2)
{
    uint8_t data[RESERVATION_KEYS_LEN];

    put_le64(data, key);
    put_le64(data + 8, key2);
    return fake_exec(fake, host.io, sqe, data,
                     sqe->opcode == NVM_RESERVATION_RELEASE ? 8 : 16)
               .status &
           NVME_SC_MASK;
}

static uint16_t send_register(struct fake *fake, struct host host,
                              uint32_t cdw10, uint64_t key, uint64_t new_key)
{
    struct nvme_sqe sqe = fake_admin(NVM_RESERVATION_REGISTER, 1, cdw10, 0);

    return run_keys(fake, host, &sqe, key, new_key);
}

static uint16_t send_acquire(struct fake *fake, struct host host,
                             uint8_t action, uint8_t rtype, uint64_t key,
                             uint64_t prkey)
{
    struct nvme_sqe sqe = make_sqe(NVM_RESERVATION_ACQUIRE, action, rtype);

    return run_keys(fake, host, &sqe, key, prkey);
}

static uint16_t send_release(struct fake *fake, struct host host,
                             uint8_t action, uint8_t rtype, uint64_t key)
{
    struct nvme_sqe sqe = make_sqe(NVM_RESERVATION_RELEASE, action, rtype);

    return run_keys(fake, host, &sqe, key, 0);
}

static const uint8_t *send_report(struct fake *fake, struct host host,
                                  uint32_t len)
{
    struct nvme_sqe sqe =
        fake_admin(NVM_RESERVATION_REPORT, 1, len / 4 - 1, RESERVATION_EDS);

    memset(fake->data, 0xa5, len);
    assert_int_equal(fake_exec(fake, host.io, &sqe, fake->data, len).status, 0);
    return fake->data;
}

static uint16_t io_status(struct fake *fake, struct host host, uint8_t opcode)
{
    struct nvme_sqe sqe = fake_rw(opcode, 0, 1);
    uint32_t len = 512;

    if (opcode == NVM_DATASET_MANAGEMENT) {
        sqe.cdw10 = 0;
        len = 16;
        memset(fake->data, 0, len);
    } else if (opcode == NVM_COPY) {
        len = 32;
        memset(fake->data, 0, len);
    } else if (opcode == NVM_FLUSH || opcode == NVM_VERIFY ||
               opcode == NVM_WRITE_ZEROES) {
        len = 0;
    }
    return fake_exec(fake, host.io, &sqe, fake->data, len).status &
           NVME_SC_MASK;
}

/* Both hosts are registered, and A holds a reservation. */
static void reserve_ns(struct fake *fake, struct host a, struct host b,
                       uint8_t rtype)
{
    assert_int_equal(send_register(fake, a, 0, 0, KEY_A), 0);
    assert_int_equal(send_register(fake, b, 0, 0, KEY_B), 0);
    assert_int_equal(send_acquire(fake, a, RACQA_ACQUIRE, rtype, KEY_A, 0), 0);
}

static void test_each_io_command_is_in_the_group_of_the_specification(
    void **state)
{
    static const uint8_t reads[] = {NVM_READ, NVM_COMPARE, NVM_VERIFY};
    static const uint8_t writes[] = {NVM_WRITE, NVM_WRITE_ZEROES, NVM_FLUSH,
                                     NVM_DATASET_MANAGEMENT, NVM_COPY};
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    struct nvme_sqe flush = fake_admin(NVM_FLUSH, NVME_NSID_ALL, 0, 0);

    reserve_ns(fake, a, b, RTYPE_WRITE_EXCLUSIVE);
    for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
        assert_int_not_equal(io_status(fake, b, reads[i]), CONFLICT);
    }
    for (size_t i = 0; i < ARRAY_LEN(writes); i++) {
        assert_int_equal(io_status(fake, a, writes[i]), 0);
        assert_int_equal(io_status(fake, b, writes[i]), CONFLICT);
    }
    assert_int_equal(
        fake_exec(fake, b.io, &flush, NULL, 0).status & NVME_SC_MASK, CONFLICT);
    assert_int_equal(send_acquire(fake, a, RACQA_PREEMPT,
                                  RTYPE_EXCLUSIVE_ACCESS, KEY_A, KEY_A),
                     0);
    for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
        assert_int_equal(io_status(fake, b, reads[i]), CONFLICT);
    }
    /* Namespace 2 is nobody's. */
    flush.nsid = 2;
    assert_int_equal(fake_exec(fake, b.io, &flush, NULL, 0).status, 0);
    assert_int_equal(
        send_release(fake, a, RRELA_RELEASE, RTYPE_EXCLUSIVE_ACCESS, KEY_A), 0);
    assert_int_equal(io_status(fake, b, NVM_READ), 0);
    assert_int_equal(fake->target->ns[0].caution, 0);
}

/* Copy of format 2 from namespace 1, which may be reserved, to namespace 2. */
static uint16_t copy_from_reserved(struct fake *fake, struct host host)
{
    struct nvme_sqe sqe = fake_rw(NVM_COPY, 0, 1);
    uint8_t range[32] = {0};

    sqe.nsid = 2;
    sqe.cdw12 = 2 << 8;
    put_le32(range, 1);
    return fake_exec(fake, host.io, &sqe, range, sizeof(range)).status &
           NVME_SC_MASK;
}

static void test_a_reservation_of_the_source_of_a_copy_holds(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    struct nvme_sqe enable =
        fake_admin(ADMIN_SET_FEATURES, 0, FEATURE_HOST_BEHAVIOR, 0);

    memset(fake->data, 0, 512);
    put_le16(fake->data + 4, 1 << 2);
    assert_int_equal(fake_exec(fake, b.admin, &enable, fake->data, 512).status,
                     0);
    reserve_ns(fake, a, b, RTYPE_WRITE_EXCLUSIVE);
    assert_int_equal(copy_from_reserved(fake, b), 0);
    assert_int_equal(send_acquire(fake, a, RACQA_PREEMPT,
                                  RTYPE_EXCLUSIVE_ACCESS, KEY_A, KEY_A),
                     0);
    assert_int_equal(copy_from_reserved(fake, b), CONFLICT);
    assert_int_equal(fake->target->ns[0].users, 0);
}

/* A fenced host must not fill the drive's error log. */
static void test_a_conflict_is_final_and_not_in_the_error_log(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 1);

    reserve_ns(fake, a, b, RTYPE_EXCLUSIVE_ACCESS);
    assert_int_equal(fake_exec(fake, b.io, &read, fake->data, 512).status &
                         ~MORE,
                     CONFLICT | DNR);
    assert_int_equal(nvmf_target_counters(fake->target)->error_log_entries, 0);
}

static void test_a_reservation_outlives_the_association_of_its_holder(
    void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    const uint8_t *data;

    reserve_ns(fake, a, b, RTYPE_WRITE_EXCLUSIVE);
    fake_close(fake, a.io);
    fake_close(fake, a.admin);
    fake_run(fake);
    assert_int_equal(io_status(fake, b, NVM_WRITE), CONFLICT);
    data = send_report(fake, b, 64 + 2 * 64);
    assert_int_equal(get_le16(data + 5), 2);
    assert_int_equal(get_le16(data + 64), 0xffff); /* A has no controller */
    assert_int_equal(data[64 + 2], 1);
    assert_int_not_equal(get_le16(data + 128), 0xffff);
    assert_int_equal(data[128 + 2], 0);
    a = connect_host(fake, HOST_A);
    assert_int_equal(io_status(fake, a, NVM_WRITE), 0);
    data = send_report(fake, b, 64 + 2 * 64);
    assert_int_not_equal(get_le16(data + 64), 0xffff);
}

static void test_report_has_the_layout_of_the_extended_structure(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host again = connect_host(fake, HOST_A);
    const struct nvmf_ctrl *ctrl = fake->target->ctrl;
    uint8_t hostid[16];
    const uint8_t *data;

    memset(hostid, HOST_A, sizeof(hostid));
    assert_int_equal(send_register(fake, a, 0, 0, 0x1122334455667788), 0);
    assert_int_equal(send_acquire(fake, again, RACQA_ACQUIRE,
                                  RTYPE_WRITE_EXCLUSIVE_ALL, 0x1122334455667788,
                                  0),
                     0);
    data = send_report(fake, a, 256);
    assert_int_equal(get_le32(data), 1); /* GEN */
    assert_int_equal(data[4], RTYPE_WRITE_EXCLUSIVE_ALL);
    assert_int_equal(get_le16(data + 5), 2); /* one host, two controllers */
    assert_int_equal(data[9], 0);
    for (unsigned int i = 0; i < 2; i++) {
        const uint8_t *entry = data + 64 + i * 64;

        assert_int_equal(get_le16(entry), ctrl[i].cntlid);
        assert_int_equal(entry[2], 1);
        assert_true(get_le64(entry + 8) == 0x1122334455667788);
        assert_memory_equal(entry + 16, hostid, 16);
        assert_int_equal(entry[32], 0);
    }
    assert_int_equal(data[192], 0); /* zeroes follow */
    send_report(fake, a, 8);        /* a part is allowed */
}

static void test_a_report_in_windows_is_the_same(void **state)
{
    static uint8_t whole[64 + 100 * 64];
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct reservation *res = &fake->target->reservation[0];

    assert_int_equal(send_register(fake, a, 0, 0, KEY_A), 0);
    for (uint8_t i = 1; i < 100; i++) {
        memset(res->registrant[i].hostid, i, 16);
        res->registrant[i].key = i;
    }
    res->count = 100;
    memcpy(whole, send_report(fake, a, sizeof(whole)), sizeof(whole));
    assert_int_equal(get_le64(whole + 64 + 99 * 64 + 8), 99);
    fake->window_max = 1024 - 32;
    assert_memory_equal(send_report(fake, a, sizeof(whole)), whole,
                        sizeof(whole));
}

static void test_report_wants_the_extended_structure(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct nvme_sqe sqe = fake_admin(NVM_RESERVATION_REPORT, 1, 15, 0);

    assert_int_equal(fake_exec(fake, a.io, &sqe, fake->data, 64).status &
                         NVME_SC_MASK,
                     NVME_SC_HOST_ID_FORMAT);
    sqe.cdw11 = RESERVATION_EDS;
    sqe.cdw10 = UINT32_MAX;
    assert_int_equal(fake_exec(fake, a.io, &sqe, fake->data, 64).status &
                         NVME_SC_MASK,
                     NVME_SC_INVALID_FIELD);
}

static void test_fields_out_of_range_are_refused(void **state)
{
    static const struct {
        uint8_t opcode;
        uint32_t cdw10;
    } rows[] = {
        {NVM_RESERVATION_REGISTER, 3},
        {NVM_RESERVATION_REGISTER, (uint32_t)CPTPL_RESERVED << 30},
        {NVM_RESERVATION_ACQUIRE, 3 | 1 << 8},
        {NVM_RESERVATION_ACQUIRE, 0},
        {NVM_RESERVATION_ACQUIRE, 7 << 8},
        {NVM_RESERVATION_ACQUIRE, 1 << 8 | 8},
        {NVM_RESERVATION_RELEASE, 2 | 1 << 8},
        {NVM_RESERVATION_RELEASE, 0},
        {NVM_RESERVATION_RELEASE, 1 << 8 | 8},
    };
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);

    assert_int_equal(send_register(fake, a, 0, 0, KEY_A), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct nvme_sqe sqe = fake_admin(rows[i].opcode, 1, rows[i].cdw10, 0);

        assert_int_equal(run_keys(fake, a, &sqe, KEY_A, KEY_A),
                         NVME_SC_INVALID_FIELD);
    }
    assert_int_equal(get_le32(send_report(fake, a, 64)), 1);
}

/* One peer registers with one identifier after the other. */
static void test_identifiers_of_one_peer_leave_places_for_others(void **state)
{
    struct fake *fake = *state;
    uint16_t status = 0;
    struct host host;
    uint8_t count = 0;

    while (status == 0) {
        host = connect_host(fake, ++count);
        status = send_register(fake, host, 0, 0, count);
        fake_close(fake, host.admin);
    }
    assert_int_equal(status, NVME_SC_INTERNAL);
    assert_int_equal(count, 97);
    fake->peer++;
    host = connect_host(fake, count);
    assert_int_equal(send_register(fake, host, 0, 0, count), 0);
}

static void test_a_host_without_identifier_cannot_register(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct nvmf_ctrl *ctrl = &fake->target->ctrl[0];

    memset(ctrl->hostid, 0, sizeof(ctrl->hostid));
    assert_int_equal(send_register(fake, a, 0, 0, KEY_A),
                     NVME_SC_COMMAND_SEQUENCE);
}

/* ---- Notifications. */

static uint16_t read_notice(struct fake *fake, struct host host,
                            uint8_t *available)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_GET_LOG_PAGE, 0,
                                     LOG_RESERVATION | (64 / 4 - 1) << 16, 0);

    assert_int_equal(fake_exec(fake, host.admin, &sqe, fake->data, 64).status,
                     0);
    *available = fake->data[9];
    assert_int_equal(get_le32(fake->data + 12), fake->data[8] != 0);
    return fake->data[8];
}

static struct fake_request *send_aer(struct fake *fake, struct host host)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_ASYNC_EVENT_REQUEST, 0, 0, 0);
    struct fake_request *request = fake_send(fake, host.admin, &sqe, NULL, 0);

    fake_run(fake);
    return request;
}

static void test_a_preempted_host_gets_an_event_and_a_log_page(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    struct fake_request *aer = send_aer(fake, a);
    struct fake_request *none = send_aer(fake, b);
    uint8_t available;

    reserve_ns(fake, a, b, RTYPE_WRITE_EXCLUSIVE);
    assert_false(aer->is_answered);
    assert_int_equal(send_acquire(fake, b, RACQA_PREEMPT, RTYPE_WRITE_EXCLUSIVE,
                                  KEY_B, KEY_A),
                     0);
    assert_true(aer->is_answered);
    assert_int_equal(aer->cqe.dw0, 0x800006);
    assert_false(none->is_answered);
    assert_int_equal(read_notice(fake, a, &available),
                     NOTICE_REGISTRATION_PREEMPTED);
    assert_int_equal(available, 0);
    assert_int_equal(get_le64(fake->data), 1);
    assert_int_equal(read_notice(fake, a, &available), NOTICE_EMPTY);
    assert_int_equal(read_notice(fake, b, &available), NOTICE_EMPTY);
}

static void test_registrants_learn_of_a_release_and_a_clear(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    uint8_t available;

    reserve_ns(fake, a, b, RTYPE_EXCLUSIVE_ACCESS_REGISTRANTS);
    assert_int_equal(send_release(fake, a, RRELA_RELEASE,
                                  RTYPE_EXCLUSIVE_ACCESS_REGISTRANTS, KEY_A),
                     0);
    assert_int_equal(send_release(fake, a, RRELA_CLEAR, 0, KEY_A), 0);
    assert_int_equal(read_notice(fake, a, &available), NOTICE_EMPTY);
    assert_int_equal(read_notice(fake, b, &available),
                     NOTICE_RESERVATION_RELEASED);
    assert_int_equal(available, 1);
    assert_int_equal(read_notice(fake, b, &available),
                     NOTICE_RESERVATION_PREEMPTED);
    assert_int_equal(available, 0);
}

/* Base 2.2, figure 589: these features are not available then. */
static void test_features_need_the_namespace_within_reach(void **state)
{
    static const uint8_t fids[] = {FEATURE_RESERVATION_MASK,
                                   FEATURE_RESERVATION_PERSISTENCE};
    static const uint8_t opcodes[] = {ADMIN_GET_FEATURES, ADMIN_SET_FEATURES};
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);

    for (unsigned int i = 0; i < 4; i++) {
        struct nvme_sqe sqe = fake_admin(opcodes[i / 2], 1, fids[i % 2], 0);

        nvmf_target_set_ana(fake->target, 1, 1, ANA_INACCESSIBLE, 0,
                            fake->now_us);
        assert_int_equal(fake_exec(fake, a.admin, &sqe, NULL, 0).status &
                             NVME_SC_MASK,
                         NVME_SC_ANA_INACCESSIBLE);
        nvmf_target_set_ana(fake->target, 1, 1, ANA_OPTIMIZED, 0, fake->now_us);
        assert_int_equal(fake_exec(fake, a.admin, &sqe, NULL, 0).status &
                             NVME_SC_MASK,
                         NVME_SC_SUCCESS);
    }
}

static void test_a_mask_suppresses_notifications(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    struct nvme_sqe set =
        fake_admin(ADMIN_SET_FEATURES, 1, FEATURE_RESERVATION_MASK,
                   1u << NOTICE_RESERVATION_PREEMPTED | 1);
    struct nvme_sqe get =
        fake_admin(ADMIN_GET_FEATURES, 1, FEATURE_RESERVATION_MASK, 0);
    uint8_t available;

    assert_int_equal(fake_exec(fake, a.admin, &set, NULL, 0).status, 0);
    assert_int_equal(fake_exec(fake, b.admin, &get, NULL, 0).dw0, 8);
    reserve_ns(fake, a, b, RTYPE_WRITE_EXCLUSIVE);
    assert_int_equal(send_release(fake, a, RRELA_CLEAR, 0, KEY_A), 0);
    assert_int_equal(read_notice(fake, b, &available), NOTICE_EMPTY);
    set.nsid = NVME_NSID_ALL;
    set.cdw11 = 0;
    assert_int_equal(fake_exec(fake, a.admin, &set, NULL, 0).status, 0);
    assert_int_equal(fake_exec(fake, b.admin, &get, NULL, 0).dw0, 0);
    get.nsid = NVME_NSID_ALL;
    assert_int_equal(fake_exec(fake, b.admin, &get, NULL, 0).status &
                         NVME_SC_MASK,
                     NVME_SC_INVALID_FIELD);
}

static void test_the_oldest_of_too_many_notifications_is_lost(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    uint8_t available;

    for (unsigned int i = 0; i <= NVMF_MAX_NOTICES; i++) {
        reserve_ns(fake, a, b, RTYPE_WRITE_EXCLUSIVE);
        assert_int_equal(send_release(fake, a, RRELA_CLEAR, 0, KEY_A), 0);
    }
    read_notice(fake, b, &available);
    assert_int_equal(available, NVMF_MAX_NOTICES - 1);
    assert_int_equal(get_le64(fake->data), 2);
}

/* ---- Preempt and Abort. */

static struct fake_request *send_preempt(struct fake *fake, struct host host)
{
    static uint8_t data[RESERVATION_KEYS_LEN];
    struct nvme_sqe sqe =
        make_sqe(NVM_RESERVATION_ACQUIRE, RACQA_PREEMPT_AND_ABORT,
                 RTYPE_WRITE_EXCLUSIVE);
    struct fake_request *request;

    put_le64(data, KEY_B);
    put_le64(data + 8, KEY_A);
    request = fake_send(fake, host.io, &sqe, data, sizeof(data));
    fake_run(fake);
    return request;
}

static void test_preempt_and_abort_waits_for_the_writes_in_flight(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    struct fake_request *writing, *preempting;

    reserve_ns(fake, a, b, RTYPE_WRITE_EXCLUSIVE);
    fake->hold_media = true;
    writing = fake_send(fake, a.io, &write, fake->data, 512);
    fake_run(fake);
    preempting = send_preempt(fake, b);
    assert_false(preempting->is_answered);
    /* The reservation is B's at once. */
    assert_int_equal(io_status(fake, a, NVM_WRITE), CONFLICT);
    fake->hold_media = false;
    fake_run(fake);
    assert_true(writing->is_answered);
    assert_true(preempting->is_answered);
    assert_int_equal(preempting->cqe.status, 0);
    assert_int_equal(fake->target->ns[0].caution, 0);
    assert_int_equal(get_le32(send_report(fake, b, 64)), 3); /* executed once */
}

/* A Copy to another namespace reads this one. */
static void test_preempt_and_abort_waits_for_a_copy_that_reads(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    struct nvme_sqe enable =
        fake_admin(ADMIN_SET_FEATURES, 0, FEATURE_HOST_BEHAVIOR, 0);
    struct nvme_sqe copy = fake_rw(NVM_COPY, 0, 2);
    struct fake_request *copying, *preempting;
    uint8_t ranges[64] = {[0] = 2, [32] = 1}; /* SNSID */

    reserve_ns(fake, a, b, RTYPE_WRITE_EXCLUSIVE);
    memset(fake->data, 0, 512);
    fake->data[4] = 1 << 2;
    assert_int_equal(fake_exec(fake, a.admin, &enable, fake->data, 512).status,
                     0);
    copy.nsid = 2;
    copy.cdw12 |= 2 << 8;
    put_le64(ranges + 8, 100);
    fake->hold_media = true;
    copying = fake_send(fake, a.io, &copy, ranges, sizeof(ranges));
    fake_run(fake);
    assert_int_equal(copying->req.state, NVMF_REQUEST_MEDIA);
    preempting = send_preempt(fake, b);
    assert_int_equal(fake->target->ns[0].awaited, 1);
    for (unsigned int i = 0; i < 4; i++) {
        assert_false(preempting->is_answered);
        fake_run_media(fake);
    }
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(copying->cqe.status, 0);
    assert_true(preempting->is_answered);
    assert_int_equal(preempting->cqe.status, 0);
    assert_int_equal(fake->target->ns[0].caution, 0);
    assert_int_equal(fake->target->ns[0].users, 0);
}

/* Get LBA Status transfers no data of the namespace. */
static void test_a_reservation_does_not_concern_get_lba_status(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    struct nvme_sqe scan = fake_admin(ADMIN_GET_LBA_STATUS, 1, 0, 0);
    struct fake_request *scanning, *preempting;

    scan.cdw12 = 3;
    scan.cdw13 = 0x10u << 24;
    reserve_ns(fake, a, b, RTYPE_EXCLUSIVE_ACCESS);
    assert_int_equal(io_status(fake, b, NVM_READ), CONFLICT);
    assert_int_equal(fake_exec(fake, b.admin, &scan, fake->data, 16).status, 0);
    /* A Preempt and Abort does not wait for a scan of the host that loses its
     * registration. */
    fake->hold_media = true;
    scanning = fake_send(fake, a.admin, &scan, fake->data, 16);
    fake_run(fake);
    preempting = send_preempt(fake, b);
    assert_true(preempting->is_answered);
    assert_int_equal(preempting->cqe.status, 0);
    assert_false(scanning->is_answered);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(scanning->cqe.status, 0);
}

static void test_preempt_and_abort_ends_with_the_connection_of_the_preempted(
    void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    struct fake_request *preempting;

    reserve_ns(fake, a, b, RTYPE_WRITE_EXCLUSIVE);
    fake->hold_fetch = true;
    fake_send(fake, a.io, &write, fake->data, 512);
    fake_run(fake);
    fake->hold_fetch = false;
    /* B's own data come. */
    fake->fetch_count = 0;
    preempting = send_preempt(fake, b);
    assert_false(preempting->is_answered);
    assert_int_equal(fake->target->ns[0].awaited, 1);
    nvmf_request_fetched(fake->target,
                         &fake->request[fake->request_count - 2]->req.transfer,
                         false);
    fake_run(fake);
    assert_true(preempting->is_answered);
    assert_int_equal(preempting->cqe.status, 0);
}

static void pass_seconds(struct fake *fake, unsigned int seconds)
{
    for (unsigned int i = 0; i < 4 * seconds; i++) {
        fake->now_us += 250000;
        (void)nvmf_target_timer(fake->target, fake->now_us);
    }
}

/* The host that is preempted is silent: its data never come. */
static void test_preempt_and_abort_ends_a_silent_queue_pair(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    struct fake_request *preempting;

    reserve_ns(fake, a, b, RTYPE_WRITE_EXCLUSIVE);
    fake->hold_fetch = true;
    fake_send(fake, a.io, &write, fake->data, 512);
    fake_run(fake);
    fake->hold_fetch = false;
    fake->fetch_count = 0; /* B's own data come */
    preempting = send_preempt(fake, b);
    pass_seconds(fake, NVMF_PATIENCE_S - 2);
    assert_int_equal(fake->disconnect_count, 0);
    pass_seconds(fake, 3);
    assert_true(fake->disconnect_count >= 2);
    for (unsigned int i = 0; i < fake->disconnect_count; i++) {
        assert_int_equal(fake->disconnected[i], a.io);
    }
    assert_false(nvmf_qpair_closed(fake->target, a.io));
    nvmf_request_fetched(fake->target,
                         &fake->request[fake->request_count - 2]->req.transfer,
                         false);
    fake_run(fake);
    assert_true(preempting->is_answered);
    assert_int_equal(preempting->cqe.status, 0);
}

static bool has_disconnected(const struct fake *fake, uint16_t qpair)
{
    for (unsigned int i = 0; i < fake->disconnect_count; i++) {
        if (fake->disconnected[i] == qpair) {
            return true;
        }
    }
    return false;
}

/* Two hosts with the key that is preempted are silent: the time is that of one.
 * The command waits for both queue pairs to end, whichever ends first. */
static void test_two_silent_hosts_take_the_time_of_one(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    struct host c = connect_host(fake, 0xc3);
    const struct host *silent[] = {&a, &c};
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    struct fake_request *writing[ARRAY_LEN(silent)], *preempting;

    reserve_ns(fake, a, b, RTYPE_WRITE_EXCLUSIVE_REGISTRANTS);
    assert_int_equal(send_register(fake, c, 0, 0, KEY_A), 0);
    fake->hold_fetch = true;
    for (size_t i = 0; i < ARRAY_LEN(silent); i++) {
        writing[i] = fake_send(fake, silent[i]->io, &write, fake->data, 512);
        fake_run(fake);
    }
    fake->hold_fetch = false;
    fake->fetch_count = 0; /* B's own data come */
    preempting = send_preempt(fake, b);
    pass_seconds(fake, NVMF_PATIENCE_S + 1);
    for (size_t i = ARRAY_LEN(silent); i-- > 0;) {
        assert_true(has_disconnected(fake, silent[i]->io));
        assert_false(preempting->is_answered);
        assert_false(nvmf_qpair_closed(fake->target, silent[i]->io));
        nvmf_request_fetched(fake->target, &writing[i]->req.transfer, false);
        fake_run(fake);
    }
    assert_false(has_disconnected(fake, b.io));
    assert_true(preempting->is_answered);
    assert_int_equal(preempting->cqe.status, 0);
}

/* Each turn of the main loop comes 0.45 s late, and one 30 s. */
static void test_delays_of_a_busy_computer_do_not_add_up_to_patience(
    void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    uint64_t start_us, awake_us = 0;

    reserve_ns(fake, a, b, RTYPE_WRITE_EXCLUSIVE);
    fake->hold_fetch = true;
    fake_send(fake, a.io, &write, fake->data, 512);
    fake_run(fake);
    fake->hold_fetch = false;
    fake->fetch_count = 0;
    (void)send_preempt(fake, b);
    start_us = fake->now_us;
    for (unsigned int i = 0; fake->disconnect_count == 0; i++) {
        uint64_t next_us = nvmf_target_timer(fake->target, fake->now_us);
        uint64_t pause_us = i == 3 ? 30000000 : 0;

        fake->now_us = next_us + 450000 + pause_us;
        awake_us = fake->now_us - start_us - (i >= 3 ? 30000000 : 0);
        assert_true(awake_us < (NVMF_PATIENCE_S + 2) * 1000000);
    }
    assert_true(awake_us >= (NVMF_PATIENCE_S - 1) * 1000000);
}

static void test_preempt_and_abort_aborts_what_waits_for_buffers(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 64);
    struct fake_request *writing[2], *preempting;
    static uint8_t data[RESERVATION_KEYS_LEN];
    struct nvme_sqe sqe =
        make_sqe(NVM_RESERVATION_ACQUIRE, RACQA_PREEMPT_AND_ABORT,
                 RTYPE_WRITE_EXCLUSIVE);

    reserve_ns(fake, a, b, RTYPE_WRITE_EXCLUSIVE);
    fake->hold_media = true;
    fake->buffers_free = 0;
    for (unsigned int i = 0; i < 2; i++) {
        writing[i] = fake_send(fake, a.io, &write, fake->data, 64 * 512);
    }
    fake_run(fake);
    put_le64(data, KEY_B);
    put_le64(data + 8, KEY_A);
    preempting = fake_send_in_capsule(fake, b.io, &sqe, data, sizeof(data));
    fake_run(fake);
    assert_true(writing[1]->is_answered);
    assert_int_equal(writing[1]->cqe.status & NVME_SC_MASK,
                     NVME_SC_ABORT_PREEMPTED);
    assert_false(preempting->is_answered);
    fake->hold_media = false;
    fake_run(fake);
    /* The first one is aborted after its first window. */
    assert_int_equal(writing[0]->cqe.status & NVME_SC_MASK,
                     NVME_SC_ABORT_PREEMPTED);
    assert_int_equal(preempting->cqe.status, 0);
}

static void test_a_preempt_and_abort_that_waits_can_lose_its_connection(
    void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 1);
    struct fake_request *writing;

    reserve_ns(fake, a, b, RTYPE_WRITE_EXCLUSIVE);
    fake->hold_media = true;
    writing = fake_send(fake, a.io, &write, fake->data, 512);
    fake_run(fake);
    send_preempt(fake, b);
    fake_close(fake, b.io);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(writing->cqe.status, 0);
    assert_int_equal(fake->target->ns[0].caution, 0);
}

/* ---- Persistence. */

static void test_a_change_is_saved_before_it_is_answered(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);

    assert_int_equal(send_register(fake, a, 0, 0, KEY_A), 0);
    assert_int_equal(store.saves, 0); /* PTPL is off */
    assert_int_equal(send_register(fake, a, (uint32_t)CPTPL_ON << 30, 0, KEY_A),
                     0);
    assert_int_equal(store.saves, 1);
    assert_int_equal(send_register(fake, a, 0, 0, KEY_A), 0);
    assert_int_equal(store.saves, 1); /* nothing but the generation changes */
    assert_int_equal(
        send_acquire(fake, a, RACQA_ACQUIRE, RTYPE_WRITE_EXCLUSIVE, KEY_A, 0),
        0);
    assert_int_equal(store.saves, 2);
    assert_int_equal(store.kept.rtype, RTYPE_WRITE_EXCLUSIVE);
    store.result = NVMF_VOLUME_FAILED;
    assert_int_equal(send_release(fake, a, RRELA_CLEAR, 0, KEY_A),
                     NVME_SC_INTERNAL);
    store.result = NVMF_VOLUME_TOO_OFTEN;
    assert_int_equal(send_release(fake, a, RRELA_CLEAR, 0, KEY_A),
                     NVME_SC_COMMAND_INTERRUPTED);
    assert_int_equal(send_report(fake, a, 128)[4], RTYPE_WRITE_EXCLUSIVE);
    assert_int_equal(fake->data[9], 1); /* PTPLS */
}

/* The store limits each host, and keeps some writes for those who fence others
 * off. */
static void test_the_store_hears_who_changes_what(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A), b, invented;
    uint32_t host_a;

    assert_int_equal(send_register(fake, a, (uint32_t)CPTPL_ON << 30, 0, KEY_A),
                     0);
    host_a = store.by.host;
    assert_int_not_equal(host_a, 0);
    /* Another name at the same address is the same host, for it is on no list.
     */
    fake->host_letter = 'I';
    invented = connect_host(fake, HOST_B + 1);
    assert_int_equal(send_register(fake, invented, 0, 0, KEY_B), 0);
    assert_int_equal(store.by.host, host_a);
    assert_int_equal(send_register(fake, invented, 1, KEY_B, 0), 0);
    fake->peer = 1;
    fake->host_letter = 'B';
    b = connect_host(fake, HOST_B);
    assert_int_equal(send_register(fake, b, 0, 0, KEY_B), 0);
    assert_int_not_equal(store.by.host, host_a);
    assert_false(store.by.fences_off);
    assert_int_equal(
        send_acquire(fake, a, RACQA_ACQUIRE, RTYPE_WRITE_EXCLUSIVE, KEY_A, 0),
        0);
    assert_int_equal(store.by.host, host_a);
    assert_false(store.by.fences_off);
    assert_int_equal(send_acquire(fake, b, RACQA_PREEMPT, RTYPE_WRITE_EXCLUSIVE,
                                  KEY_B, KEY_A),
                     0);
    assert_true(store.by.fences_off);
    assert_int_equal(send_release(fake, b, RRELA_CLEAR, 0, KEY_B), 0);
    assert_false(store.by.fences_off); /* only its own registration */
    assert_int_equal(send_register(fake, a, 0, 0, KEY_A), 0);
    assert_int_equal(send_register(fake, b, 0, 0, KEY_B), 0);
    assert_int_equal(send_release(fake, b, RRELA_CLEAR, 0, KEY_B), 0);
    assert_true(store.by.fences_off);
}

static void test_what_was_kept_is_in_force_after_a_start(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct host b = connect_host(fake, HOST_B);

    reserve_ns(fake, a, b, RTYPE_EXCLUSIVE_ACCESS);
    assert_int_equal(send_register(fake, b, (uint32_t)CPTPL_ON << 30, 0, KEY_B),
                     0);
    fake_free(fake);
    fake = fake_new();
    use_store(fake);
    fake_start(fake);
    *state = fake;
    b = connect_host(fake, HOST_B);
    assert_int_equal(io_status(fake, b, NVM_READ), CONFLICT);
    assert_int_equal(get_le32(send_report(fake, b, 192)), 0); /* GEN */
    assert_int_equal(get_le16(fake->data + 5), 2);
    assert_int_equal(fake->data[9], 1);
    a = connect_host(fake, HOST_A);
    assert_int_equal(io_status(fake, a, NVM_READ), 0);
}

static void test_feature_83h_changes_persistence(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct nvme_sqe set =
        fake_admin(ADMIN_SET_FEATURES, 1, FEATURE_RESERVATION_PERSISTENCE, 1);
    struct nvme_sqe get =
        fake_admin(ADMIN_GET_FEATURES, 1, FEATURE_RESERVATION_PERSISTENCE, 0);

    assert_int_equal(fake_exec(fake, a.admin, &set, NULL, 0).status, 0);
    assert_int_equal(store.saves, 1);
    assert_true(store.has_kept);
    assert_int_equal(fake_exec(fake, a.admin, &get, NULL, 0).dw0, 1);
    set.cdw11 = 0;
    assert_int_equal(fake_exec(fake, a.admin, &set, NULL, 0).status, 0);
    assert_false(store.has_kept);
    assert_int_equal(fake_exec(fake, a.admin, &get, NULL, 0).dw0, 0);
}

/* Its record is lost.  If it were not kept, the next start would open it. */
static void test_feature_83h_opens_no_closed_namespace(void **state)
{
    struct fake *fake = *state;
    struct host a = connect_host(fake, HOST_A);
    struct reservation *res = &fake->target->reservation[0];
    static const uint32_t nsids[] = {1, NVME_NSID_ALL};

    res->ptpl = true;
    res->rtype = RTYPE_EXCLUSIVE_ACCESS_ALL;
    for (size_t i = 0; i < ARRAY_LEN(nsids); i++) {
        struct nvme_sqe set = fake_admin(ADMIN_SET_FEATURES, nsids[i],
                                         FEATURE_RESERVATION_PERSISTENCE, 0);

        assert_int_equal(fake_exec(fake, a.admin, &set, NULL, 0).status & ~DNR,
                         NVME_SC_RESERVATION_CONFLICT);
        assert_int_equal(store.saves, 0);
        assert_true(res->ptpl);
    }
}

/* The data sheet limits reservations to 16 namespaces. */
static void test_a_namespace_above_16_has_no_reservations(void **state)
{
    struct fake *fake = *state;
    struct host a;
    struct nvme_sqe sqe = fake_admin(NVM_RESERVATION_REGISTER, 17, 0, 0);
    struct nvme_sqe identify = fake_admin(ADMIN_IDENTIFY, 17, CNS_NAMESPACE, 0);

    fake_free(fake);
    fake = fake_new();
    fake->ns[1].nsid = NVMF_RESERVATION_NAMESPACES + 1;
    use_store(fake);
    fake_start(fake);
    *state = fake;
    a = connect_host(fake, HOST_A);
    assert_int_equal(run_keys(fake, a, &sqe, 0, KEY_A), NVME_SC_INVALID_FIELD);
    fake_exec(fake, a.admin, &identify, fake->data, 4096);
    assert_int_equal(fake->data[31], 0);
    identify.nsid = 1;
    fake_exec(fake, a.admin, &identify, fake->data, 4096);
    assert_int_equal(fake->data[31], 0xff);
}

TEST_FIXTURE(setup_store, fake_teardown);
