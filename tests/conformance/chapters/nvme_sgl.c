/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors: types that a command does not allow, and data in the capsule at
 * its limits. The descriptors that fabrics use, with keys and in capsules, are
 * in nvmf_data.c.
 *
 * Spec: NVM Express 1.4 4.4; NVMe over Fabrics 1.1 2.3.
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    AT = 16,
    UNIT = 16, /* The unit of IOCCSZ. */
    PATTERN = 0x6c,
};

static void expect_descriptor_refused(struct conf *conf, uint8_t type)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = nvme_right(nvme, NVM_READ);
    uint8_t *capsule = nvme_capsule_of(nvme->io, &sqe, nvme->block_bytes);

    memset(nvme->io->mem, PATTERN, nvme->block_bytes);
    capsule[SQE_SGL1 + SGL_TYPE] = type;
    conf_status(conf, "a Read with a descriptor type that it does not allow",
                nvme_run_capsule(nvme, nvme->io, capsule, NVME_SQE_LEN, NULL),
                NVME_SC_SGL_INVALID_TYPE);
    conf_equal(conf, "a byte that must not change", nvme->io->mem[0], PATTERN);
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

#define DESCRIPTORS(X)                                                         \
    X(0x10, "sgl.bit-bucket", "a bit bucket descriptor")                       \
    X(0x20, "sgl.segment", "a segment descriptor")                             \
    X(0x30, "sgl.last-segment", "a last segment descriptor")                   \
    X(0x60, "sgl.type-6", "a descriptor of a reserved type")                   \
    X(0xf0, "sgl.vendor", "a vendor-specific descriptor")
#define DESCRIPTOR_FUNCTION(type, id, purpose)                                 \
    static void descriptor_##type(struct conf *conf)                           \
    {                                                                          \
        expect_descriptor_refused(conf, type);                                 \
    }
DESCRIPTORS(DESCRIPTOR_FUNCTION)

/* ---- Data in the capsule. */

struct in_capsule {
    struct nvme *nvme;
    uint32_t max_bytes; /* The bytes after the SQE. */
    uint8_t *capsule;
};

static struct in_capsule in_capsule(struct conf *conf, uint8_t opcode)
{
    struct in_capsule in = {.nvme = nvme_open(conf)};
    struct nvme_sqe sqe = nvme_right(in.nvme, opcode);

    in.max_bytes =
        get_le32(in.nvme->ctrl + ID_CTRL_IOCCSZ) * UNIT - NVME_SQE_LEN;
    in.max_bytes = MIN(in.max_bytes, NVME_CAPSULE_MAX - NVME_SQE_LEN);
    if (!(get_le32(in.nvme->ctrl + ID_CTRL_SGLS) & SGLS_IN_CAPSULE) ||
        in.max_bytes < 2 * in.nvme->block_bytes) {
        conf_not_applicable(
            conf, "no data fits in a capsule (SGLS bit 20, IOCCSZ): %u bytes",
            in.max_bytes);
    }
    in.capsule = nvme_capsule_of(in.nvme->io, &sqe, 0);
    return in;
}

static uint16_t in_run(struct in_capsule *in, uint64_t offset, uint32_t len,
                       uint32_t sent)
{
    struct sgl sgl = {SGL_IN_CAPSULE, offset, len, 0};

    sgl_emit(in->capsule + SQE_SGL1, &sgl);
    return nvme_run_capsule(in->nvme, in->nvme->io, in->capsule,
                            NVME_SQE_LEN + sent, NULL);
}

static void in_write(struct conf *conf, uint32_t blocks, uint32_t offset)
{
    struct in_capsule in = in_capsule(conf, NVM_WRITE);
    uint32_t unit = in.nvme->block_bytes;
    uint32_t most = (in.max_bytes - offset) / unit;
    uint32_t count = MIN(blocks, most);

    put_le16(in.capsule + SQE_CDW12, (uint16_t)(count - 1));
    conf_fill(in.capsule + NVME_SQE_LEN + offset, AT * unit / CONF_BLOCK,
              count * unit / CONF_BLOCK, 11);
    conf_status(conf, "Write with data in the capsule",
                in_run(&in, offset, count * unit, offset + count * unit),
                NVME_SC_SUCCESS);
    nvme_verify(in.nvme, AT, count, 11);
    nvme_close(in.nvme);
}

static void in_odd_offset(struct conf *conf)
{
    in_write(conf, 2, 4);
}

static void in_refused(struct conf *conf, uint64_t offset, uint32_t len,
                       uint32_t sent, uint16_t expected)
{
    struct in_capsule in = in_capsule(conf, NVM_WRITE);

    nvme_write(in.nvme, AT, 1, 12);
    conf_status(conf, "Write with data beyond the capsule",
                in_run(&in, offset, len, sent), expected);
    nvme_verify(in.nvme, AT, 1, 12);
    nvme_expect_works(in.nvme);
    nvme_close(in.nvme);
}

static void in_longest(struct conf *conf)
{
    in_refused(conf, 0, UINT32_MAX, CONF_BLOCK, NVME_SC_SGL_INVALID_LENGTH);
}

static void in_read(struct conf *conf)
{
    struct in_capsule in = in_capsule(conf, NVM_READ);
    uint16_t status =
        in_run(&in, 0, in.nvme->block_bytes, in.nvme->block_bytes);

    conf_check(conf, status != NVME_SC_SUCCESS,
               "a Read into the capsule was accepted");
    nvme_expect_works(in.nvme);
    nvme_close(in.nvme);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST(id, "NVMe 1.4 " clause, purpose, __VA_ARGS__)
#define DESCRIPTOR_TEST(type, id, purpose)                                     \
    TEST(id, "4.4; NVMe-oF 1.1 2.3",                                           \
         purpose " is refused with Descriptor Type Invalid",                   \
         descriptor_##type, .is_malformed = true),

static const struct conf_test tests[] = {
    DESCRIPTORS(DESCRIPTOR_TEST) /* */
    TEST("capsule.odd-offset", "4.4; NVMe-oF 1.1 2.3",
         "data at offset 4 in the capsule is accepted", in_odd_offset),
    TEST("capsule.longest", "4.4; NVMe-oF 1.1 2.3",
         "a length of all ones is refused with Length Invalid", in_longest,
         .is_malformed = true),
    TEST("capsule.read", "4.4; NVMe-oF 1.1 2.3",
         "a Read cannot put data into a capsule", in_read,
         .is_malformed = true),
};
CONF_TESTS(conf_tests_nvme_sgl, "nvme", tests);
