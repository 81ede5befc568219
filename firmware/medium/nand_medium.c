/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/medium/nand_medium.h"

#include "firmware/medium/nand_sizes.h"
#include "firmware/drivers/ecc.h"
#include "firmware/hal/relax.h"
#include "firmware/hal/time.h"
#include "lib/patience.h"

enum {
    /* Waits before the power-off: for the mount, for the flush, and for the
     * checkpoint.  Together they are shorter than the watchdog's period. */
    STOP_MOUNT_US = 1500000,
    STOP_US = 1000000,
    CAPACITY_US = 2000000, /* the longest wait for wait_for_capacity() */
    /* Native programs, in which time stands still during a call, wait for so
     * many turns instead. */
    STOP_TURNS = 1 << 20,
    STORAGE_QUIET_US = 60000000, /* between two lines about the array's file */
    MIB_SHIFT = 20,
    UNIT_SHIFT = NAND_SIZES_UNIT_SHIFT,
    BLOCK_SHIFT = 9,
};

/* ---- Start. */

static unsigned long to_mib(uint64_t bytes)
{
    return (unsigned long)(bytes >> MIB_SHIFT);
}

static uint32_t block_units(const struct ftl_geometry *geometry)
{
    return (uint32_t)geometry->wordlines * geometry->pages * geometry->units;
}

/* Say that the capacitors are too weak for a write buffer of the usual size. */
static void report_budget(struct nand_medium *medium,
                          const struct nand_sizes *sizes,
                          const struct ftl_config *ftl)
{
    struct nand_sizes unlimited = *sizes;
    struct ftl_config usual = *ftl;

    unlimited.budget_us = 0;
    nand_sizes_begin(&usual, &unlimited);
    if (ftl->buffer_units < usual.buffer_units) {
        log_line(medium->config.log,
                 "power: the capacitors last for %lu ms, which is enough to "
                 "save %lu KiB; the write buffer has this size instead of %lu "
                 "KiB",
                 (unsigned long)sizes->budget_us / 1000,
                 (unsigned long)ftl->buffer_units * (FTL_UNIT_DATA >> 10),
                 (unsigned long)usual.buffer_units * (FTL_UNIT_DATA >> 10));
    }
}

/*
 * Choose the size of the write buffer.  If the capacitors cannot save even the
 * smallest one, the drive behaves as if there were none.
 */
static void choose_buffer(struct nand_medium *medium,
                          const struct nand_sizes *wanted,
                          struct ftl_config *ftl)
{
    struct nand_sizes sizes = *wanted;

    if (sizes.has_capacitors && nand_sizes_saved(ftl, &sizes) == 0) {
        log_line(medium->config.log,
                 "power: the write buffer cannot be saved when the power "
                 "fails, because the array is too small for that, or the "
                 "capacitors last for %lu ms only; the drive has a volatile "
                 "write cache, as without capacitors",
                 (unsigned long)sizes.budget_us / 1000);
        sizes.has_capacitors = false;
        medium->config.has_capacitors = false;
    }
    nand_sizes_begin(ftl, &sizes);
    report_budget(medium, &sizes, ftl);
}

/*
 * Choose the size of the write buffer, and read which blocks the factory has
 * marked as bad.  If a die does not answer, its bad blocks are not known, and
 * so the capacity is only an estimate.
 */
static enum init_result read_marks(struct nand_medium *medium,
                                   const struct nand_info *info,
                                   const struct nand_sizes *sizes,
                                   struct ftl_config *ftl)
{
    const struct nand_medium_config *config = &medium->config;
    size_t dies = ftl->geometry.dies;
    uint8_t *list =
        dram_alloc(config->dram, (size_t)info->planes * info->blocks, 64);
    uint8_t *bad = dram_alloc(config->dram, info->blocks * dies, 64);
    struct nand_marks marks;

    if (list == NULL || bad == NULL) {
        return INIT_NO_MEMORY;
    }
    ftl->bad_planes = bad;
    choose_buffer(medium, sizes, ftl);
    if (!nand_seam_read_marks(&medium->nand, info, list, bad, &marks)) {
        return INIT_REFUSED;
    }
    if (marks.blocks != 0) {
        log_line(config->log, "nand: the factory marked %u blocks as bad",
                 marks.blocks);
    }
    if (marks.dead_dies != 0) {
        log_line(config->log,
                 "nand: %u dies do not answer; their data is rebuilt from the "
                 "parity of the others if there is one such die and any "
                 "parity, and otherwise lost",
                 marks.dead_dies);
    }
    ftl->is_capacity_estimated = marks.dead_dies != 0;
    return INIT_OK;
}

