/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's handshake with a client that makes its own bytes.  A foreign
 * client is in tests/tls/openssl_peer.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/crypto/aead.h"
#include "lib/bytes.h"
#include "nvmeof/tls/tls_key_log.h"
#include "tests/own_stack.h"

static struct crypto arithmetic;
static struct tls_crypto crypto;
static struct tls_server server;
static const struct tls_secret psk = {{7, 7, 7}};

static void count_random(void *ctx, uint8_t *buf, size_t len)
{
    static uint8_t next;

    (void)ctx;
    for (size_t i = 0; i < len; i++) {
        buf[i] = next++;
    }
}

static unsigned int find_keys(void *ctx, const struct tls_identity *identity,
                              struct tls_secret *keys)
{
    (void)ctx;
    keys[0] = psk;
    return strcmp(identity->hostnqn, "host") == 0;
}

/* ---- The client. */

enum flaw {
    NO_FLAW,
    NO_SHARE,     /* a value for another group only */
    NO_VERSION,   /* supported_versions has TLS 1.2 */
    NO_MODE,      /* psk_ke only */
    NO_MODES,     /* no such extension */
    NO_PSK,       /* likewise */
    NO_GROUP,     /* supported_groups lacks X25519 */
    NO_SUITE,     /* only ChaCha20 */
    EARLY_DATA,   /* asks for it */
    TWICE,        /* an extension is there twice */
    PSK_NOT_LAST, /* an extension follows it */
    BAD_BINDER,
    BAD_NAME,   /* of a host that is unknown */
    ZERO_SHARE, /* a point of small order */
    COMPRESSED, /* asks for compression */
    SHORT_LIST, /* the extensions end too early */
    SSL_3,      /* legacy_version is that of SSL 3.0 */
    STRANGER,   /* offers a key with another name first */
    STRANGERS,  /* offers many of them */
    NO_BINDER,  /* one identity has none */
    FLAWS
};

static struct {
    enum auth_hash hash;
    uint8_t message[1024];
    size_t len;
    uint8_t transcript[4096];
    size_t transcript_len;
    uint8_t random[TLS_RANDOM_LEN];
    uint8_t exponent[32];
    struct tls_secret secret, from_client, from_server;
    struct tls_half receives, sends;
} client;

static void add_bytes(const void *bytes, size_t len)
{
    memcpy(client.message + client.len, bytes, len);
    client.len += len;
}

static void add_u8(unsigned int value)
{
    client.message[client.len++] = (uint8_t)value;
}

static void add_u16(unsigned int value)
{
    put_be16(client.message + client.len, (uint16_t)value);
    client.len += 2;
}

static void add_extension(unsigned int type, const void *body, size_t len)
{
    add_u16(type);
    add_u16((unsigned int)len);
    add_bytes(body, len);
}

static size_t mac_len(void)
{
    return auth_hash_len((uint8_t)client.hash);
}

static void multiply_point(const uint8_t *point, uint8_t *result)
{
    memset(result, 0, X25519_LEN);
    (void)crypto.x25519(client.exponent, point, result);
}

static void hash_bytes(const uint8_t *bytes, size_t len, uint8_t *digest)
{
    crypto.base.hash(crypto.base.ctx, client.hash, bytes, len, digest);
}

static unsigned int count_identities(enum flaw flaw)
{
    return flaw == STRANGERS                       ? 5
           : flaw == STRANGER || flaw == NO_BINDER ? 2
                                                   : 1;
}

static size_t binders_len(enum flaw flaw)
{
    return (flaw == NO_BINDER ? 1 : count_identities(flaw)) * (1 + mac_len());
}

