/* SPDX-License-Identifier: BSD-2-Clause */
#include "roce_lib.h"

#include <string.h>

struct echo_rc *roce_echo(struct conf *conf, const struct rc_config *config,
                          uint8_t buffers, uint16_t hold_ms)
{
    struct echo_rc *echo = conf_alloc(conf, sizeof(*echo));
    struct echo_req ask = {.buffers = buffers, .hold_ms = hold_ms};
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    struct rc_config own = *config;
    struct cm_req req;

    own.service = RC_SERVICE_ECHO;
    echo->rc = rc_new(conf, &own);
    rc_make_req(echo->rc, &req, private_data);
    echo_req_emit(&ask, private_data + RDMA_IP_CM_LEN);
    rc_send_req(echo->rc, &req);
    rc_take_rep(echo->rc);
    rc_send_rtu(echo->rc);
    conf_check(
        conf,
        echo_rep_parse(&echo->rep, echo->rc->rep_private, CM_REP_PRIVATE_LEN),
        "the private data of the REP does not describe the service's memory");
    return echo;
}

static uint32_t packets_of(const struct rc *rc, uint32_t len_bytes)
{
    return len_bytes == 0 ? 1 : (len_bytes + rc->mtu_bytes - 1) / rc->mtu_bytes;
}

uint32_t roce_request_read(struct rc *rc, uint64_t va, uint32_t rkey,
                           uint32_t len_bytes)
{
    uint32_t psn = rc->psn;

    rc_send_packet(rc, &(struct packet_roce){
                           .bth = {.opcode = RC_READ_REQUEST,
                                   .psn = psn,
                                   .ack_requested = true},
                           .reth = {va, rkey, len_bytes},
                       });
    rc->psn = (psn + packets_of(rc, len_bytes)) & ROCE_PSN_MASK;
    return psn;
}

static uint8_t expected_opcode(uint32_t i, uint32_t count)
{
    if (count == 1) {
        return RC_READ_RESPONSE_ONLY;
    }
    return i == 0           ? RC_READ_RESPONSE_FIRST
           : i == count - 1 ? RC_READ_RESPONSE_LAST
                            : RC_READ_RESPONSE_MIDDLE;
}

void roce_take_read(struct rc *rc, uint32_t first_psn, uint32_t len_bytes,
                    uint8_t *data)
{
    uint32_t count = packets_of(rc, len_bytes), left = len_bytes;

    for (uint32_t i = 0; i < count; i++) {
        const struct packet *packet = rc_take(rc, "a READ response");
        uint32_t len = MIN(left, rc->mtu_bytes);

        conf_equal(rc->conf, "opcode of the response", packet->bth.opcode,
                   expected_opcode(i, count));
        conf_equal(rc->conf, "PSN of the response", packet->bth.psn,
                   (first_psn + i) & ROCE_PSN_MASK);
        conf_equal(rc->conf, "length of the response", packet->data_len, len);
        memcpy(data, packet->data, len);
        data += len;
        left -= len;
    }
}

void roce_read(struct rc *rc, uint64_t va, uint32_t rkey, uint32_t len_bytes,
               uint8_t *data)
{
    roce_take_read(rc, roce_request_read(rc, va, rkey, len_bytes), len_bytes,
                   data);
}

void roce_write_packet(struct rc *rc, uint8_t opcode, const struct reth *reth,
                       const void *data, size_t len_bytes)
{
    rc_send_packet(
        rc,
        &(struct packet_roce){
            .bth = {.opcode = opcode, .psn = rc->psn, .ack_requested = true},
            .reth = reth != NULL ? *reth : (struct reth){0},
            .data = data,
            .data_len = len_bytes,
        });
    rc->psn = (rc->psn + 1) & ROCE_PSN_MASK;
}

void roce_expect_placed(struct echo_rc *echo, unsigned int k, const void *data,
                        size_t len_bytes)
{
    const struct echo_rep *rep = &echo->rep;
    uint8_t *got = conf_alloc(echo->rc->conf, len_bytes);

    roce_read(echo->rc,
              rep->addr + rep->size_bytes +
                  (uint64_t)(k % rep->buffers) * rep->buffer_size_bytes,
              rep->read_rkey, (uint32_t)len_bytes, got);
    conf_same(echo->rc->conf, "the message in the service's memory", got, data,
              len_bytes);
}

void roce_pattern(uint8_t *data, size_t len_bytes, uint8_t salt)
{
    for (size_t i = 0; i < len_bytes; i++) {
        data[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + salt);
    }
}

void roce_expect_works(struct echo_rc *echo)
{
    uint8_t data[8];

    conf_note(echo->rc->conf, "the connection still works");
    roce_read(echo->rc, echo->rep.addr, echo->rep.rkey, sizeof(data), data);
}

void roce_expect_dead(struct echo_rc *echo)
{
    struct rc *rc = echo->rc;

    conf_note(rc->conf, "the queue pair is in error");
    conf_flush(rc->conf);
    roce_request_read(rc, echo->rep.addr, echo->rep.rkey, 8);
    rc_expect_silence(rc, ROCE_QUIET_US);
}
