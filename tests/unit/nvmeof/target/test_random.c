/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts with random behaviour: random commands with random fields on random
 * queues, new and ended connections, late answers, a full media, too few
 * buffers, fault rules, and time that passes.
 *
 * No assertion may fail, ASan and UBSan may report nothing, every command must
 * be answered or dropped with its connection, and every buffer and queue must
 * be free at the end.  The message of a failure names the seed.
 */
#include "fake.h"

#include <string.h>

enum {
    SEEDS = 60,
    STEPS = 4000,
    QPAIRS = 12,
    GOOD_QPAIRS = 6, /* the queues of a mostly correct host: one is admin */
    RULES = 5,       /* numbers of fault rules, from 1 */
};

struct chaos {
    struct fake *fake;
    uint64_t random;
    uint16_t qpair[QPAIRS]; /* NO_QPAIR if unused */
};

static uint32_t random_below(struct chaos *chaos, uint32_t below)
{
    chaos->random = chaos->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(chaos->random >> 33) % below;
}

static uint32_t rnd_field(struct chaos *chaos)
{
    switch (random_below(chaos, 6)) {
    case 0:
        return 0;
    case 1:
        return ~0u;
    case 2:
        return random_below(chaos, 1u << 31) << 1;
    case 3:
        return BIT(random_below(chaos, 32));
    default:
        return random_below(chaos, 130);
    }
}

static struct nvme_sqe random_sqe(struct chaos *chaos)
{
    static const uint8_t opcodes[] = {
        0x00, 0x01, 0x02, 0x08, 0x09, 0x06, 0x08, 0x09,
        0x0a, 0x0c, 0x18, 0x02, 0x01, 0x02, 0x7f, 0x7f,
    };
    static const uint8_t fids[] = {1, 2, 4, 5, 6, 7, 10, 11, 15, 0x81, 0x70};
    struct nvme_sqe sqe = {
        .opcode = opcodes[random_below(chaos, sizeof(opcodes))],
        .nsid = 1 + random_below(chaos, 2),
        .cdw10 = random_below(chaos, 200),
        .cdw12 = random_below(chaos, 300),
    };

    if (random_below(chaos, 3) == 0) {
        sqe.cdw10 = fids[random_below(chaos, sizeof(fids))];
        sqe.nsid = 0;
    }
    switch (random_below(chaos, 12)) { /* most are valid, or nearly */
    case 0:
        sqe.opcode = (uint8_t)random_below(chaos, 256);
        break;
    case 1:
        sqe.psdt = (uint8_t)random_below(chaos, 4);
        sqe.fuse = (uint8_t)random_below(chaos, 4);
        break;
    case 2:
        sqe.nsid = rnd_field(chaos);
        break;
    case 3:
        sqe.cdw10 = rnd_field(chaos);
        break;
    case 4:
        sqe.cdw11 = rnd_field(chaos);
        break;
    case 5:
        sqe.cdw12 = rnd_field(chaos);
        sqe.cdw13 = rnd_field(chaos);
        break;
    default:
        break;
    }
    if (sqe.opcode == NVME_FABRICS) {
        static const uint32_t offsets[] = {0, 8, 0x14, 0x14, 0x1c, 0x20, 0x30};

        sqe.fctype = (uint8_t)random_below(chaos, 6);
        sqe.cdw10 = random_below(chaos, 10) == 0;
        sqe.cdw11 = offsets[random_below(chaos, ARRAY_LEN(offsets))];
        sqe.cdw12 = random_below(chaos, 3) == 0
                        ? CC_ENABLE | random_below(chaos, 4) << 14
                        : CC_ENABLE;
        if (random_below(chaos, 3) == 0) {
            sqe.cdw12 &= ~(uint32_t)CC_EN;
        }
        if (sqe.cdw11 == 0x14 && random_below(chaos, 4) == 0) {
            sqe.cdw12 = rnd_field(chaos);
        }
    }
    return sqe;
}

