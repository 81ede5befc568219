/* SPDX-License-Identifier: BSD-2-Clause */
/* Driver of the link aggregation block: see lag.h. */
#include "firmware/drivers/lag.h"

#include "firmware/hal/mmio.h"

static uint32_t reg_read(const struct lag *lag, uint32_t offset)
{
    return mmio_read32(lag->regs + offset);
}

static void reg_write(const struct lag *lag, uint32_t offset, uint32_t value)
{
    mmio_write32(lag->regs + offset, value);
}

enum init_result lag_init(struct lag *lag, uintptr_t regs, enum lag_mode mode,
                          bool follows)
{
    uint32_t ctrl = FIELD_SET(0, LAG_CTRL, MODE, mode);

    *lag = (struct lag){.regs = regs};
    if (reg_read(lag, A_LAG_ID) != LAG_ID_VALUE) {
        return INIT_NO_DEVICE;
    }
    reg_write(lag, A_LAG_CTRL, FIELD_SET(0, LAG_CTRL, RESET, 1));
    reg_write(lag, A_LAG_CTRL, FIELD_SET(ctrl, LAG_CTRL, FOLLOW, follows));
    return INIT_OK;
}

void lag_set_members(const struct lag *lag, uint8_t collect, uint8_t distribute)
{
    uint32_t members = FIELD_SET(0, LAG_MEMBERS, COLLECT, collect);

    reg_write(lag, A_LAG_MEMBERS,
              FIELD_SET(members, LAG_MEMBERS, DISTRIBUTE, distribute));
}

void lag_set_active(const struct lag *lag, uint8_t port)
{
    reg_write(lag, A_LAG_ACTIVE, FIELD_SET(0, LAG_ACTIVE, PORT, port));
}

uint8_t lag_active(const struct lag *lag)
{
    return (uint8_t)FIELD_GET(reg_read(lag, A_LAG_ACTIVE), LAG_ACTIVE, PORT);
}

void lag_heard(const struct lag *lag, uint8_t port)
{
    reg_write(lag, A_LAG_HEARD, FIELD_SET(0, LAG_HEARD, PORT, port));
}

void lag_status_get(const struct lag *lag, struct lag_status *status)
{
    uint32_t value = reg_read(lag, A_LAG_STATUS);

    *status = (struct lag_status){
        .links = (uint8_t)FIELD_GET(value, LAG_STATUS, LINKS),
        .usable = (uint8_t)FIELD_GET(value, LAG_STATUS, USABLE),
    };
}

uint64_t lag_counter_read(const struct lag *lag, enum lag_counter counter)
{
    uint32_t offset = LAG_COUNTER_BASE + 8 * (uint32_t)counter;
    uint32_t low = reg_read(lag, offset);

    return (uint64_t)reg_read(lag, offset + 4) << 32 | low;
}