/* The binder of what is in the message so far; that of a stranger is 0. */
static void add_binder(enum flaw flaw)
{
    uint8_t whole[4096] = {0}, digest[64], mac[64];
    struct tls_secret binder;

    hash_bytes(whole, 0, digest);
    tls_extract(&crypto, client.hash, NULL,
                (struct auth_bytes){psk.bytes, mac_len()}, &client.secret);
    tls_derive(&crypto, client.hash, &client.secret, "ext binder", digest,
               &binder);
    memcpy(whole, client.transcript, client.transcript_len);
    memcpy(whole + client.transcript_len, client.message, client.len);
    hash_bytes(whole, client.transcript_len + client.len, digest);
    tls_finished_mac(&crypto, client.hash, &binder, digest, mac);
    mac[0] ^= flaw == BAD_BINDER;
    add_u16((unsigned int)binders_len(flaw));
    memset(client.message + client.len, 0, binders_len(flaw));
    for (size_t i = 0; i < binders_len(flaw); i += 1 + mac_len()) {
        client.message[client.len + i] = (uint8_t)mac_len();
    }
    client.len += binders_len(flaw) - mac_len();
    add_bytes(mac, mac_len());
}

static void add_share(enum flaw flaw)
{
    uint8_t body[6 + 32] = {0, 36, 0, 29, 0, 32};

    if (flaw == NO_SHARE) {
        body[3] = 30; /* X448 */
    }
    multiply_point(NULL, body + 6);
    if (flaw == ZERO_SHARE) {
        memset(body + 6, 0, 32);
    }
    add_extension(51, body, sizeof(body));
}

static void add_extensions(enum flaw flaw)
{
    const uint8_t versions[] = {2, 3, flaw == NO_VERSION ? 3 : 4};
    const uint8_t groups[] = {0, 2, 0, flaw == NO_GROUP ? 30 : 29};
    const uint8_t modes[] = {1, flaw != NO_MODE};
    const unsigned int count = count_identities(flaw);
    const char *name =
        client.hash == AUTH_SHA384 ? "NVMe0R02 host sub" : "NVMe0R01 host sub";

    add_extension(43, versions, sizeof(versions));
    add_extension(10, groups, sizeof(groups));
    add_extension(0xfafa, "grease", 6);
    if (flaw != NO_MODES) {
        add_extension(45, modes, sizeof(modes));
    }
    if (flaw == TWICE) {
        add_extension(10, groups, sizeof(groups));
    }
    if (flaw == EARLY_DATA) {
        add_extension(42, "", 0);
    }
    add_share(flaw);
    if (flaw == NO_PSK) {
        return;
    }
    add_u16(41);
    add_u16((unsigned int)(2 + count * 23 + 2 + binders_len(flaw)));
    add_u16(count * 23);
    for (unsigned int i = 1; i <= count; i++) {
        add_u16(17);
        add_bytes(name, 17);
        /* The host's name. */
        client.message[client.len - 5] ^= i != count || flaw == BAD_NAME;
        add_u16(0);
        add_u16(0);
    }
}

static void make_hello(enum flaw flaw)
{
    uint8_t zeroes[32] = {0};
    size_t lengths, end;

    client.len = 0;
    add_bytes("\x01\0\0\0\x03", 5);
    add_u8(flaw == SSL_3 ? 0 : 3);
    add_bytes(client.random, sizeof(client.random));
    add_u8(32);
    add_bytes(zeroes, 32);
    add_u16(4);
    add_u16(0x1303);
    add_u16(flaw == NO_SUITE
                ? 0x1304u
                : (client.hash == AUTH_SHA384 ? 0x1302u : 0x1301u));
    add_u8(1);
    add_u8(flaw == COMPRESSED);
    lengths = client.len;
    add_u16(0);
    add_extensions(flaw);
    /* The lengths cover the binders, which are made last. */
    end = client.len + (flaw == NO_PSK ? 0 : 2 + binders_len(flaw));
    end += flaw == PSK_NOT_LAST ? 4 : 0;
    put_be16(client.message + lengths, (uint16_t)(end - lengths - 2));
    put_be24(client.message + 1, (uint32_t)(end - 4));
    if (flaw == SHORT_LIST) {
        put_be16(client.message + lengths, (uint16_t)(end - lengths - 3));
    }
    if (flaw != NO_PSK) {
        add_binder(flaw);
    }
    if (flaw == PSK_NOT_LAST) {
        add_extension(99, "", 0);
    }
}

static void log_message(const uint8_t *message, size_t len)
{
    memcpy(client.transcript + client.transcript_len, message, len);
    client.transcript_len += len;
}

/* ---- Bytes to and from the server. */

