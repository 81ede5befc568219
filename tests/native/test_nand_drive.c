/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole drive on a NAND array: what hosts have written is there, also after
 * garbage collection and power cuts, and what happens while the array is being
 * read, cannot be read, or cannot be used.
 */
#include <errno.h>
#include <stdlib.h>

#include "bed_fixture.h"

#include "storage/ftl/state.h"
#include "lib/bytes.h"
#include "hw-model/fault/fault_nand.h"
#include "lib/random.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
#include "tests/nand_faults.h"
#include "tests/test_fixture.h"

#define MS_NS UINT64_C(1000000)

enum {
    UNIT_BLOCKS = 8,
    UNITS = 1024, /* of the namespace that the random tests use */
    VERSIONS = 8, /* that a unit may have after a power cut */
    DEALLOCATE = 1 << 25,
    BLOCK_ERASE = 2,
    OVERWRITE = 3,
    KEEP_BLOCKS = 1 << 9,       /* No-Deallocate After Sanitize */
    METADATA_EXTENDED = 1 << 4, /* Format: MSET */
    WARNING_RELIABILITY = 0x04,
};

static const struct bed nand_bed = {.mtu_bytes = 1500, .has_nand = true};

static int setup_nand(void **state)
{
    (void)state;
    bed_init_like(&bed, &nand_bed);
    bed_connect(&bed, 0, 1, 64);
    return 0;
}

static void cut_power(void)
{
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
}

static uint16_t run_io(uint32_t nsid, uint8_t opcode, uint64_t lba,
                       uint32_t blocks, bool fua)
{
    const struct host_io io = {
        .qid = 1,
        .opcode = opcode,
        .fua = fua,
        .kind = HOST_DATA_KEYED,
        .nsid = nsid,
        .lba = lba,
        .blocks = blocks,
        .len_bytes = blocks * BED_BLOCK,
    };

    return host_io(&bed.host->host, &io);
}

/* Data that also differs from namespace to namespace. */
static void fill_data(uint8_t *data, uint32_t nsid, uint64_t lba,
                      uint32_t blocks, uint32_t version)
{
    bed_fill(data, lba, blocks, version * 1000 + nsid);
}

static void write_blocks(uint32_t nsid, uint64_t lba, uint32_t blocks, bool fua,
                         uint32_t version)
{
    fill_data(bed.host->data, nsid, lba, blocks, version);
    assert_int_equal(run_io(nsid, NVM_WRITE, lba, blocks, fua), 0);
}

static void expect_blocks(uint32_t nsid, uint64_t lba, uint32_t blocks,
                          uint32_t version)
{
    static uint8_t expected[NVMF_MAX_TRANSFER];

    memset(bed.host->data, 0xa5, (size_t)blocks * BED_BLOCK);
    assert_int_equal(run_io(nsid, NVM_READ, lba, blocks, false), 0);
    memset(expected, 0, (size_t)blocks * BED_BLOCK);
    if (version != 0) {
        fill_data(expected, nsid, lba, blocks, version);
    }
    assert_memory_equal(bed.host->data, expected, (size_t)blocks * BED_BLOCK);
}

static uint16_t send_command(uint16_t qid, const struct nvme_sqe *sqe)
{
    return host_command(&bed.host->host, qid, sqe, NULL, 0) & NVME_SC_MASK;
}

static void zero_blocks(uint32_t nsid, uint64_t lba, uint32_t blocks,
                        uint32_t flags)
{
    const struct nvme_sqe sqe = {
        .opcode = NVM_WRITE_ZEROES,
        .nsid = nsid,
        .cdw10 = (uint32_t)lba,
        .cdw12 = (blocks - 1) | flags,
    };

    assert_int_equal(send_command(1, &sqe), 0);
}

static const struct ftl_counters *drive_counters(void)
{
    return ftl_counters(bed.drive->drive.nand.ftl);
}

static void expect_log(const char *text)
{
    native_world_pass(&bed.world, MS_NS);
    if (strstr(machine_console(&bed.drive->machine), text) == NULL) {
        fail_msg("the log has no \"%s\":\n%s", text,
                 machine_console(&bed.drive->machine));
    }
}

static void read_log(uint8_t lid, uint8_t *data, uint32_t len)
{
    assert_int_equal(host_get_log(&bed.host->host, lid, 0, data, len), 0);
}

/* The next event of this kind fails, in whatever place. */
static void inject_fault(enum nand_op_kind kind, enum nand_effect effect)
{
    struct nand_injection injection = fault_anywhere(kind, effect);

    injection.trigger.times = 1;
    assert_true(nand_array_inject(bed.drive->machine.nand->array, &injection));
}

/* ---- Data. */

WITH_FIXTURE(setup_nand, teardown)
static void test_reads_give_what_was_written_last(void **state)
{
    (void)state;
    expect_blocks(1, 0, 256, 0);
    write_blocks(1, 3, 200, false, 1);
    expect_blocks(1, 3, 200, 1);
    write_blocks(1, 20, 9, true, 2);
    expect_blocks(1, 20, 9, 2);
    expect_blocks(1, 3, 17, 1);
    expect_blocks(1, 29, 174, 1);
    expect_blocks(1, 0, 3, 0);
    zero_blocks(1, 30, 16, DEALLOCATE);
    zero_blocks(1, 60, 1, 0);
    expect_blocks(1, 29, 1, 1);
    expect_blocks(1, 30, 16, 0);
    expect_blocks(1, 46, 14, 1);
    expect_blocks(1, 60, 1, 0);
    assert_int_equal(bed_flush(&bed, 1), 0);
    assert_true(drive_counters()->rows > 0);
    expect_blocks(1, 20, 9, 2);
    expect_blocks(1, 30, 16, 0);
}

