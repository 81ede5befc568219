/* SPDX-License-Identifier: BSD-2-Clause */
#include "conform.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "firmware/hal/time.h"
#include "firmware/native/native.h"
#include "internal.h"
#include "late.h"
#include "leave.h"
#include "leave_tcp.h"
#include "lib/bytes.h"
#include "net/wire/nd.h"

enum {
    PCAP_MAGIC_LEN = 24,
    PCAP_RECORD_LEN = 16,
    PEER_HOST = 100, /* The last byte of peer 0's IPv4 address. */
    HOST_NUMBER = 2, /* The last byte of conf_host()'s IPv4 address. */
    /* Peers are 10.0.0.x, and strangers 10.x.0.0 with x from here on. */
    STRANGER_NET = 128,
    DEFAULT_DEPTH = 32,
    ALIVE_HOST_NUMBER = 0xee,
    START_TRIES = 100,
    START_PAUSE_US = 100000,
    OLD_FRAMES_US = 20000, /* less than a drive takes to boot */
    REAL_PATIENCE = 3,
    /* 0.54 s, so that a host gives up after 4 s.  A target that is emulated may
     * stand still for a second while its machine reads from a slow disk. */
    REAL_ACK_TIMEOUT = 17,
    LOOK_US = 100,
    /* From here on, something may become due in the drive meanwhile. */
    LONG_PASS_US = 500000,
};
#define LATER_NS      UINT64_C(1000000)
#define LINK_US       UINT64_C(20000000)
#define PCAP_MAGIC_NS 0xa1b23c4du

/* ---- The test's log. */

static char *next_step(struct conf *conf)
{
    unsigned int at = conf->steps++;
    unsigned int half = CONF_STEPS_MAX / 2;

    /* The first half is kept; the second half is a ring of the latest lines. */
    return conf->step[at < half ? at : half + (at - half) % half];
}

void conf_note(struct conf *conf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(next_step(conf), CONF_STEP_LEN, format, args);
    va_end(args);
}

void conf_note_packet(struct conf *conf, const char *what,
                      const struct packet *packet)
{
    char text[CONF_STEP_LEN];

    conf_note(conf, "%10.6f port %u %s %s", (double)packet->time_us / 1e6,
              packet->port, what, packet_text(packet, text, sizeof(text)));
}

unsigned int conf_number(const struct conf *conf)
{
    return conf->generation;
}

const char *conf_text(const struct conf *conf)
{
    return conf->test->text;
}

static void end_test(struct conf *conf, enum conf_outcome outcome,
                     const char *format, va_list args)
    __attribute__((noreturn));

static void end_test(struct conf *conf, enum conf_outcome outcome,
                     const char *format, va_list args)
{
    conf->outcome = outcome;
    vsnprintf(conf->reason, sizeof(conf->reason), format, args);
    if (outcome == CONF_NA) {
        skip();
    }
    fail();
    abort();
}

void conf_fail(struct conf *conf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    end_test(conf, CONF_FAILED, format, args);
}

void conf_not_applicable(struct conf *conf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    end_test(conf, CONF_NA, format, args);
}

void conf_not_run(struct conf *conf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    end_test(conf, CONF_NOT_RUN, format, args);
}

void conf_provokes(struct conf *conf, uint32_t counters)
{
    conf->provoked |= counters;
}

/* Late packets for a connection that the drive has ended are no mistake, and
 * neither are acknowledgements that were implied before. */
void conf_check_counters(struct conf *conf)
{
    const uint32_t harmless =
        BIT(RNIC_COUNT_RX_PACKETS) | BIT(RNIC_COUNT_TX_PACKETS) |
        BIT(RNIC_COUNT_RX_NO_QP) | BIT(RNIC_COUNT_RX_DUPLICATE) |
        BIT(RNIC_COUNT_RX_CNP) | BIT(RNIC_COUNT_RP_CNP_HANDLED) |
        BIT(RNIC_COUNT_NP_CNP_SENT) | BIT(RNIC_COUNT_NP_ECN_MARKED);
    bool is_rough = strcmp(conf->chapter, "roce") == 0 ||
                    strcmp(conf->chapter, "robust") == 0;
    uint32_t counted;

    if (conf->dut->counted == NULL) {
        return;
    }
    counted = conf->dut->counted(conf->dut->ctx) & ~harmless & ~conf->provoked;
    if (is_rough) {
        counted &= BIT(RNIC_COUNT_TX_RNR);
    }
    for (unsigned int i = 0; i < RNIC_COUNTERS; i++) {
        conf_check(conf, !(counted & BIT(i)),
                   "the drive's RNIC has counted what the test has not "
                   "declared: counter %u of enum rnic_counter",
                   i);
    }
}

void conf_check(struct conf *conf, bool is_true, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (!is_true) {
        end_test(conf, CONF_FAILED, format, args);
    }
    va_end(args);
}

void conf_equal(struct conf *conf, const char *what, uint64_t got,
                uint64_t expected)
{
    conf_check(conf, got == expected,
               "%s: expected %llu (%llxh), got %llu (%llxh)", what,
               (unsigned long long)expected, (unsigned long long)expected,
               (unsigned long long)got, (unsigned long long)got);
}

void conf_same(struct conf *conf, const char *what, const void *got,
               const void *expected, size_t len_bytes)
{
    const uint8_t *a = got, *b = expected;

    for (size_t i = 0; i < len_bytes; i++) {
        conf_check(conf, a[i] == b[i],
                   "%s: byte %zu of %zu: expected %02x, got %02x", what, i,
                   len_bytes, b[i], a[i]);
    }
}

void conf_status(struct conf *conf, const char *what, uint16_t got,
                 uint16_t expected)
{
    conf_check(conf, got != HOST_LOST,
               "%s: expected status %03xh, but the connection was lost", what,
               expected);
    conf_check(conf, (got & NVME_SC_MASK) == expected,
               "%s: expected status %03xh, got %03xh%s", what, expected,
               got & NVME_SC_MASK, got & NVME_STATUS_DNR ? " (DNR)" : "");
}

/* ---- Time. */

uint64_t conf_now_us(const struct conf *conf)
{
    return conf->world.now_ns / 1000;
}

