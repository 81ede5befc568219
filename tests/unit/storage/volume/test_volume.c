/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The volume on a medium in memory: where blocks go, what is erased when, and
 * what a power cut leaves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firmware/hal/time.h"
#include "storage/volume/volume.h"
#include "tests/test_fixture.h"

#include <stdlib.h>
#include <string.h>

enum {
    MEDIUM_MIB = 12,
    BLOCKS_MIB = 2048,
    OPS = 64,
    NO_NSID = 0,
};
#define MEDIUM_BYTES ((size_t)MEDIUM_MIB << 20)

struct bed {
    struct volume *volume;
    struct log log;
    struct identity identity;
    struct volume_plan plan;
    uint8_t *medium;
    bool has_older_record; /* the newest one in flash is damaged */
    bool has_lost_table;   /* no one in flash can be read */
    bool is_short;         /* the medium has a quarter of its size */
    bool holds_power_on;   /* the next start is a reset, with power on */

    struct media_io ops[OPS]; /* in flight */
    unsigned int op_count, submitted;
    unsigned int room;
    enum media_status status;

    uint8_t record[VOLUME_RECORD_MAX]; /* what is in flash */
    size_t record_len;
    uint32_t writes;
    bool is_flash_broken;
    uint32_t host; /* who changes the table; 0: hosts have no shares */

    struct media_owner owner; /* of the test's operations */
    unsigned int media_done;
    enum media_status last_status;
    unsigned int jobs_done;
    enum nvmf_volume_result result;
    uint32_t nsid;
    unsigned int changed;
};

static struct bed *bed;

uint64_t hal_now_us(void)
{
    return 0;
}

static bool submit_op(void *ctx, const struct media_io *io)
{
    assert_ptr_equal(ctx, bed);
    assert_true(io->first_lba + io->count_blocks <= MEDIUM_BYTES / 512);
    if (bed->op_count == bed->room) {
        return false;
    }
    bed->ops[bed->op_count++] = *io;
    bed->submitted++;
    return true;
}

static bool save_record(void *ctx, const uint8_t *record, size_t len)
{
    assert_ptr_equal(ctx, bed);
    if (bed->is_flash_broken) {
        return false;
    }
    memcpy(bed->record, record, len);
    bed->record_len = len;
    bed->writes++;
    return true;
}

static void media_done(struct media_owner *owner, enum media_status status)
{
    assert_ptr_equal(owner, &bed->owner);
    bed->media_done++;
    bed->last_status = status;
}

static void job_done(void *ctx, enum nvmf_volume_result result, uint32_t nsid)
{
    (void)ctx;
    bed->jobs_done++;
    bed->result = result;
    bed->nsid = nsid;
}

static void ns_changed(void *ctx, uint32_t nsid)
{
    (void)ctx;
    bed->changed++;
    bed->nsid = nsid;
}

static size_t drop_text(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    (void)text;
    return len;
}

/* Start the volume, as after a power cut: nothing is in flight. */
static uint32_t get_host(void *ctx)
{
    assert_ptr_equal(ctx, bed);
    return bed->host;
}

static void start_drive(void)
{
    const struct volume_config config = {
        .log = &bed->log,
        .medium_blocks = MEDIUM_BYTES / 512 / (bed->is_short ? 4 : 1),
        .is_power_on = !bed->holds_power_on,
        .identity = &bed->identity,
        .plan = &bed->plan,
        .record_state = bed->writes == 0        ? VOLUME_RECORD_NONE
                        : bed->has_lost_table   ? VOLUME_RECORD_DAMAGED
                        : bed->has_older_record ? VOLUME_RECORD_OLDER
                                                : VOLUME_RECORD_OK,
        .record = bed->record,
        .record_len = bed->record_len,
        .writes = bed->writes,
        .save = save_record,
        .acting_host = bed->host != 0 ? get_host : NULL,
        .acting_ctx = bed,
        .save_ctx = bed,
        .submit = submit_op,
        .submit_ctx = bed,
        .job_done = job_done,
        .ns_changed = ns_changed,
    };

    bed->op_count = 0;
    bed->owner.done = media_done;
    volume_init(bed->volume, &config);
}

static int setup(void **state)
{
    (void)state;
    bed = calloc(1, sizeof(*bed));
    bed->volume = calloc(1, sizeof(*bed->volume));
    bed->medium = malloc(MEDIUM_BYTES);
    memset(bed->medium, 0xee, MEDIUM_BYTES);
    bed->room = OPS;
    log_init(&bed->log, (struct log_sink){.write = drop_text});
    start_drive();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(bed->medium);
    free(bed->volume);
    free(bed);
    return 0;
}

