/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Formats with 8 bytes of metadata, transferred as extended LBAs, and their
 * protection information.  For each format and each type, the tests create a
 * namespace of their own in the capacity that UNVMCAP reports as free, and
 * delete it again.
 *
 * Spec: NVM Express 1.4 5.15.2.1, 5.20, 5.23, 6, 8.2, 8.3; the sections of NVM
 * Command Set 1.0 are 4.1.5.1, 3.2 and 5.2.
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    PRACT = 1 << 29, /* of dword 12 */
    CHECK_GUARD = 1 << 28,
    CHECK_APP = 1 << 27,
    CHECK_REF = 1 << 26,
    DEAC = 1 << 25,
    COPY_READ_PRACT = 1 << 15,
    COPY_READ_GUARD = 1 << 14,

    PI_LEN = 8,
    PI_GUARD = 0, /* big-endian */
    PI_APP = 2,
    PI_REF = 4,

    FLBAS_EXTENDED = 0x10,
    FORMAT_TYPE_SHIFT = 5, /* of dword 10 of Format NVM */
    LBAF_LEN = 4,
    LBAF_LBADS = 2,
    FORMATS_MAX = 16,
    TYPES = 3,

    AT = 8, /* the first block that tests use */
    BLOCKS = 6,
    BAD = 3, /* index of the block that is made wrong, from AT */
    APP_TAG = 0x5a17,
};
#define ALL_OF_APP_TAG (UINT32_C(0xffff) << 16)

/* A namespace with metadata. */
struct protected_ns {
    struct conf *conf;
    struct nvme *nvme;
    uint32_t block_bytes; /* without metadata */
    uint8_t format;
    uint8_t type; /* 0: no protection information */
    uint8_t model[BLOCKS * (4096 + PI_LEN)];
};

static uint32_t block_stride(const struct protected_ns *ns)
{
    return ns->block_bytes + PI_LEN;
}

/* ---- Making the namespace. */

static uint16_t format_metadata(const struct nvme *nvme, unsigned int format)
{
    return get_le16(nvme->ns + ID_NS_LBAF0 + (size_t)format * LBAF_LEN);
}

static uint8_t format_shift(const struct nvme *nvme, unsigned int format)
{
    return nvme->ns[ID_NS_LBAF0 + format * LBAF_LEN + LBAF_LBADS];
}

/* Whether the tests can use a format. */
static bool is_usable(const struct nvme *nvme, unsigned int format)
{
    uint8_t shift = format_shift(nvme, format);

    return format_metadata(nvme, format) == PI_LEN && shift >= 9 && shift <= 12;
}

static bool has_type(const struct nvme *nvme, unsigned int type)
{
    return nvme->ns[ID_NS_PROTECTION_CAPABILITIES] >> (type - 1) & 1;
}

static unsigned int count_formats(const struct nvme *nvme)
{
    return MIN((unsigned int)nvme->ns[ID_NS_NLBAF], FORMATS_MAX - 1u) + 1;
}

static uint64_t free_bytes(struct nvme *nvme)
{
    conf_status(nvme->conf, "Identify Controller",
                nvme_identify(nvme, CNS_CONTROLLER, 0), NVME_SC_SUCCESS);
    return get_le64(nvme->admin->mem + ID_CTRL_UNVMCAP);
}

static uint64_t granule_bytes(struct nvme *nvme)
{
    conf_status(nvme->conf, "Identify, namespace granularity",
                nvme_identify(nvme, CNS_NS_GRANULARITY, 0), NVME_SC_SUCCESS);
    return get_le64(nvme->admin->mem + ID_GRANULARITY_SIZE);
}

static struct nvme *open_protected(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    unsigned int usable = 0;

    for (unsigned int i = 0; i < count_formats(nvme); i++) {
        usable += is_usable(nvme, i);
    }
    if (usable == 0 || !(nvme->ns[ID_NS_METADATA_CAPABILITIES] & MC_EXTENDED)) {
        conf_not_applicable(conf,
                            "no LBA format has 8 bytes of metadata (MS) in "
                            "extended LBAs (MC is %02xh)",
                            nvme->ns[ID_NS_METADATA_CAPABILITIES]);
    }
    if (!(get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_NS_MANAGEMENT) ||
        free_bytes(nvme) < granule_bytes(nvme)) {
        conf_not_applicable(conf, "there is no namespace management (OACS bit "
                                  "3), or UNVMCAP has no room");
    }
    return nvme;
}

