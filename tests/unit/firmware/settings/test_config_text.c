/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/settings/config_check.h"
#include "tests/test_fixture.h"

static struct config config;

static int setup_defaults(void **state)
{
    (void)state;
    config_default(&config);
    return 0;
}

/*
 * Set a value.
 * @return the error text, "" when the value was accepted
 */
static const char *set_text(const char *key, const char *value)
{
    static struct config_error error;

    error.text[0] = '\0';
    if (config_text_set(&config, key, value, &error)) {
        assert_string_equal(error.text, "");
    } else {
        assert_string_not_equal(error.text, "");
    }
    return error.text;
}

static const char *get_text(const char *key)
{
    static struct config_line line;
    struct config_error error;

    assert_true(config_text_find(&config, key, &line, &error));
    assert_string_equal(line.key, key);
    return line.value;
}

static void test_every_key_is_found_and_has_a_default(void **state)
{
    struct config_error error;
    struct config_line line, found;

    (void)state;
    assert_int_equal(config_text_count(), 1 + 2 * 13 + 4 * 3 + 27);
    for (unsigned int i = 0; i < config_text_count(); i++) {
        config_text_get(&config, i, &line);
        assert_true(config_text_find(&config, line.key, &found, &error));
        assert_string_equal(found.key, line.key);
        assert_string_equal(found.value, line.value);
        assert_string_not_equal(line.value, "");
        assert_null(strchr(line.value, ' '));
        assert_string_equal(set_text(line.key, line.value), "");
    }
    assert_string_equal(get_text("port.1.mtu"), "1500");
    assert_string_equal(get_text("lldp.interval"), "30");
    assert_string_equal(get_text("pfc"), "all");
    assert_string_equal(get_text("roce.cnp"), "on");
    assert_string_equal(get_text("name"), "none");
}

static void test_lists_of_namespaces_have_one_form(void **state)
{
    static const struct {
        const char *text, *shown; /* NULL: refused */
    } rows[] = {
        {"none", "none"},
        {"1", "1"},
        {"128", "128"},
        {"1,2,3", "1-3"},
        {"1-2,3-4", "1-4"},
        {"2,4-4,6", "2,4,6"},
        {"1-128", "1-128"},
        {"1,3,5,7,9,11", "1,3,5,7,9,11"},
        {"100-102,104-106,108-110,112-114,116-118,120-122",
         "100-102,104-106,108-110,112-114,116-118,120-122"},
        {"1,3,5,7,9,11,13", NULL},
        {"0", NULL},
        {"129", NULL},
        {"1-129", NULL},
        {"3,1", NULL},
        {"1,1", NULL},
        {"3-2", NULL},
        {"1-3,3", NULL},
        {"1,", NULL},
        {",1", NULL},
        {"1-", NULL},
        {"-1", NULL},
        {"1--2", NULL},
        {"01", NULL},
        {"1 2", NULL},
        {"all", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *error = set_text("aoe.export", rows[i].text);

        if (rows[i].shown == NULL) {
            assert_string_not_equal(error, "");
        } else {
            assert_string_equal(error, "");
            assert_string_equal(get_text("aoe.export"), rows[i].shown);
        }
    }
}

static void test_values_are_accepted_and_printed(void **state)
{
    static const char *const rows[][2] = {
        {"name", "rack7-slot3"},
        {"name", "exactly-thirty-two-characters-ok"},
        {"name", "none"},
        {"port.0.ipv4", "10.0.0.10/24"},
        {"port.1.ipv4", "255.254.253.252/32"},
        {"port.1.ipv4", "none"},
        {"port.0.ipv4-gateway", "10.0.0.1"},
        {"port.0.ipv6", "fd00::10/64"},
        {"port.1.ipv6", "1234:5678:9abc:def0:1234:5678:9abc:def0/128"},
        {"port.1.ipv6-gateway", "fe80::1"},
        {"port.1.ipv6-gateway", "none"},
        {"port.0.dhcp", "on"},
        {"port.1.slaac", "on"},
        {"port.1.probe", "on"},
        {"port.0.vlan", "4094"},
        {"port.1.priority", "7"},
        {"port.0.mtu", "9000"},
        {"port.0.mtu", "1280"},
        {"port.0.speed", "10"},
        {"port.1.fec", "rs"},
        {"port.0.fec", "none"},
        {"port.1.lldp", "receive"},
        {"port.0.lldp", "off"},
        {"address.0.ip", "10.0.0.11/24"},
        {"address.3.ip", "fd00::11/64"},
        {"address.3.port", "1"},
        {"address.1.vlan", "5"},
        {"dhcp.fast", "on"},
        {"lldp.interval", "3600"},
        {"lldp.hold", "100"},
        {"sntp.server", "10.0.0.9"},
        {"sntp.server", "fd00::9"},
        {"sntp.poll", "65535"},
        {"lag.mode", "active-standby"},
        {"lag.mode", "lacp"},
        {"mdns", "on"},
        {"lag.lacp-fast", "on"},
        {"lag.primary", "1"},
        {"lag.revert", "on"},
        {"roce.v1", "on"},
        {"roce.cnp", "off"},
        {"roce.dcqcn", "off"},
        {"pfc", "0,3,7"},
        {"pfc", "none"},
        {"pfc", "5"},
        {"echo", "on"},
    };
    uint8_t body[CONFIG_BODY_LEN];
    struct config back;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_string_equal(set_text(rows[i][0], rows[i][1]), "");
        assert_string_equal(get_text(rows[i][0]), rows[i][1]);
    }
    config_body_emit(&config, body);
    config_default(&back);
    assert_true(config_body_parse(&back, body, sizeof(body)));
    config = back;
    assert_string_equal(get_text("address.3.ip"), "fd00::11/64");
    assert_string_equal(get_text("pfc"), "5");
    assert_string_equal(get_text("lag.primary"), "1");
}

