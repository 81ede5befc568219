/* SPDX-License-Identifier: BSD-2-Clause */
/* LACP: see lacp.h. */
#include "net/stack/lacp.h"

#include "net/stack/internal.h"

enum {
    SECOND_US = 1000000,
    FAST_PERIOD_US = SECOND_US,
    SLOW_PERIOD_US = 30 * SECOND_US,
    SHORT_TIMEOUT_US = 3 * FAST_PERIOD_US,
    LONG_TIMEOUT_US = 3 * SLOW_PERIOD_US,
    AGGREGATE_WAIT_US = 2 * SECOND_US,
    PDUS_A_SECOND = 3,    /* clause 5.4.16 */
    ANSWERS_A_SECOND = 5, /* clause 5.5.4.1 */
    TX_RETRY_US = 1000,
    PORT_PRIORITY = 255,
    /* A partner without LACP counts as in sync, collecting and distributing. */
    DEFAULT_PARTNER_STATE =
        LACP_SYNCHRONIZATION | LACP_COLLECTING | LACP_DISTRIBUTING,
};

/* Allowed transitions; every state may also go to DISABLED. */
static const uint8_t rx_next[LACP_RX_STATES] = {
    [LACP_RX_DISABLED] = BIT(LACP_RX_EXPIRED),
    [LACP_RX_EXPIRED] = BIT(LACP_RX_CURRENT) | BIT(LACP_RX_DEFAULTED),
    [LACP_RX_DEFAULTED] = BIT(LACP_RX_CURRENT),
    [LACP_RX_CURRENT] = BIT(LACP_RX_CURRENT) | BIT(LACP_RX_EXPIRED),
};

/* Allowed transitions; every state may also go to DETACHED. */
static const uint8_t mux_next[LACP_MUX_STATES] = {
    [LACP_MUX_DETACHED] = BIT(LACP_MUX_WAITING),
    [LACP_MUX_WAITING] = BIT(LACP_MUX_ATTACHED),
    [LACP_MUX_ATTACHED] = BIT(LACP_MUX_COLLECTING),
    [LACP_MUX_COLLECTING] = BIT(LACP_MUX_ATTACHED) | BIT(LACP_MUX_WORKING),
    [LACP_MUX_WORKING] = BIT(LACP_MUX_COLLECTING),
};

static void lacp_count(struct lacp_port *port, enum lacp_counter counter)
{
    port->counters[counter]++;
}

static struct lacp_info default_partner(void)
{
    return (struct lacp_info){.state = DEFAULT_PARTNER_STATE};
}

static bool has_partner(const struct lacp_port *port)
{
    return !mac_addr_is_zero(&port->partner.system);
}

struct lacp_info lacp_actor(const struct lacp_agent *agent, uint8_t index)
{
    const struct lacp_port *port = &agent->ports[index];
    uint8_t state = LACP_ACTIVITY | LACP_AGGREGATION;

    state |= agent->config.is_fast ? LACP_TIMEOUT : 0;
    state |= port->mux >= LACP_MUX_ATTACHED ? LACP_SYNCHRONIZATION : 0;
    state |= port->mux >= LACP_MUX_COLLECTING ? LACP_COLLECTING : 0;
    state |= port->mux == LACP_MUX_WORKING ? LACP_DISTRIBUTING : 0;
    state |= port->rx == LACP_RX_EXPIRED ? LACP_EXPIRED : 0;
    state |= has_partner(port) ? 0 : LACP_DEFAULTED;
    return (struct lacp_info){
        .system_priority = agent->config.system_priority,
        .system = agent->config.system,
        .key = agent->config.key,
        .port_priority = PORT_PRIORITY,
        .port = (uint16_t)(index + 1),
        .state = state,
    };
}

/* ---- Receive machine: clause 5.4.12. */

/* Compare two ends by everything but their state bits. */
static bool is_same_end(const struct lacp_info *a, const struct lacp_info *b)
{
    return a->port == b->port && a->port_priority == b->port_priority &&
           mac_addr_equal(&a->system, &b->system) &&
           a->system_priority == b->system_priority && a->key == b->key &&
           !((a->state ^ b->state) & LACP_AGGREGATION);
}

static void set_partner(struct lacp_port *port, const struct lacp_info *partner)
{
    if (!is_same_end(partner, &port->partner)) {
        port->is_selected = false; /* update_Selected */
    }
    port->partner = *partner;
}

/* The only writer of port->rx. */
static void rx_enter(struct lacp_port *port, enum lacp_rx_state next)
{
    ASSERT((rx_next[port->rx] | BIT(LACP_RX_DISABLED)) & BIT(next));
    port->rx = (uint8_t)next;
}

static void rx_disable(struct lacp_port *port)
{
    rx_enter(port, LACP_RX_DISABLED);
    port->partner.state &= (uint8_t)~LACP_SYNCHRONIZATION;
    port->current_while_us = UINT64_MAX;
}