/* Complete the oldest operation on the medium. */
static void complete_op(void)
{
    struct media_io io = bed->ops[0];
    uint8_t *at = bed->medium + io.first_lba * 512;
    size_t len = 0;

    bed->op_count--;
    memmove(bed->ops, bed->ops + 1, bed->op_count * sizeof(bed->ops[0]));
    for (uint8_t i = 0; i < io.piece_count; i++) {
        if (io.op == MEDIA_READ) {
            memcpy(io.pieces[i].ptr, at + len, io.pieces[i].len_bytes);
        } else {
            memcpy(at + len, io.pieces[i].ptr, io.pieces[i].len_bytes);
        }
        len += io.pieces[i].len_bytes;
    }
    if (io.piece_count != 0) {
        assert_int_equal(len, (size_t)io.count_blocks * 512);
    } else if (bed->status == MEDIA_OK) {
        memset(at, 0, (size_t)io.count_blocks * 512);
    }
    media_end(io.owner, bed->status);
}

/* Do everything that can be done. */
static void run_all(void)
{
    bool is_busy = true;

    while (is_busy) {
        is_busy = volume_step(bed->volume);
        if (bed->op_count != 0) {
            complete_op();
            is_busy = true;
        }
    }
}

static uint32_t create_ns(uint64_t mib, uint8_t shift)
{
    const struct nvmf_volume seam = volume_seam(bed->volume);
    const struct nvmf_volume_job job = {.op = NVMF_VOLUME_CREATE,
                                        .size_bytes = mib << 20,
                                        .block_shift = shift};
    unsigned int before = bed->jobs_done;

    seam.start(seam.ctx, &job);
    assert_int_equal(bed->jobs_done, before); /* never inside start() */
    run_all();
    assert_int_equal(bed->jobs_done, before + 1);
    return bed->result == NVMF_VOLUME_OK ? bed->nsid : NO_NSID;
}

static void start_job(enum nvmf_volume_op op, uint32_t nsid, uint8_t shift)
{
    const struct nvmf_volume seam = volume_seam(bed->volume);
    const struct nvmf_volume_job job = {
        .op = op, .nsid = nsid, .block_shift = shift};

    seam.start(seam.ctx, &job);
}

static void delete_ns(uint32_t nsid)
{
    start_job(NVMF_VOLUME_DELETE, nsid, 0);
    run_all();
    assert_int_equal(bed->result, NVMF_VOLUME_OK);
}

/* As the media seam does it. */
static bool submit_io(struct media_io *io)
{
    struct media_io placed = *io;

    if (!volume_locate_linear(bed->volume, io, &placed.first_lba,
                              &placed.count_blocks) &&
        !volume_locate(bed->volume, io, &placed.first_lba,
                       &placed.count_blocks)) {
        return volume_submit(bed->volume, io);
    }
    return submit_op(bed, &placed);
}

/* Move `len` bytes in pieces of odd lengths; they are whole blocks. */
static void move_data(enum media_op op, uint32_t nsid, uint64_t lba,
                      uint8_t *bytes, size_t len)
{
    uint8_t shift = bed->volume->table.ns[nsid - 1].block_shift;
    struct nvmf_piece pieces[NVMF_MAX_PIECES] = {0};
    struct media_io io = {
        .op = op,
        .ns = nsid - 1,
        .first_lba = lba,
        .count_blocks = (uint32_t)(len >> shift),
        .pieces = pieces,
        .owner = &bed->owner,
    };
    unsigned int before = bed->media_done;

    while (len > 0) {
        size_t n =
            io.piece_count == NVMF_MAX_PIECES - 1 ? len : MIN(len, 70001);

        pieces[io.piece_count].ptr = bytes;
        pieces[io.piece_count++].len_bytes = (uint32_t)n;
        bytes += n;
        len -= n;
    }
    assert_true(submit_io(&io));
    run_all();
    assert_int_equal(bed->media_done, before + 1);
    assert_int_equal(bed->last_status, MEDIA_OK);
}

/* Read so many blocks; @return the status of the operation */
static enum media_status read_status(uint32_t nsid, uint64_t lba,
                                     uint32_t count, uint8_t *bytes)
{
    uint8_t shift = bed->volume->table.ns[nsid - 1].block_shift;
    struct nvmf_piece piece = {.ptr = bytes, .len_bytes = count << shift};
    struct media_io io = {
        .op = MEDIA_READ,
        .piece_count = 1,
        .ns = nsid - 1,
        .first_lba = lba,
        .count_blocks = count,
        .pieces = &piece,
        .owner = &bed->owner,
    };
    unsigned int before = bed->media_done;

    assert_true(submit_io(&io));
    assert_int_equal(bed->media_done, before); /* never inside submit() */
    run_all();
    assert_int_equal(bed->media_done, before + 1);
    return bed->last_status;
}

static bool is_zero(const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

static void test_a_drive_without_a_table_has_one_namespace(void **state)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    struct nvmf_volume_ns ns;
    struct media_geometry geometry;
    struct media_io io = {.first_lba = 12345, .count_blocks = 9};
    uint64_t lba;
    uint32_t count;
    uint8_t uuid[16];

    (void)state;
    assert_int_equal(bed->writes, 0);
    assert_true(seam.describe(seam.ctx, 1, &ns));
    assert_false(seam.describe(seam.ctx, 2, &ns));
    volume_geometry(bed->volume, 0, &geometry);
    assert_int_equal(geometry.size_blocks, MEDIUM_BYTES / 512);
    assert_true(volume_locate(bed->volume, &io, &lba, &count));
    assert_int_equal(lba, 12345);
    assert_int_equal(count, 9);
    /* Its identifiers are those that drives had before there was a table. */
    assert_true(seam.describe(seam.ctx, 1, &ns));
    identity_namespace_uuid(&bed->identity, 1, uuid);
    assert_memory_equal(ns.uuid, uuid, 16);
}

