/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System controller registers.  Includes nothing; include it after QEMU's
 * hw/registerfields.h or lib/regfields.h.
 * Reference: docs/hardware/sysctl.md
 */
#ifndef ESSD_REGS_SYSCTL_H
#define ESSD_REGS_SYSCTL_H

/* clang-format off */
REG32(SYSCTL_CHIP_ID, 0x000)           /* ro: SYSCTL_CHIP_ID_VALUE */
REG32(SYSCTL_VERSION, 0x004)           /* ro */
    FIELD(SYSCTL_VERSION, MINOR, 0, 16)
    FIELD(SYSCTL_VERSION, MAJOR, 16, 16)
REG32(SYSCTL_RESET_CAUSE, 0x008)       /* ro: enum sysctl_reset_cause */
REG32(SYSCTL_BOOT_STATUS, 0x00c)       /* rw, cleared by every reset */
    FIELD(SYSCTL_BOOT_STATUS, SLOT, 0, 4)      /* enum sysctl_boot_slot */
    FIELD(SYSCTL_BOOT_STATUS, SLOT_A, 4, 4)    /* enum sysctl_boot_verdict */
    FIELD(SYSCTL_BOOT_STATUS, SLOT_B, 8, 4)    /* enum sysctl_boot_verdict */
    FIELD(SYSCTL_BOOT_STATUS, DONE, 31, 1)     /* the boot ROM has finished */
REG32(SYSCTL_RESET, 0x010)             /* wo: resets the machine */
    FIELD(SYSCTL_RESET, CAUSE, 0, 4)           /* SOFTWARE or PANIC */
    FIELD(SYSCTL_RESET, KEY, 16, 16)           /* SYSCTL_RESET_KEY */
REG32(SYSCTL_RANDOM, 0x014)            /* ro: random, new at every read */
REG32(SYSCTL_DRAM_MIB, 0x018)          /* ro */
REG32(SYSCTL_HARTS, 0x01c)             /* ro: number of harts */
REG32(SYSCTL_HART_ENTRY_LO, 0x020)     /* rw: start of parked harts that are */
REG32(SYSCTL_HART_ENTRY_HI, 0x024)     /* woken by their MSIP; 0 after every
                                        * reset */
REG32(SYSCTL_KEY_STATUS, 0x040)        /* ro */
    FIELD(SYSCTL_KEY_STATUS, FUSED, 0, 1)      /* KEY0 to KEY7 are valid */
REG32(SYSCTL_POWER, 0x044)             /* ro */
    FIELD(SYSCTL_POWER, BACKED, 0, 1)          /* there are capacitors */
    FIELD(SYSCTL_POWER, FAILING, 1, 1)         /* they supply the board */
REG32(SYSCTL_POWER_BUDGET, 0x048)      /* ro: microseconds they can do so; 0
                                        * without capacitors */
REG32(SYSCTL_POWER_DONE, 0x04c)        /* wo, 1: firmware needs no power */
REG32(SYSCTL_KEY_LOG, 0x050)           /* ro */
    FIELD(SYSCTL_KEY_LOG, OPEN, 0, 1)          /* somebody keeps the log */
REG32(SYSCTL_KEY_LOG_OUT, 0x054)       /* wo: the next byte of the log, which
                                        * is text; lines end with 0Ah */
REG32(SYSCTL_KEY0, 0x060)              /* ro: the key for images, 8 words, its
                                        * first byte in the lowest bits; 0 if
                                        * none is fused */
REG32(SYSCTL_KEY7, 0x07c)
REG32(SYSCTL_SCRATCH0, 0x080)          /* rw: 16 words; only power-on clears */
REG32(SYSCTL_SCRATCH15, 0x0bc)
/* clang-format on */

#define SYSCTL_CHIP_ID_VALUE   0x44535345u /* "ESSD", little-endian */
#define SYSCTL_RESET_KEY       0x5e7au
#define SYSCTL_SCRATCH_WORDS   16
#define SYSCTL_KEY_BYTES       32
#define SYSCTL_KEY_LOG_LINE    256 /* bytes of the longest line */
#define SYSCTL_POWER_BUDGET_US 1000000 /* the model's default budget */

enum sysctl_reset_cause {
    SYSCTL_RESET_POWER_ON = 0,
    SYSCTL_RESET_PIN = 1, /* external reset while the power was on */
    SYSCTL_RESET_WATCHDOG = 2,
    SYSCTL_RESET_SOFTWARE = 3,
    SYSCTL_RESET_PANIC = 4,
};

enum sysctl_boot_slot {
    SYSCTL_SLOT_NONE = 0,
    SYSCTL_SLOT_A = 1,
    SYSCTL_SLOT_B = 2,
};

/* What the boot ROM found in an image slot. */
enum sysctl_boot_verdict {
    /* Header intact, but the other slot was newer. */
    SYSCTL_VERDICT_UNTRIED = 0,
    SYSCTL_VERDICT_GOOD = 1,       /* header and image intact: started */
    SYSCTL_VERDICT_EMPTY = 2,      /* no magic number */
    SYSCTL_VERDICT_HEADER_CRC = 3, /* header damaged */
    SYSCTL_VERDICT_HEADER = 4,     /* unknown header version */
    SYSCTL_VERDICT_RANGE = 5,     /* too large for slot or DRAM, or bad entry */
    SYSCTL_VERDICT_IMAGE_CRC = 6, /* header intact, image damaged */
    SYSCTL_VERDICT_BOARD = 7,     /* the image is for another board */
    SYSCTL_VERDICT_SIGNATURE = 8, /* not signed with the fused key */
};

#endif
