/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Discovery, Keep Alive, and the end of associations.
 *
 * Spec: NVMe over Fabrics 1.1 3.4 (Disconnect), 4.5 (association), 5
 * (discovery); NVM Express 1.4 5.21.1.15, 7.12.1 (Keep Alive).
 */
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/discovery.h"
#include "nvmf_lib.h"

enum {
    KATO_MS = 1000,
    LOG_ROOM = 32768,
    ACK_TIMEOUT = 12, /* 17 ms, so that repeated packets show soon. */
    ON_THE_WIRE_US = 5000,
};

/* ---- Discovery. */

/* Read the whole log. @return the number of records */
static uint64_t whole_log(struct rc *rc, uint8_t *log)
{
    uint64_t records = nvmf_discovery_log(rc);

    conf_check(rc->conf, records != 0, "NUMREC is 0");
    memcpy(log, rc->mem, DISCOVERY_HEADER_LEN + records * DISCOVERY_ENTRY_LEN);
    return records;
}

static void log_header(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    uint8_t *log = conf_alloc(conf, LOG_ROOM);

    whole_log(rc, log);
    conf_equal(conf, "RECFMT", get_le16(log + DISCOVERY_RECFMT), 0);
    rc_close(rc);
}

static void log_stable(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    uint8_t *a = conf_alloc(conf, LOG_ROOM), *b = conf_alloc(conf, LOG_ROOM);
    uint64_t records = whole_log(rc, a);

    conf_equal(conf, "NUMREC", whole_log(rc, b), records);
    conf_same(conf, "the log, read a second time", b, a,
              DISCOVERY_HEADER_LEN + records * DISCOVERY_ENTRY_LEN);
    rc_close(rc);
}

static void log_pieces(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    uint8_t *whole = conf_alloc(conf, LOG_ROOM);
    size_t len = DISCOVERY_HEADER_LEN +
                 whole_log(rc, whole) * (size_t)DISCOVERY_ENTRY_LEN;

    for (size_t at = 0; at < len; at += 516) {
        uint32_t n = (uint32_t)MIN((size_t)516, len - at);

        conf_status(conf, "Get Log Page with an offset",
                    nvmf_read_discovery_log(rc, at, n), NVME_SC_SUCCESS);
        conf_same(conf, "a piece of the log", rc->mem, whole + at, n);
    }
    rc_close(rc);
}

static void log_offset_odd(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});

    conf_status(conf, "Get Log Page, offset 2",
                nvmf_read_discovery_log(rc, 2, 64), NVME_SC_INVALID_FIELD);
    rc_close(rc);
}

/* The fields of each NVM record on which a host's connect depends. */
static void log_records(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    uint64_t records = nvmf_discovery_log(rc);
    unsigned int found = 0;

    for (uint64_t i = 0; i < records; i++) {
        const uint8_t *e = nvmf_record(rc, i);

        if (e[DISCOVERY_SUBTYPE] != SUBTYPE_NVM) {
            continue;
        }
        found++;
        conf_equal(conf, "TRTYPE", e[DISCOVERY_TRTYPE], TRTYPE_RDMA);
        conf_check(conf, e[DISCOVERY_ADRFAM] == 1 || e[DISCOVERY_ADRFAM] == 2,
                   "ADRFAM is %u", e[DISCOVERY_ADRFAM]);
        conf_equal(conf, "CNTLID (FFFFh: dynamic)",
                   get_le16(e + DISCOVERY_CNTLID), NVME_CNTLID_DYNAMIC);
        conf_check(conf, get_le16(e + DISCOVERY_ASQSZ) >= 32,
                   "ASQSZ is %u, less than 32", get_le16(e + DISCOVERY_ASQSZ));
        conf_same(conf, "TRSVCID", e + DISCOVERY_TRSVCID, "4420", 4);
        conf_same(conf, "SUBNQN", e + DISCOVERY_SUBNQN, conf_target(conf)->nqn,
                  strlen(conf_target(conf)->nqn) + 1);
        conf_equal(conf, "RDMA_QPTYPE (1: reliable connected)",
                   e[DISCOVERY_RDMA_QPTYPE], RDMA_QPTYPE_RC);
        conf_equal(conf, "RDMA_CMS", e[DISCOVERY_RDMA_CMS], RDMA_CMS_RDMA_CM);
    }
    conf_check(conf, found != 0, "the log names no NVM subsystem");
    rc_close(rc);
}

