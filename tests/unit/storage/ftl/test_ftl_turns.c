/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No step of the translation layer deals with the whole map.  The drive's main
 * loop takes one step in a turn, and everything else waits meanwhile: with the
 * largest array, a loop over the map takes so long on a busy computer that the
 * watchdog bites.
 *
 * The test counts what a step touches, not time.  Before each step, the memory
 * of the translation layer is made inaccessible, and each first access to a
 * part of it is counted.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "storage/ftl/background/ftl_checkpoint.h"
#include "storage/ftl/state.h"
#include "storage/ftl/space/space.h"
#include "tests/ftl_moves.h"
#include "tests/test_fixture.h"

enum {
    /* The largest array that essd-nand creates, of 96 GiB. */
    DIES = 8,
    PLANES = 4,
    PAGES = 3,
    UNITS = 4,
    BLOCKS = 201,
    WORDLINES = 327,
    ROW_UNITS = PLANES * PAGES * UNITS,
    ROWS = DIES * WORDLINES, /* of a superblock */
    SECTORS = 8,
    OPS = 16,
    REQUESTS = 64,
    QUEUE = 2 * REQUESTS,
    MOVES = 16,
    PART = 64 << 10, /* bytes of memory that are counted together */
    /* 6 MiB: a step deals with FTL_TURN_ITEMS entries or words, of eight bytes
     * at most, in two arrays; or it fills eight rows of a checkpoint from the
     * map, and adds them to the sum of their stripe. */
    PARTS_MAX = 96,
};
_Static_assert(2 * FTL_TURN_ITEMS * 8 < PARTS_MAX * PART, "it is enough");

/* ---- Memory whose accesses are counted. */

enum { MEMORIES = 2, OPEN_MAX = 1 << 14 };

static struct {
    uint8_t *at[MEMORIES];
    size_t len[MEMORIES];
    uint8_t *open[OPEN_MAX]; /* parts that were touched since the last
                              * count_from_now() */
    size_t touched;          /* how many */
    size_t most;             /* of a step, ever */
} counted;

static void note_access(int number, siginfo_t *info, void *ctx)
{
    uint8_t *at = info->si_addr;

    (void)ctx;
    for (unsigned int i = 0; i < MEMORIES; i++) {
        size_t offset = (uintptr_t)at - (uintptr_t)counted.at[i];

        if (counted.at[i] != NULL && offset < counted.len[i] &&
            counted.touched < OPEN_MAX) {
            uint8_t *part = counted.at[i] + offset / PART * PART;

            counted.open[counted.touched++] = part;
            (void)mprotect(part, PART, PROT_READ | PROT_WRITE);
            return;
        }
    }
    (void)signal(number, SIG_DFL); /* The next attempt ends the program. */
}

static void *get_memory(unsigned int number, size_t len)
{
    len = (len + PART - 1) / PART * PART;
    counted.at[number] =
        mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(counted.at[number], MAP_FAILED);
    counted.len[number] = len;
    return counted.at[number];
}

/* cmocka catches the same signal in each test, so each test says this first. */
static void catch_accesses(void)
{
    struct sigaction action = {.sa_sigaction = note_access,
                               .sa_flags = SA_SIGINFO};

    assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
}

static void count_from_now(void)
{
    while (counted.touched != 0) {
        uint8_t *part = counted.open[--counted.touched];

        assert_int_equal(mprotect(part, PART, PROT_NONE), 0);
    }
}

static void check_count(const char *what)
{
    if (counted.touched > PARTS_MAX) {
        fail_msg("%s touches %lu KiB, more than %d.", what,
                 (unsigned long)counted.touched * (PART >> 10),
                 PARTS_MAX * (PART >> 10));
    }
    counted.most = MAX(counted.most, counted.touched);
}

/* ---- The flash.  It keeps what was programmed, and nothing of the rest. */

struct row {
    uint8_t system[ROW_UNITS][FTL_UNIT_SYSTEM];
    uint8_t meta[ROW_UNITS][FTL_UNIT_META];
    uint64_t word[ROW_UNITS]; /* the data, if all its words are the same */
    uint8_t *data[ROW_UNITS]; /* or NULL */
    bool is_damaged;
};