uint64_t conf_wall_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static bool run_world(struct conf *conf, bool (*is_done)(void *ctx), void *ctx,
                      uint64_t timeout_us)
{
    uint64_t end_ns = conf->world.now_ns + timeout_us * 1000;

    if (conf->host != NULL) {
        /* Its deadlines may have changed. */
        conf->host->sleep.is_asleep = false;
    }
    if (conf->dut->is_virtual) {
        return native_world_run(&conf->world, is_done, ctx, timeout_us * 1000);
    }
    while (!is_done(ctx)) {
        if (conf->world.now_ns > end_ns ||
            !conf->dut->run_once(conf->dut->ctx, &conf->world)) {
            return false;
        }
    }
    return true;
}

bool conf_look(struct conf *conf, bool (*is_done)(void *ctx), void *ctx,
               uint64_t timeout_us)
{
    double slow = conf->dut->is_virtual ? 1 : conf->options->slow;

    return run_world(conf, is_done, ctx, (uint64_t)((double)timeout_us * slow));
}

static bool late_turn(void *ctx)
{
    struct conf *conf = ctx;

    return conf->dut->turn(conf->dut->ctx);
}

static bool late_run(void *ctx, bool (*is_done)(void *done_ctx), void *done_ctx,
                     uint64_t timeout_us)
{
    return run_world(ctx, is_done, done_ctx, timeout_us);
}

static uint64_t late_now_us(void *ctx)
{
    return conf_now_us(ctx);
}

bool conf_wait(struct conf *conf, bool (*is_done)(void *ctx), void *ctx,
               uint64_t timeout_us)
{
    const struct late late = {conf, late_turn, late_run, late_now_us};
    bool is_in_time = conf_look(conf, is_done, ctx, timeout_us);
    unsigned int turns;

    if (is_in_time || conf->dut->turn == NULL) {
        return is_in_time;
    }
    if (late_wait(&late, is_done, ctx, &turns)) {
        conf_note(conf,
                  "What was waited for came after the limit, %u turns of the "
                  "drive's main loop later.",
                  turns);
        return true;
    }
    conf_note(
        conf,
        "The limit has passed, and the drive's main loop has made %u more "
        "turns.",
        turns);
    return false;
}

struct moment {
    const struct native_world *world;
    uint64_t ns;
};

static bool has_come(void *ctx)
{
    const struct moment *moment = ctx;

    return moment->world->now_ns >= moment->ns;
}

static void pass_real(struct conf *conf, uint64_t us)
{
    struct moment moment = {&conf->world, conf->world.now_ns + us * 1000};

    conf->pass_until_ns = moment.ns; /* Wakes the loop. */
    run_world(conf, has_come, &moment, us + 1000000);
    conf->pass_until_ns = NATIVE_NO_DEADLINE;
}

void conf_pass_only(struct conf *conf, uint64_t us)
{
    if (conf->dut->is_virtual) {
        if (conf->host != NULL) {
            conf->host->sleep.is_asleep = false;
        }
        native_world_pass(&conf->world, us * 1000);
        return;
    }
    pass_real(conf, us);
}

void conf_pass(struct conf *conf, uint64_t us)
{
    const struct late late = {conf, late_turn, late_run, late_now_us};

    conf_pass_only(conf, us);
    if (us >= LONG_PASS_US && !conf->dut->is_virtual &&
        conf->dut->turn != NULL) {
        late_catch_up(&late);
    }
}

void conf_repeat_in_time(struct conf *conf, bool (*attempt)(struct conf *conf))
{
    enum { ATTEMPTS = 10 };

    for (unsigned int i = 0; i < ATTEMPTS; i++) {
        if (attempt(conf)) {
            return;
        }
        conf_note(conf, "The tester was late, and begins anew.");
    }
    conf_not_applicable(conf, "the tester was late in %u attempts", ATTEMPTS);
}

static void check_real_time(struct conf *conf)
{
    conf_check(conf, conf->test == NULL || conf->test->judges_time,
               "the test judges times: its row needs .judges_time = true");
}

uint64_t conf_later_least_us(struct conf *conf, const struct packet *first,
                             const struct packet *second)
{
    check_real_time(conf);
    return second->since_us > first->time_us ? second->since_us - first->time_us
                                             : 0;
}

uint64_t conf_later_most_us(struct conf *conf, const struct packet *first,
                            const struct packet *second)
{
    check_real_time(conf);
    return second->time_us - first->since_us;
}

uint8_t conf_patience(const struct conf *conf)
{
    uint8_t patience = REAL_PATIENCE;

    if (conf->dut->is_virtual) {
        return 0;
    }
    for (double slow = conf->options->slow; slow > 1; slow /= 2) {
        patience++;
    }
    return patience;
}

uint64_t conf_answer_us(const struct conf *conf)
{
    return conf->dut->is_virtual ? (uint64_t)CONF_ANSWER_US
                                 : (uint64_t)CONF_ANSWER_REAL_US;
}

void *conf_alloc(struct conf *conf, size_t bytes)
{
    struct conf_memory *memory = calloc(1, sizeof(*memory) + bytes);

    ASSERT(memory != NULL);
    memory->next = conf->memory;
    conf->memory = memory;
    return memory->data;
}

uint64_t conf_random(struct conf *conf)
{
    conf->random ^= conf->random << 13;
    conf->random ^= conf->random >> 7;
    conf->random ^= conf->random << 17;
    return conf->random;
}

/* ---- Captures. */

static void pcap_open(struct conf *conf)
{
    uint8_t header[PCAP_MAGIC_LEN] = {0};
    char path[512];

    conf->pcap = NULL;
    if (conf->options->pcap_folder == NULL) {
        return;
    }
    snprintf(path, sizeof(path), "%s/%s.%s.pcap", conf->options->pcap_folder,
             conf->chapter, conf->test->id);
    conf->pcap = fopen(path, "wb");
    if (conf->pcap == NULL) {
        fprintf(stderr, "essd_conform: cannot write %s\n", path);
        exit(2);
    }
    put_le32(header, PCAP_MAGIC_NS);
    put_le16(header + 4, 2);
    put_le16(header + 6, 4);
    put_le32(header + 16, FRAME_LEN_MAX);
    put_le32(header + 20, 1); /* Ethernet */
    fwrite(header, sizeof(header), 1, conf->pcap);
}

