/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The medium of a drive with a NAND array: driver, flash seam and translation
 * layer put together.  It offers the target's media seam, in which the volume
 * says where the blocks of a namespace are, and what the main loop needs.
 */
#ifndef ESSD_MEDIUM_NAND_MEDIUM_H
#define ESSD_MEDIUM_NAND_MEDIUM_H

#include "firmware/medium/nand_seam.h"
#include "firmware/hal/log.h"
#include "firmware/loop/loop.h"
#include "storage/volume/volume.h"
#include "lib/init_result.h"

struct nand_medium_config {
    struct log *log;
    const struct trace *trace; /* outlives the medium; NULL: no events */
    struct dram *dram;
    uintptr_t regs;
    size_t spare_bytes; /* of DRAM, which others need after this */
    /* The capacity in bytes; 0, or more than the array has space for: the
     * largest that it has space for.  The value is the same at every start. */
    uint64_t capacity_bytes;
    /* A reset has kept what the earlier start left at the end of the DRAM:
     * adopt the write buffer that is there. */
    bool has_kept_dram;
    uint64_t seed; /* a random number */
    uint32_t boot; /* number of this start */
    /* When the power fails, capacitors supply the drive until the write buffer
     * is saved. */
    bool has_capacitors;
    uint32_t budget_us; /* how long they last; 0: without limit */
    /* The power last went off while hosts used the drive, in the start with
     * this number; 0: it did not, or all was on flash. */
    uint32_t unsafe_start;
    /* DMA addresses of words of DRAM that were lost before the reset; 0: none.
     * The panic may have set them to zero.  The first one is in the registers
     * of the error correction, the second one in the record of the panic. */
    uint64_t lost_words[FTL_LOST_WORDS];
    uintptr_t ecc_regs; /* registers of the block that corrects errors of DRAM,
                         * or 0 if there is none */
    /* If a device has found lost words of DRAM, call
     * nand_medium_note_lost_word() for each, and clear it.  @return whether
     * there were any */
    bool (*find_lost_words)(void *ctx);
    /* The data of an operation of the flash had a parity error between DRAM and
     * die. */
    void (*transfer_failed)(void *ctx, const struct ftl_flash_op *op);
    /* An operation of the flash has failed. */
    void (*op_failed)(void *ctx, const struct ftl_flash_op *op,
                      enum nand_seam_failure failure);
    /* A die has died, or was dead before this start.  When another one dies,
     * this is called again for each. */
    void (*die_failed)(void *ctx, uint32_t die);
    /* An operation broke a rule of the flash (docs/hardware/nand.md, section
     * 1), and was refused. */
    void (*rule_broken)(void *ctx, const struct ftl_flash_op *op, uint8_t rule);

    /* The mount has failed: all operations are refused from now on. */
    void (*failed)(void *ctx);
    /* After a reset, a part of the write buffer's description was damaged in
     * both copies: contents that a host has written last may be older now. */
    void (*buffer_lost)(void *ctx);
    /* The array's file cannot be written, or it can be written again. */
    void (*storage_failing)(void *ctx, bool is_failing);
    /* The flash is worn out: writes are refused from now on. */
    void (*read_only)(void *ctx);
    /* The mount has found that the write buffer was not saved when the power
     * went off. */
    void (*capacitors_failed)(void *ctx);
    /* Call nand_medium_power_fails() if the power fails.  nand_medium_start()
     * and nand_medium_stop() call this function while they wait for the flash,
     * because the main loop does not run then. */
    void (*check_power)(void *ctx, uint64_t now_us);
    /* The power fails, and the write buffer has been saved. */
    void (*saved)(void *ctx);
    void *ctx;
};

