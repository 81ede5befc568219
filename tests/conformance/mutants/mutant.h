/* SPDX-License-Identifier: BSD-2-Clause */
/* Included by force into every source file with a seeded defect. */
#ifndef ESSD_CONFORM_MUTANT_H
#define ESSD_CONFORM_MUTANT_H

/* The defect that is active in this process; 0: none. */
extern unsigned int mutant_defect;

#define MUTANT(number) (mutant_defect == (number))

#endif
