/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chapter `tls`: records at moments that a host would not choose, such as while
 * the drive closes, or while its own bytes wait.  Spec: RFC 8446.
 */
#include <string.h>

#include "tls_lib.h"

enum {
    IC_LEN = 128,
    OTHER = 1,
    KEY_UPDATE = 24,
    UPDATES = 200,
    MANY_UPDATES = 3000, /* their answers exceed 64 KiB */
    END_US = 5000000,
};

static void send_record(struct tls_peer *peer, uint8_t type, const void *data,
                        size_t len)
{
    uint8_t *record = conf_alloc(peer->conf, TLS_PEER_RECORD);

    stream_send(peer->stream, record,
                tls_peer_seal(peer, type, data, len, record), 0);
}

static void send_update(struct tls_peer *peer, uint8_t wants)
{
    const uint8_t message[] = {KEY_UPDATE, 0, 0, 1, wants};

    send_record(peer, TLS_PEER_HANDSHAKE, message, sizeof(message));
    maths_update(&peer->sends, peer->is_384, peer->from_client);
}

static void await_silence(struct tls_peer *peer)
{
    while (stream_poll(peer->stream, CONF_SILENCE_US)) {
    }
}

/* ---- KeyUpdate. */

enum { CAPSULE = 4, CAPSULE_LEN = 72, DIGEST = 4, RESPONSE_LEN = 28 };

/* RFC 3720 appendix B.4, bit by bit. */
static uint32_t digest_of(const uint8_t *bytes, size_t len)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < len * 8; i++) {
        crc ^= i % 8 == 0 ? bytes[i / 8] : 0u;
        crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void put_digest(uint8_t *to, uint32_t crc)
{
    for (unsigned int i = 0; i < DIGEST; i++) {
        to[i] = (uint8_t)(crc >> 8 * i);
    }
}

/* Any command: the drive answers that it comes before Connect. */
static void ask_with_digest(struct tls_peer *peer)
{
    uint8_t pdu[CAPSULE_LEN + DIGEST] = {CAPSULE, 1, CAPSULE_LEN, 0,
                                         CAPSULE_LEN + DIGEST};
    uint8_t digest[DIGEST];
    const uint8_t *response;

    put_digest(pdu + CAPSULE_LEN, digest_of(pdu, CAPSULE_LEN));
    tls_peer_send(peer, pdu, sizeof(pdu));
    response = tls_peer_take(peer, RESPONSE_LEN);
    put_digest(digest, digest_of(response, RESPONSE_LEN - DIGEST));
    conf_same(peer->conf, "response", response, "\x05\1\x18\0\x1c\0\0\0", 8);
    conf_same(peer->conf, "digest of a response",
              response + RESPONSE_LEN - DIGEST, digest, DIGEST);
}

static void update_with_digests(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    static const uint8_t request[IC_LEN] = {[2] = 128, [4] = 128, [11] = 3};

    tls_peer_send(peer, request, sizeof(request));
    (void)tls_peer_take(peer, IC_LEN);
    ask_with_digest(peer);
    for (unsigned int i = 0; i < 3; i++) {
        send_update(peer, 1);
        tls_peer_take_update(peer);
        ask_with_digest(peer);
    }
}

static const uint8_t wrong_request[IC_LEN] = {0, 0, 127, 0, 128};

/* The drive says what is wrong, and sends its FIN. */
static void make_close(struct tls_peer *peer)
{
    tls_peer_send(peer, wrong_request, IC_LEN);
    (void)tls_peer_take(peer, 24);
    await_silence(peer);
    conf_check(peer->conf, peer->stream->is_finished,
               "the drive does not close");
}

static void check_closes(struct tls_peer *peer)
{
    await_silence(peer);
    conf_check(peer->conf, !peer->stream->is_reset, "the drive sends a RST");
    tls_peer_refused(peer, 0);
    await_silence(peer);
    conf_check(peer->conf, !peer->stream->is_reset, "the drive sends a RST");
}

/* The drive has said what is wrong, and sent its FIN: a KeyUpdate that was
 * under way is no reason for a RST, which could destroy what it has said. */
static void update_while_closing(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);

    make_close(peer);
    send_update(peer, 1);
    send_record(peer, TLS_PEER_DATA, wrong_request, IC_LEN);
    check_closes(peer);
    tls_expect_alive(conf, OTHER);
}

