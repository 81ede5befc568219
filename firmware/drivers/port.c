/* SPDX-License-Identifier: BSD-2-Clause */
/* Driver of one Ethernet port: see port.h. */
#include "firmware/drivers/port.h"

#include "firmware/drivers/dma_word.h"
#include "firmware/hal/barrier.h"
#include "firmware/hal/mmio.h"
#include "lib/bytes.h"

enum {
    RING_ALIGN = 64,
    BUFFER_LEN = (PORT_FRAME_MAX + RING_ALIGN - 1) & ~(RING_ALIGN - 1),
};

static uint32_t reg_read(const struct port *port, uint32_t offset)
{
    return mmio_read32(port->regs + offset);
}

static void reg_write(const struct port *port, uint32_t offset, uint32_t value)
{
    mmio_write32(port->regs + offset, value);
}

static void reg_write_addr(const struct port *port, uint32_t low_offset,
                           const void *ptr)
{
    uint64_t addr = hal_dma_addr(ptr);

    reg_write(port, low_offset, (uint32_t)addr);
    reg_write(port, low_offset + 4, (uint32_t)(addr >> 32));
}

/* ---- Bring-up */

static bool config_is_valid(const struct port_config *config)
{
    return IS_POW2(config->rx_frames) && IS_POW2(config->tx_frames) &&
           config->rx_frames >= 2 && config->tx_frames >= 2 &&
           config->rx_frames <= 1 << PORT_RING_LOG2_MAX &&
           config->tx_frames <= 1 << PORT_RING_LOG2_MAX &&
           config->mtu_bytes >= PORT_MTU_MIN &&
           config->mtu_bytes <= PORT_MTU_MAX;
}

static bool alloc_rings(struct port *port, const struct port_config *config)
{
    struct dram *dram = config->dram;
    size_t rx = config->rx_frames, tx = config->tx_frames;

    port->page = dram_alloc(dram, PORT_PAGE_LEN, RING_ALIGN);
    port->rx_ring = dram_alloc(dram, rx * PORT_RXD_LEN, RING_ALIGN);
    port->tx_ring = dram_alloc(dram, tx * PORT_TXD_LEN, RING_ALIGN);
    port->rx_buffers = dram_reserve(dram, rx * BUFFER_LEN, RING_ALIGN);
    port->tx_buffers = dram_reserve(dram, tx * BUFFER_LEN, RING_ALIGN);
    port->rx_mask = (uint32_t)rx - 1;
    port->tx_mask = (uint32_t)tx - 1;
    return port->page != NULL && port->rx_ring != NULL &&
           port->tx_ring != NULL && port->rx_buffers != NULL &&
           port->tx_buffers != NULL;
}

static void fill_descriptors(struct port *port)
{
    for (size_t i = 0; i <= port->rx_mask; i++) {
        uint8_t *slot = port->rx_ring + i * PORT_RXD_LEN;

        dma_store64(slot, PORT_RXD_ADDR,
                    hal_dma_addr(port->rx_buffers + i * BUFFER_LEN));
        dma_store32(slot, PORT_RXD_SIZE, BUFFER_LEN);
    }
    for (size_t i = 0; i <= port->tx_mask; i++) {
        dma_store64(port->tx_ring + i * PORT_TXD_LEN, PORT_TXD_ADDR,
                    hal_dma_addr(port->tx_buffers + i * BUFFER_LEN));
    }
}

static bool start_rings(const struct port *port)
{
    uint32_t sizes = 0;

    sizes =
        FIELD_SET(sizes, PORT_RING_SIZES, RX, __builtin_ctz(port->rx_mask + 1));
    sizes =
        FIELD_SET(sizes, PORT_RING_SIZES, TX, __builtin_ctz(port->tx_mask + 1));
    reg_write_addr(port, A_PORT_PAGE_LO, port->page);
    reg_write_addr(port, A_PORT_RX_LO, port->rx_ring);
    reg_write_addr(port, A_PORT_TX_LO, port->tx_ring);
    reg_write(port, A_PORT_RING_SIZES, sizes);
    hal_dma_wmb();
    reg_write(port, A_PORT_RING_ENABLE, 1);
    return reg_read(port, A_PORT_RING_ENABLE) == 1;
}

