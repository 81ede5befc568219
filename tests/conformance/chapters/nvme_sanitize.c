/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sanitize, its log page and its event, and what other commands get meanwhile.
 *
 * Spec: NVM Express 1.4 5.24 (the command), 5.14.1.16.2 (the log page), 8.15
 * (the operation), 5.2.1 (the event), 8.19.1 (write protection).
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    EXIT_FAILURE = 1, /* SANACT */
    BLOCK_ERASE = 2,
    OVERWRITE = 3,
    CRYPTO_ERASE = 4,
    ONE_PASS = 1 << 4,
    TWO_PASSES = 2 << 4,
    INVERT = 0x100,
    KEEP_BLOCKS = 0x200,

    NEVER = 0, /* SANITIZE_STATUS, bits 2:0 */
    DONE = 1,
    IN_PROGRESS = 2,

    BLOCKS = 8,
    POLL_US = 2000,
    LIMIT_US = 120 * 1000 * 1000,
    EVENT_US = 1000000,
    AER_CID = 0x2000,
    STC_EXTENDED = 2,
    BY_SANITIZE = 9,
};
#define PATTERN 0x1badc0deu

#define COMPLETED_EVENT                                                        \
    (EVENT_TYPE_IO | EVENT_SANITIZE_COMPLETED << 8 | LOG_SANITIZE << 16)

static void need_sanitize(struct conf *conf, const struct nvme *nvme,
                          uint32_t bits)
{
    if ((get_le32(nvme->ctrl + ID_CTRL_SANICAP) & bits) != bits) {
        conf_not_applicable(conf, "SANICAP does not have the bits %xh", bits);
    }
}

static uint16_t send_sanitize(struct nvme *nvme, uint32_t dword10,
                              uint32_t pattern)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_SANITIZE, .cdw10 = dword10, .cdw11 = pattern};

    return nvme_run(nvme, nvme->admin, &sqe, 0, NULL);
}

static const uint8_t *read_log(struct nvme *nvme)
{
    return nvme_log(nvme, LOG_SANITIZE, LOG_SANITIZE_LEN);
}

static uint16_t log_status(struct nvme *nvme)
{
    return get_le16(read_log(nvme) + SANITIZE_STATUS);
}

/* Wait until the operation has ended; its progress never goes back. */
static void wait_done(struct nvme *nvme)
{
    uint64_t start_us = conf_now_us(nvme->conf);
    uint32_t progress = 0;

    while ((log_status(nvme) & 7) == IN_PROGRESS) {
        uint16_t now = get_le16(nvme->admin->mem + SANITIZE_PROGRESS);

        conf_check(nvme->conf, now >= progress && now != SANITIZE_NO_PROGRESS,
                   "SPROG went from %u to %u", progress, now);
        progress = now;
        conf_check(nvme->conf,
                   conf_now_us(nvme->conf) - start_us <
                       (uint64_t)LIMIT_US << conf_patience(nvme->conf),
                   "the operation does not end");
        conf_pass(nvme->conf, POLL_US);
    }
    conf_equal(nvme->conf, "SSTAT, status", log_status(nvme) & 7, DONE);
    conf_equal(nvme->conf, "SPROG",
               get_le16(nvme->admin->mem + SANITIZE_PROGRESS),
               SANITIZE_NO_PROGRESS);
}

static void start_sanitize(struct nvme *nvme, uint32_t dword10)
{
    conf_status(nvme->conf, "Sanitize", send_sanitize(nvme, dword10, PATTERN),
                NVME_SC_SUCCESS);
}

static void verify_pattern(struct nvme *nvme, uint64_t lba, uint32_t blocks)
{
    conf_status(nvme->conf, "Read", nvme_rw(nvme, NVM_READ, lba, blocks),
                NVME_SC_SUCCESS);
    for (uint32_t at = 0; at < blocks * nvme->block_bytes; at += 4) {
        conf_equal(nvme->conf, "a dword of the pattern",
                   get_le32(nvme->io->mem + at), PATTERN);
    }
}

#define WITH_SANITIZE(name, bits)                                              \
    static void name##_in(struct conf *conf, struct nvme *nvme);               \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct nvme *nvme = nvme_open(conf);                                   \
                                                                               \
        need_sanitize(conf, nvme, bits);                                       \
        name##_in(conf, nvme);                                                 \
        nvme_close(nvme);                                                      \
    }                                                                          \
    static void name##_in(struct conf *conf, struct nvme *nvme)

/* ---- What the operations leave. */

