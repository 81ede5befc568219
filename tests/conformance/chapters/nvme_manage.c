/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Namespaces that are created, attached, formatted, protected and deleted.  The
 * tests make namespaces of their own in what UNVMCAP says is free, and delete
 * them again.
 *
 * Spec: NVM Express 1.4 5.15.2, 5.19, 5.20, 5.23, 5.14.1.4, 8.12, 8.19.
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    SELECT_CREATE = 0,
    SELECT_DELETE = 1,
    SELECT_ATTACH = 0,
    SELECT_DETACH = 1,
    SELECT_RESERVED = 2,
    FORMAT_512 = 0,
    FORMAT_4096 = 1,
    SES_USER_DATA = 1 << 9,
    SES_CRYPTO = 2 << 9,
    NS_NOTICES = 0x100, /* Of feature 0Bh. */
    EVENT_US = 1000000,
    AER_CID = 0x2000,
    BLOCKS = 8,
    UUID_LEN = 16,
};

#define NS_CHANGED_EVENT                                                       \
    (EVENT_TYPE_NOTICE | EVENT_NOTICE_NS_CHANGED << 8 |                        \
     LOG_CHANGED_NS_LIST << 16)

/* ---- Commands. */

static uint64_t granule_bytes(struct nvme *nvme)
{
    conf_status(nvme->conf, "Identify, namespace granularity",
                nvme_identify(nvme, CNS_NS_GRANULARITY, 0), NVME_SC_SUCCESS);
    return get_le64(nvme->admin->mem + ID_GRANULARITY_SIZE);
}

static uint64_t free_bytes(struct nvme *nvme)
{
    conf_status(nvme->conf, "Identify Controller",
                nvme_identify(nvme, CNS_CONTROLLER, 0), NVME_SC_SUCCESS);
    return get_le64(nvme->admin->mem + ID_CTRL_UNVMCAP);
}

/* Not applicable without namespace management, or without room for two. */
static void need_room(struct conf *conf, struct nvme *nvme)
{
    if (!(get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_NS_MANAGEMENT)) {
        conf_not_applicable(conf, "OACS bit 3 is 0");
    }
    if (free_bytes(nvme) < 2 * granule_bytes(nvme)) {
        conf_not_applicable(conf, "UNVMCAP has no room for two namespaces");
    }
}

struct creation {
    uint64_t size, capacity; /* in blocks */
    uint8_t format, dps, nmic;
};

static uint16_t create_ns(struct nvme *nvme, const struct creation *creation,
                          uint32_t *nsid)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_NS_MANAGEMENT,
                           .cdw10 = SELECT_CREATE};
    uint8_t *mem = nvme->admin->mem;
    struct nvme_cqe cqe;
    uint16_t status;

    memset(mem, 0, NVME_IDENTIFY_LEN);
    put_le64(mem + ID_NS_NSZE, creation->size);
    put_le64(mem + ID_NS_NCAP, creation->capacity);
    mem[ID_NS_FLBAS] = creation->format;
    mem[ID_NS_DPS] = creation->dps;
    mem[ID_NS_NMIC] = creation->nmic;
    status = nvme_run(nvme, nvme->admin, &sqe, NVME_IDENTIFY_LEN, &cqe);
    *nsid = cqe.dw0;
    return status;
}

/* Create a namespace of one granule. */
static uint32_t make_ns(struct nvme *nvme, uint8_t format, uint8_t nmic)
{
    uint64_t blocks = granule_bytes(nvme) >> (format == FORMAT_512 ? 9 : 12);
    uint32_t nsid;

    conf_status(nvme->conf, "Namespace Management, create",
                create_ns(nvme,
                          &(struct creation){.size = blocks,
                                             .capacity = blocks,
                                             .format = format,
                                             .nmic = nmic},
                          &nsid),
                NVME_SC_SUCCESS);
    conf_check(nvme->conf, nsid >= 1 && nsid <= nvme->num_ns,
               "the new NSID is %u", nsid);
    return nsid;
}

static uint16_t delete_ns(struct nvme *nvme, uint32_t nsid)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_NS_MANAGEMENT, .nsid = nsid, .cdw10 = SELECT_DELETE};

    return nvme_run(nvme, nvme->admin, &sqe, 0, NULL);
}

static void remove_ns(struct nvme *nvme, uint32_t nsid)
{
    conf_status(nvme->conf, "Namespace Management, delete",
                delete_ns(nvme, nsid), NVME_SC_SUCCESS);
}

static uint16_t attach_list(struct nvme *nvme, uint32_t nsid, uint32_t select,
                            const uint16_t *cntlid, uint16_t count)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_NS_ATTACHMENT, .nsid = nsid, .cdw10 = select};
    uint8_t *mem = nvme->admin->mem;

    memset(mem, 0, NVME_IDENTIFY_LEN);
    put_le16(mem + CTRL_LIST_COUNT, count);
    for (uint16_t i = 0; i < count; i++) {
        put_le16(mem + CTRL_LIST_FIRST + 2 * i, cntlid[i]);
    }
    return nvme_run(nvme, nvme->admin, &sqe, NVME_IDENTIFY_LEN, NULL);
}

