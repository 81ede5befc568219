/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/store/config.h"
#include "lib/bytes.h"
#include "lib/crc32.h"

#include <string.h>

static const struct config sample = {
    .sequence = 41,
    .port =
        {
            {
                .has_ipv4 = true,
                .ipv4 = {10, 0, 0, 10},
                .ipv4_prefix = 24,
                .ipv4_gateway = {10, 0, 0, 1},
                .has_ipv6 = true,
                .ipv6 = {0xfd, [15] = 9},
                .ipv6_prefix = 64,
                .ipv6_gateway = {0xfe, 0x80, [15] = 1},
                .has_slaac = true,
                .is_probed = true,
                .vlan = 4094,
                .priority = 5,
                .mtu_bytes = 4200,
                .speed_gbps = 25,
                .fec = CONFIG_FEC_RS,
            },
            {.mtu_bytes = 1500, .speed_gbps = 10, .fec = CONFIG_FEC_NONE},
        },
    .services =
        {
            .has_dhcp = {false, true},
            .lldp = {CONFIG_LLDP_RECEIVE, CONFIG_LLDP_OFF},
            .lldp_hold = 3,
            .lldp_interval_s = 3600,
            .sntp_poll_s = 64,
            .sntp_server = {[10] = 0xff, 0xff, 10, 0, 0, 1},
            .name = "exactly-thirty-two-characters-ok",
        },
    .network =
        {
            .extra =
                {
                    {true, 1, 32, {[10] = 0xff, 0xff, 10, 0, 0, 11}, 7},
                    {0},
                    {true, 0, 128, {0xfd, [15] = 11}, 0},
                    {true, 1, 0, {0xfd, [15] = 12}, 4094},
                },
            .lag = CONFIG_LAG_LACP,
            .lacp_is_fast = true,
            .lag_primary = 1,
            .has_echo = true,
            .has_cnp = true,
            .pfc_priorities = 0x81,
        },
    .aoe = {.exports = {0x15, 0x5, 0, 0x80000000}, .shelf = 0xfffe},
};

static void emit_sample(uint8_t *buf)
{
    memset(buf, 0xa5, CONFIG_LEN);
    config_emit(&sample, buf);
}

static void seal_block(uint8_t *buf, size_t body_len)
{
    uint32_t crc = crc32_update(0, buf, 20);

    put_le32(buf + 20, crc32_update(crc, buf + CONFIG_HEADER_LEN, body_len));
}

static void test_config_survives_the_round_trip(void **state)
{
    uint8_t buf[CONFIG_LEN];
    struct config config;

    (void)state;
    emit_sample(buf);
    assert_true(config_parse(&config, buf, sizeof(buf)));
    assert_memory_equal(&config, &sample, sizeof(config));
}

static void test_config_default_is_valid(void **state)
{
    uint8_t buf[CONFIG_LEN];
    struct config out, in;

    (void)state;
    config_default(&out);
    config_emit(&out, buf);
    assert_true(config_parse(&in, buf, sizeof(buf)));
    assert_false(in.port[0].has_ipv4);
    assert_int_equal(in.port[1].fec, CONFIG_FEC_FC);
    assert_int_equal(in.port[1].mtu_bytes, 1500);
    assert_true(in.network.has_dcqcn);
    assert_true(in.network.has_cnp);
    assert_int_equal(in.network.pfc_priorities, 0xff);
    assert_int_equal(in.network.lag, CONFIG_LAG_OFF);
    assert_false(in.network.has_echo);
}

static void test_config_skips_fields_of_later_versions(void **state)
{
    uint8_t buf[CONFIG_LEN + 100];
    struct config config;

    (void)state;
    emit_sample(buf);
    memset(buf + CONFIG_LEN, 0x77, 100);
    put_le16(buf + 10, CONFIG_BODY_LEN + 100);
    seal_block(buf, CONFIG_BODY_LEN + 100);
    assert_true(config_parse(&config, buf, sizeof(buf)));
    assert_memory_equal(&config, &sample, sizeof(config));
    assert_false(config_parse(&config, buf, sizeof(buf) - 1));
}

