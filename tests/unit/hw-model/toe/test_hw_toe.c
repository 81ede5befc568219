/* SPDX-License-Identifier: BSD-2-Clause */
/* The TCP offload engine's answers to firmware: docs/hardware/toe.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hw-model/toe/hw_toe_internal.h"
#include "lib/crc32c.h"
#include "net/wire/ipv4.h"
#include "tests/test_fixture.h"
#include "tests/unit/hw-model/test_env.h"

enum {
    DRAM_BYTES = 1 << 20,
    PAGE = 0x0,
    CMDS = 0x1000,
    MANY_CMDS = 0x4000, /* a larger ring */
    MANY_LOG2 = 8,
    CQES = 0x2000,
    BUFFER = 0x40000, /* bytes to send, or a place for bytes that come */
    RING = 0x10000,   /* the receive ring, 4096 bytes if nothing else is said */
    JUMBO = 9000 - IPV4_LEN - TCP_LEN, /* bytes of a segment at MTU 9000 */
    CMD_LOG2 = 4,
    CQ_LOG2 = 2,
    OWN = 0x0a000001,
    PEER = 0x0a000002,
};

struct bed {
    struct hw_toe toe;
    struct test_env env;
    uint8_t *dram;
    void *memory;
    uint32_t cmds, cmd_log2; /* the ring of commands */
    uint32_t cmd_pi, cq_ci;
    uint8_t last_head[FRAME_HEAD_MAX];
    unsigned int sent;
    unsigned int resets; /* of these, segments with RST */
    unsigned int room;   /* segments until the link is blocked */
    uint8_t last_flags;  /* of the last segment sent */
    uint32_t last_seq;
    uint8_t last_bytes[64]; /* the first ones of the last segment's data */
    uint32_t peer_ack;      /* of what connect_for_pdus() has connected */
    uint16_t peer_port;
    uint32_t peer_mac; /* added to the last bytes of its MAC */
    uint8_t port;
    struct pair {
        uint32_t offered, takes;      /* bytes of the last offer; at most */
        uint32_t asked, acked;        /* bytes fetched, acknowledged */
        uint64_t offset;              /* of the last bytes that were fetched */
        unsigned int finished, ended; /* calls */
        enum rdma_stream_end end;
        bool has_lost;
    } pair; /* queue pair 9 of RDMA over TCP */
};

enum { PAIR_SLOT = 9 };

static uint32_t pair_receive(void *ctx, uint32_t slot,
                             const struct rdma_stream_piece *pieces,
                             unsigned int count)
{
    struct pair *pair = ctx;
    uint32_t taken;

    assert_int_equal(slot, PAIR_SLOT);
    pair->offered = 0;
    for (unsigned int i = 0; i < count; i++) {
        assert_true(pieces[i].len_bytes != 0 && pieces[i].data[0] == 'x');
        pair->offered += pieces[i].len_bytes;
    }
    taken = MIN(pair->takes, pair->offered);
    pair->takes -= taken;
    return taken;
}

static unsigned int pair_fetch(void *ctx, uint32_t slot, uint64_t offset,
                               uint32_t len, struct rdma_stream_piece *pieces)
{
    static const uint8_t bytes[2000] = "the bytes of the queue pair";
    struct pair *pair = ctx;

    assert_int_equal(slot, PAIR_SLOT);
    if (pair->has_lost) {
        return 0;
    }
    pair->asked += len;
    pair->offset = offset;
    pieces[0] = (struct rdma_stream_piece){bytes, 1};
    pieces[1] = (struct rdma_stream_piece){bytes + 1, len - 1};
    return len > 1 ? 2 : 1;
}

static void pair_acked(void *ctx, uint32_t slot, uint32_t len)
{
    assert_int_equal(slot, PAIR_SLOT);
    ((struct pair *)ctx)->acked += len;
}

static void pair_finished(void *ctx, uint32_t slot)
{
    assert_int_equal(slot, PAIR_SLOT);
    ((struct pair *)ctx)->finished++;
}

static void pair_ended(void *ctx, uint32_t slot, enum rdma_stream_end end)
{
    assert_int_equal(slot, PAIR_SLOT);
    ((struct pair *)ctx)->ended++;
    ((struct pair *)ctx)->end = end;
}

static void note_bytes(struct bed *bed, const struct frame_tx *frame)
{
    size_t have = 0;

    for (unsigned int i = 0; i < frame->num_pieces; i++) {
        size_t len =
            MIN(sizeof(bed->last_bytes) - have, frame->pieces[i].len_bytes);

        memcpy(bed->last_bytes + have, frame->pieces[i].data, len);
        have += len;
    }
}

static unsigned int take_frames(void *ctx, const struct frame_tx *burst,
                                unsigned int count)
{
    struct bed *bed = ctx;
    const uint8_t *tcp = burst[count - 1].head + ETH_LEN + IPV4_LEN;

    assert_int_equal(count, 1);
    if (bed->room == 0) {
        return 0;
    }
    bed->room--;
    memcpy(bed->last_head, burst->head, sizeof(bed->last_head));
    bed->sent += count;
    bed->resets += (tcp[13] & TCP_RST) != 0;
    bed->last_seq = get_be32(tcp + 4);
    bed->last_flags = tcp[13];
    note_bytes(bed, burst);
    return count;
}

static uint8_t *dram_at(struct bed *bed, uint32_t offset)
{
    return bed->dram + offset;
}

static void engine_run(struct bed *bed)
{
    for (int i = 0; i < 10 && bed->env.deferred; i++) {
        bed->env.deferred = false;
        hw_toe_run(&bed->toe);
    }
}

static uint8_t *command_begin(struct bed *bed, enum toe_opcode opcode,
                              uint32_t tid)
{
    uint8_t *cmd = dram_at(bed, bed->cmds) +
                   (size_t)(bed->cmd_pi % (1u << bed->cmd_log2)) * TOE_CMD_LEN;

    memset(cmd, 0, TOE_CMD_LEN);
    cmd[TOE_CMD_OPCODE] = (uint8_t)opcode;
    put_le32(cmd + TOE_CMD_TID, tid);
    return cmd;
}

static enum toe_status command_post(struct bed *bed, const uint8_t *cmd)
{
    put_le32(dram_at(bed, PAGE + QUEUE_PAGE_CMD_PI), ++bed->cmd_pi);
    assert_true(hw_toe_write(&bed->toe, A_QUEUE_KICK, 1));
    engine_run(bed);
    return (enum toe_status)cmd[TOE_CMD_STATUS];
}

static enum toe_status run_plain(struct bed *bed, enum toe_opcode opcode,
                                 uint32_t tid)
{
    return command_post(bed, command_begin(bed, opcode, tid));
}

static enum toe_status run_memory(struct bed *bed, enum toe_opcode opcode,
                                  uint32_t tid, uint64_t addr, uint32_t len)
{
    uint8_t *cmd = command_begin(bed, opcode, tid);

    put_le64(cmd + TOE_CMD_ADDR, addr);
    put_le32(cmd + TOE_CMD_LENGTH, len);
    return command_post(bed, cmd);
}

static enum toe_status run_listen(struct bed *bed, enum toe_opcode opcode,
                                  uint16_t port)
{
    uint8_t *cmd = command_begin(bed, opcode, 0);

    put_le16(cmd + TOE_CMD_PORT, port);
    return command_post(bed, cmd);
}

static enum toe_status run_laddr(struct bed *bed, uint32_t index, uint8_t port,
                                 uint32_t ip)
{
    uint8_t *cmd = command_begin(bed, TOE_CMD_LADDR_SET, index);
    struct ip_addr addr = ip_addr_from_v4(ip);

    cmd[TOE_LADDR_PORT] = port;
    put_le16(cmd + TOE_LADDR_VLAN, 0xffff);
    memcpy(cmd + TOE_LADDR_IP, addr.bytes, sizeof(addr.bytes));
    return command_post(bed, cmd);
}

/* @return the kind of the next entry, or 0 */
static uint8_t take_entry(struct bed *bed, uint32_t *tid, uint32_t *value)
{
    const uint8_t *cqe = dram_at(bed, CQES) +
                         (size_t)(bed->cq_ci % (1 << CQ_LOG2)) * QUEUE_CQE_LEN;
    uint8_t lap = (bed->cq_ci & 1 << CQ_LOG2) == 0;

    if ((cqe[QUEUE_CQE_FLAGS] & QUEUE_CQE_PHASE) != lap) {
        return 0;
    }
    *tid = get_le32(cqe + TOE_CQE_TID);
    *value = get_le32(cqe + TOE_CQE_VALUE);
    put_le32(dram_at(bed, PAGE + QUEUE_PAGE_CQ_CI), ++bed->cq_ci);
    return cqe[TOE_CQE_KIND];
}

/* @return the status of the entry that was taken last */
static uint8_t last_status(struct bed *bed)
{
    return *(dram_at(bed, CQES) +
             (size_t)((bed->cq_ci - 1) % (1 << CQ_LOG2)) * QUEUE_CQE_LEN +
             QUEUE_CQE_STATUS);
}

enum { SEGMENT_ROOM = ETH_LEN + 9000 };

/* Make a segment from the peer, with a payload of 'x'.  @return its frame */
static struct frame_rx segment_make(const struct bed *bed, uint8_t *data,
                                    uint16_t port, uint8_t flags, uint32_t seq,
                                    uint32_t ack, uint32_t len)
{
    static const uint8_t eth[ETH_LEN] = {0x02, 0, 0, 0, 0, 1, 0x02,
                                         0,    0, 0, 0, 2, 8, 0};
    const struct tcp_header header = {.src_port = bed->peer_port,
                                      .dst_port = port,
                                      .seq = seq,
                                      .ack = ack,
                                      .window = 1000,
                                      .flags = flags};
    const struct ipv4 ip = {.src = ip_addr_from_v4(PEER),
                            .dst = ip_addr_from_v4(OWN),
                            .total_len_bytes =
                                (uint16_t)(IPV4_LEN + TCP_LEN + len),
                            .ttl = 64,
                            .protocol = IP_PROTOCOL_TCP};
    uint8_t *tcp = data + ETH_LEN + IPV4_LEN;

    memcpy(data, eth, ETH_LEN);
    put_be32(data + 8, 2 + bed->peer_mac);
    ipv4_emit(&ip, data + ETH_LEN);
    (void)tcp_header_emit(&header, tcp);
    memset(tcp + TCP_LEN, 'x', len);
    put_be16(tcp + 16, 0);
    put_be16(tcp + 16, tcp_checksum(&ip.src, &ip.dst, tcp, TCP_LEN + len));
    return (struct frame_rx){.data = data,
                             .len_bytes = ETH_LEN + IPV4_LEN + TCP_LEN + len};
}

static void segment_receive(struct bed *bed, uint16_t port, uint8_t flags,
                            uint32_t seq, uint32_t ack, uint32_t len)
{
    uint8_t data[SEGMENT_ROOM];
    const struct frame_rx frame =
        segment_make(bed, data, port, flags, seq, ack, len);

    hw_toe_rx(&bed->toe, bed->port, &frame, 1);
    engine_run(bed);
}

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    struct hw_toe_config config = {0};

    assert_non_null(bed);
    bed->dram = calloc(1, DRAM_BYTES);
    bed->memory = aligned_alloc(16, hw_toe_memory_bytes());
    config.env = test_env_init(&bed->env, bed->dram, DRAM_BYTES);
    config.memory = bed->memory;
    config.aead = &record_gcm;
    config.ports[0] = (struct frame_sink){.ctx = bed, .send = take_frames};
    config.rdma = (struct rdma_stream_user){.ctx = &bed->pair,
                                            .receive = pair_receive,
                                            .fetch = pair_fetch,
                                            .acked = pair_acked,
                                            .finished = pair_finished,
                                            .ended = pair_ended};
    bed->env.now_ns = 1000000000;
    bed->room = UINT32_MAX;
    bed->cmds = CMDS;
    bed->cmd_log2 = CMD_LOG2;
    bed->peer_port = 5000;
    hw_toe_init(&bed->toe, &config);
    (void)hw_toe_write(&bed->toe, A_QUEUE_PAGE_LO, TEST_DRAM_BASE + PAGE);
    (void)hw_toe_write(&bed->toe, A_QUEUE_CMD_LO, TEST_DRAM_BASE + CMDS);
    (void)hw_toe_write(&bed->toe, A_QUEUE_CQ_LO, TEST_DRAM_BASE + CQES);
    (void)hw_toe_write(&bed->toe, A_QUEUE_SIZES, CMD_LOG2 | CQ_LOG2 << 8);
    (void)hw_toe_write(&bed->toe, A_QUEUE_ENABLE, 1);
    (void)hw_toe_write(&bed->toe, A_TOE_CONFIG, 1500 | 12 << 16);
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;

    free(bed->memory);
    free(bed->dram);
    free(bed);
    return 0;
}

