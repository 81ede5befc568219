/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses and peers: the drive's eight addresses; 1024 neighbours, of which
 * those with live connections are kept; the four connections of the diagnostic
 * service; and hosts that all fall silent.
 */
#include <stdio.h>
#include <string.h>

#include "firmware/native/native.h"
#include "limits_lib.h"
#include "net/wire/nd.h"
#include "roce_lib.h"

enum {
    NEIGHBOURS = 1024,
    /* Each stranger causes two frames; a ring of 128 holds them unread. */
    BURST = 32,
    ECHO_CONNECTIONS = 4,
    IDLE_US = 5000000,
    SILENT_HOSTS = 100,
    KATO_MS = 10000, /* Longer than it takes all of them to connect. */
};

/* ---- Strangers use IPv6, because a /24 has no 1024 addresses. */

static struct packet_path path_of(struct conf *conf,
                                  const struct conf_peer *from)
{
    return (struct packet_path){
        .src_mac = from->mac,
        .dst_mac = conf_target(conf)->ports[from->port].mac,
        .src = from->ip6,
        .dst = *conf_target_ip(conf, from->port, true),
        .ttl = ND_HOP_LIMIT,
    };
}

static void need_v6(struct conf *conf)
{
    if (ip_addr_is_unspecified(conf_target_ip(conf, 0, true))) {
        conf_not_applicable(conf, "the target has no IPv6 address");
    }
}

/* A neighbour solicitation for the target's address, which names its sender. */
static void send_solicitation(struct conf *conf, const struct conf_peer *from)
{
    struct packet_path path = path_of(conf, from);
    struct nd_neighbor nd = {
        .type = ND_NEIGHBOR_SOLICIT,
        .has_lladdr = true,
        .lladdr = from->mac,
        .target = path.dst,
    };
    uint8_t message[ND_NEIGHBOR_MAX_LEN], frame[128];
    size_t len = nd_neighbor_emit(&nd, &path.src, &path.dst, message);

    conf_send_frame(conf, from->port, frame,
                    packet_ip(frame, &path, IP_PROTOCOL_ICMPV6, message, len),
                    0);
}

static void ask_echo(struct conf *conf, const struct conf_peer *from,
                     uint32_t rest)
{
    struct packet_path path = path_of(conf, from);
    uint8_t frame[128];

    conf_send_frame(
        conf, from->port, frame,
        packet_icmp(frame, &path, ICMPV6_ECHO_REQUEST, 0, rest, "limits", 6),
        0);
}

struct reply_wanted {
    uint32_t rest;
    struct mac_addr mac;
};

static bool is_reply(const struct packet *packet, const void *ctx)
{
    const struct reply_wanted *wanted = ctx;

    return packet->has_icmp && packet->is_v6 &&
           packet->icmp.type == ICMPV6_ECHO_REPLY &&
           packet->icmp.rest == wanted->rest &&
           mac_addr_equal(&packet->eth.dst, &wanted->mac);
}

/* Let `count` strangers, beginning with number `first`, ask for an echo; the
 * target answers each. */
static void meet_strangers(struct conf *conf, unsigned int first,
                           unsigned int count)
{
    for (unsigned int at = 0; at < count; at += BURST) {
        unsigned int end = MIN(at + BURST, count);

        for (unsigned int i = at; i < end; i++) {
            struct conf_peer from = conf_stranger(conf, first + i, 0);

            send_solicitation(conf, &from);
            ask_echo(conf, &from, first + i);
        }
        for (unsigned int i = at; i < end; i++) {
            struct conf_peer from = conf_stranger(conf, first + i, 0);
            struct reply_wanted wanted = {first + i, from.mac};

            conf_take(conf, "an echo reply", is_reply, &wanted);
        }
        conf_flush(conf);
        /* The drive limits its replies to one per 500 us. */
        conf_pass(conf, BURST * 1000);
    }
}

/* The number of neighbours that are known at a time is a promise of this drive
 * only. */
static void need_ours(struct conf *conf)
{
    if (!conf_target(conf)->is_ours) {
        conf_not_applicable(
            conf, "these limits are specific to this project's drive");
    }
}

