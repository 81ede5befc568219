/* SPDX-License-Identifier: BSD-2-Clause */
/* Images of an engine; test_sweep.c also loads one after every step. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/random.h"
#include "net/tcp/internal.h"
#include "tests/unit/net/tcp/invariant.h"
#include "tests/unit/net/tcp/script.h"

enum { STEPS = 20 };

struct bed {
    struct script script;
    uint8_t *image;
    size_t room, len;
    struct tcp *other; /* loads images; its user believes everything */
    void *memory;
    struct tcp_user user;
    uint8_t bytes[9000];
};

/* ---- A user without a memory: a changed image may tell it anything. */

static bool user_send(void *ctx, const struct tcp_segment *segment)
{
    (void)ctx;
    (void)segment;
    return true;
}

static unsigned int user_fetch(void *ctx, uint32_t id, uint64_t offset,
                               uint32_t len, struct tcp_piece *pieces)
{
    struct bed *bed = ctx;

    (void)id;
    (void)offset;
    ASSERT(len <= sizeof(bed->bytes));
    pieces[0] = (struct tcp_piece){bed->bytes, len};
    return 1;
}

static void user_asked(void *ctx, uint32_t id, uint32_t listener,
                       const struct tcp_ends *ends)
{
    (void)ctx;
    (void)id;
    (void)listener;
    (void)ends;
}

static void user_established(void *ctx, uint32_t id, uint32_t asked)
{
    (void)ctx;
    (void)id;
    (void)asked;
}

static void user_deliver(void *ctx, uint32_t id, const uint8_t *data,
                         uint32_t len)
{
    (void)ctx;
    (void)id;
    (void)data;
    (void)len;
}

static void user_finished(void *ctx, uint32_t id)
{
    (void)ctx;
    (void)id;
}

static void user_acked(void *ctx, uint32_t id, uint32_t len)
{
    (void)ctx;
    (void)id;
    (void)len;
}

static void user_ended(void *ctx, uint32_t id, enum tcp_end end)
{
    (void)ctx;
    (void)id;
    (void)end;
}

/* ---- An engine with something in every table. */

static void bed_begin(struct bed *bed)
{
    struct tcp_config config = script_config();
    struct script *script = &bed->script;

    config.connections = 4;
    config.pages = 8;
    *bed = (struct bed){.user = {bed, user_send, user_fetch, user_asked,
                                 user_established, user_deliver, user_finished,
                                 user_acked, user_ended, NULL}};
    script_begin(script, &config, 0xfffffc00, 0xfffff800);
    script_run(script, script_open);
    script_run(script, "close\n"
                       "< F. 1:1(0) ack 2 win 512 <TS 101 ecr last>\n"
                       "uses 0 0 1 0\n");
    script->ends.remote_port = 40001; /* half-open */
    script_run(script, "< S 0:0(0) win 65535 <mss 1460>\ndrop\n");
    script->ends.remote_port = 40002; /* in the middle of a transfer */
    script->host->established_count = 0;
    script->id = TCP_NO_ID;
    script_run(script, script_open);
    script_run(
        script,
        "send 14480\n"
        "drop\n"
        "+0.04 < . 1:1(0) ack 1449 win 512 <TS 102 ecr last,sack 2897:8689>\n"
        "drop\n"
        "< . 1001:2001(1000) ack 1449 win 512 <TS 102 ecr last>\n"
        "uses 1 1 1 1\n");
    bed->room = tcp_image_bytes(&config);
    bed->image = malloc(bed->room);
    assert_non_null(bed->image);
    bed->len = tcp_save(script->host->tcp, bed->image, bed->room);
    assert_in_range(bed->len, 4000, 20000);
    bed->memory = aligned_alloc(16, tcp_bytes(&config));
    assert_non_null(bed->memory);
    memset(bed->memory, 0, tcp_bytes(&config));
    bed->other = tcp_init(bed->memory, &config, &bed->user);
    assert_non_null(bed->other);
}

