/* SPDX-License-Identifier: BSD-2-Clause */
/* Test bed: see bed.h. */
#include "bed.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bytes.h"

/* The layout of each side's DRAM. */
enum {
    PAGE = 0x1000,
    COMMANDS = 0x2000,
    DOORBELLS = 0x4000,
    EVENTS = 0x5000,
    CQ_RECORD = 0x6000,
    RECORDS = 0x7000, /* 64 bytes per QP: SQ at 0, RQ at 4 */
    CQ = 0x10000,
    SQ = 0x20000,
    SQ_STRIDE = RNIC_SWQE_LEN << BED_SQ_LOG2,
    RQ = 0x80000,
    RQ_STRIDE = RNIC_RWQE_LEN << BED_RQ_LOG2,
};

/* ---- The environment of a side's core. */

static void *dma_pointer(void *ctx, uint64_t addr, uint64_t len)
{
    struct bed_side *side = ctx;

    if (addr < BED_BASE || addr - BED_BASE > BED_DRAM_LEN ||
        len > BED_DRAM_LEN - (addr - BED_BASE)) {
        return NULL;
    }
    return side->dram + (addr - BED_BASE);
}

static bool is_dram(void *ctx, uint64_t addr, uint64_t len)
{
    return dma_pointer(ctx, addr, len) != NULL;
}

static uint64_t now_ns(void *ctx)
{
    return ((struct bed_side *)ctx)->bed->now_ns;
}

static void set_timer(void *ctx, uint64_t deadline_ns)
{
    ((struct bed_side *)ctx)->timer_ns = deadline_ns;
}

static void set_irq(void *ctx, unsigned int line, bool level)
{
    assert_int_equal(line, 0);
    ((struct bed_side *)ctx)->irq = level;
}

static void defer_run(void *ctx)
{
    ((struct bed_side *)ctx)->deferred = true;
}

/* ---- The connection. */

static uint32_t next_random(struct bed *bed)
{
    bed->random = bed->random * 1664525 + 1013904223;
    return bed->random >> 8;
}

static struct bed_frame flatten_frame(const struct frame_tx *tx,
                                      unsigned int port)
{
    struct bed_frame frame = {.len = frame_tx_len(tx), .port = (uint8_t)port};

    assert_true(tx->num_pieces <= FRAME_PIECES_MAX);
    frame.data = malloc(frame.len);
    (void)frame_tx_copy(frame.data, tx);
    return frame;
}

static void queue_arrival(struct bed_side *to, struct bed_frame frame)
{
    assert_true(to->in_tail - to->in_head < BED_FRAMES);
    to->in[to->in_tail++ % BED_FRAMES] = frame;
}

static void carry_frame(struct bed *bed, struct bed_side *to,
                        struct bed_frame frame)
{
    unsigned int k = bed->frames++;
    bool hit = k >= bed->fault_at && k - bed->fault_at < bed->fault_count;
    struct bed_frame *last;

    if (bed->loss_per_1000 != 0 &&
        next_random(bed) % 1000 < bed->loss_per_1000) {
        free(frame.data);
        return;
    }
    switch (hit ? bed->fault : BED_NONE) {
    case BED_DROP:
        free(frame.data);
        return;
    case BED_SPOIL:
        frame.data[frame.len - 6] ^= 0x10;
        break;
    case BED_REPEAT: {
        struct bed_frame copy = frame;

        copy.data = malloc(frame.len);
        memcpy(copy.data, frame.data, frame.len);
        queue_arrival(to, copy);
        break;
    }
    default:
        break;
    }
    queue_arrival(to, frame);
    /*
     * Swapped: frame k overtakes the previous one, which is still on its way.
     */
    if (hit && bed->fault == BED_SWAP && to->in_tail - to->in_head >= 2) {
        last = &to->in[(to->in_tail - 2) % BED_FRAMES];
        to->in[(to->in_tail - 1) % BED_FRAMES] = *last;
        *last = frame;
    }
}

struct port_ctx {
    struct bed_side *side;
    unsigned int port;
};

