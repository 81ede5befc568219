/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of the OCP Datacenter NVMe SSD Specification: Error Recovery (C1h) and
 * Device Capabilities (C4h).  The latency monitor is in latency_monitor.c.
 * Spec: OCP Datacenter NVMe SSD Specification 2.0
 *
 * Left out: pages and features about hardware that the drive does not have, and
 * the list of unsupported requirements (C5h).
 */
#include "nvmeof/target/logs/logs.h"
#include "nvmeof/target/base/level.h"
#include "nvmeof/wire/ocp.h"

/* After a panic the drive restarts on its own, without any data lost that was
 * flushed; so no host has to do anything but connect again. */
void log_build_ocp_recovery(struct nvmf_target *target,
                            const struct nvmf_ctrl *ctrl, uint32_t part)
{
    const struct nvmf_telemetry *telemetry = &target->config.telemetry;
    struct nvmf_telemetry_info info = {0};

    (void)ctrl;
    (void)part;
    if (telemetry_exists(target)) {
        telemetry->describe(telemetry->ctx, true, &info);
    }
    ocp_recovery_emit(target->page, info.panic_id);
}

void log_build_ocp_capabilities(struct nvmf_target *target,
                                const struct nvmf_ctrl *ctrl, uint32_t part)
{
    struct ocp_capabilities capabilities = {
        .write_zeroes =
            OCP_IS_SUPPORTED | OCP_WRITE_ZEROES_DEAC | OCP_WRITE_ZEROES_FUA,
        .dataset = OCP_IS_SUPPORTED | OCP_DATASET_DEALLOCATE,
        .fused = OCP_IS_SUPPORTED,
    };

    (void)ctrl;
    (void)part;
    if (target->config.has_bmc) {
        capabilities.out_of_band =
            OCP_OUT_OF_BAND_SMBUS | OCP_OUT_OF_BAND_BASIC;
    }
    if (sanitize_exists(target) &&
        level_has(target, LEVEL_ADMIN, ADMIN_SANITIZE)) {
        capabilities.sanitize = OCP_IS_SUPPORTED | OCP_SANITIZE_BLOCK_ERASE |
                                OCP_SANITIZE_OVERWRITE |
                                OCP_SANITIZE_DEALLOCATES;
    }
    ocp_capabilities_emit(target->page, &capabilities);
}
