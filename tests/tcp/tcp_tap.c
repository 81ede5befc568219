/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP engine at a TAP device, so that the kernel of this computer talks to
 * it: echo at port 7, discard at port 9, and at port 19 a source that sends
 * SOURCE bytes and closes.
 *
 *   tcp_tap TAP [loss=PERCENT] [reorder=PERCENT] [duplicate=PERCENT]
 *           [delay_ms=MS] [seed=N] [source=BYTES] [newreno] [window=BYTES]
 *           [connect=PORT]
 *
 * With connect=PORT it opens a connection to 10.77.0.1, which has the MAC
 * 02:77:00:00:00:01, and is a source there, too.
 *
 * It answers ARP and neighbour solicitations for 10.77.0.2 and fd77::2.  Frames
 * of both directions are lost, held back and doubled as asked, which needs no
 * netem in the kernel.  It prints "ready", runs until its input ends, and then
 * prints its counters as JSON.  tests/tcp/linux_peer.py runs it.
 */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "lib/random.h"
#include "net/wire/arp.h"
#include "net/wire/eth.h"
#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/nd.h"
#include "tests/unit/net/tcp/host.h"

enum {
    FRAME_MAX = 2048,
    ENDING_US = 20 * 1000000, /* for the connections, once input has ended */
    CABLE_FRAMES = 4096,
    OWN_V4 = 0x0a4d0002,  /* 10.77.0.2 */
    PEER_V4 = 0x0a4d0001, /* 10.77.0.1 */
    PERCENT = 100,
};

static const struct mac_addr own_mac = {{0x02, 0x77, 0, 0, 0, 2}};
static const struct ip_addr own_v6 = {{0xfd, 0x77, [15] = 2}};

/* A frame on its way. */
struct carried {
    uint64_t due_us;
    bool is_in;
    uint32_t len;
    uint8_t data[FRAME_MAX];
};

struct cable {
    unsigned int loss, reorder, duplicate; /* percent */
    uint64_t delay_us, random;
    unsigned int count;
    struct carried *frames[CABLE_FRAMES]; /* in the order of due_us */
};

struct tap {
    int fd;
    struct host *host;
    struct mac_addr peer_mac;
    struct cable cable;
    uint16_t ip_id;
    uint16_t connect_port; /* 0: none */
};

static uint64_t clock_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ---- The cable. */

static bool cable_chance(struct cable *cable, unsigned int percent)
{
    return percent != 0 && random_next(&cable->random) % PERCENT < percent;
}

static void cable_put(struct cable *cable, bool is_in, const uint8_t *data,
                      size_t len, uint64_t due_us)
{
    struct carried *frame;
    unsigned int at = cable->count;

    if (cable->count == CABLE_FRAMES || len > FRAME_MAX) {
        return; /* its queue is full */
    }
    frame = malloc(sizeof(*frame));
    ASSERT(frame != NULL);
    frame->due_us = due_us;
    frame->is_in = is_in;
    frame->len = (uint32_t)len;
    memcpy(frame->data, data, len);
    for (; at != 0 && cable->frames[at - 1]->due_us > due_us; at--) {
        cable->frames[at] = cable->frames[at - 1];
    }
    cable->frames[at] = frame;
    cable->count++;
}

static void cable_carry(struct tap *tap, bool is_in, const uint8_t *data,
                        size_t len)
{
    struct cable *cable = &tap->cable;
    uint64_t due_us = tap->host->now_us + cable->delay_us;

    if (cable_chance(cable, cable->loss)) {
        return;
    }
    if (cable_chance(cable, cable->reorder)) {
        due_us += 1000 + random_next(&cable->random) % 4000;
    }
    cable_put(cable, is_in, data, len, due_us);
    if (cable_chance(cable, cable->duplicate)) {
        cable_put(cable, is_in, data, len, due_us);
    }
}

/* ---- Frames. */

static void frame_send(struct tap *tap, const uint8_t *data, size_t len)
{
    /* The device has a queue of its own; a full one is a lost frame. */
    (void)!write(tap->fd, data, len);
}

