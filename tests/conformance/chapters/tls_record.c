/* SPDX-License-Identifier: BSD-2-Clause */
/* Chapter `tls`: records after the handshake.  Spec: RFC 8446 section 5. */
#include <string.h>

#include "tls_lib.h"

enum { IC_LEN = 128, OTHER = 1, KEY_UPDATE = 24, NEW_TICKET = 4 };

static const uint8_t ic_req[IC_LEN] = {0, 0, 128, 0, 128};

/* Send a record that is refused with this alert. */
static void refuse_record(struct tls_peer *peer, const uint8_t *record,
                          size_t len, uint8_t alert)
{
    stream_send(peer->stream, record, len, 0);
    tls_peer_refused(peer, alert);
    tls_expect_alive(peer->conf, OTHER);
}

static void record_replayed(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    uint8_t *record = conf_alloc(conf, TLS_PEER_RECORD);
    size_t len = tls_peer_seal(peer, TLS_PEER_DATA, ic_req, IC_LEN, record);

    stream_send(peer->stream, record, len, 0);
    (void)tls_peer_take(peer, IC_LEN);
    refuse_record(peer, record, len, 20);
}

static void record_reordered(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    uint8_t *first = conf_alloc(conf, TLS_PEER_RECORD);
    uint8_t *second = conf_alloc(conf, TLS_PEER_RECORD);
    size_t len;

    (void)tls_peer_seal(peer, TLS_PEER_DATA, ic_req, 64, first);
    len = tls_peer_seal(peer, TLS_PEER_DATA, ic_req + 64, 64, second);
    refuse_record(peer, second, len, 20);
}

/* One bit is another: in the length, the data, or the tag. */
static void record_changed(struct conf *conf)
{
    static const unsigned int places[] = {4, 5, 5 + IC_LEN, 5 + IC_LEN + 1,
                                          5 + IC_LEN + 16};

    tls_begin(conf, "required", TLS_PEER_KEY);
    for (unsigned int i = 0; i < ARRAY_LEN(places); i++) {
        struct tls_peer *peer = tls_connect(conf, i);
        uint8_t *record = conf_alloc(conf, TLS_PEER_RECORD);
        size_t len;

        tls_peer_shake(peer);
        len = tls_peer_seal(peer, TLS_PEER_DATA, ic_req, IC_LEN, record);
        record[places[i]] ^= 1;
        /* The byte that the changed length lacks or has too much. */
        record[len] = 0;
        stream_send(peer->stream, record, len + 1, 0);
        tls_peer_refused(peer, 20);
    }
    tls_expect_alive(conf, 6);
}

/* A write in a record that is cut off: none of it is done. */
static void record_truncated(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    uint8_t *record = conf_alloc(conf, TLS_PEER_RECORD);
    size_t len = tls_peer_seal(peer, TLS_PEER_DATA, ic_req, IC_LEN, record);

    stream_send(peer->stream, record, len - 1, 0);
    while (stream_poll(peer->stream, CONF_SILENCE_US)) {
    }
    conf_equal(conf, "bytes before the record was whole",
               stream_ready(peer->stream), 0);
    stream_send_flags(peer->stream, SEG_FIN | SEG_ACK);
    tls_peer_refused(peer, 0);
    tls_expect_alive(conf, OTHER);
}

/* A record of the drive is lost, more than once: what comes in the end has to
 * be the same record, since the peer takes no other one in its place. */
static void record_lost(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);

    peer->stream->is_mute = true;
    tls_peer_send(peer, ic_req, IC_LEN);
    while (stream_poll(peer->stream, CONF_SILENCE_US)) {
    }
    peer->stream->is_mute = false;
    conf_equal(conf, "bytes that have come", stream_ready(peer->stream), 0);
    (void)tls_peer_take(peer, IC_LEN);
    tls_expect_alive(conf, OTHER);
}

