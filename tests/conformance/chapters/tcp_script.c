/* SPDX-License-Identifier: BSD-2-Clause */
#include "tcp_script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_lib.h"
#include "tcp_peer.h"

enum {
    LINE = 256,
    TOKENS = 64,
    CONNS = 8,
    WORKS_PEER = 6, /* net_settle() has the last one. */
    OWN_PORT = 40000,
    WORKS_PORT = 50000,
    BYTES = 10000,
    ECT_0 = 2,
    CE = 3,
    AT_ONCE_US = 5000,
    EARLY_US = 2000,
    QUOTED = 8, /* Bytes of a segment in an ICMP error. */
    IPV4_HEADERS = 40,
    IPV6_HEADERS = 60,
};

struct conn {
    struct tcp_peer peer;
    unsigned int number;
    bool exists;
    bool is_v6;
    unsigned int port;
    uint16_t own_port, drive_port, vlan;
    uint8_t priority;
    uint32_t isn;
    uint32_t last_tsval;
    uint32_t sent_end; /* Of what the drive has sent; see is_repeated(). */
    uint32_t got;      /* Bytes of the drive that "received" has taken. */
};

struct script {
    struct conf *conf;
    struct conn conns[CONNS];
    struct conn *now;
    uint64_t mark_us; /* The last segment in either direction. */
    unsigned int works;
    const uint8_t *bytes;
    bool is_off;
    /* The line, cut into words. */
    char line[LINE], text[LINE];
    char *words[TOKENS];
    unsigned int count, at;
    /* Time before the command. */
    bool has_time;
    double after_s, until_s;
};

/* ---- Words. */

static void script_complain(struct script *script, const char *what)
{
    conf_fail(script->conf, "%s, at: %.120s", what, script->line);
}

static void line_cut(struct script *script, const char *line, size_t len)
{
    char *save = NULL;

    ASSERT(len < LINE);
    memcpy(script->line, line, len);
    script->line[len] = '\0';
    memcpy(script->text, script->line, len + 1);
    script->text[strcspn(script->text, "#")] = '\0';
    script->count = script->at = 0;
    for (char *word = strtok_r(script->text, " ,", &save); word != NULL;
         word = strtok_r(NULL, " ,", &save)) {
        ASSERT(script->count < TOKENS);
        if (strlen(word) > 1) { /* The brackets around options. */
            word += word[0] == '<';
            word[strcspn(word, ">")] = '\0';
        }
        script->words[script->count++] = word;
    }
}

static const char *word_next(struct script *script)
{
    return script->at < script->count ? script->words[script->at++] : "";
}

static bool word_take(struct script *script, const char *word)
{
    if (script->at < script->count &&
        strcmp(script->words[script->at], word) == 0) {
        script->at++;
        return true;
    }
    return false;
}

static uint32_t number_next(struct script *script)
{
    return (uint32_t)strtoul(word_next(script), NULL, 0);
}

static void time_read(struct script *script)
{
    char *end;

    script->has_time =
        script->at < script->count && script->words[script->at][0] == '+';
    script->after_s = script->until_s = 0;
    if (script->has_time) {
        script->after_s = strtod(script->words[script->at++] + 1, &end);
        script->until_s =
            strncmp(end, "..", 2) == 0 ? strtod(end + 2, NULL) : 0;
    }
}

static uint64_t in_us(double seconds)
{
    return (uint64_t)(seconds * 1e6 + 0.5);
}

static bool is_virtual(const struct script *script)
{
    return conf_target(script->conf)->is_virtual;
}

/* ---- The connection. */

static struct tcp_peer *script_peer(struct script *script)
{
    struct conn *conn = script->now;
    struct tcp_peer *peer = &conn->peer;

    if (!conn->exists) {
        conn->exists = true;
        *peer = tcp_peer_new(script->conf, conn->number, conn->port,
                             conn->is_v6, conn->own_port, conn->drive_port);
        if (conn->isn != 0) {
            peer->isn = conn->isn;
        }
        peer->path.vlan = conn->vlan;
        peer->path.priority = conn->priority;
        peer->path.tagged = conn->vlan != 0 || conn->priority != 0;
    }
    return peer;
}

/* ---- Segments of the peer. */

