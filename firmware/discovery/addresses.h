/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The present list of addresses at which the drive serves hosts.  DHCP,
 * routers, conflicts and settings change it.  The discovery log page, LLDP and
 * the port ids of connections are made from this list.
 */
#ifndef ESSD_DISCOVERY_ADDRESSES_H
#define ESSD_DISCOVERY_ADDRESSES_H

#include "firmware/net/drive_net.h"
#include "nvmeof/target/target.h"

/* The TSAS of RoCEv2 with the RDMA CM (struct nvme_tsas). */
#define ADDRESSES_ROCEV2                                                       \
    {RDMA_QPTYPE_RC, RDMA_PRTYPE_ROCEV2, RDMA_CMS_RDMA_CM, 0}
#define ADDRESSES_IWARP {RDMA_QPTYPE_RC, RDMA_PRTYPE_IWARP, RDMA_CMS_RDMA_CM, 0}

/* What the discovery log says of TLS. */
enum addresses_tls {
    ADDRESSES_TLS_OFF,
    ADDRESSES_TLS_ALLOWED,
    ADDRESSES_TLS_REQUIRED,
};

/* Treat as opaque, except for the last three fields. */
struct addresses {
    struct log *log;
    const struct drive_net *net;
    /* The network's count of changes that this list reflects. */
    uint32_t changes;
    uint16_t service_port;
    uint16_t tcp_port;   /* of NVMe over TCP; 0: it is off */
    uint16_t iwarp_port; /* as tcp_port */
    uint8_t tls;         /* enum addresses_tls: of NVMe over TCP */
    bool hides_roce;
    uint8_t port[NET_CONFIGURED];
    uint16_t vlan[NET_CONFIGURED];
    /* Addresses that serve hosts, by index; zero: none. */
    struct ip_addr ip[NET_CONFIGURED];
    /* Addresses that the last update changed, one bit per index. */
    uint8_t changed;
    uint8_t count;
    struct nvmf_address list[NVMF_MAX_LISTED];
};
_Static_assert((int)NVMF_MAX_ADDRESSES >= (int)NET_CONFIGURED &&
                   (int)NVMF_MAX_LISTED >= 3 * (int)NET_CONFIGURED,
               "each of them is listed, for RoCE, iWARP and TCP");

/** Call this after drive_net_init().  @param net  outlives `addresses` */
void addresses_init(struct addresses *addresses, struct log *log,
                    const struct drive_net *net, uint16_t service_port);

/** List each address for NVMe over iWARP, too.  @param hides_roce  and not for
 * RoCE any more */
void addresses_add_iwarp(struct addresses *addresses, uint16_t tcp_port,
                         bool hides_roce);

/** List each address for NVMe over TCP, too. */
void addresses_add_tcp(struct addresses *addresses, uint16_t tcp_port,
                       enum addresses_tls tls);

/**
 * Update the list.  Call this after drive_net_step().
 * @return whether the list has changed
 */
MUST_USE bool addresses_update(struct addresses *addresses);

/** The portid of the discovery entry of an address; 0 when it has none. */
uint16_t addresses_portid(const struct addresses *addresses, uint8_t local);

/** The portids and the numbers of the links of all addresses. */
void addresses_fill(const struct addresses *addresses,
                    uint16_t portid[NET_CONFIGURED],
                    uint32_t link[NET_CONFIGURED]);

/**
 * The number of the link, and of the family, of a link-local address; 0 for all
 * other addresses.
 */
uint32_t addresses_link(const struct addresses *addresses, uint8_t local);

#endif