/* What SMART needs to know of the array. */
static void note_sizes(struct nand_medium *medium, const struct nand_info *info,
                       const struct ftl_config *ftl)
{
    uint32_t dies = ftl->geometry.dies;
    uint64_t units = ftl->logical_units;
    uint32_t block = block_units(&ftl->geometry);

    if (dies >= FTL_PARITY_DIES) {
        units = units * dies / (dies - 1);
    }
    medium->good_blocks = ftl_good_blocks(ftl);
    medium->needed_blocks =
        MIN((uint32_t)((units + block - 1) / block), medium->good_blocks - 1);
    medium->die_blocks = (uint32_t)info->planes * info->blocks;
    medium->dies = (uint32_t)info->channels * info->dies;
    medium->superblocks = info->blocks;
    medium->endurance = info->endurance;
}

/* Choose the sizes of the translation layer. */
static enum init_result choose_sizes(struct nand_medium *medium,
                                     const struct nand_sizes *sizes,
                                     struct ftl_config *ftl)
{
    if (!nand_sizes_choose(ftl, sizes)) {
        log_line(medium->config.log,
                 "ftl: an array with %u blocks of %u wordlines in each plane "
                 "is too small, or too large, or has too many bad blocks; use "
                 "an array that essd-nand create has made",
                 ftl->geometry.blocks, ftl->geometry.wordlines);
        return INIT_UNUSABLE;
    }
    /* With a dead die, the capacity may be an estimate, which may be too large.
     * The starts before the die died have checked the real capacity. */
    if (!ftl->is_capacity_estimated && !ftl_checkpoint_fits(ftl)) {
        log_line(medium->config.log,
                 "ftl: the map for %lu MiB does not fit into one superblock, "
                 "which is one block of %u wordlines in each of the %u planes "
                 "of %u dies; create an array with fewer blocks in a plane "
                 "than %u, or with more dies",
                 to_mib((uint64_t)ftl->logical_units << UNIT_SHIFT),
                 ftl->geometry.wordlines, ftl->geometry.planes,
                 ftl->geometry.dies, ftl->geometry.blocks);
        return INIT_UNUSABLE;
    }
    return INIT_OK;
}

static enum init_result reserve_memory(struct nand_medium *medium,
                                       const struct nand_info *info,
                                       struct ftl_config *ftl)
{
    const struct nand_medium_config *config = &medium->config;
    struct dram *dram = config->dram;
    size_t bytes = ftl_bytes(ftl);
    size_t keep_bytes = ftl_keep_bytes(ftl);
    size_t left;

    if (!nand_seam_init(&medium->seam, &medium->nand, info, dram, ftl)) {
        return INIT_NO_MEMORY;
    }
    left = dram->size_bytes - dram->used_bytes;
    left -= MIN(left, config->spare_bytes);
    for (unsigned int i = 0; i < FTL_LOST_WORDS; i++) {
        if (config->lost_words[i] != 0) {
            ftl->lost_words[i] =
                (const uint8_t *)(uintptr_t)(config->lost_words[i] -
                                             medium->seam.moves.addr_offset);
        }
    }
    if (bytes + keep_bytes <= left) {
        ftl->keep = dram_reserve_end(dram, keep_bytes, 64);
        ftl->memory = dram_reserve(dram, bytes, 64);
    }
    if (ftl->memory == NULL || ftl->keep == NULL) {
        log_line(config->log,
                 "ftl: a capacity of %lu MiB needs %lu MiB of DRAM for its "
                 "map, and %lu MiB are left; start the machine with more "
                 "memory, or use a smaller array",
                 to_mib((uint64_t)ftl->logical_units << UNIT_SHIFT),
                 to_mib(bytes + keep_bytes) + 1, to_mib(left));
        return INIT_UNUSABLE;
    }
    return INIT_OK;
}

static enum init_result start_driver(struct nand_medium *medium)
{
    const struct nand_config nand = {
        .regs = medium->config.regs,
        .dram = medium->config.dram,
        .commands = NAND_SIZES_REQUESTS,
    };

    return nand_init(&medium->nand, &nand);
}

