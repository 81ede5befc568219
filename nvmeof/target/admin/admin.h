/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admin commands that are neither of namespaces, logs nor features.
 */
#ifndef ESSD_NVMEOF_TARGET_ADMIN_ADMIN_H
#define ESSD_NVMEOF_TARGET_ADMIN_ADMIN_H

#include "nvmeof/target/request/request.h"

/* admin.c */
uint16_t keep_alive_execute(struct nvmf_target *target,
                            struct nvmf_request *req);
uint16_t abort_execute(struct nvmf_target *target, struct nvmf_request *req);

/* sanitize.c */
void sanitize_load(struct nvmf_target *target);
void sanitize_drained(struct nvmf_target *target);
uint16_t sanitize_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t sanitize_execute(struct nvmf_target *target, struct nvmf_request *req);
void log_build_sanitize(struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl, uint32_t part);

/* firmware.c */
uint8_t firmware_capabilities(const struct nvmf_target *target);
bool firmware_is_pending(const struct nvmf_target *target);
bool firmware_is_committing(const struct nvmf_target *target);
void firmware_init(struct nvmf_target *target);
void firmware_ctrl_reset(struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl);
void firmware_tell_host(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
uint16_t firmware_download_check(struct nvmf_target *target,
                                 struct nvmf_request *req);
uint16_t firmware_download_execute(struct nvmf_target *target,
                                   struct nvmf_request *req);
uint16_t firmware_commit_check(struct nvmf_target *target,
                               struct nvmf_request *req);
uint16_t firmware_commit_execute(struct nvmf_target *target,
                                 struct nvmf_request *req);
void firmware_log_was_read(struct nvmf_target *target);
void log_build_firmware_slot(struct nvmf_target *target,
                             const struct nvmf_ctrl *ctrl, uint32_t part);

/* self_test.c */
void self_test_ctrl_reset(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl);
void self_test_formatting(struct nvmf_target *target, uint32_t nsid);
void self_test_sanitizing(struct nvmf_target *target);
void self_test_ns_removed(struct nvmf_target *target, uint32_t nsid);
uint16_t self_test_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t self_test_execute(struct nvmf_target *target,
                           struct nvmf_request *req);
void log_build_self_test(struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl, uint32_t part);

#endif
