/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The units of a row.  Most rows hold contents of the write buffer without
 * marked blocks: these units are added in one loop, and their system bytes
 * differ in number and check byte alone.
 */
#include "storage/ftl/rows/ftl_row_fill.h"

#include "storage/ftl/map/map.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/rows/rows.h"

/* Take a slot out of a list of waiting ones. */
static uint16_t take_waiting(struct ftl_rows_floor *ftl, enum ftl_pool pool)
{
    uint16_t index = ftl_list_pop(&ftl->buffer.waiting[pool]);

    if (index != FTL_LIST_END) {
        ftl->buffer.slots[index].state = FTL_SLOT_PROGRAMMING;
    }
    return index;
}

bool ftl_row_drop_moves(struct ftl_rows_floor *ftl)
{
    uint16_t index;
    bool any = false;

    while ((index = ftl->buffer.waiting[FTL_POOL_MOVE].head) != FTL_LIST_END &&
           !ftl_map_is_valid(&ftl->map_floor,
                             ftl->buffer.slots[index].old_place)) {
        (void)ftl_list_pop(&ftl->buffer.waiting[FTL_POOL_MOVE]);
        ftl->collection.slots--;
        ftl_slot_free(&ftl->buffer, index);
        any = true;
    }
    return any;
}

/* Take a unit that is to be moved. */
static uint16_t take_moved(struct ftl_rows_floor *ftl)
{
    (void)ftl_row_drop_moves(ftl);
    return take_waiting(ftl, FTL_POOL_MOVE);
}

/* Write the system bytes of a slot's unit. */
static void emit_system(const struct ftl_rows_floor *ftl,
                        const struct ftl_slot *slot, uint64_t row_number,
                        uint8_t *system)
{
    bool is_page = slot->number >= ftl->config.logical_units;

    ftl_system_emit(
        &(struct ftl_system){
            .kind = is_page ? FTL_KIND_TRIM : FTL_KIND_DATA,
            .number = slot->number - (is_page ? ftl->config.logical_units : 0),
            .is_of_mount = ftl->state == FTL_MOUNTING,
            .is_lost = slot->is_lost,
            .version = slot->pool == FTL_POOL_MOVE ? slot->version : row_number,
            .attempt = slot->pool == FTL_POOL_MOVE ? slot->attempt : 0,
            .marks = slot->marks,
            .row = row_number,
        },
        system);
}

static uint16_t take_for_row(struct ftl_rows_floor *ftl,
                             const struct ftl_row_plan *plan)
{
    uint16_t index = FTL_LIST_END;

    if (plan->is_marker) {
        return FTL_LIST_END;
    }
    if (plan->takes_pages) {
        index = take_waiting(ftl, FTL_POOL_TRIM);
    }
    if (index == FTL_LIST_END) {
        index = plan->stream == FTL_HOST_STREAM
                    ? take_waiting(ftl, FTL_POOL_HOST)
                    : take_moved(ftl);
    }
    return index;
}

/* What the units of a row have in common. */
struct row_head {
    uint64_t number;
    /* System bytes of logical unit 0, if a host has written it. */
    _Alignas(8) uint8_t system[FTL_UNIT_SYSTEM];
};

static void emit_head(const struct ftl_rows_floor *ftl, uint64_t number,
                      struct row_head *head)
{
    head->number = number;
    ftl_system_emit(
        &(struct ftl_system){.kind = FTL_KIND_DATA,
                             .is_of_mount = ftl->state == FTL_MOUNTING,
                             .version = number,
                             .row = number},
        head->system);
}

/* Add the unit `index` of a row to its request.  @param slot  or FTL_LIST_END
 */
static inline struct ftl_flash_unit *add_unit(const struct ftl_layout *layout,
                                              struct ftl_request *request,
                                              uint32_t index, uint16_t slot)
{
    uint16_t number = request->flash.num_units++;
    struct ftl_flash_unit *unit = &request->units[number];

    request->slots[number] = slot;
    *unit = (struct ftl_flash_unit){.system = request->system[number]};
    ftl_layout_unit(layout, index, unit);
    return unit;
}

/* Fill in the unit `index` of a row from a slot, with padding, or with a
 * marker. */
static void fill_unit(struct ftl_rows_floor *ftl, struct ftl_request *request,
                      uint32_t index, uint16_t slot,
                      const struct row_head *head)
{
    struct ftl_flash_unit *unit = add_unit(&ftl->layout, request, index, slot);

    if (slot == FTL_LIST_END) {
        ftl_system_emit(
            &(struct ftl_system){
                .kind = FTL_KIND_PAD,
                .number = request->is_marker ? ftl_marker_number(ftl) : 0,
                .is_of_mount = ftl->state == FTL_MOUNTING,
                .row = head->number},
            unit->system);
        unit->data = ftl->pad;
        unit->meta = ftl->pad;
        ftl->counters.pad_units++;
    } else {
        const struct ftl_slot *from = &ftl->buffer.slots[slot];

        if (from->pool == FTL_POOL_TRIM) {
            ftl_page_snapshot(&ftl->pages_floor, slot, head->number);
            ftl->counters.map_pages++;
        }
        emit_system(ftl, from, head->number, unit->system);
        unit->data = ftl_slot_data(&ftl->buffer, slot);
        unit->meta = ftl_slot_meta(&ftl->buffer, slot);
        ftl->counters.units++;
    }
}

