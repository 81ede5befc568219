/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP and NVMe/TCP at one port of the TCP offload engine. */
#include "tests/unit/firmware/tcp/tcp_bed.h"

#include "firmware/tcp/mpa_socket.h"
#include "lib/bytes.h"
#include "tests/test_fixture.h"
#include "tests/unit/nvmeof/target/fake.h"

enum { FROM = 50000, PORT = MPA_SOCKET_PORT };

struct mpa_bed {
    struct bed *bed;
    struct fake *fake;
    struct mpa_socket mpa;
    struct mpa_cm *cm;
    struct nvme_socket nvme;
    struct nvme_tcp *tcp;
    struct nvmf_binding binding;
    void *requests;
    uint8_t *rings, *replies;
    uint8_t laddr;
    bool waits;       /* entries are left in the engine's ring */
    uint64_t refused; /* commands, because the connection has ended */
};

bool verbs_modify_qp(struct verbs *verbs, uint32_t qpn,
                     enum verbs_qp_state next, const struct verbs_qp_attr *attr)
{
    (void)verbs;
    (void)qpn;
    (void)next;
    (void)attr;
    assert_true(false); /* nobody accepts a connection here */
    return false;
}

static uint8_t find_laddr(void *ctx, const uint8_t *tcb)
{
    (void)tcb;
    return ((struct mpa_bed *)ctx)->laddr;
}

static void take_entry(void *ctx, const struct toe_entry *entry)
{
    struct mpa_bed *mpa = ctx;

    if (!mpa_socket_take(&mpa->mpa, entry) &&
        !nvme_socket_take(&mpa->nvme, entry) && entry->kind == TOE_KIND_ENDED) {
        assert_true(toe_release(&mpa->bed->toe, entry->tid));
    }
}

static void take_turn(struct bed *bed)
{
    struct mpa_bed *mpa = bed->firmware;
    uint64_t now_us = model.env.now_ns / 1000;

    if (mpa->waits) {
        return;
    }
    mpa->binding.ops->tick(mpa->binding.ctx, now_us);
    (void)toe_poll(&bed->toe, 64, take_entry, mpa);
    (void)mpa->binding.ops->step(mpa->binding.ctx);
    (void)mpa_cm_step(mpa->cm, now_us);
    toe_kick(&bed->toe);
}

static int setup(void **state)
{
    struct mpa_bed *mpa = calloc(1, sizeof(*mpa));
    struct nvme_socket_config nvme = {
        .commands_left = 256, .find_laddr = find_laddr, .ctx = mpa};
    struct mpa_socket_config socket = {.ring_log2 = NVME_TCP_RING_LOG2,
                                       .commands_left = 256,
                                       .find_laddr = find_laddr,
                                       .ctx = mpa};
    struct nvme_tcp_config tcp = {.portid = {1}};
    struct mpa_cm_config cm = {.ring_bytes = 1u << NVME_TCP_RING_LOG2,
                               .max_rd_atomic = 16};

    ASSERT(mpa != NULL);
    mpa->bed = bed_new();
    mpa->fake = fake_new();
    fake_start(mpa->fake);
    mpa->tcp = malloc(nvme_tcp_bytes());
    mpa->requests = malloc(nvme_tcp_request_bytes());
    mpa->cm = malloc(mpa_cm_bytes());
    mpa->rings = model.dram_base + MODEL_DRAM_BYTES / 4; /* of some slots */
    mpa->replies = malloc((size_t)MPA_CM_CONNS * MPA_CM_REPLY_LEN);
    nvme.toe = socket.toe = &mpa->bed->toe;
    nvme.tcp = mpa->tcp;
    socket.cm = mpa->cm;
    socket.rings = cm.rings = mpa->rings;
    cm.replies = mpa->replies;
    cm.socket = mpa_socket_init(&mpa->mpa, &socket);
    mpa_cm_init(mpa->cm, &cm);
    tcp.socket = nvme_socket_init(&mpa->nvme, &nvme);
    tcp.target = mpa->fake->target;
    tcp.memory = model.dram_base + MODEL_DRAM_BYTES / 2;
    tcp.requests = mpa->requests;
    nvme_tcp_init(mpa->tcp, &tcp);
    nvme_tcp_serve(mpa->tcp, true);
    mpa->binding = nvme_tcp_binding(mpa->tcp);
    mpa->bed->firmware = mpa;
    mpa->bed->turn = take_turn;
    bed_start_engine(mpa->bed, NVME_TCP_RING_LOG2);
    assert_true(toe_listen(&mpa->bed->toe, PORT));
    assert_true(nvme_socket_listen(&mpa->nvme, false));
    mpa->mpa.nvme = &mpa->nvme;
    *state = mpa;
    return 0;
}

static int teardown(void **state)
{
    struct mpa_bed *mpa = *state;

    nvme_tcp_serve(mpa->tcp, false);
    bed_pass(mpa->bed, UINT64_C(2) * MPA_CM_REQUEST_US);
    assert_int_equal(nvme_tcp_usage(mpa->tcp).connections, 0);
    assert_int_equal(mpa_cm_usage(mpa->cm).connections, 0);
    assert_int_equal(toe_counter_read(&mpa->bed->toe, TOE_COUNT_REFUSED),
                     mpa->refused);
    bed_free(mpa->bed);
    fake_free(mpa->fake);
    free(mpa->tcp);
    free(mpa->requests);
    free(mpa->replies);
    free(mpa->cm);
    free(mpa);
    return 0;
}

