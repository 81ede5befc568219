/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/store/flash_layout.h"
#include "firmware/store/image.h"
#include "lib/bytes.h"
#include "lib/crc32.h"

#include <string.h>

#define DRAM       0x80000000u
#define DRAM_BYTES 0x04000000u

static const struct image_header sample = {
    .sequence = 7,
    .load_addr = DRAM + 0x1000,
    .entry = DRAM + 0x1040,
    .len_bytes = 0x2000,
    .image_crc = 0x12345678,
    .version = "1.2.3",
    .format = 1,
};

static const struct image_header sample_2 = {
    .sequence = 7,
    .load_addr = DRAM + 0x1000,
    .entry = DRAM + 0x1040,
    .len_bytes = 0x2000,
    .image_crc = 0x12345678,
    .version = "1.2.3",
    .format = 2,
    .is_signed = true,
    .board = IMAGE_BOARD,
    .security = 9,
    .hash = {1, 2, 3},
    .signature = {4, 5, 6},
};

static void emit_sample(uint8_t *buf)
{
    memset(buf, 0xa5, IMAGE_HEADER_LEN);
    image_header_emit(&sample, buf);
}

static void test_image_header_survives_the_round_trip(void **state)
{
    uint8_t buf[IMAGE_HEADER_LEN];
    struct image_header header;

    (void)state;
    emit_sample(buf);
    assert_int_equal(image_header_parse(&header, buf, sizeof(buf)), IMAGE_OK);
    assert_memory_equal(&header, &sample, sizeof(header));
}

static void test_image_header_has_its_bytes_in_place(void **state)
{
    uint8_t buf[IMAGE_HEADER_LEN];

    (void)state;
    emit_sample(buf);
    assert_memory_equal(buf, "ESSD-IMG\1\0\0\0\7\0\0\0\0\x10\0\x80\0\0\0\0",
                        24);
    assert_memory_equal(buf + 24, "\x40\x10\0\x80\0\0\0\0\0\x20\0\0", 12);
    assert_memory_equal(buf + 36,
                        "\x78\x56\x34\x12"
                        "1.2.3\0",
                        10);
    for (size_t i = 45; i < 124; i++) {
        assert_int_equal(buf[i], 0);
    }
}

static void test_image_header_refuses_every_truncation(void **state)
{
    uint8_t buf[IMAGE_HEADER_LEN];
    struct image_header header;

    (void)state;
    emit_sample(buf);
    for (size_t len = 0; len < sizeof(buf); len++) {
        assert_int_not_equal(image_header_parse(&header, buf, len), IMAGE_OK);
    }
}

