/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random faults, by the run's seed, during verified I/O; and floods of invalid
 * packets beside verified I/O.
 */
#include <string.h>

#include "firmware/native/native.h"
#include "lib/bytes.h"
#include "net_lib.h"
#include "robust_lib.h"

enum {
    ROUNDS = 40,
    BLOCKS_MAX = 64,
    AREA = 4096, /* Number of blocks. */
    FLOOD_ROUNDS = 8,
    FLOOD_FRAMES = 60,
    SESSIONS = 15,
    /* Long enough that the floods do not delay Keep Alive too much. */
    KATO_MS = 120000,
};

/* ---- Random faults. */

static void verify_random_io(struct conf *conf, struct nvme_host *host,
                             unsigned int rounds)
{
    for (uint32_t i = 0; i < rounds; i++) {
        uint64_t random = conf_random(conf);
        uint32_t blocks = 1 + (uint32_t)(random % BLOCKS_MAX);
        uint64_t lba = (random >> 16) % (AREA - BLOCKS_MAX);

        conf_write(conf, host, (uint16_t)(1 + i % 2), lba, blocks, i);
        conf_verify(conf, host, (uint16_t)(1 + random / 7 % 2), lba, blocks, i);
    }
}

static void mix_faults(struct conf *conf, const uint16_t *chance,
                       unsigned int rounds)
{
    struct robust_hand *hand = robust_hand_new(conf);
    struct nvme_host *host = &robust_host(conf)->host;
    struct host_target target;

    robust_resolve(conf, &(struct conf_session){.io_queues = 2}, &target);
    robust_connect(conf, host, &target);
    memcpy(hand->chance, chance, sizeof(hand->chance));
    hand->is_active = true;
    verify_random_io(conf, host, rounds);
    hand->is_active = false;
    conf_note(conf,
              "%u packets were lost, %u duplicated, %u delayed, %u had a bit "
              "inverted",
              hand->hits[0], hand->hits[1], hand->hits[2], hand->hits[3]);
    for (unsigned int i = 0; i < ARRAY_LEN(hand->chance); i++) {
        conf_check(conf, chance[i] == 0 || hand->hits[i] != 0,
                   "no packet had fault %u", i);
    }
    host_disconnect(host);
    robust_expect_clean(conf);
}

#define MIX(name, rounds, ...)                                                 \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        static const uint16_t chance[4] = {__VA_ARGS__};                       \
                                                                               \
        mix_faults(conf, chance, rounds);                                      \
    }

MIX(mix_lost, ROUNDS, 20, 0, 0, 0)
MIX(mix_twice, ROUNDS, 0, 20, 0, 0)
MIX(mix_late, ROUNDS, 0, 0, 20, 0)
MIX(mix_bent, ROUNDS, 0, 0, 0, 20)
MIX(mix_all, ROUNDS, 5, 5, 5, 5)
MIX(mix_worse, ROUNDS / 2, 30, 30, 30, 30)
MIX(mix_long, ROUNDS * 25, 10, 10, 10, 10)

/* Whole sessions, including the CM exchanges. */
static void mix_sessions(struct conf *conf)
{
    static const uint16_t chance[4] = {10, 10, 10, 10};
    struct robust_hand *hand = robust_hand_new(conf);
    struct nvme_host *host = &robust_host(conf)->host;
    struct host_target target;

    robust_resolve(conf, &(struct conf_session){.io_queues = 2}, &target);
    memcpy(hand->chance, chance, sizeof(hand->chance));
    hand->is_active = true;
    for (unsigned int i = 0; i < SESSIONS; i++) {
        robust_connect(conf, host, &target);
        verify_random_io(conf, host, 2);
        host_disconnect(host);
    }
    hand->is_active = false;
    robust_expect_clean(conf);
}

/* ---- Floods. A changed packet is a copy of one that the host sent. */

struct flood {
    struct conf *conf;
    struct nvme_host *host;
    struct rc *rc;               /* A REQ is made from it. */
    uint8_t last[FRAME_LEN_MAX]; /* The host's last RC request. */
    uint32_t last_len;
};

