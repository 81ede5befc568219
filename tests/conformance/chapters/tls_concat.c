/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chapter `tls`: secure channel concatenation.  A host authenticates without
 * TLS, generates a key with the drive, and connects again behind TLS with it.
 * The keys come from tls_maths.h.
 * Spec: NVM Express Base 2.1 section 8.3.4.3; NVMe TCP 1.1 section 3.6.1.
 */
#include <string.h>

#include "lib/bytes.h"
#include "tests/auth_secrets.h"
#include "tests/auth_host.h"
#include "tls_lib.h"

enum {
    SC_OBSOLETE = 1, /* values of SC_C */
    SC_NEW = 2,
    SC_REPLACE = 3,
    SHA256 = 1,
    SHA384 = 2,
    MESSAGE = 4096,
    PDU = 72 + MESSAGE,
    ATR = 0x20000,
    INVALID_PARAMETERS = 0x182,
    INVALID_HOST = 0x184,
    DECRYPT_ERROR = 51,
    WAIT_S = 120,
};

/* A connection of the host, plain or behind TLS. */
struct line {
    struct conf *conf;
    struct tls_peer *peer;
    struct auth_host host;
    uint16_t cntlid, cid;
    uint32_t authreq;
    uint8_t message[MESSAGE];
    uint8_t c1[64];
};

/* A key that was generated. */
struct key {
    uint8_t bytes[48];
    char digest[65];
    bool is_384;
};

/* ---- PDUs. */

static void put_bytes(struct line *line, const void *bytes, size_t len)
{
    if (line->peer->is_open) {
        tls_peer_send(line->peer, bytes, len);
    } else {
        stream_send(line->peer->stream, bytes, len, 0);
    }
}

static const uint8_t *take_bytes(struct line *line, uint32_t len)
{
    return line->peer->is_open ? tls_peer_take(line->peer, len)
                               : stream_take(line->peer->stream, len);
}

/* A capsule with a command, of which `at` 4 and 40 to 63 are in `fields`, and
 * its data. */
static void put_command(struct line *line, const uint8_t *fields,
                        const void *data, size_t len, size_t wanted)
{
    uint8_t *pdu = conf_alloc(line->conf, PDU);
    uint8_t *sqe = pdu + 8;

    memset(pdu, 0, PDU);
    pdu[0] = 4;
    pdu[2] = 72;
    pdu[3] = len != 0 ? 72 : 0;
    put_le32(pdu + 4, (uint32_t)(72 + len));
    sqe[0] = 0x7f;
    sqe[1] = 0x40;
    put_le16(sqe + 2, ++line->cid);
    sqe[4] = fields[0];
    put_le32(sqe + 32, (uint32_t)(len != 0 ? len : wanted));
    sqe[39] = len != 0 ? 0x01 : 0x5a;
    memcpy(sqe + 40, fields + 1, 24);
    if (len != 0) {
        memcpy(pdu + 72, data, len);
    }
    put_bytes(line, pdu, 72 + len);
}

/* @return the status, without the phase bit */
static uint16_t take_response(struct line *line, uint32_t *dw0)
{
    const uint8_t *pdu = take_bytes(line, 24);

    conf_equal(line->conf, "type of the PDU", pdu[0], 5);
    conf_equal(line->conf, "CID", get_le16(pdu + 8 + 12), line->cid);
    if (dw0 != NULL) {
        *dw0 = get_le32(pdu + 8);
    }
    return (uint16_t)(get_le16(pdu + 8 + 14) >> 1);
}

static void initialize_line(struct line *line)
{
    const uint8_t request[128] = {0, 0, 128, 0, 128};

    put_bytes(line, request, sizeof(request));
    conf_same(line->conf, "ICResp", take_bytes(line, 128),
              "\1\0\x80\0\x80\0\0\0", 8);
}

static uint16_t connect_queue(struct line *line, uint8_t qid)
{
    uint8_t fields[25] = {1};
    uint8_t data[1024] = {0};
    uint32_t dw0 = 0;
    uint16_t status;

    fields[1 + 2] = qid;
    fields[1 + 4] = 31;
    put_le32(fields + 1 + 8, 120000);
    memset(data, 0x42, 16);
    put_le16(data + 16, qid == 0 ? 0xffff : line->cntlid);
    memcpy(data + 256, conf_target(line->conf)->nqn,
           strlen(conf_target(line->conf)->nqn));
    memcpy(data + 512, TLS_PEER_HOST, strlen(TLS_PEER_HOST));
    put_command(line, fields, data, sizeof(data), 0);
    status = take_response(line, &dw0);
    if (status == 0) {
        line->cntlid = (uint16_t)dw0;
        line->authreq = dw0 & 0xffff0000;
    }
    return status;
}

