/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translation layer on a small NAND array in memory.  The bed stands for
 * the controller: it executes the operations of each die in their order, except
 * that urgent reads pass operations that have not begun.  The order of its
 * events (a request to storage ends, an operation starts or finishes) follows
 * from a seed.  The power can be cut after every event.
 *
 * An oracle knows what each unit may contain.
 */
#ifndef ESSD_TEST_FTL_BED_H
#define ESSD_TEST_FTL_BED_H

#include "storage/ftl/ftl.h"
#include "hw-model/nand/nand_array.h"
#include "hw-model/nand/nand_ram.h"

enum {
    BED_DIES_MAX = 8,
    BED_MOVES = 16, /* moves in the list if the seed is odd; 1 if it is even */
    BED_QUEUE = 64, /* operations of a die that wait */
    BED_REQUESTS_MAX = 64,
    BED_HISTORY = 64, /* writes of a unit that are not known to be durable */
    BED_IOS = 8,      /* operations of the medium in progress */
    BED_IO_SECTORS = 64,
    BED_SECTORS = 8, /* of a unit */
    BED_SECTOR_LEN = 512,
    BED_META_LEN = 8, /* of a sector, with has_metadata */
};
#define BED_MARKED UINT32_MAX /* the id of a sector that cannot be read */

struct bed_config {
    const char *profile;
    struct nand_geometry geometry; /* planes, units, pages: the profile's */
    uint32_t logical_units;        /* 0: the most */
    /* Factory marks may leave less space than logical_units. */
    bool is_capacity_limited;
    uint16_t buffer_units;
    uint16_t num_requests; /* operations of the flash, at most
                            * BED_REQUESTS_MAX; 0: 32 */
    /* If not 0, random operations include long trims, and this is
     * ftl_config.trims_per_step.  0: random trims are short. */
    uint32_t trims_per_step;
    uint16_t checkpoint_superblocks;
    /* The bad planes of dead dies are not known, so the capacity is estimated.
     */
    bool estimates_capacity;
    /* The last die cannot be used in blocks from this one on; 0: in all. */
    uint16_t last_die_blocks;
    uint8_t forbidden_planes; /* mask: they cannot be used in any block */
    uint32_t wear_spread;     /* 0: 16 */
    uint16_t reclaim_bits;    /* 0: nothing is reclaimed */
    uint64_t scrub_us;        /* 0: nothing is scrubbed */
    bool is_greedy;           /* the policy "greedy" chooses victims */
    const char *levelling;    /* see struct ftl_config */
    const char *streams;      /* the same */
    bool erases_early;        /* the same */
    bool queues_rows;         /* the same */
    bool torn_units_vary;     /* each read of one may succeed or fail */
    bool is_untimed; /* an erasure is complete when it is begun, plane by plane,
                      * as in a drive without the times of the flash */
    bool dies_lag;   /* now and then, a die does nothing during some events */
    /* Random operations are mostly writes of a few units with FUA, several of
     * the same unit at the same time. */
    bool rewrites_few;
    bool has_metadata; /* operations carry 8 bytes for each sector */
    /* With has_metadata: these are protection information of this type, 1 or 2,
     * which every read and write checks; 0: any bytes. */
    uint8_t pi_type;
    bool has_marks; /* random operations also mark sectors as unreadable */
    /* bed_use() lets up to so many writes follow each of its operations: see
     * chained_writes of struct bed. */
    unsigned int chain;
    uint64_t seed; /* of the array and of the order of events */
};

/* One write of a unit. */
struct bed_write {
    uint32_t id;      /* of its contents; 0: zeroes; or BED_MARKED */
    uint8_t sectors;  /* mask */
    bool is_optional; /* the operation has failed, perhaps before it changed
                       * this unit */
};

/*
 * What a unit may contain: its base, which is durable, and the first writes
 * after it, none to all of them.  Writes are counted from the beginning.
 */
struct bed_unit {
    uint32_t base[BED_SECTORS]; /* ids */
    uint32_t durable;           /* writes that are in the base */
    uint32_t completed;
    uint32_t writes;
    uint32_t in_progress; /* writes */
    bool is_busy;         /* one of them is of parts: no other may begin */
    /* More has failed than parity can rebuild: bed_check_each() accepts read
     * errors; or also any contents that the unit ever had. */
    bool may_fail;
    bool may_be_old;
    struct bed_write history[BED_HISTORY]; /* by number, modulo its length */
};

struct bed_io {
    struct media_owner owner;
    struct bed *bed;
    bool is_used;
    bool is_done;
    bool is_chained; /* nobody waits for it */
    enum media_status status;
    struct media_io io;
    struct nvmf_piece pieces[3];
    /* Of each unit, at submit: `completed` for a flush, otherwise `writes` with
     * this one. */
    uint32_t *marks;
    uint8_t buffer[BED_IO_SECTORS * (BED_SECTOR_LEN + BED_META_LEN)];
};

