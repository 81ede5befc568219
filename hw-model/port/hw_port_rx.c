/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port's receive path: check, filter, classify, and the raw ring.
 * Reference: docs/hardware/port.md, section 5.
 */
#include "hw-model/port/hw_port_internal.h"

#include <string.h>

#include "net/wire/eth.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/mac_control.h"
#include "net/wire/udp.h"

enum rx_verdict { RX_DROP, RX_RNIC, RX_TOE, RX_RAW };

enum {
    IPV4_NO_OPTIONS = 0x45,      /* version 4, five words */
    IPV4_FRAGMENT_BITS = 0x3fff, /* MF and the offset */
    IPV6_VERSION_6 = 6,
};

static const uint64_t broadcast = UINT64_C(0xffffffffffff);

static uint64_t mac_value(const uint8_t *p)
{
    return (uint64_t)get_be16(p) << 32 | get_be32(p + 2);
}

static void count_size(struct hw_port *port, uint32_t octets)
{
    enum port_counter counter = PORT_COUNT_PKTS_1519_MAX;

    if (octets <= 64) {
        counter = PORT_COUNT_PKTS_64;
    } else if (octets <= 127) {
        counter = PORT_COUNT_PKTS_65_127;
    } else if (octets <= 255) {
        counter = PORT_COUNT_PKTS_128_255;
    } else if (octets <= 511) {
        counter = PORT_COUNT_PKTS_256_511;
    } else if (octets <= 1023) {
        counter = PORT_COUNT_PKTS_512_1023;
    } else if (octets <= 1518) {
        counter = PORT_COUNT_PKTS_1024_1518;
    }
    port_count(port, counter, 1);
}

/* Check FCS and length, and update the RMON counters. */
static bool check_frame(struct hw_port *port, const struct frame_rx *frame)
{
    bool is_short = (frame->flags & FRAME_RUNT) || frame->len_bytes < ETH_LEN;
    bool is_tagged = frame->len_bytes >= ETH_TAGGED_LEN &&
                     get_be16(frame->data + ETH_TYPE) == ETHERTYPE_VLAN;
    bool is_long =
        frame->len_bytes > port->mtu + (is_tagged ? ETH_TAGGED_LEN : ETH_LEN);
    /* Frames from sockets may be unpadded. */
    uint32_t octets =
        (is_short ? frame->len_bytes : MAX(frame->len_bytes, PORT_FRAME_MIN)) +
        PORT_FCS_LEN;

    port_count(port, PORT_COUNT_PKTS, 1);
    port_count(port, PORT_COUNT_OCTETS, octets);
    if (frame->flags & FRAME_CORRECTED) {
        port_count(port, PORT_COUNT_FEC_CORRECTED, 1);
    }
    if (frame->flags & FRAME_BAD_FCS) {
        port_count(port, PORT_COUNT_FCS_ERRORS, 1);
        if (is_short) {
            port_count(port, PORT_COUNT_FRAGMENTS, 1);
        } else if (is_long) {
            port_count(port, PORT_COUNT_JABBERS, 1);
        }
        return false;
    }
    if (is_short) {
        port_count(port, PORT_COUNT_UNDERSIZE_PKTS, 1);
        return false;
    }
    if (is_long) {
        port_count(port, PORT_COUNT_OVERSIZE_PKTS, 1);
        port_count(port, PORT_COUNT_TOO_LONG, 1);
        return false;
    }
    count_size(port, octets);
    return true;
}