static enum conf_verdict keep_last_frame(void *ctx,
                                         const struct conf_frame *frame)
{
    struct flood *flood = ctx;
    struct packet packet;

    if (!frame->is_from_target &&
        packet_parse(&packet, frame->data, *frame->len_bytes) &&
        packet.has_bth && packet.bth.dest_qp != GSI_QPN) {
        memcpy(flood->last, frame->data, *frame->len_bytes);
        flood->last_len = *frame->len_bytes;
    }
    return CONF_PASS;
}

typedef size_t make_fn(struct flood *flood, uint8_t *frame);

static void flood_queue_pair(struct conf *conf, make_fn *make)
{
    struct flood *flood = conf_alloc(conf, sizeof(*flood));
    uint8_t frame[FRAME_LEN_MAX];

    flood->conf = conf;
    flood->rc = rc_new(conf, &(struct rc_config){.peer = 2});
    flood->host = conf_connect(
        conf, &(struct conf_session){.io_queues = 2, .kato_ms = KATO_MS});
    conf_set_filter(conf, keep_last_frame, flood);
    for (unsigned int round = 0; round < FLOOD_ROUNDS; round++) {
        conf_write(conf, flood->host, 1, round * 64, 64, round);
        for (unsigned int i = 0; i < FLOOD_FRAMES; i++) {
            conf_send_frame(conf, 0, frame, make(flood, frame), 0);
        }
        conf_verify(conf, flood->host, 2, round * 64, 64, round);
        conf_status(conf, "Keep Alive", host_keep_alive(flood->host),
                    NVME_SC_SUCCESS);
    }
    host_disconnect(flood->host);
    robust_expect_clean(conf);
}

static void fill_random(struct conf *conf, uint8_t *data, size_t len_bytes)
{
    for (size_t i = 0; i < len_bytes; i++) {
        data[i] = (uint8_t)(conf_random(conf) >> 11);
    }
}

static size_t random_len(struct conf *conf, size_t max)
{
    return (size_t)(conf_random(conf) >> 20) % max;
}

static struct packet_path peer_path(struct conf *conf)
{
    const struct conf_peer *peer = conf_peer(conf, 2, 0);
    const struct conf_port *to = &conf_target(conf)->ports[0];

    return (struct packet_path){
        .src_mac = peer->mac,
        .dst_mac = to->mac,
        .src = peer->ip4,
        .dst = to->ip4,
    };
}

/* A frame to the target with any EtherType and random bytes. */
static size_t make_ethernet(struct flood *flood, uint8_t *frame)
{
    static const uint16_t types[] = {0x0800, 0x0806, 0x86dd, 0x8100,
                                     0x8808, 0x8809, 0x8915, 0x88cc};
    size_t len = 60 + random_len(flood->conf, 1400);

    fill_random(flood->conf, frame, len);
    memcpy(frame, conf_target(flood->conf)->ports[0].mac.bytes, 6);
    frame[6] &= 0xfe;
    put_be16(frame + 12, types[conf_random(flood->conf) % ARRAY_LEN(types)]);
    if (frame[12] == 0x88 && frame[13] == 0x08) {
        frame[13] = 0x07; /* No pause frame, which the target would obey. */
    }
    return len;
}

/* Random bytes for RoCE's UDP port. */
static size_t make_udp(struct flood *flood, uint8_t *frame)
{
    struct packet_path path = peer_path(flood->conf);
    uint8_t payload[1024];
    size_t len = random_len(flood->conf, sizeof(payload));

    fill_random(flood->conf, payload, len);
    return packet_udp(frame, &path, 49152, UDP_PORT_ROCE, payload, len);
}

/* A packet with a correct ICRC, and any opcode, queue pair and PSN. */
static size_t make_roce(struct flood *flood, uint8_t *frame)
{
    struct packet_path path = peer_path(flood->conf);
    uint8_t payload[512];
    struct packet_roce roce = {
        .bth =
            {
                .opcode = (uint8_t)conf_random(flood->conf),
                .dest_qp = 2 + (uint32_t)(conf_random(flood->conf) % 0xfffff0),
                .psn = (uint32_t)conf_random(flood->conf) & 0xffffff,
                .ack_requested = true,
            },
        .data = payload,
        .data_len = random_len(flood->conf, sizeof(payload)),
    };

    fill_random(flood->conf, payload, sizeof(payload));
    return packet_roce(frame, &path, &roce);
}

