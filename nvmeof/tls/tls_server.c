/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/tls/tls_server.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/wipe.h"

/* Where each state may go. */
static const uint8_t server_next[TLS_SERVER_STATES] = {
    [TLS_SERVER_IDLE] = BIT(TLS_SERVER_HELLO_1),
    [TLS_SERVER_HELLO_1] = BIT(TLS_SERVER_HELLO_2) | BIT(TLS_SERVER_PUBLIC) |
                           BIT(TLS_SERVER_FAILED),
    [TLS_SERVER_HELLO_2] = BIT(TLS_SERVER_PUBLIC) | BIT(TLS_SERVER_FAILED),
    [TLS_SERVER_PUBLIC] = BIT(TLS_SERVER_SHARED),
    [TLS_SERVER_SHARED] = BIT(TLS_SERVER_FINISHED) | BIT(TLS_SERVER_FAILED),
    [TLS_SERVER_FINISHED] = BIT(TLS_SERVER_DONE) | BIT(TLS_SERVER_FAILED),
};

/* The only writer of server->state, but for wiping. */
static void server_enter(struct tls_server *server, enum tls_server_state next)
{
    ASSERT(server_next[server->state] & BIT(next));
    server->state = (uint8_t)next;
}

void tls_server_start(struct tls_server *server,
                      const struct tls_server_config *config)
{
    tls_server_wipe(server);
    server->config = *config;
    server->alert = TLS_ALERT_NONE;
    server_enter(server, TLS_SERVER_HELLO_1);
}

void tls_server_wipe(struct tls_server *server)
{
    wipe_bytes(server, sizeof(*server));
}

static size_t hash_len(const struct tls_server *server)
{
    return auth_hash_len(server->hash);
}

/* ---- What is sent. */

static void add_plain(struct tls_server *server, enum tls_type type,
                      const uint8_t *data, size_t len)
{
    const struct tls_header header = {(uint8_t)type, (uint16_t)len};

    ASSERT(server->out_len + TLS_HEADER_LEN + len <= TLS_OUT_MAX);
    tls_header_emit(&header, server->out + server->out_len);
    memcpy(server->out + server->out_len + TLS_HEADER_LEN, data, len);
    server->out_len = (uint16_t)(server->out_len + TLS_HEADER_LEN + len);
}

static void add_sealed(struct tls_server *server, enum tls_type type,
                       const uint8_t *data, size_t len)
{
    ASSERT(server->out_len + TLS_HEADER_LEN + len + TLS_OVERHEAD <=
           TLS_OUT_MAX);
    server->out_len =
        (uint16_t)(server->out_len +
                   tls_seal(&server->sends, server->config.crypto, type, data,
                            (uint32_t)len, server->out + server->out_len));
}

/* After the first message, for boxes that know TLS 1.2 only (section D.4). */
static void add_ccs(struct tls_server *server)
{
    const uint8_t ccs = 1;

    if (server->session_len != 0) {
        add_plain(server, TLS_TYPE_CCS, &ccs, 1);
    }
}

/* End the handshake.  An alert of the client is not answered. */
static void fail_with(struct tls_server *server, enum tls_alert alert)
{
    const uint8_t message[TLS_ALERT_LEN] = {2, (uint8_t)alert};

    server->alert = (uint8_t)alert;
    if (server->encrypts) {
        add_sealed(server, TLS_TYPE_ALERT, message, sizeof(message));
    } else {
        add_plain(server, TLS_TYPE_ALERT, message, sizeof(message));
    }
    server_enter(server, TLS_SERVER_FAILED);
}

/* ---- The transcript. */

static void add_transcript(struct tls_server *server, const uint8_t *message,
                           size_t len)
{
    ASSERT(server->transcript_len + len <= TLS_TRANSCRIPT_MAX);
    memcpy(server->transcript + server->transcript_len, message, len);
    server->transcript_len += (uint32_t)len;
}

static void hash_transcript(const struct tls_server *server, uint32_t len,
                            uint8_t *digest)
{
    const struct auth_crypto *base = &server->config.crypto->base;

    base->hash(base->ctx, (enum auth_hash)server->hash, server->transcript, len,
               digest);
}

/* Before HelloRetryRequest the transcript has only the hash of what came.
 * Spec: RFC 8446 section 4.4.1. */
