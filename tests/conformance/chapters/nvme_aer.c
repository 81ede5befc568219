/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous events: how many requests may wait, when they are answered, and
 * what masks an event; Abort. Temperature thresholds around SMART's temperature
 * make the events.
 *
 * Spec: NVM Express 1.4 5.1, 5.2, 5.21.1.4, 5.21.1.11.
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    ASKED_SMART = 0x1f, /* The SMART bits of feature 0Bh. */
    QUIET_US = 100000,
    EVENT_US = 1000000,
    NO_THRESHOLD = 0xffff,
    THSEL_UNDER = 1 << 20,
    ABORT_NOT_DONE = 1,
    FIRST_CID = 0x2000,
    MOST = 16, /* The most requests that a test sends. */
};

/* The event of a temperature threshold, and the log page that explains it. */
#define TEMPERATURE_EVENT                                                      \
    (EVENT_TYPE_SMART | EVENT_SMART_TEMPERATURE << 8 | LOG_SMART << 16)

static uint16_t event_limit(const struct nvme *nvme)
{
    return (uint16_t)(nvme->ctrl[ID_CTRL_AERL] + 1);
}

static void request_event(struct nvme *nvme, uint16_t cid)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_ASYNC_EVENT_REQUEST, .cid = cid};

    rc_send_capsule(nvme->admin, &sqe, NULL, NULL, 0);
}

static void expect_quiet(struct nvme *nvme, uint16_t cid)
{
    struct nvme_cqe cqe;

    conf_check(nvme->conf, !nvme_take_other(nvme, cid, QUIET_US, &cqe),
               "an event request was answered");
}

static uint32_t expect_event(struct nvme *nvme, uint16_t cid)
{
    struct nvme_cqe cqe;

    conf_check(nvme->conf, nvme_take_other(nvme, cid, EVENT_US, &cqe),
               "no event came");
    conf_status(nvme->conf, "Asynchronous Event Request", cqe.status,
                NVME_SC_SUCCESS);
    return cqe.dw0;
}

static void set_feature(struct nvme *nvme, uint8_t fid, uint32_t value)
{
    conf_status(nvme->conf, "Set Features", nvme_set_feature(nvme, fid, value),
                NVME_SC_SUCCESS);
}

/* A temperature above this threshold makes an event. */
static void make_hot(struct nvme *nvme)
{
    const uint8_t *log;

    conf_status(nvme->conf, "Get Log Page, with RAE",
                nvme_get_log(nvme, LOG_SMART | LOG_RAE, 0, LOG_SMART_LEN),
                NVME_SC_SUCCESS);
    log = nvme->admin->mem;
    set_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD,
                get_le16(log + SMART_TEMPERATURE) - 10u);
}

static void make_cool(struct nvme *nvme)
{
    set_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD, NO_THRESHOLD);
}

/* Open a controller with health events enabled and no threshold exceeded. */
static struct nvme *open_cool(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);

    make_cool(nvme);
    set_feature(nvme, FEATURE_ASYNC_EVENT_CONFIG, ASKED_SMART);
    return nvme;
}

static uint32_t abort_of(struct nvme *nvme, uint16_t sqid, uint16_t cid)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_ABORT,
                           .cdw10 = (uint32_t)cid << 16 | sqid};
    struct nvme_cqe cqe;

    conf_status(nvme->conf, "Abort", nvme_run(nvme, nvme->admin, &sqe, 0, &cqe),
                NVME_SC_SUCCESS);
    return cqe.dw0 & 1;
}

/* ---- Requests. */

/* After a request was answered, one more can wait. */
static void limit_again(struct conf *conf)
{
    struct nvme *nvme = open_cool(conf);
    uint16_t count = event_limit(nvme);

    if (count > MOST) {
        conf_not_applicable(conf, "AERL is %u", count - 1);
    }
    for (uint16_t i = 0; i < count; i++) {
        request_event(nvme, (uint16_t)(FIRST_CID + i));
    }
    make_hot(nvme);
    for (uint16_t i = 0; nvme->num_others == 0; i++) {
        conf_check(conf, i < 10, "no event came");
        nvme_expect_works(nvme);
    }
    conf_equal(conf, "answers to the requests", nvme->num_others, 1);
    request_event(nvme, FIRST_CID + MOST + 1);
    expect_quiet(nvme, FIRST_CID + MOST + 1);
    nvme_close(nvme);
}

