/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identify and log pages.
 */
#ifndef ESSD_NVMEOF_TARGET_LOGS_LOGS_H
#define ESSD_NVMEOF_TARGET_LOGS_LOGS_H

#include "nvmeof/target/request/request.h"

/* identify.c */
uint16_t identify_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t identify_execute(struct nvmf_target *target, struct nvmf_request *req);

/* log.c */
uint16_t log_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t log_execute(struct nvmf_target *target, struct nvmf_request *req);
bool log_exists(const struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                uint8_t lid);

/* log_support.c */
void log_build_supported(struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl, uint32_t part);
void log_build_feature_effects(struct nvmf_target *target,
                               const struct nvmf_ctrl *ctrl, uint32_t part);
void log_build_mi_effects(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl, uint32_t part);
void log_build_ocp_smart(struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl, uint32_t part);

/* log_endurance.c */

/* Whether a Get Log Page names the endurance group that there is. */
bool endurance_is_valid(const struct nvmf_request *req);

/* The critical warnings that concern an endurance group. */
uint8_t endurance_warning(const struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl);
void endurance_build(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                     uint32_t part);

/* log_ocp.c */
void log_build_ocp_recovery(struct nvmf_target *target,
                            const struct nvmf_ctrl *ctrl, uint32_t part);
void log_build_ocp_capabilities(struct nvmf_target *target,
                                const struct nvmf_ctrl *ctrl, uint32_t part);

enum { TELEMETRY_PART_LEN = 4096 };

/* log_telemetry.c */
uint32_t telemetry_host_len(const struct nvmf_target *target);
uint32_t telemetry_ctrl_len(const struct nvmf_target *target);
void telemetry_build_host(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl, uint32_t part);
void telemetry_build_ctrl(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl, uint32_t part);

/* A Get Log Page begins to copy its data: take a dump if it asks for one. */
void telemetry_begin_read(struct nvmf_target *target,
                          const struct nvmf_request *req);

/* A Get Log Page without Retain Asynchronous Event has ended. */
void telemetry_end_read(struct nvmf_target *target, uint8_t lid);

#endif
