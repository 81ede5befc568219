/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/target/base/host_number.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/target/base/base.h"

enum number_of { NUMBER_OF_ADDRESS = 'A', NUMBER_OF_NAME = 'N' };

/* The key keeps hosts from choosing a name with the number of another host. */
static uint32_t make_number(const struct nvmf_target *target,
                            enum number_of what, const void *data, size_t len)
{
    uint8_t buf[1 + NVMF_NQN_MAX];

    ASSERT(len < sizeof(buf));
    buf[0] = (uint8_t)what;
    memcpy(buf + 1, data, len);
    return (uint32_t)siphash(target->config.number_key, buf, 1 + len) | 1;
}

uint32_t host_unproven_number(const struct nvmf_target *target,
                              const uint8_t *address)
{
    return make_number(target, NUMBER_OF_ADDRESS, address, NVMF_ADDRESS_LEN);
}

uint32_t host_proven_number(const struct nvmf_target *target,
                            const char *hostnqn)
{
    return make_number(target, NUMBER_OF_NAME, hostnqn, nvme_nqn_len(hostnqn));
}

enum { KEY_MARK_LEN = 9 };

static void put_key_mark(const struct nvmf_target *target,
                         const struct auth_key *key, uint8_t *to)
{
    to[0] = key->hash;
    put_le64(to + 1, siphash(target->config.number_key, key->bytes, key->len));
}

uint64_t host_entry_mark(const struct nvmf_target *target,
                         const struct auth_peer *peer)
{
    uint8_t buf[2 + 2 * KEY_MARK_LEN];

    buf[0] = peer->least_hash;
    buf[1] = peer->least_dh;
    put_key_mark(target, peer->host_key, buf + 2);
    put_key_mark(target, peer->ctrl_key, buf + 2 + KEY_MARK_LEN);
    return siphash(target->config.number_key, buf, sizeof(buf));
}

bool host_entry_find(const struct nvmf_target *target, const char *hostnqn,
                     struct nvmf_host *host)
{
    const struct nvmf_hosts *hosts = &target->config.hosts;

    *host = (struct nvmf_host){0};
    return hosts->find == NULL || hosts->find(hosts->ctx, hostnqn, host);
}

bool host_entry_has_key(const struct nvmf_host *host)
{
    return host->host_key != NULL && host->host_key->len != 0;
}

uint32_t ctrl_host_number(const struct nvmf_ctrl *ctrl)
{
    return ctrl->host_number;
}
