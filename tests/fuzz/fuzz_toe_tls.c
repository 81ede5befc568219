/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection with keys at the TCP offload engine, between firmware that obeys
 * the guide and a host that need not.  An input is a row of steps, of a byte
 * each with what it needs behind it.
 *
 * No nonce has two texts, a byte that is sent again is the same, content comes
 * as it was sent and no byte of it twice, and nothing is left of a connection
 * that has ended.  If nobody broke a rule, all that was sent arrives in the
 * end.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "lib/regfields.h"
#include "hw-model/regs/queue.h"
#include "hw-model/regs/toe.h"
#include "hw-model/toe/hw_toe.h"
#include "net/wire/tcp.h"
#include "net/wire/ipv4.h"
#include "tests/unit/hw-model/test_env.h"

enum {
    DRAM_BYTES = 1 << 20,
    PAGE = 0,
    CMDS = 0x1000,
    CQES = 0x2000,
    RING = 0x10000,
    RING_LOG2 = 15,
    BUFFERS = 0x20000,
    BUFFER_LEN = 20480,
    CMD_LOG2 = 4,
    CQ_LOG2 = 2,
    OWN = 0x0a000001,
    PEER = 0x0a000002,
    STREAM = 1 << 20, /* bytes in each direction, at most */
    ISS = 100,
    TURNS = 4000, /* that the end of an input may take */
    FROM_HOST = 0,
    FROM_DRIVE = 128, /* first keys */
};

static struct world {
    struct hw_toe toe;
    struct test_env env;
    uint32_t cmd_pi, cq_ci, tid, isn;
    bool has_isn;

    /* Firmware. */
    bool has_credited, has_rx_key, has_tx_key, key_due, was_closed, has_ended;
    bool update_out; /* a KeyUpdate of ours is not sealed yet */
    uint8_t rx_key, tx_key;
    unsigned int sends, sends_made;
    uint32_t received, credit_due, content_in;
    uint32_t sent_plain, sent_content; /* bytes of SENDs */

    /* The host. */
    bool is_wrong; /* it has broken a rule, or left */
    bool is_over;  /* no more steps */
    struct records_tx tx;
    struct records_rx rx;
    uint8_t tx_id, rx_id;
    uint8_t out[STREAM], in[STREAM];
    bool has_byte[STREAM];
    uint32_t made, sent, acked, window; /* of what it sends */
    uint32_t got, fed, told;            /* of what it gets */
    uint32_t made_plain, made_content, took_content;
} *w;

static uint64_t next_nonce[256]; /* that each key may seal with */

/* ---- A cipher whose faults can be seen. */

static void fake_set_key(struct record_key *key, const uint8_t *bytes,
                         size_t len)
{
    ASSERT(len == 16);
    key->words[0] = bytes[0] + 1u;
}

/* @return a sum of all that is authentic */
static uint64_t sum_of(uint64_t id, uint64_t nonce, const uint8_t *header,
                       const uint8_t *data, size_t len)
{
    uint64_t sum = id * 0x9e3779b97f4a7c15u ^ nonce;

    for (size_t i = 0; i < RECORD_HEADER_LEN; i++) {
        sum = (sum ^ header[i]) * 0x100000001b3u;
    }
    for (size_t i = 0; i < len; i++) {
        sum = (sum ^ data[i]) * 0x100000001b3u;
    }
    return sum;
}

static void fake_seal(struct record_key *key, const uint8_t *nonce,
                      const uint8_t *header, size_t header_len, uint8_t *data,
                      size_t len, uint8_t *tag)
{
    uint64_t number = get_be64(nonce + 4);
    uint8_t id = (uint8_t)(key->words[0] - 1);

    ASSERT(header_len == RECORD_HEADER_LEN && number == next_nonce[id]);
    next_nonce[id]++;
    for (size_t i = 0; i < len; i++) {
        data[i] ^= (uint8_t)(id + number + i);
    }
    put_le64(tag, sum_of(id, number, header, data, len));
    put_le64(tag + 8, number);
}

