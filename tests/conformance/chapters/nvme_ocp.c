/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages and features of the OCP Datacenter NVMe SSD Specification, if the
 * target says that it follows that: its page C0h has OCP's GUID.
 *
 * Spec: OCP Datacenter NVMe SSD Specification 2.0: the pages, and annex C, the
 * latency monitor.
 *
 * A command takes long here because the tester does not send its data at once.
 */
#include <string.h>

#include "nvme_lib.h"
#include "nvmeof/wire/ocp.h"

enum {
    GUID_LEN = 16,
    HOLD_US = 60000, /* how long data are held back */
    BLOCKS = 8,
    READS = 14,
    AD = 4, /* Attribute - Deallocate */
    RANGE_LEN = 16,
    SAVE = 31,
    TIMER_US = 300 * 1000 * 1000, /* of one step of the bucket timer */
    STAMP_TOLERANCE_MS = 5000,
};

/* The GUIDs as they are in the pages: the last byte first. */
static const uint8_t smart_guid[GUID_LEN] = {0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf,
                                             0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c,
                                             0xc9, 0x14, 0xd5, 0xaf};
static const uint8_t recovery_guid[GUID_LEN] = {
    0x44, 0xd9, 0x31, 0x21, 0xfe, 0x30, 0x34, 0xae,
    0xab, 0x4d, 0xfd, 0x3d, 0xba, 0x83, 0x19, 0x5a};
static const uint8_t latency_guid[GUID_LEN] = {
    0x92, 0x7a, 0xc0, 0x8c, 0xd0, 0x84, 0x6c, 0x9c,
    0x70, 0x43, 0xe6, 0xd4, 0x58, 0x5e, 0xd4, 0x85};
static const uint8_t capabilities_guid[GUID_LEN] = {
    0x97, 0x42, 0x05, 0x0d, 0xd1, 0xe1, 0xc9, 0x98,
    0x5d, 0x49, 0x58, 0x4b, 0x91, 0x3c, 0x05, 0xb7};

static struct nvme *need_ocp(struct nvme *nvme)
{
    if (nvme_get_log(nvme, LOG_OCP_SMART | LOG_RAE, 0, LOG_OCP_SMART_LEN) !=
            NVME_SC_SUCCESS ||
        memcmp(nvme->admin->mem + OCP_SMART_GUID, smart_guid, GUID_LEN) != 0) {
        conf_not_applicable(nvme->conf,
                            "page C0h does not exist, or is not OCP's");
    }
    return nvme;
}

static struct nvme *open_ocp(struct conf *conf)
{
    return need_ocp(nvme_open(conf));
}

static void check_zero(struct conf *conf, const uint8_t *page, size_t from,
                       size_t to)
{
    for (size_t i = from; i < to; i++) {
        conf_check(conf, page[i] == 0, "reserved byte %u is %02xh",
                   (unsigned int)i, page[i]);
    }
}

/* ---- Error Recovery and Device Capabilities. */

static void ocp_recovery(struct conf *conf)
{
    struct nvme *nvme = open_ocp(conf);
    const uint8_t *page = nvme_log(nvme, LOG_OCP_RECOVERY, 512);

    conf_same(conf, "GUID", page + OCP_RECOVERY_GUID, recovery_guid, GUID_LEN);
    conf_check(conf, get_le16(page + OCP_RECOVERY_VERSION) >= 2,
               "the page has version %u",
               get_le16(page + OCP_RECOVERY_VERSION));
    conf_check(conf, (page[OCP_RECOVERY_RESET_ACTION] & 0xc0) == 0,
               "reserved reset actions: %02xh",
               page[OCP_RECOVERY_RESET_ACTION]);
    conf_check(conf,
               page[OCP_RECOVERY_DEVICE_ACTION] != 0 &&
                   (page[OCP_RECOVERY_DEVICE_ACTION] & 0x80) == 0,
               "device recovery action %02xh",
               page[OCP_RECOVERY_DEVICE_ACTION]);
    conf_check(conf, (get_le32(page + OCP_RECOVERY_CAPABILITIES) & ~3u) == 0,
               "reserved capabilities: %08x",
               get_le32(page + OCP_RECOVERY_CAPABILITIES));
    check_zero(conf, page, 17, 20);
    check_zero(conf, page, 64, OCP_RECOVERY_VERSION);
    if (conf_target(conf)->is_ours) {
        conf_equal(conf, "panic ID of a drive that never panicked",
                   get_le64(page + OCP_RECOVERY_PANIC_ID), 0);
    }
    nvme_close(nvme);
}

