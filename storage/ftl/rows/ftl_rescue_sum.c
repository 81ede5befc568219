/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sums of which units are rebuilt: reading the other dies of a stripe, and
 * judging and taking what comes out.  See ftl_rescue.c.
 */
#include "storage/ftl/map/ftl_memory.h"
#include "storage/ftl/ops/ftl_kinds.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/rows/ftl_rescue_sum.h"
#include "storage/ftl/space/ftl_findings.h"
#include "storage/ftl/space/space.h"

#include <string.h>

static uint32_t row_die(const struct ftl_rows_floor *ftl, uint32_t row)
{
    return row % ftl->layout.geometry.dies;
}

static bool is_same_unit(const struct ftl_flash_unit *one,
                         const struct ftl_flash_unit *other)
{
    return one->plane == other->plane && one->page == other->page &&
           one->unit == other->unit;
}

static uint8_t *sum_data(const struct ftl_rescue *rescue, uint32_t unit)
{
    return rescue->data + (size_t)unit * FTL_UNIT_DATA;
}

static uint8_t *sum_meta(const struct ftl_rescue *rescue, uint32_t unit)
{
    return rescue->meta + (size_t)unit * FTL_UNIT_META;
}

/* ---- The reads. */

void ftl_rescue_find_units(const struct ftl_rows_floor *ftl,
                           struct ftl_rescue *rescue)
{
    rescue->num_units = 0;
    for (uint8_t i = 0; i < rescue->flash.num_units; i++) {
        const struct ftl_flash_unit *unit = &rescue->saved[i];

        if (unit->status == FTL_UNIT_GOOD ||
            (i != 0 && is_same_unit(unit, unit - 1))) {
            continue;
        }
        rescue->entry[rescue->num_units] = i;
        rescue->index[rescue->num_units++] =
            (uint8_t)ftl_layout_index(&ftl->layout, unit);
    }
}

/* Whether the sum of an accumulator has begun in the plane of a unit. */
static bool has_sum_begun(const struct ftl_accumulator *accumulator,
                          const struct ftl_rescue *rescue, uint32_t unit)
{
    uint32_t plane = rescue->saved[rescue->entry[unit]].plane;

    return (accumulator->begun & BIT(plane)) != 0;
}

static void clear_sum(struct ftl_rescue *rescue, uint32_t unit)
{
    memset(rescue->system[unit], 0, FTL_UNIT_SYSTEM);
    if (!rescue->is_of_scan) {
        memset(sum_data(rescue, unit), 0, FTL_UNIT_DATA);
        memset(sum_meta(rescue, unit), 0, FTL_UNIT_META);
    }
}

static void copy_sum(struct ftl_rows_floor *ftl, struct ftl_rescue *rescue,
                     uint32_t unit, const struct ftl_accumulator *from)
{
    size_t index = rescue->index[unit];

    if (!rescue->is_of_scan) {
        ftl_memory_move(&ftl->map_floor, FTL_MOVE_COPY, sum_data(rescue, unit),
                        from->data + index * FTL_UNIT_DATA, FTL_UNIT_DATA);
        ftl_memory_move(&ftl->map_floor, FTL_MOVE_COPY, sum_meta(rescue, unit),
                        from->meta + index * FTL_UNIT_META, FTL_UNIT_META);
        ftl_memory_run(&ftl->map_floor);
    }
    /* If a word of this sum was lost, its system bytes are invalid by now. */
    memcpy(rescue->system[unit], from->system[index], FTL_UNIT_SYSTEM);
}

void ftl_rescue_begin_sum(struct ftl_rows_floor *ftl, struct ftl_rescue *rescue)
{
    const struct ftl_accumulator *from = ftl_parity_find(ftl, rescue->row);

    rescue->next_die = 0;
    rescue->has_lost_word = false;
    memset(rescue->num_left_out, 0, sizeof(rescue->num_left_out));
    if (rescue->attempt == FTL_RESCUE_ALL) {
        memset(rescue->num_absent, 0, sizeof(rescue->num_absent));
        memset(rescue->num_found, 0, sizeof(rescue->num_found));
    }
    rescue->is_of_accumulator = from != NULL;
    if (from != NULL) {
        memcpy(rescue->members, from->members, ftl->layout.geometry.dies);
    }
    for (uint32_t i = 0; i < rescue->num_units; i++) {
        rescue->is_used[i] = false;
        rescue->is_lost[i] = false;
        rescue->has_erased[i] = false;
        rescue->parity[i] = 0;
        if (from == NULL || !has_sum_begun(from, rescue, i)) {
            clear_sum(rescue, i);
        } else {
            copy_sum(ftl, rescue, i, from);
        }
    }
}

