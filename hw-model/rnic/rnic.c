/* SPDX-License-Identifier: BSD-2-Clause */
/* The RNIC's registers, hart pages and rings: see rnic.h. */
#include "hw-model/rnic/rnic.h"

#include "lib/regfields.h"
#include "hw-model/regs/rnic.h"
#include "hw-model/rnic/command.h"
#include "lib/bytes.h"
#include "net/verbs/rings.h"

#include <string.h>

enum {
    ID_VALUE = 0x52444d01,
    HART_END = A_RNIC_HART_PAGE_LO + RNIC_HARTS * RNIC_HART_STRIDE,
    COUNTER_END = RNIC_COUNTER_BASE + 8 * RNIC_COUNTERS,
    IW_COUNTER_END = RNIC_IW_COUNTER_BASE + 8 * RNIC_IW_COUNTERS,
    /* Most work of one run, before other devices of this context run. */
    COMMANDS_A_RUN = 64,
    BURSTS_A_RUN = 16,
};

_Static_assert((int)RNIC_COUNTERS == (int)ROCE_COUNTERS,
               "one list of counters");
_Static_assert((int)RNIC_COUNT_RX_CNP == (int)ROCE_RX_CNP &&
                   (int)RNIC_COUNT_NP_ECN_MARKED == (int)ROCE_NP_ECN_MARKED &&
                   (int)RNIC_COUNT_PARITY_ERRORS == (int)ROCE_PARITY_ERRORS &&
                   (int)RNIC_COUNT_TX_RNR == (int)ROCE_TX_RNR &&
                   (int)RNIC_COUNT_TIMEOUTS == (int)ROCE_TIMEOUTS,
               "in one order");

static void update_irq(struct rnic *rnic)
{
    rnic->env.set_irq(rnic->env.ctx, 0,
                      (rnic->state.irq_status & rnic->state.irq_enable) != 0);
}

static struct rdma_dram *rnic_dram(struct rnic *rnic)
{
    return &rnic->dram;
}

/* ---- Registers. */

static uint64_t hart_address(const struct rnic_hart *hart, uint32_t lo)
{
    uint32_t i = (lo - A_RNIC_HART_PAGE_LO) / 4;

    return (uint64_t)hart->regs[i + 1] << 32 | hart->regs[i];
}

static uint32_t hart_size(const struct rnic_hart *hart, uint32_t shift)
{
    return hart->regs[(A_RNIC_HART_SIZES - A_RNIC_HART_PAGE_LO) / 4] >> shift &
           0xff;
}

static bool is_dma(struct rnic *rnic, uint64_t addr, uint64_t len)
{
    return addr % 64 == 0 && rnic->env.is_dram(rnic->env.ctx, addr, len);
}

/* Latch a hart's rings.  An invalid address leaves the hart disabled. */
static void hart_enable(struct rnic *rnic, unsigned int h)
{
    struct rnic_hart *hart = &rnic->state.harts[h];
    struct rdma_eq *eq = &rnic->state.objects.eqs[h];
    uint64_t page = hart_address(hart, A_RNIC_HART_PAGE_LO);
    uint64_t cmd = hart_address(hart, A_RNIC_HART_CMD_LO);
    uint64_t db = hart_address(hart, A_RNIC_HART_DB_LO);
    uint64_t events = hart_address(hart, A_RNIC_HART_EQ_LO);
    uint32_t cmd_size = hart_size(hart, R_RNIC_HART_SIZES_CMD_SHIFT);
    uint32_t db_size = hart_size(hart, R_RNIC_HART_SIZES_DB_SHIFT);
    uint32_t eq_size = hart_size(hart, R_RNIC_HART_SIZES_EQ_SHIFT);

    if (cmd_size < 1 || cmd_size > 8 || db_size < 1 || db_size > 14 ||
        eq_size < 1 || eq_size > 12 || !is_dma(rnic, page, RNIC_PAGE_LEN) ||
        !is_dma(rnic, cmd, (uint64_t)RNIC_CMD_LEN << cmd_size) ||
        !is_dma(rnic, db, UINT64_C(4) << db_size) ||
        !is_dma(rnic, events, (uint64_t)RNIC_EQE_LEN << eq_size)) {
        return;
    }
    hart->enabled = true;
    hart->asleep = false;
    hart->page = page;
    hart->cmd = cmd;
    hart->db = db;
    hart->cmd_size_log2 = (uint8_t)cmd_size;
    hart->db_size_log2 = (uint8_t)db_size;
    hart->cmd_ci = hart->db_ci = 0;
    *eq = (struct rdma_eq){
        .exists = true,
        .size_log2 = (uint8_t)eq_size,
        .base = events,
        .record = page + RNIC_PAGE_EQ_CI,
    };
}