static void make_ns(struct protected_ns *ns)
{
    struct nvme *nvme = ns->nvme;
    struct nvme_sqe create = {.opcode = ADMIN_NS_MANAGEMENT};
    struct nvme_sqe attach = {.opcode = ADMIN_NS_ATTACHMENT};
    uint64_t blocks = granule_bytes(nvme) / ns->block_bytes;
    uint8_t *mem = nvme->admin->mem;
    struct nvme_cqe cqe;

    memset(mem, 0, NVME_IDENTIFY_LEN);
    put_le64(mem + ID_NS_NSZE, blocks);
    put_le64(mem + ID_NS_NCAP, blocks);
    mem[ID_NS_FLBAS] = ns->format | FLBAS_EXTENDED;
    mem[ID_NS_DPS] = ns->type;
    mem[ID_NS_NMIC] = NMIC_SHARED;
    conf_status(ns->conf, "Namespace Management, create",
                nvme_run(nvme, nvme->admin, &create, NVME_IDENTIFY_LEN, &cqe),
                NVME_SC_SUCCESS);
    nvme->nsid = attach.nsid = cqe.dw0;
    nvme->block_bytes = ns->block_bytes;
    memset(mem, 0, NVME_IDENTIFY_LEN);
    put_le16(mem + CTRL_LIST_COUNT, 1);
    put_le16(mem + CTRL_LIST_FIRST, nvme->admin->config.cntlid);
    conf_status(ns->conf, "Namespace Attachment, attach",
                nvme_run(nvme, nvme->admin, &attach, NVME_IDENTIFY_LEN, NULL),
                NVME_SC_SUCCESS);
}

static void delete_ns(struct protected_ns *ns)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_NS_MANAGEMENT, .nsid = ns->nvme->nsid, .cdw10 = 1};

    conf_status(ns->conf, "Namespace Management, delete",
                nvme_run(ns->nvme, ns->nvme->admin, &sqe, 0, NULL),
                NVME_SC_SUCCESS);
}

static void run_in_format(struct conf *conf, struct nvme *nvme, uint8_t format,
                          uint8_t type, void (*run)(struct protected_ns *ns))
{
    struct protected_ns *ns = conf_alloc(conf, sizeof(*ns));

    *ns =
        (struct protected_ns){.conf = conf,
                              .nvme = nvme,
                              .format = format,
                              .type = type,
                              .block_bytes = 1u << format_shift(nvme, format)};
    conf_note(conf, "format %u, type %u", format, type);
    make_ns(ns);
    run(ns);
    delete_ns(ns);
}

/* Run a test in a namespace of each format, and of each of these types. */
static void in_formats(struct conf *conf, uint8_t first, uint8_t last,
                       void (*run)(struct protected_ns *ns))
{
    struct nvme *nvme = open_protected(conf);
    unsigned int count = 0;

    for (unsigned int format = 0; format < count_formats(nvme); format++) {
        for (uint8_t type = first; type <= last; type++) {
            if (is_usable(nvme, format) &&
                (type == 0 || has_type(nvme, type))) {
                run_in_format(conf, nvme, (uint8_t)format, type, run);
                count++;
            }
        }
    }
    if (count == 0) {
        conf_not_applicable(conf,
                            "no type of protection information from %u "
                            "to %u (DPC is %02xh)",
                            first, last,
                            nvme->ns[ID_NS_PROTECTION_CAPABILITIES]);
    }
    nvme_close(nvme);
}

#define IN_FORMATS(name, first_type, last_type)                                \
    static void name##_in(struct protected_ns *ns);                            \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        in_formats(conf, first_type, last_type, name##_in);                    \
    }                                                                          \
    static void name##_in(struct protected_ns *ns)

/* ---- Commands. */

static uint8_t *data_of(const struct protected_ns *ns)
{
    return ns->nvme->io->mem;
}

/* Run a command, with any tags, on `blocks` from `lba` on. */
static uint16_t run_tagged(struct protected_ns *ns, uint8_t opcode,
                           uint64_t lba, uint32_t blocks, uint32_t flags,
                           uint32_t ref_tag, uint32_t app_tags)
{
    struct nvme_sqe sqe = nvme_rw_sqe(ns->nvme, opcode, lba, blocks);
    bool has_data =
        opcode == NVM_READ || opcode == NVM_WRITE || opcode == NVM_COMPARE;
    bool drops = ns->type != 0 && (flags & PRACT);
    uint32_t len = blocks * (drops ? ns->block_bytes : block_stride(ns));

    sqe.cdw12 |= flags;
    sqe.cdw14 = ref_tag;
    sqe.cdw15 = app_tags;
    return nvme_run(ns->nvme, ns->nvme->io, &sqe, has_data ? len : 0, NULL);
}

/* Run a command with the tags that the model's blocks have. */
static uint16_t run_on_model(struct protected_ns *ns, uint8_t opcode,
                             uint32_t flags)
{
    return run_tagged(ns, opcode, AT, BLOCKS, flags, AT,
                      ALL_OF_APP_TAG | APP_TAG);
}

