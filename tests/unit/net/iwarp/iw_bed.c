/* SPDX-License-Identifier: BSD-2-Clause */
/* Test bed: see iw_bed.h. */
#include "iw_bed.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bytes.h"
#include "lib/crc32c.h"
#include "net/mpa/mpa.h"

/* The layout of each side's DRAM. */
enum {
    SQ_RECORD = 0x1000,
    RQ_RECORD = 0x1004,
    CQ_RECORD = 0x1008,
    EQ_RECORD = 0x100c,
    EQ = 0x2000,
    CQ = 0x10000,
    SQ = 0x20000,
    RQ = 0x60000,
    RING_BYTES = 1 << IW_RING_LOG2,
};

/* ---- DRAM. */

static void *map_dram(void *ctx, uint64_t addr, uint64_t len)
{
    struct iw_side *side = ctx;

    if (addr < IW_BASE || addr - IW_BASE > IW_DRAM_LEN ||
        len > IW_DRAM_LEN - (addr - IW_BASE)) {
        return NULL;
    }
    return side->dram + (addr - IW_BASE);
}

static void write_word(struct iw_side *side, uint32_t at, uint32_t value)
{
    put_le32(side->dram + at, value);
}

uint8_t *iw_data(struct iw_side *side, uint32_t offset)
{
    return side->dram + IW_DATA + offset;
}

void iw_fill(struct iw_side *side, uint32_t offset, uint32_t len, uint32_t seed)
{
    uint8_t *data = iw_data(side, offset);

    for (uint32_t i = 0; i < len; i++) {
        seed = seed * 1664525 + 1013904223;
        data[i] = (uint8_t)(seed >> 24);
    }
}

/* ---- The stream of a side. */

static bool attach_stream(void *ctx, uint32_t stream, uint32_t slot,
                          uint32_t *ring_bytes)
{
    struct iw_side *side = ctx;

    assert_false(side->is_in);
    assert_int_equal(stream, IW_STREAM);
    assert_int_equal(slot, IW_SLOT);
    if (side->refuses || side->is_attached) {
        return false;
    }
    side->is_attached = true;
    *ring_bytes = RING_BYTES;
    return true;
}

static void detach_stream(void *ctx, uint32_t stream)
{
    struct iw_side *side = ctx;

    assert_false(side->is_in);
    assert_int_equal(stream, IW_STREAM);
    assert_true(side->is_attached);
    side->is_attached = false;
    if (side->acked != side->announced) {
        side->has_rst = true;
    }
}

static bool announce_bytes(void *ctx, uint32_t stream, uint32_t len)
{
    struct iw_side *side = ctx;

    assert_false(side->is_in);
    assert_int_equal(stream, IW_STREAM);
    assert_true(side->is_attached && len != 0);
    assert_false(side->has_fin || side->has_rst);
    if (side->refuses) {
        return false;
    }
    side->announced += len;
    return true;
}

static void close_stream(void *ctx, uint32_t stream)
{
    struct iw_side *side = ctx;

    assert_false(side->is_in);
    assert_int_equal(stream, IW_STREAM);
    side->has_fin = true;
}

static void abort_stream(void *ctx, uint32_t stream)
{
    struct iw_side *side = ctx;

    assert_false(side->is_in);
    assert_int_equal(stream, IW_STREAM);
    side->has_rst = true;
}

static uint16_t segment_bytes(void *ctx, uint32_t stream)
{
    struct iw_side *side = ctx;

    assert_int_equal(stream, IW_STREAM);
    return (uint16_t)(side->bed->mss != 0 ? side->bed->mss : 1448);
}

/* ---- Creation. */

static void make_mr(struct iw_side *side, uint32_t key, uint16_t pd,
                    uint32_t offset, uint32_t len, uint8_t access)
{
    side->objects->mrs[key >> 8] = (struct rdma_mr){
        .exists = true,
        .access = access,
        .variant = (uint8_t)key,
        .pd = pd,
        .va = IW_BASE + offset,
        .len_bytes = len,
        .dram = IW_BASE + offset,
    };
    side->objects->pds[pd].users++;
}

