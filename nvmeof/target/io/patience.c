/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limit of what the drive waits for when a peer is silent.
 *
 * A command of one host may wait for commands of another: Preempt and Abort,
 * write protection, Format NVM, the deletion and the detachment of a namespace
 * and Sanitize do, and a write waits for an earlier write of its host that came
 * through another path (order.c).
 * These may themselves wait until their host sends or takes data.  After the
 * limit the queue pairs of such commands end, whatever time-outs their hosts
 * have chosen.
 *
 * Time is counted in checks, of which there is one a second.  A check that
 * comes late counts once, so that a pause of the drive itself ends no
 * connection.  The small delays of a busy computer do not add up: after a late
 * check, the next one comes when it was due, or half a second later.
 */
#include "nvmeof/target/connect/connect.h"
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/io/io.h"

/* Each command for which a search is made may be behind thousands of others, so
 * a turn of the main loop makes a few searches only. */
enum { CHECK_US = 1000000, SOON_US = 1000, SEARCHES = 16, LOOKS = 256 };

/* Namespaces for whose commands others have waited too long. */
struct overdue {
    bool is_any;
    bool is_listed[NVMF_MAX_NAMESPACES];
};

static bool is_transfer(const struct nvmf_request *req)
{
    return req->state == NVMF_REQUEST_FETCHING ||
           req->state == NVMF_REQUEST_SENDING;
}

/*
 * End the queue pairs whose peers have yet to send or take the data of commands
 * that others wait for.
 *
 * @param all  of these namespaces, all commands; NULL: of any namespace
 * @param awaited  of these, those for which a command waits in await.c
 */
static void end_transfers(struct nvmf_target *target, const struct overdue *all,
                          const struct overdue *awaited)
{
    for (uint16_t i = 0; i < NVMF_MAX_QPAIRS; i++) {
        bool is_waited_for = false;

        for (uint32_t k = 0; target->qpair[i].in_flight != 0 && k < CID_LISTS;
             k++) {
            for (const struct nvmf_request *req = target->cid[i][k];
                 req != NULL; req = req->next_cid) {
                is_waited_for |=
                    is_transfer(req) && req->ns != NULL &&
                    (all == NULL || all->is_listed[req->ns - target->ns] ||
                     (awaited->is_listed[req->ns - target->ns] &&
                      (req->holds & HOLDS_AWAITED)));
            }
        }
        if (is_waited_for) {
            qpair_end_silent(target, i);
        }
    }
}

/* @return a command of the queue pair that uses the namespace and has not begun
 * to get its data, or NULL */
static struct nvmf_request *find_waiting(struct nvmf_target *target,
                                         uint16_t qpair,
                                         const struct nvmf_ns *ns)
{
    for (uint32_t k = 0; k < CID_LISTS; k++) {
        for (struct nvmf_request *req = target->cid[qpair][k]; req != NULL;
             req = req->next_cid) {
            if (req->ns == ns && (req->state == NVMF_REQUEST_WAIT_BUFFER ||
                                  req->arrival_state == ARRIVAL_WAITS)) {
                return req;
            }
        }
    }
    return NULL;
}

/*
 * If these commands went on, each might wait for its peer in turn, one after
 * the other.
 */
void patience_abort_waiting(struct nvmf_target *target,
                            const struct nvmf_ns *ns)
{
    for (uint16_t i = 0; i < NVMF_MAX_QPAIRS; i++) {
        struct nvmf_request *req;

        while (target->qpair[i].in_flight != 0 &&
               (req = find_waiting(target, i, ns)) != NULL) {
            uint16_t status = ns_check_state(target, req, ns->config.nsid);

            ASSERT(status != NVME_SC_SUCCESS &&
                   request_abort_waiting(target, i, req->sqe.cid, status));
        }
    }
}

static bool anything_waits(const struct nvmf_target *target)
{
    return target->manager.is_draining || target->manager.is_detaching ||
           target->sanitize.req != NULL || target->awaiting.head != NULL ||
           target->arrivals.waiting.head != NULL;
}

/* Count one check more. @return whether the limit is over */
static bool is_over(uint8_t *patience)
{
    *patience = (uint8_t)MIN(*patience + 1, NVMF_PATIENCE_S);
    return *patience == NVMF_PATIENCE_S;
}

static void list_overdue_namespace(const struct nvmf_target *target,
                                   struct overdue *overdue,
                                   const struct nvmf_ns *ns)
{
    overdue->is_any = true;
    for (uint32_t i = 0; i < NVMF_MAX_NAMESPACES; i++) {
        overdue->is_listed[i] |= ns == NULL || ns == &target->ns[i];
    }
}

/* Count a check for everything that waits. */
static void check_waiting(struct nvmf_target *target)
{
    struct ns_manager *manager = &target->manager;
    struct overdue all = {0}, awaited = {0};

    if ((manager->is_draining || manager->is_detaching) &&
        is_over(&manager->patience)) {
        list_overdue_namespace(target, manager->is_detaching ? &awaited : &all,
                               &target->ns[manager->job.nsid - 1]);
    }
    for (struct nvmf_request *req = target->awaiting.head; req != NULL;
         req = req->next) {
        if (is_over(&req->patience)) {
            list_overdue_namespace(target, &awaited, req->ns);
        }
    }
    if (target->sanitize.req != NULL && is_over(&target->sanitize.patience)) {
        end_transfers(target, NULL, NULL);
    } else if (all.is_any || awaited.is_any) {
        end_transfers(target, &all, &awaited);
    }
    target->overdue = 0;
    for (struct nvmf_request *req = target->arrivals.waiting.head; req != NULL;
         req = req->next) {
        (void)is_over(&req->patience);
        target->overdue++;
    }
}

/*
 * End those for which some of the overdue commands wait on arrival.  Each
 * command is looked at once in each second: it moves to the end of the queue,
 * whose order means nothing (a command that has to wait for another one knows
 * it by its sequence number).
 */
static void end_some(struct nvmf_target *target)
{
    const uint64_t limit_us = (uint64_t)(NVMF_PATIENCE_S - 1) * CHECK_US;
    struct nvmf_queue *waiting = &target->arrivals.waiting;
    uint32_t left = SEARCHES;

    for (uint32_t looks = 0; looks < LOOKS && target->overdue != 0 &&
                             left != 0 && waiting->head != NULL;
         looks++) {
        struct nvmf_request *req = queue_pop(waiting);

        queue_push(waiting, req);
        target->overdue--;
        if (req->patience == NVMF_PATIENCE_S && target->now_us >= limit_us) {
            left--;
            req->patience = NVMF_PATIENCE_S - 1;
            order_end_silent(target, req, target->now_us - limit_us);
        }
    }
}

static uint64_t next_check_us(const struct nvmf_target *target)
{
    return MAX(target->patience_us, target->now_us - CHECK_US / 2) + CHECK_US;
}

uint64_t patience_timer(struct nvmf_target *target)
{
    if (target->arrivals.looks_again) {
        target->arrivals.looks_again = false;
        order_wake_arrivals(target);
    }
    if (!anything_waits(target)) {
        target->patience_us = 0;
        target->overdue = 0;
        return UINT64_MAX;
    }
    if (target->patience_us == 0) {
        target->patience_us = target->now_us + CHECK_US;
    } else if (target->now_us >= target->patience_us) {
        target->patience_us = next_check_us(target);
        check_waiting(target);
    }
    end_some(target);
    return target->overdue != 0 && target->arrivals.waiting.head != NULL
               ? target->now_us + SOON_US
               : target->patience_us;
}