static void pcap_frame(struct conf *conf, const uint8_t *data, size_t len)
{
    uint8_t record[PCAP_RECORD_LEN];
    uint64_t ns = conf->world.now_ns;

    if (conf->pcap == NULL) {
        return;
    }
    put_le32(record, (uint32_t)(ns / 1000000000));
    put_le32(record + 4, (uint32_t)(ns % 1000000000));
    put_le32(record + 8, (uint32_t)len);
    put_le32(record + 12, (uint32_t)len);
    fwrite(record, sizeof(record), 1, conf->pcap);
    fwrite(data, len, 1, conf->pcap);
}

/* ---- Frames to the target. */

static struct conf_tx *copy_frame(const uint8_t *data, size_t len,
                                  uint8_t flags)
{
    struct conf_tx *tx = malloc(sizeof(*tx) + len);

    ASSERT(tx != NULL);
    tx->next = NULL;
    tx->len_bytes = len;
    tx->flags = flags;
    memcpy(tx->data, data, len);
    return tx;
}

static void drain_wire(struct conf_wire *wire)
{
    struct dut *dut = wire->conf->dut;

    while (wire->out != NULL) {
        struct conf_tx *tx = wire->out;

        if (!dut->send(dut->ctx, wire->port, tx->data, tx->len_bytes,
                       tx->flags)) {
            return;
        }
        wire->out = tx->next;
        if (wire->out == NULL) {
            wire->out_tail = &wire->out;
        }
        free(tx);
    }
}

/* Record what leaves for the target; a frame with a bad FCS will not arrive. */
static void record_sent(struct conf *conf, unsigned int port,
                        const uint8_t *data, size_t len, uint8_t flags)
{
    struct packet packet;

    if (flags == 0 && packet_parse(&packet, data, len)) {
        packet.port = port;
        packet.time_us = conf_now_us(conf);
        exchange_add(&conf->exchange, &packet, false, conf_wall_us());
    }
}

static void put_out(struct conf_wire *wire, const uint8_t *data, size_t len,
                    uint8_t flags)
{
    struct conf *conf = wire->conf;

    pcap_frame(conf, data, len);
    record_sent(conf, wire->port, data, len, flags);
    if (wire->out == NULL &&
        conf->dut->send(conf->dut->ctx, wire->port, data, len, flags)) {
        return;
    }
    *wire->out_tail = copy_frame(data, len, flags);
    wire->out_tail = &(*wire->out_tail)->next;
}

static void check_fits(struct conf *conf, const uint8_t *frame, size_t len)
{
    uint32_t mtu_bytes = conf->dut->mtu_bytes;
    size_t header = ETH_LEN;

    if (len >= ETH_TAGGED_LEN &&
        get_be16(frame + ETH_LEN - 2) == ETHERTYPE_VLAN) {
        header = ETH_TAGGED_LEN;
    }
    if (mtu_bytes != 0 && (len > header + mtu_bytes || len < ETH_LEN)) {
        conf_not_run(conf,
                     "the interface has an MTU of %u and cannot send a frame "
                     "of %zu bytes",
                     mtu_bytes, len);
    }
}

void conf_send_frame(struct conf *conf, unsigned int port, const uint8_t *frame,
                     size_t len_bytes, uint8_t flags)
{
    struct packet packet;

    check_fits(conf, frame, len_bytes);
    packet_parse(&packet, frame, len_bytes);
    packet.port = port;
    packet.time_us = conf_now_us(conf);
    conf_note_packet(conf, "sent", &packet);
    put_out(&conf->wires[port], frame, len_bytes, flags);
}

/* ---- Frames from the target. */

static void answer_arp(struct conf *conf, const struct conf_peer *peer,
                       const struct packet *packet)
{
    struct arp arp = {
        .operation = ARP_REPLY,
        .sender_mac = peer->mac,
        .sender_ip = peer->ip4,
        .target_mac = packet->arp.sender_mac,
        .target_ip = packet->arp.sender_ip,
    };
    struct eth eth = {
        .dst = packet->eth.src,
        .src = peer->mac,
        .type = ETHERTYPE_ARP,
        .tagged = peer->vlan != 0,
        .vlan = peer->vlan,
        .priority = peer->priority,
    };
    uint8_t frame[ETH_TAGGED_LEN + ARP_LEN];

    eth_emit(&eth, frame);
    arp_emit(&arp, frame + eth_header_len(&eth));
    put_out(&conf->wires[peer->port], frame, eth_header_len(&eth) + ARP_LEN, 0);
}

static void answer_nd(struct conf *conf, const struct conf_peer *peer,
                      const struct packet *packet)
{
    struct nd_neighbor advert = {
        .type = ND_NEIGHBOR_ADVERT,
        .solicited = true,
        .override = true,
        .has_lladdr = true,
        .lladdr = peer->mac,
        .target = peer->ip6,
    };
    struct packet_path path = {
        .src_mac = peer->mac,
        .dst_mac = packet->eth.src,
        .src = peer->ip6,
        .dst = packet->src,
        .vlan = peer->vlan,
        .priority = peer->priority,
        .ttl = 255,
    };
    uint8_t message[ND_NEIGHBOR_MAX_LEN], frame[128];
    size_t len = nd_neighbor_emit(&advert, &path.src, &path.dst, message);

    len = packet_ip(frame, &path, IP_PROTOCOL_ICMPV6, message, len);
    put_out(&conf->wires[peer->port], frame, len, 0);
}

static void answer_for_peers(struct conf *conf, const struct packet *packet)
{
    struct nd_neighbor solicit;
    bool is_arp = packet->has_arp && packet->arp.operation == ARP_REQUEST;
    bool is_nd = packet->has_icmp && packet->is_v6 &&
                 packet->icmp.type == ND_NEIGHBOR_SOLICIT &&
                 nd_neighbor_parse(&solicit, packet->l4, packet->l4_len) &&
                 !ip_addr_is_unspecified(&packet->src);

    for (unsigned int i = 0; (is_arp || is_nd) && i < CONF_PEERS; i++) {
        const struct conf_peer *peer = &conf->peers[packet->port][i];

        if (!conf->has_peer[packet->port][i] || !peer->answers ||
            peer->vlan != packet->eth.vlan) {
            continue;
        }
        if (is_arp && ip_addr_equal(&packet->arp.target_ip, &peer->ip4)) {
            answer_arp(conf, peer, packet);
        } else if (is_nd && ip_addr_equal(&solicit.target, &peer->ip6)) {
            answer_nd(conf, peer, packet);
        }
    }
}

