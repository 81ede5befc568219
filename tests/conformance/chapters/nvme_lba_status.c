/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Get LBA Status, the LBA Status Information log page, its event and its
 * feature.  Most tests need a medium with blocks that cannot be read.
 *
 * Spec: NVM Command Set 1.0 4.1.3.2, 4.1.3.3, 4.1.4.5, 4.2.1, 5.8.
 */
#include <string.h>

#include "nvme_lib.h"
#include "nvmeof/wire/lba_status.h"
#include "nvmeof/wire/reservation.h"

enum {
    LIST_LEN = 1024,
    LOG_LEN = 4096,
    DATA_BLOCKS = 8,
    UNIT_US = 100000, /* of LSIRI and LSIPI */
    QUIET_US = 100000,
    EVENT_CID = 0x2000,
    SCAN_CID = 0x2100,
    SCANS = 4,
};

#define LBA_EVENT                                                              \
    (EVENT_TYPE_NOTICE | EVENT_NOTICE_LBA_STATUS << 8 | LOG_LBA_STATUS << 16)

static bool has_lba_status(const struct nvme *nvme)
{
    return get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_GET_LBA_STATUS;
}

static struct nvme_sqe status_sqe(const struct nvme *nvme, uint64_t slba,
                                  uint16_t blocks, uint8_t action,
                                  uint32_t bytes)
{
    return (struct nvme_sqe){
        .opcode = ADMIN_GET_LBA_STATUS,
        .nsid = nvme->nsid,
        .cdw10 = (uint32_t)slba,
        .cdw11 = (uint32_t)(slba >> 32),
        .cdw12 = bytes / 4 - 1,
        .cdw13 = (uint32_t)action << LBA_STATUS_ATYPE | blocks,
    };
}

static uint16_t run_status(struct nvme *nvme, uint64_t slba, uint16_t blocks,
                           uint8_t action, uint32_t bytes)
{
    struct nvme_sqe sqe = status_sqe(nvme, slba, blocks, action, bytes);

    return nvme_run(nvme, nvme->admin, &sqe, bytes, NULL);
}

static const uint8_t *nth_descriptor(const struct nvme *nvme, uint32_t i)
{
    return nvme->admin->mem + LBA_STATUS_HEADER_LEN + i * LBA_DESCRIPTOR_LEN;
}

/* Check what every list must be.  @return NLSD */
static uint32_t check_list(struct nvme *nvme, uint64_t slba, uint64_t end)
{
    const uint8_t *mem = nvme->admin->mem;
    uint32_t count = get_le32(mem + LBA_STATUS_NLSD);
    uint64_t next = slba;

    conf_check(nvme->conf,
               count <= (LIST_LEN - LBA_STATUS_HEADER_LEN) / LBA_DESCRIPTOR_LEN,
               "%u descriptors do not fit into the data", count);
    conf_check(nvme->conf, mem[LBA_STATUS_CMPC] <= LBA_CMPC_COMPLETE,
               "CMPC is %u", mem[LBA_STATUS_CMPC]);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *entry = nth_descriptor(nvme, i);
        uint64_t first = get_le64(entry + LBA_DESCRIPTOR_DSLBA);
        uint64_t blocks = get_le32(entry + LBA_DESCRIPTOR_NLB) + UINT64_C(1);

        conf_check(nvme->conf, first >= next, "descriptor %u is out of order",
                   i);
        conf_check(nvme->conf, first + blocks <= end,
                   "descriptor %u leaves the range of the command", i);
        next = first + blocks;
    }
    return count;
}

/* The tracked blocks of the whole namespace. */
static uint32_t get_tracked(struct nvme *nvme)
{
    conf_status(nvme->conf, "Get LBA Status, action 11h",
                run_status(nvme, 0, 0, LBA_ACTION_TRACKED, LIST_LEN),
                NVME_SC_SUCCESS);
    return check_list(nvme, 0, nvme->size_blocks);
}

static void expect_tracked(struct nvme *nvme, uint32_t count)
{
    conf_equal(nvme->conf, "tracked ranges", get_tracked(nvme), count);
    conf_equal(nvme->conf, "CMPC", nvme->admin->mem[LBA_STATUS_CMPC],
               LBA_CMPC_COMPLETE);
}