/* Whether a unit of a die may be in the sum.  The first attempt also reads what
 * no longer matters to it, to find out what is in no sum.  What a plane has
 * that was bad when the superblock was opened is from before its last erasure.
 */
static bool is_wanted(const struct ftl_rows_floor *ftl,
                      const struct ftl_rescue *rescue, uint32_t unit)
{
    uint32_t die = rescue->next_die;
    uint32_t plane = rescue->saved[rescue->entry[unit]].plane;

    if (rescue->is_of_accumulator) {
        return !rescue->is_lost[unit] &&
               (rescue->members[die] & BIT(plane)) != 0;
    }
    if (rescue->is_lost[unit]) {
        return rescue->attempt == FTL_RESCUE_ALL && rescue->has_dead &&
               ftl_rescue_is_plane_doubtful(ftl, rescue, die, plane);
    }
    return rescue->attempt != FTL_RESCUE_GOOD ||
           (ftl_good_planes(&ftl->space_floor, rescue->flash.block, die) &
            BIT(plane)) != 0;
}

/* Add the units of the own row that can tell its number: those in good planes.
 * They are read for their system bytes alone. */
static void add_own_row(const struct ftl_rows_floor *ftl,
                        const struct ftl_rescue *rescue,
                        struct ftl_request *request)
{
    uint32_t first = rescue->row * ftl->layout.row_units;
    uint8_t good = ftl_good_planes(&ftl->space_floor, rescue->flash.block,
                                   row_die(ftl, rescue->row));

    for (uint32_t i = 0; i < ftl->layout.row_units; i++) {
        struct ftl_flash_unit unit = {
            .system = rescue->read_system[request->flash.num_units],
        };

        if ((good & BIT(ftl->layout.units[i].plane)) != 0) {
            ftl_request_add(&ftl->layout, request, first + i, &unit);
        }
    }
}

/* The row number of the own row is that of each unit of data that is good. */
static void take_row_number(struct ftl_rescue *rescue,
                            const struct ftl_request *request)
{
    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        const struct ftl_flash_unit *unit = &request->units[i];
        struct ftl_system system;

        if (unit->status == FTL_UNIT_GOOD &&
            !ftl_system_is_parity(unit->system) &&
            ftl_system_parse(&system, unit->system)) {
            rescue->row_number = system.row;
            return;
        }
    }
}

bool ftl_rescue_read_next_die(struct ftl_rows_floor *ftl,
                              struct ftl_rescue *rescue)
{
    struct ftl_request *request = &ftl->ops.requests[rescue->request];
    uint32_t dies = ftl->layout.geometry.dies;
    uint32_t stripe_row = rescue->row - row_die(ftl, rescue->row);

    request->flash.num_units = 0;
    request->flash.planes = 0;
    request->flash.tag = ftl_tag(FTL_CAUSE_REBUILD, rescue->flash.tag);
    /* An urgent read must not pass the program of a row of this stripe. */
    request->flash.is_urgent =
        rescue->flash.is_urgent &&
        ftl->superblocks[rescue->flash.block].rows_in_flight == 0;
    for (; rescue->next_die < dies; rescue->next_die++) {
        bool is_own = rescue->next_die == row_die(ftl, rescue->row);

        if (is_own && ftl_rescue_needs_row_number(ftl, rescue)) {
            add_own_row(ftl, rescue, request);
        }
        for (uint8_t i = 0; i < rescue->num_units; i++) {
            uint32_t entry = request->flash.num_units;
            struct ftl_flash_unit unit;

            if (is_own || !is_wanted(ftl, rescue, i)) {
                continue;
            }
            rescue->of_entry[entry] = i;
            unit =
                (struct ftl_flash_unit){.system = rescue->read_system[entry]};
            if (!rescue->is_of_scan) {
                unit.data = rescue->read_data + (size_t)entry * FTL_UNIT_DATA;
                unit.meta = rescue->read_meta + (size_t)entry * FTL_UNIT_META;
                unit.length = FTL_UNIT_DATA;
            }
            ftl_request_add(&ftl->layout, request,
                            (stripe_row + rescue->next_die) *
                                    ftl->layout.row_units +
                                rescue->index[i],
                            &unit);
        }
        if (request->flash.num_units != 0) {
            ftl_request_send(&ftl->ops, request);
            return true;
        }
    }
    return false;
}

