/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target of AoE as a host of the NVMe-oF target: its transport, which moves
 * nothing, and its association.
 *
 * The association begins when the drive starts and is made anew after each end:
 * a subsystem reset, an operator who ends all associations, or a command that
 * gets no answer, as fault rules can have it.
 */
#include "nvmeof/aoe/aoe_state.h"

#include <string.h>

#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/discovery.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/opcode.h"
#include "nvmeof/wire/sqe.h"

enum {
    ADMIN = 0, /* indices in aoe.queue */
    IO = 1,
    RETRY_US = 1000000,
    ANSWER_US = 30000000, /* as Linux's NVMe hosts wait */
    IO_DEPTH = NVMF_MAX_DEPTH,
};

#define RW_FUA (1u << 30)

static const uint8_t host_next[AOE_HOST_STATES] = {
    [AOE_HOST_IDLE] = BIT(AOE_HOST_ADMIN) | BIT(AOE_HOST_ENDING),
    [AOE_HOST_ADMIN] = BIT(AOE_HOST_ENABLING) | BIT(AOE_HOST_ENDING),
    [AOE_HOST_ENABLING] = BIT(AOE_HOST_IO) | BIT(AOE_HOST_ENDING),
    [AOE_HOST_IO] = BIT(AOE_HOST_LIVE) | BIT(AOE_HOST_ENDING),
    [AOE_HOST_LIVE] = BIT(AOE_HOST_ENDING),
    [AOE_HOST_ENDING] = BIT(AOE_HOST_IDLE),
};

/* The only writer of aoe->host_state. */
static void host_enter(struct aoe *aoe, enum aoe_host_state next)
{
    ASSERT(host_next[aoe->host_state] & BIT(next));
    aoe->host_state = next;
}

static struct aoe_slot *control_of(struct aoe *aoe)
{
    return &aoe->slots[AOE_SLOTS];
}

/* ---- The transport seam. */

static struct aoe_slot *slot_of(const struct nvmf_transfer *nvmf)
{
    return nvmf->owner;
}

/* All data of this host is in capsules. */
static void host_fetch(void *ctx, struct nvmf_transfer *nvmf)
{
    (void)ctx;
    (void)nvmf;
    ASSERT(false);
}

static void host_send(void *ctx, struct nvmf_transfer *nvmf)
{
    (void)ctx;
    aoe_slot_enter(slot_of(nvmf), AOE_SLOT_SENDING);
}

static void host_respond(void *ctx, struct nvmf_transfer *nvmf)
{
    (void)ctx;
    aoe_slot_enter(slot_of(nvmf), AOE_SLOT_ANSWERS);
}

static struct aoe_queue *queue_of(struct aoe *aoe, uint16_t qpair)
{
    return aoe->queue[ADMIN].qpair == qpair ? &aoe->queue[ADMIN]
                                            : &aoe->queue[IO];
}

static void host_disconnect(void *ctx, uint16_t qpair)
{
    struct aoe_queue *queue = queue_of(ctx, qpair);

    ASSERT(queue->qpair == qpair);
    queue->is_ending = true;
}

/* The target no longer uses a queue pair, nor the memory of its commands. */
static void queue_ended(struct aoe *aoe, struct aoe_queue *queue)
{
    bool is_io = queue == &aoe->queue[IO];

    for (unsigned int i = 0; i < AOE_REQUESTS; i++) {
        struct aoe_slot *slot = &aoe->slots[i];

        if (slot->state == AOE_SLOT_TARGET && slot->is_of_io == is_io) {
            aoe_slot_enter(slot, AOE_SLOT_FREE);
        }
    }
    *queue = (struct aoe_queue){.qpair = AOE_NO_QPAIR};
}

static void host_drained(void *ctx, uint16_t qpair)
{
    struct aoe *aoe = ctx;
    struct aoe_queue *queue = queue_of(aoe, qpair);

    ASSERT(queue->qpair == qpair && queue->is_draining);
    queue_ended(aoe, queue);
}

/* ---- The end of the association. */

/* Give the target back what it waits for: nobody gets this data any more. */
static void fail_slot(struct aoe_slot *slot)
{
    struct nvmf_target *target = slot->aoe->config.target;

    if (slot->state == AOE_SLOT_SENDING) {
        aoe_slot_enter(slot, AOE_SLOT_TARGET);
        nvmf_request_sent(target, slot->nvmf, false);
    } else if (slot->state == AOE_SLOT_ANSWERS) {
        aoe_slot_enter(slot, AOE_SLOT_FREE);
        nvmf_request_done(target, slot->nvmf);
    }
}

static void queue_close(struct aoe *aoe, struct aoe_queue *queue)
{
    bool is_io = queue == &aoe->queue[IO];

    if (queue->qpair == AOE_NO_QPAIR || queue->is_draining) {
        return;
    }
    queue->is_draining = true;
    if (nvmf_qpair_closed(aoe->config.target, queue->qpair)) {
        queue_ended(aoe, queue);
        return;
    }
    for (unsigned int i = 0; i < AOE_REQUESTS && queue->is_draining; i++) {
        if (aoe->slots[i].is_of_io == is_io) {
            fail_slot(&aoe->slots[i]);
        }
    }
}

