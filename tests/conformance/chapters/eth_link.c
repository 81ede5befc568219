/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link: its partner disappears, comes back or does not fit; and bit errors.
 *
 * Spec: IEEE 802.3 clauses 46.3.4, 73, 74, 107, 108; docs/hardware/port.md.
 */
#include <string.h>

#include "lib/bytes.h"
#include "net_lib.h"

enum {
    FLAPS = 10,
    DOWN_US = 100000,
    PINGS = 100,
    PING_BYTES = 1400,
    FEC_PINGS = 400,
    FEC_LOST_MAX = 2,
};

static bool is_up(struct conf *conf, unsigned int port)
{
    return strstr(conf_console(conf, port == 0 ? "port 0" : "port 1"),
                  ": up") != NULL;
}

static void expect_down(struct conf *conf, const char *reason)
{
    struct packet_path path = net_path0(conf, false);
    uint32_t rest = net_rest(conf);
    uint8_t frame[128];
    const char *said;

    conf_pass(conf, DOWN_US);
    said = conf_console(conf, "port 0");
    conf_check(conf, strstr(said, "down") != NULL && strstr(said, reason),
               "expected the link down (%s); the console says: %s", reason,
               said);
    net_send(conf, frame, net_echo(frame, &path, rest, "down", 4));
    conf_expect_none(conf, "answer on a link that is down", net_is_reply, &rest,
                     DOWN_US);
}

static void expect_up(struct conf *conf)
{
    struct packet_path path = net_path0(conf, false);

    conf_pass(conf, DOWN_US);
    conf_check(conf, is_up(conf, 0), "the link does not come back");
    net_ping(conf, &path, "up", 2);
}

/* Make a change that takes the link down, then undo it. */
static void down_and_up(struct conf *conf, const char *key, const char *value,
                        const char *reason, const char *usual)
{
    expect_up(conf);
    conf_partner(conf, 0, key, value);
    expect_down(conf, reason);
    conf_partner(conf, 0, key, usual);
    expect_up(conf);
}

static void no_partner(struct conf *conf)
{
    down_and_up(conf, "present", "0", "no partner", "1");
}

static void remote_fault(struct conf *conf)
{
    down_and_up(conf, "fault", "1", "remote fault", "0");
}

static void link_speed(struct conf *conf)
{
    down_and_up(conf, "speed", "10", "speed mismatch", "25");
}

static void fec_rs(struct conf *conf)
{
    down_and_up(conf, "fec", "rs", "FEC mismatch", "auto");
}

static void fec_none(struct conf *conf)
{
    down_and_up(conf, "fec", "none", "FEC mismatch", "auto");
}

static void fec_same(struct conf *conf)
{
    conf_partner(conf, 0, "fec", "fc");
    expect_up(conf);
    conf_partner(conf, 0, "fec", "auto");
    expect_up(conf);
}

static void link_flaps(struct conf *conf)
{
    for (unsigned int i = 0; i < FLAPS; i++) {
        conf_partner(conf, 0, "present", "0");
        conf_pass(conf, DOWN_US / 10);
        conf_partner(conf, 0, "present", "1");
        expect_up(conf);
    }
}

static void link_connection_survives(struct conf *conf)
{
    struct nvme_host *host =
        conf_connect(conf, &(struct conf_session){.io_queues = 1});

    conf_write(conf, host, 1, 0, 16, 1);
    conf_partner(conf, 0, "present", "0");
    conf_pass(conf, DOWN_US);
    conf_partner(conf, 0, "present", "1");
    conf_pass(conf, DOWN_US);
    conf_verify(conf, host, 1, 0, 16, 1);
    conf_write(conf, host, 1, 16, 16, 2);
    conf_verify(conf, host, 1, 16, 16, 2);
    host_disconnect(host);
}

static void not_afterwards(struct conf *conf)
{
    struct packet_path path = net_path0(conf, false);
    uint32_t rest = net_rest(conf);
    uint8_t frame[128];

    conf_partner(conf, 0, "present", "0");
    conf_pass(conf, DOWN_US);
    net_send(conf, frame, net_echo(frame, &path, rest, "lost", 4));
    conf_pass(conf, DOWN_US);
    conf_partner(conf, 0, "present", "1");
    expect_up(conf);
    conf_expect_none(conf,
                     "answer to a frame that was sent while the link was down",
                     net_is_reply, &rest, DOWN_US);
}

static void other_port_works(struct conf *conf)
{
    for (unsigned int down = 0; down < CONF_PORTS; down++) {
        unsigned int up = 1 - down;

        conf_partner(conf, down, "present", "0");
        conf_pass(conf, DOWN_US);
        conf_check(conf, !is_up(conf, down),
                   "port %u is up without a link partner", down);
        conf_check(conf, is_up(conf, up),
                   "port %u went down with the other port", up);
        net_settle(conf, up);
        conf_partner(conf, down, "present", "1");
        conf_pass(conf, DOWN_US);
        net_settle(conf, down);
    }
}

