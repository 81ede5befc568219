/* SPDX-License-Identifier: BSD-2-Clause */
/* Driver of the TCP offload engine: see toe.h. */
#include "firmware/drivers/toe.h"

#include <string.h>

#include "firmware/hal/relax.h"

enum { TCB_ALIGN = 64, QUERY_SEARCHES = 1 };

static uint32_t reg_read(const struct toe *toe, uint32_t offset)
{
    return mmio_read32(toe->regs + offset);
}

static void reg_write(const struct toe *toe, uint32_t offset, uint32_t value)
{
    mmio_write32(toe->regs + offset, value);
}

/* ---- Bring-up */

enum init_result toe_init(struct toe *toe, const struct toe_config *config)
{
    *toe = (struct toe){.regs = config->regs, .queue.regs = config->regs};
    if (!cmd_queue_size_is_valid(config->commands)) {
        return INIT_BAD_CONFIG;
    }
    if (reg_read(toe, A_TOE_ID) != TOE_ID_VALUE) {
        return INIT_NO_DEVICE;
    }
    reg_write(toe, A_TOE_CTRL, FIELD_SET(0, TOE_CTRL, RESET, 1));
    toe->tcb = dram_alloc(config->dram, TOE_TCB_LEN, TCB_ALIGN);
    if (toe->tcb == NULL || !cmd_queue_alloc(&toe->queue, config->dram,
                                             config->commands, TOE_CMD_LEN)) {
        return INIT_NO_MEMORY;
    }
    if (!cmd_queue_start(&toe->queue)) {
        return INIT_REFUSED;
    }
    reg_write(toe, A_TOE_IRQ_ENABLE, R_TOE_IRQ_STATUS_ENTRY_MASK);
    return INIT_OK;
}

bool toe_start(struct toe *toe, const struct toe_params *params)
{
    uint32_t config = FIELD_SET(0, TOE_CONFIG, MTU, params->mtu_bytes) |
                      FIELD_SET(0, TOE_CONFIG, RING_LOG2, params->ring_log2);

    reg_write(toe, A_TOE_CONFIG, config);
    if (reg_read(toe, A_TOE_CONFIG) != config) {
        return false;
    }
    for (uint32_t i = 0; i < TOE_SECRET_WORDS; i++) {
        reg_write(toe, A_TOE_SECRET + 4 * i, params->secret[i]);
    }
    reg_write(toe, A_TOE_CTRL, FIELD_SET(0, TOE_CTRL, ENABLE, 1));
    return true;
}

void toe_stop(struct toe *toe)
{
    reg_write(toe, A_TOE_CTRL, 0);
}

/* ---- Commands */

uint32_t toe_room(struct toe *toe)
{
    struct cmd_queue *queue = &toe->queue;

    queue->cmd_ci = dma_load32(queue->page, QUEUE_PAGE_CMD_CI);
    hal_dma_mb();
    return queue->mask + 1 - (queue->cmd_pi - queue->cmd_ci);
}

/* @return the next slot, which command_post() publishes; NULL: none is free */
static uint8_t *command_begin(struct toe *toe, enum toe_opcode opcode,
                              uint32_t tid)
{
    struct cmd_queue *queue = &toe->queue;
    uint8_t *slot =
        queue->commands + (size_t)(queue->cmd_pi & queue->mask) * TOE_CMD_LEN;

    if (queue->cmd_pi - queue->cmd_ci > queue->mask && toe_room(toe) == 0) {
        return NULL;
    }
    memset(slot, 0, TOE_CMD_LEN);
    dma_store8(slot, TOE_CMD_OPCODE, (uint8_t)opcode);
    dma_store32(slot, TOE_CMD_TID, tid);
    return slot;
}

static bool command_post(struct toe *toe, enum toe_opcode opcode, uint32_t tid,
                         uint64_t cookie)
{
    uint8_t *slot = command_begin(toe, opcode, tid);

    if (slot == NULL) {
        return false;
    }
    dma_store64(slot, TOE_CMD_COOKIE, cookie);
    toe->queue.cmd_pi++;
    return true;
}

/* Publish a command that command_begin() has begun, and wait until the engine
 * has taken it. */
static enum toe_status command_wait(struct toe *toe, const uint8_t *slot)
{
    uint8_t status;

