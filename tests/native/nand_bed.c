/* SPDX-License-Identifier: BSD-2-Clause */
/* A machine of which only the NAND controller is used: see nand_bed.h. */
#include "tests/native/nand_bed.h"

#include <string.h>

#include "firmware/native/nand_storage.h"
#include "lib/bytes.h"

enum { DRAM_BYTES = 64 << 20, TIMEOUT_NS = 2000000000 };

static void note_completion(void *ctx, const struct nand_done *done)
{
    struct nand_bed *bed = ctx;

    assert_in_range(bed->num_done, 0, NAND_BED_DONE - 1);
    bed->done[bed->num_done++] = *done;
}

static bool poll_driver(void *ctx)
{
    struct nand_bed *bed = ctx;

    return bed->nand.queue.page != NULL &&
           nand_poll(&bed->nand, NAND_BED_DONE, note_completion, bed) > 0;
}

static uint64_t no_deadline(void *ctx)
{
    (void)ctx;
    return NATIVE_NO_DEADLINE;
}

static void start_driver(struct nand_bed *bed)
{
    struct nand_config config = {
        .regs = native_node_regs(&bed->machine.node, SOC_NAND_BASE),
        .dram = &bed->machine.dram,
        .commands = NAND_BED_COMMANDS,
    };

    assert_int_equal(nand_init(&bed->nand, &config), INIT_OK);
    assert_true(nand_find(config.regs, &bed->info));
}

static void power_on(struct nand_bed *bed)
{
    struct machine_config config = {
        .dram_bytes = DRAM_BYTES,
        .flash = &bed->flash,
        .flash_is_realtime = bed->config.is_realtime,
        .software = {bed, poll_driver, no_deadline},
    };

    machine_init(&bed->machine, &bed->world, &config);
    bed->num_done = 0;
    start_driver(bed);
    for (unsigned int i = 0; i < NAND_BED_SLOTS; i++) {
        struct nand_bed_slot *slot = &bed->slots[i];
        size_t n = NAND_READ_ENTRIES_MAX;

        slot->list = dram_reserve(&bed->machine.dram, n * NAND_ENTRY_LEN, 64);
        slot->data = dram_reserve(&bed->machine.dram, n * NAND_DATA_LEN, 64);
        slot->meta = dram_reserve(&bed->machine.dram, n * NAND_META_LEN, 64);
        assert_non_null(slot->meta);
    }
}

void nand_bed_init(struct nand_bed *bed, const struct nand_bed_config *config)
{
    const struct nand_storage_config storage = {
        .profile = config->profile,
        .channels = config->channels,
        .dies = config->dies,
        .blocks = config->blocks,
        .wordlines = config->wordlines,
    };

    memset(bed, 0, sizeof(*bed));
    bed->config = *config;
    native_world_init(&bed->world);
    nand_storage_init(&bed->flash, &storage);
    power_on(bed);
}

void nand_bed_end(struct nand_bed *bed)
{
    machine_end(&bed->machine);
    nand_storage_end(&bed->flash);
    native_world_end(&bed->world);
}

void nand_bed_power_cycle(struct nand_bed *bed, uint64_t seed)
{
    memset(&bed->nand, 0, sizeof(bed->nand));
    nand_ram_power_cut(&bed->flash, seed);
    machine_end(&bed->machine);
    power_on(bed);
}

void nand_bed_reset(struct nand_bed *bed)
{
    memset(&bed->nand, 0, sizeof(bed->nand));
    bed->num_done = 0;
    start_driver(bed);
}

/* ---- Contents */

static void fill_unit(uint8_t *data, uint8_t *meta, uint8_t *system,
                      uint32_t version, unsigned int i)
{
    for (size_t at = 0; at < NAND_DATA_LEN; at += 8) {
        put_le64(data + at, (uint64_t)version << 32 | (i << 16) | at);
    }
    memset(meta, (int)(version + i), NAND_META_LEN);
    put_le64(system, version);
    put_le64(system + 8, i);
}

unsigned int nand_bed_units(const struct nand_bed *bed,
                            const struct nand_bed_place *place)
{
    return (unsigned int)__builtin_popcount(place->planes) * bed->info.units *
           (place->slc ? 1u : bed->info.pages);
}

/*
 * Entries are in the order of a PROGRAM: pages, planes, units.
 * @return the place of entry `i`
 */
static struct nand_place place_of(const struct nand_bed *bed,
                                  const struct nand_bed_place *place,
                                  unsigned int i)
{
    unsigned int planes = (unsigned int)__builtin_popcount(place->planes);
    unsigned int rank = i / bed->info.units % planes;
    uint8_t plane = 0;

    while (!(place->planes & BIT(plane)) || rank-- > 0) {
        plane++;
    }
    return (struct nand_place){
        .wordline = place->wordline,
        .plane = plane,
        .page = (uint8_t)(i / bed->info.units / planes),
        .unit = (uint8_t)(i % bed->info.units),
    };
}

/* ---- Commands */

