/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DHCP. A record is a server's message to the client of port 0. Unless RAW is
 * set, it has the client's transaction id and MAC address. OTHER: the message
 * goes to the client's address instead of broadcast.
 */
#include "lib/bytes.h"
#include "net/stack/dhcp.h"
#include "net/wire/ipv4.h"
#include "net/wire/udp.h"
#include "tests/fuzz/seat.h"

static struct dhcp_client client;

static void check_lease(void *ctx, uint8_t port, const struct dhcp_lease *lease)
{
    (void)ctx;
    if (port != 0) {
        abort();
    }
    if (lease != NULL &&
        (lease->prefix_bits > 32 || ip_addr_is_unspecified(&lease->ip) ||
         ip_addr_is_multicast(&lease->ip) || lease->lease_s == 0)) {
        abort();
    }
}

static void start_dhcp(struct seat *seat)
{
    const struct dhcp_client_config config = {
        .stack = &seat->w->stack,
        .host_name = "rack7",
        .ports = {{true, NET_VLAN_UNTAGGED}},
        .is_fast = true,
        .random_seed = 7,
        .leased = check_lease,
    };

    if (!dhcp_client_init(&client, &config)) {
        abort();
    }
    dhcp_client_link(&client, 0, true, seat->w->now_us);
}

static uint64_t dhcp_timer_of_seat(struct seat *seat, uint64_t now_us)
{
    (void)seat;
    return dhcp_client_timer(&client, now_us);
}

static size_t wrap_dhcp(struct seat *seat, uint8_t flags, uint8_t *data,
                        size_t len, uint8_t *frame)
{
    const struct udp udp = {
        .src_port = DHCP_SERVER_PORT,
        .dst_port = DHCP_CLIENT_PORT,
        .length_bytes = (uint16_t)(UDP_LEN + len),
    };
    size_t at = seat_ipv4(flags & SEAT_OTHER ? 0 : SEAT_GROUP, IP_PROTOCOL_UDP,
                          udp.length_bytes, frame);

    if ((flags & SEAT_RAW) == 0 && len >= DHCP_CHADDR + 6) {
        put_be32(data + DHCP_XID, client.ports[0].xid);
        memcpy(data + DHCP_CHADDR, seat->w->stack.config.ports[0].mac.bytes, 6);
    }
    udp_emit(&udp, frame + at); /* No checksum. */
    return seat_join(frame, at + UDP_LEN, data, len);
}

static const struct seat_format format = {
    .wrap = wrap_dhcp, .start = start_dhcp, .timer = dhcp_timer_of_seat};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    return seat_run(&format, data, len);
}