/* Fill in the unit `index` of a row with parity. */
static void fill_parity(struct ftl_rows_floor *ftl,
                        const struct ftl_stream *stream,
                        struct ftl_request *request, uint32_t index)
{
    struct ftl_flash_unit *unit =
        add_unit(&ftl->layout, request, index, FTL_LIST_END);

    ftl_parity_fill(ftl, stream->accumulator, index, unit);
    ftl->counters.parity_units++;
}

/*
 * If a row takes only slots of the write buffer, take them all at once.
 * @return how many; the next ones, if there are any, come one by one
 */
static uint32_t take_slots(struct ftl_rows_floor *ftl,
                           const struct ftl_row_plan *plan,
                           const struct ftl_request *request, uint16_t *taken)
{
    unsigned int planes = request->flash.planes & ~request->parity_planes;
    uint32_t plane_units = ftl->layout.row_units / ftl->layout.geometry.planes;

    if (plan->stream != FTL_HOST_STREAM || plan->takes_pages ||
        plan->is_marker) {
        return 0;
    }
    return ftl_list_pop_all(&ftl->buffer.waiting[FTL_POOL_HOST], taken,
                            plane_units * (uint32_t)__builtin_popcount(planes));
}

/* Slots of the write buffer that the next units of a row take. */
struct row_slots {
    const uint16_t *next, *end;
};

/*
 * Add units to a row, as long as they take slots of the write buffer without
 * marked blocks.
 * @param index  of the first unit in the row
 * @return the index of the first unit that has to be added in another way; the
 *         number of units in a row if there is none
 */
static uint32_t add_usual(struct ftl_rows_floor *ftl,
                          struct ftl_request *request,
                          const struct row_head *head, struct row_slots *slots,
                          uint32_t index)
{
    /* With copies, the compiler knows that stores to units do not change
     * these. */
    const struct ftl_buffer buffer = ftl->buffer;
    const struct ftl_system_sums *sums = ftl->sums;
    const struct row_head row = *head;
    const uint16_t *next = slots->next;
    uint32_t first = request->flash.num_units;
    uint32_t most = MIN(ftl->layout.row_units - index,
                        (uint32_t)(slots->end - slots->next));
    unsigned int planes = request->flash.planes & ~request->parity_planes;
    const struct ftl_row_unit *place = &ftl->layout.units[index];
    struct ftl_flash_unit *unit = &request->units[first];
    uint8_t *system = request->system[first];
    uint16_t *number = &request->slots[first];

    for (; most != 0; most--, next++, place++, unit++, number++) {
        struct ftl_slot *slot = &buffer.slots[*next];
        const struct ftl_row_unit at = *place;

        if ((planes >> at.plane & 1) == 0 || slot->marks != 0) {
            break;
        }
        slot->state = FTL_SLOT_PROGRAMMING;
        *number = *next;
        /* The compiler stores the last six together. */
        *unit = (struct ftl_flash_unit){
            .data = ftl_slot_data(&buffer, *next),
            .meta = ftl_slot_meta(&buffer, *next),
            .system = system,
            .plane = at.plane,
            .page = at.page,
            .unit = at.unit,
            .more = at.more,
        };
        ftl_system_emit_number(sums, row.system, slot->number, system);
        system += FTL_UNIT_SYSTEM;
    }
    most = (uint32_t)(next - slots->next);
    request->flash.num_units = (uint16_t)(first + most);
    ftl->counters.units += most;
    slots->next = next;
    return index + most;
}

/* The slot that a unit takes which is not usual, or FTL_LIST_END. */
static uint16_t next_slot(struct ftl_rows_floor *ftl,
                          const struct ftl_row_plan *plan,
                          struct row_slots *slots)
{
    if (slots->next == slots->end) {
        return take_for_row(ftl, plan);
    }
    ftl->buffer.slots[*slots->next].state = FTL_SLOT_PROGRAMMING;
    return *slots->next++;
}

void ftl_row_fill(struct ftl_rows_floor *ftl, const struct ftl_row_plan *plan,
                  struct ftl_request *request, uint64_t row_number)
{
    const struct ftl_stream *stream = &ftl->streams[plan->stream];
    uint16_t taken[FTL_OP_UNITS];
    struct row_head head;
    struct row_slots slots = {.next = taken};
    uint32_t i = 0;

    slots.end = taken + take_slots(ftl, plan, request, taken);
    emit_head(ftl, row_number, &head);
    while ((i = add_usual(ftl, request, &head, &slots, i)) <
           ftl->layout.row_units) {
        uint64_t plane = BIT(ftl->layout.units[i].plane);

        if ((request->parity_planes & plane) != 0) {
            fill_parity(ftl, stream, request, i);
        } else if ((request->flash.planes & plane) != 0) {
            fill_unit(ftl, request, i, next_slot(ftl, plan, &slots), &head);
        }
        i++;
    }
}
