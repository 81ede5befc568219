/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes in progress at a reset or a loss of power: see write_slots.h. */
#include "write_slots.h"

#include <string.h>

#include "lib/random.h"
#include "nvmeof/wire/opcode.h"

enum {
    SLOT_BLOCKS = 20, /* two units and parts of two others */
    SLOT_STRIDE = 40,
    SLOT_FIRST = 5,
};

void write_slots_init(struct write_slots *slots, struct bed *bed)
{
    *slots = (struct write_slots){.bed = bed};
    for (uint32_t i = 0; i < WRITE_SLOTS; i++) {
        slots->slot[i] = (struct write_slot){
            .slots = slots,
            .lba = (uint64_t)i * SLOT_STRIDE + SLOT_FIRST,
            .offset = i * SLOT_BLOCKS * BED_BLOCK,
        };
    }
}

static void write_done(void *ctx, const struct host_result *result)
{
    struct write_slot *slot = ctx;

    slot->is_busy = false;
    if (!result->is_lost && result->cqe.status == 0) {
        slot->acknowledged = slot->version;
    }
}

static void start_write(struct write_slot *slot)
{
    struct native_host *host = slot->slots->bed->host;

    slot->version++;
    slot->is_busy = true;
    bed_fill(host->data + slot->offset, slot->lba, SLOT_BLOCKS, slot->version);
    assert_true(
        host_io_submit(&host->host, &(struct host_io){
                                        .qid = 1,
                                        .opcode = NVM_WRITE,
                                        .kind = HOST_DATA_KEYED,
                                        .nsid = BED_NSID,
                                        .lba = slot->lba,
                                        .blocks = SLOT_BLOCKS,
                                        .offset = slot->offset,
                                        .len_bytes = SLOT_BLOCKS * BED_BLOCK,
                                        .done = write_done,
                                        .ctx = slot,
                                    }));
}

void write_slots_use(struct write_slots *slots, uint64_t *random)
{
    uint64_t turns = 200 + random_next(random) % 3000;

    while (turns-- != 0) {
        struct write_slot *slot =
            &slots->slot[random_next(random) % WRITE_SLOTS];

        if (!slot->is_busy) {
            start_write(slot);
        }
        if (!native_world_step(&slots->bed->world)) {
            native_world_pass(&slots->bed->world, 1000);
        }
    }
}

static bool has_version(const struct write_slot *slot, uint32_t block,
                        uint32_t version)
{
    uint8_t expected[SLOT_BLOCKS * BED_BLOCK] = {0};

    if (version != 0) {
        bed_fill(expected, slot->lba, SLOT_BLOCKS, version);
    }
    return memcmp(slot->slots->bed->host->data + (size_t)block * BED_BLOCK,
                  expected + (size_t)block * BED_BLOCK, BED_BLOCK) == 0;
}

static void check_slot(struct write_slot *slot)
{
    struct bed *bed = slot->slots->bed;

    assert_int_equal(bed_read(bed, 1, slot->lba, SLOT_BLOCKS, HOST_DATA_KEYED),
                     0);
    for (uint32_t i = 0; i < SLOT_BLOCKS; i++) {
        if (!has_version(slot, i, slot->acknowledged) &&
            !has_version(slot, i, slot->version)) {
            fail_msg("block %lu has lost version %u",
                     (unsigned long)slot->lba + i, slot->acknowledged);
        }
    }
    slot->is_busy = false;
    slot->acknowledged = ++slot->version;
    assert_int_equal(bed_write(bed, 1, slot->lba, SLOT_BLOCKS, HOST_DATA_KEYED,
                               false, slot->version),
                     0);
}

uint32_t write_slots_check(struct write_slots *slots)
{
    uint32_t acknowledged = 0;

    for (uint32_t i = 0; i < WRITE_SLOTS; i++) {
        check_slot(&slots->slot[i]);
        acknowledged += slots->slot[i].acknowledged;
    }
    return acknowledged;
}
