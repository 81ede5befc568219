/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes that a host sends over NVMe/TCP, to a target with two namespaces.
 *
 * The first byte of the input has flags; the rest is a row of segments, each
 * with a byte for its length.  A segment that begins like a PDU gets a right
 * header digest if digests were agreed, so that changes reach what comes after
 * it.  The connection has sent ICReq and Connect before, unless the flags say
 * that the input begins with the first byte.  Another flag says that the socket
 * follows the stream of PDUs, as the TCP engine does; then this also tries the
 * code with which the engine follows it.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "hw-model/toe/pdu_follow.h"
#include "lib/bytes.h"
#include "lib/crc32c.h"
#include "nvmeof/tcp/nvme_tcp.h"
#include "nvmeof/tcp/tcp_pdu.h"
#include "tests/unit/nvmeof/target/fake.h"

enum {
    DIGESTS = 3,
    IS_FIRST = 4,
    IS_FOLLOWED = 8,
    ROUNDS = 64,
    STOP_LEN = 8, /* the mark in the ring where following has stopped */
};

/* Made once: most of it is memory that hardly any input touches. */
struct bed {
    struct fake *fake;
    struct nvme_tcp *tcp;
    struct nvmf_binding binding;
    uint8_t *memory, *ring;
    uint16_t conn;
    uint32_t received, credit;
    unsigned int sends;
    uint32_t sum; /* of the bytes sent, so that ASan sees them */
    bool has_close, has_abort, is_over;
    bool wants_follow;
    uint32_t published; /* by the bytes that are being taken */
    struct pdu_follow follow;
    struct pdu_places places;
};

static struct bed bed;

/* ---- The socket: what is sent is acknowledged in the next round. */

static void socket_accept(void *ctx, uint32_t id, void *ring)
{
    (void)id;
    ((struct bed *)ctx)->ring = ring;
}

static void socket_reject(void *ctx, uint32_t id)
{
    (void)ctx, (void)id;
    ASSERT(false); /* there is only one connection */
}

static bool socket_send(void *ctx, uint32_t id,
                        const struct nvme_tcp_piece *pieces, uint8_t count)
{
    struct bed *b = ctx;

    (void)id;
    ASSERT(count != 0 && count <= NVME_TCP_SEND_PIECES &&
           ++b->sends <= NVME_TCP_SENDS);
    for (uint8_t i = 0; i < count; i++) {
        const uint8_t *bytes = pieces[i].data;

        ASSERT(pieces[i].len_bytes != 0);
        if (b->follow.fills) {
            pdu_fill_digests(&b->follow.fill, (uint8_t *)(uintptr_t)bytes,
                             pieces[i].len_bytes);
        }
        for (uint32_t at = 0; at < pieces[i].len_bytes; at++) {
            b->sum += bytes[at];
        }
    }
    return true;
}

static bool socket_credit(void *ctx, uint32_t id, uint32_t len)
{
    struct bed *b = ctx;

    (void)id;
    b->credit += len;
    ASSERT(b->credit <= b->received);
    return true;
}

static void stop_placing(struct bed *b)
{
    if (pdu_follow_is_on(&b->follow)) {
        pdu_follow_end(&b->follow, &b->places, PDU_FOLLOW_DEAF);
    }
}

static bool socket_close(void *ctx, uint32_t id)
{
    (void)id;
    ((struct bed *)ctx)->has_close = true;
    stop_placing(ctx);
    return true;
}

static bool socket_abort(void *ctx, uint32_t id)
{
    (void)id;
    ((struct bed *)ctx)->has_abort = true;
    stop_placing(ctx);
    return true;
}

static bool socket_follow(void *ctx, uint32_t id, uint32_t received,
                          bool has_header_digest, bool has_data_digest)
{
    struct bed *b = ctx;

    (void)id;
    if (!b->wants_follow || b->received - b->credit != received) {
        return false;
    }
    b->credit = b->received;
    pdu_follow_begin(&b->follow, has_header_digest, has_data_digest);
    return true;
}

