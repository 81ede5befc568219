/* SPDX-License-Identifier: BSD-2-Clause */
#include "literal.h"

#include <string.h>

enum {
    TYPE_IPV4 = 0x0800,
    TYPE_IPV6 = 0x86dd,
    TYPE_VLAN = 0x8100,
    TAG_LEN = 4,
    PROTOCOL_ICMP = 1,
    PROTOCOL_UDP = 17,
    PROTOCOL_ICMPV6 = 58,
    IPV4_HEADER = 20,
    IPV6_HEADER = 40,
    UDP_HEADER = 8,
    ROCE_PORT = 4791,
    ICRC_BYTES = 4,
    BTH_RESERVED = 4, /* The byte of the BTH that has FECN and BECN. */
    MASKED_MAX = 48,  /* IPv6 and UDP header */
};

/* ---- Checksums: RFC 1071; annex A17.3.3 for the ICRC. */

static unsigned int word_at(const uint8_t *p)
{
    return (unsigned int)p[0] << 8 | p[1];
}

static void set_word(uint8_t *p, unsigned int value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

static unsigned int add_words(unsigned int sum, const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        sum += i % 2 == 0 ? (unsigned int)p[i] << 8 : p[i];
    }
    return sum;
}

/* Write to `to` the checksum of `sum` and of the bytes at `p`. */
static void put_checksum(uint8_t *to, unsigned int sum, const uint8_t *p,
                         size_t len)
{
    set_word(to, 0);
    sum = add_words(sum, p, len);
    while (sum > 0xffff) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    set_word(to, ~sum & 0xffff);
}

static uint32_t crc32_add(uint32_t crc, const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        for (unsigned int bit = 0; bit < 8; bit++) {
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
        }
    }
    return crc;
}

/*
 * Fill the fields of an IP header that routers may change: the ICRC is computed
 * as if their bits were ones.  @return the length of the header
 */
static size_t mask_ip(uint8_t *ip)
{
    if (ip[0] >> 4 == 6) {
        memcpy(ip, (uint8_t[]){0x6f, 0xff, 0xff, 0xff}, 4); /* class, flow */
        ip[7] = 0xff;                                       /* hop limit */
        return IPV6_HEADER;
    }
    ip[1] = 0xff;              /* type of service */
    ip[8] = 0xff;              /* time to live */
    set_word(ip + 10, 0xffff); /* header checksum */
    return IPV4_HEADER;
}

static void put_icrc(uint8_t *ip, size_t len)
{
    static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff,
                                    0xff, 0xff, 0xff, 0xff};
    uint8_t head[MASKED_MAX + BTH_RESERVED + 1];
    uint8_t *at = ip + len - ICRC_BYTES;
    size_t bth, head_len;
    uint32_t crc;

    memcpy(head, ip, sizeof(head));
    bth = mask_ip(head) + UDP_HEADER;
    set_word(head + bth - 2, 0xffff); /* UDP checksum */
    head[bth + BTH_RESERVED] = 0xff;
    head_len = bth + BTH_RESERVED + 1;
    crc = crc32_add(0xffffffff, ones, sizeof(ones));
    crc = crc32_add(crc, head, head_len);
    crc = ~crc32_add(crc, ip + head_len, len - head_len - ICRC_BYTES);
    for (unsigned int i = 0; i < ICRC_BYTES; i++) {
        at[i] = (uint8_t)(crc >> 8 * i);
    }
}

static bool is_roce(uint8_t protocol, const uint8_t *l4)
{
    return protocol == PROTOCOL_UDP && word_at(l4 + 2) == ROCE_PORT;
}

/* @param addresses  both addresses of the IP header */
static void seal_l4(uint8_t protocol, uint8_t *l4, size_t len,
                    const uint8_t *addresses, size_t addresses_len)
{
    unsigned int pseudo =
        add_words((unsigned int)(protocol + len), addresses, addresses_len);

    if (protocol == PROTOCOL_ICMP) {
        put_checksum(l4 + 2, 0, l4, len);
    } else if (protocol == PROTOCOL_ICMPV6) {
        put_checksum(l4 + 2, pseudo, l4, len);
    } else if (protocol == PROTOCOL_UDP && word_at(l4 + 6) != 0) {
        put_checksum(l4 + 6, pseudo, l4, len);
    }
}

