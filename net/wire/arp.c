/* SPDX-License-Identifier: BSD-2-Clause */
/* ARP for IPv4 over Ethernet: see arp.h. */
#include "net/wire/arp.h"

#include "lib/bytes.h"

enum { HARDWARE_ETHERNET = 1, IPV4_ADDR_LEN = 4 };

_Static_assert(ARP_TARGET_IP + IPV4_ADDR_LEN == ARP_LEN, "ARP is 28 bytes");

bool arp_parse(struct arp *arp, const uint8_t *buf, size_t len)
{
    if (len < ARP_LEN || get_be16(buf + ARP_HARDWARE) != HARDWARE_ETHERNET ||
        get_be16(buf + ARP_PROTOCOL) != ETHERTYPE_IPV4 ||
        buf[ARP_HARDWARE_LEN] != sizeof(struct mac_addr) ||
        buf[ARP_PROTOCOL_LEN] != IPV4_ADDR_LEN) {
        return false;
    }
    *arp = (struct arp){
        .operation = get_be16(buf + ARP_OPERATION),
        .sender_ip = ip_addr_from_v4(get_be32(buf + ARP_SENDER_IP)),
        .target_ip = ip_addr_from_v4(get_be32(buf + ARP_TARGET_IP)),
    };
    memcpy(arp->sender_mac.bytes, buf + ARP_SENDER_MAC, 6);
    memcpy(arp->target_mac.bytes, buf + ARP_TARGET_MAC, 6);
    return true;
}

void arp_emit(const struct arp *arp, uint8_t *buf)
{
    put_be16(buf + ARP_HARDWARE, HARDWARE_ETHERNET);
    put_be16(buf + ARP_PROTOCOL, ETHERTYPE_IPV4);
    buf[ARP_HARDWARE_LEN] = sizeof(struct mac_addr);
    buf[ARP_PROTOCOL_LEN] = IPV4_ADDR_LEN;
    put_be16(buf + ARP_OPERATION, arp->operation);
    memcpy(buf + ARP_SENDER_MAC, arp->sender_mac.bytes, 6);
    put_be32(buf + ARP_SENDER_IP, ip_addr_to_v4(&arp->sender_ip));
    memcpy(buf + ARP_TARGET_MAC, arp->target_mac.bytes, 6);
    put_be32(buf + ARP_TARGET_IP, ip_addr_to_v4(&arp->target_ip));
}
