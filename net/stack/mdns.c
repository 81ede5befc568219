/* SPDX-License-Identifier: BSD-2-Clause */
/* The mDNS responder: see mdns.h. */
#include "net/stack/mdns_internal.h"

#include <string.h>

#include "lib/random.h"
#include "net/stack/internal.h"
#include "net/stack/udp_send.h"

enum {
    HOP_LIMIT = 255, /* RFC 6762 section 11 */
    TX_RETRY_US = 1000,
    /* Least time between two messages to the group that have the same record;
     * DEFENCE_GAP_US if the record answers a probe (section 6). */
    GROUP_GAP_US = 1000000,
    DEFENCE_GAP_US = 250000,
    LEGACY_TTL_S = 10, /* section 6.7 */
    NUMBER_MAX = 999,
};

static const struct ip_addr group4 = {{[10] = 0xff, 0xff, 224, 0, 0, 251}};
static const struct ip_addr group6 = {{0xff, 0x02, [15] = 0xfb}};

/* Allowed transitions; every state may also go to OFF. */
static const uint8_t mdns_next[MDNS_STATES] = {
    [MDNS_OFF] = BIT(MDNS_PROBING),
    [MDNS_PROBING] = BIT(MDNS_PROBING) | BIT(MDNS_ANNOUNCING),
    [MDNS_ANNOUNCING] =
        BIT(MDNS_ANNOUNCING) | BIT(MDNS_READY) | BIT(MDNS_PROBING),
    [MDNS_READY] = BIT(MDNS_ANNOUNCING) | BIT(MDNS_PROBING),
};

/* The only writer of link->state. */
static void mdns_enter(struct mdns_link *link, enum mdns_state next,
                       uint64_t due_us)
{
    ASSERT((mdns_next[link->state] | BIT(MDNS_OFF)) & BIT(next));
    link->state = (uint8_t)next;
    link->tries = 0;
    link->due_us = due_us;
    if (!mdns_answers(link)) {
        link->pending = 0;
        link->is_defence = false;
        link->direct.sets = 0;
        memset(link->sent_us, 0, sizeof(link->sent_us));
    }
}

uint64_t mdns_random(struct mdns_agent *agent, uint64_t limit)
{
    return random_next(&agent->random) % limit;
}

/* ---- Conflicts. */

void mdns_lose_probe(struct mdns_agent *agent, uint8_t port, uint64_t now_us)
{
    mdns_enter(&agent->links[port], MDNS_PROBING, now_us + MDNS_LOST_US);
}

void mdns_conflict(struct mdns_agent *agent, uint8_t port, uint64_t now_us)
{
    struct mdns_link *link = &agent->links[port];
    uint64_t wait_us = mdns_random(agent, MDNS_PROBE_US);

    mdns_add(agent, MDNS_CONFLICTS_SEEN);
    if (now_us - link->conflicts_from_us > MDNS_CONFLICTS_US) {
        link->conflicts_from_us = now_us;
        link->conflicts = 0;
    }
    if (link->conflicts < MDNS_CONFLICTS) {
        link->conflicts++;
    } else {
        /* The window begins again, so that each further attempt waits, too. */
        link->conflicts_from_us = now_us;
        wait_us = MDNS_CONFLICTS_WAIT_US;
    }
    /* A name that was ours already is probed again.  One that we were still
     * probing is replaced by another name. */
    if (!mdns_answers(link)) {
        link->number = link->number < NUMBER_MAX ? link->number + 1 : 2;
        mdns_make_names(agent, port);
    }
    mdns_enter(link, MDNS_PROBING, now_us + wait_us);
}

/* ---- Addresses. */

static bool is_on_link(const struct mdns_agent *agent, uint8_t port,
                       uint8_t local)
{
    const struct net_stack *stack = agent->config.stack;
    const struct net_address *own = &stack->addresses[local];

    return own->state != ADDRESS_UNUSED && net_stack_is_usable(stack, local) &&
           own->config.port == port &&
           own->config.vlan == agent->config.vlan[port];
}

