/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A loopback transport in the drive of a bed: its hosts run inside the drive's
 * loop, beside the RDMA hosts at the other end of the cables.
 */
#ifndef ESSD_TEST_NATIVE_LOOP_BED_H
#define ESSD_TEST_NATIVE_LOOP_BED_H

#include "bed.h"
#include "nvmeof/loopback/loopback_host.h"

enum {
    LOOP_PORTID = 99,
    LOOP_QUEUES = 160,
    LOOP_BUSY = 4, /* How many commands loop_traffic keeps outstanding. */
    LOOP_BUSY_BLOCKS = 16,
};

/*
 * Endless writes and reads on one I/O queue: each range of blocks is written
 * and read back, and the data is compared.
 */
struct loop_traffic {
    struct loopback_host *host;
    uint16_t qid;
    uint64_t first_lba;
    uint32_t version;
    /* Between bursts of LOOP_BUSY commands; 0: no pause. */
    uint64_t interval_us;
    uint64_t next_us;
    bool is_on;
    bool is_reading[LOOP_BUSY];
    bool is_under_way[LOOP_BUSY];
    unsigned int done;
    uint8_t data[LOOP_BUSY][LOOP_BUSY_BLOCKS * BED_BLOCK];
};

struct loop_bed {
    struct bed *bed;
    struct loopback loopback;
    struct loopback_queue *queues;
    void *requests;
    struct loop_traffic traffic;
};

void loop_bed_init(struct loop_bed *loop, struct bed *bed);
void loop_bed_end(struct loop_bed *loop);

/* A host that is not connected yet; `number` distinguishes it from others. */
void loop_host_init(struct loop_bed *loop, struct loopback_host *host,
                    uint8_t number);

/* Close all queues of a host. */
void loop_host_disconnect(struct loop_bed *loop, struct loopback_host *host);

/* Write version `version` of one block, or read it and compare. */
void loop_write(struct loopback_host *host, uint16_t qid, uint64_t lba,
                uint32_t version);
void loop_expect(struct loopback_host *host, uint16_t qid, uint64_t lba,
                 uint32_t version);

/* Start the traffic on a queue of a host. */
void loop_traffic_start(struct loop_bed *loop, struct loopback_host *host,
                        uint16_t qid, uint64_t first_lba);

/* Stop the traffic, and wait for outstanding commands. */
void loop_traffic_stop(struct loop_bed *loop);

#endif
