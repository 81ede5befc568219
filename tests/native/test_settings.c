/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of the drive, through the console, through a host on the other port,
 * and by straps. */
#include "bed_fixture.h"

#include <string.h>

#include "firmware/vendor/vendor_feature.h"
#include "nvmeof/wire/opcode.h"
#include "tests/test_fixture.h"

static bool says_text(const char *text, const char *what)
{
    if (strstr(text, what) == NULL) {
        print_message("%s\n", text);
        return false;
    }
    return true;
}

static void set_partner_fec(unsigned int port, uint8_t fec)
{
    struct hw_port *core = &bed.drive->machine.ports[port];
    struct phy_partner partner = core->partner;

    partner.fec = fec;
    hw_port_set_partner(core, &partner);
    native_world_pass(&bed.world, 1000000);
}

static bool is_up(unsigned int port)
{
    return bed.drive->machine.ports[port].link_up;
}

/* The example of the data sheet: the switch runs RS-FEC, the drive FC-FEC. */
static void test_console_changes_fec_and_saves_it(void **state)
{
    (void)state;
    assert_true(says_text(type_line("fec 0\r"), "fc"));
    set_partner_fec(0, PORT_FEC_RS);
    assert_false(is_up(0));
    assert_true(says_text(machine_console(&bed.drive->machine),
                          "port 0: link down: FEC mismatch"));
    assert_true(says_text(type_line("port 0\r"), "port 0: down: FEC mismatch"));
    assert_true(is_up(1));

    assert_true(says_text(type_line("fec 0 rs\r"), "ok"));
    assert_true(is_up(0));
    assert_int_equal(bed.drive->saves, 1);
    assert_int_equal(bed.drive->flash.port[0].fec, CONFIG_FEC_RS);
    assert_int_equal(bed.drive->flash.port[1].fec, CONFIG_FEC_FC);
    assert_true(says_text(type_line("port\r"),
                          "port 0: up, 25 Gb/s, FEC rs (saved: rs)"));
    bed_connect(&bed, 0, 1, 64);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
}

static void test_console_refuses_mistakes_and_goes_on(void **state)
{
    static const struct {
        const char *line, *answer;
    } rows[] = {
        {"flash\r", "error: there is no command flash"},
        {"fec\r", "error: fec PORT [none|fc|rs]"},
        {"fec 2 rs\r", "error: there is no port 2"},
        {"fec 00 rs\r", "error: there is no port 00"},
        {"fec 0 kr\r", "error: there is no FEC kr"},
        {"fec 0 rs now\r", "error: fec PORT"},
        {"speed 40\r", "error: there is no speed 40"},
        {"counters\r", "error: counters PORT"},
        {"counters 9\r", "error: there is no port 9"},
        {"port 2\r", "error: there is no port 2"},
        {"lag\r", "lag: off"},
        {"echo maybe\r", "error: echo takes on or off, not maybe"},
        {"echo on\r", "ok"},
        {"echo\r", "echo: on"},
        {"echo off\r", "ok"},
        {"echo\r", "echo: off"},
        {"fec 0 rs\003port 1\r", "port 1: up"},
        {"  port   1  \r\n", "port 1: up"},
        {"porx\bt 1\n", "port 1: up"},
        {"help\r", "counters"},
        {"config\r", "port.0.ipv4 10.0.0.1/24"},
        {"counters 0\r", "aFramesReceivedOK"},
    };
    char long_line[CONSOLE_LINE_MAX + 3];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_true(says_text(type_line(rows[i].line), rows[i].answer));
    }
    memset(long_line, 'p', sizeof(long_line) - 2);
    strcpy(long_line + sizeof(long_line) - 2, "\r");
    assert_true(says_text(type_line(long_line),
                          "error: a line has at most 360 characters"));
    assert_true(says_text(type_line("port 0\r"), "port 0: up"));
    assert_int_equal(bed.drive->saves, 0);
}

