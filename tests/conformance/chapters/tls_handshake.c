/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chapter `tls`: handshakes, keys, and what is refused.
 * Spec: RFC 8446; NVMe TCP 1.1 section 3.6.1 (TP 8011, TP 8018).
 */
#include <string.h>

#include "tls_lib.h"

enum { OTHER = 1, INVALID_HOST = 0x184 };

/* ---- Handshakes that succeed. */

static void shake_host(struct conf *conf, enum tls_peer_flaw flaw,
                       uint32_t piece, bool is_384)
{
    struct tls_peer *peer;

    tls_begin(conf, "required", is_384 ? TLS_PEER_KEY_384 : TLS_PEER_KEY);
    peer = tls_connect(conf, 0);
    peer->flaw = flaw;
    peer->piece = piece;
    peer->is_384 = is_384;
    tls_peer_shake(peer);
    tls_check_works(peer);
    conf_equal(conf, "HelloRetryRequest", peer->was_retried,
               flaw == TLS_PEER_NO_SHARE);
}

static void shake_sha256(struct conf *conf)
{
    shake_host(conf, TLS_PEER_RIGHT, 0, false);
}

static void shake_sha384(struct conf *conf)
{
    shake_host(conf, TLS_PEER_RIGHT, 0, true);
}

static void shake_retry(struct conf *conf)
{
    shake_host(conf, TLS_PEER_NO_SHARE, 0, false);
}

static void shake_bytes(struct conf *conf)
{
    shake_host(conf, TLS_PEER_RIGHT, 1, false);
}

static void shake_session(struct conf *conf)
{
    shake_host(conf, TLS_PEER_SESSION, 0, false);
}

static void shake_stranger(struct conf *conf)
{
    shake_host(conf, TLS_PEER_STRANGER, 0, false);
}

static void shake_grease(struct conf *conf)
{
    shake_host(conf, TLS_PEER_GREASE, 0, false);
}

/* ---- Those that are refused. */

static const struct {
    const char *text; /* of the test's row */
    enum tls_peer_flaw flaw;
    uint8_t alert;
} refusals[] = {
    {"key", TLS_PEER_WRONG_KEY, 51},     {"name", TLS_PEER_WRONG_NAME, 51},
    {"drive", TLS_PEER_WRONG_DRIVE, 51}, {"psk", TLS_PEER_NO_PSK, 109},
    {"version", TLS_PEER_OLD, 70},       {"early", TLS_PEER_EARLY, 47},
    {"group", TLS_PEER_NO_GROUP, 40},    {"suite", TLS_PEER_NO_SUITE, 40},
    {"modes", TLS_PEER_NO_MODES, 109},   {"psk-only", TLS_PEER_PSK_ONLY, 40},
    {"twice", TLS_PEER_TWICE, 47},       {"short", TLS_PEER_SHORT, 50},
    {"point", TLS_PEER_ZERO, 47},
};

static void hello_refused(struct conf *conf)
{
    struct tls_peer *peer;
    unsigned int row = 0;

    while (strcmp(refusals[row].text, conf_text(conf)) != 0) {
        row++;
        ASSERT(row < ARRAY_LEN(refusals));
    }
    tls_begin(conf, "required", TLS_PEER_KEY);
    peer = tls_connect(conf, 0);
    peer->flaw = refusals[row].flaw;
    tls_peer_hello(peer);
    tls_peer_refused(peer, refusals[row].alert);
    tls_expect_alive(conf, OTHER);
}

static void finished_refused(struct conf *conf)
{
    struct tls_peer *peer;

    tls_begin(conf, "required", TLS_PEER_KEY);
    peer = tls_connect(conf, 0);
    peer->flaw = TLS_PEER_BAD_FINISHED;
    tls_peer_shake(peer);
    tls_peer_refused(peer, 51);
    tls_expect_alive(conf, OTHER);
}

/* A record in place of Finished. */
static void refuse_in_place(struct conf *conf, const uint8_t *record,
                            size_t len, uint8_t alert)
{
    struct tls_peer *peer;
    const uint8_t nothing[] = {0};

    tls_begin(conf, "required", TLS_PEER_KEY);
    peer = tls_connect(conf, 0);
    tls_peer_hello(peer);
    tls_peer_flight(peer);
    if (record == NULL) {
        uint8_t *data = conf_alloc(conf, TLS_PEER_RECORD);

        len = tls_peer_seal(peer, TLS_PEER_DATA, nothing, 1, data);
        record = data;
    }
    stream_send(peer->stream, record, len, 0);
    /* The drive's keys are those of data since its Finished. */
    tls_peer_finish(peer);
    tls_peer_refused(peer, alert);
    tls_expect_alive(conf, OTHER);
}