/* Commands that the NAND controller has been given. */
static uint32_t count_commands(void)
{
    return bed.drive->drive.nand.nand.queue.cmd_pi;
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_read_takes_one_command_for_all_units_of_a_row(void **state)
{
    uint32_t before;

    (void)state;
    /* 32 units, which are in two rows if they do not begin with one. */
    write_blocks(1, 0, 256, true, 1);
    before = count_commands();
    expect_blocks(1, 0, 256, 1);
    assert_in_range(count_commands() - before, 1, 2);
    expect_blocks(1, 3, 200, 1);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_flushed_data_is_there_after_a_power_cut(void **state)
{
    (void)state;
    write_blocks(1, 5, 100, false, 1);
    zero_blocks(1, 40, 24, DEALLOCATE);
    assert_int_equal(bed_flush(&bed, 1), 0);
    write_blocks(1, 200, 1, true, 2);
    write_blocks(1, 300, 8, false, 3);
    cut_power();
    expect_blocks(1, 5, 35, 1);
    expect_blocks(1, 40, 24, 0);
    expect_blocks(1, 64, 41, 1);
    expect_blocks(1, 200, 1, 2);
    expect_blocks(1, 300, 8, 0);
    expect_log("ftl: ready after");
}

WITH_FIXTURE(setup_nand, teardown)
static void test_without_a_volatile_cache_writes_are_durable(void **state)
{
    (void)state;
    assert_int_equal(
        host_set_features(&bed.host->host, FEATURE_VOLATILE_WRITE_CACHE, 0), 0);
    write_blocks(1, 300, 8, false, 3);
    cut_power();
    expect_blocks(1, 300, 8, 3);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_an_orderly_shutdown_loses_nothing(void **state)
{
    (void)state;
    write_blocks(1, 300, 8, false, 3);
    (void)type_line("shutdown\r");
    expect_log("ok: the drive can be switched off now");
    cut_power();
    expect_blocks(1, 300, 8, 3);
}

/* An operation that the test has submitted instead of the target. */
static void ignore_end(struct media_owner *owner, enum media_status status)
{
    (void)owner;
    (void)status;
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_shutdown_with_all_operations_in_progress_loses_nothing(
    void **state)
{
    static uint8_t data[BED_BLOCK];
    static struct media_owner ignored = {ignore_end};
    const struct nvmf_piece piece = {.ptr = data, .len_bytes = BED_BLOCK};
    const struct media_io io = {.op = MEDIA_READ,
                                .count_blocks = 1,
                                .pieces = &piece,
                                .piece_count = 1,
                                .owner = &ignored};
    struct nand_medium *medium = &bed.drive->drive.nand;

    (void)state;
    write_blocks(1, 64, 8, true, 1);
    write_blocks(1, 300, 8, false, 3);
    while (nand_medium_submit(medium, &io)) {
    }
    drive_stop(&bed.drive->drive);
    cut_power();
    expect_blocks(1, 300, 8, 3);
}

/* ---- An orderly stop while garbage is collected. */

static const struct bed parity_bed = {
    .mtu_bytes = 1500, .has_nand = true, .nand_dies = 2, .nand_blocks = 24};

static int setup_parity(void **state)
{
    (void)state;
    bed_init_like(&bed, &parity_bed);
    bed_connect(&bed, 0, 1, 64);
    return 0;
}

static const struct native_node_ops *stopped_ops;

/* Time passes while the drive waits outside of its main loop. */
static void relax_for_a_while(void *ctx)
{
    stopped_ops->relax(ctx);
    bed.world.now_ns += MS_NS / 100;
}

/* @return how long it has taken in virtual time */
static uint64_t stop_medium_ns(void)
{
    struct native_node *node = bed.world.nodes;
    struct native_node_ops ops = *node->ops;
    uint64_t start_ns = bed.world.now_ns;

    stopped_ops = node->ops;
    ops.relax = relax_for_a_while;
    node->ops = &ops;
    (void)nand_medium_stop(&bed.drive->drive.nand);
    node->ops = stopped_ops;
    return bed.world.now_ns - start_ns;
}

/* When the drive has completed its stripes, garbage collection may begin
 * another one.  If nobody completed this one, the drive would wait for it. */
WITH_FIXTURE(setup_parity, teardown)
static void test_a_shutdown_does_not_wait_for_garbage_collection(void **state)
{
    const struct ftl *ftl = bed.drive->drive.nand.ftl;
    uint32_t chunks = (uint32_t)(bed.drive->drive.medium.size_blocks / 128);
    uint64_t random = 1;
    uint32_t collecting = 0;

    (void)state;
    for (uint32_t i = 0; i < chunks; i++) {
        write_blocks(1, i * 128, 128, false, 1);
    }
    for (uint32_t i = 0; i < 200; i++) {
        for (uint64_t n = random_next(&random) % 20; n != 0; n--) {
            write_blocks(1, (uint32_t)(random_next(&random) % chunks) * 128, 8,
                         false, i);
        }
        collecting += ftl->collection.victim != FTL_NOWHERE;
        assert_in_range(stop_medium_ns(), 0, 100 * MS_NS);
        assert_true(ftl_stripes_are_complete(ftl));
        assert_true(ftl_is_stopped(ftl));
    }
    assert_in_range(collecting, 1, 200);
    /* Without a checkpoint, the next start would have to read all blocks. */
    assert_in_range(ftl_counters(ftl)->checkpoints, 100, 300);
}

static unsigned int writes_left;

/* Submit a write when another one has ended, as the target does for a command
 * that waits for a free operation. */
static void submit_next_write(struct media_owner *owner,
                              enum media_status status)
{
    static uint8_t data[4096];
    static struct nvmf_piece piece = {.ptr = data, .len_bytes = sizeof(data)};
    const struct media_io io = {.op = MEDIA_WRITE,
                                .first_lba = writes_left * 8,
                                .count_blocks = 8,
                                .pieces = &piece,
                                .piece_count = 1,
                                .owner = owner};

    assert_int_equal(status, MEDIA_OK);
    if (writes_left != 0) {
        writes_left--;
        assert_true(nand_medium_submit(&bed.drive->drive.nand, &io));
    }
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_shutdown_flushes_writes_that_begin_meanwhile(void **state)
{
    struct nand_medium *medium = &bed.drive->drive.nand;
    struct media_owner owner = {submit_next_write};

    (void)state;
    write_blocks(1, 300, 8, false, 1); /* The mount has ended then. */
    writes_left = 5;
    submit_next_write(&owner, MEDIA_OK);
    assert_true(nand_medium_stop(medium));
    assert_int_equal(writes_left, 0);
    assert_true(ftl_is_flushed(medium->ftl));
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_formatted_namespace_reads_as_zeroes(void **state)
{
    const struct nvme_sqe format = {.opcode = ADMIN_FORMAT_NVM, .nsid = 1};

    (void)state;
    write_blocks(1, 5, 100, true, 1);
    assert_int_equal(send_command(0, &format), 0);
    expect_blocks(1, 0, 128, 0);
    cut_power();
    expect_blocks(1, 0, 128, 0);
}

static const struct bed large_bed = {
    .mtu_bytes = 1500, .has_nand = true, .nand_blocks = 80};

static int setup_large(void **state)
{
    (void)state;
    bed_init_like(&bed, &large_bed);
    bed_connect(&bed, 0, 1, 64);
    return 0;
}

/* The drive does not sleep before it has trimmed all of it.  Computing takes no
 * time here. */
WITH_FIXTURE(setup_large, teardown)
static void test_a_large_namespace_is_formatted_without_a_pause(void **state)
{
    const struct nvme_sqe format = {.opcode = ADMIN_FORMAT_NVM, .nsid = 1};
    uint64_t start_ns = bed.world.now_ns;

    (void)state;
    assert_true(bed.drive->drive.medium.size_blocks > 32 * 2048);
    assert_int_equal(send_command(0, &format), 0);
    assert_true(bed.world.now_ns - start_ns < MS_NS);
}

static const struct volume_plan two_namespaces = {
    .count = 2, .size_mib = 4, .block_shift = VOLUME_SHIFT_512};
static const struct bed two_bed = {
    .mtu_bytes = 1500, .has_nand = true, .plan = &two_namespaces};

static int setup_two(void **state)
{
    (void)state;
    bed_init_like(&bed, &two_bed);
    bed_connect(&bed, 0, 1, 64);
    return 0;
}

WITH_FIXTURE(setup_two, teardown)
static void test_two_namespaces_do_not_share_blocks(void **state)
{
    uint64_t last = UNITS * UNIT_BLOCKS - 16;

    (void)state;
    for (uint32_t nsid = 1; nsid <= 2; nsid++) {
        write_blocks(nsid, 0, 256, false, 1);
        write_blocks(nsid, last, 16, false, 2);
    }
    zero_blocks(2, 8, 8, DEALLOCATE);
    assert_int_equal(bed_flush(&bed, 1), 0);
    for (unsigned int cut = 0; cut < 2; cut++) {
        expect_blocks(1, 0, 256, 1);
        expect_blocks(2, 0, 8, 1);
        expect_blocks(2, 8, 8, 0);
        expect_blocks(2, 16, 240, 1);
        expect_blocks(1, last, 16, 2);
        expect_blocks(2, last, 16, 2);
        cut_power();
    }
}

/* ---- Random writes, trims, flushes and power cuts. */

struct oracle {
    uint32_t next_version;
    /* What each unit may have: the last durable version and all later ones, 0
     * for zeroes. */
    struct oracle_unit {
        uint32_t count;
        uint32_t version[VERSIONS];
    } unit[UNITS];
};

static uint32_t newest_version(const struct oracle *oracle, uint32_t unit)
{
    return oracle->unit[unit].version[oracle->unit[unit].count - 1];
}

static void flush_all(struct oracle *oracle)
{
    assert_int_equal(bed_flush(&bed, 1), 0);
    for (uint32_t unit = 0; unit < UNITS; unit++) {
        oracle->unit[unit].version[0] = newest_version(oracle, unit);
        oracle->unit[unit].count = 1;
    }
}

/* Write or trim up to 16 units. */
static void change_units(struct oracle *oracle, uint64_t *random)
{
    uint32_t count = 1 + (uint32_t)(random_next(random) % 16);
    uint32_t first = (uint32_t)(random_next(random) % (UNITS - count));
    bool is_trim = random_next(random) % 8 == 0;
    uint32_t version = is_trim ? 0 : ++oracle->next_version;

    for (uint32_t unit = first; unit < first + count; unit++) {
        if (oracle->unit[unit].count == VERSIONS) {
            flush_all(oracle);
        }
    }
    if (is_trim) {
        zero_blocks(1, first * UNIT_BLOCKS, count * UNIT_BLOCKS, DEALLOCATE);
    } else {
        write_blocks(1, first * UNIT_BLOCKS, count * UNIT_BLOCKS, false,
                     version);
    }
    for (uint32_t unit = first; unit < first + count; unit++) {
        oracle->unit[unit].version[oracle->unit[unit].count++] = version;
    }
}

/* Take for granted what a unit has after a power cut, if it may have that. */
static void find_version(struct oracle *oracle, uint32_t unit)
{
    struct oracle_unit *known = &oracle->unit[unit];
    uint8_t expected[UNIT_BLOCKS * BED_BLOCK];

    assert_int_equal(
        run_io(1, NVM_READ, unit * UNIT_BLOCKS, UNIT_BLOCKS, false), 0);
    for (uint32_t i = known->count; i-- > 0;) {
        memset(expected, 0, sizeof(expected));
        if (known->version[i] != 0) {
            fill_data(expected, 1, unit * UNIT_BLOCKS, UNIT_BLOCKS,
                      known->version[i]);
        }
        if (memcmp(bed.host->data, expected, sizeof(expected)) == 0) {
            known->version[0] = known->version[i];
            known->count = 1;
            return;
        }
    }
    fail_msg("unit %u has none of its %u last versions", unit, known->count);
}

static void check_all(struct oracle *oracle)
{
    for (uint32_t unit = 0; unit < UNITS; unit++) {
        expect_blocks(1, unit * UNIT_BLOCKS, UNIT_BLOCKS,
                      newest_version(oracle, unit));
    }
}

static void run_random(unsigned int cuts, unsigned int changes)
{
    struct oracle *oracle = calloc(1, sizeof(*oracle));
    uint64_t random = 1;
    uint64_t erasures = 0;

    assert_non_null(oracle);
    for (uint32_t unit = 0; unit < UNITS; unit++) {
        oracle->unit[unit].count = 1;
    }
    for (unsigned int cut = 0; cut < cuts; cut++) {
        for (unsigned int i = 0; i < changes; i++) {
            change_units(oracle, &random);
            if (random_next(&random) % 32 == 0) {
                flush_all(oracle);
            }
        }
        check_all(oracle);
        erasures += drive_counters()->erasures;
        cut_power();
        for (uint32_t unit = 0; unit < UNITS; unit++) {
            find_version(oracle, unit);
        }
    }
    assert_true(erasures > 20);
    free(oracle);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_random_changes_survive_collection_and_power_cuts(void **state)
{
    (void)state;
    run_random(4, 800);
}

static const struct bed slow_bed = {
    .mtu_bytes = 1500, .has_nand = true, .nand_is_realtime = true};

static int setup_slow(void **state)
{
    (void)state;
    bed_init_like(&bed, &slow_bed);
    bed_connect(&bed, 0, 1, 64);
    return 0;
}

WITH_FIXTURE(setup_slow, teardown)
static void test_the_same_with_the_times_of_the_flash(void **state)
{
    (void)state;
    run_random(2, 800);
}

/* ---- Several hosts. */
enum { HOSTS = 3, DEPTH = 16, LOAD_BLOCKS = 64, LOAD_IOS = 400 };

struct load_slot {
    struct load *load;
    uint32_t offset; /* of its data in the host's memory */
    uint64_t lba;
    uint32_t version;
    bool is_busy, is_reading;
};

struct load {
    struct nvme_host *host;
    unsigned int done, failed;
    struct load_slot slot[DEPTH];
};

struct loads {
    struct load load[HOSTS];
};

static void load_done(void *ctx, const struct host_result *result)
{
    static uint8_t expected[LOAD_BLOCKS * BED_BLOCK];
    struct load_slot *slot = ctx;
    struct load *load = slot->load;

    slot->is_busy = false;
    load->done++;
    load->failed += result->is_lost || result->cqe.status != 0;
    if (slot->is_reading) {
        bed_fill(expected, slot->lba, LOAD_BLOCKS, slot->version);
        load->failed += memcmp(bed.host->data + slot->offset, expected,
                               sizeof(expected)) != 0;
    }
}

/* Write a slot's blocks and read them, in turns. */
static void start_slot(struct load *load, struct load_slot *slot)
{
    uint32_t len = LOAD_BLOCKS * BED_BLOCK;

    slot->is_reading = slot->version != 0 && !slot->is_reading;
    slot->is_busy = true;
    if (slot->is_reading) {
        memset(bed.host->data + slot->offset, 0xa5, len);
    } else {
        slot->version++;
        bed_fill(bed.host->data + slot->offset, slot->lba, LOAD_BLOCKS,
                 slot->version);
    }
    assert_true(host_io_submit(
        load->host, &(struct host_io){
                        .qid = 1,
                        .opcode = slot->is_reading ? NVM_READ : NVM_WRITE,
                        .fua = !slot->is_reading && slot->version % 8 == 0,
                        .kind = HOST_DATA_KEYED,
                        .nsid = 1,
                        .lba = slot->lba,
                        .blocks = LOAD_BLOCKS,
                        .offset = slot->offset,
                        .len_bytes = len,
                        .done = load_done,
                        .ctx = slot,
                    }));
    verbs_flush(&bed.host->net.verbs);
    bed.host->sleep.is_asleep = false;
}

static bool are_loads_done(void *ctx)
{
    struct loads *loads = ctx;
    bool is_done = true;

    for (unsigned int i = 0; i < HOSTS; i++) {
        struct load *load = &loads->load[i];

        for (unsigned int j = 0; j < DEPTH; j++) {
            if (!load->slot[j].is_busy && load->done < LOAD_IOS) {
                start_slot(load, &load->slot[j]);
            }
            is_done &= !load->slot[j].is_busy;
        }
    }
    return is_done;
}

WITH_FIXTURE(setup_nand, teardown)
static void test_several_hosts_have_many_commands_in_progress(void **state)
{
    struct loads *loads = calloc(1, sizeof(*loads));

    (void)state;
    assert_non_null(loads);
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct load *load = &loads->load[i];

        load->host = calloc(1, sizeof(*load->host));
        assert_non_null(load->host);
        bed_connect_more(&bed, load->host, 0, 1, 0);
        for (uint32_t j = 0; j < DEPTH; j++) {
            uint32_t number = i * DEPTH + j;

            load->slot[j] = (struct load_slot){
                .load = load,
                .offset = number * LOAD_BLOCKS * BED_BLOCK,
                /* Neighbours share a unit of the translation layer. */
                .lba = number * (LOAD_BLOCKS + 1),
            };
        }
    }
    assert_true(
        native_world_run(&bed.world, are_loads_done, loads, 60000 * MS_NS));
    for (unsigned int i = 0; i < HOSTS; i++) {
        assert_int_equal(loads->load[i].failed, 0);
        assert_true(loads->load[i].done >= LOAD_IOS);
        host_disconnect(loads->load[i].host);
        host_end(loads->load[i].host);
        free(loads->load[i].host);
    }
    assert_true(drive_counters()->erasures > 0);
    free(loads);
}

/* ---- While the array is being read, and when it cannot be read. */

static bool is_set(void *ctx)
{
    return *(const bool *)ctx;
}

static void note_end(void *ctx, const struct host_result *result)
{
    assert_false(result->is_lost);
    assert_int_equal(result->cqe.status, 0);
    *(bool *)ctx = true;
}

WITH_FIXTURE(setup_nand, teardown)
static void test_commands_wait_until_the_array_is_read(void **state)
{
    bool is_done[2] = {false, false};
    struct host_io io = {
        .qid = 1,
        .opcode = NVM_READ,
        .kind = HOST_DATA_KEYED,
        .nsid = 1,
        .lba = 8,
        .blocks = 8,
        .len_bytes = 8 * BED_BLOCK,
        .done = note_end,
        .ctx = &is_done[0],
    };

    (void)state;
    write_blocks(1, 8, 8, true, 1);
    bed.nand_is_held = true;
    cut_power();
    bed.nand_is_held = false;
    assert_true(host_io_submit(&bed.host->host, &io));
    io = (struct host_io){.qid = 1,
                          .opcode = NVM_FLUSH,
                          .kind = HOST_DATA_NONE,
                          .nsid = 1,
                          .done = note_end,
                          .ctx = &is_done[1]};
    assert_true(host_io_submit(&bed.host->host, &io));
    verbs_flush(&bed.host->net.verbs);
    bed.host->sleep.is_asleep = false;
    native_world_pass(&bed.world, 1000 * MS_NS);
    assert_false(is_done[0] || is_done[1]);
    bed.drive->machine.holds_flash = false;
    for (unsigned int i = 0; i < 2; i++) {
        assert_true(
            native_world_run(&bed.world, is_set, &is_done[i], 1000 * MS_NS));
    }
    expect_blocks(1, 8, 8, 1);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_an_array_that_cannot_be_read_is_reported(void **state)
{
    static uint8_t smart[LOG_SMART_LEN];

    (void)state;
    write_blocks(1, 8, 8, true, 1);
    bed.nand_is_held = true;
    cut_power();
    bed.nand.fail_reads = EIO;
    bed.drive->machine.holds_flash = false;
    assert_int_equal(run_io(1, NVM_READ, 8, 8, false) & NVME_SC_MASK,
                     NVME_SC_INTERNAL);
    assert_int_equal(run_io(1, NVM_WRITE, 8, 8, false) & NVME_SC_MASK,
                     NVME_SC_INTERNAL);
    assert_int_equal(bed_flush(&bed, 1) & NVME_SC_MASK, NVME_SC_INTERNAL);
    expect_log("ftl: the flash cannot be read");
    assert_int_equal(
        host_get_log(&bed.host->host, LOG_SMART, 0, smart, sizeof(smart)), 0);
    assert_int_equal(smart[SMART_CRITICAL_WARNING], WARNING_RELIABILITY);
    bed.nand.fail_reads = 0;
}

/* ---- What the drive says of itself. */

WITH_FIXTURE(setup_nand, teardown)
static void test_the_log_describes_the_array(void **state)
{
    (void)state;
    expect_log("nand: 2 channels, 1 dies each, 4 planes of 20 blocks of 192 "
               "KiB");
    expect_log("ftl: 11 MiB, 768 KiB of write buffer, ");
    assert_null(strstr(machine_console(&bed.drive->machine), "media:"));
}

/* What is written, so that it can be found in the array's raw bytes. */
static void fill_marks(uint8_t *data, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++) {
        data[i] = (uint8_t)("old contents of a host; "[i % 24]);
    }
}

/* Places of the array's storage that hold a piece of what was written. */
static unsigned int count_marks(void)
{
    static const char mark[] = "old contents of a host; old contents";
    const size_t len = sizeof(mark) - 1;
    const uint8_t *at = bed.nand.bytes;
    const uint8_t *end = at + bed.nand.size_bytes - len;
    unsigned int count = 0;

    while ((at = memchr(at, mark[0], (size_t)(end - at))) != NULL) {
        bool is_mark = memcmp(at, mark, len) == 0;

        count += is_mark;
        at += is_mark ? len : 1;
    }
    return count;
}

/* Write all blocks, then some again, so that garbage has been collected. */
static void write_marks(void)
{
    fill_marks(bed.host->data, 256 * BED_BLOCK);
    for (uint32_t i = 0; i < 60; i++) {
        assert_int_equal(run_io(1, NVM_WRITE, i % 40 * 256, 256, false), 0);
    }
    assert_int_equal(run_io(1, NVM_FLUSH, 0, 0, false), 0);
    assert_in_range(count_marks(), 1000, 1000000);
}

static uint16_t send_sanitize(uint32_t cdw10)
{
    const struct nvme_sqe sqe = {
        .opcode = ADMIN_SANITIZE, .cdw10 = cdw10, .cdw11 = 0x5a5a5a5a};

    return send_command(0, &sqe);
}

static bool is_sanitized(void *ctx)
{
    struct nvmf_sanitize_now now;

    (void)ctx;
    sanitize_read(&bed.drive->drive.sanitize, &now);
    return now.outcome != NVMF_SANITIZE_IN_PROGRESS;
}

static void await_sanitize(enum nvmf_sanitize_outcome outcome)
{
    struct nvmf_sanitize_now now;

    assert_true(
        native_world_run(&bed.world, is_sanitized, NULL, 100 * 1000 * MS_NS));
    sanitize_read(&bed.drive->drive.sanitize, &now);
    assert_int_equal(now.outcome, outcome);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_block_erase_leaves_no_byte_of_old_contents(void **state)
{
    static uint8_t identify[4096];

    (void)state;
    assert_int_equal(host_identify(&bed.host->host, 1, 0, identify), 0);
    assert_int_equal(get_le32(identify + ID_CTRL_SANICAP) & 7, 6);
    write_marks();
    assert_int_equal(send_sanitize(BLOCK_ERASE), 0);
    await_sanitize(NVMF_SANITIZE_DONE);
    assert_int_equal(count_marks(), 0);
    expect_blocks(1, 0, 256, 0);
    write_blocks(1, 0, 256, true, 1);
    cut_power();
    expect_blocks(1, 0, 256, 1);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_an_overwriting_reaches_spare_blocks_too(void **state)
{
    (void)state;
    write_marks();
    /* One pass, whose pattern stays. */
    assert_int_equal(send_sanitize(OVERWRITE | KEEP_BLOCKS | 1 << 4), 0);
    await_sanitize(NVMF_SANITIZE_DONE);
    assert_int_equal(count_marks(), 0);
    assert_int_equal(run_io(1, NVM_READ, 0, 256, false), 0);
    for (uint32_t i = 0; i < 256 * BED_BLOCK; i++) {
        assert_int_equal(bed.host->data[i], 0x5a);
    }
    write_marks();
    assert_int_equal(send_sanitize(OVERWRITE | 2 << 4), 0);
    await_sanitize(NVMF_SANITIZE_DONE);
    assert_int_equal(count_marks(), 0);
    expect_blocks(1, 0, 256, 0);
}

/* Whether the flash is being wiped, and so many blocks are erased. */
static bool has_erased(void *ctx)
{
    return ftl_state(bed.drive->drive.nand.ftl) == FTL_WIPING &&
           nand_counter_read(&bed.drive->drive.nand.nand,
                             NAND_COUNT_BLOCKS_ERASED) >=
               *(unsigned int *)ctx * 4;
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_sanitize_goes_on_after_power_cuts_in_the_middle(void **state)
{
    (void)state;
    write_marks();
    assert_int_equal(send_sanitize(BLOCK_ERASE), 0);
    for (unsigned int i = 1; i <= 12; i++) {
        assert_true(native_world_run(&bed.world, has_erased, &i, MS_NS * 1000));
        assert_false(is_sanitized(NULL));
        bed_power_cycle(&bed);
        host_vanish(&bed.host->host);
    }
    bed_connect(&bed, 0, 1, 64);
    await_sanitize(NVMF_SANITIZE_DONE);
    assert_int_equal(count_marks(), 0);
    expect_blocks(1, 0, 256, 0);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_block_that_has_failed_is_erased_and_stays_known(void **state)
{
    uint32_t failed;

    (void)state;
    inject_fault(NAND_OP_PROGRAM, NAND_EFFECT_FAIL);
    write_marks();
    inject_fault(NAND_OP_ERASE, NAND_EFFECT_FAIL);
    assert_int_equal(send_sanitize(BLOCK_ERASE), 0);
    await_sanitize(NVMF_SANITIZE_DONE);
    assert_int_equal(count_marks(), 0);
    failed = ftl_failed_planes(bed.drive->drive.nand.ftl);
    assert_in_range(failed, 1, 2);
    write_blocks(1, 0, 256, true, 1);
    cut_power();
    expect_blocks(1, 0, 256, 1);
    assert_int_equal(ftl_failed_planes(bed.drive->drive.nand.ftl), failed);
}

static bool has_reply(void *ctx)
{
    (void)ctx;
    return strchr(machine_reply(&bed.drive->machine), '\n') != NULL;
}

WITH_FIXTURE(setup_nand, teardown)
static void test_the_counters_show_what_the_array_does(void **state)
{
    const char *reply, *stack;

    (void)state;
    /* At its first start, the drive has written a page with its capacity. */
    write_blocks(1, 8, 80, true, 1);
    machine_request(&bed.drive->machine,
                    "{\"v\":1,\"id\":1,\"request\":\"counters\"}\n");
    assert_true(native_world_run(&bed.world, has_reply, NULL, 1000 * MS_NS));
    reply = machine_reply(&bed.drive->machine);
    assert_non_null(strstr(reply, "\"ftl\":{\"host-units\":10,\"rows\":1,"
                                  "\"units\":11,\"pad-units\":37,"));
    assert_non_null(strstr(reply, "\"units-programmed\":48,"));
    assert_non_null(strstr(reply, "\"media\":{\"reads\":0,"));
    /* Nothing of the reply has been cut off. */
    assert_non_null(strstr(reply, "\"restarts\":0}"));
    stack = strstr(reply, "\"stack\":{");
    assert_non_null(stack);
    assert_non_null(strstr(stack, "}}}"));
}

static void flag_block(uint32_t block, uint8_t flag)
{
    uint8_t *at = bed.nand.bytes + nand_layout_record(block);
    struct nand_record record;

    assert_true(nand_record_parse(&record, block, at));
    record.flags |= flag;
    nand_record_emit(&record, block, at);
}

/* Mark a block of the array as the factory does. */
static void mark_block(uint32_t block)
{
    flag_block(block, NAND_BLOCK_FACTORY_BAD);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_blocks_that_the_factory_marked_are_not_used(void **state)
{
    const struct nand_medium *medium;
    uint64_t blocks;

    (void)state;
    bed_power_off(&bed);
    host_vanish(&bed.host->host);
    /* Blocks have 20 numbers in each of 4 planes of 2 dies. */
    mark_block(0);
    mark_block(7);
    mark_block(3 * 20 + 7);
    mark_block(4 * 20 + 11);
    bed_power_on(&bed);
    bed_connect(&bed, 0, 1, 64);
    expect_log("nand: the factory marked 4 blocks as bad");
    medium = &bed.drive->drive.nand;
    blocks = medium->size_blocks / 256 * 256;
    for (uint32_t version = 1; version <= 2; version++) {
        for (uint64_t lba = 0; lba < blocks; lba += 256) {
            write_blocks(1, lba, 256, false, version);
        }
    }
    for (uint64_t lba = 0; lba < blocks; lba += 256) {
        expect_blocks(1, lba, 256, 2);
    }
    assert_int_equal(nand_counter_read(&medium->nand, NAND_COUNT_VIOLATIONS),
                     0);
    assert_int_equal(drive_counters()->program_errors, 0);
}

/* Replace the bed's drive by a new one that is made with this capacity; return
 * the capacity that it has. */
static uint64_t remake_with_capacity(uint64_t capacity_bytes)
{
    static struct bed like;

    like = nand_bed;
    like.capacity_bytes = capacity_bytes;
    bed_end(&bed);
    bed_init_like(&bed, &like);
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed.drive->drive.medium.size_blocks,
                     bed.drive->drive.nand.size_blocks);
    return bed.drive->drive.nand.size_blocks * BED_BLOCK;
}

WITH_FIXTURE(setup_nand, teardown)
static void test_the_capacity_is_what_the_drive_was_made_with(void **state)
{
    uint64_t space = bed.drive->drive.nand.size_blocks * BED_BLOCK;
    uint64_t wanted = (1 << 20) + 5 * 4096;
    uint64_t end = wanted / BED_BLOCK;

    (void)state;
    assert_true(space > 2 * wanted);
    assert_int_equal(remake_with_capacity(wanted), wanted);
    write_blocks(1, end - 16, 16, true, 1);
    assert_int_equal(run_io(1, NVM_READ, end - 8, 16, false) & NVME_SC_MASK,
                     NVME_SC_LBA_RANGE);
    cut_power();
    assert_int_equal(bed.drive->drive.nand.size_blocks, end);
    expect_blocks(1, end - 16, 16, 1);
    assert_int_equal(remake_with_capacity(space + 4096), space);
    assert_int_equal(remake_with_capacity(0), space);
}

static uint8_t critical_warning(void)
{
    static uint8_t smart[LOG_SMART_LEN];

    assert_int_equal(
        host_get_log(&bed.host->host, LOG_SMART, 0, smart, sizeof(smart)), 0);
    return smart[SMART_CRITICAL_WARNING];
}

/* Two thirds of all blocks fail when they are erased. */
WITH_FIXTURE(setup_nand, teardown)
static void test_a_worn_out_drive_is_read_only_and_keeps_its_data(void **state)
{
    static const struct nvme_sqe zeroes = {
        .opcode = NVM_WRITE_ZEROES, .nsid = 1, .cdw12 = 7};
    uint64_t blocks = bed.drive->drive.nand.size_blocks / 256 * 256;
    uint16_t status = 0;
    uint32_t written = 0;

    (void)state;
    assert_int_equal(critical_warning(), 0);
    for (uint64_t lba = 0; lba < blocks; lba += 256) {
        write_blocks(1, lba, 256, false, 1);
    }
    assert_int_equal(bed_flush(&bed, 1), 0);
    bed_power_off(&bed);
    for (uint32_t block = 0; block < 8 * 20; block++) {
        if (block % 3 != 0) {
            flag_block(block, NAND_BLOCK_FAILED);
        }
    }
    bed_power_on(&bed);
    bed_connect(&bed, 0, 1, 64);
    while (written < 4000 && status == 0) {
        fill_data(bed.host->data, 1, written * 8 % blocks, 8, 2);
        status = run_io(1, NVM_WRITE, written * 8 % blocks, 8, false);
        written += status == 0;
    }
    assert_int_equal(status & NVME_SC_MASK, NVME_SC_NS_WRITE_PROTECTED);
    expect_log("the drive is read-only from now on");
    for (unsigned int start = 0; start < 2; start++) {
        assert_int_equal(critical_warning(), SMART_WARN_READ_ONLY);
        assert_int_equal(run_io(1, NVM_WRITE, 8, 8, false) & NVME_SC_MASK,
                         NVME_SC_NS_WRITE_PROTECTED);
        assert_int_equal(send_command(1, &zeroes), NVME_SC_NS_WRITE_PROTECTED);
        assert_int_equal(bed_flush(&bed, 1), 0);
        for (uint64_t lba = 0; lba < blocks; lba += 8) {
            expect_blocks(1, lba, 8, lba / 8 < written ? 2 : 1);
        }
        cut_power();
        expect_log("the drive is read-only from now on");
    }
}

/* ---- What the drive reports about writes and formats. */

/* A unit of 4096 bytes is never torn, so writes within eight aligned blocks of
 * 512 bytes are atomic.  A block of 4096 bytes is atomic in any case.  Hosts
 * are asked to write whole units. */
WITH_FIXTURE(setup_nand, teardown)
static void test_a_namespace_reports_that_a_unit_is_never_torn(void **state)
{
    static uint8_t page[4096];

    (void)state;
    for (uint32_t format = 0; format < 4; format++) {
        const struct nvme_sqe sqe = {
            .opcode = ADMIN_FORMAT_NVM,
            .nsid = 1,
            .cdw10 = format | (format >= 2 ? METADATA_EXTENDED : 0u),
        };
        uint16_t blocks;

        assert_int_equal(send_command(0, &sqe), 0);
        assert_int_equal(host_identify(&bed.host->host, 0, 1, page), 0);
        assert_int_equal(page[ID_NS_FLBAS] & 0xf, format);
        blocks = (uint16_t)(4096u >> page[ID_NS_LBAF0 + 4 * format + 2]);
        assert_int_equal((page[ID_NS_NSFEAT] & NSFEAT_NSABP) != 0, blocks != 1);
        assert_int_equal(get_le16(page + ID_NS_NAWUN), blocks - 1);
        assert_int_equal(get_le16(page + ID_NS_NAWUPF), blocks - 1);
        assert_int_equal(get_le16(page + ID_NS_NABSN), blocks - 1);
        assert_int_equal(get_le16(page + ID_NS_NABSPF), blocks - 1);
        assert_int_equal(get_le16(page + ID_NS_NABO), 0);
        assert_int_equal(page[ID_NS_NSFEAT] & NSFEAT_OPTPERF, NSFEAT_OPTPERF);
        assert_int_equal(get_le16(page + ID_NS_NPWG), blocks - 1);
        assert_int_equal(get_le16(page + ID_NS_NPWA), blocks - 1);
        assert_int_equal(get_le16(page + ID_NS_NPDG), blocks - 1);
        assert_int_equal(get_le16(page + ID_NS_NPDA), blocks - 1);
        assert_int_equal(get_le16(page + ID_NS_NOWS), blocks - 1);
    }
    assert_int_equal(host_identify(&bed.host->host, 1, 0, page), 0);
    assert_int_equal(get_le16(page + ID_CTRL_AWUN), 0);
    assert_int_equal(get_le16(page + ID_CTRL_AWUPF), 0);
}

/* A Format concerns the namespaces that it names, and so does an erasure. */
WITH_FIXTURE(setup_nand, teardown)
static void test_a_format_concerns_only_the_namespaces_that_it_names(
    void **state)
{
    static uint8_t page[4096];

    (void)state;
    assert_int_equal(host_identify(&bed.host->host, 1, 0, page), 0);
    assert_int_equal(page[ID_CTRL_FNA], 0);
}

/* ---- Arrays that cannot be used. */

/* Start a drive that has to be refused, with this text in its log. */
static void expect_refusal(struct nand_ram *ram, uint32_t dram_bytes,
                           const char *text)
{
    struct native_drive_config config = {
        .node = {.number = 7, .mtu_bytes = 1500},
        .medium = &bed.medium,
        .nand_flash = ram,
        .dram_bytes = dram_bytes,
        .may_be_refused = true,
    };
    struct native_drive *drive = native_drive_create(&bed.world, &config);

    native_world_pass(&bed.world, MS_NS);
    assert_int_equal(drive->report.result, INIT_UNUSABLE);
    assert_string_equal(drive->report.part, "nand");
    if (strstr(machine_console(&drive->machine), text) == NULL) {
        fail_msg("the log has no \"%s\":\n%s", text,
                 machine_console(&drive->machine));
    }
    native_drive_destroy(drive);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_an_array_that_is_too_small_is_refused(void **state)
{
    const struct nand_storage_config storage = {
        .profile = "tlc2021",
        .channels = 1,
        .dies = 1,
        .blocks = 8,
        .wordlines = 8,
    };
    struct nand_ram *ram = calloc(1, sizeof(*ram));

    (void)state;
    assert_non_null(ram);
    nand_storage_init(ram, &storage);
    expect_refusal(ram, 0,
                   "ftl: an array with 8 blocks of 8 wordlines in each plane "
                   "is too small");
    nand_storage_end(ram);
    free(ram);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_an_array_whose_map_no_superblock_holds_is_refused(void **state)
{
    const struct nand_storage_config storage = {
        .profile = "slc",
        .channels = 1,
        .dies = 1,
        .blocks = 1800,
        .wordlines = 8,
        .is_sparse = true,
    };
    struct nand_ram *ram = calloc(1, sizeof(*ram));

    (void)state;
    assert_non_null(ram);
    nand_storage_init(ram, &storage);
    expect_refusal(ram, 0,
                   "MiB does not fit into one superblock, which is one block "
                   "of 8 wordlines in each of the 4 planes of 1 dies; create "
                   "an array with fewer blocks in a plane than 1800, or with "
                   "more dies");
    nand_storage_end(ram);
    free(ram);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_dram_that_is_too_small_for_the_map_is_refused(void **state)
{
    struct nand_ram *ram = calloc(1, sizeof(*ram));
    size_t used = bed.drive->machine.dram.used_bytes;

    (void)state;
    assert_non_null(ram);
    nand_storage_init(ram, &(struct nand_storage_config){
                               .profile = "tlc2021",
                               .channels = 2,
                               .dies = 1,
                               .blocks = 20,
                               .wordlines = 4,
                           });
    expect_refusal(ram, (uint32_t)used / 4096 * 4096,
                   "MiB are left; start the machine with more memory, or use "
                   "a smaller array");
    nand_storage_end(ram);
    free(ram);
}

/* ---- SMART. */

WITH_FIXTURE(setup_nand, teardown)
static void test_ocps_page_counts_what_the_flash_has_done(void **state)
{
    static uint8_t page[LOG_OCP_SMART_LEN];
    const struct ftl_counters *ftl = drive_counters();
    uint64_t written;

    (void)state;
    write_blocks(1, 0, 256, true, 1);
    write_blocks(1, 0, 8, true, 2);
    read_log(LOG_OCP_SMART, page, sizeof(page));
    written = get_le64(page + OCP_SMART_UNITS_WRITTEN);
    assert_int_equal(written, (ftl->units + ftl->pad_units) * FTL_UNIT_DATA);
    assert_true(written > 264 * BED_BLOCK);
    assert_int_equal(get_le64(page + OCP_SMART_BAD_BLOCKS) & 0xffffffff, 0);
    assert_int_equal(get_le16(page + OCP_SMART_BAD_NORMALIZED), 100);
    assert_in_range(page[OCP_SMART_FREE_BLOCKS], 50, 99);
    /* In a new array, some blocks have been erased once, and others never. */
    assert_int_equal(get_le32(page + OCP_SMART_LEAST_ERASED), 0);
    assert_in_range(get_le32(page + OCP_SMART_MOST_ERASED), 0, 1);

    /* The drive is switched off in an orderly way, and on again. */
    drive_stop(&bed.drive->drive);
    cut_power();
    read_log(LOG_OCP_SMART, page, sizeof(page));
    assert_true(get_le64(page + OCP_SMART_UNITS_WRITTEN) >= written);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_block_that_fails_is_counted_and_uses_spare_blocks(
    void **state)
{
    static uint8_t page[LOG_OCP_SMART_LEN], smart[LOG_SMART_LEN];

    (void)state;
    read_log(LOG_SMART, smart, sizeof(smart));
    assert_int_equal(smart[SMART_AVAILABLE_SPARE], 100);
    inject_fault(NAND_OP_PROGRAM, NAND_EFFECT_FAIL);
    write_blocks(1, 0, 256, true, 1);
    expect_blocks(1, 0, 256, 1);
    native_world_pass(&bed.world, 2 * 1000 * MS_NS);
    read_log(LOG_OCP_SMART, page, sizeof(page));
    assert_int_equal(get_le32(page + OCP_SMART_BAD_BLOCKS), 1);
    assert_in_range(get_le16(page + OCP_SMART_BAD_NORMALIZED), 1, 99);
    read_log(LOG_SMART, smart, sizeof(smart));
    assert_int_equal(smart[SMART_AVAILABLE_SPARE],
                     page[OCP_SMART_BAD_NORMALIZED]);
    assert_int_equal(smart[0], 0);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_erasures_wear_the_drive(void **state)
{
    static uint8_t smart[LOG_SMART_LEN];
    struct nand_health *health = &bed.drive->drive.nand_health;
    const struct nand_medium *medium = &bed.drive->drive.nand;
    uint32_t lba = 0;

    (void)state;
    /* As if each block had been erased half as often as it may be. */
    health->before.erased_blocks =
        (uint64_t)medium->good_blocks * medium->endurance / 2;
    for (uint32_t i = 0; drive_counters()->erasures == 0; i++) {
        assert_in_range(i, 0, 2000);
        write_blocks(1, lba, 256, false, i + 1);
        lba = (lba + 256) % 4096;
    }
    native_world_pass(&bed.world, 2 * 1000 * MS_NS);
    read_log(LOG_SMART, smart, sizeof(smart));
    assert_in_range(smart[SMART_PERCENTAGE_USED], 50, 51);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_erasures_that_a_tool_has_added_are_in_smart(void **state)
{
    static uint8_t page[LOG_OCP_SMART_LEN], smart[LOG_SMART_LEN];

    (void)state;
    for (uint32_t i = 1; i <= 2; i++) {
        drive_stop(&bed.drive->drive);
        bed.usage.flash.added_erasures += bed.drive->drive.nand.endurance / 4;
        cut_power();
        read_log(LOG_SMART, smart, sizeof(smart));
        assert_int_equal(smart[SMART_PERCENTAGE_USED], 25 * i);
        read_log(LOG_OCP_SMART, page, sizeof(page));
        assert_int_equal(get_le32(page + OCP_SMART_LEAST_ERASED),
                         bed.usage.flash.added_erasures);
        /* The drive itself keeps the number. */
        write_blocks(1, 0, 8, true, i);
    }
}

WITH_FIXTURE(setup_nand, teardown)
static void test_after_a_restart_smart_has_what_the_mount_has_found(
    void **state)
{
    static uint8_t smart[LOG_SMART_LEN];
    uint8_t spare;

    (void)state;
    inject_fault(NAND_OP_PROGRAM, NAND_EFFECT_FAIL);
    write_blocks(1, 0, 256, true, 1);
    native_world_pass(&bed.world, 2 * 1000 * MS_NS);
    read_log(LOG_SMART, smart, sizeof(smart));
    spare = smart[SMART_AVAILABLE_SPARE];
    assert_in_range(spare, 1, 99);
    do { /* until a start erases nothing */
        drive_stop(&bed.drive->drive);
        cut_power();
        native_world_pass(&bed.world, 2 * 1000 * MS_NS);
    } while (drive_counters()->erasures != 0);
    read_log(LOG_SMART, smart, sizeof(smart));
    assert_int_equal(smart[SMART_AVAILABLE_SPARE], spare);
}

/* ---- Fault rules. */

struct rules {
    struct fault_table table;
    struct fault_nand nand;
    uint32_t cut_by; /* the rule that cut the power; 0: none did */
};

static void note_cut(void *ctx, uint32_t id)
{
    ((struct rules *)ctx)->cut_by = id;
}

static void use_rule(struct rules *rules, const char *text)
{
    struct nand_fault_hook hook;
    struct fault_rule rule;
    const char *wrong;

    *rules = (struct rules){.nand.power_cut = note_cut};
    rules->nand.table = &rules->table;
    rules->nand.ctx = rules;
    hook = fault_nand_hook(&rules->nand);
    nand_array_set_hook(bed.drive->machine.nand->array, &hook);
    assert_true(fault_rule_parse(text, &rule, &wrong));
    assert_true(fault_table_add(&rules->table, &rule));
}

static const struct fault_rule *used_rule(const struct rules *rules)
{
    return fault_table_find(&rules->table, 1);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_rule_makes_one_program_fail(void **state)
{
    static struct rules rules;

    (void)state;
    use_rule(&rules,
             "id=1 site=nand do=error argument=0 ops=2 place=2:1:1 nth=2");
    write_blocks(1, 0, 256, true, 1);
    write_blocks(1, 256, 256, true, 1);
    write_blocks(1, 512, 256, true, 1);
    assert_int_equal(used_rule(&rules)->trigger.fired, 1);
    assert_int_equal(drive_counters()->program_errors, 1);
    assert_int_equal(ftl_failed_planes(bed.drive->drive.nand.ftl), 1);
    expect_blocks(1, 0, 256, 1);
    expect_blocks(1, 512, 256, 1);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_rule_makes_a_unit_uncorrectable(void **state)
{
    static struct rules rules;

    (void)state;
    write_blocks(1, 0, 256, true, 1);
    use_rule(&rules, "id=1 site=nand do=error argument=0 ops=1 nth=1");
    assert_int_equal(run_io(1, NVM_READ, 0, 8, false) & NVME_SC_MASK,
                     NVME_SC_READ_ERROR);
    assert_int_equal(used_rule(&rules)->trigger.fired, 1);
    expect_blocks(1, 0, 8, 1);
    use_rule(&rules, "id=1 site=nand do=bits argument=1 ops=1");
    expect_blocks(1, 0, 8, 1);
    assert_int_equal(used_rule(&rules)->trigger.fired, 1);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_rule_makes_an_erasure_fail(void **state)
{
    static struct rules rules;

    (void)state;
    use_rule(&rules, "id=1 site=nand do=error argument=0 ops=4 nth=1");
    for (uint32_t i = 0; used_rule(&rules)->trigger.fired == 0; i++) {
        assert_in_range(i, 0, 2000);
        write_blocks(1, i % 16 * 256, 256, false, i + 1);
    }
    native_world_pass(&bed.world, 200 * MS_NS);
    assert_int_equal(ftl_failed_planes(bed.drive->drive.nand.ftl), 1);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_rule_cuts_the_power_at_an_operation(void **state)
{
    static struct rules rules;

    (void)state;
    use_rule(&rules, "id=1 site=nand do=power-cut argument=0 ops=2 nth=2");
    write_blocks(1, 0, 8, true, 1);
    assert_int_equal(rules.cut_by, 0);
    write_blocks(1, 0, 8, true, 2);
    assert_int_equal(rules.cut_by, 1);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_rule_makes_a_die_die_for_good(void **state)
{
    static struct rules rules;
    static uint8_t page[LOG_OCP_SMART_LEN], smart[LOG_SMART_LEN];
    const struct nand_array *array = bed.drive->machine.nand->array;

    (void)state;
    use_rule(&rules, "id=1 site=nand do=die argument=0 place=0:1:1 nth=1");
    for (uint32_t i = 0; used_rule(&rules)->trigger.fired == 0; i++) {
        assert_in_range(i, 0, 100);
        fill_data(bed.host->data, 1, i * 256, 256, 1);
        (void)run_io(1, NVM_WRITE, i * 256, 256, true);
    }
    assert_true(nand_array_die_is_dead(array, 1, 0));
    assert_false(nand_array_die_is_dead(array, 0, 0));
    expect_log("ftl: number of dies that have died: 1; they are not");
    assert_true(fault_table_remove(&rules.table, 1));
    assert_true(nand_array_die_is_dead(array, 1, 0));

    /* There is no parity left, so there is no spare left. */
    native_world_pass(&bed.world, UINT64_C(3000000000));
    read_log(LOG_SMART, smart, sizeof(smart));
    assert_int_equal(smart[SMART_AVAILABLE_SPARE], 0);
    assert_true(smart[SMART_CRITICAL_WARNING] & SMART_WARN_SPARE);
    /* All blocks of the die have failed. */
    read_log(LOG_OCP_SMART, page, sizeof(page));
    assert_int_equal(get_le32(page + OCP_SMART_BAD_BLOCKS),
                     bed.drive->drive.nand.die_blocks);
    assert_in_range(bed.drive->drive.nand.die_blocks, 60, 100);
}

struct event_waiter {
    unsigned int events;
    uint32_t dw0; /* of the last completion */
};

static void take_event(void *ctx, const struct host_result *result)
{
    struct event_waiter *waiter = ctx;

    if (!result->is_lost) {
        assert_int_equal(result->cqe.status, 0);
        waiter->events++;
        waiter->dw0 = result->cqe.dw0;
    }
}

static void request_event(struct event_waiter *waiter)
{
    const struct host_command command = {
        .sqe.opcode = ADMIN_ASYNC_EVENT_REQUEST,
        .done = take_event,
        .ctx = waiter,
    };

    assert_true(host_queue_submit(&bed.host->host.conn[0].queue, &command));
    native_world_pass(&bed.world, 10 * MS_NS);
}

/* The host learns at once that there is no spare left, and only once. */
WITH_FIXTURE(setup_nand, teardown)
static void test_a_host_gets_an_event_when_a_die_dies(void **state)
{
    static struct rules rules;
    static uint8_t smart[LOG_SMART_LEN];
    struct event_waiter waiter = {0};

    (void)state;
    assert_int_equal(
        host_set_features(&bed.host->host, FEATURE_ASYNC_EVENT_CONFIG, 0xff),
        0);
    request_event(&waiter);
    write_blocks(1, 0, 256, true, 1);
    native_world_pass(&bed.world, 3000 * MS_NS);
    assert_int_equal(waiter.events, 0);
    use_rule(&rules, "id=1 site=nand do=die argument=0 place=0:1:1 nth=1");
    for (uint32_t i = 0; used_rule(&rules)->trigger.fired == 0; i++) {
        assert_in_range(i, 0, 100);
        fill_data(bed.host->data, 1, i * 256, 256, 1);
        (void)run_io(1, NVM_WRITE, i * 256, 256, true);
    }
    native_world_pass(&bed.world, 3000 * MS_NS);
    assert_int_equal(waiter.events, 1);
    assert_int_equal(waiter.dw0, LOG_SMART << 16 | EVENT_SMART_SPARE << 8 |
                                     EVENT_TYPE_SMART);
    request_event(&waiter);
    read_log(LOG_SMART, smart, sizeof(smart)); /* this unmasks the event */
    assert_true(smart[SMART_CRITICAL_WARNING] & SMART_WARN_SPARE);
    native_world_pass(&bed.world, 3000 * MS_NS);
    assert_int_equal(waiter.events, 1);
    host_vanish(&bed.host->host);
}
