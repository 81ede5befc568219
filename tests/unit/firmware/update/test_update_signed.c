/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A drive with a key starts and accepts signed images only.  The signature was
 * made by OpenSSL 3.0 with the key of RFC 8032 section 7.1, test 1, through
 * tools/essd/storage/image.py, for the image that bed_make_image("signed")
 * makes.
 */
#include "update_bed.h"

#include <string.h>

#include "firmware/store/flash_layout.h"
#include "lib/bytes.h"
#include "lib/crc32.h"
#include "tests/test_fixture.h"

enum { CRC_AT = 36, SECURITY_AT = 76, FLAGS_AT = 80, SIGNATURE_AT = 160 };

static const uint8_t key[SIGNATURE_KEY_LEN] = {
    0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe,
    0xd3, 0xc9, 0x64, 0x07, 0x3a, 0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6,
    0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a};

static const uint8_t signature[IMAGE_SIGNATURE_LEN] = {
    0x6f, 0xf5, 0x9c, 0xe5, 0xfa, 0xa4, 0x3a, 0xb6, 0x98, 0x80, 0xac,
    0x84, 0x6f, 0x8f, 0xe2, 0xc7, 0xa9, 0xe2, 0xf1, 0x3e, 0x63, 0xb1,
    0xa0, 0x37, 0x61, 0x5c, 0xd5, 0xab, 0x39, 0x20, 0x78, 0x76, 0xa0,
    0xeb, 0x43, 0x65, 0x37, 0x59, 0xba, 0x1b, 0xf7, 0x08, 0x84, 0xfd,
    0xba, 0x6e, 0x65, 0xeb, 0xd3, 0x0d, 0xa8, 0x1f, 0x86, 0x21, 0x1f,
    0x78, 0x89, 0x9e, 0xb2, 0xb6, 0x16, 0x8f, 0x84, 0x0e};

TEST_FIXTURE(begin_test, end_test)

static struct update_bed bed;

static void make_signed_file(void)
{
    bed_make_file(&bed, "signed");
    memcpy(bed.file + SIGNATURE_AT, signature, sizeof(signature));
    bed_put_header(&bed, FLAGS_AT, 1);
}

static void set_signed_slot(uint8_t slot)
{
    struct image_header header;

    make_signed_file();
    assert_int_equal(image_header_parse(&header, bed.file, IMAGE_HEADER_LEN),
                     IMAGE_OK);
    header.sequence = slot == 1 ? 2 : 1;
    flash_ram_set_slot(&bed.ram, slot, &header, bed.file + 4096);
}

/* Both slots hold a signed image, and A runs. */
static int begin_test(void **state)
{
    (void)state;
    bed_begin(&bed);
    bed.key = key;
    set_signed_slot(1);
    set_signed_slot(2);
    bed_restart(&bed);
    assert_int_equal(bed.running, 1);
    assert_string_equal(bed_version(&bed), "signed");
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    bed_end(&bed);
    return 0;
}

static void test_a_signed_image_is_stored_and_starts(void **state)
{
    (void)state;
    make_signed_file();
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_OK);
    bed_restart(&bed);
    assert_int_equal(bed.running, 2);
    assert_string_equal(bed_version(&bed), "signed");
}

static void test_an_image_without_a_right_signature_is_refused(void **state)
{
    (void)state;
    bed_make_file(&bed, "new");
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_INVALID);
    make_signed_file();
    bed_put_header(&bed, SIGNATURE_AT, 0);
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_INVALID);
    make_signed_file();
    bed_put_header(&bed, FLAGS_AT, 0);
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_INVALID);
    /* Version 1 has no signature. */
    make_signed_file();
    put_le32(bed.file + 8, 1);
    put_le32(bed.file + 124, crc32_update(0, bed.file, 124));
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_INVALID);
    assert_true(bed_has_logged(&bed, "not signed with the key"));
}

static uint32_t crc_with_end(uint8_t *image, uint32_t end)
{
    put_le32(image + BED_IMAGE_BYTES - 4, end);
    return crc32_update(0, image, BED_IMAGE_BYTES);
}

/*
 * Change the last four bytes so that the image has the CRC `want`.  A CRC is a
 * linear function of the bits, so this solves 32 equations by elimination.
 */
