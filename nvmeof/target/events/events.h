/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events for hosts, and the persistent event log.
 */
#ifndef ESSD_NVMEOF_TARGET_EVENTS_EVENTS_H
#define ESSD_NVMEOF_TARGET_EVENTS_EVENTS_H

#include "nvmeof/target/request/request.h"

/* event.c */
void event_raise(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                 enum ctrl_event event);
void event_log_read(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                    uint8_t lid);
void event_check_health(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
uint16_t event_request(struct nvmf_target *target, struct nvmf_request *req);
void event_give_up(struct nvmf_ctrl *ctrl, uint16_t cid);
bool event_abort(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                 uint16_t cid);
void event_abort_all(struct nvmf_target *target, struct nvmf_ctrl *ctrl);

enum { PEL_PART_LEN = 4096 };

/* persistent_event.c */
void pel_init(struct persistent_log *log, uint64_t genctr, uint64_t now_us);

/* A controller begins, is reset or ends: its reporting context is released. */
void pel_reset_ctrl(struct nvmf_target *target, const struct nvmf_ctrl *ctrl);

/* The drive's clock was set.  @param ctrl  NULL: no host has done it */
void pel_note_clock(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                    bool was_set, uint64_t before_ms);
void pel_note_reset(struct nvmf_target *target, const struct nvmf_ctrl *ctrl);
void pel_note_subsystem_reset(struct nvmf_target *target,
                              const struct nvmf_ctrl *own);
void pel_note_hours(struct nvmf_target *target);
void pel_note_health(struct nvmf_target *target);

/* A Firmware Commit has ended.  @param req  NULL: an image was given up */
void pel_note_firmware(struct nvmf_target *target,
                       const struct nvmf_request *req, uint8_t slot,
                       uint16_t status);
void pel_note_media_error(struct nvmf_target *target,
                          const struct nvmf_request *req, uint16_t status);

/* @param ns  NULL: all namespaces were deleted */
void pel_note_change_ns(struct nvmf_target *target,
                        const struct nvmf_request *req,
                        const struct nvmf_ns *ns, uint32_t nsid);
void pel_note_format_start(struct nvmf_target *target,
                           const struct nvmf_request *req);
void pel_note_format_end(struct nvmf_target *target,
                         const struct nvmf_request *req, uint32_t nsid,
                         uint16_t status);
void pel_note_sanitize_start(struct nvmf_target *target);
void pel_note_sanitize_end(struct nvmf_target *target, uint16_t progress,
                           uint16_t status);
void pel_note_set_feature(struct nvmf_target *target,
                          const struct nvmf_request *req);
void pel_note_telemetry(struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl, const uint8_t *header);

/* Check the action of Get Log Page, and set the length of its data. */
uint16_t pel_check(struct nvmf_request *req);

/* Do the action, before each window of data.  @param offset  in the page */
uint16_t pel_begin_read(struct nvmf_target *target, struct nvmf_request *req,
                        uint64_t *offset);
uint32_t pel_len(const struct nvmf_target *target,
                 const struct nvmf_ctrl *ctrl);
void pel_build(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
               uint32_t part);

#endif
