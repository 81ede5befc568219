/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of writes to the same blocks.
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
 * A write is listed here from the moment when its data are in the drive until
 * its last operation at the medium has ended.  Data that the drive has yet to
 * fetch cannot become an old write: a host ends its queue pairs before it
 * repeats a command, so the drive cannot fetch any more.
 *
 * As long as there is one controller, writes are not listed.  order_keep()
 * begins to list them, those that are in flight included.
 */
#include "nvmeof/target/internal.h"

static uint32_t region_of(uint64_t lba)
{
    return (uint32_t)(lba >> ORDER_REGION_SHIFT) % ORDER_REGIONS;
}

static bool is_before(const struct nvmf_target *target,
                      const struct nvmf_request *other,
                      const struct nvmf_request *req)
{
    const struct nvmf_write *a = &other->write;
    const struct nvmf_write *b = &req->write;

    if (a->first_lba >= b->end_lba || b->first_lba >= a->end_lba ||
        a->sequence >= b->sequence || other->sqe.nsid != req->sqe.nsid) {
        return false;
    }
    return other->owner != req->owner || a->is_exclusive || b->is_exclusive ||
           target->qpair[other->qpair].state != QPAIR_LIVE;
}

static bool list_has_earlier(const struct nvmf_target *target, uint32_t list,
                             const struct nvmf_request *req)
{
    const struct nvmf_request *other = target->order.list[list];

    while (other != NULL && !is_before(target, other, req)) {
        other = other->write.next;
    }
    return other != NULL;
}

/* Whether a write reaches into the region after that in which it is listed. */
static bool reaches_further(const struct nvmf_write *write)
{
    return (write->first_lba ^ (write->end_lba - 1)) >> ORDER_REGION_SHIFT != 0;
}

/* Whether the write must wait for an earlier one. */
static bool has_earlier(const struct nvmf_target *target,
                        const struct nvmf_request *req)
{
    uint64_t first = req->write.first_lba >> ORDER_REGION_SHIFT;
    uint64_t last = (req->write.end_lba - 1) >> ORDER_REGION_SHIFT;
    uint64_t count = last - first + 1;

    if (target->order.reaching == 0) {
        return list_has_earlier(target, (uint32_t)(first % ORDER_REGIONS), req);
    }
    /* A write that is listed in the region before may reach into this one. */
    first--;
    count = MIN(count + 1, ORDER_REGIONS);
    for (uint64_t i = 0; i < count; i++) {
        if (list_has_earlier(target, (uint32_t)((first + i) % ORDER_REGIONS),
                             req)) {
            return true;
        }
    }
    return list_has_earlier(target, ORDER_LONG, req);
}

/* @return whether the write is alone in its region, and none listed elsewhere
 * reaches into it */
static bool list_write(struct nvmf_order *order, struct nvmf_request *req,
                       uint64_t first_lba, uint64_t count_blocks)
{
    bool is_long = count_blocks > 1u << ORDER_REGION_SHIFT;
    struct nvmf_request **list =
        &order->list[is_long ? (uint32_t)ORDER_LONG : region_of(first_lba)];
    struct nvmf_write *write = &req->write;

    write->sequence = ++order->sequence;
    write->first_lba = first_lba;
    write->end_lba = first_lba + count_blocks;
    order->reaching += reaches_further(write);
    write->next = *list;
    write->link = list;
    if (write->next != NULL) {
        write->next->write.link = &write->next;
    }
    *list = req;
    req->holds |= HOLDS_ORDER;
    return write->next == NULL && order->reaching == 0;
}

static bool wait_for_earlier(struct nvmf_target *target,
                             struct nvmf_request *req)
{
    if (!has_earlier(target, req)) {
        return false;
    }
    request_wait_turn(req);
    queue_push(&target->order.waiting, req);
    return true;
}

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
    struct nvmf_order *order = &target->order;
    bool is_alone = list_write(order, req, first_lba, count_blocks);

    return order->count++ == 0 || is_alone || !wait_for_earlier(target, req);
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
    uint8_t opcode = req->sqe.opcode;

    if (!is_unlisted(req)) {
        return;
    }
    if (opcode == NVM_WRITE) {
        (void)list_write(&target->order, req,
                         io_first_lba(&req->sqe) +
                             io_blocks_in(req->ns, req, req->data_offset),
                         io_blocks_in(req->ns, req, req->window_len));
    } else if (opcode == NVM_WRITE_ZEROES ||
               opcode == NVM_WRITE_UNCORRECTABLE) {
        (void)list_write(&target->order, req, io_first_lba(&req->sqe),
                         io_count_blocks(&req->sqe));
    } else {
        (void)list_write(&target->order, req, 0, req->ns->geometry.size_blocks);
    }
    target->order.count++;
}

/* From now on list writes. */
void order_keep(struct nvmf_target *target)
{
    if (target->order.is_kept) {
        return;
    }
    target->order.is_kept = true;
    for (uint16_t i = 0; i < NVMF_MAX_QPAIRS; i++) {
        if (target->qpair[i].qid == 0 || target->qpair[i].in_flight == 0) {
            continue;
        }
        for (uint32_t k = 0; k < CID_LISTS; k++) {
            for (struct nvmf_request *req = target->cid[i][k]; req != NULL;
                 req = req->next_cid) {
                list_late(target, req);
            }
        }
    }
}

/* A controller has been created or freed. */
void order_count_ctrls(struct nvmf_target *target)
{
    uint32_t count = 0;

    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        count +=
            target->ctrl[i].state != CTRL_FREE && !target->ctrl[i].is_discovery;
    }
    if (count > 1) {
        order_keep(target);
    } else if (target->order.count == 0) {
        target->order.is_kept = false;
    }
}

/* @return a waiting write whose turn has come, or NULL */
static struct nvmf_request *take_ready(struct nvmf_target *target)
{
    struct nvmf_queue *waiting = &target->order.waiting;

    for (struct nvmf_request *req = waiting->head; req != NULL;
         req = req->next) {
        if (!has_earlier(target, req)) {
            return queue_take(waiting, req->qpair, false, req->sqe.cid);
        }
    }
    return NULL;
}

/* The write has ended: start those that waited only for it. */
void order_leave(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_order *order = &target->order;
    struct nvmf_write *write = &req->write;

    *write->link = write->next;
    if (write->next != NULL) {
        write->next->write.link = write->link;
    }
    order->reaching -= reaches_further(write);
    write->is_exclusive = false;
    req->holds &= (uint8_t)~HOLDS_ORDER;
    order->count--;
    if (order->waiting.head == NULL || order->is_waking) {
        return; /* nobody waits, or the caller of this call will look again */
    }
    order->is_waking = true;
    while ((req = take_ready(target)) != NULL) {
        request_resume(req);
        request_execute(target, req);
    }
    order->is_waking = false;
}
