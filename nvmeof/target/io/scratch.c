/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scratch buffers: memory for blocks that a command reads from the medium but
 * does not send to its host (Compare, Verify, Copy).
 *
 * They are not part of the transport's buffers, so a command that holds its
 * data can wait for a scratch buffer.  A command that holds a scratch buffer
 * waits only for the medium, and gives the buffer back after each chunk if
 * others wait.  So each of them is served, and none blocks another.
 */
#include "nvmeof/target/io/io.h"

void scratch_init(struct nvmf_scratch *scratch)
{
    for (uint8_t i = 0; i < SCRATCH_COUNT; i++) {
        scratch->piece[i].ptr = scratch->memory[i];
    }
}

static bool take_free(struct nvmf_scratch *scratch, struct nvmf_request *req)
{
    for (uint8_t i = 0; i < SCRATCH_COUNT; i++) {
        if (!(scratch->used & BIT(i))) {
            scratch->used |= BIT(i);
            req->scratch = i;
            req->holds |= HOLDS_SCRATCH;
            return true;
        }
    }
    return false;
}

/*
 * Take a scratch buffer, unless the request has one.
 *
 * @return false when it must wait; execute() is called again then.
 */
bool scratch_take(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_scratch *scratch = &target->scratch;

    if (req->holds & HOLDS_SCRATCH) {
        return true;
    }
    if (scratch->waiting.head == NULL && take_free(scratch, req)) {
        return true;
    }
    request_wait_turn(req);
    queue_push(&scratch->waiting, req);
    return false;
}

/* Give the request's buffer back, and serve those that wait for one. */
void scratch_give(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_scratch *scratch = &target->scratch;
    struct nvmf_request *next;

    scratch->used &= ~BIT(req->scratch);
    req->holds &= (uint8_t)~HOLDS_SCRATCH;
    if (scratch->is_served) {
        return; /* the call that is serving will look again */
    }
    scratch->is_served = true;
    while ((next = scratch->waiting.head) != NULL && take_free(scratch, next)) {
        queue_pop(&scratch->waiting);
        request_resume(next);
        request_execute(target, next);
    }
    scratch->is_served = false;
}

/* How many of the next `rest_blocks` fit into a scratch buffer. */
uint32_t scratch_blocks(const struct nvmf_request *req, uint32_t rest_blocks)
{
    uint32_t room = (uint32_t)SCRATCH_BYTES >> req->ns->geometry.block_shift;

    return MIN(room, rest_blocks);
}

/* Start a media operation between io->first_lba and the scratch buffer. */
uint16_t scratch_media(struct nvmf_target *target, struct nvmf_request *req,
                       struct media_io *io)
{
    struct nvmf_piece *piece = &target->scratch.piece[req->scratch];

    piece->len_bytes = io->count_blocks << req->ns->geometry.block_shift;
    io->pieces = piece;
    io->piece_count = 1;
    return request_media(target, req, io);
}
