/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A machine of which only the NAND controller is used: through its driver, with
 * an array whose storage is memory.
 */
#ifndef ESSD_TEST_NATIVE_NAND_BED_H
#define ESSD_TEST_NATIVE_NAND_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "firmware/drivers/nand.h"
#include "firmware/native/machine.h"

enum {
    NAND_BED_SLOTS = 64, /* commands with buffers of their own */
    NAND_BED_COMMANDS = 64,
    NAND_BED_DONE = 512,
};

/* The entries and buffers of one command. */
struct nand_bed_slot {
    uint8_t *list;
    uint8_t *data; /* NAND_READ_ENTRIES_MAX times NAND_DATA_LEN */
    uint8_t *meta;
};

struct nand_bed_config {
    const char *profile;
    uint8_t channels;
    uint8_t dies;       /* of a channel */
    uint16_t blocks;    /* of a plane */
    uint16_t wordlines; /* of a block */
    bool is_realtime;
};

struct nand_bed {
    struct nand_bed_config config;
    struct native_world world;
    struct machine machine;
    struct nand_ram flash;
    struct nand nand;
    struct nand_info info;
    struct nand_bed_slot slots[NAND_BED_SLOTS];
    /* Completions, in their order; the cookie is the slot. */
    struct nand_done done[NAND_BED_DONE];
    unsigned int num_done;
};

/* What a command is about: all planes in the mask have the same block. */
struct nand_bed_place {
    uint8_t channel;
    uint8_t die;
    uint8_t planes;
    uint16_t block;
    uint16_t wordline;
    bool slc;
};

void nand_bed_init(struct nand_bed *bed, const struct nand_bed_config *config);
void nand_bed_end(struct nand_bed *bed);

/*
 * Cut the power, and switch it on again with the same array.  The seed decides
 * what is left of requests to storage that are in progress.
 */
void nand_bed_power_cycle(struct nand_bed *bed, uint64_t seed);

/* Reset the controller and set the driver up again. */
void nand_bed_reset(struct nand_bed *bed);

/* Post a command with the slot's buffers; nand_kick() starts it. */
void nand_bed_erase(struct nand_bed *bed, unsigned int slot,
                    const struct nand_bed_place *place);
/* The data is that of nand_bed_fill() with `version`. */
void nand_bed_program(struct nand_bed *bed, unsigned int slot,
                      const struct nand_bed_place *place, uint32_t version);
/* Read `count` units of each plane, from page 0, unit 0 on. */
void nand_bed_read(struct nand_bed *bed, unsigned int slot,
                   const struct nand_bed_place *place, unsigned int count,
                   bool urgent);

/* Kick, and wait until `count` more commands have completed. */
void nand_bed_wait(struct nand_bed *bed, unsigned int count);

/* The same for one command. @return its completion */
const struct nand_done *nand_bed_wait_one(struct nand_bed *bed);

/* The completion of a slot's last command; it fails if there is none. */
const struct nand_done *nand_bed_done(const struct nand_bed *bed,
                                      unsigned int slot);

/* Units of a whole wordline. */
unsigned int nand_bed_units(const struct nand_bed *bed,
                            const struct nand_bed_place *place);

/* What entry `i` of a read of a slot says. */
struct nand_result nand_bed_result(const struct nand_bed *bed,
                                   unsigned int slot, unsigned int i);

/* Check data, metadata and system bytes of the units that were read. */
void nand_bed_expect(const struct nand_bed *bed, unsigned int slot,
                     const struct nand_bed_place *place, unsigned int count,
                     uint32_t version);

#endif
