/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a BMC writes to the drive. The input is a row of packets, each with a
 * byte for its length; the PEC and the length in each packet are repaired, so
 * that changes reach the assembly of messages and the control messages.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "firmware/bmc/mctp.h"
#include "firmware/bmc/mctp_control.h"
#include "firmware/bmc/mi_check.h"

enum { OWN_ADDR = 0x1d, HEAD = 7, FLAG_LAST = 0x40 };

/* Set EID, a message in two packets, and a single packet between them. */
static const uint8_t row[] = {
    12,   0x0f, 0x0a, 0x21, 1,    0,    8,    0xc8, 0,    0x80, 1,  0,
    0x42, 12,   0x0f, 0x0a, 0x21, 1,    0x42, 8,    0x89, 1,    2,  3,
    4,    5,    10,   0x0f, 0x08, 0x21, 1,    0,    8,    0xca, 0,  0x80,
    2,    12,   0x0f, 0x0a, 0x21, 1,    0x42, 8,    0x19, 6,    7,  8,
    9,    10,   9,    0x0f, 0x07, 0x21, 1,    0x42, 8,    0x69, 11, 12,
};

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    if (n != 0 || sizeof(row) > room) {
        return 0;
    }
    memcpy(buf, row, sizeof(row));
    return sizeof(row);
}

static void repair_packet(uint8_t *bytes, size_t len)
{
    const uint8_t target = OWN_ADDR << 1;

    bytes[1] = (uint8_t)(len - 3);
    bytes[len - 1] = mi_pec(mi_pec(0, &target, 1), bytes, len - 1);
}

/* What was parsed is emitted as it was, except for reserved bits. */
static void check_emission(const struct mctp_packet *packet,
                           const uint8_t *bytes, size_t len)
{
    uint8_t out[MCTP_PACKET_MAX];

    if (packet->len <= MCTP_UNIT) {
        ASSERT(mctp_packet_emit(packet, OWN_ADDR, out) == len);
        ASSERT(memcmp(out, bytes, 3) == 0 && out[3] == (bytes[3] & 0xf));
        ASSERT(memcmp(out + 4, bytes + 4, len - 5) == 0);
    }
}

static void take_packet(struct mctp_assembly *assembly,
                        struct mctp_control *control, const uint8_t *bytes,
                        size_t len)
{
    uint8_t response[MCTP_CONTROL_MAX];
    struct mctp_message message;
    struct mctp_packet packet;

    if (mctp_packet_parse(&packet, OWN_ADDR, bytes, len) != MCTP_PARSED) {
        return;
    }
    check_emission(&packet, bytes, len);
    if (mctp_assembly_take(assembly, control->eid, &packet, &message) ==
        MCTP_COMPLETE) {
        ASSERT(message.len != 0 && message.len <= MCTP_MESSAGE_MAX);
        ASSERT(bytes[HEAD - 1] & FLAG_LAST);
        ASSERT(mctp_control_execute(control, message.bytes, message.len,
                                    response) <= sizeof(response));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct mctp_assembly assembly = {0};
    struct mctp_control control = {0};

    while (len != 0) {
        size_t packet_len = MIN((size_t)data[0], len - 1) + 1; /* with PEC */
        /* An allocation of this length, so that ASan sees what is beyond. */
        uint8_t *packet = calloc(packet_len, 1);

        ASSERT(packet != NULL);
        memcpy(packet, data + 1, packet_len - 1);
        if (packet_len > 3) {
            repair_packet(packet, packet_len);
        }
        take_packet(&assembly, &control, packet, packet_len);
        free(packet);
        data += packet_len;
        len -= packet_len;
    }
    return 0;
}
