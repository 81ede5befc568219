/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that programs and erases a NAND array in a real file is killed, as
 * the emulation cuts power.  Afterwards the file must hold every operation that
 * had finished, and of the one in progress what the document allows: this rests
 * on what the kernel does with a write of a process that is killed.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/random.h"
#include "tests/unit/hw-model/nand/nand_bed.h"

enum {
    BLOCKS = 2,
    WORDLINES = 3,
    PLANES = 15,
    ROUND = 1 + WORDLINES, /* operations of a block: erase, then programs */
    KILLS = 20,
};

/* Step `n` of the endless workload: blocks in turn, erase and fill. */
static unsigned int step_block(uint32_t n)
{
    return n / ROUND % BLOCKS;
}

static bool step_is_erase(uint32_t n)
{
    return n % ROUND == 0;
}

static bool step_is_at_once(uint32_t n)
{
    return n / (ROUND * BLOCKS) % 2 == 0;
}

/* ---- The process that is killed. */

struct child {
    struct bed *bed;
    int fd;
    uint32_t ids[RAM_QUEUE_REQUESTS]; /* requests that are done already */
    uint32_t count;
};

static void child_done(struct child *child, uint32_t id, bool success)
{
    if (!success) {
        _exit(1);
    }
    child->ids[child->count++] = id;
}

static void child_readv(void *ctx, uint32_t id, uint64_t offset,
                        const struct iovec *iov, unsigned int niov)
{
    struct child *child = ctx;

    child_done(child, id,
               preadv(child->fd, iov, (int)niov, (off_t)offset) >= 0);
}

static void child_writev(void *ctx, uint32_t id, uint64_t offset,
                         const struct iovec *iov, unsigned int niov)
{
    struct child *child = ctx;

    child_done(child, id,
               pwritev(child->fd, iov, (int)niov, (off_t)offset) >= 0);
}

static void child_discard(void *ctx, uint32_t id, uint64_t offset, uint64_t len)
{
    struct child *child = ctx;

    /* It does not matter whether the file system can do it. */
    (void)fallocate(child->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)offset, (off_t)len);
    child_done(child, id, true);
}

static void child_flush(void *ctx, uint32_t id)
{
    child_done(ctx, id, true);
}

static void child_op_done(void *ctx, struct nand_op *op)
{
    struct child *child = ctx;

    child->bed->done = op;
}

static void child_wait(struct child *child, const struct nand_op *op)
{
    while (child->bed->done != op) {
        if (child->count == 0) {
            _exit(2);
        }
        nand_array_io_done(child->bed->array, child->ids[--child->count], 0);
    }
}

static void child_step(struct child *child, uint32_t n)
{
    struct bed *bed = child->bed;
    struct nand_op *op;

    if (step_is_erase(n)) {
        op = bed_op(bed, NAND_OP_ERASE, PLANES, step_block(n));
        op->finishes_at_once = step_is_at_once(n);
    } else {
        op = bed_program_op(bed, PLANES, step_block(n), n % ROUND - 1, n,
                            step_is_at_once(n));
    }
    bed->done = NULL;
    if (!nand_op_start(bed->array, op, 0)) {
        child_wait(child, op);
    }
    if (op->verdict != NAND_VERDICT_OK) {
        _exit(3);
    }
    bed->done = NULL;
    if (!nand_op_finish(bed->array, op, 0)) {
        child_wait(child, op);
    }
    nand_op_put(bed->array, op);
}

/* Work until killed; `finished` counts the steps. */
static void child_run(struct bed *bed, int fd, volatile uint32_t *finished)
{
    static struct child child;
    struct nand_file_source source = nand_ram_source(&bed->ram);
    struct nand_file_failure failure;

    child = (struct child){.bed = bed, .fd = fd};
    bed->array = nand_array_open(
        &(struct nand_array_config){
            .backend = {.ctx = &child,
                        .readv = child_readv,
                        .writev = child_writev,
                        .discard = child_discard,
                        .flush = child_flush},
            .file = &bed->file,
            .num_ops = BED_OPS,
            .memory = bed->memory,
            .ctx = &child,
            .started = child_op_done,
            .finished = child_op_done,
        },
        &source, &failure);
    for (uint32_t n = 0;; n++) {
        child_step(&child, n);
        *finished = n + 1;
    }
}

/* ---- The check. */

/* The step that has written this wordline, if `done` steps have finished. */
static bool written_by(uint32_t done, unsigned int block, unsigned int wordline,
                       uint32_t *step)
{
    for (uint32_t n = done; n-- != 0;) {
        if (step_block(n) == block) {
            *step = n - n % ROUND + 1 + wordline;
            return *step <= n;
        }
    }
    return false;
}