/*
 * A row that is in a sum may not be on flash yet, because its program has
 * failed and will be repeated: see ftl_hold.c.  Find the unit in the memory
 * from which it is programmed.
 * @return NULL if there is none
 */
static const struct ftl_flash_unit *find_in_memory(
    const struct ftl_rows_floor *ftl, uint32_t row, uint32_t index)
{
    for (uint32_t i = 0; i < ftl->config.num_requests; i++) {
        const struct ftl_request *request = &ftl->ops.requests[i];

        if (request->kind != FTL_REQUEST_ROW || request->row != row) {
            continue;
        }
        for (uint32_t j = 0; j < request->flash.num_units; j++) {
            if (ftl_layout_index(&ftl->layout, &request->units[j]) == index &&
                (request->lost_units & UINT64_C(1) << j) == 0) {
                return &request->units[j];
            }
        }
    }
    return NULL;
}

/* The contents of a unit of another die. @return NULL if there are none */
static const struct ftl_flash_unit *find_contents(
    const struct ftl_rows_floor *ftl, const struct ftl_request *request,
    const struct ftl_flash_unit *unit)
{
    if (unit->status == FTL_UNIT_ERASED) {
        return find_in_memory(ftl, request->row,
                              ftl_layout_index(&ftl->layout, unit));
    }
    return unit->status == FTL_UNIT_GOOD ? unit : NULL;
}

uint32_t ftl_rescue_most_left_out(const struct ftl_rows_floor *ftl,
                                  const struct ftl_rescue *rescue)
{
    return ftl_mount_most_left_out(
        &ftl->space_floor, &ftl->ops.requests[rescue->request], rescue->row);
}

/* Do without a unit of a die that is erased or cannot be read. */
static void leave_out(struct ftl_rows_floor *ftl, struct ftl_rescue *rescue,
                      uint32_t unit, uint32_t die)
{
    uint32_t entry = rescue->entry[unit];
    struct ftl_request *request = &ftl->ops.requests[rescue->request];

    if (rescue->num_left_out[unit] == ftl_rescue_most_left_out(ftl, rescue)) {
        rescue->is_lost[unit] = true;
        return;
    }
    request->left_out[entry][rescue->num_left_out[unit]++] = (uint8_t)die;
}

/* Keep the number of a unit that may be in the sum or not. */
static void note_found(struct ftl_rescue *rescue, uint32_t unit,
                       const uint8_t *bytes)
{
    uint32_t number = FTL_RESCUE_PARITY;
    struct ftl_system system;

    if (rescue->num_found[unit] == FTL_RESCUE_FOUND) {
        return;
    }
    if (!ftl_system_is_parity(bytes)) {
        if (!ftl_system_parse(&system, bytes)) {
            return;
        }
        number = system.number;
    }
    rescue->found[unit][rescue->num_found[unit]++] = number;
}

static void add_unit(struct ftl_rows_floor *ftl, struct ftl_rescue *rescue,
                     uint32_t unit, const struct ftl_flash_unit *from)
{
    rescue->parity[unit] += ftl_system_is_parity(from->system);
    if (!rescue->is_of_scan) {
        ftl_memory_move(&ftl->map_floor, FTL_MOVE_XOR, sum_data(rescue, unit),
                        from->data, FTL_UNIT_DATA);
        ftl_memory_move(&ftl->map_floor, FTL_MOVE_XOR, sum_meta(rescue, unit),
                        from->meta, FTL_UNIT_META);
    }
    for (unsigned int i = 0; i < FTL_UNIT_SYSTEM; i++) {
        rescue->system[unit][i] ^= from->system[i];
    }
}

void ftl_rescue_add_die(struct ftl_rows_floor *ftl, struct ftl_rescue *rescue,
                        const struct ftl_request *request,
                        enum ftl_flash_status status)
{
    uint8_t good = ftl_good_planes(&ftl->space_floor, rescue->flash.block,
                                   request->flash.die);