static void expect_descriptor(struct nvme *nvme, uint32_t i, uint64_t first,
                              uint32_t blocks, uint8_t status)
{
    const uint8_t *entry = nth_descriptor(nvme, i);

    conf_equal(nvme->conf, "DSLBA", get_le64(entry + LBA_DESCRIPTOR_DSLBA),
               first);
    conf_equal(nvme->conf, "NLB", get_le32(entry + LBA_DESCRIPTOR_NLB),
               blocks - 1);
    conf_equal(nvme->conf, "the descriptor's status",
               entry[LBA_DESCRIPTOR_STATUS], status);
}

static struct nvme *open_lba(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);

    if (!has_lba_status(nvme)) {
        conf_not_applicable(conf, "OACS bit 9 is 0");
    }
    return nvme;
}

#define WITH_LBA(name)                                                         \
    static void name##_in(struct conf *conf, struct nvme *nvme);               \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct nvme *nvme = open_lba(conf);                                    \
                                                                               \
        name##_in(conf, nvme);                                                 \
        nvme_close(nvme);                                                      \
    }                                                                          \
    static void name##_in(struct conf *conf, struct nvme *nvme)

/* Let a Read of these blocks fail. */
static void read_badly(struct nvme *nvme, uint64_t lba, uint32_t blocks)
{
    conf_needs_block(nvme->conf);
    conf_break_medium(nvme->conf, lba, blocks);
    conf_status(nvme->conf, "Read of blocks that cannot be read",
                nvme_rw(nvme, NVM_READ, lba, blocks), NVME_SC_READ_ERROR);
    conf_break_medium(nvme->conf, 0, 0);
}

/* ---- What the drive claims. */

static void claims_agree(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    bool exists = has_lba_status(nvme);
    uint32_t value;
    const uint8_t *page;

    conf_equal(conf, "OAES bit 13",
               (get_le32(nvme->ctrl + ID_CTRL_OAES) & OAES_LBA_STATUS) != 0,
               exists);
    conf_check(conf,
               (nvme_get_feature(nvme, FEATURE_LBA_STATUS, 0, 0, &value) ==
                NVME_SC_SUCCESS) == exists,
               "feature 15h and OACS bit 9 do not agree");
    conf_check(conf,
               (nvme_get_log(nvme, LOG_RAE | LOG_LBA_STATUS, 0,
                             LBA_LOG_HEADER_LEN) == NVME_SC_SUCCESS) == exists,
               "log page 0Eh and OACS bit 9 do not agree");
    page = nvme_log(nvme, LOG_COMMANDS_EFFECTS, LOG_COMMANDS_EFFECTS_LEN);
    conf_equal(
        conf, "the effects of opcode 86h",
        get_le32(page + COMMANDS_EFFECTS_ADMIN + 4 * ADMIN_GET_LBA_STATUS),
        exists ? COMMANDS_EFFECTS_CSUPP : 0u);
    nvme_close(nvme);
}

/* ---- The command. */

WITH_LBA(healthy)
{
    uint64_t end = nvme->size_blocks;

    (void)get_tracked(nvme);
    conf_status(conf, "Get LBA Status of the last block",
                run_status(nvme, end - 1, 1, LBA_ACTION_TRACKED, LIST_LEN),
                NVME_SC_SUCCESS);
    (void)check_list(nvme, end - 1, end);
    conf_status(conf, "Get LBA Status, action 10h",
                run_status(nvme, 0, DATA_BLOCKS, LBA_ACTION_SCAN, LIST_LEN),
                NVME_SC_SUCCESS);
    (void)check_list(nvme, 0, DATA_BLOCKS);
}

WITH_LBA(wrong_fields)
{
    static const uint8_t actions[] = {0x00, 0x01, 0x0f, 0x12, 0x20, 0xff};
    uint64_t end = nvme->size_blocks;

    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        conf_status(conf, "Get LBA Status with a reserved action",
                    run_status(nvme, 0, 1, actions[i], LIST_LEN),
                    NVME_SC_INVALID_FIELD);
    }
    for (size_t i = 0; i < 2; i++) {
        uint8_t action = i == 0 ? LBA_ACTION_SCAN : LBA_ACTION_TRACKED;

        conf_status(conf, "SLBA at the end of the namespace",
                    run_status(nvme, end, 0, action, LIST_LEN),
                    NVME_SC_LBA_RANGE);
        conf_status(conf, "RL beyond the end of the namespace",
                    run_status(nvme, end - 1, 2, action, LIST_LEN),
                    NVME_SC_LBA_RANGE);
        conf_status(conf, "the greatest SLBA",
                    run_status(nvme, UINT64_MAX, 0, action, LIST_LEN),
                    NVME_SC_LBA_RANGE);
        conf_status(conf, "SLBA and RL that overflow",
                    run_status(nvme, UINT64_MAX, 0xffff, action, LIST_LEN),
                    NVME_SC_LBA_RANGE);
    }
}

