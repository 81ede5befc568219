/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fabrics commands: Connect, Property Get, Property Set.  Authentication Send
 * and Receive are in host_auth.c.
 * Spec: NVMe over Fabrics 1.1 section 3; NVM Express Base 2.0 section 3.1.
 *
 * Left out, and refused as an invalid opcode: Disconnect.
 */
#include "nvmeof/target/events/events.h"
#include "nvmeof/target/connect/connect.h"
#include "nvmeof/target/base/level.h"

#include <string.h>

/* Refuse Connect; `field` is the offset of the invalid field in the SQE, or in
 * the data if it includes CONNECT_IATTR_DATA. */
static uint16_t connect_invalid(struct nvmf_request *req, uint32_t field)
{
    req->result[0] = field;
    return refuse_status(NVME_SC_CONNECT_INVALID);
}

static uint16_t connect_invalid_data(struct nvmf_request *req, uint32_t field)
{
    return connect_invalid(req, field | CONNECT_IATTR_DATA);
}

static uint16_t connect_check(struct nvmf_target *target,
                              struct nvmf_request *req)
{
    const struct nvmf_qpair *qpair = request_qpair(target, req);
    struct connect_command connect;
    uint16_t max_depth;

    connect_command_parse(&connect, &req->sqe);
    if (connect.recfmt != 0) {
        return refuse_field(req, NVME_SC_CONNECT_FORMAT, CONNECT_RECFMT, 0);
    }
    if (qpair->has_hints ? connect.qid != qpair->qid
                         : connect.qid > target->config.max_io_queues) {
        return connect_invalid(req, CONNECT_QID);
    }
    max_depth = qpair->has_hints ? qpair->depth : qpair_max_depth(connect.qid);
    if (connect.sqsize == 0 || connect.sqsize >= max_depth) {
        return connect_invalid(req, CONNECT_SQSIZE);
    }
    req->data_len = CONNECT_DATA_LEN;
    return NVME_SC_SUCCESS;
}

/* Compare names.  An unterminated name equals none; two empty names are equal.
 */
static bool nqn_equal(const char *a, const char *b)
{
    size_t len = nvme_nqn_len(a);

    return len <= NVME_NQN_MAX && len == nvme_nqn_len(b) &&
           memcmp(a, b, len) == 0;
}

/* Whether a host may connect, as auth_admit() and generated_admits() say. */
static uint16_t admit_host(struct nvmf_target *target,
                           const struct nvmf_request *req, const char *hostnqn,
                           uint8_t ctrl, bool *needs_auth)
{
    bool is_proven = generated_proves(target, req->qpair);

    if (request_qpair(target, req)->transport->is_inside) {
        return NVME_SC_SUCCESS;
    }
    if (!generated_admits(target, req->qpair, ctrl)) {
        return refuse_status(NVME_SC_CONNECT_INVALID_HOST);
    }
    return auth_admit(target, hostnqn, is_proven, needs_auth);
}

static uint16_t wait_in_line(struct nvmf_target *target,
                             struct nvmf_request *req, uint16_t charge)
{
    req->progress = charge;
    request_wait_turn(req);
    queue_push(&target->connecting, req);
    return NVMF_PENDING;
}

/*
 * A Connect finds too little of the queue budget, or no controller.  If queue
 * pairs without proof have to make room, it waits until they have: if it were
 * refused, their hosts could take the room again before this host comes back.
 *
 * @return a status, or NVMF_PENDING
 */
static uint16_t wait_for_room(struct nvmf_target *target,
                              struct nvmf_request *req, uint16_t charge)
{
    bool has_waited = req->progress != 0;

    if (!(has_waited && qpair_charge_expected(target) != 0) &&
        !displace_for_connect(target, req->qpair, charge)) {
        return NVME_SC_CONNECT_BUSY;
    }
    return wait_in_line(target, req, charge);
}

/* How many Connects wait that will need a controller. */
static unsigned int ctrls_wanted(const struct nvmf_target *target)
{
    unsigned int count = 0;

    for (const struct nvmf_request *req = target->connecting.head; req != NULL;
         req = req->next) {
        struct connect_command connect;

        connect_command_parse(&connect, &req->sqe);
        count += connect.qid == 0;
    }
    return count;
}

