/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/eth.h"

static const struct mac_addr mac_a = {{0x24, 0x8a, 0x07, 0xa8, 0xfa, 0x22}};
static const struct mac_addr mac_b = {{0x52, 0x54, 0x00, 0x12, 0x34, 0x56}};

static void test_eth_untagged_is_parsed_and_emitted(void **state)
{
    DIRTY(out, ETH_LEN);
    struct eth eth;

    (void)state;
    assert_true(eth_parse(&eth, eth_untagged, sizeof(eth_untagged)));
    assert_true(mac_addr_equal(&eth.dst, &mac_a));
    assert_true(mac_addr_equal(&eth.src, &mac_b));
    assert_int_equal(eth.type, ETHERTYPE_ARP);
    assert_false(eth.tagged);
    assert_int_equal(eth_header_len(&eth), ETH_LEN);
    eth_emit(&eth, out);
    assert_memory_equal(out, eth_untagged, ETH_LEN);
    ASSERT_TRUNCATIONS_REFUSED(eth_parse, &eth, eth_untagged, ETH_LEN);
}

static void test_eth_tagged_is_parsed_and_emitted(void **state)
{
    DIRTY(out, ETH_TAGGED_LEN);
    struct eth eth;

    (void)state;
    assert_true(eth_parse(&eth, eth_tagged, sizeof(eth_tagged)));
    assert_int_equal(eth.type, ETHERTYPE_ARP);
    assert_true(eth.tagged);
    assert_true(eth.dei);
    assert_int_equal(eth.priority, 5);
    assert_int_equal(eth.vlan, 0x123);
    assert_int_equal(eth_header_len(&eth), ETH_TAGGED_LEN);
    eth_emit(&eth, out);
    assert_memory_equal(out, eth_tagged, ETH_TAGGED_LEN);
    ASSERT_TRUNCATIONS_REFUSED(eth_parse, &eth, eth_tagged, ETH_TAGGED_LEN);
}

static void test_mac_addr_recognises_special_addresses(void **state)
{
    static const struct mac_addr broadcast = {
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    static const struct mac_addr zero;

    (void)state;
    assert_true(mac_addr_is_multicast(&broadcast));
    assert_false(mac_addr_is_multicast(&mac_a));
    assert_true(mac_addr_is_zero(&zero));
    assert_false(mac_addr_is_zero(&mac_a));
}
