/* SPDX-License-Identifier: BSD-2-Clause */
/* The drive's 8 addresses of the data sheet: NVMe-oF works at each of them. */
#include "bed_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "firmware/text/ip_text.h"
#include "firmware/hal/time.h"
#include "lib/bytes.h"
#include "net/wire/dhcp.h"
#include "net/wire/ipv4.h"
#include "net/wire/udp.h"
#include "nvmeof/wire/discovery.h"
#include "nvmeof/wire/opcode.h"
#include "tests/test_fixture.h"

enum { GIVEN = 4, V4_PREFIX = 24, V6_PREFIX = 64 };

static struct net_stack *drive_stack(void)
{
    return &bed.drive->drive.net.stack;
}

/* Add an address like address `like`, but with `number` in its last byte but
 * one. */
static int add_address(uint8_t like, uint8_t number)
{
    struct net_address_config own = *net_stack_address(drive_stack(), like);

    own.ip.bytes[15] = (uint8_t)(own.ip.bytes[15] + 100 + number);
    return net_stack_address_add(drive_stack(), &own, hal_now_us());
}

static bool is_known(void *ctx)
{
    const uint16_t *index = ctx;
    struct neigh_info info;

    return net_neigh_info(&bed.host->net.stack, *index, &info);
}

/* The target at that address, reached from the host's address on the same port
 * and of the same family. */
static struct host_target target_at(uint8_t index)
{
    const struct net_address_config *own =
        net_stack_address(drive_stack(), index);
    uint8_t local = (uint8_t)(own->port + (ip_addr_is_v4(&own->ip) ? 0 : 2));
    struct host_target target;
    uint16_t neigh;

    assert_true(native_target(bed.host, bed.drive, local, &target));
    assert_in_range(net_neigh_resolve(&bed.host->net.stack, local, &own->ip,
                                      hal_now_us(), &neigh),
                    NEIGH_READY, NEIGH_PENDING);
    /* An ARP request or solicitation is to be sent. */
    bed.host->sleep.is_asleep = false;
    assert_true(
        native_world_run(&bed.world, is_known, &neigh, UINT64_C(5000000000)));
    target.path.neigh = neigh;
    target.peer_ip = own->ip;
    target.io_queues = 1;
    target.depth = 16;
    return target;
}

static void fill_up(void)
{
    for (uint8_t i = GIVEN; i < NET_CONFIGURED; i++) {
        assert_int_equal(add_address(i - GIVEN, i), i);
    }
    /* Duplicate address detection. */
    native_world_pass(&bed.world, UINT64_C(5000000000));
    for (uint8_t i = 0; i < NET_CONFIGURED; i++) {
        assert_true(net_stack_is_assigned(drive_stack(), i));
    }
}

static void test_nvme_of_works_at_each_of_8_addresses(void **state)
{
    (void)state;
    fill_up();
    for (uint8_t i = 0; i < NET_CONFIGURED; i++) {
        struct host_target target = target_at(i);

        assert_int_equal(host_connect(&bed.host->host, &target), 0);
        assert_int_equal(
            bed_write(&bed, 1, i * 64, 64, HOST_DATA_KEYED, false, i), 0);
        bed_expect(&bed, 1, i * 64, 64, HOST_DATA_KEYED, i);
        host_disconnect(&bed.host->host);
    }
    bed_expect_idle(&bed);
}

static void test_nvme_of_works_at_all_8_addresses_at_once(void **state)
{
    struct nvme_host *hosts = calloc(NET_CONFIGURED, sizeof(*hosts));

    (void)state;
    assert_non_null(hosts);
    fill_up();
    for (uint8_t i = 0; i < NET_CONFIGURED; i++) {
        struct host_target target = target_at(i);

        native_host_add(bed.host, &hosts[i], 1);
        assert_int_equal(host_connect(&hosts[i], &target), 0);
    }
    for (uint8_t i = 0; i < NET_CONFIGURED; i++) {
        assert_int_equal(host_keep_alive(&hosts[i]), 0);
    }
    for (uint8_t i = 0; i < NET_CONFIGURED; i++) {
        host_disconnect(&hosts[i]);
    }
    bed_expect_idle(&bed);
    free(hosts);
}

