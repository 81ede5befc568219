/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/image.h"

#include "firmware/store/flash_layout.h"
#include "lib/bytes.h"
#include "lib/crc32.h"

#include <string.h>

enum {                      /* byte offsets; little-endian */
       IMAGE_MAGIC = 0,     /* 8 bytes */
       IMAGE_FORMAT = 8,    /* version of the header, 4 bytes as the next one */
       IMAGE_SEQUENCE = 12, /* set by the writer of a slot; 0 in a file, and in
                             * a slot whose image was only stored */
       IMAGE_LOAD_ADDR = 16, /* 8 bytes */
       IMAGE_ENTRY = 24,     /* 8 bytes */
       IMAGE_LENGTH = 32,    /* 4 bytes: of the image */
       IMAGE_CRC = 36,       /* 4 bytes: of the image */
       IMAGE_NAME = 40,      /* firmware version: IMAGE_VERSION_LEN bytes,
                              * zero-padded */
       IMAGE_CRC_AT_1 = 124, /* version 1: CRC of what is before */
       /* Version 2. */
       IMAGE_BOARD_AT = 72, /* 4 bytes: IMAGE_BOARD */
       IMAGE_SECURITY = 76, /* 4 bytes: security version */
       IMAGE_FLAGS = 80,    /* 4 bytes: FLAG_SIGNED */
       IMAGE_HASH = 96,
       IMAGE_SIGNATURE = 160,
       IMAGE_MADE_HERE = 224, /* 1 byte: 1 if the tool that makes flash images
                               * has written the slot, 0 if an update has */
       IMAGE_CRC_AT_2 = 252,  /* of the 252 bytes before */

       FLAG_SIGNED = 1,
};
_Static_assert(IMAGE_CRC_AT_1 + 4 == IMAGE_HEADER_LEN_1, "CRC comes last");
_Static_assert(IMAGE_HASH + IMAGE_HASH_LEN == IMAGE_SIGNED_LEN, "no gap");
_Static_assert(IMAGE_SIGNATURE == IMAGE_SIGNED_LEN, "no gap");
_Static_assert(IMAGE_CRC_AT_2 + 4 == IMAGE_HEADER_LEN, "CRC comes last");

static const uint8_t magic[8] = {'E', 'S', 'S', 'D', '-', 'I', 'M', 'G'};

enum { FORMAT_1 = 1, FORMAT_2 = 2 };

/* Where the CRC is in the header that begins here. */
static size_t crc_offset(const uint8_t *buf)
{
    return get_le32(buf + IMAGE_FORMAT) >= FORMAT_2 ? (size_t)IMAGE_CRC_AT_2
                                                    : (size_t)IMAGE_CRC_AT_1;
}

static void parse_version_2(struct image_header *header, const uint8_t *buf)
{
    header->board = get_le32(buf + IMAGE_BOARD_AT);
    header->security = get_le32(buf + IMAGE_SECURITY);
    header->is_signed = get_le32(buf + IMAGE_FLAGS) & FLAG_SIGNED;
    memcpy(header->hash, buf + IMAGE_HASH, IMAGE_HASH_LEN);
    memcpy(header->signature, buf + IMAGE_SIGNATURE, IMAGE_SIGNATURE_LEN);
}

static bool is_printable(uint8_t c)
{
    return c >= ' ' && c <= '~';
}

/* The version is printed on consoles, so it must not control them. */
static void parse_version_text(struct image_header *header, const uint8_t *text)
{
    size_t len = 0;

    while (len < IMAGE_VERSION_LEN && text[len] != '\0') {
        bool is_good = is_printable(text[len]);

        header->version[len] = is_good ? (char)text[len] : '?';
        header->has_bad_version = header->has_bad_version || !is_good;
        len++;
    }
    header->has_bad_version = header->has_bad_version || len == 0;
    while (len < IMAGE_VERSION_LEN) {
        header->has_bad_version = header->has_bad_version || text[len] != '\0';
        len++;
    }
}

