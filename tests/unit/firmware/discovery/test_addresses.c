/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of addresses that hosts are told.  tests/native/test_addresses.c
 * asks the same of a whole drive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/discovery/addresses.h"
#include "firmware/hal/time.h"
#include "nvmeof/wire/discovery.h"
#include "tests/test_fixture.h"

enum { RDMA_PORT = 4420, IWARP_PORT = 4421, TCP_PORT = 4422 };

static struct log the_log;
static struct drive_net net;
static struct addresses addresses;

uint64_t hal_now_us(void)
{
    return 0;
}

/* Own address `local` is this one now. */
static void give_address(uint8_t local, struct ip_addr ip, uint8_t port,
                         uint16_t vlan)
{
    net.stack.addresses[local].config = (struct net_address_config){
        .ip = ip, .port = port, .vlan = vlan, .prefix_bits = 24};
    net.stack.addresses[local].state = ADDRESS_READY;
    net.stack.addresses[local].is_assigned = true;
    net.address_changes++;
}

static struct ip_addr link_local(void)
{
    return (struct ip_addr){{[0] = 0xfe, [1] = 0x80, [15] = 0x10}};
}

static int start_list(void **state)
{
    (void)state;
    log_init(&the_log, (struct log_sink){0});
    memset(&net, 0, sizeof(net));
    give_address(0, ip_addr_from_v4(0x0a00000a), 0, NET_VLAN_UNTAGGED);
    give_address(3, link_local(), 1, NET_VLAN_UNTAGGED);
    addresses_init(&addresses, &the_log, &net, RDMA_PORT);
    return 0;
}

TEST_FIXTURE(start_list, NULL)

static void expect_entry(uint8_t at, uint8_t trtype, const char *traddr,
                         const char *trsvcid)
{
    assert_true(at < addresses.count);
    assert_int_equal(addresses.list[at].trtype, trtype);
    assert_string_equal(addresses.list[at].traddr, traddr);
    assert_string_equal(addresses.list[at].trsvcid, trsvcid);
}

static void test_each_address_is_listed_for_roce(void **state)
{
    (void)state;
    assert_int_equal(addresses.count, 2);
    expect_entry(0, TRTYPE_RDMA, "10.0.0.10", "4420");
    assert_int_equal(addresses.list[0].adrfam, 1);
    assert_int_equal(addresses.list[0].portid, 1);
    assert_int_equal(addresses.list[0].tsas.rdma_prtype, RDMA_PRTYPE_ROCEV2);
    expect_entry(1, TRTYPE_RDMA, "fe80::10", "4420");
    assert_int_equal(addresses.list[1].adrfam, 2);
    assert_int_equal(addresses.list[1].portid, 2);
}

static void test_each_transport_has_entries_of_its_own(void **state)
{
    (void)state;
    addresses_add_iwarp(&addresses, IWARP_PORT, false);
    addresses_add_tcp(&addresses, TCP_PORT, ADDRESSES_TLS_OFF);
    assert_int_equal(addresses.count, 6);
    expect_entry(2, TRTYPE_RDMA, "10.0.0.10", "4421");
    assert_int_equal(addresses.list[2].tsas.rdma_prtype, RDMA_PRTYPE_IWARP);
    expect_entry(4, TRTYPE_TCP, "10.0.0.10", "4422");
    assert_int_equal(addresses.list[4].tsas.tcp_sectype, 0);
    assert_false(addresses.list[4].requires_tls);
    addresses_add_iwarp(&addresses, IWARP_PORT, true); /* RoCE is hidden */
    assert_int_equal(addresses.count, 4);
    expect_entry(0, TRTYPE_RDMA, "10.0.0.10", "4421");
}

