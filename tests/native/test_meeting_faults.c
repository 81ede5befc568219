/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults that happen at the same time: parity errors of the flash's transfers
 * while the power fails, dies that die while the drive is sanitized, and power
 * that fails while one host writes and another one formats its namespace.
 */
#include "bed_fixture.h"

#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
#include "tests/nand_faults.h"
#include "tests/test_fixture.h"
#include "write_slots.h"

#define MS_NS     UINT64_C(1000000)
#define BUDGET_NS (40 * MS_NS)

enum {
    UNIT_BLOCKS = 8,
    REPEATS = 3, /* of an operation whose transfer had a parity error */
};

static const struct bed plp_bed = {
    .mtu_bytes = 1500, .has_nand = true, .has_capacitors = true};
static const struct bed slow_plp_bed = {.mtu_bytes = 1500,
                                        .has_nand = true,
                                        .nand_is_realtime = true,
                                        .has_capacitors = true};
static const struct bed plain_bed = {.mtu_bytes = 1500, .has_nand = true};

static int setup_like(const struct bed *like)
{
    bed_init_like(&bed, like);
    bed_connect(&bed, 0, 1, 64);
    return 0;
}

static int setup_plp(void **state)
{
    (void)state;
    return setup_like(&plp_bed);
}

static int setup_slow_plp(void **state)
{
    (void)state;
    return setup_like(&slow_plp_bed);
}

static int setup_plain(void **state)
{
    (void)state;
    return setup_like(&plain_bed);
}

static void come_back(void)
{
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
}

/* ---- Parity errors of transfers while the power fails. */

/* The transfers of `times` operations fail, after those of `after` others. */
static void inject_transfer_errors(enum nand_op_kind kind, uint32_t after,
                                   uint32_t times)
{
    struct nand_injection fault = fault_anywhere(kind, NAND_EFFECT_TRANSFER);

    fault.trigger.after = after;
    fault.trigger.times = times;
    assert_true(nand_array_inject(bed.drive->machine.nand->array, &fault));
}

static void pass_budget(void)
{
    native_drive_power_fails(bed.drive);
    native_world_pass(&bed.world, BUDGET_NS);
}

/* First, so many errors that a repetition by the seam succeeds; then one more,
 * so that the translation layer repeats the program. */
WITH_FIXTURE(setup_plp, teardown)
static void test_the_buffer_is_saved_despite_parity_errors(void **state)
{
    struct write_slots slots;
    uint64_t random = 3;

    (void)state;
    write_slots_init(&slots, &bed);
    for (uint32_t i = 0; i < 24; i++) {
        write_slots_use(&slots, &random);
        inject_transfer_errors(NAND_OP_PROGRAM, i / 4, 1 + i % (REPEATS + 1));
        pass_budget();
        assert_true(bed.drive->saved_ns != 0);
        bed_power_cycle(&bed);
        come_back();
        (void)write_slots_check(&slots);
        assert_int_equal(bed_critical_warning(&bed), 0);
    }
}

/* The drive must not say that it has saved what it could not program. */
WITH_FIXTURE(setup_plp, teardown)
static void test_a_buffer_that_cannot_be_transferred_is_not_saved(void **state)
{
    (void)state;
    assert_int_equal(bed_write(&bed, 1, 0, 64, HOST_DATA_KEYED, true, 1), 0);
    native_world_pass(&bed.world, 100 * MS_NS);
    assert_true(bed.usage.is_in_use);
    assert_int_equal(bed_write(&bed, 1, 0, 8, HOST_DATA_KEYED, false, 2), 0);
    assert_int_equal(bed_write(&bed, 1, 80, 8, HOST_DATA_KEYED, false, 2), 0);
    inject_transfer_errors(NAND_OP_PROGRAM, 0, 0);
    pass_budget();
    assert_int_equal(bed.drive->saved_ns, 0);
    bed_power_cycle(&bed);
    come_back();
    bed_expect(&bed, 1, 8, 56, HOST_DATA_KEYED, 1);
    bed_expect(&bed, 1, 0, 8, HOST_DATA_KEYED, 1);
    assert_int_equal(bed_critical_warning(&bed), SMART_WARN_VOLATILE_MEMORY);
}

/* Without capacitors, the power is cut at once. */
WITH_FIXTURE(setup_plain, teardown)
static void test_flushed_data_survives_parity_errors_and_a_cut(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < 40; i++) {
        uint64_t lba = i % 7 * 64;

        inject_transfer_errors(NAND_OP_PROGRAM, i % 3, 1 + i % (REPEATS + 2));
        assert_int_equal(bed_write(&bed, 1, lba, 64, HOST_DATA_KEYED, false, i),
                         0);
        assert_int_equal(bed_flush(&bed, 1), 0);
        inject_transfer_errors(NAND_OP_PROGRAM, 0, 1 + i % 9);
        assert_int_equal(
            bed_write(&bed, 1, 1024, 256, HOST_DATA_KEYED, false, i), 0);
        native_world_pass(&bed.world, i % 5 * 40 * MS_NS);
        bed_power_cycle(&bed);
        inject_transfer_errors(NAND_OP_READ, i, 1 + i % REPEATS);
        inject_transfer_errors(NAND_OP_PROGRAM, i % 4, 1 + i % REPEATS);
        come_back();
        bed_expect(&bed, 1, lba, 64, HOST_DATA_KEYED, i);
    }
}