/* ---- The model: blocks with correct protection information. */

static uint8_t *block_of(struct protected_ns *ns, uint32_t i)
{
    return ns->model + (size_t)i * block_stride(ns);
}

static uint8_t *pi_of(struct protected_ns *ns, uint32_t i)
{
    return block_of(ns, i) + ns->block_bytes;
}

/* CRC with the polynomial 8BB7h, bit by bit. */
static uint16_t guard_of(const uint8_t *data, uint32_t len)
{
    uint32_t crc = 0;

    for (uint32_t i = 0; i < len; i++) {
        crc ^= (uint32_t)data[i] << 8;
        for (unsigned int bit = 0; bit < 8; bit++) {
            crc = crc << 1 ^ (crc & 0x8000 ? 0x18bb7u : 0);
        }
    }
    return (uint16_t)crc;
}

static uint32_t ref_tag_of(const struct protected_ns *ns, uint32_t first,
                           uint32_t i)
{
    return ns->type == 3 ? first : first + i;
}

static void set_pi(struct protected_ns *ns, uint32_t i, uint16_t app_tag,
                   uint32_t ref_tag)
{
    put_be16(pi_of(ns, i) + PI_GUARD,
             guard_of(block_of(ns, i), ns->block_bytes));
    put_be16(pi_of(ns, i) + PI_APP, app_tag);
    put_be32(pi_of(ns, i) + PI_REF, ref_tag);
}

static void fill_model(struct protected_ns *ns, uint32_t version)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        conf_fill(block_of(ns, i), (AT + i) * (ns->block_bytes / CONF_BLOCK),
                  ns->block_bytes / CONF_BLOCK, version);
        set_pi(ns, i, APP_TAG, ref_tag_of(ns, AT, i));
    }
}

/* Copy the model to the host's memory, as it is transferred. */
static void put_model(struct protected_ns *ns, uint32_t step)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        memcpy(data_of(ns) + (size_t)i * step, block_of(ns, i), step);
    }
}

static void write_model(struct protected_ns *ns, uint32_t flags)
{
    bool drops = ns->type != 0 && (flags & PRACT);

    put_model(ns, drops ? ns->block_bytes : block_stride(ns));
    conf_status(ns->conf, "Write", run_on_model(ns, NVM_WRITE, flags),
                NVME_SC_SUCCESS);
}

/* Read, and compare data and metadata with the model. */
static void expect_model(struct protected_ns *ns, uint32_t flags)
{
    memset(data_of(ns), 0xa5, BLOCKS * (size_t)block_stride(ns));
    conf_status(ns->conf, "Read", run_on_model(ns, NVM_READ, flags),
                NVME_SC_SUCCESS);
    conf_same(ns->conf, "data and metadata", data_of(ns), ns->model,
              BLOCKS * (size_t)block_stride(ns));
}

/* Read without metadata. */
static void expect_data(struct protected_ns *ns, uint32_t flags)
{
    memset(data_of(ns), 0xa5, BLOCKS * (size_t)block_stride(ns));
    conf_status(ns->conf, "Read with PRACT",
                run_on_model(ns, NVM_READ, PRACT | flags), NVME_SC_SUCCESS);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        conf_same(ns->conf, "data", data_of(ns) + (size_t)i * ns->block_bytes,
                  block_of(ns, i), ns->block_bytes);
    }
}

static uint32_t all_checks(const struct protected_ns *ns)
{
    return CHECK_GUARD | CHECK_APP | (ns->type == 3 ? 0u : CHECK_REF);
}

/* ---- What Identify says, and formats. */

static void claims_agree(struct conf *conf)
{
    struct nvme *nvme = open_protected(conf);
    uint8_t dpc = nvme->ns[ID_NS_PROTECTION_CAPABILITIES];

    conf_check(conf, nvme->ns[ID_NS_METADATA_CAPABILITIES] >> 2 == 0,
               "a reserved bit of MC is set");
    conf_check(conf, dpc >> 5 == 0, "a reserved bit of DPC is set");
    conf_check(conf, (dpc & 7) == 0 || (dpc & 0x18) != 0,
               "DPC has types, and no place for protection information");
    nvme_close(nvme);
}

IN_FORMATS(identify, 0, 3)
{
    uint8_t *mem = ns->nvme->admin->mem;

    conf_status(ns->conf, "Identify Namespace",
                nvme_identify(ns->nvme, CNS_NAMESPACE, ns->nvme->nsid),
                NVME_SC_SUCCESS);
    conf_equal(ns->conf, "FLBAS", mem[ID_NS_FLBAS],
               ns->format | FLBAS_EXTENDED);
    conf_equal(ns->conf, "DPS, type", mem[ID_NS_DPS] & 7, ns->type);
    conf_equal(ns->conf, "MS of the format",
               get_le16(mem + ID_NS_LBAF0 + (size_t)ns->format * LBAF_LEN),
               PI_LEN);
}

