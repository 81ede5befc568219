/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP may cut the stream anywhere.  A conversation with every kind of message
 * is repeated with a cut at every byte, and with all bytes in segments of one
 * length, for many lengths; each time it has the same end.
 */
#include "iw_bed.h"

#include <stdarg.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bytes.h"
#include "tests/test_fixture.h"

enum { TALK_MAX = 4096, SEND_LEN = 101, WRITE_LEN = 77 };

static uint8_t bytes[256];

/* All bytes that the peer sends. */
static uint32_t write_talk(const struct iw_bed *bed, uint8_t *talk)
{
    struct ddp rtr = iw_write_ddp(1, 0);
    struct ddp first = iw_send_ddp(1, 0, false);
    struct ddp write = iw_write_ddp(IW_REMOTE_KEY, IW_DATA_ADDR + 0x800);
    struct ddp last = iw_send_ddp(1, 50, true);
    struct ddp read = iw_read_ddp(1);
    struct ddp inv = iw_send_ddp(2, 0, true);
    uint8_t body[RDMAP_READ_LEN];
    uint32_t len = 0;

    inv.opcode = RDMAP_SEND_INV;
    inv.stag = IW_WRITE_KEY;
    rdmap_read_emit(&(struct rdmap_read){.sink_stag = 9,
                                         .source_stag = IW_READ_KEY,
                                         .source_to = IW_DATA_ADDR + 0x800,
                                         .len_bytes = WRITE_LEN},
                    body);
    len += iw_fpdu(bed, &rtr, NULL, 0, talk + len);
    len += iw_fpdu(bed, &first, bytes, 50, talk + len);
    len += iw_fpdu(bed, &write, bytes, WRITE_LEN, talk + len);
    len += iw_fpdu(bed, &last, bytes + 50, SEND_LEN - 50, talk + len);
    len += iw_fpdu(bed, &read, body, sizeof(body), talk + len);
    len += iw_fpdu(bed, &inv, bytes, 3, talk + len);
    assert_true(len <= TALK_MAX);
    return len;
}

static void check_end(struct iw_bed *bed)
{
    struct iw_side *side = &bed->side[0];
    struct iw_fpdu fpdu;
    struct iw_wc wc;

    assert_true(iw_poll(side, &wc));
    assert_int_equal(wc.wr_id, 1);
    assert_int_equal(wc.len, SEND_LEN);
    assert_true(iw_poll(side, &wc));
    assert_int_equal(wc.wr_id, 2);
    assert_int_equal(wc.inv_key, IW_WRITE_KEY);
    assert_false(iw_poll(side, &wc));
    assert_memory_equal(iw_data(side, 0x100), bytes, SEND_LEN);
    assert_memory_equal(iw_data(side, 0x800), bytes, WRITE_LEN);
    assert_true(iw_next(bed, &fpdu));
    assert_int_equal(fpdu.ddp.opcode, RDMAP_READ_RESPONSE);
    assert_memory_equal(fpdu.payload, bytes, WRITE_LEN);
    iw_expect_silence(bed);
    assert_int_equal(iw_counter(side, IWARP_RX_FPDUS), 6);
    assert_int_equal(side->ring_count, 0);
}

static struct iw_bed *begin_talk(void)
{
    struct iw_bed *bed = iw_new();

    for (unsigned int i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 37 + 11);
    }
    iw_raw(bed);
    iw_recv(&bed->side[0], 1, 0x100, 128);
    iw_recv(&bed->side[0], 2, 0x200, 128);
    return bed;
}

static void test_a_cut_at_every_byte_changes_nothing(void **state)
{
    uint8_t talk[TALK_MAX];
    uint32_t len = 2;

    (void)state;
    for (uint32_t cut = 1; cut < len; cut++) {
        struct iw_bed *bed = begin_talk();

        len = write_talk(bed, talk);
        bed->segment = len;
        bed->split = cut;
        iw_give(bed, talk, len);
        check_end(bed);
        iw_free(bed);
    }
}

static void test_segments_of_every_length_change_nothing(void **state)
{
    uint8_t talk[TALK_MAX];
    uint32_t len = 2;

    (void)state;
    for (uint32_t segment = 1; segment < len; segment++) {
        struct iw_bed *bed = begin_talk();

        len = write_talk(bed, talk);
        bed->segment = segment;
        iw_give(bed, talk, len);
        check_end(bed);
        iw_free(bed);
    }
}

/* The ring wraps at every byte of the conversation. */
static void test_a_ring_may_wrap_anywhere(void **state)
{
    uint8_t talk[TALK_MAX];
    uint32_t len = 2;

    (void)state;
    for (uint32_t left = 1; left < len; left++) {
        struct iw_bed *bed = begin_talk();

        len = write_talk(bed, talk);
        bed->segment = len;
        bed->side[0].ring_first = (1u << IW_RING_LOG2) - left;
        iw_give(bed, talk, len);
        check_end(bed);
        iw_free(bed);
    }
}

/* Both directions between two engines, in segments that ignore FPDUs. */
static void test_two_engines_talk_in_any_segments(void **state)
{
    static const uint32_t segments[] = {1, 2, 3, 19, 1444, 1447, 9000};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(segments); i++) {
        struct iw_bed *bed = iw_new();
        struct iw_side *host = &bed->side[1];
        struct iw_side *drive = &bed->side[0];

        bed->segment = segments[i];
        iw_connect(bed);
        iw_fill(host, 0, 20000, 1);
        iw_recv(drive, 1, 0, 64);
        iw_send(host, &(struct iw_wr){
                          .opcode = VERBS_WR_SEND, .wr_id = 5, .len = 64});
        iw_send(drive, &(struct iw_wr){.opcode = VERBS_WR_READ,
                                       .wr_id = 6,
                                       .offset = 0x10000,
                                       .len = 20000,
                                       .sges = 3});
        iw_send(drive, &(struct iw_wr){.opcode = VERBS_WR_WRITE,
                                       .wr_id = 7,
                                       .offset = 0x10000,
                                       .len = 20000,
                                       .remote = 0x20000});
        iw_expect_wc(host, 5, VERBS_WC_SUCCESS);
        iw_expect_wc(drive, 1, VERBS_WC_SUCCESS);
        iw_expect_wc(drive, 6, VERBS_WC_SUCCESS);
        iw_expect_wc(drive, 7, VERBS_WC_SUCCESS);
        assert_memory_equal(iw_data(host, 0x20000), iw_data(host, 0), 20000);
        iw_free(bed);
    }
}