    toe->queue.cmd_pi++;
    toe_kick(toe);
    while ((status = dma_load8(slot, TOE_CMD_STATUS)) == TOE_PENDING) {
        hal_relax();
    }
    hal_dma_rmb();
    return (enum toe_status)status;
}

static bool command_run(struct toe *toe, const uint8_t *slot)
{
    return command_wait(toe, slot) == TOE_OK;
}

static bool listen_run(struct toe *toe, enum toe_opcode opcode, uint16_t port)
{
    uint8_t *slot = command_begin(toe, opcode, 0);

    if (slot == NULL) {
        return false;
    }
    dma_store16(slot, TOE_CMD_PORT, port);
    return command_run(toe, slot);
}

bool toe_listen(struct toe *toe, uint16_t port)
{
    return listen_run(toe, TOE_CMD_LISTEN, port);
}

void toe_unlisten(struct toe *toe, uint16_t port)
{
    (void)listen_run(toe, TOE_CMD_UNLISTEN, port);
}

bool toe_set_laddr(struct toe *toe, uint8_t index, uint8_t port,
                   const uint8_t *ip, uint16_t vlan)
{
    uint8_t *slot;

    if (ip == NULL) {
        return command_post(toe, TOE_CMD_LADDR_CLEAR, index, 0);
    }
    slot = command_begin(toe, TOE_CMD_LADDR_SET, index);
    if (slot == NULL) {
        return false;
    }
    dma_store8(slot, TOE_LADDR_PORT, port);
    dma_store16(slot, TOE_LADDR_VLAN, vlan);
    memcpy(slot + TOE_LADDR_IP, ip, TOE_LADDR_IP_LEN);
    toe->queue.cmd_pi++;
    return true;
}

bool toe_accept(struct toe *toe, uint32_t tid, void *ring)
{
    uint8_t *slot = command_begin(toe, TOE_CMD_ACCEPT, tid);

    if (slot == NULL) {
        return false;
    }
    dma_store64(slot, TOE_CMD_ADDR, hal_dma_addr(ring));
    toe->queue.cmd_pi++;
    return true;
}

bool toe_move_ring(struct toe *toe, uint32_t tid, void *ring)
{
    uint8_t *slot = command_begin(toe, TOE_CMD_RING, tid);

    if (slot == NULL) {
        return false;
    }
    dma_store64(slot, TOE_CMD_ADDR, hal_dma_addr(ring));
    return command_run(toe, slot);
}

bool toe_follow(struct toe *toe, uint32_t tid, uint32_t len_bytes,
                bool has_header_digest, bool has_data_digest)
{
    uint8_t *slot = command_begin(toe, TOE_CMD_FOLLOW, tid);

    if (slot == NULL) {
        return false;
    }
    dma_store32(slot, TOE_CMD_LENGTH, len_bytes);
    dma_store8(slot, TOE_FOLLOW_FLAGS,
               (uint8_t)((has_header_digest ? TOE_FOLLOW_HEADER_DIGEST : 0) |
                         (has_data_digest ? TOE_FOLLOW_DATA_DIGEST : 0)));
    return command_run(toe, slot);
}

static void pieces_write(uint8_t *slot, const struct toe_piece *pieces,
                         uint8_t count)
{
    for (uint8_t i = 0; i < count; i++) {
        uint32_t at = TOE_PLACE_PIECE + i * (uint32_t)TOE_PIECE_LEN;

        dma_store64(slot, at + TOE_PIECE_ADDR, hal_dma_addr(pieces[i].data));
        dma_store32(slot, at + TOE_PIECE_LENGTH, pieces[i].len_bytes);
    }
}

bool toe_place(struct toe *toe, uint32_t tid, const struct toe_place *place,
               const struct toe_piece *pieces, uint8_t count)
{
    uint8_t *slot = command_begin(toe, TOE_CMD_PLACE, tid);

    ASSERT(count <= TOE_PIECES_MAX);
    if (slot == NULL) {
        return false;
    }
    dma_store16(slot, TOE_PLACE_TTAG, place->ttag);
    dma_store16(slot, TOE_PLACE_CCCID, place->cccid);
    dma_store32(slot, TOE_PLACE_OFFSET, place->offset);
    dma_store8(slot, TOE_PLACE_COUNT, count);
    pieces_write(slot, pieces, count);
    toe->queue.cmd_pi++;
    return true;
}

