/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is easily overlooked: whether data is durable when the drive reports so,
 * whether the blocks beside written ones keep what the medium holds, and the
 * upper half of a range.
 *
 * Spec: NVM Express 1.4 5.21.1.6 (write cache), 6.7 (Dataset Management), 6.8
 * (Flush), 6.15 (Force Unit Access).
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    LBA = 512,
    BLOCKS = 9, /* Not a whole number of pages. */
    FUA = 1 << 30,
    DEALLOCATE = 4,
    RANGE_LEN = 16,
    SETTLE_US = 200000,
};

/* ---- Durable data. */

/* Cut the power at once: data that was reported durable must survive. */
static void expect_durable(struct nvme *nvme, uint32_t version)
{
    struct conf *conf = nvme->conf;

    conf_note(conf, "power is cut");
    conf_power_cut(conf);
    nvme = nvme_open(conf);
    nvme_verify(nvme, LBA, BLOCKS, version);
    nvme_close(nvme);
}

static void fua_durable(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe write = nvme_rw_sqe(nvme, NVM_WRITE, LBA, BLOCKS);

    nvme_write(nvme, LBA, BLOCKS, 1);
    nvme_fill(nvme, LBA, BLOCKS, 2);
    write.cdw12 |= (uint32_t)FUA;
    conf_status(
        conf, "Write with FUA",
        nvme_run(nvme, nvme->io, &write, BLOCKS * nvme->block_bytes, NULL),
        NVME_SC_SUCCESS);
    expect_durable(nvme, 2);
}

static void flush_durable(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe flush = {.opcode = NVM_FLUSH, .nsid = nvme->nsid};

    nvme_write(nvme, LBA, BLOCKS, 3);
    conf_status(conf, "Flush", nvme_run(nvme, nvme->io, &flush, 0, NULL),
                NVME_SC_SUCCESS);
    expect_durable(nvme, 3);
}

static void need_cache(struct nvme *nvme)
{
    if (!(nvme->ctrl[ID_CTRL_VWC] & VWC_PRESENT)) {
        conf_not_applicable(nvme->conf, "the target has no write cache (VWC)");
    }
}

static void cache_off_durable(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);

    need_cache(nvme);
    conf_status(conf, "Set Features (write cache off)",
                nvme_set_feature(nvme, FEATURE_VOLATILE_WRITE_CACHE, 0),
                NVME_SC_SUCCESS);
    nvme_write(nvme, LBA, BLOCKS, 4);
    expect_durable(nvme, 4);
}

/* Data that was in the cache when it was turned off. */
static void cache_emptied_durable(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);

    need_cache(nvme);
    nvme_write(nvme, LBA, BLOCKS, 5);
    conf_status(conf, "Set Features (write cache off)",
                nvme_set_feature(nvme, FEATURE_VOLATILE_WRITE_CACHE, 0),
                NVME_SC_SUCCESS);
    expect_durable(nvme, 5);
}

static void shutdown_durable(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);

    nvme_write(nvme, LBA, BLOCKS, 6);
    conf_status(conf, "Property Set CC (SHN 1)",
                nvmf_set(nvme->admin, PROPERTY_CC, 4,
                         NVMF_CC_ENABLE | 1u << CC_SHN_SHIFT),
                NVME_SC_SUCCESS);
    nvmf_wait_csts(nvme->admin, 3u << CSTS_SHST_SHIFT, 2u << CSTS_SHST_SHIFT);
    expect_durable(nvme, 6);
}

/* ---- VWC agrees with the feature. */

static void cache_told(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    bool is_present = nvme->ctrl[ID_CTRL_VWC] & VWC_PRESENT;
    uint32_t value;
    uint16_t status =
        nvme_get_feature(nvme, FEATURE_VOLATILE_WRITE_CACHE, 0, 0, &value);

    conf_check(conf, is_present == (status == NVME_SC_SUCCESS),
               "VWC is %u, and Get Features (write cache) has status %03xh",
               is_present, status);
    nvme_close(nvme);
}

/* ---- Neighbours on the medium, not in the cache. */

static void neighbours_on_medium(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe write = nvme_rw_sqe(nvme, NVM_WRITE, LBA, 2 * BLOCKS);

    nvme_fill(nvme, LBA, 2 * BLOCKS, 8);
    write.cdw12 |= (uint32_t)FUA;
    conf_status(
        conf, "Write with FUA",
        nvme_run(nvme, nvme->io, &write, 2 * BLOCKS * nvme->block_bytes, NULL),
        NVME_SC_SUCCESS);
    for (uint64_t lba = LBA + 1; lba < LBA + 2 * BLOCKS; lba += 3) {
        nvme_write(nvme, lba, 1, 9);
        nvme_verify(nvme, lba - 1, 1, 8);
        nvme_verify(nvme, lba, 1, 9);
        nvme_verify(nvme, lba + 1, 1, 8);
    }
    nvme_close(nvme);
}

/* ---- Dataset Management. */

static void dsm_high(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe dsm = {.opcode = NVM_DATASET_MANAGEMENT,
                           .nsid = nvme->nsid,
                           .cdw11 = DEALLOCATE};
    uint16_t status;

    if (!(get_le16(nvme->ctrl + ID_CTRL_ONCS) & ONCS_DATASET_MANAGEMENT)) {
        conf_not_applicable(conf, "ONCS bit 2 is 0");
    }
    if (nvme->size_blocks > UINT64_C(1) << 32) {
        conf_not_applicable(conf, "NSZE is above 2^32 blocks");
    }
    nvme_write(nvme, LBA, BLOCKS, 7);
    memset(nvme->io->mem, 0, RANGE_LEN);
    put_le32(nvme->io->mem + 4, BLOCKS);
    put_le64(nvme->io->mem + 8, (UINT64_C(1) << 32) + LBA);
    status = nvme_run(nvme, nvme->io, &dsm, RANGE_LEN, NULL);
    conf_status(conf, "a range at block 2^32", status, NVME_SC_LBA_RANGE);
    nvme_verify(nvme, LBA, BLOCKS, 7);
    nvme_close(nvme);
}

static const struct conf_test tests[] = {
    CONF_TEST("durable.fua", "NVMe 1.4 6.15",
              "a Write with FUA survives a power cut", fua_durable,
              .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("durable.flush", "NVMe 1.4 6.8",
              "a Write survives a power cut after a Flush", flush_durable,
              .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("durable.cache-off", "NVMe 1.4 5.21.1.6",
              "a Write with the cache off survives a power cut",
              cache_off_durable, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("durable.cache-emptied", "NVMe 1.4 5.21.1.6",
              "a Write survives a power cut after the cache was turned off",
              cache_emptied_durable, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("durable.shutdown", "NVMe 1.4 7.6.2",
              "a Write survives a power cut after a shutdown", shutdown_durable,
              .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("identify.cache", "NVMe 1.4 5.15.2.2, 5.21.1.6",
              "the write cache feature exists if VWC has a cache", cache_told),
    CONF_TEST("io.neighbours-medium", "NVMe 1.4 6.15",
              "the blocks beside written ones keep what the medium holds",
              neighbours_on_medium),
    CONF_TEST(
        "io.dsm-high", "NVMe 1.4 6.7",
        "a range beyond 2^32 is refused with LBA Out of Range, and data stays",
        dsm_high),
};

CONF_TESTS(conf_tests_nvme_more, "nvme", tests);
