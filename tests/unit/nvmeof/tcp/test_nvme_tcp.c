/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVMe/TCP: a scripted host that makes its own bytes connects to a target over
 * two engines of net/tcp, in virtual time.
 */
#include "tcp_world.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/crc32c.h"
#include "nvmeof/target/make_room.h"
#include "tests/test_fixture.h"

enum {
    BLOCK = 512,
    SECOND_US = 1000000,
    DEPTH = 64,
    HEADER_DIGEST = 1,
    DATA_DIGEST = 2,
    BOTH = 3,
};

/* A connection of the host, and what was agreed. */
struct link {
    struct world_peer *peer;
    uint8_t digests;
    uint8_t hpda;
};

/* A PDU of the drive. */
struct pdu {
    struct tcp_pdu_head head;
    const uint8_t *header, *data;
    uint32_t data_len;
};

static int setup(void **state)
{
    *state = world_new();
    return 0;
}

static int teardown(void **state)
{
    world_free(*state);
    return 0;
}

TEST_FIXTURE(setup, teardown)

/* ---- PDUs. */

static void send_ic_req(struct world *w, struct link *link)
{
    uint8_t bytes[PDU_IC_LEN] = {0, 0, 128, 0, 128};

    bytes[PDU_IC_PDA] = link->hpda;
    bytes[PDU_IC_DIGEST] = link->digests;
    world_send(w, link->peer, bytes, sizeof(bytes));
}

static struct link open_link(struct world *w, uint8_t digests)
{
    struct link link = {.peer = world_connect(w), .digests = digests};
    const uint8_t *bytes;

    assert_true(link.peer->is_open);
    send_ic_req(w, &link);
    bytes = world_take(w, link.peer, PDU_IC_LEN);
    assert_int_equal(bytes[PDU_TYPE], 1);
    assert_int_equal(bytes[PDU_HLEN], 128);
    assert_int_equal(get_le32(bytes + PDU_PLEN), 128);
    assert_int_equal(get_le16(bytes + PDU_IC_PFV), 0);
    assert_int_equal(bytes[PDU_IC_PDA], 0);
    assert_int_equal(bytes[PDU_IC_DIGEST], digests);
    assert_true(get_le32(bytes + PDU_IC_LIMIT) >= 4096);
    assert_int_equal(get_le32(bytes + PDU_IC_LIMIT) % 4, 0);
    return link;
}

/* Build a PDU.  @return its length */
static uint32_t build_pdu(const struct link *link, uint8_t *pdu,
                          const uint8_t *header, uint8_t hlen, uint8_t flags,
                          const void *data, uint32_t len)
{
    uint32_t at = hlen;

    memcpy(pdu, header, hlen);
    pdu[PDU_HLEN] = hlen;
    pdu[PDU_FLAGS] = flags;
    at += link->digests & HEADER_DIGEST ? 4 : 0;
    pdu[PDU_PDO] = len != 0 ? (uint8_t)at : 0;
    if (len != 0) {
        memcpy(pdu + at, data, len);
        at += len;
        if (link->digests & DATA_DIGEST) {
            put_le32(pdu + at, crc32c_update(0, data, len));
            at += 4;
        }
    }
    pdu[PDU_FLAGS] |=
        (uint8_t)(link->digests & (len != 0 ? BOTH : HEADER_DIGEST));
    put_le32(pdu + PDU_PLEN, at);
    if (link->digests & HEADER_DIGEST) {
        put_le32(pdu + hlen, crc32c_update(0, pdu, hlen));
    }
    return at;
}

static uint32_t build_capsule(const struct link *link, uint8_t *pdu,
                              const struct nvme_sqe *sqe, uint8_t sgl_type,
                              uint32_t sgl_len, const void *data, uint32_t len)
{
    uint8_t header[PDU_CAPSULE_CMD_LEN] = {PDU_CAPSULE_CMD};

    nvme_sqe_emit(header + 8, sqe);
    header[8 + SQE_FLAGS] = (uint8_t)(0x40 | sqe->fuse);
    put_le32(header + 8 + SQE_SGL1 + 8, sgl_len);
    header[8 + SQE_SGL1 + 15] = sgl_type;
    return build_pdu(link, pdu, header, sizeof(header), 0, data, len);
}

static void send_capsule(struct world *w, const struct link *link,
                         const struct nvme_sqe *sqe, const void *data,
                         uint32_t len)
{
    uint8_t pdu[16384];
    uint32_t pdu_len = build_capsule(link, pdu, sqe, 0x01, len, data, len);

    world_send(w, link->peer, pdu, pdu_len);
}

/* A command whose data is at the host. */
static void send_command(struct world *w, const struct link *link,
                         const struct nvme_sqe *sqe, uint32_t len)
{
    uint8_t pdu[128];
    uint32_t pdu_len = build_capsule(link, pdu, sqe, 0x5a, len, NULL, 0);

    world_send(w, link->peer, pdu, pdu_len);
}

static struct pdu take_pdu(struct world *w, const struct link *link)
{
    uint32_t read = link->peer->read;
    const uint8_t *bytes = world_take(w, link->peer, PDU_HEAD_LEN);
    struct pdu pdu = {.header = bytes};
    uint32_t begin;

    tcp_pdu_head_parse(&pdu.head, bytes);
    link->peer->read = read;
    bytes = world_take(w, link->peer, pdu.head.plen);
    begin = pdu.head.hlen;
    if (pdu.head.type >= PDU_CAPSULE_CMD) {
        assert_int_equal(pdu.head.has_header_digest, link->digests & 1);
    }
    if (pdu.head.has_header_digest) {
        assert_int_equal(get_le32(bytes + begin),
                         crc32c_update(0, bytes, begin));
        begin += 4;
    }
    if (pdu.head.pdo != 0) {
        assert_true(pdu.head.pdo >= begin);
        assert_int_equal(pdu.head.pdo % (4 * (link->hpda + 1)),
                         pdu.head.type == PDU_C2H_DATA
                             ? 0
                             : pdu.head.pdo % (4 * (link->hpda + 1)));
        pdu.data = bytes + pdu.head.pdo;
        pdu.data_len = pdu.head.plen - pdu.head.pdo;
        if (pdu.head.type == PDU_C2H_DATA && (link->digests & DATA_DIGEST)) {
            assert_true(pdu.head.has_data_digest);
            pdu.data_len -= 4;
            assert_int_equal(get_le32(pdu.data + pdu.data_len),
                             crc32c_update(0, pdu.data, pdu.data_len));
        }
    }
    return pdu;
}

static struct nvme_cqe take_response(struct world *w, const struct link *link)
{
    struct pdu pdu = take_pdu(w, link);
    struct nvme_cqe cqe;

    assert_int_equal(pdu.head.type, PDU_CAPSULE_RESP);
    assert_int_equal(pdu.head.hlen, 24);
    nvme_cqe_parse(&cqe, pdu.header + 8);
    return cqe;
}

static struct tcp_pdu_term take_term(struct world *w, const struct link *link)
{
    struct pdu pdu = take_pdu(w, link);
    struct tcp_pdu_term term;

    assert_int_equal(pdu.head.type, PDU_C2H_TERM);
    tcp_pdu_term_parse(&term, pdu.header);
    return term;
}

static struct tcp_pdu_data take_r2t(struct world *w, const struct link *link)
{
    struct pdu pdu = take_pdu(w, link);
    struct tcp_pdu_data r2t;

    assert_int_equal(pdu.head.type, PDU_R2T);
    tcp_pdu_data_parse(&r2t, pdu.header);
    return r2t;
}

static uint32_t build_data(const struct link *link, uint8_t *pdu,
                           const struct tcp_pdu_data *data, bool is_last,
                           const void *bytes)
{
    uint8_t header[PDU_DATA_LEN] = {PDU_H2C_DATA};

    tcp_pdu_data_emit(header, data);
    return build_pdu(link, pdu, header, sizeof(header), is_last ? 4 : 0, bytes,
                     data->len_bytes);
}

static void send_data(struct world *w, const struct link *link,
                      const struct tcp_pdu_data *data, bool is_last,
                      const void *bytes)
{
    static uint8_t pdu[1 << 17];

    world_send(w, link->peer, pdu, build_data(link, pdu, data, is_last, bytes));
}

/* Answer R2Ts for a whole write.  @return how many there were */
static unsigned int answer_r2ts(struct world *w, const struct link *link,
                                const uint8_t *data, uint32_t len)
{
    unsigned int count = 0;

    for (uint32_t done = 0; done < len; count++) {
        struct tcp_pdu_data r2t = take_r2t(w, link);
        struct tcp_pdu_data first = r2t, second = r2t;

        assert_int_equal(r2t.offset, done);
        first.len_bytes = r2t.len_bytes / 2;
        second.offset += first.len_bytes;
        second.len_bytes -= first.len_bytes;
        send_data(w, link, &first, false, data + first.offset);
        send_data(w, link, &second, true, data + second.offset);
        done += r2t.len_bytes;
    }
    return count;
}

/* ---- Commands. */

static struct nvme_sqe connect_sqe(uint16_t qid, uint16_t depth,
                                   bool has_flow_control)
{
    const struct connect_command connect = {
        .qid = qid,
        .sqsize = (uint16_t)(depth - 1),
        .has_sq_flow_control = has_flow_control,
        .kato_ms = 120000,
    };
    struct nvme_sqe sqe = {0};

    connect_command_build(&sqe, &connect);
    return sqe;
}

static struct nvme_cqe connect_subsystem(struct world *w,
                                         const struct link *link, uint16_t qid,
                                         uint16_t cntlid, bool has_flow_control,
                                         const char *subnqn)
{
    struct nvme_sqe sqe =
        connect_sqe(qid, qid == 0 ? NVMF_ADMIN_DEPTH : DEPTH, has_flow_control);
    uint8_t bytes[CONNECT_DATA_LEN];
    struct connect_data data;

    fake_connect_data(&data, cntlid, subnqn);
    connect_data_emit(bytes, &data);
    send_capsule(w, link, &sqe, bytes, sizeof(bytes));
    return take_response(w, link);
}

static struct nvme_cqe connect_queue(struct world *w, const struct link *link,
                                     uint16_t qid, uint16_t cntlid,
                                     bool has_flow_control)
{
    return connect_subsystem(w, link, qid, cntlid, has_flow_control,
                             FAKE_SUBNQN);
}

static struct nvme_cqe exec_command(struct world *w, const struct link *link,
                                    struct nvme_sqe sqe)
{
    send_command(w, link, &sqe, 0);
    return take_response(w, link);
}

static void enable_ctrl(struct world *w, const struct link *link)
{
    struct nvme_sqe sqe = {.opcode = NVME_FABRICS,
                           .fctype = FABRICS_PROPERTY_SET,
                           .cdw11 = PROPERTY_CC,
                           .cdw12 = CC_ENABLE};

    assert_int_equal(exec_command(w, link, sqe).status, 0);
}

struct host {
    struct link admin, io;
    uint16_t cntlid;
};

static struct host connect_host(struct world *w, uint8_t digests,
                                bool has_flow_control)
{
    struct host host = {.admin = open_link(w, digests)};
    struct nvme_sqe features = fake_admin(ADMIN_SET_FEATURES, 0, 7, 0x00030003);
    struct nvme_cqe cqe = connect_queue(w, &host.admin, 0, 0xffff, true);

    assert_int_equal(cqe.status, 0);
    host.cntlid = (uint16_t)cqe.dw0;
    enable_ctrl(w, &host.admin);
    assert_int_equal(exec_command(w, &host.admin, features).status, 0);
    host.io = open_link(w, digests);
    cqe = connect_queue(w, &host.io, 1, host.cntlid, has_flow_control);
    assert_int_equal(cqe.status, 0);
    return host;
}

static void fill_data(uint8_t *data, uint32_t len, uint8_t seed)
{
    for (uint32_t i = 0; i < len; i++) {
        data[i] = (uint8_t)(i * 7 + i / 251 + seed);
    }
}

