/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands that change the state of a controller, sent without waiting for each
 * other: every ordered pair, natively every ordered triple, and long random
 * sequences.
 *
 * The same must hold after each of them:
 *  + each command gets exactly one completion, or its connection ends (an
 *    Asynchronous Event Request may also go on waiting);
 *  + CSTS agrees with the CC that reads back;
 *  + a host on the other port is not affected, unless the subsystem was reset;
 *  + the next sequence begins with new connections and verified I/O;
 *  + at the test's end nothing is left in the target's pools.
 *
 * Spec: NVM Express 1.4 3.1.5, 3.1.6, 7.3, 7.6; NVMe over Fabrics 1.1 3, 4.4.
 */
#include <stdio.h>
#include <string.h>

#include "lib/bytes.h"
#include "limits_lib.h"

enum {
    OUTSTANDING_MAX = 48,
    HOSTS = 2,
    /* Offsets in rc->mem; the data of Connect is at 0. */
    MEM_TIMESTAMP = 0x1000,
    MEM_WRITE = 0x2000,
    MEM_READ = 0x4000,
    BLOCKS = 8,
    LBA = 64,
    WITNESS_LBA = 1024,
    DUPLICATES_US = 500,
    MAY_RESET_US = 50000,
    PARTING_US = 10000000,
    IDLE_US = 8000000,
    CSTS_TRIES = 1000,
    CSTS_PAUSE_US = 1000,
    KATO_MS = 60000,
    RANDOM_FLUSHES = 8000,
    RANDOM_FLUSHES_REAL = 300,
    RANDOM_IN_A_FLUSH = 12,
    RANDOM_PAUSE_US = 1500,
};

enum op {
    OP_DISABLE,
    OP_ENABLE,
    OP_ENABLE_BAD, /* Selects a command set that no controller has. */
    OP_SHUT_DOWN,
    OP_DISABLE_SHUT_DOWN,
    OP_RESET_SUBSYSTEM,
    OP_EVENT,
    OP_ABORT, /* Aborts the command that was sent last. */
    OP_KEEP_ALIVE_TIMER,
    OP_TIMESTAMP, /* Set Features with data that the target has to fetch. */
    OP_WRITE,     /* A Write, whose data the target has to fetch as well. */
    OP_READ,
    OP_CONNECT, /* Connects a second I/O queue. */
    OP_CONNECT_AGAIN,
    OP_LEAVE_IO,
    OP_LEAVE,
    OPS
};

static const char *const op_names[OPS] = {
    "CC.EN 0",
    "CC.EN 1",
    "CC.EN 1 with CSS 6",
    "CC.SHN 1",
    "CC.EN 0, SHN 1",
    "NSSR",
    "AER",
    "Abort",
    "Set Features KATO",
    "Set Timestamp",
    "Write",
    "Read",
    "Connect queue 2",
    "Connect again",
    "DREQ of queue 1",
    "DREQ of the admin queue",
};

struct command {
    uint16_t cid;
    uint8_t op;
};

/* One queue: its connection, and the commands that have no completion yet. */
struct lane {
    struct rc *rc;
    bool is_open;  /* connected, or the test has not noted its end yet */
    bool has_left; /* The test has sent the DREQ. */
    bool is_wrong; /* There was a completion that belongs to no command. */
    /* NSSR was answered on it, so that every association has to end. */
    bool was_reset;
    uint16_t wrong_cid;
    unsigned int num_outstanding;
    struct command outstanding[OUTSTANDING_MAX];
};

enum { ADMIN, IO, LATE, LANES }; /* OP_CONNECT connects LATE. */

struct host {
    struct conf *conf;
    struct lane lanes[LANES];
    uint16_t last_cid, last_qid; /* The last command, for OP_ABORT. */
    /* CC asked for something impossible since CC.EN was 0. */
    bool may_have_failed;
};

struct pipeline {
    struct conf *conf;
    unsigned int num_hosts;
    struct host hosts[HOSTS];
    struct nvme_host *witness;
    unsigned int witness_port;
    uint32_t version; /* The version of the witness's data. */
    bool has_reset;   /* NSSR was among the commands. */
    char what[512];   /* Describes the sequence in failures. */
};

/* ---- Completions. */

static bool has_ended(const struct lane *lane)
{
    return !lane->is_open || lane->has_left || lane->rc->dreqs != 0;
}