static void rx_expire(struct lacp_port *port, uint64_t now_us)
{
    rx_enter(port, LACP_RX_EXPIRED);
    port->partner.state &= (uint8_t)~LACP_SYNCHRONIZATION;
    port->partner.state |= LACP_TIMEOUT; /* makes us send at the fast rate */
    port->current_while_us = now_us + SHORT_TIMEOUT_US;
    port->periodic_us = MIN(port->periodic_us, now_us);
}

static void rx_default(struct lacp_port *port)
{
    const struct lacp_info nobody = default_partner();

    rx_enter(port, LACP_RX_DEFAULTED);
    set_partner(port, &nobody);
    port->current_while_us = UINT64_MAX;
    port->needs_to_transmit = true;
}

/* Whether the partner is in sync with us: recordPDU. */
static bool is_partner_in_sync(const struct lacp *lacp,
                               const struct lacp_info *actor)
{
    bool knows_us = is_same_end(&lacp->partner, actor) ||
                    !(lacp->actor.state & LACP_AGGREGATION);
    bool is_active = (lacp->actor.state & LACP_ACTIVITY) ||
                     (lacp->partner.state & LACP_ACTIVITY);

    return knows_us && is_active && (lacp->actor.state & LACP_SYNCHRONIZATION);
}

static void rx_pdu(struct lacp_agent *agent, uint8_t index,
                   const struct lacp *lacp, uint64_t now_us)
{
    enum {
        TOLD = LACP_ACTIVITY | LACP_TIMEOUT | LACP_SYNCHRONIZATION |
               LACP_AGGREGATION
    };
    struct lacp_port *port = &agent->ports[index];
    struct lacp_info actor = lacp_actor(agent, index);
    struct lacp_info partner = lacp->actor;
    bool was_slow = !(port->partner.state & LACP_TIMEOUT);

    if (!is_partner_in_sync(lacp, &actor)) {
        partner.state &= (uint8_t)~LACP_SYNCHRONIZATION;
    }
    port->needs_to_transmit |= /* update_NTT */
        !is_same_end(&lacp->partner, &actor) ||
        ((lacp->partner.state ^ actor.state) & TOLD);
    set_partner(port, &partner);
    rx_enter(port, LACP_RX_CURRENT);
    port->current_while_us =
        now_us + (agent->config.is_fast ? (uint64_t)SHORT_TIMEOUT_US
                                        : (uint64_t)LONG_TIMEOUT_US);
    if (was_slow && (partner.state & LACP_TIMEOUT)) {
        port->periodic_us = now_us; /* slow to fast: clause 5.4.13 */
    }
}

static void rx_timer(struct lacp_port *port, uint64_t now_us)
{
    if (port->current_while_us > now_us) {
        return;
    }
    if (port->rx == LACP_RX_CURRENT) {
        rx_expire(port, now_us);
    } else {
        rx_default(port);
    }
}

static void lacp_input(void *ctx, const struct net_ether_rx *rx)
{
    struct lacp_agent *agent = ctx;
    struct lacp_port *port = &agent->ports[rx->port];
    struct marker marker;
    struct lacp lacp;

    if (port->rx == LACP_RX_DISABLED) {
        return;
    }
    if (rx->vlan != NET_VLAN_UNTAGGED || rx->len_bytes < SLOW_LEN ||
        !mac_addr_equal(rx->dst, &slow_group)) {
        lacp_count(port, LACP_ILLEGAL_RX);
    } else if (lacp_parse(&lacp, rx->payload, rx->len_bytes)) {
        lacp_count(port, LACP_PDUS_RX);
        rx_pdu(agent, rx->port, &lacp, rx->now_us);
    } else if (marker_parse(&marker, rx->payload, rx->len_bytes)) {
        lacp_count(port, LACP_MARKERS_RX);
        if (!marker.is_response) { /* we never send markers ourselves */
            port->has_marker = true;
            port->marker = marker;
        }
    } else if (rx->payload[SLOW_SUBTYPE] == SLOW_LACP ||
               rx->payload[SLOW_SUBTYPE] == SLOW_MARKER) {
        lacp_count(port, LACP_ILLEGAL_RX);
    } else {
        lacp_count(port, LACP_UNKNOWN_RX);
    }
}

/* ---- Selection: clause 5.4.14. */

static bool may_aggregate(const struct lacp_agent *agent,
                          const struct lacp_port *port)
{
    return port->rx != LACP_RX_DISABLED && has_partner(port) &&
           !mac_addr_equal(&port->partner.system, &agent->config.system);
}

static bool is_same_partner(const struct lacp_info *a,
                            const struct lacp_info *b)
{
    return (a->state & b->state & LACP_AGGREGATION) &&
           mac_addr_equal(&a->system, &b->system) &&
           a->system_priority == b->system_priority && a->key == b->key;
}