static void hart_disable(struct rnic *rnic, unsigned int h)
{
    rnic->state.harts[h].enabled = false;
    rnic->state.objects.eqs[h] = (struct rdma_eq){0};
}

static bool hart_write(struct rnic *rnic, uint32_t offset, uint32_t value)
{
    unsigned int h = (offset - A_RNIC_HART_PAGE_LO) / RNIC_HART_STRIDE;
    uint32_t reg = offset - h * RNIC_HART_STRIDE;
    struct rnic_hart *hart = &rnic->state.harts[h];

    if (reg <= A_RNIC_HART_SIZES) {
        hart->regs[(reg - A_RNIC_HART_PAGE_LO) / 4] = value;
        return true;
    }
    if (reg == A_RNIC_HART_ENABLE) {
        if ((value & 1) == 0) {
            hart_disable(rnic, h);
        } else if (!hart->enabled) {
            hart_enable(rnic, h);
            rnic->env.defer(rnic->env.ctx);
        }
        return true;
    }
    if (reg == A_RNIC_HART_KICK) {
        rnic->env.defer(rnic->env.ctx);
        return true;
    }
    return false;
}

static uint32_t hart_read(const struct rnic *rnic, uint32_t offset)
{
    unsigned int h = (offset - A_RNIC_HART_PAGE_LO) / RNIC_HART_STRIDE;
    uint32_t reg = offset - h * RNIC_HART_STRIDE;
    const struct rnic_hart *hart = &rnic->state.harts[h];

    if (reg <= A_RNIC_HART_SIZES) {
        return hart->regs[(reg - A_RNIC_HART_PAGE_LO) / 4];
    }
    return reg == A_RNIC_HART_ENABLE ? hart->enabled : 0;
}

static uint32_t counter_half(const uint64_t *counters, uint32_t offset)
{
    return (uint32_t)(counters[offset / 8] >> (offset & 4 ? 32 : 0));
}

uint32_t rnic_read(struct rnic *rnic, uint32_t offset)
{
    const struct rnic_state *s = &rnic->state;

    if (offset >= A_RNIC_HART_PAGE_LO && offset < HART_END) {
        return hart_read(rnic, offset);
    }
    if (offset >= RNIC_COUNTER_BASE && offset < COUNTER_END) {
        return counter_half(s->roce.counters, offset - RNIC_COUNTER_BASE);
    }
    if (offset >= RNIC_IW_COUNTER_BASE && offset < IW_COUNTER_END) {
        return counter_half(s->iwarp.counters, offset - RNIC_IW_COUNTER_BASE);
    }
    switch (offset) {
    case A_RNIC_ID:
        return ID_VALUE;
    case A_RNIC_LIMITS0:
        return FIELD_MAKE(RNIC_LIMITS0, QPS, RDMA_QPS) |
               FIELD_MAKE(RNIC_LIMITS0, CQS, RDMA_CQS) |
               FIELD_MAKE(RNIC_LIMITS0, HARTS, RNIC_HARTS);
    case A_RNIC_LIMITS1:
        return FIELD_MAKE(RNIC_LIMITS1, REGIONS, RDMA_MRS) |
               FIELD_MAKE(RNIC_LIMITS1, NEIGHBOURS, RDMA_NEIGHS);
    case A_RNIC_CTRL:
        return s->ctrl;
    case A_RNIC_ECN:
        return FIELD_MAKE(RNIC_ECN, ANSWER, s->roce.ecn.is_answered) |
               FIELD_MAKE(RNIC_ECN, OBEY, s->roce.ecn.is_obeyed) |
               FIELD_MAKE(RNIC_ECN, CODEPOINT, s->roce.ecn.codepoint) |
               FIELD_MAKE(RNIC_ECN, CNP_DSCP, s->roce.ecn.cnp_dscp) |
               FIELD_MAKE(RNIC_ECN, CNP_PRIORITY, s->roce.ecn.cnp_priority);
    case A_RNIC_LINE_RATE:
        return FIELD_MAKE(RNIC_LINE_RATE, MBPS, s->roce.ecn.line_mbps);
    case A_RNIC_IRQ_STATUS:
        return s->irq_status;
    case A_RNIC_IRQ_ENABLE:
        return s->irq_enable;
    default:
        return 0;
    }
}

