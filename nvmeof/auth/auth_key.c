/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/auth/auth_key.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/crc32.h"
#include "lib/wipe.h"

enum {
    CRC_LEN = 4,
    BYTES_MAX = AUTH_HASH_MAX + CRC_LEN,
};

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c != '\0' ? strchr(digits, c) : NULL;

    return found != NULL ? (int)(found - digits) : -1;
}

/* Decode base64 up to ":".  @return the number of bytes; 0 if malformed */
static size_t decode_base64(const char *text, uint8_t *bytes)
{
    uint32_t bits = 0;
    unsigned int count = 0;
    size_t digits = 0;
    size_t len = 0;

    for (; *text != ':' && *text != '='; text++, digits++) {
        int digit = digit_of(*text);

        if (digit < 0) {
            return 0;
        }
        bits = bits << 6 | (uint32_t)digit;
        count += 6;
        if (count >= 8) {
            count -= 8;
            if (len == BYTES_MAX) {
                return 0;
            }
            bytes[len++] = (uint8_t)(bits >> count);
        }
    }
    for (; *text == '='; text++, digits++) {
    }
    return digits % 4 == 0 && strcmp(text, ":") == 0 ? len : 0;
}

static bool is_key_len(size_t len, uint8_t hash)
{
    if (hash != AUTH_HASH_NONE) {
        return len == auth_hash_len(hash);
    }
    return len == 32 || len == 48 || len == 64;
}

/* @param prefix  what the text begins with; the digit of the hash follows, and
 *                ":" */
static bool parse_text(struct auth_key *key, const char *text,
                       const char *prefix, char last_hash)
{
    size_t prefix_len = strlen(prefix);
    uint8_t bytes[BYTES_MAX];
    uint8_t hash;
    size_t len;
    bool is_good;

    memset(key, 0, sizeof(*key));
    if (strncmp(text, prefix, prefix_len) != 0 || text[prefix_len] < '0' ||
        text[prefix_len] > last_hash || text[prefix_len + 1] != ':') {
        return false;
    }
    hash = (uint8_t)(text[prefix_len] - '0');
    len = decode_base64(text + prefix_len + 2, bytes);
    is_good = len >= CRC_LEN && is_key_len(len - CRC_LEN, hash) &&
              crc32_update(0, bytes, len - CRC_LEN) ==
                  get_le32(bytes + len - CRC_LEN);
    if (is_good) {
        key->len = (uint8_t)(len - CRC_LEN);
        key->hash = hash;
        memcpy(key->bytes, bytes, key->len);
    }
    wipe_bytes(bytes, sizeof(bytes));
    return is_good;
}

bool auth_key_parse(struct auth_key *key, const char *text)
{
    return parse_text(key, text, "DHHC-1:0", '3');
}

bool auth_psk_parse(struct auth_key *key, const char *text)
{
    if (!parse_text(key, text, "NVMeTLSkey-1:0", '2')) {
        return false;
    }
    if (key->len > 48) {
        memset(key, 0, sizeof(*key));
        return false;
    }
    return true;
}