/* Report that the write buffer was saved, when the power fails. */
static void report_saved(struct nand_medium *medium, uint64_t now_us)
{
    const struct nand_medium_config *config = &medium->config;

    if (!medium->is_failing || medium->is_saved || !ftl_is_saved(medium->ftl)) {
        return;
    }
    medium->is_saved = true;
    log_line(config->log, "power: the write buffer was saved in %lu us",
             (unsigned long)(now_us - medium->fail_us));
    config->saved(config->ctx);
}

/* The time of the main loop, for calls outside of it. */
static uint64_t medium_now_us(const struct nand_medium *medium)
{
    return hal_now_us() - medium->left_out_us;
}

/* Serve the flash once, outside of the main loop, and notice a power cut. */
static void run_flash(struct nand_medium *medium, uint64_t now_us)
{
    uint64_t deadline_us = LOOP_NO_DEADLINE;

    medium->config.check_power(medium->config.ctx, now_us);
    (void)ftl_step(medium->ftl, now_us, &deadline_us);
    nand_kick(&medium->nand);
    hal_relax();
    (void)nand_seam_poll(&medium->seam, NAND_SIZES_REQUESTS);
    report_saved(medium, now_us);
}

static void end_flush(struct media_owner *owner, enum media_status status)
{
    struct nand_medium *medium = container_of(owner, struct nand_medium, flush);

    medium->is_stopping = false;
    medium->result = status;
}

/* Begin to flush, for nand_medium_stop().  If all operations are in progress,
 * the flush begins when one of them ends. */
static void start_flush(struct nand_medium *medium)
{
    const struct media_io flush = media_own_flush(&medium->flush);

    medium->flush.done = end_flush;
    medium->has_submitted = true;
    ftl_submit_next(medium->ftl, &flush);
}

/*
 * If a die does not answer, run the mount until it has found the capacity on
 * the flash.  If it finds none, run it to its end.
 */
static void wait_for_capacity(struct nand_medium *medium)
{
    struct patience patience;

    patience_start(&patience, hal_now_us(), CAPACITY_US);
    for (uint32_t i = 0; i < STOP_TURNS && !medium->is_saved &&
                         !ftl_capacity_is_known(medium->ftl);
         i++) {
        if (patience_is_over(&patience, hal_now_us())) {
            log_line(medium->config.log,
                     "ftl: the capacity was not found on the flash in time; "
                     "the drive uses an estimate");
            break;
        }
        run_flash(medium, medium_now_us(medium));
    }
}

static enum init_result start_ftl(struct nand_medium *medium,
                                  const struct ftl_config *ftl)
{
    medium->start_us = hal_now_us();
    medium->ftl = ftl_start(ftl);
    if (medium->ftl == NULL) {
        return INIT_BAD_CONFIG;
    }
    medium->seam.ftl = medium->ftl;
    medium->seam.find_lost_words = medium->config.find_lost_words;
    medium->seam.transfer_failed = medium->config.transfer_failed;
    medium->seam.op_failed = medium->config.op_failed;
    medium->seam.rule_broken = medium->config.rule_broken;
    medium->seam.ctx = medium->config.ctx;
    medium->state = FTL_MOUNTING;
    medium->has_submitted = true; /* the mount has to begin */
    nand_irq_enable(&medium->nand);
    wait_for_capacity(medium);
    medium->size_blocks = (uint64_t)ftl_capacity(medium->ftl)
                          << (UNIT_SHIFT - BLOCK_SHIFT);
    log_line(medium->config.log,
             "ftl: %lu MiB, %lu KiB of write buffer, %lu MiB of DRAM; reads "
             "the flash",
             to_mib((uint64_t)ftl_capacity(medium->ftl) << UNIT_SHIFT),
             (unsigned long)ftl->buffer_units * (FTL_UNIT_DATA >> 10),
             to_mib(ftl_bytes(ftl) + ftl_keep_bytes(ftl)));
    return INIT_OK;
}

/* A hart that reads a lost word cannot continue, so the lost words are set to
 * zero before a hart reads the memory. */
static void clear_range(uintptr_t ecc_regs, const void *memory, size_t len)
{
    struct ecc ecc;

    if (ecc_init(&ecc, ecc_regs)) {
        ecc_clear(&ecc, hal_dma_addr(memory), (uint32_t)len);
    }
}

