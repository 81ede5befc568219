/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reservations: two hosts, which have different host identifiers, share a
 * namespace.  Each test begins and ends without registrants.
 *
 * Spec: NVM Express 1.4 6.10 to 6.13, 8.8, 5.14.1.16, 5.21.1.20, 5.21.1.21.
 */
#include <string.h>

#include "nvme_lib.h"
#include "nvmeof/wire/reservation.h"

enum {
    KEY_A = 0x1111,
    KEY_B = 0x2222,
    AER_CID = 0x2000,
    EVENT_US = 1000000,
    IEKEY = 1 << RESERVATION_IEKEY_BIT,
    REPORT_LEN = RSTATUS_HEADER_LEN + 8 * RCTRL_LEN,
};
#define RESERVATION_EVENT                                                      \
    (EVENT_TYPE_IO | EVENT_IO_RESERVATION << 8 | LOG_RESERVATION << 16)
#define PTPL_ON  ((uint32_t)CPTPL_ON << RESERVATION_CPTPL_SHIFT)
#define PTPL_OFF ((uint32_t)CPTPL_OFF << RESERVATION_CPTPL_SHIFT)

/* ---- Commands. */

static uint16_t run_keys(struct nvme *nvme, uint8_t opcode, uint32_t cdw10,
                         uint64_t key, uint64_t key2)
{
    struct nvme_sqe sqe = {
        .opcode = opcode, .nsid = nvme->nsid, .cdw10 = cdw10};

    put_le64(nvme->io->mem + RESERVATION_CRKEY, key);
    put_le64(nvme->io->mem + RESERVATION_KEY2, key2);
    return nvme_run(nvme, nvme->io, &sqe,
                    opcode == NVM_RESERVATION_RELEASE ? RESERVATION_RELEASE_LEN
                                                      : RESERVATION_KEYS_LEN,
                    NULL);
}

static uint16_t send_register(struct nvme *nvme, uint32_t cdw10, uint64_t key,
                              uint64_t new_key)
{
    return run_keys(nvme, NVM_RESERVATION_REGISTER, cdw10, key, new_key);
}

static uint16_t send_acquire(struct nvme *nvme, uint32_t action, uint32_t rtype,
                             uint64_t key, uint64_t prkey)
{
    return run_keys(nvme, NVM_RESERVATION_ACQUIRE,
                    rtype << RESERVATION_RTYPE_SHIFT | action, key, prkey);
}

static uint16_t send_release(struct nvme *nvme, uint32_t action, uint32_t rtype,
                             uint64_t key)
{
    return run_keys(nvme, NVM_RESERVATION_RELEASE,
                    rtype << RESERVATION_RTYPE_SHIFT | action, key, 0);
}

static uint16_t send_report(struct nvme *nvme, uint32_t eds)
{
    struct nvme_sqe sqe = {.opcode = NVM_RESERVATION_REPORT,
                           .nsid = nvme->nsid,
                           .cdw10 = REPORT_LEN / 4 - 1,
                           .cdw11 = eds};

    return nvme_run(nvme, nvme->io, &sqe, REPORT_LEN, NULL);
}

/* @return the Reservation Status, extended */
static const uint8_t *status_of(struct nvme *nvme)
{
    conf_status(nvme->conf, "Reservation Report",
                send_report(nvme, RESERVATION_EDS), NVME_SC_SUCCESS);
    return nvme->io->mem;
}

/* The Registered Controller with a key; NULL: there is none. */
static const uint8_t *find_key(const uint8_t *data, uint64_t key)
{
    for (uint16_t i = 0; i < get_le16(data + RSTATUS_REGCTL); i++) {
        const uint8_t *ctrl = data + RSTATUS_HEADER_LEN + i * RCTRL_LEN;

        if (get_le64(ctrl + RCTRL_RKEY) == key) {
            return ctrl;
        }
    }
    return NULL;
}

/* Remove all registrants, whatever an earlier test has left. */
static void clear_all(struct nvme *nvme)
{
    conf_status(nvme->conf, "Register, replace, IEKEY",
                send_register(nvme, RREGA_REPLACE | IEKEY | PTPL_OFF, 0, KEY_A),
                NVME_SC_SUCCESS);
    conf_status(nvme->conf, "Release, clear",
                send_release(nvme, RRELA_CLEAR, 0, KEY_A), NVME_SC_SUCCESS);
}

