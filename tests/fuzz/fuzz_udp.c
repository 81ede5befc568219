/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP. A record is a datagram over IPv4, or over IPv6 if OTHER is set. Unless
 * RAW is set, length and checksum are corrected. A user is bound to port 4000
 * and reads every byte that arrives.
 */
#include "lib/bytes.h"
#include "net/wire/ipv4.h"
#include "net/wire/udp.h"
#include "tests/fuzz/seat.h"

enum { BOUND = 4000 };

static const struct ip_addr own6 = {{0x20, 0x01, 0x0d, 0xb8, [15] = 2}};

static void take_datagram(void *ctx, const struct net_udp_rx *udp)
{
    volatile uint8_t sum = 0;

    (void)ctx;
    if (udp->dst_port != BOUND) {
        abort();
    }
    for (size_t i = 0; i < udp->len_bytes; i++) {
        sum = (uint8_t)(sum + udp->payload[i]);
    }
}

static void bind_port(struct seat *seat)
{
    if (!net_stack_udp_bind(&seat->w->stack, BOUND, take_datagram, seat)) {
        abort();
    }
}

static size_t wrap_udp(struct seat *seat, uint8_t flags, uint8_t *data,
                       size_t len, uint8_t *frame)
{
    struct ip_addr src = flags & SEAT_OTHER ? host6 : host4;
    struct ip_addr dst = flags & SEAT_OTHER ? own6 : seat_own4(flags);
    size_t at = flags & SEAT_OTHER
                    ? seat_ipv6(flags, &src, &dst, IP_PROTOCOL_UDP, len, frame)
                    : seat_ipv4(flags, IP_PROTOCOL_UDP, len, frame);

    (void)seat;
    if ((flags & SEAT_OTHER) == 0) { /* The addresses that seat_ipv4() wrote. */
        src = ip_addr_from_v4(get_be32(frame + at - 8));
        dst = ip_addr_from_v4(get_be32(frame + at - 4));
    }
    if ((flags & SEAT_RAW) == 0 && len >= UDP_LEN) {
        put_be16(data + UDP_LENGTH, (uint16_t)len);
        put_be16(data + UDP_CHECKSUM, 0);
        put_be16(data + UDP_CHECKSUM, udp_checksum(&src, &dst, data, len));
    }
    return seat_join(frame, at, data, len);
}

static const struct seat_format format = {.wrap = wrap_udp, .start = bind_port};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    return seat_run(&format, data, len);
}
