/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/net/lag_text.h"

const char *lag_mac_text(char text[LAG_MAC_TEXT_LEN],
                         const struct mac_addr *mac)
{
    const uint8_t *b = mac->bytes;

    log_format(text, LAG_MAC_TEXT_LEN, "%02x:%02x:%02x:%02x:%02x:%02x", b[0],
               b[1], b[2], b[3], b[4], b[5]);
    return text;
}

const char *lag_receive_text(const struct lacp_port *port)
{
    static const char *const texts[] = {
        [LACP_RX_DISABLED] = "no link",
        [LACP_RX_EXPIRED] = "expired",
        [LACP_RX_DEFAULTED] = "no partner",
        [LACP_RX_CURRENT] = "current",
    };

    return texts[port->rx];
}

const char *lag_mux_text(const struct lacp_port *port)
{
    static const char *const texts[] = {
        [LACP_MUX_DETACHED] = "detached",
        [LACP_MUX_WAITING] = "waiting",
        [LACP_MUX_ATTACHED] = "attached",
        [LACP_MUX_COLLECTING] = "collecting",
        [LACP_MUX_WORKING] = "collecting, distributing",
    };

    return texts[port->mux];
}

static void lacp_text(struct log *log, const struct lacp_agent *agent,
                      uint8_t index)
{
    const struct lacp_port *port = &agent->ports[index];
    const struct lacp_info *partner = &port->partner;
    char text[LAG_MAC_TEXT_LEN];

    log_text(log,
             "port %u: LACP: receive state \"%s\", mux state \"%s\", actor "
             "flags %02x",
             index, lag_receive_text(port), lag_mux_text(port),
             lacp_actor(agent, index).state);
    if (!mac_addr_is_zero(&partner->system)) {
        log_text(log,
                 "port %u: LACP partner: system %s, priority %u, key %u, port "
                 "%u, flags %02x",
                 index, lag_mac_text(text, &partner->system),
                 partner->system_priority, partner->key, partner->port,
                 partner->state);
    }
    log_text(log, "port %u: LACPDUs: %lu received, %lu sent, %lu illegal",
             index, (unsigned long)port->counters[LACP_PDUS_RX],
             (unsigned long)port->counters[LACP_PDUS_TX],
             (unsigned long)port->counters[LACP_ILLEGAL_RX]);
}

static void member_text(struct log *log, const struct drive_lag *lag,
                        uint8_t port)
{
    bool is_usable = lag->members & lag->links & BIT(port);
    bool is_active = lag->mode == CONFIG_LAG_LACP || port == lag->active;
    const char *what = "link down";

    if (is_usable) {
        what = is_active ? "active" : "standby";
    } else if (lag->links & BIT(port)) {
        what = "not in the aggregate";
    }
    log_text(log, "port %u: %s", port, what);
    if (lag->mode == CONFIG_LAG_LACP) {
        lacp_text(log, &lag->lacp, port);
    }
    log_text(log,
             "port %u: RoCE frames sent: %lu; received frames dropped because "
             "the port is not in the aggregate: %lu RoCE, %lu other",
             port,
             (unsigned long)lag_counter_read(
                 &lag->lag, (enum lag_counter)(LAG_COUNT_TX0 + port)),
             (unsigned long)lag_counter_read(
                 &lag->lag, (enum lag_counter)(LAG_COUNT_RX_DROPPED0 + port)),
             (unsigned long)lag->dropped[port]);
}

void lag_text(struct log *log, const struct drive_lag *lag)
{
    static const char *const mode[] = {
        [CONFIG_LAG_ACTIVE_STANDBY] = "active/standby",
        [CONFIG_LAG_LACP] = "LACP",
    };

    if (!drive_lag_is_on(lag)) {
        log_text(log, "lag: off");
        return;
    }
    log_text(log, "lag: %s, %s", mode[lag->mode], lag->is_up ? "up" : "down");
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        member_text(log, lag, i);
    }
    log_text(log,
             "lag: the active port changed %lu times by itself; %lu frames "
             "were dropped because no port could send them",
             (unsigned long)lag_counter_read(&lag->lag, LAG_COUNT_MOVES),
             (unsigned long)lag_counter_read(&lag->lag, LAG_COUNT_TX_DROPPED));
}
