/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/switch/switch_test.h"

#include "net/wire/eth.h"

static void bed_capture(void *opaque, uint8_t port,
                        const struct tx_piece data[2])
{
    struct bed *bed = opaque;

    assert_true(data[0].len + data[1].len <= SWITCH_FRAME_MAX);
    bed->captured[port]++;
}

int bed_setup(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    struct switch_config config = {
        .port_count = BED_PORTS, .capture = bed_capture, .opaque = bed};

    for (int i = 0; i < BED_PORTS; i++) {
        config.queue_bytes[i] = SWITCH_QUEUE_MIN;
    }
    bed->memory = calloc(1, switch_bytes(&config));
    bed->core = switch_init(bed->memory, &config);
    bed->now_ns = 1000000000;
    for (uint8_t i = 0; i < BED_PORTS; i++) {
        switch_port_connect(bed->core, i);
    }
    *state = bed;
    return 0;
}

int bed_teardown(void **state)
{
    struct bed *bed = *state;

    free(bed->memory);
    free(bed);
    return 0;
}

struct mac_addr bed_mac(uint8_t number)
{
    return (struct mac_addr){{2, 0, 0, 0, 0, number}};
}

void bed_frame(uint8_t *frame, size_t len, uint8_t dst, uint8_t src,
               uint8_t fill)
{
    struct eth eth = {
        .dst = bed_mac(dst), .src = bed_mac(src), .type = ETHERTYPE_ARP};

    memset(frame, fill, len);
    eth_emit(&eth, frame);
}

size_t bed_send_bytes(struct bed *bed, uint8_t port, const uint8_t *bytes,
                      size_t len)
{
    uint8_t *at;
    uint32_t room = switch_rx_room(bed->core, port, &at);
    uint32_t n = (uint32_t)MIN(len, room);

    if (n != 0) {
        memcpy(at, bytes, n);
        (void)!switch_rx_commit(bed->core, port, n, bed->now_ns);
    }
    return n;
}

void bed_send(struct bed *bed, uint8_t port, const uint8_t *frame, size_t len)
{
    uint8_t *bytes = malloc(SWITCH_PREFIX + len);

    put_be32(bytes, (uint32_t)len);
    memcpy(bytes + SWITCH_PREFIX, frame, len);
    assert_int_equal(bed_send_bytes(bed, port, bytes, SWITCH_PREFIX + len),
                     SWITCH_PREFIX + len);
    free(bytes);
    bed_run(bed);
}

void bed_run(struct bed *bed)
{
    bed->deadline_ns = switch_run(bed->core, bed->now_ns);
    assert_false(switch_has_work(bed->core));
    assert_true(bed->deadline_ns > bed->now_ns);
}

size_t bed_take(struct bed *bed, uint8_t port, uint8_t *frame, size_t room)
{
    struct tx_piece piece[2];
    uint32_t len;

    if (switch_tx_frames(bed->core, port) == 0) {
        return 0;
    }
    len = switch_tx_frame(bed->core, port, 0, piece);
    assert_true(len <= room);
    assert_int_equal(len, piece[0].len + piece[1].len);
    memcpy(frame, piece[0].data, piece[0].len);
    memcpy(frame + piece[0].len, piece[1].data, piece[1].len);
    switch_tx_done(bed->core, port, SWITCH_PREFIX + len);
    return len;
}

unsigned bed_take_all(struct bed *bed, uint8_t port)
{
    uint8_t *frame = malloc(SWITCH_FRAME_MAX);
    unsigned count = 0;

    while (bed_take(bed, port, frame, SWITCH_FRAME_MAX) != 0) {
        count++;
    }
    free(frame);
    return count;
}

uint64_t bed_counter(struct bed *bed, uint8_t port, enum switch_counter which)
{
    struct switch_port_status status;

    switch_port_status(bed->core, port, &status);
    return status.counters[which];
}

struct switch_port_config bed_config(struct bed *bed, uint8_t port)
{
    return *switch_port(bed->core, port);
}
