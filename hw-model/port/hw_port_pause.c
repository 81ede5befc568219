/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port's MAC Control sublayer: priorities that the partner has paused.
 * Spec: IEEE 802.3 annexes 31B and 31D.  Reference: docs/hardware/port.md,
 * section 7.
 *
 * A pause ends at its deadline, by a frame with 0 quanta, when the link goes
 * down, or when firmware stops honouring it.  A frame that the link has taken
 * is not stopped by a pause that arrives later.
 */
#include "hw-model/port/hw_port_internal.h"

#include "net/wire/mac_control.h"

_Static_assert((int)HW_PORT_PRIORITIES == MAC_CONTROL_PRIORITIES,
               "see hw_port.h");

static uint64_t quanta_ns(const struct hw_port *port, uint16_t quanta)
{
    uint32_t mbps = FIELD_GET(port->link_ctrl, PORT_LINK_CTRL, SPEED_MBPS);
    uint64_t bits = (uint64_t)quanta * MAC_CONTROL_QUANTUM_BITS;

    return (bits * 1000 + mbps - 1) / mbps;
}

static uint64_t pause_now(const struct hw_port *port)
{
    return port->config.env.now_ns(port->config.env.ctx);
}

static void count_time(struct hw_port *port, unsigned int i, uint64_t now_ns)
{
    if (port->paused >> i & 1) {
        port->counters[PORT_COUNT_PRIO_PAUSED_NS + i] +=
            now_ns - MIN(port->pause_since_ns[i], now_ns);
    }
    port->pause_since_ns[i] = now_ns;
}

/* Let waiting senders try again, and set the timer for the first pause to end.
 */
static void settle_pauses(struct hw_port *port)
{
    uint8_t before = port->held;

    port->pause_expired &= port->paused;
    port->held = port->paused & (uint8_t)~port->pause_expired;
    port_timer_update(port);
    if (port->held != before) {
        port->rnic_waiting = 0;
        port->config.ops.rnic_ready(port->config.ops.ctx);
        port->config.env.defer(port->config.env.ctx);
    }
}

void port_pause_end(struct hw_port *port, uint8_t still)
{
    uint64_t now_ns;

    if (port->paused == 0) {
        return;
    }
    now_ns = pause_now(port);
    for (unsigned int i = 0; i < HW_PORT_PRIORITIES; i++) {
        if (!(still >> i & 1) || port->pause_until_ns[i] <= now_ns) {
            count_time(port, i, now_ns);
            port->paused &= (uint8_t)~BIT(i);
        }
    }
    settle_pauses(port);
}

static void apply_pause(struct hw_port *port, const struct mac_control *control,
                        uint8_t priorities)
{
    uint64_t now_ns = pause_now(port);

    for (unsigned int i = 0; i < HW_PORT_PRIORITIES; i++) {
        if (!(priorities >> i & 1)) {
            continue;
        }
        count_time(port, i, now_ns);
        port->pause_until_ns[i] = now_ns + quanta_ns(port, control->quanta[i]);
        if (control->quanta[i] != 0) {
            if (!(port->paused >> i & 1)) {
                port->pause_begin_ns[i] = now_ns;
            }
            port->paused |= (uint8_t)BIT(i);
            port_count(port, PORT_COUNT_PRIO_PAUSE + i, 1);
        } else {
            port->paused &= (uint8_t)~BIT(i);
        }
    }
    settle_pauses(port);
}

void port_pause_receive(struct hw_port *port, const uint8_t *data, size_t len)
{
    uint32_t honoured = FIELD_GET(port->pause, PORT_PAUSE, PRIORITIES);
    struct mac_control control;

    port_count(port, PORT_COUNT_MAC_CONTROL_RECEIVED, 1);
    if (!mac_control_parse(&control, data, len)) {
        port_count(port, PORT_COUNT_UNSUPPORTED_OPCODES, 1);
        return;
    }
    if (control.opcode == MAC_CONTROL_OP_PAUSE) {
        port_count(port, PORT_COUNT_PAUSE_RECEIVED, 1);
        honoured = FIELD_GET(port->pause, PORT_PAUSE, LINK) ? 0xff : 0;
    } else {
        port_count(port, PORT_COUNT_PFC_RECEIVED, 1);
    }
    apply_pause(port, &control, (uint8_t)(control.priorities & honoured));
}

void port_pause_loaded(struct hw_port *port)
{
    uint64_t now_ns = pause_now(port);
    uint64_t latest_ns = now_ns + quanta_ns(port, UINT16_MAX);

    for (unsigned int i = 0; i < HW_PORT_PRIORITIES; i++) {
        port->pause_until_ns[i] = MIN(port->pause_until_ns[i], latest_ns);
        port->pause_begin_ns[i] = MIN(port->pause_begin_ns[i], now_ns);
    }
    port_pause_end(port, 0xff);
}