static void finished_plain(struct conf *conf)
{
    uint8_t record[5 + 36] = {22, 3, 3, 0, 36, 20, 0, 0, 32};

    refuse_in_place(conf, record, sizeof(record), 10);
}

static void finished_late(struct conf *conf)
{
    refuse_in_place(conf, NULL, 0, 10);
}

static void garbage_hello(struct conf *conf)
{
    static const uint8_t records[][12] = {
        {22, 3, 1, 0, 4, 2, 0, 0, 0},    /* a ServerHello */
        {22, 3, 1, 0, 4, 1, 1, 0, 0},    /* of 64 KiB */
        {22, 3, 1, 0x40, 1, 1, 0, 0, 0}, /* a record of 16385 bytes */
        {22, 3, 1, 0, 0, 1, 0, 0, 0},    /* an empty record */
    };
    static const uint8_t alerts[] = {10, 50, 22, 10};

    tls_begin(conf, "required", TLS_PEER_KEY);
    for (unsigned int i = 0; i < ARRAY_LEN(records); i++) {
        struct tls_peer *peer = tls_connect(conf, i);

        stream_send(peer->stream, records[i], 9, 0);
        tls_peer_refused(peer, alerts[i]);
    }
    tls_expect_alive(conf, 4);
}

/* ---- Plain connections. */

static void plain_refused(struct conf *conf)
{
    const uint8_t request[128] = {0, 0, 128, 0, 128};
    struct tls_peer *peer;

    tls_begin(conf, "required", TLS_PEER_KEY);
    peer = tls_connect(conf, 0);
    stream_send(peer->stream, request, sizeof(request), 0);
    while (!peer->stream->is_reset) {
        (void)stream_poll(peer->stream, 0);
    }
    conf_equal(conf, "bytes before the RST", peer->stream->got, 0);
    tls_expect_alive(conf, OTHER);
}

/* After a handshake, the drive takes nothing that is not encrypted. */
static void plain_later(struct conf *conf)
{
    const uint8_t request[128] = {0, 0, 128, 0, 128};
    struct tls_peer *peer;

    tls_begin(conf, "allowed", TLS_PEER_KEY);
    peer = tls_connect(conf, 0);
    tls_peer_shake(peer);
    stream_send(peer->stream, request, sizeof(request), 0);
    tls_peer_refused(peer, 10);
}

static void script_allowed(struct conf *conf)
{
    tls_begin(conf, "allowed", TLS_PEER_KEY);
    nvme_tcp_script_play(conf);
}

static void script_required(struct conf *conf)
{
    tls_begin(conf, "required", TLS_PEER_KEY);
    nvme_tcp_script_play(conf);
}

/* No response waits for the next full turn of the drive's main loop, which may
 * come 4 ms later. */
static void script_prompt(struct conf *conf)
{
    enum { MOST_US = 2000 };
    uint64_t start_us;

    tls_begin(conf, "required", TLS_PEER_KEY);
    start_us = conf_now_us(conf);
    nvme_tcp_script_play(conf);
    conf_check(conf, conf_now_us(conf) - start_us < MOST_US,
               "handshakes, a write and 16 reads took %u us",
               (unsigned int)(conf_now_us(conf) - start_us));
}

/* ---- Keys. */

static void shake_with(struct conf *conf, unsigned int index,
                       enum tls_peer_flaw flaw, uint8_t alert)
{
    struct tls_peer *peer = tls_connect(conf, index);

    peer->flaw = flaw;
    tls_peer_hello(peer);
    if (alert != 0) {
        tls_peer_refused(peer, alert);
        return;
    }
    tls_peer_flight(peer);
    tls_peer_finish(peer);
    tls_check_works(peer);
}

/* TLS_PEER_WRONG_KEY is the other key. */
static void keys_change(struct conf *conf)
{
    tls_begin(conf, "required", NULL);
    shake_with(conf, 0, TLS_PEER_RIGHT, 51);
    tls_console(conf, "host add " TLS_PEER_HOST);
    shake_with(conf, 1, TLS_PEER_RIGHT, 51);
    tls_console(conf, "host tls-key " TLS_PEER_HOST " " TLS_PEER_KEY);
    shake_with(conf, 2, TLS_PEER_RIGHT, 0);
    tls_console(conf, "host tls-key " TLS_PEER_HOST " " TLS_PEER_OTHER_KEY);
    shake_with(conf, 3, TLS_PEER_RIGHT, 51);
    shake_with(conf, 4, TLS_PEER_WRONG_KEY, 0);
    tls_console(conf, "host tls-key " TLS_PEER_HOST " none");
    shake_with(conf, 5, TLS_PEER_WRONG_KEY, 51);
    tls_console(conf, "host tls-key " TLS_PEER_HOST " " TLS_PEER_KEY);
    shake_with(conf, 6, TLS_PEER_RIGHT, 0);
    tls_console(conf, "host remove " TLS_PEER_HOST);
    shake_with(conf, 7, TLS_PEER_RIGHT, 51);
}

