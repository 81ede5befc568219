/* SPDX-License-Identifier: BSD-2-Clause */
/* DHCP client: see dhcp.h. */
#include "net/stack/dhcp.h"

#include <string.h>

#include "lib/random.h"
#include "net/stack/udp_send.h"

enum {
    SECOND_US = 1000000,
    ROOM_US = 1000,           /* retry when there was no transmit buffer */
    NEIGHBOUR_US = 50000,     /* retry while the server's MAC is unknown */
    NO_ADDRESS_US = 60000000, /* retry when the drive had no free address */
    MTU_MIN = 1280,
    MESSAGE_MAX = 576,
    HOST_NAME_MAX = 63,
};

/* Allowed transitions; every state may also go to OFF. */
static const uint16_t dhcp_next[DHCP_STATES] = {
    [DHCP_OFF] = BIT(DHCP_INIT) | BIT(DHCP_REBOOTING),
    [DHCP_INIT] = BIT(DHCP_SELECTING),
    [DHCP_SELECTING] = BIT(DHCP_REQUESTING),
    [DHCP_REQUESTING] = BIT(DHCP_PROBING) | BIT(DHCP_INIT),
    [DHCP_REBOOTING] = BIT(DHCP_PROBING) | BIT(DHCP_INIT),
    [DHCP_PROBING] = BIT(DHCP_BOUND) | BIT(DHCP_INIT),
    [DHCP_BOUND] = BIT(DHCP_RENEWING) | BIT(DHCP_INIT),
    [DHCP_RENEWING] = BIT(DHCP_BOUND) | BIT(DHCP_REBINDING) | BIT(DHCP_INIT),
    [DHCP_REBINDING] = BIT(DHCP_BOUND) | BIT(DHCP_INIT),
};

/* The only writer of port->state. */
static void dhcp_enter(struct dhcp_port *port, enum dhcp_state next,
                       uint64_t due_us)
{
    ASSERT((dhcp_next[port->state] | BIT(DHCP_OFF)) & BIT(next));
    port->state = (uint8_t)next;
    port->tries = 0;
    port->due_us = due_us;
}

static void dhcp_count(struct dhcp_client *client, enum dhcp_counter counter)
{
    client->counters[counter]++;
}

/* The time to wait for an answer after `tries` messages: RFC 2131 4.1. */
static uint64_t answer_wait_us(struct dhcp_client *client, unsigned int tries)
{
    bool is_fast = client->config.is_fast;
    uint64_t wait_us = is_fast ? DHCP_FAST_FIRST_US : DHCP_FIRST_US;
    uint64_t longest_us = is_fast ? DHCP_FAST_LONGEST_US : DHCP_LONGEST_US;

    for (unsigned int i = 0; i < tries && wait_us < longest_us; i++) {
        wait_us *= 2;
    }
    return wait_us - wait_us / 4 + random_next(&client->random) % (wait_us / 2);
}

/* ---- Sending. */

enum sent { SENT, SENT_LATER, SENT_NOWHERE };

struct message {
    enum dhcp_type type;
    bool has_requested; /* has the "requested address" option */
    bool has_server;    /* has the "server identifier" option */
    bool has_ciaddr;    /* has our address in ciaddr */
    bool is_unicast;    /* goes to the server, resolved as usual */
    bool is_farewell;   /* goes to the server's last known MAC: this is the
                         * last message, so there is no time to resolve it */
};

