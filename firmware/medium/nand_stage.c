/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/medium/nand_stage.h"

/* @return whether there is a completion, and it is a success */
static bool next_is_good(const struct nand_medium *medium, bool *any)
{
    const uint8_t *entry = cmd_queue_next(&medium->nand.queue);

    *any = entry != NULL;
    return entry != NULL && nand_parse_completion(entry).status == NAND_CQE_OK;
}

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

enum nand_stage_next nand_stage_next(const struct nand_medium *medium)
{
    bool any;

    if (next_is_good(medium, &any)) {
        return NAND_STAGE_WORK;
    }
    if (any || has_news(medium)) {
        return NAND_STAGE_OTHER;
    }
    return medium->has_submitted ? NAND_STAGE_WORK : NAND_STAGE_NOTHING;
}

void nand_stage_run(struct nand_medium *medium, unsigned int budget,
                    uint64_t now_us, uint64_t *deadline_us)
{
    bool any;

    for (; budget != 0 && next_is_good(medium, &any); budget--) {
        (void)nand_seam_poll(&medium->seam, 1);
    }
    medium->has_submitted = false;
    if (ftl_step(medium->ftl, now_us, deadline_us)) {
        *deadline_us = now_us; /* there may be more */
    }
}
