/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stages of a command (firmware/stages/stages.h) on threads that run at the
 * same time, for ThreadSanitizer: preset "threads".
 *
 * Each thread is a hart, and takes whatever stage has work, as harts would.  So
 * a stage runs now on one thread, now on another, and three stages run beside
 * each other.  What they share has to be ordered by the rings, and by the
 * exchange of the stages, or ThreadSanitizer reports a race.
 *
 * RNIC, host and turns of the main loop run in the main thread while the others
 * wait: their races would be none of the firmware.  So what the threads write
 * into registers of the RNIC is written later.  Only the medium accesses the
 * NAND controller, which copies data while it does.  A host writes blocks with
 * numbered data, reads them and compares, with many commands outstanding.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "firmware/hal/time.h"
#include "firmware/native/native_turn.h"
#include "lib/bytes.h"
#include "lib/random.h"
#include "nvmeof/wire/opcode.h"
#include "tests/bench/load.h"

enum {
    THREADS = 3,
    SLOTS = 48,
    LARGE_SLOTS = 4, /* these need several windows, or many buffers */
    SMALL = 4096,
    LARGE = 131072,
    ROUNDS = 6,
    WRITES_MAX = 256, /* of registers, by one thread at a time */
    IDLE_ROUNDS = 8,
};

#define TIMEOUT_NS  UINT64_C(60000000000)
#define STAGE_IRQS  (BIT(SOC_IRQ_RNIC) | BIT(SOC_IRQ_NAND))
#define NAND_BLOCKS 64

struct reg_write {
    uint32_t addr, value;
};

struct thread {
    struct run *run;
    unsigned int hart;
    pthread_t id;
    uint64_t visits; /* in which there was something to do */
    unsigned int count;
    struct reg_write writes[WRITES_MAX];
};

/* A range of blocks: it is written, then read, and so on. */
struct slot {
    struct run *run;
    uint64_t lba;
    uint32_t offset, len_bytes;
    uint32_t version;
    bool is_busy, is_read;
};

struct run {
    struct load *load;
    struct native_drive *drive;
    struct stages *stages;
    const struct native_node_ops *node_ops;
    pthread_barrier_t begin, end;
    bool is_over;
    uint64_t now_us, turn_us;
    uint64_t turns;
    uint32_t verified;
    struct thread threads[THREADS];
    struct slot slots[SLOTS];
};

static _Thread_local struct thread *self; /* NULL: the main thread */
static struct run *the_run;               /* for native_node_ops */

/* ---- Threads */

static bool is_of_nand(uint32_t addr)
{
    return addr >= SOC_NAND_BASE && addr - SOC_NAND_BASE < SOC_NAND_SIZE;
}

static void write_register(void *ctx, uint32_t addr, uint32_t value)
{
    if (self == NULL || is_of_nand(addr)) {
        the_run->node_ops->mmio_write(ctx, addr, value);
        return;
    }
    ASSERT(self->count < WRITES_MAX);
    self->writes[self->count++] = (struct reg_write){addr, value};
}

static uint32_t read_register(void *ctx, uint32_t addr)
{
    ASSERT(self == NULL || is_of_nand(addr));
    return the_run->node_ops->mmio_read(ctx, addr);
}

/* Take stages until there has been nothing to do for a while. */
static void run_hart(struct thread *thread)
{
    struct run *run = thread->run;
    unsigned int idle = 0;

    while (idle < IDLE_ROUNDS && !stages_want_turn(run->stages)) {
        if (stages_take(run->stages, thread->hart, run->now_us)) {
            stages_give(run->stages, thread->hart);
            thread->visits++;
            idle = 0;
        } else {
            idle++;
            sched_yield();
        }
    }
}

static void *thread_main(void *arg)
{
    struct thread *thread = arg;
    struct run *run = thread->run;

    self = thread;
    native_world_enter(&run->load->world);
    for (;;) {
        pthread_barrier_wait(&run->begin);
        if (run->is_over) {
            return NULL;
        }
        run_hart(thread);
        pthread_barrier_wait(&run->end);
    }
}

/* ---- The drive's software, in the main thread */

static uint64_t sum_of_visits(const struct run *run)
{
    uint64_t sum = 0;

    for (unsigned int i = 0; i < THREADS; i++) {
        sum += run->threads[i].visits;
    }
    return sum;
}

