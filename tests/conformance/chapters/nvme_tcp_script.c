/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvme_tcp_script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tls_peer.h"

enum {
    LINE = 2048,
    WORDS = 256,
    CONNS = 160,
    HOSTS = NVME_TCP_SCRIPT_HOSTS,
    TTAGS = 10,
    DIGESTS = 8,
    DIGEST = 4,
    ROOM = 300000, /* bytes of a line */
    PIECE = 8192,  /* of H2CData of "write" */
    NQN = 256,
    HOSTID = 16,
    HEADER = 24,
    SILENCE_US = 100000,
};

/* A byte that is compared, or any. */
struct expected {
    uint8_t value;
    bool is_any;
    uint8_t *keep; /* where the one that comes is kept, too */
};

struct script {
    struct conf *conf;
    struct stream conns[CONNS];
    struct tls_peer *tls[CONNS]; /* NULL: plain */
    struct {
        unsigned int port;
        bool is_v6;
        uint16_t drive_port;
        unsigned int host;
    } how[CONNS];
    unsigned int now, host, opened[HOSTS];
    uint8_t cntlid[HOSTS][2], ttag[TTAGS][2];
    /* The line, cut into words. */
    char line[LINE], text[LINE];
    char *words[WORDS];
    unsigned int count, at;
    /* The bytes of the line. */
    struct expected *bytes;
    uint8_t *plain;
    uint32_t len;
    struct digest {
        uint32_t from, at; /* it covers the bytes from there up to itself */
        uint32_t xor ;
    } digests[DIGESTS];
    unsigned int num_digests;
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
    for (char *word = strtok_r(script->text, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        ASSERT(script->count < WORDS);
        script->words[script->count++] = word;
    }
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
    if (script->at == script->count) {
        script_complain(script, "a number is missing");
    }
    return (uint32_t)strtoul(script->words[script->at++], NULL, 0);
}

/* A number of `len` bytes, in digits as on the wire. */
static uint32_t wire_next(struct script *script, unsigned int len)
{
    uint32_t value = 0;
    char pair[3] = {0};

    if (script->at == script->count ||
        strlen(script->words[script->at]) != 2 * (size_t)len) {
        script_complain(script, "bytes are missing");
    }
    for (unsigned int i = 0; i < len; i++) {
        memcpy(pair, script->words[script->at] + 2 * (size_t)i, 2);
        value |= (uint32_t)strtoul(pair, NULL, 16) << 8 * i;
    }
    script->at++;
    return value;
}

/* ---- Bytes. */

/* RFC 3720 appendix B.4, bit by bit. */
static uint32_t crc32c_bits(const uint8_t *bytes, size_t len)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
        }
    }
    return ~crc;
}

static uint32_t get_wire(const uint8_t *p, unsigned int len)
{
    uint32_t value = 0;

    for (unsigned int i = 0; i < len; i++) {
        value |= (uint32_t)p[i] << 8 * i;
    }
    return value;
}

static void put_wire(uint8_t *p, uint32_t value)
{
    for (unsigned int i = 0; i < DIGEST; i++) {
        p[i] = (uint8_t)(value >> 8 * i);
    }
}

static uint32_t digest_of(const struct digest *digest, const uint8_t *bytes)
{
    return crc32c_bits(bytes + digest->from, digest->at - digest->from);
}

static uint8_t data_byte(uint32_t seed, uint32_t at)
{
    return (uint8_t)(at * 13 + at / 256 * 7 + at / 65536 * 5 + seed * 29 + 1);
}

static void byte_add(struct script *script, uint8_t value)
{
    ASSERT(script->len < ROOM);
    script->bytes[script->len++] = (struct expected){.value = value};
}

static void text_add(struct script *script, const char *text, uint32_t room)
{
    size_t len = strlen(text);

    for (uint32_t i = 0; i < room; i++) {
        byte_add(script, i < len ? (uint8_t)text[i] : 0);
    }
}

