/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that fall silent in the middle of an exchange, or that read slowly:
 * other hosts are not disturbed, and the resources of silent peers are
 * released: queue pairs, capsules, buffers, connections.
 */
#include "firmware/native/native.h"
#include "lib/bytes.h"
#include "robust_lib.h"

enum {
    MANY = 100,
    /* The number of commands for which an SQ of 32 entries has room. */
    DEPTH = 31,
    SLOW_PEERS = 8,
    SHARES_PEERS = 40,
    LONGEST = 1024 * 1024,
    /* With 31 commands of 128 KiB each, more than the target has
     * buffers for. */
    GREEDY_PEERS = 10,
    LARGE_BLOCKS = 256,
    CONNECT_TIMEOUT_US = 31000000,
    KATO_TIMEOUT_US = 5000000,
};

/* ---- During connection establishment. */

static void after_req(struct conf *conf)
{
    limits_expect_idle(conf, ROBUST_IDLE_US);
    robust_rc_half(conf, &(struct rc_config){.is_mute = true});
    limits_expect_pool(conf, "queue-pairs", 1);
    robust_expect_clean(conf);
}

static void after_req_many(struct conf *conf)
{
    limits_expect_idle(conf, ROBUST_IDLE_US);
    for (unsigned int i = 0; i < MANY; i++) {
        robust_rc_half(conf,
                       &(struct rc_config){.is_mute = true, .peer = i % 8});
    }
    conf_expect_alive(conf);
    robust_expect_clean(conf);
}

static void after_rej(struct conf *conf)
{
    for (unsigned int i = 0; i < 20; i++) {
        struct rc *rc = robust_rc_half(conf, &(struct rc_config){0});

        rc_send_rej(rc, CM_ANSWERS_REP, CM_REJ_CONSUMER);
    }
    robust_expect_clean(conf);
}

static void after_rtu(struct conf *conf)
{
    struct rc *rc = robust_rc(conf, &(struct rc_config){.is_mute = true});

    conf_expect_alive(conf);
    conf_pass(conf, CONNECT_TIMEOUT_US);
    rc_take_cm(rc, CM_DREQ);
    robust_expect_clean(conf);
}

/* ---- During Connect. */

static void connect_data_pending(struct conf *conf)
{
    struct rc *rc = robust_rc(conf, &(struct rc_config){.is_mute = true});

    rc_send_connect(rc);
    rc_take_opcode(rc, RC_READ_REQUEST);
    robust_expect_clean(conf);
}

static bool has_read(void *ctx)
{
    struct rc *rc = ctx;

    if (rc->reads == 0) {
        return false;
    }
    rc->answers = false;
    return true;
}

/* The data of Connect is sent; its response is never acknowledged. */
static void connect_response_pending(struct conf *conf)
{
    struct rc *rc = robust_rc(conf, &(struct rc_config){0});

    rc_send_connect(rc);
    conf_check(conf, conf_wait(conf, has_read, rc, CONF_ANSWER_US),
               "the target does not READ the data of Connect");
    robust_expect_clean(conf);
}

/* ---- With commands outstanding. */

static void send_io(struct rc *rc, uint8_t opcode, unsigned int count,
                    uint16_t blocks)
{
    uint32_t len = (uint32_t)blocks * CONF_BLOCK;

    for (unsigned int i = 0; i < count; i++) {
        struct nvme_sqe sqe =
            nvmf_io(rc->conf, opcode, 4096u + i * blocks, blocks);
        struct sgl sgl = rc_keyed(rc, 0, len);

        rc_send_capsule(rc, &sqe, opcode == NVM_FLUSH ? NULL : &sgl, NULL, 0);
    }
}

/* The peer of the I/O queue falls silent after its command. */
static void io_then_silence(struct conf *conf, uint8_t opcode,
                            unsigned int count, uint16_t blocks)
{
    struct nvmf_pair pair = robust_pair(conf);

    pair.io->answers = false;
    pair.admin->answers = false;
    send_io(pair.io, opcode, count, blocks);
    conf_expect_alive(conf);
    /* The admin queue has nothing outstanding, so that it can
     * be disconnected. */
    rc_send_dreq(pair.admin);
    robust_expect_clean(conf);
}

static void read_pending(struct conf *conf)
{
    io_then_silence(conf, NVM_WRITE, 1, 8);
}

static void write_pending(struct conf *conf)
{
    io_then_silence(conf, NVM_READ, 1, 8);
}

