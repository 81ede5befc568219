/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/net/drive_lag.h"

#include "net/wire/arp.h"
#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/nd.h"

enum {
    AGGREGATE = 0, /* the stack's port for the aggregate */
    ALL_PORTS = BIT(NET_PORTS) - 1,
    SYSTEM_PRIORITY = 65535,
    KEY = 1, /* any key will do, because there is one aggregate */
    PATIENCE_US = 20000,
    TELL_BURST = 8, /* changes that are logged at once */
};

/* Later, one change is logged in each interval. */
#define TELL_INTERVAL_US UINT64_C(10000000)

/* ---- Members, and the active member for raw frames. */

static uint8_t collecting_ports(const struct drive_lag *lag)
{
    uint8_t ports = 0;

    if (lag->mode == CONFIG_LAG_ACTIVE_STANDBY) {
        return ALL_PORTS;
    }
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        ports |= (uint8_t)(lacp_is_collecting(&lag->lacp, i) ? BIT(i) : 0);
    }
    return ports;
}

static uint8_t working_ports(const struct drive_lag *lag)
{
    uint8_t ports = 0;

    if (lag->mode == CONFIG_LAG_ACTIVE_STANDBY) {
        return ALL_PORTS;
    }
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        ports |= (uint8_t)(lacp_is_working(&lag->lacp, i) ? BIT(i) : 0);
    }
    return ports;
}

static void update_members(struct drive_lag *lag)
{
    uint8_t members = working_ports(lag), collects = collecting_ports(lag);

    if (members == lag->members && collects == lag->collects) {
        return;
    }
    lag->members = members;
    lag->collects = collects;
    lag_set_members(&lag->lag, collects, members);
}

static uint8_t choose_active(const struct drive_lag *lag)
{
    uint8_t usable = lag->members & lag->links;

    if (lag->mode == CONFIG_LAG_ACTIVE_STANDBY) {
        return lag_active(&lag->lag);
    }
    if (usable == 0 || (usable & BIT(lag->active))) {
        return lag->active;
    }
    return (uint8_t)__builtin_ctz(usable);
}

static void update_active(struct drive_lag *lag, uint64_t now_us)
{
    lag->active = choose_active(lag);
    if (lag->mode == CONFIG_LAG_ACTIVE_STANDBY &&
        lag->active != lag->announced) {
        lag->announced = lag->active;
        net_stack_announce(lag->stack, AGGREGATE, now_us);
    }
}

/* ---- The log. */

static bool may_log_change(struct drive_lag_told *told, uint64_t now_us)
{
    uint64_t earned = (now_us - told->refilled_us) / TELL_INTERVAL_US;

    told->tokens = (uint8_t)MIN(told->tokens + earned, (uint64_t)TELL_BURST);
    told->refilled_us += earned * TELL_INTERVAL_US;
    if (told->tokens == 0) {
        return false;
    }
    told->tokens--;
    return true;
}

static void log_changes(struct drive_lag *lag)
{
    struct drive_lag_told *told = &lag->told;

    for (uint8_t i = 0; i < NET_PORTS; i++) {
        if ((lag->members ^ told->members) & BIT(i)) {
            log_line(lag->log, "lag: port %u %s", i,
                     lag->members & BIT(i) ? "joined the aggregate"
                                           : "left the aggregate");
        }
    }
    if (lag->announced != told->active) {
        log_line(lag->log, "lag: port %u is active", lag->announced);
    }
    if (lag->is_up != told->is_up) {
        log_line(lag->log, "lag: the aggregate is %s",
                 lag->is_up ? "up" : "down");
    }
    told->members = lag->members;
    told->active = lag->announced;
    told->is_up = lag->is_up;
}

/* Log changes; when they come too fast, only the latest state is logged. */
static void log_due_changes(struct drive_lag *lag, uint64_t now_us,
                            bool had_to_wait)
{
    uint32_t changes = lag->told.changes;

    if (changes == 0 || !may_log_change(&lag->told, now_us)) {
        return;
    }
    if (had_to_wait) {
        log_line(lag->log,
                 "lag: %u changes since the last line; the result:", changes);
    }
    log_changes(lag);
    lag->told.changes = 0;
}

