/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands Reservation Register, Acquire, Release and Report.  The state
 * machine is in reservation.c, notifications are in reservation_notice.c, and
 * what a reservation forbids is in reservation_check.c.
 * Spec: NVM Express Base 1.4 sections 6.10 to 6.13 and 8.8.
 *
 * All host identifiers of fabrics have 128 bits, so Report has only the
 * extended data structure.
 */
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/reservations/reservations.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/reservation.h"

/* ---- Namespaces that have reservations, and their state. */

static bool is_1_3(const struct nvmf_target *target)
{
    return target->config.vs >= NVMF_VS_1_3;
}

/* Set the reservations of a namespace that was found at the start. */
void reservation_load(struct nvmf_target *target, uint32_t nsid)
{
    const struct nvmf_reservations *store = &target->config.reservations;
    struct reservation *res = reservation_of(target, nsid);

    if (res == NULL) {
        return;
    }
    if (store->load == NULL ||
        !store->load(store->ctx, nsid, target->ns[nsid - 1].config.uuid, res)) {
        memset(res, 0, sizeof(*res));
    }
    res->generation = 0;
    ns_update_bars(target, nsid);
}

/* The namespace has been deleted.  If saving fails, nothing is lost: the
 * record names another UUID than that of the next namespace. */
void reservation_forget(struct nvmf_target *target, uint32_t nsid)
{
    const struct nvmf_reservations *store = &target->config.reservations;
    const struct reservation_saver drive = {.host = 0};
    struct nvmf_ns *ns = &target->ns[nsid - 1];
    struct reservation *res;

    if (nsid > NVMF_RESERVATION_NAMESPACES) {
        return;
    }
    ns->notice_mask = 0;
    res = &target->reservation[nsid - 1];
    if (res->ptpl && store->save != NULL) {
        memset(res, 0, sizeof(*res));
        (void)store->save(store->ctx, nsid, ns->config.uuid, res, &drive);
    }
    memset(res, 0, sizeof(*res));
    ns_update_bars(target, nsid);
}

/* Whether a change must be saved.  That of the generation need not be, because
 * the generation is not kept. */
static bool must_save(const struct reservation *before,
                      const struct reservation *after)
{
    if (!before->ptpl && !after->ptpl) {
        return false;
    }
    return before->ptpl != after->ptpl || before->rtype != after->rtype ||
           (after->rtype != RTYPE_NONE && before->holder != after->holder) ||
           before->count != after->count ||
           memcmp(before->registrant, after->registrant,
                  after->count * sizeof(after->registrant[0])) != 0;
}

/* How many hosts besides one are registered. */
static unsigned int count_others(const struct reservation *res,
                                 const uint8_t *hostid)
{
    return res->count - (reservation_find(res, hostid) >= 0 ? 1u : 0u);
}

/*
 * Make the draft the state of a namespace.  The draft holds the former state
 * afterwards.
 *
 * @param by  the controller whose command changes it
 * @return a status; if it is not 0, nothing has changed
 */
uint16_t reservation_commit(struct nvmf_target *target, uint32_t nsid,
                            const struct nvmf_ctrl *by)
{
    const struct nvmf_reservations *store = &target->config.reservations;
    struct reservation *res = &target->reservation[nsid - 1];
    struct reservation *draft = &target->reservation_draft;
    const struct reservation_saver saver = {
        .host = ctrl_host_number(by),
        .fences_off =
            count_others(draft, by->hostid) < count_others(res, by->hostid),
    };
    struct reservation before;
    uint16_t status;

    if (must_save(res, draft)) {
        status = ns_result_status(store->save(
            store->ctx, nsid, target->ns[nsid - 1].config.uuid, draft, &saver));
        if (status != NVME_SC_SUCCESS) {
            return status;
        }
    }
    before = *res;
    *res = *draft;
    *draft = before;
    ns_update_bars(target, nsid);
    return NVME_SC_SUCCESS;
}

/* ---- What the commands have in common. */

static uint8_t action_of(const struct nvmf_request *req)
{
    return req->sqe.cdw10 & RESERVATION_ACTION_MASK;
}

static uint8_t rtype_of(const struct nvmf_request *req)
{
    return (uint8_t)(req->sqe.cdw10 >> RESERVATION_RTYPE_SHIFT);
}

static bool has_iekey(const struct nvmf_request *req)
{
    return req->sqe.cdw10 & BIT(RESERVATION_IEKEY_BIT);
}

static uint16_t check_namespace(struct nvmf_request *req)
{
    return reservation_is_possible(req->ns)
               ? NVME_SC_SUCCESS
               : refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
}

