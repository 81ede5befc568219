/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Media engine: registers and DRAM structures, read by model and driver.
 * Programming guide: docs/hardware/media.md.  Includes nothing; the reader
 * includes "hw/registerfields.h" or "lib/regfields.h" first.  Registers, page
 * and completions of the queues are in hw-model/regs/queue.h.
 *
 * Everything in DRAM is little-endian.  Offsets are in bytes.
 */
#ifndef ESSD_REGS_MEDIA_H
#define ESSD_REGS_MEDIA_H

/* clang-format off */
REG32(MEDIA_ID, 0x000)               /* ro: "MED" and version 1 */
REG32(MEDIA_LIMITS, 0x004)           /* ro */
    FIELD(MEDIA_LIMITS, QUEUES, 0, 8)        /* 4 */
    FIELD(MEDIA_LIMITS, PIECES, 8, 8)        /* 64: longest scatter list */
    FIELD(MEDIA_LIMITS, COMMANDS, 16, 16)    /* 512: most in progress */
REG32(MEDIA_CTRL, 0x010)             /* rw, reset 0 */
    FIELD(MEDIA_CTRL, RESET, 31, 1)          /* 1 until no DMA is in progress */
REG32(MEDIA_STATUS, 0x014)           /* ro */
    FIELD(MEDIA_STATUS, DESTAGE_FAILED, 0, 1) /* writing the cache out fails */
REG32(MEDIA_CAPACITY_LO, 0x018)      /* ro: units of 512 bytes */
REG32(MEDIA_CAPACITY_HI, 0x01c)
REG32(MEDIA_IRQ_STATUS, 0x020)       /* w1c */
    FIELD(MEDIA_IRQ_STATUS, QUEUE, 0, 4)     /* one bit per queue */
    FIELD(MEDIA_IRQ_STATUS, DESTAGE_FAILED, 8, 1)
REG32(MEDIA_IRQ_ENABLE, 0x024)       /* rw, reset 0: bits of IRQ_STATUS */
REG32(MEDIA_BLOCK, 0x028)            /* rw, reset 9; while all queues are off */
    FIELD(MEDIA_BLOCK, SHIFT, 0, 8)          /* 9 or 12; others ignored */
REG32(MEDIA_CACHE_CTRL, 0x030)       /* rw, reset 1 */
    FIELD(MEDIA_CACHE_CTRL, ENABLE, 0, 1)    /* 0: writes bypass the cache */
REG32(MEDIA_CACHE_SIZE_KIB, 0x034)   /* ro; 0: no cache */
REG32(MEDIA_CACHE_DIRTY_KIB, 0x038)  /* ro: not yet on the medium */

enum {
    MEDIA_ID_VALUE = 0x4d454401,
    MEDIA_QUEUES = 4,
    MEDIA_PIECES_MAX = 64,
    MEDIA_INLINE_PIECES = 6,
    MEDIA_COMMANDS_MAX = 512,
    MEDIA_TRANSFER_MAX = 16 << 20, /* bytes of the largest READ or WRITE */
};

/* Counters: 64 bits each, read as those of the port. */
enum media_counter {
    MEDIA_COUNT_READS,            /* commands that succeeded */
    MEDIA_COUNT_WRITES,
    MEDIA_COUNT_FLUSHES,
    MEDIA_COUNT_WRITE_ZEROES,
    MEDIA_COUNT_DEALLOCATES,
    MEDIA_COUNT_READ_BLOCKS,      /* in units of 512 bytes */
    MEDIA_COUNT_WRITE_BLOCKS,
    MEDIA_COUNT_ERRORS,           /* commands that failed */
    MEDIA_COUNT_CACHE_READS,      /* reads without an access to the medium */
    MEDIA_COUNT_CACHE_WRITES,     /* writes that completed in the cache */
    MEDIA_COUNT_CACHE_FULL,       /* writes that waited for cache space */
    MEDIA_COUNT_DESTAGES,         /* batches of cached data written */
    MEDIA_COUNT_DESTAGED_BLOCKS,  /* in units of 512 bytes */
    MEDIA_COUNT_DESTAGE_ERRORS,
    MEDIA_COUNT_MEDIUM_READS,     /* read requests to the medium */
    MEDIA_COUNT_MEDIUM_WRITES,
    MEDIA_COUNT_MEDIUM_FLUSHES,
    MEDIA_COUNT_CACHE_CORRECTED,  /* wrong bits of the cache, corrected */
    MEDIA_COUNT_CACHE_LOST,       /* reads of the cache that found lost words */
    MEDIA_COUNTERS,
};
enum { MEDIA_COUNTER_BASE = 0x400 }; /* counter n at + 8n */

/*
 * ---- Command: 128 bytes.  A command with one piece needs only the first 64.
 */
enum {
    MEDIA_CMD_LEN = 128,
    MEDIA_CMD_OPCODE = 0,         /* u8: enum media_opcode */
    MEDIA_CMD_FLAGS = 1,          /* u8: enum media_cmd_flags */
    MEDIA_CMD_PIECES = 2,         /* u16: 0..64 */
    MEDIA_CMD_COUNT = 4,          /* u32: blocks */
    MEDIA_CMD_COOKIE = 8,         /* u64: returned in the completion */
    MEDIA_CMD_LBA = 16,           /* u64: first block */
    MEDIA_CMD_LIST = 24,          /* u64: address of the pieces, with LIST */
    MEDIA_CMD_PIECE = 32,         /* 6 pieces, without LIST */
    MEDIA_CMD_TAG = 44,           /* u32: what traces call the command; it is
                                   * the spare word of the first piece */
};
enum {                            /* one piece of the buffer */
    MEDIA_PIECE_ADDR = 0,         /* u64 */
    MEDIA_PIECE_LENGTH = 8,       /* u32: bytes */
    MEDIA_PIECE_LEN = 16,
};
enum media_opcode {
    MEDIA_CMD_NOP = 0,
    MEDIA_CMD_READ = 1,
    MEDIA_CMD_WRITE = 2,
    MEDIA_CMD_FLUSH = 3,          /* COUNT and LBA are ignored */
    MEDIA_CMD_WRITE_ZEROES = 4,
    MEDIA_CMD_DEALLOCATE = 5,     /* reads return zeroes afterwards */
};
enum media_cmd_flags {
    MEDIA_CMD_FUA = 1,
    MEDIA_CMD_LIST_FLAG = 2,      /* pieces are at LIST, 16-byte aligned */
};

/* ---- Status of a completion. */
enum media_cqe_status {
    MEDIA_CQE_OK = 0,
    MEDIA_CQE_BAD_OPCODE = 1,
    MEDIA_CQE_BAD_ARGUMENT = 2,   /* invalid pieces, flags or lengths */
    MEDIA_CQE_BAD_ADDRESS = 3,    /* not in DRAM */
    MEDIA_CQE_LBA_RANGE = 4,
    MEDIA_CQE_READ_ERROR = 5,
    MEDIA_CQE_WRITE_ERROR = 6,
    MEDIA_CQE_NO_SPACE = 7,       /* the medium's storage is full */
    MEDIA_CQE_READ_ONLY = 8,
    MEDIA_CQE_ABORTED = 9,
};
/* clang-format on */

#endif
