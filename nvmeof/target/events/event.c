/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous events.  A reported event is masked until its log page is read.
 * Spec: NVM Express Base 1.4 section 5.2.
 */
#include "nvmeof/target/events/events.h"

/* The information of each event, and the configuration bits that enable it. */
static const struct {
    uint32_t config_bits; /* of feature 0Bh; 0: it is always enabled */
    uint8_t type;
    uint8_t info;
    uint8_t lid;
} events[CTRL_EVENTS] = {
    [CTRL_EVENT_SMART_RELIABILITY] = {SMART_WARN_RELIABILITY |
                                          SMART_WARN_READ_ONLY |
                                          SMART_WARN_VOLATILE_MEMORY,
                                      EVENT_TYPE_SMART, EVENT_SMART_RELIABILITY,
                                      LOG_SMART},
    [CTRL_EVENT_SMART_TEMPERATURE] = {SMART_WARN_TEMPERATURE, EVENT_TYPE_SMART,
                                      EVENT_SMART_TEMPERATURE, LOG_SMART},
    [CTRL_EVENT_SMART_SPARE] = {SMART_WARN_SPARE, EVENT_TYPE_SMART,
                                EVENT_SMART_SPARE, LOG_SMART},
    [CTRL_EVENT_NS_CHANGED] = {1u << 8, EVENT_TYPE_NOTICE,
                               EVENT_NOTICE_NS_CHANGED, LOG_CHANGED_NS_LIST},
    [CTRL_EVENT_ANA_CHANGED] = {1u << 11, EVENT_TYPE_NOTICE,
                                EVENT_NOTICE_ANA_CHANGED, LOG_ANA},
    [CTRL_EVENT_LBA_STATUS] = {1u << 13, EVENT_TYPE_NOTICE,
                               EVENT_NOTICE_LBA_STATUS, LOG_LBA_STATUS},
    /* Feature 82h, not 0Bh, enables this one. */
    [CTRL_EVENT_RESERVATION] = {0, EVENT_TYPE_IO, EVENT_IO_RESERVATION,
                                LOG_RESERVATION},
    [CTRL_EVENT_SANITIZE_COMPLETED] = {0, EVENT_TYPE_IO,
                                       EVENT_SANITIZE_COMPLETED, LOG_SANITIZE},
    [CTRL_EVENT_FIRMWARE_GIVEN_UP] = {0, EVENT_TYPE_ERROR,
                                      EVENT_ERROR_FIRMWARE_LOAD,
                                      LOG_FIRMWARE_SLOT},
    [CTRL_EVENT_DISCOVERY_CHANGED] = {1u << 31, EVENT_TYPE_NOTICE,
                                      EVENT_NOTICE_DISCOVERY_CHANGED,
                                      LOG_DISCOVERY},
};

/*
 * A command has arrived that has the identifier of a waiting event request, if
 * there is one.  So the host has forgotten that request.  A response to it
 * would be taken for the response to the new command, so that it gets none: it
 * stays, among the first of aer[], until the association ends.
 */
void event_give_up(struct nvmf_ctrl *ctrl, uint16_t cid)
{
    for (unsigned int i = ctrl->aers_forgotten; i < ctrl->aer_count; i++) {
        struct nvmf_request *req = ctrl->aer[i];

        if (req->sqe.cid == cid) {
            ctrl->aer[i] = ctrl->aer[ctrl->aers_forgotten];
            ctrl->aer[ctrl->aers_forgotten++] = req;
        }
    }
}

/* Report pending events while there are outstanding event requests. */
static void event_report(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    for (unsigned int i = 0;
         i < CTRL_EVENTS && ctrl->aer_count > ctrl->aers_forgotten; i++) {
        struct nvmf_request *req;

        if (!(ctrl->events_pending & ~ctrl->events_masked & BIT(i))) {
            continue;
        }
        ctrl->events_pending &= (uint16_t)~BIT(i);
        ctrl->events_masked |= (uint16_t)BIT(i);
        req = ctrl->aer[--ctrl->aer_count];
        req->result[0] = (uint32_t)events[i].lid << 16 |
                         (uint32_t)events[i].info << 8 | events[i].type;
        request_resume(req);
        request_complete(target, req, NVME_SC_SUCCESS);
    }
}

/* Raise an event: it is reported, if enabled, now or at the next request. */
void event_raise(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                 enum ctrl_event event)
{
    uint32_t bits = events[event].config_bits;

    if (!ctrl_is(ctrl, CTRL_HEARS) ||
        (bits != 0 && !(ctrl->features.async_event_config & bits))) {
        return;
    }
    ctrl->events_pending |= (uint16_t)BIT(event);
    event_report(target, ctrl);
}

/* The host has read a log page without Retain Asynchronous Event: unmask the
 * events that this page reports. */
void event_log_read(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                    uint8_t lid)
{
    for (unsigned int i = 0; i < CTRL_EVENTS; i++) {
        if (events[i].lid == lid) {
            ctrl->events_masked &= (uint16_t)~BIT(i);
        }
    }
    event_report(target, ctrl);
}

/* Raise an event for each warning that was not there before. */
void event_check_health(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    uint8_t warning = log_critical_warning(target, ctrl);
    uint8_t wanted =
        warning & (uint8_t)(ctrl->features.async_event_config & 0xff);
    uint8_t worse = wanted & (uint8_t)~ctrl->warnings_told;

    if (ctrl->is_discovery) {
        return;
    }
    ctrl->warnings_told = wanted;
    for (unsigned int i = 0; i <= CTRL_EVENT_SMART_SPARE; i++) {
        if (worse & events[i].config_bits) {
            event_raise(target, ctrl, (enum ctrl_event)i);
        }
    }
}

/* Keep an Asynchronous Event Request until there is an event to report.  Its
 * identifier no longer counts as used: see cid.c. */
uint16_t event_request(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_ctrl *ctrl = request_ctrl(target, req);

    if (ctrl->aer_count == NVMF_MAX_AERS) {
        return refuse_status(NVME_SC_AER_LIMIT);
    }
    request_wait_event(req);
    cid_release(req);
    ctrl->aer[ctrl->aer_count++] = req;
    event_report(target, ctrl);
    return NVMF_PENDING;
}

static void take_aer(struct nvmf_ctrl *ctrl, unsigned int i)
{
    ctrl->aer_count--;
    ctrl->aer[i] = ctrl->aer[ctrl->aer_count];
}

bool event_abort(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                 uint16_t cid)
{
    for (unsigned int i = ctrl->aers_forgotten; i < ctrl->aer_count; i++) {
        struct nvmf_request *req = ctrl->aer[i];

        if (req->sqe.cid == cid) {
            take_aer(ctrl, i);
            request_resume(req);
            request_complete(target, req, NVME_SC_ABORT_REQUESTED);
            return true;
        }
    }
    return false;
}

/*
 * Complete all event requests as aborted, except those that the host has
 * forgotten.  At the end of an association the admin queue is closing: then
 * these completions are dropped, and forgotten requests end, too.
 */
void event_abort_all(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    if (ctrl->state == CTRL_ENDING) {
        ctrl->aers_forgotten = 0;
    }
    while (ctrl->aer_count > ctrl->aers_forgotten) {
        struct nvmf_request *req = ctrl->aer[ctrl->aer_count - 1];

        take_aer(ctrl, ctrl->aer_count - 1u);
        request_resume(req);
        request_complete(target, req, NVME_SC_ABORT_REQUESTED);
    }
}