static void check_capability(struct conf *conf, const uint8_t *page, size_t at,
                             const char *what, uint32_t bit, bool is_claimed)
{
    conf_check(conf, !!(get_le16(page + at) & bit) == is_claimed,
               "%s: the page says %04xh, Identify %s", what,
               get_le16(page + at), is_claimed ? "claims it" : "does not");
}

static void ocp_capabilities(struct conf *conf)
{
    struct nvme *nvme = open_ocp(conf);
    const uint8_t *page = nvme_log(nvme, LOG_OCP_CAPABILITIES, 4096);
    uint16_t oncs = get_le16(nvme->ctrl + ID_CTRL_ONCS);
    uint32_t sanicap = get_le32(nvme->ctrl + ID_CTRL_SANICAP);

    conf_same(conf, "GUID", page + OCP_CAPABILITIES_GUID, capabilities_guid,
              GUID_LEN);
    check_capability(conf, page, OCP_CAPABILITIES_WRITE_ZEROES, "Write Zeroes",
                     OCP_IS_SUPPORTED, oncs & ONCS_WRITE_ZEROES);
    check_capability(conf, page, OCP_CAPABILITIES_WRITE_ZEROES, "DEAC",
                     OCP_WRITE_ZEROES_DEAC,
                     nvme->ns[ID_NS_DLFEAT] & DLFEAT_WRITE_ZEROES_DEAC);
    check_capability(conf, page, OCP_CAPABILITIES_SANITIZE, "Sanitize",
                     OCP_IS_SUPPORTED, (sanicap & 7) != 0);
    check_capability(conf, page, OCP_CAPABILITIES_SANITIZE, "crypto erase", 2,
                     sanicap & SANICAP_CRYPTO);
    check_capability(conf, page, OCP_CAPABILITIES_SANITIZE, "block erase",
                     OCP_SANITIZE_BLOCK_ERASE, sanicap & SANICAP_BLOCK);
    check_capability(conf, page, OCP_CAPABILITIES_SANITIZE, "overwrite",
                     OCP_SANITIZE_OVERWRITE, sanicap & SANICAP_OVERWRITE);
    check_capability(conf, page, OCP_CAPABILITIES_DATASET, "Dataset Management",
                     OCP_IS_SUPPORTED, oncs & ONCS_DATASET_MANAGEMENT);
    check_capability(conf, page, OCP_CAPABILITIES_OUT_OF_BAND,
                     "MCTP over SMBus", OCP_OUT_OF_BAND_SMBUS,
                     nvme->ctrl[ID_CTRL_MEC] & MEC_SMBUS);
    check_capability(conf, page, OCP_CAPABILITIES_FUSED, "Compare and Write",
                     OCP_IS_SUPPORTED, nvme->ctrl[ID_CTRL_FUSES] & 1);
    check_zero(conf, page, 144, OCP_CAPABILITIES_VERSION);
    nvme_close(nvme);
}

/* ---- The latency monitor. */

/* A window of 5 minutes, and thresholds of 5, 10, 15 and 20 ms: a command whose
 * data are held back is in bucket 3. */
static const uint8_t good[] = {1, 0, 0, 1, 2, 3, 0xff, 0x0f, 0, 0, 0, 0, 1};
enum { BUCKET = 3 };

static uint16_t set_latency(struct nvme *nvme, const uint8_t *head, bool save)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_SET_FEATURES,
                           .cdw10 = FEATURE_OCP_LATENCY | (uint32_t)save
                                                              << SAVE};

    memset(nvme->admin->mem, 0, LATENCY_FEATURE_LEN);
    memcpy(nvme->admin->mem, head, sizeof(good));
    return nvme_run(nvme, nvme->admin, &sqe, LATENCY_FEATURE_LEN, NULL);
}

static void start_monitor(struct nvme *nvme, const uint8_t *head, bool save)
{
    conf_status(nvme->conf, "Set Features C5h", set_latency(nvme, head, save),
                NVME_SC_SUCCESS);
}

static const uint8_t *get_latency(struct nvme *nvme, uint32_t select)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_GET_FEATURES,
                           .cdw10 = select << 8 | FEATURE_OCP_LATENCY};
    uint8_t *copy = conf_alloc(nvme->conf, LATENCY_FEATURE_LEN);

    conf_status(nvme->conf, "Get Features C5h",
                nvme_run(nvme, nvme->admin, &sqe, LATENCY_FEATURE_LEN, NULL),
                NVME_SC_SUCCESS);
    memcpy(copy, nvme->admin->mem, LATENCY_FEATURE_LEN);
    return copy;
}

