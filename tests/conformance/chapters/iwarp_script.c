/* SPDX-License-Identifier: BSD-2-Clause */
#include "iwarp_script.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvme_tcp_peer.h"

enum {
    PORT = 4420,
    LISTEN_US = 100000,
    BEGIN_US = 20000,
    WINDOW = 65535,
    SEGMENT = 1400,
    STREAM = 1 << 16, /* bytes of either direction */
    ANY = 0x100,      /* any byte; with a mask: any high or low digit */
    ANY_HIGH = 0x200,
    ANY_LOW = 0x400,
    KEPT = 0x800,     /* any byte, which is kept */
    SETUP_FLAGS = 16, /* of a request or reply of MPA */
    SETUP_CRC = 0x40,
    SETUP_ENHANCED = 0x10,
    SETUP_LEN = 20, /* then IRD and ORD */
    ENHANCED_LEN = 4,
};

struct play {
    struct conf *conf;
    struct tcp_peer peer;
    unsigned int port, number; /* of the drive's port, and of connections */
    bool is_v6, has_no_crc, has_bad_crc, is_held;
    uint32_t segment;
    uint16_t window; /* of the peer */
    uint32_t sent;   /* bytes that the peer has sent */
    bool has_fin;    /* and its FIN */
    uint8_t *out;    /* held bytes */
    uint32_t out_len;
    uint8_t *in; /* bytes of the drive */
    uint32_t in_len, in_at;
    bool in_fin, in_rst;
    uint8_t kept[16];
    uint32_t kept_len;
    uint16_t *line; /* the bytes of a line, with ANY... */
    uint32_t line_len;
};

/* ---- Settings. */

static bool console_says(struct conf *conf, const char *command,
                         const char *text)
{
    return strstr(conf_console(conf, command), text) != NULL;
}

static void save_setting(struct conf *conf, const char *setting)
{
    char command[96];

    (void)conf_console(conf, "config discard");
    snprintf(command, sizeof(command), "config set %s", setting);
    (void)conf_console(conf, command);
    if (console_says(conf, "config save", "error")) {
        conf_not_run(conf, "the setting cannot be saved: %s", setting);
    }
}

/* Linux's listener may have to be made again after an earlier test. */
static void find_service(struct conf *conf)
{
    uint64_t until_us = conf_now_us(conf) + conf_answer_us(conf);

    if (!conf_target(conf)->has_iwarp) {
        conf_not_applicable(conf, "the target serves no iWARP (no --iwarp)");
    }
    while (!stream_port_listens(conf)) {
        conf_check(conf, conf_now_us(conf) < until_us,
                   "nothing listens on TCP port 4420");
        conf_pass(conf, LISTEN_US);
    }
}

void iwarp_service_start(struct conf *conf)
{
    if (!conf_target(conf)->is_ours) {
        find_service(conf);
        return;
    }
    if (!console_says(conf, "config", "nvme.iwarp")) {
        conf_not_applicable(conf, "the console has no setting nvme.iwarp");
    }
    if (!console_says(conf, "config get nvme.iwarp", "nvme.iwarp on")) {
        save_setting(conf, "nvme.iwarp on");
        conf_reset(conf);
    }
}

void iwarp_let_begin(struct conf *conf)
{
    if (!conf_target(conf)->is_ours) {
        conf_pass(conf, BEGIN_US);
    }
}

void iwarp_script_off(struct conf *conf)
{
    iwarp_service_start(conf);
    save_setting(conf, "nvme.iwarp off");
    conf_reset(conf);
    conf_check(conf,
               !console_says(conf, "config get nvme.iwarp", "nvme.iwarp on"),
               "nvme.iwarp is still on");
}

/* ---- CRC-32C, bit by bit. */

static uint32_t crc_of(const uint8_t *p, uint32_t len)
{
    uint32_t crc = 0xffffffff;

    for (uint32_t i = 0; i < len; i++) {
        crc ^= p[i];
        for (unsigned int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
        }
    }
    return ~crc;
}

/* ---- TCP. */

