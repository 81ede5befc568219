/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/config.h"

#include "firmware/store/config_layout.h"
#include "lib/bytes.h"
#include "lib/crc32.h"

#include <string.h>

enum {                   /* byte offsets; little-endian */
       CONFIG_MAGIC = 0, /* 8 bytes */
       CONFIG_VERSION =
           8, /* 16 bits; a new major version is not readable by old firmware */
       CONFIG_BODY_LENGTH = 10,
       CONFIG_SEQUENCE = 12,
       CONFIG_RESERVED = 16,
       CONFIG_CRC = 20, /* over the header before it and the body */

       BODY_SERVICES = CONFIG_BODY_MIN, /* the part after those of the ports */
       BODY_NETWORK = BODY_SERVICES + CONFIG_SERVICES_LEN,
       BODY_AOE = BODY_NETWORK + CONFIG_NETWORK_LEN,
};
_Static_assert(CONFIG_CRC + 4 == CONFIG_HEADER_LEN, "CRC ends the header");
_Static_assert(CONFIG_MAGIC == 0 && CONFIG_VERSION == CONFIG_MAGIC_LEN,
               "the magic begins the header");
_Static_assert(PORT_LEN == CONFIG_PORT_LEN, "");
_Static_assert(SERVICES_LEN == CONFIG_SERVICES_LEN, "");
_Static_assert(SERVICES_NAME + CONFIG_NAME_LEN <= SERVICES_LEN, "");
_Static_assert(NETWORK_LEN == CONFIG_NETWORK_LEN, "");
_Static_assert(AOE_LEN == CONFIG_AOE_LEN, "");
_Static_assert(CONFIG_EXTRA_ADDRESSES *ADDRESS_LEN == NETWORK_LAG, "");

static const uint8_t magic[8] = {'E', 'S', 'S', 'D', '-', 'C', 'F', 'G'};

#define VERSION 1

enum { ERASED = 0xff };

static uint32_t block_crc(const uint8_t *buf, size_t body_len)
{
    uint32_t crc = crc32_update(0, buf, CONFIG_CRC);

    return crc32_update(crc, buf + CONFIG_HEADER_LEN, body_len);
}

static bool port_is_valid(const struct config_port *port)
{
    return (port->speed_gbps == 10 || port->speed_gbps == 25) &&
           (unsigned int)port->fec <= FEC_MAX && port->mtu_bytes >= MTU_MIN &&
           port->mtu_bytes <= MTU_MAX && port->ipv4_prefix <= 32 &&
           port->ipv6_prefix <= 128 && port->vlan <= VLAN_MAX &&
           port->priority <= PRIORITY_MAX;
}

static bool port_parse(struct config_port *port, const uint8_t *buf)
{
    if (buf[PORT_FLAGS] & ~PORT_FLAGS_ALL) {
        return false;
    }
    *port = (struct config_port){
        .has_ipv4 = buf[PORT_FLAGS] & PORT_HAS_IPV4,
        .has_ipv6 = buf[PORT_FLAGS] & PORT_HAS_IPV6,
        .has_slaac = buf[PORT_FLAGS] & PORT_HAS_SLAAC,
        .is_probed = buf[PORT_FLAGS] & PORT_IS_PROBED,
        .vlan = get_le16(buf + PORT_VLAN),
        .priority = buf[PORT_PRIORITY],
        .speed_gbps = buf[PORT_SPEED],
        .fec = (enum config_fec)buf[PORT_FEC],
        .mtu_bytes = get_le16(buf + PORT_MTU),
        .ipv4_prefix = buf[PORT_IPV4_PREFIX],
        .ipv6_prefix = buf[PORT_IPV6_PREFIX],
    };
    memcpy(port->ipv4, buf + PORT_IPV4, 4);
    memcpy(port->ipv4_gateway, buf + PORT_IPV4_GATEWAY, 4);
    memcpy(port->ipv6, buf + PORT_IPV6, 16);
    memcpy(port->ipv6_gateway, buf + PORT_IPV6_GATEWAY, 16);
    return port_is_valid(port);
}