/* @return enum port_rxd_flags, or -1 when no filter lets the frame in */
static int match_address(const struct hw_port *port, uint64_t mac)
{
    if (mac == broadcast) {
        return PORT_RXD_BROADCAST;
    }
    if (!(mac >> 40 & 1)) {
        for (unsigned int i = 0; i < PORT_MACS; i++) {
            if (port->mac_match[i] == mac) {
                return 0;
            }
        }
        return FIELD_GET(port->ctrl, PORT_CTRL, UNICAST_ALL)
                   ? PORT_RXD_PROMISCUOUS
                   : -1;
    }
    if (port->multicast_hash >> (mac & 63) & 1) {
        for (unsigned int i = 0; i < PORT_MULTICASTS; i++) {
            uint32_t hi = port->multicast[2 * i + 1];

            if (FIELD_GET(hi, PORT_MULTICAST_HI, VALID) &&
                FIELD_GET(hi, PORT_MULTICAST_HI, ADDR) == mac >> 32 &&
                port->multicast[2 * i] == (uint32_t)mac) {
                return PORT_RXD_MULTICAST;
            }
        }
    }
    return FIELD_GET(port->ctrl, PORT_CTRL, MULTICAST_ALL)
               ? PORT_RXD_MULTICAST | PORT_RXD_PROMISCUOUS
               : -1;
}

static bool vlan_passes(const struct hw_port *port, const struct eth *eth)
{
    return !eth->tagged || eth->vlan == 0 ||
           !FIELD_GET(port->ctrl, PORT_CTRL, VLAN_FILTER) ||
           (port->vlan[eth->vlan / 32] >> (eth->vlan % 32) & 1);
}

/* MAC Control frames are not passed on: IEEE 802.3 clause 31.5.1. */
static bool is_mac_control(const struct hw_port *port,
                           const struct frame_rx *frame, uint64_t mac)
{
    if (get_be16(frame->data + ETH_TYPE) != ETHERTYPE_MAC_CONTROL) {
        return false;
    }
    return mac == MAC_CONTROL_GROUP || match_address(port, mac) >= 0;
}

static bool is_roce_udp(const uint8_t *udp, const uint8_t *end)
{
    return end - udp >= UDP_LEN &&
           get_be16(udp + UDP_DST_PORT) == UDP_PORT_ROCE;
}

static bool is_roce(const struct hw_port *port, const struct eth *eth,
                    const uint8_t *ip, const uint8_t *end)
{
    if (eth->type == ETHERTYPE_ROCE_V1) {
        return true;
    }
    if (!FIELD_GET(port->ctrl, PORT_CTRL, ROCE_V2)) {
        return false;
    }
    if (eth->type == ETHERTYPE_IPV4) {
        return end - ip >= IPV4_LEN && ip[0] == IPV4_NO_OPTIONS &&
               !(get_be16(ip + IPV4_FRAGMENT) & IPV4_FRAGMENT_BITS) &&
               ip[IPV4_PROTOCOL] == IP_PROTOCOL_UDP &&
               is_roce_udp(ip + IPV4_LEN, end);
    }
    return eth->type == ETHERTYPE_IPV6 && end - ip >= IPV6_LEN &&
           ip[0] >> 4 == IPV6_VERSION_6 &&
           ip[IPV6_NEXT_HEADER] == IP_PROTOCOL_UDP &&
           is_roce_udp(ip + IPV6_LEN, end);
}

/* Whole TCP segments: neither IPv4 options nor fragments, and no IPv6
 * extension headers. */
static bool is_tcp(const struct hw_port *port, const struct eth *eth,
                   const uint8_t *ip, const uint8_t *end)
{
    if (!FIELD_GET(port->ctrl, PORT_CTRL, TOE)) {
        return false;
    }
    if (eth->type == ETHERTYPE_IPV4) {
        return end - ip >= IPV4_LEN && ip[0] == IPV4_NO_OPTIONS &&
               !(get_be16(ip + IPV4_FRAGMENT) & IPV4_FRAGMENT_BITS) &&
               ip[IPV4_PROTOCOL] == IP_PROTOCOL_TCP;
    }
    return eth->type == ETHERTYPE_IPV6 && end - ip >= IPV6_LEN &&
           ip[0] >> 4 == IPV6_VERSION_6 &&
           ip[IPV6_NEXT_HEADER] == IP_PROTOCOL_TCP;
}