static void give_bytes(const uint8_t *bytes, size_t len, uint32_t piece)
{
    while (len != 0) {
        uint32_t taken =
            tls_server_take(&server, bytes, MIN(piece, (uint32_t)len));

        while (server.out_len == 0 && tls_server_step(&server)) {
        }
        if (taken == 0) {
            break;
        }
        bytes += taken;
        len -= taken;
    }
    while (server.out_len == 0 && tls_server_step(&server)) {
    }
}

static void give_record(uint8_t type, const uint8_t *data, size_t len,
                        uint32_t piece)
{
    uint8_t record[5 + 4096];
    const struct tls_header header = {type, (uint16_t)len};

    tls_header_emit(&header, record);
    memcpy(record + 5, data, len);
    give_bytes(record, 5 + len, piece);
}

static void begin_handshake(enum auth_hash hash)
{
    const struct tls_server_config config = {&crypto, find_keys, NULL};

    crypto_init(&arithmetic, count_random, NULL);
    crypto = crypto_tls_ops(&arithmetic);
    memset(&client, 0, sizeof(client));
    client.hash = hash;
    client.exponent[3] = 5;
    for (uint8_t i = 0; i < sizeof(client.random); i++) {
        client.random[i] = (uint8_t)(0xe1 - 7 * i);
    }
    tls_server_start(&server, &config);
}

static void expect_alert(enum tls_alert alert)
{
    const uint8_t want[7] = {21, 3, 3, 0, 2, 2, (uint8_t)alert};

    assert_int_equal(server.state, TLS_SERVER_FAILED);
    assert_int_equal(server.alert, alert);
    assert_int_equal(server.out_len, sizeof(want));
    assert_memory_equal(server.out, want, sizeof(want));
    server.out_len = 0;
}

/* Take the server's flight; the client can make its Finished then. */
static void take_flight(void)
{
    const uint8_t *hello = server.out + 5;
    size_t hello_len = get_be16(server.out + 3);
    size_t ccs_len = server.was_retried ? 0 : 6; /* after the first message */
    uint8_t *sealed = server.out + 5 + hello_len + ccs_len;
    size_t inner = get_be16(sealed + 3) - (size_t)TLS_TAG_LEN;
    uint8_t shared[32], digest[64];

    assert_int_equal(server.out[0], TLS_TYPE_HANDSHAKE);
    assert_int_equal(hello[0], TLS_SERVER_HELLO);
    assert_memory_equal(server.out + 5 + hello_len, "\x14\x03\x03\0\x01\x01",
                        ccs_len);
    multiply_point(hello + hello_len - 6 - 32, shared);
    log_message(hello, hello_len);
    hash_bytes(client.transcript, client.transcript_len, digest);
    tls_next_secret(&crypto, client.hash, &client.secret, shared, 32,
                    &client.secret);
    tls_derive(&crypto, client.hash, &client.secret, "c hs traffic", digest,
               &client.from_client);
    tls_derive(&crypto, client.hash, &client.secret, "s hs traffic", digest,
               &client.from_server);
    tls_half_init(&client.sends, &crypto, client.hash, &client.from_client);
    tls_half_init(&client.receives, &crypto, client.hash, &client.from_server);
    tls_open_begin(&client.receives, &crypto, sealed);
    crypto.aead_add(&client.receives.aead, sealed + 5, sealed + 5, inner);
    assert_true(tls_open_end(&client.receives, &crypto, sealed + 5 + inner));
    assert_int_equal(sealed[5 + inner - 1], TLS_TYPE_HANDSHAKE);
    assert_memory_equal(sealed + 5, "\x08\0\0\x02\0\0\x14\0\0", 9);
    log_message(sealed + 5, inner - 1);
    assert_int_equal(server.out_len, 5 + hello_len + ccs_len + 5 + inner + 16);
    server.out_len = 0;
}

static size_t make_finished(uint8_t *message)
{
    uint8_t digest[64];

    hash_bytes(client.transcript, client.transcript_len, digest);
    message[0] = TLS_FINISHED;
    put_be24(message + 1, (uint32_t)mac_len());
    tls_finished_mac(&crypto, client.hash, &client.from_client, digest,
                     message + 4);
    return 4 + mac_len();
}

