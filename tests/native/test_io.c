/* SPDX-License-Identifier: BSD-2-Clause */
/* Data in every way that it can be transferred: sizes, descriptors, queues,
 * ports, MTUs. */
#include "bed.h"

#include <string.h>

/* Numbers of blocks of 512 bytes: one, odd numbers, a page and its neighbours,
 * a buffer and its neighbours, the maximum. */
static const uint32_t sizes[] = {1,  2,  3,   5,   7,   8,   9,   15,  16,  17,
                                 63, 64, 127, 128, 255, 256, 257, 999, 2048};

static struct bed bed;

static void test_io_of_every_size_with_every_descriptor(void **state)
{
    static const uint16_t mtus[] = {1500, 1280, 5000, 9000};
    static const enum host_data kinds[] = {HOST_DATA_KEYED,
                                           HOST_DATA_INVALIDATE};

    (void)state;
    for (unsigned int m = 0; m < ARRAY_LEN(mtus); m++) {
        uint64_t lba = 1000;
        uint32_t version = 10 * m;

        bed_init(&bed, mtus[m]);
        bed_connect(&bed, 0, 1, 64);
        for (unsigned int i = 0; i < ARRAY_LEN(sizes); i++) {
            for (unsigned int k = 0; k < ARRAY_LEN(kinds); k++) {
                version++;
                assert_int_equal(
                    bed_write(&bed, 1, lba, sizes[i], kinds[k], false, version),
                    0);
                bed_expect(&bed, 1, lba, sizes[i], kinds[k], version);
                bed_expect(&bed, 1, lba, sizes[i], kinds[1 - k], version);
                lba += sizes[i];
            }
        }
        host_disconnect(&bed.host->host);
        bed_expect_idle(&bed);
        bed_end(&bed);
    }
}

static void test_writes_with_data_in_the_capsule(void **state)
{
    (void)state;
    bed_init(&bed, 1500);
    bed_connect(&bed, 0, 1, 64);
    for (uint32_t blocks = 1; blocks <= 8; blocks++) {
        assert_int_equal(bed_write(&bed, 1, 100 * blocks, blocks,
                                   HOST_DATA_IN_CAPSULE, false, blocks),
                         0);
        bed_expect(&bed, 1, 100 * blocks, blocks, HOST_DATA_KEYED, blocks);
    }
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
    bed_end(&bed);
}

static void test_io_through_every_address_of_both_ports(void **state)
{
    (void)state;
    bed_init(&bed, 1500);
    for (uint8_t local = 0; local < 4; local++) {
        bed_connect(&bed, local, 1, 64);
        assert_int_equal(
            bed_write(&bed, 1, 10u * local, 9, HOST_DATA_KEYED, false, local),
            0);
        bed_expect(&bed, 1, 10u * local, 9, HOST_DATA_KEYED, local);
        host_disconnect(&bed.host->host);
        bed_expect_idle(&bed);
    }
    /* Data written through one address is read through the others. */
    bed_connect(&bed, 3, 1, 64);
    for (uint8_t local = 0; local < 4; local++) {
        bed_expect(&bed, 1, 10u * local, 9, HOST_DATA_KEYED, local);
    }
    host_disconnect(&bed.host->host);
    bed_end(&bed);
}

/* ---- Many commands at once. */

enum { WAYS = 64, STRIDE = 8192 };

struct way {
    struct load *load;
    uint32_t slot; /* Where the command's data is in the host's area. */
    uint64_t lba;
    uint32_t key;
    bool is_read;
};

struct load {
    uint16_t queues;
    uint32_t left; /* Commands that remain to be started. */
    uint32_t running;
    uint32_t started;
    uint32_t errors;
    uint32_t version;
    bool reads;
    struct way ways[8 * WAYS];
    uint32_t free_ways[8 * WAYS];
    uint32_t free_count;
};

