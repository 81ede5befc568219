/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One host does whatever it can against the drive, in an order that follows
 * from the run's seed.  Another host's verified I/O, reservations and error log
 * go on meanwhile, within the drive's limit for silent peers.
 *
 * Natively this takes a second.  In real time it is a long test, which
 * tests/e2e/test_hostile.py repeats for ten minutes beside a stock host.
 */
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/reservation.h"
#include "robust_lib.h"
#include "tests/auth_secrets.h"

/*
 * The host with this name may have a secret in the target's list of hosts.  The
 * hostile host does not know the secret; tests/e2e/test_hostile.py has the same
 * name.
 */
#define CLAIMED_NQN "nqn.2026-01.net.example:conform-claimed"

enum {
    REPEATS = 2, /* of each attack */
    /* The target's limit for a peer that does not answer, and some time for the
     * rest of the command. */
    LIMIT_US = 12000000,
    /* I/O of a host waits for no other host. */
    IO_LIMIT_US = 1000000,
    LANE_MAX = 30,
    WRITES = 20,
    SOON_US = 5000,
    IO_BLOCKS = 8,
    COPY_TO = 8,
    ESTABLISHED = 140, /* more than the 128 admin queues that unproven have */
    DISCOVERY = 255,
    UNPROVEN = 20,
    REFUSED_CONNECTS = 80,
    REFUSED_REQS = 100,
    BAD_COMMANDS = 100,
    SILENT_COMMANDS = 8,
    SILENT_BLOCKS = 64,
    PAUSE_US = 2000000,
    PAUSE_REAL_US = 200000,
    KATO_LONGEST = 0xffffffff,
    BEHAVIOR_LEN = 512,
    BEHAVIOR_COPY = 4,
    COPY_FORMAT_2 = 2 << 8,
    RANGE_LEN = 32,
    RANGE_NSID = 0,
    RANGE_SLBA = 8,
    RANGE_NLB = 16,
    FUA = 1 << 30,
    SELECT_DELETE = 1,
    SELECT_DETACH = 1,
    PROTECT = 1,
    /* tests/e2e/test_hostile.py: the stock host's namespace. */
    STOCK_NSID = 1,
    GOOD = 9, /* numbers of hosts */
    FRESH = 8,
    HOST_A = 1,
    HOST_B = 2,
    HOST_SILENT = 3,
    /* Addresses with many connections, of which each has a share. */
    FIRST_MANY = 4,
    MANY = 4,
    KEY_GOOD = 0x600d,
    KEY_BAD = 0xbad,
    IEKEY = 1 << RESERVATION_IEKEY_BIT,
    ERRORS_READ = 16,
};

/* A queue of the hostile host, and its commands in progress. */
struct lane {
    struct rc *rc;
    unsigned int count;
    struct answer {
        uint16_t cid, status;
        bool has_come;
        uint32_t dw0;
    } answers[LANE_MAX];
};

/* A controller of the hostile host with its two queues. */
struct attacker {
    struct lane admin, io;
};

struct hostile {
    struct conf *conf;
    struct nvme_host *good;
    uint64_t size_blocks; /* of its namespace */
    uint64_t good_blocks; /* from the start, where its data is */
    uint64_t slowest_io_us, slowest_preempt_us;
    uint32_t version;
    struct attacker a, b;
    struct rc *fresh;       /* of a host that connects again and again */
    struct rc *many[MANY];  /* each is used for one connection after another */
    uint64_t granule_bytes; /* of namespaces; 0: they cannot be created */
};

/* ---- The hostile host's commands. */

static void lane_send(struct lane *lane, const struct nvme_sqe *sqe,
                      uint32_t offset, uint32_t len)
{
    struct sgl sgl = rc_keyed(lane->rc, offset, len);

    ASSERT(lane->count < LANE_MAX);
    lane->answers[lane->count++] = (struct answer){
        .cid = rc_send_capsule(lane->rc, sqe, len != 0 ? &sgl : NULL, NULL, 0),
    };
}

/* Wait until all commands have their answers, in any order. */
static void lane_wait(struct hostile *hostile, struct lane *lane)
{
    for (unsigned int come = 0; come < lane->count; come++) {
        const struct rc_message *message =
            rc_take_message_within(lane->rc, LIMIT_US);
        unsigned int i = 0;
        struct nvme_cqe cqe;

        conf_check(hostile->conf, message != NULL,
                   "a command has no answer after %u s", LIMIT_US / 1000000);
        conf_equal(hostile->conf, "length of the response capsule",
                   message->len_bytes, NVME_CQE_LEN);
        nvme_cqe_parse(&cqe, message->data);
        while (i < lane->count &&
               (lane->answers[i].cid != cqe.cid || lane->answers[i].has_come)) {
            i++;
        }
        conf_check(hostile->conf, i < lane->count,
                   "an answer has CID %u, which no command has", cqe.cid);
        lane->answers[i].has_come = true;
        lane->answers[i].status = cqe.status & NVME_SC_MASK;
        lane->answers[i].dw0 = cqe.dw0;
    }
    lane->count = 0;
}