WITH_SANITIZE(block_erase, SANICAP_BLOCK)
{
    nvme_write(nvme, 0, BLOCKS, 1);
    nvme_write(nvme, nvme->size_blocks - BLOCKS, BLOCKS, 2);
    start_sanitize(nvme, BLOCK_ERASE);
    wait_done(nvme);
    conf_equal(conf, "SCDW10", get_le32(nvme->admin->mem + SANITIZE_CDW10),
               BLOCK_ERASE);
    conf_check(conf, log_status(nvme) & SANITIZE_STATUS_ERASED,
               "Global Data Erased is 0");
    nvme_verify_zeroes(nvme, 0, BLOCKS);
    nvme_verify_zeroes(nvme, nvme->size_blocks - BLOCKS, BLOCKS);
}

/* NVMe 2.0 5.16.1.14.1.9 and 10 */
WITH_SANITIZE(recorded, SANICAP_BLOCK)
{
    const uint8_t *data;

    if (!(nvme->ctrl[ID_CTRL_LPA] & LPA_PERSISTENT_EVENT)) {
        conf_not_applicable(conf, "LPA bit 4 is 0");
    }
    start_sanitize(nvme, BLOCK_ERASE);
    wait_done(nvme);
    data = nvme_event(nvme, 0, PEL_TYPE_SANITIZE_END) + PEL_EVENT_HEADER_LEN;
    conf_equal(conf, "SPROG", get_le16(data + PEL_SANITIZE_PROGRESS),
               SANITIZE_NO_PROGRESS);
    conf_equal(conf, "SSTAT, status", get_le16(data + PEL_SANITIZE_STATUS) & 7,
               DONE);
    data = nvme_event(nvme, 1, PEL_TYPE_SANITIZE_START) + PEL_EVENT_HEADER_LEN;
    conf_equal(conf, "SANICAP", get_le32(data + PEL_SANITIZE_SANICAP),
               get_le32(nvme->ctrl + ID_CTRL_SANICAP));
    conf_equal(conf, "SCDW10", get_le32(data + PEL_SANITIZE_CDW10),
               BLOCK_ERASE);
}

WITH_SANITIZE(erased_flag, SANICAP_BLOCK)
{
    start_sanitize(nvme, BLOCK_ERASE);
    wait_done(nvme);
    nvme_verify_zeroes(nvme, 0, BLOCKS);
    conf_check(conf, log_status(nvme) & SANITIZE_STATUS_ERASED,
               "Global Data Erased is 0 after a Read");
    nvme_write(nvme, 3, 1, 1);
    conf_check(conf, !(log_status(nvme) & SANITIZE_STATUS_ERASED),
               "Global Data Erased is 1 after a Write");
    conf_equal(conf, "SSTAT, status", log_status(nvme) & 7, DONE);
    nvme_verify(nvme, 3, 1, 1);
}

WITH_SANITIZE(overwrite, SANICAP_OVERWRITE)
{
    nvme_write(nvme, 0, BLOCKS, 3);
    start_sanitize(nvme, OVERWRITE | ONE_PASS);
    wait_done(nvme);
    conf_equal(conf, "completed passes",
               log_status(nvme) >> SANITIZE_STATUS_PASSES_SHIFT & 0x1f, 1);
    nvme_verify_zeroes(nvme, 0, BLOCKS);
    start_sanitize(nvme, OVERWRITE | ONE_PASS | KEEP_BLOCKS);
    wait_done(nvme);
    verify_pattern(nvme, 0, BLOCKS);
    verify_pattern(nvme, nvme->size_blocks - BLOCKS, BLOCKS);
    start_sanitize(nvme, OVERWRITE | TWO_PASSES | INVERT | KEEP_BLOCKS);
    wait_done(nvme);
    conf_equal(conf, "completed passes",
               log_status(nvme) >> SANITIZE_STATUS_PASSES_SHIFT & 0x1f, 2);
    verify_pattern(nvme, 0, BLOCKS);
}

WITH_SANITIZE(estimates, SANICAP_OVERWRITE | SANICAP_BLOCK)
{
    const uint8_t *page = read_log(nvme);

    conf_check(conf,
               get_le32(page + SANITIZE_OVERWRITE_S) != 0 &&
                   get_le32(page + SANITIZE_ERASE_S) != 0,
               "an estimated time is 0 s");
    conf_check(conf,
               get_le32(page + SANITIZE_OVERWRITE_S) >=
                   get_le32(page + SANITIZE_OVERWRITE_KEEP_S),
               "an overwrite is faster with the deallocation than without");
    if (!(get_le32(nvme->ctrl + ID_CTRL_SANICAP) & SANICAP_CRYPTO)) {
        conf_equal(conf, "the time of a Crypto Erase",
                   get_le32(page + SANITIZE_CRYPTO_S), SANITIZE_NO_ESTIMATE);
    }
}

/* ---- What other commands get. */

static void expect_admin(struct nvme *nvme, const char *what, uint8_t opcode,
                         uint32_t nsid, uint32_t dword10, uint16_t status)
{
    struct nvme_sqe sqe = {.opcode = opcode, .nsid = nsid, .cdw10 = dword10};

    conf_status(nvme->conf, what, nvme_run(nvme, nvme->admin, &sqe, 0, NULL),
                status);
}

