/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMPv6: neighbour discovery, routers, listeners, echoes and errors. A record
 * is a message; unless RAW is set, its checksum is corrected. OTHER: it comes
 * from a link-local address, which routers need; a neighbour solicitation then
 * comes from the unspecified address, as in duplicate address detection. The
 * group is all nodes, or the group of a solicitation.
 */
#include "lib/bytes.h"
#include "net/wire/checksum.h"
#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "net/wire/nd.h"
#include "tests/fuzz/seat.h"

static const struct ip_addr own = {{0x20, 0x01, 0x0d, 0xb8, [15] = 2}};
static const struct ip_addr router = {{0xfe, 0x80, [15] = 1}};
static const struct ip_addr nobody;
static const struct ip_addr all_nodes = {{0xff, 0x02, [15] = 1}};

static size_t wrap_icmpv6(struct seat *seat, uint8_t flags, uint8_t *data,
                          size_t len, uint8_t *frame)
{
    bool is_ns = len >= ND_TARGET + 16 && data[0] == ND_NEIGHBOR_SOLICIT;
    const struct ip_addr *src =
        (flags & SEAT_OTHER) == 0 ? &host6 : (is_ns ? &nobody : &router);
    struct ip_addr dst = own;

    (void)seat;
    if (flags & SEAT_GROUP) {
        struct ip_addr target =
            is_ns ? ip_addr_from_bytes(data + ND_TARGET) : all_nodes;

        dst = is_ns ? nd_solicited_node(&target) : all_nodes;
    }
    if ((flags & SEAT_RAW) == 0 && len >= ICMP_REST) {
        put_be16(data + ICMP_CHECKSUM, 0);
        put_be16(data + ICMP_CHECKSUM,
                 checksum_finish(checksum_add(
                     checksum_pseudo(src, &dst, IP_PROTOCOL_ICMPV6, len), data,
                     len)));
    }
    return seat_join(
        frame, seat_ipv6(flags, src, &dst, IP_PROTOCOL_ICMPV6, len, frame),
        data, len);
}

static const struct seat_format format = {.wrap = wrap_icmpv6};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    return seat_run(&format, data, len);
}
