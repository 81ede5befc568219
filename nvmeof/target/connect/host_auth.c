/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may connect: the list of allowed hosts, and in-band authentication of the
 * queues of hosts that have a key (nvmeof/auth/).  What counts before and after
 * it: stage.c.
 * Spec: NVM Express Base 2.0 sections 3.3 and 8.13, Fabrics 1.1 section 3.3.
 *
 * A queue whose host has a key takes no command but Authentication Send and
 * Receive until the host has proven its identity on it, unless a generated key
 * of TLS has (generated.c).  A failure ends the connection.  A live queue may
 * be authenticated again at any time; it takes commands meanwhile.
 *
 * Exponentiations are done one at a time, a bounded part in each turn of the
 * main loop.  Sources take turns, so that a host that asks for many does not
 * keep others waiting for all of them.
 *
 * Left out: authentication of discovery controllers, which every host may use.
 */
#include "nvmeof/target/connect/connect.h"

#include <string.h>

#include "lib/bytes.h"

enum {
    AUTH_SPSP0 = 41, /* byte offsets in the SQE */
    AUTH_SPSP1 = 42,
    AUTH_SECP = 43,
    AUTH_LENGTH = 44, /* TL of Authentication Send, AL of Receive */
    SECP_NVME = 0xe9,
    SPSP_DHCHAP = 0x01,
    MESSAGE_MAX = 4096, /* longest message that is accepted */
    /* The host chooses neither of these.  A host that is emulated may compute
     * an exponentiation for half a minute. */
    SILENCE_MS = 120000, /* for the next message */
    WHOLE_MS = 300000,   /* for all messages, without the drive's arithmetic */
    COMPUTING_MS = 1000, /* until the drive looks again whether it has done its
                          * own part */
};

static struct nvmf_auth *auth_of(struct nvmf_target *target, uint16_t qpair)
{
    uint8_t index = target->qpair[qpair].auth;

    return index != NO_AUTH ? &target->auths.auth[index] : NULL;
}

/* ---- The host's entry of the list. */

/* @return false when the host has no key any more */
static bool find_peer(const struct nvmf_target *target, uint16_t qpair,
                      struct auth_peer *peer)
{
    const struct nvmf_ctrl *ctrl = &target->ctrl[target->qpair[qpair].ctrl];
    struct nvmf_host host;

    if (!host_entry_find(target, ctrl->hostnqn, &host) ||
        !host_entry_has_key(&host)) {
        return false;
    }
    *peer = (struct auth_peer){
        .hostnqn = ctrl->hostnqn,
        .subnqn = target->config.subnqn,
        .host_key = host.host_key,
        .ctrl_key = host.ctrl_key,
        .least_hash = host.least_hash,
        .least_dh = host.least_dh,
        .concat = generated_offer(target, qpair),
    };
    return true;
}

/* Whether the entry of a host has not changed since the first message of its
 * session.  If it has, the host proves something that is no longer wanted.  So
 * it does if an I/O queue, or a subsystem reset, has come since the host asked
 * for a key of TLS. */
static bool has_same_entry(const struct nvmf_target *target,
                           struct nvmf_auth *auth, const struct auth_peer *peer)
{
    uint64_t mark = host_entry_mark(target, peer);

    if (!auth->has_mark) {
        auth->has_mark = true;
        auth->entry_mark = mark;
    }
    return auth->entry_mark == mark &&
           (auth->session.concat == AUTH_CONCAT_NONE ||
            auth->session.concat == peer->concat);
}

/* The same for the queue's session, which is refused otherwise. */
static bool find_session_peer(struct nvmf_target *target, uint16_t qpair,
                              struct auth_peer *peer)
{
    struct nvmf_auth *auth = auth_of(target, qpair);

    if (!find_peer(target, qpair, peer) ||
        !has_same_entry(target, auth, peer)) {
        auth_refuse(&auth->session, AUTH_FAILED_PROOF);
        return false;
    }
    return true;
}

/* ---- Sessions. */

static void report_end(struct nvmf_target *target, uint16_t qpair,
                       enum nvmf_auth_result result)
{
    const struct nvmf_auth *auth = auth_of(target, qpair);
    const struct nvmf_ctrl *ctrl = &target->ctrl[target->qpair[qpair].ctrl];
    struct nvmf_auth_end end = {
        .qpair = qpair,
        .qid = target->qpair[qpair].qid,
        .cntlid = ctrl->cntlid,
        .result = (uint8_t)result,
        .failure = auth->session.failure,
        .hash = auth->session.hash,
        .dh = auth->session.dh,
        .has_key = result == NVMF_AUTH_PROVEN &&
                   auth->session.concat != AUTH_CONCAT_NONE,
        .is_again = auth->is_again,
    };

