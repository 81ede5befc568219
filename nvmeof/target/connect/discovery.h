/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the discovery log is about: discovery.c.
 */
#ifndef ESSD_NVMEOF_TARGET_CONNECT_DISCOVERY_H
#define ESSD_NVMEOF_TARGET_CONNECT_DISCOVERY_H

#include "nvmeof/target/target.h"

struct nvmf_discovery {
    uint64_t genctr;
    uint8_t address_count;
    struct nvmf_address address[NVMF_MAX_LISTED];
    uint8_t referral_count;
    struct nvmf_referral referral[NVMF_MAX_REFERRALS];
};

#endif
