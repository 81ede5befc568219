/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The persistent event log: the header of the page, and its events.
 * Spec: NVM Express Base 2.0 section 5.16.1.14.
 *
 * Left out: thermal excursions, since SMART reports them.
 */
#ifndef ESSD_NVMEOF_WIRE_PERSISTENT_EVENT_H
#define ESSD_NVMEOF_WIRE_PERSISTENT_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { /* byte offsets in the header of the page */
       PEL_LID = 0,
       PEL_EVENTS = 4, /* TNEV */
       PEL_LENGTH = 8, /* TLL: with the header */
       PEL_REVISION = 16,
       PEL_HEADER_REST = 18, /* LHL: bytes after the next byte but one */
       PEL_TIMESTAMP = 20,
       PEL_POWER_ON_HOURS = 28, /* 16 bytes */
       PEL_POWER_CYCLES = 44,
       PEL_VID = 52,
       PEL_SSVID = 54,
       PEL_SN = 56,
       PEL_MN = 76,
       PEL_SUBNQN = 116,
       PEL_GENERATION = 372, /* this and the next one: Base 2.0 */
       PEL_CONTEXT = 374,    /* RCI */
       PEL_SUPPORTED = 480,  /* a bit for each type */
       PEL_HEADER_LEN = 512,

       PEL_CONTEXT_PORT = 0x10000,   /* RCPIT: a port of the subsystem */
       PEL_CONTEXT_EXISTS = 0x40000, /* RCE */
};

enum { /* the action, bits 9:8 of dword 10 of Get Log Page */
       PEL_ACTION_SHIFT = 8,
       PEL_READ = 0,
       PEL_ESTABLISH = 1,
       PEL_RELEASE = 2,
       PEL_HEADER = 3, /* establish a context and read the header */
};

enum { /* byte offsets in an event */
       PEL_EVENT_TYPE = 0,
       PEL_EVENT_TYPE_REVISION = 1,
       PEL_EVENT_HEADER_REST = 2, /* EHL: bytes of the header after this one */
       PEL_EVENT_PORT_TYPE = 3,
       PEL_EVENT_CNTLID = 4,
       PEL_EVENT_TIMESTAMP = 6,
       PEL_EVENT_PORT = 14,
       PEL_EVENT_VENDOR_LEN = 20,
       PEL_EVENT_LENGTH = 22, /* of what follows the header */
       PEL_EVENT_HEADER_LEN = 24,
       PEL_EVENT_DATA_MAX = 512,
       PEL_EVENT_MAX = PEL_EVENT_HEADER_LEN + PEL_EVENT_DATA_MAX,

       PEL_EVENT_PORT_TYPE_SUBSYSTEM = 1,
       PEL_EVENT_PORT_TYPE_NONE = 3,
       PEL_EVENT_NO_CNTLID = 0xffff,
};

enum { /* types of events */
       PEL_TYPE_SMART = 0x01,
       PEL_TYPE_FIRMWARE = 0x02, /* Firmware Commit */
       PEL_TYPE_CLOCK = 0x03,
       PEL_TYPE_RESET = 0x04, /* power-on or reset */
       PEL_TYPE_HARDWARE_ERROR = 0x05,
       PEL_TYPE_CHANGE_NS = 0x06,
       PEL_TYPE_FORMAT_START = 0x07,
       PEL_TYPE_FORMAT_END = 0x08,
       PEL_TYPE_SANITIZE_START = 0x09,
       PEL_TYPE_SANITIZE_END = 0x0a,
       PEL_TYPE_SET_FEATURE = 0x0b,
       PEL_TYPE_TELEMETRY = 0x0c,
       PEL_TYPES = 0x0d, /* one more than the last of these */
       PEL_TYPE_VENDOR = 0xde,
};

enum { /* byte offsets in a descriptor; the data of PEL_TYPE_VENDOR is a list of
        * descriptors */
       PEL_VENDOR_CODE = 0,
       PEL_VENDOR_DATA_TYPE = 2,
       PEL_VENDOR_UUID_INDEX = 3,
       PEL_VENDOR_LENGTH = 4, /* of the data that follow */
       PEL_VENDOR_DATA = 6,
};

enum pel_vendor_type {
    PEL_VENDOR_NAME = 1, /* ASCII; only in the first descriptor of an event */
    PEL_VENDOR_TEXT = 2, /* ASCII */
    PEL_VENDOR_BINARY = 3,
};

enum {                       /* byte offsets in the data of PEL_TYPE_FIRMWARE */
       PEL_FIRMWARE_OLD = 0, /* revisions, 8 bytes each */
       PEL_FIRMWARE_NEW = 8,
       PEL_FIRMWARE_ACTION = 16,
       PEL_FIRMWARE_SLOT = 17,
       PEL_FIRMWARE_SCT = 18,
       PEL_FIRMWARE_SC = 19,
       PEL_FIRMWARE_VENDOR = 20, /* 2 bytes */
       /* With two bytes of padding: nvme-cli cannot read a page whose length
        * is no multiple of 4. */
       PEL_FIRMWARE_LEN = 24,

       /* Values of PEL_FIRMWARE_VENDOR: a commit, or an image that was given up
        * when the drive started. */
       PEL_FIRMWARE_COMMITTED = 0,
       PEL_FIRMWARE_GIVEN_UP = 1,
};

