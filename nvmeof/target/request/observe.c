/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports to observers: commands and media operations when they end (as trace
 * events, lib/trace.h), and the result of each Connect
 * (nvmf_config.connect_ended).
 */
#include "nvmeof/target/request/request.h"

#include <string.h>

enum {
    STATUS_DROPPED = 0xffff, /* no response, since its queue pair has closed */
    TRACE_IS_ADMIN = BIT(16),
};

void observe_begin(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct trace *trace = target->trace;

    req->trace = trace;
    req->entered_us = trace->now_us(trace->ctx);
    memset(req->stage_us, 0, sizeof(req->stage_us));
}

void observe_leave_state(struct nvmf_request *req)
{
    uint64_t now_us = req->trace->now_us(req->trace->ctx);

    req->stage_us[req->state] += (uint32_t)(now_us - req->entered_us);
    req->entered_us = now_us;
}

static bool has_lba(const struct nvmf_request *req, uint16_t qid)
{
    return qid != 0 &&
           (req->sqe.opcode == NVM_READ || req->sqe.opcode == NVM_WRITE ||
            req->sqe.opcode == NVM_WRITE_ZEROES);
}

/* Report when the command passed the transport's hardware, in both ways. */
static void observe_path(const struct nvmf_target *target,
                         const struct nvmf_request *req)
{
    const struct trace_record record = {
        .type = TRACE_COMMAND_PATH,
        .qpn = target->qpair[req->qpair].label,
        .request = req->transfer.number,
        .arg = {(uint32_t)req->transfer.arrived_ns,
                (uint32_t)(req->transfer.arrived_ns >> 32),
                (uint32_t)req->transfer.acknowledged_ns,
                (uint32_t)(req->transfer.acknowledged_ns >> 32)},
    };

    if (trace_is_on(target->trace, TRACE_GROUP_PATH)) {
        target->trace->emit(target->trace->ctx, &record, NULL);
    }
}

void observe_end(const struct nvmf_target *target,
                 const struct nvmf_request *req)
{
    const struct nvmf_qpair *qpair = &target->qpair[req->qpair];
    const uint32_t *stage_us = req->stage_us;
    bool is_answered = req->state == NVMF_REQUEST_RESPONDING;
    struct nvme_cqe cqe;
    struct trace_record record = {
        .type = TRACE_COMMAND,
        .qpn = qpair->label,
        .request = req->transfer.number,
        .arg = {req->sqe.opcode, req->sqe.nsid, 0, 0, req->data_len,
                STATUS_DROPPED},
    };

    observe_path(target, req); /* Its reader wants it before the command. */
    if (!trace_is_on(target->trace, TRACE_GROUP_COMMANDS)) {
        return;
    }
    if (req->sqe.opcode == NVME_FABRICS) {
        record.arg[0] |= (uint32_t)req->sqe.fctype << 8;
        record.arg[1] = 0; /* the field has another meaning for this command */
    }
    record.arg[0] |= qpair->qid == 0 ? (uint32_t)TRACE_IS_ADMIN : 0;
    if (has_lba(req, qpair->qid)) {
        record.arg[2] = req->sqe.cdw10;
        record.arg[3] = req->sqe.cdw11;
    }
    if (is_answered) {
        nvme_cqe_parse(&cqe, req->transfer.cqe);
        record.arg[5] = cqe.status;
    }
    record.arg[6] = stage_us[NVMF_REQUEST_WAIT_BUFFER] +
                    stage_us[NVMF_REQUEST_WAIT_MEDIA] +
                    stage_us[NVMF_REQUEST_WAIT_TURN];
    record.arg[7] = stage_us[NVMF_REQUEST_FETCHING];
    record.arg[8] = stage_us[NVMF_REQUEST_MEDIA];
    record.arg[9] =
        stage_us[NVMF_REQUEST_SENDING] + stage_us[NVMF_REQUEST_RESPONDING];
    record.arg[10] = record.arg[6] + record.arg[7] + record.arg[8] +
                     record.arg[9] + stage_us[NVMF_REQUEST_EXECUTING] +
                     stage_us[NVMF_REQUEST_AER] + stage_us[NVMF_REQUEST_HELD] +
                     stage_us[NVMF_REQUEST_AUTH];
    target->trace->emit(target->trace->ctx, &record, NULL);
}

