/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data of IDENTIFY DEVICE.
 * Spec: ATA/ATAPI-7 section 6.17.
 */
#include "nvmeof/aoe/aoe_state.h"

#include <string.h>

#include "lib/bytes.h"

enum { /* word numbers */
       WORD_CONFIGURATION = 0,
       WORD_SERIAL = 10,   /* 20 characters */
       WORD_FIRMWARE = 23, /* 8 */
       WORD_MODEL = 27,    /* 40 */
       WORD_CAPABILITIES = 49,
       WORD_CAPABILITIES_2 = 50,
       WORD_SECTORS_28 = 60, /* two words */
       WORD_MAJOR_VERSION = 80,
       WORD_SUPPORTED = 82, /* three words; the same three are enabled */
       WORD_ENABLED = 85,
       WORD_SECTORS_48 = 100,   /* four words */
       WORD_SECTOR_SIZES = 106, /* physical and logical */
       WORD_CHECKSUM = 255,
};

enum {
    CONFIGURATION_FIXED = 0x0040,
    CAPABILITY_DMA_LBA = 0x0300,
    CAPABILITY_ONE = 0x4000, /* bits that are 1 in every such word */
    VERSION_ATA_7 = 0x00f0,  /* ATA-4 to ATA-7 */
    SUPPORTS_LBA48 = 0x0400,
    SUPPORTS_FLUSH = 0x3000, /* FLUSH CACHE and FLUSH CACHE EXT */
    SIZES_PHYSICAL = 0x6000, /* the low bits are valid: physical sectors have
                              * 2^n logical ones */
    SECTOR_SHIFT = 9,
    CHECKSUM_SIGNATURE = 0xa5,
};

#define SECTORS_28_MAX 0x0fffffffu

static void put_word(uint8_t *data, unsigned int word, uint16_t value)
{
    put_le16(data + 2 * (size_t)word, value);
}

/* The first character of a word is in its upper byte. */
static void put_text(uint8_t *data, unsigned int word, size_t len,
                     const char *text)
{
    size_t have = strnlen(text, len);

    for (size_t i = 0; i < len; i++) {
        data[2 * (size_t)word + (i ^ 1)] = (uint8_t)(i < have ? text[i] : ' ');
    }
}

static void put_checksum(uint8_t *data)
{
    uint8_t sum = CHECKSUM_SIGNATURE;

    data[2 * WORD_CHECKSUM] = CHECKSUM_SIGNATURE;
    for (size_t i = 0; i < 2 * WORD_CHECKSUM; i++) {
        sum = (uint8_t)(sum + data[i]);
    }
    data[2 * WORD_CHECKSUM + 1] = (uint8_t)-sum;
}

/* The serial number with the number of the namespace, since each is a disk. */
static void put_serial(uint8_t *data, const char *sn, uint32_t nsid)
{
    char text[21] = {0};
    size_t len = strnlen(sn, sizeof(text) - 5);

    memcpy(text, sn, len);
    text[len++] = '-';
    for (uint32_t unit = 100; unit != 0; unit /= 10) {
        text[len++] = (char)('0' + nsid / unit % 10);
    }
    put_text(data, WORD_SERIAL, 20, text);
}

void aoe_identify(const struct aoe *aoe, const struct nvmf_ns_blocks *blocks,
                  uint32_t nsid, uint8_t *data)
{
    const struct nvmf_config *config = nvmf_target_config(aoe->config.target);
    uint16_t sets = SUPPORTS_LBA48 | SUPPORTS_FLUSH;

    memset(data, 0, AOE_IDENTIFY_LEN);
    put_word(data, WORD_CONFIGURATION, CONFIGURATION_FIXED);
    put_serial(data, config->sn, nsid);
    put_text(data, WORD_FIRMWARE, 8, config->fr);
    put_text(data, WORD_MODEL, 40, config->mn);
    put_word(data, WORD_CAPABILITIES, CAPABILITY_DMA_LBA);
    put_word(data, WORD_CAPABILITIES_2, CAPABILITY_ONE);
    put_le32(data + 2 * WORD_SECTORS_28,
             (uint32_t)MIN(blocks->size_blocks, SECTORS_28_MAX));
    put_word(data, WORD_MAJOR_VERSION, VERSION_ATA_7);
    put_word(data, WORD_SUPPORTED + 1, sets | CAPABILITY_ONE);
    put_word(data, WORD_SUPPORTED + 2, CAPABILITY_ONE);
    put_word(data, WORD_ENABLED + 1, sets);
    put_word(data, WORD_ENABLED + 2, CAPABILITY_ONE);
    put_le64(data + 2 * WORD_SECTORS_48, blocks->size_blocks);
    if (blocks->atomic_shift > SECTOR_SHIFT) {
        put_word(
            data, WORD_SECTOR_SIZES,
            (uint16_t)(SIZES_PHYSICAL | (blocks->atomic_shift - SECTOR_SHIFT)));
    }
    put_checksum(data);
}