static bool is_listed(const struct ip_addr *list, uint8_t count,
                      const struct ip_addr *ip)
{
    for (uint8_t i = 0; i < count; i++) {
        if (ip_addr_equal(&list[i], ip)) {
            return true;
        }
    }
    return false;
}

/*
 * Make link->addresses the port's present addresses, and note those that are
 * gone.
 * @return whether there is a change
 */
static bool update_addresses(struct mdns_agent *agent, uint8_t port)
{
    const struct net_stack *stack = agent->config.stack;
    struct mdns_link *link = &agent->links[port];
    struct ip_addr now[NET_ADDRESSES];
    uint8_t count = 0;

    for (uint8_t local = 0; local < NET_ADDRESSES; local++) {
        if (is_on_link(agent, port, local)) {
            now[count++] = stack->addresses[local].config.ip;
        }
    }
    if (count == link->address_count &&
        memcmp(now, link->addresses, count * sizeof(now[0])) == 0) {
        return false;
    }
    for (uint8_t i = 0; i < link->address_count; i++) {
        if (!is_listed(now, count, &link->addresses[i]) &&
            !is_listed(link->gone, link->gone_count, &link->addresses[i]) &&
            link->gone_count < NET_ADDRESSES) {
            link->gone[link->gone_count++] = link->addresses[i];
        }
    }
    memcpy(link->addresses, now, count * sizeof(now[0]));
    link->address_count = count;
    return true;
}

/* The state follows the link and the addresses. */
static void follow_addresses(struct mdns_agent *agent, uint8_t port,
                             uint64_t now_us)
{
    struct mdns_link *link = &agent->links[port];
    bool has_changed = update_addresses(agent, port);
    bool is_usable =
        agent->config.is_on && link->is_up && link->address_count != 0;

    if (!is_usable && link->state != MDNS_OFF) {
        mdns_enter(link, MDNS_OFF, UINT64_MAX);
    } else if (is_usable && link->state == MDNS_OFF) {
        mdns_enter(link, MDNS_PROBING,
                   now_us + mdns_random(agent, MDNS_PROBE_US));
    } else if (has_changed && mdns_answers(link)) {
        mdns_enter(link, MDNS_ANNOUNCING, now_us);
    }
    if (!mdns_answers(link)) {
        link->gone_count = 0; /* no cache has these addresses from us */
    }
}

/* ---- Sending. */

/* The own address from which to send to a group of this family, or NULL. */
static const struct ip_addr *source_of(const struct mdns_agent *agent,
                                       uint8_t port, bool v4)
{
    const struct mdns_link *link = &agent->links[port];
    const struct ip_addr *found = NULL;

    for (uint8_t i = 0; i < link->address_count; i++) {
        const struct ip_addr *ip = &link->addresses[i];

        if (ip_addr_is_v4(ip) == v4 &&
            (found == NULL || ip_addr_is_link_local(ip))) {
            found = ip;
        }
    }
    return found;
}

/* @return false when there was no room to send it everywhere */
static bool send_to_group(struct mdns_agent *agent, uint8_t port,
                          const uint8_t *message, size_t len)
{
    const struct ip_addr *groups[] = {&group4, &group6};
    bool is_sent = true;

    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        const struct ip_addr *src = source_of(agent, port, i == 0);
        struct net_udp_direct udp = {
            .mac = net_group_mac(groups[i]),
            .dst = *groups[i],
            .payload = message,
            .len_bytes = len,
            .src_port = MDNS_PORT,
            .dst_port = MDNS_PORT,
            .vlan = agent->config.vlan[port],
            .port = port,
            .hop_limit = HOP_LIMIT,
        };

        if (src == NULL) {
            continue;
        }
        udp.src = *src;
        if (net_stack_udp_direct(agent->config.stack, &udp)) {
            mdns_add(agent, MDNS_SENT);
        } else {
            is_sent = false;
        }
    }
    return is_sent;
}