static bool fake_open(struct record_key *key, const uint8_t *nonce,
                      const uint8_t *header, size_t header_len, uint8_t *data,
                      size_t len, const uint8_t *tag)
{
    uint64_t number = get_be64(nonce + 4);
    uint8_t id = (uint8_t)(key->words[0] - 1);
    bool is_good = header_len == RECORD_HEADER_LEN &&
                   get_le64(tag) == sum_of(id, number, header, data, len) &&
                   get_le64(tag + 8) == number;

    for (size_t i = 0; i < len; i++) {
        data[i] ^= (uint8_t)(id + number + i);
    }
    return is_good;
}

static const struct record_aead fake = {fake_set_key, fake_seal, fake_open};

static void begin_half(struct record_half *half, uint8_t id)
{
    const uint8_t key[16] = {id}, iv[RECORD_IV_LEN] = {0};

    record_half_begin(half, &fake, key, sizeof(key), iv, 0);
}

static uint8_t byte_of_content(uint32_t at)
{
    return (uint8_t)(at * 31 + at / 256 + 7);
}

/* ---- The host's side of records. */

static void take_content(void *ctx, const uint8_t *data, uint32_t len)
{
    (void)ctx;
    for (uint32_t i = 0; i < len; i++) {
        ASSERT(data[i] == byte_of_content(w->took_content++));
    }
}

static void take_rest(void *ctx, uint32_t len)
{
    (void)ctx, (void)len;
}

/* What has come without a gap, as far as it is not plain. */
static void host_opens(void)
{
    const struct records_sink sink = {NULL, take_content, take_rest};

    while (w->got < STREAM && w->has_byte[w->got]) {
        w->got++;
    }
    w->fed = MAX(w->fed, MIN(w->sent_plain, w->got));
    if (!w->has_tx_key) {
        return;
    }
    while (w->fed < w->got) {
        uint32_t len = MIN(w->got - w->fed, 1000u);

        records_take(&w->rx, &fake, &sink, w->in + w->fed, len);
        w->fed += len;
        ASSERT(w->rx.alert == RECORD_FINE);
        while (w->rx.is_held) {
            ASSERT(w->rx.note.type == RECORD_HANDSHAKE &&
                   w->rx.note.len_bytes == 5);
            begin_half(&w->rx.half, ++w->rx_id);
            records_resume(&w->rx, &fake, &sink);
        }
    }
}

static unsigned int take_frames(void *ctx, const struct frame_tx *burst,
                                unsigned int count)
{
    const uint8_t *tcp = burst->head + ETH_LEN + IPV4_LEN;
    uint32_t at;

    (void)ctx;
    ASSERT(count == 1);
    if (!w->has_isn) {
        w->isn = get_be32(tcp + 4);
        w->has_isn = true;
    }
    if ((tcp[13] & TCP_RST) != 0) {
        return 1;
    }
    at = get_be32(tcp + 4) - w->isn - 1;
    w->acked = MAX(w->acked, MIN(get_be32(tcp + 8) - ISS - 1, w->sent));
    w->window = get_be16(tcp + 14);
    for (unsigned int i = 0; i < burst->num_pieces; i++) {
        const uint8_t *from = burst->pieces[i].data;

        for (uint32_t j = 0; j < burst->pieces[i].len_bytes; j++, at++) {
            ASSERT(at < STREAM);
            ASSERT(!w->has_byte[at] || w->in[at] == from[j]);
            w->in[at] = from[j];
            w->has_byte[at] = true;
        }
    }
    return 1;
}

/* ---- Firmware. */

static uint8_t *dram_at(uint32_t offset)
{
    return w->env.dram + offset;
}

static void run_engine(void)
{
    for (int i = 0; i < 20 && w->env.deferred; i++) {
        w->env.deferred = false;
        hw_toe_run(&w->toe);
    }
}