static void write_ecn(struct roce_ecn *ecn, uint32_t value)
{
    if (FIELD_GET(value, RNIC_ECN, CODEPOINT) > 2) {
        return;
    }
    ecn->is_answered = FIELD_GET(value, RNIC_ECN, ANSWER);
    ecn->is_obeyed = FIELD_GET(value, RNIC_ECN, OBEY);
    ecn->codepoint = (uint8_t)FIELD_GET(value, RNIC_ECN, CODEPOINT);
    ecn->cnp_dscp = (uint8_t)FIELD_GET(value, RNIC_ECN, CNP_DSCP);
    ecn->cnp_priority = (uint8_t)FIELD_GET(value, RNIC_ECN, CNP_PRIORITY);
}

bool rnic_write(struct rnic *rnic, uint32_t offset, uint32_t value)
{
    if (offset >= A_RNIC_HART_PAGE_LO && offset < HART_END) {
        return hart_write(rnic, offset, value);
    }
    switch (offset) {
    case A_RNIC_CTRL:
        if (value & R_RNIC_CTRL_RESET_MASK) {
            rnic_reset(rnic);
            return true;
        }
        rnic->state.ctrl = value & R_RNIC_CTRL_ENABLE_MASK;
        rnic->env.defer(rnic->env.ctx);
        return true;
    case A_RNIC_ECN:
        write_ecn(&rnic->state.roce.ecn, value);
        return true;
    case A_RNIC_LINE_RATE:
        if (FIELD_GET(value, RNIC_LINE_RATE, MBPS) != 0) {
            rnic->state.roce.ecn.line_mbps =
                FIELD_GET(value, RNIC_LINE_RATE, MBPS);
        }
        return true;
    case A_RNIC_IRQ_STATUS:
        rnic->state.irq_status &= ~value;
        update_irq(rnic);
        return true;
    case A_RNIC_IRQ_ENABLE:
        rnic->state.irq_enable = value & R_RNIC_IRQ_ENABLE_HART_MASK;
        update_irq(rnic);
        return true;
    default:
        return false;
    }
}

/* ---- Rings of a hart. */

static void memory_error(struct rnic *rnic, unsigned int h, uint32_t info)
{
    rdma_eq_write(&rnic->state.objects, rnic_dram(rnic), (uint8_t)h,
                  RDMA_EVENT_MEMORY_ERROR, h, info);
}

/*
 * The number of entries that wait in one of a hart's rings.  If firmware's
 * index claims more entries than the ring holds, all of them are skipped.
 */
static uint32_t waiting_entries(struct rnic *rnic, unsigned int h, uint32_t *ci,
                                uint32_t pi_word, uint8_t size_log2)
{
    uint32_t pi =
        rdma_read_word(rnic_dram(rnic), rnic->state.harts[h].page + pi_word);

    if (pi - *ci > 1u << size_log2) {
        *ci = pi;
        memory_error(rnic, h, pi_word);
    }
    return pi - *ci;
}

