/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the native tests share: a drive and a host with two cables between them,
 * and blocking reads and writes of data that differs from block to block.
 */
#ifndef ESSD_TEST_NATIVE_BED_H
#define ESSD_TEST_NATIVE_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "firmware/native/nand_storage.h"
#include "firmware/native/native.h"
#include "lib/regfields.h"
#include "hw-model/regs/rnic.h"

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
    uint16_t vlan; /* VLAN of all addresses; 0: none. */
    uint8_t priority;
    bool has_roce_v1; /* Of the drive only. */
    uint32_t generation;
    struct usage usage; /* The usage record in the drive's flash. */
    struct error_records errors;
    struct native_operations operations;
    struct native_events events;         /* Persistent events in the flash. */
    struct native_telemetry telemetry;   /* What the drive's flash keeps. */
    const struct telemetry_panic *panic; /* Led to the drive's next start. */
    const struct hw_error_records *hw_errors; /* In flash, at that start. */
    const struct crash_store *crashes;        /* of the drive's next starts */
    enum config_lag lag;                      /* Of both ends. */
    bool has_echo;
    uint8_t straps; /* Of the drive: those that concern the BMC. */
    bool has_dhcp;  /* Port 0 of the drive uses DHCP, but there is no server. */
    /* The drive's medium is a NAND array, whose operations may take time. */
    bool has_nand;
    const char *nand_profile; /* Of the part; NULL: "tlc2021". */
    uint8_t nand_channels;    /* 0: 2. */
    uint8_t nand_dies;        /* Of each channel; 0: 1. */
    uint16_t nand_blocks;     /* Of a plane; 0: 20, which is 11 MiB. */
    uint16_t nand_wordlines;  /* Of a block; 0: 4. */
    uint64_t capacity_bytes;  /* Of a drive with NAND; 0: all that fits. */
    /* Only then do reads suspend programs.  Write different blocks: the write
     * buffer replaces what has not been programmed yet. */
    bool nand_is_realtime;
    bool has_capacitors;   /* The drive has power-loss protection. */
    uint32_t budget_us;    /* For which capacitors last; 0: without limit. */
    bool nand_is_held;     /* As machine.holds_flash, from the next start on. */
    bool power_is_failing; /* The power fails before the next starts. */
    struct nand_ram nand;
    struct flash_ram *spi_flash;    /* Its image slots; NULL: none. */
    const struct volume_plan *plan; /* Its namespaces; NULL: one. */
    bool host_is_deaf;              /* see bed_prepare_deafness() */
    bool keeps_namespaces;          /* The table outlives a power cycle. */
    uint64_t medium_bytes;          /* 0: BED_MEDIUM_BYTES. */
    uint32_t provoked;              /* RNIC counters, see bed_provokes(). */
    struct bed_hart {               /* see bed_hold_back() */
        struct native_world *world;
        struct machine_software software;
        uint64_t until_ns, random;
    } hart;
    struct native_namespaces namespaces;
};

/* Start both ends and connect the cables; no host is connected. */
void bed_init(struct bed *bed, uint16_t mtu_bytes);
/* The same, with both ends aggregating their ports. */
void bed_init_lag(struct bed *bed, uint16_t mtu_bytes, enum config_lag lag);

/* The same, with the diagnostic echo service if has_echo. */
void bed_init_echo(struct bed *bed, uint16_t mtu_bytes, bool has_echo);

/* The same, with the parameters of `like`: mtu_bytes, vlan, priority,
 * has_roce_v1, has_dhcp, has_nand, nand_profile, nand_channels, nand_dies,
 * nand_blocks, nand_wordlines, capacity_bytes, nand_is_realtime,
 * has_capacitors, budget_us, spi_flash, plan, keeps_namespaces, medium_bytes.
 */
void bed_init_like(struct bed *bed, const struct bed *like);
/* Also checks the transport's counters: see bed_provokes(). */
void bed_end(struct bed *bed);

/*
 * The counters of the RNICs that say that something went wrong between drive
 * and host must be 0 when either of them ends.  A test that provokes some
 * declares them, as BIT(RNIC_COUNT_...), at any time before.
 */
