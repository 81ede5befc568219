/* SPDX-License-Identifier: BSD-2-Clause */
#include "tls_peer.h"

#include <stdio.h>
#include <string.h>

enum {
    ROOM = 8192, /* of a message and of the transcript */
    PLAIN_ROOM = 2 * TLS_PEER_RECORD,
    KEY_MAX = 48,
    NAME_MAX = 512,
    CLIENT_HELLO = 1,
    SERVER_HELLO = 2,
    FINISHED = 20,
    MESSAGE_HASH = 254,
    SESSION = 32,
};

/* SHA-256 of "HelloRetryRequest". */
static const uint8_t retry_random[] = {
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
    0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
    0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
};

struct tls_peer *tls_peer_new(struct conf *conf, struct stream *stream)
{
    struct tls_peer *peer = conf_alloc(conf, sizeof(*peer));

    memset(peer, 0, sizeof(*peer));
    peer->conf = conf;
    peer->stream = stream;
    peer->message = conf_alloc(conf, ROOM);
    peer->transcript = conf_alloc(conf, ROOM);
    peer->plain = conf_alloc(conf, PLAIN_ROOM);
    for (unsigned int i = 0; i < MATHS_POINT; i++) {
        peer->scalar[i] = (uint8_t)(0x40 + i);
    }
    return peer;
}

static size_t hash_len(const struct tls_peer *peer)
{
    return maths_hash_len(peer->is_384);
}

/* ---- ClientHello. */

static void add_u8(struct tls_peer *peer, unsigned int value)
{
    ASSERT(peer->len < ROOM);
    peer->message[peer->len++] = (uint8_t)value;
}

static void add_u16(struct tls_peer *peer, unsigned int value)
{
    add_u8(peer, value >> 8);
    add_u8(peer, value);
}

static void add_bytes(struct tls_peer *peer, const void *bytes, size_t len)
{
    ASSERT(peer->len + len <= ROOM);
    memcpy(peer->message + peer->len, bytes, len);
    peer->len += len;
}

static void add_extension(struct tls_peer *peer, unsigned int type,
                          const void *body, size_t len)
{
    add_u16(peer, type);
    add_u16(peer, (unsigned int)len);
    add_bytes(peer, body, len);
}

static void name_of(const struct tls_peer *peer, bool is_stranger, char *name)
{
    const char *subnqn =
        peer->subnqn != NULL ? peer->subnqn : conf_target(peer->conf)->nqn;

    if (peer->flaw == TLS_PEER_WRONG_DRIVE) {
        subnqn = "nqn.2014-08.org.example:another-drive";
    }
    if (peer->generated != NULL) {
        snprintf(name, NAME_MAX, "NVMe1G0%d %s %s %s", peer->is_384 ? 2 : 1,
                 TLS_PEER_HOST, subnqn, peer->digest);
        return;
    }
    snprintf(name, NAME_MAX, "NVMe0R0%d %s%s %s", peer->is_384 ? 2 : 1,
             TLS_PEER_HOST, is_stranger ? "0" : "", subnqn);
}

/* That of TLS from the generated key. */
static void generated_psk_of(const struct tls_peer *peer, uint8_t *psk)
{
    const uint8_t zeroes[KEY_MAX] = {0};
    uint8_t secret[KEY_MAX];
    char context[4 + 64];
    int len = snprintf(context, sizeof(context), "0%d %s", peer->is_384 ? 2 : 1,
                       peer->digest);

    maths_hmac(peer->is_384, zeroes, peer->generated, hash_len(peer), secret);
    maths_expand(peer->is_384, secret, "nvme-tls-psk", context, (size_t)len,
                 psk, hash_len(peer));
}

