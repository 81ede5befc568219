/* SPDX-License-Identifier: BSD-2-Clause */
/* Included by force into every source file with a seeded defect. */
#ifndef ESSD_CONFORM_MUTANT_H
#define ESSD_CONFORM_MUTANT_H

enum {
    MUTANT_NUMBERS = 10000, /* The numbers of defects are smaller. */
};

/* The defect that is active in this process; 0: none. */
extern unsigned int mutant_defect;

/* The defects whose places the current test has reached. */
extern unsigned char mutant_reached[MUTANT_NUMBERS];

/* Note that the test has come by the place of a defect. */
static inline unsigned int mutant_reach(unsigned int number)
{
    mutant_reached[number] = 1;
    return number;
}

/* A comparison, because the compiler knows that its value is 0 or 1. */
#define MUTANT(number) (mutant_defect == mutant_reach(number))

#endif
