/* SPDX-License-Identifier: BSD-2-Clause */
/* Scripts in the manner of packetdrill: see script.h. */
#include "tests/unit/net/tcp/script.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bytes.h"
#include "tests/unit/net/tcp/invariant.h"

enum { LINE_MAX = 256, TOKENS_MAX = 40, CE = 3, ECT_0 = 2 };

const char script_open[] =
    "< S 0:0(0) win 65535 <mss 1460,sackOK,TS 100 ecr 0,ws 7>\n"
    "> S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,TS 0 ecr 100,ws 3>\n"
    "+0.04 < . 1:1(0) ack 1 win 512 <TS 100 ecr last>\n"
    "state ESTABLISHED\n";

const char script_open_plain[] = "< S 0:0(0) win 65535 <mss 1000>\n"
                                 "> S. 0:0(0) ack 1 <mss 1460>\n"
                                 "+0.04 < . 1:1(0) ack 1 win 65535\n"
                                 "state ESTABLISHED\n";

/* One line, cut at spaces, commas and angle brackets. */
struct words {
    char text[LINE_MAX];
    char *word[TOKENS_MAX];
    unsigned int count, at;
};

static void words_cut(struct words *words, const char *line, size_t len)
{
    char *save = NULL;

    ASSERT(len < sizeof(words->text));
    memcpy(words->text, line, len);
    words->text[len] = '\0';
    words->text[strcspn(words->text, "#")] = '\0';
    words->count = words->at = 0;
    for (char *word = strtok_r(words->text, " ,", &save); word != NULL;
         word = strtok_r(NULL, " ,", &save)) {
        ASSERT(words->count < TOKENS_MAX);
        /* Brackets around options only help the eye. */
        if (words->count > 1) {
            word += word[0] == '<';
            word[strcspn(word, ">")] = '\0';
        }
        words->word[words->count++] = word;
    }
}

static const char *words_next(struct words *words)
{
    return words->at < words->count ? words->word[words->at++] : "";
}

static bool words_take(struct words *words, const char *word)
{
    if (words->at < words->count && strcmp(words->word[words->at], word) == 0) {
        words->at++;
        return true;
    }
    return false;
}

static uint32_t words_number(struct words *words)
{
    return (uint32_t)strtoul(words_next(words), NULL, 0);
}

static void script_complain(const struct script *script, const char *what)
{
    fail_msg("%s\n  in the line: %.100s", what, script->line);
}

/* ---- Time. */

static void time_pass(struct script *script, uint64_t us)
{
    struct host *host = script->host;
    uint64_t until_us = host->now_us + us;

    while (tcp_deadline(host->tcp) <= until_us) {
        host->now_us = MAX(host->now_us, tcp_deadline(host->tcp));
        host_settle(host);
        tcp_check(host->tcp);
    }
    host->now_us = until_us;
    host_settle(host);
}

/* ---- Segments. */

struct wanted {
    struct tcp_header header;
    uint32_t len;
    bool has_ack, has_window, has_ecr;
    uint8_t ecn;
};

static uint8_t flags_read(const char *word)
{
    static const char names[] = "FSRP.UEW";
    uint8_t flags = 0;

    for (; *word != '\0'; word++) {
        const char *name = strchr(names, *word);

        if (name != NULL) {
            flags |= (uint8_t)BIT(name - names);
        } else {
            ASSERT(*word == '-');
        }
    }
    return flags;
}

static void sacks_read(struct words *words, struct tcp_options *options,
                       uint32_t base)
{
    unsigned long left, right;

    while (words->at < words->count &&
           sscanf(words->word[words->at], "%lu:%lu", &left, &right) == 2) {
        words->at++;
        options->sacks[options->sack_count++] =
            (struct tcp_block){(uint32_t)left + base, (uint32_t)right + base};
    }
}

/* @param ours  whether the segment is one of ours */
static void segment_read(struct script *script, struct words *words, bool ours,
                         struct wanted *wanted)
{
    struct tcp_header *header = &wanted->header;
    struct tcp_options *options = &header->options;
    uint32_t seq_base = ours ? script->iss : script->peer_isn;
    uint32_t ack_base = ours ? script->peer_isn : script->iss;
    unsigned long seq, end, len;

