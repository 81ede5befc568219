/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver and connection manager on the model of the RNIC: two nodes, connected
 * port to port, make connections, move data and disconnect.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/drivers/rnic.h"
#include "firmware/hal/barrier.h"
#include "firmware/hal/mmio.h"
#include "firmware/hal/relax.h"
#include "hw-model/rnic/rnic.h"
#include "lib/bytes.h"
#include "net/cm/cm.h"
#include "net/wire/rdma_ip_cm.h"
#include "tests/test_fixture.h"

enum {
    NODES = 2,
    NODE_STRIDE = 0x10000,
    ARENA = 48 << 20,
    WIRE_FRAMES = 512,
    LADDR = 0,
    NEIGH = 5,
};

struct wire_frame {
    uint8_t bytes[FRAME_LEN_MAX];
    uint32_t len;
};

struct node {
    unsigned int number;
    struct rnic rnic;
    struct verbs verbs;
    struct cm cm;
    struct dram dram;
    uint8_t *arena;
    bool wants_run;
    bool irq;
    uint64_t deadline_ns;
    struct wire_frame *wire; /* frames on their way to the other node */
    unsigned int wire_len;
    int pins;

    uint32_t qpn;
    struct cm_conn *conn;
    unsigned int established, ended;
    struct verbs_wc wc[16];
    unsigned int wcs;
    struct verbs_event event;
    unsigned int events;
};

/* The hal functions have no context: the address tells the node. */
static struct {
    struct node node[NODES];
    uint64_t now_ns;
    unsigned int irqs;
} world;

/* ---- The firmware's hal */

static struct node *node_of(uintptr_t addr)
{
    return &world.node[addr / NODE_STRIDE - 1];
}

uint32_t mmio_read32(uintptr_t addr)
{
    return rnic_read(&node_of(addr)->rnic, (uint32_t)(addr % NODE_STRIDE));
}

void mmio_write32(uintptr_t addr, uint32_t value)
{
    assert_true(rnic_write(&node_of(addr)->rnic, (uint32_t)(addr % NODE_STRIDE),
                           value));
}

void hal_dma_wmb(void)
{
}
void hal_dma_rmb(void)
{
}
void hal_dma_mb(void)
{
}

void hal_relax(void)
{
    for (unsigned int i = 0; i < NODES; i++) {
        struct node *node = &world.node[i];

        if (node->wants_run) {
            node->wants_run = false;
            rnic_run(&node->rnic);
        }
    }
}

/* ---- The model's environment */

static void *env_dma(void *ctx, uint64_t addr, uint64_t len)
{
    struct node *node = ctx;
    uint64_t offset = addr - (uintptr_t)node->arena;

    return offset <= ARENA && len <= ARENA - offset ? node->arena + offset
                                                    : NULL;
}

static bool env_is_dram(void *ctx, uint64_t addr, uint64_t len)
{
    return env_dma(ctx, addr, len) != NULL;
}

static uint64_t env_now_ns(void *ctx)
{
    (void)ctx;
    return world.now_ns;
}

static void env_set_timer(void *ctx, uint64_t deadline_ns)
{
    ((struct node *)ctx)->deadline_ns = deadline_ns;
}

static void env_set_irq(void *ctx, unsigned int line, bool level)
{
    struct node *node = ctx;

    assert_int_equal(line, 0);
    world.irqs += level && !node->irq;
    node->irq = level;
}

static void env_defer(void *ctx)
{
    ((struct node *)ctx)->wants_run = true;
}

static unsigned int sink_send(void *ctx, const struct frame_tx *burst,
                              unsigned int count)
{
    struct node *node = ctx;
    unsigned int n;

    for (n = 0; n < count && node->wire_len < WIRE_FRAMES; n++) {
        struct wire_frame *frame = &node->wire[node->wire_len++];

        frame->len = frame_tx_copy(frame->bytes, &burst[n]);
    }
    return n;
}

/* ---- Users */

