/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The meaning of single features: queues, time, temperatures, host identifier.
 *
 * Spec: NVM Express 1.4 5.21.1; NVMe over Fabrics 1.1 chapter 4.
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    /* The first byte of rc_open_nvme()'s Host Identifier. */
    HOSTID_BYTE0 = 0xcf,
    HOSTID_LEN = 16,
    EXHID = 1,
    ALL_QUEUES = 0xfffe,
    THSEL_UNDER = 1 << 20,
    TMPSEL = 16,
    WITHIN_MS = 60000, /* The tolerance for a time that was just set. */
    SOME_TIME_BYTES = 6,
};

/* ---- 07h Number of Queues. */

static uint16_t ask_queues(struct nvme *nvme, uint32_t dword11,
                           uint32_t *granted)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_SET_FEATURES,
                           .cdw10 = FEATURE_NUMBER_OF_QUEUES,
                           .cdw11 = dword11};
    struct nvme_cqe cqe;
    uint16_t status = nvme_run(nvme, nvme->admin, &sqe, 0, &cqe);

    *granted = cqe.dw0;
    return status;
}

static uint16_t connect_queue(struct nvme *nvme, uint16_t qid,
                              struct nvmf_attempt **attempt)
{
    struct nvme_cqe cqe;

    *attempt = nvmf_attempt_io(nvme->admin, qid);
    return nvmf_attempt_run(*attempt, &cqe) & NVME_SC_MASK;
}

/* All granted queues connect, and one more does not. */
static void expect_queues_connect(struct conf *conf, uint16_t wanted)
{
    struct nvme *nvme = nvme_open_admin(conf);
    struct nvmf_attempt *attempt;
    uint32_t granted, value;
    uint16_t count;

    conf_status(conf, "Set Features",
                ask_queues(nvme, (uint32_t)(wanted - 1) * 0x10001, &granted),
                NVME_SC_SUCCESS);
    conf_status(conf, "Get Features",
                nvme_get_feature(nvme, FEATURE_NUMBER_OF_QUEUES, 0, 0, &value),
                NVME_SC_SUCCESS);
    conf_equal(conf, "the value, compared with what was granted", value,
               granted);
    count = (uint16_t)(MIN(granted & 0xffff, granted >> 16) + 1);
    conf_check(conf, count < 1000, "%u queues were granted", count);
    conf_status(conf, "Connect of queue 1", connect_queue(nvme, 1, &attempt),
                NVME_SC_SUCCESS);
    rc_close(attempt->rc);
    if (count > 1) {
        conf_status(conf, "Connect of the last queue",
                    connect_queue(nvme, count, &attempt), NVME_SC_SUCCESS);
        rc_close(attempt->rc);
    }
    nvme_close(nvme);
}

static void queues_one(struct conf *conf)
{
    expect_queues_connect(conf, 1);
}

static void queues_four(struct conf *conf)
{
    expect_queues_connect(conf, 4);
}

static void queues_most(struct conf *conf)
{
    expect_queues_connect(conf, ALL_QUEUES + 1);
}

static void queues_refused(struct conf *conf, uint32_t dword11)
{
    struct nvme *nvme = nvme_open_admin(conf);
    uint32_t granted;

    conf_status(conf, "Set Features", ask_queues(nvme, dword11, &granted),
                NVME_SC_INVALID_FIELD);
    nvme_close(nvme);
}

static void queues_sq_ffff(struct conf *conf)
{
    queues_refused(conf, 0x0000ffff);
}

static void queues_cq_ffff(struct conf *conf)
{
    queues_refused(conf, 0xffff0000);
}