static void response_pending(struct conf *conf)
{
    io_then_silence(conf, NVM_FLUSH, 1, 1);
}

static void queue_of_reads(struct conf *conf)
{
    io_then_silence(conf, NVM_READ, DEPTH, 64);
}

static void queue_of_writes(struct conf *conf)
{
    io_then_silence(conf, NVM_WRITE, DEPTH, 64);
}

static void queue_of_flushes(struct conf *conf)
{
    io_then_silence(conf, NVM_FLUSH, DEPTH, 1);
}

/* Only the first packet of four was sent. */
static void half_a_read(struct conf *conf)
{
    struct nvmf_pair pair = robust_pair(conf);
    const struct packet *read;

    pair.io->answers = false;
    send_io(pair.io, NVM_WRITE, 1, (uint16_t)(4 * pair.io->mtu_bytes / 512));
    read = rc_take_opcode(pair.io, RC_READ_REQUEST);
    rc_send_packet(
        pair.io,
        &(struct packet_roce){
            .bth = {.opcode = RC_READ_RESPONSE_FIRST, .psn = read->bth.psn},
            .aeth = {AETH_ACK, AETH_CREDIT_UNLIMITED, pair.io->msn},
            .data_len = pair.io->mtu_bytes,
            .fill = 0x5a,
        });
    conf_expect_alive(conf);
    rc_send_dreq(pair.admin);
    robust_expect_clean(conf);
}

/* Only the first packet of the capsule is sent. */
static void half_a_capsule(struct conf *conf)
{
    struct nvmf_pair pair = robust_pair(conf);

    rc_send(pair.io, RC_SEND_FIRST, NULL, pair.io->mtu_bytes, false);
    conf_expect_alive(conf);
    rc_send_dreq(pair.admin);
    conf_pass(conf, NVMF_QUIET_US);
    robust_expect_clean(conf);
}

static void events_pending(struct conf *conf)
{
    struct nvmf_pair pair = robust_pair(conf);
    struct nvme_sqe aer = {.opcode = ADMIN_ASYNC_EVENT_REQUEST};

    for (unsigned int i = 0; i < 4; i++) {
        rc_send_capsule(pair.admin, &aer, NULL, NULL, 0);
    }
    conf_pass(conf, NVMF_QUIET_US);
    rc_close(pair.admin);
    robust_expect_clean(conf);
}

/* The peer of the admin queue vanishes while the I/O queue is busy. */
static void admin_gone(struct conf *conf)
{
    struct nvmf_pair pair = robust_pair(conf);
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};

    pair.admin->answers = false;
    rc_send_capsule(pair.admin, &keep_alive, NULL, NULL, 0);
    send_io(pair.io, NVM_READ, DEPTH, 8);
    robust_expect_clean(conf);
}

/* The peer of the I/O queue vanishes alone. */
static void io_gone(struct conf *conf)
{
    struct nvmf_pair pair = robust_pair(conf);

    pair.io->answers = false;
    send_io(pair.io, NVM_READ, 4, 8);
    robust_let_retries_end(conf);
    limits_expect_pool(conf, "queue-pairs", 1);
    conf_note(
        conf,
        "the association does not end with its I/O queue, which is allowed");
    nvmf_expect_works(pair.admin);
    rc_close(pair.admin);
    robust_expect_clean(conf);
}

static void ignore_result(void *ctx, const struct host_result *result)
{
    (void)ctx;
    (void)result;
}

/* The wire of a whole host is cut while its I/O queues are full. */
static void host_gone(struct conf *conf)
{
    struct robust_hand *hand = robust_hand_new(conf);
    struct nvme_host *host = &robust_host(conf)->host;
    struct host_target target;

    conf_needs_block(conf);
    robust_resolve(
        conf, &(struct conf_session){.io_queues = 4, .kato_ms = 1000}, &target);
    for (unsigned int i = 0; i < 2; i++) {
        robust_connect(conf, host, &target);
        for (uint16_t k = 0; k < 4 * DEPTH; k++) {
            struct host_io io = {
                .qid = (uint16_t)(1 + k % 4),
                .opcode = k % 3 == 0 ? NVM_WRITE : NVM_READ,
                .kind = HOST_DATA_KEYED,
                .nsid = conf_target(conf)->nsid,
                .lba = 8192u + k * 16u,
                .blocks = 16,
                .offset = k * 16u * CONF_BLOCK,
                .len_bytes = 16 * CONF_BLOCK,
                .done = ignore_result,
            };

            conf_check(conf, host_io_submit(host, &io),
                       "the queue has no room for a command");
        }
        conf_pass(conf, i * 20);
        hand->is_deaf = hand->is_active = true;
        host_vanish(host);
        conf_pass(conf, KATO_TIMEOUT_US);
        hand->is_active = false;
    }
    robust_expect_clean(conf);
}