static uint16_t attach_to_us(struct nvme *nvme, uint32_t nsid, uint32_t select)
{
    return attach_list(nvme, nsid, select, &nvme->admin->config.cntlid, 1);
}

static void attach_ns(struct nvme *nvme, uint32_t nsid)
{
    conf_status(nvme->conf, "Namespace Attachment, attach",
                attach_to_us(nvme, nsid, SELECT_ATTACH), NVME_SC_SUCCESS);
}

static bool is_listed(struct nvme *nvme, uint8_t cns, uint32_t nsid)
{
    conf_status(nvme->conf, "Identify, list of namespaces",
                nvme_identify(nvme, cns, nsid - 1), NVME_SC_SUCCESS);
    return get_le32(nvme->admin->mem) == nsid;
}

/* Make a namespace that nvme_write() and the like use from now on. */
static uint32_t make_attached(struct nvme *nvme, uint8_t format)
{
    nvme->nsid = make_ns(nvme, format, NMIC_SHARED);
    attach_ns(nvme, nvme->nsid);
    nvme->block_bytes = format == FORMAT_512 ? 512 : 4096;
    return nvme->nsid;
}

static void read_uuid(struct nvme *nvme, uint32_t nsid, uint8_t *nguid)
{
    conf_status(nvme->conf, "Identify Namespace of an allocated NSID",
                nvme_identify(nvme, CNS_ALLOCATED_NS, nsid), NVME_SC_SUCCESS);
    memcpy(nguid, nvme->admin->mem + ID_NS_NGUID, UUID_LEN);
}

#define WITH_ROOM(name)                                                        \
    static void name##_in(struct conf *conf, struct nvme *nvme);               \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct nvme *nvme = nvme_open(conf);                                   \
                                                                               \
        need_room(conf, nvme);                                                 \
        name##_in(conf, nvme);                                                 \
        nvme_close(nvme);                                                      \
    }                                                                          \
    static void name##_in(struct conf *conf, struct nvme *nvme)

/* ---- Creation and deletion. */

WITH_ROOM(create)
{
    uint64_t before = free_bytes(nvme);
    uint64_t size = granule_bytes(nvme);
    uint32_t nsid = make_ns(nvme, FORMAT_512, NMIC_SHARED);

    conf_check(conf, is_listed(nvme, CNS_ALLOCATED_NS_LIST, nsid),
               "the new namespace is not allocated");
    conf_check(conf, !is_listed(nvme, CNS_ACTIVE_NS_LIST, nsid),
               "the new namespace is active before it is attached");
    conf_status(conf, "Identify Namespace of an allocated NSID",
                nvme_identify(nvme, CNS_ALLOCATED_NS, nsid), NVME_SC_SUCCESS);
    conf_equal(conf, "NSZE", (uint32_t)get_le64(nvme->admin->mem + ID_NS_NSZE),
               (uint32_t)(size / 512));
    conf_equal(conf, "NVMCAP",
               (uint32_t)get_le64(nvme->admin->mem + ID_NS_NVMCAP),
               (uint32_t)size);
    conf_check(conf, free_bytes(nvme) == before - size,
               "UNVMCAP did not go down by NVMCAP");
    remove_ns(nvme, nsid);
    conf_check(conf, !is_listed(nvme, CNS_ALLOCATED_NS_LIST, nsid),
               "the deleted namespace is still allocated");
    conf_check(conf, free_bytes(nvme) == before,
               "UNVMCAP is not what it was before");
}

WITH_ROOM(capacity)
{
    uint64_t blocks = free_bytes(nvme) / 512;
    struct creation creation = {
        .size = blocks + 1, .capacity = blocks + 1, .nmic = NMIC_SHARED};
    uint32_t nsid;

    conf_status(conf, "create with one block more than UNVMCAP",
                create_ns(nvme, &creation, &nsid),
                NVME_SC_NS_INSUFFICIENT_CAPACITY);
    creation.size = creation.capacity = blocks;
    conf_status(conf, "create with all of UNVMCAP",
                create_ns(nvme, &creation, &nsid), NVME_SC_SUCCESS);
    conf_check(conf, free_bytes(nvme) == 0, "UNVMCAP is not 0");
    remove_ns(nvme, nsid);
}

