/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/tls/tls_hello.h"

#include <string.h>

#include "lib/bytes.h"

enum {
    SUITE_SHA256 = 0x1301,
    SUITE_SHA384 = 0x1302,
    GROUP_X25519 = 29,
    MODE_DHE_PSK = 1,
    /* Extensions. */
    EXT_GROUPS = 10,
    EXT_PSK = 41,
    EXT_EARLY_DATA = 42,
    EXT_VERSIONS = 43,
    EXT_MODES = 45,
    EXT_KEY_SHARE = 51,
    EXTENSIONS_MAX = 64, /* in one ClientHello */
    BINDER_MIN = 32,
    VERSION_SSL_3 = 0x0300,
};

/* Bytes that are left to read.  Reading beyond the end sets `failed`. */
struct reader {
    const uint8_t *at;
    size_t left;
    bool failed;
};

static const uint8_t *read_bytes(struct reader *reader, size_t len)
{
    const uint8_t *bytes = reader->at;

    if (len > reader->left) {
        reader->failed = true;
        reader->left = 0;
        return NULL;
    }
    reader->at += len;
    reader->left -= len;
    return bytes;
}

static uint8_t read_u8(struct reader *reader)
{
    const uint8_t *bytes = read_bytes(reader, 1);

    return bytes != NULL ? *bytes : 0;
}

static uint16_t read_u16(struct reader *reader)
{
    const uint8_t *bytes = read_bytes(reader, 2);

    return bytes != NULL ? get_be16(bytes) : 0;
}

/* A list with its length in front of it. */
static struct reader read_list(struct reader *reader, bool is_long)
{
    size_t len = is_long ? read_u16(reader) : read_u8(reader);
    const uint8_t *bytes = read_bytes(reader, len);

    return (struct reader){bytes, bytes != NULL ? len : 0, bytes == NULL};
}

static bool list_has_u16(struct reader list, uint16_t wanted)
{
    bool found = false;

    while (list.left >= 2) {
        found |= read_u16(&list) == wanted;
    }
    return found;
}

/* ---- Extensions. */

static bool parse_versions(struct tls_client_hello *hello, struct reader *body)
{
    struct reader list = read_list(body, false);

    hello->has_tls13 = list_has_u16(list, TLS_VERSION_13);
    return !list.failed && list.left >= 2 && list.left % 2 == 0;
}

static bool parse_groups(struct tls_client_hello *hello, struct reader *body)
{
    struct reader list = read_list(body, true);

    hello->has_groups = true;
    hello->has_x25519 = list_has_u16(list, GROUP_X25519);
    return !list.failed && list.left >= 2 && list.left % 2 == 0;
}

static bool parse_modes(struct tls_client_hello *hello, struct reader *body)
{
    struct reader list = read_list(body, false);
    bool is_good = !list.failed && list.left != 0;

    hello->has_modes = true;
    while (list.left != 0) {
        hello->has_dhe_psk |= read_u8(&list) == MODE_DHE_PSK;
    }
    return is_good;
}

static bool parse_key_share(struct tls_client_hello *hello, struct reader *body)
{
    struct reader list = read_list(body, true);

    hello->has_key_share = true;
    while (list.left != 0) {
        uint16_t group = read_u16(&list);
        struct reader value = read_list(&list, true);

        if (value.failed || value.left == 0) {
            return false;
        }
        if (group == GROUP_X25519) {
            if (value.left != X25519_LEN || hello->share != NULL) {
                return false;
            }
            hello->share = value.at;
        }
    }
    return !list.failed;
}

/* @return false when one of the lists has ended, or is malformed */
static bool read_offer(struct reader *identities, struct reader *binders,
                       struct tls_offer *offer)
{
    struct reader identity = read_list(identities, true);
    struct reader binder = read_list(binders, false);

