/* SPDX-License-Identifier: BSD-2-Clause */
/* Names, and what is shown of a connection. */
#include "net/tcp/internal.h"

const char *const tcp_state_name[TCP_STATES] = {
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

const char *const tcp_counter_name[TCP_COUNTERS] = {
    [TCP_RX_SEGMENTS] = "rx_segments",
    [TCP_TX_SEGMENTS] = "tx_segments",
    [TCP_RX_BYTES] = "rx_bytes",
    [TCP_TX_BYTES] = "tx_bytes",
    [TCP_RX_CHECKSUM] = "rx_checksum",
    [TCP_RX_MALFORMED] = "rx_malformed",
    [TCP_RX_ADDRESS] = "rx_address",
    [TCP_RX_NO_PORT] = "rx_no_port",
    [TCP_RX_PAWS] = "rx_paws",
    [TCP_RX_NO_TIMES] = "rx_no_times",
    [TCP_RX_UNACCEPTABLE] = "rx_unacceptable",
    [TCP_RX_BAD_ACK] = "rx_bad_ack",
    [TCP_RX_BAD_SACK] = "rx_bad_sack",
    [TCP_RX_DUPLICATE] = "rx_duplicate",
    [TCP_RX_EARLY] = "rx_early",
    [TCP_RX_NO_PAGE] = "rx_no_page",
    [TCP_RX_BEYOND] = "rx_beyond",
    [TCP_RX_CE] = "rx_ce",
    [TCP_RX_ICMP] = "rx_icmp",
    [TCP_RX_BAD_ICMP] = "rx_bad_icmp",
    [TCP_TX_RST] = "tx_rst",
    [TCP_TX_CHALLENGE] = "tx_challenge",
    [TCP_TX_LIMITED] = "tx_limited",
    [TCP_TX_NO_ANSWER] = "tx_no_answer",
    [TCP_TX_RETRANSMITS] = "tx_retransmits",
    [TCP_TX_PROBES] = "tx_probes",
    [TCP_TX_ZERO_WINDOW_PROBES] = "tx_zero_window_probes",
    [TCP_TX_KEEP_ALIVES] = "tx_keep_alives",
    [TCP_RTOS] = "rtos",
    [TCP_RECOVERIES] = "recoveries",
    [TCP_HALF_OPENED] = "half_opened",
    [TCP_HALF_EVICTED] = "half_evicted",
    [TCP_HALF_TIMED_OUT] = "half_timed_out",
    [TCP_HALF_REFUSED] = "half_refused",
    [TCP_ESTABLISHED_COUNT] = "established",
    [TCP_TIME_WAIT_EVICTED] = "time_wait_evicted",
};

uint64_t tcp_counter(const struct tcp *tcp, enum tcp_counter counter)
{
    return tcp->saved->counters[counter];
}

struct tcp_usage tcp_usage(const struct tcp *tcp)
{
    return tcp->saved->usage;
}

bool tcp_info(const struct tcp *tcp, uint32_t id, struct tcp_info *info)
{
    const struct tcp_conn *conn = tcp_conn_by_id(tcp, id);

    if (conn == NULL) {
        return false;
    }
    *info = (struct tcp_info){
        .ends = tcp->nodes[tcp_node_of(tcp, conn)].ends,
        .state = conn->state,
        .snd_una = conn->snd_una,
        .snd_nxt = conn->snd_nxt,
        .snd_wnd = conn->snd_wnd,
        .rcv_nxt = conn->rcv_nxt,
        .rcv_wnd = conn->rcv_edge - conn->rcv_nxt,
        .cwnd = conn->cwnd,
        .ssthresh = conn->ssthresh,
        .pipe = tcp_pipe(conn),
        .srtt_us = conn->srtt_us,
        .rttvar_us = conn->rttvar_us,
        .rto_us = (uint32_t)tcp_rto_us(tcp, conn),
        .min_rtt_us = conn->min_rtt_us,
        .retransmits = conn->retransmits,
        .sacked = tcp_sacked(conn),
        .mss = conn->mss,
        .snd_shift = conn->snd_shift,
        .rcv_shift = conn->rcv_shift,
        .sent_runs = (uint8_t)conn->run_count,
        .received_ranges = conn->range_count,
        .is_recovering = conn->recovery != TCP_OPEN,
        .has_times = conn->has_times,
        .has_sack = conn->has_sack,
        .has_ecn = conn->has_ecn,
        .sent_bytes = MIN(conn->una_offset, conn->queued),
        .received_bytes = conn->rcv_offset,
    };
    return true;
}

bool tcp_wait_info(const struct tcp *tcp, uint16_t index, uint64_t now_us,
                   struct tcp_wait_info *info)
{
    uint16_t node = (uint16_t)(tcp_first_wait(tcp) + index);
    uint64_t due_us;

    if (index >= tcp->config.time_waits || !tcp->nodes[node].used) {
        return false;
    }
    due_us = tcp->waits[index].due_us;
    *info = (struct tcp_wait_info){
        .ends = tcp->nodes[node].ends,
        .route = tcp->nodes[node].route,
        .left_us = due_us > now_us ? due_us - now_us : 0,
    };
    return true;
}