static void keys_hidden(struct conf *conf)
{
    const char *said;

    tls_begin(conf, "required", TLS_PEER_KEY);
    said = conf_console(conf, "host");
    conf_check(conf, strstr(said, "it has a key of TLS") != NULL,
               "the list does not say that there is a key: %.200s", said);
    conf_check(conf, strstr(said, "AQIDBAUG") == NULL,
               "the list shows the key");
}

static void keys_refused(struct conf *conf)
{
    static const char *const wrong[] = {
        /* A wrong CRC, another version, an unknown hash, no key. */
        "NVMeTLSkey-1:01:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaI:",
        "NVMeTLSkey-2:01:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:",
        "NVMeTLSkey-1:03:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:",
        "NVMeTLSkey-1:01::",
    };
    char line[256];

    tls_begin(conf, "required", TLS_PEER_KEY);
    for (unsigned int i = 0; i < ARRAY_LEN(wrong); i++) {
        strcpy(line, "host tls-key " TLS_PEER_HOST " ");
        strcat(line, wrong[i]);
        conf_check(conf, strstr(conf_console(conf, line), "error") != NULL,
                   "this key was taken: %s", wrong[i]);
    }
    tls_expect_alive(conf, 0); /* with the key that it had before */
}

/* The host of a key may not say that it is another one. */
#define CONNECT_AS(name)                                                       \
    "tls\n" IC("00") CAPSULE_OF(                                               \
        "48040000", CONNECT_SQE("00", "1f", "00", IN_CAPSULE("00040000")),     \
        "hostid ffff zero 238 subnqn " name " zero 256")

/* The first entry of TCP in the discovery log: it follows those of RDMA, two
 * addresses at each of two ports.  TREQ also says that flow control may be
 * off. */
#define DISCOVERY(treq)                                                        \
    "tls discovery\n" IC("00") CAPSULE_OF(                                     \
        "48040000", CONNECT_SQE("00", "1f", "00", IN_CAPSULE("00040000")),     \
        CONNECT_DATA("ffff", "discnqn")) RESPONSE("cntlid 0000", "0001",       \
                                                  "0000")                      \
        CAPSULE(SET_CC_SQE("0200", "01004600")) SUCCEEDS("0200") CAPSULE(SQE(  \
            "02", "0300", "00000000", AT_HOST("00040000"),                     \
            "7000ff00 00000000 00140000 zero 12")) "> 07041818 18040000 0300 " \
                                                   "0000 00000000 00040000 "   \
                                                   "00000000 "                 \
                                                   "03 01 02 " treq            \
                                                   " any 764 02 any "          \
                                                   "255\n" SUCCEEDS("0300")

#define FOUR_READS                                                             \
    READ_BLOCK("1100", "40", "7")                                              \
    READ_BLOCK("1100", "40", "7")                                              \
    READ_BLOCK("1100", "40", "7")                                              \
    READ_BLOCK("1100", "40", "7")

