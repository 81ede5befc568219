/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log of hardware errors in flash.  Each error is one record (records.h).
 * Reference: docs/hardware/flash.md, "Hardware errors"
 */
#ifndef ESSD_STORE_HW_ERROR_LOG_H
#define ESSD_STORE_HW_ERROR_LOG_H

#include "firmware/store/records.h"

enum { STORE_HW_ERRORS = 64 }; /* the newest ones, which are read at start */

enum hw_error_kind {
    HW_ERROR_CRASH = 1,        /* the firmware stopped; address: its pc */
    HW_ERROR_MEMORY_CORRECTED, /* a single-bit error of DRAM or SRAM; address:
                                * the word */
    HW_ERROR_MEMORY_LOST,      /* a word that could not be corrected */
    HW_ERROR_NAND_TRANSFER,    /* data of a die had a parity error; address: die
                                * (bits 63:32), block (31:16), wordline */
    HW_ERROR_RNIC_TRANSFER, /* data of a connection had a parity error; address:
                             * enum rnic_transfer (bits 63:32) and QPN */
    /* Their addresses are like those of HW_ERROR_NAND_TRANSFER. */
    HW_ERROR_PROGRAM,       /* the flash could not program a wordline */
    HW_ERROR_ERASE,         /* the flash could not erase a block */
    HW_ERROR_UNCORRECTABLE, /* the flash could not correct what was read */

    HW_ERROR_DIE,         /* a die has died; address: the die */
    HW_ERROR_CAPACITORS,  /* they did not supply the drive for long enough */
    HW_ERROR_READ_ONLY,   /* the flash is worn out; writes are refused */
    HW_ERROR_FLASH_WRITE, /* the SPI flash stayed busy; address: of the erasure
                           * or write in the SPI flash */
    HW_ERROR_NAND_RULE,   /* a bug of the firmware: the flash refused an
                           * operation that broke a rule; address: as for
                           * HW_ERROR_NAND_TRANSFER */
    HW_ERROR_RECORD_LOST, /* all copies of the newest record in the SPI flash
                           * are damaged; address: of its area */
    HW_ERROR_KINDS,
};

struct hw_error {
    uint32_t number;  /* counts the drive's errors, from 1 */
    uint32_t boot;    /* number of the start in which it happened */
    uint8_t kind;     /* enum hw_error_kind */
    bool is_fatal;    /* the drive could not go on as before */
    uint16_t repeats; /* errors of this kind and address right after it */
    uint64_t time_us; /* since the reset */
    uint64_t address;
    /* Crash: mcause.  Memory: errors since power-on.  Others: errors of this
     * kind since the start.  For a broken rule, this number is in bits 63:32,
     * the operation in bits 15:8 (0 read, 1 program, 2 erasure), and the rule
     * in bits 7:0. */
    uint64_t info;
};

struct hw_error_records {
    struct hw_error error[STORE_HW_ERRORS]; /* oldest first */
    uint16_t count;
    uint16_t losses;       /* other records that this start could not read */
    uint32_t lost_addr[6]; /* their areas */
};

/** Append one; when the array is full, the oldest one is dropped. */
void hw_error_records_add(struct hw_error_records *records,
                          const struct hw_error *error);

/** Make the record of an error, and read one.  It has RECORD_DATA_LEN bytes. */
void hw_error_emit(const struct hw_error *error, uint8_t *data);
void hw_error_parse(struct hw_error *error, const uint8_t *data);

/** Read the errors that earlier boots wrote.  A new drive has none. */
void store_read_hw_errors(const struct flash *flash,
                          struct records_place *place,
                          struct hw_error_records *records);

/** @return false when the flash refuses the write */
MUST_USE bool store_write_hw_error(const struct flash *flash,
                                   struct records_place *place,
                                   const struct hw_error *error);

#endif
