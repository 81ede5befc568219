/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6. A record is a packet, with any extension headers. Unless RAW is set,
 * version and payload length are corrected, and the source is a host's address.
 * OTHER: the destination is the drive's address.
 */
#include "lib/bytes.h"
#include "net/wire/ipv6.h"
#include "net/wire/nd.h"
#include "tests/fuzz/seat.h"

static const struct ip_addr own = {{0x20, 0x01, 0x0d, 0xb8, [15] = 2}};

static size_t wrap_ipv6(struct seat *seat, uint8_t flags, uint8_t *data,
                        size_t len, uint8_t *frame)
{
    static const struct mac_addr all = {{0x33, 0x33, 0, 0, 0, 1}};
    size_t at = seat_eth(flags, &all, ETHERTYPE_IPV6, frame);

    (void)seat;
    if ((flags & SEAT_RAW) == 0 && len >= IPV6_LEN) {
        data[0] = (uint8_t)(0x60 | (data[0] & 15));
        put_be16(data + IPV6_PAYLOAD_LEN, (uint16_t)(len - IPV6_LEN));
        if ((data[IPV6_SRC] & 0xe0) != 0x20) {
            memcpy(data + IPV6_SRC, host6.bytes, sizeof(host6.bytes));
        }
        if (flags & SEAT_OTHER) {
            memcpy(data + IPV6_DST, own.bytes, sizeof(own.bytes));
        }
    }
    return seat_join(frame, at, data, len);
}

static const struct seat_format format = {.wrap = wrap_ipv6};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    return seat_run(&format, data, len);
}