static enum cm_path_result path_resolve(void *ctx,
                                        const struct verbs_ud_info *from,
                                        struct cm_path *path)
{
    struct node *node = ctx;
    struct verbs_gid peer = {
        {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(2 - node->number)}};

    assert_memory_equal(from->src_ip.bytes, peer.bytes, 16);
    assert_int_equal(from->laddr, LADDR);
    assert_int_equal(from->src_mac[5], 1 - node->number);
    assert_int_equal(from->vlan, 0xffff);
    *path = (struct cm_path){.neigh = NEIGH, .laddr = LADDR, .mtu = 5};
    return CM_PATH_READY;
}

static void path_pin(void *ctx, uint16_t neigh)
{
    assert_int_equal(neigh, NEIGH);
    ((struct node *)ctx)->pins++;
}

static void path_unpin(void *ctx, uint16_t neigh)
{
    assert_int_equal(neigh, NEIGH);
    ((struct node *)ctx)->pins--;
}

static const struct cm_path_ops path_ops = {path_resolve, path_pin, path_unpin};

static void qp_completion(void *ctx, const struct verbs_wc *wc)
{
    struct node *node = ctx;

    if (node->wcs < ARRAY_LEN(node->wc)) {
        node->wc[node->wcs++] = *wc;
    }
}

static void qp_event(void *ctx, const struct verbs_event *event)
{
    struct node *node = ctx;

    node->event = *event;
    node->events++;
    if (event->type == VERBS_EVENT_QP_ESTABLISHED) {
        cm_data_received(node->conn);
    }
}

static const struct verbs_qp_ops qp_ops = {qp_completion, qp_event, NULL};

static void make_qp(struct node *node)
{
    const struct verbs_qp_config config = {
        .type = VERBS_QP_RC,
        .sq_depth = 32,
        .rq_depth = 32,
        .ops = &qp_ops,
        .ctx = node,
    };

    assert_true(verbs_create_qp(&node->verbs, &config, &node->qpn));
}

static void ready_qp(struct node *node)
{
    struct verbs_qp_attr attr;

    cm_qp_attr(node->conn, &attr);
    attr.access = VERBS_ACCESS_REMOTE_READ | VERBS_ACCESS_REMOTE_WRITE;
    assert_true(
        verbs_modify_qp(&node->verbs, node->qpn, VERBS_QPS_INIT, &attr));
    assert_true(verbs_modify_qp(&node->verbs, node->qpn, VERBS_QPS_RTR, &attr));
    assert_true(verbs_modify_qp(&node->verbs, node->qpn, VERBS_QPS_RTS, &attr));
}

static void on_request(void *ctx, struct cm_conn *conn,
                       const struct cm_request *request)
{
    struct node *node = ctx;

    assert_int_equal(ip_addr_to_v4(&request->peer_ip), 0x0a000001);
    node->conn = conn;
    make_qp(node);
    ready_qp(node);
    cm_accept(conn, node->qpn, "hello", 5);
}

static void on_replied(void *ctx, struct cm_conn *conn, const uint8_t *data,
                       size_t len)
{
    struct node *node = ctx;

    (void)len;
    assert_memory_equal(data, "hello", 5);
    node->conn = conn;
    ready_qp(node);
    cm_confirm(conn);
    node->established++;
}

static void on_established(void *ctx, struct cm_conn *conn)
{
    struct node *node = ctx;

    assert_ptr_equal(conn, node->conn);
    node->established++;
}

static void on_disconnected(void *ctx, struct cm_conn *conn,
                            const struct cm_end *end)
{
    struct node *node = ctx;

    (void)end;
    node->ended++;
    verbs_destroy_qp(&node->verbs, node->qpn);
    cm_release(conn);
    node->conn = NULL;
}

static const struct cm_ops cm_ops = {
    on_request,
    on_replied,
    on_established,
    on_disconnected,
};

/* ---- Running the nodes */

