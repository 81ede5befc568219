/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of the translation layer, and what its files offer each other. */
#ifndef ESSD_FTL_INTERNAL_H
#define ESSD_FTL_INTERNAL_H

#include "storage/ftl/ftl.h"
#include "storage/ftl/ftl_layout.h"
#include "storage/ftl/ftl_list.h"
#include "storage/ftl/ftl_parity.h"
#include "storage/ftl/ftl_pieces.h"
#include "storage/ftl/ftl_policies.h"

enum {
    FTL_SECTOR_SHIFT = 9,
    FTL_UNIT_SECTORS = FTL_UNIT_DATA >> FTL_SECTOR_SHIFT,
    FTL_TRIM_UNITS = 8 * FTL_UNIT_DATA, /* logical units of a trim page */
    FTL_TRIM_SLOTS = 16,                /* trim pages in the buffer, at most */
    FTL_FILLED = 64,                    /* entries of ftl.filled[] */
    /* Garbage collection has buffers for one row of each die, within these
     * limits. */
    FTL_MOVE_ROWS_MIN = 2,
    FTL_MOVE_ROWS_MAX = 32,
    FTL_VERSION_SHIFT = 5, /* of mount.versions[]; below it, the attempt */
    FTL_ROW_GAP = 4096,    /* row numbers that a mount leaves unused */
    /*
     * A mount takes the last rows that it finds, so many for each die, for rows
     * that may be torn.  While a row is in flight, fewer rows are started: the
     * other half is for rows that failed.
     */
    FTL_SUSPECT_ROWS = 8,
    FTL_ROWS_AHEAD = FTL_SUSPECT_ROWS / 2,
    /*
     * Entries of the map, words of memory, or the like that one step deals with
     * at most.  The map of a large array has millions of entries.  A loop over
     * all of them would hold up everything else that the drive does, and the
     * watchdog would bite on a busy computer.
     */
    FTL_TURN_ITEMS = 65536,

    /* Free superblocks that the host's stream leaves, and with which garbage
     * collection begins. */
    FTL_HOST_LEAVES_FREE = 3,
    FTL_COLLECT_BELOW = 5,
    FTL_URGENT_LEAVES_FREE = 2, /* the same, for contents of failed rows */
    FTL_MOVE_LEAVES_FREE = 1,   /* the same for the other stream, and for what
                                 * is in the buffer when the medium becomes
                                 * read-only */
    FTL_RESERVE = 8,         /* superblocks that are no part of the capacity */
    FTL_CHECKPOINT_ROWS = 8, /* of a checkpoint in progress, at most */
    FTL_WORN_RESERVE = 6,    /* with fewer of these, the medium is read-only */
    FTL_RESERVE_ROWS = 3,    /* rows of a superblock that are no capacity */
    FTL_REUSED_MAX = 2, /* superblocks that are `is_reused` at the same time */
    FTL_STUCK_RETRIES = 3, /* see `retries` of struct ftl_superblock */
    /*
     * Units that a rebuilt one may do without although nobody knows whether
     * they are in the sum.  If one or two units of the sum are missing, the row
     * number of the result is wrong, because the XOR of one or two different
     * numbers is not 0.  The XOR of more of them may be 0.
     */
    FTL_LEFT_OUT_MAX = 2,
};

/*
 * ---- The map.  An entry is one of these:
 *  - a place on the flash
 *  - FTL_NOWHERE: the logical unit reads as zeroes
 *  - FTL_IN_SLOT | the index of a slot
 *  - FTL_LOST | a place: the contents of the logical unit are lost, and the
 * unit at this place records that.  Reads fail until a host writes or trims the
 *    logical unit.
 *  - FTL_LOST_NOWHERE: the contents are lost, and no unit on the flash records
 *    that, except for a checkpoint
 */
#define FTL_IN_SLOT      UINT32_C(0x80000000)
#define FTL_LOST         UINT32_C(0x40000000)
#define FTL_LOST_NOWHERE (FTL_LOST | FTL_PLACES_MAX)

static inline bool ftl_is_place(uint32_t entry)
{
    return (entry & (FTL_IN_SLOT | FTL_LOST)) == 0;
}

static inline bool ftl_is_lost(uint32_t entry)
{
    return (entry & (FTL_IN_SLOT | FTL_LOST)) == FTL_LOST;
}

/* The place that an entry names, with or without FTL_LOST; FTL_NOWHERE if it
 * names none. */
static inline uint32_t ftl_entry_place(uint32_t entry)
{
    return (entry & FTL_IN_SLOT) != 0 || entry == FTL_LOST_NOWHERE
               ? FTL_NOWHERE
               : entry & ~FTL_LOST;
}

static inline bool ftl_is_in_slot(uint32_t entry)
{
    return (entry & FTL_IN_SLOT) != 0 && entry != FTL_NOWHERE;
}

/* ---- Slots: units in DRAM. */
enum ftl_pool {
    FTL_POOL_HOST, /* the write buffer */
    FTL_POOL_TRIM, /* trim pages, health pages, wear pages */
    FTL_POOL_MOVE, /* units that garbage collection moves */
    FTL_POOLS
};

enum ftl_slot_state {
    FTL_SLOT_FREE,
    FTL_SLOT_FILLING, /* Its old contents are being read from flash; then it
                       * waits, with the write that needed them. */
    FTL_SLOT_WAITING, /* Waits to be put into a row; writes may change it. */
    FTL_SLOT_PROGRAMMING, /* Is being programmed; nothing changes it. */
};

struct ftl_slot {
    uint8_t state;    /* enum ftl_slot_state */
    uint8_t pool;     /* enum ftl_pool */
    bool is_trimmed;  /* while it was being programmed */
    uint16_t buffer;  /* index of the buffer with its data and metadata */
    uint16_t follows; /* the slot, being programmed, with the contents before
                       * these; or FTL_LIST_END */
    uint32_t number;  /* index in the map */
    /*
     * The entry of the map for the contents that these replace, or FTL_NOWHERE.
     * The replaced contents stay valid until these are durable.  In the pool of
     * garbage collection: the place from which the unit is moved.
     */
    uint32_t old_place;
    uint64_t accepted; /* its age: contents accepted later have larger ones */
    /* Of a unit that is moved: see struct ftl_system. */
    uint64_t version;
    uint8_t attempt;
    bool is_lost;
    uint8_t marks; /* blocks that a host has marked as unreadable, or of which a
                    * word was lost in DRAM */
    bool must_be_read; /* A word of a unit that is moved was lost in DRAM, so
                        * the unit has to be read from the flash again. */
};

/* ---- Superblocks. */
enum ftl_superblock_state {
    FTL_SUPERBLOCK_FREE,    /* Is erased and not in use. */
    FTL_SUPERBLOCK_ERASING, /* Waits for its erasures; then free or retired. */
    FTL_SUPERBLOCK_OPEN,    /* Takes the rows of a stream. */
    FTL_SUPERBLOCK_CLOSED,  /* Takes no more rows. */
    FTL_SUPERBLOCK_RETIRED, /* Is not used: too many planes are bad. */
    FTL_SUPERBLOCK_META,    /* Holds a checkpoint. */
};

