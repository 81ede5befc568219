/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limits of one association: entries of a queue, queues of a controller,
 * event requests, Aborts, bytes of a command. The target itself reports its
 * limits (CAP, Set Features, Identify); it refuses what exceeds them, and comes
 * to no harm.
 */
#include <string.h>

#include "cm_lib.h"
#include "firmware/native/native.h"
#include "limits_lib.h"
#include "nvme_lib.h"

enum {
    CAP_MQES_MASK = 0xffff,
    ADMIN_MAX = 32, /* ASQSZ in the discovery log. */
    FULL_MAX = 256,
    QUEUES_MAX = 64,
    NS_LISTED = NVME_IDENTIFY_LEN / 4,
    NS_LBA = 24,
    LBAF_LBADS = 2, /* Offset in a format's descriptor. */
};

static uint16_t max_entries(struct rc *admin)
{
    uint64_t cap;

    conf_status(admin->conf, "Property Get CAP",
                nvmf_get(admin, PROPERTY_CAP, 8, &cap), NVME_SC_SUCCESS);
    return (uint16_t)((cap & CAP_MQES_MASK) + 1);
}

/* ---- Entries of a queue: in the REQ. */

static void sq_max(struct conf *conf)
{
    struct nvmf_pair pair;
    struct rc *admin = rc_open_controller(conf, &(struct rc_config){0});
    uint16_t entries = max_entries(admin);

    rc_close(admin);
    pair = nvmf_open_pair(
        conf, &(struct rc_config){.hsqsize = (uint16_t)(entries - 1)});
    for (unsigned int i = 0; i < 2u * entries; i++) {
        struct nvme_sqe flush = nvmf_io(conf, NVM_FLUSH, 0, 1);
        struct nvme_cqe cqe;

        conf_status(conf, "Flush",
                    rc_command(pair.io, &flush, NULL, NULL, 0, &cqe),
                    NVME_SC_SUCCESS);
        conf_equal(conf, "SQHD", cqe.sqhd, (i + 2) % entries);
    }
    nvmf_close_pair(&pair);
}

static void refuse_hsqsize(struct conf *conf, uint16_t qid, uint16_t hsqsize)
{
    struct rc *admin = rc_open_controller(conf, &(struct rc_config){0});
    struct cm_attempt *attempt = cm_attempt_new(
        conf, &(struct rc_config){
                  .qid = qid, .cntlid = admin->config.cntlid, .peer = 1});
    struct nvme_rdma_req nvme = {
        .qid = qid,
        .hrqsize = (uint16_t)(hsqsize + 1),
        .hsqsize = hsqsize,
        .cntlid = qid != 0 ? admin->config.cntlid : (uint16_t)0,
    };

    if (nvme.hrqsize == 0) {
        nvme.hrqsize = hsqsize;
    }
    nvme_rdma_req_emit(attempt->nvme, &nvme);
    cm_expect_nvme_rej(attempt, NVME_RDMA_INVALID_HSQSIZE);
    nvmf_expect_works(admin);
    rc_close(admin);
    conf_expect_alive(conf);
}

static uint16_t entries_of(struct conf *conf)
{
    struct rc *admin = rc_open_controller(conf, &(struct rc_config){0});
    uint16_t entries = max_entries(admin);

    rc_close(admin);
    return entries;
}

static void sq_one_more(struct conf *conf)
{
    refuse_hsqsize(conf, 1, entries_of(conf));
}

static void sq_endless(struct conf *conf)
{
    refuse_hsqsize(conf, 1, 0xffff);
}

static void admin_max(struct conf *conf)
{
    struct rc *admin =
        rc_open_controller(conf, &(struct rc_config){.hsqsize = ADMIN_MAX - 1});

    for (unsigned int i = 0; i < 2 * ADMIN_MAX; i++) {
        nvmf_expect_works(admin);
    }
    rc_close(admin);
}

