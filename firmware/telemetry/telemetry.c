/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/telemetry/telemetry.h"

#include <string.h>

#include "firmware/drivers/mgmt.h"
#include "lib/bytes.h"
#include "lib/crc32.h"
#include "lib/section.h"

enum { /* byte offsets in the head of a record in flash */
       RECORD_GENERATION = 0,
       RECORD_IS_AVAILABLE = 1, /* no host has acknowledged it yet */
       RECORD_PANIC_ID = 2,     /* 6 bytes */
};
_Static_assert(RECORD_PANIC_ID + 6 == TELEMETRY_RECORD_HEAD,
               "the head ends with the number of the panic");

enum {
    LINE_MAX_BYTES = 16 * 1024, /* of one reply of a management request */
    TRACE_TAIL_BYTES = 64 * 1024,
    AREA_1_MAX = 64 * 1024,
    AREA_3_BYTES = LOG_RING_BYTES + TRACE_TAIL_BYTES + TELEMETRY_BLOCK,
};

/* The management requests whose replies a dump holds, by data area. */
static const struct dump_table {
    const char *name;
    uint8_t area; /* 0 for data area 1 */
} tables[] = {
    {"status", 0},          {"pools", 0},       {"counters", 0},
    {"hardware-errors", 0}, {"controllers", 1}, {"lag", 1},
    {"addresses", 1},       {"neighbours", 1},  {"faults", 1},
    {"namespaces", 1},      {"queue-pairs", 1}, {"requests", 1},
};

static const struct mgmt_request *find_request(
    const struct telemetry_sources *sources, const char *name)
{
    const struct mgmt_request *request = sources->requests;

    while (strcmp(request->name, name) != 0) {
        request++;
        ASSERT(request < sources->requests + sources->request_count);
    }
    return request;
}

/*
 * Append one reply of a request, as JSON.
 *
 * @return where its next part begins, or 0 if it was the last
 */
static uint64_t put_reply(struct section_writer *writer, void *ctx,
                          const struct mgmt_request *request, uint64_t from)
{
    struct json_args args = {
        .member = {{.key = "from", .kind = JSON_NUMBER, .number = from}},
        .count = 1,
    };
    struct mgmt_refusal refusal;
    struct json out;
    size_t room = writer->size - writer->len;
    const char *next;
    uint64_t value = 0;

    if (room < SECTION_HEADER + LINE_MAX_BYTES) {
        writer->is_cut = true;
        return 0;
    }
    json_init(&out, (char *)writer->buf + writer->len + SECTION_HEADER,
              LINE_MAX_BYTES - 1);
    json_begin_object(&out, NULL);
    if (!request->handle(ctx, &args, &out, &refusal)) {
        return 0;
    }
    json_end_object(&out);
    if (out.is_cut) {
        writer->is_cut = true;
        return 0;
    }
    /* The handlers write "next" last if there is more. */
    out.buf[out.len] = '\0';
    next = strstr(out.buf + out.len - MIN(out.len, (size_t)32), "\"next\":");
    for (next = next == NULL ? "" : next + strlen("\"next\":");
         *next >= '0' && *next <= '9'; next++) {
        value = value * 10 + (uint64_t)(*next - '0');
    }
    section_put(writer, request->name, NULL, out.len);
    return value;
}

static void put_tables(struct section_writer *writer,
                       const struct telemetry_sources *sources, uint8_t area)
{
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        const struct mgmt_request *request =
            find_request(sources, tables[i].name);
        uint64_t from = 0;

        if (tables[i].area != area) {
            continue;
        }
        do {
            from = put_reply(writer, sources->ctx, request, from);
        } while (from != 0);
    }
}

/* The newest characters of the UART's log, and the newest trace records. */
static void put_tails(struct section_writer *writer,
                      const struct telemetry_sources *sources)
{
    uint8_t *data = writer->buf + writer->len + SECTION_HEADER;

    section_put(writer, "log", NULL,
                log_tail(sources->log, (char *)data, LOG_RING_BYTES));
    data = writer->buf + writer->len + SECTION_HEADER;
    section_put(writer, "trace", NULL,
                mgmt_trace_tail(sources->mgmt, data, TRACE_TAIL_BYTES));
}

/* Fill the rest of the last block of a data area with zeroes. */
static void end_area(struct section_writer *writer)
{
    size_t rest = -writer->len & (TELEMETRY_BLOCK - 1);

    memset(writer->buf + writer->len, 0, rest);
    writer->len += rest;
}