static void log_same_on_both(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    uint8_t *a = conf_alloc(conf, LOG_ROOM), *b = conf_alloc(conf, LOG_ROOM);
    uint64_t records = whole_log(rc, a);
    struct rc *other =
        nvmf_open_discovery(conf, &(struct rc_config){.port = 1});

    conf_check(conf, whole_log(other, b) != 0 && records != 0,
               "the log is empty");
    conf_equal(conf, "GENCTR on both ports", get_le64(b), get_le64(a));
    rc_close(other);
    rc_close(rc);
}

static void discovery_io_queue(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    struct rc_config config = rc->config;
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    struct nvmf_attempt *attempt;
    struct cm_req req;
    struct nvme_cqe cqe;
    struct rc *io;

    config.qid = 1;
    io = rc_new(conf, &config);
    rc_make_req(io, &req, private_data);
    rc_send_req(io, &req);
    if (rc_take_cm_within(io, CM_REJ, NVMF_QUIET_US) == NULL) {
        /* The target leaves the refusal to Connect. */
        rc_take_rep(io);
        rc_send_rtu(io);
        rc_close(io);
        attempt = nvmf_attempt_new(conf, &config);
        nvmf_attempt_to_discovery(attempt);
        conf_check(conf,
                   (nvmf_attempt_run(attempt, &cqe) & NVME_SC_MASK) !=
                       NVME_SC_SUCCESS,
                   "a discovery controller accepts an I/O queue");
        rc_close(attempt->rc);
    }
    rc_close(rc);
}