struct ftl_superblock {
    uint8_t state; /* enum ftl_superblock_state */
    bool is_erased;
    bool is_partial; /* found at the start: some rows are erased or lost */
    bool
        has_normal_row; /* found at the start: a row that no mount programmed */
    bool is_known;      /* found at the start: unchanged since checkpoint */
    bool is_spoilt;     /* found at the start: a word of the parity was lost */
    bool was_moving; /* it is known and, as the checkpoint says, moves soon */
    bool is_own; /* opened since the start: what was programmed is not torn */
    bool has_failed_row; /* one of its rows has failed during the mount */
    bool is_given_up;    /* a program has failed although the flash is intact,
                          * and was not repeated */
    bool is_reused;  /* its latest erasure has said that it is programmed again
                      * soon, and this has not happened yet */
    bool is_suspect; /* it may have rows that are half programmed */
    bool has_parity; /* opened since the start: its stripes have parity */
    bool moves_soon; /* its valid units are moved even if no space is
                      * needed: they are in danger, or stay too long */
    uint8_t cause;   /* enum ftl_cause: why it moves soon, or was erased last */
    uint16_t erasures; /* in progress */
    uint16_t rows_in_flight;
    uint16_t next_die;     /* ERASING: whose erasure has not begun */
    bool is_stuck;         /* a valid unit could not be read, so not be moved */
    uint8_t retries;       /* failed tries, each after another superblock was
                            * moved */
    uint8_t space_retries; /* further tries, because space was needed */
    uint32_t stuck_moved;  /* collection.moved at the last try */
    uint32_t stuck_valid; /* it is tried again when `valid` is less than this */
    uint32_t valid;       /* units that must not be lost */
    uint32_t capacity;    /* units of planes that are not bad */
    /* A trim has made units of it invalid.  It may be erased when all trim
     * pages that were accepted up to this number are durable. */
    uint64_t trim_accepted;
    uint64_t used_us; /* when it was opened or closed, since the start */
    /* The largest row number: found at the start, or when it was closed. */
    uint64_t last_row;
};

enum ftl_stream_id { FTL_STREAM_HOST, FTL_STREAM_MOVE, FTL_STREAMS };

struct ftl_stream {
    uint32_t superblock; /* or FTL_NOWHERE */
    uint32_t next_row;   /* in the superblock, in the order of programming */
    uint32_t rows_in_flight;
    /* The stream completes its stripe without waiting for more units, and then
     * programs no more rows of the superblock. */
    bool is_ending;
    /* The same, but the stream goes on with the superblock's next stripe. */
    bool completes_stripe;
    struct ftl_accumulator *accumulator; /* of the stripe, or NULL */
    /*
     * For each die, the number of the row in flight, or 0.  The next one waits,
     * because it must not be programmed if this one fails.
     */
    uint64_t *die_rows;
};

/* ---- Requests: operations of the flash. */
enum ftl_request_kind {
    FTL_REQUEST_FREE,
    FTL_REQUEST_READ, /* of a host */
    FTL_REQUEST_FILL, /* of the old contents of a slot */
    FTL_REQUEST_ROW,  /* programs a row */
    FTL_REQUEST_ERASE,
    FTL_REQUEST_WIPE,       /* erases a block that may hold anything */
    FTL_REQUEST_SCAN,       /* reads the system bytes of a row */
    FTL_REQUEST_REPAIR,     /* rebuilds system bytes that could not be read */
    FTL_REQUEST_PROBE,      /* reads those of one unit of each plane */
    FTL_REQUEST_LOAD,       /* reads a row of a checkpoint */
    FTL_REQUEST_CHECKPOINT, /* programs one */
    FTL_REQUEST_PAGE,       /* reads a trim page */
    FTL_REQUEST_MOVE,       /* reads units that are moved */
    FTL_REQUEST_SCRUB,      /* reads units to find out how good they are */
};

/* What a request of a read with metadata reads, and where its data go. */
struct ftl_protected_read {
    struct ftl_cursor to;
    uint32_t block;  /* number of its first block in the operation */
    uint16_t offset; /* in the unit, in bytes */
    uint16_t length;
};

struct ftl_request {
    uint8_t kind;              /* enum ftl_request_kind */
    bool is_marker;            /* ROW: the marker of ftl_power.c */
    bool is_short;             /* READ: of ftl_short_read.h */
    uint8_t stream;            /* ROW */
    uint8_t parity_planes;     /* ROW: they hold parity */
    uint8_t failed_planes;     /* it has ended with FTL_FLASH_FAILED in these */
    uint64_t lost_units;       /* ROW: a bit for each unit of which a word was
                                * lost in DRAM after the row was put together */
    struct ftl_rescue *rescue; /* rebuilds units of it, or NULL */
    uint8_t attempts;          /* ROW, ERASE: so many times it had to be held */
    bool is_refused; /* ROW, ERASE: it is one of those of ftl.num_refused */
    uint16_t op;     /* READ, FILL: of the medium */
    uint32_t numbers[FTL_OP_UNITS]; /* READ: the logical unit of each unit */
    uint32_t row;                   /* counted over all superblocks */
    struct ftl_flash_op flash;
    uint16_t slots[FTL_OP_UNITS]; /* of each unit, or FTL_LIST_END */
    struct ftl_flash_unit units[FTL_OP_UNITS];
    _Alignas(8) uint8_t system[FTL_OP_UNITS][FTL_UNIT_SYSTEM];
    /*
     * SCAN, REPAIR: the dies whose units were left out when a unit was rebuilt,
     * because they could not be read.  If there are any, the unit is right only
     * if its row number is that of the other units of the row.
     */
    uint8_t num_left_out[FTL_OP_UNITS];
    uint8_t left_out[FTL_OP_UNITS][FTL_LEFT_OUT_MAX];
    struct ftl_protected_read read; /* READ of an operation with metadata */
    _Alignas(8) uint8_t meta[FTL_UNIT_META]; /* the same */
};

/* ---- A wipe of all blocks. */
enum ftl_wipe_phase {
    FTL_WIPE_NONE,
    FTL_WIPE_WAITS,  /* Waits until nothing is in progress. */
    FTL_WIPE_CLEARS, /* Erases the keeper: see ftl_wipe_keep.c. */
    FTL_WIPE_KEEPS,  /* Programs health pages and wear pages into the keeper. */
    FTL_WIPE_ERASES, /* Erases all other superblocks. */
    FTL_WIPE_MOUNTS, /* Waits until the empty flash is mounted. */
};

struct ftl_wipe {
    uint8_t phase; /* enum ftl_wipe_phase */
    bool has_failed;
    uint32_t next;       /* superblock and die whose erasure has not begun */
    uint32_t keeper;     /* the superblock for the pages; or FTL_NOWHERE */
    uint32_t keeper_row; /* the next row of the keeper */
    uint32_t page;       /* the next page that is to be programmed */
    uint32_t pages_in_flight;
    uint64_t row_number;
    struct media_owner *owner;
};

