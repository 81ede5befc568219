/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ESSD_CONFORM_LEAVE_H
#define ESSD_CONFORM_LEAVE_H

#include "conform.h"

/**
 * Call it after a test when the target keeps running: end all connections that
 * the target has, whoever opened them, and answer its DREQs.
 *
 * Gives up after a while, because a target without a link or power answers
 * nothing.
 */
void leave(struct conf *conf);

#endif
