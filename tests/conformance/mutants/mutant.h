/* SPDX-License-Identifier: BSD-2-Clause */
/* Forced into every source that has a defect planted. */
#ifndef ESSD_CONFORM_MUTANT_H
#define ESSD_CONFORM_MUTANT_H

/* The one that is on in the mutated drive of this process; 0: none. */
extern unsigned int mutant_defect;

#define MUTANT(number) (mutant_defect == (number))

#endif