/* ---- Operations of the medium. */
enum ftl_op_state {
    FTL_OP_FREE,
    FTL_OP_QUEUED,  /* Waits for its turn, for slots or for requests. */
    FTL_OP_FILLING, /* Waits for the old contents of a unit. */
    FTL_OP_READING, /* Waits for requests. */
    FTL_OP_DURABLE, /* Waits until `barrier` is durable. */
};

struct ftl_op {
    uint8_t state;  /* enum ftl_op_state */
    uint8_t status; /* enum media_status */
    bool needs_durable;
    bool is_long;      /* a trim that has taken one step and needs more steps */
    bool is_throttled; /* an event says that it waits for a slot */
    uint16_t requests; /* in progress */
    uint16_t fill_slot;
    struct ftl_cursor next; /* in the pieces */
    uint64_t next_sector;
    uint64_t end_sector;
    uint64_t barrier;
    struct media_io io;
    uint32_t failed_block; /* with an error of protection information */
};

/* ---- The description of the write buffer for the next start: ftl_adopt.c. */
enum { FTL_KEEP_COPIES = 2 };

enum ftl_keep_phase {
    FTL_KEEP_EMPTIES, /* Is made empty, because nothing is adopted. */
    FTL_KEEP_ENTRIES, /* Waits for the mount; then adopts the entries. */
    FTL_KEEP_TRIMS,   /* Does the trims again, until all are done. */
    FTL_KEEP_IN_USE,  /* Describes the write buffer of this start. */
};

struct ftl_keep {
    uint8_t phase;       /* enum ftl_keep_phase */
    uint16_t spare;      /* the buffer of the host's pool that no slot has */
    uint64_t generation; /* the head's random number */
    uint64_t sequence;   /* of the newest entry */
    uint32_t next_word;  /* EMPTIES, TRIMS: index in `trims` */
    /* One for each buffer of the host's pool. */
    struct ftl_keep_entry *entries[FTL_KEEP_COPIES];
    uint32_t *trims[FTL_KEEP_COPIES]; /* words for 16 logical units each */
    uint8_t *heads;                   /* FTL_KEEP_HEADS_LEN bytes */
};

/* ---- Power-loss protection: see ftl_power.c. */
enum ftl_power_phase {
    FTL_POWER_ON,    /* Works as usual, until the power fails. */
    FTL_POWER_SAVES, /* Programs what is in the write buffer. */
    FTL_POWER_MARKS, /* Programs markers until their stripe is complete. */
    FTL_POWER_SAVED, /* Does nothing, until the power is off. */
};

struct ftl_power {
    uint8_t phase;    /* enum ftl_power_phase */
    uint32_t marking; /* markers that are being programmed */
    bool has_marked;  /* MARKS: a marker is on flash */
    /* The mount has found a marker, or the last checkpoint of an orderly
     * power-off, and no row of normal operation is newer.  It is of the start
     * with the number `proof_start`. */
    bool has_proof;
    uint32_t proof_start;
    /* The medium was read-only before this start.  It may have had no space for
     * a marker, and there was nothing to save. */
    bool was_read_only;
};

/* Garbage collection. */
struct ftl_collection {
    uint32_t victim; /* or FTL_NOWHERE */
    uint8_t cause;   /* enum ftl_cause: why this victim was chosen */
    uint32_t next_row;
    uint32_t reads; /* requests in progress */
    uint32_t slots; /* in use */
    /* Of these, those of units that are given up: the map is searched for the
     * entries that name them. */
    struct ftl_list lost;
    uint32_t next_entry; /* of the map, to be searched */
    bool has_read;       /* units of the victim could be read */
    uint32_t moved;      /* superblocks that were moved, counting only those of
                          * which units could be read */
    bool is_due_next;    /* the next victim is one that moves soon */
    bool has_emptied;    /* some superblock may have become empty */
    uint32_t num_due;    /* superblocks that move soon */
};

/* Scrubbing. */
struct ftl_scrub {
    uint64_t last_us; /* time of the last row */
    /* The next row to be read.  Rows are counted over all superblocks and all
     * passes since the array was new, so a position that was recorded later is
     * larger. */
    uint64_t next_row;
    uint64_t recorded_row; /* the position in the page that was written last */
    uint64_t record_us; /* when the position is to be recorded again; 0 before
                         * the first row */
    bool is_reading;
};

/* What a mount does with a checkpoint that was loaded, one after another. */
enum ftl_checkpoint_check {
    FTL_CHECK_NONE,     /* It is still being loaded. */
    FTL_CHECK_MARKS,    /* Marks the places that no entry may name. */
    FTL_CHECK_ENTRIES,  /* Checks the entries of the map. */
    FTL_CHECK_UNMARKS,  /* Removes all marks. */
    FTL_CHECK_VERSIONS, /* Takes it over, and sets the versions of entries. */
    FTL_CHECK_FORGETS,  /* Or: forgets the map, because it is not complete. */
};

enum ftl_checkpoint_state {
    FTL_CHECKPOINT_IDLE,     /* Waits until one is due. */
    FTL_CHECKPOINT_DRAINING, /* Waits until no row is in flight. */
    FTL_CHECKPOINT_WRITING,  /* Programs it, and nothing else is programmed. */
    FTL_CHECKPOINT_ERASING,  /* Erases the one before it. */
};

struct ftl_checkpoint {
    uint8_t state;       /* enum ftl_checkpoint_state */
    bool is_last;        /* the power goes off after this checkpoint */
    bool is_stopped;     /* nothing is collected, as the power goes off */
    bool has_failed;     /* a row of it could not be programmed */
    bool is_header_good; /* the header that was loaded is intact */
    bool is_needed;      /* some FTL_LOST_NOWHERE is recorded nowhere else */
    bool is_at_end;      /* while loading: no further row is programmed */
    bool was_read_only;  /* loaded: the header has ftl.is_read_only */
    bool had_marks;      /* loaded: the header has ftl.has_marks */
    bool is_final; /* written or loaded: all of the buffer was on flash, and the
                    * power was to go off after this checkpoint */
    uint32_t start; /* loaded: the number of the start that has written it */
    uint32_t superblock; /* holds the valid checkpoint, or FTL_NOWHERE */
    uint32_t next;       /* superblock that is written, erased or loaded */
    uint64_t row;        /* number: the checkpoint knows rows below it */
    uint32_t next_row;   /* to be loaded, in superblock `next` */
    bool rebuilds;       /* loading: only the rows of dead dies, from parity */
    uint8_t check;       /* loading: enum ftl_checkpoint_check */
    bool is_map_good;    /* loading: all entries so far are consistent */
    /* is_needed: entries of the map before this one are not
     * FTL_LOST_NOWHERE. */
    uint32_t needed_from;
    struct ftl_stream writer; /* the rows that are written, and their parity */
    uint32_t pieces;          /* number of pieces written or loaded so far */
    uint8_t *is_taken;        /* one bit for each piece: it has been loaded */
    uint32_t requests;        /* number of requests in progress */
    uint32_t free_rows;       /* one bit for each row of `data` */
    uint32_t opened;          /* superblocks opened since the last checkpoint */
    uint8_t *table;           /* loaded: whether each superblock was closed */
    uint8_t *planes;          /* loaded: planes that have failed */
    uint8_t *data;            /* contents of the rows in progress */
};