static struct {
    struct row *rows[(size_t)BLOCKS * ROWS];
    struct ftl_moves moves;
    struct ftl_move move_list[MOVES];
    struct ftl_flash_op queue[QUEUE];
    unsigned int head, tail;
    uint8_t bad_planes[BLOCKS * DIES];
    struct media_owner owner;
    unsigned int ended;
    enum media_status status;
    unsigned int adopting_steps;
} flash;

static void free_row(uint32_t number)
{
    for (unsigned int i = 0; flash.rows[number] != NULL && i < ROW_UNITS; i++) {
        free(flash.rows[number]->data[i]);
    }
    free(flash.rows[number]);
    flash.rows[number] = NULL;
}

static void program_unit(struct row *row, uint32_t at,
                         const struct ftl_flash_unit *unit)
{
    uint64_t first, word;
    bool is_same = true;

    memcpy(row->system[at], unit->system, FTL_UNIT_SYSTEM);
    memcpy(row->meta[at], unit->meta, FTL_UNIT_META);
    memcpy(&first, unit->data, sizeof(first));
    for (size_t i = 0; is_same && i < FTL_UNIT_DATA; i += sizeof(word)) {
        memcpy(&word, unit->data + i, sizeof(word));
        is_same = word == first;
    }
    row->word[at] = first;
    if (!is_same) {
        row->data[at] = malloc(FTL_UNIT_DATA);
        assert_non_null(row->data[at]);
        memcpy(row->data[at], unit->data, FTL_UNIT_DATA);
    }
}

static void read_unit(const struct row *row, uint32_t at,
                      struct ftl_flash_unit *unit)
{
    unit->wrong_bits = 0;
    unit->steps = 0;
    if (row == NULL || row->is_damaged) {
        unit->status = row == NULL ? FTL_UNIT_ERASED : FTL_UNIT_UNCORRECTABLE;
        return;
    }
    unit->status = FTL_UNIT_GOOD;
    if (unit->system != NULL) {
        memcpy(unit->system, row->system[at], FTL_UNIT_SYSTEM);
    }
    if (unit->meta != NULL) {
        memcpy(unit->meta, row->meta[at], FTL_UNIT_META);
    }
    for (uint32_t i = 0; unit->data != NULL && i < unit->length; i++) {
        uint32_t offset = unit->offset + i;

        if (row->data[at] != NULL) {
            unit->data[i] = row->data[at][offset];
        } else {
            unit->data[i] = (uint8_t)(row->word[at] >> 8 * (offset % 8));
        }
    }
}

static void execute_op(const struct ftl_flash_op *op)
{
    uint32_t number = op->block * (uint32_t)ROWS + op->die;

    if (op->kind == FTL_FLASH_ERASE) {
        for (uint32_t i = 0; i < WORDLINES; i++) {
            free_row(number + i * DIES);
        }
        return;
    }
    number += op->wordline * (uint32_t)DIES;
    if (op->kind == FTL_FLASH_PROGRAM) {
        assert_null(flash.rows[number]);
        flash.rows[number] = calloc(1, sizeof(struct row));
        assert_non_null(flash.rows[number]);
    }
    for (uint32_t i = 0; i < op->num_units; i++) {
        struct ftl_flash_unit *unit = &op->units[i];
        uint32_t at =
            ((uint32_t)unit->page * PLANES + unit->plane) * UNITS + unit->unit;

        if (op->kind == FTL_FLASH_PROGRAM) {
            program_unit(flash.rows[number], at, unit);
        } else {
            read_unit(flash.rows[number], at, unit);
        }
    }
}

static bool submit_op(void *ctx, const struct ftl_flash_op *op)
{
    (void)ctx;
    if (flash.tail - flash.head == QUEUE) {
        return false;
    }
    flash.queue[flash.tail++ % QUEUE] = *op;
    return true;
}

static void run_moves(void *ctx)
{
    (void)ctx;
    ftl_moves_run(&flash.moves);
}

/* ---- The translation layer. */

static struct ftl_config config;
static struct ftl *ftl;

static void choose_config(void)
{
    config = (struct ftl_config){
        .flash = {.submit = submit_op,
                  .moves = &flash.moves,
                  .run_moves = run_moves},
        .geometry = {.dies = DIES,
                     .planes = PLANES,
                     .pages = PAGES,
                     .units = UNITS,
                     .blocks = BLOCKS,
                     .wordlines = WORDLINES},
        .bad_planes = flash.bad_planes,
        .buffer_units = 4 * ROW_UNITS,
        .num_ops = OPS,
        .num_requests = REQUESTS,
        .checkpoint_superblocks = 8,
        .idle_us = 1000,
        .wear_spread = 32,
        .erases_early = true,
        .boot = 1,
    };
    config.logical_units = ftl_space(&config, FTL_SPARE_PERCENT);
    assert_true(config.logical_units > 19000000);
    assert_true(ftl_checkpoint_fits(&config));
    config.memory = get_memory(0, ftl_bytes(&config));
    config.keep = get_memory(1, ftl_keep_bytes(&config));
    flash.moves = (struct ftl_moves){.list = flash.move_list, .max = MOVES};
}