/* An identifier of zero says that the host has none. */
static bool has_hostid(struct nvmf_target *target, struct nvmf_request *req)
{
    static const uint8_t none[NVME_HOSTID_LEN];

    return memcmp(request_ctrl(target, req)->hostid, none, sizeof(none)) != 0;
}

static uint16_t check_common(struct nvmf_target *target,
                             struct nvmf_request *req, uint8_t actions,
                             uint32_t data_len)
{
    uint16_t status = check_namespace(req);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (!has_hostid(target, req)) {
        return refuse_status(NVME_SC_COMMAND_SEQUENCE);
    }
    if (action_of(req) >= actions) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
    }
    req->data_len = data_len;
    return NVME_SC_SUCCESS;
}

/* Since NVMe 1.3, Acquire and Release always compare the key. */
static uint16_t check_iekey(const struct nvmf_target *target,
                            struct nvmf_request *req)
{
    return has_iekey(req) && is_1_3(target)
               ? refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10,
                              RESERVATION_IEKEY_BIT)
               : NVME_SC_SUCCESS;
}

static uint16_t check_rtype(struct nvmf_request *req)
{
    return rtype_of(req) == RTYPE_NONE || rtype_of(req) >= RTYPES
               ? refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10 + 1, 0)
               : NVME_SC_SUCCESS;
}

static struct reservation_command read_command(struct nvmf_target *target,
                                               const struct nvmf_request *req)
{
    uint8_t data[RESERVATION_KEYS_LEN] = {0};

    request_read_data(req, 0, data, req->data_len);
    return (struct reservation_command){
        .hostid = request_ctrl(target, req)->hostid,
        .host = ctrl_host_number(request_ctrl(target, req)),
        .action = action_of(req),
        .rtype = rtype_of(req),
        .cptpl = (uint8_t)(req->sqe.cdw10 >> RESERVATION_CPTPL_SHIFT),
        .iekey = has_iekey(req),
        .key = get_le64(data + RESERVATION_CRKEY),
        .key2 = get_le64(data + RESERVATION_KEY2),
    };
}

typedef enum reservation_result reservation_change(
    struct reservation *res, const struct reservation_command *command,
    bool *is_released);

/*
 * Change the state of the command's namespace.  While the keys were fetched, a
 * Format, deletion or Sanitize may have begun.  It has checked reservations, so
 * none may be made until it has ended.  Or the host may have lost the
 * namespace, which does not wait for this command.
 *
 * @return a status; after success the draft holds the former state
 */
static uint16_t change_state(struct nvmf_target *target,
                             struct nvmf_request *req,
                             reservation_change *change,
                             const struct reservation_command *command,
                             bool *is_released)
{
    uint32_t nsid = req->ns->config.nsid;
    uint16_t status = ns_check_own_state(target, req);

    if (status == NVME_SC_SUCCESS &&
        !ns_is_active(request_ctrl(target, req), nsid)) {
        status = refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
    }
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    target->reservation_draft = target->reservation[nsid - 1];
    switch (change(&target->reservation_draft, command, is_released)) {
    case RESERVATION_OK:
        return reservation_commit(target, nsid, request_ctrl(target, req));
    case RESERVATION_CONFLICT:
        return reservation_refuse(req);
    case RESERVATION_FULL:
        return NVME_SC_INTERNAL; /* the host may try again */
    case RESERVATION_INVALID:
        break;
    }
    return refuse_status(NVME_SC_INVALID_FIELD);
}

static void tell_released(struct nvmf_target *target, struct nvmf_request *req,
                          const uint8_t *issuer)
{
    notice_registered(target, req->ns,
                      &target->reservation[req->ns->config.nsid - 1], issuer,
                      NOTICE_RESERVATION_RELEASED);
}

static void tell_removed(struct nvmf_target *target, struct nvmf_request *req,
                         const uint8_t *issuer, uint8_t type)
{
    notice_removed(target, req->ns, &target->reservation_draft,
                   &target->reservation[req->ns->config.nsid - 1], issuer,
                   type);
}

/* ---- Register. */

static uint16_t reservation_register_check(struct nvmf_target *target,
                                           struct nvmf_request *req)
{
    uint8_t cptpl = (uint8_t)(req->sqe.cdw10 >> RESERVATION_CPTPL_SHIFT);

    if (cptpl == CPTPL_RESERVED ||
        (cptpl == CPTPL_ON && target->config.reservations.save == NULL)) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10 + 3, 6);
    }
    return check_common(target, req, RREGAS, RESERVATION_KEYS_LEN);
}

static uint16_t reservation_register_execute(struct nvmf_target *target,
                                             struct nvmf_request *req)
{
    struct reservation_command command = read_command(target, req);
    bool is_released;
    uint16_t status =
        change_state(target, req, reservation_register, &command, &is_released);

