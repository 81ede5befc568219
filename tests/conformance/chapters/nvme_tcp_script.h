/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scripts of the bytes that a host sends by NVMe/TCP, and of those that the
 * drive has to answer.  A script has one command a line; "#" begins a comment.
 *
 *   < BYTES         the host sends; in segments of 1400 bytes
 *   <N BYTES        the same in segments of N bytes
 *   > BYTES         the drive's next bytes
 *   quiet           the drive sends nothing more now
 *   closes          the drive has sent all, and sends a FIN; this end, too
 *   resets          the drive sends a RST, and nothing before it
 *   ends            the drive ends the connection in either way; what it sends
 *                   before is not looked at
 *   fin, rst        the host sends it
 *   mute            the host acknowledges nothing any more
 *   window N        the host's receive window, from now on
 *   pass N          N seconds pass
 *   host N          the connections that are opened from now on are host N's,
 *                   0..63; it is host 0's turn first
 *   conn N          go on with connection N, 0..159, and its host if it is open
 *   to PORT, port N, v6    of a connection that is not open yet
 *   write CID S LEN answer the R2Ts for a command with data S, in H2CData PDUs
 *                   of 8 KiB, without digests
 *   read CID S LEN  the drive sends this data in C2HData PDUs, without digests
 *   tls [discovery] the handshake of TLS, with the key for the drive or for
 *                   discovery; "write", "read" and "quiet" are for plain
 *                   connections only
 *   virtual         first: the test needs virtual time
 *
 * BYTES are hexadecimal digits, "..", which is any byte, and these words:
 *
 *   zero N, any N   N zeroes; N bytes of any value
 *   data S N O      N bytes of data S, from its byte O on
 *   [ ... ]         around bytes: their CRC-32C follows; ]! : a wrong one
 *   sqhd            two bytes of any value
 *   cntlid          two bytes: of the host's controller; those that come are
 *                   kept
 *   ttagN           two bytes, N is 0..9: those that come are kept
 *   subnqn, discnqn, hostnqn, hostid    of Connect's data; 256 and 16 bytes
 */
#ifndef ESSD_CONFORM_NVME_TCP_SCRIPT_H
#define ESSD_CONFORM_NVME_TCP_SCRIPT_H

#include "conform.h"

enum { NVME_TCP_SCRIPT_HOSTS = 64 };

struct script;

/** Play the script in the text of the test's row, with a drive that serves
 * NVMe/TCP. */
void nvme_tcp_script_run(struct conf *conf);

/** The same with a drive that the test has prepared. */
void nvme_tcp_script_play(struct conf *conf);

/** For tests that play their script in parts. */
void nvme_tcp_script_begin(struct conf *conf, bool is_virtual);
struct script *nvme_tcp_script_new(struct conf *conf);
void nvme_tcp_script_lines(struct script *script, const char *lines);
void nvme_tcp_script_end(struct script *script);

/* A row of such a test. */
#define NVME_TCP_TEST(test_id, clause, purpose, ...)                           \
    CONF_TEST(test_id, clause, purpose, nvme_tcp_script_run,                   \
              .needs = CONF_NEEDS_NVME_TCP, .text = __VA_ARGS__)
/* It breaks a rule on purpose. */
#define NVME_TCP_WRONG(test_id, clause, purpose, ...)                          \
    CONF_TEST(test_id, clause, purpose, nvme_tcp_script_run,                   \
              .needs = CONF_NEEDS_NVME_TCP, .is_malformed = true,              \
              .text = __VA_ARGS__)

/* ---- PDUs as text; the arguments are digits. */

/* ICReq and ICResp.  MAXH2CDATA is 256 KiB. */
#define IC_REQ(hpda, digests)                                                  \
    "< 00008000 80000000 0000 " hpda " " digests " 00000000 zero 112\n"
#define IC_RESP(digests)                                                       \
    "> 01008000 80000000 0000 00 " digests " 00000400 zero 112\n"
#define IC(digests) IC_REQ("00", digests) IC_RESP(digests)

/* SGL 1: data in the capsule, or at the host. */
#define IN_CAPSULE(len) "0000000000000000 " len " 000000 01 "
#define AT_HOST(len)    "0000000000000000 " len " 000000 5a "
#define NO_DATA         AT_HOST("00000000")

/* A submission queue entry; cdw is dwords 10 to 15. */
#define SQE(opcode, cid, nsid, sgl, cdw)                                       \
    opcode "40" cid " " nsid " zero 16 " sgl cdw " "
#define RW_SQE(opcode, cid, sgl, lba, nlb)                                     \
    SQE(opcode, cid, "01000000", sgl, lba "00000000000000 " nlb "0000 zero 12")