/* A packet for the host's own queue pair, from the host's address, with a wrong
 * ICRC. */
static size_t make_icrc(struct flood *flood, uint8_t *frame)
{
    uint32_t len = flood->last_len;

    memcpy(frame, flood->last, len);
    frame[len - 1 - conf_random(flood->conf) % 4] ^=
        (uint8_t)(1 + conf_random(flood->conf) % 255);
    return len;
}

/* The same, truncated anywhere after the Ethernet header. */
static size_t make_cut(struct flood *flood, uint8_t *frame)
{
    memcpy(frame, flood->last, flood->last_len);
    return 14 + random_len(flood->conf, flood->last_len - 14);
}

static size_t make_mad_of(struct flood *flood, uint8_t *frame,
                          const uint8_t *mad)
{
    struct packet_path path = peer_path(flood->conf);
    struct packet_roce roce = {
        .bth = {.opcode = UD_SEND_ONLY, .dest_qp = GSI_QPN},
        .deth = {.qkey = GSI_QKEY, .src_qp = GSI_QPN},
        .data = mad,
        .data_len = MAD_LEN,
    };

    return packet_roce(frame, &path, &roce);
}

static size_t make_mad(struct flood *flood, uint8_t *frame)
{
    uint8_t mad[MAD_LEN];

    fill_random(flood->conf, mad, sizeof(mad));
    return make_mad_of(flood, frame, mad);
}

/* A CM message of any kind with random fields; a REQ is correct except for its
 * private data, which is never valid for NVMe. */
static size_t make_cm(struct flood *flood, uint8_t *frame)
{
    static const uint16_t kinds[] = {CM_REQ, CM_MRA,  CM_REJ, CM_REP,
                                     CM_RTU, CM_DREQ, CM_DREP};
    struct mad header = {
        .mgmt_class = MAD_CLASS_CM,
        .class_version = MAD_CLASS_VERSION_CM,
        .method = MAD_METHOD_SEND,
        .attribute_id = kinds[conf_random(flood->conf) % ARRAY_LEN(kinds)],
        .transaction_id = conf_random(flood->conf),
    };
    uint8_t mad[MAD_LEN];

    fill_random(flood->conf, mad, sizeof(mad));
    mad_emit(&header, mad);
    return make_mad_of(flood, frame, mad);
}

static size_t make_req(struct flood *flood, uint8_t *frame)
{
    struct mad header = {
        .mgmt_class = MAD_CLASS_CM,
        .class_version = MAD_CLASS_VERSION_CM,
        .method = MAD_METHOD_SEND,
        .attribute_id = CM_REQ,
        .transaction_id = conf_random(flood->conf),
    };
    uint8_t private_data[CM_REQ_PRIVATE_LEN], mad[MAD_LEN];
    struct rc *rc = flood->rc;
    struct cm_req req;

    rc->qpn = 2 + (uint32_t)(conf_random(flood->conf) % 0xfffff0);
    rc->comm_id = 1 + (uint32_t)(conf_random(flood->conf) >> 33);
    rc_make_req(rc, &req, private_data);
    /* An undefined RECFMT. */
    private_data[RDMA_IP_CM_LEN] = (uint8_t)(1 + conf_random(flood->conf) % 99);
    mad_emit(&header, mad);
    cm_req_emit(&req, mad + MAD_HEADER_LEN);
    return make_mad_of(flood, frame, mad);
}

/* ICMP with any type and code, and a correct checksum. */
static size_t make_icmp(struct flood *flood, uint8_t *frame)
{
    struct packet_path path = peer_path(flood->conf);
    uint8_t data[256];

    fill_random(flood->conf, data, sizeof(data));
    return packet_icmp(frame, &path, (uint8_t)conf_random(flood->conf),
                       (uint8_t)conf_random(flood->conf),
                       (uint32_t)conf_random(flood->conf), data,
                       random_len(flood->conf, sizeof(data)));
}

