/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the native tests have in common: a drive and a host on two cables, and
 * blocking reads and writes with data that can be told apart.
 */
#ifndef ESSD_TEST_NATIVE_BED_H
#define ESSD_TEST_NATIVE_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "firmware/native/native.h"

enum {
    BED_MEDIUM_BYTES = 8 * 1024 * 1024,
    BED_BLOCK = 512,
    BED_NSID = 1,
};

struct bed {
    struct native_world world;
    struct medium medium;
    struct cable cables[SOC_PORTS];
    struct native_drive *drive;
    struct native_host *host;
    uint16_t mtu_bytes;
    uint16_t vlan; /* of all addresses; 0: none */
    uint8_t priority;
    bool has_roce_v1; /* the drive */
    uint32_t generation;
    struct usage usage; /* what the drive's flash keeps of it */
    struct error_records errors;
    enum config_lag lag; /* of both ends */
    bool has_echo;
    bool has_dhcp; /* port 0 of the drive; nobody answers */
};

/* Everything powered and cabled, nothing connected. */
void bed_init(struct bed *bed, uint16_t mtu_bytes);
/* The same, and both ends make one of their ports. */
void bed_init_lag(struct bed *bed, uint16_t mtu_bytes, enum config_lag lag);

/* The same, with the diagnostic echo service. */
void bed_init_echo(struct bed *bed, uint16_t mtu_bytes, bool has_echo);

/* As `like` says: its mtu_bytes, vlan, priority, has_roce_v1, has_dhcp. */
void bed_init_like(struct bed *bed, const struct bed *like);
void bed_end(struct bed *bed);

/* The power goes and comes back; the host does not notice. */
void bed_power_cycle(struct bed *bed);

/* Connect through local address `local` (0, 1: IPv4; 2, 3: IPv6). */
void bed_connect(struct bed *bed, uint8_t local, uint16_t io_queues,
                 uint16_t depth);

/* The bytes that block `lba` gets in version `version`. */
void bed_fill(uint8_t *data, uint64_t lba, uint32_t blocks, uint32_t version);

/* One command on queue `qid`, data at the start of the host's area. */
uint16_t bed_write(struct bed *bed, uint16_t qid, uint64_t lba, uint32_t blocks,
                   enum host_data kind, bool fua, uint32_t version);
uint16_t bed_read(struct bed *bed, uint16_t qid, uint64_t lba, uint32_t blocks,
                  enum host_data kind);
uint16_t bed_flush(struct bed *bed, uint16_t qid);

/* Read and compare. */
void bed_expect(struct bed *bed, uint16_t qid, uint64_t lba, uint32_t blocks,
                enum host_data kind, uint32_t version);

/* Nothing of a connection is left in the drive. */
void bed_expect_idle(struct bed *bed);

#endif
