/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NAND controller: registers and DRAM structures, read by model and driver.
 * Programming guide: docs/hardware/nand.md.  Includes nothing; the reader
 * includes "hw/registerfields.h" or "lib/regfields.h" first.  Registers, page
 * and completions of the queues are in hw-model/regs/queue.h.
 *
 * Everything in DRAM is little-endian.  Offsets are in bytes.
 */
#ifndef ESSD_REGS_NAND_H
#define ESSD_REGS_NAND_H

/* clang-format off */
REG32(NAND_ID, 0x000)                /* ro: "NND" and version 1 */
REG32(NAND_LIMITS, 0x004)            /* ro */
    FIELD(NAND_LIMITS, QUEUES, 0, 8)         /* 4 */
    FIELD(NAND_LIMITS, ENTRIES, 8, 8)        /* 64: most entries of a READ */
    FIELD(NAND_LIMITS, COMMANDS, 16, 16)     /* 512: most in progress */
REG32(NAND_CTRL, 0x010)              /* rw, reset 0 */
    FIELD(NAND_CTRL, RESET, 31, 1)           /* 1 until no DMA is in progress */
REG32(NAND_IRQ_STATUS, 0x020)        /* w1c */
    FIELD(NAND_IRQ_STATUS, QUEUE, 0, 4)      /* one bit per queue */
REG32(NAND_IRQ_ENABLE, 0x024)        /* rw, reset 0: bits of IRQ_STATUS */
REG32(NAND_GEOMETRY0, 0x030)         /* ro */
    FIELD(NAND_GEOMETRY0, CHANNELS, 0, 8)    /* 1..16 */
    FIELD(NAND_GEOMETRY0, DIES, 8, 8)        /* 1..16, of a channel */
    FIELD(NAND_GEOMETRY0, PLANES, 16, 8)     /* 1..4, of a die */
    FIELD(NAND_GEOMETRY0, UNITS, 24, 8)      /* 1..4, of a page */
REG32(NAND_GEOMETRY1, 0x034)         /* ro */
    FIELD(NAND_GEOMETRY1, BLOCKS, 0, 16)     /* of a plane */
    FIELD(NAND_GEOMETRY1, WORDLINES, 16, 16) /* of a block */
REG32(NAND_GEOMETRY2, 0x038)         /* ro */
    FIELD(NAND_GEOMETRY2, PAGES, 0, 8)       /* 1..4, of a wordline: the bits
                                              * of a cell */
    FIELD(NAND_GEOMETRY2, QUEUES, 8, 1)      /* a PROGRAM that waits for one
                                              * which fails is aborted */
REG32(NAND_ENDURANCE, 0x03c)         /* ro: erasures that a block is rated for */
REG32(NAND_ECC, 0x040)               /* ro */
    FIELD(NAND_ECC, HARD_BITS, 0, 16)        /* corrected in a unit by step 0 */
    FIELD(NAND_ECC, STEPS, 16, 8)            /* further steps */
REG32(NAND_PROGRAM_TIME, 0x044)      /* ro: 0 if operations take no time */
    FIELD(NAND_PROGRAM_TIME, BUSY, 0, 16)      /* us: a die programs a wordline
                                                * of all its planes */
    FIELD(NAND_PROGRAM_TIME, TRANSFER, 16, 16) /* us: the channel transfers
                                                * command and data before */
REG32(NAND_MOVE, 0x048)              /* wo: address of a list of moves, divided
                                      * by NAND_MOVE_ALIGN; the write does the
                                      * moves */
REG32(NAND_OTHER_TIMES, 0x04c)       /* ro: 0 if operations take no time */
    FIELD(NAND_OTHER_TIMES, ERASE, 0, 16)      /* us: a die erases blocks */
    FIELD(NAND_OTHER_TIMES, READ, 16, 16)      /* us: a die reads its slowest
                                                * page, without soft steps */

