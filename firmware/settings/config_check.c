/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/settings/config_check.h"

#include <string.h>

#include "firmware/text/ip_text.h"
#include "firmware/hal/log.h"

enum { OWN_MAX = 2 * CONFIG_PORTS + CONFIG_EXTRA_ADDRESSES, SPEED_10G = 10 };

/* One of the drive's addresses, and where it is configured. */
struct own {
    char key[CONFIG_KEY_MAX + 1];
    struct ip_addr ip;
    uint8_t prefix;
};

struct check {
    const struct config *config;
    config_mistake *tell;
    void *ctx;
    unsigned int mistakes;
    unsigned int own_count;
    struct own own[OWN_MAX];
};

#define MISTAKE(check, ...)                                                    \
    do {                                                                       \
        struct config_error error_;                                            \
                                                                               \
        log_format(error_.text, sizeof(error_.text), __VA_ARGS__);             \
        (check)->mistakes++;                                                   \
        (check)->tell((check)->ctx, error_.text);                              \
    } while (0)

/* ---- Addresses */

/* Whether the first `bits` of both addresses are equal. */
static bool is_same_net(const struct ip_addr *a, const struct ip_addr *b,
                        unsigned int bits)
{
    for (unsigned int i = 0; i < 16 && 8 * i < bits; i++) {
        unsigned int left = bits - 8 * i;
        uint8_t mask = (uint8_t)(left >= 8 ? 0xff : 0xff00 >> left);

        if ((a->bytes[i] ^ b->bytes[i]) & mask) {
            return false;
        }
    }
    return true;
}

/*
 * Whether the address can be a host's unicast address: RFC 1122 3.2.1.3, RFC
 * 4291.
 */
static bool is_host(const struct ip_addr *ip)
{
    static const struct ip_addr loopback = {.bytes = {[15] = 1}};
    uint32_t first = ip_addr_to_v4(ip) >> 24;

    if (ip_addr_is_v4(ip)) {
        return first != 0 && first != 127 && first < 224;
    }
    return !ip_addr_is_unspecified(ip) && !ip_addr_equal(ip, &loopback) &&
           ip->bytes[0] != 0xff;
}

/*
 * Whether the address is neither its network's own address nor the broadcast
 * address.
 */
static bool is_host_of_net(const struct ip_addr *ip, uint8_t prefix)
{
    uint32_t rest;

    if (!ip_addr_is_v4(ip) || prefix >= 31) {
        return is_host(ip);
    }
    rest = ip_addr_to_v4(ip) & 0xffffffff >> prefix;
    return is_host(ip) && rest != 0 && rest != 0xffffffff >> prefix;
}

static void check_own(struct check *check, const char *key,
                      const struct ip_addr *ip, uint8_t prefix)
{
    struct own *own = &check->own[check->own_count];

    if (prefix == 0 || !is_host_of_net(ip, prefix)) {
        MISTAKE(check, "%s: %s/%u cannot be the address of a host", key,
                ip_text(ip).text, prefix);
        return;
    }
    for (unsigned int i = 0; i < check->own_count; i++) {
        if (ip_addr_equal(&check->own[i].ip, ip)) {
            MISTAKE(check, "%s: %s is the address %s already", key,
                    ip_text(ip).text, check->own[i].key);
            return;
        }
    }
    log_format(own->key, sizeof(own->key), "%s", key);
    own->ip = *ip;
    own->prefix = prefix;
    check->own_count++;
}

static bool is_link_local(const struct ip_addr *ip)
{
    return ip->bytes[0] == 0xfe && (ip->bytes[1] & 0xc0) == 0x80;
}

/* @param own_prefix  0: the port has no address of that family */
static void check_gateway(struct check *check, unsigned int port,
                          const char *family, const struct ip_addr *gateway,
                          const struct ip_addr *own, uint8_t own_prefix)
{
    unsigned int bits = own_prefix + (ip_addr_is_v4(gateway) ? 96u : 0u);

    if (ip_addr_is_unspecified(gateway)) {
        return;
    }
    if (own_prefix == 0) {
        MISTAKE(check, "port.%u.%s-gateway: set port.%u.%s too, or choose none",
                port, family, port, family);
    } else if (!is_host(gateway)) {
        MISTAKE(check, "port.%u.%s-gateway: %s cannot be the address of a host",
                port, family, ip_text(gateway).text);
    } else if (!is_same_net(gateway, own, bits) && !is_link_local(gateway)) {
        MISTAKE(check, "port.%u.%s-gateway: %s is outside the port's network",
                port, family, ip_text(gateway).text);
    } else if (ip_addr_equal(gateway, own)) {
        MISTAKE(check, "port.%u.%s-gateway: %s is the port's own address", port,
                family, ip_text(gateway).text);
    }
}

