/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RNIC driver with a fake register block.  This file also plays the RNIC's
 * side of the rings, so that every access of the driver can be checked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/drivers/rnic.h"
#include "firmware/hal/barrier.h"
#include "firmware/hal/mmio.h"
#include "lib/regfields.h"
#include "firmware/hal/relax.h"
#include "hw-model/regs/rnic.h"
#include "lib/bytes.h"
#include "tests/test_fixture.h"

enum {
    REGS = 0x1000,
    MAX_LOG = 64,
    ARENA = 64 << 20,
    CQS = 2,
};

/* One MMIO access.  For a read, the value that was returned. */
struct access {
    bool is_write;
    uint32_t reg;
    uint32_t value;
};

/*
 * The state of the fake RNIC.  It is static, because the hal functions below
 * have no context.
 */
static struct {
    struct access log[MAX_LOG];
    unsigned int log_len;
    uint32_t regs[0x800 / 4];
    uint8_t *arena;
    struct dram dram;
    struct verbs verbs;

    uint32_t cmd_ci, db_ci, eq_pi, cq_pi[CQS];
    uint8_t *cq_ring[CQS];
    uint32_t cq_mask[CQS];
    uint8_t *cq_record[CQS];
    /* The last command as the driver wrote it. */
    uint8_t last_cmd[RNIC_CMD_LEN];
    uint8_t opcodes[256]; /* opcodes of the last commands, by their number */
    /* Opcode of commands that are refused; 0: none. */
    unsigned int refuse_opcode;
    uint8_t refuse_status;
    void (*at_barrier)(void); /* called by write barriers; may be NULL */
    bool receives_came_first; /* see note_indices() */
} rnic;

static void log_access(bool is_write, uintptr_t addr, uint32_t value)
{
    if (rnic.log_len < MAX_LOG) {
        rnic.log[rnic.log_len++] = (struct access){
            .is_write = is_write,
            .reg = (uint32_t)(addr - REGS),
            .value = value,
        };
    }
}

static uint8_t *area_of(uint32_t low_reg)
{
    uint64_t addr =
        (uint64_t)rnic.regs[low_reg / 4 + 1] << 32 | rnic.regs[low_reg / 4];

    return hal_dma_ptr(addr);
}

static uint8_t *hart_page(uint32_t offset)
{
    return area_of(A_RNIC_HART_PAGE_LO) + offset;
}

uint32_t mmio_read32(uintptr_t addr)
{
    uint32_t reg = (uint32_t)(addr - REGS);
    uint32_t value = rnic.regs[reg / 4];

    if (reg == A_RNIC_CTRL) {
        rnic.regs[reg / 4] &= ~R_RNIC_CTRL_RESET_MASK;
    }
    log_access(false, addr, value);
    return value;
}

void mmio_write32(uintptr_t addr, uint32_t value)
{
    log_access(true, addr, value);
    rnic.regs[(addr - REGS) / 4] = value;
}

void hal_dma_wmb(void)
{
    if (rnic.at_barrier != NULL) {
        rnic.at_barrier();
    }
}
void hal_dma_rmb(void)
{
}
void hal_dma_mb(void)
{
}

/* Let the RNIC run every published command. */
void hal_relax(void)
{
    uint32_t entries = 1u << (rnic.regs[A_RNIC_HART_SIZES / 4] & 0xff);

    if (rnic.regs[A_RNIC_HART_ENABLE / 4] == 0) {
        return;
    }
    while (rnic.cmd_ci != get_le32(hart_page(RNIC_PAGE_CMD_PI))) {
        uint8_t *cmd = area_of(A_RNIC_HART_CMD_LO) +
                       (size_t)(rnic.cmd_ci & (entries - 1)) * RNIC_CMD_LEN;
        uint8_t opcode = cmd[RNIC_CMD_OPCODE];

        memcpy(rnic.last_cmd, cmd, RNIC_CMD_LEN);
        rnic.opcodes[rnic.cmd_ci++ & 0xff] = opcode;
        assert_int_equal(cmd[RNIC_CMD_STATUS], RNIC_CMD_PENDING);
        if (opcode == RNIC_CMD_CQ_CREATE) {
            uint32_t i = get_le32(cmd + RNIC_CMD_INDEX);

            assert_true(i < CQS);
            rnic.cq_ring[i] = hal_dma_ptr(get_le64(cmd + RNIC_CQ_BASE));
            rnic.cq_record[i] = hal_dma_ptr(get_le64(cmd + RNIC_CQ_RECORD));
            rnic.cq_mask[i] = (1u << cmd[RNIC_CQ_SIZE]) - 1;
        }
        cmd[RNIC_CMD_STATUS] =
            opcode == rnic.refuse_opcode ? rnic.refuse_status : RNIC_CMD_OK;
    }
}

static void write_cqe(unsigned int cq, uint32_t qpn, uint64_t wr_id,
                      uint8_t opcode, uint8_t status, uint16_t wqe,
                      uint32_t length, uint8_t flags)
{
    uint32_t pi = rnic.cq_pi[cq]++;
    uint8_t *cqe =
        rnic.cq_ring[cq] + (size_t)(pi & rnic.cq_mask[cq]) * RNIC_CQE_LEN;

    memset(cqe, 0xa5, RNIC_CQE_LEN - 1);
    put_le64(cqe + RNIC_CQE_WR_ID, wr_id);
    put_le32(cqe + RNIC_CQE_QPN, qpn);
    put_le32(cqe + RNIC_CQE_LENGTH, length);
    put_le32(cqe + RNIC_CQE_INV_KEY, 0x77);
    put_le16(cqe + RNIC_CQE_WQE, wqe);
    cqe[RNIC_CQE_OPCODE] = opcode;
    cqe[RNIC_CQE_STATUS] = status;
    cqe[RNIC_CQE_FLAGS] =
        (uint8_t)(flags | (pi & (rnic.cq_mask[cq] + 1) ? 0 : RNIC_CQE_PHASE));
}

static void write_eqe(uint8_t type, uint32_t index, uint32_t info)
{
    uint32_t entries = 1u << (rnic.regs[A_RNIC_HART_SIZES / 4] >> 16 & 0xff);
    uint8_t *eqe = area_of(A_RNIC_HART_EQ_LO) +
                   (size_t)(rnic.eq_pi & (entries - 1)) * RNIC_EQE_LEN;

    put_le32(eqe + RNIC_EQE_INDEX, index);
    put_le32(eqe + RNIC_EQE_INFO, info);
    eqe[RNIC_EQE_TYPE] = type;
    eqe[RNIC_EQE_FLAGS] = rnic.eq_pi++ & entries ? 0 : 1;
}

/*
 * Take every published doorbell.
 * @return the last QPN, 0 when there was none
 */
static uint32_t take_doorbells(unsigned int *count)
{
    uint32_t entries = 1u << (rnic.regs[A_RNIC_HART_SIZES / 4] >> 8 & 0xff);
    uint32_t qpn = 0;

    *count = 0;
    while (rnic.db_ci != get_le32(hart_page(RNIC_PAGE_DB_PI))) {
        qpn = get_le32(area_of(A_RNIC_HART_DB_LO) +
                       4 * (size_t)(rnic.db_ci++ & (entries - 1)));
        ++*count;
    }
    put_le32(hart_page(RNIC_PAGE_DB_CI), rnic.db_ci);
    return qpn;
}

/* What the QP's callbacks have received. */
static struct {
    struct verbs_wc wc;
    struct verbs_event event;
    unsigned int completions, events;
    bool event_was_first;
    uint32_t destroy_qpn; /* QP to destroy from inside the next completion */
} seen;

static void on_completion(void *ctx, const struct verbs_wc *wc)
{
    assert_ptr_equal(ctx, &seen);
    seen.wc = *wc;
    seen.completions++;
    if (seen.destroy_qpn != 0) {
        verbs_destroy_qp(&rnic.verbs, seen.destroy_qpn);
        seen.destroy_qpn = 0;
    }
}

static void on_event(void *ctx, const struct verbs_event *event)
{
    assert_ptr_equal(ctx, &seen);
    seen.event = *event;
    seen.event_was_first = seen.completions == 0;
    seen.events++;
}

static const struct verbs_qp_ops ops = {on_completion, on_event, NULL};