WITH_LBA(wrong_nsid)
{
    static const uint32_t nsids[] = {0, NVME_NSID_ALL, NVME_NSID_ALL - 1};
    struct nvme_sqe sqe = status_sqe(nvme, 0, 1, LBA_ACTION_TRACKED, LIST_LEN);

    for (size_t i = 0; i < ARRAY_LEN(nsids); i++) {
        sqe.nsid = nsids[i];
        conf_status(conf, "Get LBA Status of no namespace",
                    nvme_run(nvme, nvme->admin, &sqe, LIST_LEN, NULL),
                    NVME_SC_INVALID_NS);
    }
    sqe.nsid = nvme_inactive_nsid(nvme);
    if (sqe.nsid != 0) {
        conf_status(conf, "Get LBA Status of an inactive namespace",
                    nvme_run(nvme, nvme->admin, &sqe, LIST_LEN, NULL),
                    NVME_SC_INVALID_FIELD);
    }
}

WITH_LBA(mndw)
{
    static const struct {
        uint32_t bytes, descriptors;
        uint8_t cmpc;
    } rows[] = {{4, 0, 0},
                {8, 0, LBA_CMPC_MORE},
                {20, 0, LBA_CMPC_MORE},
                {24, 1, LBA_CMPC_MORE},
                {40, 2, LBA_CMPC_COMPLETE},
                {64, 2, LBA_CMPC_COMPLETE}};

    read_badly(nvme, 5, 1);
    read_badly(nvme, 7, 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        conf_status(conf, "Get LBA Status, action 11h",
                    run_status(nvme, 0, 0, LBA_ACTION_TRACKED, rows[i].bytes),
                    NVME_SC_SUCCESS);
        conf_equal(conf, "NLSD", get_le32(nvme->admin->mem),
                   rows[i].descriptors);
        conf_check(conf,
                   rows[i].bytes < LBA_STATUS_HEADER_LEN ||
                       nvme->admin->mem[LBA_STATUS_CMPC] == rows[i].cmpc,
                   "CMPC is %u with %u bytes",
                   nvme->admin->mem[LBA_STATUS_CMPC], rows[i].bytes);
    }
    conf_break_medium(conf, 5, 1);
    conf_status(conf, "Get LBA Status, action 10h, without room",
                run_status(nvme, 0, 16, LBA_ACTION_SCAN, 8), NVME_SC_SUCCESS);
    conf_equal(conf, "NLSD", get_le32(nvme->admin->mem), 0);
    conf_equal(conf, "CMPC", nvme->admin->mem[LBA_STATUS_CMPC], LBA_CMPC_MORE);
}

WITH_LBA(tracked)
{
    read_badly(nvme, 100, 1);
    read_badly(nvme, 40, 8);
    expect_tracked(nvme, 2);
    expect_descriptor(nvme, 0, 40, 8, 0);
    expect_descriptor(nvme, 1, 100, 1, LBA_UNREADABLE);
    conf_status(conf, "Get LBA Status of a range",
                run_status(nvme, 44, 56, LBA_ACTION_TRACKED, LIST_LEN),
                NVME_SC_SUCCESS);
    conf_equal(conf, "tracked ranges in 44 to 99", check_list(nvme, 44, 100),
               1);
    expect_descriptor(nvme, 0, 44, 4, 0);
}

WITH_LBA(scan)
{
    conf_needs_block(conf);
    conf_break_medium(conf, 1234, 3);
    expect_tracked(nvme, 0); /* action 11h does not look for blocks */
    conf_status(conf, "Get LBA Status, action 10h, of the namespace",
                run_status(nvme, 0, 0, LBA_ACTION_SCAN, LIST_LEN),
                NVME_SC_SUCCESS);
    conf_equal(conf, "ranges that the scan has found",
               check_list(nvme, 0, nvme->size_blocks), 1);
    expect_descriptor(nvme, 0, 1234, 3, LBA_UNREADABLE);
    conf_equal(conf, "CMPC", nvme->admin->mem[LBA_STATUS_CMPC],
               LBA_CMPC_COMPLETE);
    conf_status(conf, "Get LBA Status, action 10h, of the blocks before",
                run_status(nvme, 1000, 234, LBA_ACTION_SCAN, LIST_LEN),
                NVME_SC_SUCCESS);
    conf_equal(conf, "ranges before", check_list(nvme, 1000, 1234), 0);
    conf_break_medium(conf, 0, 0);
}

