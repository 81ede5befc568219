/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments to send: headers, options, checksum; and those of no connection.
 * Spec: RFC 9293 sections 3.1 and 3.10.7.1; RFC 7323 section 3.2; RFC 2018
 * section 3; RFC 3168 section 6.1.
 */
#include <string.h>

#include "net/tcp/internal.h"
#include "net/tcp/notes.h"
#include "net/wire/checksum.h"
#include "net/wire/ipv4.h"

enum {
    ECT_0 = 2,
    SACK_HEAD_LEN = 4,
    BLOCK_LEN = 8,
    RESETS_AT_ONCE = 64, /* for a group of sources */
    RESET_US = 4000,     /* until it may cause another one */
    SHARE = TCP_ANSWERS / 2,
};

/* 1 ms a tick, which RFC 7323 section 5.4 allows; 0 is skipped, because an echo
 * of 0 means none. */
uint32_t tcp_times_now(const struct tcp *tcp, uint32_t base)
{
    uint32_t now = (uint32_t)(tcp->now_us / 1000) + base;

    return now != 0 ? now : 1;
}

/* Room that the options of the next segment with data take. */
uint8_t tcp_options_len(const struct tcp_conn *conn)
{
    uint8_t len = conn->has_times ? TCP_TIMES_LEN : 0;
    uint8_t most = conn->has_times ? TCP_SACKS_MAX - 1 : TCP_SACKS_MAX;
    uint8_t blocks = (uint8_t)(conn->range_count + (conn->has_dsack ? 1 : 0));

    if (conn->has_sack && blocks != 0) {
        len = (uint8_t)(len + SACK_HEAD_LEN + MIN(blocks, most) * BLOCK_LEN);
    }
    return len;
}

/* ---- The checksum over header and pieces, which may have odd lengths. */

static uint32_t sum_piece(uint32_t sum, const uint8_t *data, uint32_t len,
                          bool is_odd)
{
    uint32_t part = checksum_add(0, data, len);

    if (is_odd) { /* RFC 1071 section 2(B): swapped bytes, swapped sum */
        part = (part << 8 | part >> 8) & 0xffff;
    }
    sum += part;
    return (sum & 0xffff) + (sum >> 16);
}

static void fill_checksum(struct tcp_segment *segment)
{
    size_t len = segment->header_len;
    bool is_odd = false;
    uint32_t sum;

    for (unsigned int i = 0; i < segment->num_pieces; i++) {
        len += segment->pieces[i].len_bytes;
    }
    put_be16(segment->header + TCP_CHECKSUM, 0);
    sum = checksum_pseudo(&segment->ends.local, &segment->ends.remote,
                          IP_PROTOCOL_TCP, len);
    sum = checksum_add(sum, segment->header, segment->header_len);
    for (unsigned int i = 0; i < segment->num_pieces; i++) {
        const struct tcp_piece *piece = &segment->pieces[i];

        sum = sum_piece(sum, piece->data, piece->len_bytes, is_odd);
        is_odd ^= (piece->len_bytes & 1) != 0;
    }
    put_be16(segment->header + TCP_CHECKSUM, checksum_finish(sum));
}

static bool segment_hand_out(struct tcp *tcp, struct tcp_segment *segment,
                             struct tcp_header *header)
{
    header->src_port = segment->ends.local_port;
    header->dst_port = segment->ends.remote_port;
    segment->header_len = (uint8_t)tcp_header_emit(header, segment->header);
    fill_checksum(segment);
    if (!tcp_user_send(tcp, segment)) {
        return false;
    }
    tcp_count(tcp, TCP_TX_SEGMENTS);
    if ((header->flags & TCP_RST) != 0) {
        tcp_count(tcp, TCP_TX_RST);
    }
    return true;
}

bool tcp_bare_send(struct tcp *tcp, const struct tcp_ends *ends, uint32_t route,
                   uint32_t id, struct tcp_header *header)
{
    struct tcp_segment segment = {.ends = *ends, .route = route, .id = id};

    return segment_hand_out(tcp, &segment, header);
}

