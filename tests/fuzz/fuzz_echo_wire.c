/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The formats of the echo service: what the parsers accept, emit writes back
 * unchanged, except for reserved bytes.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "firmware/echo/echo_wire.h"

static const uint8_t ping[PING_INFO_LEN] = {[6] = 0x10, [11] = 7, [15] = 64};
static const uint8_t req[ECHO_REQ_LEN] = {'E', 'D', 'Q', 1, 2, 0, 1, 0xf4};
static const uint8_t rep[ECHO_REP_LEN] = {'E', 'D', 'R', 1, [40] = 0, 8};

static const struct {
    const uint8_t *bytes;
    size_t len;
} seeds[] = {{ping, sizeof(ping)}, {req, sizeof(req)}, {rep, sizeof(rep)}};

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    if (n >= ARRAY_LEN(seeds) || seeds[n].len > room) {
        return 0;
    }
    memcpy(buf, seeds[n].bytes, seeds[n].len);
    return seeds[n].len;
}

static void expect_same(const uint8_t *in, const uint8_t *out, size_t len)
{
    if (memcmp(in, out, len) != 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint8_t out[ECHO_REP_LEN];
    struct ping_info info;
    struct echo_req echo_req;
    struct echo_rep echo_rep;

    if (ping_info_parse(&info, data, len)) {
        ping_info_emit(&info, out);
        expect_same(data, out, PING_INFO_LEN);
    }
    if (echo_req_parse(&echo_req, data, len)) {
        echo_req_emit(&echo_req, out);
        out[ECHO_REQ_RESERVED] = data[ECHO_REQ_RESERVED];
        expect_same(data, out, ECHO_REQ_LEN);
    }
    if (echo_rep_parse(&echo_rep, data, len)) {
        echo_rep_emit(&echo_rep, out);
        expect_same(data, out, ECHO_REP_LEN);
    }
    return 0;
}