static void aer_pending(struct conf *conf)
{
    struct nvme *nvme = open_cool(conf);

    request_event(nvme, FIRST_CID);
    expect_quiet(nvme, FIRST_CID);
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

/* Requests that wait do not hold up later commands. */
static void others_go_on(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);

    request_event(nvme, FIRST_CID);
    /* More commands than the queue has entries. */
    for (unsigned int i = 0; i < 40; i++) {
        nvme_expect_works(nvme);
    }
    conf_equal(conf, "answers to the request", nvme->num_others, 0);
    nvme_close(nvme);
}

/* As many requests as AERL allows can wait, and no more; none is answered
 * without an event. */
static void fill_up(struct nvme *nvme, uint16_t first_cid)
{
    uint16_t count = event_limit(nvme);
    uint16_t more = (uint16_t)(first_cid + count);
    struct nvme_cqe cqe;

    for (uint16_t i = 0; i <= count; i++) {
        request_event(nvme, (uint16_t)(first_cid + i));
    }
    conf_check(nvme->conf, nvme_take_other(nvme, more, EVENT_US, &cqe),
               "one request more than AERL was not answered");
    conf_status(nvme->conf, "one request more than AERL", cqe.status,
                NVME_SC_AER_LIMIT);
    expect_quiet(nvme, first_cid);
    conf_equal(nvme->conf, "answers to the others", nvme->num_others, 0);
}

static struct nvme *open_few(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);

    if (event_limit(nvme) > MOST) {
        conf_not_applicable(conf, "AERL is %u", event_limit(nvme) - 1);
    }
    return nvme;
}

static void aer_limit(struct conf *conf)
{
    struct nvme *nvme = open_few(conf);

    fill_up(nvme, FIRST_CID);
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

/* A controller reset ends the requests: they are aborted, or get no answer. */
static void aer_reset(struct conf *conf)
{
    struct nvme *nvme = open_few(conf);
    struct nvme_cqe cqe;

    fill_up(nvme, FIRST_CID);
    nvme_reset(nvme);
    for (uint16_t i = 0; i < event_limit(nvme); i++) {
        if (nvme_take_other(nvme, (uint16_t)(FIRST_CID + i), 0, &cqe)) {
            conf_status(conf, "a request that a reset ended", cqe.status,
                        NVME_SC_ABORT_REQUESTED);
        }
    }
    fill_up(nvme, FIRST_CID + MOST + 1);
    nvme_close(nvme);
}

static void new_controller(struct conf *conf)
{
    struct nvme *nvme = open_few(conf);

    fill_up(nvme, FIRST_CID);
    nvme_close(nvme);
    nvme = nvme_open_admin(conf);
    fill_up(nvme, FIRST_CID);
    nvme_close(nvme);
}

/* ---- Events. */

static void threshold_over(struct conf *conf)
{
    struct nvme *nvme = open_cool(conf);

    request_event(nvme, FIRST_CID);
    make_hot(nvme);
    conf_equal(conf, "type, information, log page",
               expect_event(nvme, FIRST_CID), TEMPERATURE_EVENT);
    conf_status(conf, "Get Log Page",
                nvme_get_log(nvme, LOG_SMART, 0, LOG_SMART_LEN),
                NVME_SC_SUCCESS);
    conf_check(
        conf, nvme->admin->mem[SMART_CRITICAL_WARNING] & SMART_WARN_TEMPERATURE,
        "SMART's critical warning does not show the threshold");
    nvme_close(nvme);
}

static void threshold_under(struct conf *conf)
{
    struct nvme *nvme = open_cool(conf);
    const uint8_t *log = nvme_log(nvme, LOG_SMART, LOG_SMART_LEN);
    uint32_t kelvin = get_le16(log + SMART_TEMPERATURE);

    request_event(nvme, FIRST_CID);
    set_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD,
                THSEL_UNDER | (kelvin + 10));
    conf_equal(conf, "type, information, log page",
               expect_event(nvme, FIRST_CID), TEMPERATURE_EVENT);
    nvme_close(nvme);
}

