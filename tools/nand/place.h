/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses some blocks of an array by a text, for example
 * "channel=0,die=1,plane=0-3,block=17".  The keys are those of fault rules
 * (`essd faults words nand`).  If a key is left out, any number of this
 * kind matches. */
#ifndef ESSD_TOOLS_NAND_PLACE_H
#define ESSD_TOOLS_NAND_PLACE_H

#include "image.h"

struct place_range {
    uint32_t first, last; /* both included */
};

struct place {
    struct place_range channel, die, plane, block;
};

/**
 * Parse the text of a place.  An empty text stands for all blocks.
 * @return false if it is wrong, or the array has no such block; a line has been
 * printed
 */
MUST_USE bool place_parse(struct place *place, const struct image *image,
                          const char *text);

/** Whether the block with this index of a record is one of them. */
bool place_has(const struct place *place, const struct image *image,
               uint32_t block);

#endif
