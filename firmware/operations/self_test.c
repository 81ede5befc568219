/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/operations/self_test.h"

#include <string.h>

enum {
    SEGMENT_MEMORY = 1,
    SEGMENT_HEALTH = 2,
    SEGMENT_MEDIUM = 3,

    MEMORY_STEP_BYTES = 16 * 1024,
    TENTHS = 10, /* an extended test records its progress at each tenth */

    STATUS_READ_ERROR = 0x281, /* Unrecovered Read Error */
    STATUS_INTERNAL = 0x006,

    SAVE_RETRY_US = 60 * 1000 * 1000,
    EDSTT_MARGIN_PERCENT = 125,
    US_PER_MINUTE = 60 * 1000 * 1000,
};

/* ---- The record in flash. */

static bool may_save(const struct self_test *test)
{
    const struct self_test_config *config = &test->config;

    return config->store.save != NULL &&
           operation_may_save(test->writes,
                              config->power_on_hours(config->ctx));
}

/* Write the record if it has changed and the flash may be written. */
static void save_state(struct self_test *test)
{
    const struct operation_store *store = &test->config.store;
    size_t len;

    if (!test->is_dirty || !may_save(test)) {
        return;
    }
    test->writes++;
    len = self_test_record_emit(&test->state, test->record);
    if (!store->save(store->ctx, test->record, len)) {
        log_line(test->config.log,
                 "self-test: writing its record to flash failed; a power cut "
                 "may lose results");
    }
    test->is_dirty = false; /* a failing flash is not written again at once */
}

/* ---- The end of a test. */

static void add_result(struct self_test *test,
                       const struct nvmf_self_test_result *result)
{
    struct self_test_state *state = &test->state;

    memmove(&state->result[1], &state->result[0],
            (NVMF_SELF_TEST_RESULTS - 1) * sizeof(state->result[0]));
    state->result[0] = *result;
    state->results = (uint16_t)MIN(state->results + 1, NVMF_SELF_TEST_RESULTS);
}

static void end_test(struct self_test *test,
                     struct nvmf_self_test_result result)
{
    static const char *const ends[] = {
        [NVMF_SELF_TEST_PASSED] = "passed",
        [NVMF_SELF_TEST_BY_COMMAND] = "was aborted by a command",
        [NVMF_SELF_TEST_BY_RESET] = "was ended by a reset or power cut",
        [NVMF_SELF_TEST_NS_REMOVED] = "has lost its namespace",
        [NVMF_SELF_TEST_BY_FORMAT] = "was ended by a Format",
        [NVMF_SELF_TEST_FATAL] = "could not be completed",
        [NVMF_SELF_TEST_FAILED] = "failed",
        [NVMF_SELF_TEST_BY_SANITIZE] = "was ended by a Sanitize",
    };
    const struct self_test_config *config = &test->config;
    const char *kind =
        test->state.test.code == NVMF_SELF_TEST_EXTENDED ? "extended" : "short";

    result.code = (uint8_t)test->state.test.code;
    result.power_on_hours = config->power_on_hours(config->ctx);
    if (result.has_lba) {
        log_line(config->log,
                 "self-test: the %s test failed: namespace %u, LBA %lu cannot "
                 "be read from the medium",
                 kind, result.nsid, (unsigned long)result.lba);
    } else {
        log_line(config->log, "self-test: the %s test %s; segment %u", kind,
                 ends[result.end], result.segment);
    }
    if (result.has_lba && config->found_unreadable != NULL) {
        config->found_unreadable(config->ctx, result.nsid, result.lba);
    }
    add_result(test, &result);
    test->state.test = (struct nvmf_self_test){.code = NVMF_SELF_TEST_NONE};
    test->phase = SELF_TEST_IDLE;
    test->is_stale = test->is_reading;
    test->has_status = false;
    test->is_dirty = true;
}

static void end_failed(struct self_test *test, uint8_t segment)
{
    end_test(test, (struct nvmf_self_test_result){.end = NVMF_SELF_TEST_FAILED,
                                                  .segment = segment});
}

void self_test_stop(struct self_test *test, enum nvmf_self_test_end end)
{
    end_test(test, (struct nvmf_self_test_result){.end = (uint8_t)end});
}

/* ---- Chunks. */