static void test_a_plan_is_used_once(void **state)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    struct nvmf_volume_ns ns;

    (void)state;
    bed->plan = (struct volume_plan){3, 2, VOLUME_SHIFT_4096};
    start_drive();
    assert_int_equal(bed->writes, 1);
    assert_true(seam.describe(seam.ctx, 3, &ns));
    assert_false(seam.describe(seam.ctx, 4, &ns));
    delete_ns(2);
    bed->plan.count = 5;
    start_drive();
    assert_true(seam.describe(seam.ctx, 3, &ns));
    assert_false(seam.describe(seam.ctx, 2, &ns));
    assert_false(seam.describe(seam.ctx, 4, &ns));
}

static void test_data_go_to_the_namespace_whatever_its_windows(void **state)
{
    static uint8_t bytes[3 << 20], back[3 << 20];
    uint32_t a, b;

    (void)state;
    delete_ns(1);
    assert_int_equal(a = create_ns(2, 9), 1);
    assert_int_equal(create_ns(1, 9), 2);
    assert_int_equal(create_ns(2, 12), 3);
    delete_ns(2);
    delete_ns(1);
    a = create_ns(4, 12); /* 3 adjacent windows are not enough: elsewhere */
    b = create_ns(6, 9);  /* windows 0 to 2, and some behind */
    assert_int_equal(a, 1);
    assert_int_equal(b, 2);
    assert_true(bed->volume->table.ns[1].windows == 6);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 4096);
    }
    move_data(MEDIA_WRITE, b, BLOCKS_MIB * 2 + 1, bytes, sizeof(bytes));
    move_data(MEDIA_WRITE, a, 300, bytes, 1 << 20);
    memset(back, 0, sizeof(back));
    move_data(MEDIA_READ, b, BLOCKS_MIB * 2 + 1, back, sizeof(back));
    assert_memory_equal(bytes, back, sizeof(bytes));
    move_data(MEDIA_READ, a, 300, back, 1 << 20);
    assert_memory_equal(bytes, back, 1 << 20);
}

/* Namespace 1 gets windows 0 and 2, which are not adjacent. */
static uint32_t make_scattered(void)
{
    delete_ns(1);
    assert_int_equal(create_ns(1, 9), 1);
    assert_int_equal(create_ns(1, 9), 2);
    assert_int_equal(create_ns(10, 9), 3);
    delete_ns(1);
    delete_ns(3);
    assert_int_equal(create_ns(11, 9), 1);
    assert_int_equal(bed->volume->table.list[1], 0);
    assert_int_equal(bed->volume->table.list[2], 2);
    return 1;
}

static void test_an_operation_is_split_where_windows_are_not_adjacent(
    void **state)
{
    uint8_t bytes[1024] = {1, 2, 3};
    unsigned int before;

    (void)state;
    make_scattered();
    before = bed->submitted;
    move_data(MEDIA_WRITE, 1, BLOCKS_MIB - 1, bytes, sizeof(bytes));
    assert_int_equal(bed->submitted, before + 2);
    move_data(MEDIA_WRITE, 1, 2 * BLOCKS_MIB - 1, bytes, sizeof(bytes));
    assert_int_equal(bed->submitted, before + 3);
    assert_memory_equal(bed->medium + (1 << 20) - 512, bytes, 512);
    assert_memory_equal(bed->medium + (2 << 20), bytes + 512, 512);
}

static void test_a_split_operation_reports_its_error_and_stops(void **state)
{
    struct media_io io = {.op = MEDIA_WRITE_ZEROES,
                          .first_lba = 0,
                          .count_blocks = 3 * BLOCKS_MIB,
                          .owner = &bed->owner};
    unsigned int before;

    (void)state;
    make_scattered();
    before = bed->submitted;
    assert_true(submit_io(&io));
    bed->status = MEDIA_WRITE_ERROR;
    run_all();
    assert_int_equal(bed->media_done, 1);
    assert_int_equal(bed->last_status, MEDIA_WRITE_ERROR);
    assert_int_equal(bed->submitted, before + 1);
}

/* Whoever submits an operation has checked its range.  The volume does not rely
 * on that: what lies beyond the end of a namespace belongs to others. */
