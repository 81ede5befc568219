/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/text/lldp_log.h"

#include "firmware/text/neighbour_text.h"

void lldp_log_init(struct lldp_log *lldp_log, struct log *log)
{
    *lldp_log = (struct lldp_log){.log = log};
}

static void log_change_line(struct log *log, uint8_t port,
                            enum lldp_event event, const struct lldp *lldp)
{
    static const char *const said[] = {
        [LLDP_NEW] = "is there",
        [LLDP_CHANGED] = "has changed",
        [LLDP_GONE] = "is gone",
    };
    struct neighbour_text name = neighbour_text(&lldp->system_name);
    struct neighbour_text chassis =
        neighbour_text_id(&lldp->chassis, LLDP_CHASSIS_MAC);
    struct neighbour_text port_id =
        neighbour_text_id(&lldp->port, LLDP_PORT_MAC);

    log_line(log, "lldp: port %u: %s%s%s, port %s %s", port, name.text,
             name.text[0] != '\0' ? ", " : "", chassis.text, port_id.text,
             said[event]);
}

static void close_period(struct lldp_log *lldp_log, uint8_t port)
{
    struct lldp_log_port *own = &lldp_log->ports[port];

    if (own->left_out != 0) {
        log_line(lldp_log->log,
                 "lldp: port %u: %u more neighbour changes were not logged "
                 "(at most %u a minute are)",
                 port, own->left_out, LLDP_LOG_LINES);
    }
    *own = (struct lldp_log_port){0};
}

void lldp_log_change(struct lldp_log *lldp_log, uint8_t port,
                     enum lldp_event event, const struct lldp *lldp,
                     uint64_t now_us)
{
    struct lldp_log_port *own = &lldp_log->ports[port];

    lldp_log_timer(lldp_log, now_us);
    if (own->end_us == 0) {
        own->end_us = now_us + LLDP_LOG_PERIOD_US;
    }
    if (own->logged == LLDP_LOG_LINES) {
        own->left_out++;
        return;
    }
    own->logged++;
    log_change_line(lldp_log->log, port, event, lldp);
}

uint64_t lldp_log_timer(struct lldp_log *lldp_log, uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX;

    for (uint8_t port = 0; port < NET_PORTS; port++) {
        const struct lldp_log_port *own = &lldp_log->ports[port];

        if (own->end_us != 0 && own->end_us <= now_us) {
            close_period(lldp_log, port);
        }
        if (own->end_us != 0) {
            next_us = MIN(next_us, own->end_us);
        }
    }
    return next_us;
}