static void send_random(struct chaos *chaos, uint16_t qpair)
{
    struct fake *fake = chaos->fake;
    struct nvme_sqe sqe = random_sqe(chaos);
    static const uint32_t lens[] = {0,    4,    16,   512,   1024,
                                    4096, 4096, 8192, 65536, NVMF_MAX_TRANSFER};
    uint32_t len = lens[random_below(chaos, ARRAY_LEN(lens))];

    if ((sqe.opcode == NVM_READ || sqe.opcode == NVM_WRITE) &&
        random_below(chaos, 8) != 0) {
        len = ((sqe.cdw12 & 0xffff) + 1) * 512;
        len = MIN(len, (uint32_t)NVMF_MAX_TRANSFER);
    }
    if (fake->request_count >= FAKE_REQUESTS - 1) {
        return;
    }
    if (len > 0 && len <= 4096 && random_below(chaos, 3) == 0) {
        fake_send_in_capsule(fake, qpair, &sqe, fake->data, len);
    } else {
        fake_send(fake, qpair, &sqe, fake->data, len);
    }
}

static void connect_random(struct chaos *chaos, uint16_t qpair)
{
    struct fake *fake = chaos->fake;
    struct connect_command command = {
        .qid = fake->target->qpair[qpair].qid,
        .sqsize = (uint16_t)(fake->target->qpair[qpair].depth - 1),
        .has_sq_flow_control = random_below(chaos, 2),
        .kato_ms = random_below(chaos, 3) * 2000,
    };
    struct nvme_sqe sqe = {0};
    struct connect_data data;

    connect_command_build(&sqe, &command);
    sqe.psdt = 0;
    fake_connect_data(
        &data,
        command.qid == 0 ? 0xffff
                         : fake->target->ctrl[random_below(chaos, 4)].cntlid,
        random_below(chaos, 5) == 0 ? NVME_DISCOVERY_NQN : FAKE_SUBNQN);
    data.hostid[0] = (uint8_t)(random_below(chaos, 20) == 0);
    connect_data_emit(fake->data, &data);
    fake_send(fake, qpair, &sqe, fake->data, CONNECT_DATA_LEN);
    if (random_below(chaos, 4) != 0) {
        fake_run(fake); /* before the next command overwrites the data */
    }
}

static void open_random(struct chaos *chaos, unsigned int slot)
{
    struct fake *fake = chaos->fake;
    const struct nvmf_qpair_hints hints = {
        .qid = (uint16_t)(random_below(chaos, 2) ? 0
                                                 : 1 + random_below(chaos, 18)),
        .sqsize = (uint16_t)random_below(chaos, 40),
        .cntlid = random_below(chaos, 2)
                      ? fake->target->ctrl[random_below(chaos, 3)].cntlid
                      : 0,
    };
    const struct nvmf_qpair_params params = {
        .transport = &fake->transport,
        .portid = 1,
        .hints = random_below(chaos, 4) != 0 ? &hints : NULL,
    };

    if (nvmf_qpair_reserve(fake->target, &params, &chaos->qpair[slot]) !=
        NVMF_RESERVE_OK) {
        chaos->qpair[slot] = NO_QPAIR;
        return;
    }
    /* Some connections are never established. */
    if (random_below(chaos, 10) == 0) {
        assert_true(nvmf_qpair_closed(fake->target, chaos->qpair[slot]));
        chaos->qpair[slot] = NO_QPAIR;
        return;
    }
    nvmf_qpair_open(fake->target, chaos->qpair[slot], fake->now_us);
}