enum {
    NAND_ID_VALUE = 0x4e4e4401,
    NAND_QUEUES = 4,
    NAND_COMMANDS_MAX = 512,
    NAND_READ_ENTRIES_MAX = 64,
    NAND_CHANNELS_MAX = 16,
    NAND_DIES_MAX = 16,           /* of a channel */
    NAND_PLANES_MAX = 4,
    NAND_PAGES_MAX = 4,           /* of a wordline */
    NAND_UNITS_MAX = 4,           /* of a page */
    NAND_DATA_LEN = 4096,         /* of a unit, as are the next two */
    NAND_META_LEN = 64,
    NAND_SYSTEM_LEN = 16,
};

/* ---- List of moves: a header, then the moves. */
enum {
    NAND_MOVES_MAX = 128,
    NAND_MOVE_ALIGN = 64,         /* alignment of the list */
    NAND_MOVE_COUNT = 0,          /* u32, in the header: number of moves; with 0
                                   * nothing is done, and STATUS is OK */
    NAND_MOVE_DONE = 4,           /* u32: moves done, set by the controller */
    NAND_MOVE_STATUS = 8,         /* u32: enum nand_move_status, set by it */
    NAND_MOVE_GUARD = 12,         /* u32: CRC of the current block so far; read
                                   * when the list begins, written when it
                                   * ends */
    NAND_MOVE_HEADER_LEN = 64,
    NAND_MOVE_SOURCE = 0,         /* u64, in a move; of PROTECT: where the
                                   * protection information is, 0 to make it;
                                   * of ADD_ROW: entries of a PROGRAM */
    NAND_MOVE_TARGET = 8,         /* u64; 0: of ADD_GUARD, nothing is copied; of
                                   * PROTECT, nothing is written */
    NAND_MOVE_LENGTH = 16,        /* u32: 1..4096; of ADD_ROW: number of entries,
                                   * 1..64 */
    NAND_MOVE_OPCODE = 20,        /* u8: enum nand_move_opcode */
    NAND_MOVE_FLAGS = 21,         /* u8: enum nand_move_flags; of COPY, XOR and
                                   * ADD_GUARD: ignored */
    /* Fields of PROTECT. */
    NAND_MOVE_REF_TAG = 16,       /* u32, instead of the length */
    NAND_MOVE_APP_TAG = 22,       /* u16 */
    NAND_MOVE_APP_MASK = 24,      /* u16: bits that are compared */
    NAND_MOVE_FREE = 26,          /* 6 bytes that the controller ignores */
    NAND_MOVE_LEN = 32,
    NAND_MOVE_BYTES_MAX = 4096,
};
enum nand_move_opcode {
    NAND_MOVE_COPY = 0,
    NAND_MOVE_XOR = 1,            /* the target becomes target XOR source;
                                   * addresses and length: multiples of 8 */
    NAND_MOVE_ADD_GUARD = 2,      /* copies, and continues the guard (the CRC of
                                   * the current block) over the source */
    NAND_MOVE_PROTECT = 3,        /* ends a block: checks, makes, copies or drops
                                   * its protection information */
    NAND_MOVE_ADD_ROW = 4,        /* adds DATA, META and SYSTEM of the units of a
                                   * PROGRAM to sums: target becomes target XOR
                                   * these.  The target has the data of all units,
                                   * then their metadata, then their system bytes.
                                   * Addresses of list and target: multiples of
                                   * 64, in the entries: of 8.
                                   * META = 0 is refused; OFFSET and LENGTH are
                                   * ignored */
};
enum nand_move_flags {
    NAND_MOVE_BEGIN = 0x01,       /* of ADD_ROW: the target becomes the units */
    /* The others are flags of PROTECT. */
    NAND_MOVE_PI_TYPE = 0x03,     /* 1 to 3 */
    NAND_MOVE_CHECK_REF = 0x10,
    NAND_MOVE_CHECK_APP = 0x20,
    NAND_MOVE_CHECK_GUARD = 0x40,
    NAND_MOVE_CHECKS = 0x70,
};
enum nand_move_status {
    NAND_MOVE_OK = 0,             /* all moves were done */
    NAND_MOVE_REFUSED = 1,        /* move number DONE: it is malformed, its memory
                                   * is not in DRAM, or a word of it is lost; it
                                   * has changed nothing, not even the guard */
    NAND_MOVE_BAD_GUARD = 2,      /* these three: in move number DONE, this check
                                   * of PROTECT has failed */
    NAND_MOVE_BAD_APP_TAG = 3,
    NAND_MOVE_BAD_REF_TAG = 4,
};