/* Switch the monitor off, also after the next start, and close. */
static void stop_monitor(struct nvme *nvme)
{
    const uint8_t *factory = get_latency(nvme, FEATURE_SELECT_DEFAULT);

    start_monitor(nvme, factory, true);
    nvme_close(nvme);
}

static const uint8_t *read_latency(struct nvme *nvme)
{
    uint8_t *copy = conf_alloc(nvme->conf, LOG_OCP_LATENCY_LEN);

    memcpy(copy, nvme_log(nvme, LOG_OCP_LATENCY, LOG_OCP_LATENCY_LEN),
           LOG_OCP_LATENCY_LEN);
    return copy;
}

static void read_windows(struct nvme *nvme, struct latency_window *active,
                         struct latency_window *fixed)
{
    const uint8_t *page = read_latency(nvme);

    latency_window_parse(active, page + LATENCY_LOG_ACTIVE);
    latency_window_parse(fixed, page + LATENCY_LOG_STATIC);
}

/* The active window has exactly these counts. */
static void expect_counts(struct nvme *nvme, const char *what,
                          const uint32_t (*counts)[LATENCY_KINDS])
{
    struct latency_window active, fixed;

    read_windows(nvme, &active, &fixed);
    for (unsigned int bucket = 0; bucket < LATENCY_BUCKETS; bucket++) {
        for (unsigned int kind = 0; kind < LATENCY_KINDS; kind++) {
            conf_check(
                nvme->conf, active.count[bucket][kind] == counts[bucket][kind],
                "%s: bucket %u, kind %u: %u counted, expected %u", what, bucket,
                kind, active.count[bucket][kind], counts[bucket][kind]);
        }
    }
}

/*
 * Run a command on the I/O queue, and keep its data back for so long.
 *
 * @return how long it took, in microseconds
 */
static uint64_t run_held(struct nvme *nvme, const struct nvme_sqe *sqe,
                         uint32_t len, uint32_t hold_us)
{
    struct conf *conf = nvme->conf;
    struct sgl sgl = rc_keyed(nvme->io, 0, len);
    uint64_t from_us = conf_now_us(conf);
    struct nvme_cqe cqe;
    uint16_t cid;

    conf_provokes(conf, CONF_LOSS);
    nvme->io->answers = false;
    cid = rc_send_capsule(nvme->io, sqe, &sgl, NULL, 0);
    conf_pass(conf, hold_us);
    nvme->io->answers = true;
    nvme_take(nvme, nvme->io, cid, &cqe);
    conf_status(conf, "the slow command", cqe.status & NVME_SC_MASK,
                NVME_SC_SUCCESS);
    return conf_now_us(conf) - from_us;
}

static uint64_t write_held(struct nvme *nvme, uint32_t hold_us)
{
    struct nvme_sqe sqe = nvme_rw_sqe(nvme, NVM_WRITE, 0, BLOCKS);

    return run_held(nvme, &sqe, BLOCKS * nvme->block_bytes, hold_us);
}

static uint64_t write_slow(struct nvme *nvme)
{
    return write_held(nvme, HOLD_US);
}

static uint64_t deallocate_slow(struct nvme *nvme, uint32_t attributes)
{
    struct nvme_sqe sqe = {.opcode = NVM_DATASET_MANAGEMENT,
                           .nsid = nvme->nsid,
                           .cdw11 = attributes};

    memset(nvme->io->mem, 0, RANGE_LEN);
    put_le32(nvme->io->mem + 4, BLOCKS);
    return run_held(nvme, &sqe, RANGE_LEN, HOLD_US);
}

static void latency_page(struct conf *conf)
{
    struct nvme *nvme = open_ocp(conf);
    const uint8_t *page, *feature;
    struct latency_window active, fixed;

    start_monitor(nvme, good, false);
    page = read_latency(nvme);
    feature = get_latency(nvme, FEATURE_SELECT_CURRENT);
    conf_same(conf, "GUID", page + LATENCY_LOG_GUID, latency_guid, GUID_LEN);
    conf_equal(conf, "feature status", page[LATENCY_LOG_STATUS] & 0xf9, 1);
    conf_same(conf, "timer threshold, thresholds and modes, as in the feature",
              page + LATENCY_LOG_TIMER_THRESHOLD, feature, 8);
    conf_equal(conf, "minimum window, as in the feature",
               page[LATENCY_LOG_MIN_WINDOW],
               feature[LATENCY_FEATURE_MIN_WINDOW]);
    check_zero(conf, page, 13, LATENCY_LOG_ACTIVE);
    check_zero(conf, page, LATENCY_LOG_ACTIVE + LATENCY_WINDOW_LEN,
               LATENCY_LOG_STATIC);
    read_windows(nvme, &active, &fixed);
    for (unsigned int i = 0; i < LATENCY_BUCKETS * LATENCY_KINDS; i++) {
        unsigned int bucket = i / LATENCY_KINDS, kind = i % LATENCY_KINDS;

        conf_check(conf,
                   active.count[bucket][kind] == 0 &&
                       active.stamp_ms[bucket][kind] == LATENCY_NO_STAMP &&
                       active.measured_ms[bucket][kind] == 0 &&
                       fixed.count[bucket][kind] == 0 &&
                       fixed.stamp_ms[bucket][kind] == LATENCY_NO_STAMP &&
                       fixed.measured_ms[bucket][kind] == 0,
                   "bucket %u, kind %u is not empty after Set Features", bucket,
                   kind);
    }
    conf_equal(conf, "debug log latency stamp",
               get_le64(page + LATENCY_LOG_DEBUG_STAMP), LATENCY_NO_STAMP);
    stop_monitor(nvme);
}

