/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake.h"
#include "nvmeof/target/events/events.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/discovery.h"
#include "tests/test_fixture.h"

static struct nvme_cqe exec_identify(struct fake *fake, uint16_t admin,
                                     uint8_t cns, uint32_t nsid)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_IDENTIFY, nsid, cns, 0);

    memset(fake->data, 0xa5, 4096);
    return fake_exec(fake, admin, &sqe, fake->data, 4096);
}

/* A Linux host checks these values before it uses a controller. */
static void test_identify_controller_passes_the_checks_of_linux(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    const uint8_t *id = fake->data;

    assert_int_equal(exec_identify(fake, admin, CNS_CONTROLLER, 0).status, 0);
    assert_int_equal(
        get_le16(id + 78),
        fake->target->ctrl[fake->target->qpair[admin].ctrl].cntlid);
    assert_int_not_equal(get_le16(id + 320), 0);    /* KAS */
    assert_int_equal(get_le32(id + 1792), 260);     /* IOCCSZ */
    assert_int_equal(get_le32(id + 1796), 1);       /* IORCSZ */
    assert_int_equal(get_le16(id + 514), 64);       /* MAXCMD */
    assert_int_equal(get_le16(id + 1800), 0);       /* ICDOFF */
    assert_int_equal(id[1803], 1);                  /* MSDBD */
    assert_int_equal(get_le32(id + 536), 0x100005); /* SGLS */
    assert_string_equal((const char *)id + 768, FAKE_SUBNQN);
    assert_int_equal(id[77], 8);                  /* MDTS */
    assert_int_equal(id[76], 0x0b);               /* CMIC */
    assert_int_equal(id[111], 1);                 /* CNTRLTYPE */
    assert_int_equal(get_le32(id + 80), 0x20000); /* VER */
    assert_int_equal(get_le32(id + 516), 128);    /* NN */
    assert_int_equal(get_le16(id + 520), 0x1fd);  /* ONCS */
    assert_int_equal(id[522], 1);                 /* FUSES */
    assert_int_equal(get_le16(id + 532), 0);      /* ACWU: one block */
    assert_int_equal(get_le16(id + 534), 5);      /* OCFS: formats 0 and 2 */
    assert_int_equal(get_le16(id + 256), 0x200);  /* OACS: Get LBA Status */
    assert_int_equal(id[525], 7);                 /* VWC */
    assert_int_equal(id[259], 3);                 /* AERL */
    assert_int_equal(id[512], 0x66);
    assert_int_equal(id[513], 0x44);
    assert_memory_equal(id + 4, "SN0001              ", 20);
    assert_memory_equal(id + 64, "1.0     ", 8);
    assert_int_equal(id[4095], 0);
}

WITH_FIXTURE(NULL, NULL)
static void test_the_data_sheet_profile_reports_1_2_1(void **state)
{
    struct fake *fake = fake_new();
    uint16_t admin;

    (void)state;
    fake->config.vs = 0x00010201;
    fake->has_cache = false;
    fake_start(fake);
    admin = fake_host(fake, 0);
    assert_int_equal(fake_property_get(fake, admin, PROPERTY_VS, 4), 0x10201);
    exec_identify(fake, admin, CNS_CONTROLLER, 0);
    assert_int_equal(get_le32(fake->data + 80), 0x10201);
    assert_int_equal(fake->data[111], 0);
    assert_int_equal(fake->data[525], 0); /* no volatile write cache */
    assert_int_equal(fake->cache_on, 0);
    fake_free(fake);
}

static void test_identify_returns_each_namespace_and_its_descriptors(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    const uint8_t *id = fake->data;

    assert_int_equal(exec_identify(fake, admin, CNS_NAMESPACE, 2).status, 0);
    assert_int_equal(get_le64(id), FAKE_BLOCKS);
    assert_int_equal(get_le64(id + 8), FAKE_BLOCKS);
    assert_int_equal(id[25], 0);                         /* NLBAF */
    assert_int_equal(id[30], 1);                         /* NMIC: shared */
    assert_int_equal(get_le32(id + 128), 9 << 16);       /* LBAF0 */
    assert_memory_equal(id + 104, fake->ns[1].uuid, 16); /* NGUID */

    assert_int_equal(exec_identify(fake, admin, CNS_NAMESPACE, 3).status, 0);
    for (unsigned int i = 0; i < 4096; i++) {
        assert_int_equal(id[i], 0);
    }
    assert_int_equal(exec_identify(fake, admin, CNS_NS_DESCRIPTORS, 1).status,
                     0);
    assert_int_equal(id[0], 2);  /* NGUID */
    assert_int_equal(id[20], 3); /* UUID */
    assert_int_equal(id[21], 16);
    assert_memory_equal(id + 24, fake->ns[0].uuid, 16);
    assert_int_equal(get_le32(id + 40), 0);
}