static void hostnqn_add(struct script *script)
{
    char name[64] = "nqn.2014-08.org.example:nvme-tcp-peer";

    if (script->host != 0) {
        snprintf(name + strlen(name), sizeof(name) - strlen(name), "-%u",
                 script->host + 1);
    }
    text_add(script, name, NQN);
}

static void hostid_add(struct script *script)
{
    char name[HOSTID + 1];

    snprintf(name, sizeof(name), "nvme-tcp-peer-%02u",
             script->host % HOSTS + 1);
    text_add(script, name, HOSTID);
}

static void kept_add(struct script *script, uint8_t *kept)
{
    for (unsigned int i = 0; i < 2; i++) {
        byte_add(script, kept[i]);
        script->bytes[script->len - 1].keep = &kept[i];
    }
}

static void any_add(struct script *script, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++) {
        byte_add(script, 0);
        script->bytes[script->len - 1].is_any = true;
    }
}

static void digest_end(struct script *script, uint32_t xor)
{
    struct digest *digest = &script->digests[script->num_digests++];

    digest->at = script->len;
    digest->xor = xor;
    any_add(script, DIGEST);
}

static void digits_add(struct script *script, const char *digits)
{
    for (; digits[0] != '\0'; digits += 2) {
        char pair[3] = {digits[0], digits[1], '\0'};
        char *end;

        if (strcmp(pair, "..") == 0) {
            any_add(script, 1);
            continue;
        }
        byte_add(script, (uint8_t)strtoul(pair, &end, 16));
        if (end != pair + 2) {
            script_complain(script, "unknown word");
        }
    }
}

static void numbers_add(struct script *script, bool is_data)
{
    uint32_t seed = is_data ? number_next(script) : 0;
    uint32_t len = number_next(script);
    uint32_t from = is_data ? number_next(script) : 0;

    for (uint32_t i = 0; i < len; i++) {
        byte_add(script, is_data ? data_byte(seed, from + i) : 0);
    }
}

static void word_add(struct script *script)
{
    const char *word = script->words[script->at++];

    if (strcmp(word, "any") == 0) {
        any_add(script, number_next(script));
    } else if (strcmp(word, "zero") == 0 || strcmp(word, "data") == 0) {
        numbers_add(script, word[0] == 'd');
    } else if (strcmp(word, "[") == 0) {
        ASSERT(script->num_digests < DIGESTS);
        script->digests[script->num_digests].from = script->len;
    } else if (word[0] == ']') {
        digest_end(script, word[1] == '!' ? 0x00100000 : 0);
    } else if (strcmp(word, "sqhd") == 0) {
        any_add(script, 2);
    } else if (strcmp(word, "cntlid") == 0) {
        kept_add(script, script->cntlid[script->host]);
    } else if (strncmp(word, "ttag", 4) == 0) {
        kept_add(script, script->ttag[word[4] - '0']);
    } else if (strcmp(word, "subnqn") == 0) {
        text_add(script, conf_target(script->conf)->nqn, NQN);
    } else if (strcmp(word, "discnqn") == 0) {
        text_add(script, "nqn.2014-08.org.nvmexpress.discovery", NQN);
    } else if (strcmp(word, "hostnqn") == 0) {
        hostnqn_add(script);
    } else if (strcmp(word, "hostid") == 0) {
        hostid_add(script);
    } else {
        digits_add(script, word);
    }
}

static void bytes_read(struct script *script)
{
    script->len = 0;
    script->num_digests = 0;
    while (script->at < script->count) {
        word_add(script);
    }
}

/* ---- Commands. */

/* Each host but the first one has the address of a stranger. */
static void stream_begin(struct script *script, struct stream *stream)
{
    uint16_t drive_port = script->how[script->now].drive_port;
    uint16_t own_port =
        nvme_tcp_own_port(script->conf, script->opened[script->host]++);
    struct tcp_peer peer;

    script->how[script->now].host = script->host;
    stream->peer.conf = script->conf;
    if (script->host == 0) {
        stream_open(stream, 0, script->how[script->now].port,
                    script->how[script->now].is_v6, own_port, drive_port);
    } else {
        peer = tcp_peer_stranger(script->conf, script->host, drive_port);
        peer.own_port = own_port;
        stream_open_peer(stream, &peer);
    }
}