static bool start_with(uint32_t generation)
{
    struct verbs_config config = {
        .regs = REGS,
        .dram = &rnic.dram,
        .generation = generation,
    };
    uint8_t *arena = rnic.arena;

    memset(&rnic, 0, sizeof(rnic));
    memset(&seen, 0, sizeof(seen));
    rnic.arena = arena;
    rnic.regs[A_RNIC_ID / 4] = 0x52444d01;
    dram_init(&rnic.dram, rnic.arena, ARENA);
    return verbs_init(&rnic.verbs, &config) == INIT_OK;
}

static int set_up(void **state)
{
    (void)state;
    if (rnic.arena == NULL) {
        rnic.arena = aligned_alloc(4096, ARENA);
    }
    return rnic.arena != NULL && start_with(7) ? 0 : -1;
}

static uint32_t create_qp(uint32_t sq_depth, uint32_t rq_depth)
{
    const struct verbs_qp_config config = {
        .type = VERBS_QP_RC,
        .sq_depth = sq_depth,
        .rq_depth = rq_depth,
        .ops = &ops,
        .ctx = &seen,
    };
    uint32_t qpn = 0;

    assert_true(verbs_create_qp(&rnic.verbs, &config, &qpn));
    return qpn;
}

static struct verbs_send_wr send_wr(uint64_t wr_id)
{
    return (struct verbs_send_wr){
        .wr_id = wr_id,
        .opcode = VERBS_WR_SEND,
        .signaled = true,
        .num_sge = 1,
        .sge = {{rnic.arena + 64, 100, verbs_local_key(&rnic.verbs)}},
    };
}

/* ---- Tests. */

static void test_init_writes_exactly_these_registers(void **state)
{
    (void)state;
    const struct verbs *v = &rnic.verbs;
    uint64_t page_at = hal_dma_addr(v->page);
    uint64_t cmd_at = hal_dma_addr(v->commands);
    uint64_t db_at = hal_dma_addr(v->doorbells);
    uint64_t eq_at = hal_dma_addr(v->events);
    const struct access expected[] = {
        {false, A_RNIC_ID, 0x52444d01},
        {true, A_RNIC_CTRL, 0x80000000},
        {false, A_RNIC_CTRL, 0x80000000},
        {false, A_RNIC_CTRL, 0},
        {true, A_RNIC_HART_PAGE_LO, (uint32_t)page_at},
        {true, A_RNIC_HART_PAGE_HI, (uint32_t)(page_at >> 32)},
        {true, A_RNIC_HART_CMD_LO, (uint32_t)cmd_at},
        {true, A_RNIC_HART_CMD_HI, (uint32_t)(cmd_at >> 32)},
        {true, A_RNIC_HART_DB_LO, (uint32_t)db_at},
        {true, A_RNIC_HART_DB_HI, (uint32_t)(db_at >> 32)},
        {true, A_RNIC_HART_EQ_LO, (uint32_t)eq_at},
        {true, A_RNIC_HART_EQ_HI, (uint32_t)(eq_at >> 32)},
        {true, A_RNIC_HART_SIZES, 4 | 12 << 8 | 12 << 16},
        {true, A_RNIC_HART_ENABLE, 1},
        {false, A_RNIC_HART_ENABLE, 1},
        {true, A_RNIC_ECN, 48 << 8 | 6 << 16},
        {true, A_RNIC_IRQ_ENABLE, 1},
        {true, A_RNIC_CTRL, 1},
    };

    assert_int_equal(rnic.log_len, ARRAY_LEN(expected));
    for (unsigned int i = 0; i < ARRAY_LEN(expected); i++) {
        assert_int_equal(rnic.log[i].is_write, expected[i].is_write);
        assert_int_equal(rnic.log[i].reg, expected[i].reg);
        assert_int_equal(rnic.log[i].value, expected[i].value);
    }
    assert_int_equal(rnic.cmd_ci, 4);
    assert_int_equal(rnic.opcodes[0], RNIC_CMD_PD_CREATE);
    assert_int_equal(rnic.opcodes[1], RNIC_CMD_CQ_CREATE);
    assert_int_equal(rnic.opcodes[2], RNIC_CMD_CQ_CREATE);
    assert_int_equal(rnic.opcodes[3], RNIC_CMD_MR_CREATE);
    assert_int_equal(get_le64(rnic.last_cmd + RNIC_MR_LENGTH), ARENA);
    assert_int_equal(rnic.last_cmd[RNIC_MR_ACCESS], RNIC_ACCESS_LOCAL_WRITE);
}

static void test_init_refuses_another_device_and_small_dram(void **state)
{
    struct verbs_config config = {.regs = REGS, .dram = &rnic.dram};

    (void)state;
    rnic.regs[A_RNIC_ID / 4] = 0x12345678;
    dram_init(&rnic.dram, rnic.arena, ARENA);
    assert_int_equal(verbs_init(&rnic.verbs, &config), INIT_NO_DEVICE);
    rnic.regs[A_RNIC_ID / 4] = 0x52444d01;
    for (size_t size = 0; size < 24 << 20; size += 1234567) {
        dram_init(&rnic.dram, rnic.arena, size);
        assert_int_equal(verbs_init(&rnic.verbs, &config), INIT_NO_MEMORY);
    }
}

static void test_only_a_sleeping_rnic_is_kicked(void **state)
{
    uint32_t qpn = create_qp(16, 16);
    struct verbs_send_wr wr = send_wr(1);

    (void)state;
    rnic.log_len = 0;
    assert_true(verbs_post_send(&rnic.verbs, qpn, &wr));
    assert_int_equal(get_le32(hart_page(RNIC_PAGE_DB_PI)), 0);
    verbs_flush(&rnic.verbs);
    assert_int_equal(get_le32(hart_page(RNIC_PAGE_DB_PI)), 1);
    assert_int_equal(rnic.log_len, 0);

    put_le32(hart_page(RNIC_PAGE_ASLEEP), 1);
    assert_true(verbs_post_send(&rnic.verbs, qpn, &wr));
    verbs_flush(&rnic.verbs);
    verbs_flush(&rnic.verbs);
    assert_int_equal(rnic.log_len, 1);
    assert_true(rnic.log[0].is_write);
    assert_int_equal(rnic.log[0].reg, A_RNIC_HART_KICK);
}

static void test_each_queue_pair_rings_one_doorbell_per_burst(void **state)
{
    uint32_t qpns[3];
    unsigned int count;

    (void)state;
    for (unsigned int i = 0; i < 3; i++) {
        qpns[i] = create_qp(16, 16);
    }
    for (unsigned int n = 0; n < 5; n++) {
        for (unsigned int i = 0; i < 3; i++) {
            struct verbs_send_wr wr = send_wr(n);

            assert_true(verbs_post_send(&rnic.verbs, qpns[i], &wr));
        }
    }
    verbs_flush(&rnic.verbs);
    assert_int_equal(take_doorbells(&count), qpns[2]);
    assert_int_equal(count, 3);
    for (unsigned int i = 0; i < 3; i++) {
        assert_int_equal(get_le32(rnic.verbs.qps[qpns[i] & 2047].records), 5);
    }
}

static void test_receives_need_no_doorbell(void **state)
{
    uint32_t qpn = create_qp(16, 16);
    const struct verbs_sge sge = {rnic.arena + 128, 4096, 9};
    const uint8_t *records = rnic.verbs.qps[qpn & 2047].records;
    const uint8_t *rq = rnic.verbs.qps[qpn & 2047].rq;
    unsigned int count;

    (void)state;
    put_le32(hart_page(RNIC_PAGE_ASLEEP), 1);
    rnic.log_len = 0;
    for (uint64_t i = 0; i < 16; i++) {
        assert_true(verbs_post_recv(&rnic.verbs, qpn, i, &sge));
    }
    assert_false(verbs_post_recv(&rnic.verbs, qpn, 16, &sge));
    assert_int_equal(get_le32(records + 4), 0);
    verbs_flush(&rnic.verbs);
    assert_int_equal(get_le32(records + 4), 16);
    assert_int_equal(take_doorbells(&count), 0);
    assert_int_equal(rnic.log_len, 0);
    assert_int_equal(get_le64(rq + 5 * 32 + RNIC_RWQE_WR_ID), 5);
    assert_int_equal(get_le64(rq + 5 * 32 + RNIC_RWQE_ADDR),
                     hal_dma_addr(rnic.arena + 128));
    assert_int_equal(get_le32(rq + 5 * 32 + RNIC_RWQE_LENGTH), 4096);
    assert_int_equal(get_le32(rq + 5 * 32 + RNIC_RWQE_LKEY), 9);
}