/* Let the correct host continue: connect its queue again if that has ended. */
static void go_on(struct chaos *chaos, unsigned int slot)
{
    struct fake *fake = chaos->fake;
    uint16_t admin = chaos->qpair[0];
    uint16_t qid = (uint16_t)slot;
    struct nvmf_qpair_hints hints = {.qid = qid, .sqsize = 31};
    const struct nvmf_qpair_params params = {
        .transport = &fake->transport, .portid = 1, .hints = &hints};
    struct connect_command command = {.qid = qid,
                                      .sqsize = 31,
                                      .has_sq_flow_control = true,
                                      .kato_ms = 30000};
    struct nvme_sqe sqe = {0};
    struct connect_data data;
    uint16_t cntlid = 0xffff;

    if (slot != 0) {
        if (admin == NO_QPAIR || fake->target->qpair[admin].ctrl == NO_CTRL) {
            return;
        }
        cntlid = fake->target->ctrl[fake->target->qpair[admin].ctrl].cntlid;
        hints.cntlid = cntlid;
    }
    if (nvmf_qpair_reserve(fake->target, &params, &chaos->qpair[slot]) !=
        NVMF_RESERVE_OK) {
        chaos->qpair[slot] = NO_QPAIR;
        return;
    }
    nvmf_qpair_open(fake->target, chaos->qpair[slot], fake->now_us);
    connect_command_build(&sqe, &command);
    sqe.psdt = 0;
    fake_connect_data(&data, cntlid, FAKE_SUBNQN);
    connect_data_emit(fake->data, &data);
    fake->hold_fetch = fake->fail_fetch = false;
    fake->hold_send = fake->fail_send = false;
    fake_send(fake, chaos->qpair[slot], &sqe, fake->data, CONNECT_DATA_LEN);
    fake_run(fake);
    if (slot == 0) {
        sqe = (struct nvme_sqe){
            .opcode = NVME_FABRICS, .cdw11 = PROPERTY_CC, .cdw12 = CC_ENABLE};
        fake_send(fake, chaos->qpair[slot], &sqe, NULL, 0);
    }
}

static void send_cc(struct chaos *chaos, unsigned int slot, uint32_t cc)
{
    struct fake *fake = chaos->fake;
    struct nvme_sqe sqe = {
        .opcode = NVME_FABRICS, .cdw11 = PROPERTY_CC, .cdw12 = cc};

    if (fake->request_count < FAKE_REQUESTS - 1) {
        fake_send(fake, chaos->qpair[slot], &sqe, NULL, 0);
    }
}

static void send_good(struct chaos *chaos, unsigned int slot)
{
    struct fake *fake = chaos->fake;
    struct nvme_sqe sqe;
    uint32_t blocks = 1 + random_below(chaos, random_below(chaos, 2) ? 256 : 8);
    uint32_t len = 0;

    if (fake->request_count >= FAKE_REQUESTS - 1) {
        return;
    }
    if (slot == 0) {
        static const uint8_t opcodes[] = {ADMIN_KEEP_ALIVE, ADMIN_IDENTIFY,
                                          ADMIN_ASYNC_EVENT_REQUEST};

        sqe = fake_admin(opcodes[random_below(chaos, 3)], 0, 1, 0);
        len = sqe.opcode == ADMIN_IDENTIFY ? 4096 : 0;
        /* A reset or a shutdown may come during another one. */
        if (random_below(chaos, 40) == 0) {
            for (unsigned int n = 1 + random_below(chaos, 5); n > 0; n--) {
                send_cc(chaos, slot, random_below(chaos, 2) ? CC_ENABLE : 0);
            }
            send_cc(chaos, slot,
                    CC_ENABLE | random_below(chaos, 2) << CC_SHN_SHIFT);
            send_cc(chaos, slot, 0);
            send_cc(chaos, slot, CC_ENABLE);
            return;
        }
    } else {
        static const uint8_t opcodes[] = {NVM_READ,  NVM_WRITE,
                                          NVM_READ,  NVM_WRITE,
                                          NVM_FLUSH, NVM_WRITE_ZEROES};

        sqe = fake_rw(opcodes[random_below(chaos, 6)],
                      random_below(chaos, 1700), blocks);
        if (sqe.opcode == NVM_READ || sqe.opcode == NVM_WRITE) {
            len = blocks * 512;
        }
        if (sqe.opcode == NVM_WRITE && len <= 4096 && random_below(chaos, 2)) {
            fake_send_in_capsule(fake, chaos->qpair[slot], &sqe, fake->data,
                                 len);
            return;
        }
    }
    fake_send(fake, chaos->qpair[slot], &sqe, fake->data, len);
}

