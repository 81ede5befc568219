/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/discovery/addresses.h"

#include <string.h>

#include "firmware/text/ip_text.h"

/*
 * Whether hosts are told of the address.  A configured address that needs no
 * probing is reported even while its link is down, through the other port.
 */
static bool is_served(const struct net_stack *stack, uint8_t local)
{
    return net_stack_is_assigned(stack, local) ||
           (stack->addresses[local].state == ADDRESS_DOWN &&
            !net_stack_address(stack, local)->is_probed);
}

static void read_addresses(struct addresses *addresses)
{
    const struct net_stack *stack = &addresses->net->stack;

    addresses->changed = 0;
    for (uint8_t i = 0; i < NET_CONFIGURED; i++) {
        const struct net_address_config *own = net_stack_address(stack, i);
        struct ip_addr now =
            is_served(stack, i) ? own->ip : (struct ip_addr){0};
        struct ip_text text;

        if (ip_addr_equal(&now, &addresses->ip[i]) &&
            (ip_addr_is_unspecified(&now) ||
             (addresses->port[i] == own->port &&
              addresses->vlan[i] == own->vlan))) {
            continue;
        }
        if (!ip_addr_is_unspecified(&addresses->ip[i])) {
            text = ip_text(&addresses->ip[i]);
            log_line(addresses->log, "port %u: %s is gone", addresses->port[i],
                     text.text);
        }
        if (!ip_addr_is_unspecified(&now)) {
            text = ip_text(&now);
            log_line(addresses->log, "port %u: %s/%u", own->port, text.text,
                     own->prefix_bits);
        }
        addresses->changed |= (uint8_t)BIT(i);
        addresses->ip[i] = now;
        addresses->port[i] = own->port;
        addresses->vlan[i] = own->vlan;
    }
}

uint16_t addresses_portid(const struct addresses *addresses, uint8_t local)
{
    return ip_addr_is_unspecified(&addresses->ip[local])
               ? 0
               : (uint16_t)(addresses->port[local] + 1);
}

uint32_t addresses_link(const struct addresses *addresses, uint8_t local)
{
    const struct ip_addr *ip = &addresses->ip[local];
    uint32_t v4 = ip_addr_is_v4(ip);

    return ip_addr_is_link_local(ip)
               ? ((uint32_t)addresses->vlan[local] << 8 |
                  (uint32_t)addresses->port[local] << 1 | v4) +
                     1
               : 0;
}

void addresses_fill(const struct addresses *addresses,
                    uint16_t portid[NET_CONFIGURED],
                    uint32_t link[NET_CONFIGURED])
{
    for (uint8_t i = 0; i < NET_CONFIGURED; i++) {
        portid[i] = addresses_portid(addresses, i);
        link[i] = addresses_link(addresses, i);
    }
}

/* @param tsas  of RDMA; NULL: of TCP */
static void list_address(struct addresses *addresses, uint8_t local,
                         const struct nvme_tsas *tsas, uint16_t service_port)
{
    struct nvmf_address *entry = &addresses->list[addresses->count];
    struct ip_text text = ip_text(&addresses->ip[local]);

    *entry = (struct nvmf_address){
        .trtype = tsas != NULL ? TRTYPE_RDMA : TRTYPE_TCP,
        .adrfam = ip_addr_is_v4(&addresses->ip[local]) ? 1 : 2,
        .portid = addresses_portid(addresses, local),
        .link = addresses_link(addresses, local),
    };
    if (tsas != NULL) {
        entry->tsas = *tsas;
    } else if (addresses->tls != ADDRESSES_TLS_OFF) {
        entry->tsas.tcp_sectype = TCP_SECTYPE_TLS13;
        entry->requires_tls = addresses->tls == ADDRESSES_TLS_REQUIRED;
    }
    memcpy(entry->traddr, text.text, sizeof(text.text));
    log_format(entry->trsvcid, sizeof(entry->trsvcid), "%u", service_port);
    addresses->count++;
}

/* List all addresses for one transport.  @param port  0: it is off */
static void list_addresses(struct addresses *addresses,
                           const struct nvme_tsas *tsas, uint16_t port)
{
    for (uint8_t i = 0; i < NET_CONFIGURED && port != 0; i++) {
        if (!ip_addr_is_unspecified(&addresses->ip[i])) {
            list_address(addresses, i, tsas, port);
        }
    }
}

static void build_list(struct addresses *addresses)
{
    static const struct nvme_tsas roce = ADDRESSES_ROCEV2;
    static const struct nvme_tsas iwarp = ADDRESSES_IWARP;

    addresses->count = 0;
    if (!addresses->hides_roce) {
        list_addresses(addresses, &roce, addresses->service_port);
    }
    list_addresses(addresses, &iwarp, addresses->iwarp_port);
    list_addresses(addresses, NULL, addresses->tcp_port);
}

void addresses_add_iwarp(struct addresses *addresses, uint16_t tcp_port,
                         bool hides_roce)
{
    addresses->iwarp_port = tcp_port;
    addresses->hides_roce = hides_roce;
    build_list(addresses);
}

void addresses_add_tcp(struct addresses *addresses, uint16_t tcp_port,
                       enum addresses_tls tls)
{
    addresses->tls = (uint8_t)tls;
    addresses->tcp_port = tcp_port;
    build_list(addresses);
}

void addresses_init(struct addresses *addresses, struct log *log,
                    const struct drive_net *net, uint16_t service_port)
{
    memset(addresses, 0, sizeof(*addresses));
    addresses->log = log;
    addresses->net = net;
    addresses->service_port = service_port;
    addresses->changes = net->address_changes;
    read_addresses(addresses);
    build_list(addresses);
}

bool addresses_update(struct addresses *addresses)
{
    if (addresses->changes == addresses->net->address_changes) {
        return false;
    }
    addresses->changes = addresses->net->address_changes;
    read_addresses(addresses);
    build_list(addresses);
    return addresses->changed != 0;
}
