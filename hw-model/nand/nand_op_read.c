/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads of a NAND array: which bytes are read from storage, and whether a unit
 * could be corrected.  A unit is one group of entries: the parts of its data.
 *
 * A unit is one codeword.  So all of it is read and checked, also if the owner
 * wants only a part of it, or nothing.
 */
#include "hw-model/nand/nand_array_internal.h"

#include <string.h>

enum { MEANINGLESS = 0xd6 }; /* fills the data of an uncorrectable unit */

/* The status of a unit that storage is asked for, until it is judged. */
enum {
    UNIT_ASKED = 0x80, /* programmed */
    UNIT_TORN,         /* of a half programmed wordline */
};

/* A request that is being put together: adjacent units. */
struct nand_run {
    uint64_t offset;
    uint64_t end;
    unsigned int first_iov;
};

/* The number of entries of the unit that begins with entry `first`. */
static unsigned int group_len(const struct nand_op *op, unsigned int first)
{
    unsigned int len = 1;

    while (op->units[first + len - 1].more) {
        len++;
    }
    return len;
}

static uint32_t slot_unit_of(const struct nand_array *array,
                             const struct nand_unit *unit)
{
    return (uint32_t)unit->page * array->file.geometry.units + unit->unit;
}

static uint64_t unit_place(const struct nand_array *array,
                           const struct nand_op *op,
                           const struct nand_unit *unit)
{
    return nand_unit_place(nand_op_block(array, op, unit->plane),
                           unit->wordline, slot_unit_of(array, unit));
}

/* Where the metadata, or the system bytes, of a group go. */
static uint8_t *group_meta(struct nand_op *op, unsigned int first,
                           unsigned int len)
{
    for (unsigned int i = first; i < first + len; i++) {
        if (op->units[i].meta != NULL) {
            return op->units[i].meta;
        }
    }
    return op->work.rest_meta[first];
}

static uint8_t *group_system(struct nand_op *op, unsigned int first,
                             unsigned int len)
{
    for (unsigned int i = first; i < first + len; i++) {
        if (op->units[i].system != NULL) {
            return op->units[i].system;
        }
    }
    return op->work.rest_system[first];
}

/* ---- Before storage is asked. */

/* Count the reads of a block: one for each page, not for each unit. */
static void count_read(struct nand_array *array, struct nand_op *op,
                       unsigned int i)
{
    const struct nand_unit *unit = &op->units[i];
    uint32_t index = nand_op_block(array, op, unit->plane);
    struct nand_block *block = &array->blocks[index];
    bool is_same_page = i != 0 && unit[-1].plane == unit->plane &&
                        unit[-1].wordline == unit->wordline &&
                        unit[-1].page == unit->page;

    if (!is_same_page && block->reads != UINT32_MAX) {
        block->reads++;
        block->flags |= NAND_BLOCK_DIRTY;
        if (block->reads % NAND_READS_STORED == 0) {
            op->work.crossed |= (uint8_t)BIT(unit->plane);
        }
    }
    op->work.reads[i] = block->reads;
}

/* What a unit is, as far as memory says. */
static uint8_t unit_state(const struct nand_block *block,
                          const struct nand_unit *unit)
{
    if ((block->flags & (NAND_BLOCK_FACTORY_BAD | NAND_BLOCK_HALF_ERASED)) !=
        0) {
        return NAND_UNIT_UNCORRECTABLE;
    }
    if (unit->wordline >= block->next) {
        return NAND_UNIT_ERASED;
    }
    return (block->flags & NAND_BLOCK_TORN) != 0 &&
                   unit->wordline == block->next - 1
               ? UNIT_TORN
               : UNIT_ASKED;
}

/* Add a vector for the data of a unit from `at` on that nobody wants. */
static void add_rest(struct nand_op *op, unsigned int first, unsigned int at,
                     unsigned int end)
{
    if (at != end) {
        nand_op_vector(op, op->work.rest_data[first] + at, end - at);
    }
}