/*
 * All controllers are in use.  One of a queue pair that had to go, for the
 * request of this connection or for another one, is enough; it is free when its
 * connection has ended.  Those who wait are served in their order.  Somebody
 * has to make room only once: what ends may have no controller to give back.
 */
static uint16_t wait_for_ctrl(struct nvmf_target *target,
                              struct nvmf_request *req)
{
    bool has_waited = req->progress != 0; /* and is the first one now */

    if (qpair_ctrls_expected(target) >
        (has_waited ? 0 : ctrls_wanted(target))) {
        return wait_in_line(target, req, NVMF_ADMIN_DEPTH);
    }
    return has_waited ? NVME_SC_CONNECT_BUSY
                      : wait_for_room(target, req, NVMF_ADMIN_DEPTH);
}

void connect_serve_waiting(struct nvmf_target *target)
{
    struct nvmf_queue *queue = &target->connecting;
    struct nvmf_request *req;

    if (queue->is_retrying) {
        return; /* transports end no queue pair inside disconnect() */
    }
    queue->is_retrying = true;
    while ((req = queue_pop(queue)) != NULL) {
        request_restart(target, req);
        if (req == queue->head) {
            break; /* there is still too little */
        }
    }
    queue->is_retrying = false;
}

static uint16_t connect_admin(struct nvmf_target *target,
                              struct nvmf_request *req,
                              const struct connect_command *connect,
                              const struct connect_data *data, uint8_t *ctrl,
                              bool *needs_auth)
{
    const struct nvmf_config *config = &target->config;
    const struct nvmf_qpair *qpair = request_qpair(target, req);
    char well_known[NVME_NQN_FIELD] = NVME_DISCOVERY_NQN;
    uint16_t status;
    bool is_discovery = nqn_equal(data->subnqn, well_known) ||
                        nqn_equal(data->subnqn, config->discovery_nqn);

    if (!is_discovery && !nqn_equal(data->subnqn, config->subnqn)) {
        return connect_invalid_data(req, CONNECT_DATA_SUBNQN);
    }
    if (data->cntlid != NVME_CNTLID_DYNAMIC) {
        return connect_invalid_data(req, CONNECT_DATA_CNTLID);
    }
    if (!is_discovery) {
        status = admit_host(target, req, data->hostnqn, NO_CTRL, needs_auth);
        if (status != NVME_SC_SUCCESS) {
            return status;
        }
        if (ctrl_queues_left(target, qpair->transport) < 2) {
            return NVME_SC_CONNECT_BUSY; /* no connection for an I/O queue */
        }
    }
    if (!qpair_size_from_connect(target, req->qpair, 0,
                                 (uint16_t)(connect->sqsize + 1), NULL)) {
        return wait_for_room(target, req, NVMF_ADMIN_DEPTH);
    }
    *ctrl = ctrl_create(target, is_discovery, request_qpair(target, req), data,
                        connect->kato_ms);
    if (*ctrl == NO_CTRL) {
        qpair_forget_size(target, req->qpair);
        return wait_for_ctrl(target, req);
    }
    return NVME_SC_SUCCESS;
}