static uint16_t format_ns(struct protected_ns *ns, uint32_t dword10)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_FORMAT_NVM, .nsid = ns->nvme->nsid, .cdw10 = dword10};

    return nvme_run(ns->nvme, ns->nvme->admin, &sqe, 0, NULL);
}

IN_FORMATS(refused_formats, 0, 0)
{
    const struct nvme *nvme = ns->nvme;
    uint8_t mc = nvme->ns[ID_NS_METADATA_CAPABILITIES];

    if (!(mc & 2)) {
        conf_status(ns->conf, "Format with separate metadata, MC bit 1 is 0",
                    format_ns(ns, ns->format), NVME_SC_INVALID_FORMAT);
    }
    for (uint8_t type = 1; type <= 7; type++) {
        if (type > TYPES || !has_type(nvme, type)) {
            conf_status(ns->conf, "Format with a type that DPC does not report",
                        format_ns(ns, ns->format | FLBAS_EXTENDED |
                                          (uint32_t)type << FORMAT_TYPE_SHIFT),
                        NVME_SC_INVALID_FORMAT);
        }
    }
    for (unsigned int i = 0; i < count_formats(nvme); i++) {
        if (format_metadata(nvme, i) == 0 && has_type(nvme, 1)) {
            conf_status(
                ns->conf, "Format with protection without metadata",
                format_ns(ns, i | FLBAS_EXTENDED | 1u << FORMAT_TYPE_SHIFT),
                NVME_SC_INVALID_FORMAT);
        }
    }
}

/* Format changes the type, and what was stored is gone. */
IN_FORMATS(format, 1, 3)
{
    fill_model(ns, 1);
    write_model(ns, all_checks(ns));
    conf_status(ns->conf, "Format",
                format_ns(ns, ns->format | FLBAS_EXTENDED |
                                  (uint32_t)ns->type << FORMAT_TYPE_SHIFT |
                                  1u << 9),
                NVME_SC_SUCCESS);
    memset(ns->model, 0, sizeof(ns->model));
    for (uint32_t i = 0; i < BLOCKS; i++) {
        memset(pi_of(ns, i), 0xff, PI_LEN);
    }
    expect_model(ns, all_checks(ns));
}

/* ---- Insertion, removal and passing through. */

IN_FORMATS(insert, 1, 3)
{
    fill_model(ns, 1);
    write_model(ns, PRACT);
    expect_model(ns, all_checks(ns));
    expect_data(ns, all_checks(ns));
}

IN_FORMATS(pass, 1, 3)
{
    fill_model(ns, 2);
    write_model(ns, all_checks(ns));
    expect_model(ns, all_checks(ns));
    expect_data(ns, all_checks(ns));
}

/* Without protection information, metadata is any 8 bytes. */
IN_FORMATS(metadata, 0, 0)
{
    fill_model(ns, 3);
    memset(pi_of(ns, BAD), 0x77, PI_LEN);
    write_model(ns, CHECK_GUARD | CHECK_APP | CHECK_REF | PRACT);
    expect_model(ns, CHECK_GUARD | CHECK_APP | CHECK_REF | PRACT);
}

/* ---- Checks. */

static void expect_field_check(struct protected_ns *ns, uint32_t check,
                               uint32_t byte, uint16_t status)
{
    fill_model(ns, 4);
    write_model(ns, all_checks(ns));
    put_model(ns, block_stride(ns));
    data_of(ns)[BAD * block_stride(ns) + ns->block_bytes + byte] ^= 1;
    conf_status(ns->conf, "Write of a wrong field",
                run_on_model(ns, NVM_WRITE, check), status);
    expect_model(ns, all_checks(ns));
    /* The block is stored without a check.  Each command that reads finds it.
     */
    pi_of(ns, BAD)[byte] ^= 1;
    write_model(ns, all_checks(ns) & ~check);
    expect_model(ns, all_checks(ns) & ~check);
    conf_status(ns->conf, "Read of a wrong field",
                run_on_model(ns, NVM_READ, check), status);
    conf_status(ns->conf, "Read of a wrong field, with PRACT",
                run_on_model(ns, NVM_READ, check | PRACT), status);
    conf_status(ns->conf, "Verify of a wrong field",
                run_on_model(ns, NVM_VERIFY, check), status);
    conf_status(ns->conf, "Verify without that check",
                run_on_model(ns, NVM_VERIFY, all_checks(ns) & ~check),
                NVME_SC_SUCCESS);
}

