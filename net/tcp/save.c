/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The image of an engine: how each field is written and read.
 *
 * An image has no indices into tables: lists, hash buckets, deadlines and the
 * places of pages are made anew.  Numbers are little-endian and have no gaps
 * between them.  Values are checked in check.c.
 */
#include <string.h>

#include "net/tcp/internal.h"

enum {
    IMAGE_MAGIC = 0x31504354,
    IMAGE_VERSION = 4,
    IMAGE_EXTRA = 4096,         /* more than what no struct has */
    HALF_ANSWER_MAX_MS = 32000, /* the longest pause between two SYN-ACKs */
};

/* One function for each struct describes both directions. */
struct image {
    uint8_t *to;         /* writing, or NULL */
    const uint8_t *from; /* reading */
    size_t at, len;
    bool is_wrong; /* too short, or a value that cannot be */
};

static void image_bytes(struct image *image, void *data, size_t len)
{
    if (image->is_wrong || image->len - image->at < len) {
        image->is_wrong = true;
        return;
    }
    if (image->to != NULL) {
        memcpy(image->to + image->at, data, len);
    } else {
        memcpy(data, image->from + image->at, len);
    }
    image->at += len;
}

static uint64_t image_number(struct image *image, uint64_t value, size_t len)
{
    uint8_t bytes[8];

    put_le64(bytes, value);
    image_bytes(image, bytes, len);
    memset(bytes + len, 0, sizeof(bytes) - len);
    return get_le64(bytes);
}

static void image_u8(struct image *image, uint8_t *value)
{
    *value = (uint8_t)image_number(image, *value, 1);
}

static void image_u16(struct image *image, uint16_t *value)
{
    *value = (uint16_t)image_number(image, *value, 2);
}

static void image_u32(struct image *image, uint32_t *value)
{
    *value = (uint32_t)image_number(image, *value, 4);
}

static void image_u64(struct image *image, uint64_t *value)
{
    *value = image_number(image, *value, 8);
}

static void image_bool(struct image *image, bool *value)
{
    uint64_t number = image_number(image, *value ? 1 : 0, 1);

    image->is_wrong |= number > 1;
    *value = number == 1;
}

/* A value that both have to have. */
static void image_same(struct image *image, uint64_t value)
{
    image->is_wrong |= image_number(image, value, 8) != value;
}

/* ---- Structs. */

static void image_config(struct image *image, struct tcp_config *c)
{
    image_bytes(image, c->secret, sizeof(c->secret));
    image_same(image, c->connections);
    image_same(image, c->half_open);
    image_same(image, c->time_waits);
    image_same(image, c->pages);
    image_same(image, c->mtu_bytes);
    image_same(image, c->window_bytes);
    image_same(image, c->congestion);
    image_same(image, c->uses_ecn);
}

static void image_ends(struct image *image, struct tcp_ends *ends)
{
    image_bytes(image, ends->local.bytes, sizeof(ends->local.bytes));
    image_bytes(image, ends->remote.bytes, sizeof(ends->remote.bytes));
    image_u16(image, &ends->local_port);
    image_u16(image, &ends->remote_port);
}

static void image_answer(struct image *image, struct tcp_answer *answer)
{
    struct tcp_header *header = &answer->header;

    image_ends(image, &answer->ends);
    image_u32(image, &answer->route);
    image_u32(image, &header->seq);
    image_u32(image, &header->ack);
    image_u16(image, &header->window);
    image_u8(image, &header->flags);
    image_bool(image, &header->options.has_times);
    image_u32(image, &header->options.tsval);
    image_u32(image, &header->options.tsecr);
}

