/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of TLS that the drive has: those in the list of hosts, and those
 * that hosts have generated when they authenticated.  `ctx` is a struct
 * tls_keys.
 */
#ifndef ESSD_HOSTS_TLS_KEYS_H
#define ESSD_HOSTS_TLS_KEYS_H

#include "firmware/hosts/host_table.h"
#include "nvmeof/target/generated_key.h"
#include "nvmeof/tls/tls_psk.h"

struct tls_keys {
    struct nvmf_target *target;
    const struct host_table *hosts;
    const struct tls_crypto *crypto;
};

/** For tls_server_config.find_keys. */
unsigned int tls_keys_find(void *ctx, const struct tls_identity *identity,
                           struct tls_secret *keys);

/** For tls_socket_config.key_number. */
uint32_t tls_keys_number(void *ctx, const struct tls_identity *identity);

/** For nvmf_key_maker.derive. */
void tls_keys_derive(void *ctx, struct nvmf_generated_key *key);

#endif
