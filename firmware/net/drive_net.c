/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/net/drive_net.h"

#include <string.h>

#include "firmware/net/drive_address.h"
#include "firmware/text/ip_text.h"
#include "hw-model/regs/port_names.h"
#include "hw-model/regs/soc.h"

enum {
    RX_FRAMES = 128,
    TX_FRAMES = 64,
    RX_BUDGET = 32,     /* frames of one port in one step */
    CM_RETRIES = 15,    /* as Linux does */
    ROCE_OVERHEAD = 96, /* what path MTUs are reckoned with: as Linux does */
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

/* ---- What the stack asks of us. */

static uint8_t *tx_begin(void *ctx, uint8_t port)
{
    struct drive_net *net = ctx;

    if (drive_lag_is_on(&net->lag)) {
        /* The stack's port 1 is its link alone: see drive_lag.h. */
        net->tx_member[port] = port == 0 ? net->lag.active : port;
        port = net->tx_member[port];
    }
    return port_tx_begin(&net->ports[port].port);
}

/* Of a link, and built in another one's buffer.  No room there: it is lost. */
static void tx_elsewhere(struct port *port, const uint8_t *frame, size_t len,
                         uint8_t priority)
{
    uint8_t *copy = port_tx_begin(port);

    if (copy != NULL) {
        memcpy(copy, frame, len);
        port_tx_commit(port, (uint32_t)len, priority);
    }
}

static void tx_commit(void *ctx, uint8_t port, size_t len, uint8_t priority)
{
    struct drive_net *net = ctx;

    if (drive_lag_is_on(&net->lag) && net->tx_member[port] != port) {
        struct port *member = &net->ports[net->tx_member[port]].port;
        const uint8_t *frame = port_tx_begin(member); /* the same again */

        ASSERT(frame != NULL);
        if (drive_lag_is_of_link(frame)) {
            tx_elsewhere(&net->ports[port].port, frame, len, priority);
        } else {
            port_tx_commit(member, (uint32_t)len, priority);
        }
        return;
    }
    port_tx_commit(&net->ports[port].port, (uint32_t)len, priority);
}

static void neigh_update(void *ctx, uint16_t index,
                         const struct neigh_info *info)
{
    struct drive_net *net = ctx;
    struct verbs_gid gid = gid_of(&info->ip);

    /* The RNIC's table has the stack's size and indices: it cannot refuse. */
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

void drive_net_set_groups(struct drive_net *net)
{
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        struct mac_addr groups[NET_MULTICAST];
        uint8_t at = drive_lag_is_on(&net->lag) ? 0 : i;
        size_t count = net_stack_multicast(&net->stack, at, groups);

        for (size_t k = 0; k < NET_MULTICAST; k++) {
            port_set_multicast(&net->ports[i].port, (unsigned int)k,
                               k < count ? groups[k].bytes : NULL);
        }
    }
}

/* Frames of that VLAN have somewhere to go on that port of the stack. */
static bool uses_vlan(const struct drive_net *net, uint8_t port, uint16_t vlan)
{
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        if ((i == port || drive_lag_is_on(&net->lag)) &&
            net->base_vlan[i] == vlan) {
            return true;
        }
    }
    for (uint8_t i = 0; i < NET_CONFIGURED; i++) {
        const struct net_address *address = &net->stack.addresses[i];

        if (address->state != ADDRESS_UNUSED && address->config.port == port &&
            address->config.vlan == vlan) {
            return true;
        }
    }
    return false;
}

/* Be a member of a VLAN for as long as it is used. */
static void follow_vlan(struct drive_net *net, uint8_t port, uint16_t vlan)
{
    bool is_member = uses_vlan(net, port, vlan);

    if (vlan == 0 || vlan == NET_VLAN_UNTAGGED) {
        return;
    }
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        if (i == port || drive_lag_is_on(&net->lag)) {
            port_set_vlan(&net->ports[i].port, vlan, is_member);
        }
    }
}

/* The RNIC knows the addresses that are ours, and the ports their groups. */
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
    follow_vlan(net, own->port, own->vlan);
    drive_net_set_groups(net);
}

/* ---- What the connection manager asks of us. */