    *wanted = (struct wanted){0};
    header->flags = flags_read(words_next(words));
    if (sscanf(words_next(words), "%lu:%lu(%lu)", &seq, &end, &len) != 3 ||
        end != seq + len) {
        script_complain(script, "this is no SEQ:END(LEN)");
    }
    header->seq = (uint32_t)seq + seq_base;
    wanted->len = (uint32_t)len;
    while (words->at < words->count) {
        if (words_take(words, "ack")) {
            wanted->has_ack = true;
            header->ack = words_number(words) + ack_base;
        } else if (words_take(words, "win")) {
            wanted->has_window = true;
            header->window = (uint16_t)words_number(words);
        } else if (words_take(words, "mss")) {
            options->has_mss = true;
            options->mss = (uint16_t)words_number(words);
        } else if (words_take(words, "ws")) {
            options->has_shift = true;
            options->shift = (uint8_t)words_number(words);
        } else if (words_take(words, "sackOK")) {
            options->sack_permitted = true;
        } else if (words_take(words, "TS")) {
            options->has_times = true;
            options->tsval = words_number(words);
            (void)words_take(words, "ecr");
            options->tsecr = words_take(words, "last") ? script->last_tsval
                                                       : words_number(words);
        } else if (words_take(words, "sack")) {
            sacks_read(words, options, ack_base);
        } else if (words_take(words, "ce")) {
            wanted->ecn = CE;
        } else if (words_take(words, "ect")) {
            wanted->ecn = ECT_0;
        } else {
            script_complain(script, "unknown word");
        }
    }
}

static void peer_sends(struct script *script, struct words *words)
{
    struct tcp_ends peer = {script->ends.remote, script->ends.local,
                            script->ends.remote_port, script->ends.local_port};
    struct wanted segment;
    uint8_t data[TCP_LEN_MAX + 65536];
    size_t len;

    segment_read(script, words, false, &segment);
    segment.header.src_port = peer.local_port;
    segment.header.dst_port = peer.remote_port;
    len = tcp_header_emit(&segment.header, data);
    for (uint32_t i = 0; i < segment.len; i++) {
        data[len++] =
            host_pattern(segment.header.seq - script->peer_isn - 1 + i);
    }
    put_be16(data + TCP_CHECKSUM, 0);
    put_be16(data + TCP_CHECKSUM,
             tcp_checksum(&peer.local, &peer.remote, data, len));
    host_input(script->host, &peer, segment.ecn, data, len);
}

static void print_segment(const struct script *script,
                          const struct tcp_header *header, size_t len)
{
    static const char names[] = "FSRP.UEW";

    fprintf(stderr, "  sent: ");
    for (unsigned int i = 0; i < 8; i++) {
        if ((header->flags & BIT(i)) != 0) {
            fputc(names[i], stderr);
        }
    }
    fprintf(stderr, " %u:(%zu) ack %u win %u", header->seq - script->iss, len,
            header->ack - script->peer_isn, header->window);
    for (uint8_t i = 0; i < header->options.sack_count; i++) {
        fprintf(stderr, " sack %u:%u",
                header->options.sacks[i].left - script->peer_isn,
                header->options.sacks[i].right - script->peer_isn);
    }
    fputc('\n', stderr);
}

static bool options_match(const struct wanted *wanted,
                          const struct tcp_options *got)
{
    const struct tcp_options *want = &wanted->header.options;

    return got->sack_count == want->sack_count &&
           memcmp(got->sacks, want->sacks,
                  got->sack_count * sizeof(got->sacks[0])) == 0 &&
           (!want->has_mss || got->mss == want->mss) &&
           (!want->has_shift || got->shift == want->shift) &&
           (!want->has_times || got->tsecr == want->tsecr) &&
           (!want->sack_permitted || got->sack_permitted);
}

static void data_check(const struct script *script,
                       const struct tcp_header *header, const uint8_t *data,
                       uint32_t len)
{
    for (uint32_t i = 0; i < len; i++) {
        if (data[i] != host_pattern(header->seq - script->iss - 1 + i)) {
            script_complain(script, "other data than announced");
        }
    }
}

static void engine_sent(struct script *script, struct words *words,
                        bool has_time)
{
    struct host_frame *frame = host_frame(script->host);
    struct wanted wanted;
    struct tcp_header got;
    uint32_t len;

    if (frame == NULL) {
        script_complain(script, "nothing was sent");
        return;
    }
    ASSERT(tcp_header_parse(&got, frame->data, frame->len_bytes));
    ASSERT(tcp_checksum(&frame->ends.local, &frame->ends.remote, frame->data,
                        frame->len_bytes) == 0);
    len = frame->len_bytes - got.header_len;
    if ((got.flags & TCP_SYN) != 0) {
        script->iss = got.seq;
    }
    segment_read(script, words, true, &wanted);
    if (got.options.has_times) {
        script->last_tsval = got.options.tsval;
    }
    if (got.flags != wanted.header.flags || got.seq != wanted.header.seq ||
        len != wanted.len || frame->ecn != wanted.ecn ||
        (wanted.has_ack && got.ack != wanted.header.ack) ||
        (wanted.has_window && got.window != wanted.header.window) ||
        !options_match(&wanted, &got.options)) {
        print_segment(script, &got, len);
        script_complain(script, "another segment was sent");
    }
    if (has_time && script->host->now_us - frame->at_us > 1000) {
        script_complain(script, "it was sent before that time");
    }
    data_check(script, &got, frame->data + got.header_len, len);
    host_frame_done(script->host);
}

