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
    LEAST_ANSWERED = 32,
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

/* @return the next answer, for whose first one there is more time */
static const struct packet *next_answer(struct conf *conf, bool is_first)
{
    return conf_take_within(conf, aoe_is_answer, NULL,
                            is_first ? conf_answer_us(conf) : CONF_SILENCE_US);
}

/* ---- Discoveries. */

static void check_discovered(struct conf *conf, const struct packet *packet,
                             uint8_t *answered)
{
    unsigned int number = station_of(conf, packet, DISCOVERERS + 1);

    conf_same(conf, "the answer", packet->frame + AOE_AT, discovered,
              sizeof(discovered));
    conf_check(conf, !answered[number],
               "station %u gets two answers to one query", number);
    answered[number] = true;
}

static void send_discovery(struct conf *conf, unsigned int number)
{
    uint8_t mac[6];

    station_mac(mac, number);
    aoe_send(conf, mac, discover, sizeof(discover), NULL, 0);
}

static void discovery_flood(struct conf *conf)
{
    uint8_t *answered = conf_alloc(conf, DISCOVERERS + 1);
    const struct packet *packet;
    struct nvme_host *host;
    unsigned int count = 0;

    aoe_start(conf);
    host = conf_connect(conf, &(struct conf_session){.io_queues = 1});
    for (unsigned int i = 0; i < DISCOVERERS; i++) {
        if (i % BETWEEN == 0) {
            conf_write(conf, host, 1, DATA_LBA, 2, i + 1);
        }
        send_discovery(conf, i);
        if (i % BETWEEN == BETWEEN - 1) {
            conf_verify(conf, host, 1, DATA_LBA, 2, i + 2 - BETWEEN);
        }
    }
    net_settle(conf, 0);
    while ((packet = next_answer(conf, count == 0)) != NULL) {
        check_discovered(conf, packet, answered);
        count++;
    }
    conf_check(conf, count >= LEAST_ANSWERED, "only %u of %u were answered",
               count, DISCOVERERS);
    send_discovery(conf, DISCOVERERS);
    while (!answered[DISCOVERERS]) {
        check_discovered(conf,
                         conf_take(conf,
                                   "the answer to a query after the "
                                   "flood",
                                   aoe_is_answer, NULL),
                         answered);
    }
    host_disconnect(host);
    aoe_finish(conf);
}

/* ---- Commands. */

/* What each station has done with each of its commands. */
struct command {
    uint16_t sent, answered;
};

static void send_reads(struct conf *conf, struct command *commands)
{
    for (unsigned int i = 0; i < STATIONS * COMMANDS; i++) {
        uint8_t request[ATA_LEN];
        uint8_t mac[6];

        if (commands[i].answered != 0) {
            continue;
        }
        commands[i].sent++;
        memcpy(request, read_ext, sizeof(request));
        request[TAG] = (uint8_t)(i / COMMANDS);
        request[TAG + 1] = (uint8_t)(i % COMMANDS);
        station_mac(mac, i / COMMANDS);
        aoe_send(conf, mac, request, sizeof(request), NULL, 0);
    }
}

/* @return the number of commands that were answered for the first time */
static unsigned int take_reads(struct conf *conf, struct command *commands,
                               const uint8_t *data)
{
    const struct packet *packet;
    unsigned int count = 0;

    while ((packet = next_answer(conf, count == 0)) != NULL) {
        const uint8_t *answer = packet->frame + AOE_AT;
        uint8_t expected[ATA_LEN];
        unsigned int number = station_of(conf, packet, STATIONS);
        unsigned int tag = answer[TAG + 1];
        struct command *command;

        memcpy(expected, read_ext_done, sizeof(expected));
        expected[TAG] = (uint8_t)number;
        expected[TAG + 1] = (uint8_t)tag;
        conf_equal(conf, "the length of the frame", packet->len_bytes,
                   AOE_AT + ATA_LEN + DATA_BYTES);
        conf_same(conf, "the answer", answer, expected, sizeof(expected));
        conf_same(conf, "what was read", answer + ATA_LEN, data, DATA_BYTES);
        conf_check(conf, tag < COMMANDS, "tag %u was not sent", tag);
        command = &commands[number * COMMANDS + tag];
        count += command->answered == 0 ? 1 : 0;
        command->answered++;
        conf_check(conf, command->answered <= command->sent,
                   "command %u of station %u was sent %u times, and answered "
                   "more often",
                   tag, number, command->sent);
    }
    return count;
}

static void many_stations(struct conf *conf)
{
    struct command *commands =
        conf_alloc(conf, STATIONS * COMMANDS * sizeof(*commands));
    uint8_t data[DATA_BYTES];
    struct nvme_host *host;

    aoe_start(conf);
    host = conf_connect(conf, &(struct conf_session){.io_queues = 1});
    conf_write(conf, host, 1, DATA_LBA, 2, 1);
    conf_fill(data, DATA_LBA, 2, 1);
    for (unsigned int left = STATIONS * COMMANDS; left != 0;) {
        unsigned int count;

        send_reads(conf, commands);
        conf_write(conf, host, 1, DATA_LBA + 2, 2, left);
        conf_verify(conf, host, 1, DATA_LBA + 2, 2, left);
        count = take_reads(conf, commands, data);
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