/* The largest RoCE path MTU that a packet of so many bytes has room for. */
static uint8_t path_mtu_of(uint16_t mtu_bytes)
{
    uint8_t found = IB_MTU_256;

    for (uint8_t code = IB_MTU_256; code <= IB_MTU_4096; code++) {
        if (ib_mtu_bytes(code) <= mtu_bytes - (uint32_t)ROCE_OVERHEAD) {
            found = code;
        }
    }
    return found;
}

/* As they come to us; what comes without one is answered with our own. */
static uint8_t priority_of(const struct drive_net *net,
                           const struct verbs_ud_info *from)
{
    const struct net_stack_config *config = &net->stack.config;
    uint8_t port = net_stack_address(&net->stack, from->laddr)->port;

    return from->priority != 0 ? from->priority : config->ports[port].priority;
}

static enum cm_path_result path_resolve(void *ctx,
                                        const struct verbs_ud_info *from,
                                        struct cm_path *path)
{
    struct drive_net *net = ctx;
    struct ip_addr ip = ip_addr_from_bytes(from->src_ip.bytes);
    enum neigh_result result;
    struct mac_addr mac;
    uint16_t index;

    memcpy(mac.bytes, from->src_mac, sizeof(mac.bytes));
    result = net_neigh_learn(&net->stack, from->laddr, &ip, &mac, net->now_us,
                             &index);
    if (result != NEIGH_READY) {
        return result == NEIGH_FULL ? CM_PATH_FULL : CM_PATH_NONE;
    }
    *path = (struct cm_path){
        .neigh = index,
        .laddr = from->laddr,
        .is_v1 = from->is_v1,
        .priority = priority_of(net, from),
        .mtu = path_mtu_of(net_neigh_path_mtu(&net->stack, index, net->now_us)),
    };
    return CM_PATH_READY;
}

static void path_pin(void *ctx, uint16_t neigh)
{
    struct drive_net *net = ctx;

    net_neigh_pin(&net->stack, neigh, net->now_us);
}

static void path_unpin(void *ctx, uint16_t neigh)
{
    struct drive_net *net = ctx;

    net_neigh_unpin(&net->stack, neigh, net->now_us);
}

static const struct cm_path_ops path_ops = {path_resolve, path_pin, path_unpin};

/* ---- Links. */

bool drive_net_set_link(struct drive_net *net, uint8_t port, uint8_t speed_gbps,
                        enum config_fec fec)
{
    static const uint8_t port_fec[] = {
        [CONFIG_FEC_NONE] = PORT_FEC_NONE,
        [CONFIG_FEC_FC] = PORT_FEC_FC,
        [CONFIG_FEC_RS] = PORT_FEC_RS,
    };

    if (!port_link_enable(&net->ports[port].port, speed_gbps * 1000u,
                          (enum port_fec)port_fec[fec])) {
        log_line(net->log,
                 "port %u: %u Gb/s with this FEC is refused: the ports have "
                 "one speed, and RS-FEC is for 25 Gb/s",
                 port, speed_gbps);
        return false;
    }
    return true;
}

void drive_net_disable_link(struct drive_net *net, uint8_t port)
{
    port_link_disable(&net->ports[port].port);
}

void drive_net_link(const struct drive_net *net, uint8_t port,
                    struct port_link *link)
{
    port_link_get(&net->ports[port].port, link);
}

bool drive_net_is_up(const struct drive_net *net, uint8_t port)
{
    if (drive_lag_is_on(&net->lag)) {
        return port == 0 && net->lag.is_up;
    }
    return net->ports[port].is_up;
}

/* What was refused may find a place now. @return whether none is missing */
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
        uint16_t old = net->base_vlan[i];

        if (!net->has_dhcp[i]) { /* its client stays where it is */
            net->base_vlan[i] = after->port[i].vlan;
            follow_vlan(net, i, old);
            follow_vlan(net, i, net->base_vlan[i]);
        }
    }
    if (!add_missing(net)) {
        log_line(net->log,
                 "net: an address of the configuration waits: the drive has "
                 "it already, or eight others");
    }
}

/* DHCP has its own. */
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
        port_set_pause(&net->ports[i].port, network->pfc_priorities, false);
        port_set_roce_v1(&net->ports[i].port, network->has_roce_v1);
    }
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
    return port_counter_read(&net->ports[port].port, counter);
}

