/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which namespaces have reservations, and which commands a reservation forbids.
 * Spec: NVM Express Base 1.4 section 8.8.
 *
 * Shared namespaces with an NSID of 1 to 16 have reservations, as the data
 * sheet says.
 */
#include "nvmeof/target/base/base.h"
#include "nvmeof/wire/identify.h"

bool reservation_is_possible(const struct nvmf_ns *ns)
{
    return ns->config.nsid >= 1 &&
           ns->config.nsid <= NVMF_RESERVATION_NAMESPACES &&
           !ns->volume.is_private;
}

uint8_t reservation_capabilities(const struct nvmf_target *target,
                                 const struct nvmf_ns *ns)
{
    bool has_ptpl = target->config.reservations.save != NULL;

    if (!reservation_is_possible(ns)) {
        return 0;
    }
    return (uint8_t)(RESCAP_ALL_TYPES | RESCAP_IEKEY_1_3 |
                     (has_ptpl ? RESCAP_PTPL : 0));
}

struct reservation *reservation_of(struct nvmf_target *target, uint32_t nsid)
{
    const struct nvmf_ns *ns = ns_find_allocated(target, nsid);

    return ns != NULL && reservation_is_possible(ns)
               ? &target->reservation[nsid - 1]
               : NULL;
}

bool reservation_conflicts(const struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl, uint32_t nsid,
                           bool is_write)
{
    return nsid >= 1 && nsid <= NVMF_RESERVATION_NAMESPACES &&
           reservation_forbids(&target->reservation[nsid - 1], ctrl->hostid,
                               is_write);
}

bool reservation_conflicts_any(struct nvmf_target *target,
                               const struct nvmf_ctrl *ctrl,
                               bool are_inactive_too)
{
    for (uint32_t nsid = 1; nsid <= NVMF_RESERVATION_NAMESPACES; nsid++) {
        if ((are_inactive_too || ns_is_active(ctrl, nsid)) &&
            reservation_conflicts(target, ctrl, nsid, true)) {
            return true;
        }
    }
    return false;
}

/*
 * Refuse a command because of a reservation.  The error log gets no entry: this
 * is no error of the drive, but tells a host that it is fenced off.
 */
uint16_t reservation_refuse(struct nvmf_request *req)
{
    req->is_unlogged = true;
    return refuse_status(NVME_SC_RESERVATION_CONFLICT);
}

/* Whether an I/O command concerns reservations: it uses no blocks. */
bool reservation_is_command(uint8_t opcode)
{
    return opcode == NVM_RESERVATION_REGISTER ||
           opcode == NVM_RESERVATION_REPORT ||
           opcode == NVM_RESERVATION_ACQUIRE ||
           opcode == NVM_RESERVATION_RELEASE;
}

/* Whether a command may use a namespace that may have a reservation.  An admin
 * command with COMMAND_NEEDS_NS neither reads nor writes its data. */
uint16_t reservation_admit(struct nvmf_target *target, struct nvmf_request *req)
{
    uint8_t opcode = req->sqe.opcode;
    bool is_write = req->command->flags & COMMAND_WRITES || opcode == NVM_FLUSH;

    return request_qpair(target, req)->qid == 0 ||
                   reservation_is_command(opcode) ||
                   !reservation_conflicts(target, request_ctrl(target, req),
                                          req->sqe.nsid, is_write)
               ? NVME_SC_SUCCESS
               : reservation_refuse(req);
}