static void test_console_changes_the_configuration(void **state)
{
    const char *said;

    (void)state;
    assert_true(says_text(type_line("config get port.1.mtu\r"), "\n1500\n"));
    assert_true(says_text(type_line("config set port.1.mtu 9000\r"), "ok"));
    assert_true(says_text(type_line("config set port.1.fec rs\r"), "ok"));
    assert_true(
        says_text(type_line("config set address.3.ip fd00::7/64\r"), "ok"));
    assert_int_equal(bed.drive->saves, 0);
    said = type_line("config\r");
    assert_true(says_text(said, "port.1.mtu 9000 (from the next start) (saved: "
                                "1500) (in force: 1500)\n"));
    assert_true(says_text(said, "port.0.mtu 1500 (from the next start)\n"));
    assert_true(says_text(said, "not saved yet"));

    said = type_line("config save\r");
    assert_true(says_text(
        said, "port.1.mtu: saved; in force from the drive's next start\n"));
    assert_true(says_text(said, "ok\n"));
    assert_null(strstr(said, "port.1.fec"));
    assert_int_equal(bed.drive->saves, 1);
    assert_int_equal(bed.drive->flash.port[1].mtu_bytes, 9000);
    assert_int_equal(bed.drive->flash.network.extra[3].ip[15], 7);
    assert_true(
        says_text(type_line("port 1\r"), "up, 25 Gb/s, FEC rs (saved: rs)"));
    assert_true(
        says_text(type_line("config\r"),
                  "port.1.mtu 9000 (from the next start) (in force: 1500)"));
    assert_true(says_text(type_line("config save\r"), "nothing to save"));
}

static void test_console_checks_before_it_saves(void **state)
{
    const char *said;

    (void)state;
    assert_true(says_text(type_line("config set port.0.speed 10\r"), "ok"));
    assert_true(says_text(type_line("config set port.0.fec rs\r"), "ok"));
    said = type_line("config save\r");
    assert_true(says_text(
        said, "error: port.0.fec: rs needs 25 Gb/s, but port.0.speed is 10\n"));
    assert_true(
        says_text(said, "error: port.1.speed: 25 differs from port.0.speed"));
    assert_int_equal(bed.drive->saves, 0);
    assert_true(says_text(type_line("config discard\r"), "ok"));
    assert_true(says_text(type_line("config get port.0.speed\r"), "\n25\n"));

    assert_true(
        says_text(type_line("config set port.0.mtu 1\r"),
                  "error: port.0.mtu: 1 is not a number from 1280 to 9000"));
    assert_true(says_text(type_line("config set address.4.ip 10.0.0.9/24\r"),
                          "error: address.4.ip: a drive has eight addresses"));
    assert_true(
        says_text(type_line("config get mtu\r"), "error: there is no key mtu"));
    assert_true(says_text(type_line("config set name\r"),
                          "error: usage: config [get KEY |"));
    assert_true(says_text(type_line("config save now\r"),
                          "error: usage: config [get KEY |"));
    assert_false(bed.drive->drive.settings.is_staged);

    /* A draft is not affected by settings that are changed and
     * saved meanwhile. */
    assert_true(says_text(type_line("config set port.0.vlan 7\r"), "ok"));
    assert_true(says_text(type_line("fec 0 none\r"), "ok"));
    bed.drive->is_flash_broken = true;
    assert_true(says_text(type_line("config save\r"),
                          "error: writing to flash failed"));
    assert_true(says_text(type_line("config get port.0.vlan\r"), "\n7\n"));
    bed.drive->is_flash_broken = false;
    assert_true(says_text(type_line("config save\r"), "ok"));
    assert_int_equal(bed.drive->flash.port[0].fec, CONFIG_FEC_NONE);
    assert_int_equal(bed.drive->flash.port[0].vlan, 7);
}

static void test_console_reports_when_writing_to_flash_fails(void **state)
{
    (void)state;
    bed.drive->is_flash_broken = true;
    assert_true(
        says_text(type_line("fec 1 none\r"), "error: writing to flash failed"));
    assert_true(says_text(type_line("port 1\r"), "FEC fc (saved: fc)"));
}

static void test_both_ports_have_the_same_speed(void **state)
{
    (void)state;
    assert_true(says_text(type_line("fec 1 rs\r"), "ok"));
    assert_true(
        says_text(type_line("speed 10\r"), "error: the ports do not support"));
    assert_true(says_text(type_line("fec 1 fc\r"), "ok"));
    assert_true(says_text(type_line("speed 10\r"), "ok"));
    assert_false(is_up(0) || is_up(1)); /* The link partners run at 25 Gb/s. */
    assert_true(says_text(type_line("port\r"),
                          "port 1: down: speed mismatch, 10 Gb/s"));
    assert_true(
        says_text(type_line("fec 0 rs\r"), "error: the ports do not support"));
    assert_false(
        drive_net_set_link(&bed.drive->drive.net, 0, 25, CONFIG_FEC_FC));
    assert_true(says_text(type_line("speed 25\r"), "ok"));
    assert_true(is_up(0) && is_up(1));
}