static enum sent send_message(struct dhcp_client *client, uint8_t index,
                              const struct message *message, uint64_t now_us)
{
    static const uint8_t parameters[] = {
        DHCP_OPTION_MASK,  DHCP_OPTION_ROUTER, DHCP_OPTION_MTU, DHCP_OPTION_NTP,
        DHCP_OPTION_LEASE, DHCP_OPTION_SERVER, DHCP_OPTION_T1,  DHCP_OPTION_T2,
    };
    static const struct mac_addr all = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    struct net_stack *stack = client->config.stack;
    struct dhcp_port *port = &client->ports[index];
    const struct mac_addr *mac = &stack->config.ports[index].mac;
    const struct ip_addr nobody = ip_addr_from_v4(0);
    uint64_t secs = (now_us - port->began_us) / SECOND_US;
    uint8_t id[7] = {1}; /* Ethernet */
    uint8_t buf[MESSAGE_MAX];
    struct dhcp dhcp = {
        .type = (uint8_t)message->type,
        .is_broadcast = !message->has_ciaddr,
        .secs = (uint16_t)MIN(secs, UINT16_MAX),
        .xid = port->xid,
        .ciaddr = message->has_ciaddr ? port->lease.ip : nobody,
        .yiaddr = nobody,
        .chaddr = *mac,
        .requested = message->has_requested ? port->lease.ip : nobody,
        .server = message->has_server ? port->lease.server : nobody,
        .client = {id, sizeof(id)},
    };
    size_t len;

    memcpy(id + 1, mac->bytes, sizeof(mac->bytes));
    if (message->type == DHCP_DISCOVER || message->type == DHCP_REQUEST) {
        dhcp.max_len_bytes = MESSAGE_MAX;
        dhcp.parameters = (struct dhcp_bytes){parameters, sizeof(parameters)};
        if (client->config.host_name != NULL) {
            dhcp.host_name =
                (struct dhcp_bytes){(const uint8_t *)client->config.host_name,
                                    (uint8_t)strlen(client->config.host_name)};
        }
    }
    len = dhcp_emit(&dhcp, buf, sizeof(buf));
    ASSERT(len != 0); /* all fields are bounded, so the message fits */
    if (message->is_unicast) {
        const struct net_udp_tx udp = {
            .dst = port->lease.server,
            .payload = buf,
            .len_bytes = len,
            .src_port = DHCP_CLIENT_PORT,
            .dst_port = DHCP_SERVER_PORT,
            .local = (uint8_t)port->local,
        };
        enum net_udp_sent sent = net_stack_udp_send(stack, &udp, now_us);

        return sent == NET_UDP_SENT   ? SENT
               : sent == NET_UDP_WAIT ? SENT_LATER
                                      : SENT_NOWHERE;
    }
    return net_stack_udp_direct(
               stack,
               &(struct net_udp_direct){
                   .mac = message->is_farewell ? port->server_mac : all,
                   .src = dhcp.ciaddr,
                   .dst = message->is_farewell ? port->lease.server
                                               : ip_addr_from_v4(0xffffffff),
                   .payload = buf,
                   .len_bytes = len,
                   .src_port = DHCP_CLIENT_PORT,
                   .dst_port = DHCP_SERVER_PORT,
                   .vlan = client->config.ports[index].vlan,
                   .port = index,
               })
               ? SENT
               : SENT_LATER;
}

/* ---- The lease. */

static void report_lease(struct dhcp_client *client, uint8_t index,
                         const struct dhcp_lease *lease)
{
    client->ports[index].is_reported = lease != NULL;
    if (client->config.leased != NULL) {
        client->config.leased(client->config.ctx, index, lease);
    }
}

/* Remove the leased address and report that there is no lease any more. */
static void drop_lease(struct dhcp_client *client, uint8_t index)
{
    static const struct ip_addr none;
    struct dhcp_port *port = &client->ports[index];

    if (port->local >= 0) {
        net_stack_address_remove(client->config.stack, (uint8_t)port->local);
        net_stack_set_link4(client->config.stack, index, &none, 0);
        port->local = -1;
        port->expire_us = UINT64_MAX;
    }
    if (port->is_reported) {
        report_lease(client, index, NULL);
    }
}

static void note_failure(struct dhcp_client *client, uint8_t index,
                         uint64_t now_us)
{
    if (++client->ports[index].failures >= DHCP_FAILURES) {
        ipv4ll_start(&client->ports[index].fallback, now_us);
    }
}

/* Drop the lease and start again with DISCOVER after wait_us. */
static void dhcp_restart(struct dhcp_client *client, uint8_t index,
                         uint64_t wait_us, uint64_t now_us)
{
    drop_lease(client, index);
    note_failure(client, index, now_us);
    dhcp_enter(&client->ports[index], DHCP_INIT, now_us + wait_us);
}