static struct stream *stream_now(struct script *script)
{
    struct stream *stream = &script->conns[script->now];

    if (!stream->is_open) {
        stream_begin(script, stream);
    }
    return stream;
}

static void conn_choose(struct script *script, unsigned int conn)
{
    ASSERT(conn < CONNS);
    script->now = conn;
    if (script->conns[conn].is_open) {
        script->host = script->how[conn].host;
    }
}

static void host_sends(struct script *script, uint32_t piece)
{
    bytes_read(script);
    for (uint32_t i = 0; i < script->len; i++) {
        script->plain[i] = script->bytes[i].value;
    }
    for (unsigned int i = 0; i < script->num_digests; i++) {
        const struct digest *digest = &script->digests[i];

        put_wire(script->plain + digest->at,
                 digest_of(digest, script->plain) ^ digest->xor);
    }
    if (script->tls[script->now] != NULL) {
        tls_peer_send(script->tls[script->now], script->plain, script->len);
    } else {
        stream_send(stream_now(script), script->plain, script->len, piece);
    }
}

static void note_bytes(struct script *script, const uint8_t *got, uint32_t len)
{
    char text[3 * 32 + 1] = "";

    for (uint32_t i = 0; i < len && i < 32; i++) {
        snprintf(text + (size_t)3 * i, 4, "%02x ", got[i]);
    }
    conf_note(script->conf, "connection %u, %u bytes: %s%s", script->now, len,
              text, len > 32 ? "..." : "");
}

static void drive_sends(struct script *script)
{
    struct tls_peer *tls = script->tls[script->now];
    const uint8_t *got;

    bytes_read(script);
    got = tls != NULL ? tls_peer_take(tls, script->len)
                      : stream_take(stream_now(script), script->len);
    note_bytes(script, got, script->len);
    for (uint32_t i = 0; i < script->len; i++) {
        const struct expected *expected = &script->bytes[i];

        if (expected->keep != NULL) {
            *expected->keep = got[i];
        } else if (!expected->is_any && got[i] != expected->value) {
            conf_fail(script->conf,
                      "byte %u: expected %02x, got %02x, at: %.120s", i,
                      expected->value, got[i], script->line);
        }
    }
    for (unsigned int i = 0; i < script->num_digests; i++) {
        const struct digest *digest = &script->digests[i];

        conf_equal(script->conf, "digest", get_wire(got + digest->at, DIGEST),
                   digest_of(digest, got));
    }
}

static void check_quiet(struct script *script)
{
    struct stream *stream = stream_now(script);

    while (stream_poll(stream, SILENCE_US)) {
    }
    if (stream_ready(stream) != 0) {
        uint32_t len = stream_ready(stream);

        note_bytes(script, stream_take(stream, len), len);
        script_complain(script, "the drive sent something");
    }
    conf_check(script->conf, !stream->is_finished && !stream->is_reset,
               "the drive has ended the connection");
}

static void wait_for_end(struct script *script, bool may_close, bool may_reset,
                         bool may_send)
{
    struct stream *stream = stream_now(script);

    while (!stream->is_finished && !stream->is_reset) {
        (void)stream_poll(stream, 0);
    }
    conf_check(script->conf, may_close || !stream->is_finished,
               "the drive has sent a FIN, not a RST");
    conf_check(script->conf, may_reset || !stream->is_reset,
               "the drive has sent a RST, not a FIN");
    conf_equal(script->conf, "bytes before the end",
               may_send ? 0 : stream->got - stream->taken, 0);
    if (stream->is_finished && !stream->has_finished) {
        stream_send_flags(stream, SEG_FIN | SEG_ACK);
    }
}

