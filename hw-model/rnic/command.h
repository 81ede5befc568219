/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands of the RNIC: docs/hardware/rnic.md, section 3.
 */
#ifndef ESSD_HW_RNIC_COMMAND_H
#define ESSD_HW_RNIC_COMMAND_H

#include "hw-model/rnic/rnic.h"

/**
 * Execute one command.
 *
 * @param cmd     RNIC_CMD_LEN bytes, a copy that firmware cannot change
 * @param result  set to the RESULT word
 * @return enum rnic_cmd_status, never PENDING
 */
uint8_t rnic_execute(struct rnic *rnic, const uint8_t *cmd, uint32_t *result);

#endif
