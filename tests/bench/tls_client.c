/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/tls_client.h"

#include <stdio.h>
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/tls/tls_hello.h"

#define HASH AUTH_SHA256

enum {
    HASH_LEN = 32,
    PSK_EXTENSION_LEN = 6, /* the last extension of ServerHello */
};

/* Repeatable, for measurements only. */
static void fill_bytes(void *ctx, uint8_t *buf, size_t len)
{
    (void)ctx;
    memset(buf, 0x5c, len);
}

static void hash_transcript(const struct tls_client *client, uint8_t *digest)
{
    client->crypto.base.hash(client->crypto.base.ctx, HASH, client->transcript,
                             client->transcript_len, digest);
}

static void add_transcript(struct tls_client *client, const uint8_t *bytes,
                           size_t len)
{
    ASSERT(client->transcript_len + len <= sizeof(client->transcript));
    memcpy(client->transcript + client->transcript_len, bytes, len);
    client->transcript_len += len;
}

static struct tls_secret derive_now(const struct tls_client *client,
                                    const char *label)
{
    struct tls_secret secret;
    uint8_t digest[AUTH_HASH_MAX];

    hash_transcript(client, digest);
    tls_derive(&client->crypto, HASH, &client->secret, label, digest, &secret);
    return secret;
}

/* ---- ClientHello, in the transcript. */

static void add_u16(struct tls_client *client, size_t value)
{
    uint8_t bytes[2];

    put_be16(bytes, (uint16_t)value);
    add_transcript(client, bytes, sizeof(bytes));
}

static void add_extension(struct tls_client *client, unsigned int type,
                          const uint8_t *body, size_t len)
{
    add_u16(client, type);
    add_u16(client, len);
    add_transcript(client, body, len);
}

static void add_extensions(struct tls_client *client)
{
    const uint8_t versions[] = {2, 3, 4}, groups[] = {0, 2, 0, 29},
                  modes[] = {1, 1};
    uint8_t share[6 + X25519_LEN] = {0, 4 + X25519_LEN, 0, 29, 0, X25519_LEN};

    (void)!client->crypto.x25519(client->exponent, NULL, share + 6);
    add_extension(client, 43, versions, sizeof(versions));
    add_extension(client, 10, groups, sizeof(groups));
    add_extension(client, 45, modes, sizeof(modes));
    add_extension(client, 51, share, sizeof(share));
}

/* The extension with the name of the key; its binder follows. */
static void add_name(struct tls_client *client, const char *name)
{
    size_t len = strlen(name);

    add_u16(client, 41);
    add_u16(client, 2 + 2 + len + 4 + 2 + 1 + HASH_LEN);
    add_u16(client, 2 + len + 4);
    add_u16(client, len);
    add_transcript(client, (const uint8_t *)name, len);
    add_transcript(client, (const uint8_t[4]){0}, 4);
}

static void add_binder(struct tls_client *client)
{
    uint8_t digest[AUTH_HASH_MAX], mac[1 + AUTH_HASH_MAX] = {HASH_LEN};
    struct tls_secret binder;

    client->crypto.base.hash(client->crypto.base.ctx, HASH, mac, 0, digest);
    tls_derive(&client->crypto, HASH, &client->secret, "ext binder", digest,
               &binder);
    hash_transcript(client, digest);
    tls_finished_mac(&client->crypto, HASH, &binder, digest, mac + 1);
    add_u16(client, 1 + HASH_LEN);
    add_transcript(client, mac, 1 + HASH_LEN);
}

/* The lengths cover the binder, which is made last. */
static void set_lengths(struct tls_client *client, size_t extensions_at)
{
    size_t end = client->transcript_len + 2 + 1 + HASH_LEN;

    put_be24(client->transcript + TLS_MESSAGE_LENGTH,
             (uint32_t)(end - TLS_MESSAGE_HEADER_LEN));
    put_be16(client->transcript + extensions_at,
             (uint16_t)(end - extensions_at - 2));
}

