/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One bed for the whole program, made anew for each test: setup and teardown
 * for tests without special needs, and a way to type on the console.
 */
#ifndef ESSD_TEST_NATIVE_BED_FIXTURE_H
#define ESSD_TEST_NATIVE_BED_FIXTURE_H

#include <string.h>

#include "bed.h"

static struct bed bed;

static inline int setup(void **state)
{
    (void)state;
    bed_init(&bed, 1500);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    bed_end(&bed);
    return 0;
}

/* Type a line on the drive's console. @return the output that follows */
static inline const char *type_line(const char *line)
{
    size_t before = strlen(machine_console(&bed.drive->machine));

    machine_type(&bed.drive->machine, line);
    native_world_pass(&bed.world, 1000000);
    return machine_console(&bed.drive->machine) + before;
}

#endif
