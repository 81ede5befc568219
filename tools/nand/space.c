/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * essd-nand size and essd-nand space: how large an array has to be so that a
 * drive with it has a certain capacity, and the other way round.  Code of the
 * firmware computes the capacity and the memory of each array.
 */
#include "space.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "firmware/medium/nand_sizes.h"
#include "firmware/native/nand_space.h"
#include "fit.h"

#define MIB (UINT64_C(1) << 20)
/* The largest array that a drive gets. */
#define SPACE_LARGEST (96 * 1024 * MIB)
/* Of the drive's DRAM, what the firmware leaves for the translation layer. */
#define SPACE_DRAM (352 * MIB)

/* The arrays that the command line describes, apart from their size. */
struct kind {
    const struct nand_profile *profile;
    const struct wishes *wishes;
    uint64_t smallest; /* bytes in all blocks of the smallest array */
    /* The least step from one size to the next one: one wordline more in each
     * block, with as few blocks in a plane as possible. */
    uint64_t step;
};

struct space {
    uint64_t bytes;      /* that hosts can store; 0: no such array */
    uint64_t dram_bytes; /* that the translation layer needs */
    bool is_mapped; /* the checkpoint of the map fits into one superblock */
    bool is_saved;  /* the write buffer can be saved, if it is to be */
};

static struct space compute_space(const struct nand_geometry *geometry,
                                  const struct nand_profile *profile,
                                  uint64_t seed, unsigned int spare_percent,
                                  const struct nand_sizes *wanted)
{
    struct nand_sizes sizes = *wanted;
    uint32_t dies = nand_geometry_dies(geometry);
    uint8_t *bad = calloc(geometry->blocks, dies);
    struct ftl_config config = {
        .geometry =
            {
                .dies = (uint16_t)dies,
                .planes = geometry->planes,
                .blocks = geometry->blocks,
                .wordlines = geometry->wordlines,
                .pages = geometry->pages,
                .units = geometry->units,
            },
        .bad_planes = bad,
    };
    struct space space = {0};

    if (bad == NULL) {
        return space;
    }
    space.is_saved =
        !sizes.has_capacitors || nand_sizes_saved(&config, &sizes) != 0;
    nand_sizes_begin(&config, &sizes);
    nand_space_mark(bad, geometry, profile, seed);
    if (sizes.capacity_bytes == 0) {
        sizes.capacity_bytes =
            (uint64_t)ftl_space(&config, spare_percent) * FTL_UNIT_DATA;
    }
    if (nand_sizes_choose(&config, &sizes)) {
        space.is_mapped = ftl_checkpoint_fits(&config);
        space.bytes =
            (uint64_t)ftl_space(&config, spare_percent) * FTL_UNIT_DATA;
        space.dram_bytes = ftl_bytes(&config) + ftl_keep_bytes(&config);
    }
    free(bad);
    return space;
}

uint64_t space_bytes(const struct nand_geometry *geometry,
                     const struct nand_profile *profile, uint64_t seed,
                     unsigned int spare_percent)
{
    return nand_space_bytes(geometry, profile, seed, spare_percent);
}

/* The space of an array that holds `array_bytes`, if hosts see `visible_bytes`
 * of it; 0: all. */
static struct space space_of(const struct kind *kind, uint64_t array_bytes,
                             uint64_t visible_bytes)
{
    const struct wishes *wishes = kind->wishes;
    const struct nand_sizes sizes = {
        .capacity_bytes = visible_bytes,
        .has_capacitors = wishes->has_capacitors,
        .hard_bits = kind->profile->bits[0],
    };
    struct nand_geometry geometry;
    enum nand_fit fit;
    uint64_t nearest;

    return nand_geometry_for(kind->profile, array_bytes, wishes->channels,
                             wishes->dies, &geometry, &fit, &nearest)
               ? compute_space(&geometry, kind->profile, wishes->seed,
                               wishes->spare_percent, &sizes)
               : (struct space){0};
}

/* Find what array the command line describes, apart from its size.
 * @return false when there is none; this function has printed why */
static bool find_kind(struct kind *kind, const struct wishes *wishes)
{
    struct nand_geometry geometry;
    enum nand_fit fit;

    *kind = (struct kind){fit_profile(NULL, wishes), wishes, 0, 0};
    if (kind->profile == NULL) {
        return false;
    }
    if (nand_geometry_for(kind->profile, 0, wishes->channels, wishes->dies,
                          &geometry, &fit, &kind->smallest) ||
        !fit_geometry(NULL, wishes, kind->profile, kind->smallest, &geometry)) {
        return false;
    }
    kind->step = kind->smallest / geometry.wordlines / geometry.blocks *
                 NAND_SUPERBLOCKS;
    return true;
}