/* ---- Power that fails soon after a reset with power on. */

/* The drive mounts the flash, adopts the write buffer, and saves it.  The power
 * fails later in each turn: in the first turn, the mount has just begun. */
WITH_FIXTURE(setup_slow_plp, teardown)
static void test_a_buffer_that_is_not_adopted_yet_is_saved(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < 16; i++) {
        uint64_t lba = i * UNIT_BLOCKS;

        assert_int_equal(
            bed_write(&bed, 1, lba, UNIT_BLOCKS, HOST_DATA_KEYED, false, i), 0);
        bed_reset(&bed);
        native_world_pass(&bed.world, (i - 1) * MS_NS / 10);
        pass_budget();
        assert_true(bed.drive->saved_ns != 0);
        bed_power_cycle(&bed);
        come_back();
        bed_expect(&bed, 1, lba, UNIT_BLOCKS, HOST_DATA_KEYED, i);
        assert_int_equal(bed_critical_warning(&bed), 0);
    }
}

/* ---- A die that dies while the drive is sanitized. */

enum {
    BLOCK_ERASE = 2,
    EXIT_FAILURE_MODE = 1,
    AUSE = 0x8,
    DIES_BLOCKS = 24,
    DATA_BLOCKS = 2048,
};

static const struct bed four_dies_bed = {
    .mtu_bytes = 1500,
    .has_nand = true,
    .nand_dies = 2,
    .nand_blocks = DIES_BLOCKS,
};

static int setup_four_dies(void **state)
{
    (void)state;
    return setup_like(&four_dies_bed);
}

static uint16_t send_sanitize(uint32_t cdw10)
{
    const struct nvme_sqe sqe = {.opcode = ADMIN_SANITIZE, .cdw10 = cdw10};

    return host_command(&bed.host->host, 0, &sqe, NULL, 0) & NVME_SC_MASK;
}

static enum nvmf_sanitize_outcome sanitize_outcome(void)
{
    struct nvmf_sanitize_now now;

    sanitize_read(&bed.drive->drive.sanitize, &now);
    return now.outcome;
}

static bool has_ended(void *ctx)
{
    (void)ctx;
    return sanitize_outcome() != NVMF_SANITIZE_IN_PROGRESS;
}

static void expect_no_old_data(void)
{
    static const uint8_t zeroes[64 * BED_BLOCK];

    for (uint64_t lba = 0; lba < DATA_BLOCKS; lba += 64) {
        assert_int_equal(bed_read(&bed, 1, lba, 64, HOST_DATA_KEYED), 0);
        assert_memory_equal(bed.host->data, zeroes, sizeof(zeroes));
    }
}

/* A die dies at one of its operations while all blocks are erased. */
static void sanitize_while_die_dies(enum nand_op_kind kind, uint32_t after)
{
    struct nand_injection death = fault_anywhere(kind, NAND_EFFECT_DIE);

    for (uint64_t lba = 0; lba < DATA_BLOCKS; lba += 256) {
        assert_int_equal(
            bed_write(&bed, 1, lba, 256, HOST_DATA_KEYED, false, 1), 0);
    }
    assert_int_equal(bed_flush(&bed, 1), 0);
    death.channel = (int32_t)(after % 2);
    death.die = (int32_t)(after / 2 % 2);
    death.trigger.after = after;
    death.trigger.times = 1;
    assert_true(nand_array_inject(bed.drive->machine.nand->array, &death));
    assert_int_equal(send_sanitize(BLOCK_ERASE | AUSE), 0);
    assert_true(native_world_run(&bed.world, has_ended, NULL, 10000 * MS_NS));
    /* The contents of a dead die were not erased. */
    assert_true(nand_array_die_is_dead(bed.drive->machine.nand->array,
                                       (unsigned int)death.channel,
                                       (unsigned int)death.die));
    assert_int_equal(sanitize_outcome(), NVMF_SANITIZE_FAILED);
    assert_int_not_equal(bed_read(&bed, 1, 0, 8, HOST_DATA_KEYED), 0);
}

/* The failed state outlasts a power cut.  When the host has ended it, no old
 * data can be read. */
WITH_FIXTURE(setup_four_dies, teardown)
static void test_a_sanitize_fails_when_a_die_dies(void **state)
{
    static const struct {
        enum nand_op_kind kind;
        uint32_t after;
    } deaths[] = {{NAND_OP_ERASE, 0},
                  {NAND_OP_ERASE, 2},
                  {NAND_OP_ERASE, 11},
                  {NAND_OP_ERASE, 21},
                  {NAND_OP_PROGRAM, 0}};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(deaths); i++) {
        if (i != 0) {
            bed_end(&bed);
            setup_like(&four_dies_bed);
        }
        sanitize_while_die_dies(deaths[i].kind, deaths[i].after);
        if (i % 2 == 0) {
            bed_power_cycle(&bed);
            come_back();
            assert_int_equal(sanitize_outcome(), NVMF_SANITIZE_FAILED);
            assert_int_not_equal(bed_read(&bed, 1, 0, 8, HOST_DATA_KEYED), 0);
        }
        assert_int_equal(send_sanitize(EXIT_FAILURE_MODE), 0);
        expect_no_old_data();
        assert_int_equal(bed_write(&bed, 1, 8, 64, HOST_DATA_KEYED, false, 2),
                         0);
        assert_int_equal(bed_flush(&bed, 1), 0);
        bed_power_cycle(&bed);
        come_back();
        bed_expect(&bed, 1, 8, 64, HOST_DATA_KEYED, 2);
    }
}

