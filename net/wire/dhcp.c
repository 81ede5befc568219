/* SPDX-License-Identifier: BSD-2-Clause */
/* DHCP messages: see dhcp.h. */
#include "net/wire/dhcp.h"

#include <string.h>

#include "lib/bytes.h"

_Static_assert(DHCP_COOKIE + 4 == DHCP_OPTIONS, "the options follow it");
_Static_assert(DHCP_FILE + 128 == DHCP_COOKIE, "file is 128 bytes");

enum {
    OP_REQUEST = 1,
    OP_REPLY = 2,
    HTYPE_ETHERNET = 1,
    HLEN_ETHERNET = 6,
    BROADCAST = 0x8000,
    OVERLOAD_FILE = 1, /* further fields that hold options */
    OVERLOAD_SNAME = 2,
};

#define COOKIE 0x63825363u

/* ---- Parsing. */

struct reader {
    struct dhcp *dhcp;
    uint32_t seen[8]; /* one bit per option code */
    uint8_t overload;
};

/*
 * Every option but an address list may come once: RFC 3396 would join a second
 * one to the first, which would then be too long.
 */
static bool is_first(struct reader *r, uint8_t code)
{
    uint32_t bit = 1u << code % 32;
    bool is_new = (r->seen[code / 32] & bit) == 0;

    r->seen[code / 32] |= bit;
    return is_new;
}

static bool read_mask(struct dhcp *dhcp, uint32_t mask)
{
    uint32_t host = ~mask;

    if ((host & (host + 1)) != 0) {
        return false;
    }
    dhcp->has_mask = true;
    dhcp->prefix_bits = 0;
    for (; mask != 0; mask <<= 1) {
        dhcp->prefix_bits++;
    }
    return true;
}

static bool read_list(struct ip_addr *first, const uint8_t *data, uint8_t len)
{
    if (len == 0 || len % 4 != 0) {
        return false;
    }
    if (ip_addr_is_unspecified(first)) {
        *first = ip_addr_from_v4(get_be32(data));
    }
    return true;
}

static bool read_ip(struct ip_addr *ip, const uint8_t *data, uint8_t len)
{
    if (len != 4) {
        return false;
    }
    *ip = ip_addr_from_v4(get_be32(data));
    return true;
}

static bool read_u32(uint32_t *value, const uint8_t *data, uint8_t len)
{
    if (len != 4) {
        return false;
    }
    *value = get_be32(data);
    return true;
}

static bool read_u16(uint16_t *value, uint16_t least, const uint8_t *data,
                     uint8_t len)
{
    if (len != 2 || get_be16(data) < least) {
        return false;
    }
    *value = get_be16(data);
    return true;
}

static bool read_bytes(struct dhcp_bytes *bytes, uint8_t least,
                       const uint8_t *data, uint8_t len)
{
    *bytes = (struct dhcp_bytes){data, len};
    return len >= least;
}

