/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checkpoints: the map in a superblock of its own, so that a mount does not
 * have to read everything.
 *
 * A checkpoint is written after so many superblocks have been opened, and
 * before the power goes off.  Meanwhile no other row is programmed and no write
 * or trim is accepted.  No row is in flight when it begins, and all trims are
 * durable.  So it says where the durable contents of each unit are, and which
 * superblocks are closed.  The checkpoint before it is erased only when it is
 * complete.
 *
 * Its units are pieces of: a header, a byte for each superblock, the planes
 * that have failed, and the map.  They have the number of the checkpoint, which
 * is a row number: rows with smaller numbers are in the checkpoint.
 *
 * A mount loads the latest complete checkpoint, but does not trust what it says
 * about superblocks that have changed since.  The mount has looked at the first
 * wordline of all blocks before, and reads the superblocks in which it is
 * erased, lost or newer.  Contents of the other superblocks that are not in the
 * map of the checkpoint were superseded by durable contents, so the mount
 * misses nothing there.
 */
#include "firmware/ftl/ftl_internal.h"

#include <string.h>

#include "lib/bytes.h"

enum { ENTRY_LEN = 4, PIECE_ENTRIES = FTL_UNIT_DATA / ENTRY_LEN };

enum {                          /* the header; little-endian */
       HEADER_MAGIC = 0,        /* 64 bits */
       HEADER_ROW = 8,          /* 64 bits: the number of the checkpoint */
       HEADER_PIECES = 16,      /* 32 bits each from here */
       HEADER_ENTRIES = 20,     /* of the map */
       HEADER_SUPERBLOCKS = 24, /* of the flash */
       HEADER_DIES = 28,
       HEADER_FLAGS = 32,
       HEADER_LEN = 36,

       FLAG_READ_ONLY = 1,
};

#define MAGIC UINT64_C(0x31544e494f504b43)

/* ---- Pieces. */

static uint32_t count_pieces(size_t bytes)
{
    return (uint32_t)((bytes + FTL_UNIT_DATA - 1) / FTL_UNIT_DATA);
}

