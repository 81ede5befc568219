/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * essd-nand check: every record and every CRC of a file.  It says what is
 * wrong and where, and what a power cut has left, which is not wrong.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"
#include "lib/crc32.h"

enum {
    FAULTS_SHOWN = 20,
    HOST_PAGE = 4096, /* the smallest page of a host's kernel */
};

struct check {
    struct image image;
    bool as_json;
    uint8_t *slot; /* a whole one */
    uint64_t faults;
    uint64_t units;     /* that are in order */
    uint64_t wordlines; /* that are programmed */
    uint32_t torn;      /* half programmed wordlines */
    uint32_t half_erased;
};

__attribute__((format(printf, 2, 3))) static void report_fault(
    struct check *check, const char *format, ...)
{
    va_list arguments;

    check->faults++;
    if (check->faults > FAULTS_SHOWN) {
        return;
    }
    va_start(arguments, format);
    if (check->as_json) {
        /* The texts need no escapes. */
        printf("%s\n    \"", check->faults == 1 ? "" : ",");
        vprintf(format, arguments);
        printf("\"");
    } else {
        vprintf(format, arguments);
        printf("\n");
    }
    va_end(arguments);
}

static void check_states(struct check *check)
{
    static const char *const faults[] = {
        [NAND_COPY_MISSING] = "missing",
        [NAND_COPY_DAMAGED] = "damaged",
        [NAND_COPY_OUTDATED] = "older than the state before the last one",
    };

    for (unsigned int i = 0; i < 2; i++) {
        enum nand_copy copy = NAND_COPY_DAMAGED;
        uint8_t buf[NAND_STATE_LEN];

        if (image_read(&check->image, nand_layout_state(i), buf, sizeof(buf))) {
            copy = nand_state_judge(buf, i, check->image.file.state.number);
        }
        if (copy != NAND_COPY_GOOD) {
            report_fault(check, "copy %u of the state is %s", i, faults[copy]);
        }
    }
}

/* Check the units of a slot that has been read. */
static void check_units(struct check *check, uint32_t block, uint32_t wordline,
                        const struct nand_record *record, unsigned int units)
{
    unsigned int of_page = check->image.file.geometry.units;

    for (unsigned int i = 0; i < units; i++) {
        const uint8_t *unit = check->slot + nand_slot_unit(i);
        uint64_t place = nand_unit_place(block, wordline, i);
        struct nand_trailer trailer;
        const char *what = NULL;

        nand_trailer_parse(&trailer, unit + NAND_SLOT_TRAILER);
        if (crc32_update(nand_unit_crc_start(place), unit, NAND_UNIT_DATA) !=
            trailer.data_crc) {
            what = "data";
        } else if (trailer.number != record->number ||
                   nand_rest_crc(place, unit + NAND_SLOT_META,
                                 unit + NAND_SLOT_SYSTEM,
                                 &trailer) != trailer.rest_crc) {
            what = "metadata";
        }
        if (what == NULL) {
            check->units++;
        } else {
            report_fault(check, "%s, wordline %u, page %u, unit %u: %s damaged",
                         image_block_name(&check->image, block).text, wordline,
                         i / of_page, i % of_page, what);
        }
    }
}

static bool read_slot(struct check *check, uint32_t block, uint32_t wordline)
{
    const struct nand_layout *layout = &check->image.layout;

    return image_read(&check->image, nand_layout_slot(layout, block, wordline),
                      check->slot, layout->slot_bytes);
}

/* What the units of a slot say of it if its beginning says nothing. */
static enum image_mark units_mark(struct check *check, uint32_t block,
                                  uint32_t wordline,
                                  const struct nand_record *record)
{
    const struct image *image = &check->image;
    const struct nand_layout *layout = &image->layout;
    unsigned int units =
        image_pages(image, record) * image->file.geometry.units;

    if (!image_has_data(image, nand_layout_slot(layout, block, wordline),
                        layout->slot_bytes) ||
        !read_slot(check, block, wordline)) {
        return IMAGE_MARK_NONE;
    }
    for (unsigned int i = 0; i < units; i++) {
        const uint8_t *unit = check->slot + nand_slot_unit(i);
        struct nand_trailer trailer;

        nand_trailer_parse(&trailer, unit + NAND_SLOT_TRAILER);
        if (trailer.number >= record->number &&
            nand_rest_crc(nand_unit_place(block, wordline, i),
                          unit + NAND_SLOT_META, unit + NAND_SLOT_SYSTEM,
                          &trailer) == trailer.rest_crc) {
            return trailer.number == record->number ? IMAGE_MARK_VALID
                                                    : IMAGE_MARK_NEWER;
        }
    }
    return IMAGE_MARK_NONE;
}

/* A slot as it is checked. */
struct slot {
    uint32_t block;
    uint32_t wordline;
    const struct nand_record *record;
    enum image_mark begin;
    enum image_mark end;
};

static void report_slot(struct check *check, const struct slot *slot,
                        const char *what)
{
    report_fault(check, "%s, wordline %u: %s",
                 image_block_name(&check->image, slot->block).text,
                 slot->wordline, what);
}

/*
 * Find what a slot is.  If its beginning is not valid, its end or its units may
 * show that it was programmed since the last erasure.
 */
