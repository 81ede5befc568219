/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server of TLS and what a host sends it: a ClientHello, and the records
 * behind it.
 *
 * The first byte of the input has flags, the next two have the length of the
 * ClientHello, which follows.  The binders of its keys are made right, if the
 * flags say so, so that changes reach what comes after them.  The rest is a row
 * of segments, each with a byte for its type and one for its length: they are
 * sealed as the host's records if the server has come so far, and are bytes on
 * the wire otherwise.
 */
#include "tests/fuzz/replay.h"

#include <string.h>

#include "firmware/crypto/aead.h"
#include "lib/bytes.h"
#include "nvmeof/tls/tls_server.h"

enum {
    HAS_BINDERS = 1,  /* they are made right */
    HAS_FINISHED = 2, /* a right Finished follows */
    IS_SLOW = 4,      /* three bytes at a time */
    MOST = 4000,      /* bytes of a ClientHello, in one record */
    STEPS = 64,
    HEAD = 3,
};

static struct crypto arithmetic;
static struct tls_crypto crypto;
static struct tls_server server;
static struct tls_half sends; /* of the host */
static bool is_slow, has_sends;
static const struct tls_secret psk = {{7, 7, 7}};

static void count_random(void *ctx, uint8_t *buf, size_t len)
{
    (void)ctx;
    for (size_t i = 0; i < len; i++) {
        buf[i] = (uint8_t)(i + 1);
    }
}

static unsigned int find_keys(void *ctx, const struct tls_identity *identity,
                              struct tls_secret *keys)
{
    (void)ctx;
    keys[0] = psk;
    return strcmp(identity->hostnqn, "host") == 0;
}

/* ---- Bytes to the server. */

static void run_server(void)
{
    for (unsigned int i = 0; i < STEPS && tls_server_step(&server); i++) {
        ASSERT(server.out_len <= TLS_OUT_MAX);
        server.out_len = 0;
    }
    server.out_len = 0;
    ASSERT(!tls_server_step(&server));
    ASSERT(server.transcript_len <= TLS_TRANSCRIPT_MAX);
}

static void give_bytes(const uint8_t *bytes, size_t len)
{
    while (len != 0) {
        uint32_t part = is_slow ? (uint32_t)MIN(len, (size_t)3) : (uint32_t)len;
        uint32_t taken = tls_server_take(&server, bytes, part);

        run_server();
        if (taken == 0) {
            break;
        }
        bytes += taken;
        len -= taken;
    }
}

static void give_record(enum tls_type type, const uint8_t *data, size_t len)
{
    static uint8_t record[TLS_HEADER_LEN + TLS_CIPHER_MAX];
    const struct tls_header header = {(uint8_t)type, (uint16_t)len};

    if (has_sends && type == TLS_TYPE_NONE) {
        give_bytes(data, len); /* as it is */
    } else if (has_sends) {
        give_bytes(record, tls_seal(&sends, &crypto, type, data, (uint32_t)len,
                                    record));
    } else {
        tls_header_emit(&header, record);
        memcpy(record + TLS_HEADER_LEN, data, len);
        give_bytes(record, TLS_HEADER_LEN + len);
    }
}

/* ---- The host. */

static void make_binder(const uint8_t *message, uint32_t binders_at,
                        enum auth_hash hash, uint8_t *mac)
{
    uint8_t digest[AUTH_HASH_MAX];
    struct tls_secret early, binder;

    tls_extract(&crypto, hash, NULL,
                (struct auth_bytes){psk.bytes, auth_hash_len((uint8_t)hash)},
                &early);
    crypto.base.hash(crypto.base.ctx, hash, message, 0, digest);
    tls_derive(&crypto, hash, &early, "ext binder", digest, &binder);
    crypto.base.hash(crypto.base.ctx, hash, message, binders_at, digest);
    tls_finished_mac(&crypto, hash, &binder, digest, mac);
}

static void make_binders(uint8_t *message, size_t len)
{
    struct tls_client_hello hello;
    struct tls_offer offer;

    if (tls_client_hello_parse(&hello, message, len) != TLS_ALERT_NONE ||
        !hello.has_psk) {
        return;
    }
    for (uint16_t i = 0; tls_client_hello_offer(&hello, i, &offer); i++) {
        uint8_t *mac = message + (offer.binder - message);

        if (offer.binder_len == 32 || offer.binder_len == 48) {
            make_binder(message, hello.binders_at,
                        offer.binder_len == 48 ? AUTH_SHA384 : AUTH_SHA256,
                        mac);
        }
    }
}

