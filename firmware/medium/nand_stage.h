/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work of a NAND medium that goes on beside other harts: everything but
 * what concerns more than the medium, for which nand_medium_poll() runs.
 */
#ifndef ESSD_MEDIUM_NAND_STAGE_H
#define ESSD_MEDIUM_NAND_STAGE_H

#include "firmware/medium/nand_medium.h"

/** Whether there are completions, or operations were submitted. */
bool nand_stage_has_work(const struct nand_medium *medium);

/**
 * Take at most `budget` completions, up to the first one that has failed, and
 * let the translation layer do what is due.
 *
 * @param deadline_us  lowered to when the translation layer has work again
 * @param is_other     set to true if there is something that only
 *                     nand_medium_poll() may do
 */
void nand_stage_run(struct nand_medium *medium, unsigned int budget,
                    uint64_t now_us, uint64_t *deadline_us, bool *is_other);

#endif