static void shorten_transcript(struct tls_server *server)
{
    uint8_t digest[AUTH_HASH_MAX];

    hash_transcript(server, server->transcript_len, digest);
    memset(server->transcript, 0, TLS_MESSAGE_HEADER_LEN);
    server->transcript[TLS_MESSAGE] = TLS_MESSAGE_HASH;
    put_be24(server->transcript + TLS_MESSAGE_LENGTH,
             (uint32_t)hash_len(server));
    server->transcript_len = TLS_MESSAGE_HEADER_LEN;
    add_transcript(server, digest, hash_len(server));
}

/* ---- The key. */

/* Whether the binder was made with this key; keep the early secret then. */
static bool check_binder(struct tls_server *server,
                         const struct tls_client_hello *hello,
                         const struct tls_offer *offer,
                         const struct tls_secret *key)
{
    const struct tls_crypto *crypto = server->config.crypto;
    enum auth_hash hash = (enum auth_hash)server->hash;
    uint8_t digest[AUTH_HASH_MAX], mac[AUTH_HASH_MAX];
    struct tls_secret binder;
    bool is_good;

    if (offer->binder_len != hash_len(server)) {
        return false;
    }
    tls_extract(crypto, hash, NULL,
                (struct auth_bytes){key->bytes, hash_len(server)},
                &server->early);
    crypto->base.hash(crypto->base.ctx, hash, server->transcript, 0, digest);
    tls_derive(crypto, hash, &server->early, "ext binder", digest, &binder);
    hash_transcript(server, server->hello_at + hello->binders_at, digest);
    tls_finished_mac(crypto, hash, &binder, digest, mac);
    is_good = tls_is_equal(mac, offer->binder, hash_len(server));
    wipe_bytes(&binder, sizeof(binder));
    wipe_bytes(mac, sizeof(mac));
    return is_good;
}

/* Whether the client has the key of this offer.
 * @param is_known  whether the drive has a key with this name */
static bool check_offer(struct tls_server *server,
                        const struct tls_client_hello *hello,
                        const struct tls_offer *offer, bool *is_known)
{
    struct tls_secret keys[TLS_STYLES];
    unsigned int count =
        server->config.find_keys(server->config.ctx, &server->identity, keys);
    bool is_good = false;

    for (unsigned int i = 0; i < count && !is_good; i++) {
        is_good = check_binder(server, hello, offer, &keys[i]);
        server->key = keys[i];
    }
    wipe_bytes(keys, sizeof(keys));
    *is_known = count != 0;
    return is_good;
}

/* Choose the first key whose name is known, and check its binder only: those
 * before it may be generated, or for another drive (RFC 8446 section 4.2.11).
 * An unknown name and a wrong key have the same answer, so that nobody without
 * a key learns names of hosts (section 6.2, unknown_psk_identity). */
static enum tls_alert choose_key(struct tls_server *server,
                                 const struct tls_client_hello *hello)
{
    struct tls_offer offer;
    unsigned int left = TLS_NAMES_MAX;

    for (uint16_t i = 0; tls_client_hello_offer(hello, i, &offer); i++) {
        bool has_suite, is_known;

        if (!tls_identity_parse(&server->identity, offer.identity,
                                offer.identity_len)) {
            continue;
        }
        has_suite = server->identity.hash == AUTH_SHA384 ? hello->has_sha384
                                                         : hello->has_sha256;
        if (!has_suite ||
            (server->was_retried && server->identity.hash != server->hash)) {
            continue;
        }
        server->hash = server->identity.hash;
        server->psk = i;
        if (check_offer(server, hello, &offer, &is_known)) {
            return TLS_ALERT_NONE;
        }
        if (is_known || --left == 0) {
            break;
        }
    }
    return TLS_ALERT_DECRYPT;
}

/* ---- ClientHello. */

/* Send a ServerHello.  @param share  NULL: it is a HelloRetryRequest */
static void send_hello(struct tls_server *server, const uint8_t *random,
                       const uint8_t *share)
{
    uint8_t message[TLS_SERVER_HELLO_MAX];
    const struct tls_server_hello hello = {
        .random = random,
        .session = server->session,
        .session_len = server->session_len,
        .hash = (enum auth_hash)server->hash,
        .share = share,
        .psk = server->psk,
    };
    size_t len = tls_server_hello_emit(&hello, message);

    add_transcript(server, message, len);
    add_plain(server, TLS_TYPE_HANDSHAKE, message, len);
    if (!server->was_retried) {
        add_ccs(server);
    }
}