static void send_flags(struct play *play, uint8_t flags, const uint8_t *data,
                       uint32_t len)
{
    tcp_peer_send(&play->peer, &(struct tcp_peer_out){
                                   .seq = play->peer.isn + 1 + play->sent,
                                   .ack = play->peer.iss + 1 + play->in_len +
                                          (play->in_fin ? 1 : 0),
                                   .flags = flags,
                                   .window = play->window,
                                   .data = data,
                                   .len = len,
                               });
}

/* The peer has a window of 64 KiB on the drive's side, so nothing waits. */
static void send_bytes(struct play *play, const uint8_t *bytes, uint32_t len)
{
    if (play->is_held) {
        memcpy(play->out + play->out_len, bytes, len);
        play->out_len += len;
        return;
    }
    for (uint32_t at = 0; at < len;) {
        uint32_t n = MIN(len - at, play->segment);

        send_flags(play, SEG_ACK | SEG_PSH, bytes + at, n);
        play->sent += n;
        at += n;
    }
}

static bool take_segment(struct play *play, uint64_t timeout_us)
{
    struct tcp_peer_in in;

    if (!tcp_peer_take(&play->peer, &in, timeout_us)) {
        return false;
    }
    if (in.flags & SEG_RST) {
        play->in_rst = true;
        return true;
    }
    if (in.seq == play->peer.iss + 1 + play->in_len && !play->in_fin &&
        in.len <= play->window) {
        conf_check(play->conf, in.len <= STREAM - play->in_len,
                   "the drive sends too much");
        memcpy(play->in + play->in_len, in.data, in.len);
        play->in_len += in.len;
        play->in_fin = in.flags & SEG_FIN;
    }
    if (in.len != 0 || (in.flags & SEG_FIN)) {
        send_flags(play, SEG_ACK, NULL, 0);
    }
    return true;
}

/* Wait until the drive has sent `len` bytes that were not compared yet. */
static const uint8_t *next_bytes(struct play *play, uint32_t len)
{
    while (play->in_len - play->in_at < len) {
        conf_check(play->conf, !play->in_fin && !play->in_rst,
                   "the drive ends the connection; %u of %u bytes have come",
                   play->in_len - play->in_at, len);
        (void)take_segment(play, 0);
    }
    return play->in + play->in_at;
}

static void open_connection(struct play *play)
{
    play->peer =
        tcp_peer_new(play->conf, 0, play->port, play->is_v6,
                     nvme_tcp_own_port(play->conf, play->number++), PORT);
    play->sent = play->out_len = play->in_len = play->in_at = 0;
    play->has_fin = play->in_fin = play->in_rst = false;
    play->has_no_crc = play->is_held = false;
    play->window = WINDOW;
    tcp_peer_open(&play->peer);
}

/* ---- Bytes of a line. */

static void add_byte(struct play *play, unsigned int byte)
{
    conf_check(play->conf, play->line_len < STREAM, "the line is too long");
    play->line[play->line_len++] = (uint16_t)byte;
}

static void add_many(struct play *play, unsigned long count, unsigned int byte)
{
    while (count-- != 0) {
        add_byte(play, byte);
    }
}

static unsigned int digit_of(struct play *play, char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = strchr(digits, c);

    conf_check(play->conf, at != NULL && c != '\0', "\"%c\" in a script", c);
    return (unsigned int)(at - digits);
}

static const char *add_hex(struct play *play, const char *p)
{
    unsigned int high = p[0] == '?' ? ANY_HIGH : digit_of(play, p[0]) << 4;
    unsigned int low = p[1] == '?' ? ANY_LOW : digit_of(play, p[1]);

    add_byte(play, high | low);
    return p + 2;
}

static const char *add_text(struct play *play, const char *p)
{
    for (p++; *p != '"'; p++) {
        add_byte(play, (uint8_t)*p);
    }
    return p + 1;
}

static const char *add_counted(struct play *play, const char *p,
                               unsigned int byte)
{
    char *end;

    add_many(play, strtoul(p + 1, &end, 10), byte);
    return end;
}

