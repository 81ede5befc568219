/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Connect command, field by field; controllers and their identifiers.
 *
 * Spec: NVMe over Fabrics 1.1 3.3 (Connect), 4.2 (controllers).
 */
#include <string.h>

#include "lib/bytes.h"
#include "nvmf_lib.h"

static struct nvmf_attempt *new_admin_connect(struct conf *conf)
{
    return nvmf_attempt_new(conf, &(struct rc_config){0});
}

static void connect_accepted(struct conf *conf)
{
    struct nvmf_attempt *attempt = new_admin_connect(conf);
    struct nvme_cqe cqe;

    conf_status(conf, "Connect", nvmf_attempt_run(attempt, &cqe),
                NVME_SC_SUCCESS);
    conf_check(conf, (cqe.dw0 & 0xffff) != 0 && (cqe.dw0 & 0xffff) < 0xfff0,
               "CNTLID is %04xh", cqe.dw0 & 0xffff);
    conf_equal(conf, "SQHD", cqe.sqhd, 1);
    rc_close(attempt->rc);
}

#define FIELD_REFUSED(name, field, change)                                     \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct nvmf_attempt *attempt = new_admin_connect(conf);                \
                                                                               \
        change;                                                                \
        nvmf_expect_invalid(attempt, field);                                   \
    }

FIELD_REFUSED(qid_other, CONNECT_QID, attempt->command.qid = 1)
FIELD_REFUSED(sqsize_zero, CONNECT_SQSIZE, attempt->command.sqsize = 0)
FIELD_REFUSED(sqsize_above_hsqsize, CONNECT_SQSIZE,
              attempt->command.sqsize = 32)
FIELD_REFUSED(sqsize_max, CONNECT_SQSIZE, attempt->command.sqsize = 0xffff)
FIELD_REFUSED(cntlid_zero, CONNECT_IATTR_DATA | CONNECT_DATA_CNTLID,
              attempt->data.cntlid = 0)
FIELD_REFUSED(cntlid_static, CONNECT_IATTR_DATA | CONNECT_DATA_CNTLID,
              attempt->data.cntlid = 0xfffe)
FIELD_REFUSED(cntlid_chosen, CONNECT_IATTR_DATA | CONNECT_DATA_CNTLID,
              attempt->data.cntlid = 1)
FIELD_REFUSED(subnqn_unknown, CONNECT_IATTR_DATA | CONNECT_DATA_SUBNQN,
              strcpy(attempt->data.subnqn, "nqn.2026-01.net.example:nobody"))
FIELD_REFUSED(subnqn_empty, CONNECT_IATTR_DATA | CONNECT_DATA_SUBNQN,
              memset(attempt->data.subnqn, 0, sizeof(attempt->data.subnqn)))
FIELD_REFUSED(subnqn_endless, CONNECT_IATTR_DATA | CONNECT_DATA_SUBNQN,
              memset(attempt->data.subnqn, 'x', sizeof(attempt->data.subnqn)))
FIELD_REFUSED(subnqn_longer, CONNECT_IATTR_DATA | CONNECT_DATA_SUBNQN,
              strcat(attempt->data.subnqn, "x"))
FIELD_REFUSED(subnqn_shorter, CONNECT_IATTR_DATA | CONNECT_DATA_SUBNQN,
              attempt->data.subnqn[strlen(attempt->data.subnqn) - 1] = '\0')
FIELD_REFUSED(hostnqn_endless, CONNECT_IATTR_DATA | CONNECT_DATA_HOSTNQN,
              memset(attempt->data.hostnqn, 'x', sizeof(attempt->data.hostnqn)))

static void connect_recfmt(struct conf *conf)
{
    struct nvmf_attempt *attempt = new_admin_connect(conf);
    struct nvme_cqe cqe;

    attempt->command.recfmt = 1;
    conf_status(conf, "Connect", nvmf_attempt_run(attempt, &cqe),
                NVME_SC_CONNECT_FORMAT);
    rc_close(attempt->rc);
}