static struct nvme_sqe make_rw(uint8_t opcode, uint64_t lba, uint32_t blocks,
                               uint16_t cid)
{
    struct nvme_sqe sqe = fake_rw(opcode, lba, blocks);

    sqe.cid = cid;
    return sqe;
}

/* Read and compare; the data may come in several PDUs. */
static void check_read(struct world *w, const struct link *link, uint64_t lba,
                       const uint8_t *data, uint32_t blocks, uint16_t cid)
{
    struct nvme_sqe sqe = make_rw(NVM_READ, lba, blocks, cid);
    uint32_t len = blocks * BLOCK;
    bool is_last = false;
    struct nvme_cqe cqe;

    send_command(w, link, &sqe, len);
    for (uint32_t done = 0; done < len;) {
        struct pdu pdu = take_pdu(w, link);
        struct tcp_pdu_data fields;

        assert_int_equal(pdu.head.type, PDU_C2H_DATA);
        tcp_pdu_data_parse(&fields, pdu.header);
        assert_int_equal(fields.cccid, cid);
        assert_int_equal(fields.ttag, 0);
        assert_int_equal(fields.offset, done);
        assert_int_equal(fields.len_bytes, pdu.data_len);
        assert_false(is_last);
        assert_false(pdu.head.is_success);
        is_last = pdu.head.is_last;
        assert_memory_equal(pdu.data, data + done, pdu.data_len);
        done += pdu.data_len;
    }
    assert_true(is_last);
    cqe = take_response(w, link);
    assert_int_equal(cqe.cid, cid);
    assert_int_equal(cqe.status, 0);
}

/* ---- What a host does. */

static void serve_host(struct world *w, uint8_t digests)
{
    static uint8_t data[64 * BLOCK];
    struct host host = connect_host(w, digests, true);
    struct nvme_sqe sqe = fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLER, 0);
    struct pdu pdu;

    sqe.cid = 9;
    send_command(w, &host.admin, &sqe, 4096);
    pdu = take_pdu(w, &host.admin);
    assert_int_equal(pdu.head.type, PDU_C2H_DATA);
    assert_int_equal(pdu.data_len, 4096);
    assert_int_equal(get_le32(pdu.data + 536), 0x100001);          /* SGLS */
    assert_int_equal(get_le32(pdu.data + 1792), (64 + 4096) / 16); /* IOCCSZ */
    assert_int_equal(get_le32(pdu.data + 1796), 1);                /* IORCSZ */
    assert_int_equal(get_le16(pdu.data + 1800), 0);                /* ICDOFF */
    assert_int_equal(take_response(w, &host.admin).status, 0);

    fill_data(data, sizeof(data), 1);
    sqe = make_rw(NVM_WRITE, 10, 8, 1); /* in the capsule */
    send_capsule(w, &host.io, &sqe, data, 8 * BLOCK);
    assert_int_equal(take_response(w, &host.io).status, 0);
    check_read(w, &host.io, 10, data, 8, 2);

    sqe = make_rw(NVM_WRITE, 100, 64, 3);
    send_command(w, &host.io, &sqe, sizeof(data));
    assert_int_equal(answer_r2ts(w, &host.io, data, sizeof(data)), 1);
    assert_int_equal(take_response(w, &host.io).status, 0);
    check_read(w, &host.io, 100, data, 64, 4);
}

static void test_a_host_connects_writes_and_reads(void **state)
{
    serve_host(*state, 0);
}

static void test_a_host_with_header_digests(void **state)
{
    serve_host(*state, HEADER_DIGEST);
}

static void test_a_host_with_data_digests(void **state)
{
    serve_host(*state, DATA_DIGEST);
}

static void test_a_host_with_both_digests(void **state)
{
    serve_host(*state, BOTH);
}

/* Every n-th frame of both directions is lost. */
static void test_lost_frames_change_nothing(void **state)
{
    (void)state;
    for (unsigned int n = 4; n < 16; n++) {
        struct world *w = world_new();

        w->lose = n;
        serve_host(w, BOTH);
        assert_true(w->lost > 3);
        w->lose = 0;
        world_free(w);
    }
}

/* Calls of the socket fail for want of room, and are made again. */
static void test_a_busy_socket_loses_nothing(void **state)
{
    struct world *w = *state;
    static uint8_t data[64 * BLOCK];
    struct host host = connect_host(w, BOTH, true);

    fill_data(data, sizeof(data), 3);
    for (unsigned int n = 1; n < 12; n++) {
        struct nvme_sqe sqe = make_rw(NVM_WRITE, 100, 64, 3);

        w->busy = n;
        send_command(w, &host.io, &sqe, sizeof(data));
        (void)answer_r2ts(w, &host.io, data, sizeof(data));
        assert_int_equal(take_response(w, &host.io).status, 0);
        w->busy = n;
        check_read(w, &host.io, 100, data, 64, 4);
        assert_int_equal(w->busy, 0);
    }
}

/* The peer acknowledges something that is not NVMe/TCP's own. */
static void let_all_send(struct world *w)
{
    w->awaits_peer = false;
    for (unsigned int i = 0; i < NVME_TCP_QUEUES; i++) {
        if (w->conns[i].conn != NVME_TCP_NONE) {
            nvme_tcp_may_send(w->tcp, w->conns[i].conn);
        }
    }
}

/* A socket that can take nothing before the peer acts, as behind TLS while an
 * answer to a KeyUpdate has no room.  world_run() fails if turns are taken
 * meanwhile, and the peer has as much time as for acknowledgements. */
static void test_the_loop_sleeps_while_the_socket_awaits_the_peer(void **state)
{
    struct world *w = *state;
    static uint8_t data[64 * BLOCK];
    struct host host = connect_host(w, 0, true);
    struct nvme_sqe sqe = make_rw(NVM_READ, 100, 64, 3);

    w->awaits_peer = true;
    send_command(w, &host.io, &sqe, sizeof(data));
    world_run(w, 5 * SECOND_US);
    assert_int_equal(host.io.peer->received, host.io.peer->read);
    let_all_send(w);
    (void)world_take(w, host.io.peer, sizeof(data));
    world_run(w, SECOND_US);
    host.io.peer->read = host.io.peer->received;
    assert_int_equal(w->fake->buffers_out, 0);

    w->awaits_peer = true;
    sqe = make_rw(NVM_READ, 100, 64, 4);
    send_command(w, &host.io, &sqe, sizeof(data));
    world_run(w, 12 * SECOND_US);
    assert_true(host.io.peer->is_ended);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_SILENT), 1);
    assert_int_equal(w->fake->buffers_out, 0);
}

/* A long write and a long read move in windows: one R2T after the other. */
static void test_long_commands_move_in_windows(void **state)
{
    struct world *w = *state;
    static uint8_t data[256 * BLOCK];
    struct host host = connect_host(w, BOTH, true);
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 0, 256, 1);

    w->fake->window_max = 16 * 1024;
    fill_data(data, sizeof(data), 5);
    send_command(w, &host.io, &sqe, sizeof(data));
    assert_int_equal(answer_r2ts(w, &host.io, data, sizeof(data)), 8);
    assert_int_equal(take_response(w, &host.io).status, 0);
    check_read(w, &host.io, 0, data, 256, 2);
}

static void test_single_bytes_are_put_together(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, BOTH, true);
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 7, 1, 1);
    uint8_t data[BLOCK], pdu[1024];
    uint32_t len;

    fill_data(data, sizeof(data), 9);
    len = build_capsule(&host.io, pdu, &sqe, 0x01, BLOCK, data, BLOCK);
    for (uint32_t i = 0; i < len; i++) {
        world_send(w, host.io.peer, pdu + i, 1);
        world_run(w, 200);
    }
    assert_int_equal(take_response(w, &host.io).status, 0);
    check_read(w, &host.io, 7, data, 1, 2);
}

/* Two capsules, and half of a third, in one segment. */
static void test_pdus_need_not_begin_with_a_segment(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    struct nvme_sqe sqe = make_rw(NVM_FLUSH, 0, 1, 1);
    uint8_t bytes[3 * 72];
    uint32_t len = 0;

    for (uint16_t cid = 1; cid <= 3; cid++) {
        sqe.cid = cid;
        len += build_capsule(&host.io, bytes + len, &sqe, 0x5a, 0, NULL, 0);
    }
    world_send(w, host.io.peer, bytes, len - 30);
    assert_int_equal(take_response(w, &host.io).cid, 1);
    assert_int_equal(take_response(w, &host.io).cid, 2);
    world_send(w, host.io.peer, bytes + len - 30, 30);
    assert_int_equal(take_response(w, &host.io).cid, 3);
}

static void test_success_replaces_the_response_without_flow_control(
    void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 0, false);
    struct nvme_sqe sqe = make_rw(NVM_READ, 7, 1, 1);
    struct pdu pdu;

    send_command(w, &host.io, &sqe, BLOCK);
    pdu = take_pdu(w, &host.io);
    assert_int_equal(pdu.head.type, PDU_C2H_DATA);
    assert_true(pdu.head.is_last);
    assert_true(pdu.head.is_success);
    sqe = make_rw(NVM_READ, FAKE_BLOCKS, 1, 2); /* a failure has its response */
    send_command(w, &host.io, &sqe, BLOCK);
    assert_int_equal(take_response(w, &host.io).status & 0x7ff,
                     NVME_SC_LBA_RANGE);
    world_run(w, SECOND_US);
    assert_int_equal(host.io.peer->read, host.io.peer->received);
}

/* Header, data, their digest and the response need one call of send(). */
static void check_sends_of_a_read(struct world *w, uint8_t digests,
                                  bool has_flow_control)
{
    struct host host = connect_host(w, digests, has_flow_control);
    struct nvme_sqe sqe = make_rw(NVM_READ, 7, 1, 1);
    unsigned int before;

    world_run(w, SECOND_US);
    before = w->sends;
    send_command(w, &host.io, &sqe, BLOCK);
    assert_int_equal(take_pdu(w, &host.io).head.type, PDU_C2H_DATA);
    if (has_flow_control) {
        assert_int_equal(take_response(w, &host.io).status, 0);
    }
    assert_int_equal(w->sends, before + 1);
}

static void test_a_read_is_sent_by_one_call(void **state)
{
    for (uint8_t digests = 0; digests < 4; digests++) {
        check_sends_of_a_read(*state, digests, true);
        check_sends_of_a_read(*state, digests, false);
    }
}

/* The counts of pieces wrap at any piece of a response. */
static void test_counts_of_pieces_wrap(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 3, true);
    uint8_t data[8 * BLOCK];
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 7, 8, 1);

    fill_data(data, sizeof(data), 5);
    send_capsule(w, &host.io, &sqe, data, sizeof(data));
    assert_int_equal(take_response(w, &host.io).status, 0);
    world_run(w, SECOND_US);
    for (uint16_t left = 1; left <= 8; left++) {
        for (unsigned int i = 0; i < NVME_TCP_QUEUES; i++) {
            struct nvme_tcp_queue *queue = &w->tcp->queues[i];

            assert_int_equal(queue->span_head, queue->span_tail);
            queue->span_head = (uint16_t)-left;
            queue->span_next = (uint16_t)-left;
            queue->span_tail = (uint16_t)-left;
        }
        check_read(w, &host.io, 7, data, 8, left);
        check_read(w, &host.io, 7, data, 8, left);
        check_read(w, &host.io, 7, data, 8, left);
        world_run(w, SECOND_US);
        assert_int_equal(nvme_tcp_usage(w->tcp).requests, 0);
    }
}

static void test_data_begin_where_hpda_says(void **state)
{
    struct world *w = *state;
    struct link link = {.peer = world_connect(w), .digests = BOTH, .hpda = 15};
    struct nvme_sqe sqe = fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLER, 0);
    struct pdu pdu;

    send_ic_req(w, &link);
    (void)world_take(w, link.peer, PDU_IC_LEN);
    assert_int_equal(connect_queue(w, &link, 0, 0xffff, true).status, 0);
    enable_ctrl(w, &link);
    send_command(w, &link, &sqe, 4096);
    pdu = take_pdu(w, &link);
    assert_int_equal(pdu.head.pdo, 64);
    assert_int_equal(pdu.data_len, 4096);
    assert_int_equal(take_response(w, &link).status, 0);
}