/* The port that the others join: a working port keeps this role. */
static int find_leader(const struct lacp_agent *agent)
{
    int first = -1, alone = -1;

    for (int i = NET_PORTS; i-- > 0;) {
        const struct lacp_port *port = &agent->ports[i];
        bool leads = first >= 0 && agent->ports[first].mux == LACP_MUX_WORKING;

        if (may_aggregate(agent, port) &&
            (!leads || port->mux == LACP_MUX_WORKING)) {
            first = i;
        }
        if (port->rx == LACP_RX_DEFAULTED) {
            alone = i;
        }
    }
    return first >= 0 ? first : alone;
}

static void select_ports(struct lacp_agent *agent)
{
    int first = find_leader(agent);

    for (int i = 0; i < NET_PORTS; i++) {
        struct lacp_port *port = &agent->ports[i];

        port->is_selected =
            i == first ||
            (first >= 0 && may_aggregate(agent, port) &&
             is_same_partner(&port->partner, &agent->ports[first].partner));
    }
}

/* ---- Mux machine, independent control: clause 5.4.15. */

/* The only writer of port->mux. */
static void mux_enter(struct lacp_port *port, enum lacp_mux_state next)
{
    ASSERT((mux_next[port->mux] | BIT(LACP_MUX_DETACHED)) & BIT(next));
    port->mux = (uint8_t)next;
    port->needs_to_transmit |= next != LACP_MUX_WAITING;
}

static void mux_step(struct lacp_port *port, uint64_t now_us)
{
    bool is_in_sync = port->partner.state & LACP_SYNCHRONIZATION;
    bool is_taken = is_in_sync && (port->partner.state & LACP_COLLECTING);

    if (!port->is_selected) {
        if (port->mux != LACP_MUX_DETACHED) {
            mux_enter(port, LACP_MUX_DETACHED);
        }
        return;
    }
    if (port->mux == LACP_MUX_DETACHED) {
        mux_enter(port, LACP_MUX_WAITING);
        port->wait_while_us = now_us + AGGREGATE_WAIT_US;
    }
    if (port->mux == LACP_MUX_WAITING && port->wait_while_us <= now_us) {
        mux_enter(port, LACP_MUX_ATTACHED);
    }
    if (port->mux == LACP_MUX_WORKING && !is_taken) {
        mux_enter(port, LACP_MUX_COLLECTING);
    }
    if (port->mux == LACP_MUX_COLLECTING && !is_in_sync) {
        mux_enter(port, LACP_MUX_ATTACHED);
    }
    if (port->mux == LACP_MUX_ATTACHED && is_in_sync) {
        mux_enter(port, LACP_MUX_COLLECTING);
    }
    if (port->mux == LACP_MUX_COLLECTING && is_taken) {
        mux_enter(port, LACP_MUX_WORKING);
    }
}

/* Detach every port that lost its selection before selecting again. */
static void lacp_settle(struct lacp_agent *agent, uint64_t now_us)
{
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        mux_step(&agent->ports[i], now_us);
    }
    select_ports(agent);
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        mux_step(&agent->ports[i], now_us);
    }
}

/* ---- Transmission: clauses 5.4.13 and 5.4.16. */

/* @return the time at which one more frame may be sent */
static uint64_t window_opens(struct lacp_window *window, uint8_t limit,
                             uint64_t now_us)
{
    if (now_us - window->from_us >= SECOND_US) {
        *window = (struct lacp_window){.from_us = now_us};
    }
    return window->count < limit ? now_us : window->from_us + SECOND_US;
}

/*
 * Begin a frame: write its Ethernet header.
 *
 * @param payload  set to where the PDU goes, for frame_commit(); set to NULL
 *                 when nothing may be sent now
 * @return when to try again; UINT64_MAX when *payload is set
 */
static uint64_t frame_begin(struct lacp_agent *agent, uint8_t index,
                            struct lacp_window *window, uint8_t limit,
                            uint64_t now_us, uint8_t **payload)
{
    struct net_stack *stack = agent->config.stack;
    uint64_t when_us = window_opens(window, limit, now_us);
    struct eth eth = {
        .dst = slow_group,
        .src = stack->config.ports[index].mac,
        .type = ETHERTYPE_SLOW, /* never tagged */
    };
    uint8_t *frame;

    *payload = NULL;
    if (when_us > now_us) {
        return when_us;
    }
    frame = net_tx_begin(stack, index);
    if (frame == NULL) {
        return now_us + TX_RETRY_US;
    }
    eth_emit(&eth, frame);
    *payload = frame + ETH_LEN;
    return UINT64_MAX;
}