static uint8_t *begin_command(enum toe_opcode opcode)
{
    uint8_t *cmd =
        dram_at(CMDS + (w->cmd_pi % (1u << CMD_LOG2)) * (uint32_t)TOE_CMD_LEN);

    memset(cmd, 0, TOE_CMD_LEN);
    cmd[TOE_CMD_OPCODE] = (uint8_t)opcode;
    put_le32(cmd + TOE_CMD_TID, w->tid);
    return cmd;
}

static enum toe_status post_command(const uint8_t *cmd)
{
    put_le32(dram_at(PAGE + QUEUE_PAGE_CMD_PI), ++w->cmd_pi);
    (void)hw_toe_write(&w->toe, A_QUEUE_KICK, 1);
    run_engine();
    return (enum toe_status)cmd[TOE_CMD_STATUS];
}

static enum toe_status set_key(uint8_t id, uint8_t flags, uint32_t held)
{
    uint8_t *cmd = begin_command(TOE_CMD_KEY);

    cmd[TOE_KEY_FLAGS] = flags;
    cmd[TOE_KEY_LENGTH] = 16;
    cmd[TOE_KEY_BYTES] = id;
    put_le32(cmd + TOE_KEY_HELD, held);
    return post_command(cmd);
}

static void take_data(uint32_t len)
{
    if (!w->has_rx_key) {
        w->received += len;
        return;
    }
    for (uint32_t i = 0; i < len; i++) {
        uint32_t at = w->content_in++;

        ASSERT(*dram_at(RING + at % (1u << RING_LOG2)) == byte_of_content(at));
    }
    w->credit_due += len;
}

/* Nothing is left of the keys, nor of what they have opened. */
static void check_wiped(void)
{
    const uint8_t *bytes = (const uint8_t *)w->toe.tls;

    for (size_t i = 0; i < sizeof(*w->toe.tls); i++) {
        ASSERT(bytes[i] == 0);
    }
    for (size_t i = 0; i < sizeof(w->toe.record); i++) {
        ASSERT(w->toe.record[i] == 0);
    }
}

static void take_record(const uint8_t *cqe)
{
    if (cqe[QUEUE_CQE_STATUS] != TOE_OK) {
        ASSERT(w->is_wrong);
        w->is_over = true;
        return;
    }
    ASSERT(get_le16(cqe + TOE_CQE_PORT) == RECORD_HANDSHAKE || w->is_wrong);
    ASSERT(!w->key_due);
    w->key_due = true;
}

static void take_entry(const uint8_t *cqe)
{
    switch ((enum toe_kind)cqe[TOE_CQE_KIND]) {
    case TOE_KIND_ASKED:
        w->tid = get_le32(cqe + TOE_CQE_TID);
        break;
    case TOE_KIND_DATA:
        take_data(get_le32(cqe + TOE_CQE_VALUE));
        break;
    case TOE_KIND_RECORD:
        take_record(cqe);
        break;
    case TOE_KIND_SENT:
        /* The memory is for something else now. */
        memset(dram_at(BUFFERS + (uint32_t)get_le64(cqe) % TOE_SENDS *
                                     (uint32_t)BUFFER_LEN),
               0xee, BUFFER_LEN);
        w->sends--;
        w->update_out &= get_le64(cqe) < TOE_SENDS;
        break;
    case TOE_KIND_ENDED:
        w->has_ended = w->is_over = true;
        check_wiped();
        break;
    case TOE_KIND_ESTABLISHED:
    case TOE_KIND_FINISHED:
    case TOE_KIND_CLOSED:
    case TOE_KIND_ABORTED:
        break;
    }
}

static void take_entries(void)
{
    for (;;) {
        const uint8_t *cqe = dram_at(CQES + (w->cq_ci % (1u << CQ_LOG2)) *
                                                (uint32_t)QUEUE_CQE_LEN);
        uint8_t lap = (w->cq_ci & 1u << CQ_LOG2) == 0;

        if ((cqe[QUEUE_CQE_FLAGS] & QUEUE_CQE_PHASE) != lap) {
            return;
        }
        w->cq_ci++;
        take_entry(cqe);
        put_le32(dram_at(PAGE + QUEUE_PAGE_CQ_CI), w->cq_ci);
        (void)hw_toe_write(&w->toe, A_QUEUE_KICK, 1);
        run_engine();
    }
}

