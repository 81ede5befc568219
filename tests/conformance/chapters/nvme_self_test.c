/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device Self-test, and its log page.
 *
 * Spec: NVM Express 1.4 5.8 (the command), 5.14.1.6 (the log page), 8.11 (what
 * aborts a test).
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    STC_SHORT = 1,
    STC_EXTENDED = 2,
    STC_RESERVED = 3,
    STC_ABORT = 0xf,
    RESULTS = 20,
    POLL_US = 2000,
    SHORT_US = 120 * 1000 * 1000, /* what 8.11 allows */
    US_PER_MINUTE = 60 * 1000 * 1000,

    PASSED = 0x0, /* results */
    BY_COMMAND = 0x1,
    BY_RESET = 0x2,
    NS_REMOVED = 0x3,
    BY_FORMAT = 0x4,
    UNUSED = 0xf,

    NS_CREATE = 0,
    NS_DELETE = 1,
};

static void need_self_test(struct conf *conf, const struct nvme *nvme)
{
    if (!(get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_SELF_TEST)) {
        conf_not_applicable(conf, "OACS bit 4 is 0");
    }
}

static uint16_t self_test(struct nvme *nvme, uint32_t nsid, uint32_t stc)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_DEVICE_SELF_TEST, .nsid = nsid, .cdw10 = stc};

    return nvme_run(nvme, nvme->admin, &sqe, 0, NULL);
}

static const uint8_t *read_log(struct nvme *nvme)
{
    return nvme_log(nvme, LOG_SELF_TEST, LOG_SELF_TEST_LEN);
}

static uint8_t current_test(struct nvme *nvme)
{
    return read_log(nvme)[SELF_TEST_CURRENT] & 0xf;
}

/* Byte 0 of result `i`: test and result. */
static uint8_t result_of(struct nvme *nvme, unsigned int i)
{
    return read_log(nvme)[SELF_TEST_RESULTS + i * SELF_TEST_RESULT_LEN +
                          SELF_TEST_RESULT_STATUS];
}

static void expect_newest(struct nvme *nvme, uint8_t stc, uint8_t result)
{
    conf_equal(nvme->conf, "the newest result", result_of(nvme, 0),
               (uint8_t)(stc << 4 | result));
}

static void start_test(struct nvme *nvme, uint32_t nsid, uint32_t stc)
{
    conf_status(nvme->conf, "Device Self-test", self_test(nvme, nsid, stc),
                NVME_SC_SUCCESS);
    conf_equal(nvme->conf, "the test in progress", current_test(nvme), stc);
}

static void abort_test(struct nvme *nvme)
{
    conf_status(nvme->conf, "Device Self-test, abort",
                self_test(nvme, 0, STC_ABORT), NVME_SC_SUCCESS);
    conf_equal(nvme->conf, "the test in progress", current_test(nvme), 0);
}

/* Wait until no test is in progress; its percentage never goes back. */
static void wait_test(struct nvme *nvme, uint64_t limit_us)
{
    uint64_t start_us = conf_now_us(nvme->conf);
    uint8_t percent = 0;

    while (current_test(nvme) != 0) {
        const uint8_t *page = nvme->admin->mem;

        conf_check(nvme->conf, (page[SELF_TEST_PERCENT] & 0x7f) <= 100,
                   "%u per cent are done", page[SELF_TEST_PERCENT] & 0x7f);
        conf_check(nvme->conf, (page[SELF_TEST_PERCENT] & 0x7f) >= percent,
                   "the percentage went from %u to %u", percent,
                   page[SELF_TEST_PERCENT] & 0x7f);
        percent = page[SELF_TEST_PERCENT] & 0x7f;
        conf_check(nvme->conf,
                   conf_now_us(nvme->conf) - start_us <
                       limit_us << conf_patience(nvme->conf),
                   "the test does not end in time");
        conf_pass(nvme->conf, POLL_US);
    }
}