/* Nor is a record that would not be allowed at another time. */
static void wrong_while_closing(struct conf *conf)
{
    uint8_t *record = conf_alloc(conf, TLS_PEER_RECORD);
    struct tls_peer *peer = tls_begin_open(conf);
    size_t len;

    make_close(peer);
    len = tls_peer_seal(peer, TLS_PEER_DATA, "\1", 1, record);
    record[len - 1] ^= 1;
    stream_send(peer->stream, record, len, 0);
    check_closes(peer);
    peer = tls_connect(conf, 1);
    tls_peer_shake(peer);
    make_close(peer);
    send_update(peer, 2);
    check_closes(peer);
    peer = tls_connect(conf, 2);
    tls_peer_shake(peer);
    make_close(peer);
    send_record(peer, TLS_PEER_ALERT, NULL, 0);
    check_closes(peer);
    tls_expect_alive(conf, 6);
}

/* The host acknowledges nothing meanwhile. */
static void update_flood(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);

    peer->stream->is_mute = true;
    for (unsigned int i = 0; i < UPDATES; i++) {
        send_update(peer, 1);
    }
    await_silence(peer);
    peer->stream->is_mute = false;
    tls_expect_alive(conf, OTHER);
    peer->takes_updates = true;
    tls_check_works(peer);
    conf_check(conf, peer->updates != 0 && peer->updates <= UPDATES,
               "%u answers to %u KeyUpdates", peer->updates, UPDATES);
}

/* The same with more answers than the drive keeps, and then a request: its
 * answer has to wait for theirs. */
static void update_unread(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    static const uint8_t request[IC_LEN] = {[2] = 128, [4] = 128};

    peer->stream->is_mute = true;
    for (unsigned int i = 0; i < MANY_UPDATES; i++) {
        send_update(peer, 1);
    }
    tls_peer_send(peer, request, sizeof(request));
    await_silence(peer);
    tls_expect_alive(conf, OTHER);
    peer->stream->is_mute = false;
    peer->takes_updates = true;
    (void)tls_peer_take(peer, IC_LEN);
    conf_check(conf, peer->updates > UPDATES && peer->updates <= MANY_UPDATES,
               "%u answers to %u KeyUpdates", peer->updates, MANY_UPDATES);
}

/* A KeyUpdate in each gap of a PDU, and records of a byte around them. */
static void update_in_a_pdu(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    static const uint8_t request[IC_LEN] = {[2] = 128, [4] = 128};

    peer->takes_updates = true;
    for (unsigned int i = 0; i < IC_LEN; i++) {
        send_update(peer, i % 2);
        send_record(peer, TLS_PEER_DATA, request + i, 1);
    }
    (void)tls_peer_take(peer, IC_LEN);
    conf_check(conf, peer->updates != 0, "the drive has answered none");
}

/* The first KeyUpdate is whole; the second one is cut, and the host leaves. */
static void update_and_fin(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    uint8_t *record = conf_alloc(conf, TLS_PEER_RECORD);
    size_t len;

    tls_check_works(peer);
    send_update(peer, 0);
    len = tls_peer_seal(peer, TLS_PEER_HANDSHAKE, "\x18\0\0\1", 5, record);
    stream_send(peer->stream, record, len - 1, 0);
    stream_send_flags(peer->stream, SEG_FIN | SEG_ACK);
    await_silence(peer);
    conf_check(conf, !peer->stream->is_reset, "the drive sends a RST");
    conf_check(conf, peer->stream->is_finished, "the drive does not close");
    tls_expect_alive(conf, OTHER);
}

/* ---- Alerts. */

/* @return an open connection with this alert behind half a PDU */
static struct tls_peer *send_alert(struct conf *conf, unsigned int index,
                                   const void *alert, size_t len)
{
    struct tls_peer *peer = tls_connect(conf, index);
    static const uint8_t request[IC_LEN] = {[2] = 128, [4] = 128};

    tls_peer_shake(peer);
    tls_peer_send(peer, request, IC_LEN / 2);
    send_record(peer, TLS_PEER_ALERT, alert, len);
    return peer;
}

/* RFC 8446 section 6.2: an error alert ends the connection at once, and so does
 * one that nobody knows. */
static void fatal_alerts(struct conf *conf)
{
    static const uint8_t which[] = {10, 20, 80, 255};

    tls_begin(conf, "required", TLS_PEER_KEY);
    for (unsigned int i = 0; i < ARRAY_LEN(which); i++) {
        const uint8_t alert[] = {(uint8_t)(1 + i % 2), which[i]};
        struct tls_peer *peer = send_alert(conf, i, alert, sizeof(alert));

        await_silence(peer);
        conf_check(conf, peer->stream->is_reset, "alert %u ends nothing",
                   which[i]);
    }
    tls_expect_alive(conf, 6);
}

/* Section 5.4: one without content is not allowed; 6: nor is half of one. */
static void wrong_alerts(struct conf *conf)
{
    tls_begin(conf, "required", TLS_PEER_KEY);
    tls_peer_refused(send_alert(conf, 0, NULL, 0), 10);
    tls_peer_refused(send_alert(conf, 1, "\1", 1), 50);
    tls_peer_refused(send_alert(conf, 2, "\1\0\1\0", 4), 50);
    tls_expect_alive(conf, 6);
}