static uint64_t empty_us(const struct conf *conf, unsigned int port)
{
    return conf->dut->is_virtual
               ? conf_now_us(conf)
               : conf->dut->empty_ns(conf->dut->ctx, port) / 1000;
}

static void take_in(struct conf *conf, unsigned int port, const uint8_t *data,
                    size_t len)
{
    struct frame_rx frame = {.data = data, .len_bytes = (uint32_t)len};
    struct conf_rx *rx = malloc(sizeof(*rx) + len);

    ASSERT(rx != NULL);
    rx->next = NULL;
    rx->is_taken = false;
    memcpy(rx->data, data, len);
    if (!packet_parse(&rx->packet, rx->data, len)) {
        conf_note(conf, "port %u received a frame of %zu bytes", port, len);
    }
    rx->packet.port = port;
    rx->packet.time_us = conf_now_us(conf);
    rx->packet.since_us = empty_us(conf, port);
    *conf->rx_tail = rx;
    conf->rx_tail = &rx->next;
    exchange_add(&conf->exchange, &rx->packet, true, conf_wall_us());
    answer_for_peers(conf, &rx->packet);
    for (struct conf_listener *to = conf->listeners; to != NULL;
         to = to->next) {
        to->packet(to->ctx, &rx->packet);
    }
    if (conf->host != NULL) {
        hw_port_rx(&conf->host->machine.ports[port], &frame, 1);
    }
}

/* ---- The filter on the wire. */

static void go_on(struct conf_wire *wire, bool is_from_target,
                  const uint8_t *data, size_t len)
{
    if (is_from_target) {
        take_in(wire->conf, wire->port, data, len);
    } else {
        put_out(wire, data, len, 0);
    }
}

static bool release_later(struct conf_wire *wire, bool is_from_target)
{
    struct conf_tx *tx = wire->later[is_from_target];

    if (tx == NULL) {
        return false;
    }
    wire->later[is_from_target] = NULL;
    go_on(wire, is_from_target, tx->data, tx->len_bytes);
    free(tx);
    return true;
}

static void through_filter(struct conf_wire *wire, bool is_from_target,
                           uint8_t *data, uint32_t len)
{
    struct conf *conf = wire->conf;
    struct conf_frame frame = {
        .port = wire->port,
        .is_from_target = is_from_target,
        .number = conf->frames++,
        .data = data,
        .len_bytes = &len,
    };
    enum conf_verdict verdict = CONF_PASS;

    if (conf->filter != NULL) {
        verdict = conf->filter(conf->filter_ctx, &frame);
    }
    switch (verdict) {
    case CONF_DROP:
        return;
    case CONF_LATER:
        release_later(wire, is_from_target);
        wire->later[is_from_target] = copy_frame(data, len, 0);
        wire->later_until_ns[is_from_target] = conf->world.now_ns + LATER_NS;
        return;
    case CONF_TWICE:
        go_on(wire, is_from_target, data, len);
        break;
    case CONF_PASS:
        break;
    }
    go_on(wire, is_from_target, data, len);
    release_later(wire, is_from_target);
}

static void on_receive(void *ctx, unsigned int port,
                       const struct frame_rx *frames, unsigned int count)
{
    static uint8_t copy[FRAME_LEN_MAX];
    struct conf *conf = ctx;

    for (unsigned int i = 0; i < count; i++) {
        pcap_frame(conf, frames[i].data, frames[i].len_bytes);
        memcpy(copy, frames[i].data, frames[i].len_bytes);
        through_filter(&conf->wires[port], true, copy, frames[i].len_bytes);
    }
}

static void on_room(void *ctx, unsigned int port)
{
    struct conf *conf = ctx;

    drain_wire(&conf->wires[port]);
}

/* The host's port sends these frames. */
static unsigned int host_send(void *ctx, const struct frame_tx *burst,
                              unsigned int count)
{
    static uint8_t copy[FRAME_LEN_MAX];
    struct conf_wire *wire = ctx;

    for (unsigned int i = 0; i < count; i++) {
        through_filter(wire, false, copy, frame_tx_copy(copy, &burst[i]));
    }
    return count;
}

/* ---- The node that delays frames. */

static bool node_step(void *ctx)
{
    struct conf *conf = ctx;
    bool is_busy = false;

    for (unsigned int i = 0; i < CONF_PORTS; i++) {
        struct conf_wire *wire = &conf->wires[i];

        drain_wire(wire);
        for (unsigned int k = 0; k < 2; k++) {
            if (wire->later_until_ns[k] <= conf->world.now_ns) {
                wire->later_until_ns[k] = NATIVE_NO_DEADLINE;
                is_busy |= release_later(wire, k == 1);
            }
        }
    }
    return is_busy;
}

static void node_relax(void *ctx)
{
    (void)ctx;
}

static uint64_t node_deadline_ns(void *ctx)
{
    const struct conf *conf = ctx;
    uint64_t first = conf->pass_until_ns;

    for (unsigned int i = 0; i < CONF_PORTS; i++) {
        for (unsigned int k = 0; k < 2; k++) {
            first = MIN(first, conf->wires[i].later_until_ns[k]);
        }
    }
    return first;
}

static uint32_t no_register(void *ctx, uint32_t addr)
{
    (void)ctx;
    (void)addr;
    ASSERT(false);
    return 0;
}

static void no_register_write(void *ctx, uint32_t addr, uint32_t value)
{
    (void)value;
    no_register(ctx, addr);
}

static const struct native_node_ops node_ops = {
    .step = node_step,
    .relax = node_relax,
    .deadline_ns = node_deadline_ns,
    .mmio_read = no_register,
    .mmio_write = no_register_write,
};

/* ---- A test's start and end. */

