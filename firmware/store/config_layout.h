/* SPDX-License-Identifier: BSD-2-Clause */
/* Made from firmware/settings/settings.toml by tools/settings_gen.py. */
#ifndef ESSD_STORE_CONFIG_LAYOUT_H
#define ESSD_STORE_CONFIG_LAYOUT_H

/* Byte offsets in each part, and bits; numbers little-endian. */
enum {
    PORT_FLAGS = 0,
    PORT_SPEED = 1,
    PORT_FEC = 2,
    PORT_MTU = 4,
    PORT_IPV4_PREFIX = 6,
    PORT_IPV6_PREFIX = 7,
    PORT_IPV4 = 8,
    PORT_IPV4_GATEWAY = 12,
    PORT_IPV6 = 16,
    PORT_IPV6_GATEWAY = 32,
    PORT_VLAN = 48,
    PORT_PRIORITY = 50,
    PORT_LEN = 64,
    PORT_HAS_IPV4 = 0x01,
    PORT_HAS_IPV6 = 0x02,
    PORT_HAS_SLAAC = 0x04,
    PORT_IS_PROBED = 0x08,
    PORT_FLAGS_ALL = 0x0f,
};

enum {
    SERVICES_DHCP = 0,
    SERVICES_LLDP = 1,
    SERVICES_LLDP_HOLD = 3,
    SERVICES_LLDP_INTERVAL = 4,
    SERVICES_SNTP_POLL = 6,
    SERVICES_SNTP_SERVER = 8,
    SERVICES_NAME = 24,
    SERVICES_LEN = 64,
};

enum {
    NETWORK_ADDRESSES = 0,
    NETWORK_LAG = 80,
    NETWORK_LAG_FLAGS = 81,
    NETWORK_ON = 82,
    NETWORK_OFF = 83,
    NETWORK_PFC_IGNORED = 84,
    NETWORK_NS_COUNT = 85,
    NETWORK_NS_FLAGS = 86,
    NETWORK_NS_SIZE = 88,
    NETWORK_PROFILE = 90,
    NETWORK_LISTED = 91,
    NETWORK_TLS = 92,
    NETWORK_LEN = 96,
    LAG_LACP_IS_FAST = 0x01,
    LAG_PRIMARY = 0x02,
    LAG_HAS_REVERT = 0x04,
    LAG_FLAGS_ALL = 0x07,
    ON_ROCE_V1 = 0x01,
    ON_ECHO = 0x02,
    ON_FAST_DHCP = 0x04,
    ON_MDNS = 0x08,
    ON_TCP_ECHO = 0x10,
    ON_NVME_TCP = 0x20,
    ON_NVME_IWARP = 0x40,
    ON_ALL = 0x7f,
    OFF_DCQCN = 0x01,
    OFF_CNP = 0x02,
    OFF_IWARP_CRC = 0x04,
    OFF_ALL = 0x07,
    NS_4K_BLOCKS = 0x01,
    NS_FLAGS_ALL = 0x01,
};

enum {
    AOE_EXPORTS = 0,
    AOE_SHELF = 16,
    AOE_LEN = 32,
};

enum {
    ADDRESS_PORT = 0,
    ADDRESS_PREFIX = 1,
    ADDRESS_VLAN = 2,
    ADDRESS_IP = 4,
    ADDRESS_LEN = 20,
};

/* Defaults and limits, as the block has them. */
enum {
    VLAN_DEFAULT = 0,
    VLAN_MIN = 0,
    VLAN_MAX = 4094,
    PRIORITY_DEFAULT = 0,
    PRIORITY_MIN = 0,
    PRIORITY_MAX = 7,
    MTU_DEFAULT = 1500,
    MTU_MIN = 1280,
    MTU_MAX = 9000,
    SPEED_DEFAULT = 25,
    SPEED_MAX = 25,
    FEC_DEFAULT = 1,
    FEC_MAX = 2,
    LLDP_DEFAULT = 0,
    LLDP_MAX = 3,
    LLDP_INTERVAL_S_DEFAULT = 30,
    LLDP_INTERVAL_S_MIN = 1,
    LLDP_INTERVAL_S_MAX = 3600,
    LLDP_HOLD_DEFAULT = 4,
    LLDP_HOLD_MIN = 1,
    LLDP_HOLD_MAX = 100,
    LAG_MODE_DEFAULT = 0,
    LAG_MODE_MAX = 2,
    TLS_DEFAULT = 0,
    TLS_MAX = 2,
    PROFILE_DEFAULT = 0,
    PROFILE_MAX = 1,
    LISTED_DEFAULT = 0,
    LISTED_MAX = 2,
    AOE_SHELF_DEFAULT = 0,
    AOE_SHELF_MIN = 0,
    AOE_SHELF_MAX = 65534,
    NS_COUNT_DEFAULT = 0,
    NS_COUNT_MIN = 0,
    NS_COUNT_MAX = 128,
};

#endif
