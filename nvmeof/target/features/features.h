/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Get Features, Set Features, and the latency monitor.
 */
#ifndef ESSD_NVMEOF_TARGET_FEATURES_FEATURES_H
#define ESSD_NVMEOF_TARGET_FEATURES_FEATURES_H

#include "nvmeof/target/request/request.h"

/* timestamp.c */
uint16_t timestamp_set(struct nvmf_target *target, struct nvmf_request *req);

/* feature.c */
uint32_t feature_effects(const struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl, uint8_t fid);
uint16_t feature_get_check(struct nvmf_target *target,
                           struct nvmf_request *req);
uint16_t feature_get(struct nvmf_target *target, struct nvmf_request *req);
uint16_t feature_set_check(struct nvmf_target *target,
                           struct nvmf_request *req);
uint16_t feature_set(struct nvmf_target *target, struct nvmf_request *req);

/* latency_monitor.c */
void log_build_ocp_latency(struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl, uint32_t part);
void latency_start(struct nvmf_target *target);

/* A command of an I/O or admin queue is about to be answered.  The monitor is
 * on. */
void latency_note_answer(struct nvmf_target *target,
                         const struct nvmf_request *req);

/* @param scratch  LATENCY_FEATURE_LEN bytes */
uint32_t latency_feature_get(const struct nvmf_target *target,
                             struct nvmf_request *req, uint8_t *scratch,
                             enum nvmf_select select);
uint16_t latency_feature_set(struct nvmf_target *target,
                             struct nvmf_request *req, bool is_saved);
bool latency_is_saveable(const struct nvmf_target *target);

#endif