static void take_completions(struct lane *lane)
{
    struct rc *rc = lane->rc;

    while (lane->is_open && rc->get != rc->put) {
        const struct rc_message *message =
            &rc->messages[rc->get++ % RC_MESSAGES];
        struct nvme_cqe cqe;
        unsigned int i = 0;

        nvme_cqe_parse(&cqe, message->data);
        while (i < lane->num_outstanding &&
               lane->outstanding[i].cid != cqe.cid) {
            i++;
        }
        if (i == lane->num_outstanding || message->len_bytes != NVME_CQE_LEN) {
            lane->is_wrong = true;
            lane->wrong_cid = cqe.cid;
            return;
        }
        lane->was_reset =
            lane->was_reset || (lane->outstanding[i].op == OP_RESET_SUBSYSTEM &&
                                (cqe.status & NVME_SC_MASK) == NVME_SC_SUCCESS);
        lane->outstanding[i] = lane->outstanding[--lane->num_outstanding];
    }
}

/* @return a command that has no completion although it needs one, or NULL */
static const struct command *lane_unanswered(const struct lane *lane)
{
    for (unsigned int i = 0; i < lane->num_outstanding; i++) {
        if (lane->outstanding[i].op != OP_EVENT && !has_ended(lane)) {
            return &lane->outstanding[i];
        }
    }
    return NULL;
}

static bool is_settled(void *ctx)
{
    struct pipeline *pipe = ctx;
    bool is_settled = true;

    for (unsigned int h = 0; h < pipe->num_hosts; h++) {
        for (unsigned int l = 0; l < LANES; l++) {
            struct lane *lane = &pipe->hosts[h].lanes[l];

            take_completions(lane);
            is_settled =
                is_settled && !lane->is_wrong && lane_unanswered(lane) == NULL;
        }
    }
    return is_settled;
}

static void check_completions(struct pipeline *pipe)
{
    for (unsigned int h = 0; h < pipe->num_hosts; h++) {
        for (unsigned int l = 0; l < LANES; l++) {
            struct lane *lane = &pipe->hosts[h].lanes[l];
            const struct command *command;

            take_completions(lane);
            command = lane_unanswered(lane);
            conf_check(pipe->conf, !lane->is_wrong,
                       "%s: a completion came twice, or for no command: cid %u",
                       pipe->what, lane->wrong_cid);
            conf_check(pipe->conf, command == NULL,
                       "%s: %s has no completion, but its connection goes on",
                       pipe->what,
                       command != NULL ? op_names[command->op] : "");
        }
    }
}

static void settle_commands(struct pipeline *pipe)
{
    conf_wait(pipe->conf, is_settled, pipe, CONF_ANSWER_US);
    check_completions(pipe);
    conf_pass(pipe->conf, DUPLICATES_US);
    check_completions(pipe);
}

/* ---- A host connects and leaves. */

/* @return false when it was refused, as a controller that is ending may do */
static bool open_lane(struct host *host, unsigned int index, uint16_t qid)
{
    struct lane *lane = &host->lanes[index];
    struct rc *rc = lane->rc;

    rc->config.qid = qid;
    rc->config.cntlid = qid == 0 ? 0 : host->lanes[ADMIN].rc->config.cntlid;
    lane->has_left = false;
    lane->was_reset = false;
    lane->num_outstanding = 0;
    lane->is_open = rc_reopen(rc);
    return lane->is_open;
}

static void must_open_lane(struct host *host, unsigned int index, uint16_t qid)
{
    conf_check(host->conf, open_lane(host, index, qid),
               "a connection for queue %u was refused", qid);
}