WITH_ROOM(fields)
{
    uint64_t blocks = granule_bytes(nvme) / 512;
    uint32_t nsid;
    const struct {
        struct creation creation;
        uint16_t status;
    } rows[] = {
        {{0, 0, 0, 0, 1}, NVME_SC_INVALID_FIELD},
        {{blocks, blocks + 1, 0, 0, 1}, NVME_SC_INVALID_FIELD},
        {{blocks, blocks - 1, 0, 0, 1}, NVME_SC_THIN_PROVISIONING},
        {{blocks, blocks, 2, 0, 1}, NVME_SC_INVALID_FORMAT},
        {{blocks, blocks, 0, 1, 1}, NVME_SC_INVALID_FORMAT},
        {{blocks, blocks, 0, 0, 2}, NVME_SC_INVALID_FIELD},
        {{UINT64_MAX, UINT64_MAX, 1, 0, 1}, NVME_SC_NS_INSUFFICIENT_CAPACITY},
    };
    uint64_t before = free_bytes(nvme);

    if (nvme->ns[ID_NS_NLBAF] != FORMAT_4096) {
        conf_not_applicable(conf, "NLBAF is not 1");
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        conf_note(conf, "creation %zu", i);
        conf_status(conf, "create", create_ns(nvme, &rows[i].creation, &nsid),
                    rows[i].status);
    }
    conf_check(conf, free_bytes(nvme) == before, "UNVMCAP has changed");
}

WITH_ROOM(select_reserved)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_NS_MANAGEMENT,
                           .cdw10 = SELECT_RESERVED};
    uint32_t nsid = make_ns(nvme, FORMAT_512, NMIC_SHARED);

    conf_status(conf, "Namespace Management, SEL 2",
                nvme_run(nvme, nvme->admin, &sqe, 0, NULL),
                NVME_SC_INVALID_FIELD);
    conf_status(conf, "Namespace Attachment, SEL 2",
                attach_to_us(nvme, nsid, SELECT_RESERVED),
                NVME_SC_INVALID_FIELD);
    remove_ns(nvme, nsid);
}

WITH_ROOM(delete_invalid)
{
    uint32_t nsid = make_ns(nvme, FORMAT_512, NMIC_SHARED);

    remove_ns(nvme, nsid);
    conf_status(conf, "delete of NSID 0", delete_ns(nvme, 0),
                NVME_SC_INVALID_NS);
    conf_status(conf, "delete of NSID NN + 1",
                delete_ns(nvme, nvme->num_ns + 1), NVME_SC_INVALID_NS);
    conf_status(conf, "delete of an NSID that is not allocated",
                delete_ns(nvme, nsid), NVME_SC_INVALID_FIELD);
}

/* ---- Attachment. */

WITH_ROOM(attach)
{
    uint32_t nsid = make_ns(nvme, FORMAT_512, NMIC_SHARED);
    const uint8_t *mem = nvme->admin->mem;

    attach_ns(nvme, nsid);
    conf_check(conf, is_listed(nvme, CNS_ACTIVE_NS_LIST, nsid),
               "the attached namespace is not active");
    conf_status(conf, "attach again", attach_to_us(nvme, nsid, SELECT_ATTACH),
                NVME_SC_NS_ALREADY_ATTACHED);
    conf_status(conf, "Identify, controllers of a namespace",
                nvme_identify(nvme, CNS_CONTROLLERS_OF_NS, nsid),
                NVME_SC_SUCCESS);
    conf_equal(conf, "number of controllers", get_le16(mem + CTRL_LIST_COUNT),
               1);
    conf_equal(conf, "CNTLID", get_le16(mem + CTRL_LIST_FIRST),
               nvme->admin->config.cntlid);
    conf_status(conf, "detach", attach_to_us(nvme, nsid, SELECT_DETACH),
                NVME_SC_SUCCESS);
    conf_check(conf, !is_listed(nvme, CNS_ACTIVE_NS_LIST, nsid),
               "the detached namespace is active");
    conf_status(conf, "detach again", attach_to_us(nvme, nsid, SELECT_DETACH),
                NVME_SC_NS_NOT_ATTACHED);
    nvme->nsid = nsid;
    conf_status(conf, "Read of a detached namespace",
                nvme_rw(nvme, NVM_READ, 0, 1), NVME_SC_INVALID_FIELD);
    remove_ns(nvme, nsid);
}

WITH_ROOM(list)
{
    uint32_t nsid = make_ns(nvme, FORMAT_512, NMIC_SHARED);
    uint16_t cntlid = nvme->admin->config.cntlid;
    const uint16_t twice[] = {cntlid, cntlid};
    const uint16_t other[] = {cntlid, 0xffef};

    conf_status(conf, "an empty controller list",
                attach_list(nvme, nsid, SELECT_ATTACH, NULL, 0),
                NVME_SC_CONTROLLER_LIST_INVALID);
    conf_status(conf, "a controller twice",
                attach_list(nvme, nsid, SELECT_ATTACH, twice, 2),
                NVME_SC_CONTROLLER_LIST_INVALID);
    conf_status(conf, "a controller that does not exist",
                attach_list(nvme, nsid, SELECT_ATTACH, other, 2),
                NVME_SC_CONTROLLER_LIST_INVALID);
    conf_check(conf, !is_listed(nvme, CNS_ACTIVE_NS_LIST, nsid),
               "a refused attachment took effect");
    conf_status(conf, "NSID FFFFFFFFh",
                attach_to_us(nvme, NVME_NSID_ALL, SELECT_ATTACH),
                NVME_SC_INVALID_FIELD);
    conf_status(conf, "NSID 0", attach_to_us(nvme, 0, SELECT_ATTACH),
                NVME_SC_INVALID_NS);
    remove_ns(nvme, nsid);
}