static void bed_end(struct bed *bed)
{
    free(bed->memory);
    free(bed->image);
    script_end(&bed->script);
}

static void check_empty(struct tcp *tcp)
{
    struct tcp_usage usage = tcp_usage(tcp);

    tcp_check(tcp);
    assert_int_equal(usage.connections + usage.half_open + usage.time_waits +
                         usage.pages,
                     0);
    assert_true(tcp_deadline(tcp) == UINT64_MAX);
}

/* The image of what was loaded is the same again. */
static void test_image_of_a_loaded_engine_is_the_same(void **state)
{
    struct bed bed;
    uint8_t *again;

    (void)state;
    bed_begin(&bed);
    assert_true(tcp_load(bed.other, bed.image, bed.len));
    tcp_check(bed.other);
    again = malloc(bed.room);
    assert_non_null(again);
    assert_int_equal(tcp_save(bed.other, again, bed.room), bed.len);
    assert_memory_equal(again, bed.image, bed.len);
    /* The heap of the other one may still have deadlines that were moved. */
    assert_true(tcp_deadline(bed.other) >= tcp_deadline(bed.script.host->tcp));
    assert_true(tcp_deadline(bed.other) != UINT64_MAX);
    free(again);
    bed_end(&bed);
}

/* A transfer goes on in the engine that has loaded it: the early bytes are
 * delivered, what is lost is sent again, and the ids are the same. */
static void test_transfer_goes_on_after_a_load(void **state)
{
    struct bed bed;

    (void)state;
    bed_begin(&bed);
    script_run(&bed.script, "drop\n");
    host_reload(bed.script.host);
    script_run(&bed.script,
               "uses 1 1 1 1\n"
               "< . 1:1001(1000) ack 1449 win 512 <TS 103 ecr last>\n"
               "received 2000\n"
               "> . 14481:14481(0) ack 2001\n"
               "uses 1 1 1 0\n"
               "< . 2001:2001(0) ack 14481 win 512 <TS 104 ecr last>\n"
               "send 100\n"
               "> P. 14481:14581(100) ack 2001\n"
               "< F. 2001:2001(0) ack 14581 win 512 <TS 105 ecr last>\n"
               "> . 14581:14581(0) ack 2002\n"
               "close\n"
               "> F. 14581:14581(0) ack 2002\n"
               "< . 2002:2002(0) ack 14582 win 512 <TS 106 ecr last>\n"
               "state CLOSED\n"
               "+200 uses 0 0 0 0\n");
    bed_end(&bed);
}

static void test_short_images_are_refused(void **state)
{
    struct bed bed;

    (void)state;
    bed_begin(&bed);
    assert_int_equal(tcp_save(bed.script.host->tcp, bed.image, bed.len - 1), 0);
    for (size_t len = 0; len < bed.len; len += 1 + len / 64) {
        assert_false(tcp_load(bed.other, bed.image, len));
        check_empty(bed.other);
    }
    bed_end(&bed);
}

/* An image of another version, or of an engine with other sizes. */
static void test_other_images_are_refused(void **state)
{
    struct bed bed;

    (void)state;
    bed_begin(&bed);
    for (size_t at = 0; at < 96; at++) {
        if (at >= 16 && at < 32) {
            continue; /* the secret */
        }
        bed.image[at] ^= 1;
        assert_false(tcp_load(bed.other, bed.image, bed.len));
        check_empty(bed.other);
        bed.image[at] ^= 1;
    }
    bed.image[16] ^= 1; /* another secret comes with its image */
    assert_true(tcp_load(bed.other, bed.image, bed.len));
    tcp_check(bed.other);
    bed_end(&bed);
}