/* The configured key, then the retained key, then that of TLS. */
static void psk_of(const struct tls_peer *peer, const char *name, uint8_t *psk)
{
    const uint8_t zeroes[KEY_MAX] = {0};
    size_t len = hash_len(peer);
    uint8_t secret[KEY_MAX];

    if (peer->generated != NULL) {
        generated_psk_of(peer, psk);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        psk[i] = (uint8_t)(i + (peer->flaw == TLS_PEER_WRONG_KEY ? 2 : 1));
    }
    maths_hmac(peer->is_384, zeroes, psk, len, secret);
    maths_expand(peer->is_384, secret, "HostNQN", TLS_PEER_HOST,
                 strlen(TLS_PEER_HOST), psk, len);
    maths_hmac(peer->is_384, zeroes, psk, len, secret);
    maths_expand(peer->is_384, secret, "nvme-tls-psk", name, strlen(name), psk,
                 len);
}

static void add_share(struct tls_peer *peer)
{
    uint8_t body[6 + MATHS_POINT] = {0, 36, 0, 29, 0, MATHS_POINT};

    if (peer->flaw == TLS_PEER_NO_SHARE && !peer->was_retried) {
        add_extension(peer, 51, "\0\0", 2);
        return;
    }
    if (peer->flaw != TLS_PEER_ZERO) {
        maths_multiply(peer->scalar, NULL, body + 6);
    }
    add_extension(peer, 51, body, sizeof(body));
}

static void add_extensions(struct tls_peer *peer)
{
    const uint8_t versions[] = {2, 3, peer->flaw == TLS_PEER_OLD ? 3 : 4};
    const uint8_t groups[] = {0, 2, 0,
                              peer->flaw == TLS_PEER_NO_GROUP ? 23 : 29};
    const uint8_t modes[] = {1, peer->flaw != TLS_PEER_PSK_ONLY};

    add_extension(peer, 43, versions, sizeof(versions));
    add_extension(peer, 10, groups, sizeof(groups));
    if (peer->flaw == TLS_PEER_TWICE) {
        add_extension(peer, 10, groups, sizeof(groups));
    }
    if (peer->flaw == TLS_PEER_GREASE) {
        add_extension(peer, 0x3a3a, "anything", 8);
    }
    if (peer->flaw != TLS_PEER_NO_MODES) {
        add_extension(peer, 45, modes, sizeof(modes));
    }
    if (peer->flaw == TLS_PEER_EARLY) {
        add_extension(peer, 42, "", 0);
    }
    add_share(peer);
}

/* The names, and as many bytes as the binders will have. */
static void add_names(struct tls_peer *peer, char *name)
{
    bool has_two = peer->flaw == TLS_PEER_STRANGER;
    char names[2][NAME_MAX];
    size_t identities = 0, binders;
    unsigned int count = 0;

    if (has_two) {
        name_of(peer, true, names[count++]);
    }
    name_of(peer, peer->flaw == TLS_PEER_WRONG_NAME, names[count++]);
    for (unsigned int i = 0; i < count; i++) {
        identities += 2 + strlen(names[i]) + 4;
    }
    binders = count * (1 + hash_len(peer));
    add_u16(peer, 41);
    add_u16(peer, (unsigned int)(2 + identities + 2 + binders));
    add_u16(peer, (unsigned int)identities);
    for (unsigned int i = 0; i < count; i++) {
        add_u16(peer, (unsigned int)strlen(names[i]));
        add_bytes(peer, names[i], strlen(names[i]));
        add_bytes(peer, "\0\0\0\0", 4);
    }
    peer->binders_at = peer->len;
    add_u16(peer, (unsigned int)binders);
    for (unsigned int i = 0; i < count; i++) {
        add_u8(peer, (unsigned int)hash_len(peer));
        memset(peer->message + peer->len, 0, hash_len(peer));
        peer->len += hash_len(peer);
    }
    strcpy(name, names[count - 1]);
}

/* The last binder is that of the right name. */
static void fill_binder(struct tls_peer *peer, const char *name)
{
    const uint8_t zeroes[KEY_MAX] = {0};
    uint8_t psk[KEY_MAX], binder[MATHS_HASH], digest[MATHS_HASH];
    uint8_t *whole = conf_alloc(peer->conf, 2 * ROOM);

    psk_of(peer, name, psk);
    maths_hmac(peer->is_384, zeroes, psk, hash_len(peer), peer->early);
    maths_derive(peer->is_384, peer->early, "ext binder", NULL, binder);
    memcpy(whole, peer->transcript, peer->transcript_len);
    memcpy(whole + peer->transcript_len, peer->message, peer->binders_at);
    maths_hash(peer->is_384, whole, peer->transcript_len + peer->binders_at,
               digest);
    maths_expand(peer->is_384, binder, "finished", NULL, 0, binder,
                 hash_len(peer));
    maths_hmac(peer->is_384, binder, digest, hash_len(peer),
               peer->message + peer->len - hash_len(peer));
}