/* The ninth address is refused and counted; removing one makes room for it. */
static void test_a_ninth_address_is_refused(void **state)
{
    struct host_target target;

    (void)state;
    fill_up();
    assert_int_equal(add_address(0, 20), -1);
    assert_int_equal(add_address(3, 20), -1);
    assert_int_equal(net_stack_counter(drive_stack(), 0, NET_ADDRESS_REFUSED),
                     1);
    assert_int_equal(net_stack_counter(drive_stack(), 1, NET_ADDRESS_REFUSED),
                     1);
    target = target_at(7);
    assert_int_equal(host_connect(&bed.host->host, &target), 0);
    host_disconnect(&bed.host->host);

    net_stack_address_remove(drive_stack(), 5);
    assert_int_equal(add_address(0, 20), 5);
    target = target_at(5);
    assert_int_equal(host_connect(&bed.host->host, &target), 0);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
}

/* Read the generation counter, and whether the log page lists `traddr`. */
static uint64_t read_discovery(struct nvme_host *host, const char *traddr,
                               bool *is_listed)
{
    uint8_t header[DISCOVERY_HEADER_LEN], entry[DISCOVERY_ENTRY_LEN];
    uint64_t count;

    assert_int_equal(
        host_get_log(host, LOG_DISCOVERY, 0, header, sizeof(header)), 0);
    count = get_le64(header + DISCOVERY_NUMREC);
    *is_listed = false;
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(
            host_get_log(host, LOG_DISCOVERY,
                         DISCOVERY_HEADER_LEN + i * DISCOVERY_ENTRY_LEN, entry,
                         sizeof(entry)),
            0);
        *is_listed |=
            strcmp((const char *)entry + DISCOVERY_TRADDR, traddr) == 0;
    }
    return get_le64(header + DISCOVERY_GENCTR);
}

/* Link-local addresses are for hosts that come in through them. */
static void test_the_discovery_log_has_no_link_local_address_for_others(
    void **state)
{
    static const char *const texts[] = {"fe80::10", "169.254.7.7"};
    static struct nvme_host discovery;
    struct host_target target;
    bool is_listed;

    (void)state;
    assert_true(native_target(bed.host, bed.drive, 1, &target));
    strcpy(target.subnqn, NVME_DISCOVERY_NQN);
    target.io_queues = 0;
    native_host_add(bed.host, &discovery, 0);
    assert_int_equal(host_connect(&discovery, &target), 0);
    for (unsigned int i = 0; i < ARRAY_LEN(texts); i++) {
        struct net_address_config own = {.vlan = NET_VLAN_UNTAGGED,
                                         .port = 1,
                                         .prefix_bits = i == 0 ? 64 : 16};
        int index;

        own.ip = i == 0 ? (struct ip_addr){{0xfe, 0x80, [15] = 0x10}}
                        : ip_addr_from_v4(0xa9fe0707);
        index = net_stack_address_add(drive_stack(), &own, hal_now_us());
        assert_in_range(index, 0, NET_CONFIGURED - 1);
        native_drive_wake(bed.drive);
        native_world_pass(&bed.world, UINT64_C(5000000000));
        assert_true(net_stack_is_usable(drive_stack(), (uint8_t)index));
        assert_int_not_equal(
            addresses_link(&bed.drive->drive.addresses, (uint8_t)index), 0);
        (void)read_discovery(&discovery, texts[i], &is_listed);
        assert_false(is_listed);
        (void)read_discovery(&discovery, "10.0.0.1", &is_listed);
        assert_true(is_listed);
        net_stack_address_remove(drive_stack(), (uint8_t)index);
        native_drive_wake(bed.drive);
        native_world_pass(&bed.world, 1000000);
    }
    host_disconnect(&discovery);
}

