/* SPDX-License-Identifier: BSD-2-Clause */
/* The record of a test's commands and completions, fed with packets. */
#include "exchange.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/bytes.h"
#include "net/wire/cm_msg.h"
#include "net/wire/rdma_ip_cm.h"
#include "nvmeof/wire/rdma_private.h"

enum {
    COMM_ID = 0x1234,
    HOST_QPN = 0x101,
    TARGET_QPN = 0x805,
    QID = 3,
    PORT = 1,
    WALL_US = 7000000,
};

/* A CM message between the test's host and the target. */
static void add_cm(struct exchange *exchange, enum cm_attribute attribute,
                   uint32_t host_qpn, uint16_t qid)
{
    uint8_t body[MAD_DATA_LEN] = {0};
    struct packet packet = {
        .port = PORT,
        .has_mad = true,
        .mad = {.mgmt_class = MAD_CLASS_CM,
                .attribute_id = (uint16_t)attribute},
        .cm = body,
    };

    if (attribute == CM_REQ) {
        put_be32(body + CM_REQ_LOCAL_COMM_ID, COMM_ID);
        put_be24(body + CM_REQ_LOCAL_QPN, host_qpn);
        put_le16(body + CM_REQ_PRIVATE + RDMA_IP_CM_LEN + RDMA_REQ_QID, qid);
    } else {
        put_be32(body + CM_REP_REMOTE_COMM_ID, COMM_ID);
        put_be24(body + CM_REP_LOCAL_QPN, TARGET_QPN);
    }
    exchange_add(exchange, &packet, attribute == CM_REP, WALL_US);
}

static struct packet send_of(const uint8_t *data, size_t len, uint32_t qpn)
{
    return (struct packet){
        .port = PORT,
        .time_us = 5,
        .has_bth = true,
        .bth = {.opcode = RC_SEND_ONLY, .dest_qp = qpn, .psn = 9},
        .data = data,
        .data_len = len,
    };
}

static void connect_queue(struct exchange *exchange)
{
    memset(exchange, 0, sizeof(*exchange));
    add_cm(exchange, CM_REQ, HOST_QPN, QID);
    add_cm(exchange, CM_REP, HOST_QPN, QID);
}

static void test_a_command_and_its_completion_name_their_queue(void **state)
{
    static struct exchange exchange;
    uint8_t sqe[NVME_SQE_LEN] = {[0] = 0x02, [63] = 0xa5};
    uint8_t cqe[NVME_CQE_LEN] = {[15] = 0x5a};
    struct packet command = send_of(sqe, sizeof(sqe), TARGET_QPN);
    struct packet completion = send_of(cqe, sizeof(cqe), HOST_QPN);
    const struct exchange_entry *entry;

    (void)state;
    connect_queue(&exchange);
    exchange_add(&exchange, &command, false, WALL_US);
    exchange_add(&exchange, &completion, true, WALL_US + 20);
    assert_int_equal(exchange_count(&exchange), 2);
    entry = exchange_get(&exchange, 0);
    assert_false(entry->is_completion);
    assert_int_equal(entry->qid, QID);
    assert_int_equal(entry->port, PORT);
    assert_int_equal(entry->host_qpn, HOST_QPN);
    assert_int_equal(entry->psn, 9);
    assert_int_equal(entry->time_us, 5);
    assert_int_equal(entry->wall_us, WALL_US);
    assert_memory_equal(entry->bytes, sqe, sizeof(sqe));
    entry = exchange_get(&exchange, 1);
    assert_true(entry->is_completion);
    assert_int_equal(entry->qid, QID);
    assert_int_equal(entry->wall_us, WALL_US + 20);
    assert_memory_equal(entry->bytes, cqe, sizeof(cqe));
}

static void test_what_is_no_command_is_not_recorded(void **state)
{
    static struct exchange exchange;
    uint8_t bytes[NVME_SQE_LEN] = {0};
    struct packet packet;

    (void)state;
    connect_queue(&exchange);
    packet = send_of(bytes, NVME_SQE_LEN - 1, TARGET_QPN); /* too short */
    exchange_add(&exchange, &packet, false, WALL_US);
    packet = send_of(bytes, NVME_SQE_LEN, TARGET_QPN + 1); /* other QP */
    exchange_add(&exchange, &packet, false, WALL_US);
    packet = send_of(bytes, NVME_SQE_LEN, TARGET_QPN);
    packet.port = 1 - PORT;
    exchange_add(&exchange, &packet, false, WALL_US);
    packet = send_of(bytes, NVME_SQE_LEN, TARGET_QPN);
    packet.damage = "pad";
    exchange_add(&exchange, &packet, false, WALL_US);
    packet = send_of(bytes, NVME_SQE_LEN, TARGET_QPN);
    packet.has_bth = false; /* the ICRC is wrong */
    exchange_add(&exchange, &packet, false, WALL_US);
    packet = send_of(bytes, NVME_SQE_LEN, TARGET_QPN);
    packet.bth.opcode = RC_SEND_LAST; /* data that follows a command */
    exchange_add(&exchange, &packet, false, WALL_US);
    packet = send_of(bytes, NVME_CQE_LEN + 1, HOST_QPN);
    exchange_add(&exchange, &packet, true, WALL_US);
    assert_int_equal(exchange_count(&exchange), 0);
}

static void test_the_latest_entries_and_queues_are_kept(void **state)
{
    static struct exchange exchange;
    uint8_t sqe[NVME_SQE_LEN] = {0};
    struct packet command = send_of(sqe, sizeof(sqe), TARGET_QPN);

    (void)state;
    memset(&exchange, 0, sizeof(exchange));
    for (uint16_t i = 0; i <= EXCHANGE_QUEUES; i++) {
        add_cm(&exchange, CM_REQ, HOST_QPN, i);
        add_cm(&exchange, CM_REP, HOST_QPN, i);
    }
    for (unsigned int i = 0; i < EXCHANGE_ENTRIES + 3; i++) {
        command.bth.psn = i;
        exchange_add(&exchange, &command, false, WALL_US);
    }
    assert_int_equal(exchange_count(&exchange), EXCHANGE_ENTRIES);
    assert_int_equal(exchange_get(&exchange, 0)->psn, 3);
    assert_int_equal(exchange_get(&exchange, EXCHANGE_ENTRIES - 1)->psn,
                     EXCHANGE_ENTRIES + 2);
    /* The same queue pair again: its queue is that of the last connection. */
    assert_int_equal(exchange_get(&exchange, 0)->qid, EXCHANGE_QUEUES);
}