size_t tls_peer_make_hello(struct tls_peer *peer)
{
    unsigned int suite = peer->is_384 ? 0x1302 : 0x1301;
    char name[NAME_MAX] = "";
    size_t lengths, in_list;

    peer->len = 0;
    add_bytes(peer, "\1\0\0\0\3\3", 6);
    for (unsigned int i = 0; i < 32; i++) {
        add_u8(peer, 0xa0 + i);
    }
    add_u8(peer, peer->flaw == TLS_PEER_SESSION ? 0 : SESSION);
    for (unsigned int i = 0; peer->flaw != TLS_PEER_SESSION && i < SESSION;
         i++) {
        add_u8(peer, 0xc0 + i);
    }
    add_u16(peer, 4);
    add_u16(peer, peer->flaw == TLS_PEER_GREASE ? 0x2a2a : 0x1303);
    add_u16(peer, peer->flaw == TLS_PEER_NO_SUITE ? 0x1303 : suite);
    add_bytes(peer, "\1\0", 2); /* no compression */
    lengths = peer->len;
    add_u16(peer, 0);
    add_extensions(peer);
    if (peer->flaw != TLS_PEER_NO_PSK) {
        add_names(peer, name);
    }
    in_list = peer->len - lengths - 2 - (peer->flaw == TLS_PEER_SHORT ? 1 : 0);
    peer->message[lengths] = (uint8_t)(in_list >> 8);
    peer->message[lengths + 1] = (uint8_t)in_list;
    peer->message[2] = (uint8_t)((peer->len - 4) >> 8);
    peer->message[3] = (uint8_t)(peer->len - 4);
    if (peer->flaw != TLS_PEER_NO_PSK) {
        fill_binder(peer, name);
    }
    return peer->len;
}

static void add_transcript(struct tls_peer *peer, const uint8_t *message,
                           size_t len)
{
    ASSERT(peer->transcript_len + len <= ROOM);
    memcpy(peer->transcript + peer->transcript_len, message, len);
    peer->transcript_len += len;
}

static void digest_of(const struct tls_peer *peer, uint8_t *digest)
{
    maths_hash(peer->is_384, peer->transcript, peer->transcript_len, digest);
}

void tls_peer_hello(struct tls_peer *peer)
{
    size_t len = tls_peer_make_hello(peer);
    uint8_t *record = conf_alloc(peer->conf, 5 + len);

    memcpy(record, "\x16\3\1", 3);
    record[3] = (uint8_t)(len >> 8);
    record[4] = (uint8_t)len;
    memcpy(record + 5, peer->message, len);
    stream_send(peer->stream, record, 5 + len, peer->piece);
    add_transcript(peer, peer->message, len);
}

/* ---- The drive's records. */

/* The next record.  @return its content; it is decrypted if it can be */
static const uint8_t *record_take(struct tls_peer *peer, uint8_t *type,
                                  uint32_t *len)
{
    uint8_t header[5];
    uint8_t *bytes = conf_alloc(peer->conf, TLS_PEER_RECORD);

    memcpy(header, stream_take(peer->stream, 5), 5);
    *type = header[0];
    *len = (uint32_t)header[3] << 8 | header[4];
    conf_equal(peer->conf, "version of a record",
               (uint64_t)header[1] << 8 | header[2], 0x0303);
    conf_check(peer->conf, *len <= TLS_PEER_MOST + 256, "a record of %u bytes",
               *len);
    memcpy(bytes, stream_take(peer->stream, *len), *len);
    if (header[0] != TLS_PEER_DATA) {
        return bytes;
    }
    conf_check(peer->conf, peer->has_keys && *len > MATHS_TAG,
               "an encrypted record of %u bytes", *len);
    *len -= MATHS_TAG;
    conf_check(peer->conf, maths_open(&peer->receives, header, bytes, *len),
               "the record of the drive is not authentic");
    do {
        conf_check(peer->conf, *len != 0, "a record without a type");
        *type = bytes[--*len];
    } while (*type == 0);
    return bytes;
}

