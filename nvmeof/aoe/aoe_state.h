/* SPDX-License-Identifier: BSD-2-Clause */
/* The private state of the AoE target. */
#ifndef ESSD_NVMEOF_AOE_STATE_H
#define ESSD_NVMEOF_AOE_STATE_H

#include "lib/trace.h"
#include "nvmeof/aoe/aoe.h"
#include "nvmeof/aoe/aoe_wire.h"
#include "nvmeof/target/inside.h"

enum { AOE_DEVICES = NVMF_MAX_NAMESPACES, AOE_NO_QPAIR = 0xffff };

/* The states of a slot. */
enum aoe_slot_state {
    AOE_SLOT_FREE,    /* Unused; waits for a command. */
    AOE_SLOT_WAITS,   /* Waits for the next step, and for earlier writes to the
                       * same blocks. */
    AOE_SLOT_TARGET,  /* The NVMe-oF target executes its command. */
    AOE_SLOT_SENDING, /* Waits for the next step, which takes a part of the
                       * data. */
    AOE_SLOT_ANSWERS, /* Waits for room for the answer. */
    AOE_SLOT_STATES
};

/* A command. */
struct aoe_slot {
    struct nvmf_transfer *nvmf;
    struct aoe *aoe;
    uint8_t *data; /* AOE_SLOT_BYTES */
    uint8_t state; /* enum aoe_slot_state */
    bool is_of_io; /* the I/O queue executes it, rather than the admin queue */
    bool is_damaged; /* data that was read has lost a word in DRAM */
    uint32_t order;  /* counts commands as they arrive */
    uint64_t arrived_us;
    uint64_t submitted_us;
    struct aoe_station from;
    struct aoe_header header;
    struct aoe_ata ata;
    uint64_t lba;
    uint64_t digest; /* of the data of a write */
};

/* A write that was executed. */
struct aoe_write {
    uint64_t done_us; /* 0: this entry is unused */
    uint64_t lba;
    uint64_t digest;
    uint32_t tag;
    uint8_t minor;
    uint8_t count;
};

struct aoe_peer {
    uint8_t mac[AOE_MAC_LEN];
    bool is_used;
    uint8_t next; /* entry that is overwritten next */
    uint64_t seen_us;
    struct aoe_write writes[AOE_PEER_WRITES];
};

struct aoe_macs {
    uint8_t count;
    uint8_t mac[AOE_MACS][AOE_MAC_LEN];
};

/* A change of a device's lists whose answer waits for commands that the device
 * executes, of stations that the lists now exclude. */
struct aoe_change {
    bool is_waiting;
    struct aoe_station from;
    struct aoe_header header;
    uint8_t command; /* enum aoe_mask_command, or enum aoe_reserve_command */
    uint8_t error;   /* enum aoe_mask_error */
};

/* What hosts have set of a device.  It is lost with the power. */
struct aoe_device {
    struct aoe_macs masks;
    struct aoe_macs holders;
    struct aoe_change change;
    uint16_t string_len;
    uint8_t string[AOE_STRING_MAX];
};

/* The states of the association with the NVMe-oF target. */
enum aoe_host_state {
    AOE_HOST_IDLE,     /* Waits for the time of the next attempt. */
    AOE_HOST_ADMIN,    /* Waits for the answer to the admin queue's Connect. */
    AOE_HOST_ENABLING, /* Waits until the controller is enabled. */
    AOE_HOST_IO,       /* Waits for the answer to the I/O queue's Connect. */
    AOE_HOST_LIVE,     /* Executes commands, until the target ends a queue. */
    AOE_HOST_ENDING,   /* Waits until the target has drained both queues. */
    AOE_HOST_STATES
};

struct aoe_queue {
    uint16_t qpair;   /* the target's number; AOE_NO_QPAIR: none */
    bool is_ending;   /* the target has called disconnect() */
    bool is_draining; /* waits for drained() */
};

/* A query to all devices, of which some have not answered. */
struct aoe_broadcast {
    struct aoe_station from;
    struct aoe_header header;
    uint8_t command; /* enum aoe_config_command: one that only reads */
    uint8_t next;    /* minor address that is looked at next */
    uint16_t string_len;
    uint8_t string[AOE_STRING_MAX];
};

struct aoe {
    struct aoe_config config;
    struct nvmf_transport transport;
    const struct trace *trace; /* never NULL */
    uint64_t now_us;

    enum aoe_host_state host_state;
    bool is_stopped; /* no association begins any more */
    uint64_t retry_us;
    struct aoe_queue queue[2]; /* admin, I/O */
    uint16_t cntlid;