static bool turn_node(struct node *node)
{
    struct node *other = &world.node[1 - node->number];
    unsigned int frames = node->wire_len;
    bool is_busy;

    for (unsigned int i = 0; i < frames; i++) {
        const struct frame_rx rx = {
            .data = node->wire[i].bytes,
            .len_bytes = node->wire[i].len,
        };

        rnic_rx(&other->rnic, 0, &rx, 1);
    }
    memmove(node->wire, node->wire + frames,
            (node->wire_len - frames) * sizeof(node->wire[0]));
    node->wire_len -= frames;
    if (node->deadline_ns <= world.now_ns) {
        node->deadline_ns = DEV_NO_DEADLINE;
        rnic_timer(&node->rnic);
    }
    is_busy = node->wants_run || frames != 0;
    hal_relax();
    cm_poll(&node->cm, world.now_ns / 1000);
    is_busy |= verbs_poll(&node->verbs, 16) != 0;
    verbs_flush(&node->verbs);
    return is_busy;
}

static void turn_until_idle(void)
{
    unsigned int idle = 0;

    for (unsigned int i = 0; idle < 3; i++) {
        bool is_busy = turn_node(&world.node[0]);

        is_busy |= turn_node(&world.node[1]);
        idle = is_busy ? 0 : idle + 1;
        world.now_ns += 1000;
        assert_true(i < 10000);
    }
}

static void node_start(struct node *node, unsigned int number,
                       uint32_t generation)
{
    uint8_t mac[6] = {2, 0, 0, 0, 0, (uint8_t)number};
    struct verbs_gid ip = {
        {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(number + 1)}};
    struct rnic_config rnic = {
        .env = {node, env_dma, env_dma, env_is_dram, env_now_ns, env_set_timer,
                env_set_irq, env_defer},
        .ports = {{.ctx = node, .send = sink_send},
                  {.ctx = node, .send = sink_send}},
    };
    struct verbs_config verbs = {
        .regs = (number + 1) * NODE_STRIDE,
        .dram = &node->dram,
        .generation = generation,
    };
    struct cm_config cm = {
        .verbs = &node->verbs,
        .path_ops = &path_ops,
        .path_ctx = node,
        .ca_guid = 0x100 + number,
        .generation = generation,
        .initiator_depth = 16,
        .responder_resources = 16,
        .max_retries = 3,
    };

    node->number = number;
    node->deadline_ns = DEV_NO_DEADLINE;
    node->arena = aligned_alloc(4096, ARENA);
    node->wire = malloc(WIRE_FRAMES * sizeof(node->wire[0]));
    assert_non_null(node->arena);
    assert_non_null(node->wire);
    dram_init(&node->dram, node->arena, ARENA);
    rnic_init(&node->rnic, &rnic);
    assert_int_equal(verbs_init(&node->verbs, &verbs), INIT_OK);
    assert_true(verbs_set_laddr(&node->verbs, LADDR, 0, mac, &ip, 0xffff));
    mac[5] = (uint8_t)(1 - number);
    ip.bytes[15] = (uint8_t)(2 - number);
    assert_true(verbs_set_neigh(&node->verbs, NEIGH, 0, mac, &ip, 0xffff));
    cm.memory = dram_alloc(&node->dram, CM_MEMORY_LEN, 64);
    assert_true(cm_init(&node->cm, &cm));
    assert_true(
        cm_listen(&node->cm, rdma_ip_cm_service_id(4420), &cm_ops, node));
}

static int set_up(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    world.now_ns = 1000000000;
    for (unsigned int i = 0; i < NODES; i++) {
        node_start(&world.node[i], i, 10 + i);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < NODES; i++) {
        free(world.node[i].arena);
        free(world.node[i].wire);
    }
    return 0;
}