    target->auths.counters.ended[result]++;
    if (target->config.auth_ended != NULL) {
        memcpy(end.hostnqn, ctrl->hostnqn, nvme_nqn_len(ctrl->hostnqn));
        memcpy(end.host, target->qpair[qpair].host, sizeof(end.host));
        target->config.auth_ended(target->config.auth_ctx, &end);
    }
}

/* The time for the next message of the host. */
static void restart_timer(struct nvmf_target *target, uint16_t qpair)
{
    const struct nvmf_auth *auth = auth_of(target, qpair);
    uint64_t left_ms = auth->end_us > target->now_us
                           ? (auth->end_us - target->now_us) / 1000
                           : 0;

    qpair_start_timer(target, qpair, (uint32_t)MIN(left_ms, SILENCE_MS));
}

/* Number of a free session, or NO_AUTH. */
static uint8_t find_free(const struct nvmf_target *target)
{
    for (uint8_t i = 0; i < NVMF_MAX_AUTHS; i++) {
        if (target->auths.auth[i].qpair == NO_QPAIR) {
            return i;
        }
    }
    return NO_AUTH;
}

static bool is_same_source(const struct nvmf_target *target, uint16_t a,
                           uint16_t b)
{
    return memcmp(target->qpair[a].host, target->qpair[b].host,
                  sizeof(target->qpair[a].host)) == 0;
}

static bool has_session(const struct nvmf_target *target,
                        const struct nvmf_qpair *qpair)
{
    (void)target;
    return qpair->auth != NO_AUTH;
}

/* The same, unless it is an I/O queue from the address at which its
 * controller's host has proven its identity. */
static bool has_strange_session(const struct nvmf_target *target,
                                const struct nvmf_qpair *qpair)
{
    return has_session(target, qpair) &&
           (qpair->qid == 0 ||
            !ctrl_is_of_host(target, &target->ctrl[qpair->ctrl], qpair->host));
}

/* End the oldest session of the address that has most queue pairs without
 * proof.  @return whether there was one */
static bool end_oldest(struct nvmf_target *target, share_filter *may_go)
{
    uint16_t qpair = share_choose(target, may_go, NULL);

    if (qpair == NO_QPAIR) {
        return false;
    }
    auth_displace(target, qpair);
    qpair_disconnect(target, qpair);
    return true;
}

/* End the oldest session of a live queue, which stays live: its host can
 * authenticate it again later.  One that is proven may still have to make a key
 * of TLS, which its host has by now.  @return whether there was one */
static bool end_oldest_again(struct nvmf_target *target)
{
    struct nvmf_auth *oldest = NULL;
    uint16_t qpair;

    for (uint8_t i = 0; i < NVMF_MAX_AUTHS; i++) {
        struct nvmf_auth *auth = &target->auths.auth[i];

        if (auth->qpair != NO_QPAIR && auth->is_again &&
            auth->session.state != AUTH_PROVEN &&
            (oldest == NULL || auth->number < oldest->number)) {
            oldest = auth;
        }
    }
    if (oldest == NULL) {
        return false;
    }
    qpair = oldest->qpair;
    report_end(target, qpair, NVMF_AUTH_DISPLACED);
    qpair_stop_timer(target, qpair);
    auth_release(target, qpair);
    return true;
}

/* The latest turn of any session of the same source. */
static uint32_t last_turn(const struct nvmf_target *target, uint16_t qpair)
{
    uint32_t turn = 0;

    for (uint8_t i = 0; i < NVMF_MAX_AUTHS; i++) {
        const struct nvmf_auth *auth = &target->auths.auth[i];

        if (auth->qpair != NO_QPAIR &&
            is_same_source(target, auth->qpair, qpair)) {
            turn = MAX(turn, auth->turn);
        }
    }
    return turn;
}

static void begin_session(struct nvmf_target *target, uint16_t qpair,
                          uint8_t index, bool is_again)
{
    struct nvmf_auth *auth = &target->auths.auth[index];

    auth->turn = last_turn(target, qpair);
    auth->number = ++target->auths.begun;
    auth->end_us = target->now_us + WHOLE_MS * 1000ull;
    auth->is_again = is_again;
    auth->was_skipped = false;
    auth->has_mark = false;
    auth->receive = NULL;
    auth->qpair = qpair;
    auth_start(&auth->session);
    target->qpair[qpair].auth = index;
    target->auths.count++;
    restart_timer(target, qpair);
}

