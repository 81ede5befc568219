/* SPDX-License-Identifier: BSD-2-Clause */
/* See fit.h. */
#include "fit.h"

#include <inttypes.h>
#include <stdio.h>

struct size_text size_text(uint64_t bytes)
{
    static const char units[] = "TGMK";
    struct size_text size;

    for (unsigned int i = 0; i < 4; i++) {
        unsigned int shift = 10 * (4 - i);

        if (bytes >> shift != 0 && bytes % (UINT64_C(1) << shift) == 0) {
            snprintf(size.text, sizeof(size.text), "%" PRIu64 "%c",
                     bytes >> shift, units[i]);
            return size;
        }
    }
    snprintf(size.text, sizeof(size.text), "%" PRIu64, bytes);
    return size;
}

const struct nand_profile *fit_profile(const char *path,
                                       const struct wishes *wishes)
{
    const struct nand_profile *profile = nand_profile_find(wishes->profile);

    if (profile == NULL) {
        image_complain(path, "there is no profile %s; see essd-nand profiles",
                       wishes->profile);
    }
    return profile;
}

bool fit_geometry(const char *path, const struct wishes *wishes,
                  const struct nand_profile *profile, uint64_t array_bytes,
                  struct nand_geometry *geometry)
{
    enum nand_fit fit;
    uint64_t nearest;

    if (nand_geometry_for(profile, array_bytes, wishes->channels, wishes->dies,
                          geometry, &fit, &nearest)) {
        return true;
    }
    switch (fit) {
    case NAND_FIT_BAD_CHANNELS:
        image_complain(path, "%u channels do not fit; choose 1 to 16",
                       wishes->channels);
        break;
    case NAND_FIT_BAD_DIES:
        image_complain(path, "%u dies of a channel do not fit; choose 1 to 16",
                       wishes->dies);
        break;
    default:
        image_complain(path,
                       "an array of %s is too %s for %u channels with %u dies "
                       "of the profile %s; the nearest is %s",
                       size_text(array_bytes).text,
                       fit == NAND_FIT_TOO_SMALL ? "small" : "large",
                       wishes->channels, wishes->dies, profile->name,
                       size_text(nearest).text);
        break;
    }
    return false;
}
