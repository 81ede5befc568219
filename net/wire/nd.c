/* SPDX-License-Identifier: BSD-2-Clause */
/* IPv6 neighbour discovery messages: see nd.h. */
#include "net/wire/nd.h"

#include "lib/bytes.h"
#include "net/wire/icmp.h"

enum { OPTION_UNIT = 8, LLADDR_OPTION_LEN = 8, PREFIX_OPTION_LEN = 32 };

struct option {
    uint8_t type;
    const uint8_t *buf;
    size_t len;
};

/*
 * Take the option at *offset.
 *
 * @return false when there is none; *ok is then true if the options ended
 *         exactly there, false if the last one is cut short
 */
static bool next_option(struct option *option, const uint8_t *buf, size_t len,
                        size_t *offset, bool *ok)
{
    size_t left = len - *offset;

    *ok = left == 0;
    if (left < OPTION_UNIT) {
        return false;
    }
    option->buf = buf + *offset;
    option->type = option->buf[ND_OPT_TYPE];
    option->len = (size_t)option->buf[ND_OPT_LENGTH] * OPTION_UNIT;
    *offset += option->len;
    return option->len != 0 && option->len <= left;
}

static bool parse_lladdr(struct mac_addr *mac, const uint8_t *buf, size_t len,
                         size_t offset, uint8_t type, bool *found)
{
    struct option option;
    bool ok;

    *found = false;
    while (next_option(&option, buf, len, &offset, &ok)) {
        if (option.type == type && option.len == LLADDR_OPTION_LEN) {
            memcpy(mac->bytes, option.buf + ND_OPT_LLADDR, 6);
            *found = true;
        }
    }
    return ok;
}

static size_t emit_lladdr(const struct mac_addr *mac, uint8_t type,
                          uint8_t *buf)
{
    buf[ND_OPT_TYPE] = type;
    buf[ND_OPT_LENGTH] = LLADDR_OPTION_LEN / OPTION_UNIT;
    memcpy(buf + ND_OPT_LLADDR, mac->bytes, 6);
    return LLADDR_OPTION_LEN;
}

static uint8_t lladdr_type(uint8_t nd_type)
{
    return nd_type == ND_NEIGHBOR_ADVERT ? ND_OPTION_TARGET_LLADDR
                                         : ND_OPTION_SOURCE_LLADDR;
}

struct ip_addr nd_solicited_node(const struct ip_addr *ip)
{
    struct ip_addr group = {
        .bytes = {0xff, 0x02, [11] = 0x01, [12] = 0xff},
    };

    memcpy(group.bytes + 13, ip->bytes + 13, 3);
    return group;
}

struct mac_addr nd_multicast_mac(const struct ip_addr *group)
{
    struct mac_addr mac = {{0x33, 0x33}};

    memcpy(mac.bytes + 2, group->bytes + 12, 4);
    return mac;
}

struct ip_addr nd_link_local(const struct mac_addr *mac)
{
    struct ip_addr ip = {
        .bytes = {0xfe, 0x80, [11] = 0xff, [12] = 0xfe},
    };

    memcpy(ip.bytes + 8, mac->bytes, 3);
    memcpy(ip.bytes + 13, mac->bytes + 3, 3);
    ip.bytes[8] ^= 2;
    return ip;
}

bool nd_neighbor_parse(struct nd_neighbor *nd, const uint8_t *buf, size_t len)
{
    uint8_t flags;

    if (len < ND_NEIGHBOR_OPTIONS || buf[ICMP_CODE] != 0 ||
        (buf[ICMP_TYPE] != ND_NEIGHBOR_SOLICIT &&
         buf[ICMP_TYPE] != ND_NEIGHBOR_ADVERT)) {
        return false;
    }
    flags = buf[ICMP_TYPE] == ND_NEIGHBOR_ADVERT ? buf[ND_FLAGS] : 0;
    *nd = (struct nd_neighbor){
        .type = buf[ICMP_TYPE],
        .router = flags & 0x80,
        .solicited = flags & 0x40,
        .override = flags & 0x20,
        .target = ip_addr_from_bytes(buf + ND_TARGET),
    };
    return !ip_addr_is_multicast(&nd->target) && !ip_addr_is_v4(&nd->target) &&
           parse_lladdr(&nd->lladdr, buf, len, ND_NEIGHBOR_OPTIONS,
                        lladdr_type(nd->type), &nd->has_lladdr);
}

