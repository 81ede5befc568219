/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/tls/tls_psk.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/wipe.h"

enum { PREFIX_LEN = 9 }; /* "NVMe1R01 " */

/* ---- Identities. */

/* Copy a word up to the next space, or to the end.
 * @return false when it is empty or too long, or has other bytes than text */
static bool take_word(const char **text, size_t *left, char *word, size_t max)
{
    size_t len = 0;

    while (len < *left && (*text)[len] != ' ') {
        if (len == max || (*text)[len] < ' ' || (*text)[len] > '~') {
            return false;
        }
        word[len] = (*text)[len];
        len++;
    }
    word[len] = '\0';
    *text += len;
    *left -= len;
    return len != 0;
}

static bool take_space(const char **text, size_t *left)
{
    if (*left == 0 || **text != ' ') {
        return false;
    }
    ++*text;
    --*left;
    return true;
}

bool tls_identity_parse(struct tls_identity *identity, const uint8_t *bytes,
                        size_t len)
{
    const char *text = (const char *)bytes;

    memset(identity, 0, sizeof(*identity));
    if (len < PREFIX_LEN || memcmp(text, "NVMe", 4) != 0 ||
        (text[4] != '0' && text[4] != '1') ||
        (text[5] != 'R' && text[5] != 'G') || text[6] != '0' ||
        (text[7] != '1' && text[7] != '2') || text[8] != ' ') {
        return false;
    }
    identity->version = (uint8_t)(text[4] - '0');
    identity->is_generated = text[5] == 'G';
    identity->hash = text[7] == '1' ? AUTH_SHA256 : AUTH_SHA384;
    text += PREFIX_LEN;
    len -= PREFIX_LEN;
    if (!take_word(&text, &len, identity->hostnqn, TLS_NQN_MAX) ||
        !take_space(&text, &len) ||
        !take_word(&text, &len, identity->subnqn, TLS_NQN_MAX)) {
        return false;
    }
    return (identity->version == 0 ||
            (take_space(&text, &len) &&
             take_word(&text, &len, identity->digest, TLS_DIGEST_TEXT_MAX))) &&
           len == 0;
}

/* ---- Derivation. */

enum auth_hash tls_psk_hash(const struct auth_key *configured)
{
    if (configured->hash != AUTH_HASH_NONE) {
        return (enum auth_hash)configured->hash;
    }
    return configured->len == 48 ? AUTH_SHA384 : AUTH_SHA256;
}

/* HKDF-Expand-Label as older versions of libnvme have it. */
static void expand_old(const struct tls_crypto *crypto, enum auth_hash hash,
                       const struct tls_secret *secret, const char *label,
                       const char *context, struct tls_secret *out)
{
    size_t len = auth_hash_len((uint8_t)hash);
    uint8_t head[2];
    uint8_t block = 1;
    const struct auth_bytes parts[] = {
        {head, sizeof(head)},       {"tls13 ", 6}, {label, strlen(label)},
        {context, strlen(context)}, {&block, 1},
    };

    put_le16(head, (uint16_t)len);
    crypto->base.hmac(crypto->base.ctx, hash,
                      (struct auth_bytes){secret->bytes, len}, parts,
                      ARRAY_LEN(parts), out->bytes);
}

/* Extract, and expand with a label and a text. */
static void transform_key(const struct tls_crypto *crypto, enum auth_hash hash,
                          enum tls_style style, const char *label,
                          const char *context, struct tls_secret *key)
{
    size_t len = auth_hash_len((uint8_t)hash);
    struct tls_secret prk;

    tls_extract(crypto, hash, NULL, (struct auth_bytes){key->bytes, len}, &prk);
    if (style == TLS_STYLE_SPEC) {
        tls_expand_label(crypto, hash, &prk, label,
                         (struct auth_bytes){context, strlen(context)},
                         key->bytes, len);
    } else {
        expand_old(crypto, hash, &prk, label, context, key);
    }
    wipe_bytes(&prk, sizeof(prk));
}