static void capture_dump(void *ctx)
{
    struct telemetry *telemetry = ctx;
    struct section_writer writer = {.buf = telemetry->dump};
    const size_t limit[NVMF_TELEMETRY_AREAS] = {
        AREA_1_MAX, TELEMETRY_DUMP_MAX - AREA_3_BYTES, TELEMETRY_DUMP_MAX};

    if (telemetry->dump == NULL) {
        return;
    }
    for (uint8_t i = 0; i < NVMF_TELEMETRY_AREAS; i++) {
        writer.size = limit[i] - TELEMETRY_BLOCK;
        if (i == 2) {
            put_tails(&writer, &telemetry->sources);
        } else {
            put_tables(&writer, &telemetry->sources, i);
        }
        if (writer.is_cut) {
            writer.size = limit[i];
            section_put(&writer, "cut", NULL, 0);
            writer.is_cut = false;
        }
        end_area(&writer);
        telemetry->last_block[i] = (uint16_t)(writer.len / TELEMETRY_BLOCK);
    }
    telemetry->dump_len = writer.len;
    telemetry->generation++;
    log_format(telemetry->reason, sizeof(telemetry->reason),
               "a host asked for dump %u", telemetry->generation);
}

/* ---- The controller-initiated dump. */

static void save_record(struct telemetry *telemetry)
{
    if (telemetry->save != NULL &&
        !telemetry->save(telemetry->save_ctx, telemetry->record,
                         telemetry->record_len)) {
        log_line(telemetry->sources.log,
                 "telemetry: flash refuses the dump of the last panic; fetch "
                 "it before the next restart (nvme telemetry-log)");
    }
}

/* Write the number that OCP's page C1h has for a panic: the line of an
 * assertion, or 0 for a trap, and a CRC of the file's name, or of what the trap
 * was. */
static void put_panic_id(uint8_t *to, const struct telemetry_panic *panic)
{
    uint8_t trap[16];

    put_le64(trap, panic->mcause);
    put_le64(trap + 8, panic->mepc);
    if (panic->is_trap || panic->is_watchdog) {
        put_le16(to, 0);
        put_le32(to + 2, crc32_update(0, trap, sizeof(trap)));
    } else {
        put_le16(to, (uint16_t)panic->line);
        put_le32(to + 2, crc32_update(0, (const uint8_t *)panic->file,
                                      strlen(panic->file)));
    }
}

static uint64_t panic_id_of(const struct telemetry *telemetry)
{
    const uint8_t *from = telemetry->record + RECORD_PANIC_ID;

    return get_le16(from) | (uint64_t)get_le32(from + 2) << 16;
}

static void record_panic(struct telemetry *telemetry,
                         const struct telemetry_panic *panic)
{
    struct section_writer writer = {
        .buf = telemetry->record + TELEMETRY_RECORD_HEAD,
        .size = TELEMETRY_RECORD_MAX + LINE_MAX_BYTES - TELEMETRY_RECORD_HEAD};
    struct json out;

    json_init(&out, (char *)writer.buf + SECTION_HEADER, 1024);
    json_begin_object(&out, NULL);
    json_string(&out, "kind",
                panic->is_watchdog ? "watchdog"
                : panic->is_trap   ? "trap"
                                   : "assertion");
    json_string(&out, "file", panic->file);
    json_number(&out, "line", panic->line);
    json_number(&out, "mcause", panic->mcause);
    json_number(&out, "mepc", panic->mepc);
    json_number(&out, "mtval", panic->mtval);
    json_number(&out, "panics", panic->count);
    json_end_object(&out);
    section_put(&writer, "panic", NULL, out.len);
    put_reply(&writer, telemetry->sources.ctx,
              find_request(&telemetry->sources, "status"), 0);
    end_area(&writer);
    telemetry->record[RECORD_GENERATION]++;
    telemetry->record[RECORD_IS_AVAILABLE] = true;
    put_panic_id(telemetry->record + RECORD_PANIC_ID, panic);
    telemetry->record_len = TELEMETRY_RECORD_HEAD + writer.len;
    ASSERT(telemetry->record_len <= TELEMETRY_RECORD_MAX);
    save_record(telemetry);
}

/* ---- The newest crash dump. */

static void read_crash(struct telemetry *telemetry)
{
    uint32_t number;

    if (telemetry->crash == NULL) {
        return;
    }
    if (telemetry->crashes.latest_len != 0) {
        telemetry->crash_len = telemetry->crashes.latest_len;
        memcpy(telemetry->crash, telemetry->crashes.latest,
               telemetry->crash_len);
    } else if (telemetry->crashes.read == NULL ||
               !telemetry->crashes.read(telemetry->crashes.ctx, UINT32_MAX,
                                        telemetry->crash, &telemetry->crash_len,
                                        &number)) {
        telemetry->crash_len = 0;
    }
}