static void submit_command(struct nand_bed *bed, unsigned int slot,
                           const struct nand_bed_place *place,
                           struct nand_command command)
{
    command.channel = place->channel;
    command.die = place->die;
    command.planes = place->planes;
    command.wordline = place->wordline;
    command.cookie = slot;
    command.tag = slot | (slot + 1) << NAND_TAG_CAUSE_SHIFT;
    for (unsigned int i = 0; i < NAND_PLANES_MAX; i++) {
        command.block[i] = place->block;
    }
    assert_true(nand_submit(&bed->nand, &command));
}

void nand_bed_erase(struct nand_bed *bed, unsigned int slot,
                    const struct nand_bed_place *place)
{
    submit_command(
        bed, slot, place,
        (struct nand_command){.opcode = NAND_CMD_ERASE, .slc = place->slc});
}

void nand_bed_program(struct nand_bed *bed, unsigned int slot,
                      const struct nand_bed_place *place, uint32_t version)
{
    const struct nand_bed_slot *s = &bed->slots[slot];
    unsigned int count = nand_bed_units(bed, place);

    for (unsigned int i = 0; i < count; i++) {
        uint8_t *data = s->data + (size_t)i * NAND_DATA_LEN;
        uint8_t *meta = s->meta + (size_t)i * NAND_META_LEN;
        _Alignas(8) uint8_t system[NAND_SYSTEM_LEN];

        fill_unit(data, meta, system, version, i);
        nand_entry_program(s->list + (size_t)i * NAND_ENTRY_LEN, data, meta,
                           system);
    }
    submit_command(bed, slot, place,
                   (struct nand_command){.opcode = NAND_CMD_PROGRAM,
                                         .entries = (uint16_t)count,
                                         .list = s->list});
}

void nand_bed_read(struct nand_bed *bed, unsigned int slot,
                   const struct nand_bed_place *place, unsigned int count,
                   bool urgent)
{
    const struct nand_bed_slot *s = &bed->slots[slot];

    memset(s->data, 0xa5, (size_t)count * NAND_DATA_LEN);
    memset(s->meta, 0xa5, (size_t)count * NAND_META_LEN);
    for (unsigned int i = 0; i < count; i++) {
        struct nand_place unit = place_of(bed, place, i);

        nand_entry_read(s->list + (size_t)i * NAND_ENTRY_LEN, &unit,
                        s->data + (size_t)i * NAND_DATA_LEN, 0, NAND_DATA_LEN,
                        s->meta + (size_t)i * NAND_META_LEN, false);
    }
    submit_command(bed, slot, place,
                   (struct nand_command){.opcode = NAND_CMD_READ,
                                         .urgent = urgent,
                                         .entries = (uint16_t)count,
                                         .list = s->list});
}

/* ---- Completions */

struct waiter {
    const struct nand_bed *bed;
    unsigned int count;
};

static bool has_completed(void *ctx)
{
    const struct waiter *waiter = ctx;

    return waiter->bed->num_done >= waiter->count;
}

void nand_bed_wait(struct nand_bed *bed, unsigned int count)
{
    struct waiter waiter = {bed, bed->num_done + count};

    nand_kick(&bed->nand);
    assert_true(
        native_world_run(&bed->world, has_completed, &waiter, TIMEOUT_NS));
}

const struct nand_done *nand_bed_wait_one(struct nand_bed *bed)
{
    nand_bed_wait(bed, 1);
    return &bed->done[bed->num_done - 1];
}

const struct nand_done *nand_bed_done(const struct nand_bed *bed,
                                      unsigned int slot)
{
    for (unsigned int i = bed->num_done; i-- > 0;) {
        if (bed->done[i].cookie == slot) {
            return &bed->done[i];
        }
    }
    fail_msg("slot %u has no completion", slot);
    return NULL;
}

struct nand_result nand_bed_result(const struct nand_bed *bed,
                                   unsigned int slot, unsigned int i)
{
    struct nand_result result;

    nand_entry_result(bed->slots[slot].list + (size_t)i * NAND_ENTRY_LEN,
                      &result);
    return result;
}

void nand_bed_expect(const struct nand_bed *bed, unsigned int slot,
                     const struct nand_bed_place *place, unsigned int count,
                     uint32_t version)
{
    const struct nand_bed_slot *s = &bed->slots[slot];

    (void)place;
    for (unsigned int i = 0; i < count; i++) {
        uint8_t data[NAND_DATA_LEN], meta[NAND_META_LEN];
        uint8_t system[NAND_SYSTEM_LEN];
        struct nand_result result = nand_bed_result(bed, slot, i);

        fill_unit(data, meta, system, version, i);
        assert_int_equal(result.status, NAND_CQE_OK);
        assert_memory_equal(s->data + (size_t)i * NAND_DATA_LEN, data,
                            sizeof(data));
        assert_memory_equal(s->meta + (size_t)i * NAND_META_LEN, meta,
                            sizeof(meta));
        assert_memory_equal(result.system, system, sizeof(system));
    }
}