static size_t count_planes(const struct ftl *ftl)
{
    return (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies;
}

/* The pieces of a part, and where they begin. */
struct pieces {
    uint32_t table; /* the first one of each */
    uint32_t planes;
    uint32_t map;
    uint32_t all;
};

static struct pieces find_pieces(const struct ftl *ftl)
{
    struct pieces at = {.table = 1};

    at.planes = at.table + count_pieces(ftl->layout.superblocks);
    at.map = at.planes + count_pieces(count_planes(ftl));
    at.all = at.map + count_pieces((size_t)ftl->entries * ENTRY_LEN);
    return at;
}

static void emit_header(const struct ftl *ftl, uint8_t *to)
{
    put_le64(to + HEADER_MAGIC, MAGIC);
    put_le64(to + HEADER_ROW, ftl->checkpoint.row);
    put_le32(to + HEADER_PIECES, find_pieces(ftl).all);
    put_le32(to + HEADER_ENTRIES, ftl->entries);
    put_le32(to + HEADER_SUPERBLOCKS, ftl->layout.superblocks);
    put_le32(to + HEADER_DIES, ftl->layout.geometry.dies);
    put_le32(to + HEADER_FLAGS, ftl->is_read_only ? FLAG_READ_ONLY : 0);
}

/* Whether a header belongs to this array, and to the checkpoint `row`. */
static bool is_header_good(const struct ftl *ftl, const uint8_t *from,
                           uint64_t row)
{
    return get_le64(from + HEADER_MAGIC) == MAGIC &&
           get_le64(from + HEADER_ROW) == row &&
           get_le32(from + HEADER_PIECES) == find_pieces(ftl).all &&
           get_le32(from + HEADER_ENTRIES) == ftl->entries &&
           get_le32(from + HEADER_SUPERBLOCKS) == ftl->layout.superblocks &&
           get_le32(from + HEADER_DIES) == ftl->layout.geometry.dies;
}

/* Where the durable contents of an entry of the map are.  No row is in flight,
 * so a slot follows no other one. */
static uint32_t durable_place(const struct ftl *ftl, uint32_t entry)
{
    return ftl_is_in_slot(entry) ? ftl->slots[(uint16_t)entry].old_place
                                 : entry;
}

static void emit_map(const struct ftl *ftl, uint32_t piece, uint8_t *to)
{
    uint32_t first = piece * PIECE_ENTRIES;
    uint32_t count = MIN((uint32_t)PIECE_ENTRIES, ftl->entries - first);

    for (uint32_t i = 0; i < count; i++) {
        put_le32(to + (size_t)i * ENTRY_LEN,
                 durable_place(ftl, ftl->map[first + i]));
    }
}

static void emit_table(const struct ftl *ftl, uint32_t piece, uint8_t *to)
{
    uint32_t first = piece * FTL_UNIT_DATA;
    uint32_t count =
        MIN((uint32_t)FTL_UNIT_DATA, ftl->layout.superblocks - first);

    for (uint32_t i = 0; i < count; i++) {
        to[i] = ftl->superblocks[first + i].state == FTL_SUPERBLOCK_CLOSED;
    }
}

static void emit_piece(const struct ftl *ftl, uint32_t piece, uint8_t *to)
{
    struct pieces at = find_pieces(ftl);

    memset(to, 0, FTL_UNIT_DATA);
    if (piece >= at.map) {
        emit_map(ftl, piece - at.map, to);
    } else if (piece >= at.planes) {
        size_t first = (size_t)(piece - at.planes) * FTL_UNIT_DATA;

        memcpy(to, ftl->failed_planes + first,
               MIN((size_t)FTL_UNIT_DATA, count_planes(ftl) - first));
    } else if (piece >= at.table) {
        emit_table(ftl, piece - at.table, to);
    } else {
        emit_header(ftl, to);
    }
}

static void copy_part(uint8_t *part, size_t len, uint32_t piece,
                      const uint8_t *from)
{
    size_t first = (size_t)piece * FTL_UNIT_DATA;

    memcpy(part + first, from, MIN((size_t)FTL_UNIT_DATA, len - first));
}

/* Copy a piece that was read into the map, or into the tables of superblocks
 * and planes. */
static void take_piece(struct ftl *ftl, uint32_t piece, const uint8_t *from)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    struct pieces at = find_pieces(ftl);

    if (piece >= at.all) {
        return;
    }
    checkpoint->pieces++;
    if (piece >= at.map) {
        uint32_t first = (piece - at.map) * PIECE_ENTRIES;
        uint32_t count = MIN((uint32_t)PIECE_ENTRIES, ftl->entries - first);

        for (uint32_t i = 0; i < count; i++) {
            ftl->map[first + i] = get_le32(from + (size_t)i * ENTRY_LEN);
        }
    } else if (piece >= at.planes) {
        copy_part(checkpoint->planes, count_planes(ftl), piece - at.planes,
                  from);
    } else if (piece >= at.table) {
        copy_part(checkpoint->table, ftl->layout.superblocks, piece - at.table,
                  from);
    } else {
        checkpoint->is_header_good = is_header_good(ftl, from, checkpoint->row);
        checkpoint->flags = get_le32(from + HEADER_FLAGS);
    }
}

/* ---- Writing. */

uint32_t ftl_checkpoint_rows(const struct ftl_layout *layout)
{
    return MIN((uint32_t)layout->geometry.dies, (uint32_t)FTL_CHECKPOINT_ROWS);
}

static uint8_t *row_data(const struct ftl *ftl, uint32_t slot, uint32_t unit)
{
    return ftl->checkpoint.data +
           ((size_t)slot * ftl->layout.row_units + unit) * FTL_UNIT_DATA;
}