/* Blocks of older firmware end after the ports, or after the services. */
static void test_config_of_older_versions_has_defaults(void **state)
{
    uint8_t buf[CONFIG_LEN];
    struct config config, defaults;

    (void)state;
    config_default(&defaults);
    emit_sample(buf);
    put_le16(buf + 10, CONFIG_BODY_MIN);
    seal_block(buf, CONFIG_BODY_MIN);
    assert_true(
        config_parse(&config, buf, CONFIG_HEADER_LEN + CONFIG_BODY_MIN));
    assert_memory_equal(&config.services, &defaults.services,
                        sizeof(config.services));
    assert_memory_equal(&config.network, &defaults.network,
                        sizeof(config.network));
    assert_memory_equal(&config.port, &sample.port, sizeof(config.port));
    put_le16(buf + 10, CONFIG_BODY_MIN + CONFIG_SERVICES_LEN);
    seal_block(buf, CONFIG_BODY_MIN + CONFIG_SERVICES_LEN);
    assert_true(config_parse(&config, buf, sizeof(buf)));
    assert_memory_equal(&config.services, &sample.services,
                        sizeof(config.services));
    assert_memory_equal(&config.network, &defaults.network,
                        sizeof(config.network));
}

static void test_config_refuses_every_truncation(void **state)
{
    uint8_t buf[CONFIG_LEN];
    struct config config;

    (void)state;
    emit_sample(buf);
    for (size_t len = 0; len < sizeof(buf); len++) {
        assert_false(config_parse(&config, buf, len));
    }
}

static void test_config_refuses_every_bit_flip(void **state)
{
    uint8_t buf[CONFIG_LEN];
    struct config config;

    (void)state;
    emit_sample(buf);
    for (size_t bit = 0; bit < 8 * sizeof(buf); bit++) {
        buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(config_parse(&config, buf, sizeof(buf)));
        buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void test_config_refuses_wrong_values_with_a_good_crc(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } row[] = {
        {8, 2},          /* version */
        {10, 127},       /* body shorter than the minimum */
        {24 + 0, 0x10},  /* unknown flag */
        {24 + 49, 0xff}, /* VLAN */
        {24 + 50, 8},    /* priority */
        {24 + 1, 40},    /* speed */
        {24 + 2, 3},     /* FEC */
        {24 + 5, 0},     /* MTU 104 */
        {24 + 5, 0x24},  /* MTU 9320 */
        {24 + 6, 33},    /* IPv4 prefix */
        {24 + 7, 129},   /* IPv6 prefix */
        {88 + 1, 0},     /* the second port's speed */
        {152 + 0, 4},    /* DHCP on a third port */
        {152 + 1, 4},    /* LLDP */
        {152 + 2, 4},    /* LLDP of the second port */
        {152 + 3, 101},  /* hold */
        {152 + 5, 15},   /* an interval of more than an hour */
        {152 + 24, 0},   /* a name that begins after its end */
        {152 + 25, 31},  /* a name that cannot be printed */
        {216 + 0, 3},    /* an address of a third port */
        {216 + 1, 33},   /* IPv4 prefix */
        {216 + 3, 0xff}, /* VLAN */
        {216 + 41, 129}, /* IPv6 prefix */
        {216 + 20, 1},   /* an address that is all zero */
        {216 + 80, 3},   /* aggregation */
        {216 + 81, 8},   /* unknown flags */
        {216 + 82, 128},  {216 + 83, 8}, {216 + 91, 3},
        {312, 0x55}, /* more than six runs of namespaces, with the sample's */
        {312 + 16, 0xff}, /* no shelf */
    };
    uint8_t buf[CONFIG_LEN];
    struct config config;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        emit_sample(buf);
        buf[row[i].at] = row[i].value;
        seal_block(buf, get_le16(buf + 10));
        assert_false(config_parse(&config, buf, sizeof(buf)));
    }
}
