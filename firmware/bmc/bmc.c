/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/bmc/bmc.h"

#include <string.h>

#include "firmware/bmc/mi_check.h"
#include "lib/bytes.h"

enum { CHECK_LEN = 4 }; /* the integrity check at the end of a message */

enum { IMAGE_BASIC = 0, IMAGE_VPD = 1, IMAGE_PERIOD_US = 1000000 };

/* ---- Sending. */

static void send_packet(struct bmc *bmc)
{
    size_t left = bmc->response_len - bmc->sent_len;
    struct mctp_packet packet = {
        .from_addr = MI_MCTP_ADDR,
        .to_eid = bmc->to.eid,
        .from_eid = bmc->control.eid,
        .is_first = bmc->sent_len == 0,
        .is_last = left <= MI_MTU,
        .seq = bmc->seq,
        .tag = bmc->to.tag,
        .data = bmc->response + bmc->sent_len,
        .len = MIN(left, (size_t)MI_MTU),
    };

    bmc->packet.addr = bmc->to.addr;
    bmc->packet.read_len = 0;
    bmc->packet.write_len =
        (uint16_t)mctp_packet_emit(&packet, bmc->to.addr, bmc->packet.bytes);
    bmc->packet_data_len = packet.len;
    i2c_submit(bmc->bus, &bmc->packet);
}

static void packet_done(void *ctx, struct i2c_request *packet,
                        enum i2c_outcome outcome)
{
    struct bmc *bmc = ctx;

    (void)packet;
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
    bmc->sent_len += bmc->packet_data_len;
    bmc->seq = (bmc->seq + 1) & MCTP_SEQ_MASK;
    if (bmc->sent_len < bmc->response_len) {
        send_packet(bmc);
    } else {
        bmc->counters.responses++;
        bmc->is_sending = false;
    }
}

static void send_response(struct bmc *bmc, const struct mctp_peer *to,
                          size_t len)
{
    bmc->to = *to;
    bmc->is_sending = true;
    bmc->attempts = 0;
    bmc->seq = 0;
    bmc->sent_len = 0;
    bmc->response_len = len;
    send_packet(bmc);
}

/* ---- Receiving. */

static void handle_control(struct bmc *bmc, const struct mctp_message *request)
{
    size_t len = mctp_control_execute(&bmc->control, request->bytes,
                                      request->len, bmc->response);

    if (len == 0) {
        bmc->counters.bad_packets++;
        return;
    }
    send_response(bmc, &request->from, len);
}

static void handle_mi(struct bmc *bmc, const struct mctp_message *request)
{
    size_t len = request->len - CHECK_LEN;

    if (request->len <= CHECK_LEN ||
        get_le32(request->bytes + len) != mi_crc32c(request->bytes, len)) {
        bmc->counters.bad_checks++;
        return;
    }
    len = mi_execute(&bmc->mi, request->bytes, len, bmc->response);
    if (len != 0) {
        put_le32(bmc->response + len, mi_crc32c(bmc->response, len));
        send_response(bmc, &request->from, len + CHECK_LEN);
    }
}

static void handle_request(struct bmc *bmc, const struct mctp_message *request)
{
    bmc->counters.requests++;
    switch (request->bytes[0]) {
    case MCTP_TYPE_CONTROL:
        handle_control(bmc, request);
        break;
    case MCTP_TYPE_NVME_MI | MCTP_TYPE_CHECKED:
        handle_mi(bmc, request);
        break;
    default:
        bmc->counters.bad_packets++;
        break;
    }
}

static void take_packet(struct bmc *bmc, const struct mctp_packet *packet)
{
    struct mctp_message request;

    switch (mctp_assembly_take(&bmc->assembly, bmc->control.eid, packet,
                               &request)) {
    case MCTP_INCOMPLETE:
        break;
    case MCTP_COMPLETE:
        handle_request(bmc, &request);
        break;
    case MCTP_DROPPED:
        bmc->counters.bad_packets++;
        break;
    }
}

static void take_mail(struct bmc *bmc, const uint8_t *mail, size_t len)
{
    struct mctp_packet packet;

    switch (mctp_packet_parse(&packet, MI_MCTP_ADDR, mail, len)) {
    case MCTP_PARSED:
        take_packet(bmc, &packet);
        break;
    case MCTP_MALFORMED:
        bmc->counters.bad_packets++;
        break;
    case MCTP_BAD_PEC:
        bmc->counters.bad_pec++;
        break;
    }
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
    memcpy(bmc->control.uuid, config->uuid, sizeof(bmc->control.uuid));
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