static uint32_t drive_qpairs(void)
{
    struct rdma_usage usage;

    rdma_transport_usage(bed.drive->drive.rdma, &usage);
    return usage.qpairs;
}

/* An address is removed and added again: the discovery log follows, connections
 * to it end, and other connections do not. */
static void test_the_discovery_log_follows_changes_of_addresses(void **state)
{
    static struct nvme_host discovery;
    struct net_address_config own;
    struct host_target target;
    uint64_t genctr;
    bool is_listed;

    (void)state;
    assert_true(native_target(bed.host, bed.drive, 1, &target));
    strcpy(target.subnqn, NVME_DISCOVERY_NQN);
    target.io_queues = 0;
    native_host_add(bed.host, &discovery, 0);
    assert_int_equal(host_connect(&discovery, &target), 0);
    bed_connect(&bed, 0, 1, 16);
    assert_int_equal(drive_qpairs(), 3);
    genctr = read_discovery(&discovery, "10.0.0.1", &is_listed);
    assert_true(is_listed);

    own = *net_stack_address(drive_stack(), 0);
    net_stack_address_remove(drive_stack(), 0);
    native_drive_wake(bed.drive);
    native_world_pass(&bed.world, 1000000);
    assert_int_equal(drive_qpairs(), 1);
    assert_int_equal(read_discovery(&discovery, "10.0.0.1", &is_listed),
                     genctr + 1);
    assert_false(is_listed);

    assert_int_equal(net_stack_address_add(drive_stack(), &own, hal_now_us()),
                     0);
    native_drive_wake(bed.drive);
    native_world_pass(&bed.world, 1000000);
    assert_int_equal(read_discovery(&discovery, "10.0.0.1", &is_listed),
                     genctr + 2);
    assert_true(is_listed);
    host_disconnect(&bed.host->host);
    bed_connect(&bed, 0, 1, 16);
    host_disconnect(&bed.host->host);
    host_disconnect(&discovery);
    bed_expect_idle(&bed);
}

/*
 * The same IP address in another VLAN is another address: its connections end.
 */
static void test_an_address_that_changes_its_vlan_ends_connections(void **state)
{
    struct net_address_config own = *net_stack_address(drive_stack(), 0);

    (void)state;
    bed_provokes(&bed, BIT(RNIC_COUNT_RX_ADDRESS));
    bed_connect(&bed, 0, 1, 16);
    assert_int_equal(drive_qpairs(), 2);
    own.vlan = 5;
    net_stack_address_remove(drive_stack(), 0);
    assert_int_equal(net_stack_address_add(drive_stack(), &own, hal_now_us()),
                     0);
    native_drive_wake(bed.drive);
    native_world_pass(&bed.world, 1000000);
    assert_int_equal(drive_qpairs(), 0);
}

/* A host that is cut off does not send its DREP: all the same the drive keeps
 * nothing of its queues, and their address can be removed and added again. */
static void test_an_address_can_be_removed_while_a_drep_is_missing(void **state)
{
    struct net_address_config own = *net_stack_address(drive_stack(), 0);
    struct host_target target;

    (void)state;
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.io_queues = 2;
    target.depth = 16;
    target.kato_ms = 1000;
    assert_int_equal(host_connect(&bed.host->host, &target), 0);
    bed.cables[0].is_cut = true;
    native_world_pass(&bed.world, UINT64_C(5000000000));
    assert_int_equal(drive_qpairs(), 0);
    net_stack_address_remove(drive_stack(), 0);
    native_drive_wake(bed.drive);
    native_world_pass(&bed.world, UINT64_C(1000000000));
    assert_int_equal(net_stack_address_add(drive_stack(), &own, hal_now_us()),
                     0);
    native_drive_wake(bed.drive);
    native_world_pass(&bed.world, UINT64_C(600000000000)); /* All retries. */
    bed.cables[0].is_cut = false;
    host_disconnect(&bed.host->host);
    bed_connect(&bed, 0, 1, 16);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
}

/* ---- No DHCP server: port 0 falls back to 169.254/16. */

