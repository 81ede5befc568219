/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drive's hart is held back at random moments, as on a busy computer: many
 * commands arrive, and many responses are acknowledged, before it looks again.
 * A host that keeps within its queue depth always finds a receive buffer.
 * bed_end() checks that the drive has sent no RNR NAK.
 */
#include "bed_fixture.h"

#include <stdlib.h>

#include "lib/bytes.h"
#include "net/wire/bth.h"
#include "net/wire/eth.h"
#include "net/wire/ipv4.h"
#include "net/wire/roce_opcode.h"
#include "net/wire/udp.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
#include "tests/test_fixture.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
    CTRLS = 2, /* one through each port */
    NAMESPACES = 128,
    NS_BYTES = 1 << 20,
    DATA_LEN = 4096,
    QUEUES = 8,
    OPCODE_AT = ETH_LEN + IPV4_LEN + UDP_LEN + BTH_OPCODE,
    ASKED_NS_CHANGES = 1 << 8, /* of FEATURE_ASYNC_EVENT_CONFIG */
};

static const struct bed many_bed = {
    .mtu_bytes = 1500,
    .plan = &(const struct volume_plan){.count = 1, .size_mib = 1},
    .medium_bytes = (NAMESPACES + 2) * (uint64_t)NS_BYTES,
};

/* ---- A host that scans namespaces as Linux does. */

struct scan_host;

/* One entry of an admin queue's SQ, with its own memory for data. */
struct scan_slot {
    struct scan_host *scan;
    uint8_t *data;
    uint32_t offset; /* of `data` in the host's memory */
    uint32_t nsid;
    bool is_busy;
    void (*done)(struct scan_slot *slot, const struct nvme_cqe *cqe);
};

struct scan_host {
    struct nvme_host *host;
    struct scan_slot slot[NVMF_ADMIN_DEPTH];
    uint32_t busy;        /* slots in use, without that of the AER */
    uint32_t events;      /* AERs that were answered */
    uint32_t scans, most; /* most: largest number of busy slots */
    bool has_changed;     /* since the last scan began */
    bool is_listing;      /* a scan reads the list */
    uint32_t count, next; /* namespaces of the current scan */
    uint32_t nsid[NAMESPACES];
};

static void slot_done(void *ctx, const struct host_result *result)
{
    struct scan_slot *slot = ctx;

    assert_false(result->is_lost);
    slot->is_busy = false;
    slot->scan->busy--;
    slot->done(slot, &result->cqe);
}

/* @return false when the queue is full */
static bool slot_submit(struct scan_host *scan, const struct nvme_sqe *sqe,
                        uint32_t len,
                        void (*done)(struct scan_slot *slot,
                                     const struct nvme_cqe *cqe),
                        const void *data)
{
    struct scan_slot *slot = scan->slot;
    struct host_command command = {
        .sqe = *sqe, .sgl = {.kind = SGL_KEYED}, .done = slot_done};

    while (slot->is_busy) {
        slot++;
    }
    if (len != 0) {
        command.sgl = (struct sgl){
            .kind = SGL_KEYED,
            .address = scan->host->config.data_addr + slot->offset,
            .len_bytes = len,
            .key = scan->host->data_key,
        };
    }
    if (data != NULL) {
        memcpy(slot->data, data, len);
    }
    command.ctx = slot;
    if (!host_queue_submit(&scan->host->conn[0].queue, &command)) {
        return false;
    }
    slot->is_busy = true;
    slot->nsid = sqe->nsid;
    slot->done = done;
    scan->busy++;
    scan->most = MAX(scan->most, scan->busy);
    return true;
}

static void ask_for_event(struct scan_host *scan);
static void scan_more(struct scan_host *scan);

static void log_read(struct scan_slot *slot, const struct nvme_cqe *cqe)
{
    assert_int_equal(cqe->status, 0);
    slot->scan->has_changed = true;
    scan_more(slot->scan);
}