static void hosts_gone(struct conf *conf)
{
    for (unsigned int i = 0; i < 20; i++) {
        struct nvmf_pair pair = robust_pair(conf);
        struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};

        pair.admin->answers = false;
        pair.io->answers = false;
        rc_send_capsule(pair.admin, &keep_alive, NULL, NULL, 0);
        send_io(pair.io, i % 2 == 0 ? NVM_READ : NVM_WRITE, 8, 8);
    }
    robust_expect_clean(conf);
}

static void vanish_kato(struct conf *conf)
{
    struct host_target target;
    struct robust_hand *hand = robust_hand_new(conf);
    struct nvme_host *host = &robust_host(conf)->host;

    robust_resolve(
        conf, &(struct conf_session){.io_queues = 2, .kato_ms = 1000}, &target);
    robust_connect(conf, host, &target);
    /* The host is idle when it vanishes. */
    hand->is_deaf = hand->is_active = true;
    host_vanish(host);
    conf_pass(conf, KATO_TIMEOUT_US);
    robust_expect_clean(conf);
}

/* The peer was silent, and connects again with the same numbers. */
static void starts_over(struct conf *conf)
{
    struct nvmf_pair pair = robust_pair(conf);
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    struct rc *again = pair.admin;
    struct cm_req req;

    again->comm_id += 0x10000;
    again->epsn = (again->epsn + 0x1234) & 0xffffff;
    rc_make_req(again, &req, private_data);
    rc_send_req(again, &req);
    if (rc_take_cm_within(again, CM_REP, NVMF_QUIET_US) == NULL) {
        /* If the old connection is stale, the first REQ gets a REJ and the next
         * one works. */
        again->comm_id += 0x10000;
        rc_make_req(again, &req, private_data);
        rc_send_req(again, &req);
        rc_take_rep(again);
        rc_close(again);
    } else {
        conf_note(conf,
                  "the target lets the new connection replace the old one");
    }
    rc_send_dreq(pair.io);
    conf_pass(conf, NVMF_QUIET_US);
    conf_expect_alive(conf);
}

/* ---- Slow readers. */

/* The peer is silent for some of the target's time-outs, then it answers. */
static void slow_answers(struct conf *conf)
{
    struct nvmf_pair pair = nvmf_open_pair(
        conf, &(struct rc_config){.ack_timeout = robust_ack_timeout(conf),
                                  .retry_count = 7});
    uint64_t silence_us = UINT64_C(40000) << conf_patience(conf);

    for (unsigned int i = 0; i < 5; i++) {
        struct nvme_sqe write = nvmf_io(conf, NVM_WRITE, i * 64, 64);
        struct nvme_sqe read = nvmf_io(conf, NVM_READ, i * 64, 64);
        struct sgl from = rc_keyed(pair.io, 0, 64 * CONF_BLOCK);
        struct sgl to = rc_keyed(pair.io, 65536, 64 * CONF_BLOCK);
        struct nvme_cqe cqe;
        uint16_t cid;

        conf_fill(pair.io->mem, i * 64, 64, i);
        pair.io->answers = false;
        cid = rc_send_capsule(pair.io, &write, &from, NULL, 0);
        conf_pass(conf, silence_us);
        pair.io->answers = true;
        rc_take_response(pair.io, cid, &cqe);
        conf_status(conf, "Write", cqe.status, NVME_SC_SUCCESS);
        pair.io->answers = false;
        cid = rc_send_capsule(pair.io, &read, &to, NULL, 0);
        conf_pass(conf, silence_us);
        pair.io->answers = true;
        rc_take_response(pair.io, cid, &cqe);
        conf_status(conf, "Read", cqe.status, NVME_SC_SUCCESS);
        conf_same(conf, "data", pair.io->mem + 65536, pair.io->mem,
                  64 * CONF_BLOCK);
    }
    nvmf_close_pair(&pair);
    robust_expect_clean(conf);
}