static bool read_option(struct reader *r, uint8_t code, const uint8_t *data,
                        uint8_t len)
{
    enum { MTU_LEAST = 68, MAX_LEN_LEAST = 576 }; /* RFC 2132 5.1, 9.10 */
    struct dhcp *dhcp = r->dhcp;

    switch (code) {
    case DHCP_OPTION_ROUTER:
        return read_list(&dhcp->router, data, len);
    case DHCP_OPTION_NTP:
        return read_list(&dhcp->ntp_server, data, len);
    case DHCP_OPTION_MASK:
        return is_first(r, code) && len == 4 && read_mask(dhcp, get_be32(data));
    case DHCP_OPTION_HOST_NAME:
        return is_first(r, code) && read_bytes(&dhcp->host_name, 1, data, len);
    case DHCP_OPTION_MTU:
        return is_first(r, code) &&
               read_u16(&dhcp->mtu_bytes, MTU_LEAST, data, len);
    case DHCP_OPTION_REQUESTED:
        return is_first(r, code) && read_ip(&dhcp->requested, data, len);
    case DHCP_OPTION_LEASE:
        return is_first(r, code) && read_u32(&dhcp->lease_s, data, len);
    case DHCP_OPTION_OVERLOAD:
        if (!is_first(r, code) || len != 1 || data[0] == 0 ||
            data[0] > (OVERLOAD_FILE | OVERLOAD_SNAME)) {
            return false;
        }
        r->overload = data[0];
        return true;
    case DHCP_OPTION_TYPE:
        if (!is_first(r, code) || len != 1 || data[0] < DHCP_DISCOVER ||
            data[0] > DHCP_INFORM) {
            return false;
        }
        dhcp->type = data[0];
        return true;
    case DHCP_OPTION_SERVER:
        return is_first(r, code) && read_ip(&dhcp->server, data, len);
    case DHCP_OPTION_PARAMETERS:
        return is_first(r, code) && read_bytes(&dhcp->parameters, 1, data, len);
    case DHCP_OPTION_MAX_LEN:
        return is_first(r, code) &&
               read_u16(&dhcp->max_len_bytes, MAX_LEN_LEAST, data, len);
    case DHCP_OPTION_T1:
        return is_first(r, code) && read_u32(&dhcp->t1_s, data, len);
    case DHCP_OPTION_T2:
        return is_first(r, code) && read_u32(&dhcp->t2_s, data, len);
    case DHCP_OPTION_CLIENT:
        return is_first(r, code) && read_bytes(&dhcp->client, 2, data, len);
    default:
        return true;
    }
}

/* @return false when an option is malformed or the end option is missing */
static bool read_options(struct reader *r, const uint8_t *buf, size_t len)
{
    size_t at = 0;

    while (at < len) {
        uint8_t code = buf[at++];

        if (code == DHCP_OPTION_END) {
            return true;
        }
        if (code == DHCP_OPTION_PAD) {
            continue;
        }
        if (at == len || buf[at] > len - at - 1 ||
            !read_option(r, code, buf + at + 1, buf[at])) {
            return false;
        }
        at += buf[at] + (size_t)1;
    }
    return false;
}

bool dhcp_parse(struct dhcp *dhcp, const uint8_t *buf, size_t len)
{
    struct reader r = {.dhcp = dhcp};

    if (len <= DHCP_OPTIONS ||
        (buf[DHCP_OP] != OP_REQUEST && buf[DHCP_OP] != OP_REPLY) ||
        buf[DHCP_HTYPE] != HTYPE_ETHERNET || buf[DHCP_HLEN] != HLEN_ETHERNET ||
        get_be32(buf + DHCP_COOKIE) != COOKIE) {
        return false;
    }
    *dhcp = (struct dhcp){
        .is_reply = buf[DHCP_OP] == OP_REPLY,
        .is_broadcast = get_be16(buf + DHCP_FLAGS) & BROADCAST,
        .secs = get_be16(buf + DHCP_SECS),
        .xid = get_be32(buf + DHCP_XID),
        .ciaddr = ip_addr_from_v4(get_be32(buf + DHCP_CIADDR)),
        .yiaddr = ip_addr_from_v4(get_be32(buf + DHCP_YIADDR)),
    };
    memcpy(dhcp->chaddr.bytes, buf + DHCP_CHADDR, sizeof(dhcp->chaddr.bytes));
    return read_options(&r, buf + DHCP_OPTIONS, len - DHCP_OPTIONS) &&
           (!(r.overload & OVERLOAD_FILE) ||
            read_options(&r, buf + DHCP_FILE, DHCP_COOKIE - DHCP_FILE)) &&
           (!(r.overload & OVERLOAD_SNAME) ||
            read_options(&r, buf + DHCP_SNAME, DHCP_FILE - DHCP_SNAME)) &&
           dhcp->type != 0;
}

/* ---- Emitting. */

struct writer {
    uint8_t *buf;
    size_t len, room;
    bool is_short;
};

