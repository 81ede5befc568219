/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the configuration, links and leases make of LLDP, SNTP, DHCP and
 * multicast DNS.  The test plays these agents, which have tests of their own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/hal/time.h"
#include "firmware/services/services.h"
#include "firmware/store/config.h"
#include "firmware/store/identity.h"
#include "firmware/text/neighbour_text.h"
#include "tests/test_fixture.h"

enum { START_US = 5000 };

#define NTP    0x0a000009
#define LEASED 0x0a000064

static struct {
    struct log log;
    struct drive_net net;
    struct services services;
    struct config config;
    struct identity identity;

    struct lldp_config lldp;
    struct sntp_config sntp;
    struct dhcp_client_config dhcp;
    struct mdns_config mdns;
    struct lldp_port_config lldp_ports[NET_PORTS];
    struct ip_addr server; /* of SNTP, as it was set last */
    bool is_port_up[NET_PORTS], is_net_up[NET_PORTS];
    bool mdns_is_on, mdns_has_new_name, mdns_has_no_room;
    uint16_t mdns_vlan[NET_PORTS];
    uint64_t due_us[6]; /* of DHCP, LLDP, its log, SNTP, mDNS, the stack */
    uint64_t held_back_us, epoch_ms;
    unsigned int lldp_lines, servers, changes, groups, links, dhcp_links,
        mdns_links, sntp_links, stops;
} world;

uint64_t hal_now_us(void)
{
    return 0;
}

/* ---- The agents. */

bool lldp_init(struct lldp_agent *agent, const struct lldp_config *config)
{
    (void)agent;
    world.lldp = *config;
    memcpy(world.lldp_ports, config->ports, sizeof(world.lldp_ports));
    return true;
}

void lldp_set(struct lldp_agent *agent,
              const struct lldp_port_config ports[NET_PORTS],
              uint16_t interval_s, uint8_t hold, uint64_t now_us)
{
    (void)agent;
    (void)now_us;
    memcpy(world.lldp_ports, ports, sizeof(world.lldp_ports));
    world.lldp.interval_s = interval_s;
    world.lldp.hold = hold;
}

void lldp_changed(struct lldp_agent *agent, uint64_t now_us)
{
    (void)agent;
    (void)now_us;
    world.changes++;
}

void lldp_link(struct lldp_agent *agent, uint8_t port, bool is_up,
               uint32_t speed_mbps, uint64_t now_us)
{
    (void)agent;
    (void)now_us;
    assert_int_equal(is_up, world.is_port_up[port]);
    assert_int_equal(speed_mbps, 25000);
    world.links++;
}

uint64_t lldp_timer(struct lldp_agent *agent, uint64_t now_us)
{
    (void)agent;
    (void)now_us;
    return world.due_us[1];
}

void lldp_stop(struct lldp_agent *agent, uint8_t port)
{
    (void)agent;
    world.stops += port < NET_PORTS;
}

void lldp_log_init(struct lldp_log *lldp_log, struct log *log)
{
    (void)lldp_log;
    assert_ptr_equal(log, &world.log);
}

uint64_t lldp_log_timer(struct lldp_log *lldp_log, uint64_t now_us)
{
    (void)lldp_log;
    (void)now_us;
    return world.due_us[2];
}

void lldp_log_change(struct lldp_log *lldp_log, uint8_t port,
                     enum lldp_event event, const struct lldp *lldp,
                     uint64_t now_us)
{
    (void)lldp_log;
    (void)event;
    (void)lldp;
    assert_int_equal(port, 1);
    assert_int_equal(now_us, START_US);
    world.lldp_lines++;
}

struct neighbour_text neighbour_text(const struct lldp_text *text)
{
    struct neighbour_text printed = {{0}};

    memcpy(printed.text, text->bytes, text->len_bytes);
    return printed;
}

bool sntp_init(struct sntp_client *client, const struct sntp_config *config,
               uint64_t now_us)
{
    (void)client;
    (void)now_us;
    world.sntp = *config;
    return true;
}

