/* SPDX-License-Identifier: BSD-2-Clause */
/* Which services of a native drive are on. */
#include "firmware/native/native.h"

void native_set_services(struct config *own,
                         const struct native_drive_config *config)
{
    if (config->plan != NULL) {
        own->network.namespaces = (struct config_namespaces){
            .count = config->plan->count,
            .size_mib = (uint16_t)config->plan->size_mib,
            .has_4096 = config->plan->block_shift == VOLUME_SHIFT_4096,
        };
    }
    own->network.has_echo = config->has_echo;
    own->network.has_tcp_echo = config->has_tcp_echo;
    own->network.has_nvme_tcp = config->has_nvme_tcp;
    own->network.has_nvme_iwarp = config->has_nvme_iwarp;
    own->network.tls = config->tls;
    if (config->has_aoe) {
        own->aoe.exports[0] = 1;
    }
    own->services.has_dhcp[0] = config->has_dhcp;
    *own = config->saved != NULL ? *config->saved : *own;
}
