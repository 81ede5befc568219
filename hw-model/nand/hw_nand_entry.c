/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries of READ and PROGRAM: what they say, and what they report.
 * Reference: docs/hardware/nand.md, section 4.
 */
#include "hw-model/nand/hw_nand_internal.h"

enum { PART_ALIGN = 8 };

/* Find `len` bytes at `addr` in DRAM, which a READ overwrites and a PROGRAM
 * reads; address 0 stands for no buffer. */
static bool map_buffer(const struct hw_nand *nand, bool is_read, uint64_t addr,
                       uint64_t len, uint8_t **ptr)
{
    if (addr == 0) {
        *ptr = NULL;
        return true;
    }
    *ptr = is_read ? hw_nand_dma_write(nand, addr, len)
                   : hw_nand_dma(nand, addr, len);
    return *ptr != NULL;
}

static enum nand_cqe_status map_buffers(const struct hw_nand *nand,
                                        bool is_read, uint8_t *entry,
                                        struct nand_unit *unit)
{
    unit->system = entry + NAND_ENTRY_SYSTEM;
    return map_buffer(nand, is_read, get_le64(entry + NAND_ENTRY_DATA),
                      unit->length, &unit->data) &&
                   map_buffer(nand, is_read, get_le64(entry + NAND_ENTRY_META),
                              NAND_META_LEN, &unit->meta)
               ? NAND_CQE_OK
               : NAND_CQE_BAD_ADDRESS;
}

static enum nand_cqe_status map_program_entry(const struct hw_nand *nand,
                                              uint8_t *entry,
                                              struct nand_unit *unit)
{
    enum nand_cqe_status status;

    *unit = (struct nand_unit){.length = NAND_DATA_LEN};
    if (get_le16(entry + NAND_ENTRY_OFFSET) != 0 ||
        get_le16(entry + NAND_ENTRY_LENGTH) != NAND_DATA_LEN ||
        entry[NAND_ENTRY_FLAGS] != 0) {
        return NAND_CQE_BAD_ARGUMENT;
    }
    status = map_buffers(nand, false, entry, unit);
    if (status == NAND_CQE_OK && unit->data == NULL) {
        return NAND_CQE_BAD_ADDRESS;
    }
    put_le32(entry + NAND_ENTRY_RESULT, 0);
    return status;
}

/* @return whether `unit` may follow `last`, which has the flag MORE */
static bool continues_unit(const struct nand_unit *last,
                           const struct nand_unit *unit)
{
    return unit->wordline == last->wordline && unit->plane == last->plane &&
           unit->page == last->page && unit->unit == last->unit &&
           unit->offset >= last->offset + last->length;
}

static bool has_good_form(const struct hw_nand_op *op,
                          const struct nand_unit *unit, uint8_t flags)
{
    return (flags & ~NAND_ENTRY_MORE) == 0 && unit->plane < HW_NAND_PLANES &&
           (op->planes & BIT(unit->plane)) &&
           (unit->offset | unit->length) % PART_ALIGN == 0 &&
           unit->offset + unit->length <= NAND_DATA_LEN;
}

static enum nand_cqe_status map_read_entry(const struct hw_nand *nand,
                                           const struct hw_nand_op *op,
                                           uint8_t *entry,
                                           const struct nand_unit *last,
                                           struct nand_unit *unit)
{
    const struct nand_geometry *geometry = &nand->geometry;
    uint8_t flags = entry[NAND_ENTRY_FLAGS];

    *unit = (struct nand_unit){
        .offset = get_le16(entry + NAND_ENTRY_OFFSET),
        .length = get_le16(entry + NAND_ENTRY_LENGTH),
        .wordline = get_le16(entry + NAND_ENTRY_WORDLINE),
        .plane = entry[NAND_ENTRY_PLANE],
        .page = entry[NAND_ENTRY_PAGE],
        .unit = entry[NAND_ENTRY_UNIT],
        .more = flags & NAND_ENTRY_MORE,
    };
    if (!has_good_form(op, unit, flags) ||
        (last != NULL && last->more && !continues_unit(last, unit))) {
        return NAND_CQE_BAD_ARGUMENT;
    }
    if (unit->wordline >= geometry->wordlines ||
        unit->page >= geometry->pages || unit->unit >= geometry->units) {
        return NAND_CQE_BAD_ADDRESS;
    }
    if (unit->length == 0 && get_le64(entry + NAND_ENTRY_DATA) != 0) {
        return NAND_CQE_BAD_ARGUMENT;
    }
    return map_buffers(nand, true, entry, unit);
}

enum nand_cqe_status hw_nand_entries_map(const struct hw_nand *nand,
                                         const struct hw_nand_op *op,
                                         struct nand_op *array_op)
{
    const struct nand_unit *last = NULL;

    for (unsigned int i = 0; i < op->entries; i++) {
        uint8_t *entry = op->list + (size_t)i * NAND_ENTRY_LEN;
        struct nand_unit *unit = &array_op->units[i];
        enum nand_cqe_status status =
            op->opcode == NAND_CMD_PROGRAM
                ? map_program_entry(nand, entry, unit)
                : map_read_entry(nand, op, entry, last, unit);

        if (status != NAND_CQE_OK) {
            return status;
        }
        last = unit;
    }
    return last != NULL && last->more ? NAND_CQE_BAD_ARGUMENT : NAND_CQE_OK;
}

static enum nand_cqe_status status_of_unit(const struct nand_unit *unit)
{
    switch (unit->status) {
    case NAND_UNIT_GOOD:
        return NAND_CQE_OK;
    case NAND_UNIT_ERASED:
        return NAND_CQE_ERASED;
    default:
        return NAND_CQE_UNCORRECTABLE;
    }
}

static void count_unit(struct hw_nand *nand, const struct nand_unit *unit,
                       uint16_t corrected)
{
    hw_nand_count(nand, NAND_COUNT_UNITS_READ, 1);
    hw_nand_count(nand, NAND_COUNT_CORRECTED_BITS, corrected);
    hw_nand_count(nand, NAND_COUNT_SOFT_READS, unit->steps > 0);
    hw_nand_count(nand, NAND_COUNT_UNCORRECTABLE,
                  unit->status == NAND_UNIT_UNCORRECTABLE);
}

void hw_nand_entries_end(struct hw_nand *nand, struct hw_nand_op *op)
{
    for (unsigned int i = 0; i < op->entries; i++) {
        const struct nand_unit *unit = &op->array_op->units[i];
        enum nand_cqe_status status = status_of_unit(unit);
        uint16_t corrected = status == NAND_CQE_OK ? unit->bits : 0;

        put_le32(op->list + (size_t)i * NAND_ENTRY_LEN + NAND_ENTRY_RESULT,
                 FIELD_MAKE(NAND_RESULT, BITS, corrected) |
                     FIELD_MAKE(NAND_RESULT, STEPS, unit->steps) |
                     FIELD_MAKE(NAND_RESULT, STATUS, status));
        op->bits = MAX(op->bits, corrected);
        op->steps = MAX(op->steps, unit->steps);
        /* The statuses are in this order: OK, ERASED, UNCORRECTABLE. */
        op->status = MAX(op->status, (uint8_t)status);
        if (!unit->more) {
            count_unit(nand, unit, corrected);
        }
    }
}
