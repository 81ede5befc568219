/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/net/node_ports.h"

#include <string.h>

#include "firmware/net/node_paths.h"
#include "hw-model/regs/port_names.h"

enum {
    RX_FRAMES = 128,
    TX_FRAMES = 64,
};

/* ---- Links. */

bool node_ports_set_link(struct node_ports *ports, uint8_t port,
                         uint8_t speed_gbps, enum config_fec fec)
{
    static const uint8_t port_fec[] = {
        [CONFIG_FEC_NONE] = PORT_FEC_NONE,
        [CONFIG_FEC_FC] = PORT_FEC_FC,
        [CONFIG_FEC_RS] = PORT_FEC_RS,
    };

    if (!port_link_enable(&ports->port[port].port, speed_gbps * 1000u,
                          (enum port_fec)port_fec[fec])) {
        log_line(ports->log,
                 "port %u: %u Gb/s with this FEC is refused: both ports need "
                 "the same speed, and RS-FEC needs 25 Gb/s",
                 port, speed_gbps);
        return false;
    }
    return true;
}

uint32_t node_ports_check_link(struct node_ports *ports, uint8_t index,
                               uint64_t now_us)
{
    static const char *const fec[] = {"no FEC", "FC-FEC", "RS-FEC"};
    struct node_port *port = &ports->port[index];
    struct port_link link;

    port->check_link = false;
    port_link_get(&port->port, &link);
    if (!link.is_up && link.reason != port->reason) {
        log_line(ports->log, "port %u: link down: %s", index,
                 port_reason_name[link.reason]);
    }
    port->reason = link.reason;
    if (link.is_up == port->is_up) {
        return 0;
    }
    port->is_up = link.is_up;
    if (link.is_up) {
        log_line(ports->log, "port %u: link up, %u Mb/s, %s", index,
                 link.speed_mbps, fec[link.fec]);
    }
    ports->attachment.ops->link(ports->attachment.ctx, index, link.is_up,
                                now_us);
    return link.is_up ? link.speed_mbps : 0;
}

/* ---- Frames. */

bool node_ports_receive(struct node_ports *ports, uint8_t index,
                        unsigned int budget, uint64_t now_us)
{
    const struct attachment *attachment = &ports->attachment;
    struct port *port = &ports->port[index].port;
    struct port_frame frame;
    unsigned int n = 0;

    for (; n < budget && port_rx_peek(port, &frame); n++) {
        uint8_t stack_port;

        if (attachment->ops->accept(attachment->ctx, index, frame.data,
                                    frame.len_bytes, &stack_port, now_us) &&
            !net_stack_input(ports->stack, stack_port, frame.data,
                             frame.len_bytes, now_us)) {
            break; /* no room for an answer: the frame waits in the ring */
        }
        port_rx_pop(port);
    }
    return n != 0;
}

uint8_t *node_ports_tx_begin(struct node_ports *ports, uint8_t stack_port)
{
    const struct attachment *attachment = &ports->attachment;
    uint8_t port = attachment->ops->sender(attachment->ctx, stack_port);

    ports->tx_port[stack_port] = port;
    return port_tx_begin(&ports->port[port].port);
}

/* Copy a frame into a port's ring, or drop it if that ring is full. */
static void send_copy(struct port *port, const uint8_t *frame, size_t len,
                      uint8_t priority)
{
    uint8_t *copy = port_tx_begin(port);

    if (copy != NULL) {
        memcpy(copy, frame, len);
        port_tx_commit(port, (uint32_t)len, priority);
    }
}

void node_ports_tx_commit(struct node_ports *ports, uint8_t stack_port,
                          size_t len, uint8_t priority)
{
    uint8_t index = ports->tx_port[stack_port];
    struct port *port = &ports->port[index].port;

    if (index != stack_port) {
        /* port_tx_begin() returns the same uncommitted buffer once more. */
        const uint8_t *frame = port_tx_begin(port);

        ASSERT(frame != NULL);
        if (attachment_is_link_local(frame)) {
            /*
             * This is a link-local frame that was built in the other port's
             * buffer.
             */
            send_copy(&ports->port[stack_port].port, frame, len, priority);
            return;
        }
    }
    port_tx_commit(port, (uint32_t)len, priority);
}

/* ---- Start. */

static enum init_result port_start(struct node_ports *ports,
                                   const struct node_ports_config *config,
                                   uint8_t index)
{
    const struct node_port_config *settings = &config->port[index];
    struct node_port *port = &ports->port[index];
    const struct port_config port_config = {
        .regs = settings->regs,
        .dram = config->dram,
        .rx_frames = RX_FRAMES,
        .tx_frames = TX_FRAMES,
        .mtu_bytes = settings->mtu_bytes,
    };

    enum init_result result = port_init(&port->port, &port_config);

    if (result != INIT_OK) {
        return result;
    }
    port_set_mac(&port->port, 0, settings->mac);
    /* node_filters.h adds the members. */
    port_set_vlan_filter(&port->port, true);
    port_set_pause(&port->port, config->pfc_priorities, false);
    port_set_roce_v1(&port->port, config->has_roce_v1);
    port->path_mtu = node_paths_mtu(settings->mtu_bytes);
    port->check_link = true;
    return INIT_OK;
}

struct init_report node_ports_init(struct node_ports *ports,
                                   const struct node_ports_config *config)
{
    static const char *const name[NET_PORTS] = {"port 0", "port 1"};

    *ports = (struct node_ports){
        .log = config->log,
        .stack = config->stack,
        .attachment = config->attachment,
    };
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        enum init_result result = port_start(ports, config, i);

        if (result != INIT_OK) {
            return (struct init_report){result, name[i]};
        }
    }
    port_pair(&ports->port[0].port, &ports->port[1].port);
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        /* A port that refuses stays off, and the log has the reason. */
        (void)!node_ports_set_link(ports, i, config->port[i].speed_gbps,
                                   config->port[i].fec);
    }
    return (struct init_report){INIT_OK, NULL};
}
