/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/services/services.h"

#include <string.h>

#include "firmware/text/ip_text.h"
#include "firmware/text/neighbour_text.h"
#include "lib/bytes.h"

/*
 * Makes the random numbers of the SNTP client differ from those of other
 * clients.
 */
#define SNTP_SEED 0x736e7470736e7470u
#define DHCP_SEED 0x6468637064686370u
#define MDNS_SEED 0x6d646e736d646e73u

static void log_neighbour(void *ctx, uint8_t port, enum lldp_event event,
                          const struct lldp *lldp)
{
    struct services *services = ctx;

    lldp_log_change(&services->lldp_log, port, event, lldp, services->now_us);
}

static struct lldp_port_config lldp_port_of(enum config_lldp lldp)
{
    return (struct lldp_port_config){
        .sends = lldp == CONFIG_LLDP_BOTH || lldp == CONFIG_LLDP_SEND,
        .receives = lldp == CONFIG_LLDP_BOTH || lldp == CONFIG_LLDP_RECEIVE,
    };
}

static void lldp_start(struct services *services,
                       const struct services_config *config)
{
    const struct config_services *settings = &config->config->services;
    struct lldp_config lldp = {
        .stack = &services->net->stack,
        .interval_s = settings->lldp_interval_s,
        .hold = settings->lldp_hold,
        .system_name = services->name,
        .system_description = services->description,
        .ctx = services,
        .neighbour = log_neighbour,
    };

    memcpy(lldp.chassis.bytes, config->identity->mac[0],
           sizeof(lldp.chassis.bytes));
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        lldp.ports[i] = lldp_port_of(settings->lldp[i]);
    }
    /* The first agent always finds room. */
    ASSERT(lldp_init(&services->lldp, &lldp));
}

static void set_time(void *ctx, uint64_t epoch_ms, const struct sntp *answer)
{
    struct services *services = ctx;

    if (!services->is_synchronised) {
        services->is_synchronised = true;
        log_line(services->log, "sntp: %lu s since 1970, stratum %u",
                 (unsigned long)(epoch_ms / 1000), answer->stratum);
    }
    nvmf_target_set_time(services->target, epoch_ms, services->now_us);
}

static void log_kiss(void *ctx, uint32_t code)
{
    struct services *services = ctx;
    uint8_t bytes[4];
    struct lldp_text text = {bytes, sizeof(bytes)};

    put_be32(bytes, code);
    log_line(services->log, "sntp: the server refuses to answer: %s",
             neighbour_text(&text).text);
}

static void sntp_start(struct services *services,
                       const struct services_config *config)
{
    const struct sntp_config sntp = {
        .stack = &services->net->stack,
        .server = ip_addr_from_bytes(config->config->services.sntp_server),
        .poll_s = config->config->services.sntp_poll_s,
        .random_seed = config->random_seed ^ SNTP_SEED,
        .ctx = services,
        .set_time = set_time,
        .kissed = log_kiss,
    };

    services->has_sntp_server = !ip_addr_is_unspecified(&sntp.server);
    ASSERT(sntp_init(&services->sntp, &sntp, services->now_us));
}

/* Use the SNTP server of a DHCP lease if none is configured. */
static void set_lease_server(struct services *services)
{
    const struct ip_addr *first = &services->lease[0].ntp_server;

    sntp_set_server(
        &services->sntp,
        !ip_addr_is_unspecified(first) ? first : &services->lease[1].ntp_server,
        services->now_us);
}

/* Log a lease, unless it is a renewal that changes nothing. */
static void log_lease(struct services *services, uint8_t port,
                      const struct dhcp_lease *lease)
{
    const struct dhcp_lease *was = &services->lease[port];

    if (lease == NULL) {
        log_line(services->log, "dhcp: port %u: the lease has ended", port);
    } else if (ip_addr_equal(&lease->ip, &was->ip) &&
               lease->lease_s == was->lease_s) {
        return;
    } else if (lease->lease_s == DHCP_FOREVER) {
        log_line(services->log, "dhcp: port %u: %s/%u for ever", port,
                 ip_text(&lease->ip).text, lease->prefix_bits);
    } else {
        log_line(services->log, "dhcp: port %u: %s/%u for %u s", port,
                 ip_text(&lease->ip).text, lease->prefix_bits, lease->lease_s);
    }
}

