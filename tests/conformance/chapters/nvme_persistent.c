/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The persistent event log, LID 0Dh.  Events of namespaces are in
 * nvme_manage.c.
 *
 * Spec: NVM Express Base 2.0 5.16.1.14; the action that reads 512 bytes of
 * header, and its bit, 5.16.1.14.1.1.
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    PIECE = 4096,
    PELS_UNIT = 65536,
    HOUR_MS = 3600 * 1000,
    SOME_TIME_MS = 5000,
    KEPT_US = 1000 * 1000,
};

static uint16_t log_action(struct nvme *nvme, uint32_t action, uint64_t offset,
                           uint32_t len)
{
    return nvme_get_log(nvme, LOG_PERSISTENT_EVENT | action << PEL_ACTION_SHIFT,
                        offset, len);
}

static void expect_action(struct nvme *nvme, const char *what, uint32_t action,
                          uint16_t status)
{
    conf_status(nvme->conf, what, log_action(nvme, action, 0, PEL_HEADER_LEN),
                status);
}

static void persistent_context(struct conf *conf)
{
    struct nvme *nvme = nvme_open_events(conf);

    expect_action(nvme, "read without a context", PEL_READ,
                  NVME_SC_COMMAND_SEQUENCE);
    expect_action(nvme, "establish a context", PEL_ESTABLISH, NVME_SC_SUCCESS);
    expect_action(nvme, "establish another one", PEL_ESTABLISH,
                  NVME_SC_COMMAND_SEQUENCE);
    expect_action(nvme, "read", PEL_READ, NVME_SC_SUCCESS);
    expect_action(nvme, "release the context", PEL_RELEASE, NVME_SC_SUCCESS);
    expect_action(nvme, "read after the release", PEL_READ,
                  NVME_SC_COMMAND_SEQUENCE);
    expect_action(nvme, "release without a context", PEL_RELEASE,
                  NVME_SC_SUCCESS);
    nvme_close(nvme);
}

static void persistent_header(struct conf *conf)
{
    struct nvme *nvme = nvme_open_events(conf);
    uint64_t most = (uint64_t)get_le32(nvme->ctrl + ID_CTRL_PELS) * PELS_UNIT;
    uint32_t len;
    const uint8_t *page = nvme_events_page(nvme, &len);

    conf_equal(conf, "log identifier", page[PEL_LID], LOG_PERSISTENT_EVENT);
    conf_check(conf, len <= most, "TLL is %u, and PELS allows %u", len,
               (unsigned int)most);
    conf_equal(conf, "LHL", get_le16(page + PEL_HEADER_REST),
               PEL_HEADER_LEN - 20);
    conf_same(conf, "VID and SSVID", page + PEL_VID, nvme->ctrl + ID_CTRL_VID,
              4);
    conf_same(conf, "serial number", page + PEL_SN, nvme->ctrl + ID_CTRL_SN,
              20);
    conf_same(conf, "model", page + PEL_MN, nvme->ctrl + ID_CTRL_MN, 40);
    conf_same(conf, "NQN", page + PEL_SUBNQN, nvme->ctrl + ID_CTRL_SUBNQN, 224);
    nvme_close(nvme);
}

/* TNEV, TLL and the lengths of the events agree, and each type is supported. */
static void persistent_events(struct conf *conf)
{
    struct nvme *nvme = nvme_open_events(conf);
    uint32_t len, at = PEL_HEADER_LEN, events = 0;
    const uint8_t *page = nvme_events_page(nvme, &len);
    bool has_start = false;

    while (at < len) {
        const uint8_t *event = page + at;
        uint8_t type = event[PEL_EVENT_TYPE];
        uint32_t event_len = len - at < PEL_EVENT_HEADER_LEN
                                 ? 0
                                 : 3u + event[PEL_EVENT_HEADER_REST] +
                                       get_le16(event + PEL_EVENT_LENGTH);

        conf_check(conf, event_len > 0 && event_len <= len - at,
                   "event %u at byte %u has %u bytes, and the log %u", events,
                   at, event_len, len);
        conf_check(conf, page[PEL_SUPPORTED + type / 8] & 1u << type % 8,
                   "event %u has type %02xh, which is not supported", events,
                   type);
        has_start |= type == PEL_TYPE_RESET;
        at += event_len;
        events++;
    }
    conf_equal(conf, "TNEV", get_le32(page + PEL_EVENTS), events);
    conf_check(conf, has_start, "there is no event of a power-on or reset");
    nvme_close(nvme);
}