uint16_t auth_admit(struct nvmf_target *target, const char *hostnqn,
                    bool is_proven, bool *is_needed)
{
    struct nvmf_host host;

    if (!host_entry_find(target, hostnqn, &host)) {
        target->auths.counters.disallowed++;
        return refuse_status(NVME_SC_CONNECT_INVALID_HOST);
    }
    *is_needed = host_entry_has_key(&host) && !is_proven;
    if (*is_needed && find_free(target) == NO_AUTH &&
        !end_oldest(target, has_strange_session) && !end_oldest_again(target) &&
        !end_oldest(target, has_session)) {
        return NVME_SC_CONNECT_BUSY;
    }
    return NVME_SC_SUCCESS;
}

void auth_begin(struct nvmf_target *target, uint16_t qpair)
{
    uint8_t index = find_free(target);

    ASSERT(index != NO_AUTH);
    begin_session(target, qpair, index, false);
}

/*
 * The session of this queue pair is over.  A command that waits for it is
 * dropped if the queue pair ends; its caller has changed the state then.
 */
void auth_release(struct nvmf_target *target, uint16_t qpair)
{
    struct nvmf_auth *auth = auth_of(target, qpair);
    struct nvmf_request *req;

    if (auth == NULL) {
        return;
    }
    req = auth->receive;
    auth_wipe(&auth->session);
    if (target->auths.power == target->qpair[qpair].auth) {
        target->auths.power = NO_AUTH;
    }
    auth->receive = NULL;
    auth->qpair = NO_QPAIR;
    target->qpair[qpair].auth = NO_AUTH;
    target->auths.count--;
    if (req != NULL) {
        request_resume(req);
        request_complete(target, req, refuse_status(NVME_SC_AUTH_REQUIRED));
    }
}

/* Whether the controller's own host authenticates a queue.  Anybody may claim
 * to be that host on an I/O queue, but not from its address. */
bool auth_is_under_way(const struct nvmf_target *target, uint8_t ctrl)
{
    for (uint8_t i = 0; i < NVMF_MAX_AUTHS && target->auths.count != 0; i++) {
        uint16_t qpair = target->auths.auth[i].qpair;

        if (qpair != NO_QPAIR && target->qpair[qpair].ctrl == ctrl &&
            ctrl_is_of_host(target, &target->ctrl[ctrl],
                            target->qpair[qpair].host)) {
            return true;
        }
    }
    return false;
}

void auth_displace(struct nvmf_target *target, uint16_t qpair)
{
    if (target->qpair[qpair].auth != NO_AUTH) {
        report_end(target, qpair, NVMF_AUTH_DISPLACED);
    }
}

void auth_end_claims(struct nvmf_target *target, uint8_t ctrl, uint16_t qid)
{
    for (uint8_t i = 0; i < NVMF_MAX_AUTHS && target->auths.count != 0; i++) {
        uint16_t index = target->auths.auth[i].qpair;
        const struct nvmf_qpair *qpair;

        if (index == NO_QPAIR || target->auths.auth[i].is_again) {
            continue;
        }
        qpair = &target->qpair[index];
        if (qpair->ctrl == ctrl && qpair->qid != 0 &&
            (qid == 0 || qpair->qid == qid)) {
            auth_displace(target, index);
            qpair_disconnect(target, index);
        }
    }
}

uint16_t auth_skipped(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_auth *auth = auth_of(target, req->qpair);

    if (!auth->was_skipped) {
        auth->was_skipped = true;
        report_end(target, req->qpair, NVMF_AUTH_SKIPPED);
    } else {
        target->auths.counters.ended[NVMF_AUTH_SKIPPED]++;
    }
    return refuse_status(NVME_SC_AUTH_REQUIRED);
}

void auth_expired(struct nvmf_target *target, uint16_t qpair)
{
    if (auth_is_computing(&auth_of(target, qpair)->session)) {
        /* The host waits for the drive. */
        qpair_start_timer(target, qpair, COMPUTING_MS);
        return;
    }
    report_end(target, qpair, NVMF_AUTH_EXPIRED);
    qpair_disconnect(target, qpair);
}

