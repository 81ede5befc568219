/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys and bounds of memory regions, and transitions of a queue pair. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "net/verbs/objects.h"

enum { KEY = 5 << 8 | 0x33, PD = 2, LEN = 100 };
#define VA   UINT64_C(0xffff888000000010)
#define DRAM UINT64_C(0x1000)

static uint8_t memory[0x2000];

/* Map DRAM from 0 to 0x2000, without a hole at its end. */
static void *map_memory(void *ctx, uint64_t addr, uint64_t len)
{
    (void)ctx;
    return addr <= sizeof(memory) && len <= sizeof(memory) - addr
               ? memory + addr
               : NULL;
}

static const struct rdma_dram dram = {.map = map_memory,
                                      .map_write = map_memory};

static struct rdma_objects *new_objects(void)
{
    struct rdma_objects *o = calloc(1, sizeof(*o));

    o->pds[PD] = (struct rdma_pd){.exists = true, .users = 1};
    o->mrs[KEY >> 8] = (struct rdma_mr){
        .exists = true,
        .access = VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_READ,
        .variant = KEY & 0xff,
        .pd = PD,
        .va = VA,
        .len_bytes = LEN,
        .dram = DRAM,
    };
    return o;
}

static void test_a_key_gives_access_to_its_region_only(void **state)
{
    static const struct {
        uint16_t pd;
        uint32_t key;
        unsigned int rights;
        uint64_t va, len;
        int32_t at; /* offset in memory; -1 if refused */
    } rows[] = {
        {PD, KEY, 0, VA, LEN, DRAM},
        {PD, KEY, 0, VA, 0, DRAM},
        {PD, KEY, 0, VA + LEN, 0, DRAM + LEN},
        {PD, KEY, 0, VA + 1, LEN - 1, DRAM + 1},
        {PD, KEY, VERBS_ACCESS_REMOTE_READ, VA, 1, DRAM},
        {PD, KEY, VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_READ, VA, 1,
         DRAM},
        {PD, KEY, VERBS_ACCESS_REMOTE_WRITE, VA, 1, -1},
        {PD, KEY, VERBS_ACCESS_REMOTE_WRITE | VERBS_ACCESS_REMOTE_READ, VA, 1,
         -1},
        {PD + 1, KEY, 0, VA, 1, -1},
        {PD, KEY ^ 1, 0, VA, 1, -1},
        {PD, KEY + 0x100, 0, VA, 1, -1},
        {PD, KEY | 1 << 30, 0, VA, 1, -1},
        {PD, KEY, 0, VA - 1, 1, -1},
        {PD, KEY, 0, VA, LEN + 1, -1},
        {PD, KEY, 0, VA + LEN, 1, -1},
        {PD, KEY, 0, VA + LEN + 1, 0, -1},
        {PD, KEY, 0, VA + 1, UINT64_MAX, -1},
        {PD, KEY, 0, 0, UINT64_MAX, -1},
        {PD, KEY, 0, UINT64_MAX, 2, -1},
    };
    struct rdma_objects *o = new_objects();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t *p = rdma_mr_map(o, &dram, rows[i].pd, rows[i].key,
                                 rows[i].rights, rows[i].va, rows[i].len);

        assert_ptr_equal(p, rows[i].at < 0 ? NULL : memory + rows[i].at);
    }
    o->mrs[KEY >> 8].dram = sizeof(memory) - 10;
    assert_null(rdma_mr_map(o, &dram, PD, KEY, 0, VA, 11));
    assert_true(rdma_mr_destroy(o, KEY >> 8));
    assert_false(rdma_mr_destroy(o, KEY >> 8));
    assert_int_equal(o->pds[PD].users, 0);
    assert_null(rdma_mr_map(o, &dram, PD, KEY, 0, VA, 1));
    free(o);
}

static void test_every_state_times_every_next_state(void **state)
{
    static const char *const may[] = {
        [VERBS_QPS_RESET] = "yy--y", [VERBS_QPS_INIT] = "y-y-y",
        [VERBS_QPS_RTR] = "y--yy",   [VERBS_QPS_RTS] = "y--yy",
        [VERBS_QPS_ERROR] = "y---y",
    };

    (void)state;
    for (unsigned int from = 0; from < 5; from++) {
        for (unsigned int to = 0; to < 6; to++) {
            bool expected = to < 5 && may[from][to] == 'y';
            struct rdma_qp qp = {.state = (uint8_t)from};

            assert_int_equal(rdma_qp_may_enter((enum verbs_qp_state)from,
                                               (enum verbs_qp_state)to),
                             expected);
            if (expected) {
                rdma_qp_enter(&qp, (enum verbs_qp_state)to);
                assert_int_equal(qp.state, to);
            }
        }
    }
    assert_false(rdma_qp_may_enter((enum verbs_qp_state)5, VERBS_QPS_RESET));
}

static void test_a_queue_pair_is_found_by_its_whole_number(void **state)
{
    struct rdma_objects *o = new_objects();

    (void)state;
    o->qps[7] = (struct rdma_qp){.exists = true, .qpn = 3 << 11 | 7};
    assert_int_equal(rdma_qp_find(o, 3 << 11 | 7), 7);
    assert_int_equal(rdma_qp_find(o, 2 << 11 | 7), -1);
    assert_int_equal(rdma_qp_find(o, 3 << 11 | 8), -1);
    assert_int_equal(rdma_qp_find(o, 0), -1);
    o->qps[1025] = (struct rdma_qp){.exists = true, .qpn = 8191u << 11 | 1025};
    assert_int_equal(rdma_qp_find(o, 8191u << 11 | 1025), 1025);
    for (uint32_t slot = RDMA_QPS; slot < 2048; slot++) {
        assert_int_equal(rdma_qp_find(o, slot), -1);
        assert_int_equal(rdma_qp_find(o, 8191u << 11 | slot), -1);
    }
    free(o);
}