static void port_emit(const struct config_port *port, uint8_t *buf)
{
    memset(buf, 0, CONFIG_PORT_LEN);
    buf[PORT_FLAGS] = (uint8_t)((port->has_ipv4 ? PORT_HAS_IPV4 : 0) |
                                (port->has_ipv6 ? PORT_HAS_IPV6 : 0) |
                                (port->has_slaac ? PORT_HAS_SLAAC : 0) |
                                (port->is_probed ? PORT_IS_PROBED : 0));
    put_le16(buf + PORT_VLAN, port->vlan);
    buf[PORT_PRIORITY] = port->priority;
    buf[PORT_SPEED] = port->speed_gbps;
    buf[PORT_FEC] = (uint8_t)port->fec;
    put_le16(buf + PORT_MTU, port->mtu_bytes);
    buf[PORT_IPV4_PREFIX] = port->ipv4_prefix;
    buf[PORT_IPV6_PREFIX] = port->ipv6_prefix;
    memcpy(buf + PORT_IPV4, port->ipv4, 4);
    memcpy(buf + PORT_IPV4_GATEWAY, port->ipv4_gateway, 4);
    memcpy(buf + PORT_IPV6, port->ipv6, 16);
    memcpy(buf + PORT_IPV6_GATEWAY, port->ipv6_gateway, 16);
}

static bool name_is_printable(const char *name)
{
    bool is_over = false;

    for (size_t i = 0; i < CONFIG_NAME_LEN; i++) {
        is_over = is_over || name[i] == '\0';
        if (is_over ? name[i] != '\0' : name[i] <= ' ' || name[i] > '~') {
            return false;
        }
    }
    return true;
}

static bool services_parse(struct config_services *services, const uint8_t *buf)
{
    *services = (struct config_services){
        .lldp_hold = buf[SERVICES_LLDP_HOLD],
        .lldp_interval_s = get_le16(buf + SERVICES_LLDP_INTERVAL),
        .sntp_poll_s = get_le16(buf + SERVICES_SNTP_POLL),
    };
    for (size_t i = 0; i < CONFIG_PORTS; i++) {
        services->has_dhcp[i] = buf[SERVICES_DHCP] & BIT(i);
        services->lldp[i] = (enum config_lldp)buf[SERVICES_LLDP + i];
        if (buf[SERVICES_LLDP + i] > LLDP_MAX) {
            return false;
        }
    }
    memcpy(services->sntp_server, buf + SERVICES_SNTP_SERVER, 16);
    memcpy(services->name, buf + SERVICES_NAME, CONFIG_NAME_LEN);
    return buf[SERVICES_DHCP] < BIT(CONFIG_PORTS) &&
           services->lldp_hold <= LLDP_HOLD_MAX &&
           services->lldp_interval_s <= LLDP_INTERVAL_S_MAX &&
           name_is_printable(services->name);
}

static void services_emit(const struct config_services *services, uint8_t *buf)
{
    memset(buf, 0, CONFIG_SERVICES_LEN);
    for (size_t i = 0; i < CONFIG_PORTS; i++) {
        buf[SERVICES_DHCP] |= (uint8_t)(services->has_dhcp[i] ? BIT(i) : 0);
        buf[SERVICES_LLDP + i] = (uint8_t)services->lldp[i];
    }
    buf[SERVICES_LLDP_HOLD] = services->lldp_hold;
    put_le16(buf + SERVICES_LLDP_INTERVAL, services->lldp_interval_s);
    put_le16(buf + SERVICES_SNTP_POLL, services->sntp_poll_s);
    memcpy(buf + SERVICES_SNTP_SERVER, services->sntp_server, 16);
    memcpy(buf + SERVICES_NAME, services->name, CONFIG_NAME_LEN);
}

static bool is_v4_mapped(const uint8_t *ip)
{
    static const uint8_t prefix[12] = {[10] = 0xff, 0xff};

    return memcmp(ip, prefix, sizeof(prefix)) == 0;
}