static void enable_ctrl(struct line *line)
{
    uint8_t fields[25] = {0};

    put_le32(fields + 1 + 4, 0x14);
    put_le32(fields + 1 + 8, 0x00460001);
    put_command(line, fields, NULL, 0, 0);
    conf_status(line->conf, "Property Set of CC", take_response(line, NULL), 0);
}

/* ---- Connections. */

/* Prepare the drive: it has the host's secret, and TLS is allowed. */
static void begin_drive(struct conf *conf)
{
    tls_begin(conf, "allowed", NULL);
    tls_console(conf, "host add " TLS_PEER_HOST);
    tls_console(conf, "host secret " TLS_PEER_HOST " " SECRET);
    tls_console(conf, "host drive-secret " TLS_PEER_HOST " " DRIVE_SECRET);
}

static struct line *open_line(struct conf *conf, unsigned int index)
{
    struct line *line = conf_alloc(conf, sizeof(*line));

    memset(line, 0, sizeof(*line));
    line->conf = conf;
    line->peer = tls_connect(conf, index);
    return line;
}

/* An admin queue without TLS. */
static struct line *open_plain(struct conf *conf, unsigned int index)
{
    struct line *line = open_line(conf, index);

    initialize_line(line);
    conf_status(conf, "Connect", connect_queue(line, 0), 0);
    conf_equal(conf, "AUTHREQ: ATR without ASCR", line->authreq, ATR);
    return line;
}

static struct line *open_secure(struct conf *conf, unsigned int index,
                                const struct key *key)
{
    struct line *line = open_line(conf, index);

    line->peer->is_384 = key->is_384;
    line->peer->generated = key->bytes;
    line->peer->digest = key->digest;
    return line;
}

/* The handshake with this key is refused. */
static void expect_no_key(struct conf *conf, unsigned int index,
                          const struct key *key)
{
    struct line *line = open_secure(conf, index, key);

    tls_peer_hello(line->peer);
    tls_peer_refused(line->peer, DECRYPT_ERROR);
}

/* A queue behind TLS, which has to be proven by the key. */
static struct line *connect_secure(struct conf *conf, unsigned int index,
                                   const struct key *key, uint8_t qid,
                                   uint16_t cntlid)
{
    struct line *line = open_secure(conf, index, key);

    tls_peer_shake(line->peer);
    initialize_line(line);
    line->cntlid = cntlid;
    conf_status(conf, "Connect behind TLS", connect_queue(line, qid), 0);
    conf_equal(conf, "AUTHREQ", line->authreq, 0);
    return line;
}

/* End a connection, and wait until the drive has ended it, too. */
static void close_line(struct line *line)
{
    struct stream *stream = line->peer->stream;

    stream_send_flags(stream, SEG_FIN | SEG_ACK);
    while (!stream->is_finished && !stream->is_reset) {
        (void)stream_poll(stream, 0);
    }
}

/* ---- Authentication. */

static void send_message(struct line *line, size_t len)
{
    uint8_t fields[25] = {5};

    put_le32(fields + 1, 0xe9010100);
    put_le32(fields + 1 + 4, (uint32_t)len);
    put_command(line, fields, line->message, len, 0);
    conf_status(line->conf, "Authentication Send", take_response(line, NULL),
                0);
}

static void receive_message(struct line *line)
{
    uint8_t fields[25] = {6};
    uint32_t got = 0;

    put_le32(fields + 1, 0xe9010100);
    put_le32(fields + 1 + 4, MESSAGE);
    put_command(line, fields, NULL, 0, MESSAGE);
    while (got < MESSAGE) {
        uint8_t head[24];
        uint32_t len;

        memcpy(head, take_bytes(line, sizeof(head)), sizeof(head));
        len = get_le32(head + 16);
        conf_equal(line->conf, "type of the PDU", head[0], 7);
        conf_equal(line->conf, "DATAO", get_le32(head + 12), got);
        conf_check(line->conf, len != 0 && len <= MESSAGE - got,
                   "C2HData of %u bytes", len);
        memcpy(line->message + got, take_bytes(line, len), len);
        got += len;
    }
    conf_status(line->conf, "Authentication Receive", take_response(line, NULL),
                0);
}

