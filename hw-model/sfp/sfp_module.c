/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw-model/sfp/sfp_module.h"

#include <string.h>

#include "lib/bytes.h"

enum { /* A0h */
       ID_IDENTIFIER = 0,
       ID_EXTENDED = 1,
       ID_CONNECTOR = 2,
       ID_ENCODING = 11,
       ID_BIT_RATE = 12,
       ID_LENGTH_OM4 = 18,
       ID_LENGTH_OM3 = 19,
       ID_VENDOR = 20,
       ID_COMPLIANCE = 36,
       ID_PART = 40,
       ID_REVISION = 56,
       ID_WAVELENGTH = 60,
       ID_CHECK_BASE = 63,
       ID_OPTIONS = 64,
       ID_BIT_RATE_MAX = 66,
       ID_SERIAL = 68,
       ID_DATE = 84,
       ID_DIAGNOSTICS = 92,
       ID_ENHANCED = 93,
       ID_REVISION_8472 = 94,
       ID_CHECK_EXTENDED = 95,
       ID_END = 96, /* zeros follow */
};

enum { /* A2h */
       DIAG_THRESHOLDS = 0,
       DIAG_CHECK = 95,
       DIAG_VALUES = 96,
       DIAG_ALARMS = 112,
       DIAG_WARNINGS = 116,
       DIAG_END = 120, /* zeros follow */
};

/* The thresholds of a quantity, in the specification's order. */
enum { ALARM_HIGH, ALARM_LOW, WARNING_HIGH, WARNING_LOW, THRESHOLDS };

static const int32_t thresholds[SFP_QUANTITIES][THRESHOLDS] = {
    [SFP_TEMPERATURE] = {75 * 256, -5 * 256, 70 * 256, 0},
    [SFP_VOLTAGE] = {36300, 29700, 34650, 31350},
    [SFP_BIAS] = {6500, 1000, 6000, 1500},
    [SFP_TX_POWER] = {22387, 1445, 17783, 1820},
    [SFP_RX_POWER] = {22387, 708, 17783, 891},
};

static const int32_t usual[SFP_QUANTITIES] = {
    [SFP_TEMPERATURE] = 38 * 256, [SFP_VOLTAGE] = 33000, [SFP_BIAS] = 3500,
    [SFP_TX_POWER] = 7943,        [SFP_RX_POWER] = 6310,
};

static void copy_text(char *to, size_t size, const char *from)
{
    size_t len = MIN(strlen(from), size - 1);

    memcpy(to, from, len);
    memset(to + len, 0, size - len);
}

void sfp_module_init(struct sfp_module *module, const char *serial)
{
    *module = (struct sfp_module){.is_present = true};
    copy_text(module->vendor, sizeof(module->vendor), "ESSD EMULATION");
    copy_text(module->part, sizeof(module->part), "SFP28-25G-SR");
    copy_text(module->serial, sizeof(module->serial), serial);
    memcpy(module->value, usual, sizeof(usual));
}

int32_t sfp_module_min(enum sfp_quantity quantity)
{
    return quantity == SFP_TEMPERATURE ? INT16_MIN : 0;
}

int32_t sfp_module_max(enum sfp_quantity quantity)
{
    return quantity == SFP_TEMPERATURE ? INT16_MAX : UINT16_MAX;
}

/* Text is padded with spaces. */
static void put_text(uint8_t *to, size_t len, const char *text)
{
    memset(to, ' ', len);
    memcpy(to, text, MIN(strlen(text), len));
}

static uint8_t sum_bytes(const uint8_t *bytes, size_t len)
{
    uint8_t sum = 0;

    for (size_t i = 0; i < len; i++) {
        sum = (uint8_t)(sum + bytes[i]);
    }
    return sum;
}

/* Bytes 0 to 62 of A0h: the base of the identification. */
static void fill_base(const struct sfp_module *module, uint8_t *id)
{
    memset(id, 0, ID_OPTIONS);
    id[ID_IDENTIFIER] = 0x03; /* SFP */
    id[ID_EXTENDED] = 0x04;   /* defined by its two-wire interface */
    id[ID_CONNECTOR] = 0x07;  /* LC */
    id[ID_ENCODING] = 0x06;   /* 64B/66B */
    id[ID_BIT_RATE] = 0xff;   /* see ID_BIT_RATE_MAX */
    id[ID_LENGTH_OM4] = 10;   /* units of 10 m */
    id[ID_LENGTH_OM3] = 7;
    put_text(id + ID_VENDOR, 16, module->vendor);
    id[ID_COMPLIANCE] = 0x02; /* 25GBASE-SR */
    put_text(id + ID_PART, 16, module->part);
    put_text(id + ID_REVISION, 4, "1");
    put_be16(id + ID_WAVELENGTH, 850);
}