/* Send one command, and wait for its answer.  @return its status */
static uint16_t lane_run(struct hostile *hostile, struct lane *lane,
                         const struct nvme_sqe *sqe, uint32_t len)
{
    lane_send(lane, sqe, 0, len);
    lane_wait(hostile, lane);
    return lane->answers[0].status;
}

static struct nvme_sqe io_sqe(uint8_t opcode, uint32_t nsid, uint64_t lba,
                              uint32_t blocks)
{
    return (struct nvme_sqe){
        .opcode = opcode,
        .nsid = nsid,
        .cdw10 = (uint32_t)lba,
        .cdw11 = (uint32_t)(lba >> 32),
        .cdw12 = blocks - 1,
    };
}

static struct attacker open_attacker(struct conf *conf, uint8_t host)
{
    struct nvmf_pair pair =
        nvmf_open_pair(conf, &(struct rc_config){.peer = host, .host = host});

    return (struct attacker){{.rc = pair.admin}, {.rc = pair.io}};
}

static uint16_t attacker_keys(struct hostile *hostile, struct lane *io,
                              uint8_t opcode, uint32_t nsid, uint32_t cdw10,
                              uint64_t key, uint64_t key2)
{
    const struct nvme_sqe sqe = {
        .opcode = opcode, .nsid = nsid, .cdw10 = cdw10};

    put_le64(io->rc->mem + RESERVATION_CRKEY, key);
    put_le64(io->rc->mem + RESERVATION_KEY2, key2);
    return lane_run(hostile, io, &sqe, RESERVATION_KEYS_LEN);
}

/* ---- Its namespaces. */

static uint32_t create_ns(struct hostile *hostile, uint32_t granules)
{
    const struct nvme_sqe sqe = {.opcode = ADMIN_NS_MANAGEMENT};
    uint8_t *mem = hostile->b.admin.rc->mem;
    uint16_t status;

    memset(mem, 0, NVME_IDENTIFY_LEN);
    put_le64(mem + ID_NS_NSZE, granules * hostile->granule_bytes / CONF_BLOCK);
    put_le64(mem + ID_NS_NCAP, granules * hostile->granule_bytes / CONF_BLOCK);
    mem[ID_NS_NMIC] = NMIC_SHARED;
    status = lane_run(hostile, &hostile->b.admin, &sqe, NVME_IDENTIFY_LEN);
    conf_check(hostile->conf,
               status == 0 || status == NVME_SC_COMMAND_INTERRUPTED ||
                   status == NVME_SC_NS_INSUFFICIENT_CAPACITY,
               "the creation of a namespace has status %03xh", status);
    return status == 0 ? hostile->b.admin.answers[0].dw0 : 0;
}

/* Send the command to attach a namespace to both controllers, or detach it. */
static uint16_t attach_ns(struct hostile *hostile, uint32_t nsid,
                          uint32_t select)
{
    const struct nvme_sqe sqe = {
        .opcode = ADMIN_NS_ATTACHMENT, .nsid = nsid, .cdw10 = select};
    uint8_t *mem = hostile->b.admin.rc->mem;
    uint16_t a = hostile->a.admin.rc->config.cntlid;
    uint16_t b = hostile->b.admin.rc->config.cntlid;

    memset(mem, 0, NVME_IDENTIFY_LEN);
    put_le16(mem + CTRL_LIST_COUNT, 2);
    put_le16(mem + CTRL_LIST_FIRST, MIN(a, b));
    put_le16(mem + CTRL_LIST_FIRST + 2, MAX(a, b));
    return lane_run(hostile, &hostile->b.admin, &sqe, NVME_IDENTIFY_LEN);
}

static uint32_t make_ns(struct hostile *hostile, uint32_t granules)
{
    uint32_t nsid =
        hostile->granule_bytes != 0 ? create_ns(hostile, granules) : 0;

    if (nsid != 0) {
        (void)attach_ns(hostile, nsid, 0);
    }
    return nsid;
}

static void delete_ns(struct hostile *hostile, uint32_t nsid)
{
    const struct nvme_sqe sqe = {
        .opcode = ADMIN_NS_MANAGEMENT, .nsid = nsid, .cdw10 = SELECT_DELETE};

    if (nsid != 0) {
        conf_status(hostile->conf, "deletion of an own namespace",
                    lane_run(hostile, &hostile->b.admin, &sqe, 0),
                    NVME_SC_SUCCESS);
    }
}