static uint64_t seconds_from(uint64_t us, uint64_t seconds)
{
    return us + seconds * SECOND_US;
}

/* T1, T2 and the lease's end count from the REQUEST: RFC 2131 4.4.5. */
static void set_times(struct dhcp_port *port, const struct dhcp *ack)
{
    uint64_t lease_s = ack->lease_s;
    uint64_t t1_s = ack->t1_s != 0 ? ack->t1_s : lease_s / 2;
    uint64_t t2_s = ack->t2_s != 0 ? ack->t2_s : lease_s * 7 / 8;

    if (lease_s == DHCP_FOREVER) {
        port->renew_us = port->rebind_us = port->expire_us = UINT64_MAX;
        return;
    }
    if (t1_s > t2_s || t2_s > lease_s) {
        t1_s = lease_s / 2;
        t2_s = lease_s * 7 / 8;
    }
    t1_s = MAX(t1_s, 1); /* a server must not make us renew without pause */
    port->renew_us = seconds_from(port->asked_us, t1_s);
    port->rebind_us = seconds_from(port->asked_us, t2_s);
    port->expire_us = seconds_from(port->asked_us, lease_s);
}

static bool is_host(const struct ip_addr *ip)
{
    return !ip_addr_is_unspecified(ip) && !ip_addr_is_multicast(ip) &&
           ip->bytes[12] != 0 && ip->bytes[12] != 127 && ip->bytes[12] < 240;
}

static struct dhcp_lease lease_of(const struct dhcp_client *client,
                                  uint8_t index, const struct dhcp *dhcp)
{
    const struct net_port_config *port =
        &client->config.stack->config.ports[index];
    bool has_mtu =
        dhcp->mtu_bytes >= MTU_MIN && dhcp->mtu_bytes <= port->mtu_bytes;

    return (struct dhcp_lease){
        .ip = dhcp->yiaddr,
        .server = dhcp->server,
        .router = dhcp->router,
        .ntp_server = dhcp->ntp_server,
        .lease_s = dhcp->lease_s,
        .mtu_bytes = has_mtu ? dhcp->mtu_bytes : 0,
        .prefix_bits = dhcp->prefix_bits,
    };
}

/* ---- Answers. */

static bool is_lease(const struct dhcp *dhcp)
{
    return is_host(&dhcp->yiaddr) && is_host(&dhcp->server) &&
           dhcp->lease_s != 0 && dhcp->has_mask;
}

static bool may_be_acked(const struct dhcp_port *port, const struct dhcp *dhcp)
{
    return (port->state == DHCP_REQUESTING &&
            ip_addr_equal(&dhcp->server, &port->lease.server)) ||
           port->state == DHCP_REBOOTING || port->state == DHCP_RENEWING ||
           port->state == DHCP_REBINDING;
}

static void take_ack(struct dhcp_client *client, uint8_t index,
                     const struct dhcp *dhcp, const struct net_udp_rx *udp)
{
    struct net_stack *stack = client->config.stack;
    struct dhcp_port *port = &client->ports[index];
    bool is_renewal =
        port->state == DHCP_RENEWING || port->state == DHCP_REBINDING;
    const struct net_address_config address = {
        .ip = dhcp->yiaddr,
        .vlan = client->config.ports[index].vlan,
        .port = index,
        .prefix_bits = dhcp->prefix_bits,
        .is_probed = true,
        .is_leased = true,
    };

    dhcp_count(client, DHCP_GOT_ACK);
    port->lease = lease_of(client, index, dhcp);
    port->server_mac = *udp->src_mac;
    if (port->local < 0) {
        port->local = net_stack_address_add(stack, &address, udp->now_us);
    } else {
        net_stack_address_set_prefix(stack, (uint8_t)port->local,
                                     dhcp->prefix_bits);
    }
    if (port->local < 0) { /* no free address; the stack counts that */
        dhcp_restart(client, index, NO_ADDRESS_US, udp->now_us);
        return;
    }
    set_times(port, dhcp);
    net_stack_set_link4(stack, index, &port->lease.router,
                        port->lease.mtu_bytes);
    if (is_renewal) {
        dhcp_enter(port, DHCP_BOUND, port->renew_us);
        report_lease(client, index, &port->lease);
    } else {
        /* check_address() ends this state. */
        dhcp_enter(port, DHCP_PROBING, UINT64_MAX);
    }
}