static void sqsize_smaller(struct conf *conf)
{
    struct nvmf_attempt *attempt = new_admin_connect(conf);
    struct nvme_cqe cqe;

    attempt->command.sqsize = 3; /* Four entries of 32. */
    conf_status(conf, "Connect", nvmf_attempt_run(attempt, &cqe),
                NVME_SC_SUCCESS);
    for (unsigned int i = 2; i < 10; i++) {
        struct nvme_sqe get = {.opcode = ADMIN_KEEP_ALIVE};

        rc_command(attempt->rc, &get, NULL, NULL, 0, &cqe);
        conf_equal(conf, "SQHD, which wraps at 4", cqe.sqhd, i % 4);
    }
    rc_close(attempt->rc);
}

static void refused_then_right(struct conf *conf)
{
    struct nvmf_attempt *attempt = new_admin_connect(conf);
    struct nvme_cqe cqe;

    attempt->command.sqsize = 0;
    conf_status(conf, "an incorrect Connect", nvmf_attempt_run(attempt, &cqe),
                NVME_SC_CONNECT_INVALID);
    attempt->command.sqsize = 31;
    conf_status(conf, "a correct Connect", nvmf_attempt_run(attempt, &cqe),
                NVME_SC_SUCCESS);
    rc_close(attempt->rc);
}

static void data_short(struct conf *conf)
{
    struct nvmf_attempt *attempt = new_admin_connect(conf);
    struct nvme_cqe cqe;
    uint16_t status;

    attempt->sgl.len_bytes = CONNECT_DATA_LEN / 2;
    status = nvmf_attempt_run(attempt, &cqe);
    conf_check(conf, status != HOST_LOST && (status & NVME_SC_MASK) != 0,
               "Connect with 512 bytes of data was accepted");
    rc_close(attempt->rc);
}

static void data_key(struct conf *conf)
{
    struct nvmf_attempt *attempt = new_admin_connect(conf);
    struct nvme_sqe sqe = {0};

    conf_provokes(conf, BIT(RNIC_COUNT_RX_NAK));
    attempt->sgl.key ^= 0x1;
    connect_data_emit(attempt->rc->mem, &attempt->data);
    connect_command_build(&sqe, &attempt->command);
    rc_send_capsule(attempt->rc, &sqe, &attempt->sgl, NULL, 0);
    conf_pass(conf, NVMF_QUIET_US); /* Our NAK ends the target's queue pair. */
    conf_expect_alive(conf);
}

static void data_reserved(struct conf *conf)
{
    struct nvmf_attempt *attempt = new_admin_connect(conf);
    struct nvme_sqe sqe = {0};

    connect_data_emit(attempt->rc->mem, &attempt->data);
    memset(attempt->rc->mem + 18, 0xa5, 256 - 18);
    memset(attempt->rc->mem + 768, 0x5a, 256);
    connect_command_build(&sqe, &attempt->command);
    conf_status(conf, "Connect with reserved bytes set",
                rc_command(attempt->rc, &sqe, &attempt->sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    rc_close(attempt->rc);
}

/* ---- Commands in the wrong order. */

static void expect_connect_first(struct rc *rc, const struct nvme_sqe *sqe)
{
    conf_status(rc->conf, "a command before Connect",
                rc_command(rc, sqe, NULL, NULL, 0, NULL),
                NVME_SC_COMMAND_SEQUENCE);
    rc_close(rc);
}

static void property_before(struct conf *conf)
{
    struct property_command get = {.size_bytes = 4, .offset = PROPERTY_VS};
    struct nvme_sqe sqe = {.fctype = FABRICS_PROPERTY_GET};

    property_command_build(&sqe, &get);
    expect_connect_first(rc_open(conf, &(struct rc_config){0}), &sqe);
}

static void admin_before(struct conf *conf)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_KEEP_ALIVE};

    expect_connect_first(rc_open(conf, &(struct rc_config){0}), &sqe);
}