static void connect_nodes(void)
{
    struct node *host = &world.node[0];
    struct cm_connect_param param = {
        .service_id = rdma_ip_cm_service_id(4420),
        .local_ip = ip_addr_from_v4(0x0a000001),
        .peer_ip = ip_addr_from_v4(0x0a000002),
        .local_port = 40000,
        .path = {.neigh = NEIGH, .laddr = LADDR, .mtu = IB_MTU_4096},
        .ack_timeout = 17,
        .retry_count = 7,
        .rnr_retry_count = 7,
        .ops = &cm_ops,
        .ctx = host,
    };
    unsigned int before = world.node[1].established;

    make_qp(host);
    param.qpn = host->qpn;
    host->conn = cm_connect(&host->cm, &param);
    assert_non_null(host->conn);
    turn_until_idle();
    assert_int_equal(world.node[1].established, before + 1);
    assert_int_equal(host->established, before + 1);
}

static void post_recv(struct node *node, uint8_t *buf, uint32_t len)
{
    const struct verbs_sge sge = {buf, len, verbs_local_key(&node->verbs)};

    assert_true(verbs_post_recv(&node->verbs, node->qpn, 0x9999, &sge));
}

static void post_send(struct node *node, enum verbs_wr_opcode opcode,
                      uint8_t *buf, uint32_t len, uint64_t remote,
                      uint32_t rkey)
{
    const struct verbs_send_wr wr = {
        .wr_id = 0x1000u + opcode,
        .opcode = opcode,
        .signaled = true,
        .num_sge = 1,
        .sge = {{buf, len, verbs_local_key(&node->verbs)}},
        .remote_addr = remote,
        .rkey = rkey,
    };

    assert_true(verbs_post_send(&node->verbs, node->qpn, &wr));
}

static void fill_pattern(uint8_t *buf, size_t len, unsigned int seed)
{
    for (size_t i = 0; i < len; i++) {
        buf[i] = (uint8_t)(i * 7 + i / 251 + seed);
    }
}

/* ---- Tests */

static void test_two_nodes_connect_and_move_data(void **state)
{
    struct node *host = &world.node[0], *drive = &world.node[1];
    enum { LEN = 100001 };
    uint8_t *theirs = dram_alloc(&host->dram, LEN, 64);
    uint8_t *ours = dram_alloc(&drive->dram, LEN, 64);
    uint32_t rkey;

    (void)state;
    connect_nodes();
    rkey = verbs_reg_mr(&host->verbs, theirs, LEN,
                        VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_READ |
                            VERBS_ACCESS_REMOTE_WRITE);
    assert_int_not_equal(rkey, VERBS_NO_MR);

    post_recv(drive, ours, 4096);
    fill_pattern(theirs, 64, 1);
    post_send(host, VERBS_WR_SEND, theirs, 64, 0, 0);
    turn_until_idle();
    assert_int_equal(host->wcs, 1);
    assert_int_equal(host->wc[0].status, VERBS_WC_SUCCESS);
    assert_int_equal(host->wc[0].opcode, VERBS_WC_SEND);
    assert_int_equal(drive->wcs, 1);
    assert_int_equal(drive->wc[0].opcode, VERBS_WC_RECV);
    assert_int_equal(drive->wc[0].wr_id, 0x9999);
    assert_int_equal(drive->wc[0].len_bytes, 64);
    assert_memory_equal(ours, theirs, 64);

    fill_pattern(theirs, LEN, 2);
    post_send(drive, VERBS_WR_READ, ours, LEN, hal_dma_addr(theirs), rkey);
    turn_until_idle();
    assert_int_equal(drive->wc[1].opcode, VERBS_WC_READ);
    assert_int_equal(drive->wc[1].status, VERBS_WC_SUCCESS);
    assert_memory_equal(ours, theirs, LEN);

    fill_pattern(ours, LEN, 3);
    post_send(drive, VERBS_WR_WRITE, ours, LEN, hal_dma_addr(theirs), rkey);
    turn_until_idle();
    assert_int_equal(drive->wc[2].opcode, VERBS_WC_WRITE);
    assert_int_equal(drive->wc[2].status, VERBS_WC_SUCCESS);
    assert_memory_equal(ours, theirs, LEN);
    assert_int_equal(drive->wcs, 3);
    assert_int_equal(verbs_send_room(&drive->verbs, drive->qpn), 32);

    cm_disconnect(host->conn);
    turn_until_idle();
    assert_int_equal(host->ended, 1);
    assert_int_equal(drive->ended, 1);
    world.now_ns += 2000000000;
    turn_until_idle();
    assert_int_equal(host->pins, 0);
    assert_int_equal(drive->pins, 0);
    verbs_clear_neigh(&drive->verbs, NEIGH); /* no QP uses it any more */
}