static void make_objects(struct iw_side *side)
{
    struct rdma_objects *o = side->objects;

    o->pds[0].exists = o->pds[1].exists = true;
    make_mr(side, IW_LOCAL_KEY, 0, 0, IW_DRAM_LEN, VERBS_ACCESS_LOCAL_WRITE);
    make_mr(side, IW_REMOTE_KEY, 0, IW_DATA, IW_DATA_LEN, 7);
    make_mr(side, IW_OTHER_PD_KEY, 1, IW_DATA, IW_DATA_LEN, 7);
    make_mr(side, IW_READ_KEY, 0, IW_DATA, IW_DATA_LEN,
            VERBS_ACCESS_REMOTE_READ);
    make_mr(side, IW_WRITE_KEY, 0, IW_DATA, IW_DATA_LEN,
            VERBS_ACCESS_REMOTE_WRITE);
    o->cqs[0] = (struct rdma_cq){
        .exists = true,
        .size_log2 = IW_CQ_LOG2,
        .users = 2,
        .base = IW_BASE + CQ,
        .record = IW_BASE + CQ_RECORD,
    };
    o->rqs[0] = (struct rdma_rq){
        .exists = true,
        .size_log2 = IW_RQ_LOG2,
        .users = 1,
        .base = IW_BASE + RQ,
        .record = IW_BASE + RQ_RECORD,
    };
    o->eqs[0] = (struct rdma_eq){
        .exists = true,
        .size_log2 = IW_EQ_LOG2,
        .base = IW_BASE + EQ,
        .record = IW_BASE + EQ_RECORD,
    };
}

/* The state of an engine is megabytes, which the next bed uses again. */
static struct iwarp_state *spare[2];

static void init_side(struct iw_bed *bed, unsigned int id)
{
    struct iw_side *side = &bed->side[id];

    side->bed = bed;
    side->id = id;
    side->state = spare[id] != NULL ? spare[id] : malloc(sizeof(*side->state));
    spare[id] = NULL;
    side->objects = calloc(1, sizeof(*side->objects));
    side->dram = calloc(1, IW_DRAM_LEN);
    side->ring = malloc(RING_BYTES);
    side->out = malloc(IW_OUT);
    side->streams = (struct rdma_streams){
        side,         attach_stream, detach_stream, announce_bytes,
        close_stream, abort_stream,  segment_bytes};
    side->iwarp.state = side->state;
    side->iwarp.objects = side->objects;
    side->iwarp.dram = (struct rdma_dram){side, map_dram, map_dram};
    iwarp_engine_ops.reset(&side->iwarp); /* without streams to detach */
    side->iwarp.streams = &side->streams;
    make_objects(side);
}

struct iw_bed *iw_new(void)
{
    struct iw_bed *bed = calloc(1, sizeof(*bed));

    bed->now_ns = 1000000000;
    init_side(bed, 0);
    return bed;
}

void iw_free(struct iw_bed *bed)
{
    for (unsigned int i = 0; i < 2; i++) {
        free(spare[i]);
        spare[i] = bed->side[i].state;
        free(bed->side[i].objects);
        free(bed->side[i].dram);
        free(bed->side[i].ring);
        free(bed->side[i].out);
    }
    free(bed);
}

void iw_create(struct iw_side *side)
{
    struct rdma_qp *qp = &side->objects->qps[IW_SLOT];

    *qp = (struct rdma_qp){
        .exists = true,
        .state = VERBS_QPS_RESET,
        .type = VERBS_QP_IW,
        .sq_size_log2 = IW_SQ_LOG2,
        .qpn = IW_QPN,
        .sq_base = IW_BASE + SQ,
        .sq_record = IW_BASE + SQ_RECORD,
    };
    side->objects->pds[0].users++;
    iwarp_engine_ops.qp_create(&side->iwarp, IW_SLOT);
    assert_true(iw_modify(side, VERBS_QPS_INIT));
}

bool iw_modify(struct iw_side *side, enum verbs_qp_state next)
{
    const struct iw_bed *bed = side->bed;
    uint8_t args[RNIC_CMD_LEN] = {0};

    args[RNIC_MOD_STATE] = (uint8_t)next;
    args[RNIC_MOD_ACCESS] = bed->access != 0 ? bed->access : 7;
    args[RNIC_MOD_MAX_RD_ATOMIC] = bed->ord != 0 ? bed->ord : 4;
    args[RNIC_MOD_MAX_DEST_RD_ATOMIC] = bed->ird != 0 ? bed->ird : 4;
    put_le32(args + RNIC_MOD_IW_STREAM, IW_STREAM);
    args[RNIC_MOD_IW_FLAGS] =
        (uint8_t)((bed->no_crc ? 0 : RNIC_IW_CRC) |
                  (side->id == 0 && !bed->no_mute ? RNIC_IW_MUTE : 0) |
                  (bed->has_send_rtr ? RNIC_IW_SEND_RTR : 0));
    put_le64(args + RNIC_MOD_IW_SEED, 0x1234567 + side->id);
    return iwarp_engine_ops.qp_modify(&side->iwarp, IW_SLOT, next, args,
                                      bed->now_ns) == RDMA_MODIFIED;
}