static void io_before(struct conf *conf)
{
    struct rc *own = rc_open_controller(conf, &(struct rc_config){0});
    struct rc_config config = {.qid = 1, .cntlid = own->config.cntlid};
    struct nvme_sqe sqe = nvmf_io(conf, NVM_FLUSH, 0, 1);

    expect_connect_first(rc_open(conf, &config), &sqe);
    rc_close(own);
}

static void connect_twice(struct conf *conf)
{
    struct nvmf_attempt *attempt = new_admin_connect(conf);
    struct nvme_cqe cqe;

    conf_status(conf, "Connect", nvmf_attempt_run(attempt, &cqe),
                NVME_SC_SUCCESS);
    conf_status(conf, "a second Connect", nvmf_attempt_run(attempt, &cqe),
                NVME_SC_COMMAND_SEQUENCE);
    nvmf_expect_works(attempt->rc);
    rc_close(attempt->rc);
}

static void not_enabled(struct conf *conf)
{
    struct nvmf_attempt *attempt = new_admin_connect(conf);
    struct nvme_sqe identify = {.opcode = ADMIN_IDENTIFY,
                                .cdw10 = CNS_CONTROLLER};
    struct nvme_cqe cqe;
    struct sgl sgl;

    nvmf_attempt_run(attempt, &cqe);
    sgl = rc_keyed(attempt->rc, 0, 4096);
    conf_status(conf, "Identify before CC.EN",
                rc_command(attempt->rc, &identify, &sgl, NULL, 0, NULL),
                NVME_SC_COMMAND_SEQUENCE);
    rc_close(attempt->rc);
}

/* ---- I/O queues. */

static void io_refused(struct nvmf_attempt *attempt, struct rc *own,
                       const char *what)
{
    struct conf *conf = attempt->rc->conf;
    struct nvme_cqe cqe;
    uint16_t status = nvmf_attempt_run(attempt, &cqe);

    conf_check(conf, (status & NVME_SC_MASK) != NVME_SC_SUCCESS,
               "%s was accepted", what);
    rc_close(attempt->rc);
    nvmf_expect_works(own);
    rc_close(own);
}

static void io_accepted(struct conf *conf)
{
    struct rc *own = rc_open_controller(conf, &(struct rc_config){0});
    struct nvmf_attempt *attempt = nvmf_attempt_io(own, 1);
    struct nvme_cqe cqe;

    conf_status(conf, "Connect", nvmf_attempt_run(attempt, &cqe),
                NVME_SC_SUCCESS);
    conf_equal(conf, "CNTLID", cqe.dw0 & 0xffff, own->config.cntlid);
    rc_close(attempt->rc);
    rc_close(own);
}

/* A parameter that belongs to another controller, or to none. */
static void io_invalid(struct nvmf_attempt *attempt, struct rc *own)
{
    struct nvme_cqe cqe;

    conf_status(own->conf, "Connect", nvmf_attempt_run(attempt, &cqe),
                NVME_SC_CONNECT_INVALID);
    rc_close(attempt->rc);
    nvmf_expect_works(own);
    rc_close(own);
}

#define IO_REFUSED(name, what, change)                                         \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct rc *own = rc_open_controller(conf, &(struct rc_config){0});     \
        struct nvmf_attempt *attempt = nvmf_attempt_io(own, 1);                \
                                                                               \
        change;                                                                \
        conf_note(conf, "%s", what);                                           \
        io_invalid(attempt, own);                                              \
    }

IO_REFUSED(io_hostnqn, "another host's NQN",
           strcat(attempt->data.hostnqn, "-other"))
IO_REFUSED(io_hostid, "another host's identifier", attempt->data.hostid[3] = 1)
IO_REFUSED(io_subnqn, "another subsystem's NQN",
           strcat(attempt->data.subnqn, "x"))
IO_REFUSED(io_cntlid, "a controller that does not exist",
           attempt->data.cntlid = (uint16_t)(attempt->data.cntlid ^ 0x7))
IO_REFUSED(io_dynamic, "a dynamic CNTLID", attempt->data.cntlid = 0xffff)
IO_REFUSED(io_qid, "a queue identifier that is not the REQ's",
           attempt->command.qid = 2)