static void engine_start(struct bed *bed)
{
    (void)hw_toe_write(&bed->toe, A_TOE_CTRL, 1);
    assert_int_equal(run_laddr(bed, 0, 0, OWN), TOE_OK);
    assert_int_equal(run_listen(bed, TOE_CMD_LISTEN, 7), TOE_OK);
}

/* @return the TID of an established connection */
static uint32_t connect_peer(struct bed *bed)
{
    uint32_t tid, value, other;
    unsigned int sent = bed->sent;

    segment_receive(bed, 7, TCP_SYN, 100, 0, 0);
    assert_int_equal(take_entry(bed, &tid, &value), TOE_KIND_ASKED);
    assert_int_equal(bed->sent, sent);
    assert_int_equal(
        run_memory(bed, TOE_CMD_ACCEPT, tid, TEST_DRAM_BASE + RING, 0), TOE_OK);
    assert_int_equal(bed->last_flags, TCP_SYN | TCP_ACK);
    segment_receive(bed, 7, TCP_ACK, 101, bed->last_seq + 1, 0);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ESTABLISHED);
    assert_int_equal(other, tid);
    return tid;
}

static void test_toe_refuses_commands_that_make_no_sense(void **state)
{
    struct bed *bed = *state;
    uint32_t tid;

    assert_int_equal(run_listen(bed, TOE_CMD_LISTEN, 7), TOE_BAD_STATE);
    engine_start(bed);
    assert_int_equal(run_plain(bed, (enum toe_opcode)200, 0), TOE_BAD_OPCODE);
    assert_int_equal(run_listen(bed, TOE_CMD_LISTEN, 7), TOE_BAD_ARGUMENT);
    assert_int_equal(run_listen(bed, TOE_CMD_LISTEN, 0), TOE_BAD_ARGUMENT);
    assert_int_equal(run_listen(bed, TOE_CMD_UNLISTEN, 8), TOE_BAD_ARGUMENT);
    assert_int_equal(run_laddr(bed, TOE_LADDRS, 0, OWN), TOE_BAD_TID);
    assert_int_equal(run_laddr(bed, 1, 2, OWN), TOE_BAD_ARGUMENT);
    assert_int_equal(run_laddr(bed, 1, 0, 0xe0000001), TOE_BAD_ARGUMENT);
    for (enum toe_opcode op = TOE_CMD_ACCEPT; op <= TOE_CMD_QUERY; op++) {
        assert_int_equal(run_plain(bed, op, 0x00010000), TOE_BAD_TID);
        assert_int_equal(run_plain(bed, op, 0xffffffff), TOE_BAD_TID);
    }
    tid = connect_peer(bed);
    assert_int_equal(run_memory(bed, TOE_CMD_SEND, tid, 0, 1), TOE_BAD_ADDRESS);
    assert_int_equal(
        run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE + DRAM_BYTES - 1, 2),
        TOE_BAD_ADDRESS);
    assert_int_equal(run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE, 0),
                     TOE_BAD_ARGUMENT);
    assert_int_equal(
        run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE, TOE_SEND_MAX + 1),
        TOE_BAD_ARGUMENT);
    assert_int_equal(run_memory(bed, TOE_CMD_CREDIT, tid, 0, 1),
                     TOE_BAD_ARGUMENT);
    assert_int_equal(run_plain(bed, TOE_CMD_RELEASE, tid), TOE_BAD_STATE);
    assert_int_equal(run_plain(bed, TOE_CMD_REJECT, tid), TOE_BAD_STATE);
    assert_int_equal(run_memory(bed, TOE_CMD_QUERY, tid, 8, 0),
                     TOE_BAD_ADDRESS);
    assert_int_equal(
        FIELD_GET(hw_toe_read(&bed->toe, A_TOE_REFUSED), TOE_REFUSED, OPCODE),
        TOE_CMD_QUERY);
}

static void test_toe_puts_bytes_into_the_ring_and_completes_once(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value;
    uint32_t ack;

    engine_start(bed);
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    segment_receive(bed, 7, TCP_ACK, 101, ack, 100);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(value, 100);
    assert_memory_equal(dram_at(bed, RING), "xxxxxxxx", 8);
    assert_int_equal(run_memory(bed, TOE_CMD_CREDIT, tid, 0, 100), TOE_OK);
    assert_int_equal(
        run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE + RING, 100), TOE_OK);
    assert_int_equal(take_entry(bed, &other, &value), 0);
    segment_receive(bed, 7, TCP_ACK, 201, ack + 100, 0);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_SENT);
    assert_int_equal(value, 100);
    assert_int_equal(run_plain(bed, TOE_CMD_ABORT, tid), TOE_OK);
    assert_int_equal(run_plain(bed, TOE_CMD_RELEASE, tid), TOE_OK);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ABORTED);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(value, TOE_END_ABORTED);
    assert_int_equal(take_entry(bed, &other, &value), 0);
    assert_int_equal(run_plain(bed, TOE_CMD_ABORT, tid), TOE_BAD_TID);
}

/* A SEND of pieces of 4 bytes each, the first one at BUFFER; `length_of_last`
 * instead of that of the last one. */
static enum toe_status run_send_pieces(struct bed *bed, uint32_t tid,
                                       uint8_t more, uint64_t last_addr,
                                       uint32_t last_len)
{
    uint8_t *cmd = command_begin(bed, TOE_CMD_SEND, tid);

    cmd[TOE_SEND_MORE] = more;
    for (uint8_t i = 0; i <= MIN(more, TOE_PIECES_MAX - 1); i++) {
        uint8_t *piece = cmd + TOE_PLACE_PIECE + i * (size_t)TOE_PIECE_LEN;
        bool is_last = i == more;

        put_le64(piece + TOE_PIECE_ADDR,
                 is_last ? last_addr : TEST_DRAM_BASE + BUFFER + 100u * i);
        put_le32(piece + TOE_PIECE_LENGTH, is_last ? last_len : 4);
    }
    return command_post(bed, cmd);
}

static void test_toe_sends_pieces_as_one(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value, ack;
    uint32_t sent;

    engine_start(bed);
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    memcpy(dram_at(bed, BUFFER), "head", 4);
    memcpy(dram_at(bed, BUFFER + 100), "data", 4);
    memcpy(dram_at(bed, BUFFER + 200), "end", 3);
    sent = bed->sent;
    assert_int_equal(
        run_send_pieces(bed, tid, 2, TEST_DRAM_BASE + BUFFER + 200, 3), TOE_OK);
    assert_int_equal(bed->sent, sent + 1);
    assert_memory_equal(bed->last_bytes, "headdataend", 11);
    /* The first pieces are acknowledged, but not all. */
    segment_receive(bed, 7, TCP_ACK, 101, ack + 9, 0);
    assert_int_equal(take_entry(bed, &other, &value), 0);
    segment_receive(bed, 7, TCP_ACK, 101, ack + 11, 0);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_SENT);
    assert_int_equal(value, 11);
    assert_int_equal(take_entry(bed, &other, &value), 0);
}

static void test_toe_retransmits_from_the_middle_of_a_piece(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, ack;

    engine_start(bed);
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    memcpy(dram_at(bed, BUFFER), "head", 4);
    memcpy(dram_at(bed, BUFFER + 100), "data", 4);
    memcpy(dram_at(bed, BUFFER + 200), "end", 3);
    assert_int_equal(
        run_send_pieces(bed, tid, 2, TEST_DRAM_BASE + BUFFER + 200, 3), TOE_OK);
    segment_receive(bed, 7, TCP_ACK, 101, ack + 6, 0);
    bed->env.now_ns += UINT64_C(4000000000);
    hw_toe_timer(&bed->toe);
    engine_run(bed);
    assert_int_equal(bed->last_seq, ack + 6);
    assert_memory_equal(bed->last_bytes, "taend", 5);
}

static void test_toe_refuses_wrong_pieces(void **state)
{
    const uint64_t place = TEST_DRAM_BASE + BUFFER;
    struct bed *bed = *state;
    uint32_t tid, sent;

    engine_start(bed);
    tid = connect_peer(bed);
    sent = bed->sent;
    assert_int_equal(run_send_pieces(bed, tid, 3, place, 4), TOE_BAD_ARGUMENT);
    assert_int_equal(run_send_pieces(bed, tid, 255, place, 4),
                     TOE_BAD_ARGUMENT);
    for (uint8_t more = 1; more < TOE_PIECES_MAX; more++) {
        assert_int_equal(run_send_pieces(bed, tid, more, place, 0),
                         TOE_BAD_ARGUMENT);
        assert_int_equal(run_send_pieces(bed, tid, more, 0, 4),
                         TOE_BAD_ADDRESS);
        assert_int_equal(
            run_send_pieces(bed, tid, more, TEST_DRAM_BASE + DRAM_BYTES - 1, 2),
            TOE_BAD_ADDRESS);
        /* All pieces together are too long, or their sum does not fit. */
        assert_int_equal(run_send_pieces(bed, tid, more, place,
                                         TOE_SEND_MAX - 4u * more + 1),
                         TOE_BAD_ARGUMENT);
        assert_int_equal(run_send_pieces(bed, tid, more, place, UINT32_MAX),
                         TOE_BAD_ARGUMENT);
    }
    assert_int_equal(bed->sent, sent);
}

/* Bytes that follow a gap are kept, as many as the window allows: when the gap
 * is filled, all of them are there. */
static void test_toe_keeps_a_window_of_early_bytes(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value, ack;

    (void)hw_toe_write(&bed->toe, A_TOE_CONFIG, 9000 | 16 << 16);
    engine_start(bed);
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    for (uint32_t i = 1; i < 7; i++) {
        segment_receive(bed, 7, TCP_ACK, 101 + JUMBO * i, ack, JUMBO);
    }
    assert_int_equal(take_entry(bed, &other, &value), 0);
    segment_receive(bed, 7, TCP_ACK, 101, ack, JUMBO);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(other, tid);
    assert_int_equal(value, 7 * JUMBO);
}

/* The ring has four entries: what comes fifth waits, and is not lost. */
static void test_toe_keeps_entries_that_find_no_room(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value, ack;

    engine_start(bed);
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    for (uint32_t i = 0; i < 6; i++) {
        segment_receive(bed, 7, TCP_ACK, 101 + 10 * i, ack, 10);
    }
    assert_int_equal(run_plain(bed, TOE_CMD_CLOSE, tid), TOE_OK);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
        assert_int_equal(value, 10);
    }
    assert_int_equal(take_entry(bed, &other, &value), 0);
    assert_int_equal(run_plain(bed, TOE_CMD_NOP, 0), TOE_OK); /* a kick */
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(value, 20);
}

static void test_toe_ends_a_connection_whose_ring_has_a_lost_word(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, value;

    engine_start(bed);
    (void)connect_peer(bed);
    bed->env.lost = TEST_DRAM_BASE + RING + 4;
    segment_receive(bed, 7, TCP_ACK, 101, bed->last_seq + 1, 6);
    assert_int_equal(take_entry(bed, &tid, &value), TOE_KIND_ENDED);
    assert_int_equal(value, TOE_END_LOST_WORD);
    assert_true(bed->last_flags & TCP_RST);
}

/* The RST waits for room, and firmware gives back what came before the word,
 * which wraps around in the ring. */
static void test_toe_takes_credit_for_bytes_before_a_lost_word(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value, ack;

    engine_start(bed);
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    for (uint32_t i = 0; i < 4; i++) {
        segment_receive(bed, 7, TCP_ACK, 101 + 1000 * i, ack, 1000);
        assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
        assert_int_equal(run_memory(bed, TOE_CMD_CREDIT, tid, 0, 1000), TOE_OK);
    }
    bed->room = 0;
    bed->env.lost = TEST_DRAM_BASE + RING + 100;
    segment_receive(bed, 7, TCP_ACK, 4101, ack, 200);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(value, 96);
    assert_int_equal(run_memory(bed, TOE_CMD_CREDIT, tid, 0, 96), TOE_OK);
    bed->room = UINT32_MAX;
    hw_toe_port_ready(&bed->toe, 0);
    engine_run(bed);
    assert_true(bed->last_flags & TCP_RST);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(value, TOE_END_LOST_WORD);
}