static uint16_t protect_ns(struct hostile *hostile, struct attacker *by,
                           uint32_t nsid, uint32_t state)
{
    const struct nvme_sqe sqe = {.opcode = ADMIN_SET_FEATURES,
                                 .nsid = nsid,
                                 .cdw10 = FEATURE_NS_WRITE_PROTECTION,
                                 .cdw11 = state};

    return lane_run(hostile, &by->admin, &sqe, 0);
}

/* ---- The good host. */

static uint16_t good_keys(struct hostile *hostile, uint8_t opcode,
                          uint32_t cdw10, uint64_t key, uint64_t key2)
{
    const struct nvme_sqe sqe = {.opcode = opcode,
                                 .nsid = conf_target(hostile->conf)->nsid,
                                 .cdw10 = cdw10};
    uint8_t data[RESERVATION_KEYS_LEN];

    put_le64(data + RESERVATION_CRKEY, key);
    put_le64(data + RESERVATION_KEY2, key2);
    return host_command(hostile->good, 1, &sqe, data,
                        opcode == NVM_RESERVATION_RELEASE
                            ? RESERVATION_RELEASE_LEN
                            : RESERVATION_KEYS_LEN) &
           NVME_SC_MASK;
}

/* Nobody is registered any more. */
static void good_clear(struct hostile *hostile)
{
    conf_status(hostile->conf, "the good host's Register",
                good_keys(hostile, NVM_RESERVATION_REGISTER,
                          RREGA_REPLACE | IEKEY, 0, KEY_GOOD),
                NVME_SC_SUCCESS);
    conf_status(
        hostile->conf, "the good host's Release, clear",
        good_keys(hostile, NVM_RESERVATION_RELEASE, RRELA_CLEAR, KEY_GOOD, 0),
        NVME_SC_SUCCESS);
}

static void good_reserve(struct hostile *hostile)
{
    conf_status(hostile->conf, "the good host's Register",
                good_keys(hostile, NVM_RESERVATION_REGISTER, RREGA_REGISTER, 0,
                          KEY_GOOD),
                NVME_SC_SUCCESS);
    conf_status(
        hostile->conf, "the good host's Acquire",
        good_keys(hostile, NVM_RESERVATION_ACQUIRE,
                  RTYPE_WRITE_EXCLUSIVE_REGISTRANTS << RESERVATION_RTYPE_SHIFT |
                      RACQA_ACQUIRE,
                  KEY_GOOD, 0),
        NVME_SC_SUCCESS);
}

/* What was written before an attack is there after it, and new data can be
 * written. */
static void good_io(struct hostile *hostile)
{
    struct conf *conf = hostile->conf;
    uint64_t places = hostile->good_blocks / IO_BLOCKS;
    uint64_t start_us = conf_now_us(conf);
    uint64_t last = hostile->version % places * IO_BLOCKS;
    uint64_t took_us;

    conf_verify(conf, hostile->good, 1, last, IO_BLOCKS, hostile->version);
    hostile->version++;
    conf_write(conf, hostile->good, 1, hostile->version % places * IO_BLOCKS,
               IO_BLOCKS, hostile->version);
    took_us = conf_now_us(conf) - start_us;
    hostile->slowest_io_us = MAX(hostile->slowest_io_us, took_us);
    conf_check(conf,
               took_us <=
                   (conf_target(conf)->is_virtual ? IO_LIMIT_US : LIMIT_US),
               "a read and a write of the good host took %llu ms",
               (unsigned long long)(took_us / 1000));
}

/* The hostile host registers with a namespace of another host. */
static void register_key(struct hostile *hostile, struct lane *io,
                         uint32_t nsid)
{
    conf_status(hostile->conf, "the hostile host's Register",
                attacker_keys(hostile, io, NVM_RESERVATION_REGISTER, nsid,
                              RREGA_REPLACE | IEKEY, 0, KEY_BAD),
                NVME_SC_SUCCESS);
}

/* The hostile host registers with the good host's namespace, and is removed. */
static void good_preempt(struct hostile *hostile)
{
    struct conf *conf = hostile->conf;
    uint64_t start_us, took_us;

    register_key(hostile, &hostile->a.io, conf_target(conf)->nsid);
    start_us = conf_now_us(conf);
    conf_status(
        conf, "the good host's Preempt and Abort",
        good_keys(hostile, NVM_RESERVATION_ACQUIRE,
                  RTYPE_WRITE_EXCLUSIVE_REGISTRANTS << RESERVATION_RTYPE_SHIFT |
                      RACQA_PREEMPT_AND_ABORT,
                  KEY_GOOD, KEY_BAD),
        NVME_SC_SUCCESS);
    took_us = conf_now_us(conf) - start_us;
    hostile->slowest_preempt_us = MAX(hostile->slowest_preempt_us, took_us);
    conf_check(conf, took_us <= LIMIT_US,
               "the good host's Preempt and Abort took %llu ms",
               (unsigned long long)(took_us / 1000));
}