static void take_reply(struct dhcp_client *client, uint8_t index,
                       const struct dhcp *dhcp, const struct net_udp_rx *udp)
{
    struct dhcp_port *port = &client->ports[index];

    if (dhcp->type == DHCP_OFFER && port->state == DHCP_SELECTING &&
        is_lease(dhcp)) {
        dhcp_count(client, DHCP_GOT_OFFER);
        port->lease = lease_of(client, index, dhcp);
        dhcp_enter(port, DHCP_REQUESTING, udp->now_us);
    } else if (dhcp->type == DHCP_ACK && may_be_acked(port, dhcp) &&
               is_lease(dhcp) &&
               ip_addr_equal(&dhcp->yiaddr, &port->lease.ip)) {
        take_ack(client, index, dhcp, udp);
    } else if (dhcp->type == DHCP_NAK && may_be_acked(port, dhcp) &&
               is_host(&dhcp->server)) {
        dhcp_count(client, DHCP_GOT_NAK);
        dhcp_restart(client, index, DHCP_REFUSED_US, udp->now_us);
    } else {
        dhcp_count(client, DHCP_STRAY);
    }
}

static void dhcp_input(void *ctx, const struct net_udp_rx *udp)
{
    struct dhcp_client *client = ctx;
    const struct mac_addr *mac =
        &client->config.stack->config.ports[udp->port].mac;
    struct dhcp dhcp;

    if (!ip_addr_is_v4(&udp->src) ||
        !dhcp_parse(&dhcp, udp->payload, udp->len_bytes)) {
        dhcp_count(client, DHCP_MALFORMED);
        return;
    }
    if (!client->config.ports[udp->port].is_on ||
        udp->vlan != client->config.ports[udp->port].vlan ||
        udp->src_port != DHCP_SERVER_PORT || !dhcp.is_reply ||
        dhcp.xid != client->ports[udp->port].xid ||
        !mac_addr_equal(&dhcp.chaddr, mac)) {
        dhcp_count(client, DHCP_STRAY);
        return;
    }
    take_reply(client, udp->port, &dhcp, udp);
}

/* ---- Timers. */

/* See whether the stack finds the leased address usable or a duplicate. */
static void check_address(struct dhcp_client *client, uint8_t index,
                          uint64_t now_us)
{
    static const struct message decline = {
        .type = DHCP_DECLINE,
        .has_requested = true,
        .has_server = true,
    };
    const struct net_stack *stack = client->config.stack;
    struct dhcp_port *port = &client->ports[index];

    if (port->local < 0 || port->state == DHCP_OFF) {
        return;
    }
    if (net_stack_is_duplicate(stack, (uint8_t)port->local)) {
        if (send_message(client, index, &decline, now_us) != SENT) {
            port->due_us = now_us + ROOM_US; /* DECLINE has to go first */
            return;
        }
        dhcp_count(client, DHCP_SENT_DECLINE);
        dhcp_restart(client, index,
                     client->config.is_fast ? DHCP_FAST_DECLINED_US
                                            : DHCP_DECLINED_US,
                     now_us);
    } else if (port->state == DHCP_PROBING &&
               net_stack_is_usable(stack, (uint8_t)port->local)) {
        port->failures = 0;
        dhcp_enter(port, DHCP_BOUND, port->renew_us);
        ipv4ll_stop(&port->fallback);
        report_lease(client, index, &port->lease);
    }
}

static void send_discover(struct dhcp_client *client, uint8_t index,
                          uint64_t now_us)
{
    static const struct message message = {.type = DHCP_DISCOVER};
    struct dhcp_port *port = &client->ports[index];

    if (port->state == DHCP_INIT) {
        dhcp_enter(port, DHCP_SELECTING, now_us);
        port->xid = (uint32_t)random_next(&client->random);
        port->began_us = now_us;
    } else if (port->tries != 0) {
        note_failure(client, index, now_us);
    }
    if (send_message(client, index, &message, now_us) != SENT) {
        port->due_us = now_us + ROOM_US;
        return;
    }
    dhcp_count(client, DHCP_SENT_DISCOVER);
    port->due_us = now_us + answer_wait_us(client, port->tries);
    port->tries = (uint8_t)MIN(port->tries + 1, UINT8_MAX);
}