/* @return whether a thread has found anything to do */
static bool run_threads(struct run *run)
{
    uint64_t before = sum_of_visits(run);
    struct machine *machine = &run->drive->machine;

    run->now_us = hal_now_us() - loop_left_out_us(&run->drive->loop);
    pthread_barrier_wait(&run->begin);
    pthread_barrier_wait(&run->end);
    for (unsigned int i = 0; i < THREADS; i++) {
        struct thread *thread = &run->threads[i];

        for (unsigned int n = 0; n < thread->count; n++) {
            run->node_ops->mmio_write(machine->node.ctx, thread->writes[n].addr,
                                      thread->writes[n].value);
        }
        thread->count = 0;
    }
    return sum_of_visits(run) != before;
}

static bool take_turn(struct run *run)
{
    struct native_drive *drive = run->drive;
    bool is_alone = stages_begin_turn(run->stages), is_busy;
    uint64_t deadline_us, steps_us;

    ASSERT(is_alone);
    loop_irqs(&drive->loop, drive->machine.irqs);
    is_busy = loop_turn(&drive->loop, hal_now_us());
    stages_end_turn(run->stages);
    run->turns++;
    deadline_us = loop_deadline_us(&drive->loop);
    steps_us = hal_now_us() + LOOP_STEPS_WAIT_US;
    run->turn_us = MIN(deadline_us, steps_us);
    return is_busy;
}

static bool step_drive(void *ctx)
{
    struct run *run = ctx;
    struct native_drive *drive = run->drive;
    bool any;

    if (!native_turn_wakes(&drive->sleep, &drive->machine)) {
        return false;
    }
    any = run_threads(run);
    if (!any || stages_want_turn(run->stages) || hal_now_us() >= run->turn_us ||
        (drive->machine.irqs & ~STAGE_IRQS) != 0) {
        any |= take_turn(run);
    }
    if (!any) {
        drive->sleep.is_asleep =
            loop_arm(&drive->loop, &drive->sleep.deadline_us);
    }
    return any || !drive->sleep.is_asleep;
}

static uint64_t deadline_ns(void *ctx)
{
    return native_turn_sleep_ends(&((struct run *)ctx)->drive->sleep);
}

static void start_threads(struct run *run)
{
    static struct native_node_ops ops;
    struct machine *machine = &run->drive->machine;

    the_run = run;
    run->node_ops = machine->node.ops;
    ops = *run->node_ops;
    ops.mmio_read = read_register;
    ops.mmio_write = write_register;
    machine->node.ops = &ops;
    machine->software = (struct machine_software){run, step_drive, deadline_ns};
    stages_use_harts(run->stages, THREADS);
    ASSERT(pthread_barrier_init(&run->begin, NULL, THREADS + 1) == 0);
    ASSERT(pthread_barrier_init(&run->end, NULL, THREADS + 1) == 0);
    for (unsigned int i = 0; i < THREADS; i++) {
        struct thread *thread = &run->threads[i];

        *thread = (struct thread){.run = run, .hart = i};
        ASSERT(pthread_create(&thread->id, NULL, thread_main, thread) == 0);
    }
}

static void stop_threads(struct run *run)
{
    struct machine *machine = &run->drive->machine;

    run->is_over = true;
    pthread_barrier_wait(&run->begin);
    for (unsigned int i = 0; i < THREADS; i++) {
        ASSERT(pthread_join(run->threads[i].id, NULL) == 0);
    }
    ASSERT(stages_begin_turn(run->stages));
    stages_use_harts(run->stages, 1);
    machine->node.ops = run->node_ops;
    machine->software = native_turn_of_drive(run->drive);
}

/* ---- The host's commands, whose data are compared */

static void fill_slot(const struct slot *slot, uint8_t *data)
{
    for (uint32_t i = 0; i < slot->len_bytes; i += 8) {
        put_le64(data + i,
                 random_mix(slot->lba << 40 | slot->version << 20 | i));
    }
}

static void verify_slot(struct slot *slot)
{
    static uint8_t wanted[LARGE];
    uint8_t *data = slot->run->load->host->data + slot->offset;

    fill_slot(slot, wanted);
    if (memcmp(data, wanted, slot->len_bytes) != 0) {
        fprintf(stderr, "native_threads: LBA %lu has other data\n",
                (unsigned long)slot->lba);
        exit(1);
    }
    slot->run->verified++;
}

