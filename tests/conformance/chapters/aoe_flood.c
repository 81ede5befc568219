/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ATA over Ethernet with more stations than the drive has room for: each one
 * gets right answers or none, and an NVMe host beside them notices nothing.
 * Spec: AoE (Ethernet Drive Protocol) revision 11, sections 2 and 3.2.
 */
#include <string.h>

#include "aoe_lib.h"

enum {
    DISCOVERERS = 1000,
    /* More than the drive has room for at a time, of what comes at once. */
    STATIONS = 64,
    COMMANDS = 16, /* of each station: as many as discovery allows */
    EACH_ANSWERED = 32,
    BETWEEN = 50, /* discoveries between two commands of the NVMe host */
    DATA_LBA = 8,
    DATA_BYTES = 2 * AOE_SECTOR,
    TAG = 8, /* its last two bytes, in the header of AoE */
    ATA_LEN = 22,
};

static const uint8_t discover[] = {
    0x10, 0x00, 0xff, 0xff, 0xff, 0x01, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t discovered[] = {
    0x18, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x10, 0x00, 0x01, 0x02, 0x10, 0x00, 0x00,
};
/* Read two sectors from DATA_LBA; the tag is the test's. */
static const uint8_t read_ext[ATA_LEN] = {
    0x10, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40,
    0x00, 0x02, 0x24, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t read_ext_done[ATA_LEN] = {
    0x18, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40,
    0x00, 0x00, 0x40, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

/* ---- Stations.  Their MAC addresses end with their numbers. */

static void station_mac(uint8_t *mac, unsigned int number)
{
    static const uint8_t first[4] = {0x02, 0xae, 0xf1, 0x00};

    memcpy(mac, first, sizeof(first));
    mac[4] = (uint8_t)(number >> 8);
    mac[5] = (uint8_t)number;
}

/* Whose answer it is; the test fails if it is nobody's. */
static unsigned int station_of(struct conf *conf, const struct packet *packet,
                               unsigned int count)
{
    unsigned int number =
        (unsigned int)packet->frame[4] << 8 | packet->frame[5];
    uint8_t mac[6];

    station_mac(mac, number);
    conf_same(conf, "the receiver's address", packet->frame, mac, 6);
    conf_check(conf, number < count, "an answer to station %u", number);
    return number;
}

/* ---- Discoveries. */

static unsigned int take_discovered(struct conf *conf, uint8_t *answered)
{
    const struct packet *packet;
    unsigned int count = 0;

    while ((packet = conf_take_within(conf, aoe_is_answer, NULL,
                                      CONF_SILENCE_US)) != NULL) {
        unsigned int number = station_of(conf, packet, DISCOVERERS);

        conf_same(conf, "the answer", packet->frame + AOE_AT, discovered,
                  sizeof(discovered));
        conf_check(conf, !answered[number],
                   "station %u gets two answers to one query", number);
        answered[number] = true;
        count++;
    }
    return count;
}

static void discovery_flood(struct conf *conf)
{
    uint8_t *answered = conf_alloc(conf, DISCOVERERS);
    struct nvme_host *host;
    uint8_t mac[6];
    unsigned int count;

    aoe_start(conf);
    host = conf_connect(conf, &(struct conf_session){.io_queues = 1});
    for (unsigned int i = 0; i < DISCOVERERS; i++) {
        station_mac(mac, i);
        aoe_send(conf, mac, discover, sizeof(discover), NULL, 0);
        if (i % BETWEEN == 0) {
            conf_write(conf, host, 1, DATA_LBA, 2, i + 1);
            conf_verify(conf, host, 1, DATA_LBA, 2, i + 1);
        }
    }
    count = take_discovered(conf, answered);
    conf_check(conf, count >= EACH_ANSWERED, "only %u of %u were answered",
               count, DISCOVERERS);

    /* One that was not answered asks again, as hosts do. */
    memset(answered, 0, DISCOVERERS);
    aoe_send(conf, mac, discover, sizeof(discover), NULL, 0);
    conf_equal(conf, "answers to one query after the flood",
               take_discovered(conf, answered), 1);
    host_disconnect(host);
    aoe_finish(conf);
}

/* ---- Commands. */

static void send_reads(struct conf *conf, const uint8_t *done)
{
    for (unsigned int i = 0; i < STATIONS * COMMANDS; i++) {
        uint8_t request[ATA_LEN];
        uint8_t mac[6];

        if (done[i]) {
            continue;
        }
        memcpy(request, read_ext, sizeof(request));
        request[TAG] = (uint8_t)(i / COMMANDS);
        request[TAG + 1] = (uint8_t)(i % COMMANDS);
        station_mac(mac, i / COMMANDS);
        aoe_send(conf, mac, request, sizeof(request), NULL, 0);
    }
}

/* @return the number of answers, each of which must be one that is due */
static unsigned int take_reads(struct conf *conf, uint8_t *done,
                               const uint8_t *data)
{
    const struct packet *packet;
    unsigned int count = 0;

    while ((packet = conf_take_within(conf, aoe_is_answer, NULL,
                                      CONF_SILENCE_US)) != NULL) {
        const uint8_t *answer = packet->frame + AOE_AT;
        uint8_t expected[ATA_LEN];
        unsigned int number = station_of(conf, packet, STATIONS);
        unsigned int command = answer[TAG + 1];

        memcpy(expected, read_ext_done, sizeof(expected));
        expected[TAG] = (uint8_t)number;
        expected[TAG + 1] = (uint8_t)command;
        conf_equal(conf, "the length of the frame", packet->len_bytes,
                   AOE_AT + ATA_LEN + DATA_BYTES);
        conf_same(conf, "the answer", answer, expected, sizeof(expected));
        conf_same(conf, "what was read", answer + ATA_LEN, data, DATA_BYTES);
        conf_check(conf, command < COMMANDS, "tag %u was not sent", command);
        conf_check(conf, !done[number * COMMANDS + command],
                   "command %u of station %u is answered twice", command,
                   number);
        done[number * COMMANDS + command] = true;
        count++;
    }
    return count;
}

static void many_stations(struct conf *conf)
{
    uint8_t *done = conf_alloc(conf, STATIONS * COMMANDS);
    uint8_t data[DATA_BYTES];
    struct nvme_host *host;

    aoe_start(conf);
    host = conf_connect(conf, &(struct conf_session){.io_queues = 1});
    conf_write(conf, host, 1, DATA_LBA, 2, 1);
    conf_fill(data, DATA_LBA, 2, 1);
    for (unsigned int left = STATIONS * COMMANDS; left != 0;) {
        unsigned int count;

        send_reads(conf, done);
        conf_write(conf, host, 1, DATA_LBA + 2, 2, left);
        conf_verify(conf, host, 1, DATA_LBA + 2, 2, left);
        count = take_reads(conf, done, data);
        conf_check(conf, count != 0, "no command was answered; %u are left",
                   left);
        left -= count;
    }
    host_disconnect(host);
    aoe_finish(conf);
}

static const struct conf_test tests[] = {
    CONF_TEST("flood.discovery", "AoEr11 3.2",
              "1,000 stations look for devices at once: each gets one right "
              "answer or none, and an NVMe host notices nothing.",
              discovery_flood, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("flood.stations", "AoEr11 2",
              "64 stations send 16 reads each and repeat what gets no answer: "
              "all are answered in the end, and an NVMe host notices nothing.",
              many_stations, .needs = CONF_NEEDS_CONTROL),
};

CONF_TESTS(conf_tests_aoe_flood, "aoe", tests);