static bool has_room(const struct space *space)
{
    return space->bytes != 0 && space->is_mapped &&
           space->dram_bytes <= SPACE_DRAM;
}

/* @return the size of the smallest array for a drive with this capacity; 0: no
 * drive can have it */
static uint64_t find_array(const struct kind *kind, uint64_t capacity_bytes)
{
    uint64_t size =
        MAX(kind->smallest, capacity_bytes / kind->step * kind->step);
    struct space space;

    for (;;) {
        size = MIN(size, SPACE_LARGEST);
        space = space_of(kind, size, capacity_bytes);
        if (space.bytes >= capacity_bytes && space.is_saved) {
            return has_room(&space) ? size : 0;
        }
        if (size == SPACE_LARGEST) {
            return 0;
        }
        /* The space grows by less than the array does. */
        size += MAX(kind->step,
                    (capacity_bytes - MIN(space.bytes, capacity_bytes)) /
                        kind->step * kind->step);
    }
}

static bool is_possible_capacity(const struct kind *kind, uint64_t bytes)
{
    return find_array(kind, bytes) != 0;
}

static bool is_possible_array(const struct kind *kind, uint64_t bytes)
{
    struct space space;

    if (bytes > SPACE_LARGEST) {
        return false;
    }
    space = space_of(kind, bytes, kind->wishes->visible_bytes);
    return has_room(&space);
}

/* Say that a number of bytes is too large, and which one is the nearest that is
 * possible.  @return STATUS_TOO_LARGE */
static int refuse_large(const char *path, const struct kind *kind,
                        const char *what, uint64_t least_bytes,
                        bool (*is_possible)(const struct kind *, uint64_t))
{
    const struct wishes *wishes = kind->wishes;
    uint64_t low = (least_bytes + MIB - 1) / MIB;
    uint64_t high = MIN(wishes->capacity_bytes, SPACE_LARGEST) / MIB + 1;

    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;

        if (is_possible(kind, middle * MIB)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    image_complain(path,
                   "%s of %s is too large for %u channels with %u dies of the "
                   "profile %s; the nearest is %s",
                   what, size_text(wishes->capacity_bytes).text,
                   wishes->channels, wishes->dies, kind->profile->name,
                   size_text(low * MIB).text);
    return STATUS_TOO_LARGE;
}

/* Say that the write buffer of an array could not be saved, and which size is
 * the nearest with which it can.  @return STATUS_FAILED */
static int refuse_unsaved(const struct kind *kind)
{
    const struct wishes *wishes = kind->wishes;
    uint64_t size = wishes->capacity_bytes;

    while (size < SPACE_LARGEST &&
           !space_of(kind, size, wishes->visible_bytes).is_saved) {
        size += kind->step;
    }
    return image_complain(NULL,
                          "an array of %s is too small for power-loss "
                          "protection with %u channels with %u dies of the "
                          "profile %s; the nearest is %s",
                          size_text(wishes->capacity_bytes).text,
                          wishes->channels, wishes->dies, kind->profile->name,
                          size_text(size).text);
}

bool space_is_mapped(const char *path, const struct wishes *wishes)
{
    struct kind kind;
    struct space space;

    if (!find_kind(&kind, wishes)) {
        return false;
    }
    space = space_of(&kind, wishes->capacity_bytes, wishes->visible_bytes);
    if (space.bytes == 0 || space.is_mapped) {
        return true;
    }
    (void)refuse_large(path, &kind, "an array", kind.smallest,
                       is_possible_array);
    return false;
}

/* ---- The commands. */

int print_size(const struct wishes *wishes)
{
    struct kind kind;
    uint64_t size;

    if (!find_kind(&kind, wishes)) {
        return STATUS_FAILED;
    }
    size = find_array(&kind, wishes->capacity_bytes);
    if (size == 0) {
        return refuse_large(NULL, &kind, "a capacity", 1, is_possible_capacity);
    }
    printf("%" PRIu64 "\n", size);
    return STATUS_OK;
}

int print_space(const struct wishes *wishes)
{
    uint64_t size = wishes->capacity_bytes;
    struct nand_geometry geometry;
    struct space space;
    struct kind kind;

    if (!find_kind(&kind, wishes) ||
        (size < kind.smallest &&
         !fit_geometry(NULL, wishes, kind.profile, size, &geometry))) {
        return STATUS_FAILED;
    }
    space = space_of(&kind, size, wishes->visible_bytes);
    if (space.bytes != 0 && !space.is_saved) {
        return refuse_unsaved(&kind);
    }
    if (!is_possible_array(&kind, size)) {
        return refuse_large(NULL, &kind, "an array", kind.smallest,
                            is_possible_array);
    }
    printf("%" PRIu64 "\n", space_of(&kind, size, wishes->visible_bytes).bytes);
    return STATUS_OK;
}