struct hosts {
    struct nvme *a, *b;
};

static struct hosts open_hosts(struct conf *conf)
{
    struct hosts hosts = {.a = nvme_open(conf)};

    if (!(get_le16(hosts.a->ctrl + ID_CTRL_ONCS) & ONCS_RESERVATIONS)) {
        conf_not_applicable(conf, "ONCS bit 5 is 0");
    }
    if (hosts.a->ns[ID_NS_RESCAP] == 0) {
        conf_not_applicable(conf, "RESCAP is 0");
    }
    hosts.b = nvme_open_host(conf, 1);
    clear_all(hosts.a);
    return hosts;
}

static void close_hosts(struct hosts *hosts)
{
    clear_all(hosts->a);
    nvme_close(hosts->b);
    nvme_close(hosts->a);
}

static void need_type(struct conf *conf, const struct nvme *nvme, uint8_t rtype)
{
    if (!(nvme->ns[ID_NS_RESCAP] >> rtype & 1)) {
        conf_not_applicable(conf, "RESCAP bit %u is 0", rtype);
    }
}

/* A and B are registered, and A holds a reservation. */
static void reserve_ns(struct hosts *hosts, uint8_t rtype)
{
    struct conf *conf = hosts->a->conf;

    need_type(conf, hosts->a, rtype);
    conf_status(conf, "Register of host A",
                send_register(hosts->a, 0, 0, KEY_A), NVME_SC_SUCCESS);
    conf_status(conf, "Register of host B",
                send_register(hosts->b, 0, 0, KEY_B), NVME_SC_SUCCESS);
    conf_status(conf, "Acquire of host A",
                send_acquire(hosts->a, RACQA_ACQUIRE, rtype, KEY_A, 0),
                NVME_SC_SUCCESS);
}

#define WITH_HOSTS(name)                                                       \
    static void name##_of(struct conf *conf, struct hosts *hosts);             \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct hosts hosts = open_hosts(conf);                                 \
                                                                               \
        name##_of(conf, &hosts);                                               \
        close_hosts(&hosts);                                                   \
    }                                                                          \
    static void name##_of(struct conf *conf, struct hosts *hosts)

/* ---- Access. */

static void expect_io(struct nvme *nvme, const char *who, uint8_t opcode,
                      bool is_allowed)
{
    struct nvme_sqe sqe = nvme_right(nvme, opcode);
    uint16_t status =
        nvme_run(nvme, nvme->io, &sqe, nvme_data_len(nvme, opcode), NULL);

    conf_note(nvme->conf, "opcode %02xh of %s", opcode, who);
    conf_status(nvme->conf, "command under a reservation", status,
                is_allowed ? NVME_SC_SUCCESS : NVME_SC_RESERVATION_CONFLICT);
}

/* The table "Command Behavior in the Presence of a Reservation". */
static void check_access(struct conf *conf, uint8_t rtype, bool stranger_reads,
                         bool registrant_reads, bool registrant_writes)
{
    struct hosts hosts = open_hosts(conf);

    reserve_ns(&hosts, rtype);
    expect_io(hosts.a, "the holder", NVM_WRITE, true);
    expect_io(hosts.a, "the holder", NVM_READ, true);
    expect_io(hosts.b, "a registrant", NVM_READ, registrant_reads);
    expect_io(hosts.b, "a registrant", NVM_WRITE, registrant_writes);
    expect_io(hosts.b, "a registrant", NVM_FLUSH, registrant_writes);
    conf_status(conf, "Unregister of host B",
                send_register(hosts.b, RREGA_UNREGISTER, KEY_B, 0),
                NVME_SC_SUCCESS);
    expect_io(hosts.b, "another host", NVM_READ, stranger_reads);
    expect_io(hosts.b, "another host", NVM_WRITE, false);
    expect_io(hosts.b, "another host", NVM_FLUSH, false);
    expect_io(hosts.a, "the holder", NVM_WRITE, true);
    close_hosts(&hosts);
}

