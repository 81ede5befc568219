/* SPDX-License-Identifier: BSD-2-Clause */
/* Chapter `nvme-tcp`: Connect and admin commands. */
#include "nvme_tcp_script.h"

#define IDENTIFY(cid)                                                          \
    CAPSULE(SQE("06", cid, "00000000", AT_HOST("00100000"), "01000000 zero 20"))
#define LOG_SQE(cid, len, dwords, lid)                                         \
    SQE("02", cid, "00000000", AT_HOST(len), lid "00" dwords " zero 20")

/* clang-format off */
static const struct conf_test tests[] = {
    NVME_TCP_TEST("connect.in-capsule", "NVMe TCP 1.0 3.3.2.2; NVMe-oF 1.1 3.3",
                  "take Connect with its data in the capsule",
                  IC("00") CONNECT("00", "1f", "00", "ffff") "quiet\n"),
    NVME_TCP_TEST("connect.r2t", "NVMe TCP 1.0 3.3.2.2; NVMe-oF 1.1 3.3",
                  "ask for the data of Connect if it is not in the capsule",
                  IC("00")
                  CAPSULE(CONNECT_SQE("00", "1f", "00", AT_HOST("00040000")))
                  R2T("0001", "ttag0", "00000000", "00040000")
                  H2C_DATA("04", "18040000", "0001", "ttag0", "00000000",
                           "00040000", CONNECT_DATA("ffff", "subnqn"))
                  RESPONSE("cntlid 0000", "0001", "0000")),
    NVME_TCP_TEST("connect.io", "NVMe-oF 1.1 3.3",
                  "connect an I/O queue by another connection",
                  HOST WORKS),
    NVME_TCP_TEST("connect.io-second-port", "NVMe-oF 1.1 3.3",
                  "take both queues at the second port",
                  "port 1\n"
                  ADMIN "conn 1\nport 1\n"
                  IC("00") CONNECT("01", "1f", "00", "cntlid") WORKS),
    NVME_TCP_TEST("connect.io-ipv6", "NVMe-oF 1.1 3.3",
                  "take both queues over IPv6",
                  "v6\n"
                  ADMIN "conn 1\nv6\n"
                  IC("00") CONNECT("01", "1f", "00", "cntlid") WORKS),
    NVME_TCP_TEST("connect.discovery", "NVMe-oF 1.1 5; NVMe TCP 1.0 3.1.2",
                  "serve discovery at port 8009",
                  "to 8009\n"
                  IC("00")
                  CAPSULE_OF("48040000",
                             CONNECT_SQE("00", "1f", "00",
                                         IN_CAPSULE("00040000")),
                             CONNECT_DATA("ffff", "discnqn"))
                  RESPONSE("cntlid 0000", "0001", "0000")
                  CAPSULE(SET_CC_SQE("0200", "01004600")) SUCCEEDS("0200")
                  CAPSULE(LOG_SQE("0300", "10000000", "0300", "70"))
                  "> 07041818 28000000 0300 0000 00000000 10000000 00000000 "
                  "any 16\n"
                  SUCCEEDS("0300")),
    NVME_TCP_TEST("connect.discovery-4420", "NVMe-oF 1.1 5",
                  "serve discovery at port 4420, too",
                  IC("00")
                  CAPSULE_OF("48040000",
                             CONNECT_SQE("00", "1f", "00",
                                         IN_CAPSULE("00040000")),
                             CONNECT_DATA("ffff", "discnqn"))
                  RESPONSE("cntlid 0000", "0001", "0000")),
    NVME_TCP_TEST("connect.storage-8009", "NVMe-oF 1.1 5",
                  "serve the storage at port 8009, too",
                  "to 8009\n"
                  ADMIN),
    NVME_TCP_TEST("connect.identify", "NVMe TCP 1.0 3.4; NVMe-oF 1.1 4.1",
                  "claim SGLs with offsets, and 4 KiB in capsules",
                  ADMIN IDENTIFY("0300")
                  "> 07041818 18100000 0300 0000 00000000 00100000 00000000 "
                  "any 536 01001000 any 1252 04010000 01000000 0000 any 2294\n"
                  SUCCEEDS("0300")),
    NVME_TCP_TEST("connect.property", "NVMe-oF 1.1 3.4",
                  "answer Property Get",
                  ADMIN CAPSULE(GET_PROPERTY_SQE("0300", "1c"))
                  RESPONSE("01000000", "0300", "0000")),
    NVME_TCP_TEST("connect.keep-alive", "NVMe 1.4 5.15",
                  "answer Keep Alive",
                  ADMIN CAPSULE(KEEP_ALIVE_SQE("0300")) SUCCEEDS("0300")),
    NVME_TCP_TEST("connect.single-bytes", "NVMe TCP 1.0 3.1",
                  "take Connect in segments of one byte",
                  IC("00") "<1 04004848 48040000 "
                  CONNECT_SQE("00", "1f", "00", IN_CAPSULE("00040000"))
                  CONNECT_DATA("ffff", "subnqn") "\n"
                  RESPONSE("cntlid 0000", "0001", "0000")),
    NVME_TCP_TEST("connect.wrong-nqn", "NVMe-oF 1.1 3.3",
                  "refuse an unknown subsystem, and go on",
                  IC("00")
                  CAPSULE_OF("48040000",
                             CONNECT_SQE("00", "1f", "00",
                                         IN_CAPSULE("00040000")),
                             CONNECT_DATA("ffff", "hostnqn"))
                  RESPONSE("00010100", "0001", "0483")
                  CONNECT("00", "1f", "00", "ffff")),
    NVME_TCP_TEST("connect.wrong-cntlid", "NVMe-oF 1.1 3.3",
                  "refuse an I/O queue of an unknown controller",
                  IC("00")
                  CAPSULE_OF("48040000",
                             CONNECT_SQE("01", "1f", "00",
                                         IN_CAPSULE("00040000")),
                             CONNECT_DATA("fe7f", "subnqn"))
                  RESPONSE("10000100", "0101", "0483")),
    NVME_TCP_TEST("connect.twice", "NVMe-oF 1.1 3.3",
                  "refuse a second Connect of a queue",
                  IC("00") CONNECT("00", "1f", "00", "ffff")
                  CAPSULE_OF("48040000",
                             CONNECT_SQE("00", "1f", "00",
                                         IN_CAPSULE("00040000")),
                             CONNECT_DATA("ffff", "subnqn"))
                  RESPONSE("00000000", "0001", "18..")),
    NVME_TCP_TEST("connect.command-before", "NVMe-oF 1.1 3.3",
                  "refuse a command before Connect, and take Connect",
                  IC("00") CAPSULE(GET_PROPERTY_SQE("0300", "1c"))
                  RESPONSE("00000000", "0300", "18..")
                  CONNECT("00", "1f", "00", "ffff")),
    NVME_TCP_TEST("connect.same-queue", "NVMe-oF 1.1 3.3",
                  "refuse a second connection for the same queue",
                  HOST "conn 2\n"
                  IC("00")
                  CAPSULE_OF("48040000",
                             CONNECT_SQE("01", "1f", "00",
                                         IN_CAPSULE("00040000")),
                             CONNECT_DATA("cntlid", "subnqn"))
                  RESPONSE("00000000", "0101", "18..") "conn 1\n"
                  WORKS),
    NVME_TCP_TEST("connect.short-data", "NVMe-oF 1.1 3.3",
                  "refuse a Connect with too little data",
                  IC("00")
                  CAPSULE_OF("48020000",
                             CONNECT_SQE("00", "1f", "00",
                                         IN_CAPSULE("00020000")),
                             "data 1 512 0")
                  RESPONSE("00000000", "0001", "1e..")
                  CONNECT("00", "1f", "00", "ffff")),
    NVME_TCP_TEST("connect.sqhd", "NVMe-oF 1.1 2.4.1",
                  "count the head of the submission queue",
                  HOST "conn 1\n"
                  CAPSULE(FLUSH_SQE("0300"))
                  "> 05001800 18000000 zero 8 0200 0000 0300 0000\n"
                  CAPSULE(FLUSH_SQE("0400"))
                  "> 05001800 18000000 zero 8 0300 0000 0400 0000\n"),
    NVME_TCP_TEST("connect.no-flow-control", "NVMe-oF 1.1 2.4.1",
                  "take a queue without flow control",
                  ADMIN IO("04") WORKS),
};
/* clang-format on */

CONF_TESTS(conf_tests_nvme_tcp_connect, "nvme-tcp", tests);