static unsigned int send_frames(struct bed_side *side, unsigned int port,
                                const struct frame_tx *burst,
                                unsigned int count)
{
    struct bed *bed = side->bed;
    unsigned int n = count < side->tx_room ? count : side->tx_room;

    for (unsigned int i = 0; i < n; i++) {
        if (bed->tap != NULL) {
            bed->tap(bed->tap_ctx, side->id, &burst[i]);
        }
        carry_frame(bed, &bed->side[!side->id], flatten_frame(&burst[i], port));
    }
    if (side->tx_room != UINT32_MAX) {
        side->tx_room -= n;
    }
    side->blocked |= n < count;
    return n;
}

static unsigned int send_port_0(void *ctx, const struct frame_tx *burst,
                                unsigned int count)
{
    return send_frames(ctx, 0, burst, count);
}

static unsigned int send_port_1(void *ctx, const struct frame_tx *burst,
                                unsigned int count)
{
    return send_frames(ctx, 1, burst, count);
}

/* ---- Creation and end. */

/* Each side has megabytes of memory, which the next bed uses again. */
static struct {
    struct rnic *rnic;
    uint8_t *dram;
} spare[2];

static void take_memory(struct bed_side *side)
{
    unsigned int i = side->id;

    side->rnic = spare[i].rnic;
    side->dram = spare[i].dram;
    spare[i].rnic = NULL;
    spare[i].dram = NULL;
    if (side->rnic == NULL) {
        side->rnic = malloc(sizeof(*side->rnic));
        side->dram = aligned_alloc(4096, BED_DRAM_LEN);
    }
    memset(side->dram, 0, BED_DRAM_LEN);
}

static void give_memory(struct bed_side *side)
{
    unsigned int i = side->id;

    free(spare[i].rnic);
    free(spare[i].dram);
    spare[i].rnic = side->rnic;
    spare[i].dram = side->dram;
}

__attribute__((destructor)) static void free_spare(void)
{
    for (unsigned int i = 0; i < 2; i++) {
        free(spare[i].rnic);
        free(spare[i].dram);
    }
}

static void init_rnic(struct bed_side *side)
{
    rnic_init(side->rnic, &(struct rnic_config){
                              .env = {.ctx = side,
                                      .dma = dma_pointer,
                                      .dma_write = dma_pointer,
                                      .is_dram = is_dram,
                                      .now_ns = now_ns,
                                      .set_timer = set_timer,
                                      .set_irq = set_irq,
                                      .defer = defer_run},
                              .ports = {{.ctx = side, .send = send_port_0},
                                        {.ctx = side, .send = send_port_1}},
                          });
}

void bed_reload(struct bed_side *side)
{
    struct rnic_state *saved = malloc(sizeof(*saved));

    memcpy(saved, &side->rnic->state, sizeof(*saved));
    memset(side->rnic, 0x5a, sizeof(*side->rnic));
    side->deferred = false;
    init_rnic(side);
    memcpy(&side->rnic->state, saved, sizeof(*saved));
    assert_true(rnic_state_loaded(side->rnic));
    free(saved);
}

struct bed *bed_new(void)
{
    struct bed *bed = calloc(1, sizeof(*bed));

    bed->batch = 8;
    bed->now_ns = 1000;
    bed->fault_count = 1;
    bed->random = 1;
    for (unsigned int i = 0; i < 2; i++) {
        struct bed_side *side = &bed->side[i];

        side->bed = bed;
        side->id = i;
        side->tx_room = UINT32_MAX;
        take_memory(side);
        init_rnic(side);
    }
    return bed;
}

void bed_free(struct bed *bed)
{
    for (unsigned int i = 0; i < 2; i++) {
        struct bed_side *side = &bed->side[i];

        while (side->in_head != side->in_tail) {
            free(side->in[side->in_head++ % BED_FRAMES].data);
        }
        give_memory(side);
    }
    free(bed);
}

static void word_write(struct bed_side *side, uint32_t at, uint32_t value)
{
    put_le32(side->dram + at, value);
}

static uint32_t word_read(struct bed_side *side, uint32_t at)
{
    return get_le32(side->dram + at);
}

static void kick_if_asleep(struct bed_side *side)
{
    if (word_read(side, PAGE + RNIC_PAGE_ASLEEP) == 1) {
        side->kicks++;
        assert_true(rnic_write(side->rnic, A_RNIC_HART_KICK, 1));
    }
}