#define TYPES(X)                                                               \
    X(write_exclusive, "write-exclusive", 1, true, true, false)                \
    X(exclusive_access, "exclusive-access", 2, false, false, false)            \
    X(write_exclusive_ro, "write-exclusive-registrants", 3, true, true, true)  \
    X(exclusive_access_ro, "exclusive-access-registrants", 4, false, true,     \
      true)                                                                    \
    X(write_exclusive_ar, "write-exclusive-all", 5, true, true, true)          \
    X(exclusive_access_ar, "exclusive-access-all", 6, false, true, true)
#define TYPE_FUNCTION(name, id, rtype, ...)                                    \
    static void access_##name(struct conf *conf)                               \
    {                                                                          \
        check_access(conf, rtype, __VA_ARGS__);                                \
    }
TYPES(TYPE_FUNCTION)

/* ---- Registration. */

WITH_HOSTS(register_key)
{
    const uint8_t *data;
    uint32_t generation = get_le32(status_of(hosts->a) + RSTATUS_GEN);

    conf_status(conf, "Register", send_register(hosts->a, 0, 0, KEY_A),
                NVME_SC_SUCCESS);
    conf_status(conf, "Register with the same key",
                send_register(hosts->a, 0, 0, KEY_A), NVME_SC_SUCCESS);
    conf_status(conf, "Register with another key",
                send_register(hosts->a, 0, 0, KEY_B),
                NVME_SC_RESERVATION_CONFLICT);
    data = status_of(hosts->b);
    conf_equal(conf, "REGCTL", get_le16(data + RSTATUS_REGCTL), 1);
    conf_check(conf, get_le32(data + RSTATUS_GEN) != generation,
               "GEN has not changed");
    conf_check(conf, find_key(data, KEY_A) != NULL, "the key is not reported");
    conf_equal(conf, "RTYPE", data[RSTATUS_RTYPE], 0);
}

WITH_HOSTS(replace)
{
    reserve_ns(hosts, RTYPE_WRITE_EXCLUSIVE);
    conf_status(conf, "Replace with a wrong key",
                send_register(hosts->a, RREGA_REPLACE, KEY_B, 7),
                NVME_SC_RESERVATION_CONFLICT);
    conf_status(conf, "Replace",
                send_register(hosts->a, RREGA_REPLACE, KEY_A, 7),
                NVME_SC_SUCCESS);
    conf_check(conf, find_key(status_of(hosts->a), 7) != NULL,
               "the new key is not reported");
    conf_status(conf, "Replace with IEKEY",
                send_register(hosts->a, RREGA_REPLACE | IEKEY, 0, 8),
                NVME_SC_SUCCESS);
    expect_io(hosts->b, "a registrant", NVM_WRITE, false);
    conf_equal(conf, "RTYPE", status_of(hosts->a)[RSTATUS_RTYPE],
               RTYPE_WRITE_EXCLUSIVE);
}

WITH_HOSTS(unregister)
{
    reserve_ns(hosts, RTYPE_WRITE_EXCLUSIVE);
    conf_status(conf, "Unregister with a wrong key",
                send_register(hosts->a, RREGA_UNREGISTER, KEY_B, 0),
                NVME_SC_RESERVATION_CONFLICT);
    conf_status(conf, "Unregister",
                send_register(hosts->a, RREGA_UNREGISTER, KEY_A, 0),
                NVME_SC_SUCCESS);
    conf_equal(conf, "RTYPE", status_of(hosts->b)[RSTATUS_RTYPE], 0);
    conf_status(conf, "Unregister of a host that is not registered",
                send_register(hosts->a, RREGA_UNREGISTER | IEKEY, 0, 0),
                NVME_SC_RESERVATION_CONFLICT);
    expect_io(hosts->b, "a registrant", NVM_WRITE, true);
}