static void check_io(struct host *host, uint32_t version)
{
    struct rc *rc = host->lanes[IO].rc;
    struct nvme_sqe sqe = nvmf_io(host->conf, NVM_WRITE, LBA, BLOCKS);
    struct sgl sgl = rc_keyed(rc, MEM_WRITE, BLOCKS * CONF_BLOCK);

    conf_fill(rc->mem + MEM_WRITE, LBA, BLOCKS, version);
    conf_status(host->conf, "Write", rc_command(rc, &sqe, &sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    sqe = nvmf_io(host->conf, NVM_READ, LBA, BLOCKS);
    sgl = rc_keyed(rc, MEM_READ, BLOCKS * CONF_BLOCK);
    conf_status(host->conf, "Read", rc_command(rc, &sqe, &sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    conf_same(host->conf, "the data that was written", rc->mem + MEM_READ,
              rc->mem + MEM_WRITE, BLOCKS * CONF_BLOCK);
}

/* Connect and enable the admin queue, connect one I/O queue, and do verified
 * I/O. */
static void host_arrive(struct pipeline *pipe, struct host *host)
{
    struct rc *admin = host->lanes[ADMIN].rc;

    must_open_lane(host, ADMIN, 0);
    rc_connect(admin);
    host->may_have_failed = false;
    conf_status(host->conf, "Property Set CC",
                nvmf_set(admin, PROPERTY_CC, 4, NVMF_CC_ENABLE),
                NVME_SC_SUCCESS);
    nvmf_wait_csts(admin, CSTS_RDY, CSTS_RDY);
    must_open_lane(host, IO, 1);
    rc_connect(host->lanes[IO].rc);
    check_io(host, ++pipe->version);
}

struct leaving {
    const struct host *host;
    unsigned int first;
};

static bool has_left(void *ctx)
{
    const struct leaving *leaving = ctx;

    for (unsigned int l = leaving->first; l < LANES; l++) {
        const struct lane *lane = &leaving->host->lanes[l];

        if (lane->is_open && lane->rc->dreqs == 0 && lane->rc->dreps == 0) {
            return false;
        }
    }
    return true;
}

/* End the connections of a host from lane `first` on, whichever side begins. */
static void host_leave(struct host *host, unsigned int first)
{
    struct leaving leaving = {host, first};

    for (unsigned int l = LANES; l-- > first;) {
        struct lane *lane = &host->lanes[l];

        if (!has_ended(lane)) {
            lane->has_left = true;
            rc_send_dreq(lane->rc);
        }
    }
    conf_check(host->conf,
               conf_wait(host->conf, has_left, &leaving, CONF_ANSWER_US),
               "a connection does not end: neither DREP nor DREQ came");
    for (unsigned int l = first; l < LANES; l++) {
        struct lane *lane = &host->lanes[l];

        if (lane->is_open && lane->rc->dreqs != 0) {
            rc_send_drep(lane->rc);
        }
        lane->is_open = false;
        lane->num_outstanding = 0;
    }
}

/* ---- Commands. */

static uint16_t send_property(struct rc *rc, uint32_t offset, uint32_t value)
{
    struct property_command set = {
        .size_bytes = 4, .offset = offset, .value = value};
    struct nvme_sqe sqe = {.fctype = FABRICS_PROPERTY_SET};

    property_command_build(&sqe, &set);
    return rc_send_capsule(rc, &sqe, NULL, NULL, 0);
}

static uint16_t send_feature(struct rc *rc, uint8_t fid, uint32_t value,
                             const struct sgl *sgl)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_SET_FEATURES, .cdw10 = fid, .cdw11 = value};

    return rc_send_capsule(rc, &sqe, sgl, NULL, 0);
}

static uint16_t send_io(struct rc *rc, uint8_t opcode, uint32_t offset)
{
    struct nvme_sqe sqe = nvmf_io(rc->conf, opcode, LBA, BLOCKS);
    struct sgl sgl = rc_keyed(rc, offset, BLOCKS * CONF_BLOCK);

    return rc_send_capsule(rc, &sqe, &sgl, NULL, 0);
}

static uint16_t send_abort(const struct host *host)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_ABORT,
                           .cdw10 =
                               (uint32_t)host->last_cid << 16 | host->last_qid};

    return rc_send_capsule(host->lanes[ADMIN].rc, &sqe, NULL, NULL, 0);
}

static unsigned int lane_of(enum op op)
{
    switch (op) {
    case OP_WRITE:
    case OP_READ:
    case OP_LEAVE_IO:
        return IO;
    case OP_CONNECT:
        return LATE;
    default:
        return ADMIN;
    }
}

/* @return the CID of the command */
static uint16_t send_command(struct host *host, enum op op)
{
    struct rc *rc = host->lanes[lane_of(op)].rc;
    struct nvme_sqe aer = {.opcode = ADMIN_ASYNC_EVENT_REQUEST};
    struct sgl timestamp = rc_keyed(rc, MEM_TIMESTAMP, 8);

    switch (op) {
    case OP_DISABLE:
        return send_property(rc, PROPERTY_CC, NVMF_CC_ENABLE - CC_EN);
    case OP_ENABLE:
        return send_property(rc, PROPERTY_CC, NVMF_CC_ENABLE);
    case OP_ENABLE_BAD:
        return send_property(rc, PROPERTY_CC,
                             NVMF_CC_ENABLE | 6u << CC_CSS_SHIFT);
    case OP_SHUT_DOWN:
        return send_property(rc, PROPERTY_CC,
                             NVMF_CC_ENABLE | 1u << CC_SHN_SHIFT);
    case OP_DISABLE_SHUT_DOWN:
        return send_property(rc, PROPERTY_CC,
                             (NVMF_CC_ENABLE - CC_EN) | 1u << CC_SHN_SHIFT);
    case OP_RESET_SUBSYSTEM:
        return send_property(rc, PROPERTY_NSSR, NSSR_RESET);
    case OP_EVENT:
        return rc_send_capsule(rc, &aer, NULL, NULL, 0);
    case OP_ABORT:
        return send_abort(host);
    case OP_KEEP_ALIVE_TIMER:
        return send_feature(rc, FEATURE_KEEP_ALIVE_TIMER, KATO_MS, NULL);
    case OP_TIMESTAMP:
        return send_feature(rc, FEATURE_TIMESTAMP, 0, &timestamp);
    case OP_WRITE:
        return send_io(rc, NVM_WRITE, MEM_WRITE);
    case OP_READ:
        return send_io(rc, NVM_READ, MEM_READ);
    case OP_CONNECT:
    case OP_CONNECT_AGAIN:
        return rc_send_connect(rc);
    case OP_LEAVE_IO:
    case OP_LEAVE:
    case OPS:
        break;
    }
    return 0;
}