static void latency_feature(struct conf *conf)
{
    struct nvme *nvme = open_ocp(conf);
    uint8_t *expected = conf_alloc(conf, LATENCY_FEATURE_LEN);
    const uint8_t *factory = get_latency(nvme, FEATURE_SELECT_DEFAULT);
    const uint8_t *saved = get_latency(nvme, FEATURE_SELECT_SAVED);

    memset(expected, 0, LATENCY_FEATURE_LEN);
    memcpy(expected, good, sizeof(good));
    start_monitor(nvme, good, false);
    conf_same(conf, "the current value",
              get_latency(nvme, FEATURE_SELECT_CURRENT), expected,
              LATENCY_FEATURE_LEN);
    conf_same(conf, "the default", get_latency(nvme, FEATURE_SELECT_DEFAULT),
              factory, LATENCY_FEATURE_LEN);
    conf_same(conf, "the saved value, without Save",
              get_latency(nvme, FEATURE_SELECT_SAVED), saved,
              LATENCY_FEATURE_LEN);
    start_monitor(nvme, good, true);
    conf_same(conf, "the saved value", get_latency(nvme, FEATURE_SELECT_SAVED),
              expected, LATENCY_FEATURE_LEN);
    stop_monitor(nvme);
}

static void latency_refused(struct conf *conf)
{
    static const struct {
        const char *what;
        size_t at;
        uint8_t value;
    } wrong[] = {
        {"equal thresholds A and B", LATENCY_FEATURE_THRESHOLDS, 1},
        {"thresholds B and C in the wrong order",
         LATENCY_FEATURE_THRESHOLDS + 1, 3},
        {"equal thresholds C and D", LATENCY_FEATURE_THRESHOLDS + 2, 3},
        {"a reserved mode", LATENCY_FEATURE_MODES + 1, 0x1f},
        {"Discard Debug Log 3", LATENCY_FEATURE_DISCARD, 3},
        {"Enable 2", LATENCY_FEATURE_ENABLE, 2},
    };
    struct nvme *nvme = open_ocp(conf);
    uint8_t head[sizeof(good)];
    const uint8_t *before;

    start_monitor(nvme, good, false);
    before = get_latency(nvme, FEATURE_SELECT_CURRENT);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        memcpy(head, good, sizeof(head));
        head[LATENCY_FEATURE_MIN_WINDOW] = 1;
        head[wrong[i].at] = wrong[i].value;
        conf_status(conf, wrong[i].what, set_latency(nvme, head, false),
                    NVME_SC_INVALID_FIELD);
        conf_same(conf, "the value after a refusal",
                  get_latency(nvme, FEATURE_SELECT_CURRENT), before,
                  LATENCY_FEATURE_LEN);
    }
    stop_monitor(nvme);
}

/*
 * Reads whose data nobody acknowledges keep their buffers.  When these run out,
 * a Read moves its data in parts, and so takes until the tester acknowledges
 * the first part.
 */