static uint16_t port_fec_feature(uint8_t opcode, uint32_t cdw10, uint32_t cdw11,
                                 uint32_t *value)
{
    struct nvme_sqe sqe = {
        .opcode = opcode,
        .cdw10 = cdw10 | VENDOR_FEATURE_PORT_FEC,
        .cdw11 = cdw11,
    };
    uint16_t status = host_command(&bed.host->host, 0, &sqe, NULL, 0);

    *value = bed.host->host.last_dw0;
    return status;
}

static uint32_t get_feature(uint32_t select, uint32_t port)
{
    uint32_t value;

    assert_int_equal(
        port_fec_feature(ADMIN_GET_FEATURES, select << 8, port << 8, &value),
        0);
    return value;
}

/* Both ports go down, and come up at the other speed without a restart. */
static void test_the_configuration_changes_the_speed(void **state)
{
    const struct config *in_force = &bed.drive->drive.settings.in_force;

    (void)state;
    assert_true(says_text(type_line("config set port.0.speed 10\r"), "ok"));
    assert_true(says_text(type_line("config set port.1.speed 10\r"), "ok"));
    assert_true(is_up(0) && is_up(1));
    assert_true(says_text(type_line("config save\r"), "\nok\n"));
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        assert_false(is_up(i));
        assert_int_equal(in_force->port[i].speed_gbps, 10);
        assert_int_equal(bed.drive->flash.port[i].speed_gbps, 10);
    }
    assert_true(says_text(type_line("port\r"),
                          "port 0: down: speed mismatch, 10 Gb/s"));
    assert_true(says_text(type_line("speed 25\r"), "ok"));
    assert_true(is_up(0) && is_up(1));
}

static void test_a_host_changes_the_other_port(void **state)
{
    uint32_t value;

    (void)state;
    set_partner_fec(0, PORT_FEC_RS);
    bed_connect(&bed, 1, 1, 64);
    assert_int_equal(get_feature(0, 0),
                     CONFIG_FEC_FC | 0xff << 8 | PORT_REASON_FEC << 16);
    assert_int_equal(get_feature(0, 1), CONFIG_FEC_FC | PORT_FEC_FC << 8);
    assert_int_equal(get_feature(3, 0), 5); /* Saveable and changeable. */

    /* Set until the next start only. */
    assert_int_equal(
        port_fec_feature(ADMIN_SET_FEATURES, 0, CONFIG_FEC_RS, &value), 0);
    assert_true(is_up(0));
    assert_int_equal(bed.drive->saves, 0);
    assert_int_equal(get_feature(0, 0), CONFIG_FEC_RS | PORT_FEC_RS << 8);
    assert_int_equal(get_feature(1, 0), CONFIG_FEC_FC);
    assert_int_equal(get_feature(2, 0), CONFIG_FEC_FC);

    assert_int_equal(
        port_fec_feature(ADMIN_SET_FEATURES, BIT(31), CONFIG_FEC_RS, &value),
        0);
    assert_int_equal(bed.drive->flash.port[0].fec, CONFIG_FEC_RS);
    assert_int_equal(get_feature(2, 0), CONFIG_FEC_RS);

    assert_int_equal(port_fec_feature(ADMIN_SET_FEATURES, 0, 3, &value) & 0xff,
                     2);
    assert_int_equal(
        port_fec_feature(ADMIN_SET_FEATURES, 0, 2 << 8, &value) & 0xff, 2);
    assert_int_equal(
        port_fec_feature(ADMIN_GET_FEATURES, 0, 2 << 8, &value) & 0xff, 2);
    assert_int_equal(
        port_fec_feature(ADMIN_SET_FEATURES, 0x3f, 0, &value) & 0xff, 2);
    bed.drive->is_flash_broken = true;
    assert_int_equal(
        port_fec_feature(ADMIN_SET_FEATURES, BIT(31), 1, &value) & 0xff, 6);
    assert_int_equal(get_feature(0, 0) & 0xff, CONFIG_FEC_RS);
    host_disconnect(&bed.host->host);
}