/* A larger read says only that some of its blocks cannot be read. */
WITH_LBA(narrows)
{
    read_badly(nvme, 64, 8);
    conf_break_medium(conf, 66, 1);
    conf_status(conf, "Get LBA Status, action 10h",
                run_status(nvme, 0, 128, LBA_ACTION_SCAN, LIST_LEN),
                NVME_SC_SUCCESS);
    conf_equal(conf, "ranges", check_list(nvme, 0, 128), 1);
    expect_descriptor(nvme, 0, 66, 1, LBA_UNREADABLE);
    expect_tracked(nvme, 1);
    expect_descriptor(nvme, 0, 66, 1, LBA_UNREADABLE);
    conf_break_medium(conf, 0, 0);
}

/* A scan reads the medium, even what the write cache holds. */
WITH_LBA(past_cache)
{
    conf_needs_block(conf);
    nvme_write(nvme, 16, DATA_BLOCKS, 1);
    conf_break_medium(conf, 18, 1);
    conf_status(conf, "Get LBA Status, action 10h",
                run_status(nvme, 16, DATA_BLOCKS, LBA_ACTION_SCAN, LIST_LEN),
                NVME_SC_SUCCESS);
    conf_equal(conf, "ranges", check_list(nvme, 16, 16 + DATA_BLOCKS), 1);
    conf_break_medium(conf, 0, 0);
}

/* ---- What ends it that a block is tracked. */

WITH_LBA(rewritten)
{
    struct nvme_sqe trim = {
        .opcode = NVM_DATASET_MANAGEMENT, .nsid = nvme->nsid, .cdw11 = 4};

    read_badly(nvme, 16, 8);
    nvme_write(nvme, 18, 2, 1);
    expect_tracked(nvme, 2);
    expect_descriptor(nvme, 0, 16, 2, 0);
    expect_descriptor(nvme, 1, 20, 4, 0);
    conf_status(conf, "Write Zeroes", nvme_rw(nvme, NVM_WRITE_ZEROES, 16, 1),
                NVME_SC_SUCCESS);
    memset(nvme->io->mem, 0, 16);
    put_le32(nvme->io->mem + 4, 3);
    put_le64(nvme->io->mem + 8, 20);
    conf_status(conf, "Dataset Management, deallocate",
                nvme_run(nvme, nvme->io, &trim, 16, NULL), NVME_SC_SUCCESS);
    expect_tracked(nvme, 2);
    expect_descriptor(nvme, 0, 17, 1, 0);
    expect_descriptor(nvme, 1, 23, 1, 0);
    nvme_write(nvme, 16, 8, 2);
    expect_tracked(nvme, 0);
}

WITH_LBA(copied)
{
    struct nvme_sqe copy = {
        .opcode = NVM_COPY, .nsid = nvme->nsid, .cdw10 = 16};

    if (!(get_le16(nvme->ctrl + ID_CTRL_ONCS) & ONCS_COPY)) {
        conf_not_applicable(conf, "ONCS bit 8 is 0");
    }
    read_badly(nvme, 16, 8);
    memset(nvme->io->mem, 0, 32);
    put_le64(nvme->io->mem + 8, 200);
    put_le16(nvme->io->mem + 16, 3);
    conf_status(conf, "Copy to tracked blocks",
                nvme_run(nvme, nvme->io, &copy, 32, NULL), NVME_SC_SUCCESS);
    expect_tracked(nvme, 1);
    expect_descriptor(nvme, 0, 20, 4, 0);
    put_le64(nvme->io->mem + 8, 300);
    conf_break_medium(conf, 300, 4);
    conf_status(conf, "Copy from blocks that cannot be read",
                nvme_run(nvme, nvme->io, &copy, 32, NULL), NVME_SC_READ_ERROR);
    conf_break_medium(conf, 0, 0);
    expect_tracked(nvme, 2);
    expect_descriptor(nvme, 1, 300, 4, 0);
}