static bool wants_nvme_tcp(const struct conf *conf)
{
    return conf->options->over_tcp ||
           (conf->test != NULL &&
            (conf->test->needs & CONF_NEEDS_NVME_TCP) != 0);
}

bool conf_begin(struct conf *conf)
{
    struct dut_events events = {conf, on_receive, on_room};

    native_world_init(&conf->world);
    native_node_add(&conf->world, &conf->node, &node_ops, conf, 4096);
    conf->rx = NULL;
    conf->rx_tail = &conf->rx;
    conf->rx_unflushed = &conf->rx;
    conf->frames = 0;
    conf->filter = NULL;
    conf->host = NULL;
    conf->memory = NULL;
    conf->num_rcs = 0;
    conf->streams = NULL;
    conf->pass_until_ns = NATIVE_NO_DEADLINE;
    conf->provoked = 0;
    conf->steps = 0;
    memset(&conf->exchange, 0, sizeof(conf->exchange));
    conf->reason[0] = '\0';
    /*
     * A drive that keeps running must not take this test's peers for those of
     * an earlier test. With a fresh drive, a test sees the same peers alone as
     * among others.
     */
    conf->generation = conf->dut->is_virtual ? 1 : conf->generation + 1;
    conf->listeners = NULL;
    memset(conf->has_peer, 0, sizeof(conf->has_peer));
    for (unsigned int i = 0; i < CONF_PORTS; i++) {
        conf->wires[i] = (struct conf_wire){
            .conf = conf,
            .port = i,
            .later_until_ns = {NATIVE_NO_DEADLINE, NATIVE_NO_DEADLINE},
        };
        conf->wires[i].out_tail = &conf->wires[i].out;
    }
    pcap_open(conf);
    if (conf->dut->serve_tcp != NULL) {
        conf->dut->serve_tcp(conf->dut->ctx, wants_nvme_tcp(conf),
                             conf->options->over_iwarp);
    }
    if (!conf->dut->begin(conf->dut->ctx, &conf->world, &events)) {
        return false;
    }
    conf->dut->describe(conf->dut->ctx, &conf->target);
    conf->target.path_mtu = conf->target.mtu_bytes >= 4096 + 160 ? IB_MTU_4096
                            : conf->target.mtu_bytes >= 2048 + 160
                                ? IB_MTU_2048
                                : IB_MTU_1024;
    conf_flush(conf);
    return true;
}

static void free_list(struct conf_tx *tx)
{
    while (tx != NULL) {
        struct conf_tx *next = tx->next;

        free(tx);
        tx = next;
    }
}

void conf_end(struct conf *conf)
{
    if (conf->host != NULL && !conf->dut->is_virtual) {
        host_disconnect(&conf->host->host);
    }
    if (!conf->dut->is_virtual) {
        leave(conf);
        leave_tcp(conf);
    }
    if (conf->host != NULL) {
        native_host_destroy(conf->host);
        conf->host = NULL;
    }
    conf->dut->end_test(conf->dut->ctx);
    for (unsigned int i = 0; i < CONF_PORTS; i++) {
        free_list(conf->wires[i].out);
        free_list(conf->wires[i].later[0]);
        free_list(conf->wires[i].later[1]);
    }
    while (conf->rx != NULL) {
        struct conf_rx *next = conf->rx->next;

        free(conf->rx);
        conf->rx = next;
    }
    while (conf->memory != NULL) {
        struct conf_memory *next = conf->memory->next;

        free(conf->memory);
        conf->memory = next;
    }
    native_node_remove(&conf->node);
    native_world_end(&conf->world);
    if (conf->pcap != NULL) {
        fclose(conf->pcap);
        conf->pcap = NULL;
    }
}

/* ---- What tests ask for. */

const struct conf_target *conf_target(const struct conf *conf)
{
    return &conf->target;
}

const struct ip_addr *conf_target_ip(const struct conf *conf, unsigned int port,
                                     bool is_v6)
{
    return is_v6 ? &conf->target.ports[port].ip6
                 : &conf->target.ports[port].ip4;
}

void conf_needs_ip(struct conf *conf, unsigned int port, bool is_v6)
{
    if (ip_addr_is_unspecified(conf_target_ip(conf, port, is_v6))) {
        conf_not_applicable(conf, "the target has no %s address on port %u",
                            is_v6 ? "IPv6" : "IPv4", port);
    }
}

struct taking {
    struct conf_rx **from;
    conf_match *match;
    const void *ctx;
    struct conf_rx *found;
};

static bool look_for_packet(void *ctx)
{
    struct taking *taking = ctx;

    while (*taking->from != NULL) {
        struct conf_rx *rx = *taking->from;

        if (!rx->is_taken && taking->match(&rx->packet, taking->ctx)) {
            taking->found = rx;
            return true;
        }
        taking->from = &rx->next;
    }
    return false;
}

/* @param wait  conf_wait() if the packet must come, else conf_look() */
static const struct packet *take_packet(
    struct conf *conf, conf_match *match, const void *ctx, uint64_t timeout_us,
    bool (*wait)(struct conf *conf, bool (*is_done)(void *ctx), void *ctx,
                 uint64_t timeout_us))
{
    struct taking taking = {conf->rx_unflushed, match, ctx, NULL};

    if (!look_for_packet(&taking) &&
        !wait(conf, look_for_packet, &taking, timeout_us)) {
        return NULL;
    }
    taking.found->is_taken = true;
    conf_note_packet(conf, "got ", &taking.found->packet);
    return &taking.found->packet;
}

const struct packet *conf_take_within(struct conf *conf, conf_match *match,
                                      const void *ctx, uint64_t timeout_us)
{
    return take_packet(conf, match, ctx, timeout_us, conf_look);
}

/* For a failure: log the packets that came instead. */
static void note_untaken(struct conf *conf)
{
    unsigned int count = 0;

    for (struct conf_rx *rx = conf->rx; rx != NULL && count < 20;
         rx = rx->next) {
        if (!rx->is_taken) {
            conf_note_packet(conf, "also", &rx->packet);
            count++;
        }
    }
}

const struct packet *conf_take(struct conf *conf, const char *what,
                               conf_match *match, const void *ctx)
{
    const struct packet *packet =
        take_packet(conf, match, ctx, conf_answer_us(conf), conf_wait);

    if (packet == NULL) {
        note_untaken(conf);
        conf_fail(conf, "expected %s: nothing came", what);
    }
    return packet;
}