static void test_active_namespace_list_starts_above_nsid(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    assert_int_equal(exec_identify(fake, admin, CNS_ACTIVE_NS_LIST, 0).status,
                     0);
    assert_int_equal(get_le32(fake->data), 1);
    assert_int_equal(get_le32(fake->data + 4), 2);
    assert_int_equal(get_le32(fake->data + 8), 0);
    exec_identify(fake, admin, CNS_ACTIVE_NS_LIST, 1);
    assert_int_equal(get_le32(fake->data), 2);
    assert_int_equal(get_le32(fake->data + 4), 0);
    exec_identify(fake, admin, CNS_ACTIVE_NS_LIST, 2);
    assert_int_equal(get_le32(fake->data), 0);
    exec_identify(fake, admin, CNS_ACTIVE_NS_LIST, 0xfffffffd);
    assert_int_equal(get_le32(fake->data), 0);
}

static void test_invalid_admin_commands_are_refused(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    static const struct {
        const char *what;
        struct nvme_sqe sqe;
        uint32_t len;
        uint16_t status;
    } rows[] = {
        {"Delete I/O SQ", {.opcode = 0x00}, 0, 0x001},
        {"Create I/O SQ", {.opcode = 0x01}, 0, 0x001},
        {"Create I/O CQ", {.opcode = 0x05}, 0, 0x001},
        {"Namespace Management", {.opcode = 0x0d}, 4096, 0x001},
        {"Firmware Commit", {.opcode = 0x10}, 0, 0x001},
        {"Firmware Download", {.opcode = 0x11}, 4, 0x001},
        {"Device Self-test", {.opcode = 0x14}, 0, 0x001},
        {"opcode 1Fh", {.opcode = 0x1f}, 0, 0x001},
        {"Doorbell Buffer", {.opcode = 0x7c}, 0, 0x001},
        {"Format NVM", {.opcode = 0x80, .nsid = 1}, 0, 0x001},
        {"Security Send", {.opcode = 0x81}, 0, 0x001},
        {"vendor", {.opcode = 0xff}, 0, 0x001},
        {"Identify NSID 0", {.opcode = 6}, 4096, 0x00b},
        {"CNS 05h, NSID 0", {.opcode = 6, .cdw10 = 5}, 4096, 0x00b},
        {"CNS 08h, NSID 129",
         {.opcode = 6, .nsid = 129, .cdw10 = 8},
         4096,
         0x00b},
        {"Identify NSID 129", {.opcode = 6, .nsid = 129}, 4096, 0x00b},
        {"Identify all", {.opcode = 6, .nsid = ~0u}, 4096, 0x00b},
        {"list above FFFFFFFEh",
         {.opcode = 6, .nsid = ~0u - 1, .cdw10 = 2},
         4096,
         0x00b},
        {"descriptors of 0", {.opcode = 6, .cdw10 = 3}, 4096, 0x00b},
        {"descriptors of inactive",
         {.opcode = 6, .nsid = 3, .cdw10 = 3},
         4096,
         0x00b},
        {"Identify, short SGL", {.opcode = 6, .cdw10 = 1}, 4095, 0x00f},
        {"Identify, long SGL", {.opcode = 6, .cdw10 = 1}, 8192, 0x00f},
        {"fused", {.opcode = 6, .cdw10 = 1, .fuse = 1}, 4096, 0x002},
        {"PRPs", {.opcode = 6, .cdw10 = 1, .psdt = 1}, 4096, 0x002},
        {"log of a namespace", {.opcode = 2, .nsid = 1, .cdw10 = 3}, 4, 0x002},
        {"SMART of inactive", {.opcode = 2, .nsid = 3, .cdw10 = 2}, 4, 0x002},
        {"SMART of 129", {.opcode = 2, .nsid = 129, .cdw10 = 2}, 4, 0x002},
        {"log offset of 2", {.opcode = 2, .cdw10 = 2, .cdw12 = 2}, 4, 0x002},
        {"log offset beyond",
         {.opcode = 2, .cdw10 = 2, .cdw12 = 516},
         4,
         0x002},
        {"log offset of 33 bits",
         {.opcode = 2, .cdw10 = 2, .cdw13 = 1},
         4,
         0x002},
        {"log longer than MDTS",
         {.opcode = 2, .cdw10 = 2, .cdw11 = 4},
         0,
         0x002},
        {"log of 16 GiB",
         {.opcode = 2, .cdw10 = 2 | 0xffffu << 16, .cdw11 = 0xffff},
         0,
         0x002},
        {"log, short SGL", {.opcode = 2, .cdw10 = 2 | 1u << 16}, 4, 0x00f},
        {"Timestamp, short SGL", {.opcode = 0x0a, .cdw10 = 0xe}, 4, 0x00f},
        {"set Timestamp, short", {.opcode = 9, .cdw10 = 0xe}, 4, 0x00f},
        {"save Timestamp", {.opcode = 9, .cdw10 = 1u << 31 | 0xe}, 8, 0x10d},
        {"Select 4", {.opcode = 0x0a, .cdw10 = 0x401}, 0, 0x002},
        {"sensor 1", {.opcode = 0x0a, .cdw10 = 4, .cdw11 = 1 << 16}, 0, 0x002},
        {"threshold type 2",
         {.opcode = 0x0a, .cdw10 = 4, .cdw11 = 2 << 20},
         0,
         0x002},
        {"64-bit host id", {.opcode = 0x0a, .cdw10 = 0x81}, 8, 0x002},
        {"Set Features 00h", {.opcode = 9}, 0, 0x002},
        {"Set Features 08h", {.opcode = 9, .cdw10 = 8}, 0, 0x002},
        {"Save", {.opcode = 9, .cdw10 = 1u << 31 | 1}, 0, 0x10d},
        {"of a namespace", {.opcode = 9, .nsid = 1, .cdw10 = 1}, 0, 0x10f},
        {"power state 1", {.opcode = 9, .cdw10 = 2, .cdw11 = 1}, 0, 0x002},
        {"set sensor 1", {.opcode = 9, .cdw10 = 4, .cdw11 = 1 << 16}, 0, 0x002},
        {"DULBE", {.opcode = 9, .cdw10 = 5, .cdw11 = 1 << 16}, 0, 0x002},
        {"65536 SQs", {.opcode = 9, .cdw10 = 7, .cdw11 = 0xffff}, 0, 0x002},
        {"65536 CQs", {.opcode = 9, .cdw10 = 7, .cdw11 = 0xffff0000}, 0, 0x002},
        {"set host id", {.opcode = 9, .cdw10 = 0x81, .cdw11 = 1}, 16, 0x00c},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t before = nvmf_target_counters(fake->target)->error_log_entries;
        uint8_t opcode = rows[i].sqe.opcode;
        bool is_query = opcode == ADMIN_IDENTIFY ||
                        opcode == ADMIN_GET_LOG_PAGE ||
                        opcode == ADMIN_GET_FEATURES;
        struct nvme_cqe cqe =
            fake_exec(fake, admin, &rows[i].sqe, fake->data, rows[i].len);

        if (cqe.status != (rows[i].status | DNR | (is_query ? 0 : MORE))) {
            fail_msg("%s: status %x", rows[i].what, cqe.status);
        }
        /* A query leaves no trace, whatever it was refused for. */
        if (nvmf_target_counters(fake->target)->error_log_entries !=
            before + !is_query) {
            fail_msg("%s: the error log", rows[i].what);
        }
    }
    assert_int_equal(fake->buffers_out, 0);
}