void sntp_set_server(struct sntp_client *client, const struct ip_addr *server,
                     uint64_t now_us)
{
    (void)client;
    (void)now_us;
    world.server = *server;
    world.servers++;
}

void sntp_set_poll(struct sntp_client *client, uint16_t poll_s, uint64_t now_us)
{
    (void)client;
    (void)now_us;
    world.sntp.poll_s = poll_s;
}

void sntp_link_up(struct sntp_client *client, uint64_t now_us)
{
    (void)client;
    (void)now_us;
    world.sntp_links++;
}

uint64_t sntp_timer(struct sntp_client *client, uint64_t now_us)
{
    (void)client;
    (void)now_us;
    return world.due_us[3];
}

bool dhcp_client_init(struct dhcp_client *client,
                      const struct dhcp_client_config *config)
{
    (void)client;
    world.dhcp = *config;
    return true;
}

void dhcp_client_link(struct dhcp_client *client, uint8_t port, bool is_up,
                      uint64_t now_us)
{
    (void)client;
    (void)now_us;
    assert_int_equal(is_up, world.is_net_up[port]);
    world.dhcp_links++;
}

uint64_t dhcp_client_timer(struct dhcp_client *client, uint64_t now_us)
{
    (void)client;
    (void)now_us;
    return world.due_us[0];
}

void dhcp_client_held_back(struct dhcp_client *client, uint64_t us)
{
    (void)client;
    world.held_back_us += us;
}

void dhcp_client_stop(struct dhcp_client *client, uint64_t now_us)
{
    (void)client;
    (void)now_us;
    world.stops++;
}

bool mdns_init(struct mdns_agent *agent, const struct mdns_config *config,
               uint64_t now_us)
{
    (void)agent;
    (void)now_us;
    world.mdns = *config;
    return true;
}

bool mdns_set(struct mdns_agent *agent, bool is_on, bool is_new_name,
              const uint16_t vlan[NET_PORTS], uint64_t now_us)
{
    (void)agent;
    (void)now_us;
    world.mdns_is_on = is_on;
    world.mdns_has_new_name = is_new_name;
    memcpy(world.mdns_vlan, vlan, sizeof(world.mdns_vlan));
    return !world.mdns_has_no_room;
}

void mdns_link(struct mdns_agent *agent, uint8_t port, bool is_up,
               uint64_t now_us)
{
    (void)agent;
    (void)now_us;
    assert_int_equal(is_up, world.is_net_up[port]);
    world.mdns_links++;
}

uint64_t mdns_timer(struct mdns_agent *agent, uint64_t now_us)
{
    (void)agent;
    (void)now_us;
    return world.due_us[4];
}

void mdns_stop(struct mdns_agent *agent, uint64_t now_us)
{
    (void)agent;
    (void)now_us;
    world.stops++;
}

/* ---- Ports, network and target. */

void port_link_get(const struct port *port, struct port_link *link)
{
    (void)port;
    *link = (struct port_link){.speed_mbps = 25000};
}

void drive_net_set_groups(struct drive_net *net)
{
    assert_ptr_equal(net, &world.net);
    world.groups++;
}

bool drive_net_is_up(const struct drive_net *net, uint8_t port)
{
    (void)net;
    return world.is_net_up[port];
}

void drive_net_settle(struct drive_net *net)
{
    (void)net;
}

uint64_t net_stack_timer(struct net_stack *stack, uint64_t now_us)
{
    assert_ptr_equal(stack, &world.net.stack);
    (void)now_us;
    return world.due_us[5];
}

void nvmf_target_set_time(struct nvmf_target *target, uint64_t epoch_ms,
                          uint64_t now_us)
{
    (void)target;
    (void)now_us;
    world.epoch_ms = epoch_ms;
}

/* ---- Beds. */

