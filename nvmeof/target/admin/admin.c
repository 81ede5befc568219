/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The admin command set.
 * Spec: NVM Express Base 1.4 section 5.
 *
 * Left out, and refused as an invalid opcode: Security, Directives.
 */
#include "nvmeof/target/internal.h"

enum { ABORT_NOT_DONE = 1 }; /* CQE dword 0 */

static uint16_t keep_alive(struct nvmf_target *target, struct nvmf_request *req)
{
    (void)target;
    (void)req;
    return NVME_SC_SUCCESS; /* any command restarts the keep-alive timer */
}

/* Abort commands that wait for an event, for buffers or for an earlier write,
 * and waiting scans; others continue. */
static uint16_t abort_execute(struct nvmf_target *target,
                              struct nvmf_request *req)
{
    struct nvmf_ctrl *ctrl = request_ctrl(target, req);
    uint16_t sqid = (uint16_t)req->sqe.cdw10;
    uint16_t cid = (uint16_t)(req->sqe.cdw10 >> 16);
    bool is_done = false;

    if (sqid == 0) {
        is_done = event_abort(target, ctrl, cid);
    }
    if (!is_done && sqid < ARRAY_LEN(ctrl->qpair) &&
        ctrl->qpair[sqid] != NO_QPAIR) {
        is_done = request_abort_waiting(target, ctrl->qpair[sqid], cid,
                                        NVME_SC_ABORT_REQUESTED);
    }
    req->result[0] = is_done ? 0 : ABORT_NOT_DONE;
    return NVME_SC_SUCCESS;
}

const struct nvmf_command admin_commands[ADMIN_COMMANDS] = {
    [ADMIN_GET_LOG_PAGE] = {.direction = DATA_TO_HOST,
                            .flags = COMMAND_ON_DISCOVERY | COMMAND_IS_QUERY,
                            .check = log_check,
                            .execute = log_execute},
    [ADMIN_IDENTIFY] = {.direction = DATA_TO_HOST,
                        .flags = COMMAND_ON_DISCOVERY | COMMAND_IS_QUERY,
                        .check = identify_check,
                        .execute = identify_execute},
    [ADMIN_ABORT] = {.execute = abort_execute},
    [ADMIN_SET_FEATURES] = {.direction = DATA_TO_CONTROLLER,
                            .flags = COMMAND_ON_DISCOVERY,
                            .check = feature_set_check,
                            .execute = feature_set},
    [ADMIN_GET_FEATURES] = {.direction = DATA_TO_HOST,
                            .flags = COMMAND_ON_DISCOVERY | COMMAND_IS_QUERY,
                            .check = feature_get_check,
                            .execute = feature_get},
    [ADMIN_ASYNC_EVENT_REQUEST] = {.flags = COMMAND_ON_DISCOVERY,
                                   .execute = event_request},
    [ADMIN_NS_MANAGEMENT] = {.direction = DATA_TO_CONTROLLER,
                             .flags =
                                 COMMAND_CHANGES_NS | COMMAND_CHANGES_NS_LIST,
                             .check = ns_management_check,
                             .execute = ns_management_execute},
    [ADMIN_FIRMWARE_COMMIT] = {.check = firmware_commit_check,
                               .execute = firmware_commit_execute},
    [ADMIN_FIRMWARE_DOWNLOAD] = {.direction = DATA_TO_CONTROLLER,
                                 .check = firmware_download_check,
                                 .execute = firmware_download_execute},
    [ADMIN_DEVICE_SELF_TEST] = {.check = self_test_check,
                                .execute = self_test_execute},
    [ADMIN_NS_ATTACHMENT] = {.direction = DATA_TO_CONTROLLER,
                             .flags =
                                 COMMAND_CHANGES_NS | COMMAND_CHANGES_NS_LIST,
                             .check = ns_attachment_check,
                             .execute = ns_attachment_execute},
    [ADMIN_FORMAT_NVM] = {.flags = COMMAND_WRITES | COMMAND_CHANGES_NS,
                          .check = ns_format_check,
                          .execute = ns_format_execute},
    [ADMIN_SANITIZE] = {.flags = COMMAND_WRITES,
                        .check = sanitize_check,
                        .execute = sanitize_execute},
    [ADMIN_GET_LBA_STATUS] = {.direction = DATA_TO_HOST,
                              .flags = COMMAND_NEEDS_NS | COMMAND_SGL_LONGER,
                              .check = lba_status_check,
                              .execute = lba_status_execute},
    [ADMIN_KEEP_ALIVE] = {.flags = COMMAND_ON_DISCOVERY, .execute = keep_alive},
};