static void open_deaf(struct conf *conf, struct nvmf_pair *pairs,
                      unsigned int count, uint16_t blocks)
{
    for (unsigned int i = 0; i < count; i++) {
        pairs[i] = nvmf_open_pair(
            conf, &(struct rc_config){.ack_timeout = 20, .peer = i % 8});
        pairs[i].io->answers = false;
        send_io(pairs[i].io, NVM_READ, DEPTH, blocks);
    }
}

static void close_all(struct nvmf_pair *pairs, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++) {
        rc_close(pairs[i].io);
        rc_close(pairs[i].admin);
    }
}

static void slow_beside(struct conf *conf)
{
    struct nvmf_pair pairs[SLOW_PEERS];
    struct nvme_host *host =
        conf_connect(conf, &(struct conf_session){.io_queues = 2});

    open_deaf(conf, pairs, SLOW_PEERS, 8);
    for (unsigned int i = 0; i < 20; i++) {
        conf_write(conf, host, 1, i * 64, 64, i);
        conf_verify(conf, host, 2, i * 64, 64, i);
    }
    close_all(pairs, SLOW_PEERS);
    host_disconnect(host);
    robust_expect_clean(conf);
}

struct finished {
    bool is_done, is_good;
};

static void on_done(void *ctx, const struct host_result *result)
{
    struct finished *finished = ctx;

    finished->is_done = true;
    finished->is_good = !result->is_lost &&
                        (result->cqe.status & NVME_SC_MASK) == NVME_SC_SUCCESS;
}

static bool is_finished(void *ctx)
{
    return ((struct finished *)ctx)->is_done;
}

/* Peers that do not read hold all large buffers: a large command may wait until
 * they are gone, small commands do not wait, and all of them succeed. */
static void greedy_peers(struct conf *conf)
{
    struct nvmf_pair pairs[GREEDY_PEERS];
    struct nvme_host *host =
        conf_connect(conf, &(struct conf_session){.io_queues = 2});
    struct finished finished = {0};
    struct host_io io = {
        .qid = 1,
        .opcode = NVM_READ,
        .kind = HOST_DATA_KEYED,
        .nsid = conf_target(conf)->nsid,
        .blocks = LARGE_BLOCKS,
        .offset = 1 << 20,
        .len_bytes = LARGE_BLOCKS * CONF_BLOCK,
        .done = on_done,
        .ctx = &finished,
    };

    conf_needs_block(conf);
    conf_write(conf, host, 1, 0, LARGE_BLOCKS, 1);
    open_deaf(conf, pairs, GREEDY_PEERS, LARGE_BLOCKS);
    conf_check(conf, host_io_submit(host, &io),
               "the queue has no room for a command");
    for (unsigned int i = 0; i < 10; i++) {
        conf_write(conf, host, 2, 1024 + i * 8, 8, i);
        conf_verify(conf, host, 2, 1024 + i * 8, 8, i);
    }
    close_all(pairs, GREEDY_PEERS);
    conf_check(conf, conf_wait(conf, is_finished, &finished, CONF_ANSWER_US),
               "a large command was never answered");
    conf_check(conf, finished.is_good, "a large command failed");
    conf_verify(conf, host, 1, 0, LARGE_BLOCKS, 1);
    host_disconnect(host);
    robust_expect_clean(conf);
}

/*
 * Peers that do not read hold all the buffers that they can get: another host's
 * commands, from the shortest to the longest, still work, with correct data.
 */
static void buffer_shares(struct conf *conf)
{
    struct nvmf_pair pairs[SHARES_PEERS];
    struct nvme_host *host =
        conf_connect(conf, &(struct conf_session){.io_queues = 2});
    uint32_t most = conf_target(conf)->max_bytes;
    uint32_t blocks = MIN(most == 0 ? LONGEST : most, LONGEST) / CONF_BLOCK;

    conf_needs_block(conf);
    conf_write(conf, host, 1, 0, blocks, 1);
    open_deaf(conf, pairs, SHARES_PEERS, LARGE_BLOCKS);
    for (uint32_t i = 0; i < 4; i++) {
        conf_verify(conf, host, 1, 0, blocks, 1 + i);
        conf_write(conf, host, 2, 4096 + i * 8, 8, i);
        conf_verify(conf, host, 1, 4096 + i * 8, 8, i);
        conf_write(conf, host, 2, 0, blocks, 2 + i);
    }
    conf_verify(conf, host, 2, 0, blocks, 5);
    close_all(pairs, SHARES_PEERS);
    conf_verify(conf, host, 1, 0, blocks, 5);
    host_disconnect(host);
    robust_expect_clean(conf);
}

