/* SPDX-License-Identifier: BSD-2-Clause */
/* The storage format of a NAND array, and files that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/bytes.h"
#include "lib/crc32.h"
#include "tests/unit/hw-model/nand/nand_bed.h"

static bool geometry_is_equal(const struct nand_geometry *one,
                              const struct nand_geometry *other)
{
    return one->channels == other->channels && one->dies == other->dies &&
           one->planes == other->planes && one->units == other->units &&
           one->pages == other->pages && one->blocks == other->blocks &&
           one->wordlines == other->wordlines;
}

/* The reason for which the array of `bed` is refused now. */
static enum nand_file_reason reason_of(struct bed *bed,
                                       const struct nand_file_source *source)
{
    struct nand_file_failure failure;
    struct nand_file file;
    enum nand_file_reason reason = NAND_FILE_OK;

    if (!nand_file_open(&file, source, &failure)) {
        reason = failure.reason;
        assert_true(reason != NAND_FILE_OK && failure.text[0] != '\0');
    } else {
        assert_true(
            geometry_is_equal(&file.geometry, nand_array_geometry(bed->array)));
    }
    return reason;
}

static enum nand_file_reason reason_now(struct bed *bed)
{
    struct nand_file_source source = nand_ram_source(&bed->ram);

    return reason_of(bed, &source);
}

static void test_a_new_file_is_what_was_asked_for(void **state)
{
    struct bed *bed = bed_new("qlc", 2, 5);

    (void)state;
    assert_string_equal(bed->file.profile->name, "qlc");
    assert_int_equal(bed->file.seed, BED_SEED);
    assert_int_equal(bed->file.geometry.wordlines, 5);
    assert_int_equal(bed->file.geometry.pages, 4);
    assert_int_equal(bed->file.state.generation.count, 1);
    assert_int_equal(bed->file.state.generation.nonce, 0);
    assert_true(bed->file.state.is_clean);
    bed_free(bed);
}

static void test_sections_of_a_file_do_not_overlap(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < nand_profile_count(); i++) {
        struct nand_geometry geometry;
        struct nand_layout layout;
        enum nand_fit fit;
        uint64_t nearest;
        uint32_t blocks;

        assert_true(nand_geometry_for(nand_profile(i), UINT64_C(1) << 40, 16,
                                      16, &geometry, &fit, &nearest));
        nand_layout(&layout, &geometry);
        blocks = nand_geometry_blocks(&geometry);
        assert_true(nand_layout_state(1) >=
                    nand_layout_state(0) + NAND_STATE_LEN);
        assert_true(nand_layout_record(0) >=
                    nand_layout_state(1) + NAND_STATE_LEN);
        assert_true(layout.slots >= nand_layout_record(blocks));
        assert_true(layout.slot_bytes >=
                    nand_slot_unit((uint32_t)geometry.pages * geometry.units) +
                        NAND_WORDLINE_LEN);
        assert_true(layout.block_bytes >=
                    (uint64_t)layout.slot_bytes * geometry.wordlines);
        assert_true(nand_layout_slot(&layout, blocks - 1, 0) +
                        layout.block_bytes ==
                    layout.size_bytes);
        assert_true(layout.size_bytes > UINT64_C(1) << 40);
    }
}

static void test_records_are_emitted_whole_and_parsed_back(void **state)
{
    const struct nand_record record = {.number = 0x01020304,
                                       .wear = 0x11121314,
                                       .reads = 0x21222324,
                                       .flags =
                                           NAND_BLOCK_SLC | NAND_BLOCK_FAILED,
                                       .time_ns = UINT64_C(0x3132333435363738)};
    static const uint8_t golden[NAND_RECORD_LEN - 4] = {
        'B',  'L',  'C',  'K',  0x45, 0,    0,    0,    0x04, 0x03, 0x02,
        0x01, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 9,    0,
        0,    0,    0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31};
    uint8_t buf[NAND_RECORD_LEN];
    struct nand_record back;

    (void)state;
    memset(buf, 0xa5, sizeof(buf));
    nand_record_emit(&record, 0x45, buf);
    assert_memory_equal(buf, golden, sizeof(golden));
    assert_int_equal(get_le32(buf + 60), crc32_update(0, buf, 60));
    assert_true(nand_record_parse(&back, 0x45, buf));
    assert_int_equal(back.number, record.number);
    assert_int_equal(back.wear, record.wear);
    assert_int_equal(back.reads, record.reads);
    assert_int_equal(back.flags, record.flags);
    assert_int_equal(back.time_ns, record.time_ns);
    assert_false(nand_record_parse(&back, 0x46, buf));
    for (unsigned int i = 0; i < sizeof(buf); i++) {
        buf[i] ^= 1;
        assert_false(nand_record_parse(&back, 0x45, buf));
        buf[i] ^= 1;
    }
    /* A flag that this version does not know, with a correct CRC. */
    buf[20] |= 0x80;
    put_le32(buf + 60, crc32_update(0, buf, 60));
    assert_false(nand_record_parse(&back, 0x45, buf));
}