/* The drive forgets the connection.  (A native one forgets its hosts, too.) */
static void power_cut(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);

    tls_check_works(peer);
    conf_power_cut(conf);
    tls_peer_send(peer, ic_req, IC_LEN);
    while (!peer->stream->is_reset) {
        (void)stream_poll(peer->stream, 0);
    }
    tls_console(conf, "host add " TLS_PEER_HOST);
    tls_console(conf, "host tls-key " TLS_PEER_HOST " " TLS_PEER_KEY);
    tls_expect_alive(conf, OTHER);
}

static void record_pieces(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    uint8_t *record = conf_alloc(conf, TLS_PEER_RECORD);

    for (unsigned int i = 0; i < IC_LEN; i++) {
        size_t len = tls_peer_seal(peer, TLS_PEER_DATA, &ic_req[i], 1, record);

        stream_send(peer->stream, record, len, i % 2 == 0 ? 1 : 0);
    }
    (void)tls_peer_take(peer, IC_LEN);
}

static void record_empty(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    uint8_t *record = conf_alloc(conf, TLS_PEER_RECORD);
    uint8_t *padded = conf_alloc(conf, IC_LEN + 1000);

    stream_send(peer->stream, record,
                tls_peer_seal(peer, TLS_PEER_DATA, NULL, 0, record), 0);
    /* The type of a record comes before its padding. */
    memset(padded, 0, IC_LEN + 1000);
    memcpy(padded, ic_req, IC_LEN);
    padded[IC_LEN] = TLS_PEER_DATA;
    stream_send(peer->stream, record,
                tls_peer_seal(peer, 0, padded, IC_LEN + 999, record), 0);
    (void)tls_peer_take(peer, IC_LEN);
}

static void record_typeless(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    uint8_t record[TLS_PEER_RECORD];
    const uint8_t zeroes[10] = {0};
    size_t len = tls_peer_seal(peer, 0, zeroes, sizeof(zeroes), record);

    refuse_record(peer, record, len, 10);
}

static void record_too_long(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    static const uint8_t header[5] = {23, 3, 3, 0x41, 1};

    refuse_record(peer, header, sizeof(header), 22);
}

static void record_too_short(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    static const uint8_t record[5 + 16] = {23, 3, 3, 0, 16};

    refuse_record(peer, record, sizeof(record), 20);
}

/* ---- Messages after the handshake. */

static void refused_message(struct conf *conf, const void *message, size_t len)
{
    struct tls_peer *peer = tls_begin_open(conf);
    uint8_t *record = conf_alloc(conf, TLS_PEER_RECORD);

    len = tls_peer_seal(peer, TLS_PEER_HANDSHAKE, message, len, record);
    refuse_record(peer, record, len, 10);
}

static void send_update(struct tls_peer *peer, uint8_t wants)
{
    const uint8_t message[] = {KEY_UPDATE, 0, 0, 1, wants};
    uint8_t *record = conf_alloc(peer->conf, TLS_PEER_RECORD);

    stream_send(peer->stream, record,
                tls_peer_seal(peer, TLS_PEER_HANDSHAKE, message,
                              sizeof(message), record),
                0);
    maths_update(&peer->sends, peer->is_384, peer->from_client);
}

/* Data follow at once with the next key; the drive's next key follows its
 * answer. */
static void key_update(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);

    send_update(peer, 0);
    send_update(peer, 1);
    tls_peer_send(peer, ic_req, IC_LEN / 2);
    send_update(peer, 0);
    tls_peer_send(peer, ic_req + IC_LEN / 2, IC_LEN / 2);
    tls_peer_take_update(peer);
    (void)tls_peer_take(peer, IC_LEN);
}

static void key_update_wrong(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);

    send_update(peer, 2);
    tls_peer_refused(peer, 47);
    refused_message(conf, "\x18\0\0\1\1\x18\0\0\1\1", 10);
}

/* The record after a KeyUpdate has the old key. */
static void key_update_late(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    const struct maths_key before = peer->sends;
    uint8_t *record = conf_alloc(conf, TLS_PEER_RECORD);

    send_update(peer, 0);
    peer->sends = before;
    peer->sends.sequence++;
    refuse_record(peer, record,
                  tls_peer_seal(peer, TLS_PEER_DATA, ic_req, IC_LEN, record),
                  20);
}

static void new_ticket(struct conf *conf)
{
    refused_message(conf, "\4\0\0\0", 4);
}

