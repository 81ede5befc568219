/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs, controllers, and how hosts prove their identity; discovery.
 */
#ifndef ESSD_NVMEOF_TARGET_CONNECT_CONNECT_H
#define ESSD_NVMEOF_TARGET_CONNECT_CONNECT_H

#include "nvmeof/target/request/request.h"

/*
 * What the life of a controller means for the parts above it: hooks.c fills it
 * in.
 */
struct connect_hooks {
    void (*ctrl_created)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    /* Its host has proven its identity. */
    void (*ctrl_joined)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    void (*ctrl_enabled)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    /* Its host resets it: CC.EN = 0. */
    void (*host_resets)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    /* It is reset or ends; it is reset. */
    void (*ctrl_stops)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    void (*ctrl_reset)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    /* It takes no commands any more: it loses its namespaces. */
    void (*ctrl_detached)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    void (*abort_events)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    void (*ctrl_freed)(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
    /* A queue pair begins to end with commands in flight. */
    void (*queue_ends)(struct nvmf_target *target);
    /* One that had to go for a Connect has ended. */
    void (*room_is_free)(struct nvmf_target *target);
};

extern const struct connect_hooks connect_hooks;

/* qpair.c */
uint16_t qpair_max_depth(uint16_t qid);

/* What the queue pairs that had to go for a Connect have not given back yet. */
uint32_t qpair_charge_expected(const struct nvmf_target *target);

/* What they have given back for Connects that wait. */
uint32_t qpair_charge_claimed(const struct nvmf_target *target);

/* How many controllers are free when those that had to go have ended. */
unsigned int qpair_ctrls_expected(const struct nvmf_target *target);

/* A queue pair is about to end: it gives back what it is charged already. */
void qpair_give_charge(struct nvmf_target *target, uint16_t qpair);

/*
 * Charge a queue to the queue budget when Connect has named its QID and size.
 * A queue that was reserved with hints is charged already.  ctrl is NULL for an
 * admin queue.
 *
 * @return false when too little of the budget is left
 */
MUST_USE bool qpair_size_from_connect(struct nvmf_target *target,
                                      uint16_t qpair, uint16_t qid,
                                      uint16_t depth, struct nvmf_ctrl *ctrl);

/* Whether the queue pair has borrowed a promised queue of a controller that has
 * made no other promises since then.  So nobody else gets what it is charged
 * when it ends. */
bool qpair_borrows(const struct nvmf_target *target,
                   const struct nvmf_qpair *qpair);

/* Whether it has borrowed a promised queue that a request may borrow when it
 * has ended.  Whoever forges the address of the controller's host may ask for
 * that, as it may borrow such queues itself. */
bool qpair_returns_promise(const struct nvmf_target *target,
                           const struct nvmf_qpair *qpair,
                           const struct nvmf_qpair_params *params);

/* Whether it has borrowed one of another controller than this one. */
bool qpair_is_borrowed_elsewhere(struct nvmf_target *target, uint16_t index,
                                 uint8_t ctrl);

/* Connect has failed: give back what it was charged. */
void qpair_forget_size(struct nvmf_target *target, uint16_t qpair);
void qpair_connect(struct nvmf_target *target, uint16_t qpair, uint8_t ctrl,
                   bool is_trusted);
void qpair_disconnect(struct nvmf_target *target, uint16_t qpair);
void qpair_drained(struct nvmf_target *target, uint16_t qpair);
void qpair_expired(struct nvmf_target *target, uint16_t qpair);
void qpair_end_silent(struct nvmf_target *target, uint16_t qpair);
void qpair_trust(struct nvmf_target *target, uint16_t qpair);
void qpair_start_timer(struct nvmf_target *target, uint16_t qpair,
                       uint32_t timeout_ms);
void qpair_stop_timer(struct nvmf_target *target, uint16_t qpair);

typedef bool share_filter(const struct nvmf_target *target,
                          const struct nvmf_qpair *qpair);

/* share.c */
void share_init(struct nvmf_shares *shares);
void share_enter(struct nvmf_target *target, uint16_t qpair);
void share_leave(struct nvmf_target *target, uint16_t qpair);
bool share_is_address(const struct nvmf_qpair *qpair, const uint8_t *host);

/* Whether the drive keeps the MAC address of the peer for this queue pair.  The
 * TCP offload engine answers the one that a segment comes from. */
bool share_takes_neighbour(const struct nvmf_qpair *qpair);
bool share_has_neighbour(const struct nvmf_target *target, const uint8_t *host);

/* How many of them are from this address. */
uint16_t share_count(const struct nvmf_target *target, const uint8_t *host);

/*
 * The oldest one of the address that has most of them, of those that may go.
 *
 * @param may_go  NULL: all
 * @param except  an address whose queue pairs stay; or NULL
 * @return NO_QPAIR when there is none
 */
uint16_t share_choose(const struct nvmf_target *target, share_filter *may_go,
                      const uint8_t *except);

/* displace.c: a Connect finds too little of the queue budget.  End queue pairs
 * without proof that have this much of it, by the shares of addresses.  It is
 * free when their connections have ended: see qpair_charge_expected().
 * @return false when there are too few */
bool displace_for_connect(struct nvmf_target *target, uint16_t qpair,
                          uint16_t charge);

/* fabrics.c: repeat the Connects that wait for what is free now. */
void connect_serve_waiting(struct nvmf_target *target);

/* host_auth.c */
void auth_init(struct nvmf_auths *auths);

/*
 * Decide whether a host may connect.
 *
 * @param is_proven  it has proven its identity to the transport
 * @param is_needed  set to whether the host must authenticate
 * @return a status, or 0; then auth_begin() finds a free session
 */
uint16_t auth_admit(struct nvmf_target *target, const char *hostnqn,
                    bool is_proven, bool *is_needed);
void auth_begin(struct nvmf_target *target, uint16_t qpair);
void auth_release(struct nvmf_target *target, uint16_t qpair);
bool auth_is_under_way(const struct nvmf_target *target, uint8_t ctrl);

/* Report that the queue pair's session, if it has one, ends for another. */
void auth_displace(struct nvmf_target *target, uint16_t qpair);

/* End the I/O queues of a controller that are not proven yet.
 * @param qid  those that claim this QID; 0: all */
void auth_end_claims(struct nvmf_target *target, uint8_t ctrl, uint16_t qid);
void auth_expired(struct nvmf_target *target, uint16_t qpair);

/* A command came before the host has authenticated.  @return its status */
uint16_t auth_skipped(struct nvmf_target *target, struct nvmf_request *req);
uint16_t auth_command_check(struct nvmf_target *target,
                            struct nvmf_request *req);
uint16_t auth_send_execute(struct nvmf_target *target,
                           struct nvmf_request *req);
uint16_t auth_receive_execute(struct nvmf_target *target,
                              struct nvmf_request *req);

/* generated.c */

/* What the host may ask for when it authenticates.
 * @return enum auth_concat */
uint8_t generated_offer(const struct nvmf_target *target, uint16_t qpair);

/* A host has authenticated: take the key, if it has generated one. */
void generated_add(struct nvmf_target *target, uint16_t qpair,
                   const struct nvmf_auth *auth);

/* Whether the peer of this queue pair has proven by a generated key who it
 * is. */
bool generated_proves(const struct nvmf_target *target, uint16_t qpair);

/* Whether a Connect may go on: a generated key is for one association.
 * @param ctrl  of an I/O queue; NO_CTRL: it is an admin queue */
bool generated_admits(struct nvmf_target *target, uint16_t qpair, uint8_t ctrl);

/* The key of this admin queue belongs to its association from now on. */
void generated_use(struct nvmf_target *target, uint16_t qpair, uint8_t ctrl);

/* Delete the key of an association; all keys. */
void generated_end(struct nvmf_target *target, uint8_t ctrl);
void generated_end_all(struct nvmf_target *target);
void generated_expired(struct nvmf_target *target);

/* ctrl.c */
uint8_t ctrl_create(struct nvmf_target *target, bool is_discovery,
                    const struct nvmf_qpair *admin,
                    const struct connect_data *data, uint32_t kato_ms);

/* A queue pair names the controller: it stays until the queue pair is free. */
void ctrl_attach(struct nvmf_target *target, uint8_t ctrl, uint16_t qid,
                 uint16_t qpair);

/* Whether an I/O queue may be connected with this QID now. */
bool ctrl_takes_qid(const struct nvmf_ctrl *ctrl, uint16_t qid);

/* The host has proven its identity on this queue. */
void ctrl_join(struct nvmf_target *target, uint8_t ctrl, uint16_t qid,
               uint16_t qpair);
void ctrl_detach(struct nvmf_target *target, uint8_t ctrl, uint16_t qid);
void ctrl_release(struct nvmf_target *target, uint8_t ctrl, bool was_joined);
void ctrl_end(struct nvmf_target *target, uint8_t ctrl);
void ctrl_part(struct nvmf_target *target, uint8_t ctrl);
void ctrl_set_cc(struct nvmf_target *target, uint8_t ctrl, uint32_t cc);
bool ctrl_wants_shutdown(const struct nvmf_ctrl *ctrl);
uint32_t ctrl_begin_shutdown(struct nvmf_ctrl *ctrl);
void ctrl_end_shutdown(struct nvmf_ctrl *ctrl, uint32_t shutdown, bool is_ok);
void ctrl_set_kato(struct nvmf_target *target, uint8_t ctrl, uint32_t kato_ms);
void ctrl_expired(struct nvmf_target *target, uint8_t ctrl);
uint16_t ctrl_grant_queues(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                           uint16_t wanted);

/* How many queue pairs of a transport are neither proven nor promised: those
 * without proof make room, unless they have borrowed what is promised. */
uint32_t ctrl_queues_left(const struct nvmf_target *target,
                          const struct nvmf_transport *transport);
void ctrl_lend_promised(struct nvmf_target *target, struct nvmf_ctrl *ctrl);
void ctrl_take_back_promised(struct nvmf_target *target,
                             struct nvmf_ctrl *ctrl);
void ctrl_forget_promises(struct nvmf_target *target, struct nvmf_ctrl *ctrl);

/* discovery.c */
uint32_t discovery_log_len(const struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl);
void discovery_log_part(struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl, uint32_t part);

#endif