/*
 * Hosts send these queries at each connect to find out what a drive supports.
 * If each left an entry, programs that watch SMART's count would raise an
 * alarm.
 */
static void test_refused_queries_leave_no_entry_in_the_error_log(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    static const struct {
        const char *what;
        struct nvme_sqe sqe;
        uint32_t len;
        uint16_t status;
    } rows[] = {
        {"CNS 05h, key value",
         {.opcode = 6, .nsid = 1, .cdw10 = 5, .cdw11 = 1u << 24},
         4096,
         0x002},
        {"CNS 06h, zoned",
         {.opcode = 6, .cdw10 = 6, .cdw11 = 2u << 24},
         4096,
         0x002},
        {"CNS 07h, zoned",
         {.opcode = 6, .cdw10 = 7, .cdw11 = 2u << 24},
         4096,
         0x002},
        {"CNS 10h", {.opcode = 6, .cdw10 = 0x10}, 4096, 0x002},
        {"CNS 13h", {.opcode = 6, .cdw10 = 0x13}, 4096, 0x002},
        {"CNS 1Dh", {.opcode = 6, .cdw10 = 0x1d}, 4096, 0x002},
        {"CNS FFh", {.opcode = 6, .cdw10 = 0xff}, 4096, 0x002},
        {"LID 1Fh", {.opcode = 2, .cdw10 = 0x1f}, 4, 0x109},
        {"LID 06h", {.opcode = 2, .cdw10 = 0x06}, 4, 0x109},
        {"LID 70h", {.opcode = 2, .cdw10 = 0x70}, 4, 0x109},
        {"LID D0h", {.opcode = 2, .cdw10 = 0xd0}, 4, 0x109},
        {"Get Features 00h", {.opcode = 0x0a}, 0, 0x002},
        {"Get Features 03h", {.opcode = 0x0a, .cdw10 = 3}, 0, 0x002},
        {"Get Features 08h", {.opcode = 0x0a, .cdw10 = 8}, 0, 0x002},
        {"Get Features C1h", {.opcode = 0x0a, .cdw10 = 0xc1}, 0, 0x002},
    };
    uint64_t before = nvmf_target_counters(fake->target)->error_log_entries;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct nvme_cqe cqe =
            fake_exec(fake, admin, &rows[i].sqe, fake->data, rows[i].len);

        if (cqe.status != (rows[i].status | DNR)) {
            fail_msg("%s: status %x", rows[i].what, cqe.status);
        }
    }
    assert_int_equal(nvmf_target_counters(fake->target)->error_log_entries,
                     before);
}

