/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/image.h"

#include "firmware/store/flash_layout.h"
#include "lib/bytes.h"
#include "lib/crc32.h"

#include <string.h>

enum {                  /* byte offsets; little-endian */
       IMAGE_MAGIC = 0, /* 8 bytes */
       IMAGE_FORMAT = 8,
       IMAGE_SEQUENCE = 12,
       IMAGE_LOAD_ADDR = 16,
       IMAGE_ENTRY = 24,
       IMAGE_LENGTH = 32,
       IMAGE_CRC = 36,
       IMAGE_NAME = 40,     /* IMAGE_VERSION_LEN bytes, zero-padded */
       IMAGE_RESERVED = 72, /* zero */
       IMAGE_HEADER_CRC_AT = 124,
};
_Static_assert(IMAGE_NAME + IMAGE_VERSION_LEN == IMAGE_RESERVED, "no gap");
_Static_assert(IMAGE_HEADER_CRC_AT + 4 == IMAGE_HEADER_LEN, "CRC comes last");

static const uint8_t magic[8] = {'E', 'S', 'S', 'D', '-', 'I', 'M', 'G'};

#define FORMAT 1

enum image_check image_header_parse(struct image_header *header,
                                    const uint8_t *buf, size_t len)
{
    if (len < IMAGE_HEADER_LEN) {
        return IMAGE_HEADER_CRC;
    }
    if (memcmp(buf + IMAGE_MAGIC, magic, sizeof(magic)) != 0) {
        return IMAGE_EMPTY;
    }
    if (crc32_update(0, buf, IMAGE_HEADER_CRC_AT) !=
        get_le32(buf + IMAGE_HEADER_CRC_AT)) {
        return IMAGE_HEADER_CRC;
    }
    if (get_le32(buf + IMAGE_FORMAT) != FORMAT) {
        return IMAGE_VERSION;
    }
    *header = (struct image_header){
        .sequence = get_le32(buf + IMAGE_SEQUENCE),
        .load_addr = get_le64(buf + IMAGE_LOAD_ADDR),
        .entry = get_le64(buf + IMAGE_ENTRY),
        .len_bytes = get_le32(buf + IMAGE_LENGTH),
        .image_crc = get_le32(buf + IMAGE_CRC),
    };
    memcpy(header->version, buf + IMAGE_NAME, IMAGE_VERSION_LEN);
    return IMAGE_OK;
}

void image_header_emit(const struct image_header *header, uint8_t *buf)
{
    memset(buf, 0, IMAGE_HEADER_LEN);
    memcpy(buf + IMAGE_MAGIC, magic, sizeof(magic));
    put_le32(buf + IMAGE_FORMAT, FORMAT);
    put_le32(buf + IMAGE_SEQUENCE, header->sequence);
    put_le64(buf + IMAGE_LOAD_ADDR, header->load_addr);
    put_le64(buf + IMAGE_ENTRY, header->entry);
    put_le32(buf + IMAGE_LENGTH, header->len_bytes);
    put_le32(buf + IMAGE_CRC, header->image_crc);
    memcpy(buf + IMAGE_NAME, header->version, IMAGE_VERSION_LEN);
    put_le32(buf + IMAGE_HEADER_CRC_AT,
             crc32_update(0, buf, IMAGE_HEADER_CRC_AT));
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