/* What a probe has found in the first wordline of a block, if not a row number.
 * The superblock of a checkpoint has the flag, and the checkpoint's number. */
#define FTL_PROBE_ERASED     UINT64_C(0)
#define FTL_PROBE_LOST       UINT64_MAX
#define FTL_PROBE_PARITY     (UINT64_MAX - 1) /* or the die is dead */
#define FTL_PROBE_CHECKPOINT (UINT64_C(1) << 63)

enum ftl_mount_phase {
    FTL_MOUNT_PROBE,  /* Reads one unit of the first wordline of all blocks. */
    FTL_MOUNT_LOAD,   /* Reads the latest checkpoint. */
    FTL_MOUNT_SCAN,   /* Reads the system bytes of all other rows. */
    FTL_MOUNT_REPAIR, /* Rebuilds system bytes that could not be read. */
    FTL_MOUNT_PAGES,  /* Reads the trim pages. */
    FTL_MOUNT_DROP,   /* Erases copies that earlier mounts have left. */
    FTL_MOUNT_SETTLE, /* Copies what is in rows that may be torn. */
    FTL_MOUNT_CLEAR,  /* Collects and erases the superblocks of these rows. */
};

struct ftl_mount {
    uint8_t phase;        /* enum ftl_mount_phase */
    uint32_t turn_left;   /* of the FTL_TURN_ITEMS of this step */
    uint32_t next_item;   /* of a loop that takes several steps */
    uint32_t next_region; /* PROBE: of memory, to be cleared before */
    bool has_ignored;     /* `ignored` is valid */
    uint32_t next_die;    /* whose scan has not begun */
    uint32_t next_page;
    uint32_t requests; /* in progress */
    bool is_old;       /* units of a layout that is not supported were found */
    bool is_other_capacity; /* the flash has another capacity than configured */
    bool is_in_vain;   /* a unit that was found cannot be read: begin again */
    uint32_t num_dead; /* dies that were dead when this pass began */
    uint8_t *ignored;  /* one bit for each place: it could not be read */
    uint8_t
        *unreadable;   /* one bit for each place: the scan could not read it */
    uint32_t next_row; /* REPAIR: over all superblocks */
    uint32_t capacity; /* the capacity that the flash says, in logical units;
                        * 0: it is the configured one */
    bool has_capacity; /* a page says what the capacity is */
    bool has_lost_pages; /* pages that the checkpoint named cannot be read */
    bool has_unrebuilt;  /* some unit of a stripe could not be rebuilt */
    uint64_t *probes;    /* of each plane of each block */
    uint64_t last_row;   /* the largest row number that was found */
    uint64_t last_normal_row; /* the same, without rows of mounts */
    uint64_t checkpoint_row;  /* number of the checkpoint, or 0 */
    uint64_t marker_row;      /* number of the newest marker, or 0 */
    uint32_t marker_start;    /* the start that this marker is of */
    bool needs_marker;        /* another marker is to be programmed */
    bool has_settled;         /* SETTLE: all copies are on flash */
    bool has_dropped;         /* the phase DROP has begun */
    bool prefers_originals; /* to half erased superblocks' copies, for space */
    uint64_t settle_row;    /* SETTLE: rows with larger numbers may be torn */
    uint64_t *versions;     /* of each entry of the map, and attempts */
    uint64_t *row_numbers;  /* of each row */
    /* Of each block, a byte for each die with a bit for each plane. */
    uint8_t *used_planes;    /* something in them is not erased */
    uint8_t *partial_planes; /* some of their rows are erased or lost */
    uint8_t *page;           /* data and metadata of a trim page */
};

struct ftl {
    struct ftl_config config;
    const struct ftl_victim_policy *victims;
    const struct ftl_levelling_policy *levelling;
    struct ftl_layout layout;
    enum ftl_state state;
    bool is_volatile;
    bool is_full;      /* operations waited for space that nothing could make */
    bool is_read_only; /* writes and trims are refused */
    bool is_read_only_now; /* only until the next start */
    bool records_capacity; /* a page with the capacity is being written */
    bool has_marks; /* some unit has or had marked blocks, so reads look at
                     * the marks */
    uint64_t now_us;
    /*
     * Before wake_us, ftl_step() has something to do only if has_work is set.
     * When a host's read ends, it need not set has_work if is_calm is set,
     * which means that nothing waits for requests.
     */
    bool has_work;
    bool is_calm;
    uint64_t wake_us;
    uint64_t last_accept_us;

    uint32_t entries; /* of the map: logical units, then pages */
    uint32_t trim_pages;
    uint32_t health_pages; /* after the trim pages */
    uint32_t *map;
    uint8_t *valid; /* one bit for each place */
    /* Of each trim page: contents of its units with a smaller version are lost,
     * because nobody knows whether they were trimmed; or 0. */
    uint64_t *lost_rows;
    /* Of each block, a byte for each die with a bit for each plane. */
    uint8_t *factory_planes; /* must not be touched */
    struct ftl_wipe wipe;
    uint8_t *wiped_failed;   /* failed_planes, during a wipe */
    uint32_t *wiped_wear;    /* wear, during a wipe */
    uint8_t *failed_planes;  /* have failed, which the drive remembers */
    uint8_t *bad_planes;     /* these and others that take no data now */
    bool *health_changed;    /* of each health page: it is to be programmed */
    uint32_t health_changes; /* pages for which this is so */
    struct ftl_superblock *superblocks;
    uint32_t free_superblocks;
    /* Superblocks that are kept free for the copies of a mount, in addition to
     * FTL_HOST_LEAVES_FREE; 0 unless blocks are short. */
    uint32_t more_free;
    uint32_t *wear; /* of each superblock: erasures, ever */
    uint32_t wear_pages;
    uint32_t next_wear_page; /* the next one that is to be written */
    uint32_t wear_changes;   /* since all were written */

    struct ftl_stream streams[FTL_STREAMS];
    uint64_t next_row_number;
    /* Superblocks that were given up, since the last program that succeeded,
     * because programs failed although the flash is intact. */
    uint32_t failed_rounds;
    uint64_t retry_us; /* while programs are held, nothing is programmed before
                        * this time: ftl_hold.c */
    struct ftl_list held;  /* requests that wait until they are sent again */
    uint8_t held_attempts; /* the most attempts of a request in `held` */
    bool holds_row;        /* one of them programs a row */
    uint32_t num_refused;  /* see ftl_is_storage_failing() */