void observe_media(const struct nvmf_target *target,
                   const struct nvmf_request *req, enum media_status status)
{
    const struct nvmf_qpair *qpair = &target->qpair[req->qpair];
    struct trace_record record = {
        .type = TRACE_MEDIA,
        .qpn = qpair->label,
        .request = req->transfer.number,
        .arg = {req->sqe.opcode, 0, 0, 0, (uint32_t)status,
                req->stage_us[NVMF_REQUEST_MEDIA]},
    };

    if (has_lba(req, qpair->qid)) {
        record.arg[1] = req->sqe.cdw10;
        record.arg[2] = req->sqe.cdw11;
        record.arg[3] = (req->sqe.cdw12 & 0xffff) + 1;
    }
    target->trace->emit(target->trace->ctx, &record, NULL);
}

/* Read the host NQN from Connect's data; "" if the data did not arrive. */
static void read_hostnqn(const struct nvmf_request *req,
                         struct connect_data *data)
{
    uint8_t buf[CONNECT_DATA_LEN];

    data->hostnqn[0] = '\0';
    if (req->transfer.piece_count != 0 && req->data_len == CONNECT_DATA_LEN) {
        request_read_data(req, 0, buf, sizeof(buf));
        if (!connect_data_parse(data, buf, sizeof(buf))) {
            data->hostnqn[0] = '\0';
        }
    }
}

/* Whether the key of TLS is the reason of a refusal: it is another host's, or a
 * generated one, which a change of the list of hosts voids. */
static bool is_other_host(const struct nvmf_target *target, uint16_t qpair,
                          const char *hostnqn)
{
    const struct nvmf_transport *transport = target->qpair[qpair].transport;

    return (transport->channel != NULL &&
            transport->channel(transport->ctx, qpair).kind ==
                NVMF_CHANNEL_GENERATED) ||
           (transport->admits != NULL &&
            !transport->admits(transport->ctx, qpair, hostnqn));
}

void observe_connect(struct nvmf_target *target, const struct nvmf_request *req,
                     uint16_t status)
{
    struct connect_command command;
    struct nvmf_connect_end end = {
        .qpair = req->qpair,
        .status = status & NVME_SC_MASK,
        .label = target->qpair[req->qpair].label,
        .request = req->transfer.number,
    };
    struct connect_data data;

    if (target->config.connect_ended == NULL) {
        return;
    }
    connect_command_parse(&command, &req->sqe);
    end.qid = command.qid; /* the queue pair has it when it is connected */
    if (end.status == NVME_SC_SUCCESS) {
        end.cntlid = (uint16_t)req->result[0];
    } else {
        end.field = req->result[0];
    }
    read_hostnqn(req, &data);
    /* A name without a NUL is cut at the longest length. */
    memcpy(end.hostnqn, data.hostnqn,
           MIN(nvme_nqn_len(data.hostnqn), (size_t)NVMF_NQN_MAX));
    end.is_other_host = end.status == NVME_SC_CONNECT_INVALID_HOST &&
                        is_other_host(target, req->qpair, end.hostnqn);
    memcpy(end.host, target->qpair[req->qpair].host, sizeof(end.host));
    target->config.connect_ended(target->config.connect_ctx, &end);
}

const struct nvmf_config *nvmf_target_config(const struct nvmf_target *target)
{
    return &target->config;
}

bool nvmf_target_ctrl_info(const struct nvmf_target *target, uint16_t index,
                           struct nvmf_ctrl_info *info)
{
    static const char *const names[CTRL_STATES] = {
        [CTRL_FREE] = "free",           [CTRL_UNPROVEN] = "unproven",
        [CTRL_DISABLED] = "disabled",   [CTRL_READY] = "ready",
        [CTRL_RESETTING] = "resetting", [CTRL_FAILED] = "failed",
        [CTRL_PARTING] = "parting",     [CTRL_ENDING] = "ending",
    };
    const struct nvmf_ctrl *ctrl = &target->ctrl[index];

