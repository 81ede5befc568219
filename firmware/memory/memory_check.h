/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the firmware does about errors of DRAM and SRAM.  It lets the hardware
 * write corrected words back.  It scrubs DRAM and SRAM once an hour, so that no
 * word collects a second wrong bit, and reports words that are lost.  It stops
 * if a word that it needs is lost.
 * Reference: docs/hardware/ecc.md, "What the firmware does"
 */
#ifndef ESSD_MEMORY_MEMORY_CHECK_H
#define ESSD_MEMORY_MEMORY_CHECK_H

#include "firmware/drivers/ecc.h"
#include "firmware/hal/log.h"
#include "firmware/usage/hw_log.h"

struct memory_check_config {
    uintptr_t regs; /* 0: the machine has no ECC */
    struct log *log;
    struct hw_log *errors;
    uint64_t dram_base, dram_bytes;
    uint64_t sram_base, sram_bytes;
    /* Buffers of payloads: the firmware can go on if a word of them is lost,
     * and sets it to zero. */
    uint64_t buffers, buffers_bytes;
    /* A device has found a lost word.  The word is cleared after this call.
     * @return whether the medium can do without the word, so that the firmware
     *         can go on */
    bool (*lost_word)(void *ctx, uint64_t addr);
    /* The same for a word that the patrol has found before anything has read
     * it.  If the medium returns false, the word stays lost. */
    bool (*patrolled_word)(void *ctx, uint64_t addr);
    /* Whether the address of a word that was lost before the reset is no longer
     * needed.  Until this is true, the address stays in the registers, so that
     * it survives another reset, and no other error is handled. */
    bool (*is_noted)(void *ctx);
    void *ctx;
    /* memory_check_trap_word() of the panic that led to this start, or 0. */
    uint64_t trap_word;
};

enum { MEMORY_CHECK_SERVICES = 3 }; /* that have buffers of their own */

/* Treat as opaque. */
struct memory_check {
    struct memory_check_config config;
    struct ecc ecc;
    bool is_on;
    bool is_waiting; /* waits until config.is_noted() is true */
    bool has_irq;
    uint64_t patrol_us;   /* when the next part of memory is scrubbed */
    uint64_t patrol_addr; /* where this part begins in DRAM */
    uint32_t corrected;   /* errors since power-on */
    uint32_t lost;
    uint64_t logged_us; /* until then, no corrected error is logged */
    /* Address and length of the memory that memory_check_read() is checking. */
    uint64_t checked, checked_bytes;
    /* Buffers of services, whose connection ends if a word is lost. */
    struct {
        uint64_t addr, len_bytes;
    } services[MEMORY_CHECK_SERVICES];
    unsigned int num_services;
};

/** Start, and report an error that led to the reset.  While config->is_noted()
 * is false, the report waits; then memory_check_step() makes it. */
void memory_check_init(struct memory_check *check,
                       const struct memory_check_config *config,
                       uint64_t now_us);

/**
 * Buffers that only the connections of a service use, at most for
 * MEMORY_CHECK_SERVICES services.  A device that finds a lost word there ends
 * the connection; the firmware goes on, and sets the word to zero.
 */
void memory_check_add_service(struct memory_check *check, const void *memory,
                              size_t len_bytes);

/** The block's interrupt has come. */
void memory_check_irq(struct memory_check *check);

/** Handle a lost word now if a device has found one.  @return whether there was
 * one */
bool memory_check_look(struct memory_check *check, uint64_t now_us);

/**
 * Check data of hosts before a hart reads it.  Lost words in it are set to
 * zero.
 * @return whether there were no lost words; otherwise the command that needs
 *         the data has to fail
 */
MUST_USE bool memory_check_read(struct memory_check *check, const void *memory,
                                size_t len_bytes, uint64_t now_us);

/**
 * The address of the word that was lost before the reset, if any.  Call this
 * before memory_check_init(), which clears the address.
 *
 * @param regs  as in memory_check_config
 * @return 0 if there is none
 */
uint64_t memory_check_lost_word(uintptr_t regs);

/**
 * The lost word at which a hart has stopped, if a panic with this cause and
 * value of a trap was because of one.
 * @return its address, or 0
 */
uint64_t memory_check_trap_word(uint64_t mcause, uint64_t mtval,
                                uint64_t dram_base, uint64_t dram_bytes);

/** @return when to call this again */
uint64_t memory_check_step(struct memory_check *check, uint64_t now_us);

#endif