/* Fill in a unit of a row: the next piece, or padding. */
static void add_piece(struct ftl *ftl, struct ftl_request *request,
                      uint32_t index, uint32_t slot)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    uint8_t *system = request->system[request->flash.num_units];
    uint8_t *data = ftl->pad;
    bool is_pad = checkpoint->pieces == find_pieces(ftl).all;

    if (!is_pad) {
        data = row_data(ftl, slot, index);
        emit_piece(ftl, checkpoint->pieces, data);
    }
    ftl_system_emit(
        &(struct ftl_system){
            .kind = FTL_KIND_CHECKPOINT,
            .number = is_pad ? UINT32_MAX : checkpoint->pieces,
            .version = checkpoint->row,
            .row = checkpoint->row,
        },
        system);
    checkpoint->pieces += !is_pad;
    ftl_request_add(ftl, request, request->row * ftl->layout.row_units + index,
                    &(struct ftl_flash_unit){
                        .data = data, .meta = ftl->pad, .system = system});
}

/* Program the next row. @return false when it has no planes */
static bool program_row(struct ftl *ftl, uint32_t slot)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    struct ftl_request *request = ftl_request_take(ftl, FTL_REQUEST_CHECKPOINT);
    uint8_t planes;

    ASSERT(request != NULL);
    request->row =
        checkpoint->next * ftl->layout.superblock_rows + checkpoint->next_row++;
    ftl_layout_row(&ftl->layout, request->row, &request->flash);
    planes = ftl_good_planes(ftl, request->flash.block, request->flash.die);
    if (planes == 0) {
        ftl_request_free(ftl, request);
        return false;
    }
    request->flash.kind = FTL_FLASH_PROGRAM;
    for (uint32_t i = 0; i < ftl->layout.row_units; i++) {
        struct ftl_flash_unit unit;

        ftl_layout_unit(&ftl->layout, i, &unit);
        if ((planes & BIT(unit.plane)) != 0) {
            add_piece(ftl, request, i, slot);
        }
    }
    checkpoint->requests++;
    ftl_request_send(ftl, request);
    return true;
}

void ftl_checkpoint_row_done(struct ftl *ftl, struct ftl_request *request,
                             enum ftl_flash_status status,
                             uint8_t failed_planes)
{
    const struct ftl_flash_op *flash = &request->flash;

    ftl->checkpoint.requests--;
    if (status != FTL_FLASH_OK) {
        ftl->checkpoint.has_failed = true;
        ftl->counters.program_errors++;
    }
    if (status == FTL_FLASH_FAILED) {
        ftl_health_note_failure(ftl, flash->block, flash->die, failed_planes);
    } else if (status == FTL_FLASH_DEAD) {
        ftl_parity_die_is_dead(ftl, flash->die);
    }
}

/* Go on writing: a few rows at a time, each on another die. */
static bool step_write(struct ftl *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    uint32_t rows = ftl_checkpoint_rows(&ftl->layout);
    uint32_t old = checkpoint->superblock;

    if (checkpoint->requests != 0 ||
        ftl->free_requests.count < MIN(rows, ftl->config.num_requests)) {
        return false;
    }
    rows = MIN(rows, ftl->config.num_requests);
    if (!checkpoint->has_failed && checkpoint->pieces != find_pieces(ftl).all) {
        for (uint32_t i = 0; i < rows; i++) {
            if (checkpoint->next_row == ftl->layout.superblock_rows) {
                /* It does not fit. */
                checkpoint->has_failed = i == 0;
                break;
            }
            (void)program_row(ftl, i);
        }
        return true;
    }
    if (!checkpoint->has_failed) {
        checkpoint->superblock = checkpoint->next;
        checkpoint->next = old;
        ftl->counters.checkpoints++;
    }
    checkpoint->opened = 0;
    checkpoint->state = FTL_CHECKPOINT_IDLE;
    if (checkpoint->next != FTL_NOWHERE) {
        ftl_superblock_erase(ftl, checkpoint->next);
        checkpoint->state = FTL_CHECKPOINT_ERASING;
    }
    return true;
}

static bool step_erase(struct ftl *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    if (!ftl_superblock_erase_step(ftl, checkpoint->next)) {
        return false;
    }
    checkpoint->next = FTL_NOWHERE;
    checkpoint->state = FTL_CHECKPOINT_IDLE;
    ftl->is_full = false;
    return true;
}

static bool has_space(const struct ftl *ftl)
{
    return ftl->free_superblocks > FTL_HOST_LEAVES_FREE && !ftl->is_read_only;
}