uint16_t toe_record_contexts(const struct toe *toe)
{
    return (uint16_t)FIELD_GET(reg_read(toe, A_TOE_RECORDS), TOE_RECORDS,
                               CONTEXTS);
}

enum toe_status toe_set_key(struct toe *toe, uint32_t tid,
                            const struct toe_key *key)
{
    uint8_t *slot = command_begin(toe, TOE_CMD_KEY, tid);

    if (slot == NULL) {
        return TOE_PENDING;
    }
    dma_store64(slot, TOE_KEY_SEQUENCE, key->sequence);
    dma_store8(slot, TOE_KEY_FLAGS, key->receives ? TOE_KEY_RECEIVES : 0);
    dma_store8(slot, TOE_KEY_LENGTH, key->len_bytes);
    memcpy(slot + TOE_KEY_BYTES, key->bytes, TOE_KEY_MAX);
    memcpy(slot + TOE_KEY_IV, key->iv, TOE_KEY_IV_LEN);
    dma_store32(slot, TOE_KEY_HELD, key->held);
    return command_wait(toe, slot);
}

bool toe_send_record(struct toe *toe, uint32_t tid, uint8_t type,
                     const void *data, uint32_t len_bytes, uint64_t cookie)
{
    uint8_t *slot = command_begin(toe, TOE_CMD_SEND, tid);

    if (slot == NULL) {
        return false;
    }
    dma_store64(slot, TOE_CMD_COOKIE, cookie);
    dma_store64(slot, TOE_CMD_ADDR, hal_dma_addr(data));
    dma_store32(slot, TOE_CMD_LENGTH, len_bytes);
    dma_store8(slot, TOE_SEND_RECORD, type);
    toe->queue.cmd_pi++;
    return true;
}

void toe_settle(struct toe *toe)
{
    const uint8_t *slot;

    /* The engine takes commands at all times. */
    while ((slot = command_begin(toe, TOE_CMD_NOP, 0)) == NULL) {
        toe_kick(toe);
        hal_relax();
    }
    (void)command_run(toe, slot);
}

bool toe_reject(struct toe *toe, uint32_t tid)
{
    return command_post(toe, TOE_CMD_REJECT, tid, 0);
}

bool toe_send(struct toe *toe, uint32_t tid, const void *data,
              uint32_t len_bytes, uint64_t cookie)
{
    uint8_t *slot = command_begin(toe, TOE_CMD_SEND, tid);

    if (slot == NULL) {
        return false;
    }
    dma_store64(slot, TOE_CMD_COOKIE, cookie);
    dma_store64(slot, TOE_CMD_ADDR, hal_dma_addr(data));
    dma_store32(slot, TOE_CMD_LENGTH, len_bytes);
    toe->queue.cmd_pi++;
    return true;
}

bool toe_send_pieces(struct toe *toe, uint32_t tid,
                     const struct toe_piece *pieces, uint8_t count,
                     uint64_t cookie)
{
    uint8_t *slot = command_begin(toe, TOE_CMD_SEND, tid);

    ASSERT(count != 0 && count <= TOE_PIECES_MAX);
    if (slot == NULL) {
        return false;
    }
    dma_store64(slot, TOE_CMD_COOKIE, cookie);
    dma_store8(slot, TOE_SEND_MORE, (uint8_t)(count - 1));
    pieces_write(slot, pieces, count);
    toe->queue.cmd_pi++;
    return true;
}

bool toe_credit(struct toe *toe, uint32_t tid, uint32_t len_bytes)
{
    uint8_t *slot = command_begin(toe, TOE_CMD_CREDIT, tid);

    if (slot == NULL) {
        return false;
    }
    dma_store32(slot, TOE_CMD_LENGTH, len_bytes);
    toe->queue.cmd_pi++;
    return true;
}

bool toe_close(struct toe *toe, uint32_t tid, uint64_t cookie)
{
    return command_post(toe, TOE_CMD_CLOSE, tid, cookie);
}

bool toe_abort(struct toe *toe, uint32_t tid, uint64_t cookie)
{
    return command_post(toe, TOE_CMD_ABORT, tid, cookie);
}

bool toe_release(struct toe *toe, uint32_t tid)
{
    return command_post(toe, TOE_CMD_RELEASE, tid, 0);
}