/* The next start could not use such a configuration: config_flash.h. */
static void test_settings_that_exclude_each_other_are_not_saved(void **state)
{
    uint32_t value;

    (void)state;
    assert_true(says_text(type_line("fec 0 rs\r"), "ok"));
    bed_connect(&bed, 1, 1, 64);
    assert_int_equal(
        port_fec_feature(ADMIN_SET_FEATURES, 0, CONFIG_FEC_FC, &value), 0);
    assert_true(
        says_text(type_line("speed 10\r"), "error: the ports do not support"));
    assert_int_equal(bed.drive->saves, 1);
    assert_int_equal(bed.drive->flash.port[0].speed_gbps, 25);
    host_disconnect(&bed.host->host);
}

static uint16_t config_feature(uint8_t opcode, uint32_t select_or_save,
                               uint8_t *data)
{
    struct nvme_sqe sqe = {
        .opcode = opcode,
        .cdw10 = select_or_save | VENDOR_FEATURE_CONFIG,
    };

    return host_command(&bed.host->host, 0, &sqe, data, VENDOR_CONFIG_LEN) &
           0xff;
}

static void get_config(uint32_t select, struct config *config)
{
    uint8_t data[VENDOR_CONFIG_LEN];

    assert_int_equal(config_feature(ADMIN_GET_FEATURES, select << 8, data), 0);
    assert_true(config_body_parse(config, data, sizeof(data)));
    for (size_t i = CONFIG_BODY_LEN; i < sizeof(data); i++) {
        assert_int_equal(data[i], 0);
    }
}

static uint16_t set_config(uint32_t save, const struct config *config)
{
    uint8_t data[VENDOR_CONFIG_LEN] = {0};

    config_body_emit(config, data);
    return config_feature(ADMIN_SET_FEATURES, save, data);
}

static void test_unchanged_settings_are_not_written_again(void **state)
{
    struct config config;
    uint32_t value;

    (void)state;
    bed_connect(&bed, 1, 1, 64);
    get_config(NVMF_SELECT_SAVED, &config);
    strcpy(config.services.name, "rack7");
    for (unsigned int i = 0; i < 100; i++) {
        assert_int_equal(set_config(BIT(31), &config), 0);
        assert_int_equal(port_fec_feature(ADMIN_SET_FEATURES, BIT(31),
                                          config.port[0].fec, &value),
                         0);
    }
    assert_int_equal(bed.drive->saves, 1);
    assert_string_equal(bed.drive->flash.services.name, "rack7");
    host_disconnect(&bed.host->host);
}

/* A host that saves without end does not wear out the flash. */
static void test_writes_to_flash_are_limited(void **state)
{
    enum { RETRY_LATER = 0x21 };
    struct config config;
    uint16_t last;

    (void)state;
    bed_connect(&bed, 1, 1, 64);
    get_config(NVMF_SELECT_SAVED, &config);
    for (unsigned int i = 0; i < SETTINGS_WRITES_FREE / 2; i++) {
        config.port[0].mtu_bytes = (uint16_t)(1500 + i);
        assert_int_equal(set_config(BIT(31), &config), 0);
    }
    /* Nothing has changed, so that nothing is written. */
    assert_int_equal(set_config(BIT(31), &config), 0);
    /* This host's share is used up; the owner at the console may go on. */
    last = config.port[0].mtu_bytes;
    config.port[0].mtu_bytes = 8999;
    assert_int_equal(set_config(BIT(31), &config), RETRY_LATER);
    assert_int_equal(bed.drive->saves, SETTINGS_WRITES_FREE / 2);
    assert_int_equal(bed.drive->flash.port[0].mtu_bytes, last);
    get_config(NVMF_SELECT_SAVED, &config);
    assert_int_equal(config.port[0].mtu_bytes, last);
    assert_true(says_text(type_line("config set port.0.mtu 9000\r"), "ok"));
    assert_true(says_text(type_line("config save\r"), "ok"));
    assert_int_equal(bed.drive->saves, SETTINGS_WRITES_FREE / 2 + 1);

    /* All writes are used up. */
    bed.drive->drive.settings.saved.sequence = SETTINGS_WRITES_FREE;
    assert_true(says_text(type_line("config set port.0.mtu 8998\r"), "ok"));
    assert_true(says_text(type_line("config save\r"),
                          "error: too many writes to flash"));
    bed.drive->drive.keeper.usage.on_minutes += 60;
    assert_true(says_text(type_line("config save\r"), "ok"));
    host_disconnect(&bed.host->host);
}

