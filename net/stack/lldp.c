/* SPDX-License-Identifier: BSD-2-Clause */
/* LLDP agent: see lldp.h. */
#include "net/stack/lldp.h"

#include "net/stack/internal.h"

enum {
    SECOND_US = 1000000,
    FAST_FRAMES = 4, /* txFastInit */
    CREDIT_MAX = 5,  /* txCreditMax */
    TX_RETRY_US = 1000,
    INTERVAL_MAX_S = 3600,
    HOLD_MAX = 100,
    /* The PVID of a port without VLAN configuration: IEEE 802.1Q table 9-2. */
    DEFAULT_PVID = 1,
    /* Ethernet header, one tag and FCS: IEEE 802.3 clause 79.3.4. */
    FRAME_OVERHEAD = 22,
    PMD_OTHER = 0x8000, /* RFC 4836 ifMauAutoNegCapAdvertisedBits: bOther */
    VLAN_NAME_LEN = 8,  /* "vlan4094" */
};

static const struct mac_addr nearest_bridge = {
    {0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}};

/* Allowed transitions; every state may also go to DOWN. */
static const uint8_t lldp_next[LLDP_STATES] = {
    [LLDP_DOWN] = BIT(LLDP_UP),
    [LLDP_UP] = BIT(LLDP_STOPPED),
};

/* The only writer of port->state. */
static void lldp_enter(struct lldp_port *port, enum lldp_state next)
{
    ASSERT((lldp_next[port->state] | BIT(LLDP_DOWN)) & BIT(next));
    port->state = (uint8_t)next;
}

static void lldp_count(struct lldp_port *port, enum lldp_counter counter)
{
    port->counters[counter]++;
}

/* ---- Sending. */

/* @return the length, at most LLDP_TEXT_MAX + 1 */
static uint16_t text_len(const char *text)
{
    uint16_t len = 0;

    while (len <= LLDP_TEXT_MAX && text[len] != '\0') {
        len++;
    }
    return len;
}

static bool is_text(const char *text)
{
    return text_len(text) != 0 && text_len(text) <= LLDP_TEXT_MAX;
}

static struct lldp_text text_of(const char *text)
{
    return (struct lldp_text){(const uint8_t *)text, text_len(text)};
}

static void add_management(struct lldp *lldp, const struct net_stack *stack,
                           uint8_t local)
{
    const struct net_address_config *own = &stack->addresses[local].config;

    if (lldp->management_count < LLDP_MANAGEMENTS) {
        lldp->management[lldp->management_count++] = (struct lldp_management){
            .ip = own->ip,
            .interface = own->port + 1u,
            .interface_subtype = LLDP_INTERFACE_IFINDEX,
        };
    }
}

/*
 * Add the drive's addresses, configured ones before link-local ones.  Both
 * ports announce all of them, because lldpd keeps one list for a chassis.
 */
static void add_managements(struct lldp *lldp, const struct net_stack *stack)
{
    for (unsigned int pass = 0; pass < 2; pass++) {
        for (uint8_t local = 0; local < NET_ADDRESSES; local++) {
            const struct ip_addr *ip = &stack->addresses[local].config.ip;

            if (net_stack_is_usable(stack, local) &&
                ip_addr_is_link_local(ip) == (pass == 1)) {
                add_management(lldp, stack, local);
            }
        }
    }
}

/* @return the length of "vlan<number>" */
static uint16_t name_vlan(uint8_t name[VLAN_NAME_LEN], uint16_t vlan)
{
    uint16_t len = 4;

    memcpy(name, "vlan", 4);
    for (uint16_t power = 1000; power != 0; power /= 10) {
        if (vlan >= power) {
            name[len++] = (uint8_t)('0' + vlan / power % 10);
        }
    }
    return len;
}

static void add_vlans(struct lldp *lldp, const struct net_stack *stack,
                      uint8_t port, uint8_t names[][VLAN_NAME_LEN])
{
    for (uint8_t local = 0; local < NET_ADDRESSES; local++) {
        const struct net_address *own = &stack->addresses[local];
        struct lldp_vlan *vlan = &lldp->vlans[lldp->vlan_count];
        bool is_known = own->state == ADDRESS_UNUSED ||
                        own->config.port != port ||
                        own->config.vlan == NET_VLAN_UNTAGGED ||
                        lldp->vlan_count == LLDP_VLANS;

        for (size_t i = 0; i < lldp->vlan_count; i++) {
            is_known = is_known || lldp->vlans[i].vlan == own->config.vlan;
        }
        if (!is_known) {
            uint8_t *name = names[lldp->vlan_count];

            vlan->vlan = own->config.vlan;
            vlan->name.bytes = name;
            vlan->name.len_bytes = name_vlan(name, own->config.vlan);
            lldp->vlan_count++;
        }
    }
}