IN_FORMATS(guard, 1, 3)
{
    expect_field_check(ns, CHECK_GUARD, PI_GUARD, NVME_SC_GUARD_CHECK);
    expect_field_check(ns, CHECK_GUARD, PI_GUARD + 1, NVME_SC_GUARD_CHECK);
}

IN_FORMATS(app_tag, 1, 3)
{
    expect_field_check(ns, CHECK_APP, PI_APP, NVME_SC_APP_TAG_CHECK);
    expect_field_check(ns, CHECK_APP, PI_APP + 1, NVME_SC_APP_TAG_CHECK);
}

IN_FORMATS(ref_tag, 1, 2)
{
    expect_field_check(ns, CHECK_REF, PI_REF, NVME_SC_REF_TAG_CHECK);
    expect_field_check(ns, CHECK_REF, PI_REF + 3, NVME_SC_REF_TAG_CHECK);
}

IN_FORMATS(app_mask, 1, 3)
{
    const uint32_t other = APP_TAG ^ 0x00f0;

    fill_model(ns, 5);
    write_model(ns, PRACT);
    conf_status(ns->conf, "Read with a mask that hides the difference",
                run_tagged(ns, NVM_READ, AT, BLOCKS, CHECK_APP, AT,
                           UINT32_C(0xff0f) << 16 | other),
                NVME_SC_SUCCESS);
    conf_status(ns->conf, "Read with a mask that shows the difference",
                run_tagged(ns, NVM_READ, AT, BLOCKS, CHECK_APP, AT,
                           UINT32_C(0x0010) << 16 | other),
                NVME_SC_APP_TAG_CHECK);
}

IN_FORMATS(escape, 1, 3)
{
    fill_model(ns, 6);
    block_of(ns, BAD)[0] ^= 1; /* The guard is wrong. */
    put_be16(pi_of(ns, BAD) + PI_APP, 0xffff);
    put_be32(pi_of(ns, BAD) + PI_REF, UINT32_MAX);
    write_model(ns, all_checks(ns));
    expect_model(ns, all_checks(ns));
    if (ns->type != 3) {
        put_be32(pi_of(ns, BAD) + PI_REF, 0x1234);
        write_model(ns, all_checks(ns));
        expect_model(ns, all_checks(ns));
        return;
    }
    /* With type 3, the reference tag must be all ones, too. */
    put_be32(pi_of(ns, BAD) + PI_REF, 0xfffffffe);
    write_model(ns, 0);
    conf_status(ns->conf, "Read of an application tag FFFFh alone",
                run_on_model(ns, NVM_READ, CHECK_GUARD), NVME_SC_GUARD_CHECK);
}

/* Type 1: the reference tag of a command is the low half of its LBA. */
IN_FORMATS(ref_of_lba, 1, 1)
{
    fill_model(ns, 7);
    write_model(ns, PRACT);
    conf_status(ns->conf, "Read with another EILBRT than the LBA",
                run_tagged(ns, NVM_READ, AT, BLOCKS, CHECK_REF, AT + 1, 0),
                NVME_SC_INVALID_PROTECTION);
    put_model(ns, block_stride(ns));
    conf_status(ns->conf, "Write with another ILBRT than the LBA",
                run_tagged(ns, NVM_WRITE, AT, BLOCKS, CHECK_REF, AT + 1, 0),
                NVME_SC_INVALID_PROTECTION);
}

/* Type 2: the host chooses the first tag, and the next ones follow it. */
IN_FORMATS(ref_wraps, 2, 2)
{
    const uint32_t first = UINT32_MAX - 2;

    fill_model(ns, 8);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        set_pi(ns, i, APP_TAG, first + i);
    }
    put_model(ns, ns->block_bytes);
    conf_status(ns->conf, "Write with PRACT",
                run_tagged(ns, NVM_WRITE, AT, BLOCKS, PRACT, first, APP_TAG),
                NVME_SC_SUCCESS);
    expect_model(ns, CHECK_GUARD);
    conf_status(ns->conf, "Read of tags that wrap",
                run_tagged(ns, NVM_READ, AT, BLOCKS, CHECK_REF, first, 0),
                NVME_SC_SUCCESS);
    conf_status(
        ns->conf, "Verify of tags that wrap, from the third block on",
        run_tagged(ns, NVM_VERIFY, AT + 2, BLOCKS - 2, CHECK_REF, first + 2, 0),
        NVME_SC_SUCCESS);
    conf_status(ns->conf, "Read with another first tag",
                run_tagged(ns, NVM_READ, AT, BLOCKS, CHECK_REF, first + 1, 0),
                NVME_SC_REF_TAG_CHECK);
}

/* ---- Other commands. */