static bool may_command(void)
{
    return !w->was_closed && !w->has_ended;
}

static void firmware_credits(void)
{
    uint8_t *cmd = begin_command(TOE_CMD_CREDIT);

    put_le32(cmd + TOE_CMD_LENGTH, w->credit_due);
    if (w->credit_due != 0 && !w->has_ended) {
        ASSERT(post_command(cmd) == TOE_OK);
        w->credit_due = 0;
    }
}

static void firmware_sends(uint32_t len, uint8_t record)
{
    uint32_t slot = w->sends_made % TOE_SENDS;
    uint8_t *to = dram_at(BUFFERS + slot * (uint32_t)BUFFER_LEN);
    uint8_t *cmd = begin_command(TOE_CMD_SEND);

    if (!may_command() || w->sends == TOE_SENDS || len == 0) {
        return;
    }
    for (uint32_t i = 0; i < len; i++) {
        to[i] = byte_of_content(w->sent_content + i);
    }
    if (record != 0) {
        memcpy(to, "\x18\0\0\1\0", 5);
    }
    put_le64(cmd + TOE_CMD_COOKIE, slot + (uint64_t)record * TOE_SENDS);
    put_le64(cmd + TOE_CMD_ADDR,
             TEST_DRAM_BASE + BUFFERS + slot * (uint64_t)BUFFER_LEN);
    put_le32(cmd + TOE_CMD_LENGTH, len);
    cmd[TOE_SEND_RECORD] = record;
    ASSERT(post_command(cmd) == TOE_OK);
    w->sends++;
    w->sends_made++;
    if (record == 0 && w->has_tx_key) {
        w->sent_content += len;
    } else if (record == 0) {
        w->sent_plain += len;
        w->sent_content = 0;
    }
}

/* As the firmware does it: one KeyUpdate of ours at a time.  A connection whose
 * host has broken a rule may be over before its entry says so. */
static void firmware_updates(void)
{
    enum toe_status status;

    if (!w->has_tx_key || !may_command() || w->update_out ||
        w->sends == TOE_SENDS) {
        return;
    }
    w->update_out = true;
    firmware_sends(5, RECORD_HANDSHAKE);
    status = set_key(++w->tx_key, 0, 0);
    ASSERT(status == TOE_OK || w->has_ended ||
           (w->is_wrong && (status == TOE_ENDED || status == TOE_BAD_STATE)));
}

static void firmware_gives_first_key(void)
{
    uint8_t *cmd;

    if (w->received < w->made_plain) {
        return;
    }
    if (!w->has_credited) {
        cmd = begin_command(TOE_CMD_CREDIT);
        put_le32(cmd + TOE_CMD_LENGTH, w->made_plain);
        ASSERT(post_command(cmd) == TOE_OK);
        w->has_credited = true;
    }
    /* Otherwise further bytes have come, or the connection has ended. */
    w->has_rx_key = set_key(w->rx_key, TOE_KEY_RECEIVES,
                            w->received - w->made_plain) == TOE_OK;
}

static void firmware_gives_key(void)
{
    if (!may_command()) {
        return;
    }
    if (!w->has_rx_key) {
        firmware_gives_first_key();
    } else if (w->key_due) {
        enum toe_status status = set_key(++w->rx_key, TOE_KEY_RECEIVES, 0);

        ASSERT(status == TOE_OK || (status == TOE_ENDED && w->is_wrong));
        w->key_due = false;
    }
}

static void firmware_may_seal(void)
{
    if (may_command() && !w->has_tx_key) {
        w->has_tx_key = set_key(w->tx_key, 0, 0) == TOE_OK;
    }
}

static void firmware_closes(void)
{
    if (may_command()) {
        w->was_closed = true;
        ASSERT(post_command(begin_command(TOE_CMD_CLOSE)) == TOE_OK);
    }
}

/* ---- The host. */