static void expect_the_end_holds(uint32_t nsid)
{
    static const uint64_t beyond[] = {
        0, 1, BLOCKS_MIB, UINT64_MAX / 2, UINT64_MAX >> 9, UINT64_MAX - 1};
    uint64_t size = bed->volume->map[nsid - 1].size_blocks;
    static uint8_t bytes[2 * 4096];
    unsigned int before = bed->submitted;

    memset(bytes, 0x5a, sizeof(bytes));
    for (size_t i = 0; i < ARRAY_LEN(beyond); i++) {
        uint64_t lba =
            beyond[i] > UINT64_MAX - size ? beyond[i] : size - 1 + beyond[i];

        assert_int_equal(read_status(nsid, lba, 2, bytes), MEDIA_LBA_RANGE);
    }
    assert_int_equal(bed->submitted, before);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        assert_int_equal(bytes[i], 0x5a);
    }
    assert_int_equal(read_status(nsid, size - 1, 1, bytes), MEDIA_OK);
}

static void test_nothing_beyond_the_end_of_a_namespace_is_read(void **state)
{
    (void)state;
    make_scattered();
    assert_false(bed->volume->map[0].is_linear);
    expect_the_end_holds(1);
    assert_true(bed->volume->map[1].is_linear);
    expect_the_end_holds(2);
    delete_ns(1);
    assert_int_equal(create_ns(3, 12), 1);
    expect_the_end_holds(1);
    delete_ns(2);
    assert_int_equal(read_status(2, 0, 1, (uint8_t[512]){0}), MEDIA_LBA_RANGE);
}

static void test_operations_that_are_refused_wait_as_others_do(void **state)
{
    struct media_io io = {.op = MEDIA_WRITE_ZEROES,
                          .first_lba = 11 * BLOCKS_MIB,
                          .count_blocks = 1,
                          .owner = &bed->owner};
    unsigned int before;

    (void)state;
    make_scattered();
    before = bed->submitted;
    for (unsigned int i = 0; i < VOLUME_SPLITS; i++) {
        assert_true(submit_io(&io));
    }
    assert_false(submit_io(&io)); /* there is no room */
    assert_int_equal(bed->media_done, 0);
    assert_true(volume_has_work(bed->volume));
    run_all();
    assert_int_equal(bed->media_done, VOLUME_SPLITS);
    assert_int_equal(bed->last_status, MEDIA_LBA_RANGE);
    assert_int_equal(bed->submitted, before);
}

static void test_parts_wait_when_the_medium_has_no_room(void **state)
{
    struct media_io io = {.op = MEDIA_WRITE_ZEROES,
                          .first_lba = 0,
                          .count_blocks = 3 * BLOCKS_MIB,
                          .owner = &bed->owner};

    (void)state;
    make_scattered();
    bed->room = 0;
    assert_false(submit_io(&io));
    bed->room = 1;
    assert_true(submit_io(&io));
    bed->room = 0;
    complete_op();
    assert_int_equal(bed->op_count, 0);
    assert_true(volume_step(bed->volume));
    assert_int_equal(bed->media_done, 0);
    bed->room = OPS;
    run_all();
    assert_int_equal(bed->media_done, 1);
    assert_int_equal(bed->last_status, MEDIA_OK);
}

static void test_a_new_namespace_reads_as_zeroes(void **state)
{
    static uint8_t back[MEDIUM_BYTES];

    (void)state;
    delete_ns(1); /* all of it holds data */
    assert_int_equal(create_ns(MEDIUM_MIB, 9), 1);
    for (unsigned int i = 0; i < MEDIUM_MIB; i++) {
        move_data(MEDIA_READ, 1, (uint64_t)i * BLOCKS_MIB, back, 1 << 20);
        assert_true(is_zero(back, 1 << 20));
    }
}

/* The power fails after each step of a deletion and a creation. */
static void test_no_data_leak_whenever_power_fails(void **state)
{
    (void)state;
    for (unsigned int cut = 0; cut < 12; cut++) {
        struct nvmf_volume seam = volume_seam(bed->volume);
        const struct nvmf_volume_job job = {
            .op = NVMF_VOLUME_CREATE, .size_bytes = 5 << 20, .block_shift = 9};
        struct nvmf_volume_ns ns;

        memset(bed->medium, 0xee, MEDIUM_BYTES);
        bed->writes = 0;
        start_drive();
        start_job(NVMF_VOLUME_DELETE, 1, 0);
        for (unsigned int i = 0; i < cut; i++) {
            if (bed->jobs_done != 0 && bed->jobs_done % 2 == 1) {
                seam.start(seam.ctx, &job);
                bed->jobs_done++;
            }
            if (bed->op_count != 0 && i % 2 != 0) {
                complete_op();
            }
            (void)volume_step(bed->volume);
        }
        bed->jobs_done = 0;
        start_drive();
        /* Either the old namespace is there, or a new one is empty. */
        if (bed->writes == 0) {
            assert_true(seam.describe(seam.ctx, 1, &ns));
            continue;
        }
        if (!seam.describe(seam.ctx, 1, &ns)) {
            assert_int_equal(create_ns(5, 9), 1);
        }
        run_all();
        assert_true(is_zero(bed->medium, 5 << 20));
        bed->jobs_done = 0;
    }
}