/* A command that is lost may have been a SEND: what is behind it does not take
 * the place of its bytes in the stream, also if the RST finds no room at first
 * and time stands still. */
static void test_toe_sends_nothing_behind_a_lost_command(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value;

    engine_start(bed);
    tid = connect_peer(bed);
    for (unsigned int has_room = 0; has_room < 2; has_room++) {
        uint32_t slot = bed->cmd_pi % (1u << CMD_LOG2);
        unsigned int sent = bed->sent;

        bed->room = has_room != 0 ? UINT32_MAX : 0;
        (void)command_begin(bed, TOE_CMD_SEND, tid);
        bed->env.lost = TEST_DRAM_BASE + CMDS + slot * TOE_CMD_LEN + 16;
        bed->cmd_pi++; /* published with the next one */
        assert_int_equal(
            run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE + BUFFER, 10),
            TOE_OK);
        bed->env.lost = 0;
        bed->room = UINT32_MAX;
        hw_toe_port_ready(&bed->toe, 0);
        engine_run(bed);
        assert_int_equal(bed->sent, sent + 1);
        assert_true(bed->last_flags & TCP_RST);
        assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_SENT);
        assert_int_equal(last_status(bed), TOE_LOST_WORD);
        assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
        assert_int_equal(value, TOE_END_LOST_WORD);
        assert_int_equal(run_plain(bed, TOE_CMD_RELEASE, tid), TOE_OK);
        bed->peer_port++;
        tid = connect_peer(bed);
    }
    assert_int_equal(
        hw_toe_read(&bed->toe, TOE_COUNTER_BASE + 8 * TOE_COUNT_LOST_WORDS), 2);
}

/* RFC 9293 3.10.7.4: a RST flushes the segments before it.  Firmware executes
 * nothing that it has not been told of when the connection has ended. */
static void test_toe_reports_nothing_that_a_rst_has_flushed(void **state)
{
    static uint8_t data[2][SEGMENT_ROOM];
    struct bed *bed = *state;
    struct frame_rx frames[2];
    uint32_t tid, value;

    engine_start(bed);
    (void)connect_peer(bed);
    segment_receive(bed, 7, TCP_ACK, 101, bed->last_seq + 1, 6);
    assert_int_equal(take_entry(bed, &tid, &value), TOE_KIND_DATA);
    assert_int_equal(value, 6);
    frames[0] =
        segment_make(bed, data[0], 7, TCP_ACK, 107, bed->last_seq + 1, 6);
    frames[1] = segment_make(bed, data[1], 7, TCP_RST, 113, 0, 0);
    hw_toe_rx(&bed->toe, bed->port, frames, 2);
    engine_run(bed);
    assert_int_equal(take_entry(bed, &tid, &value), TOE_KIND_ENDED);
    assert_int_equal(value, TOE_END_RESET);
}

/* The FIN may come in the segment whose bytes were lost: the peer gets a RST,
 * and no ACK of either, also if this side has closed before. */
static void test_toe_takes_no_fin_after_a_lost_word(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value, ack;
    unsigned int sent;

    engine_start(bed);
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    assert_int_equal(run_plain(bed, TOE_CMD_CLOSE, tid), TOE_OK);
    segment_receive(bed, 7, TCP_ACK, 101, ack + 1, 0); /* FIN-WAIT-2 */
    bed->env.lost = TEST_DRAM_BASE + RING + 4;
    sent = bed->sent;
    segment_receive(bed, 7, TCP_ACK | TCP_FIN, 101, ack + 1, 6);
    assert_int_equal(bed->sent, sent + 1);
    assert_true(bed->last_flags & TCP_RST);
    assert_int_equal(get_be32(bed->last_head + ETH_LEN + IPV4_LEN + 8), 101);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_CLOSED);
    assert_int_equal(last_status(bed), TOE_ENDED);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(value, TOE_END_LOST_WORD);
}

static void test_toe_loaded_ends_its_connections_and_listens(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value;

    engine_start(bed);
    tid = connect_peer(bed);
    assert_true(hw_toe_state_loaded(&bed->toe));
    engine_run(bed);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(other, tid);
    assert_int_equal(value, TOE_END_STOPPED);
    segment_receive(bed, 7, TCP_ACK, 101, bed->last_seq + 1, 6);
    assert_true(bed->last_flags & TCP_RST);
    segment_receive(bed, 7, TCP_SYN, 900, 0, 0);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ASKED);
    assert_int_not_equal(other, tid);
    bed->toe.state.conns[3].send_count = HW_TOE_SENDS + 1;
    assert_false(hw_toe_state_loaded(&bed->toe));
}

/* ---- RSTs of ABORT and REJECT. */

enum { MANY = 100 };

/* Put an ABORT into the ring; command_post() of another command kicks. */
static void abort_many(struct bed *bed, const uint32_t *tids)
{
    for (unsigned int i = 0; i < MANY; i++) {
        (void)command_begin(bed, TOE_CMD_ABORT, tids[i]);
        put_le32(dram_at(bed, PAGE + QUEUE_PAGE_CMD_PI), ++bed->cmd_pi);
    }
}

static void connect_many(struct bed *bed, uint32_t *tids)
{
    (void)hw_toe_write(&bed->toe, A_QUEUE_ENABLE, 0);
    (void)hw_toe_write(&bed->toe, A_QUEUE_CMD_LO, TEST_DRAM_BASE + MANY_CMDS);
    (void)hw_toe_write(&bed->toe, A_QUEUE_SIZES, MANY_LOG2 | CQ_LOG2 << 8);
    (void)hw_toe_write(&bed->toe, A_QUEUE_ENABLE, 1);
    bed->cmds = MANY_CMDS;
    bed->cmd_log2 = MANY_LOG2;
    engine_start(bed);
    for (unsigned int i = 0; i < MANY; i++) {
        tids[i] = connect_peer(bed);
        bed->peer_port++;
    }
    bed->resets = 0;
}

/* @return how many connections the engine reports as ended, each after the
 * completion of its ABORT */
static unsigned int take_ends(struct bed *bed)
{
    unsigned int ends = 0;
    uint32_t tid, value;
    uint8_t kind;

    while ((kind = take_entry(bed, &tid, &value)) != 0) {
        ends += kind == TOE_KIND_ENDED;
        assert_true(kind == TOE_KIND_ENDED || kind == TOE_KIND_ABORTED);
        (void)hw_toe_write(&bed->toe, A_QUEUE_KICK, 1); /* the ring was full */
        engine_run(bed);
    }
    return ends;
}

/* The engine has places for 64 RSTs that wait. */
static void test_toe_sends_the_rst_of_each_of_many_aborts(void **state)
{
    struct bed *bed = *state;
    uint32_t tids[MANY];

    connect_many(bed, tids);
    abort_many(bed, tids);
    assert_int_equal(run_plain(bed, TOE_CMD_NOP, 0), TOE_OK);
    assert_int_equal(take_ends(bed), MANY);
    assert_int_equal(bed->resets, MANY);
}

/* Once the end is reported, firmware may switch the engine off: until then, the
 * RST has left.  Commands go on while the link is blocked. */
static void test_toe_reports_an_abort_after_its_rst_has_left(void **state)
{
    struct bed *bed = *state;
    uint32_t tids[MANY];
    unsigned int ends = 0;

    connect_many(bed, tids);
    bed->room = 0;
    abort_many(bed, tids);
    assert_int_equal(run_plain(bed, TOE_CMD_NOP, 0), TOE_OK);
    for (unsigned int i = 0; i < MANY; i++) {
        ends += take_ends(bed);
        assert_true(ends <= i);
        bed->room = 1;
        hw_toe_port_ready(&bed->toe, 0);
        engine_run(bed);
        assert_int_equal(bed->room, 0);
        assert_int_equal(bed->resets, i + 1);
    }
    ends += take_ends(bed);
    assert_int_equal(ends, MANY);
    assert_int_equal(bed->resets, MANY);
}

/* RSTs to segments of no connection may have taken all places. */
static void test_toe_sends_the_rst_of_an_abort_after_a_flood(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value;

    engine_start(bed);
    tid = connect_peer(bed);
    bed->room = 0;
    bed->resets = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        segment_receive(bed, 8, TCP_SYN, 100 + i, 0, 0);
    }
    assert_int_equal(run_plain(bed, TOE_CMD_ABORT, tid), TOE_OK);
    assert_int_equal(take_entry(bed, &other, &value), 0);
    bed->room = UINT32_MAX;
    hw_toe_port_ready(&bed->toe, 0);
    engine_run(bed);
    assert_in_range(bed->resets, 2, 32 + 1); /* and that of the ABORT */
    assert_int_equal(get_be16(bed->last_head + ETH_LEN + IPV4_LEN), 7);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ABORTED);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
}

/* The peer chooses when its link takes frames: it does not choose how long a
 * connection takes a place.  The completion says that no RST has left. */
static void test_toe_ends_an_abort_although_the_link_stays_full(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value;

    engine_start(bed);
    tid = connect_peer(bed);
    bed->resets = 0;
    bed->room = 0;
    segment_receive(bed, 8, TCP_SYN, 100, 0, 0); /* its RST blocks the link */
    assert_int_equal(run_plain(bed, TOE_CMD_ABORT, tid), TOE_OK);
    for (int i = 0; i < 4; i++) {
        bed->env.now_ns += 500000000;
        hw_toe_port_ready(&bed->toe, 0);
        hw_toe_timer(&bed->toe);
        engine_run(bed);
        assert_int_equal(take_entry(bed, &other, &value), 0);
    }
    assert_in_range(bed->env.deadline_ns, bed->env.now_ns,
                    bed->env.now_ns + 2000000000);
    bed->env.now_ns = bed->env.deadline_ns;
    hw_toe_timer(&bed->toe);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ABORTED);
    assert_int_equal(last_status(bed), TOE_NO_ROOM);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(value, TOE_END_ABORTED);
    assert_int_equal(run_plain(bed, TOE_CMD_RELEASE, tid), TOE_OK);
    bed->room = UINT32_MAX;
    hw_toe_port_ready(&bed->toe, 0);
    engine_run(bed);
    assert_int_equal(bed->resets, 1); /* that of the SYN to nobody */
}

/* Data of others fill the link again and again: a RST that has waited leaves
 * before them. */
static void test_toe_sends_a_rst_that_waits_before_data(void **state)
{
    struct bed *bed = *state;
    uint32_t first, second, other, value;

    engine_start(bed);
    first = connect_peer(bed);
    bed->peer_port++;
    second = connect_peer(bed);
    bed->resets = 0;
    bed->room = 0;
    assert_int_equal(
        run_memory(bed, TOE_CMD_SEND, second, TEST_DRAM_BASE, 10000), TOE_OK);
    assert_int_equal(run_plain(bed, TOE_CMD_ABORT, first), TOE_OK);
    bed->env.now_ns += 1000000;
    bed->room = 1;
    hw_toe_port_ready(&bed->toe, 0);
    engine_run(bed);
    assert_int_equal(bed->resets, 1);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ABORTED);
    assert_int_equal(last_status(bed), TOE_OK);
    assert_int_equal(other, first);
}

/* A word of the ring is lost while the RST of an ABORT waits: both are done
 * when it has left. */
static void test_toe_lost_word_does_not_overtake_the_rst_of_an_abort(
    void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value;

    engine_start(bed);
    tid = connect_peer(bed);
    bed->resets = 0;
    bed->room = 0;
    segment_receive(bed, 8, TCP_SYN, 100, 0, 0);
    assert_int_equal(run_plain(bed, TOE_CMD_ABORT, tid), TOE_OK);
    bed->env.lost = TEST_DRAM_BASE + RING + 4;
    segment_receive(bed, 7, TCP_ACK, 101, bed->last_seq + 1, 6);
    assert_int_equal(take_entry(bed, &other, &value), 0);
    bed->room = UINT32_MAX;
    hw_toe_port_ready(&bed->toe, 0);
    engine_run(bed);
    assert_int_equal(bed->resets, 2);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ABORTED);
    assert_int_equal(last_status(bed), TOE_OK);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(value, TOE_END_LOST_WORD);
}

