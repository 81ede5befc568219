/* SPDX-License-Identifier: BSD-2-Clause */
/* The connections of the TCP offload engine and its counters, for the
 * management channel: docs/management.md. */
#include "firmware/requests/mgmt_requests.h"

#include "firmware/drivers/toe.h"
#include "firmware/requests/parts.h"
#include "firmware/tcp/nvme_socket.h"
#include "firmware/tcp/tcp_echo.h"
#include "firmware/tcp/tls_socket.h"
#include "firmware/text/ip_text.h"
#include "lib/bytes.h"
#include "net/tcp/tcp.h"

enum {
    ROWS = 32, /* in one reply */
    PLACE_MASK = 0xffff,
    UNTAGGED = 0xffff,
};

/* ---- Connections. */

static const char *const state_name[] = {
    [TCP_STATE_FREE] = "CLOSED",
    [TCP_STATE_SYN_SENT] = "SYN-SENT",
    [TCP_STATE_SYN_RECEIVED] = "SYN-RECEIVED",
    [TCP_STATE_ESTABLISHED] = "ESTABLISHED",
    [TCP_STATE_FIN_WAIT_1] = "FIN-WAIT-1",
    [TCP_STATE_FIN_WAIT_2] = "FIN-WAIT-2",
    [TCP_STATE_CLOSE_WAIT] = "CLOSE-WAIT",
    [TCP_STATE_CLOSING] = "CLOSING",
    [TCP_STATE_LAST_ACK] = "LAST-ACK",
};
_Static_assert(ARRAY_LEN(state_name) == TCP_STATES, "every state has a name");

static const char *state_text(const uint8_t *tcb)
{
    switch (tcb[TOE_TCB_SLOT_STATE]) {
    case TOE_SLOT_ASKED:
    case TOE_SLOT_OPENING:
        return state_name[TCP_STATE_SYN_RECEIVED];
    case TOE_SLOT_OPEN:
        return tcb[TOE_TCB_STATE] < TCP_STATES ? state_name[tcb[TOE_TCB_STATE]]
                                               : "";
    case TOE_TCB_TIME_WAIT:
        return "TIME-WAIT";
    default:
        return state_name[TCP_STATE_FREE];
    }
}

static void put_address(struct json *out, const char *key, const uint8_t *ip)
{
    const struct ip_addr addr = ip_addr_from_bytes(ip);

    json_string(out, key, ip_text(&addr).text);
}

/* Which service of the drive has this TCP port; "": none. */
static const char *port_user(uint16_t port)
{
    switch (port) {
    case TCP_ECHO_PORT:
        return "echo";
    case TCP_DISCARD_PORT:
        return "discard";
    case NVME_SOCKET_PORT: /* and iWARP's */
    case NVME_SOCKET_DISCOVERY_PORT:
        return "nvme-tcp";
    default:
        return "";
    }
}

static void put_ends(struct json *out, const uint8_t *tcb)
{
    uint16_t vlan = get_le16(tcb + TOE_TCB_VLAN);

    json_number(out, "tid", get_le32(tcb + TOE_TCB_TID));
    json_string(out, "state", state_text(tcb));
    json_string(out, "user",
                (tcb[TOE_TCB_FLAGS] & TOE_TCB_IS_RDMA) != 0
                    ? "iwarp"
                    : port_user(get_le16(tcb + TOE_TCB_LOCAL_PORT)));
    json_number(out, "port", tcb[TOE_TCB_PORT]);
    if (vlan != UNTAGGED) {
        json_number(out, "vlan", vlan);
    }
    put_address(out, "local", tcb + TOE_TCB_LOCAL_IP);
    json_number(out, "local-port", get_le16(tcb + TOE_TCB_LOCAL_PORT));
    put_address(out, "remote", tcb + TOE_TCB_REMOTE_IP);
    json_number(out, "remote-port", get_le16(tcb + TOE_TCB_REMOTE_PORT));
}

static void put_number(struct json *out, const char *key, const uint8_t *field)
{
    json_number(out, key, get_le32(field));
}