/* A second ClientHello: in a record that is encrypted, and in a plain one. */
static void send_second_hello(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    size_t len = tls_peer_make_hello(peer);

    refused_message(conf, peer->message, len);
}

static void renegotiated_plain(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);

    tls_peer_hello(peer);
    tls_peer_refused(peer, 10);
    tls_expect_alive(conf, OTHER);
}

static void plain_alert(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);

    refuse_record(peer, (const uint8_t *)"\x15\3\3\0\2\1\0", 7, 10);
}

static void ccs_later(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);

    refuse_record(peer, (const uint8_t *)"\x14\3\3\0\1\1", 6, 10);
}

/* close_notify: the drive closes, too. */
static void close_notify(struct conf *conf)
{
    struct tls_peer *peer = tls_begin_open(conf);
    uint8_t *record = conf_alloc(conf, TLS_PEER_RECORD);

    tls_check_works(peer);
    stream_send(peer->stream, record,
                tls_peer_seal(peer, TLS_PEER_ALERT, "\1\0", 2, record), 0);
    tls_peer_refused(peer, 0);
}

/* clang-format off */
static const struct conf_test tests[] = {
    TLS_TEST("record.replayed", "RFC 8446 5.3",
             "answer bad_record_mac to a record that comes twice",
             record_replayed),
    TLS_TEST("record.reordered", "RFC 8446 5.3",
             "answer bad_record_mac to a record that comes too early",
             record_reordered),
    TLS_TEST("record.changed", "RFC 8446 5.2",
             "answer bad_record_mac to a changed bit", record_changed),
    TLS_TEST("record.truncated", "RFC 8446 6.1",
             "take nothing of a record that is cut off", record_truncated),
    TLS_TEST("record.lost", "RFC 8446 5.3; RFC 9293 3.8.1",
             "send a record that was lost again as it was", record_lost),
    TLS_TEST("record.power-cut", "NVMe TCP 1.1 3.6.1",
             "reset a connection of before a power cut, and take others",
             power_cut),
    TLS_TEST("record.pieces", "RFC 8446 5.1",
             "take records of one byte", record_pieces),
    TLS_TEST("record.empty", "RFC 8446 5.4",
             "take empty records and padding", record_empty),
    TLS_TEST("record.typeless", "RFC 8446 5.4",
             "answer unexpected_message to a record without a type",
             record_typeless),
    TLS_TEST("record.too-long", "RFC 8446 5.2",
             "answer record_overflow to the header of too long a record",
             record_too_long),
    TLS_TEST("record.too-short", "RFC 8446 5.2",
             "answer bad_record_mac to a record without a type and a tag",
             record_too_short),
    TLS_TEST("message.key-update", "RFC 8446 4.6.3",
             "take other keys by KeyUpdate, and answer with its own",
             key_update),
    TLS_TEST("message.key-update-wrong", "RFC 8446 4.6.3, 5.1",
             "refuse a KeyUpdate that wants something else, or has others "
             "behind it",
             key_update_wrong),
    TLS_TEST("message.key-update-late", "RFC 8446 4.6.3",
             "refuse the old key after a KeyUpdate", key_update_late),
    TLS_TEST("message.ticket", "RFC 8446 4.6.1",
             "answer unexpected_message to NewSessionTicket", new_ticket),
    TLS_TEST("message.renegotiation", "RFC 8446 4.1.2",
             "answer unexpected_message to a second ClientHello",
             send_second_hello),
    TLS_TEST("message.plain-hello", "RFC 8446 4.1.2",
             "answer the same to one that is not encrypted",
             renegotiated_plain),
    TLS_TEST("message.plain-alert", "RFC 8446 5.1",
             "believe no alert that is not encrypted", plain_alert),
    TLS_TEST("message.change-cipher-spec", "RFC 8446 5",
             "take no change_cipher_spec after the handshake", ccs_later),
    TLS_TEST("message.close", "RFC 8446 6.1",
             "answer close_notify with close_notify, and close", close_notify),
};
/* clang-format on */

CONF_TESTS(conf_tests_tls_record, "tls", tests);
