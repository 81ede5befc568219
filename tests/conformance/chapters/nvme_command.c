/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all commands have in common: opcode, flags, identifier, namespace.
 *
 * Spec: NVM Express 1.4 4.2, 6.1, 6.2; NVMe over Fabrics 1.1 chapter 2.
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    FLAGS_PSDT_SGL = 0x40,
    FLAGS_FUSE = 0x03,
    AT = 16,
    PATTERN = 0x6c,
};

/* ---- NSID. */

enum which { NSID_ZERO, NSID_ABOVE, NSID_LARGEST, NSID_INACTIVE, NSID_ALL };

static void expect_nsid_refused(struct conf *conf, uint8_t opcode,
                                enum which which)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = nvme_right(nvme, opcode);
    uint32_t inactive = nvme_inactive_nsid(nvme);
    const uint32_t nsids[] = {0, nvme->num_ns + 1, NVME_NSID_ALL - 1, inactive,
                              NVME_NSID_ALL};
    uint16_t status;

    if (which == NSID_INACTIVE && inactive == 0) {
        conf_not_applicable(conf, "all NN namespaces are active");
    }
    nvme_write(nvme, AT, 1, 4);
    memset(nvme->io->mem, 0, nvme->block_bytes);
    sqe.nsid = nsids[which];
    status = nvme_run(nvme, nvme->io, &sqe, nvme_data_len(nvme, opcode), NULL);
    if (which == NSID_ALL) { /* NVMe 1.4 allows either status. */
        conf_check(conf,
                   status == NVME_SC_INVALID_NS ||
                       status == NVME_SC_INVALID_FIELD,
                   "NSID FFFFFFFFh: status %03xh", status);
    } else {
        conf_status(conf, "a command with that NSID", status,
                    which == NSID_INACTIVE ? NVME_SC_INVALID_FIELD
                                           : NVME_SC_INVALID_NS);
    }
    nvme_verify(nvme, AT, 1, 4);
    nvme_close(nvme);
}

#define NSID_CASES(X, opcode, name)                                            \
    X(opcode, name, NSID_ZERO, "zero",                                         \
      "NSID 0 is refused with Invalid Namespace")                              \
    X(opcode, name, NSID_ABOVE, "above",                                       \
      "NSID NN + 1 is refused with Invalid Namespace")                         \
    X(opcode, name, NSID_LARGEST, "largest",                                   \
      "NSID FFFFFFFEh is refused with Invalid Namespace")                      \
    X(opcode, name, NSID_INACTIVE, "inactive",                                 \
      "an inactive NSID is refused with Invalid Field")
#define NSIDS(X)                                                               \
    NSID_CASES(X, FLUSH, "flush")                                              \
    NSID_CASES(X, WRITE, "write")                                              \
    NSID_CASES(X, READ, "read")                                                \
    NSID_CASES(X, WRITE_ZEROES, "zeroes")                                      \
    NSID_CASES(X, DATASET_MANAGEMENT, "dsm")                                   \
    X(WRITE, "write", NSID_ALL, "all", "NSID FFFFFFFFh is refused")            \
    X(READ, "read", NSID_ALL, "all", "NSID FFFFFFFFh is refused")              \
    X(WRITE_ZEROES, "zeroes", NSID_ALL, "all", "NSID FFFFFFFFh is refused")    \
    X(DATASET_MANAGEMENT, "dsm", NSID_ALL, "all", "NSID FFFFFFFFh is refused")

