/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP header: see tcp.h. */
#include "net/wire/tcp.h"

#include "lib/bytes.h"
#include "net/wire/checksum.h"
#include "net/wire/ipv4.h"

enum {
    OPTION_END = 0,
    OPTION_NOP = 1,
    OPTION_MSS = 2,
    OPTION_SHIFT = 3,
    OPTION_SACK_PERMITTED = 4,
    OPTION_SACK = 5,
    OPTION_TIMES = 8,
};

enum {
    MSS_LEN = 4,
    SHIFT_LEN = 3,
    SACK_PERMITTED_LEN = 2,
    SACK_LEN = 2, /* and 8 for each block */
    TIMES_LEN = 10,
    BLOCK_LEN = 8,
};

_Static_assert(TCP_URGENT + 2 == TCP_LEN, "TCP without options is 20 bytes");

static bool sack_parse(struct tcp_options *options, const uint8_t *option,
                       size_t len)
{
    if (len < SACK_LEN + BLOCK_LEN || (len - SACK_LEN) % BLOCK_LEN != 0 ||
        (len - SACK_LEN) / BLOCK_LEN > TCP_SACKS_MAX) {
        return false;
    }
    options->sack_count = (uint8_t)((len - SACK_LEN) / BLOCK_LEN);
    for (size_t i = 0; i < options->sack_count; i++) {
        const uint8_t *block = option + SACK_LEN + i * BLOCK_LEN;

        options->sacks[i] =
            (struct tcp_block){get_be32(block), get_be32(block + 4)};
    }
    return true;
}

/* One option that has a length.  Unknown kinds are skipped. */
static bool option_parse(struct tcp_options *options, const uint8_t *option,
                         size_t len)
{
    switch (option[0]) {
    case OPTION_MSS:
        options->has_mss = len == MSS_LEN;
        options->mss = options->has_mss ? get_be16(option + 2) : 0;
        return options->has_mss;
    case OPTION_SHIFT:
        options->has_shift = len == SHIFT_LEN;
        options->shift =
            options->has_shift ? (uint8_t)MIN(option[2], TCP_SHIFT_MAX) : 0;
        return options->has_shift;
    case OPTION_SACK_PERMITTED:
        options->sack_permitted = len == SACK_PERMITTED_LEN;
        return options->sack_permitted;
    case OPTION_SACK:
        return sack_parse(options, option, len);
    case OPTION_TIMES:
        options->has_times = len == TIMES_LEN;
        if (options->has_times) {
            options->tsval = get_be32(option + 2);
            options->tsecr = get_be32(option + 6);
        }
        return options->has_times;
    default:
        return true;
    }
}

static bool options_parse(struct tcp_options *options, const uint8_t *buf,
                          size_t len)
{
    size_t at = 0;

    while (at < len && buf[at] != OPTION_END) {
        if (buf[at] == OPTION_NOP) {
            at++;
            continue;
        }
        if (len - at < 2 || buf[at + 1] < 2 || buf[at + 1] > len - at ||
            !option_parse(options, buf + at, buf[at + 1])) {
            return false;
        }
        at += buf[at + 1];
    }
    return true;
}

bool tcp_header_parse(struct tcp_header *tcp, const uint8_t *buf, size_t len)
{
    size_t header_len;

    if (len < TCP_LEN) {
        return false;
    }
    header_len = (size_t)(buf[TCP_DATA_OFFSET] >> 4) * 4;
    if (header_len < TCP_LEN || header_len > len) {
        return false;
    }
    *tcp = (struct tcp_header){
        .src_port = get_be16(buf + TCP_SRC_PORT),
        .dst_port = get_be16(buf + TCP_DST_PORT),
        .seq = get_be32(buf + TCP_SEQ),
        .ack = get_be32(buf + TCP_ACK_NUMBER),
        .window = get_be16(buf + TCP_WINDOW),
        .checksum = get_be16(buf + TCP_CHECKSUM),
        .urgent = get_be16(buf + TCP_URGENT),
        .flags = buf[TCP_FLAGS],
        .header_len = (uint8_t)header_len,
    };
    return options_parse(&tcp->options, buf + TCP_LEN, header_len - TCP_LEN);
}