/* An I/O queue joins the association that its data names. */
static uint16_t connect_io(struct nvmf_target *target, struct nvmf_request *req,
                           const struct connect_command *connect,
                           const struct connect_data *data, uint8_t *index,
                           bool *needs_auth)
{
    const struct nvmf_qpair *qpair = request_qpair(target, req);
    struct nvmf_ctrl *ctrl;
    uint16_t status;

    *index = ctrl_find(target, data->cntlid);
    if (*index == NO_CTRL) {
        return connect_invalid_data(req, CONNECT_DATA_CNTLID);
    }
    ctrl = &target->ctrl[*index];
    if (ctrl->transport != qpair->transport || ctrl->portid != qpair->portid ||
        qpair_is_borrowed_elsewhere(target, req->qpair, *index)) {
        return connect_invalid_data(req, CONNECT_DATA_CNTLID);
    }
    if (!ctrl_takes_qid(ctrl, connect->qid)) {
        return connect_invalid(req, CONNECT_QID);
    }
    if (!nqn_equal(data->subnqn, target->config.subnqn)) {
        return connect_invalid_data(req, CONNECT_DATA_SUBNQN);
    }
    if (!nqn_equal(data->hostnqn, ctrl->hostnqn)) {
        return connect_invalid_data(req, CONNECT_DATA_HOSTNQN);
    }
    if (memcmp(data->hostid, ctrl->hostid, NVME_HOSTID_LEN) != 0) {
        return connect_invalid_data(req, CONNECT_DATA_HOSTID);
    }
    if (ctrl->qpair[connect->qid] != NO_QPAIR) {
        return refuse_status(NVME_SC_COMMAND_SEQUENCE);
    }
    status = admit_host(target, req, data->hostnqn, *index, needs_auth);
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (!qpair_size_from_connect(target, req->qpair, connect->qid,
                                 (uint16_t)(connect->sqsize + 1), ctrl)) {
        return wait_for_room(target, req, (uint16_t)(connect->sqsize + 1));
    }
    return NVME_SC_SUCCESS;
}

static uint16_t connect_execute(struct nvmf_target *target,
                                struct nvmf_request *req)
{
    struct nvmf_qpair *qpair = request_qpair(target, req);
    uint8_t buf[CONNECT_DATA_LEN];
    struct connect_command connect;
    struct connect_data data;
    bool needs_auth = false;
    uint16_t status;
    uint8_t ctrl = NO_CTRL;

    if (qpair->state != QPAIR_CONNECTING) { /* another Connect was first */
        return refuse_status(NVME_SC_COMMAND_SEQUENCE);
    }
    connect_command_parse(&connect, &req->sqe);
    request_read_data(req, 0, buf, sizeof(buf));
    if (!connect_data_parse(&data, buf, sizeof(buf))) {
        return refuse_status(NVME_SC_SGL_INVALID_LENGTH);
    }
    /* An empty name is accepted, since SPDK's perf sends one by default. */
    if (nvme_nqn_len(data.hostnqn) > NVME_NQN_MAX) {
        return connect_invalid_data(req, CONNECT_DATA_HOSTNQN);
    }
    if (qpair->transport->admits != NULL &&
        !qpair->transport->admits(qpair->transport->ctx, req->qpair,
                                  data.hostnqn)) {
        return refuse_status(NVME_SC_CONNECT_INVALID_HOST);
    }
    status =
        connect.qid == 0
            ? connect_admin(target, req, &connect, &data, &ctrl, &needs_auth)
            : connect_io(target, req, &connect, &data, &ctrl, &needs_auth);
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    qpair->sqsize = (uint16_t)(connect.sqsize + 1);
    qpair->has_sq_flow_control = connect.has_sq_flow_control;
    if (connect.qid == 0 && !target->ctrl[ctrl].is_discovery &&
        generated_proves(target, req->qpair)) {
        generated_use(target, req->qpair, ctrl);
    }
    qpair_connect(target, req->qpair, ctrl, !needs_auth);
    req->result[0] = target->ctrl[ctrl].cntlid;
    if (needs_auth) {
        auth_begin(target, req->qpair);
        req->result[0] |= CONNECT_AUTHREQ_ATR;
    }
    return NVME_SC_SUCCESS;
}

enum { READY_TIMEOUT_500MS = 20 };

static uint64_t cap_get(const struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl)
{
    bool has_crms = level_has(target, LEVEL_PROPERTY, PROPERTY_CRTO);

    return (NVMF_MAX_DEPTH - 1) | /* MQES */
           1ull << 16 |           /* CQR: always 1 over fabrics */
           (uint64_t)READY_TIMEOUT_500MS << 24 |   /* TO */
           (ctrl->is_discovery ? 0 : 1ull << 36) | /* NSSRS */
           1ull << 37 |                            /* CSS: NVM command set */
           (has_crms ? 1ull << 59 : 0);            /* CRMS: with media */
}

