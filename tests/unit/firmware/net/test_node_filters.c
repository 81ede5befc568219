/* SPDX-License-Identifier: BSD-2-Clause */
/* VLANs and multicast groups of the ports, with a real network stack. */
#include "fake_port.h"

#include "firmware/net/node_filters.h"
#include "firmware/net/node_paths.h"

static struct {
    struct net_stack stack;
    struct separate_ports separate;
    struct node_ports ports;
    struct node_filters filters;
} world;

static uint8_t *no_buffer(void *ctx, uint8_t port)
{
    (void)ctx;
    (void)port;
    return NULL;
}

static void no_commit(void *ctx, uint8_t port, size_t len, uint8_t priority)
{
    (void)ctx;
    (void)port;
    (void)len;
    (void)priority;
}

/* Both physical ports belong to the stack's port 0, as with aggregation. */
static uint8_t aggregate_port(uint8_t port)
{
    (void)port;
    return 0;
}

static const struct attachment_ops aggregate = {.stack_port = aggregate_port};

static void start_filters(bool is_aggregate)
{
    const struct net_stack_config config = {
        .ports = {{.mac = {{2, 0, 0, 0, 0, 1}}, .mtu_bytes = 1500},
                  {.mac = {{2, 0, 0, 0, 0, 2}}, .mtu_bytes = 1500}},
        .addresses = {{.ip = ip_addr_from_v4(0x0a000001),
                       .vlan = 5,
                       .prefix_bits = 24}},
        .random_seed = 1,
        .tx_begin = no_buffer,
        .tx_commit = no_commit,
    };

    memset(&world, 0, sizeof(world));
    fake_ports_reset();
    net_stack_init(&world.stack, &config);
    world.ports.attachment =
        is_aggregate ? (struct attachment){&aggregate, NULL}
                     : separate_ports_init(&world.separate, &world.stack);
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        world.ports.port[i].port.regs = FAKE_REGS + i;
    }
    node_filters_init(&world.filters, &world.ports, &world.stack);
}

static void test_port_is_in_its_own_vlan_even_without_an_address(void **state)
{
    (void)state;
    start_filters(false);
    node_filters_set_base_vlan(&world.filters, 1, 9);
    assert_true(fake_ports[1].vlan[9]);
    assert_false(fake_ports[0].vlan[9]);
    node_filters_set_base_vlan(&world.filters, 1, 0);
    assert_false(fake_ports[1].vlan[9]);
}

static void test_port_is_in_the_vlan_of_an_address_while_it_has_it(void **state)
{
    (void)state;
    start_filters(false);
    node_filters_update_vlan(&world.filters, 0, 5);
    assert_true(fake_ports[0].vlan[5]);
    assert_false(fake_ports[1].vlan[5]);
    net_stack_address_remove(&world.stack, 0);
    node_filters_update_vlan(&world.filters, 0, 5);
    assert_false(fake_ports[0].vlan[5]);
}

static void test_port_stays_in_a_vlan_that_an_address_still_uses(void **state)
{
    (void)state;
    start_filters(false);
    node_filters_set_base_vlan(&world.filters, 0, 5);
    node_filters_set_base_vlan(&world.filters, 0, 6);
    assert_true(fake_ports[0].vlan[5]);
    assert_true(fake_ports[0].vlan[6]);
}

/* The address belongs to the aggregate, whichever port's settings change. */
static void test_aggregate_stays_in_a_vlan_that_an_address_still_uses(
    void **state)
{
    (void)state;
    start_filters(true);
    node_filters_update_vlan(&world.filters, 0, 5);
    node_filters_set_base_vlan(&world.filters, 1, 5);
    node_filters_set_base_vlan(&world.filters, 1, 0);
    assert_true(fake_ports[0].vlan[5]);
    assert_true(fake_ports[1].vlan[5]);
}

static void test_aggregate_is_in_the_vlans_of_both_ports_settings(void **state)
{
    (void)state;
    start_filters(true);
    node_filters_set_base_vlan(&world.filters, 0, 7);
    node_filters_set_base_vlan(&world.filters, 1, 8);
    for (unsigned int i = 0; i < NET_PORTS; i++) {
        assert_true(fake_ports[i].vlan[7]);
        assert_true(fake_ports[i].vlan[8]);
    }
}

static void test_untagged_frames_need_no_vlan(void **state)
{
    (void)state;
    start_filters(false);
    node_filters_update_vlan(&world.filters, 0, 0);
    node_filters_update_vlan(&world.filters, 0, NET_VLAN_UNTAGGED);
    for (unsigned int vlan = 0; vlan < 4096; vlan++) {
        assert_false(fake_ports[0].vlan[vlan]);
    }
}

static unsigned int groups_of(unsigned int port)
{
    static const uint8_t none[6];
    unsigned int count = 0;

    for (unsigned int i = 0; i < NET_MULTICAST; i++) {
        count += memcmp(fake_ports[port].groups[i], none, 6) != 0;
    }
    return count;
}

static void test_groups_follow_the_addresses_of_the_port(void **state)
{
    const struct net_address_config address = {
        .ip = {{0xfd, [15] = 0x42}},
        .vlan = NET_VLAN_UNTAGGED,
        .port = 1,
        .prefix_bits = 64,
    };
    const uint8_t group[6] = {0x33, 0x33, 0xff, 0, 0, 0x42};
    unsigned int before[NET_PORTS];
    bool has_group = false;

    (void)state;
    start_filters(false);
    node_filters_update_groups(&world.filters);
    before[0] = groups_of(0);
    before[1] = groups_of(1);
    assert_in_range(net_stack_address_add(&world.stack, &address, 0), 0,
                    NET_ADDRESSES);
    node_filters_update_groups(&world.filters);
    assert_int_equal(groups_of(0), before[0]);
    assert_true(groups_of(1) > before[1]);
    for (unsigned int i = 0; i < NET_MULTICAST; i++) {
        has_group |= memcmp(fake_ports[1].groups[i], group, 6) == 0;
    }
    assert_true(has_group);
}

static void test_aggregate_has_the_same_groups_on_both_ports(void **state)
{
    (void)state;
    start_filters(true);
    node_filters_update_groups(&world.filters);
    assert_memory_equal(fake_ports[0].groups, fake_ports[1].groups,
                        sizeof(fake_ports[0].groups));
}

static void test_path_mtu_leaves_room_for_the_headers(void **state)
{
    static const struct {
        uint32_t mtu_bytes;
        uint8_t code;
    } rows[] = {
        {576, IB_MTU_256},   {607, IB_MTU_256},   {608, IB_MTU_512},
        {1119, IB_MTU_512},  {1120, IB_MTU_1024}, {1500, IB_MTU_1024},
        {2144, IB_MTU_2048}, {4191, IB_MTU_2048}, {4192, IB_MTU_4096},
        {9000, IB_MTU_4096}, {68, IB_MTU_256},
    };

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(node_paths_mtu(rows[i].mtu_bytes), rows[i].code);
    }
}
