/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two orders of writes to the same blocks: of those that have their data,
 * and of those that have arrived.
 *
 * A host whose association is lost connects again, repeats its outstanding
 * writes and goes on.  A write of the old association may still be on its way
 * to the medium then, and must not overwrite newer data.  The drive may not
 * even know yet that the old association is lost.  Therefore a write waits for
 * each earlier write to the same blocks that came through another controller,
 * or through a queue pair that is ending.
 *
 * Overlapping writes of one controller have no order: NVM Express Base 1.4
 * section 6.  An exclusive write (a fused Compare and Write) waits for every
 * earlier write to its blocks, and every later one waits for it.
 *
 * A write is in target->order from the moment when its data are in the drive
 * until its last operation at the medium has ended.  As long as there is one
 * controller, writes are not listed there.  order_keep() begins to list them,
 * those that are in flight included.
 *
 * That does not suffice for the paths of one host.  The host may have ended a
 * queue pair while a READ response for a write is held up in the network.  When
 * it arrives at last, the drive has the data of an old write, which the host
 * has repeated through its other path long ago.  Therefore a command that
 * writes is in target->arrivals, too, from the arrival of its capsule until it
 * ends, with all of its blocks.  It waits for each earlier one that came from
 * another controller of the same host: same HOSTNQN, same HOSTID.  It waits
 * before it takes buffers, so what it waits for can always get some.  If the
 * earlier one does not get its data within the drive's limit (patience.c), its
 * queue pair ends, and the RNIC places nothing for that any more.
 *
 * Commands are in target->arrivals while one host has two controllers.  Those
 * whose blocks are unknown before their data have come count as writing to all
 * blocks until then.
 */
#include "nvmeof/target/connect/connect.h"
#include "nvmeof/target/io/io.h"

#include <string.h>

/* Whether `b` waits for `a`, which is earlier and overlaps with it. */
typedef bool is_before_function(const struct nvmf_target *target,
                                const struct nvmf_write *a,
                                const struct nvmf_write *b);

static struct nvmf_request *data_request(const struct nvmf_write *write)
{
    return container_of(write, struct nvmf_request, write);
}

static struct nvmf_request *arrival_request(const struct nvmf_write *arrival)
{
    return container_of(arrival, struct nvmf_request, arrival);
}

static bool is_before_at_media(const struct nvmf_target *target,
                               const struct nvmf_write *a,
                               const struct nvmf_write *b)
{
    const struct nvmf_request *earlier = data_request(a);

    return earlier->owner != data_request(b)->owner || a->is_exclusive ||
           b->is_exclusive || target->qpair[earlier->qpair].state != QPAIR_LIVE;
}

static bool is_same_host(const struct nvmf_ctrl *a, const struct nvmf_ctrl *b)
{
    return memcmp(a->hostid, b->hostid, sizeof(a->hostid)) == 0 &&
           strncmp(a->hostnqn, b->hostnqn, sizeof(a->hostnqn)) == 0;
}

/* Whether the peer has yet to send data for a command.  The Write of a fused
 * pair is listed, and waits for the data of the Compare, too. */
static bool waits_for_peer(const struct nvmf_request *req)
{
    return req->state == NVMF_REQUEST_FETCHING ||
           ((req->holds & HOLDS_PARTNER) &&
            req->partner->state == NVMF_REQUEST_FETCHING);
}

/* Whether a command has no data that may reach the medium after its queue pair
 * has begun to end. */
static bool lacks_data(const struct nvmf_request *req)
{
    return waits_for_peer(req) || req->state == NVMF_REQUEST_WAIT_BUFFER ||
           req->arrival_state == ARRIVAL_WAITS;
}

static bool is_before_on_arrival(const struct nvmf_target *target,
                                 const struct nvmf_write *a,
                                 const struct nvmf_write *b)
{
    const struct nvmf_request *earlier = arrival_request(a);
    const struct nvmf_request *later = arrival_request(b);

    return earlier->owner != later->owner &&
           is_same_host(&target->ctrl[earlier->owner],
                        &target->ctrl[later->owner]) &&
           (target->qpair[earlier->qpair].state == QPAIR_LIVE ||
            !lacks_data(earlier));
}