static uint16_t ttl_of(const struct lldp_config *config)
{
    uint32_t ttl_s = (uint32_t)config->interval_s * config->hold + 1;

    return (uint16_t)MIN(ttl_s, 0xffff);
}

/* @return the length of the LLDPDU at `at` */
static size_t build_pdu(const struct lldp_agent *agent, uint8_t index,
                        uint16_t ttl_s, uint8_t *at)
{
    static const char *const ids[NET_PORTS] = {"port0", "port1"};
    const struct lldp_config *config = &agent->config;
    const struct net_stack *stack = config->stack;
    uint8_t names[LLDP_VLANS][VLAN_NAME_LEN];
    struct lldp lldp = {
        .chassis = {.value = {config->chassis.bytes, 6},
                    .subtype = LLDP_CHASSIS_MAC},
        .port = {.value = text_of(ids[index]), .subtype = LLDP_PORT_IFNAME},
        .ttl_s = ttl_s,
    };

    if (ttl_s != 0) { /* a shutdown LLDPDU ends here: clause 9.1.2.2 */
        lldp.port_description = text_of(index == 0 ? "NVMe-oF port 0, 25GbE"
                                                   : "NVMe-oF port 1, 25GbE");
        lldp.system_name = text_of(config->system_name);
        lldp.system_description = text_of(config->system_description);
        lldp.has_capabilities = true;
        lldp.capabilities = LLDP_CAN_STATION;
        lldp.capabilities_enabled = LLDP_CAN_STATION;
        lldp.pvid = DEFAULT_PVID;
        lldp.has_mac_phy = true;
        lldp.pmd = PMD_OTHER;
        lldp.mau_type = agent->ports[index].speed_mbps == 10000
                            ? LLDP_MAU_10GBASE_R
                            : LLDP_MAU_25GBASE_R;
        lldp.max_frame =
            (uint16_t)(stack->config.ports[index].mtu_bytes + FRAME_OVERHEAD);
        add_managements(&lldp, stack);
        add_vlans(&lldp, stack, index, names);
    }
    return lldp_emit(&lldp, at, LLDP_PDU_MAX);
}

/* @return false when there is no transmit buffer */
static bool send_pdu(struct lldp_agent *agent, uint8_t index, uint16_t ttl_s)
{
    struct net_stack *stack = agent->config.stack;
    uint8_t *frame = net_tx_begin(stack, index);
    size_t header, len;

    if (frame == NULL) {
        return false;
    }
    header = net_eth_emit(stack, index, NET_VLAN_UNTAGGED, 0, &nearest_bridge,
                          ETHERTYPE_LLDP, frame);
    len = build_pdu(agent, index, ttl_s, frame + header);
    ASSERT(len != 0); /* lldp_init() checked the lengths, so it fits */
    net_tx_commit(stack, index, header + len, 0);
    lldp_count(&agent->ports[index], LLDP_FRAMES_OUT);
    return true;
}

static bool may_send(const struct lldp_agent *agent, uint8_t index)
{
    return agent->ports[index].state == LLDP_UP &&
           agent->config.ports[index].sends;
}

static void refill_credit(struct lldp_port *port, uint64_t now_us)
{
    uint64_t seconds = (now_us - port->filled_us) / SECOND_US;

    if (seconds >= (uint64_t)(CREDIT_MAX - port->credit)) {
        port->credit = CREDIT_MAX;
        port->filled_us = now_us;
    } else {
        port->credit = (uint8_t)(port->credit + seconds);
        port->filled_us += seconds * SECOND_US;
    }
}

/* A frame of this port is due: send it if the port has a credit. */
static void transmit_step(struct lldp_agent *agent, uint8_t index,
                          uint64_t now_us)
{
    struct lldp_port *port = &agent->ports[index];

    refill_credit(port, now_us);
    if (port->credit == 0) {
        port->due_us = port->filled_us + SECOND_US;
        return;
    }
    if (!send_pdu(agent, index, ttl_of(&agent->config))) {
        port->due_us = now_us + TX_RETRY_US;
        return;
    }
    if (port->credit-- == CREDIT_MAX) {
        port->filled_us = now_us;
    }
    port->fast = (uint8_t)(port->fast - (port->fast != 0));
    port->due_us =
        now_us + (port->fast != 0
                      ? SECOND_US
                      : (uint64_t)agent->config.interval_s * SECOND_US);
}

void lldp_stop(struct lldp_agent *agent, uint8_t index)
{
    struct lldp_port *port = &agent->ports[index];

    ASSERT(index < NET_PORTS);
    if (port->state != LLDP_UP) {
        return;
    }
    if (agent->config.ports[index].sends) {
        /* If there is no buffer, neighbours forget us when our TTL ends. */
        (void)send_pdu(agent, index, 0);
    }
    lldp_enter(port, LLDP_STOPPED);
}

