/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endurance Group Information, LID 09h.  All namespaces belong to one group,
 * which is the whole medium.  The medium writes what hosts write.
 * Spec: NVM Express Base 2.0 sections 5.16.1.10 and 3.2.3.
 *
 * Left out: event configuration (feature 18h) and the aggregate log (0Fh), both
 * optional; the endurance estimate, since the medium does not wear.
 */
#include "nvmeof/target/logs/logs.h"
#include "nvmeof/wire/log.h"

enum { BLOCK_512 = 512, LSI_SHIFT = 16 };

bool endurance_is_valid(const struct nvmf_request *req)
{
    return req->sqe.cdw11 >> LSI_SHIFT == ENDURANCE_GROUP_ID;
}

uint8_t endurance_warning(const struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl)
{
    return log_critical_warning(target, ctrl) &
           (SMART_WARN_SPARE | SMART_WARN_RELIABILITY | SMART_WARN_READ_ONLY);
}

void endurance_build(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                     uint32_t part)
{
    const struct nvmf_counters *counters = &target->counters;
    const struct nvmf_health *health = &target->config.health;
    const struct nvmf_volume *volume = &target->config.volume;
    struct nvmf_volume_capacity capacity;

    (void)part;
    volume->capacity(volume->ctx, &capacity);
    log_endurance_emit(
        target->page,
        &(struct log_endurance){
            .warning = endurance_warning(target, ctrl),
            .available_spare_percent = health->available_spare_percent,
            .spare_threshold_percent = SPARE_THRESHOLD_PERCENT,
            .percentage_used = health->percentage_used,
            .read_bytes = counters->read_blocks_512 * BLOCK_512,
            .written_bytes = counters->written_blocks_512 * BLOCK_512,
            .host_reads = counters->host_reads,
            .host_writes = counters->host_writes,
            .media_errors = counters->media_errors,
            .error_log_entries = counters->error_log_entries,
            .total_bytes = capacity.total_bytes,
            .free_bytes = capacity.free_bytes,
        });
}