/* ---- Lists of writes. */

static uint32_t region_of(uint64_t lba)
{
    return (uint32_t)(lba >> ORDER_REGION_SHIFT) % ORDER_REGIONS;
}

static bool is_earlier(const struct nvmf_write *a, const struct nvmf_write *b)
{
    return a->first_lba < b->end_lba && b->first_lba < a->end_lba &&
           a->sequence < b->sequence && a->nsid == b->nsid;
}

static const struct nvmf_write *find_in_list(const struct nvmf_target *target,
                                             const struct nvmf_write *list,
                                             const struct nvmf_write *write,
                                             is_before_function *is_before)
{
    while (list != NULL &&
           !(is_earlier(list, write) && is_before(target, list, write))) {
        list = list->next;
    }
    return list;
}

/* Whether a write reaches into the region after that in which it is listed. */
static bool reaches_further(const struct nvmf_write *write)
{
    return (write->first_lba ^ (write->end_lba - 1)) >> ORDER_REGION_SHIFT != 0;
}

/* @return an earlier write for which this one must wait, or NULL */
static const struct nvmf_write *find_earlier(const struct nvmf_target *target,
                                             const struct nvmf_order *order,
                                             const struct nvmf_write *write,
                                             is_before_function *is_before)
{
    const struct nvmf_write *earlier;
    uint64_t first = write->first_lba >> ORDER_REGION_SHIFT;
    uint64_t last = (write->end_lba - 1) >> ORDER_REGION_SHIFT;
    uint64_t count = last - first + 1;

    if (order->reaching == 0) {
        return find_in_list(target, order->list[first % ORDER_REGIONS], write,
                            is_before);
    }
    /* A write that is listed in the region before may reach into this one. */
    first--;
    count = MIN(count + 1, ORDER_REGIONS);
    for (uint64_t i = 0; i < count; i++) {
        earlier = find_in_list(target, order->list[(first + i) % ORDER_REGIONS],
                               write, is_before);
        if (earlier != NULL) {
            return earlier;
        }
    }
    return find_in_list(target, order->list[ORDER_LONG], write, is_before);
}

/* Whether the write must wait for an earlier one. */
static bool has_earlier(const struct nvmf_target *target,
                        const struct nvmf_order *order,
                        struct nvmf_write *write, is_before_function *is_before)
{
    write->waits_for = find_earlier(target, order, write, is_before);
    return write->waits_for != NULL;
}

static void link_write(struct nvmf_order *order, struct nvmf_write *write)
{
    bool is_long = write->end_lba - write->first_lba > 1u << ORDER_REGION_SHIFT;
    struct nvmf_write **list =
        &order->list[is_long ? (uint32_t)ORDER_LONG
                             : region_of(write->first_lba)];

    order->reaching += reaches_further(write);
    write->next = *list;
    write->link = list;
    if (write->next != NULL) {
        write->next->link = &write->next;
    }
    *list = write;
}

static void unlink_write(struct nvmf_order *order, struct nvmf_write *write)
{
    *write->link = write->next;
    if (write->next != NULL) {
        write->next->link = write->link;
    }
    order->reaching -= reaches_further(write);
}

/* @return whether the write is alone in its region, and none listed elsewhere
 * reaches into it */
static bool list_write(struct nvmf_order *order, struct nvmf_write *write,
                       uint32_t nsid, uint64_t first_lba, uint64_t count_blocks)
{
    write->sequence = ++order->sequence;
    write->nsid = nsid;
    write->first_lba = first_lba;
    write->end_lba = first_lba + count_blocks;
    link_write(order, write);
    return order->count++ == 0 || (write->next == NULL && order->reaching == 0);
}

static void wait_for_earlier(struct nvmf_order *order, struct nvmf_request *req)
{
    request_wait_turn(req);
    queue_push(&order->waiting, req);
}

/* The place of a request in one of the two orders. */
static struct nvmf_write *place_of(const struct nvmf_target *target,
                                   const struct nvmf_order *order,
                                   struct nvmf_request *req)
{
    return order == &target->arrivals ? &req->arrival : &req->write;
}

