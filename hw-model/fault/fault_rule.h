/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault rules of the hardware: what each one matches and what it does.
 * Reference: docs/faults.md.
 *
 * The table belongs to the machine.  The wire adapter of each port, the adapter
 * below the media engine and the RNIC ask it about each frame, request or
 * message while it has rules for them.  Without rules nobody asks.
 *
 * It has one execution context, and no state that is saved: rules belong to the
 * test bench, not to the drive.
 */
#ifndef ESSD_HW_FAULT_RULE_H
#define ESSD_HW_FAULT_RULE_H

#include "lib/fault_trigger.h"
#include "lib/util.h"

enum { FAULT_RULES = 32, FAULT_CONDITIONS = 8, FAULT_PORTS = 2 };

/* Where a rule looks. */
enum fault_site {
    FAULT_WIRE,  /* frames between a port and its cable */
    FAULT_MEDIA, /* requests from the media engine to the medium */
    FAULT_RDMA,  /* request messages that the RNIC is about to answer, and its
                    transfers of payloads */
    FAULT_NAND,  /* operations of the NAND array */
    FAULT_SITES
};

enum fault_action {
    FAULT_NONE,
    FAULT_DROP,      /* wire: the frame is lost */
    FAULT_CORRUPT,   /* wire: one bit is inverted; argument: which, from 1;
                        0: a random one */
    FAULT_DUPLICATE, /* wire: the frame arrives twice */
    FAULT_DELAY,     /* wire, media: the argument is nanoseconds */
    FAULT_REORDER,   /* wire: the argument is how many later frames go first */
    FAULT_ERROR,     /* media, nand: the request or operation fails */
    FAULT_STUCK,     /* media: the request ends when the rule is removed */
    FAULT_NAK,       /* rdma: the argument is the NAK code */
    FAULT_RNR,       /* rdma: the argument is the RNR timer code */
    FAULT_BITS,      /* nand, media: the argument is the number of wrong bits of
                        a unit, or of a word of the cache */
    FAULT_DIE,       /* nand: the die never answers again */
    FAULT_TRANSFER,  /* nand: a parity error between DRAM and die; rdma: between
                        DRAM and RNIC */
    FAULT_POWER_CUT, /* any: the machine's power fails at this instant; nand:
                        the argument is enum fault_moment */
    FAULT_CHECKSUM,  /* wire: the checksum of a TCP segment is wrong; rdma: the
                        CRC of an FPDU of a host */
    FAULT_ZERO_WINDOW, /* wire: a TCP segment announces window 0 */
    FAULT_ACTIONS
};

/* When the power fails at an operation of the NAND array. */
enum fault_moment {
    FAULT_BEFORE, /* before the operation changes anything */
    FAULT_DURING, /* while it programs or erases; with a read, before it */
};

/* Bits of fault_rule.directions. */
enum fault_direction {
    FAULT_IN = 1, /* to the drive */
    FAULT_OUT = 2 /* from the drive */
};

/* The part of a frame to which a condition's offset refers. */
enum fault_layer {
    FAULT_AT_ETH,  /* destination address; offset 12 is the type after tags */
    FAULT_AT_VLAN, /* the first tag's TCI */
    FAULT_AT_IPV4, /* IPv4 header */
    FAULT_AT_IPV6, /* IPv6 header */
    FAULT_AT_UDP,  /* UDP header */
    FAULT_AT_BTH,  /* base transport header of RoCE */
    FAULT_AT_SEND, /* payload of an RC SEND ONLY or SEND FIRST: a capsule */
    FAULT_AT_TCP,  /* TCP header */
    FAULT_AT_TCP_DATA, /* payload of a TCP segment, if it has any */
    FAULT_LAYERS
};

/* True if the layer exists and low <= (field & mask) <= high.  The field is
 * big-endian, but little-endian in FAULT_AT_SEND as in NVMe. */
struct fault_condition {
    uint8_t layer; /* enum fault_layer */
    uint8_t width; /* bytes, 1..8 */
    uint16_t offset;
    uint64_t mask;
    uint64_t low;
    uint64_t high;
};

/* Bits of fault_rule.ops for FAULT_MEDIA. */
enum fault_media_op {
    FAULT_OP_READ = 1,
    FAULT_OP_WRITE = 2,
    FAULT_OP_ZEROES = 4,
    FAULT_OP_FLUSH = 8,
};

/* The parts of a place in the NAND array, in the order of struct nand_event. */
enum { FAULT_PLACES = 7 };

struct fault_range {
    uint16_t low;
    uint16_t high;
};

