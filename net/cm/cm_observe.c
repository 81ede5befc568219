/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace events for messages of the connection manager: see lib/trace.h. */
#include "net/cm/cm_internal.h"

#include "lib/bytes.h"

/* All messages begin with the sender's communication id.  In all but the REQ
 * the receiver's follows. */
enum { SENDERS_ID = 0, RECEIVERS_ID = 4 };

void cm_observe(struct cm *cm, enum trace_type type, const uint8_t *mad,
                const uint8_t *peer)
{
    const uint8_t *message = mad + MAD_HEADER_LEN;
    uint16_t attribute = get_be16(mad + MAD_ATTRIBUTE_ID);
    uint32_t senders_id = get_be32(message + SENDERS_ID);
    uint32_t receivers_id =
        attribute == CM_REQ ? 0 : get_be32(message + RECEIVERS_ID);
    uint32_t local = type == TRACE_CM_SENT ? senders_id : receivers_id;
    const struct cm_conn *conn = cm_by_local_id(cm, local);
    struct trace_record record = {
        .type = (uint16_t)type,
        .qpn = conn != NULL ? conn->local_qpn : 0,
        .request = TRACE_NO_REQUEST,
        .arg = {attribute, 0, local,
                type == TRACE_CM_SENT ? receivers_id : senders_id},
    };

    if (attribute == CM_REJ) {
        record.arg[1] = get_be16(message + CM_REJ_REASON);
    }
    if (peer == NULL && conn != NULL) {
        peer = conn->peer_ip.bytes;
    }
    if (peer != NULL) {
        trace_put_ip(&record.arg[4], peer);
    }
    cm->config.trace->emit(cm->config.trace->ctx, &record, NULL);
}