#define TEST(id, clause, purpose, fn, ...)                                     \
    CONF_TEST(id, clause, purpose, fn, __VA_OPT__(.needs =) __VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("vanish.req", "IBTA Vol 1 12.9.8",
         "the resources of a peer that sends no RTU are released", after_req),
    TEST("vanish.req-many", "IBTA Vol 1 12.9.8",
         "the resources of 100 peers that send no RTU are released",
         after_req_many),
    TEST("vanish.rej", "IBTA Vol 1 12.9.7",
         "the resources of 20 connections whose REP is rejected are released",
         after_rej),
    TEST("vanish.rtu", "docs/nvme.md",
         "a connection without a Connect ends within 30 s", after_rtu,
         CONF_LONG | CONF_NEEDS_CONTROL),
    TEST("vanish.connect-data", "NVMe-oF 1.1 3.3",
         "the resources of a peer that does not send Connect's data are "
         "released",
         connect_data_pending),
    TEST("vanish.connect-response", "NVMe-oF 1.1 3.3",
         "the resources of a peer that does not acknowledge Connect's response "
         "are released",
         connect_response_pending),
    TEST("vanish.read", "IBTA Vol 1 9.9.2.4.2",
         "the resources of a peer that does not answer a READ are released",
         read_pending),
    TEST("vanish.half-read", "IBTA Vol 1 9.9.2.4.2",
         "the resources of a peer that answers part of a READ are released",
         half_a_read),
    TEST("vanish.write", "IBTA Vol 1 9.9.2.4.2",
         "the resources of a peer that does not acknowledge a WRITE are "
         "released",
         write_pending),
    TEST("vanish.response", "IBTA Vol 1 9.9.2.4.2",
         "the resources of a peer that does not acknowledge a response are "
         "released",
         response_pending),
    TEST("vanish.half-capsule", "IBTA Vol 1 9.7.4.1.2",
         "the resources of a peer that sends half a capsule are released",
         half_a_capsule),
    TEST("vanish.reads", "NVMe 1.4 4.1.2",
         "the resources of a peer with an SQ full of Reads are released",
         queue_of_reads),
    TEST("vanish.writes", "NVMe 1.4 4.1.2",
         "the resources of a peer with an SQ full of Writes are released",
         queue_of_writes),
    TEST("vanish.flushes", "NVMe 1.4 4.1.2",
         "the resources of a peer with an SQ full of Flushes are released",
         queue_of_flushes),
    TEST("vanish.events", "NVMe 1.4 5.2",
         "the resources of a peer with event requests outstanding are released",
         events_pending),
    TEST("vanish.admin", "NVMe-oF 1.1 4.5",
         "an association ends when only its admin queue's peer vanishes",
         admin_gone),
    TEST("vanish.io", "NVMe-oF 1.1 4.5",
         "the resources of an I/O queue whose peer vanishes are released",
         io_gone),
    TEST("vanish.host", "NVMe 1.4 7.12.1",
         "the resources of a host that vanishes with full queues are released, "
         "twice",
         host_gone, CONF_LONG),
    TEST("vanish.hosts", "NVMe 1.4 7.12.1",
         "the resources of 20 hosts that vanish at once are released",
         hosts_gone),
    TEST("vanish.kato", "NVMe 1.4 7.12.1",
         "an idle host that vanishes is found out by Keep Alive", vanish_kato,
         CONF_LONG),
    TEST("vanish.again", "IBTA Vol 1 12.9.8.3.1",
         "a peer can connect again with the number of its old queue pair",
         starts_over),
    TEST("slow.answers", "IBTA Vol 1 9.7.6.1.3",
         "a peer that answers after several time-outs keeps its connection",
         slow_answers),
    TEST("slow.beside", "NVMe-oF 1.1 1.5",
         "eight hosts that read nothing do not delay a ninth", slow_beside),
    TEST("slow.greedy", "NVMe-oF 1.1 1.5",
         "hosts that read nothing and hold all large buffers delay large "
         "commands only",
         greedy_peers),
    TEST("slow.shares", "NVMe-oF 1.1 1.5",
         "40 hosts that read nothing do not delay another one", buffer_shares),
};
CONF_TESTS(conf_tests_robust_vanish, "robust", tests);
