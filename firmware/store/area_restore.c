/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/area_restore.h"

static const char *const repairs[] = {
    [AREA_REPAIR_FINISHED] =
        "a copy of the record in flash was missing, and was written",
    [AREA_REPAIR_DAMAGE] = "a copy of the record in flash was damaged, and was "
                           "written again; the record is complete",
    [AREA_REPAIR_FAILED] =
        "writing a copy of the record in flash again failed; the record in "
        "force is complete",
};

bool area_restore(const struct flash *flash, struct log *log,
                  const struct area *area, const char *what, uint32_t *sequence,
                  const struct area_found *found)
{
    enum area_repair repair;

    if (found->state != AREA_OK) {
        return area_is_lost(found->state);
    }
    repair = area_repair(flash, area, sequence, found->record, found->len);
    if (repair != AREA_REPAIR_NONE) {
        log_line(log, "%s: %s", what, repairs[repair]);
    }
    return false;
}