static bool is_zero(const uint8_t *ip)
{
    static const uint8_t zero[16];

    return memcmp(ip, zero, sizeof(zero)) == 0;
}

static bool address_parse(struct config_address *address, const uint8_t *buf)
{
    *address = (struct config_address){0};
    if (buf[ADDRESS_PORT] == 0) {
        return true;
    }
    address->is_used = true;
    address->port = buf[ADDRESS_PORT] - 1;
    address->prefix = buf[ADDRESS_PREFIX];
    address->vlan = get_le16(buf + ADDRESS_VLAN);
    memcpy(address->ip, buf + ADDRESS_IP, 16);
    return address->port < CONFIG_PORTS && address->vlan <= VLAN_MAX &&
           address->prefix <= (is_v4_mapped(address->ip) ? 32 : 128) &&
           !is_zero(address->ip);
}

static void address_emit(const struct config_address *address, uint8_t *buf)
{
    memset(buf, 0, ADDRESS_LEN);
    if (!address->is_used) {
        return;
    }
    buf[ADDRESS_PORT] = (uint8_t)(address->port + 1);
    buf[ADDRESS_PREFIX] = address->prefix;
    put_le16(buf + ADDRESS_VLAN, address->vlan);
    memcpy(buf + ADDRESS_IP, address->ip, 16);
}

static bool network_parse(struct config_network *network, const uint8_t *buf)
{
    uint8_t lag = buf[NETWORK_LAG_FLAGS];
    uint8_t on = buf[NETWORK_ON];
    uint8_t off = buf[NETWORK_OFF];

    for (size_t i = 0; i < CONFIG_EXTRA_ADDRESSES; i++) {
        if (!address_parse(&network->extra[i],
                           buf + NETWORK_ADDRESSES + i * ADDRESS_LEN)) {
            return false;
        }
    }
    network->lag = (enum config_lag)buf[NETWORK_LAG];
    network->lacp_is_fast = lag & LAG_LACP_IS_FAST;
    network->lag_primary = lag & LAG_PRIMARY ? 1 : 0;
    network->lag_has_revert = lag & LAG_HAS_REVERT;
    network->has_roce_v1 = on & ON_ROCE_V1;
    network->has_echo = on & ON_ECHO;
    network->dhcp_is_fast = on & ON_FAST_DHCP;
    network->has_mdns = on & ON_MDNS;
    network->has_tcp_echo = on & ON_TCP_ECHO;
    network->has_nvme_tcp = on & ON_NVME_TCP;
    network->has_nvme_iwarp = on & ON_NVME_IWARP;
    network->has_iwarp_crc = !(off & OFF_IWARP_CRC);
    network->listed = (enum config_listed)buf[NETWORK_LISTED];
    network->tls = (enum config_tls)buf[NETWORK_TLS];
    network->has_dcqcn = !(off & OFF_DCQCN);
    network->has_cnp = !(off & OFF_CNP);
    network->pfc_priorities = (uint8_t)~buf[NETWORK_PFC_IGNORED];
    network->namespaces = (struct config_namespaces){
        .count = buf[NETWORK_NS_COUNT],
        .has_4096 = buf[NETWORK_NS_FLAGS] & NS_4K_BLOCKS,
        .size_mib = get_le16(buf + NETWORK_NS_SIZE),
    };
    network->profile = (enum config_profile)buf[NETWORK_PROFILE];
    return network->namespaces.count <= NS_COUNT_MAX &&
           buf[NETWORK_PROFILE] <= PROFILE_MAX &&
           buf[NETWORK_LISTED] <= LISTED_MAX && buf[NETWORK_TLS] <= TLS_MAX &&
           !(buf[NETWORK_NS_FLAGS] & ~NS_FLAGS_ALL) &&
           buf[NETWORK_LAG] <= LAG_MODE_MAX && !(lag & ~LAG_FLAGS_ALL) &&
           !(on & ~ON_ALL) && !(off & ~OFF_ALL);
}

