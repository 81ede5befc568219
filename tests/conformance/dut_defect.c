/* SPDX-License-Identifier: BSD-2-Clause */
/* The drive without defects, which has none to choose from: see mutants/. */
#include "dut.h"

void dut_set_defect(unsigned int defect)
{
    ASSERT(defect == 0);
}

void dut_end_defects(void)
{
}