static void answer_arp(struct tap *tap, const uint8_t *data, size_t len)
{
    struct eth eth = {.src = own_mac, .type = ETHERTYPE_ARP};
    struct arp arp;
    uint8_t out[ETH_LEN + ARP_LEN];

    if (!arp_parse(&arp, data, len) || arp.operation != ARP_REQUEST ||
        ip_addr_to_v4(&arp.target_ip) != OWN_V4) {
        return;
    }
    eth.dst = tap->peer_mac = arp.sender_mac;
    eth_emit(&eth, out);
    arp = (struct arp){ARP_REPLY, own_mac, arp.sender_mac, arp.target_ip,
                       arp.sender_ip};
    arp_emit(&arp, out + ETH_LEN);
    frame_send(tap, out, sizeof(out));
}

static void answer_nd(struct tap *tap, const struct ipv6 *ip,
                      const uint8_t *data, size_t len)
{
    struct eth eth = {
        .src = own_mac, .dst = tap->peer_mac, .type = ETHERTYPE_IPV6};
    struct ipv6 reply = {.src = own_v6,
                         .dst = ip->src,
                         .next_header = IP_PROTOCOL_ICMPV6,
                         .hop_limit = ND_HOP_LIMIT};
    struct nd_neighbor nd;
    uint8_t out[ETH_LEN + IPV6_LEN + ND_NEIGHBOR_MAX_LEN];

    if (!nd_neighbor_parse(&nd, data, len) || nd.type != ND_NEIGHBOR_SOLICIT ||
        !ip_addr_equal(&nd.target, &own_v6) ||
        ip_addr_is_unspecified(&ip->src)) {
        return;
    }
    nd = (struct nd_neighbor){.type = ND_NEIGHBOR_ADVERT,
                              .solicited = true,
                              .override = true,
                              .has_lladdr = true,
                              .lladdr = own_mac,
                              .target = own_v6};
    len = nd_neighbor_emit(&nd, &own_v6, &ip->src, out + ETH_LEN + IPV6_LEN);
    reply.payload_len_bytes = (uint16_t)len;
    eth_emit(&eth, out);
    ipv6_emit(&reply, out + ETH_LEN);
    frame_send(tap, out, ETH_LEN + IPV6_LEN + len);
}

static void take_tcp(struct tap *tap, const struct ip_addr *src,
                     const struct ip_addr *dst, uint8_t tos,
                     const uint8_t *data, size_t len)
{
    struct tcp_ends ends = {.local = *src, .remote = *dst};

    host_input(tap->host, &ends, tos & 3, data, len);
}

static void take_ipv4(struct tap *tap, const uint8_t *data, size_t len)
{
    struct ipv4 ip;

    if (ipv4_parse(&ip, data, len) && ip_addr_to_v4(&ip.dst) == OWN_V4 &&
        ip.protocol == IP_PROTOCOL_TCP && !ip.more_fragments &&
        ip.fragment_offset_bytes == 0) {
        take_tcp(tap, &ip.src, &ip.dst, ip.tos, data + ip.header_len_bytes,
                 (size_t)ip.total_len_bytes - ip.header_len_bytes);
    }
}

static void take_ipv6(struct tap *tap, const uint8_t *data, size_t len)
{
    struct ipv6 ip;

    if (!ipv6_parse(&ip, data, len)) {
        return;
    }
    if (ip.next_header == IP_PROTOCOL_ICMPV6) {
        answer_nd(tap, &ip, data + IPV6_LEN, ip.payload_len_bytes);
    } else if (ip.next_header == IP_PROTOCOL_TCP &&
               ip_addr_equal(&ip.dst, &own_v6)) {
        take_tcp(tap, &ip.src, &ip.dst, ip.traffic_class, data + IPV6_LEN,
                 ip.payload_len_bytes);
    }
}

static void frame_take(struct tap *tap, const uint8_t *data, size_t len)
{
    struct eth eth;

    if (!eth_parse(&eth, data, len)) {
        return;
    }
    tap->peer_mac = eth.src;
    data += eth_header_len(&eth);
    len -= eth_header_len(&eth);
    switch (eth.type) {
    case ETHERTYPE_ARP:
        answer_arp(tap, data, len);
        break;
    case ETHERTYPE_IPV4:
        take_ipv4(tap, data, len);
        break;
    case ETHERTYPE_IPV6:
        take_ipv6(tap, data, len);
        break;
    default:
        break;
    }
}