static void test_a_host_reads_and_writes_the_configuration(void **state)
{
    uint8_t data[VENDOR_CONFIG_LEN] = {0};
    struct config config;

    (void)state;
    bed_connect(&bed, 1, 1, 64);
    get_config(NVMF_SELECT_DEFAULT, &config);
    assert_false(config.port[0].has_ipv4);
    get_config(NVMF_SELECT_CURRENT, &config);
    assert_int_equal(config.port[0].ipv4_prefix, 24);

    /* Saved: all settings; the link uses them at once. */
    set_partner_fec(0, PORT_FEC_RS);
    config.port[0].fec = CONFIG_FEC_RS;
    config.port[0].mtu_bytes = 9000;
    strcpy(config.services.name, "rack7");
    assert_int_equal(set_config(BIT(31), &config), 0);
    assert_true(is_up(0));
    assert_int_equal(bed.drive->saves, 1);
    assert_int_equal(bed.drive->flash.port[0].mtu_bytes, 9000);
    assert_string_equal(bed.drive->flash.services.name, "rack7");
    get_config(NVMF_SELECT_SAVED, &config);
    assert_int_equal(config.port[0].mtu_bytes, 9000);
    get_config(NVMF_SELECT_CURRENT, &config);
    assert_int_equal(config.port[0].mtu_bytes, 1500);
    assert_int_equal(config.port[0].fec, CONFIG_FEC_RS);

    /* Not saved: only settings that can take effect at once. */
    config.port[0].fec = CONFIG_FEC_FC;
    assert_int_equal(set_config(0, &config), 0);
    assert_false(is_up(0));
    config.port[0].mtu_bytes = 9000;
    assert_int_equal(set_config(0, &config), 2);
    assert_true(
        says_text(machine_console(&bed.drive->machine),
                  "refused: port.0.mtu: takes effect at the next start"));
    assert_int_equal(bed.drive->saves, 1);

    /* Mistakes: a value out of range, values that exclude each other, data
     * beyond the end. */
    get_config(NVMF_SELECT_SAVED, &config);
    config.port[1].speed_gbps = 10;
    assert_int_equal(set_config(BIT(31), &config), 2);
    config.port[1].speed_gbps = 40;
    assert_int_equal(set_config(BIT(31), &config), 2);
    get_config(NVMF_SELECT_SAVED, &config);
    config_body_emit(&config, data);
    data[CONFIG_BODY_LEN] = 1;
    assert_int_equal(config_feature(ADMIN_SET_FEATURES, BIT(31), data), 2);
    bed.drive->is_flash_broken = true;
    /* Otherwise there would be nothing to write. */
    config.port[0].mtu_bytes = 1600;
    assert_int_equal(set_config(BIT(31), &config), 6);
    assert_int_equal(bed.drive->saves, 1);
    host_disconnect(&bed.host->host);
}

/* Seven addresses are added on the console: all eight work at once, and are
 * removed at once. */
static void test_addresses_change_while_the_drive_runs(void **state)
{
    struct config config;
    struct ip_addr ip;

    (void)state;
    bed_connect(&bed, 1, 1, 64);
    assert_true(
        says_text(type_line("config set address.0.ip 10.0.0.77/24\r"), "ok"));
    assert_true(
        says_text(type_line("config set address.1.ip 10.0.1.77/24\r"), "ok"));
    assert_true(says_text(type_line("config set address.1.port 1\r"), "ok"));
    assert_true(
        says_text(type_line("config set address.2.ip 10.9.0.1/16\r"), "ok"));
    assert_true(says_text(type_line("config set address.2.vlan 9\r"), "ok"));
    assert_true(
        says_text(type_line("config set address.3.ip fd09::1/64\r"), "ok"));
    assert_true(says_text(type_line("config set port.0.mtu 2000\r"), "ok"));
    assert_true(says_text(
        type_line("config save\r"),
        "\nport.0.mtu: saved; in force from the drive's next start\nok\n"));
    assert_true(
        says_text(machine_console(&bed.drive->machine), "port 0: 10.9.0.1/16"));
    ip = ip_addr_from_v4(0x0a00014d);
    assert_true(net_stack_local(&bed.drive->drive.net.stack, 1,
                                NET_VLAN_UNTAGGED, &ip) >= 0);
    ip = ip_addr_from_v4(0x0a090001);
    assert_true(net_stack_local(&bed.drive->drive.net.stack, 0, 9, &ip) >= 0);

    /* The host's connection ends with its address, and the host survives. */
    get_config(NVMF_SELECT_CURRENT, &config);
    config.port[1].has_ipv4 = false;
    (void)set_config(BIT(31), &config);
    native_world_pass(&bed.world, 1000000);
    assert_true(says_text(machine_console(&bed.drive->machine),
                          "port 1: 10.0.1.1 is gone"));
    assert_false(bed.drive->flash.port[1].has_ipv4);
}