/* Act on the state of the session after a message.  A response that was given
 * may have started another command, which displaced this session. */
static void conclude_session(struct nvmf_target *target, uint16_t qpair)
{
    struct nvmf_auth *auth = auth_of(target, qpair);

    if (auth == NULL) {
        return;
    }
    if (auth->session.state == AUTH_PROVEN) {
        report_end(target, qpair, NVMF_AUTH_PROVEN);
        qpair_stop_timer(target, qpair);
        generated_add(target, qpair, auth);
        auth_release(target, qpair);
        qpair_trust(target, qpair);
    } else if (auth->session.state == AUTH_REFUSED) {
        report_end(target, qpair, NVMF_AUTH_REFUSED);
        qpair_disconnect(target, qpair);
    } else {
        restart_timer(target, qpair);
    }
}

/* ---- The commands. */

uint16_t auth_command_check(struct nvmf_target *target,
                            struct nvmf_request *req)
{
    const struct nvmf_ctrl *ctrl = request_ctrl(target, req);
    uint32_t cdw10 = req->sqe.cdw10;
    struct auth_peer peer;

    if (ctrl->is_discovery || (request_qpair(target, req)->auth == NO_AUTH &&
                               !find_peer(target, req->qpair, &peer))) {
        return refuse_field(req, NVME_SC_INVALID_OPCODE, SQE_FCTYPE, 0);
    }
    if (cdw10 >> 24 != SECP_NVME) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, AUTH_SECP, 0);
    }
    if ((cdw10 >> 8 & 0xff) != SPSP_DHCHAP) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, AUTH_SPSP0, 0);
    }
    if ((cdw10 >> 16 & 0xff) != SPSP_DHCHAP) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, AUTH_SPSP1, 0);
    }
    if (req->sqe.cdw11 == 0 || req->sqe.cdw11 > MESSAGE_MAX) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, AUTH_LENGTH, 0);
    }
    req->data_len = req->sqe.cdw11;
    return NVME_SC_SUCCESS;
}

/* Get a session for a live queue that its host authenticates again. */
static uint16_t begin_again(struct nvmf_target *target, uint16_t qpair)
{
    uint8_t index = find_free(target);

    if (index == NO_AUTH) {
        return NVME_SC_COMMAND_INTERRUPTED; /* the host tries again */
    }
    begin_session(target, qpair, index, true);
    return NVME_SC_SUCCESS;
}

/* Write the message that is ready into the buffers of a Receive. */
static uint16_t put_answer(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_auth *auth = auth_of(target, req->qpair);
    size_t len = auth != NULL ? auth_answer_len(&auth->session) : 0;
    uint8_t message[AUTH_CHALLENGE_MAX];

    if (len == 0) {
        return refuse_status(NVME_SC_COMMAND_SEQUENCE);
    }
    if (len > req->data_len) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, AUTH_LENGTH, 0);
    }
    auth_answer(&auth->session, message);
    request_write_data(req, 0, message, (uint32_t)len);
    request_write_data(req, (uint32_t)len, NULL, req->data_len - (uint32_t)len);
    return NVME_SC_SUCCESS;
}

/*
 * The response goes first, because a failure ends the connection.  A host that
 * was removed from the list, or got another secret, since its last message
 * learns that its proof is void.
 */
static void answer_receive(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_auth *auth = auth_of(target, req->qpair);
    uint16_t qpair = req->qpair;
    struct auth_peer peer;

    if (auth->session.state == AUTH_SUCCESS1 &&
        (!find_peer(target, qpair, &peer) ||
         !has_same_entry(target, auth, &peer))) {
        auth_withdraw(&auth->session);
    }
    request_complete(target, req, put_answer(target, req));
    conclude_session(target, qpair);
}

uint16_t auth_send_execute(struct nvmf_target *target, struct nvmf_request *req)
{
    uint16_t qpair = req->qpair;
    uint8_t message[MESSAGE_MAX];
    struct nvmf_request *receive;
    struct nvmf_auth *auth;
    struct auth_peer peer;
    uint16_t status;

    if (target->qpair[qpair].auth == NO_AUTH) {
        status = begin_again(target, qpair);
        if (status != NVME_SC_SUCCESS) {
            return status;
        }
    }
    auth = auth_of(target, qpair);
    request_read_data(req, 0, message, req->data_len);
    if (find_session_peer(target, qpair, &peer)) {
        auth->sent_us = target->now_us;
        auth_message(&auth->session, &target->config.crypto, &peer, message,
                     req->data_len);
    }
    if (target->auths.power == target->qpair[qpair].auth) {
        target->auths.power = NO_AUTH; /* The message came too early. */
    }
    receive = auth->receive;
    if (receive != NULL && !auth_is_computing(&auth->session)) {
        /* The message came too early: answer the Receive that waits. */
        auth->receive = NULL;
        request_complete(target, req, NVME_SC_SUCCESS);
        request_resume(receive);
        answer_receive(target, receive);
        return NVMF_PENDING;
    }
    request_complete(target, req, NVME_SC_SUCCESS);
    conclude_session(target, qpair);
    return NVMF_PENDING;
}

