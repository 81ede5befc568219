/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Setting the drive's clock: by a host, with the feature Timestamp (0Eh), or by
 * the drive itself.
 */
#include "lib/bytes.h"
#include "nvmeof/target/events/events.h"
#include "nvmeof/target/features/features.h"

/* Set the drive's clock.  @param ctrl  whose host does it, or NULL */
static void clock_set(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                      uint64_t epoch_ms, uint64_t now_us)
{
    uint64_t before_ms;
    bool was_set = nvmf_target_time(target, &before_ms);

    target->clock.ms = epoch_ms;
    target->clock.set_us = now_us;
    target->clock.left_out_us = 0;
    target->clock.is_set = true;
    pel_note_clock(target, ctrl, was_set, before_ms);
}

void nvmf_target_set_time(struct nvmf_target *target, uint64_t epoch_ms,
                          uint64_t now_us)
{
    clock_set(target, NULL, epoch_ms, now_us);
}

uint16_t timestamp_set(struct nvmf_target *target, struct nvmf_request *req)
{
    uint8_t data[LOG_TIMESTAMP_LEN];

    request_read_data(req, 0, data, sizeof(data));
    clock_set(target, request_ctrl(target, req),
              get_le64(data) & LOG_TIMESTAMP_MASK, target->now_us);
    return NVME_SC_SUCCESS;
}