static void host_end(struct aoe *aoe)
{
    host_enter(aoe, AOE_HOST_ENDING);
    queue_close(aoe, &aoe->queue[IO]);
    queue_close(aoe, &aoe->queue[ADMIN]);
}

/* ---- Commands. */

static void host_command(struct aoe_slot *slot, const struct aoe_queue *queue,
                         const struct nvme_sqe *sqe,
                         const struct nvmf_data *data)
{
    struct aoe *aoe = slot->aoe;
    uint8_t bytes[NVME_SQE_LEN];

    slot->is_of_io = queue == &aoe->queue[IO];
    slot->submitted_us = aoe->now_us;
    nvme_sqe_emit(bytes, sqe);
    aoe_slot_enter(slot, AOE_SLOT_TARGET);
    nvmf_capsule(aoe->config.target, queue->qpair, slot->nvmf, bytes, data,
                 aoe->now_us);
}

static struct nvmf_piece slot_piece(const struct aoe_slot *slot, uint32_t len)
{
    return (struct nvmf_piece){
        .ptr = slot->data,
        .len_bytes = len,
        .handle = slot->aoe->config.handle,
    };
}

void aoe_host_submit(struct aoe_slot *slot)
{
    struct aoe *aoe = slot->aoe;
    uint32_t len = slot->ata.count * (uint32_t)AOE_SECTOR_LEN;
    const struct nvme_sqe sqe = {
        .opcode = slot->ata.is_write ? NVM_WRITE : NVM_READ,
        .psdt = SQE_PSDT_SGL,
        .cid = (uint16_t)(slot - aoe->slots),
        .nsid = slot->header.minor + 1u,
        .cdw10 = (uint32_t)slot->lba,
        .cdw11 = (uint32_t)(slot->lba >> 32),
        .cdw12 = (slot->ata.count - 1u) | (slot->ata.is_write ? RW_FUA : 0),
    };
    struct nvmf_data data = {.len_bytes = len};

    if (slot->ata.is_write) {
        data.in_capsule = slot_piece(slot, len);
    }
    host_command(slot, &aoe->queue[IO], &sqe, &data);
}

/* ---- The begin of the association. */

static void send_connect(struct aoe *aoe, uint16_t qid, uint16_t depth)
{
    struct aoe_slot *control = control_of(aoe);
    const struct connect_command command = {
        .qid = qid,
        .sqsize = (uint16_t)(depth - 1),
        .has_sq_flow_control = true,
    };
    struct connect_data connect = {
        .cntlid = qid == 0 ? NVME_CNTLID_DYNAMIC : aoe->cntlid,
        .hostnqn = AOE_HOSTNQN,
    };
    const struct nvmf_data data = {
        .len_bytes = CONNECT_DATA_LEN,
        .in_capsule = slot_piece(control, CONNECT_DATA_LEN),
    };
    struct nvme_sqe sqe = {0};

    memcpy(connect.hostid, aoe->config.hostid, sizeof(connect.hostid));
    memcpy(connect.subnqn, nvmf_target_config(aoe->config.target)->subnqn,
           NVMF_NQN_MAX + 1);
    connect_command_build(&sqe, &command);
    sqe.cid = AOE_SLOTS;
    connect_data_emit(control->data, &connect);
    host_command(control, &aoe->queue[qid == 0 ? ADMIN : IO], &sqe, &data);
}

static void send_enable(struct aoe *aoe)
{
    const struct nvmf_data data = {0};
    struct nvme_sqe sqe = {.fctype = FABRICS_PROPERTY_SET};

    property_command_build(&sqe, &(struct property_command){
                                     .size_bytes = 4,
                                     .offset = PROPERTY_CC,
                                     .value = 6u << CC_IOSQES_SHIFT |
                                              4u << CC_IOCQES_SHIFT | CC_EN,
                                 });
    sqe.cid = AOE_SLOTS;
    host_command(control_of(aoe), &aoe->queue[ADMIN], &sqe, &data);
}

/* @return false when the target has no queue pair */
static bool open_queue(struct aoe *aoe, struct aoe_queue *queue)
{
    const struct nvmf_qpair_params params = {
        .transport = &aoe->transport,
        .portid = aoe->config.portid,
    };
    uint16_t qpair;

    if (nvmf_qpair_reserve(aoe->config.target, &params, &qpair) !=
        NVMF_RESERVE_OK) {
        return false;
    }
    *queue = (struct aoe_queue){.qpair = qpair};
    nvmf_qpair_open(aoe->config.target, qpair, aoe->now_us);
    return true;
}

static void host_begin(struct aoe *aoe)
{
    if (!open_queue(aoe, &aoe->queue[ADMIN])) {
        aoe->retry_us = aoe->now_us + RETRY_US;
        return;
    }
    host_enter(aoe, AOE_HOST_ADMIN);
    send_connect(aoe, 0, NVMF_ADMIN_DEPTH);
}