static void discovery_identify(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    struct nvme_sqe identify = {.opcode = ADMIN_IDENTIFY,
                                .cdw10 = CNS_CONTROLLER};
    struct sgl sgl = rc_keyed(rc, 0, 4096);

    conf_status(conf, "Identify",
                rc_command(rc, &identify, &sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    conf_equal(conf, "CNTLID", get_le16(rc->mem + 78), rc->config.cntlid);
    conf_check(conf, strncmp((const char *)rc->mem + 768, "nqn.", 4) == 0,
               "SUBNQN is empty");
    conf_check(conf, rc->mem[261] & 0x4,
               "LPA bit 2 is 0: log pages have no offsets");
    rc_close(rc);
}

static void discovery_no_namespace(struct conf *conf)
{
    struct rc *rc = nvmf_open_discovery(conf, &(struct rc_config){0});
    struct nvme_sqe identify = {
        .opcode = ADMIN_IDENTIFY, .nsid = 1, .cdw10 = CNS_NAMESPACE};
    struct sgl sgl = rc_keyed(rc, 0, 4096);
    uint16_t status = rc_command(rc, &identify, &sgl, NULL, 0, NULL);

    conf_check(conf, (status & NVME_SC_MASK) != NVME_SC_SUCCESS,
               "a discovery controller has a namespace");
    rc_close(rc);
}

static void discovery_log_only(struct conf *conf)
{
    struct rc *rc = rc_open_controller(conf, &(struct rc_config){0});
    uint16_t status = nvmf_read_discovery_log(rc, 0, 64);

    conf_check(conf, (status & NVME_SC_MASK) != NVME_SC_SUCCESS,
               "an I/O controller has a discovery log");
    rc_close(rc);
}

/* ---- Keep Alive. */

static struct rc *open_kato(struct conf *conf, uint32_t kato_ms)
{
    struct nvmf_attempt *attempt =
        nvmf_attempt_new(conf, &(struct rc_config){0});
    struct nvme_cqe cqe;

    attempt->command.kato_ms = kato_ms;
    conf_status(conf, "Connect", nvmf_attempt_run(attempt, &cqe),
                NVME_SC_SUCCESS);
    attempt->rc->config.cntlid = (uint16_t)cqe.dw0;
    conf_status(conf, "Property Set CC",
                nvmf_set(attempt->rc, PROPERTY_CC, 4, NVMF_CC_ENABLE),
                NVME_SC_SUCCESS);
    nvmf_wait_csts(attempt->rc, CSTS_RDY, CSTS_RDY);
    return attempt->rc;
}

/* The timer that is in force, which the target rounds to KAS. */
static uint32_t kato_in_force(struct rc *rc)
{
    struct nvme_sqe get = {.opcode = ADMIN_GET_FEATURES,
                           .cdw10 = FEATURE_KEEP_ALIVE_TIMER};
    struct nvme_cqe cqe;

    conf_status(rc->conf, "Get Features (KATO)",
                rc_command(rc, &get, NULL, NULL, 0, &cqe), NVME_SC_SUCCESS);
    return cqe.dw0;
}

static bool kato_expires_in_time(struct conf *conf)
{
    uint64_t since_us = conf_now_us(conf);
    struct rc *rc = open_kato(conf, KATO_MS);
    uint32_t kato_ms = kato_in_force(rc);

    conf_check(conf, kato_ms >= KATO_MS, "KATO is %u ms in force", kato_ms);
    conf_flush(conf);
    if (!nvmf_pass_in_time(conf, (uint64_t)kato_ms * 1000 * 9 / 10, since_us,
                           kato_ms)) {
        return false;
    }
    rc_expect_no_cm(rc, CM_DREQ, 0);
    conf_pass(conf, (uint64_t)kato_ms * 1200);
    nvmf_expect_gone(rc);
    conf_expect_alive(conf);
    return true;
}

static void kato_expires(struct conf *conf)
{
    conf_repeat_in_time(conf, kato_expires_in_time);
}

static bool kato_rearmed_in_time(struct conf *conf)
{
    uint64_t since_us = conf_now_us(conf);
    struct rc *rc = open_kato(conf, KATO_MS);
    uint32_t kato_ms = kato_in_force(rc);

    for (unsigned int i = 0; i < 5; i++) {
        if (!nvmf_pass_in_time(conf, (uint64_t)kato_ms * 600, since_us,
                               kato_ms)) {
            return false;
        }
        since_us = conf_now_us(conf);
        conf_status(conf, "Keep Alive", nvmf_keep_alive(rc), NVME_SC_SUCCESS);
    }
    rc_close(rc);
    return true;
}

static void kato_rearmed(struct conf *conf)
{
    conf_repeat_in_time(conf, kato_rearmed_in_time);
}

static void kato_off(struct conf *conf)
{
    struct rc *rc = open_kato(conf, 0);

    conf_equal(conf, "KATO", kato_in_force(rc), 0);
    conf_pass(conf, 3000000);
    nvmf_expect_works(rc);
    rc_close(rc);
}

static void kato_set(struct conf *conf)
{
    struct rc *rc = open_kato(conf, 0);
    struct nvme_sqe set = {.opcode = ADMIN_SET_FEATURES,
                           .cdw10 = FEATURE_KEEP_ALIVE_TIMER,
                           .cdw11 = KATO_MS};
    uint32_t kato_ms;

    conf_status(conf, "Set Features (KATO)",
                rc_command(rc, &set, NULL, NULL, 0, NULL), NVME_SC_SUCCESS);
    kato_ms = kato_in_force(rc);
    conf_check(conf, kato_ms >= KATO_MS && kato_ms < 20 * KATO_MS,
               "KATO is %u ms in force", kato_ms);
    conf_pass(conf, (uint64_t)kato_ms * 2100);
    nvmf_expect_gone(rc);
}

static void kato_takes_io(struct conf *conf)
{
    struct rc *admin = open_kato(conf, KATO_MS);
    uint32_t kato_ms = kato_in_force(admin);
    struct nvmf_attempt *io = nvmf_attempt_io(admin, 1);
    struct nvme_cqe cqe;

    conf_status(conf, "Connect of queue 1", nvmf_attempt_run(io, &cqe),
                NVME_SC_SUCCESS);
    conf_pass(conf, (uint64_t)kato_ms * 2100);
    nvmf_expect_gone(io->rc);
    nvmf_expect_gone(admin);
}

static void kato_of_one(struct conf *conf)
{
    struct rc *rc = open_kato(conf, KATO_MS);
    struct rc *other = rc_open_controller(conf, &(struct rc_config){.peer = 1});

    conf_pass(conf, (uint64_t)kato_in_force(rc) * 2100);
    nvmf_expect_gone(rc);
    nvmf_expect_works(other);
    rc_close(other);
}

static void kato_logged(struct conf *conf)
{
    struct rc *rc = open_kato(conf, 600000);

    conf_status(conf, "Keep Alive with a long KATO", nvmf_keep_alive(rc),
                NVME_SC_SUCCESS);
    conf_check(conf, kato_in_force(rc) >= 600000,
               "KATO is shorter than what was set");
    rc_close(rc);
}

/* ---- The end of an association. */

static void admin_takes_io(struct conf *conf)
{
    struct nvmf_pair pair = nvmf_open_pair(conf, &(struct rc_config){0});

    rc_close(pair.admin);
    conf_pass(conf, NVMF_QUIET_US);
    nvmf_expect_gone(pair.io);
    conf_expect_alive(conf);
}

/* After the DREP the queue pair is gone: the target does not request or repeat
 * outstanding data, although nobody acknowledges it. */
static void expect_over(struct nvmf_pair *pair)
{
    struct conf *conf = pair->io->conf;

    rc_send_dreq(pair->io);
    rc_take_cm(pair->io, CM_DREP);
    conf_pass(conf, ON_THE_WIRE_US);
    conf_flush(conf);
    rc_expect_silence(pair->io, (uint64_t)NVMF_QUIET_US << conf_patience(conf));
    rc_close(pair->admin);
    conf_expect_alive(conf);
}

static struct nvmf_pair open_impatient(struct conf *conf)
{
    return nvmf_open_pair(
        conf,
        &(struct rc_config){.ack_timeout = ACK_TIMEOUT + conf_patience(conf)});
}

static void in_flight(struct conf *conf)
{
    struct nvmf_pair pair = open_impatient(conf);
    struct nvme_sqe read = nvmf_io(conf, NVM_READ, 0, 8);

    for (unsigned int i = 0; i < 10; i++) {
        struct sgl sgl = rc_keyed(pair.io, i * 4096, 4096);

        rc_send_capsule(pair.io, &read, &sgl, NULL, 0);
    }
    pair.io->answers = false;
    expect_over(&pair);
}

static void writes_in_flight(struct conf *conf)
{
    struct nvmf_pair pair = open_impatient(conf);
    struct nvme_sqe write = nvmf_io(conf, NVM_WRITE, 128, 8);

    pair.io->answers = false; /* Its READs are never answered. */
    for (unsigned int i = 0; i < 10; i++) {
        struct sgl sgl = rc_keyed(pair.io, i * 4096, 4096);

        rc_send_capsule(pair.io, &write, &sgl, NULL, 0);
    }
    expect_over(&pair);
}

static void aer_in_flight(struct conf *conf)
{
    struct rc *rc = rc_open_controller(conf, &(struct rc_config){0});
    struct nvme_sqe aer = {.opcode = ADMIN_ASYNC_EVENT_REQUEST};

    rc_send_capsule(rc, &aer, NULL, NULL, 0);
    conf_check(conf, rc_take_message_within(rc, NVMF_QUIET_US) == NULL,
               "an event request was answered without an event");
    rc_close(rc);
    conf_expect_alive(conf);
}

static void new_cntlid_works(struct conf *conf)
{
    for (unsigned int i = 0; i < 5; i++) {
        struct nvmf_pair pair = nvmf_open_pair(conf, &(struct rc_config){0});

        nvmf_close_pair(&pair);
    }
    conf_expect_alive(conf);
}

static void others_unharmed(struct conf *conf)
{
    struct nvmf_pair a = nvmf_open_pair(conf, &(struct rc_config){0});
    struct nvmf_pair b = nvmf_open_pair(conf, &(struct rc_config){.peer = 1});
    struct nvme_sqe flush = nvmf_io(conf, NVM_FLUSH, 0, 1);

    conf_provokes(conf, BIT(RNIC_COUNT_TX_NAK_OTHER));
    /* An opcode out of sequence: the target NAKs it, and the queue pair goes to
     * error. */
    rc_send(a.io, RC_SEND_LAST, NULL, 64, true);
    conf_pass(conf, NVMF_QUIET_US);
    conf_status(conf, "Flush of the other host",
                rc_command(b.io, &flush, NULL, NULL, 0, NULL), NVME_SC_SUCCESS);
    nvmf_close_pair(&b);
}

static void disconnect_command(struct conf *conf)
{
    struct nvmf_pair pair = nvmf_open_pair(conf, &(struct rc_config){0});
    struct nvme_sqe sqe = {.opcode = NVME_FABRICS,
                           .fctype = FABRICS_DISCONNECT};
    uint16_t status = rc_command(pair.io, &sqe, NULL, NULL, 0, NULL);

    conf_check(conf,
               (status & NVME_SC_MASK) == NVME_SC_SUCCESS ||
                   (status & NVME_SC_MASK) == NVME_SC_INVALID_OPCODE,
               "Disconnect: status %03xh", status & NVME_SC_MASK);
    nvmf_expect_works(pair.admin);
    rc_close(pair.admin);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST(id, "NVMe-oF 1.1 " clause, purpose, __VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("discovery.header", "5.3",
         "the log's header has RECFMT 0 and counts its records", log_header),
    TEST("discovery.stable", "5.3", "the log does not change by itself",
         log_stable),
    TEST("discovery.pieces", "5.3, NVMe 1.4 5.14",
         "pieces read by offset make up the whole log", log_pieces),
    TEST("discovery.offset", "NVMe 1.4 5.14",
         "an offset that is not a multiple of 4 is refused", log_offset_odd),
    TEST("discovery.records", "5.3.1, 7.3.6",
         "each NVM record has the fields that hosts need", log_records),
    TEST("discovery.ports", "5.3", "the log has the same GENCTR on both ports",
         log_same_on_both, .needs = CONF_NEEDS_TWO_PORTS),
    TEST("discovery.io-queue", "5.2",
         "a discovery controller has no I/O queues", discovery_io_queue),
    TEST("discovery.identify", "5.2",
         "Identify Controller describes a discovery controller",
         discovery_identify),
    TEST("discovery.namespace", "5.2",
         "a discovery controller has no namespaces", discovery_no_namespace),
    TEST("discovery.log-only", "5.3",
         "only discovery controllers have the discovery log",
         discovery_log_only),
    TEST("kato.expires", "NVMe 1.4 7.12.1",
         "an association ends when KATO passes without a Keep Alive",
         kato_expires),
    TEST("kato.rearmed", "NVMe 1.4 7.12.1", "Keep Alive restarts the timer",
         kato_rearmed),
    TEST("kato.off", "NVMe 1.4 7.12.1",
         "with KATO 0 the association does not end", kato_off),
    TEST("kato.set", "NVMe 1.4 5.21.1.15", "Set Features starts the timer",
         kato_set),
    TEST("kato.io", "NVMe 1.4 7.12.1",
         "the I/O queues end when the timer expires", kato_takes_io),
    TEST("kato.one", "NVMe 1.4 7.12.1",
         "other associations do not end when the timer of one expires",
         kato_of_one),
    TEST("kato.long", "NVMe 1.4 5.21.1.15", "a KATO of ten minutes is kept",
         kato_logged),
    TEST("end.admin", "4.5", "the association ends with its admin queue",
         admin_takes_io),
    TEST("end.reads", "4.5",
         "a DREQ with Reads outstanding ends the connection cleanly",
         in_flight),
    TEST("end.writes", "4.5",
         "a DREQ with Writes that wait for data ends the connection cleanly",
         writes_in_flight),
    TEST("end.events", "4.5",
         "a DREQ with an event request outstanding ends the connection cleanly",
         aer_in_flight),
    TEST("end.again", "4.5", "five associations in a row work",
         new_cntlid_works),
    TEST("end.others", "4.5",
         "an error of one host does not affect another host", others_unharmed),
    TEST("end.disconnect", "3.4",
         "Disconnect is executed, or refused with Invalid Opcode",
         disconnect_command),
};
CONF_TESTS(conf_tests_nvmf_life, "nvmf", tests);