/* Section 6.1: what comes after close_notify does not count. */
static void data_after_close(struct conf *conf)
{
    struct tls_peer *peer;

    tls_begin(conf, "required", TLS_PEER_KEY);
    peer = send_alert(conf, 0, "\1\0", 2);
    for (unsigned int i = 0; i < 20; i++) {
        tls_peer_send(peer, conf, 1000);
    }
    tls_peer_refused(peer, 0);
    await_silence(peer);
    tls_expect_alive(conf, OTHER);
}

/* ---- Lengths, and what follows something wrong. */

static void record_lengths(struct conf *conf)
{
    uint8_t *zeroes = conf_alloc(conf, TLS_PEER_RECORD);
    struct tls_peer *peer;

    memset(zeroes, 0, TLS_PEER_RECORD);
    tls_begin(conf, "required", TLS_PEER_KEY);
    peer = tls_connect(conf, 0);
    tls_peer_shake(peer);
    send_record(peer, TLS_PEER_DATA, zeroes, TLS_PEER_MOST + 1);
    tls_peer_refused(peer, 22);
    peer = tls_connect(conf, 1);
    tls_peer_shake(peer);
    zeroes[2] = zeroes[4] = IC_LEN; /* of ICReq */
    zeroes[IC_LEN] = TLS_PEER_DATA;
    send_record(peer, 0, zeroes, TLS_PEER_MOST);
    (void)tls_peer_take(peer, IC_LEN);
    peer = tls_connect(conf, 2);
    tls_peer_shake(peer);
    memset(zeroes, 0, TLS_PEER_RECORD);
    send_record(peer, 0, zeroes, TLS_PEER_MOST);
    tls_peer_refused(peer, 10);
    peer = tls_connect(conf, 3);
    tls_peer_shake(peer);
    send_record(peer, TLS_PEER_HANDSHAKE, NULL, 0);
    tls_peer_refused(peer, 10);
    tls_expect_alive(conf, 6);
}

/* The host sends on and on: the drive ends it after a time, whatever comes. */
static void sends_on(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    static const uint8_t junk[1000];
    uint64_t begin_us = conf_now_us(conf);

    stream_send(peer->stream, "\x15\3\3\0\2\1\0", 7, 0);
    while (!peer->stream->is_reset) {
        conf_check(conf, conf_now_us(conf) - begin_us < 2 * END_US,
                   "the drive listens for ever");
        tls_peer_send(peer, junk, sizeof(junk));
        conf_pass(conf, 100000);
        (void)stream_poll(peer->stream, 1);
    }
    tls_expect_alive(conf, OTHER);
}

/* clang-format off */
static const struct conf_test tests[] = {
    TLS_TEST("attack.update-digests", "RFC 8446 4.6.3; NVMe TCP 1.0 3.3.1.1",
             "send right digests after a KeyUpdate of its own",
             update_with_digests),
    TLS_TEST("attack.update-closing", "RFC 8446 4.6.3, 6.1",
             "let a host read why the drive closes, although its KeyUpdate "
             "was under way",
             update_while_closing),
    TLS_TEST("attack.wrong-closing", "RFC 8446 5.2, 6.1",
             "let a host read why the drive closes, although a wrong record "
             "was under way",
             wrong_while_closing),
    TLS_TEST("attack.update-flood", "RFC 8446 4.6.3",
             "answer KeyUpdates of a host that acknowledges nothing",
             update_flood),
    TLS_TEST("attack.update-unread", "RFC 8446 4.6.3",
             "answer more KeyUpdates of such a host than have room, and then "
             "its request",
             update_unread),
    TLS_TEST("attack.update-pdu", "RFC 8446 4.6.3",
             "take a KeyUpdate before each byte of a PDU", update_in_a_pdu),
    TLS_TEST("attack.update-fin", "RFC 8446 4.6.3, 6.1",
             "take a FIN behind a KeyUpdate, and half a one", update_and_fin),
    TLS_TEST("attack.alerts", "RFC 8446 6.2",
             "end a connection at any alert in the middle of a PDU",
             fatal_alerts),
    TLS_TEST("attack.alerts-wrong", "RFC 8446 5.4, 6",
             "refuse alerts of other lengths", wrong_alerts),
    TLS_TEST("attack.after-close", "RFC 8446 6.1",
             "take nothing behind close_notify", data_after_close),
    TLS_TEST("attack.lengths", "RFC 8446 5.1, 5.2, 5.4",
             "take the longest record, and refuse a longer one",
             record_lengths),
    TLS_TEST("attack.sends-on", "RFC 8446 6.2",
             "end a host that goes on sending after an alert", sends_on),
};
/* clang-format on */

CONF_TESTS(conf_tests_tls_attack, "tls", tests);
