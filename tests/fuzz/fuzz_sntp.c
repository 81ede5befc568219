/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SNTP. A record is the server's answer to the client's request. Unless RAW is
 * set, it has the request's originate timestamp. OTHER: it comes from another
 * port.
 */
#include "lib/bytes.h"
#include "net/stack/sntp.h"
#include "net/wire/arp.h"
#include "net/wire/ipv4.h"
#include "net/wire/udp.h"
#include "tests/fuzz/seat.h"

static struct sntp_client client;

static void set_time(void *ctx, uint64_t epoch_ms, const struct sntp *answer)
{
    (void)ctx;
    /* From 2000 to 2100, and half of the round trip. */
    if (epoch_ms < UINT64_C(946684800000) ||
        epoch_ms >= UINT64_C(4102444800000) + 600000 ||
        answer->mode != SNTP_SERVER) {
        abort();
    }
}

static void ignore_kiss(void *ctx, uint32_t code)
{
    (void)ctx;
    (void)code;
}

static void start_sntp(struct seat *seat)
{
    const struct sntp_config config = {
        .stack = &seat->w->stack,
        .server = host4,
        .poll_s = 16,
        .random_seed = 7,
        .set_time = set_time,
        .kissed = ignore_kiss,
    };
    struct ip_addr us = seat_own4(0);
    uint8_t arp[64];

    if (!world_input(seat->w, 0, arp,
                     make_arp(arp, ARP_REQUEST, &host_mac, &host4, &us)) ||
        !sntp_init(&client, &config, seat->w->now_us)) {
        abort();
    }
}

static uint64_t sntp_timer_of_seat(struct seat *seat, uint64_t now_us)
{
    (void)seat;
    return sntp_timer(&client, now_us);
}

static size_t wrap_sntp(struct seat *seat, uint8_t flags, uint8_t *data,
                        size_t len, uint8_t *frame)
{
    size_t at;
    struct udp udp = {
        .src_port = flags & SEAT_OTHER ? 124 : SNTP_PORT,
        .dst_port = SNTP_CLIENT_PORT,
        .length_bytes = (uint16_t)(UDP_LEN + len),
    };

    (void)seat;
    at =
        seat_ipv4(flags & SEAT_GROUP, IP_PROTOCOL_UDP, udp.length_bytes, frame);
    if ((flags & SEAT_RAW) == 0 && len >= SNTP_LEN) {
        put_be64(data + SNTP_ORIGINATE_TIME, client.nonce);
    }
    udp_emit(&udp, frame + at); /* No checksum. */
    return seat_join(frame, at + UDP_LEN, data, len);
}

static const struct seat_format format = {
    .wrap = wrap_sntp, .start = start_sntp, .timer = sntp_timer_of_seat};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    return seat_run(&format, data, len);
}