/* Note whether, at a barrier, all QPs have published their receives, and none
 * its sends. */
static void note_indices(void)
{
    bool all_receives = true, no_sends = true;

    for (unsigned int i = 0; i < RNIC_QP_SLOTS; i++) {
        const struct rnic_qp *qp = &rnic.verbs.qps[i];

        if (qp->qpn != 0) {
            no_sends &= get_le32(qp->records) == 0;
            all_receives &= get_le32(qp->records + 4) == qp->rq_pi;
        }
    }
    rnic.receives_came_first |= all_receives && no_sends;
}

/*
 * QP 1 sends the answer to a connection request, and the first message may come
 * at once on the QP of the connection.
 */
static void test_receives_of_all_qps_are_published_before_any_send(void **state)
{
    const struct verbs_qp_config mad = {VERBS_QP_UD, 8, 8, &ops, &seen};
    const struct verbs_sge sge = {rnic.arena, 64, verbs_local_key(&rnic.verbs)};
    const struct verbs_send_wr answer = send_wr(7);
    uint32_t qpn = create_qp(8, 8);

    (void)state;
    assert_true(verbs_create_mad_qp(&rnic.verbs, &mad));
    rnic.at_barrier = note_indices;
    assert_true(verbs_post_recv(&rnic.verbs, 1, 1, &sge));
    assert_true(verbs_post_recv(&rnic.verbs, qpn, 2, &sge));
    assert_true(verbs_post_send(&rnic.verbs, 1, &answer));
    verbs_flush(&rnic.verbs);
    assert_true(rnic.receives_came_first);
    assert_int_equal(get_le32(rnic.verbs.qps[1].records), 1);
}

static void test_a_full_doorbell_ring_waits_for_the_next_flush(void **state)
{
    uint32_t qpn = create_qp(16, 16);
    uint32_t other = create_qp(16, 16);
    struct verbs_send_wr wr = send_wr(0);
    unsigned int count;

    (void)state;
    /* The RNIC takes nothing, so each flush leaves one doorbell in the ring. */
    for (uint32_t i = 0; i < 4096; i++) {
        assert_true(verbs_post_send(&rnic.verbs, qpn, &wr));
        verbs_flush(&rnic.verbs);
        rnic.verbs.qps[qpn & 2047].sq_ci++;
    }
    assert_true(verbs_post_send(&rnic.verbs, other, &wr));
    verbs_flush(&rnic.verbs);
    assert_int_equal(rnic.verbs.counters.doorbell_waits, 1);
    assert_int_equal(take_doorbells(&count), qpn);
    assert_int_equal(count, 4096);
    verbs_flush(&rnic.verbs);
    assert_int_equal(take_doorbells(&count), other);
    assert_int_equal(count, 1);
    verbs_flush(&rnic.verbs);
    assert_int_equal(take_doorbells(&count), 0);
}

static void test_a_send_request_fills_every_field(void **state)
{
    uint32_t qpn = create_qp(16, 16);
    uint8_t *wqe = rnic.verbs.qps[qpn & 2047].sq;
    struct verbs_send_wr wr = {
        .wr_id = 0x1122334455667788,
        .opcode = VERBS_WR_WRITE,
        .fence = true,
        .linked = true,
        .num_sge = 2,
        .sge = {{rnic.arena, 4096, 3}, {rnic.arena + 8192, 512, 4}},
        .remote_addr = 0xffff888012345678,
        .rkey = 0xabcdef01,
    };

    (void)state;
    memset(wqe, 0xa5, RNIC_SWQE_LEN);
    assert_true(verbs_post_send(&rnic.verbs, qpn, &wr));
    assert_int_equal(wqe[RNIC_SWQE_OPCODE], RNIC_WR_WRITE);
    assert_int_equal(wqe[RNIC_SWQE_FLAGS], RNIC_WR_FENCE | RNIC_WR_LINKED);
    assert_int_equal(wqe[RNIC_SWQE_SGES], 2);
    assert_int_equal(get_le64(wqe + RNIC_SWQE_WR_ID), wr.wr_id);
    assert_int_equal(get_le64(wqe + RNIC_SWQE_REMOTE_ADDR), wr.remote_addr);
    assert_int_equal(get_le32(wqe + RNIC_SWQE_RKEY), wr.rkey);
    assert_int_equal(get_le32(wqe + RNIC_SWQE_AFTER_MEDIA), 0);
    assert_int_equal(wqe[RNIC_SWQE_PI_ACTION], 0);
    assert_int_equal(get_le64(wqe + RNIC_SWQE_SGE + 16),
                     hal_dma_addr(rnic.arena + 8192));
    assert_int_equal(get_le32(wqe + RNIC_SWQE_SGE + 16 + RNIC_SGE_LENGTH), 512);
    assert_int_equal(get_le32(wqe + RNIC_SWQE_SGE + 16 + RNIC_SGE_LKEY), 4);

    wr = (struct verbs_send_wr){
        .opcode = VERBS_WR_SEND_INV,
        .signaled = true,
        .inline_data = true,
        .num_sge = 1,
        .sge = {{(void *)(uintptr_t) "sixteen bytes...", 16, 0}},
        .inv_rkey = 0x4321,
    };
    assert_true(verbs_post_send(&rnic.verbs, qpn, &wr));
    wqe += RNIC_SWQE_LEN;
    assert_int_equal(wqe[RNIC_SWQE_OPCODE], RNIC_WR_SEND_INV);
    assert_int_equal(wqe[RNIC_SWQE_FLAGS], RNIC_WR_SIGNALED | RNIC_WR_INLINE);
    assert_int_equal(wqe[RNIC_SWQE_SGES], 0);
    assert_int_equal(wqe[RNIC_SWQE_INLINE_LEN], 16);
    assert_int_equal(get_le32(wqe + RNIC_SWQE_INV_KEY), 0x4321);
    assert_memory_equal(wqe + RNIC_SWQE_SGE, "sixteen bytes...", 16);
}

/* Post a datagram with all fields set into the first entry of a QP that is
 * filled with A5h.  @return the entry */
static const uint8_t *post_datagram(enum verbs_qp_type type)
{
    const struct verbs_qp_config config = {
        .type = type,
        .sq_depth = 16,
        .rq_depth = 16,
        .ops = &ops,
    };
    const struct verbs_send_wr wr = {
        .opcode = VERBS_WR_SEND,
        .num_sge = 1,
        .sge = {{rnic.arena, 64, 3}},
        .ud = {.neigh = 0x123,
               .laddr = 7,
               .is_v1 = true,
               .priority = 5,
               .dscp = 46,
               .dest_qpn = 0x456,
               .qkey = 0x789},
    };
    uint32_t qpn;
    uint8_t *wqe;

    assert_true(verbs_create_qp(&rnic.verbs, &config, &qpn));
    wqe = rnic.verbs.qps[qpn & 2047].sq;
    memset(wqe, 0xa5, RNIC_SWQE_LEN);
    assert_true(verbs_post_send(&rnic.verbs, qpn, &wr));
    return wqe;
}

static void test_only_datagrams_have_a_destination(void **state)
{
    const uint8_t *wqe = post_datagram(VERBS_QP_UD);

    (void)state;
    assert_int_equal(get_le16(wqe + RNIC_SWQE_UD_NEIGH), 0x123);
    assert_int_equal(wqe[RNIC_SWQE_UD_LADDR], 7);
    assert_int_equal(wqe[RNIC_SWQE_UD_ROCE], RNIC_ROCE_V1);
    assert_int_equal(wqe[RNIC_SWQE_UD_PRIORITY], 5);
    assert_int_equal(wqe[RNIC_SWQE_UD_DSCP], 46);
    assert_int_equal(get_le32(wqe + RNIC_SWQE_UD_QPN), 0x456);
    assert_int_equal(get_le32(wqe + RNIC_SWQE_UD_QKEY), 0x789);
    assert_int_equal(wqe[RNIC_SWQE_PI_ACTION], 0);

    /* The RNIC does not read these fields on an RC QP. */
    wqe = post_datagram(VERBS_QP_RC);
    assert_int_equal(get_le16(wqe + RNIC_SWQE_UD_NEIGH), 0xa5a5);
    assert_int_equal(get_le32(wqe + RNIC_SWQE_UD_QPN), 0xa5a5a5a5);
    assert_int_equal(wqe[RNIC_SWQE_PI_ACTION], 0);
}

