/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4. A record is a packet, with any options and fragments. Unless RAW is
 * set, total length and header checksum are corrected. OTHER: the checksum of
 * an ICMP message that is not fragmented is corrected, too.
 */
#include "lib/bytes.h"
#include "net/wire/checksum.h"
#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "tests/fuzz/seat.h"

static void fix_header(uint8_t flags, uint8_t *data, size_t len)
{
    size_t header_len = (size_t)(data[0] & 15) * 4;
    uint16_t fragment = get_be16(data + IPV4_FRAGMENT) & 0x3fff;

    put_be16(data + IPV4_TOTAL_LEN, (uint16_t)len);
    put_be16(data + IPV4_CHECKSUM, 0);
    if (header_len < IPV4_LEN || header_len > len) {
        return;
    }
    put_be16(data + IPV4_CHECKSUM,
             checksum_finish(checksum_add(0, data, header_len)));
    if ((flags & SEAT_OTHER) != 0 && fragment == 0 &&
        data[IPV4_PROTOCOL] == IP_PROTOCOL_ICMP &&
        len - header_len >= ICMP_LEN) {
        put_be16(data + header_len + ICMP_CHECKSUM, 0);
        put_be16(data + header_len + ICMP_CHECKSUM,
                 checksum_finish(
                     checksum_add(0, data + header_len, len - header_len)));
    }
}

static size_t wrap_ipv4(struct seat *seat, uint8_t flags, uint8_t *data,
                        size_t len, uint8_t *frame)
{
    static const struct mac_addr all = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    size_t at = seat_eth(flags, &all, ETHERTYPE_IPV4, frame);

    (void)seat;
    if ((flags & SEAT_RAW) == 0 && len >= IPV4_LEN) {
        fix_header(flags, data, len);
    }
    return seat_join(frame, at, data, len);
}

static const struct seat_format format = {.wrap = wrap_ipv4};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    return seat_run(&format, data, len);
}