/* CNS 05h to 08h of Base 2.0.  Linux requests 06h at each connect. */
static void test_identify_answers_for_the_nvm_command_set(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    static const uint8_t zeroes[NVME_IDENTIFY_LEN];

    memset(fake->data, 0xa5, NVME_IDENTIFY_LEN);
    assert_int_equal(
        exec_identify(fake, admin, CNS_CONTROLLER_OF_COMMAND_SET, 0).status, 0);
    assert_memory_equal(fake->data, zeroes, sizeof(zeroes));
    memset(fake->data, 0xa5, NVME_IDENTIFY_LEN);
    assert_int_equal(
        exec_identify(fake, admin, CNS_NS_OF_COMMAND_SET, 1).status, 0);
    assert_memory_equal(fake->data, zeroes, sizeof(zeroes));
    exec_identify(fake, admin, CNS_ACTIVE_NS_LIST_OF_COMMAND_SET, 1);
    assert_int_equal(get_le32(fake->data), 2);
    assert_int_equal(get_le32(fake->data + 4), 0);
    memset(fake->data, 0xa5, NVME_IDENTIFY_LEN);
    assert_int_equal(
        exec_identify(fake, admin, CNS_NS_OF_ALL_COMMAND_SETS, 1).status, 0);
    assert_int_equal(fake->data[1], NMIC_SHARED);
    assert_int_equal(fake->data[14], 1);   /* ready */
    assert_int_equal(fake->data[2], 0xfe); /* RESCAP, without PTPL */
    assert_int_equal(fake->data[4], 1);    /* ANA group */
    fake->data[1] = fake->data[2] = fake->data[4] = fake->data[14] = 0;
    assert_memory_equal(fake->data, zeroes, sizeof(zeroes));
    memset(fake->data, 0xa5, NVME_IDENTIFY_LEN);
    exec_identify(fake, admin, CNS_NS_OF_ALL_COMMAND_SETS, 3); /* not active */
    assert_memory_equal(fake->data, zeroes, sizeof(zeroes));
    assert_int_equal(nvmf_target_counters(fake->target)->error_log_entries, 0);
}

static void test_a_discovery_controller_refuses_io_controller_commands(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_discovery_host(fake);
    static const struct {
        struct nvme_sqe sqe;
        uint32_t len;
        uint16_t status;
    } rows[] = {
        {{.opcode = 0x08}, 0, 0x001},
        {{.opcode = 6, .cdw10 = 0, .nsid = 1}, 4096, 0x002},
        {{.opcode = 6, .cdw10 = 2}, 4096, 0x002},
        {{.opcode = 2, .cdw10 = 1}, 4, 0x109},
        {{.opcode = 2, .cdw10 = 2}, 4, 0x109},
        {{.opcode = 0x0a, .cdw10 = 7}, 0, 0x002},
        {{.opcode = 9, .cdw10 = 7}, 0, 0x002},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(
            fake_exec(fake, admin, &rows[i].sqe, fake->data, rows[i].len)
                .status,
            rows[i].status | DNR);
    }
    assert_int_equal(exec_identify(fake, admin, CNS_CONTROLLER, 0).status, 0);
    assert_int_equal(fake->data[111], 2);
    assert_string_equal((const char *)fake->data + 768, NVME_DISCOVERY_NQN);
    assert_int_equal(get_le32(fake->data + 516), 0);
}

static uint32_t read_feature(struct fake *fake, uint16_t admin, uint8_t fid,
                             uint32_t select, uint32_t cdw11)
{
    struct nvme_sqe get =
        fake_admin(ADMIN_GET_FEATURES, 0, select << 8 | fid, cdw11);
    struct nvme_cqe cqe = fake_exec(fake, admin, &get, NULL, 0);

    assert_int_equal(cqe.status, 0);
    return cqe.dw0;
}

static void set_feature(struct fake *fake, uint16_t admin, uint8_t fid,
                        uint32_t cdw11)
{
    struct nvme_sqe set = fake_admin(ADMIN_SET_FEATURES, 0, fid, cdw11);

    assert_int_equal(fake_exec(fake, admin, &set, NULL, 0).status, 0);
}

/* ---- Vendor features: the fake has D1h, a value, and D4h, data. */

struct vendor {
    uint32_t value, saved;
};