static void clear_lost_words(void *ctx, const void *memory, size_t len)
{
    const struct nand_medium *medium = ctx;

    if (medium->config.has_kept_dram) {
        clear_range(medium->config.ecc_regs, memory, len);
    }
}

void nand_medium_count_start(uint8_t *end, uintptr_t ecc_regs, uint32_t boot)
{
    clear_range(ecc_regs, end - FTL_KEEP_HEADS_LEN, FTL_KEEP_HEADS_LEN);
    ftl_count_start(end, boot);
}

enum init_result nand_medium_start(struct nand_medium *medium,
                                   const struct nand_info *info,
                                   const struct nand_medium_config *config)
{
    struct ftl_config ftl = {
        .geometry = nand_seam_geometry(info),
        .adopts = config->has_kept_dram,
        .clear_lost_words = clear_lost_words,
        .clear_ctx = medium,
        .keep_seed = config->seed,
        .boot = config->boot,
        .trace = config->trace,
        .queues_rows = info->queues_programs,
    };
    const struct nand_sizes sizes = {
        .capacity_bytes = config->capacity_bytes,
        .has_capacitors = config->has_capacitors,
        .budget_us = config->budget_us,
        .times =
            {
                .program_us = info->program_us,
                .transfer_us = info->transfer_us,
                .erase_us = info->erase_us,
                .read_us = info->read_us,
                .channel_dies = info->dies,
            },
        .hard_bits = info->hard_bits,
    };
    enum init_result result;

    *medium = (struct nand_medium){.config = *config};
    result = start_driver(medium);
    if (result == INIT_OK) {
        result = read_marks(medium, info, &sizes, &ftl);
    }
    if (result == INIT_OK) {
        result = choose_sizes(medium, &sizes, &ftl);
    }
    if (result == INIT_OK) {
        result = reserve_memory(medium, info, &ftl);
    }
    if (result != INIT_OK) {
        return result;
    }
    note_sizes(medium, info, &ftl);
    ftl.flash = nand_seam_flash(&medium->seam);
    return start_ftl(medium, &ftl);
}

/* ---- Operations. */

bool nand_medium_submit(void *ctx, const struct media_io *io)
{
    struct nand_medium *medium = ctx;

    medium->has_submitted = true;
    return ftl_submit(medium->ftl, io);
}

bool nand_medium_wipe(void *ctx, struct media_owner *owner)
{
    struct nand_medium *medium = ctx;

    medium->has_submitted = true;
    return ftl_wipe(medium->ftl, owner);
}

/* All namespaces are on one medium: a flush of one flushes all. */
static bool submit_io(void *ctx, const struct media_io *io)
{
    struct nand_medium *medium = ctx;
    struct volume *volume = medium->volume;
    struct media_io whole = *io;

    whole.ns = 0;
    if (io->op != MEDIA_FLUSH &&
        !volume_locate_linear(volume, io, &whole.first_lba,
                              &whole.count_blocks)) {
        volume_note_operation(volume, io);
        if (!volume_locate(volume, io, &whole.first_lba, &whole.count_blocks)) {
            return volume_submit(volume, io);
        }
    }
    return nand_medium_submit(medium, &whole);
}

/*
 * Choose when a write is complete: as soon as it is in the buffer, or only when
 * it is on flash.  Without capacitors, the hosts' setting of the volatile cache
 * decides.  With capacitors there is no such setting: the buffer is enough as
 * long as they work and the array's file can be written.
 */
static void apply_cache(struct nand_medium *medium)
{
    ftl_set_volatile(medium->ftl,
                     medium->config.has_capacitors
                         ? medium->is_backed && !medium->is_storage_failing
                         : medium->is_cache_on);
}

static void set_volatile(void *ctx, bool is_enabled)
{
    struct nand_medium *medium = ctx;

    medium->is_cache_on = is_enabled;
    apply_cache(medium);
}

static void read_geometry(void *ctx, uint32_t ns,
                          struct media_geometry *geometry)
{
    volume_geometry(((struct nand_medium *)ctx)->volume, ns, geometry);
}

static uint32_t failed_block(void *ctx)
{
    const struct nand_medium *medium = ctx;

    return volume_failed_block(medium->volume, ftl_failed_block(medium->ftl));
}

struct nvmf_media nand_medium_seam(struct nand_medium *medium,
                                   struct volume *volume)
{
    medium->volume = volume;
    return (struct nvmf_media){
        .ctx = medium,
        .submit = submit_io,
        .set_volatile = set_volatile,
        .failed_block = failed_block,
        .geometry = read_geometry,
    };
}