size_t nd_neighbor_emit(const struct nd_neighbor *nd, const struct ip_addr *src,
                        const struct ip_addr *dst, uint8_t *buf)
{
    struct icmp icmp = {.type = nd->type};
    size_t len = ND_NEIGHBOR_OPTIONS;

    if (nd->type == ND_NEIGHBOR_ADVERT) {
        icmp.rest = (nd->router ? 1u << 31 : 0) |
                    (nd->solicited ? 1u << 30 : 0) |
                    (nd->override ? 1u << 29 : 0);
    }
    memcpy(buf + ND_TARGET, nd->target.bytes, 16);
    if (nd->has_lladdr) {
        len += emit_lladdr(&nd->lladdr, lladdr_type(nd->type), buf + len);
    }
    icmpv6_emit(&icmp, src, dst, buf, len);
    return len;
}

bool nd_router_solicit_parse(struct nd_router_solicit *rs, const uint8_t *buf,
                             size_t len)
{
    if (len < ND_RS_OPTIONS || buf[ICMP_CODE] != 0 ||
        buf[ICMP_TYPE] != ND_ROUTER_SOLICIT) {
        return false;
    }
    *rs = (struct nd_router_solicit){.has_lladdr = false};
    return parse_lladdr(&rs->lladdr, buf, len, ND_RS_OPTIONS,
                        ND_OPTION_SOURCE_LLADDR, &rs->has_lladdr);
}

size_t nd_router_solicit_emit(const struct nd_router_solicit *rs,
                              const struct ip_addr *src,
                              const struct ip_addr *dst, uint8_t *buf)
{
    const struct icmp icmp = {.type = ND_ROUTER_SOLICIT};
    size_t len = ND_RS_OPTIONS;

    if (rs->has_lladdr) {
        len += emit_lladdr(&rs->lladdr, ND_OPTION_SOURCE_LLADDR, buf + len);
    }
    icmpv6_emit(&icmp, src, dst, buf, len);
    return len;
}

static void parse_prefix(struct nd_router_advert *ra, const uint8_t *opt)
{
    if (ra->prefix_count == ND_RA_MAX_PREFIXES ||
        opt[ND_OPT_PREFIX_LEN] > 128) {
        return;
    }
    ra->prefixes[ra->prefix_count++] = (struct nd_prefix){
        .prefix = ip_addr_from_bytes(opt + ND_OPT_PREFIX),
        .valid_s = get_be32(opt + ND_OPT_PREFIX_VALID),
        .preferred_s = get_be32(opt + ND_OPT_PREFIX_PREFERRED),
        .prefix_bits = opt[ND_OPT_PREFIX_LEN],
        .on_link = opt[ND_OPT_PREFIX_FLAGS] & 0x80,
        .autonomous = opt[ND_OPT_PREFIX_FLAGS] & 0x40,
    };
}

bool nd_router_advert_parse(struct nd_router_advert *ra, const uint8_t *buf,
                            size_t len)
{
    size_t offset = ND_RA_OPTIONS;
    struct option option;
    bool ok;

    if (len < ND_RA_OPTIONS || buf[ICMP_CODE] != 0 ||
        buf[ICMP_TYPE] != ND_ROUTER_ADVERT) {
        return false;
    }
    *ra = (struct nd_router_advert){
        .hop_limit = buf[ND_RA_HOP_LIMIT],
        .managed = buf[ND_RA_FLAGS] & 0x80,
        .other = buf[ND_RA_FLAGS] & 0x40,
        .router_lifetime_s = get_be16(buf + ND_RA_LIFETIME),
        .reachable_ms = get_be32(buf + ND_RA_REACHABLE),
        .retrans_ms = get_be32(buf + ND_RA_RETRANS),
    };
    while (next_option(&option, buf, len, &offset, &ok)) {
        if (option.type == ND_OPTION_SOURCE_LLADDR &&
            option.len == LLADDR_OPTION_LEN) {
            memcpy(ra->lladdr.bytes, option.buf + ND_OPT_LLADDR, 6);
            ra->has_lladdr = true;
        } else if (option.type == ND_OPTION_MTU && option.len == OPTION_UNIT) {
            ra->mtu_bytes = get_be32(option.buf + ND_OPT_MTU);
        } else if (option.type == ND_OPTION_PREFIX &&
                   option.len == PREFIX_OPTION_LEN) {
            parse_prefix(ra, option.buf);
        }
    }
    return ok;
}