WITH_HOSTS(fields)
{
    static const struct {
        uint8_t opcode;
        uint32_t cdw10;
    } rows[] = {
        {NVM_RESERVATION_REGISTER, 3},
        {NVM_RESERVATION_REGISTER,
         (uint32_t)CPTPL_RESERVED << RESERVATION_CPTPL_SHIFT},
        {NVM_RESERVATION_ACQUIRE, 1 << RESERVATION_RTYPE_SHIFT | 3},
        {NVM_RESERVATION_ACQUIRE, RTYPES << RESERVATION_RTYPE_SHIFT},
        {NVM_RESERVATION_ACQUIRE, 0},
        {NVM_RESERVATION_ACQUIRE, 1 << RESERVATION_RTYPE_SHIFT | IEKEY},
        {NVM_RESERVATION_RELEASE, 1 << RESERVATION_RTYPE_SHIFT | 2},
        {NVM_RESERVATION_RELEASE, 1 << RESERVATION_RTYPE_SHIFT | IEKEY},
    };

    if (!(hosts->a->ns[ID_NS_RESCAP] & RESCAP_IEKEY_1_3)) {
        conf_not_applicable(conf, "RESCAP bit 7 is 0");
    }
    conf_status(conf, "Register", send_register(hosts->a, 0, 0, KEY_A),
                NVME_SC_SUCCESS);
    for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
        conf_note(conf, "opcode %02xh, dword 10 %08xh", rows[i].opcode,
                  rows[i].cdw10);
        conf_status(
            conf, "a field out of range",
            run_keys(hosts->a, rows[i].opcode, rows[i].cdw10, KEY_A, KEY_A),
            NVME_SC_INVALID_FIELD);
    }
}

/* ---- Acquire and Release. */

WITH_HOSTS(acquire_rules)
{
    need_type(conf, hosts->a, RTYPE_EXCLUSIVE_ACCESS);
    conf_status(conf, "Acquire without a registration",
                send_acquire(hosts->a, RACQA_ACQUIRE, 1, 0, 0),
                NVME_SC_RESERVATION_CONFLICT);
    reserve_ns(hosts, RTYPE_WRITE_EXCLUSIVE);
    conf_status(
        conf, "Acquire again",
        send_acquire(hosts->a, RACQA_ACQUIRE, RTYPE_WRITE_EXCLUSIVE, KEY_A, 0),
        NVME_SC_SUCCESS);
    conf_status(
        conf, "Acquire with another type",
        send_acquire(hosts->a, RACQA_ACQUIRE, RTYPE_EXCLUSIVE_ACCESS, KEY_A, 0),
        NVME_SC_RESERVATION_CONFLICT);
    conf_status(
        conf, "Acquire of another host",
        send_acquire(hosts->b, RACQA_ACQUIRE, RTYPE_WRITE_EXCLUSIVE, KEY_B, 0),
        NVME_SC_RESERVATION_CONFLICT);
    conf_status(
        conf, "Acquire with a wrong key",
        send_acquire(hosts->a, RACQA_ACQUIRE, RTYPE_WRITE_EXCLUSIVE, KEY_B, 0),
        NVME_SC_RESERVATION_CONFLICT);
}

WITH_HOSTS(release_rules)
{
    reserve_ns(hosts, RTYPE_WRITE_EXCLUSIVE);
    conf_status(
        conf, "Release with a wrong key",
        send_release(hosts->a, RRELA_RELEASE, RTYPE_WRITE_EXCLUSIVE, KEY_B),
        NVME_SC_RESERVATION_CONFLICT);
    conf_status(
        conf, "Release with another type",
        send_release(hosts->a, RRELA_RELEASE, RTYPE_EXCLUSIVE_ACCESS, KEY_A),
        NVME_SC_INVALID_FIELD);
    conf_status(
        conf, "Release of a registrant that holds nothing",
        send_release(hosts->b, RRELA_RELEASE, RTYPE_WRITE_EXCLUSIVE, KEY_B),
        NVME_SC_SUCCESS);
    expect_io(hosts->b, "a registrant", NVM_WRITE, false);
    conf_status(
        conf, "Release",
        send_release(hosts->a, RRELA_RELEASE, RTYPE_WRITE_EXCLUSIVE, KEY_A),
        NVME_SC_SUCCESS);
    expect_io(hosts->b, "a registrant", NVM_WRITE, true);
    conf_equal(conf, "REGCTL", get_le16(status_of(hosts->a) + RSTATUS_REGCTL),
               2);
}