static void send_retry(struct tls_server *server)
{
    static const char name[] = "HelloRetryRequest";
    const struct auth_crypto *base = &server->config.crypto->base;
    uint8_t random[AUTH_HASH_MAX];

    base->hash(base->ctx, AUTH_SHA256, (const uint8_t *)name, strlen(name),
               random);
    shorten_transcript(server);
    send_hello(server, random, NULL);
    server->was_retried = true;
    server->hello_at = server->transcript_len;
    server_enter(server, TLS_SERVER_HELLO_2);
}

static void begin_public(struct tls_server *server, const uint8_t *peer_share)
{
    const struct auth_crypto *base = &server->config.crypto->base;

    memcpy(server->peer_share, peer_share, X25519_LEN);
    base->random(base->ctx, server->exponent, X25519_LEN);
    server_enter(server, TLS_SERVER_PUBLIC);
}

/* A whole ClientHello is at the end of the transcript. */
static void take_hello(struct tls_server *server)
{
    const uint8_t *message = server->transcript + server->hello_at;
    uint32_t len = server->transcript_len - server->hello_at;
    struct tls_client_hello hello;
    enum tls_alert alert = tls_client_hello_parse(&hello, message, len);

    if (alert == TLS_ALERT_NONE) {
        alert = tls_client_hello_judge(&hello);
    }
    if (alert == TLS_ALERT_NONE) {
        alert = choose_key(server, &hello);
    }
    if (alert == TLS_ALERT_NONE && server->was_retried && hello.share == NULL) {
        alert = TLS_ALERT_ILLEGAL;
    }
    if (alert != TLS_ALERT_NONE) {
        fail_with(server, alert);
        return;
    }
    server->is_known = true;
    server->session_len = hello.session_len;
    memcpy(server->session, hello.session, hello.session_len);
    if (hello.share == NULL) {
        send_retry(server);
    } else {
        begin_public(server, hello.share);
    }
}

/* A record with a part of the ClientHello has come. */
static void take_hello_part(struct tls_server *server, const uint8_t *data,
                            uint32_t len)
{
    const uint8_t *message = server->transcript + server->hello_at;
    uint32_t have, want;

    if (len == 0) {
        fail_with(server, TLS_ALERT_UNEXPECTED);
        return;
    }
    if (server->transcript_len - server->hello_at + len > TLS_HELLO_MAX) {
        fail_with(server, TLS_ALERT_DECODE);
        return;
    }
    add_transcript(server, data, len);
    have = server->transcript_len - server->hello_at;
    if (message[TLS_MESSAGE] != TLS_CLIENT_HELLO) {
        fail_with(server, TLS_ALERT_UNEXPECTED);
        return;
    }
    if (have < TLS_MESSAGE_HEADER_LEN) {
        return;
    }
    want = get_be24(message + TLS_MESSAGE_LENGTH) + TLS_MESSAGE_HEADER_LEN;
    if (want > TLS_HELLO_MAX) {
        fail_with(server, TLS_ALERT_DECODE);
    } else if (have > want) {
        fail_with(server, TLS_ALERT_UNEXPECTED);
    } else if (have == want) {
        take_hello(server);
    }
}

/* ---- ServerHello to Finished. */

static void send_server_hello(struct tls_server *server)
{
    const struct auth_crypto *base = &server->config.crypto->base;
    uint8_t random[TLS_RANDOM_LEN];

    base->random(base->ctx, random, sizeof(random));
    send_hello(server, random, server->share);
}

/* From the shared secret to the keys of the handshake. */
static void begin_encryption(struct tls_server *server, const uint8_t *shared)
{
    const struct tls_crypto *crypto = server->config.crypto;
    enum auth_hash hash = (enum auth_hash)server->hash;
    uint8_t digest[AUTH_HASH_MAX];

    tls_next_secret(crypto, hash, &server->early, shared, X25519_LEN,
                    &server->early);
    hash_transcript(server, server->transcript_len, digest);
    tls_derive(crypto, hash, &server->early, "c hs traffic", digest,
               &server->from_client);
    tls_derive(crypto, hash, &server->early, "s hs traffic", digest,
               &server->from_server);
    tls_half_init(&server->receives, crypto, hash, &server->from_client);
    tls_half_init(&server->sends, crypto, hash, &server->from_server);
    server->encrypts = true;
}

