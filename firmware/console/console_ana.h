/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ANA states as the console and the management channel name them.  Ports have
 * the numbers 0 and 1 here, as everywhere outside of NVMe.
 */
#ifndef ESSD_CONSOLE_CONSOLE_ANA_H
#define ESSD_CONSOLE_CONSOLE_ANA_H

#include "firmware/hal/log.h"
#include "nvmeof/target/ana.h"

#define ANA_WISH_ALL UINT64_MAX

struct ana_wish {
    const char *state;
    uint64_t group; /* or ANA_WISH_ALL */
    uint64_t port;  /* or ANA_WISH_ALL */
    uint64_t transition_ms;
};

/**
 * Set the state of groups at ports, and log it.  If one of them cannot be set,
 * none is.
 *
 * @param now_us  the time of the main loop's turn
 * @return NULL, or why it was refused
 */
const char *ana_text_set(struct log *log, struct nvmf_target *target,
                         const struct ana_wish *wish, uint64_t now_us);

/**
 * The console's `ana` command.
 *
 * @param words   "ana" and its arguments
 * @param now_us  the time of the main loop's turn
 */
void console_ana(struct log *log, struct nvmf_target *target, char **words,
                 unsigned int count, uint64_t now_us);

#endif