struct fault_rule {
    uint32_t id; /* 0: this entry is free */
    uint8_t site;
    uint8_t action;
    uint8_t ports;      /* wire: a bit for each port */
    uint8_t directions; /* wire, rdma: enum fault_direction */
    uint8_t num_conditions;
    bool is_on;
    uint32_t ops;   /* media: enum fault_media_op; rdma: a bit for each kind of
                       request, enum fault_request; nand: a bit for each kind
                       of operation, enum nand_op_kind */
    uint32_t qpn;   /* rdma: 0: any queue pair */
    uint64_t first; /* media: range of byte offsets, `end` is behind the last */
    uint64_t end;
    uint64_t argument;
    struct fault_range places[FAULT_PLACES]; /* nand */
    struct fault_condition conditions[FAULT_CONDITIONS];
    struct fault_trigger trigger;
};

/* Kinds of request messages: bits of fault_rule.ops for FAULT_RDMA. */
enum fault_request {
    FAULT_REQUEST_SEND = 1,
    FAULT_REQUEST_WRITE = 2,
    FAULT_REQUEST_READ = 4,
};

struct fault_table {
    struct fault_rule rules[FAULT_RULES];
    uint8_t active[FAULT_SITES]; /* rules that are on, by site */
    uint32_t generation;         /* changes with each change of the table */
};

/* What to do with one frame, request or message. */
struct fault_verdict {
    enum fault_action action; /* FAULT_NONE: nothing */
    uint32_t id;              /* of the rule that fired */
    uint64_t argument;
    uint64_t random; /* for actions that choose something */
    uint32_t tcp_at; /* where the TCP header of a frame begins; 0: no TCP */
};

/**
 * Read one rule, as the tools write it: words `key=value` separated by single
 * spaces.  The keys are listed in docs/faults.md, section "Between the tools
 * and the model".
 *
 * @param wrong  gets the place in `text` of the word that is wrong, on failure
 * @return whether the text is a rule; if not, `rule` is undefined
 */
MUST_USE bool fault_rule_parse(const char *text, struct fault_rule *rule,
                               const char **wrong);

/** Add a rule.  @return false when the table is full or the id exists */
MUST_USE bool fault_table_add(struct fault_table *table,
                              const struct fault_rule *rule);

/** Remove a rule.  @return false when there is none with this id */
MUST_USE bool fault_table_remove(struct fault_table *table, uint32_t id);

/** Turn a rule on or off.  @return false when there is none with this id */
MUST_USE bool fault_table_turn(struct fault_table *table, uint32_t id,
                               bool is_on);

/** The rule with this id, or NULL. */
const struct fault_rule *fault_table_find(const struct fault_table *table,
                                          uint32_t id);

static inline bool fault_table_has(const struct fault_table *table,
                                   enum fault_site site)
{
    return table != NULL && table->active[site] != 0;
}

/** Judge a frame.  The first rule that fires decides. */
struct fault_verdict fault_judge_frame(struct fault_table *table,
                                       unsigned int port,
                                       enum fault_direction direction,
                                       const uint8_t *frame, uint32_t len);

/** Judge a request to the medium, by all rules for the media except those for
 * the cache; a flush has no range. */
struct fault_verdict fault_judge_media(struct fault_table *table,
                                       enum fault_media_op op, uint64_t first,
                                       uint64_t end);

/** Judge a read of the media engine's cache.  @return the number of wrong bits
 * in a word of what is read */
MUST_USE uint32_t fault_judge_cache(struct fault_table *table, uint64_t first,
                                    uint64_t end);

/** Judge a request message of a queue pair, by all rdma rules except those of
 * transfers and FPDUs. */
struct fault_verdict fault_judge_request(struct fault_table *table,
                                         uint32_t qpn,
                                         enum fault_request request);

/** Judge a transfer of a packet's data between RNIC and DRAM. @return whether
 * the data has a parity error */
MUST_USE bool fault_judge_transfer(struct fault_table *table, uint32_t qpn,
                                   enum fault_direction direction);

/** Judge an FPDU of iWARP that a host has sent. @return whether its CRC is to
 * be wrong */
MUST_USE bool fault_judge_fpdu(struct fault_table *table, uint32_t qpn);

/**
 * Judge a stage of an operation of the NAND array.
 *
 * @param kinds    the bit of its kind
 * @param actions  bits of what a rule may do at this stage
 * @param place    FAULT_PLACES parts; a negative one matches every rule
 */
struct fault_verdict fault_judge_nand(struct fault_table *table, uint32_t kinds,
                                      uint32_t actions, const int32_t *place);

#endif