    uint32_t next_order;
    uint16_t waiting;   /* slots in AOE_SLOT_WAITS */
    uint16_t answering; /* slots in AOE_SLOT_ANSWERS or AOE_SLOT_SENDING */
    uint16_t submitted; /* slots in AOE_SLOT_TARGET */
    struct aoe_slot slots[AOE_REQUESTS]; /* the last one is for control */

    uint16_t changes; /* devices with a change whose answer waits */

    uint16_t query_count;
    struct aoe_broadcast queries[AOE_QUERIES]; /* the oldest one is first */

    uint64_t counters[AOE_PORTS][AOE_COUNTERS];
    struct aoe_peer peers[AOE_PEERS];
    struct aoe_device devices[AOE_DEVICES];
};

static inline void aoe_note(struct aoe *aoe, uint8_t port,
                            enum aoe_counter counter)
{
    aoe->counters[port][counter]++;
}

/* aoe.c */

/** Answer with an error of the protocol. */
void aoe_refuse(struct aoe *aoe, const struct aoe_station *to,
                const struct aoe_header *request, enum aoe_error error);
/** The header of the answer to a request. */
struct aoe_header aoe_answer_header(const struct aoe *aoe,
                                    const struct aoe_header *request,
                                    enum aoe_error error);
/** Send a frame that was begun. */
void aoe_commit(struct aoe *aoe, const struct aoe_station *to, size_t len);

/* aoe_ata.c */
void aoe_ata_receive(struct aoe *aoe, const struct aoe_station *from,
                     const struct aoe_header *header, const uint8_t *args,
                     size_t len);
bool aoe_ata_step(struct aoe *aoe);
/** Whether the target executes a command of a station that may not use the
 * device any more. */
bool aoe_ata_executes_excluded(const struct aoe *aoe, uint8_t minor);
uint8_t aoe_sectors_max(const struct aoe *aoe, uint8_t port);
/** The only writer of slot->state. */
void aoe_slot_enter(struct aoe_slot *slot, enum aoe_slot_state next);

/* aoe_identify.c */
enum { AOE_IDENTIFY_LEN = 512 };
void aoe_identify(const struct aoe *aoe, const struct nvmf_ns_blocks *blocks,
                  uint32_t nsid, uint8_t *data);

/* aoe_config.c */
/** A request to all shelves, or to all devices.  It may only ask. */
void aoe_config_ask(struct aoe *aoe, const struct aoe_station *from,
                    const struct aoe_header *header, const uint8_t *args,
                    size_t len);
/** A query to one device. */
void aoe_config_receive(struct aoe *aoe, const struct aoe_station *from,
                        const struct aoe_header *header, const uint8_t *args,
                        size_t len);
bool aoe_config_step(struct aoe *aoe);

/* aoe_device.c */
void aoe_mask_receive(struct aoe *aoe, const struct aoe_station *from,
                      const struct aoe_header *header, const uint8_t *args,
                      size_t len);
void aoe_reserve_receive(struct aoe *aoe, const struct aoe_station *from,
                         const struct aoe_header *header, const uint8_t *args,
                         size_t len);
/** Answer changes that have waited long enough. */
bool aoe_device_step(struct aoe *aoe);
/** Whether the device's mask list admits a station. */
bool aoe_is_admitted(const struct aoe *aoe, uint8_t minor, const uint8_t *mac);
/** Whether the device is reserved for others. */
bool aoe_is_fenced(const struct aoe *aoe, uint8_t minor, const uint8_t *mac);

/* aoe_host.c */
void aoe_host_init(struct aoe *aoe);
bool aoe_host_step(struct aoe *aoe);
/** End the association if the target has not answered a command for too long.
 * @return when to call this again at the latest */
uint64_t aoe_host_watch(struct aoe *aoe);
/** Give the command of a slot to the target. */
void aoe_host_submit(struct aoe_slot *slot);

/* aoe_peers.c */
uint64_t aoe_digest(const uint8_t *data, size_t len);
enum aoe_write_state {
    AOE_WRITE_NEW,
    AOE_WRITE_RUNS, /* It is being executed. */
    AOE_WRITE_DONE, /* It was executed a short time ago. */
};
/** What is known of this write of its station. */
enum aoe_write_state aoe_peers_find(struct aoe *aoe,
                                    const struct aoe_slot *write);
/** A write was executed. */
void aoe_peers_note(struct aoe *aoe, const struct aoe_slot *write);

/* aoe_trace.c */
void aoe_trace_command(const struct aoe_slot *slot);
void aoe_trace_end(const struct aoe_slot *slot, uint8_t error,
                   bool is_to_be_repeated);
void aoe_trace_repeated(const struct aoe_slot *slot, bool is_done);

#endif