/* Add the vectors of a unit: everything of it, in the order of the slot. */
static void add_group(struct nand_op *op, unsigned int first, unsigned int len)
{
    unsigned int at = 0;

    for (unsigned int i = first; i < first + len; i++) {
        const struct nand_unit *unit = &op->units[i];

        if (unit->data != NULL) {
            add_rest(op, first, at, unit->offset);
            nand_op_vector(op, unit->data, unit->length);
            at = (unsigned int)unit->offset + unit->length;
        }
    }
    add_rest(op, first, at, NAND_UNIT_DATA);
    nand_op_vector(op, group_meta(op, first, len), NAND_UNIT_META);
    nand_op_vector(op, group_system(op, first, len), NAND_UNIT_SYSTEM);
    nand_op_vector(op, op->work.trailers[first], NAND_TRAILER_LEN);
}

static void send_run(struct nand_array *array, struct nand_op *op,
                     struct nand_run *run)
{
    if (run->end != run->offset) {
        nand_op_readv(array, op, run->offset, &op->work.iov[run->first_iov],
                      op->work.num_iov - run->first_iov);
    }
    run->offset = run->end = 0;
}

static void ask_for_group(struct nand_array *array, struct nand_op *op,
                          struct nand_run *run, unsigned int first,
                          unsigned int len)
{
    const struct nand_unit *unit = &op->units[first];
    uint64_t offset =
        nand_layout_slot(&array->layout, nand_op_block(array, op, unit->plane),
                         unit->wordline) +
        nand_slot_unit(slot_unit_of(array, unit));

    if (offset != run->end) {
        send_run(array, op, run);
        run->offset = offset;
        run->first_iov = op->work.num_iov;
    }
    add_group(op, first, len);
    run->end = offset + NAND_SLOT_UNIT_LEN;
}

/* Find out what each unit is. */
static void classify_units(struct nand_array *array, struct nand_op *op)
{
    for (unsigned int i = 0; i < op->num_units; i += group_len(op, i)) {
        struct nand_unit *unit = &op->units[i];

        count_read(array, op, i);
        unit->status = unit_state(
            &array->blocks[nand_op_block(array, op, unit->plane)], unit);
    }
}

/* Ask for the units of one plane.  In a slot, the units of all pages follow
 * each other, so one request can read several pages of a wordline. */
static void ask_for_plane(struct nand_array *array, struct nand_op *op,
                          unsigned int plane)
{
    struct nand_run run = {0};
    unsigned int len;

    for (unsigned int i = 0; i < op->num_units; i += len) {
        const struct nand_unit *unit = &op->units[i];

        len = group_len(op, i);
        if (unit->plane == plane && unit->status >= UNIT_ASKED) {
            ask_for_group(array, op, &run, i, len);
        }
    }
    send_run(array, op, &run);
}

bool nand_op_read(struct nand_array *array, struct nand_op *op)
{
    classify_units(array, op);
    for (unsigned int plane = nand_op_plane(op, 0); plane < NAND_OP_PLANES;
         plane = nand_op_plane(op, plane + 1)) {
        ask_for_plane(array, op, plane);
    }
    return op->work.pending != 0;
}

/* ---- When storage has answered. */

/* The CRC of the data of a unit, wanted or not. */
static uint32_t group_data_crc(const struct nand_op *op, unsigned int first,
                               unsigned int len, uint64_t place)
{
    uint32_t crc = nand_unit_crc_start(place);
    const uint8_t *rest = op->work.rest_data[first];
    unsigned int at = 0;

    for (unsigned int i = first; i < first + len; i++) {
        const struct nand_unit *unit = &op->units[i];

        if (unit->data != NULL) {
            crc = nand_data_crc(crc, at, rest + at, unit->offset - at);
            crc = nand_data_crc(crc, unit->offset, unit->data, unit->length);
            at = (unsigned int)unit->offset + unit->length;
        }
    }
    return nand_data_crc(crc, at, rest + at, NAND_UNIT_DATA - at);
}

/* Whether the bytes that were read are those that were programmed. */
static bool group_is_whole(struct nand_array *array, struct nand_op *op,
                           unsigned int first, unsigned int len,
                           const struct nand_trailer *trailer)
{
    uint64_t place = unit_place(array, op, &op->units[first]);

    return nand_rest_crc(place, group_meta(op, first, len),
                         group_system(op, first, len),
                         trailer) == trailer->rest_crc &&
           group_data_crc(op, first, len, place) == trailer->data_crc;
}