static int setup_dhcp(void **state)
{
    const struct bed like = {.mtu_bytes = 1500, .has_dhcp = true};

    (void)state;
    bed_init_like(&bed, &like);
    return 0;
}

static const struct ipv4ll *link_local_of_port(void)
{
    return &bed.drive->drive.services.dhcp.ports[0].fallback;
}

static void wait_for_fallback(void)
{
    for (unsigned int i = 0; i < 600 && link_local_of_port()->local < 0; i++) {
        native_world_pass(&bed.world, UINT64_C(100000000));
    }
    assert_in_range(link_local_of_port()->local, 0, NET_CONFIGURED - 1);
}

/* Probing takes at most 7 s, and nothing else wakes the drive so often. */
WITH_FIXTURE(setup_dhcp, teardown)
static void test_a_sleeping_drive_takes_its_fallback_address_in_time(
    void **state)
{
    (void)state;
    wait_for_fallback();
    native_world_pass(&bed.world, UINT64_C(8000000000));
    assert_true(net_stack_is_usable(drive_stack(),
                                    (uint8_t)link_local_of_port()->local));
}

/* The configuration names an address that is in use already, and then removes
 * it. */
WITH_FIXTURE(setup_dhcp, teardown)
static void test_the_configuration_removes_its_own_addresses_only(void **state)
{
    struct ip_addr ip;
    char line[80];

    (void)state;
    wait_for_fallback();
    native_world_pass(&bed.world, UINT64_C(20000000000));
    ip = net_stack_address(drive_stack(), (uint8_t)link_local_of_port()->local)
             ->ip;
    snprintf(line, sizeof(line), "config set address.0.ip %s/16\r",
             ip_text(&ip).text);
    type_line(line);
    type_line("config save\r");
    assert_int_equal(bed.drive->saves, 1);
    type_line("config set address.0.ip none\r");
    type_line("config save\r");
    assert_int_equal(bed.drive->saves, 2);
    assert_true(net_stack_is_usable(drive_stack(),
                                    (uint8_t)link_local_of_port()->local));
    type_line("shutdown\r"); /* The drive releases its lease. */
    assert_int_equal(link_local_of_port()->local, -1);
    assert_int_equal(net_stack_local(drive_stack(), 0, NET_VLAN_UNTAGGED, &ip),
                     -1);
}

/* ---- With a DHCP server. */

enum { DHCP_AT = ETH_LEN + IPV4_LEN + UDP_LEN, HOST_END = 1 };

static const struct ip_addr lease_ip = {{[10] = 0xff, 0xff, 10, 77, 0, 5}};
static const struct ip_addr lease_ntp = {{[10] = 0xff, 0xff, 10, 77, 0, 9}};

static struct services *drive_services(void)
{
    return &bed.drive->drive.services;
}

static void send_dhcp(enum dhcp_type type, uint32_t lease_s)
{
    const struct ip_addr server = ip_addr_from_v4(0x0a4d0001);
    struct frame_sink sink = cable_sink(&bed.cables[0], HOST_END);
    struct dhcp dhcp = {
        .type = (uint8_t)type,
        .is_reply = true,
        .xid = drive_services()->dhcp.ports[0].xid,
        .ciaddr = ip_addr_from_v4(0),
        .yiaddr = lease_ip,
        .server = server,
        .ntp_server = lease_ntp,
        .lease_s = lease_s,
        .has_mask = true,
        .prefix_bits = 24,
    };
    uint8_t frame[DHCP_AT + 576];
    struct frame_tx tx = {.num_pieces = 1, .pieces = {{frame, 0}}};
    size_t len;

    memcpy(dhcp.chaddr.bytes, bed.drive->identity.mac[0], 6);
    len = dhcp_emit(&dhcp, frame + DHCP_AT, 576);
    assert_int_not_equal(len, 0);
    eth_emit(&(struct eth){.dst = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
                           .src = {{0x52, 0x54, 0, 0, 0, 1}},
                           .type = ETHERTYPE_IPV4},
             frame);
    ipv4_emit(
        &(struct ipv4){.src = server,
                       .dst = ip_addr_from_v4(0xffffffff),
                       .total_len_bytes = (uint16_t)(IPV4_LEN + UDP_LEN + len),
                       .ttl = 64,
                       .protocol = IP_PROTOCOL_UDP},
        frame + ETH_LEN);
    udp_emit(&(struct udp){.src_port = DHCP_SERVER_PORT,
                           .dst_port = DHCP_CLIENT_PORT,
                           .length_bytes = (uint16_t)(UDP_LEN + len)},
             frame + ETH_LEN + IPV4_LEN);
    tx.pieces[0].len_bytes = (uint32_t)(DHCP_AT + len);
    assert_int_equal(sink.send(sink.ctx, &tx, 1), 1);
    native_world_pass(&bed.world, UINT64_C(1000000));
}

