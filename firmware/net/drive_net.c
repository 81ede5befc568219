/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/net/drive_net.h"

#include <string.h>

#include "firmware/net/drive_address.h"
#include "firmware/text/ip_text.h"
#include "hw-model/regs/soc.h"

enum {
    RX_BUDGET = 32,  /* most frames taken from one port in one step */
    CM_RETRIES = 15, /* the number of retries that Linux uses */
};

static struct drive_net *net_of(void *ctx)
{
    return ctx;
}

static struct verbs_gid gid_of(const struct ip_addr *ip)
{
    struct verbs_gid gid;

    memcpy(gid.bytes, ip->bytes, sizeof(gid.bytes));
    return gid;
}

/* ---- Callbacks of the stack. */

static uint8_t *tx_begin(void *ctx, uint8_t port)
{
    return node_ports_tx_begin(&net_of(ctx)->ports, port);
}

static void tx_commit(void *ctx, uint8_t port, size_t len, uint8_t priority)
{
    node_ports_tx_commit(&net_of(ctx)->ports, port, len, priority);
}

static void neigh_update(void *ctx, uint16_t index,
                         const struct neigh_info *info)
{
    struct drive_net *net = ctx;
    struct verbs_gid gid = gid_of(&info->ip);

    /*
     * This cannot fail: the RNIC's table has the size and indices of the
     * stack's.
     */
    ASSERT(verbs_set_neigh(&net->verbs, index, info->port, info->mac.bytes,
                           &gid, info->vlan));
}

static void neigh_remove(void *ctx, uint16_t index)
{
    verbs_clear_neigh(&net_of(ctx)->verbs, index);
}

static bool neigh_is_reached(void *ctx, uint16_t index)
{
    return cm_is_reached(&net_of(ctx)->cm, index);
}

static void address_conflict(void *ctx, uint8_t local,
                             const struct mac_addr *mac)
{
    struct drive_net *net = ctx;
    const uint8_t *b = mac->bytes;
    struct ip_text text = ip_text(&net->stack.addresses[local].config.ip);

    log_line(net->log, "net: %s is also used by %02x:%02x:%02x:%02x:%02x:%02x",
             text.text, b[0], b[1], b[2], b[3], b[4], b[5]);
}

/* An address of the stack changed: update the RNIC's local addresses, and the
 * ports' VLANs and multicast groups. */
static void address_changed(void *ctx, uint8_t local)
{
    struct drive_net *net = ctx;
    const struct net_address_config *own =
        net_stack_address(&net->stack, local);
    const struct net_port_config *port = &net->stack.config.ports[own->port];
    struct verbs_gid gid = gid_of(&own->ip);
    bool is_assigned = net_stack_is_assigned(&net->stack, local);

    if (local < NET_CONFIGURED && is_assigned != net->has_laddr[local]) {
        if (is_assigned) {
            ASSERT(verbs_set_laddr(&net->verbs, local, own->port,
                                   port->mac.bytes, &gid, own->vlan));
        } else {
            verbs_clear_laddr(&net->verbs, local);
        }
        net->has_laddr[local] = is_assigned;
    }
    net->address_changes++;
    node_filters_update_vlan(&net->filters, own->port, own->vlan);
    node_filters_update_groups(&net->filters);
}

void drive_net_set_groups(struct drive_net *net)
{
    node_filters_update_groups(&net->filters);
}

/* ---- Links and configuration. */

bool drive_net_set_link(struct drive_net *net, uint8_t port, uint8_t speed_gbps,
                        enum config_fec fec)
{
    return node_ports_set_link(&net->ports, port, speed_gbps, fec);
}

void drive_net_set_toe(struct drive_net *net, bool is_on)
{
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        port_set_toe(&net->ports.port[i].port, is_on);
    }
    net_stack_set_tcp(&net->stack, is_on);
}

void drive_net_disable_link(struct drive_net *net, uint8_t port)
{
    port_link_disable(&net->ports.port[port].port);
}