const uint8_t *toe_query(struct toe *toe, uint32_t tid)
{
    uint8_t *slot = command_begin(toe, TOE_CMD_QUERY, tid);

    if (slot == NULL) {
        return NULL;
    }
    dma_store64(slot, TOE_CMD_ADDR, hal_dma_addr(toe->tcb));
    return command_run(toe, slot) ? toe->tcb : NULL;
}

const uint8_t *toe_query_next(struct toe *toe, uint32_t place)
{
    uint8_t *slot;

    /* The engine takes commands at all times. */
    while ((slot = command_begin(toe, TOE_CMD_QUERY, place)) == NULL) {
        toe_kick(toe);
        hal_relax();
    }
    dma_store64(slot, TOE_CMD_ADDR, hal_dma_addr(toe->tcb));
    dma_store32(slot, TOE_CMD_LENGTH, QUERY_SEARCHES);
    return command_run(toe, slot) &&
                   dma_load8(toe->tcb, TOE_TCB_SLOT_STATE) != TOE_SLOT_FREE
               ? toe->tcb
               : NULL;
}

struct toe_usage toe_usage(const struct toe *toe)
{
    uint32_t used = reg_read(toe, A_TOE_USED);
    uint32_t more = reg_read(toe, A_TOE_USED_MORE);

    return (struct toe_usage){
        .connections = (uint16_t)FIELD_GET(used, TOE_USED, CONNECTIONS),
        .half_open = (uint16_t)FIELD_GET(used, TOE_USED, HALF_OPEN),
        .time_waits = (uint16_t)FIELD_GET(more, TOE_USED_MORE, TIME_WAITS),
        .pages = (uint16_t)FIELD_GET(more, TOE_USED_MORE, PAGES),
    };
}

void toe_kick(struct toe *toe)
{
    cmd_queue_kick(&toe->queue);
}

/* ---- Entries */

/*
 * The engine has put entries off if the ring was full.  It was when the slot
 * before the first one that was taken just now has an entry of the next lap.
 */
static bool ring_was_full(const struct cmd_queue *queue, uint32_t first)
{
    struct cmd_queue last = *queue;

    last.cq_ci = first + queue->mask;
    return cmd_queue_next(&last) != NULL;
}

unsigned int toe_poll(struct toe *toe, unsigned int budget, toe_entry_fn *take,
                      void *ctx)
{
    struct cmd_queue *queue = &toe->queue;
    uint32_t first = queue->cq_ci;
    unsigned int count = 0;
    const uint8_t *cqe;

    while (count < budget && (cqe = cmd_queue_next(queue)) != NULL) {
        struct toe_entry entry;

        hal_dma_rmb();
        entry = (struct toe_entry){
            .cookie = dma_load64(cqe, QUEUE_CQE_COOKIE),
            .tid = dma_load32(cqe, TOE_CQE_TID),
            .value = dma_load32(cqe, TOE_CQE_VALUE),
            .port = (uint16_t)(dma_load32(cqe, QUEUE_CQE_STATUS) >> 16),
            .kind = dma_load8(cqe, TOE_CQE_KIND),
            .status = dma_load8(cqe, QUEUE_CQE_STATUS),
        };
        queue->cq_ci++;
        count++;
        take(ctx, &entry);
    }
    if (count != 0) {
        cmd_queue_publish_taken(queue);
        hal_dma_mb();
        if (ring_was_full(queue, first)) {
            mmio_write32(queue->regs + A_QUEUE_KICK, 1);
        }
    }
    return count;
}

bool toe_arm(struct toe *toe)
{
    return cmd_queue_arm(&toe->queue);
}

void toe_irq_take(struct toe *toe)
{
    reg_write(toe, A_TOE_IRQ_STATUS,
              R_TOE_IRQ_STATUS_ENTRY_MASK | R_TOE_IRQ_STATUS_REFUSED_MASK);
}

static uint64_t counter_read(const struct toe *toe, uint32_t offset)
{
    uint32_t low = reg_read(toe, offset);

    return (uint64_t)reg_read(toe, offset + 4) << 32 | low;
}

uint64_t toe_counter_read(const struct toe *toe, enum toe_counter counter)
{
    return counter_read(toe, TOE_COUNTER_BASE + 8 * (uint32_t)counter);
}

uint64_t toe_tcp_counter_read(const struct toe *toe, unsigned int counter)
{
    return counter_read(toe, TOE_TCP_COUNTER_BASE + 8 * counter);
}