static void both_ports(struct conf *conf)
{
    for (unsigned int i = 0; i < 8; i++) {
        net_settle(conf, i % CONF_PORTS);
    }
}

/* ---- Bit errors. */

static void send_pings(struct conf *conf)
{
    struct packet_path path = net_path0(conf, false);
    uint8_t *data = conf_alloc(conf, PING_BYTES);

    net_pattern(data, PING_BYTES);
    for (unsigned int i = 0; i < PINGS; i++) {
        net_ping(conf, &path, data, PING_BYTES);
    }
}

static void no_errors(struct conf *conf)
{
    conf_partner(conf, 0, "ber", "0");
    send_pings(conf);
}

/*
 * Nine wrong bits are to be expected in all those frames, there and back, which
 * would be as many lost frames. FC-FEC corrects them, except in one frame of
 * 70,000, which has two wrong bits in one codeword.
 */
static void ber_corrected(struct conf *conf)
{
    struct packet_path path = net_path0(conf, false);
    uint8_t *frame = conf_alloc(conf, FRAME_LEN_MAX);
    uint8_t *data = conf_alloc(conf, PING_BYTES);
    unsigned int lost = 0;

    net_pattern(data, PING_BYTES);
    conf_partner(conf, 0, "ber", "1e-6");
    for (unsigned int i = 0; i < FEC_PINGS; i++) {
        uint32_t rest = net_rest(conf);

        net_send(conf, frame, net_echo(frame, &path, rest, data, PING_BYTES));
        lost += conf_take_within(conf, net_is_reply, &rest, DOWN_US) == NULL;
    }
    conf_partner(conf, 0, "ber", "0");
    conf_check(conf, lost <= FEC_LOST_MAX, "%u of %u pings were lost", lost,
               FEC_PINGS);
}

static void ber_hopeless(struct conf *conf)
{
    struct packet_path path = net_path0(conf, false);
    uint8_t *frame = conf_alloc(conf, FRAME_LEN_MAX);
    uint8_t *data = conf_alloc(conf, PING_BYTES);
    uint32_t rest = net_rest(conf);

    net_pattern(data, PING_BYTES);
    conf_partner(conf, 0, "ber", "0.1");
    for (unsigned int i = 0; i < 8; i++) {
        net_send(conf, frame, net_echo(frame, &path, rest, data, PING_BYTES));
    }
    conf_expect_none(conf, "answer to frames with a tenth of their bits wrong",
                     net_is_reply, &rest, DOWN_US);
    conf_partner(conf, 0, "ber", "0");
    net_ping(conf, &path, data, PING_BYTES);
}

static const struct conf_test tests[] = {
    CONF_TEST("link.both-ports", "IEEE 802.3 1.4",
              "each port answers on its own wire", both_ports,
              .needs = CONF_NEEDS_TWO_PORTS),
    CONF_TEST(
        "link.no-partner", "IEEE 802.3 46.3.4",
        "the link is down, with the reason, while it has no partner; then up",
        no_partner, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("link.remote-fault", "IEEE 802.3 46.3.4.3",
              "nothing is sent during a remote fault; then the link is up",
              remote_fault, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("link.speed", "IEEE 802.3 107.1",
              "the link is down, with the reason, while the speeds differ",
              link_speed, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("link.fec-rs", "IEEE 802.3 108.1",
              "the link is down while only one end has RS-FEC", fec_rs,
              .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("link.fec-none", "IEEE 802.3 74.1",
              "the link is down while only one end has no FEC", fec_none,
              .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("link.fec-same", "IEEE 802.3 74.1",
              "the link is up with a partner that is fixed to the same FEC",
              fec_same, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("link.flaps", "IEEE 802.3 46.3.4",
              "the link comes back each time, 10 times", link_flaps,
              .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("link.connection-survives", "IBTA Vol 1 9.7.6.1.3",
              "a connection survives a link that is down for 0.1 s",
              link_connection_survives, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("link.not-afterwards", "IEEE 802.3 46.3.4",
              "frames sent while the link was down are not answered later",
              not_afterwards, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("link.other-port", "IEEE 802.3 1.4",
              "a port whose link is down does not affect the other port",
              other_port_works,
              .needs = CONF_NEEDS_CONTROL | CONF_NEEDS_TWO_PORTS),
    CONF_TEST("ber.none", "IEEE 802.3 107.1",
              "no frame is lost without bit errors", no_errors,
              .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("ber.corrected", "IEEE 802.3 74.7",
              "FEC corrects a bit error rate of 10^-6, so that hardly a frame "
              "is lost",
              ber_corrected, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST(
        "ber.hopeless", "IEEE 802.3 4A.2.9",
        "no frame is received when there are too many bit errors to correct",
        ber_hopeless, .needs = CONF_NEEDS_CONTROL),
};
CONF_TESTS(conf_tests_eth_link, "eth", tests);