static void event_came(struct scan_slot *slot, const struct nvme_cqe *cqe)
{
    const struct nvme_sqe sqe = {
        .opcode = ADMIN_GET_LOG_PAGE,
        .cdw10 = (LOG_CHANGED_NS_LIST_LEN / 4 - 1) << 16 | LOG_CHANGED_NS_LIST,
    };
    struct scan_host *scan = slot->scan;

    assert_int_equal(cqe->status, 0);
    scan->events++;
    ask_for_event(scan);
    assert_true(
        slot_submit(scan, &sqe, LOG_CHANGED_NS_LIST_LEN, log_read, NULL));
}

static void ask_for_event(struct scan_host *scan)
{
    const struct nvme_sqe sqe = {.opcode = ADMIN_ASYNC_EVENT_REQUEST};

    assert_true(slot_submit(scan, &sqe, 0, event_came, NULL));
}

static void namespace_scanned(struct scan_slot *slot,
                              const struct nvme_cqe *cqe)
{
    assert_int_equal(cqe->status, 0);
    scan_more(slot->scan);
}

/* A namespace's descriptors were read: read its properties. */
static void namespace_described(struct scan_slot *slot,
                                const struct nvme_cqe *cqe)
{
    const struct nvme_sqe sqe = {
        .opcode = ADMIN_IDENTIFY, .nsid = slot->nsid, .cdw10 = CNS_NAMESPACE};

    assert_int_equal(cqe->status, 0);
    assert_true(
        slot_submit(slot->scan, &sqe, DATA_LEN, namespace_scanned, NULL));
    scan_more(slot->scan);
}

static void list_read(struct scan_slot *slot, const struct nvme_cqe *cqe)
{
    struct scan_host *scan = slot->scan;

    assert_int_equal(cqe->status, 0);
    scan->is_listing = false;
    scan->next = scan->count = 0;
    while (scan->count < NAMESPACES &&
           get_le32(slot->data + 4 * scan->count) != 0) {
        scan->nsid[scan->count] = get_le32(slot->data + 4 * scan->count);
        scan->count++;
    }
    scan_more(scan);
}

/* Linux scans all namespaces of the list at the same time.  Two entries are
 * left for an event and its log page, and two for nvme-cli. */
static void scan_more(struct scan_host *scan)
{
    const struct nvme_sqe list = {.opcode = ADMIN_IDENTIFY,
                                  .cdw10 = CNS_ACTIVE_NS_LIST};
    struct nvme_sqe sqe = {.opcode = ADMIN_IDENTIFY,
                           .cdw10 = CNS_NS_DESCRIPTORS};

    while (scan->next < scan->count && scan->busy < NVMF_ADMIN_DEPTH - 5) {
        sqe.nsid = scan->nsid[scan->next++];
        assert_true(
            slot_submit(scan, &sqe, DATA_LEN, namespace_described, NULL));
    }
    if (scan->has_changed && !scan->is_listing && scan->next == scan->count) {
        scan->has_changed = false;
        scan->is_listing = true;
        scan->scans++;
        assert_true(slot_submit(scan, &list, DATA_LEN, list_read, NULL));
    }
}

static void scan_start(struct scan_host *scan, struct nvme_host *host,
                       uint32_t offset)
{
    *scan = (struct scan_host){.host = host};
    for (uint32_t i = 0; i < NVMF_ADMIN_DEPTH; i++) {
        scan->slot[i].scan = scan;
        scan->slot[i].offset = offset + i * DATA_LEN;
        scan->slot[i].data =
            (uint8_t *)host->config.data + offset + (size_t)i * DATA_LEN;
    }
    assert_int_equal(
        host_set_features(host, FEATURE_ASYNC_EVENT_CONFIG, ASKED_NS_CHANGES),
        0);
    ask_for_event(scan);
}

/* ---- nvme create-ns and nvme attach-ns beside the scans. */

struct answer {
    bool has_come;
    struct nvme_cqe cqe;
};

static struct answer answer;

static void take_answer(struct scan_slot *slot, const struct nvme_cqe *cqe)
{
    (void)slot;
    answer = (struct answer){true, *cqe};
}

static bool has_answer(void *ctx)
{
    (void)ctx;
    return answer.has_come;
}