WITH_LBA(formatted)
{
    struct nvme_sqe format = {.opcode = ADMIN_FORMAT_NVM, .nsid = nvme->nsid};

    if (!(get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_FORMAT)) {
        conf_not_applicable(conf, "OACS bit 1 is 0");
    }
    read_badly(nvme, 16, 8);
    conf_status(conf, "Format NVM",
                nvme_run(nvme, nvme->admin, &format, 0, NULL), NVME_SC_SUCCESS);
    expect_tracked(nvme, 0);
}

/* ---- The log page. */

static const uint8_t *read_page(struct nvme *nvme, uint32_t flags)
{
    conf_status(nvme->conf, "Get Log Page 0Eh",
                nvme_get_log(nvme, flags | LOG_LBA_STATUS, 0, LOG_LEN),
                NVME_SC_SUCCESS);
    return nvme->admin->mem;
}

WITH_LBA(page)
{
    const uint8_t *mem = read_page(nvme, 0);
    uint16_t generation = get_le16(mem + LBA_LOG_LSGC);

    read_badly(nvme, 5, 1);
    read_badly(nvme, 16, 8);
    mem = read_page(nvme, 0);
    conf_equal(conf, "LSLPLEN", get_le32(mem + LBA_LOG_LSLPLEN),
               LBA_LOG_HEADER_LEN + LBA_ELEMENT_LEN + 2 * LBA_RANGE_LEN);
    conf_equal(conf, "NLSLNE", get_le32(mem + LBA_LOG_NLSLNE), 1);
    conf_equal(conf, "ESTULB", get_le32(mem + LBA_LOG_ESTULB), 9);
    conf_check(conf, get_le16(mem + LBA_LOG_LSGC) != generation,
               "LSGC has not changed");
    mem += LBA_LOG_HEADER_LEN;
    conf_equal(conf, "NEID", get_le32(mem + LBA_ELEMENT_NEID), nvme->nsid);
    conf_equal(conf, "NLRD", get_le32(mem + LBA_ELEMENT_NLRD), 2);
    conf_equal(conf, "RATYPE", mem[LBA_ELEMENT_RATYPE], LBA_ACTION_TRACKED);
    mem += LBA_ELEMENT_LEN + LBA_RANGE_LEN;
    conf_equal(conf, "RSLBA", get_le64(mem + LBA_RANGE_RSLBA), 16);
    conf_equal(conf, "RNLB", get_le32(mem + LBA_RANGE_RNLB), 7);
    generation = get_le16(nvme->admin->mem + LBA_LOG_LSGC);
    nvme_write(nvme, 16, 8, 1);
    mem = read_page(nvme, 0);
    conf_equal(conf, "ESTULB", get_le32(mem + LBA_LOG_ESTULB), 1);
    conf_equal(conf, "LSGC after a Write", get_le16(mem + LBA_LOG_LSGC),
               generation);
}

WITH_LBA(page_stays)
{
    uint8_t before[LBA_LOG_HEADER_LEN + LBA_ELEMENT_LEN + LBA_RANGE_LEN];

    read_badly(nvme, 5, 1);
    memcpy(before, read_page(nvme, LOG_RAE), sizeof(before));
    read_badly(nvme, 100, 1);
    nvme_write(nvme, 5, 1, 1);
    conf_check(conf,
               memcmp(before, read_page(nvme, LOG_RAE), sizeof(before)) == 0,
               "the page has changed while events are retained");
    conf_equal(
        conf, "RSLBA when events are not retained",
        get_le64(read_page(nvme, 0) + LBA_LOG_HEADER_LEN + LBA_ELEMENT_LEN),
        100);
    read_badly(nvme, 50, 1);
    conf_equal(conf, "RSLBA in the next page",
               get_le64(read_page(nvme, LOG_RAE) + LBA_LOG_HEADER_LEN +
                        LBA_ELEMENT_LEN),
               50);
    conf_status(conf, "Get Log Page beyond LSLPLEN",
                nvme_get_log(nvme, LOG_LBA_STATUS, 128, 16),
                NVME_SC_INVALID_FIELD);
}

/* ---- The feature and the event. */