static bool socket_place(void *ctx, uint32_t id,
                         const struct nvme_tcp_place *place)
{
    struct bed *b = ctx;
    struct pdu_place to = {
        .ttag = place->ttag, .cccid = place->cccid, .offset = place->offset};
    uint32_t left = place->len_bytes;

    (void)id;
    while (left != 0) {
        const struct nvmf_piece *piece = &place->pieces[to.count];
        uint32_t len = MIN(piece->len_bytes, left);

        to.pieces[to.count++] =
            (struct pdu_place_piece){(uintptr_t)piece->ptr, len};
        left -= len;
    }
    if (pdu_follow_is_on(&b->follow)) {
        const struct pdu_place *added =
            pdu_place_add(&b->follow, &b->places, &to);

        ASSERT(added != NULL);
    }
    return true;
}

/* ---- What a stream that is followed goes to. */

static bool store_bytes(void *ctx, uint32_t at, const uint8_t *data,
                        uint32_t len)
{
    struct bed *b = ctx;

    ASSERT(b->received - b->credit + at + len <= NVME_TCP_RING_LEN);
    for (uint32_t i = 0; i < len; i++) {
        b->ring[(b->received + at + i) % NVME_TCP_RING_LEN] = data[i];
    }
    return true;
}

static bool place_bytes(void *ctx, uint64_t addr, const uint8_t *data,
                        uint32_t len)
{
    (void)ctx;
    memcpy((void *)(uintptr_t)addr, data, len);
    return true;
}

static void publish_bytes(void *ctx, uint32_t len)
{
    struct bed *b = ctx;

    b->received += len;
    b->published += len;
}

static void consume_bytes(void *ctx, uint32_t len)
{
    (void)ctx, (void)len; /* there is no window */
}

static bool socket_release(void *ctx, uint32_t id)
{
    (void)id;
    ((struct bed *)ctx)->is_over = true;
    return true;
}

static void bed_init(void)
{
    struct nvme_tcp_config config = {
        .socket = {.ctx = &bed,
                   .accept = socket_accept,
                   .reject = socket_reject,
                   .send = socket_send,
                   .credit = socket_credit,
                   .close = socket_close,
                   .abort = socket_abort,
                   .release = socket_release,
                   .follow = socket_follow,
                   .place = socket_place},
    };

    bed.fake = fake_new();
    fake_start(bed.fake);
    bed.memory = aligned_alloc(4096, NVME_TCP_MEMORY_BYTES);
    bed.tcp = malloc(nvme_tcp_bytes());
    ASSERT(bed.memory != NULL && bed.tcp != NULL);
    config.memory = bed.memory;
    config.requests = malloc(nvme_tcp_request_bytes());
    config.target = bed.fake->target;
    nvme_tcp_init(bed.tcp, &config);
    nvme_tcp_serve(bed.tcp, true);
    bed.binding = nvme_tcp_binding(bed.tcp);
    pdu_places_init(&bed.places);
}

static void run_round(void)
{
    unsigned int sends = bed.sends;

    bed.sends = 0;
    while (sends-- != 0) {
        nvme_tcp_sent(bed.tcp, bed.conn, true);
    }
    bed.fake->now_us += 100;
    bed.binding.ops->tick(bed.binding.ctx, bed.fake->now_us);
    (void)bed.binding.ops->step(bed.binding.ctx);
    bed.fake->history_count = 0; /* of the fake media: not used here */
    fake_run(bed.fake);
}