/* One more host finds a place, whatever the hostile host's connections take. */
static void good_connects(struct hostile *hostile)
{
    conf_check(hostile->conf, rc_reopen(hostile->fresh),
               "a host at another address is refused");
    rc_connect(hostile->fresh);
    rc_close(hostile->fresh);
}

/* @return an LBA beyond the end, by which the good host finds its error */
static uint64_t good_error(struct hostile *hostile)
{
    uint64_t lba = hostile->size_blocks + (conf_random(hostile->conf) >> 32);
    const struct host_io io = {
        .qid = 1,
        .opcode = NVM_READ,
        .kind = HOST_DATA_KEYED,
        .nsid = conf_target(hostile->conf)->nsid,
        .lba = lba,
        .blocks = 1,
        .len_bytes = CONF_BLOCK,
    };

    conf_status(hostile->conf, "the good host's Read beyond the end",
                host_io(hostile->good, &io) & NVME_SC_MASK, NVME_SC_LBA_RANGE);
    return lba;
}

/* The error is in the log, whatever has come after it. */
static void good_finds_error(struct hostile *hostile, uint64_t lba)
{
    static uint8_t log[ERRORS_READ * LOG_ERROR_ENTRY_LEN];
    struct conf *conf = hostile->conf;

    for (uint32_t first = 0; first < 64; first += ERRORS_READ) {
        conf_status(conf, "the good host's Get Log Page (error information)",
                    host_get_log(hostile->good, LOG_ERROR,
                                 (uint64_t)first * LOG_ERROR_ENTRY_LEN, log,
                                 sizeof(log)),
                    NVME_SC_SUCCESS);
        for (uint32_t i = 0; i < ERRORS_READ; i++) {
            if (get_le64(log + (size_t)i * LOG_ERROR_ENTRY_LEN + ERROR_LBA) ==
                lba) {
                return;
            }
        }
    }
    conf_fail(conf, "the good host's error is no longer in the error log");
}

/* ---- Attacks. */

/*
 * A Copy waits: for writes to the same blocks that came before it, or for one
 * of the same host's other path, whose data does not come.  Meanwhile the
 * namespace that it copies from is deleted, and a smaller one gets its NSID.
 */
static void attack_copy(struct hostile *hostile)
{
    struct attacker path = open_attacker(hostile->conf, HOST_A);
    uint32_t from = make_ns(hostile, 2), to = make_ns(hostile, 1);
    struct lane *io = &hostile->a.io;
    const struct nvme_sqe behavior = {.opcode = ADMIN_SET_FEATURES,
                                      .cdw10 = FEATURE_HOST_BEHAVIOR};
    struct nvme_sqe write = io_sqe(NVM_WRITE, to, COPY_TO, IO_BLOCKS);
    struct nvme_sqe copy = io_sqe(NVM_COPY, to, COPY_TO, 1);

    memset(hostile->a.admin.rc->mem, 0, BEHAVIOR_LEN);
    hostile->a.admin.rc->mem[BEHAVIOR_COPY] = BIT(2);
    conf_status(hostile->conf, "Set Features Host Behavior Support",
                lane_run(hostile, &hostile->a.admin, &behavior, BEHAVIOR_LEN),
                NVME_SC_SUCCESS);
    if (from != 0 && to != 0) {
        write.cdw12 |= FUA;
        if (conf_random(hostile->conf) >> 20 & 1) {
            path.io.rc->answers = false;
            lane_send(&path.io, &write, 0, IO_BLOCKS * CONF_BLOCK);
            conf_pass(hostile->conf, SOON_US);
        } else {
            for (unsigned int i = 0; i < WRITES; i++) {
                lane_send(io, &write, RANGE_LEN, IO_BLOCKS * CONF_BLOCK);
            }
        }
        memset(io->rc->mem, 0, RANGE_LEN);
        put_le32(io->rc->mem + RANGE_NSID, from);
        put_le64(io->rc->mem + RANGE_SLBA,
                 3 * hostile->granule_bytes / 2 / CONF_BLOCK);
        put_le16(io->rc->mem + RANGE_NLB, IO_BLOCKS - 1);
        copy.cdw12 = COPY_FORMAT_2;
        lane_send(io, &copy, 0, RANGE_LEN);
        conf_pass(hostile->conf, conf_random(hostile->conf) % SOON_US);
    }
    delete_ns(hostile, from);
    from = make_ns(hostile, 1);
    lane_wait(hostile, io);
    delete_ns(hostile, from);
    delete_ns(hostile, to);
    rc_send_dreq(path.io.rc);
    rc_send_dreq(path.admin.rc);
}