/* ---- Power that fails while another namespace is formatted. */

enum { OTHER_NSID = 2, FORMATTED_BLOCKS = 2048, KATO_MS = 8000 };

static const struct volume_plan two_namespaces = {
    .count = 2, .size_mib = 4, .block_shift = VOLUME_SHIFT_512};
static const struct bed two_bed = {.mtu_bytes = 1500,
                                   .has_nand = true,
                                   .nand_is_realtime = true,
                                   .has_capacitors = true,
                                   .plan = &two_namespaces,
                                   .keeps_namespaces = true};
static struct nvme_host other; /* through port 1; the bed's is on port 0 */

static void connect_other(void)
{
    bed_connect_more(&bed, &other, 1, 1, KATO_MS);
}

static int setup_two(void **state)
{
    (void)state;
    (void)setup_like(&two_bed);
    connect_other();
    return 0;
}

static uint16_t use_other(uint8_t opcode, uint64_t lba)
{
    return host_io(&other, &(struct host_io){.qid = 1,
                                             .opcode = opcode,
                                             .kind = HOST_DATA_KEYED,
                                             .nsid = OTHER_NSID,
                                             .lba = lba,
                                             .blocks = 64,
                                             .len_bytes = 64 * BED_BLOCK});
}

static void note_format(void *ctx, const struct host_result *result)
{
    bool *is_formatted = ctx;

    *is_formatted = !result->is_lost && result->cqe.status == 0;
}

/* Each block of the formatted namespace has its old contents or zeroes.  If the
 * command has ended, it has zeroes. */
static void expect_formatted(bool is_formatted)
{
    static uint8_t old[64 * BED_BLOCK];
    static const uint8_t zeroes[BED_BLOCK];

    for (uint64_t lba = 0; lba < FORMATTED_BLOCKS; lba += 64) {
        bed_fill(old, lba, 64, 1);
        assert_int_equal(use_other(NVM_READ, lba), 0);
        for (uint32_t i = 0; i < 64; i++) {
            const uint8_t *data = bed.host->data + (size_t)i * BED_BLOCK;

            if (memcmp(data, zeroes, BED_BLOCK) != 0) {
                assert_false(is_formatted);
                assert_memory_equal(data, old + (size_t)i * BED_BLOCK,
                                    BED_BLOCK);
            }
        }
    }
}

/* Write to one namespace, and format the other one meanwhile. */
static bool write_and_format(struct write_slots *slots, uint64_t *random,
                             uint64_t format_us)
{
    static bool is_formatted;
    struct host_command format = {
        .sqe = {.opcode = ADMIN_FORMAT_NVM, .nsid = OTHER_NSID},
        .done = note_format,
        .ctx = &is_formatted,
    };

    for (uint64_t lba = 0; lba < FORMATTED_BLOCKS; lba += 64) {
        bed_fill(bed.host->data, lba, 64, 1);
        assert_int_equal(use_other(NVM_WRITE, lba), 0);
    }
    is_formatted = false;
    write_slots_use(slots, random);
    assert_true(host_queue_submit(&other.conn[0].queue, &format));
    verbs_flush(other.conn[0].queue.verbs);
    native_world_pass(&bed.world, format_us * 1000);
    native_drive_power_fails(bed.drive);
    native_world_pass(&bed.world, BUDGET_NS);
    return is_formatted;
}

WITH_FIXTURE(setup_two, teardown)
static void test_power_that_fails_while_another_namespace_is_formatted(
    void **state)
{
    static const uint32_t format_us[] = {0,    100,  600,  1000, 1200,
                                         1400, 1600, 1800, 2000, 2300,
                                         2600, 3000, 20000};
    struct write_slots slots;
    uint64_t random = 11;
    uint32_t formatted = 0;

    (void)state;
    write_slots_init(&slots, &bed);
    for (uint32_t i = 0; i < ARRAY_LEN(format_us); i++) {
        bool is_formatted = write_and_format(&slots, &random, format_us[i]);

        formatted += is_formatted;
        assert_true(bed.drive->saved_ns != 0);
        bed_power_cycle(&bed);
        host_vanish(&other);
        come_back();
        connect_other();
        (void)write_slots_check(&slots);
        expect_formatted(is_formatted);
        assert_int_equal(bed_critical_warning(&bed), 0);
    }
    assert_in_range(formatted, 1, ARRAY_LEN(format_us) - 4);
    host_disconnect(&other);
}
