/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Namespaces: their states, attachments and changes, and ANA.
 */
#ifndef ESSD_NVMEOF_TARGET_NAMESPACES_NAMESPACES_H
#define ESSD_NVMEOF_TARGET_NAMESPACES_NAMESPACES_H

#include "nvmeof/target/request/request.h"

/*
 * What the life of a namespace means for the parts above it: hooks.c fills it
 * in.
 */
struct ns_hooks {
    /* A command on a namespace with tracked blocks has ended. */
    void (*written)(struct nvmf_target *target, const struct nvmf_request *req,
                    const struct nvmf_ns *ns, uint16_t status);
    /* It refuses commands from now on: end those that wait for others. */
    void (*refuses)(struct nvmf_target *target, struct nvmf_ns *ns);
    /* No command uses it any more, and no change of it has waited for that. */
    void (*drained)(struct nvmf_target *target);
    /* It begins to be formatted; NVME_NSID_ALL: all are. */
    void (*formatting)(struct nvmf_target *target, uint32_t nsid);
    /* It exists no more, or again; it has been deleted as a host wanted; its
     * blocks are gone; controllers have it that had it not. */
    void (*forgotten)(struct nvmf_target *target, uint32_t nsid);
    void (*deleted)(struct nvmf_target *target, uint32_t nsid);
    void (*blocks_gone)(struct nvmf_target *target, uint32_t nsid);
    void (*attached)(struct nvmf_target *target, uint32_t nsid);
};

extern const struct ns_hooks ns_hooks;

enum { /* most bytes of the ANA log page */
       ANA_LOG_LEN = ANA_LOG_HEADER_LEN + NVMF_ANA_GROUPS * ANA_GROUP_LEN +
                     NVMF_MAX_NAMESPACES * 4,
};

/* ana.c */
void ana_init(struct nvmf_target *target);
bool ana_is_supported(const struct nvmf_target *target);

/** Whether the state of an allocated namespace allows a command that names it.
 * @return a status, or 0 */
uint16_t ana_check_allocated(struct nvmf_target *target,
                             struct nvmf_request *req, uint32_t nsid);

/** The same for a command that names all namespaces, or all that are attached.
 */
uint16_t ana_check_all(struct nvmf_target *target, struct nvmf_request *req,
                       bool is_attached);
uint16_t ana_check_get_feature(struct nvmf_target *target,
                               struct nvmf_request *req);
uint16_t ana_check_set_feature(struct nvmf_target *target,
                               struct nvmf_request *req);

/** Whether an active namespace can be reached through a controller's port. */
bool ana_is_reachable(const struct nvmf_target *target,
                      const struct nvmf_ctrl *ctrl, uint32_t nsid);

/** Whether Identify must not report how much of a namespace is in use. */
bool ana_hides_capacity(const struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl, uint32_t nsid);

/** Count a change of the log page: a namespace was attached or detached. */
void ana_attachment_changed(const struct nvmf_target *target,
                            struct nvmf_ctrl *ctrl, uint32_t nsid);

/** End the transitions that are over. @return the end of the next one */
uint64_t ana_timer(struct nvmf_target *target);
void ana_log_build(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                   uint32_t part);
void ana_log_build_groups(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl, uint32_t part);

/* ns.c */
uint16_t ns_check_closely(struct nvmf_target *target, struct nvmf_request *req);
void ns_update_bars(struct nvmf_target *target, uint32_t nsid);
void ns_update_ctrl_bars(const struct nvmf_target *target,
                         struct nvmf_ctrl *ctrl);
uint16_t ns_check_source(struct nvmf_target *target, struct nvmf_request *req,
                         uint32_t nsid, struct nvmf_ns **ns);

uint16_t ns_check_state(struct nvmf_target *target, struct nvmf_request *req,
                        uint32_t nsid);
uint16_t ns_check_own_state(struct nvmf_target *target,
                            struct nvmf_request *req);
void ns_tell_changed(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                     uint32_t nsid);

/* ns_release.c */
void ns_released(struct nvmf_target *target, struct nvmf_request *req,
                 struct nvmf_ns *ns, uint16_t status);
void ns_source_released(struct nvmf_target *target, struct nvmf_request *req,
                        struct nvmf_ns *ns);

/* ns_drain.c */
uint16_t ns_wait_turn(struct nvmf_target *target, struct nvmf_request *req);
bool ns_is_any_protected(struct nvmf_target *target,
                         const struct nvmf_ctrl *active_on);

bool ns_drained(struct nvmf_target *target, const struct nvmf_ns *ns);

/* ns_attachments.c */
void ns_attach_new(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
void ns_detach_all(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
void ns_load(struct nvmf_target *target, uint32_t nsid);

/* ns_attach.c */
void ns_awaited_ended(struct nvmf_target *target, const struct nvmf_ns *ns);

uint16_t ns_attachment_check(struct nvmf_target *target,
                             struct nvmf_request *req);
uint16_t ns_attachment_execute(struct nvmf_target *target,
                               struct nvmf_request *req);

/* ns_create.c */
uint16_t ns_management_check(struct nvmf_target *target,
                             struct nvmf_request *req);
uint16_t ns_management_execute(struct nvmf_target *target,
                               struct nvmf_request *req);

/* ns_format.c */
uint16_t ns_format_check(struct nvmf_target *target, struct nvmf_request *req);
uint16_t ns_format_execute(struct nvmf_target *target,
                           struct nvmf_request *req);

/* ns_protect.c */
bool ns_takes_protection(const struct nvmf_ns *ns, uint32_t protection);
uint16_t ns_protect_execute(struct nvmf_target *target,
                            struct nvmf_request *req,
                            enum nvmf_protection protection);
void ns_protect_end(struct nvmf_target *target, struct nvmf_request *req);

#endif