static struct ip_addr gateway_of(unsigned int port, bool is_v4)
{
    const struct net_port_config *config =
        &bed.drive->drive.net.stack.config.ports[port];

    return is_v4 ? config->gateway4 : config->gateway6;
}

/* LLDP, SNTP, gateways, PFC, RoCE v1 and echo change without a restart. */
static void test_services_change_while_the_drive_runs(void **state)
{
    static const char *const lines[] = {
        "config set port.0.ipv4-gateway 10.0.0.254\r",
        "config set port.1.ipv6-gateway fe80::1\r",
        "config set port.1.lldp receive\r",
        "config set lldp.interval 7\r",
        "config set lldp.hold 3\r",
        "config set sntp.server 10.0.0.9\r",
        "config set sntp.poll 20\r",
        "config set pfc 3\r",
        "config set roce.v1 on\r",
        "config set echo on\r",
    };
    struct drive *drive = &bed.drive->drive;
    const struct sntp_client *sntp = &drive->services.sntp;
    const struct lldp_agent *lldp = &drive->services.lldp;
    const struct ip_addr router = {{0xfe, 0x80, [15] = 1}};
    struct ip_addr ip;
    const char *said;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_true(says_text(type_line(lines[i]),
                              "ok: config save puts it in force at once\n"));
    }
    assert_true(says_text(
        type_line("config set lag.mode lacp\r"),
        "ok: config save puts it in force from the drive's next start\n"));
    assert_true(says_text(type_line("config set lag.mode off\r"), "ok"));
    said = type_line("config save\r");
    assert_true(says_text(said, "\nok\n"));
    assert_null(strstr(said, "from the drive's next start"));
    assert_null(strstr(type_line("config\r"), "in force"));

    ip = gateway_of(0, true);
    assert_int_equal(ip_addr_to_v4(&ip), 0x0a0000fe);
    ip = gateway_of(1, false);
    assert_true(ip_addr_equal(&ip, &router));
    assert_false(lldp->config.ports[1].sends);
    assert_true(lldp->config.ports[0].sends && lldp->config.ports[1].receives);
    assert_int_equal(lldp->config.interval_s, 7);
    assert_int_equal(lldp->config.hold, 3);
    assert_int_equal(ip_addr_to_v4(&sntp->config.server), 0x0a000009);
    assert_int_equal(sntp->config.poll_s, 20);
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        assert_int_equal(bed.drive->machine.ports[i].pause & 0xff, 0x08);
    }
    assert_true(says_text(type_line("echo\r"), "on"));

    /* Back to gateways of routers, and to none. */
    assert_true(
        says_text(type_line("config set port.0.ipv4-gateway none\r"), "ok"));
    assert_true(
        says_text(type_line("config set port.1.ipv6-gateway none\r"), "ok"));
    assert_true(says_text(type_line("config set sntp.server none\r"), "ok"));
    assert_true(says_text(type_line("config save\r"), "\nok\n"));
    ip = gateway_of(0, true);
    assert_true(ip_addr_is_unspecified(&ip));
    ip = gateway_of(1, false);
    assert_true(ip_addr_is_unspecified(&ip));
    assert_int_equal(sntp->state, SNTP_IDLE);
}

