/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/bmc/bmc.h"

#include <string.h>

#include "firmware/bmc/mi_check.h"
#include "lib/bytes.h"

enum { /* an MCTP packet on SMBus, as it is written after the address */
       PACKET_COMMAND = 0,
       PACKET_COUNT = 1, /* bytes that follow, without the PEC */
       PACKET_SOURCE = 2,
       PACKET_VERSION = 3,
       PACKET_TO_EID = 4,
       PACKET_FROM_EID = 5,
       PACKET_FLAGS = 6,
       PACKET_DATA = 7,
       PACKET_MCTP = 0x0f, /* the command code of MCTP */
       VERSION = 1,
       FLAG_SOM = 0x80,
       FLAG_EOM = 0x40,
       FLAG_TAG_OWNER = 0x08,
       SEQ_SHIFT = 4,
       SEQ_MASK = 3,
       TAG_MASK = 7,
};

enum { /* messages */
       TYPE_CONTROL = 0x00,
       TYPE_NVME_MI = 0x04,
       TYPE_CHECKED = 0x80, /* the message ends with an integrity check */
       CHECK_LEN = 4,
};

enum { /* MCTP control messages */
       CONTROL_INSTANCE = 1,
       CONTROL_COMMAND = 2,
       CONTROL_DATA = 3, /* of a request */
       CONTROL_CODE = 3, /* of a response; its data follows */
       CONTROL_REQUEST = 0x80,
       CONTROL_DATAGRAM = 0x40,
       CONTROL_INSTANCE_MASK = 0x1f,
       CONTROL_SET_EID = 1,
       CONTROL_GET_EID = 2,
       CONTROL_UUID = 3,
       CONTROL_VERSION = 4,
       CONTROL_TYPES = 5,
       CODE_OK = 0,
       CODE_INVALID_DATA = 2,
       CODE_INVALID_LEN = 3,
       CODE_UNSUPPORTED = 5,
       CODE_NO_SUCH_TYPE = 0x80,
       SET_EID_FORCE = 1,
       EID_FIRST = 8,
       EID_LAST = 0xfe,
       ANY_TYPE = 0xff,
};

enum { IMAGE_BASIC = 0, IMAGE_VPD = 1, IMAGE_PERIOD_US = 1000000 };

/* ---- Sending. */

static void send_packet(struct bmc *bmc)
{
    struct i2c_request *packet = &bmc->packet;
    size_t left = bmc->response_len - bmc->sent_len;
    size_t len = MIN(left, (size_t)MI_MTU);
    uint8_t flags = (uint8_t)(bmc->seq << SEQ_SHIFT | bmc->to.tag);
    uint8_t target = (uint8_t)(bmc->to.addr << 1);

    flags |= bmc->sent_len == 0 ? FLAG_SOM : 0;
    flags |= len == left ? FLAG_EOM : 0;
    packet->addr = bmc->to.addr;
    packet->read_len = 0;
    packet->bytes[PACKET_COMMAND] = PACKET_MCTP;
    packet->bytes[PACKET_COUNT] = (uint8_t)(PACKET_DATA - PACKET_SOURCE + len);
    packet->bytes[PACKET_SOURCE] = MI_MCTP_ADDR << 1 | 1;
    packet->bytes[PACKET_VERSION] = VERSION;
    packet->bytes[PACKET_TO_EID] = bmc->to.eid;
    packet->bytes[PACKET_FROM_EID] = bmc->eid;
    packet->bytes[PACKET_FLAGS] = flags;
    memcpy(packet->bytes + PACKET_DATA, bmc->response + bmc->sent_len, len);
    packet->bytes[PACKET_DATA + len] =
        mi_pec(mi_pec(0, &target, 1), packet->bytes, PACKET_DATA + len);
    packet->write_len = (uint16_t)(PACKET_DATA + len + 1);
    i2c_submit(bmc->bus, packet);
}

static void packet_done(void *ctx, struct i2c_request *packet,
                        enum i2c_outcome outcome)
{
    struct bmc *bmc = ctx;

    if (outcome != I2C_OK) {
        if (++bmc->attempts < BMC_ATTEMPTS) {
            send_packet(bmc);
        } else {
            bmc->counters.unsent++;
            bmc->is_sending = false;
        }
        return;
    }
    bmc->attempts = 0;
    bmc->sent_len +=
        packet->bytes[PACKET_COUNT] - (size_t)(PACKET_DATA - PACKET_SOURCE);
    bmc->seq = (bmc->seq + 1) & SEQ_MASK;
    if (bmc->sent_len < bmc->response_len) {
        send_packet(bmc);
    } else {
        bmc->counters.responses++;
        bmc->is_sending = false;
    }
}

