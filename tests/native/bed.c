/* SPDX-License-Identifier: BSD-2-Clause */
#include "bed.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/log.h"

enum {
    NAND_BLOCKS = 20,     /* So few that garbage collection begins soon. */
    KEPT_BYTES = 8 << 20, /* end of the DRAM, with all of the write buffer */
};

/* @param kept  the end of the DRAM before a reset, or NULL
 * @param ecc   its errors, or NULL */
static void start_drive(struct bed *bed, const uint8_t *kept,
                        const struct hw_ecc *ecc)
{
    struct native_drive_config config = {
        .node =
            {
                .number = 1,
                .ipv4 = {0x0a000001, 0x0a000101},
                .has_ipv6 = true,
                .mtu_bytes = bed->mtu_bytes,
                .generation = ++bed->generation,
                .lag = bed->lag,
                .vlan = bed->vlan,
                .priority = bed->priority,
                .has_roce_v1 = bed->has_roce_v1,
            },
        .medium = &bed->medium,
        .has_echo = bed->has_echo,
        .has_dhcp = bed->has_dhcp,
        .straps = bed->straps,
        .usage = &bed->usage,
        .errors = &bed->errors,
        .events = &bed->events,
        .telemetry = &bed->telemetry,
        .panic = bed->panic,
        .hw_errors = bed->hw_errors,
        .crashes = bed->crashes,
        .operations = &bed->operations,
        .capacity_bytes = bed->capacity_bytes,
        .nand_flash = bed->has_nand ? &bed->nand : NULL,
        .spi_flash = bed->spi_flash,
        .flash_is_realtime = bed->nand_is_realtime,
        .flash_is_held = bed->nand_is_held,
        .plan = bed->plan,
        .namespaces = bed->keeps_namespaces ? &bed->namespaces : NULL,
        .kept_dram = kept,
        .kept_bytes = KEPT_BYTES,
        .kept_ecc = ecc,
        .has_capacitors = bed->has_capacitors,
        .budget_us = bed->budget_us,
        .power_is_failing = bed->power_is_failing,
    };

    bed->drive = native_drive_create(&bed->world, &config);
}

/* ---- The counters of the transport. */

/* An ACK that follows the READ response which includes it counts as a
 * duplicate; a packet that was sent twice is in the sender's RETRANSMITTED. */
enum {
    NOT_CHECKED = BIT(RNIC_COUNT_RX_PACKETS) | BIT(RNIC_COUNT_TX_PACKETS) |
                  BIT(RNIC_COUNT_RX_DUPLICATE) | BIT(RNIC_COUNT_RX_CNP) |
                  BIT(RNIC_COUNT_RP_CNP_HANDLED) | BIT(RNIC_COUNT_NP_CNP_SENT) |
                  BIT(RNIC_COUNT_NP_ECN_MARKED),
};

static const char *const counter_name[RNIC_COUNTERS] = {
    [RNIC_COUNT_RX_BAD_ICRC] = "RX_BAD_ICRC",
    [RNIC_COUNT_RX_MALFORMED] = "RX_MALFORMED",
    [RNIC_COUNT_RX_NO_QP] = "RX_NO_QP",
    [RNIC_COUNT_RX_ADDRESS] = "RX_ADDRESS",
    [RNIC_COUNT_RX_KEY] = "RX_KEY",
    [RNIC_COUNT_RX_OUT_OF_ORDER] = "RX_OUT_OF_ORDER",
    [RNIC_COUNT_RX_DROPPED] = "RX_DROPPED",
    [RNIC_COUNT_TX_NAK_SEQUENCE] = "TX_NAK_SEQUENCE",
    [RNIC_COUNT_TX_NAK_OTHER] = "TX_NAK_OTHER",
    [RNIC_COUNT_TX_RNR] = "TX_RNR",
    [RNIC_COUNT_RX_NAK] = "RX_NAK",
    [RNIC_COUNT_RX_RNR] = "RX_RNR",
    [RNIC_COUNT_TIMEOUTS] = "TIMEOUTS",
    [RNIC_COUNT_RETRANSMITTED] = "RETRANSMITTED",
    [RNIC_COUNT_CQ_OVERFLOWS] = "CQ_OVERFLOWS",
    [RNIC_COUNT_PARITY_ERRORS] = "PARITY_ERRORS",
};