    if (!ctrl_is(ctrl, CTRL_HAS_SLOT)) {
        return false;
    }
    *info = (struct nvmf_ctrl_info){
        .cntlid = ctrl->cntlid,
        .qpairs = ctrl->qpair_count,
        .is_discovery = ctrl->is_discovery,
        .is_managed = ctrl_is(ctrl, CTRL_IS_MANAGED),
        .keep_alive_ms = ctrl->kato_ms,
        .csts = ctrl_csts(ctrl),
        .state = names[ctrl->state],
    };
    memcpy(info->hostnqn, ctrl->hostnqn, nvme_nqn_len(ctrl->hostnqn));
    return true;
}

bool nvmf_target_qpair_info(const struct nvmf_target *target, uint16_t index,
                            struct nvmf_qpair_info *info)
{
    static const char *const names[QPAIR_STATES] = {
        [QPAIR_FREE] = "free",
        [QPAIR_RESERVED] = "reserved",
        [QPAIR_CONNECTING] = "connecting",
        [QPAIR_AUTHENTICATING] = "authenticating",
        [QPAIR_LIVE] = "live",
        [QPAIR_CLOSING] = "closing",
        [QPAIR_DRAINING] = "draining",
    };
    const struct nvmf_qpair *qpair = &target->qpair[index];

    if (qpair->state == QPAIR_FREE) {
        return false;
    }
    *info = (struct nvmf_qpair_info){
        .label = qpair->label,
        .qid = qpair->qid,
        .cntlid = qpair->ctrl != NO_CTRL ? target->ctrl[qpair->ctrl].cntlid : 0,
        .entries = qpair->sqsize,
        .in_flight = qpair->in_flight,
        .state = names[qpair->state],
    };
    memcpy(info->host, qpair->host, sizeof(info->host));
    return true;
}

_Static_assert(NVMF_REQUEST_STATES == 12, "each state has a name here");

bool nvmf_target_request_info(const struct nvmf_target *target,
                              const struct nvmf_transfer *transfer,
                              uint64_t now_us, struct nvmf_request_info *info)
{
    const struct nvmf_request *req =
        container_of(transfer, const struct nvmf_request, transfer);
    static const char *const names[NVMF_REQUEST_STATES] = {
        [NVMF_REQUEST_EXECUTING] = "executing",
        [NVMF_REQUEST_WAIT_BUFFER] = "waits-for-buffers",
        [NVMF_REQUEST_FETCHING] = "fetching",
        [NVMF_REQUEST_WAIT_MEDIA] = "waits-for-media",
        [NVMF_REQUEST_MEDIA] = "media",
        [NVMF_REQUEST_AER] = "waits-for-event",
        [NVMF_REQUEST_SENDING] = "sending",
        [NVMF_REQUEST_RESPONDING] = "responding",
        [NVMF_REQUEST_HELD] = "held-by-fault",
        [NVMF_REQUEST_AUTH] = "authenticating",
        [NVMF_REQUEST_WAIT_TURN] = "waits-for-command",
    };
    const struct nvmf_qpair *qpair = &target->qpair[req->qpair];
    bool is_fabrics = req->sqe.opcode == NVME_FABRICS;

    if (req->state == NVMF_REQUEST_FREE) {
        return false;
    }
    *info = (struct nvmf_request_info){
        .number = req->transfer.number,
        .label = qpair->label,
        .qid = qpair->qid,
        .cid = req->sqe.cid,
        .opcode = req->sqe.opcode,
        .fctype = is_fabrics ? req->sqe.fctype : 0,
        .has_lba = !is_fabrics && has_lba(req, qpair->qid),
        .nsid = is_fabrics ? 0 : req->sqe.nsid,
        .lba = (uint64_t)req->sqe.cdw11 << 32 | req->sqe.cdw10,
        .len_bytes = req->data_len,
        .state = names[req->state],
        .age_us = now_us - req->arrived_us,
    };
    return true;
}
