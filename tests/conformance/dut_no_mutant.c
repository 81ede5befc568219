/* SPDX-License-Identifier: BSD-2-Clause */
/* The program without mutants: see mutants/. */
#include <stdio.h>
#include <stdlib.h>

#include "dut.h"

struct dut dut_mutant_create(unsigned int defect)
{
    fprintf(stderr, "essd_conform: no defect %u: this program has no mutants\n",
            defect);
    exit(2);
}
