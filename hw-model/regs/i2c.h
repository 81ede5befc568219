/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * I2C controller registers.  Includes nothing; include it after QEMU's
 * hw/registerfields.h or lib/regfields.h.
 * Reference: docs/hardware/i2c.md
 */
#ifndef ESSD_REGS_I2C_H
#define ESSD_REGS_I2C_H

/* clang-format off */
REG32(I2C_ID, 0x000)                   /* ro: I2C_ID_VALUE */
REG32(I2C_CTRL, 0x004)                 /* rw */
    FIELD(I2C_CTRL, ENABLE, 0, 1)
    FIELD(I2C_CTRL, TARGET, 1, 1)              /* answer as a target */
    FIELD(I2C_CTRL, MDIO, 2, 1)                /* pins carry MDIO, not I2C */
    FIELD(I2C_CTRL, RESET, 31, 1)              /* self-clearing */
REG32(I2C_IRQ_STATUS, 0x008)           /* w1c */
    FIELD(I2C_IRQ_STATUS, DONE, 0, 1)          /* a transfer has ended */
    FIELD(I2C_IRQ_STATUS, MAIL, 1, 1)          /* a message has arrived */
REG32(I2C_IRQ_ENABLE, 0x00c)           /* rw: bits of IRQ_STATUS */
REG32(I2C_SPEED, 0x010)                /* rw: bit rate in kHz; reset 100 */
REG32(I2C_ADDR, 0x014)                 /* rw: address of the next transfer */
REG32(I2C_LENGTHS, 0x018)              /* rw: bytes of the next transfer, 0 to
                                        * 256 each */
    FIELD(I2C_LENGTHS, WRITE, 0, 9)
    FIELD(I2C_LENGTHS, READ, 16, 9)
REG32(I2C_START, 0x01c)                /* wo: any value starts a transfer */
REG32(I2C_STATUS, 0x020)               /* ro */
    FIELD(I2C_STATUS, BUSY, 0, 1)
    FIELD(I2C_STATUS, RESULT, 8, 4)            /* enum i2c_result */
    FIELD(I2C_STATUS, SENT, 16, 9)             /* acknowledged bytes */
REG32(I2C_MAIL_ADDR, 0x030)            /* rw: target that takes messages */
    FIELD(I2C_MAIL_ADDR, ADDR, 0, 7)
    FIELD(I2C_MAIL_ADDR, ENABLE, 7, 1)
REG32(I2C_IMAGE0_ADDR, 0x034)          /* rw: targets that are read, with the */
REG32(I2C_IMAGE1_ADDR, 0x038)          /* fields of I2C_MAIL_ADDR */
REG32(I2C_COMMIT, 0x03c)               /* wo: bit n publishes image n */
REG32(I2C_MAIL_STATUS, 0x040)          /* ro */
    FIELD(I2C_MAIL_STATUS, COUNT, 0, 8)        /* messages that wait */
    FIELD(I2C_MAIL_STATUS, LEN, 16, 9)         /* length of the oldest one */
REG32(I2C_MAIL_POP, 0x044)             /* wo: any value drops the oldest one */
REG32(I2C_MDIO, 0x050)                 /* rw: a write starts an MDIO frame */
    FIELD(I2C_MDIO, DATA, 0, 16)
    FIELD(I2C_MDIO, REG, 16, 5)                /* or the MMD of clause 45 */
    FIELD(I2C_MDIO, PHY, 21, 5)
    FIELD(I2C_MDIO, OP, 26, 2)
    FIELD(I2C_MDIO, CLAUSE45, 28, 1)
REG32(I2C_TX, 0x100)                   /* rw: 64 words of bytes to write */
REG32(I2C_RX, 0x200)                   /* ro: 64 words of bytes read */
REG32(I2C_MAIL, 0x300)                 /* ro: 64 words of the oldest message */
REG32(I2C_IMAGE0, 0x400)               /* rw: 64 words of image 0 */
REG32(I2C_IMAGE1, 0x500)               /* rw: 64 words of image 1 */
/* clang-format on */

#define I2C_ID_VALUE 0x20433249u /* "I2C ", little-endian */

enum i2c_mdio_op {
    I2C_MDIO_OP_ADDRESS = 0, /* clause 45 only */
    I2C_MDIO_OP_WRITE = 1,
    I2C_MDIO_OP_READ = 2,    /* clause 45: then increment the address */
    I2C_MDIO_OP_READ_45 = 3, /* clause 45 only */
};

enum {
    I2C_BUFFER_BYTES = 256,
    I2C_IMAGES = 2,
    I2C_MAIL_SLOTS = 8,
    I2C_SPEED_RESET = 100,
    I2C_SPEED_MIN = 10,
    I2C_SPEED_MAX = 1000,
};

enum i2c_result {
    I2C_RESULT_OK = 0,
    I2C_RESULT_NO_TARGET = 1, /* nobody has acknowledged the address */
    I2C_RESULT_REFUSED = 2,   /* the target did not acknowledge a byte */
    I2C_RESULT_INVALID = 3,   /* the registers describe no possible transfer */
};

#endif
