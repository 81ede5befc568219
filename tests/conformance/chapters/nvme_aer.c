/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous events: how many requests, when they are answered, what masks
 * them; Abort.  Events are made by temperature thresholds around the
 * temperature that SMART says.
 * Spec: NVM Express 1.4 5.1, 5.2, 5.21.1.4, 5.21.1.11.
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    ASKED_SMART = 0x1f, /* of feature 0Bh */
    QUIET_US = 100000,
    EVENT_US = 1000000,
    NO_THRESHOLD = 0xffff,
    THSEL_UNDER = 1 << 20,
    ABORT_NOT_DONE = 1,
    FIRST_CID = 0x2000,
    MOST = 16, /* requests that we try */
};

/* The event that a temperature makes, and the page that explains it. */
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

/* Above that threshold is an event. */
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

/* Health events are on, nothing is hot. */
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

/* One more fits again after one was answered. */
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
    conf_equal(conf, "one request is answered", nvme->num_others, 1);
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

/* Requests that wait do not hold up what comes behind them. */
static void others_go_on(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);

    request_event(nvme, FIRST_CID);
    for (unsigned int i = 0; i < 40; i++) { /* more than the queue has */
        nvme_expect_works(nvme);
    }
    conf_equal(conf, "answers to the request", nvme->num_others, 0);
    nvme_close(nvme);
}

/* All of AERL fit, and no more; none is answered by itself. */
static void fill_up(struct nvme *nvme, uint16_t first_cid)
{
    uint16_t count = event_limit(nvme);
    uint16_t more = (uint16_t)(first_cid + count);
    struct nvme_cqe cqe;

    for (uint16_t i = 0; i <= count; i++) {
        request_event(nvme, (uint16_t)(first_cid + i));
    }
    conf_check(nvme->conf, nvme_take_other(nvme, more, EVENT_US, &cqe),
               "a request more than AERL was not answered");
    conf_status(nvme->conf, "a request more than AERL", cqe.status,
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

/* A controller reset ends the requests: aborted, or without an answer. */
static void aer_reset(struct conf *conf)
{
    struct nvme *nvme = open_few(conf);
    struct nvme_cqe cqe;

    fill_up(nvme, FIRST_CID);
    nvme_reset(nvme);
    for (uint16_t i = 0; i < event_limit(nvme); i++) {
        if (nvme_take_other(nvme, (uint16_t)(FIRST_CID + i), 0, &cqe)) {
            conf_status(conf, "a request at a reset", cqe.status,
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
        "the page does not warn");
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

/* The temperature is at the threshold: that is enough. */
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

static void before_request(struct conf *conf)
{
    struct nvme *nvme = open_cool(conf);

    make_hot(nvme);
    request_event(nvme, FIRST_CID);
    conf_equal(conf, "type, information, log page",
               expect_event(nvme, FIRST_CID), TEMPERATURE_EVENT);
    nvme_close(nvme);
}

/* One event, one request. */
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

/* Hot again: told only if the page was read without RAE. */
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

/* Another page does not unmask it. */
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
        conf_not_applicable(conf, "Abort says that it was not done");
    }
    conf_check(conf, nvme_take_other(nvme, FIRST_CID, EVENT_US, &cqe),
               "an aborted command was not answered");
    conf_status(conf, "the aborted command", cqe.status,
                NVME_SC_ABORT_REQUESTED);
    expect_quiet(nvme, FIRST_CID + 1);
    conf_equal(conf, "Abort once more", abort_of(nvme, 0, FIRST_CID),
               ABORT_NOT_DONE);
    nvme_close(nvme);
}

static void abort_unknown(struct conf *conf, uint16_t sqid)
{
    struct nvme *nvme = nvme_open(conf);

    conf_equal(conf, "Abort of a command that is not there",
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

/* The same CID on another queue is another command. */
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
               "a command of queue 65535 was aborted");
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

/* One CID of two queues is two commands. */
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

/* A CID in use: Command ID Conflict, or it is not noticed; the command that
 * has it goes on. */
static void cid_conflict(struct conf *conf)
{
    struct nvme *nvme = open_cool(conf);
    struct nvme_sqe sqe = {.opcode = ADMIN_KEEP_ALIVE, .cid = FIRST_CID};
    uint16_t status;

    request_event(nvme, FIRST_CID);
    status = nvme_run(nvme, nvme->admin, &sqe, 0, NULL);
    conf_check(conf,
               status == NVME_SC_SUCCESS ||
                   status == NVME_SC_COMMAND_ID_CONFLICT,
               "Keep Alive with a CID in use: status %03xh", status);
    make_hot(nvme);
    conf_equal(conf, "the event request's answer",
               expect_event(nvme, FIRST_CID), TEMPERATURE_EVENT);
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, fn)                                          \
    CONF_TEST(id, "NVMe 1.4 " clause, purpose, fn)

static const struct conf_test tests[] = {
    TEST("aer.limit", "5.2, 5.15.2.2", "AERL + 1 wait, one more is refused",
         aer_limit),
    TEST("aer.limit-again", "5.2", "an answered request makes room",
         limit_again),
    TEST("aer.pending", "5.2", "no event, no answer", aer_pending),
    TEST("aer.others", "5.2", "other commands go on", others_go_on),
    TEST("aer.reset", "5.2, 7.3.2", "a reset ends those that wait", aer_reset),
    TEST("aer.new", "5.2", "a new controller has all of AERL", new_controller),
    TEST("aer.over", "5.2, 5.21.1.4", "above the threshold: an event",
         threshold_over),
    TEST("aer.under", "5.2, 5.21.1.4", "below the threshold: an event",
         threshold_under),
    TEST("aer.at-threshold", "5.21.1.4", "at the threshold: an event",
         at_threshold),
    TEST("aer.before-request", "5.2", "an event is kept until asked for",
         before_request),
    TEST("aer.only-one", "5.2", "one event answers one request", only_one),
    TEST("aer.config-none", "5.21.1.11", "no event that was not asked for",
         config_none),
    TEST("aer.config-others", "5.21.1.11", "its own bit decides",
         config_others),
    TEST("aer.not-read", "5.2", "masked until the page is read", not_read),
    TEST("aer.retained", "5.2, 5.14", "RAE: it stays masked", read_retained),
    TEST("aer.cleared", "5.2, 5.14", "without RAE it comes again",
         read_cleared),
    TEST("aer.other-page", "5.2", "other pages do not unmask it", read_other),
    TEST("abort.request", "5.1", "an event request is aborted", abort_request),
    TEST("abort.admin", "5.1", "no such command on the admin queue",
         abort_admin),
    TEST("abort.io", "5.1", "no such command on the I/O queue", abort_io),
    TEST("abort.other-queue", "5.1", "the queue matters", abort_other_queue),
    TEST("abort.wrong-queue", "5.1", "no such queue", abort_wrong_queue),
    TEST("cid.two-queues", "4.2", "one CID on two queues", cid_two_queues),
    TEST("cid.conflict", "4.2, 4.6.1", "a CID in use harms nobody",
         cid_conflict),
};
CONF_TESTS(conf_tests_nvme_aer, "nvme", tests);