enum {
    /* Frames are lost, delayed, doubled, or change places. */
    BED_LOSS = BIT(RNIC_COUNT_RX_OUT_OF_ORDER) |
               BIT(RNIC_COUNT_TX_NAK_SEQUENCE) | BIT(RNIC_COUNT_RX_NAK) |
               BIT(RNIC_COUNT_TIMEOUTS) | BIT(RNIC_COUNT_RETRANSMITTED),
    /* One end is gone while the other one still sends. */
    BED_GONE = BED_LOSS | BIT(RNIC_COUNT_RX_NO_QP) | BIT(RNIC_COUNT_RX_ADDRESS),
    /* An end refuses what the other one asks for. */
    BED_REFUSAL = BIT(RNIC_COUNT_TX_NAK_OTHER) | BIT(RNIC_COUNT_RX_NAK),
    /* Words are damaged on their way from or to DRAM. */
    BED_PARITY = BED_REFUSAL | BIT(RNIC_COUNT_PARITY_ERRORS) |
                 BIT(RNIC_COUNT_RX_DROPPED),
    /* Bits of frames flip. */
    BED_FLIPS = BED_GONE | BED_REFUSAL | BIT(RNIC_COUNT_RX_BAD_ICRC) |
                BIT(RNIC_COUNT_RX_MALFORMED) | BIT(RNIC_COUNT_RX_KEY),
    /* An end has no receive buffer for what the other one sends: the drive only
     * if its peer sends more commands than its queue has entries. */
    BED_RNR = BIT(RNIC_COUNT_TX_RNR) | BIT(RNIC_COUNT_RX_RNR) |
              BIT(RNIC_COUNT_RETRANSMITTED),
};
void bed_provokes(struct bed *bed, uint32_t counters);

/*
 * From now on, hold the drive's hart back at random moments for up to 300 us,
 * while its hardware goes on, as a busy computer does.
 */
void bed_hold_back(struct bed *bed, uint64_t seed);

/* From now on, the host's frames on this port are lost while bed->host_is_deaf
 * is set.  It is not set yet. */
void bed_prepare_deafness(struct bed *bed, unsigned int port);

/* The critical warnings of SMART, after a millisecond in which a mount ends. */
uint8_t bed_critical_warning(struct bed *bed);

/* Cut the drive's power and switch it on again; the host is not told. */
void bed_power_cycle(struct bed *bed);

/* Reset the drive with power on: the end of its DRAM keeps its contents. */
void bed_reset(struct bed *bed);

/* The two halves of it: while the power is off, a test can change the flash. */
void bed_power_off(struct bed *bed);
void bed_power_on(struct bed *bed);

/* Connect through local address `local` (0, 1: IPv4; 2, 3: IPv6). */
void bed_connect(struct bed *bed, uint8_t local, uint16_t io_queues,
                 uint16_t depth);

/* Connect one more host of the same node in the same way, with queues of 64
 * entries and this keep-alive time-out (0: none).  *more is the caller's, and
 * must outlive the connection. */
void bed_connect_more(struct bed *bed, struct nvme_host *more, uint8_t local,
                      uint16_t io_queues, uint32_t kato_ms);

/* Fill `data` with the contents of the blocks at `lba` in version `version`. */
void bed_fill(uint8_t *data, uint64_t lba, uint32_t blocks, uint32_t version);

/*
 * Run one command on queue `qid`; its data is at the start of the host's area.
 */
uint16_t bed_write(struct bed *bed, uint16_t qid, uint64_t lba, uint32_t blocks,
                   enum host_data kind, bool fua, uint32_t version);
uint16_t bed_read(struct bed *bed, uint16_t qid, uint64_t lba, uint32_t blocks,
                  enum host_data kind);
uint16_t bed_flush(struct bed *bed, uint16_t qid);

/* Read the blocks and compare them with bed_fill(). */
void bed_expect(struct bed *bed, uint16_t qid, uint64_t lba, uint32_t blocks,
                enum host_data kind, uint32_t version);

/* Check that the drive holds nothing that belongs to a connection. */
void bed_expect_idle(struct bed *bed);

#endif