/* Send a command, whatever else is outstanding; send nothing on a connection
 * that has ended. */
static void do_op(struct pipeline *pipe, struct host *host, enum op op)
{
    struct lane *lane = &host->lanes[lane_of(op)];
    struct command *command = &lane->outstanding[lane->num_outstanding];

    if (has_ended(lane) || lane->num_outstanding == OUTSTANDING_MAX) {
        return;
    }
    if (op == OP_LEAVE || op == OP_LEAVE_IO) {
        lane->has_left = true;
        rc_send_dreq(lane->rc);
        return;
    }
    pipe->has_reset = pipe->has_reset || op == OP_RESET_SUBSYSTEM;
    host->may_have_failed = host->may_have_failed || op == OP_ENABLE_BAD;
    *command = (struct command){send_command(host, op), (uint8_t)op};
    lane->num_outstanding++;
    host->last_cid = command->cid;
    host->last_qid = lane->rc->config.qid;
}

/* ---- What must hold afterwards. */

/* Wait for RDY or CFS: an impossible CC causes CFS, unless the controller was
 * enabled already. */
static void wait_rdy_or_cfs(struct pipeline *pipe, struct rc *rc)
{
    uint64_t csts;

    for (unsigned int i = 0; i < CSTS_TRIES; i++) {
        conf_status(pipe->conf, "Property Get CSTS",
                    nvmf_get(rc, PROPERTY_CSTS, 4, &csts), NVME_SC_SUCCESS);
        if (csts & (CSTS_RDY | CSTS_CFS)) {
            return;
        }
        conf_pass(pipe->conf, CSTS_PAUSE_US);
    }
    conf_fail(pipe->conf, "%s: CC.EN is 1, but CSTS has neither RDY nor CFS",
              pipe->what);
}

/* If the admin queue is still connected, the controller's state must agree with
 * CC. */
static void check_controller(struct pipeline *pipe, struct host *host)
{
    struct rc *rc = host->lanes[ADMIN].rc;
    uint64_t cc;
    bool is_shn;

    if (has_ended(&host->lanes[ADMIN])) {
        return;
    }
    if (host->lanes[ADMIN].was_reset) {
        nvmf_wait_csts(rc, CSTS_RDY | CSTS_CFS, 0);
        return;
    }
    conf_status(pipe->conf, "Property Get CC",
                nvmf_get(rc, PROPERTY_CC, 4, &cc), NVME_SC_SUCCESS);
    is_shn = (cc >> CC_SHN_SHIFT & 3) != 0;
    if (!(cc & CC_EN)) {
        nvmf_wait_csts(rc, CSTS_RDY | CSTS_CFS, 0);
        host->may_have_failed = false;
    } else if (host->may_have_failed) {
        wait_rdy_or_cfs(pipe, rc);
    } else {
        nvmf_wait_csts(rc, CSTS_RDY | CSTS_CFS, CSTS_RDY);
    }
    if (is_shn) {
        nvmf_wait_csts(rc, 3u << CSTS_SHST_SHIFT, 2u << CSTS_SHST_SHIFT);
    }
}

static void witness_arrive(struct pipeline *pipe)
{
    pipe->witness = conf_connect(
        pipe->conf,
        &(struct conf_session){.port = pipe->witness_port, .io_queues = 1});
}

/* Only a subsystem reset may end the witness's connections. */
static void check_witness(struct pipeline *pipe)
{
    if (pipe->has_reset && host_is_broken(pipe->witness)) {
        host_disconnect(pipe->witness);
        witness_arrive(pipe);
    }
    pipe->version++;
    conf_write(pipe->conf, pipe->witness, 1, WITNESS_LBA, 1, pipe->version);
    conf_verify(pipe->conf, pipe->witness, 1, WITNESS_LBA, 1, pipe->version);
    pipe->has_reset = false;
}

