/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/medium/nand_stage.h"

/* What nand_medium_poll() would report. */
static bool has_news(const struct nand_medium *medium)
{
    return ftl_is_storage_failing(medium->ftl) != medium->is_storage_failing ||
           ftl_is_adopting(medium->ftl) ||
           ftl_state(medium->ftl) != medium->state ||
           ftl_dead_dies(medium->ftl) != medium->dead_dies ||
           (ftl_is_read_only(medium->ftl) && !medium->is_read_only) ||
           medium->is_failing;
}

bool nand_stage_has_work(const struct nand_medium *medium)
{
    return medium->has_submitted || cmd_queue_next(&medium->nand.queue) != NULL;
}

void nand_stage_run(struct nand_medium *medium, unsigned int budget,
                    uint64_t now_us, uint64_t *deadline_us, bool *is_other)
{
    nand_seam_poll_good(&medium->seam, budget, is_other);
    medium->has_submitted = false;
    if (ftl_step(medium->ftl, now_us, deadline_us)) {
        *deadline_us = now_us; /* there may be more */
    }
    *is_other |= has_news(medium);
}
