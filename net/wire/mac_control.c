/* SPDX-License-Identifier: BSD-2-Clause */
/* MAC Control frames: see mac_control.h. */
#include "net/wire/mac_control.h"

#include <string.h>

#include "lib/bytes.h"

static bool parse_pause(struct mac_control *control, const uint8_t *buf,
                        size_t len)
{
    if (len < MAC_CONTROL_PAUSE_LEN) {
        return false;
    }
    control->priorities = 0xff;
    for (unsigned int i = 0; i < MAC_CONTROL_PRIORITIES; i++) {
        control->quanta[i] = get_be16(buf + MAC_CONTROL_PAUSE_QUANTA);
    }
    return true;
}

static bool parse_pfc(struct mac_control *control, const uint8_t *buf,
                      size_t len)
{
    if (len < MAC_CONTROL_PFC_LEN) {
        return false;
    }
    control->priorities = buf[MAC_CONTROL_PFC_ENABLE + 1];
    for (unsigned int i = 0; i < MAC_CONTROL_PRIORITIES; i++) {
        control->quanta[i] = get_be16(buf + MAC_CONTROL_PFC_QUANTA + 2ul * i);
    }
    return true;
}

bool mac_control_parse(struct mac_control *control, const uint8_t *buf,
                       size_t len)
{
    *control = (struct mac_control){0};
    if (len < MAC_CONTROL_OPCODE + 2) {
        return false;
    }
    control->opcode = get_be16(buf + MAC_CONTROL_OPCODE);
    switch (control->opcode) {
    case MAC_CONTROL_OP_PAUSE:
        return parse_pause(control, buf, len);
    case MAC_CONTROL_OP_PFC:
        return parse_pfc(control, buf, len);
    default:
        return false;
    }
}

void mac_control_emit(const struct mac_control *control, uint8_t *buf)
{
    memset(buf, 0, MAC_CONTROL_LEN);
    put_be16(buf + MAC_CONTROL_OPCODE, control->opcode);
    if (control->opcode == MAC_CONTROL_OP_PAUSE) {
        put_be16(buf + MAC_CONTROL_PAUSE_QUANTA, control->quanta[0]);
        return;
    }
    put_be16(buf + MAC_CONTROL_PFC_ENABLE, control->priorities);
    for (unsigned int i = 0; i < MAC_CONTROL_PRIORITIES; i++) {
        put_be16(buf + MAC_CONTROL_PFC_QUANTA + 2ul * i, control->quanta[i]);
    }
}
