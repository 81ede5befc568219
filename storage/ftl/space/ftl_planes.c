/* SPDX-License-Identifier: BSD-2-Clause */
/* Which planes take data. */
#include "storage/ftl/space/space.h"

uint8_t ftl_good_planes(const struct ftl_space_floor *ftl, uint32_t superblock,
                        uint32_t die)
{
    uint8_t bad = ftl->bad_planes[superblock * ftl->layout.geometry.dies + die];

    if (ftl->dies.is_dead[die]) {
        return 0;
    }
    return (uint8_t)((BIT(ftl->layout.geometry.planes) - 1) & ~bad);
}