void conf_expect_none(struct conf *conf, const char *what, conf_match *match,
                      const void *ctx, uint64_t for_us)
{
    if (conf_take_within(conf, match, ctx, for_us) != NULL) {
        conf_fail(conf, "expected no %s, but there was one", what);
    }
}

void conf_flush(struct conf *conf)
{
    for (struct conf_rx *rx = *conf->rx_unflushed; rx != NULL; rx = rx->next) {
        rx->is_taken = true;
    }
    conf->rx_unflushed = conf->rx_tail;
}

unsigned int conf_count(const struct conf *conf, conf_match *match,
                        const void *ctx)
{
    unsigned int count = 0;

    for (const struct conf_rx *rx = conf->rx; rx != NULL; rx = rx->next) {
        count += match(&rx->packet, ctx);
    }
    return count;
}

void conf_set_filter(struct conf *conf, conf_filter_fn *filter, void *ctx)
{
    conf->filter = filter;
    conf->filter_ctx = ctx;
}

void conf_listen(struct conf *conf,
                 void (*packet)(void *ctx, const struct packet *packet),
                 void *ctx)
{
    struct conf_listener *listener = conf_alloc(conf, sizeof(*listener));

    *listener = (struct conf_listener){conf->listeners, packet, ctx};
    conf->listeners = listener;
}

/* ---- Peers. */

static struct ip_addr in_subnet(const struct ip_addr *target, uint8_t host)
{
    struct ip_addr ip = *target;

    if (!ip_addr_is_unspecified(target)) {
        ip.bytes[15] = host;
    }
    return ip;
}

struct ip_addr conf_own_ip(const struct conf_target *target, unsigned int index,
                           unsigned int port)
{
    if (port == 0 && !ip_addr_is_unspecified(&target->own)) {
        return ip_addr_from_v4(ip_addr_to_v4(&target->own) + index);
    }
    return in_subnet(
        &target->ports[port].ip4,
        (uint8_t)(index == CONF_PEERS ? HOST_NUMBER : PEER_HOST + index));
}

/* RFC 5227 3: sender and target are the same, for those who know another MAC
 * address. */
static void announce_v4(struct conf *conf, const struct conf_peer *peer)
{
    static const struct mac_addr everybody;
    struct arp arp = {
        .operation = ARP_REQUEST,
        .sender_mac = peer->mac,
        .sender_ip = peer->ip4,
        .target_ip = peer->ip4,
    };
    uint8_t frame[ETH_LEN + ARP_LEN];

    put_out(&conf->wires[peer->port], frame,
            packet_arp(frame, &everybody, &peer->mac, &arp), 0);
}

/* RFC 4861 7.2.6: sent to all nodes, unsolicited, with the override flag. */
static void announce_v6(struct conf *conf, const struct conf_peer *peer)
{
    struct nd_neighbor advert = {
        .type = ND_NEIGHBOR_ADVERT,
        .override = true,
        .has_lladdr = true,
        .lladdr = peer->mac,
        .target = peer->ip6,
    };
    struct packet_path path = {
        .src_mac = peer->mac,
        .dst_mac = {{0x33, 0x33, 0, 0, 0, 1}},
        .src = peer->ip6,
        .dst = {{0xff, 0x02, [15] = 1}},
        .ttl = 255,
    };
    uint8_t message[ND_NEIGHBOR_MAX_LEN], frame[128];
    size_t len = nd_neighbor_emit(&advert, &path.src, &path.dst, message);

    len = packet_ip(frame, &path, IP_PROTOCOL_ICMPV6, message, len);
    put_out(&conf->wires[peer->port], frame, len, 0);
}

/*
 * The peers of each test have the same IP addresses as those of the test
 * before, but their own MAC addresses: tell a target that was not restarted in
 * between.
 */
static void announce_peer(struct conf *conf, const struct conf_peer *peer)
{
    if (conf->dut->is_virtual) {
        return;
    }
    if (!ip_addr_is_unspecified(&peer->ip4)) {
        announce_v4(conf, peer);
    }
    if (!ip_addr_is_unspecified(&peer->ip6)) {
        announce_v6(conf, peer);
    }
}

struct conf_peer *conf_peer(struct conf *conf, unsigned int index,
                            unsigned int port)
{
    struct conf_peer *peer = &conf->peers[port][index];
    const struct conf_port *to = &conf->target.ports[port];

    ASSERT(index < CONF_PEERS && port < CONF_PORTS);
    if (!conf->has_peer[port][index]) {
        conf->has_peer[port][index] = true;
        *peer = (struct conf_peer){
            .port = port,
            .mac = {{0x02, 0xc0, 0x4f, (uint8_t)conf->generation, (uint8_t)port,
                     (uint8_t)index}},
            .ip4 = conf_own_ip(&conf->target, index, port),
            .ip6 = in_subnet(&to->ip6, (uint8_t)(PEER_HOST + index)),
            .answers = true,
        };
        announce_peer(conf, peer);
    }
    return peer;
}

struct conf_peer conf_stranger(struct conf *conf, unsigned int number,
                               unsigned int port)
{
    struct conf_peer peer = {
        .port = port,
        .mac = {{0x02, 0x57, (uint8_t)(number >> 16), (uint8_t)(number >> 8),
                 (uint8_t)number, (uint8_t)port}},
        .ip4 = ip_addr_from_v4(
            (uint32_t)(10u << 24 | (uint32_t)STRANGER_NET << 16) + number),
        .ip6 = conf->target.ports[port].ip6,
    };

    peer.ip6.bytes[12] = 1;
    put_be24(peer.ip6.bytes + 13, number);
    return peer;
}

bool conf_is_arp_reply(const struct packet *packet, const void *ctx)
{
    return packet->has_arp && packet->arp.operation == ARP_REPLY &&
           ip_addr_equal(&packet->arp.sender_ip, ctx);
}