static void admin_one_more(struct conf *conf)
{
    if (!conf_target(conf)->is_ours) {
        conf_not_applicable(conf, "the target's ASQSZ is not 32");
    }
    refuse_hsqsize(conf, 0, ADMIN_MAX);
}

/* ---- Entries of a queue: in Connect. */

static void refuse_sqsize(struct conf *conf, uint16_t hsqsize, uint16_t sqsize)
{
    struct rc *admin = rc_open_controller(conf, &(struct rc_config){0});
    struct rc_config config = admin->config;
    struct nvme_sqe flush = nvmf_io(conf, NVM_FLUSH, 0, 1);
    struct nvmf_attempt *attempt;
    struct nvme_cqe cqe;

    config.qid = 1;
    config.hsqsize = hsqsize;
    attempt = nvmf_attempt_new(conf, &config);
    attempt->command.sqsize = sqsize;
    conf_status(conf, "Connect with too large an SQSIZE",
                nvmf_attempt_run(attempt, &cqe), NVME_SC_CONNECT_INVALID);
    conf_equal(conf, "IATTR and IPO, which point at SQSIZE", cqe.dw0 & 0x1ffff,
               CONNECT_SQSIZE);
    nvmf_expect_works(admin);
    attempt->command.sqsize = hsqsize;
    conf_status(conf, "Connect with the REQ's SQSIZE",
                nvmf_attempt_run(attempt, &cqe), NVME_SC_SUCCESS);
    conf_status(conf, "Flush",
                rc_command(attempt->rc, &flush, NULL, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    rc_close(attempt->rc);
    rc_close(admin);
}

static void sqsize_above_mqes(struct conf *conf)
{
    uint16_t entries = entries_of(conf);

    refuse_sqsize(conf, (uint16_t)(entries - 1), entries);
}

static void sqsize_above_hsqsize(struct conf *conf)
{
    refuse_sqsize(conf, 15, 16);
}

static void sqsize_endless(struct conf *conf)
{
    refuse_sqsize(conf, 1, 0xffff);
}

/* ---- A queue with all its entries in use. */

struct counted {
    unsigned int done, good;
};

static void on_done(void *ctx, const struct host_result *result)
{
    struct counted *counted = ctx;

    counted->done++;
    counted->good += !result->is_lost &&
                     (result->cqe.status & NVME_SC_MASK) == NVME_SC_SUCCESS;
}

struct counting {
    struct counted *counted;
    unsigned int until;
};

static bool has_counted(void *ctx)
{
    const struct counting *counting = ctx;

    return counting->counted->done == counting->until;
}

/* Submit as many writes, then as many reads, as the queue holds, for several
 * rounds; verify all data. */
static void fill_queue(struct conf *conf, uint16_t depth)
{
    struct nvme_host *host = conf_connect(
        conf, &(struct conf_session){.io_queues = 1, .depth = depth});
    uint8_t *data = conf_host(conf)->data;
    uint8_t *expected = conf_alloc(conf, FULL_MAX * CONF_BLOCK);
    unsigned int at_once = depth - 1u;

    conf_needs_block(conf);
    for (unsigned int round = 0; round < 6; round++) {
        bool is_write = round % 2 == 0;
        struct counted counted = {0};
        struct counting all = {&counted, at_once};
        struct host_io io = {
            .qid = 1,
            .opcode = is_write ? NVM_WRITE : NVM_READ,
            .kind = HOST_DATA_KEYED,
            .nsid = conf_target(conf)->nsid,
            .blocks = 1,
            .len_bytes = CONF_BLOCK,
            .done = on_done,
            .ctx = &counted,
        };

        conf_fill(expected, 0, at_once, round / 2);
        memset(data, 0xa5, (size_t)at_once * CONF_BLOCK);
        if (is_write) {
            memcpy(data, expected, (size_t)at_once * CONF_BLOCK);
        }
        for (unsigned int i = 0; i < at_once; i++) {
            io.lba = i;
            io.offset = i * CONF_BLOCK;
            conf_check(conf, host_io_submit(host, &io),
                       "command %u of %u did not fit in the queue", i + 1,
                       at_once);
        }
        conf_check(conf, conf_wait(conf, has_counted, &all, CONF_ANSWER_US),
                   "%u of %u commands were answered", counted.done, at_once);
        conf_equal(conf, "commands that succeeded", counted.good, at_once);
        conf_same(conf, "data", data, expected, (size_t)at_once * CONF_BLOCK);
    }
    host_disconnect(host);
}

static void full_max(struct conf *conf)
{
    fill_queue(conf, MIN(entries_of(conf), (uint16_t)NVMF_MAX_DEPTH));
}

static void full_two(struct conf *conf)
{
    fill_queue(conf, 2);
}

/* ---- Queues of a controller. */

static unsigned int request_queues(struct rc *admin, unsigned int wanted)
{
    struct nvme_sqe set = {.opcode = ADMIN_SET_FEATURES,
                           .cdw10 = FEATURE_NUMBER_OF_QUEUES,
                           .cdw11 = (wanted - 1) << 16 | (wanted - 1)};
    struct nvme_cqe cqe;

    conf_status(admin->conf, "Set Features (number of queues)",
                rc_command(admin, &set, NULL, NULL, 0, &cqe), NVME_SC_SUCCESS);
    conf_equal(admin->conf, "as many CQs as SQs", cqe.dw0 >> 16,
               cqe.dw0 & 0xffff);
    return (cqe.dw0 & 0xffff) + 1;
}

static struct rc *open_queue(struct rc *admin, uint16_t qid)
{
    struct rc_config config = admin->config;

    config.qid = qid;
    config.hsqsize = 7;
    return rc_open_nvme(admin->conf, &config);
}

static void expect_queue_refused(struct rc *admin, uint16_t qid)
{
    struct rc_config config = admin->config;
    struct cm_attempt *attempt;
    struct nvmf_attempt *connect;
    struct nvme_cqe cqe;

    config.qid = qid;
    config.hsqsize = 7;
    attempt = cm_attempt_new(admin->conf, &config);
    rc_send_req(attempt->rc, &attempt->req);
    if (rc_take_cm_within(attempt->rc, CM_REJ, CM_QUIET_US) != NULL) {
        return;
    }
    rc_take_rep(attempt->rc);
    rc_send_rtu(attempt->rc);
    rc_close(attempt->rc);
    connect = nvmf_attempt_new(admin->conf, &config);
    conf_check(admin->conf,
               (nvmf_attempt_run(connect, &cqe) & NVME_SC_MASK) !=
                   NVME_SC_SUCCESS,
               "I/O queue %u was accepted, although fewer were granted", qid);
    rc_close(connect->rc);
}

static void flush_on(struct rc *rc)
{
    struct nvme_sqe flush = nvmf_io(rc->conf, NVM_FLUSH, 0, 1);

    conf_status(rc->conf, "Flush", rc_command(rc, &flush, NULL, NULL, 0, NULL),
                NVME_SC_SUCCESS);
}

static void queues_granted(struct conf *conf, unsigned int wanted)
{
    struct rc *admin = rc_open_controller(conf, &(struct rc_config){0});
    unsigned int granted = request_queues(admin, wanted);
    struct rc *io[QUEUES_MAX];

    /* 5.21.1.7 lets a target grant another number than was asked for. */
    conf_note(conf, "%u queues were asked for, %u granted", wanted, granted);
    conf_check(conf, granted != 0, "no queue was granted");
    conf_check(conf, granted <= wanted || !conf_target(conf)->is_ours,
               "the target granted more queues than were asked for");
    granted = MIN(granted, (unsigned int)QUEUES_MAX);
    for (unsigned int i = 0; i < granted; i++) {
        io[i] = open_queue(admin, (uint16_t)(i + 1));
    }
    if (granted < QUEUES_MAX) {
        expect_queue_refused(admin, (uint16_t)(granted + 1));
    }
    expect_queue_refused(admin, 0xffff);
    for (unsigned int i = 0; i < granted; i++) {
        flush_on(io[i]);
    }
    rc_close(io[granted / 2]);
    conf_pass(conf, NVMF_QUIET_US);
    if (nvmf_keep_alive(admin) == NVME_SC_SUCCESS) {
        io[granted / 2] = open_queue(admin, (uint16_t)(granted / 2 + 1));
        flush_on(io[granted / 2]);
    }
    for (unsigned int i = 0; i < granted; i++) {
        rc_close(io[i]);
    }
    rc_close(admin);
}

static void queues_3(struct conf *conf)
{
    queues_granted(conf, 3);
}

static void queues_all(struct conf *conf)
{
    queues_granted(conf, 0xffff);
}

/* ---- Events and aborts. */

static uint16_t send_aer(struct nvme *nvme)
{
    struct nvme_sqe aer = {.opcode = ADMIN_ASYNC_EVENT_REQUEST};

    return rc_send_capsule(nvme->admin, &aer, NULL, NULL, 0);
}

static uint16_t send_abort(struct nvme *nvme, uint16_t cid)
{
    struct nvme_sqe abort = {.opcode = ADMIN_ABORT,
                             .cdw10 = (uint32_t)cid << 16};

    return rc_send_capsule(nvme->admin, &abort, NULL, NULL, 0);
}

static void aer_limit(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    unsigned int limit = nvme->ctrl[ID_CTRL_AERL] + 1u;
    uint16_t first = 0;
    struct nvme_cqe cqe;

    for (unsigned int i = 0; i < limit; i++) {
        uint16_t cid = send_aer(nvme);

        first = i == 0 ? cid : first;
    }
    nvme_take(nvme, nvme->admin, send_aer(nvme), &cqe);
    conf_status(conf, "one event request more than AERL", cqe.status,
                NVME_SC_AER_LIMIT);
    conf_equal(conf, "event requests answered", nvme->num_others, 0);
    nvme_expect_works(nvme);

    nvme_take(nvme, nvme->admin, send_abort(nvme, first), &cqe);
    conf_status(conf, "Abort", cqe.status, NVME_SC_SUCCESS);
    if ((cqe.dw0 & 1) == 0) {
        conf_check(conf, nvme_take_other(nvme, first, CONF_ANSWER_US, &cqe),
                   "the aborted event request was not answered");
        conf_status(conf, "the aborted event request", cqe.status,
                    NVME_SC_ABORT_REQUESTED);
        (void)send_aer(nvme); /* The aborted request's place is free again. */
        nvme_take(nvme, nvme->admin, send_aer(nvme), &cqe);
        conf_status(conf, "again one event request more than AERL", cqe.status,
                    NVME_SC_AER_LIMIT);
    }
    nvme_close(nvme);
}

/* Aborts of commands that do not exist, more at once than ACL allows. */
static void abort_limit(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    unsigned int limit = nvme->ctrl[ID_CTRL_ACL] + 1u;
    unsigned int count = MIN(limit + 4, 20u);
    uint16_t cids[20];
    struct nvme_cqe cqe;

    for (unsigned int i = 0; i < count; i++) {
        cids[i] = send_abort(nvme, (uint16_t)(0x7000 + i));
    }
    for (unsigned int i = 0; i < count; i++) {
        uint16_t status;

        nvme_take(nvme, nvme->admin, cids[i], &cqe);
        status = cqe.status & NVME_SC_MASK;
        conf_check(conf,
                   status == NVME_SC_SUCCESS ||
                       (i >= limit && status == NVME_SC_ABORT_LIMIT),
                   "Abort %u of %u (ACL allows %u): status %03xh", i + 1, count,
                   limit, status);
        conf_check(
            conf, status != NVME_SC_SUCCESS || (cqe.dw0 & 1),
            "Abort reports that it aborted a command that does not exist");
    }
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

/* ---- Bytes of a command. */

static void data_mdts(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    unsigned int shift = nvme->ctrl[ID_CTRL_MDTS];
    uint32_t blocks;

    if (shift == 0 || shift > 8) {
        conf_not_applicable(conf, "MDTS is %u: none that this test can exceed",
                            shift);
    }
    blocks = (uint32_t)(4096u << shift) / nvme->block_bytes;
    nvme_write(nvme, 0, blocks, 1);
    nvme_verify(nvme, 0, blocks, 1);
    conf_status(conf, "a Write of one block more than MDTS",
                nvme_rw(nvme, NVM_WRITE, 0, blocks + 1), NVME_SC_INVALID_FIELD);
    conf_status(conf, "a Read of one block more than MDTS",
                nvme_rw(nvme, NVM_READ, 0, blocks + 1), NVME_SC_INVALID_FIELD);
    nvme_verify(nvme, 0, blocks, 1);
    nvme_write(nvme, 0, blocks, 2);
    nvme_verify(nvme, 0, blocks, 2);
    nvme_close(nvme);
}

static void last_block(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    uint64_t end = nvme->size_blocks;

    nvme_write(nvme, end - 8, 8, 1);
    conf_status(conf,
                "a Write that begins inside the namespace and ends outside",
                nvme_rw(nvme, NVM_WRITE, end - 7, 8), NVME_SC_LBA_RANGE);
    conf_status(conf, "a Read beyond the end of the namespace",
                nvme_rw(nvme, NVM_READ, end, 1), NVME_SC_LBA_RANGE);
    conf_status(conf, "a Read whose end overflows",
                nvme_rw(nvme, NVM_READ, UINT64_MAX, 2), NVME_SC_LBA_RANGE);
    nvme_verify(nvme, end - 8, 8, 1);
    nvme_close(nvme);
}

static void absent_namespaces(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    const uint32_t none[] = {nvme->num_ns + 1, 1025, 0xfffffffe};

    conf_check(conf, nvme->num_ns >= 1, "NN is 0");
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        if (none[i] <= nvme->num_ns) {
            continue;
        }
        conf_status(conf, "Identify of a namespace above NN",
                    nvme_identify(nvme, CNS_NAMESPACE, none[i]),
                    NVME_SC_INVALID_NS);
    }
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

/* Read one block of a namespace, which need not be the one under test, to the
 * start of io->mem. */
static uint16_t read_of(struct nvme *nvme, uint32_t nsid, uint64_t lba,
                        uint32_t block_bytes)
{
    struct nvme_sqe sqe = nvme_rw_sqe(nvme, NVM_READ, lba, 1);

    sqe.nsid = nsid;
    return nvme_run(nvme, nvme->io, &sqe, block_bytes, NULL);
}

struct namespace
{
    uint32_t nsid, block_bytes;
    uint8_t before[CONF_BLOCK]; /* The contents of block NS_LBA. */
};

static void look_at(struct nvme *nvme, struct namespace *ns)
{
    struct conf *conf = nvme->conf;
    const uint8_t *id = nvme->admin->mem;
    unsigned int lbads;
    uint64_t size;

    conf_status(conf, "Identify of an active namespace",
                nvme_identify(nvme, CNS_NAMESPACE, ns->nsid), NVME_SC_SUCCESS);
    size = get_le64(id + ID_NS_NSZE);
    lbads = id[ID_NS_LBAF0 + 4 * (id[ID_NS_FLBAS] & 0xf) + LBAF_LBADS];
    conf_check(conf, lbads >= 9 && lbads <= 16, "LBADS is %u", lbads);
    ns->block_bytes = 1u << lbads;
    conf_check(conf, size > NS_LBA, "namespace %u: NSZE is %llu", ns->nsid,
               (unsigned long long)size);
    conf_status(conf, "Read of the namespace's last block",
                read_of(nvme, ns->nsid, size - 1, ns->block_bytes),
                NVME_SC_SUCCESS);
    conf_check(
        conf, read_of(nvme, ns->nsid, size, ns->block_bytes) != NVME_SC_SUCCESS,
        "namespace %u has a block beyond its last one", ns->nsid);
    conf_status(conf, "Read", read_of(nvme, ns->nsid, NS_LBA, ns->block_bytes),
                NVME_SC_SUCCESS);
    memcpy(ns->before, nvme->io->mem, CONF_BLOCK);
}

/* Each active namespace of the target, whether it has one or 128, has its own
 * size and blocks. Only the namespace under test is written. */
static void each_namespace(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct namespace *all = conf_alloc(conf, NS_LISTED * sizeof(*all));
    uint32_t version = (uint32_t)conf_random(conf), count = 0;

    conf_status(conf, "Identify, active namespaces",
                nvme_identify(nvme, CNS_ACTIVE_NS_LIST, 0), NVME_SC_SUCCESS);
    while (count < NS_LISTED &&
           get_le32(nvme->admin->mem + 4 * (size_t)count) != 0) {
        all[count].nsid = get_le32(nvme->admin->mem + 4 * (size_t)count);
        count++;
    }
    conf_note(conf, "there are %u active namespaces, and NN is %u", count,
              nvme->num_ns);
    conf_check(conf, count >= 1 && count <= nvme->num_ns,
               "there are %u active namespaces, more than NN, which is %u",
               count, nvme->num_ns);
    for (uint32_t i = 0; i < count; i++) {
        look_at(nvme, &all[i]);
    }
    nvme_write(nvme, NS_LBA, 1, version);
    for (uint32_t i = 0; i < count; i++) {
        if (all[i].nsid != nvme->nsid) {
            conf_status(conf, "Read",
                        read_of(nvme, all[i].nsid, NS_LBA, all[i].block_bytes),
                        NVME_SC_SUCCESS);
            conf_same(conf, "the block of another namespace", nvme->io->mem,
                      all[i].before, CONF_BLOCK);
        }
    }
    nvme_verify(nvme, NS_LBA, 1, version);
    conf_status(conf, "Read of namespace NN + 1",
                read_of(nvme, nvme->num_ns + 1, NS_LBA, nvme->block_bytes),
                NVME_SC_INVALID_NS);
    nvme_verify(nvme, NS_LBA, 1, version);
    nvme_close(nvme);
}

/* ---- READs under way. */

static bool is_read_request(const struct packet *packet, const void *ctx)
{
    const struct rc *rc = ctx;

    return packet->has_bth && packet->bth.dest_qp == rc->qpn &&
           packet->bth.opcode == RC_READ_REQUEST;
}

static void reads_out(struct conf *conf, uint8_t resources)
{
    struct nvmf_pair pair = nvmf_open_pair(
        conf, &(struct rc_config){.responder_resources = resources,
                                  .ack_timeout = 20});
    unsigned int count;

    conf_check(
        conf, pair.io->rep.initiator_depth <= resources,
        "the REP's initiator depth is %u, more than the %u READs of the REQ",
        pair.io->rep.initiator_depth, resources);
    pair.io->answers = false;
    for (unsigned int i = 0; i < resources + 8u; i++) {
        struct nvme_sqe sqe = nvmf_io(conf, NVM_WRITE, i * 8, 8);
        struct sgl sgl = rc_keyed(pair.io, i * 4096, 4096);

        rc_send_capsule(pair.io, &sqe, &sgl, NULL, 0);
    }
    conf_pass(conf, NVMF_QUIET_US);
    count = conf_count(conf, is_read_request, pair.io);
    /* One READ was for Connect's data. */
    conf_check(conf, count - 1 <= pair.io->rep.initiator_depth,
               "%u READs were outstanding at once, %u were agreed", count - 1,
               pair.io->rep.initiator_depth);
    conf_check(conf,
               count - 1 == pair.io->rep.initiator_depth ||
                   !conf_target(conf)->is_ours,
               "only %u READs were outstanding at once", count - 1);
    rc_close(pair.io);
    rc_close(pair.admin);
    conf_expect_alive(conf);
}

static void reads_16(struct conf *conf)
{
    reads_out(conf, 16);
}

static void reads_1(struct conf *conf)
{
    reads_out(conf, 1);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST(id, clause, purpose, __VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("sq.mqes", "NVMe-oF 1.1 7.3.6.2",
         "an SQ of CAP.MQES + 1 entries is accepted", sq_max),
    TEST("sq.mqes-exceeded", "NVMe-oF 1.1 7.3.6.5",
         "a REQ for one entry more gets REJ 28 with status 4", sq_one_more),
    TEST("sq.endless", "NVMe-oF 1.1 7.3.6.5",
         "a REQ with HSQSIZE FFFFh gets REJ 28 with status 4", sq_endless),
    TEST("sq.admin", "NVMe-oF 1.1 5.3",
         "an admin SQ of ASQSZ entries is accepted", admin_max),
    TEST("sq.admin-exceeded", "NVMe-oF 1.1 7.3.6.5",
         "a REQ for an admin SQ of one entry more gets REJ 28 with status 4",
         admin_one_more),
    TEST("connect.mqes", "NVMe-oF 1.1 3.3",
         "a Connect with SQSIZE above MQES is refused", sqsize_above_mqes),
    TEST("connect.hsqsize", "NVMe-oF 1.1 7.3.6.2",
         "a Connect for an I/O queue with SQSIZE above the REQ's HSQSIZE is "
         "refused",
         sqsize_above_hsqsize),
    TEST("connect.endless", "NVMe-oF 1.1 3.3",
         "a Connect with SQSIZE FFFFh is refused", sqsize_endless),
    TEST("sq.full", "NVMe 1.4 4.1.2",
         "all entries of a queue are used at once, and all data is correct",
         full_max),
    TEST("sq.full-two", "NVMe 1.4 4.1.2", "an SQ of two entries works",
         full_two),
    TEST("queues.three", "NVMe 1.4 5.21.1.7",
         "as many I/O queues as were granted connect, and one more is refused",
         queues_3),
    TEST("queues.all", "NVMe 1.4 5.21.1.7",
         "all the I/O queues that the target has connect, and one more is "
         "refused",
         queues_all),
    TEST("aer.limit", "NVMe 1.4 5.2",
         "one event request more than AERL is refused", aer_limit),
    TEST("abort.limit", "NVMe 1.4 5.1",
         "more Aborts than ACL allows do no harm", abort_limit),
    TEST("io.mdts", "NVMe 1.4 5.15.2",
         "a command with one block more than MDTS is refused", data_mdts),
    TEST("io.end", "NVMe 1.4 6.9, 6.15",
         "reads and writes beyond the last block are refused", last_block),
    TEST("ns.nn", "NVMe 1.4 6.1", "namespace identifiers above NN are refused",
         absent_namespaces),
    TEST("ns.each", "NVMe 1.4 5.15.2.3, 6.1",
         "each active namespace, of one or of 128, has its own size and blocks",
         each_namespace),
    TEST("reads.16", "IBTA Vol 1 9.4.4, 12.7.30",
         "no more READs are outstanding than the REQ allows: 16", reads_16),
    TEST("reads.one", "IBTA Vol 1 9.4.4, 12.7.30",
         "no more READs are outstanding than the REQ allows: 1", reads_1),
};
CONF_TESTS(conf_tests_limits_queue, "limits", tests);