static void put_windows(struct json *out, const uint8_t *tcb)
{
    put_number(out, "send-window", tcb + TOE_TCB_SND_WND);
    put_number(out, "receive-window", tcb + TOE_TCB_RCV_WND);
    json_number(out, "send-scale", tcb[TOE_TCB_SND_SHIFT]);
    json_number(out, "receive-scale", tcb[TOE_TCB_RCV_SHIFT]);
    put_number(out, "cwnd", tcb + TOE_TCB_CWND);
    if (get_le32(tcb + TOE_TCB_SSTHRESH) < INT32_MAX) { /* known */
        put_number(out, "ssthresh", tcb + TOE_TCB_SSTHRESH);
    }
    json_number(out, "mss", get_le16(tcb + TOE_TCB_MSS));
}

static void put_times(struct json *out, const uint8_t *tcb)
{
    if (get_le32(tcb + TOE_TCB_SRTT_US) != 0) { /* measured */
        put_number(out, "rtt-us", tcb + TOE_TCB_SRTT_US);
        put_number(out, "rtt-deviation-us", tcb + TOE_TCB_RTTVAR_US);
        put_number(out, "least-rtt-us", tcb + TOE_TCB_MIN_RTT_US);
    }
    put_number(out, "rto-us", tcb + TOE_TCB_RTO_US);
}

static void put_flight(struct json *out, const uint8_t *tcb)
{
    uint8_t flags = tcb[TOE_TCB_FLAGS];

    json_number(out, "in-flight",
                get_le32(tcb + TOE_TCB_SND_NXT) -
                    get_le32(tcb + TOE_TCB_SND_UNA));
    put_number(out, "pipe", tcb + TOE_TCB_PIPE);
    put_number(out, "sacked", tcb + TOE_TCB_SACKED);
    json_number(out, "ranges-in-flight", tcb[TOE_TCB_SENT_RUNS]);
    json_number(out, "ranges-early", tcb[TOE_TCB_SACK_RANGES]);
    put_number(out, "retransmits", tcb + TOE_TCB_RETRANSMITS);
    json_bool(out, "recovers", (flags & TOE_TCB_IS_RECOVERING) != 0);
    json_bool(out, "timestamps", (flags & TOE_TCB_HAS_TIMES) != 0);
    json_bool(out, "sack", (flags & TOE_TCB_HAS_SACK) != 0);
    json_bool(out, "ecn", (flags & TOE_TCB_HAS_ECN) != 0);
}

static void put_nvme(struct json *out, const struct nvme_tcp *tcp,
                     const uint8_t *tcb)
{
    struct nvme_tcp_details details;

    if (tcp == NULL ||
        !nvme_tcp_describe(tcp, get_le32(tcb + TOE_TCB_TID), &details)) {
        return;
    }
    json_begin_object(out, "nvme");
    if (details.is_connected) {
        json_number(out, "qid", details.qid);
    }
    json_bool(out, "header-digests", details.has_header_digest);
    json_bool(out, "data-digests", details.has_data_digest);
    json_number(out, "commands", details.commands);
    json_number(out, "responses", details.responses);
    json_number(out, "r2ts", details.r2ts);
    json_bool(out, "waits", details.is_waiting);
    json_number(out, "digest-errors", details.digest_errors);
    json_end_object(out);
}

static void put_connection(struct json *out, const struct nvme_tcp *tcp,
                           const uint8_t *tcb)
{
    uint8_t state = tcb[TOE_TCB_SLOT_STATE];

    json_begin_object(out, NULL);
    put_ends(out, tcb);
    if (state == TOE_SLOT_OPEN) {
        put_windows(out, tcb);
        put_times(out, tcb);
        put_flight(out, tcb);
        put_nvme(out, tcp, tcb);
    }
    if (state == TOE_SLOT_OPEN || state == TOE_SLOT_ENDED) {
        json_number(out, "sent-bytes", get_le64(tcb + TOE_TCB_SENT_BYTES));
        json_number(out, "received-bytes",
                    get_le64(tcb + TOE_TCB_RECEIVED_BYTES));
    }
    if (state == TOE_TCB_TIME_WAIT) {
        put_number(out, "left-ms", tcb + TOE_TCB_LEFT_MS);
    }
    json_end_object(out);
}

/* @return the state of the first connection from `place` on, which moves behind
 * it; NULL: there is none */