static void send_finished(void)
{
    enum auth_hash hash = (enum auth_hash)server.hash;
    uint8_t message[TLS_MESSAGE_HEADER_LEN + AUTH_HASH_MAX] = {TLS_FINISHED};
    uint8_t digest[AUTH_HASH_MAX];
    size_t len = auth_hash_len(server.hash);

    put_be24(message + TLS_MESSAGE_LENGTH, (uint32_t)len);
    crypto.base.hash(crypto.base.ctx, hash, server.transcript,
                     server.transcript_len, digest);
    tls_finished_mac(&crypto, hash, &server.from_client, digest,
                     message + TLS_MESSAGE_HEADER_LEN);
    give_record(TLS_TYPE_HANDSHAKE, message, TLS_MESSAGE_HEADER_LEN + len);
    ASSERT(server.state == TLS_SERVER_DONE);
}

static void send_segments(const uint8_t *data, size_t len)
{
    while (len >= 2) {
        uint8_t type = data[0];
        size_t part = MIN((size_t)data[1], len - 2);

        give_record((enum tls_type)type, data + 2, part);
        data += 2 + part;
        len -= 2 + part;
    }
}

/* ---- Inputs. */

/* Behind the random bytes and an empty session id: one cipher suite, and the
 * extensions up to the value for X25519, which is the base point. */
static const uint8_t middle[] = {
    0, 0,  2, 0x13, 1, 1,  0,     /* suite */
    0, 0,                         /* length */
    0, 43, 0, 3,    2, 3,  4,     /* version */
    0, 10, 0, 4,    0, 2,  0, 29, /* group */
    0, 45, 0, 2,    1, 1,         /* mode */
    0, 51, 0, 38,   0, 36, 0, 29, 0, X25519_LEN, 9,
};
enum { LENGTH_AT = 38 + 7, NAME = 17 };

static size_t put_hello(uint8_t *to, bool is_384, bool has_share)
{
    size_t mac = is_384 ? 48 : 32, at = 38 + sizeof(middle);
    size_t share_at = at - 11;

    memset(to, 0, 512);
    memcpy(to, "\1\0\0\0\3\3", 6);
    memcpy(to + 38, middle, sizeof(middle));
    to[38 + 4] = is_384 ? 2 : 1;
    at += X25519_LEN - 1;
    if (!has_share) {
        at = share_at + 6;
        memcpy(to + share_at, "\0\63\0\2\0\0", 6);
    }
    to[at + 1] = 41;
    to[at + 3] = (uint8_t)(2 + 2 + NAME + 4 + 2 + 1 + mac);
    to[at + 5] = 2 + NAME + 4;
    to[at + 7] = NAME;
    memcpy(to + at + 8, is_384 ? "NVMe0R02 host sub" : "NVMe0R01 host sub",
           NAME);
    at += 8 + NAME + 4;
    to[at + 1] = (uint8_t)(1 + mac);
    to[at + 2] = (uint8_t)mac;
    at += 3 + mac;
    put_be16(to + LENGTH_AT, (uint16_t)(at - LENGTH_AT - 2));
    put_be24(to + 1, (uint32_t)(at - 4));
    return at;
}

/* Both cipher suites up to the end of the handshake; one that is asked for a
 * value for X25519; one whose Finished is wrong. */
size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    static const uint8_t tail[] = {TLS_TYPE_HANDSHAKE, 6, 20, 0, 0, 2, 1, 2,
                                   TLS_TYPE_ALERT,     2, 1,  0};
    size_t len;

    if (n > 3 || room < HEAD + 512 + sizeof(tail)) {
        return 0;
    }
    buf[0] = n == 3 ? HAS_BINDERS | IS_SLOW : HAS_BINDERS | HAS_FINISHED;
    len = put_hello(buf + HEAD, n == 1, n != 2);
    put_le16(buf + 1, (uint16_t)len);
    memcpy(buf + HEAD + len, tail, sizeof(tail));
    return HEAD + len + sizeof(tail);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct tls_server_config config = {&crypto, find_keys, NULL};
    uint8_t hello[MOST];
    size_t hello_len;

    if (len < HEAD) {
        return 0;
    }
    crypto_init(&arithmetic, count_random, NULL);
    crypto = crypto_tls_ops(&arithmetic);
    has_sends = false;
    is_slow = (data[0] & IS_SLOW) != 0;
    hello_len = MIN(MIN((size_t)get_le16(data + 1), len - HEAD), (size_t)MOST);
    memcpy(hello, data + HEAD, hello_len);
    if ((data[0] & HAS_BINDERS) != 0) {
        make_binders(hello, hello_len);
    }
    tls_server_start(&server, &config);
    give_record(TLS_TYPE_HANDSHAKE, hello, hello_len);
    if (server.state == TLS_SERVER_FINISHED) {
        tls_half_init(&sends, &crypto, (enum auth_hash)server.hash,
                      &server.from_client);
        has_sends = true;
        if ((data[0] & HAS_FINISHED) != 0) {
            send_finished();
        }
    }
    send_segments(data + HEAD + hello_len, len - HEAD - hello_len);
    tls_server_wipe(&server);
    return 0;
}
