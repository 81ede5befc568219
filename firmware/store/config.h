/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration block: what its owner may change about a drive.  Two
 * copies, the intact one with the higher sequence counts; a change is written
 * over the other.
 * Reference: docs/hardware/flash.md, "Configuration block"
 */
#ifndef ESSD_STORE_CONFIG_H
#define ESSD_STORE_CONFIG_H

#include "lib/util.h"

#define CONFIG_PORTS        2
#define CONFIG_HEADER_LEN   24
#define CONFIG_PORT_LEN     64
#define CONFIG_BODY_MIN     (CONFIG_PORTS * CONFIG_PORT_LEN) /* the ports */
#define CONFIG_SERVICES_LEN 64
#define CONFIG_NETWORK_LEN  96
#define CONFIG_BODY_LEN                                                        \
    (CONFIG_BODY_MIN + CONFIG_SERVICES_LEN + CONFIG_NETWORK_LEN)
#define CONFIG_LEN     (CONFIG_HEADER_LEN + CONFIG_BODY_LEN)
#define CONFIG_LEN_MAX 2048 /* of later minor versions, which we also read */

enum config_fec { CONFIG_FEC_NONE = 0, CONFIG_FEC_FC = 1, CONFIG_FEC_RS = 2 };

struct config_port {
    bool has_ipv4;
    uint8_t ipv4[4];
    uint8_t ipv4_prefix;     /* 0..32 */
    uint8_t ipv4_gateway[4]; /* 0.0.0.0: none */
    bool has_ipv6;           /* besides the link-local one */
    uint8_t ipv6[16];
    uint8_t ipv6_prefix;      /* 0..128 */
    uint8_t ipv6_gateway[16]; /* ::: what routers advertise */
    bool has_slaac;           /* IPv6 addresses of routers' prefixes, too */
    bool is_probed;           /* addresses are not used before RFC 5227 probes
                                 and duplicate address detection are over */
    uint16_t vlan;            /* of all but the link-local one; 0: untagged */
    uint8_t priority;         /* 802.1p of control traffic, 0..7 */
    uint16_t mtu_bytes;       /* IP packet: 1280..9000 */
    uint8_t speed_gbps;       /* 10 or 25 */
    enum config_fec fec;
};

enum config_lldp {
    CONFIG_LLDP_BOTH = 0, /* sends and receives */
    CONFIG_LLDP_OFF = 1,
    CONFIG_LLDP_SEND = 2,
    CONFIG_LLDP_RECEIVE = 3,
};

#define CONFIG_NAME_LEN 32

/* What the drive does on the network besides NVMe-oF.  Zeroes: defaults. */
struct config_services {
    bool has_dhcp[CONFIG_PORTS]; /* IPv4 address by DHCP, else link-local */
    enum config_lldp lldp[CONFIG_PORTS];
    uint8_t lldp_hold;              /* TTL in intervals, 1..100; 0: 4 */
    uint16_t lldp_interval_s;       /* 1..3600; 0: 30 */
    uint16_t sntp_poll_s;           /* 0: 1024 */
    uint8_t sntp_server[16];        /* IPv4 as ::ffff:a.b.c.d; all zero: none */
    char name[CONFIG_NAME_LEN + 1]; /* printable; "": made from the serial */
};

/* Own addresses besides the two of each port: with these, eight. */
#define CONFIG_EXTRA_ADDRESSES 4

struct config_address {
    bool is_used; /* else the rest is zero */
    uint8_t port;
    uint8_t prefix; /* 0..32, or 0..128 */
    uint8_t ip[16]; /* IPv4 as ::ffff:a.b.c.d */
    uint16_t vlan;  /* 0: untagged */
};

enum config_lag {
    CONFIG_LAG_OFF = 0,
    CONFIG_LAG_ACTIVE_STANDBY = 1,
    CONFIG_LAG_LACP = 2,
};

/* How the ports work together, and RoCE.  config_default() sets what is on. */
struct config_network {
    struct config_address extra[CONFIG_EXTRA_ADDRESSES];
    enum config_lag lag;
    bool lacp_is_fast;      /* an LACPDU a second, not one in 30 */
    uint8_t lag_primary;    /* the port that active/standby prefers */
    bool lag_has_revert;    /* back to the primary when it is up again */
    bool has_roce_v1;       /* EtherType 0x8915 besides UDP port 4791 */
    bool has_dcqcn;         /* a CNP slows its sender; on by default */
    bool has_cnp;           /* an ECN mark is answered; on by default */
    uint8_t pfc_priorities; /* whose pauses are honoured; 0xff by default */
    bool has_echo;          /* the diagnostic service, RDMA CM port 7174 */
    bool dhcp_is_fast;      /* asks again after a second or so: for tests */
};

struct config {
    uint32_t sequence;
    struct config_port port[CONFIG_PORTS];
    struct config_services services;
    struct config_network network;
};

/* No addresses, 25 Gb/s, FC-FEC, MTU 1500, LLDP, ECN and PFC; sequence 0. */
void config_default(struct config *config);

/**
 * A block longer than ours has fields of a later version behind those we know:
 * they are skipped.  One without the services or the network part has their
 * defaults.
 *
 * @return false when it is short, damaged, of another major version, or a value
 *         is outside its range
 */
MUST_USE bool config_parse(struct config *config, const uint8_t *buf,
                           size_t len);

/* Write all CONFIG_LEN bytes of `buf`. */
void config_emit(const struct config *config, uint8_t *buf);

/**
 * The same for the body alone, as hosts read and write it.  The sequence is
 * left as it is.
 *
 * @return false when it is short, or a value is outside its range: `config` may
 *         be half written
 */
MUST_USE bool config_body_parse(struct config *config, const uint8_t *buf,
                                size_t len);

/* Write all CONFIG_BODY_LEN bytes of `buf`. */
void config_body_emit(const struct config *config, uint8_t *buf);

#endif