void bed_provokes(struct bed *bed, uint32_t counters)
{
    bed->provoked |= counters;
}

/* @return the counters of a machine's RNIC that no test has declared */
static uint32_t unexpected_counters(const struct bed *bed,
                                    const struct machine *machine,
                                    const char *name)
{
    uint32_t unexpected = 0;

    for (unsigned int i = 0; i < RNIC_COUNTERS; i++) {
        uint64_t count = machine->rnic.state.roce.counters[i];

        if (count != 0 && !((bed->provoked | NOT_CHECKED) & BIT(i))) {
            print_error("The %s's RNIC has counted %s %llu times.\n", name,
                        counter_name[i], (unsigned long long)count);
            unexpected |= BIT(i);
        }
    }
    return unexpected;
}

/* Called before the drive ends while the test goes on. */
static void check_drive(struct bed *bed)
{
    assert_int_equal(unexpected_counters(bed, &bed->drive->machine, "drive"),
                     0);
    bed_provokes(bed, BED_GONE);
}

/* ---- A hart that does not always run. */

enum { HELD_MAX_NS = 300000, HELD_TURNS = 8 };

static uint64_t next_random(struct bed_hart *hart)
{
    hart->random ^= hart->random << 13;
    hart->random ^= hart->random >> 7;
    hart->random ^= hart->random << 17;
    return hart->random >> 8;
}

static bool hart_step(void *ctx)
{
    struct bed_hart *hart = ctx;
    bool is_busy;

    if (hart->world->now_ns < hart->until_ns) {
        return false;
    }
    is_busy = hart->software.step(hart->software.ctx);
    if (is_busy && next_random(hart) % HELD_TURNS == 0) {
        hart->until_ns = hart->world->now_ns + next_random(hart) % HELD_MAX_NS;
    }
    return is_busy;
}

static uint64_t hart_deadline_ns(void *ctx)
{
    struct bed_hart *hart = ctx;

    return hart->world->now_ns < hart->until_ns
               ? hart->until_ns
               : hart->software.deadline_ns(hart->software.ctx);
}

void bed_hold_back(struct bed *bed, uint64_t seed)
{
    struct machine *machine = &bed->drive->machine;

    assert_null(bed->hart.world);
    bed->hart = (struct bed_hart){
        .world = &bed->world,
        .software = machine->software,
        .random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1,
    };
    machine->software =
        (struct machine_software){&bed->hart, hart_step, hart_deadline_ns};
}

/* ---- Starting and ending. */

static void plug_in(struct bed *bed)
{
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        native_connect(&bed->world, &bed->cables[i], &bed->drive->machine, i,
                       &bed->host->machine, i);
    }
}

static bool lag_is_up(const struct drive_net *net)
{
    return !drive_lag_is_on(&net->lag) ||
           (net->lag.is_up && net->lag.links == 3 && net->lag.members == 3);
}

static bool lags_are_up(void *ctx)
{
    const struct bed *bed = ctx;

    return lag_is_up(&bed->drive->drive.net) && lag_is_up(&bed->host->net);
}

/* Start drive and host in a bed that is zeroed except for its parameters. */
static void start_nodes(struct bed *bed)
{
    struct native_node_config host = {
        .number = 2,
        .ipv4 = {0x0a000002, 0x0a000102},
        .has_ipv6 = true,
        .mtu_bytes = bed->mtu_bytes,
        .lag = bed->lag,
        .vlan = bed->vlan,
        .priority = bed->priority,
        .has_roce_v1 = true,
    };

    native_world_init(&bed->world);
    medium_init(&bed->medium,
                bed->medium_bytes != 0 ? bed->medium_bytes : BED_MEDIUM_BYTES);
    if (bed->has_nand) {
        const struct nand_storage_config storage = {
            .profile =
                bed->nand_profile != NULL ? bed->nand_profile : "tlc2021",
            .channels = bed->nand_channels != 0 ? bed->nand_channels : 2,
            .dies = bed->nand_dies != 0 ? bed->nand_dies : 1,
            .blocks = bed->nand_blocks != 0 ? bed->nand_blocks
                                            : (uint16_t)NAND_BLOCKS,
            .wordlines = bed->nand_wordlines != 0 ? bed->nand_wordlines : 4,
        };

        nand_storage_init(&bed->nand, &storage);
    }
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        cable_init(&bed->cables[i]);
    }
    start_drive(bed, NULL, NULL);
    bed->host = native_host_create(&bed->world, &host);
    plug_in(bed);
    assert_true(
        native_world_run(&bed->world, lags_are_up, bed, UINT64_C(10000000000)));
}