void lldp_changed(struct lldp_agent *agent, uint64_t now_us)
{
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        agent->ports[i].due_us = MIN(agent->ports[i].due_us, now_us);
    }
}

/* ---- Receiving. */

static void report_neighbour(const struct lldp_agent *agent, uint8_t port,
                             enum lldp_event event, const struct lldp *lldp)
{
    if (agent->config.neighbour != NULL) {
        agent->config.neighbour(agent->config.ctx, port, event, lldp);
    }
}

static bool is_same_id(const struct lldp_id *a, const struct lldp_id *b)
{
    return a->subtype == b->subtype &&
           a->value.len_bytes == b->value.len_bytes &&
           memcmp(a->value.bytes, b->value.bytes, a->value.len_bytes) == 0;
}

static void read_back(const struct lldp_neighbour *neighbour, struct lldp *lldp)
{
    /* keep_neighbour() stores only what lldp_parse() accepted. */
    ASSERT(lldp_parse(lldp, neighbour->pdu, neighbour->len_bytes));
}

/* @return the entry of the neighbour that sent `lldp`, else a free entry, else
 * NULL */
static struct lldp_neighbour *find_neighbour(struct lldp_port *port,
                                             const struct lldp *lldp)
{
    struct lldp_neighbour *free = NULL;

    for (size_t i = 0; i < LLDP_NEIGHBOURS; i++) {
        struct lldp_neighbour *neighbour = &port->neighbours[i];
        struct lldp old;

        if (neighbour->expires_us == 0) {
            free = free == NULL ? neighbour : free;
            continue;
        }
        read_back(neighbour, &old);
        if (is_same_id(&old.chassis, &lldp->chassis) &&
            is_same_id(&old.port, &lldp->port)) {
            return neighbour;
        }
    }
    return free;
}

static void forget_neighbour(struct lldp_agent *agent, uint8_t index,
                             struct lldp_neighbour *neighbour)
{
    struct lldp lldp;

    read_back(neighbour, &lldp);
    neighbour->expires_us = 0;
    report_neighbour(agent, index, LLDP_GONE, &lldp);
}

static void keep_neighbour(struct lldp_agent *agent, uint8_t index,
                           struct lldp_neighbour *neighbour,
                           const struct lldp *lldp, const uint8_t *pdu,
                           uint64_t now_us)
{
    struct lldp_port *port = &agent->ports[index];
    bool is_new = neighbour->expires_us == 0;
    bool is_changed = neighbour->len_bytes != lldp->len_bytes ||
                      memcmp(neighbour->pdu, pdu, lldp->len_bytes) != 0;

    neighbour->expires_us = now_us + (uint64_t)lldp->ttl_s * SECOND_US;
    if (!is_new && !is_changed) {
        return;
    }
    memcpy(neighbour->pdu, pdu, lldp->len_bytes);
    neighbour->len_bytes = (uint16_t)lldp->len_bytes;
    if (is_new) { /* announce ourselves to it soon */
        port->fast = FAST_FRAMES;
        port->due_us = MIN(port->due_us, now_us);
    }
    report_neighbour(agent, index, is_new ? LLDP_NEW : LLDP_CHANGED, lldp);
}

static void lldp_input(void *ctx, const struct net_ether_rx *rx)
{
    struct lldp_agent *agent = ctx;
    struct lldp_port *port = &agent->ports[rx->port];
    struct lldp_neighbour *neighbour;
    struct lldp lldp;

    if (port->state != LLDP_UP || !agent->config.ports[rx->port].receives) {
        return;
    }
    lldp_count(port, LLDP_FRAMES_IN);
    if (rx->vlan != NET_VLAN_UNTAGGED ||
        !mac_addr_equal(rx->dst, &nearest_bridge) ||
        !lldp_parse(&lldp, rx->payload, rx->len_bytes) ||
        lldp.len_bytes > LLDP_PDU_MAX) {
        lldp_count(port, LLDP_FRAMES_DISCARDED);
        lldp_count(port, LLDP_FRAMES_IN_ERRORS);
        return;
    }
    neighbour = find_neighbour(port, &lldp);
    if (lldp.ttl_s == 0) {
        if (neighbour != NULL && neighbour->expires_us != 0) {
            forget_neighbour(agent, rx->port, neighbour);
        }
    } else if (neighbour == NULL) {
        lldp_count(port, LLDP_FRAMES_DISCARDED);
        lldp_count(port, LLDP_TOO_MANY_NEIGHBOURS);
    } else {
        keep_neighbour(agent, rx->port, neighbour, &lldp, rx->payload,
                       rx->now_us);
    }
}

