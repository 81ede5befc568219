/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVMe/TCP between Linux's host and nvmet, without and with digests: our
 * parsers read every PDU of both directions, our rules allow what the host
 * sends, the digests are what we compute, and what was written is what is read.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "capture.h"
#include "lib/bytes.h"
#include "lib/crc32c.h"
#include "nvmeof/tcp/tcp_pdu.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/opcode.h"
#include "nvmeof/wire/sqe.h"

#define NQN                                                                    \
    "nqn.2014-08.org.nvmexpress:uuid:6e766d65-7400-4000-8000-0000000000f1"

enum {
    PORT = 4420,
    BLOCK = 16 << 10, /* bytes of each write and read */
    WRITTEN = 64 << 10,
    LBA_SHIFT = 9,
    TAGS = 1 << 16,
};

/* What the PDUs of a connection have said. */
struct peers {
    bool has_digests;
    uint16_t qid;
    uint8_t image[WRITTEN];
    uint32_t written, read;
    uint64_t lba[TAGS];    /* of reads, by CID; 1 is added, 0: no read */
    unsigned int pdus[16]; /* by type */
    unsigned int connects;
};

/* All headers and all data have digests, or none have. */
static void check_digests(const struct tcp_pdu_head *head, const uint8_t *pdu,
                          bool has_digests)
{
    assert_int_equal(head->has_header_digest, has_digests);
    assert_int_equal(head->has_data_digest, has_digests && head->pdo != 0);
    if (head->has_header_digest) {
        assert_int_equal(get_le32(pdu + head->hlen),
                         crc32c_update(0, pdu, head->hlen));
    }
    if (head->has_data_digest) {
        uint32_t len = tcp_pdu_data_len(head);

        assert_int_equal(get_le32(pdu + head->pdo + len),
                         crc32c_update(0, pdu + head->pdo, len));
        assert_int_equal(head->pdo + len + PDU_DIGEST_LEN, head->plen);
    }
}

static void take_connect(struct peers *peers, const struct nvme_sqe *sqe,
                         const uint8_t *data, uint32_t len)
{
    struct connect_command command;
    struct connect_data connect;

    connect_command_parse(&command, sqe);
    assert_int_equal(command.recfmt, 0);
    assert_true(connect_data_parse(&connect, data, len));
    assert_int_equal(nvme_nqn_len(connect.subnqn), strlen(NQN));
    assert_memory_equal(connect.subnqn, NQN, strlen(NQN));
    assert_in_range(nvme_nqn_len(connect.hostnqn), 1, NVME_NQN_MAX);
    peers->qid = command.qid;
    peers->connects++;
}

static void take_command(struct peers *peers, const struct tcp_pdu_head *head,
                         const uint8_t *pdu)
{
    const uint8_t *data = pdu + head->pdo;
    uint32_t len = head->pdo == 0 ? 0 : tcp_pdu_data_len(head);
    uint8_t again[NVME_SQE_LEN];
    struct nvme_sqe sqe;

    nvme_sqe_parse(&sqe, pdu + PDU_HEAD_LEN);
    nvme_sqe_emit(again, &sqe); /* without SGL1 */
    assert_memory_equal(again, pdu + PDU_HEAD_LEN, SQE_SGL1);
    assert_memory_equal(again + SQE_CDW10, pdu + PDU_HEAD_LEN + SQE_CDW10,
                        NVME_SQE_LEN - SQE_CDW10);
    assert_int_equal(sqe.psdt, SQE_PSDT_SGL);
    if (sqe.opcode == NVME_FABRICS) {
        if (sqe.fctype == FABRICS_CONNECT) {
            take_connect(peers, &sqe, data, len);
        }
        return;
    }
    if (peers->qid == 0) {
        return;
    }
    if (sqe.opcode == NVM_WRITE) {
        uint64_t at = (uint64_t)sqe.cdw10 << LBA_SHIFT;

        assert_int_equal(len, BLOCK);
        assert_int_equal(((sqe.cdw12 & 0xffff) + 1) << LBA_SHIFT, len);
        assert_true(at + len <= WRITTEN);
        memcpy(peers->image + at, data, len);
        peers->written += len;
    } else {
        assert_int_equal(sqe.opcode, NVM_READ);
        peers->lba[sqe.cid] = sqe.cdw10 + UINT64_C(1);
    }
}

/* C2HData.  After the writes, the queue for I/O reads what they have written.
 */