TEST_FIXTURE(setup, teardown)

static uint32_t peer_connects(struct mpa_bed *mpa)
{
    struct host *peer = mpa->bed->peer;

    (void)bed_connect(mpa->bed, PORT,
                      (uint16_t)(FROM + peer->established_count), HOST_MANUAL);
    bed_pass(mpa->bed, 100000);
    return peer->established_id;
}

/* The bytes of host_pattern() do not begin with 'M'. */
static void test_the_first_byte_gives_a_connection_to_nvme_tcp(void **state)
{
    struct mpa_bed *mpa = *state;
    uint32_t id = peer_connects(mpa);

    assert_int_equal(mpa_cm_usage(mpa->cm).half_open, 1);
    assert_int_equal(nvme_tcp_usage(mpa->tcp).connections, 0);
    host_send(mpa->bed->peer, id, 1);
    bed_pass(mpa->bed, 100000);
    assert_int_equal(mpa_cm_usage(mpa->cm).connections, 0);
    assert_int_equal(nvme_tcp_usage(mpa->tcp).connections, 1);
    assert_int_equal(nvme_tcp_counter(mpa->tcp, NVME_TCP_CONNECTIONS), 1);
    /* NVMe/TCP reads the byte: it is no ICReq. */
    host_send(mpa->bed->peer, id, 200);
    bed_pass(mpa->bed, 100000);
    assert_int_equal(nvme_tcp_counter(mpa->tcp, NVME_TCP_TERMS_SENT), 1);
}

/* Its bytes are still in the ring that it had: nobody may read others. */
static void test_a_connection_that_ends_meanwhile_is_not_read(void **state)
{
    struct mpa_bed *mpa = *state;
    uint32_t id = peer_connects(mpa);

    memset(model.dram_base + MODEL_DRAM_BYTES / 2, 0, NVME_TCP_RING_LEN);
    mpa->waits = true;
    host_send(mpa->bed->peer, id, 200);
    bed_pass(mpa->bed, 100000);
    tcp_abort(mpa->bed->peer->tcp, id, mpa->bed->peer->now_us);
    bed_pass(mpa->bed, 100000);
    mpa->waits = false;
    bed_pass(mpa->bed, 100000);
    assert_int_equal(nvme_tcp_usage(mpa->tcp).connections, 0);
    assert_int_equal(nvme_tcp_counter(mpa->tcp, NVME_TCP_CONNECTIONS), 0);
    mpa->refused = 1; /* RING */
    assert_int_equal(toe_usage(&mpa->bed->toe).connections, 0);
}

/* NVMe/TCP takes no more: the connection ends. */
static void test_a_connection_that_nvme_tcp_refuses_ends(void **state)
{
    struct mpa_bed *mpa = *state;
    uint32_t id = peer_connects(mpa);

    nvme_tcp_serve(mpa->tcp, false);
    host_send(mpa->bed->peer, id, 1);
    bed_pass(mpa->bed, 100000);
    assert_int_equal(mpa->bed->peer->ended_count, 1);
    assert_int_equal(mpa->bed->peer->end, TCP_END_RESET);
    assert_int_equal(toe_usage(&mpa->bed->toe).connections, 0);
}

/* Without NVMe/TCP, too. */
static void test_a_connection_that_nobody_wants_ends(void **state)
{
    struct mpa_bed *mpa = *state;
    uint32_t id = peer_connects(mpa);

    mpa->mpa.nvme = NULL;
    host_send(mpa->bed->peer, id, 1);
    bed_pass(mpa->bed, 100000);
    assert_int_equal(mpa->bed->peer->ended_count, 1);
    assert_int_equal(toe_usage(&mpa->bed->toe).connections, 0);
}

static void test_other_addresses_refuse_iwarp(void **state)
{
    struct mpa_bed *mpa = *state;

    mpa->laddr = NVMF_MAX_ADDRESSES;
    (void)peer_connects(mpa);
    assert_int_equal(mpa->bed->peer->established_count, 0);
    assert_int_equal(mpa_cm_usage(mpa->cm).connections, 0);
}

/* As long as what a segment carries beside its timestamps: one with an FPDU of
 * this length is one segment. */
static void test_a_stream_tells_what_a_segment_carries(void **state)
{
    struct mpa_bed *mpa = *state;
    struct rdma_streams streams = hw_toe_streams(&mpa->bed->hw);
    struct tcp_info info;
    uint32_t id = peer_connects(mpa), tid = mpa->mpa.tid_of[0];

    assert_true(
        tcp_info(mpa->bed->hw.tcp, mpa->bed->hw.state.conns[0].id, &info));
    assert_true(info.has_times);
    assert_int_equal(info.mss, BED_MTU - IPV4_LEN - TCP_LEN);
    assert_int_equal(streams.segment_bytes(streams.ctx, tid),
                     BED_MTU - IPV4_LEN - TCP_LEN - 12);
    assert_int_equal(streams.segment_bytes(streams.ctx, tid + 1), 0);
    tcp_abort(mpa->bed->peer->tcp, id, mpa->bed->peer->now_us);
    bed_pass(mpa->bed, 100000);
    assert_int_equal(streams.segment_bytes(streams.ctx, tid), 0);
}
