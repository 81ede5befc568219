/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fused Compare and Write between other commands: two controllers with two I/O
 * queues each send pairs, halves, and overlapping writes; commands are aborted,
 * media operations fail and end in any order, and queues end at any time.
 *
 * These hold for every input:
 *  - A fused Write is executed only if its Compare has succeeded, and at that
 *    moment the blocks still have what the Compare expected.
 *  - A fused Write succeeds only as the second half of a pair whose Compare has
 *    succeeded, and only if it was written.
 *  - Overlapping writes are never at the media together if they come through
 *    two controllers, or if one of them is fused; and none overtakes an older
 *    one of another controller.
 *  - Each command on a queue that is still open gets one answer, except a first
 *    half that waits for its second one.
 *  - At the end the target holds no buffer and no place in the order of writes.
 *
 * Spec: NVM Express 1.4 sections 4.12, 6 and 6.6.
 */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/replay.h"

enum {
    STEP_LEN = 3, /* enum step and queue, blocks, details */
    STEPS_MAX = 48,
    SENT_MAX = 2 * STEPS_MAX,
    CTRLS = 2,
    QUEUES = 4, /* I/O queues; after them, the admin queues are counted */
    BLOCK = 512,
    PLACES = 4,     /* blocks that commands begin at */
    BLOCKS_MAX = 3, /* blocks of a command */
    CLOSED = 0xffff,
    NOBODY = -1,
};

/* b[0]: step, queue << 4; b[1]: first block, count; b[2]: details. */
enum step {
    STEP_PAIR,    /* bit 0 of details: the blocks differ */
    STEP_FIRST,   /* bit 1: the data are not in the capsule */
    STEP_SECOND,  /* bit 1 */
    STEP_WRITE,   /* bit 1 */
    STEP_COMPARE, /* bits 0, 1; not fused */
    STEP_READ,
    STEP_ABORT, /* which command */
    STEP_FETCH, /* which fetch ends */
    STEP_MEDIA, /* which media operation ends */
    STEP_MEDIA_FAILS,
    STEP_DONE,  /* the responses are acknowledged */
    STEP_CLOSE, /* the queue's connection ends */
    STEPS,
};

struct sent {
    struct fake_request *request; /* NULL after the end of the command */
    uint8_t queue, opcode, fuse;
    uint8_t first, blocks;
    bool came_along; /* the data are in the capsule */
    bool is_answered, is_written, has_failed;
    uint16_t cid, status;
    int partner; /* the first half of the pair, or NOBODY */
    uint8_t data[BLOCKS_MAX * BLOCK];
};

/* An exception to the rule against file-scope data: a fuzz target has no
 * context pointer. */
static struct {
    struct fake *fake;
    uint16_t admin[CTRLS];
    uint16_t qpair[QUEUES]; /* or CLOSED */
    int last[QUEUES];       /* the last command of the queue, or NOBODY */
    struct sent sent[SENT_MAX];
    int count;
} bed;

