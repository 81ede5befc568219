/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ARP. A record is an ARP packet; the group is the broadcast address. OTHER:
 * the sender address differs from the one in the Ethernet header.
 */
#include "net/wire/arp.h"
#include "tests/fuzz/seat.h"

static size_t wrap_arp(struct seat *seat, uint8_t flags, uint8_t *data,
                       size_t len, uint8_t *frame)
{
    static const struct mac_addr all = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    size_t at = seat_eth(flags, &all, ETHERTYPE_ARP, frame);
    struct arp arp;

    (void)seat;
    if (arp_parse(&arp, data, len) && (flags & SEAT_OTHER) == 0) {
        memcpy(frame + ETH_SRC, arp.sender_mac.bytes, 6);
    }
    return seat_join(frame, at, data, len);
}

static const struct seat_format format = {.wrap = wrap_arp};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    return seat_run(&format, data, len);
}
