/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Telemetry, LIDs 07h and 08h: the header of the page, and blocks of a dump
 * that the application has made.  A dump does not change while a host reads it
 * in pieces, until a host asks for another one.
 * Spec: NVM Express Base 2.0 sections 5.16.1.8 and 5.16.1.9.
 *
 * Left out: data area 4.
 */
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/target/events/events.h"
#include "nvmeof/target/logs/logs.h"
#include "nvmeof/wire/log.h"

static uint32_t telemetry_len(const struct nvmf_target *target,
                              bool is_controllers)
{
    const struct nvmf_telemetry *telemetry = &target->config.telemetry;
    struct nvmf_telemetry_info info;

    telemetry->describe(telemetry->ctx, is_controllers, &info);
    return TELEMETRY_HEADER_LEN * (1u + info.last_block[2]);
}

uint32_t telemetry_host_len(const struct nvmf_target *target)
{
    return telemetry_len(target, false);
}

uint32_t telemetry_ctrl_len(const struct nvmf_target *target)
{
    return telemetry_len(target, true);
}

static void build_part(struct nvmf_target *target, bool is_controllers,
                       uint32_t part)
{
    const struct nvmf_telemetry *telemetry = &target->config.telemetry;
    struct nvmf_telemetry_info info;
    uint32_t skip = part == 0 ? TELEMETRY_HEADER_LEN : 0;

    if (part == 0) {
        telemetry->describe(telemetry->ctx, is_controllers, &info);
        log_telemetry_emit(
            target->page,
            &(struct log_telemetry){
                .lid = is_controllers ? LOG_TELEMETRY_CTRL : LOG_TELEMETRY_HOST,
                .ieee = target->config.ieee,
                .last_block = info.last_block,
                .host_generation = info.host_generation,
                .is_available = info.is_available,
                .ctrl_generation = info.ctrl_generation,
                .reason = info.reason,
            });
    }
    telemetry->read(telemetry->ctx, is_controllers,
                    part * TELEMETRY_PART_LEN + skip - TELEMETRY_HEADER_LEN,
                    target->page + skip, TELEMETRY_PART_LEN - skip);
}

void telemetry_build_host(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl, uint32_t part)
{
    (void)ctrl;
    build_part(target, false, part);
}

void telemetry_build_ctrl(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl, uint32_t part)
{
    (void)ctrl;
    build_part(target, true, part);
}

void telemetry_begin_read(struct nvmf_target *target,
                          const struct nvmf_request *req)
{
    if ((uint8_t)req->sqe.cdw10 == LOG_TELEMETRY_HOST &&
        req->transfer.data_offset == 0 && (req->sqe.cdw10 & TELEMETRY_CREATE)) {
        target->config.telemetry.capture(target->config.telemetry.ctx);
        build_part(target, false, 0);
        pel_note_telemetry(target, request_ctrl(target, req), target->page);
    }
}

void nvmf_target_telemetry_made(struct nvmf_target *target)
{
    if (telemetry_exists(target)) {
        build_part(target, true, 0);
        pel_note_telemetry(target, NULL, target->page);
    }
}

void telemetry_end_read(struct nvmf_target *target, uint8_t lid)
{
    if (lid == LOG_TELEMETRY_CTRL) {
        target->config.telemetry.acknowledge(target->config.telemetry.ctx);
    }
}
