/* SPDX-License-Identifier: BSD-2-Clause */
/* Ethernet II header and 802.1Q tag: see eth.h. */
#include "net/wire/eth.h"

#include "lib/bytes.h"

_Static_assert(ETH_TYPE + 2 == ETH_LEN, "the untagged header is 14 bytes");
_Static_assert(ETH_TAGGED_TYPE + 2 == ETH_TAGGED_LEN, "the tagged one is 18");

bool eth_parse(struct eth *eth, const uint8_t *buf, size_t len)
{
    uint16_t tci;

    if (len < ETH_LEN) {
        return false;
    }
    *eth = (struct eth){.type = get_be16(buf + ETH_TYPE)};
    memcpy(eth->dst.bytes, buf + ETH_DST, sizeof(eth->dst.bytes));
    memcpy(eth->src.bytes, buf + ETH_SRC, sizeof(eth->src.bytes));
    if (eth->type != ETHERTYPE_VLAN) {
        return true;
    }
    if (len < ETH_TAGGED_LEN) {
        return false;
    }
    tci = get_be16(buf + ETH_TAG_TCI);
    eth->tagged = true;
    eth->priority = (uint8_t)(tci >> 13);
    eth->dei = tci & 0x1000;
    eth->vlan = tci & 0xfff;
    eth->type = get_be16(buf + ETH_TAGGED_TYPE);
    return true;
}

void eth_emit(const struct eth *eth, uint8_t *buf)
{
    memcpy(buf + ETH_DST, eth->dst.bytes, sizeof(eth->dst.bytes));
    memcpy(buf + ETH_SRC, eth->src.bytes, sizeof(eth->src.bytes));
    if (!eth->tagged) {
        put_be16(buf + ETH_TYPE, eth->type);
        return;
    }
    put_be16(buf + ETH_TYPE, ETHERTYPE_VLAN);
    put_be16(buf + ETH_TAG_TCI,
             (uint16_t)((eth->priority & 7) << 13 | (eth->dei ? 0x1000 : 0) |
                        (eth->vlan & 0xfff)));
    put_be16(buf + ETH_TAGGED_TYPE, eth->type);
}