    uint32_t num_slots;
    struct ftl_slot *slots;
    uint8_t *data; /* of buffers: 4096 bytes each */
    uint8_t *meta; /* 64 bytes each */
    struct ftl_keep keep;
    struct ftl_power power;
    struct ftl_adopted adopted;
    uint8_t *pad; /* data of a unit that fills a row */
    struct ftl_link *wait_links;
    struct ftl_link *dirty_links;
    struct ftl_list free_slots[FTL_POOLS];
    struct ftl_list waiting[FTL_POOLS];
    /* Slots that are not durable, in the order of `accepted`. */
    struct ftl_list dirty[FTL_POOLS];
    /* Slots of the write buffer whose contents are complete after the next
     * ftl_memory_run(), which then calls ftl_keep_accept() for them. */
    uint16_t filled[FTL_FILLED];
    uint32_t num_filled;
    uint64_t accepted; /* writes and trims */
    uint64_t forced;   /* what was accepted up to this does not wait for more
                        * until its row is full */
    uint64_t flushed;  /* a host's request has waited for what is up to this */
    uint32_t flush;    /* media_io.number of this request */

    uint64_t urgent; /* what was accepted up to this may have been in a row
                      * that failed: it may use one more superblock */

    struct ftl_request *requests;
    struct ftl_link *request_links;
    struct ftl_list free_requests; /* a stack, as free_ops */
    uint32_t kept_requests;        /* free requests that reads of hosts leave to
                                    * programs, erasures and garbage collection */
    struct ftl_list unsent; /* in the order in which they are to be sent */

    struct ftl_op *ops;
    struct ftl_link *op_links;
    struct ftl_list free_ops;
    bool has_next;           /* `next` gets the next operation that is free */
    struct media_io next;    /* ftl_submit_next() */
    struct ftl_list reads;   /* QUEUED */
    struct ftl_list changes; /* QUEUED: writes, trims and flushes */
    struct ftl_list trims;   /* QUEUED: trims that take many steps */
    struct ftl_list filling; /* FILLING: those with more units to change */
    struct ftl_list moving; /* QUEUED: writes that end in ftl_io_end_moving() */
    struct ftl_list barriers; /* DURABLE */

    struct ftl_parity parity;
    struct ftl_scrub scrub;
    uint32_t failed_block; /* of the operation that has just ended */
    struct ftl_collection collection;
    struct ftl_checkpoint checkpoint;
    struct ftl_mount mount;
    struct ftl_counters counters;
};

/* ---- ftl_map.c: some functions take an entry of the map for a place */
static inline bool ftl_map_is_valid(const struct ftl *ftl, uint32_t place)
{
    return (ftl->valid[place / 8] & BIT(place % 8)) != 0;
}

static inline void ftl_map_set_valid(struct ftl *ftl, uint32_t entry)
{
    uint32_t place = ftl_entry_place(entry);

    ASSERT(!ftl_map_is_valid(ftl, place));
    ftl->valid[place / 8] |= (uint8_t)BIT(place % 8);
    ftl->superblocks[ftl_place_superblock(&ftl->layout, place)].valid++;
}

/** @param entry  may name no place */
static inline void ftl_map_clear_valid(struct ftl *ftl, uint32_t entry)
{
    uint32_t place = ftl_entry_place(entry);
    struct ftl_superblock *superblock;

    if (place == FTL_NOWHERE) {
        return;
    }
    ASSERT(ftl_map_is_valid(ftl, place));
    ftl->valid[place / 8] &= (uint8_t)~BIT(place % 8);
    superblock = &ftl->superblocks[ftl_place_superblock(&ftl->layout, place)];
    superblock->valid--;
    if (superblock->valid == 0) {
        ftl->collection.has_emptied = true;
    }
}

/** Whether an entry of the map, or a slot that follows it, names a place. */
bool ftl_map_names(const struct ftl *ftl, uint32_t number, uint32_t place);
/** Whether the map names a place for the unit with these system bytes. */
bool ftl_map_expects(const struct ftl *ftl, const struct ftl_request *request,
                     uint32_t entry, uint32_t place,
                     const struct ftl_system *system);
/** Note that a trim has made a place invalid. @param entry  may name no place
 */
void ftl_map_trim_place(struct ftl *ftl, uint32_t entry);

/* ---- ftl.c */
/** Count the entries of the map, and the slots. */
void ftl_set_entries(struct ftl *ftl);
/** Make all slots free. */
void ftl_init_slots(struct ftl *ftl);
/** The most trim, health and wear pages that are in the buffer at one time,
 * whatever the capacity. */
uint32_t ftl_most_pages(const struct ftl_layout *layout);

/* ---- ftl_capacity.c */
/** Write the capacity into the metadata of a page. */
void ftl_capacity_emit(const struct ftl *ftl, uint8_t *meta);
/** Take the capacity from the metadata of a page that the mount has read. */
void ftl_capacity_take_page(struct ftl *ftl, const uint8_t *meta);
/** Take the capacity that the flash says, in logical units.  If it is not the
 * configured one, the mount begins again. */
void ftl_capacity_take(struct ftl *ftl, uint32_t units);
/** The capacity is final, as it was confirmed or all pages were read. */
void ftl_capacity_decide(struct ftl *ftl);
/** The mount begins again: use the capacity that it has found, if any. */
void ftl_capacity_change(struct ftl *ftl);
/** The mount has ended: if no page has the capacity, write a page with it. */
void ftl_capacity_record(struct ftl *ftl);
/** When this page is on flash, complete its stripe. */
bool ftl_capacity_step(struct ftl *ftl);

/* ---- ftl_slot.c */
/** @return FTL_LIST_END when the pool has no free slot */
uint16_t ftl_slot_take(struct ftl *ftl, enum ftl_pool pool, uint32_t number);
void ftl_slot_free(struct ftl *ftl, uint16_t index);
static inline uint8_t *ftl_slot_data(const struct ftl *ftl, uint16_t index)
{
    return ftl->data + (size_t)ftl->slots[index].buffer * FTL_UNIT_DATA;
}

static inline uint8_t *ftl_slot_meta(const struct ftl *ftl, uint16_t index)
{
    return ftl->meta + (size_t)ftl->slots[index].buffer * FTL_UNIT_META;
}

/** Fill the slot's metadata with bytes of FFh: there is none. */
static inline void ftl_slot_clear_meta(const struct ftl *ftl, uint16_t index)
{
    uint64_t *meta = (void *)ftl_slot_meta(ftl, index);

    for (unsigned int i = 0; i < FTL_UNIT_META / sizeof(*meta); i++) {
        meta[i] = UINT64_MAX;
    }
}

/** The slot's contents are what the unit has from now on. */
void ftl_slot_accept(struct ftl *ftl, uint16_t index);
/** The same as ftl_slot_accept(), but for contents that an entry describes
 * already, because they were accepted before a reset. */
void ftl_slot_await(struct ftl *ftl, uint16_t index);
/** The contents of a unit, which are in a slot, are trimmed.
 * @param page  the slot of the unit's trim page, which waits */