uint8_t bed_command(struct bed_side *side, uint8_t opcode, uint32_t index,
                    const uint8_t *args, uint32_t *result)
{
    uint32_t slot = side->cmd_pi++ & ((1u << BED_CMD_LOG2) - 1);
    uint8_t *cmd = side->dram + COMMANDS + slot * RNIC_CMD_LEN;

    memset(cmd, 0, RNIC_CMD_LEN);
    if (args != NULL) {
        memcpy(cmd + RNIC_CMD_ARGS, args + RNIC_CMD_ARGS,
               RNIC_CMD_LEN - RNIC_CMD_ARGS);
    }
    cmd[RNIC_CMD_OPCODE] = opcode;
    put_le32(cmd + RNIC_CMD_INDEX, index);
    word_write(side, PAGE + RNIC_PAGE_CMD_PI, side->cmd_pi);
    kick_if_asleep(side);
    while (cmd[RNIC_CMD_STATUS] == RNIC_CMD_PENDING) {
        assert_true(side->deferred);
        side->deferred = false;
        rnic_run(side->rnic);
    }
    if (result != NULL) {
        *result = get_le32(cmd + RNIC_CMD_RESULT);
    }
    return cmd[RNIC_CMD_STATUS];
}

static void must_succeed(uint8_t status)
{
    assert_int_equal(status, RNIC_CMD_OK);
}

static void create_mr(struct bed_side *side, uint32_t key, uint64_t addr,
                      uint64_t len, uint8_t access)
{
    uint8_t args[RNIC_CMD_LEN] = {0};
    uint32_t result;

    args[RNIC_MR_ACCESS] = access;
    args[RNIC_MR_VARIANT] = (uint8_t)key;
    put_le64(args + RNIC_MR_VA, addr);
    put_le64(args + RNIC_MR_LENGTH, len);
    put_le64(args + RNIC_MR_DRAM, addr);
    must_succeed(
        bed_command(side, RNIC_CMD_MR_CREATE, key >> 8, args, &result));
    assert_int_equal(result, key);
}

static struct ip_addr address_of(const struct bed *bed, unsigned int side,
                                 unsigned int port)
{
    struct ip_addr v6 = {{0xfd, [14] = (uint8_t)port, [15] = (uint8_t)side}};

    return bed->ipv6 ? v6 : ip_addr_from_v4(0x0a000001 + (port << 8) + side);
}

static void set_addresses(struct bed_side *side)
{
    for (unsigned int port = 0; port < 2; port++) {
        struct ip_addr ours = address_of(side->bed, side->id, port);
        struct ip_addr theirs = address_of(side->bed, side->id ^ 1, port);
        uint8_t args[RNIC_CMD_LEN] = {0};

        args[RNIC_LADDR_PORT] = (uint8_t)port;
        args[RNIC_LADDR_MAC] = 2;
        args[RNIC_LADDR_MAC + 5] = (uint8_t)(side->id * 16 + port);
        memcpy(args + RNIC_LADDR_IP, ours.bytes, 16);
        put_le16(args + RNIC_LADDR_VLAN, side->bed->vlan ? 7 : 0xffff);
        must_succeed(bed_command(side, RNIC_CMD_LADDR_SET, port, args, NULL));
        memset(args, 0, sizeof(args));
        args[RNIC_NEIGH_PORT] = (uint8_t)port;
        args[RNIC_NEIGH_MAC] = 2;
        args[RNIC_NEIGH_MAC + 5] = (uint8_t)((side->id ^ 1) * 16 + port);
        memcpy(args + RNIC_NEIGH_IP, theirs.bytes, 16);
        put_le16(args + RNIC_NEIGH_VLAN, side->bed->vlan ? 7 : 0xffff);
        must_succeed(bed_command(side, RNIC_CMD_NEIGH_SET, port, args, NULL));
    }
}

static void write_address(struct bed_side *side, uint32_t lo, uint32_t offset)
{
    uint64_t addr = BED_BASE + offset;

    assert_true(rnic_write(side->rnic, lo, (uint32_t)addr));
    assert_true(rnic_write(side->rnic, lo + 4, (uint32_t)(addr >> 32)));
}