/* Whether the block is as after this number of steps. */
static bool block_is_after(struct bed *bed, uint32_t done, unsigned int plane,
                           unsigned int block)
{
    for (unsigned int wordline = 0; wordline < WORDLINES; wordline++) {
        uint32_t step = 0;
        bool is_written = written_by(done, block, wordline, &step);

        for (unsigned int unit = 0; unit < 12; unit++) {
            struct nand_unit result;

            assert_int_equal(bed_read_unit(bed, plane, block, wordline,
                                           unit / 4, unit % 4, &result),
                             NAND_VERDICT_OK);
            if (result.status !=
                (is_written ? NAND_UNIT_GOOD : NAND_UNIT_ERASED)) {
                return false;
            }
            if (is_written && !bed_content_is(bed, 0, plane, block, wordline,
                                              unit / 4, unit % 4, step)) {
                return false;
            }
        }
    }
    return true;
}

/* Whether a block in which step `n` was in progress is half changed. */
static bool block_is_torn(struct bed *bed, uint32_t n, unsigned int plane,
                          unsigned int block)
{
    const struct nand_block *state = bed_block(bed, plane, block);
    unsigned int programmed = n % ROUND - 1;
    unsigned int good = 0;

    if (step_is_erase(n)) {
        return (state->flags & NAND_BLOCK_HALF_ERASED) != 0;
    }
    for (unsigned int i = 0; i < programmed; i++) {
        good += bed_read(bed, plane, block, i, 2, 3, n - programmed + i) ==
                NAND_UNIT_GOOD;
    }
    return good == programmed && (state->flags & NAND_BLOCK_TORN) != 0 &&
           state->next == programmed + 1;
}

/* @return how many planes the step in progress has left half changed */
static unsigned int check_file(struct bed *bed, uint32_t finished)
{
    unsigned int torn = 0;

    bed_reopen(bed);
    for (unsigned int i = 0; i < 4 * BLOCKS; i++) {
        unsigned int plane = i % 4, block = i / 4;

        /* `finished` was counted after the step: it may be one too low. */
        if (!block_is_after(bed, finished, plane, block) &&
            !block_is_after(bed, finished + 1, plane, block)) {
            assert_true(block_is_torn(bed, finished, plane, block) ||
                        block_is_torn(bed, finished + 1, plane, block));
            torn++;
        }
    }
    return torn;
}

/* Start the process, kill it, and check what it has left. */
static unsigned int kill_once(struct bed *bed, const char *path, uint64_t seed)
{
    volatile uint32_t *finished = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct timespec pause = {.tv_nsec = (long)(random_mix(seed) % 4000000)};
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int status;
    unsigned int torn;
    pid_t pid;

    assert_ptr_not_equal(finished, MAP_FAILED);
    assert_true(fd >= 0);
    memset(bed->ram.bytes, 0, bed->ram.size_bytes);
    nand_file_new(&bed->file, nand_profile_find("tlc2021"),
                  &(struct nand_geometry){1, 1, 4, 4, 3, BLOCKS, WORDLINES},
                  BED_SEED);
    nand_ram_create(&bed->ram, &bed->file);
    assert_int_equal(pwrite(fd, bed->ram.bytes, bed->ram.size_bytes, 0),
                     (ssize_t)bed->ram.size_bytes);
    pid = fork();
    if (pid == 0) {
        alarm(60); /* It does not outlive a test that hangs. */
        child_run(bed, fd, finished);
    }
    assert_true(pid > 0);
    while (*finished == 0 && waitpid(pid, &status, WNOHANG) == 0) {
    }
    nanosleep(&pause, NULL);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(pread(fd, bed->ram.bytes, bed->ram.size_bytes, 0),
                     (ssize_t)bed->ram.size_bytes);
    torn = check_file(bed, *finished);
    assert_int_equal(close(fd), 0);
    assert_int_equal(munmap((void *)finished, 4096), 0);
    return torn;
}

static void test_a_killed_process_leaves_what_a_power_cut_leaves(void **state)
{
    char path[] = "nand_kill_XXXXXX";
    struct bed *bed = bed_new("tlc2021", BLOCKS, WORDLINES);
    unsigned int torn = 0;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    for (uint64_t seed = 0; seed < KILLS; seed++) {
        torn += kill_once(bed, path, seed);
    }
    assert_int_equal(unlink(path), 0);
    print_message("%u planes were half changed in %d kills\n", torn, KILLS);
    bed_free(bed);
}