static void judge_slot(struct check *check, struct slot *slot)
{
    const struct image *image = &check->image;
    bool is_slc = (slot->record->flags & NAND_BLOCK_SLC) != 0;

    slot->begin =
        image_mark(image, slot->block, slot->record, slot->wordline, false);
    slot->end =
        image_mark(image, slot->block, slot->record, slot->wordline, true);
    if (slot->begin == IMAGE_MARK_NONE) {
        enum image_mark units =
            units_mark(check, slot->block, slot->wordline, slot->record);

        if (units == IMAGE_MARK_NEWER) {
            slot->begin = IMAGE_MARK_NEWER;
        } else if (units == IMAGE_MARK_VALID ||
                   (slot->end == IMAGE_MARK_VALID && !is_slc)) {
            slot->begin = IMAGE_MARK_DAMAGED;
        }
    }
}

/* Whether a killed process may have left a part of the end: it is 64 bytes, and
 * the kernel writes page by page.  In SLC mode, data of the native mode may be
 * in its place. */
static bool end_can_be_torn(const struct check *check, const struct slot *slot)
{
    const struct image *image = &check->image;
    unsigned int units =
        image_pages(image, slot->record) * image->file.geometry.units;
    uint64_t offset =
        nand_layout_slot(&image->layout, slot->block, slot->wordline) +
        nand_slot_unit(units);

    return (slot->record->flags & NAND_BLOCK_SLC) != 0 ||
           offset % HOST_PAGE + NAND_WORDLINE_LEN > HOST_PAGE;
}

/* Check a slot that was begun; those before it are in order. */
static void check_begun(struct check *check, const struct slot *slot)
{
    unsigned int units = image_pages(&check->image, slot->record) *
                         check->image.file.geometry.units;

    if (slot->begin == IMAGE_MARK_DAMAGED) {
        report_slot(check, slot, "its beginning is damaged");
    }
    if (slot->end == IMAGE_MARK_VALID) {
        if (read_slot(check, slot->block, slot->wordline)) {
            check->wordlines++;
            check_units(check, slot->block, slot->wordline, slot->record,
                        units);
        } else {
            report_slot(check, slot, "cannot be read");
        }
    } else if (slot->begin == IMAGE_MARK_VALID) {
        check->torn++;
        if (slot->end != IMAGE_MARK_NONE && !end_can_be_torn(check, slot)) {
            report_slot(check, slot, "its end is damaged");
        }
    }
}

static void check_slots(struct check *check, uint32_t block,
                        const struct nand_record *record)
{
    struct slot slot = {.block = block, .record = record};
    uint32_t next = 0;
    bool is_torn = false;

    for (uint32_t i = 0; i < check->image.file.geometry.wordlines; i++) {
        slot.wordline = i;
        judge_slot(check, &slot);
        if (slot.begin == IMAGE_MARK_NONE) {
            continue;
        }
        if (slot.begin == IMAGE_MARK_NEWER) {
            report_slot(check, &slot, "newer than the record of its block");
            return;
        }
        if (next != i || is_torn) {
            report_fault(
                check, "%s, wordline %u: programmed, but wordline %u is %s",
                image_block_name(&check->image, block).text, i,
                is_torn ? next - 1 : next, is_torn ? "half programmed" : "not");
            return;
        }
        check_begun(check, &slot);
        next = i + 1;
        is_torn = slot.end != IMAGE_MARK_VALID;
    }
}

static void check_block(struct check *check, uint32_t block)
{
    struct nand_record record;

    if (!image_record(&check->image, block, &record)) {
        report_fault(check, "%s: its record is damaged",
                     image_block_name(&check->image, block).text);
    } else if ((record.flags & NAND_BLOCK_HALF_ERASED) != 0) {
        check->half_erased++;
    } else if ((record.flags & NAND_BLOCK_FACTORY_BAD) == 0 &&
               image_has_slots(&check->image, block)) {
        check_slots(check, block, &record);
    }
}

static void check_all(struct check *check)
{
    check_states(check);
    for (uint32_t i = 0; i < check->image.num_blocks; i++) {
        check_block(check, i);
    }
}

static void print_result_json(const struct check *check)
{
    printf("%s],\n  \"fault_count\": %" PRIu64 ",\n",
           check->faults == 0 ? "" : "\n  ", check->faults);
    printf("  \"wordlines\": %" PRIu64 ",\n  \"units\": %" PRIu64 ",\n",
           check->wordlines, check->units);
    printf("  \"half_programmed_wordlines\": %u,\n"
           "  \"half_erased_blocks\": %u\n}\n",
           check->torn, check->half_erased);
}

static void print_result(const struct check *check)
{
    if (check->faults > FAULTS_SHOWN) {
        printf("... and %" PRIu64 " more\n", check->faults - FAULTS_SHOWN);
    }
    printf("%" PRIu64 " wordlines with %" PRIu64
           " units in order; %u half programmed, %u blocks half erased\n",
           check->wordlines, check->units, check->torn, check->half_erased);
}

int check_image(const char *path, const struct wishes *wishes)
{
    struct check check = {.as_json = wishes->as_json};

    if (!image_open(&check.image, path, false)) {
        return check.image.status;
    }
    check.slot = malloc(check.image.layout.slot_bytes);
    if (check.slot == NULL) {
        image_close(&check.image);
        return image_complain(path, "no memory");
    }
    if (check.as_json) {
        printf("{\n  \"faults\": [");
        check_all(&check);
        print_result_json(&check);
    } else {
        check_all(&check);
        print_result(&check);
    }
    free(check.slot);
    image_close(&check.image);
    if (check.faults != 0) {
        return image_complain(path, "%" PRIu64 " faults", check.faults);
    }
    return STATUS_OK;
}
