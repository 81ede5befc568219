/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults that come in pairs.  A run takes an array that was in use and was
 * switched off, uses it again, and lets two or three faults happen: power cuts,
 * with capacitors or without, resets, failing programs and erasures, dying
 * dies, lost words, a full disk, damaged units, unreadable planes, mounts that
 * are cut, and failures of what a mount itself programs and erases.  After each
 * start, the oracle checks every unit.
 *
 * The oracle knows what parity can rebuild: one loss in a stripe that was
 * complete.  Such units must be right.  Beyond it, a read may fail, but must
 * not have older contents or zeroes.  Stripes that were not complete when the
 * power was cut have no parity yet, so they may also have older contents if
 * something of them is lost: docs/decisions/0013-translation-layer.md.
 *
 * A failure prints the identifier of its run.  FTL_RUN repeats this run.
 * Otherwise, all pairs of faults of small shapes are run (FTL_SHAPES of them,
 * with FTL_POSITIONS positions of each fault),
 * and FTL_RUNS random ones, from number FTL_FIRST on; and FTL_FULL_RUNS of
 * arrays whose capacity is in use.  FTL_MOUNT_SHAPES and FTL_MOUNT_RUNS are the
 * same numbers for runs in which a program or an erasure of a mount fails; with
 * FTL_MOUNT_STRIDE, N, of the small shapes' pairs only every Nth is run.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "storage/ftl/state.h"
#include "lib/bytes.h"
#include "lib/random.h"
#include "tests/test_fixture.h"
#include "tests/unit/storage/ftl/ftl_faults.h"

enum {
    FAULTS_MAX = 3,
    OPS = 14, /* between flushes */
    ROUNDS = 2,
    REFUSALS = 12,       /* requests that a full disk refuses */
    EVENTS_MAX = 400000, /* of a run: more means that it does not end */
    LOSSES_MAX = 8,
    UNTIMED_SHAPES = 500000000,
    FULL_SHAPES = 1000000000,
    /* Makes the seed of a run, and is as large as ever, so that runs keep their
     * identifiers. */
    SEED_KINDS = 13,
};

enum fault_kind {
    CUT,           /* The power is cut, at an event of the use. */
    RESET,         /* The drive is reset with power on, at an event. */
    PROGRAM_FAIL,  /* A program fails in a plane. */
    ERASE_FAIL,    /* An erasure does. */
    DEATH,         /* A die dies at an operation of the use. */
    WORD,          /* A word of each sum of parity is lost, at an event. */
    FULL,          /* Storage refuses requests, from an event on. */
    TRANSFER,      /* The transfer of a program or an erasure fails. */
    DEAD,          /* A die is dead at the next start. */
    DAMAGE,        /* A unit is damaged while the power is off. */
    WORN,          /* All of a plane of a block is damaged meanwhile. */
    MOUNT_CUT,     /* The mount is cut, at an event. */
    MOUNT_DEATH,   /* A die dies at a read of the mount. */
    SAVE,          /* The power fails, at an event of the use, and capacitors
                    * supply the drive until its buffer is saved. */
    MOUNT_PROGRAM, /* A program of the mount fails in a plane; if the number is
                    * odd and the mount is cut, one of the mount after that. */
    MOUNT_ERASE,   /* The same of an erasure. */
    MOUNT_KILL,    /* The same, and a die dies at it. */
    STOP_PROGRAM,  /* A program of an orderly stop fails in a plane. */
    STOP_KILL,     /* A die dies at a program of an orderly stop. */
    KINDS,
    /* Of these, tests draw all faults, so that runs keep their identifiers. */
    DRAWN_KINDS = MOUNT_PROGRAM,
};

static const char *const kind_names[KINDS] = {
    [CUT] = "cut",
    [RESET] = "reset",
    [PROGRAM_FAIL] = "program",
    [ERASE_FAIL] = "erase",
    [DEATH] = "death",
    [WORD] = "word",
    [FULL] = "full",
    [TRANSFER] = "transfer",
    [DEAD] = "dead",
    [DAMAGE] = "damage",
    [WORN] = "worn",
    [MOUNT_CUT] = "mountcut",
    [MOUNT_DEATH] = "mountdeath",
    [SAVE] = "save",
    [MOUNT_PROGRAM] = "mountprogram",
    [MOUNT_ERASE] = "mounterase",
    [MOUNT_KILL] = "mountkill",
    [STOP_PROGRAM] = "stopprogram",
    [STOP_KILL] = "stopkill",
};

struct fault {
    enum fault_kind kind;
    uint32_t at; /* which event, operation, die, unit or block */
    bool is_done;
};

/* What a run consists of. */
struct plan {
    uint64_t shape;
    unsigned int count;
    struct fault faults[FAULTS_MAX];
};

/* Something that cannot be read after a start; -1: anywhere. */
struct loss {
    int64_t superblock;
    uint32_t die;
    int64_t plane;
    int64_t place; /* of a single unit */
};

struct run {
    struct plan plan;
    struct bed *bed;
    uint64_t seed;
    uint64_t first_event; /* of this use */
    jmp_buf off;          /* ends the use */
    enum fault_kind off_kind;
    unsigned int refusals;      /* that are left */
    unsigned int num_spoilt;    /* sums of parity that have lost a word */
    unsigned int num_forgotten; /* of these, before the last power cut */
    struct loss losses[LOSSES_MAX];
    unsigned int num_losses;
    uint32_t spoilt;    /* the superblock of a checkpoint with such a sum */
    bool is_beyond;     /* more is lost than parity can rebuild */
    bool is_last_start; /* no other start follows whose faults are known */
};

static struct {
    uint64_t runs;
    uint64_t lost_units;
    uint64_t refused_mounts;
    uint64_t kinds[KINDS][KINDS];
} totals;

/* Whether the drive goes off at an event of the use because of a fault. */
static bool is_off_kind(enum fault_kind kind)
{
    return kind == CUT || kind == RESET || kind == SAVE;
}

/* Whether a fault is one of what a mount programs or erases. */
static bool is_mount_kind(enum fault_kind kind)
{
    return kind == MOUNT_PROGRAM || kind == MOUNT_ERASE || kind == MOUNT_KILL;
}

/* Whether all that the drive has acknowledged is on flash, in complete stripes:
 * it was stopped, or capacitors have supplied it. */
static bool is_saved(const struct run *run)
{
    return run->off_kind == KINDS || run->off_kind == SAVE;
}

/*
 * Replaces the function of the NAND model.  A sector begins with 16 bytes that
 * no other write has, so these represent it in the CRC of a unit, and in reads
 * of units whose data nobody wants, as most of a mount are (nand_ram.thin).
 * What hosts read is copied and compared as a whole.
 */
