/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LACP with frames that scapy made (see literal.h): a partner on port 0 only.
 *
 * A drive aggregates its ports only if its settings say so, and only from its
 * next start on. The tests run natively only: in real time, a test that fails
 * would leave a drive whose ports are aggregated. tests/e2e/test_lag.py has
 * Linux's bonding driver as the partner.
 *
 * Left out: which partners a port may be aggregated with, times and limits
 * (tests/unit/net/stack/test_lacp.c).
 */
#include <string.h>

#include "literal.h"
#include "literal_frames.h"
#include "net_lib.h"

enum {                   /* Byte offsets in the frame. */
       PDU = LITERAL_IP, /* The LACPDU, from its subtype on. */
       ACTOR = PDU + 2,  /* A TLV: type and length, then what IDENTITY counts,
                          * then the flags. */
       PARTNER = PDU + 22,
       INFO = 2,
       INFO_SYSTEM = INFO + 2,
       IDENTITY = 14, /* Priority, system, key, port priority, port. */
       FLAGS = INFO + IDENTITY,
       PDU_BYTES = 110,
       HEAD_BYTES = 6 + 6 + 2, /* Both addresses and the type. */
       /* The drive waits two seconds for other ports before it aggregates. */
       AGGREGATED_US = 5000000,
};

static bool is_lacpdu(const struct packet *packet, const void *ctx)
{
    const struct literal *literal = ctx;

    return packet->port == 0 && packet->len_bytes >= HEAD_BYTES + PDU_BYTES &&
           memcmp(packet->frame, literal->bytes, 6) == 0 &&
           memcmp(packet->frame + LITERAL_ETH_TYPE,
                  literal->bytes + LITERAL_ETH_TYPE, 3) == 0;
}

/* The whole LACPDU has the literal bytes. */
static bool is_wanted(const struct packet *packet, const void *ctx)
{
    const struct literal *literal = ctx;

    return is_lacpdu(packet, ctx) &&
           memcmp(packet->frame + PDU, literal->bytes + PDU, PDU_BYTES) == 0;
}

static void start_lacp(struct conf *conf)
{
    if (!conf_target(conf)->is_virtual) {
        conf_not_applicable(conf, "the ports of a drive in real time would "
                                  "stay aggregated if this test failed");
    }
    conf_needs_ip(conf, 0, false);
    conf_console(conf, "config set lag.mode lacp");
    conf_console(conf, "config set lag.lacp-fast off");
    if (strstr(conf_console(conf, "config save"), "error") != NULL) {
        conf_not_run(conf, "the drive does not accept lag.mode lacp");
    }
    conf_reset(conf);
}

/*
 * The literal partner says that it is in sync; the drive's answer must say so,
 * too, and name the partner.
 */
static void aggregate_port(struct conf *conf)
{
    const struct mac_addr *drive = &conf_target(conf)->ports[0].mac;
    struct literal *partner = LITERAL(conf, scapy_lacp_partner);
    struct literal *aggregated = LITERAL(conf, scapy_lacp_aggregated);
    const struct packet *first =
        conf_take_within(conf, is_lacpdu, aggregated, AGGREGATED_US);

    conf_check(conf, first != NULL, "the drive sends no LACPDU");
    memcpy(aggregated->bytes + ACTOR + INFO_SYSTEM, drive->bytes, 6);
    conf_same(conf, "the drive's system, key and port",
              first->frame + ACTOR + INFO, aggregated->bytes + ACTOR + INFO,
              IDENTITY);
    memcpy(partner->bytes + PARTNER + INFO, first->frame + ACTOR + INFO,
           IDENTITY + 1);
    literal_send(conf, partner);
    conf_check(conf,
               conf_take_within(conf, is_wanted, aggregated, AGGREGATED_US) !=
                   NULL,
               "no LACPDU has the literal bytes of an aggregated port: flags "
               "%02x, and the partner that was announced",
               aggregated->bytes[ACTOR + FLAGS]);
}

static void literal_lacp(struct conf *conf)
{
    struct literal *echo = LITERAL(conf, scapy_echo);
    struct literal *reply = LITERAL(conf, scapy_echo_reply);

    start_lacp(conf);
    aggregate_port(conf);
    literal_to_drive(conf, echo);
    literal_to_peer(conf, reply);
    literal_send(conf, echo);
    literal_take(conf, "the echo reply on the aggregated port", LITERAL_L4 + 4,
                 reply->bytes + LITERAL_L4 + 4,
                 reply->len_bytes - LITERAL_L4 - 4);
}

static void literal_marker(struct conf *conf)
{
    struct literal *marker = LITERAL(conf, scapy_marker);
    struct literal *response = LITERAL(conf, scapy_marker_response);

    start_lacp(conf);
    aggregate_port(conf);
    literal_send(conf, marker);
    literal_take(conf, "the literal marker response", PDU,
                 response->bytes + PDU, PDU_BYTES);
}

static const struct conf_test tests[] = {
    CONF_TEST("literal.lacp", "IEEE 802.1AX 5.4.2",
              "a literal LACPDU of a partner in sync makes the drive aggregate "
              "the port",
              literal_lacp, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("literal.marker", "IEEE 802.1AX 5.5.2",
              "a literal marker gets the literal marker response",
              literal_marker, .needs = CONF_NEEDS_CONTROL),
};
CONF_TESTS(conf_tests_net_lacp, "net", tests);