/* One step, and the end of one operation of the flash. @return whether anything
 * was done */
static bool take_step(void)
{
    uint64_t deadline_us = UINT64_MAX;
    bool any;

    count_from_now();
    any = ftl_step(ftl, 0, &deadline_us);
    check_count("A step");
    if (flash.head != flash.tail) {
        struct ftl_flash_op op = flash.queue[flash.head++ % QUEUE];

        execute_op(&op);
        count_from_now();
        ftl_flash_done(ftl, op.cookie, FTL_FLASH_OK, 0);
        check_count("The end of an operation of the flash");
        any = true;
    }
    flash.adopting_steps += ftl_state(ftl) == FTL_READY && ftl_is_adopting(ftl);
    /* Not all trims are durable yet. */
    assert_false(ftl_is_adopting(ftl) &&
                 ftl->checkpoint.state != FTL_CHECKPOINT_IDLE);
    return any;
}

static void settle_flash(void)
{
    while (take_step()) {
    }
}

static void mount_flash(void)
{
    flash.head = flash.tail = 0;
    flash.moves.count = 0;
    count_from_now();
    ftl = ftl_start(&config);
    assert_non_null(ftl);
    check_count("The start");
    settle_flash();
    assert_int_equal(ftl_state(ftl), FTL_READY);
    assert_false(ftl_is_adopting(ftl));
    assert_false(ftl_is_read_only(ftl));
    config.boot++;
}

static void end_io(struct media_owner *owner, enum media_status status)
{
    (void)owner;
    flash.ended++;
    flash.status = status;
}

static enum media_status run_io(enum media_op op, uint32_t unit, uint32_t units,
                                uint8_t *data)
{
    const struct nvmf_piece piece = {.ptr = data,
                                     .len_bytes = units * FTL_UNIT_DATA};
    unsigned int before = flash.ended;
    const struct media_io io = {
        .op = op,
        .piece_count = data != NULL,
        .pieces = &piece,
        .first_lba = (uint64_t)unit * SECTORS,
        .count_blocks = units * SECTORS,
        .owner = &flash.owner,
    };

    flash.owner.done = end_io;
    assert_true(ftl_submit(ftl, &io));
    while (flash.ended == before) {
        assert_true(take_step());
    }
    return flash.status;
}

static void write_unit(uint32_t unit, uint8_t value)
{
    static uint8_t data[FTL_UNIT_DATA];

    memset(data, value, sizeof(data));
    assert_int_equal(run_io(MEDIA_WRITE, unit, 1, data), MEDIA_OK);
}

static void check_unit(uint32_t unit, uint8_t value)
{
    static uint8_t data[FTL_UNIT_DATA];

    assert_int_equal(run_io(MEDIA_READ, unit, 1, data), MEDIA_OK);
    assert_int_equal(data[0], value);
    assert_int_equal(data[FTL_UNIT_DATA - 1], value);
}

static void flush_writes(void)
{
    assert_int_equal(run_io(MEDIA_FLUSH, 0, 0, NULL), MEDIA_OK);
}

static uint32_t last_unit(void)
{
    return config.logical_units - 1;
}

/* Write the first and the last units of the medium, and trim some. */
static void use_units(uint8_t value)
{
    for (uint32_t i = 0; i < 2 * ROW_UNITS; i++) {
        write_unit(i, value);
        write_unit(last_unit() - i, value);
    }
    assert_int_equal(run_io(MEDIA_DEALLOCATE, 7, 3, NULL), MEDIA_OK);
    flush_writes();
}

static void check_units(uint8_t value)
{
    check_unit(0, value);
    check_unit(last_unit(), value);
    check_unit(8, 0);
    check_unit(last_unit() / 2, 0);
}

static void stop_drive(void)
{
    ftl_stop(ftl);
    settle_flash();
    assert_true(ftl_is_stopped(ftl) &&
                ftl->checkpoint.superblock != FTL_NOWHERE);
}