/* clang-format off */
static const struct conf_test tests[] = {
    TLS_TEST("handshake.sha256", "RFC 8446 2.2; NVMe TCP 1.1 3.6.1",
             "finish a handshake with a key of 32 bytes", shake_sha256),
    TLS_TEST("handshake.sha384", "RFC 8446 4.2.11; NVMe TCP 1.1 3.6.1",
             "finish a handshake with a key of 48 bytes", shake_sha384),
    TLS_TEST("handshake.retry", "RFC 8446 4.1.4",
             "ask a host for a value for X25519", shake_retry),
    TLS_TEST("handshake.single-bytes", "RFC 8446 5.1",
             "take a ClientHello in segments of one byte", shake_bytes),
    TLS_TEST("handshake.no-session", "RFC 8446 D.4",
             "send no change_cipher_spec if the session id is empty",
             shake_session),
    TLS_TEST("handshake.stranger", "RFC 8446 4.2.11",
             "pass over a name that it does not know", shake_stranger),
    TLS_TEST("handshake.grease", "RFC 8446 9.3; RFC 8701",
             "ignore extensions and suites without a meaning", shake_grease),
    TLS_TEST("refuse.key", "RFC 8446 4.2.11",
             "answer decrypt_error to a wrong key", hello_refused,
             .text = "key"),
    TLS_TEST("refuse.name", "RFC 8446 6.2",
             "answer the same to an unknown name", hello_refused,
             .text = "name"),
    TLS_TEST("refuse.drive", "NVMe TCP 1.1 3.6.1.3",
             "answer the same to the name of another subsystem", hello_refused,
             .text = "drive"),
    TLS_TEST("refuse.no-psk", "RFC 8446 9.2",
             "answer missing_extension without a key", hello_refused,
             .text = "psk"),
    TLS_TEST("refuse.version", "RFC 8446 4.2.1",
             "answer protocol_version to TLS 1.2", hello_refused,
             .text = "version"),
    TLS_TEST("refuse.early-data", "NVMe TCP 1.1 3.6.1",
             "answer illegal_parameter to early data", hello_refused,
             .text = "early"),
    TLS_TEST("refuse.group", "RFC 8446 4.1.1",
             "answer handshake_failure without a common group", hello_refused,
             .text = "group"),
    TLS_TEST("refuse.suite", "RFC 8446 4.1.1",
             "answer handshake_failure without a common suite", hello_refused,
             .text = "suite"),
    TLS_TEST("refuse.no-modes", "RFC 8446 4.2.9",
             "answer missing_extension without the modes of keys",
             hello_refused, .text = "modes"),
    TLS_TEST("refuse.psk-only", "RFC 8446 4.2.9",
             "refuse a key without a key exchange", hello_refused,
             .text = "psk-only"),
    TLS_TEST("refuse.twice", "RFC 8446 4.2",
             "refuse an extension that is there twice", hello_refused,
             .text = "twice"),
    TLS_TEST("refuse.short", "RFC 8446 6.2",
             "answer decode_error to a list that ends too early",
             hello_refused, .text = "short"),
    TLS_TEST("refuse.small-order", "RFC 8446 7.4.2",
             "refuse a point of small order", hello_refused, .text = "point"),
    TLS_TEST("refuse.finished", "RFC 8446 4.4.4",
             "answer decrypt_error to a wrong Finished, with the keys of data",
             finished_refused),
    TLS_TEST("refuse.plain-finished", "RFC 8446 5.1",
             "refuse a Finished that is not encrypted", finished_plain),
    TLS_TEST("refuse.data-first", "RFC 8446 4.4.4",
             "refuse data before Finished", finished_late),
    TLS_TEST("refuse.garbage", "RFC 8446 5.1",
             "refuse what is no ClientHello", garbage_hello),
    TLS_TEST("plain.refused", "NVMe TCP 1.1 3.6.1",
             "reset a plain connection where TLS is required", plain_refused),
    TLS_TEST("plain.later", "RFC 8446 5",
             "take nothing plain after a handshake", plain_later),
    TLS_TEST("plain.allowed", "NVMe TCP 1.1 3.6.1",
             "serve plain connections beside TLS if they are allowed",
             script_allowed,
             .text = HOST WORKS "conn 2\ntls\n" IC("00")),
    TLS_TEST("nvme.queues", "NVMe TCP 1.1 3.6.1",
             "connect both queues, write and read behind TLS", script_required,
             .text = "tls\n" ADMIN "conn 1\ntls\n" IC("00")
                     CONNECT("01", "1f", "00", "cntlid")),
    TLS_TEST("nvme.io", "NVMe TCP 1.1 3.6.1",
             "write a block and read it behind TLS", script_required,
             .text = "tls\n" ADMIN "conn 1\ntls\n" IO("00")
                     WRITE_BLOCK("1000", "40", "7") SUCCEEDS("1000")
                     READ_BLOCK("1100", "40", "7") WORKS),
    TLS_TEST("nvme.prompt", "NVMe TCP 1.1 3.6.1",
             "send responses at once", script_prompt,
             .text = "tls\n" ADMIN "conn 1\ntls\n" IO("00")
                     WRITE_BLOCK("1000", "40", "7") SUCCEEDS("1000") WORKS
                     FOUR_READS FOUR_READS FOUR_READS FOUR_READS),
    TLS_TEST("nvme.host", "NVMe TCP 1.1 3.6.1.3",
             "refuse Connect by another host than that of the key",
             script_required,
             .text = CONNECT_AS("discnqn")
                     RESPONSE("any 4", "0001", "0883")),
    TLS_TEST("discovery.required", "NVMe TCP 1.1 3.7.1.1; NVMe-oF 1.1 5",
             "say SECTYPE 2 and TREQ 1 where TLS is required", script_required,
             .text = DISCOVERY("05")),
    TLS_TEST("discovery.allowed", "NVMe TCP 1.1 3.7.1.1; NVMe-oF 1.1 5",
             "say SECTYPE 2 and TREQ 2 where TLS is allowed", script_allowed,
             .text = DISCOVERY("06")),
    TLS_TEST("keys.change", "NVMe TCP 1.1 3.6.1",
             "take the key that is in force, and no other", keys_change),
    TLS_TEST("keys.hidden", "NVMe TCP 1.1 3.6.1",
             "say that there is a key, and not which one", keys_hidden),
    TLS_TEST("keys.refused", "NVMe TCP 1.1 3.6.1.5",
             "refuse keys with a wrong form, and keep the old one",
             keys_refused),
};
/* clang-format on */

CONF_TESTS(conf_tests_tls_handshake, "tls", tests);