WITH_SANITIZE(meanwhile, SANICAP_OVERWRITE)
{
    struct nvme_sqe flush = {.opcode = NVM_FLUSH, .nsid = nvme->nsid};
    uint32_t value;

    start_sanitize(nvme, OVERWRITE); /* 16 passes */
    conf_status(conf, "Read", nvme_rw(nvme, NVM_READ, 0, 1),
                NVME_SC_SANITIZE_IN_PROGRESS);
    conf_status(conf, "Write", nvme_rw(nvme, NVM_WRITE, 0, 1),
                NVME_SC_SANITIZE_IN_PROGRESS);
    conf_status(conf, "Flush", nvme_run(nvme, nvme->io, &flush, 0, NULL),
                NVME_SC_SANITIZE_IN_PROGRESS);
    conf_status(conf, "Sanitize", send_sanitize(nvme, BLOCK_ERASE, 0),
                NVME_SC_SANITIZE_IN_PROGRESS);
    expect_admin(nvme, "Format NVM", ADMIN_FORMAT_NVM, nvme->nsid, 0,
                 NVME_SC_SANITIZE_IN_PROGRESS);
    if (get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_NS_MANAGEMENT) {
        expect_admin(nvme, "Namespace Management, delete", ADMIN_NS_MANAGEMENT,
                     nvme->nsid, 1, NVME_SC_SANITIZE_IN_PROGRESS);
    }
    if (get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_SELF_TEST) {
        expect_admin(nvme, "Device Self-test", ADMIN_DEVICE_SELF_TEST, 0, 1,
                     NVME_SC_SANITIZE_IN_PROGRESS);
    }
    conf_status(conf, "Get Log Page, firmware slots",
                nvme_get_log(nvme, LOG_FIRMWARE_SLOT, 0, 512),
                NVME_SC_SANITIZE_IN_PROGRESS);
    conf_status(conf, "Get Log Page, SMART",
                nvme_get_log(nvme, LOG_SMART, 0, 512), NVME_SC_SUCCESS);
    conf_status(conf, "Get Log Page, errors",
                nvme_get_log(nvme, LOG_ERROR, 0, 64), NVME_SC_SUCCESS);
    conf_equal(conf, "the LBA of the newest error",
               get_le64(nvme->admin->mem + ERROR_LBA), 0);
    conf_status(conf, "Identify Controller",
                nvme_identify(nvme, CNS_CONTROLLER, 0), NVME_SC_SUCCESS);
    conf_status(conf, "Get Features",
                nvme_get_feature(nvme, FEATURE_ASYNC_EVENT_CONFIG,
                                 FEATURE_SELECT_CURRENT, 0, &value),
                NVME_SC_SUCCESS);
    conf_equal(conf, "SSTAT, status (the operation must not have ended yet)",
               log_status(nvme) & 7, IN_PROGRESS);
    wait_done(nvme);
    nvme_write(nvme, 0, BLOCKS, 4);
    nvme_verify(nvme, 0, BLOCKS, 4);
}

WITH_SANITIZE(event, SANICAP_BLOCK)
{
    struct nvme_sqe aer = {.opcode = ADMIN_ASYNC_EVENT_REQUEST, .cid = AER_CID};
    struct nvme_cqe cqe;

    rc_send_capsule(nvme->admin, &aer, NULL, NULL, 0);
    start_sanitize(nvme, BLOCK_ERASE);
    conf_check(conf, nvme_take_other(nvme, AER_CID, LIMIT_US, &cqe),
               "no event after a sanitize operation");
    conf_status(conf, "Asynchronous Event Request", cqe.status & NVME_SC_MASK,
                NVME_SC_SUCCESS);
    conf_equal(conf, "the event", cqe.dw0, COMPLETED_EVENT);
    wait_done(nvme);
}

/* ---- What is refused. */

WITH_SANITIZE(fields, SANICAP_BLOCK)
{
    nvme_write(nvme, 0, BLOCKS, 5);
    conf_status(conf, "SANACT 0", send_sanitize(nvme, 0, 0),
                NVME_SC_INVALID_FIELD);
    conf_status(conf, "SANACT 6", send_sanitize(nvme, 6, 0),
                NVME_SC_INVALID_FIELD);
    if (!(get_le32(nvme->ctrl + ID_CTRL_SANICAP) & SANICAP_CRYPTO)) {
        conf_status(conf, "a Crypto Erase",
                    send_sanitize(nvme, CRYPTO_ERASE, 0),
                    NVME_SC_INVALID_FIELD);
    }
    conf_status(conf, "Exit Failure Mode without a failure",
                send_sanitize(nvme, EXIT_FAILURE, 0), NVME_SC_SUCCESS);
    nvme_verify(nvme, 0, BLOCKS, 5);
}