static void expect_no_flip(uint8_t *buf, size_t len)
{
    struct image_header header;

    for (size_t bit = 0; bit < 8 * len; bit++) {
        buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(image_header_parse(&header, buf, IMAGE_HEADER_LEN),
                         bit < 64 ? IMAGE_EMPTY : IMAGE_HEADER_CRC);
        buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void test_image_header_refuses_every_bit_flip(void **state)
{
    uint8_t buf[IMAGE_HEADER_LEN];

    (void)state;
    emit_sample(buf);
    expect_no_flip(buf, IMAGE_HEADER_LEN_1);
    image_header_emit(&sample_2, buf);
    expect_no_flip(buf, IMAGE_HEADER_LEN);
}

static void test_image_header_of_version_2_survives_the_round_trip(void **state)
{
    uint8_t buf[IMAGE_HEADER_LEN];
    struct image_header header;

    (void)state;
    memset(buf, 0xa5, sizeof(buf));
    image_header_emit(&sample_2, buf);
    assert_int_equal(image_header_parse(&header, buf, sizeof(buf)), IMAGE_OK);
    assert_memory_equal(&header, &sample_2, sizeof(header));
    assert_memory_equal(buf + 8, "\2\0\0\0\7\0\0\0", 8);
    assert_memory_equal(buf + 72, "ESSD\x9\0\0\0\1\0\0\0\0", 13);
    assert_memory_equal(buf + 96, "\1\2\3\0", 4);
    assert_memory_equal(buf + 160, "\4\5\6\0", 4);
}

static void test_an_image_for_another_board_is_refused(void **state)
{
    uint8_t buf[IMAGE_HEADER_LEN];
    struct image_header header = sample_2;

    (void)state;
    header.board = IMAGE_BOARD + 1;
    image_header_emit(&header, buf);
    assert_int_equal(image_header_parse(&header, buf, sizeof(buf)),
                     IMAGE_OTHER_BOARD);
}

static void test_the_signature_does_not_cover_the_sequence(void **state)
{
    uint8_t buf[IMAGE_HEADER_LEN];
    uint8_t before[IMAGE_SIGNED_LEN], after[IMAGE_SIGNED_LEN];
    struct image_header header;

    (void)state;
    image_header_emit(&sample_2, buf);
    image_header_signed_bytes(buf, before);
    image_header_set_sequence(buf, 1234);
    assert_int_equal(image_header_parse(&header, buf, sizeof(buf)), IMAGE_OK);
    assert_int_equal(header.sequence, 1234);
    image_header_signed_bytes(buf, after);
    assert_memory_equal(before, after, sizeof(before));
}

static void test_image_header_refuses_another_format(void **state)
{
    uint8_t buf[IMAGE_HEADER_LEN];
    struct image_header header;

    (void)state;
    emit_sample(buf);
    put_le32(buf + 8, 3);
    put_le32(buf + 252, crc32_update(0, buf, 252));
    assert_int_equal(image_header_parse(&header, buf, sizeof(buf)),
                     IMAGE_VERSION);
}

static void test_image_header_of_erased_flash_is_empty(void **state)
{
    uint8_t buf[IMAGE_HEADER_LEN];
    struct image_header header;

    (void)state;
    memset(buf, 0xff, sizeof(buf));
    assert_int_equal(image_header_parse(&header, buf, sizeof(buf)),
                     IMAGE_EMPTY);
}

static void test_image_has_to_fit(void **state)
{
    const uint32_t slot = FLASH_SLOT_SIZE - FLASH_SLOT_IMAGE_OFFSET;
    const uint64_t high = UINT64_MAX - 3;
    static const struct {
        uint64_t load_addr, entry;
        uint32_t len_bytes;
        bool fits;
    } row[] = {
        {DRAM, DRAM, 4, true},
        {DRAM, DRAM + 4, 8, true},
        {DRAM + DRAM_BYTES - 8, DRAM + DRAM_BYTES - 8, 8, true},
        {DRAM, DRAM, 0, false},
        {DRAM, DRAM - 4, 8, false},
        {DRAM, DRAM + 8, 8, false},
        {DRAM, DRAM + 2, 8, false},
        {DRAM - 4, DRAM, 8, false},
        {DRAM + DRAM_BYTES - 4, DRAM + DRAM_BYTES - 4, 8, false},
        {DRAM + DRAM_BYTES, DRAM + DRAM_BYTES, 4, false},
        {0, 0, 4, false},
    };
    struct image_header header;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        header = (struct image_header){.load_addr = row[i].load_addr,
                                       .entry = row[i].entry,
                                       .len_bytes = row[i].len_bytes};
        assert_int_equal(image_header_fits(&header, DRAM, DRAM_BYTES),
                         row[i].fits);
    }
    header =
        (struct image_header){.load_addr = high, .entry = high, .len_bytes = 8};
    assert_false(image_header_fits(&header, DRAM, DRAM_BYTES));
    header = (struct image_header){
        .load_addr = DRAM, .entry = DRAM, .len_bytes = slot};
    assert_true(image_header_fits(&header, DRAM, DRAM_BYTES));
    header.len_bytes = slot + 1;
    assert_false(image_header_fits(&header, DRAM, DRAM_BYTES));
}
