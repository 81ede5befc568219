/* SPDX-License-Identifier: BSD-2-Clause */
/* Management requests about iWARP: see mgmt_requests.h. */
#include "firmware/requests/mgmt_requests.h"

#include "firmware/drivers/rnic.h"
#include "firmware/net/drive_net.h"
#include "firmware/requests/parts.h"
#include "hw-model/regs/rnic.h"
#include "lib/regfields.h"
#include "net/mpa_cm/mpa_cm.h"

static const char *const engine_counter_name[] = {
    [RNIC_IW_COUNT_RX_FPDUS] = "fpdus-in",
    [RNIC_IW_COUNT_TX_FPDUS] = "fpdus-out",
    [RNIC_IW_COUNT_RX_BAD_CRC] = "bad-crc",
    [RNIC_IW_COUNT_RX_BAD_LENGTH] = "bad-length",
    [RNIC_IW_COUNT_RX_REFUSED] = "refused-segments",
    [RNIC_IW_COUNT_RX_NO_BUFFER] = "no-buffer",
    [RNIC_IW_COUNT_RX_TERMINATES] = "terminates-in",
    [RNIC_IW_COUNT_TX_TERMINATES] = "terminates-out",
    [RNIC_IW_COUNT_STREAMS_LOST] = "streams-lost",
    [RNIC_IW_COUNT_CQ_OVERFLOWS] = "cq-overflows",
    [RNIC_IW_COUNT_PARITY_ERRORS] = "parity-errors",
};
_Static_assert(ARRAY_LEN(engine_counter_name) == RNIC_IW_COUNTERS,
               "every counter of the engine has a name");

static const char *const manager_counter_name[] = {
    [MPA_CM_REQUESTS] = "requests",  [MPA_CM_ACCEPTED] = "accepted",
    [MPA_CM_REJECTED] = "rejected",  [MPA_CM_NOT_MPA] = "not-mpa",
    [MPA_CM_LATE] = "late-requests", [MPA_CM_DISPLACED] = "displaced",
};
_Static_assert(ARRAY_LEN(manager_counter_name) == MPA_CM_COUNTERS,
               "every counter of the connection manager has a name");

void mgmt_put_iwarp_counters(struct json *out,
                             const struct request_parts *parts)
{
    if (parts->mpa_cm == NULL) {
        return;
    }
    json_begin_object(out, "iwarp");
    for (unsigned int i = 0; i < RNIC_IW_COUNTERS; i++) {
        json_number(out, engine_counter_name[i],
                    rnic_iw_counter_read(&parts->net->verbs, i));
    }
    for (unsigned int i = 0; i < MPA_CM_COUNTERS; i++) {
        json_number(out, manager_counter_name[i],
                    mpa_cm_counter(parts->mpa_cm, (enum mpa_cm_counter)i));
    }
    json_end_object(out);
}