/* After the first message of the drive, if the session id is not empty. */
static void take_ccs(struct tls_peer *peer)
{
    uint8_t type;
    uint32_t len;
    const uint8_t *data;

    if (peer->flaw == TLS_PEER_SESSION) {
        return;
    }
    data = record_take(peer, &type, &len);
    conf_check(peer->conf, type == 20 && len == 1 && data[0] == 1,
               "no change_cipher_spec but a record of type %u", type);
}

/* ---- ServerHello. */

/* HelloRetryRequest: the transcript begins with the hash of the hello. */
static void take_retry(struct tls_peer *peer, const uint8_t *message,
                       uint32_t len)
{
    uint8_t digest[MATHS_HASH], head[4] = {MESSAGE_HASH, 0, 0, 0};

    conf_check(peer->conf,
               peer->flaw == TLS_PEER_NO_SHARE && !peer->was_retried,
               "HelloRetryRequest, and there was a value");
    conf_same(peer->conf, "supported_versions and key_share",
              message + len - 12, "\0\x2b\0\2\3\4\0\x33\0\2\0\x1d", 12);
    digest_of(peer, digest);
    head[3] = (uint8_t)hash_len(peer);
    peer->transcript_len = 0;
    add_transcript(peer, head, sizeof(head));
    add_transcript(peer, digest, hash_len(peer));
    add_transcript(peer, message, len);
    take_ccs(peer);
    peer->was_retried = true;
    tls_peer_hello(peer);
}

/* From the early secret to the keys of the handshake. */
static void begin_keys(struct tls_peer *peer, const uint8_t *point)
{
    uint8_t shared[MATHS_POINT], derived[MATHS_HASH], digest[MATHS_HASH];

    maths_multiply(peer->scalar, point, shared);
    maths_derive(peer->is_384, peer->early, "derived", NULL, derived);
    maths_hmac(peer->is_384, derived, shared, sizeof(shared), peer->early);
    digest_of(peer, digest);
    maths_derive(peer->is_384, peer->early, "c hs traffic", digest,
                 peer->from_client);
    maths_derive(peer->is_384, peer->early, "s hs traffic", digest,
                 peer->from_server);
    maths_key_init(&peer->sends, peer->is_384, peer->from_client);
    maths_key_init(&peer->receives, peer->is_384, peer->from_server);
    peer->has_keys = true;
}

static void take_server_hello(struct tls_peer *peer, const uint8_t *message,
                              uint32_t len)
{
    const uint32_t session = peer->flaw == TLS_PEER_SESSION ? 0 : SESSION;
    const uint8_t *at = message + 39 + session;
    const uint8_t psk[] = {0, 41, 0, 2, 0, peer->flaw == TLS_PEER_STRANGER};

    conf_equal(peer->conf, "length of ServerHello", len, 96 + session);
    conf_same(peer->conf, "the head of ServerHello", message, "\2\0\0", 3);
    conf_equal(peer->conf, "its length", message[3], len - 4);
    conf_same(peer->conf, "its version", message + 4, "\3\3", 2);
    conf_equal(peer->conf, "length of the session id", message[38], session);
    for (uint32_t i = 0; i < session; i++) {
        conf_equal(peer->conf, "session id", message[39 + i], 0xc0 + i);
    }
    conf_equal(peer->conf, "cipher suite", (uint64_t)at[0] << 8 | at[1],
               peer->is_384 ? 0x1302 : 0x1301);
    conf_equal(peer->conf, "compression", at[2], 0);
    conf_same(peer->conf, "supported_versions and key_share", at + 3,
              "\0\x34\0\x2b\0\2\3\4\0\x33\0\x24\0\x1d\0\x20", 16);
    conf_same(peer->conf, "pre_shared_key", at + 19 + MATHS_POINT, psk,
              sizeof(psk));
    add_transcript(peer, message, len);
    begin_keys(peer, at + 19);
    if (!peer->was_retried) {
        take_ccs(peer);
    }
}

