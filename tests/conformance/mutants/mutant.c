/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces dut_defect.c in the drive with seeded defects. */
#include "mutants/mutant.h"

#include "dut.h"

unsigned int mutant_defect;

void dut_set_defect(unsigned int defect)
{
    mutant_defect = defect;
}