/* ---- Start. */

/* Of the aggregate, or of a port: MTU, VLAN, what else a network has. */
static const struct config_port *settings_of(const struct config *config,
                                             uint8_t port)
{
    return &config->port[config->network.lag != CONFIG_LAG_OFF ? 0 : port];
}

static bool ports_init(struct drive_net *net,
                       const struct drive_net_config *config)
{
    bool is_one = config->config->network.lag != CONFIG_LAG_OFF;
    const struct config_network *network = &config->config->network;

    for (uint8_t i = 0; i < NET_PORTS; i++) {
        const struct config_port *settings = settings_of(config->config, i);
        struct port *port = &net->ports[i].port;
        struct port_config port_config = {
            .regs = config->port_regs[i],
            .dram = config->dram,
            .rx_frames = RX_FRAMES,
            .tx_frames = TX_FRAMES,
            .mtu_bytes = settings->mtu_bytes,
        };
        uint32_t room = settings->mtu_bytes - ROCE_OVERHEAD;

        if (!port_init(port, &port_config)) {
            log_line(net->log, "port %u: does not start", i);
            return false;
        }
        port_set_mac(port, 0, config->identity->mac[is_one ? 0 : i]);
        port_set_vlan_filter(port, true); /* members: follow_vlan() */
        port_set_pause(port, network->pfc_priorities, false);
        port_set_roce_v1(port, network->has_roce_v1);
        for (uint8_t code = IB_MTU_256; code <= IB_MTU_4096; code++) {
            if (ib_mtu_bytes(code) <= room) {
                net->ports[i].path_mtu = code;
            }
        }
        net->ports[i].check_link = true;
    }
    port_pair(&net->ports[0].port, &net->ports[1].port);
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        const struct config_port *settings = &config->config->port[i];

        /* Refused: that port stays off, the log says why. */
        (void)!drive_net_set_link(net, i, settings->speed_gbps, settings->fec);
    }
    return true;
}

/* Address i is the RNIC's local address i: see drive_address_list(). */
static void stack_init(struct drive_net *net,
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
        port->mtu_bytes = settings_of(config->config, i)->mtu_bytes;
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

/* Those that may be used come when their link does: address_changed(). */
static void filters_init(struct drive_net *net, const struct config *config)
{
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        /* DHCP asks there, and routers advertise, without any address. */
        net->base_vlan[i] = config->port[i].vlan;
        net->has_dhcp[i] = config->services.has_dhcp[i];
        follow_vlan(net, i, net->base_vlan[i]);
    }
    drive_address_list(config, net->configured);
    for (uint8_t i = 0; i < NET_CONFIGURED; i++) {
        const struct net_address_config *own = &net->stack.config.addresses[i];

        if (!ip_addr_is_unspecified(&own->ip)) {
            follow_vlan(net, own->port, own->vlan);
        }
    }
    drive_net_set_groups(net);
}