static void count_good(struct hw_port *port, uint32_t len, int flags)
{
    port_count(port, PORT_COUNT_FRAMES_RECEIVED_OK, 1);
    port_count(port, PORT_COUNT_OCTETS_RECEIVED_OK,
               MAX(len, PORT_FRAME_MIN) - ETH_LEN);
    if (flags & PORT_RXD_BROADCAST) {
        port_count(port, PORT_COUNT_BROADCAST_RECEIVED_OK, 1);
    } else if (flags & PORT_RXD_MULTICAST) {
        port_count(port, PORT_COUNT_MULTICAST_RECEIVED_OK, 1);
    }
}

/* Decide where a frame goes. *flags is set to its enum port_rxd_flags. */
static enum rx_verdict judge_frame(struct hw_port *port,
                                   const struct frame_rx *frame, int *flags)
{
    struct eth eth;
    uint64_t mac;

    if (!check_frame(port, frame)) {
        return RX_DROP;
    }
    mac = mac_value(frame->data + ETH_DST);
    if (is_mac_control(port, frame, mac)) {
        port_pause_receive(port, frame->data + ETH_LEN,
                           frame->len_bytes - ETH_LEN);
        return RX_DROP;
    }
    *flags = match_address(port, mac);
    if (*flags < 0) {
        port_count(port, PORT_COUNT_RX_FILTERED_ADDRESS, 1);
        return RX_DROP;
    }
    if (!eth_parse(&eth, frame->data, frame->len_bytes) ||
        !vlan_passes(port, &eth)) {
        port_count(port, PORT_COUNT_RX_FILTERED_VLAN, 1);
        return RX_DROP;
    }
    count_good(port, frame->len_bytes, *flags);
    if (eth.type == ETHERTYPE_ROCE_V1 &&
        !FIELD_GET(port->ctrl, PORT_CTRL, ROCE_V1)) {
        port_count(port, PORT_COUNT_RX_ROCE_V1_DROPPED, 1);
        return RX_DROP;
    }
    if (is_roce(port, &eth, frame->data + eth_header_len(&eth),
                frame->data + frame->len_bytes)) {
        return RX_RNIC;
    }
    return is_tcp(port, &eth, frame->data + eth_header_len(&eth),
                  frame->data + frame->len_bytes)
               ? RX_TOE
               : RX_RAW;
}

/* Store one frame in the next slot; the caller publishes RX_PI later. */
static bool raw_store(struct hw_port *port, uint8_t *page,
                      const struct frame_rx *frame, int flags)
{
    uint32_t used = port->rx_pi - shared_load32(page + PORT_PAGE_RX_CI);
    uint32_t len = MAX(frame->len_bytes, PORT_FRAME_MIN);
    const struct dev_env *env = &port->config.env;
    uint8_t *slot, *buf;

    if (used > port->rx_mask) {
        return false;
    }
    slot = port_dma(port,
                    port->rx_addr +
                        (uint64_t)(port->rx_pi & port->rx_mask) * PORT_RXD_LEN,
                    PORT_RXD_LEN);
    if (slot == NULL || get_le32(slot + PORT_RXD_SIZE) < len) {
        port_irq_raise(port, R_PORT_IRQ_STATUS_DMA_ERROR_MASK);
        return false;
    }
    buf = port_dma_write(port, get_le64(slot + PORT_RXD_ADDR), len);
    if (buf == NULL) {
        port_irq_raise(port, R_PORT_IRQ_STATUS_DMA_ERROR_MASK);
        return false;
    }
    memcpy(buf, frame->data, frame->len_bytes);
    memset(buf + frame->len_bytes, 0, len - frame->len_bytes);
    put_le32(slot + PORT_RXD_LENGTH, len);
    put_le32(slot + PORT_RXD_FLAGS, (uint32_t)flags);
    put_le64(slot + PORT_RXD_TIMESTAMP, env->now_ns(env->ctx));
    port->rx_pi++;
    return true;
}