static void test_invalid_values_are_refused_with_the_valid_ones(void **state)
{
    static const char *const rows[][3] = {
        {"name", "a\tb", "printable"},
        {"name", "thirty-three-characters-are-1-many", "32"},
        {"name", "", "printable"},
        {"port.0.ipv4", "10.0.0.10", "10.0.0.10/24"},
        {"port.0.ipv4", "10.0.0.10/", "prefix"},
        {"port.0.ipv4", "10.0.0.10/33", "prefix"},
        {"port.0.ipv4", "10.0.0.10/0", "prefix"},
        {"port.0.ipv4", "10.0.0.10/024", "prefix"},
        {"port.0.ipv4", "10.0.0.10/24/24", "prefix"},
        {"port.0.ipv4", "fd00::1/64", "IPv4"},
        {"port.0.ipv6", "10.0.0.1/24", "IPv6"},
        {"port.0.ipv6", "fd00::1/129", "prefix"},
        {"port.0.ipv6", "::ffff:a00:1/64", "IPv6"},
        {"port.0.ipv4-gateway", "fd00::1", "IPv4"},
        {"port.0.ipv6-gateway", "10.0.0.1", "IPv6"},
        {"port.0.dhcp", "yes", "on or off"},
        {"port.0.vlan", "4095", "0 to 4094"},
        {"port.0.vlan", "-1", "0 to 4094"},
        {"port.0.vlan", "0x10", "0 to 4094"},
        {"port.0.vlan", "99999999999", "0 to 4094"},
        {"port.0.priority", "8", "0 to 7"},
        {"port.0.mtu", "1279", "1280 to 9000"},
        {"port.0.mtu", "9001", "1280 to 9000"},
        {"port.0.mtu", "66836", "1280 to 9000"},
        {"port.0.speed", "11", "10 or 25"},
        {"port.0.fec", "kr", "none, fc or rs"},
        {"port.0.lldp", "on", "both, send, receive or off"},
        {"address.0.ip", "10.0.0.11", "prefix"},
        {"address.0.port", "2", "0 or 1"},
        {"lldp.interval", "0", "1 to 3600"},
        {"lldp.hold", "101", "1 to 100"},
        {"sntp.server", "ntp.example", "address"},
        {"sntp.poll", "65536", "1 to 65535"},
        {"lag.mode", "on", "off, active-standby or lacp"},
        {"nvme.profile", "2.0", "newest or datasheet"},
        {"pfc", "8", "0,3,4"},
        {"pfc", "3,0", "0,3,4"},
        {"pfc", "0,", "0,3,4"},
        {"pfc", "1,1", "0,3,4"},
        {"pfc", "01", "0,3,4"},
        {"pfc", "", "0,3,4"},
    };
    struct config before = config;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *said = set_text(rows[i][0], rows[i][1]);
        size_t len = strlen(rows[i][0]);

        if (strncmp(said, rows[i][0], len) != 0 || said[len] != ':' ||
            strstr(said, rows[i][2]) == NULL) {
            fail_msg("%s %s: %s", rows[i][0], rows[i][1], said);
        }
        assert_memory_equal(&config, &before, sizeof(config));
    }
}