/* Answer an R2T. */
static void data_send(struct script *script, const uint8_t *r2t, uint32_t seed)
{
    uint8_t *pdu = script->plain;
    uint32_t offset = get_wire(r2t + 12, 4), len = get_wire(r2t + 16, 4);

    for (uint32_t done = 0; done < len;) {
        uint32_t now = MIN(len - done, (uint32_t)PIECE);

        memset(pdu, 0, HEADER);
        memcpy(pdu, (uint8_t[]){6, done + now == len ? 4 : 0, HEADER, HEADER},
               4);
        put_wire(pdu + 4, HEADER + now);
        memcpy(pdu + 8, r2t + 8, 4); /* CCCID and TTAG */
        put_wire(pdu + 12, offset + done);
        put_wire(pdu + 16, now);
        for (uint32_t i = 0; i < now; i++) {
            pdu[HEADER + i] = data_byte(seed, offset + done + i);
        }
        stream_send(stream_now(script), pdu, HEADER + now, 0);
        done += now;
    }
}

/* R2Ts until all data was asked for. */
static void data_write(struct script *script)
{
    uint32_t cid = wire_next(script, 2);
    uint32_t seed = number_next(script), len = number_next(script);

    for (uint32_t done = 0; done < len;) {
        uint8_t r2t[HEADER];

        memcpy(r2t, stream_take(stream_now(script), HEADER), HEADER);
        note_bytes(script, r2t, HEADER);
        conf_equal(script->conf, "PDU type", r2t[0], 9);
        conf_equal(script->conf, "CCCID", get_wire(r2t + 8, 2), cid);
        conf_equal(script->conf, "R2TO", get_wire(r2t + 12, 4), done);
        conf_check(script->conf, get_wire(r2t + 16, 4) - 1 < len - done,
                   "the R2T is for %u bytes", get_wire(r2t + 16, 4));
        data_send(script, r2t, seed);
        done += get_wire(r2t + 16, 4);
    }
}

/* C2HData until all data has come; the last one has LAST. */
static void data_read(struct script *script)
{
    uint32_t cid = wire_next(script, 2);
    uint32_t seed = number_next(script), len = number_next(script);

    for (uint32_t done = 0; done < len;) {
        uint8_t header[HEADER];
        const uint8_t *data;
        uint32_t now;

        memcpy(header, stream_take(stream_now(script), HEADER), HEADER);
        note_bytes(script, header, HEADER);
        now = get_wire(header + 16, 4);
        conf_equal(script->conf, "PDU type", header[0], 7);
        conf_equal(script->conf, "CCCID", get_wire(header + 8, 2), cid);
        conf_equal(script->conf, "DATAO", get_wire(header + 12, 4), done);
        conf_equal(script->conf, "PLEN", get_wire(header + 4, 4), HEADER + now);
        conf_check(script->conf, now - 1 < len - done, "DATAL is %u", now);
        conf_equal(script->conf, "FLAGS", header[1], done + now == len ? 4 : 0);
        data = stream_take(stream_now(script), now);
        for (uint32_t i = 0; i < now; i++) {
            if (data[i] != data_byte(seed, done + i)) {
                conf_fail(script->conf, "byte %u of the data: %02x, not %02x",
                          done + i, data[i], data_byte(seed, done + i));
            }
        }
        done += now;
    }
}

static void shake_hands(struct script *script)
{
    struct tls_peer *tls = tls_peer_new(script->conf, stream_now(script));

    if (word_take(script, "discovery")) {
        tls->subnqn = TLS_PEER_DISCOVERY;
    }
    tls_peer_shake(tls);
    script->tls[script->now] = tls;
}

static bool conn_describe(struct script *script)
{
    if (word_take(script, "to")) {
        script->how[script->now].drive_port = (uint16_t)number_next(script);
    } else if (word_take(script, "v6")) {
        script->how[script->now].is_v6 = true;
    } else if (word_take(script, "port")) {
        script->how[script->now].port = number_next(script);
        if (script->how[script->now].port >=
            conf_target(script->conf)->num_ports) {
            conf_not_applicable(script->conf, "one port is connected");
        }
    } else if (word_take(script, "tls")) {
        shake_hands(script);
    } else if (word_take(script, "conn")) {
        conn_choose(script, number_next(script));
    } else if (word_take(script, "host")) {
        script->host = number_next(script);
        ASSERT(script->host < HOSTS);
    } else {
        return false;
    }
    return true;
}