static void start_services(void)
{
    const struct services_config config = {
        .log = &world.log,
        .net = &world.net,
        .identity = &world.identity,
        .config = &world.config,
        .version = "1.2.3",
        .discovery_nqn = "nqn.2014-08.org.example:discovery",
        .discovery_port = 4420,
        .random_seed = 0x1234,
    };

    services_init(&world.services, &config, START_US);
}

static int new_world(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    log_init(&world.log, (struct log_sink){0});
    config_default(&world.config);
    strcpy(world.identity.serial, "SN7");
    strcpy(world.identity.model, "Model");
    memcpy(world.identity.mac[0], "\x02\x00\x00\x00\x00\x07", 6);
    for (unsigned int i = 0; i < ARRAY_LEN(world.due_us); i++) {
        world.due_us[i] = UINT64_MAX;
    }
    start_services();
    return 0;
}

TEST_FIXTURE(new_world, NULL)

/* How often the log has this text. */
static unsigned int count_lines(const char *text)
{
    static char shown[LOG_RING_BYTES + 1];
    unsigned int count = 0;

    shown[log_tail(&world.log, shown, LOG_RING_BYTES)] = '\0';
    for (const char *at = shown; (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    return count;
}

static void take_step(void)
{
    (void)services_step(&world.services, START_US, 0);
}

static void give_lease(uint8_t port, uint32_t ip, uint32_t lease_s,
                       uint32_t ntp_server)
{
    const struct dhcp_lease lease = {
        .ip = ip_addr_from_v4(ip),
        .ntp_server = ntp_server != 0 ? ip_addr_from_v4(ntp_server)
                                      : (struct ip_addr){{0}},
        .lease_s = lease_s,
        .prefix_bits = 24,
    };

    world.dhcp.leased(world.dhcp.ctx, port, &lease);
}

/* ---- Names. */

static void test_a_drive_without_a_name_has_one_of_its_serial_number(
    void **state)
{
    (void)state;
    assert_string_equal(world.lldp.system_name, "essd-SN7");
    assert_string_equal(world.lldp.system_description,
                        "Model, firmware 1.2.3, serial SN7");
    assert_string_equal(world.dhcp.host_name, "essd-SN7");
    assert_string_equal(world.mdns.name, "essd-SN7");
    assert_string_equal(world.mdns.nqn, "nqn.2014-08.org.example:discovery");
    assert_int_equal(world.mdns.service_port, 4420);
    assert_memory_equal(world.lldp.chassis.bytes, world.identity.mac[0], 6);
}

static void test_a_new_name_is_passed_on_and_the_same_one_is_not(void **state)
{
    (void)state;
    strcpy(world.config.services.name, "shelf");
    services_apply(&world.services, &world.config, START_US);
    assert_string_equal(world.lldp.system_name, "shelf");
    assert_int_equal(world.changes, 1);
    assert_true(world.mdns_has_new_name);
    services_apply(&world.services, &world.config, START_US);
    assert_int_equal(world.changes, 1);
    assert_false(world.mdns_has_new_name);
    world.config.services.name[0] = '\0';
    services_apply(&world.services, &world.config, START_US);
    assert_string_equal(world.lldp.system_name, "essd-SN7");
    assert_int_equal(world.changes, 2);
}

/* ---- LLDP and multicast DNS. */

static void test_lldp_sends_and_receives_what_the_configuration_says(
    void **state)
{
    static const struct {
        enum config_lldp setting;
        bool sends, receives;
    } rows[] = {
        {CONFIG_LLDP_BOTH, true, true},
        {CONFIG_LLDP_OFF, false, false},
        {CONFIG_LLDP_SEND, true, false},
        {CONFIG_LLDP_RECEIVE, false, true},
    };

    (void)state;
    assert_true(world.lldp_ports[1].sends && world.lldp_ports[1].receives);
    for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
        world.config.services.lldp[1] = rows[i].setting;
        world.config.services.lldp_interval_s = (uint16_t)(40 + i);
        world.config.services.lldp_hold = (uint8_t)(5 + i);
        services_apply(&world.services, &world.config, START_US);
        assert_int_equal(world.lldp_ports[1].sends, rows[i].sends);
        assert_int_equal(world.lldp_ports[1].receives, rows[i].receives);
        assert_true(world.lldp_ports[0].sends);
        assert_int_equal(world.lldp.interval_s, 40 + i);
        assert_int_equal(world.lldp.hold, 5 + i);
    }
}

static void test_a_change_of_a_neighbour_is_logged(void **state)
{
    (void)state;
    world.lldp.neighbour(world.lldp.ctx, 1, LLDP_NEW, NULL);
    assert_int_equal(world.lldp_lines, 1);
}

static void test_mdns_follows_the_ports_vlans(void **state)
{
    unsigned int groups = world.groups;

    (void)state;
    assert_int_equal(world.mdns.vlan[0], NET_VLAN_UNTAGGED);
    world.config.network.has_mdns = true;
    world.config.port[1].vlan = 7;
    services_apply(&world.services, &world.config, START_US);
    assert_true(world.mdns_is_on);
    assert_int_equal(world.mdns_vlan[0], NET_VLAN_UNTAGGED);
    assert_int_equal(world.mdns_vlan[1], 7);
    assert_int_equal(world.groups, groups + 1);
    assert_int_equal(count_lines("mdns: stays off"), 0);
}

static void test_mdns_that_finds_no_port_is_reported(void **state)
{
    (void)state;
    world.mdns_has_no_room = true;
    services_apply(&world.services, &world.config, START_US);
    assert_int_equal(count_lines("mdns: stays off: all UDP ports are in use"),
                     1);
    world.mdns.claimed(world.mdns.ctx, 1, "essd-SN7");
    assert_int_equal(count_lines("mdns: port 1: advertised as essd-SN7.local"),
                     1);
}

/* ---- Leases and the time. */

static void test_each_agent_has_random_numbers_of_its_own(void **state)
{
    (void)state;
    assert_true(world.sntp.random_seed != world.dhcp.random_seed &&
                world.dhcp.random_seed != world.mdns.random_seed &&
                world.sntp.random_seed != world.mdns.random_seed);
}

static void test_a_renewal_that_changes_nothing_is_not_logged(void **state)
{
    (void)state;
    give_lease(1, LEASED, 3600, 0);
    give_lease(1, LEASED, 3600, 0);
    assert_int_equal(count_lines("dhcp: port 1: 10.0.0.100/24 for 3600 s"), 1);
    give_lease(1, LEASED, 1800, 0);
    assert_int_equal(count_lines("dhcp: port 1: 10.0.0.100/24 for 1800 s"), 1);
    give_lease(1, LEASED + 1, DHCP_FOREVER, 0);
    assert_int_equal(count_lines("dhcp: port 1: 10.0.0.101/24 for ever"), 1);
    world.dhcp.leased(world.dhcp.ctx, 1, NULL);
    assert_int_equal(count_lines("dhcp: port 1: the lease has ended"), 1);
    give_lease(1, LEASED + 1, DHCP_FOREVER, 0);
    assert_int_equal(count_lines("dhcp: port 1: 10.0.0.101/24 for ever"), 2);
}

static void test_sntp_asks_the_server_of_a_lease_port_0_first(void **state)
{
    struct ip_addr first = ip_addr_from_v4(NTP);
    struct ip_addr second = ip_addr_from_v4(NTP + 1);

    (void)state;
    give_lease(1, LEASED, 3600, NTP + 1);
    assert_true(ip_addr_equal(&world.server, &second));
    give_lease(0, LEASED + 1, 3600, NTP);
    assert_true(ip_addr_equal(&world.server, &first));
    world.dhcp.leased(world.dhcp.ctx, 0, NULL);
    assert_true(ip_addr_equal(&world.server, &second));
    world.dhcp.leased(world.dhcp.ctx, 1, NULL);
    assert_true(ip_addr_is_unspecified(&world.server));
}

static void test_a_configured_server_is_not_replaced_by_a_leases(void **state)
{
    struct ip_addr own = ip_addr_from_v4(NTP + 5);
    struct ip_addr leased = ip_addr_from_v4(NTP);

    (void)state;
    memcpy(world.config.services.sntp_server, own.bytes, sizeof(own.bytes));
    world.config.services.sntp_poll_s = 99;
    services_apply(&world.services, &world.config, START_US);
    assert_true(ip_addr_equal(&world.server, &own));
    assert_int_equal(world.sntp.poll_s, 99);
    assert_int_equal(world.servers, 1);
    give_lease(0, LEASED, 3600, NTP);
    assert_int_equal(world.servers, 1);
    /* Without a configured one, the lease's is asked again. */
    memset(world.config.services.sntp_server, 0, sizeof(own.bytes));
    services_apply(&world.services, &world.config, START_US);
    assert_true(ip_addr_equal(&world.server, &leased));
}

static void test_the_time_goes_to_the_target_and_to_the_log_once(void **state)
{
    const struct sntp answer = {.stratum = 2};

    (void)state;
    world.sntp.set_time(world.sntp.ctx, 1700000000123, &answer);
    assert_int_equal(world.epoch_ms, 1700000000123);
    world.sntp.set_time(world.sntp.ctx, 1700000001123, &answer);
    assert_int_equal(world.epoch_ms, 1700000001123);
    assert_int_equal(count_lines("sntp: 17000000"), 1);
    assert_int_equal(count_lines("sntp: 1700000000 s since 1970, stratum 2"),
                     1);
    world.sntp.kissed(world.sntp.ctx, 0x52415445);
    assert_int_equal(count_lines("sntp: the server refuses to answer: RATE"),
                     1);
}

/* ---- Steps. */

static void test_each_change_of_a_link_is_told_once(void **state)
{
    (void)state;
    take_step();
    assert_int_equal(world.links + world.dhcp_links, 0);
    world.net.ports.port[1].is_up = world.is_port_up[1] = true;
    take_step();
    take_step();
    assert_int_equal(world.links, 1);
    assert_int_equal(world.dhcp_links, 0);
    world.is_net_up[1] = true;
    take_step();
    take_step();
    assert_int_equal(world.dhcp_links, 1);
    assert_int_equal(world.mdns_links, 1);
    assert_int_equal(world.sntp_links, 1);
    world.is_net_up[1] = false;
    world.net.ports.port[1].is_up = world.is_port_up[1] = false;
    take_step();
    assert_int_equal(world.links, 2);
    assert_int_equal(world.dhcp_links, 2);
    assert_int_equal(world.mdns_links, 2);
    assert_int_equal(world.sntp_links, 1); /* a link that goes is no reason */
}

static void test_new_addresses_are_told_by_lldp_at_once(void **state)
{
    (void)state;
    take_step();
    assert_int_equal(world.changes, 0);
    world.net.address_changes++;
    take_step();
    take_step();
    assert_int_equal(world.changes, 1);
}

static void test_leases_count_the_time_that_was_left_out(void **state)
{
    (void)state;
    (void)services_step(&world.services, START_US, 0);
    assert_int_equal(world.held_back_us, 0);
    (void)services_step(&world.services, START_US, 700);
    (void)services_step(&world.services, START_US, 700);
    assert_int_equal(world.held_back_us, 700);
    (void)services_step(&world.services, START_US, 1000);
    assert_int_equal(world.held_back_us, 1000);
}

static void test_the_next_step_is_that_of_the_first_agent(void **state)
{
    (void)state;
    assert_true(services_step(&world.services, START_US, 0) == UINT64_MAX);
    for (unsigned int i = 0; i < ARRAY_LEN(world.due_us); i++) {
        world.due_us[i] = 90 + i;
        assert_int_equal(services_step(&world.services, START_US, 0), 90 + i);
        world.due_us[i] = UINT64_MAX;
    }
}

static void test_a_stop_tells_both_ports_and_all_agents(void **state)
{
    (void)state;
    services_stop(&world.services);
    assert_int_equal(world.stops, NET_PORTS + 2);
}
