/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration block: the settings of a drive that its owner may change.
 * The flash holds two copies, and the intact copy with the higher sequence is
 * in force.  A change is written over the other copy.
 * Reference: docs/hardware/flash.md, "Configuration block"
 */
#ifndef ESSD_STORE_CONFIG_H
#define ESSD_STORE_CONFIG_H

#include "lib/util.h"

#define CONFIG_PORTS      2
#define CONFIG_HEADER_LEN 24
#define CONFIG_PORT_LEN   64
/* Both ports' parts. */
#define CONFIG_BODY_MIN     (CONFIG_PORTS * CONFIG_PORT_LEN)
#define CONFIG_SERVICES_LEN 64
#define CONFIG_NETWORK_LEN  96
#define CONFIG_AOE_LEN      32
#define CONFIG_BODY_LEN                                                        \
    (CONFIG_BODY_MIN + CONFIG_SERVICES_LEN + CONFIG_NETWORK_LEN +              \
     CONFIG_AOE_LEN)
#define CONFIG_LEN (CONFIG_HEADER_LEN + CONFIG_BODY_LEN)
/* Longest body of a later minor version, which this version also reads. */
#define CONFIG_LEN_MAX 2048

enum config_fec { CONFIG_FEC_NONE = 0, CONFIG_FEC_FC = 1, CONFIG_FEC_RS = 2 };

struct config_port {
    bool has_ipv4;
    uint8_t ipv4[4];
    uint8_t ipv4_prefix;     /* 0..32 */
    uint8_t ipv4_gateway[4]; /* 0.0.0.0: no gateway */
    bool has_ipv6; /* an IPv6 address is set besides the link-local one */
    uint8_t ipv6[16];
    uint8_t ipv6_prefix;      /* 0..128 */
    uint8_t ipv6_gateway[16]; /* ::: the gateway that routers advertise */
    /* The port also takes addresses from prefixes that routers advertise. */
    bool has_slaac;
    /*
     * An address is probed (RFC 5227, duplicate address detection) before it is
     * used.
     */
    bool is_probed;
    /* VLAN of all addresses except the link-local one; 0: untagged. */
    uint16_t vlan;
    uint8_t priority;   /* 802.1p priority of control traffic, 0..7 */
    uint16_t mtu_bytes; /* largest IP packet, 1280..9000 */
    uint8_t speed_gbps; /* 10 or 25 */
    enum config_fec fec;
};

enum config_lldp {
    CONFIG_LLDP_BOTH = 0, /* sends and receives */
    CONFIG_LLDP_OFF = 1,
    CONFIG_LLDP_SEND = 2,
    CONFIG_LLDP_RECEIVE = 3,
};

#define CONFIG_NAME_LEN 32

/*
 * What the drive does on the network besides NVMe-oF.  A value of 0 stands for
 * the default.
 */
struct config_services {
    /* DHCP gives the IPv4 address; without DHCP it is link-local. */
    bool has_dhcp[CONFIG_PORTS];
    enum config_lldp lldp[CONFIG_PORTS];
    uint8_t lldp_hold;        /* TTL in intervals, 1..100; 0: 4 */
    uint16_t lldp_interval_s; /* 1..3600; 0: 30 */
    uint16_t sntp_poll_s;     /* 0: 1024 */
    uint8_t sntp_server[16];  /* IPv4 as ::ffff:a.b.c.d; all zero: no server */
    /* Printable; "": a name is made from the serial number. */
    char name[CONFIG_NAME_LEN + 1];
};

/* Addresses besides the two of each port.  With these, the drive has eight. */
#define CONFIG_EXTRA_ADDRESSES 4

struct config_address {
    bool is_used; /* when false, the other fields are zero */
    uint8_t port;
    uint8_t prefix; /* 0..32 for IPv4, 0..128 for IPv6 */
    uint8_t ip[16]; /* IPv4 as ::ffff:a.b.c.d */
    uint16_t vlan;  /* 0: untagged */
};

enum config_lag {
    CONFIG_LAG_OFF = 0,
    CONFIG_LAG_ACTIVE_STANDBY = 1,
    CONFIG_LAG_LACP = 2,
};

/* How a drive is divided that has no table of namespaces yet. */
struct config_namespaces {
    uint8_t count;     /* 0: one over the whole medium */
    bool has_4096;     /* blocks of 4096 bytes instead of 512 */
    uint16_t size_mib; /* of each; 0: equal shares */
};

/* The level of NVM Express that hosts see. */
enum config_profile {
    CONFIG_PROFILE_NEWEST = 0,    /* the newest that is complete: 2.0 */
    CONFIG_PROFILE_DATASHEET = 1, /* 1.2.1, fabrics 1.0 */
};

/* The RDMA protocols that discovery lists, of those that are on. */
enum config_listed {
    CONFIG_LISTED_ALL = 0,
    CONFIG_LISTED_ROCE = 1,
    CONFIG_LISTED_IWARP = 2,
};

