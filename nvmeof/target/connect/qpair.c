/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: the queue budget, and the states of a connection from its
 * reservation to the end of its last request.
 * Spec: NVMe over Fabrics 1.1 sections 2.2, 4.3 and 7.3.6.
 */
#include "nvmeof/target/connect/connect.h"

#include <string.h>

/* A host that has vanished acknowledges nothing.  This time limit frees its
 * resources for others long before the transport gives up its retries. */
enum { CLOSE_TIMEOUT_MS = 5000 };

static const uint8_t qpair_next[QPAIR_STATES] = {
    [QPAIR_FREE] = BIT(QPAIR_RESERVED),
    [QPAIR_RESERVED] = BIT(QPAIR_CONNECTING) | BIT(QPAIR_DRAINING),
    [QPAIR_CONNECTING] = BIT(QPAIR_AUTHENTICATING) | BIT(QPAIR_LIVE) |
                         BIT(QPAIR_CLOSING) | BIT(QPAIR_DRAINING),
    [QPAIR_AUTHENTICATING] =
        BIT(QPAIR_LIVE) | BIT(QPAIR_CLOSING) | BIT(QPAIR_DRAINING),
    [QPAIR_LIVE] = BIT(QPAIR_CLOSING) | BIT(QPAIR_DRAINING),
    [QPAIR_CLOSING] = BIT(QPAIR_DRAINING),
    [QPAIR_DRAINING] = BIT(QPAIR_FREE),
};

/* The only writer of qpair->state. */
static void qpair_enter(struct nvmf_qpair *qpair, enum qpair_state next)
{
    ASSERT(qpair_next[qpair->state] & BIT(next));
    qpair->state = (uint8_t)next;
}

static uint16_t qpair_timer(uint16_t qpair)
{
    return (uint16_t)(WHEEL_QPAIR + qpair);
}

void qpair_start_timer(struct nvmf_target *target, uint16_t index,
                       uint32_t timeout_ms)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    qpair->deadline_us = target->now_us + timeout_ms * 1000ull;
    wheel_start(&target->wheel, qpair_timer(index), qpair->deadline_us);
}

void qpair_stop_timer(struct nvmf_target *target, uint16_t index)
{
    wheel_stop(&target->wheel, qpair_timer(index));
}

uint16_t qpair_max_depth(uint16_t qid)
{
    return qid == 0 ? NVMF_ADMIN_DEPTH : NVMF_MAX_DEPTH;
}

/* Check the hints.  Sets *ctrl to the controller that they name, or NULL. */
static enum nvmf_reserve_status check_hints(
    struct nvmf_target *target, const struct nvmf_qpair_hints *hints,
    struct nvmf_ctrl **ctrl)
{
    if (hints->qid > target->config.max_io_queues) {
        return NVMF_RESERVE_INVALID_QID;
    }
    if (hints->sqsize == 0 || hints->sqsize >= qpair_max_depth(hints->qid)) {
        return NVMF_RESERVE_INVALID_SQSIZE;
    }
    if (hints->qid != 0 && hints->cntlid != 0) {
        uint8_t found = ctrl_find(target, hints->cntlid);

        if (found == NO_CTRL) {
            return NVMF_RESERVE_INVALID_CNTLID;
        }
        *ctrl = &target->ctrl[found];
    }
    return NVMF_RESERVE_OK;
}

/* The number of I/O queues reserved for the controllers of one host. */
static uint32_t promised_to_host(const struct nvmf_target *target,
                                 const uint8_t *host)
{
    uint32_t promised = 0;

    for (unsigned int i = 0; i < NVMF_MAX_HOSTS; i++) {
        const struct nvmf_ctrl *ctrl = &target->ctrl[i];

        if (ctrl->promised > 0 && ctrl_is_of_host(target, ctrl, host)) {
            promised += ctrl->promised;
        }
    }
    return promised;
}

uint32_t qpair_charge_expected(const struct nvmf_target *target)
{
    uint32_t charge = 0;

    for (uint16_t i = 0; i < NVMF_MAX_QPAIRS; i++) {
        if (target->qpair[i].is_displaced) {
            charge += target->qpair[i].charge;
        }
    }
    return charge;
}