enum init_result port_init(struct port *port, const struct port_config *config)
{
    uint32_t ctrl = 0;

    *port = (struct port){.regs = config->regs};
    if (!config_is_valid(config)) {
        return INIT_BAD_CONFIG;
    }
    if (reg_read(port, A_PORT_ID) != PORT_ID_VALUE) {
        return INIT_NO_DEVICE;
    }
    if (!alloc_rings(port, config)) {
        return INIT_NO_MEMORY;
    }
    reg_write(port, A_PORT_CTRL, FIELD_SET(0, PORT_CTRL, RESET, 1));
    fill_descriptors(port);
    if (!start_rings(port)) {
        return INIT_REFUSED;
    }
    reg_write(port, A_PORT_MTU, config->mtu_bytes);
    ctrl = FIELD_SET(ctrl, PORT_CTRL, RX_ENABLE, 1);
    ctrl = FIELD_SET(ctrl, PORT_CTRL, TX_ENABLE, 1);
    ctrl = FIELD_SET(ctrl, PORT_CTRL, ROCE_V2, 1);
    reg_write(port, A_PORT_CTRL, ctrl);
    return INIT_OK;
}

/* ---- Filters and link */

static void write_mac(struct port *port, uint32_t low_offset,
                      const uint8_t *mac)
{
    uint32_t hi = 0;

    /* The entry is invalid while it holds half of the new address. */
    reg_write(port, low_offset + 4, 0);
    if (mac == NULL) {
        return;
    }
    hi = FIELD_SET(hi, PORT_MAC_HI, ADDR, get_be16(mac));
    hi = FIELD_SET(hi, PORT_MAC_HI, VALID, 1);
    reg_write(port, low_offset, get_be32(mac + 2));
    reg_write(port, low_offset + 4, hi);
}

void port_set_mac(struct port *port, unsigned int slot, const uint8_t *mac)
{
    ASSERT(slot < PORT_MACS);
    write_mac(port, A_PORT_MAC_LO + 8 * slot, mac);
}

void port_set_multicast(struct port *port, unsigned int entry,
                        const uint8_t *mac)
{
    ASSERT(entry < PORT_MULTICASTS);
    write_mac(port, A_PORT_MULTICAST_LO + 8 * entry, mac);
}

void port_set_promiscuous(struct port *port, bool is_on)
{
    uint32_t ctrl = reg_read(port, A_PORT_CTRL);

    reg_write(port, A_PORT_CTRL,
              FIELD_SET(ctrl, PORT_CTRL, UNICAST_ALL, is_on));
}

void port_set_vlan_filter(struct port *port, bool is_on)
{
    uint32_t ctrl = reg_read(port, A_PORT_CTRL);

    reg_write(port, A_PORT_CTRL,
              FIELD_SET(ctrl, PORT_CTRL, VLAN_FILTER, is_on));
}

void port_set_roce_v1(struct port *port, bool is_on)
{
    uint32_t ctrl = reg_read(port, A_PORT_CTRL);

    reg_write(port, A_PORT_CTRL, FIELD_SET(ctrl, PORT_CTRL, ROCE_V1, is_on));
}

void port_set_toe(struct port *port, bool is_on)
{
    uint32_t ctrl = reg_read(port, A_PORT_CTRL);

    reg_write(port, A_PORT_CTRL, FIELD_SET(ctrl, PORT_CTRL, TOE, is_on));
}

