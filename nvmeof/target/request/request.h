/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of a command: from its capsule to its response.
 */
#ifndef ESSD_NVMEOF_TARGET_REQUEST_REQUEST_H
#define ESSD_NVMEOF_TARGET_REQUEST_REQUEST_H

#include "nvmeof/target/base/base.h"

/* Whether a command is in target->arrivals: nvmf_request.arrival_state. */
enum arrival_state {
    ARRIVAL_NONE,  /* It is not, or has ended. */
    ARRIVAL_WAITS, /* It is; waits for earlier commands of its host. */
    ARRIVAL_BEGUN, /* It is, and has begun to get its data. */
};

enum {                        /* nvmf_request.holds */
       HOLDS_ORDER = 0x1,     /* a place in target->order */
       HOLDS_SCRATCH = 0x2,   /* a scratch buffer */
       HOLDS_PARTNER = 0x4,   /* the other command of its fused pair, which ends
                               * when this one does */
       HOLDS_SOURCE = 0x10,   /* Copy: its source ranges are checked, and the
                               * namespaces in chunk.sources are held */
       HOLDS_PREEMPTED = 0x8, /* it ends after this window: its host has lost
                               * its registration; with HOLDS_AWAITED */
       HOLDS_SCAN = 0x20,     /* Get LBA Status: the turn of its scan */
       HOLDS_PROTECTION = 0x40, /* Set Features: ns->protecting */
       HOLDS_AWAITED = 0x80,    /* a place in ns->awaited */
};

/* More steps than a command has whose execute() says when it is complete. */
enum { STEPS_UNKNOWN = 0xffff };

/*
 * What the path of a command asks of the parts above it: hooks.c fills it in.
 * So the path needs none of them to be understood or tested.
 */
struct request_hooks {
    /* Fused pairs: fused.c. */
    bool (*pair_capsule)(struct nvmf_target *target, struct nvmf_request *req);
    void (*pair_begin)(struct nvmf_target *target, struct nvmf_request *second);
    void (*pair_first_ended)(struct nvmf_target *target,
                             struct nvmf_request *second, uint16_t status);
    void (*pair_abort_first)(struct nvmf_target *target,
                             struct nvmf_request *second);
    void (*pair_drop_first)(struct nvmf_target *target,
                            struct nvmf_qpair *qpair);

    /* The order of commands that write, from their arrival on: order.c. */
    bool (*arrive)(struct nvmf_target *target, struct nvmf_request *req);
    void (*depart)(struct nvmf_target *target, struct nvmf_request *req);

    /* Let others have what the command keeps from them: req->holds. */
    void (*release_holds)(struct nvmf_target *target, struct nvmf_request *req);

    /* Fault rules: fault.c. */
    uint16_t (*rule_status)(struct nvmf_target *target,
                            struct nvmf_request *req);
    bool (*hold_response)(struct nvmf_target *target, struct nvmf_request *req,
                          uint16_t status);

    /* Blocks could not be read: lba_status.c. */
    bool (*scan_takes_error)(struct nvmf_target *target,
                             struct nvmf_request *req, bool is_mark);
    void (*note_unreadable)(struct nvmf_target *target,
                            const struct nvmf_request *req);

    /* The medium has reported an error: persistent_event.c.  A command is about
     * to be answered, and the latency monitor is on: latency_monitor.c. */
    void (*media_error)(struct nvmf_target *target,
                        const struct nvmf_request *req, uint16_t status);
    void (*measure)(struct nvmf_target *target, const struct nvmf_request *req);

    /* Namespaces: a command that may have to be refused, the end of one that
     * others may wait for, of a Copy, and of all that were waited for. */
    uint16_t (*ns_check_more)(struct nvmf_target *target,
                              struct nvmf_request *req);
    void (*ns_ended)(struct nvmf_target *target, struct nvmf_request *req,
                     struct nvmf_ns *ns, uint16_t status);
    void (*source_released)(struct nvmf_target *target,
                            struct nvmf_request *req, struct nvmf_ns *ns);
    void (*awaited_ended)(struct nvmf_target *target, const struct nvmf_ns *ns);