/* A connection that times out tells its peer, too, before it is reported. */
static void test_toe_reports_a_time_out_after_its_rst_has_left(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value, sends;

    engine_start(bed);
    tid = connect_peer(bed);
    bed->resets = 0;
    assert_int_equal(run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE, 100),
                     TOE_OK);
    for (sends = 0; bed->toe.state.conns[0].state == TOE_SLOT_OPEN; sends++) {
        assert_in_range(sends, 0, 1000);
        bed->env.now_ns = bed->env.deadline_ns;
        if (bed->env.now_ns > UINT64_C(90000000000)) {
            bed->room = 0;
        }
        hw_toe_timer(&bed->toe);
        engine_run(bed);
    }
    assert_int_equal(take_entry(bed, &other, &value), 0);
    bed->room = UINT32_MAX;
    hw_toe_port_ready(&bed->toe, 0);
    engine_run(bed);
    assert_int_equal(bed->resets, 1);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_SENT);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(value, TOE_END_TIMED_OUT);
}

/* What waits for its RST ends at once when the engine is switched off. */
static void test_toe_stopped_reports_aborts_that_wait(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value;

    engine_start(bed);
    tid = connect_peer(bed);
    bed->room = 0;
    segment_receive(bed, 8, TCP_SYN, 100, 0, 0); /* its RST blocks the link */
    assert_int_equal(run_plain(bed, TOE_CMD_ABORT, tid), TOE_OK);
    assert_int_equal(take_entry(bed, &other, &value), 0);
    (void)hw_toe_write(&bed->toe, A_TOE_CTRL, 0);
    engine_run(bed);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ABORTED);
    assert_int_equal(last_status(bed), TOE_NO_ROOM);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(run_plain(bed, TOE_CMD_RELEASE, tid), TOE_OK);
}

/* ---- Loading states that no engine has saved. */

static void load_fails_with(struct bed *bed, const struct hw_toe_state *state)
{
    bed->toe.state = *state;
    assert_false(hw_toe_state_loaded(&bed->toe));
}

static void test_toe_refuses_to_load_listeners_that_cannot_be(void **state)
{
    static struct hw_toe_state saved, other;
    struct bed *bed = *state;

    engine_start(bed);
    saved = other = bed->toe.state;
    assert_int_equal(other.listeners[0], 7);
    other.listeners[5] = 7;
    load_fails_with(bed, &other);
    other = saved;
    other.ctrl = 0; /* an engine that is off does not listen */
    load_fails_with(bed, &other);
    other = saved;
    other.ctrl |= 2;
    load_fails_with(bed, &other);
    bed->toe.state = saved;
    assert_true(hw_toe_state_loaded(&bed->toe));
    assert_int_equal(run_listen(bed, TOE_CMD_UNLISTEN, 7), TOE_OK);
    assert_int_equal(run_listen(bed, TOE_CMD_UNLISTEN, 7), TOE_BAD_ARGUMENT);
}

static void test_toe_refuses_to_load_registers_that_cannot_be(void **state)
{
    static struct hw_toe_state saved, other;
    struct bed *bed = *state;

    engine_start(bed);
    saved = other = bed->toe.state;
    other.irq_status = 4;
    load_fails_with(bed, &other);
    other = saved;
    other.irq_enable = 4;
    load_fails_with(bed, &other);
    other = saved;
    other.conns[9].end = TOE_ENDS;
    load_fails_with(bed, &other);
    other = saved;
    memset(&other.conns[9].has_close, 2, 1);
    load_fails_with(bed, &other);
    other = saved;
    memset(&other.laddrs[1].is_used, 2, 1);
    load_fails_with(bed, &other);
    other = saved;
    memset(&other.paths[1].is_tagged, 2, 1);
    load_fails_with(bed, &other);
}

/* Whatever else a free slot holds, the next connection starts anew. */
static void test_toe_loaded_forgets_what_free_slots_held(void **state)
{
    struct bed *bed = *state;
    struct hw_toe_conn *conn = &bed->toe.state.conns[0];
    uint32_t tid, other, value;

    engine_start(bed);
    conn->generation = 77;
    conn->send_count = HW_TOE_SENDS;
    conn->has_close = conn->is_lost = conn->ended_due = true;
    bed->toe.state.due[0] = 1;
    bed->toe.state.due[5] = UINT64_MAX;
    assert_true(hw_toe_state_loaded(&bed->toe));
    engine_run(bed);
    assert_int_equal(take_entry(bed, &other, &value), 0);
    tid = connect_peer(bed);
    assert_int_equal(tid, 77 << 16);
    assert_int_equal(run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE, 1),
                     TOE_OK);
    assert_int_equal(run_plain(bed, TOE_CMD_CLOSE, tid), TOE_OK);
    assert_int_equal(take_entry(bed, &other, &value), 0);
}

/* The bits that say who has something to report are made anew. */
static void test_toe_loaded_reports_ends_whose_bit_is_missing(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value;

    engine_start(bed);
    tid = connect_peer(bed);
    hw_toe_conn_end(&bed->toe, &bed->toe.state.conns[(uint16_t)tid],
                    TOE_END_RESET);
    memset(bed->toe.state.due, 0, sizeof(bed->toe.state.due));
    assert_true(hw_toe_state_loaded(&bed->toe));
    engine_run(bed);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(other, tid);
    assert_int_equal(value, TOE_END_RESET);
}

/* Connections of others may use all places near the one where a peer's path
 * belongs; another place is always free. */
static void test_toe_remembers_a_path_wherever_there_is_room(void **state)
{
    struct bed *bed = *state;

    engine_start(bed);
    for (unsigned int i = 1; i < HW_TOE_PATHS; i++) {
        bed->toe.state.paths[i] = (struct hw_toe_path){
            .peer = {{0x06, 0, 0, 0, 0, 1}}, .is_used = true, .refs = 1};
    }
    (void)connect_peer(bed);
    assert_int_equal(bed->toe.state.paths[0].refs, 1);
}

/* A machine is saved again before the peers of the first load were asked: the
 * link was not up yet. */
static void test_toe_loaded_twice_asks_the_peers_of_both(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, value;

    engine_start(bed);
    (void)connect_peer(bed);
    bed->room = 0;
    assert_true(hw_toe_state_loaded(&bed->toe));
    engine_run(bed);
    assert_int_equal(take_entry(bed, &tid, &value), TOE_KIND_ENDED);
    assert_int_equal(run_plain(bed, TOE_CMD_RELEASE, tid), TOE_OK);
    assert_true(hw_toe_state_loaded(&bed->toe));
    bed->room = UINT32_MAX;
    bed->sent = 0;
    engine_run(bed);
    assert_int_equal(bed->sent, 1);
    assert_int_equal(bed->last_flags, TCP_ACK);
    bed->toe.state.orphans[0].path = HW_TOE_PATHS;
    assert_false(hw_toe_state_loaded(&bed->toe));
}

/* The RST of a connection that had timed out waited when the machine was
 * saved. */
static void test_toe_loaded_asks_peers_whose_rst_has_waited(void **state)
{
    struct bed *bed = *state;
    uint32_t tid;

    engine_start(bed);
    tid = connect_peer(bed);
    hw_toe_conn_end(&bed->toe, &bed->toe.state.conns[(uint16_t)tid],
                    TOE_END_TIMED_OUT);
    bed->toe.state.conns[(uint16_t)tid].rst_due = true;
    assert_true(hw_toe_state_loaded(&bed->toe));
    bed->sent = 0;
    engine_run(bed);
    assert_int_equal(bed->sent, 1);
}

/* Peers behind a port that is full are asked later; those of the other port are
 * not held up. */
static void test_toe_asks_peers_while_a_port_is_full(void **state)
{
    struct bed *bed = *state;
    struct bed other = {.room = UINT32_MAX};
    uint16_t path;

    hw_toe_attach_port(
        &bed->toe, 1, &(struct frame_sink){.ctx = &other, .send = take_frames});
    engine_start(bed);
    (void)connect_peer(bed);
    path = (uint16_t)((bed->toe.state.conns[0].path + 1) % HW_TOE_PATHS);
    bed->toe.state.paths[path] =
        (struct hw_toe_path){.port = 1, .is_used = true};
    for (unsigned int i = 1; i < 3; i++) {
        bed->toe.state.conns[i] = bed->toe.state.conns[0];
        bed->toe.state.conns[i].remote_port += 1;
        bed->toe.state.conns[i].path = path;
    }
    bed->room = 0;
    assert_true(hw_toe_state_loaded(&bed->toe));
    engine_run(bed);
    assert_int_equal(other.sent, 2);
    for (int i = 0; i < 20; i++) {
        bed->env.now_ns = bed->env.deadline_ns;
        hw_toe_timer(&bed->toe);
    }
    assert_int_equal(other.sent, 10);
    assert_int_equal(bed->toe.state.num_orphans, 1);
    bed->room = UINT32_MAX;
    bed->sent = 0;
    bed->env.now_ns = bed->env.deadline_ns;
    hw_toe_timer(&bed->toe);
    assert_int_equal(bed->sent, 1);
}

/* As many connections as there are, each with a path of its own, were not
 * loaded; their slots hold new ones, again with paths of their own. */
static void test_toe_has_paths_for_orphans_and_connections(void **state)
{
    struct bed *bed = *state;
    struct hw_toe_state *toe = &bed->toe.state;

    engine_start(bed);
    for (uint16_t i = 0; i < HW_TOE_SLOTS; i++) {
        toe->conns[i].state = TOE_SLOT_OPEN;
        toe->conns[i].has_path = true;
        toe->conns[i].path = i;
        toe->paths[i] =
            (struct hw_toe_path){.peer = {{6, 0, 0, 0, 0, 1}}, .is_used = true};
    }
    assert_true(hw_toe_state_loaded(&bed->toe));
    for (uint16_t i = 0; i < HW_TOE_SLOTS; i++) {
        hw_toe_conn_free(&bed->toe, &toe->conns[i]);
    }
    for (uint32_t i = 0; i < HW_TOE_SLOTS; i++) {
        bed->peer_mac = 0x10000 + i;
        segment_receive(bed, 7, TCP_SYN, 100, 0, 0);
        toe->paths[bed->toe.rx_path].refs++; /* of a connection */
    }
    for (uint16_t i = 0; i < HW_TOE_SLOTS; i++) {
        assert_true(toe->paths[i].refs != 0);
        assert_int_equal(toe->paths[i].peer.bytes[0], 6);
    }
}

/* TIME-WAIT answers to the MAC of its peer, although frames from many others
 * have come meanwhile. */
static void test_toe_keeps_the_path_of_time_wait(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value, ack;

    engine_start(bed);
    bed->peer_mac = 0x1234;
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    assert_int_equal(run_plain(bed, TOE_CMD_CLOSE, tid), TOE_OK);
    segment_receive(bed, 7, TCP_ACK | TCP_FIN, 101, ack + 1, 0);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_FINISHED);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_CLOSED);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(run_plain(bed, TOE_CMD_RELEASE, tid), TOE_OK);
    for (uint32_t i = 0; i < 2 * HW_TOE_PATHS; i++) {
        bed->peer_mac = 0x10000 + i;
        segment_receive(bed, 8, TCP_RST, 100, 0, 0);
    }
    bed->env.now_ns += 1000000000;
    segment_receive(bed, 7, TCP_ACK | TCP_FIN, 101, ack + 1, 0);
    assert_int_equal(get_be32(bed->last_head + 2), 2 + 0x1234);
}

/* Nobody else has an own address (RFC 1122 section 4.2.3.10), but on another
 * port, whose addresses may be the same. */
static void test_toe_drops_segments_from_own_addresses(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, value;

    engine_start(bed);
    assert_int_equal(run_laddr(bed, TOE_LADDRS - 1, 0, PEER), TOE_OK);
    segment_receive(bed, 7, TCP_SYN, 100, 0, 0);
    assert_int_equal(take_entry(bed, &tid, &value), 0);
    assert_int_equal(bed->toe.state.counters[TOE_COUNT_RX_ADDRESS], 1);
    assert_int_equal(run_laddr(bed, TOE_LADDRS - 1, 1, PEER), TOE_OK);
    segment_receive(bed, 7, TCP_SYN, 100, 0, 0);
    assert_int_equal(take_entry(bed, &tid, &value), TOE_KIND_ASKED);
    assert_int_equal(bed->toe.state.counters[TOE_COUNT_RX_ADDRESS], 1);
}