static uint16_t vendor_get(void *ctx, uint8_t fid, enum nvmf_select select,
                           uint32_t cdw11, uint32_t *value)
{
    struct vendor *vendor = ctx;

    *value = select == NVMF_SELECT_CURRENT ? vendor->value + cdw11
             : select == NVMF_SELECT_SAVED ? vendor->saved
                                           : 0;
    return fid == 0xd1 ? NVME_SC_SUCCESS : NVME_SC_INVALID_FIELD;
}

static uint16_t vendor_set(void *ctx, uint8_t fid, bool is_saved,
                           uint32_t cdw11)
{
    struct vendor *vendor = ctx;

    if (fid != 0xd1 || cdw11 == 13) {
        return fid == 0xd1 ? NVME_SC_INTERNAL : NVME_SC_INVALID_FIELD;
    }
    vendor->value = cdw11;
    vendor->saved = is_saved ? cdw11 : vendor->saved;
    return NVME_SC_SUCCESS;
}

/* The data of C4h is one byte that is saved, and others that show its
 * source. */
static uint16_t vendor_data_len(void *ctx, uint8_t fid)
{
    (void)ctx;
    return fid == 0xd4 ? NVMF_VENDOR_DATA_MAX : 0;
}

static uint16_t vendor_get_data(void *ctx, uint8_t fid, enum nvmf_select select,
                                uint32_t cdw11, uint8_t *data)
{
    struct vendor *vendor = ctx;

    memset(data, 0x40 + (int)select, NVMF_VENDOR_DATA_MAX);
    data[0] =
        (uint8_t)(select == NVMF_SELECT_SAVED ? vendor->saved : vendor->value);
    return fid == 0xd4 && cdw11 == 0 ? NVME_SC_SUCCESS : NVME_SC_INVALID_FIELD;
}

static uint16_t vendor_set_data(void *ctx, uint8_t fid, bool is_saved,
                                uint32_t cdw11, const uint8_t *data)
{
    struct vendor *vendor = ctx;

    if (fid != 0xd4 || cdw11 != 0 || data[NVMF_VENDOR_DATA_MAX - 1] != 0) {
        return NVME_SC_INVALID_FIELD;
    }
    vendor->value = data[0];
    vendor->saved = is_saved ? data[0] : vendor->saved;
    return NVME_SC_SUCCESS;
}

static uint16_t try_feature(struct fake *fake, uint16_t admin, uint8_t opcode,
                            uint32_t cdw10, uint32_t cdw11)
{
    struct nvme_sqe sqe = fake_admin(opcode, 0, cdw10, cdw11);

    return fake_exec(fake, admin, &sqe, NULL, 0).status & 0xfff;
}

WITH_FIXTURE(NULL, NULL)
static void test_vendor_features_are_passed_on(void **state)
{
    struct vendor vendor = {.value = 40};
    struct fake *fake = fake_new();
    uint16_t admin;

    (void)state;
    fake->config.vendor = (struct nvmf_vendor){
        .ctx = &vendor, .get = vendor_get, .set = vendor_set};
    fake_start(fake);
    admin = fake_host(fake, 0);
    assert_int_equal(read_feature(fake, admin, 0xd1, 0, 2), 42);
    set_feature(fake, admin, 0xd1, 7);
    assert_int_equal(read_feature(fake, admin, 0xd1, 0, 0), 7);
    assert_int_equal(read_feature(fake, admin, 0xd1, 2, 0), 0);
    assert_int_equal(
        try_feature(fake, admin, ADMIN_SET_FEATURES, BIT(31) | 0xd1, 9), 0);
    assert_int_equal(read_feature(fake, admin, 0xd1, 2, 0), 9);
    assert_int_equal(read_feature(fake, admin, 0xd1, 1, 0), 0);
    assert_int_equal(read_feature(fake, admin, 0xd1, 3, 0), 5);
    assert_int_equal(try_feature(fake, admin, ADMIN_SET_FEATURES, 0xd1, 13), 6);
    assert_int_equal(try_feature(fake, admin, ADMIN_SET_FEATURES, 0xc2, 1), 2);
    assert_int_equal(try_feature(fake, admin, ADMIN_GET_FEATURES, 0xc2, 1), 2);
    assert_int_equal(
        try_feature(fake, admin, ADMIN_GET_FEATURES, 4 << 8 | 0xd1, 1), 2);
    /* A discovery controller has no vendor features. */
    assert_int_equal(try_feature(fake, fake_discovery_host(fake),
                                 ADMIN_GET_FEATURES, 0xd1, 1),
                     2);
    fake_free(fake);
}