/* EncryptedExtensions, which is empty, and Finished. */
static void take_finished(struct tls_peer *peer)
{
    uint8_t key[MATHS_HASH], mac[MATHS_HASH], digest[MATHS_HASH];
    uint8_t head[4] = {FINISHED, 0, 0, (uint8_t)hash_len(peer)};
    uint8_t type;
    uint32_t len;
    const uint8_t *data = record_take(peer, &type, &len);

    conf_equal(peer->conf, "type of a record", type, TLS_PEER_HANDSHAKE);
    conf_equal(peer->conf, "length of EncryptedExtensions and Finished", len,
               6 + 4 + hash_len(peer));
    conf_same(peer->conf, "EncryptedExtensions", data, "\x8\0\0\2\0\0", 6);
    add_transcript(peer, data, 6);
    digest_of(peer, digest);
    maths_expand(peer->is_384, peer->from_server, "finished", NULL, 0, key,
                 hash_len(peer));
    maths_hmac(peer->is_384, key, digest, hash_len(peer), mac);
    conf_same(peer->conf, "Finished", data + 6, head, sizeof(head));
    conf_same(peer->conf, "the MAC of Finished", data + 10, mac,
              hash_len(peer));
    add_transcript(peer, data + 6, 4 + hash_len(peer));
}

void tls_peer_flight(struct tls_peer *peer)
{
    uint8_t type;
    uint32_t len;
    const uint8_t *data = record_take(peer, &type, &len);

    conf_check(peer->conf,
               type == TLS_PEER_HANDSHAKE && len > 44 &&
                   data[0] == SERVER_HELLO,
               "no ServerHello but a record of type %u, %02x %02x", type,
               data[0], data[1]);
    if (memcmp(data + 6, retry_random, sizeof(retry_random)) == 0) {
        take_retry(peer, data, len);
        data = record_take(peer, &type, &len);
        conf_equal(peer->conf, "type of a record", type, TLS_PEER_HANDSHAKE);
    }
    take_server_hello(peer, data, len);
    take_finished(peer);
}

/* ---- The host's Finished, and what follows. */

void tls_peer_finish(struct tls_peer *peer)
{
    const uint8_t zeroes[MATHS_HASH] = {0};
    uint8_t message[4 + MATHS_HASH] = {FINISHED, 0, 0, 0};
    uint8_t key[MATHS_HASH], digest[MATHS_HASH], derived[MATHS_HASH];
    uint8_t *record = conf_alloc(peer->conf, TLS_PEER_RECORD);
    size_t len;

    digest_of(peer, digest);
    message[3] = (uint8_t)hash_len(peer);
    maths_expand(peer->is_384, peer->from_client, "finished", NULL, 0, key,
                 hash_len(peer));
    maths_hmac(peer->is_384, key, digest, hash_len(peer), message + 4);
    message[4] ^= peer->flaw == TLS_PEER_BAD_FINISHED;
    len = tls_peer_seal(peer, TLS_PEER_HANDSHAKE, message, 4 + hash_len(peer),
                        record);
    stream_send(peer->stream, record, len, 0);
    maths_derive(peer->is_384, peer->early, "derived", NULL, derived);
    maths_hmac(peer->is_384, derived, zeroes, hash_len(peer), peer->early);
    maths_derive(peer->is_384, peer->early, "c ap traffic", digest,
                 peer->from_client);
    maths_derive(peer->is_384, peer->early, "s ap traffic", digest,
                 peer->from_server);
    maths_key_init(&peer->sends, peer->is_384, peer->from_client);
    maths_key_init(&peer->receives, peer->is_384, peer->from_server);
    peer->is_open = true;
}

void tls_peer_shake(struct tls_peer *peer)
{
    tls_peer_hello(peer);
    tls_peer_flight(peer);
    tls_peer_finish(peer);
}

