/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checks before a command is executed: the state of its queue pair and
 * controller, the fields that all commands share, its own fields, and its data.
 * Spec: NVM Express Base 1.4 section 4.2; Fabrics 1.1 sections 2 and 3.
 */
#include "nvmeof/target/request/request.h"
#include "nvmeof/target/base/level.h"

static const struct nvmf_command no_command = {0};

/* The row of an I/O command, whose opcode is below IO_COMMANDS.  Its namespace
 * says which command set it is of; without one, it is refused anyway. */
static inline const struct nvmf_command *find_io_command(
    const struct nvmf_target *target, const struct nvme_sqe *sqe)
{
    uint32_t i = sqe->nsid - 1; /* wraps if the NSID is 0 */
    const struct nvmf_command_set *set =
        i < NVMF_MAX_NAMESPACES ? target->ns[i].command_set : &nvm_command_set;
    const struct nvmf_command *row = set->row[sqe->opcode];

    return row == NULL ||
                   (sqe->opcode == NVM_WRITE_UNCORRECTABLE && !target->can_mark)
               ? &no_command
               : row;
}

/* The command's row of a table, or a row without `execute`. */
static const struct nvmf_command *find_command(const struct nvmf_target *target,
                                               const struct nvmf_qpair *qpair,
                                               const struct nvme_sqe *sqe)
{
    if (sqe->opcode == NVME_FABRICS) {
        return sqe->fctype < FABRICS_COMMANDS ? &fabrics_commands[sqe->fctype]
                                              : &no_command;
    }
    if (qpair->qid != 0) {
        return sqe->opcode < IO_COMMANDS ? find_io_command(target, sqe)
                                         : &no_command;
    }
    if (sqe->opcode >= ADMIN_COMMANDS) {
        return &no_command;
    }
    if (qpair->ctrl != NO_CTRL && target->ctrl[qpair->ctrl].is_discovery &&
        !(admin_commands[sqe->opcode].flags & COMMAND_ON_DISCOVERY)) {
        return &no_command;
    }
    if (sanitize_status(target) != 0 && qpair->ctrl != NO_CTRL &&
        !target->ctrl[qpair->ctrl].is_discovery &&
        sanitize_refuses_command(sqe->opcode)) {
        return &sanitize_refusal;
    }
    return level_has(target, LEVEL_ADMIN, sqe->opcode)
               ? &admin_commands[sqe->opcode]
               : &no_command;
}

/* As check_state(), while the queue pair takes only some commands. */
static uint16_t check_early(struct nvmf_target *target,
                            struct nvmf_request *req)
{
    const struct nvme_sqe *sqe = &req->sqe;
    bool is_fabrics = sqe->opcode == NVME_FABRICS;
    bool is_connect = is_fabrics && sqe->fctype == FABRICS_CONNECT;

    if (request_qpair(target, req)->state == QPAIR_CONNECTING) {
        return is_connect ? NVME_SC_SUCCESS
                          : refuse_status(NVME_SC_COMMAND_SEQUENCE);
    }
    if (is_connect) {
        return refuse_status(NVME_SC_COMMAND_SEQUENCE);
    }
    if (is_fabrics && (sqe->fctype == FABRICS_AUTH_SEND ||
                       sqe->fctype == FABRICS_AUTH_RECEIVE)) {
        return NVME_SC_SUCCESS;
    }
    return request_hooks.unproven_command(target, req);
}

/* Whether the queue pair takes commands that are not of Fabrics. */
static inline bool takes_commands(const struct nvmf_target *target,
                                  const struct nvmf_qpair *qpair)
{
    const struct nvmf_ctrl *ctrl;

    if (qpair->state != QPAIR_LIVE) {
        return false;
    }
    ctrl = &target->ctrl[qpair->ctrl];
    return ctrl->state == CTRL_READY && ctrl->shst == SHST_NORMAL;
}

/* Whether the states of the queue pair and of the controller allow a command
 * now, checked in the order of Fabrics 1.1 section 3.3. */
static uint16_t check_state(struct nvmf_target *target,
                            const struct nvmf_qpair *qpair,
                            struct nvmf_request *req)
{
    const struct nvme_sqe *sqe = &req->sqe;
    bool is_fabrics = sqe->opcode == NVME_FABRICS;
    bool is_connect = is_fabrics && sqe->fctype == FABRICS_CONNECT;

    if (qpair->state != QPAIR_LIVE) {
        return check_early(target, req);
    }
    if (is_connect) {
        return refuse_status(NVME_SC_COMMAND_SEQUENCE);
    }
    if (is_fabrics) {
        return NVME_SC_SUCCESS;
    }
    return takes_commands(target, qpair)
               ? NVME_SC_SUCCESS
               : refuse_status(NVME_SC_COMMAND_SEQUENCE);
}

/* Whether the command is of the kind that a fused pair is made of. */
static bool fused_is_half(const struct nvmf_qpair *qpair,
                          const struct nvme_sqe *sqe)
{
    uint8_t opcode = sqe->fuse == SQE_FUSE_FIRST ? NVM_COMPARE : NVM_WRITE;

    return qpair->qid != 0 && sqe->fuse != 3 && sqe->opcode == opcode;
}