/* Whether a victim of garbage collection is being erased. */
static bool is_victim_erased(const struct ftl *ftl)
{
    uint32_t victim = ftl->collection.victim;

    return victim != FTL_NOWHERE &&
           ftl->superblocks[victim].state == FTL_SUPERBLOCK_ERASING;
}

/* Close the superblocks of both streams when their stripes are complete.
 * @return whether both are closed */
static bool close_streams(struct ftl *ftl)
{
    bool all = true;

    ftl_complete_stripes(ftl);
    for (unsigned int i = 0; i < FTL_STREAMS; i++) {
        const struct ftl_stream *stream = &ftl->streams[i];

        if (stream->superblock == FTL_NOWHERE) {
            continue;
        }
        if (stream->next_row == ftl->layout.superblock_rows) {
            ftl_superblock_close(ftl, (enum ftl_stream_id)i);
        } else {
            all = false;
        }
    }
    return all;
}

/* Wait until no row is in flight and all trims are durable. */
static bool step_drain(struct ftl *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    if (!has_space(ftl)) {
        checkpoint->state = FTL_CHECKPOINT_IDLE;
        checkpoint->is_last = false;
        return true;
    }
    if (ftl->dirty[FTL_POOL_TRIM].count != 0) {
        ftl->forced = ftl->accepted;
        return false;
    }
    for (unsigned int i = 0; i < FTL_STREAMS; i++) {
        if (ftl->streams[i].rows_in_flight != 0) {
            return false;
        }
    }
    if (checkpoint->is_last && (is_victim_erased(ftl) || !close_streams(ftl))) {
        return false;
    }
    checkpoint->is_last = false;
    checkpoint->next = ftl_superblock_take(ftl);
    checkpoint->row = ftl->next_row_number++;
    checkpoint->next_row = 0;
    checkpoint->pieces = 0;
    checkpoint->has_failed = false;
    checkpoint->state = FTL_CHECKPOINT_WRITING;
    return true;
}

static bool is_due(const struct ftl *ftl)
{
    const struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    return ftl->config.checkpoint_superblocks != 0 && has_space(ftl) &&
           (checkpoint->is_last ||
            checkpoint->opened >= ftl->config.checkpoint_superblocks);
}

bool ftl_checkpoint_step(struct ftl *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    switch ((enum ftl_checkpoint_state)checkpoint->state) {
    case FTL_CHECKPOINT_IDLE:
        if (is_due(ftl)) {
            checkpoint->state = FTL_CHECKPOINT_DRAINING;
            return true;
        }
        checkpoint->is_last = false;
        checkpoint->is_stopped &= !ftl_io_is_waiting(ftl);
        break;
    case FTL_CHECKPOINT_DRAINING:
        return step_drain(ftl);
    case FTL_CHECKPOINT_WRITING:
        return step_write(ftl);
    case FTL_CHECKPOINT_ERASING:
        return step_erase(ftl);
    }
    return false;
}

bool ftl_checkpoint_holds_collection(const struct ftl *ftl)
{
    return ftl->checkpoint.is_stopped && !is_victim_erased(ftl);
}

/* Whether a stream is to complete its stripe. */
static bool is_stream_ending(const struct ftl *ftl)
{
    for (unsigned int i = 0; i < FTL_STREAMS; i++) {
        if (ftl->streams[i].superblock != FTL_NOWHERE &&
            ftl->streams[i].is_ending) {
            return true;
        }
    }
    return false;
}

bool ftl_checkpoint_holds_rows(const struct ftl *ftl)
{
    return ftl->checkpoint.state == FTL_CHECKPOINT_WRITING ||
           (ftl->checkpoint.state == FTL_CHECKPOINT_DRAINING &&
            ftl->dirty[FTL_POOL_TRIM].count == 0 && !is_stream_ending(ftl));
}

