/* SPDX-License-Identifier: BSD-2-Clause */
/* The port's registers, link and state: see hw_port.h. */
#include "hw-model/port/hw_port_internal.h"

#include <string.h>

_Static_assert((int)HW_PORT_MACS == PORT_MACS, "see hw_port.h");
_Static_assert((int)HW_PORT_MULTICASTS == PORT_MULTICASTS, "see hw_port.h");
_Static_assert((int)HW_PORT_VLAN_WORDS == PORT_VLAN_WORDS, "see hw_port.h");
_Static_assert((int)HW_PORT_COUNTERS == PORT_COUNTERS, "see hw_port.h");

enum {
    DEFAULT_MTU = 1500,
    DEFAULT_TX_TIMEOUT_MS = 2000,
    DEFAULT_SPEED_MBPS = 25000,
    OTHER_SPEED_MBPS = 10000,
    RING_ALIGN = 64,
};

static void update_irq(struct hw_port *port)
{
    port->config.env.set_irq(port->config.env.ctx, 0,
                             (port->irq_status & port->irq_enable) != 0);
}

void port_irq_raise(struct hw_port *port, uint32_t bits)
{
    port->irq_status |= bits;
    update_irq(port);
}

void port_ring_moved(struct hw_port *port, uint8_t *page, uint32_t armed)
{
    dev_mb();
    if (shared_load32(page + PORT_PAGE_ARMED) & armed) {
        shared_store32(page + PORT_PAGE_ARMED, 0);
        port_irq_raise(port, R_PORT_IRQ_STATUS_RING_MASK);
    }
}

/* ---- Link */

struct phy_link hw_port_link(const struct hw_port *port)
{
    uint32_t ctrl = port->link_ctrl;
    struct phy_own own = {
        .speed_mbps = FIELD_GET(ctrl, PORT_LINK_CTRL, SPEED_MBPS),
        .fec = (uint8_t)FIELD_GET(ctrl, PORT_LINK_CTRL, FEC),
        .is_enabled = FIELD_GET(ctrl, PORT_LINK_CTRL, ENABLE),
        .has_cable = port->has_cable,
    };

    return phy_judge(&own, &port->partner);
}

static void update_link(struct hw_port *port)
{
    struct phy_link link = hw_port_link(port);
    bool is_up = link.reason == PORT_REASON_NONE;

    port_mdio_note_link(port, &link);
    if (link.reason != port->reason) {
        port->reason = link.reason;
        port_irq_raise(port, R_PORT_IRQ_STATUS_LINK_MASK);
    }
    if (is_up == port->link_up) {
        return;
    }
    port->link_up = is_up;
    port_count(port, PORT_COUNT_LINK_CHANGES, 1);
    port_pause_end(port, 0);
    port->config.ops.link_changed(port->config.ops.ctx, is_up);
    /* The run function drops the waiting frames. */
    port->config.env.defer(port->config.env.ctx);
}

void hw_port_set_cable(struct hw_port *port, bool is_live)
{
    port->has_cable = is_live;
    update_link(port);
}

void hw_port_set_partner(struct hw_port *port,
                         const struct phy_partner *partner)
{
    port->partner = *partner;
    update_link(port);
}

void hw_port_set_errors(struct hw_port *port, uint64_t seed, uint64_t ber_atto)
{
    fec_lane_init(&port->lane_rx, seed, ber_atto);
    fec_lane_init(&port->lane_tx, ~seed, ber_atto);
    port->tx_is_sound = 0;
}

static uint32_t phy_status(const struct hw_port *port)
{
    struct phy_link link = hw_port_link(port);

    return FIELD_MAKE(PORT_PHY_STATUS, SIGNAL, link.has_signal) |
           FIELD_MAKE(PORT_PHY_STATUS, LOCAL_FAULT, link.has_local_fault) |
           FIELD_MAKE(PORT_PHY_STATUS, REMOTE_FAULT, link.has_remote_fault) |
           FIELD_MAKE(PORT_PHY_STATUS, REASON, link.reason);
}

