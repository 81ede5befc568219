/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about links, neighbours and addresses: docs/management.md. */
#include "firmware/requests/mgmt_requests.h"

#include "firmware/net/drive_net.h"
#include "firmware/net/lag_text.h"
#include "firmware/requests/parts.h"
#include "firmware/services/services.h"
#include "firmware/text/ip_text.h"
#include "firmware/text/neighbour_text.h"

/* ---- Link aggregation. */

static void put_partner(struct json *out, const struct lacp_info *partner)
{
    char text[LAG_MAC_TEXT_LEN];

    if (mac_addr_is_zero(&partner->system)) {
        return;
    }
    json_begin_object(out, "partner");
    json_string(out, "system", lag_mac_text(text, &partner->system));
    json_number(out, "priority", partner->system_priority);
    json_number(out, "key", partner->key);
    json_number(out, "port", partner->port);
    json_number(out, "state", partner->state);
    json_end_object(out);
}

static void put_lacp(struct json *out, const struct lacp_agent *agent,
                     uint8_t index)
{
    const struct lacp_port *port = &agent->ports[index];

    json_begin_object(out, "lacp");
    json_string(out, "receive", lag_receive_text(port));
    json_string(out, "mux", lag_mux_text(port));
    json_number(out, "state", lacp_actor(agent, index).state);
    json_end_object(out);
    put_partner(out, &port->partner);
    json_number(out, "lacpdus-in", port->counters[LACP_PDUS_RX]);
    json_number(out, "lacpdus-out", port->counters[LACP_PDUS_TX]);
    json_number(out, "lacpdus-illegal", port->counters[LACP_ILLEGAL_RX]);
}

static void put_member(struct json *out, const struct drive_lag *lag,
                       uint8_t port)
{
    bool is_usable = lag->members & lag->links & BIT(port);
    bool is_active = lag->mode == CONFIG_LAG_LACP || port == lag->active;
    const char *role = "link down";

    if (is_usable) {
        role = is_active ? "active" : "standby";
    } else if (lag->links & BIT(port)) {
        role = "out";
    }
    json_begin_object(out, NULL);
    json_number(out, "port", port);
    json_string(out, "role", role);
    if (lag->mode == CONFIG_LAG_LACP) {
        put_lacp(out, &lag->lacp, port);
    }
    json_number(
        out, "roce-out",
        lag_counter_read(&lag->lag, (enum lag_counter)(LAG_COUNT_TX0 + port)));
    json_number(out, "roce-dropped",
                lag_counter_read(&lag->lag, (enum lag_counter)(
                                                LAG_COUNT_RX_DROPPED0 + port)));
    json_number(out, "raw-dropped", lag->dropped[port]);
    json_end_object(out);
}

bool mgmt_lag(void *ctx, const struct json_args *args, struct json *out,
              struct mgmt_refusal *refusal)
{
    static const char *const mode[] = {
        [CONFIG_LAG_ACTIVE_STANDBY] = "active-standby",
        [CONFIG_LAG_LACP] = "lacp",
    };
    const struct drive_lag *lag =
        &((const struct request_parts *)ctx)->net->lag;

    (void)args;
    (void)refusal;
    if (!drive_lag_is_on(lag)) {
        json_string(out, "mode", "off");
        return true;
    }
    json_string(out, "mode", mode[lag->mode]);
    json_bool(out, "up", lag->is_up);
    json_begin_array(out, "ports");
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        put_member(out, lag, i);
    }
    json_end_array(out);
    json_number(out, "moves", lag_counter_read(&lag->lag, LAG_COUNT_MOVES));
    json_number(out, "frames-without-port",
                lag_counter_read(&lag->lag, LAG_COUNT_TX_DROPPED));
    return true;
}

/* ---- Neighbours. */

static void put_text(struct json *out, const char *key,
                     const struct lldp_text *text)
{
    if (text->bytes != NULL) {
        json_string(out, key, neighbour_text(text).text);
    }
}