/* Forget what was sent, but for the newest timestamp. */
static void frames_drop(struct script *script)
{
    struct host_frame *frame;
    struct tcp_header got;

    while ((frame = host_frame(script->host)) != NULL) {
        ASSERT(tcp_header_parse(&got, frame->data, frame->len_bytes));
        if (got.options.has_times) {
            script->last_tsval = got.options.tsval;
        }
        host_frame_done(script->host);
    }
}

static void check_quiet(struct script *script)
{
    struct host_frame *frame = host_frame(script->host);
    struct tcp_header got;

    if (frame != NULL) {
        ASSERT(tcp_header_parse(&got, frame->data, frame->len_bytes));
        print_segment(script, &got, frame->len_bytes - got.header_len);
        script_complain(script, "something was sent");
    }
}

/* ---- Commands. */

static const char *state_of(struct script *script)
{
    struct tcp_info info;

    return tcp_info(script->host->tcp, script->id, &info)
               ? tcp_state_name[info.state]
               : "CLOSED";
}

static void check_word(struct script *script, const char *got, const char *want)
{
    if (strcmp(got, want) != 0) {
        fprintf(stderr, "  got: %s\n", got);
        script_complain(script, "not as expected");
    }
}

static void check_number(struct script *script, uint64_t got, uint64_t want)
{
    if (got != want) {
        fprintf(stderr, "  got: %llu\n", (unsigned long long)got);
        script_complain(script, "not as expected");
    }
}

static void check_counter(struct script *script, struct words *words)
{
    const char *name = words_next(words);

    for (int i = 0; i < TCP_COUNTERS; i++) {
        if (strcmp(name, tcp_counter_name[i]) == 0) {
            check_number(script,
                         tcp_counter(script->host->tcp, (enum tcp_counter)i),
                         words_number(words));
            return;
        }
    }
    script_complain(script, "there is no such counter");
}

static void check_usage(struct script *script, struct words *words)
{
    struct tcp_usage usage = tcp_usage(script->host->tcp);

    check_number(script, usage.connections, words_number(words));
    check_number(script, usage.half_open, words_number(words));
    check_number(script, usage.time_waits, words_number(words));
    check_number(script, usage.pages, words_number(words));
}

static void command_icmp(struct script *script, struct words *words)
{
    struct host *host = script->host;
    enum tcp_icmp type = TCP_ICMP_UNREACHABLE;
    uint32_t mtu = 0;

    if (words_take(words, "big")) {
        type = TCP_ICMP_TOO_BIG;
        mtu = words_number(words);
    } else if (words_take(words, "soft")) {
        type = TCP_ICMP_SOFT;
    } else {
        ASSERT(words_take(words, "unreachable"));
    }
    tcp_icmp(host->tcp, type, &script->ends, words_number(words) + script->iss,
             mtu, host->now_us);
    host_settle(host);
}

static void command_connect(struct script *script)
{
    struct host *host = script->host;

    script->id = tcp_connect(host->tcp, &script->ends, 0, host->now_us);
    assert_int_not_equal(script->id, TCP_NO_ID);
    host->conns[script->id & 0xffff] = (struct host_conn){.id = script->id};
    script->is_active = true;
    host_settle(host);
}

static void command_conn(struct script *script, const char *command,
                         struct words *words)
{
    struct host *host = script->host;

    if (strcmp(command, "send") == 0) {
        host_send(host, script->id, words_number(words));
    } else if (strcmp(command, "consume") == 0) {
        tcp_consume(host->tcp, script->id, words_number(words), host->now_us);
    } else if (strcmp(command, "close") == 0) {
        tcp_close(host->tcp, script->id, host->now_us);
    } else {
        ASSERT(strcmp(command, "abort") == 0);
        tcp_abort(host->tcp, script->id, host->now_us);
    }
    host_settle(host);
}

static void check_received(struct script *script, struct words *words)
{
    struct host_conn *conn = &script->host->conns[script->id & 0xffff];

    check_number(script, conn->received, words_number(words));
    assert_false(conn->is_wrong);
}