static void queues_late(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    uint32_t granted;

    conf_status(conf, "Set Features with an I/O queue",
                ask_queues(nvme, 0x10001, &granted), NVME_SC_COMMAND_SEQUENCE);
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

/* ---- 0Eh Timestamp. */

static void set_time(struct nvme *nvme, uint64_t ms)
{
    put_le64(nvme->admin->mem, ms);
    conf_status(nvme->conf, "Set Features",
                nvme_timestamp(nvme, ADMIN_SET_FEATURES, LOG_TIMESTAMP_LEN),
                NVME_SC_SUCCESS);
}

static void check_time(struct nvme *nvme, uint64_t set_ms)
{
    unsigned int origin;
    uint64_t ms = nvme_get_time(nvme, &origin);

    conf_equal(nvme->conf, "origin (1: set by Set Features)", origin, 1);
    conf_check(nvme->conf, ms >= set_ms && ms < set_ms + WITHIN_MS,
               "the time is %llu ms; it was set to %llu ms",
               (unsigned long long)ms, (unsigned long long)set_ms);
}

static void time_set(struct conf *conf)
{
    struct nvme *nvme = nvme_open_clock(conf);

    set_time(nvme, 1767225600000); /* 2026-01-01 */
    check_time(nvme, 1767225600000);
    set_time(nvme, 1000);
    check_time(nvme, 1000);
    nvme_close(nvme);
}

static void time_runs(struct conf *conf)
{
    struct nvme *nvme = nvme_open_clock(conf);
    unsigned int origin;
    uint64_t first, second;

    set_time(nvme, 1767225600000);
    first = nvme_get_time(nvme, &origin);
    conf_pass(conf, 300000);
    second = nvme_get_time(nvme, &origin);
    conf_check(conf, second - first >= 290 && second - first < WITHIN_MS,
               "300 ms later the time has advanced by %llu ms",
               (unsigned long long)(second - first));
    nvme_close(nvme);
}

static void time_reset(struct conf *conf)
{
    struct nvme *nvme = nvme_open_clock(conf);

    set_time(nvme, 1767225600000);
    nvme_reset(nvme);
    check_time(nvme, 1767225600000);
    nvme_close(nvme);
}

static void time_length(struct conf *conf, uint8_t opcode, uint32_t len)
{
    struct nvme *nvme = nvme_open_clock(conf);

    set_time(nvme, 1767225600000);
    memset(nvme->admin->mem, 0, LOG_TIMESTAMP_LEN);
    conf_status(conf, "less data than the feature has bytes",
                nvme_timestamp(nvme, opcode, len), NVME_SC_SGL_INVALID_LENGTH);
    check_time(nvme, 1767225600000);
    nvme_close(nvme);
}

static void time_get_short(struct conf *conf)
{
    time_length(conf, ADMIN_GET_FEATURES, SOME_TIME_BYTES);
}

static void time_set_short(struct conf *conf)
{
    time_length(conf, ADMIN_SET_FEATURES, SOME_TIME_BYTES);
}

static void time_set_nothing(struct conf *conf)
{
    time_length(conf, ADMIN_SET_FEATURES, 0);
}

static void time_capabilities(struct conf *conf)
{
    struct nvme *nvme = nvme_open_clock(conf);
    uint32_t able;

    conf_status(conf, "Get Features",
                nvme_get_feature(nvme, FEATURE_TIMESTAMP,
                                 FEATURE_SELECT_CAPABILITIES, 0, &able),
                NVME_SC_SUCCESS);
    conf_equal(conf, "capabilities (changeable, of no namespace)",
               able & (FEATURE_CHANGEABLE | FEATURE_NS_SPECIFIC),
               FEATURE_CHANGEABLE);
    nvme_close(nvme);
}

/* ---- 0Fh Keep Alive Timer. */

static void check_kato(struct conf *conf, uint32_t wanted)
{
    struct nvme *nvme = nvme_open_admin(conf);
    uint32_t unit = get_le16(nvme->ctrl + ID_CTRL_KAS) * 100u;
    uint32_t value;

    conf_check(conf, unit != 0, "KAS is 0");
    conf_status(conf, "Set Features",
                nvme_set_feature(nvme, FEATURE_KEEP_ALIVE_TIMER, wanted),
                NVME_SC_SUCCESS);
    conf_status(conf, "Get Features",
                nvme_get_feature(nvme, FEATURE_KEEP_ALIVE_TIMER, 0, 0, &value),
                NVME_SC_SUCCESS);
    conf_check(conf,
               value == wanted ||
                   (value == (wanted + unit - 1) / unit * unit && wanted != 0),
               "KATO is %u ms after %u ms were set; KAS is %u ms", value,
               wanted, unit);
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

static void kato_off(struct conf *conf)
{
    check_kato(conf, 0);
}

static void kato_odd(struct conf *conf)
{
    check_kato(conf, 30001);
}

static void kato_exact(struct conf *conf)
{
    check_kato(conf, 120000);
}

static void kato_most(struct conf *conf)
{
    check_kato(conf, UINT32_MAX);
}

/* ---- 04h Temperature Threshold. */

static void threshold_default(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    uint32_t value;

    nvme_get_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD,
                     FEATURE_SELECT_DEFAULT, 0, &value);
    conf_equal(conf, "over-temperature threshold, which is WCTEMP by default",
               value & 0xffff, get_le16(nvme->ctrl + ID_CTRL_WCTEMP));
    nvme_get_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD,
                     FEATURE_SELECT_DEFAULT, THSEL_UNDER, &value);
    conf_equal(conf, "under-temperature threshold", value & 0xffff, 0);
    nvme_close(nvme);
}

static void threshold_two(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    uint32_t value;

    conf_status(conf, "Set Features, over",
                nvme_set_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD, 391),
                NVME_SC_SUCCESS);
    conf_status(conf, "Set Features, under",
                nvme_set_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD,
                                 THSEL_UNDER | 201),
                NVME_SC_SUCCESS);
    nvme_get_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD, 0, 0, &value);
    conf_equal(conf, "over", value & 0xffff, 391);
    nvme_get_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD, 0, THSEL_UNDER,
                     &value);
    conf_equal(conf, "under", value & 0xffff, 201);
    nvme_close(nvme);
}