WITH_HOSTS(clear)
{
    const uint8_t *data;

    reserve_ns(hosts, RTYPE_WRITE_EXCLUSIVE);
    conf_status(conf, "Clear with a wrong key",
                send_release(hosts->b, RRELA_CLEAR, 0, KEY_A),
                NVME_SC_RESERVATION_CONFLICT);
    conf_status(conf, "Clear", send_release(hosts->b, RRELA_CLEAR, 0, KEY_B),
                NVME_SC_SUCCESS);
    data = status_of(hosts->a);
    conf_equal(conf, "REGCTL", get_le16(data + RSTATUS_REGCTL), 0);
    conf_equal(conf, "RTYPE", data[RSTATUS_RTYPE], 0);
}

/* ---- Preempt. */

static void preempt_holder(struct conf *conf, uint32_t action)
{
    struct hosts hosts = open_hosts(conf);
    const uint8_t *data;

    reserve_ns(&hosts, RTYPE_WRITE_EXCLUSIVE);
    conf_status(
        conf, "Preempt with a wrong key",
        send_acquire(hosts.b, action, RTYPE_WRITE_EXCLUSIVE, KEY_A, KEY_A),
        NVME_SC_RESERVATION_CONFLICT);
    conf_status(
        conf, "Preempt",
        send_acquire(hosts.b, action, RTYPE_WRITE_EXCLUSIVE, KEY_B, KEY_A),
        NVME_SC_SUCCESS);
    data = status_of(hosts.a);
    conf_equal(conf, "REGCTL", get_le16(data + RSTATUS_REGCTL), 1);
    conf_check(conf, find_key(data, KEY_B) != NULL && find_key(data, KEY_B)[2],
               "host B does not hold the reservation");
    expect_io(hosts.a, "the preempted host", NVM_WRITE, false);
    expect_io(hosts.b, "the holder", NVM_WRITE, true);
    close_hosts(&hosts);
}

static void preempt_key(struct conf *conf)
{
    preempt_holder(conf, RACQA_PREEMPT);
}

static void preempt_and_abort(struct conf *conf)
{
    preempt_holder(conf, RACQA_PREEMPT_AND_ABORT);
}

WITH_HOSTS(preempt_type)
{
    reserve_ns(hosts, RTYPE_WRITE_EXCLUSIVE);
    need_type(conf, hosts->a, RTYPE_EXCLUSIVE_ACCESS);
    conf_status(conf, "Preempt of itself",
                send_acquire(hosts->a, RACQA_PREEMPT, RTYPE_EXCLUSIVE_ACCESS,
                             KEY_A, KEY_A),
                NVME_SC_SUCCESS);
    conf_equal(conf, "REGCTL", get_le16(status_of(hosts->a) + RSTATUS_REGCTL),
               2);
    expect_io(hosts->b, "a registrant", NVM_READ, false);
}

WITH_HOSTS(preempt_registrant)
{
    reserve_ns(hosts, RTYPE_WRITE_EXCLUSIVE);
    conf_status(conf, "Preempt of a registrant",
                send_acquire(hosts->a, RACQA_PREEMPT, RTYPE_EXCLUSIVE_ACCESS,
                             KEY_A, KEY_B),
                NVME_SC_SUCCESS);
    conf_equal(conf, "RTYPE", status_of(hosts->a)[RSTATUS_RTYPE],
               RTYPE_WRITE_EXCLUSIVE);
    conf_check(conf, find_key(hosts->a->io->mem, KEY_B) == NULL,
               "host B is still registered");
    conf_status(
        conf, "Preempt with PRKEY 0",
        send_acquire(hosts->a, RACQA_PREEMPT, RTYPE_WRITE_EXCLUSIVE, KEY_A, 0),
        NVME_SC_INVALID_FIELD);
}

WITH_HOSTS(preempt_all)
{
    reserve_ns(hosts, RTYPE_WRITE_EXCLUSIVE_ALL);
    conf_status(
        conf, "Preempt of all registrants",
        send_acquire(hosts->b, RACQA_PREEMPT, RTYPE_WRITE_EXCLUSIVE, KEY_B, 0),
        NVME_SC_SUCCESS);
    conf_equal(conf, "REGCTL", get_le16(status_of(hosts->b) + RSTATUS_REGCTL),
               1);
    conf_equal(conf, "RTYPE", hosts->b->io->mem[RSTATUS_RTYPE],
               RTYPE_WRITE_EXCLUSIVE);
    expect_io(hosts->a, "the preempted host", NVM_WRITE, false);
}

