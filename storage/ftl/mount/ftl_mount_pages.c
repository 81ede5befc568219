/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages: a mount reads the latest trim pages, health pages and wear pages, one
 * after another, and applies them.
 */
#include "storage/ftl/background/background.h"
#include "storage/ftl/mount/mount.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/space/ftl_findings.h"

/* Whether a page is the one that the mount reads. */
static bool is_page_good(const struct ftl_mounting *mounting,
                         const struct ftl_request *request)
{
    struct ftl_system system;

    return request->units[0].status == FTL_UNIT_GOOD &&
           ftl_system_parse(&system, request->system[0]) &&
           system.kind == FTL_KIND_TRIM &&
           system.number == mounting->next_page - 1;
}

/* Whether an entry names a page with trims in a row that cannot be torn, so
 * that the page was durable.  If a die has died in this pass, the next one
 * decides.
 */
static bool was_durable(const struct ftl_mount_floor *ftl, uint32_t number)
{
    uint32_t row = ftl_place_row(&ftl->layout, ftl->map[number]);

    return number < ftl->config.logical_units + ftl->trim_pages &&
           ftl->mount.row_numbers[row] != 0 &&
           ftl->mount.row_numbers[row] <=
               ftl_mount_settle_row(&ftl->space_floor) &&
           ftl->dies.num_dead == ftl->mount.num_dead;
}

/*
 * Deal with a page that cannot be read.  If the scan has found it in a row that
 * may be torn, an older version counts instead.  If the row cannot be torn, an
 * older version would bring trimmed contents back, so what the page says is
 * lost.  If the checkpoint names it, the checkpoint also has its contents,
 * except for erase counts.  In these two cases the page is written again when
 * the mount has ended.
 */
static void lose_page(struct ftl_mount_floor *ftl, uint32_t number)
{
    if (ftl->mount.checkpoint_row != 0 &&
        ftl->mount.versions[number] == ftl_checkpoint_key(&ftl->mount)) {
        ftl->map[number] = FTL_NOWHERE;
        ftl->mount.has_lost_pages = true;
    } else if (was_durable(ftl, number)) {
        ftl_trim_lose_page(&ftl->pages_floor,
                           number - ftl->config.logical_units,
                           ftl->mount.versions[number] >> FTL_VERSION_SHIFT);
        ftl->map[number] = FTL_NOWHERE;
        ftl->mount.has_lost_pages = true;
        ftl->mount.has_unrebuilt = true;
    } else {
        ftl_mount_ignore(&ftl->space_floor, ftl->map[number]);
    }
}

bool ftl_mount_page_done(struct ftl_mount_floor *ftl,
                         struct ftl_request *request,
                         enum ftl_flash_status status)
{

    ftl->mounting.requests--;
    if (status != FTL_FLASH_OK) {
        ftl->state = FTL_FAILED;
        return false;
    }
    if (!is_page_good(&ftl->mounting, request)) {
        lose_page(ftl, ftl->config.logical_units + ftl->mounting.next_page - 1);
        return false;
    }
    ftl_capacity_take_page(&ftl->background_floor,
                           ftl->mounting.page + FTL_UNIT_DATA);
    ftl_scrub_take_page(&ftl->scrub, ftl->mounting.page + FTL_UNIT_DATA);
    ftl_page_apply(&ftl->pages_floor, ftl->mounting.next_page - 1,
                   ftl->mounting.page, ftl->mounting.page + FTL_UNIT_DATA);
    return false;
}

bool ftl_mount_pages_step(struct ftl_mount_floor *ftl, bool *is_done)
{

    *is_done = false;
    if (ftl->mounting.requests != 0) {
        return false;
    }
    while (ftl->mounting.next_page < ftl->entries - ftl->config.logical_units) {
        uint32_t place =
            ftl->map[ftl->config.logical_units + ftl->mounting.next_page++];

        if (place != FTL_NOWHERE) {
            struct ftl_request *request =
                ftl_request_take(&ftl->ops, FTL_REQUEST_PAGE);

            ASSERT(request != NULL);
            ftl_request_add(&ftl->layout, request, place,
                            &(struct ftl_flash_unit){
                                .data = ftl->mounting.page,
                                .meta = ftl->mounting.page + FTL_UNIT_DATA,
                                .system = request->system[0],
                                .length = FTL_UNIT_DATA,
                            });
            ftl->mounting.requests++;
            ftl_request_send(&ftl->ops, request);
            return true;
        }
    }
    *is_done = true;
    return true;
}
