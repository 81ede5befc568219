/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target's private state.  Only the target's own files include it, and its
 * owner, which needs the size.  What belongs to one file is declared in that
 * file's header; here are the parts that several files share.
 */
#ifndef ESSD_NVMEOF_TARGET_STATE_H
#define ESSD_NVMEOF_TARGET_STATE_H

#include "nvmeof/auth/auth.h"
#include "nvmeof/target/admin/download.h"
#include "nvmeof/target/admin/sanitize.h"
#include "nvmeof/target/ana.h"
#include "nvmeof/target/base/clock.h"
#include "nvmeof/target/base/error_log.h"
#include "nvmeof/target/base/latency.h"
#include "nvmeof/target/base/lba_list.h"
#include "nvmeof/target/base/reservation.h"
#include "nvmeof/target/base/wheel.h"
#include "nvmeof/target/connect/discovery.h"
#include "nvmeof/target/connect/generated.h"
#include "nvmeof/target/connect/host_auth.h"
#include "nvmeof/target/connect/share.h"
#include "nvmeof/target/events/persistent_event.h"
#include "nvmeof/target/fault.h"
#include "nvmeof/target/io/lba_status.h"
#include "nvmeof/target/io/order.h"
#include "nvmeof/target/io/scratch.h"
#include "nvmeof/target/namespaces/manager.h"
#include "nvmeof/target/request/buffer.h"
#include "nvmeof/target/request/queue.h"
#include "nvmeof/target/request_state.h"
#include "nvmeof/target/target.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/persistent_event.h"

/* The states of a queue pair. */
enum qpair_state {
    QPAIR_FREE,           /* Unused; waits for nvmf_qpair_reserve(). */
    QPAIR_RESERVED,       /* Waits for nvmf_qpair_open(). */
    QPAIR_CONNECTING,     /* Waits for a successful Connect, or its time-out. */
    QPAIR_AUTHENTICATING, /* Takes only the commands of authentication, until
                           * the host has proven its identity. */
    QPAIR_LIVE,           /* Takes commands, until either side ends it. */
    QPAIR_CLOSING,        /* The target has called disconnect(); waits for
                           * nvmf_qpair_closed(), or the time-out. */
    QPAIR_DRAINING,       /* The connection has ended; waits until no request is
                           * in flight. */
    QPAIR_STATES
};

enum ctrl_state {
    CTRL_FREE,      /* Belongs to no association. */
    CTRL_UNPROVEN,  /* Waits until its host has proven its identity. */
    CTRL_DISABLED,  /* Waits for CC.EN = 1. */
    CTRL_READY,     /* Takes commands until CC.EN = 0. */
    CTRL_RESETTING, /* Waits until its I/O queues have drained, then follows
                     * the value that CC.EN has by that time. */
    CTRL_FAILED,    /* Was enabled with an unsupported CC; reports
                     * CSTS.CFS = 1 until CC.EN = 0. */
    CTRL_PARTING,   /* Its host has reset the subsystem; waits until that host
                     * ends the association, or for a time-out. */
    CTRL_ENDING,    /* The association is over; waits until all its queue pairs
                     * have drained. */
    CTRL_STATES
};

enum shutdown_status { SHST_NORMAL, SHST_OCCURRING, SHST_COMPLETE };

/* The asynchronous events: bits of events_pending and events_masked. */
enum ctrl_event {
    CTRL_EVENT_SMART_RELIABILITY,
    CTRL_EVENT_SMART_TEMPERATURE,
    CTRL_EVENT_SMART_SPARE,
    CTRL_EVENT_NS_CHANGED,
    CTRL_EVENT_ANA_CHANGED,
    CTRL_EVENT_LBA_STATUS,
    CTRL_EVENT_SANITIZE_COMPLETED,
    CTRL_EVENT_DISCOVERY_CHANGED,
    CTRL_EVENT_RESERVATION,
    CTRL_EVENT_FIRMWARE_GIVEN_UP,
    CTRL_EVENTS
};