/* ---- Segments of a connection. */

static void fill_options(struct tcp *tcp, struct tcp_conn *conn,
                         struct tcp_options *options)
{
    if (conn->has_times) {
        options->has_times = true;
        options->tsval = tcp_times_now(tcp, conn->times_base);
        options->tsecr = conn->ts_recent;
    }
    options->sack_count = tcp_sack_take(
        conn, options->sacks,
        (uint8_t)(conn->has_times ? TCP_SACKS_MAX - 1 : TCP_SACKS_MAX));
}

static uint8_t ecn_flags(struct tcp_conn *conn, bool is_marked)
{
    uint8_t flags = 0;

    if (conn->echoes_ecn && conn->ce_seen) {
        flags |= TCP_ECE;
    }
    if (conn->cwr_due && is_marked) {
        flags |= TCP_CWR;
    }
    return flags;
}

static void ack_is_sent(struct tcp_conn *conn)
{
    conn->ack_due = false;
    conn->ack_due_us = DEADLINE_NONE;
    conn->since_ack = 0;
    conn->last_ack_sent = conn->rcv_nxt;
}

/* A SYN, or the SYN-ACK of a simultaneous open. */
static enum tcp_sent syn_send(struct tcp *tcp, struct tcp_conn *conn)
{
    struct tcp_node *node = &tcp->nodes[tcp_node_of(tcp, conn)];
    bool is_answer = conn->state == TCP_STATE_SYN_RECEIVED;
    struct tcp_header header = {
        .seq = conn->iss,
        .ack = is_answer ? conn->rcv_nxt : 0,
        .flags = is_answer ? TCP_SYN | TCP_ACK : TCP_SYN,
        .window = (uint16_t)MIN(tcp->config.window_bytes, UINT16_MAX),
        .options = tcp_syn_options(tcp, &node->ends),
    };

    if (is_answer) {
        header.options.has_times = conn->has_times;
        header.options.tsecr = conn->ts_recent;
        header.options.sack_permitted = conn->has_sack;
        header.options.has_shift = conn->rcv_shift != 0 || conn->snd_shift != 0;
    } else if (tcp->config.uses_ecn && conn->syn_tries == 1) {
        header.flags |= TCP_ECE | TCP_CWR; /* RFC 3168 section 6.1.1 */
    }
    if (!tcp_bare_send(tcp, &node->ends, node->route, tcp_conn_id(tcp, conn),
                       &header)) {
        return TCP_NO_ROOM;
    }
    conn->syn_due = false;
    conn->sent_us = tcp->now_us;
    return TCP_SENT;
}

/* Find the bytes of a plan. @return how many; 0 with `len` != 0: they are lost
 */
static uint32_t fetch_data(struct tcp *tcp, const struct tcp_plan *plan,
                           struct tcp_conn *conn, struct tcp_segment *segment)
{
    uint64_t offset = conn->una_offset + (plan->seq - conn->snd_una);
    uint64_t left = conn->queued - MIN(offset, conn->queued);
    uint32_t len = (uint32_t)MIN(plan->len, left);
    uint32_t found = 0;

    if (len == 0) {
        return 0;
    }
    segment->num_pieces =
        (uint8_t)tcp_user_fetch(tcp, segment->id, offset, len, segment->pieces);
    ASSERT(segment->num_pieces <= TCP_PIECES_MAX);
    for (unsigned int i = 0; i < segment->num_pieces; i++) {
        found += segment->pieces[i].len_bytes;
    }
    ASSERT(found <= len);
    return found;
}

/* What a peer acknowledges of full size has shown that the path takes it. */
static void note_size(struct tcp_conn *conn, const struct tcp_plan *plan,
                      uint32_t options_len)
{
    if (!conn->mss_sent && plan->len + options_len >= conn->mss) {
        conn->mss_sent = true;
        conn->mss_end = plan->seq + plan->len;
    }
}