static void send_response(struct bmc *bmc, size_t len)
{
    bmc->to = bmc->from;
    bmc->is_sending = true;
    bmc->attempts = 0;
    bmc->seq = 0;
    bmc->sent_len = 0;
    bmc->response_len = len;
    send_packet(bmc);
}

/* ---- Control messages. */

static size_t set_eid(struct bmc *bmc, size_t len, uint8_t *data)
{
    const uint8_t *request = bmc->request + CONTROL_DATA;

    if (len != CONTROL_DATA + 2) {
        bmc->response[CONTROL_CODE] = CODE_INVALID_LEN;
        return 0;
    }
    if (request[0] > SET_EID_FORCE || request[1] < EID_FIRST ||
        request[1] > EID_LAST) {
        bmc->response[CONTROL_CODE] = CODE_INVALID_DATA;
        return 0;
    }
    bmc->eid = request[1];
    data[0] = 0; /* accepted; no pool of identifiers */
    data[1] = bmc->eid;
    data[2] = 0;
    return 3;
}

static size_t get_versions(struct bmc *bmc, size_t len, uint8_t *data)
{
    static const uint8_t version_1_3_1[4] = {0xf1, 0xf3, 0xf1, 0x00};
    static const uint8_t version_1_1_0[4] = {0xf1, 0xf1, 0xf0, 0x00};
    uint8_t type = len > CONTROL_DATA ? bmc->request[CONTROL_DATA] : ANY_TYPE;

    if (type != ANY_TYPE && type != TYPE_CONTROL && type != TYPE_NVME_MI) {
        bmc->response[CONTROL_CODE] = CODE_NO_SUCH_TYPE;
        return 0;
    }
    data[0] = 1;
    memcpy(data + 1, type == TYPE_NVME_MI ? version_1_1_0 : version_1_3_1, 4);
    return 5;
}

/* @return the length of the data of the response */
static size_t execute_control(struct bmc *bmc, size_t len)
{
    uint8_t *data = bmc->response + CONTROL_CODE + 1;

    switch (bmc->request[CONTROL_COMMAND]) {
    case CONTROL_SET_EID:
        return set_eid(bmc, len, data);
    case CONTROL_GET_EID:
        data[0] = bmc->eid;
        data[1] = 0; /* an endpoint, whose identifier is assigned */
        data[2] = 0;
        return 3;
    case CONTROL_UUID:
        memcpy(data, bmc->uuid, BMC_UUID_LEN);
        return BMC_UUID_LEN;
    case CONTROL_VERSION:
        return get_versions(bmc, len, data);
    case CONTROL_TYPES:
        data[0] = 1;
        data[1] = TYPE_NVME_MI;
        return 2;
    default:
        bmc->response[CONTROL_CODE] = CODE_UNSUPPORTED;
        return 0;
    }
}

static void handle_control(struct bmc *bmc)
{
    uint8_t instance = bmc->request[CONTROL_INSTANCE];

    /* Responses and datagrams are not answered. */
    if (bmc->request_len < CONTROL_DATA || !(instance & CONTROL_REQUEST) ||
        instance & CONTROL_DATAGRAM) {
        bmc->counters.bad_packets++;
        return;
    }
    bmc->response[0] = TYPE_CONTROL;
    bmc->response[CONTROL_INSTANCE] = instance & CONTROL_INSTANCE_MASK;
    bmc->response[CONTROL_COMMAND] = bmc->request[CONTROL_COMMAND];
    bmc->response[CONTROL_CODE] = CODE_OK;
    send_response(bmc,
                  CONTROL_CODE + 1 + execute_control(bmc, bmc->request_len));
}

/* ---- Receiving. */

static void handle_mi(struct bmc *bmc)
{
    size_t len = bmc->request_len - CHECK_LEN;

    if (bmc->request_len <= CHECK_LEN ||
        get_le32(bmc->request + len) != mi_crc32c(bmc->request, len)) {
        bmc->counters.bad_checks++;
        return;
    }
    len = mi_execute(&bmc->mi, bmc->request, len, bmc->response);
    if (len != 0) {
        put_le32(bmc->response + len, mi_crc32c(bmc->response, len));
        send_response(bmc, len + CHECK_LEN);
    }
}

static void handle_request(struct bmc *bmc)
{
    bmc->counters.requests++;
    switch (bmc->request[0]) {
    case TYPE_CONTROL:
        handle_control(bmc);
        break;
    case TYPE_NVME_MI | TYPE_CHECKED:
        handle_mi(bmc);
        break;
    default:
        bmc->counters.bad_packets++;
        break;
    }
}