/* The answer to a command of the association has come. */
static void host_go_on(struct aoe *aoe)
{
    struct aoe_slot *control = control_of(aoe);
    struct nvme_cqe cqe;

    nvme_cqe_parse(&cqe, control->nvmf->cqe);
    aoe_slot_enter(control, AOE_SLOT_FREE);
    nvmf_request_done(aoe->config.target, control->nvmf);
    if (cqe.status != NVME_SC_SUCCESS) {
        host_end(aoe);
    } else if (aoe->host_state == AOE_HOST_ADMIN) {
        aoe->cntlid = (uint16_t)cqe.dw0;
        host_enter(aoe, AOE_HOST_ENABLING);
        send_enable(aoe);
    } else if (aoe->host_state == AOE_HOST_ENABLING) {
        if (!open_queue(aoe, &aoe->queue[IO])) {
            host_end(aoe);
            return;
        }
        host_enter(aoe, AOE_HOST_IO);
        send_connect(aoe, 1, IO_DEPTH);
    } else {
        ASSERT(aoe->host_state == AOE_HOST_IO);
        host_enter(aoe, AOE_HOST_LIVE);
        if (aoe->config.connected != NULL) {
            aoe->config.connected(aoe->config.connected_ctx);
        }
    }
}

bool aoe_host_step(struct aoe *aoe)
{
    if (__builtin_expect(aoe->host_state == AOE_HOST_LIVE, 1) &&
        !aoe->queue[ADMIN].is_ending && !aoe->queue[IO].is_ending) {
        return false;
    }
    if (aoe->host_state == AOE_HOST_IDLE) {
        if (aoe->is_stopped || aoe->now_us < aoe->retry_us) {
            return false;
        }
        host_begin(aoe);
        return true;
    }
    if (aoe->host_state == AOE_HOST_ENDING) {
        if (aoe->queue[ADMIN].qpair != AOE_NO_QPAIR ||
            aoe->queue[IO].qpair != AOE_NO_QPAIR) {
            return false;
        }
        aoe->retry_us = aoe->now_us + RETRY_US;
        host_enter(aoe, AOE_HOST_IDLE);
        return true;
    }
    if (aoe->queue[ADMIN].is_ending || aoe->queue[IO].is_ending) {
        host_end(aoe);
        return true;
    }
    if (control_of(aoe)->state == AOE_SLOT_ANSWERS) {
        host_go_on(aoe);
        return true;
    }
    return false;
}

uint64_t aoe_host_watch(struct aoe *aoe)
{
    uint64_t next_us = UINT64_MAX;

    if (aoe->host_state == AOE_HOST_IDLE) {
        return aoe->is_stopped ? UINT64_MAX : aoe->retry_us;
    }
    for (unsigned int i = 0; i < AOE_REQUESTS && aoe->submitted != 0; i++) {
        if (aoe->slots[i].state == AOE_SLOT_TARGET) {
            next_us = MIN(next_us, aoe->slots[i].submitted_us + ANSWER_US);
        }
    }
    if (next_us <= aoe->now_us && aoe->host_state != AOE_HOST_ENDING) {
        host_end(aoe);
        return aoe->now_us;
    }
    return aoe->host_state == AOE_HOST_ENDING ? UINT64_MAX : next_us;
}

void aoe_stop(struct aoe *aoe)
{
    aoe->is_stopped = true;
    if (aoe->host_state != AOE_HOST_IDLE &&
        aoe->host_state != AOE_HOST_ENDING) {
        host_end(aoe);
    }
}

void aoe_host_init(struct aoe *aoe)
{
    uint8_t *requests = aoe->config.requests;
    uint8_t *memory = aoe->config.memory;

    aoe->transport = (struct nvmf_transport){
        .ctx = aoe,
        .trtype = TRTYPE_INTRA_HOST,
        .sgls = SGLS_SUPPORTED,
        .in_capsule_len = AOE_SLOT_BYTES,
        .admin_in_capsule_len = CONNECT_DATA_LEN,
        .is_inside = true,
        .fetch = host_fetch,
        .send = host_send,
        .respond = host_respond,
        .disconnect = host_disconnect,
        .drained = host_drained,
    };
    aoe->queue[ADMIN].qpair = AOE_NO_QPAIR;
    aoe->queue[IO].qpair = AOE_NO_QPAIR;
    for (uint32_t i = 0; i < AOE_REQUESTS; i++) {
        struct aoe_slot *slot = &aoe->slots[i];

        slot->aoe = aoe;
        slot->data = memory + i * (size_t)AOE_SLOT_BYTES;
        slot->nvmf = nvmf_request_init(requests + i * nvmf_request_bytes(),
                                       aoe->config.first_request + i, slot);
    }
}

size_t aoe_request_bytes(void)
{
    return AOE_REQUESTS * nvmf_request_bytes();
}