static void test_a_wordline_has_a_beginning_and_an_end(void **state)
{
    const struct nand_wordline wordline = {
        .block = 7, .number = 8, .wordline = 9, .pages = 3, .time_ns = 10};
    uint8_t buf[NAND_WORDLINE_LEN];
    struct nand_wordline back;

    (void)state;
    for (unsigned int is_end = 0; is_end < 2; is_end++) {
        memset(buf, 0xa5, sizeof(buf));
        nand_wordline_emit(&wordline, is_end != 0, buf);
        assert_memory_equal(buf, is_end != 0 ? "ENDN" : "BEGN", 4);
        assert_true(nand_wordline_parse(&back, is_end != 0, buf));
        assert_int_equal(back.block, 7);
        assert_int_equal(back.number, 8);
        assert_int_equal(back.wordline, 9);
        assert_int_equal(back.pages, 3);
        assert_int_equal(back.time_ns, 10);
        assert_false(nand_wordline_parse(&back, is_end == 0, buf));
        for (unsigned int i = 0; i < sizeof(buf); i++) {
            buf[i] ^= 0x40;
            assert_false(nand_wordline_parse(&back, is_end != 0, buf));
            buf[i] ^= 0x40;
        }
    }
}

static void test_every_changed_byte_of_the_header_is_seen(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 1);

    (void)state;
    for (unsigned int i = 0; i < NAND_FILE_HEADER_LEN; i++) {
        enum nand_file_reason expected = i < 8    ? NAND_FILE_NOT_NAND
                                         : i < 12 ? NAND_FILE_OTHER_VERSION
                                                  : NAND_FILE_DAMAGED_HEADER;

        bed->ram.bytes[i] ^= 0x20;
        assert_int_equal(reason_now(bed), expected);
        bed->ram.bytes[i] ^= 0x20;
    }
    assert_int_equal(reason_now(bed), NAND_FILE_OK);
    bed_free(bed);
}

/* Change bytes of the header, and correct its CRC. */
static enum nand_file_reason reason_with(struct bed *bed, unsigned int at,
                                         const void *bytes, size_t len)
{
    uint8_t kept[NAND_FILE_HEADER_LEN];
    enum nand_file_reason reason;

    memcpy(kept, bed->ram.bytes, sizeof(kept));
    memcpy(bed->ram.bytes + at, bytes, len);
    put_le32(bed->ram.bytes + 508, crc32_update(0, bed->ram.bytes, 508));
    reason = reason_now(bed);
    memcpy(bed->ram.bytes, kept, sizeof(kept));
    return reason;
}

static void test_a_header_with_impossible_contents_is_refused(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 1);

    (void)state;
    assert_int_equal(reason_with(bed, 32, "zlc2021", 8),
                     NAND_FILE_UNKNOWN_PROFILE);
    assert_int_equal(reason_with(bed, 32, "0123456789abcdef", 16),
                     NAND_FILE_UNKNOWN_PROFILE);
    /* Another part has other planes, units or pages. */
    assert_int_equal(reason_with(bed, 32, "qlc\0\0\0\0", 8),
                     NAND_FILE_BAD_GEOMETRY);
    for (unsigned int at = 16; at <= 20; at++) {
        assert_int_equal(reason_with(bed, at, "\x00", 1),
                         NAND_FILE_BAD_GEOMETRY);
        assert_int_equal(reason_with(bed, at, "\xff", 1),
                         NAND_FILE_BAD_GEOMETRY);
    }
    for (unsigned int at = 22; at <= 24; at += 2) {
        assert_int_equal(reason_with(bed, at, "\0\0", 2),
                         NAND_FILE_BAD_GEOMETRY);
        assert_int_equal(reason_with(bed, at, "\xff\xff", 2),
                         NAND_FILE_BAD_GEOMETRY);
    }
    assert_int_equal(
        reason_with(bed, 56, "\xff\xff\xff\xff\xff\xff\xff\xff", 8),
        NAND_FILE_BAD_GEOMETRY);
    bed_free(bed);
}