/* A port whose link is full holds up nothing that leaves by the other one. */
static void test_toe_serves_a_port_while_the_other_is_full(void **state)
{
    struct bed *bed = *state;
    struct bed other = {.room = UINT32_MAX};
    uint32_t first, second, tid, value;

    hw_toe_attach_port(
        &bed->toe, 1, &(struct frame_sink){.ctx = &other, .send = take_frames});
    engine_start(bed);
    assert_int_equal(run_laddr(bed, 1, 1, OWN), TOE_OK);
    first = connect_peer(bed);
    bed->port = 1;
    bed->peer_port++;
    segment_receive(bed, 7, TCP_SYN, 100, 0, 0);
    assert_int_equal(take_entry(bed, &second, &value), TOE_KIND_ASKED);
    bed->room = 0;
    assert_int_equal(run_memory(bed, TOE_CMD_SEND, first, TEST_DRAM_BASE, 100),
                     TOE_OK);
    assert_int_equal(
        run_memory(bed, TOE_CMD_ACCEPT, second, TEST_DRAM_BASE + 2 * RING, 0),
        TOE_OK);
    assert_int_equal(other.last_flags, TCP_SYN | TCP_ACK);
    segment_receive(bed, 7, TCP_ACK, 101, other.last_seq + 1, 0);
    assert_int_equal(take_entry(bed, &tid, &value), TOE_KIND_ESTABLISHED);
    assert_int_equal(run_memory(bed, TOE_CMD_SEND, second, TEST_DRAM_BASE, 100),
                     TOE_OK);
    assert_int_equal(other.sent, 2);
    assert_int_equal(run_plain(bed, TOE_CMD_ABORT, first), TOE_OK);
    assert_int_equal(run_plain(bed, TOE_CMD_ABORT, second), TOE_OK);
    assert_int_equal(other.resets, 1);
    for (int i = 0; i < 3; i++) { /* SENT, ABORTED, ENDED */
        assert_int_not_equal(take_entry(bed, &tid, &value), 0);
        assert_int_equal(tid, second);
    }
    assert_int_equal(take_entry(bed, &tid, &value), 0);
    bed->room = UINT32_MAX;
    hw_toe_port_ready(&bed->toe, 0);
    engine_run(bed);
    assert_int_equal(bed->resets, 1);
    assert_int_not_equal(take_entry(bed, &tid, &value), 0);
    assert_int_equal(tid, first);
}

/* SYNs from a port that is full wait for their RSTs; those of connections of
 * the other port leave, also in the kick that ends the listener. */
static void test_toe_aborts_at_a_port_while_the_other_is_full(void **state)
{
    enum { HALVES = 60, OPEN = 10 };
    struct bed *bed = *state;
    struct bed other = {.room = UINT32_MAX};
    uint32_t tids[OPEN], tid, value;
    unsigned int ends = 0;

    hw_toe_attach_port(
        &bed->toe, 1, &(struct frame_sink){.ctx = &other, .send = take_frames});
    engine_start(bed);
    assert_int_equal(run_laddr(bed, 1, 1, OWN), TOE_OK);
    for (unsigned int i = 0; i < OPEN; i++) {
        tids[i] = connect_peer(bed);
        bed->peer_port++;
    }
    bed->port = 1;
    for (unsigned int i = 0; i < HALVES; i++) {
        bed->peer_port++;
        segment_receive(bed, 7, TCP_SYN, 100, 0, 0);
        assert_int_equal(take_entry(bed, &tid, &value), TOE_KIND_ASKED);
        assert_int_equal(
            run_memory(bed, TOE_CMD_ACCEPT, tid, TEST_DRAM_BASE + 2 * RING, 0),
            TOE_OK);
    }
    other.room = 0;
    bed->resets = 0;
    for (unsigned int i = 0; i < OPEN; i++) {
        (void)command_begin(bed, TOE_CMD_ABORT, tids[i]);
        put_le32(dram_at(bed, PAGE + QUEUE_PAGE_CMD_PI), ++bed->cmd_pi);
    }
    assert_int_equal(run_listen(bed, TOE_CMD_UNLISTEN, 7), TOE_OK);
    assert_int_equal(bed->resets, OPEN);
    assert_int_equal(other.resets, 0);
    ends = take_ends(bed);
    assert_int_equal(ends, OPEN);
    other.room = UINT32_MAX;
    hw_toe_port_ready(&bed->toe, 1);
    engine_run(bed);
    assert_int_equal(other.resets, HALVES);
    assert_int_equal(take_ends(bed), HALVES);
}

/* A SYN of which firmware wants to hear no more gives its place back at once:
 * its peer asks again, or gets a RST for its next segment. */
static void test_toe_rejects_at_once_although_the_link_is_full(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value;

    engine_start(bed);
    segment_receive(bed, 7, TCP_SYN, 100, 0, 0);
    assert_int_equal(take_entry(bed, &tid, &value), TOE_KIND_ASKED);
    bed->room = 0;
    assert_int_equal(
        run_memory(bed, TOE_CMD_ACCEPT, tid, TEST_DRAM_BASE + RING, 0), TOE_OK);
    assert_int_equal(run_plain(bed, TOE_CMD_REJECT, tid), TOE_OK);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(other, tid);
    assert_int_equal(run_plain(bed, TOE_CMD_RELEASE, tid), TOE_OK);
    bed->room = UINT32_MAX;
    hw_toe_port_ready(&bed->toe, 0);
    engine_run(bed);
    assert_int_equal(bed->resets, 1);
}

/* The port is ready again inside of a send: what was refused in this run has
 * not left all the same. */
static unsigned int refuse_and_become_ready(void *ctx,
                                            const struct frame_tx *burst,
                                            unsigned int count)
{
    struct bed *bed = ctx;
    unsigned int taken = take_frames(ctx, burst, count);

    hw_toe_port_ready(&bed->toe, 0);
    return taken;
}

static void test_toe_port_is_full_although_it_is_ready_meanwhile(void **state)
{
    struct bed *bed = *state;
    uint32_t tid;

    engine_start(bed);
    tid = connect_peer(bed);
    hw_toe_attach_port(
        &bed->toe, 0,
        &(struct frame_sink){.ctx = bed, .send = refuse_and_become_ready});
    bed->room = 0;
    (void)run_plain(bed, TOE_CMD_ABORT, tid);
    assert_int_equal(bed->toe.state.conns[0].state, TOE_SLOT_OPEN);
    bed->room = 1;
    hw_toe_run(&bed->toe);
    assert_int_equal(bed->toe.state.conns[0].state, TOE_SLOT_ENDED);
}

/* ---- Connections that belong to queue pairs. */

/* @return whether a queue pair got the connection */
static bool attach_pair(struct bed *bed, uint32_t tid)
{
    struct rdma_streams streams = hw_toe_streams(&bed->toe);
    uint32_t ring_bytes = 0;

    if (!streams.attach(streams.ctx, tid, PAIR_SLOT, &ring_bytes)) {
        return false;
    }
    assert_int_equal(ring_bytes, 4096);
    return true;
}

/* Announce bytes of the queue pair. */
static bool send_of_pair(struct bed *bed, uint32_t tid, uint32_t len)
{
    struct rdma_streams streams = hw_toe_streams(&bed->toe);
    bool is_taken = streams.send(streams.ctx, tid, len);

    engine_run(bed);
    return is_taken;
}

static void detach_pair(struct bed *bed, uint32_t tid)
{
    struct rdma_streams streams = hw_toe_streams(&bed->toe);

    streams.detach(streams.ctx, tid);
    engine_run(bed);
}

/* Only a stream of which firmware has read everything may change hands. */
static void test_toe_gives_no_pair_a_stream_with_bytes_for_firmware(
    void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value;

    engine_start(bed);
    tid = connect_peer(bed);
    segment_receive(bed, 7, TCP_ACK, 101, bed->last_seq + 1, 100);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_false(attach_pair(bed, tid));
    assert_int_equal(run_memory(bed, TOE_CMD_CREDIT, tid, 0, 99), TOE_OK);
    assert_false(attach_pair(bed, tid));
    assert_int_equal(run_memory(bed, TOE_CMD_CREDIT, tid, 0, 1), TOE_OK);
    assert_false(attach_pair(bed, tid + 0x10000));
    assert_false(attach_pair(bed, tid + 1));
    assert_true(attach_pair(bed, tid));
    assert_false(attach_pair(bed, tid));
}

static void test_toe_gives_no_pair_a_stream_that_ends(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value;

    engine_start(bed);
    tid = connect_peer(bed);
    segment_receive(bed, 7, TCP_ACK | TCP_FIN, 101, bed->last_seq + 1, 0);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_FINISHED);
    assert_false(attach_pair(bed, tid));
    assert_int_equal(run_plain(bed, TOE_CMD_ABORT, tid), TOE_OK);
    assert_false(attach_pair(bed, tid));
}

/* The reply of MPA goes out after the stream has changed hands. */
static void test_toe_sends_the_bytes_of_firmware_before_those_of_the_pair(
    void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value, ack;

    engine_start(bed);
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    assert_true(attach_pair(bed, tid));
    assert_int_equal(run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE, 40),
                     TOE_OK);
    assert_true(send_of_pair(bed, tid, 60));
    assert_int_equal(bed->pair.asked, 60);
    assert_int_equal(bed->pair.offset, 0);
    assert_int_equal(run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE, 40),
                     TOE_BAD_STATE);
    segment_receive(bed, 7, TCP_ACK, 101, ack + 30, 0);
    assert_int_equal(bed->pair.acked, 0);
    segment_receive(bed, 7, TCP_ACK, 101, ack + 60, 0);
    assert_int_equal(bed->pair.acked, 20);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_SENT);
    assert_int_equal(value, 40);
    segment_receive(bed, 7, TCP_ACK, 101, ack + 100, 0);
    assert_int_equal(bed->pair.acked, 60);
    assert_true(send_of_pair(bed, tid, 1));
    assert_int_equal(bed->pair.offset, 60);
    assert_int_equal(take_entry(bed, &other, &value), 0);
}

/* What the pair does not take is offered again with the next bytes, and the
 * window closes by it. */
static void test_toe_offers_bytes_to_the_pair_until_it_takes_them(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value, ack;

    engine_start(bed);
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    assert_true(attach_pair(bed, tid));
    bed->pair.takes = 4;
    segment_receive(bed, 7, TCP_ACK, 101, ack, 10);
    assert_int_equal(bed->pair.offered, 10);
    segment_receive(bed, 7, TCP_ACK, 111, ack, 20);
    assert_int_equal(bed->pair.offered, 26);
    assert_int_equal(run_memory(bed, TOE_CMD_CREDIT, tid, 0, 1),
                     TOE_BAD_ARGUMENT);
    assert_int_equal(run_plain(bed, TOE_CMD_CLOSE, tid), TOE_BAD_STATE);
    assert_int_equal(
        run_memory(bed, TOE_CMD_RING, tid, TEST_DRAM_BASE + 2 * RING, 0),
        TOE_BAD_STATE);
    bed->pair.takes = UINT32_MAX;
    for (uint32_t seq = 131; seq < 131 + 3 * 4096; seq += 1000) {
        segment_receive(bed, 7, TCP_ACK, seq, ack, 1000); /* the ring wraps */
    }
    assert_int_equal(bed->toe.state.conns[(uint16_t)tid].credited,
                     30 + 13 * 1000);
    assert_int_equal(take_entry(bed, &other, &value), 0); /* no DATA */
}

/* A pair that leaves a stream may leave nothing that is sent again. */
static void test_toe_resets_a_stream_whose_pair_left_bytes(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value;

    engine_start(bed);
    tid = connect_peer(bed);
    assert_true(attach_pair(bed, tid));
    assert_true(send_of_pair(bed, tid, 60));
    detach_pair(bed, tid);
    assert_true(bed->last_flags & TCP_RST);
    assert_int_equal(bed->pair.ended, 0); /* it does not know the stream */
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(value, TOE_END_ABORTED);
}