/* Chunks of a namespace; 0 if the test does not read it, or it is gone. */
static uint64_t chunks_of(const struct self_test *test, uint32_t ns)
{
    const struct volume_table *table = volume_now(test->config.volume);
    const struct volume_entry *entry = volume_table_find(table, ns + 1);
    uint64_t bytes;

    if (!(test->state.test.namespaces[ns / 32] >> ns % 32 & 1) ||
        entry == NULL || entry->is_cut) {
        return 0;
    }
    bytes = entry->size_bytes >> entry->block_shift << entry->block_shift;
    return (bytes + SELF_TEST_BUFFER_BYTES - 1) / SELF_TEST_BUFFER_BYTES;
}

/* Go to a namespace that has the current chunk.  @return false at the end */
static bool find_chunk(struct self_test *test)
{
    struct self_test_state *state = &test->state;

    for (; state->ns < VOLUME_NAMESPACES; state->ns++) {
        uint64_t chunks = chunks_of(test, state->ns);

        if (state->chunk < chunks) {
            return true;
        }
        state->chunk -= chunks;
    }
    return false;
}

/* The size of the namespace that is read, in blocks of 512 bytes. */
static uint64_t ns_size(const struct self_test *test, uint8_t *shift)
{
    struct media_geometry geometry;

    volume_geometry(test->config.volume, test->state.ns, &geometry);
    *shift = (uint8_t)(geometry.block_shift - VOLUME_MEDIA_SHIFT);
    return geometry.size_blocks << *shift;
}

/* Start to read blocks of the current namespace, in units of 512 bytes. */
static void start_read(struct self_test *test, uint64_t first, uint32_t count,
                       uint64_t now_us)
{
    const struct self_test_config *config = &test->config;
    uint8_t shift;
    struct media_io io = {
        .op = MEDIA_READ,
        .fua = true, /* from the medium, even what the cache has */
        .piece_count = 1,
        .ns = test->state.ns,
        .pieces = &test->piece,
        .owner = &test->owner,
        .number = MEDIA_NO_NUMBER,
    };

    (void)ns_size(test, &shift);
    io.first_lba = first >> shift;
    io.count_blocks = count >> shift;
    /* A chunk is inside one window, because its length divides a window's. */
    ASSERT(volume_locate(config->volume, &io, &io.first_lba, &io.count_blocks));
    io.ns = 0;
    test->piece =
        (struct nvmf_piece){.ptr = config->buffer, .len_bytes = count * 512};
    test->io_count = count;
    test->is_reading = config->submit(config->submit_ctx, &io);
    if (test->is_reading) {
        test->read_us = now_us;
    }
}

static void advance_chunk(struct self_test *test)
{
    struct self_test_state *state = &test->state;
    uint64_t before = state->done * TENTHS / MAX(test->total, 1);

    state->chunk += test->stride;
    state->done = MIN(state->done + test->stride, test->total);
    if (state->test.code == NVMF_SELF_TEST_EXTENDED &&
        state->done * TENTHS / MAX(test->total, 1) != before) {
        test->is_dirty = true;
    }
}

/* ---- Segment 3: the medium. */

/* A part of the medium cannot be read: look for the first block of it. */
static void begin_locating(struct self_test *test)
{
    uint8_t shift;
    uint64_t size = ns_size(test, &shift);

    test->bad_first = test->state.chunk * SELF_TEST_CHUNK_BLOCKS;
    test->bad_count =
        MIN(size - test->bad_first, (uint64_t)SELF_TEST_CHUNK_BLOCKS);
    test->phase = SELF_TEST_LOCATING;
}

static void end_located(struct self_test *test, bool is_certain)
{
    uint8_t shift;

    (void)ns_size(test, &shift);
    end_test(test, (struct nvmf_self_test_result){
                       .end = NVMF_SELF_TEST_FAILED,
                       .segment = SEGMENT_MEDIUM,
                       .has_lba = is_certain,
                       .nsid = test->state.ns + 1,
                       .lba = test->bad_first >> shift,
                       .has_status = true,
                       .status = STATUS_READ_ERROR,
                   });
}

/*
 * A read of the first part of [bad_first, bad_count) has ended.  When one block
 * is left, it is read once more.  If that succeeds, the failure was a temporary
 * one, and the result names no block.
 */