/* ---- The main loop. */

/* Log what this start has found of the write buffer of the earlier one. */
static void report_adoption(struct nand_medium *medium)
{
    struct log *log = medium->config.log;
    const struct ftl_adopted *adopted = ftl_adopted(medium->ftl);

    if (adopted->units + adopted->trims != 0) {
        log_line(log,
                 "ftl: the reset has left %u units of 4 KiB and %u trims in "
                 "the write buffer, and they are kept",
                 adopted->units, adopted->trims);
    }
    if (adopted->repaired != 0) {
        log_line(log,
                 "ftl: of %u entries of the write buffer, one of two copies "
                 "was damaged or not complete; the other one is used, and "
                 "nothing is lost",
                 adopted->repaired);
    }
    if (adopted->damaged != 0) {
        log_line(log,
                 "ftl: both copies of %u entries of the write buffer are "
                 "damaged; their writes and trims are lost; compare what was "
                 "written last with its originals",
                 adopted->damaged);
        medium->config.buffer_lost(medium->config.ctx);
    }
    if (adopted->is_refused) {
        log_line(log,
                 "ftl: the write buffer in DRAM has another layout, or is not "
                 "of the firmware that ran last before the reset; what was not "
                 "flushed is lost");
    }
}

/* Find out whether the capacitors worked when the power went off. */
static void check_capacitors(struct nand_medium *medium)
{
    const struct nand_medium_config *config = &medium->config;

    if (!config->has_capacitors) {
        return;
    }
    medium->is_backed = config->unsafe_start == 0 ||
                        ftl_was_saved(medium->ftl, config->unsafe_start);
    if (!medium->is_backed) {
        log_line(config->log,
                 "power: the capacitors have failed: the write buffer was not "
                 "saved when the power went off; what hosts have not flushed "
                 "is lost, and writes wait for the flash from now on");
        config->capacitors_failed(config->ctx);
    }
    apply_cache(medium);
}

/* The mount has ended. */
static void report_mount(struct nand_medium *medium, uint64_t now_us)
{
    const struct nand_medium_config *config = &medium->config;
    const struct ftl_counters *counters = ftl_counters(medium->ftl);

    if (medium->state == FTL_READY) {
        log_line(config->log, "ftl: ready after %lu ms, %lu rows were read",
                 (unsigned long)((now_us - medium->start_us) / 1000),
                 (unsigned long)counters->scanned_rows);
        report_adoption(medium);
        if (!medium->has_mounted) {
            medium->has_mounted = true;
            check_capacitors(medium);
        }
        return;
    }
    if (ftl_failure(medium->ftl) == FTL_FAILURE_OLD_LAYOUT) {
        log_line(config->log,
                 "ftl: an older firmware, which had no parity over dies, has "
                 "written the array; commands are refused; create a new array, "
                 "or go back to the older firmware to read this one");
        config->failed(config->ctx);
        return;
    }
    if (ftl_failure(medium->ftl) == FTL_FAILURE_CAPACITY) {
        log_line(config->log,
                 "ftl: the array was written with another capacity than this "
                 "drive's; commands are refused; use the drive's own array");
        config->failed(config->ctx);
        return;
    }
    log_line(config->log,
             "ftl: the flash cannot be read, or has no space in which to "
             "repair what a power cut has torn; commands are refused; use a "
             "copy of the array's file, or a new one");
    config->failed(config->ctx);
}

/* Report dies that have died now, or that had died before this start, as the
 * mount has found. */
static void report_dead_dies(struct nand_medium *medium)
{
    uint32_t dead = ftl_dead_dies(medium->ftl);
    uint32_t answer = ftl_distrusted_dies(medium->ftl);

    if (dead == medium->dead_dies) {
        return;
    }
    medium->dead_dies = dead;
    for (uint32_t die = 0; die < medium->dies; die++) {
        if (ftl_die_is_dead(medium->ftl, die)) {
            medium->config.die_failed(medium->config.ctx, die);
        }
    }
    log_line(medium->config.log,
             "ftl: number of dies that have died: %u; they are not used any "
             "more, and what they held is rebuilt from parity if there is any",
             dead);
    if (answer != 0) {
        log_line(medium->config.log,
                 "ftl: number of dead dies that answer again: %u; they stay "
                 "unused, because their contents are outdated",
                 answer);
    }
}