static void engine_run(struct tcp *tcp)
{
    for (int i = 0; i < STEPS && tcp_deadline(tcp) != UINT64_MAX; i++) {
        uint64_t now_us = MAX(tcp_deadline(tcp), tcp->now_us);

        tcp_timer(tcp, now_us);
        (void)tcp_transmit(tcp, 1000, now_us);
        tcp_check(tcp);
    }
}

/* Whatever is in an image: it is refused, or it is a state that the engine can
 * go on from. */
static void test_changed_images_are_refused_or_sound(void **state)
{
    struct bed bed;
    uint64_t random = 7;
    unsigned int refused = 0;

    (void)state;
    bed_begin(&bed);
    for (size_t at = 0; at < bed.len; at++) {
        uint8_t before = bed.image[at];

        bed.image[at] = (uint8_t)(before ^ (1 + random_next(&random) % 255));
        if (tcp_load(bed.other, bed.image, bed.len)) {
            tcp_check(bed.other);
            engine_run(bed.other);
        } else {
            check_empty(bed.other);
            refused++;
        }
        bed.image[at] = before;
    }
    assert_in_range(refused, 400, bed.len);
    bed_end(&bed);
}

/* ---- Engines that differ in what may differ. */

static void reload_with(struct script *script, const struct tcp_config *config)
{
    struct host *host = script->host;

    host->config = *config;
    host_reload(host);
}

/* Times may differ: an engine without keep-alive probes (RFC 9293
 * section 3.8.4) does not go on with those of the one that was saved. */
static void test_keep_alive_ends_with_a_load(void **state)
{
    static const char *const before[] = {"send 100\n+0.1 drop\n", "+1\n"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        struct tcp_config config = script_config();
        struct script script;

        config.keep_alive_ms = 10000;
        config.keep_alive_probes = 9;
        script_begin(&script, &config, 0xfffffc00, 0xfffff800);
        script_run(&script, script_open);
        script_run(&script, before[i]);
        config.keep_alive_ms = 0;
        config.keep_alive_probes = 0;
        reload_with(&script, &config);
        script_run(&script, "+20 drop\n"
                            "state ESTABLISHED\n"
                            "counter tx_keep_alives 0\n");
        script_end(&script);
    }
}

static void test_keep_alive_begins_with_a_load(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script_run(&script, script_open);
    config.keep_alive_ms = 10000;
    config.keep_alive_probes = 9;
    reload_with(&script, &config);
    script_run(&script, "+9.99 counter tx_keep_alives 0\n"
                        "+0.01 counter tx_keep_alives 1\n");
    script_end(&script);
}

/* The user may send before the handshake has ended (RFC 9293 section 3.9.1.2).
 * Between the SYN-ACK and the next segment the bytes have a timer: an image of
 * that moment is loaded. */
static void test_image_of_early_bytes_is_taken(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script.ends.local_port = 7; /* of no listener */
    script_run(&script, "connect\n"
                        "> SEW 0:0(0)\n"
                        "send 100\n"
                        "full\n");
    script.ends.remote_port++; /* its RST has no room */
    script_run(&script, "< . 1:1(0) ack 1 win 100\n");
    script.ends.remote_port--;
    script_run(&script, "< S. 0:0(0) ack 1 win 65535 <mss 1000>\n");
    host_reload(script.host);
    script_run(&script, "room\n"
                        "> R 1:1(0)\n"
                        "> P. 1:101(100) ack 1\n");
    script_end(&script);
}

static struct tcp_conn *conn_of(struct script *script)
{
    return tcp_conn_by_id(script->host->tcp, script->id);
}

/* The flags of a connection say which FINs were sent, received and
 * acknowledged. With another state than theirs, no image is loaded. */
