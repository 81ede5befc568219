/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trace points: what they cost when off, and the records they make when on.
 *
 * A layer with trace points gets a `struct trace` from its owner, or uses
 * trace_off.  A trace point is written
 *
 *     if (trace_is_on(trace, TRACE_GROUP_QP)) {
 *         struct trace_record record = {...};
 *         trace->emit(trace->ctx, &record, NULL);
 *     }
 *
 * Off, it costs two loads and a branch. docs/tracing.md is for users;
 * tools/essd/observe/trace.py reads the lists below.
 */
#ifndef ESSD_LIB_TRACE_H
#define ESSD_LIB_TRACE_H

#include "lib/bytes.h"
#include "lib/util.h"

/* The groups of events, which are bits of the mask. */
enum trace_group {
    TRACE_GROUP_QP,       /* states of queue pairs */
    TRACE_GROUP_CM,       /* connection management messages, Connect */
    TRACE_GROUP_COMMANDS, /* NVMe commands, at their end */
    TRACE_GROUP_MEDIA,    /* media operations, of firmware and devices */
    TRACE_GROUP_ROCE,     /* NAKs, timeouts, retransmissions, CNPs */
    TRACE_GROUP_PATH,     /* when commands and responses pass the RNIC */
    TRACE_GROUP_TCP,      /* connections of the TCP offload engine */
    TRACE_GROUP_FTL,      /* the translation layer: superblocks, rows, moves */
    TRACE_GROUP_NAND,     /* commands of the NAND controller; what dies do */
    TRACE_GROUP_PDUS,     /* PDUs of NVMe/TCP */
    TRACE_GROUP_AOE,      /* commands of ATA over Ethernet */
    TRACE_GROUPS
};

/* What made a record. */
enum trace_source {
    TRACE_SOURCE_FIRMWARE,
    TRACE_SOURCE_MGMT, /* the management block: HELLO and LOST */
    TRACE_SOURCE_RNIC,
    TRACE_SOURCE_MEDIA, /* the media engine */
    TRACE_SOURCE_NAND,  /* the NAND controller */
    TRACE_SOURCE_TOE,   /* the TCP offload engine */
    TRACE_SOURCES
};

/*
 * The events: group, name, and the names of the record's arguments in order.  A
 * name that ends in ":64" takes two arguments, low word first; ":ip" takes
 * four: an IPv6 or IPv4-mapped address in big-endian words.  Events of group
 * ALL are always recorded.
 */
/* clang-format off */
#define TRACE_EVENTS(X)                                                        \
    X(ALL, TEXT, "")                                                           \
    X(ALL, HELLO, "version mask")                                              \
    X(ALL, LOST, "firmware device")                                            \
    X(QP, QP_STATE, "from to reason")                                          \
    X(ROCE, NAK_SENT, "syndrome psn")                                          \
    X(ROCE, NAK_RECEIVED, "syndrome psn")                                      \
    X(ROCE, TIMEOUT, "psn retries")                                            \
    X(ROCE, RETRANSMIT, "psn packets")                                         \
    X(ROCE, CNP_SENT, "")                                                      \
    X(ROCE, CNP_RECEIVED, "")                                                  \
    X(CM, CM_SENT, "message reason local remote peer:ip")                      \
    X(CM, CM_RECEIVED, "message reason local remote peer:ip")                  \
    X(CM, CONNECT, "status qid cntlid field peer:ip")                          \
    X(COMMANDS, COMMAND, "opcode nsid lba:64 bytes status wait_us fetch_us "   \
                         "media_us respond_us total_us")                       \
    X(MEDIA, MEDIA, "opcode lba:64 blocks status us")                          \
    X(MEDIA, ENGINE_STARTED, "opcode lba:64 blocks")                           \
    X(MEDIA, ENGINE_ENDED, "opcode lba:64 blocks status us")                   \
    X(PATH, COMMAND_PATH, "arrived_ns:64 acknowledged_ns:64")                  \
    X(PATH, RESPONSE_SENT, "psn port again")                                   \
    X(NAND, NAND_STARTED, "opcode channel die planes block wordline entries "  \
                          "cause")                                             \
    X(NAND, NAND_ENDED, "opcode channel die planes block wordline entries "    \
                        "status us cause")                                     \
    X(TCP, TCP_OPENED, "tid port local remote peer:ip")                        \
    X(TCP, TCP_ENDED, "tid end local remote peer:ip")                          \
    X(TCP, TCP_RETRANSMIT, "tid seq bytes")                                    \
    X(TCP, TCP_TIMEOUT, "tid us again")                                        \
    X(TCP, TCP_RECOVERY, "tid is_over cwnd ssthresh")                          \
    X(TCP, TCP_WINDOW, "tid is_own bytes")                                     \
    X(TCP, TCP_REFUSED, "pool local remote peer:ip")                           \
    X(QP, TERMINATE_SENT, "error")                                             \
    X(QP, TERMINATE_RECEIVED, "error headers segment")                         \
    X(NAND, NAND_PHASE, "phase opcode channel die block wordline cause "       \
                        "is_cut begun_ns:64 ns")                               \
    X(FTL, FTL_SUPERBLOCK, "superblock state stream valid capacity "           \
                           "erasures cause free")                              \
    X(FTL, FTL_VICTIM, "superblock cause valid capacity erasures age:64 "      \
                       "free")                                                 \
    X(FTL, FTL_ROW, "superblock row stream cause units buffer free "           \
                    "host_units:64 programmed:64")                             \
    X(FTL, FTL_ROW_DONE, "superblock row stream cause status buffer free")     \
    X(FTL, FTL_MOVE, "superblock row cause units")                             \
    X(FTL, FTL_WAIT, "reason is_over buffer free")                             \
    X(FTL, FTL_PHASE, "activity phase superblock")                             \
    X(FTL, FTL_REBUILT, "superblock row cause units is_complete us")           \
    X(PDUS, PDU_RECEIVED, "type flags qid cid tag offset bytes")               \
    X(PDUS, PDU_SENT, "type flags qid cid tag offset bytes")                   \
    X(PDUS, PDU_REFUSED, "type qid fes fei")                                   \
    X(AOE, AOE_COMMAND, "ata slot tag lba:64 sectors port station:64")         \
    X(AOE, AOE_END, "ata slot tag error repeat us")                            \
    X(AOE, AOE_REPEATED, "slot tag lba:64 done")
