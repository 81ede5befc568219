/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target of AoE with a fake target of NVMe-oF, and ports that keep what is
 * sent.  The tests send and expect bytes, without the Ethernet header.
 */
#ifndef TESTS_NVMEOF_AOE_WORLD_H
#define TESTS_NVMEOF_AOE_WORLD_H

#include "nvmeof/aoe/aoe_state.h"
#include "tests/unit/nvmeof/target/fake.h"

enum {
    WORLD_FRAMES = 512,
    WORLD_FRAME_LEN = 9000,
    WORLD_SHELF = 1, /* as in the capture of vblade */
};

struct world_frame {
    struct aoe_station to;
    size_t len;
    uint8_t data[WORLD_FRAME_LEN];
};

struct world {
    struct fake *fake;
    struct aoe *aoe;
    struct nvmf_binding binding;
    struct aoe_config config;
    void *memory, *requests;
    unsigned int room; /* frames that the ports take before they are full */
    bool is_full[AOE_PORTS]; /* it takes none */
    bool no_link[AOE_PORTS]; /* it takes none, and its cable is pulled */
    unsigned int sent;
    struct world_frame frames[WORLD_FRAMES];
    uint8_t begun[WORLD_FRAME_LEN];
    unsigned int connected; /* calls of config.connected() */
};

/** A world whose target is not connected yet. */
struct world *world_new(void);
/** The same with this fake, which is not initialised yet. */
struct world *world_new_with(struct fake *fake);
void world_free(struct world *world);
int world_setup(void **state); /* makes one, and connects the target */
int world_teardown(void **state);

/** Run until nothing changes. */
void world_run(struct world *world);

/** Send a frame from station number `from` at a port, and run. */
void world_send(struct world *world, uint8_t port, uint8_t from,
                const void *bytes, size_t len);
/** The same without running. */
void world_give(struct world *world, uint8_t port, uint8_t from,
                const void *bytes, size_t len);

/** The oldest frame that was sent, which is taken.  NULL: none */
const struct world_frame *world_take(struct world *world);

/** Expect that one frame was sent, with these bytes at its beginning. */
void world_expect(struct world *world, const void *bytes, size_t len);
void world_expect_silence(struct world *world);

/** Bytes of an ATA command to a device.  @return their length */
size_t world_ata(uint8_t *buf, uint8_t minor, uint32_t tag, uint8_t command,
                 uint64_t lba, uint8_t count, const uint8_t *data);

#endif