static void test_unknown_keys_are_refused(void **state)
{
    char long_key[200];

    (void)state;
    memset(long_key, 'k', sizeof(long_key) - 1);
    long_key[sizeof(long_key) - 1] = '\0';
    assert_string_equal(set_text("mtu", "1500"),
                        "there is no key mtu; the nearest is port.0.mtu");
    assert_string_equal(set_text("", "1500"),
                        "there is no key ; the nearest is pfc");
    assert_string_equal(set_text("port.0", "1500"),
                        "there is no key port.0; the nearest is port.0.ipv4");
    assert_string_equal(
        set_text("port.#.mtu", "1500"),
        "there is no key port.#.mtu; the nearest is port.0.mtu");
    assert_string_equal(set_text("port.2.mtu", "1500"),
                        "port.2.mtu: the ports are 0 and 1");
    assert_string_equal(set_text("address.4.ip", "10.0.0.1/24"),
                        "address.4.ip: a drive has eight addresses: two of "
                        "each port, and address.0 to address.3");
    assert_non_null(
        strstr(set_text("address.10.ip", "none"), "eight addresses"));
    assert_string_equal(strchr(set_text(long_key, "1"), ';'),
                        "; the nearest is name");
    assert_int_equal(strchr(set_text(long_key, "1"), ';') -
                         strstr(set_text(long_key, "1"), "kkk"),
                     40);
}

/* ---- Consistency of the values. */

struct said {
    unsigned int count;
    char text[8][CONFIG_ERROR_MAX + 1];
};

static void note_line(void *ctx, const char *text)
{
    struct said *said = ctx;

    assert_true(said->count < ARRAY_LEN(said->text));
    strcpy(said->text[said->count++], text);
}