static uint64_t age_neighbours(struct lldp_agent *agent, uint8_t index,
                               uint64_t now_us)
{
    struct lldp_port *port = &agent->ports[index];
    uint64_t next_us = UINT64_MAX;

    for (size_t i = 0; i < LLDP_NEIGHBOURS; i++) {
        struct lldp_neighbour *neighbour = &port->neighbours[i];

        if (neighbour->expires_us != 0 && neighbour->expires_us <= now_us) {
            lldp_count(port, LLDP_AGEOUTS);
            forget_neighbour(agent, index, neighbour);
        }
        if (neighbour->expires_us != 0) {
            next_us = MIN(next_us, neighbour->expires_us);
        }
    }
    return next_us;
}

/* ---- Public functions. */

static void set_times(struct lldp_config *config, uint16_t interval_s,
                      uint8_t hold)
{
    ASSERT(interval_s <= INTERVAL_MAX_S && hold <= HOLD_MAX);
    config->interval_s = interval_s != 0 ? interval_s : LLDP_INTERVAL_S;
    config->hold = hold != 0 ? hold : LLDP_HOLD;
}

static void forget_all(struct lldp_agent *agent, uint8_t index)
{
    for (size_t i = 0; i < LLDP_NEIGHBOURS; i++) {
        if (agent->ports[index].neighbours[i].expires_us != 0) {
            forget_neighbour(agent, index, &agent->ports[index].neighbours[i]);
        }
    }
}

bool lldp_init(struct lldp_agent *agent, const struct lldp_config *config)
{
    ASSERT(is_text(config->system_name) && is_text(config->system_description));
    memset(agent, 0, sizeof(*agent));
    agent->config = *config;
    set_times(&agent->config, config->interval_s, config->hold);
    return net_stack_ether_bind(config->stack, ETHERTYPE_LLDP, &nearest_bridge,
                                lldp_input, agent);
}

void lldp_link(struct lldp_agent *agent, uint8_t index, bool is_up,
               uint32_t speed_mbps, uint64_t now_us)
{
    struct lldp_port *port = &agent->ports[index];

    ASSERT(index < NET_PORTS);
    if (port->state != LLDP_DOWN) {
        lldp_enter(port, LLDP_DOWN);
    }
    if (is_up) {
        lldp_enter(port, LLDP_UP);
        port->speed_mbps = speed_mbps;
        port->credit = CREDIT_MAX;
        port->filled_us = now_us;
        port->due_us = now_us;
        port->fast = 0;
        return;
    }
    forget_all(agent, index); /* the next link may lead elsewhere */
}

void lldp_set(struct lldp_agent *agent,
              const struct lldp_port_config ports[NET_PORTS],
              uint16_t interval_s, uint8_t hold, uint64_t now_us)
{
    struct lldp_config *config = &agent->config;
    struct lldp_config old = *config;

    set_times(config, interval_s, hold);
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        struct lldp_port *port = &agent->ports[i];

        if (may_send(agent, i) && !ports[i].sends) {
            /* If there is no buffer, neighbours forget us when the TTL ends. */
            (void)send_pdu(agent, i, 0);
        }
        if (old.ports[i].receives && !ports[i].receives) {
            forget_all(agent, i);
        }
        if (ports[i].sends &&
            (!old.ports[i].sends || old.interval_s != config->interval_s ||
             old.hold != config->hold)) {
            port->due_us = MIN(port->due_us, now_us);
        }
        config->ports[i] = ports[i];
    }
}

uint64_t lldp_timer(struct lldp_agent *agent, uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX;

    for (uint8_t i = 0; i < NET_PORTS; i++) {
        uint64_t age_us = age_neighbours(agent, i, now_us);

        if (may_send(agent, i)) {
            if (agent->ports[i].due_us <= now_us) {
                transmit_step(agent, i, now_us);
            }
            next_us = MIN(next_us, agent->ports[i].due_us);
        }
        next_us = MIN(next_us, age_us);
    }
    return next_us;
}

bool lldp_neighbour_read(const struct lldp_agent *agent, uint8_t port,
                         size_t place, uint64_t now_us, struct lldp *lldp,
                         uint32_t *ttl_left_s)
{
    const struct lldp_neighbour *neighbour =
        &agent->ports[port].neighbours[place];

    if (neighbour->expires_us == 0 || neighbour->expires_us <= now_us) {
        return false;
    }
    read_back(neighbour, lldp);
    *ttl_left_s = (uint32_t)((neighbour->expires_us - now_us + SECOND_US - 1) /
                             SECOND_US);
    return true;
}
