/* SPDX-License-Identifier: BSD-2-Clause */
/* Chapter `tls`: many connections, and handshakes that nobody finishes. */
#include <string.h>

#include "tls_lib.h"

enum {
    CROWD = 200,
    FLOOD = 600,    /* SYNs whose senders do not exist */
    HANDSHAKES = 8, /* at once */
    PLACES = 64,    /* of connections behind TLS */
    PATIENCE_US = 5000000,
    APART_US = 1000,
    YOUNG_US = 1000000, /* nobody has to make room before */
};

static struct tls_peer *connect_stranger(struct conf *conf, unsigned int number)
{
    struct stream *stream = conf_alloc(conf, sizeof(*stream));
    struct tcp_peer peer = tcp_peer_stranger(conf, number, STREAM_PORT);

    memset(stream, 0, sizeof(*stream));
    stream_open_peer(stream, &peer);
    return tls_peer_new(conf, stream);
}

/* Half a ClientHello. */
static void begin_only(struct tls_peer *peer)
{
    uint8_t record[5 + 100] = {22, 3, 1, 1, 0};
    size_t len = tls_peer_make_hello(peer);

    memcpy(record + 5, peer->message, MIN(len, (size_t)100));
    stream_send(peer->stream, record, sizeof(record), 0);
}

static bool is_over(struct tls_peer *peer)
{
    while (stream_poll(peer->stream, 1)) {
    }
    return peer->stream->is_reset || peer->stream->is_finished;
}

static void never_finished(struct conf *conf)
{
    struct tls_peer *good;

    tls_begin(conf, "required", TLS_PEER_KEY);
    good = tls_connect(conf, 0);
    tls_peer_shake(good);
    for (unsigned int i = 0; i < CROWD; i++) {
        begin_only(connect_stranger(conf, i));
    }
    conf_note(conf, "a host connects while all of them wait");
    tls_expect_alive(conf, 1);
    tls_check_works(good);
}

/* The same, but each has taken ServerHello, so that its key is known. */
static void never_answered(struct conf *conf)
{
    tls_begin(conf, "required", TLS_PEER_KEY);
    for (unsigned int i = 0; i < CROWD; i++) {
        tls_peer_hello(connect_stranger(conf, i));
    }
    conf_note(conf, "a host connects while all of them wait");
    tls_expect_alive(conf, 1);
}

/* Nobody sends a byte. */
static void never_begun(struct conf *conf)
{
    tls_begin(conf, "required", TLS_PEER_KEY);
    for (unsigned int i = 0; i < CROWD; i++) {
        (void)connect_stranger(conf, i);
    }
    tls_expect_alive(conf, 1);
}

static void ninth_handshake(struct conf *conf)
{
    struct tls_peer *peers[HANDSHAKES + 1];

    tls_begin(conf, "required", TLS_PEER_KEY);
    for (unsigned int i = 0; i < HANDSHAKES; i++) {
        peers[i] = connect_stranger(conf, i);
        begin_only(peers[i]);
        conf_pass(conf, APART_US);
    }
    for (unsigned int i = 0; i < HANDSHAKES; i++) {
        conf_check(conf, !is_over(peers[i]), "handshake %u has ended", i);
    }
    conf_note(conf, "the ninth one makes the oldest one end");
    peers[HANDSHAKES] = connect_stranger(conf, HANDSHAKES);
    tls_peer_shake(peers[HANDSHAKES]);
    tls_check_works(peers[HANDSHAKES]);
    conf_check(conf, is_over(peers[0]), "the oldest handshake goes on");
    for (unsigned int i = 1; i < HANDSHAKES; i++) {
        conf_check(conf, !is_over(peers[i]), "handshake %u has ended, too", i);
    }
}

static void too_slow(struct conf *conf)
{
    struct tls_peer *peer;

    tls_begin(conf, "required", TLS_PEER_KEY);
    peer = tls_connect(conf, 0);
    begin_only(peer);
    conf_pass(conf, PATIENCE_US / 2);
    conf_check(conf, !is_over(peer), "the handshake has ended too early");
    conf_pass(conf, PATIENCE_US);
    conf_check(conf, is_over(peer) && peer->stream->is_reset,
               "the drive waits for the rest of the handshake");
}

/* Each of the others is of another address, and has finished its handshake. */
static void all_places(struct conf *conf)
{
    struct tls_peer *first = NULL, *more;

    tls_begin(conf, "required", TLS_PEER_KEY);
    for (unsigned int i = 0; i < PLACES; i++) {
        struct tls_peer *peer = connect_stranger(conf, i);

        tls_peer_shake(peer);
        first = first != NULL ? first : peer;
    }
    more = connect_stranger(conf, PLACES);
    tls_peer_shake(more);
    while (!is_over(more)) {
        conf_pass(conf, 1000);
    }
    conf_check(conf, more->stream->is_reset,
               "the 65th connection was not reset");
    conf_check(conf, !is_over(first), "a connection of a moment ago has ended");
    conf_note(conf, "they do not go on for a second, and a host comes");
    conf_pass(conf, YOUNG_US);
    tls_expect_alive(conf, 0);
    conf_check(conf, is_over(first), "the oldest one has not made room");
}

/* All places but one are taken, and two hosts have sent nothing yet.  SYNs with
 * forged addresses displace nobody, and keep nobody out. */
static void flood_of_syns(struct conf *conf)
{
    struct tls_peer *first = NULL, *waiting[2];

    tls_begin(conf, "required", TLS_PEER_KEY);
    for (unsigned int i = 0; i < PLACES - 1; i++) {
        struct tls_peer *peer = connect_stranger(conf, i);

        tls_peer_shake(peer);
        first = first != NULL ? first : peer;
    }
    for (unsigned int i = 0; i < ARRAY_LEN(waiting); i++) {
        waiting[i] = connect_stranger(conf, PLACES + i);
    }
    for (unsigned int i = 0; i < FLOOD; i++) {
        struct tcp_peer forged =
            tcp_peer_stranger(conf, 2 * PLACES + i, STREAM_PORT);

        tcp_peer_syn(&forged);
    }
    tls_expect_alive(conf, 0);
    for (unsigned int i = 0; i < ARRAY_LEN(waiting); i++) {
        conf_check(conf, !is_over(waiting[i]), "a host that waited is lost");
    }
    tls_check_works(first);
}

/* clang-format off */
static const struct conf_test tests[] = {
    TLS_TEST("many.never-finished", "NVMe TCP 1.1 3.6.1; RFC 8446 C.4",
             "serve hosts while 200 addresses stop in their ClientHello",
             never_finished),
    TLS_TEST("many.never-answered", "RFC 8446 4.4.4",
             "serve hosts while 200 addresses send no Finished",
             never_answered),
    TLS_TEST("many.never-begun", "RFC 8446 4.1.2",
             "serve hosts while 200 addresses send nothing", never_begun),
    TLS_TEST("many.ninth", "RFC 8446 4",
             "let the oldest of nine handshakes make room", ninth_handshake),
    TLS_TEST("many.too-slow", "RFC 8446 4",
             "reset a host that does not go on for 5 s", too_slow),
    TLS_TEST("many.syns", "RFC 4987 2",
             "serve and take hosts while SYNs with false sources come",
             flood_of_syns),
    TLS_TEST("many.places", "NVMe TCP 1.1 3.6.1",
             "let the oldest of 65 hosts make room that do not connect",
             all_places),
};
/* clang-format on */

CONF_TESTS(conf_tests_tls_many, "tls", tests);