    (void)read_bytes(identities, 4); /* the age of a ticket */
    *offer = (struct tls_offer){
        .identity = identity.at,
        .identity_len = (uint16_t)identity.left,
        .binder = binder.at,
        .binder_len = (uint8_t)binder.left,
    };
    return !identities->failed && !binders->failed && identity.left != 0 &&
           binder.left >= BINDER_MIN;
}

static bool parse_psk(struct tls_client_hello *hello, struct reader *body,
                      const uint8_t *message)
{
    struct reader identities = read_list(body, true);
    struct reader binders;
    struct tls_offer offer;

    hello->has_psk = true;
    hello->identities = identities.at;
    hello->identities_len = (uint16_t)identities.left;
    hello->binders_at = (uint32_t)(body->at - message);
    binders = read_list(body, true);
    hello->binders = binders.at;
    hello->binders_len = (uint16_t)binders.left;
    if (identities.failed || binders.failed) {
        return false;
    }
    /* Each identity has a binder. */
    do {
        if (!read_offer(&identities, &binders, &offer)) {
            return false;
        }
    } while (identities.left != 0 || binders.left != 0);
    return true;
}

/* @return false when its form is wrong */
static bool parse_extension(struct tls_client_hello *hello, uint16_t type,
                            struct reader body, const uint8_t *message)
{
    bool is_good = true;

    switch (type) {
    case EXT_VERSIONS:
        is_good = parse_versions(hello, &body);
        break;
    case EXT_GROUPS:
        is_good = parse_groups(hello, &body);
        break;
    case EXT_MODES:
        is_good = parse_modes(hello, &body);
        break;
    case EXT_KEY_SHARE:
        is_good = parse_key_share(hello, &body);
        break;
    case EXT_PSK:
        is_good = parse_psk(hello, &body, message);
        break;
    case EXT_EARLY_DATA:
        hello->has_early_data = true;
        break;
    default:
        return true; /* it means nothing to the drive */
    }
    return is_good && body.left == 0;
}

static bool is_repeated(const uint16_t *types, unsigned int count)
{
    for (unsigned int i = 0; i + 1 < count; i++) {
        if (types[i] == types[count - 1]) {
            return true;
        }
    }
    return false;
}

static enum tls_alert parse_extensions(struct tls_client_hello *hello,
                                       struct reader *list,
                                       const uint8_t *message)
{
    uint16_t types[EXTENSIONS_MAX];
    unsigned int count = 0;

    while (list->left != 0) {
        uint16_t type = read_u16(list);
        struct reader body = read_list(list, true);

        if (body.failed || count == EXTENSIONS_MAX) {
            return TLS_ALERT_DECODE;
        }
        types[count++] = type;
        if (is_repeated(types, count) || hello->has_psk) {
            return TLS_ALERT_ILLEGAL; /* the key comes last, and once */
        }
        if (!parse_extension(hello, type, body, message)) {
            return TLS_ALERT_DECODE;
        }
    }
    return list->failed ? TLS_ALERT_DECODE : TLS_ALERT_NONE;
}

enum tls_alert tls_client_hello_parse(struct tls_client_hello *hello,
                                      const uint8_t *message, size_t len)
{
    struct reader reader = {message, len, false};
    struct reader list;
    uint16_t version;
    bool is_compressed;

    memset(hello, 0, sizeof(*hello));
    (void)read_bytes(&reader, TLS_MESSAGE_HEADER_LEN);
    version = read_u16(&reader);
    (void)read_bytes(&reader, TLS_RANDOM_LEN);
    list = read_list(&reader, false);
    if (list.failed || list.left > TLS_SESSION_MAX) {
        return TLS_ALERT_DECODE;
    }
    hello->session = list.at;
    hello->session_len = (uint8_t)list.left;
    list = read_list(&reader, true);
    if (list.failed || list.left == 0 || list.left % 2 != 0) {
        return TLS_ALERT_DECODE;
    }
    hello->has_sha256 = list_has_u16(list, SUITE_SHA256);
    hello->has_sha384 = list_has_u16(list, SUITE_SHA384);
    list = read_list(&reader, false);
    is_compressed = list.left != 1 || *list.at != 0;
    if (reader.left == 0 && !reader.failed) {
        return TLS_ALERT_VERSION; /* before TLS 1.3 there need be no
                                   * extensions */
    }
    list = read_list(&reader, true);
    if (list.failed || reader.failed || reader.left != 0) {
        return TLS_ALERT_DECODE;
    }
    /* Spec: RFC 8446 section D.5.  Other values mean nothing. */
    if (version <= VERSION_SSL_3) {
        return TLS_ALERT_VERSION;
    }
    if (is_compressed) {
        return TLS_ALERT_ILLEGAL;
    }
    return parse_extensions(hello, &list, message);
}