/* TLS of NVMe over TCP. */
enum config_tls {
    CONFIG_TLS_OFF = 0,
    CONFIG_TLS_ALLOWED = 1,
    CONFIG_TLS_REQUIRED = 2,
};

/*
 * How the ports work together, and RoCE settings. config_default() says which
 * of them are on by default.
 */
struct config_network {
    struct config_address extra[CONFIG_EXTRA_ADDRESSES];
    enum config_lag lag;
    bool lacp_is_fast; /* LACPDUs are sent every second instead of every 30 s */
    uint8_t lag_primary; /* the port that active/standby mode prefers */
    /* The primary becomes active again when its link returns. */
    bool lag_has_revert;
    /* RoCE v1 (EtherType 0x8915) works besides RoCE v2 (UDP port 4791). */
    bool has_roce_v1;
    /* A queue pair that receives CNPs slows down; on by default. */
    bool has_dcqcn;
    /* Packets with an ECN mark are answered with CNPs; on by default. */
    bool has_cnp;
    /*
     * Bitmap of the priorities whose PFC pauses are honoured; 0xff by default.
     */
    uint8_t pfc_priorities;
    bool has_echo; /* the diagnostic echo service runs, on RDMA CM port 7174 */
    /*
     * A DHCP client without an answer tries again after about a second: for
     * tests.
     */
    bool dhcp_is_fast;
    bool has_tcp_echo;   /* echo and discard run, on TCP ports 7 and 9 */
    bool has_nvme_tcp;   /* NVMe over TCP, on ports 4420 and 8009 */
    enum config_tls tls; /* of NVMe over TCP */
    bool has_nvme_iwarp; /* NVMe over iWARP, on TCP port 4420 */
    bool has_iwarp_crc;  /* iWARP has a CRC; on by default */
    enum config_listed listed;
    bool has_mdns; /* multicast DNS advertises the discovery service */
    struct config_namespaces namespaces;
    enum config_profile profile;
};

#define CONFIG_NSIDS     128
#define CONFIG_NSID_RUNS 6

/* ATA over Ethernet. */
struct config_aoe {
    /* Bit n of word m: NSID 32 * m + n + 1 is exported.  At most
     * CONFIG_NSID_RUNS runs of bits are set. */
    uint32_t exports[CONFIG_NSIDS / 32];
    uint16_t shelf; /* 0..65534; 0: one of the drive's own */
};

/** How many runs of bits are set. */
unsigned int config_nsid_runs(const uint32_t *exports);

static inline bool config_has_nsid(const uint32_t *exports, unsigned int nsid)
{
    return exports[(nsid - 1) / 32] >> (nsid - 1) % 32 & 1;
}

struct config {
    uint32_t sequence;
    struct config_port port[CONFIG_PORTS];
    struct config_services services;
    struct config_network network;
    struct config_aoe aoe;
};

/*
 * Set the defaults: no addresses, 25 Gb/s, FC-FEC, MTU 1500, LLDP, ECN and PFC
 * on, sequence 0.
 */
void config_default(struct config *config);

/**
 * Read a whole configuration block.
 *
 * A block of a later minor version is longer: the fields that follow the known
 * ones are skipped.  In a block that ends before the services, the network or
 * the AoE part, that part gets its defaults.
 *
 * @return false when the block is too short, damaged or of another major
 *         version, or when a value is outside its range
 */
MUST_USE bool config_parse(struct config *config, const uint8_t *buf,
                           size_t len);

/**
 * Whether a block is complete and undamaged, also if config_parse() refuses it,
 * as it does with values that only newer firmware knows.
 */
bool config_is_intact(const uint8_t *buf, size_t len);

/** Where the magic is, which is programmed last: a power cut in the first write
 * of a new drive leaves a part of it. */
#define CONFIG_MAGIC_LEN 8

/** Whether all bytes of a block are erased. */
bool config_is_blank(const uint8_t *buf, size_t len);

/**
 * Whether a block was written completely, also if it is damaged.  It counts as
 * unfinished if its magic is what an unfinished write may leave: no bit is 0
 * that is 1 in the magic.
 */
bool config_was_written(const uint8_t *buf, size_t len);

/** Whether two blocks that config_parse() takes have the same body, also if
 * their sequences differ. */
bool config_is_same(const uint8_t *a, const uint8_t *b);

/* Write all CONFIG_LEN bytes of `buf`. */
void config_emit(const struct config *config, uint8_t *buf);

/**
 * Read the body of the block alone, in the form that hosts read and write.  The
 * sequence of `config` does not change.
 *
 * @return false when the body is too short or a value is outside its range;
 *         `config` may then be half written
 */
MUST_USE bool config_body_parse(struct config *config, const uint8_t *buf,
                                size_t len);

/* Write all CONFIG_BODY_LEN bytes of `buf`. */
void config_body_emit(const struct config *config, uint8_t *buf);

#endif