/* Commands for all namespaces, of which one is reserved by another host. */
static void attack_all(struct hostile *hostile)
{
    const struct nvme_sqe format = {.opcode = ADMIN_FORMAT_NVM,
                                    .nsid = NVME_NSID_ALL};
    const struct nvme_sqe delete = {.opcode = ADMIN_NS_MANAGEMENT,
                                    .nsid = NVME_NSID_ALL,
                                    .cdw10 = SELECT_DELETE};
    uint32_t nsid = make_ns(hostile, 1);
    uint16_t status;

    lane_send(&hostile->a.admin, &format, 0, 0);
    if (nsid != 0) {
        (void)protect_ns(hostile, &hostile->b, nsid, PROTECT);
    }
    lane_send(&hostile->a.admin, &delete, 0, 0);
    lane_wait(hostile, &hostile->a.admin);
    for (unsigned int i = 0; i < 2; i++) {
        status = hostile->a.admin.answers[i].status;
        conf_check(hostile->conf, status != NVME_SC_SUCCESS,
                   "a command for all namespaces ignores the good host's "
                   "reservation");
    }
    if (nsid != 0) {
        (void)protect_ns(hostile, &hostile->b, nsid, 0);
    }
    delete_ns(hostile, nsid);
}

/* A Format and the protection of the same namespace, by two hosts: one of them
 * comes first, and then either is as it says. */
static void attack_protect(struct hostile *hostile)
{
    uint32_t nsid = make_ns(hostile, 1);
    struct lane *io = &hostile->a.io;
    const struct nvme_sqe format = {.opcode = ADMIN_FORMAT_NVM, .nsid = nsid};
    const struct nvme_sqe write = io_sqe(NVM_WRITE, nsid, 0, IO_BLOCKS);
    uint16_t protection;

    if (nsid == 0) {
        return;
    }
    for (unsigned int i = 0; i < WRITES; i++) {
        lane_send(io, &write, 0, IO_BLOCKS * CONF_BLOCK);
    }
    lane_send(&hostile->a.admin, &format, 0, 0);
    protection = protect_ns(hostile, &hostile->b, nsid, PROTECT);
    lane_wait(hostile, &hostile->a.admin);
    lane_wait(hostile, io);
    if (protection == NVME_SC_SUCCESS) {
        conf_status(hostile->conf, "a Write to a protected namespace",
                    lane_run(hostile, io, &write, IO_BLOCKS * CONF_BLOCK),
                    NVME_SC_NS_WRITE_PROTECTED);
    }
    (void)protect_ns(hostile, &hostile->b, nsid, 0);
    delete_ns(hostile, nsid);
}

static bool is_read_request(const struct packet *packet, const void *ctx)
{
    const struct rc *rc = ctx;

    return packet->has_bth && packet->bth.opcode == RC_READ_REQUEST &&
           packet->bth.dest_qp == rc->qpn;
}

/* The data of a write comes when its connection has ended. */
static void attack_late_data(struct hostile *hostile)
{
    struct attacker own = open_attacker(hostile->conf, HOST_SILENT);
    uint32_t nsid = make_ns(hostile, 1);
    const struct nvme_sqe write =
        io_sqe(NVM_WRITE, nsid != 0 ? nsid : 1, 0, IO_BLOCKS);
    const struct packet *request;

    own.io.rc->answers = false;
    lane_send(&own.io, &write, 0, 2 * CONF_BLOCK);
    request = conf_take_within(hostile->conf, is_read_request, own.io.rc,
                               NVMF_QUIET_US);
    rc_send_dreq(own.io.rc);
    rc_send_dreq(own.admin.rc);
    conf_pass(hostile->conf, NVMF_QUIET_US);
    if (request != NULL) {
        const struct packet_roce late = {
            .bth = {.opcode = RC_READ_RESPONSE_ONLY, .psn = request->bth.psn},
            .aeth = {.kind = AETH_ACK, .value = AETH_CREDIT_UNLIMITED},
            .fill = 0xbd,
            .data_len = request->reth.dma_len_bytes,
        };

        rc_send_packet(own.io.rc, &late);
    }
    delete_ns(hostile, nsid);
}

/* ---- Attacks by many connections.  None of them is ever ended. */