static void lease_changed(void *ctx, uint8_t port,
                          const struct dhcp_lease *lease)
{
    static const struct dhcp_lease none;
    struct services *services = ctx;

    log_lease(services, port, lease);
    services->lease[port] = lease != NULL ? *lease : none;
    if (!services->has_sntp_server) {
        set_lease_server(services);
    }
}

static void dhcp_start(struct services *services,
                       const struct services_config *config)
{
    struct dhcp_client_config dhcp = {
        .stack = &services->net->stack,
        .host_name = services->name,
        .is_fast = config->config->network.dhcp_is_fast,
        .random_seed = config->random_seed ^ DHCP_SEED,
        .ctx = services,
        .leased = lease_changed,
    };

    for (uint8_t i = 0; i < NET_PORTS; i++) {
        uint16_t vlan = config->config->port[i].vlan;

        dhcp.ports[i].is_on = config->config->services.has_dhcp[i];
        dhcp.ports[i].vlan = vlan != 0 ? vlan : NET_VLAN_UNTAGGED;
    }
    ASSERT(dhcp_client_init(&services->dhcp, &dhcp));
}

static uint16_t port_vlan(const struct config *config, uint8_t port)
{
    uint16_t vlan = config->port[port].vlan;

    return vlan != 0 ? vlan : NET_VLAN_UNTAGGED;
}

static void log_claim(void *ctx, uint8_t port, const char *host)
{
    struct services *services = ctx;

    log_line(services->log, "mdns: port %u: advertised as %s.local", port,
             host);
}

static void mdns_start(struct services *services,
                       const struct services_config *config)
{
    struct mdns_config mdns = {
        .stack = &services->net->stack,
        .name = services->name,
        .nqn = services->discovery_nqn,
        .service_port = config->discovery_port,
        .is_on = config->config->network.has_mdns,
        .random_seed = config->random_seed ^ MDNS_SEED,
        .ctx = services,
        .claimed = log_claim,
    };

    log_format(services->discovery_nqn, sizeof(services->discovery_nqn), "%s",
               config->discovery_nqn);
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        mdns.vlan[i] = port_vlan(config->config, i);
    }
    ASSERT(mdns_init(&services->mdns, &mdns, services->now_us));
}

/* Start, stop or rename the responder, and receive its groups or not. */
static void mdns_apply(struct services *services, const struct config *config,
                       bool is_new_name)
{
    uint16_t vlan[NET_PORTS];

    for (uint8_t i = 0; i < NET_PORTS; i++) {
        vlan[i] = port_vlan(config, i);
    }
    if (!mdns_set(&services->mdns, config->network.has_mdns, is_new_name, vlan,
                  services->now_us)) {
        log_line(services->log, "mdns: stays off: all UDP ports are in use");
    }
    drive_net_set_groups(services->net);
}

/*
 * Set the name that LLDP and DHCP send.  Their agents keep a pointer to it.
 * @return whether it is another one than before
 */
static bool services_set_name(struct services *services, const char *configured)
{
    char before[sizeof(services->name)];

    memcpy(before, services->name, sizeof(before));
    log_format(services->name, sizeof(services->name), "%s%s",
               configured[0] != '\0' ? "" : "essd-",
               configured[0] != '\0' ? configured : services->serial);
    return strcmp(before, services->name) != 0;
}