/* A temperature equal to the threshold makes an event. */
static void at_threshold(struct conf *conf)
{
    struct nvme *nvme = open_cool(conf);
    const uint8_t *log = nvme_log(nvme, LOG_SMART, LOG_SMART_LEN);

    request_event(nvme, FIRST_CID);
    set_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD,
                get_le16(log + SMART_TEMPERATURE));
    conf_equal(conf, "type, information, log page",
               expect_event(nvme, FIRST_CID), TEMPERATURE_EVENT);
    nvme_close(nvme);
}

/*
 * The threshold of temperature sensor 1 makes an event of its own, and leaves
 * that of the composite temperature as it is.
 */
static void sensor_threshold(struct conf *conf)
{
    enum { SENSOR1 = 1 << 16 };
    struct nvme *nvme = open_cool(conf);
    const uint8_t *log = nvme_log(nvme, LOG_SMART, LOG_SMART_LEN);
    uint32_t kelvin = get_le16(log + SMART_SENSORS);
    uint32_t value;

    if (kelvin == 0) {
        nvme_close(nvme);
        conf_not_applicable(conf, "temperature sensor 1 does not exist");
        return;
    }
    request_event(nvme, FIRST_CID);
    set_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD, SENSOR1 | (kelvin + 10));
    expect_quiet(nvme, FIRST_CID);
    set_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD, SENSOR1 | kelvin);
    conf_equal(conf, "type, information, log page",
               expect_event(nvme, FIRST_CID), TEMPERATURE_EVENT);
    nvme_get_feature(nvme, FEATURE_TEMPERATURE_THRESHOLD, 0, 0, &value);
    conf_equal(conf, "threshold of the composite temperature", value & 0xffff,
               NO_THRESHOLD);
    nvme_close(nvme);
}

static void before_request(struct conf *conf)
{
    struct nvme *nvme = open_cool(conf);

    make_hot(nvme);
    request_event(nvme, FIRST_CID);
    conf_equal(conf, "type, information, log page",
               expect_event(nvme, FIRST_CID), TEMPERATURE_EVENT);
    nvme_close(nvme);
}

/* One event answers one request. */
static void only_one(struct conf *conf)
{
    struct nvme *nvme = open_cool(conf);

    request_event(nvme, FIRST_CID);
    make_hot(nvme);
    expect_event(nvme, FIRST_CID);
    request_event(nvme, FIRST_CID + 1);
    expect_quiet(nvme, FIRST_CID + 1);
    nvme_close(nvme);
}

static void not_asked(struct conf *conf, uint32_t config)
{
    struct nvme *nvme = open_cool(conf);

    set_feature(nvme, FEATURE_ASYNC_EVENT_CONFIG, config);
    request_event(nvme, FIRST_CID);
    make_hot(nvme);
    expect_quiet(nvme, FIRST_CID);
    nvme_close(nvme);
}

static void config_none(struct conf *conf)
{
    not_asked(conf, 0);
}

static void config_others(struct conf *conf)
{
    not_asked(conf, ASKED_SMART & ~(uint32_t)SMART_WARN_TEMPERATURE);
}

/* Exceed the threshold again: a new event comes only if the page was read
 * without RAE. */
static void hot_again(struct conf *conf, bool is_read, uint32_t retain)
{
    struct nvme *nvme = open_cool(conf);

    request_event(nvme, FIRST_CID);
    make_hot(nvme);
    expect_event(nvme, FIRST_CID);
    request_event(nvme, FIRST_CID + 1);
    make_cool(nvme);
    if (is_read) {
        conf_status(conf, "Get Log Page",
                    nvme_get_log(nvme, LOG_SMART | retain, 0, LOG_SMART_LEN),
                    NVME_SC_SUCCESS);
    }
    make_hot(nvme);
    if (is_read && retain == 0) {
        conf_equal(conf, "type, information, log page",
                   expect_event(nvme, FIRST_CID + 1), TEMPERATURE_EVENT);
    } else {
        expect_quiet(nvme, FIRST_CID + 1);
    }
    nvme_close(nvme);
}

