/* SPDX-License-Identifier: BSD-2-Clause */
#include "aoe_lib.h"

#include <string.h>

enum { REQUEST_MAX = 22 }; /* the headers of AoE and ATA */

static void set_export(struct conf *conf, const char *exported,
                       const char *shelf)
{
    conf_console(conf, "config discard");
    conf_console(conf, exported);
    conf_console(conf, shelf);
    conf_check(conf, strstr(conf_console(conf, "config save"), "error") == NULL,
               "the drive does not save the configuration");
    conf_reset(conf);
    conf_flush(conf);
    net_settle(conf, 0);
}

void aoe_start(struct conf *conf)
{
    conf_needs_ip(conf, 0, false);
    conf_needs_block(conf);
    if (strstr(conf_console(conf, "config"), "\naoe.export ") == NULL) {
        conf_not_applicable(conf, "the console has no setting aoe.export");
    }
    set_export(conf, "config set aoe.export 1", "config set aoe.shelf 1");
}

void aoe_finish(struct conf *conf)
{
    if (!conf_target(conf)->is_virtual) {
        set_export(conf, "config set aoe.export none",
                   "config set aoe.shelf 0");
    }
}

void aoe_send(struct conf *conf, const uint8_t *mac, const uint8_t *bytes,
              size_t len, const uint8_t *data, size_t data_len)
{
    uint8_t frame[AOE_AT + REQUEST_MAX + 2 * AOE_SECTOR + 8] = {0};

    conf_check(conf, AOE_AT + len + data_len <= sizeof(frame), "it fits");
    memcpy(frame, conf_target(conf)->ports[0].mac.bytes, 6);
    memcpy(frame + 6, mac, 6);
    frame[12] = 0x88;
    frame[13] = 0xa2;
    memcpy(frame + AOE_AT, bytes, len);
    if (data_len != 0) {
        memcpy(frame + AOE_AT + len, data, data_len);
    }
    len += AOE_AT + data_len;
    conf_send_frame(conf, 0, frame, len < AOE_FRAME_MIN ? AOE_FRAME_MIN : len,
                    0);
}

bool aoe_is_answer(const struct packet *packet, const void *ctx)
{
    (void)ctx;
    return packet->port == 0 && packet->frame[12] == 0x88 &&
           packet->frame[13] == 0xa2 && packet->len_bytes > AOE_AT &&
           (packet->frame[AOE_AT] & 0x08) != 0;
}