static void start_side(struct bed_side *side)
{
    uint8_t args[RNIC_CMD_LEN] = {0};

    write_address(side, A_RNIC_HART_PAGE_LO, PAGE);
    write_address(side, A_RNIC_HART_CMD_LO, COMMANDS);
    write_address(side, A_RNIC_HART_DB_LO, DOORBELLS);
    write_address(side, A_RNIC_HART_EQ_LO, EVENTS);
    assert_true(rnic_write(side->rnic, A_RNIC_HART_SIZES,
                           FIELD_MAKE(RNIC_HART_SIZES, CMD, BED_CMD_LOG2) |
                               FIELD_MAKE(RNIC_HART_SIZES, DB, BED_DB_LOG2) |
                               FIELD_MAKE(RNIC_HART_SIZES, EQ, BED_EQ_LOG2)));
    assert_true(rnic_write(side->rnic, A_RNIC_HART_ENABLE, 1));
    assert_int_equal(rnic_read(side->rnic, A_RNIC_HART_ENABLE), 1);
    must_succeed(bed_command(side, RNIC_CMD_PD_CREATE, 0, NULL, NULL));
    create_mr(side, BED_LOCAL_KEY, BED_BASE, BED_DRAM_LEN,
              RNIC_ACCESS_LOCAL_WRITE);
    create_mr(side, BED_REMOTE_KEY, BED_DATA_ADDR, BED_DATA_LEN,
              RNIC_ACCESS_LOCAL_WRITE | RNIC_ACCESS_REMOTE_WRITE |
                  RNIC_ACCESS_REMOTE_READ);
    args[RNIC_CQ_SIZE] = BED_CQ_LOG2;
    put_le64(args + RNIC_CQ_BASE, BED_BASE + CQ);
    put_le64(args + RNIC_CQ_RECORD, BED_BASE + CQ_RECORD);
    must_succeed(bed_command(side, RNIC_CMD_CQ_CREATE, 0, args, NULL));
    set_addresses(side);
    assert_true(rnic_write(side->rnic, A_RNIC_CTRL, R_RNIC_CTRL_ENABLE_MASK));
    assert_true(rnic_write(side->rnic, A_RNIC_IRQ_ENABLE, 1));
}

void bed_start(struct bed *bed)
{
    start_side(&bed->side[0]);
    start_side(&bed->side[1]);
}

/* ---- Queue pairs. */

uint32_t bed_qpn(const struct bed_side *side, unsigned int n)
{
    return n == BED_UD ? 1
                       : (side->generation + 3 + side->id) << 11 |
                             (BED_SLOT + n + side->id);
}

static uint32_t record_offset(unsigned int n)
{
    return RECORDS + n * 64;
}

static void create_qp(struct bed_side *side, unsigned int n, uint8_t type)
{
    uint8_t args[RNIC_CMD_LEN] = {0};

    side->sq_pi[n] = side->rq_pi[n] = 0;
    word_write(side, record_offset(n), 0);
    word_write(side, record_offset(n) + 4, 0);
    args[RNIC_RQ_SIZE] = BED_RQ_LOG2;
    put_le64(args + RNIC_RQ_BASE, BED_BASE + RQ + n * RQ_STRIDE);
    put_le64(args + RNIC_RQ_RECORD, BED_BASE + record_offset(n) + 4);
    must_succeed(bed_command(side, RNIC_CMD_RQ_CREATE, n, args, NULL));
    memset(args, 0, sizeof(args));
    args[RNIC_QP_TYPE] = type;
    args[RNIC_QP_SQ_SIZE] = BED_SQ_LOG2;
    put_le16(args + RNIC_QP_RQ, (uint16_t)n);
    put_le64(args + RNIC_QP_SQ_BASE, BED_BASE + SQ + n * SQ_STRIDE);
    put_le64(args + RNIC_QP_SQ_RECORD, BED_BASE + record_offset(n));
    must_succeed(
        bed_command(side, RNIC_CMD_QP_CREATE, bed_qpn(side, n), args, NULL));
}

void bed_create_qp(struct bed_side *side, unsigned int n)
{
    create_qp(side, n, RNIC_QP_RC);
}

void bed_create_ud(struct bed_side *side)
{
    uint8_t args[RNIC_CMD_LEN] = {0};

    create_qp(side, BED_UD, RNIC_QP_UD);
    put_le32(args + RNIC_MOD_QKEY, 0x80010000);
    for (uint8_t state = RNIC_QPS_INIT; state <= RNIC_QPS_RTS; state++) {
        args[RNIC_MOD_STATE] = state;
        must_succeed(bed_command(side, RNIC_CMD_QP_MODIFY, 1, args, NULL));
    }
}

static uint32_t first_psn(const struct bed_path *path, unsigned int side)
{
    uint32_t psn = path->psn != 0 ? path->psn : 0x1000;

    return side == 0 ? psn : psn ^ 0x800000;
}

