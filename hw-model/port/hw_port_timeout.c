/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port's transmit time-out: when the link does not take frames for too
 * long, they are dropped, so that no resource that both ports share waits for
 * one of them.
 * Reference: docs/hardware/port.md, section 6.
 *
 * The port has one timer, for this and for the ends of pauses.  A blocked link
 * that continues does not change the timer, which then fires once without
 * effect.
 */
#include "hw-model/port/hw_port_internal.h"

static uint64_t time_now(const struct hw_port *port)
{
    return port->config.env.now_ns(port->config.env.ctx);
}

static void set_timer(struct hw_port *port, uint64_t deadline_ns)
{
    if (deadline_ns != port->timer_ns) {
        port->timer_ns = deadline_ns;
        port->config.env.set_timer(port->config.env.ctx, deadline_ns);
    }
}

/* When frames are dropped that have waited since `since_ns`. */
static uint64_t expiry_ns(const struct hw_port *port, uint64_t since_ns)
{
    return port->tx_timeout_ms != 0
               ? since_ns + port->tx_timeout_ms * UINT64_C(1000000)
               : DEV_NO_DEADLINE;
}

void port_timer_update(struct hw_port *port)
{
    uint64_t deadline_ns = DEV_NO_DEADLINE;

    for (unsigned int i = 0; i < HW_PORT_PRIORITIES; i++) {
        if (port->paused >> i & 1) {
            deadline_ns = MIN(deadline_ns, port->pause_until_ns[i]);
        }
        if (port->held >> i & 1) {
            deadline_ns =
                MIN(deadline_ns, expiry_ns(port, port->pause_begin_ns[i]));
        }
    }
    if (port->link_blocked && !port->block_expired) {
        deadline_ns = MIN(deadline_ns, expiry_ns(port, port->blocked_since_ns));
    }
    set_timer(port, deadline_ns);
}

void port_link_refused(struct hw_port *port)
{
    port->link_blocked = 1;
    port->block_expired = 0;
    port->blocked_since_ns = time_now(port);
    set_timer(port,
              MIN(port->timer_ns, expiry_ns(port, port->blocked_since_ns)));
}

bool port_is_lost(const struct hw_port *port, uint8_t priority)
{
    return (port->link_blocked && port->block_expired) ||
           port->pause_expired >> (priority & 7) & 1;
}

/*
 * Find the waits that exceed the time-out.  Senders that wait for them try
 * again, and their frames are dropped.
 */
static void expire_waits(struct hw_port *port, uint64_t now_ns)
{
    bool is_new = false;

    if (port->link_blocked && !port->block_expired &&
        now_ns >= expiry_ns(port, port->blocked_since_ns)) {
        port->block_expired = 1;
        is_new = true;
    }
    for (unsigned int i = 0; i < HW_PORT_PRIORITIES; i++) {
        if ((port->held >> i & 1) &&
            now_ns >= expiry_ns(port, port->pause_begin_ns[i])) {
            port->pause_expired |= (uint8_t)BIT(i);
            port->held &= (uint8_t)~BIT(i);
            is_new = true;
        }
    }
    if (is_new) {
        port->rnic_waiting = 0;
        port->config.ops.rnic_ready(port->config.ops.ctx);
        port->config.env.defer(port->config.env.ctx);
    }
}

void hw_port_timer(struct hw_port *port)
{
    port->timer_ns = DEV_NO_DEADLINE;
    port_pause_end(port, 0xff);
    expire_waits(port, time_now(port));
    port_timer_update(port);
}