/* ---- Report. */

WITH_HOSTS(report_ctrls)
{
    uint16_t cntlid = hosts->b->admin->config.cntlid;
    const uint8_t *data;
    const uint8_t *ctrl;
    uint8_t hostid[NVME_HOSTID_LEN] = {[0] = 0xcf, [15] = 1};

    reserve_ns(hosts, RTYPE_WRITE_EXCLUSIVE);
    data = status_of(hosts->a);
    ctrl = find_key(data, KEY_B);
    conf_check(conf, ctrl != NULL, "host B is not reported");
    conf_equal(conf, "CNTLID", get_le16(ctrl + RCTRL_CNTLID), cntlid);
    conf_equal(conf, "RCSTS", ctrl[RCTRL_RCSTS], 0);
    conf_same(conf, "HOSTID", ctrl + RCTRL_HOSTID, hostid, sizeof(hostid));
    conf_equal(conf, "RCSTS of the holder", find_key(data, KEY_A)[RCTRL_RCSTS],
               1);
    conf_status(conf, "Report without EDS", send_report(hosts->a, 0),
                NVME_SC_HOST_ID_FORMAT);
}

/* A registration belongs to the host, not to its association. */
WITH_HOSTS(outlives)
{
    const uint8_t *ctrl;

    reserve_ns(hosts, RTYPE_WRITE_EXCLUSIVE);
    conf_status(conf, "Preempt",
                send_acquire(hosts->b, RACQA_PREEMPT, RTYPE_WRITE_EXCLUSIVE,
                             KEY_B, KEY_A),
                NVME_SC_SUCCESS);
    nvme_close(hosts->b);
    conf_pass(conf, EVENT_US / 10);
    expect_io(hosts->a, "the preempted host", NVM_WRITE, false);
    ctrl = find_key(status_of(hosts->a), KEY_B);
    conf_check(conf, ctrl != NULL, "the holder is not registered any more");
    conf_equal(conf, "CNTLID of a host without controller",
               get_le16(ctrl + RCTRL_CNTLID), NVME_CNTLID_DYNAMIC);
    hosts->b = nvme_open_host(conf, 1);
    expect_io(hosts->b, "the holder", NVM_WRITE, true);
}

/* ---- Notifications. */

static void request_event(struct nvme *nvme, uint16_t cid)
{
    struct nvme_sqe request = {.opcode = ADMIN_ASYNC_EVENT_REQUEST, .cid = cid};

    while (nvme_log(nvme, LOG_RESERVATION, LOG_RESERVATION_LEN)[NOTICE_TYPE] !=
           NOTICE_EMPTY) {
    }
    rc_send_capsule(nvme->admin, &request, NULL, NULL, 0);
}

static void expect_notice(struct nvme *nvme, uint16_t cid, uint8_t type)
{
    struct conf *conf = nvme->conf;
    const uint8_t *log;
    struct nvme_cqe cqe;

    conf_check(conf, nvme_take_other(nvme, cid, EVENT_US, &cqe),
               "no event came");
    conf_equal(conf, "the event", cqe.dw0, RESERVATION_EVENT);
    log = nvme_log(nvme, LOG_RESERVATION, LOG_RESERVATION_LEN);
    conf_equal(conf, "the type of notification", log[NOTICE_TYPE], type);
    conf_equal(conf, "its NSID", get_le32(log + NOTICE_NSID), nvme->nsid);
    conf_check(conf, get_le64(log + NOTICE_COUNT) != 0, "its count is 0");
    log = nvme_log(nvme, LOG_RESERVATION, LOG_RESERVATION_LEN);
    conf_equal(conf, "the type after it was read", log[NOTICE_TYPE],
               NOTICE_EMPTY);
}

WITH_HOSTS(notice_preempted)
{
    request_event(hosts->a, AER_CID);
    reserve_ns(hosts, RTYPE_WRITE_EXCLUSIVE);
    conf_status(conf, "Preempt",
                send_acquire(hosts->b, RACQA_PREEMPT, RTYPE_WRITE_EXCLUSIVE,
                             KEY_B, KEY_A),
                NVME_SC_SUCCESS);
    expect_notice(hosts->a, AER_CID, NOTICE_REGISTRATION_PREEMPTED);
}