enum { /* byte offsets in the data of PEL_TYPE_CLOCK */
       PEL_CLOCK_BEFORE = 0,
       PEL_CLOCK_SINCE_RESET = 8, /* ms since the controller's reset */
       PEL_CLOCK_LEN = 16,
};

enum { /* byte offsets in the data of PEL_TYPE_RESET */
       PEL_RESET_FR = 0,
       PEL_RESET_LIST = 8, /* one descriptor for each controller */

       PEL_RESET_CNTLID = 0,
       PEL_RESET_POWER_CYCLES = 16,
       PEL_RESET_POWER_ON_MS = 20,
       PEL_RESET_TIMESTAMP = 28,
       PEL_RESET_DESCRIPTOR_LEN = 36,
       PEL_RESET_MAX =
           (PEL_EVENT_DATA_MAX - PEL_RESET_LIST) / PEL_RESET_DESCRIPTOR_LEN,
};

enum { /* byte offsets in the data of PEL_TYPE_HARDWARE_ERROR */
       PEL_ERROR_CODE = 0,
       PEL_ERROR_INFO = 4,
       PEL_ERROR_SHUTDOWN_LEN = PEL_ERROR_INFO + 16, /* SMART's counter */
       PEL_ERROR_MEDIA_LEN = PEL_ERROR_INFO + 16,    /* the completion */

       PEL_ERROR_FATAL_LEN = PEL_ERROR_INFO, /* nothing more */

       /* SMART's byte Critical Warning, with padding for nvme-cli. */
       PEL_ERROR_WARNING_LEN = PEL_ERROR_INFO + 4,

       PEL_ERROR_CRITICAL_WARNING = 0x06,
       PEL_ERROR_UNSAFE_SHUTDOWN = 0x08,
       PEL_ERROR_FATAL = 0x09, /* the controller stopped by itself */
       PEL_ERROR_MEDIA = 0x0a,
};

enum { /* byte offsets in the data of PEL_TYPE_CHANGE_NS */
       PEL_NS_CDW10 = 0,
       PEL_NS_NSZE = 8,
       PEL_NS_NCAP = 24,
       PEL_NS_FLBAS = 32,
       PEL_NS_DPS = 33,
       PEL_NS_NMIC = 34,
       PEL_NS_ANAGRPID = 36,
       PEL_NS_NSID = 44,
       PEL_NS_LEN = 48,
};

enum { /* byte offsets in the data of PEL_TYPE_FORMAT_START */
       PEL_FORMAT_NSID = 0,
       PEL_FORMAT_FNA = 4,
       PEL_FORMAT_CDW10 = 8,
       PEL_FORMAT_START_LEN = 12,
};

enum { /* byte offsets in the data of PEL_TYPE_FORMAT_END, after the NSID */
       PEL_FORMAT_LEAST_PROGRESS = 4,
       PEL_FORMAT_STATUS = 8, /* as in a CQE, phase bit 0 */
       PEL_FORMAT_END_LEN = 12,
};

enum { /* byte offsets in the data of PEL_TYPE_SANITIZE_START */
       PEL_SANITIZE_SANICAP = 0,
       PEL_SANITIZE_CDW10 = 4,
       PEL_SANITIZE_CDW11 = 8,
       PEL_SANITIZE_START_LEN = 12,
};

enum { /* byte offsets in the data of PEL_TYPE_SANITIZE_END */
       PEL_SANITIZE_PROGRESS = 0, /* as in the log page, like the next one */
       PEL_SANITIZE_STATUS = 2,
       PEL_SANITIZE_END_LEN = 8,
};

enum { /* byte offsets in the data of PEL_TYPE_SET_FEATURE */
       PEL_FEATURE_LAYOUT = 0, /* bits 2:0: dwords that follow */
       PEL_FEATURE_DWORDS = 4, /* from dword 10 on */
       PEL_FEATURE_COUNT = 6,
       PEL_FEATURE_LEN = PEL_FEATURE_DWORDS + 4 * PEL_FEATURE_COUNT,
};

struct pel_header {
    uint32_t events;
    uint64_t length;
    uint8_t revision;
    bool has_time; /* the clock was set */
    uint64_t time_ms;
    uint64_t power_on_hours, power_cycles;
    uint16_t vid, ssvid;
    const char *sn, *mn, *subnqn;
    uint16_t generation;
    uint32_t context;   /* RCI */
    uint32_t supported; /* BIT(type); PEL_TYPE_VENDOR is always supported */
};

struct pel_event {
    uint8_t type;
    bool has_port;
    uint16_t portid; /* if has_port */
    uint16_t cntlid; /* or PEL_EVENT_NO_CNTLID */
    uint64_t time_ms;
    uint16_t len; /* of the data */
};

/** @param buf  PEL_HEADER_LEN bytes, all written. */
void pel_header_emit(uint8_t *buf, const struct pel_header *header);

/** @param buf  PEL_EVENT_HEADER_LEN bytes, all written. */
void pel_event_emit(uint8_t *buf, const struct pel_event *header);

/**
 * Write a descriptor of a vendor-specific event.
 *
 * @param buf  PEL_VENDOR_DATA + len bytes, all written
 * @return the number of bytes written
 */
size_t pel_vendor_emit(uint8_t *buf, uint16_t code, enum pel_vendor_type type,
                       const void *data, uint16_t len);

/**
 * The length of an event.
 *
 * @param len  bytes at `buf`
 * @return 0 when these are not a whole event, or more than PEL_EVENT_MAX
 */
uint32_t pel_event_len(const uint8_t *buf, uint32_t len);

#endif