static void report_read_only(struct nand_medium *medium)
{
    const struct nand_medium_config *config = &medium->config;

    medium->is_read_only = true;
    log_line(
        config->log,
        "ftl: %u planes of blocks have failed, and the rest has too little "
        "space for writes; the drive is read-only from now on; copy its "
        "data to another drive",
        ftl_failed_planes(medium->ftl));
    config->read_only(config->ctx);
}

/*
 * A disk that is almost full may refuse some writes and take others.  So the
 * log has one such line a minute at most.
 */
static void log_storage(struct nand_medium *medium, uint64_t now_us)
{
    if (!medium->is_storage_failing && medium->has_told_storage) {
        medium->has_told_storage = false;
        log_line(medium->config.log,
                 "nand: the array's file can be written again");
    }
    if (medium->is_storage_failing && now_us >= medium->storage_quiet_us) {
        medium->has_told_storage = true;
        medium->storage_quiet_us = now_us + STORAGE_QUIET_US;
        log_line(
            medium->config.log,
            "nand: the array's file cannot be written (is its disk full?); "
            "writes and flushes fail; make space on the disk, and the "
            "drive goes on; nothing is lost if it stays on until then");
    }
}

static void report_storage(struct nand_medium *medium, uint64_t now_us)
{
    medium->is_storage_failing = ftl_is_storage_failing(medium->ftl);
    apply_cache(medium);
    log_storage(medium, now_us);
    medium->config.storage_failing(medium->config.ctx,
                                   medium->is_storage_failing);
}

static enum ftl_state current_state(const struct nand_medium *medium)
{
    enum ftl_state state = ftl_state(medium->ftl);

    return state == FTL_READY && ftl_is_adopting(medium->ftl) ? FTL_MOUNTING
                                                              : state;
}

/* The translation layer is in another state than before. */
static void take_state(struct nand_medium *medium, uint64_t now_us)
{
    medium->state = current_state(medium);
    if (medium->state == FTL_MOUNTING) {
        medium->start_us = now_us; /* after a wipe */
    } else if (medium->state != FTL_WIPING) {
        report_mount(medium, now_us);
    }
}

static const uint8_t *word_at(const struct nand_medium *medium, uint64_t addr)
{
    return (const uint8_t *)(uintptr_t)(addr - medium->seam.moves.addr_offset);
}

bool nand_medium_note_lost_word(struct nand_medium *medium, uint64_t addr)
{
    return medium->ftl != NULL &&
           ftl_note_lost_word(medium->ftl, word_at(medium, addr));
}

bool nand_medium_note_patrolled_word(struct nand_medium *medium, uint64_t addr)
{
    return medium->ftl != NULL &&
           ftl_note_patrolled_word(medium->ftl, word_at(medium, addr));
}

bool nand_medium_needs_lost_word(const struct nand_medium *medium)
{
    return medium->ftl != NULL && medium->config.lost_words[0] != 0 &&
           !ftl_capacity_is_known(medium->ftl);
}

bool nand_medium_has_failed(const struct nand_medium *medium)
{
    return medium->ftl != NULL && ftl_state(medium->ftl) == FTL_FAILED;
}

void nand_medium_power_fails(struct nand_medium *medium, uint64_t now_us)
{
    medium->is_failing = true;
    medium->fail_us = now_us;
    ftl_power_fails(medium->ftl);
}

enum loop_work nand_medium_poll(struct nand_medium *medium,
                                struct loop_step *step)
{
    uint64_t deadline_us = LOOP_NO_DEADLINE;
    bool any = nand_seam_poll(&medium->seam, step->budget) != 0;

    medium->left_out_us = step->left_out_us;
    medium->has_submitted = false;
    any |= ftl_step(medium->ftl, step->now_us, &deadline_us);
    loop_call_at(step, deadline_us);
    if (__builtin_expect(ftl_is_storage_failing(medium->ftl) !=
                             medium->is_storage_failing,
                         0)) {
        report_storage(medium, step->now_us);
    }
    if (__builtin_expect(medium->state != current_state(medium), 0)) {
        take_state(medium, step->now_us);
        return LOOP_EVENT;
    }
    if (__builtin_expect(ftl_is_read_only(medium->ftl) && !medium->is_read_only,
                         0)) {
        report_read_only(medium);
    }
    report_dead_dies(medium);
    if (__builtin_expect(medium->is_failing, 0)) {
        report_saved(medium, step->now_us);
    }
    return any ? LOOP_IO : LOOP_IDLE;
}