/* AUTH_Negotiate, and the answer to it. */
static void negotiate_key(struct line *line, uint8_t concat, uint8_t hashes,
                          uint8_t dhs, const char *drive_secret)
{
    auth_host_init(&line->host, TLS_PEER_HOST, conf_target(line->conf)->nqn,
                   SECRET, drive_secret);
    line->host.concat = concat;
    send_message(line,
                 auth_host_negotiate(&line->host, hashes, dhs, line->message));
    receive_message(line);
}

static void expect_failure(struct line *line, uint8_t explanation)
{
    conf_same(line->conf, "AUTH_Failure1", line->message, "\0\xf0", 2);
    conf_equal(line->conf, "reason code explanation", line->message[7],
               explanation);
}

static size_t make_reply(struct line *line)
{
    uint8_t challenge[MESSAGE];
    size_t len;

    memcpy(challenge, line->message, sizeof(challenge));
    memcpy(line->c1, challenge + 16, sizeof(line->c1));
    len = auth_host_reply(&line->host, challenge, sizeof(challenge),
                          line->message);
    conf_check(line->conf, len != 0,
               "the answer to AUTH_Negotiate is %02x/%02x"
               " and no Challenge",
               challenge[0], challenge[1]);
    return len;
}

static void encode_base64(const uint8_t *bytes, size_t len, char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t count = (len * 8 + 5) / 6;

    for (size_t i = 0; i < count; i++) {
        size_t at = i * 6 / 8;
        unsigned int pair =
            (unsigned int)bytes[at] << 8 | (at + 1 < len ? bytes[at + 1] : 0u);

        text[i] = digits[pair >> (10 - i * 6 % 8) & 63];
    }
    for (; count % 4 != 0; count++) {
        text[count] = '=';
    }
    text[count] = '\0';
}

/* What the specification says of the key and of its digest. */
static void make_key(const struct line *line, struct key *key)
{
    const char *subnqn = conf_target(line->conf)->nqn;
    uint8_t challenges[2 * 48], mac[48];
    char names[600] = TLS_PEER_HOST " ";
    size_t len;

    key->is_384 = line->host.hash == SHA384;
    len = maths_hash_len(key->is_384);
    memcpy(challenges, line->c1, len);
    memcpy(challenges + len, line->host.c2, len);
    maths_hmac(key->is_384, line->host.secret_hash, challenges, 2 * len,
               key->bytes);
    strcat(names, subnqn);
    strcat(names, " NVMe-over-Fabrics");
    maths_hmac(key->is_384, key->bytes, names, strlen(names), mac);
    encode_base64(mac, len, key->digest);
}

/* All of it.  @param drive_secret  "": the drive proves nothing */
static void generate_key(struct line *line, uint8_t concat, uint8_t hash,
                         const char *drive_secret, struct key *key)
{
    negotiate_key(line, concat, (uint8_t)BIT(hash), BIT(AUTH_FFDHE2048),
                  drive_secret);
    send_message(line, make_reply(line));
    receive_message(line);
    conf_check(line->conf,
               auth_host_accepts(&line->host, line->message, MESSAGE),
               "the answer to the Reply is no correct Success1 (%02x/%02x)",
               line->message[0], line->message[1]);
    if (drive_secret[0] != '\0') {
        auth_success2_emit(line->message, line->host.t_id);
        send_message(line, AUTH_SUCCESS2_LEN);
    }
    make_key(line, key);
}

/* A host that has generated a key, and has left. */
static void obtain_key(struct conf *conf, unsigned int index, struct key *key)
{
    struct line *line = open_plain(conf, index);

    generate_key(line, SC_NEW, SHA256, "", key);
    close_line(line);
}

/* ---- The tests. */

static void use_key(struct conf *conf, uint8_t hash, const char *drive_secret)
{
    struct key key;
    struct line *line, *io;

    begin_drive(conf);
    line = open_plain(conf, 0);
    generate_key(line, SC_NEW, hash, drive_secret, &key);
    close_line(line);
    line = connect_secure(conf, 1, &key, 0, 0);
    enable_ctrl(line);
    io = connect_secure(conf, 2, &key, 1, line->cntlid);
    conf_equal(conf, "CNTLID", io->cntlid, line->cntlid);
}

static void use_sha256(struct conf *conf)
{
    use_key(conf, SHA256, "");
}

static void use_sha384(struct conf *conf)
{
    use_key(conf, SHA384, "");
}

static void use_both_proofs(struct conf *conf)
{
    use_key(conf, SHA256, DRIVE_SECRET);
}