WITH_FIXTURE(NULL, NULL)
static void test_vendor_features_may_have_data(void **state)
{
    struct vendor vendor = {.value = 40, .saved = 41};
    struct fake *fake = fake_new();
    uint8_t data[NVMF_VENDOR_DATA_MAX] = {7};
    struct nvme_sqe get, set;
    uint16_t admin;

    (void)state;
    fake->config.vendor =
        (struct nvmf_vendor){&vendor,         vendor_get,      vendor_set,
                             vendor_data_len, vendor_get_data, vendor_set_data};
    fake_start(fake);
    admin = fake_host(fake, 0);
    set = fake_admin(ADMIN_SET_FEATURES, 0, 0xd4, 0);
    assert_int_equal(fake_exec(fake, admin, &set, data, sizeof(data)).status,
                     0);
    assert_int_equal(vendor.value, 7);
    assert_int_equal(vendor.saved, 41);
    data[0] = 8;
    set = fake_admin(ADMIN_SET_FEATURES, 0, BIT(31) | 0xd4, 0);
    assert_int_equal(fake_exec(fake, admin, &set, data, sizeof(data)).status,
                     0);
    assert_int_equal(vendor.saved, 8);
    data[sizeof(data) - 1] = 1;
    assert_int_equal(
        fake_exec(fake, admin, &set, data, sizeof(data)).status & 0xfff, 2);
    /* The command must have exactly the length of the data. */
    assert_int_equal(
        fake_exec(fake, admin, &set, data, sizeof(data) - 4).status & 0xfff,
        0xf);
    assert_int_equal(fake_exec(fake, admin, &set, NULL, 0).status & 0xfff, 0xf);

    for (uint32_t select = 0; select < 3; select++) {
        get = fake_admin(ADMIN_GET_FEATURES, 0, select << 8 | 0xd4, 0);
        memset(data, 0, sizeof(data));
        assert_int_equal(
            fake_exec(fake, admin, &get, data, sizeof(data)).status, 0);
        assert_int_equal(data[0], 8);
        assert_int_equal(data[sizeof(data) - 1], 0x40 + select);
    }
    get = fake_admin(ADMIN_GET_FEATURES, 0, 0xd4, 1);
    assert_int_equal(
        fake_exec(fake, admin, &get, data, sizeof(data)).status & 0xfff, 2);
    assert_int_equal(read_feature(fake, admin, 0xd4, 3, 0), 5);
    assert_int_equal(read_feature(fake, admin, 0xd1, 0, 0), 8);
    fake_free(fake);
}

static void test_features_keep_what_is_set(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    static const struct {
        uint8_t fid;
        uint32_t initial, set, then;
    } rows[] = {
        {0x01, 0, 0x07060504, 0x07060504},
        {0x02, 0, 0x20, 0x20},
        {0x04, 343, 350, 350},
        {0x05, 0, 0x1234, 0x1234},
        {0x06, 1, 0, 0},
        {0x07, 0xf000f, 0x00070003, 0x30003},
        {0x0a, 0, 1, 1},
        {0x0b, 0, 0xffffffff, 0x291f},
        {0x0f, 0, 4500, 5000},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t fid = rows[i].fid;

        assert_int_equal(read_feature(fake, admin, fid, 0, 0), rows[i].initial);
        set_feature(fake, admin, fid, rows[i].set);
        assert_int_equal(read_feature(fake, admin, fid, 0, 0), rows[i].then);
        assert_int_equal(read_feature(fake, admin, fid, 1, 0), rows[i].initial);
        assert_int_equal(read_feature(fake, admin, fid, 2, 0), rows[i].initial);
        /* The feature is changeable. */
        assert_int_equal(read_feature(fake, admin, fid, 3, 0), 4);
    }
    assert_int_equal(read_feature(fake, admin, 0x81, 3, 1), 0);
    /* A reset sets the controller's own features to their defaults. */
    fake_property_set(fake, admin, PROPERTY_CC, 0);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    assert_int_equal(read_feature(fake, admin, 0x04, 0, 0), 343);
    assert_int_equal(read_feature(fake, admin, 0x0b, 0, 0), 0);
}

static void test_under_temperature_threshold_is_set_and_read(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    assert_int_equal(read_feature(fake, admin, 4, 0, 1 << 20), 0);
    set_feature(fake, admin, 4, 1 << 20 | 0xf << 16 | 280);
    assert_int_equal(read_feature(fake, admin, 4, 0, 1 << 20), 280);
    assert_int_equal(read_feature(fake, admin, 4, 1, 1 << 20), 0);
    assert_int_equal(read_feature(fake, admin, 4, 0, 0), 343);
}

static void test_disabling_the_cache_completes_after_a_flush(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe set = fake_admin(ADMIN_SET_FEATURES, 0, 6, 0);
    struct fake_request *request;

    assert_int_equal(fake->cache_on, 1);
    fake->hold_media = true;
    fake->media_room = 1;
    request = fake_send(fake, admin, &set, NULL, 0);
    fake_run(fake);
    /* New writes bypass the cache at once. */
    assert_int_equal(fake->cache_on, 0);
    assert_false(request->is_answered);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(fake->history_count, 1);
    assert_int_equal(fake->history[0].op, MEDIA_FLUSH);
    assert_int_equal(request->cqe.status, 0);
    set_feature(fake, admin, 6, 1);
    assert_int_equal(fake->cache_on, 1);
    assert_int_equal(fake->history_count, 1);
    assert_int_equal(fake->cache_calls, 3);
}