WITH_ROOM(private_ns)
{
    struct rc *rc =
        rc_open_controller(conf, &(struct rc_config){.port = 1, .peer = 1});
    uint16_t first = nvme->admin->config.cntlid, second = rc->config.cntlid;
    const uint16_t both[] = {first < second ? first : second,
                             first < second ? second : first};
    uint32_t nsid = make_ns(nvme, FORMAT_512, 0);

    conf_status(conf, "attach a private namespace to two controllers",
                attach_list(nvme, nsid, SELECT_ATTACH, both, 2),
                NVME_SC_NS_IS_PRIVATE);
    attach_ns(nvme, nsid);
    conf_status(conf, "attach a private namespace elsewhere too",
                attach_list(nvme, nsid, SELECT_ATTACH, &second, 1),
                NVME_SC_NS_IS_PRIVATE);
    conf_status(conf, "Identify, controllers of a namespace",
                nvme_identify(nvme, CNS_CONTROLLERS_OF_NS, nsid),
                NVME_SC_SUCCESS);
    conf_equal(conf, "number of controllers",
               get_le16(nvme->admin->mem + CTRL_LIST_COUNT), 1);
    remove_ns(nvme, nsid);
    rc_close(rc);
}

/* The host has connected again before its old association has ended. */
static void private_follows(struct conf *conf)
{
    struct nvme *old = nvme_open_admin(conf), *new;
    uint32_t nsid;

    need_room(conf, old);
    nsid = make_ns(old, FORMAT_512, 0);
    attach_ns(old, nsid);
    new = nvme_open_admin(conf);
    conf_check(conf, !is_listed(new, CNS_ACTIVE_NS_LIST, nsid),
               "a private namespace is attached to two controllers");
    nvme_close(old);
    conf_pass(conf, NVMF_QUIET_US);
    conf_check(conf, is_listed(new, CNS_ACTIVE_NS_LIST, nsid),
               "the host has lost its private namespace");
    remove_ns(new, nsid);
    nvme_close(new);
}

/* ---- Events. */

WITH_ROOM(event)
{
    struct nvme_sqe request = {.opcode = ADMIN_ASYNC_EVENT_REQUEST,
                               .cid = AER_CID};
    struct nvme_cqe cqe;
    uint32_t nsid;

    conf_status(conf, "Set Features 0Bh",
                nvme_set_feature(nvme, FEATURE_ASYNC_EVENT_CONFIG, NS_NOTICES),
                NVME_SC_SUCCESS);
    (void)nvme_log(nvme, LOG_CHANGED_NS_LIST, LOG_CHANGED_NS_LIST_LEN);
    nsid = make_ns(nvme, FORMAT_512, NMIC_SHARED);
    rc_send_capsule(nvme->admin, &request, NULL, NULL, 0);
    attach_ns(nvme, nsid);
    conf_check(conf, nvme_take_other(nvme, AER_CID, EVENT_US, &cqe),
               "no event came after the attachment");
    conf_equal(conf, "the event", cqe.dw0, NS_CHANGED_EVENT);
    conf_equal(
        conf, "the changed namespace",
        get_le32(nvme_log(nvme, LOG_CHANGED_NS_LIST, LOG_CHANGED_NS_LIST_LEN)),
        nsid);
    conf_equal(
        conf, "the list after it was read",
        get_le32(nvme_log(nvme, LOG_CHANGED_NS_LIST, LOG_CHANGED_NS_LIST_LEN)),
        0);
    request.cid++;
    rc_send_capsule(nvme->admin, &request, NULL, NULL, 0);
    remove_ns(nvme, nsid);
    conf_check(conf, nvme_take_other(nvme, AER_CID + 1, EVENT_US, &cqe),
               "no event came after the deletion");
}

/* ---- Data. */

WITH_ROOM(data)
{
    uint8_t first[UUID_LEN], second[UUID_LEN];
    uint32_t ours = nvme->nsid;
    uint32_t nsid;

    nvme_write(nvme, 0, BLOCKS, 1);
    nsid = make_attached(nvme, FORMAT_512);
    read_uuid(nvme, nsid, first);
    nvme_verify_zeroes(nvme, 0, BLOCKS);
    nvme_write(nvme, 0, BLOCKS, 2);
    conf_status(conf, "Read beyond the end",
                nvme_rw(nvme, NVM_READ, granule_bytes(nvme) / 512, 1),
                NVME_SC_LBA_RANGE);
    nvme->nsid = ours;
    nvme_verify(nvme, 0, BLOCKS, 1);
    nvme->nsid = nsid;
    nvme_verify(nvme, 0, BLOCKS, 2);
    remove_ns(nvme, nsid);
    conf_equal(conf, "the next NSID", make_attached(nvme, FORMAT_512), nsid);
    read_uuid(nvme, nsid, second);
    conf_check(conf, memcmp(first, second, UUID_LEN) != 0,
               "a new namespace has the NGUID of a deleted one");
    nvme_verify_zeroes(nvme, 0, BLOCKS);
    remove_ns(nvme, nsid);
}

