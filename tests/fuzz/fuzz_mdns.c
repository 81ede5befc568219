/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mDNS responder.  A record is a message to the group or, with RAW, to the
 * drive's address; it comes from port 5353 or, with OTHER, from another one.
 * The drive's two ports have one responder each.
 */
#include "net/stack/mdns.h"
#include "net/wire/ipv4.h"
#include "net/wire/udp.h"
#include "tests/fuzz/seat.h"

static const struct ip_addr group = {{[10] = 0xff, 0xff, 224, 0, 0, 251}};

static struct mdns_agent agent;

static void start_mdns(struct seat *seat)
{
    const struct mdns_config config = {
        .stack = &seat->w->stack,
        .name = "rack7",
        .nqn = "nqn.2019-10.example:drive:discovery",
        .service_port = 4420,
        .vlan = {NET_VLAN_UNTAGGED, NET_VLAN_UNTAGGED},
        .is_on = true,
        .random_seed = 7,
    };

    if (!mdns_init(&agent, &config, seat->w->now_us)) {
        abort();
    }
    for (uint8_t port = 0; port < NET_PORTS; port++) {
        mdns_link(&agent, port, true, seat->w->now_us);
    }
}

static uint64_t mdns_timer_of_seat(struct seat *seat, uint64_t now_us)
{
    (void)seat;
    return mdns_timer(&agent, now_us);
}

static void send_to_group(uint8_t *frame, uint8_t *header)
{
    static const struct mac_addr mac = {{0x01, 0, 0x5e, 0, 0, 0xfb}};
    struct ipv4 ip;

    if (!ipv4_parse(&ip, header, (size_t)get_be16(header + 2))) {
        abort();
    }
    ip.dst = group;
    ipv4_emit(&ip, header);
    memcpy(frame, mac.bytes, sizeof(mac.bytes));
}

static size_t wrap_mdns(struct seat *seat, uint8_t flags, uint8_t *data,
                        size_t len, uint8_t *frame)
{
    const struct udp udp = {
        .src_port = flags & SEAT_OTHER ? 40000 : MDNS_PORT,
        .dst_port = MDNS_PORT,
        .length_bytes = (uint16_t)(UDP_LEN + len),
    };
    size_t at = seat_ipv4(flags, IP_PROTOCOL_UDP, udp.length_bytes, frame);

    (void)seat;
    if (!(flags & SEAT_RAW)) {
        send_to_group(frame, frame + at - IPV4_LEN);
    }
    udp_emit(&udp, frame + at); /* No checksum. */
    return seat_join(frame, at + UDP_LEN, data, len);
}

static const struct seat_format format = {
    .wrap = wrap_mdns, .start = start_mdns, .timer = mdns_timer_of_seat};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    return seat_run(&format, data, len);
}
