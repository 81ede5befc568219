/* SPDX-License-Identifier: BSD-2-Clause */
#include "aoe_world.h"

#include <stdlib.h>
#include <string.h>

static uint8_t *world_begin(void *ctx, const struct aoe_station *to)
{
    struct world *world = ctx;

    if (world->room == 0 || world->is_full[to->port] ||
        world->no_link[to->port]) {
        return NULL;
    }
    memset(world->begun, 0xa5, sizeof(world->begun));
    return world->begun;
}

static void world_commit(void *ctx, const struct aoe_station *to, size_t len)
{
    struct world *world = ctx;
    struct world_frame *frame = &world->frames[world->sent++];

    assert_in_range(world->sent, 1, WORLD_FRAMES - 1);
    assert_in_range(len, AOE_HEADER_LEN, world->config.mtu_bytes[to->port]);
    world->room--;
    frame->to = *to;
    frame->len = len;
    memcpy(frame->data, world->begun, len);
}

static bool world_has_link(void *ctx, uint8_t port)
{
    return !((struct world *)ctx)->no_link[port];
}

static void world_connected(void *ctx)
{
    ((struct world *)ctx)->connected++;
}

struct world *world_new(void)
{
    return world_new_with(fake_new());
}

struct world *world_new_with(struct fake *fake)
{
    struct world *world = calloc(1, sizeof(*world));

    world->fake = fake;
    fake_start(world->fake);
    world->aoe = malloc(aoe_bytes());
    world->memory = aligned_alloc(4096, AOE_MEMORY_BYTES);
    world->requests = malloc(aoe_request_bytes());
    world->room = WORLD_FRAMES;
    world->config = (struct aoe_config){
        .target = world->fake->target,
        .ports = {world, world_begin, world_commit, world_has_link},
        .mtu_bytes = {1500, 9000},
        .shelf = WORLD_SHELF,
        .exports = {0x3},
        .portid = 0xfff0,
        .memory = world->memory,
        .requests = world->requests,
        .hostid = {1, 2, 3},
        .connected = world_connected,
        .connected_ctx = world,
    };
    aoe_init(world->aoe, &world->config, world->fake->now_us);
    world->binding = aoe_binding(world->aoe);
    return world;
}

void world_free(struct world *world)
{
    fake_free(world->fake);
    free(world->aoe);
    free(world->memory);
    free(world->requests);
    free(world);
}

int world_setup(void **state)
{
    struct world *world = world_new();

    *state = world;
    world_run(world);
    assert_int_equal(world->aoe->host_state, AOE_HOST_LIVE);
    return 0;
}

int world_teardown(void **state)
{
    world_free(*state);
    return 0;
}

void world_run(struct world *world)
{
    const struct nvmf_binding *binding = &world->binding;
    bool is_busy = true;

    while (is_busy) {
        binding->ops->tick(binding->ctx, world->fake->now_us);
        fake_run(world->fake);
        is_busy = binding->ops->step(binding->ctx);
    }
}

void world_give(struct world *world, uint8_t port, uint8_t from,
                const void *bytes, size_t len)
{
    const struct aoe_station station = {
        .mac = {0x02, 0, 0, 0, 0, from}, .vlan = 0xffff, .port = port};

    aoe_receive(world->aoe, &station, bytes, len, world->fake->now_us);
}

void world_send(struct world *world, uint8_t port, uint8_t from,
                const void *bytes, size_t len)
{
    world_give(world, port, from, bytes, len);
    world_run(world);
}

const struct world_frame *world_take(struct world *world)
{
    static struct world_frame taken;

    if (world->sent == 0) {
        return NULL;
    }
    taken = world->frames[0];
    world->sent--;
    memmove(world->frames, world->frames + 1,
            world->sent * sizeof(world->frames[0]));
    return &taken;
}

void world_expect(struct world *world, const void *bytes, size_t len)
{
    const struct world_frame *frame = world_take(world);

    assert_non_null(frame);
    assert_in_range(len, 0, frame->len);
    assert_memory_equal(frame->data, bytes, len);
    world_expect_silence(world);
}

void world_expect_silence(struct world *world)
{
    assert_int_equal(world->sent, 0);
}

size_t world_ata(uint8_t *buf, uint8_t minor, uint32_t tag, uint8_t command,
                 uint64_t lba, uint8_t count, const uint8_t *data)
{
    const struct aoe_header header = {
        .version = 1, .major = WORLD_SHELF, .minor = minor, .tag = tag};
    const struct aoe_ata ata = {
        .is_lba48 = command == 0x24 || command == 0x34,
        .is_write = data != NULL,
        .count = count,
        .command = command,
        .lba = lba,
    };
    size_t len = AOE_HEADER_LEN + AOE_ATA_LEN;

    aoe_header_emit(buf, &header);
    aoe_ata_emit(buf + AOE_HEADER_LEN, &ata);
    if (data != NULL) {
        memcpy(buf + len, data, count * (size_t)AOE_SECTOR_LEN);
        len += count * (size_t)AOE_SECTOR_LEN;
    }
    return len;
}