static void image_engine(struct image *image, struct tcp *tcp)
{
    struct tcp_saved *saved = tcp->saved;

    image_u64(image, &tcp->now_us);
    for (size_t i = 0; i < ARRAY_LEN(saved->counters); i++) {
        image_u64(image, &saved->counters[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(saved->listeners); i++) {
        image_u16(image, &saved->listeners[i].port);
    }
    image_u16(image, &saved->half_turn);
    for (size_t i = 0; i < ARRAY_LEN(saved->resets); i++) {
        image_u16(image, &saved->resets[i].left);
        image_u64(image, &saved->resets[i].filled_us);
    }
    image_u16(image, &saved->answer_head);
    image_u16(image, &saved->answer_count);
    for (size_t i = 0; i < ARRAY_LEN(saved->answers); i++) {
        image_answer(image, &saved->answers[i]);
    }
}

static void image_runs(struct image *image, struct tcp_conn *conn)
{
    image_u16(image, &conn->run_count);
    image->is_wrong |= conn->run_count > TCP_RUNS;
    for (uint16_t i = 0; !image->is_wrong && i < conn->run_count; i++) {
        struct tcp_run *run = &conn->runs[i];

        image_u32(image, &run->seq);
        image_u32(image, &run->len);
        image_u64(image, &run->sent_us);
        image_bool(image, &run->is_sacked);
        image_bool(image, &run->is_lost);
        image_bool(image, &run->is_again);
    }
}

static void image_block(struct image *image, struct tcp_block *block)
{
    image_u32(image, &block->left);
    image_u32(image, &block->right);
}

static void image_ranges(struct image *image, struct tcp_conn *conn)
{
    image_u32(image, &conn->stamp);
    image_u8(image, &conn->range_count);
    image->is_wrong |= conn->range_count > TCP_RANGES;
    for (uint8_t i = 0; !image->is_wrong && i < conn->range_count; i++) {
        image_block(image, &conn->ranges[i].block);
        image_u32(image, &conn->ranges[i].stamp);
    }
    image_bool(image, &conn->has_dsack);
    image_block(image, &conn->dsack);
}

/* The bytes of the pages; the reader takes others. */
static void image_pages(struct image *image, struct tcp *tcp,
                        struct tcp_conn *conn)
{
    for (unsigned int i = 0; !image->is_wrong && i < TCP_HOLD_PAGES; i++) {
        bool has_page = conn->pages[i] != TCP_NO_PAGE;

        image_bool(image, &has_page);
        if (!has_page) {
            continue;
        }
        if (image->to == NULL && !tcp_page_take(tcp, conn, &conn->pages[i])) {
            image->is_wrong = true;
            return;
        }
        image_bytes(image,
                    tcp->page_bytes + (size_t)conn->pages[i] * TCP_PAGE_BYTES,
                    TCP_PAGE_BYTES);
    }
}

static void image_sending(struct image *image, struct tcp_conn *conn)
{
    image_u32(image, &conn->iss);
    image_u32(image, &conn->snd_una);
    image_u32(image, &conn->snd_nxt);
    image_u32(image, &conn->snd_wnd);
    image_u32(image, &conn->snd_wl1);
    image_u32(image, &conn->snd_wl2);
    image_u32(image, &conn->max_wnd);
    image_u64(image, &conn->una_offset);
    image_u64(image, &conn->queued);
    image_u8(image, &conn->snd_shift);
    image_bool(image, &conn->fin_wanted);
    image_bool(image, &conn->fin_acked);
    image_u16(image, &conn->mss);
    image_u16(image, &conn->peer_mss);
    image_bool(image, &conn->mss_sent);
    image_bool(image, &conn->mss_proven);
    image_u32(image, &conn->mss_end);
    image_runs(image, conn);
}

static void image_receiving(struct image *image, struct tcp_conn *conn)
{
    image_u32(image, &conn->irs);
    image_u32(image, &conn->rcv_nxt);
    image_u32(image, &conn->rcv_edge);
    image_u8(image, &conn->rcv_shift);
    image_u32(image, &conn->last_ack_sent);
    image_u32(image, &conn->unread);
    image_u64(image, &conn->rcv_offset);
    image_u32(image, &conn->since_ack);
    image_bool(image, &conn->fin_early);
    image_bool(image, &conn->fin_received);
    image_u32(image, &conn->fin_seq);
    image_ranges(image, conn);
}

static void image_agreed(struct image *image, struct tcp_conn *conn)
{
    image_bool(image, &conn->has_times);
    image_bool(image, &conn->has_sack);
    image_bool(image, &conn->has_ecn);
    image_bool(image, &conn->echoes_ecn);
    image_u32(image, &conn->times_base);
    image_u32(image, &conn->ts_recent);
    image_u64(image, &conn->ts_recent_us);
    image_bool(image, &conn->ce_seen);
    image_bool(image, &conn->cwr_due);
    image_bool(image, &conn->was_reduced);
    image_u32(image, &conn->reduced_at);
}

static void image_rack(struct image *image, struct tcp_rack *rack)
{
    image_u64(image, &rack->xmit_us);
    image_u32(image, &rack->end_seq);
    image_u32(image, &rack->rtt_us);
    image_u32(image, &rack->fack);
    image_bool(image, &rack->is_valid);
    image_bool(image, &rack->reordering_seen);
    image_u8(image, &rack->window_mult);
    image_u8(image, &rack->window_persist);
    image_bool(image, &rack->has_dsack_round);
    image_u32(image, &rack->dsack_round);
    image_bool(image, &rack->probe_out);
    image_bool(image, &rack->probe_is_again);
    image_u32(image, &rack->probe_end);
}

static void image_recovery(struct image *image, struct tcp_conn *conn)
{
    image_u32(image, &conn->srtt_us);
    image_u32(image, &conn->rttvar_us);
    image_u32(image, &conn->rto_us);
    image_u32(image, &conn->min_rtt_us);
    image_u32(image, &conn->next_min_rtt_us);
    image_u64(image, &conn->min_rtt_since_us);
    image_u8(image, &conn->backoff);
    image_u8(image, &conn->recovery);
    image_u32(image, &conn->cwnd);
    image_u32(image, &conn->ssthresh);
    image_u32(image, &conn->cwnd_acked);
    image_u32(image, &conn->recovery_point);
    image_u32(image, &conn->prr_delivered);
    image_u32(image, &conn->prr_out);
    image_u32(image, &conn->prr_flight);
    image_u32(image, &conn->dup_acks);
    image_bool(image, &conn->was_limited);
    image_u64(image, &conn->cubic.epoch_us);
    image_u64(image, &conn->cubic.ack_us);
    image_u32(image, &conn->cubic.cwnd_prior);
    image_u32(image, &conn->cubic.w_max);
    image_u32(image, &conn->cubic.origin);
    image_u32(image, &conn->cubic.k_ms);
    image_u32(image, &conn->cubic.w_est);
    image_u32(image, &conn->cubic.acked);
    image_rack(image, &conn->rack);
}

static void image_timers(struct image *image, struct tcp_conn *conn)
{
    image_u64(image, &conn->ack_due_us);
    image_u64(image, &conn->rtx_due_us);
    image_u64(image, &conn->reorder_due_us);
    image_u64(image, &conn->life_due_us);
    image_u8(image, &conn->rtx_timer);
    image_u8(image, &conn->keep_alives);
    image_u64(image, &conn->heard_us);
    image_u64(image, &conn->rtx_set_us);
    image_u64(image, &conn->waited_us);
    image_u64(image, &conn->sent_us);
    image_u64(image, &conn->challenge_us);
    image_bool(image, &conn->syn_due);
    image_bool(image, &conn->ack_due);
    image_bool(image, &conn->probe_due);
    image_bool(image, &conn->window_probe_due);
    image_bool(image, &conn->keep_alive_due);
    image_u32(image, &conn->asked);
    image_u32(image, &conn->retransmits);
    image_u8(image, &conn->syn_tries);
}

static void image_conn(struct image *image, struct tcp *tcp,
                       struct tcp_conn *conn)
{
    if (image->to == NULL) {
        memset(conn, 0, sizeof(*conn));
        memset(conn->pages, 0xff, sizeof(conn->pages));
    }
    image_u8(image, &conn->state);
    image_sending(image, conn);
    image_receiving(image, conn);
    image_pages(image, tcp, conn);
    image_agreed(image, conn);
    image_recovery(image, conn);
    image_timers(image, conn);
}

static void image_wait(struct image *image, struct tcp_time_wait *wait)
{
    image_u32(image, &wait->snd_nxt);
    image_u32(image, &wait->rcv_nxt);
    image_u32(image, &wait->ts_recent);
    image_u32(image, &wait->times_base);
    image_u32(image, &wait->window);
    image_bool(image, &wait->has_times);
    image_u64(image, &wait->born_us);
    image_u64(image, &wait->due_us);
    image_u64(image, &wait->challenge_us);
}

static void image_half(struct image *image, struct tcp_half *half,
                       uint64_t *due_us)
{
    image_u64(image, due_us);
    image_u8(image, &half->state);
    image_u8(image, &half->listener);
    image_u8(image, &half->tries);
    image_u8(image, &half->shift);
    image_bool(image, &half->syn_due);
    image_bool(image, &half->has_shift);
    image_bool(image, &half->has_times);
    image_bool(image, &half->has_sack);
    image_bool(image, &half->has_ecn);
    image_bool(image, &half->echoes_ecn);
    image_bool(image, &half->is_again);
    image_u16(image, &half->mss);
    image_u32(image, &half->iss);
    image_u32(image, &half->irs);
    image_u32(image, &half->ts_recent);
    image_u32(image, &half->times_base);
    image_u64(image, &half->born_us);
    image_u64(image, &half->sent_us);
    image_u64(image, &half->challenge_us);
    image_bool(image, &half->was_waiting);
    image_wait(image, &half->wait);
}

/* ---- Nodes with what they stand for. */

/* The times of the engine that was saved may differ from those of this one. */
static uint64_t due_by(const struct tcp *tcp, uint64_t due_us, uint32_t most_ms)
{
    return MIN(due_us, tcp->now_us + TCP_MS(most_ms));
}

static uint64_t wait_adapt(const struct tcp *tcp, struct tcp_time_wait *wait)
{
    wait->due_us = due_by(tcp, wait->due_us, tcp->config.time_wait_ms);
    return wait->due_us;
}

/* The same for the life of a connection: whether there are keep-alive probes,
 * and when the next one is due. */
static void life_adapt(struct tcp *tcp, struct tcp_conn *conn)
{
    uint64_t due_us = conn->life_due_us;

    if (conn->state == TCP_STATE_FIN_WAIT_2) { /* what has begun goes on */
        conn->life_due_us = due_by(tcp, due_us, tcp->config.fin_wait_2_ms);
        return;
    }
    conn->life_due_us = DEADLINE_NONE;
    if (tcp->config.keep_alive_ms == 0 || !tcp_is_synchronized(conn)) {
        conn->keep_alives = 0;
        conn->keep_alive_due = false;
    } else {
        tcp_life_arm(tcp, conn);
        conn->life_due_us = MIN(conn->life_due_us, due_us);
    }
}

static void node_body(struct image *image, struct tcp *tcp, uint16_t index)
{
    if (index < tcp_first_half(tcp)) {
        struct tcp_conn *conn = &tcp->conns[index];

        image_conn(image, tcp, conn);
        if (image->to == NULL && !image->is_wrong) {
            image->is_wrong = !tcp_conn_is_sound(tcp, conn);
        }
        if (image->to == NULL && !image->is_wrong) {
            life_adapt(tcp, conn);
            tcp_output_want(tcp, conn);
            tcp_timer_sync(tcp, conn);
        }
    } else if (index < tcp_first_wait(tcp)) {
        struct tcp_half *half = tcp_half(tcp, index);
        uint64_t due_us = tcp->deadlines.table[index].due;

        image_half(image, half, &due_us);
        if (image->to == NULL) {
            image->is_wrong |=
                !tcp_half_is_sound(tcp, half) || due_us == DEADLINE_NONE;
            due_us = due_by(tcp, due_us,
                            MAX(tcp->config.give_up_ms, HALF_ANSWER_MAX_MS));
            if (half->was_waiting) {
                (void)wait_adapt(tcp, &half->wait);
            }
            deadlines_set(&tcp->deadlines, index, due_us);
            tcp->saved->half_due =
                (uint16_t)(tcp->saved->half_due + (half->syn_due ? 1 : 0));
        }
    } else {
        struct tcp_time_wait *wait = tcp_wait(tcp, index);

        image_wait(image, wait);
        if (image->to == NULL) {
            image->is_wrong |= !tcp_wait_is_sound(tcp, wait);
            deadlines_set(&tcp->deadlines, index, wait_adapt(tcp, wait));
        }
    }
}

static void image_node(struct image *image, struct tcp *tcp, uint16_t index)
{
    struct tcp_node *node = &tcp->nodes[index];
    bool is_used = node->used;
    struct tcp_ends ends = node->ends;
    uint32_t route = node->route;

    image_u16(image, &node->generation);
    image->is_wrong |= node->generation == 0;
    image_bool(image, &is_used);
    if (image->is_wrong || !is_used) {
        return;
    }
    image_ends(image, &ends);
    image_u32(image, &route);
    if (image->to == NULL) {
        image->is_wrong |= !tcp_node_restore(tcp, index, &ends, route);
    }
    if (!image->is_wrong) {
        node_body(image, tcp, index);
    }
}

static void image_all(struct image *image, struct tcp *tcp)
{
    image_same(image, IMAGE_MAGIC);
    image_same(image, IMAGE_VERSION);
    image_config(image, &tcp->config);
    image_engine(image, tcp);
    if (image->to == NULL && !image->is_wrong) {
        image->is_wrong = !tcp_saved_is_sound(tcp);
    }
    for (uint16_t i = 0; !image->is_wrong && i < tcp->nodes_count; i++) {
        image_node(image, tcp, i);
    }
}

size_t tcp_image_bytes(const struct tcp_config *config)
{
    return tcp_bytes(config) + IMAGE_EXTRA;
}

size_t tcp_save(struct tcp *tcp, uint8_t *image, size_t room)
{
    struct image writer = {.to = image, .len = room};

    tcp_call_begin(tcp, tcp->now_us);
    image_all(&writer, tcp);
    return writer.is_wrong ? 0 : writer.at;
}

bool tcp_load(struct tcp *tcp, const uint8_t *image, size_t len)
{
    struct image reader = {.from = image, .len = len};
    struct tcp_config config = tcp->config;

    tcp_call_begin(tcp, tcp->now_us);
    tcp_empty(tcp);
    image_all(&reader, tcp);
    if (reader.is_wrong || reader.at != len) {
        tcp->config = config;
        tcp_empty(tcp);
        return false;
    }
    tcp_nodes_relink(tcp);
    return true;
}