static void set_protection(struct nvme *nvme, uint32_t state)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_SET_FEATURES,
                           .nsid = nvme->nsid,
                           .cdw10 = FEATURE_NS_WRITE_PROTECTION,
                           .cdw11 = state};

    conf_status(nvme->conf, "Set Features, write protection",
                nvme_run(nvme, nvme->admin, &sqe, 0, NULL), NVME_SC_SUCCESS);
}

WITH_SANITIZE(protected_ns, SANICAP_BLOCK)
{
    if (!(nvme->ctrl[ID_CTRL_NWPC] & NWPC_WRITE_PROTECT)) {
        conf_not_applicable(conf, "NWPC bit 0 is 0");
    }
    nvme_write(nvme, 0, BLOCKS, 6);
    set_protection(nvme, 1);
    conf_status(conf, "Sanitize", send_sanitize(nvme, BLOCK_ERASE, 0),
                NVME_SC_NS_WRITE_PROTECTED);
    nvme_verify(nvme, 0, BLOCKS, 6);
    set_protection(nvme, 0);
}

WITH_SANITIZE(self_test, SANICAP_BLOCK)
{
    const uint8_t *page;

    if (!(get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_SELF_TEST)) {
        conf_not_applicable(conf, "OACS bit 4 is 0");
    }
    expect_admin(nvme, "Device Self-test", ADMIN_DEVICE_SELF_TEST,
                 NVME_NSID_ALL, STC_EXTENDED, NVME_SC_SUCCESS);
    start_sanitize(nvme, BLOCK_ERASE);
    wait_done(nvme);
    page = nvme_log(nvme, LOG_SELF_TEST, LOG_SELF_TEST_LEN);
    conf_equal(conf, "the test in progress", page[SELF_TEST_CURRENT], 0);
    conf_equal(conf, "the newest result",
               page[SELF_TEST_RESULTS + SELF_TEST_RESULT_STATUS],
               STC_EXTENDED << 4 | BY_SANITIZE);
}

/*
 * An operation that a power cut has interrupted goes on after the power-on.  In
 * real time it may have ended before the first command after the power-on.
 */
static void expect_resumed(struct conf *conf, struct nvme *nvme)
{
    uint16_t status = log_status(nvme) & 7;

    if (status == DONE && !conf_target(conf)->is_virtual) {
        return;
    }
    conf_equal(conf, "SSTAT, status after a power cut", status, IN_PROGRESS);
    conf_status(conf, "Read", nvme_rw(nvme, NVM_READ, 0, 1),
                NVME_SC_SANITIZE_IN_PROGRESS);
}

static void power_cut(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);

    need_sanitize(conf, nvme, SANICAP_OVERWRITE);
    nvme_write(nvme, 0, BLOCKS, 7);
    start_sanitize(nvme, OVERWRITE | KEEP_BLOCKS);
    conf_power_cut(conf);
    nvme = nvme_open(conf);
    expect_resumed(conf, nvme);
    wait_done(nvme);
    verify_pattern(nvme, 0, BLOCKS);
    conf_power_cut(conf);
    nvme = nvme_open(conf);
    conf_equal(conf, "SSTAT, status after another power cut",
               log_status(nvme) & 7, DONE);
    conf_check(conf, log_status(nvme) & SANITIZE_STATUS_ERASED,
               "Global Data Erased is 0 after a power cut");
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST("sanitize." id, "NVMe 1.4 " clause, purpose, __VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("block-erase", "5.24, 8.15", "a block erase leaves no data",
         block_erase),
    TEST("erased", "5.14.1.16.2", "Global Data Erased lasts until a Write",
         erased_flag),
    TEST("overwrite", "8.15", "an overwrite ends with the pattern, or zeroes",
         overwrite),
    CONF_TEST("sanitize.recorded", "NVMe 2.0 5.16.1.14.1.9, 5.16.1.14.1.10",
              "start and end are persistent events", recorded),
    TEST("estimates", "5.14.1.16.2", "the log estimates how long it takes",
         estimates),
    TEST("meanwhile", "8.15.1", "commands are refused as 8.15.1 says",
         meanwhile),
    TEST("event", "5.2.1, 8.15", "the end of the operation is reported", event),
    TEST("fields", "5.24", "an action that is not supported is refused",
         fields),
    TEST("protected", "8.19.1", "a write-protected namespace is not sanitized",
         protected_ns),
    TEST("self-test", "8.11", "Sanitize aborts a self-test", self_test),
    TEST("power", "8.15", "the operation goes on after a power cut", power_cut,
         .needs = CONF_NEEDS_CONTROL),
};
CONF_TESTS(conf_tests_nvme_sanitize, "nvme", tests);