static void persistent_header_action(struct conf *conf)
{
    struct nvme *nvme = nvme_open_events(conf);
    uint8_t *mem = nvme->admin->mem;

    conf_check(conf,
               get_le32(nvme_log(nvme, LOG_SUPPORTED, LOG_SUPPORTED_LEN) +
                        4 * LOG_PERSISTENT_EVENT) &
                   LOG_SUPPORTED_PEL_HEADER,
               "the action is not supported, and the target follows 2.0");
    /* Offset and length do not matter. */
    conf_status(conf, "establish, and read the header",
                log_action(nvme, PEL_HEADER, 1024, PEL_HEADER_LEN),
                NVME_SC_SUCCESS);
    conf_equal(conf, "log identifier", mem[PEL_LID], LOG_PERSISTENT_EVENT);
    conf_equal(conf, "RCI before there was a context",
               get_le32(mem + PEL_CONTEXT), 0);
    conf_status(conf, "the same again",
                log_action(nvme, PEL_HEADER, 0, PEL_HEADER_LEN),
                NVME_SC_SUCCESS);
    conf_check(conf,
               (get_le32(mem + PEL_CONTEXT) & 0x70000) ==
                   (PEL_CONTEXT_EXISTS | PEL_CONTEXT_PORT),
               "RCI is %08xh although there was a context",
               get_le32(mem + PEL_CONTEXT));
    expect_action(nvme, "read", PEL_READ, NVME_SC_SUCCESS);
    nvme_close(nvme);
}

/* Set the clock to a time that is an hour later. @return the time before */
static uint64_t change_clock(struct nvme *nvme)
{
    unsigned int origin;
    uint64_t before_ms = nvme_get_time(nvme, &origin);

    memset(nvme->admin->mem, 0, LOG_TIMESTAMP_LEN);
    put_le64(nvme->admin->mem, before_ms + HOUR_MS);
    conf_status(nvme->conf, "Set Features, Timestamp",
                nvme_timestamp(nvme, ADMIN_SET_FEATURES, LOG_TIMESTAMP_LEN),
                NVME_SC_SUCCESS);
    return before_ms;
}

static void persistent_same(struct conf *conf)
{
    struct nvme *nvme = nvme_open_events(conf);
    uint32_t len, again_len;
    const uint8_t *page = nvme_events_page(nvme, &len), *again;
    uint32_t generation = get_le16(page + PEL_GENERATION);

    change_clock(nvme);
    for (uint32_t at = PEL_HEADER_LEN; at < len; at += PIECE) {
        conf_status(conf, "read again", log_action(nvme, PEL_READ, at, PIECE),
                    NVME_SC_SUCCESS);
        conf_same(conf, "events of the same context", nvme->admin->mem,
                  page + at, len - at < PIECE ? len - at : PIECE);
    }
    expect_action(nvme, "release the context", PEL_RELEASE, NVME_SC_SUCCESS);
    again = nvme_events_page(nvme, &again_len);
    conf_equal(conf, "generation number of the next context",
               get_le16(again + PEL_GENERATION), (uint16_t)(generation + 1));
    conf_check(conf, again_len > len || memcmp(again, page, len) != 0,
               "the new event is not in the new context");
    nvme_close(nvme);
}

static void persistent_offset(struct conf *conf)
{
    struct nvme *nvme = nvme_open_events(conf);
    uint32_t len;

    nvme_events_page(nvme, &len);
    conf_status(conf, "read beyond the end",
                log_action(nvme, PEL_READ, (uint64_t)len + 4 - len % 4, 16),
                NVME_SC_INVALID_FIELD);
    conf_status(conf, "read far beyond the end",
                log_action(nvme, PEL_READ, UINT64_MAX - 3, 16),
                NVME_SC_INVALID_FIELD);
    conf_status(conf, "read at an offset that is no multiple of 4",
                log_action(nvme, PEL_READ, 2, 16), NVME_SC_INVALID_FIELD);
    nvme_close(nvme);
}