WITH_LBA(attributes)
{
    uint32_t value, more;
    uint16_t lsipi;

    conf_status(conf, "Get Features 15h",
                nvme_get_feature(nvme, FEATURE_LBA_STATUS, 0, 0, &value),
                NVME_SC_SUCCESS);
    lsipi = (uint16_t)(value >> LBA_ATTRIBUTES_LSIPI);
    conf_equal(conf, "LSIRI, which is LSIPI at first", value & 0xffff, lsipi);
    conf_status(conf, "Set Features 15h",
                nvme_set_feature(nvme, FEATURE_LBA_STATUS, lsipi + 5u),
                NVME_SC_SUCCESS);
    conf_status(conf, "Get Features 15h",
                nvme_get_feature(nvme, FEATURE_LBA_STATUS, 0, 0, &more),
                NVME_SC_SUCCESS);
    conf_equal(conf, "the attributes", more, value + 5);
    conf_status(conf, "Set Features 15h, LSIRI below LSIPI",
                nvme_set_feature(nvme, FEATURE_LBA_STATUS, 0xffff0000),
                NVME_SC_SUCCESS);
    conf_status(conf, "Get Features 15h",
                nvme_get_feature(nvme, FEATURE_LBA_STATUS, 0, 0, &more),
                NVME_SC_SUCCESS);
    conf_equal(conf, "the attributes, with the closest LSIRI", more, value);
}

static void request_event(struct nvme *nvme, uint16_t cid)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_ASYNC_EVENT_REQUEST, .cid = cid};

    rc_send_capsule(nvme->admin, &sqe, NULL, NULL, 0);
}

static void set_up_events(struct nvme *nvme, uint16_t lsiri)
{
    conf_status(
        nvme->conf, "Set Features 0Bh",
        nvme_set_feature(nvme, FEATURE_ASYNC_EVENT_CONFIG, OAES_LBA_STATUS),
        NVME_SC_SUCCESS);
    conf_status(nvme->conf, "Set Features 15h",
                nvme_set_feature(nvme, FEATURE_LBA_STATUS, lsiri),
                NVME_SC_SUCCESS);
    request_event(nvme, EVENT_CID);
}

WITH_LBA(alert)
{
    struct nvme_cqe cqe;

    set_up_events(nvme, 20);
    read_badly(nvme, 5, 1);
    conf_pass(conf, 15 * UNIT_US);
    (void)read_page(nvme, 0); /* The interval begins again. */
    conf_check(conf, !nvme_take_other(nvme, EVENT_CID, 18 * UNIT_US, &cqe),
               "the event came before the report interval had passed");
    conf_check(conf, nvme_take_other(nvme, EVENT_CID, 5 * UNIT_US, &cqe),
               "no event came after the report interval");
    conf_equal(conf, "the event", cqe.dw0, LBA_EVENT);
    request_event(nvme, EVENT_CID + 1);
    (void)read_page(nvme, 0);
    conf_check(conf, !nvme_take_other(nvme, EVENT_CID + 1, 30 * UNIT_US, &cqe),
               "an event came without anything new");
    read_badly(nvme, 9, 1);
    conf_check(conf, nvme_take_other(nvme, EVENT_CID + 1, 5 * UNIT_US, &cqe),
               "no event came for another block");
}

WITH_LBA(no_alert)
{
    struct nvme_cqe cqe;

    read_badly(nvme, 5, 1);
    request_event(nvme, EVENT_CID);
    conf_check(conf, !nvme_take_other(nvme, EVENT_CID, 30 * UNIT_US, &cqe),
               "an event came that feature 0Bh does not enable");
    nvme_write(nvme, 5, 1, 1);
    conf_status(
        conf, "Set Features 0Bh",
        nvme_set_feature(nvme, FEATURE_ASYNC_EVENT_CONFIG, OAES_LBA_STATUS),
        NVME_SC_SUCCESS);
    conf_check(conf, !nvme_take_other(nvme, EVENT_CID, 30 * UNIT_US, &cqe),
               "an event came without tracked blocks");
}

/* ---- Others. */

WITH_LBA(self_test)
{
    struct nvme_sqe test = {
        .opcode = ADMIN_DEVICE_SELF_TEST, .nsid = nvme->nsid, .cdw10 = 2};

    if (!(get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_SELF_TEST)) {
        conf_not_applicable(conf, "OACS bit 4 is 0");
    }
    conf_needs_block(conf);
    conf_break_medium(conf, 777, 1);
    conf_status(conf, "Device Self-test, extended",
                nvme_run(nvme, nvme->admin, &test, 0, NULL), NVME_SC_SUCCESS);
    for (unsigned int i = 0; i < 100 && get_tracked(nvme) == 0; i++) {
        conf_pass(conf, UNIT_US);
    }
    expect_tracked(nvme, 1);
    expect_descriptor(nvme, 0, 777, 1, LBA_UNREADABLE);
    conf_break_medium(conf, 0, 0);
}