static void test_send_room_comes_back_with_a_completion(void **state)
{
    uint32_t qpn = create_qp(32, 16);
    struct verbs_send_wr wr = send_wr(0);

    (void)state;
    for (uint64_t lap = 0; lap < 5; lap++) {
        for (uint64_t i = 0; i < 32; i++) {
            wr.wr_id = i;
            wr.signaled = i % 4 == 3;
            assert_int_equal(verbs_send_room(&rnic.verbs, qpn), 32 - i);
            assert_true(verbs_post_send(&rnic.verbs, qpn, &wr));
        }
        assert_false(verbs_post_send(&rnic.verbs, qpn, &wr));
        /*
         * The fourth request completes: it and the three unsignaled ones before
         * it are free.
         */
        write_cqe(0, qpn, 3, RNIC_WR_SEND, 0, (uint16_t)(lap * 32 + 3), 0, 0);
        assert_int_equal(verbs_poll(&rnic.verbs, 8), 1);
        assert_int_equal(verbs_send_room(&rnic.verbs, qpn), 4);
        write_cqe(0, qpn, 31, RNIC_WR_SEND, 0, (uint16_t)(lap * 32 + 31), 0, 0);
        assert_int_equal(verbs_poll(&rnic.verbs, 8), 1);
        assert_int_equal(verbs_send_room(&rnic.verbs, qpn), 32);
    }
}

static void test_completions_carry_what_the_rnic_wrote(void **state)
{
    static const uint8_t opcodes[][2] = {
        {RNIC_WR_SEND, VERBS_WC_SEND},
        {RNIC_WR_SEND_INV, VERBS_WC_SEND},
        {RNIC_WR_WRITE, VERBS_WC_WRITE},
        {RNIC_WR_READ, VERBS_WC_READ},
        {RNIC_WR_LOCAL_INV, VERBS_WC_LOCAL_INV},
    };
    static const uint8_t statuses[][2] = {
        {RNIC_WC_SUCCESS, VERBS_WC_SUCCESS},
        {RNIC_WC_LOCAL_LENGTH, VERBS_WC_LOCAL_LENGTH},
        {RNIC_WC_LOCAL_PROTECTION, VERBS_WC_LOCAL_PROTECTION},
        {RNIC_WC_LOCAL_OPERATION, VERBS_WC_LOCAL_OPERATION},
        {RNIC_WC_FLUSHED, VERBS_WC_FLUSHED},
        {RNIC_WC_REMOTE_INVALID, VERBS_WC_REMOTE_INVALID},
        {RNIC_WC_REMOTE_ACCESS, VERBS_WC_REMOTE_ACCESS},
        {RNIC_WC_REMOTE_OPERATION, VERBS_WC_REMOTE_OPERATION},
        {RNIC_WC_RETRY_EXCEEDED, VERBS_WC_RETRY_EXCEEDED},
        {RNIC_WC_RNR_EXCEEDED, VERBS_WC_RNR_EXCEEDED},
        {RNIC_WC_BAD_RESPONSE, VERBS_WC_BAD_RESPONSE},
    };
    uint32_t qpn = create_qp(16, 16);
    struct verbs_send_wr wr = send_wr(0);
    uint16_t index = 0;

    (void)state;
    for (unsigned int o = 0; o < ARRAY_LEN(opcodes); o++) {
        for (unsigned int s = 0; s < ARRAY_LEN(statuses); s++) {
            assert_true(verbs_post_send(&rnic.verbs, qpn, &wr));
            write_cqe(0, qpn, 0x8000000000000000 + o, opcodes[o][0],
                      statuses[s][0], index++, 0, 0);
            assert_int_equal(verbs_poll(&rnic.verbs, 1), 1);
            assert_int_equal(seen.wc.opcode, opcodes[o][1]);
            assert_int_equal(seen.wc.status, statuses[s][1]);
            assert_int_equal(seen.wc.wr_id, 0x8000000000000000 + o);
            assert_int_equal(seen.wc.qpn, qpn);
        }
    }
    write_cqe(1, qpn, 6, RNIC_WR_RECV, 0, 0, 80, RNIC_CQE_WITH_INV);
    assert_int_equal(verbs_poll(&rnic.verbs, 1), 1);
    assert_int_equal(seen.wc.opcode, VERBS_WC_RECV);
    assert_int_equal(seen.wc.len_bytes, 80);
    assert_true(seen.wc.with_inv);
    assert_int_equal(seen.wc.inv_rkey, 0x77);
    assert_int_equal(get_le32(rnic.cq_record[0]), index);
    assert_int_equal(get_le32(rnic.cq_record[1]), 1);
}

static void test_phase_bits_over_three_laps(void **state)
{
    uint32_t qpn = create_qp(16, 16);
    uint32_t total = 3 * (rnic.cq_mask[1] + 1) + 5;

    (void)state;
    for (uint32_t i = 0; i < total; i++) {
        write_cqe(1, qpn, i, RNIC_WR_RECV, 0, 0, 0, 0);
        assert_int_equal(verbs_poll(&rnic.verbs, 4), 1);
        assert_int_equal(seen.wc.wr_id, i);
        assert_int_equal(verbs_poll(&rnic.verbs, 4), 0);
    }
    for (uint32_t i = 0; i < 10000; i++) {
        write_eqe(RNIC_EVENT_LINK, 0, 1);
        assert_int_equal(verbs_poll(&rnic.verbs, 4), 1);
        assert_int_equal(verbs_poll(&rnic.verbs, 4), 0);
    }
    assert_int_equal(rnic.verbs.counters.other_events, 10000);
    assert_int_equal(get_le32(hart_page(RNIC_PAGE_EQ_CI)), 10000);
}

/* Completed sends free requests and buffers that received commands need. */
static void test_poll_keeps_to_its_budget_and_delivers_sends_first(void **state)
{
    uint32_t qpn = create_qp(64, 64);

    (void)state;
    rnic.verbs.qps[qpn & 2047].sq_pi = 40;
    for (uint16_t i = 0; i < 40; i++) {
        write_cqe(0, qpn, 0, RNIC_WR_SEND, 0, i, 0, 0);
        write_cqe(1, qpn, 1, RNIC_WR_RECV, 0, 0, 0, 0);
    }
    for (unsigned int i = 0; i < 8; i++) {
        assert_int_equal(verbs_poll(&rnic.verbs, 10), 10);
        assert_int_equal(seen.wc.opcode, i < 4 ? VERBS_WC_SEND : VERBS_WC_RECV);
    }
    assert_int_equal(seen.completions, 80);
    /* Each poll begins with the sends, whatever the one before took last. */
    rnic.verbs.qps[qpn & 2047].sq_pi = 42;
    for (uint16_t i = 40; i < 42; i++) {
        write_cqe(1, qpn, 1, RNIC_WR_RECV, 0, 0, 0, 0);
        write_cqe(0, qpn, 0, RNIC_WR_SEND, 0, i, 0, 0);
        assert_int_equal(verbs_poll(&rnic.verbs, 1), 1);
        assert_int_equal(seen.wc.opcode, VERBS_WC_SEND);
    }
    assert_int_equal(verbs_poll(&rnic.verbs, 10), 2);
}

static void test_qpns_stay_unused_as_long_as_possible(void **state)
{
    uint32_t first = create_qp(16, 16);
    uint32_t previous = first;
    struct verbs_send_wr wr = send_wr(0);
    unsigned int rounds = 0;
    unsigned int count;

    (void)state;
    assert_int_equal(first & 2047, 2);
    assert_int_equal(first >> 11, 7u * 5063u & 0x1fff);
    do {
        verbs_destroy_qp(&rnic.verbs, previous);
        verbs_poll(&rnic.verbs, 1);
        previous = create_qp(16, 16);
        assert_int_equal(verbs_send_room(&rnic.verbs, previous), 16);
        assert_true(verbs_post_send(&rnic.verbs, previous, &wr));
        verbs_flush(&rnic.verbs);
        take_doorbells(&count);
        rounds++;
    } while ((previous & 2047) != 2);
    assert_int_equal(rounds, 1024);
    assert_int_equal(previous >> 11, (first >> 11) + 1);
}

