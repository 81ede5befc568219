/* SPDX-License-Identifier: BSD-2-Clause */
/* Chapter `nvme-tcp`: digests of headers and data, which a script computes bit
 * by bit. */
#include "nvme_tcp_script.h"

/* PDUs with both digests. */
#define CAPSULE_D(sqe) "< [ 04014800 4c000000 " sqe " ]\n"
#define CAPSULE_OF_D(plen, sqe, data)                                          \
    "< [ 0403484c " plen " " sqe " ] [ " data " ]\n"
#define RESPONSE_D(dw0, cid, status)                                           \
    "> [ 05011800 1c000000 " dw0 " 00000000 sqhd 0000 " cid " " status " ]\n"
#define SUCCEEDS_D(cid) RESPONSE_D("00000000", cid, "0000")
#define R2T_D(cid, ttag, offset, len)                                          \
    "> [ 09011800 1c000000 " cid " " ttag " " offset " " len " 00000000 ]\n"
#define C2H_DATA_D(flags, plen, cid, offset, len, data)                        \
    "> [ 07" flags "181c " plen " " cid " 0000 " offset " " len                \
    " 00000000 ] [ " data " ]\n"
#define CONNECT_D(qid, sqsize, cattr, cntlid)                                  \
    CAPSULE_OF_D("50040000",                                                   \
                 CONNECT_SQE(qid, sqsize, cattr, IN_CAPSULE("00040000")),      \
                 CONNECT_DATA(cntlid, "subnqn"))                               \
    RESPONSE_D("cntlid 0000", qid "01", "0000")
#define ADMIN_D                                                                \
    IC("03")                                                                   \
    CONNECT_D("00", "1f", "00", "ffff")                                        \
    CAPSULE_D(SET_CC_SQE("0200", "01004600"))                                  \
    SUCCEEDS_D("0200")
#define HOST_D ADMIN_D "conn 1\n" IC("03") CONNECT_D("01", "1f", "00", "cntlid")
#define WRITE_D(cid, lba, seed)                                                \
    CAPSULE_OF_D("50020000",                                                   \
                 WRITE_SQE(cid, IN_CAPSULE("00020000"), lba, "0000"),          \
                 "data " seed " 512 0")
#define READ_D(cid, lba, seed)                                                 \
    CAPSULE_D(READ_SQE(cid, "00020000", lba, "0000"))                          \
    C2H_DATA_D("07", "20020000", cid, "00000000", "00020000",                  \
               "data " seed " 512 0")                                          \
    SUCCEEDS_D(cid)
#define ASK_D(cid, lba)                                                        \
    CAPSULE_D(WRITE_SQE(cid, AT_HOST("00020000"), lba, "0000"))                \
    R2T_D(cid, "ttag0", "00000000", "00020000")
/* H2CData with this many bytes from there on; `end` is "]" or "]!". */
#define H2C_D(flags, plen, cid, offset, len, data, end)                        \
    "< [ 06" flags "181c " plen " " cid " ttag0 " offset " " len               \
    " 00000000 ] [ " data " " end "\n"
#define WORKS_D CAPSULE_D(FLUSH_SQE("ee00")) SUCCEEDS_D("ee00")

