/* SPDX-License-Identifier: BSD-2-Clause */
/* System controller.  Reference: docs/hardware/sysctl.md */
#ifndef ESSD_DRIVERS_SYSCTL_H
#define ESSD_DRIVERS_SYSCTL_H

#include "lib/regfields.h"
#include "hw-model/regs/sysctl.h"
#include "lib/util.h"

struct sysctl {
    uintptr_t base;
};

/* What the boot ROM found. */
struct sysctl_boot {
    bool is_done;
    enum sysctl_boot_slot slot;
    /* What the boot ROM found in the image slots. */
    enum sysctl_boot_verdict verdict[2];
};

/*
 * Why the firmware stopped itself, kept in scratch words over the reset.
 * A failed assertion has file and line, a trap the hart's registers.
 */
struct sysctl_panic {
    bool is_trap;
    /*
     * Why the firmware stopped itself.  Scratch words keep this over the reset.
     * A failed assertion has file and line, a trap has the hart's registers.
     */
    uint32_t count;
    uint32_t line;
    uint64_t mcause;
    uint64_t mepc; /* the hart's mepc, or the caller of assert_failed() */
    uint64_t mtval;
    char file[21]; /* the end of the file's name */
};

/* @return false when the chip ID is another one */
MUST_USE bool sysctl_init(struct sysctl *sysctl, uintptr_t base);

enum sysctl_reset_cause sysctl_reset_cause(const struct sysctl *sysctl);
const char *sysctl_reset_cause_name(enum sysctl_reset_cause cause);
/** Whether the watchdog, a panic or the reset pin has reset the drive.  If so,
 * the firmware that ran before has not written its write buffer to the flash.
 */
bool sysctl_reset_is_unplanned(enum sysctl_reset_cause cause);

struct sysctl_boot sysctl_boot(const struct sysctl *sysctl);
void sysctl_set_boot(const struct sysctl *sysctl,
                     const struct sysctl_boot *boot);
const char *sysctl_boot_verdict_name(enum sysctl_boot_verdict verdict);

/**
 * Read the public key with which images have to be signed.
 *
 * @param key  SYSCTL_KEY_BYTES bytes
 * @return false when none is fused: images need no signature
 */
MUST_USE bool sysctl_boot_key(const struct sysctl *sysctl, uint8_t *key);

/** Whether the board has capacitors for when the power fails. */
bool sysctl_has_capacitors(const struct sysctl *sysctl);
/** Whether the power has failed, and capacitors supply the board. */
bool sysctl_power_is_failing(const struct sysctl *sysctl);
/** For how long the capacitors can supply the board; 0 without capacitors. */
uint32_t sysctl_power_budget_us(const struct sysctl *sysctl);
/** Tell the board that firmware needs no more power. */
void sysctl_power_done(const struct sysctl *sysctl);

/** Whether somebody keeps the key log: the secrets of TLS connections. */
bool sysctl_key_log_is_open(const struct sysctl *sysctl);
/** @param line  shorter than SYSCTL_KEY_LOG_LINE, with the end of the line */
void sysctl_key_log_put(const struct sysctl *sysctl, const char *line);

uint64_t sysctl_random64(const struct sysctl *sysctl);
size_t sysctl_dram_bytes(const struct sysctl *sysctl);
uint32_t sysctl_harts(const struct sysctl *sysctl);

/*
 * Set the address at which parked harts start.  Wake a hart afterwards with its
 * MSIP.
 */
void sysctl_set_hart_entry(const struct sysctl *sysctl, uintptr_t entry);

/* Keep `panic` over the coming reset.  This function sets its count. */
void sysctl_store_panic(const struct sysctl *sysctl,
                        const struct sysctl_panic *panic);

/*
 * Return the panic that led to the last reset, and clear it.
 * @return false when there is none
 */
MUST_USE bool sysctl_take_panic(const struct sysctl *sysctl,
                                struct sysctl_panic *panic);

/*
 * Reset the machine at once.
 * @param cause  SOFTWARE or PANIC
 */
void sysctl_reset(const struct sysctl *sysctl, enum sysctl_reset_cause cause);

#endif