uint8_t bed_modify(struct bed_side *side, unsigned int n, uint8_t state,
                   const struct bed_path *path)
{
    uint8_t args[RNIC_CMD_LEN] = {0};
    uint8_t reads = path->reads != 0 ? path->reads : 4;

    args[RNIC_MOD_STATE] = state;
    args[RNIC_MOD_LADDR] = (uint8_t)path->port;
    put_le16(args + RNIC_MOD_NEIGH, (uint16_t)path->port);
    args[RNIC_MOD_PATH_MTU] = path->mtu != 0 ? path->mtu : 5;
    args[RNIC_MOD_ACCESS] = path->no_access     ? 0
                            : path->access != 0 ? path->access
                                                : 7;
    args[RNIC_MOD_MAX_RD_ATOMIC] = reads;
    args[RNIC_MOD_MAX_DEST_RD_ATOMIC] = reads;
    put_le32(args + RNIC_MOD_DEST_QPN, bed_qpn(&side->bed->side[!side->id], n));
    put_le32(args + RNIC_MOD_SQ_PSN, first_psn(path, side->id));
    put_le32(args + RNIC_MOD_RQ_PSN, first_psn(path, side->id ^ 1));
    args[RNIC_MOD_ACK_TIMEOUT] = 8;
    args[RNIC_MOD_RETRIES] = path->no_retries     ? 0
                             : path->retries != 0 ? path->retries
                                                  : 7;
    args[RNIC_MOD_RNR_RETRIES] = path->no_retries         ? 0
                                 : path->rnr_retries != 0 ? path->rnr_retries
                                                          : 7;
    args[RNIC_MOD_RNR_TIMER] = path->rnr_timer != 0 ? path->rnr_timer : 1;
    put_le16(args + RNIC_MOD_UDP_SPORT, 0xc123);
    args[RNIC_MOD_ROCE] = side->bed->v1 ? RNIC_ROCE_V1 : RNIC_ROCE_V2;
    return bed_command(side, RNIC_CMD_QP_MODIFY, bed_qpn(side, n), args, NULL);
}

void bed_connect(struct bed *bed, unsigned int n, const struct bed_path *path)
{
    bed_create_qp(&bed->side[0], n);
    bed_create_qp(&bed->side[1], n);
    for (uint8_t state = RNIC_QPS_INIT; state <= RNIC_QPS_RTS; state++) {
        must_succeed(bed_modify(&bed->side[0], n, state, path));
        must_succeed(bed_modify(&bed->side[1], n, state, path));
    }
}

/* ---- Data. */

uint8_t *bed_data(struct bed_side *side, uint32_t offset)
{
    return side->dram + BED_DATA + offset;
}

void bed_fill(struct bed_side *side, uint32_t offset, uint32_t len,
              uint32_t seed)
{
    uint8_t *p = bed_data(side, offset);

    for (uint32_t i = 0; i < len; i++) {
        seed = seed * 1103515245 + 12345;
        p[i] = (uint8_t)(seed >> 16);
    }
}

bool bed_same(struct bed *bed, uint32_t offset0, uint32_t offset1, uint32_t len)
{
    return memcmp(bed_data(&bed->side[0], offset0),
                  bed_data(&bed->side[1], offset1), len) == 0;
}

/* ---- Posting. */

static void put_sges(uint8_t *wqe, const struct bed_wr *wr, uint8_t sges)
{
    uint32_t each = wr->len / sges, at = 0;

    for (uint8_t i = 0; i < sges; i++) {
        uint8_t *sge = wqe + RNIC_SWQE_SGE + i * RNIC_SGE_LEN;
        uint32_t n = i + 1 == sges ? wr->len - at : each;

        put_le64(sge + RNIC_SGE_ADDR, BED_DATA_ADDR + wr->offset + at);
        put_le32(sge + RNIC_SGE_LENGTH, n);
        put_le32(sge + RNIC_SGE_LKEY, wr->lkey != 0 ? wr->lkey : BED_LOCAL_KEY);
        at += n;
    }
}