static const char *add_padding(struct play *play, const char *p)
{
    char *end;
    unsigned long to = strtoul(p + 3, &end, 10);

    conf_check(play->conf, to >= play->line_len, "pad%lu in a script", to);
    add_many(play, to - play->line_len, 0);
    return end;
}

/* The last 8 bytes of the line are a number, which grows. */
static void add_to_last(struct play *play, unsigned long count)
{
    conf_check(play->conf, play->line_len >= 8, "@+%lu in a script", count);
    for (uint32_t i = 1; i <= 8; i++) {
        uint16_t *byte = &play->line[play->line_len - i];

        count += *byte;
        *byte = count & 0xff;
        count >>= 8;
    }
}

static const char *add_kept(struct play *play, const char *p)
{
    bool has_number = p[1] == '+' || p[1] == '=';
    unsigned long count = 0;
    char *end = NULL;
    uint32_t len = play->kept_len;

    if (isdigit((unsigned char)p[1])) {
        return add_counted(play, p, ANY | KEPT);
    }
    if (has_number) {
        count = strtoul(p + 2, &end, 10);
    }
    if (p[1] == '=') {
        len = (uint32_t)MIN(count, (unsigned long)len);
    }
    for (uint32_t i = 0; i < len; i++) {
        add_byte(play, play->kept[i]);
    }
    if (p[1] == '+') {
        add_to_last(play, count);
    }
    return has_number ? end : p + 1;
}

static void read_bytes(struct play *play, const char *p)
{
    play->line_len = 0;
    while (*p != '\0') {
        switch (*p) {
        case ' ':
            p++;
            break;
        case '"':
            p = add_text(play, p);
            break;
        case 'z':
            p = add_counted(play, p, 0);
            break;
        case 'x':
            p = add_counted(play, p, 0x5a);
            break;
        case '*':
            p = add_counted(play, p, ANY);
            break;
        case 'p':
            p = add_padding(play, p);
            break;
        case '@':
            p = add_kept(play, p);
            break;
        default:
            p = add_hex(play, p);
            break;
        }
    }
}

static void compare_byte(struct play *play, uint32_t at, uint8_t got)
{
    uint16_t expected = play->line[at];
    uint8_t mask = (uint8_t)((expected & ANY ? 0 : 0xff) &
                             (expected & ANY_HIGH ? 0x0f : 0xff) &
                             (expected & ANY_LOW ? 0xf0 : 0xff));

    if (expected & KEPT) {
        play->kept[play->kept_len++ % sizeof(play->kept)] = got;
    }
    conf_check(play->conf, ((got ^ expected) & mask) == 0,
               "byte %u: expected %02x, got %02x", at, expected & 0xff, got);
}

static void compare_bytes(struct play *play, const uint8_t *got)
{
    bool keeps = false;

    for (uint32_t i = 0; i < play->line_len; i++) {
        keeps |= (play->line[i] & KEPT) != 0;
    }
    if (keeps) {
        play->kept_len = 0;
    }
    for (uint32_t i = 0; i < play->line_len; i++) {
        compare_byte(play, i, got[i]);
    }
}

/* ---- Other targets than ours choose CRC, IRD and ORD for themselves. */

static bool line_begins(const struct play *play, const char *text)
{
    for (uint32_t i = 0; text[i] != '\0'; i++) {
        if (i >= play->line_len || play->line[i] != (uint8_t)text[i]) {
            return false;
        }
    }
    return play->line_len > SETUP_FLAGS;
}

/* A request asks for CRC, so that each target uses it. */
static void ask_for_crc(struct play *play)
{
    if (!conf_target(play->conf)->is_ours &&
        line_begins(play, "MPA ID Req Frame")) {
        play->line[SETUP_FLAGS] |= SETUP_CRC;
    }
}

static void allow_any_terms(struct play *play)
{
    if (!conf_target(play->conf)->is_ours &&
        line_begins(play, "MPA ID Rep Frame") &&
        (play->line[SETUP_FLAGS] & SETUP_ENHANCED) != 0) {
        for (uint32_t i = SETUP_LEN;
             i < SETUP_LEN + ENHANCED_LEN && i < play->line_len; i++) {
            play->line[i] = ANY;
        }
    }
}

