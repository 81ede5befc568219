/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/update/update_image.h"

#include "firmware/drivers/flash.h"
#include "firmware/store/flash_layout.h"

static enum update_verdict verdict_of(enum image_check check)
{
    static const uint8_t verdicts[] = {
        [IMAGE_OK] = UPDATE_GOOD,
        [IMAGE_EMPTY] = UPDATE_NO_IMAGE,
        [IMAGE_HEADER_CRC] = UPDATE_HEADER_CRC,
        [IMAGE_VERSION] = UPDATE_HEADER,
        [IMAGE_OTHER_BOARD] = UPDATE_BOARD,
    };

    return (enum update_verdict)verdicts[check];
}

/* The length of the image's file: header sector and image, in whole sectors. */
static uint64_t file_len(const struct image_header *header)
{
    uint64_t len = FLASH_SLOT_IMAGE_OFFSET + (uint64_t)header->len_bytes;

    return (len + FLASH_SECTOR_BYTES - 1) / FLASH_SECTOR_BYTES *
           FLASH_SECTOR_BYTES;
}

enum update_verdict update_check_slot_header(const struct update_rules *rules,
                                             const uint8_t *buf,
                                             const struct image_header *header)
{
    if (rules->key != NULL && !signature_is_good(header, buf, rules->key)) {
        return UPDATE_SIGNATURE;
    }
    return header->security < rules->security ? UPDATE_SECURITY : UPDATE_GOOD;
}

enum update_verdict update_check_header(const struct update_rules *rules,
                                        const uint8_t *buf, uint32_t len,
                                        struct image_header *header)
{
    enum update_verdict verdict =
        len < FLASH_SLOT_IMAGE_OFFSET
            ? UPDATE_NO_IMAGE
            : verdict_of(image_header_parse(header, buf, IMAGE_HEADER_LEN));

    if (verdict != UPDATE_GOOD) {
        return verdict;
    }
    if (!image_header_fits(header, rules->dram_addr, rules->dram_bytes)) {
        return UPDATE_RANGE;
    }
    if (len != file_len(header)) {
        return UPDATE_LENGTH;
    }
    if (header->has_bad_version) {
        return UPDATE_TEXT;
    }
    return update_check_slot_header(rules, buf, header);
}

const char *update_verdict_text(enum update_verdict verdict)
{
    static const char *const text[UPDATE_VERDICTS] = {
        [UPDATE_GOOD] = "is good",
        [UPDATE_NO_IMAGE] = "does not begin with the header of an image",
        [UPDATE_HEADER_CRC] = "has a header with a wrong CRC",
        [UPDATE_HEADER] = "has a header of an unknown version",
        [UPDATE_BOARD] = "is made for another board",
        [UPDATE_TEXT] =
            "has a version that is not 1 to 32 printable characters",
        [UPDATE_RANGE] = "does not fit into the slot or into the DRAM",
        [UPDATE_LENGTH] = "has another length than its header says",
        [UPDATE_CRC] = "has a wrong CRC",
        [UPDATE_SIGNATURE] = "is not signed with the key of this drive",
        [UPDATE_SECURITY] = "has a security version that is too low",
    };

    return text[verdict];
}