static uint64_t vs_get(const struct nvmf_target *target,
                       const struct nvmf_ctrl *ctrl)
{
    (void)ctrl;
    return target->config.vs;
}

static uint64_t cc_get(const struct nvmf_target *target,
                       const struct nvmf_ctrl *ctrl)
{
    (void)target;
    return ctrl->cc;
}

static uint64_t csts_get(const struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl)
{
    (void)target;
    return ctrl_csts(ctrl);
}

static uint64_t nssr_get(const struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl)
{
    (void)target;
    (void)ctrl;
    return 0;
}

/* The time until a controller is ready, with its media. */
static uint64_t crto_get(const struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl)
{
    (void)target;
    (void)ctrl;
    return READY_TIMEOUT_500MS; /* CRWMT; CRIMT is not supported */
}

/*
 * Write CC.  A change of CC.EN takes effect at once.  A normal or abrupt
 * shutdown flushes all namespaces before the command completes.
 */
static uint16_t cc_set(struct nvmf_target *target, struct nvmf_request *req,
                       uint64_t value)
{
    uint8_t index = request_qpair(target, req)->ctrl;
    struct nvmf_ctrl *ctrl = &target->ctrl[index];

    if (ctrl->state == CTRL_PARTING) {
        /* The controller is already disabled, so it accepts CC.EN = 0 only. */
        return value & CC_EN ? refuse_status(NVME_SC_COMMAND_SEQUENCE)
                             : NVME_SC_SUCCESS;
    }
    ctrl_set_cc(target, index, (uint32_t)value);
    if (!ctrl_wants_shutdown(ctrl)) {
        return NVME_SC_SUCCESS;
    }
    req->shutdown = ctrl_begin_shutdown(ctrl);
    if (ctrl->is_discovery) {
        ctrl_end_shutdown(ctrl, req->shutdown, true);
        return NVME_SC_SUCCESS;
    }
    req->steps = 1;
    return ns_flush_all(target, req);
}

/*
 * End every association, including this one.  The command is answered first,
 * because Linux waits for ever for a subsystem reset that gets no answer.
 */
static uint16_t nssr_set(struct nvmf_target *target, struct nvmf_request *req,
                         uint64_t value)
{
    uint8_t own = request_qpair(target, req)->ctrl;

    if (value != NSSR_RESET) {
        return NVME_SC_SUCCESS; /* any other value does nothing */
    }
    pel_note_subsystem_reset(target, &target->ctrl[own]);
    target->was_reset = true;
    generated_end_all(target);
    request_complete(target, req, NVME_SC_SUCCESS);
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        if (i != own && ctrl_is(&target->ctrl[i], CTRL_HAS_SLOT)) {
            ctrl_end(target, i);
        }
    }
    ctrl_part(target, own);
    if (target->config.subsystem_reset != NULL) {
        target->config.subsystem_reset(target->config.subsystem_reset_ctx);
    }
    return NVMF_PENDING;
}

/* Of CSTS, only NSSRO can be written, to clear it. */
static uint16_t csts_set(struct nvmf_target *target, struct nvmf_request *req,
                         uint64_t value)
{
    struct nvmf_ctrl *ctrl = request_ctrl(target, req);

    if (ctrl->is_discovery || !(value & CSTS_NSSRO)) {
        return refuse_status(NVME_SC_CONNECT_INVALID); /* not writable */
    }
    ctrl->has_been_reset = false;
    return NVME_SC_SUCCESS;
}

static const struct property_row {
    uint8_t offset;
    uint8_t size_bytes;
    bool is_on_discovery;
    uint64_t (*get)(const struct nvmf_target *target,
                    const struct nvmf_ctrl *ctrl);
    uint16_t (*set)(struct nvmf_target *target, struct nvmf_request *req,
                    uint64_t value);
} properties[] = {
    {PROPERTY_CAP, 8, true, cap_get, NULL},
    {PROPERTY_VS, 4, true, vs_get, NULL},
    {PROPERTY_CC, 4, true, cc_get, cc_set},
    {PROPERTY_CSTS, 4, true, csts_get, csts_set},
    {PROPERTY_NSSR, 4, false, nssr_get, nssr_set},
    {PROPERTY_CRTO, 4, true, crto_get, NULL},
};