static bool is_mctp(const struct bmc *bmc, const uint8_t *packet, size_t len)
{
    return len > PACKET_DATA + 1 && packet[PACKET_COMMAND] == PACKET_MCTP &&
           packet[PACKET_COUNT] == len - PACKET_SOURCE - 1 &&
           (packet[PACKET_SOURCE] & 1) != 0 &&
           (packet[PACKET_VERSION] & 0xf) == VERSION &&
           (packet[PACKET_TO_EID] == 0 || packet[PACKET_TO_EID] == bmc->eid) &&
           (packet[PACKET_FLAGS] & FLAG_TAG_OWNER) != 0;
}

/* Whether a packet continues the message that is being received. */
static bool is_expected(const struct bmc *bmc, const struct bmc_peer *from,
                        uint8_t seq)
{
    return bmc->is_receiving && from->addr == bmc->from.addr &&
           from->eid == bmc->from.eid && from->tag == bmc->from.tag &&
           seq == bmc->next_seq;
}

static void take_packet(struct bmc *bmc, const uint8_t *packet, size_t len)
{
    uint8_t flags = packet[PACKET_FLAGS];
    uint8_t seq = flags >> SEQ_SHIFT & SEQ_MASK;
    size_t data_len = len - PACKET_DATA - 1;
    struct bmc_peer from = {
        .addr = packet[PACKET_SOURCE] >> 1,
        .eid = packet[PACKET_FROM_EID],
        .tag = flags & TAG_MASK,
    };

    if (flags & FLAG_SOM) {
        bmc->is_receiving = true;
        bmc->from = from;
        bmc->next_seq = seq;
        bmc->request_len = 0;
    }
    if (!is_expected(bmc, &from, seq) ||
        data_len > sizeof(bmc->request) - bmc->request_len) {
        bmc->is_receiving = false;
        bmc->counters.bad_packets++;
        return;
    }
    memcpy(bmc->request + bmc->request_len, packet + PACKET_DATA, data_len);
    bmc->request_len += data_len;
    bmc->next_seq = (seq + 1) & SEQ_MASK;
    if (flags & FLAG_EOM) {
        bmc->is_receiving = false;
        handle_request(bmc);
    }
}

static void take_mail(struct bmc *bmc, const uint8_t *packet, size_t len)
{
    const uint8_t target = MI_MCTP_ADDR << 1;

    if (!is_mctp(bmc, packet, len)) {
        bmc->counters.bad_packets++;
        return;
    }
    if (mi_pec(mi_pec(0, &target, 1), packet, len - 1) != packet[len - 1]) {
        bmc->counters.bad_pec++;
        return;
    }
    take_packet(bmc, packet, len);
}

static void publish_basic(struct bmc *bmc)
{
    uint8_t image[MI_BASIC_LEN];

    mi_basic(&bmc->mi, bmc->serial, image);
    i2c_publish(bmc->bus, IMAGE_BASIC, image);
}

void bmc_init(struct bmc *bmc, const struct bmc_config *config)
{
    *bmc = (struct bmc){.bus = config->bus};
    memcpy(bmc->serial, config->serial, sizeof(bmc->serial));
    memcpy(bmc->uuid, config->uuid, sizeof(bmc->uuid));
    bmc->packet.done = packet_done;
    bmc->packet.ctx = bmc;
    mi_init(&bmc->mi, &config->source, config->vendor_id, &config->vpd);
    publish_basic(bmc);
    i2c_publish(bmc->bus, IMAGE_VPD, bmc->mi.vpd);
    i2c_target_image(bmc->bus, IMAGE_BASIC, MI_BASIC_ADDR);
    i2c_target_image(bmc->bus, IMAGE_VPD, MI_VPD_ADDR);
    i2c_target_mail(bmc->bus, MI_MCTP_ADDR);
}

bool bmc_step(struct bmc *bmc, uint64_t now_us, uint64_t *deadline_us)
{
    uint8_t mail[I2C_TRANSFER_MAX];
    size_t len = 0;

    if (bmc->bus == NULL) {
        return false;
    }
    if (now_us >= bmc->image_us) {
        publish_basic(bmc);
        bmc->image_us = now_us + IMAGE_PERIOD_US;
    }
    *deadline_us = MIN(*deadline_us, bmc->image_us);
    if (!bmc->is_sending) {
        len = i2c_take_mail(bmc->bus, mail);
    }
    if (len != 0) {
        take_mail(bmc, mail, len);
    }
    return len != 0;
}