enum {
    NO_CTRL = 0xff,
    NO_AUTH = 0xff,
    NO_QPAIR = 0xffff,
    KAS_100MS = 10, /* keep-alive granularity: 10 * 100 ms */
};
_Static_assert((int)NO_CTRL == (int)NVMF_BUF_NO_CTRL,
               "nvmf_qpair.ctrl is the owner of its buffers");

struct nvmf_qpair {
    uint8_t state; /* enum qpair_state */
    uint8_t ctrl;  /* index, NO_CTRL until Connect */
    bool has_sq_flow_control;
    bool has_hints;    /* QID and depth were known before Connect */
    bool is_stream;    /* it runs on TCP */
    bool is_displaced; /* it had to go for a Connect */
    bool ends_now;     /* its connection ends without waiting for its peer */
    uint16_t qid;      /* 0 until it is known */
    uint16_t portid;
    uint32_t link;   /* of the address that the host uses */
    uint16_t depth;  /* capsules of the transport; 1 until it is known */
    uint16_t charge; /* its share of the queue budget; 0 until it is known */
    uint8_t lender;  /* the controller whose promised queue it has borrowed
                      * until it is joined, or NO_CTRL */
    uint32_t grant;  /* the lender's count of grants at that time */
    uint16_t sqsize; /* entries, as Connect said */
    uint16_t sqhd;
    uint16_t in_flight;   /* requests that the target has not handed back */
    uint32_t label;       /* its name in traces: nvmf_qpair_set_label() */
    uint8_t auth;         /* its session of authentication, or NO_AUTH */
    uint64_t deadline_us; /* of CONNECTING, CLOSING, and of its session */
    uint8_t host[NVMF_ADDRESS_LEN]; /* the host's address */
    bool is_joined; /* an I/O queue that its controller's QID belongs to, until
                     * it is free */
    /* Its place among the queue pairs without proof: share.c. */
    bool is_listed;
    uint16_t next_listed, prev_listed;
    uint16_t of_address; /* listed queue pairs of the same address, with this */
    uint64_t listed_us;  /* since when it is in the list */
    const struct nvmf_transport *transport;
    uint8_t fused;                    /* enum fused_state */
    struct nvmf_request *fused_first; /* of FUSED_WAITS */
};

/* What the last command of a queue pair says about the next one. */
enum fused_state {
    FUSED_NONE,   /* It was no first command of a fused pair. */
    FUSED_WAITS,  /* It was the first command, and waits for the second. */
    FUSED_FAILED, /* It was the first command, and has been refused. */
};

/* Values of features that belong to a controller. */
struct nvmf_features {
    uint32_t arbitration;
    uint32_t power_management;
    uint32_t error_recovery;
    uint32_t write_atomicity;
    uint32_t async_event_config;
    uint32_t number_of_queues; /* granted numbers; both halves are 0's based */
    uint16_t temperature_over_k;
    uint16_t temperature_under_k;
    uint16_t sensor_over_k[NVMF_TEMPERATURE_SENSORS];
    uint16_t sensor_under_k[NVMF_TEMPERATURE_SENSORS];
    uint8_t command_retry; /* of Host Behavior Support, as the next one */
    uint16_t copy_formats; /* CDFE */
    uint16_t lba_report_interval; /* LSIRI, in units of 100 ms; below LSIPI it
                                   * counts as LSIPI */
};

/*
 * The generation is the upper half of a CNTLID.  Each boot uses one range of
 * generations, so that its CNTLIDs differ from those of the last three boots.
 */
enum {
    CTRL_GENERATION_RANGES = 4,
    CTRL_GENERATIONS = 63, /* of one range; CNTLIDs stay below FFF0h */
};