/*
 * The specification sets no shortest length for HOSTNQN, and SPDK's perf sends
 * an empty one by default: the I/O queues have to repeat it.
 */
static void hostnqn_empty(struct conf *conf)
{
    struct nvmf_attempt *attempt = new_admin_connect(conf), *io;
    struct nvme_cqe cqe;

    memset(attempt->data.hostnqn, 0, sizeof(attempt->data.hostnqn));
    conf_status(conf, "Connect with an empty HOSTNQN",
                nvmf_attempt_run(attempt, &cqe), NVME_SC_SUCCESS);
    attempt->rc->config.cntlid = (uint16_t)cqe.dw0;
    conf_status(conf, "Property Set CC",
                nvmf_set(attempt->rc, PROPERTY_CC, 4, NVMF_CC_ENABLE),
                NVME_SC_SUCCESS);
    nvmf_wait_csts(attempt->rc, CSTS_RDY, CSTS_RDY);
    io = nvmf_attempt_io(attempt->rc, 1);
    nvmf_expect_invalid(io, CONNECT_IATTR_DATA | CONNECT_DATA_HOSTNQN);
    io = nvmf_attempt_io(attempt->rc, 1);
    memset(io->data.hostnqn, 0, sizeof(io->data.hostnqn));
    conf_status(conf, "Connect of an I/O queue with an empty HOSTNQN",
                nvmf_attempt_run(io, &cqe), NVME_SC_SUCCESS);
    rc_close(io->rc);
    rc_close(attempt->rc);
}

static void io_not_enabled(struct conf *conf)
{
    struct rc *own = rc_open_nvme(conf, &(struct rc_config){0});

    io_refused(nvmf_attempt_io(own, 1), own, "an I/O queue before CC.EN");
}

