/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of authentication: host_auth.c.
 */
#ifndef ESSD_NVMEOF_TARGET_CONNECT_HOST_AUTH_H
#define ESSD_NVMEOF_TARGET_CONNECT_HOST_AUTH_H

#include "nvmeof/auth/auth.h"
#include "nvmeof/target/target.h"

/* An authentication that is under way. */
struct nvmf_auth {
    uint16_t qpair;   /* NO_QPAIR if this entry is free */
    bool is_again;    /* its queue was authenticated before */
    bool was_skipped; /* a command that it has to precede was refused */
    bool has_mark;    /* of the host's entry, at the first message */
    uint64_t entry_mark;
    uint32_t turn;    /* the last exponentiation for the same source */
    uint64_t number;  /* of all sessions since power-on */
    uint64_t end_us;  /* time limit of the whole session */
    uint64_t sent_us; /* when the host's last message came */
    struct nvmf_request *receive; /* waits for an exponentiation; or NULL */
    struct auth_session session;
};

/* All of them. */
struct nvmf_auths {
    uint8_t count;
    uint8_t power; /* the one that computes, or NO_AUTH */
    uint32_t turns;
    uint64_t begun;
    struct nvmf_auth auth[NVMF_MAX_AUTHS];
    struct nvmf_auth_counters counters;
};

#endif