static void inject_into_unit(struct nand_array *array, const struct nand_op *op,
                             const struct nand_unit *unit, uint16_t *bits)
{
    struct nand_fault hit;

    if (!nand_inject_is_on(array) ||
        !nand_inject_event(array, op, unit->plane, unit, false, &hit)) {
        return;
    }
    if (hit.effect == NAND_EFFECT_UNCORRECTABLE) {
        *bits = NAND_BITS_MAX;
    } else if (hit.effect == NAND_EFFECT_BITS) {
        *bits = hit.bits;
    }
}

/* How many bits of the unit are wrong.  NAND_BITS_MAX: too many in any case. */
static uint16_t wrong_bits(struct nand_array *array, struct nand_op *op,
                           unsigned int first, unsigned int len)
{
    const struct nand_geometry *geometry = &array->file.geometry;
    const struct nand_profile *profile = array->file.profile;
    const struct nand_unit *unit = &op->units[first];
    uint32_t index = nand_op_block(array, op, unit->plane);
    const struct nand_block *block = &array->blocks[index];
    struct nand_trailer trailer;
    struct nand_spot spot = {
        .seed = array->file.seed,
        .block = index,
        .number = block->number,
        .wordline = unit->wordline,
        .page = unit->page,
        .unit = unit->unit,
    };
    struct nand_stress stress = {
        .wear = block->wear,
        .reads = op->work.reads[first],
        .block_pages = (uint32_t)geometry->wordlines *
                       nand_profile_mode(profile, op->was_slc)->pages,
        .page = unit->page,
        .is_slc = op->was_slc,
    };

    nand_trailer_parse(&trailer, op->work.trailers[first]);
    if (trailer.number != block->number ||
        !group_is_whole(array, op, first, len, &trailer) ||
        (unit->status == UNIT_TORN && !nand_torn_unit_reads(&spot))) {
        return NAND_BITS_MAX;
    }
    if (op->work.time_ns > trailer.time_ns) {
        stress.age_ns = op->work.time_ns - trailer.time_ns;
    }
    return nand_error_bits(profile, &spot, &stress);
}

/* Set the results of all entries of a unit. */
static void set_results(struct nand_op *op, unsigned int first,
                        unsigned int len, uint8_t status, uint16_t bits,
                        uint8_t steps)
{
    const uint8_t *meta = group_meta(op, first, len);
    const uint8_t *system = group_system(op, first, len);

    for (unsigned int i = first; i < first + len; i++) {
        struct nand_unit *unit = &op->units[i];

        unit->status = status;
        unit->bits = bits;
        unit->steps = steps;
        if (status == NAND_UNIT_GOOD) {
            if (unit->meta != NULL && unit->meta != meta) {
                /* Firmware may have given addresses that overlap. */
                memmove(unit->meta, meta, NAND_UNIT_META);
            }
            if (unit->system != NULL && unit->system != system) {
                memcpy(unit->system, system, NAND_UNIT_SYSTEM);
            }
        } else if (status == NAND_UNIT_UNCORRECTABLE) {
            if (unit->data != NULL) {
                memset(unit->data, MEANINGLESS, unit->length);
            }
            if (unit->meta != NULL) {
                memset(unit->meta, MEANINGLESS, NAND_UNIT_META);
            }
            if (unit->system != NULL) {
                memset(unit->system, MEANINGLESS, NAND_UNIT_SYSTEM);
            }
        }
    }
}

static void judge_group(struct nand_array *array, struct nand_op *op,
                        unsigned int first, unsigned int len)
{
    const struct nand_profile *profile = array->file.profile;
    uint8_t status = op->units[first].status, steps = 0;
    uint16_t bits = 0;

    if (status >= UNIT_ASKED) {
        bits = wrong_bits(array, op, first, len);
        inject_into_unit(array, op, &op->units[first], &bits);
        status = nand_correct_bits(profile, bits, &steps)
                     ? NAND_UNIT_GOOD
                     : NAND_UNIT_UNCORRECTABLE;
    } else if (status == NAND_UNIT_UNCORRECTABLE) {
        steps = profile->steps;
    }
    if (status == NAND_UNIT_UNCORRECTABLE) {
        bits = 0; /* Nobody knows how many are wrong. */
    }
    set_results(op, first, len, status, bits, steps);
}

void nand_op_read_done(struct nand_array *array, struct nand_op *op)
{
    unsigned int len;

    for (unsigned int i = 0; i < op->num_units; i += len) {
        len = group_len(op, i);
        judge_group(array, op, i, len);
    }
}