static void frame_commit(struct lacp_agent *agent, uint8_t index,
                         struct lacp_window *window, enum lacp_counter counter)
{
    net_tx_commit(agent->config.stack, index, ETH_LEN + SLOW_LEN, 0);
    lacp_count(&agent->ports[index], counter);
    window->count++;
}

/* @return when to try again; UINT64_MAX when the LACPDU was sent */
static uint64_t send_pdu(struct lacp_agent *agent, uint8_t index,
                         uint64_t now_us)
{
    struct lacp_port *port = &agent->ports[index];
    const struct lacp lacp = {
        .actor = lacp_actor(agent, index),
        .partner = port->partner,
    };
    uint8_t *payload;
    uint64_t when_us =
        frame_begin(agent, index, &port->sent, PDUS_A_SECOND, now_us, &payload);

    if (payload != NULL) {
        lacp_emit(&lacp, payload);
        frame_commit(agent, index, &port->sent, LACP_PDUS_TX);
        port->needs_to_transmit = false;
    }
    return when_us;
}

static uint64_t answer_marker(struct lacp_agent *agent, uint8_t index,
                              uint64_t now_us)
{
    struct lacp_port *port = &agent->ports[index];
    uint8_t *payload;
    uint64_t when_us = frame_begin(agent, index, &port->answered,
                                   ANSWERS_A_SECOND, now_us, &payload);

    if (payload != NULL) {
        port->marker.is_response = true;
        marker_emit(&port->marker, payload);
        frame_commit(agent, index, &port->answered, LACP_MARKER_RESPONSES_TX);
        port->has_marker = false;
    }
    return when_us;
}

static uint64_t transmit_port(struct lacp_agent *agent, uint8_t index,
                              uint64_t now_us)
{
    struct lacp_port *port = &agent->ports[index];
    uint64_t pdu_us = UINT64_MAX, answer_us = UINT64_MAX;

    if (port->rx == LACP_RX_DISABLED) {
        return UINT64_MAX;
    }
    if (port->periodic_us <= now_us) {
        port->needs_to_transmit = true;
        port->periodic_us = now_us + (port->partner.state & LACP_TIMEOUT
                                          ? (uint64_t)FAST_PERIOD_US
                                          : (uint64_t)SLOW_PERIOD_US);
    }
    if (port->needs_to_transmit) {
        pdu_us = send_pdu(agent, index, now_us);
    }
    if (port->has_marker) {
        answer_us = answer_marker(agent, index, now_us);
    }
    return MIN(MIN(pdu_us, answer_us), port->periodic_us);
}

/* ---- Public functions. */

bool lacp_init(struct lacp_agent *agent, const struct lacp_config *config)
{
    memset(agent, 0, sizeof(*agent));
    agent->config = *config;
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        struct lacp_port *port = &agent->ports[i];

        port->partner = default_partner();
        port->current_while_us = UINT64_MAX;
        port->periodic_us = UINT64_MAX;
    }
    return net_stack_ether_bind(config->stack, ETHERTYPE_SLOW, &slow_group,
                                lacp_input, agent);
}

void lacp_link(struct lacp_agent *agent, uint8_t index, bool is_up,
               uint64_t now_us)
{
    struct lacp_port *port = &agent->ports[index];

    ASSERT(index < NET_PORTS);
    rx_disable(port);
    port->is_selected = false;
    port->has_marker = false;
    mux_step(port, now_us);
    if (is_up) {
        rx_expire(port, now_us);
    }
    lacp_settle(agent, now_us);
}

void lacp_set_fast(struct lacp_agent *agent, bool is_fast)
{
    if (agent->config.is_fast == is_fast) {
        return;
    }
    agent->config.is_fast = is_fast;
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        struct lacp_port *port = &agent->ports[i];

        port->needs_to_transmit = true;
        /* A partner that is told the slow rate may be silent for 30 s. */
        if (!is_fast && port->rx == LACP_RX_CURRENT) {
            port->current_while_us += LONG_TIMEOUT_US - SHORT_TIMEOUT_US;
        }
    }
}

void lacp_held_back(struct lacp_agent *agent, uint64_t us)
{
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        struct lacp_port *port = &agent->ports[i];

        if (port->periodic_us != UINT64_MAX) {
            port->periodic_us -= MIN(port->periodic_us, us);
        }
    }
}

uint64_t lacp_timer(struct lacp_agent *agent, uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX;

    for (uint8_t i = 0; i < NET_PORTS; i++) {
        rx_timer(&agent->ports[i], now_us);
    }
    lacp_settle(agent, now_us);
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        const struct lacp_port *port = &agent->ports[i];

        uint64_t send_us = transmit_port(agent, i, now_us);

        next_us = MIN(next_us, MIN(send_us, port->current_while_us));
        if (port->mux == LACP_MUX_WAITING) {
            next_us = MIN(next_us, port->wait_while_us);
        }
    }
    return next_us;
}