static void note_sent(struct tcp *tcp, struct tcp_conn *conn,
                      const struct tcp_plan *plan)
{
    if (plan->len == 0) {
        return;
    }
    if (plan->is_new) {
        ASSERT(plan->seq == conn->snd_nxt);
        tcp_runs_sent(tcp, conn, plan->seq, plan->len);
        conn->snd_nxt += plan->len;
    } else {
        tcp_runs_resent(tcp, conn, plan->seq, plan->len);
        tcp_count(tcp, TCP_TX_RETRANSMITS);
        conn->retransmits++;
        tcp_user_note(tcp, tcp_node_of(tcp, conn), TCP_NOTE_RETRANSMIT,
                      plan->seq, plan->len);
    }
    tcp->saved->counters[TCP_TX_BYTES] += plan->len;
    if (plan->kind != TCP_PLAN_WINDOW_PROBE) { /* they show no capacity */
        conn->sent_us = tcp->now_us;
    }
    if (conn->recovery == TCP_RECOVERY) {
        conn->prr_out += plan->len;
    }
    /* RFC 8985 section 7.2; RFC 6675 section 6: the first segment is waited for
     * from now on. */
    tcp_rtx_arm(tcp, conn,
                plan->is_new ? conn->rtx_timer == TCP_TIMER_TLP
                             : conn->rtx_timer == TCP_TIMER_RTO &&
                                   plan->seq == conn->snd_una);
}

/* Tell when the window that is announced closes or opens.
 * @param edge  the end of the window that was announced before */
static void note_window(struct tcp *tcp, const struct tcp_conn *conn,
                        uint32_t edge, uint16_t window)
{
    bool was_closed = (edge - conn->last_ack_sent) >> conn->rcv_shift == 0;

    if (was_closed != (window == 0)) {
        tcp_user_note(tcp, tcp_node_of(tcp, conn),
                      window == 0 ? TCP_NOTE_CLOSED : TCP_NOTE_OPENED,
                      (uint32_t)window << conn->rcv_shift, 0);
    }
}

enum tcp_sent tcp_segment_send(struct tcp *tcp, struct tcp_conn *conn,
                               struct tcp_plan *plan)
{
    struct tcp_node *node = &tcp->nodes[tcp_node_of(tcp, conn)];
    struct tcp_segment segment = {
        .ends = node->ends, .route = node->route, .id = tcp_conn_id(tcp, conn)};
    struct tcp_header header = {.seq = plan->seq, .flags = TCP_ACK};
    uint64_t offset = conn->una_offset + (plan->seq - conn->snd_una);
    bool has_dsack = conn->has_dsack;
    uint32_t edge = conn->rcv_edge;
    uint32_t data;
    bool is_marked;

    if (conn->syn_due) {
        return syn_send(tcp, conn);
    }
    data = fetch_data(tcp, plan, conn, &segment);
    if (plan->len != 0 && offset + plan->len > conn->queued &&
        data == plan->len - 1) {
        header.flags |= TCP_FIN;
    } else if (plan->len != 0 && data == 0) {
        return TCP_DATA_LOST;
    } else {
        plan->len = data; /* the rest is in further pieces */
    }
    if (data != 0 && offset + data >= conn->queued) {
        header.flags |= TCP_PSH;
    }
    /* RFC 3168 sections 6.1.5 and 6.1.6: no retransmission, no probe. */
    is_marked = conn->has_ecn && plan->is_new && data != 0 &&
                plan->kind != TCP_PLAN_WINDOW_PROBE;
    header.flags |= ecn_flags(conn, is_marked);
    segment.ecn = is_marked ? ECT_0 : 0;
    header.ack = conn->rcv_nxt;
    header.window = tcp_window_take(tcp, conn);
    fill_options(tcp, conn, &header.options);
    if (!segment_hand_out(tcp, &segment, &header)) {
        conn->has_dsack = has_dsack;
        conn->rcv_edge = edge;
        return TCP_NO_ROOM;
    }
    if ((header.flags & TCP_CWR) != 0) {
        conn->cwr_due = false;
    }
    note_window(tcp, conn, edge, header.window);
    ack_is_sent(conn);
    note_size(conn, plan, segment.header_len - (uint32_t)TCP_LEN);
    note_sent(tcp, conn, plan);
    return TCP_SENT;
}