static void run_command(struct rnic *rnic, unsigned int h)
{
    struct rnic_hart *hart = &rnic->state.harts[h];
    uint32_t slot = hart->cmd_ci++ & ((1u << hart->cmd_size_log2) - 1);
    uint8_t *buf =
        rdma_map(rnic_dram(rnic), hart->cmd + (uint64_t)slot * RNIC_CMD_LEN,
                 RNIC_CMD_LEN);
    uint8_t copy[RNIC_CMD_LEN];
    uint32_t result;
    uint8_t status;

    if (buf == NULL) {
        memory_error(rnic, h, RNIC_PAGE_CMD_PI);
        return;
    }
    memcpy(copy, buf, sizeof(copy));
    status = rnic_execute(rnic, copy, &result);
    put_le32(buf + RNIC_CMD_RESULT, result);
    __atomic_store_n(buf + RNIC_CMD_STATUS, status, __ATOMIC_RELEASE);
    rnic->state.objects.harts_dirty |= BIT(h);
    rnic->state.objects.harts_urgent |= BIT(h);
}

static bool run_commands(struct rnic *rnic, unsigned int h)
{
    struct rnic_hart *hart = &rnic->state.harts[h];

    for (unsigned int n = 0; n < COMMANDS_A_RUN; n++) {
        if (waiting_entries(rnic, h, &hart->cmd_ci, RNIC_PAGE_CMD_PI,
                            hart->cmd_size_log2) == 0) {
            return false;
        }
        run_command(rnic, h);
    }
    return true;
}

/* A doorbell of a queue pair that does not exist is ignored. */
static void ring_doorbell(struct rnic *rnic, uint32_t qpn, uint64_t now_ns)
{
    int slot = rdma_qp_find(&rnic->state.objects, qpn);

    if (slot >= 0) {
        const struct rdma_engine *engine =
            rnic_engine(rnic, rnic->state.objects.qps[slot].type);

        engine->ops->doorbell(engine->ctx, (uint32_t)slot, now_ns);
    }
}

static void take_doorbells(struct rnic *rnic, unsigned int h, uint64_t now_ns)
{
    struct rnic_hart *hart = &rnic->state.harts[h];
    uint32_t count = waiting_entries(rnic, h, &hart->db_ci, RNIC_PAGE_DB_PI,
                                     hart->db_size_log2);

    if (count == 0) {
        return;
    }
    while (count-- != 0) {
        uint32_t slot = hart->db_ci++ & ((1u << hart->db_size_log2) - 1);

        ring_doorbell(rnic,
                      rdma_read_word(rnic_dram(rnic), hart->db + 4ul * slot),
                      now_ns);
    }
    rdma_write_word(rnic_dram(rnic), hart->page + RNIC_PAGE_DB_CI, hart->db_ci);
}

/* ---- Sleeping and waking: docs/hardware/rnic.md, section 1. */

static void wake_engine(struct rnic *rnic)
{
    for (unsigned int h = 0; h < RNIC_HARTS; h++) {
        struct rnic_hart *hart = &rnic->state.harts[h];

        if (hart->enabled && hart->asleep) {
            hart->asleep = false;
            rdma_write_word(rnic_dram(rnic), hart->page + RNIC_PAGE_ASLEEP, 0);
        }
    }
}

/*
 * Fall asleep unless work arrived meanwhile.
 * @return true when work arrived
 */
static bool fall_asleep(struct rnic *rnic)
{
    bool came = false;

    for (unsigned int h = 0; h < RNIC_HARTS; h++) {
        struct rnic_hart *hart = &rnic->state.harts[h];

        if (!hart->enabled) {
            continue;
        }
        hart->asleep = true;
        rdma_write_word(rnic_dram(rnic), hart->page + RNIC_PAGE_ASLEEP, 1);
        dev_mb();
        came |= waiting_entries(rnic, h, &hart->cmd_ci, RNIC_PAGE_CMD_PI,
                                hart->cmd_size_log2) != 0;
        came |= waiting_entries(rnic, h, &hart->db_ci, RNIC_PAGE_DB_PI,
                                hart->db_size_log2) != 0;
    }
    return came;
}