static const uint8_t *connection_next(const struct request_parts *parts,
                                      uint32_t *place)
{
    const uint8_t *tcb = parts->toe != NULL && *place <= PLACE_MASK
                             ? toe_query_next(parts->toe, *place)
                             : NULL;

    if (tcb != NULL) {
        *place = (get_le32(tcb + TOE_TCB_TID) & PLACE_MASK) + 1;
    }
    return tcb;
}

bool mgmt_tcp_connections(void *ctx, const struct json_args *args,
                          struct json *out, struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    uint64_t from = json_get_number(args, "from", 0);
    uint32_t place = (uint32_t)MIN(from, (uint64_t)PLACE_MASK + 1);
    const uint8_t *tcb = connection_next(parts, &place);
    unsigned int rows = 0;

    (void)refusal;
    json_begin_array(out, "tcp-connections");
    for (; tcb != NULL && rows < ROWS; rows++) {
        put_connection(out, parts->nvme_tcp, tcb);
        if (rows + 1 < ROWS) {
            tcb = connection_next(parts, &place);
        }
    }
    json_end_array(out);
    if (tcb != NULL) {
        json_number(out, "next", place);
    }
    return true;
}

/* ---- Counters. */

static const char *const engine_counter_name[] = {
    [TOE_COUNT_RX_FRAMES] = "frames-in",
    [TOE_COUNT_TX_FRAMES] = "frames-out",
    [TOE_COUNT_RX_DISABLED] = "dropped-off",
    [TOE_COUNT_RX_MALFORMED] = "dropped-malformed-ip",
    [TOE_COUNT_RX_ADDRESS] = "dropped-not-ours",
    [TOE_COUNT_RX_NO_PATH] = "dropped-no-path",
    [TOE_COUNT_NO_SLOT] = "refused-no-tid",
    [TOE_COUNT_LOST_WORDS] = "ended-lost-words",
    [TOE_COUNT_REFUSED] = "commands-refused",
    [TOE_COUNT_STALLS] = "ring-full",
};
_Static_assert(ARRAY_LEN(engine_counter_name) == TOE_COUNTERS,
               "every counter of the engine has a name");

static const char *const protocol_counter_name[] = {
    [TCP_RX_SEGMENTS] = "segments-in",
    [TCP_TX_SEGMENTS] = "segments-out",
    [TCP_RX_BYTES] = "bytes-in",
    [TCP_TX_BYTES] = "bytes-out",
    [TCP_RX_CHECKSUM] = "bad-checksum",
    [TCP_RX_MALFORMED] = "malformed",
    [TCP_RX_ADDRESS] = "dropped-address",
    [TCP_RX_NO_PORT] = "no-listener",
    [TCP_RX_PAWS] = "dropped-old-timestamp",
    [TCP_RX_NO_TIMES] = "dropped-no-timestamp",
    [TCP_RX_UNACCEPTABLE] = "outside-window",
    [TCP_RX_BAD_ACK] = "bad-ack",
    [TCP_RX_BAD_SACK] = "bad-sack",
    [TCP_RX_DUPLICATE] = "duplicates",
    [TCP_RX_EARLY] = "early",
    [TCP_RX_NO_PAGE] = "dropped-no-page",
    [TCP_RX_BEYOND] = "beyond-window",
    [TCP_RX_CE] = "ecn-marked-in",
    [TCP_RX_ICMP] = "icmp-in",
    [TCP_RX_BAD_ICMP] = "bad-icmp",
    [TCP_TX_RST] = "resets-out",
    [TCP_TX_CHALLENGE] = "challenge-acks-out",
    [TCP_TX_LIMITED] = "unsent-limited",
    [TCP_TX_NO_ANSWER] = "unsent-no-room",
    [TCP_TX_RETRANSMITS] = "retransmitted",
    [TCP_TX_PROBES] = "tail-loss-probes",
    [TCP_TX_ZERO_WINDOW_PROBES] = "zero-window-probes",
    [TCP_TX_KEEP_ALIVES] = "keep-alive-probes",
    [TCP_RTOS] = "timeouts",
    [TCP_RECOVERIES] = "recoveries",
    [TCP_HALF_OPENED] = "half-opened",
    [TCP_HALF_EVICTED] = "half-open-evicted",
    [TCP_HALF_TIMED_OUT] = "half-open-timeouts",
    [TCP_HALF_REFUSED] = "refused-no-connection",
    [TCP_ESTABLISHED_COUNT] = "established",
    [TCP_TIME_WAIT_EVICTED] = "time-wait-evicted",
};
_Static_assert(ARRAY_LEN(protocol_counter_name) == TCP_COUNTERS,
               "every counter of net/tcp has a name");