static void add_finished(struct tls_server *server, uint8_t *message)
{
    uint8_t digest[AUTH_HASH_MAX];

    hash_transcript(server, server->transcript_len, digest);
    message[TLS_MESSAGE] = TLS_FINISHED;
    put_be24(message + TLS_MESSAGE_LENGTH, (uint32_t)hash_len(server));
    tls_finished_mac(server->config.crypto, (enum auth_hash)server->hash,
                     &server->from_server, digest,
                     message + TLS_MESSAGE_HEADER_LEN);
    add_transcript(server, message, TLS_MESSAGE_HEADER_LEN + hash_len(server));
}

/* EncryptedExtensions, which are none, and Finished, in one record. */
static void send_finished(struct tls_server *server)
{
    enum { EXTENSIONS_LEN = TLS_MESSAGE_HEADER_LEN + 2 };
    const struct tls_crypto *crypto = server->config.crypto;
    enum auth_hash hash = (enum auth_hash)server->hash;
    uint8_t flight[EXTENSIONS_LEN + TLS_MESSAGE_HEADER_LEN + AUTH_HASH_MAX] = {
        TLS_ENCRYPTED_EXTENSIONS, 0, 0, 2, 0, 0};
    uint8_t digest[AUTH_HASH_MAX];

    add_transcript(server, flight, EXTENSIONS_LEN);
    add_finished(server, flight + EXTENSIONS_LEN);
    add_sealed(server, TLS_TYPE_HANDSHAKE, flight,
               EXTENSIONS_LEN + TLS_MESSAGE_HEADER_LEN + hash_len(server));
    tls_next_secret(crypto, hash, &server->early, NULL, 0, &server->early);
    hash_transcript(server, server->transcript_len, digest);
    tls_derive(crypto, hash, &server->early, "c ap traffic", digest,
               &server->next_from_client);
    tls_derive(crypto, hash, &server->early, "s ap traffic", digest,
               &server->next_from_server);
    /* What follows Finished, if only an alert, has the keys of data (RFC 8446
     * section A.2). */
    tls_half_init(&server->sends, crypto, hash, &server->next_from_server);
    wipe_bytes(&server->early, sizeof(server->early));
}

static void compute_public(struct tls_server *server)
{
    bool is_good =
        server->config.crypto->x25519(server->exponent, NULL, server->share);

    ASSERT(is_good); /* the base point is not of small order */
    server_enter(server, TLS_SERVER_SHARED);
}

static void compute_shared(struct tls_server *server)
{
    uint8_t shared[X25519_LEN];
    bool is_good = server->config.crypto->x25519(server->exponent,
                                                 server->peer_share, shared);

    wipe_bytes(server->exponent, sizeof(server->exponent));
    if (!is_good) {
        fail_with(server, TLS_ALERT_ILLEGAL);
        return;
    }
    send_server_hello(server);
    begin_encryption(server, shared);
    send_finished(server);
    wipe_bytes(shared, sizeof(shared));
    server_enter(server, TLS_SERVER_FINISHED);
}

/* ---- The client's Finished. */

static void take_finished(struct tls_server *server, const uint8_t *message,
                          uint32_t len)
{
    uint8_t digest[AUTH_HASH_MAX], mac[AUTH_HASH_MAX];

    if (len < TLS_MESSAGE_HEADER_LEN || message[TLS_MESSAGE] != TLS_FINISHED) {
        fail_with(server, TLS_ALERT_UNEXPECTED);
        return;
    }
    if (len != TLS_MESSAGE_HEADER_LEN + hash_len(server) ||
        get_be24(message + TLS_MESSAGE_LENGTH) != hash_len(server)) {
        fail_with(server, TLS_ALERT_DECODE);
        return;
    }
    hash_transcript(server, server->transcript_len, digest);
    tls_finished_mac(server->config.crypto, (enum auth_hash)server->hash,
                     &server->from_client, digest, mac);
    if (!tls_is_equal(mac, message + TLS_MESSAGE_HEADER_LEN,
                      hash_len(server))) {
        fail_with(server, TLS_ALERT_DECRYPT);
        return;
    }
    server->from_client = server->next_from_client;
    server->from_server = server->next_from_server;
    server_enter(server, TLS_SERVER_DONE);
}