void bed_init(struct bed *bed, uint16_t mtu_bytes)
{
    *bed = (struct bed){.mtu_bytes = mtu_bytes};
    start_nodes(bed);
}

void bed_init_echo(struct bed *bed, uint16_t mtu_bytes, bool has_echo)
{
    *bed = (struct bed){.mtu_bytes = mtu_bytes, .has_echo = has_echo};
    start_nodes(bed);
}

void bed_init_lag(struct bed *bed, uint16_t mtu_bytes, enum config_lag lag)
{
    *bed = (struct bed){.mtu_bytes = mtu_bytes, .lag = lag};
    start_nodes(bed);
}

void bed_init_like(struct bed *bed, const struct bed *like)
{
    *bed = (struct bed){
        .mtu_bytes = like->mtu_bytes,
        .vlan = like->vlan,
        .priority = like->priority,
        .has_roce_v1 = like->has_roce_v1,
        .has_dhcp = like->has_dhcp,
        .straps = like->straps,
        .has_nand = like->has_nand,
        .nand_profile = like->nand_profile,
        .nand_channels = like->nand_channels,
        .nand_dies = like->nand_dies,
        .nand_blocks = like->nand_blocks,
        .nand_wordlines = like->nand_wordlines,
        .capacity_bytes = like->capacity_bytes,
        .has_capacitors = like->has_capacitors,
        .budget_us = like->budget_us,
        .nand_is_realtime = like->nand_is_realtime,
        .spi_flash = like->spi_flash,
        .plan = like->plan,
        .keeps_namespaces = like->keeps_namespaces,
        .medium_bytes = like->medium_bytes,
    };
    start_nodes(bed);
}

void bed_end(struct bed *bed)
{
    uint32_t unexpected =
        unexpected_counters(bed, &bed->drive->machine, "drive") |
        unexpected_counters(bed, &bed->host->machine, "host");

    native_drive_destroy(bed->drive);
    native_host_destroy(bed->host);
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        cable_end(&bed->cables[i]);
    }
    medium_end(&bed->medium);
    if (bed->has_nand) {
        nand_storage_end(&bed->nand);
    }
    native_world_end(&bed->world);
    assert_int_equal(unexpected, 0);
}

/* End 0 of a cable is the drive's, end 1 the host's. */
static enum cable_verdict lose_frames(void *ctx, unsigned int from,
                                      uint64_t number, uint8_t *data,
                                      uint32_t *len_bytes)
{
    const struct bed *bed = ctx;

    (void)number;
    (void)data;
    (void)len_bytes;
    return from == 1 && bed->host_is_deaf ? CABLE_DROP : CABLE_PASS;
}

void bed_prepare_deafness(struct bed *bed, unsigned int port)
{
    bed->host_is_deaf = false;
    bed->cables[port].filter_ctx = bed;
    bed->cables[port].filter = lose_frames;
}

uint8_t bed_critical_warning(struct bed *bed)
{
    static uint8_t page[LOG_SMART_LEN];

    native_world_pass(&bed->world, 1000000);
    assert_int_equal(
        host_get_log(&bed->host->host, LOG_SMART, 0, page, sizeof(page)), 0);
    return page[SMART_CRITICAL_WARNING];
}

void bed_power_off(struct bed *bed)
{
    check_drive(bed);
    native_drive_power_cut(bed->drive);
    bed->drive = NULL;
    bed->hart.world = NULL;
}

void bed_power_on(struct bed *bed)
{
    start_drive(bed, NULL, NULL);
    plug_in(bed);
}

void bed_reset(struct bed *bed)
{
    const struct native_node *node = &bed->drive->machine.node;
    const struct hw_ecc ecc = bed->drive->machine.ecc;
    uint8_t *kept = malloc(KEPT_BYTES);

    assert_non_null(kept);
    memcpy(kept,
           native_node_dma(node, SOC_DRAM_BASE + node->dram_bytes - KEPT_BYTES,
                           KEPT_BYTES),
           KEPT_BYTES);
    check_drive(bed);
    native_drive_destroy(bed->drive);
    bed->hart.world = NULL;
    start_drive(bed, kept, &ecc);
    plug_in(bed);
    free(kept);
}

