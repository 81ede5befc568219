/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_port.h"

struct fake_port fake_ports[NET_PORTS];

static struct fake_port *fake_of(const struct port *port)
{
    assert_in_range(port->regs, FAKE_REGS, FAKE_REGS + NET_PORTS - 1);
    return &fake_ports[port->regs - FAKE_REGS];
}

void fake_ports_reset(void)
{
    memset(fake_ports, 0, sizeof(fake_ports));
}

void fake_port_receive(unsigned int port, const uint8_t *dst, uint32_t len)
{
    struct fake_port *fake = &fake_ports[port];
    struct fake_frame *frame = &fake->received[fake->received_count++];

    assert_in_range(fake->received_count, 1, FAKE_RING);
    memset(frame->data, 0x5a, sizeof(frame->data));
    memcpy(frame->data, dst, 6);
    frame->len = len;
}

enum init_result port_init(struct port *port, const struct port_config *config)
{
    port->regs = config->regs;
    return fake_of(port)->refuses_start ? INIT_REFUSED : INIT_OK;
}

void port_set_mac(struct port *port, unsigned int slot, const uint8_t *mac)
{
    assert_int_equal(slot, 0);
    memcpy(fake_of(port)->mac, mac, 6);
}

void port_set_multicast(struct port *port, unsigned int entry,
                        const uint8_t *mac)
{
    static const uint8_t none[6];

    memcpy(fake_of(port)->groups[entry], mac != NULL ? mac : none, 6);
}

void port_set_vlan_filter(struct port *port, bool is_on)
{
    (void)fake_of(port);
    assert_true(is_on);
}

void port_set_vlan(struct port *port, unsigned int vlan, bool is_member)
{
    assert_in_range(vlan, 1, 4094);
    fake_of(port)->vlan[vlan] = is_member;
}

void port_set_pause(struct port *port, uint8_t priorities, bool link)
{
    (void)fake_of(port);
    (void)priorities;
    (void)link;
}

void port_set_roce_v1(struct port *port, bool is_on)
{
    (void)fake_of(port);
    (void)is_on;
}

void port_pair(struct port *a, struct port *b)
{
    assert_ptr_not_equal(fake_of(a), fake_of(b));
}

bool port_link_enable(struct port *port, uint32_t speed_mbps, enum port_fec fec)
{
    struct fake_port *fake = fake_of(port);

    if (fake->refuses_link) {
        return false;
    }
    fake->speed_mbps = speed_mbps;
    fake->fec = fec;
    return true;
}

void port_link_get(const struct port *port, struct port_link *link)
{
    *link = fake_of(port)->link;
}

bool port_rx_peek(struct port *port, struct port_frame *frame)
{
    const struct fake_port *fake = fake_of(port);

    if (fake->popped == fake->received_count) {
        return false;
    }
    *frame = (struct port_frame){
        .data = fake->received[fake->popped].data,
        .len_bytes = fake->received[fake->popped].len,
    };
    return true;
}

void port_rx_pop(struct port *port)
{
    fake_of(port)->popped++;
}

uint8_t *port_tx_begin(struct port *port)
{
    struct fake_port *fake = fake_of(port);

    assert_in_range(fake->sent_count, 0, FAKE_RING - 1);
    return fake->is_full ? NULL : fake->sent[fake->sent_count].data;
}

void port_tx_commit(struct port *port, uint32_t len_bytes, uint8_t priority)
{
    struct fake_port *fake = fake_of(port);

    fake->sent[fake->sent_count].len = len_bytes;
    fake->sent[fake->sent_count++].priority = priority;
}
