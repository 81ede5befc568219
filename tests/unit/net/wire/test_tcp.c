/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/tcp.h"

/* scapy has made both, from 10.0.0.1 to 10.0.0.2; the first has the options and
 * their order that Linux uses. */

static const uint8_t linux_syn[] = {
    0x9c, 0x40, 0x11, 0x44, 0x11, 0x22, 0x33, 0x44, 0x00, 0x00,
    0x00, 0x00, 0xa0, 0xc2, 0xfa, 0xf0, 0x42, 0x5c, 0x00, 0x00,
    0x02, 0x04, 0x05, 0xb4, 0x04, 0x02, 0x08, 0x0a, 0x01, 0x02,
    0x03, 0x04, 0x00, 0x00, 0x00, 0x00, 0x01, 0x03, 0x03, 0x07,
};

static const uint8_t sack_ack[] = {
    0x9c, 0x40, 0x11, 0x44, 0x00, 0x00, 0x00, 0x05, 0xff, 0xff, 0xff,
    0xf0, 0xd0, 0x10, 0x01, 0xf6, 0x5c, 0xd6, 0x00, 0x00, 0x01, 0x01,
    0x08, 0x0a, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x09, 0x01,
    0x01, 0x05, 0x12, 0x00, 0x00, 0x00, 0x64, 0x00, 0x00, 0x00, 0xc8,
    0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0x10,
};

static void test_tcp_header_reads_the_syn_of_linux(void **state)
{
    struct tcp_header tcp;

    (void)state;
    assert_true(tcp_header_parse(&tcp, linux_syn, sizeof(linux_syn)));
    assert_int_equal(tcp.src_port, 40000);
    assert_int_equal(tcp.dst_port, 4420);
    assert_int_equal(tcp.seq, 0x11223344);
    assert_int_equal(tcp.flags, TCP_SYN | TCP_ECE | TCP_CWR);
    assert_int_equal(tcp.window, 64240);
    assert_int_equal(tcp.header_len, 40);
    assert_true(tcp.options.has_mss && tcp.options.has_shift &&
                tcp.options.has_times && tcp.options.sack_permitted);
    assert_int_equal(tcp.options.mss, 1460);
    assert_int_equal(tcp.options.shift, 7);
    assert_int_equal(tcp.options.tsval, 0x01020304);
}

static void test_tcp_header_reads_sack_blocks(void **state)
{
    struct tcp_header tcp;

    (void)state;
    assert_true(tcp_header_parse(&tcp, sack_ack, sizeof(sack_ack)));
    assert_int_equal(tcp.options.sack_count, 2);
    assert_int_equal(tcp.options.sacks[0].left, 100);
    assert_int_equal(tcp.options.sacks[0].right, 200);
    assert_int_equal(tcp.options.sacks[1].left, 0xffffff00);
    assert_int_equal(tcp.options.sacks[1].right, 16);
    assert_int_equal(tcp.options.tsecr, 9);
}

static void test_tcp_header_emit_overwrites_a_dirty_buffer(void **state)
{
    struct tcp_header tcp;
    DIRTY(out, TCP_LEN_MAX);

    (void)state;
    assert_true(tcp_header_parse(&tcp, linux_syn, sizeof(linux_syn)));
    assert_int_equal(tcp_header_emit(&tcp, out), sizeof(linux_syn));
    assert_memory_equal(out, linux_syn, sizeof(linux_syn));
    assert_true(tcp_header_parse(&tcp, sack_ack, sizeof(sack_ack)));
    assert_int_equal(tcp_header_emit(&tcp, out), sizeof(sack_ack));
    assert_memory_equal(out, sack_ack, sizeof(sack_ack));
}

static void test_tcp_header_refuses_every_truncation(void **state)
{
    struct tcp_header tcp;

    (void)state;
    ASSERT_TRUNCATIONS_REFUSED(tcp_header_parse, &tcp, linux_syn,
                               sizeof(linux_syn));
}

static void test_tcp_checksum_of_scapy_is_correct(void **state)
{
    const struct ip_addr src = ip_addr_from_v4(0x0a000001);
    const struct ip_addr dst = ip_addr_from_v4(0x0a000002);

    (void)state;
    assert_int_equal(tcp_checksum(&src, &dst, linux_syn, sizeof(linux_syn)), 0);
    assert_int_equal(tcp_checksum(&src, &dst, sack_ack, sizeof(sack_ack)), 0);
}

/* Replace the options of a header by these and parse it. */
static bool options_parse(struct tcp_header *tcp, const uint8_t *options,
                          size_t len)
{
    uint8_t buf[TCP_LEN_MAX] = {[TCP_DATA_OFFSET] = 0};
    size_t header_len = TCP_LEN + (len + 3) / 4 * 4;

    memcpy(buf + TCP_LEN, options, len);
    buf[TCP_DATA_OFFSET] = (uint8_t)(header_len / 4 << 4);
    return tcp_header_parse(tcp, buf, header_len);
}

static void test_tcp_options_of_impossible_lengths_are_refused(void **state)
{
    static const uint8_t bad[][4] = {
        {2, 3, 5, 0},   /* MSS of 3 bytes */
        {3, 4, 7, 0},   /* window scale of 4 */
        {4, 3, 0, 0},   /* SACK-permitted of 3 */
        {5, 2, 1, 1},   /* SACK without a block */
        {8, 4, 0, 0},   /* timestamps of 4 */
        {254, 0, 0, 0}, /* an unknown kind of length 0 (RFC 9293, MUST-7) */
        {254, 1, 0, 0}, /* and of length 1 */
        {254, 5, 0, 0}, /* and beyond the header */
        {1, 1, 1, 254}, /* a kind without a length */
    };
    struct tcp_header tcp;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(options_parse(&tcp, bad[i], sizeof(bad[i])));
    }
}

static void test_tcp_unknown_options_are_skipped(void **state)
{
    static const uint8_t options[] = {254, 4, 9, 9, 34, 2, 2, 4, 5, 0xb4, 0, 2};
    struct tcp_header tcp;

    (void)state;
    assert_true(options_parse(&tcp, options, sizeof(options)));
    assert_int_equal(tcp.options.mss, 1460);
}

static void test_tcp_shift_above_14_counts_as_14(void **state)
{
    static const uint8_t options[] = {3, 3, 15, 0};
    struct tcp_header tcp;

    (void)state;
    assert_true(options_parse(&tcp, options, sizeof(options)));
    assert_int_equal(tcp.options.shift, 14);
}

static void test_tcp_data_offset_below_five_is_refused(void **state)
{
    struct tcp_header tcp;
    uint8_t buf[TCP_LEN] = {[TCP_DATA_OFFSET] = 4 << 4};

    (void)state;
    assert_false(tcp_header_parse(&tcp, buf, sizeof(buf)));
    buf[TCP_DATA_OFFSET] = 5 << 4;
    assert_true(tcp_header_parse(&tcp, buf, sizeof(buf)));
}