WITH_ROOM(side_by_side)
{
    uint32_t small = make_attached(nvme, FORMAT_512);
    uint32_t large = make_attached(nvme, FORMAT_4096);

    nvme_write(nvme, 1, BLOCKS, 4);
    nvme->nsid = small;
    nvme->block_bytes = 512;
    nvme_write(nvme, 1, BLOCKS, 5);
    nvme_verify_zeroes(nvme, 1 + BLOCKS, BLOCKS);
    nvme->nsid = large;
    nvme->block_bytes = 4096;
    nvme_verify(nvme, 1, BLOCKS, 4);
    nvme_verify_zeroes(nvme, 1 + BLOCKS, 1);
    conf_status(conf, "Read beyond the end",
                nvme_rw(nvme, NVM_READ, granule_bytes(nvme) / 4096, 1),
                NVME_SC_LBA_RANGE);
    remove_ns(nvme, small);
    nvme_verify(nvme, 1, BLOCKS, 4);
    remove_ns(nvme, large);
}

static uint16_t format_ns(struct nvme *nvme, uint32_t nsid, uint32_t dword10)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_FORMAT_NVM, .nsid = nsid, .cdw10 = dword10};

    return nvme_run(nvme, nvme->admin, &sqe, 0, NULL);
}

WITH_ROOM(format)
{
    uint32_t nsid = make_attached(nvme, FORMAT_512);
    uint32_t blocks = (uint32_t)(granule_bytes(nvme) / 4096);

    nvme_write(nvme, 0, BLOCKS, 6);
    conf_status(conf, "Format of an LBA format beyond NLBAF",
                format_ns(nvme, nsid, 2), NVME_SC_INVALID_FORMAT);
    conf_status(conf, "Format with protection information",
                format_ns(nvme, nsid, 1 << 5), NVME_SC_INVALID_FORMAT);
    conf_status(conf, "Format with a cryptographic erase",
                format_ns(nvme, nsid, SES_CRYPTO), NVME_SC_INVALID_FIELD);
    conf_status(conf, "Format of NSID 0", format_ns(nvme, 0, 0),
                NVME_SC_INVALID_NS);
    nvme_verify(nvme, 0, BLOCKS, 6);
    conf_status(conf, "Format", format_ns(nvme, nsid, FORMAT_4096),
                NVME_SC_SUCCESS);
    conf_status(conf, "Identify Namespace",
                nvme_identify(nvme, CNS_NAMESPACE, nsid), NVME_SC_SUCCESS);
    conf_equal(conf, "FLBAS", nvme->admin->mem[ID_NS_FLBAS], FORMAT_4096);
    conf_equal(conf, "NSZE", (uint32_t)get_le64(nvme->admin->mem + ID_NS_NSZE),
               blocks);
    nvme->block_bytes = 4096;
    nvme_verify_zeroes(nvme, 0, 1);
    nvme_write(nvme, 0, BLOCKS, 7);
    conf_status(conf, "Format with an erasure of user data",
                format_ns(nvme, nsid, FORMAT_512 | SES_USER_DATA),
                NVME_SC_SUCCESS);
    nvme->block_bytes = 512;
    nvme_verify_zeroes(nvme, 0, BLOCKS);
    remove_ns(nvme, nsid);
}

/* A host that never sends the second half of a fused pair must not hold up the
 * Format for ever. */
WITH_ROOM(format_fused)
{
    uint32_t nsid = make_attached(nvme, FORMAT_512);
    struct nvme_sqe compare = nvme_rw_sqe(nvme, NVM_COMPARE, 0, 1);
    struct sgl sgl = rc_keyed(nvme->io, 0, 512);
    struct nvme_cqe cqe;
    uint16_t cid;

    if (!(get_le16(nvme->ctrl + ID_CTRL_FUSES) & FUSES_COMPARE_AND_WRITE)) {
        conf_not_applicable(conf, "FUSES bit 0 is 0");
    }
    compare.fuse = SQE_FUSE_FIRST;
    cid = rc_send_capsule(nvme->io, &compare, &sgl, NULL, 0);
    conf_pass(conf, NVMF_QUIET_US);
    conf_status(conf, "Format", format_ns(nvme, nsid, FORMAT_4096),
                NVME_SC_SUCCESS);
    rc_take_response(nvme->io, cid, &cqe);
    conf_status(conf, "the first half", cqe.status & NVME_SC_MASK,
                NVME_SC_FUSED_MISSING);
    remove_ns(nvme, nsid);
}