static uint32_t phy_an(const struct hw_port *port)
{
    struct phy_link link = hw_port_link(port);

    return FIELD_MAKE(PORT_PHY_AN, OWN, link.own_an) |
           FIELD_MAKE(PORT_PHY_AN, PARTNER, link.partner_an) |
           FIELD_MAKE(PORT_PHY_AN, NEGOTIATED, link.is_negotiating);
}

static uint32_t link_status(const struct hw_port *port)
{
    struct phy_link link = hw_port_link(port);
    uint32_t speed = FIELD_GET(port->link_ctrl, PORT_LINK_CTRL, SPEED_MBPS);
    uint32_t value = FIELD_MAKE(PORT_LINK_STATUS, SIGNAL, link.has_signal);

    if (port->link_up) {
        value |= FIELD_MAKE(PORT_LINK_STATUS, UP, 1) |
                 FIELD_MAKE(PORT_LINK_STATUS, FEC, link.fec) |
                 FIELD_MAKE(PORT_LINK_STATUS, SPEED_MBPS, speed);
    }
    return value;
}

static bool link_ctrl_is_possible(uint32_t value)
{
    uint32_t speed = FIELD_GET(value, PORT_LINK_CTRL, SPEED_MBPS);
    uint32_t fec = FIELD_GET(value, PORT_LINK_CTRL, FEC);

    /* RS-FEC (clause 108) exists only at 25 Gb/s. */
    return (speed == DEFAULT_SPEED_MBPS && fec <= PORT_FEC_RS) ||
           (speed == OTHER_SPEED_MBPS && fec <= PORT_FEC_FC);
}

static void write_link_ctrl(struct hw_port *port, uint32_t value)
{
    if (!link_ctrl_is_possible(value)) {
        return;
    }
    port->link_ctrl =
        value & (R_PORT_LINK_CTRL_ENABLE_MASK | R_PORT_LINK_CTRL_FEC_MASK |
                 R_PORT_LINK_CTRL_SPEED_MBPS_MASK);
    update_link(port);
}

/* ---- Reset */

static void derive_matches(struct hw_port *port)
{
    for (unsigned int i = 0; i < PORT_MACS; i++) {
        uint32_t hi = port->mac[2 * i + 1];

        port->mac_match[i] = FIELD_GET(hi, PORT_MAC_HI, VALID)
                                 ? (uint64_t)FIELD_GET(hi, PORT_MAC_HI, ADDR)
                                           << 32 |
                                       port->mac[2 * i]
                                 : UINT64_MAX;
    }
    port->multicast_hash = 0;
    for (unsigned int i = 0; i < PORT_MULTICASTS; i++) {
        if (FIELD_GET(port->multicast[2 * i + 1], PORT_MULTICAST_HI, VALID)) {
            port->multicast_hash |= UINT64_C(1)
                                    << (port->multicast[2 * i] & 63);
        }
    }
}

/* Set the registers to their reset values, without reporting any change. */
static void clear_registers(struct hw_port *port)
{
    struct hw_port old = *port;

    memset(port, 0, sizeof(*port));
    port->config = old.config;
    port->has_cable = old.has_cable;
    /* The next four fields belong to the link back-end and the timer. */
    port->link_blocked = old.link_blocked;
    port->blocked_since_ns = old.blocked_since_ns;
    port->block_expired = old.block_expired;
    port->timer_ns = old.timer_ns;
    port->tx_timeout_ms = DEFAULT_TX_TIMEOUT_MS;
    port->partner = old.partner;
    port->lane_rx = old.lane_rx;
    port->lane_tx = old.lane_tx;
    port->partner_lost = old.partner_lost;
    port->reason = PORT_REASON_DISABLED;
    port->mtu = DEFAULT_MTU;
    port->link_ctrl =
        FIELD_MAKE(PORT_LINK_CTRL, FEC, PORT_FEC_FC) |
        FIELD_MAKE(PORT_LINK_CTRL, SPEED_MBPS, DEFAULT_SPEED_MBPS);
    derive_matches(port);
    port_mdio_reset(port);
}