/*
 * A write holds up others no more; or any may, if it is NULL.  Those that have
 * waited for it have to look whether there is another one.  All others are left
 * alone: a host may let thousands of commands wait for thousands of others.
 */
static void unblock_write(struct nvmf_target *target, struct nvmf_order *order,
                          const struct nvmf_write *earlier)
{
    for (struct nvmf_request *req = order->waiting.head; req != NULL;
         req = req->next) {
        struct nvmf_write *write = place_of(target, order, req);

        if (earlier == NULL || write->waits_for == earlier) {
            write->waits_for = NULL;
        }
    }
}

/* @return a waiting write whose turn has come, or NULL */
static struct nvmf_request *take_ready(struct nvmf_target *target,
                                       struct nvmf_order *order,
                                       is_before_function *is_before)
{
    for (struct nvmf_request *req = order->waiting.head; req != NULL;
         req = req->next) {
        struct nvmf_write *write = place_of(target, order, req);

        if (write->waits_for == NULL &&
            !has_earlier(target, order, write, is_before)) {
            return queue_take(&order->waiting, req->qpair, false, req->sqe.cid);
        }
    }
    return NULL;
}

/* ---- The order of arrivals. */

/* The blocks that a command may write to, as far as its first 64 bytes say. */
static void find_blocks(const struct nvmf_request *req, uint64_t *first_lba,
                        uint64_t *count_blocks)
{
    uint8_t opcode = req->sqe.opcode;
    uint64_t size_blocks = req->ns->geometry.size_blocks;

    *first_lba = 0;
    *count_blocks = size_blocks;
    if (opcode == NVM_WRITE || opcode == NVM_WRITE_ZEROES ||
        opcode == NVM_WRITE_UNCORRECTABLE) {
        *first_lba = io_first_lba(&req->sqe);
        *count_blocks = io_count_blocks(&req->sqe);
    } else if (opcode == NVM_COPY && io_first_lba(&req->sqe) < size_blocks) {
        *first_lba = io_first_lba(&req->sqe);
        *count_blocks = size_blocks - *first_lba;
    }
}

static bool is_write(const struct nvmf_target *target,
                     const struct nvmf_request *req)
{
    return req->ns != NULL && (req->command->flags & COMMAND_WRITES) &&
           target->qpair[req->qpair].qid != 0 &&
           (req->sqe.opcode != NVM_DATASET_MANAGEMENT ||
            (req->sqe.cdw11 & DSM_ATTRIBUTE_DEALLOCATE));
}

/* @return as list_write() */
static bool list_arrival(struct nvmf_target *target, struct nvmf_request *req)
{
    uint64_t first_lba, count_blocks;

    find_blocks(req, &first_lba, &count_blocks);
    req->arrival.is_exclusive = false;
    req->fetch_us = target->now_us;
    req->arrival_state = ARRIVAL_BEGUN;
    return list_write(&target->arrivals, &req->arrival, req->sqe.nsid,
                      first_lba, count_blocks);
}

/*
 * A command has arrived and passed its checks.  Call this only if
 * target->arrivals.is_kept.
 *
 * @return false when it must wait for an earlier command of the same host.
 *         request_begin() is called then.
 */
bool order_arrive(struct nvmf_target *target, struct nvmf_request *req)
{
    if (!is_write(target, req)) {
        return true;
    }
    if (list_arrival(target, req) ||
        !has_earlier(target, &target->arrivals, &req->arrival,
                     is_before_on_arrival)) {
        return true;
    }
    req->arrival_state = ARRIVAL_WAITS;
    req->patience = 0;
    wait_for_earlier(&target->arrivals, req);
    return false;
}

/*
 * Start the commands whose turn has come.  One whose queue pair ends is
 * dropped: later commands have not waited for it (is_before_on_arrival), so
 * nothing of it may reach the medium now.
 */