enum bed_die_stage {
    BED_DIE_IDLE,
    BED_DIE_STARTING,
    BED_DIE_BUSY,
    BED_DIE_FINISHING
};

struct bed_die {
    enum bed_die_stage stage;
    struct nand_op *op;
    uint32_t head, tail;
    uint32_t failed_block; /* the block, plus 1, of the latest program that has
                            * failed; 0: none, or a later one has succeeded */
    struct ftl_flash_op queue[BED_QUEUE];
};

struct bed {
    /* Storage and memory, which bed_cut_saved_again() uses again. */
    struct nand_ram ram;
    void *array_memory;
    void *ftl_memory;
    size_t ftl_bytes; /* of ftl_memory */
    uint8_t *keep;    /* memory of the write buffer */
    size_t keep_bytes;
    uint32_t units;
    struct bed_unit *unit;
    struct bed_io io[BED_IOS];

    /* From here on, a copy begins with zeroes. */
    struct bed_config config;
    struct nand_file file;
    struct nand_array *array;
    uint64_t start_us; /* when the bed was last mounted */
    uint64_t array_ns; /* the array's time then */
    struct ftl *ftl;
    bool adopts;      /* the next mount adopts the buffer in `keep` */
    uint32_t boot;    /* number of the last start */
    bool is_no_drive; /* the next mounts are not those of a drive */
    uint8_t bad_planes[4096];
    bool is_estimated; /* the capacity with which the mount begins */
    uint64_t now_us;
    uint64_t deadline_us; /* of the translation layer, since the last step */
    uint64_t random;
    bool is_unknown; /* units may have any of several contents, because of a
                      * power cut, or because a write was refused */
    unsigned int urgent_reads; /* that were submitted */
    uint8_t held_dies; /* mask: their operations neither start nor finish */
    uint8_t forbidden_dies; /* mask: they must get no operations */
    bool changes_dead_dies; /* before the next mount, exactly `dead_dies` are */
    uint8_t dead_dies;      /* dead: mask */
    uint8_t lagging_die;
    uint32_t lag_events;    /* for which it does nothing from now on */
    bool writes_old_layout; /* units are programmed as those without parity */
    uint32_t reads_until_error; /* 0, or this one ends with FTL_FLASH_ERROR */
    /* The program or erasure with this number, counted from 1 from now on, ends
     * with FTL_FLASH_TRANSFER and changes nothing; 0: none. */
    uint32_t changes_until_error;
    /* While this is not 0, each operation that ends has the bed submit a write
     * before end_io() returns: of a whole unit, from one piece.  The target
     * does this when an operation becomes free that a command waits for. */
    unsigned int chained_writes;
    uint32_t program_errors; /* so many of the next programs end with it */
    /* Storage may refuse requests: operations may end with MEDIA_WRITE_ERROR,
     * and a mount may wait. */
    bool storage_fails;
    bool may_lose; /* operations may end with MEDIA_READ_ERROR, because more has
                    * failed than parity can rebuild; or with MEDIA_WRITE_ERROR,
                    * because what cannot be moved takes up the space */
    uint64_t events;
    uint64_t mount_steps;      /* of the mount that is in progress */
    uint64_t programs, erases; /* begun */
    uint64_t queued_programs;  /* submitted while the die had another program of
                                * the same block */
    uint64_t
        aborted_programs; /* not begun, because the one before had failed */
    uint64_t torn_reads;  /* units of half programmed rows that were readable */
    struct bed_die dies[BED_DIES_MAX];
    struct ftl_moves moves; /* of `move_list` */
    uint16_t guard;         /* of the block that is being moved */
    /* Of each request, the CRC of the list of its units. */
    uint16_t listed[BED_REQUESTS_MAX];
    struct ftl_move move_list[BED_MOVES];

    uint32_t last_id;

    /* Called after every event. */
    void (*after_event)(struct bed *bed);
    void *ctx;

    const struct trace *trace; /* from the next mount on; NULL: none */
    /* Called for every operation of the flash.  May be NULL. */
    void (*submitted)(struct bed *bed, const struct ftl_flash_op *op);
};

/* The smallest flash of the sweeps: two dies, without parity. */
extern const struct bed_config bed_small;
/* Four dies with parity, checkpoints, and much spare. */
extern const struct bed_config bed_four_dies;

/* A number from the environment, with which a sweep is made longer. */
unsigned long bed_setting(const char *name, unsigned long otherwise);

/* Whether storage has old contents in erased wordlines of blocks with this
 * number, in any plane. */