/* @return whether the target answered; it may refuse */
static bool connect_many(struct rc *rc, uint16_t qid, const char *subnqn,
                         const char *hostnqn, uint16_t cntlid, uint32_t kato_ms)
{
    struct sgl sgl = rc_keyed(rc, 0, CONNECT_DATA_LEN);
    struct connect_command command;
    struct connect_data data;
    const struct rc_message *message;
    struct nvme_sqe sqe = {0};
    struct nvme_cqe cqe;

    rc->config.qid = qid;
    rc->config.cntlid = cntlid;
    if (!rc_reopen(rc)) {
        return false;
    }
    rc_make_connect(rc, &command, &data);
    command.kato_ms = kato_ms;
    data.cntlid = qid != 0 ? cntlid : data.cntlid;
    if (subnqn != NULL) {
        memset(data.subnqn, 0, sizeof(data.subnqn));
        strcpy(data.subnqn, subnqn);
    }
    if (hostnqn != NULL) {
        memset(data.hostnqn, 0, sizeof(data.hostnqn));
        strcpy(data.hostnqn, hostnqn);
    }
    connect_data_emit(rc->mem, &data);
    connect_command_build(&sqe, &command);
    (void)rc_send_capsule(rc, &sqe, &sgl, NULL, 0);
    /* A connection that was displaced meanwhile has no answer. */
    message = rc_take_message_within(rc, NVMF_QUIET_US);
    if (message == NULL) {
        return false;
    }
    nvme_cqe_parse(&cqe, message->data);
    if (qid == 0 && cqe.status == NVME_SC_SUCCESS) {
        rc->config.cntlid = (uint16_t)cqe.dw0;
    }
    return true;
}

static void attack_established(struct hostile *hostile)
{
    unsigned int count = 0;

    hostile->many[0]->config.qid = 0;
    for (unsigned int i = 0; i < ESTABLISHED; i++) {
        count += rc_reopen(hostile->many[0]);
        conf_flush(hostile->conf);
    }
    conf_note(hostile->conf, "%u connections without Connect", count);
}

static void attack_discovery(struct hostile *hostile)
{
    struct rc *rc = hostile->many[1];
    unsigned int count = 0;

    for (unsigned int i = 0; i < DISCOVERY; i++) {
        if (!connect_many(rc, 0, NVME_DISCOVERY_NQN, NULL, 0, KATO_LONGEST)) {
            conf_flush(hostile->conf);
            continue;
        }
        count++;
        if (i % 16 == 0) {
            struct property_command set = {
                .size_bytes = 4, .offset = PROPERTY_NSSR, .value = NSSR_RESET};
            struct nvme_sqe sqe = {.fctype = FABRICS_PROPERTY_SET};
            const struct rc_message *message;
            struct nvme_cqe cqe;

            property_command_build(&sqe, &set);
            (void)rc_send_capsule(rc, &sqe, NULL, NULL, 0);
            message = rc_take_message_within(rc, NVMF_QUIET_US);
            if (message != NULL) {
                nvme_cqe_parse(&cqe, message->data);
                conf_check(hostile->conf, cqe.status != 0,
                           "a discovery controller resets the NVM subsystem");
            }
        }
        conf_flush(hostile->conf);
    }
    conf_note(hostile->conf, "%u discovery controllers", count);
}

/* Controllers and queues in the name of a host with a secret, and I/O queues in
 * the name of the good host. */
static void attack_unproven(struct hostile *hostile)
{
    const struct nvme_host *good = hostile->good;
    struct rc *rc = hostile->many[2];
    unsigned int count = 0;

    for (unsigned int i = 0; i < UNPROVEN; i++) {
        count += connect_many(rc, 0, NULL, CLAIMED_NQN, 0, KATO_LONGEST);
        count += connect_many(rc, 1, NULL, CLAIMED_NQN, rc->config.cntlid, 0);
        count += connect_many(rc, (uint16_t)(1 + i % 2), NULL,
                              good->target.hostnqn, good->cntlid, 0);
        conf_flush(hostile->conf);
    }
    conf_note(hostile->conf, "%u answers to Connects without proof", count);
}

static void attack_refused(struct hostile *hostile)
{
    struct rc *rc = hostile->many[3];
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    struct cm_req req;
    struct cm_rej rej;

    for (unsigned int i = 0; i < REFUSED_CONNECTS; i++) {
        (void)connect_many(rc, 0, "nqn.2026-01.net.example:nobody", NULL, 0, 0);
        conf_flush(hostile->conf);
    }
    for (unsigned int i = 0; i < REFUSED_REQS; i++) {
        rc->comm_id++;
        rc->qpn++;
        rc->tid++;
        rc_make_req(rc, &req, private_data);
        private_data[RDMA_IP_CM_LEN] = (uint8_t)(1 + i % 99); /* RECFMT */
        rc_send_req(rc, &req);
        conf_check(hostile->conf, !rc_take_answer(rc, &rej),
                   "a REQ with an undefined RECFMT is accepted");
        conf_flush(hostile->conf);
    }
}

/* ---- Further attacks. */