static void update_state(struct drive_lag *lag, uint64_t now_us)
{
    const uint8_t members = lag->members, announced = lag->announced;
    bool was_up = lag->is_up, has_to_wait = lag->told.changes != 0;

    update_members(lag);
    update_active(lag, now_us);
    lag->is_up = (lag->members & lag->links) != 0;
    if (lag->is_up != was_up) {
        net_stack_link(lag->stack, AGGREGATE, lag->is_up, now_us);
    }
    lag->told.changes += members != lag->members ||
                         announced != lag->announced || was_up != lag->is_up;
    log_due_changes(lag, now_us, has_to_wait);
}

/* ---- Events. */

static void lag_link(void *ctx, uint8_t port, bool is_up, uint64_t now_us)
{
    struct drive_lag *lag = ctx;

    lag->links = (uint8_t)((lag->links & ~BIT(port)) | (is_up ? BIT(port) : 0));
    if (lag->mode == CONFIG_LAG_LACP) {
        lacp_link(&lag->lacp, port, is_up, now_us);
    } else if (is_up && port == lag->primary && lag->has_revert) {
        lag_set_active(&lag->lag, port);
    }
    update_state(lag, now_us);
}

/*
 * Whether a frame announces an address: a gratuitous ARP or an unsolicited
 * neighbour advertisement.  A bond that has changed its active link sends these
 * first, and may send nothing else before the drive answers on that link.  If
 * both ports are on one switch, the drive's own announcements come back; they
 * are ignored.
 */
static bool is_announcement(const struct drive_lag *lag, const uint8_t *frame,
                            size_t len)
{
    const struct mac_addr *own = &lag->stack->config.ports[AGGREGATE].mac;
    const uint8_t *l3, *icmp;
    struct arp arp;
    struct eth eth;

    if (!eth_parse(&eth, frame, len) || !mac_addr_is_multicast(&eth.dst) ||
        mac_addr_equal(&eth.src, own)) {
        return false;
    }
    l3 = frame + eth_header_len(&eth);
    len -= eth_header_len(&eth);
    if (eth.type == ETHERTYPE_ARP) {
        return arp_parse(&arp, l3, len) &&
               ip_addr_equal(&arp.sender_ip, &arp.target_ip);
    }
    icmp = l3 + IPV6_LEN;
    return eth.type == ETHERTYPE_IPV6 && len > IPV6_LEN &&
           l3[IPV6_NEXT_HEADER] == IP_PROTOCOL_ICMPV6 &&
           icmp[ICMP_TYPE] == ND_NEIGHBOR_ADVERT;
}

/*
 * React to an announcement.  With both ports on one network, both receive it,
 * and the active port need not change.  Two drives or bonds that follow each
 * other wait for different times, so that they agree in the end.
 */
static void hear_announcement(struct drive_lag *lag, uint8_t port,
                              uint64_t now_us)
{
    lag->announced_us[port] = now_us;
    if (port == lag->active) {
        lag->follow_us = UINT64_MAX;
    } else if (now_us - lag->announced_us[lag->active] > PATIENCE_US &&
               lag->follow_us == UINT64_MAX) {
        lag->follow = port;
        lag->follow_us = now_us + lag->patience_us;
    }
}

static void follow_announcement(struct drive_lag *lag, uint64_t now_us)
{
    if (now_us >= lag->follow_us) {
        lag->follow_us = UINT64_MAX;
        lag_set_active(&lag->lag, lag->follow);
    }
}

static void hear_frame(struct drive_lag *lag, uint8_t port,
                       const uint8_t *frame, size_t len, uint64_t now_us)
{
    if (!(frame[ETH_DST] & 1)) {
        lag_heard(&lag->lag, port);
        /* The answer leaves on the port that is active now. */
        lag->active = lag_active(&lag->lag);
    } else if (is_announcement(lag, frame, len)) {
        hear_announcement(lag, port, now_us);
    }
}

static bool lag_accept(void *ctx, uint8_t port, const uint8_t *frame,
                       size_t len, uint8_t *stack_port, uint64_t now_us)
{
    struct drive_lag *lag = ctx;

    if (attachment_is_link_local(frame)) {
        *stack_port = port;
        return true;
    }
    *stack_port = AGGREGATE;
    if (!(lag->collects & BIT(port))) {
        lag->dropped[port]++;
        return false;
    }
    if (lag->mode == CONFIG_LAG_ACTIVE_STANDBY) {
        hear_frame(lag, port, frame, len, now_us);
    }
    return true;
}