#define WITH_SELF_TEST(name)                                                   \
    static void name##_in(struct conf *conf, struct nvme *nvme);               \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct nvme *nvme = nvme_open_admin(conf);                             \
                                                                               \
        need_self_test(conf, nvme);                                            \
        name##_in(conf, nvme);                                                 \
        nvme_close(nvme);                                                      \
    }                                                                          \
    static void name##_in(struct conf *conf, struct nvme *nvme)

/* ---- The tests and their results. */

WITH_SELF_TEST(identify)
{
    conf_check(conf, get_le16(nvme->ctrl + ID_CTRL_EDSTT) != 0,
               "EDSTT is 0 minutes");
    conf_check(conf, (nvme->ctrl[ID_CTRL_DSTO] & 0xfe) == 0,
               "reserved bits of DSTO are set: %02xh",
               nvme->ctrl[ID_CTRL_DSTO]);
}

WITH_SELF_TEST(short_test)
{
    start_test(nvme, NVME_NSID_ALL, STC_SHORT);
    wait_test(nvme, SHORT_US);
    expect_newest(nvme, STC_SHORT, PASSED);
    conf_equal(conf, "Segment Number",
               nvme->admin->mem[SELF_TEST_RESULTS + SELF_TEST_RESULT_SEGMENT],
               0);
    conf_equal(
        conf, "Valid Diagnostic Information",
        nvme->admin->mem[SELF_TEST_RESULTS + SELF_TEST_RESULT_VALID] &
            (SELF_TEST_VALID_LBA | SELF_TEST_VALID_SCT | SELF_TEST_VALID_SC),
        0);
}

WITH_SELF_TEST(extended)
{
    uint64_t limit_us =
        (uint64_t)get_le16(nvme->ctrl + ID_CTRL_EDSTT) * US_PER_MINUTE;

    (void)conf;
    start_test(nvme, nvme->nsid, STC_EXTENDED);
    wait_test(nvme, limit_us);
    expect_newest(nvme, STC_EXTENDED, PASSED);
}

WITH_SELF_TEST(controller_only)
{
    conf_status(conf, "Device Self-test of NSID 0",
                self_test(nvme, 0, STC_SHORT), NVME_SC_SUCCESS);
    wait_test(nvme, SHORT_US);
    expect_newest(nvme, STC_SHORT, PASSED);
}

WITH_SELF_TEST(one_at_a_time)
{
    start_test(nvme, NVME_NSID_ALL, STC_EXTENDED);
    conf_status(conf, "another extended test", self_test(nvme, 0, STC_EXTENDED),
                NVME_SC_SELF_TEST_IN_PROGRESS);
    conf_status(conf, "a short test", self_test(nvme, nvme->nsid, STC_SHORT),
                NVME_SC_SELF_TEST_IN_PROGRESS);
    conf_equal(conf, "the test in progress", current_test(nvme), STC_EXTENDED);
    abort_test(nvme);
    expect_newest(nvme, STC_EXTENDED, BY_COMMAND);
}

WITH_SELF_TEST(abort_nothing)
{
    uint8_t before[LOG_SELF_TEST_LEN];

    start_test(nvme, NVME_NSID_ALL, STC_EXTENDED);
    abort_test(nvme);
    memcpy(before, read_log(nvme), sizeof(before));
    conf_status(conf, "abort while no test is in progress",
                self_test(nvme, 0, STC_ABORT), NVME_SC_SUCCESS);
    conf_same(conf, "the log page", read_log(nvme), before, sizeof(before));
}

WITH_SELF_TEST(fields)
{
    uint32_t inactive = nvme_inactive_nsid(nvme);

    conf_status(conf, "STC 0", self_test(nvme, nvme->nsid, 0),
                NVME_SC_INVALID_FIELD);
    conf_status(conf, "STC 3, which is reserved",
                self_test(nvme, nvme->nsid, STC_RESERVED),
                NVME_SC_INVALID_FIELD);
    conf_status(conf, "an NSID above NN",
                self_test(nvme, nvme->num_ns + 1, STC_SHORT),
                NVME_SC_INVALID_NS);
    if (inactive != 0) {
        conf_status(conf, "an inactive NSID",
                    self_test(nvme, inactive, STC_SHORT),
                    NVME_SC_INVALID_FIELD);
    }
    conf_equal(conf, "the test in progress", current_test(nvme), 0);
}

