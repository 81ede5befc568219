/* SPDX-License-Identifier: BSD-2-Clause */
/* The request for a map of the flash: docs/management.md. */
#include "firmware/requests/mgmt_requests.h"

#include "firmware/medium/nand_medium.h"
#include "firmware/requests/parts.h"

/* Most rows in one reply; its "next" is the "from" of the next request. */
enum { ROWS = 64 };

static void put_superblock(struct json *out, uint32_t number,
                           const struct ftl_superblock_look *look)
{
    json_begin_object(out, NULL);
    json_number(out, "superblock", number);
    json_string(out, "state", look->state);
    if (look->stream != NULL) {
        json_string(out, "stream", look->stream);
    }
    json_number(out, "valid", look->valid);
    json_number(out, "capacity", look->capacity);
    json_number(out, "erasures", look->erasures);
    json_number(out, "age-rows", look->age_rows);
    if (look->moves_for != NULL) {
        json_string(out, "moves-for", look->moves_for);
    }
    json_end_object(out);
}

static void put_dead_dies(struct json *out, const struct nand_medium *medium)
{
    json_begin_array(out, "dead-dies");
    for (uint32_t die = 0; die < medium->dies; die++) {
        if (ftl_die_is_dead(medium->ftl, die)) {
            json_number(out, NULL, die);
        }
    }
    json_end_array(out);
}

bool mgmt_superblocks(void *ctx, const struct json_args *args, struct json *out,
                      struct mgmt_refusal *refusal)
{
    const struct nand_medium *medium =
        ((const struct request_parts *)ctx)->nand;
    uint64_t at = json_get_number(args, "from", 0);
    uint64_t count, end;

    if (medium->ftl == NULL) {
        refusal->code = "no-flash";
        refusal->text = "The drive has no array of NAND flash.";
        return false;
    }
    count = ftl_superblocks(medium->ftl);
    end = MIN(MIN(at, count) + ROWS, count);
    json_bool(out, "mounted", ftl_state(medium->ftl) == FTL_READY);
    json_number(out, "channels", medium->dies / medium->seam.dies);
    json_number(out, "dies", medium->seam.dies);
    put_dead_dies(out, medium);
    json_begin_array(out, "superblocks");
    for (; at < end; at++) {
        struct ftl_superblock_look look;

        ftl_look(medium->ftl, (uint32_t)at, &look);
        put_superblock(out, (uint32_t)at, &look);
    }
    json_end_array(out);
    if (at < count) {
        json_number(out, "next", at);
    }
    return true;
}