enum tls_alert tls_client_hello_judge(const struct tls_client_hello *hello)
{
    if (!hello->has_tls13) {
        return TLS_ALERT_VERSION;
    }
    if (hello->has_early_data) {
        return TLS_ALERT_ILLEGAL; /* NVMe/TCP has none */
    }
    if (!hello->has_psk || !hello->has_modes || !hello->has_key_share ||
        !hello->has_groups) {
        return TLS_ALERT_MISSING;
    }
    if (!hello->has_dhe_psk || !hello->has_x25519 ||
        !(hello->has_sha256 || hello->has_sha384)) {
        return TLS_ALERT_HANDSHAKE;
    }
    return TLS_ALERT_NONE;
}

bool tls_client_hello_offer(const struct tls_client_hello *hello,
                            uint16_t number, struct tls_offer *offer)
{
    struct reader identities = {hello->identities, hello->identities_len,
                                false};
    struct reader binders = {hello->binders, hello->binders_len, false};

    do {
        if (!read_offer(&identities, &binders, offer)) {
            return false;
        }
    } while (number-- != 0);
    return true;
}

/* ---- ServerHello. */

static uint8_t *put_u16(uint8_t *to, unsigned int value)
{
    put_be16(to, (uint16_t)value);
    return to + 2;
}

static uint8_t *put_bytes(uint8_t *to, const uint8_t *bytes, size_t len)
{
    memcpy(to, bytes, len);
    return to + len;
}

size_t tls_server_hello_emit(const struct tls_server_hello *hello,
                             uint8_t *message)
{
    uint8_t *at = message + TLS_MESSAGE_HEADER_LEN;
    uint8_t *extensions;

    at = put_u16(at, TLS_VERSION_12);
    at = put_bytes(at, hello->random, TLS_RANDOM_LEN);
    *at++ = hello->session_len;
    at = put_bytes(at, hello->session, hello->session_len);
    at = put_u16(at, hello->hash == AUTH_SHA384 ? SUITE_SHA384 : SUITE_SHA256);
    *at++ = 0; /* no compression */
    extensions = at;
    at = put_u16(at + 2, EXT_VERSIONS);
    at = put_u16(at, 2);
    at = put_u16(at, TLS_VERSION_13);
    at = put_u16(at, EXT_KEY_SHARE);
    if (hello->share == NULL) {
        at = put_u16(at, 2);
        at = put_u16(at, GROUP_X25519);
    } else {
        at = put_u16(at, 4 + X25519_LEN);
        at = put_u16(at, GROUP_X25519);
        at = put_u16(at, X25519_LEN);
        at = put_bytes(at, hello->share, X25519_LEN);
        at = put_u16(at, EXT_PSK);
        at = put_u16(at, 2);
        at = put_u16(at, hello->psk);
    }
    put_be16(extensions, (uint16_t)(at - extensions - 2));
    message[TLS_MESSAGE] = TLS_SERVER_HELLO;
    put_be24(message + TLS_MESSAGE_LENGTH,
             (uint32_t)(at - message - TLS_MESSAGE_HEADER_LEN));
    return (size_t)(at - message);
}