/* ---- Commands. */

static void send_line(struct play *play, bool is_fpdu)
{
    uint8_t *bytes = conf_alloc(play->conf, play->line_len + 16);
    uint32_t len = 0;
    uint32_t crc = 0;

    if (is_fpdu) {
        bytes[len++] = (uint8_t)(play->line_len >> 8);
        bytes[len++] = (uint8_t)play->line_len;
    }
    for (uint32_t i = 0; i < play->line_len; i++) {
        bytes[len++] = (uint8_t)play->line[i];
    }
    if (is_fpdu) {
        len = (len + 3) / 4 * 4; /* the memory is zeroed */
        if (!play->has_no_crc) {
            crc = crc_of(bytes, len) ^ (play->has_bad_crc ? 0x100 : 0);
        }
        play->has_bad_crc = false;
        for (unsigned int i = 0; i < 4; i++) {
            bytes[len++] = (uint8_t)(crc >> 8 * i);
        }
    }
    send_bytes(play, bytes, len);
}

static void expect_line(struct play *play)
{
    allow_any_terms(play);
    compare_bytes(play, next_bytes(play, play->line_len));
    play->in_at += play->line_len;
    if (line_begins(play, "MPA ID Rep Frame")) {
        iwarp_let_begin(play->conf);
    }
}

static void expect_fpdu(struct play *play)
{
    const uint8_t *p = next_bytes(play, 2);
    uint32_t len = (uint32_t)p[0] << 8 | p[1];
    uint32_t whole = (2 + len + 3) / 4 * 4;
    uint32_t crc;

    p = next_bytes(play, whole + 4);
    crc = play->has_no_crc ? 0 : crc_of(p, whole);
    conf_equal(play->conf, "ULPDU_Length", len, play->line_len);
    for (uint32_t at = 2 + len; at < whole; at++) {
        conf_equal(play->conf, "padding", p[at], 0);
    }
    for (unsigned int i = 0; i < 4; i++) {
        conf_equal(play->conf, "a byte of the CRC", p[whole + i],
                   crc >> 8 * i & 0xff);
    }
    compare_bytes(play, p + 2);
    play->in_at += whole + 4;
}

/* @param end  "fin", "rst", or "end" for any of both */
static void expect_end(struct play *play, const char *end)
{
    while (!play->in_fin && !play->in_rst) {
        (void)take_segment(play, 0);
    }
    conf_check(play->conf, *end != 'f' || !play->in_rst,
               "the drive resets the connection");
    conf_check(play->conf, *end != 'r' || play->in_rst,
               "the drive closes the connection");
    conf_equal(play->conf, "bytes of the drive before the end",
               play->in_len - play->in_at, 0);
}

/* What the drive sends before is not compared. */
static void expect_rst_within(struct play *play, unsigned long seconds)
{
    uint64_t due_us = conf_now_us(play->conf) + seconds * 1000000;

    while (!play->in_rst && conf_now_us(play->conf) < due_us) {
        (void)take_segment(play, due_us - conf_now_us(play->conf));
    }
    conf_check(play->conf, play->in_rst, "there was no RST within %lu s",
               seconds);
}

static void expect_quiet(struct play *play)
{
    while (take_segment(play, CONF_SILENCE_US)) {
        conf_check(play->conf, !play->in_fin && !play->in_rst,
                   "the drive ends the connection");
    }
    conf_equal(play->conf, "bytes of the drive", play->in_len - play->in_at, 0);
}

static void send_fin(struct play *play)
{
    send_flags(play, SEG_ACK | SEG_FIN, NULL, 0);
    play->sent++;
}

static void let_go(struct play *play)
{
    uint32_t len = play->out_len;

    play->is_held = false;
    play->out_len = 0;
    send_bytes(play, play->out, len);
}