uint32_t nand_data_crc(uint32_t crc, uint32_t at, const uint8_t *data,
                       size_t len)
{
    uint32_t end = at + (uint32_t)len;

    assert_true(at % 8 == 0 && len % 8 == 0);
    for (uint32_t sector = at - at % NAND_RAM_THIN; sector < end;
         sector += NAND_RAM_THIN) {
        for (uint32_t i = MAX(sector, at);
             i < MIN(sector + NAND_RAM_THIN_LEN, end); i += 8) {
            uint64_t word = get_le64(data + i - at);

            crc =
                (uint32_t)(((crc ^ word) * RANDOM_STEP) >> 32) ^ (uint32_t)word;
        }
    }
    return crc;
}

/* Damage one of the bytes of a unit that the CRC covers.  Each number damages
 * them in another way, so that two of them do not repair each other. */
static void damage_unit(struct nand_ram *ram, uint64_t offset, uint32_t number)
{
    uint32_t in_sector = number % NAND_RAM_THIN;
    uint8_t mask = 0x40;

    if (number < NAND_UNIT_DATA) {
        number += in_sector % NAND_RAM_THIN_LEN - in_sector;
        mask = (uint8_t)(1 + in_sector / NAND_RAM_THIN_LEN);
    }
    ram->bytes[offset + number] ^= mask;
    nand_ram_note_write(ram, offset + number, 1);
}

/* ---- Identifiers. */

static char run_id[128]; /* of the run in progress; empty: none */

static void set_id(const struct plan *plan)
{
    int len =
        snprintf(run_id, sizeof(run_id), "%lu", (unsigned long)plan->shape);

    for (unsigned int i = 0; i < plan->count; i++) {
        len += snprintf(run_id + len, sizeof(run_id) - (size_t)len, "%c%s.%u",
                        i == 0 ? ':' : '+', kind_names[plan->faults[i].kind],
                        plan->faults[i].at);
    }
}

static void print_id(void)
{
    if (run_id[0] != '\0') {
        dprintf(STDOUT_FILENO, "repeat this run with FTL_RUN=%s\n", run_id);
    }
}

/* The sanitizer calls this before it ends the program. */
void __asan_on_error(void);
void __asan_on_error(void)
{
    print_id();
}