/* clang-format off */
static const struct conf_test tests[] = {
    NVME_TCP_TEST("digest.both", "NVMe TCP 1.0 3.3.1.1",
                  "put both digests where they belong, and check them",
                  HOST_D WRITE_D("0300", "10", "1") SUCCEEDS_D("0300")
                  READ_D("0400", "10", "1") "quiet\n"),
    NVME_TCP_TEST("digest.both-r2t", "NVMe TCP 1.0 3.3.1.1",
                  "take data with digests after R2T",
                  HOST_D ASK_D("0300", "10")
                  H2C_D("07", "20020000", "0300", "00000000", "00020000",
                        "data 2 512 0", "]")
                  SUCCEEDS_D("0300") READ_D("0400", "10", "2")),
    NVME_TCP_TEST("digest.pieces", "NVMe TCP 1.0 3.3.1.1",
                  "check each PDU's digest over the data of this PDU",
                  HOST_D ASK_D("0300", "10")
                  H2C_D("03", "20010000", "0300", "00000000", "00010000",
                        "data 2 256 0", "]")
                  H2C_D("07", "20010000", "0300", "00010000", "00010000",
                        "data 2 256 256", "]")
                  SUCCEEDS_D("0300") READ_D("0400", "10", "2")),
    NVME_TCP_TEST("digest.single-bytes", "NVMe TCP 1.0 3.3.1.1; 3.1",
                  "take digests in segments of one byte",
                  HOST_D "<1 [ 0403484c 50020000 "
                  WRITE_SQE("0300", IN_CAPSULE("00020000"), "10", "0000")
                  " ] [ data 1 512 0 ]\n"
                  SUCCEEDS_D("0300") READ_D("0400", "10", "1")),
    NVME_TCP_TEST("digest.header-alone", "NVMe TCP 1.0 3.3.1.1",
                  "send and take header digests alone",
                  IC("01") "< [ 0401484c 4c040000 "
                  CONNECT_SQE("00", "1f", "00", IN_CAPSULE("00040000")) " ] "
                  CONNECT_DATA("ffff", "subnqn") "\n"
                  RESPONSE_D("cntlid 0000", "0001", "0000")
                  CAPSULE_D(SET_CC_SQE("0200", "01004600")) SUCCEEDS_D("0200")
                  CAPSULE_D(SQE("06", "0300", "00000000", AT_HOST("00100000"),
                                "02000000 zero 20"))
                  "> [ 0705181c 1c100000 0300 0000 00000000 00100000 00000000 "
                  "] 01000000 any 4092\n"
                  SUCCEEDS_D("0300")),
    NVME_TCP_TEST("digest.data-alone", "NVMe TCP 1.0 3.3.1.1",
                  "send and take data digests alone",
                  IC("02") "< 04024848 4c040000 "
                  CONNECT_SQE("00", "1f", "00", IN_CAPSULE("00040000")) " [ "
                  CONNECT_DATA("ffff", "subnqn") " ]\n"
                  RESPONSE("cntlid 0000", "0001", "0000")
                  CAPSULE(SET_CC_SQE("0200", "01004600")) SUCCEEDS("0200")
                  CAPSULE(SQE("06", "0300", "00000000", AT_HOST("00100000"),
                              "02000000 zero 20"))
                  "> 07061818 1c100000 0300 0000 00000000 00100000 00000000 [ "
                  "01000000 zero 4092 ]\n"
                  SUCCEEDS("0300")),
    NVME_TCP_TEST("digest.flag-without-data", "NVMe TCP 1.0 3.6.1",
                  "take a capsule without data that has the flag of data "
                   "digests",
                  HOST_D "< [ 04034800 4c000000 " FLUSH_SQE("0300") " ]\n"
                  SUCCEEDS_D("0300")),
    NVME_TCP_TEST("digest.other-queues", "NVMe TCP 1.0 3.3.1.1",
                  "agree on digests for each connection by itself",
                  ADMIN_D "conn 1\n"
                  IC("00") CONNECT("01", "1f", "00", "cntlid") WORKS),
    NVME_TCP_TEST("digest.hpda", "NVMe TCP 1.0 3.6.1",
                  "align data behind the header digest",
                  ADMIN_D "conn 1\n"
                  IC_REQ("07", "03") IC_RESP("03")
                  CONNECT_D("01", "1f", "00", "cntlid")
                  WRITE_D("0300", "10", "1") SUCCEEDS_D("0300")
                  CAPSULE_D(READ_SQE("0400", "00020000", "10", "0000"))
                  "> [ 07071820 24020000 0400 0000 00000000 00020000 00000000 "
                  "] 00000000 [ data 1 512 0 ]\n"
                  SUCCEEDS_D("0400")),
    NVME_TCP_TEST("digest.success", "NVMe TCP 1.0 3.3.2.1",
                  "send SUCCESS with digests",
                  ADMIN_D "conn 1\n"
                  IC("03") CONNECT_D("01", "1f", "04", "cntlid")
                  WRITE_D("0300", "10", "1") SUCCEEDS_D("0300")
                  CAPSULE_D(READ_SQE("0400", "00020000", "10", "0000"))
                  C2H_DATA_D("0f", "20020000", "0400", "00000000", "00020000",
                             "data 1 512 0")
                  "quiet\n"),

    /* ---- Wrong ones. */
    NVME_TCP_WRONG("digest.wrong-header", "NVMe TCP 1.0 3.3.1.1; 3.5.1",
                   "end the connection for a wrong header digest",
                   HOST_D "< [ 04014800 4c000000 " FLUSH_SQE("0300") " ]!\n"
                   "> 03001800 60000000 0300 .... .... zero 10 04014800 "
                   "4c000000 "
                   FLUSH_SQE("0300") "\ncloses\n"),
    NVME_TCP_WRONG("digest.zero-header", "NVMe TCP 1.0 3.3.1.1; 3.5.1",
                   "tell which header digest came",
                   HOST_D "< 04014800 4c000000 " FLUSH_SQE("0300") " 78563412\n"
                   TERM("60000000", "0300", "78563412",
                        "04014800 4c000000 " FLUSH_SQE("0300"))),
    NVME_TCP_WRONG("digest.wrong-header-data", "NVMe TCP 1.0 3.3.1.1; 3.5.1",
                   "end the connection for a wrong header digest of H2CData, "
                    "and write nothing",
                   HOST_D WRITE_D("0200", "10", "7") SUCCEEDS_D("0200")
                   ASK_D("0300", "10")
                   "< [ 0607181c 20020000 0300 ttag0 00000000 00020000 "
                   "00000000 ]! [ data 2 512 0 ]\n"
                   "> 03001800 30000000 0300 .... .... zero 10 any 24\n"
                   "closes\nconn 2\n"
                   IC("03") CONNECT_D("02", "1f", "00", "cntlid")
                   READ_D("0400", "10", "7")),
    NVME_TCP_WRONG("digest.wrong-connect", "NVMe TCP 1.0 3.3.1.1",
                   "fail a Connect whose data digest is wrong; the next one "
                    "succeeds",
                   IC("03") "< [ 0403484c 50040000 "
                   CONNECT_SQE("00", "1f", "00", IN_CAPSULE("00040000")) " ] [ "
                   CONNECT_DATA("ffff", "subnqn") " ]!\n"
                   RESPONSE_D("00000000", "0001", "4400")
                   CONNECT_D("00", "1f", "00", "ffff")),
    NVME_TCP_WRONG("digest.wrong-capsule", "NVMe TCP 1.0 3.3.1.1",
                   "fail a write whose data digest is wrong, without DNR, and "
                    "write nothing",
                   HOST_D WRITE_D("0200", "10", "7") SUCCEEDS_D("0200")
                   "< [ 0403484c 50020000 "
                   WRITE_SQE("0300", IN_CAPSULE("00020000"), "10", "0000")
                   " ] [ data 1 512 0 ]!\n"
                   RESPONSE_D("00000000", "0300", "44..")
                   READ_D("0400", "10", "7")),
    NVME_TCP_WRONG("digest.wrong-data", "NVMe TCP 1.0 3.3.1.1",
                   "fail a write whose H2CData has a wrong digest",
                   HOST_D WRITE_D("0200", "10", "7") SUCCEEDS_D("0200")
                   ASK_D("0300", "10")
                   H2C_D("07", "20020000", "0300", "00000000", "00020000",
                         "data 2 512 0", "]!")
                   RESPONSE_D("00000000", "0300", "44..")
                   READ_D("0400", "10", "7")),
    NVME_TCP_WRONG("digest.wrong-first-piece", "NVMe TCP 1.0 3.3.1.1",
                   "fail a write if any of its PDUs has a wrong digest",
                   HOST_D WRITE_D("0200", "10", "7") SUCCEEDS_D("0200")
                   ASK_D("0300", "10")
                   H2C_D("03", "20010000", "0300", "00000000", "00010000",
                         "data 2 256 0", "]!")
                   H2C_D("07", "20010000", "0300", "00010000", "00010000",
                         "data 2 256 256", "]")
                   RESPONSE_D("00000000", "0300", "44..")
                   READ_D("0400", "10", "7") WORKS_D),
    NVME_TCP_WRONG("digest.again", "NVMe TCP 1.0 3.3.1.1",
                   "take the repetition of a write that failed for its digest",
                   HOST_D ASK_D("0300", "10")
                   H2C_D("07", "20020000", "0300", "00000000", "00020000",
                         "data 2 512 0", "]!")
                   RESPONSE_D("00000000", "0300", "44..") ASK_D("0300", "10")
                   H2C_D("07", "20020000", "0300", "00000000", "00020000",
                         "data 2 512 0", "]")
                   SUCCEEDS_D("0300") READ_D("0400", "10", "2")),
    NVME_TCP_WRONG("digest.header-missing", "NVMe TCP 1.0 3.5.1",
                   "refuse a PDU without the header digest that was agreed on",
                   HOST_D CAPSULE(FLUSH_SQE("0300"))
                   TERM("20000000", "0100", "01000000", "04004800 48000000")),
    NVME_TCP_WRONG("digest.data-missing", "NVMe TCP 1.0 3.5.1",
                   "refuse data without the digest that was agreed on",
                   HOST_D "< 0401484c 4c020000 zero 64\n"
                   TERM("20000000", "0100", "01000000", "0401484c 4c020000")),
    NVME_TCP_WRONG("digest.header-unexpected", "NVMe TCP 1.0 3.5.1",
                   "refuse a header digest that was not agreed on",
                   HOST "< [ 04014800 4c000000 " FLUSH_SQE("0300") " ]\n"
                   TERM("20000000", "0100", "01000000", "04014800 4c000000")),
    NVME_TCP_WRONG("digest.data-unexpected", "NVMe TCP 1.0 3.5.1",
                   "refuse a data digest that was not agreed on",
                   HOST "< 04024848 4c020000 zero 64\n"
                   TERM("20000000", "0100", "01000000", "04024848 4c020000")),
};
/* clang-format on */

CONF_TESTS(conf_tests_nvme_tcp_digest, "nvme-tcp", tests);