static void run_world(bool (*is_done)(void *ctx), void *ctx)
{
    verbs_flush(&bed.host->net.verbs);
    bed.host->sleep.is_asleep = false;
    assert_true(native_world_run(&bed.world, is_done, ctx, 10 * SECOND_NS));
}

static uint32_t run_admin(struct scan_host *scan, const struct nvme_sqe *sqe,
                          const uint8_t *data)
{
    answer.has_come = false;
    assert_true(slot_submit(scan, sqe, DATA_LEN, take_answer, data));
    run_world(has_answer, NULL);
    assert_int_equal(answer.cqe.status, 0);
    return answer.cqe.dw0;
}

static void add_ns(struct scan_host scans[CTRLS])
{
    const struct nvme_sqe create = {.opcode = ADMIN_NS_MANAGEMENT};
    struct nvme_sqe attach = {.opcode = ADMIN_NS_ATTACHMENT};
    uint8_t data[DATA_LEN] = {0};

    put_le64(data + ID_NS_NSZE, NS_BYTES / BED_BLOCK);
    put_le64(data + ID_NS_NCAP, NS_BYTES / BED_BLOCK);
    data[ID_NS_NMIC] = NMIC_SHARED;
    attach.nsid = run_admin(&scans[0], &create, data);
    memset(data, 0, sizeof(data));
    put_le16(data + CTRL_LIST_COUNT, CTRLS);
    for (unsigned int i = 0; i < CTRLS; i++) {
        put_le16(data + CTRL_LIST_FIRST + 2 * i, scans[i].host->cntlid);
    }
    (void)run_admin(&scans[0], &attach, data);
}

static bool all_is_scanned(void *ctx)
{
    const struct scan_host *scans = ctx;

    for (unsigned int i = 0; i < CTRLS; i++) {
        if (scans[i].busy != 1 || scans[i].count != NAMESPACES) {
            return false; /* only the AER stays */
        }
    }
    return true;
}

static int setup_many(void **state)
{
    (void)state;
    bed_init_like(&bed, &many_bed);
    return 0;
}

WITH_FIXTURE(setup_many, teardown)
static void test_128_namespaces_are_attached_under_rescans_on_both_paths(
    void **state)
{
    static struct nvme_host other;
    static struct scan_host scans[CTRLS];

    (void)state;
    bed_connect(&bed, 1, 1, 64);
    bed_connect_more(&bed, &other, 0, 1, 0);
    scan_start(&scans[0], &bed.host->host, 0);
    scan_start(&scans[1], &other, NVMF_ADMIN_DEPTH * DATA_LEN);
    bed_hold_back(&bed, 1);
    for (unsigned int i = 1; i < NAMESPACES; i++) {
        add_ns(scans);
    }
    run_world(all_is_scanned, scans);
    for (unsigned int i = 0; i < CTRLS; i++) {
        assert_true(scans[i].events > NAMESPACES / 4);
        assert_true(scans[i].most >= NVMF_ADMIN_DEPTH - 5);
        assert_false(scans[i].host->conn[0].queue.is_failed);
    }
}

/* ---- Full I/O queues whose acknowledgements are lost. */

struct load {
    uint32_t left, busy;
    uint32_t random;
};

static struct load load;

static void io_done(void *ctx, const struct host_result *result)
{
    (void)ctx;
    assert_false(result->is_lost);
    assert_int_equal(result->cqe.status, 0);
    load.busy--;
}

static void io_refused(void *ctx, const struct host_result *result)
{
    (void)ctx;
    assert_false(result->is_lost);
    assert_int_equal(result->cqe.status & NVME_SC_MASK, NVME_SC_LBA_RANGE);
    load.busy--;
}

/* Every fourth command is refused as its capsule arrives; the others are
 * answered when the medium is done, some of them after a fetch. */
static bool submit_one(uint16_t qid, uint32_t number)
{
    struct host_io io = {
        .qid = qid,
        .opcode = number % 2 == 0 ? NVM_READ : NVM_WRITE,
        .kind = number % 4 == 3 ? HOST_DATA_IN_CAPSULE : HOST_DATA_KEYED,
        .nsid = BED_NSID,
        .lba = number % 512,
        .blocks = 1,
        .len_bytes = BED_BLOCK,
        .done = io_done,
    };

    if (number % 4 == 0) {
        io.lba = BED_MEDIUM_BYTES / BED_BLOCK;
        io.done = io_refused;
    }
    return host_io_submit(&bed.host->host, &io);
}