IN_FORMATS(compare, 1, 3)
{
    fill_model(ns, 9);
    write_model(ns, PRACT);
    put_model(ns, block_stride(ns));
    conf_status(ns->conf, "Compare of extended blocks",
                run_on_model(ns, NVM_COMPARE, all_checks(ns)), NVME_SC_SUCCESS);
    data_of(ns)[BAD * block_stride(ns) + ns->block_bytes + PI_APP] ^= 1;
    conf_status(ns->conf, "Compare of other protection information",
                run_on_model(ns, NVM_COMPARE, 0), NVME_SC_SUCCESS);
    put_model(ns, ns->block_bytes);
    conf_status(ns->conf, "Compare with PRACT",
                run_on_model(ns, NVM_COMPARE, PRACT | all_checks(ns)),
                NVME_SC_SUCCESS);
    data_of(ns)[BAD * ns->block_bytes + 1] ^= 1;
    conf_status(ns->conf, "Compare of other data",
                run_on_model(ns, NVM_COMPARE, PRACT), NVME_SC_COMPARE_FAILED);
    put_model(ns, block_stride(ns));
    conf_status(ns->conf, "Compare with another application tag",
                run_tagged(ns, NVM_COMPARE, AT, BLOCKS, CHECK_APP, AT,
                           ALL_OF_APP_TAG | (APP_TAG ^ 1)),
                NVME_SC_APP_TAG_CHECK);
}

IN_FORMATS(verify, 1, 3)
{
    fill_model(ns, 10);
    write_model(ns, PRACT);
    conf_status(ns->conf, "Verify",
                run_on_model(ns, NVM_VERIFY, all_checks(ns)), NVME_SC_SUCCESS);
    conf_status(ns->conf, "Verify with PRACT",
                run_on_model(ns, NVM_VERIFY, PRACT),
                NVME_SC_INVALID_PROTECTION);
}

IN_FORMATS(zeroes, 1, 3)
{
    fill_model(ns, 11);
    write_model(ns, PRACT);
    conf_status(ns->conf, "Write Zeroes with PRACT",
                run_on_model(ns, NVM_WRITE_ZEROES, PRACT), NVME_SC_SUCCESS);
    memset(ns->model, 0, sizeof(ns->model));
    for (uint32_t i = 0; i < BLOCKS; i++) {
        set_pi(ns, i, APP_TAG, ref_tag_of(ns, AT, i));
    }
    expect_model(ns, all_checks(ns));
    expect_data(ns, all_checks(ns));
}

static uint16_t deallocate_blocks(struct protected_ns *ns)
{
    struct nvme_sqe sqe = {
        .opcode = NVM_DATASET_MANAGEMENT, .nsid = ns->nvme->nsid, .cdw11 = 4};

    memset(data_of(ns), 0, 16);
    put_le32(data_of(ns) + 4, BLOCKS);
    put_le64(data_of(ns) + 8, AT);
    return nvme_run(ns->nvme, ns->nvme->io, &sqe, 16, NULL);
}

/* Deallocated blocks are not checked.  What they hold is only known if DLFEAT
 * says so. */
static void expect_deallocated(struct protected_ns *ns)
{
    bool reads_zeroes = (ns->nvme->ns[ID_NS_DLFEAT] & 7) == 1;

    conf_status(ns->conf, "Read of deallocated blocks",
                run_tagged(ns, NVM_READ, AT, BLOCKS, all_checks(ns), AT,
                           ALL_OF_APP_TAG | 0x1234),
                NVME_SC_SUCCESS);
    for (uint32_t i = 0; i < BLOCKS && reads_zeroes; i++) {
        uint8_t *block = data_of(ns) + (size_t)i * block_stride(ns);

        conf_equal(ns->conf, "a byte of a deallocated block",
                   block[ns->block_bytes - 1], 0);
        conf_equal(ns->conf, "its application tag",
                   get_be16(block + ns->block_bytes + PI_APP), 0xffff);
        conf_equal(ns->conf, "its reference tag",
                   get_be32(block + ns->block_bytes + PI_REF), UINT32_MAX);
    }
}

IN_FORMATS(deallocated, 1, 3)
{
    expect_deallocated(ns); /* never written */
    fill_model(ns, 12);
    write_model(ns, PRACT);
    conf_status(ns->conf, "Dataset Management", deallocate_blocks(ns),
                NVME_SC_SUCCESS);
    expect_deallocated(ns);
    write_model(ns, PRACT);
    conf_status(ns->conf, "Write Zeroes with DEAC",
                run_on_model(ns, NVM_WRITE_ZEROES, PRACT | DEAC),
                NVME_SC_SUCCESS);
}