static void give_sealed(enum tls_type type, const uint8_t *data, size_t len)
{
    uint8_t record[512];
    size_t record_len =
        tls_seal(&client.sends, &crypto, type, data, (uint32_t)len, record);

    give_bytes(record, record_len, UINT32_MAX);
}

/* Up to the point where the server waits for Finished. */
static void begin_finished(enum auth_hash hash)
{
    begin_handshake(hash);
    make_hello(NO_FLAW);
    log_message(client.message, client.len);
    give_record(TLS_TYPE_HANDSHAKE, client.message, client.len, UINT32_MAX);
    assert_int_equal(server.state, TLS_SERVER_FINISHED);
    assert_true(server.is_known);
    take_flight();
}

/* ---- Tests. */

static void expect_done(void)
{
    uint8_t digest[64], finished[64];
    struct tls_secret want;
    size_t len = make_finished(finished);

    hash_bytes(client.transcript, client.transcript_len, digest);
    tls_next_secret(&crypto, client.hash, &client.secret, NULL, 0,
                    &client.secret);
    give_record(TLS_TYPE_CCS, (const uint8_t *)"\x01", 1, UINT32_MAX);
    give_sealed(TLS_TYPE_HANDSHAKE, finished, len);
    assert_int_equal(server.state, TLS_SERVER_DONE);
    assert_int_equal(server.out_len, 0);
    assert_memory_equal(server.key.bytes, psk.bytes, mac_len());
    tls_derive(&crypto, client.hash, &client.secret, "c ap traffic", digest,
               &want);
    assert_memory_equal(want.bytes, server.from_client.bytes, mac_len());
    tls_derive(&crypto, client.hash, &client.secret, "s ap traffic", digest,
               &want);
    assert_memory_equal(want.bytes, server.from_server.bytes, mac_len());
}

static void test_a_handshake_gives_both_sides_the_same_secrets(void **state)
{
    (void)state;
    begin_finished(AUTH_SHA256);
    expect_done();
    begin_finished(AUTH_SHA384);
    expect_done();
}

/* ---- The key log. */

static struct {
    bool is_open;
    unsigned int asked, lines;
    char text[4 * TLS_KEY_LOG_LINE];
} kept;

static bool keeps_log(void *ctx)
{
    (void)ctx;
    kept.asked++;
    return kept.is_open;
}

static void keep_line(void *ctx, const char *line)
{
    assert_ptr_equal(ctx, &kept);
    assert_true(strlen(line) < TLS_KEY_LOG_LINE);
    strcat(kept.text, line);
    kept.lines++;
}

/* Whether the log has a line with this label and secret. */
static bool has_line(const char *label, const struct tls_secret *secret)
{
    char line[TLS_KEY_LOG_LINE];
    size_t len = (size_t)snprintf(line, sizeof(line), "%s ", label);

    for (size_t i = 0; i < TLS_RANDOM_LEN; i++) {
        len += (size_t)snprintf(line + len, sizeof(line) - len, "%02x",
                                client.random[i]);
    }
    len += (size_t)snprintf(line + len, sizeof(line) - len, " ");
    for (size_t i = 0; i < mac_len(); i++) {
        len += (size_t)snprintf(line + len, sizeof(line) - len, "%02x",
                                secret->bytes[i]);
    }
    (void)snprintf(line + len, sizeof(line) - len, "\n");
    return strstr(kept.text, line) != NULL;
}

static void test_an_open_key_log_gets_the_four_secrets_of_a_handshake(
    void **state)
{
    static const enum auth_hash hashes[] = {AUTH_SHA256, AUTH_SHA384};
    const struct tls_key_log log = {keeps_log, keep_line, &kept};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hashes); i++) {
        memset(&kept, 0, sizeof(kept));
        kept.is_open = true;
        begin_finished(hashes[i]);
        tls_key_log_add(&log, &server);
        expect_done();
        assert_int_equal(kept.lines, 4);
        assert_true(
            has_line("CLIENT_HANDSHAKE_TRAFFIC_SECRET", &client.from_client));
        assert_true(
            has_line("SERVER_HANDSHAKE_TRAFFIC_SECRET", &client.from_server));
        assert_true(has_line("CLIENT_TRAFFIC_SECRET_0", &server.from_client));
        assert_true(has_line("SERVER_TRAFFIC_SECRET_0", &server.from_server));
    }
}