    if (status != FTL_FLASH_OK && status != FTL_FLASH_DEAD) {
        rescue->status = status;
    }
    if (request->flash.die == row_die(ftl, rescue->row)) {
        if (status == FTL_FLASH_OK) {
            take_row_number(rescue, request);
        }
        return;
    }
    for (uint32_t entry = 0; entry < request->flash.num_units; entry++) {
        const struct ftl_flash_unit *unit = &request->units[entry];
        const struct ftl_flash_unit *from = find_contents(ftl, request, unit);
        bool is_erased = unit->status == FTL_UNIT_ERASED && from == NULL;
        uint32_t i = rescue->of_entry[entry];
        bool is_bad = (good & BIT(unit->plane)) == 0;

        rescue->is_used[i] |= !is_erased;
        if (from == NULL && rescue->attempt == FTL_RESCUE_READABLE &&
            status == FTL_FLASH_OK && !(is_erased && is_bad)) {
            leave_out(ftl, rescue, i, request->flash.die);
            continue;
        }
        rescue->has_erased[i] |= is_erased && !is_bad;
        rescue->has_dead |= status == FTL_FLASH_DEAD;
        if (rescue->attempt == FTL_RESCUE_ALL && status == FTL_FLASH_OK &&
            is_erased &&
            ftl_rescue_is_plane_doubtful(ftl, rescue, request->flash.die,
                                         unit->plane)) {
            rescue->num_absent[i]++;
        }
        /* What an accumulator has as a member is in its sum, also if the plane
         * has failed since. */
        if (status != FTL_FLASH_OK ||
            (unit->status == FTL_UNIT_UNCORRECTABLE && !is_bad) ||
            (from == NULL && is_bad && rescue->is_of_accumulator)) {
            rescue->is_lost[i] = true;
            continue;
        }
        if (from == NULL) {
            continue;
        }
        rescue->has_read_bad_planes |= is_bad;
        if (rescue->attempt == FTL_RESCUE_ALL &&
            ftl_rescue_is_plane_doubtful(ftl, rescue, request->flash.die,
                                         unit->plane)) {
            note_found(rescue, i, from->system);
        }
        add_unit(ftl, rescue, i, from);
    }
    ftl_memory_run(&ftl->map_floor);
}

/* ---- The result. */

/* Whether rebuilt system bytes are those of the unit that was asked for, which
 * the request reads into its entry `entry`. */
static bool is_expected(const struct ftl_rows_floor *ftl,
                        const struct ftl_rescue *rescue,
                        const struct ftl_system *system, uint32_t place,
                        uint32_t entry)
{
    const struct ftl_request *request = &ftl->ops.requests[rescue->request];
    const struct ftl_kind *kind = &ftl_kinds[request->kind];

    return ftl_mount_expects_row(&ftl->space_floor, rescue->row, system) &&
           (kind->expects == NULL ||
            kind->expects(ftl_whole_to_ask(&ftl->ops_floor), request, entry,
                          place, system));
}

bool ftl_rescue_is_rebuilt(const struct ftl_rows_floor *ftl,
                           struct ftl_rescue *rescue, uint32_t unit)
{
    uint32_t place = rescue->row * ftl->layout.row_units + rescue->index[unit];
    struct ftl_system system;

    if (rescue->has_lost_word || rescue->is_lost[unit] ||
        rescue->has_erased[unit]) {
        return false;
    }
    ftl_system_mark_data(rescue->system[unit]);
    return ftl_system_parse(&system, rescue->system[unit]) &&
           ftl_rescue_has_right_members(ftl, rescue, unit, &system) &&
           is_expected(ftl, rescue, &system, place, rescue->entry[unit]);
}

bool ftl_rescue_copy_unit(struct ftl_rows_floor *ftl, struct ftl_rescue *rescue,
                          uint32_t unit)
{
    struct ftl_flash_unit *first = &rescue->saved[rescue->entry[unit]];
    struct ftl_flash_unit *to = first;

    for (bool more = true; more; to++) {
        if (to->data != NULL) {
            ftl_memory_move(&ftl->map_floor, FTL_MOVE_COPY, to->data,
                            sum_data(rescue, unit) + to->offset, to->length);
        }
        if (to->meta != NULL) {
            ftl_memory_move(&ftl->map_floor, FTL_MOVE_COPY, to->meta,
                            sum_meta(rescue, unit), FTL_UNIT_META);
        }
        if (to->system != NULL) {
            memcpy(to->system, rescue->system[unit], FTL_UNIT_SYSTEM);
        }
        more = to->more;
    }
    ftl_memory_run(&ftl->map_floor);
    if (rescue->has_lost_word) {
        return false;
    }
    for (; first != to; first++) {
        first->status = FTL_UNIT_GOOD;
    }
    return true;
}