/* ---- Write protection, and writes that the target has taken before. */

/* Send a Write whose data the target has to read, and do not let it. */
static uint16_t begin_write(struct nvme *nvme)
{
    struct nvme_sqe write = nvme_rw_sqe(nvme, NVM_WRITE, 0, BLOCKS);
    struct sgl sgl = rc_keyed(nvme->io, 0, BLOCKS * nvme->block_bytes);
    uint16_t cid;

    nvme_write(nvme, 0, BLOCKS, 20);
    nvme_fill(nvme, 0, BLOCKS, 21);
    conf_provokes(nvme->conf, CONF_LOSS);
    nvme->io->answers = false;
    cid = rc_send_capsule(nvme->io, &write, &sgl, NULL, 0);
    conf_pass(nvme->conf, NVMF_QUIET_US);
    return cid;
}

/*
 * A command on the admin queue forbids such writes from now on.  It is answered
 * when the Write has ended, whatever its status is, so that nothing is written
 * afterwards.
 */
static void expect_wait(struct nvme *nvme, const char *what, uint16_t cid,
                        uint16_t write_cid)
{
    struct nvme_cqe cqe;

    conf_check(nvme->conf, !nvme_take_other(nvme, cid, NVMF_QUIET_US, &cqe),
               "%s is answered before the Write", what);
    nvme->io->answers = true;
    rc_take_response(nvme->io, write_cid, &cqe);
    nvme_take(nvme, nvme->admin, cid, &cqe);
    conf_status(nvme->conf, what, cqe.status & NVME_SC_MASK, NVME_SC_SUCCESS);
}

/* ---- Write protection. */

static uint16_t set_protection(struct nvme *nvme, uint32_t nsid, uint32_t state,
                               uint32_t save)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_SET_FEATURES,
                           .nsid = nsid,
                           .cdw10 = FEATURE_NS_WRITE_PROTECTION | save,
                           .cdw11 = state};

    return nvme_run(nvme, nvme->admin, &sqe, 0, NULL);
}

WITH_ROOM(protect)
{
    uint32_t nsid = make_attached(nvme, FORMAT_512);

    if (!(nvme->ctrl[ID_CTRL_NWPC] & NWPC_WRITE_PROTECT)) {
        conf_not_applicable(conf, "NWPC bit 0 is 0");
    }
    nvme_write(nvme, 0, BLOCKS, 8);
    conf_status(conf, "write protection of NSID 0",
                set_protection(nvme, 0, 1, 0), NVME_SC_INVALID_NS);
    conf_status(conf, "write protection, state 5",
                set_protection(nvme, nsid, 5, 0), NVME_SC_INVALID_FIELD);
    conf_status(conf, "write protection with Save",
                set_protection(nvme, nsid, 1, 1u << 31),
                NVME_SC_FEATURE_NOT_SAVEABLE);
    conf_status(conf, "write protection", set_protection(nvme, nsid, 1, 0),
                NVME_SC_SUCCESS);
    conf_status(conf, "Identify Namespace",
                nvme_identify(nvme, CNS_NAMESPACE, nsid), NVME_SC_SUCCESS);
    conf_equal(conf, "NSATTR", nvme->admin->mem[ID_NS_NSATTR],
               NSATTR_WRITE_PROTECTED);
    conf_status(conf, "Write", nvme_rw(nvme, NVM_WRITE, 0, 1),
                NVME_SC_NS_WRITE_PROTECTED);
    conf_status(conf, "Format", format_ns(nvme, nsid, 0),
                NVME_SC_NS_WRITE_PROTECTED);
    conf_status(conf, "delete", delete_ns(nvme, nsid),
                NVME_SC_NS_WRITE_PROTECTED);
    nvme_verify(nvme, 0, BLOCKS, 8);
    conf_status(conf, "no write protection", set_protection(nvme, nsid, 0, 0),
                NVME_SC_SUCCESS);
    nvme_write(nvme, 0, BLOCKS, 9);
    remove_ns(nvme, nsid);
}

/* ---- Power cuts. */

static void power_cut(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe flush = {.opcode = NVM_FLUSH};
    uint8_t before[UUID_LEN], after[UUID_LEN];
    uint32_t nsid;

    need_room(conf, nvme);
    nsid = make_attached(nvme, FORMAT_4096);
    read_uuid(nvme, nsid, before);
    nvme_write(nvme, 3, BLOCKS, 10);
    flush.nsid = nsid;
    conf_status(conf, "Flush", nvme_run(nvme, nvme->io, &flush, 0, NULL),
                NVME_SC_SUCCESS);
    conf_power_cut(conf);
    nvme = nvme_open(conf);
    conf_check(conf, is_listed(nvme, CNS_ACTIVE_NS_LIST, nsid),
               "the namespace is not active after the power cut");
    read_uuid(nvme, nsid, after);
    conf_same(conf, "NGUID after the power cut", after, before, UUID_LEN);
    nvme->nsid = nsid;
    nvme->block_bytes = 4096;
    nvme_verify(nvme, 3, BLOCKS, 10);
    remove_ns(nvme, nsid);
    nvme_close(nvme);
}