static void not_read(struct conf *conf)
{
    hot_again(conf, false, 0);
}

static void read_retained(struct conf *conf)
{
    hot_again(conf, true, LOG_RAE);
}

static void read_cleared(struct conf *conf)
{
    hot_again(conf, true, 0);
}

/* Reading another page does not unmask the event. */
static void read_other(struct conf *conf)
{
    struct nvme *nvme = open_cool(conf);

    request_event(nvme, FIRST_CID);
    make_hot(nvme);
    expect_event(nvme, FIRST_CID);
    request_event(nvme, FIRST_CID + 1);
    make_cool(nvme);
    nvme_log(nvme, LOG_ERROR, LOG_ERROR_ENTRY_LEN);
    nvme_log(nvme, LOG_FIRMWARE_SLOT, LOG_FIRMWARE_SLOT_LEN);
    make_hot(nvme);
    expect_quiet(nvme, FIRST_CID + 1);
    nvme_close(nvme);
}

/* ---- Abort. */

static void abort_request(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    struct nvme_cqe cqe;

    request_event(nvme, FIRST_CID);
    request_event(nvme, FIRST_CID + 1);
    if (abort_of(nvme, 0, FIRST_CID) == ABORT_NOT_DONE) {
        conf_not_applicable(conf,
                            "Abort reports that it did not abort the request");
    }
    conf_check(conf, nvme_take_other(nvme, FIRST_CID, EVENT_US, &cqe),
               "an aborted command was not answered");
    conf_status(conf, "the aborted command", cqe.status,
                NVME_SC_ABORT_REQUESTED);
    expect_quiet(nvme, FIRST_CID + 1);
    conf_equal(conf, "a second Abort", abort_of(nvme, 0, FIRST_CID),
               ABORT_NOT_DONE);
    nvme_close(nvme);
}

static void abort_unknown(struct conf *conf, uint16_t sqid)
{
    struct nvme *nvme = nvme_open(conf);

    conf_equal(conf, "Abort of a command that does not exist",
               abort_of(nvme, sqid, 0x6666), ABORT_NOT_DONE);
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

static void abort_admin(struct conf *conf)
{
    abort_unknown(conf, 0);
}

static void abort_io(struct conf *conf)
{
    abort_unknown(conf, 1);
}

/* The same CID on another queue belongs to another command. */
static void abort_other_queue(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);

    request_event(nvme, FIRST_CID);
    conf_equal(conf, "Abort of that CID on queue 1",
               abort_of(nvme, 1, FIRST_CID), ABORT_NOT_DONE);
    expect_quiet(nvme, FIRST_CID);
    nvme_close(nvme);
}