/* Treat as opaque. */
struct nand_medium {
    /* Its has_capacitors is also false if there are capacitors that do not last
     * long enough to save the write buffer. */
    struct nand_medium_config config;
    struct nand nand;
    struct nand_seam seam;
    struct ftl *ftl; /* NULL: the drive has no array */
    struct volume *volume;
    uint64_t size_blocks; /* of 512 bytes */
    bool has_submitted;   /* operations that ftl_step() has not seen */
    /* The state that was logged last; FTL_MOUNTING also while the write buffer
     * of the earlier start is adopted. */
    enum ftl_state state;
    bool has_mounted;  /* since the start; a mount after a wipe is later */
    bool is_read_only; /* the log says that the medium is read-only */
    bool is_storage_failing;   /* as ftl_is_storage_failing() said last */
    bool has_told_storage;     /* the log says that it is failing */
    uint64_t storage_quiet_us; /* the log says so again after this time only */
    uint32_t dead_dies;        /* number of dead dies in the last log line */
    bool is_cache_on;          /* hosts have the volatile write cache enabled */
    bool is_backed;         /* there are capacitors, and they have not failed */
    bool is_saved;          /* the log says that the write buffer is saved */
    bool is_failing;        /* the power has failed */
    uint64_t fail_us;       /* when it did */
    uint32_t good_blocks;   /* blocks that the factory has not marked as bad */
    uint32_t needed_blocks; /* how many of these hold all logical units */
    uint32_t dies;          /* of all channels */
    uint32_t die_blocks;    /* blocks of all planes of a die */
    uint32_t superblocks;
    uint32_t endurance;       /* erasures that a block is rated for */
    uint64_t start_us;        /* when the mount began */
    uint64_t left_out_us;     /* time that the main loop does not count */
    bool is_stopping;         /* nand_medium_stop() waits */
    struct media_owner flush; /* of the flush that it waits for */
    enum media_status result; /* of what it waits for */
};

/**
 * Start driver and translation layer, which begins to mount.  Operations may be
 * submitted from now on; they wait until the mount has ended.
 *
 * @param info  of nand_find()
 * @return INIT_OK, or why the array cannot be used; the log has the details
 */
MUST_USE enum init_result nand_medium_start(
    struct nand_medium *medium, const struct nand_info *info,
    const struct nand_medium_config *config);

/**
 * After a reset that has kept the DRAM, tell the write buffer in it the number
 * of this start.  Call this as soon as the number is known: see
 * ftl_count_start().
 *
 * @param end       of the DRAM
 * @param ecc_regs  as in nand_medium_config
 */
void nand_medium_count_start(uint8_t *end, uintptr_t ecc_regs, uint32_t boot);

/** Whether there are capacitors with which the write buffer can be saved. */
static inline bool nand_medium_has_capacitors(const struct nand_medium *medium)
{
    return medium->config.has_capacitors;
}

/** The target's media seam. */
struct nvmf_media nand_medium_seam(struct nand_medium *medium,
                                   struct volume *volume);

/** Start an operation on the medium as a whole, in blocks of 512 bytes.  The
 * function for volume_config.submit. */
MUST_USE bool nand_medium_submit(void *medium, const struct media_io *io);

/** Erase all blocks of the array.  The function for sanitize_config.wipe. */
MUST_USE bool nand_medium_wipe(void *medium, struct media_owner *owner);

/** For the main loop: take completions, and do what is due. */
enum loop_work nand_medium_poll(struct nand_medium *medium,
                                struct loop_step *step);

/** Before sleeping. @return false when there is work: do not sleep */
MUST_USE bool nand_medium_arm(struct nand_medium *medium);

/**
 * A word of DRAM is lost.  Call this before it is set to zero.
 *
 * @param addr  DMA address
 * @return whether the translation layer can do without the word, so that the
 *         firmware can go on
 */
bool nand_medium_note_lost_word(struct nand_medium *medium, uint64_t addr);
/** The same for a word that the patrol has found: ftl_note_patrolled_word(). */
bool nand_medium_note_patrolled_word(struct nand_medium *medium, uint64_t addr);

/** Whether the word that was lost before the reset still has to be marked in
 * the write buffer, because the mount has not found the buffer yet. */
MUST_USE bool nand_medium_needs_lost_word(const struct nand_medium *medium);

/** Whether the mount has failed, so that all operations are refused.  Only a
 * wipe or another start can change this. */
MUST_USE bool nand_medium_has_failed(const struct nand_medium *medium);

/** The power fails: save the write buffer, and serve nothing any longer. */
void nand_medium_power_fails(struct nand_medium *medium, uint64_t now_us);

/** Prepare for power-off: wait until the write buffer is on flash.  After a
 * reset, this includes the mount and what is adopted.  It takes less than four
 * seconds; the log says if this is not enough.  If the power fails meanwhile,
 * the write buffer is saved.
 * @return whether all that hosts have written is on flash */
bool nand_medium_stop(struct nand_medium *medium);

#endif