WITH_FIXTURE(NULL, NULL)
static void test_cache_feature_is_refused_without_a_cache(void **state)
{
    struct fake *fake = fake_new();
    struct nvme_sqe set = fake_admin(ADMIN_SET_FEATURES, 0, 6, 1);
    struct nvme_sqe get = fake_admin(ADMIN_GET_FEATURES, 0, 6, 0);
    uint16_t admin;

    (void)state;
    fake->has_cache = false;
    fake_start(fake);
    admin = fake_host(fake, 0);
    assert_int_equal(fake_exec(fake, admin, &set, NULL, 0).status,
                     NVME_SC_INVALID_FIELD | DNR | MORE);
    assert_int_equal(fake_exec(fake, admin, &get, NULL, 0).status,
                     NVME_SC_INVALID_FIELD | DNR);
    fake_free(fake);
}

static void test_number_of_queues_cannot_be_set_after_io_queues_connect(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe set = fake_admin(ADMIN_SET_FEATURES, 0, 7, 0x10001);

    fake_io_queue(fake, admin, 1);
    assert_int_equal(fake_exec(fake, admin, &set, NULL, 0).status,
                     NVME_SC_COMMAND_SEQUENCE | DNR | MORE);
}

static void test_the_host_identifier_is_the_one_of_connect(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe get = fake_admin(ADMIN_GET_FEATURES, 0, 0x81, 1);
    uint8_t hostid[16];

    memset(hostid, 0x42, sizeof(hostid));
    assert_int_equal(fake_exec(fake, admin, &get, fake->data, 16).status, 0);
    assert_memory_equal(fake->data, hostid, sizeof(hostid));
}

static void test_event_requests_are_accepted_up_to_the_limit(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe aer = {.opcode = ADMIN_ASYNC_EVENT_REQUEST};
    struct fake_request *request[4];

    for (unsigned int i = 0; i < 4; i++) {
        request[i] = fake_send(fake, admin, &aer, NULL, 0);
        assert_int_equal(request[i]->req.state, NVMF_REQUEST_AER);
    }
    assert_int_equal(fake_exec(fake, admin, &aer, NULL, 0).status,
                     NVME_SC_AER_LIMIT | DNR | MORE);
    fake_run(fake);
    assert_false(request[3]->is_answered);
}

static void test_abort_ends_a_waiting_command(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 3);
    struct nvme_sqe aer = {.opcode = ADMIN_ASYNC_EVENT_REQUEST};
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);
    struct nvme_sqe abort = {.opcode = ADMIN_ABORT};
    struct fake_request *event = fake_send(fake, admin, &aer, NULL, 0);
    struct fake_request *waiting, *running;

    abort.cdw10 = (uint32_t)event->req.sqe.cid << 16;
    assert_int_equal(fake_exec(fake, admin, &abort, NULL, 0).dw0, 0);
    assert_int_equal(event->cqe.status, NVME_SC_ABORT_REQUESTED);
    assert_int_equal(fake_exec(fake, admin, &abort, NULL, 0).dw0, 1);

    fake->buffers_free = 4096;
    fake->hold_media = true;
    running = fake_send(fake, io, &read, fake->data, 4096);
    waiting = fake_send(fake, io, &read, fake->data, 4096);
    abort.cdw10 = (uint32_t)running->req.sqe.cid << 16 | 3;
    assert_int_equal(fake_exec(fake, admin, &abort, NULL, 0).dw0, 1);
    abort.cdw10 = (uint32_t)waiting->req.sqe.cid << 16 | 2;
    assert_int_equal(fake_exec(fake, admin, &abort, NULL, 0).dw0, 1);
    abort.cdw10 = (uint32_t)waiting->req.sqe.cid << 16 | 0xffff;
    assert_int_equal(fake_exec(fake, admin, &abort, NULL, 0).dw0, 1);
    abort.cdw10 = (uint32_t)waiting->req.sqe.cid << 16 | 3;
    assert_int_equal(fake_exec(fake, admin, &abort, NULL, 0).dw0, 0);
    assert_int_equal(waiting->cqe.status, NVME_SC_ABORT_REQUESTED);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(running->cqe.status, 0);
}

static struct fake_request *send_as(struct fake *fake, uint16_t admin,
                                    const struct nvme_sqe *sqe, uint16_t cid)
{
    struct fake_request *request;

    fake->next_cid = cid;
    request = fake_send(fake, admin, sqe, NULL, 0);
    fake->next_cid = 0x100;
    fake_run(fake);
    return request;
}