static void test_a_key_log_that_nobody_keeps_gets_nothing(void **state)
{
    const struct tls_key_log closed = {keeps_log, keep_line, &kept};
    const struct tls_key_log none = {NULL, NULL, NULL};

    (void)state;
    memset(&kept, 0, sizeof(kept));
    begin_finished(AUTH_SHA256);
    tls_key_log_add(&closed, &server);
    tls_key_log_add(&none, &server);
    assert_int_equal(kept.asked, 1);
    assert_int_equal(kept.lines, 0);
}

static void test_a_hello_may_come_in_pieces_and_in_records(void **state)
{
    (void)state;
    begin_handshake(AUTH_SHA256);
    make_hello(NO_FLAW);
    log_message(client.message, client.len);
    give_record(TLS_TYPE_HANDSHAKE, client.message, 3, 1);
    give_record(TLS_TYPE_HANDSHAKE, client.message + 3, 100, 1);
    give_record(TLS_TYPE_HANDSHAKE, client.message + 103, client.len - 103, 7);
    take_flight();
    expect_done();
}

static void test_a_hello_without_a_value_for_x25519_is_asked_again(void **state)
{
    uint8_t digest[64];
    size_t len;

    (void)state;
    begin_handshake(AUTH_SHA256);
    make_hello(NO_SHARE);
    give_record(TLS_TYPE_HANDSHAKE, client.message, client.len, UINT32_MAX);
    assert_int_equal(server.state, TLS_SERVER_HELLO_2);
    len = get_be16(server.out + 3);
    assert_int_equal(server.out_len, 5 + len + 6);
    assert_memory_equal(server.out + 5 + len, "\x14\x03\x03\0\x01\x01", 6);
    /* The random that means HelloRetryRequest, RFC 8446 section 4.1.3. */
    assert_memory_equal(server.out + 5 + 6,
                        "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e"
                        "\x65\xb8\x91\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e"
                        "\x09\xe2\xc8\xa8\x33\x9c",
                        32);
    hash_bytes(client.message, client.len, digest);
    log_message((const uint8_t *)"\xfe\0\0\x20", 4);
    log_message(digest, 32);
    log_message(server.out + 5, len);
    server.out_len = 0;
    make_hello(NO_FLAW);
    log_message(client.message, client.len);
    give_record(TLS_TYPE_CCS, (const uint8_t *)"\x01", 1, UINT32_MAX);
    give_record(TLS_TYPE_HANDSHAKE, client.message, client.len, UINT32_MAX);
    take_flight();
    expect_done();
}

static void test_it_is_asked_again_once_only(void **state)
{
    uint8_t digest[64];

    (void)state;
    begin_handshake(AUTH_SHA256);
    make_hello(NO_SHARE);
    give_record(TLS_TYPE_HANDSHAKE, client.message, client.len, UINT32_MAX);
    hash_bytes(client.message, client.len, digest);
    log_message((const uint8_t *)"\xfe\0\0\x20", 4);
    log_message(digest, 32);
    log_message(server.out + 5, get_be16(server.out + 3));
    server.out_len = 0;
    make_hello(NO_SHARE);
    give_record(TLS_TYPE_HANDSHAKE, client.message, client.len, UINT32_MAX);
    expect_alert(TLS_ALERT_ILLEGAL);
}

static void test_flaws_of_a_hello_have_their_alerts(void **state)
{
    static const uint8_t alerts[FLAWS] = {
        [NO_VERSION] = TLS_ALERT_VERSION,   [NO_MODE] = TLS_ALERT_HANDSHAKE,
        [NO_MODES] = TLS_ALERT_MISSING,     [NO_PSK] = TLS_ALERT_MISSING,
        [NO_GROUP] = TLS_ALERT_HANDSHAKE,   [NO_SUITE] = TLS_ALERT_HANDSHAKE,
        [EARLY_DATA] = TLS_ALERT_ILLEGAL,   [TWICE] = TLS_ALERT_ILLEGAL,
        [PSK_NOT_LAST] = TLS_ALERT_ILLEGAL, [BAD_BINDER] = TLS_ALERT_DECRYPT,
        [BAD_NAME] = TLS_ALERT_DECRYPT,     [ZERO_SHARE] = TLS_ALERT_ILLEGAL,
        [COMPRESSED] = TLS_ALERT_ILLEGAL,   [SHORT_LIST] = TLS_ALERT_DECODE,
        [SSL_3] = TLS_ALERT_VERSION,        [STRANGERS] = TLS_ALERT_DECRYPT,
        [NO_BINDER] = TLS_ALERT_DECODE,
    };

    (void)state;
    for (int flaw = 0; flaw < FLAWS; flaw++) {
        if (alerts[flaw] == 0) {
            continue;
        }
        begin_handshake(AUTH_SHA256);
        make_hello((enum flaw)flaw);
        give_record(TLS_TYPE_HANDSHAKE, client.message, client.len, UINT32_MAX);
        expect_alert((enum tls_alert)alerts[flaw]);
    }
}