static void test_a_format_goes_on_after_a_power_cut(void **state)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    struct nvmf_volume_ns ns;

    (void)state;
    start_job(NVMF_VOLUME_FORMAT, 1, 12);
    assert_true(volume_step(bed->volume));
    start_drive(); /* the erasure was not done */
    assert_true(seam.describe(seam.ctx, 1, &ns));
    assert_true(ns.is_erasing);
    assert_false(is_zero(bed->medium, MEDIUM_BYTES));
    /* A command that comes meanwhile waits. */
    start_job(NVMF_VOLUME_DELETE, 1, 0);
    assert_int_equal(bed->jobs_done, 0);
    run_all();
    assert_int_equal(bed->changed, 1);
    assert_int_equal(bed->jobs_done, 1);
    assert_true(is_zero(bed->medium, MEDIUM_BYTES));
    assert_false(seam.describe(seam.ctx, 1, &ns));
}

static void test_a_format_changes_block_size_and_erases(void **state)
{
    struct media_geometry geometry;
    uint32_t erasing;

    (void)state;
    start_job(NVMF_VOLUME_FORMAT, 1, 12);
    run_all();
    assert_int_equal(bed->result, NVMF_VOLUME_OK);
    volume_geometry(bed->volume, 0, &geometry);
    assert_int_equal(geometry.block_shift, 12);
    assert_int_equal(geometry.size_blocks, MEDIUM_BYTES / 4096);
    assert_true(is_zero(bed->medium, MEDIUM_BYTES));
    erasing = bed->writes;
    assert_int_equal(erasing, 2); /* begun, ended */
}

/* The record of a namespace without a block would not be read again, and with
 * it the drive would lose all namespaces. */
static void test_no_format_leaves_a_namespace_without_a_block(void **state)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    const struct nvmf_volume_job job = {
        .op = NVMF_VOLUME_CREATE, .size_bytes = 7 * 512, .block_shift = 9};
    struct nvmf_volume_ns ns;

    (void)state;
    delete_ns(1);
    seam.start(seam.ctx, &job);
    run_all();
    assert_int_equal(bed->result, NVMF_VOLUME_OK);
    assert_int_equal(create_ns(1, 9), 2);
    start_job(NVMF_VOLUME_FORMAT, 1, 12);
    run_all();
    assert_int_equal(bed->result, NVMF_VOLUME_FAILED);
    start_drive();
    assert_true(seam.describe(seam.ctx, 1, &ns));
    assert_true(seam.describe(seam.ctx, 2, &ns));
}

static void test_a_change_that_cannot_be_saved_changes_nothing(void **state)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    struct nvmf_volume_host host = {"a", 1};
    struct nvmf_volume_ns ns;

    (void)state;
    bed->is_flash_broken = true;
    start_job(NVMF_VOLUME_DELETE, 1, 0);
    run_all();
    assert_int_equal(bed->result, NVMF_VOLUME_FAILED);
    assert_true(seam.describe(seam.ctx, 1, &ns));
    assert_int_equal(seam.attach(seam.ctx, 1, &host, 1, false),
                     NVMF_VOLUME_FAILED);
    assert_true(seam.is_attached(seam.ctx, 1, "a", 1));
    assert_int_equal(seam.protect(seam.ctx, 1, NVMF_PROTECTION_ON),
                     NVMF_VOLUME_FAILED);
    assert_true(seam.describe(seam.ctx, 1, &ns));
    assert_int_equal(ns.protection, NVMF_PROTECTION_NONE);
}

static void test_protection_until_power_cycle_survives_a_reset(void **state)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    struct nvmf_volume_ns ns;

    (void)state;
    assert_int_equal(
        seam.protect(seam.ctx, 1, NVMF_PROTECTION_UNTIL_POWER_CYCLE),
        NVMF_VOLUME_OK);
    bed->holds_power_on = true;
    start_drive();
    assert_true(seam.describe(seam.ctx, 1, &ns));
    assert_int_equal(ns.protection, NVMF_PROTECTION_UNTIL_POWER_CYCLE);
    bed->holds_power_on = false;
    start_drive();
    assert_true(seam.describe(seam.ctx, 1, &ns));
    assert_int_equal(ns.protection, NVMF_PROTECTION_NONE);
    assert_int_equal(seam.protect(seam.ctx, 1, NVMF_PROTECTION_ON),
                     NVMF_VOLUME_OK);
    start_drive();
    assert_true(seam.describe(seam.ctx, 1, &ns));
    assert_int_equal(ns.protection, NVMF_PROTECTION_ON);
}

/* A later reset, with power on, must not protect the namespace again. */
static void test_a_power_cycle_ends_that_protection_for_good(void **state)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    struct nvmf_volume_ns ns;

    (void)state;
    assert_int_equal(
        seam.protect(seam.ctx, 1, NVMF_PROTECTION_UNTIL_POWER_CYCLE),
        NVMF_VOLUME_OK);
    start_drive();
    bed->holds_power_on = true;
    start_drive();
    assert_true(seam.describe(seam.ctx, 1, &ns));
    assert_int_equal(ns.protection, NVMF_PROTECTION_NONE);
}