static bool end_check(struct script *script)
{
    if (word_take(script, "closes")) {
        wait_for_end(script, true, false, false);
    } else if (word_take(script, "resets")) {
        wait_for_end(script, false, true, false);
    } else if (word_take(script, "ends")) {
        wait_for_end(script, true, true, true);
    } else if (word_take(script, "quiet")) {
        check_quiet(script);
    } else {
        return false;
    }
    return true;
}

static bool host_does(struct script *script)
{
    if (word_take(script, "fin")) {
        stream_send_flags(stream_now(script), SEG_FIN | SEG_ACK);
    } else if (word_take(script, "rst")) {
        stream_send_flags(stream_now(script), SEG_RST | SEG_ACK);
        stream_now(script)->is_reset = true;
    } else if (word_take(script, "mute")) {
        stream_now(script)->is_mute = true;
    } else if (word_take(script, "window")) {
        stream_now(script)->own_window = (uint16_t)number_next(script);
    } else if (word_take(script, "pass")) {
        conf_pass(script->conf, number_next(script) * UINT64_C(1000000));
    } else {
        return false;
    }
    return true;
}

static void command_run(struct script *script)
{
    if (script->words[0][0] == '<') {
        script->at = 1;
        host_sends(script, (uint32_t)strtoul(script->words[0] + 1, NULL, 0));
    } else if (word_take(script, ">")) {
        drive_sends(script);
    } else if (word_take(script, "write")) {
        data_write(script);
    } else if (word_take(script, "read")) {
        data_read(script);
    } else if (!end_check(script) && !host_does(script) &&
               !conn_describe(script) && !word_take(script, "virtual")) {
        script_complain(script, "unknown command");
    }
}

void nvme_tcp_script_lines(struct script *script, const char *lines)
{
    while (*lines != '\0') {
        size_t len = strcspn(lines, "\n");

        line_cut(script, lines, len);
        if (script->count != 0) {
            conf_note(script->conf, "script: %s", script->line);
            command_run(script);
        }
        lines += len + (lines[len] == '\n' ? 1 : 0);
    }
}

/* A drive that goes on keeps no connection of the test. */
void nvme_tcp_script_end(struct script *script)
{
    for (unsigned int i = 0; i < CONNS; i++) {
        if (script->conns[i].is_open && !script->conns[i].is_reset) {
            stream_send_flags(&script->conns[i], SEG_RST | SEG_ACK);
        }
    }
}

struct script *nvme_tcp_script_new(struct conf *conf)
{
    struct script *script = conf_alloc(conf, sizeof(*script));

    script->conf = conf;
    script->bytes = conf_alloc(conf, ROOM * sizeof(script->bytes[0]));
    script->plain = conf_alloc(conf, ROOM);
    memset(script->cntlid, 0xff, sizeof(script->cntlid));
    for (unsigned int i = 0; i < CONNS; i++) {
        script->how[i].drive_port = STREAM_PORT;
    }
    return script;
}

void nvme_tcp_script_play(struct conf *conf)
{
    struct script *script = nvme_tcp_script_new(conf);

    nvme_tcp_script_lines(script, conf_text(conf));
    nvme_tcp_script_end(script);
}

void nvme_tcp_script_begin(struct conf *conf, bool is_virtual)
{
    if (is_virtual && !conf_target(conf)->is_virtual) {
        conf_not_applicable(conf, "the test needs virtual time: run natively");
    }
    conf_needs_block(conf);
    nvme_tcp_service_start(conf);
}

void nvme_tcp_script_run(struct conf *conf)
{
    nvme_tcp_script_begin(conf, strncmp(conf_text(conf), "virtual\n", 8) == 0);
    nvme_tcp_script_play(conf);
}