static void put_echo_counters(struct json *out,
                              const struct tcp_echo_counters *counters)
{
    json_number(out, "echo-connections", counters->connections);
    json_number(out, "echo-refused", counters->refused);
    json_number(out, "echo-bytes", counters->echoed_bytes);
    json_number(out, "echo-discarded-bytes", counters->discarded_bytes);
    json_number(out, "echo-idle", counters->idle);
}

static const char *const nvme_counter_name[] = {
    [NVME_TCP_CONNECTIONS] = "connections",
    [NVME_TCP_REFUSED] = "refused",
    [NVME_TCP_DISPLACED] = "displaced",
    [NVME_TCP_SILENT] = "ended-silent",
    [NVME_TCP_TERMS_SENT] = "terms-out",
    [NVME_TCP_TERMS_RECEIVED] = "terms-in",
    [NVME_TCP_HEADER_DIGESTS] = "bad-header-digests",
    [NVME_TCP_DATA_DIGESTS] = "bad-data-digests",
    [NVME_TCP_CAPSULES] = "capsules-in",
    [NVME_TCP_H2C_DATA] = "h2c-data-in",
    [NVME_TCP_R2TS] = "r2ts-out",
    [NVME_TCP_C2H_DATA] = "c2h-data-out",
    [NVME_TCP_RESPONSES] = "responses-out",
    [NVME_TCP_SUCCESSES] = "successes-out",
    [NVME_TCP_PLACED] = "h2c-data-placed",
};
_Static_assert(ARRAY_LEN(nvme_counter_name) == NVME_TCP_COUNTERS,
               "every counter of NVMe/TCP has a name");

static void put_nvme_counters(struct json *out, const struct nvme_tcp *tcp)
{
    json_begin_object(out, "nvme-tcp");
    for (unsigned int i = 0; i < NVME_TCP_COUNTERS; i++) {
        json_number(out, nvme_counter_name[i],
                    nvme_tcp_counter(tcp, (enum nvme_tcp_counter)i));
    }
    json_end_object(out);
}

static const char *const tls_counter_name[] = {
    [TLS_COUNT_HANDSHAKES] = "handshakes",
    [TLS_COUNT_FAILED] = "failed-handshakes",
    [TLS_COUNT_DISPLACED] = "displaced",
    [TLS_COUNT_SILENT] = "ended-silent",
    [TLS_COUNT_REFUSED] = "refused",
    [TLS_COUNT_PLAIN] = "refused-plain",
    [TLS_COUNT_BAD] = "bad-records",
};
_Static_assert(ARRAY_LEN(tls_counter_name) == TLS_COUNTERS,
               "every counter of TLS has a name");

static void put_tls_counters(struct json *out, const struct tls_socket *tls)
{
    json_begin_object(out, "nvme-tls");
    for (unsigned int i = 0; i < TLS_COUNTERS; i++) {
        json_number(out, tls_counter_name[i], tls->counters[i]);
    }
    json_end_object(out);
}

void mgmt_put_tcp_counters(struct json *out, const struct request_parts *parts)
{
    const struct toe *toe = parts->toe;

    if (parts->toe == NULL) {
        return;
    }
    json_begin_object(out, "tcp");
    for (unsigned int i = 0; i < TOE_COUNTERS; i++) {
        json_number(out, engine_counter_name[i],
                    toe_counter_read(toe, (enum toe_counter)i));
    }
    for (unsigned int i = 0; i < TCP_COUNTERS; i++) {
        json_number(out, protocol_counter_name[i],
                    toe_tcp_counter_read(toe, i));
    }
    put_echo_counters(out, &parts->tcp_echo->counters);
    json_end_object(out);
    if (parts->nvme_tcp != NULL) {
        put_nvme_counters(out, parts->nvme_tcp);
        if (parts->tls != NULL) {
            put_tls_counters(out, parts->tls);
        }
    }
}
