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

enum { FAULTS_SHOWN = 20 };

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

static bool is_zero(const uint8_t *buf, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (buf[i] != 0) {
            return false;
        }
    }
    return true;
}

static void check_states(struct check *check)
{
    for (unsigned int i = 0; i < 2; i++) {
        uint8_t buf[NAND_STATE_LEN];
        struct nand_state state;

        if (!image_read(&check->image, nand_layout_state(i), buf,
                        sizeof(buf)) ||
            (!is_zero(buf, sizeof(buf)) && !nand_state_parse(&state, buf))) {
            report_fault(check, "copy %u of the state is damaged", i);
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

static void check_slots(struct check *check, uint32_t block,
                        const struct nand_record *record)
{
    const struct image *image = &check->image;
    unsigned int units =
        image_pages(image, record) * image->file.geometry.units;
    uint32_t wordlines = image->file.geometry.wordlines, next = 0;
    bool is_torn = false;

    for (uint32_t i = 0; i < wordlines; i++) {
        if (!image_wordline(image, block, record, i, false)) {
            continue;
        }
        if (next != i || is_torn) {
            report_fault(
                check, "%s, wordline %u: programmed, but wordline %u is %s",
                image_block_name(image, block).text, i,
                is_torn ? next - 1 : next, is_torn ? "half programmed" : "not");
            return;
        }
        next = i + 1;
        is_torn = !image_wordline(image, block, record, i, true);
        if (is_torn) {
            check->torn++;
        } else if (!image_read(image,
                               nand_layout_slot(&image->layout, block, i),
                               check->slot, image->layout.slot_bytes)) {
            report_fault(check, "%s, wordline %u: cannot be read",
                         image_block_name(image, block).text, i);
        } else {
            check->wordlines++;
            check_units(check, block, i, record, units);
        }
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
