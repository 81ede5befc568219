/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine of the drive beside another stack. */
#ifndef ESSD_TESTS_TCP_COMPARE_H
#define ESSD_TESTS_TCP_COMPARE_H

#include "tests/tcp/stacks/behaviour.h"

/**
 * Have the same peers talk to both.  After each segment both must have
 * delivered the same; every byte must have been sent, and none that was sent is
 * missing in the end.
 *
 * @param takes  which last segments the other stack takes, from LAST_DIFFERS on
 * @return whether that holds; else the first difference is printed
 */
bool stacks_agree(const struct stack *other, const bool takes[LASTS],
                  uint32_t first_seed, uint32_t seeds);

#endif