static void persistent_clock(struct conf *conf)
{
    struct nvme *nvme = nvme_open_events(conf);
    uint64_t before_ms = change_clock(nvme);
    const uint8_t *event = nvme_event(nvme, 0, PEL_TYPE_CLOCK);
    uint64_t old_ms = get_le64(event + PEL_EVENT_HEADER_LEN);
    uint64_t new_ms = get_le64(event + PEL_EVENT_TIMESTAMP);

    conf_equal(conf, "controller of the event",
               get_le16(event + PEL_EVENT_CNTLID), nvme->admin->config.cntlid);
    conf_check(conf, old_ms - before_ms < SOME_TIME_MS,
               "the timestamp before the change was %llu, and the event has "
               "%llu",
               (unsigned long long)before_ms, (unsigned long long)old_ms);
    conf_check(conf, new_ms - before_ms - HOUR_MS < SOME_TIME_MS,
               "the clock was set to %llu, and the event has %llu",
               (unsigned long long)before_ms + HOUR_MS,
               (unsigned long long)new_ms);
    nvme_close(nvme);
}

static void persistent_reset(struct conf *conf)
{
    struct nvme *nvme = nvme_open_events(conf);
    const uint8_t *event;

    expect_action(nvme, "establish a context", PEL_ESTABLISH, NVME_SC_SUCCESS);
    nvme_reset(nvme);
    expect_action(nvme, "read after a controller reset", PEL_READ,
                  NVME_SC_COMMAND_SEQUENCE);
    event = nvme_event(nvme, 0, PEL_TYPE_RESET);
    conf_equal(conf, "controller in the list",
               get_le16(event + PEL_EVENT_HEADER_LEN + PEL_RESET_LIST),
               nvme->admin->config.cntlid);
    conf_same(conf, "firmware revision", event + PEL_EVENT_HEADER_LEN,
              nvme->ctrl + ID_CTRL_FR, 8);
    nvme_close(nvme);
}

/* An event is in flash within a second, and outlives the power cut. */
static void persistent_power(struct conf *conf)
{
    struct nvme *nvme = nvme_open_events(conf);
    uint64_t before_ms = change_clock(nvme);
    uint32_t len, at = PEL_HEADER_LEN;
    const uint8_t *page;

    conf_pass(conf, KEPT_US);
    conf_power_cut(conf);
    nvme = nvme_open_events(conf);
    page = nvme_events_page(nvme, &len);
    while (at < len &&
           (page[at] != PEL_TYPE_CLOCK ||
            get_le64(page + at + PEL_EVENT_HEADER_LEN) - before_ms >=
                SOME_TIME_MS)) {
        at += 3u + page[at + PEL_EVENT_HEADER_REST] +
              get_le16(page + at + PEL_EVENT_LENGTH);
    }
    conf_check(conf, at < len,
               "the change of the clock before the power cut is lost");
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST("persistent." id, "NVMe 2.0 " clause, purpose, __VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("context", "5.16.1.14", "the log is read in a reporting context",
         persistent_context),
    TEST("header", "5.16.1.14, 5.17.2.1", "the header agrees with Identify",
         persistent_header),
    TEST("events", "5.16.1.14", "the events fill the log as its header says",
         persistent_events),
    TEST("header-action", "5.16.1.14, 5.16.1.14.1.1",
         "one action establishes a context, or not, and reads the header",
         persistent_header_action),
    TEST("same", "5.16.1.14", "a context shows the same events to its end",
         persistent_same),
    TEST("offset", "5.16.1.14, 5.16", "offsets outside the log are refused",
         persistent_offset),
    TEST("clock", "5.16.1.14.1.3", "a change of the Timestamp is recorded",
         persistent_clock),
    TEST("reset", "5.16.1.14.1.4",
         "a controller reset is recorded, and releases the context",
         persistent_reset),
    TEST("power", "5.16.1.14", "events survive a power cut", persistent_power,
         .needs = CONF_NEEDS_CONTROL),
};
CONF_TESTS(conf_tests_nvme_persistent, "nvme", tests);