void bed_post(struct bed_side *side, unsigned int n, const struct bed_wr *wr)
{
    uint32_t slot = side->sq_pi[n]++ & ((1u << BED_SQ_LOG2) - 1);
    uint8_t *wqe = side->dram + SQ + n * SQ_STRIDE + slot * RNIC_SWQE_LEN;
    uint8_t sges = wr->sges != 0 ? wr->sges : 1;

    memset(wqe, 0, RNIC_SWQE_LEN);
    wqe[RNIC_SWQE_OPCODE] = wr->opcode;
    wqe[RNIC_SWQE_FLAGS] = wr->flags;
    wqe[RNIC_SWQE_UD_ROCE] = side->bed->v1 ? RNIC_ROCE_V1 : RNIC_ROCE_V2;
    put_le64(wqe + RNIC_SWQE_WR_ID, wr->wr_id);
    put_le64(wqe + RNIC_SWQE_REMOTE_ADDR, BED_DATA_ADDR + wr->remote);
    put_le32(wqe + RNIC_SWQE_RKEY, wr->rkey != 0 ? wr->rkey : BED_REMOTE_KEY);
    put_le32(wqe + RNIC_SWQE_INV_KEY, wr->inv_key);
    if (n == BED_UD) {
        put_le16(wqe + RNIC_SWQE_UD_NEIGH, wr->neigh);
        wqe[RNIC_SWQE_UD_PRIORITY] = wr->priority;
        wqe[RNIC_SWQE_UD_DSCP] = wr->dscp;
        put_le32(wqe + RNIC_SWQE_UD_QPN, 1);
        put_le32(wqe + RNIC_SWQE_UD_QKEY, 0x80010000);
    }
    if (wr->flags & RNIC_WR_INLINE) {
        wqe[RNIC_SWQE_INLINE_LEN] = (uint8_t)wr->len;
        memcpy(wqe + RNIC_SWQE_SGE, wr->inline_data, wr->len);
        return;
    }
    wqe[RNIC_SWQE_SGES] = wr->len != 0 ? sges : 0;
    if (wr->len != 0) {
        put_sges(wqe, wr, sges);
    }
}

void bed_ring_number(struct bed_side *side, uint32_t qpn)
{
    uint32_t slot = side->db_pi++ & ((1u << BED_DB_LOG2) - 1);

    word_write(side, DOORBELLS + slot * 4, qpn);
    word_write(side, PAGE + RNIC_PAGE_DB_PI, side->db_pi);
    kick_if_asleep(side);
    if (side->db_pi - word_read(side, PAGE + RNIC_PAGE_DB_CI) ==
        1u << BED_DB_LOG2) {
        side->deferred = false;
        rnic_run(side->rnic);
    }
}

void bed_ring(struct bed_side *side, unsigned int n)
{
    word_write(side, record_offset(n), side->sq_pi[n]);
    bed_ring_number(side, bed_qpn(side, n));
}

void bed_send(struct bed_side *side, unsigned int n, const struct bed_wr *wr)
{
    bed_post(side, n, wr);
    bed_ring(side, n);
}

void bed_recv(struct bed_side *side, unsigned int n, uint64_t wr_id,
              uint32_t offset, uint32_t len)
{
    uint32_t slot = side->rq_pi[n]++ & ((1u << BED_RQ_LOG2) - 1);
    uint8_t *wqe = side->dram + RQ + n * RQ_STRIDE + slot * RNIC_RWQE_LEN;

    put_le64(wqe + RNIC_RWQE_WR_ID, wr_id);
    put_le64(wqe + RNIC_RWQE_ADDR, BED_DATA_ADDR + offset);
    put_le32(wqe + RNIC_RWQE_LENGTH, len);
    put_le32(wqe + RNIC_RWQE_LKEY, BED_LOCAL_KEY);
    word_write(side, record_offset(n) + 4, side->rq_pi[n]);
}

/* ---- Completions. */

bool bed_poll(struct bed_side *side, struct bed_wc *wc)
{
    uint32_t slot = side->cq_ci & ((1u << BED_CQ_LOG2) - 1);
    const uint8_t *cqe = side->dram + CQ + slot * RNIC_CQE_LEN;
    uint8_t phase = (side->cq_ci >> BED_CQ_LOG2 & 1) == 0;

    if ((cqe[RNIC_CQE_FLAGS] & RNIC_CQE_PHASE) != phase) {
        return false;
    }
    *wc = (struct bed_wc){
        .wr_id = get_le64(cqe + RNIC_CQE_WR_ID),
        .qpn = get_le32(cqe + RNIC_CQE_QPN),
        .len = get_le32(cqe + RNIC_CQE_LENGTH),
        .inv_key = get_le32(cqe + RNIC_CQE_INV_KEY),
        .wqe = get_le16(cqe + RNIC_CQE_WQE),
        .opcode = cqe[RNIC_CQE_OPCODE],
        .status = cqe[RNIC_CQE_STATUS],
        .flags = cqe[RNIC_CQE_FLAGS],
    };
    word_write(side, CQ_RECORD, ++side->cq_ci);
    return true;
}