static void test_the_first_key_that_is_known_is_chosen(void **state)
{
    (void)state;
    begin_handshake(AUTH_SHA384);
    make_hello(STRANGER);
    log_message(client.message, client.len);
    give_record(TLS_TYPE_HANDSHAKE, client.message, client.len, UINT32_MAX);
    assert_int_equal(server.state, TLS_SERVER_FINISHED);
    /* The last extension of ServerHello has its number. */
    assert_int_equal(get_be16(server.out + 5 + get_be16(server.out + 3) - 2),
                     1);
    take_flight();
    expect_done();
}

static void test_every_truncation_of_a_hello_is_refused(void **state)
{
    (void)state;
    for (size_t cut = 4, len = 5; cut < len; cut++) {
        begin_handshake(AUTH_SHA256);
        make_hello(NO_FLAW);
        len = client.len;
        put_be24(client.message + 1, (uint32_t)(cut - 4));
        give_record(TLS_TYPE_HANDSHAKE, client.message, cut, UINT32_MAX);
        assert_int_equal(server.state, TLS_SERVER_FAILED);
    }
}

static void test_other_records_before_a_hello_are_refused(void **state)
{
    uint8_t zeroes[64] = {0};

    (void)state;
    begin_handshake(AUTH_SHA256);
    give_record(TLS_TYPE_DATA, zeroes, sizeof(zeroes), UINT32_MAX);
    expect_alert(TLS_ALERT_UNEXPECTED);
    begin_handshake(AUTH_SHA256);
    give_record(TLS_TYPE_CCS, (const uint8_t *)"\x01", 1, UINT32_MAX);
    expect_alert(TLS_ALERT_UNEXPECTED);
    begin_handshake(AUTH_SHA256);
    give_record(TLS_TYPE_HANDSHAKE, zeroes, 0, UINT32_MAX);
    expect_alert(TLS_ALERT_UNEXPECTED);
    begin_handshake(AUTH_SHA256);
    give_record(TLS_TYPE_HANDSHAKE, zeroes, sizeof(zeroes), UINT32_MAX);
    expect_alert(TLS_ALERT_UNEXPECTED); /* no ClientHello */
    begin_handshake(AUTH_SHA256);
    give_record(TLS_TYPE_ALERT, (const uint8_t *)"\x02\x28", 2, UINT32_MAX);
    assert_int_equal(server.state, TLS_SERVER_FAILED);
    assert_true(server.was_alerted);
    assert_int_equal(server.out_len, 0);
}

static void test_a_hello_that_is_too_long_is_refused(void **state)
{
    static const uint8_t head[] = {1, 0, 0x10, 0};
    static const uint8_t record[] = {22, 3, 3, 0x10, 1};

    (void)state;
    begin_handshake(AUTH_SHA256);
    give_record(TLS_TYPE_HANDSHAKE, head, sizeof(head), UINT32_MAX);
    expect_alert(TLS_ALERT_DECODE);
    begin_handshake(AUTH_SHA256);
    give_bytes(record, sizeof(record), UINT32_MAX);
    expect_alert(TLS_ALERT_OVERFLOW);
}

/* An alert that only the client can read: after the server's Finished, its keys
 * are those of data. */