/* Counters: 64 bits each, read as those of the port. */
enum nand_counter {
    NAND_COUNT_UNITS_READ,
    NAND_COUNT_UNITS_PROGRAMMED,
    NAND_COUNT_BLOCKS_ERASED,
    NAND_COUNT_CORRECTED_BITS,
    NAND_COUNT_SOFT_READS,        /* units that needed more than step 0 */
    NAND_COUNT_UNCORRECTABLE,     /* units */
    NAND_COUNT_PROGRAM_FAILURES,  /* wordlines */
    NAND_COUNT_ERASE_FAILURES,    /* blocks */
    NAND_COUNT_VIOLATIONS,        /* commands that broke a rule of the flash */
    NAND_COUNT_SUSPENDS,          /* of programs and of erasures */
    NAND_COUNTERS,
};
enum { NAND_COUNTER_BASE = 0x400 };  /* counter n at + 8n */

/* ---- Command: 64 bytes. */
enum {
    NAND_CMD_LEN = 64,
    NAND_CMD_OPCODE = 0,          /* u8: enum nand_opcode */
    NAND_CMD_FLAGS = 1,           /* u8: enum nand_cmd_flags */
    NAND_CMD_ENTRIES = 2,         /* u16 */
    NAND_CMD_CHANNEL = 4,         /* u8 */
    NAND_CMD_DIE = 5,             /* u8: of the channel */
    NAND_CMD_PLANES = 6,          /* u8: one bit per plane */
    NAND_CMD_COOKIE = 8,          /* u64: returned in the completion */
    NAND_CMD_LIST = 16,           /* u64: address of the entries, 64-byte
                                   * aligned; MARKS: of the bytes */
    NAND_CMD_BLOCK = 24,          /* 4 x u16, indexed by plane */
    NAND_CMD_WORDLINE = 32,       /* u16: PROGRAM */
    NAND_CMD_TAG = 36,            /* u32: for traces: NAND_TAG_* */
};
/* TAG: bits 0 to 23 are the number of a request, or NAND_TAG_NUMBER; bits 24 to
 * 31 are the cause, a number that only firmware knows. */
enum {
    NAND_TAG_NUMBER = 0xffffff,
    NAND_TAG_CAUSE_SHIFT = 24,
};
enum nand_opcode {
    NAND_CMD_NOP = 0,
    NAND_CMD_READ = 1,            /* the units that 1 to 64 entries name, in any
                                   * order */
    NAND_CMD_PROGRAM = 2,         /* WORDLINE of each plane.  An entry for each
                                   * unit, in the order of the transfer: for each
                                   * page of the wordline, for each plane in
                                   * ascending order, each unit */
    NAND_CMD_ERASE = 3,
    NAND_CMD_MARKS = 4,           /* writes a byte for each block of the planes
                                   * to LIST: 1 if the factory marked it as bad */
};
enum nand_cmd_flags {
    NAND_CMD_SLC = 1,             /* ERASE: one bit per cell from now on */
    NAND_CMD_URGENT = 2,          /* READ: before others of its die */
    NAND_CMD_REUSE = 4,           /* ERASE: programmed again soon.  The model
                                   * keeps the storage of the old contents, which
                                   * costs less CPU time but a larger file.  Not
                                   * for contents that have to be destroyed */
};