/* Interrupt the sleeping harts for which entries were written. */
static void notify_harts(struct rnic *rnic)
{
    uint32_t dirty = rnic->state.objects.harts_dirty;
    uint32_t urgent = rnic->state.objects.harts_urgent;
    uint32_t before = rnic->state.irq_status;

    if (dirty == 0) {
        return;
    }
    rnic->state.objects.harts_dirty = 0;
    rnic->state.objects.harts_urgent = 0;
    dev_mb();
    for (unsigned int h = 0; h < RNIC_HARTS; h++) {
        const struct rnic_hart *hart = &rnic->state.harts[h];
        uint64_t word = hart->page + RNIC_PAGE_ARMED;
        uint32_t armed;

        if ((dirty & BIT(h)) == 0 || !hart->enabled) {
            continue;
        }
        armed = rdma_read_word(rnic_dram(rnic), word);
        if (armed == RNIC_ARMED_ALL ||
            (armed == RNIC_ARMED_URGENT && (urgent & BIT(h)) != 0)) {
            rdma_write_word(rnic_dram(rnic), word, 0);
            rnic->state.irq_status |= BIT(h);
        }
    }
    if (rnic->state.irq_status != before) {
        update_irq(rnic);
    }
}

static void set_timer(struct rnic *rnic)
{
    uint64_t deadline = UINT64_MAX;

    for (unsigned int i = 0; i < RNIC_ENGINES; i++) {
        const struct rdma_engine *engine = &rnic->engines[i];

        deadline = MIN(deadline, engine->ops->deadline(engine->ctx));
    }
    if (deadline != rnic->timer_ns) {
        rnic->timer_ns = deadline;
        rnic->env.set_timer(rnic->env.ctx, deadline);
    }
}

/* @return whether there is more to send than a run may */
static bool transmit_all(struct rnic *rnic, uint64_t now_ns)
{
    bool more = false;

    for (unsigned int i = 0; i < RNIC_ENGINES; i++) {
        const struct rdma_engine *engine = &rnic->engines[i];

        more |= engine->ops->transmit(engine->ctx, BURSTS_A_RUN, now_ns);
    }
    for (unsigned int i = 0; i < RDMA_ENGINES; i++) {
        more |= rnic->state.objects.cqs_lost[i] != 0;
    }
    return more;
}

static void run_rings(struct rnic *rnic)
{
    uint64_t now_ns = rnic->env.now_ns(rnic->env.ctx);
    bool more = false;

    wake_engine(rnic);
    for (unsigned int h = 0; h < RNIC_HARTS; h++) {
        if (rnic->state.harts[h].enabled) {
            more |= run_commands(rnic, h);
            take_doorbells(rnic, h, now_ns);
        }
    }
    if (rnic->state.ctrl & R_RNIC_CTRL_ENABLE_MASK) {
        more |= transmit_all(rnic, now_ns);
    }
    if (more || fall_asleep(rnic)) {
        rnic->env.defer(rnic->env.ctx);
    }
    notify_harts(rnic);
    set_timer(rnic);
}

void rnic_run(struct rnic *rnic)
{
    if (!rnic->busy) {
        rnic->busy = true;
        run_rings(rnic);
        rnic->busy = false;
    }
}

void rnic_timer(struct rnic *rnic)
{
    uint64_t now_ns = rnic->env.now_ns(rnic->env.ctx);

    rnic->timer_ns = DEV_NO_DEADLINE;
    for (unsigned int i = 0; i < RNIC_ENGINES; i++) {
        rnic->engines[i].ops->timer(rnic->engines[i].ctx, now_ns);
    }
    rnic_run(rnic);
}

void rnic_rx(struct rnic *rnic, unsigned int port,
             const struct frame_rx *frames, unsigned int count)
{
    if ((rnic->state.ctrl & R_RNIC_CTRL_ENABLE_MASK) == 0) {
        return;
    }
    if (rnic->busy) {
        rnic->state.roce.counters[ROCE_RX_DROPPED] += count;
        return;
    }
    rnic->busy = true;
    roce_rx(&rnic->roce, port, frames, count, rnic->env.now_ns(rnic->env.ctx));
    run_rings(rnic);
    rnic->busy = false;
}