#define NSID_FUNCTION(opcode, name, which, id, purpose)                        \
    static void nsid_##opcode##_##which(struct conf *conf)                     \
    {                                                                          \
        expect_nsid_refused(conf, NVM_##opcode, which);                        \
    }
NSIDS(NSID_FUNCTION)

/* ---- PSDT, FUSE, reserved flags. */

static void run_with_flags(struct conf *conf, bool is_io, uint8_t opcode,
                           uint8_t value, uint16_t expected)
{
    struct nvme *nvme = nvme_open(conf);
    struct rc *rc = is_io ? nvme->io : nvme->admin;
    struct nvme_sqe sqe =
        is_io ? nvme_right(nvme, opcode)
              : (struct nvme_sqe){.opcode = opcode,
                                  .cdw10 = opcode == ADMIN_IDENTIFY
                                               ? (uint32_t)CNS_CONTROLLER
                                               : 0};
    uint32_t len = opcode == ADMIN_IDENTIFY && !is_io
                       ? (uint32_t)NVME_IDENTIFY_LEN
                       : nvme_data_len(nvme, opcode);
    uint8_t *capsule = nvme_capsule_of(rc, &sqe, is_io || len != 0 ? len : 0);

    if ((value & FLAGS_FUSE) != 0 && (value & FLAGS_FUSE) != FLAGS_FUSE &&
        is_io && get_le16(nvme->ctrl + ID_CTRL_FUSES) != 0) {
        conf_not_applicable(conf,
                            "FUSES is not 0: the target has fused commands");
    }
    nvme_write(nvme, AT, 1, 4);
    memset(rc->mem, PATTERN, len);
    capsule[SQE_FLAGS] = value;
    conf_status(conf, "a command with those flags",
                nvme_run_capsule(nvme, rc, capsule, NVME_SQE_LEN, NULL),
                expected);
    if (expected != NVME_SC_SUCCESS) {
        conf_check(conf, len == 0 || rc->mem[0] == PATTERN,
                   "a refused command transferred data");
        nvme_verify(nvme, AT, 1, 4);
    }
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

#define FLAGS(X)                                                               \
    X(read_prp, "psdt.read-prp", "a Read with PSDT 00b (PRPs)", true,          \
      NVM_READ, 0x00)                                                          \
    X(write_prp, "psdt.write-prp", "a Write with PSDT 00b (PRPs)", true,       \
      NVM_WRITE, 0x00)                                                         \
    X(dsm_prp, "psdt.dsm-prp", "a Dataset Management with PSDT 00b (PRPs)",    \
      true, NVM_DATASET_MANAGEMENT, 0x00)                                      \
    X(flush_prp, "psdt.flush-prp", "a Flush with PSDT 00b", true, NVM_FLUSH,   \
      0x00)                                                                    \
    X(identify_prp, "psdt.identify-prp", "an Identify with PSDT 00b (PRPs)",   \
      false, ADMIN_IDENTIFY, 0x00)                                             \
    X(alive_prp, "psdt.keep-alive-prp", "a Keep Alive with PSDT 00b", false,   \
      ADMIN_KEEP_ALIVE, 0x00)                                                  \
    X(read_psdt3, "psdt.read-reserved", "a Read with the reserved PSDT 11b",   \
      true, NVM_READ, 0xc0)                                                    \
    X(write_psdt3, "psdt.write-reserved",                                      \
      "a Write with the reserved PSDT 11b", true, NVM_WRITE, 0xc0)             \
    X(identify_psdt3, "psdt.identify-reserved",                                \
      "an Identify with the reserved PSDT 11b", false, ADMIN_IDENTIFY, 0xc0)   \
    X(read_first, "fuse.read-first", "a Read with FUSE 01b", true, NVM_READ,   \
      0x41)                                                                    \
    X(write_first, "fuse.write-first", "a Write with FUSE 01b", true,          \
      NVM_WRITE, 0x41)                                                         \
    X(write_second, "fuse.write-second", "a Write with FUSE 10b", true,        \
      NVM_WRITE, 0x42)                                                         \
    X(read_fuse3, "fuse.read-reserved", "a Read with the reserved FUSE 11b",   \
      true, NVM_READ, 0x43)                                                    \
    X(flush_first, "fuse.flush-first", "a Flush with FUSE 01b", true,          \
      NVM_FLUSH, 0x41)                                                         \
    X(admin_first, "fuse.identify-first", "an Identify with FUSE 01b", false,  \
      ADMIN_IDENTIFY, 0x41)

#define FLAGS_FUNCTION(name, id, purpose, is_io, opcode, value)                \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        run_with_flags(conf, is_io, opcode, value, NVME_SC_INVALID_FIELD);     \
    }
FLAGS(FLAGS_FUNCTION)

/*
 * Metadata in an SGL segment; SGLS bit 19 tells whether the target supports it.
 */
static void metadata_segment(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    bool has = get_le32(nvme->ctrl + ID_CTRL_SGLS) & 0x80000;

    nvme_close(nvme);
    if (has) {
        conf_not_applicable(conf, "SGLS bit 19 is 1");
    }
    run_with_flags(conf, true, NVM_READ, 0x80, NVME_SC_INVALID_FIELD);
}

static void reserved_flags_io(struct conf *conf)
{
    run_with_flags(conf, true, NVM_READ, FLAGS_PSDT_SGL | 0x3c,
                   NVME_SC_SUCCESS);
}

static void reserved_flags_admin(struct conf *conf)
{
    run_with_flags(conf, false, ADMIN_IDENTIFY, FLAGS_PSDT_SGL | 0x3c,
                   NVME_SC_SUCCESS);
}

/* MPTR is ignored when there is no metadata. */
static void metadata_pointer(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = nvme_right(nvme, NVM_READ);

    nvme_write(nvme, AT, 1, 4);
    sqe.mptr = UINT64_MAX - 7;
    conf_status(conf, "Read with a metadata pointer",
                nvme_run(nvme, nvme->io, &sqe, nvme->block_bytes, NULL),
                NVME_SC_SUCCESS);
    nvme_verify(nvme, AT, 1, 4);
    nvme_close(nvme);
}

/* ---- Opcodes. */

/* ONCS tells which optional commands the target has; the others get Invalid
 * Opcode, whatever else is wrong with them. */
static void optional_command(struct conf *conf, uint8_t opcode,
                             uint16_t oncs_bit)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = nvme_right(nvme, opcode);
    bool has = get_le16(nvme->ctrl + ID_CTRL_ONCS) & oncs_bit;
    uint16_t status;

    sqe.nsid = nvme->nsid;
    sqe.cdw10 = AT;
    status = nvme_run(nvme, nvme->io, &sqe, 0, NULL);
    conf_check(conf, (status == NVME_SC_INVALID_OPCODE) == !has,
               "opcode %02xh: status %03xh, ONCS bit %04x is %d", opcode,
               status, oncs_bit, has);
    if (opcode == NVM_WRITE_UNCORRECTABLE && status == NVME_SC_SUCCESS) {
        nvme_write(nvme, AT, 1, 1); /* so that it can be read again */
    }
    nvme_close(nvme);
}

