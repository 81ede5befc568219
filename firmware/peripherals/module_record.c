/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/peripherals/module_record.h"

#include <string.h>

#include "lib/bytes.h"

void module_record_emit(const struct module_event *event,
                        uint8_t data[MODULE_RECORD_LEN])
{
    memset(data, 0, MODULE_RECORD_LEN);
    data[MODULE_RECORD_PORT] = (uint8_t)event->port;
    data[MODULE_RECORD_QUANTITY] =
        event->has_limit ? (uint8_t)event->quantity : MODULE_RECORD_NONE;
    data[MODULE_RECORD_LIMIT] =
        event->has_limit ? (uint8_t)event->limit : MODULE_RECORD_NONE;
    put_le32(data + MODULE_RECORD_VALUE, (uint32_t)event->value);
    put_le32(data + MODULE_RECORD_LIMIT_VALUE, (uint32_t)event->limit_value);
}