/* ---- Entry of a command's list: 64 bytes, one unit or a part of one. */
enum {
    NAND_ENTRY_LEN = 64,
    NAND_ENTRY_DATA = 0,          /* u64; READ: 0 if no data is wanted */
    NAND_ENTRY_META = 8,          /* u64; 0: READ wants none, PROGRAM has FFh */
    NAND_ENTRY_OFFSET = 16,       /* u16: of the part of the data that READ
                                   * wants, in bytes; PROGRAM: 0 */
    NAND_ENTRY_LENGTH = 18,       /* u16: its length; both are multiples of 8;
                                   * PROGRAM: NAND_DATA_LEN */
    /* These four are read by READ alone. */
    NAND_ENTRY_WORDLINE = 20,     /* u16 */
    NAND_ENTRY_PLANE = 22,        /* u8 */
    NAND_ENTRY_PAGE = 23,         /* u8: of the wordline */
    NAND_ENTRY_UNIT = 24,         /* u8: of the page */
    NAND_ENTRY_FLAGS = 25,        /* u8: enum nand_entry_flags; others are
                                   * refused */
    NAND_ENTRY_RESULT = 28,       /* u32: NAND_RESULT_*, written by READ;
                                   * PROGRAM: 0 */
    NAND_ENTRY_SYSTEM = 32,       /* 16 bytes, written by READ */
};
enum nand_entry_flags {
    NAND_ENTRY_MORE = 1,          /* the next entry is of the same unit */
};
/* RESULT of an entry. */
REG32(NAND_RESULT, 0)
    FIELD(NAND_RESULT, BITS, 0, 16)          /* corrected */
    FIELD(NAND_RESULT, STEPS, 16, 8)         /* of correction; 0: hard only */
    FIELD(NAND_RESULT, STATUS, 24, 8)        /* enum nand_cqe_status: OK,
                                              * UNCORRECTABLE or ERASED */

/* ---- Completion: the fields that other devices do not have. */
enum {
    NAND_CQE_FAILED_PLANES = 17,  /* u8: one bit per plane */
    NAND_CQE_DETAIL = 18,         /* u8: with RULE, its number in nand.md */
    NAND_CQE_STEPS = 19,          /* u8: most steps of an entry */
    NAND_CQE_BITS = 20,           /* u16: most corrected bits of an entry */
};
/* ---- Status of a completion. */
enum nand_cqe_status {
    NAND_CQE_OK = 0,              /* done; a READ may have needed correction */
    NAND_CQE_BAD_OPCODE = 1,      /* refused, as the next two: nothing was done */
    NAND_CQE_BAD_ARGUMENT = 2,
    NAND_CQE_BAD_ADDRESS = 3,     /* not in DRAM, or not of the array; or a word
                                   * that the command reads is lost */
    NAND_CQE_RULE = 4,            /* broke rule DETAIL: an error in firmware,
                                   * which QEMU logs (-d guest_errors) */
    NAND_CQE_ERASED = 5,          /* READ: a unit is in a wordline that was not
                                   * programmed, and none is uncorrectable */
    NAND_CQE_UNCORRECTABLE = 6,   /* READ: of one unit or more; RESULT says of
                                   * which */
    NAND_CQE_FAILED = 7,          /* PROGRAM or ERASE failed in FAILED_PLANES:
                                   * retire these blocks; the others succeeded */
    NAND_CQE_DEAD = 8,            /* the die does not answer */
    NAND_CQE_STORAGE = 9,         /* the array's file could not be read or
                                   * written: a fault of the emulation; PROGRAM
                                   * and ERASE can be repeated */
    NAND_CQE_ABORTED = 10,        /* by a reset: in traces only, since a reset
                                   * disables the rings */
    NAND_CQE_TRANSFER = 11,       /* parity error between DRAM and die: nothing
                                   * was programmed, and what was read has no
                                   * meaning; the command can be repeated */
};
/* clang-format on */

#endif