/* An encrypted record has come, which can only hold Finished or an alert. */
static void take_sealed(struct tls_server *server, uint8_t *data, uint32_t len)
{
    const struct tls_crypto *crypto = server->config.crypto;

    if (len < TLS_OVERHEAD) {
        fail_with(server, TLS_ALERT_BAD_MAC);
        return;
    }
    len -= TLS_TAG_LEN;
    tls_open_begin(&server->receives, crypto, server->record);
    crypto->aead_add(&server->receives.aead, data, data, len);
    if (!tls_open_end(&server->receives, crypto, data + len)) {
        fail_with(server, TLS_ALERT_BAD_MAC);
        return;
    }
    while (len != 0 && data[len - 1] == 0) {
        len--; /* padding */
    }
    if (len != 0 && data[len - 1] == TLS_TYPE_ALERT) {
        server->was_alerted = true;
        server_enter(server, TLS_SERVER_FAILED);
    } else if (len != 0 && data[len - 1] == TLS_TYPE_HANDSHAKE) {
        take_finished(server, data, len - 1);
    } else {
        fail_with(server, TLS_ALERT_UNEXPECTED);
    }
}

/* ---- Records. */

static bool is_hello_state(const struct tls_server *server)
{
    return server->state == TLS_SERVER_HELLO_1 ||
           server->state == TLS_SERVER_HELLO_2;
}

/* Whether the record is a change_cipher_spec that is to be dropped.
 * Spec: RFC 8446 section 5. */
static bool is_harmless(const struct tls_server *server,
                        const struct tls_header *header)
{
    return header->type == TLS_TYPE_CCS && header->len_bytes == 1 &&
           server->record[TLS_HEADER_LEN] == 1 &&
           server->state != TLS_SERVER_HELLO_1;
}

static void take_record(struct tls_server *server,
                        const struct tls_header *header)
{
    uint8_t *data = server->record + TLS_HEADER_LEN;

    if (is_harmless(server, header)) {
        return;
    }
    if (header->type == TLS_TYPE_ALERT) {
        server->was_alerted = true;
        server_enter(server, TLS_SERVER_FAILED);
    } else if (is_hello_state(server) && header->type == TLS_TYPE_HANDSHAKE) {
        take_hello_part(server, data, header->len_bytes);
    } else if (server->state == TLS_SERVER_FINISHED &&
               header->type == TLS_TYPE_DATA) {
        take_sealed(server, data, header->len_bytes);
    } else {
        fail_with(server, TLS_ALERT_UNEXPECTED);
    }
}

/* Bytes that are missing of the current record. */
static uint32_t missing_bytes(const struct tls_server *server)
{
    uint32_t want = TLS_HEADER_LEN;

    if (server->record_len >= TLS_HEADER_LEN) {
        want += get_be16(server->record + TLS_LENGTH);
        want = MIN(want, (uint32_t)TLS_RECORD_MAX);
    }
    return want - server->record_len;
}

uint32_t tls_server_take(struct tls_server *server, const uint8_t *bytes,
                         uint32_t len)
{
    uint32_t taken = 0;

    if (!is_hello_state(server) && server->state != TLS_SERVER_FINISHED) {
        return 0;
    }
    for (unsigned int round = 0; round < 2; round++) { /* header, rest */
        uint32_t part = MIN(missing_bytes(server), len - taken);

        memcpy(server->record + server->record_len, bytes + taken, part);
        server->record_len += part;
        taken += part;
    }
    return taken;
}

/* @return whether a record was taken */
static bool step_record(struct tls_server *server)
{
    struct tls_header header;
    enum tls_alert alert;

    if (server->record_len < TLS_HEADER_LEN) {
        return false;
    }
    alert = tls_header_parse(&header, server->record);
    if (alert == TLS_ALERT_NONE &&
        header.len_bytes > TLS_RECORD_MAX - TLS_HEADER_LEN) {
        alert = TLS_ALERT_OVERFLOW;
    }
    if (alert != TLS_ALERT_NONE) {
        fail_with(server, alert);
        return true;
    }
    if (missing_bytes(server) != 0) {
        return false;
    }
    server->record_len = 0;
    take_record(server, &header);
    return true;
}

bool tls_server_step(struct tls_server *server)
{
    switch ((enum tls_server_state)server->state) {
    case TLS_SERVER_HELLO_1:
    case TLS_SERVER_HELLO_2:
    case TLS_SERVER_FINISHED:
        return step_record(server);
    case TLS_SERVER_PUBLIC:
        compute_public(server);
        return true;
    case TLS_SERVER_SHARED:
        compute_shared(server);
        return true;
    case TLS_SERVER_IDLE:
    case TLS_SERVER_DONE:
    case TLS_SERVER_FAILED:
    case TLS_SERVER_STATES:
        break;
    }
    return false;
}