void hw_port_init(struct hw_port *port, const struct hw_port_config *config)
{
    memset(port, 0, sizeof(*port));
    port->config = *config;
    port->timer_ns = DEV_NO_DEADLINE;
    port->partner = (struct phy_partner){
        .speed_mbps = DEFAULT_SPEED_MBPS,
        .fec = PHY_PARTNER_AUTO,
        .is_present = 1,
    };
    hw_port_set_errors(port, config->index, 0);
    clear_registers(port);
}

void hw_port_reset(struct hw_port *port)
{
    bool was_up = port->link_up;
    bool rnic_waits = port->rnic_waiting || port->paused != 0;

    port_pause_end(port, 0);
    clear_registers(port);
    port_timer_update(port);
    update_irq(port);
    if (was_up) {
        port->config.ops.link_changed(port->config.ops.ctx, false);
    }
    if (rnic_waits) {
        /*
         * The run function drops the RNIC's frames, because the link is down.
         */
        port->rnic_waiting = 1;
        port->config.env.defer(port->config.env.ctx);
    }
}

/* ---- Rings */

static uint64_t page_address(const uint32_t words[2])
{
    return (uint64_t)words[1] << 32 | words[0];
}

static bool ring_fits(const struct hw_port *port, uint64_t addr,
                      uint32_t size_log2, uint32_t entry_len)
{
    return size_log2 >= 1 && size_log2 <= PORT_RING_LOG2_MAX &&
           addr % RING_ALIGN == 0 &&
           port_is_dram(port, addr, (uint64_t)entry_len << size_log2);
}

static void enable_rings(struct hw_port *port)
{
    uint32_t rx_log2 = FIELD_GET(port->ring_sizes, PORT_RING_SIZES, RX);
    uint32_t tx_log2 = FIELD_GET(port->ring_sizes, PORT_RING_SIZES, TX);

    if (port->rings_on || page_address(port->page) % RING_ALIGN != 0 ||
        !port_is_dram(port, page_address(port->page), PORT_PAGE_LEN) ||
        !ring_fits(port, page_address(port->rx), rx_log2, PORT_RXD_LEN) ||
        !ring_fits(port, page_address(port->tx), tx_log2, PORT_TXD_LEN)) {
        return;
    }
    port->page_addr = page_address(port->page);
    port->rx_addr = page_address(port->rx);
    port->tx_addr = page_address(port->tx);
    port->rx_mask = (1u << rx_log2) - 1;
    port->tx_mask = (1u << tx_log2) - 1;
    port->rx_pi = 0;
    port->tx_ci = 0;
    port->raw_waiting = 0;
    port->tx_ahead = 0;
    port->rings_on = 1;
    port->config.env.defer(port->config.env.ctx);
}

static void write_ring_enable(struct hw_port *port, uint32_t value)
{
    if (FIELD_GET(value, PORT_RING_ENABLE, ON)) {
        enable_rings(port);
    } else {
        port->rings_on = 0;
        port->raw_waiting = 0;
        port->tx_ahead = 0;
    }
}

/* ---- Registers */

static bool is_in(uint32_t offset, uint32_t base, uint32_t words)
{
    return offset >= base && offset < base + 4 * words;
}

static uint32_t read_counter(struct hw_port *port, uint32_t word)
{
    uint64_t counter = port->counters[word / 2];

    if (word % 2 == 1) {
        return port->counter_high;
    }
    port->counter_high = (uint32_t)(counter >> 32);
    return (uint32_t)counter;
}

/* The variable of a table register (MAC, multicast, VLAN), or NULL. */
static uint32_t *table_word(struct hw_port *port, uint32_t offset)
{
    if (is_in(offset, A_PORT_MAC_LO, 2 * PORT_MACS)) {
        return &port->mac[(offset - A_PORT_MAC_LO) / 4];
    }
    if (is_in(offset, A_PORT_MULTICAST_LO, 2 * PORT_MULTICASTS)) {
        return &port->multicast[(offset - A_PORT_MULTICAST_LO) / 4];
    }
    if (is_in(offset, A_PORT_VLAN, PORT_VLAN_WORDS)) {
        return &port->vlan[(offset - A_PORT_VLAN) / 4];
    }
    return NULL;
}