    if (status == NVME_SC_SUCCESS && is_released) {
        tell_released(target, req, command.hostid);
    }
    return status;
}

/* ---- Acquire. */

static uint16_t reservation_acquire_check(struct nvmf_target *target,
                                          struct nvmf_request *req)
{
    uint16_t status = check_iekey(target, req);

    if (status == NVME_SC_SUCCESS) {
        status = check_rtype(req);
    }
    return status != NVME_SC_SUCCESS
               ? status
               : check_common(target, req, RACQAS, RESERVATION_KEYS_LEN);
}

/* Whether a controller's host has just lost its registration to the issuer. */
static bool is_preempted(const struct nvmf_target *target,
                         const struct nvmf_ctrl *ctrl, const struct nvmf_ns *ns,
                         const void *issuer)
{
    const struct reservation *now = &target->reservation[ns->config.nsid - 1];

    return ctrl_is(ctrl, CTRL_MAY_WRITE) &&
           memcmp(ctrl->hostid, issuer, NVME_HOSTID_LEN) != 0 &&
           reservation_find(&target->reservation_draft, ctrl->hostid) >= 0 &&
           reservation_find(now, ctrl->hostid) < 0;
}

/* Whether a Preempt and Abort waits for a command to end.  The first command of
 * a fused pair may wait for the second one for ever, and writes nothing. */
static bool is_abortable(const struct nvmf_target *target,
                         const struct nvmf_request *req,
                         const struct nvmf_ns *ns)
{
    (void)ns;
    return !reservation_is_command(req->sqe.opcode) &&
           target->qpair[req->qpair].fused_first != req;
}

/* Abort the commands of the hosts that have just lost their registration.
 * @return whether some of them have yet to end */
static bool abort_commands(struct nvmf_target *target, struct nvmf_ns *ns,
                           const uint8_t *issuer)
{
    const struct await_rule rule = {
        .concerns_ctrl = is_preempted,
        .concerns = is_abortable,
        .arg = issuer,
        .status = NVME_SC_ABORT_PREEMPTED,
        .ends_early = true,
    };

    return await_commands(target, ns, &rule);
}

/* Whether a Preempt and Abort has taken effect already.  It is executed again
 * when the commands that it has waited for have ended. */
static bool has_preempted(const struct nvmf_request *req)
{
    return req->progress != 0;
}

static uint16_t reservation_acquire_execute(struct nvmf_target *target,
                                            struct nvmf_request *req)
{
    struct reservation_command command = read_command(target, req);
    bool is_released;
    uint16_t status;

    if (has_preempted(req)) {
        return NVME_SC_SUCCESS;
    }
    status =
        change_state(target, req, reservation_acquire, &command, &is_released);
    if (status != NVME_SC_SUCCESS || command.action == RACQA_ACQUIRE) {
        return status;
    }
    tell_removed(target, req, command.hostid, NOTICE_REGISTRATION_PREEMPTED);
    if (is_released) {
        tell_released(target, req, command.hostid);
    }
    if (command.action == RACQA_PREEMPT) {
        return NVME_SC_SUCCESS;
    }
    if (!abort_commands(target, req->ns, command.hostid)) {
        return NVME_SC_SUCCESS;
    }
    req->progress = 1;
    await_push(target, req);
    return NVMF_PENDING;
}

/* ---- Release. */

static uint16_t reservation_release_check(struct nvmf_target *target,
                                          struct nvmf_request *req)
{
    uint16_t status = check_iekey(target, req);

    if (status == NVME_SC_SUCCESS && action_of(req) == RRELA_RELEASE) {
        status = check_rtype(req);
    }
    return status != NVME_SC_SUCCESS
               ? status
               : check_common(target, req, RRELAS, RESERVATION_RELEASE_LEN);
}

static uint16_t reservation_release_execute(struct nvmf_target *target,
                                            struct nvmf_request *req)
{
    struct reservation_command command = read_command(target, req);
    bool is_released;
    uint16_t status =
        change_state(target, req, reservation_release, &command, &is_released);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (command.action == RRELA_CLEAR) {
        tell_removed(target, req, command.hostid, NOTICE_RESERVATION_PREEMPTED);
    } else if (is_released) {
        tell_released(target, req, command.hostid);
    }
    return NVME_SC_SUCCESS;
}

/* ---- Report. */

static uint16_t reservation_report_check(struct nvmf_target *target,
                                         struct nvmf_request *req)
{
    uint16_t status = check_namespace(req);