static bool send_probe(struct mdns_agent *agent, uint8_t port)
{
    const struct mdns_link *link = &agent->links[port];
    const struct mdns_style style = {DNS_AUTHORITY, UINT32_MAX, false};
    uint8_t message[MDNS_MESSAGE_MAX];
    struct dns_writer w;

    dns_write_begin(&w, message, sizeof(message));
    dns_write_question(&w, &link->instance, DNS_ANY,
                       DNS_CLASS_IN | DNS_CLASS_TOP);
    dns_write_question(&w, &link->host, DNS_ANY, DNS_CLASS_IN | DNS_CLASS_TOP);
    mdns_write_sets(&w, agent, link, MDNS_UNIQUE, &style);
    return send_to_group(agent, port, message, dns_write_end(&w));
}

/* What an asker of these sets will want to know next: RFC 6763 section 12. */
static uint16_t additional_sets(uint16_t sets)
{
    uint16_t more = 0;

    if (sets & BIT(MDNS_SERVICE)) {
        more |= MDNS_UNIQUE;
    }
    if (sets & BIT(MDNS_SRV)) {
        more |= BIT(MDNS_A) | BIT(MDNS_AAAA);
    }
    if (sets & (BIT(MDNS_A) | BIT(MDNS_AAAA))) {
        more |= BIT(MDNS_A) | BIT(MDNS_AAAA) | BIT(MDNS_NO_HOST);
    }
    return more & (uint16_t)~sets;
}

static bool send_answers(struct mdns_agent *agent, uint8_t port, uint16_t sets,
                         uint32_t ttl_max_s, uint64_t now_us)
{
    struct mdns_link *link = &agent->links[port];
    const struct mdns_style style = {DNS_ANSWER, ttl_max_s, true};
    const struct mdns_style more = {DNS_ADDITIONAL, ttl_max_s, true};
    uint8_t message[MDNS_MESSAGE_MAX];
    struct dns_writer w;

    dns_write_begin(&w, message, sizeof(message));
    w.header.is_response = true;
    w.header.is_authoritative = true;
    mdns_write_sets(&w, agent, link, sets, &style);
    mdns_write_gone(&w, link);
    mdns_write_sets(&w, agent, link, additional_sets(sets), &more);
    if (!send_to_group(agent, port, message, dns_write_end(&w))) {
        return false;
    }
    link->gone_count = 0;
    for (unsigned int set = 0; set < MDNS_SETS; set++) {
        if (sets & BIT(set)) {
            link->sent_us[set] = MAX(now_us, 1u);
        }
    }
    return true;
}

/* The answer to one station: section 5.4, or 6.7 for a simple resolver. */
static bool send_direct(struct mdns_agent *agent, uint8_t port)
{
    struct mdns_link *link = &agent->links[port];
    const struct mdns_direct *direct = &link->direct;
    uint32_t ttl_max_s =
        direct->is_legacy ? (uint32_t)LEGACY_TTL_S : UINT32_MAX;
    const struct mdns_style style = {DNS_ANSWER, ttl_max_s, !direct->is_legacy};
    const struct mdns_style more = {DNS_ADDITIONAL, ttl_max_s,
                                    !direct->is_legacy};
    const struct ip_addr *src =
        source_of(agent, port, ip_addr_is_v4(&direct->dst));
    uint8_t message[MDNS_MESSAGE_MAX];
    struct net_udp_direct udp = {
        .mac = direct->mac,
        .dst = direct->dst,
        .payload = message,
        .src_port = MDNS_PORT,
        .dst_port = direct->dst_port,
        .vlan = agent->config.vlan[port],
        .port = port,
        .hop_limit = HOP_LIMIT,
    };
    struct dns_writer w;

    if (src == NULL) {
        return true;
    }
    udp.src = *src;
    dns_write_begin(&w, message, sizeof(message));
    w.header.is_response = true;
    w.header.is_authoritative = true;
    w.is_plain = direct->is_legacy;
    if (direct->is_legacy) {
        w.header.id = direct->id;
        dns_write_question(&w, &direct->question.name, direct->question.type,
                           direct->question.dns_class);
    }
    mdns_write_sets(&w, agent, link, direct->sets, &style);
    mdns_write_sets(&w, agent, link, additional_sets(direct->sets), &more);
    udp.len_bytes = dns_write_end(&w);
    if (!net_stack_udp_direct(agent->config.stack, &udp)) {
        return false;
    }
    mdns_add(agent, MDNS_SENT_DIRECT);
    return true;
}