static bool is_reset(void *ctx)
{
    struct pipeline *pipe = ctx;

    for (unsigned int h = 0; h < pipe->num_hosts; h++) {
        for (unsigned int l = 0; l < LANES; l++) {
            const struct lane *lane = &pipe->hosts[h].lanes[l];

            if (l != LATE && !lane->was_reset && !has_ended(lane)) {
                return false;
            }
        }
    }
    return host_is_broken(pipe->witness);
}

/*
 * An NSSR that was answered ends every association, although the admin queue on
 * which it was written may stay for a while. An NSSR without an answer, whose
 * connection has ended, may have had that effect or not.
 */
static void check_reset(struct pipeline *pipe)
{
    bool was_answered = false, is_done;

    for (unsigned int h = 0; h < pipe->num_hosts; h++) {
        was_answered = was_answered || pipe->hosts[h].lanes[ADMIN].was_reset;
    }
    is_done = conf_wait(pipe->conf, is_reset, pipe,
                        was_answered ? CONF_ANSWER_US : MAY_RESET_US);
    conf_check(pipe->conf, is_done || !was_answered,
               "%s: NSSR was answered, but an association goes on", pipe->what);
}

static void check_all(struct pipeline *pipe)
{
    settle_commands(pipe);
    if (pipe->has_reset) {
        check_reset(pipe);
    }
    for (unsigned int h = 0; h < pipe->num_hosts; h++) {
        check_controller(pipe, &pipe->hosts[h]);
    }
    check_witness(pipe);
}

static struct pipeline *pipeline_begin(struct conf *conf,
                                       unsigned int num_hosts)
{
    struct pipeline *pipe = conf_alloc(conf, sizeof(*pipe));
    unsigned int ports = conf_target(conf)->num_ports;

    conf_needs_block(conf);
    limits_expect_idle(conf, IDLE_US);
    pipe->conf = conf;
    pipe->num_hosts = num_hosts;
    pipe->witness_port = ports - 1;
    for (unsigned int h = 0; h < num_hosts; h++) {
        struct rc_config config = {.port = h % ports, .peer = h};

        pipe->hosts[h].conf = conf;
        for (unsigned int l = 0; l < LANES; l++) {
            pipe->hosts[h].lanes[l].rc = rc_new(conf, &config);
        }
    }
    witness_arrive(pipe);
    return pipe;
}

static void pipeline_end(struct pipeline *pipe)
{
    for (unsigned int h = 0; h < pipe->num_hosts; h++) {
        host_arrive(pipe, &pipe->hosts[h]);
        host_leave(&pipe->hosts[h], ADMIN);
    }
    host_disconnect(pipe->witness);
    limits_expect_idle(pipe->conf, IDLE_US);
    conf_expect_alive(pipe->conf);
}

/* ---- Sequences: each is sent in one flush to a controller that was just
 * enabled. */

/* Describe the sequence for the log and for failures. @param hosts  as in
 * send_sequence(); NULL when there is only one host */
static void describe_sequence(struct pipeline *pipe, const enum op *ops,
                              const unsigned int *hosts, unsigned int count)
{
    int at = 0;

    for (unsigned int i = 0; i < count; i++) {
        bool is_first = hosts == NULL || hosts[i] == 0;

        at += snprintf(pipe->what + at, sizeof(pipe->what) - (size_t)at,
                       "%s%s%s", i == 0 ? "" : ", ",
                       is_first ? "" : "other host: ", op_names[ops[i]]);
    }
    conf_note(pipe->conf, "in one flush: %s", pipe->what);
}

/* @param hosts  the index of the host that sends each command */
static void send_sequence(struct pipeline *pipe, const enum op *ops,
                          const unsigned int *hosts, unsigned int count)
{
    describe_sequence(pipe, ops, hosts, count);
    for (unsigned int h = 0; h < pipe->num_hosts; h++) {
        host_arrive(pipe, &pipe->hosts[h]);
    }
    for (unsigned int i = 0; i < count; i++) {
        struct host *host = &pipe->hosts[hosts[i]];

        if (ops[i] == OP_CONNECT && !host->lanes[LATE].is_open) {
            must_open_lane(host, LATE, 2);
        }
    }
    conf_flush(pipe->conf);
    for (unsigned int i = 0; i < count; i++) {
        do_op(pipe, &pipe->hosts[hosts[i]], ops[i]);
    }
    check_all(pipe);
    for (unsigned int h = 0; h < pipe->num_hosts; h++) {
        host_leave(&pipe->hosts[h], ADMIN);
    }
}