static void peers_1024(struct conf *conf)
{
    need_v6(conf);
    need_ours(conf);
    meet_strangers(conf, 1, NEIGHBOURS);
    meet_strangers(conf, 1, NEIGHBOURS); /* Each of them asks again. */
    conf_expect_alive(conf);
}

static void peers_1025(struct conf *conf)
{
    need_v6(conf);
    need_ours(conf);
    meet_strangers(conf, 1, NEIGHBOURS);
    /* These peers replace the oldest neighbours. */
    meet_strangers(conf, NEIGHBOURS + 1, 8);
    meet_strangers(conf, 1, 8);
    if (conf_target(conf)->is_ours) {
        unsigned long used = limits_pool(conf, "neighbours");

        conf_check(conf, used <= NEIGHBOURS && used >= NEIGHBOURS - 8,
                   "%lu neighbours are known", used);
    }
    conf_expect_alive(conf);
}

/* A connection's neighbour is kept, however many others come. */
static void peers_beside(struct conf *conf)
{
    struct nvme_host *host;
    struct rc *rc;

    need_v6(conf);
    need_ours(conf);
    host = conf_connect(conf, &(struct conf_session){.io_queues = 1});
    rc = rc_open_controller(conf, &(struct rc_config){.peer = 3});
    for (unsigned int round = 0; round < 2; round++) {
        conf_write(conf, host, 1, 0, 64, round);
        meet_strangers(conf, 1 + round * NEIGHBOURS, NEIGHBOURS + 16);
        conf_verify(conf, host, 1, 0, 64, round);
        nvmf_expect_works(rc);
    }
    rc_close(rc);
    host_disconnect(host);
    conf_expect_alive(conf);
}

/* Connect a queue pair from the address of stranger `number`. */
static int connect_stranger(struct limits *limits, unsigned int number)
{
    struct conf_peer from = conf_stranger(limits->conf, number, 0);

    return limits_ask(
        limits, &(struct limits_ask){.qid = 1, .depth = 2, .from = &from});
}

static void peers_connected(struct conf *conf)
{
    struct limits *limits;
    /* Some neighbours are the tester's own addresses. */
    unsigned int count = NEIGHBOURS - 8;
    int one = LIMITS_NO_SLOT;

    need_v6(conf);
    limits = limits_new(conf);
    for (unsigned int i = 0; i < count; i++) {
        one = connect_stranger(limits, 5000 + i);
        conf_check(conf, one != LIMITS_NO_SLOT,
                   "the connection from address %u was refused: REJ %u, NVMe "
                   "status %u",
                   i + 1, limits->rej_reason, limits->rej_status);
    }
    conf_check(conf, limits_pool(conf, "neighbours-held") >= count,
               "%lu neighbours are kept for %u connections",
               limits_pool(conf, "neighbours-held"), count);
    /* The few places that are left suffice for other peers. */
    meet_strangers(conf, 1, 4);
    conf_expect_alive(conf);
    limits_release(limits, one);
    conf_check(conf, connect_stranger(limits, 9000) != LIMITS_NO_SLOT,
               "another address was refused after one connection had ended");
    limits_release_all(limits);
    limits_expect_idle(conf, IDLE_US);
    conf_note(
        conf,
        "as many other addresses connect once all connections have ended");
    limits->next = 0;
    limits->first_comm_id += LIMITS_SLOTS;
    limits->first_qpn += LIMITS_SLOTS;
    for (unsigned int i = 0; i < 64; i++) {
        conf_check(conf, connect_stranger(limits, 20000 + i) != LIMITS_NO_SLOT,
                   "address %u of the second set was refused", i + 1);
    }
    limits_release_all(limits);
    conf_expect_alive(conf);
}

/* ---- Eight addresses of the drive's own. */

static void set_config(struct conf *conf, const char *key, const char *value)
{
    char line[120];
    const char *said;

    snprintf(line, sizeof(line), "config set %s %s", key, value);
    said = conf_console(conf, line);
    conf_check(conf, strstr(said, "error") == NULL, "%s: %s", line, said);
}