/* ---- Initialisation. */

void telemetry_init(struct telemetry *telemetry,
                    const struct telemetry_sources *sources, struct dram *dram,
                    const struct telemetry_config *config)
{
    *telemetry = (struct telemetry){
        .sources = *sources,
        .save = config->save,
        .save_ctx = config->save_ctx,
        .dump = dram_reserve(dram, TELEMETRY_DUMP_MAX, 64),
        .record = dram_alloc(dram, TELEMETRY_RECORD_MAX + LINE_MAX_BYTES, 64),
        .crashes = config->crashes,
        .crash = dram_reserve(dram, CRASH_DUMP_MAX, 64),
        .crash_scratch = dram_reserve(dram, CRASH_DUMP_MAX, 64),
    };
    if (telemetry->dump == NULL || telemetry->record == NULL) {
        telemetry->dump = NULL;
        return;
    }
    if (config->record_len > TELEMETRY_RECORD_HEAD &&
        config->record_len <= TELEMETRY_RECORD_MAX) {
        memcpy(telemetry->record, config->record, config->record_len);
        telemetry->record_len = config->record_len;
    }
    read_crash(telemetry);
}

void telemetry_record_panic(struct telemetry *telemetry,
                            const struct telemetry_panic *panic)
{
    if (panic != NULL && telemetry->dump != NULL) {
        record_panic(telemetry, panic);
    }
}

static void acknowledge_record(void *ctx)
{
    struct telemetry *telemetry = ctx;

    if (telemetry->record_len != 0 && telemetry->record[RECORD_IS_AVAILABLE]) {
        telemetry->record[RECORD_IS_AVAILABLE] = false;
        save_record(telemetry);
    }
}

/* ---- The target's seam. */

static void describe_dump(void *ctx, bool is_controllers,
                          struct nvmf_telemetry_info *info)
{
    const struct telemetry *telemetry = ctx;
    size_t len = telemetry->record_len;

    *info = (struct nvmf_telemetry_info){
        .is_available = len != 0 && telemetry->record[RECORD_IS_AVAILABLE],
        .ctrl_generation = len != 0 ? telemetry->record[RECORD_GENERATION] : 0,
        .host_generation = telemetry->generation,
        .panic_id = len != 0 ? panic_id_of(telemetry) : 0,
    };
    for (uint8_t i = 0; i < NVMF_TELEMETRY_AREAS; i++) {
        /* Data area 1 is the record, the others have the crash dump too. */
        size_t end = len == 0 ? 0
                     : i == 0 ? len - TELEMETRY_RECORD_HEAD
                              : len - TELEMETRY_RECORD_HEAD +
                                    telemetry->crash_len + TELEMETRY_BLOCK - 1;

        info->last_block[i] = !is_controllers
                                  ? telemetry->last_block[i]
                                  : (uint16_t)(end / TELEMETRY_BLOCK);
    }
    info->reason = !is_controllers ? telemetry->reason
                   : len != 0      ? "the firmware has panicked"
                                   : "";
}

/* Copy the bytes of `data` from `offset` on, and zeroes after its end. */
static void copy_padded(uint8_t *buf, uint32_t len, const uint8_t *data,
                        size_t data_len, size_t offset)
{
    size_t n = offset < data_len ? MIN(data_len - offset, (size_t)len) : 0;

    if (n != 0) {
        memcpy(buf, data + offset, n);
    }
    memset(buf + n, 0, len - n);
}

static void read_dump(void *ctx, bool is_controllers, uint32_t offset,
                      uint8_t *buf, uint32_t len)
{
    const struct telemetry *telemetry = ctx;
    size_t record_len = telemetry->record_len != 0
                            ? telemetry->record_len - TELEMETRY_RECORD_HEAD
                            : 0;
    uint32_t before;

    if (!is_controllers) {
        copy_padded(buf, len, telemetry->dump, telemetry->dump_len, offset);
        return;
    }
    before = offset < record_len
                 ? (uint32_t)MIN(record_len - offset, (size_t)len)
                 : 0;
    copy_padded(buf, before, telemetry->record + TELEMETRY_RECORD_HEAD,
                record_len, offset);
    copy_padded(buf + before, len - before, telemetry->crash,
                record_len != 0 ? telemetry->crash_len : 0,
                offset + before - record_len);
}

struct nvmf_telemetry telemetry_seam(struct telemetry *telemetry)
{
    if (telemetry->dump == NULL) {
        return (struct nvmf_telemetry){0};
    }
    return (struct nvmf_telemetry){
        .ctx = telemetry,
        .capture = capture_dump,
        .describe = describe_dump,
        .read = read_dump,
        .acknowledge = acknowledge_record,
    };
}