/* The variable of a plain read-write register, or NULL. */
static uint32_t *plain_word(struct hw_port *port, uint32_t offset)
{
    switch (offset) {
    case A_PORT_PAGE_LO:
        return &port->page[0];
    case A_PORT_PAGE_HI:
        return &port->page[1];
    case A_PORT_RX_LO:
        return &port->rx[0];
    case A_PORT_RX_HI:
        return &port->rx[1];
    case A_PORT_TX_LO:
        return &port->tx[0];
    case A_PORT_TX_HI:
        return &port->tx[1];
    case A_PORT_RING_SIZES:
        return &port->ring_sizes;
    default:
        return NULL;
    }
}

static uint32_t read_limits(const struct hw_port *port)
{
    return FIELD_MAKE(PORT_LIMITS, MACS, PORT_MACS) |
           FIELD_MAKE(PORT_LIMITS, MULTICASTS, PORT_MULTICASTS) |
           FIELD_MAKE(PORT_LIMITS, INDEX, port->config.index);
}

bool hw_port_read(struct hw_port *port, uint32_t offset, uint32_t *value)
{
    const uint32_t *word = table_word(port, offset);

    if (word == NULL) {
        word = plain_word(port, offset);
    }
    if (word != NULL) {
        *value = *word;
        return true;
    }
    if (is_in(offset, PORT_COUNTER_BASE, 2 * PORT_COUNTERS)) {
        *value = read_counter(port, (offset - PORT_COUNTER_BASE) / 4);
        return true;
    }
    switch (offset) {
    case A_PORT_ID:
        *value = PORT_ID_VALUE;
        return true;
    case A_PORT_LIMITS:
        *value = read_limits(port);
        return true;
    case A_PORT_CTRL:
        *value = port->ctrl;
        return true;
    case A_PORT_MTU:
        *value = port->mtu;
        return true;
    case A_PORT_LINK_STATUS:
        *value = link_status(port);
        return true;
    case A_PORT_LINK_CTRL:
        *value = port->link_ctrl;
        return true;
    case A_PORT_PHY_STATUS:
        *value = phy_status(port);
        return true;
    case A_PORT_PHY_AN:
        *value = phy_an(port);
        return true;
    case A_PORT_IRQ_STATUS:
        *value = port->irq_status;
        return true;
    case A_PORT_IRQ_ENABLE:
        *value = port->irq_enable;
        return true;
    case A_PORT_PAUSE:
        *value = port->pause;
        return true;
    case A_PORT_PAUSED:
        *value = FIELD_MAKE(PORT_PAUSED, PRIORITIES, port->paused);
        return true;
    case A_PORT_RING_ENABLE:
        *value = port->rings_on;
        return true;
    case A_PORT_TX_TIMEOUT:
        *value = FIELD_MAKE(PORT_TX_TIMEOUT, MS, port->tx_timeout_ms);
        return true;
    default:
        *value = 0;
        return offset == A_PORT_KICK || is_in(offset, 0x200, 0x40);
    }
}

static void write_ctrl(struct hw_port *port, uint32_t value)
{
    if (FIELD_GET(value, PORT_CTRL, RESET)) {
        hw_port_reset(port);
        return;
    }
    port->ctrl =
        value & (R_PORT_CTRL_RX_ENABLE_MASK | R_PORT_CTRL_TX_ENABLE_MASK |
                 R_PORT_CTRL_UNICAST_ALL_MASK | R_PORT_CTRL_MULTICAST_ALL_MASK |
                 R_PORT_CTRL_VLAN_FILTER_MASK | R_PORT_CTRL_ROCE_V2_MASK |
                 R_PORT_CTRL_ROCE_V1_MASK | R_PORT_CTRL_TOE_MASK);
    /* If TX_ENABLE is new, the run function sends the frames that wait. */
    port->config.env.defer(port->config.env.ctx);
}

static void write_mtu(struct hw_port *port, uint32_t value)
{
    uint32_t mtu = FIELD_GET(value, PORT_MTU, BYTES);

    if (mtu >= PORT_MTU_MIN && mtu <= PORT_MTU_MAX) {
        port->mtu = mtu;
    }
}