static uint8_t flags_read(struct script *script)
{
    static const char names[] = "FSRP.UEW";
    const char *word = word_next(script);
    uint8_t flags = 0;

    for (; *word != '\0' && *word != '-'; word++) {
        const char *name = strchr(names, *word);

        if (name == NULL) {
            script_complain(script, "unknown flag");
            return 0;
        }
        flags |= (uint8_t)BIT(name - names);
    }
    return flags;
}

static void range_read(struct script *script, uint32_t *seq, uint32_t *len)
{
    unsigned long begin = 0, end = 0, count = 0;

    if (sscanf(word_next(script), "%lu:%lu(%lu)", &begin, &end, &count) != 3 ||
        end != begin + count) {
        script_complain(script, "this is no SEQ:END(LEN)");
    }
    *seq = (uint32_t)begin;
    *len = (uint32_t)count;
}

static bool block_next(struct script *script, uint32_t *left, uint32_t *right)
{
    unsigned long l, r;

    if (script->at == script->count ||
        sscanf(script->words[script->at], "%lu:%lu", &l, &r) != 2) {
        return false;
    }
    script->at++;
    *left = (uint32_t)l;
    *right = (uint32_t)r;
    return true;
}

static void put_option_long(struct tcp_peer_out *out, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8) {
        out->options[out->options_len++] = (uint8_t)(value >> shift);
    }
}

static void sacks_write(struct script *script, struct tcp_peer_out *out,
                        uint32_t base)
{
    size_t at = out->options_len;
    uint32_t left, right;

    out->options[out->options_len++] = 5;
    out->options_len++;
    while (block_next(script, &left, &right)) {
        put_option_long(out, left + base);
        put_option_long(out, right + base);
    }
    out->options[at + 1] = (uint8_t)(out->options_len - at);
}

static void bytes_write(struct script *script, struct tcp_peer_out *out)
{
    const char *hex = word_next(script);

    for (; hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
        char pair[3] = {hex[0], hex[1], '\0'};

        out->options[out->options_len++] = (uint8_t)strtoul(pair, NULL, 16);
    }
}

/* @return false: the word is no option */
static bool option_write(struct script *script, struct tcp_peer_out *out)
{
    uint8_t *to = out->options + out->options_len;

    if (word_take(script, "mss")) {
        out->options_len += tcp_peer_mss(to, (uint16_t)number_next(script));
    } else if (word_take(script, "ws")) {
        memcpy(to, (uint8_t[]){3, 3, (uint8_t)number_next(script)}, 3);
        out->options_len += 3;
    } else if (word_take(script, "sackOK")) {
        memcpy(to, (uint8_t[]){4, 2}, 2);
        out->options_len += 2;
    } else if (word_take(script, "TS")) {
        uint32_t tsval = number_next(script);
        uint32_t tsecr;

        (void)word_take(script, "ecr");
        tsecr = word_take(script, "last") ? script->now->last_tsval
                                          : number_next(script);
        out->options_len += tcp_peer_times(to, tsval, tsecr);
    } else if (word_take(script, "sack")) {
        sacks_write(script, out, script->now->peer.iss);
    } else if (word_take(script, "nop")) {
        out->options[out->options_len++] = 1;
    } else if (word_take(script, "eol")) {
        out->options[out->options_len++] = 0;
    } else if (word_take(script, "bytes")) {
        bytes_write(script, out);
    } else {
        return false;
    }
    return true;
}

/* @return false: the word is no manner of sending */
static bool manner_read(struct script *script, struct tcp_peer_out *out,
                        unsigned int *times)
{
    if (word_take(script, "ect")) {
        out->tos = ECT_0;
    } else if (word_take(script, "ce")) {
        out->tos = CE;
    } else if (word_take(script, "sum")) {
        out->checksum_xor = 0x0100;
    } else if (word_take(script, "zerosum")) {
        out->has_zero_sum = true;
    } else if (word_take(script, "words")) {
        out->data_offset = (uint8_t)number_next(script);
    } else if (word_take(script, "cut")) {
        out->cut_bytes = number_next(script);
    } else if (word_take(script, "urgent")) {
        out->urgent = (uint16_t)number_next(script);
    } else if (word_take(script, "fragment")) {
        out->fragment_at = (uint16_t)number_next(script);
    } else if (word_take(script, "ipoption")) {
        out->has_ip_options = true;
    } else if (word_take(script, "x")) {
        *times = number_next(script);
    } else {
        return false;
    }
    return true;
}

