/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Controllers: one for each association, made by the admin queue's Connect, and
 * given to its host when that has proven its identity (stage.c).
 * Spec: NVM Express Base 1.4 sections 3.1, 7.3, 7.6 and 7.12; Fabrics 1.1
 * sections 4.3 to 4.6.
 *
 * Left out: static controllers, deletion of single I/O queues by command.
 */
#include "nvmeof/target/connect/connect.h"

#include <string.h>

enum {
    DISCOVERY_KATO_MS = 120000, /* for a discovery host that did not set KATO */
    PARTING_MS = 5000, /* for a host to leave after a subsystem reset */
    CC_IOSQES = 6,
    CC_IOCQES = 4,
};

/* Allowed transitions. */
static const uint8_t ctrl_next[CTRL_STATES] = {
    [CTRL_FREE] = BIT(CTRL_UNPROVEN),
    [CTRL_UNPROVEN] = BIT(CTRL_DISABLED) | BIT(CTRL_ENDING),
    [CTRL_DISABLED] = BIT(CTRL_READY) | BIT(CTRL_FAILED) | BIT(CTRL_PARTING) |
                      BIT(CTRL_ENDING),
    [CTRL_READY] = BIT(CTRL_DISABLED) | BIT(CTRL_RESETTING) |
                   BIT(CTRL_PARTING) | BIT(CTRL_ENDING),
    [CTRL_RESETTING] =
        BIT(CTRL_DISABLED) | BIT(CTRL_PARTING) | BIT(CTRL_ENDING),
    [CTRL_FAILED] = BIT(CTRL_DISABLED) | BIT(CTRL_PARTING) | BIT(CTRL_ENDING),
    [CTRL_PARTING] = BIT(CTRL_ENDING),
    [CTRL_ENDING] = BIT(CTRL_FREE),
};

/* The only writer of ctrl->state. */
static void ctrl_enter(struct nvmf_ctrl *ctrl, enum ctrl_state next)
{
    ASSERT(ctrl_next[ctrl->state] & BIT(next));
    ctrl->state = (uint8_t)next;
}

/* Whether its connection has neither ended nor is being ended. */
static bool is_connected(const struct nvmf_qpair *qpair)
{
    return qpair->state == QPAIR_LIVE || qpair->state == QPAIR_AUTHENTICATING;
}

static void reset_features(const struct nvmf_target *target,
                           struct nvmf_ctrl *ctrl)
{
    uint32_t queues = target->config.max_io_queues - 1u;

    ctrl->features = (struct nvmf_features){
        .number_of_queues = queues << 16 | queues,
        .temperature_over_k = DEFAULT_WCTEMP_K,
    };
    for (unsigned int i = 0; i < NVMF_TEMPERATURE_SENSORS; i++) {
        ctrl->features.sensor_over_k[i] = NO_OVER_THRESHOLD_K;
    }
    ctrl->events_pending = 0;
    ctrl->events_masked = 0;
    ctrl->warnings_told = 0;
    ctrl->notices = 0;
    ctrl->notice_count = 0;
    memset(ctrl->changed_ns, 0, sizeof(ctrl->changed_ns));
    ctrl->ana_changes = 0;
    memset(ctrl->ana_group_changes, 0, sizeof(ctrl->ana_group_changes));
}

/* The next generation of the range that this boot uses. */
static uint8_t next_generation(uint8_t generation)
{
    uint8_t offset = generation % CTRL_GENERATIONS;

    return (uint8_t)(generation - offset + (offset + 1) % CTRL_GENERATIONS);
}

