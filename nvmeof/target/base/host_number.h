/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hashes of what hosts say, and of what the list of hosts says of them, with a
 * secret of the drive (nvmf_config.number_key): nobody can choose a name that
 * has the hash of another one.
 */
#ifndef ESSD_NVMEOF_TARGET_BASE_HOST_NUMBER_H
#define ESSD_NVMEOF_TARGET_BASE_HOST_NUMBER_H

#include "nvmeof/auth/auth.h"

struct nvmf_ctrl;
struct nvmf_host;
struct nvmf_target;

/*
 * A number for what a host counts as in shares, never 0.
 *
 * A name can be invented, or be that of another host, and each name would have
 * a share of its own.  So a host counts by its address, at which it receives,
 * until it has proven with a secret that the name is its own.  The host
 * identifier is only what a host says, too.
 */
uint32_t host_unproven_number(const struct nvmf_target *target,
                              const uint8_t *address);
uint32_t host_proven_number(const struct nvmf_target *target,
                            const char *hostnqn);

/* The one of these that holds for a controller's host now. */
uint32_t ctrl_host_number(const struct nvmf_ctrl *ctrl);

/* The host's entry of the list; zero if it has none.
 * @return false when the host may not connect */
bool host_entry_find(const struct nvmf_target *target, const char *hostnqn,
                     struct nvmf_host *host);

/* Whether the host has to authenticate. */
bool host_entry_has_key(const struct nvmf_host *host);

/* A mark of everything in a host's entry that its authentication depends on. */
uint64_t host_entry_mark(const struct nvmf_target *target,
                         const struct auth_peer *peer);

#endif
