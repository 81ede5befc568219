/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capsules: SGL descriptors, in-capsule data, SQ flow control.
 *
 * Spec: NVMe over Fabrics 1.1 2.1 to 2.4, 7.3.3, 7.3.4; NVM Express 1.4 4.4.
 */
#include <string.h>

#include "lib/bytes.h"
#include "nvmf_lib.h"

enum { LBA = 32, BEFORE = 6 };

static struct nvmf_pair open_pair(struct conf *conf)
{
    return nvmf_open_pair(conf, &(struct rc_config){0});
}

static void write_pattern(uint8_t *data, uint8_t salt)
{
    for (unsigned int i = 0; i < 512; i++) {
        data[i] = (uint8_t)(i * 7 + salt);
    }
}

/* Read block LBA and compare it with write_pattern()'s data. */
static void expect_block(struct nvmf_pair *pair, uint8_t salt)
{
    struct conf *conf = pair->io->conf;
    struct nvme_sqe read = nvmf_io(conf, NVM_READ, LBA, 1);
    struct sgl sgl = rc_keyed(pair->io, 8192, 512);
    uint8_t expected[512];

    write_pattern(expected, salt);
    memset(pair->io->mem + 8192, 0, 512);
    conf_status(conf, "Read", rc_command(pair->io, &read, &sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    conf_same(conf, "data", pair->io->mem + 8192, expected, 512);
}

/* ---- Types of descriptors. */

static void data_keyed(struct conf *conf)
{
    struct nvmf_pair pair = open_pair(conf);
    struct nvme_sqe write = nvmf_io(conf, NVM_WRITE, LBA, 1);
    struct sgl sgl = rc_keyed(pair.io, 0, 512);

    write_pattern(pair.io->mem, 1);
    conf_status(conf, "Write", rc_command(pair.io, &write, &sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    expect_block(&pair, 1);
    nvmf_close_pair(&pair);
}

static void keyed_odd(struct conf *conf)
{
    struct nvmf_pair pair = open_pair(conf);
    struct nvme_sqe write = nvmf_io(conf, NVM_WRITE, LBA, 1);
    struct sgl sgl = rc_keyed(pair.io, 333, 512);

    write_pattern(pair.io->mem + 333, 2);
    conf_status(conf, "Write with data at an odd address",
                rc_command(pair.io, &write, &sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    expect_block(&pair, 2);
    nvmf_close_pair(&pair);
}

/* The response invalidates the key if, and only if, the host asked for it. */
static void response_kind(struct conf *conf, bool wants_it)
{
    struct nvmf_pair pair = open_pair(conf);
    struct nvme_sqe write = nvmf_io(conf, NVM_WRITE, LBA, 1);
    struct sgl sgl = rc_keyed(pair.io, 0, 512);
    const struct rc_message *message;
    struct nvme_cqe cqe;

    sgl.kind = wants_it ? SGL_KEYED_INVALIDATE : SGL_KEYED;
    rc_send_capsule(pair.io, &write, &sgl, NULL, 0);
    message = rc_take_message(pair.io, "the response");
    nvme_cqe_parse(&cqe, message->data);
    conf_status(conf, "Write", cqe.status, NVME_SC_SUCCESS);
    if (wants_it) {
        conf_check(conf, message->has_invalidate,
                   "the response does not invalidate the key");
        conf_equal(conf, "invalidated key", message->invalidate_rkey, sgl.key);
    } else {
        conf_check(conf, !message->has_invalidate,
                   "the response invalidates key %08x, but the host did not "
                   "ask for it",
                   message->invalidate_rkey);
    }
    nvmf_close_pair(&pair);
}

static void data_invalidate(struct conf *conf)
{
    response_kind(conf, true);
}

static void no_invalidate(struct conf *conf)
{
    response_kind(conf, false);
}

/* The response to a failed command may invalidate the key or not, but it must
 * not name another key. */
static void invalidate_failed(struct conf *conf)
{
    struct nvmf_pair pair = open_pair(conf);
    struct nvme_sqe write = nvmf_io(conf, NVM_WRITE, UINT64_MAX - 8, 1);
    struct sgl sgl = rc_keyed(pair.io, 0, 512);
    const struct rc_message *message;
    struct nvme_cqe cqe;

    sgl.kind = SGL_KEYED_INVALIDATE;
    rc_send_capsule(pair.io, &write, &sgl, NULL, 0);
    message = rc_take_message(pair.io, "the response");
    nvme_cqe_parse(&cqe, message->data);
    conf_check(conf, (cqe.status & NVME_SC_MASK) != NVME_SC_SUCCESS,
               "a Write out of range succeeded");
    if (message->has_invalidate) {
        conf_equal(conf, "invalidated key", message->invalidate_rkey, sgl.key);
    }
    nvmf_close_pair(&pair);
}

/* Run a command whose SGL has that type byte. @return status */
static uint16_t raw_type(struct nvmf_pair *pair, uint8_t type)
{
    struct rc *rc = pair->io;
    struct nvme_sqe write = nvmf_io(rc->conf, NVM_WRITE, LBA, 1);
    struct sgl sgl = rc_keyed(rc, 0, 512);
    uint8_t capsule[NVME_SQE_LEN];
    struct nvme_cqe cqe;

    write.cid = rc->cid++;
    write.psdt = SQE_PSDT_SGL;
    nvme_sqe_emit(capsule, &write);
    sgl_emit(capsule + SQE_SGL1, &sgl);
    capsule[SQE_SGL1 + SGL_TYPE] = type;
    rc_send_message(rc, capsule, sizeof(capsule));
    rc_take_response(rc, write.cid, &cqe);
    return cqe.status;
}

static void type_refused(struct conf *conf, uint8_t type)
{
    struct nvmf_pair pair = open_pair(conf);

    conf_status(conf, "SGL descriptor type", raw_type(&pair, type),
                NVME_SC_SGL_INVALID_TYPE);
    conf_status(conf, "a keyed data block descriptor on the same queue",
                raw_type(&pair, 0x40), NVME_SC_SUCCESS);
    nvmf_close_pair(&pair);
}

static void type_address(struct conf *conf)
{
    /* A data block by address, which fabrics do not have. */
    type_refused(conf, 0x00);
}

static void type_keyed_offset(struct conf *conf)
{
    type_refused(conf, 0x41);
}

static void type_transport(struct conf *conf)
{
    type_refused(conf, 0x5a);
}

/* ---- Lengths. */

static void length_short(struct conf *conf)
{
    struct nvmf_pair pair = open_pair(conf);
    struct nvme_sqe write = nvmf_io(conf, NVM_WRITE, LBA, 2);
    struct sgl sgl = rc_keyed(pair.io, 0, 512);
    uint16_t status = rc_command(pair.io, &write, &sgl, NULL, 0, NULL);

    conf_check(conf, (status & NVME_SC_MASK) != NVME_SC_SUCCESS,
               "two blocks were written from 512 bytes");
    nvmf_close_pair(&pair);
}

static void length_zero(struct conf *conf)
{
    struct nvmf_pair pair = open_pair(conf);
    struct nvme_sqe read = nvmf_io(conf, NVM_READ, LBA, 1);
    struct sgl sgl = rc_keyed(pair.io, 0, 0);
    uint16_t status = rc_command(pair.io, &read, &sgl, NULL, 0, NULL);

    conf_check(conf, (status & NVME_SC_MASK) != NVME_SC_SUCCESS,
               "a block was read into 0 bytes");
    nvmf_close_pair(&pair);
}

/* ---- In-capsule data. */

static uint32_t in_capsule_bytes(struct nvmf_pair *pair)
{
    struct nvme_sqe identify = {.opcode = ADMIN_IDENTIFY,
                                .cdw10 = CNS_CONTROLLER};
    struct rc *admin = pair->admin;
    struct sgl sgl = rc_keyed(admin, 0, 4096);

    conf_status(admin->conf, "Identify",
                rc_command(admin, &identify, &sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    return get_le32(admin->mem + 1792) * 16 - NVME_SQE_LEN; /* IOCCSZ */
}

static uint16_t in_capsule(struct nvmf_pair *pair, uint64_t offset,
                           uint32_t len, uint32_t sent, uint16_t blocks)
{
    struct nvme_sqe write = nvmf_io(pair->io->conf, NVM_WRITE, LBA, blocks);
    struct sgl sgl = {
        .kind = SGL_IN_CAPSULE, .address = offset, .len_bytes = len};

    return rc_command(pair->io, &write, &sgl, pair->io->mem, sent, NULL);
}

static void in_capsule_block(struct conf *conf)
{
    struct nvmf_pair pair = open_pair(conf);

    if (in_capsule_bytes(&pair) < 512) {
        conf_not_applicable(conf, "no data fits in a capsule (IOCCSZ)");
    }
    write_pattern(pair.io->mem, 3);
    conf_status(conf, "Write", in_capsule(&pair, 0, 512, 512, 1),
                NVME_SC_SUCCESS);
    expect_block(&pair, 3);
    nvmf_close_pair(&pair);
}

static void in_capsule_offset(struct conf *conf)
{
    struct nvmf_pair pair = open_pair(conf);

    if (in_capsule_bytes(&pair) < 1024) {
        conf_not_applicable(conf, "no offset fits in a capsule (IOCCSZ)");
    }
    write_pattern(pair.io->mem + 512, 4);
    conf_status(conf, "Write", in_capsule(&pair, 512, 512, 1024, 1),
                NVME_SC_SUCCESS);
    expect_block(&pair, 4);
    nvmf_close_pair(&pair);
}

static void in_capsule_full(struct conf *conf)
{
    struct nvmf_pair pair = open_pair(conf);
    uint32_t room = in_capsule_bytes(&pair);

    if (room < 512) {
        conf_not_applicable(conf, "no data fits in a capsule (IOCCSZ)");
    }
    write_pattern(pair.io->mem, 5);
    conf_status(conf, "Write",
                in_capsule(&pair, 0, room, room, (uint16_t)(room / 512)),
                NVME_SC_SUCCESS);
    expect_block(&pair, 5);
    nvmf_close_pair(&pair);
}

/* Write data that a refused command must not change. */
static void write_before(struct nvmf_pair *pair)
{
    struct nvme_sqe write = nvmf_io(pair->io->conf, NVM_WRITE, LBA, 1);
    struct sgl sgl = rc_keyed(pair->io, 0, 512);

    write_pattern(pair->io->mem, BEFORE);
    conf_status(pair->io->conf, "Write",
                rc_command(pair->io, &write, &sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    memset(pair->io->mem, 0, 512);
}

static void in_capsule_missing(struct conf *conf)
{
    struct nvmf_pair pair = open_pair(conf);
    uint16_t status;

    write_before(&pair);
    status = in_capsule(&pair, 0, 512, 256, 1);
    conf_check(conf,
               (status & NVME_SC_MASK) == NVME_SC_SGL_INVALID_LENGTH ||
                   (status & NVME_SC_MASK) == NVME_SC_SGL_INVALID_OFFSET,
               "512 bytes from a capsule with 256: status %03xh", status);
    expect_block(&pair, BEFORE);
    nvmf_close_pair(&pair);
}

static void in_capsule_beyond(struct conf *conf)
{
    struct nvmf_pair pair = open_pair(conf);
    uint16_t status;

    write_before(&pair);
    status = in_capsule(&pair, 1024, 512, 512, 1);
    conf_check(conf, (status & NVME_SC_MASK) == NVME_SC_SGL_INVALID_OFFSET,
               "an offset beyond the capsule's data: status %03xh", status);
    expect_block(&pair, BEFORE);
    nvmf_close_pair(&pair);
}

static void in_capsule_wraps(struct conf *conf)
{
    struct nvmf_pair pair = open_pair(conf);
    uint16_t status;

    write_before(&pair);
    status = in_capsule(&pair, UINT64_MAX - 511, 512, 512, 1);
    conf_check(conf, (status & NVME_SC_MASK) == NVME_SC_SGL_INVALID_OFFSET,
               "an offset of 2^64 - 512: status %03xh", status);
    expect_block(&pair, BEFORE);
    nvmf_close_pair(&pair);
}

/* ---- PSDT. */

static void psdt_prp(struct conf *conf)
{
    struct nvmf_pair pair = open_pair(conf);
    struct rc *rc = pair.io;
    struct nvme_sqe write = nvmf_io(conf, NVM_WRITE, LBA, 1);
    struct sgl sgl = rc_keyed(rc, 0, 512);
    uint8_t capsule[NVME_SQE_LEN];
    struct nvme_cqe cqe;

    write.cid = 77;
    nvme_sqe_emit(capsule, &write); /* PSDT 0. */
    sgl_emit(capsule + SQE_SGL1, &sgl);
    rc_send_message(rc, capsule, sizeof(capsule));
    rc_take_response(rc, 77, &cqe);
    conf_status(conf, "Write with PRPs", cqe.status, NVME_SC_INVALID_FIELD);
    nvmf_close_pair(&pair);
}

/* ---- Capsules of invalid length. */

static void capsule_short(struct conf *conf)
{
    struct nvmf_pair pair = open_pair(conf);

    rc_send_message(pair.io, "not 64 bytes", 12);
    conf_pass(conf, NVMF_QUIET_US);
    nvmf_expect_gone(pair.io);
    conf_expect_alive(conf);
}

static void capsule_too_long(struct conf *conf)
{
    struct nvmf_pair pair = open_pair(conf);
    uint32_t room = in_capsule_bytes(&pair);
    uint8_t *data = conf_alloc(conf, NVME_SQE_LEN + room + 512);

    conf_provokes(conf, BIT(RNIC_COUNT_TX_NAK_OTHER));
    rc_send_message(pair.io, data, NVME_SQE_LEN + room + 512);
    conf_pass(conf, NVMF_QUIET_US);
    nvmf_expect_gone(pair.io);
    conf_expect_alive(conf);
}

/* ---- SQ flow control. */

static void sqhd_counts(struct conf *conf)
{
    struct rc *rc = rc_open_controller(conf, &(struct rc_config){.hsqsize = 7});
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};
    struct nvme_cqe cqe;
    uint16_t last;

    rc_command(rc, &keep_alive, NULL, NULL, 0, &cqe);
    last = cqe.sqhd;
    for (unsigned int i = 0; i < 20; i++) {
        rc_command(rc, &keep_alive, NULL, NULL, 0, &cqe);
        conf_equal(conf, "SQHD", cqe.sqhd, (last + 1u) % 8);
        last = cqe.sqhd;
    }
    rc_close(rc);
}

static void queue_full(struct conf *conf)
{
    struct nvmf_pair pair =
        nvmf_open_pair(conf, &(struct rc_config){.hsqsize = 15});
    struct nvme_sqe read = nvmf_io(conf, NVM_READ, LBA, 1);
    uint32_t seen = 0;

    for (unsigned int i = 0; i < 15; i++) {
        struct sgl sgl = rc_keyed(pair.io, i * 512, 512);

        read.cid = (uint16_t)(100 + i);
        rc_send_capsule(pair.io, &read, &sgl, NULL, 0);
    }
    for (unsigned int i = 0; i < 15; i++) {
        const struct rc_message *message =
            rc_take_message(pair.io, "a response");
        struct nvme_cqe cqe;

        nvme_cqe_parse(&cqe, message->data);
        conf_status(conf, "Read", cqe.status, NVME_SC_SUCCESS);
        conf_check(conf,
                   cqe.cid >= 100 && cqe.cid < 115 &&
                       !(seen & BIT(cqe.cid - 100)),
                   "CID %u was answered twice, or was never used", cqe.cid);
        seen |= BIT(cqe.cid - 100);
    }
    nvmf_close_pair(&pair);
}

static void flow_control_off(struct conf *conf)
{
    struct nvmf_attempt *attempt =
        nvmf_attempt_new(conf, &(struct rc_config){0});
    struct nvme_cqe cqe;
    uint16_t status;

    attempt->command.has_sq_flow_control = false;
    status = nvmf_attempt_run(attempt, &cqe);
    if ((status & NVME_SC_MASK) != NVME_SC_SUCCESS) {
        conf_not_applicable(conf,
                            "the target insists on SQ flow control (TREQ)");
    }
    conf_equal(conf, "SQHD in the response to Connect", cqe.sqhd, 0xffff);
    for (unsigned int i = 0; i < 3; i++) {
        struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};

        rc_command(attempt->rc, &keep_alive, NULL, NULL, 0, &cqe);
        conf_equal(conf, "reserved SQHD in a later response", cqe.sqhd, 0);
    }
    rc_close(attempt->rc);
}

static void response_fields(struct conf *conf)
{
    struct rc *rc = rc_open_controller(conf, &(struct rc_config){0});
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};
    const struct rc_message *message;

    rc_send_capsule(rc, &keep_alive, NULL, NULL, 0);
    message = rc_take_message(rc, "a response");
    conf_equal(conf, "length", message->len_bytes, NVME_CQE_LEN);
    conf_equal(conf, "reserved phase bit",
               get_le16(message->data + CQE_STATUS) & 1, 0);
    conf_equal(conf, "reserved SQID", get_le16(message->data + CQE_SQID), 0);
    rc_close(rc);
}

#define TEST(id, clause, purpose, fn) CONF_TEST(id, clause, purpose, fn)
#define BAD(id, clause, purpose, fn)                                           \
    CONF_TEST(id, clause, purpose, fn, .is_malformed = true)

static const struct conf_test tests[] = {
    TEST("sgl.keyed", "NVMe-oF 1.1 7.3.3", "a keyed data block works",
         data_keyed),
    TEST("sgl.keyed-odd", "NVMe-oF 1.1 2.3", "data at an odd address works",
         keyed_odd),
    TEST("sgl.invalidate", "NVMe-oF 1.1 7.3.3",
         "the response invalidates the key when Invalidate Key is set",
         data_invalidate),
    TEST("sgl.no-invalidate", "NVMe-oF 1.1 7.3.3",
         "the response invalidates no key when Invalidate Key is not set",
         no_invalidate),
    TEST("sgl.invalidate-failed", "NVMe-oF 1.1 7.3.3",
         "the response to a failed command invalidates its key or none",
         invalidate_failed),
    BAD("sgl.address", "NVMe-oF 1.1 2.3.1",
        "a data block by address is refused", type_address),
    BAD("sgl.keyed-offset", "NVMe-oF 1.1 2.3.1",
        "a keyed data block by offset is refused", type_keyed_offset),
    BAD("sgl.transport", "NVMe-oF 1.1 7.3.3",
        "a transport data block is refused", type_transport),
    TEST("sgl.short", "NVMe 1.4 4.4",
         "a descriptor with less data than the blocks need is refused",
         length_short),
    TEST("sgl.zero", "NVMe 1.4 4.4", "a descriptor without data is refused",
         length_zero),
    TEST("capsule.data", "NVMe-oF 1.1 2.1",
         "one block in the capsule is written", in_capsule_block),
    TEST("capsule.offset", "NVMe-oF 1.1 2.3.1",
         "data at an offset in the capsule is written", in_capsule_offset),
    TEST("capsule.full", "NVMe-oF 1.1 2.1",
         "as much data in the capsule as IOCCSZ allows is written",
         in_capsule_full),
    BAD("capsule.missing", "NVMe-oF 1.1 2.3.1",
        "a length beyond the capsule's data is refused", in_capsule_missing),
    BAD("capsule.beyond", "NVMe-oF 1.1 2.3.1",
        "an offset beyond the capsule's data is refused", in_capsule_beyond),
    BAD("capsule.wraps", "NVMe-oF 1.1 2.3.1",
        "an offset and length that wrap are refused", in_capsule_wraps),
    BAD("capsule.prp", "NVMe-oF 1.1 2.3",
        "PSDT 0 (PRPs) is refused over fabrics", psdt_prp),
    BAD("capsule.short", "NVMe-oF 1.1 2.1",
        "a capsule shorter than an SQE ends the connection", capsule_short),
    BAD("capsule.long", "NVMe-oF 1.1 2.1",
        "a capsule longer than IOCCSZ ends the connection", capsule_too_long),
    TEST("flow.sqhd", "NVMe-oF 1.1 2.4.1", "SQHD counts commands and wraps",
         sqhd_counts),
    TEST("flow.full", "NVMe-oF 1.1 2.4.1",
         "each command of a full queue is answered once", queue_full),
    TEST("flow.off", "NVMe-oF 1.1 2.2, 3.3",
         "without SQ flow control SQHD is FFFFh in Connect's response, then "
         "reserved",
         flow_control_off),
    TEST("flow.response", "NVMe-oF 1.1 2.2",
         "reserved fields of a response are zero", response_fields),
};
CONF_TESTS(conf_tests_nvmf_data, "nvmf", tests);