static void save_config(struct conf *conf)
{
    const char *said = conf_console(conf, "config save");

    conf_check(conf, strstr(said, "error") == NULL, "config save: %s", said);
}

/* An address that the test gives the drive, beyond those of peers and
 * strangers. */
static struct ip_addr extra_ip(struct conf *conf, unsigned int i)
{
    struct ip_addr ip = *conf_target_ip(conf, i % 2, false);

    ip.bytes[15] = (uint8_t)(200 + i);
    return ip;
}

static void set_extra(struct conf *conf, unsigned int i)
{
    struct ip_addr ip = extra_ip(conf, i);
    char key[32], value[32];

    snprintf(key, sizeof(key), "address.%u.ip", i);
    snprintf(value, sizeof(value), "%u.%u.%u.%u/24", ip.bytes[12], ip.bytes[13],
             ip.bytes[14], ip.bytes[15]);
    set_config(conf, key, value);
    snprintf(key, sizeof(key), "address.%u.port", i);
    set_config(conf, key, i % 2 == 0 ? "0" : "1");
}

static void unset_extra(struct conf *conf)
{
    for (unsigned int i = 0; i < 4; i++) {
        char key[32];

        snprintf(key, sizeof(key), "address.%u.port", i);
        set_config(conf, key, "0");
        snprintf(key, sizeof(key), "address.%u.ip", i);
        set_config(conf, key, "none");
    }
    save_config(conf);
}

static void use_address(struct conf *conf, const struct conf_session *session)
{
    struct conf_session with_queue = *session;
    struct nvme_host *host;

    with_queue.io_queues = 1;
    host = conf_connect(conf, &with_queue);
    conf_write(conf, host, 1, 0, 8, session->port);
    conf_verify(conf, host, 1, 0, 8, session->port);
    host_disconnect(host);
}

static void addresses_8(struct conf *conf)
{
    for (unsigned int port = 0; port < 2; port++) {
        if (ip_addr_is_unspecified(conf_target_ip(conf, port, false)) ||
            ip_addr_is_unspecified(conf_target_ip(conf, port, true))) {
            conf_not_applicable(
                conf, "port %u lacks an IPv4 or an IPv6 address", port);
        }
    }
    conf_console(conf, "config discard");
    for (unsigned int i = 0; i < 4; i++) {
        set_extra(conf, i);
    }
    save_config(conf);
    conf_pass(conf, 100000);
    for (unsigned int i = 0; i < 4; i++) {
        use_address(conf, &(struct conf_session){
                              .port = i % 2,
                              .target_ip = extra_ip(conf, i),
                          });
        use_address(conf,
                    &(struct conf_session){.port = i % 2, .is_v6 = i >= 2});
    }
    conf_note(conf, "there is no room for a ninth address");
    conf_check(conf,
               strstr(conf_console(conf, "config set address.4.ip 10.9.9.9/24"),
                      "error") != NULL,
               "the ninth address was accepted");
    use_address(conf, &(struct conf_session){.target_ip = extra_ip(conf, 0)});
    unset_extra(conf);
    conf_expect_alive(conf);
}

/* An address is removed and configured again. */
static void addresses_again(struct conf *conf)
{
    conf_console(conf, "config discard");
    for (unsigned int i = 0; i < 3; i++) {
        set_extra(conf, 0);
        save_config(conf);
        conf_pass(conf, 100000);
        use_address(conf,
                    &(struct conf_session){.target_ip = extra_ip(conf, 0)});
        unset_extra(conf);
    }
    conf_expect_alive(conf);
}

/* ---- The diagnostic service's connections. */

static void expect_echo_refused(struct conf *conf)
{
    struct rc *rc = rc_new(
        conf, &(struct rc_config){.service = RC_SERVICE_ECHO, .peer = 6});
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    struct cm_req req;
    struct cm_rej rej;

    rc_make_req(rc, &req, private_data);
    rc_send_req(rc, &req);
    rc_take_rej(rc, &rej);
    conf_equal(conf, "message rejected (0: REQ)", rej.message, CM_ANSWERS_REQ);
}