/* ---- Data. */

size_t tls_peer_seal(struct tls_peer *peer, uint8_t type, const void *data,
                     size_t len, uint8_t *record)
{
    size_t in_record = len + 1 + MATHS_TAG;

    ASSERT(5 + in_record <= TLS_PEER_RECORD);
    memcpy(record, "\x17\3\3", 3);
    record[3] = (uint8_t)(in_record >> 8);
    record[4] = (uint8_t)in_record;
    if (len != 0) {
        memcpy(record + 5, data, len);
    }
    record[5 + len] = type;
    maths_seal(&peer->sends, record, record + 5, len + 1);
    return 5 + in_record;
}

void tls_peer_send(struct tls_peer *peer, const void *data, size_t len)
{
    uint8_t *record = conf_alloc(peer->conf, TLS_PEER_RECORD);
    const uint8_t *from = data;

    while (len != 0) {
        size_t now = MIN(len, (size_t)TLS_PEER_MOST);

        stream_send(peer->stream, record,
                    tls_peer_seal(peer, TLS_PEER_DATA, from, now, record), 0);
        from += now;
        len -= now;
    }
}

/* @param data  a record of the drive that has no data */
static void check_update(struct tls_peer *peer, uint8_t type,
                         const uint8_t *data, uint32_t len)
{
    conf_equal(peer->conf, "type of a record", type, TLS_PEER_HANDSHAKE);
    conf_equal(peer->conf, "length of KeyUpdate", len, 5);
    conf_same(peer->conf, "KeyUpdate", data, "\x18\0\0\1\0", 5);
    maths_update(&peer->receives, peer->is_384, peer->from_server);
}

/* Another record of data behind what has not been taken. */
static void more_plain(struct tls_peer *peer)
{
    uint8_t type;
    uint32_t len;
    const uint8_t *data = record_take(peer, &type, &len);

    if (type == TLS_PEER_ALERT) {
        conf_fail(peer->conf, "alert %u of the drive", data[1]);
    }
    if (peer->takes_updates && type == TLS_PEER_HANDSHAKE) {
        check_update(peer, type, data, len);
        peer->updates++;
        return;
    }
    conf_equal(peer->conf, "type of a record", type, TLS_PEER_DATA);
    if (peer->plain_taken != 0) {
        peer->plain_len -= peer->plain_taken;
        memmove(peer->plain, peer->plain + peer->plain_taken, peer->plain_len);
        peer->plain_taken = 0;
    }
    ASSERT(peer->plain_len + len <= PLAIN_ROOM);
    memcpy(peer->plain + peer->plain_len, data, len);
    peer->plain_len += len;
}

const uint8_t *tls_peer_take(struct tls_peer *peer, uint32_t len)
{
    while (peer->plain_len - peer->plain_taken < len) {
        more_plain(peer);
    }
    peer->plain_taken += len;
    return peer->plain + peer->plain_taken - len;
}

void tls_peer_take_update(struct tls_peer *peer)
{
    uint8_t type;
    uint32_t len;
    const uint8_t *data = record_take(peer, &type, &len);

    check_update(peer, type, data, len);
}

void tls_peer_refused(struct tls_peer *peer, uint8_t alert)
{
    uint8_t type;
    uint32_t len;
    const uint8_t *data = record_take(peer, &type, &len);

    conf_check(peer->conf, type == TLS_PEER_ALERT && len == 2,
               "no alert but a record of type %u", type);
    conf_equal(peer->conf, "level of the alert", data[0], alert != 0 ? 2 : 1);
    conf_equal(peer->conf, "alert", data[1], alert);
    while (!peer->stream->is_finished && !peer->stream->is_reset) {
        (void)stream_poll(peer->stream, 0);
    }
    conf_check(peer->conf, peer->stream->is_finished,
               "the drive has sent a RST after its alert");
    conf_equal(peer->conf, "bytes behind the alert", stream_ready(peer->stream),
               0);
    stream_send_flags(peer->stream, SEG_FIN | SEG_ACK);
}