static void narrow_down(struct self_test *test, bool is_ok)
{
    uint8_t shift;
    bool was_all = test->io_count == test->bad_count;

    (void)ns_size(test, &shift);
    if (was_all) {
        end_located(test, !is_ok);
    } else if (is_ok) {
        test->bad_first += test->io_count;
        test->bad_count -= test->io_count;
    } else {
        test->bad_count = test->io_count;
    }
}

static void take_status(struct self_test *test)
{
    /* Marked blocks are unreadable because a host wants that: no error. */
    bool is_ok = test->status == MEDIA_OK || test->status == MEDIA_MARKED;

    test->has_status = false;
    if (!is_ok && test->status != MEDIA_READ_ERROR) {
        end_test(test, (struct nvmf_self_test_result){
                           .end = NVMF_SELF_TEST_FATAL,
                           .has_status = true,
                           .status = STATUS_INTERNAL,
                       });
    } else if (test->phase == SELF_TEST_LOCATING) {
        narrow_down(test, is_ok);
    } else if (is_ok) {
        advance_chunk(test);
    } else {
        begin_locating(test);
    }
}

static void read_next(struct self_test *test, uint64_t now_us)
{
    uint8_t shift;
    uint64_t size;
    uint64_t first;

    if (!find_chunk(test)) {
        self_test_stop(test, NVMF_SELF_TEST_PASSED);
        return;
    }
    size = ns_size(test, &shift);
    first = test->state.chunk * SELF_TEST_CHUNK_BLOCKS;
    start_read(test, first,
               (uint32_t)MIN(size - first, (uint64_t)SELF_TEST_CHUNK_BLOCKS),
               now_us);
}

/* Read one half of the range that has the failing block, or that block. */
static void read_half(struct self_test *test, uint64_t now_us)
{
    uint8_t shift;
    uint64_t size = ns_size(test, &shift);
    uint32_t blocks = (uint32_t)(test->bad_count >> shift);

    if (chunks_of(test, test->state.ns) == 0 || test->bad_first >= size ||
        blocks == 0) {
        end_failed(test, SEGMENT_MEDIUM); /* the namespace has changed */
        return;
    }
    if (test->bad_count > size - test->bad_first) {
        /* A smaller namespace has this NSID now. */
        test->bad_count = size - test->bad_first;
        blocks = (uint32_t)(test->bad_count >> shift);
    }
    start_read(test, test->bad_first, MAX(blocks / 2, 1) << shift, now_us);
}

static void step_medium(struct self_test *test, uint64_t now_us)
{
    if (test->has_status) {
        take_status(test);
    }
    if (test->is_reading ||
        now_us < test->read_us + SELF_TEST_READ_INTERVAL_US) {
        return;
    }
    if (test->phase == SELF_TEST_READING) {
        read_next(test, now_us);
    } else if (test->phase == SELF_TEST_LOCATING) {
        read_half(test, now_us);
    }
}

/* ---- Segments 1 and 2. */

/* Write a pattern to a part of the buffer, and read it back. */
static bool memory_keeps(volatile uint8_t *part, uint32_t len, uint8_t pattern)
{
    bool is_ok = true;

    for (uint32_t i = 0; i < len; i++) {
        part[i] = (uint8_t)(pattern ^ i);
    }
    for (uint32_t i = 0; i < len; i++) {
        is_ok &= part[i] == (uint8_t)(pattern ^ i);
    }
    return is_ok;
}

static void step_memory(struct self_test *test)
{
    uint8_t *part = test->config.buffer + test->memory_at;

    if (!memory_keeps(part, MEMORY_STEP_BYTES, 0x55) ||
        !memory_keeps(part, MEMORY_STEP_BYTES, 0xaa)) {
        end_failed(test, SEGMENT_MEMORY);
        return;
    }
    test->memory_at += MEMORY_STEP_BYTES;
    if (test->memory_at == SELF_TEST_BUFFER_BYTES) {
        test->phase = SELF_TEST_HEALTH;
    }
}

static void step_health(struct self_test *test)
{
    const struct self_test_config *config = &test->config;

    if (config->critical_warning(config->ctx) != 0) {
        end_failed(test, SEGMENT_HEALTH);
    } else {
        test->phase = SELF_TEST_READING;
    }
}