static void latency_reads(struct conf *conf)
{
    struct nvme *nvme = open_ocp(conf);
    struct nvme_sqe sqe = nvme_rw_sqe(nvme, NVM_READ, 0, nvme->max_blocks);
    struct sgl sgl =
        rc_keyed(nvme->io, 0, nvme->max_blocks * nvme->block_bytes);
    struct latency_window active, fixed;
    uint32_t counted = 0;

    conf_provokes(conf, CONF_LOSS);
    start_monitor(nvme, good, false);
    nvme->io->answers = false;
    for (unsigned int i = 0; i < READS; i++) {
        rc_send_capsule(nvme->io, &sqe, &sgl, NULL, 0);
    }
    conf_pass(conf, HOLD_US);
    nvme->io->answers = true;
    for (unsigned int i = 0; i < READS; i++) {
        struct nvme_cqe cqe;

        nvme_cqe_parse(&cqe, rc_take_message(nvme->io, "a response")->data);
        conf_status(conf, "Read", cqe.status & NVME_SC_MASK, NVME_SC_SUCCESS);
    }
    read_windows(nvme, &active, &fixed);
    for (unsigned int bucket = 0; bucket < LATENCY_BUCKETS; bucket++) {
        counted += active.count[bucket][LATENCY_READ];
        conf_check(conf,
                   active.count[bucket][LATENCY_WRITE] == 0 &&
                       active.count[bucket][LATENCY_DEALLOCATE] == 0,
                   "Reads were counted as other commands");
    }
    conf_check(conf, counted <= READS, "%u Reads were counted as %u", READS,
               counted);
    /* A target with more buffers may have answered all of them at once. */
    conf_check(conf, counted != 0 || !conf_target(conf)->is_ours,
               "no Read was counted");
    stop_monitor(nvme);
}

/* Each command is in the bucket that its latency belongs to. */
static void latency_buckets(struct conf *conf)
{
    static const uint8_t thresholds[LATENCY_BUCKETS][LATENCY_BUCKETS] = {
        {0, 253, 254, 255}, {0, 1, 254, 255}, {0, 1, 2, 255}, {0, 1, 2, 3}};
    struct nvme *nvme = open_ocp(conf);
    uint8_t head[sizeof(good)];

    for (unsigned int bucket = 0; bucket < LATENCY_BUCKETS; bucket++) {
        uint32_t counts[LATENCY_BUCKETS][LATENCY_KINDS] = {{0}};

        memcpy(head, good, sizeof(head));
        memcpy(head + LATENCY_FEATURE_THRESHOLDS, thresholds[bucket],
               LATENCY_BUCKETS);
        start_monitor(nvme, head, false);
        write_slow(nvme);
        counts[bucket][LATENCY_WRITE] = 1;
        expect_counts(nvme, "one Write", counts);
        deallocate_slow(nvme, AD);
        deallocate_slow(nvme, AD);
        counts[bucket][LATENCY_DEALLOCATE] = 2;
        expect_counts(nvme, "two Deallocates", counts);
    }
    stop_monitor(nvme);
}

/*
 * Threshold n stands for n + 1 steps of 5 ms.  Thresholds B to D are steps that
 * follow one another, around what a Write took before.  So a drive that begins
 * them too early or too late counts the next Write in another bucket than that
 * of the latency that it says itself.
 */
static void latency_steps(struct conf *conf)
{
    enum { STEP_MS = 5 };
    struct nvme *nvme = open_ocp(conf);
    struct latency_window active, fixed;
    uint32_t measured_ms, bucket = 0, last;
    uint8_t head[sizeof(good)];
    uint8_t *thresholds = head + LATENCY_FEATURE_THRESHOLDS;

    start_monitor(nvme, good, false);
    write_slow(nvme);
    read_windows(nvme, &active, &fixed);
    last = active.measured_ms[BUCKET][LATENCY_WRITE] / STEP_MS + 1;
    memcpy(head, good, sizeof(head));
    for (unsigned int i = 1; i < LATENCY_BUCKETS; i++) {
        thresholds[i] = (uint8_t)(MIN(last, 255u) - BUCKET + i);
    }
    start_monitor(nvme, head, false);
    write_slow(nvme);
    read_windows(nvme, &active, &fixed);
    while (bucket < BUCKET && active.count[bucket][LATENCY_WRITE] == 0) {
        bucket++;
    }
    conf_equal(conf, "Writes that were counted",
               active.count[bucket][LATENCY_WRITE], 1);
    measured_ms = active.measured_ms[bucket][LATENCY_WRITE];
    conf_check(conf,
               measured_ms >= (thresholds[bucket] + 1u) * STEP_MS &&
                   (bucket == BUCKET ||
                    measured_ms < (thresholds[bucket + 1] + 1u) * STEP_MS),
               "a Write of %u ms was counted in bucket %u, whose threshold is "
               "%u",
               measured_ms, bucket, thresholds[bucket]);
    stop_monitor(nvme);
}