uint16_t auth_receive_execute(struct nvmf_target *target,
                              struct nvmf_request *req)
{
    struct nvmf_auth *auth = auth_of(target, req->qpair);

    if (auth == NULL || auth->receive != NULL) {
        return refuse_status(NVME_SC_COMMAND_SEQUENCE);
    }
    if (auth_is_computing(&auth->session)) {
        auth->receive = req;
        request_enter(req, NVMF_REQUEST_AUTH);
    } else {
        answer_receive(target, req);
    }
    return NVMF_PENDING;
}

/* ---- Exponentiations. */

/* The session whose turn it is: that whose source has waited longest. */
static uint8_t choose_session(const struct nvmf_target *target)
{
    uint8_t chosen = NO_AUTH;

    for (uint8_t i = 0; i < NVMF_MAX_AUTHS; i++) {
        const struct nvmf_auth *auth = &target->auths.auth[i];
        const struct nvmf_auth *best =
            chosen != NO_AUTH ? &target->auths.auth[chosen] : NULL;

        if (auth->qpair == NO_QPAIR || !auth_is_computing(&auth->session)) {
            continue;
        }
        if (best == NULL || auth->turn < best->turn ||
            (auth->turn == best->turn && auth->number < best->number)) {
            chosen = i;
        }
    }
    return chosen;
}

/* Note for all sessions of this source that it had a turn. */
static void note_turn(struct nvmf_target *target, uint16_t qpair)
{
    target->auths.turns++;
    for (uint8_t i = 0; i < NVMF_MAX_AUTHS; i++) {
        struct nvmf_auth *auth = &target->auths.auth[i];

        if (auth->qpair != NO_QPAIR &&
            is_same_source(target, auth->qpair, qpair)) {
            auth->turn = target->auths.turns;
        }
    }
}

static void end_power(struct nvmf_target *target, struct nvmf_auth *auth)
{
    struct nvmf_request *req = auth->receive;
    uint16_t qpair = auth->qpair;
    struct auth_peer peer;

    target->auths.power = NO_AUTH;
    auth->end_us += target->now_us - auth->sent_us; /* the drive's own time */
    if (qpair_speaks_for_ctrl(&target->qpair[qpair])) {
        target->ctrl[target->qpair[qpair].ctrl].seen_us = target->now_us;
    }
    note_turn(target, qpair);
    if (find_session_peer(target, qpair, &peer)) {
        auth_end_power(&auth->session, &target->config.crypto, &peer);
    }
    if (req != NULL && auth->session.state != AUTH_REFUSED) {
        auth->receive = NULL;
        request_resume(req);
        answer_receive(target, req);
    } else {
        conclude_session(target, qpair);
    }
}

bool nvmf_target_auth_step(struct nvmf_target *target, uint64_t now_us)
{
    const struct auth_crypto *crypto = &target->config.crypto;
    struct nvmf_auth *auth;

    if (target->auths.count == 0) {
        return false;
    }
    if (target->auths.power == NO_AUTH) {
        target->auths.power = choose_session(target);
        if (target->auths.power == NO_AUTH) {
            return false;
        }
        auth_begin_power(&target->auths.auth[target->auths.power].session,
                         crypto);
    }
    target->now_us = now_us;
    auth = &target->auths.auth[target->auths.power];
    if (crypto->dh_step(crypto->ctx)) {
        end_power(target, auth);
    }
    return true;
}

const struct nvmf_auth_counters *nvmf_target_auth_counters(
    const struct nvmf_target *target)
{
    return &target->auths.counters;
}
void auth_init(struct nvmf_auths *auths)
{
    auths->power = NO_AUTH;
    for (uint8_t i = 0; i < NVMF_MAX_AUTHS; i++) {
        auths->auth[i].qpair = NO_QPAIR;
    }
}
