/* SPDX-License-Identifier: BSD-2-Clause */
/* Made from firmware/settings/settings.toml by tools/settings_gen.py. */
#ifndef ESSD_STORE_CONFIG_LAYOUT_H
#define ESSD_STORE_CONFIG_LAYOUT_H

/*
 * Byte offsets in each part of the configuration block, and bits; numbers
 * are little-endian.  A field without a size has one byte.  Other bytes are
 * reserved and zero.
 */
enum {
    /*
     * bit 0: has an IPv4 address; bit 1: has an IPv6 address; bit 2: forms IPv6
     * addresses from prefixes that routers advertise; bit 3: probes addresses
     * before using them (RFC 5227, RFC 4862); other bits make the block invalid
     */
    PORT_FLAGS = 0,
    /* speed in Gb/s: 10 or 25 */
    PORT_SPEED = 1,
    /* FEC: 0 none, 1 FC-FEC (clause 74), 2 RS-FEC (clause 108) */
    PORT_FEC = 2,
    /* 2 bytes: MTU in bytes of IP packet, 1280 to 9000 */
    PORT_MTU = 4,
    /* IPv4 prefix length */
    PORT_IPV4_PREFIX = 6,
    /* IPv6 prefix length */
    PORT_IPV6_PREFIX = 7,
    /* 4 bytes: IPv4 address */
    PORT_IPV4 = 8,
    /* 4 bytes: IPv4 gateway, 0.0.0.0: none */
    PORT_IPV4_GATEWAY = 12,
    /* 16 bytes: IPv6 address, in addition to the link-local one */
    PORT_IPV6 = 16,
    /* 16 bytes: IPv6 gateway; :: uses the routers that advertise themselves */
    PORT_IPV6_GATEWAY = 32,
    /*
     * 2 bytes: VLAN of the addresses, 1 to 4094; 0: untagged. The link-local
     * IPv6 address is always untagged
     */
    PORT_VLAN = 48,
    /*
     * 802.1p priority of control traffic, 0 to 7; if not 0, untagged frames
     * carry a priority tag
     */
    PORT_PRIORITY = 50,
    PORT_LEN = 64,
    PORT_HAS_IPV4 = 0x01,
    PORT_HAS_IPV6 = 0x02,
    PORT_HAS_SLAAC = 0x04,
    PORT_IS_PROBED = 0x08,
    PORT_FLAGS_ALL = 0x0f,
};

enum {
    /*
     * bit n: port n gets its IPv4 address by DHCP; other bits make the block
     * invalid
     */
    SERVICES_DHCP = 0,
    /*
     * 2 bytes: LLDP, a byte for each port: 0 sends and receives, 1 off, 2
     * sends, 3 receives
     */
    SERVICES_LLDP = 1,
    /* LLDP TTL in intervals (msgTxHold), 1 to 100; 0: 4 */
    SERVICES_LLDP_HOLD = 3,
    /* 2 bytes: LLDP interval in seconds (msgTxInterval), 1 to 3600; 0: 30 */
    SERVICES_LLDP_INTERVAL = 4,
    /* 2 bytes: SNTP poll interval in seconds; 0: 1024 */
    SERVICES_SNTP_POLL = 6,
    /* 16 bytes: SNTP server, IPv4 as ::ffff:a.b.c.d; all zero: none */
    SERVICES_SNTP_SERVER = 8,
    /*
     * 32 bytes: the drive's name on the network, printable without spaces;
     * empty: essd- and the serial number
     */
    SERVICES_NAME = 24,
    SERVICES_LEN = 64,
};

enum {
    /* 80 bytes: four further addresses of the drive, 20 bytes each */
    NETWORK_ADDRESSES = 0,
    /* link aggregation: 0 off, 1 active/standby, 2 LACP */
    NETWORK_LAG = 80,
    /*
     * bit 0: LACPDUs at the fast rate; bit 1: number of the port that
     * active/standby prefers; bit 2: return to the preferred port
     */
    NETWORK_LAG_FLAGS = 81,
    /*
     * turns on what is off by default: bit 0 RoCE v1; bit 1 the diagnostic echo
     * service (RDMA CM port 7174); bit 2 short DHCP timers, for tests; bit 3
     * the advertisement of the discovery service by multicast DNS; bit 4 the
     * diagnostic services over TCP (ports 7 and 9); bit 5 NVMe over TCP (ports
     * 4420 and 8009); bit 6 NVMe over iWARP (port 4420)
     */
    NETWORK_ON = 82,
    /*
     * turns off what is on by default: bit 0 the reaction to CNPs; bit 1
     * sending CNPs for ECN marks; bit 2 the CRC of iWARP, unless the host asks
     * for it
     */
    NETWORK_OFF = 83,
    /* bit n: do not honour PFC pauses of priority n */
    NETWORK_PFC_IGNORED = 84,
    /*
     * namespaces that a new drive is divided into, up to 128; 0: one over the
     * whole medium
     */
    NETWORK_NS_COUNT = 85,
    /* bit 0: their blocks have 4096 bytes instead of 512 */
    NETWORK_NS_FLAGS = 86,
    /* 2 bytes: MiB of each of them; 0: equal shares */
    NETWORK_NS_SIZE = 88,
    /*
     * level of NVM Express: 0 the newest that is complete, 1 that of the data
     * sheet
     */
    NETWORK_PROFILE = 90,
    /*
     * RDMA protocols that discovery lists: 0 all that are on, 1 RoCE only, 2
     * iWARP only
     */
    NETWORK_LISTED = 91,
    /* TLS of NVMe over TCP: 0 off, 1 allowed, 2 required */
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
    /*
     * 16 bytes: namespaces that are exported by ATA over Ethernet: bit b of
     * byte n stands for NSID 8 n + b + 1; at most six runs of bits are set
     */
    AOE_EXPORTS = 0,
    /*
     * 2 bytes: shelf (major address) of ATA over Ethernet, up to 65534; 0: one
     * of the drive's own
     */
    AOE_SHELF = 16,
    AOE_LEN = 32,
};

enum {
    /* 1 + port; 0: unused, and the other fields are ignored */
    ADDRESS_PORT = 0,
    /* prefix length */
    ADDRESS_PREFIX = 1,
    /* 2 bytes: VLAN, 1 to 4094; 0: untagged */
    ADDRESS_VLAN = 2,
    /* 16 bytes: IPv6 address, or IPv4 as ::ffff:a.b.c.d; not all zero */
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