static void raw_publish(struct hw_port *port, uint8_t *page)
{
    dev_wmb();
    shared_store32(page + PORT_PAGE_RX_PI, port->rx_pi);
    port_ring_moved(port, page, PORT_ARMED_RX);
}

static void to_rnic(struct hw_port *port, const struct frame_rx *frames,
                    unsigned int n)
{
    if (n > 0) {
        port_count(port, PORT_COUNT_RX_RNIC, n);
        port->config.ops.rnic_rx(port->config.ops.ctx, frames, n);
    }
}

static void to_toe(struct hw_port *port, const struct frame_rx *frames,
                   unsigned int n)
{
    if (n > 0) {
        port_count(port, PORT_COUNT_RX_TOE, n);
        port->config.ops.toe_rx(port->config.ops.ctx, frames, n);
    }
}

/* Pass a run of frames on to the engine that takes them. */
static void to_engine(struct hw_port *port, enum rx_verdict engine,
                      const struct frame_rx *frames, unsigned int n)
{
    if (engine == RX_RNIC) {
        to_rnic(port, frames, n);
    } else if (engine == RX_TOE) {
        to_toe(port, frames, n);
    }
}

static void receive_frames(struct hw_port *port, const struct frame_rx *frames,
                           unsigned int n)
{
    uint8_t *page = port_page(port);
    uint32_t first_pi = port->rx_pi;
    unsigned int run = 0; /* first frame of the run for one engine */
    enum rx_verdict engine = RX_RNIC;

    for (unsigned int i = 0; i < n; i++) {
        int flags = 0;
        enum rx_verdict verdict = judge_frame(port, &frames[i], &flags);

        if (verdict == engine) {
            continue;
        }
        to_engine(port, engine, frames + run, i - run);
        if (verdict == RX_RNIC || verdict == RX_TOE) {
            run = i;
            engine = verdict;
            continue;
        }
        run = i + 1;
        if (verdict == RX_RAW) {
            bool is_stored =
                page != NULL && raw_store(port, page, &frames[i], flags);

            port_count(
                port, is_stored ? PORT_COUNT_RX_RAW : PORT_COUNT_RX_DROPPED, 1);
        }
    }
    to_engine(port, engine, frames + run, n - run);
    if (page != NULL && port->rx_pi != first_pi) {
        raw_publish(port, page);
    }
}

/* Apply bit errors of the cable, and their correction by FEC, to a frame. */
static void damage_frame(struct hw_port *port, struct frame_rx *frame)
{
    uint32_t len = MAX(frame->len_bytes, PORT_FRAME_MIN) + PORT_FCS_LEN;
    struct fec_verdict verdict =
        fec_frame(&port->lane_rx, hw_port_link(port).fec, len);

    port_count(port, PORT_COUNT_FEC_CORRECTED_BLOCKS, verdict.corrected);
    port_count(port, PORT_COUNT_FEC_UNCORRECTABLE_BLOCKS,
               verdict.uncorrectable);
    if (verdict.is_lost) {
        frame->flags |= FRAME_BAD_FCS;
    } else if (verdict.corrected != 0) {
        frame->flags |= FRAME_CORRECTED;
    }
}

void hw_port_rx(struct hw_port *port, const struct frame_rx *frames,
                unsigned int n)
{
    if (!port->link_up || !FIELD_GET(port->ctrl, PORT_CTRL, RX_ENABLE)) {
        return;
    }
    if (port->lane_rx.ber_atto == 0) {
        receive_frames(port, frames, n);
        return;
    }
    for (unsigned int i = 0; i < n; i++) {
        struct frame_rx frame = frames[i];

        damage_frame(port, &frame);
        receive_frames(port, &frame, 1);
    }
}