static void send_pairs(struct conf *conf, enum op first)
{
    struct pipeline *pipe = pipeline_begin(conf, 1);

    for (unsigned int second = 0; second < OPS; second++) {
        send_sequence(pipe, (const enum op[]){first, (enum op)second},
                      (const unsigned int[]){0, 0}, 2);
    }
    pipeline_end(pipe);
}

static void pairs_of_hosts(struct conf *conf)
{
    struct pipeline *pipe = pipeline_begin(conf, HOSTS);

    for (unsigned int i = 0; i < OPS * OPS; i++) {
        /* Few commands of one host affect the other host at all. */
        enum op first = (enum op)(i / OPS), second = (enum op)(i % OPS);

        if (first == OP_RESET_SUBSYSTEM || second == OP_RESET_SUBSYSTEM ||
            conf_target(conf)->is_virtual) {
            send_sequence(pipe, (const enum op[]){first, second},
                          (const unsigned int[]){0, 1}, 2);
        }
    }
    pipeline_end(pipe);
}

static void send_triples(struct conf *conf, enum op first)
{
    struct pipeline *pipe;

    if (!conf_target(conf)->is_virtual) {
        conf_not_applicable(conf, "triples take too long in real time");
    }
    pipe = pipeline_begin(conf, 1);
    for (unsigned int i = 0; i < OPS * OPS; i++) {
        send_sequence(
            pipe,
            (const enum op[]){first, (enum op)(i / OPS), (enum op)(i % OPS)},
            (const unsigned int[]){0, 0, 0}, 3);
    }
    pipeline_end(pipe);
}

/* ---- A random host, whose controller keeps its state from flush to flush. */

static enum op random_op(struct conf *conf)
{
    /* Commands that end a connection are rare, so that there is something to
     * end. */
    static const uint8_t weights[OPS] = {
        [OP_DISABLE] = 6,
        [OP_ENABLE] = 8,
        [OP_ENABLE_BAD] = 2,
        [OP_SHUT_DOWN] = 3,
        [OP_DISABLE_SHUT_DOWN] = 2,
        [OP_RESET_SUBSYSTEM] = 1,
        [OP_EVENT] = 6,
        [OP_ABORT] = 6,
        [OP_KEEP_ALIVE_TIMER] = 3,
        [OP_TIMESTAMP] = 6,
        [OP_WRITE] = 12,
        [OP_READ] = 12,
        [OP_CONNECT] = 4,
        [OP_CONNECT_AGAIN] = 1,
        [OP_LEAVE_IO] = 1,
        [OP_LEAVE] = 1,
    };
    unsigned int sum = 0, pick;

    for (unsigned int i = 0; i < OPS; i++) {
        sum += weights[i];
    }
    pick = (unsigned int)(conf_random(conf) >> 16) % sum;
    for (unsigned int i = 0; i < OPS; i++) {
        if (pick < weights[i]) {
            return (enum op)i;
        }
        pick -= weights[i];
    }
    return OP_ENABLE;
}

/* Reset the controller as a driver does: disable it, enable it, connect a new
 * I/O queue. */
static void reset_controller(struct pipeline *pipe, struct host *host)
{
    struct rc *admin = host->lanes[ADMIN].rc;

    host_leave(host, IO);
    do_op(pipe, host, OP_DISABLE); /* Event requests may be answered first. */
    settle_commands(pipe);
    nvmf_wait_csts(admin, CSTS_RDY, 0);
    host->may_have_failed = false;
    do_op(pipe, host, OP_ENABLE);
    settle_commands(pipe);
    nvmf_wait_csts(admin, CSTS_RDY, CSTS_RDY);
    must_open_lane(host, IO, 1);
    rc_connect(host->lanes[IO].rc);
    check_io(host, ++pipe->version);
}

/* Connect again what has ended. */
static void come_back(struct pipeline *pipe, struct host *host)
{
    if (has_ended(&host->lanes[ADMIN]) || host->lanes[ADMIN].was_reset) {
        host_leave(host, ADMIN);
        host_arrive(pipe, host);
    } else if (has_ended(&host->lanes[IO])) {
        reset_controller(pipe, host);
    }
    if (has_ended(&host->lanes[LATE])) {
        host_leave(host, LATE);
        open_lane(host, LATE, 2);
    }
}