static uint64_t lag_step(void *ctx, uint64_t now_us)
{
    struct drive_lag *lag = ctx;
    uint64_t lacp_us = UINT64_MAX, told_us = UINT64_MAX;

    if (lag->mode == CONFIG_LAG_LACP) {
        lacp_us = lacp_timer(&lag->lacp, now_us);
    } else {
        follow_announcement(lag, now_us);
    }
    update_state(lag, now_us);
    if (lag->told.changes != 0) {
        told_us = lag->told.refilled_us + TELL_INTERVAL_US;
    }
    return MIN(MIN(lacp_us, told_us), lag->follow_us);
}

static uint8_t lag_stack_port(uint8_t port)
{
    (void)port;
    return AGGREGATE;
}

/* The stack's port 1 only sends link-local frames, which stay on their link. */
static uint8_t lag_sender(const void *ctx, uint8_t stack_port)
{
    const struct drive_lag *lag = ctx;

    return stack_port == AGGREGATE ? lag->active : stack_port;
}

static bool lag_is_up(const void *ctx, uint8_t stack_port)
{
    const struct drive_lag *lag = ctx;

    return stack_port == AGGREGATE && lag->is_up;
}

struct attachment drive_lag_attachment(struct drive_lag *lag)
{
    static const struct attachment_ops ops = {
        .stack_port = lag_stack_port,
        .sender = lag_sender,
        .accept = lag_accept,
        .link = lag_link,
        .is_up = lag_is_up,
        .step = lag_step,
    };

    return (struct attachment){&ops, lag};
}

/* ---- Start. */

static bool lacp_start(struct drive_lag *lag,
                       const struct drive_lag_config *config)
{
    struct lacp_config lacp = {
        .stack = config->stack,
        .system_priority = SYSTEM_PRIORITY,
        .key = KEY,
        .is_fast = config->network->lacp_is_fast,
    };

    memcpy(lacp.system.bytes, config->mac, sizeof(lacp.system.bytes));
    return lacp_init(&lag->lacp, &lacp);
}

static uint32_t patience_of(const uint8_t *mac)
{
    uint32_t sum = 0;

    for (unsigned int i = 0; i < sizeof(struct mac_addr); i++) {
        sum += mac[i];
    }
    return PATIENCE_US + sum % 64 * 1000;
}

enum init_result drive_lag_init(struct drive_lag *lag,
                                const struct drive_lag_config *config)
{
    bool has_lacp = config->network->lag == CONFIG_LAG_LACP;
    enum init_result result;

    lag->mode = config->network->lag;
    if (!drive_lag_is_on(lag)) {
        return INIT_OK;
    }
    lag->log = config->log;
    lag->stack = config->stack;
    lag->follow_us = UINT64_MAX;
    lag->patience_us = patience_of(config->mac);
    lag->primary = config->network->lag_primary;
    lag->has_revert = config->network->lag_has_revert;
    result =
        lag_init(&lag->lag, config->regs,
                 has_lacp ? LAG_MODE_DISTRIBUTE : LAG_MODE_STANDBY, !has_lacp);
    if (result != INIT_OK) {
        return result;
    }
    if (has_lacp && !lacp_start(lag, config)) {
        return INIT_NO_ROOM;
    }
    lag_set_active(&lag->lag, lag->primary);
    lag->active = lag->primary;
    lag->announced = lag->primary;
    lag->told = (struct drive_lag_told){
        .active = lag->primary,
        .tokens = TELL_BURST,
    };
    log_line(lag->log, "lag: the ports are aggregated, mode %s",
             has_lacp ? "LACP" : "active/standby");
    return INIT_OK;
}

void drive_lag_held_back(struct drive_lag *lag, uint64_t us)
{
    if (lag->mode == CONFIG_LAG_LACP) {
        lacp_held_back(&lag->lacp, us);
    }
}

void drive_lag_set(struct drive_lag *lag, const struct config_network *network,
                   uint64_t now_us)
{
    bool is_other = lag->primary != network->lag_primary ||
                    lag->has_revert != network->lag_has_revert;

    lag->primary = network->lag_primary;
    lag->has_revert = network->lag_has_revert;
    if (lag->mode == CONFIG_LAG_LACP) {
        lacp_set_fast(&lag->lacp, network->lacp_is_fast);
    } else if (drive_lag_is_on(lag) && is_other && lag->has_revert &&
               (lag->links & BIT(lag->primary))) {
        lag_set_active(&lag->lag, lag->primary);
        update_state(lag, now_us);
    }
}