const struct packet *conf_arp(struct conf *conf, const struct conf_peer *peer,
                              unsigned int tries, uint64_t each_us)
{
    static const struct mac_addr everybody;
    struct arp arp = {
        .operation = ARP_REQUEST,
        .sender_mac = peer->mac,
        .sender_ip = peer->ip4,
        .target_ip = *conf_target_ip(conf, peer->port, false),
    };
    const struct packet *reply = NULL;
    uint8_t frame[ETH_LEN + ARP_LEN];

    for (unsigned int i = 0; i < tries && reply == NULL; i++) {
        conf_send_frame(conf, peer->port, frame,
                        packet_arp(frame, &everybody, &peer->mac, &arp), 0);
        reply =
            conf_take_within(conf, conf_is_arp_reply, &arp.target_ip, each_us);
    }
    return reply;
}

/* ---- The host. */

static bool host_run(void *ctx, bool (*is_done)(void *done_ctx), void *done_ctx,
                     uint64_t timeout_us)
{
    struct conf *conf = ctx;

    return conf_wait(conf, is_done, done_ctx, timeout_us);
}

static bool host_link_is_up(void *ctx)
{
    const struct native_host *host = ctx;

    return host->net.ports.port[0].is_up && host->net.ports.port[1].is_up;
}

struct native_host *conf_host(struct conf *conf)
{
    struct native_node_config config = {
        .number = HOST_NUMBER,
        .has_ipv6 = true,
        .mtu_bytes = conf->target.mtu_bytes,
        .generation = conf->generation,
    };

    if (conf->host != NULL) {
        return conf->host;
    }
    for (unsigned int i = 0; i < CONF_PORTS; i++) {
        struct ip_addr own = conf_own_ip(&conf->target, CONF_PEERS, i);

        config.ipv4[i] = ip_addr_is_unspecified(&own) ? 0 : ip_addr_to_v4(&own);
    }
    conf->host = native_host_create(&conf->world, &config);
    conf->host->host_config.run = host_run;
    conf->host->host_config.run_ctx = conf;
    conf->host->host.config.run = host_run;
    conf->host->host.config.run_ctx = conf;
    for (unsigned int i = 0; i < CONF_PORTS; i++) {
        struct frame_sink sink = {.ctx = &conf->wires[i], .send = host_send};

        machine_link(&conf->host->machine, i, &sink);
    }
    conf_check(conf, conf_wait(conf, host_link_is_up, conf->host, LINK_US),
               "the tester's own link did not come up");
    return conf->host;
}

void conf_resolve(struct conf *conf, const struct conf_session *session,
                  struct host_target *target)
{
    struct native_host *host = conf_host(conf);
    uint8_t local = (uint8_t)(session->port + (session->is_v6 ? 2 : 0));
    const struct net_address_config *own =
        net_stack_address(&host->net.stack, local);
    struct ip_addr ip = session->target_ip;

    if (ip_addr_is_unspecified(&ip)) {
        conf_needs_ip(conf, session->port, session->is_v6);
        ip = *conf_target_ip(conf, session->port, session->is_v6);
    }
    *target = (struct host_target){
        .path = {.laddr = local,
                 .mtu = host->net.ports.port[session->port].path_mtu},
        .local_ip = own->ip,
        .peer_ip = ip,
        .service_port = DRIVE_SERVICE_PORT,
        .io_queues = session->io_queues,
        .depth = session->depth != 0 ? session->depth : (uint16_t)DEFAULT_DEPTH,
        .kato_ms = session->kato_ms,
        .ack_timeout = conf->dut->is_virtual ? 0 : REAL_ACK_TIMEOUT,
    };
    conf_check(conf,
               native_resolve(host, local, &ip, CONF_ANSWER_US * 2,
                              &target->path.neigh),
               "the target answers neither ARP nor ND for its address");
    snprintf(target->subnqn, sizeof(target->subnqn), "%s",
             session->subnqn != NULL ? session->subnqn : conf->target.nqn);
    if (session->hostnqn != NULL) {
        snprintf(target->hostnqn, sizeof(target->hostnqn), "%s",
                 session->hostnqn);
    } else {
        snprintf(target->hostnqn, sizeof(target->hostnqn),
                 "nqn.2026-01.net.example:conform-%u", session->host_number);
    }
    target->hostid[0] = 0xc0;
    target->hostid[15] = session->host_number;
}

struct nvme_host *conf_connect(struct conf *conf,
                               const struct conf_session *session)
{
    struct nvme_host *host =
        session->on != NULL ? session->on : &conf_host(conf)->host;
    struct host_target target;
    uint16_t status;

    conf_resolve(conf, session, &target);
    if (!conf->dut->is_virtual) {
        /* Let the host's RNIC free what was destroyed. */
        conf_pass(conf, LOOK_US);
    }
    status = host_connect(host, &target);
    conf_check(
        conf, status != HOST_LOST,
        "connect failed: no answer, or refused with REJ %u, NVMe status %u",
        host->conn[0].reject_reason, host->conn[0].reject_status);
    conf_status(conf, "connect", status, NVME_SC_SUCCESS);
    return host;
}

struct nvme_host *conf_connect_discovery(struct conf *conf,
                                         const struct conf_session *session)
{
    struct conf_session discovery = *session;

    discovery.subnqn = NVME_DISCOVERY_NQN;
    discovery.io_queues = 0;
    return conf_connect(conf, &discovery);
}

/* ---- Verified I/O. */

void conf_fill(uint8_t *data, uint64_t lba, uint32_t blocks, uint32_t version)
{
    for (uint32_t i = 0; i < blocks; i++) {
        uint8_t *block = data + (size_t)i * CONF_BLOCK;
        uint64_t x = (lba + i) * UINT64_C(0x9e3779b97f4a7c15) + version;

        for (unsigned int k = 0; k < CONF_BLOCK; k += 8) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            put_le64(block + k, x);
        }
        put_le64(block, lba + i);
        put_le32(block + 8, version);
    }
}

static uint32_t block_bytes(const struct conf *conf)
{
    return conf->target.block_bytes != 0 ? conf->target.block_bytes
                                         : (uint32_t)CONF_BLOCK;
}

void conf_needs_block(struct conf *conf)
{
    if (block_bytes(conf) != CONF_BLOCK) {
        conf_not_run(conf,
                     "the namespace has blocks of %u bytes; the data of this "
                     "test is made for blocks of %u",
                     block_bytes(conf), CONF_BLOCK);
    }
}