/* Name, priority and congestion management change without a restart. */
static void test_name_and_priority_change_while_the_drive_runs(void **state)
{
    static const char *const lines[] = {
        "config set name rack7\r",       "config set port.1.priority 5\r",
        "config set roce.cnp off\r",     "config set roce.dcqcn off\r",
        "config set lag.lacp-fast on\r",
    };
    const struct drive *drive = &bed.drive->drive;
    const struct roce_ecn *ecn = &bed.drive->machine.rnic.roce.state->ecn;
    uint64_t sent = drive->services.lldp.ports[0].counters[LLDP_FRAMES_OUT];

    (void)state;
    assert_memory_equal(drive->services.name, "essd-", 5);
    assert_true(ecn->is_answered && ecn->is_obeyed && ecn->codepoint != 0);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_true(says_text(type_line(lines[i]),
                              "ok: config save puts it in force at once\n"));
    }
    assert_null(
        strstr(type_line("config save\r"), "from the drive's next start"));
    assert_null(strstr(type_line("config\r"), "(in force"));
    assert_string_equal(drive->services.lldp.config.system_name, "rack7");
    native_world_pass(&bed.world, 2000000000);
    assert_true(drive->services.lldp.ports[0].counters[LLDP_FRAMES_OUT] > sent);
    assert_int_equal(drive->net.stack.config.ports[0].priority, 0);
    assert_int_equal(drive->net.stack.config.ports[1].priority, 5);
    assert_false(ecn->is_answered || ecn->is_obeyed || ecn->codepoint != 0);

    assert_true(says_text(type_line("config set name none\r"), "ok"));
    assert_true(says_text(type_line("config save\r"), "ok"));
    assert_memory_equal(drive->services.lldp.config.system_name, "essd-", 5);
}

/* The list of keys says which changes wait for the next start. */
static void test_the_list_of_keys_says_when_a_change_is_in_force(void **state)
{
    const char *said;

    (void)state;
    said = type_line("config\r");
    assert_true(says_text(said, "port.0.mtu 1500 (from the next start)\n"));
    assert_true(says_text(said, "lag.mode off (from the next start)\n"));
    assert_true(says_text(said, "\nname none\n"));
    assert_true(says_text(said, "lldp.interval 30\n"));
}

static bool is_member(unsigned int port, unsigned int vlan)
{
    const struct hw_port *core = &bed.drive->machine.ports[port];

    return core->vlan[vlan / 32] >> (vlan % 32) & 1;
}

static void test_an_unused_vlan_is_released(void **state)
{
    (void)state;
    assert_true(
        says_text(type_line("config set address.2.ip 10.9.0.1/16\r"), "ok"));
    assert_true(says_text(type_line("config set address.2.vlan 9\r"), "ok"));
    assert_true(
        says_text(type_line("config set address.3.ip fd09::1/64\r"), "ok"));
    assert_true(says_text(type_line("config set address.3.vlan 9\r"), "ok"));
    assert_true(says_text(type_line("config set port.1.vlan 40\r"), "ok"));
    assert_false(is_member(0, 9));
    assert_true(says_text(type_line("config save\r"), "ok"));
    assert_true(is_member(0, 9));
    assert_false(is_member(1, 9));
    assert_true(is_member(1, 40));

    /* One of the two addresses in the VLAN is removed; the other still needs
     * the VLAN. */
    assert_true(says_text(type_line("config set address.2.vlan 10\r"), "ok"));
    assert_true(says_text(type_line("config set port.1.vlan 41\r"), "ok"));
    assert_true(says_text(type_line("config save\r"), "ok"));
    assert_true(is_member(0, 9) && is_member(0, 10));
    assert_false(is_member(1, 40));
    assert_true(is_member(1, 41));
    assert_true(says_text(type_line("config set address.3.vlan 0\r"), "ok"));
    assert_true(says_text(type_line("config set port.1.vlan 0\r"), "ok"));
    assert_true(says_text(type_line("config save\r"), "ok"));
    assert_false(is_member(0, 9));
    assert_true(is_member(0, 10));
    assert_false(is_member(1, 41));
}