static void test_toe_closes_a_stream_whose_pair_left_nothing(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value, ack;

    engine_start(bed);
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    assert_true(attach_pair(bed, tid));
    segment_receive(bed, 7, TCP_ACK, 101, ack, 10);
    assert_true(send_of_pair(bed, tid, 60));
    segment_receive(bed, 7, TCP_ACK, 111, ack + 60, 0);
    detach_pair(bed, tid);
    assert_false(attach_pair(bed, tid)); /* the peer has gone on meanwhile */
    bed->pair.offered = 0;
    segment_receive(bed, 7, TCP_ACK, 111, ack + 60, 1000);
    assert_int_equal(bed->pair.offered, 0);
    assert_int_equal(bed->toe.state.conns[(uint16_t)tid].credited, 1010);
    assert_int_equal(run_plain(bed, TOE_CMD_CLOSE, tid), TOE_OK);
    assert_true(bed->last_flags & TCP_FIN);
    assert_int_equal(bed->resets, 0);
    segment_receive(bed, 7, TCP_ACK | TCP_FIN, 1111, ack + 61, 0);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_FINISHED);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_CLOSED);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(value, TOE_END_CLOSED);
}

/* Firmware may not know yet that the pair has left: its SEND completes. */
static void test_toe_ends_a_stream_by_a_send_that_comes_too_late(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value, ack;

    engine_start(bed);
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    assert_true(attach_pair(bed, tid));
    assert_int_equal(run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE, 40),
                     TOE_OK);
    assert_true(send_of_pair(bed, tid, 60));
    segment_receive(bed, 7, TCP_ACK, 101, ack + 100, 0);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_SENT);
    detach_pair(bed, tid);
    assert_int_equal(run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE, 40),
                     TOE_OK);
    assert_int_equal(bed->resets, 1);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_SENT);
    assert_int_equal(last_status(bed), TOE_ENDED);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(run_plain(bed, TOE_CMD_RELEASE, tid), TOE_OK);
}

static void test_toe_tells_the_pair_of_the_end(void **state)
{
    struct rdma_streams streams;
    struct bed *bed = *state;
    uint32_t tid, other, value, ack;

    engine_start(bed);
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    streams = hw_toe_streams(&bed->toe);
    assert_true(attach_pair(bed, tid));
    segment_receive(bed, 7, TCP_ACK | TCP_FIN, 101, ack, 10);
    assert_int_equal(bed->pair.offered, 10); /* before this: */
    assert_int_equal(bed->pair.finished, 1);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_FINISHED);
    assert_int_equal(bed->pair.ended, 0);
    streams.close(streams.ctx, tid);
    streams.close(streams.ctx, tid);
    engine_run(bed);
    assert_true(bed->last_flags & TCP_FIN);
    assert_false(send_of_pair(bed, tid, 1));
    segment_receive(bed, 7, TCP_ACK, 112, ack + 1, 0);
    assert_int_equal(bed->pair.ended, 1);
    assert_int_equal(bed->pair.end, RDMA_STREAM_CLOSED);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(run_plain(bed, TOE_CMD_RELEASE, tid), TOE_OK);
}

/* However a stream ends, its pair hears of it once. */
static void test_toe_tells_the_pair_of_every_end(void **state)
{
    static const enum rdma_stream_end ends[] = {
        RDMA_STREAM_RESET, RDMA_STREAM_RESET, RDMA_STREAM_RESET,
        RDMA_STREAM_LOST,  RDMA_STREAM_LOST,
    };
    struct bed *bed = *state;
    struct rdma_streams streams = hw_toe_streams(&bed->toe);

    for (unsigned int i = 0; i < ARRAY_LEN(ends); i++) {
        uint32_t tid, other, value;

        engine_start(bed);
        bed->peer_port++;
        tid = connect_peer(bed);
        assert_true(attach_pair(bed, tid));
        bed->pair = (struct pair){.has_lost = i == 2};
        switch (i) {
        case 0:
            streams.abort(streams.ctx, tid);
            engine_run(bed);
            break;
        case 1:
            segment_receive(bed, 7, TCP_RST | TCP_ACK, 101, bed->last_seq + 1,
                            0);
            break;
        case 2:
            (void)send_of_pair(bed, tid, 10); /* its memory has an error */
            break;
        case 3:
            break;
        default:
            hw_toe_reset(&bed->toe);
        }
        if (i != 4) {
            (void)hw_toe_write(&bed->toe, A_TOE_CTRL, 0);
            engine_run(bed);
            assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
            assert_int_equal(run_plain(bed, TOE_CMD_RELEASE, tid), TOE_OK);
        }
        assert_int_equal(bed->pair.ended, 1);
        assert_int_equal(bed->pair.end, ends[i]);
        assert_int_equal(bed->pair.finished, 0);
    }
}

/* A pair that was loaded has lost its stream by its own account. */
static void test_toe_loaded_has_no_streams_of_pairs(void **state)
{
    struct bed *bed = *state;
    uint32_t tid;

    engine_start(bed);
    tid = connect_peer(bed);
    assert_true(attach_pair(bed, tid));
    assert_true(hw_toe_state_loaded(&bed->toe));
    engine_run(bed);
    assert_int_equal(bed->pair.ended, 0);
    assert_false(send_of_pair(bed, tid, 1));
    bed->toe.state.conns[1].is_rdma = true;
    bed->toe.state.cursor = HW_TOE_SLOTS;
    assert_false(hw_toe_state_loaded(&bed->toe));
    assert_int_equal(bed->pair.ended, 0);
}

/* The bytes that firmware has not given back move with the ring. */
static void test_toe_moves_a_ring(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value, ack;

    engine_start(bed);
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    segment_receive(bed, 7, TCP_ACK, 101, ack, 4000);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(run_memory(bed, TOE_CMD_CREDIT, tid, 0, 3990), TOE_OK);
    segment_receive(bed, 7, TCP_ACK, 4101, ack, 106); /* it wraps */
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(
        run_memory(bed, TOE_CMD_RING, tid, TEST_DRAM_BASE + 2 * RING + 8, 0),
        TOE_BAD_ADDRESS);
    assert_int_equal(
        run_memory(bed, TOE_CMD_RING, tid, TEST_DRAM_BASE + DRAM_BYTES - 64, 0),
        TOE_BAD_ADDRESS);
    assert_int_equal(
        run_memory(bed, TOE_CMD_RING, tid, TEST_DRAM_BASE + 2 * RING, 0),
        TOE_OK);
    for (unsigned int i = 0; i < 4096; i++) {
        assert_int_equal(*dram_at(bed, 2 * RING + i),
                         i < 10 || i >= 3990 ? 'x' : 0);
    }
    segment_receive(bed, 7, TCP_ACK, 4207, ack, 20);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(value, 20);
    assert_int_equal(*dram_at(bed, 2 * RING + 29), 'x');
    assert_int_equal(*dram_at(bed, 2 * RING + 30), 0);
    assert_int_equal(run_memory(bed, TOE_CMD_CREDIT, tid, 0, 136), TOE_OK);
    assert_int_equal(run_plain(bed, TOE_CMD_ABORT, tid), TOE_OK);
    assert_int_equal(
        run_memory(bed, TOE_CMD_RING, tid, TEST_DRAM_BASE + RING, 0),
        TOE_ENDED);
}

/* ---- Streams of PDUs. */

enum { IC_LEN = 128, H2C_LEN = 24, TTAG = 77 };

/* As segment_receive(), with this payload. */
static void bytes_receive(struct bed *bed, uint32_t seq, uint32_t ack,
                          const uint8_t *bytes, uint32_t len)
{
    const struct ip_addr peer = ip_addr_from_v4(PEER);
    const struct ip_addr own = ip_addr_from_v4(OWN);
    uint8_t data[SEGMENT_ROOM];
    const struct frame_rx frame =
        segment_make(bed, data, 7, TCP_ACK, seq, ack, len);
    uint8_t *tcp = data + ETH_LEN + IPV4_LEN;

    memcpy(tcp + TCP_LEN, bytes, len);
    put_be16(tcp + 16, 0);
    put_be16(tcp + 16, tcp_checksum(&peer, &own, tcp, TCP_LEN + len));
    hw_toe_rx(&bed->toe, bed->port, &frame, 1);
    engine_run(bed);
}

static enum toe_status run_follow(struct bed *bed, uint32_t tid, uint32_t len,
                                  uint8_t flags)
{
    uint8_t *cmd = command_begin(bed, TOE_CMD_FOLLOW, tid);

    put_le32(cmd + TOE_CMD_LENGTH, len);
    cmd[TOE_FOLLOW_FLAGS] = flags;
    return command_post(bed, cmd);
}

static enum toe_status run_place_at(struct bed *bed, uint32_t tid,
                                    uint32_t offset, uint64_t addr,
                                    uint32_t len)
{
    uint8_t *cmd = command_begin(bed, TOE_CMD_PLACE, tid);

    put_le16(cmd + TOE_PLACE_TTAG, TTAG);
    put_le32(cmd + TOE_PLACE_OFFSET, offset);
    cmd[TOE_PLACE_COUNT] = 1;
    put_le64(cmd + TOE_PLACE_PIECE + TOE_PIECE_ADDR, addr);
    put_le32(cmd + TOE_PLACE_PIECE + TOE_PIECE_LENGTH, len);
    return command_post(bed, cmd);
}

static enum toe_status run_place(struct bed *bed, uint32_t tid, uint64_t addr,
                                 uint32_t len)
{
    return run_place_at(bed, tid, 0, addr, len);
}

/* @return H2CData with the last bytes of its R2T */
static uint32_t make_h2c_data(uint8_t *pdu, uint32_t len)
{
    memset(pdu, 0, H2C_LEN);
    pdu[0] = 6;
    pdu[1] = 4; /* LAST */
    pdu[2] = H2C_LEN;
    pdu[3] = H2C_LEN;
    put_le32(pdu + 4, H2C_LEN + len);
    put_le16(pdu + 10, TTAG);
    put_le32(pdu + 16, len);
    memset(pdu + H2C_LEN, 'd', len);
    return H2C_LEN + len;
}

/* @return the TID of a connection whose peer has sent IC_LEN bytes */
static uint32_t connect_for_pdus(struct bed *bed)
{
    uint32_t tid, other, value;

    (void)hw_toe_write(&bed->toe, A_TOE_CONFIG, 1500 | 15 << 16);
    engine_start(bed);
    tid = connect_peer(bed);
    bed->peer_ack = bed->last_seq + 1;
    segment_receive(bed, 7, TCP_ACK, 101, bed->peer_ack, IC_LEN);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(value, IC_LEN);
    return tid;
}

static void test_toe_places_h2c_data_and_reports_their_header(void **state)
{
    struct bed *bed = *state;
    uint32_t tid = connect_for_pdus(bed);
    uint32_t ack = bed->peer_ack;
    uint32_t other, value, len;
    uint8_t pdu[200];

    assert_int_equal(run_follow(bed, tid, IC_LEN, 0), TOE_OK);
    assert_int_equal(run_place(bed, tid, TEST_DRAM_BASE + BUFFER, 100), TOE_OK);
    len = make_h2c_data(pdu, 100);
    bytes_receive(bed, 101 + IC_LEN, ack, pdu, 30);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(value, 0);
    assert_int_equal(get_le16(dram_at(bed, CQES) +
                              (bed->cq_ci - 1) % 4 * QUEUE_CQE_LEN +
                              TOE_CQE_PORT),
                     TOE_BEGUN_PLACED);
    assert_memory_equal(dram_at(bed, BUFFER), "dddddd", 7);
    bytes_receive(bed, 101 + IC_LEN + 30, ack, pdu + 30, 20);
    assert_int_equal(take_entry(bed, &other, &value), 0); /* nothing is new */
    bed->env.now_ns += UINT64_C(1000000000);
    bytes_receive(bed, 101 + IC_LEN + 50, ack, pdu + 50, 20);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(value, 0); /* the peer is not silent */
    bytes_receive(bed, 101 + IC_LEN + 70, ack, pdu + 70, len - 70);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(value, H2C_LEN);
    assert_int_equal(*dram_at(bed, BUFFER + 99), 'd');
    assert_int_equal(*dram_at(bed, BUFFER + 100), 0);
    assert_int_equal(*dram_at(bed, RING + IC_LEN), 6);
    assert_int_equal(*dram_at(bed, RING + IC_LEN + 7),
                     TOE_PDU_FOLLOWED | TOE_PDU_PLACED);
    /* Firmware gives the header back, and no byte more. */
    assert_int_equal(run_memory(bed, TOE_CMD_CREDIT, tid, 0, H2C_LEN + 1),
                     TOE_BAD_ARGUMENT);
    assert_int_equal(run_memory(bed, TOE_CMD_CREDIT, tid, 0, H2C_LEN), TOE_OK);
}