bool bed_keeps_old_contents(const struct bed *bed, uint32_t block);

/* A new flash, mounted. */
struct bed *bed_new(const struct bed_config *config);
/* The same with another seed. */
struct bed *bed_new_seeded(const struct bed_config *config, uint64_t seed);
void bed_free(struct bed *bed);

/* Mount, and step until the mount has ended. */
void bed_mount(struct bed *bed);
/* What the drive does before the power goes off: write a checkpoint, and
 * complete all stripes. */
void bed_stop(struct bed *bed);
/* Begin to mount only. */
void bed_start_mount(struct bed *bed);

/*
 * What a power cut at this moment leaves: a new bed, not mounted, whose oracle
 * knows what may be there.
 */
struct bed *bed_cut(const struct bed *bed, uint64_t seed);

/* The same as bed_cut() after the write buffer was saved: the oracle expects
 * all operations that have ended. */
struct bed *bed_cut_saved(const struct bed *bed, uint64_t seed);

/*
 * The same as bed_cut_saved(), but in the memory of `copy`, which an earlier
 * call has made of the same bed, and which is not needed any more: only storage
 * that was written is copied.  Whoever changes bytes of `copy->ram` itself
 * calls nand_ram_note_write().
 * @param copy  NULL the first time
 */
struct bed *bed_cut_saved_again(struct bed *copy, const struct bed *bed,
                                uint64_t seed);

/* Storage copies little of the data that the array reads, but nobody wants: see
 * nand_ram.thin. */
void bed_read_thinly(struct bed *bed);

/*
 * Cut the power of this bed itself, so that it can be mounted again.  This
 * needs much less time than bed_cut(), which makes a copy.
 * @param is_saved  the write buffer was saved: the oracle expects all
 *                  operations that have ended
 */
void bed_cut_power(struct bed *bed, uint64_t seed, bool is_saved);

/* Reset the drive of this bed itself, without a copy: see bed_reset(). */
void bed_reset_drive(struct bed *bed, uint64_t seed);

/*
 * Copy what a reset at this moment leaves.  It is like a power cut, but the
 * write buffer is kept.  So all operations that have ended count as durable
 * until the power is cut.
 */
struct bed *bed_reset(const struct bed *bed, uint64_t seed);

/*
 * Step the translation layer, and let one event happen.
 * @return false when there was nothing to do: the translation layer said so,
 *         and no event can happen
 */
bool bed_step(struct bed *bed);
/* Let one event happen without a step. @return false when none can */
bool bed_event(struct bed *bed);
/* Step until there is nothing to do.  Time does not pass. */
void bed_settle(struct bed *bed);
/* Write all units, and flush. */
void bed_fill(struct bed *bed);

/*
 * Operations.  They wait for room.  Those that write a part of a unit wait for
 * other writes of it, and these for them.
 */
/** Wipe the flash; `io` notes the end. */
void bed_wipe(struct bed *bed, struct bed_io *io);

struct bed_io *bed_submit_read(struct bed *bed, uint64_t lba, uint32_t count);
struct bed_io *bed_submit_write(struct bed *bed, uint64_t lba, uint32_t count,
                                bool fua);
/* op: MEDIA_WRITE_ZEROES, MEDIA_DEALLOCATE or MEDIA_WRITE_UNCORRECTABLE */
struct bed_io *bed_submit_trim(struct bed *bed, enum media_op op, uint64_t lba,
                               uint32_t count, bool fua);
struct bed_io *bed_submit_flush(struct bed *bed);
/* Fail unless a read that has succeeded has the contents that its units must
 * have. */
void bed_check_read(struct bed *bed, const struct bed_io *io);
/* Wait for an operation. @return its status */
enum media_status bed_wait(struct bed *bed, struct bed_io *io);
void bed_wait_all(struct bed *bed);

/* What traces call an operation: media_io.number. */
uint32_t bed_number(const struct bed_io *io);

/* Whole operations that must succeed. */
void bed_write(struct bed *bed, uint64_t lba, uint32_t count);
void bed_trim(struct bed *bed, uint64_t lba, uint32_t count);
void bed_flush(struct bed *bed);

/*
 * Read everything, and fail unless each unit has the contents that it must
 * have.  The first time after a power cut they are one of several, and from
 * then on these.
 */
void bed_check(struct bed *bed);

/* Read each unit on its own, and check it in the same way, but accept what
 * `may_fail` and `may_be_old` allow. @return how many cannot be read */
unsigned int bed_check_each(struct bed *bed);

/* Submit a random operation. */
void bed_random_op(struct bed *bed, uint64_t *random);

/* Do some random operations, with a random number of steps after each, so that
 * their writes may be durable or not. */
void bed_use(struct bed *bed, uint64_t seed, unsigned int ops);

#endif