/* @return NO_CTRL when all controllers are in use or still ending */
uint8_t ctrl_create(struct nvmf_target *target, bool is_discovery,
                    const struct nvmf_qpair *admin,
                    const struct connect_data *data, uint32_t kato_ms)
{
    struct nvmf_ctrl *ctrl;
    uint8_t index = 0;

    while (index < NVMF_MAX_HOSTS && target->ctrl[index].state != CTRL_FREE) {
        index++;
    }
    if (index == NVMF_MAX_HOSTS) {
        return NO_CTRL;
    }
    ctrl = &target->ctrl[index];
    ctrl_enter(ctrl, CTRL_UNPROVEN);
    /* A CNTLID is reused after 62 other CNTLIDs of the same index. */
    ctrl->cntlid = (uint16_t)(ctrl->generation << 8 | (index + 1));
    ctrl->generation = next_generation(ctrl->generation);
    ctrl->is_discovery = is_discovery;
    ctrl->has_been_reset = target->was_reset;
    ctrl->moves_behind_tls = false;
    ctrl->portid = admin->portid;
    ctrl->link = admin->link;
    ctrl->transport = admin->transport;
    ctrl->shst = SHST_NORMAL;
    ctrl->cc = 0;
    ctrl->shutdowns = 0;
    ctrl->qpair_count = 0;
    ctrl->io_count = 0;
    ctrl->promised = 0;
    ctrl->aer_count = 0;
    ctrl->aers_forgotten = 0;
    memset(ctrl->qpair, 0xff, sizeof(ctrl->qpair));
    memcpy(ctrl->hostid, data->hostid, sizeof(ctrl->hostid));
    memcpy(ctrl->hostnqn, data->hostnqn, sizeof(ctrl->hostnqn));
    ctrl->host_number = host_unproven_number(target, admin->host);
    reset_features(target, ctrl);
    connect_hooks.ctrl_created(target, ctrl);
    target->ctrl_count++;
    ctrl_set_kato(target, index, kato_ms);
    return index;
}

/* How long the host may send no command; 0 if there is no limit. */
static uint64_t patience_us(const struct nvmf_ctrl *ctrl)
{
    uint32_t kato_ms = ctrl->kato_ms;

    if (kato_ms == 0 && ctrl->is_discovery) {
        kato_ms = DISCOVERY_KATO_MS;
    }
    return kato_ms * 1000ull;
}

/* Set KATO, rounded up to the granularity that Identify KAS reports. */
void ctrl_set_kato(struct nvmf_target *target, uint8_t index, uint32_t kato_ms)
{
    struct nvmf_ctrl *ctrl = &target->ctrl[index];
    uint32_t unit_ms = KAS_100MS * 100;
    uint32_t rest_ms = kato_ms % unit_ms;

    if (rest_ms != 0 && kato_ms <= UINT32_MAX - unit_ms) {
        kato_ms += unit_ms - rest_ms;
    }
    ctrl->kato_ms = kato_ms;
    ctrl->seen_us = target->now_us;
    wheel_stop(&target->wheel, (uint16_t)(WHEEL_CTRL + index));
    if (patience_us(ctrl) != 0) {
        wheel_start(&target->wheel, (uint16_t)(WHEEL_CTRL + index),
                    target->now_us + patience_us(ctrl));
    }
}

/*
 * The keep-alive timer fired.  It may be too early, because a command only
 * notes its time and does not restart the timer.
 */
void ctrl_expired(struct nvmf_target *target, uint8_t index)
{
    struct nvmf_ctrl *ctrl = &target->ctrl[index];
    uint64_t deadline_us = ctrl->seen_us + patience_us(ctrl);

    if (ctrl->state == CTRL_PARTING) {
        ctrl_end(target, index);
        return;
    }
    if (auth_is_under_way(target, index)) {
        /* An authentication has a time limit of its own, in which the drive may
         * compute for longer than the host's keep-alive time-out. */
        deadline_us = target->now_us + patience_us(ctrl);
    }
    if (target->now_us < deadline_us) {
        wheel_start(&target->wheel, (uint16_t)(WHEEL_CTRL + index),
                    deadline_us);
        return;
    }
    if (ctrl_is(ctrl, CTRL_MAY_WRITE)) {
        log_keep_alive_expired(target, ctrl);
    }
    ctrl_end(target, index);
}

void ctrl_attach(struct nvmf_target *target, uint8_t index, uint16_t qid,
                 uint16_t qpair)
{
    struct nvmf_ctrl *ctrl = &target->ctrl[index];

    ctrl->qpair_count++;
    if (qid == 0) {
        ctrl->qpair[0] = qpair;
    }
}

bool ctrl_takes_qid(const struct nvmf_ctrl *ctrl, uint16_t qid)
{
    return !ctrl->is_discovery && ctrl->state == CTRL_READY &&
           ctrl->shst == SHST_NORMAL && !ctrl->moves_behind_tls &&
           qid <= (ctrl->features.number_of_queues & 0xffff) + 1;
}

