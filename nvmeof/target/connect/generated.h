/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of TLS that hosts and the drive have generated: generated.c.
 */
#ifndef ESSD_NVMEOF_TARGET_CONNECT_GENERATED_H
#define ESSD_NVMEOF_TARGET_CONNECT_GENERATED_H

#include "nvmeof/target/generated_key.h"

/* Treat as opaque. */
struct nvmf_generated_place {
    struct nvmf_generated_key key; /* its number is 0: the place is free */
    uint8_t ctrl;        /* the controller that uses it; NO_CTRL: it waits */
    uint64_t end_us;     /* how long it waits */
    uint64_t entry_mark; /* of the host's entry when it was generated */
};

/* All of them. */
struct nvmf_generated_keys {
    struct nvmf_key_maker maker; /* no function: there are no keys */
    uint32_t count;  /* since power-on: the number of the last one */
    uint16_t in_use; /* places that are not free */
    struct nvmf_generated_place place[NVMF_MAX_GENERATED_KEYS];
};

#endif
