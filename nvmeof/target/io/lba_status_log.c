/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The LBA Status Information log page (LID 0Eh), its asynchronous event and its
 * feature (15h).
 *
 * A host that reads the page with Retain Asynchronous Event sees the same
 * content until it reads the page without, so each controller has a copy of
 * what its host sees.  When the list of tracked blocks was too short for a
 * namespace, the page says that all of it has to be looked at (NLRD FFFFFFFFh),
 * until the host has read that.
 * Spec: NVM Command Set 1.0 sections 4.1.4.5, 4.1.3.2, 4.1.3.3 and 5.8.
 */
#include <string.h>

#include "nvmeof/target/events/events.h"
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/io/io.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/lba_status.h"

enum {
    UNIT_US = 100 * 1000,
    LOG_RAE_BIT = 15, /* bit position in dword 10 */
};
_Static_assert(LBA_LOG_HEADER_LEN + NVMF_MAX_NAMESPACES * LBA_ELEMENT_LEN +
                       LBA_LIST_MAX * LBA_RANGE_LEN <=
                   sizeof(((struct nvmf_target *)0)->page),
               "the log page fits into its buffer");

static struct lba_view *view_of(struct nvmf_target *target,
                                const struct nvmf_ctrl *ctrl)
{
    return &target->lba.view[ctrl - target->ctrl];
}

static bool is_lost(const struct lba_view *view, uint32_t nsid)
{
    return view->lost[(nsid - 1) / 32] >> (nsid - 1) % 32 & 1;
}

/* ---- The page. */

/* Copy what the drive knows of the namespaces that the controller has. */
static void update_view(const struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl, struct lba_view *view)
{
    const struct lba_status *lba = &target->lba;

    memset(view->lost, 0, sizeof(view->lost));
    for (uint32_t i = 0; i < NVMF_MAX_NAMESPACES; i++) {
        if (ns_is_active(ctrl, i + 1) && lba->lost[i] > view->read_number) {
            view->lost[i / 32] |= BIT(i % 32);
        }
    }
    view->list.count = 0;
    for (uint16_t i = 0; i < lba->list.count; i++) {
        const struct lba_range *range = &lba->list.range[i];

        if (ns_is_active(ctrl, range->nsid) && !is_lost(view, range->nsid)) {
            view->list.range[view->list.count++] = *range;
        }
    }
    view->generation = target->counters.lba_generation;
}

static uint32_t count_ranges(const struct lba_view *view, uint32_t nsid)
{
    uint32_t count = 0;

    for (uint16_t i = 0; i < view->list.count; i++) {
        count += view->list.range[i].nsid == nsid;
    }
    return count;
}

/* Append the element of a namespace.  @return its length; 0: it has none */
static uint32_t put_element(const struct lba_view *view, uint32_t nsid,
                            uint8_t *buf)
{
    uint32_t count = count_ranges(view, nsid);
    uint16_t i = lba_list_find(&view->list, (uint8_t)nsid, 0);

    if (is_lost(view, nsid)) {
        lba_element_emit(buf, nsid, LBA_LOG_UNKNOWN, LBA_ACTION_SCAN);
        return LBA_ELEMENT_LEN;
    }
    if (count == 0) {
        return 0;
    }
    lba_element_emit(buf, nsid, count, LBA_ACTION_TRACKED);
    for (uint32_t k = 0; k < count; k++) {
        const struct lba_range *range = &view->list.range[i + k];

        lba_range_emit(buf + LBA_ELEMENT_LEN + k * LBA_RANGE_LEN,
                       range->first_lba, range->count_blocks);
    }
    return LBA_ELEMENT_LEN + count * LBA_RANGE_LEN;
}

/* ESTULB: the number of blocks in all ranges. */
static uint32_t estimate_blocks(const struct lba_view *view)
{
    uint64_t blocks = 0;

    for (uint32_t nsid = 1; nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        if (is_lost(view, nsid)) {
            return LBA_LOG_UNKNOWN;
        }
    }
    for (uint16_t i = 0; i < view->list.count; i++) {
        blocks += view->list.range[i].count_blocks;
    }
    return (uint32_t)MIN(blocks, (uint64_t)LBA_LOG_UNKNOWN - 1);
}

/* Write the page.  @return its length */
static uint32_t put_page(const struct lba_view *view, uint8_t *page)
{
    uint32_t len = LBA_LOG_HEADER_LEN;
    uint32_t elements = 0;

    for (uint32_t nsid = 1; nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        uint32_t more = put_element(view, nsid, page + len);

        elements += more != 0;
        len += more;
    }
    lba_log_header_emit(page, len, elements, estimate_blocks(view),
                        (uint16_t)view->generation);
    return len;
}