void ctrl_join(struct nvmf_target *target, uint8_t index, uint16_t qid,
               uint16_t qpair)
{
    struct nvmf_ctrl *ctrl = &target->ctrl[index];

    ctrl->seen_us = target->now_us;
    if (qid == 0) {
        ctrl_enter(ctrl, CTRL_DISABLED);
        connect_hooks.ctrl_joined(target, ctrl);
        return;
    }
    ASSERT(ctrl->qpair[qid] == NO_QPAIR);
    ctrl->qpair[qid] = qpair;
    ctrl->io_count++;
    auth_end_claims(target, index, qid);
}

/* A queue pair borrows one of the I/O queues that the budget reserves for a
 * controller. */
void ctrl_lend_promised(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    ctrl->promised--;
    target->queues_promised--;
}

void ctrl_take_back_promised(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    ctrl->promised++;
    target->queues_promised++;
}

/* Nothing is promised to the controller any more: what queues have borrowed is
 * not returned either. */
void ctrl_forget_promises(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    target->queues_promised -= ctrl->promised;
    ctrl->promised = 0;
    ctrl->grants++;
}

/*
 * End the association: all its queue pairs are disconnected, and its CNTLID
 * stays in use until the last of them has drained.
 */
void ctrl_end(struct nvmf_target *target, uint8_t index)
{
    struct nvmf_ctrl *ctrl = &target->ctrl[index];

    if (ctrl->state == CTRL_ENDING) {
        return;
    }
    connect_hooks.ctrl_stops(target, ctrl);
    ctrl_enter(ctrl, CTRL_ENDING);
    connect_hooks.ctrl_detached(target, ctrl);
    generated_end(target, index);
    wheel_stop(&target->wheel, (uint16_t)(WHEEL_CTRL + index));
    ctrl_forget_promises(target, ctrl);
    for (size_t qid = 0; qid < ARRAY_LEN(ctrl->qpair); qid++) {
        uint16_t qpair = ctrl->qpair[qid];

        if (qpair != NO_QPAIR && is_connected(&target->qpair[qpair])) {
            qpair_disconnect(target, qpair);
        }
    }
    connect_hooks.abort_events(target, ctrl);
    auth_end_claims(target, index, 0);
}

uint16_t nvmf_target_end_ctrls(struct nvmf_target *target, const char *hostnqn,
                               uint64_t now_us)
{
    uint16_t ended = 0;

    target->now_us = now_us;
    for (uint8_t i = 0; i < ARRAY_LEN(target->ctrl); i++) {
        struct nvmf_ctrl *ctrl = &target->ctrl[i];

        if (ctrl_is(ctrl, CTRL_HAS_SLOT) && ctrl->state != CTRL_ENDING &&
            (hostnqn == NULL ||
             strncmp(ctrl->hostnqn, hostnqn, NVME_NQN_FIELD) == 0)) {
            ctrl_end(target, i);
            ended++;
        }
    }
    return ended;
}

/* A connection has ended; some of its requests may still be in flight. */
void ctrl_detach(struct nvmf_target *target, uint8_t index, uint16_t qid)
{
    struct nvmf_ctrl *ctrl = &target->ctrl[index];

    ctrl->qpair[qid] = NO_QPAIR;
    if (qid == 0) {
        ctrl_end(target, index);
    }
}

static bool is_within(const struct nvmf_transport *part,
                      const struct nvmf_transport *whole)
{
    return part == whole || (part != NULL && part->within == whole);
}

/* As ctrl_queues_left(), without the limit of what it is a part of. */
static uint32_t own_queues_left(const struct nvmf_target *target,
                                const struct nvmf_transport *transport)
{
    uint32_t taken = 0;

    if (transport->max_qpairs == 0) {
        return NVMF_MAX_QPAIRS;
    }
    for (unsigned int i = 0; i < NVMF_MAX_QPAIRS; i++) {
        taken += target->qpair[i].state != QPAIR_FREE &&
                 is_within(target->qpair[i].transport, transport) &&
                 (!target->qpair[i].is_listed ||
                  qpair_borrows(target, &target->qpair[i]));
    }
    for (unsigned int i = 0; i < NVMF_MAX_HOSTS; i++) {
        if (target->ctrl[i].promised != 0 &&
            is_within(target->ctrl[i].transport, transport)) {
            taken += target->ctrl[i].promised;
        }
    }
    return taken < transport->max_qpairs ? transport->max_qpairs - taken : 0;
}

