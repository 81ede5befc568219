/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/report/connect_log.h"

#include "firmware/text/ip_text.h"
#include "nvmeof/auth/auth_wire.h"
#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/fabrics.h"

enum { LINES_AT_ONCE = 8 };
/* After this time, one more line may be logged. */
#define LINE_US UINT64_C(1000000)

static bool take_line(struct connect_log *connect_log)
{
    uint64_t earned = (connect_log->now_us - connect_log->earned_us) / LINE_US;

    connect_log->earned_us += earned * LINE_US;
    connect_log->used -= (uint32_t)MIN(earned, (uint64_t)connect_log->used);
    if (connect_log->used == LINES_AT_ONCE) {
        connect_log->left_out++;
        return false;
    }
    connect_log->used++;
    if (connect_log->left_out != 0) {
        log_line(connect_log->log,
                 "nvme-of: %u more connections were refused meanwhile",
                 connect_log->left_out);
        connect_log->left_out = 0;
    }
    return true;
}

/*
 * Say what is wrong with the parameter at offset `field` of the Connect data.
 */
static const char *invalid_field(uint32_t field)
{
    switch (field) {
    case CONNECT_QID:
        return "the queue ID is not allowed";
    case CONNECT_SQSIZE:
        return "the queue size is out of range";
    case CONNECT_DATA_SUBNQN | CONNECT_IATTR_DATA:
        return "there is no such subsystem";
    case CONNECT_DATA_HOSTNQN | CONNECT_IATTR_DATA:
        return "the host NQN is missing or differs";
    case CONNECT_DATA_HOSTID | CONNECT_IATTR_DATA:
        return "the host ID differs";
    case CONNECT_DATA_CNTLID | CONNECT_IATTR_DATA:
        return "there is no such controller here";
    default:
        return "a parameter is invalid";
    }
}

static const char *connect_reason(const struct nvmf_connect_end *end)
{
    switch (end->status) {
    case NVME_SC_CONNECT_INVALID:
        return invalid_field(end->field);
    case NVME_SC_CONNECT_BUSY:
        return "no controller is free";
    case NVME_SC_CONNECT_INVALID_HOST:
        return end->is_other_host
                   ? "the key of TLS is another host's or association's, or "
                     "not in force"
                   : "the host is not on the list of allowed hosts";
    case NVME_SC_CONNECT_FORMAT:
        return "the record format is unknown";
    case NVME_SC_COMMAND_SEQUENCE:
        return "the queue is connected already";
    default:
        return "the command is malformed";
    }
}

static void keep_printable(char *text)
{
    for (; *text != '\0'; text++) {
        if (*text < ' ' || *text > '~') {
            *text = '?';
        }
    }
}

static const char *transport_name(uint8_t trtype)
{
    switch (trtype) {
    case TRTYPE_RDMA:
        return "RDMA";
    case TRTYPE_TCP:
        return "TCP";
    default:
        return "local";
    }
}

void connect_log_end(void *ctx, const struct nvmf_connect_end *end)
{
    struct connect_log *connect_log = ctx;
    const struct trace *trace = connect_log->trace;
    struct ip_addr peer = ip_addr_from_bytes(end->host);
    char hostnqn[sizeof(end->hostnqn)];

    log_format(hostnqn, sizeof(hostnqn), "%s", end->hostnqn);
    keep_printable(hostnqn);
    if (trace_is_on(trace, TRACE_GROUP_CM)) {
        struct trace_record record = {
            .type = TRACE_CONNECT,
            .qpn = end->label,
            .request = end->request,
            .arg = {end->status, end->qid, end->cntlid, end->field},
        };

        trace_put_ip(&record.arg[4], peer.bytes);
        trace->emit(trace->ctx, &record, hostnqn);
    }
    if (end->status != NVME_SC_SUCCESS && take_line(connect_log)) {
        log_line(connect_log->log,
                 "nvme-of: %s: Connect to queue %u refused: %s (status %03x); "
                 "host %.*s",
                 ip_text(&peer).text, end->qid, connect_reason(end),
                 end->status, 120, hostnqn[0] != '\0' ? hostnqn : "unknown");
    }
}

static const char *auth_reason(const struct nvmf_auth_end *end)
{
    static const char *const reasons[AUTH_FAILURES] = {
        [AUTH_FAILED_PROOF] = "the secret of one side is wrong or missing",
        [AUTH_FAILED_PROTOCOL] = "the host does not offer DH-HMAC-CHAP",
        [AUTH_FAILED_CONCAT] =
            "the host asks for a secure channel that it cannot have",
        [AUTH_FAILED_HASH] = "the host offers only weak hash functions",
        [AUTH_FAILED_DH] = "the host offers only weak groups",
        [AUTH_FAILED_PAYLOAD] = "a message is malformed",
        [AUTH_FAILED_MESSAGE] = "a message came out of order",
    };

    switch ((enum nvmf_auth_result)end->result) {
    case NVMF_AUTH_EXPIRED:
        return "no message came in time";
    case NVMF_AUTH_DISPLACED:
        return "too many others are under way";
    case NVMF_AUTH_SKIPPED:
        return "the host sent another command first";
    case NVMF_AUTH_REFUSED:
    case NVMF_AUTH_PROVEN:
    case NVMF_AUTH_RESULTS:
        break;
    }
    return end->failure < AUTH_FAILURES && reasons[end->failure] != NULL
               ? reasons[end->failure]
               : "unknown reason";
}

/* Success is logged for admin queues only. */
void connect_log_auth(void *ctx, const struct nvmf_auth_end *end)
{
    struct connect_log *connect_log = ctx;
    struct ip_addr peer = ip_addr_from_bytes(end->host);
    char hostnqn[sizeof(end->hostnqn)];
    bool is_proven = end->result == NVMF_AUTH_PROVEN;

    if ((is_proven && end->qid != 0) || !take_line(connect_log)) {
        return;
    }
    log_format(hostnqn, sizeof(hostnqn), "%s", end->hostnqn);
    keep_printable(hostnqn);
    if (is_proven) {
        log_line(connect_log->log,
                 "nvme-of: %s: host %.*s has authenticated with %s, group %s%s",
                 ip_text(&peer).text, 120, hostnqn, auth_hash_name(end->hash),
                 auth_dh_name(end->dh),
                 end->has_key ? ", and generated a key of TLS" : "");
    } else {
        log_line(connect_log->log,
                 "nvme-of: %s: authentication of queue %u failed: %s; host "
                 "%.*s",
                 ip_text(&peer).text, end->qid, auth_reason(end), 120, hostnqn);
    }
}

static void log_refused(struct connect_log *connect_log,
                        const struct nvmf_conn_event *event)
{
    struct ip_addr peer = ip_addr_from_bytes(event->host);

    if (take_line(connect_log)) {
        log_line(connect_log->log,
                 "nvme-of: %s: connection refused: %s (%s status %u)",
                 ip_text(&peer).text,
                 event->reason != NULL ? event->reason : "unknown reason",
                 transport_name(event->trtype), (unsigned int)event->status);
    }
}

void connect_log_event(void *ctx, const struct nvmf_conn_event *event)
{
    struct connect_log *connect_log = ctx;
    struct ip_addr peer = ip_addr_from_bytes(event->host);

    if (event->status != 0) {
        log_refused(connect_log, event);
        return;
    }
    if (event->qid == 0) {
        log_line(connect_log->log, "nvme-of: %s host %s %s",
                 transport_name(event->trtype), ip_text(&peer).text,
                 event->is_connected ? "connected" : "disconnected");
    }
}