static void host_sends_segment(uint8_t flags, uint32_t at, const uint8_t *bytes,
                               uint32_t len, uint16_t window)
{
    static const uint8_t eth[ETH_LEN] = {0x02, 0, 0, 0, 0, 1, 0x02,
                                         0,    0, 0, 0, 2, 8, 0};
    const struct tcp_header header = {.src_port = 5000,
                                      .dst_port = 7,
                                      .seq = ISS + at,
                                      .ack =
                                          w->has_isn ? w->isn + 1 + w->told : 0,
                                      .window = window,
                                      .flags = flags};
    const struct ipv4 ip = {.src = ip_addr_from_v4(PEER),
                            .dst = ip_addr_from_v4(OWN),
                            .total_len_bytes =
                                (uint16_t)(IPV4_LEN + TCP_LEN + len),
                            .ttl = 64,
                            .protocol = IP_PROTOCOL_TCP};
    uint8_t data[ETH_LEN + IPV4_LEN + TCP_LEN + 1460];
    uint8_t *tcp = data + ETH_LEN + IPV4_LEN;
    const struct frame_rx frame = {
        .data = data, .len_bytes = ETH_LEN + IPV4_LEN + TCP_LEN + len};

    memcpy(data, eth, ETH_LEN);
    ipv4_emit(&ip, data + ETH_LEN);
    (void)tcp_header_emit(&header, tcp);
    if (len != 0) {
        memcpy(tcp + TCP_LEN, bytes, len);
    }
    put_be16(tcp + 16, 0);
    put_be16(tcp + 16, tcp_checksum(&ip.src, &ip.dst, tcp, TCP_LEN + len));
    hw_toe_rx(&w->toe, 0, &frame, 1);
    run_engine();
}

/* Make a record with this type; it waits to be sent. */
static void host_makes(uint8_t type, uint32_t len)
{
    static uint8_t
        record[RECORD_HEADER_LEN + RECORD_PLAIN_MAX + RECORD_OVERHEAD];
    uint32_t whole = RECORD_HEADER_LEN + len + RECORD_OVERHEAD;

    if (w->made + whole > STREAM / 2) {
        return;
    }
    for (uint32_t i = 0; i < len; i++) {
        record[RECORD_HEADER_LEN + i] = byte_of_content(w->made_content + i);
    }
    w->made_content += type == RECORD_DATA ? len : 0;
    w->tx.acked = w->tx.made;
    records_seal(&w->tx, &fake, (enum record_type)type, record, len);
    memcpy(w->out + w->made, record, whole);
    w->made += whole;
}

static void host_updates(void)
{
    if (w->tx_id < FROM_DRIVE - 2) {
        host_makes(RECORD_HANDSHAKE, 5);
        begin_half(&w->tx.half, ++w->tx_id);
    }
}

/* @param skip  bytes of what is due that do not come yet */
static void host_sends(uint32_t len, uint32_t skip, uint16_t window)
{
    uint32_t at = skip != 0 ? w->sent + skip : w->sent;

    while (at < w->made && len != 0) {
        uint32_t part = MIN(MIN(len, 1460u), w->made - at);

        if (at + part - w->acked > w->window) {
            return;
        }
        /* It is sent before the answer comes. */
        w->sent = skip != 0 ? w->sent : at + part;
        host_sends_segment(TCP_ACK, at + 1, w->out + at, part, window);
        at += part;
        len -= part;
    }
}

/* Other bytes in the place of those that the drive has acknowledged. */
static void host_repeats(uint32_t back, uint32_t len)
{
    uint8_t other[256];
    uint32_t at = w->acked - MIN(back, w->acked);

    len = MIN(MIN(len, w->acked - at), (uint32_t)sizeof(other));
    for (uint32_t i = 0; i < len; i++) {
        other[i] = (uint8_t)~w->out[at + i];
    }
    host_sends_segment(TCP_ACK, at + 1, other, len, 1000);
}

static void host_acks(uint16_t window)
{
    host_opens();
    w->told = w->got;
    host_sends_segment(TCP_ACK, w->sent + 1, NULL, 0, window);
}