static void wake_arrivals(struct nvmf_target *target,
                          const struct nvmf_write *earlier)
{
    struct nvmf_order *order = &target->arrivals;
    struct nvmf_request *req;

    if (order->waiting.head == NULL) {
        return;
    }
    unblock_write(target, order, earlier);
    if (order->is_waking) {
        return; /* the caller of this call will look again */
    }
    order->is_waking = true;
    while ((req = take_ready(target, order, is_before_on_arrival)) != NULL) {
        request_resume(req);
        req->arrival_state = ARRIVAL_BEGUN;
        if (request_qpair(target, req)->state == QPAIR_LIVE) {
            request_begin(target, req);
        } else {
            request_drop(target, req);
        }
    }
    order->is_waking = false;
}

/* A queue pair has begun to end, so nobody waits for its data. */
void order_wake_arrivals(struct nvmf_target *target)
{
    wake_arrivals(target, NULL);
}

/* The command has ended: nothing of it can reach the medium any more. */
void order_depart(struct nvmf_target *target, struct nvmf_request *req)
{
    unlink_write(&target->arrivals, &req->arrival);
    target->arrivals.count--;
    req->arrival_state = ARRIVAL_NONE;
    wake_arrivals(target, &req->arrival);
}

/* The data have come that say which blocks the command writes to. */
static void narrow_arrival(struct nvmf_target *target, struct nvmf_request *req,
                           uint64_t first_lba, uint64_t count_blocks)
{
    unlink_write(&target->arrivals, &req->arrival);
    req->arrival.first_lba = first_lba;
    req->arrival.end_lba = first_lba + count_blocks;
    link_write(&target->arrivals, &req->arrival);
    wake_arrivals(target, &req->arrival);
}

/*
 * A command waits too long.  End the queue pairs of those for which it waits,
 * if these have waited for their data since before_us.
 */
void order_end_silent(struct nvmf_target *target,
                      const struct nvmf_request *req, uint64_t before_us)
{
    for (uint32_t i = 0; i < ORDER_LISTS; i++) {
        for (const struct nvmf_write *a = target->arrivals.list[i]; a != NULL;
             a = a->next) {
            const struct nvmf_request *other = arrival_request(a);

            if (waits_for_peer(other) && other->fetch_us <= before_us &&
                is_earlier(a, &req->arrival) &&
                is_before_on_arrival(target, a, &req->arrival)) {
                qpair_end_silent(target, other->qpair);
            }
        }
    }
}

/* ---- The order of writes that have their data. */

/*
 * A request is about to write; it has its data.  Call this only if
 * order_is_due().
 *
 * @return false when it must wait for an earlier write.  execute() is called
 *         again then.
 */
bool order_enter_list(struct nvmf_target *target, struct nvmf_request *req,
                      uint64_t first_lba, uint64_t count_blocks)
{
    bool is_alone = list_write(&target->order, &req->write, req->sqe.nsid,
                               first_lba, count_blocks);

    req->holds |= HOLDS_ORDER;
    if (req->arrival_state != ARRIVAL_NONE &&
        (req->sqe.opcode == NVM_DATASET_MANAGEMENT ||
         req->sqe.opcode == NVM_COPY)) {
        narrow_arrival(target, req, first_lba, count_blocks);
    }
    if (is_alone ||
        !has_earlier(target, &target->order, &req->write, is_before_at_media)) {
        return true;
    }
    wait_for_earlier(&target->order, req);
    return false;
}

/* As order_enter_list(), for a write with which no other write may overlap. */
bool order_enter_exclusive(struct nvmf_target *target, struct nvmf_request *req,
                           uint64_t first_lba, uint64_t count_blocks)
{
    order_keep(target);
    req->write.is_exclusive = true;
    return order_enter_list(target, req, first_lba, count_blocks);
}

/* Whether the request is an unlisted write that may be at the medium.  A Copy
 * may wait for a scratch buffer between two chunks. */
static bool is_unlisted(const struct nvmf_request *req)
{
    return !(req->holds & HOLDS_ORDER) && req->ns != NULL &&
           (req->command->flags & COMMAND_WRITES) &&
           (req->state == NVMF_REQUEST_MEDIA ||
            req->state == NVMF_REQUEST_WAIT_MEDIA ||
            (req->state == NVMF_REQUEST_WAIT_TURN &&
             req->sqe.opcode == NVM_COPY));
}