/* Bytes 64 to 94 of A0h: the extended identification. */
static void fill_extended(const struct sfp_module *module, uint8_t *id)
{
    memset(id + ID_OPTIONS, 0, ID_END - ID_OPTIONS);
    put_be16(id + ID_OPTIONS, 0x001a);
    id[ID_BIT_RATE_MAX] = 103; /* 25.78 Gb/s in units of 250 Mb/s */
    put_text(id + ID_SERIAL, 16, module->serial);
    put_text(id + ID_DATE, SFP_DATE_LEN, "260101");
    id[ID_DIAGNOSTICS] = 0x68; /* implemented, calibrated, average power */
    id[ID_ENHANCED] = 0x80;    /* alarm and warning flags */
    id[ID_REVISION_8472] = 0x08;
}

/* Two bits for each quantity, from the top: above `high`, below `low`. */
static void put_flags(const struct sfp_module *module, uint8_t *to, int high,
                      int low)
{
    uint16_t flags = 0;

    for (unsigned int i = 0; i < SFP_QUANTITIES; i++) {
        if (module->value[i] > thresholds[i][high]) {
            flags |= (uint16_t)(0x8000u >> (2 * i));
        }
        if (module->value[i] < thresholds[i][low]) {
            flags |= (uint16_t)(0x4000u >> (2 * i));
        }
    }
    put_be16(to, flags);
}

/* Bytes 0 to 94 of A2h: the thresholds. */
static void fill_thresholds(uint8_t *diag)
{
    memset(diag, 0, DIAG_VALUES);
    for (unsigned int i = 0; i < SFP_QUANTITIES; i++) {
        for (unsigned int k = 0; k < THRESHOLDS; k++) {
            put_be16(diag + DIAG_THRESHOLDS + (i * THRESHOLDS + k) * 2,
                     (uint16_t)thresholds[i][k]);
        }
    }
}

/* Bytes 96 to 111 of A2h: what the module measures. */
static void fill_values(const struct sfp_module *module, uint8_t *diag)
{
    memset(diag + DIAG_VALUES, 0, DIAG_ALARMS - DIAG_VALUES);
    for (unsigned int i = 0; i < SFP_QUANTITIES; i++) {
        put_be16(diag + DIAG_VALUES + i * 2, (uint16_t)module->value[i]);
    }
}

/* Bytes 112 to 119 of A2h: which of its values are beyond their thresholds. */
static void fill_flags(const struct sfp_module *module, uint8_t *diag)
{
    memset(diag + DIAG_ALARMS, 0, DIAG_END - DIAG_ALARMS);
    put_flags(module, diag + DIAG_ALARMS, ALARM_HIGH, ALARM_LOW);
    put_flags(module, diag + DIAG_WARNINGS, WARNING_HIGH, WARNING_LOW);
}

/* A byte of a part that is made, or the sum that is at its end. */
static uint8_t byte_or_sum(const uint8_t *bytes, uint8_t at, uint8_t first,
                           uint8_t check)
{
    return at == check ? sum_bytes(bytes + first, (size_t)(check - first))
                       : bytes[at];
}

/*
 * Only the part of the memory with the wanted byte is made: the firmware reads
 * the values all the time, and simulations let hours of it pass.
 */
uint8_t sfp_module_byte(const struct sfp_module *module, unsigned int memory,
                        uint8_t at)
{
    uint8_t bytes[SFP_MEMORY_BYTES];

    if (at >= (memory == 0 ? ID_END : DIAG_END)) {
        return 0;
    }
    if (memory == 0 && at < ID_OPTIONS) {
        fill_base(module, bytes);
        return byte_or_sum(bytes, at, 0, ID_CHECK_BASE);
    }
    if (memory == 0) {
        fill_extended(module, bytes);
        return byte_or_sum(bytes, at, ID_OPTIONS, ID_CHECK_EXTENDED);
    }
    if (at < DIAG_VALUES) {
        fill_thresholds(bytes);
        return byte_or_sum(bytes, at, DIAG_THRESHOLDS, DIAG_CHECK);
    }
    if (at < DIAG_ALARMS) {
        fill_values(module, bytes);
    } else {
        fill_flags(module, bytes);
    }
    return bytes[at];
}

bool sfp_module_matches(const struct sfp_module *module, uint8_t addr)
{
    return module->is_present &&
           (addr == SFP_ADDR_ID || addr == SFP_ADDR_DIAGNOSTICS);
}

void sfp_module_start(struct sfp_module *module, uint8_t addr, bool is_read)
{
    module->selected = addr == SFP_ADDR_DIAGNOSTICS;
    module->has_pointer = is_read;
}

bool sfp_module_send(struct sfp_module *module, uint8_t byte)
{
    if (module->has_pointer) {
        return false; /* read-only */
    }
    module->has_pointer = true;
    module->pointer[module->selected] = byte;
    return true;
}

uint8_t sfp_module_receive(struct sfp_module *module)
{
    return sfp_module_byte(module, module->selected,
                           module->pointer[module->selected]++);
}