static void test_state_that_does_not_fit_the_flags_is_refused(void **state)
{
    struct bed bed;

    (void)state;
    bed_begin(&bed);
    for (uint8_t other = TCP_STATE_FREE; other <= TCP_STATES; other++) {
        conn_of(&bed.script)->state = other;
        assert_int_equal(tcp_save(bed.script.host->tcp, bed.image, bed.room),
                         bed.len);
        assert_int_equal(tcp_load(bed.other, bed.image, bed.len),
                         other == TCP_STATE_ESTABLISHED);
    }
    conn_of(&bed.script)->state = TCP_STATE_ESTABLISHED;
    bed_end(&bed);
}

/* Windows beyond what congestion control knows, and times so far away that the
 * connection would be mute, are no state of this engine. */
static void test_windows_and_times_without_limit_are_refused(void **state)
{
    struct bed bed;
    struct tcp_conn *conn;
    uint64_t far_us;

    (void)state;
    bed_begin(&bed);
    conn = conn_of(&bed.script);
    assert_true(tcp_load(bed.other, bed.image, bed.len));
    far_us = bed.script.host->now_us + 3600 * UINT64_C(1000000);
#define REFUSED(field, value)                                                  \
    do {                                                                       \
        struct tcp_conn before = *conn;                                        \
                                                                               \
        conn->field = (value);                                                 \
        assert_true(tcp_save(bed.script.host->tcp, bed.image, bed.room) != 0); \
        assert_false(tcp_load(bed.other, bed.image, bed.len));                 \
        *conn = before;                                                        \
    } while (0)
    conn->recovery = TCP_RECOVERY;
    conn->prr_flight = 1;
    REFUSED(ssthresh, UINT32_MAX);
    REFUSED(cwnd_acked, UINT32_MAX);
    REFUSED(ack_due_us, far_us);
    REFUSED(rtx_due_us, far_us);
    REFUSED(reorder_due_us, far_us);
    REFUSED(challenge_us, far_us);
#undef REFUSED
    bed_end(&bed);
}

/* The times of an entry in TIME-WAIT and of a half-open connection are those of
 * the engine that has loaded it. */
static void test_entries_of_an_image_end_in_time(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script_run(&script, script_open);
    script_run(&script, "close\n"
                        "< F. 1:1(0) ack 2 win 512 <TS 101 ecr 1>\n"
                        "drop\n"
                        "uses 0 0 1 0\n");
    script.ends.remote_port++;
    script_run(&script, "< S 0:0(0) win 65535 <mss 1000>\n"
                        "drop\n"
                        "uses 0 1 1 0\n");
    for (uint16_t i = 0; i < config.time_waits; i++) {
        script.host->tcp->waits[i].due_us = UINT64_MAX - 1;
    }
    for (uint16_t i = 0; i < config.half_open; i++) {
        uint16_t node = (uint16_t)(tcp_first_half(script.host->tcp) + i);

        if (script.host->tcp->nodes[node].used) {
            deadlines_set(&script.host->tcp->deadlines, node, UINT64_MAX - 1);
        }
    }
    host_reload(script.host);
    script_run(&script, "+101\n"
                        "+101\n"
                        "uses 0 0 0 0\n");
    script_end(&script);
}

/* R2 counts from when there was something to send (RFC 9293 section 3.8.3).  An
 * image may say that a connection has waited which has nothing to send: this is
 * over when the user sends, although the peer's window is closed. */
static void test_time_waited_in_an_image_ends_with_the_next_bytes(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script_run(&script, "< S 0:0(0) win 65535 <mss 1000>\n"
                        "> S. 0:0(0) ack 1\n"
                        "< . 1:1(0) ack 1 win 0\n");
    conn_of(&script)->waited_us = TCP_MS(config.give_up_ms);
    host_reload(script.host);
    assert_int_equal(conn_of(&script)->waited_us, TCP_MS(config.give_up_ms));
    script_run(&script, "+7200 send 100\n"
                        "+0.2 > . 1:2(1) ack 1\n"
                        "state ESTABLISHED\n"
                        "+0.1 < . 1:1(0) ack 2 win 65535\n"
                        "> P. 2:101(99) ack 1\n");
    script_end(&script);
}