void iw_second(struct iw_bed *bed)
{
    init_side(bed, 1);
}

void iw_connect(struct iw_bed *bed)
{
    if (bed->side[1].state == NULL) {
        iw_second(bed);
    }
    for (unsigned int i = 0; i < 2; i++) {
        iw_create(&bed->side[i]);
        assert_true(iw_modify(&bed->side[i], VERBS_QPS_RTR));
        assert_true(iw_modify(&bed->side[i], VERBS_QPS_RTS));
    }
}

void iw_raw(struct iw_bed *bed)
{
    bed->is_raw = true;
    iw_create(&bed->side[0]);
    assert_true(iw_modify(&bed->side[0], VERBS_QPS_RTR));
    assert_true(iw_modify(&bed->side[0], VERBS_QPS_RTS));
}

uint8_t iw_state(const struct iw_side *side)
{
    return side->objects->qps[IW_SLOT].state;
}

enum iwarp_stage iw_stage(const struct iw_side *side)
{
    return (enum iwarp_stage)side->state->qps[IW_SLOT].stage;
}

uint64_t iw_counter(const struct iw_side *side, enum iwarp_counter counter)
{
    return side->state->counters[counter];
}

/* ---- Bytes between streams. */

static void put_ring(struct iw_side *side, const uint8_t *bytes, uint32_t len)
{
    assert_true(len <= RING_BYTES - side->ring_count);
    for (uint32_t i = 0; i < len; i++) {
        side->ring[(side->ring_first + side->ring_count + i) % RING_BYTES] =
            bytes[i];
    }
    side->ring_count += len;
}

/* Offer what waits in the ring, in two pieces where it wraps. */
static void offer_ring(struct iw_side *side)
{
    uint32_t first = MIN(side->ring_count, RING_BYTES - side->ring_first);
    const struct rdma_stream_piece pieces[2] = {
        {side->ring + side->ring_first, first},
        {side->ring, side->ring_count - first},
    };
    uint32_t taken;

    side->is_in = true;
    taken = iwarp_receive(&side->iwarp, IW_SLOT, pieces,
                          pieces[1].len_bytes != 0 ? 2 : 1, side->bed->now_ns);
    side->is_in = false;
    assert_true(taken <= side->ring_count);
    side->ring_first = (side->ring_first + taken) % RING_BYTES;
    side->ring_count -= taken;
}

/* Deliver bytes in pieces of the bed's lengths. */
static void deliver_bytes(struct iw_side *side, const uint8_t *bytes,
                          uint32_t len)
{
    struct iw_bed *bed = side->bed;

    for (uint32_t at = 0; at < len && side->is_attached;) {
        uint32_t n = bed->segment != 0 ? bed->segment : 1448;

        if (bed->split != 0) {
            n = bed->split;
            bed->split = 0;
        }
        n = MIN(n, len - at);
        put_ring(side, bytes + at, n);
        offer_ring(side);
        at += n;
    }
}

/* One segment leaves.  @return false: there is nothing to send */
static bool send_segment(struct iw_side *side)
{
    struct iw_bed *bed = side->bed;
    uint32_t mss = segment_bytes(side, IW_STREAM);
    uint32_t len = (uint32_t)MIN(mss, side->announced - side->fetched);
    struct rdma_stream_piece pieces[RDMA_STREAM_PIECES];
    uint8_t segment[65536];
    unsigned int count;
    uint32_t got = 0;

    if (len == 0 || !side->is_attached) {
        return false;
    }
    side->is_in = true;
    count = iwarp_fetch(&side->iwarp, IW_SLOT, side->fetched, len, pieces);
    side->is_in = false;
    if (count == 0) { /* as the TOE does: reset */
        side->has_rst = true;
        side->is_attached = false;
        iwarp_ended(&side->iwarp, IW_SLOT, RDMA_STREAM_LOST, bed->now_ns);
        return true;
    }
    for (unsigned int i = 0; i < count; i++) {
        memcpy(segment + got, pieces[i].data, pieces[i].len_bytes);
        got += pieces[i].len_bytes;
    }
    assert_true(got != 0 && got <= len);
    side->fetched += got;
    if (bed->is_raw) {
        assert_true(side->fetched <= IW_OUT);
        memcpy(side->out + side->fetched - got, segment, got);
    } else {
        deliver_bytes(&bed->side[!side->id], segment, got);
    }
    return true;
}