/* ---- Damaged data: the command fails, the connection stays. */

static void test_a_wrong_data_digest_fails_its_command(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, DATA_DIGEST, true);
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 7, 1, 1);
    uint8_t data[16 * BLOCK], pdu[16 * BLOCK + 64];
    struct nvme_cqe cqe;
    struct tcp_pdu_data r2t;
    uint32_t len;

    fill_data(data, sizeof(data), 9);
    len = build_capsule(&host.io, pdu, &sqe, 0x01, BLOCK, data, BLOCK);
    pdu[len - 1] ^= 1;
    world_send(w, host.io.peer, pdu, len);
    cqe = take_response(w, &host.io);
    assert_int_equal(cqe.status & 0x7ff, NVME_SC_TRANSIENT_TRANSPORT);
    assert_int_equal(cqe.status & DNR, 0);
    assert_int_equal(w->fake->history_count, 0);

    sqe = make_rw(NVM_WRITE, 7, 16, 2);
    send_command(w, &host.io, &sqe, sizeof(data));
    r2t = take_r2t(w, &host.io);
    len = build_data(&host.io, pdu, &r2t, true, data);
    pdu[100] ^= 1;
    world_send(w, host.io.peer, pdu, len);
    cqe = take_response(w, &host.io);
    assert_int_equal(cqe.status & 0x7ff, NVME_SC_TRANSIENT_TRANSPORT);
    assert_int_equal(cqe.status & DNR, 0);
    assert_int_equal(w->fake->history_count, 0);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_DATA_DIGESTS), 2);

    send_command(w, &host.io, &sqe, sizeof(data)); /* again, and right */
    (void)answer_r2ts(w, &host.io, data, sizeof(data));
    assert_int_equal(take_response(w, &host.io).status, 0);
    check_read(w, &host.io, 7, data, 16, 3);
}

/* ---- What ends a connection. */

static void check_term(struct world *w, const struct link *link, uint16_t fes,
                       uint32_t fei)
{
    struct tcp_pdu_term term = take_term(w, link);

    assert_int_equal(term.fes, fes);
    assert_int_equal(term.fei, fei);
    world_await_end(w, link->peer);
    assert_int_equal(link->peer->end, TCP_END_CLOSED);
}

static void test_a_wrong_first_pdu_is_answered_with_term_req(void **state)
{
    struct world *w = *state;
    struct link link = {.peer = world_connect(w)};
    uint8_t bytes[PDU_IC_LEN] = {0, 0, 128, 0, 128};
    struct pdu pdu;

    put_le16(bytes + PDU_IC_PFV, 1);
    world_send(w, link.peer, bytes, sizeof(bytes));
    pdu = take_pdu(w, &link);
    assert_int_equal(pdu.head.plen, 24 + 128);
    assert_int_equal(pdu.head.pdo, 0); /* reserved */
    assert_memory_equal(pdu.header + PDU_TERM_LEN, bytes, 128);
    link.peer->read -= pdu.head.plen;
    check_term(w, &link, PDU_FES_UNSUPPORTED, PDU_IC_PFV);

    link.peer = world_connect(w);
    put_le16(bytes + PDU_IC_PFV, 0);
    bytes[PDU_IC_PDA] = 32;
    world_send(w, link.peer, bytes, sizeof(bytes));
    check_term(w, &link, PDU_FES_HEADER_FIELD, PDU_IC_PDA);

    link.peer = world_connect(w);
    bytes[PDU_TYPE] = 0x16; /* TLS */
    world_send(w, link.peer, bytes, sizeof(bytes));
    check_term(w, &link, PDU_FES_HEADER_FIELD, PDU_TYPE);
}

static void test_a_wrong_header_digest_ends_the_connection(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, HEADER_DIGEST, true);
    struct nvme_sqe sqe = make_rw(NVM_FLUSH, 0, 1, 1);
    uint8_t pdu[128];
    uint32_t len = build_capsule(&host.io, pdu, &sqe, 0x5a, 0, NULL, 0);

    pdu[20] ^= 1;
    world_send(w, host.io.peer, pdu, len);
    check_term(w, &host.io, PDU_FES_HEADER_DIGEST, get_le32(pdu + 72));
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_HEADER_DIGESTS), 1);
}

/* The association ends while the queue says why it ends. */
static void test_term_req_is_sent_although_the_association_ends(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    const uint8_t bytes[24] = {0xff, 0, 24, 0, 24};

    world_send(w, host.io.peer, bytes, sizeof(bytes));
    world_close(w, host.admin.peer);
    check_term(w, &host.io, PDU_FES_HEADER_FIELD, PDU_TYPE);
}

/* Send H2CData that is wrong in one field.  @return the connection */
static struct link send_wrong_data(struct world *w, int tag, int cid,
                                   int offset, int len, bool is_last)
{
    static uint8_t data[32 * BLOCK];
    struct host host = connect_host(w, 0, true);
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 0, 16, 5);
    struct tcp_pdu_data r2t;

    send_command(w, &host.io, &sqe, 16 * BLOCK);
    r2t = take_r2t(w, &host.io);
    r2t.ttag = (uint16_t)(r2t.ttag + tag);
    r2t.cccid = (uint16_t)(r2t.cccid + cid);
    r2t.offset += (uint32_t)offset;
    r2t.len_bytes += (uint32_t)len;
    send_data(w, &host.io, &r2t, is_last, data);
    return host.io;
}

static void test_wrong_h2c_data_ends_the_connection(void **state)
{
    struct world *w = *state;
    struct link link = send_wrong_data(w, 1, 0, 0, 0, true);

    check_term(w, &link, PDU_FES_HEADER_FIELD, PDU_DATA_TTAG);
    link = send_wrong_data(w, 0, 1, 0, 0, true);
    check_term(w, &link, PDU_FES_HEADER_FIELD, PDU_DATA_CCCID);
    link = send_wrong_data(w, 0, 0, 4, -4, true);
    check_term(w, &link, PDU_FES_RANGE, 0);
    link = send_wrong_data(w, 0, 0, 0, 4, true);
    check_term(w, &link, PDU_FES_RANGE, 0);
    link = send_wrong_data(w, 0, 0, 0, 0, false);
    check_term(w, &link, PDU_FES_SEQUENCE, 0);
    link = send_wrong_data(w, 0, 0, 0, -4, true);
    check_term(w, &link, PDU_FES_SEQUENCE, 0);
    assert_int_equal(w->fake->history_count, 0);
}

/* A tag is good for one R2T only. */
static void test_a_tag_is_not_used_twice(void **state)
{
    static uint8_t data[16 * BLOCK];
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 0, 16, 5);
    struct tcp_pdu_data r2t;

    send_command(w, &host.io, &sqe, sizeof(data));
    r2t = take_r2t(w, &host.io);
    send_data(w, &host.io, &r2t, true, data);
    assert_int_equal(take_response(w, &host.io).status, 0);
    send_data(w, &host.io, &r2t, true, data);
    check_term(w, &host.io, PDU_FES_HEADER_FIELD, PDU_DATA_TTAG);
}

/* An R2T stays open while all other tags are used. */
static void test_a_tag_in_use_is_skipped(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    struct tcp_pdu_data r2t[2];

    for (uint16_t i = 0; i < 2; i++) {
        struct nvme_sqe sqe = make_rw(NVM_WRITE, i * 16u, 16, i);

        send_command(w, &host.io, &sqe, 16 * BLOCK);
        r2t[i] = take_r2t(w, &host.io);
        for (unsigned int k = 0; k < NVME_TCP_QUEUES; k++) {
            w->tcp->queues[k].next_ttag = r2t[0].ttag;
        }
    }
    assert_int_not_equal(r2t[0].ttag, r2t[1].ttag);
}

static void test_more_commands_than_entries_end_the_connection(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);

    w->fake->hold_media = true;
    for (uint16_t cid = 0; cid <= DEPTH; cid++) {
        struct nvme_sqe sqe = make_rw(NVM_READ, cid, 1, cid);

        send_command(w, &host.io, &sqe, BLOCK);
    }
    check_term(w, &host.io, PDU_FES_SEQUENCE, 0);
}

static void test_term_req_of_a_host_closes(void **state)
{
    static const uint8_t bytes[24] = {2, 0, 24, 0, 24, 0, 0, 0, 1};
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);

    world_send(w, host.io.peer, bytes, sizeof(bytes));
    world_await_end(w, host.io.peer);
    assert_int_equal(host.io.peer->end, TCP_END_CLOSED);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_TERMS_RECEIVED), 1);
    assert_int_equal(
        exec_command(w, &host.admin, fake_admin(ADMIN_KEEP_ALIVE, 0, 0, 0))
            .status,
        0);
}

/* A host that closes its connection while commands are at the medium. */
static void test_a_host_may_close_at_any_time(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    uint8_t data[BLOCK] = {1};

    w->fake->hold_media = true;
    for (uint16_t cid = 0; cid < 10; cid++) {
        struct nvme_sqe sqe = make_rw(NVM_WRITE, cid, 1, cid);

        send_capsule(w, &host.io, &sqe, data, BLOCK);
    }
    world_run(w, 10000);
    assert_int_equal(w->fake->media_count, 10);
    world_close(w, host.io.peer);
    world_await_end(w, host.io.peer);
    assert_int_equal(host.io.peer->end, TCP_END_CLOSED);
    assert_int_equal(nvme_tcp_usage(w->tcp).qpairs, 2); /* it drains */
    w->fake->hold_media = false;
    world_run(w, 10000);
    assert_int_equal(nvme_tcp_usage(w->tcp).qpairs, 1);
    assert_int_equal(nvme_tcp_usage(w->tcp).connections, 1);
}

/* ---- Peers that cost only themselves. */

/* It asks for much and reads nothing: after 10 s it is ended. */
static void test_a_peer_that_never_reads_is_ended(void **state)
{
    struct world *w = *state;
    struct host other = connect_host(w, 0, true);
    struct host host = connect_host(w, 0, true);
    uint8_t data[64 * BLOCK] = {0};

    host.io.peer->is_deaf = true;
    for (uint16_t cid = 0; cid < 16; cid++) {
        struct nvme_sqe sqe = make_rw(NVM_READ, 0, 64, cid);

        send_command(w, &host.io, &sqe, 64 * BLOCK);
    }
    world_run(w, 5 * SECOND_US);
    assert_true(w->fake->buffers_out != 0);
    for (uint16_t cid = 0; cid < 32; cid++) { /* others have buffers */
        check_read(w, &other.io, 0, data, 64, cid);
    }
    world_run(w, 8 * SECOND_US);
    assert_true(host.io.peer->is_ended);
    assert_false(other.io.peer->is_ended);
    assert_int_equal(w->fake->buffers_out, 0);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_SILENT), 1);
}

/* H2CData that never comes. */
static void test_a_write_without_data_is_ended(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 0, 16, 5);

    send_command(w, &host.io, &sqe, 16 * BLOCK);
    (void)take_r2t(w, &host.io);
    world_run(w, 12 * SECOND_US);
    assert_true(host.io.peer->is_ended);
    assert_int_equal(w->fake->buffers_out, 0);
}

/* A host that is slow is not silent, wherever its data are. */
static void test_slow_data_are_no_silence(void **state)
{
    static uint8_t data[16 * BLOCK], pdu[sizeof(data) + 64];
    struct world *w = *state;
    struct host host = connect_host(w, BOTH, true);
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 0, 16, 5);
    struct tcp_pdu_data r2t;
    uint32_t len, done = 0;

    send_command(w, &host.io, &sqe, sizeof(data));
    r2t = take_r2t(w, &host.io);
    len = build_data(&host.io, pdu, &r2t, true, data);
    while (done != len) {
        uint32_t part = MIN(len - done, (uint32_t)sizeof(data) / 8);

        world_run(w, 4 * SECOND_US);
        world_send(w, host.io.peer, pdu + done, part);
        done += part;
    }
    assert_int_equal(take_response(w, &host.io).status, 0);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_SILENT), 0);
}