void lba_log_build(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                   uint32_t part)
{
    (void)part;
    (void)put_page(view_of(target, ctrl), target->page);
}

uint32_t lba_log_len(struct nvmf_target *target, const struct nvmf_ctrl *ctrl)
{
    return put_page(view_of(target, ctrl), target->page);
}

void lba_log_check_read(struct nvmf_target *target,
                        const struct nvmf_request *req)
{
    const struct nvmf_ctrl *ctrl = request_ctrl(target, req);
    struct lba_view *view = view_of(target, ctrl);

    if (!(req->sqe.cdw10 & BIT(LOG_RAE_BIT)) || !view->is_frozen) {
        update_view(target, ctrl, view);
    }
}

void lba_log_begin_read(struct nvmf_target *target,
                        const struct nvmf_request *req)
{
    view_of(target, request_ctrl(target, req))->is_frozen =
        req->sqe.cdw10 & BIT(LOG_RAE_BIT);
}

void lba_log_end_read(struct nvmf_target *target, const struct nvmf_ctrl *ctrl)
{
    struct lba_view *view = view_of(target, ctrl);

    view->read_number = view->generation;
    view->interval_us = target->now_us;
}

void lba_log_reset_ctrl(struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl)
{
    *view_of(target, ctrl) = (struct lba_view){.interval_us = target->now_us};
}

/* ---- The event. */

/* Whether the host can read of blocks that were added after this number. */
static bool has_news(const struct nvmf_target *target,
                     const struct nvmf_ctrl *ctrl, uint64_t number)
{
    const struct lba_status *lba = &target->lba;

    if (target->counters.lba_generation <= number) {
        return false;
    }
    for (uint16_t i = 0; i < lba->list.count; i++) {
        const struct lba_range *range = &lba->list.range[i];

        if (range->number > number && ns_is_active(ctrl, range->nsid)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < NVMF_MAX_NAMESPACES; i++) {
        if (lba->lost[i] > number && ns_is_active(ctrl, i + 1)) {
            return true;
        }
    }
    return false;
}

static uint64_t report_interval_us(const struct nvmf_ctrl *ctrl)
{
    return (uint64_t)MAX(ctrl->features.lba_report_interval,
                         LBA_POLL_INTERVAL) *
           UNIT_US;
}

uint64_t lba_log_timer(struct nvmf_target *target)
{
    uint64_t next_us = UINT64_MAX;

    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        struct nvmf_ctrl *ctrl = &target->ctrl[i];
        struct lba_view *view = &target->lba.view[i];
        uint64_t due_us = view->interval_us + report_interval_us(ctrl);

        if (!ctrl_is(ctrl, CTRL_HEARS_NVM) ||
            !(ctrl->features.async_event_config & OAES_LBA_STATUS) ||
            !has_news(target, ctrl, view->alert_number)) {
            continue;
        }
        if (due_us > target->now_us) {
            next_us = MIN(next_us, due_us);
            continue;
        }
        view->alert_number = target->counters.lba_generation;
        event_raise(target, ctrl, CTRL_EVENT_LBA_STATUS);
    }
    return next_us;
}

/* An alert that no host has got yet is not due any more without tracked
 * blocks. */
void lba_log_withdraw_alerts(struct nvmf_target *target)
{
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        struct nvmf_ctrl *ctrl = &target->ctrl[i];

        if (ctrl->events_pending & BIT(CTRL_EVENT_LBA_STATUS) &&
            !has_news(target, ctrl, 0)) {
            ctrl->events_pending &= (uint16_t)~BIT(CTRL_EVENT_LBA_STATUS);
        }
    }
}

/* ---- The feature. */

uint32_t lba_attributes_get(const struct nvmf_target *target,
                            const struct nvmf_ctrl *ctrl,
                            struct nvmf_request *req)
{
    (void)target;
    (void)req;
    return (uint32_t)LBA_POLL_INTERVAL << LBA_ATTRIBUTES_LSIPI |
           MAX(ctrl->features.lba_report_interval, LBA_POLL_INTERVAL);
}

/* LSIPI cannot be changed.  The shortest report interval is LSIPI. */
uint16_t lba_attributes_set(struct nvmf_target *target,
                            struct nvmf_request *req)
{
    struct nvmf_ctrl *ctrl = request_ctrl(target, req);

    ctrl->features.lba_report_interval = (uint16_t)req->sqe.cdw11;
    req->result[0] = lba_attributes_get(target, ctrl, req);
    return NVME_SC_SUCCESS;
}