unsigned int qpair_ctrls_expected(const struct nvmf_target *target)
{
    unsigned int count = 0;

    for (uint16_t i = 0; i < NVMF_MAX_QPAIRS; i++) {
        const struct nvmf_qpair *qpair = &target->qpair[i];

        count +=
            qpair->is_displaced && qpair->qid == 0 && qpair->ctrl != NO_CTRL;
    }
    return count;
}

uint32_t qpair_charge_claimed(const struct nvmf_target *target)
{
    const struct nvmf_queue *queue = &target->connecting;
    uint32_t wanted = 0;
    uint32_t expected;

    if (!queue_is_ahead(queue)) {
        return 0; /* nobody waits, or it is the turn of the first one */
    }
    for (const struct nvmf_request *req = queue->head; req != NULL;
         req = req->next) {
        /* Otherwise it is charged already, and waits for a controller. */
        wanted += target->qpair[req->qpair].has_hints ? 0 : req->progress;
    }
    expected = qpair_charge_expected(target);
    return wanted > expected ? wanted - expected : 0;
}

/* What queue pairs of a host are charged that have named no controller and are
 * not joined: they may use its promises, which stay as they are until then. */
static uint32_t unnamed_of_host(const struct nvmf_target *target,
                                const uint8_t *host)
{
    uint32_t charge = 0;

    for (unsigned int i = 0; i < NVMF_MAX_QPAIRS; i++) {
        const struct nvmf_qpair *qpair = &target->qpair[i];

        if (qpair->state != QPAIR_FREE && qpair->qid != 0 &&
            !qpair->is_joined && qpair->lender == NO_CTRL &&
            share_is_address(qpair, host)) {
            charge += qpair->charge;
        }
    }
    return charge;
}

/*
 * The promises that a queue may use which names no controller.  Whoever forges
 * the host's address may ask for many of them.  While a Connect waits for room,
 * those that exceed the promises are as those of a stranger.
 */
static uint32_t promises_of_unnamed(const struct nvmf_target *target,
                                    const uint8_t *host, uint16_t depth)
{
    uint32_t own = promised_to_host(target, host);

    if (own != 0 && queue_is_ahead(&target->connecting) &&
        unnamed_of_host(target, host) + depth > own * NVMF_MAX_DEPTH) {
        return 0;
    }
    return own;
}

/*
 * Charge a queue pair to the queue budget: the depths of all queues, and of the
 * I/O queues that Set Features promised to controllers, must stay below the
 * total.  An admin queue is charged its largest depth even if the host wants a
 * smaller one, so that there are never more admin queues than controllers.
 *
 * Anybody may name a controller, and forge its host's address.  So a queue pair
 * only borrows a promised queue, with the depth that is reserved for it, until
 * it is joined; if it ends before that, the controller has the queue again.
 *
 * @param ctrl  the controller of an I/O queue; NULL for an admin queue, or when
 *              the host did not name one of its own
 * @return false when too little is left; then nothing is charged
 */
static bool charge_budget(struct nvmf_target *target, struct nvmf_qpair *qpair,
                          uint16_t qid, uint16_t depth, struct nvmf_ctrl *ctrl)
{
    uint32_t promised = target->queues_promised;
    uint16_t charge = qid == 0 ? NVMF_ADMIN_DEPTH : depth;
    bool borrows = ctrl != NULL && ctrl->promised > 0;
    uint32_t own = 0; /* promises that it may use */
    uint32_t claimed;

    if (borrows) {
        own = 1; /* this queue is one of those promised to its controller */
        charge = NVMF_MAX_DEPTH;
    } else if (qid != 0 && ctrl == NULL) {
        /* Older hosts do not name the controller to which it was promised. */
        own = promises_of_unnamed(target, qpair->host, depth);
    }
    /* A promise is its host's, whoever waits. */
    claimed = own == 0 ? qpair_charge_claimed(target) : 0;
    promised -= own;
    if (target->depth_used + claimed + charge + promised * NVMF_MAX_DEPTH >=
        NVMF_TOTAL_DEPTH) {
        return false;
    }
    if (borrows) {
        ctrl_lend_promised(target, ctrl);
        qpair->lender = (uint8_t)(ctrl - target->ctrl);
        qpair->grant = ctrl->grants;
    }
    target->depth_used += charge;
    qpair->qid = qid;
    qpair->depth = depth;
    qpair->charge = charge;
    return true;
}