static void peer_sends(struct script *script)
{
    struct tcp_peer *peer = script_peer(script);
    struct tcp_peer_out out = {.flags = flags_read(script), .window = 65535};
    unsigned int times = 1;
    uint32_t at, len;

    range_read(script, &at, &len);
    ASSERT(at + len <= BYTES + 1 || len == 0);
    out.seq = peer->isn + at;
    out.len = len;
    out.data = script->bytes + (at != 0 ? at - 1 : 0);
    while (script->at < script->count) {
        if (word_take(script, "ack")) {
            out.ack = peer->iss + number_next(script);
        } else if (word_take(script, "win")) {
            out.window = (uint16_t)number_next(script);
        } else if (!option_write(script, &out) &&
                   !manner_read(script, &out, &times)) {
            script_complain(script, "unknown word");
        }
    }
    for (unsigned int i = 0; i < times; i++) {
        tcp_peer_send(peer, &out);
    }
    script->mark_us = conf_now_us(script->conf);
}

/* ---- Segments of the drive. */

static void note_segment(struct script *script, const struct tcp_peer_in *in)
{
    static const char names[] = "FSRP.UEW";
    const struct tcp_peer *peer = &script->now->peer;
    char text[160] = "";
    int len = 0;

    for (unsigned int i = 0; i < 8; i++) {
        if ((in->flags & BIT(i)) != 0) {
            text[len++] = names[i];
        }
    }
    len += snprintf(text + len, sizeof(text) - (size_t)len,
                    " %u:(%u) ack %u win %u", in->seq - peer->iss, in->len,
                    in->ack - peer->isn, in->window);
    for (uint8_t i = 0; i < in->num_blocks; i++) {
        len += snprintf(text + len, sizeof(text) - (size_t)len, " sack %u:%u",
                        in->blocks[i].left - peer->isn,
                        in->blocks[i].right - peer->isn);
    }
    conf_note(script->conf, "%10.6f the drive sent %s",
              (double)in->packet->time_us / 1e6, text);
}

static void bytes_check(struct script *script, const struct tcp_peer_in *in)
{
    uint32_t at = in->seq - script->now->peer.iss - 1;

    for (uint32_t i = 0; i < in->len; i++) {
        conf_check(script->conf, in->data[i] == tcp_peer_byte(at + i),
                   "byte %u of the stream: expected %02x, got %02x", at + i,
                   tcp_peer_byte(at + i), in->data[i]);
    }
}

/* Take the drive's next segment, if one comes in time. */
static bool segment_take(struct script *script, struct tcp_peer_in *in,
                         uint64_t timeout_us)
{
    struct conn *conn = script->now;

    if (!tcp_peer_take(script_peer(script), in, timeout_us)) {
        return false;
    }
    if ((in->flags & SEG_SYN) != 0) {
        conn->peer.iss = in->seq;
    }
    note_segment(script, in);
    if (in->has_times) {
        conf_check(script->conf,
                   conn->last_tsval == 0 ||
                       (int32_t)(in->tsval - conn->last_tsval) >= 0,
                   "the drive's timestamps went back");
        conn->last_tsval = in->tsval;
    }
    script->mark_us = MAX(script->mark_us, in->packet->time_us);
    return true;
}

static void check_time(struct script *script, const struct tcp_peer_in *in,
                       uint64_t since_us)
{
    uint64_t least_us = in_us(script->after_s);
    uint64_t most_us = script->until_s != 0
                           ? in_us(script->until_s)
                           : least_us + least_us / 20 + AT_ONCE_US;
    uint64_t took_us =
        in->packet->time_us > since_us ? in->packet->time_us - since_us : 0;

    if (!is_virtual(script)) {
        return;
    }
    conf_check(script->conf,
               took_us + EARLY_US >= least_us && took_us <= most_us,
               "the segment came after %.6f s, at: %.100s",
               (double)took_us / 1e6, script->line);
}