WITH_HOSTS(notice_released)
{
    request_event(hosts->b, AER_CID);
    reserve_ns(hosts, RTYPE_WRITE_EXCLUSIVE_REGISTRANTS);
    conf_status(conf, "Release",
                send_release(hosts->a, RRELA_RELEASE,
                             RTYPE_WRITE_EXCLUSIVE_REGISTRANTS, KEY_A),
                NVME_SC_SUCCESS);
    expect_notice(hosts->b, AER_CID, NOTICE_RESERVATION_RELEASED);
}

WITH_HOSTS(notice_cleared)
{
    request_event(hosts->b, AER_CID);
    reserve_ns(hosts, RTYPE_WRITE_EXCLUSIVE);
    conf_status(conf, "Clear", send_release(hosts->a, RRELA_CLEAR, 0, KEY_A),
                NVME_SC_SUCCESS);
    expect_notice(hosts->b, AER_CID, NOTICE_RESERVATION_PREEMPTED);
}

/* Feature 82h or 83h of the namespace. */
static uint16_t run_feature(struct nvme *nvme, uint8_t opcode, uint8_t fid,
                            uint32_t cdw11, struct nvme_cqe *cqe)
{
    struct nvme_sqe sqe = {
        .opcode = opcode, .nsid = nvme->nsid, .cdw10 = fid, .cdw11 = cdw11};

    return nvme_run(nvme, nvme->admin, &sqe, 0, cqe);
}

WITH_HOSTS(notice_masked)
{
    const uint32_t mask = 1u << NOTICE_RESERVATION_PREEMPTED;
    struct nvme_cqe cqe;

    conf_status(conf, "Set Features 82h",
                run_feature(hosts->a, ADMIN_SET_FEATURES,
                            FEATURE_RESERVATION_MASK, mask, &cqe),
                NVME_SC_SUCCESS);
    conf_status(conf, "Get Features 82h",
                run_feature(hosts->a, ADMIN_GET_FEATURES,
                            FEATURE_RESERVATION_MASK, 0, &cqe),
                NVME_SC_SUCCESS);
    conf_equal(conf, "the mask", cqe.dw0, mask);
    request_event(hosts->b, AER_CID);
    reserve_ns(hosts, RTYPE_WRITE_EXCLUSIVE);
    conf_status(conf, "Clear", send_release(hosts->a, RRELA_CLEAR, 0, KEY_A),
                NVME_SC_SUCCESS);
    conf_check(conf, !nvme_take_other(hosts->b, AER_CID, EVENT_US / 10, &cqe),
               "an event came although it is masked");
    conf_status(conf, "Set Features 82h",
                run_feature(hosts->a, ADMIN_SET_FEATURES,
                            FEATURE_RESERVATION_MASK, 0, &cqe),
                NVME_SC_SUCCESS);
}

/* ---- Persistence. */

static void need_ptpl(struct conf *conf, const struct nvme *nvme)
{
    if (!(nvme->ns[ID_NS_RESCAP] & RESCAP_PTPL)) {
        conf_not_applicable(conf, "RESCAP bit 0 is 0");
    }
}

WITH_HOSTS(persistence)
{
    struct nvme_cqe cqe;

    need_ptpl(conf, hosts->a);
    conf_status(conf, "Register, PTPL on",
                send_register(hosts->a, PTPL_ON, 0, KEY_A), NVME_SC_SUCCESS);
    conf_equal(conf, "PTPLS", status_of(hosts->a)[RSTATUS_PTPLS], 1);
    conf_status(conf, "Get Features 83h",
                run_feature(hosts->b, ADMIN_GET_FEATURES,
                            FEATURE_RESERVATION_PERSISTENCE, 0, &cqe),
                NVME_SC_SUCCESS);
    conf_equal(conf, "PTPL", cqe.dw0, 1);
    conf_status(conf, "Set Features 83h",
                run_feature(hosts->b, ADMIN_SET_FEATURES,
                            FEATURE_RESERVATION_PERSISTENCE, 0, &cqe),
                NVME_SC_SUCCESS);
    conf_equal(conf, "PTPLS", status_of(hosts->a)[RSTATUS_PTPLS], 0);
}

