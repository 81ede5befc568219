/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scripts of the bytes that an iWARP peer sends and gets, on a TCP connection
 * to the drive's port 4420: all tests of the chapter `iwarp` are such a text. A
 * script has one command a line; "#" begins a comment.  Nothing here uses
 * net/mpa, net/iwarp or net/wire, so that a field which these read wrongly in
 * both directions is noticed.
 * For another target than ours, requests ask for CRC, and a reply may have any
 * IRD and ORD.
 * Spec: RFC 5044 section 4 (FPDUs and their CRC).
 *
 *   set KEY VALUE   a setting, before the connection: the drive restarts;
 *                   natively only
 *   v6, port N      the way to the drive, before the connection
 *   open            TCP's handshake; every script begins with one
 *   again           the same for a further connection
 *   > BYTES         the peer sends these bytes
 *   < BYTES         the drive's next bytes
 *   f> BYTES        the peer sends an FPDU with this ULPDU; length, padding and
 *                   CRC are added
 *   f< BYTES        the drive's next FPDU, with right padding and CRC
 *   nocrc           the CRCs of FPDUs are 0 from now on, both ways
 *   badcrc          the CRC of the next FPDU is wrong
 *   cut N           segments have at most N bytes from now on
 *   window N        the peer has room for N bytes from now on, and takes none
 *                   that do not fit
 *   hold, go        what is sent waits, and leaves in one stream of segments
 *   fin             the peer sends a FIN
 *   < fin           the drive sends a FIN, after all bytes that were expected
 *   < rst           or a RST
 *   < end           or one of both
 *   rst S           the drive sends a RST, within S seconds; natively only
 *   quiet           the drive sends nothing for 0.1 s
 *   wait S          S seconds pass; more than 2 natively only
 *
 *   BYTES           hex digits in any groups; "?" is any digit; "text"; zN for
 *                   N zeros; xN for N bytes of 5a; padN for zeros up to the
 *                   N-th byte of this line; *N for N bytes of any value;
 *                   (expected) @N, the next N bytes are kept, and @ for them;
 *                   @=N for the first N of them; @+N for them, with N added to
 *                   the number in the last 8
 */
#ifndef ESSD_CONFORM_IWARP_SCRIPT_H
#define ESSD_CONFORM_IWARP_SCRIPT_H

#include "conform.h"

/** Play the script in the text of the test's row, on a drive that serves NVMe
 * over iWARP. */
void iwarp_script_run(struct conf *conf);

/** NVMe over iWARP is off by default: a drive of ours is restarted with it. */
void iwarp_service_start(struct conf *conf);

/** After the reply of MPA: siw does not look at an FPDU that comes at once,
 * although the host may send it then (RFC 5044 section 7.1.2). */
void iwarp_let_begin(struct conf *conf);

/** The drive does not serve NVMe over iWARP any more. */
void iwarp_script_off(struct conf *conf);

/* ---- Pieces of scripts. */

/* The request of nvme-rdma over siw for the admin queue, and its answer: CRC by
 * the drive's wish, IRD 0, ORD 16. */
#define IW_PRIVATE "0000 0000 2000 1f00 z24"
#define IW_REQUEST                                                             \
    "> \"MPA ID Req Frame\" 10 02 0024 0080 0000 " IW_PRIVATE "\n"
#define IW_REPLY "< \"MPA ID Rep Frame\" 50 02 0024 0000 0010 0000 2000 z28\n"
#define IW_OPEN  "open\n" IW_REQUEST IW_REPLY

/* Connect to the discovery subsystem: the capsule, the READ of its data, the
 * data, and a response with status 0. */
#define IW_CONNECT                                                             \
    "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "          \
    "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"             \
    "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 78563412 "      \
    "0201888800000000\n"                                                       \
    "f> c1 42 @ 000102030405060708090a0b0c0d0e0f ffff pad270 "                 \
    "\"nqn.2014-08.org.nvmexpress.discovery\" pad526 "                         \
    "\"nqn.2014-08.org.example:host\" pad1038\n"                               \
    "f< 41 43 00000000 00000000 00000001 00000000 *8 *2 0000 0100 0000\n"

#endif