/* ---- Segments of no connection. */

static struct tcp_answer *answer_at(struct tcp_saved *saved, unsigned int i)
{
    return &saved->answers[(saved->answer_head + i) % TCP_ANSWERS];
}

/* How many of the waiting answers have a route with room. */
static uint16_t answers_with_room(struct tcp *tcp)
{
    uint16_t count = 0;

    for (unsigned int i = 0; i < tcp->saved->answer_count; i++) {
        if (tcp_user_has_room(tcp, answer_at(tcp->saved, i)->route)) {
            count++;
        }
    }
    return count;
}

/* Drop the oldest answer whose route has no room. */
static void answer_drop_blocked(struct tcp *tcp)
{
    struct tcp_saved *saved = tcp->saved;
    unsigned int i = 0;

    while (tcp_user_has_room(tcp, answer_at(saved, i)->route)) {
        i++;
        ASSERT(i < saved->answer_count);
    }
    for (; i + 1u < saved->answer_count; i++) {
        *answer_at(saved, i) = *answer_at(saved, i + 1);
    }
    saved->answer_count--;
    tcp_count(tcp, TCP_TX_NO_ANSWER);
}

/* Answers that wait for routes without room have one half of the places.  They
 * may be more, because their routes had room at first: those beyond the half
 * give way. */
static bool answer_has_place(struct tcp *tcp, uint32_t route)
{
    uint16_t count = tcp->saved->answer_count;
    uint16_t blocked;

    if (count < SHARE) {
        return true;
    }
    blocked = (uint16_t)(count - answers_with_room(tcp));
    if (!tcp_user_has_room(tcp, route)) {
        return blocked < SHARE && count < TCP_ANSWERS;
    }
    if (count == TCP_ANSWERS && blocked > SHARE) {
        answer_drop_blocked(tcp);
    }
    return tcp->saved->answer_count < TCP_ANSWERS;
}

void tcp_answer(struct tcp *tcp, const struct tcp_ends *ends, uint32_t route,
                const struct tcp_header *header)
{
    struct tcp_saved *saved = tcp->saved;

    if (!answer_has_place(tcp, route)) {
        tcp_count(tcp, TCP_TX_NO_ANSWER);
        return;
    }
    *answer_at(saved, saved->answer_count) =
        (struct tcp_answer){*ends, route, *header};
    saved->answer_count++;
}

void tcp_resets_init(struct tcp *tcp)
{
    for (size_t i = 0; i < TCP_RESET_GROUPS; i++) {
        tcp->saved->resets[i] =
            (struct tcp_resets){RESETS_AT_ONCE, tcp->now_us};
    }
}

/* RFC 5961 section 7, for segments that need no connection: whoever sends many
 * does not get as many answers.  Each source has its limit, or nearly so: one
 * that all share would let one host silence the others'.  An attacker with one
 * address does not see either whether a segment with a false source was
 * answered with a RST; one that has addresses in all groups may see it by the
 * group that answers once less. */
static bool reset_allowed(struct tcp *tcp, const struct tcp_ends *ends)
{
    struct tcp_ends source = {0};
    struct tcp_resets *resets;
    uint64_t steps;

    memcpy(source.remote.bytes, ends->remote.bytes, tcp_source_len(ends));
    resets = &tcp->saved->resets[tcp_hash(tcp, &source, 3) % TCP_RESET_GROUPS];
    steps = (tcp->now_us - resets->filled_us) / RESET_US;
    resets->left = (uint16_t)MIN(resets->left + steps, RESETS_AT_ONCE);
    resets->filled_us += steps * RESET_US;
    if (resets->left == 0) {
        tcp_count(tcp, TCP_TX_LIMITED);
        return false;
    }
    resets->left--;
    return true;
}

/* Whoever sends segments to nobody takes no places of those who wait for the
 * end of a connection, and none for a route that has no room.  What waits for
 * such a route silences nobody at the others. */