static void power_cut(struct conf *conf)
{
    struct hosts hosts = open_hosts(conf);
    const uint8_t *data;

    need_ptpl(conf, hosts.a);
    reserve_ns(&hosts, RTYPE_WRITE_EXCLUSIVE);
    conf_status(conf, "Register, PTPL on",
                send_register(hosts.a, PTPL_ON, 0, KEY_A), NVME_SC_SUCCESS);
    conf_power_cut(conf);
    hosts.a = nvme_open(conf);
    hosts.b = nvme_open_host(conf, 1);
    data = status_of(hosts.a);
    conf_equal(conf, "REGCTL after a power cut",
               get_le16(data + RSTATUS_REGCTL), 2);
    conf_equal(conf, "RTYPE", data[RSTATUS_RTYPE], RTYPE_WRITE_EXCLUSIVE);
    expect_io(hosts.b, "a registrant", NVM_WRITE, false);
    conf_status(conf, "Register, PTPL off",
                send_register(hosts.b, PTPL_OFF, 0, KEY_B), NVME_SC_SUCCESS);
    conf_power_cut(conf);
    hosts.a = nvme_open(conf);
    hosts.b = nvme_open_host(conf, 1);
    conf_equal(conf, "REGCTL after a power cut without PTPL",
               get_le16(status_of(hosts.a) + RSTATUS_REGCTL), 0);
    expect_io(hosts.b, "any host", NVM_WRITE, true);
    close_hosts(&hosts);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST("reservation." id, "NVMe 1.4 " clause, purpose, __VA_ARGS__)
#define TYPE_TEST(name, id, rtype, ...)                                        \
    TEST(id, "8.8",                                                            \
         "under a reservation of type " #rtype                                 \
         " hosts may do what the table says",                                  \
         access_##name),

static const struct conf_test tests[] = {
    TYPES(TYPE_TEST) TEST("register", "6.11, 8.8.3", "a host registers one key",
                          register_key),
    TEST("replace", "6.11, 8.8.3",
         "a key is replaced, and the reservation stays", replace),
    TEST("unregister", "6.11, 8.8.4",
         "the reservation ends with its holder's registration", unregister),
    TEST("fields", "6.10, 6.11, 6.12", "fields out of range are refused",
         fields),
    TEST("acquire", "6.10, 8.8.5",
         "only a registrant with its key acquires, if nobody else has",
         acquire_rules),
    TEST("release", "6.12, 8.8.6", "the holder releases the type that it holds",
         release_rules),
    TEST("clear", "6.12, 8.8.8", "Clear removes reservation and registrants",
         clear),
    TEST("preempt", "6.10, 8.8.7", "Preempt takes the reservation over",
         preempt_key),
    TEST("preempt-and-abort", "6.10, 8.8.7", "so does Preempt and Abort",
         preempt_and_abort),
    TEST("preempt-type", "8.8.7", "the holder changes the type", preempt_type),
    TEST("preempt-registrant", "8.8.7",
         "Preempt of another key removes its registrants only",
         preempt_registrant),
    TEST("preempt-all", "8.8.7", "PRKEY 0 takes over from all registrants",
         preempt_all),
    TEST("report", "6.13", "Report shows hosts, keys and controllers",
         report_ctrls),
    TEST("outlives", "8.8",
         "registration and reservation outlive the association", outlives),
    TEST("notice-preempted", "8.8.2, 5.2, 5.14.1.16",
         "a preempted host gets an event and a log page", notice_preempted),
    TEST("notice-released", "8.8.2, 5.2, 5.14.1.16",
         "registrants learn that a reservation was released", notice_released),
    TEST("notice-cleared", "8.8.2, 5.2, 5.14.1.16",
         "registrants learn that all were cleared", notice_cleared),
    TEST("notice-masked", "5.21.1.20", "feature 82h masks notifications",
         notice_masked),
    TEST("persistence", "5.21.1.21, 6.11",
         "CPTPL and feature 83h set the same state", persistence),
    TEST("power", "8.8.1", "PTPL decides what a power cut leaves", power_cut,
         .needs = CONF_NEEDS_CONTROL),
};
CONF_TESTS(conf_tests_nvme_reservation, "nvme", tests);