void drive_net_link(const struct drive_net *net, uint8_t port,
                    struct port_link *link)
{
    port_link_get(&net->ports.port[port].port, link);
}

bool drive_net_is_up(const struct drive_net *net, uint8_t port)
{
    const struct attachment *attachment = &net->ports.attachment;

    return attachment->ops->is_up(attachment->ctx, port);
}

/*
 * Add the addresses for which there was no room before.
 * @return whether all of them are added now
 */
static bool add_missing(struct drive_net *net)
{
    net->has_refused =
        !drive_address_add(&net->stack, net->configured, net->now_us);
    net->refused_changes = net->address_changes;
    return !net->has_refused;
}

static void set_addresses(struct drive_net *net, const struct config *before,
                          const struct config *after)
{
    drive_address_list(after, net->configured);
    drive_address_remove(&net->stack, before, net->configured);
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        if (!net->has_dhcp[i]) {
            node_filters_set_base_vlan(&net->filters, i, after->port[i].vlan);
        }
    }
    if (!add_missing(net)) {
        log_line(net->log,
                 "net: a configured address is not added yet: the drive has it "
                 "already, or has eight others");
    }
}

/* The configured IPv4 gateway, or zero.  DHCP sets its own gateway. */
static struct ip_addr gateway4_of(const struct config *config, uint8_t port)
{
    const struct config_port *settings = &config->port[port];
    bool is_set = settings->has_ipv4 && get_be32(settings->ipv4_gateway) != 0;

    return is_set ? ip_addr_from_v4(get_be32(settings->ipv4_gateway))
                  : (struct ip_addr){0};
}

static struct ip_addr gateway6_of(const struct config *config, uint8_t port)
{
    const struct config_port *settings = &config->port[port];

    return settings->has_ipv6 ? ip_addr_from_bytes(settings->ipv6_gateway)
                              : (struct ip_addr){0};
}

void drive_net_apply(struct drive_net *net, const struct config *before,
                     const struct config *after)
{
    const struct config_network *network = &after->network;

    set_addresses(net, before, after);
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        struct ip_addr gateway4 = gateway4_of(after, i);
        struct ip_addr gateway6 = gateway6_of(after, i);

        if (!net->has_dhcp[i]) {
            net_stack_set_link4(&net->stack, i, &gateway4, 0);
        }
        net_stack_set_gateway6(&net->stack, i, &gateway6);
        port_set_pause(&net->ports.port[i].port, network->pfc_priorities,
                       false);
        port_set_roce_v1(&net->ports.port[i].port, network->has_roce_v1);
        net_stack_set_priority(&net->stack, i, after->port[i].priority);
    }
    drive_lag_set(&net->lag, network, net->now_us);
    rnic_set_ecn(&net->verbs, network->has_cnp, network->has_dcqcn);
}

void drive_net_settle(struct drive_net *net)
{
    if (net->has_refused && net->refused_changes != net->address_changes) {
        (void)add_missing(net);
    }
}

uint64_t drive_net_counter(const struct drive_net *net, uint8_t port,
                           enum port_counter counter)
{
    return port_counter_read(&net->ports.port[port].port, counter);
}

/* ---- Start. */

/* The network settings that a physical port uses. */
static const struct config_port *settings_of(const struct drive_net *net,
                                             const struct config *config,
                                             uint8_t port)
{
    return &config->port[net->ports.attachment.ops->stack_port(port)];
}

static struct init_report ports_start(struct drive_net *net,
                                      const struct drive_net_config *config)
{
    const struct config_network *network = &config->config->network;
    struct node_ports_config ports = {
        .log = config->log,
        .dram = config->dram,
        .stack = &net->stack,
        .attachment = network->lag != CONFIG_LAG_OFF
                          ? drive_lag_attachment(&net->lag)
                          : separate_ports_init(&net->separate, &net->stack),
        .pfc_priorities = network->pfc_priorities,
        .has_roce_v1 = network->has_roce_v1,
    };

    for (uint8_t i = 0; i < NET_PORTS; i++) {
        uint8_t at = ports.attachment.ops->stack_port(i);

        ports.port[i] = (struct node_port_config){
            .regs = config->port_regs[i],
            .mac = config->identity->mac[at],
            .mtu_bytes = config->config->port[at].mtu_bytes,
            .speed_gbps = config->config->port[i].speed_gbps,
            .fec = config->config->port[i].fec,
        };
    }
    return node_ports_init(&net->ports, &ports);
}

