/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of the translation layer. */
#ifndef ESSD_FTL_STATE_H
#define ESSD_FTL_STATE_H

#include "storage/ftl/ftl.h"
#include "storage/ftl/base/ftl_layout.h"
#include "storage/ftl/base/ftl_list.h"
#include "storage/ftl/rows/ftl_parity.h"
#include "storage/ftl/base/ftl_pieces.h"
#include "storage/ftl/base/ftl_policies.h"

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

struct ftl_wiping {
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
    struct ftl_wiping wipe;
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

#endif