bool bed_poll_event(struct bed_side *side, struct bed_event *event)
{
    uint32_t slot = side->eq_ci & ((1u << BED_EQ_LOG2) - 1);
    const uint8_t *eqe = side->dram + EVENTS + slot * RNIC_EQE_LEN;
    uint8_t phase = (side->eq_ci >> BED_EQ_LOG2 & 1) == 0;

    if ((eqe[RNIC_EQE_FLAGS] & 1) != phase) {
        return false;
    }
    *event = (struct bed_event){
        .index = get_le32(eqe + RNIC_EQE_INDEX),
        .info = get_le32(eqe + RNIC_EQE_INFO),
        .type = eqe[RNIC_EQE_TYPE],
    };
    word_write(side, PAGE + RNIC_PAGE_EQ_CI, ++side->eq_ci);
    return true;
}

/* ---- Time. */

static bool deliver_frames(struct bed_side *side)
{
    struct frame_rx rx[64] = {0};
    struct bed_frame *frames[64];
    unsigned int n = 0, port;

    if (side->in_head == side->in_tail) {
        return false;
    }
    port = side->in[side->in_head % BED_FRAMES].port;
    while (n < side->bed->batch && side->in_head != side->in_tail &&
           side->in[side->in_head % BED_FRAMES].port == port) {
        frames[n] = &side->in[side->in_head++ % BED_FRAMES];
        rx[n] = (struct frame_rx){.data = frames[n]->data,
                                  .len_bytes = frames[n]->len};
        n++;
    }
    rnic_rx(side->rnic, port, rx, n);
    for (unsigned int i = 0; i < n; i++) {
        free(frames[i]->data);
    }
    return true;
}

static bool step_side(struct bed_side *side)
{
    bool did = false;

    if (side->bed->room != 0 &&
        (side->blocked || side->tx_room > side->bed->room)) {
        side->blocked = false;
        side->tx_room = side->bed->room;
        rnic_port_ready(side->rnic, 0);
        rnic_port_ready(side->rnic, 1);
    }
    if (side->deferred) {
        side->deferred = false;
        rnic_run(side->rnic);
        did = true;
    }
    if (deliver_frames(side)) {
        did = true;
        if (side->bed->reload) {
            bed_reload(side);
        }
    }
    return did || (side->blocked && side->bed->room != 0);
}

void bed_run(struct bed *bed)
{
    unsigned int left = 1000000;

    for (bool did = true; did;) {
        did = step_side(&bed->side[0]);
        did = step_side(&bed->side[1]) || did;
        assert_true(left-- != 0);
    }
}

bool bed_tick(struct bed *bed)
{
    struct bed_side *first = &bed->side[0];

    if (bed->side[1].timer_ns < first->timer_ns) {
        first = &bed->side[1];
    }
    if (first->timer_ns == DEV_NO_DEADLINE) {
        return false;
    }
    if (first->timer_ns > bed->now_ns) {
        bed->now_ns = first->timer_ns;
    }
    first->timer_ns = DEV_NO_DEADLINE;
    rnic_timer(first->rnic);
    return true;
}

void bed_settle(struct bed *bed)
{
    unsigned int left = 10000;

    do {
        bed_run(bed);
        assert_true(left-- != 0);
    } while (bed_tick(bed));
}

uint64_t bed_counter(struct bed_side *side, enum rnic_counter counter)
{
    uint32_t at = RNIC_COUNTER_BASE + 8 * (uint32_t)counter;

    return (uint64_t)rnic_read(side->rnic, at + 4) << 32 |
           rnic_read(side->rnic, at);
}

uint32_t bed_state(struct bed_side *side, unsigned int n)
{
    uint32_t state;

    must_succeed(
        bed_command(side, RNIC_CMD_QP_QUERY, bed_qpn(side, n), NULL, &state));
    return state;
}