enum image_check image_header_parse(struct image_header *header,
                                    const uint8_t *buf, size_t len)
{
    uint32_t format;

    if (len < IMAGE_HEADER_LEN) {
        return IMAGE_HEADER_CRC;
    }
    if (memcmp(buf + IMAGE_MAGIC, magic, sizeof(magic)) != 0) {
        return IMAGE_EMPTY;
    }
    if (crc32_update(0, buf, crc_offset(buf)) !=
        get_le32(buf + crc_offset(buf))) {
        return IMAGE_HEADER_CRC;
    }
    format = get_le32(buf + IMAGE_FORMAT);
    if (format != FORMAT_1 && format != FORMAT_2) {
        return IMAGE_VERSION;
    }
    *header = (struct image_header){
        .format = (uint8_t)format,
        .sequence = get_le32(buf + IMAGE_SEQUENCE),
        .load_addr = get_le64(buf + IMAGE_LOAD_ADDR),
        .entry = get_le64(buf + IMAGE_ENTRY),
        .len_bytes = get_le32(buf + IMAGE_LENGTH),
        .image_crc = get_le32(buf + IMAGE_CRC),
    };
    parse_version_text(header, buf + IMAGE_NAME);
    if (format == FORMAT_2) {
        parse_version_2(header, buf);
        return header->board == IMAGE_BOARD ? IMAGE_OK : IMAGE_OTHER_BOARD;
    }
    return IMAGE_OK;
}

void image_header_emit(const struct image_header *header, uint8_t *buf)
{
    memset(buf, 0, IMAGE_HEADER_LEN);
    memcpy(buf + IMAGE_MAGIC, magic, sizeof(magic));
    put_le32(buf + IMAGE_FORMAT, header->format);
    put_le32(buf + IMAGE_SEQUENCE, header->sequence);
    put_le64(buf + IMAGE_LOAD_ADDR, header->load_addr);
    put_le64(buf + IMAGE_ENTRY, header->entry);
    put_le32(buf + IMAGE_LENGTH, header->len_bytes);
    put_le32(buf + IMAGE_CRC, header->image_crc);
    memcpy(buf + IMAGE_NAME, header->version, IMAGE_VERSION_LEN);
    if (header->format == FORMAT_2) {
        put_le32(buf + IMAGE_BOARD_AT, header->board);
        put_le32(buf + IMAGE_SECURITY, header->security);
        put_le32(buf + IMAGE_FLAGS, header->is_signed ? FLAG_SIGNED : 0);
        memcpy(buf + IMAGE_HASH, header->hash, IMAGE_HASH_LEN);
        memcpy(buf + IMAGE_SIGNATURE, header->signature, IMAGE_SIGNATURE_LEN);
    }
    image_header_set_sequence(buf, header->sequence);
}

void image_header_set_sequence(uint8_t *buf, uint32_t sequence)
{
    put_le32(buf + IMAGE_SEQUENCE, sequence);
    if (get_le32(buf + IMAGE_FORMAT) == FORMAT_2) {
        buf[IMAGE_MADE_HERE] = 0;
    }
    put_le32(buf + crc_offset(buf), crc32_update(0, buf, crc_offset(buf)));
}

void image_header_signed_bytes(const uint8_t *buf,
                               uint8_t signed_bytes[IMAGE_SIGNED_LEN])
{
    memcpy(signed_bytes, buf, IMAGE_SIGNED_LEN);
    put_le32(signed_bytes + IMAGE_SEQUENCE, 0);
}

bool image_header_fits(const struct image_header *header, uint64_t dram_addr,
                       uint64_t dram_bytes)
{
    return header->len_bytes > 0 &&
           header->len_bytes <= FLASH_SLOT_SIZE - FLASH_SLOT_IMAGE_OFFSET &&
           header->load_addr >= dram_addr &&
           header->load_addr - dram_addr <= dram_bytes &&
           header->len_bytes <= dram_bytes - (header->load_addr - dram_addr) &&
           header->entry >= header->load_addr &&
           header->entry - header->load_addr < header->len_bytes &&
           header->entry % 4 == 0;
}