void ftl_slot_trim(struct ftl *ftl, uint16_t index, uint16_t page);
/** A slot is on flash. */
void ftl_slot_programmed(struct ftl *ftl, uint16_t index, uint32_t place);
/** The row of a slot has failed. */
void ftl_slot_not_programmed(struct ftl *ftl, uint16_t index);
/** Whether a slot waits whose row may have failed. */
bool ftl_slot_is_urgent(const struct ftl *ftl);
/** Whether all that was accepted up to a number is in flash. */
bool ftl_slot_is_durable(const struct ftl *ftl, uint64_t accepted);
/** The same, for the slots of one pool. */
bool ftl_slot_is_pool_durable(const struct ftl *ftl, enum ftl_pool pool,
                              uint64_t accepted);

/* ---- ftl_adopt.c: the description of the write buffer for the next start */
/** Set the pointers into config.keep, which begins at `base`; NULL: set none.
 * @return the size of this memory in bytes */
size_t ftl_keep_divide(struct ftl *ftl, uint8_t *base);
/** Find the buffer of the earlier start, or begin with an empty one. */
void ftl_keep_start(struct ftl *ftl);
/** Go on making it empty, if nothing is adopted.
 * @param items  words of trims to deal with, at most
 * @return how many were dealt with */
uint32_t ftl_keep_empty(struct ftl *ftl, uint32_t items);
/** Adopt what was found.  Call this when the flash is mounted.
 * @return whether anything was done */
bool ftl_keep_step(struct ftl *ftl);
/** Make the description invalid, so that the next start adopts nothing. */
void ftl_keep_forget(struct ftl *ftl);
/** Write the entry of a slot of the write buffer whose contents are complete.
 */
void ftl_keep_accept(struct ftl *ftl, uint16_t index);
/**
 * Give a waiting slot the spare buffer, before a write changes its contents.
 * @param keeps_data  the write replaces only a part of the data, so copy it
 */
void ftl_keep_renew(struct ftl *ftl, uint16_t index, bool keeps_data);
/** The write after ftl_keep_renew() is complete: replace the old entry. */
void ftl_keep_renewed(struct ftl *ftl, uint16_t index);
/** Blocks of a buffer are lost: mark them in its entry, if it has one. */
void ftl_keep_note_lost(struct ftl *ftl, uint16_t buffer, uint8_t marks);
/** The contents of a slot of any pool are not needed any longer: clear the
 * entry, if the slot has one. */
void ftl_keep_release(struct ftl *ftl, uint16_t index);
/** Note that a logical unit is trimmed.  Call this before ftl_keep_release()
 * for the slots of the unit. */
void ftl_keep_trim(struct ftl *ftl, uint32_t number);

/* ---- ftl_damage.c */
/** A row was not programmed.  If words of some units were lost after the row
 * was put together, the sum of its stripe is wrong for these units.  Make their
 * system bytes in the sum invalid, so that nothing is rebuilt from it.
 * @param sum  the sum of the stripe */
void ftl_damage_spoil_sum(struct ftl *ftl, const struct ftl_request *request,
                          struct ftl_accumulator *sum);

/* ---- ftl_request.c */
/** @return NULL when all are in progress */
struct ftl_request *ftl_request_take(struct ftl *ftl,
                                     enum ftl_request_kind kind);
/** Name the unit at a place, or a part of it, as the request's next one. */
void ftl_request_add(struct ftl *ftl, struct ftl_request *request,
                     uint32_t place, const struct ftl_flash_unit *unit);
void ftl_request_send(struct ftl *ftl, struct ftl_request *request);
/** Pass a request to the flash at once if no other one waits for it. */
void ftl_request_send_now(struct ftl *ftl, struct ftl_request *request);
/** A request has ended, or is not sent. */
void ftl_request_free(struct ftl *ftl, struct ftl_request *request);
/** Whether a read of a host from a superblock is in progress. */
bool ftl_request_reads_from(const struct ftl *ftl, uint32_t superblock);
/** A request has ended: do what ftl_kinds[] says. */
void ftl_request_end(struct ftl *ftl, struct ftl_request *request,
                     enum ftl_flash_status status);
/** Pass requests to the flash. @return whether it took any */
bool ftl_request_send_waiting(struct ftl *ftl);
/** The planes of a die of a superblock that take data. */
uint8_t ftl_good_planes(const struct ftl *ftl, uint32_t superblock,
                        uint32_t die);

/* ---- ftl_row.c */
bool ftl_row_step(struct ftl *ftl);
bool ftl_row_done(struct ftl *ftl, struct ftl_request *request,
                  enum ftl_flash_status status);

/** While the power fails, in place of ftl_row_step(): program rows of the
 * host's stream, and those that the other one needs to complete its stripe.
 * @return whether anything was done */
bool ftl_row_save(struct ftl *ftl);
/** Program a marker as the next row of a stream.  ftl_power_marked() is called
 * when it has ended. @return false when no request or no row is free */
MUST_USE bool ftl_row_mark(struct ftl *ftl, enum ftl_stream_id stream);

/* ---- ftl_power.c: power-loss protection */
bool ftl_power_step(struct ftl *ftl);
/** @return the `number` of the units of a marker that is programmed now */
uint32_t ftl_power_marker(const struct ftl *ftl);
/** The number of the start for which a marker or a checkpoint is written. */
uint32_t ftl_power_start(const struct ftl *ftl);
/** The mount has found a marker. @param number  of its units */
void ftl_power_note_marker(struct ftl *ftl, uint64_t row, uint32_t number);
/** A marker has been programmed, or (`is_ok` false) its row has failed. */
void ftl_power_marked(struct ftl *ftl, bool is_ok);
/** The mount has read everything: find out whether the buffer was saved. */
void ftl_power_mounted(struct ftl *ftl);
/**
 * Program a marker before the mount erases the one that it has found.
 * @param is_done  set when the marker is programmed, is not needed, or has no
 *                 space
 * @return whether anything was done
 */
bool ftl_power_mark_mount(struct ftl *ftl, bool *is_done);

/* ---- ftl_superblock.c */
/**
 * Make a free superblock the one that takes a stream's rows.
 * @return false when none is free for this stream
 */
MUST_USE bool ftl_superblock_open(struct ftl *ftl, enum ftl_stream_id stream);
/** Take a free superblock, of which there must be one, for a checkpoint. */
uint32_t ftl_superblock_take(struct ftl *ftl);
/** Begin to erase a superblock. */
void ftl_superblock_erase(struct ftl *ftl, uint32_t superblock,
                          enum ftl_cause cause);
/** Go on erasing. @return whether it is done: it is free */
bool ftl_superblock_erase_step(struct ftl *ftl, uint32_t superblock);
bool ftl_superblock_erase_done(struct ftl *ftl, struct ftl_request *request,
                               enum ftl_flash_status status);
void ftl_superblock_close(struct ftl *ftl, enum ftl_stream_id stream);
/** Let a superblock, if it is open, take no more than its stripe needs. */
void ftl_superblock_end(struct ftl *ftl, uint32_t superblock);
/** Close superblocks that take no more rows. @return whether there were any */
bool ftl_superblock_close_ended(struct ftl *ftl);
/** Count the units of a superblock that can hold data. */
void ftl_superblock_measure(struct ftl *ftl, uint32_t superblock);
/** Whether enough of its planes may be used. */
bool ftl_superblock_is_good(const struct ftl *ftl, uint32_t superblock);
/** The only writer of a superblock's state, once it is mounted. */
void ftl_superblock_enter(struct ftl *ftl, uint32_t superblock,
                          enum ftl_superblock_state next);