/* The window is that of a connection without following but for the mark. */
static void test_toe_placed_data_need_no_room(void **state)
{
    struct bed *bed = *state;
    uint32_t tid = connect_for_pdus(bed);
    uint32_t ack = bed->peer_ack;
    uint32_t seq = 101 + IC_LEN;
    uint32_t other, value;
    uint8_t pdu[1400];
    struct tcp_info info;

    assert_int_equal(run_follow(bed, tid, IC_LEN, 0), TOE_OK);
    for (unsigned int i = 0; i < 100; i++) {
        uint32_t len = make_h2c_data(pdu, 1300);

        assert_int_equal(run_place(bed, tid, TEST_DRAM_BASE + BUFFER, 1300),
                         TOE_OK);
        bytes_receive(bed, seq, ack, pdu, len);
        assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
        assert_int_equal(value, H2C_LEN);
        assert_int_equal(run_memory(bed, TOE_CMD_CREDIT, tid, 0, H2C_LEN),
                         TOE_OK);
        seq += len;
    }
    assert_true(tcp_info(bed->toe.tcp, bed->toe.state.conns[0].id, &info));
    /* The last segments are not acknowledged yet. */
    assert_in_range(info.rcv_wnd, (1 << 15) - TOE_PDU_STOP_LEN - 3000,
                    (1 << 15) - TOE_PDU_STOP_LEN);
}

static void test_toe_refuses_to_follow(void **state)
{
    struct bed *bed = *state;
    uint32_t tid = connect_for_pdus(bed);
    uint64_t to = TEST_DRAM_BASE + BUFFER;
    uint32_t ack = bed->peer_ack;
    uint32_t other, value;

    assert_int_equal(run_follow(bed, tid + 1, IC_LEN, 0), TOE_BAD_TID);
    assert_int_equal(run_follow(bed, tid, IC_LEN - 1, 0), TOE_BAD_STATE);
    assert_int_equal(run_follow(bed, tid, IC_LEN + 1, 0), TOE_BAD_STATE);
    assert_int_equal(run_follow(bed, tid, IC_LEN, 4), TOE_BAD_ARGUMENT);
    assert_int_equal(run_place(bed, tid, to, 100), TOE_OK); /* no effect */
    assert_int_equal(bed->toe.places.first_free, 0);
    assert_int_equal(run_follow(bed, tid, IC_LEN, 0), TOE_OK);
    assert_int_equal(run_follow(bed, tid, 0, 0), TOE_BAD_STATE);
    assert_int_equal(
        run_memory(bed, TOE_CMD_RING, tid, TEST_DRAM_BASE + 2 * RING, 0),
        TOE_BAD_STATE);
    assert_false(attach_pair(bed, tid));
    assert_int_equal(run_place(bed, tid + 1, to, 100), TOE_BAD_TID);
    assert_int_equal(run_place(bed, tid, to, 0), TOE_BAD_ARGUMENT);
    assert_int_equal(run_place(bed, tid, TEST_DRAM_BASE + DRAM_BYTES - 1, 2),
                     TOE_BAD_ADDRESS);
    for (unsigned int i = 0; i < TOE_PLACE_PIECES; i++) {
        assert_int_equal(run_place(bed, tid, to, 100), TOE_OK);
    }
    assert_int_equal(run_place(bed, tid, to, 100), TOE_NO_ROOM);
    assert_int_equal(run_plain(bed, TOE_CMD_CLOSE, tid), TOE_OK);
    assert_int_equal(bed->toe.places.first_free, 0);
    assert_int_equal(run_place(bed, tid, to, 100), TOE_OK); /* no effect */
    assert_int_equal(bed->toe.places.first_free, 0);

    bed->peer_port++; /* bytes have come that firmware does not know of */
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    segment_receive(bed, 7, TCP_ACK, 101, ack, IC_LEN);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    segment_receive(bed, 7, TCP_ACK, 101 + IC_LEN, ack, 1);
    assert_int_equal(run_follow(bed, tid, IC_LEN, 0), TOE_BAD_STATE);
}

/* Whatever ends a connection ends placing. */
static void test_toe_places_nothing_after_the_end(void **state)
{
    static const enum toe_opcode ends[] = {TOE_CMD_CLOSE, TOE_CMD_ABORT,
                                           TOE_CMD_NOP, TOE_CMD_NOP};
    struct bed *bed = *state;
    uint8_t pdu[200];

    for (unsigned int i = 0; i < ARRAY_LEN(ends); i++) {
        uint32_t tid, ack, len, other, value;

        (void)teardown(state);
        assert_int_equal(setup(state), 0);
        bed = *state;
        tid = connect_for_pdus(bed);
        ack = bed->peer_ack;
        assert_int_equal(run_follow(bed, tid, IC_LEN, 0), TOE_OK);
        assert_int_equal(run_place(bed, tid, TEST_DRAM_BASE + BUFFER, 100),
                         TOE_OK);
        len = make_h2c_data(pdu, 100);
        bytes_receive(bed, 101 + IC_LEN, ack, pdu, 34);
        assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
        if (i == 2) {
            segment_receive(bed, 7, TCP_RST, 101 + IC_LEN + 34, 0, 0);
        } else if (i == 3) {
            assert_true(hw_toe_state_loaded(&bed->toe));
            engine_run(bed);
        } else {
            assert_int_equal(run_plain(bed, ends[i], tid), TOE_OK);
        }
        assert_int_equal(bed->toe.places.first_free, 0);
        bytes_receive(bed, 101 + IC_LEN + 34, ack, pdu + 34, len - 34);
        assert_int_equal(*dram_at(bed, BUFFER + 9), 'd');
        assert_int_equal(*dram_at(bed, BUFFER + 10), 0);
        if (i != 0) {
            assert_int_equal(take_entry(bed, &other, &value),
                             i == 1 ? TOE_KIND_ABORTED : TOE_KIND_ENDED);
        }
    }
}

/* The connection that was followed does not exist in the loaded state. */
static void test_toe_loaded_forgets_the_streams_of_others(void **state)
{
    struct bed *bed = *state;
    uint32_t tid = connect_for_pdus(bed);

    assert_int_equal(run_follow(bed, tid, IC_LEN, 0), TOE_OK);
    assert_int_equal(run_place(bed, tid, TEST_DRAM_BASE + BUFFER, 100), TOE_OK);
    assert_int_equal(bed->toe.places.first_free, 1);
    bed->toe.state.conns[0] = (struct hw_toe_conn){.generation = 9};
    assert_true(hw_toe_state_loaded(&bed->toe));
    assert_int_equal(bed->toe.places.first_free, 0);
    assert_false(pdu_follow_is_on(&bed->toe.follows[0].stream));
}

/* A connection that gets the slot of one that was followed is not. */
static void test_toe_follows_no_connection_by_itself(void **state)
{
    struct bed *bed = *state;
    uint32_t tid = connect_for_pdus(bed);
    uint32_t other, value;

    assert_int_equal(run_follow(bed, tid, IC_LEN, 3), TOE_OK);
    assert_int_equal(run_plain(bed, TOE_CMD_ABORT, tid), TOE_OK);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ABORTED);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(run_plain(bed, TOE_CMD_RELEASE, tid), TOE_OK);
    bed->peer_port++;
    other = connect_peer(bed);
    assert_int_equal((uint16_t)other, (uint16_t)tid);
    segment_receive(bed, 7, TCP_ACK, 101, bed->last_seq + 1, 50);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(value, 50);
    memset(dram_at(bed, BUFFER), 0, 32);
    memcpy(dram_at(bed, BUFFER), "\x05\x01\x18\x00\x1c", 5);
    assert_int_equal(
        run_memory(bed, TOE_CMD_SEND, other, TEST_DRAM_BASE + BUFFER, 28),
        TOE_OK);
    assert_int_equal(get_le32(dram_at(bed, BUFFER + 24)), 0);
}

static void test_toe_fills_in_the_digests_of_what_is_sent(void **state)
{
    struct bed *bed = *state;
    uint32_t tid = connect_for_pdus(bed);
    const uint8_t *pdu = dram_at(bed, BUFFER);

    assert_int_equal(run_follow(bed, tid, IC_LEN, TOE_FOLLOW_HEADER_DIGEST),
                     TOE_OK);
    memset(dram_at(bed, BUFFER), 0, 32);
    memcpy(dram_at(bed, BUFFER), "\x05\x01\x18\x00\x1c", 5);
    assert_int_equal(
        run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE + BUFFER, 10),
        TOE_OK);
    assert_int_equal(
        run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE + BUFFER + 10, 18),
        TOE_OK);
    assert_int_equal(get_le32(pdu + 24), crc32c_update(0, pdu, 24));
}

/* The header and its digest are in two pieces. */
static void test_toe_fills_in_digests_in_pieces(void **state)
{
    struct bed *bed = *state;
    uint32_t tid = connect_for_pdus(bed);
    uint8_t pdu[28] = "\x05\x01\x18\x00\x1c";

    assert_int_equal(run_follow(bed, tid, IC_LEN, TOE_FOLLOW_HEADER_DIGEST),
                     TOE_OK);
    memcpy(dram_at(bed, BUFFER), pdu, 4);
    memcpy(dram_at(bed, BUFFER + 200), pdu + 4, 24);
    assert_int_equal(
        run_send_pieces(bed, tid, 1, TEST_DRAM_BASE + BUFFER + 200, 24),
        TOE_OK);
    assert_int_equal(get_le32(dram_at(bed, BUFFER + 220)),
                     crc32c_update(0, pdu, 24));
}

static void test_toe_ends_a_connection_whose_place_has_a_lost_word(void **state)
{
    struct bed *bed = *state;
    uint32_t tid = connect_for_pdus(bed);
    uint32_t ack = bed->peer_ack;
    uint32_t other, value, len;
    uint8_t pdu[200];

    assert_int_equal(run_follow(bed, tid, IC_LEN, 0), TOE_OK);
    assert_int_equal(run_place(bed, tid, TEST_DRAM_BASE + BUFFER, 100), TOE_OK);
    bed->env.lost = TEST_DRAM_BASE + BUFFER + 96; /* written in part */
    len = make_h2c_data(pdu, 100);
    bytes_receive(bed, 101 + IC_LEN, ack, pdu, len);
    assert_true(bed->last_flags & TCP_RST);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(value, TOE_END_LOST_WORD);
    assert_int_equal(bed->toe.places.first_free, 0);
}

/* Other bytes of the segment were placed before: net/tcp, which does not take
 * the segment, is told of no room for them. */
static void test_toe_gives_no_room_for_a_segment_with_a_lost_word(void **state)
{
    struct bed *bed = *state;
    uint32_t tid = connect_for_pdus(bed);
    uint32_t ack = bed->peer_ack;
    uint32_t other, value, len;
    uint8_t pdus[400];

    assert_int_equal(run_follow(bed, tid, IC_LEN, 0), TOE_OK);
    assert_int_equal(run_place(bed, tid, TEST_DRAM_BASE + BUFFER, 100), TOE_OK);
    assert_int_equal(run_place(bed, tid, TEST_DRAM_BASE + 2 * BUFFER, 100),
                     TOE_OK);
    bed->env.lost = TEST_DRAM_BASE + 2 * BUFFER + 96; /* written in part */
    len = make_h2c_data(pdus, 100);
    pdus[1] = 0; /* not LAST */
    len += make_h2c_data(pdus + len, 100);
    put_le32(pdus + len / 2 + 12, 100); /* the offset of the second one */
    bytes_receive(bed, 101 + IC_LEN, ack, pdus, len);
    assert_int_equal(*dram_at(bed, BUFFER + 99), 'd');
    assert_true(bed->last_flags & TCP_RST);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(value, TOE_END_LOST_WORD);
    assert_int_equal(bed->toe.places.first_free, 0);
}

