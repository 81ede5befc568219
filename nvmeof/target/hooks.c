/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the parts of the target are joined: what the path of a command, and the
 * life of a controller, mean for the parts above them.  Only the target as a
 * whole knows all parts.
 */
#include "nvmeof/target/events/events.h"
#include "nvmeof/target/connect/connect.h"
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/io/io.h"
#include "nvmeof/target/reservations/reservations.h"
#include "nvmeof/target/admin/admin.h"
#include "nvmeof/target/features/features.h"

/* Let other commands have what the request keeps from them. */
static void release_holds(struct nvmf_target *target, struct nvmf_request *req)
{
    if (req->holds == HOLDS_ORDER) {
        order_leave(target, req); /* the usual write of one of several hosts */
        return;
    }
    if (req->holds & HOLDS_SCRATCH) {
        scratch_give(target, req);
    }
    if (req->holds & HOLDS_SOURCE) {
        copy_leave_sources(target, req);
    }
    if (req->holds & HOLDS_ORDER) {
        order_leave(target, req);
    }
    if (req->holds & HOLDS_SCAN) {
        lba_scan_give(target, req);
    }
    if (req->holds & HOLDS_PROTECTION) {
        ns_protect_end(target, req);
    }
}

const struct request_hooks request_hooks = {
    .pair_capsule = fused_capsule,
    .pair_begin = fused_begin,
    .pair_first_ended = fused_first_ended,
    .pair_abort_first = fused_abort_first,
    .pair_drop_first = fused_drop_first,
    .arrive = order_arrive,
    .depart = order_depart,
    .release_holds = release_holds,
    .rule_status = fault_status,
    .hold_response = fault_hold_response,
    .scan_takes_error = lba_scan_takes_error,
    .note_unreadable = lba_status_note_error,
    .media_error = pel_note_media_error,
    .measure = latency_note_answer,
    .ns_check_more = ns_check_closely,
    .ns_ended = ns_released,
    .source_released = ns_source_released,
    .awaited_ended = ns_awaited_ended,
    .disconnect = qpair_disconnect,
    .drained = qpair_drained,
    .unproven_command = auth_skipped,
    .event_given_up = event_give_up,
};

static void ns_refuses(struct nvmf_target *target, struct nvmf_ns *ns)
{
    fused_end_waiting(target, ns);
    patience_abort_waiting(target, ns);
}

const struct ns_hooks ns_hooks = {
    .written = io_note_written,
    .refuses = ns_refuses,
    .drained = sanitize_drained,
    .formatting = self_test_formatting,
    .forgotten = reservation_forget,
    .deleted = self_test_ns_removed,
    .blocks_gone = lba_status_forget,
    .attached = lba_status_attached,
};

static void ctrl_created(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    pel_reset_ctrl(target, ctrl);
    lba_log_reset_ctrl(target, ctrl);
}

static void ctrl_joined(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    ns_attach_new(target, ctrl);
    order_count_ctrl(target, ctrl, true);
}

static void ctrl_enabled(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    event_check_health(target, ctrl);
    firmware_tell_host(target, ctrl);
}

static void host_resets(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    pel_note_reset(target, ctrl);
}

static void ctrl_stops(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    self_test_ctrl_reset(target, ctrl);
    firmware_ctrl_reset(target, ctrl);
    pel_reset_ctrl(target, ctrl);
}

static void ctrl_reset(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    lba_log_reset_ctrl(target, ctrl);
}

static void ctrl_freed(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    order_count_ctrl(target, ctrl, false);
}

const struct connect_hooks connect_hooks = {
    .ctrl_created = ctrl_created,
    .ctrl_joined = ctrl_joined,
    .ctrl_enabled = ctrl_enabled,
    .host_resets = host_resets,
    .ctrl_stops = ctrl_stops,
    .ctrl_reset = ctrl_reset,
    .ctrl_detached = ns_detach_all,
    .abort_events = event_abort_all,
    .ctrl_freed = ctrl_freed,
    .queue_ends = order_keep,
    .room_is_free = connect_serve_waiting,
};
