/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages and private data of the diagnostic echo service: docs/echo.md.
 *
 *  - struct ping_info, the only message of rping's protocol
 *    (rdma-core, librdmacm/examples/rping.c, struct rping_rdma_info);
 *  - two formats of our own, which rping neither sends nor reads: what a peer
 *    may request in its REQ, and the connection's memory in our REP.
 */
#ifndef ESSD_ECHO_ECHO_WIRE_H
#define ESSD_ECHO_ECHO_WIRE_H

#include "lib/util.h"

enum { /* byte offsets; big-endian */
       PING_INFO_ADDR = 0,
       PING_INFO_RKEY = 8,
       PING_INFO_SIZE = 12,
       PING_INFO_LEN = 16,
};

/* The location of the peer's source buffer, later of its sink. */
struct ping_info {
    uint64_t addr;
    uint32_t rkey;
    uint32_t size_bytes;
};

/** @return false when it is not exactly PING_INFO_LEN bytes */
MUST_USE bool ping_info_parse(struct ping_info *info, const uint8_t *buf,
                              size_t len);
/** Write PING_INFO_LEN bytes. */
void ping_info_emit(const struct ping_info *info, uint8_t *buf);

enum {                     /* byte offsets; big-endian */
       ECHO_REQ_MAGIC = 0, /* "EDQ", 1 */
       /* Number of receive buffers; 0: all that there are. */
       ECHO_REQ_BUFFERS = 4,
       ECHO_REQ_RESERVED = 5,
       /* How long a used buffer is held before it is posted again. */
       ECHO_REQ_HOLD_MS = 6,
       ECHO_REQ_LEN = 8,
};

/* The request in the REQ's private data, which follows the IP header. */
struct echo_req {
    uint8_t buffers;
    uint16_t hold_ms;
};

/**
 * @return false when the bytes are too short or of another format: no request
 */
MUST_USE bool echo_req_parse(struct echo_req *req, const uint8_t *buf,
                             size_t len);
/** Write ECHO_REQ_LEN bytes. */
void echo_req_emit(const struct echo_req *req, uint8_t *buf);

enum {                           /* byte offsets; big-endian */
       ECHO_REP_MAGIC = 0,       /* "EDR", 1 */
       ECHO_REP_ADDR = 4,        /* address of the region, 8 bytes */
       ECHO_REP_RKEY = 12,       /* READ and WRITE */
       ECHO_REP_SIZE = 16,       /* size of the region */
       ECHO_REP_READ_ADDR = 20,  /* address of the readable region, 8 bytes */
       ECHO_REP_READ_RKEY = 28,  /* READ only */
       ECHO_REP_READ_SIZE = 32,  /* size of the readable region */
       ECHO_REP_WRITE_RKEY = 36, /* WRITE only; the region's address and size */
       ECHO_REP_BUFFERS = 40,    /* number of receive buffers, 2 bytes */
       ECHO_REP_BUFFER_SIZE = 42,
       ECHO_REP_LEN = 44,
};

/*
 * The REP's private data: three keys to one piece of memory of this connection.
 * The memory is zeroed when the connection is made.
 *
 *     addr               size_bytes to READ and WRITE with rkey, or to WRITE
 * with write_rkey addr + size_bytes  the receive buffers in order: message k
 * (from 0) of the connection is placed in buffer k modulo `buffers`
 *
 * read_rkey covers all of it: read_addr == addr, read_size_bytes == size_bytes
 * + buffers * buffer_size_bytes.
 */
struct echo_rep {
    uint64_t addr;
    uint32_t rkey;
    uint32_t size_bytes;
    uint64_t read_addr;
    uint32_t read_rkey;
    uint32_t read_size_bytes;
    uint32_t write_rkey;
    uint16_t buffers;
    uint16_t buffer_size_bytes;
};

/** @return false when the bytes are too short or of another format */
MUST_USE bool echo_rep_parse(struct echo_rep *rep, const uint8_t *buf,
                             size_t len);
/** Write ECHO_REP_LEN bytes. */
void echo_rep_emit(const struct echo_rep *rep, uint8_t *buf);

#endif
