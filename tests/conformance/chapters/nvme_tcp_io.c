/* SPDX-License-Identifier: BSD-2-Clause */
/* Chapter `nvme-tcp`: data of reads and writes. */
#include "nvme_tcp_script.h"

/* clang-format off */
static const struct conf_test tests[] = {
    NVME_TCP_TEST("io.in-capsule", "NVMe TCP 1.0 3.3.2.2",
                  "write a block that is in the capsule",
                  HOST WRITE_BLOCK("0300", "10", "1") SUCCEEDS("0300")
                  READ_BLOCK("0400", "10", "1") "quiet\n"),
    NVME_TCP_TEST("io.in-capsule-4k", "NVMe TCP 1.0 3.3.2.2",
                  "write as much as fits into a capsule",
                  HOST
                  CAPSULE_OF("48100000",
                             WRITE_SQE("0300", IN_CAPSULE("00100000"), "10",
                                       "0700"),
                             "data 2 4096 0")
                  SUCCEEDS("0300")
                  CAPSULE(READ_SQE("0400", "00100000", "10", "0700"))
                  "read 0400 2 4096\n"
                  SUCCEEDS("0400")),
    NVME_TCP_TEST("io.r2t", "NVMe TCP 1.0 3.3.2.2",
                  "ask for a block with one R2T",
                  HOST ASK_WRITE("0300", "00020000", "11", "0000")
                  R2T("0300", "ttag0", "00000000", "00020000")
                  H2C_DATA("04", "18020000", "0300", "ttag0", "00000000",
                           "00020000", "data 3 512 0")
                  SUCCEEDS("0300") READ_BLOCK("0400", "11", "3")),
    NVME_TCP_TEST("io.pieces", "NVMe TCP 1.0 3.6.2.8",
                  "take the data of an R2T in several PDUs",
                  HOST ASK_WRITE("0300", "00020000", "11", "0000")
                  R2T("0300", "ttag0", "00000000", "00020000")
                  H2C_DATA("00", "1c000000", "0300", "ttag0", "00000000",
                           "04000000", "data 3 4 0")
                  H2C_DATA("00", "18010000", "0300", "ttag0", "04000000",
                           "00010000", "data 3 256 4")
                  H2C_DATA("04", "14010000", "0300", "ttag0", "04010000",
                           "fc000000", "data 3 252 260")
                  SUCCEEDS("0300") READ_BLOCK("0400", "11", "3")),
    NVME_TCP_TEST("io.odd-pieces", "NVMe TCP 1.0 3.6.2.8",
                  "take H2CData of any length, also of one byte",
                  HOST ASK_WRITE("0300", "00020000", "11", "0000")
                  R2T("0300", "ttag0", "00000000", "00020000")
                  H2C_DATA("00", "19000000", "0300", "ttag0", "00000000",
                           "01000000", "data 3 1 0")
                  H2C_DATA("04", "17020000", "0300", "ttag0", "01000000",
                           "ff010000", "data 3 511 1")
                  SUCCEEDS("0300") READ_BLOCK("0400", "11", "3")),
    NVME_TCP_TEST("io.single-bytes", "NVMe TCP 1.0 3.1",
                  "take H2CData in segments of one byte",
                  HOST ASK_WRITE("0300", "00020000", "11", "0000")
                  R2T("0300", "ttag0", "00000000", "00020000")
                  "<1 06041818 18020000 0300 ttag0 00000000 00020000 00000000 "
                  "data 3 512 0\n"
                  SUCCEEDS("0300") READ_BLOCK("0400", "11", "3")),
    NVME_TCP_TEST("io.two-pdus", "NVMe TCP 1.0 3.1",
                  "take two capsules in a segment",
                  ADMIN "< 04004800 48000000 " KEEP_ALIVE_SQE("0300")
                  " 04004800 48000000 " KEEP_ALIVE_SQE("0400") "\n"
                  SUCCEEDS("0300") SUCCEEDS("0400")),
    NVME_TCP_TEST("io.split-header", "NVMe TCP 1.0 3.1",
                  "take a capsule whose header comes in two segments",
                  HOST "< 04004800\nquiet\n< 48000000 " FLUSH_SQE("0300") "\n"
                  SUCCEEDS("0300")),
    NVME_TCP_TEST("io.sevens", "NVMe TCP 1.0 3.1",
                  "take a capsule with data in segments of seven bytes",
                  HOST "<7 04004848 48020000 "
                  WRITE_SQE("0300", IN_CAPSULE("00020000"), "12", "0000")
                  " data 4 512 0\n"
                  SUCCEEDS("0300") READ_BLOCK("0500", "12", "4")),
    NVME_TCP_TEST("io.two-r2ts", "NVMe TCP 1.0 3.3.2.2",
                  "take the data of two writes in the other order",
                  HOST ASK_WRITE("0300", "00020000", "20", "0000")
                  R2T("0300", "ttag0", "00000000", "00020000")
                  ASK_WRITE("0400", "00020000", "21", "0000")
                  R2T("0400", "ttag1", "00000000", "00020000")
                  H2C_DATA("04", "18020000", "0400", "ttag1", "00000000",
                           "00020000", "data 5 512 0")
                  SUCCEEDS("0400")
                  H2C_DATA("04", "18020000", "0300", "ttag0", "00000000",
                           "00020000", "data 6 512 0")
                  SUCCEEDS("0300") READ_BLOCK("0500", "20", "6")
                  READ_BLOCK("0600", "21", "5")),
    NVME_TCP_TEST("io.interleaved", "NVMe TCP 1.0 3.3.2.2",
                  "take PDUs of two writes in turn",
                  HOST ASK_WRITE("0300", "00020000", "20", "0000")
                  R2T("0300", "ttag0", "00000000", "00020000")
                  ASK_WRITE("0400", "00020000", "21", "0000")
                  R2T("0400", "ttag1", "00000000", "00020000")
                  H2C_DATA("00", "18010000", "0300", "ttag0", "00000000",
                           "00010000", "data 6 256 0")
                  H2C_DATA("00", "18010000", "0400", "ttag1", "00000000",
                           "00010000", "data 5 256 0")
                  H2C_DATA("04", "18010000", "0300", "ttag0", "00010000",
                           "00010000", "data 6 256 256")
                  SUCCEEDS("0300")
                  H2C_DATA("04", "18010000", "0400", "ttag1", "00010000",
                           "00010000", "data 5 256 256")
                  SUCCEEDS("0400") READ_BLOCK("0500", "20", "6")
                  READ_BLOCK("0600", "21", "5")),
    NVME_TCP_TEST("io.capsule-between", "NVMe TCP 1.0 3.3.2.2",
                  "execute a capsule between H2CData of another command",
                  HOST ASK_WRITE("0300", "00020000", "20", "0000")
                  R2T("0300", "ttag0", "00000000", "00020000")
                  H2C_DATA("00", "18010000", "0300", "ttag0", "00000000",
                           "00010000", "data 6 256 0")
                  CAPSULE(FLUSH_SQE("0400")) SUCCEEDS("0400")
                  H2C_DATA("04", "18010000", "0300", "ttag0", "00010000",
                           "00010000", "data 6 256 256")
                  SUCCEEDS("0300") READ_BLOCK("0500", "20", "6")),
    NVME_TCP_TEST("io.large", "NVMe TCP 1.0 3.3.2.2",
                  "write 1 MiB in windows, and read it",
                  HOST ASK_WRITE("0300", "00001000", "00", "ff07")
                  "write 0300 7 1048576\n"
                  SUCCEEDS("0300")
                  CAPSULE(READ_SQE("0400", "00001000", "00", "ff07"))
                  "read 0400 7 1048576\n"
                  SUCCEEDS("0400")),
    NVME_TCP_TEST("io.success", "NVMe TCP 1.0 3.3.2.1",
                  "send SUCCESS instead of a response without flow control",
                  ADMIN IO("04") WRITE_BLOCK("0300", "13", "8") SUCCEEDS("0300")
                  CAPSULE(READ_SQE("0400", "00020000", "13", "0000"))
                  C2H_DATA("0c", "18020000", "0400", "00000000", "00020000",
                           "data 8 512 0")
                  "quiet\n"
                  WORKS),
    NVME_TCP_TEST("io.hpda", "NVMe TCP 1.0 3.6.1",
                  "align data as HPDA says, with zeroes before it",
                  ADMIN "conn 1\n"
                  IC_REQ("1f", "00") IC_RESP("00")
                  CONNECT("01", "1f", "00", "cntlid")
                  WRITE_BLOCK("0300", "14", "9") SUCCEEDS("0300")
                  CAPSULE(READ_SQE("0400", "00020000", "14", "0000"))
                  "> 07041880 80020000 0400 0000 00000000 00020000 00000000 "
                  "zero 104 data 9 512 0\n"
                  SUCCEEDS("0400")),
    NVME_TCP_TEST("io.reserved", "NVMe TCP 1.0 3.6.2.8",
                  "ignore the reserved bytes of H2CData",
                  HOST ASK_WRITE("0300", "00020000", "11", "0000")
                  R2T("0300", "ttag0", "00000000", "00020000")
                  "< 06f41818 18020000 0300 ttag0 00000000 00020000 ffffffff "
                  "data 3 512 0\n"
                  SUCCEEDS("0300") READ_BLOCK("0400", "11", "3")),
    NVME_TCP_TEST("io.together", "NVMe TCP 1.0 3.3.2.1",
                  "answer commands that come together, each completely",
                  ADMIN "< 04004800 48000000 "
                  SQE("06", "0400", "00000000", AT_HOST("00100000"),
                      "02000000 zero 20")
                  " 04004800 48000000 "
                  SQE("06", "0500", "00000000", AT_HOST("00100000"),
                      "02000000 zero 20")
                  "\n"
                  C2H_DATA("04", "18100000", "0400", "00000000", "00100000",
                           "01000000 any 4092")
                  SUCCEEDS("0400")
                  C2H_DATA("04", "18100000", "0500", "00000000", "00100000",
                           "01000000 any 4092")
                  SUCCEEDS("0500")),

    /* ---- Descriptors. */
    NVME_TCP_TEST("io.sgl-short", "NVMe TCP 1.0 3.4; NVMe 1.4 4.4",
                  "refuse a descriptor for less than the data",
                  HOST ASK_WRITE("0300", "00010000", "10", "0000")
                  RESPONSE("00000000", "0300", "1e..") WORKS),
    NVME_TCP_TEST("io.sgl-keyed", "NVMe TCP 1.0 3.4",
                  "refuse a keyed descriptor, which is RDMA's",
                  HOST
                  CAPSULE(WRITE_SQE("0300",
                                    "0000000000000000 000200 00000000 40 ",
                                    "10", "0000"))
                  RESPONSE("00000000", "0300", "22..") WORKS),
    NVME_TCP_TEST("io.sgl-bit-bucket", "NVMe TCP 1.0 3.4",
                  "refuse a bit bucket",
                  HOST
                  CAPSULE(WRITE_SQE("0300",
                                    "0000000000000000 00020000 000000 10 ",
                                    "10", "0000"))
                  RESPONSE("00000000", "0300", "22..") WORKS),
    NVME_TCP_TEST("io.sgl-capsule-without-data", "NVMe TCP 1.0 3.4",
                  "refuse a descriptor of data that is not in the capsule",
                  HOST
                  CAPSULE(WRITE_SQE("0300", IN_CAPSULE("00020000"), "10",
                                    "0000"))
                  RESPONSE("00000000", "0300", "1e..") WORKS),
    NVME_TCP_TEST("io.sgl-offset", "NVMe TCP 1.0 3.4; NVMe-oF 1.1 2.3",
                  "refuse an offset behind the data in the capsule",
                  HOST
                  CAPSULE_OF("48020000",
                             WRITE_SQE("0300",
                                       "0002000000000000 00020000 000000 01 ",
                                       "10", "0000"),
                             "data 1 512 0")
                  RESPONSE("00000000", "0300", "1e..") WORKS),
    NVME_TCP_TEST("io.admin-8k", "NVMe TCP 1.0 3.4",
                  "take 8 KiB in a capsule of an admin command",
                  ADMIN
                  CAPSULE_OF("48200000",
                             SQE("0d", "0300", "00000000",
                                 IN_CAPSULE("00200000"), "0f000000 zero 20"),
                             "zero 8192")
                  RESPONSE("00000000", "0300", "04..")
                  CAPSULE(KEEP_ALIVE_SQE("0400")) SUCCEEDS("0400")),
    NVME_TCP_TEST("io.range", "NVMe 1.4 6.15",
                  "refuse a write beyond the end before it asks for data",
                  HOST
                  CAPSULE(SQE("01", "0300", "01000000", AT_HOST("00020000"),
                              "ffffffff ffffff00 00000000 zero 12"))
                  RESPONSE("00000000", "0300", "00c1") WORKS),
    NVME_TCP_TEST("io.read-range", "NVMe 1.4 6.9",
                  "answer a read that fails without data",
                  HOST
                  CAPSULE(SQE("02", "0300", "01000000", AT_HOST("00020000"),
                              "ffffffff ffffff00 00000000 zero 12"))
                  RESPONSE("00000000", "0300", "00c1") WORKS),
};
/* clang-format on */

CONF_TESTS(conf_tests_nvme_tcp_io, "nvme-tcp", tests);