void port_set_vlan(struct port *port, unsigned int vlan, bool is_member)
{
    uint32_t offset = A_PORT_VLAN + 4 * (vlan / 32);
    uint32_t word;

    ASSERT(vlan >= 1 && vlan <= 4094);
    word = reg_read(port, offset) & ~BIT(vlan % 32);
    reg_write(port, offset, word | (is_member ? BIT(vlan % 32) : 0));
}

void port_set_pause(struct port *port, uint8_t priorities, bool link)
{
    uint32_t value = FIELD_SET(0, PORT_PAUSE, PRIORITIES, priorities);

    reg_write(port, A_PORT_PAUSE, FIELD_SET(value, PORT_PAUSE, LINK, link));
}

bool port_set_mtu(struct port *port, uint16_t mtu_bytes)
{
    if (mtu_bytes < PORT_MTU_MIN || mtu_bytes > PORT_MTU_MAX) {
        return false;
    }
    reg_write(port, A_PORT_MTU, mtu_bytes);
    return true;
}

void port_pair(struct port *a, struct port *b)
{
    a->sibling = b;
    b->sibling = a;
}

static bool speed_differs(const struct port *sibling, uint32_t speed_mbps)
{
    uint32_t ctrl = reg_read(sibling, A_PORT_LINK_CTRL);

    return FIELD_GET(ctrl, PORT_LINK_CTRL, ENABLE) &&
           FIELD_GET(ctrl, PORT_LINK_CTRL, SPEED_MBPS) != speed_mbps;
}

bool port_link_enable(struct port *port, uint32_t speed_mbps, enum port_fec fec)
{
    uint32_t ctrl = FIELD_SET(0, PORT_LINK_CTRL, ENABLE, 1);

    if (port->sibling != NULL && speed_differs(port->sibling, speed_mbps)) {
        return false;
    }
    ctrl = FIELD_SET(ctrl, PORT_LINK_CTRL, FEC, fec);
    ctrl = FIELD_SET(ctrl, PORT_LINK_CTRL, SPEED_MBPS, speed_mbps);
    reg_write(port, A_PORT_LINK_CTRL, ctrl);
    return reg_read(port, A_PORT_LINK_CTRL) == ctrl;
}

void port_link_disable(struct port *port)
{
    uint32_t ctrl = reg_read(port, A_PORT_LINK_CTRL);

    reg_write(port, A_PORT_LINK_CTRL,
              FIELD_SET(ctrl, PORT_LINK_CTRL, ENABLE, 0));
}

void port_link_get(const struct port *port, struct port_link *link)
{
    uint32_t status = reg_read(port, A_PORT_LINK_STATUS);
    uint32_t phy = reg_read(port, A_PORT_PHY_STATUS);

    *link = (struct port_link){
        .is_up = FIELD_GET(status, PORT_LINK_STATUS, UP),
        .has_signal = FIELD_GET(status, PORT_LINK_STATUS, SIGNAL),
        .has_local_fault = FIELD_GET(phy, PORT_PHY_STATUS, LOCAL_FAULT),
        .has_remote_fault = FIELD_GET(phy, PORT_PHY_STATUS, REMOTE_FAULT),
        .reason = (uint8_t)FIELD_GET(phy, PORT_PHY_STATUS, REASON),
        .fec = (uint8_t)FIELD_GET(status, PORT_LINK_STATUS, FEC),
        .speed_mbps = FIELD_GET(status, PORT_LINK_STATUS, SPEED_MBPS),
    };
}

/* ---- Receive */

bool port_rx_is_waiting(const struct port *port)
{
    return dma_load32(port->page, PORT_PAGE_RX_PI) != port->rx_ci;
}