/* Add IP and Ethernet to what the engine sends. */
static void segment_carry(struct tap *tap, const struct host_frame *segment)
{
    bool is_v4 = ip_addr_is_v4(&segment->ends.remote);
    struct eth eth = {.src = own_mac,
                      .dst = tap->peer_mac,
                      .type = is_v4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6};
    uint8_t out[FRAME_MAX];
    size_t at = ETH_LEN;

    eth_emit(&eth, out);
    if (is_v4) {
        struct ipv4 ip = {.src = segment->ends.local,
                          .dst = segment->ends.remote,
                          .total_len_bytes =
                              (uint16_t)(IPV4_LEN + segment->len_bytes),
                          .id = tap->ip_id++,
                          .ttl = 64,
                          .tos = segment->ecn,
                          .protocol = IP_PROTOCOL_TCP,
                          .dont_fragment = true};

        ipv4_emit(&ip, out + at);
        at += IPV4_LEN;
    } else {
        struct ipv6 ip = {.src = segment->ends.local,
                          .dst = segment->ends.remote,
                          .payload_len_bytes = (uint16_t)segment->len_bytes,
                          .traffic_class = segment->ecn,
                          .next_header = IP_PROTOCOL_TCP,
                          .hop_limit = 64};

        ipv6_emit(&ip, out + at);
        at += IPV6_LEN;
    }
    ASSERT(at + segment->len_bytes <= sizeof(out));
    memcpy(out + at, segment->data, segment->len_bytes);
    cable_carry(tap, false, out, at + segment->len_bytes);
}

static void segments_carry(struct tap *tap)
{
    struct host_frame *frame;

    while ((frame = host_frame(tap->host)) != NULL) {
        segment_carry(tap, frame);
        host_frame_done(tap->host);
        if (tap->host->frame_count == 0) {
            host_settle(tap->host); /* there is room again */
        }
    }
}

static void cable_deliver(struct tap *tap)
{
    struct cable *cable = &tap->cable;

    while (cable->count != 0 && cable->frames[0]->due_us <= tap->host->now_us) {
        struct carried *frame = cable->frames[0];

        cable->count--;
        memmove(&cable->frames[0], &cable->frames[1],
                cable->count * sizeof(struct carried *));
        if (frame->is_in) {
            frame_take(tap, frame->data, frame->len);
        } else {
            frame_send(tap, frame->data, frame->len);
        }
        free(frame);
        segments_carry(tap);
    }
}

/* ---- The program. */

static void frames_read(struct tap *tap)
{
    uint8_t data[FRAME_MAX];
    ssize_t len;

    for (int i = 0; i < 64 && (len = read(tap->fd, data, sizeof(data))) > 0;
         i++) {
        cable_carry(tap, true, data, (size_t)len);
    }
}

static int wait_ms(const struct tap *tap)
{
    uint64_t due_us = tcp_deadline(tap->host->tcp);
    uint64_t now_us = tap->host->now_us;

    if (tap->cable.count != 0) {
        due_us = MIN(due_us, tap->cable.frames[0]->due_us);
    }
    return due_us <= now_us
               ? 0
               : (int)MIN((due_us - now_us + 999) / 1000, (uint64_t)100);
}

/* Until standard input ends, and every connection has: the cable may have lost
 * the last ACK, and the kernel's socket does not show that. */
static void tap_run(struct tap *tap)
{
    struct pollfd fds[] = {{.fd = tap->fd, .events = POLLIN},
                           {.fd = STDIN_FILENO, .events = POLLIN}};
    uint64_t until_us = 0;

    while (until_us == 0 || (tcp_usage(tap->host->tcp).connections != 0 &&
                             tap->host->now_us < until_us)) {
        (void)poll(fds, until_us == 0 ? 2 : 1, wait_ms(tap));
        if (until_us == 0 && fds[1].revents != 0) {
            until_us = clock_us() + ENDING_US;
        }
        tap->host->now_us = clock_us();
        frames_read(tap);
        cable_deliver(tap);
        host_settle(tap->host);
        segments_carry(tap);
    }
}