#define WRITE_SQE(cid, sgl, lba, nlb) RW_SQE("01", cid, sgl, lba, nlb)
#define READ_SQE(cid, len, lba, nlb)  RW_SQE("02", cid, AT_HOST(len), lba, nlb)
#define CONNECT_SQE(qid, sqsize, cattr, sgl)                                   \
    "7f40" qid "01 01 zero 19 " sgl "0000 " qid "00 " sqsize "00 " cattr       \
    "00 c0d40100 zero 12 "
#define CONNECT_DATA(cntlid, subnqn)                                           \
    "hostid " cntlid " zero 238 " subnqn " hostnqn zero 256"
#define GET_PROPERTY_SQE(cid, offset)                                          \
    "7f40" cid " 04 zero 19 " NO_DATA "00 zero 3 " offset "000000 zero 16 "
#define SET_CC_SQE(cid, value)                                                 \
    "7f40" cid " 00 zero 19 " NO_DATA "00 zero 3 14000000 " value " zero 12 "
#define KEEP_ALIVE_SQE(cid) SQE("18", cid, "00000000", NO_DATA, "zero 24")
#define FLUSH_SQE(cid)      SQE("00", cid, "01000000", NO_DATA, "zero 24")

/* Capsules without digests. */
#define CAPSULE(sqe)                "< 04004800 48000000 " sqe "\n"
#define CAPSULE_OF(plen, sqe, data) "< 04004848 " plen " " sqe " " data "\n"
/* The response; dw0 of 4 bytes, status with the phase bit, which is 0. */
#define RESPONSE(dw0, cid, status)                                             \
    "> 05001800 18000000 " dw0 " 00000000 .... 0000 " cid " " status "\n"
#define SUCCEEDS(cid) RESPONSE("00000000", cid, "0000")

/* Connect; the CID is that of the queue, 0100 to 0101. */
#define CONNECT(qid, sqsize, cattr, cntlid)                                    \
    CAPSULE_OF("48040000",                                                     \
               CONNECT_SQE(qid, sqsize, cattr, IN_CAPSULE("00040000")),        \
               CONNECT_DATA(cntlid, "subnqn"))                                 \
    RESPONSE("cntlid 0000", qid "01", "0000")
#define ADMIN                                                                  \
    IC("00")                                                                   \
    CONNECT("00", "1f", "00", "ffff")                                          \
    CAPSULE(SET_CC_SQE("0200", "01004600"))                                    \
    SUCCEEDS("0200")
#define IO(cattr) "conn 1\n" IC("00") CONNECT("01", "1f", cattr, "cntlid")
/* Both queues; the I/O queue is connection 1, with flow control. */
#define HOST ADMIN IO("00")

/* Data PDUs without digests; DATAO and DATAL have 4 bytes. */
#define R2T(cid, ttag, offset, len)                                            \
    "> 09001800 18000000 " cid " " ttag " " offset " " len " 00000000\n"
#define H2C_DATA(flags, plen, cid, ttag, offset, len, data)                    \
    "< 06" flags "1818 " plen " " cid " " ttag " " offset " " len              \
    " 00000000 " data "\n"
#define C2H_DATA(flags, plen, cid, offset, len, data)                          \
    "> 07" flags "1818 " plen " " cid " 0000 " offset " " len                  \
    " 00000000 " data "\n"
/* C2HTermReq, with the header that was wrong; then the end. */
#define TERM(plen, fes, fei, header)                                           \
    "> 03001800 " plen " " fes " " fei " zero 10 " header "\ncloses\n"
/* An I/O queue works: Flush. */
#define WORKS CAPSULE(FLUSH_SQE("ee00")) SUCCEEDS("ee00")
/* A block that is written in a capsule, and one that is read. */
#define WRITE_BLOCK(cid, lba, seed)                                            \
    CAPSULE_OF("48020000",                                                     \
               WRITE_SQE(cid, IN_CAPSULE("00020000"), lba, "0000"),            \
               "data " seed " 512 0")
#define READ_BLOCK(cid, lba, seed)                                             \
    CAPSULE(READ_SQE(cid, "00020000", lba, "0000"))                            \
    C2H_DATA("04", "18020000", cid, "00000000", "00020000",                    \
             "data " seed " 512 0")                                            \
    SUCCEEDS(cid)
/* A write whose data is at the host. */
#define ASK_WRITE(cid, len, lba, nlb)                                          \
    CAPSULE(WRITE_SQE(cid, AT_HOST(len), lba, nlb))

#endif