/*
 * Start the stack.  Address i is the RNIC's local address i: see
 * drive_address_list().
 */
static void stack_start(struct drive_net *net,
                        const struct drive_net_config *config)
{
    struct net_stack_config stack = {
        .random_seed = config->random_seed,
        .ctx = net,
        .tx_begin = tx_begin,
        .tx_commit = tx_commit,
        .neigh_update = neigh_update,
        .neigh_remove = neigh_remove,
        .neigh_is_reached = neigh_is_reached,
        .address_conflict = address_conflict,
        .address_changed = address_changed,
    };

    for (uint8_t i = 0; i < NET_PORTS; i++) {
        const struct config_port *settings = &config->config->port[i];
        struct net_port_config *port = &stack.ports[i];

        memcpy(port->mac.bytes, config->identity->mac[i],
               sizeof(port->mac.bytes));
        port->mtu_bytes = settings_of(net, config->config, i)->mtu_bytes;
        port->priority = settings->priority;
        port->has_slaac = settings->has_slaac;
        if (!config->config->services.has_dhcp[i]) {
            port->gateway4 = gateway4_of(config->config, i);
        }
        port->gateway6 = gateway6_of(config->config, i);
    }
    drive_address_list(config->config, stack.addresses);
    net_stack_init(&net->stack, &stack);
}

/*
 * Initialise the filters.  The VLANs of addresses are added when links come up.
 */
static void filters_start(struct drive_net *net, const struct config *config)
{
    drive_address_list(config, net->configured);
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        net->has_dhcp[i] = config->services.has_dhcp[i];
        node_filters_set_base_vlan(&net->filters, i, config->port[i].vlan);
    }
    for (uint8_t i = 0; i < NET_CONFIGURED; i++) {
        const struct net_address_config *own = &net->stack.config.addresses[i];

        if (!ip_addr_is_unspecified(&own->ip)) {
            node_filters_update_vlan(&net->filters, own->port, own->vlan);
        }
    }
    node_filters_update_groups(&net->filters);
}

static enum init_result lag_start(struct drive_net *net,
                                  const struct drive_net_config *config)
{
    const struct drive_lag_config lag = {
        .log = config->log,
        .stack = &net->stack,
        .network = &config->config->network,
        .mac = config->identity->mac[0],
        .regs = config->lag_regs,
    };

    return drive_lag_init(&net->lag, &lag);
}

static enum init_result rnic_start(struct drive_net *net,
                                   const struct drive_net_config *config)
{
    struct verbs_config verbs = {
        .regs = config->rnic_regs,
        .dram = config->dram,
        .generation = config->generation,
        .has_cnp = config->config->network.has_cnp,
        .has_dcqcn = config->config->network.has_dcqcn,
        .parity_error = config->parity_error,
        .ctx = config->parity_ctx,
    };

    return verbs_init(&net->verbs, &verbs);
}

static enum init_result cm_start(struct drive_net *net,
                                 const struct drive_net_config *config)
{
    struct cm_config cm = {
        .verbs = &net->verbs,
        .path_ops = &node_paths_ops,
        .path_ctx = &net->paths,
        .memory = dram_alloc(config->dram, CM_MEMORY_LEN, 64),
        .ca_guid = get_be64(config->identity->ca_guid),
        .generation = config->generation,
        .random_seed = config->random_seed,
        .random = config->random,
        .random_ctx = config->random_ctx,
        .initiator_depth = config->initiator_depth,
        .responder_resources = config->responder_resources,
        .max_retries = CM_RETRIES,
        .trace = config->trace,
    };

    if (cm.memory == NULL) {
        return INIT_NO_MEMORY;
    }
    return cm_init(&net->cm, &cm) ? INIT_OK : INIT_REFUSED;
}