static void test_no_identifier_is_used_twice_when_records_are_lost(void **state)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    struct nvmf_volume_ns ns[4];

    (void)state;
    assert_true(seam.describe(seam.ctx, 1, &ns[0]));
    delete_ns(1);
    assert_int_equal(create_ns(1, 9), 1);
    assert_true(seam.describe(seam.ctx, 1, &ns[1]));
    /* Flash has the record of before, because the newest one is lost. */
    delete_ns(1);
    bed->volume->table.creations--;
    bed->record_len = volume_record_emit(&bed->volume->table, bed->record);
    bed->has_older_record = true;
    start_drive();
    assert_int_equal(create_ns(1, 9), 1);
    assert_true(seam.describe(seam.ctx, 1, &ns[2]));
    /* All records are lost. */
    bed->has_older_record = false;
    bed->record[20]++;
    start_drive();
    assert_int_equal(create_ns(1, 9), 1);
    assert_true(seam.describe(seam.ctx, 1, &ns[3]));
    for (size_t i = 0; i < ARRAY_LEN(ns); i++) {
        for (size_t k = 0; k < i; k++) {
            assert_memory_not_equal(ns[i].uuid, ns[k].uuid, 16);
        }
    }
}

/*
 * Flash has the record of before, because the newest one is lost.  It has
 * namespace 1 for all hosts, namespace 2 for host "a", and a Format of 3.
 */
static void start_with_older_table(void)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    struct nvmf_volume_host host = {"a", 1};

    bed->plan = (struct volume_plan){3, 2, VOLUME_SHIFT_512};
    bed->writes = 0;
    start_drive();
    bed->volume->table.ns[1].is_for_all = false;
    assert_int_equal(seam.attach(seam.ctx, 2, &host, 1, true), NVMF_VOLUME_OK);
    bed->status = MEDIA_WRITE_ERROR;
    start_job(NVMF_VOLUME_FORMAT, 3, 12);
    run_all();
    bed->status = MEDIA_OK;
    memset(bed->medium, 0xee, MEDIUM_BYTES);
    bed->has_older_record = true;
    start_drive();
}

static void expect_closed(void)
{
    struct nvmf_volume seam = volume_seam(bed->volume);

    for (uint32_t nsid = 1; nsid <= 3; nsid++) {
        struct nvmf_volume_ns ns;
        struct media_geometry geometry;

        assert_true(seam.describe(seam.ctx, nsid, &ns));
        volume_geometry(bed->volume, nsid - 1, &geometry);
        assert_int_equal(ns.protection, NVMF_PROTECTION_ON);
        assert_true(geometry.is_read_only);
        assert_false(seam.is_attached(seam.ctx, nsid, "a", 1));
        assert_false(seam.is_attached(seam.ctx, nsid, "b", 1));
    }
}

/* At each start, also with the power on, until something is changed. */
static void test_an_older_table_gives_no_host_its_namespaces(void **state)
{
    uint32_t writes;

    (void)state;
    start_with_older_table();
    writes = bed->writes;
    for (unsigned int i = 0; i < 3; i++) {
        bed->holds_power_on = i == 1;
        start_drive();
        run_all();
        expect_closed();
    }
    assert_int_equal(bed->writes, writes);
    assert_int_equal(bed->changed, 0);
    for (size_t i = 0; i < MEDIUM_BYTES; i++) {
        assert_int_equal(bed->medium[i], 0xee);
    }
}

/* What a host attaches stays attached, protected until it ends that; the others
 * stay closed when the table is no older one any more. */
static void test_a_host_opens_namespaces_of_an_older_table(void **state)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    struct nvmf_volume_host host = {"b", 1};
    struct nvmf_volume_ns ns;

    (void)state;
    start_with_older_table();
    assert_int_equal(seam.attach(seam.ctx, 1, &host, 1, true), NVMF_VOLUME_OK);
    bed->has_older_record = false;
    start_drive();
    run_all();
    assert_true(seam.is_attached(seam.ctx, 1, "b", 1));
    assert_false(seam.is_attached(seam.ctx, 1, "a", 1));
    assert_false(seam.is_attached(seam.ctx, 2, "a", 1));
    for (uint32_t nsid = 1; nsid <= 3; nsid++) {
        assert_true(seam.describe(seam.ctx, nsid, &ns));
        assert_int_equal(ns.protection, NVMF_PROTECTION_ON);
        assert_int_equal(ns.has_failed, nsid == 3);
    }
    assert_int_equal(bed->changed, 0);
    assert_int_equal(seam.protect(seam.ctx, 1, NVMF_PROTECTION_NONE),
                     NVMF_VOLUME_OK);
    assert_true(seam.describe(seam.ctx, 1, &ns));
    assert_int_equal(ns.protection, NVMF_PROTECTION_NONE);
}