static void attack_error_log(struct hostile *hostile)
{
    struct lane *io = &hostile->b.io;
    uint32_t nsid = conf_target(hostile->conf)->nsid;

    for (unsigned int i = 0; i < BAD_COMMANDS; i++) {
        const struct nvme_sqe read =
            io_sqe(i % 2 == 0 ? NVM_READ : NVM_WRITE, nsid,
                   i % 2 == 0 ? UINT64_MAX / 2 : 0, 1);

        conf_check(hostile->conf, lane_run(hostile, io, &read, CONF_BLOCK) != 0,
                   "a Read beyond the end, or a Write to a reserved "
                   "namespace, succeeds");
    }
}

/* Keys that are to outlive a loss of power cost writes to the flash. */
static void attack_keys(struct hostile *hostile)
{
    for (unsigned int i = 0; i < BAD_COMMANDS; i++) {
        uint32_t persistence = i % 2 == 0 ? CPTPL_ON : CPTPL_OFF;

        (void)attacker_keys(hostile, &hostile->b.io, NVM_RESERVATION_REGISTER,
                            conf_target(hostile->conf)->nsid,
                            persistence << RESERVATION_CPTPL_SHIFT | IEKEY |
                                (i % 3 == 0 ? RREGA_UNREGISTER : RREGA_REPLACE),
                            KEY_BAD, KEY_BAD + 1 + i);
    }
    (void)attacker_keys(hostile, &hostile->b.io, NVM_RESERVATION_REGISTER,
                        conf_target(hostile->conf)->nsid,
                        RREGA_UNREGISTER | IEKEY, 0, 0);
}

/* Connect like rc_open_nvme(), with any acknowledgement time-out. */
static struct rc *open_with_timeout(struct hostile *hostile,
                                    const struct rc_config *config,
                                    uint8_t code)
{
    struct rc *rc = rc_new(hostile->conf, config);
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    struct cm_req req;

    rc_make_req(rc, &req, private_data);
    req.local_ack_timeout = code;
    rc_send_req(rc, &req);
    rc_take_rep(rc);
    rc_send_rtu(rc);
    rc_connect(rc);
    return rc;
}

/*
 * Register with a namespace, and begin commands that need an answer from us.
 * The blocks are those that its host does not use.
 */
static void begin_silence(struct hostile *hostile, struct lane *io,
                          uint32_t nsid)
{
    register_key(hostile, io, nsid);
    io->rc->answers = false;
    for (unsigned int i = 0; i < SILENT_COMMANDS; i++) {
        const struct nvme_sqe sqe =
            io_sqe(i % 2 == 0 ? NVM_WRITE : NVM_READ, nsid,
                   hostile->good_blocks + i * SILENT_BLOCKS, SILENT_BLOCKS);

        lane_send(io, &sqe, 0, SILENT_BLOCKS * CONF_BLOCK);
    }
}

/* A host falls silent with commands on other hosts' namespaces, and nothing of
 * what it has said limits the target's wait for it. */
static void attack_silence(struct hostile *hostile)
{
    static const uint8_t codes[] = {0, 31};
    uint8_t code = codes[conf_random(hostile->conf) >> 20 & 1];
    struct rc_config config = {.peer = HOST_SILENT, .host = HOST_SILENT};
    struct rc *admin = open_with_timeout(hostile, &config, code);
    struct lane io[2] = {0};

    conf_status(hostile->conf, "Property Set CC",
                nvmf_set(admin, PROPERTY_CC, 4, NVMF_CC_ENABLE),
                NVME_SC_SUCCESS);
    nvmf_wait_csts(admin, CSTS_RDY, CSTS_RDY);
    config.cntlid = admin->config.cntlid;
    for (unsigned int i = 0; i < ARRAY_LEN(io); i++) {
        config.qid = (uint16_t)(1 + i);
        io[i].rc = open_with_timeout(hostile, &config, code);
    }
    admin->answers = false;
    begin_silence(hostile, &io[0], conf_target(hostile->conf)->nsid);
    begin_silence(hostile, &io[1], STOCK_NSID);
    conf_pass(hostile->conf, NVMF_QUIET_US);
    if (hostile->granule_bytes != 0) {
        delete_ns(hostile, make_ns(hostile, 1));
    }
}

typedef void attack_fn(struct hostile *hostile);

static const struct {
    const char *name;
    attack_fn *run;
} attacks[] = {
    {"Copy from a namespace that is deleted", attack_copy},
    {"Format and Delete of all namespaces", attack_all},
    {"Format beside write protection", attack_protect},
    {"data that comes late", attack_late_data},
    {"connections without Connect", attack_established},
    {"discovery controllers", attack_discovery},
    {"controllers and queues without proof", attack_unproven},
    {"refused connections", attack_refused},
    {"noise in the error log", attack_error_log},
    {"noise in the reservations", attack_keys},
    {"silence", attack_silence},
};

/* ---- The test. */

