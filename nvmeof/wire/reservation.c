/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/wire/reservation.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/util.h"

void reservation_status_emit(uint8_t *buf,
                             const struct reservation_status *status)
{
    memset(buf, 0, RSTATUS_HEADER_LEN);
    put_le32(buf + RSTATUS_GEN, status->generation);
    buf[RSTATUS_RTYPE] = status->rtype;
    put_le16(buf + RSTATUS_REGCTL, status->registered);
    buf[RSTATUS_PTPLS] = status->ptpl;
}

void registered_ctrl_emit(uint8_t *buf, const struct registered_ctrl *ctrl)
{
    memset(buf, 0, RCTRL_LEN);
    put_le16(buf + RCTRL_CNTLID, ctrl->cntlid);
    buf[RCTRL_RCSTS] = ctrl->is_holder;
    put_le64(buf + RCTRL_RKEY, ctrl->key);
    memcpy(buf + RCTRL_HOSTID, ctrl->hostid, 16);
}

void reservation_notice_emit(uint8_t *buf,
                             const struct reservation_notice *notice,
                             uint32_t available)
{
    memset(buf, 0, LOG_RESERVATION_LEN);
    if (notice == NULL) {
        return;
    }
    put_le64(buf + NOTICE_COUNT, notice->count);
    buf[NOTICE_TYPE] = notice->type;
    buf[NOTICE_AVAILABLE] = (uint8_t)MIN(available, 255);
    put_le32(buf + NOTICE_NSID, notice->nsid);
}