void literal_seal(struct literal *literal)
{
    uint8_t *ip = literal->bytes + LITERAL_IP;
    unsigned int type = word_at(literal->bytes + LITERAL_ETH_TYPE);

    if (type == TYPE_VLAN) {
        type = word_at(ip + 2);
        ip += TAG_LEN;
    }
    if (type == TYPE_IPV4) {
        size_t len = word_at(ip + 2);
        uint8_t *l4 = ip + IPV4_HEADER;

        put_checksum(ip + 10, 0, ip, IPV4_HEADER);
        if (is_roce(ip[9], l4)) {
            put_icrc(ip, len);
        }
        seal_l4(ip[9], l4, len - IPV4_HEADER, ip + 12, 8);
    } else if (type == TYPE_IPV6) {
        size_t len = word_at(ip + 4);

        if (is_roce(ip[6], ip + IPV6_HEADER)) {
            put_icrc(ip, IPV6_HEADER + len);
        }
        seal_l4(ip[6], ip + IPV6_HEADER, len, ip + 8, 32);
    }
}

/* ---- Frames. */

struct literal *literal_new(struct conf *conf, const uint8_t *bytes,
                            size_t len_bytes)
{
    struct literal *literal = conf_alloc(conf, sizeof(*literal));

    ASSERT(len_bytes <= sizeof(literal->bytes));
    memcpy(literal->bytes, bytes, len_bytes);
    literal->len_bytes = len_bytes;
    literal_seal(literal);
    conf_same(conf, "the literal frame with its checksums computed again",
              literal->bytes, bytes, len_bytes);
    return literal;
}

static void put_addresses(struct literal *literal, const struct ip_addr *src,
                          const struct ip_addr *dst)
{
    uint8_t *ip = literal->bytes + LITERAL_IP;
    unsigned int type = word_at(literal->bytes + LITERAL_ETH_TYPE);

    if (type == TYPE_VLAN) {
        type = word_at(ip + 2);
        ip += TAG_LEN;
    }
    if (type == TYPE_IPV4) {
        memcpy(ip + 12, src->bytes + 12, 4);
        memcpy(ip + 16, dst->bytes + 12, 4);
    } else {
        memcpy(ip + 8, src->bytes, 16);
        memcpy(ip + 24, dst->bytes, 16);
    }
}

static bool is_v6(const struct literal *literal)
{
    return word_at(literal->bytes + LITERAL_ETH_TYPE) == TYPE_IPV6;
}

void literal_to_drive(struct conf *conf, struct literal *literal)
{
    const struct conf_peer *peer = conf_peer(conf, 0, 0);
    bool v6 = is_v6(literal);

    conf_needs_ip(conf, 0, v6);
    memcpy(literal->bytes, conf_target(conf)->ports[0].mac.bytes, 6);
    memcpy(literal->bytes + 6, peer->mac.bytes, 6);
    put_addresses(literal, v6 ? &peer->ip6 : &peer->ip4,
                  conf_target_ip(conf, 0, v6));
}

void literal_to_peer(struct conf *conf, struct literal *literal)
{
    const struct conf_peer *peer = conf_peer(conf, 0, 0);
    bool v6 = is_v6(literal);

    conf_needs_ip(conf, 0, v6);
    memcpy(literal->bytes, peer->mac.bytes, 6);
    memcpy(literal->bytes + 6, conf_target(conf)->ports[0].mac.bytes, 6);
    put_addresses(literal, conf_target_ip(conf, 0, v6),
                  v6 ? &peer->ip6 : &peer->ip4);
}

void literal_send(struct conf *conf, struct literal *literal)
{
    literal_seal(literal);
    conf_send_frame(conf, 0, literal->bytes, literal->len_bytes, 0);
}

struct wanted {
    size_t at, len_bytes;
    const void *bytes;
};

static bool has_bytes(const struct packet *packet, const void *ctx)
{
    const struct wanted *wanted = ctx;

    return packet->port == 0 &&
           packet->len_bytes >= wanted->at + wanted->len_bytes &&
           memcmp(packet->frame + wanted->at, wanted->bytes,
                  wanted->len_bytes) == 0;
}

const uint8_t *literal_take(struct conf *conf, const char *what, size_t at,
                            const void *bytes, size_t len_bytes)
{
    struct wanted wanted = {at, len_bytes, bytes};
    const struct packet *packet = conf_take(conf, what, has_bytes, &wanted);
    struct literal *sealed = conf_alloc(conf, sizeof(*sealed));

    conf_check(conf, packet->len_bytes <= sizeof(sealed->bytes),
               "the frame for '%s' is too long: %zu bytes", what,
               packet->len_bytes);
    memcpy(sealed->bytes, packet->frame, packet->len_bytes);
    sealed->len_bytes = packet->len_bytes;
    literal_seal(sealed);
    conf_same(conf, "the frame, with its checksums and ICRC computed again",
              packet->frame, sealed->bytes, packet->len_bytes);
    return packet->frame;
}
