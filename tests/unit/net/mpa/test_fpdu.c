/* SPDX-License-Identifier: BSD-2-Clause */
/* FPDUs in the bytes of a stream: RFC 5044 section 4. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bytes.h"
#include "lib/crc32c.h"
#include "net/mpa/mpa.h"

/* The RTR of siw: an empty WRITE. */
static const uint8_t rtr[] = {
    0x00, 0x0e, 0xc1, 0x40, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xeb, 0xd3, 0x4c, 0x5f,
};

static void test_the_rtr_of_siw_is_found(void **state)
{
    const struct rdma_stream_piece in = {rtr, sizeof(rtr)};
    struct rdma_stream_piece ulpdu;

    (void)state;
    assert_int_equal(mpa_deframe(&in, 1, 0, 1500, true, NULL, &ulpdu),
                     MPA_FPDU);
    assert_ptr_equal(ulpdu.data, rtr + 2);
    assert_int_equal(ulpdu.len_bytes, 14);
}

static void test_the_trailer_of_siw_is_written(void **state)
{
    const struct rdma_stream_piece pieces[] = {{rtr, 5}, {rtr + 5, 11}};
    uint8_t out[8];

    (void)state;
    memset(out, 0xa5, sizeof(out));
    assert_int_equal(mpa_trailer(pieces, 2, true, out), 4);
    assert_memory_equal(out, rtr + 16, 4);
    assert_int_equal(out[4], 0xa5);
}

/* Make an FPDU.  @return its length */
static uint32_t make_fpdu(uint32_t len, uint8_t *buf)
{
    put_be16(buf, (uint16_t)len);
    for (uint32_t i = 0; i < len; i++) {
        buf[2 + i] = (uint8_t)(i * 7 + 1);
    }
    return 2 + len +
           mpa_trailer(&(struct rdma_stream_piece){buf, 2 + len}, 1, true,
                       buf + 2 + len);
}

static void test_trailers_pad_with_zeros(void **state)
{
    (void)state;
    for (uint32_t len = 14; len < 40; len++) {
        uint8_t buf[64];
        uint32_t total;

        memset(buf, 0xa5, sizeof(buf));
        total = make_fpdu(len, buf);
        assert_int_equal(total, mpa_fpdu_bytes(len));
        for (uint32_t at = 2 + len; at < total - 4; at++) {
            assert_int_equal(buf[at], 0);
        }
        assert_int_equal(get_le32(buf + total - 4),
                         crc32c_update(0, buf, total - 4));
    }
}

static void test_a_trailer_without_crc_is_zero(void **state)
{
    uint8_t out[8];

    (void)state;
    memset(out, 0xa5, sizeof(out));
    assert_int_equal(
        mpa_trailer(&(struct rdma_stream_piece){rtr, 15}, 1, false, out), 5);
    for (unsigned int i = 0; i < 5; i++) {
        assert_int_equal(out[i], 0);
    }
}

/* Two FPDUs in three pieces, cut at every two places, with `skip` before. */
static void test_fpdus_are_found_in_any_pieces(void **state)
{
    uint8_t buf[128], scratch[64];
    uint32_t first = make_fpdu(21, buf);
    uint32_t total = first + make_fpdu(14, buf + first);

    (void)state;
    for (uint32_t a = 0; a <= total; a++) {
        for (uint32_t b = a; b <= total; b++) {
            uint8_t *copy[3];
            struct rdma_stream_piece in[3];
            const uint32_t from[] = {0, a, b, total};
            struct rdma_stream_piece ulpdu;

            for (unsigned int i = 0; i < 3; i++) {
                uint32_t n = from[i + 1] - from[i];

                copy[i] = malloc(n != 0 ? n : 1);
                memcpy(copy[i], buf + from[i], n);
                in[i] = (struct rdma_stream_piece){copy[i], n};
            }
            assert_int_equal(
                mpa_deframe(in, 3, 0, sizeof(scratch), true, scratch, &ulpdu),
                MPA_FPDU);
            assert_int_equal(ulpdu.len_bytes, 21);
            assert_memory_equal(ulpdu.data, buf + 2, 21);
            assert_int_equal(mpa_deframe(in, 3, first, sizeof(scratch), true,
                                         scratch, &ulpdu),
                             MPA_FPDU);
            assert_int_equal(ulpdu.len_bytes, 14);
            assert_memory_equal(ulpdu.data, buf + first + 2, 14);
            assert_int_equal(mpa_deframe(in, 3, total, sizeof(scratch), true,
                                         scratch, &ulpdu),
                             MPA_FPDU_WAITS);
            for (unsigned int i = 0; i < 3; i++) {
                free(copy[i]);
            }
        }
    }
}

static void test_a_part_of_an_fpdu_waits(void **state)
{
    uint8_t buf[64], scratch[64];
    uint32_t total = make_fpdu(21, buf);
    struct rdma_stream_piece ulpdu;

    (void)state;
    for (uint32_t len = 0; len < total; len++) {
        uint8_t *copy = malloc(len != 0 ? len : 1);

        memcpy(copy, buf, len);
        assert_int_equal(mpa_deframe(&(struct rdma_stream_piece){copy, len}, 1,
                                     0, sizeof(scratch), true, scratch, &ulpdu),
                         MPA_FPDU_WAITS);
        free(copy);
    }
}

static void test_every_byte_is_covered_by_the_crc(void **state)
{
    uint8_t buf[64];
    uint32_t total = make_fpdu(21, buf);
    struct rdma_stream_piece ulpdu;

    (void)state;
    for (uint32_t at = 2; at < total; at++) {
        const struct rdma_stream_piece in = {buf, total};

        buf[at] ^= 1;
        assert_int_equal(mpa_deframe(&in, 1, 0, 64, true, NULL, &ulpdu),
                         MPA_FPDU_BAD_CRC);
        assert_int_equal(mpa_deframe(&in, 1, 0, 64, false, NULL, &ulpdu),
                         MPA_FPDU);
        buf[at] ^= 1;
    }
}

static void test_lengths_have_bounds(void **state)
{
    struct rdma_stream_piece ulpdu;
    uint8_t buf[2];

    (void)state;
    for (uint32_t len = 0; len < 65536; len += len < 32 ? 1 : 977) {
        const struct rdma_stream_piece in = {buf, sizeof(buf)};
        bool fits = len >= 14 && mpa_fpdu_bytes(len) <= 1448;

        put_be16(buf, (uint16_t)len);
        assert_int_equal(mpa_deframe(&in, 1, 0, 1448, true, NULL, &ulpdu),
                         fits ? MPA_FPDU_WAITS : MPA_FPDU_BAD_LENGTH);
    }
}