bool ftl_checkpoint_give_up(struct ftl *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    if (checkpoint->state == FTL_CHECKPOINT_DRAINING) {
        checkpoint->state = FTL_CHECKPOINT_IDLE;
        checkpoint->opened = 0;
        return true;
    }
    if (checkpoint->state != FTL_CHECKPOINT_IDLE ||
        checkpoint->superblock == FTL_NOWHERE) {
        return false;
    }
    checkpoint->next = checkpoint->superblock;
    checkpoint->superblock = FTL_NOWHERE;
    checkpoint->opened = 0;
    checkpoint->state = FTL_CHECKPOINT_ERASING;
    ftl_superblock_erase(ftl, checkpoint->next);
    return true;
}

void ftl_stop(struct ftl *ftl)
{
    ftl->checkpoint.is_last = ftl->state == FTL_READY;
    ftl->checkpoint.is_stopped = ftl->checkpoint.is_last;
}

bool ftl_is_stopped(const struct ftl *ftl)
{
    return !ftl->checkpoint.is_last &&
           ftl->checkpoint.state == FTL_CHECKPOINT_IDLE;
}

/* ---- Loading. */

/* The latest checkpoint with a smaller number than `below`. */
static bool find_checkpoint(struct ftl *ftl, uint64_t below)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    uint32_t planes = ftl->layout.geometry.planes;
    size_t all = count_planes(ftl) * planes;

    checkpoint->row = 0;
    for (size_t i = 0; i < all; i++) {
        uint64_t probe = ftl->mount.probes[i];
        uint64_t row = probe & ~FTL_PROBE_CHECKPOINT;

        if (probe < FTL_PROBE_PARITY && (probe & FTL_PROBE_CHECKPOINT) != 0 &&
            row < below && row > checkpoint->row) {
            checkpoint->row = row;
            checkpoint->next =
                (uint32_t)(i / planes / ftl->layout.geometry.dies);
        }
    }
    checkpoint->next_row = 0;
    checkpoint->pieces = 0;
    checkpoint->is_header_good = false;
    checkpoint->is_at_end = false;
    return checkpoint->row != 0;
}

bool ftl_checkpoint_find(struct ftl *ftl)
{
    ftl->checkpoint.free_rows =
        (uint32_t)(BIT(ftl_checkpoint_rows(&ftl->layout)) - 1);
    return find_checkpoint(ftl, UINT64_MAX);
}

/* Read the next row. */
static void read_row(struct ftl *ftl, struct ftl_request *request,
                     uint8_t planes)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    uint32_t slot = (uint32_t)__builtin_ctz(checkpoint->free_rows);
    uint32_t first = request->row * ftl->layout.row_units;

    checkpoint->free_rows &= ~BIT(slot);
    request->op = (uint16_t)slot;
    for (uint32_t i = 0; i < ftl->layout.row_units; i++) {
        struct ftl_flash_unit unit;

        ftl_layout_unit(&ftl->layout, i, &unit);
        if ((planes & BIT(unit.plane)) != 0) {
            ftl_request_add(
                ftl, request, first + i,
                &(struct ftl_flash_unit){
                    .data = row_data(ftl, slot, i),
                    .length = FTL_UNIT_DATA,
                    .system = request->system[request->flash.num_units],
                });
        }
    }
    checkpoint->requests++;
    ftl_request_send(ftl, request);
}

void ftl_checkpoint_load_done(struct ftl *ftl, struct ftl_request *request,
                              enum ftl_flash_status status)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    uint32_t erased = 0;

    checkpoint->requests--;
    checkpoint->free_rows |= BIT(request->op);
    if (status == FTL_FLASH_DEAD) {
        checkpoint->is_at_end = true; /* Some of it is missing. */
        return;
    }
    if (status != FTL_FLASH_OK) {
        ftl->state = FTL_FAILED;
        return;
    }
    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        struct ftl_system system;

        erased += request->units[i].status == FTL_UNIT_ERASED;
        if (request->units[i].status == FTL_UNIT_GOOD &&
            ftl_system_parse(&system, request->system[i]) &&
            system.kind == FTL_KIND_CHECKPOINT &&
            system.version == checkpoint->row) {
            take_piece(ftl, system.number, request->units[i].data);
        }
    }
    checkpoint->is_at_end |= erased == request->flash.num_units;
}

static bool is_loaded(const struct ftl *ftl)
{
    return ftl->checkpoint.is_header_good &&
           ftl->checkpoint.pieces == find_pieces(ftl).all;
}