/* ---- Interface. */

/* Set what follows from the test's kind and namespaces. */
static void prepare_test(struct self_test *test)
{
    test->total = 0;
    for (uint32_t ns = 0; ns < VOLUME_NAMESPACES; ns++) {
        test->total += chunks_of(test, ns);
    }
    test->stride = 1;
    if (test->state.test.code == NVMF_SELF_TEST_SHORT) {
        test->stride = MAX((test->total + SELF_TEST_SHORT_CHUNKS - 1) /
                               SELF_TEST_SHORT_CHUNKS,
                           1);
    }
    test->phase = SELF_TEST_MEMORY;
    test->memory_at = 0;
}

static void take_record(struct self_test *test)
{
    const struct operation_store *store = &test->config.store;

    if (store->state == OPERATION_RECORD_NONE) {
        return;
    }
    if (store->state == OPERATION_RECORD_DAMAGED ||
        !self_test_record_parse(&test->state, store->record, store->len)) {
        log_line(test->config.log,
                 "self-test: the record in flash is damaged; results of "
                 "earlier self-tests are lost");
        memset(&test->state, 0, sizeof(test->state));
    }
}

static void end_media(struct media_owner *owner, enum media_status status)
{
    struct self_test *test = container_of(owner, struct self_test, owner);

    test->is_reading = false;
    if (test->is_stale) {
        test->is_stale = false; /* the test that wanted it is over */
        return;
    }
    test->has_status = true;
    test->status = status;
}

void self_test_init(struct self_test *test,
                    const struct self_test_config *config)
{
    memset(test, 0, sizeof(*test));
    test->config = *config;
    test->owner.done = end_media;
    take_record(test);
    test->writes = config->store.writes;
    test->config.store.record = NULL; /* the caller may free it */
    if (test->state.test.code == NVMF_SELF_TEST_SHORT) {
        self_test_stop(test, NVMF_SELF_TEST_BY_RESET);
    } else if (test->state.test.code == NVMF_SELF_TEST_EXTENDED) {
        prepare_test(test);
        log_line(config->log,
                 "self-test: the extended test goes on, which a reset or power "
                 "cut has interrupted");
    }
}

void self_test_start(struct self_test *test,
                     const struct nvmf_self_test *command)
{
    ASSERT(test->state.test.code == NVMF_SELF_TEST_NONE);
    test->state.test = *command;
    test->state.ns = 0;
    test->state.chunk = 0;
    test->state.done = 0;
    test->is_dirty = true;
    prepare_test(test);
    save_state(test);
}

uint8_t self_test_now(const struct self_test *test,
                      struct nvmf_self_test *command)
{
    *command = test->state.test;
    return (uint8_t)(test->total != 0 ? MIN(test->state.done, test->total) *
                                            100 / test->total
                                      : 0);
}

bool self_test_result(const struct self_test *test, unsigned int i,
                      struct nvmf_self_test_result *result)
{
    if (i >= test->state.results) {
        return false;
    }
    *result = test->state.result[i];
    return true;
}

uint16_t self_test_extended_minutes(const struct self_test *test)
{
    uint64_t chunks = test->config.medium_blocks / SELF_TEST_CHUNK_BLOCKS + 1;
    uint64_t us =
        chunks * SELF_TEST_READ_INTERVAL_US / 100 * EDSTT_MARGIN_PERCENT;

    return (uint16_t)MIN(us / US_PER_MINUTE + 1, UINT16_MAX);
}

uint64_t self_test_step(struct self_test *test, uint64_t now_us)
{
    switch (test->phase) {
    case SELF_TEST_IDLE:
        break;
    case SELF_TEST_MEMORY:
        /* The buffer belongs to the medium until an earlier test's read ends.
         */
        if (!test->is_reading) {
            step_memory(test);
        }
        break;
    case SELF_TEST_HEALTH:
        step_health(test);
        break;
    case SELF_TEST_READING:
    case SELF_TEST_LOCATING:
        step_medium(test, now_us);
        break;
    }
    save_state(test);
    if (test->phase != SELF_TEST_IDLE) {
        return now_us + SELF_TEST_READ_INTERVAL_US;
    }
    return test->is_dirty ? now_us + SAVE_RETRY_US : UINT64_MAX;
}