static void test_two_thousand_connections_one_after_another(void **state)
{
    struct node *host = &world.node[0], *drive = &world.node[1];

    (void)state;
    for (unsigned int i = 0; i < 2000; i++) {
        connect_nodes();
        cm_disconnect(i & 1 ? host->conn : drive->conn);
        turn_until_idle();
        assert_int_equal(host->ended, i + 1);
        assert_int_equal(drive->ended, i + 1);
    }
    assert_int_equal(drive->verbs.counters.commands_refused, 0);
    assert_int_equal(host->verbs.counters.commands_refused, 0);
}

static void test_a_bad_key_fails_both_ends_with_reasons(void **state)
{
    struct node *host = &world.node[0], *drive = &world.node[1];
    uint8_t *ours = dram_alloc(&drive->dram, 64, 64);

    (void)state;
    connect_nodes();
    post_send(drive, VERBS_WR_READ, ours, 64, 0x1000, 0xbad00);
    post_send(drive, VERBS_WR_SEND, ours, 64, 0, 0);
    turn_until_idle();
    assert_int_equal(drive->wcs, 2);
    assert_int_equal(drive->wc[0].status, VERBS_WC_REMOTE_ACCESS);
    assert_int_equal(drive->wc[1].status, VERBS_WC_FLUSHED);
    assert_int_equal(drive->event.type, VERBS_EVENT_QP_FATAL);
    assert_int_equal(drive->event.status, VERBS_WC_REMOTE_ACCESS);
    assert_int_equal(host->event.type, VERBS_EVENT_QP_FATAL);
    cm_disconnect(drive->conn);
    turn_until_idle();
    assert_int_equal(host->ended, 1);
}

static void test_a_sleeping_node_is_woken(void **state)
{
    struct node *host = &world.node[0], *drive = &world.node[1];
    uint8_t *buf = dram_alloc(&drive->dram, 64, 64);
    unsigned int irqs;

    (void)state;
    connect_nodes();
    post_recv(drive, buf, 64);
    verbs_flush(&drive->verbs);
    for (unsigned int i = 0; i < 3; i++) {
        irqs = world.irqs;
        verbs_irq_take(&drive->verbs);
        assert_false(drive->irq);
        assert_true(verbs_arm(&drive->verbs, false));
        post_send(host, VERBS_WR_SEND, dram_alloc(&host->dram, 64, 64), 64, 0,
                  0);
        turn_until_idle();
        assert_true(drive->irq);
        assert_int_equal(world.irqs, irqs + 1);
        post_recv(drive, buf, 64);
        verbs_flush(&drive->verbs);
    }
}

static void test_a_failed_mad_qp_is_made_again(void **state)
{
    struct node *host = &world.node[0], *drive = &world.node[1];
    const struct verbs_send_wr wrong = {
        .wr_id = 3,
        .opcode = VERBS_WR_READ, /* UD does not support READ */
        .signaled = true,
        .ud = {.neigh = NEIGH, .dest_qpn = 1, .qkey = 0x80010000},
    };

    (void)state;
    assert_true(verbs_post_send(&drive->verbs, 1, &wrong));
    verbs_flush(&drive->verbs);
    turn_until_idle();
    assert_int_equal(drive->cm.counters.restarts, 1);
    connect_nodes();
    cm_disconnect(host->conn);
    turn_until_idle();
    assert_int_equal(drive->ended, 1);
}

TEST_FIXTURE(set_up, tear_down)