bool qpair_borrows(const struct nvmf_target *target,
                   const struct nvmf_qpair *qpair)
{
    return qpair->lender != NO_CTRL &&
           target->ctrl[qpair->lender].grants == qpair->grant;
}

/* As nvmf_qpair_reserve() and charge_budget(): an I/O queue may have a promised
 * queue of the controller that the request names, or of any controller of its
 * host if it names none of these. */
bool qpair_returns_promise(const struct nvmf_target *target,
                           const struct nvmf_qpair *qpair,
                           const struct nvmf_qpair_params *params)
{
    const struct nvmf_qpair_hints *hints = params->hints;
    uint8_t named;

    if (hints == NULL || hints->qid == 0 || !qpair_borrows(target, qpair) ||
        !ctrl_is_of_host(target, &target->ctrl[qpair->lender], params->host)) {
        return false;
    }
    named = hints->cntlid == 0 ? NO_CTRL : ctrl_find(target, hints->cntlid);
    return named == NO_CTRL || named == qpair->lender ||
           !ctrl_is_of_host(target, &target->ctrl[named], params->host);
}

/* The controller whose promised queue a queue pair has borrowed, or NULL. */
static struct nvmf_ctrl *find_lender(struct nvmf_target *target,
                                     const struct nvmf_qpair *qpair)
{
    return qpair_borrows(target, qpair) ? &target->ctrl[qpair->lender] : NULL;
}

static void release_budget(struct nvmf_target *target, struct nvmf_qpair *qpair)
{
    struct nvmf_ctrl *lender = find_lender(target, qpair);

    if (lender != NULL) {
        ctrl_take_back_promised(target, lender);
    }
    qpair->lender = NO_CTRL;
    target->depth_used -= qpair->charge;
    qpair->charge = 0;
}

void qpair_give_charge(struct nvmf_target *target, uint16_t index)
{
    release_budget(target, &target->qpair[index]);
}

/* A queue pair is joined: it uses a promised queue of its controller up, the
 * one that it has borrowed, or another one if its host has not named the
 * controller before Connect.  It needs no more than its depth. */
static void use_promised(struct nvmf_target *target, struct nvmf_qpair *qpair)
{
    struct nvmf_ctrl *ctrl = &target->ctrl[qpair->ctrl];

    if (qpair->qid != 0 && ctrl->promised > 0 &&
        !qpair_borrows(target, qpair)) {
        ctrl_lend_promised(target, ctrl);
    }
    if (qpair->lender != NO_CTRL) {
        qpair->lender = NO_CTRL;
        target->depth_used -= (uint32_t)(qpair->charge - qpair->depth);
        qpair->charge = qpair->depth;
    }
}

bool qpair_is_borrowed_elsewhere(struct nvmf_target *target, uint16_t index,
                                 uint8_t ctrl)
{
    const struct nvmf_ctrl *lender = find_lender(target, &target->qpair[index]);

    return lender != NULL && lender != &target->ctrl[ctrl];
}

bool qpair_size_from_connect(struct nvmf_target *target, uint16_t index,
                             uint16_t qid, uint16_t depth,
                             struct nvmf_ctrl *ctrl)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    if (qpair->has_hints) {
        return true; /* already charged when it was reserved */
    }
    if (ctrl != NULL && !ctrl_is_of_host(target, ctrl, qpair->host)) {
        ctrl = NULL; /* as nvmf_qpair_reserve() does with hints */
    }
    return charge_budget(target, qpair, qid, depth, ctrl);
}