static void expect_sealed_alert(enum tls_alert alert)
{
    uint8_t digest[64];

    hash_bytes(client.transcript, client.transcript_len, digest);
    tls_next_secret(&crypto, client.hash, &client.secret, NULL, 0,
                    &client.secret);
    tls_derive(&crypto, client.hash, &client.secret, "s ap traffic", digest,
               &client.from_server);
    tls_half_init(&client.receives, &crypto, client.hash, &client.from_server);
    assert_int_equal(server.state, TLS_SERVER_FAILED);
    assert_int_equal(server.alert, alert);
    assert_int_equal(server.out_len, 5 + 2 + 17);
    tls_open_begin(&client.receives, &crypto, server.out);
    crypto.aead_add(&client.receives.aead, server.out + 5, server.out + 5, 3);
    assert_true(tls_open_end(&client.receives, &crypto, server.out + 8));
    assert_int_equal(server.out[6], alert);
    assert_int_equal(server.out[7], TLS_TYPE_ALERT);
}

static void test_a_wrong_finished_is_refused(void **state)
{
    uint8_t finished[64];
    size_t len;

    (void)state;
    begin_finished(AUTH_SHA256);
    len = make_finished(finished);
    finished[len - 1] ^= 1;
    give_sealed(TLS_TYPE_HANDSHAKE, finished, len);
    expect_sealed_alert(TLS_ALERT_DECRYPT);

    begin_finished(AUTH_SHA256);
    len = make_finished(finished);
    give_sealed(TLS_TYPE_HANDSHAKE, finished, len - 1);
    expect_sealed_alert(TLS_ALERT_DECODE);

    begin_finished(AUTH_SHA256);
    give_sealed(TLS_TYPE_DATA, finished, len);
    expect_sealed_alert(TLS_ALERT_UNEXPECTED);

    begin_finished(AUTH_SHA256);
    give_record(TLS_TYPE_DATA, finished, len, UINT32_MAX); /* no key */
    expect_sealed_alert(TLS_ALERT_BAD_MAC);

    begin_finished(AUTH_SHA256);
    give_record(TLS_TYPE_HANDSHAKE, finished, len, UINT32_MAX); /* plain */
    expect_sealed_alert(TLS_ALERT_UNEXPECTED);

    begin_finished(AUTH_SHA256);
    give_record(TLS_TYPE_DATA, finished, 5, UINT32_MAX);
    expect_sealed_alert(TLS_ALERT_BAD_MAC);

    begin_finished(AUTH_SHA256);
    give_sealed(TLS_TYPE_ALERT, (const uint8_t *)"\x02\x33", 2);
    assert_int_equal(server.state, TLS_SERVER_FAILED);
    assert_int_equal(server.out_len, 0);
}

static void step_server(void *arg)
{
    while (tls_server_step(arg)) {
    }
}

static void test_a_handshake_leaves_no_secret_behind(void **state)
{
    static const uint8_t zeroes[32];
    uint8_t shared[32];
    uint8_t record[5 + 1024];

    (void)state;
    begin_handshake(AUTH_SHA256);
    make_hello(NO_FLAW);
    tls_header_emit(
        &(struct tls_header){TLS_TYPE_HANDSHAKE, (uint16_t)client.len}, record);
    memcpy(record + 5, client.message, client.len);
    assert_int_equal(
        tls_server_take(&server, record, (uint32_t)(5 + client.len)),
        5 + client.len);
    own_stack_run(step_server, &server);
    assert_int_equal(server.state, TLS_SERVER_FINISHED);
    assert_memory_equal(server.exponent, zeroes, sizeof(server.exponent));
    multiply_point(server.share, shared);
    assert_false(own_stack_has(shared, sizeof(shared)));
    assert_false(own_stack_has(client.secret.bytes, 32)); /* the early one */
    assert_false(own_stack_has(server.from_client.bytes, 32));
    assert_false(own_stack_has(server.from_server.bytes, 32));
    assert_false(own_stack_has(server.next_from_client.bytes, 32));
    assert_false(own_stack_has(server.next_from_server.bytes, 32));
}

static void test_wiping_leaves_nothing(void **state)
{
    static struct tls_server zeroes;

    (void)state;
    begin_finished(AUTH_SHA384);
    tls_server_wipe(&server);
    assert_memory_equal(&server, &zeroes, sizeof(server));
}
