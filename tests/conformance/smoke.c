/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One test of each way to be a peer: when these fail, no other test can pass.
 */
#include <string.h>

#include "conform.h"
#include "rc.h"

static bool is_echo_reply(const struct packet *packet, const void *ctx)
{
    return packet->has_icmp && packet->icmp.type == ICMP_ECHO_REPLY &&
           ip_addr_equal(&packet->src, ctx);
}

static void smoke_ping(struct conf *conf)
{
    struct conf_peer *peer = conf_peer(conf, 0, 0);
    const struct conf_target *target = conf_target(conf);
    struct packet_path path = {
        .src_mac = peer->mac,
        .dst_mac = target->ports[0].mac,
        .src = peer->ip4,
        .dst = target->ports[0].ip4,
    };
    const struct packet *reply;
    uint8_t frame[FRAME_LEN_MAX];

    conf_send_frame(conf, 0, frame,
                    packet_icmp(frame, &path, ICMP_ECHO_REQUEST, 0, 0x12340001,
                                "conformance", 11),
                    0);
    reply = conf_take(conf, "an echo reply", is_echo_reply, &path.dst);
    conf_equal(conf, "identifier and sequence number", reply->icmp.rest,
               0x12340001);
    conf_same(conf, "echo data", reply->l4 + ICMP_LEN, "conformance", 11);
}

static void by_hand(struct conf *conf)
{
    struct rc *rc = rc_open_controller(conf, &(struct rc_config){0});
    struct nvme_sqe identify = {.opcode = ADMIN_IDENTIFY,
                                .cdw10 = CNS_CONTROLLER};
    struct sgl sgl = rc_keyed(rc, 0, 4096);

    conf_status(conf, "Identify Controller",
                rc_command(rc, &identify, &sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    conf_same(conf, "SUBNQN in Identify Controller", rc->mem + 768,
              conf_target(conf)->nqn, strlen(conf_target(conf)->nqn));
    rc_close(rc);
}

static void by_host(struct conf *conf)
{
    struct nvme_host *host =
        conf_connect(conf, &(struct conf_session){.io_queues = 2});

    conf_write(conf, host, 1, 0, 16, 1);
    conf_verify(conf, host, 2, 0, 16, 1);
    host_disconnect(host);
    conf_expect_alive(conf);
}

static const struct conf_test tests[] = {
    CONF_TEST("ping", "RFC 792", "an echo request is answered", smoke_ping),
    CONF_TEST("by-hand", "NVMe-oF 1.1 3.3",
              "a hand-made host connects, enables and identifies a controller",
              by_hand),
    CONF_TEST("by-host", "NVMe-oF 1.1 1.5",
              "a well-behaved host reads back what it wrote", by_host),
};
CONF_TESTS(conf_tests_smoke, "smoke", tests);