static void end_program(int number)
{
    print_id();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static int setup(void **state)
{
    (void)state;
    (void)signal(SIGABRT, end_program);
    (void)signal(SIGTERM, end_program);
    (void)signal(SIGINT, end_program);
    return 0;
}

/* A test that has failed is left without the end of its run. */
static int teardown(void **state)
{
    (void)state;
    print_id();
    run_id[0] = '\0';
    return 0;
}

TEST_FIXTURE(setup, teardown)

static struct plan parse_id(const char *text)
{
    struct plan plan = {0};
    char *at;

    plan.shape = strtoull(text, &at, 10);
    while (*at == ':' || *at == '+') {
        struct fault *fault = &plan.faults[plan.count++];
        size_t len = strcspn(++at, ".");

        assert_true(plan.count <= FAULTS_MAX && at[len] == '.');
        fault->kind = KINDS;
        for (unsigned int i = 0; i < KINDS; i++) {
            if (strlen(kind_names[i]) == len &&
                strncmp(kind_names[i], at, len) == 0) {
                fault->kind = (enum fault_kind)i;
            }
        }
        assert_int_not_equal(fault->kind, KINDS);
        fault->at = (uint32_t)strtoul(at + len + 1, &at, 10);
    }
    assert_true(*at == '\0');
    return plan;
}

/* ---- Shapes. */

struct part {
    const char *profile;
    uint8_t planes, units, pages;
};

static const struct part parts[] = {
    {"slc", 4, 1, 1},
    {"slc", 4, 1, 1},
    {"slc", 4, 1, 1},
    {"mlc2d", 2, 4, 2},
};

/*
 * Shapes with small numbers are small; all have parity.  Those from FULL_SHAPES
 * on are small, too, and all of their capacity is in use, so that garbage
 * collection never rests.  In the upper half of each billion, erasures take no
 * time, so that a power cut may complete them in some planes only.
 */
static struct bed_config draw_shape(uint64_t number)
{
    struct bed_config config = {
        .seed = number,
        .is_untimed = number % FULL_SHAPES >= UNTIMED_SHAPES,
    };
    uint64_t random = random_mix(number);
    bool is_small = number < 1000 || (number >= UNTIMED_SHAPES &&
                                      number < UNTIMED_SHAPES + 1000);
    const struct part *part =
        &parts[is_small ? 0 : random_next(&random) % ARRAY_LEN(parts)];
    uint32_t row_units = (uint32_t)part->planes * part->units * part->pages;
    uint32_t dies, all, units;

    config.profile = part->profile;
    config.geometry = (struct nand_geometry){
        .channels = 1,
        .dies = (uint8_t)(3 + random_next(&random) % (is_small ? 2 : 4)),
        .planes = part->planes,
        .units = part->units,
        .pages = part->pages,
        .wordlines = (uint16_t)(2 + random_next(&random) % 4),
    };
    config.geometry.blocks =
        (uint16_t)(FTL_RESERVE + 5 + random_next(&random) % 6);
    dies = config.geometry.dies;
    all = config.geometry.wordlines * (dies - 1) * row_units *
          (config.geometry.blocks - FTL_RESERVE - 3u);
    units = 20 + (uint32_t)(random_next(&random) % 40);
    config.logical_units = MIN(units, all * 3 / 5);
    config.is_capacity_limited = true;
    config.buffer_units = (uint16_t)(row_units * 3);
    config.checkpoint_superblocks =
        number % 2 == 0 ? 0 : (uint16_t)(1 + random_next(&random) % 4);
    if (number >= FULL_SHAPES) {
        config.geometry.dies = (uint8_t)(3 + random_next(&random) % 2);
        config.geometry.wordlines = (uint16_t)(2 + random_next(&random) % 2);
        config.geometry.blocks = FTL_RESERVE + 5;
        config.logical_units = 0;
    }
    config.queues_rows = number % 3 == 2;
    if (!is_small) {
        config.is_greedy = random_next(&random) % 4 == 0;
        config.erases_early = random_next(&random) % 2 == 0;
        config.torn_units_vary = random_next(&random) % 2 == 0;
        config.dies_lag = random_next(&random) % 4 == 0;
        config.rewrites_few = random_next(&random) % 4 == 0;
        config.has_metadata = random_next(&random) % 3 == 0;
    }
    return config;
}

/* An array that was in use, and was switched off in an orderly way. */
struct image {
    struct bed *bed;
    struct bed *copy; /* the one of which runs use up the contents */
};

static struct image new_image(uint64_t shape)
{
    struct bed_config config = draw_shape(shape);
    struct bed *bed = bed_new(&config);
    uint64_t random = random_mix(~shape);
    unsigned int rounds = 4 + (unsigned int)(random_next(&random) % 12);

    for (uint32_t i = 0; i < bed->units; i++) {
        bed_write(bed, (uint64_t)i * BED_SECTORS, BED_SECTORS);
        if (i % 16 == 15) {
            bed_flush(bed);
        }
    }
    for (unsigned int i = 0; i < rounds; i++) {
        bed_use(bed, random_next(&random), OPS);
        bed_wait_all(bed);
        bed_flush(bed);
    }
    bed_settle(bed);
    bed_stop(bed);
    bed_check(bed);
    return (struct image){.bed = bed};
}

static void free_image(struct image *image)
{
    if (image->copy != NULL) {
        bed_free(image->copy);
    }
    if (image->bed != NULL) {
        bed_free(image->bed);
    }
    *image = (struct image){0};
}

/* ---- Faults while the array is in use. */

static struct run *watched; /* the run in progress, for refuse_request() */

static int refuse_request(void *ctx, const struct ram_request *request,
                          uint64_t *len)
{
    (void)ctx;
    if (request->kind != RAM_WRITE || watched->refusals == 0) {
        return 0;
    }
    watched->refusals--;
    *len = 0;
    return ENOSPC;
}

static uint32_t stripe_superblock(const struct ftl *ftl, uint32_t stripe)
{
    return stripe * ftl->layout.geometry.dies / ftl->layout.superblock_rows;
}

static void lose_words(struct run *run)
{
    struct bed *bed = run->bed;

    for (unsigned int i = 0; i < FTL_ACCUMULATORS; i++) {
        struct ftl_accumulator *sum = &bed->ftl->parity.accumulators[i];

        if (sum->is_used && sum->begun != 0) {
            uint8_t *word = sum->data;

            if (stripe_superblock(bed->ftl, sum->stripe) ==
                bed->ftl->checkpoint.writer.superblock) {
                run->spoilt = bed->ftl->checkpoint.writer.superblock;
            }
            memset(word, 0, sizeof(uint64_t));
            assert_true(ftl_note_lost_word(bed->ftl, word));
            run->num_spoilt++;
        }
    }
}

static void watch_events(struct bed *bed)
{
    struct run *run = bed->ctx;

    if (bed->events > EVENTS_MAX) {
        fail_msg("The run does not end.");
    }
    for (unsigned int i = 0; i < run->plan.count; i++) {
        struct fault *fault = &run->plan.faults[i];

        if (fault->is_done || bed->events < run->first_event + fault->at) {
            continue;
        }
        switch (fault->kind) {
        case CUT:
        case RESET:
        case SAVE:
            fault->is_done = true;
            run->off_kind = fault->kind;
            longjmp(run->off, 1);
        case WORD:
            fault->is_done = true;
            lose_words(run);
            break;
        case FULL:
            fault->is_done = true;
            run->refusals = REFUSALS;
            bed->storage_fails = true;
            break;
        default:
            break;
        }
    }
}

static uint32_t number_of_dies(const struct run *run)
{
    return run->bed->config.geometry.dies;
}

/* Inject the faults of operations. */
static void arm_faults(struct run *run)
{
    for (unsigned int i = 0; i < run->plan.count; i++) {
        struct fault *fault = &run->plan.faults[i];
        struct nand_injection injection;

        if (fault->is_done) {
            continue;
        }
        switch (fault->kind) {
        case PROGRAM_FAIL:
        case ERASE_FAIL:
            injection = fault_once(fault->kind == PROGRAM_FAIL ? NAND_OP_PROGRAM
                                                               : NAND_OP_ERASE,
                                   NAND_EFFECT_FAIL, fault->at);
            inject_fault(run->bed, &injection);
            break;
        case DEATH:
            /* Two deaths are those of one die. */
            inject_death(run->bed,
                         (enum nand_op_kind)(NAND_OP_READ + fault->at % 3),
                         (unsigned int)(run->plan.shape % number_of_dies(run)),
                         fault->at / 3);
            break;
        case TRANSFER:
            run->bed->changes_until_error = fault->at + 1;
            break;
        default:
            break;
        }
    }
}

static void disarm_faults(struct run *run)
{
    for (unsigned int i = 0; i < run->plan.count; i++) {
        struct fault *fault = &run->plan.faults[i];

        /* The use was too short for a cut or a reset. */
        fault->is_done |= run->off_kind == KINDS && is_off_kind(fault->kind);
        fault->is_done |= fault->kind == PROGRAM_FAIL ||
                          fault->kind == ERASE_FAIL || fault->kind == DEATH ||
                          fault->kind == TRANSFER;
    }
    nand_array_clear_injections(run->bed->array);
    run->bed->changes_until_error = 0;
    run->bed->after_event = NULL;
}

/* Flush.  If storage refuses requests, it does so only for a while. */
static void flush_bed(struct bed *bed)
{
    enum media_status status = bed_wait(bed, bed_submit_flush(bed));

    for (unsigned int i = 0; i < 8 && status != MEDIA_OK; i++) {
        assert_true(bed->storage_fails && status == MEDIA_WRITE_ERROR);
        watched->refusals = 0;
        bed_settle(bed);
        if (bed->deadline_us != UINT64_MAX) {
            bed->now_us = MAX(bed->now_us, bed->deadline_us);
        }
        status = bed_wait(bed, bed_submit_flush(bed));
    }
    assert_int_equal(status, MEDIA_OK);
}

/* The power has failed: save the buffer.  A power cut meanwhile ends this:
 * the capacitors have failed. */
static void save_bed(struct run *run)
{
    struct bed *bed = run->bed;

    ftl_power_fails(bed->ftl);
    while (!ftl_is_saved(bed->ftl)) {
        if (!bed_step(bed)) {
            assert_true(bed->storage_fails && bed->deadline_us != UINT64_MAX);
            bed->now_us = MAX(bed->now_us, bed->deadline_us);
        }
    }
}

/* Inject the faults of an orderly stop. */
static void arm_stop_faults(struct run *run)
{
    for (unsigned int i = 0; i < run->plan.count; i++) {
        struct fault *fault = &run->plan.faults[i];
        struct nand_injection injection =
            fault_once(NAND_OP_PROGRAM, NAND_EFFECT_FAIL, fault->at);

        if (fault->kind == STOP_PROGRAM) {
            inject_fault(run->bed, &injection);
        } else if (fault->kind == STOP_KILL) {
            inject_death(run->bed, NAND_OP_PROGRAM,
                         fault->at % number_of_dies(run),
                         fault->at / number_of_dies(run));
        }
    }
}

/* Use the medium until the drive goes off. */
static void use_until_off(struct run *run)
{
    struct bed *bed = run->bed;

    run->first_event = bed->events;
    run->off_kind = KINDS;
    bed->ctx = run;
    arm_faults(run);
    bed->after_event = watch_events;
    if (setjmp(run->off) == 0) {
        for (unsigned int i = 0; i < ROUNDS; i++) {
            bed_use(bed, random_next(&run->seed), OPS);
            bed_wait_all(bed);
            flush_bed(bed);
        }
        run->refusals = 0;
        flush_bed(bed);
        arm_stop_faults(run);
        bed_stop(bed);
    } else if (run->off_kind == SAVE) {
        save_bed(run);
    }
    run->refusals = 0;
    disarm_faults(run);
}

/* ---- What the oracle may expect of each unit. */

/*
 * The place of the contents of an entry that are on flash, or FTL_NOWHERE.  Of
 * several slots of a unit, the oldest one names this place, unless a newer one
 * does because the contents of an older one have become durable.
 */
static uint32_t durable_place(const struct ftl *ftl, uint32_t entry)
{
    uint16_t slot = ftl_is_in_slot(entry) ? (uint16_t)entry : FTL_LIST_END;

    while (slot != FTL_LIST_END) {
        entry = ftl->buffer.slots[slot].old_place;
        slot = entry == FTL_NOWHERE ? ftl->buffer.slots[slot].follows
                                    : FTL_LIST_END;
    }
    return ftl_entry_place(entry);
}

static bool is_lost(const struct ftl *ftl, const struct run *run,
                    uint32_t place)
{
    struct ftl_flash_unit unit;
    struct ftl_flash_op op;

    ftl_layout_row(&ftl->layout, ftl_place_row(&ftl->layout, place), &op);
    ftl_layout_unit(&ftl->layout, place % ftl->layout.row_units, &unit);
    for (unsigned int i = 0; i < run->num_losses; i++) {
        const struct loss *loss = &run->losses[i];

        if (loss->die == op.die &&
            (loss->superblock < 0 || loss->superblock == op.block) &&
            (loss->plane < 0 || loss->plane == unit.plane) &&
            (loss->place < 0 || loss->place == place)) {
            return true;
        }
    }
    return false;
}

/* How many units of the stripe of a place are lost.  A lost word of a sum that
 * a power cut has made the drive forget counts for all stripes: the oracle does
 * not follow which one still has it. */
static unsigned int count_losses(const struct ftl *ftl, const struct run *run,
                                 uint32_t place)
{
    uint32_t dies = ftl->layout.geometry.dies;
    uint32_t row = ftl_place_row(&ftl->layout, place);
    uint32_t index = place % ftl->layout.row_units;
    unsigned int count = 0;

    for (uint32_t die = 0; die < dies; die++) {
        count += is_lost(
            ftl, run, (row - row % dies + die) * ftl->layout.row_units + index);
    }
    count += run->num_forgotten;
    return count;
}

/* Whether the sum of a place's stripe is in DRAM: its parity is not on flash.
 */
static bool is_stripe_open(const struct ftl *ftl, uint32_t place)
{
    uint32_t stripe =
        ftl_place_row(&ftl->layout, place) / ftl->layout.geometry.dies;
    bool is_open = false;

    for (unsigned int i = 0; i < FTL_ACCUMULATORS; i++) {
        const struct ftl_accumulator *sum = &ftl->parity.accumulators[i];

        is_open |= sum->is_used && sum->stripe == stripe;
    }
    return is_open;
}

/* Whether something may have left complete stripes without parity, apart from
 * the death of a die. */
static bool may_lack_parity(const struct plan *plan)
{
    for (unsigned int i = 0; i < plan->count; i++) {
        switch (plan->faults[i].kind) {
        case PROGRAM_FAIL:
        case ERASE_FAIL:
        case WORD:
        case FULL:
        case TRANSFER:
        case STOP_PROGRAM:
            return true;
        default:
            break;
        }
    }
    return false;
}

/* Whether a place is on the only die that has died in use.  So what it holds
 * was programmed before that, and its stripe was completed. */
static bool is_of_dead_die(const struct ftl *ftl, const struct run *run,
                           uint32_t place)
{
    struct ftl_flash_op op;

    ftl_layout_row(&ftl->layout, ftl_place_row(&ftl->layout, place), &op);
    return ftl->dies.num_dead == 1 && ftl->dies.is_dead[op.die] &&
           !may_lack_parity(&run->plan);
}

/* Whether parity may be missing or incomplete beside a place. */
static bool is_unprotected(const struct ftl *ftl, const struct run *run,
                           uint32_t place)
{
    const struct ftl_superblock *at =
        &ftl->superblocks[ftl_place_superblock(&ftl->layout, place)];
    bool lacks_parity = (ftl->dies.num_dead != 0 || at->moves_soon) &&
                        !is_of_dead_die(ftl, run, place);

    return lacks_parity || at->is_given_up ||
           (!is_saved(run) && (is_stripe_open(ftl, place) ||
                               at->rows_in_flight != 0 || at->is_suspect));
}

/* Whether the next start loads a checkpoint that names all contents: its
 * stripes have parity, unless a die had died before it was written. */
static bool has_checkpoint(const struct ftl *ftl, const struct run *run)
{
    uint32_t first = ftl->checkpoint.superblock * ftl->layout.superblock_units;
    uint64_t rows = ftl->next_row_number - ftl->checkpoint.row;

    /* Nothing was programmed after it. */
    if (run->off_kind != KINDS || (rows != 1 && rows != FTL_ROW_GAP) ||
        ftl->checkpoint.has_failed ||
        ftl->checkpoint.superblock == FTL_NOWHERE) {
        return false;
    }
    for (uint32_t i = 0; i < ftl->layout.superblock_units; i++) {
        if (is_lost(ftl, run, first + i) &&
            (ftl->dies.num_dead != 0 || count_losses(ftl, run, first + i) > 1 ||
             run->spoilt == ftl->checkpoint.superblock)) {
            return false;
        }
    }
    return true;
}

static unsigned int count_dead_dies(const struct run *run)
{
    uint8_t dies = 0;

    for (unsigned int i = 0; i < run->num_losses; i++) {
        if (run->losses[i].superblock < 0) {
            dies |= (uint8_t)BIT(run->losses[i].die);
        }
    }
    return (unsigned int)__builtin_popcount(dies);
}

/* Read the system bytes of a place. @return false when it holds nothing */
static bool parse_place(const struct run *run, uint32_t place,
                        struct ftl_system *system)
{
    const struct bed_config *config = &run->bed->config;
    const struct ftl_layout *layout = &run->bed->ftl->layout;
    const struct nand_block *block;
    struct nand_layout slots;
    struct ftl_flash_unit unit;
    struct ftl_flash_op op;

    ftl_layout_row(layout, ftl_place_row(layout, place), &op);
    ftl_layout_unit(layout, place % layout->row_units, &unit);
    block = nand_array_block(run->bed->array, 0, op.die, unit.plane, op.block);
    if ((block->flags & NAND_BLOCK_KNOWN) == 0 || op.wordline >= block->next) {
        return false;
    }
    nand_layout(&slots, &config->geometry);
    return ftl_system_parse(
        system,
        run->bed->ram.bytes +
            nand_layout_slot(&slots,
                             nand_block_index(&config->geometry, 0, op.die,
                                              unit.plane, op.block),
                             op.wordline) +
            nand_slot_unit((uint32_t)unit.page * config->geometry.units +
                           unit.unit) +
            NAND_SLOT_SYSTEM);
}

/* The place of a unit's latest contents on flash, or FTL_NOWHERE. */
static uint32_t find_latest(const struct run *run, uint32_t number)
{
    uint32_t latest = FTL_NOWHERE;
    struct ftl_system system;
    uint64_t version = 0;

    for (uint32_t i = 0; i < run->bed->ftl->layout.places; i++) {
        if (parse_place(run, i, &system) && system.kind == FTL_KIND_DATA &&
            system.number == number && system.version > version) {
            version = system.version;
            latest = i;
        }
    }
    return latest;
}

/* Whether contents are lost that were lost while the drive was on: two faults
 * can do that, and hosts get a read error since then. */
static bool was_lost_before(const struct ftl *ftl, const struct run *run,
                            uint32_t entry)
{
    return run->bed->may_lose && ftl_is_lost(ftl->map[entry]);
}

/*
 * Whether a place may have a copy that garbage collection has made since the
 * checkpoint.  The mount reads the original, in a superblock that it does not
 * scan.  The oracle does not know where that is, but two faults are needed to
 * lose it.  Both have the same contents, so they are never older.
 */
static bool may_be_later_copy(const struct ftl *ftl, const struct run *run,
                              uint32_t place)
{
    return place != FTL_NOWHERE && run->num_losses > 1 &&
           ftl->checkpoint.superblock != FTL_NOWHERE &&
           ftl->superblocks[ftl_place_superblock(&ftl->layout, place)]
                   .last_row > ftl->checkpoint.row;
}

/*
 * Whether a mount without a checkpoint may read an original that is lost and
 * cannot be rebuilt: another unit of its stripe is lost, too, or a word of a
 * sum was.  The drive has moved the contents.  But of two equal copies that can
 * be read during the scan, the mount takes the original, and a die may die
 * before it has been moved once more.
 */
static bool may_be_earlier_original(const struct ftl *ftl,
                                    const struct run *run, uint32_t place)
{
    struct ftl_system system, other;

    if (place == FTL_NOWHERE || run->num_losses == 0 ||
        ftl->checkpoint.superblock != FTL_NOWHERE ||
        !parse_place(run, place, &system)) {
        return false;
    }
    for (uint32_t i = 0; i < ftl->layout.places; i++) {
        if (i != place && is_lost(ftl, run, i) &&
            (run->num_spoilt != 0 || count_losses(ftl, run, i) > 1) &&
            parse_place(run, i, &other) && other.kind == system.kind &&
            other.number == system.number && other.version == system.version) {
            return true;
        }
    }
    return false;
}

/*
 * The drive is off, and starts with these losses.  What parity can rebuild must
 * be right.  Beyond it, a read may fail.  If no checkpoint names the lost
 * contents, the mount cannot tell them from a torn row, and an older version
 * may count.
 */
static void set_expectations(struct run *run)
{
    struct bed *bed = run->bed;
    const struct ftl *ftl = bed->ftl;
    bool may_be_old = !has_checkpoint(ftl, run);
    /* Pages with trims come first.  Others say nothing about contents. */
    uint32_t end = ftl->config.logical_units + ftl->trim_pages;
    /* Two dead dies: what the mount moves has no parity. */
    bool is_any_page_beyond = count_dead_dies(run) > 1;

    for (uint32_t i = 0; i < end; i++) {
        uint32_t place = durable_place(ftl, ftl->map[i]);
        bool is_beyond, is_original;

        /* A trim that is not durable has removed contents. */
        if (place == FTL_NOWHERE && run->num_losses != 0 && i < bed->units &&
            bed->unit[i].durable != bed->unit[i].writes) {
            place = find_latest(run, i);
        }
        is_beyond = place != FTL_NOWHERE && is_lost(ftl, run, place) &&
                    (is_unprotected(ftl, run, place) ||
                     count_losses(ftl, run, place) > 1);
        is_original = may_be_earlier_original(ftl, run, place);
        if (place == FTL_NOWHERE && i >= bed->units) {
            continue;
        }
        if (i < bed->units) {
            bed->unit[i].may_fail |=
                is_beyond || was_lost_before(ftl, run, i) ||
                may_be_later_copy(ftl, run, place) || is_original;
            bed->unit[i].may_be_old |= is_beyond && may_be_old;
        } else {
            is_any_page_beyond |= is_beyond || is_original;
        }
    }
    may_be_old |= count_dead_dies(run) > 1;
    /* A lost page says which units were trimmed. */
    for (uint32_t i = 0; i < bed->units; i++) {
        bed->unit[i].may_fail |= is_any_page_beyond;
        bed->unit[i].may_be_old |= is_any_page_beyond && may_be_old;
    }
}

static void add_loss(struct run *run, struct loss loss)
{
    assert_true(run->num_losses < LOSSES_MAX);
    run->losses[run->num_losses++] = loss;
}

static void add_dead_die(struct run *run, uint32_t die)
{
    add_loss(run, (struct loss){
                      .superblock = -1, .die = die, .plane = -1, .place = -1});
}

/* Dies that have died by now. */
static uint8_t find_dead_dies(const struct run *run)
{
    uint8_t dies = 0;

    for (unsigned int i = 0; i < number_of_dies(run); i++) {
        if (nand_array_die_is_dead(run->bed->array, 0, i) ||
            ftl_die_is_dead(run->bed->ftl, i)) {
            dies |= (uint8_t)BIT(i);
        }
    }
    return dies;
}

/* ---- Faults while the power is off. */

/* Damage a byte of a unit.  @return whether it was programmed */
static bool damage_place(struct run *run, uint32_t place, uint64_t *random)
{
    const struct bed_config *config = &run->bed->config;
    const struct ftl_layout *layout = &run->bed->ftl->layout;
    const struct nand_block *block;
    struct nand_layout slots;
    struct ftl_flash_unit unit;
    struct ftl_flash_op op;
    uint32_t index;

    ftl_layout_row(layout, ftl_place_row(layout, place), &op);
    ftl_layout_unit(layout, place % layout->row_units, &unit);
    block = nand_array_block(run->bed->array, 0, op.die, unit.plane, op.block);
    if ((block->flags & NAND_BLOCK_KNOWN) == 0 || op.wordline >= block->next) {
        return false;
    }
    nand_layout(&slots, &config->geometry);
    index =
        nand_block_index(&config->geometry, 0, op.die, unit.plane, op.block);
    damage_unit(
        &run->bed->ram,
        nand_layout_slot(&slots, index, op.wordline) +
            nand_slot_unit((uint32_t)unit.page * config->geometry.units +
                           unit.unit),
        (uint32_t)(random_next(random) % NAND_SLOT_TRAILER));
    return true;
}

/* A place that holds something valid, or any place; FTL_NOWHERE: try again. */
static uint32_t draw_place(const struct run *run, bool is_any, uint64_t *random)
{
    const struct ftl *ftl = run->bed->ftl;

    return is_any ? (uint32_t)(random_next(random) % ftl->layout.places)
                  : durable_place(ftl,
                                  ftl->map[random_next(random) % ftl->entries]);
}

/* A unit, or all of a plane of a block. */
static void damage_flash(struct run *run, uint32_t at, bool is_all)
{
    const struct ftl_layout *layout = &run->bed->ftl->layout;
    uint64_t random = random_mix(at);
    uint32_t place = FTL_NOWHERE;
    struct ftl_flash_unit unit;
    struct ftl_flash_op op;

    for (unsigned int i = 0; i < 1000; i++) {
        place = draw_place(run, at % 4 == 0, &random);
        if (place != FTL_NOWHERE && damage_place(run, place, &random)) {
            break;
        }
        place = FTL_NOWHERE;
    }
    if (place == FTL_NOWHERE) {
        return;
    }
    ftl_layout_row(layout, ftl_place_row(layout, place), &op);
    ftl_layout_unit(layout, place % layout->row_units, &unit);
    add_loss(run, (struct loss){.superblock = op.block,
                                .die = op.die,
                                .plane = unit.plane,
                                .place = is_all ? -1 : (int64_t)place});
    for (uint32_t other = op.block * layout->superblock_units;
         is_all && other < (op.block + 1u) * layout->superblock_units;
         other++) {
        if (other != place && is_lost(run->bed->ftl, run, other)) {
            (void)damage_place(run, other, &random);
        }
    }
}

/* Do what happens before the next start. */
static void use_power_off(struct run *run)
{
    uint8_t dead = find_dead_dies(run);
    bool is_last = true;

    run->num_losses = 0;
    for (uint32_t i = 0; i < number_of_dies(run); i++) {
        if ((dead & BIT(i)) != 0) {
            add_dead_die(run, i);
        }
    }
    for (unsigned int i = 0; i < run->plan.count; i++) {
        is_last &= run->plan.faults[i].is_done ||
                   !is_off_kind(run->plan.faults[i].kind);
    }
    run->is_last_start = is_last;
    for (unsigned int i = 0; is_last && i < run->plan.count; i++) {
        struct fault *fault = &run->plan.faults[i];
        uint32_t die = fault->at % number_of_dies(run);

        if (fault->is_done) {
            continue;
        }
        switch (fault->kind) {
        case DEAD:
            dead |= (uint8_t)BIT(die);
            add_dead_die(run, die);
            break;
        case MOUNT_DEATH:
        case MOUNT_KILL:
            add_dead_die(run, die);
            break;
        case DAMAGE:
            damage_flash(run, fault->at, false);
            break;
        case WORN:
            damage_flash(run, fault->at, true);
            break;
        default:
            break;
        }
    }
    run->bed->changes_dead_dies = true;
    run->bed->dead_dies = dead;
    set_expectations(run);
}

/* ---- Starts. */

static struct fault *find_mount_cut(struct run *run)
{
    for (unsigned int i = 0; i < run->plan.count; i++) {
        if (run->plan.faults[i].kind == MOUNT_CUT &&
            !run->plan.faults[i].is_done && run->is_last_start) {
            return &run->plan.faults[i];
        }
    }
    return NULL;
}

/* Inject a fault of what a mount programs or erases, unless a later mount has
 * it. */
static void arm_mount_fault(struct run *run, struct fault *fault)
{
    enum nand_op_kind kind =
        fault->kind == MOUNT_ERASE ||
                (fault->kind == MOUNT_KILL && fault->at / 2 % 2 != 0)
            ? NAND_OP_ERASE
            : NAND_OP_PROGRAM;
    struct nand_injection injection =
        fault_once(kind, NAND_EFFECT_FAIL, fault->at / 2);

    if (fault->is_done || (fault->at % 2 != 0 && find_mount_cut(run) != NULL)) {
        return;
    }
    fault->is_done = true;
    if (fault->kind == MOUNT_KILL) {
        inject_death(run->bed, kind, fault->at % number_of_dies(run),
                     fault->at / 4);
    } else {
        inject_fault(run->bed, &injection);
    }
}

static void begin_mount(struct run *run)
{
    struct bed *bed = run->bed;

    bed_start_mount(bed);
    bed->changes_dead_dies = false;
    for (unsigned int i = 0; run->is_last_start && i < run->plan.count; i++) {
        struct fault *fault = &run->plan.faults[i];

        if (fault->kind == MOUNT_DEATH) {
            inject_death(bed, NAND_OP_READ, fault->at % number_of_dies(run),
                         fault->at);
        } else if (is_mount_kind(fault->kind)) {
            arm_mount_fault(run, fault);
        }
    }
}

/* @return whether the mount has ended; false: it was cut */
static bool step_mount(struct run *run, struct fault *cut)
{
    struct bed *bed = run->bed;
    uint64_t end = cut != NULL ? bed->events + cut->at : UINT64_MAX;

    while (ftl_state(bed->ftl) == FTL_MOUNTING && bed->events < end) {
        if (!bed_step(bed)) {
            assert_true(bed->storage_fails && bed->deadline_us != UINT64_MAX);
            bed->now_us = MAX(bed->now_us, bed->deadline_us);
        }
        if (bed->events > EVENTS_MAX) {
            fail_msg("The mount does not end.");
        }
    }
    if (cut != NULL) {
        cut->is_done = true;
    }
    return ftl_state(bed->ftl) != FTL_MOUNTING;
}

/* Faults of what a mount changes end with the mount; a die that is to die dies
 * later then. */
static void disarm_mount_faults(struct run *run)
{
    bool has_any = false;

    for (unsigned int i = 0; i < run->plan.count; i++) {
        has_any |= is_mount_kind(run->plan.faults[i].kind);
    }
    if (has_any) {
        nand_array_clear_injections(run->bed->array);
    }
    for (unsigned int i = 0; has_any && i < run->plan.count; i++) {
        const struct fault *fault = &run->plan.faults[i];
        uint32_t die = fault->at % number_of_dies(run);

        if (fault->kind == MOUNT_DEATH && run->is_last_start) {
            inject_death(run->bed, NAND_OP_READ, die, fault->at);
        }
    }
}

/* Whether the flash was not refused, because two dies are dead. */
static bool is_mounted(const struct run *run)
{
    if (ftl_state(run->bed->ftl) == FTL_READY) {
        return true;
    }
    assert_true(__builtin_popcount(find_dead_dies(run)) >= 2);
    totals.refused_mounts++;
    return false;
}

/* Start, perhaps after mounts that are cut. @return false when the flash is
 * refused, because more has failed than parity can rebuild */
static bool mount_bed(struct run *run)
{
    struct bed *bed = run->bed;
    bool adopts = run->off_kind == RESET;

    if (adopts) {
        bed_reset_drive(bed, random_next(&run->seed));
    } else {
        bed_cut_power(bed, random_next(&run->seed), is_saved(run));
    }
    begin_mount(run);
    while (!step_mount(run, find_mount_cut(run))) {
        bed->dead_dies = find_dead_dies(run);
        bed->changes_dead_dies = true;
        if (adopts) {
            bed_reset_drive(bed, random_next(&run->seed));
        } else {
            bed_cut_power(bed, random_next(&run->seed), false);
        }
        begin_mount(run);
    }
    disarm_mount_faults(run);
    return is_mounted(run);
}

/* ---- Runs. */

static bool has_more_offs(const struct run *run)
{
    for (unsigned int i = 0; i < run->plan.count; i++) {
        if (!run->plan.faults[i].is_done &&
            is_off_kind(run->plan.faults[i].kind)) {
            return true;
        }
    }
    return false;
}

/* Use, switch off, start and check.  @return whether the drive has started */
static bool run_cycle(struct run *run)
{
    struct bed *bed = run->bed;
    uint32_t start = bed->boot;

    use_until_off(run);
    use_power_off(run);
    if (!mount_bed(run)) {
        return false;
    }
    if (run->off_kind == SAVE && run->num_losses <= 1) {
        assert_true(ftl_was_saved(bed->ftl, start));
    }
    totals.lost_units += bed_check_each(bed);
    nand_array_clear_injections(bed->array);
    run->num_forgotten = run->num_spoilt;
    /* With two dead dies there may be no space for what was adopted. */
    if (run->off_kind == RESET && !ftl_is_read_only(bed->ftl) &&
        __builtin_popcount(find_dead_dies(run)) < 2) {
        flush_bed(bed);
    }
    return true;
}

/* Switch the drive off in an orderly way, and start it again. */
static void restart_bed(struct run *run)
{
    struct bed *bed = run->bed;

    bed_settle(bed);
    (void)bed_check_each(bed);
    bed_stop(bed);
    bed_start_mount(bed);
    (void)step_mount(run, NULL);
    if (is_mounted(run)) {
        (void)bed_check_each(bed);
    }
}

/*
 * Whether a run may lose contents: it has a fault that makes units unreadable,
 * and another one that does so, too, or that leaves stripes without parity.
 */
static bool may_lose(const struct plan *plan)
{
    unsigned int losses = 0, others = 0;

    for (unsigned int i = 0; i < plan->count; i++) {
        switch (plan->faults[i].kind) {
        case DEATH:
        case DEAD:
        case DAMAGE:
        case WORN:
        case MOUNT_DEATH:
        case MOUNT_KILL:
        case STOP_KILL:
            losses++;
            break;
        case CUT:
        case RESET:
        case SAVE:
        case MOUNT_CUT:
        case PROGRAM_FAIL:
        case WORD:
        case STOP_PROGRAM:
            others++;
            break;
        default:
            break;
        }
    }
    return losses != 0 && losses + others > 1;
}

static void run_plan(struct image *image, const struct plan *plan)
{
    struct run run = {
        .plan = *plan, .seed = random_mix(plan->shape), .spoilt = FTL_NOWHERE};
    bool goes_on = true;

    set_id(plan);
    for (unsigned int i = 0; i < plan->count; i++) {
        run.seed = random_mix(run.seed + plan->faults[i].at * SEED_KINDS +
                              plan->faults[i].kind);
    }
    watched = &run;
    image->copy = bed_cut_saved_again(image->copy, image->bed, run.seed);
    bed_read_thinly(image->copy);
    run.bed = image->copy;
    run.bed->ram.judge = refuse_request;
    bed_mount(run.bed);
    do {
        /* Operations of hosts may need what nobody can read. */
        run.bed->may_lose = may_lose(plan);
        goes_on = run_cycle(&run);
    } while (goes_on && has_more_offs(&run));
    if (goes_on) {
        restart_bed(&run);
    }
    totals.runs++;
    if (plan->count >= 2) {
        totals.kinds[plan->faults[0].kind][plan->faults[1].kind]++;
    }
    run_id[0] = '\0';
}

static void print_totals(void)
{
    print_message("%lu runs; %lu units could not be read, and %lu arrays could "
                  "not be mounted, because more had failed than parity can "
                  "rebuild\n",
                  (unsigned long)totals.runs, (unsigned long)totals.lost_units,
                  (unsigned long)totals.refused_mounts);
}

/* All pairs of the faults that tests draw, each at some positions. */
static void run_pairs(uint64_t shape, struct image *image)
{
    static const uint32_t positions[] = {0, 7, 31, 90};
    unsigned int count = (unsigned int)MIN(bed_setting("FTL_POSITIONS", 2),
                                           ARRAY_LEN(positions));

    for (unsigned int one = 0; one < DRAWN_KINDS; one++) {
        for (unsigned int other = one; other < DRAWN_KINDS; other++) {
            for (unsigned int i = 0; i < count * count; i++) {
                struct plan plan = {
                    .shape = shape,
                    .count = 2,
                    .faults = {{.kind = (enum fault_kind)one,
                                .at = positions[i / count] + other},
                               {.kind = (enum fault_kind)other,
                                .at = positions[i % count] + one}},
                };

                run_plan(image, &plan);
            }
        }
    }
}

/* Each fault of what a mount changes, or of an orderly stop, with another fault
 * at some positions. */
static void run_mount_pairs(uint64_t shape, struct image *image)
{
    enum { POSITIONS = 28 }; /* A mount of a small shape programs fewer rows. */
    uint32_t stride = (uint32_t)bed_setting("FTL_MOUNT_STRIDE", 17);
    unsigned int count = (unsigned int)bed_setting("FTL_POSITIONS", 2);

    for (unsigned int one = MOUNT_PROGRAM; one < KINDS; one++) {
        for (uint32_t i = 0; i < KINDS * count * POSITIONS; i += stride) {
            struct plan plan = {
                .shape = shape,
                .count = 2,
                .faults = {{.kind = (enum fault_kind)one, .at = i % POSITIONS},
                           {.kind = (enum fault_kind)(i / POSITIONS % KINDS),
                            .at = i / POSITIONS / KINDS * 13 + i % 7}},
            };

            run_plan(image, &plan);
        }
    }
}

static void test_all_pairs_of_faults_of_small_shapes(void **state)
{
    uint64_t first = bed_setting("FTL_FIRST_SHAPE", 1);

    (void)state;
    if (getenv("FTL_RUN") != NULL) {
        return;
    }
    for (uint64_t i = first; i < first + bed_setting("FTL_SHAPES", 1); i++) {
        struct image image = new_image(i);

        run_pairs(i, &image);
        free_image(&image);
    }
    print_totals();
}

/* A fault at a position that is more often small than large. */
static struct fault draw_fault(uint64_t *random, enum fault_kind kinds)
{
    struct fault fault = {.kind =
                              (enum fault_kind)(random_next(random) % kinds)};
    unsigned int shift = (unsigned int)(random_next(random) % 9);

    fault.at = (uint32_t)(random_next(random) % (UINT64_C(2) << shift));
    return fault;
}

/* @param has_mount_fault  one of the faults is of a mount or a stop */
static void run_random_plans(uint64_t first, uint64_t runs,
                             bool has_mount_fault)
{
    enum { OF_SHAPE = 60 }; /* runs */
    struct image image = {0};

    for (uint64_t i = 0; i < runs; i++) {
        uint64_t shape = 1000 + first + i / OF_SHAPE;
        uint64_t random = random_mix((first + i / OF_SHAPE) << 20 | i);
        struct plan plan = {.shape = shape, .count = 2 + (unsigned int)(i % 2)};

        if (i % OF_SHAPE == 0) {
            free_image(&image);
            image = new_image(shape);
        }
        for (unsigned int j = 0; j < plan.count; j++) {
            plan.faults[j] =
                draw_fault(&random, has_mount_fault ? KINDS : DRAWN_KINDS);
        }
        if (has_mount_fault && plan.faults[0].kind < DRAWN_KINDS) {
            plan.faults[0].kind =
                MOUNT_PROGRAM +
                (enum fault_kind)(random_next(&random) %
                                  (unsigned int)(KINDS - MOUNT_PROGRAM));
        }
        run_plan(&image, &plan);
    }
    free_image(&image);
    print_totals();
}

static void test_pairs_with_faults_of_mounts_and_stops(void **state)
{
    uint64_t first = UNTIMED_SHAPES + bed_setting("FTL_FIRST_SHAPE", 1);

    (void)state;
    if (getenv("FTL_RUN") != NULL) {
        return;
    }
    for (uint64_t i = first; i < first + bed_setting("FTL_MOUNT_SHAPES", 2);
         i++) {
        struct image image = new_image(i % 2 == 0 ? i : i - UNTIMED_SHAPES);

        run_mount_pairs(i % 2 == 0 ? i : i - UNTIMED_SHAPES, &image);
        free_image(&image);
    }
    print_totals();
}

static void test_random_pairs_and_triples_of_faults(void **state)
{
    (void)state;
    if (getenv("FTL_RUN") == NULL) {
        run_random_plans(bed_setting("FTL_FIRST", 1),
                         bed_setting("FTL_RUNS", 60), false);
    }
}

static void test_random_faults_of_full_arrays(void **state)
{
    (void)state;
    if (getenv("FTL_RUN") == NULL) {
        run_random_plans(FULL_SHAPES + bed_setting("FTL_FIRST", 1),
                         bed_setting("FTL_FULL_RUNS", 60), false);
    }
}

static void test_random_faults_of_mounts_and_stops(void **state)
{
    (void)state;
    if (getenv("FTL_RUN") == NULL) {
        run_random_plans(UNTIMED_SHAPES + bed_setting("FTL_FIRST", 1),
                         bed_setting("FTL_MOUNT_RUNS", 60), true);
    }
}

static void run_id_of(const char *text)
{
    struct plan plan = parse_id(text);
    struct image image = new_image(plan.shape);

    run_plan(&image, &plan);
    free_image(&image);
}

static void test_one_run_of_a_given_identifier(void **state)
{
    const char *text = getenv("FTL_RUN");

    (void)state;
    run_id_of(text == NULL ? "1:dead.1" : text);
}

/* Random runs that have failed once. */
static void test_runs_that_have_failed(void **state)
{
    static const char *const runs[] = {
        /* A failed plane, which only the checkpoint names, is in no sum of the
         * checkpoint, and a die is dead. */
        "8049:erase.0+dead.20+damage.2",
        "9029:mountdeath.1+worn.170+program.57",
        /* Capacitors have supplied the drive until its buffer was saved. */
        "101000:save.7+dead.1",
        /* Two losses in the stripe of an original that was copied later. */
        "1001183:damage.0+mountdeath.0+erase.109",
        /* Two dead dies leave no space for what a reset has kept. */
        "2001111:mountdeath.94+dead.54+reset.8",
        /* Contents are lost while the drive is on. */
        "3001277:word.43+death.0",
        /* Contents under a trim that is not durable, in an open stripe. */
        "4002489:cut.53+mountdeath.22",
        /* Originals in a stripe with a failed plane, on a die that dies after
         * the scan has preferred them to their copies. */
        "628:program.102+mountdeath.33",
        /* A word of a checkpoint's own sum is lost. */
        "4002067:mountdeath.7+worn.7+word.135",
        /* The factory's marks leave less space than the shape asks for. */
        "4002074:cut.0+dead.0",
        /* Contents that a newer slot follows are in an open stripe. */
        "5001742:mountdeath.26+cut.237",
        "4004224:word.3+mountdeath.7+cut.25",
        /* The original is in a superblock that is half erased, the copy is in
         * one that the mount erases first, and then a die dies. */
        "150:transfer.102+mountdeath.38",
        "11001203:mountdeath.28+cut.179",
        /* The same, and one plane of a die is erased in part, the others not.
         * The die of the original dies when the mount has ended. */
        "30001282:damage.11+cut.216+mountdeath.39",
        /* The units of two dead dies have the same number. */
        "30016009:mountdeath.42+damage.2+dead.29",
        /* The original is in a superblock whose sum has lost a word. */
        "1000000506:word.43+mountdeath.36",
        /* The original is in a stripe with two losses. */
        "1000091046:worn.181+mountdeath.55+full.0",
        /* The original is on a dead die and has no parity, the copy can be
         * read. */
        "1020006035:dead.56+program.37+program.51",
        /* A program of a mount fails, and the copies beside it have no parity
         * when a die dies that holds one of them. */
        "500001020:mountprogram.1+mountkill.15",
        "500101068:mountkill.10+mounterase.3+mountprogram.11",
        "500101101:mountprogram.106+mountkill.10+cut.198",
        /* A die dies while the buffer is saved, and padding follows the marker.
         */
        "501005:death.1+save.2",
        "501102:save.5+death.1+program.1",
    };

    (void)state;
    for (unsigned int i = 0; getenv("FTL_RUN") == NULL && i < ARRAY_LEN(runs);
         i++) {
        run_id_of(runs[i]);
    }
}
