/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this drive can do, which Identify and several log pages report; and what
 * the results of the volume are as statuses.
 */
#include "nvmeof/target/base/base.h"
#include "nvmeof/wire/identify.h"

bool firmware_exists(const struct nvmf_target *target)
{
    return target->config.firmware.image != NULL;
}

bool self_test_exists(const struct nvmf_target *target)
{
    return target->config.operations.start_self_test != NULL;
}

bool telemetry_exists(const struct nvmf_target *target)
{
    return target->config.telemetry.capture != NULL;
}

bool sanitize_exists(const struct nvmf_target *target)
{
    return target->config.operations.start_sanitize != NULL;
}

/* SANICAP of Identify Controller. */
uint32_t sanitize_capabilities(const struct nvmf_target *target)
{
    return sanitize_exists(target)
               ? SANICAP_BLOCK | SANICAP_OVERWRITE | SANICAP_UNMODIFIED
               : 0u;
}

bool ns_are_manageable(const struct nvmf_target *target)
{
    return target->config.volume.capacity != NULL;
}

uint16_t ns_result_status(enum nvmf_volume_result result)
{
    static const uint16_t status[NVMF_VOLUME_RESULTS] = {
        [NVMF_VOLUME_OK] = NVME_SC_SUCCESS,
        [NVMF_VOLUME_NO_CAPACITY] =
            NVME_SC_NS_INSUFFICIENT_CAPACITY | NVME_STATUS_DNR,
        [NVMF_VOLUME_NO_IDENTIFIER] =
            NVME_SC_NS_IDENTIFIER_UNAVAILABLE | NVME_STATUS_DNR,
        [NVMF_VOLUME_ALREADY] = NVME_SC_NS_ALREADY_ATTACHED | NVME_STATUS_DNR,
        [NVMF_VOLUME_PRIVATE] = NVME_SC_NS_IS_PRIVATE | NVME_STATUS_DNR,
        [NVMF_VOLUME_NOT_ATTACHED] = NVME_SC_NS_NOT_ATTACHED | NVME_STATUS_DNR,
        [NVMF_VOLUME_NO_HOST] = NVME_SC_INTERNAL | NVME_STATUS_DNR,
        [NVMF_VOLUME_TOO_OFTEN] = NVME_SC_COMMAND_INTERRUPTED,
        [NVMF_VOLUME_FAILED] = NVME_SC_INTERNAL,
    };

    return status[result];
}

const struct nvmf_command_set *command_set_of(uint32_t csi)
{
    for (size_t i = 0; command_sets[i] != NULL; i++) {
        if (command_sets[i]->csi == csi) {
            return command_sets[i];
        }
    }
    return NULL;
}