/* The admin queue goes on without TLS, and gets no I/O queue. */
static void plain_io(struct conf *conf)
{
    struct line *line, *io;
    struct key key;

    begin_drive(conf);
    line = open_plain(conf, 0);
    generate_key(line, SC_NEW, SHA256, "", &key);
    enable_ctrl(line);
    io = open_line(conf, 1);
    initialize_line(io);
    io->cntlid = line->cntlid;
    conf_status(conf, "Connect of an I/O queue without TLS",
                connect_queue(io, 1), INVALID_PARAMETERS);
}

static void one_association(struct conf *conf)
{
    struct line *line, *second;
    struct key key;

    begin_drive(conf);
    obtain_key(conf, 0, &key);
    line = connect_secure(conf, 1, &key, 0, 0);
    second = open_secure(conf, 2, &key);
    tls_peer_shake(second->peer);
    initialize_line(second);
    conf_status(conf, "Connect of a second association with the key",
                connect_queue(second, 0), INVALID_HOST);
    close_line(line);
    expect_no_key(conf, 3, &key);
}

static void wait_ends(struct conf *conf)
{
    struct key key;

    begin_drive(conf);
    obtain_key(conf, 0, &key);
    conf_pass(conf, (WAIT_S + 2) * 1000000ull);
    expect_no_key(conf, 1, &key);
}

static void wrong_keys(struct conf *conf)
{
    struct key key, wrong;
    struct line *line;

    begin_drive(conf);
    obtain_key(conf, 0, &key);
    wrong = key;
    wrong.bytes[0] ^= 1; /* the digest is right */
    expect_no_key(conf, 1, &wrong);
    wrong = key;
    wrong.digest[0] = wrong.digest[0] == 'A' ? 'B' : 'A';
    expect_no_key(conf, 2, &wrong);
    line = open_secure(conf, 3, &key);
    line->peer->subnqn = "nqn.2014-08.org.example:another-drive";
    tls_peer_hello(line->peer);
    tls_peer_refused(line->peer, DECRYPT_ERROR);
    (void)connect_secure(conf, 4, &key, 0, 0);
}

static void other_secret(struct conf *conf)
{
    struct key key;

    begin_drive(conf);
    obtain_key(conf, 0, &key);
    tls_console(conf, "host secret " TLS_PEER_HOST " " OTHER_SECRET);
    expect_no_key(conf, 1, &key);
}

static void subsystem_reset(struct conf *conf)
{
    uint8_t fields[25] = {0};
    struct key key;
    struct line *line;

    begin_drive(conf);
    obtain_key(conf, 0, &key);
    line = open_plain(conf, 1);
    negotiate_key(line, 0, BIT(SHA256), BIT(AUTH_DH_NULL), "");
    send_message(line, make_reply(line));
    receive_message(line);
    put_le32(fields + 1 + 4, 0x20);
    put_le32(fields + 1 + 8, 0x4e564d65);
    put_command(line, fields, NULL, 0, 0);
    conf_status(conf, "Property Set of NSSR", take_response(line, NULL), 0);
    expect_no_key(conf, 2, &key);
}

static void replace_key(struct conf *conf)
{
    struct key key, next;
    struct line *line;

    begin_drive(conf);
    obtain_key(conf, 0, &key);
    line = connect_secure(conf, 1, &key, 0, 0);
    enable_ctrl(line);
    generate_key(line, SC_REPLACE, SHA384, "", &next);
    expect_no_key(conf, 2, &key);
    (void)connect_secure(conf, 3, &next, 1, line->cntlid);
}

/* What a host may not ask for.
 * @param concat  of a plain admin queue */
static void refuse_plain(struct conf *conf, unsigned int index, uint8_t concat,
                         uint8_t hashes, uint8_t dhs, uint8_t explanation)
{
    struct line *line = open_plain(conf, index);

    negotiate_key(line, concat, hashes, dhs, "");
    expect_failure(line, explanation);
}

static void refused_values(struct conf *conf)
{
    const uint8_t dh = BIT(AUTH_FFDHE2048), hash = BIT(SHA256);

    begin_drive(conf);
    refuse_plain(conf, 0, SC_OBSOLETE, hash, dh, AUTH_FAILED_CONCAT);
    refuse_plain(conf, 1, SC_REPLACE, hash, dh, AUTH_FAILED_CONCAT);
    refuse_plain(conf, 2, 4, hash, dh, AUTH_FAILED_CONCAT);
    refuse_plain(conf, 3, SC_NEW, hash, BIT(AUTH_DH_NULL), AUTH_FAILED_DH);
    refuse_plain(conf, 4, SC_NEW, BIT(AUTH_SHA512), dh, AUTH_FAILED_HASH);
}