static void threshold_refused(struct conf *conf, uint32_t select, bool is_get)
{
    struct nvme *nvme = nvme_open_admin(conf);
    uint32_t value;

    conf_status(conf, "Set Features",
                is_get ? (uint16_t)NVME_SC_INVALID_FIELD
                       : nvme_set_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD,
                                          select | 390),
                NVME_SC_INVALID_FIELD);
    conf_status(conf, "Get Features",
                nvme_get_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD, 0, select,
                                 &value),
                NVME_SC_INVALID_FIELD);
    nvme_close(nvme);
}

static void threshold_sensor(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    const uint8_t *log = nvme_log(nvme, LOG_SMART, LOG_SMART_LEN);
    bool has = get_le16(log + 214) != 0; /* Temperature Sensor 8. */

    nvme_close(nvme);
    if (has) {
        conf_not_applicable(conf, "temperature sensor 8 exists");
    }
    threshold_refused(conf, 8u << TMPSEL, false);
}

static void threshold_reserved(struct conf *conf)
{
    threshold_refused(conf, 9u << TMPSEL, false);
}

static void threshold_type(struct conf *conf)
{
    threshold_refused(conf, 2u << 20, false);
}

static void threshold_get_all(struct conf *conf)
{
    threshold_refused(conf, 0xfu << TMPSEL, true);
}

static void threshold_set_all(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    uint32_t value;

    conf_status(conf, "Set Features of all sensors",
                nvme_set_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD,
                                 0xfu << TMPSEL | 392),
                NVME_SC_SUCCESS);
    nvme_get_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD, 0, 0, &value);
    conf_equal(conf, "the threshold of the composite temperature",
               value & 0xffff, 392);
    nvme_close(nvme);
}

/* ---- 02h Power Management, 81h Host Identifier. */

static void power_beyond(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    uint32_t npss = nvme->ctrl[ID_CTRL_NPSS];
    uint32_t value;

    conf_status(conf, "a power state above NPSS",
                nvme_set_feature(nvme, FEATURE_POWER_MANAGEMENT, npss + 1),
                NVME_SC_INVALID_FIELD);
    nvme_get_feature(nvme, FEATURE_POWER_MANAGEMENT, 0, 0, &value);
    conf_check(conf, (value & 0x1f) <= npss, "the power state is %u",
               value & 0x1f);
    nvme_close(nvme);
}

static uint16_t run_host_id(struct nvme *nvme, uint8_t opcode, uint32_t dword11,
                            uint32_t len)
{
    struct nvme_sqe sqe = {
        .opcode = opcode, .cdw10 = FEATURE_HOST_IDENTIFIER, .cdw11 = dword11};

    return nvme_run(nvme, nvme->admin, &sqe, len, NULL);
}

static void hostid_get(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    const uint8_t expected[HOSTID_LEN] = {HOSTID_BYTE0};

    conf_status(conf, "Get Features",
                run_host_id(nvme, ADMIN_GET_FEATURES, EXHID, HOSTID_LEN),
                NVME_SC_SUCCESS);
    conf_same(conf, "the Host Identifier of Connect", nvme->admin->mem,
              expected, HOSTID_LEN);
    nvme_close(nvme);
}

static void hostid_short_form(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);

    conf_status(conf, "Get Features, 64 bits",
                run_host_id(nvme, ADMIN_GET_FEATURES, 0, 8),
                NVME_SC_INVALID_FIELD);
    nvme_close(nvme);
}

static void hostid_length(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);

    conf_status(conf, "Get Features, 128 bits into 8 bytes",
                run_host_id(nvme, ADMIN_GET_FEATURES, EXHID, 8),
                NVME_SC_SGL_INVALID_LENGTH);
    nvme_close(nvme);
}

static void hostid_set(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);

    memset(nvme->admin->mem, 1, HOSTID_LEN);
    conf_status(conf, "Set Features",
                run_host_id(nvme, ADMIN_SET_FEATURES, EXHID, HOSTID_LEN),
                NVME_SC_COMMAND_SEQUENCE);
    nvme_close(nvme);
    hostid_get(conf);
}

/* ---- 06h Volatile Write Cache. */

/*
 * Data written with the cache on is still there after the cache was turned off.
 */
