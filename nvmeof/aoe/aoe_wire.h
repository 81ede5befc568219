/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frames of ATA over Ethernet, without their Ethernet header.
 * Spec: AoE (Ethernet Drive Protocol) revision 11, sections 2 and 3.
 *
 * Left out: commands of vendors (F0h and above), which count as unknown.
 */
#ifndef ESSD_NVMEOF_AOE_WIRE_H
#define ESSD_NVMEOF_AOE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum { /* byte offsets; big-endian where nothing else is said */
       /* the header of all frames */
       AOE_FLAGS = 0, /* version:4 response:1 error:1 reserved:2, from the top
                       * bit */
       AOE_ERROR = 1,
       AOE_MAJOR = 2,
       AOE_MINOR = 4,
       AOE_COMMAND = 5,
       AOE_TAG = 6,
       AOE_HEADER_LEN = 10,

       /* ATA commands; these offsets and the ones below follow the header */
       AOE_ATA_FLAGS = 0,
       AOE_ATA_FEATURE = 1, /* in an answer: the error register */
       AOE_ATA_COUNT = 2,
       AOE_ATA_COMMAND = 3, /* in an answer: the status register */
       AOE_ATA_LBA = 4,     /* 6 bytes, little-endian */
       AOE_ATA_LEN = 12,    /* the last two bytes are reserved */

       /* Query Config Information */
       AOE_CONFIG_BUFFERS = 0,
       AOE_CONFIG_FIRMWARE = 2,
       AOE_CONFIG_SECTORS = 4,
       AOE_CONFIG_COMMAND = 5, /* version:4 command:4 */
       AOE_CONFIG_LENGTH = 6,
       AOE_CONFIG_LEN = 8, /* the string follows */

       /* MAC Mask List */
       AOE_MASK_COMMAND = 1,
       AOE_MASK_ERROR = 2,
       AOE_MASK_COUNT = 3,
       AOE_MASK_LEN = 4, /* directives follow */
       AOE_DIRECTIVE_COMMAND = 1,
       AOE_DIRECTIVE_MAC = 2,
       AOE_DIRECTIVE_LEN = 8,

       /* Reserve/Release */
       AOE_RESERVE_COMMAND = 0,
       AOE_RESERVE_COUNT = 1,
       AOE_RESERVE_LEN = 2, /* MAC addresses follow */

       AOE_MAC_LEN = 6,
};

enum {
    AOE_VERSION = 1,
    AOE_MAJOR_ALL = 0xffff, /* addresses all shelves */
    AOE_MINOR_ALL = 0xff,   /* addresses all devices of a shelf */
    AOE_STRING_MAX = 1024,
    AOE_SECTOR_LEN = 512,
};

enum aoe_command {
    AOE_ATA = 0,
    AOE_CONFIG = 1,
    AOE_MASK = 2,
    AOE_RESERVE = 3,
};

enum aoe_error {
    AOE_ERROR_NONE = 0,
    AOE_ERROR_COMMAND = 1,  /* unknown command */
    AOE_ERROR_ARGUMENT = 2, /* bad argument */
    AOE_ERROR_DEVICE = 3,   /* the device is not available */
    AOE_ERROR_STRING = 4,   /* there is a config string already */
    AOE_ERROR_VERSION = 5,  /* unsupported version */
    AOE_ERROR_RESERVED = 6, /* the target is reserved */
};

enum aoe_config_command {
    AOE_CONFIG_READ = 0,
    AOE_CONFIG_TEST = 1,   /* answer if the string is this one */
    AOE_CONFIG_PREFIX = 2, /* answer if the string begins with this one */
    AOE_CONFIG_SET = 3,    /* set it if it is empty */
    AOE_CONFIG_FORCE = 4,  /* set it */
};

enum aoe_mask_command { AOE_MASK_READ = 0, AOE_MASK_EDIT = 1 };

enum aoe_directive { AOE_MAC_NOTHING = 0, AOE_MAC_ADD = 1, AOE_MAC_DELETE = 2 };

enum aoe_mask_error { AOE_MASK_BAD = 2, AOE_MASK_FULL = 3 };

enum aoe_reserve_command {
    AOE_RESERVE_READ = 0,
    AOE_RESERVE_SET = 1,
    AOE_RESERVE_FORCE = 2,
};

struct aoe_header {
    uint8_t version;
    bool is_response;
    uint8_t error; /* enum aoe_error; not 0 sets the error flag */
    uint16_t major;
    uint8_t minor;
    uint8_t command;
    uint32_t tag;
};

/** @return false when the frame is too short */
MUST_USE bool aoe_header_parse(struct aoe_header *header, const uint8_t *buf,
                               size_t len);

/** Write AOE_HEADER_LEN bytes. */
void aoe_header_emit(uint8_t *buf, const struct aoe_header *header);

/* The registers of an ATA command, or of its end. */
struct aoe_ata {
    bool is_lba48;  /* flag E: all six bytes of the LBA count */
    bool is_async;  /* flag A: a write may be answered before it is done */
    bool is_write;  /* flag W: data follows in the request */
    bool is_device; /* flag D, of the device register */
    uint8_t feature;
    uint8_t count;
    uint8_t command;
    uint64_t lba; /* the six bytes; lba28() of an old command */
};

/** @param buf  what follows the header.  @return false when it is too short */
MUST_USE bool aoe_ata_parse(struct aoe_ata *ata, const uint8_t *buf,
                            size_t len);

/** Write AOE_ATA_LEN bytes. */
void aoe_ata_emit(uint8_t *buf, const struct aoe_ata *ata);

struct aoe_query {
    uint16_t buffers;  /* frames that the target keeps for a host */
    uint16_t firmware; /* version of the firmware */
    uint8_t sectors;   /* most sectors in a frame */
    uint8_t command;   /* enum aoe_config_command */
    uint16_t length;   /* of the string, which follows */
};

/** @return false when the frame is too short for it and the string, or the
 * string is too long */
MUST_USE bool aoe_query_parse(struct aoe_query *query, const uint8_t *buf,
                              size_t len);

/** Write AOE_CONFIG_LEN bytes. */
void aoe_query_emit(uint8_t *buf, const struct aoe_query *query);

#endif
