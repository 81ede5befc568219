/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/aoe/aoe_wire.h"

#include <string.h>

#include "lib/bytes.h"

enum {
    FLAG_RESPONSE = 0x08,
    FLAG_ERROR = 0x04,

    ATA_LBA48 = 0x40,
    ATA_DEVICE = 0x10,
    ATA_ASYNC = 0x02,
    ATA_WRITE = 0x01,
};

bool aoe_header_parse(struct aoe_header *header, const uint8_t *buf, size_t len)
{
    if (len < AOE_HEADER_LEN) {
        return false;
    }
    *header = (struct aoe_header){
        .version = buf[AOE_FLAGS] >> 4,
        .is_response = buf[AOE_FLAGS] & FLAG_RESPONSE,
        .error = buf[AOE_FLAGS] & FLAG_ERROR ? buf[AOE_ERROR] : 0,
        .major = get_be16(buf + AOE_MAJOR),
        .minor = buf[AOE_MINOR],
        .command = buf[AOE_COMMAND],
        .tag = get_be32(buf + AOE_TAG),
    };
    return true;
}

void aoe_header_emit(uint8_t *buf, const struct aoe_header *header)
{
    buf[AOE_FLAGS] = (uint8_t)(header->version << 4 |
                               (header->is_response ? FLAG_RESPONSE : 0) |
                               (header->error != 0 ? FLAG_ERROR : 0));
    buf[AOE_ERROR] = header->error;
    put_be16(buf + AOE_MAJOR, header->major);
    buf[AOE_MINOR] = header->minor;
    buf[AOE_COMMAND] = header->command;
    put_be32(buf + AOE_TAG, header->tag);
}

bool aoe_ata_parse(struct aoe_ata *ata, const uint8_t *buf, size_t len)
{
    if (len < AOE_ATA_LEN) {
        return false;
    }
    *ata = (struct aoe_ata){
        .is_lba48 = buf[AOE_ATA_FLAGS] & ATA_LBA48,
        .is_async = buf[AOE_ATA_FLAGS] & ATA_ASYNC,
        .is_write = buf[AOE_ATA_FLAGS] & ATA_WRITE,
        .is_device = buf[AOE_ATA_FLAGS] & ATA_DEVICE,
        .feature = buf[AOE_ATA_FEATURE],
        .count = buf[AOE_ATA_COUNT],
        .command = buf[AOE_ATA_COMMAND],
        .lba = get_le32(buf + AOE_ATA_LBA) |
               (uint64_t)get_le16(buf + AOE_ATA_LBA + 4) << 32,
    };
    return true;
}

void aoe_ata_emit(uint8_t *buf, const struct aoe_ata *ata)
{
    buf[AOE_ATA_FLAGS] = (uint8_t)((ata->is_lba48 ? ATA_LBA48 : 0) |
                                   (ata->is_device ? ATA_DEVICE : 0) |
                                   (ata->is_async ? ATA_ASYNC : 0) |
                                   (ata->is_write ? ATA_WRITE : 0));
    buf[AOE_ATA_FEATURE] = ata->feature;
    buf[AOE_ATA_COUNT] = ata->count;
    buf[AOE_ATA_COMMAND] = ata->command;
    put_le32(buf + AOE_ATA_LBA, (uint32_t)ata->lba);
    put_le16(buf + AOE_ATA_LBA + 4, (uint16_t)(ata->lba >> 32));
    put_le16(buf + AOE_ATA_LBA + 6, 0);
}

bool aoe_query_parse(struct aoe_query *query, const uint8_t *buf, size_t len)
{
    if (len < AOE_CONFIG_LEN) {
        return false;
    }
    *query = (struct aoe_query){
        .buffers = get_be16(buf + AOE_CONFIG_BUFFERS),
        .firmware = get_be16(buf + AOE_CONFIG_FIRMWARE),
        .sectors = buf[AOE_CONFIG_SECTORS],
        .command = buf[AOE_CONFIG_COMMAND] & 0xf,
        .length = get_be16(buf + AOE_CONFIG_LENGTH),
    };
    return query->length <= AOE_STRING_MAX &&
           query->length <= len - AOE_CONFIG_LEN;
}

void aoe_query_emit(uint8_t *buf, const struct aoe_query *query)
{
    put_be16(buf + AOE_CONFIG_BUFFERS, query->buffers);
    put_be16(buf + AOE_CONFIG_FIRMWARE, query->firmware);
    buf[AOE_CONFIG_SECTORS] = query->sectors;
    buf[AOE_CONFIG_COMMAND] = (uint8_t)(AOE_VERSION << 4 | query->command);
    put_be16(buf + AOE_CONFIG_LENGTH, query->length);
}