static uint64_t read_granule(struct hostile *hostile)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_IDENTIFY, .cdw10 = CNS_CONTROLLER};
    uint8_t *mem = hostile->b.admin.rc->mem;

    conf_status(hostile->conf, "Identify Controller",
                lane_run(hostile, &hostile->b.admin, &sqe, NVME_IDENTIFY_LEN),
                NVME_SC_SUCCESS);
    if (!(get_le16(mem + ID_CTRL_OACS) & OACS_NS_MANAGEMENT)) {
        return 0;
    }
    sqe.cdw10 = CNS_NS_GRANULARITY;
    conf_status(hostile->conf, "Identify, namespace granularity",
                lane_run(hostile, &hostile->b.admin, &sqe, NVME_IDENTIFY_LEN),
                NVME_SC_SUCCESS);
    return get_le64(mem + ID_GRANULARITY_SIZE);
}

static struct hostile *open_hostile(struct conf *conf)
{
    struct hostile *hostile = conf_alloc(conf, sizeof(*hostile));
    uint8_t id[NVME_IDENTIFY_LEN];

    hostile->conf = conf;
    if (conf_target(conf)->is_ours) {
        conf_console(conf, "host add " CLAIMED_NQN);
        conf_console(conf, "host secret " CLAIMED_NQN " " SECRET);
    }
    hostile->good = conf_connect(
        conf, &(struct conf_session){.port = conf_target(conf)->num_ports - 1,
                                     .io_queues = 1,
                                     .host_number = GOOD});
    conf_status(conf, "the good host's Identify",
                host_identify(hostile->good, CNS_NAMESPACE,
                              conf_target(conf)->nsid, id),
                NVME_SC_SUCCESS);
    if (id[ID_NS_RESCAP] == 0) {
        conf_not_applicable(conf, "RESCAP is 0");
    }
    hostile->size_blocks = get_le64(id + ID_NS_NSZE);
    hostile->good_blocks = hostile->size_blocks / 2;
    good_clear(hostile);
    good_reserve(hostile);
    conf_write(conf, hostile->good, 1, 0, IO_BLOCKS, 0);
    hostile->a = open_attacker(conf, HOST_A);
    hostile->b = open_attacker(conf, HOST_B);
    hostile->fresh = rc_new(conf, &(struct rc_config){.host = FRESH});
    for (uint8_t i = 0; i < MANY; i++) {
        hostile->many[i] =
            rc_new(conf, &(struct rc_config){.peer = FIRST_MANY + i,
                                             .host = FIRST_MANY + i});
    }
    hostile->granule_bytes = read_granule(hostile);
    return hostile;
}

/* Put the attacks, each as often as the others, into a random order. */
static void shuffle_attacks(struct conf *conf, uint8_t *order, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)(conf_random(conf) >> 16) % (i + 1);

        order[i] = order[at];
        order[at] = (uint8_t)(i % ARRAY_LEN(attacks));
    }
}

static void hostile_beside(struct conf *conf)
{
    uint8_t order[REPEATS * ARRAY_LEN(attacks)];
    struct hostile *hostile;

    conf_needs_block(conf);
    hostile = open_hostile(conf);
    shuffle_attacks(conf, order, sizeof(order));
    for (size_t i = 0; i < sizeof(order); i++) {
        uint64_t lba = good_error(hostile);

        conf_note(conf, "attack: %s", attacks[order[i]].name);
        attacks[order[i]].run(hostile);
        good_io(hostile);
        good_connects(hostile);
        conf_pass(conf, conf_random(conf) % (conf_target(conf)->is_virtual
                                                 ? PAUSE_US
                                                 : PAUSE_REAL_US));
        good_preempt(hostile);
        good_finds_error(hostile, lba);
        good_io(hostile);
        conf_flush(conf);
    }
    conf_note(conf,
              "the good host's I/O took up to %llu us, its Preempt and Abort "
              "up to %llu us",
              (unsigned long long)hostile->slowest_io_us,
              (unsigned long long)hostile->slowest_preempt_us);
    good_clear(hostile);
    host_disconnect(hostile->good);
    if (conf_target(conf)->is_ours) {
        conf_console(conf, "host remove " CLAIMED_NQN);
    }
}

static const struct conf_test tests[] = {
    CONF_TEST("hostile.beside", "NVMe 1.4 8.8; NVMe-oF 1.1 7.3.6",
              "a host that does whatever it can does not disturb another one",
              hostile_beside, .needs = CONF_NEEDS_FLAGS, .is_malformed = true,
              .judges_time = true),
    CONF_TEST("hostile.real", "NVMe 1.4 8.8; NVMe-oF 1.1 7.3.6",
              "the same in real time", hostile_beside, .needs = CONF_LONG,
              .is_malformed = true, .judges_time = true),
};
CONF_TESTS(conf_tests_robust_hostile, "robust", tests);