/* What is not complete is in the ring, too, and not received yet. */
static void send_bytes(const uint8_t *bytes, uint32_t len)
{
    const struct pdu_memory memory = {
        .ctx = &bed,
        .store = store_bytes,
        .place = place_bytes,
        .publish = publish_bytes,
        .consume = consume_bytes,
    };
    uint32_t used = bed.received - bed.credit + bed.follow.stored +
                    PDU_HEADER_ROOM + STOP_LEN;
    uint32_t taken;
    uint8_t begun;

    len = MIN(len, used < NVME_TCP_RING_LEN ? NVME_TCP_RING_LEN - used : 0);
    bed.published = 0;
    taken = pdu_follow_take(&bed.follow, &bed.places, &memory, bytes, len);
    (void)store_bytes(&bed, 0, bytes + taken, len - taken);
    publish_bytes(&bed, len - taken);
    begun = pdu_follow_begun(&bed.follow);
    if (bed.published != 0 || begun != FOLLOW_BEGUN_NOTHING) {
        nvme_tcp_received(bed.tcp, bed.conn, bed.published);
    }
    if (begun != FOLLOW_BEGUN_NOTHING) {
        nvme_tcp_begun(bed.tcp, bed.conn, (enum nvme_tcp_begun)begun);
    }
    run_round();
}

static void send_pdu(uint8_t *pdu, uint32_t len, uint8_t digests)
{
    uint32_t hlen = len >= PDU_HEAD_LEN ? pdu[PDU_HLEN] : 0;

    if ((digests & 1) && hlen >= PDU_HEAD_LEN && hlen + PDU_DIGEST_LEN <= len) {
        put_le32(pdu + hlen, crc32c_update(0, pdu, hlen));
    }
    send_bytes(pdu, len);
}

static void send_connect(uint8_t digests)
{
    const struct connect_command command = {.sqsize = NVMF_ADMIN_DEPTH - 1};
    uint8_t pdu[PDU_CAPSULE_CMD_LEN + 2 * PDU_DIGEST_LEN + CONNECT_DATA_LEN] = {
        PDU_CAPSULE_CMD, digests, PDU_CAPSULE_CMD_LEN, PDU_CAPSULE_CMD_LEN};
    uint32_t at = PDU_CAPSULE_CMD_LEN + (digests & 1 ? 4u : 0u);
    struct connect_data data;
    struct nvme_sqe sqe;

    connect_command_build(&sqe, &command);
    fake_connect_data(&data, 0xffff, FAKE_SUBNQN);
    nvme_sqe_emit(pdu + PDU_HEAD_LEN, &sqe);
    put_le32(pdu + PDU_HEAD_LEN + 32, CONNECT_DATA_LEN);
    pdu[PDU_HEAD_LEN + 39] = 0x01;
    pdu[PDU_PDO] = (uint8_t)at;
    connect_data_emit(pdu + at, &data);
    if (digests & 2) {
        put_le32(pdu + at + CONNECT_DATA_LEN,
                 crc32c_update(0, pdu + at, CONNECT_DATA_LEN));
    }
    put_le32(pdu + PDU_PLEN, at + CONNECT_DATA_LEN + (digests & 2 ? 4u : 0u));
    send_pdu(pdu, get_le32(pdu + PDU_PLEN), digests);
}

static void open_connection(uint8_t flags)
{
    static const struct nvme_tcp_peer peer = {.host = {[15] = 1}};
    uint8_t ic_req[PDU_IC_LEN] = {0, 0, PDU_IC_LEN, 0, PDU_IC_LEN};

    bed.received = bed.credit = 0;
    bed.sends = 0;
    bed.has_close = bed.has_abort = bed.is_over = false;
    bed.wants_follow = (flags & IS_FOLLOWED) != 0;
    bed.follow = (struct pdu_follow){.places = PDU_NO_PLACE};
    bed.conn = nvme_tcp_asked(bed.tcp, 7, &peer);
    ASSERT(bed.conn != NVME_TCP_NONE);
    nvme_tcp_established(bed.tcp, bed.conn);
    if ((flags & IS_FIRST) == 0) {
        ic_req[PDU_IC_DIGEST] = flags & DIGESTS;
        send_bytes(ic_req, sizeof(ic_req));
        send_connect(flags & DIGESTS);
    }
}