/* REQUESTING and REBOOTING: send the next REQUEST, or give up. */
static void send_request(struct dhcp_client *client, uint8_t index,
                         uint64_t now_us)
{
    struct dhcp_port *port = &client->ports[index];
    const struct message message = {
        .type = DHCP_REQUEST,
        .has_requested = true,
        .has_server = port->state == DHCP_REQUESTING,
    };

    if (port->tries == DHCP_REQUESTS) {
        if (port->state == DHCP_REBOOTING) {
            /* RFC 2131 section 3.2: an unexpired lease may still be used. */
            dhcp_enter(port, DHCP_PROBING, UINT64_MAX);
        } else {
            dhcp_restart(client, index, 0, now_us);
        }
        return;
    }
    if (send_message(client, index, &message, now_us) != SENT) {
        port->due_us = now_us + ROOM_US;
        return;
    }
    dhcp_count(client, DHCP_SENT_REQUEST);
    port->asked_us = now_us;
    port->due_us = now_us + answer_wait_us(client, port->tries);
    port->tries++;
}

/* RENEWING and REBINDING: REQUEST again after half of the remaining time. */
static void send_renewal(struct dhcp_client *client, uint8_t index,
                         uint64_t now_us)
{
    struct dhcp_port *port = &client->ports[index];
    bool is_rebinding = port->state == DHCP_REBINDING;
    uint64_t end_us = is_rebinding ? port->expire_us : port->rebind_us;
    uint64_t least_us =
        client->config.is_fast ? DHCP_FAST_RENEW_US : DHCP_RENEW_US;
    const struct message message = {
        .type = DHCP_REQUEST,
        .has_ciaddr = true,
        .is_unicast = !is_rebinding,
    };
    uint64_t wait_us;

    if (port->tries == 0) {
        port->xid = (uint32_t)random_next(&client->random);
        port->began_us = now_us;
    }
    switch (send_message(client, index, &message, now_us)) {
    case SENT:
        dhcp_count(client, DHCP_SENT_REQUEST);
        port->asked_us = now_us;
        break;
    case SENT_LATER:
        port->due_us =
            MIN(now_us + (is_rebinding ? ROOM_US : NEIGHBOUR_US), end_us);
        port->tries = 1; /* keep this xid for the retry */
        return;
    case SENT_NOWHERE:
        break; /* wait for T2, when any server may answer */
    }
    port->tries = 1;
    wait_us = MAX((end_us - now_us) / 2, least_us);
    port->due_us = MIN(now_us + wait_us, end_us);
}

static void dhcp_step(struct dhcp_client *client, uint8_t index,
                      uint64_t now_us)
{
    struct dhcp_port *port = &client->ports[index];

    switch ((enum dhcp_state)port->state) {
    case DHCP_INIT:
    case DHCP_SELECTING:
        send_discover(client, index, now_us);
        break;
    case DHCP_REQUESTING:
    case DHCP_REBOOTING:
        send_request(client, index, now_us);
        break;
    case DHCP_BOUND:
        dhcp_enter(port, DHCP_RENEWING, now_us);
        break;
    case DHCP_RENEWING:
        if (port->rebind_us <= now_us) {
            dhcp_enter(port, DHCP_REBINDING, now_us);
        } else {
            send_renewal(client, index, now_us);
        }
        break;
    case DHCP_REBINDING:
        send_renewal(client, index, now_us);
        break;
    case DHCP_OFF:
    case DHCP_PROBING:
    case DHCP_STATES:
        port->due_us = UINT64_MAX;
        break;
    }
}

static void expire_lease(struct dhcp_client *client, uint8_t index,
                         uint64_t now_us)
{
    struct dhcp_port *port = &client->ports[index];

    dhcp_count(client, DHCP_EXPIRED);
    drop_lease(client, index);
    if (port->state != DHCP_OFF) {
        dhcp_enter(port, DHCP_INIT, now_us);
    }
}