static void time_passes(uint32_t ms)
{
    for (uint32_t i = 0; i < 2; i++) {
        w->env.now_ns += ms * UINT64_C(500000);
        if (w->env.now_ns >= w->env.deadline_ns) {
            w->env.deadline_ns = DEV_NO_DEADLINE;
            hw_toe_timer(&w->toe);
            run_engine();
        }
    }
}

/* ---- An input. */

static void engine_begins(void)
{
    static uint8_t *dram;
    static void *memory;
    struct hw_toe_config config = {.aead = &fake};
    uint8_t *cmd;

    if (w == NULL) {
        w = malloc(sizeof(*w));
        dram = malloc(DRAM_BYTES);
        memory = aligned_alloc(16, hw_toe_memory_bytes());
        ASSERT(w != NULL && dram != NULL && memory != NULL);
        memset(memory, 0, hw_toe_memory_bytes());
    } else {
        hw_toe_reset(&w->toe);
    }
    memset(w, 0, sizeof(*w));
    memset(dram, 0, RING);
    memset(next_nonce, 0, sizeof(next_nonce));
    config.env = test_env_init(&w->env, dram, DRAM_BYTES);
    config.memory = memory;
    config.ports[0] = (struct frame_sink){.ctx = w, .send = take_frames};
    w->env.now_ns = 1000000000;
    hw_toe_init(&w->toe, &config);
    (void)hw_toe_write(&w->toe, A_QUEUE_PAGE_LO, TEST_DRAM_BASE + PAGE);
    (void)hw_toe_write(&w->toe, A_QUEUE_CMD_LO, TEST_DRAM_BASE + CMDS);
    (void)hw_toe_write(&w->toe, A_QUEUE_CQ_LO, TEST_DRAM_BASE + CQES);
    (void)hw_toe_write(&w->toe, A_QUEUE_SIZES, CMD_LOG2 | CQ_LOG2 << 8);
    (void)hw_toe_write(&w->toe, A_QUEUE_ENABLE, 1);
    (void)hw_toe_write(&w->toe, A_TOE_CONFIG, 1500 | RING_LOG2 << 16);
    (void)hw_toe_write(&w->toe, A_TOE_CTRL, 1);
    cmd = begin_command(TOE_CMD_LADDR_SET);
    put_le16(cmd + TOE_LADDR_VLAN, 0xffff);
    memcpy(cmd + TOE_LADDR_IP, ip_addr_from_v4(OWN).bytes, TOE_LADDR_IP_LEN);
    ASSERT(post_command(cmd) == TOE_OK);
    cmd = begin_command(TOE_CMD_LISTEN);
    put_le16(cmd + TOE_CMD_PORT, 7);
    ASSERT(post_command(cmd) == TOE_OK);
}

/* @param plain  bytes that the host sends before its records */
static void open_conn(uint32_t plain)
{
    uint8_t *cmd;

    engine_begins();
    host_sends_segment(TCP_SYN, 0, NULL, 0, 1000);
    take_entries();
    cmd = begin_command(TOE_CMD_ACCEPT);
    put_le64(cmd + TOE_CMD_ADDR, TEST_DRAM_BASE + RING);
    ASSERT(post_command(cmd) == TOE_OK && w->has_isn);
    host_sends_segment(TCP_ACK, 1, NULL, 0, 1000);
    take_entries();
    w->made = w->made_plain = plain;
    w->rx_key = w->tx_id = FROM_HOST;
    w->tx_key = w->rx_id = FROM_DRIVE;
    begin_half(&w->tx.half, w->tx_id);
    begin_half(&w->rx.half, w->rx_id);
    w->rx.alert = RECORD_FINE;
}

