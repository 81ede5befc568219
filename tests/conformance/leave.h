/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ESSD_CONFORM_LEAVE_H
#define ESSD_CONFORM_LEAVE_H

#include "conform.h"

/**
 * At the end of a test of a target that lives on: close what connections the
 * target believes to have, whoever opened them, and answer its DREQs.
 *
 * Gives up after a while: a target without a link or power answers nothing.
 */
void leave(struct conf *conf);

#endif
