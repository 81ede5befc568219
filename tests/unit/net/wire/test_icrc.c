/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/icrc.h"

/*
 * A CNP that was captured on a ConnectX-4 Lx: scapy's test/contrib/roce.uts,
 * "RoCE CNP captured on ConnectX-4 Lx".
 */
static const uint8_t connectx_cnp[] = {
    0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61,
    0x0a, 0x00, 0x11, 0x01, 0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7,
    0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x82, 0xfd, 0x00, 0x2a,
};

/* A SEND Only of UC with two pad bytes: "RoCE layer" in the same file. */
static const uint8_t uc_send_only[] = {
    0x45, 0x01, 0x00, 0x40, 0x04, 0x78, 0x40, 0x00, 0x40, 0x11, 0xb4,
    0xd5, 0xc0, 0xa8, 0x00, 0x07, 0xc0, 0xa8, 0x00, 0x07, 0xc0, 0x00,
    0x12, 0xb7, 0x00, 0x2c, 0xac, 0xa2, 0x24, 0x60, 0xff, 0xff, 0x00,
    0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17, 0x10, 0x46, 0x30, 0x81, 0x8b,
    0xe2, 0x89, 0x35, 0xd9, 0x0e, 0x9a, 0x95, 0x50, 0x54, 0x01, 0xbe,
    0x88, 0x5e, 0x50, 0x00, 0x00, 0x78, 0xf3, 0x53, 0xf3,
};

struct vector {
    const uint8_t *packet;
    size_t len;
    size_t headers_len;
    uint32_t (*begin)(const uint8_t *headers);
};

static const struct vector vectors[] = {
    {connectx_cnp, sizeof(connectx_cnp), ICRC_IPV4_HEADERS_LEN,
     icrc_begin_ipv4},
    {uc_send_only, sizeof(uc_send_only), ICRC_IPV4_HEADERS_LEN,
     icrc_begin_ipv4},
    {roce_ipv4, sizeof(roce_ipv4), ICRC_IPV4_HEADERS_LEN, icrc_begin_ipv4},
    {roce_ipv6, sizeof(roce_ipv6), ICRC_IPV6_HEADERS_LEN, icrc_begin_ipv6},
};

static uint32_t icrc_of(const struct vector *v, const uint8_t *packet)
{
    return icrc_add(v->begin(packet), packet + v->headers_len,
                    v->len - v->headers_len - ICRC_LEN);
}

static void test_icrc_matches_published_packets(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        const struct vector *v = &vectors[i];
        DIRTY(out, ICRC_LEN);
        uint32_t icrc = icrc_of(v, v->packet);

        icrc_emit(icrc, out);
        assert_memory_equal(out, v->packet + v->len - ICRC_LEN, ICRC_LEN);
        assert_true(icrc_matches(icrc, v->packet + v->len - ICRC_LEN));
    }
}

static void test_icrc_is_the_same_however_the_payload_is_cut(void **state)
{
    const struct vector *v = &vectors[1];
    const uint8_t *payload = v->packet + v->headers_len;
    size_t len = v->len - v->headers_len - ICRC_LEN;

    (void)state;
    for (size_t first = 0; first <= len; first++) {
        uint32_t icrc = v->begin(v->packet);

        icrc = icrc_add(icrc, payload, first);
        icrc = icrc_add(icrc, payload + first, len - first);
        assert_true(icrc_matches(icrc, payload + len));
    }
}

/* Change every bit: only bits that a switch may change leave the ICRC as it
 * is. */
static void check_every_bit(const struct vector *v, const uint8_t *may_change)
{
    uint8_t packet[128];

    assert_true(v->len <= sizeof(packet));
    for (size_t bit = 0; bit < (v->len - ICRC_LEN) * 8; bit++) {
        size_t byte = bit / 8;
        uint8_t mask = (uint8_t)(0x80 >> bit % 8);
        bool free_bit = byte < v->headers_len && (may_change[byte] & mask) != 0;

        memcpy(packet, v->packet, v->len);
        packet[byte] ^= mask;
        assert_int_equal(
            icrc_matches(icrc_of(v, packet), packet + v->len - ICRC_LEN),
            free_bit);
    }
}

static void test_icrc_ipv4_covers_all_but_the_variant_fields(void **state)
{
    static const uint8_t may_change[ICRC_IPV4_HEADERS_LEN] = {
        [1] = 0xff,  [8] = 0xff,  [10] = 0xff,
        [11] = 0xff,                           /* TOS TTL checksum */
        [26] = 0xff, [27] = 0xff, [32] = 0xff, /* UDP checksum, BTH byte 4 */
    };

    (void)state;
    check_every_bit(&vectors[2], may_change);
}

static void test_icrc_ipv6_covers_all_but_the_variant_fields(void **state)
{
    static const uint8_t may_change[ICRC_IPV6_HEADERS_LEN] = {
        [0] = 0x0f,  [1] = 0xff,
        [2] = 0xff,  [3] = 0xff, /* class, flow label */
        [7] = 0xff,  [46] = 0xff,
        [47] = 0xff, [52] = 0xff,
    };

    (void)state;
    check_every_bit(&vectors[3], may_change);
}

/* There is no published packet: the bytes are written here after annex A16. */
static void test_icrc_grh_is_ipv6_without_udp(void **state)
{
    uint8_t plain[8 + ICRC_GRH_HEADERS_LEN], *grh = plain + 8;
    uint8_t headers[ICRC_GRH_HEADERS_LEN];

    (void)state;
    memcpy(headers, roce_ipv6, 40);
    memcpy(headers + 40, roce_ipv6 + 48, 12);
    memset(plain, 0xff, 8);
    memcpy(grh, headers, sizeof(headers));
    grh[0] |= 0x0f;
    grh[1] = grh[2] = grh[3] = grh[7] = grh[44] = 0xff;
    assert_int_equal(icrc_begin_grh(headers),
                     crc32_update(0, plain, sizeof(plain)));
}