static void take_data(struct peers *peers, const struct tcp_pdu_head *head,
                      const uint8_t *pdu)
{
    uint8_t again[PDU_DATA_LEN];
    struct tcp_pdu_data data;

    tcp_pdu_data_parse(&data, pdu);
    memcpy(again, pdu, PDU_HEAD_LEN);
    memset(again + PDU_HEAD_LEN, 0xa5, sizeof(again) - PDU_HEAD_LEN);
    tcp_pdu_data_emit(again, &data);
    assert_memory_equal(again, pdu, sizeof(again));
    assert_int_equal(data.len_bytes, tcp_pdu_data_len(head));
    if (peers->lba[data.cccid] != 0 && peers->written == WRITTEN) {
        uint64_t at = (peers->lba[data.cccid] - 1) << LBA_SHIFT;

        at += data.offset;
        assert_true(at + data.len_bytes <= WRITTEN);
        assert_memory_equal(pdu + head->pdo, peers->image + at, data.len_bytes);
        peers->read += data.len_bytes;
    }
}

static void take_ic(const struct peers *peers, const uint8_t *pdu)
{
    uint8_t again[PDU_IC_LEN];
    struct tcp_pdu_ic ic;

    tcp_pdu_ic_parse(&ic, pdu);
    assert_int_equal(ic.pfv, 0);
    assert_int_equal(ic.has_header_digest, peers->has_digests);
    assert_int_equal(ic.has_data_digest, peers->has_digests);
    memcpy(again, pdu, PDU_HEAD_LEN);
    memset(again + PDU_HEAD_LEN, 0xa5, sizeof(again) - PDU_HEAD_LEN);
    tcp_pdu_ic_emit(again, &ic);
    assert_memory_equal(again, pdu, sizeof(again));
}

/* Read the PDU at the beginning of these bytes.  @return its length; 0 when it
 * is not complete */
static uint32_t take_pdu(struct peers *peers, const uint8_t *pdu, size_t len,
                         bool is_host)
{
    struct tcp_pdu_rules rules = {.is_ready = peers->pdus[PDU_IC_REQ] > 0,
                                  .has_header_digest = peers->has_digests,
                                  .has_data_digest = peers->has_digests,
                                  .capsule_data_max = BLOCK,
                                  .data_max = 1 << 20};
    struct tcp_pdu_head head;

    if (len < PDU_HEAD_LEN) {
        return 0;
    }
    tcp_pdu_head_parse(&head, pdu);
    assert_in_range(head.type, 0, ARRAY_LEN(peers->pdus) - 1);
    assert_true(head.plen >= PDU_HEAD_LEN);
    if (is_host) {
        assert_int_equal(tcp_pdu_judge(&head, &rules).fes, PDU_FES_NONE);
    }
    if (head.plen > len) {
        return 0;
    }
    if (head.type == PDU_IC_REQ || head.type == PDU_IC_RESP) {
        take_ic(peers, pdu);
    } else {
        check_digests(&head, pdu, peers->has_digests);
    }
    if (head.type == PDU_CAPSULE_CMD) {
        take_command(peers, &head, pdu);
    } else if (head.type == PDU_C2H_DATA) {
        take_data(peers, &head, pdu);
    }
    peers->pdus[head.type]++;
    return head.plen;
}

/* Read the PDUs of both sides in the order of time. */
static void take_connection(struct peers *peers,
                            const struct capture_connection *connection)
{
    size_t taken[2] = {0, 0};

    for (unsigned int n = 0; n < connection->turn_count; n++) {
        const struct capture_turn *turn = &connection->turns[n];
        const struct capture_stream *stream = turn->is_client
                                                  ? &connection->from_client
                                                  : &connection->from_server;
        size_t *at = &taken[turn->is_client];
        uint32_t len;

        do {
            len = take_pdu(peers, stream->bytes + *at, turn->len - *at,
                           turn->is_client);
            *at += len;
        } while (len != 0);
    }
    assert_int_equal(taken[true], connection->from_client.len);
    assert_int_equal(taken[false], connection->from_server.len);
}

static void take_capture(const char *name, bool has_digests)
{
    static struct peers peers;
    struct capture_connections connections;

    capture_connections_read(&connections, name, PORT);
    assert_int_equal(connections.count, 2); /* admin queue and one for I/O */
    for (unsigned int n = 0; n < connections.count; n++) {
        const struct capture_connection *connection = &connections.all[n];

        memset(&peers, 0, sizeof(peers));
        peers.has_digests = has_digests;
        take_connection(&peers, connection);
        assert_int_equal(peers.connects, 1);
        assert_int_equal(peers.pdus[PDU_IC_REQ], 1);
        assert_int_equal(peers.pdus[PDU_IC_RESP], 1);
        assert_int_equal(peers.pdus[PDU_H2C_TERM], 0);
        assert_int_equal(peers.pdus[PDU_C2H_TERM], 0);
        assert_int_equal(peers.qid, n);
        assert_int_equal(peers.written, n == 0 ? 0 : WRITTEN);
        assert_int_equal(peers.read, n == 0 ? 0 : WRITTEN);
    }
    capture_connections_free(&connections);
}

static void test_all_pdus_of_linux_are_understood(void **state)
{
    (void)state;
    take_capture("nvmetcp-plain", false);
}

static void test_all_pdus_with_digests_are_understood(void **state)
{
    (void)state;
    take_capture("nvmetcp-digests", true);
}
