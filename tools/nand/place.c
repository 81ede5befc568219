/* SPDX-License-Identifier: BSD-2-Clause */
#include "place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "7" or "7-9".  @return the first character after it, or NULL */
static const char *parse_range(const char *text, struct place_range *range)
{
    unsigned long first, last;
    char *end;

    errno = 0;
    first = last = strtoul(text, &end, 10);
    if (end != text && *end == '-') {
        text = end + 1;
        last = strtoul(text, &end, 10);
    }
    if (end == text || *text < '0' || *text > '9' || errno != 0 ||
        last < first || last > UINT32_MAX) {
        return NULL;
    }
    range->first = (uint32_t)first;
    range->last = (uint32_t)last;
    return end;
}

bool place_parse(struct place *place, const struct image *image,
                 const char *text)
{
    const struct nand_geometry *geometry = &image->file.geometry;
    const struct {
        const char *name;
        struct place_range *range;
        uint32_t count;
    } keys[] = {
        {"channel=", &place->channel, geometry->channels},
        {"die=", &place->die, geometry->dies},
        {"plane=", &place->plane, geometry->planes},
        {"block=", &place->block, geometry->blocks},
    };
    const char *next = text;

    for (unsigned int i = 0; i < ARRAY_LEN(keys); i++) {
        *keys[i].range = (struct place_range){.last = keys[i].count - 1};
    }
    while (next != NULL && *next != '\0') {
        const char *word = next;

        next = NULL;
        for (unsigned int i = 0; i < ARRAY_LEN(keys); i++) {
            size_t len = strlen(keys[i].name);

            if (strncmp(word, keys[i].name, len) != 0) {
                continue;
            }
            next = parse_range(word + len, keys[i].range);
            if (next != NULL && keys[i].range->last >= keys[i].count) {
                image_complain(
                    image->path, "there is no %s%u; use numbers from 0 to %u",
                    keys[i].name, keys[i].range->last, keys[i].count - 1);
                return false;
            }
        }
        if (next != NULL && *next == ',' && next[1] != '\0') {
            next++;
        } else if (next != NULL && *next != '\0') {
            next = NULL;
        }
    }
    if (next == NULL) {
        image_complain(NULL,
                       "%s is no place; write it like "
                       "channel=0,die=1,plane=0-3,block=17",
                       text);
        return false;
    }
    return true;
}

static bool range_has(const struct place_range *range, uint32_t number)
{
    return number >= range->first && number <= range->last;
}

bool place_has(const struct place *place, const struct image *image,
               uint32_t block)
{
    const struct nand_geometry *geometry = &image->file.geometry;
    uint32_t plane = block / geometry->blocks;
    uint32_t die = plane / geometry->planes;

    return range_has(&place->block, block % geometry->blocks) &&
           range_has(&place->plane, plane % geometry->planes) &&
           range_has(&place->die, die % geometry->dies) &&
           range_has(&place->channel, die / geometry->dies);
}
