/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses at which the drive serves hosts, as they are now: DHCP,
 * routers, conflicts and settings change them.  What is told about them
 * (discovery log page, LLDP, port ids of connections) follows this list.
 */
#ifndef ESSD_APP_ADDRESSES_H
#define ESSD_APP_ADDRESSES_H

#include "firmware/net/drive_net.h"
#include "nvmeof/target/target.h"

/* Treat as opaque, but for the last three. */
struct addresses {
    struct log *log;
    const struct drive_net *net;
    uint32_t changes; /* of the net, that this shows */
    uint16_t service_port;
    uint8_t port[NET_CONFIGURED];
    uint16_t vlan[NET_CONFIGURED];
    struct ip_addr ip[NET_CONFIGURED]; /* that serve, by index; zero: none */
    uint8_t changed;                   /* a bit an index: of the last update */
    uint8_t count;
    struct nvmf_address list[NVMF_MAX_ADDRESSES];
};
_Static_assert((int)NVMF_MAX_ADDRESSES >= (int)NET_CONFIGURED,
               "each of them is listed");

/** Behind drive_net_init(). @param net  stays */
void addresses_init(struct addresses *addresses, struct log *log,
                    const struct drive_net *net, uint16_t service_port);

/** Behind drive_net_step(). @return whether the list is another one now */
MUST_USE bool addresses_update(struct addresses *addresses);

/** portid of the discovery entry; 0: there is no such address */
uint16_t addresses_portid(const struct addresses *addresses, uint8_t local);

#endif