    /* The connection: qpair.c, host_auth.c, event.c. */
    void (*disconnect)(struct nvmf_target *target, uint16_t qpair);
    void (*drained)(struct nvmf_target *target, uint16_t qpair);
    uint16_t (*unproven_command)(struct nvmf_target *target,
                                 struct nvmf_request *req);
    void (*event_given_up)(struct nvmf_ctrl *ctrl, uint16_t cid);
};

extern const struct request_hooks request_hooks;

/* check.c */
uint16_t request_check(struct nvmf_target *target, struct nvmf_qpair *qpair,
                       struct nvmf_request *req);

/* observe.c */
void observe_begin(struct nvmf_target *target, struct nvmf_request *req);
void observe_leave_state(struct nvmf_request *req);
void observe_end(const struct nvmf_target *target,
                 const struct nvmf_request *req);
void observe_media(const struct nvmf_target *target,
                   const struct nvmf_request *req, enum media_status status);
void observe_connect(struct nvmf_target *target, const struct nvmf_request *req,
                     uint16_t status);

/* @return whether something has to be done at the end of each command */
static inline bool answers_are_watched(const struct nvmf_target *target)
{
    return __builtin_expect(target->answers_watched != 0, 0);
}

static inline bool fault_rules_are_on(const struct nvmf_target *target)
{
    return __builtin_expect(target->fault_count != 0, 0);
}

/* fault.c */

/* @return the status with which a rule refuses the command, or 0 */
uint16_t fault_status(struct nvmf_target *target, struct nvmf_request *req);

/* @return true when a rule holds the response back */
bool fault_hold_response(struct nvmf_target *target, struct nvmf_request *req,
                         uint16_t status);

/* Send the responses whose time has come.  @return when the next one comes */
uint64_t fault_release_held(struct nvmf_target *target);

/* queue.c */
void queue_push(struct nvmf_queue *queue, struct nvmf_request *req);
struct nvmf_request *queue_pop(struct nvmf_queue *queue);
struct nvmf_request *queue_take(struct nvmf_queue *queue, uint16_t qpair,
                                bool any_cid, uint16_t cid);

/* Whether a new request must wait behind others. */
static inline bool queue_is_ahead(const struct nvmf_queue *queue)
{
    return __builtin_expect(queue->head != NULL, 0) && !queue->is_retrying;
}

/* buffer.c */
MUST_USE bool buffer_take(struct nvmf_target *target, struct nvmf_request *req);
void buffer_return(struct nvmf_target *target, struct nvmf_request *req);
struct nvmf_request *buffer_take_waiter(struct nvmf_target *target,
                                        uint16_t qpair, bool any_cid,
                                        uint16_t cid);

/* cid.c */
bool cid_is_used(const struct nvmf_request *list, uint16_t cid);

/* Note that a command identifier is in use.  @return false if it already is */
static inline bool cid_claim(struct nvmf_target *target,
                             struct nvmf_request *req)
{
    struct nvmf_request **list =
        &target->cid[req->qpair][req->sqe.cid % CID_LISTS];

    req->next_cid = *list;
    if (__builtin_expect(req->next_cid != NULL, 0)) {
        if (cid_is_used(req->next_cid, req->sqe.cid)) {
            return false;
        }
        req->next_cid->cid_link = &req->next_cid;
    }
    req->cid_link = list;
    *list = req;
    return true;
}

/* The host may use the command's identifier again. */
static inline void cid_release(struct nvmf_request *req)
{
    struct nvmf_request **link = req->cid_link;

    if (link == NULL) {
        return;
    }
    req->cid_link = NULL;
    *link = req->next_cid;
    if (__builtin_expect(req->next_cid != NULL, 0)) {
        req->next_cid->cid_link = link;
    }
}

/* Whether the command holds a namespace from which it copies, other than its
 * own. */
static inline bool copy_reads(const struct nvmf_request *req, uint32_t nsid)
{
    uint32_t i = nsid - 1;

    return (req->holds & HOLDS_SOURCE) &&
           (req->chunk.sources[i / 32] >> i % 32 & 1);
}

