/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log pages that say what the drive supports (LIDs 00h, 05h, 12h and 13h), and
 * OCP's extended SMART page (C0h).
 * Spec: NVM Express Base 2.0 sections 5.16.1.1, 5.16.1.6, 5.16.1.18 and
 * 5.16.1.19; OCP Datacenter NVMe SSD Specification 2.0, section 4.8.4.
 *
 * Left out: effects of commands of the management interface, of which the drive
 * has none over fabrics.
 */
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/features/features.h"
#include "nvmeof/target/logs/logs.h"
#include "nvmeof/wire/log.h"

void log_build_supported(struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl, uint32_t part)
{
    (void)part;
    memset(target->page, 0, LOG_SUPPORTED_LEN);
    for (uint32_t lid = 0; lid < 256; lid++) {
        uint32_t more =
            lid == LOG_PERSISTENT_EVENT ? LOG_SUPPORTED_PEL_HEADER : 0u;

        if (log_exists(target, ctrl, (uint8_t)lid)) {
            put_le32(target->page + 4 * lid, LOG_SUPPORTED_LSUPP | more);
        }
    }
}

void log_build_feature_effects(struct nvmf_target *target,
                               const struct nvmf_ctrl *ctrl, uint32_t part)
{
    (void)part;
    memset(target->page, 0, LOG_FEATURE_EFFECTS_LEN);
    for (uint32_t fid = 0; fid < 256; fid++) {
        put_le32(target->page + 4 * fid,
                 feature_effects(target, ctrl, (uint8_t)fid));
    }
}

/* None of the commands of the management interface is supported. */
void log_build_mi_effects(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl, uint32_t part)
{
    (void)ctrl;
    (void)part;
    memset(target->page, 0, LOG_MI_EFFECTS_LEN);
}

/*
 * OCP's SMART page.  Without NAND flash, the medium has written what hosts have
 * written, and the fields about NAND blocks say that none has failed.  Fields
 * about PCIe and about temperatures are always 0.
 */
static void add_flash_use(const struct nvmf_target *target,
                          struct log_ocp_smart *smart)
{
    struct nvmf_flash_use use;

    if (target->config.read_flash == NULL) {
        return;
    }
    target->config.read_flash(target->config.flash_ctx, &use);
    smart->written_bytes = use.written_bytes;
    smart->read_bytes = use.read_bytes;
    smart->read_errors = use.unreadable;
    smart->rebuilt = use.rebuilt;
    smart->soft_reads = use.soft_reads;
    smart->detected = use.transfer_errors;
    smart->corrected = use.transfers_corrected;
    smart->failed_blocks = use.failed_blocks;
    smart->most_erased = use.most_erased;
    smart->least_erased = use.least_erased;
    smart->left_percent = use.left_percent;
    smart->free_percent = use.free_percent;
}

/* Nothing measures the capacitors: they are good until the buffer was once not
 * saved. */
static uint16_t capacitor_health(const struct nvmf_health *health)
{
    if (!health->has_capacitors) {
        return OCP_NO_CAPACITOR;
    }
    return (health->critical_warning & SMART_WARN_VOLATILE_MEMORY) != 0
               ? OCP_CAPACITOR_FAILED
               : OCP_CAPACITOR_GOOD;
}

void log_build_ocp_smart(struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl, uint32_t part)
{
    const struct nvmf_counters *counters = &target->counters;
    const struct nvmf_health *health = &target->config.health;
    struct log_ocp_smart smart = {
        .written_bytes = counters->written_blocks_512 * 512,
        .read_bytes = counters->read_blocks_512 * 512,
        .read_errors = counters->media_errors,
        .incomplete_shutdowns = (uint32_t)health->unsafe_shutdowns,
        .free_percent = health->available_spare_percent,
        .left_percent = 100,
        .capacitor_health = capacitor_health(health),
    };

    (void)ctrl;
    (void)part;
    add_flash_use(target, &smart);
    for (uint32_t i = 0; i < NVMF_MAX_NAMESPACES; i++) {
        if (target->ns[i].state != NS_FREE) {
            smart.used_blocks += target->ns[i].geometry.size_blocks;
        }
    }
    log_ocp_smart_emit(target->page, &smart);
}