static void latency_uncounted(struct conf *conf)
{
    static const uint32_t none[LATENCY_BUCKETS][LATENCY_KINDS];
    struct nvme *nvme = open_ocp(conf);
    struct nvme_sqe compare = nvme_rw_sqe(nvme, NVM_COMPARE, 0, BLOCKS);
    uint8_t head[sizeof(good)];

    memcpy(head, good, sizeof(head));
    head[LATENCY_FEATURE_THRESHOLDS + 3] = 255;
    head[LATENCY_FEATURE_THRESHOLDS + 2] = 254;
    head[LATENCY_FEATURE_THRESHOLDS + 1] = 253;
    head[LATENCY_FEATURE_THRESHOLDS] = 252;
    start_monitor(nvme, head, false);
    write_slow(nvme);
    expect_counts(nvme, "a Write faster than threshold A", none);
    /* Before it is counted: on a busy machine, any Write may be a slow one. */
    nvme_write(nvme, 0, BLOCKS, 1);
    start_monitor(nvme, good, false);
    deallocate_slow(nvme, 0);
    expect_counts(nvme, "Dataset Management without Deallocate", none);
    nvme_fill(nvme, 0, BLOCKS, 1);
    run_held(nvme, &compare, BLOCKS * nvme->block_bytes, HOLD_US);
    expect_counts(nvme, "a Compare", none);
    stop_monitor(nvme);
}

/* The measured latency and the stamp are those of the command. */
static void latency_measured(struct conf *conf)
{
    struct nvme *nvme = open_ocp(conf);
    struct latency_window active, fixed;
    uint64_t took_us, least_us, measured_ms, now_ms;
    unsigned int origin;

    start_monitor(nvme, good, false);
    took_us = write_slow(nvme);
    least_us = conf_target(conf)->is_virtual ? took_us : HOLD_US;
    read_windows(nvme, &active, &fixed);
    measured_ms = active.measured_ms[BUCKET][LATENCY_WRITE];
    conf_check(conf,
               measured_ms + 1 >= least_us / 1000 &&
                   measured_ms <= took_us / 1000 + 1,
               "a Write of %u us was measured with %u ms",
               (unsigned int)took_us, (unsigned int)measured_ms);
    put_le64(nvme->admin->mem, 1700000000000);
    conf_status(conf, "Set Features, Timestamp",
                nvme_timestamp(nvme, ADMIN_SET_FEATURES, 8), NVME_SC_SUCCESS);
    deallocate_slow(nvme, AD);
    now_ms = nvme_get_time(nvme, &origin);
    read_windows(nvme, &active, &fixed);
    conf_check(conf,
               active.stamp_ms[BUCKET][LATENCY_DEALLOCATE] <= now_ms &&
                   now_ms - active.stamp_ms[BUCKET][LATENCY_DEALLOCATE] <
                       STAMP_TOLERANCE_MS,
               "the stamp is not from the end of the command");
    conf_check(conf, active.is_epoch & latency_bit(BUCKET, LATENCY_DEALLOCATE),
               "the units say that the Timestamp was not used");
    stop_monitor(nvme);
}

/* A second Write takes longer than the first one; what stays of them depends on
 * the mode, and on the minimum window. */
static void two_writes(struct nvme *nvme, const uint8_t *head,
                       struct latency_window *first,
                       struct latency_window *second)
{
    struct latency_window fixed;

    start_monitor(nvme, head, false);
    write_slow(nvme);
    read_windows(nvme, first, &fixed);
    conf_pass(nvme->conf, 200000);
    write_held(nvme,
               first->measured_ms[BUCKET][LATENCY_WRITE] * 1000u + HOLD_US);
    read_windows(nvme, second, &fixed);
    conf_equal(nvme->conf, "Writes that were counted",
               second->count[BUCKET][LATENCY_WRITE], 2);
}

static void expect_kept(struct conf *conf, const struct latency_window *first,
                        const struct latency_window *second)
{
    conf_equal(conf, "measured latency",
               second->measured_ms[BUCKET][LATENCY_WRITE],
               first->measured_ms[BUCKET][LATENCY_WRITE]);
    conf_equal(conf, "stamp", second->stamp_ms[BUCKET][LATENCY_WRITE],
               first->stamp_ms[BUCKET][LATENCY_WRITE]);
}

static void latency_min_window(struct conf *conf)
{
    struct nvme *nvme = open_ocp(conf);
    struct latency_window first, second;
    uint8_t head[sizeof(good)];

    memcpy(head, good, sizeof(head));
    head[LATENCY_FEATURE_MIN_WINDOW] = 255;
    two_writes(nvme, head, &first, &second);
    expect_kept(conf, &first, &second);
    stop_monitor(nvme);
}