/* End the pauses that are no longer honoured. */
static void write_pause(struct hw_port *port, uint32_t value)
{
    port->pause =
        value & (R_PORT_PAUSE_PRIORITIES_MASK | R_PORT_PAUSE_LINK_MASK);
    port_pause_end(port, FIELD_GET(value, PORT_PAUSE, LINK)
                             ? 0xff
                             : FIELD_GET(value, PORT_PAUSE, PRIORITIES));
}

bool hw_port_write(struct hw_port *port, uint32_t offset, uint32_t value)
{
    uint32_t *word = table_word(port, offset);

    if (word != NULL) {
        *word = value;
        derive_matches(port);
        return true;
    }
    word = plain_word(port, offset);
    if (word != NULL) {
        *word = value;
        return true;
    }
    switch (offset) {
    case A_PORT_CTRL:
        write_ctrl(port, value);
        return true;
    case A_PORT_MTU:
        write_mtu(port, value);
        return true;
    case A_PORT_LINK_CTRL:
        write_link_ctrl(port, value);
        return true;
    case A_PORT_IRQ_STATUS:
        port->irq_status &= ~value;
        update_irq(port);
        return true;
    case A_PORT_IRQ_ENABLE:
        port->irq_enable =
            value & (R_PORT_IRQ_STATUS_RING_MASK | R_PORT_IRQ_STATUS_LINK_MASK |
                     R_PORT_IRQ_STATUS_DMA_ERROR_MASK);
        update_irq(port);
        return true;
    case A_PORT_PAUSE:
        write_pause(port, value);
        return true;
    case A_PORT_RING_ENABLE:
        write_ring_enable(port, value);
        return true;
    case A_PORT_KICK:
        port->config.env.defer(port->config.env.ctx);
        return true;
    case A_PORT_TX_TIMEOUT:
        port->tx_timeout_ms = FIELD_GET(value, PORT_TX_TIMEOUT, MS);
        port_timer_update(port);
        return true;
    default:
        return false;
    }
}

void hw_port_run(struct hw_port *port)
{
    port_tx_serve(port);
}

bool hw_port_loaded(struct hw_port *port)
{
    if (port->mtu < PORT_MTU_MIN || port->mtu > PORT_MTU_MAX ||
        !link_ctrl_is_possible(port->link_ctrl) || port->rings_on > 1 ||
        port->rnic_priority > 7 ||
        port->tx_timeout_ms > R_PORT_TX_TIMEOUT_MS_MASK ||
        port->reason >= PORT_REASONS || port->partner.fec > PHY_PARTNER_AUTO ||
        port->lane_rx.ber_atto > FEC_BER_MAX ||
        port->lane_tx.ber_atto > FEC_BER_MAX) {
        return false;
    }
    if (port->rings_on &&
        (!IS_POW2((uint64_t)port->rx_mask + 1) ||
         !IS_POW2((uint64_t)port->tx_mask + 1) ||
         port->rx_mask >> PORT_RING_LOG2_MAX != 0 ||
         port->tx_mask >> PORT_RING_LOG2_MAX != 0 ||
         (port->page_addr | port->rx_addr | port->tx_addr) % RING_ALIGN != 0 ||
         !port_is_dram(port, port->page_addr, PORT_PAGE_LEN) ||
         !port_is_dram(port, port->rx_addr,
                       (uint64_t)PORT_RXD_LEN * (port->rx_mask + 1)) ||
         !port_is_dram(port, port->tx_addr,
                       (uint64_t)PORT_TXD_LEN * (port->tx_mask + 1)))) {
        return false;
    }
    derive_matches(port);
    update_irq(port);
    port->pause_expired &= port->paused;
    port->held = port->paused & (uint8_t)~port->pause_expired;
    /* No timer is set for the loaded state: port_timer_update() sets it. */
    port->timer_ns = DEV_NO_DEADLINE;
    port->block_expired = 0;
    port->blocked_since_ns = port->config.env.now_ns(port->config.env.ctx);
    port_pause_loaded(port);
    port_timer_update(port);
    port->config.env.defer(port->config.env.ctx);
    return true;
}