static void send_scan(struct nvme *nvme, uint16_t cid)
{
    struct nvme_sqe sqe = status_sqe(nvme, 0, 0, LBA_ACTION_SCAN, 64);
    struct sgl sgl = rc_keyed(nvme->admin, 0, 64);

    sqe.cid = cid;
    rc_send_capsule(nvme->admin, &sqe, &sgl, NULL, 0);
}

/* Scans of two hosts, and a Format that does not wait for their end. */
static void scans_pipelined(struct conf *conf)
{
    struct nvme *nvme = open_lba(conf);
    struct nvme *other = nvme_open_host(conf, 1);
    struct nvme_sqe format = {.opcode = ADMIN_FORMAT_NVM, .nsid = nvme->nsid};
    struct nvme_cqe cqe;

    for (uint16_t i = 0; i < SCANS; i++) {
        send_scan(nvme, (uint16_t)(SCAN_CID + i));
        send_scan(other, (uint16_t)(SCAN_CID + i));
    }
    if (get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_FORMAT) {
        conf_status(conf, "Format NVM during scans",
                    nvme_run(nvme, nvme->admin, &format, 0, NULL),
                    NVME_SC_SUCCESS);
    }
    for (uint16_t i = 0; i < 2 * SCANS; i++) {
        conf_check(conf,
                   nvme_take_other(i % 2 ? other : nvme,
                                   (uint16_t)(SCAN_CID + i / 2), 10 * QUIET_US,
                                   &cqe),
                   "a scan got no response");
        conf_check(conf,
                   (cqe.status & NVME_SC_MASK) == NVME_SC_SUCCESS ||
                       (cqe.status & NVME_SC_MASK) ==
                           NVME_SC_FORMAT_IN_PROGRESS,
                   "a scan ended with status %03xh", cqe.status & NVME_SC_MASK);
    }
    nvme_expect_works(nvme);
    nvme_close(other);
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, test)                                        \
    CONF_TEST("lba-status." id, "NVM Command Set 1.0 " clause, purpose, test)

static const struct conf_test tests[] = {
    TEST("claims", "5.8",
         "OACS, OAES, feature 15h, log pages 0Eh and 05h agree", claims_agree),
    TEST("healthy", "4.2.1", "both actions return an ordered list of the range",
         healthy),
    TEST("fields", "4.2.1", "reserved actions and ranges outside are refused",
         wrong_fields),
    TEST("nsid", "4.2.1", "an NSID that is not active is refused", wrong_nsid),
    TEST("mndw", "4.2.1", "MNDW limits the data, and CMPC says so", mndw),
    TEST("tracked", "4.2.1", "blocks that a Read could not read are tracked",
         tracked),
    TEST("scan", "4.2.1", "action 10h finds each block that cannot be read",
         scan),
    TEST("scan-narrows", "4.2.1",
         "a scan finds the blocks that made a longer Read fail", narrows),
    TEST("scan-past-cache", "4.2.1",
         "a scan reads the medium, not the write cache", past_cache),
    TEST("rewritten", "4.2.1",
         "blocks that were written or deallocated are not tracked", rewritten),
    TEST("copied", "4.2.1", "Copy clears its destination and adds its source",
         copied),
    TEST("formatted", "4.2.1", "no block of a formatted namespace is tracked",
         formatted),
    TEST("page", "4.1.4.5", "log page 0Eh names namespaces and ranges", page),
    TEST("page-stays", "4.1.4.5, 5.8",
         "the page does not change while events are retained", page_stays),
    TEST("attributes", "4.1.3.3",
         "LSIPI cannot be changed, and is the least LSIRI", attributes),
    TEST("alert", "4.1.3.3, 5.8",
         "the event comes when LSIRI has passed, once for each change", alert),
    TEST("no-alert", "4.1.3.2, 4.1.3.3",
         "no event comes without feature 0Bh or without tracked blocks",
         no_alert),
    TEST("self-test", "4.2.1", "a self-test adds the block that it has found",
         self_test),
    TEST("pipelined", "4.2.1",
         "scans of two hosts end, and do not hold up a Format",
         scans_pipelined),
};
CONF_TESTS(conf_tests_nvme_lba_status, "nvme", tests);