/* clang-format on */

enum trace_type {
#define TRACE_TYPE(group, name, words) TRACE_##name,
    TRACE_EVENTS(TRACE_TYPE)
#undef TRACE_TYPE
        TRACE_TYPES
};

enum { TRACE_VERSION = 2, TRACE_ARGS = 11, TRACE_RECORD_LEN = 64 };

/* Byte offsets in a record.  All fields are little-endian. */
enum {
    TRACE_AT_TIME = 0,     /* 64 bits: virtual time in nanoseconds */
    TRACE_AT_TYPE = 8,     /* 16 bits: enum trace_type */
    TRACE_AT_SOURCE = 10,  /* 8 bits: enum trace_source */
    TRACE_AT_TEXTS = 11,   /* 8 bits: number of TEXT records that follow */
    TRACE_AT_QPN = 12,     /* 32 bits; 0: none */
    TRACE_AT_REQUEST = 16, /* 32 bits; TRACE_NO_REQUEST: none */
    TRACE_AT_ARGS = 20,    /* 32 bits each; characters in a TEXT record */
};
_Static_assert(TRACE_AT_ARGS + 4 * TRACE_ARGS == TRACE_RECORD_LEN,
               "a record is 64 bytes");

enum { TRACE_TEXT_LEN = 4 * TRACE_ARGS };
#define TRACE_NO_REQUEST UINT32_MAX

struct trace_record {
    uint64_t time_ns; /* emit() sets this and the source */
    uint8_t source;
    uint16_t type;
    uint8_t texts;
    uint32_t qpn;
    uint32_t request;
    uint32_t arg[TRACE_ARGS];
};

struct trace {
    /*
     * BIT(enum trace_group) of the events that are wanted.  Can change at any
     * time.
     */
    const uint32_t *mask;
    void *ctx;

    /**
     * Record one event, or count it as lost.
     *
     * @param text  recorded in TEXT records that follow; NULL or "": none
     */
    void (*emit)(void *ctx, const struct trace_record *record,
                 const char *text);

    /* The clock of the records, in microseconds. */
    uint64_t (*now_us)(void *ctx);
};

/** A trace that never records anything. */
extern const struct trace trace_off;

/** Whether events of any of these groups are wanted: BIT(group), or-ed. */
static inline bool trace_wants(const struct trace *trace, uint32_t groups)
{
    return __builtin_expect(
        (__atomic_load_n(trace->mask, __ATOMIC_RELAXED) & groups) != 0, 0);
}

static inline bool trace_is_on(const struct trace *trace,
                               enum trace_group group)
{
    return trace_wants(trace, BIT(group));
}

/** Write all bytes of a record. */
static inline void trace_record_emit(uint8_t *buf,
                                     const struct trace_record *record)
{
    put_le64(buf + TRACE_AT_TIME, record->time_ns);
    put_le16(buf + TRACE_AT_TYPE, record->type);
    buf[TRACE_AT_SOURCE] = record->source;
    buf[TRACE_AT_TEXTS] = record->texts;
    put_le32(buf + TRACE_AT_QPN, record->qpn);
    put_le32(buf + TRACE_AT_REQUEST, record->request);
    for (unsigned int i = 0; i < TRACE_ARGS; i++) {
        put_le32(buf + TRACE_AT_ARGS + 4 * i, record->arg[i]);
    }
}

/** Store an IP address (16 bytes) as four arguments. */
static inline void trace_put_ip(uint32_t *arg, const uint8_t *ip)
{
    for (unsigned int i = 0; i < 4; i++) {
        arg[i] = get_be32(ip + 4 * i);
    }
}

#endif