static void test_qpns_of_two_boots_differ(void **state)
{
    uint32_t qpns[8];

    (void)state;
    for (uint32_t boot = 0; boot < 8; boot++) {
        assert_true(start_with(boot));
        qpns[boot] = create_qp(16, 16) >> 11;
        for (uint32_t i = 0; i < boot; i++) {
            uint32_t apart = (qpns[boot] - qpns[i]) & 0x1fff;

            assert_in_range(apart, 500, 0x2000 - 500);
        }
    }
}

static void test_a_destroyed_qp_reports_nothing(void **state)
{
    uint32_t qpn = create_qp(16, 16);

    (void)state;
    write_cqe(0, qpn, 1, RNIC_WR_SEND, RNIC_WC_FLUSHED, 0, 0, 0);
    write_cqe(1, qpn, 1, RNIC_WR_RECV, RNIC_WC_FLUSHED, 0, 0, 0);
    write_eqe(RNIC_EVENT_QP_FATAL, qpn, RNIC_WC_FLUSHED);
    verbs_destroy_qp(&rnic.verbs, qpn);
    assert_int_equal(rnic.opcodes[(rnic.cmd_ci - 2) & 0xff],
                     RNIC_CMD_QP_DESTROY);
    assert_int_equal(rnic.opcodes[(rnic.cmd_ci - 1) & 0xff],
                     RNIC_CMD_RQ_DESTROY);
    verbs_poll(&rnic.verbs, 8);
    assert_int_equal(seen.completions, 0);
    assert_int_equal(seen.events, 0);
    assert_int_equal(rnic.verbs.counters.stale_completions, 2);
    assert_int_equal(rnic.verbs.counters.stale_events, 1);
}

static void test_a_completion_may_destroy_its_qp(void **state)
{
    uint32_t qpn = create_qp(16, 16);

    (void)state;
    for (unsigned int i = 0; i < 3; i++) {
        write_cqe(1, qpn, i, RNIC_WR_RECV, 0, 0, 0, 0);
    }
    seen.destroy_qpn = qpn;
    verbs_poll(&rnic.verbs, 8);
    assert_int_equal(seen.completions, 1);
    assert_int_equal(rnic.verbs.counters.stale_completions, 2);
}

static void test_a_destroyed_qp_rings_no_doorbell(void **state)
{
    uint32_t qpn = create_qp(16, 16);
    struct verbs_send_wr wr = send_wr(0);
    unsigned int count;

    (void)state;
    assert_true(verbs_post_send(&rnic.verbs, qpn, &wr));
    verbs_destroy_qp(&rnic.verbs, qpn);
    verbs_flush(&rnic.verbs);
    assert_int_equal(take_doorbells(&count), 0);
    assert_int_equal(count, 0);
}

static void test_the_data_sheets_queues_fit_in_any_mix(void **state)
{
    static const struct {
        uint32_t depth, count, depth2, count2;
    } mixes[] = {{64, 127, 2, 31}, {33, 248, 2, 3}, {33, 198, 2, 826},
                 {32, 255, 2, 15}, {17, 481, 2, 7}, {17, 409, 2, 615},
                 {16, 511, 2, 7},  {9, 910, 0, 0},  {9, 877, 2, 147},
                 {8, 1023, 2, 1},  {7, 1024, 0, 0}, {5, 1024, 0, 0},
                 {3, 1024, 0, 0},  {2, 1024, 0, 0}};
    const struct verbs_qp_config mad = {VERBS_QP_UD, 64, 512, &ops, &seen};
    const struct verbs_qp_config more = {VERBS_QP_RC, 8, 4, &ops, &seen};

    (void)state;
    assert_true(verbs_create_mad_qp(&rnic.verbs, &mad));
    for (unsigned int lap = 0; lap < 3; lap++) {
        for (unsigned int m = 0; m < ARRAY_LEN(mixes); m++) {
            uint32_t all = mixes[m].count + mixes[m].count2;
            uint32_t sum = mixes[m].count * mixes[m].depth +
                           mixes[m].count2 * mixes[m].depth2;
            uint32_t qpns[1024], qpn;

            assert_true(all <= 1024 && sum < 8192);
            for (uint32_t i = 0; i < all; i++) {
                uint32_t depth =
                    i < mixes[m].count ? mixes[m].depth : mixes[m].depth2;

                qpns[i] = create_qp(4 * depth, 2 * depth);
            }
            if (all == 1024) {
                assert_false(verbs_create_qp(&rnic.verbs, &more, &qpn));
            }
            for (uint32_t i = 0; i < all; i += 2) {
                verbs_destroy_qp(&rnic.verbs, qpns[i]);
            }
            for (uint32_t i = 1; i < all; i += 2) {
                verbs_destroy_qp(&rnic.verbs, qpns[i]);
            }
            verbs_poll(&rnic.verbs, 1);
        }
    }
}

static void test_create_refuses_when_a_pool_is_empty(void **state)
{
    const struct verbs_qp_config small = {VERBS_QP_RC, 8, 8, &ops, &seen};
    const struct verbs_qp_config large = {VERBS_QP_RC, 1024, 8, &ops, &seen};
    const struct verbs_qp_config huge = {VERBS_QP_RC, 2048, 8, &ops, &seen};
    uint32_t qpn = 99;
    unsigned int made = 0;

    (void)state;
    assert_false(verbs_create_qp(&rnic.verbs, &huge, &qpn));
    while (verbs_create_qp(&rnic.verbs, &large, &qpn)) {
        made++;
    }
    assert_int_equal(made, 4);
    while (verbs_create_qp(&rnic.verbs, &small, &qpn)) {
        made++;
    }
    assert_int_equal(made, 1024);
    assert_false(verbs_create_qp(&rnic.verbs, &small, &qpn));
}

/* 1023 QPs and QP 1 make 1024, each with its own number. */
static void test_the_1025th_qp_is_refused_and_nothing_changes(void **state)
{
    const struct verbs_qp_config mad = {VERBS_QP_UD, 64, 512, &ops, &seen};
    const struct verbs_qp_config small = {VERBS_QP_RC, 8, 8, &ops, &seen};
    static bool is_used[2048];
    static struct verbs before;
    uint32_t qpn, last = 0, cmd_ci;

    (void)state;
    memset(is_used, 0, sizeof(is_used));
    assert_true(verbs_create_mad_qp(&rnic.verbs, &mad));
    for (unsigned int i = 0; i < 1024; i++) {
        assert_true(verbs_create_qp(&rnic.verbs, &small, &last));
        assert_in_range(last & 2047, 2, 1025);
        assert_true(last <= 0xffffff && !is_used[last & 2047]);
        is_used[last & 2047] = true;
    }
    before = rnic.verbs;
    cmd_ci = rnic.cmd_ci;
    qpn = 99;
    assert_false(verbs_create_qp(&rnic.verbs, &small, &qpn));
    assert_int_equal(qpn, 99);
    assert_int_equal(rnic.cmd_ci, cmd_ci);
    assert_memory_equal(&rnic.verbs, &before, sizeof(before));

    verbs_destroy_qp(&rnic.verbs, last);
    verbs_poll(&rnic.verbs, 1);
    assert_true(verbs_create_qp(&rnic.verbs, &small, &qpn));
    assert_int_equal(qpn, last + (1u << 11));
    assert_false(verbs_create_qp(&rnic.verbs, &small, &qpn));
}

/* The FIFOs of slots keep working when their indices wrap. */
static void test_slots_are_reused_after_their_indices_wrap(void **state)
{
    const struct verbs_qp_config small = {VERBS_QP_RC, 8, 8, &ops, &seen};
    uint32_t shift = UINT32_MAX - rnic.verbs.free_put - 99;
    uint32_t qpns[1024], extra;

    (void)state;
    /*
     * As after 2^32 - 100 creations, rounded to a multiple of the FIFO's size.
     */
    shift &= ~(uint32_t)(RNIC_SLOT_FIFO - 1);
    rnic.verbs.free_put += shift;
    rnic.verbs.free_get += shift;
    rnic.verbs.rest_put = rnic.verbs.rest_get = UINT32_MAX - 99;
    for (unsigned int lap = 0; lap < 6; lap++) {
        for (unsigned int i = 0; i < 1024; i++) {
            assert_true(verbs_create_qp(&rnic.verbs, &small, &qpns[i]));
        }
        assert_false(verbs_create_qp(&rnic.verbs, &small, &extra));
        for (unsigned int i = 0; i < 1024; i++) {
            verbs_destroy_qp(&rnic.verbs, qpns[i]);
        }
        verbs_poll(&rnic.verbs, 1);
    }
    assert_true(rnic.verbs.free_put < UINT32_MAX / 2);
    assert_true(rnic.verbs.rest_put < UINT32_MAX / 2);
}

