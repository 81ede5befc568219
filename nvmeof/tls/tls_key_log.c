/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/tls/tls_key_log.h"

#include <string.h>

#include "lib/wipe.h"

enum { RANDOM_AT = TLS_MESSAGE_HEADER_LEN + 2 }; /* in a ClientHello */

_Static_assert(32 + 2 * (TLS_RANDOM_LEN + TLS_SECRET_MAX) + 3 <=
                   TLS_KEY_LOG_LINE,
               "the longest line has room");

static char *add_digits(char *to, const uint8_t *bytes, size_t len)
{
    static const char digit[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        *to++ = digit[bytes[i] >> 4];
        *to++ = digit[bytes[i] & 15];
    }
    return to;
}

static void add_line(const struct tls_key_log *log,
                     const struct tls_server *server, const char *label,
                     const struct tls_secret *secret)
{
    const uint8_t *hello = server->transcript + server->hello_at;
    char line[TLS_KEY_LOG_LINE];
    size_t label_len = strlen(label);
    char *to = line + label_len;

    memcpy(line, label, label_len);
    to = add_digits(to, hello + RANDOM_AT, TLS_RANDOM_LEN);
    *to++ = ' ';
    to = add_digits(to, secret->bytes, auth_hash_len(server->hash));
    *to++ = '\n';
    *to = '\0';
    log->put(log->ctx, line);
    wipe_bytes(line, sizeof(line));
}

void tls_key_log_add(const struct tls_key_log *log,
                     const struct tls_server *server)
{
    ASSERT(server->state == TLS_SERVER_FINISHED);
    if (log->is_open == NULL || !log->is_open(log->ctx)) {
        return;
    }
    add_line(log, server, "CLIENT_HANDSHAKE_TRAFFIC_SECRET ",
             &server->from_client);
    add_line(log, server, "SERVER_HANDSHAKE_TRAFFIC_SECRET ",
             &server->from_server);
    add_line(log, server, "CLIENT_TRAFFIC_SECRET_0 ",
             &server->next_from_client);
    add_line(log, server, "SERVER_TRAFFIC_SECRET_0 ",
             &server->next_from_server);
}