#define OPTIONAL(X)                                                            \
    X(WRITE_UNCORRECTABLE, 0x04, 0x02, "write-uncorrectable")                  \
    X(COMPARE, 0x05, 0x01, "compare")                                          \
    X(VERIFY, 0x0c, 0x80, "verify")                                            \
    X(COPY, 0x19, 0x100, "copy")                                               \
    X(RESERVATION_REGISTER, 0x0d, 0x20, "reservation-register")                \
    X(RESERVATION_REPORT, 0x0e, 0x20, "reservation-report")                    \
    X(RESERVATION_ACQUIRE, 0x11, 0x20, "reservation-acquire")                  \
    X(RESERVATION_RELEASE, 0x15, 0x20, "reservation-release")
#define OPTIONAL_FUNCTION(name, opcode, bit, id)                               \
    static void optional_##name(struct conf *conf)                             \
    {                                                                          \
        optional_command(conf, opcode, bit);                                   \
    }
OPTIONAL(OPTIONAL_FUNCTION)

static void reserved_opcodes(struct conf *conf, bool is_io, uint8_t first,
                             uint8_t last)
{
    struct nvme *nvme = nvme_open(conf);
    struct rc *rc = is_io ? nvme->io : nvme->admin;

    for (unsigned int opcode = first; opcode <= last; opcode++) {
        struct nvme_sqe sqe = {.opcode = (uint8_t)opcode, .nsid = nvme->nsid};
        uint16_t status = nvme_run(nvme, rc, &sqe, 0, NULL);

        conf_check(conf, status == NVME_SC_INVALID_OPCODE,
                   "reserved opcode %02xh: status %03xh", opcode, status);
    }
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

static void opcodes_io(struct conf *conf)
{
    reserved_opcodes(conf, true, 0x20, 0x78);
}

static void opcodes_admin(struct conf *conf)
{
    reserved_opcodes(conf, false, 0x40, 0x7b);
}

/* Over fabrics, Connect makes the queues. */
static void queue_opcodes(struct conf *conf)
{
    static const uint8_t opcodes[] = {0x00, 0x01, 0x04, 0x05};
    struct nvme *nvme = nvme_open(conf);

    for (unsigned int i = 0; i < ARRAY_LEN(opcodes); i++) {
        struct nvme_sqe sqe = {.opcode = opcodes[i], .cdw10 = 1};
        uint16_t status = nvme_run(nvme, nvme->admin, &sqe, 0, NULL);

        conf_status(conf, "Create or Delete I/O Queue", status,
                    NVME_SC_INVALID_OPCODE);
    }
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

/*
 * Two fields are wrong, and 4.6.1 defines no order in which they are checked.
 */
static void opcode_and_nsid(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = {
        .opcode = 0x75, .nsid = NVME_NSID_ALL - 1, .cdw10 = UINT32_MAX};
    uint16_t status = nvme_run(nvme, nvme->io, &sqe, 0, NULL);

    conf_check(conf,
               status == NVME_SC_INVALID_OPCODE || status == NVME_SC_INVALID_NS,
               "opcode 75h, NSID FFFFFFFEh: status %03xh", status);
    nvme_close(nvme);
}

static void nsid_before_lba(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = nvme_rw_sqe(nvme, NVM_READ, UINT64_MAX, 1);

    sqe.nsid = NVME_NSID_ALL - 1;
    conf_status(conf, "a Read of a wrong block of a wrong namespace",
                nvme_run(nvme, nvme->io, &sqe, nvme->block_bytes, NULL),
                NVME_SC_INVALID_NS);
    nvme_close(nvme);
}

/* A command that would be refused again has Do Not Retry set, because hosts
 * would retry it otherwise. */
static void not_again(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = {.opcode = 0x75, .nsid = nvme->nsid};
    struct nvme_cqe cqe;

    nvme_run(nvme, nvme->io, &sqe, 0, &cqe);
    conf_check(conf, cqe.status & NVME_STATUS_DNR,
               "Invalid Opcode without Do Not Retry");
    sqe = nvme_rw_sqe(nvme, NVM_READ, nvme->size_blocks, 1);
    nvme_run(nvme, nvme->io, &sqe, nvme->block_bytes, &cqe);
    conf_check(conf, cqe.status & NVME_STATUS_DNR,
               "LBA Out of Range without Do Not Retry");
    sqe = nvme_right(nvme, NVM_READ);
    nvme_run(nvme, nvme->io, &sqe, nvme->block_bytes, &cqe);
    conf_equal(conf, "status field of a Read that works", cqe.status, 0);
    nvme_close(nvme);
}

/* ---- Command identifiers. */

static void cid_is(struct conf *conf, uint16_t cid)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = nvme_right(nvme, NVM_READ);

    /* The CID can be used again after the answer. */
    for (unsigned int i = 0; i < 2; i++) {
        uint8_t *capsule = nvme_capsule_of(nvme->io, &sqe, nvme->block_bytes);
        struct nvme_cqe cqe;

        put_le16(capsule + SQE_CID, cid);
        rc_send_message(nvme->io, capsule, NVME_SQE_LEN);
        rc_take_response(nvme->io, cid, &cqe);
        conf_status(conf, "Read", cqe.status, NVME_SC_SUCCESS);
    }
    nvme_close(nvme);
}

static void cid_zero(struct conf *conf)
{
    cid_is(conf, 0);
}

static void cid_largest(struct conf *conf)
{
    cid_is(conf, 0xfffe);
}

static void cid_none(struct conf *conf)
{
    cid_is(conf, 0xffff);
}

/* As many commands at once as the queue holds: each is answered once. */
static void cids_at_once(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = nvme_right(nvme, NVM_READ);
    struct sgl sgl = rc_keyed(nvme->io, 0, nvme->block_bytes);
    enum { COUNT = 24, FIRST = 0x4000, STEP = 0x101 };
    bool seen[COUNT] = {false};

    for (unsigned int i = 0; i < COUNT; i++) {
        sqe.cid = (uint16_t)(FIRST + i * STEP);
        rc_send_capsule(nvme->io, &sqe, &sgl, NULL, 0);
    }
    for (unsigned int i = 0; i < COUNT; i++) {
        struct nvme_cqe cqe;
        unsigned int which;

        nvme_cqe_parse(&cqe, rc_take_message(nvme->io, "a response")->data);
        which = (unsigned int)(cqe.cid - FIRST) / STEP;
        conf_check(conf,
                   cqe.cid >= FIRST && which < COUNT &&
                       cqe.cid == FIRST + which * STEP && !seen[which],
                   "there is a response with CID %04xh", cqe.cid);
        seen[which] = true;
        conf_status(conf, "Read", cqe.status, NVME_SC_SUCCESS);
    }
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST(id, "NVMe 1.4 " clause, purpose, __VA_ARGS__)
#define NSID_TEST(opcode, name, which, id, purpose)                            \
    TEST("nsid." name "-" id, "4.2, 6.1", purpose, nsid_##opcode##_##which),
#define FLAGS_TEST(name, id, purpose, is_io, opcode, value)                    \
    TEST(id, "4.2, 6.2; NVMe-oF 1.1 2.1",                                      \
         purpose " is refused with Invalid Field", name,                       \
         .is_malformed = true),
#define OPTIONAL_TEST(name, opcode, bit, id)                                   \
    TEST("opcode." id, "5.15.2.2, 6",                                          \
         "the command exists, or gets Invalid Opcode, as ONCS tells",          \
         optional_##name),

static const struct conf_test tests[] = {
    NSIDS(NSID_TEST)  /* */
    FLAGS(FLAGS_TEST) /* */
    TEST("psdt.metadata-segment", "4.2",
         "PSDT 10b is accepted or refused, as SGLS bit 19 tells",
         metadata_segment),
    TEST("flags.reserved-io", "4.2",
         "reserved flags of I/O commands are ignored", reserved_flags_io),
    TEST("flags.reserved-admin", "4.2",
         "reserved flags of admin commands are ignored", reserved_flags_admin),
    TEST("flags.metadata-pointer", "4.2", "MPTR is ignored without metadata",
         metadata_pointer),
    OPTIONAL(OPTIONAL_TEST) /* */
    TEST("opcode.io-reserved", "6",
         "reserved I/O opcodes are refused with Invalid Opcode", opcodes_io),
    TEST("opcode.admin-reserved", "5",
         "reserved admin opcodes are refused with Invalid Opcode",
         opcodes_admin),
    TEST("opcode.queues", "5; NVMe-oF 1.1 1.4",
         "Create and Delete I/O Queue do not exist over fabrics",
         queue_opcodes),
    TEST("opcode.before-nsid", "4.6.1",
         "a reserved opcode with a wrong NSID is refused for either",
         opcode_and_nsid),
    TEST("nsid.before-lba", "6.1", "the namespace is checked before the blocks",
         nsid_before_lba),
    TEST("status.dnr", "4.6.1", "a permanent error has Do Not Retry",
         not_again),
    TEST("cid.zero", "4.2", "CID 0 can be used", cid_zero),
    TEST("cid.largest", "4.2", "CID FFFEh can be used", cid_largest),
    TEST("cid.none", "4.2", "CID FFFFh can be used, although hosts should not",
         cid_none),
    TEST("cid.at-once", "4.6", "each of many commands at once is answered once",
         cids_at_once),
};
CONF_TESTS(conf_tests_nvme_command, "nvme", tests);