/* Whatever has come, everything can end. */
static void end_connection(void)
{
    unsigned int sends = bed.sends;
    struct nvme_tcp_usage usage;

    pdu_follow_end(&bed.follow, &bed.places, PDU_FOLLOW_OFF);
    nvme_tcp_ended(bed.tcp, bed.conn);
    bed.sends = 0;
    while (sends-- != 0) {
        nvme_tcp_sent(bed.tcp, bed.conn, false);
    }
    if (bed.has_close) {
        nvme_tcp_closed(bed.tcp, bed.conn);
    }
    if (bed.has_abort) {
        nvme_tcp_aborted(bed.tcp, bed.conn);
    }
    for (unsigned int i = 0; i < ROUNDS && !bed.is_over; i++) {
        run_round();
    }
    usage = nvme_tcp_usage(bed.tcp);
    ASSERT(bed.is_over && usage.connections == 0 && usage.requests == 0);
    ASSERT(bed.fake->buffers_out == 0);
}

/* ---- Inputs. */

static void add_capsule(uint8_t *segment, uint8_t opcode, uint32_t len)
{
    segment[0] = PDU_CAPSULE_CMD_LEN;
    segment[1] = PDU_CAPSULE_CMD;
    segment[3] = PDU_CAPSULE_CMD_LEN;
    segment[5] = PDU_CAPSULE_CMD_LEN;
    segment[9] = opcode;
    segment[10] = 0x40;
    put_le32(segment + 9 + 32, len);
    segment[9 + 39] = 0x5a;
    segment[9 + 40] = CNS_CONTROLLER;
}

/* Identify; Set Features with data from the host, and that data; an ICReq.  The
 * first two also with a socket that follows. */
size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    enum { SEGMENT = 1 + PDU_CAPSULE_CMD_LEN };
    uint8_t seed[2 * SEGMENT + 64] = {n > 2 ? IS_FOLLOWED : 0};

    if (n > 4 || sizeof(seed) > room) {
        return 0;
    }
    if (n == 2) {
        seed[0] = IS_FIRST;
        seed[1] = PDU_IC_LEN;
        seed[4] = PDU_IC_LEN;
        seed[6] = PDU_IC_LEN;
        memcpy(buf, seed, 2 + PDU_IC_LEN);
        return 2 + PDU_IC_LEN;
    }
    n %= 3;
    add_capsule(seed + 1, n == 0 ? ADMIN_IDENTIFY : ADMIN_SET_FEATURES,
                n == 0 ? 4096 : 8);
    seed[1 + 9 + 40] = n == 0 ? CNS_CONTROLLER : 0x0e;
    seed[1 + SEGMENT] = PDU_DATA_LEN + 8;
    seed[2 + SEGMENT] = PDU_H2C_DATA;
    seed[3 + SEGMENT] = 4;
    seed[4 + SEGMENT] = PDU_DATA_LEN;
    seed[5 + SEGMENT] = PDU_DATA_LEN;
    seed[6 + SEGMENT] = PDU_DATA_LEN + 8;
    seed[2 + SEGMENT + PDU_DATA_LENGTH] = 8;
    memcpy(buf, seed, 2 + SEGMENT + PDU_DATA_LEN + 8);
    return 2 + SEGMENT + PDU_DATA_LEN + 8;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint8_t flags = len != 0 ? data[0] : 0;
    size_t at = 1;

    if (bed.tcp == NULL) {
        bed_init();
    }
    open_connection(flags);
    while (at < len) {
        uint32_t n = (uint32_t)MIN((size_t)data[at], len - at - 1);
        uint8_t pdu[256];

        memcpy(pdu, data + at + 1, n);
        send_pdu(pdu, n, flags & IS_FIRST ? 0 : flags & DIGESTS);
        at += 1 + n;
    }
    end_connection();
    return 0;
}