    (void)target;
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (!(req->sqe.cdw11 & RESERVATION_EDS)) {
        return refuse_field(req, NVME_SC_HOST_ID_FORMAT, SQE_CDW11, 0);
    }
    if (req->sqe.cdw10 >= NVMF_MAX_TRANSFER / 4) { /* NUMD, 0's based */
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
    }
    req->data_len = (req->sqe.cdw10 + 1) * 4;
    return NVME_SC_SUCCESS;
}

/* Writes the data of Report. */
struct reporter {
    struct nvmf_request *req;
    uint32_t at; /* offset in the data */
};

/* Copy what lies in this window of the data. */
static void report_bytes(struct reporter *reporter, const uint8_t *data,
                         uint32_t len)
{
    struct nvmf_request *req = reporter->req;
    uint32_t at = reporter->at, base = req->transfer.data_offset;
    uint32_t first = MAX(at, base);
    uint32_t end = MIN(at + len, base + req->window_len);

    if (first < end) {
        request_write_data(req, first - base, data + (first - at), end - first);
    }
    reporter->at += len;
}

/* Whether a controller belongs to a registrant. */
static bool is_of_host(const struct nvmf_ctrl *ctrl,
                       const struct registrant *registrant)
{
    return ctrl_is(ctrl, CTRL_IS_MEMBER) &&
           memcmp(ctrl->hostid, registrant->hostid, NVME_HOSTID_LEN) == 0;
}

static void report_ctrl(struct reporter *reporter,
                        const struct reservation *res, uint16_t index,
                        uint16_t cntlid)
{
    uint8_t buf[RCTRL_LEN];

    registered_ctrl_emit(buf,
                         &(struct registered_ctrl){
                             .cntlid = cntlid,
                             .is_holder = reservation_is_holder(res, index),
                             .key = res->registrant[index].key,
                             .hostid = res->registrant[index].hostid,
                         });
    report_bytes(reporter, buf, sizeof(buf));
}

/*
 * Report the controllers of a registrant.  A host that is not connected counts
 * as a controller with CNTLID FFFFh.
 *
 * @param reporter  NULL: only count them
 * @return their number
 */
static uint16_t report_registrant(const struct nvmf_target *target,
                                  const struct reservation *res, uint16_t index,
                                  struct reporter *reporter)
{
    uint16_t count = 0;

    for (uint16_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        if (is_of_host(&target->ctrl[i], &res->registrant[index])) {
            count++;
            if (reporter != NULL) {
                report_ctrl(reporter, res, index, target->ctrl[i].cntlid);
            }
        }
    }
    if (count == 0 && reporter != NULL) {
        report_ctrl(reporter, res, index, NVME_CNTLID_DYNAMIC);
    }
    return MAX(count, 1);
}

/* Report one window of the structure; called for each window. */
static uint16_t reservation_report_execute(struct nvmf_target *target,
                                           struct nvmf_request *req)
{
    const struct reservation *res =
        &target->reservation[req->ns->config.nsid - 1];
    struct reporter reporter = {req, 0};
    struct reservation_status status = {
        .generation = res->generation,
        .rtype = res->rtype,
        .ptpl = res->ptpl,
    };
    uint8_t header[RSTATUS_HEADER_LEN];

    request_write_data(req, 0, NULL, req->window_len);
    for (uint16_t i = 0; i < res->count; i++) {
        status.registered = (uint16_t)(status.registered +
                                       report_registrant(target, res, i, NULL));
    }
    reservation_status_emit(header, &status);
    report_bytes(&reporter, header, sizeof(header));
    for (uint16_t i = 0; i < res->count; i++) {
        (void)report_registrant(target, res, i, &reporter);
    }
    return NVME_SC_SUCCESS;
}

const struct nvmf_command reservation_register_row = {
    .direction = DATA_TO_CONTROLLER,
    .flags = COMMAND_NEEDS_NS,
    .check = reservation_register_check,
    .execute = reservation_register_execute,
};

const struct nvmf_command reservation_report_row = {
    .direction = DATA_TO_HOST,
    .flags = COMMAND_NEEDS_NS | COMMAND_IS_QUERY,
    .check = reservation_report_check,
    .execute = reservation_report_execute,
};

const struct nvmf_command reservation_acquire_row = {
    .direction = DATA_TO_CONTROLLER,
    .flags = COMMAND_NEEDS_NS,
    .check = reservation_acquire_check,
    .execute = reservation_acquire_execute,
};

/* Linux describes 16 bytes of data, of which 8 are defined. */
const struct nvmf_command reservation_release_row = {
    .direction = DATA_TO_CONTROLLER,
    .flags = COMMAND_NEEDS_NS | COMMAND_SGL_LONGER,
    .check = reservation_release_check,
    .execute = reservation_release_execute,
};