size_t tcp_header_bytes(const struct tcp_header *tcp)
{
    const struct tcp_options *options = &tcp->options;
    size_t len = TCP_LEN;

    len += options->has_mss ? MSS_LEN : 0;
    if (options->has_times) {
        len += TCP_TIMES_LEN; /* SACK-permitted takes the place of its NOPs */
    } else if (options->sack_permitted) {
        len += 2 + SACK_PERMITTED_LEN;
    }
    len += options->has_shift ? 1 + SHIFT_LEN : 0;
    if (options->sack_count != 0) {
        len += 2 + SACK_LEN + (size_t)options->sack_count * BLOCK_LEN;
    }
    return len;
}

/* Two bytes that align what follows: SACK-permitted if it is wanted. */
static uint8_t *pair_emit(uint8_t *at, bool sack_permitted)
{
    at[0] = sack_permitted ? OPTION_SACK_PERMITTED : OPTION_NOP;
    at[1] = sack_permitted ? SACK_PERMITTED_LEN : OPTION_NOP;
    return at + 2;
}

static uint8_t *sack_emit(uint8_t *at, const struct tcp_options *options)
{
    at = pair_emit(at, false);
    at[0] = OPTION_SACK;
    at[1] = (uint8_t)(SACK_LEN + options->sack_count * BLOCK_LEN);
    at += SACK_LEN;
    for (size_t i = 0; i < options->sack_count; i++, at += BLOCK_LEN) {
        put_be32(at, options->sacks[i].left);
        put_be32(at + 4, options->sacks[i].right);
    }
    return at;
}

/* Linux's order: MSS, SACK-permitted, timestamps, NOP, window scale. */
static uint8_t *options_emit(uint8_t *at, const struct tcp_options *options)
{
    if (options->has_mss) {
        at[0] = OPTION_MSS;
        at[1] = MSS_LEN;
        put_be16(at + 2, options->mss);
        at += MSS_LEN;
    }
    if (options->has_times) {
        at = pair_emit(at, options->sack_permitted);
        at[0] = OPTION_TIMES;
        at[1] = TIMES_LEN;
        put_be32(at + 2, options->tsval);
        put_be32(at + 6, options->tsecr);
        at += TIMES_LEN;
    } else if (options->sack_permitted) {
        at = pair_emit(pair_emit(at, false), true);
    }
    if (options->has_shift) {
        at[0] = OPTION_NOP;
        at[1] = OPTION_SHIFT;
        at[2] = SHIFT_LEN;
        at[3] = options->shift;
        at += 1 + SHIFT_LEN;
    }
    return options->sack_count != 0 ? sack_emit(at, options) : at;
}

size_t tcp_header_emit(const struct tcp_header *tcp, uint8_t *buf)
{
    size_t len = tcp_header_bytes(tcp);
    const uint8_t *end;

    ASSERT(len <= TCP_LEN_MAX && len % 4 == 0);
    put_be16(buf + TCP_SRC_PORT, tcp->src_port);
    put_be16(buf + TCP_DST_PORT, tcp->dst_port);
    put_be32(buf + TCP_SEQ, tcp->seq);
    put_be32(buf + TCP_ACK_NUMBER, tcp->ack);
    buf[TCP_DATA_OFFSET] = (uint8_t)(len / 4 << 4);
    buf[TCP_FLAGS] = tcp->flags;
    put_be16(buf + TCP_WINDOW, tcp->window);
    put_be16(buf + TCP_CHECKSUM, tcp->checksum);
    put_be16(buf + TCP_URGENT, tcp->urgent);
    end = options_emit(buf + TCP_LEN, &tcp->options);
    ASSERT(end == buf + len);
    return len;
}

uint16_t tcp_checksum(const struct ip_addr *src, const struct ip_addr *dst,
                      const uint8_t *buf, size_t len)
{
    uint32_t sum = checksum_pseudo(src, dst, IP_PROTOCOL_TCP, len);

    return checksum_finish(checksum_add(sum, buf, len));
}