/* A byte now and then keeps no buffers: an R2T has a limit, too. */
static void test_a_trickle_of_data_is_ended(void **state)
{
    static uint8_t data[16 * BLOCK], pdu[sizeof(data) + 64];
    struct world *w = *state;
    struct host other = connect_host(w, 0, true);
    struct host host = connect_host(w, 0, true);
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 0, 16, 5);
    struct tcp_pdu_data r2t;
    uint32_t done = 64;

    send_command(w, &host.io, &sqe, sizeof(data));
    r2t = take_r2t(w, &host.io);
    (void)build_data(&host.io, pdu, &r2t, true, data);
    world_send(w, host.io.peer, pdu, done);
    for (unsigned int i = 0; i < 14; i++) { /* 56 s */
        world_run(w, 4 * SECOND_US);
        assert_false(host.io.peer->is_ended);
        world_send(w, host.io.peer, pdu + done++, 1);
    }
    assert_true(w->fake->buffers_out != 0);
    world_run(w, 6 * SECOND_US);
    assert_true(host.io.peer->is_ended);
    assert_int_equal(w->fake->buffers_out, 0);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_SILENT), 1);
    check_read(w, &other.io, 0, data, 1, 7);
}

/* Nor do the data of later commands keep the buffers of the first one. */
static void test_data_of_later_commands_give_no_time(void **state)
{
    static uint8_t data[16 * BLOCK];
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 0, 16, 5);

    send_command(w, &host.io, &sqe, sizeof(data));
    (void)take_r2t(w, &host.io);
    for (uint16_t i = 0; i < 8; i++) { /* 56 s, and data once more */
        struct tcp_pdu_data r2t;

        world_run(w, i == 0 ? 0 : 8 * SECOND_US);
        assert_false(host.io.peer->is_ended);
        sqe = make_rw(NVM_WRITE, 16, 8, (uint16_t)(100 + i));
        send_command(w, &host.io, &sqe, 8 * BLOCK);
        r2t = take_r2t(w, &host.io);
        send_data(w, &host.io, &r2t, true, data);
        assert_int_equal(take_response(w, &host.io).status, 0);
    }
    world_run(w, 6 * SECOND_US);
    assert_true(host.io.peer->is_ended);
    assert_int_equal(w->fake->buffers_out, 0);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_SILENT), 1);
}

/* The host goes on sending data after the drive has closed: the buffers are
 * somebody else's then.  The world looks at each byte that is placed. */
static void test_data_that_come_after_the_end_are_not_placed(void **state)
{
    static uint8_t data[16 * BLOCK], pdu[sizeof(data) + 64];
    struct world *w = *state;

    for (uint32_t before = 0; before < 100; before += 9) {
        struct host host = connect_host(w, 0, true);
        struct nvme_sqe sqe = make_rw(NVM_WRITE, 0, 16, 5);
        uint8_t wrong[PDU_HEAD_LEN] = {0x55};
        struct tcp_pdu_data r2t;
        uint32_t len;

        send_command(w, &host.io, &sqe, sizeof(data));
        r2t = take_r2t(w, &host.io);
        len = build_data(&host.io, pdu, &r2t, true, data);
        world_send(w, host.io.peer, pdu, before);
        world_run(w, 1000);
        world_send(w, host.admin.peer, wrong, sizeof(wrong));
        world_run(w, 100000); /* the association ends: C2HTermReq, FINs */
        assert_int_equal(w->fake->buffers_out, 0);
        if (!host.io.peer->is_ended) {
            world_send(w, host.io.peer, pdu + before, len - before);
        }
        world_await_end(w, host.io.peer);
    }
}

/* Commands do not stand for the data and acknowledgements that are missing. */
static void check_commands_do_not_help(struct world *w, struct host *host)
{
    uint8_t data[BLOCK] = {0};

    for (uint16_t i = 0; i < 7; i++) {
        struct nvme_sqe sqe = make_rw(NVM_WRITE, i, 1, (uint16_t)(100 + i));

        send_capsule(w, &host->io, &sqe, data, BLOCK);
        world_run(w, 2 * SECOND_US);
    }
    assert_true(host->io.peer->is_ended);
    assert_int_equal(w->fake->buffers_out, 0);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_SILENT), 1);
}

static void test_commands_do_not_stand_for_data(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 0, 16, 5);

    send_command(w, &host.io, &sqe, 16 * BLOCK);
    (void)take_r2t(w, &host.io);
    check_commands_do_not_help(w, &host);
}

static void test_commands_do_not_stand_for_acknowledgements(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);

    host.io.peer->is_deaf = true;
    for (uint16_t cid = 0; cid < 16; cid++) {
        struct nvme_sqe sqe = make_rw(NVM_READ, 0, 64, cid);

        send_command(w, &host.io, &sqe, 64 * BLOCK);
    }
    check_commands_do_not_help(w, &host);
}

/* A capsule that stays incomplete would come into the order of writes long
 * after the host has repeated it by another path. */
static void test_a_capsule_that_is_not_finished_is_ended(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 7, 1, 1);
    uint8_t data[BLOCK] = {1}, pdu[1024];
    uint32_t len = build_capsule(&host.io, pdu, &sqe, 0x01, BLOCK, data, BLOCK);

    world_send(w, host.io.peer, pdu, len - 1);
    world_run(w, 8 * SECOND_US);
    assert_false(host.io.peer->is_ended);
    world_run(w, 4 * SECOND_US);
    assert_true(host.io.peer->is_ended);
    assert_int_equal(w->fake->history_count, 0);
}

/* A peer that says nothing is ended when the time for Connect is over. */
static void test_silence_before_ic_req_ends(void **state)
{
    struct world *w = *state;
    struct world_peer *peer = world_connect(w);

    world_run(w, 29 * SECOND_US);
    assert_false(peer->is_finished);
    world_run(w, 2 * SECOND_US);
    assert_true(peer->is_finished);
    world_await_end(w, peer);
    assert_int_equal(nvme_tcp_usage(w->tcp).connections, 0);
}

/* A peer that has taken all connections without Connect keeps nobody out, and
 * does not end its own. */
static void test_connections_without_connect_keep_nobody_out(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    struct world_peer *first = world_connect(w);
    struct link link;

    for (unsigned int i = 3; i < NVME_TCP_OPEN_MAX; i++) {
        assert_true(world_connect(w)->is_open);
    }
    world_await_end(w, world_connect(w)); /* it displaces nothing of its own */
    assert_false(first->is_ended);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_DISPLACED), 0);
    w->hosts = 1;
    link = open_link(w, 0);
    assert_int_equal(connect_queue(w, &link, 0, 0xffff, true).status, 0);
    world_run(w, 10000);
    assert_true(first->is_ended);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_DISPLACED), 1);
    assert_int_equal(
        exec_command(w, &host.admin, fake_admin(ADMIN_KEEP_ALIVE, 0, 0, 0))
            .status,
        0);
}

/* The same behind TLS, where there are fewer connections: plain ones do not
 * make room. */
static void test_connections_behind_tls_keep_nobody_out(void **state)
{
    struct world *w = *state;
    struct world_peer *plain, *first;
    struct link link;

    w->hosts = 1;
    plain = world_connect(w); /* the oldest one of the same host */
    w->is_behind_tls = true;
    first = world_connect(w);
    for (unsigned int i = 1; i < NVME_TCP_TLS_MAX; i++) {
        assert_true(nvme_tcp_has_room_behind_tls(w->tcp));
        assert_true(world_connect(w)->is_open);
    }
    assert_true(nvme_tcp_has_room_behind_tls(w->tcp));
    world_await_end(w, world_connect(w)); /* it displaces nothing of its own */
    assert_false(first->is_ended);
    w->hosts = 2;
    link = open_link(w, 0);
    assert_int_equal(connect_queue(w, &link, 0, 0xffff, true).status, 0);
    world_run(w, 10000);
    assert_true(first->is_ended);
    assert_false(plain->is_ended);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_DISPLACED), 1);
}

/* Peers that have taken all connections, have made the drive end them, and do
 * not close: the drive waits for their FINs, but nobody has to wait for it. */
static void test_peers_that_do_not_close_keep_nobody_out(void **state)
{
    enum { FIRST = NVME_TCP_OPEN_MAX / 2 };
    struct world *w = *state;
    const uint8_t wrong[PDU_HEAD_LEN] = {0x55};
    struct world_peer *peers[NVME_TCP_OPEN_MAX];
    struct link link;

    for (unsigned int i = 0; i < NVME_TCP_OPEN_MAX; i++) {
        peers[i] = world_connect(w);
    }
    for (unsigned int i = 0; i < NVME_TCP_OPEN_MAX; i++) {
        world_send(w, peers[(FIRST + i) % NVME_TCP_OPEN_MAX], wrong,
                   sizeof(wrong));
        world_run(w, 1000);
    }
    world_run(w, SECOND_US); /* their acknowledgements may be delayed */
    assert_int_equal(nvme_tcp_usage(w->tcp).qpairs, 0);
    assert_int_equal(nvme_tcp_usage(w->tcp).connections, NVME_TCP_OPEN_MAX);
    w->hosts = 1;
    link = open_link(w, 0);
    assert_int_equal(connect_queue(w, &link, 0, 0xffff, true).status, 0);
    world_run(w, 10000);
    for (unsigned int i = 0; i < NVME_TCP_OPEN_MAX; i++) {
        assert_true(peers[i]->is_finished || peers[i]->is_ended);
        assert_int_equal(peers[i]->is_ended, i == FIRST);
    }
}

/* Hosts behind one address open all connections before the first Connect. */
static void test_hosts_of_one_address_connect_at_the_same_time(void **state)
{
    enum { LINKS = 100 };
    struct world *w = *state;
    struct link links[LINKS];

    for (unsigned int i = 0; i < LINKS; i++) {
        links[i] = open_link(w, 0);
    }
    for (unsigned int i = 0; i < LINKS; i++) {
        assert_int_equal(connect_queue(w, &links[i], 0, 0xffff, true).status,
                         0);
    }
}

/* SYNs whose address is forged take nothing from that address. */
static void test_forged_syns_end_no_connection(void **state)
{
    struct world *w = *state;
    struct link link = {.peer = world_connect(w)};

    for (unsigned int i = 0; i < 200; i++) {
        world_forge_syn(w);
        world_run(w, 1000);
    }
    send_ic_req(w, &link);
    (void)world_take(w, link.peer, PDU_IC_LEN);
    assert_int_equal(connect_queue(w, &link, 0, 0xffff, true).status, 0);
    for (unsigned int i = 1; i < NVME_TCP_OPEN_MAX; i++) {
        assert_true(world_connect(w)->is_open);
        world_forge_syn(w);
    }
}

/* Connect whose data come by H2CData uses memory of its connection. */
static void test_connect_takes_no_shared_buffer(void **state)
{
    struct world *w = *state;
    struct nvme_sqe sqe = connect_sqe(0, NVMF_ADMIN_DEPTH, true);
    uint8_t bytes[CONNECT_DATA_LEN];
    struct connect_data data;
    struct link link = open_link(w, 0);

    fake_connect_data(&data, 0xffff, FAKE_SUBNQN);
    connect_data_emit(bytes, &data);
    send_command(w, &link, &sqe, sizeof(bytes));
    world_run(w, 10000);
    assert_int_equal(w->fake->buffers_out, 0);
    assert_int_equal(answer_r2ts(w, &link, bytes, sizeof(bytes)), 1);
    assert_int_equal(take_response(w, &link).status, 0);
}

/* A host asks for 16 I/O queues, and connects those that it may have.
 * @return its connections; 0: the drive is busy */