/* Ring entries may contain any number. */
static void test_entries_that_name_no_slot_are_stale(void **state)
{
    (void)state;
    for (uint32_t slot = 1026; slot < 2048; slot++) {
        write_cqe(0, 5u << 11 | slot, 1, RNIC_WR_SEND, 0, 0, 0, 0);
        write_cqe(1, slot, 1, RNIC_WR_RECV, 0, 0, 0, 0);
        write_eqe(RNIC_EVENT_QP_FATAL, slot, RNIC_WC_FLUSHED);
        verbs_poll(&rnic.verbs, 8);
    }
    assert_int_equal(seen.completions, 0);
    assert_int_equal(seen.events, 0);
    assert_int_equal(rnic.verbs.counters.stale_completions, 2 * 1022);
    assert_int_equal(rnic.verbs.counters.stale_events, 1022);
}

static void test_create_returns_the_first_ring_if_there_is_no_second(
    void **state)
{
    const struct verbs_qp_config no_rq = {VERBS_QP_RC, 1024, 1 << 14, &ops,
                                          &seen};
    uint32_t qpn;

    (void)state;
    for (unsigned int i = 0; i < 10; i++) {
        assert_false(verbs_create_qp(&rnic.verbs, &no_rq, &qpn));
    }
    for (unsigned int i = 0; i < 4; i++) {
        (void)create_qp(1024, 16);
    }
}

static void test_create_passes_all_attributes_to_the_rnic(void **state)
{
    uint32_t qpn = create_qp(64, 32);
    const struct rnic_qp *qp = &rnic.verbs.qps[qpn & 2047];
    const uint8_t *c = rnic.last_cmd;

    (void)state;
    assert_int_equal(rnic.opcodes[(rnic.cmd_ci - 2) & 0xff],
                     RNIC_CMD_RQ_CREATE);
    assert_int_equal(c[RNIC_CMD_OPCODE], RNIC_CMD_QP_CREATE);
    assert_int_equal(get_le32(c + RNIC_CMD_INDEX), qpn);
    assert_int_equal(c[RNIC_QP_TYPE], RNIC_QP_RC);
    assert_int_equal(c[RNIC_QP_SQ_SIZE], 6);
    assert_int_equal(get_le16(c + RNIC_QP_SEND_CQ), 0);
    assert_int_equal(get_le16(c + RNIC_QP_RECV_CQ), 1);
    assert_int_equal(get_le16(c + RNIC_QP_RQ), qpn & 2047);
    assert_int_equal(get_le64(c + RNIC_QP_SQ_BASE), hal_dma_addr(qp->sq));
    assert_int_equal(get_le64(c + RNIC_QP_SQ_RECORD),
                     hal_dma_addr(qp->records));
    assert_int_equal(hal_dma_addr(qp->sq) % 64, 0);
    assert_int_equal(hal_dma_addr(qp->rq) % 64, 0);
}

static void test_a_cq_entry_is_never_reserved_twice(void **state)
{
    const struct verbs_qp_config config = {VERBS_QP_RC, 256, 64, &ops, &seen};
    const uint32_t *send = &rnic.verbs.cq[0].room;
    const uint32_t *recv = &rnic.verbs.cq[1].room;
    uint32_t qpn = create_qp(256, 64);

    (void)state;
    assert_int_equal(*send, 65536 - 256);
    assert_int_equal(*recv, 65536 - 64);
    write_cqe(0, qpn, 0, RNIC_WR_SEND, 0, 0, 0, 0);
    write_cqe(0, qpn, 0, RNIC_WR_SEND, 0, 1, 0, 0);
    verbs_destroy_qp(&rnic.verbs, qpn);
    verbs_poll(&rnic.verbs, 1);
    assert_int_equal(*send, 65536 - 256); /* an old CQE is still in the CQ */
    assert_int_equal(*recv, 65536);
    verbs_poll(&rnic.verbs, 1);
    verbs_poll(&rnic.verbs, 1);
    assert_int_equal(*send, 65536);
    rnic.verbs.cq[0].room = 255;
    assert_false(verbs_create_qp(&rnic.verbs, &config, &qpn));
    rnic.verbs.cq[0].room = 256;
    rnic.verbs.cq[1].room = 63;
    assert_false(verbs_create_qp(&rnic.verbs, &config, &qpn));
    rnic.verbs.cq[1].room = 64;
    assert_true(verbs_create_qp(&rnic.verbs, &config, &qpn));
}

static void test_a_reservation_ends_after_one_lap_of_the_cq(void **state)
{
    uint32_t busy = create_qp(16, 16);
    uint32_t gone = create_qp(16, 16);
    uint32_t entries = rnic.cq_mask[1] + 1;

    (void)state;
    verbs_destroy_qp(&rnic.verbs, gone);
    /* The CQ is never empty. */
    write_cqe(1, busy, 0, RNIC_WR_RECV, 0, 0, 0, 0);
    for (uint32_t i = 0; i < entries + 1; i++) {
        assert_int_equal(rnic.verbs.cq[1].room, entries - 32);
        write_cqe(1, busy, 0, RNIC_WR_RECV, 0, 0, 0, 0);
        assert_int_equal(verbs_poll(&rnic.verbs, 1), 1);
    }
    verbs_poll(&rnic.verbs, 1);
    assert_int_equal(rnic.verbs.cq[1].room, entries - 16);
}

static void test_a_received_message_makes_room_for_the_next(void **state)
{
    uint32_t qpn = create_qp(16, 16);
    const struct verbs_sge sge = {rnic.arena + 128, 64, 9};

    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        assert_true(verbs_post_recv(&rnic.verbs, qpn, i, &sge));
        if (i >= 15) {
            assert_false(verbs_post_recv(&rnic.verbs, qpn, i, &sge));
            write_cqe(1, qpn, i, RNIC_WR_RECV, 0, 0, 0, 0);
            assert_int_equal(verbs_poll(&rnic.verbs, 4), 1);
        }
    }
}

static void test_create_cleans_up_after_a_refusal(void **state)
{
    const struct verbs_qp_config config = {VERBS_QP_RC, 1024, 8, &ops, &seen};
    uint32_t qpn;

    (void)state;
    for (unsigned int i = 0; i < 100; i++) {
        rnic.refuse_opcode = i & 1 ? RNIC_CMD_RQ_CREATE : RNIC_CMD_QP_CREATE;
        rnic.refuse_status = RNIC_CMD_IN_USE;
        assert_false(verbs_create_qp(&rnic.verbs, &config, &qpn));
        assert_int_equal(rnic.opcodes[(rnic.cmd_ci - 1) & 0xff],
                         i & 1 ? RNIC_CMD_RQ_CREATE : RNIC_CMD_RQ_DESTROY);
    }
    rnic.refuse_opcode = 0;
    assert_true(verbs_create_qp(&rnic.verbs, &config, &qpn));
    assert_int_equal(qpn & 2047, 2);
    assert_int_equal(rnic.verbs.counters.commands_refused, 100);
}

