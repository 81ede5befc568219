/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/arp.h"

static void test_arp_is_parsed_and_emitted(void **state)
{
    DIRTY(out, ARP_LEN);
    struct arp arp;

    (void)state;
    assert_true(arp_parse(&arp, arp_request, sizeof(arp_request)));
    assert_int_equal(arp.operation, ARP_REQUEST);
    assert_int_equal(ip_addr_to_v4(&arp.sender_ip), 0x0a000001);
    assert_int_equal(ip_addr_to_v4(&arp.target_ip), 0x0a000002);
    assert_true(ip_addr_is_v4(&arp.target_ip));
    assert_int_equal(arp.sender_mac.bytes[0], 0x52);
    assert_int_equal(arp.target_mac.bytes[5], 0x22);
    arp_emit(&arp, out);
    assert_memory_equal(out, arp_request, ARP_LEN);
}

static void test_arp_parse_refuses_every_truncation(void **state)
{
    struct arp arp;

    (void)state;
    ASSERT_TRUNCATIONS_REFUSED(arp_parse, &arp, arp_request, ARP_LEN);
}

/* Each byte of the types and lengths of hardware and protocol has one valid
 * value. */
static void test_arp_parse_refuses_other_networks(void **state)
{
    struct arp arp;

    (void)state;
    for (size_t byte = ARP_HARDWARE; byte < ARP_OPERATION; byte++) {
        uint8_t buf[ARP_LEN];

        memcpy(buf, arp_request, ARP_LEN);
        buf[byte] ^= 2;
        assert_false(arp_parse(&arp, buf, sizeof(buf)));
    }
}