bool nand_medium_arm(struct nand_medium *medium)
{
    return !medium->has_submitted && nand_arm(&medium->nand);
}

static bool is_mounted(const struct nand_medium *medium)
{
    return current_state(medium) != FTL_MOUNTING;
}

/* Whether the flush has ended, and no operation of hosts is in progress.  Those
 * that wait for a free operation begin when another one ends. */
static bool has_flushed(const struct nand_medium *medium)
{
    uint32_t all;

    return !medium->is_stopping && ftl_operations(medium->ftl, &all) == 0;
}

/* Garbage collection goes on until there is space for a checkpoint, because
 * the next start is much faster with one. */
static bool has_space(const struct nand_medium *medium)
{
    return !ftl_makes_space(medium->ftl);
}

/* Rows that are still due may begin another stripe, so complete each one. */
static bool has_stopped(const struct nand_medium *medium)
{
    bool are_complete = ftl_stripes_are_complete(medium->ftl);

    if (!are_complete) {
        ftl_complete_stripes(medium->ftl);
    }
    return are_complete && ftl_is_stopped(medium->ftl);
}

/* Serve the flash outside of the main loop until is_done() returns true, or
 * until the patience is over.  If the power fails, serve it until the write
 * buffer is saved instead. */
static void run_until(struct nand_medium *medium, struct patience *patience,
                      bool (*is_done)(const struct nand_medium *))
{
    for (uint32_t i = 0;
         i < STOP_TURNS &&
         !(medium->is_failing ? medium->is_saved : is_done(medium));
         i++) {
        if (patience_is_over(patience, hal_now_us())) {
            break;
        }
        run_flash(medium, medium_now_us(medium));
    }
}

/*
 * After a reset, the DRAM may hold what hosts have not flushed.  It can only be
 * flushed when the mount has ended and the write buffer has been taken over.
 */
static void finish_mount(struct nand_medium *medium)
{
    struct patience patience;

    patience_start(&patience, hal_now_us(), STOP_MOUNT_US);
    run_until(medium, &patience, is_mounted);
    if (medium->state != current_state(medium)) {
        take_state(medium, medium_now_us(medium));
    }
    if (medium->state != FTL_READY) {
        log_line(medium->config.log,
                 "ftl: the flash could not be mounted before the power-off; if "
                 "the power goes off now, what hosts wrote before the reset "
                 "and have not flushed is lost; shut down again after \"ftl: "
                 "ready\"");
    }
}

/* Flush until nothing is left in the write buffer: writes that hosts had sent
 * before may begin after a flush. */
static void flush_buffer(struct nand_medium *medium, struct patience *patience)
{
    do {
        medium->result = MEDIA_ABORTED;
        medium->is_stopping = true;
        start_flush(medium);
        run_until(medium, patience, has_flushed);
        if (ftl_withdraw_next(medium->ftl)) {
            medium->is_stopping = false;
        }
    } while (medium->result == MEDIA_OK && !ftl_is_flushed(medium->ftl) &&
             !patience_is_over(patience, hal_now_us()));
}

bool nand_medium_stop(struct nand_medium *medium)
{
    bool is_flushed;
    struct patience patience;

    /* Without a reset, nothing is in the buffer while the mount goes on. */
    if (medium->state == FTL_MOUNTING && medium->config.has_kept_dram) {
        finish_mount(medium);
    }
    if (medium->state != FTL_READY || medium->is_stopping) {
        return !medium->is_stopping && !medium->config.has_kept_dram;
    }
    patience_start(&patience, hal_now_us(), STOP_US);
    flush_buffer(medium, &patience);
    if (medium->result == MEDIA_OK) {
        run_until(medium, &patience, has_space);
        ftl_stop(medium->ftl);
        patience_start(&patience, hal_now_us(), STOP_US);
        run_until(medium, &patience, has_stopped);
    }
    if (medium->is_failing) {
        return medium->is_saved;
    }
    is_flushed = medium->result == MEDIA_OK && ftl_is_flushed(medium->ftl);
    if (!is_flushed) {
        log_line(medium->config.log,
                 "ftl: the write buffer could not be written to flash before "
                 "the power-off; what hosts have not flushed is lost");
    }
    return is_flushed;
}