bool port_rx_peek(struct port *port, struct port_frame *frame)
{
    const uint8_t *slot;
    size_t index = port->rx_ci & port->rx_mask;

    if (port->rx_pi == port->rx_ci) {
        port->rx_pi = dma_load32(port->page, PORT_PAGE_RX_PI);
        if (port->rx_pi == port->rx_ci) {
            return false;
        }
        hal_dma_rmb();
    }
    slot = port->rx_ring + index * PORT_RXD_LEN;
    *frame = (struct port_frame){
        .data = port->rx_buffers + index * BUFFER_LEN,
        .len_bytes = dma_load32(slot, PORT_RXD_LENGTH),
        .flags = dma_load32(slot, PORT_RXD_FLAGS),
        .timestamp_ns = dma_load64(slot, PORT_RXD_TIMESTAMP),
    };
    return true;
}

void port_rx_pop(struct port *port)
{
    ASSERT(port->rx_ci != port->rx_pi);
    port->rx_ci++;
    hal_dma_mb(); /* read the frame before the port overwrites its buffer */
    dma_store32(port->page, PORT_PAGE_RX_CI, port->rx_ci);
}

/* ---- Transmit */

static bool tx_has_room(struct port *port)
{
    if (port->tx_pi - port->tx_ci <= port->tx_mask) {
        return true;
    }
    port->tx_ci = dma_load32(port->page, PORT_PAGE_TX_CI);
    /* The frame has left before the driver overwrites its buffer. */
    hal_dma_mb();
    return port->tx_pi - port->tx_ci <= port->tx_mask;
}

uint8_t *port_tx_begin(struct port *port)
{
    port->tx_wanted = !tx_has_room(port);
    if (port->tx_wanted) {
        return NULL;
    }
    return port->tx_buffers +
           (size_t)(port->tx_pi & port->tx_mask) * BUFFER_LEN;
}

void port_tx_commit(struct port *port, uint32_t len_bytes, uint8_t priority)
{
    uint8_t *slot =
        port->tx_ring + (size_t)(port->tx_pi & port->tx_mask) * PORT_TXD_LEN;

    ASSERT(port->tx_pi - port->tx_ci <= port->tx_mask);
    ASSERT(len_bytes >= 14 && len_bytes <= PORT_FRAME_MAX && priority <= 7);
    dma_store32(slot, PORT_TXD_LENGTH, len_bytes);
    dma_store32(slot, PORT_TXD_PRIORITY, priority);
    port->tx_pi++;
}

void port_tx_kick(struct port *port)
{
    if (port->tx_pi == port->tx_published) {
        return;
    }
    port->tx_published = port->tx_pi;
    hal_dma_wmb();
    dma_store32(port->page, PORT_PAGE_TX_PI, port->tx_pi);
    hal_dma_mb();
    if (dma_load32(port->page, PORT_PAGE_ASLEEP)) {
        reg_write(port, A_PORT_KICK, 1);
    }
}

/* ---- Interrupts */

bool port_arm(struct port *port)
{
    uint32_t armed =
        PORT_ARMED_RX | (port->tx_wanted ? (uint32_t)PORT_ARMED_TX : 0);

    dma_store32(port->page, PORT_PAGE_ARMED, armed);
    hal_dma_mb();
    return dma_load32(port->page, PORT_PAGE_RX_PI) == port->rx_ci &&
           (!port->tx_wanted || !tx_has_room(port));
}

void port_irq_enable(struct port *port)
{
    uint32_t bits = 0;

    bits = FIELD_SET(bits, PORT_IRQ_STATUS, RING, 1);
    bits = FIELD_SET(bits, PORT_IRQ_STATUS, LINK, 1);
    reg_write(port, A_PORT_IRQ_ENABLE, bits);
}

uint32_t port_irq_take(struct port *port)
{
    uint32_t bits = reg_read(port, A_PORT_IRQ_STATUS);

    reg_write(port, A_PORT_IRQ_STATUS, bits);
    return bits;
}

uint64_t port_counter_read(const struct port *port, enum port_counter counter)
{
    uint32_t offset = PORT_COUNTER_BASE + 8 * (uint32_t)counter;
    uint32_t low = reg_read(port, offset);

    return (uint64_t)reg_read(port, offset + 4) << 32 | low;
}