static void random_hosts(struct conf *conf)
{
    struct pipeline *pipe = pipeline_begin(conf, HOSTS);
    unsigned int flushes =
        conf_target(conf)->is_virtual ? RANDOM_FLUSHES : RANDOM_FLUSHES_REAL;

    for (unsigned int i = 0; i < flushes; i++) {
        unsigned int count =
            1 + (unsigned int)(conf_random(conf) >> 16) % RANDOM_IN_A_FLUSH;
        int at = 0;

        conf_flush(conf);
        for (unsigned int h = 0; h < HOSTS; h++) {
            come_back(pipe, &pipe->hosts[h]);
        }
        for (unsigned int n = 0; n < count; n++) {
            uint64_t random = conf_random(conf) >> 16;
            enum op op = random_op(conf);

            at += snprintf(pipe->what + at, sizeof(pipe->what) - (size_t)at,
                           "%s%u: %s", n == 0 ? "" : ", ",
                           (unsigned int)(random % HOSTS), op_names[op]);
            do_op(pipe, &pipe->hosts[random % HOSTS], op);
            if (random / HOSTS % 4 == 0) {
                conf_pass(conf, random / 16 % RANDOM_PAUSE_US);
            }
        }
        conf_note(conf, "random commands %u: %s", i, pipe->what);
        check_all(pipe);
    }
    for (unsigned int h = 0; h < HOSTS; h++) {
        host_leave(&pipe->hosts[h], ADMIN);
    }
    pipeline_end(pipe);
}

/* ---- Single sequences with a known outcome. */

/* Connect one host, whose controller is enabled. */
static struct pipeline *single_begin(struct conf *conf)
{
    struct pipeline *pipe = pipeline_begin(conf, 1);

    host_arrive(pipe, &pipe->hosts[0]);
    return pipe;
}

/* Send the commands in one flush, and wait for their completions. */
static void single_send(struct pipeline *pipe, const enum op *ops,
                        unsigned int count)
{
    describe_sequence(pipe, ops, NULL, count);
    for (unsigned int i = 0; i < count; i++) {
        do_op(pipe, &pipe->hosts[0], ops[i]);
    }
    settle_commands(pipe);
}

static void single_end(struct pipeline *pipe)
{
    host_leave(&pipe->hosts[0], ADMIN);
    pipeline_end(pipe);
}

#define SINGLE_SEND(pipe, ...)                                                 \
    single_send(pipe, (const enum op[]){__VA_ARGS__},                          \
                ARRAY_LEN(((const enum op[]){__VA_ARGS__})))

/* CC.EN becomes 1 again while the reset still waits for the I/O queue. */
static void enable_during_reset(struct conf *conf)
{
    struct pipeline *pipe = single_begin(conf);
    struct host *host = &pipe->hosts[0];

    SINGLE_SEND(pipe, OP_DISABLE, OP_ENABLE);
    nvmf_wait_csts(host->lanes[ADMIN].rc, CSTS_RDY | CSTS_CFS, CSTS_RDY);
    must_open_lane(host, LATE, 2);
    rc_connect(host->lanes[LATE].rc);
    single_end(pipe);
}

/* CC.SHN keeps its value over a reset, and then requests a second shutdown. */
static void shut_down_twice(struct conf *conf)
{
    struct pipeline *pipe = single_begin(conf);

    SINGLE_SEND(pipe, OP_SHUT_DOWN, OP_DISABLE_SHUT_DOWN, OP_SHUT_DOWN);
    check_controller(pipe, &pipe->hosts[0]);
    single_end(pipe);
}

static void disable_during_reset(struct conf *conf)
{
    struct pipeline *pipe = single_begin(conf);

    SINGLE_SEND(pipe, OP_DISABLE, OP_ENABLE, OP_DISABLE);
    nvmf_wait_csts(pipe->hosts[0].lanes[ADMIN].rc, CSTS_RDY | CSTS_CFS, 0);
    single_end(pipe);
}

static bool has_admin_ended(void *ctx)
{
    return has_ended(&((struct host *)ctx)->lanes[ADMIN]);
}

/* NSSR is answered to the host that wrote it, whose association ends
 * as well. */
static void reset_subsystem(struct conf *conf)
{
    struct pipeline *pipe = single_begin(conf);
    struct host *host = &pipe->hosts[0];
    uint64_t cap;

    conf_status(conf, "Property Get CAP",
                nvmf_get(host->lanes[ADMIN].rc, PROPERTY_CAP, 8, &cap),
                NVME_SC_SUCCESS);
    if (!(cap >> 36 & 1)) {
        conf_not_applicable(conf, "CAP.NSSRS is 0");
    }
    SINGLE_SEND(pipe, OP_RESET_SUBSYSTEM);
    conf_check(conf, host->lanes[ADMIN].was_reset, "NSSR was not answered");
    check_reset(pipe);
    check_witness(pipe); /* On a new connection. */
    conf_check(conf, conf_wait(conf, has_admin_ended, host, PARTING_US),
               "the association on which NSSR was written does not end");
    single_end(pipe);
}