static void echo_connections(struct conf *conf)
{
    struct echo_rc *echo[ECHO_CONNECTIONS];

    for (unsigned int i = 0; i < ECHO_CONNECTIONS; i++) {
        echo[i] = roce_echo(conf, &(struct rc_config){.peer = i}, 0, 0);
    }
    expect_echo_refused(conf);
    for (unsigned int i = 0; i < ECHO_CONNECTIONS; i++) {
        roce_expect_works(echo[i]);
    }
    rc_close(echo[1]->rc);
    echo[1] = roce_echo(conf, &(struct rc_config){.peer = 5}, 0, 0);
    expect_echo_refused(conf);
    for (unsigned int i = 0; i < ECHO_CONNECTIONS; i++) {
        roce_expect_works(echo[i]);
        rc_close(echo[i]->rc);
    }
    conf_expect_alive(conf);
}

/* The diagnostic service has its own budget, apart from NVMe's. */
static void echo_beside(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    struct echo_rc *echo;

    limits_fill_depth(limits, LIMITS_DEPTH);
    echo = roce_echo(conf, &(struct rc_config){.peer = 1}, 0, 0);
    limits_expect_full(limits, 1, 2);
    roce_expect_works(echo);
    limits_expect_pool(conf, "echo-connections", 1);
    limits_release_all(limits);
    roce_expect_works(echo);
    rc_close(echo->rc);
    limits_expect_idle(conf, IDLE_US);
}

/* ---- Hosts that all fall silent. */

static void silent_hosts(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    struct nvme_host *hosts = conf_alloc(conf, SILENT_HOSTS * sizeof(*hosts));

    for (unsigned int i = 0; i < SILENT_HOSTS; i++) {
        native_host_add(conf_host(conf), &hosts[i], 1);
        conf_connect(conf, &(struct conf_session){
                               .io_queues = 1,
                               .kato_ms = KATO_MS,
                               .host_number = (uint8_t)i,
                               .on = &hosts[i],
                           });
    }
    limits_expect_pool(conf, "controllers", SILENT_HOSTS);
    for (unsigned int i = 0; i < SILENT_HOSTS; i++) {
        host_fall_silent(&hosts[i]);
    }
    limits_expect_idle(conf, KATO_MS * UINT64_C(1000) * 3);
    for (unsigned int i = 0; i < SILENT_HOSTS; i++) {
        host_vanish(&hosts[i]);
    }
    limits_fill_depth(limits, LIMITS_DEPTH);
    limits_expect_full(limits, 1, 2);
    limits_release_all(limits);
    conf_expect_alive(conf);
}

static const struct conf_test tests[] = {
    CONF_TEST("peers.1024", "data sheet; RFC 4861 7.3",
              "1024 peers are answered, and all of them again", peers_1024),
    CONF_TEST("peers.one-more", "data sheet; RFC 4861 7.3",
              "new peers replace the oldest ones", peers_1025,
              .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("peers.beside", "data sheet",
              "many other peers do not disturb connections", peers_beside),
    CONF_TEST(
        "peers.connected", "data sheet",
        "connections from 1016 addresses work, and 1016 others after them",
        peers_connected, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("addresses.eight", "data sheet",
              "eight addresses work, and the ninth is refused", addresses_8,
              .needs = CONF_NEEDS_CONTROL | CONF_NEEDS_TWO_PORTS),
    CONF_TEST("addresses.again", "data sheet",
              "an address can be removed and configured again", addresses_again,
              .needs = CONF_NEEDS_CONTROL),
    CONF_TEST(
        "echo.connections", "docs/echo.md",
        "the diagnostic service takes four connections and refuses the fifth",
        echo_connections, .needs = CONF_NEEDS_ECHO),
    CONF_TEST("echo.beside", "docs/echo.md",
              "the diagnostic service takes connections while NVMe's budget is "
              "used up",
              echo_beside, .needs = CONF_NEEDS_ECHO | CONF_NEEDS_CONTROL),
    CONF_TEST("hosts.silent", "NVMe 1.4 7.12.1",
              "the resources of 100 hosts that fall silent are released",
              silent_hosts, .needs = CONF_NEEDS_CONTROL | CONF_LONG),
};
CONF_TESTS(conf_tests_limits_peer, "limits", tests);