/* All eight places are taken, four of them by DHCP or similar. */
static void test_an_address_without_a_place_waits_for_one(void **state)
{
    struct net_stack *stack = &bed.drive->drive.net.stack;
    struct net_address_config own = {
        .vlan = NET_VLAN_UNTAGGED,
        .prefix_bits = 24,
        .is_leased = true,
    };
    struct ip_addr ip = ip_addr_from_v4(0x0a00004d);
    int local[4];

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        own.ip = ip_addr_from_v4(0x0a000050 + i);
        local[i] = net_stack_address_add(stack, &own, 0);
        assert_true(local[i] >= 0);
    }
    assert_true(
        says_text(type_line("config set address.0.ip 10.0.0.77/24\r"), "ok"));
    assert_true(
        says_text(type_line("config set address.1.ip 10.0.0.80/24\r"), "ok"));
    assert_true(says_text(type_line("config save\r"),
                          "is not added yet: the drive has it"));
    assert_true(net_stack_local(stack, 0, NET_VLAN_UNTAGGED, &ip) < 0);

    net_stack_address_remove(stack, (uint8_t)local[1]);
    (void)type_line("\r"); /* a turn */
    assert_true(says_text(type_line("addresses\r"), "10.0.0.77/24"));

    /* The lease of the other address ends. */
    net_stack_address_remove(stack, (uint8_t)local[0]);
    (void)type_line("\r");
    assert_true(says_text(type_line("addresses\r"), "10.0.0.80/24"));
    ip = ip_addr_from_v4(0x0a000050);
    local[0] = net_stack_local(stack, 0, NET_VLAN_UNTAGGED, &ip);
    assert_true(local[0] >= 0);
    assert_false(net_stack_address(stack, (uint8_t)local[0])->is_leased);
}

WITH_FIXTURE(NULL, NULL)
static void test_straps_override_the_configuration(void **state)
{
    static const enum config_fec fec[] = {CONFIG_FEC_FC, CONFIG_FEC_NONE,
                                          CONFIG_FEC_FC, CONFIG_FEC_RS};
    struct config config;

    (void)state;
    for (unsigned int straps = 0; straps < 256; straps++) {
        config_default(&config);
        config.port[0].mtu_bytes = 5000;
        config.sequence = 7;
        settings_apply_straps(&config, (uint8_t)straps);
        for (unsigned int i = 0; i < CONFIG_PORTS; i++) {
            assert_int_equal(config.port[i].fec, fec[straps & 3]);
            assert_int_equal(config.port[i].speed_gbps, straps & 4 ? 10 : 25);
        }
        assert_int_equal(config.port[0].mtu_bytes, straps & 128 ? 1500 : 5000);
        assert_int_equal(config.sequence, 7);
    }
}

static void test_console_shows_the_addresses(void **state)
{
    const char *said;

    (void)state;
    /* The addresses are announced. */
    native_world_pass(&bed.world, UINT64_C(5000000000));
    said = type_line("addresses\r");
    assert_true(says_text(said, "port 0: 10.0.0.1/24: in use"));
    assert_true(says_text(said, "port 1: fd00:0:0:2::1/64: in use"));
    assert_true(says_text(said, "port 1: fe80::"));
    net_stack_address_remove(&bed.drive->drive.net.stack, 0);
    assert_null(strstr(type_line("addresses\r"), "10.0.0.1/24"));
}

/* The services over TCP are a convenience: without memory for them, the drive
 * serves its hosts. */
static void test_tcp_services_without_memory_stay_off(void **state)
{
    struct drive *drive = &bed.drive->drive;
    uint8_t few[4096];
    struct dram dram;
    const struct drive_config config = {
        .toe_regs = drive->tcp.toe.regs,
        .dram = &dram,
        .config = &bed.drive->config,
    };

    (void)state;
    bed.drive->config.network.has_tcp_echo = true;
    dram_init(&dram, few, 0); /* not even for the engine's rings */
    tcp_services_start(drive, &config);
    assert_false(drive->tcp.is_on);
    tcp_engine_switch(&drive->tcp, true);
    assert_false(drive->tcp.is_on);
    assert_false(drive->tcp.is_wanted);
    native_world_pass(&bed.world, 1000000);
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 0, 1, HOST_DATA_KEYED, false, 1), 0);
    bed_expect(&bed, 1, 0, 1, HOST_DATA_KEYED, 1);
    assert_true(says_text(machine_console(&bed.drive->machine),
                          "tcp: the DRAM is too small; start the machine with "
                          "more memory; echo and discard stay off"));
}

TEST_FIXTURE(setup, teardown)