/* Space that the older table has as clean may hold a lost namespace's data. */
static void test_no_namespace_shows_data_of_one_that_is_lost(void **state)
{
    uint8_t bytes[512];
    uint32_t nsid;

    (void)state;
    start_with_older_table();
    nsid = create_ns(2, 9);
    assert_int_equal(nsid, 4);
    assert_int_equal(read_status(nsid, 0, 1, bytes), MEDIA_OK);
    assert_true(is_zero(bytes, sizeof(bytes)));
}

/*
 * The medium is shorter at the start at which the loss is seen, and a host
 * changes the table then.  A namespace of the longer medium is made later.
 */
static void expect_space_beyond_the_end_is_erased(void)
{
    uint8_t bytes[512];
    uint32_t nsid;

    bed->is_short = true;
    start_drive();
    assert_int_not_equal(create_ns(1, 9), NO_NSID);
    bed->has_older_record = bed->has_lost_table = bed->is_short = false;
    start_drive();
    memset(bed->medium + MEDIUM_BYTES / 4, 0xee, MEDIUM_BYTES / 4 * 3);
    nsid = create_ns(4, 9);
    assert_int_not_equal(nsid, NO_NSID);
    assert_int_equal(read_status(nsid, 3 * BLOCKS_MIB, 1, bytes), MEDIA_OK);
    assert_true(is_zero(bytes, sizeof(bytes)));
}

static void test_a_lost_table_dirties_space_beyond_the_end_of_the_medium(
    void **state)
{
    (void)state;
    bed->plan = (struct volume_plan){1, 1, VOLUME_SHIFT_512};
    bed->writes = 0;
    start_drive();
    bed->has_older_record = true;
    expect_space_beyond_the_end_is_erased();
    bed->has_lost_table = true;
    expect_space_beyond_the_end_is_erased();
}

static void test_a_format_that_the_medium_fails_can_be_repeated(void **state)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    struct nvmf_volume_ns ns;

    (void)state;
    start_job(NVMF_VOLUME_FORMAT, 1, 12);
    assert_true(volume_step(bed->volume));
    assert_true(seam.describe(seam.ctx, 1, &ns));
    assert_true(ns.is_erasing);
    assert_false(ns.has_failed);
    bed->status = MEDIA_WRITE_ERROR;
    run_all();
    assert_int_equal(bed->result, NVMF_VOLUME_FAILED);
    assert_true(seam.describe(seam.ctx, 1, &ns));
    assert_true(ns.is_erasing && ns.has_failed);
    bed->status = MEDIA_OK;
    start_job(NVMF_VOLUME_FORMAT, 1, 9);
    run_all();
    assert_int_equal(bed->result, NVMF_VOLUME_OK);
    assert_true(seam.describe(seam.ctx, 1, &ns));
    assert_false(ns.is_erasing || ns.has_failed);
    assert_true(is_zero(bed->medium, MEDIUM_BYTES));
}

static void test_every_interrupted_format_goes_on(void **state)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    struct nvmf_volume_ns ns;

    (void)state;
    bed->plan = (struct volume_plan){3, 2, VOLUME_SHIFT_512};
    start_drive();
    bed->status = MEDIA_WRITE_ERROR;
    for (uint32_t nsid = 1; nsid <= 3; nsid++) {
        start_job(NVMF_VOLUME_FORMAT, nsid, 12);
        run_all();
        assert_int_equal(bed->result, NVMF_VOLUME_FAILED);
    }
    bed->status = MEDIA_OK;
    start_drive();
    run_all();
    assert_int_equal(bed->changed, 3);
    for (uint32_t nsid = 1; nsid <= 3; nsid++) {
        assert_true(seam.describe(seam.ctx, nsid, &ns));
        assert_false(ns.is_erasing);
    }
}

/* A change that is begun with the last write that is allowed can be ended. */
static void test_a_format_ends_although_the_table_was_written_often(
    void **state)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    struct nvmf_volume_ns ns;

    (void)state;
    bed->volume->writes = VOLUME_WRITES_FREE - 1;
    start_job(NVMF_VOLUME_FORMAT, 1, 12);
    run_all();
    assert_int_equal(bed->result, NVMF_VOLUME_OK);
    assert_true(seam.describe(seam.ctx, 1, &ns));
    assert_false(ns.is_erasing);
    start_job(NVMF_VOLUME_FORMAT, 1, 9);
    run_all();
    assert_int_equal(bed->result, NVMF_VOLUME_TOO_OFTEN);
}

static void test_a_damaged_table_leaves_the_data_until_a_creation(void **state)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    struct nvmf_volume_ns ns;

    (void)state;
    delete_ns(1);
    assert_int_equal(create_ns(3, 9), 1);
    memset(bed->medium, 0xee, MEDIUM_BYTES);
    bed->record[20]++;
    start_drive();
    assert_false(seam.describe(seam.ctx, 1, &ns));
    run_all();
    assert_false(is_zero(bed->medium, 512));
    assert_int_equal(create_ns(3, 9), 1);
    assert_true(is_zero(bed->medium, MEDIUM_BYTES));
}