static uint16_t run_copy(struct protected_ns *ns, uint64_t to, uint32_t flags)
{
    struct nvme_sqe sqe = nvme_rw_sqe(ns->nvme, NVM_COPY, to, 1);
    uint8_t *range = data_of(ns);

    sqe.cdw12 |= flags;
    sqe.cdw14 = (uint32_t)to;
    sqe.cdw15 = APP_TAG;
    memset(range, 0, 32);
    put_le64(range + 8, AT);
    put_le16(range + 16, BLOCKS - 1);
    put_le32(range + 24, AT);
    put_le32(range + 28, ALL_OF_APP_TAG | APP_TAG);
    return nvme_run(ns->nvme, ns->nvme->io, &sqe, 32, NULL);
}

IN_FORMATS(copy, 1, 3)
{
    enum { TO = 64 };

    if (!(get_le16(ns->nvme->ctrl + ID_CTRL_ONCS) & ONCS_COPY)) {
        return;
    }
    fill_model(ns, 13);
    write_model(ns, PRACT);
    conf_status(ns->conf, "Copy that removes and inserts",
                run_copy(ns, TO, PRACT | COPY_READ_PRACT | COPY_READ_GUARD),
                NVME_SC_SUCCESS);
    conf_status(ns->conf, "Read of the copy with all checks",
                run_tagged(ns, NVM_READ, TO, BLOCKS, all_checks(ns), TO,
                           ALL_OF_APP_TAG | APP_TAG),
                NVME_SC_SUCCESS);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        set_pi(ns, i, APP_TAG, ref_tag_of(ns, TO, i));
    }
    conf_same(ns->conf, "the copy", data_of(ns), ns->model,
              BLOCKS * (size_t)block_stride(ns));
    /* The source is wrong. */
    fill_model(ns, 13);
    pi_of(ns, BAD)[PI_GUARD] ^= 1;
    write_model(ns, 0);
    conf_status(ns->conf, "Copy of a block with a wrong guard",
                run_copy(ns, TO, PRACT | COPY_READ_PRACT | COPY_READ_GUARD),
                NVME_SC_GUARD_CHECK);
}

/* ---- Fused pairs: the Compare's block is at the start of io->mem, the Write's
 * block follows. */

static uint16_t send_half(struct protected_ns *ns, uint8_t fuse, uint32_t flags)
{
    bool is_first = fuse == SQE_FUSE_FIRST;
    uint32_t len = flags & PRACT ? ns->block_bytes : block_stride(ns);
    struct nvme_sqe sqe =
        nvme_rw_sqe(ns->nvme, is_first ? NVM_COMPARE : NVM_WRITE, AT, 1);
    struct sgl sgl = rc_keyed(ns->nvme->io, is_first ? 0 : len, len);

    sqe.fuse = fuse;
    sqe.cdw12 |= flags;
    sqe.cdw14 = AT;
    sqe.cdw15 = ALL_OF_APP_TAG | APP_TAG;
    return rc_send_capsule(ns->nvme->io, &sqe, &sgl, NULL, 0);
}

static void expect_pair(struct protected_ns *ns, uint32_t flags, uint16_t first,
                        uint16_t second)
{
    uint16_t a = send_half(ns, SQE_FUSE_FIRST, flags);
    uint16_t b = send_half(ns, SQE_FUSE_SECOND, flags);
    struct nvme_cqe cqe;

    rc_take_response(ns->nvme->io, a, &cqe);
    conf_status(ns->conf, "the fused Compare", cqe.status & NVME_SC_MASK,
                first);
    rc_take_response(ns->nvme->io, b, &cqe);
    conf_status(ns->conf, "the fused Write", cqe.status & NVME_SC_MASK, second);
}

static void run_fused(struct protected_ns *ns, uint32_t flags)
{
    uint32_t len = flags & PRACT ? ns->block_bytes : block_stride(ns);

    fill_model(ns, 14);
    write_model(ns, PRACT);
    memcpy(data_of(ns), block_of(ns, 0), len);
    block_of(ns, 0)[1] ^= 1;
    set_pi(ns, 0, APP_TAG, AT);
    memcpy(data_of(ns) + len, block_of(ns, 0), len);
    expect_pair(ns, flags, NVME_SC_SUCCESS, NVME_SC_SUCCESS);
    expect_model(ns, all_checks(ns));
    memset(data_of(ns), 0, 2 * (size_t)len);
    expect_pair(ns, flags, NVME_SC_COMPARE_FAILED, NVME_SC_FUSED_FAILED);
    expect_model(ns, all_checks(ns));
}

IN_FORMATS(fused, 1, 3)
{
    if (!(get_le16(ns->nvme->ctrl + ID_CTRL_FUSES) & FUSES_COMPARE_AND_WRITE)) {
        return;
    }
    run_fused(ns, PRACT | all_checks(ns));
    run_fused(ns, all_checks(ns));
}

/* ---- Lengths. */

