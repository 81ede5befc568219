/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands that wait until others have ended: until the commands that were
 * using a namespace before something forbade them.
 *
 * Preempt and Abort, write protection and the detachment of a namespace forbid
 * commands at once, and succeed only when those that the drive had accepted
 * before have ended.  So nothing of them can follow the success.
 *
 * Each command that is waited for is marked.  nvmf_ns.awaited counts the marks:
 * one of each command that uses the namespace (HOLDS_AWAITED), and one of each
 * Copy that reads it as a source (nvmf_chunk.awaited).
 */
#include "nvmeof/target/request/request.h"

static void mark_command(struct nvmf_request *req, struct nvmf_ns *ns,
                         bool ends_early)
{
    uint32_t i = ns->config.nsid - 1;
    uint32_t bit = BIT(i % 32);

    if (req->ns != ns) {
        if (!(req->chunk.awaited[i / 32] & bit)) {
            req->chunk.awaited[i / 32] |= bit;
            ns->awaited++;
        }
        return;
    }
    if (!(req->holds & HOLDS_AWAITED)) {
        req->holds |= HOLDS_AWAITED;
        ns->awaited++;
    }
    if (ends_early) {
        req->holds |= HOLDS_PREEMPTED;
    }
}

static void mark_qpair(struct nvmf_target *target, uint16_t qpair,
                       struct nvmf_ns *ns, const struct await_rule *rule)
{
    for (uint32_t k = 0; k < CID_LISTS; k++) {
        for (struct nvmf_request *req = target->cid[qpair][k]; req != NULL;
             req = req->next_cid) {
            if ((req->ns == ns || copy_reads(req, ns->config.nsid)) &&
                rule->concerns(target, req, ns)) {
                mark_command(req, ns, rule->ends_early);
            }
        }
    }
}

static bool concerns_qpair(const struct nvmf_target *target, uint16_t index,
                           const struct nvmf_ns *ns,
                           const struct await_rule *rule)
{
    const struct nvmf_qpair *qpair = &target->qpair[index];

    return qpair->qid != 0 && qpair->in_flight != 0 &&
           (rule->concerns_ctrl == NULL ||
            (qpair->ctrl != NO_CTRL &&
             rule->concerns_ctrl(target, &target->ctrl[qpair->ctrl], ns,
                                 rule->arg)));
}

/* @return a queue pair's marked command that waits for a buffer, or for other
 * commands of its host; or NULL */
static struct nvmf_request *find_waiting(struct nvmf_target *target,
                                         uint16_t qpair)
{
    for (uint32_t k = 0; k < CID_LISTS; k++) {
        for (struct nvmf_request *req = target->cid[qpair][k]; req != NULL;
             req = req->next_cid) {
            if ((req->holds & HOLDS_AWAITED) &&
                (req->state == NVMF_REQUEST_WAIT_BUFFER ||
                 req->arrival_state == ARRIVAL_WAITS)) {
                return req;
            }
        }
    }
    return NULL;
}

/*
 * Begin to wait for the commands on I/O queues that the rule concerns.  Those
 * that wait for buffers have moved no data: they end now, with the status that
 * they would have if they came now.  All others end by themselves.
 *
 * @return false when there are none.  Otherwise the caller waits; see
 *         await_push(), and request_hooks.awaited_ended().
 */
bool await_commands(struct nvmf_target *target, struct nvmf_ns *ns,
                    const struct await_rule *rule)
{
    for (uint16_t i = 0; i < NVMF_MAX_QPAIRS; i++) {
        if (concerns_qpair(target, i, ns, rule)) {
            mark_qpair(target, i, ns, rule);
        }
    }
    ns_set_caution(ns, CAUTION_AWAITED, ns->awaited != 0);
    for (uint16_t i = 0; i < NVMF_MAX_QPAIRS && ns->awaited != 0; i++) {
        struct nvmf_request *req;

        while (target->qpair[i].in_flight != 0 &&
               (req = find_waiting(target, i)) != NULL) {
            ASSERT(
                request_abort_waiting(target, i, req->sqe.cid, rule->status));
        }
    }
    return ns->awaited != 0;
}

/* A command waits until no command of its namespace is marked any more.
 * execute() is called again then. */
void await_push(struct nvmf_target *target, struct nvmf_request *req)
{
    req->patience = 0;
    request_wait_turn(req);
    queue_push(&target->awaiting, req);
}

/* @return a command that waits for this namespace, or NULL */
static struct nvmf_request *take_awaiting(struct nvmf_target *target,
                                          const struct nvmf_ns *ns)
{
    for (struct nvmf_request *req = target->awaiting.head; req != NULL;
         req = req->next) {
        if (req->ns == ns) {
            return queue_take(&target->awaiting, req->qpair, false,
                              req->sqe.cid);
        }
    }
    return NULL;
}

static void count_ended(struct nvmf_target *target, struct nvmf_ns *ns)
{
    struct nvmf_request *req;

    ASSERT(ns->awaited > 0);
    ns->awaited--;
    if (ns->awaited != 0) {
        return;
    }
    ns_set_caution(ns, CAUTION_AWAITED, false);
    while (ns->awaited == 0 && (req = take_awaiting(target, ns)) != NULL) {
        request_restart(target, req);
    }
    if (ns->awaited == 0) {
        request_hooks.awaited_ended(target, ns);
    }
}

/* A command of the namespace has ended. */
void await_command_ended(struct nvmf_target *target, struct nvmf_request *req,
                         struct nvmf_ns *ns)
{
    if (req->holds & HOLDS_AWAITED) {
        req->holds &= (uint8_t) ~(HOLDS_AWAITED | HOLDS_PREEMPTED);
        count_ended(target, ns);
    }
}

/* A Copy that has read the namespace has ended. */
void await_copy_ended(struct nvmf_target *target, struct nvmf_request *req,
                      struct nvmf_ns *ns)
{
    uint32_t i = ns->config.nsid - 1;
    uint32_t bit = BIT(i % 32);

    if (req->chunk.awaited[i / 32] & bit) {
        req->chunk.awaited[i / 32] &= ~bit;
        count_ended(target, ns);
    }
}