static void test_inconsistent_configurations_are_refused(void **state)
{
    static const struct {
        const char *set[4][2]; /* changes to the defaults */
        const char *said;
    } rows[] = {
        {{{"port.0.ipv4", "10.0.0.10/24"}, {"port.1.ipv4", "10.0.1.10/24"}},
         NULL},
        {{{"port.0.ipv4", "10.0.0.10/24"}, {"port.1.ipv4", "10.0.0.10/16"}},
         "port.1.ipv4: 10.0.0.10 is the address port.0.ipv4 already"},
        {{{"port.0.ipv6", "fd00::1/64"}, {"address.2.ip", "fd00::1/64"}},
         "address.2.ip: fd00::1 is the address port.0.ipv6 already"},
        {{{"port.0.ipv4", "10.0.0.0/24"}},
         "port.0.ipv4: 10.0.0.0/24 cannot be the address of a host"},
        {{{"port.0.ipv4", "10.0.0.255/24"}},
         "port.0.ipv4: 10.0.0.255/24 cannot be the address of a host"},
        {{{"port.0.ipv4", "10.0.0.0/31"}}, NULL},
        {{{"port.0.ipv4", "10.0.0.255/32"}}, NULL},
        {{{"port.0.ipv4", "127.0.0.1/8"}},
         "port.0.ipv4: 127.0.0.1/8 cannot be the address of a host"},
        {{{"port.0.ipv4", "224.0.0.9/4"}},
         "port.0.ipv4: 224.0.0.9/4 cannot be the address of a host"},
        {{{"port.0.ipv4", "0.0.0.1/24"}},
         "port.0.ipv4: 0.0.0.1/24 cannot be the address of a host"},
        {{{"port.1.ipv6", "ff02::1/64"}},
         "port.1.ipv6: ff02::1/64 cannot be the address of a host"},
        {{{"port.1.ipv6", "::1/128"}},
         "port.1.ipv6: ::1/128 cannot be the address of a host"},
        {{{"address.0.ip", "::/64"}},
         "address.0.ip: ::/64 cannot be the address of a host"},
        {{{"address.1.port", "1"}},
         "address.1.ip: set it too, or choose 0 for its port and VLAN"},
        {{{"address.1.vlan", "1"}},
         "address.1.ip: set it too, or choose 0 for its port and VLAN"},
        {{{"port.0.ipv4-gateway", "10.0.0.1"}},
         "port.0.ipv4-gateway: set port.0.ipv4 too, or choose none"},
        {{{"port.0.ipv4", "10.0.0.10/24"}, {"port.0.ipv4-gateway", "10.0.0.1"}},
         NULL},
        {{{"port.0.ipv4", "10.0.0.10/24"}, {"port.0.ipv4-gateway", "10.0.1.1"}},
         "port.0.ipv4-gateway: 10.0.1.1 is outside the port's network"},
        {{{"port.0.ipv4", "10.0.0.10/23"}, {"port.0.ipv4-gateway", "10.0.1.1"}},
         NULL},
        {{{"port.0.ipv4", "10.0.0.10/24"},
          {"port.0.ipv4-gateway", "10.0.0.10"}},
         "port.0.ipv4-gateway: 10.0.0.10 is the port's own address"},
        {{{"port.1.ipv4", "10.0.0.10/8"}, {"port.1.ipv4-gateway", "127.0.0.1"}},
         "port.1.ipv4-gateway: 127.0.0.1 cannot be the address of a host"},
        {{{"port.1.ipv6", "fd00::1/64"}, {"port.1.ipv6-gateway", "fe80::1"}},
         NULL},
        {{{"port.1.ipv6", "fd00::1/64"},
          {"port.1.ipv6-gateway", "fd00:0:0:1::1"}},
         "port.1.ipv6-gateway: fd00:0:0:1::1 is outside the port's network"},
        {{{"port.0.speed", "10"}, {"port.1.speed", "10"}, {"port.1.fec", "rs"}},
         "port.1.fec: rs needs 25 Gb/s, but port.1.speed is 10"},
        {{{"port.0.speed", "10"}},
         "port.1.speed: 25 differs from port.0.speed, 10; both ports need the "
         "same speed"},
        {{{"port.0.mtu", "9000"}}, NULL},
        {{{"port.0.mtu", "9000"}, {"lag.mode", "lacp"}},
         "port.1.mtu: 1500 differs from port.0.mtu, 9000; aggregated ports "
         "need "
         "the same MTU"},
        {{{"sntp.server", "224.0.1.1"}},
         "sntp.server: 224.0.1.1 cannot be the address of a host"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct said said = {0};

        config_default(&config);
        for (size_t k = 0; k < 4 && rows[i].set[k][0] != NULL; k++) {
            assert_string_equal(set_text(rows[i].set[k][0], rows[i].set[k][1]),
                                "");
        }
        assert_int_equal(config_check(&config, note_line, &said),
                         rows[i].said != NULL);
        assert_int_equal(said.count, rows[i].said != NULL);
        if (rows[i].said != NULL) {
            assert_string_equal(said.text[0], rows[i].said);
        }
    }
}

static void test_every_mistake_is_reported(void **state)
{
    struct said said = {0};

    (void)state;
    assert_string_equal(set_text("port.0.speed", "10"), "");
    assert_string_equal(set_text("port.0.fec", "rs"), "");
    assert_string_equal(set_text("address.0.ip", "10.0.0.1/24"), "");
    assert_string_equal(set_text("address.3.ip", "10.0.0.1/8"), "");
    assert_int_equal(config_check(&config, note_line, &said), 3);
    assert_int_equal(said.count, 3);
}

/* Text cannot express these mistakes, but the binary form of a host can. */
static void test_ipv4_addresses_in_ipv6_fields_are_mistakes(void **state)
{
    static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
    struct said said = {0};

    (void)state;
    config.port[0].has_ipv6 = true;
    config.port[0].ipv6_prefix = 100;
    memcpy(config.port[0].ipv6, mapped, 16);
    assert_string_equal(set_text("port.1.ipv6", "::5/64"), "");
    memcpy(config.port[1].ipv6_gateway, mapped, 16);
    assert_int_equal(config_check(&config, note_line, &said), 2);
    assert_string_equal(said.text[0],
                        "port.0.ipv6: 10.0.0.1 is an IPv4 address");
    assert_string_equal(said.text[1],
                        "port.1.ipv6-gateway: 10.0.0.1 is an IPv4 address");
}

TEST_FIXTURE(setup_defaults, NULL)