void bed_power_cycle(struct bed *bed)
{
    bed_power_off(bed);
    bed_power_on(bed);
}

void bed_connect(struct bed *bed, uint8_t local, uint16_t io_queues,
                 uint16_t depth)
{
    struct host_target target;

    assert_true(native_target(bed->host, bed->drive, local, &target));
    target.io_queues = io_queues;
    target.depth = depth;
    assert_int_equal(host_connect(&bed->host->host, &target), 0);
}

void bed_connect_more(struct bed *bed, struct nvme_host *more, uint8_t local,
                      uint16_t io_queues, uint32_t kato_ms)
{
    struct host_target target;

    native_host_add(bed->host, more, io_queues);
    assert_true(native_target(bed->host, bed->drive, local, &target));
    target.io_queues = io_queues;
    target.kato_ms = kato_ms;
    assert_int_equal(host_connect(more, &target), 0);
    assert_int_equal(more->io_queues, io_queues);
}

void bed_fill(uint8_t *data, uint64_t lba, uint32_t blocks, uint32_t version)
{
    for (uint32_t i = 0; i < blocks; i++) {
        uint8_t *block = data + (size_t)i * BED_BLOCK;
        uint64_t x = (lba + i) * UINT64_C(0x9e3779b97f4a7c15) + version;

        for (unsigned int k = 0; k < BED_BLOCK; k += 8) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            put_le64(block + k, x);
        }
        put_le64(block, lba + i);
    }
}

static uint16_t run_io(struct bed *bed, uint8_t opcode, uint16_t qid,
                       uint64_t lba, uint32_t blocks, enum host_data kind,
                       bool fua)
{
    struct host_io io = {
        .qid = qid,
        .opcode = opcode,
        .fua = fua,
        .kind = kind,
        .nsid = BED_NSID,
        .lba = lba,
        .blocks = blocks,
        .len_bytes = blocks * BED_BLOCK,
    };
    uint16_t status;

    if (kind == HOST_DATA_INVALIDATE) {
        io.key = host_map(&bed->host->host, 0, io.len_bytes);
        assert_int_not_equal(io.key, VERBS_NO_MR);
    }
    status = host_io(&bed->host->host, &io);
    if (kind == HOST_DATA_INVALIDATE) {
        host_unmap(&bed->host->host, io.key);
    }
    return status;
}

uint16_t bed_write(struct bed *bed, uint16_t qid, uint64_t lba, uint32_t blocks,
                   enum host_data kind, bool fua, uint32_t version)
{
    bed_fill(bed->host->data, lba, blocks, version);
    return run_io(bed, NVM_WRITE, qid, lba, blocks, kind, fua);
}

uint16_t bed_read(struct bed *bed, uint16_t qid, uint64_t lba, uint32_t blocks,
                  enum host_data kind)
{
    memset(bed->host->data, 0xa5, (size_t)blocks * BED_BLOCK);
    return run_io(bed, NVM_READ, qid, lba, blocks, kind, false);
}

uint16_t bed_flush(struct bed *bed, uint16_t qid)
{
    return run_io(bed, NVM_FLUSH, qid, 0, 0, HOST_DATA_NONE, false);
}

void bed_expect(struct bed *bed, uint16_t qid, uint64_t lba, uint32_t blocks,
                enum host_data kind, uint32_t version)
{
    static uint8_t expected[NVMF_MAX_TRANSFER];

    assert_int_equal(bed_read(bed, qid, lba, blocks, kind), 0);
    bed_fill(expected, lba, blocks, version);
    assert_memory_equal(bed->host->data, expected, (size_t)blocks * BED_BLOCK);
}

void bed_expect_idle(struct bed *bed)
{
    struct rdma_usage usage;
    uint16_t controllers, qpairs;

    rdma_transport_usage(bed->drive->drive.rdma, &usage);
    nvmf_target_stats(bed->drive->drive.target, &controllers, &qpairs);
    assert_int_equal(usage.qpairs, 0);
    assert_int_equal(usage.capsules, 0);
    assert_int_equal(usage.requests, 0);
    assert_int_equal(buf_pool_used_bytes(bed->drive->drive.bufs), 0);
    assert_int_equal(controllers, 0);
    assert_int_equal(qpairs, 0);
    assert_int_equal(echo_conns_used(&bed->drive->drive.echo), 0);
}