static void load_done(void *ctx, const struct host_result *result)
{
    struct way *way = ctx;
    struct load *load = way->load;
    uint8_t expected[STRIDE];

    load->running--;
    load->free_ways[load->free_count++] = (uint32_t)(way - load->ways);
    if (result->is_lost || result->cqe.status != 0) {
        load->errors++;
        return;
    }
    if (way->is_read) {
        bed_fill(expected, way->lba, STRIDE / BED_BLOCK, load->version);
        if (memcmp(bed.host->data + way->slot * STRIDE, expected, STRIDE) !=
            0) {
            load->errors++;
        }
    }
}

/* Start as many commands as fit. */
static bool load_is_done(void *ctx)
{
    struct load *load = ctx;

    while (load->left != 0 && load->free_count != 0) {
        uint32_t index = load->free_ways[load->free_count - 1];
        struct way *way = &load->ways[index];
        struct host_io io = {
            .qid = (uint16_t)(1 + load->started % load->queues),
            .opcode = load->reads ? NVM_READ : NVM_WRITE,
            .kind = HOST_DATA_KEYED,
            .nsid = BED_NSID,
            .lba = (uint64_t)load->started * (STRIDE / BED_BLOCK),
            .blocks = STRIDE / BED_BLOCK,
            .offset = index * STRIDE,
            .len_bytes = STRIDE,
            .done = load_done,
            .ctx = way,
        };

        *way = (struct way){load, index, io.lba, 0, load->reads};
        if (load->reads) {
            memset(bed.host->data + io.offset, 0, STRIDE);
        } else {
            bed_fill(bed.host->data + io.offset, io.lba, io.blocks,
                     load->version);
        }
        if (!host_io_submit(&bed.host->host, &io)) {
            break;
        }
        load->free_count--;
        load->left--;
        load->started++;
        load->running++;
    }
    verbs_flush(&bed.host->net.verbs);
    return load->left == 0 && load->running == 0;
}

static void run_load(uint16_t queues, uint32_t commands, uint32_t version,
                     bool reads)
{
    static struct load load;

    load = (struct load){
        .queues = queues,
        .left = commands,
        .version = version,
        .reads = reads,
    };
    for (uint32_t i = 0; i < ARRAY_LEN(load.ways); i++) {
        load.free_ways[load.free_count++] = i;
    }
    bed.host->sleep.is_asleep = false;
    assert_true(native_world_run(&bed.world, load_is_done, &load,
                                 UINT64_C(60000000000)));
    assert_int_equal(load.errors, 0);
}

static void test_io_works_on_deep_queues(void **state)
{
    static const uint16_t queues[] = {1, 2, 8};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(queues); i++) {
        bed_init(&bed, 9000);
        bed_connect(&bed, 0, queues[i], 64);
        run_load(queues[i], 1000, i, false);
        run_load(queues[i], 1000, i, true);
        host_disconnect(&bed.host->host);
        bed_expect_idle(&bed);
        bed_end(&bed);
    }
}

static void test_io_at_the_end_of_the_namespace(void **state)
{
    const uint64_t blocks = BED_MEDIUM_BYTES / BED_BLOCK;

    (void)state;
    bed_init(&bed, 1500);
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(
        bed_write(&bed, 1, blocks - 1, 1, HOST_DATA_KEYED, false, 1), 0);
    bed_expect(&bed, 1, blocks - 1, 1, HOST_DATA_KEYED, 1);
    assert_int_equal(
        bed_write(&bed, 1, blocks - 1, 2, HOST_DATA_KEYED, false, 2) &
            NVME_SC_MASK,
        NVME_SC_LBA_RANGE);
    assert_int_equal(bed_read(&bed, 1, UINT64_MAX, 1, HOST_DATA_KEYED) &
                         NVME_SC_MASK,
                     NVME_SC_LBA_RANGE);
    bed_expect(&bed, 1, blocks - 1, 1, HOST_DATA_KEYED, 1);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
    bed_end(&bed);
}
