/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/bmc/mctp_control.h"

#include <string.h>

enum {
    CONTROL_TYPE = 0,
    CONTROL_INSTANCE = 1,
    CONTROL_COMMAND = 2,
    CONTROL_REQUEST_DATA = 3,
    CONTROL_CODE = 3, /* of a response; its data follows */
    CONTROL_RESPONSE_DATA = 4,
    CONTROL_REQUEST = 0x80,
    CONTROL_DATAGRAM = 0x40,
    CONTROL_INSTANCE_MASK = 0x1f,
};
_Static_assert(CONTROL_RESPONSE_DATA + MCTP_UUID_LEN == MCTP_CONTROL_MAX,
               "the UUID is the longest data");

enum control_command {
    CONTROL_SET_EID = 1,
    CONTROL_GET_EID = 2,
    CONTROL_UUID = 3,
    CONTROL_VERSION = 4,
    CONTROL_TYPES = 5,
};

enum control_code {
    CODE_OK = 0,
    CODE_INVALID_DATA = 2,
    CODE_INVALID_LEN = 3,
    CODE_UNSUPPORTED = 5,
    CODE_NO_SUCH_TYPE = 0x80,
};

enum {
    SET_EID_FORCE = 1,
    EID_FIRST = 8,
    EID_LAST = 0xfe,
    ANY_TYPE = 0xff,
};

/* A message that is being executed. */
struct control_message {
    struct mctp_control *control;
    const uint8_t *request; /* its data */
    size_t request_len;
    uint8_t *data; /* of the response */
    size_t len;
};

static enum control_code set_eid(struct control_message *message)
{
    const uint8_t *request = message->request;

    if (message->request_len != 2) {
        return CODE_INVALID_LEN;
    }
    if (request[0] > SET_EID_FORCE || request[1] < EID_FIRST ||
        request[1] > EID_LAST) {
        return CODE_INVALID_DATA;
    }
    message->control->eid = request[1];
    message->data[0] = 0; /* accepted; no pool of identifiers */
    message->data[1] = request[1];
    message->data[2] = 0;
    message->len = 3;
    return CODE_OK;
}

static enum control_code get_versions(struct control_message *message)
{
    static const uint8_t version_1_3_1[4] = {0xf1, 0xf3, 0xf1, 0x00};
    static const uint8_t version_1_1_0[4] = {0xf1, 0xf1, 0xf0, 0x00};
    uint8_t type = message->request_len != 0 ? message->request[0] : ANY_TYPE;

    if (type != ANY_TYPE && type != MCTP_TYPE_CONTROL &&
        type != MCTP_TYPE_NVME_MI) {
        return CODE_NO_SUCH_TYPE;
    }
    message->data[0] = 1;
    memcpy(message->data + 1,
           type == MCTP_TYPE_NVME_MI ? version_1_1_0 : version_1_3_1, 4);
    message->len = 5;
    return CODE_OK;
}

static enum control_code run_command(struct control_message *message,
                                     uint8_t command)
{
    switch (command) {
    case CONTROL_SET_EID:
        return set_eid(message);
    case CONTROL_GET_EID:
        message->data[0] = message->control->eid;
        message->data[1] = 0; /* an endpoint, whose identifier is assigned */
        message->data[2] = 0;
        message->len = 3;
        return CODE_OK;
    case CONTROL_UUID:
        memcpy(message->data, message->control->uuid, MCTP_UUID_LEN);
        message->len = MCTP_UUID_LEN;
        return CODE_OK;
    case CONTROL_VERSION:
        return get_versions(message);
    case CONTROL_TYPES:
        message->data[0] = 1;
        message->data[1] = MCTP_TYPE_NVME_MI;
        message->len = 2;
        return CODE_OK;
    default:
        return CODE_UNSUPPORTED;
    }
}

size_t mctp_control_execute(struct mctp_control *control,
                            const uint8_t *request, size_t len,
                            uint8_t *response)
{
    struct control_message message;

    if (len < CONTROL_REQUEST_DATA ||
        !(request[CONTROL_INSTANCE] & CONTROL_REQUEST) ||
        request[CONTROL_INSTANCE] & CONTROL_DATAGRAM) {
        return 0;
    }
    message = (struct control_message){
        .control = control,
        .request = request + CONTROL_REQUEST_DATA,
        .request_len = len - CONTROL_REQUEST_DATA,
        .data = response + CONTROL_RESPONSE_DATA,
    };
    response[CONTROL_TYPE] = MCTP_TYPE_CONTROL;
    response[CONTROL_INSTANCE] =
        request[CONTROL_INSTANCE] & CONTROL_INSTANCE_MASK;
    response[CONTROL_COMMAND] = request[CONTROL_COMMAND];
    response[CONTROL_CODE] =
        (uint8_t)run_command(&message, request[CONTROL_COMMAND]);
    return CONTROL_RESPONSE_DATA + message.len;
}