/* List a write that came to the medium before writes were listed. */
static void list_late(struct nvmf_target *target, struct nvmf_request *req)
{
    uint64_t first_lba, count_blocks;

    if (!is_unlisted(req)) {
        return;
    }
    find_blocks(req, &first_lba, &count_blocks);
    if (req->sqe.opcode == NVM_WRITE) {
        first_lba += io_blocks_in(req->ns, req, req->transfer.data_offset);
        count_blocks = io_blocks_in(req->ns, req, req->window_len);
    }
    (void)list_write(&target->order, &req->write, req->sqe.nsid, first_lba,
                     count_blocks);
    req->holds |= HOLDS_ORDER;
}

typedef void list_function(struct nvmf_target *target,
                           struct nvmf_request *req);

/* Call a function for all commands in flight. */
static void list_all(struct nvmf_target *target, list_function *list)
{
    for (uint16_t i = 0; i < NVMF_MAX_QPAIRS; i++) {
        if (target->qpair[i].qid == 0 || target->qpair[i].in_flight == 0) {
            continue;
        }
        for (uint32_t k = 0; k < CID_LISTS; k++) {
            for (struct nvmf_request *req = target->cid[i][k]; req != NULL;
                 req = req->next_cid) {
                list(target, req);
            }
        }
    }
}

/* From now on list writes. */
void order_keep(struct nvmf_target *target)
{
    if (!target->order.is_kept) {
        target->order.is_kept = true;
        list_all(target, list_late);
    }
}

/* List a command that arrived before arrivals were listed. */
static void list_late_arrival(struct nvmf_target *target,
                              struct nvmf_request *req)
{
    if (is_write(target, req) && req->arrival_state == ARRIVAL_NONE) {
        (void)list_arrival(target, req);
    }
}

/* From now on list commands on arrival. */
static void keep_arrivals(struct nvmf_target *target)
{
    if (!target->arrivals.is_kept) {
        target->arrivals.is_kept = true;
        list_all(target, list_late_arrival);
    }
}

/* How many further controllers the host of this one has.  Each change is one
 * walk, so that nobody makes Connect slow by connecting often. */
static uint32_t count_twins(const struct nvmf_target *target,
                            const struct nvmf_ctrl *ctrl)
{
    uint32_t count = 0;

    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        count += &target->ctrl[i] != ctrl && target->ctrl[i].is_ordered &&
                 is_same_host(&target->ctrl[i], ctrl);
    }
    return count;
}

/* A controller's host has proven its identity (is_there), or a controller was
 * freed, whether its host had proven its identity or not. */
void order_count_ctrl(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                      bool is_there)
{
    uint32_t count = 0;

    if (is_there != ctrl->is_ordered) {
        uint32_t twins = count_twins(target, ctrl);

        ctrl->is_ordered = is_there;
        target->twins =
            is_there ? target->twins + twins : target->twins - twins;
    }
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        count += ctrl_is(&target->ctrl[i], CTRL_MAY_WRITE);
    }
    if (count > 1) {
        order_keep(target);
    } else if (target->order.count == 0) {
        target->order.is_kept = false;
    }
    if (target->twins != 0) {
        keep_arrivals(target);
    } else {
        target->arrivals.is_kept = false; /* nobody waits; the rest departs */
    }
}

/* The write has ended: start those that waited only for it. */
void order_leave(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_order *order = &target->order;

    unlink_write(order, &req->write);
    req->write.is_exclusive = false;
    req->holds &= (uint8_t)~HOLDS_ORDER;
    order->count--;
    unblock_write(target, order, &req->write);
    if (order->waiting.head == NULL || order->is_waking) {
        return; /* nobody waits, or the caller of this call will look again */
    }
    order->is_waking = true;
    while ((req = take_ready(target, order, is_before_at_media)) != NULL) {
        request_resume(req);
        request_execute(target, req);
    }
    order->is_waking = false;
}
