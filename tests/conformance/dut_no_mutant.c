/* SPDX-License-Identifier: BSD-2-Clause */
/* The program without seeded defects: see mutants/. */
#include <stdio.h>
#include <stdlib.h>

#include "dut.h"

struct dut dut_mutant_create(unsigned int defect, bool has_nand)
{
    (void)has_nand;
    fprintf(stderr,
            "essd_conform: there is no defect %u: this program was built "
            "without mutants\n",
            defect);
    exit(2);
}