/* @return whether there was a row to read */
static bool load_rows(struct ftl *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    bool any = false;

    while (checkpoint->free_rows != 0 && !checkpoint->is_at_end &&
           !is_loaded(ftl) &&
           checkpoint->next_row != ftl->layout.superblock_rows) {
        struct ftl_request *request = ftl_request_take(ftl, FTL_REQUEST_LOAD);
        uint8_t planes;

        if (request == NULL) {
            break;
        }
        request->row = checkpoint->next * ftl->layout.superblock_rows +
                       checkpoint->next_row++;
        ftl_layout_row(&ftl->layout, request->row, &request->flash);
        planes =
            ftl_mount_planes(ftl, request->flash.block, request->flash.die);
        if (planes == 0) {
            ftl_request_free(ftl, request);
        } else {
            read_row(ftl, request, planes);
        }
        any = true;
    }
    return any;
}

/* Whether a superblock that was closed still has the same contents, as far as
 * the first wordline of its blocks shows. */
static bool is_unchanged(struct ftl *ftl, uint32_t superblock)
{
    const struct ftl_geometry *geometry = &ftl->layout.geometry;
    bool has_any = false;

    for (uint32_t die = 0; die < geometry->dies; die++) {
        uint32_t at = superblock * geometry->dies + die;
        uint8_t planes = ftl_good_planes(ftl, superblock, die);

        for (uint32_t plane = 0; plane < geometry->planes; plane++) {
            uint64_t probe = ftl->mount.probes[at * geometry->planes + plane];

            if ((planes & BIT(plane)) == 0) {
                continue;
            }
            if (probe == FTL_PROBE_PARITY) {
                continue; /* It has no number. */
            }
            if (probe == FTL_PROBE_ERASED || probe > ftl->checkpoint.row) {
                return false;
            }
            ftl->superblocks[superblock].last_row =
                MAX(ftl->superblocks[superblock].last_row, probe);
            has_any = true;
        }
    }
    return has_any;
}

/* Take over what has been loaded. @return false when it is damaged */
static bool accept_checkpoint(struct ftl *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    uint64_t key = checkpoint->row << FTL_VERSION_SHIFT | FTL_ATTEMPTS_MAX;

    for (uint32_t i = 0; i < ftl->entries; i++) {
        if (ftl->map[i] != FTL_NOWHERE && ftl->map[i] >= ftl->layout.places) {
            return false;
        }
    }
    ftl_health_take_planes(ftl, checkpoint->planes);
    ftl->is_read_only |= (checkpoint->flags & FLAG_READ_ONLY) != 0;
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        ftl->superblocks[i].is_known =
            checkpoint->table[i] != 0 && is_unchanged(ftl, i);
    }
    for (uint32_t i = 0; i < ftl->entries; i++) {
        uint32_t place = ftl->map[i];

        if (place == FTL_NOWHERE ||
            ftl->superblocks[ftl_place_superblock(&ftl->layout, place)]
                .is_known) {
            ftl->mount.versions[i] = key;
        } else {
            ftl->map[i] = FTL_NOWHERE;
        }
    }
    checkpoint->superblock = checkpoint->next;
    checkpoint->next = FTL_NOWHERE;
    ftl->superblocks[checkpoint->superblock].is_known = true;
    ftl->mount.last_row = checkpoint->row;
    ftl->mount.last_normal_row = checkpoint->row;
    ftl->mount.checkpoint_row = checkpoint->row;
    return true;
}

bool ftl_checkpoint_load(struct ftl *ftl, bool *is_done)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    *is_done = false;
    if (load_rows(ftl)) {
        return true;
    }
    if (checkpoint->requests != 0) {
        return false;
    }
    if (is_loaded(ftl) && accept_checkpoint(ftl)) {
        *is_done = true;
        return true;
    }
    memset(ftl->map, 0xff, ftl->entries * sizeof(ftl->map[0]));
    if (!find_checkpoint(ftl, checkpoint->row)) {
        checkpoint->next = FTL_NOWHERE;
        *is_done = true;
    }
    return true;
}