struct nvmf_ctrl {
    uint8_t state;        /* enum ctrl_state */
    uint8_t shst;         /* enum shutdown_status */
    uint8_t generation;   /* upper half of the next CNTLID */
    uint32_t host_number; /* see ctrl_host_number() */
    bool is_discovery;
    bool is_ordered; /* counted in target.twins: its host has proven itself */
    bool has_been_reset;   /* CSTS.NSSRO */
    bool moves_behind_tls; /* its host has a key for it: generated.c */
    uint16_t cntlid;
    uint16_t portid;
    uint32_t link; /* as nvmf_qpair.link, of its admin queue */
    const struct nvmf_transport *transport; /* of its admin queue */
    uint16_t promised;    /* I/O queues that the budget reserves for it */
    uint32_t grants;      /* how often all its promises were made anew */
    uint16_t qpair_count; /* its queue pairs that are not free yet */
    uint16_t io_count;    /* how many of these are I/O queues */
    uint16_t qpair[NVMF_MAX_IO_QUEUES + 1]; /* by QID; or NO_QPAIR */
    uint32_t cc;        /* as last written; the state may follow it later */
    uint32_t shutdowns; /* number of the last shutdown that began, from 1 */
    uint32_t resets;    /* controller resets since it exists */
    uint32_t kato_ms;   /* 0 without keep-alive */
    uint64_t seen_us;   /* time of the host's last command */
    uint8_t hostid[NVME_HOSTID_LEN];
    char hostnqn[NVME_NQN_FIELD];
    struct nvmf_features features;
    uint8_t bufs_before_proof; /* at most NVMF_UNPROVEN_BUFS: buffer.c */
    uint8_t aer_count;         /* in aer[] */
    uint8_t aers_forgotten;    /* the first of them: event_give_up() */
    uint8_t warnings_told;   /* SMART warnings for which an event was raised */
    uint16_t events_pending; /* BIT(enum ctrl_event) */
    uint16_t events_masked;  /* reported; set until the host reads the log */
    struct nvmf_request *aer[NVMF_MAX_AERS];
    /* Reservation notifications that the host has not read: a ring. */
    struct reservation_notice notice[NVMF_MAX_NOTICES];
    uint16_t first_notice, notices;
    uint64_t notice_count; /* of the last one, since the last reset */
    uint32_t changed_ns[NVMF_MAX_NAMESPACES / 32];
    /* The active namespaces: those that are attached to this controller. */
    uint32_t active_ns[NVMF_MAX_NAMESPACES / 32];
    /*
     * By NSID - 1: the kinds of commands that ns_check() has to look at more
     * closely, as bits of nvmf_command.flags.  All other commands may use the
     * namespace; this is the only word that they test.  ns_bars() computes it
     * from everything that may refuse a command.
     */
    uint8_t ns_bars[NVMF_MAX_NAMESPACES];
    /* Changes of the ANA log page and of each group since the last reset. */
    uint64_t ana_changes;
    uint64_t ana_group_changes[NVMF_ANA_GROUPS];
};

/* The states of a namespace. */
enum ns_state {
    NS_FREE,  /* No namespace has this NSID. */
    NS_READY, /* Takes commands of the controllers that it is attached to. */
    NS_FORMATTING, /* Refuses commands until the Format has ended. */
    NS_SANITIZING, /* Refuses commands until a sanitize operation has succeeded,
                    * or its failure was left. */
    NS_DELETING,   /* Attached to no controller; waits until no command uses it
                    * and the volume has deleted it. */
    NS_STATES
};

enum {                        /* nvmf_ns.caution */
       CAUTION_STATE = 0x1,   /* its state is not NS_READY */
       CAUTION_AWAITED = 0x2, /* commands that use it are waited for: await.c */
       CAUTION_TRACKED = 0x4, /* blocks are tracked, which a write makes
                               * readable again: lba_status.c */
};

struct nvmf_command_set;

struct nvmf_ns {
    uint8_t state;       /* enum ns_state; written by ns_enter() */
    uint8_t caution;     /* 0: the end of its commands concerns nobody */
    uint8_t notice_mask; /* feature 82h: BIT(type of notification) */
    uint16_t awaited;    /* marks of commands that are waited for: await.c */
    uint32_t users;      /* commands that use it: nvmf_request.ns */
    uint32_t anagrpid;   /* its ANA group, 1..NVMF_ANA_GROUPS */
    const struct nvmf_command_set *command_set; /* never NULL */
    struct nvmf_ns_config config;
    struct nvmf_volume_ns volume; /* if there is a volume */
    struct media_geometry geometry;
    struct nvmf_request *protecting; /* sets its write protection; or NULL */
};