/* Whether a kind of controller has this property in this configuration. */
static bool has_property(const struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl,
                         const struct property_row *row)
{
    return level_has(target, LEVEL_PROPERTY, row->offset) &&
           (row->is_on_discovery || !ctrl->is_discovery);
}

/*
 * Find the property at an offset; the index is ARRAY_LEN(properties) if there
 * is none.
 *
 * @return a status when the offset lies inside a property or the size is wrong
 */
static uint16_t find_property(struct nvmf_target *target,
                              struct nvmf_request *req,
                              const struct property_command *property,
                              size_t *index)
{
    if (property->size_bytes == 0) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
    }
    for (*index = 0; *index < ARRAY_LEN(properties); (*index)++) {
        uint32_t inside = property->offset - properties[*index].offset;

        if (inside >= properties[*index].size_bytes ||
            !has_property(target, request_ctrl(target, req),
                          &properties[*index])) {
            continue;
        }
        if (inside != 0) {
            return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW11, 0);
        }
        if (property->size_bytes != properties[*index].size_bytes) {
            return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
        }
        return NVME_SC_SUCCESS;
    }
    return NVME_SC_SUCCESS;
}

static uint16_t property_check(struct nvmf_target *target,
                               struct nvmf_request *req)
{
    if (request_qpair(target, req)->qid != 0) {
        return refuse_field(req, NVME_SC_INVALID_OPCODE, SQE_FCTYPE, 0);
    }
    return NVME_SC_SUCCESS;
}

static uint16_t property_get(struct nvmf_target *target,
                             struct nvmf_request *req)
{
    struct property_command property;
    size_t index;
    uint16_t status;
    uint64_t value;

    property_command_parse(&property, &req->sqe);
    status = find_property(target, req, &property, &index);
    if (status != NVME_SC_SUCCESS || index == ARRAY_LEN(properties)) {
        return status; /* reserved offsets read as zero */
    }
    value = properties[index].get(target, request_ctrl(target, req));
    req->result[0] = (uint32_t)value;
    req->result[1] = (uint32_t)(value >> 32);
    return NVME_SC_SUCCESS;
}

static uint16_t property_set(struct nvmf_target *target,
                             struct nvmf_request *req)
{
    struct property_command property;
    size_t index;
    uint16_t status;

    if (req->steps > 0) { /* a shutdown that waited for room at the media */
        return ns_flush_all(target, req);
    }
    property_command_parse(&property, &req->sqe);
    status = find_property(target, req, &property, &index);
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (index == ARRAY_LEN(properties) || properties[index].set == NULL) {
        return refuse_status(NVME_SC_CONNECT_INVALID); /* not writable */
    }
    return properties[index].set(target, req, property.value);
}

/* Only a shutdown has steps, so these two functions end a shutdown. */
static void property_set_finish(struct nvmf_target *target,
                                struct nvmf_request *req)
{
    ctrl_end_shutdown(request_ctrl(target, req), req->shutdown, true);
}

static void property_set_fail(struct nvmf_target *target,
                              struct nvmf_request *req)
{
    ctrl_end_shutdown(request_ctrl(target, req), req->shutdown, false);
}

const struct nvmf_command fabrics_commands[FABRICS_COMMANDS] = {
    [FABRICS_PROPERTY_SET] = {.check = property_check,
                              .execute = property_set,
                              .finish = property_set_finish,
                              .fail = property_set_fail},
    [FABRICS_CONNECT] = {.direction = DATA_TO_CONTROLLER,
                         .check = connect_check,
                         .execute = connect_execute},
    [FABRICS_PROPERTY_GET] = {.check = property_check, .execute = property_get},
    [FABRICS_AUTH_SEND] = {.direction = DATA_TO_CONTROLLER,
                           .check = auth_command_check,
                           .execute = auth_send_execute},
    [FABRICS_AUTH_RECEIVE] = {.direction = DATA_TO_HOST,
                              .check = auth_command_check,
                              .execute = auth_receive_execute},
};