/* ---- ftl_scrub.c: moving contents before they cannot be read */
/** Read the next row if it is time. */
bool ftl_scrub_step(struct ftl *ftl, uint64_t *deadline_us);
/** That row has been read. */
bool ftl_scrub_done(struct ftl *ftl, struct ftl_request *request,
                    enum ftl_flash_status status);
/** A read has ended: have the superblock moved if a unit has nearly too many
 * wrong bits. */
void ftl_scrub_note_read(struct ftl *ftl, const struct ftl_request *request);
/** Units of a superblock have nearly too many wrong bits, or too many.
 * @param cause  what has found this */
void ftl_scrub_note_weak(struct ftl *ftl, uint32_t superblock,
                         enum ftl_cause cause);
enum { FTL_SCRUB_RECORD_LEN = 8 };
/** Write the position: FTL_SCRUB_RECORD_LEN bytes. */
void ftl_scrub_emit(const struct ftl *ftl, uint8_t *record);
/** Write the position into the metadata of a page that is being programmed. */
void ftl_scrub_emit_page(struct ftl *ftl, uint8_t *meta);
/** Take over a position that was read at the start, if it is the latest one. */
void ftl_scrub_take(struct ftl *ftl, const uint8_t *record);
/** The same for the metadata of a page. */
void ftl_scrub_take_page(struct ftl *ftl, const uint8_t *meta);

/* ---- ftl_wear.c: erase counts */
uint32_t ftl_wear_pages(const struct ftl_layout *layout);
/** Write into a slot what a wear page says now. */
void ftl_wear_snapshot(struct ftl *ftl, uint32_t page, uint16_t index);
/** Write a page, counted over wear pages. */
void ftl_wear_emit(const struct ftl *ftl, uint32_t page, uint8_t *data,
                   uint8_t *meta);
/** Apply a page that was read at the start. */
void ftl_wear_apply(struct ftl *ftl, uint32_t page, const uint8_t *data);
/** Have the pages written when enough has changed. */
bool ftl_wear_step(struct ftl *ftl);
/** A superblock has been erased. */
void ftl_wear_note_erasure(struct ftl *ftl, uint32_t superblock);
/** @return the free superblock that a stream is to take, or FTL_NOWHERE */
uint32_t ftl_wear_find_free(const struct ftl *ftl, enum ftl_stream_id stream);
/* Whether the host's stream would take a superblock, after one more erasure,
 * before those that were erased the fewest times. */
bool ftl_wear_is_reused(const struct ftl *ftl, uint32_t superblock);

/* ---- ftl_io.c: operations of the medium */
bool ftl_io_step(struct ftl *ftl);
/** Do the copies of writes together, and end these writes.
 * @return whether there were any */
bool ftl_io_end_moving(struct ftl *ftl);
/** Trim a whole unit that is not trimmed yet. @return false when the trim has
 * to wait until trim pages are on flash */
MUST_USE bool ftl_io_trim_unit(struct ftl *ftl, uint32_t number);
/** Whether writes, trims or flushes wait. */
bool ftl_io_is_waiting(const struct ftl *ftl);
/** Refuse all operations that wait. @return whether there were any */
bool ftl_io_refuse(struct ftl *ftl);
bool ftl_io_read_done(struct ftl *ftl, struct ftl_request *request,
                      enum ftl_flash_status status);
/** The same as ftl_io_read_done() for a request whose units are all good.  This
 * function also frees the request. */
void ftl_io_read_good(struct ftl *ftl, struct ftl_request *request);
bool ftl_io_fill_done(struct ftl *ftl, struct ftl_request *request,
                      enum ftl_flash_status status);
/** What was accepted up to now must be durable before a barrier is. */
void ftl_io_raise_barriers(struct ftl *ftl);

/* ---- ftl_protect.c: operations on blocks with metadata */
/** @return false when a block fails the checks of a write, or its data is lost;
 * op->status says why */
MUST_USE bool ftl_protect_check_write(struct ftl *ftl, struct ftl_op *op);
/** Add moves that write the next blocks of an operation to a part of a unit.
 * The next ftl_memory_run() does these moves. */
void ftl_protect_write(struct ftl *ftl, struct ftl_op *op, uint8_t *data,
                       uint8_t *meta, uint32_t offset, uint32_t length);
/** Read a part of a unit in DRAM. @param data  NULL: the blocks are trimmed */
void ftl_protect_read(struct ftl *ftl, struct ftl_op *op, const uint8_t *data,
                      const uint8_t *meta, uint32_t offset, uint32_t length);
/** Name a part of a unit on flash in a request. */
void ftl_protect_read_flash(struct ftl *ftl, struct ftl_op *op,
                            struct ftl_request *request, uint32_t place,
                            uint32_t offset, uint32_t length);
/** The request has read good units. */
void ftl_protect_read_done(struct ftl *ftl, struct ftl_op *op,
                           const struct ftl_request *request);
/** A part of a unit is trimmed: its metadata has bytes of FFh. */
void ftl_protect_trim(uint8_t *meta, uint32_t offset, uint32_t length);

/* ---- ftl_marks.c: blocks that a host has marked as unreadable */
/** The memory to which the next unit of a request is to deliver its system
 * bytes; NULL while no unit has marks. */
static inline uint8_t *ftl_marks_read(const struct ftl *ftl,
                                      struct ftl_request *request)
{
    return __builtin_expect(ftl->has_marks, 0)
               ? request->system[request->flash.num_units]
               : NULL;
}
/** The marks of a good unit that was read. */
uint8_t ftl_marks_of(const struct ftl_flash_unit *unit);
/** Set the status of a read that needs a part of a unit with these marks. */
void ftl_marks_check(struct ftl_op *op, uint8_t marks, uint32_t offset,
                     uint32_t length);
/** Check the marks of the good units that the request of a read has read. */
void ftl_marks_read_done(struct ftl_op *op, const struct ftl_request *request);
/** Change the marks in a slot, because a host writes or marks a part of it. */
void ftl_marks_write(struct ftl *ftl, const struct ftl_op *op, uint16_t slot,
                     uint32_t offset, uint32_t length);

/* ---- ftl_trim.c: pages of trim state */
/**
 * Have the trim state of a logical unit programmed again.
 * @return the slot of its page, which waits; FTL_LIST_END when there is none:
 *         try again
 */
MUST_USE uint16_t ftl_trim_touch(struct ftl *ftl, uint32_t number);
/** Write the pages again that the mount could not read.
 * @return true once, when all of them are durable */
bool ftl_trim_restore_step(struct ftl *ftl);
/** The same as ftl_trim_touch(), for a page.  @param page  its entry of the map
 */