static void encode_base64(const uint8_t *bytes, size_t len, char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < len; i += 3) {
        uint32_t group = (uint32_t)bytes[i] << 16;

        group |= i + 1 < len ? (uint32_t)bytes[i + 1] << 8 : 0;
        group |= i + 2 < len ? bytes[i + 2] : 0;
        *text++ = digits[group >> 18];
        *text++ = digits[group >> 12 & 63];
        *text++ = i + 1 < len ? digits[group >> 6 & 63] : '=';
        *text++ = i + 2 < len ? digits[group & 63] : '=';
    }
    *text = '\0';
}

/* The digest of a retained key in identities of version 1. */
static void make_digest(const struct tls_crypto *crypto, enum auth_hash hash,
                        const struct tls_secret *retained,
                        const struct tls_identity *identity, char *text)
{
    size_t len = auth_hash_len((uint8_t)hash);
    const struct auth_bytes parts[] = {
        {identity->hostnqn, strlen(identity->hostnqn)},
        {" ", 1},
        {identity->subnqn, strlen(identity->subnqn)},
        {" NVMe-over-Fabrics", 18},
    };
    uint8_t mac[AUTH_HASH_MAX];

    crypto->base.hmac(crypto->base.ctx, hash,
                      (struct auth_bytes){retained->bytes, len}, parts,
                      ARRAY_LEN(parts), mac);
    encode_base64(mac, len, text);
}

static char *add_text(char *to, const char *text)
{
    size_t len = strlen(text);

    memcpy(to, text, len + 1);
    return to + len;
}

/* What the TLS key is bound to: in version 0 the whole identity, in version 1
 * the hash and the digest.
 * @param context  TLS_IDENTITY_MAX + 1 bytes */
static void make_context(const struct tls_identity *identity, char *context)
{
    const char *hash = identity->hash == AUTH_SHA384 ? "02 " : "01 ";

    if (identity->version == 1) {
        (void)add_text(add_text(context, hash), identity->digest);
        return;
    }
    context = add_text(add_text(context, "NVMe0R"), hash);
    context = add_text(add_text(context, identity->hostnqn), " ");
    (void)add_text(context, identity->subnqn);
}

bool tls_psk_derive(const struct tls_crypto *crypto,
                    const struct auth_key *configured,
                    const struct tls_identity *identity, enum tls_style style,
                    struct tls_secret *psk)
{
    enum auth_hash hash = tls_psk_hash(configured);
    char context[TLS_IDENTITY_MAX + 1];
    char digest[TLS_DIGEST_TEXT_MAX + 1];

    if (identity->is_generated || identity->hash != (uint8_t)hash ||
        configured->len != auth_hash_len((uint8_t)hash)) {
        return false;
    }
    memset(psk, 0, sizeof(*psk));
    memcpy(psk->bytes, configured->bytes, configured->len);
    if (configured->hash != AUTH_HASH_NONE) {
        transform_key(crypto, hash, style, "HostNQN", identity->hostnqn, psk);
    }
    if (identity->version == 1) {
        make_digest(crypto, hash, psk, identity, digest);
        if (strcmp(digest, identity->digest) != 0) {
            wipe_bytes(psk, sizeof(*psk));
            return false;
        }
    }
    make_context(identity, context);
    /* The length of the context has one byte. */
    if (strlen(context) > UINT8_MAX) {
        wipe_bytes(psk, sizeof(*psk));
        return false;
    }
    transform_key(crypto, hash, style, "nvme-tls-psk", context, psk);
    return true;
}

void tls_psk_generated(const struct tls_crypto *crypto,
                       const uint8_t *generated, struct tls_identity *identity,
                       struct tls_secret *psk)
{
    enum auth_hash hash = (enum auth_hash)identity->hash;
    char context[TLS_IDENTITY_MAX + 1];

    ASSERT(identity->is_generated && identity->version == 1);
    memset(psk, 0, sizeof(*psk));
    memcpy(psk->bytes, generated, auth_hash_len(identity->hash));
    make_digest(crypto, hash, psk, identity, identity->digest);
    make_context(identity, context);
    transform_key(crypto, hash, TLS_STYLE_SPEC, "nvme-tls-psk", context, psk);
}