static bool lag_start(struct drive_net *net,
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

static bool rdma_init(struct drive_net *net,
                      const struct drive_net_config *config)
{
    struct verbs_config verbs = {
        .regs = config->rnic_regs,
        .dram = config->dram,
        .generation = config->generation,
        .has_cnp = config->config->network.has_cnp,
        .has_dcqcn = config->config->network.has_dcqcn,
    };

    if (!verbs_init(&net->verbs, &verbs)) {
        log_line(net->log, "rnic: does not start");
        return false;
    }
    return true;
}

static bool cm_start(struct drive_net *net,
                     const struct drive_net_config *config)
{
    struct cm_config cm = {
        .verbs = &net->verbs,
        .path_ops = &path_ops,
        .path_ctx = net,
        .memory = dram_alloc(config->dram, CM_MEMORY_LEN, 64),
        .ca_guid = get_be64(config->identity->ca_guid),
        .generation = config->generation,
        .random_seed = config->random_seed,
        .initiator_depth = config->initiator_depth,
        .responder_resources = config->responder_resources,
        .max_retries = CM_RETRIES,
    };

    if (cm.memory == NULL || !cm_init(&net->cm, &cm)) {
        log_line(net->log, "cm: does not start");
        return false;
    }
    return true;
}

bool drive_net_init(struct drive_net *net,
                    const struct drive_net_config *config, uint64_t now_us)
{
    net->log = config->log;
    net->now_us = now_us;
    if (!ports_init(net, config) || !rdma_init(net, config)) {
        return false;
    }
    stack_init(net, config);
    if (!lag_start(net, config)) {
        return false;
    }
    filters_init(net, config->config);
    return cm_start(net, config);
}

void drive_net_start(struct drive_net *net)
{
    for (unsigned int i = 0; i < NET_PORTS; i++) {
        port_irq_enable(&net->ports[i].port);
    }
}

/* ---- Running. */

static void check_link(struct drive_net *net, uint8_t index)
{
    struct drive_port *port = &net->ports[index];
    struct port_link link;

    port->check_link = false;
    port_link_get(&port->port, &link);
    if (!link.is_up && link.reason != port->reason) {
        log_line(net->log, "port %u: link down: %s", index,
                 port_reason_name[link.reason]);
    }
    port->reason = link.reason;
    if (link.is_up == port->is_up) {
        return;
    }
    port->is_up = link.is_up;
    if (link.is_up) {
        static const char *const fec[] = {"no FEC", "FC-FEC", "RS-FEC"};

        log_line(net->log, "port %u: link up, %u Mb/s, %s", index,
                 link.speed_mbps, fec[link.fec]);
        rnic_set_line_rate(&net->verbs, link.speed_mbps);
    }
    if (drive_lag_is_on(&net->lag)) {
        drive_lag_link(&net->lag, index, link.is_up, net->now_us);
    } else {
        net_stack_link(&net->stack, index, link.is_up, net->now_us);
    }
}

static bool receive(struct drive_net *net, uint8_t index)
{
    struct port *port = &net->ports[index].port;
    struct port_frame frame;
    unsigned int n = 0;

    for (; n < RX_BUDGET && port_rx_peek(port, &frame); n++) {
        uint8_t at = index;
        bool is_ours = !drive_lag_is_on(&net->lag) ||
                       drive_lag_accept(&net->lag, index, frame.data,
                                        frame.len_bytes, &at, net->now_us);

        if (is_ours && !net_stack_input(&net->stack, at, frame.data,
                                        frame.len_bytes, net->now_us)) {
            break;
        }
        port_rx_pop(port);
    }
    return n != 0;
}

bool drive_net_step(struct drive_net *net, uint64_t now_us, unsigned int budget,
                    uint64_t *deadline_us)
{
    uint64_t cm_us, stack_us, lag_us = UINT64_MAX;
    bool is_busy;

    net->now_us = now_us;
    cm_us = cm_poll(&net->cm, now_us);
    is_busy = verbs_poll(&net->verbs, budget) != 0;
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        if (net->ports[i].check_link) {
            check_link(net, i);
            is_busy = true;
        }
        is_busy |= receive(net, i);
    }
    if (drive_lag_is_on(&net->lag)) {
        lag_us = drive_lag_step(&net->lag, now_us);
    }
    stack_us = net_stack_timer(&net->stack, now_us);
    *deadline_us = MIN(lag_us, MIN(cm_us, stack_us));
    return is_busy;
}

void drive_net_flush(struct drive_net *net)
{
    verbs_flush(&net->verbs);
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        port_tx_kick(&net->ports[i].port);
    }
}

bool drive_net_arm(struct drive_net *net, bool sends_wait)
{
    bool is_quiet = verbs_arm(&net->verbs, sends_wait);

    for (uint8_t i = 0; i < NET_PORTS; i++) {
        is_quiet &= port_arm(&net->ports[i].port);
    }
    return is_quiet;
}

void drive_net_irqs(struct drive_net *net, uint32_t irqs)
{
    static const uint8_t irq[NET_PORTS] = {SOC_IRQ_PORT0, SOC_IRQ_PORT1};

    if (irqs & BIT(SOC_IRQ_RNIC)) {
        verbs_irq_take(&net->verbs);
    }
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        if (irqs & BIT(irq[i])) {
            uint32_t what = port_irq_take(&net->ports[i].port);

            net->ports[i].check_link |=
                FIELD_GET(what, PORT_IRQ_STATUS, LINK) != 0;
        }
    }
}