/* Metadata counts for MDTS if it is transferred. */
IN_FORMATS(mdts, 1, 1)
{
    uint8_t mdts = ns->nvme->ctrl[ID_CTRL_MDTS];
    uint32_t most = mdts == 0 ? 0 : UINT32_C(4096) << mdts;
    uint32_t extended = most / block_stride(ns);
    uint32_t plain = most / ns->block_bytes;

    if (mdts == 0 || most > 1024 * 1024) {
        return; /* MDTS is more than the tests' memory has room for. */
    }
    memset(data_of(ns), 0, most);
    conf_status(ns->conf, "Write of as much as MDTS allows, with PRACT",
                run_tagged(ns, NVM_WRITE, 0, plain, PRACT, 0, 0),
                NVME_SC_SUCCESS);
    conf_status(ns->conf, "Read of as many extended blocks as MDTS allows",
                run_tagged(ns, NVM_READ, 0, extended, CHECK_GUARD, 0, 0),
                NVME_SC_SUCCESS);
    conf_status(ns->conf, "Write of as many extended blocks as MDTS allows",
                run_tagged(ns, NVM_WRITE, 0, extended, CHECK_GUARD, 0, 0),
                NVME_SC_SUCCESS);
    conf_status(ns->conf, "Read of one extended block more",
                run_tagged(ns, NVM_READ, 0, extended + 1, 0, 0, 0),
                NVME_SC_INVALID_FIELD);
}

IN_FORMATS(sgl_length, 1, 1)
{
    struct nvme_sqe sqe = nvme_rw_sqe(ns->nvme, NVM_READ, AT, 2);

    conf_status(
        ns->conf, "Read whose descriptor leaves the metadata out",
        nvme_run(ns->nvme, ns->nvme->io, &sqe, 2 * ns->block_bytes, NULL),
        NVME_SC_SGL_INVALID_LENGTH);
    sqe.cdw12 |= PRACT;
    conf_status(
        ns->conf, "Read with PRACT whose descriptor includes metadata",
        nvme_run(ns->nvme, ns->nvme->io, &sqe, 2 * block_stride(ns), NULL),
        NVME_SC_SGL_INVALID_LENGTH);
}

#define TEST(id, clause, purpose, fn)                                          \
    CONF_TEST("protection." id, "NVMe 1.4 " clause, purpose, fn)

static const struct conf_test tests[] = {
    TEST("claims", "5.15.2.1", "MC, DPC and the formats' MS agree",
         claims_agree),
    TEST("identify", "5.15.2.1, 5.20",
         "FLBAS and DPS say how a namespace was created", identify),
    TEST("refused", "5.23, 8.3",
         "separate metadata, types and formats that Identify does not report "
         "are refused with Invalid Format",
         refused_formats),
    TEST("format", "5.23", "Format leaves no metadata behind", format),
    TEST("insert", "8.3",
         "PRACT inserts guard and tags on a Write, and removes them on a Read",
         insert),
    TEST("pass", "8.3", "without PRACT, protection information is stored",
         pass),
    TEST("metadata", "8.2", "other metadata is stored and not checked",
         metadata),
    TEST("guard", "8.3", "a wrong guard gets End-to-end Guard Check Error",
         guard),
    TEST("app-tag", "8.3",
         "a wrong application tag gets Application Tag Check Error", app_tag),
    TEST("ref-tag", "8.3",
         "a wrong reference tag gets Reference Tag Check Error", ref_tag),
    TEST("app-mask", "8.3", "LBATM chooses bits of the application tag",
         app_mask),
    TEST("escape", "8.3",
         "blocks with the escape values are not checked; type 3 needs both",
         escape),
    TEST("ref-of-lba", "8.3",
         "with type 1, a reference tag other than the LBA is refused",
         ref_of_lba),
    TEST("ref-wraps", "8.3",
         "with type 2, reference tags count on from any value", ref_wraps),
    TEST("compare", "6.6, 8.3",
         "Compare checks the medium, and compares data only", compare),
    TEST("verify", "6.14, 8.3", "Verify checks, and refuses PRACT", verify),
    TEST("zeroes", "6.17, 8.3",
         "Write Zeroes with PRACT makes protection information", zeroes),
    TEST("deallocated", "6.7, 8.3", "deallocated blocks are not checked",
         deallocated),
    CONF_TEST("protection.copy", "NVM Command Set 1.0 3.2.2, 5.2",
              "Copy checks what it reads, and makes what it writes", copy),
    TEST("fused", "4.12, 8.3", "fused pairs take blocks with metadata", fused),
    TEST("mdts", "5.15.2.2, 8.2",
         "metadata that is transferred counts for MDTS", mdts),
    TEST("sgl-length", "8.2",
         "the length of a descriptor includes metadata unless PRACT is set",
         sgl_length),
};
CONF_TESTS(conf_tests_nvme_protection, "nvme", tests);