static int tap_open(const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

    (void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0) {
        perror("tcp_tap: /dev/net/tun");
        exit(1);
    }
    return fd;
}

static void option_take(const char *option, struct tap *tap,
                        struct tcp_config *config, uint64_t *source)
{
    const struct {
        const char *name;
        unsigned int *to;
    } percents[] = {{"loss=", &tap->cable.loss},
                    {"reorder=", &tap->cable.reorder},
                    {"duplicate=", &tap->cable.duplicate}};
    const char *value = strchr(option, '=');
    uint64_t number = value != NULL ? strtoull(value + 1, NULL, 10) : 0;

    for (size_t i = 0; i < ARRAY_LEN(percents); i++) {
        if (strncmp(option, percents[i].name, strlen(percents[i].name)) == 0) {
            *percents[i].to = (unsigned int)number;
            return;
        }
    }
    if (strncmp(option, "delay_ms=", 9) == 0) {
        tap->cable.delay_us = number * 1000;
    } else if (strncmp(option, "seed=", 5) == 0) {
        tap->cable.random = number;
    } else if (strncmp(option, "source=", 7) == 0) {
        *source = number;
    } else if (strncmp(option, "window=", 7) == 0) {
        config->window_bytes = (uint32_t)number;
    } else if (strncmp(option, "connect=", 8) == 0) {
        tap->connect_port = (uint16_t)number;
    } else if (strcmp(option, "newreno") == 0) {
        config->congestion = TCP_NEWRENO;
    } else {
        fprintf(stderr, "tcp_tap: unknown option %s\n", option);
        exit(1);
    }
}

static void tap_connect(struct tap *tap)
{
    struct tcp_ends ends = {ip_addr_from_v4(OWN_V4), ip_addr_from_v4(PEER_V4),
                            50000, tap->connect_port};
    uint32_t id = tcp_connect(tap->host->tcp, &ends, 0, tap->host->now_us);

    ASSERT(id != TCP_NO_ID);
    tap->host->conns[id & 0xffff] =
        (struct host_conn){.id = id, .service = HOST_SOURCE};
}

int main(int argc, char **argv)
{
    struct tcp_config config = tcp_config_default();
    struct tap tap = {.cable = {.random = 1}};
    uint64_t source = 1 << 20;

    if (argc < 2) {
        fprintf(stderr, "usage: tcp_tap TAP [option...]\n");
        return 1;
    }
    for (int i = 2; i < argc; i++) {
        option_take(argv[i], &tap, &config, &source);
    }
    config.connections = 100;
    tap.fd = tap_open(argv[1]);
    tap.host = host_new(&config);
    tap.host->source_bytes = source;
    tap.host->now_us = clock_us();
    host_listen(tap.host, 7, HOST_ECHO);
    host_listen(tap.host, 9, HOST_DISCARD);
    host_listen(tap.host, 19, HOST_SOURCE);
    tap.peer_mac = (struct mac_addr){{0x02, 0x77, 0, 0, 0, 1}};
    if (tap.connect_port != 0) {
        tap_connect(&tap);
    }
    printf("ready\n");
    (void)fflush(stdout);
    tap_run(&tap);
    printf("{\"connections\": %u, \"half_open\": %u, \"pages\": %u",
           tcp_usage(tap.host->tcp).connections,
           tcp_usage(tap.host->tcp).half_open, tcp_usage(tap.host->tcp).pages);
    for (int i = 0; i < TCP_COUNTERS; i++) {
        printf(", \"%s\": %llu", tcp_counter_name[i],
               (unsigned long long)tcp_counter(tap.host->tcp,
                                               (enum tcp_counter)i));
    }
    printf("}\n");
    for (; tap.cable.count != 0; tap.cable.count--) {
        free(tap.cable.frames[tap.cable.count - 1]);
    }
    host_free(tap.host);
    return 0;
}