static void add_random_rule(struct chaos *chaos, uint32_t id)
{
    static const int32_t opcodes[] = {
        NVMF_FAULT_ANY,   NVM_READ,
        NVM_WRITE,        NVM_FLUSH,
        NVME_FABRICS,     ADMIN_IDENTIFY,
        ADMIN_KEEP_ALIVE, ADMIN_ASYNC_EVENT_REQUEST,
    };
    struct nvmf_fault fault = {
        .id = id,
        .queue = (uint8_t)random_below(chaos, NVMF_FAULT_QUEUES),
        .qid = (uint16_t)random_below(chaos, GOOD_QPAIRS),
        .action = (uint8_t)random_below(chaos, NVMF_FAULT_ACTIONS),
        .status = NVME_SC_INTERNAL,
        .opcode = opcodes[random_below(chaos, ARRAY_LEN(opcodes))],
        .nsid = random_below(chaos, 3) == 0 ? 1 : NVMF_FAULT_ANY,
        .cntlid = NVMF_FAULT_ANY,
        .has_lba = random_below(chaos, 3) == 0,
        .first_lba = random_below(chaos, 1000),
        .last_lba = UINT64_MAX,
        .delay_us = UINT64_C(1) << random_below(chaos, 33),
        .trigger = {.every = random_below(chaos, 4),
                    .times = 1 + random_below(chaos, 20),
                    .chance = FAULT_CHANCE_ALWAYS},
    };

    (void)!nvmf_fault_add(chaos->fake->target, &fault);
}

static void change_random_rule(struct chaos *chaos)
{
    struct nvmf_target *target = chaos->fake->target;
    uint32_t id = 1 + random_below(chaos, RULES);

    switch (random_below(chaos, 6)) {
    case 0:
    case 1:
        add_random_rule(chaos, id);
        break;
    case 2:
    case 3:
        (void)!nvmf_fault_turn(target, id, random_below(chaos, 2));
        break;
    default:
        (void)!nvmf_fault_remove(target, id);
        break;
    }
}

static void random_step(struct chaos *chaos)
{
    struct fake *fake = chaos->fake;
    unsigned int slot = random_below(chaos, QPAIRS);
    uint16_t qpair = chaos->qpair[slot];

    switch (random_below(chaos, 25)) {
    case 24:
        change_random_rule(chaos);
        break;
    case 0:
        fake->hold_media = random_below(chaos, 2);
        fake->hold_fetch = random_below(chaos, 3) == 0;
        fake->hold_send = random_below(chaos, 3) == 0;
        fake->window_max = 4096u << random_below(chaos, 9);
        fake->hold_done = random_below(chaos, 3) == 0;
        fake->fail_fetch = random_below(chaos, 30) == 0;
        fake->fail_send = random_below(chaos, 30) == 0;
        break;
    case 1:
        fake->media_room =
            random_below(chaos, 2) ? 1 + random_below(chaos, 3) : 100;
        fake->media_status =
            random_below(chaos, 4) == 0
                ? (enum media_status)random_below(chaos, MEDIA_STATUSES)
                : MEDIA_OK;
        break;
    case 2:
        fake->now_us += 1u << random_below(chaos, 24);
        nvmf_target_timer(fake->target, fake->now_us);
        break;
    case 3:
        if (qpair != NO_QPAIR &&
            (slot >= GOOD_QPAIRS || random_below(chaos, 20) == 0 ||
             fake->target->qpair[qpair].state == QPAIR_CLOSING)) {
            (void)!nvmf_qpair_closed(fake->target, qpair);
            chaos->qpair[slot] = NO_QPAIR;
        }
        break;
    case 4:
        if (random_below(chaos, 4) == 0) {
            nvmf_target_ns_changed(fake->target, 1 + random_below(chaos, 2));
            nvmf_target_set_addresses(fake->target, fake->address,
                                      (uint8_t)random_below(chaos, 3));
        } else {
            struct nvmf_health health = fake->config.health;

            health.temperature_k = (uint16_t)(250 + random_below(chaos, 150));
            nvmf_target_set_health(fake->target, &health);
        }
        break;
    case 5:
    case 6:
        fake_run(fake);
        break;
    default:
        if (slot < GOOD_QPAIRS && qpair == NO_QPAIR) {
            go_on(chaos, slot);
        } else if (slot < GOOD_QPAIRS && random_below(chaos, 50) != 0) {
            send_good(chaos, slot);
        } else if (qpair == NO_QPAIR) {
            open_random(chaos, slot);
        } else if (fake->target->qpair[qpair].state == QPAIR_CONNECTING &&
                   random_below(chaos, 4) != 0) {
            connect_random(chaos, qpair);
        } else {
            send_random(chaos, qpair);
        }
        break;
    }
    fake->history_count = 0;
}

