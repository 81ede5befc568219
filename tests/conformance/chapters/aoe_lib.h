/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of ATA over Ethernet have in common. */
#ifndef ESSD_CONFORM_AOE_LIB_H
#define ESSD_CONFORM_AOE_LIB_H

#include "net_lib.h"

enum {
    AOE_AT = 14, /* where AoE begins in a frame: after the Ethernet header */
    AOE_SECTOR = 512,
    AOE_FRAME_MIN = 60,
};

/** Export namespace 1 in shelf 1, as slot 0: the drive restarts. */
void aoe_start(struct conf *conf);

/** Undo that, unless the drive is gone with the test. */
void aoe_finish(struct conf *conf);

/** Send these bytes, and data after them, from a MAC address at port 0. */
void aoe_send(struct conf *conf, const uint8_t *mac, const uint8_t *bytes,
              size_t len, const uint8_t *data, size_t data_len);

/** A conf_match: an answer of AoE at port 0. */
bool aoe_is_answer(const struct packet *packet, const void *ctx);

#endif