static void options_check(struct script *script, const struct tcp_peer_in *in)
{
    struct conf *conf = script->conf;
    bool is_v6 = script->now->is_v6;
    unsigned int mtu = conf_target(conf)->mtu_bytes;

    if (word_take(script, "mss")) {
        unsigned int own =
            mtu - (is_v6 ? (unsigned int)IPV6_HEADERS : IPV4_HEADERS);

        conf_check(conf, in->has_mss, "the option MSS is missing");
        conf_equal(conf, "MSS", in->mss,
                   word_take(script, "own") ? own : number_next(script));
    } else if (word_take(script, "ws")) {
        conf_check(conf, in->has_shift, "the option window scale is missing");
        conf_equal(conf, "window scale", in->shift, number_next(script));
    } else if (word_take(script, "sackOK")) {
        conf_check(conf, in->has_sack_permitted,
                   "the option SACK permitted is missing");
    } else if (word_take(script, "TS")) {
        (void)word_take(script, "ecr");
        conf_check(conf, in->has_times, "the option timestamps is missing");
        if (!word_take(script, "any")) {
            conf_equal(conf, "echoed timestamp", in->tsecr,
                       number_next(script));
        }
    } else if (word_take(script, "no")) {
        const char *name = word_next(script);

        conf_check(
            conf,
            !(strcmp(name, "mss") == 0 && in->has_mss) &&
                !(strcmp(name, "ws") == 0 && in->has_shift) &&
                !(strcmp(name, "sackOK") == 0 && in->has_sack_permitted) &&
                !(strcmp(name, "TS") == 0 && in->has_times),
            "the option %s was not agreed", name);
    } else {
        script_complain(script, "unknown word");
    }
}

static void blocks_check(struct script *script, const struct tcp_peer_in *in,
                         uint8_t *checked)
{
    uint32_t base = script->now->peer.isn;
    uint32_t left, right;

    while (block_next(script, &left, &right)) {
        conf_check(script->conf,
                   *checked < in->num_blocks &&
                       in->blocks[*checked].left == left + base &&
                       in->blocks[*checked].right == right + base,
                   "SACK block %u is another one, at: %.100s", *checked + 1,
                   script->line);
        (*checked)++;
    }
}

/* In real time, the drive may send bytes or a FIN again before a script goes
 * on. What is sent again on purpose has a test in virtual time. */
static bool is_repeated(struct script *script, const struct tcp_peer_in *in)
{
    struct conn *conn = script->now;
    uint32_t space = in->len + ((in->flags & SEG_FIN) != 0 ? 1 : 0);
    uint32_t end = in->seq + space - conn->peer.iss;

    if (space == 0 || (in->flags & (SEG_SYN | SEG_RST)) != 0) {
        return false;
    }
    if (end <= conn->sent_end) {
        return !is_virtual(script);
    }
    conn->sent_end = end;
    return false;
}

/* A bare ACK in front of the data that are waited for, in real time. */
static bool is_early_ack(const struct script *script,
                         const struct tcp_peer_in *in, uint32_t len)
{
    return !is_virtual(script) && len != 0 && in->len == 0 &&
           in->flags == SEG_ACK && in->num_blocks == 0;
}

static void drive_sends(struct script *script, bool is_absolute)
{
    struct conf *conf = script->conf;
    struct tcp_peer *peer = script_peer(script);
    uint64_t since_us = script->mark_us;
    uint8_t flags = flags_read(script);
    uint8_t checked = 0;
    struct tcp_peer_in in;
    uint32_t seq, len;
    uint8_t ecn = 0;

    range_read(script, &seq, &len);
    if (is_virtual(script)) {
        uint64_t longest_s = (uint64_t)MAX(script->after_s, script->until_s);

        if (!segment_take(script, &in,
                          (longest_s + 1) * 2000000 + in_us(script->after_s))) {
            script_complain(script, "the drive sent nothing");
        }
    } else {
        do {
            (void)segment_take(script, &in, 0);
        } while (is_early_ack(script, &in, len) || is_repeated(script, &in));
    }
    if (!is_absolute) {
        seq += peer->iss;
    }
    if (in.flags != flags || in.seq != seq || in.len != len) {
        script_complain(script, "the drive sent another segment");
    }
    while (script->at < script->count) {
        if (word_take(script, "ack")) {
            conf_equal(conf, "acknowledgement", in.ack - peer->isn,
                       number_next(script));
        } else if (word_take(script, "win")) {
            conf_equal(conf, "window", in.window, number_next(script));
        } else if (word_take(script, "sack")) {
            blocks_check(script, &in, &checked);
        } else if (word_take(script, "ect")) {
            ecn = ECT_0;
        } else {
            options_check(script, &in);
        }
    }
    conf_equal(conf, "number of SACK blocks", in.num_blocks, checked);
    conf_equal(conf, "ECN field of the IP header", in.packet->tos & 3, ecn);
    conf_equal(conf, "VLAN", in.packet->eth.vlan, script->now->vlan);
    conf_equal(conf, "priority", in.packet->eth.priority,
               script->now->priority);
    bytes_check(script, &in);
    check_time(script, &in, since_us);
}