WITH_SELF_TEST(twenty_results)
{
    start_test(nvme, NVME_NSID_ALL, STC_EXTENDED);
    abort_test(nvme);
    for (unsigned int i = 1; i < RESULTS; i++) {
        conf_status(conf, "Device Self-test of NSID 0",
                    self_test(nvme, 0, STC_SHORT), NVME_SC_SUCCESS);
        wait_test(nvme, SHORT_US);
    }
    expect_newest(nvme, STC_SHORT, PASSED);
    conf_equal(conf, "the oldest result", result_of(nvme, RESULTS - 1),
               STC_EXTENDED << 4 | BY_COMMAND);
    conf_status(conf, "Device Self-test of NSID 0",
                self_test(nvme, 0, STC_SHORT), NVME_SC_SUCCESS);
    wait_test(nvme, SHORT_US);
    conf_equal(conf, "the oldest result after one more",
               result_of(nvme, RESULTS - 1), STC_SHORT << 4 | PASSED);
}

/* ---- What aborts a test. */

WITH_SELF_TEST(reset)
{
    start_test(nvme, NVME_NSID_ALL, STC_SHORT);
    nvme_reset(nvme);
    conf_equal(conf, "the test in progress after a reset", current_test(nvme),
               0);
    expect_newest(nvme, STC_SHORT, BY_RESET);
    start_test(nvme, NVME_NSID_ALL, STC_EXTENDED);
    nvme_reset(nvme);
    conf_equal(conf, "the test in progress after a reset", current_test(nvme),
               STC_EXTENDED);
    abort_test(nvme);
}

static uint16_t format_nsid(struct nvme *nvme, uint32_t nsid)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_FORMAT_NVM, .nsid = nsid};

    return nvme_run(nvme, nvme->admin, &sqe, 0, NULL);
}

WITH_SELF_TEST(format)
{
    if (!(get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_FORMAT)) {
        conf_not_applicable(conf, "OACS bit 1 is 0");
    }
    start_test(nvme, nvme->nsid, STC_EXTENDED);
    conf_status(conf, "Format NVM", format_nsid(nvme, nvme->nsid),
                NVME_SC_SUCCESS);
    conf_equal(conf, "the test in progress", current_test(nvme), 0);
    expect_newest(nvme, STC_EXTENDED, BY_FORMAT);
    start_test(nvme, NVME_NSID_ALL, STC_EXTENDED);
    conf_status(conf, "Format NVM of all", format_nsid(nvme, NVME_NSID_ALL),
                NVME_SC_SUCCESS);
    expect_newest(nvme, STC_EXTENDED, BY_FORMAT);
}

/* A namespace in half of what is free. */
static uint32_t make_ns(struct nvme *nvme)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_NS_MANAGEMENT, .cdw10 = NS_CREATE};
    uint64_t blocks = get_le64(nvme->ctrl + ID_CTRL_UNVMCAP) / 2 / 512;
    uint8_t *mem = nvme->admin->mem;
    struct nvme_cqe cqe;

    memset(mem, 0, NVME_IDENTIFY_LEN);
    put_le64(mem + ID_NS_NSZE, blocks);
    put_le64(mem + ID_NS_NCAP, blocks);
    mem[ID_NS_NMIC] = NMIC_SHARED;
    conf_status(nvme->conf, "Namespace Management, create",
                nvme_run(nvme, nvme->admin, &sqe, NVME_IDENTIFY_LEN, &cqe),
                NVME_SC_SUCCESS);
    return cqe.dw0;
}