static const char *word_after(const char *line, const char *word)
{
    size_t len = strlen(word);

    return strncmp(line, word, len) == 0 &&
                   (line[len] == ' ' || line[len] == '\0')
               ? line + len + (line[len] == ' ')
               : NULL;
}

/* What a test in real time should not do for itself alone. */
static void need_virtual_time(struct play *play)
{
    if (!conf_target(play->conf)->is_virtual) {
        conf_not_applicable(play->conf, "it restarts the drive, or waits for "
                                        "long: natively only");
    }
}

static void play_prepare(struct play *play, const char *line)
{
    const char *rest;

    if ((rest = word_after(line, "set")) != NULL) {
        need_virtual_time(play);
        save_setting(play->conf, rest);
        conf_reset(play->conf);
    } else if (word_after(line, "v6") != NULL) {
        play->is_v6 = true;
    } else if ((rest = word_after(line, "port")) != NULL) {
        play->port = (unsigned int)strtoul(rest, NULL, 10);
    } else if ((rest = word_after(line, "cut")) != NULL) {
        play->segment = (uint32_t)strtoul(rest, NULL, 10);
    } else if ((rest = word_after(line, "window")) != NULL) {
        play->window = (uint16_t)strtoul(rest, NULL, 10);
    } else if ((rest = word_after(line, "wait")) != NULL) {
        unsigned long seconds = strtoul(rest, NULL, 10);

        if (seconds > 2) {
            need_virtual_time(play);
        }
        conf_pass(play->conf, seconds * 1000000);
    } else {
        conf_fail(play->conf, "a script has the line \"%s\"", line);
    }
}

static void play_stream(struct play *play, const char *line)
{
    const char *rest;

    if (word_after(line, "open") != NULL || word_after(line, "again") != NULL) {
        open_connection(play);
    } else if (word_after(line, "nocrc") != NULL) {
        play->has_no_crc = true;
    } else if (word_after(line, "badcrc") != NULL) {
        play->has_bad_crc = true;
    } else if (word_after(line, "hold") != NULL) {
        play->is_held = true;
    } else if (word_after(line, "go") != NULL) {
        let_go(play);
    } else if (word_after(line, "fin") != NULL) {
        send_fin(play);
    } else if (word_after(line, "quiet") != NULL) {
        expect_quiet(play);
    } else if ((rest = word_after(line, "rst")) != NULL) {
        need_virtual_time(play);
        expect_rst_within(play, strtoul(rest, NULL, 10));
    } else {
        play_prepare(play, line);
    }
}

static void play_line(struct play *play, const char *line)
{
    const char *rest;

    if ((rest = word_after(line, "<")) != NULL &&
        (strcmp(rest, "fin") == 0 || strcmp(rest, "rst") == 0 ||
         strcmp(rest, "end") == 0)) {
        expect_end(play, rest);
    } else if (rest != NULL) {
        read_bytes(play, rest);
        expect_line(play);
    } else if ((rest = word_after(line, ">")) != NULL) {
        read_bytes(play, rest);
        ask_for_crc(play);
        send_line(play, false);
    } else if ((rest = word_after(line, "f>")) != NULL) {
        read_bytes(play, rest);
        send_line(play, true);
    } else if ((rest = word_after(line, "f<")) != NULL) {
        read_bytes(play, rest);
        expect_fpdu(play);
    } else if (*line != '#' && *line != '\0') {
        play_stream(play, line);
    }
}

void iwarp_script_run(struct conf *conf)
{
    struct play *play = conf_alloc(conf, sizeof(*play));
    const char *p = conf_text(conf);

    *play = (struct play){
        .conf = conf,
        .segment = SEGMENT,
        .out = conf_alloc(conf, STREAM),
        .in = conf_alloc(conf, STREAM),
        .line = conf_alloc(conf, STREAM * sizeof(uint16_t)),
    };
    iwarp_service_start(conf);
    while (*p != '\0') {
        size_t len = strcspn(p, "\n");
        char *line = conf_alloc(conf, len + 1);

        memcpy(line, p, len);
        conf_note(conf, "%.120s", line);
        play_line(play, line);
        p += len + (p[len] == '\n');
    }
}