static void put_neighbour(struct json *out, const struct lldp *lldp,
                          uint32_t left_s)
{
    json_begin_object(out, NULL);
    json_string(out, "chassis",
                neighbour_text_id(&lldp->chassis, LLDP_CHASSIS_MAC).text);
    json_string(out, "port",
                neighbour_text_id(&lldp->port, LLDP_PORT_MAC).text);
    put_text(out, "port-description", &lldp->port_description);
    put_text(out, "system", &lldp->system_name);
    put_text(out, "system-description", &lldp->system_description);
    json_begin_array(out, "addresses");
    for (size_t i = 0; i < lldp->management_count; i++) {
        json_string(out, NULL, ip_text(&lldp->management[i].ip).text);
    }
    json_end_array(out);
    json_begin_array(out, "capabilities");
    for (unsigned int i = 0; i < NEIGHBOUR_CAPABILITIES; i++) {
        if (lldp->has_capabilities && lldp->capabilities_enabled >> i & 1) {
            json_string(out, NULL, neighbour_capability(i));
        }
    }
    json_end_array(out);
    if (lldp->pvid != 0) {
        json_number(out, "vlan", lldp->pvid);
    }
    if (lldp->max_frame != 0) {
        json_number(out, "longest-frame", lldp->max_frame);
    }
    json_number(out, "forgotten-in", left_s);
    json_end_object(out);
}

static void put_port_neighbours(struct json *out,
                                const struct services *services, uint8_t port)
{
    const struct lldp_agent *agent = &services->lldp;
    bool is_alone = true;
    struct lldp lldp;
    uint32_t left_s;

    json_begin_object(out, NULL);
    json_number(out, "port", port);
    json_begin_array(out, "neighbours");
    for (size_t place = 0; place < LLDP_NEIGHBOURS; place++) {
        if (lldp_neighbour_read(agent, port, place, services->now_us, &lldp,
                                &left_s)) {
            is_alone = false;
            put_neighbour(out, &lldp, left_s);
        }
    }
    json_end_array(out);
    if (is_alone) {
        json_string(out, "why",
                    !agent->config.ports[port].receives
                        ? "does not listen to LLDP"
                    : agent->ports[port].state == LLDP_DOWN
                        ? "nothing heard: the link is down"
                        : "nothing heard yet");
    }
    json_end_object(out);
}

bool mgmt_neighbours(void *ctx, const struct json_args *args, struct json *out,
                     struct mgmt_refusal *refusal)
{
    const struct services *services =
        ((const struct request_parts *)ctx)->services;

    (void)args;
    (void)refusal;
    json_begin_array(out, "ports");
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        put_port_neighbours(out, services, i);
    }
    json_end_array(out);
    return true;
}

/* ---- Addresses of the drive. */

bool mgmt_addresses(void *ctx, const struct json_args *args, struct json *out,
                    struct mgmt_refusal *refusal)
{
    static const char *const state[ADDRESS_STATES] = {
        [ADDRESS_UNUSED] = "unused",
        [ADDRESS_DOWN] = "link-down",
        [ADDRESS_TENTATIVE] = "tentative",
        [ADDRESS_OPTIMISTIC] = "optimistic",
        [ADDRESS_ANNOUNCING] = "announcing",
        [ADDRESS_READY] = "ready",
        [ADDRESS_DUPLICATE] = "duplicate",
    };
    const struct net_stack *stack =
        &((const struct request_parts *)ctx)->net->stack;

    (void)args;
    (void)refusal;
    json_begin_array(out, "addresses");
    for (uint8_t i = 0; i < NET_ADDRESSES; i++) {
        const struct net_address_config *own = net_stack_address(stack, i);

        if (stack->addresses[i].state == ADDRESS_UNUSED) {
            continue;
        }
        json_begin_object(out, NULL);
        json_number(out, "port", own->port);
        json_string(out, "address", ip_text(&own->ip).text);
        json_number(out, "prefix", own->prefix_bits);
        json_string(out, "state", state[stack->addresses[i].state]);
        json_end_object(out);
    }
    json_end_array(out);
    return true;
}
