/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A key log: the secrets of connections, with which others decrypt what they
 * have captured, in the format of NSS's SSLKEYLOGFILE.
 */
#ifndef ESSD_NVMEOF_TLS_KEY_LOG_H
#define ESSD_NVMEOF_TLS_KEY_LOG_H

#include "nvmeof/tls/tls_server.h"

enum { TLS_KEY_LOG_LINE = 256 }; /* characters of a line with its NUL */

/* Who keeps a key log.  No functions: nobody ever does. */
struct tls_key_log {
    bool (*is_open)(void *ctx); /* somebody does now */
    void (*put)(void *ctx, const char *line);
    void *ctx;
};

/** If a key log is kept, add the secrets of a handshake that waits for the
 * client's Finished. */
void tls_key_log_add(const struct tls_key_log *log,
                     const struct tls_server *server);

#endif
