/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVMe over iWARP between two hosts with siw, without and with CRC and
 * peer-to-peer mode: our parsers read the setup frames, every FPDU and every
 * DDP segment of both directions, and what was written is what is read.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "capture.h"
#include "net/mpa/mpa.h"
#include "net/wire/ddp.h"
#include "nvmeof/wire/rdma_private.h"

enum { PORT = 4420, FPDU_MAX = 64 << 10, WRITTEN = 64 << 10, IMAGES = 8 };

/* What one side has sent. */
struct side {
    size_t taken; /* bytes of its stream */
    bool is_set_up;
    struct mpa_setup setup;
    unsigned int segments[RDMAP_OPCODES]; /* by opcode */
    uint8_t data[2 * WRITTEN + FPDU_MAX]; /* of WRITEs or READ responses */
    uint32_t data_len;
    uint8_t first_opcode;
    uint32_t first_len; /* payload of its first segment */
    unsigned int count;
    uint32_t msn[3]; /* the next one of each queue, from 1 */
};

static void take_setup(struct side *side, const uint8_t *buf, size_t len,
                       bool is_client, bool is_strict)
{
    uint8_t again[MPA_SETUP_MAX];
    const struct mpa_setup *setup = &side->setup;

    assert_int_equal(mpa_setup_parse(&side->setup, buf, len), MPA_PARSED);
    assert_int_equal(setup->is_reply, !is_client);
    assert_false(setup->markers || setup->is_rejected);
    assert_int_equal(setup->crc, is_strict);
    assert_true(setup->is_enhanced);
    assert_int_equal(setup->peer_to_peer, is_strict);
    assert_int_equal(setup->private_len, NVME_RDMA_REQ_LEN);
    memset(again, 0xa5, sizeof(again));
    mpa_setup_emit(setup, again);
    assert_memory_equal(again, buf, mpa_private_at(setup));
    if (is_client) {
        const uint8_t *private_data = buf + mpa_private_at(setup);
        struct mpa_request request;
        struct nvme_rdma_req req;

        assert_int_equal(mpa_request_judge(&request, buf, len), MPA_ACCEPTABLE);
        assert_int_equal(
            nvme_rdma_req_parse(&req, private_data, setup->private_len),
            NVME_RDMA_OK);
        assert_in_range(req.qid, 0, 1);
    }
    side->taken += mpa_setup_bytes(setup);
    side->is_set_up = true;
}

static void take_segment(struct side *side, const uint8_t *buf, uint32_t len)
{
    uint8_t again[DDP_HEADER_MAX];
    uint32_t header_len, payload;
    struct ddp ddp;

    header_len = ddp_parse(&ddp, buf, len);
    assert_int_not_equal(header_len, 0);
    assert_int_equal(ddp.version, DDP_VERSION);
    assert_int_equal(ddp.rdmap_version, RDMAP_VERSION);
    assert_in_range(ddp.opcode, 0, RDMAP_OPCODES - 1);
    memset(again, 0xa5, sizeof(again));
    assert_int_equal(ddp_emit(&ddp, again), header_len);
    assert_memory_equal(again, buf, header_len);
    assert_int_equal(ddp.is_tagged, ddp.opcode == RDMAP_WRITE ||
                                        ddp.opcode == RDMAP_READ_RESPONSE);
    payload = len - header_len;
    if (side->count++ == 0) {
        side->first_opcode = ddp.opcode;
        side->first_len = payload;
    }
    side->segments[ddp.opcode]++;
    if (ddp.is_tagged) {
        assert_true(side->data_len + payload <= sizeof(side->data));
        memcpy(side->data + side->data_len, buf + header_len, payload);
        side->data_len += payload;
        return;
    }
    assert_in_range(ddp.qn, DDP_QN_SEND, DDP_QN_READ);
    assert_int_equal(ddp.msn, side->msn[ddp.qn] + 1);
    side->msn[ddp.qn] += ddp.is_last;
    if (ddp.opcode == RDMAP_READ_REQUEST) {
        struct rdmap_read read;

        assert_int_equal(ddp.qn, DDP_QN_READ);
        assert_true(rdmap_read_parse(&read, buf + header_len, payload));
    }
}

/* Read what this side has sent until now. */
static void take_side(struct side *side, const struct capture_stream *stream,
                      size_t len, bool is_client, bool is_strict)
{
    static uint8_t scratch[FPDU_MAX];

    if (!side->is_set_up) {
        take_setup(side, stream->bytes, len, is_client, is_strict);
    }
    while (side->taken < len) {
        const struct rdma_stream_piece in = {stream->bytes + side->taken,
                                             (uint32_t)(len - side->taken)};
        struct rdma_stream_piece ulpdu;
        enum mpa_deframed found =
            mpa_deframe(&in, 1, 0, FPDU_MAX, is_strict, scratch, &ulpdu);

        if (found == MPA_FPDU_WAITS) {
            return;
        }
        assert_int_equal(found, MPA_FPDU);
        take_segment(side, ulpdu.data, ulpdu.len_bytes);
        side->taken += mpa_fpdu_bytes(ulpdu.len_bytes);
    }
}

/* The client has sent data in answer to the server's READs, and the server has
 * sent the same bytes in WRITEs; before them are those of other commands. */
static void check_data(const struct side *client, const struct side *server)
{
    assert_true(client->data_len >= WRITTEN && server->data_len >= WRITTEN);
    assert_memory_equal(client->data + client->data_len - WRITTEN,
                        server->data + server->data_len - WRITTEN, WRITTEN);
}

static void take_connection(const struct capture_connection *connection,
                            bool is_strict, bool has_data)
{
    static struct side client, server;

    memset(&client, 0, sizeof(client));
    memset(&server, 0, sizeof(server));
    for (unsigned int n = 0; n < connection->turn_count; n++) {
        const struct capture_turn *turn = &connection->turns[n];

        take_side(turn->is_client ? &client : &server,
                  turn->is_client ? &connection->from_client
                                  : &connection->from_server,
                  turn->len, turn->is_client, is_strict);
    }
    assert_int_equal(client.taken, connection->from_client.len);
    assert_int_equal(server.taken, connection->from_server.len);
    assert_int_equal(client.segments[RDMAP_TERMINATE], 0);
    assert_int_equal(server.segments[RDMAP_TERMINATE], 0);
    assert_int_equal(
        server.segments[RDMAP_SEND_INV] + server.segments[RDMAP_SEND] > 0,
        true);
    /* In peer-to-peer mode the client begins with an empty message. */
    assert_int_equal(client.first_len == 0, is_strict);
    if (is_strict) {
        assert_int_equal(client.first_opcode, RDMAP_WRITE);
    }
    if (has_data) {
        check_data(&client, &server);
    }
}

static void take_capture(const char *name, bool is_strict)
{
    struct capture_connections connections;

    capture_connections_read(&connections, name, PORT);
    assert_int_equal(connections.count, 2); /* admin queue and one for I/O */
    for (unsigned int n = 0; n < connections.count; n++) {
        take_connection(&connections.all[n], is_strict, n == 1);
    }
    capture_connections_free(&connections);
}

static void test_all_segments_of_siw_are_understood(void **state)
{
    (void)state;
    take_capture("iwarp", false);
}

static void test_all_segments_with_crc_and_peer_to_peer_mode_are_understood(
    void **state)
{
    (void)state;
    take_capture("iwarp-crc-p2p", true);
}