uint32_t ctrl_queues_left(const struct nvmf_target *target,
                          const struct nvmf_transport *transport)
{
    uint32_t left = own_queues_left(target, transport);

    return transport->within == NULL
               ? left
               : MIN(left, own_queues_left(target, transport->within));
}

/*
 * How many I/O queues the association may have.  That part of the budget is
 * reserved for queues that name this controller when they connect.
 */
uint16_t ctrl_grant_queues(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                           uint16_t wanted)
{
    uint32_t free_depth;
    uint32_t taken;
    uint32_t room;

    ctrl_forget_promises(target, ctrl);
    taken = target->depth_used + qpair_charge_claimed(target) +
            target->queues_promised * NVMF_MAX_DEPTH;
    free_depth =
        taken < NVMF_TOTAL_DEPTH - 1 ? NVMF_TOTAL_DEPTH - 1 - taken : 0;
    room = MIN(free_depth / NVMF_MAX_DEPTH, target->config.max_io_queues);
    room = MIN(room, ctrl_queues_left(target, ctrl->transport));
    ctrl->promised = (uint16_t)MIN(room, wanted);
    target->queues_promised += ctrl->promised;
    return MAX(ctrl->promised, 1); /* the feature cannot express 0 */
}

static bool is_acceptable(const struct nvmf_ctrl *ctrl, uint32_t cc)
{
    bool has_entry_sizes = (cc >> CC_IOSQES_SHIFT & 0xf) == CC_IOSQES &&
                           (cc >> CC_IOCQES_SHIFT & 0xf) == CC_IOCQES;

    return (cc >> CC_CSS_SHIFT & 7) == 0 && (cc >> CC_MPS_SHIFT & 0xf) == 0 &&
           (cc >> CC_AMS_SHIFT & 7) == 0 &&
           (has_entry_sizes || ctrl->is_discovery);
}

/*
 * A DISABLED controller obeys CC.EN = 1.  A shutdown that the same CC asks for
 * stays in force.
 */
static void ctrl_enable(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    if ((ctrl->cc >> CC_SHN_SHIFT & 3) == 0) {
        ctrl->shst = SHST_NORMAL;
    }
    ctrl_enter(ctrl, is_acceptable(ctrl, ctrl->cc) ? CTRL_READY : CTRL_FAILED);
    connect_hooks.ctrl_enabled(target, ctrl);
}

/* The common part of all resets: I/O queues end, the admin queue stays. */
static void reset_ctrl_to(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                          enum ctrl_state next)
{
    ctrl->resets++;
    connect_hooks.ctrl_stops(target, ctrl);
    connect_hooks.ctrl_reset(target, ctrl);
    ctrl_enter(ctrl, next);
    ctrl->shst = SHST_NORMAL;
    ctrl_forget_promises(target, ctrl);
    connect_hooks.abort_events(target, ctrl);
    reset_features(target, ctrl);
    for (size_t qid = 1; qid < ARRAY_LEN(ctrl->qpair); qid++) {
        uint16_t qpair = ctrl->qpair[qid];

        if (qpair != NO_QPAIR && is_connected(&target->qpair[qpair])) {
            qpair_disconnect(target, qpair);
        }
    }
    auth_end_claims(target, (uint8_t)(ctrl - target->ctrl), 0);
}

/* A controller reset: CC.EN = 0 while READY or FAILED. */
static void ctrl_reset(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    connect_hooks.host_resets(target, ctrl);
    reset_ctrl_to(target, ctrl,
                  ctrl->io_count > 0 ? CTRL_RESETTING : CTRL_DISABLED);
}

/*
 * The host has reset the subsystem: its association is over.  But a host that
 * did so resets its own side next, which begins with commands on the admin
 * queue (Linux writes CC.EN = 0) and waits a minute for their completion when
 * that queue is gone.  So the admin queue stays until the host ends it, or for
 * PARTING_MS.
 */