/* What was in the write cache when the old namespace was deleted, and what was
 * under it, must not come back in the new one. */
static void power_data(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe flush = {.opcode = NVM_FLUSH};
    uint32_t nsid;

    need_room(conf, nvme);
    nsid = make_attached(nvme, FORMAT_512);
    nvme_write(nvme, 0, BLOCKS, 11);
    flush.nsid = nsid;
    conf_status(conf, "Flush", nvme_run(nvme, nvme->io, &flush, 0, NULL),
                NVME_SC_SUCCESS);
    nvme_write(nvme, BLOCKS / 2, BLOCKS, 12);
    remove_ns(nvme, nsid);
    nsid = make_attached(nvme, FORMAT_512);
    conf_power_cut(conf);
    nvme = nvme_open(conf);
    nvme->nsid = nsid;
    nvme->block_bytes = 512;
    nvme_verify_zeroes(nvme, 0, 2 * BLOCKS);
    remove_ns(nvme, nsid);
    nvme_close(nvme);
}

WITH_ROOM(protect_drains)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_SET_FEATURES,
                           .cdw10 = FEATURE_NS_WRITE_PROTECTION,
                           .cdw11 = 1};
    uint32_t nsid = make_attached(nvme, FORMAT_512);
    uint16_t write_cid;

    if (!(nvme->ctrl[ID_CTRL_NWPC] & NWPC_WRITE_PROTECT)) {
        conf_not_applicable(conf, "NWPC bit 0 is 0");
    }
    sqe.nsid = nsid;
    write_cid = begin_write(nvme);
    expect_wait(nvme, "Set Features",
                rc_send_capsule(nvme->admin, &sqe, NULL, NULL, 0), write_cid);
    conf_status(conf, "Write", nvme_rw(nvme, NVM_WRITE, 0, 1),
                NVME_SC_NS_WRITE_PROTECTED);
    nvme_verify(nvme, 0, BLOCKS, 21);
    conf_status(conf, "no write protection", set_protection(nvme, nsid, 0, 0),
                NVME_SC_SUCCESS);
    remove_ns(nvme, nsid);
}

WITH_ROOM(detach_drains)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_NS_ATTACHMENT,
                           .cdw10 = SELECT_DETACH};
    uint32_t nsid = make_attached(nvme, FORMAT_512);
    struct sgl sgl = rc_keyed(nvme->admin, 0, NVME_IDENTIFY_LEN);
    uint16_t write_cid;

    sqe.nsid = nsid;
    write_cid = begin_write(nvme);
    memset(nvme->admin->mem, 0, NVME_IDENTIFY_LEN);
    put_le16(nvme->admin->mem + CTRL_LIST_COUNT, 1);
    put_le16(nvme->admin->mem + CTRL_LIST_FIRST, nvme->admin->config.cntlid);
    expect_wait(nvme, "Namespace Attachment",
                rc_send_capsule(nvme->admin, &sqe, &sgl, NULL, 0), write_cid);
    conf_status(conf, "Write", nvme_rw(nvme, NVM_WRITE, 0, 1),
                NVME_SC_INVALID_FIELD);
    attach_ns(nvme, nsid);
    nvme_verify(nvme, 0, BLOCKS, 21);
    remove_ns(nvme, nsid);
}

/* What a protected namespace holds was committed before. */
static void protect_durable(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe flush = {.opcode = NVM_FLUSH};
    uint32_t nsid;

    need_room(conf, nvme);
    if (!(nvme->ctrl[ID_CTRL_NWPC] & NWPC_WRITE_PROTECT)) {
        conf_not_applicable(conf, "NWPC bit 0 is 0");
    }
    nsid = make_attached(nvme, FORMAT_512);
    nvme_write(nvme, 0, BLOCKS, 22);
    flush.nsid = nsid;
    conf_status(conf, "Flush", nvme_run(nvme, nvme->io, &flush, 0, NULL),
                NVME_SC_SUCCESS);
    nvme_write(nvme, 0, BLOCKS, 23);
    conf_status(conf, "write protection", set_protection(nvme, nsid, 1, 0),
                NVME_SC_SUCCESS);
    conf_power_cut(conf);
    nvme = nvme_open(conf);
    nvme->nsid = nsid;
    nvme->block_bytes = 512;
    conf_status(conf, "Write after the power cut",
                nvme_rw(nvme, NVM_WRITE, 0, 1), NVME_SC_NS_WRITE_PROTECTED);
    nvme_verify(nvme, 0, BLOCKS, 23);
    conf_status(conf, "no write protection", set_protection(nvme, nsid, 0, 0),
                NVME_SC_SUCCESS);
    remove_ns(nvme, nsid);
    nvme_close(nvme);
}

/* ---- Persistent events: NVMe 2.0 5.16.1.14. */