static void cache_off(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    uint32_t before, value;

    if (!(nvme->ctrl[ID_CTRL_VWC] & VWC_PRESENT)) {
        conf_not_applicable(conf, "VWC bit 0 is 0");
    }
    nvme_get_feature(nvme, FEATURE_VOLATILE_WRITE_CACHE, 0, 0, &before);
    nvme_write(nvme, 0, 16, 21);
    conf_status(conf, "Set Features, off",
                nvme_set_feature(nvme, FEATURE_VOLATILE_WRITE_CACHE, 0),
                NVME_SC_SUCCESS);
    nvme_get_feature(nvme, FEATURE_VOLATILE_WRITE_CACHE, 0, 0, &value);
    conf_equal(conf, "WCE", value, 0);
    nvme_verify(nvme, 0, 16, 21);
    nvme_write(nvme, 0, 16, 22);
    conf_status(conf, "Set Features, on again",
                nvme_set_feature(nvme, FEATURE_VOLATILE_WRITE_CACHE, before),
                NVME_SC_SUCCESS);
    nvme_verify(nvme, 0, 16, 22);
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, fn)                                          \
    CONF_TEST("feature." id, "NVMe 1.4 " clause, purpose, fn)

static const struct conf_test tests[] = {
    TEST("queues-one", "5.21.1.7", "one queue is granted and connects",
         queues_one),
    TEST("queues-four", "5.21.1.7",
         "of four queues the last one that is granted connects", queues_four),
    TEST("queues-most", "5.21.1.7",
         "of 65535 queues the last one that is granted connects", queues_most),
    TEST("queues-sq-ffff", "5.21.1.7",
         "NSQR FFFFh is refused with Invalid Field", queues_sq_ffff),
    TEST("queues-cq-ffff", "5.21.1.7",
         "NCQR FFFFh is refused with Invalid Field", queues_cq_ffff),
    TEST("queues-late", "5.21.1.7",
         "Number of Queues is refused with Command Sequence Error after an I/O "
         "queue was connected",
         queues_late),
    TEST("timestamp-set", "5.21.1.14",
         "the Timestamp is what was set, with origin 1", time_set),
    TEST("timestamp-runs", "5.21.1.14", "the Timestamp counts milliseconds",
         time_runs),
    TEST("timestamp-reset", "5.21.1.14",
         "the Timestamp survives a controller reset", time_reset),
    TEST("timestamp-get-short", "5.21.1.14, 4.4",
         "Get Features of the Timestamp into 6 bytes is refused",
         time_get_short),
    TEST("timestamp-set-short", "5.21.1.14, 4.4",
         "Set Features of the Timestamp from 6 bytes is refused",
         time_set_short),
    TEST("timestamp-set-nothing", "5.21.1.14, 4.4",
         "Set Features of the Timestamp from no bytes is refused",
         time_set_nothing),
    TEST("timestamp-capabilities", "5.13, 7.8", "the Timestamp is changeable",
         time_capabilities),
    TEST("kato-off", "5.21.1.15", "0 turns the Keep Alive timer off", kato_off),
    TEST("kato-odd", "5.21.1.15",
         "the timer is kept as set, or rounded up to KAS", kato_odd),
    TEST("kato-exact", "5.21.1.15", "a multiple of KAS is kept as set",
         kato_exact),
    TEST("kato-most", "5.21.1.15", "a timer of all ones is accepted",
         kato_most),
    TEST("threshold-default", "5.21.1.4",
         "the default thresholds are WCTEMP and 0", threshold_default),
    TEST("threshold-two", "5.21.1.4",
         "over- and under-temperature thresholds are two values",
         threshold_two),
    TEST("threshold-sensor", "5.21.1.4",
         "the threshold of a sensor that does not exist is refused",
         threshold_sensor),
    TEST("threshold-reserved", "5.21.1.4", "a reserved TMPSEL is refused",
         threshold_reserved),
    TEST("threshold-type", "5.21.1.4", "a reserved THSEL is refused",
         threshold_type),
    TEST("threshold-get-all", "5.21.1.4",
         "Get Features of all sensors is refused", threshold_get_all),
    TEST("threshold-set-all", "5.21.1.4",
         "Set Features of all sensors sets the composite temperature's "
         "threshold",
         threshold_set_all),
    TEST("power-beyond", "5.21.1.2", "a power state above NPSS is refused",
         power_beyond),
    TEST("host-id", "5.21.1; NVMe-oF 1.1 3.3",
         "the Host Identifier is that of Connect", hostid_get),
    TEST("host-id-64", "5.21.1; NVMe-oF 1.1 4.1",
         "a Host Identifier of 64 bits is refused", hostid_short_form),
    TEST("host-id-length", "5.21.1, 4.4",
         "Get Features of the Host Identifier into 8 bytes is refused",
         hostid_length),
    TEST("host-id-set", "5.21.1; NVMe-oF 1.1 3.3",
         "Set Features of the Host Identifier is refused with Command Sequence "
         "Error",
         hostid_set),
    TEST("write-cache-off", "5.21.1.6",
         "turning the write cache off loses no data", cache_off),
};
CONF_TESTS(conf_tests_nvme_value, "nvme", tests);
