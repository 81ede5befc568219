/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which namespaces exist, and to which controllers each of them is attached.
 *
 * Attachments belong to hosts, by NQN, since a dynamic controller ends with its
 * association.  So all controllers of a host follow an attachment that names
 * one of them, except for private namespaces.
 */
#include "nvmeof/target/namespaces/ns_manage.h"

#include <string.h>

static bool is_attached_elsewhere(const struct nvmf_target *target,
                                  const struct nvmf_ctrl *own, uint32_t nsid)
{
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        if (&target->ctrl[i] != own && ns_is_active(&target->ctrl[i], nsid)) {
            return true;
        }
    }
    return false;
}

/* Whether a namespace that exists is attached to this controller. */
static bool wants_attachment(const struct nvmf_target *target,
                             const struct nvmf_ctrl *ctrl, uint32_t nsid)
{
    const struct nvmf_volume *volume = &target->config.volume;

    if (volume->is_attached == NULL) {
        return true;
    }
    return volume->is_attached(volume->ctx, nsid, ctrl->hostnqn,
                               ctrl->portid) &&
           !(target->ns[nsid - 1].volume.is_private &&
             is_attached_elsewhere(target, ctrl, nsid));
}

/* Whether a namespace exists and is not being deleted. */
static bool is_attachable(const struct nvmf_ns *ns)
{
    return ns->state == NS_READY || ns->state == NS_FORMATTING ||
           ns->state == NS_SANITIZING;
}

/* Set the active namespaces of a new controller. */
void ns_attach_new(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    memset(ctrl->active_ns, 0, sizeof(ctrl->active_ns));
    for (uint32_t i = 0; i < NVMF_MAX_NAMESPACES && !ctrl->is_discovery; i++) {
        if (is_attachable(&target->ns[i]) &&
            wants_attachment(target, ctrl, i + 1)) {
            ctrl->active_ns[i / 32] |= BIT(i % 32);
        }
    }
    ns_update_ctrl_bars(target, ctrl);
}

void ns_update_attachments(struct nvmf_target *target, uint32_t nsid,
                           bool has_changed)
{
    uint32_t i = nsid - 1;
    bool exists = is_attachable(&target->ns[i]);
    bool was_attached = false;

    for (uint8_t c = 0; c < NVMF_MAX_HOSTS; c++) {
        struct nvmf_ctrl *ctrl = &target->ctrl[c];
        bool was_active = ns_is_active(ctrl, nsid);
        bool is_active;

        if (!ctrl_is(ctrl, CTRL_IS_MEMBER)) {
            continue;
        }
        is_active = exists && wants_attachment(target, ctrl, nsid);
        if (is_active) {
            ctrl->active_ns[i / 32] |= BIT(i % 32);
        } else {
            ctrl->active_ns[i / 32] &= ~BIT(i % 32);
        }
        if (is_active != was_active) {
            ana_attachment_changed(target, ctrl, nsid);
        }
        was_attached |= is_active && !was_active;
        if (is_active != was_active || (is_active && has_changed)) {
            ns_tell_changed(target, ctrl, nsid);
        }
    }
    if (was_attached) {
        ns_hooks.attached(target, nsid);
    }
    ns_update_bars(target, nsid);
}

/*
 * A controller takes no commands any more.  A private namespace that was
 * attached to it goes to another controller of its host, which may have
 * connected before the drive knew that the association of this one was lost.
 */
void ns_detach_all(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    uint32_t active[ARRAY_LEN(ctrl->active_ns)];

    memcpy(active, ctrl->active_ns, sizeof(active));
    memset(ctrl->active_ns, 0, sizeof(ctrl->active_ns));
    ns_update_ctrl_bars(target, ctrl);
    for (uint32_t i = 0; i < NVMF_MAX_NAMESPACES; i++) {
        if ((active[i / 32] & BIT(i % 32)) && target->ns[i].volume.is_private) {
            ns_update_attachments(target, i + 1, false);
        }
    }
}

/* Read what the volume knows of a namespace. */
void ns_load(struct nvmf_target *target, uint32_t nsid)
{
    const struct nvmf_volume *volume = &target->config.volume;
    struct nvmf_ns *ns = &target->ns[nsid - 1];

    if (!volume->describe(volume->ctx, nsid, &ns->volume)) {
        ns_enter(ns, NS_FREE);
        return;
    }
    ns->config.nsid = nsid;
    ns->anagrpid = ns->volume.anagrpid;
    ASSERT(ns->anagrpid >= 1 && ns->anagrpid <= NVMF_ANA_GROUPS);
    ns->config.media_ns = ns->volume.media_ns;
    memcpy(ns->config.uuid, ns->volume.uuid, sizeof(ns->config.uuid));
    memcpy(ns->config.nguid, ns->volume.nguid, sizeof(ns->config.nguid));
    ns_enter(ns, ns->volume.is_erasing          ? NS_FORMATTING
                 : sanitize_status(target) != 0 ? NS_SANITIZING
                                                : NS_READY);
    target->media.geometry(target->media.ctx, ns->config.media_ns,
                           &ns->geometry);
}
