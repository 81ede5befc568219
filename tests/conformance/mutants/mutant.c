/* SPDX-License-Identifier: BSD-2-Clause */
/* The mutated drive's own variant of dut_defect.c. */
#include "mutants/mutant.h"

#include "dut.h"

unsigned int mutant_defect;

void dut_set_defect(unsigned int defect)
{
    mutant_defect = defect;
}
