/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The admin command set.
 * Spec: NVM Express Base 1.4 section 5.
 *
 * Left out, and refused as an invalid opcode: Security, Directives.
 */
#include "nvmeof/target/events/events.h"
#include "nvmeof/target/admin/admin.h"

enum { ABORT_NOT_DONE = 1 }; /* CQE dword 0 */

uint16_t keep_alive_execute(struct nvmf_target *target,
                            struct nvmf_request *req)
{
    (void)target;
    (void)req;
    return NVME_SC_SUCCESS; /* any command restarts the keep-alive timer */
}

/* Abort commands that wait for an event, for buffers or for an earlier write,
 * and waiting scans; others continue. */
uint16_t abort_execute(struct nvmf_target *target, struct nvmf_request *req)
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