static void acknowledge_bytes(struct iw_side *side)
{
    uint32_t len = (uint32_t)(side->fetched - side->acked);

    if (len == 0 || side->bed->holds_acks || !side->is_attached) {
        return;
    }
    side->acked += len;
    side->is_in = true;
    iwarp_acked(&side->iwarp, IW_SLOT, len, side->bed->now_ns);
    side->is_in = false;
}

/* The other side's FIN or RST arrives. */
static bool hear_end(struct iw_side *side)
{
    struct iw_side *peer = &side->bed->side[!side->id];

    if (side->bed->is_raw || !side->is_attached) {
        return false;
    }
    if (peer->has_rst) {
        side->is_attached = false;
        iwarp_ended(&side->iwarp, IW_SLOT, RDMA_STREAM_RESET,
                    side->bed->now_ns);
        return true;
    }
    if (peer->has_fin && !side->peer_fin && peer->fetched == peer->announced) {
        side->peer_fin = true;
        iwarp_finished(&side->iwarp, IW_SLOT, side->bed->now_ns);
        return true;
    }
    return false;
}

static bool run_side(struct iw_side *side)
{
    bool is_busy = side->state->count != 0;

    (void)iwarp_engine_ops.transmit(&side->iwarp, 64, side->bed->now_ns);
    is_busy |= send_segment(side);
    acknowledge_bytes(side);
    return is_busy | hear_end(side);
}

void iw_run(struct iw_bed *bed)
{
    unsigned int quiet = 0;

    for (unsigned int i = 0; quiet < 2; i++) {
        bool is_busy = run_side(&bed->side[0]);

        assert_true(i < 100000);
        is_busy |= !bed->is_raw && run_side(&bed->side[1]);
        quiet = is_busy ? 0 : quiet + 1;
    }
}

/* ---- The driver. */

static void write_sges(const struct iw_wr *wr, uint8_t *wqe)
{
    uint8_t sges = wr->sges != 0 ? wr->sges : 1;
    uint32_t at = 0;

    for (uint8_t i = 0; i < sges; i++) {
        uint8_t *sge = wqe + RNIC_SWQE_SGE + i * RNIC_SGE_LEN;
        uint32_t n = i + 1 == sges ? wr->len - at : wr->len / sges;

        put_le64(sge + RNIC_SGE_ADDR, IW_DATA_ADDR + wr->offset + at);
        put_le32(sge + RNIC_SGE_LENGTH, n);
        put_le32(sge + RNIC_SGE_LKEY, wr->lkey != 0 ? wr->lkey : IW_LOCAL_KEY);
        at += n;
    }
    wqe[RNIC_SWQE_SGES] = sges;
}

void iw_post(struct iw_side *side, const struct iw_wr *wr)
{
    uint32_t slot = side->sq_pi++ & ((1u << IW_SQ_LOG2) - 1);
    uint8_t *wqe = side->dram + SQ + slot * RNIC_SWQE_LEN;

    memset(wqe, 0, RNIC_SWQE_LEN);
    wqe[RNIC_SWQE_OPCODE] = wr->opcode;
    wqe[RNIC_SWQE_FLAGS] = (uint8_t)(wr->flags | RNIC_WR_SIGNALED);
    put_le64(wqe + RNIC_SWQE_WR_ID, wr->wr_id);
    put_le32(wqe + RNIC_SWQE_INV_KEY, wr->inv_key);
    put_le64(wqe + RNIC_SWQE_REMOTE_ADDR, wr->remote_addr != 0
                                              ? wr->remote_addr
                                              : IW_DATA_ADDR + wr->remote);
    put_le32(wqe + RNIC_SWQE_RKEY, wr->rkey != 0 ? wr->rkey : IW_REMOTE_KEY);
    if (wr->inline_data != NULL) {
        wqe[RNIC_SWQE_FLAGS] |= RNIC_WR_INLINE;
        wqe[RNIC_SWQE_INLINE_LEN] = (uint8_t)wr->len;
        memcpy(wqe + RNIC_SWQE_SGE, wr->inline_data, wr->len);
    } else {
        write_sges(wr, wqe);
    }
}