static unsigned int connect_all_queues(struct world *w)
{
    enum { ASKED = 16, SHALLOW = 16 };
    struct nvme_sqe sqe =
        fake_admin(ADMIN_SET_FEATURES, 0, 7, (ASKED - 1) << 16 | (ASKED - 1));
    struct link admin = open_link(w, 0);
    struct nvme_cqe cqe = connect_queue(w, &admin, 0, 0xffff, true);
    uint16_t cntlid = (uint16_t)cqe.dw0;
    uint16_t granted;

    if (cqe.status != 0) {
        assert_int_equal(cqe.status & 0x7ff, NVME_SC_CONNECT_BUSY);
        return 0;
    }
    w->fake->target->config.max_io_queues = ASKED;
    enable_ctrl(w, &admin);
    cqe = exec_command(w, &admin, sqe);
    assert_int_equal(cqe.status, 0);
    granted = (uint16_t)((cqe.dw0 & 0xffff) + 1);
    for (uint16_t qid = 1; qid <= granted; qid++) {
        struct link io = open_link(w, 0);
        struct nvme_sqe connect = connect_sqe(qid, SHALLOW, true);
        uint8_t bytes[CONNECT_DATA_LEN];
        struct connect_data data;

        fake_connect_data(&data, cntlid, FAKE_SUBNQN);
        connect_data_emit(bytes, &data);
        send_capsule(w, &io, &connect, bytes, sizeof(bytes));
        assert_int_equal(take_response(w, &io).status, 0);
    }
    w->hosts++;
    return 1u + granted;
}

static void test_granted_queues_have_connections(void **state)
{
    struct world *w = *state;
    unsigned int connections = 0;
    unsigned int more;

    while ((more = connect_all_queues(w)) != 0) {
        connections += more;
    }
    assert_int_equal(connections, NVME_TCP_OPEN_MAX - 1);
}

/* There are fewer connections behind TLS, which the others do not use up. */
static void test_granted_queues_have_connections_behind_tls(void **state)
{
    struct world *w = *state;

    assert_int_equal(connect_all_queues(w), 17);
    w->is_behind_tls = true;
    assert_int_equal(connect_all_queues(w), 17);
    assert_int_equal(connect_all_queues(w), 17);
    assert_int_equal(connect_all_queues(w), 17);
    assert_int_equal(connect_all_queues(w), NVME_TCP_TLS_MAX - 3 * 17);
    assert_false(nvme_tcp_has_room_behind_tls(w->tcp));
    world_await_end(w, world_connect(w));
    w->is_behind_tls = false;
    assert_int_equal(connect_all_queues(w), 17);
}

/* ---- Discovery controllers, whose hosts have proven no identity. */

static void fill_with_discovery(struct world *w)
{
    for (unsigned int i = 0; i < NVMF_MAX_HOSTS; i++) {
        struct link link = open_link(w, 0);
        struct nvme_cqe cqe =
            connect_subsystem(w, &link, 0, 0xffff, true, NVME_DISCOVERY_NQN);

        assert_int_equal(cqe.status, 0);
    }
    world_run(w, 2 * SECOND_US);
}

/* Connect as a host does that is told to try again. */
static void check_connects(struct world *w)
{
    uint16_t status = 1;

    for (unsigned int i = 0; i < 3 && status != 0; i++) {
        struct link link = open_link(w, 0);

        status = connect_queue(w, &link, 0, 0xffff, true).status;
        world_run(w, SECOND_US);
    }
    assert_int_equal(status, 0);
}

static void test_discovery_controllers_of_tcp_keep_nobody_out(void **state)
{
    struct world *w = *state;

    fill_with_discovery(w);
    w->hosts = 1;
    check_connects(w);
    check_connects(w);
}

/* A request of RDMA for an admin queue, and its Connect. */
struct rdma_host {
    uint16_t qpair;
    struct fake_request *connect;
};

/* @return whether it has a queue pair */
static bool request_rdma(struct world *w, struct rdma_host *host)
{
    const struct nvmf_qpair_hints hints = {.sqsize = NVMF_ADMIN_DEPTH - 1};
    const struct nvmf_qpair_params params = {
        .transport = &w->fake->transport, .hints = &hints, .host = {1}};
    struct nvmf_target *target = w->fake->target;
    uint16_t other;

    while (nvmf_qpair_reserve(target, &params, &host->qpair) !=
           NVMF_RESERVE_OK) {
        if (nvmf_qpair_displace(target, &params, w->now_us, &other) !=
            NVMF_ROOM_NOW) {
            return false;
        }
    }
    nvmf_qpair_open(target, host->qpair, w->now_us);
    nvmf_qpair_confirm(target, host->qpair);
    return true;
}

static void connect_rdma(struct world *w, struct rdma_host *host)
{
    struct nvme_sqe sqe = connect_sqe(0, NVMF_ADMIN_DEPTH, true);
    uint8_t bytes[CONNECT_DATA_LEN];
    struct connect_data data;

    sqe.psdt = 0; /* the fake inverts the bit */
    fake_connect_data(&data, 0xffff, FAKE_SUBNQN);
    connect_data_emit(bytes, &data);
    host->connect =
        fake_send_in_capsule(w->fake, host->qpair, &sqe, bytes, sizeof(bytes));
    fake_run(w->fake);
}

/* A request of RDMA is answered at once, so it cannot wait for the end of a
 * connection of TCP.  Its Connect can, for the controller of the one that had
 * to go; nobody else has to go for that, nor for what Connects wait for that
 * have their queue pairs already. */
static void test_each_request_of_rdma_ends_one_queue_pair_of_tcp(void **state)
{
    enum { HOSTS = 3 };
    struct world *w = *state;
    struct nvmf_target *target = w->fake->target;
    struct rdma_host hosts[HOSTS];
    uint32_t ended = 0;

    fill_with_discovery(w);
    for (unsigned int i = 0; i < HOSTS; i++) {
        assert_true(request_rdma(w, &hosts[i]));
        assert_int_equal(nvmf_target_displaced(target), ++ended);
        connect_rdma(w, &hosts[i]);
        assert_false(hosts[i].connect->is_answered);
        assert_int_equal(nvmf_target_displaced(target), ended);
    }
    world_run(w, SECOND_US);
    fake_run(w->fake);
    for (unsigned int i = 0; i < HOSTS; i++) {
        assert_true(hosts[i].connect->is_answered);
        assert_int_equal(hosts[i].connect->cqe.status, 0);
        fake_close(w->fake, hosts[i].qpair);
    }
    assert_int_equal(nvmf_target_displaced(target), ended);
}

/* Strangers hold the numbers of queue pairs by RDMA that are left.  @return the
 * oldest */
static uint16_t fill_with_rdma(struct world *w, unsigned int hosts)
{
    const struct nvmf_qpair_hints hints = {.qid = 1, .sqsize = 1};
    struct nvmf_qpair_params params = {
        .transport = &w->fake->transport, .hints = &hints, .host = {1}};
    struct nvmf_target *target = w->fake->target;
    uint16_t qpair, first = 0;

    for (unsigned int i = 0; target->qpair_count < NVMF_MAX_QPAIRS; i++) {
        params.host[1] = (uint8_t)(i % hosts);
        assert_int_equal(nvmf_qpair_reserve(target, &params, &qpair),
                         NVMF_RESERVE_OK);
        nvmf_qpair_open(target, qpair, w->now_us);
        nvmf_qpair_confirm(target, qpair);
        first = i == 0 ? qpair : first;
    }
    world_run(w, 2 * SECOND_US);
    return first;
}

static void end_rdma(struct world *w)
{
    for (uint16_t i = 0; i < NVMF_MAX_QPAIRS; i++) {
        const struct nvmf_qpair *qpair = &w->fake->target->qpair[i];

        if (qpair->transport == &w->fake->transport &&
            qpair->state != QPAIR_FREE) {
            fake_close(w->fake, i);
        }
    }
}

/* The connection is held until the number is free.  What it has sent meanwhile
 * counts then. */
static void test_a_newcomer_waits_for_the_number_of_a_stranger(void **state)
{
    struct world *w = *state;
    uint16_t oldest = fill_with_rdma(w, 1);
    struct link link = {.peer = world_connect(w)};

    assert_int_equal(w->fake->disconnect_count, 2); /* without waiting for it */
    assert_int_equal(w->fake->disconnected[0], oldest);
    send_ic_req(w, &link);
    world_run(w, SECOND_US);
    assert_false(link.peer->is_ended);
    assert_int_equal(link.peer->received, 0);
    fake_close(w->fake, oldest);
    (void)world_take(w, link.peer, PDU_IC_LEN);
    assert_int_equal(connect_queue(w, &link, 0, 0xffff, true).status, 0);
    assert_int_equal(nvmf_target_displaced(w->fake->target), 1);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_REFUSED), 0);
    end_rdma(w);
}

/* One that comes when the number is free does not take it from the first. */
static void test_newcomers_get_numbers_in_their_order(void **state)
{
    struct world *w = *state;
    uint16_t oldest = fill_with_rdma(w, 1);
    struct link first = {.peer = world_connect(w)};
    struct link second = {.peer = world_connect(w)};

    assert_int_equal(w->fake->disconnect_count, 4);
    send_ic_req(w, &second);
    fake_close(w->fake, oldest);
    send_ic_req(w, &first);
    (void)world_take(w, first.peer, PDU_IC_LEN);
    world_run(w, SECOND_US);
    assert_int_equal(second.peer->received, 0);
    world_close(w, second.peer); /* its host gives up */
    world_await_end(w, second.peer);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_REFUSED), 0);
    assert_int_equal(w->tcp->awaiting, 0);
    end_rdma(w);
}

/* The stranger's queue pair does not end: the newcomer does not wait for ever.
 */
static void test_a_newcomer_does_not_wait_for_ever(void **state)
{
    struct world *w = *state;
    struct world_peer *peer;

    (void)fill_with_rdma(w, 1);
    peer = world_connect(w);
    world_run(w, 4 * SECOND_US);
    assert_false(peer->is_ended);
    world_run(w, 3 * SECOND_US);
    assert_true(peer->is_ended);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_REFUSED), 1);
    assert_int_equal(w->tcp->awaiting, 0);
    end_rdma(w);
}

/* What waits has no queue pair, and so no part of the address's share. */
static void test_newcomers_of_one_address_end_few_queue_pairs(void **state)
{
    enum { FEW = 4 };
    struct world *w = *state;

    (void)fill_with_rdma(w, 64);
    for (unsigned int i = 0; i < 2 * FEW; i++) {
        const struct world_peer *peer = world_connect(w);

        world_run(w, 10000);
        assert_int_equal(peer->is_ended, i >= FEW);
    }
    assert_int_equal(nvmf_target_displaced(w->fake->target), FEW);
    assert_int_equal(w->tcp->awaiting, FEW);
    end_rdma(w);
}

/* All connections are in use, too: the one that makes room for the newcomer
 * gives its number back, and nobody else has to go for that. */
static void test_a_newcomer_ends_one_queue_pair_for_both(void **state)
{
    struct world *w = *state;
    struct world_peer *peer;

    for (unsigned int i = 0; i < NVME_TCP_OPEN_MAX; i++) {
        (void)open_link(w, 0);
    }
    (void)fill_with_rdma(w, 64);
    w->hosts = 1;
    peer = world_connect(w);
    world_run(w, 10000);
    assert_false(peer->is_ended);
    assert_int_equal(nvmf_target_displaced(w->fake->target), 1);
    assert_int_equal(w->tcp->awaiting, 0);
    end_rdma(w);
}

/* Two newcomers in one turn need two numbers, also if these are of TCP. */
static void test_each_newcomer_has_its_own_number(void **state)
{
    enum { CONNECTIONS = 64 };
    struct world *w = *state;
    struct nvmf_target *target = w->fake->target;
    const struct nvmf_qpair_params params = {.transport = &w->tcp->transport,
                                             .host = {2}};
    uint16_t first, second;

    for (unsigned int i = 0; i < CONNECTIONS; i++) {
        (void)open_link(w, 0);
    }
    (void)fill_with_rdma(w, 64);
    assert_int_equal(nvmf_qpair_displace(target, &params, w->now_us, &first),
                     NVMF_ROOM_LATER);
    assert_int_equal(nvmf_qpair_displace(target, &params, w->now_us, &second),
                     NVMF_ROOM_LATER);
    assert_int_not_equal(first, second);
    assert_int_equal(nvmf_qpair_numbers_expected(target), 2);
    world_run(w, 10000);
    assert_int_equal(nvmf_qpair_numbers_expected(target), 0);
    end_rdma(w);
}