/* Something that a host must not do. */
static void break_rule(struct input *in, uint8_t how)
{
    static const uint8_t types[] = {RECORD_ALERT, 0, 20, 99};

    w->is_wrong = true;
    if (how < 4) {
        host_makes(types[how], take_byte(in));
    } else if (how == 4 && w->made < STREAM / 2) {
        w->made += take_bytes(in, w->out + w->made, 255);
    } else if (how == 5) {
        host_sends_segment(TCP_RST, w->acked + 1, NULL, 0, 0);
    } else if (how == 6) {
        host_sends_segment(TCP_FIN | TCP_ACK, w->sent + 1, NULL, 0, 1000);
    } else if (w->made > w->sent) {
        w->out[w->sent + take_byte(in) % (w->made - w->sent)] ^= 1;
    }
}

static void host_step(struct input *in, uint8_t step)
{
    static const uint16_t windows[] = {0, 1, 100, 1460, 8000, 32000, 65535};

    switch (step) {
    case 0:
        host_makes(RECORD_DATA, take_byte(in) * 66u % (RECORD_PLAIN_MAX + 1));
        break;
    case 1:
        host_updates();
        break;
    case 2:
        host_sends(take_byte(in) * 100u + 1, 0, 1000);
        break;
    case 3:
        host_sends(take_byte(in) + 1u, take_byte(in) + 1u, 1000);
        break;
    case 4:
        host_repeats(take_byte(in), take_byte(in));
        break;
    case 5:
        host_acks(windows[take_byte(in) % ARRAY_LEN(windows)]);
        break;
    case 6:
        time_passes(take_byte(in) * 10u);
        break;
    default:
        break_rule(in, take_byte(in) % 8);
        break;
    }
}

static void firmware_step(struct input *in, uint8_t step)
{
    switch (step) {
    case 0:
        take_entries();
        break;
    case 1:
        firmware_gives_key();
        break;
    case 2:
        firmware_may_seal();
        break;
    case 3:
        firmware_credits();
        break;
    case 4:
        firmware_sends(take_byte(in) * 80u, 0);
        break;
    case 5:
        firmware_updates();
        break;
    case 6:
        firmware_sends(take_byte(in), 0);
        break;
    default:
        if (take_byte(in) > 200) {
            firmware_closes();
        }
        break;
    }
}

/* Nobody waits any more: all that was sent has to arrive. */
static void finish_conn(void)
{
    unsigned int turn = 0;

    for (; turn < TURNS && !w->is_over; turn++) {
        bool is_done;

        take_entries();
        firmware_gives_key();
        firmware_may_seal();
        firmware_credits();
        host_sends(20000, 0, 65535);
        host_acks(65535);
        is_done = w->has_rx_key && w->acked == w->made && w->sends == 0 &&
                  w->content_in == w->made_content &&
                  w->took_content == w->sent_content;
        if (is_done || w->was_closed) {
            break;
        }
        time_passes(100);
    }
    ASSERT(turn < TURNS || w->is_wrong);
}

/* Records, a KeyUpdate on both sides, what comes early, and an end. */
size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    static const uint8_t seeds[][32] = {
        {9, 0, 8, 2, 9, 16, 17, 18, 2, 99, 16, 19, 20, 40, 5, 4},
        {0, 0, 40, 0, 90, 17, 1, 0, 9, 2, 255, 16, 17, 16, 19, 18, 21, 5, 6},
        {3, 2, 1, 16, 17, 18, 0, 255, 3, 9, 9, 2, 0, 4, 9, 9, 6, 50, 16},
        {0,  17, 18, 20, 255, 20, 255, 20, 255, 20, 255, 20, 255, 21,
         20, 9,  16, 21, 5,   1,  6,   99, 16,  21, 7,   5,  23,  255},
    };

    if (n >= ARRAY_LEN(seeds) || room < sizeof(seeds[0])) {
        return 0;
    }
    memcpy(buf, seeds[n], sizeof(seeds[0]));
    return sizeof(seeds[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct input in = {data, len};

    open_conn(take_byte(&in) % 64);
    while (in.len != 0 && !w->is_over) {
        uint8_t step = take_byte(&in);

        if ((step & 16) == 0) {
            host_step(&in, step & 7);
        } else {
            firmware_step(&in, step & 7);
        }
    }
    finish_conn();
    return 0;
}
