/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which commands are refused while a sanitize operation is in progress, or
 * after one has failed. Spec: NVM Express Base 1.4 section 8.15.
 */
#include "nvmeof/target/base/base.h"
#include "nvmeof/wire/log.h"

static uint16_t refuse_request(struct nvmf_target *target,
                               struct nvmf_request *req)
{
    (void)req;
    return sanitize_status(target);
}

const struct nvmf_command sanitize_refusal = {.check = refuse_request,
                                              .execute = refuse_request};

/* Whether this admin command of I/O controllers is refused at that time. */
bool sanitize_refuses_command(uint8_t opcode)
{
    switch (opcode) {
    case ADMIN_GET_LOG_PAGE:
    case ADMIN_IDENTIFY:
    case ADMIN_ABORT:
    case ADMIN_SET_FEATURES:
    case ADMIN_GET_FEATURES:
    case ADMIN_ASYNC_EVENT_REQUEST:
    case ADMIN_KEEP_ALIVE:
    case ADMIN_SANITIZE: /* it has conditions of its own */
        return false;
    default:
        return admin_commands[opcode].execute != NULL;
    }
}

/* Linux does not connect to a drive with ANA whose ANA page it cannot read, so
 * that page can be read, too. */
bool sanitize_refuses_log(const struct nvmf_target *target, uint8_t lid)
{
    return sanitize_status(target) != 0 && lid != LOG_ERROR &&
           lid != LOG_SMART && lid != LOG_CHANGED_NS_LIST && lid != LOG_ANA &&
           lid != LOG_RESERVATION && lid != LOG_SANITIZE &&
           lid != LOG_DISCOVERY;
}