/* The command identifiers that are in use on one queue pair are in lists by
 * their lowest bits: cid.c */
enum { CID_LISTS = 64 };

/* Why answers are watched: bits of nvmf_target.answers_watched. */
enum {
    ANSWERS_FAULTS = 0x1,  /* there are fault rules */
    ANSWERS_LATENCY = 0x2, /* the latency monitor is on */
};

struct nvmf_target {
    struct nvmf_config config;
    struct nvmf_bufs bufs;
    struct nvmf_media media;
    const struct trace *trace; /* never NULL */
    uint64_t now_us;
    struct nvmf_clock clock;

    uint32_t depth_used;      /* sum of all charges, at most NVMF_TOTAL_DEPTH */
    uint32_t queues_promised; /* I/O queues promised to all controllers */
    uint16_t ctrl_count;
    uint16_t qpair_count;
    uint16_t free_qpair[NVMF_MAX_QPAIRS]; /* a stack */
    struct nvmf_qpair qpair[NVMF_MAX_QPAIRS];
    struct nvmf_ctrl ctrl[NVMF_MAX_HOSTS];
    struct nvmf_shares shares;
    struct wheel wheel;
    bool was_reset; /* by NSSR, since power-on */

    bool is_cache_on;
    bool has_volatile_cache;
    bool can_mark; /* the medium has MEDIA_WRITE_UNCORRECTABLE */
    struct nvmf_ns ns[NVMF_MAX_NAMESPACES]; /* by NSID - 1 */
    struct ns_manager manager;
    struct nvmf_ana_relation ana[NVMF_ANA_GROUPS][NVMF_ANA_PORTS];
    uint8_t ana_transitions; /* how many of them are in ANA_CHANGE */
    struct sanitize_manager sanitize;
    struct firmware_manager firmware;
    uint16_t self_test_cntlid; /* controller that has started the last one */
    struct reservation reservation[NVMF_RESERVATION_NAMESPACES];
    struct reservation reservation_draft; /* a change that is not saved yet */
    struct nvmf_queue connecting; /* Connects that wait for room: fabrics.c */
    struct nvmf_queue awaiting;   /* wait for the commands that were in flight
                                   * on their namespace: await.c */
    struct nvmf_queue protecting; /* wait until the protection of their
                                   * namespace is set: ns_protect.c */

    struct nvmf_auths auths;
    struct nvmf_generated_keys generated;

    struct nvmf_discovery discovery;

    struct nvmf_counters counters;
    struct error_log error_log;
    uint8_t acting_ctrl; /* whose command is being executed, or NO_CTRL */
    struct persistent_log pel;

    struct nvmf_buffer_wait wait_buffer;
    struct nvmf_queue wait_media;
    struct nvmf_order order;    /* of the writes that have their data */
    struct nvmf_order arrivals; /* of all that have arrived */
    uint32_t twins;             /* pairs of controllers of the same host */
    uint64_t patience_us;       /* next check of patience.c; 0: nothing waits */
    uint32_t overdue; /* waiting commands that patience.c has to look at */
    struct nvmf_scratch scratch;
    struct lba_status lba;
    struct nvmf_request *cid[NVMF_MAX_QPAIRS][CID_LISTS];

    struct latency_monitor latency;
    uint64_t latency_least_us;   /* shorter commands are not counted */
    uint64_t latency_hours;      /* of power-on at the start */
    uint64_t latency_started_us; /* the start */

    uint8_t answers_watched; /* ANSWERS_...; the one test of each answer */
    uint16_t fault_count;    /* fault rules */
    struct nvmf_fault fault[NVMF_FAULTS];
    struct nvmf_queue held; /* requests whose responses rules hold back */
    uint8_t page[4096];     /* scratch memory for Identify data and log pages */
};

#endif