/* Check flags that are not those of a command on its own with an SGL. */
static __attribute__((noinline)) uint16_t
check_flags(const struct nvmf_qpair *qpair, struct nvmf_request *req)
{
    if (req->sqe.fuse != 0 && !fused_is_half(qpair, &req->sqe)) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_FLAGS, 0);
    }
    return req->sqe.psdt == SQE_PSDT_SGL
               ? NVME_SC_SUCCESS
               : refuse_field(req, NVME_SC_INVALID_FIELD, SQE_FLAGS, 6);
}

/* Check the fields that all commands share. */
static inline uint16_t check_common(struct nvmf_target *target,
                                    const struct nvmf_qpair *qpair,
                                    struct nvmf_request *req)
{
    uint16_t status;

    if (req->command->execute == NULL) {
        return refuse_field(
            req, NVME_SC_INVALID_OPCODE,
            req->sqe.opcode == NVME_FABRICS ? SQE_FCTYPE : SQE_OPCODE, 0);
    }
    if (__builtin_expect(req->sqe.fuse != 0 || req->sqe.psdt != SQE_PSDT_SGL,
                         0)) {
        status = check_flags(qpair, req);
        if (status != NVME_SC_SUCCESS) {
            return status;
        }
    }
    if (req->command->flags & COMMAND_NEEDS_NS) {
        return ns_check(target, &target->ctrl[qpair->ctrl], req);
    }
    return NVME_SC_SUCCESS;
}

/* Check a descriptor that does not name exactly the data that the command
 * moves, in the host's memory. */
static __attribute__((noinline)) uint16_t
check_other_data(struct nvmf_request *req)
{
    const struct nvmf_data *data = req->data;
    bool may_be_longer = req->command->flags & COMMAND_SGL_LONGER;

    if (req->data_len == 0) {
        return NVME_SC_SUCCESS;
    }
    if (data->status == NVME_SC_TRANSIENT_TRANSPORT) {
        return data->status; /* no fault of the command */
    }
    if (data->status != NVME_SC_SUCCESS) {
        return refuse_field(req, (enum nvme_status)data->status, SQE_SGL1, 0);
    }
    if (data->len_bytes < req->data_len ||
        (data->len_bytes != req->data_len && !may_be_longer)) {
        return refuse_field(req, NVME_SC_SGL_INVALID_LENGTH, SQE_SGL1, 0);
    }
    if (data->in_capsule.ptr != NULL &&
        req->command->direction == DATA_TO_HOST) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_SGL1, 0);
    }
    return NVME_SC_SUCCESS;
}

/* Whether the host's descriptor matches the data that the command moves. */
static inline uint16_t check_data(struct nvmf_request *req)
{
    const struct nvmf_data *data = req->data;

    return data->len_bytes == req->data_len &&
                   data->status == NVME_SC_SUCCESS &&
                   data->in_capsule.ptr == NULL
               ? NVME_SC_SUCCESS
               : check_other_data(req);
}

/* Check the fields of a command that may be executed now, and its data. */
static inline uint16_t check_fields(struct nvmf_target *target,
                                    const struct nvmf_qpair *qpair,
                                    struct nvmf_request *req)
{
    uint16_t status = check_common(target, qpair, req);

    if (status == NVME_SC_SUCCESS && req->command->check != NULL) {
        status = req->command->check(target, req);
    }
    return status == NVME_SC_SUCCESS ? check_data(req) : status;
}

/* As request_check(), for any command and in any state. */
static __attribute__((noinline)) uint16_t
check_any(struct nvmf_target *target, const struct nvmf_qpair *qpair,
          struct nvmf_request *req)
{
    uint16_t status = check_state(target, qpair, req);

    req->command = find_command(target, qpair, &req->sqe);
    if (qpair->qid == 0 && qpair->ctrl != NO_CTRL) {
        request_hooks.event_given_up(&target->ctrl[qpair->ctrl], req->sqe.cid);
    }
    if (req->sqe.opcode != NVME_FABRICS && !cid_claim(target, req)) {
        return refuse_field(req, NVME_SC_COMMAND_ID_CONFLICT, SQE_CID, 0);
    }
    return status == NVME_SC_SUCCESS ? check_fields(target, qpair, req)
                                     : status;
}

/* Do all checks that are possible before data moves.  @return a status, or 0 */
uint16_t request_check(struct nvmf_target *target, struct nvmf_qpair *qpair,
                       struct nvmf_request *req)
{
    if (qpair->qid == 0 || req->sqe.opcode >= IO_COMMANDS ||
        !takes_commands(target, qpair)) {
        return check_any(target, qpair, req);
    }
    req->command = find_io_command(target, &req->sqe);
    if (!cid_claim(target, req)) {
        return refuse_field(req, NVME_SC_COMMAND_ID_CONFLICT, SQE_CID, 0);
    }
    return check_fields(target, qpair, req);
}