/* Reuse the requests of queue pairs that have ended. */
static void recycle_requests(struct fake *fake)
{
    for (unsigned int i = 0; i < fake->request_count; i++) {
        if (fake->request[i]->req.state == NVMF_REQUEST_FREE) {
            fake->request[i]->is_done = true;
        }
    }
}

/* What rules hold back is sent as soon as they are gone. */
static void remove_rules(struct fake *fake, uint64_t *held)
{
    for (uint32_t id = 1; id <= RULES; id++) {
        (void)!nvmf_fault_remove(fake->target, id);
    }
    *held += nvmf_target_is_holding(fake->target);
    (void)nvmf_target_timer(fake->target, fake->now_us);
    fake_run(fake);
    assert_false(nvmf_target_is_holding(fake->target));
}

/*
 * @param held  counts the seeds at whose end a rule holds a response back
 * @return how many reads and writes succeeded
 */
static uint64_t run_seed(uint64_t seed, uint64_t *held)
{
    struct chaos chaos = {.fake = fake_new(), .random = seed};
    struct fake *fake = chaos.fake;
    uint16_t controllers, qpairs;
    uint64_t done;

    fake->buffers_free = 3 * 128 * 1024 / 2;
    fake_start(fake);
    memset(chaos.qpair, 0xff, sizeof(chaos.qpair));
    for (unsigned int i = 0; i < STEPS; i++) {
        random_step(&chaos);
        recycle_requests(fake);
    }
    fake->hold_media = fake->hold_fetch = fake->hold_done = false;
    fake->hold_send = false;
    fake->media_room = 100;
    fake_run(fake);
    if (seed % 2 == 0) { /* otherwise connections end while rules hold */
        remove_rules(fake, held);
    }
    for (unsigned int i = 0; i < QPAIRS; i++) {
        /* The end of a queue frees buffers for requests of the next ones. */
        fake_run(fake);
        if (chaos.qpair[i] != NO_QPAIR &&
            !nvmf_qpair_closed(fake->target, chaos.qpair[i])) {
            fail_msg("seed %u: a queue pair keeps requests", (unsigned)seed);
        }
    }
    nvmf_target_stats(fake->target, &controllers, &qpairs);
    for (unsigned int i = 0; i < fake->request_count; i++) {
        if (fake->request[i]->req.state != NVMF_REQUEST_FREE) {
            fail_msg("seed %u: a request was never answered", (unsigned)seed);
        }
    }
    if (controllers != 0 || qpairs != 0 || fake->target->depth_used != 0 ||
        fake->target->queues_promised != 0 || fake->buffers_out != 0) {
        fail_msg("seed %u: %u controllers, %u queue pairs left", (unsigned)seed,
                 controllers, qpairs);
    }
    assert_int_equal(nvmf_target_timer(fake->target, fake->now_us),
                     NVMF_NO_DEADLINE);
    done = nvmf_target_counters(fake->target)->host_reads +
           nvmf_target_counters(fake->target)->host_writes;
    fake_free(fake);
    return done;
}

static void test_random_hosts_leak_nothing(void **state)
{
    uint64_t done = 0;
    uint64_t held = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        done += run_seed(seed, &held);
    }
    /* Otherwise too few commands succeed to test much. */
    assert_true(done > SEEDS * 100);
    assert_true(held > SEEDS / 10);
}
