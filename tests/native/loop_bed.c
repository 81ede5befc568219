/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop_bed.h"

#include <stdlib.h>
#include <string.h>

static uint64_t traffic_lba(const struct loop_traffic *traffic, unsigned int i)
{
    return traffic->first_lba + i * LOOP_BUSY_BLOCKS;
}

static void traffic_submit(struct loop_traffic *traffic, unsigned int i)
{
    uint64_t lba = traffic_lba(traffic, i);
    const struct nvme_sqe sqe = {
        .opcode = traffic->is_reading[i] ? NVM_READ : NVM_WRITE,
        .cid = (uint16_t)i,
        .nsid = BED_NSID,
        .cdw10 = (uint32_t)lba,
        .cdw12 = LOOP_BUSY_BLOCKS - 1,
    };

    if (traffic->is_reading[i]) {
        memset(traffic->data[i], 0x5a, sizeof(traffic->data[i]));
    } else {
        bed_fill(traffic->data[i], lba, LOOP_BUSY_BLOCKS, traffic->version + i);
    }
    traffic->is_under_way[i] =
        loopback_host_submit(traffic->host, traffic->qid, &sqe,
                             traffic->data[i], sizeof(traffic->data[i]));
}

static void traffic_done(struct loop_traffic *traffic,
                         const struct nvme_cqe *cqe)
{
    static uint8_t expected[LOOP_BUSY_BLOCKS * BED_BLOCK];
    unsigned int i = cqe->cid;

    assert_in_range(i, 0, LOOP_BUSY - 1);
    assert_true(traffic->is_under_way[i]);
    assert_int_equal(cqe->status, 0);
    if (traffic->is_reading[i]) {
        bed_fill(expected, traffic_lba(traffic, i), LOOP_BUSY_BLOCKS,
                 traffic->version + i);
        assert_memory_equal(traffic->data[i], expected, sizeof(expected));
    }
    traffic->is_reading[i] = !traffic->is_reading[i];
    traffic->is_under_way[i] = false;
    traffic->done++;
}

static void traffic_step(struct loop_traffic *traffic, struct loop_step *step)
{
    struct nvme_cqe cqe;

    if (traffic->host == NULL) {
        return;
    }
    while (loopback_host_poll(traffic->host, traffic->qid, &cqe)) {
        traffic_done(traffic, &cqe);
    }
    if (!traffic->is_on) {
        return;
    }
    if (step->now_us < traffic->next_us) {
        loop_call_at(step, traffic->next_us);
        return;
    }
    traffic->next_us = step->now_us + traffic->interval_us;
    if (traffic->interval_us != 0) {
        loop_call_at(step, traffic->next_us);
    }
    for (unsigned int i = 0; i < LOOP_BUSY; i++) {
        if (!traffic->is_under_way[i]) {
            traffic_submit(traffic, i);
        }
    }
}

/* The poll function of a component in the drive's loop. */
static enum loop_work loop_poll(void *ctx, struct loop_step *step)
{
    struct loop_bed *loop = ctx;

    traffic_step(&loop->traffic, step);
    return loopback_step(&loop->loopback, step->now_us) ? LOOP_IO : LOOP_IDLE;
}

static const struct component loop_component = {
    .name = "loopback",
    .poll = loop_poll,
};

/* Wake the drive, because a host of the test has given the transport work. */
static void wake_drive(struct loop_bed *loop)
{
    loop->bed->drive->sleep.is_asleep = false;
}

void loop_bed_init(struct loop_bed *loop, struct bed *bed)
{
    struct loopback_config config = {
        .target = bed->drive->drive.target,
        .portid = LOOP_PORTID,
        .queue_count = LOOP_QUEUES,
    };

    *loop = (struct loop_bed){
        .bed = bed,
        .queues = malloc(LOOP_QUEUES * sizeof(*loop->queues)),
        .requests = malloc(loopback_request_bytes(LOOP_QUEUES)),
    };
    config.queues = loop->queues;
    config.requests = loop->requests;
    loopback_init(&loop->loopback, &config);
    loop_add(&bed->drive->loop, &loop_component, loop);
}

void loop_bed_end(struct loop_bed *loop)
{
    free(loop->queues);
    free(loop->requests);
}

static bool run_world(void *ctx, bool (*is_done)(void *done_ctx),
                      void *done_ctx, uint64_t timeout_us)
{
    struct loop_bed *loop = ctx;

    wake_drive(loop);
    return native_world_run(&loop->bed->world, is_done, done_ctx,
                            timeout_us * 1000);
}

void loop_host_init(struct loop_bed *loop, struct loopback_host *host,
                    uint8_t number)
{
    struct loopback_host_config config = {
        .loopback = &loop->loopback,
        .hostnqn = "nqn.2014-08.org.example:loopback",
        .hostid = {0x10, number},
        .run = run_world,
        .run_ctx = loop,
    };

    strcpy(config.subnqn, loop->bed->drive->identity.subsystem_nqn);
    loopback_host_init(host, &config);
}

static uint16_t one_block(struct loopback_host *host, uint16_t qid,
                          uint8_t opcode, uint64_t lba, uint8_t *data)
{
    const struct nvme_sqe sqe = {
        .opcode = opcode, .nsid = BED_NSID, .cdw10 = (uint32_t)lba};

    return loopback_host_command(host, qid, &sqe, data, BED_BLOCK);
}

void loop_write(struct loopback_host *host, uint16_t qid, uint64_t lba,
                uint32_t version)
{
    uint8_t data[BED_BLOCK];

    bed_fill(data, lba, 1, version);
    assert_int_equal(one_block(host, qid, NVM_WRITE, lba, data), 0);
}

void loop_expect(struct loopback_host *host, uint16_t qid, uint64_t lba,
                 uint32_t version)
{
    uint8_t data[BED_BLOCK], expected[BED_BLOCK];

    memset(data, 0x5a, sizeof(data));
    bed_fill(expected, lba, 1, version);
    assert_int_equal(one_block(host, qid, NVM_READ, lba, data), 0);
    assert_memory_equal(data, expected, sizeof(data));
}

void loop_traffic_start(struct loop_bed *loop, struct loopback_host *host,
                        uint16_t qid, uint64_t first_lba)
{
    loop->traffic = (struct loop_traffic){
        .host = host,
        .qid = qid,
        .first_lba = first_lba,
        .version = 1000,
        .is_on = true,
    };
    wake_drive(loop);
}

void loop_host_disconnect(struct loop_bed *loop, struct loopback_host *host)
{
    loopback_host_disconnect(host);
    wake_drive(loop);
}

static bool is_traffic_idle(void *ctx)
{
    const struct loop_bed *loop = ctx;

    for (unsigned int i = 0; i < LOOP_BUSY; i++) {
        if (loop->traffic.is_under_way[i]) {
            return false;
        }
    }
    return true;
}

void loop_traffic_stop(struct loop_bed *loop)
{
    loop->traffic.is_on = false;
    assert_true(native_world_run(&loop->bed->world, is_traffic_idle, loop,
                                 UINT64_C(30000000000)));
    loop->traffic.host = NULL;
}