void qpair_forget_size(struct nvmf_target *target, uint16_t index)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    if (!qpair->has_hints) {
        release_budget(target, qpair);
        qpair->qid = 0;
        qpair->depth = 1;
    }
}

enum nvmf_reserve_status nvmf_qpair_reserve(
    struct nvmf_target *target, const struct nvmf_qpair_params *params,
    uint16_t *index)
{
    const struct nvmf_qpair_hints *hints = params->hints;
    struct nvmf_ctrl *ctrl = NULL;
    struct nvmf_qpair *qpair;

    if (hints != NULL) {
        enum nvmf_reserve_status status = check_hints(target, hints, &ctrl);

        if (status != NVMF_RESERVE_OK) {
            return status;
        }
        if (ctrl != NULL && !ctrl_is_of_host(target, ctrl, params->host)) {
            ctrl = NULL; /* its promised queues belong to another host */
        }
    }
    if (target->qpair_count >= NVMF_MAX_QPAIRS) {
        return NVMF_RESERVE_NO_RESOURCES;
    }
    *index = target->free_qpair[NVMF_MAX_QPAIRS - 1 - target->qpair_count];
    qpair = &target->qpair[*index];
    ASSERT(qpair->state == QPAIR_FREE);
    qpair->qid = 0;
    qpair->depth = 1;
    qpair->charge = 0;
    qpair->lender = NO_CTRL;
    memcpy(qpair->host, params->host, sizeof(qpair->host));
    if (hints != NULL && !charge_budget(target, qpair, hints->qid,
                                        (uint16_t)(hints->sqsize + 1), ctrl)) {
        return NVMF_RESERVE_NO_RESOURCES;
    }
    target->qpair_count++;
    qpair_enter(qpair, QPAIR_RESERVED);
    qpair->transport = params->transport;
    qpair->ctrl = NO_CTRL;
    qpair->auth = NO_AUTH;
    qpair->is_joined = false;
    qpair->is_listed = false;
    qpair->has_hints = hints != NULL;
    qpair->is_stream =
        params->is_stream || params->transport->trtype == TRTYPE_TCP;
    qpair->portid = params->portid;
    qpair->link = params->link;
    qpair->sqsize = hints != NULL ? qpair->depth : UINT16_MAX;
    qpair->sqhd = 0;
    qpair->has_sq_flow_control = true;
    qpair->in_flight = 0;
    qpair->fused = FUSED_NONE;
    qpair->fused_first = NULL;
    qpair->label = 0;
    return NVMF_RESERVE_OK;
}

void nvmf_qpair_set_label(struct nvmf_target *target, uint16_t index,
                          uint32_t label)
{
    target->qpair[index].label = label;
}

uint16_t nvmf_qpair_depth(const struct nvmf_target *target, uint16_t index)
{
    return target->qpair[index].depth;
}

void nvmf_qpair_open(struct nvmf_target *target, uint16_t index,
                     uint64_t now_us)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    target->now_us = now_us;
    qpair_enter(qpair, QPAIR_CONNECTING);
    qpair_start_timer(target, index, target->config.connect_timeout_ms);
}

/* The timer of CONNECTING or CLOSING, or of an authentication, has fired,
 * possibly too early. */
void qpair_expired(struct nvmf_target *target, uint16_t index)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    if (target->now_us < qpair->deadline_us) {
        wheel_start(&target->wheel, qpair_timer(index), qpair->deadline_us);
    } else if (qpair->state == QPAIR_CLOSING) {
        qpair->transport->disconnect(qpair->transport->ctx, index);
    } else if (qpair->auth != NO_AUTH) {
        auth_expired(target, index);
    } else {
        qpair_disconnect(target, index);
    }
}

/* The host has proven its identity, or need not do so. */
static void join_ctrl(struct nvmf_target *target, uint16_t index)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    qpair->is_joined = qpair->qid != 0;
    use_promised(target, qpair);
    if (!target->ctrl[qpair->ctrl].is_discovery) {
        share_leave(target, index);
    }
    ctrl_join(target, qpair->ctrl, qpair->qid, index);
}

/* Connect succeeded.  A queue that is not trusted takes only the commands of
 * authentication for now. */