static void command_ended(void *ctx, const struct host_result *result)
{
    struct slot *slot = ctx;

    ASSERT(!result->is_lost && result->cqe.status == 0);
    slot->is_busy = false;
    if (slot->is_read) {
        verify_slot(slot);
    }
}

static void start_command(struct slot *slot)
{
    struct load *load = slot->run->load;
    uint8_t *data = load->host->data + slot->offset;
    struct host_io io = {
        .qid = 1,
        .kind = HOST_DATA_KEYED,
        .nsid = 1,
        .lba = slot->lba,
        .blocks = slot->len_bytes / LOAD_BLOCK,
        .offset = slot->offset,
        .len_bytes = slot->len_bytes,
        .done = command_ended,
        .ctx = slot,
    };

    slot->is_read = slot->version != 0 && !slot->is_read;
    if (slot->is_read) {
        memset(data, 0, slot->len_bytes);
    } else {
        slot->version++;
        fill_slot(slot, data);
    }
    io.opcode = slot->is_read ? NVM_READ : NVM_WRITE;
    slot->is_busy = true;
    ASSERT(host_io_submit(&load->host->host, &io));
}

/* Keep a command of each slot outstanding, until all rounds are over. */
static bool is_done(void *ctx)
{
    struct run *run = ctx;
    bool any = false, is_busy = false;

    for (unsigned int i = 0; i < SLOTS; i++) {
        struct slot *slot = &run->slots[i];

        if (!slot->is_busy && (slot->version < ROUNDS || !slot->is_read)) {
            start_command(slot);
            any = true;
        }
        is_busy |= slot->is_busy;
    }
    if (any) {
        verbs_flush(&run->load->host->net.verbs);
        run->load->host->sleep.is_asleep = false;
    }
    return !is_busy;
}

static void make_slots(struct run *run)
{
    uint64_t bytes = 0;

    for (unsigned int i = 0; i < SLOTS; i++) {
        uint32_t len = i < LARGE_SLOTS ? LARGE : SMALL;

        run->slots[i] = (struct slot){
            .run = run,
            .lba = bytes / LOAD_BLOCK,
            .offset = (uint32_t)bytes,
            .len_bytes = len,
        };
        bytes += len;
    }
}

/* @return whether all threads, stages and rings were used */
static bool report_use(const struct run *run)
{
    const struct stages *stages = run->stages;
    bool is_good = run->verified == SLOTS * ROUNDS;

    printf("%u reads verified, %lu turns", run->verified,
           (unsigned long)run->turns);
    for (unsigned int i = 0; i < THREADS; i++) {
        printf(", hart %u: %lu visits", i,
               (unsigned long)run->threads[i].visits);
        is_good &= run->threads[i].visits != 0;
    }
    for (unsigned int i = 0; i < STAGES; i++) {
        printf(", stage %u: %lu moves, %lu lines", i,
               (unsigned long)stages->moves[i],
               (unsigned long)stages->lines[i]);
        is_good &= stages->moves[i] > 1 && stages->lines[i] != 0;
    }
    printf("\n");
    return is_good;
}

int main(void)
{
    static const struct load_workload workload = {
        "verified", NVM_WRITE, SMALL, 1, 1, LOAD_SEQUENTIAL};
    static const struct nand_storage_config config = {
        .profile = "tlc2021",
        .channels = 2,
        .dies = 2,
        .blocks = NAND_BLOCKS,
        .wordlines = 4,
        .seed = 1,
    };
    static struct load load;
    static struct run run;
    struct nand_ram nand;
    bool is_good;

    nand_storage_init(&nand, &config);
    load.nand = &nand;
    load.has_stages = true;
    load_start(&load, &workload);
    run.load = &load;
    run.drive = load.drive;
    run.stages = load.drive->drive.stages;
    make_slots(&run);
    start_threads(&run);
    ASSERT(native_world_run(&load.world, is_done, &run, TIMEOUT_NS));
    stop_threads(&run);
    is_good = report_use(&run);
    load_end(&load);
    nand_storage_end(&nand);
    return is_good ? 0 : 1;
}