size_t tls_client_begin(struct tls_client *client, const struct auth_key *key,
                        const struct tls_identity *name, uint8_t *record)
{
    /* Type and length, TLS 1.2, random; no session, one suite, no compression,
     * and the length of the extensions. */
    static const uint8_t head[] = {TLS_CLIENT_HELLO, 0, 0, 0, 3, 3};
    static const uint8_t tail[] = {0, 0, 2, 0x13, 0x01, 1, 0, 0, 0};
    uint8_t random[TLS_RANDOM_LEN] = {1, 2, 3};
    char text[TLS_IDENTITY_MAX + 1];
    struct tls_secret psk;
    bool has_key;

    memset(client, 0, sizeof(*client));
    crypto_init(&client->arithmetic, fill_bytes, NULL);
    client->crypto = crypto_tls_ops(&client->arithmetic);
    fill_bytes(NULL, client->exponent, X25519_LEN);
    has_key = tls_psk_derive(&client->crypto, key, name, TLS_STYLE_SPEC, &psk);
    ASSERT(has_key && name->hash == HASH);
    tls_extract(&client->crypto, HASH, NULL,
                (struct auth_bytes){psk.bytes, HASH_LEN}, &client->secret);
    (void)snprintf(text, sizeof(text), "NVMe0R01 %s %s", name->hostnqn,
                   name->subnqn);
    add_transcript(client, head, sizeof(head));
    add_transcript(client, random, sizeof(random));
    add_transcript(client, tail, sizeof(tail));
    add_extensions(client);
    add_name(client, text);
    set_lengths(client, sizeof(head) + sizeof(random) + sizeof(tail) - 2);
    add_binder(client);
    ASSERT(TLS_HEADER_LEN + client->transcript_len <= TLS_CLIENT_HELLO_MAX);
    tls_header_emit(&(struct tls_header){TLS_TYPE_HANDSHAKE,
                                         (uint16_t)client->transcript_len},
                    record);
    memcpy(record + TLS_HEADER_LEN, client->transcript, client->transcript_len);
    return TLS_HEADER_LEN + client->transcript_len;
}

/* ---- Records. */

size_t tls_client_record_len(const uint8_t *bytes, size_t len)
{
    size_t want = TLS_HEADER_LEN;

    if (len >= TLS_HEADER_LEN) {
        want += get_be16(bytes + TLS_LENGTH);
    }
    return want <= len && want > TLS_HEADER_LEN ? want : 0;
}

/* @return how many bytes of `type` it has */
static size_t open_record(struct tls_client *client, uint8_t *record,
                          size_t len, enum tls_type type)
{
    uint8_t *inner = record + TLS_HEADER_LEN;
    size_t inner_len = len - TLS_HEADER_LEN - TLS_TAG_LEN;
    bool is_good;

    tls_open_begin(&client->receives, &client->crypto, record);
    client->crypto.aead_add(&client->receives.aead, inner, inner, inner_len);
    is_good =
        tls_open_end(&client->receives, &client->crypto, inner + inner_len);
    ASSERT(is_good && inner[inner_len - 1] == type);
    return inner_len - 1;
}

size_t tls_client_open(struct tls_client *client, uint8_t *record, size_t len)
{
    return open_record(client, record, len, TLS_TYPE_DATA);
}

/* ---- From ServerHello to Finished. */

/* The keys of the handshake.  @return the secret for Finished */
static struct tls_secret begin_encryption(struct tls_client *client,
                                          const uint8_t *share)
{
    uint8_t shared[X25519_LEN];
    struct tls_secret from_client, from_server;
    bool is_good = client->crypto.x25519(client->exponent, share, shared);

    ASSERT(is_good);
    tls_next_secret(&client->crypto, HASH, &client->secret, shared, X25519_LEN,
                    &client->secret);
    from_client = derive_now(client, "c hs traffic");
    from_server = derive_now(client, "s hs traffic");
    tls_half_init(&client->sends, &client->crypto, HASH, &from_client);
    tls_half_init(&client->receives, &client->crypto, HASH, &from_server);
    return from_client;
}

size_t tls_client_finish(struct tls_client *client, uint8_t *flight,
                         uint8_t *record)
{
    size_t hello_len =
        tls_client_record_len(flight, TLS_CLIENT_HELLO_MAX) - TLS_HEADER_LEN;
    const uint8_t *hello = flight + TLS_HEADER_LEN;
    uint8_t *sealed = flight + TLS_HEADER_LEN + hello_len;
    size_t sealed_len = tls_client_record_len(sealed, TLS_CLIENT_HELLO_MAX);
    uint8_t digest[AUTH_HASH_MAX],
        finished[TLS_MESSAGE_HEADER_LEN + HASH_LEN] = {TLS_FINISHED, 0, 0,
                                                       HASH_LEN};
    struct tls_secret own, from_client, from_server;
    size_t len;

    add_transcript(client, hello, hello_len);
    own = begin_encryption(client,
                           hello + hello_len - PSK_EXTENSION_LEN - X25519_LEN);
    len = open_record(client, sealed, sealed_len, TLS_TYPE_HANDSHAKE);
    add_transcript(client, sealed + TLS_HEADER_LEN, len);
    hash_transcript(client, digest);
    tls_finished_mac(&client->crypto, HASH, &own, digest,
                     finished + TLS_MESSAGE_HEADER_LEN);
    len = tls_seal(&client->sends, &client->crypto, TLS_TYPE_HANDSHAKE,
                   finished, sizeof(finished), record);
    tls_next_secret(&client->crypto, HASH, &client->secret, NULL, 0,
                    &client->secret);
    from_client = derive_now(client, "c ap traffic");
    from_server = derive_now(client, "s ap traffic");
    tls_half_init(&client->sends, &client->crypto, HASH, &from_client);
    tls_half_init(&client->receives, &client->crypto, HASH, &from_server);
    return len;
}