static void fill_blocks(struct conf *conf, uint8_t *data, uint64_t lba,
                        uint32_t blocks, uint32_t version)
{
    uint32_t units = block_bytes(conf) / CONF_BLOCK;

    conf_fill(data, lba * units, blocks * units, version);
}

/*
 * Tests are written for small blocks: check that the command's data still fits.
 */
static void need_room(struct conf *conf, uint32_t blocks)
{
    uint64_t len_bytes = (uint64_t)blocks * block_bytes(conf);

    if (len_bytes > NATIVE_HOST_DATA_BYTES ||
        (conf->target.max_bytes != 0 && len_bytes > conf->target.max_bytes)) {
        conf_needs_block(conf);
    }
}

static uint16_t run_io(struct conf *conf, struct nvme_host *host,
                       uint8_t opcode, uint16_t qid, uint64_t lba,
                       uint32_t blocks)
{
    struct host_io io = {
        .qid = qid,
        .opcode = opcode,
        .kind = HOST_DATA_KEYED,
        .nsid = conf->target.nsid,
        .lba = lba,
        .blocks = blocks,
        .len_bytes = blocks * block_bytes(conf),
    };

    return host_io(host, &io);
}

void conf_write(struct conf *conf, struct nvme_host *host, uint16_t qid,
                uint64_t lba, uint32_t blocks, uint32_t version)
{
    need_room(conf, blocks);
    fill_blocks(conf, conf->host->data, lba, blocks, version);
    conf_status(conf, "write", run_io(conf, host, NVM_WRITE, qid, lba, blocks),
                NVME_SC_SUCCESS);
}

void conf_verify(struct conf *conf, struct nvme_host *host, uint16_t qid,
                 uint64_t lba, uint32_t blocks, uint32_t version)
{
    size_t len = (size_t)blocks * block_bytes(conf);
    uint8_t *expected = conf_alloc(conf, len);
    size_t at;

    need_room(conf, blocks);
    fill_blocks(conf, expected, lba, blocks, version);
    memset(conf->host->data, 0xa5, len);
    conf_status(conf, "read", run_io(conf, host, NVM_READ, qid, lba, blocks),
                NVME_SC_SUCCESS);
    for (at = 0; at < len && conf->host->data[at] == expected[at]; at++) {
    }
    conf_check(conf, at == len, "data read: byte %zu of block %llu differs",
               at % block_bytes(conf),
               (unsigned long long)(lba + at / block_bytes(conf)));
}

void conf_expect_alive(struct conf *conf)
{
    struct nvme_host *more = conf_alloc(conf, sizeof(*more));
    struct conf_session session = {
        .io_queues = 1,
        .host_number = ALIVE_HOST_NUMBER,
        .on = more,
    };

    conf_note(conf, "a well-behaved host connects and does verified I/O");
    conf_set_filter(conf, NULL, NULL);
    native_host_add(conf_host(conf), more, 1);
    conf_connect(conf, &session);
    conf_write(conf, more, 1, 64, 8, 7);
    conf_verify(conf, more, 1, 64, 8, 7);
    host_disconnect(more);
    host_end(more);
}

/* ---- Control. */

void conf_partner(struct conf *conf, unsigned int port, const char *key,
                  const char *value)
{
    conf_note(conf, "set the link partner of port %u: %s %s", port, key, value);
    if (!conf->dut->partner(conf->dut->ctx, port, key, value)) {
        conf_not_run(conf, "cannot set the link partner of port %u: %s %s",
                     port, key, value);
    }
}

/* In real time a drive takes a while to boot: wait until it answers on each
 * port.  On a busy machine its firmware may begin to run only when that time is
 * over; then the time begins anew. */
static void wait_for_start(struct conf *conf, unsigned int port)
{
    const struct conf_peer *peer = conf_peer(conf, CONF_PEERS - 1, port);
    bool answers = conf_arp(conf, peer, START_TRIES, START_PAUSE_US) != NULL;

    if (!answers && conf->dut->turn != NULL &&
        conf->dut->turn(conf->dut->ctx)) {
        conf_note(conf, "The main loop of the drive has made a turn only now.");
        answers = conf_arp(conf, peer, START_TRIES, START_PAUSE_US) != NULL;
    }
    conf_check(conf, answers, "port %u does not answer ARP after the start",
               port);
}

static void wait_for_starts(struct conf *conf)
{
    /* What the drive sent before it stopped may still be on its way. */
    if (!conf->dut->is_virtual) {
        conf_pass(conf, OLD_FRAMES_US);
    }
    conf_flush(conf);
    for (unsigned int i = 0;
         !conf->dut->is_virtual && i < conf->target.num_ports; i++) {
        wait_for_start(conf, i);
    }
}

void conf_power_cut(struct conf *conf)
{
    conf_note(conf, "power off and on");
    if (!conf->dut->power_cut(conf->dut->ctx)) {
        conf_fail(conf, "the drive did not come back after a power cut");
    }
    wait_for_starts(conf);
}

void conf_reset(struct conf *conf)
{
    conf_note(conf, "warm reset");
    if (!conf->dut->reset(conf->dut->ctx)) {
        conf_fail(conf, "the drive did not come back after a reset");
    }
    wait_for_starts(conf);
}

void conf_break_medium(struct conf *conf, uint64_t first, uint32_t count)
{
    if (conf->dut->break_medium == NULL) {
        conf_not_applicable(conf, "the medium of this target cannot be broken");
    }
    conf_note(conf, "%u blocks of the medium from %lu on cannot be read", count,
              (unsigned long)first);
    conf->dut->break_medium(conf->dut->ctx, first, count);
}

const char *conf_console(struct conf *conf, const char *line)
{
    conf_note(conf, "console: %s", line);
    if (!conf->dut->console(conf->dut->ctx, line, conf->console,
                            sizeof(conf->console))) {
        conf_not_run(conf, "the console does not answer \"%s\"", line);
    }
    return conf->console;
}

struct native_drive *conf_native_drive(struct conf *conf)
{
    return conf->dut->native != NULL ? conf->dut->native(conf->dut->ctx) : NULL;
}