static void test_a_pair_of_iwarp_has_attributes_of_its_own(void **state)
{
    const struct verbs_qp_config config = {VERBS_QP_IW, 16, 16, &ops, &seen};
    const struct verbs_qp_attr attr = {
        .iw = {.stream = 0x12340005,
               .has_crc = true,
               .is_first_mute = true,
               .has_send_rtr = true,
               .key_seed = 0x123456789abcdef0},
        .laddr = 3,
        .dest_qpn = 0xabcde,
        .access = 4,
        .max_rd_atomic = 16,
        .max_dest_rd_atomic = 2,
    };
    const uint8_t *c = rnic.last_cmd;
    uint32_t qpn;

    (void)state;
    assert_true(verbs_create_qp(&rnic.verbs, &config, &qpn));
    assert_int_equal(c[RNIC_QP_TYPE], RNIC_QP_IW);
    assert_true(verbs_modify_qp(&rnic.verbs, qpn, VERBS_QPS_RTR, &attr));
    assert_int_equal(c[RNIC_MOD_STATE], RNIC_QPS_RTR);
    assert_int_equal(c[RNIC_MOD_ACCESS], 4);
    assert_int_equal(c[RNIC_MOD_MAX_RD_ATOMIC], 16);
    assert_int_equal(c[RNIC_MOD_MAX_DEST_RD_ATOMIC], 2);
    assert_int_equal(get_le32(c + RNIC_MOD_IW_STREAM), 0x12340005);
    assert_int_equal(c[RNIC_MOD_IW_FLAGS],
                     RNIC_IW_CRC | RNIC_IW_MUTE | RNIC_IW_SEND_RTR);
    assert_int_equal(get_le64(c + RNIC_MOD_IW_SEED), 0x123456789abcdef0);
    assert_int_equal(c[RNIC_MOD_LADDR], 0);
    assert_int_equal(get_le32(c + RNIC_MOD_DEST_QPN), 0);
}

static void test_modify_passes_all_attributes_to_the_rnic(void **state)
{
    uint32_t qpn = create_qp(16, 16);
    const struct verbs_qp_attr attr = {
        .laddr = 3,
        .neigh = 0x204,
        .path_mtu = 5,
        .access = 2,
        .max_rd_atomic = 16,
        .max_dest_rd_atomic = 4,
        .dest_qpn = 0xabcde,
        .qkey = 0x11,
        .sq_psn = 0x123456,
        .rq_psn = 0x654321,
        .ack_timeout = 17,
        .retries = 7,
        .rnr_retries = 6,
        .rnr_timer = 12,
        .priority = 5,
        .dscp = 26,
        .hop_limit = 64,
        .udp_sport = 0xc123,
    };
    const struct verbs_sge sge = {rnic.arena + 128, 64, 9};
    const uint8_t *c = rnic.last_cmd;

    (void)state;
    assert_true(verbs_post_recv(&rnic.verbs, qpn, 0, &sge));
    assert_true(verbs_modify_qp(&rnic.verbs, qpn, VERBS_QPS_RTR, &attr));
    /* Receives that were posted before are published when the peer may send. */
    assert_int_equal(get_le32(rnic.verbs.qps[qpn & 2047].records + 4), 1);
    assert_int_equal(c[RNIC_CMD_OPCODE], RNIC_CMD_QP_MODIFY);
    assert_int_equal(get_le32(c + RNIC_CMD_INDEX), qpn);
    assert_int_equal(c[RNIC_MOD_STATE], RNIC_QPS_RTR);
    assert_int_equal(c[RNIC_MOD_LADDR], 3);
    assert_int_equal(get_le16(c + RNIC_MOD_NEIGH), 0x204);
    assert_int_equal(c[RNIC_MOD_PATH_MTU], 5);
    assert_int_equal(c[RNIC_MOD_ACCESS], 2);
    assert_int_equal(c[RNIC_MOD_MAX_RD_ATOMIC], 16);
    assert_int_equal(c[RNIC_MOD_MAX_DEST_RD_ATOMIC], 4);
    assert_int_equal(get_le32(c + RNIC_MOD_DEST_QPN), 0xabcde);
    assert_int_equal(get_le32(c + RNIC_MOD_QKEY), 0x11);
    assert_int_equal(get_le32(c + RNIC_MOD_SQ_PSN), 0x123456);
    assert_int_equal(get_le32(c + RNIC_MOD_RQ_PSN), 0x654321);
    assert_int_equal(c[RNIC_MOD_ACK_TIMEOUT], 17);
    assert_int_equal(c[RNIC_MOD_RETRIES], 7);
    assert_int_equal(c[RNIC_MOD_RNR_RETRIES], 6);
    assert_int_equal(c[RNIC_MOD_RNR_TIMER], 12);
    assert_int_equal(c[RNIC_MOD_PRIORITY], 5);
    assert_int_equal(c[RNIC_MOD_DSCP], 26);
    assert_int_equal(c[RNIC_MOD_HOP_LIMIT], 64);
    assert_int_equal(get_le16(c + RNIC_MOD_UDP_SPORT), 0xc123);
    assert_int_equal(get_le32(c + RNIC_MOD_RATE_MBPS), 0);

    rnic.refuse_opcode = RNIC_CMD_QP_MODIFY;
    rnic.refuse_status = RNIC_CMD_BAD_STATE;
    assert_false(verbs_modify_qp(&rnic.verbs, qpn, VERBS_QPS_RTS, &attr));
    assert_false(verbs_modify_qp(&rnic.verbs, qpn, VERBS_QPS_ERROR, NULL));
    assert_int_equal(c[RNIC_MOD_STATE], RNIC_QPS_ERROR);
}

static void test_the_mad_qp_is_number_1_and_can_be_made_again(void **state)
{
    const struct verbs_qp_config config = {VERBS_QP_UD, 64, 512, &ops, &seen};

    (void)state;
    for (unsigned int i = 0; i < 20; i++) {
        uint32_t n = rnic.cmd_ci;

        assert_true(verbs_create_mad_qp(&rnic.verbs, &config));
        assert_int_equal(rnic.cmd_ci, n + 5);
        assert_int_equal(rnic.opcodes[(n + 1) & 0xff], RNIC_CMD_QP_CREATE);
        assert_int_equal(get_le32(rnic.last_cmd + RNIC_CMD_INDEX), 1);
        assert_int_equal(rnic.last_cmd[RNIC_MOD_STATE], RNIC_QPS_RTS);
        assert_int_equal(get_le32(rnic.last_cmd + RNIC_MOD_QKEY), 0x80010000);
        /* Entries that the old QP has left are not delivered to the new one. */
        write_cqe(0, 1, 1, RNIC_WR_SEND, RNIC_WC_FLUSHED, 0, 0, 0);
        write_cqe(1, 1, 1, RNIC_WR_RECV, RNIC_WC_FLUSHED, 0, 0, 0);
        write_eqe(RNIC_EVENT_QP_FATAL, 1, RNIC_WC_LOCAL_OPERATION);
        verbs_destroy_qp(&rnic.verbs, 1);
        assert_true(verbs_create_mad_qp(&rnic.verbs, &config));
        verbs_poll(&rnic.verbs, 8);
        assert_int_equal(seen.completions + seen.events, 0);
        verbs_destroy_qp(&rnic.verbs, 1);
    }
}

static void test_events_come_before_the_completions_they_explain(void **state)
{
    uint32_t qpn = create_qp(16, 16);

    (void)state;
    write_cqe(1, qpn, 0, RNIC_WR_RECV, 0, 0, 64, 0);
    write_eqe(RNIC_EVENT_QP_ESTABLISHED, qpn, 0);
    assert_int_equal(verbs_poll(&rnic.verbs, 8), 2);
    assert_true(seen.event_was_first);
    assert_int_equal(seen.event.type, VERBS_EVENT_QP_ESTABLISHED);
    write_eqe(RNIC_EVENT_QP_FATAL, qpn, RNIC_WC_RETRY_EXCEEDED);
    verbs_poll(&rnic.verbs, 8);
    assert_int_equal(seen.event.type, VERBS_EVENT_QP_FATAL);
    assert_int_equal(seen.event.status, VERBS_WC_RETRY_EXCEEDED);
    write_eqe(RNIC_EVENT_QP_DRAINED, qpn, 0);
    verbs_poll(&rnic.verbs, 8);
    assert_int_equal(seen.event.type, VERBS_EVENT_QP_DRAINED);
}

static struct {
    uint32_t errors;
    uint32_t qpn;
    bool is_to_dram;
} parity;

static void note_parity_error(void *ctx, uint32_t qpn, bool is_to_dram)
{
    assert_ptr_equal(ctx, &parity);
    parity.errors++;
    parity.qpn = qpn;
    parity.is_to_dram = is_to_dram;
}