static void abort_wrong_queue(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    struct nvme_sqe sqe = {.opcode = ADMIN_ABORT, .cdw10 = 0xffff};
    struct nvme_cqe cqe;
    uint16_t status = nvme_run(nvme, nvme->admin, &sqe, 0, &cqe);

    conf_check(conf,
               status != NVME_SC_SUCCESS || (cqe.dw0 & 1) == ABORT_NOT_DONE,
               "a command of queue 65535, which does not exist, was aborted");
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

/* The same CID on two queues belongs to two commands. */
static void cid_two_queues(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = nvme_rw_sqe(nvme, NVM_READ, 0, 1);

    request_event(nvme, FIRST_CID);
    sqe.cid = FIRST_CID;
    conf_status(conf, "Read with the CID of an admin command",
                nvme_run(nvme, nvme->io, &sqe, nvme->block_bytes, NULL),
                NVME_SC_SUCCESS);
    expect_quiet(nvme, FIRST_CID);
    nvme_close(nvme);
}

/* A host uses the CID of an event request again.  How many commands a
 * controller searches for a conflict is its own choice. */
static void cid_event_request(struct conf *conf)
{
    struct nvme *nvme = open_cool(conf);
    struct nvme_sqe sqe = {.opcode = ADMIN_KEEP_ALIVE, .cid = FIRST_CID};
    uint16_t status;

    request_event(nvme, FIRST_CID);
    status = nvme_run(nvme, nvme->admin, &sqe, 0, NULL);
    if (status == NVME_SC_COMMAND_ID_CONFLICT) {
        make_hot(nvme);
        conf_equal(conf, "the answer to the event request",
                   expect_event(nvme, FIRST_CID), TEMPERATURE_EVENT);
    } else {
        /* The host has forgotten the request, so that nothing may be said about
         * it. */
        conf_status(conf, "Keep Alive with the CID of an event request", status,
                    NVME_SC_SUCCESS);
        make_hot(nvme);
        expect_quiet(nvme, FIRST_CID);
    }
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

static uint32_t run_property(struct nvme *nvme, uint8_t fctype, uint32_t offset,
                             uint32_t value)
{
    struct property_command command = {
        .size_bytes = 4, .offset = offset, .value = value};
    struct nvme_sqe sqe = {.fctype = fctype, .cid = FIRST_CID};
    struct nvme_cqe cqe;

    property_command_build(&sqe, &command);
    conf_status(nvme->conf, "a command with the CID of an event request",
                nvme_run(nvme, nvme->admin, &sqe, 0, &cqe), NVME_SC_SUCCESS);
    return cqe.dw0;
}

static uint64_t count_errors(struct nvme *nvme)
{
    return get_le64(nvme_log(nvme, LOG_SMART, LOG_SMART_LEN) +
                    SMART_ERROR_LOG_ENTRIES);
}

/*
 * SPDK takes its event requests for completed before it shuts a controller
 * down, and sends Property Get and Set with the CID of one of them.
 */
static void cid_shutdown(struct conf *conf)
{
    struct nvme *nvme = open_few(conf);
    uint64_t errors = count_errors(nvme);
    struct nvme_cqe cqe;
    uint32_t csts = 0;
    uint32_t cc;

    for (uint16_t i = 0; i < event_limit(nvme); i++) {
        request_event(nvme, (uint16_t)(FIRST_CID + i));
    }
    cc = run_property(nvme, FABRICS_PROPERTY_GET, PROPERTY_CC, 0);
    conf_equal(conf, "CC", cc, NVMF_CC_ENABLE);
    (void)run_property(nvme, FABRICS_PROPERTY_SET, PROPERTY_CC,
                       cc | 1u << CC_SHN_SHIFT);
    for (unsigned int i = 0; i < 100 && csts >> CSTS_SHST_SHIFT != 2; i++) {
        conf_pass(conf, QUIET_US);
        csts = run_property(nvme, FABRICS_PROPERTY_GET, PROPERTY_CSTS, 0);
        csts &= 3u << CSTS_SHST_SHIFT;
    }
    conf_equal(conf, "CSTS.SHST", csts >> CSTS_SHST_SHIFT, 2);
    /* Nor does a reset say anything about the request. */
    (void)run_property(nvme, FABRICS_PROPERTY_SET, PROPERTY_CC, 0);
    conf_check(conf, !nvme_take_other(nvme, FIRST_CID, QUIET_US, &cqe),
               "a second response with the CID of a Property Set came");
    nvme_close(nvme);
    nvme = nvme_open_admin(conf);
    conf_equal(conf, "errors that SMART counts", count_errors(nvme), errors);
    nvme_close(nvme);
}

/* A command with a CID that is in use gets Command ID Conflict, and the first
 * command with that CID, a long Read at the medium, goes on. */
static void cid_conflict_io(struct conf *conf)
{
    enum { LONG_LEN = 128 * 1024 };
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe first =
        nvme_rw_sqe(nvme, NVM_READ, 0, LONG_LEN / nvme->block_bytes);
    struct nvme_sqe second = nvme_rw_sqe(nvme, NVM_READ, 0, 1);
    struct sgl long_sgl = rc_keyed(nvme->io, 0, LONG_LEN);
    struct sgl short_sgl = rc_keyed(nvme->io, 0, nvme->block_bytes);
    unsigned int conflicts = 0;

    first.cid = second.cid = FIRST_CID;
    rc_send_capsule(nvme->io, &first, &long_sgl, NULL, 0);
    rc_send_capsule(nvme->io, &second, &short_sgl, NULL, 0);
    for (unsigned int i = 0; i < 2; i++) {
        struct nvme_cqe cqe;

        nvme_take(nvme, nvme->io, FIRST_CID, &cqe);
        if ((cqe.status & NVME_SC_MASK) == NVME_SC_COMMAND_ID_CONFLICT) {
            conflicts++;
        } else {
            conf_status(conf, "the long Read", cqe.status & NVME_SC_MASK,
                        NVME_SC_SUCCESS);
        }
    }
    conf_equal(conf, "Command ID Conflict among two answers", conflicts, 1);
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, fn)                                          \
    CONF_TEST(id, "NVMe 1.4 " clause, purpose, fn)

static const struct conf_test tests[] = {
    TEST("aer.limit", "5.2, 5.15.2.2",
         "AERL + 1 requests wait, and one more is refused", aer_limit),
    TEST("aer.limit-again", "5.2",
         "a request that was answered makes room for another", limit_again),
    TEST("aer.pending", "5.2", "a request is not answered without an event",
         aer_pending),
    TEST("aer.others", "5.2", "other commands are executed while requests wait",
         others_go_on),
    TEST("aer.reset", "5.2, 7.3.2",
         "a controller reset ends the requests that wait", aer_reset),
    TEST("aer.new", "5.2", "a new controller can take all of AERL again",
         new_controller),
    TEST("aer.over", "5.2, 5.21.1.4",
         "a temperature above the threshold makes an event", threshold_over),
    TEST("aer.under", "5.2, 5.21.1.4",
         "a temperature below the under-temperature threshold makes an event",
         threshold_under),
    TEST("aer.at-threshold", "5.21.1.4",
         "a temperature equal to the threshold makes an event", at_threshold),
    TEST("aer.sensor", "5.21.1.4",
         "a temperature sensor has a threshold of its own", sensor_threshold),
    TEST("aer.before-request", "5.2", "an event waits for a request",
         before_request),
    TEST("aer.only-one", "5.2", "one event answers one request", only_one),
    TEST("aer.config-none", "5.21.1.11",
         "no event comes when all events are disabled", config_none),
    TEST("aer.config-others", "5.21.1.11",
         "no event comes when only other events are enabled", config_others),
    TEST("aer.not-read", "5.2", "an event is masked until its page is read",
         not_read),
    TEST("aer.retained", "5.2, 5.14",
         "an event stays masked when its page is read with RAE", read_retained),
    TEST("aer.cleared", "5.2, 5.14",
         "an event comes again after its page was read without RAE",
         read_cleared),
    TEST("aer.other-page", "5.2",
         "reading another page does not unmask an event", read_other),
    TEST("abort.request", "5.1", "an event request is aborted", abort_request),
    TEST("abort.admin", "5.1",
         "Abort of an unknown command on the admin queue aborts nothing",
         abort_admin),
    TEST("abort.io", "5.1",
         "Abort of an unknown command on the I/O queue aborts nothing",
         abort_io),
    TEST("abort.other-queue", "5.1",
         "Abort of the same CID on another queue aborts nothing",
         abort_other_queue),
    TEST("abort.wrong-queue", "5.1",
         "Abort on a queue that does not exist aborts nothing",
         abort_wrong_queue),
    TEST("cid.two-queues", "4.2", "the same CID can be used on two queues",
         cid_two_queues),
    TEST("cid.event-request", "4.2, 4.6.1",
         "a command with the CID of an event request does no harm",
         cid_event_request),
    TEST("cid.shutdown", "4.2, 4.6.1, 7.6.2",
         "a host that has forgotten its event requests can shut down",
         cid_shutdown),
    TEST("cid.conflict-io", "4.2, 4.6.1",
         "a second I/O command with a CID in use does no harm",
         cid_conflict_io),
};
CONF_TESTS(conf_tests_nvme_aer, "nvme", tests);