static struct nvme_sqe property_sqe(uint8_t fctype, uint32_t offset,
                                    uint64_t value)
{
    struct property_command command = {
        .size_bytes = 4, .offset = offset, .value = value};
    struct nvme_sqe sqe = {.fctype = fctype};

    property_command_build(&sqe, &command);
    sqe.psdt = 0; /* fake_send() inverts the bit */
    return sqe;
}

/* SPDK forgets its event requests before it shuts a controller down. */
static void test_a_forgotten_event_request_never_stops_its_identifier(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvmf_ctrl *ctrl = &fake->target->ctrl[0];
    struct nvme_sqe aer = {.opcode = ADMIN_ASYNC_EVENT_REQUEST};
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};
    struct nvme_sqe get = property_sqe(FABRICS_PROPERTY_GET, PROPERTY_CC, 0);
    struct nvme_sqe reset = property_sqe(FABRICS_PROPERTY_SET, PROPERTY_CC, 0);
    uint64_t errors = fake->target->counters.error_log_entries;
    struct fake_request *event[4];

    for (uint16_t i = 0; i < 4; i++) {
        event[i] = send_as(fake, admin, &aer, i);
    }
    assert_int_equal(send_as(fake, admin, &get, 1)->cqe.status, 0);
    assert_int_equal(send_as(fake, admin, &keep_alive, 2)->cqe.status, 0);
    /* Another event request is a command, too, but one too many. */
    assert_int_equal(send_as(fake, admin, &aer, 3)->cqe.status,
                     NVME_SC_AER_LIMIT | DNR | MORE);
    assert_int_equal(fake->target->counters.error_log_entries, errors + 1);

    /* The host expects an answer to the other request only. */
    event_raise(fake->target, ctrl, CTRL_EVENT_SANITIZE_COMPLETED);
    fake_run(fake);
    assert_true(event[0]->is_answered);
    event_raise(fake->target, ctrl, CTRL_EVENT_RESERVATION);
    assert_int_equal(send_as(fake, admin, &reset, 1)->cqe.status, 0);
    for (unsigned int i = 1; i < 4; i++) {
        assert_false(event[i]->is_answered);
        assert_int_equal(event[i]->req.state, NVMF_REQUEST_AER);
    }
    fake_close(fake, admin);
    for (unsigned int i = 1; i < 4; i++) {
        assert_int_equal(event[i]->req.state, NVMF_REQUEST_FREE);
    }
}

static void test_a_forgotten_event_request_cannot_be_aborted(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe aer = {.opcode = ADMIN_ASYNC_EVENT_REQUEST};
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};
    struct nvme_sqe abort = {.opcode = ADMIN_ABORT, .cdw10 = 7u << 16};
    struct fake_request *event = send_as(fake, admin, &aer, 7);

    assert_int_equal(send_as(fake, admin, &keep_alive, 7)->cqe.status, 0);
    assert_int_equal(send_as(fake, admin, &abort, 8)->cqe.dw0, 1);
    assert_false(event->is_answered);
    /* Its place among the event requests stays taken. */
    for (uint16_t i = 0; i < 3; i++) {
        event = send_as(fake, admin, &aer, i);
        assert_int_equal(event->req.state, NVMF_REQUEST_AER);
    }
    assert_int_equal(send_as(fake, admin, &aer, 9)->cqe.status,
                     NVME_SC_AER_LIMIT | DNR | MORE);
}

/* A host can shut down and reset a controller whatever it has forgotten. */
static void test_fabrics_commands_are_not_searched_for_conflicts(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe shutdown =
        property_sqe(FABRICS_PROPERTY_SET, PROPERTY_CC,
                     CC_ENABLE | (uint64_t)1 << CC_SHN_SHIFT);
    struct nvme_sqe get = property_sqe(FABRICS_PROPERTY_GET, PROPERTY_CSTS, 0);
    struct nvme_sqe set = fake_admin(ADMIN_SET_FEATURES, 0, 0x0e, 0);
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};
    struct fake_request *first;

    fake->hold_fetch = true;
    fake->next_cid = 3;
    first = fake_send(fake, admin, &set, fake->data, 8);
    assert_int_equal(first->req.state, NVMF_REQUEST_FETCHING);
    assert_int_equal(send_as(fake, admin, &keep_alive, 3)->cqe.status,
                     NVME_SC_COMMAND_ID_CONFLICT | DNR | MORE);
    assert_int_equal(send_as(fake, admin, &shutdown, 3)->cqe.status, 0);
    assert_int_equal(send_as(fake, admin, &get, 3)->cqe.dw0 >> CSTS_SHST_SHIFT,
                     2);
    fake->hold_fetch = false;
    fake_run(fake);
    assert_int_equal(first->cqe.status, 0);
}

TEST_FIXTURE(fake_setup, fake_teardown)
