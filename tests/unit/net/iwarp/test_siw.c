/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conversations that stock peers had over siw (golden_siw.h), again: what the
 * host sent is taken, and for the requests that the target had, the same bytes
 * are sent.
 */
#include "golden_siw.h"
#include "iw_bed.h"

#include <stdarg.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bytes.h"
#include "lib/crc32c.h"
#include "net/mpa/mpa.h"
#include "tests/test_fixture.h"

static struct iw_bed *bed;
static struct iw_side *side;

static int setup(void **state)
{
    (void)state;
    bed = iw_new();
    side = &bed->side[0];
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    iw_free(bed);
    return 0;
}

TEST_FIXTURE(setup, teardown)

/* Lengths of the FPDUs of the host's stream. */
enum { RTR = 20, CONNECT = 88, DATA = 1044 };

static void test_the_request_gets_the_reply(void **state)
{
    static const struct mpa_limits limits = {
        .wants_crc = true, .max_ird = 1, .max_ord = 128};
    struct mpa_request request;
    struct mpa_terms terms;
    uint8_t reply[MPA_SETUP_MAX];

    (void)state;
    assert_int_equal(
        mpa_request_judge(&request, siw_request, sizeof(siw_request)),
        MPA_ACCEPTABLE);
    mpa_choose(&request, &limits, &terms);
    assert_int_equal(mpa_reply(&request, &terms, false,
                               siw_reply + sizeof(siw_reply) - 32, 32, reply),
                     sizeof(siw_reply));
    assert_memory_equal(reply, siw_reply, sizeof(siw_reply));
}

/* The drive asks for the data of Connect by a READ, as nvmet did. */
static void test_the_hosts_connect_is_taken(void **state)
{
    const uint8_t *response = siw_host + RTR + CONNECT;
    uint8_t answer[DATA];
    struct rdmap_read read;
    struct iw_fpdu fpdu;

    (void)state;
    bed->ird = 1;
    iw_raw(bed);
    iw_recv(side, 1, 0, 4160);
    iw_recv(side, 2, 0x2000, 4160);
    iw_give(bed, siw_host, RTR + CONNECT);
    iw_expect_event(side, RDMA_EVENT_QP_ESTABLISHED, 0);
    iw_expect_wc(side, 1, VERBS_WC_SUCCESS);
    assert_int_equal(*iw_data(side, 0), 0x7f); /* a Fabrics command */
    /* The keyed SGL of the capsule. */
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_READ,
                                  .wr_id = 3,
                                  .offset = 0x4000,
                                  .len = 1024,
                                  .remote_addr = get_le64(iw_data(side, 24)),
                                  .rkey = get_le32(iw_data(side, 35))});
    assert_true(iw_next(bed, &fpdu));
    assert_true(rdmap_read_parse(&read, fpdu.payload, fpdu.len));
    assert_int_equal(read.source_stag, 0xcbaeeb01);
    assert_int_equal(read.source_to, UINT64_C(0xffff888005376400));
    /* The response names our place; the host's named siw's. */
    memcpy(answer, response, DATA);
    put_be32(answer + MPA_FPDU_HEADER + DDP_STAG, read.sink_stag);
    put_be64(answer + MPA_FPDU_HEADER + DDP_TO, read.sink_to);
    put_le32(answer + DATA - MPA_FPDU_CRC,
             crc32c_update(0, answer, DATA - MPA_FPDU_CRC));
    iw_give(bed, answer, DATA);
    iw_expect_wc(side, 3, VERBS_WC_SUCCESS);
    assert_memory_equal(iw_data(side, 0x4000),
                        response + MPA_FPDU_HEADER + DDP_TAGGED_LEN, 1024);
    iw_give(bed, siw_host + RTR + CONNECT + DATA,
            sizeof(siw_host) - RTR - CONNECT - DATA);
    iw_expect_wc(side, 2, VERBS_WC_SUCCESS);
    iw_expect_silence(bed);
}

static void test_a_response_for_another_key_is_refused(void **state)
{
    (void)state;
    iw_raw(bed);
    iw_recv(side, 1, 0, 4160);
    iw_give(bed, siw_host, RTR + CONNECT + DATA);
    iw_expect_terminate(bed, RDMAP_BAD_OPCODE, VERBS_WC_BAD_RESPONSE);
}