/* Refuse IPv4-mapped addresses in IPv6 fields, which only a binary record can
 * have. */
static bool check_family(struct check *check, unsigned int port,
                         const char *what, const struct ip_addr *ip)
{
    if (!ip_addr_is_v4(ip) || ip_addr_is_unspecified(ip)) {
        return true;
    }
    MISTAKE(check, "port.%u.%s: %s is an IPv4 address", port, what,
            ip_text(ip).text);
    return false;
}

static void check_port(struct check *check, unsigned int i)
{
    const struct config_port *port = &check->config->port[i];
    struct ip_addr ipv4 = ip_addr_from_v4(get_be32(port->ipv4));
    struct ip_addr ipv6 = ip_addr_from_bytes(port->ipv6);
    struct ip_addr gateway4 = ip_addr_from_v4(get_be32(port->ipv4_gateway));
    struct ip_addr gateway6 = ip_addr_from_bytes(port->ipv6_gateway);
    char key[CONFIG_KEY_MAX + 1];

    if (port->has_ipv4) {
        log_format(key, sizeof(key), "port.%u.ipv4", i);
        check_own(check, key, &ipv4, port->ipv4_prefix);
    }
    check_gateway(check, i, "ipv4", &gateway4, &ipv4,
                  port->has_ipv4 ? port->ipv4_prefix : 0);
    if (port->has_ipv6 && check_family(check, i, "ipv6", &ipv6)) {
        log_format(key, sizeof(key), "port.%u.ipv6", i);
        check_own(check, key, &ipv6, port->ipv6_prefix);
    }
    if (check_family(check, i, "ipv6-gateway", &gateway6)) {
        check_gateway(check, i, "ipv6", &gateway6, &ipv6,
                      port->has_ipv6 ? port->ipv6_prefix : 0);
    }
    if (port->fec == CONFIG_FEC_RS && port->speed_gbps == SPEED_10G) {
        MISTAKE(check, "port.%u.fec: rs needs 25 Gb/s, but port.%u.speed is 10",
                i, i);
    }
}

static void check_extra(struct check *check, unsigned int i)
{
    const struct config_address *extra = &check->config->network.extra[i];
    struct ip_addr ip = ip_addr_from_bytes(extra->ip);
    char key[CONFIG_KEY_MAX + 1];

    log_format(key, sizeof(key), "address.%u.ip", i);
    if (extra->is_used) {
        check_own(check, key, &ip, extra->prefix);
    } else if (extra->port != 0 || extra->vlan != 0) {
        MISTAKE(check, "%s: set it too, or choose 0 for its port and VLAN",
                key);
    }
}

/* ---- The whole configuration. */

static void check_both_ports(struct check *check)
{
    const struct config_port *port = check->config->port;
    struct ip_addr server =
        ip_addr_from_bytes(check->config->services.sntp_server);

    if (port[0].speed_gbps != port[1].speed_gbps) {
        MISTAKE(check,
                "port.1.speed: %u differs from port.0.speed, %u; both ports "
                "need the same speed",
                port[1].speed_gbps, port[0].speed_gbps);
    }
    if (check->config->network.lag != CONFIG_LAG_OFF &&
        port[0].mtu_bytes != port[1].mtu_bytes) {
        MISTAKE(check,
                "port.1.mtu: %u differs from port.0.mtu, %u; aggregated "
                "ports need the same MTU",
                port[1].mtu_bytes, port[0].mtu_bytes);
    }
    if (!ip_addr_is_unspecified(&server) && !is_host(&server)) {
        MISTAKE(check, "sntp.server: %s cannot be the address of a host",
                ip_text(&server).text);
    }
}

unsigned int config_check(const struct config *config, config_mistake *tell,
                          void *ctx)
{
    struct check check = {.config = config, .tell = tell, .ctx = ctx};

    for (unsigned int i = 0; i < CONFIG_PORTS; i++) {
        check_port(&check, i);
    }
    for (unsigned int i = 0; i < CONFIG_EXTRA_ADDRESSES; i++) {
        check_extra(&check, i);
    }
    check_both_ports(&check);
    return check.mistakes;
}