/* Say goodbye to all records: section 10.1. */
static void say_goodbye(struct mdns_agent *agent, uint8_t port, uint64_t now_us)
{
    if (mdns_answers(&agent->links[port])) {
        (void)send_answers(agent, port, MDNS_ALL, 0, now_us);
    }
}

/* ---- Timers. */

static void report_claim(struct mdns_agent *agent, uint8_t port)
{
    const struct dns_name *host = &agent->links[port].host;
    char label[DNS_LABEL_MAX + 1];

    memcpy(label, host->bytes + 1, host->bytes[0]);
    label[host->bytes[0]] = '\0';
    if (agent->config.claimed != NULL) {
        agent->config.claimed(agent->config.ctx, port, label);
    }
}

static void probing_step(struct mdns_agent *agent, uint8_t port,
                         uint64_t now_us)
{
    struct mdns_link *link = &agent->links[port];

    if (link->tries == MDNS_PROBES) {
        mdns_enter(link, MDNS_ANNOUNCING, now_us);
        report_claim(agent, port);
        return;
    }
    if (!send_probe(agent, port)) {
        link->due_us = now_us + TX_RETRY_US;
        return;
    }
    link->tries++;
    link->due_us = now_us + MDNS_PROBE_US;
}

static void announcing_step(struct mdns_agent *agent, uint8_t port,
                            uint64_t now_us)
{
    struct mdns_link *link = &agent->links[port];

    if (!send_answers(agent, port, MDNS_ALL, UINT32_MAX, now_us)) {
        link->due_us = now_us + TX_RETRY_US;
        return;
    }
    link->due_us = now_us + MDNS_ANNOUNCE_US;
    if (++link->tries == MDNS_ANNOUNCEMENTS) {
        mdns_enter(link, MDNS_READY, UINT64_MAX);
    }
}

/* Send the pending sets that were not sent a short time ago. */
static void pending_step(struct mdns_agent *agent, uint8_t port,
                         uint64_t now_us)
{
    struct mdns_link *link = &agent->links[port];
    uint64_t gap_us =
        link->is_defence ? (uint64_t)DEFENCE_GAP_US : (uint64_t)GROUP_GAP_US;
    uint64_t next_us = UINT64_MAX;
    uint16_t ready = 0;

    for (unsigned int set = 0; set < MDNS_SETS; set++) {
        uint64_t from_us = link->sent_us[set] + gap_us;

        if (!(link->pending & BIT(set))) {
            continue;
        }
        if (link->sent_us[set] == 0 || from_us <= now_us) {
            ready |= (uint16_t)BIT(set);
        } else {
            next_us = MIN(next_us, from_us);
        }
    }
    if (ready != 0 && !send_answers(agent, port, ready, UINT32_MAX, now_us)) {
        link->pending_us = now_us + TX_RETRY_US;
        return;
    }
    link->pending &= (uint16_t)~ready;
    link->pending_us = next_us;
    link->is_defence = link->is_defence && link->pending != 0;
}