void ctrl_part(struct nvmf_target *target, uint8_t index)
{
    struct nvmf_ctrl *ctrl = &target->ctrl[index];
    uint16_t timer = (uint16_t)(WHEEL_CTRL + index);

    if (ctrl->state == CTRL_PARTING) {
        return; /* another reset; the time limit stays as it is */
    }
    reset_ctrl_to(target, ctrl, CTRL_PARTING);
    connect_hooks.ctrl_detached(target, ctrl);
    ctrl->cc = 0;
    ctrl->has_been_reset = true;
    wheel_stop(&target->wheel, timer);
    wheel_start(&target->wheel, timer, target->now_us + PARTING_MS * 1000ull);
}

/*
 * Do what CC.EN asks for in the state that the controller is in.  The CC that
 * was written before does not matter: commands can be pipelined, and the state
 * follows CC later when I/O queues have to drain first.
 */
static void ctrl_follow_cc(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    bool is_enabled = ctrl->cc & CC_EN;

    switch ((enum ctrl_state)ctrl->state) {
    case CTRL_DISABLED:
        if (is_enabled) {
            ctrl_enable(target, ctrl);
        }
        break;
    case CTRL_READY:
    case CTRL_FAILED:
        if (!is_enabled) {
            ctrl_reset(target, ctrl);
        }
        break;
    case CTRL_RESETTING: /* ctrl_release() reads CC again when the reset ends */
    case CTRL_UNPROVEN:  /* its host cannot write CC */
    case CTRL_PARTING:
    case CTRL_ENDING:
    case CTRL_FREE:
    case CTRL_STATES:
        break;
    }
}

/* The host wrote CC.  The caller begins a shutdown, which takes time. */
void ctrl_set_cc(struct nvmf_target *target, uint8_t index, uint32_t cc)
{
    struct nvmf_ctrl *ctrl = &target->ctrl[index];

    ctrl->cc = cc & CC_DEFINED;
    ctrl_follow_cc(target, ctrl);
}

/*
 * A queue pair is free.  A reset ends when no operation of its I/O queues is in
 * progress at the medium, so that no earlier write overtakes a later one.
 * Spec: NVMe 1.4 7.3.2
 */
void ctrl_release(struct nvmf_target *target, uint8_t index, bool was_joined)
{
    struct nvmf_ctrl *ctrl = &target->ctrl[index];

    ctrl->io_count = (uint16_t)(ctrl->io_count - was_joined);
    if (ctrl->io_count == 0 && ctrl->state == CTRL_RESETTING) {
        ctrl_enter(ctrl, CTRL_DISABLED);
        ctrl_follow_cc(target, ctrl);
    }
    ctrl->qpair_count--;
    if (ctrl->qpair_count == 0 && ctrl->state == CTRL_ENDING) {
        ctrl_enter(ctrl, CTRL_FREE);
        target->ctrl_count--;
        connect_hooks.ctrl_freed(target, ctrl);
    }
}

/* Whether CC asks for a shutdown that is neither under way nor complete. */
bool ctrl_wants_shutdown(const struct nvmf_ctrl *ctrl)
{
    uint32_t shn = ctrl->cc >> CC_SHN_SHIFT & 3;

    return (shn == 1 || shn == 2) && ctrl->shst == SHST_NORMAL;
}

/* @return the shutdown's number, for ctrl_end_shutdown() */
uint32_t ctrl_begin_shutdown(struct nvmf_ctrl *ctrl)
{
    ctrl->shst = SHST_OCCURRING;
    return ++ctrl->shutdowns;
}

/*
 * The flush of a shutdown has ended.  CSTS does not change if a reset has
 * cancelled that shutdown meanwhile, nor if another shutdown has begun, whose
 * own flush is still to come.  When the flush failed, the drive is not shut
 * down: it takes commands, and the host may ask for a shutdown again.
 */
void ctrl_end_shutdown(struct nvmf_ctrl *ctrl, uint32_t shutdown, bool is_ok)
{
    if (ctrl->shst == SHST_OCCURRING && ctrl->shutdowns == shutdown) {
        ctrl->shst = is_ok ? SHST_COMPLETE : SHST_NORMAL;
    }
}