static void test_entries_of_tcp_say_whether_tls_is_required(void **state)
{
    (void)state;
    addresses_add_tcp(&addresses, TCP_PORT, ADDRESSES_TLS_ALLOWED);
    assert_int_equal(addresses.list[2].tsas.tcp_sectype, TCP_SECTYPE_TLS13);
    assert_false(addresses.list[2].requires_tls);
    addresses_add_tcp(&addresses, TCP_PORT, ADDRESSES_TLS_REQUIRED);
    assert_int_equal(addresses.list[2].tsas.tcp_sectype, TCP_SECTYPE_TLS13);
    assert_true(addresses.list[2].requires_tls);
    assert_false(addresses.list[0].requires_tls); /* RoCE knows no TLS */
}

static void test_changes_are_seen_once(void **state)
{
    (void)state;
    assert_false(addresses_update(&addresses));
    give_address(5, ip_addr_from_v4(0x0a000105), 0, NET_VLAN_UNTAGGED);
    assert_true(addresses_update(&addresses));
    assert_int_equal(addresses.changed, BIT(5));
    assert_int_equal(addresses.count, 3);
    assert_false(addresses_update(&addresses));

    net.address_changes++; /* of something else */
    assert_false(addresses_update(&addresses));

    give_address(5, ip_addr_from_v4(0x0a000105), 1,
                 NET_VLAN_UNTAGGED); /* the port */
    assert_true(addresses_update(&addresses));
    assert_int_equal(addresses_portid(&addresses, 5), 2);
    give_address(5, ip_addr_from_v4(0x0a000105), 1, 100); /* and the VLAN */
    assert_true(addresses_update(&addresses));

    give_address(5, (struct ip_addr){0}, 0, NET_VLAN_UNTAGGED);
    assert_true(addresses_update(&addresses));
    assert_int_equal(addresses.count, 2);
    assert_int_equal(addresses_portid(&addresses, 5), 0);
}

static void test_an_address_that_is_still_probed_is_not_served(void **state)
{
    struct net_address *own = &net.stack.addresses[0];

    (void)state;
    own->is_assigned = false;
    own->state = ADDRESS_TENTATIVE;
    net.address_changes++;
    assert_true(addresses_update(&addresses));
    assert_int_equal(addresses_portid(&addresses, 0), 0);

    /* While the link is down, one that needs no probe is served through the
     * other port. */
    own->state = ADDRESS_DOWN;
    net.address_changes++;
    assert_true(addresses_update(&addresses));
    assert_int_equal(addresses_portid(&addresses, 0), 1);
    own->config.is_probed = true;
    net.address_changes++;
    assert_true(addresses_update(&addresses));
    assert_int_equal(addresses_portid(&addresses, 0), 0);
}

static void test_link_local_addresses_are_of_a_link_and_a_family(void **state)
{
    uint32_t untagged = addresses_link(&addresses, 3);
    uint32_t other_port, tagged, v4;
    uint16_t portid[NET_CONFIGURED];
    uint32_t link[NET_CONFIGURED];

    (void)state;
    assert_int_equal(addresses_link(&addresses, 0), 0);
    assert_int_not_equal(untagged, 0);
    give_address(4, link_local(), 0, NET_VLAN_UNTAGGED);
    give_address(5, link_local(), 1, 100);
    give_address(6, ip_addr_from_v4(0xa9fe0101), 1, NET_VLAN_UNTAGGED);
    assert_true(addresses_update(&addresses));
    other_port = addresses_link(&addresses, 4);
    tagged = addresses_link(&addresses, 5);
    v4 = addresses_link(&addresses, 6);
    assert_int_not_equal(other_port, untagged);
    assert_int_not_equal(tagged, untagged);
    assert_int_not_equal(v4, untagged);
    assert_int_not_equal(v4, 0);
    assert_int_not_equal(other_port, tagged);

    addresses_fill(&addresses, portid, link);
    for (uint8_t i = 0; i < NET_CONFIGURED; i++) {
        assert_int_equal(portid[i], addresses_portid(&addresses, i));
        assert_int_equal(link[i], addresses_link(&addresses, i));
    }
    assert_int_equal(portid[0], 1);
    assert_int_equal(portid[1], 0);
}
