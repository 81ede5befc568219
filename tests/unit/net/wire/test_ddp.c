/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/ddp.h"

/* Headers that nvme-rdma and nvmet-rdma of Linux 6.12 sent over siw. */
static const uint8_t write[DDP_TAGGED_LEN] = {
    0x81, 0x40, 0xcb, 0xae, 0xeb, 0x02, 0xff,
    0xff, 0x88, 0x80, 0x05, 0xfd, 0x10, 0x00,
};
static const uint8_t send_inv[DDP_UNTAGGED_LEN] = {
    0x41, 0x44, 0xcb, 0xae, 0xeb, 0x01, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x0b, 0x20,
};
static const uint8_t read_request[DDP_UNTAGGED_LEN + RDMAP_READ_LEN] = {
    0x41, 0x41, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
    0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x50, 0x3b, 0x6b, 0x01, 0xff, 0xff,
    0x88, 0x80, 0x05, 0xd8, 0xd0, 0x00, 0x00, 0x00, 0x04, 0x00, 0xcb, 0xae,
    0xeb, 0x01, 0xff, 0xff, 0x88, 0x80, 0x05, 0x37, 0x64, 0x00,
};

static void test_a_tagged_header_is_parsed_and_emitted(void **state)
{
    DIRTY(out, DDP_TAGGED_LEN + 1);
    struct ddp ddp;

    (void)state;
    assert_int_equal(ddp_parse(&ddp, write, sizeof(write)), DDP_TAGGED_LEN);
    assert_true(ddp.is_tagged);
    assert_false(ddp.is_last);
    assert_int_equal(ddp.version, DDP_VERSION);
    assert_int_equal(ddp.rdmap_version, RDMAP_VERSION);
    assert_int_equal(ddp.opcode, RDMAP_WRITE);
    assert_int_equal(ddp.stag, 0xcbaeeb02);
    assert_int_equal(ddp.to, UINT64_C(0xffff888005fd1000));
    assert_int_equal(ddp_emit(&ddp, out), DDP_TAGGED_LEN);
    assert_memory_equal(out, write, sizeof(write));
    assert_int_equal(out[DDP_TAGGED_LEN], 0xa5);
}

static void test_an_untagged_header_is_parsed_and_emitted(void **state)
{
    DIRTY(out, DDP_UNTAGGED_LEN + 1);
    struct ddp ddp;

    (void)state;
    assert_int_equal(ddp_parse(&ddp, send_inv, sizeof(send_inv)),
                     DDP_UNTAGGED_LEN);
    assert_false(ddp.is_tagged);
    assert_true(ddp.is_last);
    assert_int_equal(ddp.opcode, RDMAP_SEND_INV);
    assert_int_equal(ddp.stag, 0xcbaeeb01);
    assert_int_equal(ddp.qn, 0);
    assert_int_equal(ddp.msn, 5);
    assert_int_equal(ddp.mo, 0xb20);
    assert_int_equal(ddp_emit(&ddp, out), DDP_UNTAGGED_LEN);
    assert_memory_equal(out, send_inv, sizeof(send_inv));
    assert_int_equal(out[DDP_UNTAGGED_LEN], 0xa5);
}

static void test_headers_cut_short_are_refused(void **state)
{
    struct ddp ddp;

    (void)state;
    ASSERT_TRUNCATIONS_REFUSED(ddp_parse, &ddp, write, sizeof(write));
    ASSERT_TRUNCATIONS_REFUSED(ddp_parse, &ddp, send_inv, sizeof(send_inv));
}

static void test_versions_and_opcodes_keep_their_bits(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 256; i++) {
        uint8_t buf[DDP_UNTAGGED_LEN] = {(uint8_t)(i & 0xc3), (uint8_t)i};
        DIRTY(out, DDP_UNTAGGED_LEN);
        struct ddp ddp;
        uint32_t len = ddp_parse(&ddp, buf, sizeof(buf));

        assert_int_equal(ddp.version, i & 3);
        assert_int_equal(ddp.rdmap_version, i >> 6);
        assert_int_equal(ddp.opcode, i & 15);
        assert_int_equal(ddp.is_tagged, i >> 7);
        assert_int_equal(ddp.is_last, i >> 6 & 1);
        buf[DDP_RDMAP] &= 0xcf;
        assert_int_equal(ddp_emit(&ddp, out), len);
        assert_memory_equal(out, buf, len);
    }
}

