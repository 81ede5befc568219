/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An SFP28 module with digital diagnostics: its two memories on the I2C bus, at
 * addresses 50h (A0h in the specification) and 51h (A2h).
 * Spec: SFF-8472; SFF-8024 for the codes.
 *
 * Not modelled: pages of A2h, the user's EEPROM, passwords, writes (the module
 * does not acknowledge them), external calibration.  Alarm and warning flags
 * show the current values; they are not latched.
 */
#ifndef ESSD_HW_SFP_MODULE_H
#define ESSD_HW_SFP_MODULE_H

#include "lib/util.h"

enum {
    SFP_ADDR_ID = 0x50,
    SFP_ADDR_DIAGNOSTICS = 0x51,
    SFP_MEMORY_BYTES = 256,
    SFP_VENDOR_LEN = 16,
    SFP_DATE_LEN = 8,
};

/* What a module measures, in the order of the specification. */
enum sfp_quantity {
    SFP_TEMPERATURE, /* 1/256 degree Celsius, signed */
    SFP_VOLTAGE,     /* 100 microvolts */
    SFP_BIAS,        /* 2 microamperes */
    SFP_TX_POWER,    /* 0.1 microwatts */
    SFP_RX_POWER,    /* 0.1 microwatts */
    SFP_QUANTITIES,
};

struct sfp_module {
    /* ASCII, at most SFP_VENDOR_LEN characters each; NUL terminated. */
    char vendor[SFP_VENDOR_LEN + 1];
    char part[SFP_VENDOR_LEN + 1];
    char serial[SFP_VENDOR_LEN + 1];
    bool is_present;
    int32_t value[SFP_QUANTITIES]; /* in the units above */
    uint8_t pointer[2];            /* of A0h and A2h: the next byte to read */
    /* The transfer in progress. */
    uint8_t selected; /* 0: A0h, 1: A2h */
    bool has_pointer;
};

/** Make a 25GBASE-SR module at room temperature. @param serial  is copied */
void sfp_module_init(struct sfp_module *module, const char *serial);

/** The smallest and largest value that a quantity can have. */
int32_t sfp_module_min(enum sfp_quantity quantity);
int32_t sfp_module_max(enum sfp_quantity quantity);

/** Read a byte of a memory, 0: A0h, 1: A2h. */
uint8_t sfp_module_byte(const struct sfp_module *module, unsigned int memory,
                        uint8_t at);

/* ---- The module on the bus. */

bool sfp_module_matches(const struct sfp_module *module, uint8_t addr);
void sfp_module_start(struct sfp_module *module, uint8_t addr, bool is_read);
MUST_USE bool sfp_module_send(struct sfp_module *module, uint8_t byte);
uint8_t sfp_module_receive(struct sfp_module *module);

#endif