/* ---- Other commands. */

/* Let the time pass; without one, let the drive do what it does at once. */
static void time_pass(struct script *script)
{
    if (script->after_s != 0) {
        conf_pass(script->conf, in_us(script->after_s));
    } else if (is_virtual(script)) {
        conf_pass(script->conf, AT_ONCE_US);
    } else { /* One turn takes the bytes, and another one answers. */
        net_settle(script->conf, script->now->port);
        net_settle(script->conf, script->now->port);
    }
}

static void check_quiet(struct script *script)
{
    struct tcp_peer_in in;

    time_pass(script);
    while (segment_take(script, &in, 1)) {
        if (!is_repeated(script, &in)) {
            script_complain(script, "the drive sent something");
        }
    }
}

static void segments_drop(struct script *script)
{
    struct tcp_peer_in in;

    time_pass(script);
    while (segment_take(script, &in, 1)) {
        bytes_check(script, &in);
    }
}

static void check_count(struct script *script, bool is_least)
{
    struct tcp_peer_in in;
    uint32_t limit = number_next(script);
    unsigned int got = 0;

    time_pass(script);
    while (segment_take(script, &in, 1)) {
        bytes_check(script, &in);
        got += in.len != 0 ? 1 : 0;
    }
    conf_check(script->conf, is_least ? got >= limit : got <= limit,
               "%u segments with data came, at: %.100s", got, script->line);
}

/* Take bytes of the drive and acknowledge them, as a plain receiver does.  What
 * the peer has sent is in its numbers: the drive acknowledges the echo. */
static void bytes_receive(struct script *script)
{
    struct conn *conn = script->now;
    struct tcp_peer *peer = script_peer(script);
    uint32_t end = number_next(script);
    struct tcp_peer_in in;

    while (conn->got < end) {
        (void)segment_take(script, &in, 0);
        conf_check(script->conf, (in.flags & SEG_RST) == 0,
                   "the drive has reset the connection");
        bytes_check(script, &in);
        if (in.len == 0 || in.seq - peer->iss - 1 > conn->got) {
            continue;
        }
        conn->got = MAX(conn->got, in.seq - peer->iss - 1 + in.len);
        tcp_peer_send(peer, &(struct tcp_peer_out){
                                .seq = in.ack,
                                .ack = peer->iss + 1 + conn->got,
                                .flags = SEG_ACK,
                                .window = 65535,
                            });
    }
    script->mark_us = conf_now_us(script->conf);
}

static void icmp_send(struct script *script)
{
    struct tcp_peer *peer = script_peer(script);
    uint8_t type = (uint8_t)number_next(script);
    uint8_t code = (uint8_t)number_next(script);
    uint32_t rest = number_next(script);
    uint32_t seq = peer->iss + number_next(script);
    struct packet_path quoted = peer->path;
    uint8_t inner[FRAME_LEN_MAX], frame[FRAME_LEN_MAX];
    uint8_t segment[QUOTED] = {
        (uint8_t)(peer->drive_port >> 8),
        (uint8_t)peer->drive_port,
        (uint8_t)(peer->own_port >> 8),
        (uint8_t)peer->own_port,
        (uint8_t)(seq >> 24),
        (uint8_t)(seq >> 16),
        (uint8_t)(seq >> 8),
        (uint8_t)seq,
    };
    size_t len, head;

    quoted.src = peer->path.dst;
    quoted.dst = peer->path.src;
    quoted.vlan = 0;
    quoted.tagged = false;
    len = packet_ip(inner, &quoted, 6, segment, sizeof(segment));
    head = len - sizeof(segment) - (script->now->is_v6 ? 40 : 20);
    conf_send_frame(script->conf, peer->port, frame,
                    packet_icmp(frame, &peer->path, type, code, rest,
                                inner + head, len - head),
                    0);
}