static void io_twice(struct conf *conf)
{
    struct rc *own = rc_open_controller(conf, &(struct rc_config){0});
    struct nvmf_attempt *first = nvmf_attempt_io(own, 1);
    struct nvmf_attempt *second = nvmf_attempt_io(own, 1);
    struct nvme_sqe flush = nvmf_io(conf, NVM_FLUSH, 0, 1);
    struct nvme_cqe cqe;

    conf_status(conf, "Connect of queue 1", nvmf_attempt_run(first, &cqe),
                NVME_SC_SUCCESS);
    conf_check(conf,
               (nvmf_attempt_run(second, &cqe) & NVME_SC_MASK) !=
                   NVME_SC_SUCCESS,
               "queue 1 was connected twice");
    rc_close(second->rc);
    conf_status(conf, "Flush on the first connection",
                rc_command(first->rc, &flush, NULL, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    rc_close(first->rc);
    rc_close(own);
}

static void io_again(struct conf *conf)
{
    struct rc *own = rc_open_controller(conf, &(struct rc_config){0});
    struct nvme_cqe cqe;

    for (unsigned int i = 0; i < 3; i++) {
        struct nvmf_attempt *attempt = nvmf_attempt_io(own, 1);

        conf_status(conf, "Connect", nvmf_attempt_run(attempt, &cqe),
                    NVME_SC_SUCCESS);
        rc_close(attempt->rc);
        conf_pass(conf, NVMF_QUIET_US);
        if (nvmf_keep_alive(own) != NVME_SC_SUCCESS) {
            conf_not_applicable(conf, "the loss of an I/O queue ends the "
                                      "association, which is allowed");
        }
    }
    rc_close(own);
}

static void io_many(struct conf *conf)
{
    struct rc *own = rc_open_controller(conf, &(struct rc_config){0});
    struct nvme_sqe set = {.opcode = ADMIN_SET_FEATURES,
                           .cdw10 = FEATURE_NUMBER_OF_QUEUES,
                           .cdw11 = 3u << 16 | 3};
    struct nvmf_attempt *attempt[4];
    struct nvme_cqe cqe;

    conf_status(conf, "Set Features (number of queues)",
                rc_command(own, &set, NULL, NULL, 0, &cqe), NVME_SC_SUCCESS);
    for (unsigned int i = 0; i < MIN(4u, (cqe.dw0 & 0xffff) + 1); i++) {
        /* Connect them in any order. */
        attempt[i] = nvmf_attempt_io(own, (uint16_t)(4 - i));
        conf_status(conf, "Connect", nvmf_attempt_run(attempt[i], &cqe),
                    NVME_SC_SUCCESS);
    }
    rc_close(own);
}

/* ---- Controllers. */

static void cntlids_differ(struct conf *conf)
{
    struct rc *a = rc_open_nvme(conf, &(struct rc_config){0});
    struct rc *b = rc_open_nvme(conf, &(struct rc_config){.peer = 1});

    conf_check(conf, a->config.cntlid != b->config.cntlid,
               "two associations have the same controller");
    rc_close(a);
    rc_close(b);
}

static void cntlid_of_identify(struct conf *conf)
{
    struct rc *rc = rc_open_controller(conf, &(struct rc_config){0});
    struct nvme_sqe identify = {.opcode = ADMIN_IDENTIFY,
                                .cdw10 = CNS_CONTROLLER};
    struct sgl sgl = rc_keyed(rc, 0, 4096);

    conf_status(conf, "Identify",
                rc_command(rc, &identify, &sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    conf_equal(conf, "CNTLID in Identify Controller", get_le16(rc->mem + 78),
               rc->config.cntlid);
    rc_close(rc);
}

static void both_ports(struct conf *conf)
{
    struct rc *a = rc_open_nvme(conf, &(struct rc_config){0});
    struct rc *b = rc_open_nvme(conf, &(struct rc_config){.port = 1});

    conf_check(conf, a->config.cntlid != b->config.cntlid,
               "two associations have the same controller");
    rc_close(a);
    nvmf_expect_works(b);
    rc_close(b);
}

static void kato_returned(struct conf *conf)
{
    struct nvmf_attempt *attempt = new_admin_connect(conf);
    struct nvme_sqe get = {.opcode = ADMIN_GET_FEATURES,
                           .cdw10 = FEATURE_KEEP_ALIVE_TIMER};
    struct nvme_cqe cqe;

    attempt->command.kato_ms = 20000;
    nvmf_attempt_run(attempt, &cqe);
    conf_status(conf, "Property Set CC",
                nvmf_set(attempt->rc, PROPERTY_CC, 4, NVMF_CC_ENABLE),
                NVME_SC_SUCCESS);
    nvmf_wait_csts(attempt->rc, CSTS_RDY, CSTS_RDY);
    conf_status(conf, "Get Features (KATO)",
                rc_command(attempt->rc, &get, NULL, NULL, 0, &cqe),
                NVME_SC_SUCCESS);
    conf_check(conf, cqe.dw0 >= 20000 && cqe.dw0 <= 40000,
               "KATO is %u ms, but Connect asked for 20000", cqe.dw0);
    rc_close(attempt->rc);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST(id, "NVMe-oF 1.1 " clause, purpose, __VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("connect.admin", "3.3",
         "a Connect for an admin queue is accepted, with a valid CNTLID",
         connect_accepted),
    TEST("connect.recfmt", "3.3",
         "a Connect with RECFMT 1 is refused with Incompatible Format",
         connect_recfmt),
    TEST("connect.qid", "3.3",
         "a Connect with a QID other than the REQ's is refused", qid_other),
    TEST("connect.sqsize-zero", "3.3", "a Connect with SQSIZE 0 is refused",
         sqsize_zero),
    TEST("connect.sqsize-hsqsize", "7.3.6.2",
         "a Connect with SQSIZE above the REQ's HSQSIZE is refused",
         sqsize_above_hsqsize),
    TEST("connect.sqsize-max", "3.3", "a Connect with SQSIZE 65535 is refused",
         sqsize_max),
    TEST("connect.sqsize-smaller", "3.3",
         "with SQSIZE below HSQSIZE, SQHD wraps at SQSIZE", sqsize_smaller),
    TEST("connect.cntlid-zero", "3.3",
         "a Connect with CNTLID 0 is refused by a dynamic controller",
         cntlid_zero),
    TEST("connect.cntlid-static", "3.3",
         "a Connect with CNTLID FFFEh, for the static model, is refused",
         cntlid_static),
    TEST("connect.cntlid-chosen", "3.3",
         "a Connect with CNTLID 1 is refused by a dynamic controller",
         cntlid_chosen),
    TEST("connect.subnqn-unknown", "3.3",
         "a Connect to an unknown subsystem is refused", subnqn_unknown),
    TEST("connect.subnqn-empty", "3.3",
         "a Connect with an empty SUBNQN is refused", subnqn_empty),
    TEST("connect.subnqn-endless", "3.3",
         "a Connect with an unterminated SUBNQN is refused", subnqn_endless),
    TEST("connect.subnqn-longer", "3.3",
         "a Connect with one character too many in SUBNQN is refused",
         subnqn_longer),
    TEST("connect.subnqn-shorter", "3.3",
         "a Connect with one character too few in SUBNQN is refused",
         subnqn_shorter),
    TEST("connect.hostnqn-empty", "3.3",
         "an empty HOSTNQN is accepted if the I/O queues repeat it",
         hostnqn_empty),
    TEST("connect.hostnqn-endless", "3.3",
         "a Connect with an unterminated HOSTNQN is refused", hostnqn_endless),
    TEST("connect.refused-then-right", "3.3",
         "a correct Connect is accepted after a refused one",
         refused_then_right),
    TEST("connect.data-short", "3.3",
         "a Connect with 512 bytes of data is refused", data_short),
    TEST("connect.data-key", "7.3.3",
         "a Connect whose data cannot be read does no harm", data_key),
    TEST("connect.data-reserved", "3.3",
         "reserved bytes of Connect are ignored", data_reserved),
    TEST("connect.property-first", "3.3",
         "Property Get before Connect is refused", property_before),
    TEST("connect.admin-first", "3.3", "Keep Alive before Connect is refused",
         admin_before),
    TEST("connect.io-first", "3.3", "Flush before Connect is refused",
         io_before),
    TEST("connect.twice", "3.3",
         "a second Connect on the same queue is refused", connect_twice),
    TEST("connect.not-enabled", "4.4", "Identify before CC.EN is refused",
         not_enabled),
    TEST("connect.io", "3.3", "an I/O queue connects to its controller",
         io_accepted),
    TEST("connect.io-hostnqn", "3.3",
         "an I/O queue with another HOSTNQN is refused", io_hostnqn),
    TEST("connect.io-hostid", "3.3",
         "an I/O queue with another HOSTID is refused", io_hostid),
    TEST("connect.io-subnqn", "3.3",
         "an I/O queue with another SUBNQN is refused", io_subnqn),
    TEST("connect.io-cntlid", "3.3",
         "an I/O queue of an unknown controller is refused", io_cntlid),
    TEST("connect.io-dynamic", "3.3",
         "an I/O queue with CNTLID FFFFh is refused", io_dynamic),
    TEST("connect.io-qid", "3.3",
         "an I/O queue with a QID other than the REQ's is refused", io_qid),
    TEST("connect.io-not-enabled", "3.3",
         "an I/O queue before CC.EN is refused", io_not_enabled),
    TEST("connect.io-twice", "3.3",
         "a second connection for the same queue is refused", io_twice),
    TEST("connect.io-again", "3.3",
         "a queue that was disconnected can be connected again", io_again),
    TEST("connect.io-many", "3.3", "queues can be connected in any order",
         io_many),
    TEST("cntlid.differ", "4.2", "each association has its own controller",
         cntlids_differ),
    TEST("cntlid.identify", "4.2",
         "Identify Controller has the CNTLID of Connect", cntlid_of_identify),
    TEST("cntlid.ports", "4.2", "the ports have different controllers",
         both_ports, .needs = CONF_NEEDS_TWO_PORTS),
    TEST("connect.kato", "3.3", "the KATO feature has the value of Connect",
         kato_returned),
};
CONF_TESTS(conf_tests_nvmf_connect, "nvmf", tests);