static void abort_unless(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

/* ---- Watching the target. */

static struct sent *find_sent(const struct media_owner *owner)
{
    for (int i = 0; i < bed.count; i++) {
        if (bed.sent[i].request != NULL &&
            &bed.sent[i].request->req.media_owner == owner) {
            return &bed.sent[i];
        }
    }
    return NULL;
}

static uint8_t *block_at(unsigned int lba)
{
    return bed.fake->blocks[0] + lba * BLOCK;
}

static bool sent_overlaps(const struct sent *a, const struct sent *b)
{
    return a->first < b->first + b->blocks && b->first < a->first + a->blocks;
}

/* Whether a write holds its place before every write that comes later. */
static bool is_under_way(const struct sent *sent)
{
    return sent->request != NULL &&
           (sent->request->req.state == NVMF_REQUEST_MEDIA ||
            sent->request->req.state == NVMF_REQUEST_WAIT_MEDIA ||
            sent->request->req.state == NVMF_REQUEST_WAIT_TURN);
}

/* An older plain write came along with its command, so that it has had its
 * place in the order since then. */
static void check_write(const struct sent *write)
{
    for (const struct sent *old = bed.sent; old < write; old++) {
        if (old->opcode == NVM_WRITE && old->fuse == 0 && old->came_along &&
            old->queue % CTRLS != write->queue % CTRLS && is_under_way(old)) {
            abort_unless(!sent_overlaps(old, write));
        }
    }
}

static void check_media(void)
{
    for (unsigned int i = 0; i < bed.fake->media_count; i++) {
        const struct media_io *io = &bed.fake->media[i];
        const struct sent *a = find_sent(io->owner);

        if (io->op != MEDIA_WRITE || a == NULL) {
            continue;
        }
        check_write(a);
        for (unsigned int k = 0; k < i; k++) {
            const struct sent *b = find_sent(bed.fake->media[k].owner);

            if (bed.fake->media[k].op == MEDIA_WRITE && b != NULL &&
                sent_overlaps(a, b)) {
                abort_unless(a->queue % CTRLS == b->queue % CTRLS &&
                             a->fuse == 0 && b->fuse == 0);
            }
        }
    }
}

/* Note the answers that have come, and compare those of pairs. */
static void take_answers(void)
{
    for (int i = 0; i < bed.count; i++) {
        struct sent *sent = &bed.sent[i];

        if (sent->request != NULL && sent->request->is_answered) {
            sent->is_answered = true;
            sent->status = sent->request->cqe.status;
            sent->request = NULL;
        }
    }
    for (int i = 0; i < bed.count; i++) {
        const struct sent *second = &bed.sent[i];

        if (second->fuse != 2 || !second->is_answered) {
            continue;
        }
        if (second->status == 0) {
            abort_unless(second->is_written && second->partner != NOBODY);
            abort_unless(bed.sent[second->partner].is_answered &&
                         bed.sent[second->partner].status == 0);
        } else {
            abort_unless(!second->is_written || second->has_failed);
        }
    }
}

/* ---- Ends of what the target has started. */

static void end_fetch(unsigned int i)
{
    struct fake *fake = bed.fake;
    struct nvmf_request *req = fake->fetch[i];
    const struct fake_request *request =
        container_of(req, struct fake_request, req);
    bool is_open = fake->target->qpair[req->qpair].state == QPAIR_LIVE;

    fake->fetch[i] = fake->fetch[--fake->fetch_count];
    if (is_open) {
        abort_unless(req->transfer.piece_count == 1 &&
                     req->transfer.fetch_len <= request->host_len);
        memcpy(req->transfer.pieces[0].ptr, request->host,
               req->transfer.fetch_len);
    }
    nvmf_request_fetched(fake->target, &req->transfer, is_open);
}

static void end_media(unsigned int i, enum media_status status)
{
    struct fake *fake = bed.fake;
    struct media_io io = fake->media[i];
    struct sent *sent = find_sent(io.owner);

    fake->media[i] = fake->media[0];
    fake->media[0] = io;
    if (io.op == MEDIA_WRITE && sent != NULL) {
        if (sent->fuse == 2) {
            abort_unless(sent->partner != NOBODY);
            abort_unless(memcmp(block_at(sent->first),
                                bed.sent[sent->partner].data, BLOCK) == 0);
        }
        sent->is_written = true;
        sent->has_failed = status != MEDIA_OK;
    }
    fake->media_status = status;
    fake_run_media(fake);
    fake->media_status = MEDIA_OK;
    fake->history_count = 0;
}

static void end_responses(void)
{
    bed.fake->hold_done = bed.fake->hold_send = false;
    fake_run(bed.fake);
    bed.fake->hold_done = bed.fake->hold_send = true;
    take_answers();
}

/* Let everything end that can. */
static void end_all(void)
{
    struct fake *fake = bed.fake;

    for (;;) {
        end_responses();
        check_media();
        if (fake->fetch_count != 0) {
            end_fetch(0);
        } else if (fake->media_count != 0) {
            end_media(0, MEDIA_OK);
        } else {
            break;
        }
    }
}

/* ---- Steps. */

/* Connect the queue again if it has ended.  Its old commands get no answers. */
static void open_queue(unsigned int queue)
{
    struct fake *fake = bed.fake;

    if (bed.qpair[queue] != CLOSED) {
        return;
    }
    end_all();
    for (int i = 0; i < bed.count; i++) {
        if (bed.sent[i].queue == queue) {
            bed.sent[i].request = NULL;
        }
    }
    fake->hold_fetch = fake->hold_done = false;
    bed.qpair[queue] = fake_io_queue(fake, bed.admin[queue % CTRLS],
                                     (uint16_t)(1 + queue / CTRLS));
    fake->hold_fetch = fake->hold_done = true;
    bed.last[queue] = NOBODY;
}

static struct sent *new_sent(unsigned int queue, uint8_t opcode, uint8_t fuse)
{
    struct sent *sent = &bed.sent[bed.count++];

    abort_unless(bed.count <= SENT_MAX);
    *sent = (struct sent){.queue = (uint8_t)queue,
                          .opcode = opcode,
                          .fuse = fuse,
                          .partner = NOBODY,
                          .cid = bed.fake->next_cid};
    return sent;
}

static void send_io(unsigned int queue, uint8_t opcode, uint8_t fuse,
                    const uint8_t *step)
{
    struct sent *sent;
    struct nvme_sqe sqe;
    uint32_t len;

    open_queue(queue);
    sent = new_sent(queue, opcode, fuse);
    sent->first = step[1] % PLACES;
    sent->blocks = (uint8_t)(1 + (step[1] >> 4) % BLOCKS_MAX);
    sent->came_along = opcode != NVM_READ && !(step[2] & 2);
    len = (uint32_t)sent->blocks * BLOCK;
    if (opcode == NVM_COMPARE) {
        memcpy(sent->data, block_at(sent->first), len);
        sent->data[0] ^= step[2] & 1;
    } else {
        /* Each write has data of its own. */
        memset(sent->data, (int)(sent - bed.sent) + 1, len);
    }
    if (fuse == 2 && bed.last[queue] != NOBODY &&
        bed.sent[bed.last[queue]].fuse == 1) {
        sent->partner = bed.last[queue];
    }
    bed.last[queue] = (int)(sent - bed.sent);
    sqe = fake_rw(opcode, sent->first, sent->blocks);
    sqe.fuse = fuse;
    sent->request =
        sent->came_along
            ? fake_send_in_capsule(bed.fake, bed.qpair[queue], &sqe, sent->data,
                                   len)
            : fake_send(bed.fake, bed.qpair[queue], &sqe, sent->data, len);
}

/* Abort any command of the queue, also one that has ended. */
static void send_abort(uint8_t which)
{
    unsigned int queue;
    struct sent *abort_command;
    const struct sent *victim;
    struct nvme_sqe sqe;

    if (bed.count == 0 || bed.sent[which % bed.count].queue >= QUEUES) {
        return;
    }
    victim = &bed.sent[which % bed.count];
    queue = victim->queue;
    abort_command = new_sent(QUEUES + queue % CTRLS, ADMIN_ABORT, 0);
    sqe = fake_admin(ADMIN_ABORT, 0,
                     (uint32_t)victim->cid << 16 | (1 + queue / CTRLS), 0);
    abort_command->request =
        fake_send(bed.fake, bed.admin[queue % CTRLS], &sqe, NULL, 0);
}

/* What the queue's commands have started goes on; their answers are lost. */
static void close_queue(unsigned int queue)
{
    uint16_t qpair = bed.qpair[queue];

    if (qpair != CLOSED) {
        bed.qpair[queue] = CLOSED;
        (void)!nvmf_qpair_closed(bed.fake->target, qpair);
    }
}

static void take_step(const uint8_t *step)
{
    struct fake *fake = bed.fake;
    unsigned int queue = (step[0] >> 4) % QUEUES;

    switch ((enum step)(step[0] % 16 % STEPS)) {
    case STEP_PAIR:
        send_io(queue, NVM_COMPARE, 1, step);
        send_io(queue, NVM_WRITE, 2, step);
        break;
    case STEP_FIRST:
        send_io(queue, NVM_COMPARE, 1, step);
        break;
    case STEP_SECOND:
        send_io(queue, NVM_WRITE, 2, step);
        break;
    case STEP_WRITE:
        send_io(queue, NVM_WRITE, 0, step);
        break;
    case STEP_COMPARE:
        send_io(queue, NVM_COMPARE, 0, step);
        break;
    case STEP_READ:
        send_io(queue, NVM_READ, 0, step);
        break;
    case STEP_ABORT:
        send_abort(step[2]);
        break;
    case STEP_FETCH:
        if (fake->fetch_count != 0) {
            end_fetch(step[2] % fake->fetch_count);
        }
        break;
    case STEP_MEDIA:
    case STEP_MEDIA_FAILS:
        if (fake->media_count != 0) {
            end_media(step[2] % fake->media_count,
                      step[0] % 16 % STEPS == STEP_MEDIA ? MEDIA_OK
                                                         : MEDIA_WRITE_ERROR);
        }
        break;
    case STEP_DONE:
        end_responses();
        break;
    case STEP_CLOSE:
        close_queue(queue);
        break;
    case STEPS:
        break;
    }
}

/* ---- Inputs. */

static void bed_begin(void)
{
    bed.fake = fake_new();
    bed.fake->has_spare = true;
    fake_start(bed.fake);
    for (unsigned int i = 0; i < CTRLS; i++) {
        bed.admin[i] = fake_host(bed.fake, 0);
    }
    for (unsigned int i = 0; i < QUEUES; i++) {
        bed.qpair[i] = CLOSED;
    }
    bed.fake->hold_fetch = bed.fake->hold_media = true;
    bed.fake->hold_done = bed.fake->hold_send = true;
}

static void check_answered(void)
{
    for (int i = 0; i < bed.count; i++) {
        const struct sent *sent = &bed.sent[i];
        bool is_open =
            sent->queue >= QUEUES || bed.qpair[sent->queue] != CLOSED;
        bool may_wait = sent->fuse == 1 && bed.last[sent->queue] == i;

        if (is_open && sent->request != NULL) {
            abort_unless(may_wait);
        }
    }
}

static void check_idle(void)
{
    const struct fake *fake = bed.fake;

    abort_unless(fake->target->order.count == 0);
    abort_unless(fake->target->scratch.used == 0);
    abort_unless(fake->buffers_out == 0);
    for (unsigned int i = 0; i < fake->request_count; i++) {
        abort_unless(fake->request[i]->req.state == NVMF_REQUEST_FREE);
        fake->request[i]->is_done = true;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t steps = MIN(len / STEP_LEN, (size_t)STEPS_MAX);

    if (bed.fake == NULL) {
        bed_begin();
    }
    bed.count = 0;
    for (size_t i = 0; i < steps; i++) {
        take_step(data + i * STEP_LEN);
        take_answers();
        check_media();
    }
    end_all();
    check_answered();
    for (unsigned int i = 0; i < QUEUES; i++) {
        close_queue(i);
    }
    end_all();
    check_idle();
    return 0;
}

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    enum { Q1 = 0x10, Q2 = 0x20 };
    static const uint8_t pairs[] = {
        STEP_PAIR,  0, 0, STEP_PAIR | Q1, 0, 2, STEP_WRITE | Q2, 0x10, 0,
        STEP_MEDIA, 0, 0, STEP_FETCH,     0, 0, STEP_MEDIA,      0,    1,
        STEP_MEDIA, 0, 0, STEP_DONE,      0, 0, STEP_PAIR | Q1,  0,    1,
        STEP_MEDIA, 0, 0, STEP_PAIR,      1, 2, STEP_FETCH,      0,    0,
        STEP_CLOSE, 0, 0, STEP_MEDIA,     0, 0, STEP_PAIR,       1,    0,
    };
    static const uint8_t halves[] = {
        STEP_FIRST,  0, 0, STEP_READ,       0, 0, STEP_FIRST | Q1,  1, 0,
        STEP_SECOND, 1, 0, STEP_FIRST | Q1, 1, 2, STEP_FETCH,       0, 0,
        STEP_ABORT,  0, 3, STEP_WRITE,      1, 0, STEP_SECOND | Q1, 1, 2,
        STEP_ABORT,  0, 5, STEP_MEDIA,      0, 0, STEP_FIRST,       2, 0,
        STEP_CLOSE,  0, 0, STEP_SECOND,     2, 0, STEP_MEDIA_FAILS, 0, 0,
    };
    static const uint8_t aborts[] = {
        STEP_WRITE | Q1, 0, 0, STEP_PAIR,       0, 0, STEP_ABORT, 0, 2,
        STEP_PAIR,       0, 0, STEP_ABORT,      0, 4, STEP_MEDIA, 0, 0,
        STEP_WRITE | Q1, 1, 0, STEP_PAIR | Q2,  1, 2, STEP_FETCH, 0, 0,
        STEP_FETCH,      0, 0, STEP_CLOSE | Q2, 0, 0, STEP_MEDIA, 0, 0,
    };
    static const struct {
        const uint8_t *steps;
        size_t len;
    } seeds[] = {
        {pairs, sizeof(pairs)},
        {halves, sizeof(halves)},
        {aborts, sizeof(aborts)},
    };

    if (n >= ARRAY_LEN(seeds)) {
        return 0;
    }
    abort_unless(seeds[n].len <= room);
    memcpy(buf, seeds[n].steps, seeds[n].len);
    return seeds[n].len;
}