/* The first fragment of a datagram whose rest never comes. */
static size_t make_fragment(struct flood *flood, uint8_t *frame)
{
    struct packet_path path = peer_path(flood->conf);
    uint8_t payload[512];
    size_t len;

    path.may_fragment = true;
    path.ip_id = (uint16_t)conf_random(flood->conf);
    fill_random(flood->conf, payload, sizeof(payload));
    len = packet_ip(frame, &path, IP_PROTOCOL_UDP, payload, sizeof(payload));
    net_ip(frame)[IPV4_FRAGMENT] |= 0x20; /* The more-fragments flag. */
    net_mend_ipv4(frame);
    return len;
}

#define FLOOD(name, make)                                                      \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        flood_queue_pair(conf, make);                                          \
    }

FLOOD(flood_ethernet, make_ethernet)
FLOOD(flood_udp, make_udp)
FLOOD(flood_roce, make_roce)
FLOOD(flood_icrc, make_icrc)
FLOOD(flood_cut, make_cut)
FLOOD(flood_mad, make_mad)
FLOOD(flood_cm, make_cm)
FLOOD(flood_req, make_req)
FLOOD(flood_icmp, make_icmp)
FLOOD(flood_fragment, make_fragment)

#define TEST(id, clause, purpose, fn, ...)                                     \
    CONF_TEST(id, clause, purpose, fn,                                         \
              .is_malformed = true __VA_OPT__(, ) __VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("mix.lost", "IBTA Vol 1 9.7.5",
         "I/O is correct when 2% of all packets are lost", mix_lost),
    TEST("mix.twice", "IBTA Vol 1 9.7.5",
         "I/O is correct when 2% of all packets are duplicated", mix_twice),
    TEST("mix.late", "IBTA Vol 1 9.7.5",
         "I/O is correct when 2% of all packets are delayed", mix_late),
    TEST("mix.bent", "IBTA A17.3.3",
         "I/O is correct when 2% of all packets have a bit inverted", mix_bent),
    TEST("mix.all", "IBTA Vol 1 9.7.5",
         "I/O is correct with lost, duplicated, delayed and damaged packets",
         mix_all),
    TEST("mix.worse", "IBTA Vol 1 9.7.5",
         "I/O is correct when 3% of the packets are lost, and as many "
         "duplicated, delayed, damaged",
         mix_worse),
    TEST("mix.sessions", "IBTA Vol 1 9.7.5, 12.9.8",
         "sessions work when 1% of the packets are lost, and as many "
         "duplicated, delayed, damaged",
         mix_sessions),
    TEST("mix.long", "IBTA Vol 1 9.7.5",
         "1000 rounds of I/O are correct with 1% of the packets lost, "
         "duplicated, delayed, damaged",
         mix_long, .needs = CONF_LONG),
    TEST("flood.ethernet", "IEEE 802.3 4",
         "a flood of random frames does not disturb I/O", flood_ethernet),
    TEST("flood.udp", "IBTA A17.3",
         "a flood of random bytes to RoCE's port does not disturb I/O",
         flood_udp),
    TEST("flood.roce", "IBTA Vol 1 9.6.1",
         "a flood of packets for no queue pair does not disturb I/O",
         flood_roce),
    TEST("flood.icrc", "IBTA A17.3.3",
         "a flood of wrong ICRCs on a live queue pair does not disturb I/O",
         flood_icrc),
    TEST("flood.cut", "IBTA Vol 1 9.6.1",
         "a flood of truncated copies of a host's packets does not disturb I/O",
         flood_cut),
    TEST("flood.mad", "IBTA Vol 1 13.4",
         "a flood of MADs of random bytes does not disturb I/O", flood_mad),
    TEST("flood.cm", "IBTA Vol 1 12.6",
         "a flood of CM messages with random fields does not disturb I/O",
         flood_cm),
    TEST("flood.req", "NVMe-oF 1.1 7.3.6.2",
         "a flood of REQs that are refused does not disturb I/O", flood_req),
    TEST("flood.icmp", "RFC 792",
         "a flood of ICMP messages of any type does not disturb I/O",
         flood_icmp),
    TEST("flood.fragment", "RFC 791 3.2",
         "a flood of incomplete fragments does not disturb I/O",
         flood_fragment),
};
CONF_TESTS(conf_tests_robust_mix, "robust", tests);