void rnic_port_ready(struct rnic *rnic, unsigned int port)
{
    for (unsigned int i = 0; i < RNIC_ENGINES; i++) {
        rnic->engines[i].ops->port_ready(rnic->engines[i].ctx, port);
    }
    rnic->env.defer(rnic->env.ctx);
}

void rnic_link_changed(struct rnic *rnic, unsigned int port, bool is_up)
{
    for (unsigned int h = 0; h < RNIC_HARTS; h++) {
        if (rnic->state.harts[h].enabled) {
            rdma_eq_write(&rnic->state.objects, rnic_dram(rnic), (uint8_t)h,
                          RDMA_EVENT_LINK, port, is_up);
        }
    }
    notify_harts(rnic);
}

void rnic_reset(struct rnic *rnic)
{
    rnic->state.ctrl = 0;
    rnic->state.irq_status = 0;
    rnic->state.irq_enable = 0;
    memset(rnic->state.harts, 0, sizeof(rnic->state.harts));
    memset(&rnic->state.objects, 0, sizeof(rnic->state.objects));
    for (unsigned int i = 0; i < RNIC_ENGINES; i++) {
        rnic->engines[i].ops->reset(rnic->engines[i].ctx);
    }
    rnic->timer_ns = DEV_NO_DEADLINE;
    rnic->env.set_timer(rnic->env.ctx, DEV_NO_DEADLINE);
    update_irq(rnic);
}

void rnic_attach_port(struct rnic *rnic, unsigned int port,
                      const struct frame_sink *sink)
{
    rnic->roce.sinks[port] = *sink;
}

static void init_roce(struct rnic *rnic, const struct rnic_config *config)
{
    struct roce *roce = &rnic->roce;

    roce->state = &rnic->state.roce;
    roce->objects = &rnic->state.objects;
    roce->dram = rnic->dram;
    memcpy(roce->sinks, config->ports, sizeof(roce->sinks));
    roce->trace = config->trace;
    roce->faults = NULL;
    rnic->engines[0] = (struct rdma_engine){&roce_engine_ops, roce};
}

void rnic_set_faults(struct rnic *rnic, const struct roce_fault_hook *hook)
{
    rnic->roce.faults = hook;
}

void rnic_init(struct rnic *rnic, const struct rnic_config *config)
{
    rnic->env = config->env;
    rnic->dram = (struct rdma_dram){
        .ctx = config->env.ctx,
        .map = config->env.dma,
        .map_write = config->env.dma_write,
    };
    init_roce(rnic, config);
    rnic_init_iwarp(rnic, config);
    rnic->busy = false;
    rnic_reset(rnic);
}

static bool harts_valid(const struct rnic_state *state)
{
    for (unsigned int h = 0; h < RNIC_HARTS; h++) {
        const struct rnic_hart *hart = &state->harts[h];

        if (hart->cmd_size_log2 > 8 || hart->db_size_log2 > 14 ||
            hart->page % 64 != 0 || hart->cmd % 64 != 0 || hart->db % 64 != 0) {
            return false;
        }
    }
    return true;
}

static bool engines_reload(struct rnic *rnic)
{
    for (unsigned int i = 0; i < RNIC_ENGINES; i++) {
        if (!rnic->engines[i].ops->reload(rnic->engines[i].ctx)) {
            return false;
        }
    }
    return true;
}

bool rnic_state_loaded(struct rnic *rnic)
{
    if (!harts_valid(&rnic->state) ||
        !rdma_objects_valid(&rnic->state.objects) || !engines_reload(rnic)) {
        rnic_reset(rnic);
        return false;
    }
    rnic->timer_ns = DEV_NO_DEADLINE;
    update_irq(rnic);
    set_timer(rnic);
    rnic->env.defer(rnic->env.ctx);
    return true;
}
