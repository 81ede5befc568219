/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces dut_defect.c in the drive with seeded defects. */
#include "mutants/mutant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dut.h"

unsigned int mutant_defect;
unsigned char mutant_reached[MUTANT_NUMBERS];

void dut_set_defect(unsigned int defect)
{
    mutant_defect = defect;
}

/* The file that ESSD_MUTANT_REACHED names gets a line for each test. */
void dut_end_defects(void)
{
    const char *name = getenv("ESSD_MUTANT_REACHED");
    FILE *file;

    if (name == NULL) {
        return;
    }
    file = fopen(name, "a");
    ASSERT(file != NULL);
    for (unsigned int i = 0; i < MUTANT_NUMBERS; i++) {
        if (mutant_reached[i] != 0) {
            fprintf(file, "%u ", i);
        }
    }
    fputc('\n', file);
    ASSERT(fclose(file) == 0);
    memset(mutant_reached, 0, sizeof(mutant_reached));
}
