/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits that show only when everything is in use: all possible controllers are
 * connected, and all addresses are in the discovery log.
 *
 * Spec: the data sheet; NVMe over Fabrics 1.1 4.2, 5.3.
 */
#include <stdio.h>
#include <string.h>

#include "limits_lib.h"
#include "nvmeof/wire/discovery.h"

enum {
    ADDRESSES = 8,
    EXTRA = 4, /* The addresses that this test configures. */
    EXTRA_FIRST = 210,
    SETTLE_US = 100000,
    IDLE_US = 5000000,
};

/* ---- Hosts. */

static void hosts_connected(struct conf *conf)
{
    struct rc **rc = conf_alloc(conf, LIMITS_HOSTS * sizeof(struct rc *));
    struct limits *limits = limits_new(conf);

    for (unsigned int i = 0; i < LIMITS_HOSTS; i++) {
        conf_note(conf, "association %u", i + 1);
        rc[i] = rc_open_nvme(conf, &(struct rc_config){0});
    }
    limits_expect_pool(conf, "controllers", LIMITS_HOSTS);
    limits_expect_full(limits, 0, LIMITS_ADMIN_DEPTH);
    for (unsigned int i = 0; i < LIMITS_HOSTS; i++) {
        nvmf_expect_works(rc[i]);
        rc_close(rc[i]);
    }
    limits_expect_idle(conf, IDLE_US);
    conf_expect_alive(conf);
}

/* ---- Addresses. */

static struct ip_addr extra_ip(struct conf *conf, unsigned int i)
{
    struct ip_addr ip = *conf_target_ip(conf, i % CONF_PORTS, false);

    ip.bytes[15] = (uint8_t)(EXTRA_FIRST + i);
    return ip;
}

static void print_ip(char *text, size_t room, const struct ip_addr *ip)
{
    snprintf(text, room, "%u.%u.%u.%u", ip->bytes[12], ip->bytes[13],
             ip->bytes[14], ip->bytes[15]);
}

static void configure_extra_addresses(struct conf *conf, bool is_on)
{
    char text[16], line[80];

    conf_console(conf, "config discard");
    for (unsigned int i = 0; i < EXTRA; i++) {
        struct ip_addr ip = extra_ip(conf, i);

        print_ip(text, sizeof(text), &ip);
        snprintf(line, sizeof(line), "config set address.%u.ip %s%s", i,
                 is_on ? text : "none", is_on ? "/24" : "");
        conf_console(conf, line);
        snprintf(line, sizeof(line), "config set address.%u.port %u", i,
                 is_on ? i % CONF_PORTS : 0);
        conf_console(conf, line);
    }
    conf_console(conf, "config save");
    conf_pass(conf, SETTLE_US);
}

/* Count the records of the NVM subsystem with that address, or with any address
 * (NULL). */
static unsigned int count_records(struct rc *rc, const char *traddr)
{
    uint64_t records = nvmf_discovery_log(rc);
    unsigned int found = 0;

    for (uint64_t i = 0; i < records; i++) {
        const uint8_t *r = nvmf_record(rc, i);

        found += r[DISCOVERY_SUBTYPE] == SUBTYPE_NVM &&
                 (traddr == NULL || strncmp((const char *)r + DISCOVERY_TRADDR,
                                            traddr, strlen(traddr)) == 0);
    }
    return found;
}

/* Eight addresses, four of which this test adds: the log has each of them. */
static void addresses_told(struct conf *conf)
{
    unsigned int before, with, found = 0;
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    char text[16];

    before = count_records(rc, NULL);
    if (!conf_target(conf)->is_ours || before != ADDRESSES - EXTRA) {
        conf_not_applicable(conf,
                            "the drive has %u addresses at the start, not %u",
                            before, ADDRESSES - EXTRA);
    }
    configure_extra_addresses(conf, true);
    with = count_records(rc, NULL);
    for (unsigned int i = 0; i < EXTRA; i++) {
        struct ip_addr ip = extra_ip(conf, i);

        print_ip(text, sizeof(text), &ip);
        found += count_records(rc, text) == 1;
    }
    configure_extra_addresses(conf, false);
    conf_equal(conf, "records of the NVM subsystem", with, ADDRESSES);
    conf_equal(conf, "records with the added addresses", found, EXTRA);
    conf_equal(conf, "records after the addresses were removed",
               count_records(rc, NULL), before);
    rc_close(rc);
}

static const struct conf_test tests[] = {
    CONF_TEST("hosts.connected", "data sheet; NVMe-oF 1.1 4.2",
              "255 associations at once are connected, and all answer",
              hosts_connected),
    CONF_TEST("addresses.told", "data sheet; NVMe-oF 1.1 5.3",
              "the discovery log lists all eight addresses", addresses_told,
              .needs = CONF_NEEDS_CONTROL),
};

CONF_TESTS(conf_tests_limits_more, "limits", tests);