void qpair_connect(struct nvmf_target *target, uint16_t index, uint8_t ctrl,
                   bool is_trusted)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    qpair_enter(qpair, is_trusted ? QPAIR_LIVE : QPAIR_AUTHENTICATING);
    wheel_stop(&target->wheel, qpair_timer(index));
    qpair->ctrl = ctrl;
    ctrl_attach(target, ctrl, qpair->qid, index);
    share_enter(target, index);
    if (is_trusted) {
        join_ctrl(target, index);
    }
}

/*
 * The host has proven its identity.  What was checked at Connect may have
 * changed since then, unless the controller has ended the queue already: the
 * number of queues that its host may have.
 */
void qpair_trust(struct nvmf_target *target, uint16_t index)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    if (qpair->state != QPAIR_AUTHENTICATING) {
        return;
    }
    if (qpair->qid != 0 &&
        !ctrl_takes_qid(&target->ctrl[qpair->ctrl], qpair->qid)) {
        qpair_disconnect(target, index);
        return;
    }
    qpair_enter(qpair, QPAIR_LIVE);
    if (qpair->qid == 0) {
        struct nvmf_ctrl *ctrl = &target->ctrl[qpair->ctrl];

        ctrl->host_number = host_proven_number(target, ctrl->hostnqn);
    }
    join_ctrl(target, index);
}

void qpair_disconnect(struct nvmf_target *target, uint16_t index)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    qpair_enter(qpair, QPAIR_CLOSING);
    if (qpair->in_flight != 0) {
        connect_hooks.queue_ends(target);
    }
    target->arrivals.looks_again = true; /* nobody waits for its data now */
    auth_release(target, index);
    qpair_start_timer(target, index, CLOSE_TIMEOUT_MS);
    qpair->transport->disconnect(qpair->transport->ctx, index);
}

/* Others have waited too long for this queue pair's peer: end the connection
 * without waiting for it. */
void qpair_end_silent(struct nvmf_target *target, uint16_t index)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    if (qpair->state == QPAIR_CONNECTING ||
        qpair->state == QPAIR_AUTHENTICATING || qpair->state == QPAIR_LIVE) {
        qpair_disconnect(target, index);
    }
    if (qpair->state == QPAIR_CLOSING) {
        qpair->ends_now = true;
        qpair->transport->disconnect(qpair->transport->ctx, index);
    }
}

static void qpair_free(struct nvmf_target *target, uint16_t index)
{
    struct nvmf_qpair *qpair = &target->qpair[index];
    bool is_awaited = qpair->is_displaced;

    qpair_enter(qpair, QPAIR_FREE);
    qpair->is_displaced = false;
    qpair->ends_now = false;
    release_budget(target, qpair);
    target->qpair_count--;
    target->free_qpair[NVMF_MAX_QPAIRS - 1 - target->qpair_count] = index;
    if (qpair->ctrl != NO_CTRL) {
        ctrl_release(target, qpair->ctrl, qpair->is_joined);
    }
    if (is_awaited) {
        connect_hooks.room_is_free(target);
    }
}

/* The last request of a queue pair that drains was handed back. */
void qpair_drained(struct nvmf_target *target, uint16_t index)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    qpair_free(target, index);
    qpair->transport->drained(qpair->transport->ctx, index);
}

bool nvmf_qpair_closed(struct nvmf_target *target, uint16_t index)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    wheel_stop(&target->wheel, qpair_timer(index));
    qpair_enter(qpair, QPAIR_DRAINING);
    if (qpair->in_flight != 0) {
        connect_hooks.queue_ends(target);
    }
    qpair->in_flight++; /* keeps the queue pair from draining below */
    request_drop_waiting(target, index);
    auth_release(target, index);
    share_leave(target, index);
    if (qpair_speaks_for_ctrl(qpair)) {
        ctrl_detach(target, qpair->ctrl, qpair->qid);
    }
    qpair->in_flight--;
    if (qpair->in_flight > 0) {
        return false;
    }
    qpair_free(target, index);
    return true;
}