void iw_ring(struct iw_side *side)
{
    write_word(side, SQ_RECORD, side->sq_pi);
    iwarp_engine_ops.doorbell(&side->iwarp, IW_SLOT, side->bed->now_ns);
}

void iw_send(struct iw_side *side, const struct iw_wr *wr)
{
    iw_post(side, wr);
    iw_ring(side);
    iw_run(side->bed);
}

void iw_recv(struct iw_side *side, uint64_t wr_id, uint32_t offset,
             uint32_t len)
{
    uint32_t slot = side->rq_pi++ & ((1u << IW_RQ_LOG2) - 1);
    uint8_t *wqe = side->dram + RQ + slot * RNIC_RWQE_LEN;

    put_le64(wqe + RNIC_RWQE_WR_ID, wr_id);
    put_le64(wqe + RNIC_RWQE_ADDR, IW_DATA_ADDR + offset);
    put_le32(wqe + RNIC_RWQE_LENGTH, len);
    put_le32(wqe + RNIC_RWQE_LKEY, IW_LOCAL_KEY);
    write_word(side, RQ_RECORD, side->rq_pi);
}

bool iw_poll(struct iw_side *side, struct iw_wc *wc)
{
    const uint8_t *cqe =
        side->dram + CQ +
        (side->cq_ci & ((1u << IW_CQ_LOG2) - 1)) * RNIC_CQE_LEN;

    if (side->cq_ci == side->objects->cqs[0].pi) {
        return false;
    }
    *wc = (struct iw_wc){
        .wr_id = get_le64(cqe + RNIC_CQE_WR_ID),
        .len = get_le32(cqe + RNIC_CQE_LENGTH),
        .inv_key = get_le32(cqe + RNIC_CQE_INV_KEY),
        .opcode = cqe[RNIC_CQE_OPCODE],
        .status = cqe[RNIC_CQE_STATUS],
        .with_inv = cqe[RNIC_CQE_FLAGS] & RNIC_CQE_WITH_INV,
    };
    assert_int_equal(get_le32(cqe + RNIC_CQE_QPN), IW_QPN);
    write_word(side, CQ_RECORD, ++side->cq_ci);
    return true;
}

bool iw_poll_event(struct iw_side *side, struct iw_event *event)
{
    const uint8_t *eqe =
        side->dram + EQ +
        (side->eq_ci & ((1u << IW_EQ_LOG2) - 1)) * RNIC_EQE_LEN;

    if (side->eq_ci == side->objects->eqs[0].pi) {
        return false;
    }
    *event = (struct iw_event){
        .type = eqe[RNIC_EQE_TYPE],
        .info = get_le32(eqe + RNIC_EQE_INFO),
    };
    write_word(side, EQ_RECORD, ++side->eq_ci);
    return true;
}

void iw_expect_wc(struct iw_side *side, uint64_t wr_id, uint8_t status)
{
    struct iw_wc wc;

    assert_true(iw_poll(side, &wc));
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, status);
}

void iw_expect_event(struct iw_side *side, uint8_t type, uint32_t info)
{
    struct iw_event event;

    assert_true(iw_poll_event(side, &event));
    assert_int_equal(event.type, type);
    assert_int_equal(event.info, info);
}

/* ---- The raw peer. */

void iw_give(struct iw_bed *bed, const uint8_t *bytes, uint32_t len)
{
    deliver_bytes(&bed->side[0], bytes, len);
    iw_run(bed);
}

uint32_t iw_fpdu(const struct iw_bed *bed, const struct ddp *ddp,
                 const void *payload, uint32_t len, uint8_t *buf)
{
    uint32_t header = ddp_emit(ddp, buf + MPA_FPDU_HEADER);
    uint32_t bytes = mpa_fpdu_bytes(header + len);

    put_be16(buf, (uint16_t)(header + len));
    if (len != 0) {
        memcpy(buf + MPA_FPDU_HEADER + header, payload, len);
    }
    memset(buf + MPA_FPDU_HEADER + header + len, 0,
           mpa_pad_bytes(header + len));
    put_le32(buf + bytes - MPA_FPDU_CRC,
             bed->no_crc ? 0 : crc32c_update(0, buf, bytes - MPA_FPDU_CRC));
    return bytes;
}

