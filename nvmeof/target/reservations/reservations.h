/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reservations: commands, notifications and features.
 */
#ifndef ESSD_NVMEOF_TARGET_RESERVATIONS_RESERVATIONS_H
#define ESSD_NVMEOF_TARGET_RESERVATIONS_RESERVATIONS_H

#include "nvmeof/target/request/request.h"

extern const struct nvmf_command reservation_acquire_row;
extern const struct nvmf_command reservation_register_row;
extern const struct nvmf_command reservation_release_row;
extern const struct nvmf_command reservation_report_row;

/* reservation_command.c */
void reservation_load(struct nvmf_target *target, uint32_t nsid);
void reservation_forget(struct nvmf_target *target, uint32_t nsid);
uint16_t reservation_commit(struct nvmf_target *target, uint32_t nsid,
                            const struct nvmf_ctrl *by);

/* reservation_notice.c */

/* Tell the hosts that were registered before and are not after, all except the
 * issuer. */
void notice_removed(struct nvmf_target *target, const struct nvmf_ns *ns,
                    const struct reservation *before,
                    const struct reservation *after, const uint8_t *issuer,
                    uint8_t type);

/* Tell the hosts that are registered, all except the issuer. */
void notice_registered(struct nvmf_target *target, const struct nvmf_ns *ns,
                       const struct reservation *after, const uint8_t *issuer,
                       uint8_t type);
void log_build_reservation(struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl, uint32_t part);
void notice_was_read(struct nvmf_ctrl *ctrl);
uint16_t reservation_feature_check(const struct nvmf_target *target,
                                   struct nvmf_request *req);
uint32_t reservation_mask_get(const struct nvmf_target *target,
                              const struct nvmf_ctrl *ctrl,
                              struct nvmf_request *req);
uint16_t reservation_mask_set(struct nvmf_target *target,
                              struct nvmf_request *req);
uint32_t reservation_persistence_get(const struct nvmf_target *target,
                                     const struct nvmf_ctrl *ctrl,
                                     struct nvmf_request *req);
uint16_t reservation_persistence_set(struct nvmf_target *target,
                                     struct nvmf_request *req);

#endif