WITH_ROOM(recorded)
{
    const uint8_t *data;
    uint64_t blocks = granule_bytes(nvme) >> 9;
    uint32_t nsid;

    if (!(nvme->ctrl[ID_CTRL_LPA] & LPA_PERSISTENT_EVENT)) {
        conf_not_applicable(conf, "LPA bit 4 is 0");
    }
    nsid = make_ns(nvme, FORMAT_512, NMIC_SHARED);
    data = nvme_event(nvme, 0, PEL_TYPE_CHANGE_NS) + PEL_EVENT_HEADER_LEN;
    conf_equal(conf, "dword 10", get_le32(data + PEL_NS_CDW10), SELECT_CREATE);
    conf_check(conf, get_le64(data + PEL_NS_NSZE) == blocks,
               "NSZE of the event is %llu",
               (unsigned long long)get_le64(data + PEL_NS_NSZE));
    conf_equal(conf, "NMIC", data[PEL_NS_NMIC], NMIC_SHARED);
    conf_equal(conf, "NSID", get_le32(data + PEL_NS_NSID), nsid);
    attach_ns(nvme, nsid);
    conf_status(conf, "Format", format_ns(nvme, nsid, FORMAT_4096),
                NVME_SC_SUCCESS);
    data = nvme_event(nvme, 0, PEL_TYPE_FORMAT_END) + PEL_EVENT_HEADER_LEN;
    conf_equal(conf, "NSID", get_le32(data + PEL_FORMAT_NSID), nsid);
    conf_equal(conf, "status", get_le16(data + PEL_FORMAT_STATUS) >> 1, 0);
    data = nvme_event(nvme, 1, PEL_TYPE_FORMAT_START) + PEL_EVENT_HEADER_LEN;
    conf_equal(conf, "NSID", get_le32(data + PEL_FORMAT_NSID), nsid);
    conf_equal(conf, "dword 10", get_le32(data + PEL_FORMAT_CDW10),
               FORMAT_4096);
    remove_ns(nvme, nsid);
    data = nvme_event(nvme, 0, PEL_TYPE_CHANGE_NS) + PEL_EVENT_HEADER_LEN;
    conf_equal(conf, "dword 10", get_le32(data + PEL_NS_CDW10), SELECT_DELETE);
    conf_equal(conf, "NSID", get_le32(data + PEL_NS_NSID), nsid);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST("manage." id, "NVMe 1.4 " clause, purpose, __VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("create", "5.20, 8.12",
         "a new namespace is allocated and not active, and UNVMCAP counts it",
         create),
    TEST("capacity", "5.20",
         "UNVMCAP is exact: all of it can be created, one block more cannot",
         capacity),
    TEST("fields", "5.20", "invalid fields of a creation are refused", fields),
    TEST("select", "5.19, 5.20", "SEL 2 is refused", select_reserved),
    TEST("delete-invalid", "5.20, 6.1",
         "an NSID that is invalid or not allocated cannot be deleted",
         delete_invalid),
    TEST("attach", "5.19, 5.15.2",
         "a namespace is active exactly while it is attached", attach),
    TEST("list", "5.19", "an invalid controller list is refused", list),
    TEST("private", "5.19, 8.12",
         "a private namespace is attached to one controller", private_ns),
    TEST("private-follows", "5.19, 8.12",
         "a private namespace stays attached to its host, which connects again",
         private_follows),
    TEST("event", "5.2, 5.14.1.4",
         "attachment and deletion are reported and listed", event),
    TEST("data", "8.12, 7.10",
         "a new namespace has no data and no identifier of a former one", data),
    TEST("side-by-side", "5.20",
         "namespaces with 512 and 4096 bytes a block do not touch each other",
         side_by_side),
    TEST("format", "5.23", "Format changes the block size and erases", format),
    TEST("format-fused", "5.23, 6.2",
         "half of a fused pair does not hold up a Format", format_fused),
    CONF_TEST("manage.recorded", "NVMe 2.0 5.16.1.14.1.6",
              "creation, Format and deletion are persistent events", recorded),
    TEST("protect", "8.19, 5.21.1",
         "a write-protected namespace cannot be written or deleted", protect),
    TEST("protect-drains", "8.19",
         "no write follows the answer that a namespace is protected",
         protect_drains),
    TEST("detach-drains", "5.19, 8.12",
         "no write follows the answer that a namespace is detached",
         detach_drains),
    TEST("protect-durable", "5.21.1.28, 8.19",
         "what is protected survives a power cut", protect_durable,
         .needs = CONF_NEEDS_CONTROL),
    TEST("power", "8.12", "namespaces survive a power cut", power_cut,
         .needs = CONF_NEEDS_CONTROL),
    TEST("power-data", "8.12, 7.10",
         "a power cut brings no data of a deleted namespace back", power_data,
         .needs = CONF_NEEDS_CONTROL),
};
CONF_TESTS(conf_tests_nvme_manage, "nvme", tests);