void iw_give_fpdu(struct iw_bed *bed, const struct ddp *ddp,
                  const void *payload, uint32_t len)
{
    uint8_t buf[65536];

    iw_give(bed, buf, iw_fpdu(bed, ddp, payload, len, buf));
}

struct ddp iw_send_ddp(uint32_t msn, uint32_t mo, bool is_last)
{
    return (struct ddp){
        .is_last = is_last,
        .version = DDP_VERSION,
        .rdmap_version = RDMAP_VERSION,
        .opcode = RDMAP_SEND,
        .msn = msn,
        .mo = mo,
    };
}

struct ddp iw_write_ddp(uint32_t stag, uint64_t to)
{
    return (struct ddp){
        .is_tagged = true,
        .is_last = true,
        .version = DDP_VERSION,
        .rdmap_version = RDMAP_VERSION,
        .opcode = RDMAP_WRITE,
        .stag = stag,
        .to = to,
    };
}

struct ddp iw_read_ddp(uint32_t msn)
{
    struct ddp ddp = iw_send_ddp(msn, 0, true);

    ddp.opcode = RDMAP_READ_REQUEST;
    ddp.qn = DDP_QN_READ;
    return ddp;
}

bool iw_next(struct iw_bed *bed, struct iw_fpdu *fpdu)
{
    struct iw_side *side = &bed->side[0];
    const struct rdma_stream_piece piece = {
        side->out + side->checked, (uint32_t)(side->fetched - side->checked)};
    struct rdma_stream_piece ulpdu;
    uint32_t header;

    if (piece.len_bytes == 0) {
        return false;
    }
    assert_int_equal(
        mpa_deframe(&piece, 1, 0, IWARP_MAX_FPDU, !bed->no_crc, NULL, &ulpdu),
        MPA_FPDU);
    header = ddp_parse(&fpdu->ddp, ulpdu.data, ulpdu.len_bytes);
    assert_true(header != 0);
    assert_int_equal(fpdu->ddp.version, DDP_VERSION);
    assert_int_equal(fpdu->ddp.rdmap_version, RDMAP_VERSION);
    fpdu->payload = ulpdu.data + header;
    fpdu->len = ulpdu.len_bytes - header;
    side->checked += mpa_fpdu_bytes(ulpdu.len_bytes);
    return true;
}

void iw_expect_silence(struct iw_bed *bed)
{
    struct iw_fpdu fpdu;

    assert_false(iw_next(bed, &fpdu));
    assert_false(bed->side[0].has_fin || bed->side[0].has_rst);
}

void iw_expect_terminate(struct iw_bed *bed, enum rdmap_error error,
                         enum verbs_wc_status status)
{
    struct iw_side *side = &bed->side[0];
    struct rdmap_terminate terminate;
    struct iw_event event;
    struct iw_fpdu fpdu;

    assert_true(iw_next(bed, &fpdu));
    assert_int_equal(fpdu.ddp.opcode, RDMAP_TERMINATE);
    assert_false(fpdu.ddp.is_tagged);
    assert_true(fpdu.ddp.is_last);
    assert_int_equal(fpdu.ddp.qn, DDP_QN_TERMINATE);
    assert_int_equal(fpdu.ddp.msn, 1);
    assert_int_equal(fpdu.ddp.mo, 0);
    assert_true(rdmap_terminate_parse(&terminate, fpdu.payload, fpdu.len));
    assert_int_equal(terminate.error, error);
    assert_false(iw_next(bed, &fpdu));
    assert_true(side->has_fin);
    assert_false(side->has_rst);
    assert_false(side->is_attached);
    assert_int_equal(iw_state(side), VERBS_QPS_ERROR);
    do {
        assert_true(iw_poll_event(side, &event));
    } while (event.type == RDMA_EVENT_QP_ESTABLISHED);
    assert_int_equal(event.type, RDMA_EVENT_QP_FATAL);
    assert_int_equal(event.info, status);
    assert_int_equal(iw_counter(side, IWARP_TX_TERMINATES), 1);
}