static void latency_largest(struct conf *conf)
{
    struct nvme *nvme = open_ocp(conf);
    struct latency_window first, second;

    two_writes(nvme, good, &first, &second);
    conf_check(conf,
               second.measured_ms[BUCKET][LATENCY_WRITE] >
                   first.measured_ms[BUCKET][LATENCY_WRITE],
               "the measured latency is %u ms, although a later Write took "
               "longer",
               second.measured_ms[BUCKET][LATENCY_WRITE]);
    conf_check(conf,
               second.stamp_ms[BUCKET][LATENCY_WRITE] >
                   first.stamp_ms[BUCKET][LATENCY_WRITE],
               "the stamp is not of the Write that took longest");
    stop_monitor(nvme);
}

static void latency_first(struct conf *conf)
{
    struct nvme *nvme = open_ocp(conf);
    struct latency_window first, second;
    uint8_t head[sizeof(good)];

    memcpy(head, good, sizeof(head));
    put_le16(head + LATENCY_FEATURE_MODES,
             (uint16_t)(LATENCY_MODES ^ latency_bit(BUCKET, LATENCY_WRITE)));
    two_writes(nvme, head, &first, &second);
    expect_kept(conf, &first, &second);
    stop_monitor(nvme);
}

static void latency_off(struct conf *conf)
{
    struct nvme *nvme = open_ocp(conf);
    struct latency_window active, fixed;
    uint8_t head[sizeof(good)];

    start_monitor(nvme, good, false);
    memcpy(head, good, sizeof(head));
    head[LATENCY_FEATURE_ENABLE] = 0;
    start_monitor(nvme, head, false);
    write_slow(nvme);
    read_windows(nvme, &active, &fixed);
    conf_equal(conf, "Writes counted by a monitor that is off",
               active.count[BUCKET][LATENCY_WRITE], 0);
    conf_equal(conf, "feature status", read_latency(nvme)[0] & 1, 0);
    stop_monitor(nvme);
}

/* Discard Debug Log 2 uses no other field. */
static void latency_discard(struct conf *conf)
{
    struct nvme *nvme = open_ocp(conf);
    struct latency_window active, fixed;
    uint8_t head[sizeof(good)] = {0};

    start_monitor(nvme, good, false);
    write_slow(nvme);
    head[LATENCY_FEATURE_DISCARD] = LATENCY_DISCARD_LOG_ONLY;
    start_monitor(nvme, head, false);
    read_windows(nvme, &active, &fixed);
    conf_equal(conf, "Writes counted", active.count[BUCKET][LATENCY_WRITE], 1);
    conf_equal(conf, "feature status", read_latency(nvme)[0] & 1, 1);
    stop_monitor(nvme);
}

static void latency_timer(struct conf *conf)
{
    struct nvme *nvme = open_ocp(conf);
    struct latency_window before, active, fixed;
    uint8_t head[sizeof(good)];

    if (!conf_target(conf)->is_virtual) {
        conf_not_applicable(conf, "a window takes 10 minutes of real time");
    }
    memcpy(head, good, sizeof(head));
    head[LATENCY_FEATURE_TIMER] = 2;
    start_monitor(nvme, head, false);
    write_slow(nvme);
    conf_pass(conf, TIMER_US);
    conf_equal(conf, "active bucket timer after 5 minutes",
               get_le16(read_latency(nvme) + LATENCY_LOG_TIMER), 1);
    read_windows(nvme, &before, &fixed);
    conf_equal(conf, "Writes in the active window",
               before.count[BUCKET][LATENCY_WRITE], 1);
    conf_pass(conf, TIMER_US);
    conf_equal(conf, "active bucket timer after 10 minutes",
               get_le16(read_latency(nvme) + LATENCY_LOG_TIMER), 0);
    read_windows(nvme, &active, &fixed);
    conf_equal(conf, "Writes in the new window",
               active.count[BUCKET][LATENCY_WRITE], 0);
    conf_equal(conf, "stamp in the new window",
               active.stamp_ms[BUCKET][LATENCY_WRITE], LATENCY_NO_STAMP);
    conf_equal(conf, "Writes in the static window",
               fixed.count[BUCKET][LATENCY_WRITE], 1);
    conf_equal(conf, "measured latency in the static window",
               fixed.measured_ms[BUCKET][LATENCY_WRITE],
               before.measured_ms[BUCKET][LATENCY_WRITE]);
    conf_equal(conf, "stamp in the static window",
               fixed.stamp_ms[BUCKET][LATENCY_WRITE],
               before.stamp_ms[BUCKET][LATENCY_WRITE]);
    stop_monitor(nvme);
}

