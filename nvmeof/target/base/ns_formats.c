/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The formats of blocks that a namespace may have.
 * Spec: NVM Express Base 1.4 sections 5.15.2.1 (FLBAS, DPS) and 5.23.
 */
#include "nvmeof/target/base/base.h"

enum {
    PI_TYPE_MAX = 3,
};

const uint8_t ns_format_shifts[NS_FORMATS] = {9, 12, 9, 12};

uint8_t ns_format_count(const struct nvmf_target *target)
{
    const struct nvmf_volume *volume = &target->config.volume;
    struct nvmf_volume_capacity capacity;

    if (!ns_are_manageable(target)) {
        return 1;
    }
    volume->capacity(volume->ctx, &capacity);
    return capacity.has_metadata ? NS_FORMATS : NS_FORMATS_PLAIN;
}

uint8_t ns_flbas(const struct nvmf_ns *ns)
{
    uint8_t format = ns->geometry.block_shift == ns_format_shifts[1];

    return ns->geometry.has_metadata
               ? (uint8_t)((NS_FORMATS_PLAIN + format) | FLBAS_EXTENDED)
               : format;
}

uint8_t ns_dps(const struct nvmf_ns *ns)
{
    return (uint8_t)(ns->geometry.pi_type |
                     (ns->geometry.pi_is_first ? DPS_FIRST : 0));
}

bool ns_read_format(const struct nvmf_target *target, uint8_t format,
                    bool is_extended, uint8_t dps, struct nvmf_volume_job *job)
{
    uint8_t type = dps & DPS_TYPE;
    bool has_metadata = format >= NS_FORMATS_PLAIN;

    if (format >= ns_format_count(target) || type > PI_TYPE_MAX ||
        (has_metadata ? !is_extended : type != 0)) {
        return false;
    }
    job->block_shift = ns_format_shifts[format];
    job->has_metadata = has_metadata;
    job->pi_type = type;
    job->pi_is_first = type != 0 && (dps & DPS_FIRST);
    return true;
}

bool ns_is_too_small(const struct nvmf_ns *ns,
                     const struct nvmf_volume_job *job)
{
    uint64_t bytes = ns->geometry.size_blocks << ns->geometry.block_shift;

    return bytes >> job->block_shift == 0;
}
