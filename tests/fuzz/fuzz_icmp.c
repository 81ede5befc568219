/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMP. A record is a message. Unless RAW is set, its checksum is corrected;
 * the group is the broadcast address.
 */
#include "lib/bytes.h"
#include "net/wire/checksum.h"
#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "tests/fuzz/seat.h"

static size_t wrap_icmp(struct seat *seat, uint8_t flags, uint8_t *data,
                        size_t len, uint8_t *frame)
{
    size_t at = seat_ipv4(flags, IP_PROTOCOL_ICMP, len, frame);

    (void)seat;
    if ((flags & SEAT_RAW) == 0 && len >= ICMP_LEN) {
        put_be16(data + ICMP_CHECKSUM, 0);
        put_be16(data + ICMP_CHECKSUM,
                 checksum_finish(checksum_add(0, data, len)));
    }
    return seat_join(frame, at, data, len);
}

static const struct seat_format format = {.wrap = wrap_icmp};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    return seat_run(&format, data, len);
}