/* Hosts do this: they disable the controller, then they disconnect. */
static void reset_subsystem_then_leave(struct conf *conf)
{
    struct pipeline *pipe = single_begin(conf);
    struct host *host = &pipe->hosts[0];

    SINGLE_SEND(pipe, OP_RESET_SUBSYSTEM, OP_DISABLE);
    if (!has_ended(&host->lanes[ADMIN])) {
        nvmf_wait_csts(host->lanes[ADMIN].rc, CSTS_RDY, 0);
    }
    check_reset(pipe);
    single_end(pipe);
}

#define FIRSTS(X)                                                              \
    X(OP_DISABLE, disable, "disable")                                          \
    X(OP_ENABLE, enable, "enable")                                             \
    X(OP_ENABLE_BAD, enable_bad, "enable-bad")                                 \
    X(OP_SHUT_DOWN, shut_down, "shutdown")                                     \
    X(OP_DISABLE_SHUT_DOWN, disable_shut_down, "disable-shutdown")             \
    X(OP_RESET_SUBSYSTEM, reset_subsystem, "nssr")                             \
    X(OP_EVENT, event, "event")                                                \
    X(OP_ABORT, abort, "abort")                                                \
    X(OP_KEEP_ALIVE_TIMER, keep_alive_timer, "kato")                           \
    X(OP_TIMESTAMP, timestamp, "timestamp")                                    \
    X(OP_WRITE, write, "write")                                                \
    X(OP_READ, read, "read")                                                   \
    X(OP_CONNECT, connect, "connect")                                          \
    X(OP_CONNECT_AGAIN, connect_again, "connect-again")                        \
    X(OP_LEAVE_IO, leave_io, "leave-io")                                       \
    X(OP_LEAVE, leave_admin, "leave")

#define FUNCTIONS(op, name, id)                                                \
    static void pairs_##name(struct conf *conf)                                \
    {                                                                          \
        send_pairs(conf, op);                                                  \
    }                                                                          \
    static void triples_##name(struct conf *conf)                              \
    {                                                                          \
        send_triples(conf, op);                                                \
    }
FIRSTS(FUNCTIONS)

#define CLAUSE "NVMe 1.4 3.1.5, 7.3.2, NVMe-oF 1.1 4.4"
#define PAIRS(op, name, id)                                                    \
    CONF_TEST("pairs." id, CLAUSE,                                             \
              "this and each other command in one flush complete once, and "   \
              "CSTS agrees with CC",                                           \
              pairs_##name),
#define TRIPLES(op, name, id)                                                  \
    CONF_TEST("triples." id, CLAUSE,                                           \
              "this and each two other commands in one flush complete once, "  \
              "and CSTS agrees with CC",                                       \
              triples_##name),

static const struct conf_test tests[] = {
    CONF_TEST("pipeline.enable", "NVMe 1.4 3.1.5, 7.3.2",
              "CC.EN 0 and 1 in one flush reset the controller and enable it",
              enable_during_reset),
    CONF_TEST("pipeline.disable", "NVMe 1.4 3.1.5, 7.3.2",
              "CC.EN 0, 1 and 0 in one flush reset the controller and leave it "
              "disabled",
              disable_during_reset),
    CONF_TEST("pipeline.shutdown", "NVMe 1.4 3.1.6, 7.6.2",
              "CSTS.SHST becomes 2 after CC.SHN, a reset that keeps CC.SHN, "
              "and CC.SHN again",
              shut_down_twice),
    CONF_TEST("pipeline.nssr", "NVMe 1.4 3.1.7, 7.3.1",
              "NSSR is answered, and every association ends", reset_subsystem),
    CONF_TEST("pipeline.nssr-leave", "NVMe 1.4 3.1.7, 7.3.1",
              "a controller is disabled after NSSR and CC.EN 0 in one flush",
              reset_subsystem_then_leave),
    FIRSTS(PAIRS) FIRSTS(TRIPLES)
        CONF_TEST("pairs.of-hosts", CLAUSE,
                  "each two commands of two hosts at once complete once, and "
                  "CSTS agrees with CC",
                  pairs_of_hosts),
    CONF_TEST("pipeline.random", CLAUSE,
              "random commands of two hosts in one flush complete once, and "
              "CSTS agrees with CC",
              random_hosts, .needs = CONF_LONG),
};
CONF_TESTS(conf_tests_nvmf_pipeline, "nvmf", tests);