struct init_report drive_net_init(struct drive_net *net,
                                  const struct drive_net_config *config,
                                  uint64_t now_us)
{
    struct init_report report;

    net->log = config->log;
    net->now_us = now_us;
    net->paths = (struct node_paths){&net->stack, &net->now_us};
    report = ports_start(net, config);
    if (report.result != INIT_OK) {
        return report;
    }
    report = (struct init_report){rnic_start(net, config), "rnic"};
    if (report.result != INIT_OK) {
        return report;
    }
    node_filters_init(&net->filters, &net->ports, &net->stack);
    stack_start(net, config);
    report = (struct init_report){lag_start(net, config), "lag"};
    if (report.result != INIT_OK) {
        return report;
    }
    filters_start(net, config->config);
    return (struct init_report){cm_start(net, config), "connection manager"};
}

void drive_net_start(struct drive_net *net)
{
    for (unsigned int i = 0; i < NET_PORTS; i++) {
        port_irq_enable(&net->ports.port[i].port);
    }
}

/* ---- Running. */

static void check_link(struct drive_net *net, uint8_t port)
{
    uint32_t speed_mbps = node_ports_check_link(&net->ports, port, net->now_us);

    if (speed_mbps != 0) {
        rnic_set_line_rate(&net->verbs, speed_mbps);
    }
}

bool drive_net_poll_rnic(struct drive_net *net, uint64_t now_us,
                         unsigned int budget, uint64_t *deadline_us)
{
    net->now_us = now_us;
    *deadline_us = cm_poll(&net->cm, now_us);
    return verbs_poll(&net->verbs, budget) != 0;
}

bool drive_net_poll_frames(struct drive_net *net, uint64_t now_us)
{
    bool is_busy = false;

    for (uint8_t i = 0; i < NET_PORTS; i++) {
        if (port_rx_is_waiting(&net->ports.port[i].port)) {
            is_busy |= node_ports_receive(&net->ports, i, RX_BUDGET, now_us);
        }
    }
    return is_busy;
}

bool drive_net_step(struct drive_net *net, uint64_t now_us,
                    uint64_t *deadline_us)
{
    const struct attachment *attachment = &net->ports.attachment;
    bool is_busy = false;
    uint64_t stack_us;

    net->now_us = now_us;
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        if (net->ports.port[i].check_link) {
            check_link(net, i);
            is_busy = true;
        }
    }
    *deadline_us = UINT64_MAX;
    if (attachment->ops->step != NULL) {
        *deadline_us = attachment->ops->step(attachment->ctx, now_us);
    }
    stack_us = net_stack_timer(&net->stack, now_us);
    *deadline_us = MIN(*deadline_us, stack_us);
    return is_busy;
}

void drive_net_flush(struct drive_net *net)
{
    verbs_flush(&net->verbs);
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        port_tx_kick(&net->ports.port[i].port);
    }
}

bool drive_net_arm(struct drive_net *net, bool sends_wait)
{
    bool is_quiet = verbs_arm(&net->verbs, sends_wait);

    for (uint8_t i = 0; i < NET_PORTS; i++) {
        is_quiet &= port_arm(&net->ports.port[i].port);
    }
    return is_quiet;
}

bool drive_net_irqs(struct drive_net *net, uint32_t irqs)
{
    static const uint8_t irq[NET_PORTS] = {SOC_IRQ_PORT0, SOC_IRQ_PORT1};
    bool may_have_changed = false;

    if (irqs & BIT(SOC_IRQ_RNIC)) {
        verbs_irq_take(&net->verbs);
    }
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        if (irqs & BIT(irq[i])) {
            uint32_t what = port_irq_take(&net->ports.port[i].port);

            if (FIELD_GET(what, PORT_IRQ_STATUS, LINK)) {
                net->ports.port[i].check_link = true;
                may_have_changed = true;
            }
        }
    }
    return may_have_changed;
}