/* Saved settings are in force after a power cut, others are not. */
static void latency_power(struct conf *conf)
{
    struct nvme *nvme = open_ocp(conf);
    uint8_t head[sizeof(good)];
    const uint8_t *saved;

    start_monitor(nvme, good, true);
    saved = get_latency(nvme, FEATURE_SELECT_CURRENT);
    memcpy(head, good, sizeof(head));
    head[LATENCY_FEATURE_MIN_WINDOW] = 9;
    start_monitor(nvme, head, false);
    conf_power_cut(conf);
    nvme = open_ocp(conf);
    conf_same(conf, "the value after a power cut",
              get_latency(nvme, FEATURE_SELECT_CURRENT), saved,
              LATENCY_FEATURE_LEN);
    conf_same(conf, "the saved value after a power cut",
              get_latency(nvme, FEATURE_SELECT_SAVED), saved,
              LATENCY_FEATURE_LEN);
    stop_monitor(nvme);
}

/* Counts outlive a power cut, except those of the last minutes. */
static void latency_kept(struct conf *conf)
{
    struct nvme *nvme = open_ocp(conf);
    struct latency_window before, active, fixed;
    uint8_t head[sizeof(good)];

    if (!conf_target(conf)->is_virtual) {
        conf_not_applicable(conf, "counts are kept after minutes of real time");
    }
    memcpy(head, good, sizeof(head));
    head[LATENCY_FEATURE_TIMER] = 20;
    start_monitor(nvme, head, true);
    write_slow(nvme);
    conf_pass(conf, 3ull * TIMER_US);
    read_windows(nvme, &before, &fixed);
    conf_power_cut(conf);
    nvme = open_ocp(conf);
    read_windows(nvme, &active, &fixed);
    conf_equal(conf, "Writes that were counted",
               active.count[BUCKET][LATENCY_WRITE], 1);
    conf_equal(conf, "their stamp", active.stamp_ms[BUCKET][LATENCY_WRITE],
               before.stamp_ms[BUCKET][LATENCY_WRITE]);
    conf_check(conf, get_le16(read_latency(nvme) + LATENCY_LOG_TIMER) >= 2,
               "the active bucket timer began again");
    write_slow(nvme);
    read_windows(nvme, &active, &fixed);
    conf_equal(conf, "Writes that were counted",
               active.count[BUCKET][LATENCY_WRITE], 2);
    stop_monitor(nvme);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST("ocp." id, "OCP DC NVMe SSD 2.0 " clause, purpose, __VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("recovery", "page C1h", "the Error Recovery page is well formed",
         ocp_recovery),
    TEST("capabilities", "page C4h", "Device Capabilities agree with Identify",
         ocp_capabilities),
    TEST("latency-page", "page C3h",
         "the page shows the settings, and empty windows after Set Features",
         latency_page),
    TEST("latency-feature", "feature C5h",
         "current, default and saved value are kept apart", latency_feature),
    TEST("latency-refused", "C.2.3.2",
         "settings that contradict each other are refused", latency_refused),
    TEST("latency-buckets", "C.2.3, C.2.3.2",
         "a command is counted in the bucket of its latency", latency_buckets),
    TEST("latency-steps", "C.2.3.2",
         "threshold n of the latency monitor stands for n + 1 steps of 5 ms",
         latency_steps),
    TEST("latency-reads", "C.2.3", "slow Reads are counted as Reads",
         latency_reads),
    TEST("latency-uncounted", "C.2.3, C.2.3.2",
         "fast commands and other commands are not counted", latency_uncounted),
    TEST("latency-measured", "C.2.3.4, C.2.3.5",
         "measured latency and stamp are those of the command",
         latency_measured),
    TEST("latency-min-window", "C.2.3.6",
         "a latency within the minimum window is counted only",
         latency_min_window),
    TEST("latency-largest", "C.2.3.5",
         "mode 1 keeps the largest latency with its stamp", latency_largest),
    TEST("latency-first", "C.2.3.5",
         "mode 0 keeps the first latency with its stamp", latency_first),
    TEST("latency-off", "feature C5h", "a monitor that is off counts nothing",
         latency_off),
    TEST("latency-discard", "C.4",
         "discarding the debug log alone changes nothing else",
         latency_discard),
    TEST("latency-timer", "C.2.3.3",
         "the active window becomes the static one, and a new one begins",
         latency_timer),
    TEST("latency-power", "C.5.1",
         "the saved settings are in force after a power cut", latency_power),
    TEST("latency-kept", "C.5.1",
         "counts, stamps and timer outlive a power cut", latency_kept),
};
CONF_TESTS(conf_tests_nvme_ocp, "nvme", tests);