static void test_a_send_of_three_segments_is_taken(void **state)
{
    struct iw_wc wc;

    (void)state;
    iw_raw(bed);
    side->state->qps[IW_SLOT].rx.send_msn = 5;
    iw_recv(side, 1, 0, 4160);
    iw_give(bed, siw_write, sizeof(siw_write));
    assert_true(iw_poll(side, &wc));
    assert_int_equal(wc.status, VERBS_WC_SUCCESS);
    assert_int_equal(wc.len, 4160);
    assert_memory_equal(iw_data(side, 0), siw_write + 20, 1424);
    assert_memory_equal(iw_data(side, 1424), siw_write + 1448 + 20, 1424);
    assert_memory_equal(iw_data(side, 2848), siw_write + 2896 + 20, 1312);
}

static void test_siw_without_crc_is_taken(void **state)
{
    (void)state;
    bed->no_crc = true;
    iw_raw(bed);
    iw_recv(side, 1, 0, 4160);
    iw_give(bed, siw_plain_send, sizeof(siw_plain_send));
    iw_expect_wc(side, 1, VERBS_WC_SUCCESS);
}

/* ---- The target's side: the same requests become the same bytes. */

static void expect_bytes(const uint8_t *expected, uint32_t len)
{
    assert_int_equal(side->fetched, len);
    assert_memory_equal(side->out, expected, len);
}

static void test_the_targets_write_and_response_are_the_same(void **state)
{
    const uint8_t *data = siw_identify + MPA_FPDU_HEADER + DDP_TAGGED_LEN;
    const uint8_t *send = siw_identify + 1448 + 1448 + 1260;

    (void)state;
    bed->no_mute = true;
    iw_raw(bed);
    side->state->qps[IW_SLOT].tx.send_msn = 8;
    memcpy(iw_data(side, 0), data, 1428);
    memcpy(iw_data(side, 1428), data + 1448, 1428);
    memcpy(iw_data(side, 2856), data + 2896, 1240);
    iw_post(side, &(struct iw_wr){.opcode = VERBS_WR_WRITE,
                                  .len = 4096,
                                  .sges = 4,
                                  .remote_addr = UINT64_C(0xffff888005fd1000),
                                  .rkey = 0xcbaeeb02});
    iw_post(side, &(struct iw_wr){.opcode = VERBS_WR_SEND_INV,
                                  .len = 16,
                                  .inv_key = 0xcbaeeb02,
                                  .inline_data = send + MPA_FPDU_HEADER +
                                                 DDP_UNTAGGED_LEN});
    iw_ring(side);
    iw_run(bed);
    expect_bytes(siw_identify, sizeof(siw_identify));
}

static void test_the_targets_read_request_is_the_same(void **state)
{
    uint8_t expected[sizeof(siw_target)];
    enum { READ = 52, SEND_INV = 40 };

    (void)state;
    bed->no_mute = true;
    iw_raw(bed);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_READ,
                                  .len = 1024,
                                  .remote_addr = UINT64_C(0xffff888005376400),
                                  .rkey = 0xcbaeeb01});
    iw_send(side,
            &(struct iw_wr){.opcode = VERBS_WR_SEND_INV,
                            .len = 16,
                            .inv_key = 0xcbaeeb01,
                            .inline_data = siw_target + READ + MPA_FPDU_HEADER +
                                           DDP_UNTAGGED_LEN});
    iw_send(side,
            &(struct iw_wr){.opcode = VERBS_WR_SEND,
                            .len = 16,
                            .inline_data = siw_target + READ + SEND_INV +
                                           MPA_FPDU_HEADER + DDP_UNTAGGED_LEN});
    /* Only the place of the response is ours, and the CRC with it. */
    memcpy(expected, siw_target, sizeof(expected));
    memcpy(expected + 20, side->out + 20, 12);
    put_le32(expected + READ - MPA_FPDU_CRC,
             crc32c_update(0, expected, READ - MPA_FPDU_CRC));
    expect_bytes(expected, sizeof(expected));
}