static void test_a_truncated_file_is_refused(void **state)
{
    struct bed *bed = bed_new("tlc2021", 2, 2);
    struct nand_file_source source = nand_ram_source(&bed->ram);
    const uint64_t size = bed->ram.size_bytes;
    const uint64_t offsets[] = {0,
                                1,
                                511,
                                512,
                                4095,
                                4096,
                                nand_layout_state(1),
                                nand_layout_record(0),
                                nand_layout_record(1) + 3,
                                nand_layout_record(8),
                                65536,
                                65536 + 50000,
                                size - 4096,
                                size - 1};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(offsets); i++) {
        source.size_bytes = offsets[i];
        assert_int_equal(reason_of(bed, &source), offsets[i] < 512
                                                      ? NAND_FILE_NOT_NAND
                                                      : NAND_FILE_TRUNCATED);
    }
    source.size_bytes = size + 4096; /* A block device may be larger. */
    assert_int_equal(reason_of(bed, &source), NAND_FILE_OK);
    bed_free(bed);
}

static void test_a_file_that_cannot_be_read_is_refused(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 1);
    struct nand_file_source source = nand_ram_source(&bed->ram);

    (void)state;
    bed->ram.fail_reads = 5;
    assert_int_equal(reason_of(bed, &source), NAND_FILE_UNREADABLE);
    bed_free(bed);
}

static void test_the_newer_of_two_states_counts(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 1);
    struct nand_file_source source = nand_ram_source(&bed->ram);
    uint8_t *state1 = bed->ram.bytes + nand_layout_state(1);
    uint8_t *state2 = bed->ram.bytes + nand_layout_state(2);
    struct nand_state newer = {
        .number = 2,
        .generation = {.count = 77, .nonce = UINT64_C(0x1122334455667788)},
        .time_ns = 5,
    };
    struct nand_file_failure failure;
    struct nand_file file;

    (void)state;
    newer.dead_dies[31] = 0x80;
    memset(state2, 0xa5, NAND_STATE_LEN);
    nand_state_emit(&newer, state2);
    assert_true(nand_file_open(&file, &source, &failure));
    assert_true(
        nand_generation_is_equal(&file.state.generation, &newer.generation));
    assert_int_equal(file.state.time_ns, 5);
    assert_int_equal(file.state.dead_dies[31], 0x80);
    assert_false(file.state.is_clean);

    state2[100] ^= 1; /* The power failed while it was written. */
    assert_true(nand_file_open(&file, &source, &failure));
    assert_int_equal(file.state.generation.count, 1);
    state1[511] ^= 1;
    assert_false(nand_file_open(&file, &source, &failure));
    assert_int_equal(failure.reason, NAND_FILE_DAMAGED_STATE);

    /* A copy that belongs into the other place is none. */
    newer.number = 3;
    nand_state_emit(&newer, state2);
    assert_false(nand_file_open(&file, &source, &failure));
    bed_free(bed);
}