static void send_connect(struct world *w, const struct link *link, uint16_t qid,
                         uint16_t cntlid, uint16_t depth)
{
    struct nvme_sqe sqe = connect_sqe(qid, depth, true);
    uint8_t bytes[CONNECT_DATA_LEN];
    struct connect_data data;

    fake_connect_data(&data, cntlid, FAKE_SUBNQN);
    connect_data_emit(bytes, &data);
    send_capsule(w, link, &sqe, bytes, sizeof(bytes));
    world_run(w, SECOND_US);
}

/* Reserve a queue pair of the fake transport, which the test has to close.
 * @return whether there is room for it */
static bool reserve_other(struct world *w)
{
    struct nvmf_qpair_hints hints = {.sqsize = NVMF_ADMIN_DEPTH - 1};
    struct nvmf_qpair_params params = {.transport = &w->fake->transport,
                                       .hints = &hints};
    uint16_t qpair;

    return nvmf_qpair_reserve(w->fake->target, &params, &qpair) ==
           NVMF_RESERVE_OK;
}

/* Connect waits for the room, and nobody else gets it: an attacker who opens
 * another connection for each one that has to go would always be quicker than a
 * host that is told to try again. */
static void test_discovery_controllers_of_rdma_make_room_for_tcp(void **state)
{
    struct world *w = *state;
    struct fake *fake = w->fake;
    uint16_t qpairs[NVMF_MAX_HOSTS];
    struct nvme_cqe cqe;
    struct link admin;
    struct link io;

    for (unsigned int i = 0; i < NVMF_MAX_HOSTS; i++) {
        qpairs[i] = fake_discovery_host(fake);
    }
    world_run(w, 2 * SECOND_US);
    admin = open_link(w, 0);
    send_connect(w, &admin, 0, 0xffff, NVMF_ADMIN_DEPTH);
    assert_int_equal(admin.peer->received, admin.peer->read);
    assert_int_equal(fake->disconnect_count, 2); /* without waiting for it */
    assert_int_equal(fake->disconnected[0], qpairs[0]);
    fake_close(fake, qpairs[0]);
    assert_false(reserve_other(w));
    cqe = take_response(w, &admin);
    assert_int_equal(cqe.status, 0);

    enable_ctrl(w, &admin);
    io = open_link(w, 0);
    send_connect(w, &io, 1, (uint16_t)cqe.dw0, NVMF_MAX_DEPTH);
    assert_int_equal(fake->disconnect_count, 6);
    fake_close(fake, qpairs[1]);
    assert_false(reserve_other(w));
    world_run(w, SECOND_US);
    assert_int_equal(io.peer->received, io.peer->read);
    fake_close(fake, qpairs[2]);
    assert_int_equal(take_response(w, &io).status, 0);
    for (unsigned int i = 3; i < NVMF_MAX_HOSTS; i++) {
        fake_close(fake, qpairs[i]);
    }
}

/* What is not given back for a Connect that waits is for all. */
static void test_a_connect_that_waits_keeps_no_other_room(void **state)
{
    struct world *w = *state;
    struct fake *fake = w->fake;
    uint16_t qpairs[NVMF_MAX_HOSTS];
    struct link link;

    for (unsigned int i = 0; i < NVMF_MAX_HOSTS; i++) {
        qpairs[i] = fake_discovery_host(fake);
    }
    world_run(w, 2 * SECOND_US);
    link = open_link(w, 0);
    send_connect(w, &link, 0, 0xffff, NVMF_ADMIN_DEPTH);
    fake_close(fake, qpairs[1]);
    assert_int_equal(link.peer->received, link.peer->read);
    qpairs[1] = fake_discovery_host(fake);
    fake_close(fake, qpairs[0]);
    assert_int_equal(take_response(w, &link).status, 0);
    for (unsigned int i = 1; i < NVMF_MAX_HOSTS; i++) {
        fake_close(fake, qpairs[i]);
    }
}

/* There is memory for the data in the capsules of all SQ entries, and it is
 * used again and again. */
static void test_each_entry_has_a_slot(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    uint8_t data[BLOCK];

    for (unsigned int round = 0; round < 3; round++) {
        w->fake->hold_media = true;
        for (uint16_t cid = 0; cid < DEPTH; cid++) {
            struct nvme_sqe sqe = make_rw(NVM_WRITE, cid, 1, cid);

            fill_data(data, BLOCK, (uint8_t)(cid + round));
            send_capsule(w, &host.io, &sqe, data, BLOCK);
        }
        world_run(w, 100000);
        assert_int_equal(w->fake->media_count, DEPTH);
        assert_int_equal(w->tcp->pool_free, NVME_TCP_POOL_SLOTS - DEPTH);
        w->fake->hold_media = false;
        for (unsigned int i = 0; i < DEPTH; i++) {
            assert_int_equal(take_response(w, &host.io).status, 0);
        }
        assert_int_equal(w->tcp->pool_free, NVME_TCP_POOL_SLOTS);
        for (uint16_t cid = 0; cid < DEPTH; cid++) {
            fill_data(data, BLOCK, (uint8_t)(cid + round));
            check_read(w, &host.io, cid, data, 1, cid);
        }
    }
}

/* A connection that has no slots left is not read.  The slots of all queues are
 * taken away for that. */
static void test_capsules_wait_for_slots(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    uint8_t data[BLOCK];

    w->tcp->pool_free = 0;
    w->fake->hold_media = true;
    for (uint16_t cid = 0; cid < 40; cid++) {
        struct nvme_sqe sqe = make_rw(NVM_WRITE, cid, 1, cid);

        fill_data(data, BLOCK, (uint8_t)cid);
        send_capsule(w, &host.io, &sqe, data, BLOCK);
    }
    world_run(w, 100000);
    assert_int_equal(w->fake->media_count, NVME_TCP_SLOTS);
    w->fake->hold_media = false;
    for (unsigned int i = 0; i < 40; i++) {
        assert_int_equal(take_response(w, &host.io).status, 0);
    }
    for (uint16_t cid = 0; cid < 40; cid++) {
        fill_data(data, BLOCK, (uint8_t)cid);
        check_read(w, &host.io, cid, data, 1, cid);
    }
}

/* Data that the drive has asked for are behind a capsule that waits for a slot:
 * their host is not silent. */
static void test_a_connection_that_is_not_read_is_not_silent(void **state)
{
    static uint8_t data[16 * BLOCK];
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 100, 16, 50);
    struct tcp_pdu_data r2t;

    w->tcp->pool_free = 0;
    send_command(w, &host.io, &sqe, sizeof(data));
    r2t = take_r2t(w, &host.io);
    w->fake->hold_media = true;
    for (uint16_t cid = 0; cid <= NVME_TCP_SLOTS; cid++) {
        sqe = make_rw(NVM_WRITE, cid, 1, cid);
        send_capsule(w, &host.io, &sqe, data, BLOCK);
    }
    send_data(w, &host.io, &r2t, true, data);
    world_run(w, 12 * SECOND_US);
    assert_false(host.io.peer->is_ended);
    w->fake->hold_media = false;
    for (unsigned int i = 0; i < NVME_TCP_SLOTS + 2; i++) {
        assert_int_equal(take_response(w, &host.io).status, 0);
    }
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_SILENT), 0);
}

/* The capsules of each path wait for the write of the other one, whose data are
 * behind them. */
static void test_two_paths_do_not_wait_for_each_other(void **state)
{
    enum { CAPSULES = DEPTH - 1, WRITES = 64, OTHER = 512 };
    static uint8_t data[WRITES * BLOCK];
    struct world *w = *state;
    struct host host[2] = {connect_host(w, 0, true), connect_host(w, 0, true)};
    struct tcp_pdu_data r2t[2];

    for (unsigned int i = 0; i < 2; i++) {
        struct nvme_sqe sqe = make_rw(NVM_WRITE, i * OTHER, WRITES, 100);

        send_command(w, &host[i].io, &sqe, sizeof(data));
        r2t[i] = take_r2t(w, &host[i].io);
    }
    for (uint16_t cid = 0; cid < CAPSULES; cid++) {
        for (unsigned int i = 0; i < 2; i++) {
            struct nvme_sqe sqe =
                make_rw(NVM_WRITE, (1 - i) * OTHER + cid, 1, cid);

            send_capsule(w, &host[i].io, &sqe, data, BLOCK);
        }
    }
    world_run(w, 10000);
    for (unsigned int i = 0; i < 2; i++) {
        send_data(w, &host[i].io, &r2t[i], true, data);
    }
    for (unsigned int i = 0; i < 2; i++) {
        for (unsigned int n = 0; n < CAPSULES + 1; n++) {
            assert_int_equal(take_response(w, &host[i].io).status, 0);
        }
    }
}

/*
 * A write has come by one path, behind others that wait for the medium.  Its
 * host gives the path up, repeats it by the other path, and writes newer data:
 * these stay.
 */
static void test_what_has_come_by_one_path_comes_first(void **state)
{
    enum { BEFORE = DEPTH - 1, LBA = 700 };
    struct world *w = *state;
    struct host old = connect_host(w, 0, true);
    struct host now = connect_host(w, 0, true);
    uint8_t data[BLOCK], newer[BLOCK];
    struct nvme_sqe sqe;

    fill_data(data, BLOCK, 1);
    fill_data(newer, BLOCK, 2);
    w->fake->hold_media = true;
    for (uint16_t cid = 0; cid < BEFORE; cid++) {
        sqe = make_rw(NVM_WRITE, cid, 1, cid);
        send_capsule(w, &old.io, &sqe, data, BLOCK);
    }
    sqe = make_rw(NVM_WRITE, LBA, 1, BEFORE);
    send_capsule(w, &old.io, &sqe, data, BLOCK);
    world_run(w, 100000);
    sqe = make_rw(NVM_WRITE, LBA, 1, 1);
    send_capsule(w, &now.io, &sqe, newer, BLOCK);
    world_run(w, 100000);
    assert_int_equal(w->fake->media_count, DEPTH); /* not the newer one */
    w->fake->hold_media = false;
    assert_int_equal(take_response(w, &now.io).status, 0);
    world_run(w, SECOND_US);
    check_read(w, &now.io, LBA, newer, 1, 2);
}

/*
 * The H2CData of a write are held up in the network.  Its host repeats it by
 * the other path, and is answered only when the old write has its data, or when
 * its connection has ended.
 */
static void test_h2c_data_that_are_held_up_overwrite_nothing(void **state)
{
    enum { LBA = 700 };
    struct world *w = *state;
    struct host old = connect_host(w, 0, true);
    struct host now = connect_host(w, 0, true);
    uint8_t data[BLOCK], newer[BLOCK];
    struct tcp_pdu_data r2t;
    struct nvme_sqe sqe;

    for (uint8_t i = 0; i < 2; i++) {
        bool is_late = i == 1;

        fill_data(data, BLOCK, 1);
        fill_data(newer, BLOCK, (uint8_t)(2 + i));
        sqe = make_rw(NVM_WRITE, LBA, 1, 1);
        send_command(w, &old.io, &sqe, BLOCK);
        r2t = take_r2t(w, &old.io);
        sqe = make_rw(NVM_WRITE, LBA, 1, (uint16_t)(10 + i));
        send_capsule(w, &now.io, &sqe, newer, BLOCK);
        world_run(w, 5 * SECOND_US);
        assert_int_equal(now.io.peer->read, now.io.peer->received);
        if (is_late) {
            world_run(w, 8 * SECOND_US);
        } else {
            send_data(w, &old.io, &r2t, true, data);
        }
        assert_int_equal(take_response(w, &now.io).status, 0);
        world_run(w, SECOND_US);
        assert_int_equal(old.io.peer->is_ended, is_late);
        if (!is_late) {
            assert_int_equal(take_response(w, &old.io).status, 0);
        }
        check_read(w, &now.io, LBA, newer, 1, (uint16_t)(20 + i));
    }
}