static void forge_crc(uint8_t *image, uint32_t want)
{
    uint32_t zero = crc_with_end(image, 0);
    uint32_t left = want ^ zero, end = 0;
    uint32_t effect[32], bits[32];

    for (unsigned int i = 0; i < 32; i++) {
        effect[i] = crc_with_end(image, BIT(i)) ^ zero;
        bits[i] = BIT(i);
    }
    for (unsigned int i = 0; i < 32; i++) {
        uint32_t top = effect[i] & -effect[i]; /* its lowest bit */

        for (unsigned int n = 0; n < 32; n++) {
            if (n != i && (effect[n] & top) != 0) {
                effect[n] ^= effect[i];
                bits[n] ^= bits[i];
            }
        }
    }
    for (unsigned int i = 0; i < 32; i++) {
        end ^= left & effect[i] & -effect[i] ? bits[i] : 0;
    }
    assert_int_equal(crc_with_end(image, end), want);
}

static void test_an_image_with_the_right_crc_and_another_hash_is_refused(
    void **state)
{
    struct image_header header;

    (void)state;
    make_signed_file();
    assert_int_equal(image_header_parse(&header, bed.file, IMAGE_HEADER_LEN),
                     IMAGE_OK);
    bed.file[4096 + 17] ^= 1;
    forge_crc(bed.file + 4096, header.image_crc);
    bed_expect_commit(&bed, 2, true, true, NVMF_FIRMWARE_INVALID);
    /* If a slot holds this image, it does not start. */
    header.sequence = 9;
    flash_ram_set_slot(&bed.ram, 2, &header, bed.file + 4096);
    bed_restart(&bed);
    assert_int_equal(bed.running, 1);
    assert_int_equal(bed.slots.slot[1].verdict, SYSCTL_VERDICT_SIGNATURE);
    bed_expect_commit(&bed, 2, false, true, NVMF_FIRMWARE_INVALID);
}

static void test_a_slot_with_another_hash_is_no_way_back(void **state)
{
    struct image_header header;

    (void)state;
    make_signed_file();
    assert_int_equal(image_header_parse(&header, bed.file, IMAGE_HEADER_LEN),
                     IMAGE_OK);
    bed.file[4096 + 17] ^= 1;
    forge_crc(bed.file + 4096, header.image_crc);
    header.sequence = 1;
    flash_ram_set_slot(&bed.ram, 2, &header, bed.file + 4096);
    bed_restart(&bed);
    make_signed_file();
    bed_expect_commit(&bed, 1, true, true, NVMF_FIRMWARE_READ_ONLY);
}

static void test_an_unsigned_slot_does_not_start(void **state)
{
    (void)state;
    for (uint8_t slot = 1; slot <= SLOT_COUNT; slot++) {
        struct image_header header;

        bed_make_file(&bed, "new");
        assert_int_equal(
            image_header_parse(&header, bed.file, IMAGE_HEADER_LEN), IMAGE_OK);
        header.sequence = 9;
        flash_ram_set_slot(&bed.ram, slot, &header, bed.file + 4096);
        bed_restart(&bed);
        assert_int_equal(bed.running, slot == 1 ? 2 : 0);
        assert_int_equal(bed.slots.slot[slot - 1].verdict,
                         SYSCTL_VERDICT_SIGNATURE);
    }
}

/* The record is lost, and the flash takes no new one. */
static void test_a_refused_image_does_not_raise_the_floor(void **state)
{
    struct image_header header;

    (void)state;
    make_signed_file();
    bed_expect_commit(&bed, 2, true, false, NVMF_FIRMWARE_OK);
    bed_make_file(&bed, "new");
    bed_put_header(&bed, SECURITY_AT, 7);
    assert_int_equal(image_header_parse(&header, bed.file, IMAGE_HEADER_LEN),
                     IMAGE_OK);
    flash_ram_set_slot(&bed.ram, 2, &header, bed.file + 4096);
    bed.ram.inverted[FLASH_SLOT_RECORD_ADDR] ^= 1;
    bed.ram.inverted[FLASH_SLOT_RECORD_MIRROR] ^= 1;
    bed.ram.limit = bed.ram.written;
    bed_restart(&bed);
    bed.ram.limit = UINT64_MAX;
    log_flush(&bed.log);
    assert_true(bed_has_logged(&bed, "of the slots in flash was damaged"));
    assert_int_equal(bed.running, 1);
    assert_int_equal(bed.slots.slot[1].verdict, SYSCTL_VERDICT_SIGNATURE);
    assert_int_equal(update_slots_security(&bed.updater.slots), 0);
}