static void delete_ns(struct nvme *nvme, uint32_t nsid)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_NS_MANAGEMENT, .nsid = nsid, .cdw10 = NS_DELETE};

    conf_status(nvme->conf, "Namespace Management, delete",
                nvme_run(nvme, nvme->admin, &sqe, 0, NULL), NVME_SC_SUCCESS);
}

WITH_SELF_TEST(removed)
{
    struct nvme_sqe attach = {.opcode = ADMIN_NS_ATTACHMENT};
    uint8_t *mem = nvme->admin->mem;

    if (!(get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_NS_MANAGEMENT) ||
        get_le64(nvme->ctrl + ID_CTRL_UNVMCAP) == 0) {
        conf_not_applicable(conf, "no namespace can be created");
    }
    attach.nsid = make_ns(nvme);
    memset(mem, 0, NVME_IDENTIFY_LEN);
    put_le16(mem + CTRL_LIST_COUNT, 1);
    put_le16(mem + CTRL_LIST_FIRST, nvme->admin->config.cntlid);
    conf_status(conf, "Namespace Attachment, attach",
                nvme_run(nvme, nvme->admin, &attach, NVME_IDENTIFY_LEN, NULL),
                NVME_SC_SUCCESS);
    conf_status(conf, "Device Self-test",
                self_test(nvme, attach.nsid, STC_EXTENDED), NVME_SC_SUCCESS);
    delete_ns(nvme, attach.nsid);
    wait_test(nvme, SHORT_US);
    expect_newest(nvme, STC_EXTENDED, NS_REMOVED);
}

static void power_cut(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    uint64_t limit_us =
        (uint64_t)get_le16(nvme->ctrl + ID_CTRL_EDSTT) * US_PER_MINUTE;

    need_self_test(conf, nvme);
    start_test(nvme, NVME_NSID_ALL, STC_EXTENDED);
    conf_power_cut(conf);
    nvme = nvme_open_admin(conf);
    conf_equal(conf, "the test in progress after a power cut",
               current_test(nvme), STC_EXTENDED);
    wait_test(nvme, limit_us);
    expect_newest(nvme, STC_EXTENDED, PASSED);
    start_test(nvme, NVME_NSID_ALL, STC_SHORT);
    conf_power_cut(conf);
    nvme = nvme_open_admin(conf);
    conf_equal(conf, "the test in progress after a power cut",
               current_test(nvme), 0);
    expect_newest(nvme, STC_SHORT, BY_RESET);
    conf_equal(conf, "the result before", result_of(nvme, 1),
               STC_EXTENDED << 4 | PASSED);
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST("self-test." id, "NVMe 1.4 " clause, purpose, __VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("identify", "5.15.2.2", "EDSTT and DSTO are plausible", identify),
    TEST("short", "5.8, 8.11", "a short test ends within two minutes",
         short_test),
    TEST("extended", "5.8, 8.11", "an extended test ends within EDSTT",
         extended),
    TEST("controller", "5.8", "NSID 0 tests the controller only",
         controller_only),
    TEST("one", "5.8", "a second test is refused while one is in progress",
         one_at_a_time),
    TEST("abort-nothing", "5.8",
         "an abort without a test succeeds and changes no result",
         abort_nothing),
    TEST("fields", "5.8", "invalid STC and NSID are refused", fields),
    TEST("results", "5.14.1.6",
         "the log has the 20 newest results, newest first", twenty_results),
    TEST("reset", "8.11",
         "a controller reset ends a short test, and no extended one", reset),
    TEST("format", "8.11", "Format NVM aborts a test", format),
    TEST("removed", "8.11", "a deleted namespace is not tested to the end",
         removed),
    TEST("power", "8.11",
         "an extended test goes on after a power cut, a short one ends",
         power_cut, .needs = CONF_NEEDS_CONTROL),
};
CONF_TESTS(conf_tests_nvme_self_test, "nvme", tests);