static bool load_is_done(void *ctx)
{
    (void)ctx;
    for (uint16_t qid = 1; qid <= QUEUES; qid++) {
        while (load.left != 0 && submit_one(qid, load.left)) {
            load.left--;
            load.busy++;
        }
    }
    verbs_flush(&bed.host->net.verbs);
    return load.left == 0 && load.busy == 0;
}

/* Of the host's acknowledgements, one in 16 arrives.  The others are included
 * in a later one, or the drive sends its response again. */
static enum cable_verdict lose_acks(void *ctx, unsigned int from,
                                    uint64_t number, uint8_t *data,
                                    uint32_t *len_bytes)
{
    (void)ctx;
    (void)number;
    if (from != 1 || *len_bytes <= OPCODE_AT ||
        data[OPCODE_AT] != RC_ACKNOWLEDGE) {
        return CABLE_PASS;
    }
    load.random = load.random * 1664525 + 1013904223;
    return load.random >> 28 == 0 ? CABLE_PASS : CABLE_DROP;
}

static void run_load(uint32_t commands)
{
    bed_connect(&bed, 0, QUEUES, 64);
    bed_hold_back(&bed, 2);
    load = (struct load){.left = commands};
    run_world(load_is_done, NULL);
    host_disconnect(&bed.host->host);
}

/* More receives than one poll takes. */
static void test_full_io_queues_find_their_buffers(void **state)
{
    (void)state;
    run_load(20000);
}

static void test_a_host_whose_acknowledgements_are_lost_finds_its_buffers(
    void **state)
{
    (void)state;
    bed_provokes(&bed, BED_LOSS);
    bed.cables[0].filter = lose_acks;
    run_load(20000);
}

static enum cable_verdict lose_all_acks(void *ctx, unsigned int from,
                                        uint64_t number, uint8_t *data,
                                        uint32_t *len_bytes)
{
    (void)ctx;
    (void)number;
    return from == 1 && *len_bytes > OPCODE_AT &&
                   data[OPCODE_AT] == RC_ACKNOWLEDGE
               ? CABLE_DROP
               : CABLE_PASS;
}

static void io_lost(void *ctx, const struct host_result *result)
{
    (void)ctx;
    (void)result;
    load.busy--;
}

/* The drive ends the connection, with responses that wait for others. */
static void test_a_host_that_acknowledges_nothing_is_given_up(void **state)
{
    const struct host_io io = {.qid = 1,
                               .opcode = NVM_READ,
                               .kind = HOST_DATA_KEYED,
                               .nsid = BED_NSID,
                               .blocks = 1,
                               .len_bytes = BED_BLOCK,
                               .done = io_lost};

    (void)state;
    bed_provokes(&bed, BED_GONE);
    bed_connect(&bed, 0, 1, NVMF_MAX_DEPTH);
    bed.cables[0].filter = lose_all_acks;
    load = (struct load){0};
    for (unsigned int i = 0; i < 3 * NVMF_MAX_DEPTH; i++) {
        if (host_io_submit(&bed.host->host, &io)) {
            load.busy++;
        }
        verbs_flush(&bed.host->net.verbs);
        bed.host->sleep.is_asleep = false;
        native_world_pass(&bed.world, 1000);
    }
    assert_true(rdma_transport_unacked(bed.drive->drive.rdma) > NVMF_MAX_DEPTH);
    assert_true(rdma_transport_is_short(bed.drive->drive.rdma));
    native_world_pass(&bed.world, 10 * SECOND_NS);
    assert_true(host_is_broken(&bed.host->host));
    host_vanish(&bed.host->host);
    bed.cables[0].filter = NULL;
    native_world_pass(&bed.world, 60 * SECOND_NS);
    bed_expect_idle(&bed);
    bed_connect(&bed, 0, 1, NVMF_MAX_DEPTH);
    host_disconnect(&bed.host->host);
}

TEST_FIXTURE(setup, teardown)
