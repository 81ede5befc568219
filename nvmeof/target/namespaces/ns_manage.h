/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the commands that change namespaces share: Namespace Management,
 * Namespace Attachment, Format NVM.
 */
#ifndef ESSD_NVMEOF_TARGET_NAMESPACES_NS_MANAGE_H
#define ESSD_NVMEOF_TARGET_NAMESPACES_NS_MANAGE_H

#include "nvmeof/target/namespaces/namespaces.h"

enum {
    SELECT_MASK = 0xf, /* the field SEL of dword 10 */
};

/* ns_attachments.c */

/*
 * Attach a namespace to the controllers that should have it and detach it from
 * all others, and tell the hosts.
 *
 * @param has_changed  the namespace itself has changed: tell every host that
 *   has it
 */
void ns_update_attachments(struct nvmf_target *target, uint32_t nsid,
                           bool has_changed);

/* ns_drain.c */

/* Whether a namespace can be deleted or formatted.  After a Format that has
 * failed, it takes only these two commands, the end of a protection and the
 * commands of reservations. */
bool ns_is_changeable(const struct nvmf_ns *ns);
bool ns_is_any_unchangeable(struct nvmf_target *target,
                            const struct nvmf_ctrl *active_on);
/* Check that an NSID is allocated, and that this port reaches it. */
uint16_t ns_check_allocated(struct nvmf_target *target,
                            struct nvmf_request *req);
uint16_t ns_job_wait(struct nvmf_target *target, struct nvmf_request *req);
void ns_job_begin(struct nvmf_target *target, struct nvmf_request *req,
                  const struct nvmf_volume_job *job, bool is_for_all);
void ns_job_end(struct nvmf_target *target, uint16_t status);
/* Take a namespace out of use, then delete or format it. */
void ns_change_begin(struct nvmf_target *target, uint32_t nsid);
uint16_t ns_change_next(struct nvmf_target *target, uint32_t after);

#endif