/* The mark in the ring is none of them. */
static void test_toe_counts_received_bytes_after_following_has_stopped(
    void **state)
{
    struct bed *bed = *state;
    uint32_t tid = connect_for_pdus(bed);
    uint32_t other, value;

    assert_int_equal(run_follow(bed, tid, IC_LEN, 0), TOE_OK);
    segment_receive(bed, 7, TCP_ACK, 101 + IC_LEN, bed->peer_ack, 50);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(value, TOE_PDU_STOP_LEN + 50);
    assert_int_equal(
        run_memory(bed, TOE_CMD_QUERY, tid, TEST_DRAM_BASE + BUFFER, 0),
        TOE_OK);
    assert_int_equal(get_le64(dram_at(bed, BUFFER + TOE_TCB_RECEIVED_BYTES)),
                     IC_LEN + 50);
}

/* A second FOLLOW would begin to count sent PDUs in the middle of one, and keep
 * the room of another mark out of the window. */
static void test_toe_follows_a_connection_once(void **state)
{
    struct bed *bed = *state;
    uint32_t tid = connect_for_pdus(bed);
    uint32_t other, value;

    assert_int_equal(run_follow(bed, tid, IC_LEN, 0), TOE_OK);
    segment_receive(bed, 7, TCP_ACK, 101 + IC_LEN, bed->peer_ack, 50);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_false(pdu_follow_is_on(&bed->toe.follows[0].stream));
    assert_int_equal(run_follow(bed, tid, TOE_PDU_STOP_LEN + 50, 0),
                     TOE_BAD_STATE);
}

static void test_toe_places_nothing_before_a_connection_is_open(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, value;

    engine_start(bed);
    segment_receive(bed, 7, TCP_SYN, 100, 0, 0);
    assert_int_equal(take_entry(bed, &tid, &value), TOE_KIND_ASKED);
    assert_int_equal(run_place(bed, tid, TEST_DRAM_BASE + BUFFER, 100),
                     TOE_BAD_STATE);
}

/* The header has been judged with the pieces that the place had. */
static void test_toe_refuses_pieces_for_data_that_are_coming(void **state)
{
    struct bed *bed = *state;
    uint32_t tid = connect_for_pdus(bed);
    uint64_t to = TEST_DRAM_BASE + BUFFER;
    uint32_t ack = bed->peer_ack;
    uint32_t other, value, len;
    uint8_t pdu[200];

    assert_int_equal(run_follow(bed, tid, IC_LEN, 0), TOE_OK);
    assert_int_equal(run_place(bed, tid, to, 100), TOE_OK);
    assert_int_equal(run_place_at(bed, tid, 100, to, 100), TOE_BAD_STATE);
    len = make_h2c_data(pdu, 100);
    bytes_receive(bed, 101 + IC_LEN, ack, pdu, H2C_LEN);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(value, 0);
    assert_int_equal(run_place(bed, tid, to, 100), TOE_BAD_STATE);
    bytes_receive(bed, 101 + IC_LEN + H2C_LEN, ack, pdu + H2C_LEN,
                  len - H2C_LEN);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(value, H2C_LEN);
    assert_int_equal(bed->toe.places.first_free, 0);
}

/* ---- Records of TLS. */

static const uint8_t tls_key[RECORD_KEY_MAX] = {1, 2, 3};
static const uint8_t tls_iv[RECORD_IV_LEN] = {4, 5, 6};

static enum toe_status run_key(struct bed *bed, uint32_t tid, uint8_t first,
                               uint8_t flags, uint32_t held)
{
    uint8_t *cmd = command_begin(bed, TOE_CMD_KEY, tid);

    cmd[TOE_KEY_FLAGS] = flags;
    cmd[TOE_KEY_LENGTH] = 32;
    memcpy(cmd + TOE_KEY_BYTES, tls_key, sizeof(tls_key));
    cmd[TOE_KEY_BYTES] = first;
    memcpy(cmd + TOE_KEY_IV, tls_iv, sizeof(tls_iv));
    put_le32(cmd + TOE_KEY_HELD, held);
    return command_post(bed, cmd);
}

/* Append a record with data that are all `what`. */
static void seal_data(struct records_tx *tx, uint8_t what, uint32_t len)
{
    uint8_t record[RECORD_HEADER_LEN + 4096 + RECORD_OVERHEAD];

    assert_in_range(len, 0, 4096);
    memset(record + RECORD_HEADER_LEN, what, len);
    records_seal(tx, &record_gcm, RECORD_DATA, record, len);
}

static struct records_tx *tls_peer(void)
{
    struct records_tx *tx = calloc(1, sizeof(*tx));

    assert_non_null(tx);
    record_half_begin(&tx->half, &record_gcm, tls_key, 32, tls_iv, 0);
    return tx;
}

/* Content begins where the ring does, and records that wrap around are there:
 * none may be overwritten before it is opened. */
static void test_toe_opens_records_that_wrap_around_in_the_ring(void **state)
{
    struct bed *bed = *state;
    struct records_tx *peer = tls_peer();
    uint32_t before = (1 << 15) - 96; /* to the end of the ring */
    uint32_t tid, other, value, ack;

    (void)hw_toe_write(&bed->toe, A_TOE_CONFIG, 1500 | 15 << 16);
    engine_start(bed);
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    for (uint32_t at = 0; at != before; at += before / 8) {
        segment_receive(bed, 7, TCP_ACK, 101 + at, ack, before / 8);
        assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
        assert_int_equal(run_memory(bed, TOE_CMD_CREDIT, tid, 0, before / 8),
                         TOE_OK);
    }
    seal_data(peer, 'a', 50); /* ends before the end of the ring */
    seal_data(peer, 'b', 500);
    seal_data(peer, 'c', 200);
    bytes_receive(bed, 101 + before, ack, peer->bytes, (uint32_t)peer->made);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(value, peer->made);
    assert_int_equal(run_key(bed, tid, tls_key[0], TOE_KEY_RECEIVES, value),
                     TOE_OK);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_DATA);
    assert_int_equal(value, 750);
    for (unsigned int i = 0; i < 750; i++) {
        assert_int_equal(*dram_at(bed, RING + i), i < 50    ? 'a'
                                                  : i < 550 ? 'b'
                                                            : 'c');
    }
    assert_int_equal(take_entry(bed, &other, &value), 0);
    free(peer);
}

/* What was sealed is sent again as it was, although its memory has been used
 * for something else, and other records have another key. */
static void test_toe_sends_a_record_again_as_it_was(void **state)
{
    struct bed *bed = *state;
    struct records_tx *same = tls_peer();
    uint32_t tid, other, value, ack;

    (void)hw_toe_write(&bed->toe, A_TOE_CONFIG, 1500 | 15 << 16);
    engine_start(bed);
    tid = connect_peer(bed);
    ack = bed->last_seq + 1;
    assert_int_equal(run_key(bed, tid, tls_key[0], 0, 0), TOE_OK);
    memset(dram_at(bed, BUFFER), 's', 20);
    assert_int_equal(
        run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE + BUFFER, 20),
        TOE_OK);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_SENT);
    memset(dram_at(bed, BUFFER), 'o', 20);
    assert_int_equal(run_key(bed, tid, 77, 0, 0), TOE_OK);
    assert_int_equal(
        run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE + BUFFER, 20),
        TOE_OK);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_SENT);
    bed->env.now_ns += UINT64_C(4000000000);
    hw_toe_timer(&bed->toe);
    engine_run(bed);
    seal_data(same, 's', 20);
    assert_int_equal(bed->last_seq, ack);
    assert_memory_equal(bed->last_bytes, same->bytes, same->made);
    /* From the middle of a record, too. */
    segment_receive(bed, 7, TCP_ACK, 101, ack + 10, 0);
    bed->env.now_ns += UINT64_C(8000000000);
    hw_toe_timer(&bed->toe);
    engine_run(bed);
    assert_int_equal(bed->last_seq, ack + 10);
    assert_memory_equal(bed->last_bytes, same->bytes + 10, same->made - 10);
    free(same);
}

/* A KeyUpdate between the parts of a PDU is no part of it: digests stay where
 * they belong. */
static void test_toe_fills_in_digests_around_a_record_without_data(void **state)
{
    struct bed *bed = *state;
    uint32_t tid = connect_for_pdus(bed);
    const uint8_t *pdu = dram_at(bed, BUFFER);
    uint8_t *cmd;

    assert_int_equal(run_follow(bed, tid, IC_LEN, TOE_FOLLOW_HEADER_DIGEST),
                     TOE_OK);
    assert_int_equal(run_key(bed, tid, tls_key[0], 0, 0), TOE_OK);
    memset(dram_at(bed, BUFFER), 0, 40);
    memcpy(dram_at(bed, BUFFER), "\x05\x01\x18\x00\x1c", 5);
    memcpy(dram_at(bed, BUFFER + 32), "\x18\0\0\1", 5);
    assert_int_equal(
        run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE + BUFFER, 26),
        TOE_OK);
    cmd = command_begin(bed, TOE_CMD_SEND, tid);
    put_le64(cmd + TOE_CMD_ADDR, TEST_DRAM_BASE + BUFFER + 32);
    put_le32(cmd + TOE_CMD_LENGTH, 5);
    cmd[TOE_SEND_RECORD] = RECORD_HANDSHAKE;
    assert_int_equal(command_post(bed, cmd), TOE_OK);
    assert_memory_equal(dram_at(bed, BUFFER + 32), "\x18\0\0\1", 5);
    assert_int_equal(
        run_memory(bed, TOE_CMD_SEND, tid, TEST_DRAM_BASE + BUFFER + 26, 2),
        TOE_OK);
    assert_int_equal(get_le32(pdu + 24), crc32c_update(0, pdu, 24));
}

/* In a smaller ring, a record would never be complete. */
static void test_toe_takes_keys_for_rings_with_room_for_a_record(void **state)
{
    struct bed *bed = *state;

    for (uint32_t log2 = 12; log2 <= 17; log2++) {
        bool is_good = log2 == 15 || log2 == 16;
        uint32_t tid;

        (void)teardown(state);
        assert_int_equal(setup(state), 0);
        bed = *state;
        (void)hw_toe_write(&bed->toe, A_TOE_CONFIG, 1500 | log2 << 16);
        engine_start(bed);
        tid = connect_peer(bed);
        assert_int_equal(run_key(bed, tid, tls_key[0], TOE_KEY_RECEIVES, 0),
                         is_good ? TOE_OK : TOE_BAD_ARGUMENT);
    }
}

/* Whether there is a key of run_key(), with which the round keys of AES begin,
 * or its vector. */
static bool has_key(const void *memory, size_t len)
{
    for (size_t i = 0; i + 3 <= len; i++) {
        const uint8_t *at = (const uint8_t *)memory + i;

        if (memcmp(at, tls_key, 3) == 0 || memcmp(at, tls_iv, 3) == 0) {
            return true;
        }
    }
    return false;
}

/* No key is saved, nor left in a command: the connection ends, and what is left
 * has none. */
static void test_toe_loaded_has_no_keys(void **state)
{
    struct bed *bed = *state;
    uint32_t tid, other, value;
    static struct hw_toe_state saved;

    (void)hw_toe_write(&bed->toe, A_TOE_CONFIG, 1500 | 15 << 16);
    engine_start(bed);
    tid = connect_peer(bed);
    assert_int_equal(run_key(bed, tid, tls_key[0], 0, 0), TOE_OK);
    assert_int_equal(run_key(bed, tid, tls_key[0], TOE_KEY_RECEIVES, 0),
                     TOE_OK);
    saved = bed->toe.state;
    assert_false(has_key(&saved, sizeof(saved)));
    assert_false(has_key(bed->dram, DRAM_BYTES));
    assert_true(has_key(bed->toe.memory, hw_toe_memory_bytes()));
    hw_toe_reset(&bed->toe);
    bed->toe.state = saved;
    assert_true(hw_toe_state_loaded(&bed->toe));
    engine_run(bed);
    assert_int_equal(take_entry(bed, &other, &value), TOE_KIND_ENDED);
    assert_int_equal(value, TOE_END_STOPPED);
    assert_null(hw_toe_tls_of(&bed->toe, &bed->toe.state.conns[tid & 0xffff]));
    assert_int_equal(run_key(bed, tid, tls_key[0], 0, 0), TOE_ENDED);
    assert_false(has_key(bed->toe.memory, hw_toe_memory_bytes()));
}

TEST_FIXTURE(setup, teardown)