static void test_changes_are_limited_to_spare_the_flash(void **state)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    struct nvmf_volume_host host = {"a", 1};

    (void)state;
    for (uint32_t i = 0; i < VOLUME_WRITES_FREE; i++) {
        assert_int_equal(seam.attach(seam.ctx, 1, &host, 1, i % 2 != 0),
                         NVMF_VOLUME_OK);
    }
    assert_int_equal(seam.attach(seam.ctx, 1, &host, 1, false),
                     NVMF_VOLUME_TOO_OFTEN);
    assert_true(seam.is_attached(seam.ctx, 1, "a", 1));
}

static unsigned int attach_until_refused(uint32_t by)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    struct nvmf_volume_host host = {"a", 1};
    unsigned int changes = 0;

    bed->host = by;
    while (seam.attach(seam.ctx, 1, &host, 1,
                       !seam.is_attached(seam.ctx, 1, "a", 1)) ==
           NVMF_VOLUME_OK) {
        changes++;
    }
    return changes;
}

static void test_a_noisy_host_leaves_others_their_changes(void **state)
{
    (void)state;
    bed->host = 1;
    start_drive();
    assert_int_equal(attach_until_refused(1), VOLUME_WRITES_FREE / 2);
    assert_int_equal(attach_until_refused(2), VOLUME_WRITES_FREE / 4);
    assert_in_range(attach_until_refused(3), VOLUME_WRITES_FREE / 8 - 1,
                    VOLUME_WRITES_FREE / 8 + 1);
}

static unsigned int create_and_delete_until_refused(uint32_t by)
{
    struct nvmf_volume seam = volume_seam(bed->volume);
    unsigned int jobs = 0;

    for (bed->result = NVMF_VOLUME_OK; bed->result == NVMF_VOLUME_OK; jobs++) {
        const struct nvmf_volume_job job = {
            .op = jobs % 2 == 0 ? NVMF_VOLUME_CREATE : NVMF_VOLUME_DELETE,
            .nsid = bed->nsid,
            .size_bytes = 1 << 20,
            .block_shift = 9,
            .host = by};

        seam.start(seam.ctx, &job);
        run_all();
    }
    assert_int_equal(bed->result, NVMF_VOLUME_TOO_OFTEN);
    return jobs - 1;
}

/* The table is written later than the command of a job was executed. */
static void test_a_job_counts_for_the_host_whose_it_is(void **state)
{
    (void)state;
    bed->host = 1;
    start_drive();
    delete_ns(1);
    bed->host = 0; /* no command is executed when jobs go on */
    assert_in_range(create_and_delete_until_refused(1),
                    VOLUME_WRITES_FREE / 2 - 2, VOLUME_WRITES_FREE / 2);
    assert_in_range(create_and_delete_until_refused(2),
                    VOLUME_WRITES_FREE / 4 - 2, VOLUME_WRITES_FREE / 4);
}

/* The end of a Format is written, too, and counts for the same host. */
static void test_a_format_counts_for_its_two_writes(void **state)
{
    struct nvmf_volume seam;
    const struct nvmf_volume_job job = {
        .op = NVMF_VOLUME_FORMAT, .nsid = 1, .block_shift = 9, .host = 1};
    unsigned int formats = 0;

    (void)state;
    bed->host = 1;
    start_drive();
    seam = volume_seam(bed->volume);
    for (bed->result = NVMF_VOLUME_OK; bed->result == NVMF_VOLUME_OK;
         formats++) {
        seam.start(seam.ctx, &job);
        run_all();
    }
    assert_int_equal(bed->result, NVMF_VOLUME_TOO_OFTEN);
    assert_in_range(formats - 1, VOLUME_WRITES_FREE / 4 - 2,
                    VOLUME_WRITES_FREE / 4);
}

/* The end of a Format that goes on after a restart counts for nobody: its host
 * has paid for it, and no other one has anything to do with it. */
static void test_a_format_that_goes_on_counts_for_its_host_only(void **state)
{
    const struct nvmf_volume_job job = {
        .op = NVMF_VOLUME_FORMAT, .nsid = 1, .block_shift = 12, .host = 7};
    const struct write_shares *shares = volume_write_shares(bed->volume);
    struct nvmf_volume seam = volume_seam(bed->volume);
    uint8_t kept[WRITE_SHARES_LEN];
    uint32_t writes;

    (void)state;
    seam.start(seam.ctx, &job);
    assert_true(volume_step(bed->volume));
    assert_int_equal(shares->of[0].host, 7);
    assert_int_equal(shares->of[0].used, 2);
    write_shares_emit(shares, kept);
    start_drive();
    write_shares_parse(volume_write_shares(bed->volume), kept);
    writes = bed->writes;
    run_all();
    assert_int_equal(bed->changed, 1); /* It has ended, ... */
    assert_int_equal(bed->writes, writes + 1);
    assert_int_equal(shares->of[0].host, 7);
    assert_int_equal(shares->of[0].used, 2); /* ... for which it has paid. */
    for (unsigned int i = 1; i < WRITE_SHARES_HOSTS; i++) {
        assert_int_equal(shares->of[i].used, 0);
    }
}

TEST_FIXTURE(setup, teardown)