static bool reset_has_place(struct tcp *tcp, uint32_t route)
{
    if (tcp_user_has_room(tcp, route) &&
        (tcp->saved->answer_count < SHARE || answers_with_room(tcp) < SHARE)) {
        return true;
    }
    tcp_count(tcp, TCP_TX_NO_ANSWER);
    return false;
}

bool tcp_reset_allowed(struct tcp *tcp, const struct tcp_ends *ends,
                       uint32_t route)
{
    return reset_has_place(tcp, route) && reset_allowed(tcp, ends);
}

void tcp_answer_rst(struct tcp *tcp, const struct tcp_rx *rx)
{
    struct tcp_header header = {.flags = TCP_RST};

    if ((rx->header.flags & TCP_RST) != 0 ||
        !tcp_reset_allowed(tcp, &rx->ends, rx->packet->route)) {
        return;
    }
    if ((rx->header.flags & TCP_ACK) != 0) {
        header.seq = rx->header.ack;
    } else {
        header.ack = rx->header.seq + tcp_rx_space(rx);
        header.flags |= TCP_ACK;
    }
    tcp_answer(tcp, &rx->ends, rx->packet->route, &header);
}

/* The first answer goes to the end of the queue, or is gone. */
static void answer_pass(struct tcp_saved *saved, bool is_sent)
{
    struct tcp_answer answer = saved->answers[saved->answer_head];

    saved->answer_head = (uint16_t)((saved->answer_head + 1) % TCP_ANSWERS);
    saved->answer_count--;
    if (!is_sent) {
        saved->answers[(saved->answer_head + saved->answer_count) %
                       TCP_ANSWERS] = answer;
        saved->answer_count++;
    }
}

bool tcp_answers_send(struct tcp *tcp, unsigned int *budget)
{
    struct tcp_saved *saved = tcp->saved;

    for (uint16_t left = saved->answer_count; left != 0 && *budget != 0;
         left--) {
        struct tcp_answer *answer = answer_at(saved, 0);
        bool is_sent = tcp_user_has_room(tcp, answer->route) &&
                       tcp_bare_send(tcp, &answer->ends, answer->route,
                                     TCP_NO_ID, &answer->header);

        if (!is_sent && tcp->user->has_room == NULL) {
            return false;
        }
        answer_pass(saved, is_sent);
        *budget -= is_sent ? 1 : 0;
    }
    return true;
}

static bool half_send(struct tcp *tcp, uint16_t index)
{
    struct tcp_half *half = &tcp->halves[index];
    uint16_t number = (uint16_t)(tcp_first_half(tcp) + index);
    struct tcp_node *node = &tcp->nodes[number];
    struct tcp_header header = {
        .seq = half->iss,
        .ack = half->irs + 1,
        .flags = TCP_SYN | TCP_ACK,
        .window = (uint16_t)MIN(tcp->config.window_bytes, UINT16_MAX),
        .options = tcp_syn_options(tcp, &node->ends),
    };

    header.flags |= half->has_ecn ? TCP_ECE : 0;
    header.options.has_times = half->has_times;
    header.options.tsecr = half->ts_recent;
    header.options.sack_permitted = half->has_sack;
    header.options.has_shift = half->has_shift;
    return tcp_bare_send(tcp, &node->ends, node->route, tcp_id_of(tcp, number),
                         &header);
}

bool tcp_halves_send(struct tcp *tcp, unsigned int *budget)
{
    struct tcp_saved *saved = tcp->saved;

    for (uint16_t left = tcp->config.half_open;
         left != 0 && saved->half_due != 0 && *budget != 0; left--) {
        uint16_t index = saved->half_turn;
        const struct tcp_node *node = &tcp->nodes[tcp_first_half(tcp) + index];

        if (node->used && tcp->halves[index].syn_due &&
            tcp_user_has_room(tcp, node->route)) {
            if (half_send(tcp, index)) {
                tcp->halves[index].syn_due = false;
                saved->half_due--;
                (*budget)--;
            } else if (tcp->user->has_room == NULL) {
                return false;
            }
        }
        saved->half_turn = (uint16_t)((index + 1) % tcp->config.half_open);
    }
    return true;
}