void services_init(struct services *services,
                   const struct services_config *config, uint64_t now_us)
{
    const struct identity *identity = config->identity;

    services->log = config->log;
    services->net = config->net;
    services->target = config->target;
    services->now_us = now_us;
    lldp_log_init(&services->lldp_log, config->log);
    log_format(services->serial, sizeof(services->serial), "%s",
               identity->serial);
    (void)services_set_name(services, config->config->services.name);
    log_format(services->description, sizeof(services->description),
               "%s, firmware %s, serial %s", identity->model, config->version,
               identity->serial);
    lldp_start(services, config);
    sntp_start(services, config);
    dhcp_start(services, config);
    mdns_start(services, config);
    services->address_changes = services->net->address_changes;
    drive_net_set_groups(services->net);
}

void services_apply(struct services *services, const struct config *config,
                    uint64_t now_us)
{
    const struct config_services *settings = &config->services;
    struct ip_addr server = ip_addr_from_bytes(settings->sntp_server);
    struct lldp_port_config ports[NET_PORTS];
    bool is_new_name;

    services->now_us = now_us;
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        ports[i] = lldp_port_of(settings->lldp[i]);
    }
    lldp_set(&services->lldp, ports, settings->lldp_interval_s,
             settings->lldp_hold, now_us);
    is_new_name = services_set_name(services, settings->name);
    if (is_new_name) {
        lldp_changed(&services->lldp, now_us);
    }
    mdns_apply(services, config, is_new_name);
    services->has_sntp_server = !ip_addr_is_unspecified(&server);
    sntp_set_poll(&services->sntp, settings->sntp_poll_s, now_us);
    if (services->has_sntp_server) {
        sntp_set_server(&services->sntp, &server, now_us);
    } else {
        set_lease_server(services);
    }
}

static void check_links(struct services *services)
{
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        const struct node_port *port = &services->net->ports.port[i];
        struct port_link link;

        if (port->is_up == services->was_up[i]) {
            continue;
        }
        services->was_up[i] = port->is_up;
        port_link_get(&port->port, &link);
        lldp_link(&services->lldp, i, port->is_up, link.speed_mbps,
                  services->now_us);
    }
}

/* Report link changes of the stack's ports to DHCP and SNTP. */
static void check_nets(struct services *services)
{
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        bool is_up = drive_net_is_up(services->net, i);

        if (is_up == services->was_net_up[i]) {
            continue;
        }
        services->was_net_up[i] = is_up;
        dhcp_client_link(&services->dhcp, i, is_up, services->now_us);
        mdns_link(&services->mdns, i, is_up, services->now_us);
        if (is_up) {
            sntp_link_up(&services->sntp, services->now_us);
        }
    }
}

uint64_t services_step(struct services *services, uint64_t now_us,
                       uint64_t left_out_us)
{
    uint64_t dhcp_us, lldp_us, log_us, mdns_us, sntp_us, stack_us;

    services->now_us = now_us;
    check_links(services);
    check_nets(services);
    if (services->left_out_us != left_out_us) {
        dhcp_client_held_back(&services->dhcp,
                              left_out_us - services->left_out_us);
        services->left_out_us = left_out_us;
    }
    dhcp_us = dhcp_client_timer(&services->dhcp, now_us);
    drive_net_settle(services->net);
    if (services->address_changes != services->net->address_changes) {
        services->address_changes = services->net->address_changes;
        lldp_changed(&services->lldp, now_us);
    }
    lldp_us = lldp_timer(&services->lldp, now_us);
    log_us = lldp_log_timer(&services->lldp_log, now_us);
    sntp_us = sntp_timer(&services->sntp, now_us);
    mdns_us = mdns_timer(&services->mdns, now_us);
    /* The services may have added addresses that the stack has to probe. */
    stack_us = net_stack_timer(&services->net->stack, now_us);
    return MIN(MIN(dhcp_us, stack_us),
               MIN(MIN(lldp_us, log_us), MIN(sntp_us, mdns_us)));
}

void services_stop(struct services *services)
{
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        lldp_stop(&services->lldp, i);
    }
    mdns_stop(&services->mdns, services->now_us);
    dhcp_client_stop(&services->dhcp, services->now_us);
}