static void test_a_state_is_emitted_whole_and_parsed_back(void **state)
{
    const struct nand_state written = {
        .number = UINT64_C(0x0102030405060708),
        .generation = {.count = UINT64_C(0x1112131415161718),
                       .nonce = UINT64_C(0x2122232425262728)},
        .time_ns = UINT64_C(0x3132333435363738),
        .is_clean = true,
        .dead_dies = {[0] = 0x41, [31] = 0x42},
    };
    static const uint8_t golden[80] = {
        'S',  'T',  'A',  'T',  1,    0,    0,    0,    0x08, 0x07, 0x06, 0x05,
        0x04, 0x03, 0x02, 0x01, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
        0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31, 0x41, 0,    0,    0,
        0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
        0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
        0,    0,    0,    0x42, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21};
    uint8_t buf[NAND_STATE_LEN], again[NAND_STATE_LEN];
    struct nand_state back;

    (void)state;
    memset(buf, 0xa5, sizeof(buf));
    nand_state_emit(&written, buf);
    assert_memory_equal(buf, golden, sizeof(golden));
    assert_int_equal(get_le32(buf + 508), crc32_update(0, buf, 508));
    assert_true(nand_state_parse(&back, buf));
    memset(again, 0x5a, sizeof(again));
    nand_state_emit(&back, again);
    assert_memory_equal(again, buf, sizeof(buf));
    for (unsigned int i = 0; i < sizeof(buf); i++) {
        buf[i] ^= 1;
        assert_false(nand_state_parse(&back, buf));
        buf[i] ^= 1;
    }
}

/* If the newer copy is damaged, the older one counts, but it does not say what
 * the array holds. */
static void test_an_array_is_synchronised_only_if_both_copies_say_so(
    void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 1);
    struct nand_file_source source = nand_ram_source(&bed->ram);
    uint8_t *copies[2] = {bed->ram.bytes + nand_layout_state(0),
                          bed->ram.bytes + nand_layout_state(1)};
    struct nand_file_failure failure;
    struct nand_file file;

    (void)state;
    for (uint64_t newest = 1; newest < 5; newest++) {
        struct nand_state copy = {.number = newest, .is_clean = true};

        nand_state_emit(&copy, copies[newest % 2]);
        for (uint64_t other = (newest + 1) % 2; other < newest; other += 2) {
            copy.number = other;
            nand_state_emit(&copy, copies[other % 2]);
            assert_true(nand_file_open(&file, &source, &failure));
            assert_int_equal(file.state.number, newest);
            assert_int_equal(file.state.is_clean, newest - other == 1);
        }
        memset(copies[(newest + 1) % 2], 0, NAND_STATE_LEN);
        assert_true(nand_file_open(&file, &source, &failure));
        assert_int_equal(file.state.is_clean, newest == 1);
        copies[(newest + 1) % 2][7] = 1;
        assert_true(nand_file_open(&file, &source, &failure));
        assert_false(file.state.is_clean);
    }
    bed_free(bed);
}

static void test_a_damaged_block_record_is_named(void **state)
{
    struct bed *bed = bed_new("tlc2021", 40, 1);
    struct nand_file_source source = nand_ram_source(&bed->ram);
    struct nand_file_failure failure;
    uint8_t *record = bed->ram.bytes + nand_layout_record(123);

    (void)state;
    for (unsigned int i = 0; i < 3; i++) {
        if (i == 0) {
            memset(record, 0, NAND_RECORD_LEN);
        } else if (i == 1) {
            memcpy(record, record + NAND_RECORD_LEN, NAND_RECORD_LEN);
        } else {
            bed->ram.fail_reads = 5;
        }
        assert_null(nand_array_open(
            &(struct nand_array_config){.backend = nand_ram_backend(&bed->ram),
                                        .file = &bed->file,
                                        .num_ops = BED_OPS,
                                        .memory = bed->memory},
            &source, &failure));
        if (i < 2) {
            assert_int_equal(failure.reason, NAND_FILE_DAMAGED_BLOCK);
            assert_int_equal(failure.block, 123);
            assert_string_equal(failure.text,
                                "the record of block 123 is damaged");
        } else {
            assert_int_equal(failure.reason, NAND_FILE_UNREADABLE);
        }
    }
    bed_free(bed);
}

static void test_each_reason_has_a_text_of_its_own(void **state)
{
    struct nand_file_failure one, other;

    (void)state;
    for (int i = 0; i < NAND_FILE_REASONS; i++) {
        nand_file_fail(&one, (enum nand_file_reason)i, 1);
        assert_true(strlen(one.text) > 10 &&
                    strlen(one.text) < NAND_FILE_FAILURE_TEXT - 1);
        for (int k = 0; k < i; k++) {
            nand_file_fail(&other, (enum nand_file_reason)k, 1);
            assert_string_not_equal(one.text, other.text);
        }
    }
}