MUST_USE uint16_t ftl_trim_touch_page(struct ftl *ftl, uint32_t page);
/** Write into a slot what its page, of trims or of health, says now, as of row
 * number `row`. */
void ftl_trim_snapshot(struct ftl *ftl, uint16_t index, uint64_t row);
/** The latest page with trims cannot be read, although it was durable.  What it
 * says of units is lost, and so are their contents, unless they are newer.
 * @param row  in which this version of the page was first programmed */
void ftl_trim_lose_page(struct ftl *ftl, uint32_t page, uint64_t row);
/** Apply a page that was read at the start.  @param page  counted over trim
 * pages and health pages */
void ftl_trim_apply(struct ftl *ftl, uint32_t page, const uint8_t *data,
                    const uint8_t *meta);

/* ---- ftl_dead.c: dies that have died */
enum { FTL_DEAD_RECORD_LEN = 40 };
/** Write the record of them: FTL_DEAD_RECORD_LEN bytes. */
void ftl_dead_emit(const struct ftl *ftl, uint8_t *record);
/** Take over a record that was read at the start.  If the mount has used a die
 * that it names, the mount begins again. */
void ftl_dead_take(struct ftl *ftl, const uint8_t *record);
/** A die has died: write a page with the new record. */
void ftl_dead_note(struct ftl *ftl);
/** The mount has ended: superblocks that need a dead die's parity move soon. */
void ftl_dead_mounted(struct ftl *ftl);

/* ---- ftl_health.c: planes that have failed */
uint32_t ftl_health_pages(const struct ftl_layout *layout);
/** Programs or erasures have failed in planes: remember this. */
void ftl_health_note_failure(struct ftl *ftl, uint32_t superblock, uint32_t die,
                             uint8_t planes);
/** Take over a list of planes that was read at the start. */
void ftl_health_take_planes(struct ftl *ftl, const uint8_t *planes);
/** Have the first page programmed. */
void ftl_health_write(struct ftl *ftl);
/** Have pages programmed that say something new. */
bool ftl_health_step(struct ftl *ftl);
/** Whether the medium is read-only also after restarts. */
bool ftl_health_is_read_only(const struct ftl *ftl);
/** Make the medium read-only, from now on and after restarts. */
void ftl_health_set_read_only(struct ftl *ftl);
/** Whether the flash has lost too many planes for collection to get on. */
bool ftl_health_is_worn_out(const struct ftl *ftl);
/** Whether there is no space because planes have failed. */
bool ftl_health_has_taken_space(const struct ftl *ftl);
void ftl_health_snapshot(struct ftl *ftl, uint16_t index);
/** Write a page, counted over health pages, without its flags. */
void ftl_health_emit(const struct ftl *ftl, uint32_t page, uint8_t *data,
                     uint8_t *meta);
/** Apply a page that was read at the start. */
void ftl_health_apply(struct ftl *ftl, uint32_t page, const uint8_t *data,
                      const uint8_t *meta);

/* ---- ftl_hold.c */
/** Whether nothing is programmed now, because programs fail again and again
 * although the flash is intact.  Operations that wait until something is
 * programmed then fail. */
bool ftl_is_held(const struct ftl *ftl);
/** Whether requests that have failed again and again wait for their next
 * attempt. */
bool ftl_hold_is_waiting(const struct ftl *ftl);
/** Whether a program or an erasure has failed for a reason outside of the
 * flash, so that it can be repeated. */
bool ftl_hold_can_repeat(enum ftl_flash_status status);
/**
 * A request of a row or of an erasure has ended.
 * @return whether it is held: it has failed for a reason outside of the flash,
 *         and will be sent again
 */
bool ftl_hold_request(struct ftl *ftl, struct ftl_request *request,
                      enum ftl_flash_status status);
/** Send the held requests again, if it is time. @return whether it was */
bool ftl_hold_step(struct ftl *ftl);
/** All blocks are going to be erased: end the held requests. */
void ftl_hold_drop(struct ftl *ftl);
/** A superblock was given up because a program failed although the flash is
 * intact. */
void ftl_hold_note_round(struct ftl *ftl);
/** The program of a row has ended, and is not repeated. */
void ftl_hold_note_row(struct ftl *ftl, const struct ftl_request *request,
                       enum ftl_flash_status status);
/** Another operation waits until its contents are on flash: allow programs once
 * more. */
void ftl_hold_try_again(struct ftl *ftl);

/* ---- ftl_collect.c: garbage collection */
bool ftl_collect_step(struct ftl *ftl);
/** Have a superblock moved soon: see struct ftl_superblock. */
void ftl_collect_move_soon(struct ftl *ftl, uint32_t superblock,
                           enum ftl_cause cause);
/** At the end of the mount: move the suspect superblocks soon that the mount
 * could not erase. */
void ftl_collect_rest_of_suspects(struct ftl *ftl);
/** Whether there is a superblock that moves soon and is not stuck. */
bool ftl_collect_has_due(const struct ftl *ftl);
/** A superblock that moves soon has been moved. */
void ftl_collect_has_moved(struct ftl *ftl, uint32_t superblock);
/** Whether a superblock is left that this phase of the mount is to erase. */
bool ftl_collect_is_due(const struct ftl *ftl);
/**
 * Copy the units of rows that may be torn; nothing is erased.
 * @param is_done  set when all copies are on flash
 * @return whether anything was done
 */
bool ftl_collect_settle(struct ftl *ftl, bool *is_done);
/** Forget what waits to be moved. */
void ftl_collect_stop(struct ftl *ftl);
/** Whether the contents of a superblock are being moved, or can be moved to
 * make space. */
bool ftl_collect_has_victim(const struct ftl *ftl);
/** Try superblocks again that are stuck. @return whether there are any */
bool ftl_collect_retry(struct ftl *ftl);
/** Whether the victim has been read to its end: a row takes what is left of it,
 * even if this does not fill the row. */
bool ftl_collect_is_at_end(const struct ftl *ftl);
/** Whether the next victim waits until trims are durable. */
bool ftl_collect_waits_for_trims(const struct ftl *ftl);

/* ---- ftl_move.c: reading units that garbage collection moves */
/** Take slots for the valid units of the victim's next row, and read them.
 * @return false when there are too few slots, or no request */
bool ftl_collect_read_row(struct ftl *ftl);
bool ftl_collect_read_done(struct ftl *ftl, struct ftl_request *request,
                           enum ftl_flash_status status);
/** Units of the victim are given up: go on searching the map for the entries
 * that name them. @return whether there are such units */
bool ftl_collect_find_lost(struct ftl *ftl);
/** A word of a unit that is moved was lost in DRAM: free the slot.  The unit is
 * read again later. */
void ftl_collect_drop(struct ftl *ftl, uint16_t index);

/* ---- ftl_wipe.c */

bool ftl_wipe_step(struct ftl *ftl);
/** An erasure, or a program into the keeper, has ended. */
bool ftl_wipe_done(struct ftl *ftl, struct ftl_request *request,
                   enum ftl_flash_status status);

#endif