static void wait_for_state(enum dhcp_state state)
{
    for (unsigned int i = 0;
         i < 6000 && drive_services()->dhcp.ports[0].state != state; i++) {
        native_world_pass(&bed.world, UINT64_C(100000000));
    }
    assert_int_equal(drive_services()->dhcp.ports[0].state, state);
}

static void lease_address(uint32_t lease_s)
{
    wait_for_state(DHCP_SELECTING);
    send_dhcp(DHCP_OFFER, lease_s);
    wait_for_state(DHCP_REQUESTING);
    send_dhcp(DHCP_ACK, lease_s);
    wait_for_state(DHCP_BOUND);
}

static unsigned int times_said(const char *what)
{
    const char *said = machine_console(&bed.drive->machine);
    unsigned int n = 0;

    while ((said = strstr(said, what)) != NULL) {
        said++;
        n++;
    }
    return n;
}

static bool serves_lease(void)
{
    int local = net_stack_local(drive_stack(), 0, NET_VLAN_UNTAGGED, &lease_ip);

    return local >= 0 && net_stack_is_usable(drive_stack(), (uint8_t)local);
}

/* NVMe-oF works at the leased address, and the lease's server gives the time,
 * until the lease ends. */
WITH_FIXTURE(setup_dhcp, teardown)
static void test_a_lease_is_used_until_it_ends(void **state)
{
    (void)state;
    lease_address(600);
    assert_int_equal(times_said("dhcp: port 0: 10.77.0.5/24 for 600 s"), 1);
    assert_true(serves_lease());
    assert_true(
        ip_addr_equal(&drive_services()->sntp.config.server, &lease_ntp));
    /* Renewing succeeds, although the server's MAC address is unknown; the log
     * says nothing. */
    wait_for_state(DHCP_REBINDING);
    send_dhcp(DHCP_ACK, 600);
    wait_for_state(DHCP_BOUND);
    assert_int_equal(times_said("dhcp: port 0: "), 1);
    assert_true(serves_lease());
    /* From here on the server is silent. */
    native_world_pass(&bed.world, UINT64_C(601000000000));
    assert_int_equal(times_said("dhcp: port 0: the lease has ended"), 1);
    assert_false(serves_lease());
    assert_true(ip_addr_is_unspecified(&drive_services()->sntp.config.server));
}

WITH_FIXTURE(setup_dhcp, teardown)
static void test_an_infinite_lease_keeps_the_configured_sntp_server(
    void **state)
{
    const struct ip_addr own = ip_addr_from_v4(0x0a000109);

    (void)state;
    type_line("config set sntp.server 10.0.1.9\r");
    type_line("config save\r");
    assert_int_equal(bed.drive->saves, 1);
    lease_address(DHCP_FOREVER);
    assert_int_equal(times_said("dhcp: port 0: 10.77.0.5/24 for ever"), 1);
    assert_true(ip_addr_equal(&drive_services()->sntp.config.server, &own));
    native_world_pass(&bed.world, UINT64_C(4000000000000));
    assert_true(serves_lease());
    type_line("shutdown\r");
    assert_false(serves_lease());
}

TEST_FIXTURE(setup, teardown)
