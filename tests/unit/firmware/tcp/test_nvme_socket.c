/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVMe/TCP on the driver of the TCP offload engine: which connections it
 * accepts.
 */
#include "tests/unit/firmware/tcp/tcp_bed.h"

#include "firmware/tcp/nvme_socket.h"
#include "lib/bytes.h"
#include "tests/test_fixture.h"
#include "tests/unit/nvmeof/target/fake.h"

enum { FROM = 50000 };

struct nvme_bed {
    struct bed *bed;
    struct fake *fake;
    struct nvme_socket socket;
    struct nvme_tcp *tcp;
    struct nvmf_binding binding;
    void *requests;
    uint8_t *memory; /* of the first connections only */
    uint8_t laddr;   /* of the own address */
    uint8_t tcb[TOE_TCB_LEN];
};

static uint8_t find_laddr(void *ctx, const uint8_t *tcb)
{
    struct nvme_bed *nvme = ctx;

    memcpy(nvme->tcb, tcb, sizeof(nvme->tcb));
    return nvme->laddr;
}

static void take_entry(void *ctx, const struct toe_entry *entry)
{
    struct nvme_bed *nvme = ctx;

    if (!nvme_socket_take(&nvme->socket, entry) &&
        entry->kind == TOE_KIND_ENDED) {
        assert_true(toe_release(&nvme->bed->toe, entry->tid));
    }
}

static void take_turn(struct bed *bed)
{
    struct nvme_bed *nvme = bed->firmware;

    nvme->binding.ops->tick(nvme->binding.ctx, model.env.now_ns / 1000);
    (void)toe_poll(&bed->toe, 64, take_entry, nvme);
    (void)nvme->binding.ops->step(nvme->binding.ctx);
    toe_kick(&bed->toe);
}

static int setup(void **state)
{
    struct nvme_bed *nvme = calloc(1, sizeof(*nvme));
    struct nvme_socket_config config = {
        .commands_left = 256, .find_laddr = find_laddr, .ctx = nvme};
    struct nvme_tcp_config tcp = {.portid = {1}};

    ASSERT(nvme != NULL);
    nvme->bed = bed_new();
    nvme->fake = fake_new();
    fake_start(nvme->fake);
    nvme->tcp = malloc(nvme_tcp_bytes());
    nvme->requests = malloc(nvme_tcp_request_bytes());
    nvme->memory = model.dram_base + MODEL_DRAM_BYTES / 2;
    config.toe = &nvme->bed->toe;
    config.tcp = nvme->tcp;
    tcp.socket = nvme_socket_init(&nvme->socket, &config);
    tcp.target = nvme->fake->target;
    tcp.memory = nvme->memory;
    tcp.requests = nvme->requests;
    nvme_tcp_init(nvme->tcp, &tcp);
    nvme_tcp_serve(nvme->tcp, true);
    nvme->binding = nvme_tcp_binding(nvme->tcp);
    nvme->bed->firmware = nvme;
    nvme->bed->turn = take_turn;
    bed_start_engine(nvme->bed, NVME_TCP_RING_LOG2);
    assert_true(nvme_socket_listen(&nvme->socket, true));
    *state = nvme;
    return 0;
}

static int teardown(void **state)
{
    struct nvme_bed *nvme = *state;

    nvme_tcp_serve(nvme->tcp, false);
    bed_pass(nvme->bed, UINT64_C(1000000));
    assert_int_equal(nvme_tcp_usage(nvme->tcp).connections, 0);
    bed_free(nvme->bed);
    fake_free(nvme->fake);
    free(nvme->tcp);
    free(nvme->requests);
    free(nvme);
    return 0;
}

TEST_FIXTURE(setup, teardown)

/* @return whether the drive accepts it; otherwise it has refused */
static bool peer_connects(struct nvme_bed *nvme, uint16_t port)
{
    struct host *peer = nvme->bed->peer;
    unsigned int established = peer->established_count;
    unsigned int ended = peer->ended_count;

    (void)bed_connect(nvme->bed, port, (uint16_t)(FROM + ended), HOST_MANUAL);
    bed_pass(nvme->bed, 100000);
    assert_int_equal(
        peer->established_count - established + peer->ended_count - ended, 1);
    return peer->established_count != established;
}

static void test_the_storage_is_served_at_configured_addresses(void **state)
{
    struct nvme_bed *nvme = *state;

    assert_true(peer_connects(nvme, NVME_SOCKET_PORT));
    assert_int_equal(nvme_tcp_usage(nvme->tcp).connections, 1);
    assert_int_equal(get_le16(nvme->tcb + TOE_TCB_VLAN), 0xffff);
    assert_int_equal(nvme->tcb[TOE_TCB_PORT], 0);
}

/* The ports' own link-local addresses are for control traffic. */
static void test_other_addresses_refuse(void **state)
{
    struct nvme_bed *nvme = *state;

    nvme->laddr = NVMF_MAX_ADDRESSES;
    assert_false(peer_connects(nvme, NVME_SOCKET_PORT));
    assert_false(peer_connects(nvme, NVME_SOCKET_DISCOVERY_PORT));
    assert_int_equal(nvme_tcp_usage(nvme->tcp).connections, 0);
}