static uint64_t link_timer(struct mdns_agent *agent, uint8_t port,
                           uint64_t now_us)
{
    struct mdns_link *link = &agent->links[port];

    follow_addresses(agent, port, now_us);
    if (link->state == MDNS_PROBING && link->due_us <= now_us) {
        probing_step(agent, port, now_us);
    }
    if (link->state == MDNS_ANNOUNCING && link->due_us <= now_us) {
        announcing_step(agent, port, now_us);
    }
    if (link->pending != 0 && link->pending_us <= now_us) {
        pending_step(agent, port, now_us);
    }
    if (link->direct.sets != 0) {
        if (!send_direct(agent, port)) {
            return now_us + TX_RETRY_US;
        }
        link->direct.sets = 0;
    }
    return link->pending != 0 ? MIN(link->due_us, link->pending_us)
                              : link->due_us;
}

uint64_t mdns_timer(struct mdns_agent *agent, uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX;

    if (!agent->config.is_on) {
        return next_us;
    }
    for (uint8_t port = 0; port < NET_PORTS; port++) {
        uint64_t due_us = link_timer(agent, port, now_us);

        next_us = MIN(next_us, due_us);
    }
    return next_us;
}

/* ---- Other public functions. */

/* @return false when the stack has no room */
static bool switch_on(struct mdns_agent *agent, uint64_t now_us)
{
    struct net_stack *stack = agent->config.stack;

    agent->is_bound = agent->is_bound ||
                      net_stack_udp_bind(stack, MDNS_PORT, mdns_input, agent);
    agent->config.is_on = agent->is_bound;
    if (!agent->is_bound) {
        return false;
    }
    net_stack_group_join(stack, &group4, now_us);
    net_stack_group_join(stack, &group6, now_us);
    return true;
}

bool mdns_init(struct mdns_agent *agent, const struct mdns_config *config,
               uint64_t now_us)
{
    memset(agent, 0, sizeof(*agent));
    agent->config = *config;
    agent->random = config->random_seed;
    mdns_make_shared_names(agent);
    for (uint8_t port = 0; port < NET_PORTS; port++) {
        agent->links[port].number = 1;
        agent->links[port].due_us = UINT64_MAX;
        mdns_make_names(agent, port);
    }
    return !config->is_on || switch_on(agent, now_us);
}

void mdns_link(struct mdns_agent *agent, uint8_t port, bool is_up,
               uint64_t now_us)
{
    struct mdns_link *link = &agent->links[port];

    ASSERT(port < NET_PORTS);
    link->is_up = is_up;
    /* After a loss of the link, another network may be at its other end. */
    mdns_enter(link, MDNS_OFF, UINT64_MAX);
    if (agent->config.is_on) {
        follow_addresses(agent, port, now_us);
    }
}

bool mdns_set(struct mdns_agent *agent, bool is_on, bool is_new_name,
              const uint16_t vlan[NET_PORTS], uint64_t now_us)
{
    struct net_stack *stack = agent->config.stack;
    bool was_on = agent->config.is_on;

    for (uint8_t port = 0; port < NET_PORTS; port++) {
        struct mdns_link *link = &agent->links[port];
        bool is_new_vlan = agent->config.vlan[port] != vlan[port];

        if (was_on && (!is_on || is_new_name || is_new_vlan)) {
            say_goodbye(agent, port, now_us);
            mdns_enter(link, MDNS_OFF, UINT64_MAX);
        }
        agent->config.vlan[port] = vlan[port];
        if (is_new_name) {
            link->number = 1;
            mdns_make_names(agent, port);
        }
    }
    if (was_on && !is_on) {
        agent->config.is_on = false;
        net_stack_group_leave(stack, &group4);
        net_stack_group_leave(stack, &group6);
    }
    return was_on || !is_on || switch_on(agent, now_us);
}

void mdns_stop(struct mdns_agent *agent, uint64_t now_us)
{
    for (uint8_t port = 0; port < NET_PORTS; port++) {
        say_goodbye(agent, port, now_us);
        mdns_enter(&agent->links[port], MDNS_OFF, UINT64_MAX);
    }
    agent->config.is_on = false;
}
