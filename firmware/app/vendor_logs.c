/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/vendor_logs.h"

#include "firmware/app/drive.h"
#include "firmware/vendor/neighbour_log.h"
#include "nvmeof/wire/opcode.h"

static void build_neighbours(void *ctx, uint32_t part, uint8_t *page)
{
    const struct drive *drive = ctx;

    neighbour_log_build(&drive->services.lldp, drive->now_us, part, page);
}

/* LID, length, length of a part, and the function that builds a part. */
static const struct nvmf_vendor_log logs[] = {
    {LOG_NEIGHBOURS, NEIGHBOUR_LOG_LEN, NEIGHBOUR_LOG_PART, build_neighbours},
};

void vendor_logs_fill(struct nvmf_config *target, struct drive *drive)
{
    target->vendor_logs = logs;
    target->vendor_log_count = ARRAY_LEN(logs);
    target->vendor_log_ctx = drive;
}
