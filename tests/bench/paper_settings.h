/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a run of native_paper assumes: the array, the length of the run, and the
 * constants of a profile in tools/essd/bench/paper_profiles, which have the
 * same names there.
 */
#ifndef ESSD_TESTS_BENCH_PAPER_SETTINGS_H
#define ESSD_TESTS_BENCH_PAPER_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "hw-model/nand/nand_profile.h"

struct paper_settings {
    /* The same for a whole run. */
    uint64_t seed;
    uint64_t mtu_bytes;
    uint64_t channels;
    uint64_t dies; /* of a channel */
    uint64_t blocks;
    uint64_t wordlines;
    uint64_t spare_percent;
    uint64_t overwrites_percent;   /* of the capacity, before random rows */
    uint64_t overwrites_take_time; /* 1: everything does, and a line is written
                                    * about each fortieth of them */
    uint64_t is_direct; /* 1: what prepares the flash is done by the translation
                         * layer alone (tests/bench/direct.h) */
    uint64_t ports;     /* 1 or 2; hosts use them in turns, and if there is only
                         * one host, it has a path through each */
    uint64_t warm_us;   /* of each row, before it is measured */
    uint64_t measure_us;

    uint64_t rows;  /* that are measured, a bit for each, in their order; 0: the
                     * white paper's four */
    uint64_t hosts; /* each with 63 commands outstanding; 1 to 4 */

    /* Constants; 0 in the first group: the resource takes no time. */
    uint64_t port_mbps;
    uint64_t hart_mips;
    uint64_t harts;       /* 1 to STAGE_HARTS */
    uint64_t handover_ns; /* until a stage's state is at another hart */
    uint64_t message_ns;  /* the same of a message */
    uint64_t channel_mbps;
    uint64_t fifo_bytes;
    uint64_t cable_ns;
    uint64_t switch_ns;
    uint64_t rnic_ns;
    uint64_t dma_mbps; /* of the bus of the RNIC, in each direction */
    uint64_t dma_ns;
    uint64_t memory_mbps;
    uint64_t memory_ns;
    uint64_t read_lower_ns;
    uint64_t read_middle_ns;
    uint64_t read_upper_ns;
    uint64_t program_ns;
    uint64_t erase_ns; /* of a block with all of the part's wordlines */
    uint64_t command_ns;
    uint64_t suspend_ns;
    uint64_t resume_ns;
    uint64_t read_copy_ns;
    uint64_t program_copy_ns;
    uint64_t decode_ns;
    uint64_t queues_programs; /* 1: NAND_GEOMETRY2.QUEUES */
};

/** Take NAME=NUMBER. @return false when it is no setting */
bool paper_set(struct paper_settings *settings, const char *text);

/** The part with the times of the settings. */
void paper_part(struct nand_profile *part,
                const struct paper_settings *settings);

#endif