static void refused_reply(struct conf *conf)
{
    struct line *line;
    size_t len;

    begin_drive(conf);
    line = open_plain(conf, 0);
    negotiate_key(line, SC_NEW, BIT(SHA256), BIT(AUTH_FFDHE2048), "");
    len = make_reply(line);
    line->message[8] = 0; /* CVALID */
    send_message(line, len);
    receive_message(line);
    expect_failure(line, AUTH_FAILED_PAYLOAD);
}

/* Behind TLS with a key of the list there is no key to replace. */
static void refused_retained(struct conf *conf)
{
    static const uint8_t values[] = {SC_NEW, SC_REPLACE};

    begin_drive(conf);
    tls_console(conf, "host tls-key " TLS_PEER_HOST " " TLS_PEER_KEY);
    for (unsigned int i = 0; i < 2; i++) {
        struct line *line = open_line(conf, i);

        tls_peer_shake(line->peer);
        initialize_line(line);
        conf_status(conf, "Connect", connect_queue(line, 0), 0);
        conf_equal(conf, "AUTHREQ: ATR", line->authreq, ATR);
        negotiate_key(line, values[i], BIT(SHA256), BIT(AUTH_FFDHE2048), "");
        expect_failure(line, AUTH_FAILED_CONCAT);
    }
}

/* Behind TLS with a generated key, that can only be replaced. */
static void refused_new(struct conf *conf)
{
    struct key key;
    struct line *line;

    begin_drive(conf);
    obtain_key(conf, 0, &key);
    line = connect_secure(conf, 1, &key, 0, 0);
    negotiate_key(line, SC_NEW, BIT(SHA256), BIT(AUTH_FFDHE2048), "");
    expect_failure(line, AUTH_FAILED_CONCAT);
}

#define CONCAT_TEST(test_id, clause, purpose, run)                             \
    TLS_TEST("concat." test_id, clause, purpose, run)

/* clang-format off */
static const struct conf_test tests[] = {
    CONCAT_TEST("sha256", "Base 2.1 8.3.4.3; NVMe TCP 1.1 3.6.1",
                "connect both queues behind TLS with a generated key",
                use_sha256),
    CONCAT_TEST("sha384", "Base 2.1 8.3.4.3; NVMe TCP 1.1 3.6.1",
                "the same with a key of 48 bytes", use_sha384),
    CONCAT_TEST("both-proofs", "Base 2.1 8.3.4.5.6",
                "prove its own identity, too, and generate a key",
                use_both_proofs),
    CONCAT_TEST("plain-io", "Base 2.1 8.3.4.3",
                "refuse I/O queues without TLS once there is a key", plain_io),
    CONCAT_TEST("one-association", "NVMe TCP 1.1 3.6.1",
                "take a key for one association, and delete it with that",
                one_association),
    CONCAT_TEST("wait", "NVMe TCP 1.1 3.6.1",
                "delete a key that is not used in time", wait_ends),
    CONCAT_TEST("wrong", "RFC 8446 4.2.11",
                "refuse another key and another digest", wrong_keys),
    CONCAT_TEST("secret", "NVMe TCP 1.1 3.6.1",
                "take no key whose host has another secret now", other_secret),
    CONCAT_TEST("subsystem-reset", "NVMe TCP 1.1 3.6.1",
                "delete keys when the subsystem is reset", subsystem_reset),
    CONCAT_TEST("replace", "Base 2.1 8.3.4.3",
                "replace the key of an association", replace_key),
    CONCAT_TEST("refuse.values", "Base 2.1 8.3.4.5.1",
                "refuse other values of SC_C, and algorithms without a key",
                refused_values),
    CONCAT_TEST("refuse.reply", "Base 2.1 8.3.4.5.4",
                "refuse a Reply without a challenge", refused_reply),
    CONCAT_TEST("refuse.retained", "Base 2.1 8.3.4.3",
                "generate no key behind TLS with a key of the list",
                refused_retained),
    CONCAT_TEST("refuse.new", "Base 2.1 8.3.4.3",
                "generate no second key behind TLS with a generated one",
                refused_new),
};
/* clang-format on */

CONF_TESTS(conf_tests_tls_concat, "tls", tests);
