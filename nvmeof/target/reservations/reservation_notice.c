/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What hosts learn about reservations: the Reservation Notification log page
 * and its asynchronous event, and the features Reservation Notification Mask
 * and Reservation Persistence.
 * Spec: NVM Express Base 1.4 sections 5.14.1.16, 5.21.1.20, 5.21.1.21, 8.8.2.
 */
#include "nvmeof/target/events/events.h"
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/reservations/reservations.h"

#include <string.h>

#include "nvmeof/wire/reservation.h"

static void drop_oldest(struct nvmf_ctrl *ctrl)
{
    ctrl->first_notice = (uint16_t)(ctrl->first_notice + 1) % NVMF_MAX_NOTICES;
    ctrl->notices--;
}

/* Add a notification.  If the ring is full, the oldest one is lost; the host
 * sees it from the counts. */
static void add_notice(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                       uint32_t nsid, uint8_t type)
{
    uint16_t at;

    if (ctrl->notices == NVMF_MAX_NOTICES) {
        drop_oldest(ctrl);
    }
    at = (ctrl->first_notice + ctrl->notices) % NVMF_MAX_NOTICES;
    ctrl->notices++;
    ctrl->notice[at] = (struct reservation_notice){
        .count = ++ctrl->notice_count, .nsid = nsid, .type = type};
    event_raise(target, ctrl, CTRL_EVENT_RESERVATION);
}

/* Tell the controllers of a host. */
static void tell_host(struct nvmf_target *target, const struct nvmf_ns *ns,
                      const uint8_t *hostid, uint8_t type)
{
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        struct nvmf_ctrl *ctrl = &target->ctrl[i];

        if (ctrl_is(ctrl, CTRL_HEARS_NVM) &&
            ns_is_active(ctrl, ns->config.nsid) &&
            memcmp(ctrl->hostid, hostid, NVME_HOSTID_LEN) == 0) {
            add_notice(target, ctrl, ns->config.nsid, type);
        }
    }
}

static bool is_told(const struct nvmf_ns *ns, const uint8_t *hostid,
                    const uint8_t *issuer, uint8_t type)
{
    return !(ns->notice_mask & BIT(type)) &&
           memcmp(hostid, issuer, NVME_HOSTID_LEN) != 0;
}

void notice_removed(struct nvmf_target *target, const struct nvmf_ns *ns,
                    const struct reservation *before,
                    const struct reservation *after, const uint8_t *issuer,
                    uint8_t type)
{
    for (uint16_t i = 0; i < before->count; i++) {
        const uint8_t *hostid = before->registrant[i].hostid;

        if (is_told(ns, hostid, issuer, type) &&
            reservation_find(after, hostid) < 0) {
            tell_host(target, ns, hostid, type);
        }
    }
}

void notice_registered(struct nvmf_target *target, const struct nvmf_ns *ns,
                       const struct reservation *after, const uint8_t *issuer,
                       uint8_t type)
{
    for (uint16_t i = 0; i < after->count; i++) {
        const uint8_t *hostid = after->registrant[i].hostid;

        if (is_told(ns, hostid, issuer, type)) {
            tell_host(target, ns, hostid, type);
        }
    }
}

/* ---- The log page: the oldest notification that was not read. */

void log_build_reservation(struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl, uint32_t part)
{
    const struct reservation_notice *notice =
        ctrl->notices != 0 ? &ctrl->notice[ctrl->first_notice] : NULL;

    (void)part;
    reservation_notice_emit(target->page, notice,
                            notice != NULL ? ctrl->notices - 1u : 0);
}

void notice_was_read(struct nvmf_ctrl *ctrl)
{
    if (ctrl->notices != 0) {
        drop_oldest(ctrl);
    }
    if (ctrl->notices == 0) {
        ctrl->events_pending &= (uint16_t)~BIT(CTRL_EVENT_RESERVATION);
    }
}

/* ---- Features of a namespace. */

/* Set Features may name all namespaces that the controller has. */
uint16_t reservation_feature_check(const struct nvmf_target *target,
                                   struct nvmf_request *req)
{
    const struct nvmf_ctrl *ctrl =
        &target->ctrl[target->qpair[req->qpair].ctrl];
    uint32_t nsid = req->sqe.nsid;

    if (nsid == NVME_NSID_ALL && req->sqe.opcode == ADMIN_SET_FEATURES) {
        return NVME_SC_SUCCESS;
    }
    if (nsid == NVME_NSID_ALL) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
    }
    if (nsid == 0 || nsid > NVMF_MAX_NAMESPACES) {
        return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
    }
    if (!ns_is_active(ctrl, nsid) ||
        reservation_capabilities(target, &target->ns[nsid - 1]) == 0) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
    }
    return NVME_SC_SUCCESS;
}

static bool is_concerned(struct nvmf_target *target, struct nvmf_request *req,
                         uint32_t nsid)
{
    return ns_is_active(request_ctrl(target, req), nsid) &&
           reservation_of(target, nsid) != NULL &&
           (req->sqe.nsid == nsid || req->sqe.nsid == NVME_NSID_ALL);
}

uint32_t reservation_mask_get(const struct nvmf_target *target,
                              const struct nvmf_ctrl *ctrl,
                              struct nvmf_request *req)
{
    (void)ctrl;
    return target->ns[req->sqe.nsid - 1].notice_mask;
}

uint16_t reservation_mask_set(struct nvmf_target *target,
                              struct nvmf_request *req)
{
    for (uint32_t nsid = 1; nsid <= NVMF_RESERVATION_NAMESPACES; nsid++) {
        if (is_concerned(target, req, nsid)) {
            target->ns[nsid - 1].notice_mask =
                (uint8_t)(req->sqe.cdw11 & NOTICE_MASK_ALL);
        }
    }
    return NVME_SC_SUCCESS;
}

uint32_t reservation_persistence_get(const struct nvmf_target *target,
                                     const struct nvmf_ctrl *ctrl,
                                     struct nvmf_request *req)
{
    (void)ctrl;
    return target->reservation[req->sqe.nsid - 1].ptpl;
}

uint16_t reservation_persistence_set(struct nvmf_target *target,
                                     struct nvmf_request *req)
{
    bool ptpl = req->sqe.cdw11 & 1;

    if (ptpl && target->config.reservations.save == NULL) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW11, 0);
    }
    /* If a closed namespace were no longer kept, the next start would let all
     * hosts in. */
    for (uint32_t nsid = 1; nsid <= NVMF_RESERVATION_NAMESPACES; nsid++) {
        if (!ptpl && is_concerned(target, req, nsid) &&
            reservation_is_closed(&target->reservation[nsid - 1])) {
            return reservation_refuse(req);
        }
    }
    for (uint32_t nsid = 1; nsid <= NVMF_RESERVATION_NAMESPACES; nsid++) {
        uint16_t status;

        if (!is_concerned(target, req, nsid)) {
            continue;
        }
        target->reservation_draft = target->reservation[nsid - 1];
        target->reservation_draft.ptpl = ptpl;
        status = reservation_commit(target, nsid, request_ctrl(target, req));
        if (status != NVME_SC_SUCCESS) {
            return status;
        }
    }
    return NVME_SC_SUCCESS;
}