/* The same when fused commands are before it, whose data are at the host. */
static void test_fused_commands_keep_nobody_unread(void **state)
{
    enum { PAIRS = DEPTH / 2 };
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);

    for (uint16_t n = 0; n < PAIRS; n++) {
        struct nvme_sqe first = make_rw(NVM_COMPARE, n, 1, (uint16_t)(2 * n));
        struct nvme_sqe second =
            make_rw(NVM_WRITE, n, 1, (uint16_t)(2 * n + 1));

        first.fuse = SQE_FUSE_FIRST;
        second.fuse = SQE_FUSE_SECOND;
        send_command(w, &host.io, &first, BLOCK);
        send_command(w, &host.io, &second, BLOCK);
    }
    for (unsigned int n = 0; n < PAIRS; n++) {
        (void)take_r2t(w, &host.io);
    }
    world_run(w, 10000);
    assert_int_equal(w->tcp->pool_free, NVME_TCP_POOL_SLOTS - DEPTH);
}

/* The test has ended no connection: the ends of each have one index. */
static struct nvme_tcp_details queue_details(const struct world *w,
                                             const struct link *link)
{
    const struct world_conn *conn = &w->conns[link->peer - w->peers];
    struct nvme_tcp_details details;

    assert_true(nvme_tcp_describe(w->tcp, conn->asked, &details));
    return details;
}

static void test_connections_are_described_and_pdus_counted(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, DATA_DIGEST, false);
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 10, 1, 3);
    uint8_t data[BLOCK] = {1};
    struct nvme_tcp_details details;
    struct tcp_pdu_data r2t;
    uint64_t before[NVME_TCP_COUNTERS];

    for (unsigned int i = 0; i < NVME_TCP_COUNTERS; i++) {
        before[i] = nvme_tcp_counter(w->tcp, (enum nvme_tcp_counter)i);
    }
    details = queue_details(w, &host.admin);
    assert_true(details.is_connected);
    assert_int_equal(details.qid, 0);
    send_command(w, &host.io, &sqe, BLOCK);
    r2t = take_r2t(w, &host.io);
    details = queue_details(w, &host.io);
    assert_int_equal(details.qid, 1);
    assert_false(details.has_header_digest);
    assert_true(details.has_data_digest);
    assert_int_equal(details.commands, 1);
    assert_int_equal(details.r2ts, 1);
    assert_false(details.is_waiting);
    send_data(w, &host.io, &r2t, true, data);
    assert_int_equal(take_response(w, &host.io).status, 0);
    sqe = make_rw(NVM_READ, 10, 1, 4);
    send_command(w, &host.io, &sqe, BLOCK);
    (void)take_pdu(w, &host.io);
    world_run(w, 10000);
    details = queue_details(w, &host.io);
    assert_int_equal(details.commands, 0);
    assert_int_equal(details.r2ts, 0);
    for (unsigned int i = 0; i < NVME_TCP_COUNTERS; i++) {
        static const uint8_t more[NVME_TCP_COUNTERS] = {
            [NVME_TCP_CAPSULES] = 2,  [NVME_TCP_H2C_DATA] = 1,
            [NVME_TCP_R2TS] = 1,      [NVME_TCP_C2H_DATA] = 1,
            [NVME_TCP_RESPONSES] = 1, [NVME_TCP_SUCCESSES] = 1};
        bool is_placed = i == NVME_TCP_PLACED && world_follows;

        assert_int_equal(nvme_tcp_counter(w->tcp, (enum nvme_tcp_counter)i) -
                             before[i],
                         is_placed ? 1 : more[i]);
    }
    assert_false(nvme_tcp_describe(w->tcp, 12345678, &details));
}

struct recorder {
    uint32_t mask;
    unsigned int count;
    struct trace_record records[16];
};

static void record_event(void *ctx, const struct trace_record *record,
                         const char *text)
{
    struct recorder *recorder = ctx;

    assert_null(text);
    assert_true(recorder->count < 16);
    recorder->records[recorder->count++] = *record;
}

static void check_event(const struct recorder *recorder, unsigned int at,
                        enum trace_type type, const uint32_t *args,
                        unsigned int count)
{
    const struct trace_record *record = &recorder->records[at];

    assert_true(at < recorder->count);
    assert_int_equal(record->type, type);
    /* What the drive sends for a command has the number of its request. */
    assert_int_equal(record->request != TRACE_NO_REQUEST,
                     type == TRACE_PDU_SENT);
    assert_memory_equal(record->arg, args, count * sizeof(args[0]));
}

static void test_pdus_are_traced(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, DATA_DIGEST, true);
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 10, 1, 3);
    uint8_t data[BLOCK] = {1}, wrong[8] = {8, 0, 24, 0, 24};
    struct recorder recorder = {.mask = 0};
    const struct trace trace = {
        .mask = &recorder.mask, .ctx = &recorder, .emit = record_event};
    struct tcp_pdu_data r2t;

    w->tcp->config.trace = &trace;
    send_command(w, &host.io, &sqe, BLOCK);
    r2t = take_r2t(w, &host.io);
    assert_int_equal(recorder.count, 0); /* nobody wants them */
    recorder.mask = BIT(TRACE_GROUP_PDUS);
    send_data(w, &host.io, &r2t, true, data);
    assert_int_equal(take_response(w, &host.io).status, 0);
    sqe = make_rw(NVM_READ, 10, 1, 4);
    send_command(w, &host.io, &sqe, BLOCK);
    (void)take_pdu(w, &host.io);
    assert_int_equal(take_response(w, &host.io).status, 0);
    sqe = make_rw(NVM_WRITE, 10, 1, 5);
    send_command(w, &host.io, &sqe, BLOCK);
    (void)take_r2t(w, &host.io);
    world_send(w, host.io.peer, wrong, sizeof(wrong));
    check_term(w, &host.io, PDU_FES_HEADER_FIELD, PDU_TYPE);

    /* type, flags, qid, cid, tag, offset, bytes */
    check_event(&recorder, 0, TRACE_PDU_RECEIVED,
                (uint32_t[]){6, 6, 1, 3, r2t.ttag, 0, BLOCK}, 7);
    check_event(&recorder, 1, TRACE_PDU_SENT, (uint32_t[]){5, 0, 1, 3, 0, 0, 0},
                7);
    check_event(&recorder, 2, TRACE_PDU_RECEIVED,
                (uint32_t[]){4, 0, 1, 4, 0, 0, 0}, 7);
    check_event(&recorder, 3, TRACE_PDU_SENT,
                (uint32_t[]){7, 6, 1, 4, 0, 0, BLOCK}, 7);
    check_event(&recorder, 4, TRACE_PDU_SENT, (uint32_t[]){5, 0, 1, 4, 0, 0, 0},
                7);
    assert_int_equal(recorder.records[4].request, recorder.records[3].request);
    check_event(&recorder, 5, TRACE_PDU_RECEIVED,
                (uint32_t[]){4, 0, 1, 5, 0, 0, 0}, 7);
    check_event(&recorder, 6, TRACE_PDU_SENT,
                (uint32_t[]){9, 0, 1, 5, (uint16_t)(r2t.ttag + 1), 0, BLOCK},
                7);
    check_event(&recorder, 7, TRACE_PDU_REFUSED, (uint32_t[]){8, 1, 1, 0}, 4);
    assert_int_equal(recorder.count, 8);
    w->tcp->config.trace = &trace_off;
}

/* ---- Fault rules. */

enum { RULE = 7 };

static void add_rule(struct world *w, enum nvme_tcp_fault_action action,
                     int type, bool is_sent)
{
    const struct nvme_tcp_fault rule = {
        .id = RULE,
        .action = (uint8_t)action,
        .queue = NVMF_FAULT_IO_QUEUE,
        .type = (int16_t)type,
        .is_in = !is_sent,
        .is_out = is_sent,
        .trigger = {.nth = 2, .chance = FAULT_CHANCE_ALWAYS},
    };

    if (w->faults.count != 0) {
        assert_true(nvme_tcp_fault_remove(&w->faults, RULE));
    }
    assert_true(nvme_tcp_fault_add(&w->faults, &rule));
}

static void check_fired(const struct world *w, uint64_t matched)
{
    assert_int_equal(w->faults.list[0].trigger.matched, matched);
    assert_int_equal(w->faults.list[0].trigger.fired, matched >= 2 ? 1 : 0);
}

static uint16_t write_by_r2t(struct world *w, const struct host *host,
                             uint16_t cid)
{
    static uint8_t data[8 * BLOCK];
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 10, 8, cid);

    send_command(w, &host->io, &sqe, sizeof(data));
    assert_int_equal(answer_r2ts(w, &host->io, data, sizeof(data)), 1);
    return take_response(w, &host->io).status;
}

/* A digest of the host is taken for wrong.  answer_r2ts() sends two H2CData
 * for each R2T. */
static void test_a_fault_rule_doubts_a_digest_of_the_host(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, BOTH, true);
    struct nvme_sqe sqe = make_rw(NVM_FLUSH, 0, 1, 9);

    add_rule(w, NVME_TCP_FAULT_DATA_DIGEST, PDU_H2C_DATA, false);
    assert_int_equal(write_by_r2t(w, &host, 1) & 0x7ff,
                     NVME_SC_TRANSIENT_TRANSPORT);
    check_fired(w, 2);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_DATA_DIGESTS), 1);
    assert_int_equal(write_by_r2t(w, &host, 2), 0);

    add_rule(w, NVME_TCP_FAULT_HEADER_DIGEST, NVME_TCP_FAULT_ANY, false);
    sqe.nsid = 1;
    assert_int_equal(exec_command(w, &host.io, sqe).status, 0);
    assert_int_equal(
        exec_command(w, &host.admin, fake_admin(ADMIN_KEEP_ALIVE, 0, 0, 0))
            .status,
        0);
    check_fired(w, 1);
    send_command(w, &host.io, &sqe, 0);
    assert_int_equal(take_term(w, &host.io).fes, PDU_FES_HEADER_DIGEST);
    check_fired(w, 2);
    world_await_end(w, host.io.peer);
}

/* A rule about a digest does not match PDUs without this digest. */
static void test_a_fault_rule_needs_the_digest(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, HEADER_DIGEST, true);

    add_rule(w, NVME_TCP_FAULT_DATA_DIGEST, NVME_TCP_FAULT_ANY, false);
    for (uint16_t cid = 1; cid < 4; cid++) {
        assert_int_equal(write_by_r2t(w, &host, cid), 0);
    }
    check_fired(w, 0);
}

/* Take a PDU of the drive as it is.  @return its bytes */
static const uint8_t *take_raw(struct world *w, const struct link *link)
{
    const uint8_t *bytes = world_take(w, link->peer, PDU_HEAD_LEN);

    (void)world_take(w, link->peer, get_le32(bytes + PDU_PLEN) - PDU_HEAD_LEN);
    return bytes;
}

static void test_a_fault_rule_spoils_a_digest_of_the_drive(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, BOTH, true);
    struct nvme_sqe sqe = make_rw(NVM_READ, 10, 1, 5);
    const uint8_t *pdu;

    add_rule(w, NVME_TCP_FAULT_DATA_DIGEST, PDU_C2H_DATA, true);
    for (unsigned int i = 1; i <= 3; i++) {
        send_command(w, &host.io, &sqe, BLOCK);
        pdu = take_raw(w, &host.io);
        assert_int_equal(get_le32(pdu + 24), crc32c_update(0, pdu, 24));
        assert_int_equal(get_le32(pdu + 28 + BLOCK),
                         crc32c_update(0, pdu + 28, BLOCK) ^
                             (i == 2 ? UINT32_MAX : 0));
        assert_int_equal(take_response(w, &host.io).status, 0);
    }
    add_rule(w, NVME_TCP_FAULT_HEADER_DIGEST, PDU_CAPSULE_RESP, true);
    for (unsigned int i = 1; i <= 3; i++) {
        send_command(w, &host.io, &sqe, BLOCK);
        (void)take_raw(w, &host.io);
        pdu = take_raw(w, &host.io);
        assert_int_equal(get_le32(pdu + 24),
                         crc32c_update(0, pdu, 24) ^ (i == 2 ? UINT32_MAX : 0));
    }
    check_fired(w, 3);
}