uint64_t dhcp_client_timer(struct dhcp_client *client, uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX, fallback_us;

    for (uint8_t i = 0; i < NET_PORTS; i++) {
        struct dhcp_port *port = &client->ports[i];

        if (!client->config.ports[i].is_on) {
            continue;
        }
        check_address(client, i, now_us);
        if (port->local >= 0 && port->expire_us <= now_us) {
            expire_lease(client, i, now_us);
        }
        while (port->due_us <= now_us) { /* some states do not wait */
            dhcp_step(client, i, now_us);
        }
        fallback_us = ipv4ll_timer(&port->fallback, now_us);
        next_us = MIN(next_us, MIN(port->due_us, port->expire_us));
        next_us = MIN(next_us, fallback_us);
    }
    return next_us;
}

/* @return a time that is earlier by `us`; UINT64_MAX stands for never */
static uint64_t earlier_us(uint64_t at_us, uint64_t us)
{
    return at_us == UINT64_MAX ? at_us : at_us - MIN(at_us, us);
}

void dhcp_client_held_back(struct dhcp_client *client, uint64_t us)
{
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        struct dhcp_port *port = &client->ports[i];

        port->asked_us = earlier_us(port->asked_us, us);
        port->renew_us = earlier_us(port->renew_us, us);
        port->rebind_us = earlier_us(port->rebind_us, us);
        port->expire_us = earlier_us(port->expire_us, us);
        if (port->state == DHCP_BOUND) {
            port->due_us = MIN(port->due_us, port->renew_us);
        } else if (port->state == DHCP_RENEWING) {
            port->due_us = MIN(port->due_us, port->rebind_us);
        }
    }
}

void dhcp_client_link(struct dhcp_client *client, uint8_t port_index,
                      bool is_up, uint64_t now_us)
{
    struct dhcp_port *port = &client->ports[port_index];
    uint64_t most_us =
        client->config.is_fast ? DHCP_FAST_START_US : DHCP_START_US;

    if (!client->config.ports[port_index].is_on) {
        return;
    }
    dhcp_enter(port, DHCP_OFF, UINT64_MAX);
    if (!is_up) {
        return;
    }
    port->failures = 0;
    port->began_us = now_us;
    port->xid = (uint32_t)random_next(&client->random);
    if (port->local >= 0) {
        dhcp_enter(port, DHCP_REBOOTING, now_us);
    } else {
        dhcp_enter(port, DHCP_INIT,
                   now_us + random_next(&client->random) % most_us);
    }
}

void dhcp_client_stop(struct dhcp_client *client, uint64_t now_us)
{
    static const struct message release = {
        .type = DHCP_RELEASE,
        .has_server = true,
        .has_ciaddr = true,
        .is_farewell = true,
    };

    for (uint8_t i = 0; i < NET_PORTS; i++) {
        struct dhcp_port *port = &client->ports[i];

        if (!client->config.ports[i].is_on) {
            continue;
        }
        if (port->local >= 0 &&
            send_message(client, i, &release, now_us) == SENT) {
            dhcp_count(client, DHCP_SENT_RELEASE);
        }
        drop_lease(client, i);
        ipv4ll_stop(&port->fallback);
        dhcp_enter(port, DHCP_OFF, UINT64_MAX);
    }
}

bool dhcp_client_init(struct dhcp_client *client,
                      const struct dhcp_client_config *config)
{
    bool is_on = false;

    ASSERT(config->host_name == NULL ||
           (strlen(config->host_name) - 1 < HOST_NAME_MAX));
    memset(client, 0, sizeof(*client));
    client->config = *config;
    client->random = config->random_seed;
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        struct dhcp_port *port = &client->ports[i];

        port->local = -1;
        port->due_us = port->expire_us = UINT64_MAX;
        ipv4ll_init(&port->fallback, config->stack, i, config->ports[i].vlan);
        is_on |= config->ports[i].is_on;
    }
    return !is_on || net_stack_udp_bind(config->stack, DHCP_CLIENT_PORT,
                                        dhcp_input, client);
}
