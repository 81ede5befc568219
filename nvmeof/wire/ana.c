/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/wire/ana.h"

#include <string.h>

#include "lib/bytes.h"

void ana_log_header_emit(uint8_t *buf, uint64_t changes, uint16_t groups)
{
    memset(buf, 0, ANA_LOG_HEADER_LEN);
    put_le64(buf + ANA_LOG_CHANGES, changes);
    put_le16(buf + ANA_LOG_GROUPS, groups);
}

void ana_group_emit(uint8_t *buf, const struct ana_group *group)
{
    memset(buf, 0, ANA_GROUP_LEN);
    put_le32(buf + ANA_GROUP_ID, group->anagrpid);
    put_le32(buf + ANA_GROUP_NSIDS, group->nsids);
    put_le64(buf + ANA_GROUP_CHANGES, group->changes);
    buf[ANA_GROUP_STATE] = group->state;
}