static void check_works(struct script *script)
{
    struct tcp_peer peer =
        tcp_peer_new(script->conf, WORKS_PEER, 0, false,
                     (uint16_t)(WORKS_PORT + script->works++), TCP_PEER_ECHO);

    conf_note(script->conf, "another connection is opened, and echoes");
    tcp_peer_open(&peer);
    tcp_peer_echo(&peer, 5);
}

static void conn_choose(struct script *script)
{
    unsigned int number = number_next(script);

    ASSERT(number < CONNS);
    script->now = &script->conns[number];
}

static bool conn_describe(struct script *script)
{
    struct conn *conn = script->now;

    if (word_take(script, "to")) {
        conn->drive_port = (uint16_t)number_next(script);
    } else if (word_take(script, "from")) {
        conn->own_port = (uint16_t)number_next(script);
    } else if (word_take(script, "v6")) {
        conn->is_v6 = true;
    } else if (word_take(script, "port")) {
        conn->port = number_next(script);
        if (conn->port >= conf_target(script->conf)->num_ports) {
            conf_not_applicable(script->conf, "one port is connected");
        }
    } else if (word_take(script, "vlan")) {
        conn->vlan = (uint16_t)number_next(script);
    } else if (word_take(script, "priority")) {
        conn->priority = (uint8_t)number_next(script);
    } else if (word_take(script, "isn")) {
        conn->isn = number_next(script);
    } else {
        return false;
    }
    return true;
}

static bool command_check(struct script *script)
{
    if (word_take(script, "quiet")) {
        check_quiet(script);
    } else if (word_take(script, "drop")) {
        segments_drop(script);
    } else if (word_take(script, "received")) {
        bytes_receive(script);
    } else if (word_take(script, "most")) {
        check_count(script, false);
    } else if (word_take(script, "least")) {
        check_count(script, true);
    } else if (word_take(script, "noicmp")) {
        conf_expect_none(script->conf, "an ICMP error", net_is_error, NULL,
                         AT_ONCE_US);
    } else if (word_take(script, "works")) {
        check_works(script);
    } else {
        return false;
    }
    return true;
}

static void command_run(struct script *script)
{
    bool is_absolute = word_take(script, "abs");

    if (word_take(script, ">")) {
        drive_sends(script, is_absolute);
        return;
    }
    if (command_check(script)) {
        return;
    }
    if (script->after_s != 0) {
        conf_pass(script->conf, in_us(script->after_s));
    }
    if (word_take(script, "<")) {
        peer_sends(script);
    } else if (word_take(script, "conn")) {
        conn_choose(script);
    } else if (word_take(script, "icmp")) {
        icmp_send(script);
    } else if (word_take(script, "on")) {
        tcp_peer_services(script->conf, true);
    } else if (word_take(script, "off")) {
        tcp_peer_services(script->conf, false);
    } else if (!word_take(script, "virtual") && !conn_describe(script)) {
        script_complain(script, "unknown command");
    }
}

static void script_play(struct script *script, const char *lines)
{
    while (*lines != '\0') {
        size_t len = strcspn(lines, "\n");

        line_cut(script, lines, len);
        if (script->count != 0) {
            conf_note(script->conf, "script: %s", script->line);
            time_read(script);
            command_run(script);
        }
        lines += len + (lines[len] == '\n' ? 1 : 0);
    }
}

void tcp_script_run(struct conf *conf)
{
    struct script *script = conf_alloc(conf, sizeof(*script));
    uint8_t *bytes = conf_alloc(conf, BYTES);

    for (uint32_t i = 0; i < BYTES; i++) {
        bytes[i] = tcp_peer_byte(i);
    }
    script->conf = conf;
    script->bytes = bytes;
    script->now = &script->conns[0];
    for (unsigned int i = 0; i < CONNS; i++) {
        script->conns[i].number = i;
        script->conns[i].own_port = (uint16_t)(OWN_PORT + i);
        script->conns[i].drive_port = TCP_PEER_ECHO;
    }
    if (strncmp(conf_text(conf), "virtual\n", 8) == 0 && !is_virtual(script)) {
        conf_not_applicable(conf, "the test needs virtual time: run natively");
    }
    tcp_peer_begin(conf);
    script_play(script, conf_text(conf));
    tcp_peer_end(conf);
}