static void network_emit(const struct config_network *network, uint8_t *buf)
{
    memset(buf, 0, CONFIG_NETWORK_LEN);
    for (size_t i = 0; i < CONFIG_EXTRA_ADDRESSES; i++) {
        address_emit(&network->extra[i],
                     buf + NETWORK_ADDRESSES + i * ADDRESS_LEN);
    }
    buf[NETWORK_LAG] = (uint8_t)network->lag;
    buf[NETWORK_LAG_FLAGS] =
        (uint8_t)((network->lacp_is_fast ? LAG_LACP_IS_FAST : 0) |
                  (network->lag_primary == 1 ? LAG_PRIMARY : 0) |
                  (network->lag_has_revert ? LAG_HAS_REVERT : 0));
    buf[NETWORK_ON] = (uint8_t)((network->has_roce_v1 ? ON_ROCE_V1 : 0) |
                                (network->has_echo ? ON_ECHO : 0) |
                                (network->dhcp_is_fast ? ON_FAST_DHCP : 0) |
                                (network->has_mdns ? ON_MDNS : 0) |
                                (network->has_tcp_echo ? ON_TCP_ECHO : 0) |
                                (network->has_nvme_tcp ? ON_NVME_TCP : 0) |
                                (network->has_nvme_iwarp ? ON_NVME_IWARP : 0));
    buf[NETWORK_OFF] = (uint8_t)((network->has_dcqcn ? 0 : OFF_DCQCN) |
                                 (network->has_cnp ? 0 : OFF_CNP) |
                                 (network->has_iwarp_crc ? 0 : OFF_IWARP_CRC));
    buf[NETWORK_PFC_IGNORED] = (uint8_t)~network->pfc_priorities;
    buf[NETWORK_NS_COUNT] = network->namespaces.count;
    buf[NETWORK_NS_FLAGS] = network->namespaces.has_4096 ? NS_4K_BLOCKS : 0;
    put_le16(buf + NETWORK_NS_SIZE, network->namespaces.size_mib);
    buf[NETWORK_PROFILE] = (uint8_t)network->profile;
    buf[NETWORK_LISTED] = (uint8_t)network->listed;
    buf[NETWORK_TLS] = (uint8_t)network->tls;
}

unsigned int config_nsid_runs(const uint32_t *exports)
{
    unsigned int runs = 0;
    bool was_set = false;

    for (unsigned int nsid = 1; nsid <= CONFIG_NSIDS; nsid++) {
        bool is_set = config_has_nsid(exports, nsid);

        runs += is_set && !was_set ? 1 : 0;
        was_set = is_set;
    }
    return runs;
}

static bool aoe_parse(struct config_aoe *aoe, const uint8_t *buf)
{
    for (size_t i = 0; i < ARRAY_LEN(aoe->exports); i++) {
        aoe->exports[i] = get_le32(buf + AOE_EXPORTS + 4 * i);
    }
    aoe->shelf = get_le16(buf + AOE_SHELF);
    return config_nsid_runs(aoe->exports) <= CONFIG_NSID_RUNS &&
           aoe->shelf <= AOE_SHELF_MAX;
}

static void aoe_emit(const struct config_aoe *aoe, uint8_t *buf)
{
    memset(buf, 0, CONFIG_AOE_LEN);
    for (size_t i = 0; i < ARRAY_LEN(aoe->exports); i++) {
        put_le32(buf + AOE_EXPORTS + 4 * i, aoe->exports[i]);
    }
    put_le16(buf + AOE_SHELF, aoe->shelf);
}

static void network_default(struct config_network *network)
{
    network->has_dcqcn = true;
    network->has_cnp = true;
    network->has_iwarp_crc = true;
    network->pfc_priorities = 0xff;
}

void config_default(struct config *config)
{
    *config = (struct config){0};
    network_default(&config->network);
    for (size_t i = 0; i < CONFIG_PORTS; i++) {
        config->port[i].mtu_bytes = MTU_DEFAULT;
        config->port[i].speed_gbps = SPEED_DEFAULT;
        config->port[i].fec = (enum config_fec)FEC_DEFAULT;
    }
}