struct await_rule {
    /* Whether commands of this controller are waited for.  NULL: of all. */
    bool (*concerns_ctrl)(const struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl,
                          const struct nvmf_ns *ns, const void *arg);
    /* Whether a command that uses the namespace, or a Copy that reads it, is
     * waited for. */
    bool (*concerns)(const struct nvmf_target *target,
                     const struct nvmf_request *req, const struct nvmf_ns *ns);
    const void *arg; /* of concerns_ctrl() */
    uint16_t status; /* of those that have not moved data yet */
    bool ends_early; /* the others end after their window: HOLDS_PREEMPTED */
};

/* await.c */
MUST_USE bool await_commands(struct nvmf_target *target, struct nvmf_ns *ns,
                             const struct await_rule *rule);
void await_push(struct nvmf_target *target, struct nvmf_request *req);
void await_command_ended(struct nvmf_target *target, struct nvmf_request *req,
                         struct nvmf_ns *ns);
void await_copy_ended(struct nvmf_target *target, struct nvmf_request *req,
                      struct nvmf_ns *ns);

/* transfer.c */
void request_write_data(struct nvmf_request *req, uint32_t offset,
                        const uint8_t *data, uint32_t len);
void request_read_data(const struct nvmf_request *req, uint32_t offset,
                       uint8_t *data, uint32_t len);

/* request.c */
uint16_t request_admit(struct nvmf_target *target, struct nvmf_qpair *qpair,
                       struct nvmf_request *req);
void request_execute(struct nvmf_target *target, struct nvmf_request *req);
void request_wait_turn(struct nvmf_request *req);
void request_enter(struct nvmf_request *req, enum nvmf_request_state next);
void request_start_window(struct nvmf_target *target, struct nvmf_request *req);
void request_begin(struct nvmf_target *target, struct nvmf_request *req);
void request_wait_event(struct nvmf_request *req);
void request_wait_media(struct nvmf_request *req);
void request_resume(struct nvmf_request *req);
void request_restart(struct nvmf_target *target, struct nvmf_request *req);
void request_complete(struct nvmf_target *target, struct nvmf_request *req,
                      uint16_t status);
void request_answer_held(struct nvmf_target *target, struct nvmf_request *req);
void request_drop(struct nvmf_target *target, struct nvmf_request *req);
void request_drop_waiting(struct nvmf_target *target, uint16_t qpair);
bool request_abort_waiting(struct nvmf_target *target, uint16_t qpair,
                           uint16_t cid, uint16_t status);
MUST_USE uint16_t request_media(struct nvmf_target *target,
                                struct nvmf_request *req, struct media_io *io);

/* A request of this queue pair was handed back to the transport. */
static inline void qpair_request_ended(struct nvmf_target *target,
                                       uint16_t index)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    ASSERT(qpair->in_flight > 0);
    qpair->in_flight--;
    if (__builtin_expect(qpair->state == QPAIR_DRAINING, 0) &&
        qpair->in_flight == 0) {
        request_hooks.drained(target, index);
    }
}

uint16_t ns_flush_all(struct nvmf_target *target, struct nvmf_request *req);

/* The command uses the namespace until ns_release(). */
static inline void ns_use(struct nvmf_ns *ns, struct nvmf_request *req)
{
    req->ns = ns;
    ns->users++;
}

/*
 * Check that a command's NSID names an active namespace that takes this
 * command.  The command uses the namespace from now on until ns_release().
 */
static inline uint16_t ns_check(struct nvmf_target *target,
                                const struct nvmf_ctrl *ctrl,
                                struct nvmf_request *req)
{
    uint32_t i = req->sqe.nsid - 1; /* wraps if the NSID is 0 */
    uint8_t kinds = req->command->flags | COMMAND_NEEDS_NS;

    if (__builtin_expect(
            i >= NVMF_MAX_NAMESPACES || (ctrl->ns_bars[i] & kinds) != 0, 0)) {
        return request_hooks.ns_check_more(target, req);
    }
    ns_use(&target->ns[i], req);
    return NVME_SC_SUCCESS;
}

/* The command has ended with this status, as far as its namespace is
 * concerned. */
static inline void ns_release(struct nvmf_target *target,
                              struct nvmf_request *req, uint16_t status)
{
    struct nvmf_ns *ns = req->ns;

    if (ns != NULL) {
        req->ns = NULL;
        ns->users--;
        if (__builtin_expect(ns->caution != 0, 0)) {
            request_hooks.ns_ended(target, req, ns, status);
        }
    }
}

#endif