static void damage_rows(uint32_t superblock, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        if (flash.rows[superblock * ROWS + i] != NULL) {
            flash.rows[superblock * ROWS + i]->is_damaged = true;
        }
    }
}

/* ---- Tests: of one array, in this order. */

static int begin_group(void **state)
{
    (void)state;
    choose_config();
    return 0;
}

static int end_group(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ARRAY_LEN(flash.rows); i++) {
        free_row(i);
    }
    for (unsigned int i = 0; i < MEMORIES; i++) {
        (void)munmap(counted.at[i], counted.len[i]);
    }
    return 0;
}

GROUP_FIXTURE(begin_group, end_group)

static void test_no_step_of_a_mount_touches_the_whole_map(void **state)
{
    uint32_t checkpoint;

    (void)state;
    catch_accesses();
    mount_flash(); /* an array that was never used */
    use_units(1);
    stop_drive();
    use_units(2);
    mount_flash(); /* one with a checkpoint, after a power cut */
    assert_int_not_equal(ftl->mount.checkpoint_row, 0);
    check_units(2);
    stop_drive();
    checkpoint = ftl->checkpoint.superblock;
    damage_rows(checkpoint, 0, 2 * DIES);
    mount_flash(); /* with a checkpoint that is damaged */
    assert_int_equal(ftl->mount.checkpoint_row, 0);
    check_units(2);
}

static void test_no_step_after_a_reset_touches_all_trims(void **state)
{
    (void)state;
    catch_accesses();
    write_unit(5, 9);
    write_unit(last_unit(), 9);
    config.adopts = true;
    config.checkpoint_superblocks = 1; /* One is due when the mount ends. */
    flash.adopting_steps = 0;
    mount_flash();
    config.adopts = false;
    config.checkpoint_superblocks = 8;
    assert_in_range(flash.adopting_steps, 2, 1000);
    assert_true(ftl_adopted(ftl)->units != 0);
    check_unit(5, 9);
    check_unit(last_unit(), 9);
}

/* Two units of a stripe cannot be read: they are given up. */
static void test_no_step_that_gives_units_up_searches_the_whole_map(
    void **state)
{
    static uint8_t data[FTL_UNIT_DATA];
    uint32_t superblock;

    (void)state;
    catch_accesses();
    use_units(3);
    ftl_complete_stripes(ftl);
    settle_flash();
    superblock = ftl_place_superblock(&ftl->layout, ftl->map[last_unit()]);
    assert_int_equal(ftl->superblocks[superblock].state, FTL_SUPERBLOCK_CLOSED);
    damage_rows(superblock, 0, ROWS);
    ftl->superblocks[superblock].retries = FTL_STUCK_RETRIES;
    ftl_due_move_soon(&ftl->space_floor, superblock, FTL_CAUSE_SCRUB);
    ftl->has_work = true;
    settle_flash();
    flush_writes();
    assert_true(ftl->counters.lost_units >= ROW_UNITS);
    assert_true(ftl_is_lost(ftl->map[last_unit()]));
    assert_int_equal(run_io(MEDIA_READ, last_unit(), 1, data),
                     MEDIA_READ_ERROR);
}

static void test_no_step_that_gives_the_checkpoint_up_looks_at_the_whole_map(
    void **state)
{
    unsigned int calls = 0;
    bool any;

    (void)state;
    catch_accesses();
    stop_drive();
    ftl->checkpoint.is_needed = true; /* until the map was looked at */
    do {
        count_from_now();
        any = ftl_checkpoint_give_up(&ftl->background_floor);
        check_count("A look at the map");
        assert_true(any);
        calls++;
    } while (ftl->checkpoint.state == FTL_CHECKPOINT_IDLE);
    assert_in_range(calls, 2, 1000);
    settle_flash();
}

static void test_no_step_of_a_wipe_touches_the_whole_map(void **state)
{
    unsigned int before = flash.ended;

    (void)state;
    catch_accesses();
    flash.owner.done = end_io;
    assert_true(ftl_wipe(ftl, &flash.owner));
    settle_flash();
    assert_int_equal(flash.ended, before + 1);
    assert_int_equal(flash.status, MEDIA_OK);
    check_unit(0, 0);
    print_message("A step touches at most %lu KiB.\n",
                  (unsigned long)counted.most * (PART >> 10));
}