/* A RST takes the place of the second capsule, or of the second R2T. */
static void test_a_fault_rule_resets_instead_of_a_pdu(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 10, 1, 6);
    uint8_t data[BLOCK] = {0};
    uint32_t received;

    add_rule(w, NVME_TCP_FAULT_RESET, PDU_CAPSULE_CMD, false);
    send_capsule(w, &host.io, &sqe, data, BLOCK);
    assert_int_equal(take_response(w, &host.io).status, 0);
    send_capsule(w, &host.io, &sqe, data, BLOCK);
    world_await_end(w, host.io.peer);
    assert_int_equal(host.io.peer->end, TCP_END_RESET);
    assert_int_equal(w->fake->history_count, 1);

    host = connect_host(w, 0, true);
    add_rule(w, NVME_TCP_FAULT_RESET, PDU_R2T, true);
    assert_int_equal(write_by_r2t(w, &host, 1), 0);
    received = host.io.peer->received;
    send_command(w, &host.io, &sqe, BLOCK);
    world_await_end(w, host.io.peer);
    assert_int_equal(host.io.peer->end, TCP_END_RESET);
    assert_int_equal(host.io.peer->received, received);
    assert_int_equal(w->fake->buffers_out, 0);
}

/* PDUs that are no answers to commands can be replaced, too. */
static void test_a_fault_rule_resets_instead_of_ic_resp(void **state)
{
    struct world *w = *state;
    struct link link = {.peer = world_connect(w)};

    add_rule(w, NVME_TCP_FAULT_RESET, PDU_IC_RESP, true);
    w->faults.list[0].queue = NVMF_FAULT_ADMIN_QUEUE; /* before Connect */
    w->faults.list[0].trigger.nth = 1;
    send_ic_req(w, &link);
    world_await_end(w, link.peer);
    assert_int_equal(link.peer->end, TCP_END_RESET);
    assert_int_equal(link.peer->received, 0);
}

static void test_fault_rules_are_added_turned_and_removed(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, BOTH, true);
    struct nvme_tcp_fault rule = {.id = 0};

    assert_false(nvme_tcp_fault_add(&w->faults, &rule));
    add_rule(w, NVME_TCP_FAULT_DATA_DIGEST, NVME_TCP_FAULT_ANY, false);
    w->faults.list[0].trigger.nth = 1;
    rule.id = RULE;
    assert_false(nvme_tcp_fault_add(&w->faults, &rule));
    assert_false(nvme_tcp_fault_turn(&w->faults, RULE + 1, false));
    assert_true(nvme_tcp_fault_turn(&w->faults, RULE, false));
    assert_int_equal(write_by_r2t(w, &host, 1), 0);
    check_fired(w, 0);
    assert_true(nvme_tcp_fault_turn(&w->faults, RULE, true));
    assert_int_equal(write_by_r2t(w, &host, 2) & 0x7ff,
                     NVME_SC_TRANSIENT_TRANSPORT);
    while (w->faults.count < NVME_TCP_FAULTS) {
        rule.id++;
        assert_true(nvme_tcp_fault_add(&w->faults, &rule));
    }
    rule.id++;
    assert_false(nvme_tcp_fault_add(&w->faults, &rule));
    assert_true(nvme_tcp_fault_remove(&w->faults, RULE + 1));
    assert_false(nvme_tcp_fault_remove(&w->faults, RULE + 1));
    assert_int_equal(w->faults.count, NVME_TCP_FAULTS - 1);
    assert_int_equal(w->faults.list[1].id, RULE + 2);
}

/* ---- Many at a time. */

/* Connect as the host with this number. */
static uint16_t connect_numbered(struct world *w, const struct link *link,
                                 uint16_t qid, uint16_t cntlid, uint8_t number)
{
    struct nvme_sqe sqe = connect_sqe(qid, 8, true);
    uint8_t bytes[CONNECT_DATA_LEN];
    struct connect_data data;
    struct nvme_cqe cqe;

    fake_connect_data(&data, cntlid, FAKE_SUBNQN);
    data.hostid[0] = number;
    data.hostnqn[strlen(data.hostnqn) - 1] = (char)('0' + number % 8);
    data.hostnqn[strlen(data.hostnqn) - 2] = (char)('0' + number / 8);
    connect_data_emit(bytes, &data);
    send_capsule(w, link, &sqe, bytes, sizeof(bytes));
    cqe = take_response(w, link);
    assert_int_equal(cqe.status, 0);
    return (uint16_t)cqe.dw0;
}

/* Each of 64 hosts has a command under way while all others begin theirs. */
static void test_64_hosts_at_a_time(void **state)
{
    enum { HOSTS = 64, BLOCKS = 4 };
    static uint8_t data[HOSTS][BLOCKS * BLOCK];
    struct world *w = *state;
    struct link admin[HOSTS], io[HOSTS];
    struct tcp_pdu_data r2t;

    for (uint8_t i = 0; i < HOSTS; i++) {
        struct nvme_sqe features = fake_admin(ADMIN_SET_FEATURES, 0, 7, 0);
        uint16_t cntlid;

        w->hosts = i % 16;
        admin[i] = open_link(w, i % 4);
        cntlid = connect_numbered(w, &admin[i], 0, 0xffff, i);
        enable_ctrl(w, &admin[i]);
        assert_int_equal(exec_command(w, &admin[i], features).status, 0);
        io[i] = open_link(w, i % 4);
        (void)connect_numbered(w, &io[i], 1, cntlid, i);
        fill_data(data[i], sizeof(data[i]), i);
    }
    for (uint8_t i = 0; i < HOSTS; i++) {
        struct nvme_sqe sqe = make_rw(NVM_WRITE, i * 8, BLOCKS, i);

        send_command(w, &io[i], &sqe, sizeof(data[i]));
    }
    for (uint8_t i = HOSTS; i-- > 0;) {
        r2t = take_r2t(w, &io[i]);
        send_data(w, &io[i], &r2t, true, data[i]);
    }
    for (uint8_t i = 0; i < HOSTS; i++) {
        assert_int_equal(take_response(w, &io[i]).status, 0);
    }
    for (uint8_t i = 0; i < HOSTS; i++) {
        check_read(w, &io[(i + 1) % HOSTS], i * 8, data[i], BLOCKS, i);
    }
}

/* A peer opens 1024 connections without Connect.  A host that is connected goes
 * on, and another one is served. */
static void test_1024_connections_without_connect(void **state)
{
    enum { OPENED = 1024, KEPT = NVME_TCP_OPEN_MAX - 2 };
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    struct nvme_sqe sqe = fake_admin(ADMIN_KEEP_ALIVE, 0, 0, 0);
    const uint8_t zeroes[BLOCK] = {0};

    w->hosts = 1;
    for (unsigned int i = 0; i < OPENED; i++) {
        (void)world_connect(w);
        if (i % 128 == 127) {
            assert_int_equal(exec_command(w, &host.admin, sqe).status, 0);
        }
    }
    assert_int_equal(nvme_tcp_usage(w->tcp).qpairs, NVME_TCP_OPEN_MAX);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_REFUSED), OPENED - KEPT);
    assert_int_equal(nvme_tcp_counter(w->tcp, NVME_TCP_DISPLACED), 0);
    w->hosts = 2;
    host = connect_host(w, 0, true);
    check_read(w, &host.io, 0, zeroes, 1, 1);
}

/* Digests of one turn of the main loop are bounded, and each queue has its
 * turn. */
static void test_a_turn_has_a_budget_of_bytes(void **state)
{
    enum { HOSTS = 16, READS = 4, BLOCKS = 128 };
    static uint8_t data[BLOCKS * BLOCK];
    struct world *w = *state;
    struct host hosts[HOSTS];

    if (world_follows) {
        skip(); /* the socket computes them */
    }
    for (unsigned int i = 0; i < HOSTS; i++) {
        hosts[i] = connect_host(w, DATA_DIGEST, true);
    }
    w->fake->hold_media = true;
    for (uint16_t n = 0; n < HOSTS * READS; n++) {
        struct nvme_sqe sqe = make_rw(NVM_READ, 0, BLOCKS, n);

        send_command(w, &hosts[n % HOSTS].io, &sqe, sizeof(data));
    }
    world_run(w, 100000);
    w->turn_most = 0;
    w->fake->hold_media = false;
    for (unsigned int n = 0; n < HOSTS * READS; n++) {
        (void)take_pdu(w, &hosts[n % HOSTS].io);
        assert_int_equal(take_response(w, &hosts[n % HOSTS].io).status, 0);
    }
    assert_in_range(w->turn_most, NVME_TCP_TURN_BYTES / 2,
                    NVME_TCP_TURN_BYTES + 2 * BLOCKS * BLOCK);
}

/* Until Connect is answered, a queue has one entry: so no second Connect can
 * come while the first one waits for its data, and say something else. */
static void test_a_second_connect_waits_for_the_first(void **state)
{
    struct world *w = *state;
    struct nvme_sqe first = connect_sqe(0, NVMF_ADMIN_DEPTH, true);
    struct nvme_sqe second = connect_sqe(1, DEPTH, false);
    struct link link = open_link(w, 0);

    send_command(w, &link, &first, CONNECT_DATA_LEN);
    (void)take_r2t(w, &link);
    send_command(w, &link, &second, CONNECT_DATA_LEN);
    check_term(w, &link, PDU_FES_SEQUENCE, 0);
}

/* 8 KiB in an admin capsule need two slots. */
static void test_admin_capsules_carry_8_kib(void **state)
{
    static uint8_t data[8192];
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    struct nvme_sqe sqe = fake_admin(ADMIN_SET_FEATURES, 0, 0x0e, 0);

    /* Timestamp wants 8 bytes: more than that is refused by the target. */
    for (unsigned int i = 0; i < 2 * NVME_TCP_SLOTS; i++) {
        send_capsule(w, &host.admin, &sqe, data, sizeof(data));
        assert_int_equal(take_response(w, &host.admin).status & 0x7ff,
                         NVME_SC_SGL_INVALID_LENGTH);
    }
    send_capsule(w, &host.admin, &sqe, data, 8);
    assert_int_equal(take_response(w, &host.admin).status, 0);
}

/* So do those of Fabrics commands on an I/O queue, but no other ones. */
static void test_fabrics_capsules_carry_8_kib_on_every_queue(void **state)
{
    static uint8_t data[8192];
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    struct nvme_sqe sqe = {.opcode = NVME_FABRICS,
                           .fctype = FABRICS_AUTH_SEND,
                           .cid = 3,
                           .cdw11 = 5000};
    struct nvme_cqe cqe;

    send_capsule(w, &host.io, &sqe, data, 5000);
    cqe = take_response(w, &host.io);
    assert_int_equal(cqe.cid, 3);
    sqe = make_rw(NVM_WRITE, 0, 16, 4);
    send_capsule(w, &host.io, &sqe, data, sizeof(data));
    check_term(w, &host.io, PDU_FES_HEADER_FIELD, PDU_PLEN);
}

/* Compare and Write as one, with data in the capsules and with R2T. */
static void test_fused_commands(void **state)
{
    struct world *w = *state;
    struct host host = connect_host(w, 0, true);
    uint8_t zero[BLOCK] = {0}, data[BLOCK];

    fill_data(data, BLOCK, 4);
    for (unsigned int i = 0; i < 2; i++) {
        struct nvme_sqe first = make_rw(NVM_COMPARE, i, 1, 1);
        struct nvme_sqe second = make_rw(NVM_WRITE, i, 1, 2);

        first.fuse = SQE_FUSE_FIRST;
        second.fuse = SQE_FUSE_SECOND;
        if (i == 0) {
            send_capsule(w, &host.io, &first, zero, BLOCK);
            send_capsule(w, &host.io, &second, data, BLOCK);
        } else {
            send_command(w, &host.io, &first, BLOCK);
            send_command(w, &host.io, &second, BLOCK);
            (void)answer_r2ts(w, &host.io, zero, BLOCK);
            (void)answer_r2ts(w, &host.io, data, BLOCK);
        }
        assert_int_equal(take_response(w, &host.io).status, 0);
        assert_int_equal(take_response(w, &host.io).status, 0);
        check_read(w, &host.io, i, data, 1, 3);
    }
}