static bool is_one_of(const char *word, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, list[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool command_switch(struct script *script, const char *command,
                           struct words *words)
{
    struct host *host = script->host;

    if (strcmp(command, "refuse") == 0) {
        host->refuses = true;
    } else if (strcmp(command, "ignore") == 0) {
        host->ignores = true;
    } else if (strcmp(command, "full") == 0) {
        host->is_full = true;
    } else if (strcmp(command, "room") == 0) {
        host->is_full = false;
        host->rooms = 0;
        host_settle(host);
    } else if (strcmp(command, "rooms") == 0) {
        host->rooms = words_number(words);
    } else if (strcmp(command, "lose") == 0) {
        host->lost_from = words_number(words);
    } else {
        return false;
    }
    return true;
}

static void command_run(struct script *script, const char *command,
                        struct words *words, bool has_time)
{
    static const char *const ends[TCP_ENDS] = {
        "closed", "aborted", "reset", "refused", "timeout", "unreachable"};
    static const char *const conn[] = {"send", "consume", "close", "abort"};

    if (strcmp(command, "<") == 0) {
        peer_sends(script, words);
    } else if (strcmp(command, ">") == 0) {
        engine_sent(script, words, has_time);
    } else if (strcmp(command, "quiet") == 0) {
        check_quiet(script);
    } else if (strcmp(command, "drop") == 0) {
        frames_drop(script);
    } else if (strcmp(command, "connect") == 0) {
        command_connect(script);
    } else if (is_one_of(command, conn, ARRAY_LEN(conn))) {
        command_conn(script, command, words);
    } else if (strcmp(command, "icmp") == 0) {
        command_icmp(script, words);
    } else if (strcmp(command, "state") == 0) {
        check_word(script, state_of(script), words_next(words));
    } else if (strcmp(command, "ended") == 0) {
        check_number(script, script->host->ended_count, 1);
        check_word(script, ends[script->host->end], words_next(words));
    } else if (strcmp(command, "received") == 0) {
        check_received(script, words);
    } else if (strcmp(command, "finished") == 0) {
        assert_true(script->host->conns[script->id & 0xffff].finished);
    } else if (strcmp(command, "counter") == 0) {
        check_counter(script, words);
    } else if (strcmp(command, "uses") == 0) {
        check_usage(script, words);
    } else if (!command_switch(script, command, words)) {
        script_complain(script, "unknown command");
    }
}

static void line_run(struct script *script, size_t len)
{
    struct words words;
    const char *command;
    bool has_time = false;

    words_cut(&words, script->line, len);
    if (words.count == 0) {
        return;
    }
    command = words_next(&words);
    if (command[0] == '+') {
        has_time = true;
        time_pass(script, (uint64_t)(strtod(command + 1, NULL) * 1e6 + 0.5));
        command = words_next(&words);
    }
    if (command[0] != '\0') {
        command_run(script, command, &words, has_time);
    }
    if (script->id == TCP_NO_ID && script->host->established_count != 0) {
        script->id = script->host->established_id;
    }
    tcp_check(script->host->tcp);
}

/* ---- Whole scripts. */

struct tcp_config script_config(void)
{
    struct tcp_config config = tcp_config_default();

    config.connections = 2;
    config.half_open = 2;
    config.time_waits = 2;
    config.pages = 64;
    config.congestion = TCP_NEWRENO;
    memset(config.secret, 0x5a, sizeof(config.secret));
    return config;
}

void script_begin(struct script *script, const struct tcp_config *config,
                  uint32_t peer_isn, uint32_t iss)
{
    *script = (struct script){
        .host = host_new(config),
        .ends = {ip_addr_from_v4(0x0a000002), ip_addr_from_v4(0x0a000001), 80,
                 40000},
        .peer_isn = peer_isn,
    };
    host_listen(script->host, 80, HOST_MANUAL);
    script->host->now_us =
        iss != 0 ? tcp_check_time_of_iss(script->host->tcp, &script->ends, iss)
                 : UINT64_C(1000000000);
    script->iss = iss;
}

void script_run(struct script *script, const char *lines)
{
    while (*lines != '\0') {
        size_t len = strcspn(lines, "\n");

        script->line = lines;
        line_run(script, len);
        lines += len + (lines[len] == '\n' ? 1 : 0);
    }
}

void script_end(struct script *script)
{
    host_free(script->host);
}

void script_play(const char *lines)
{
    struct tcp_config config = script_config();
    struct script script;

    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script_run(&script, lines);
    script_end(&script);
}