static void test_reserved_bits_are_ignored(void **state)
{
    uint8_t buf[sizeof(write)];
    struct ddp ddp, clean;

    (void)state;
    memcpy(buf, write, sizeof(buf));
    assert_int_equal(ddp_parse(&clean, buf, sizeof(buf)), sizeof(buf));
    buf[DDP_CONTROL] |= 0x3c;
    buf[DDP_RDMAP] |= 0x30;
    assert_int_equal(ddp_parse(&ddp, buf, sizeof(buf)), sizeof(buf));
    assert_memory_equal(&ddp, &clean, sizeof(ddp));
}

static void test_a_read_request_is_parsed_and_emitted(void **state)
{
    const uint8_t *body = read_request + DDP_UNTAGGED_LEN;
    DIRTY(out, RDMAP_READ_LEN + 1);
    struct rdmap_read read;

    (void)state;
    assert_true(rdmap_read_parse(&read, body, RDMAP_READ_LEN));
    assert_int_equal(read.sink_stag, 0x503b6b01);
    assert_int_equal(read.sink_to, UINT64_C(0xffff888005d8d000));
    assert_int_equal(read.len_bytes, 1024);
    assert_int_equal(read.source_stag, 0xcbaeeb01);
    assert_int_equal(read.source_to, UINT64_C(0xffff888005376400));
    rdmap_read_emit(&read, out);
    assert_memory_equal(out, body, RDMAP_READ_LEN);
    assert_int_equal(out[RDMAP_READ_LEN], 0xa5);
    ASSERT_TRUNCATIONS_REFUSED(rdmap_read_parse, &read, body, RDMAP_READ_LEN);
    assert_false(rdmap_read_parse(&read, out, RDMAP_READ_LEN + 1));
}

/* ---- Terminate. */

static void test_a_short_terminate_is_emitted_and_parsed(void **state)
{
    static const uint8_t bad_crc[] = {0x20, 0x02, 0x00, 0x00};
    struct rdmap_terminate terminate = {.error = MPA_ERROR_CRC};
    DIRTY(out, RDMAP_TERM_MAX);

    (void)state;
    assert_int_equal(rdmap_terminate_emit(&terminate, out), sizeof(bad_crc));
    assert_memory_equal(out, bad_crc, sizeof(bad_crc));
    assert_true(rdmap_terminate_parse(&terminate, bad_crc, sizeof(bad_crc)));
    assert_int_equal(terminate.error, MPA_ERROR_CRC);
    assert_null(terminate.header);
    ASSERT_TRUNCATIONS_REFUSED(rdmap_terminate_parse, &terminate, bad_crc,
                               sizeof(bad_crc));
}

static void test_a_terminate_with_headers_is_emitted_and_parsed(void **state)
{
    static const uint8_t wrong_msn[] = {
        0x12, 0x03, 0xc0, 0x00, 0x00, 0x52, 0x41, 0x44, 0xcb, 0xae, 0xeb, 0x01,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x0b, 0x20,
    };
    struct rdmap_terminate terminate = {
        .error = DDP_UNTAGGED_MSN,
        .headers = RDMAP_TERM_M | RDMAP_TERM_D,
        .segment_len = 82,
        .header = send_inv,
        .header_len = sizeof(send_inv),
    };
    DIRTY(out, RDMAP_TERM_MAX);

    (void)state;
    assert_int_equal(rdmap_terminate_emit(&terminate, out), sizeof(wrong_msn));
    assert_memory_equal(out, wrong_msn, sizeof(wrong_msn));
    assert_true(
        rdmap_terminate_parse(&terminate, wrong_msn, sizeof(wrong_msn)));
    assert_int_equal(terminate.headers, 0xc0);
    assert_int_equal(terminate.segment_len, 82);
    assert_int_equal(terminate.header_len, sizeof(send_inv));
    assert_memory_equal(terminate.header, send_inv, sizeof(send_inv));
}

/* siw has layer and type in each other's place, and the flags elsewhere; its
 * Terminate is parsed all the same. */
static void test_a_terminate_of_siw_is_parsed(void **state)
{
    static const uint8_t siw[] = {
        0x21, 0x03, 0x03, 0x00, 0x00, 0x40, 0x41, 0x43, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00,
    };
    struct rdmap_terminate terminate;

    (void)state;
    assert_true(rdmap_terminate_parse(&terminate, siw, sizeof(siw)));
    assert_int_equal(terminate.error, 0x2103);
    assert_int_equal(terminate.headers, 0x03);
    assert_int_equal(terminate.segment_len, 64);
    assert_int_equal(terminate.header_len, 18);
}