static void test_a_parity_error_is_reported_even_if_its_qp_is_destroyed(
    void **state)
{
    uint32_t qpn = create_qp(16, 16);

    (void)state;
    memset(&parity, 0, sizeof(parity));
    write_eqe(RNIC_EVENT_PARITY_ERROR, qpn, RNIC_TRANSFER_TO_DRAM);
    verbs_poll(&rnic.verbs, 8); /* Nobody has to take such events. */
    rnic.verbs.parity_error = note_parity_error;
    rnic.verbs.ctx = &parity;
    write_eqe(RNIC_EVENT_PARITY_ERROR, qpn, RNIC_TRANSFER_TO_DRAM);
    verbs_poll(&rnic.verbs, 8);
    assert_int_equal(parity.errors, 1);
    assert_int_equal(parity.qpn, qpn);
    assert_true(parity.is_to_dram);
    write_eqe(RNIC_EVENT_PARITY_ERROR, qpn, RNIC_TRANSFER_FROM_DRAM);
    verbs_destroy_qp(&rnic.verbs, qpn);
    verbs_poll(&rnic.verbs, 8);
    assert_int_equal(parity.errors, 2);
    assert_int_equal(parity.qpn, qpn);
    assert_false(parity.is_to_dram);
    assert_int_equal(seen.events, 0);
}

static void test_arm_loses_no_wake_up(void **state)
{
    uint32_t qpn = create_qp(16, 16);
    struct verbs_send_wr wr = send_wr(0);

    (void)state;
    assert_true(verbs_post_send(&rnic.verbs, qpn, &wr));
    verbs_flush(&rnic.verbs);
    rnic.log_len = 0;
    write_cqe(0, qpn, 0, RNIC_WR_SEND, 0, 0, 0, 0);
    assert_false(verbs_arm(&rnic.verbs, false));
    assert_int_equal(get_le32(hart_page(RNIC_PAGE_ARMED)), 0);
    verbs_poll(&rnic.verbs, 8);
    write_eqe(RNIC_EVENT_QP_DRAINED, qpn, 0);
    assert_false(verbs_arm(&rnic.verbs, false));
    verbs_poll(&rnic.verbs, 8);
    write_cqe(1, qpn, 0, RNIC_WR_RECV, 0, 0, 0, 0);
    assert_false(verbs_arm(&rnic.verbs, false));
    verbs_poll(&rnic.verbs, 8);
    assert_int_equal(rnic.log_len, 0);

    assert_true(verbs_arm(&rnic.verbs, false));
    assert_int_equal(get_le32(hart_page(RNIC_PAGE_ARMED)), 1);
    assert_int_equal(rnic.log_len, 0);
    /* Requests that are not flushed keep the hart awake. */
    assert_true(verbs_post_send(&rnic.verbs, qpn, &wr));
    assert_false(verbs_arm(&rnic.verbs, false));
    verbs_flush(&rnic.verbs);
    /* Sleep although entries that only free buffers may come. */
    assert_true(verbs_arm(&rnic.verbs, true));
    assert_int_equal(get_le32(hart_page(RNIC_PAGE_ARMED)), RNIC_ARMED_URGENT);
    assert_int_equal(rnic.log_len, 0);
    verbs_irq_take(&rnic.verbs);
    assert_int_equal(rnic.log_len, 1);
    assert_true(rnic.log[0].is_write);
    assert_int_equal(rnic.log[0].reg, A_RNIC_IRQ_STATUS);
    assert_int_equal(rnic.log[0].value, 1);
}

static void test_regions_get_keys_that_are_not_reused_soon(void **state)
{
    uint32_t first =
        verbs_reg_mr(&rnic.verbs, rnic.arena, 4096, VERBS_ACCESS_REMOTE_READ);
    uint32_t keys[1100];
    unsigned int made = 0;

    (void)state;
    assert_int_not_equal(first, verbs_local_key(&rnic.verbs));
    assert_int_equal(get_le64(rnic.last_cmd + RNIC_MR_VA),
                     hal_dma_addr(rnic.arena));
    assert_int_equal(get_le64(rnic.last_cmd + RNIC_MR_DRAM),
                     hal_dma_addr(rnic.arena));
    assert_int_equal(rnic.last_cmd[RNIC_MR_ACCESS], RNIC_ACCESS_REMOTE_READ);
    verbs_dereg_mr(&rnic.verbs, first);
    while ((keys[made] = verbs_reg_mr(&rnic.verbs, rnic.arena, 64, 0)) !=
           VERBS_NO_MR) {
        assert_int_not_equal(keys[made], first);
        made++;
    }
    assert_int_equal(made, 1023); /* the local key uses one region */
}

static void test_addresses_are_written_as_the_guide_says(void **state)
{
    static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
    const struct verbs_gid ip = {{[10] = 0xff, 0xff, 10, 0, 0, 1}};

    (void)state;
    assert_true(verbs_set_laddr(&rnic.verbs, 5, 1, mac, &ip, 42));
    assert_int_equal(rnic.last_cmd[RNIC_CMD_OPCODE], RNIC_CMD_LADDR_SET);
    assert_int_equal(rnic.last_cmd[RNIC_CMD_INDEX], 5);
    assert_int_equal(rnic.last_cmd[RNIC_LADDR_PORT], 1);
    assert_memory_equal(rnic.last_cmd + RNIC_LADDR_MAC, mac, 6);
    assert_memory_equal(rnic.last_cmd + RNIC_LADDR_IP, ip.bytes, 16);
    assert_int_equal(get_le16(rnic.last_cmd + RNIC_LADDR_VLAN), 42);
    assert_true(verbs_set_neigh(&rnic.verbs, 700, 1, mac, &ip, 0xffff));
    assert_int_equal(get_le32(rnic.last_cmd + RNIC_CMD_INDEX), 700);
    assert_int_equal(get_le16(rnic.last_cmd + RNIC_NEIGH_VLAN), 0xffff);
    assert_memory_equal(rnic.last_cmd + RNIC_NEIGH_IP, ip.bytes, 16);
    assert_memory_equal(rnic.last_cmd + RNIC_NEIGH_MAC, mac, 6);
    assert_int_equal(rnic.last_cmd[RNIC_NEIGH_PORT], 1);
    verbs_clear_neigh(&rnic.verbs, 700);
    assert_int_equal(rnic.last_cmd[RNIC_CMD_OPCODE], RNIC_CMD_NEIGH_CLEAR);
    verbs_clear_laddr(&rnic.verbs, 5);
    assert_int_equal(rnic.last_cmd[RNIC_CMD_OPCODE], RNIC_CMD_LADDR_CLEAR);
    rnic.refuse_opcode = RNIC_CMD_NEIGH_SET;
    rnic.refuse_status = RNIC_CMD_BAD_INDEX;
    assert_false(verbs_set_neigh(&rnic.verbs, 1024, 1, mac, &ip, 0xffff));
}

static void test_ud_info_reads_the_receive_header(void **state)
{
    _Alignas(8) uint8_t buf[VERBS_UD_HEADER] = {0};
    struct verbs_ud_info info;

    (void)state;
    buf[RNIC_UD_PORT] = 1;
    buf[RNIC_UD_LADDR] = 4;
    put_le16(buf + RNIC_UD_VLAN, 0xffff);
    put_le32(buf + RNIC_UD_SRC_QPN, 1);
    for (uint8_t i = 0; i < 16; i++) {
        buf[RNIC_UD_SRC_IP + i] = i;
        buf[RNIC_UD_DST_IP + i] = (uint8_t)(0x80 + i);
    }
    memcpy(buf + RNIC_UD_SRC_MAC, "\x02\x00\x00\x00\x00\x07", 6);
    verbs_ud_info(&info, buf);
    assert_int_equal(info.port, 1);
    assert_int_equal(info.laddr, 4);
    assert_int_equal(info.vlan, 0xffff);
    assert_int_equal(info.src_qpn, 1);
    assert_int_equal(info.src_mac[5], 7);
    assert_int_equal(info.src_ip.bytes[15], 15);
    assert_int_equal(info.dst_ip.bytes[0], 0x80);
}

static void test_counters_are_two_words(void **state)
{
    (void)state;
    rnic.regs[(RNIC_COUNTER_BASE + 8 * RNIC_COUNT_RX_CNP) / 4] = 5;
    rnic.regs[(RNIC_COUNTER_BASE + 8 * RNIC_COUNT_RX_CNP) / 4 + 1] = 1;
    assert_int_equal(rnic_counter_read(&rnic.verbs, RNIC_COUNT_RX_CNP),
                     0x100000005);
}

static int free_arena(void **state)
{
    (void)state;
    free(rnic.arena);
    return 0;
}

TEST_FIXTURE(set_up, NULL)
GROUP_FIXTURE(NULL, free_arena)
