/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chooses the seeded defect of a unit test or a native test: the environment
 * has its number in ESSD_MUTANT.
 */
#include "mutants/mutant.h"

#include <stdlib.h>

unsigned int mutant_defect;
unsigned char mutant_reached[MUTANT_NUMBERS];

__attribute__((constructor)) static void choose_defect(void)
{
    const char *number = getenv("ESSD_MUTANT");

    if (number != NULL) {
        mutant_defect = (unsigned int)strtoul(number, NULL, 10);
    }
}