static void put_option(struct writer *w, uint8_t code, const void *data,
                       size_t len)
{
    if (w->room - w->len < len + 2) {
        w->is_short = true;
        return;
    }
    w->buf[w->len] = code;
    w->buf[w->len + 1] = (uint8_t)len;
    memcpy(w->buf + w->len + 2, data, len);
    w->len += len + 2;
}

static void put_u16(struct writer *w, uint8_t code, uint16_t value)
{
    uint8_t data[2];

    if (value != 0) {
        put_be16(data, value);
        put_option(w, code, data, sizeof(data));
    }
}

static void put_u32(struct writer *w, uint8_t code, uint32_t value)
{
    uint8_t data[4];

    if (value != 0) {
        put_be32(data, value);
        put_option(w, code, data, sizeof(data));
    }
}

static void put_ip(struct writer *w, uint8_t code, const struct ip_addr *ip)
{
    put_u32(w, code, ip_addr_to_v4(ip));
}

static void put_bytes(struct writer *w, uint8_t code,
                      const struct dhcp_bytes *bytes)
{
    if (bytes->len_bytes != 0) {
        put_option(w, code, bytes->bytes, bytes->len_bytes);
    }
}

static void put_options(struct writer *w, const struct dhcp *dhcp)
{
    put_option(w, DHCP_OPTION_TYPE, &dhcp->type, 1);
    put_bytes(w, DHCP_OPTION_CLIENT, &dhcp->client);
    put_ip(w, DHCP_OPTION_REQUESTED, &dhcp->requested);
    put_ip(w, DHCP_OPTION_SERVER, &dhcp->server);
    put_u16(w, DHCP_OPTION_MAX_LEN, dhcp->max_len_bytes);
    put_bytes(w, DHCP_OPTION_HOST_NAME, &dhcp->host_name);
    put_bytes(w, DHCP_OPTION_PARAMETERS, &dhcp->parameters);
    put_u32(w, DHCP_OPTION_LEASE, dhcp->lease_s);
    put_u32(w, DHCP_OPTION_T1, dhcp->t1_s);
    put_u32(w, DHCP_OPTION_T2, dhcp->t2_s);
    if (dhcp->has_mask) {
        uint8_t mask[4];

        put_be32(mask, (uint32_t) ~(0xffffffffull >> dhcp->prefix_bits));
        put_option(w, DHCP_OPTION_MASK, mask, sizeof(mask));
    }
    put_ip(w, DHCP_OPTION_ROUTER, &dhcp->router);
    put_ip(w, DHCP_OPTION_NTP, &dhcp->ntp_server);
    put_u16(w, DHCP_OPTION_MTU, dhcp->mtu_bytes);
}

size_t dhcp_emit(const struct dhcp *dhcp, uint8_t *buf, size_t room)
{
    struct writer w = {.buf = buf, .len = DHCP_OPTIONS};

    if (room < DHCP_LEN_MIN) {
        return 0;
    }
    w.room = room - 1; /* keep one byte for the end option */
    memset(buf, 0, DHCP_LEN_MIN);
    buf[DHCP_OP] = dhcp->is_reply ? OP_REPLY : OP_REQUEST;
    buf[DHCP_HTYPE] = HTYPE_ETHERNET;
    buf[DHCP_HLEN] = HLEN_ETHERNET;
    put_be32(buf + DHCP_XID, dhcp->xid);
    put_be16(buf + DHCP_SECS, dhcp->secs);
    put_be16(buf + DHCP_FLAGS, dhcp->is_broadcast ? BROADCAST : 0);
    put_be32(buf + DHCP_CIADDR, ip_addr_to_v4(&dhcp->ciaddr));
    put_be32(buf + DHCP_YIADDR, ip_addr_to_v4(&dhcp->yiaddr));
    memcpy(buf + DHCP_CHADDR, dhcp->chaddr.bytes, sizeof(dhcp->chaddr.bytes));
    put_be32(buf + DHCP_COOKIE, COOKIE);
    put_options(&w, dhcp);
    if (w.is_short) {
        return 0;
    }
    buf[w.len++] = DHCP_OPTION_END;
    return MAX(w.len, (size_t)DHCP_LEN_MIN);
}