bool config_body_parse(struct config *config, const uint8_t *buf, size_t len)
{
    uint32_t sequence = config->sequence;

    config_default(config);
    config->sequence = sequence;
    if (len < CONFIG_BODY_MIN) {
        return false;
    }
    for (size_t i = 0; i < CONFIG_PORTS; i++) {
        if (!port_parse(&config->port[i], buf + i * CONFIG_PORT_LEN)) {
            return false;
        }
    }
    if (len >= BODY_NETWORK &&
        !services_parse(&config->services, buf + BODY_SERVICES)) {
        return false;
    }
    if (len >= BODY_AOE &&
        !network_parse(&config->network, buf + BODY_NETWORK)) {
        return false;
    }
    return len < CONFIG_BODY_LEN || aoe_parse(&config->aoe, buf + BODY_AOE);
}

bool config_is_intact(const uint8_t *buf, size_t len)
{
    size_t body_len;

    if (len < CONFIG_HEADER_LEN + CONFIG_BODY_MIN ||
        memcmp(buf + CONFIG_MAGIC, magic, sizeof(magic)) != 0) {
        return false;
    }
    body_len = get_le16(buf + CONFIG_BODY_LENGTH);
    return body_len <= len - CONFIG_HEADER_LEN &&
           block_crc(buf, body_len) == get_le32(buf + CONFIG_CRC);
}

bool config_is_blank(const uint8_t *buf, size_t len)
{
    size_t i = 0;

    while (i < len && buf[i] == ERASED) {
        i++;
    }
    return i == len;
}

bool config_was_written(const uint8_t *buf, size_t len)
{
    uint8_t wrong = 0; /* bits that programming the magic never clears */

    if (len < sizeof(magic) || memcmp(buf, magic, sizeof(magic)) == 0) {
        return len >= sizeof(magic);
    }
    for (size_t i = 0; i < sizeof(magic); i++) {
        wrong |= (uint8_t)(magic[i] & ~buf[i]);
    }
    return wrong != 0;
}

bool config_is_same(const uint8_t *a, const uint8_t *b)
{
    size_t len = get_le16(a + CONFIG_BODY_LENGTH);

    return get_le16(b + CONFIG_BODY_LENGTH) == len &&
           memcmp(a + CONFIG_HEADER_LEN, b + CONFIG_HEADER_LEN, len) == 0;
}

bool config_parse(struct config *config, const uint8_t *buf, size_t len)
{
    struct config c;
    size_t body_len;

    if (!config_is_intact(buf, len) ||
        get_le16(buf + CONFIG_VERSION) != VERSION) {
        return false;
    }
    body_len = get_le16(buf + CONFIG_BODY_LENGTH);
    c.sequence = get_le32(buf + CONFIG_SEQUENCE);
    if (!config_body_parse(&c, buf + CONFIG_HEADER_LEN, body_len)) {
        return false;
    }
    *config = c;
    return true;
}

void config_body_emit(const struct config *config, uint8_t *buf)
{
    for (size_t i = 0; i < CONFIG_PORTS; i++) {
        port_emit(&config->port[i], buf + i * CONFIG_PORT_LEN);
    }
    services_emit(&config->services, buf + BODY_SERVICES);
    network_emit(&config->network, buf + BODY_NETWORK);
    aoe_emit(&config->aoe, buf + BODY_AOE);
}

void config_emit(const struct config *config, uint8_t *buf)
{
    memset(buf, 0, CONFIG_HEADER_LEN);
    memcpy(buf + CONFIG_MAGIC, magic, sizeof(magic));
    put_le16(buf + CONFIG_VERSION, VERSION);
    put_le16(buf + CONFIG_BODY_LENGTH, CONFIG_BODY_LEN);
    put_le32(buf + CONFIG_SEQUENCE, config->sequence);
    config_body_emit(config, buf + CONFIG_HEADER_LEN);
    put_le32(buf + CONFIG_CRC, block_crc(buf, CONFIG_BODY_LEN));
}
