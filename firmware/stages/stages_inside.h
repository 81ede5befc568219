/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to the files of the stages: stages.h. */
#ifndef ESSD_STAGES_STAGES_INSIDE_H
#define ESSD_STAGES_STAGES_INSIDE_H

#include "firmware/stages/stages.h"

enum { STAGE_BUDGET = 24 }; /* messages of a ring, or completions, of a visit */

/** What stands between transport and target. */
struct rdma_relay stages_relay(struct stages *stages);

/** Show the messages of the transport, or of the target to it. */
void stages_show_calls(struct stages *stages);
void stages_show_answers(struct stages *stages);

bool stages_have_calls(const struct stages *stages);
bool stages_have_answers(const struct stages *stages);

/** Make the calls of the transport to the target, up to the first one that is
 * not plain. */
void stages_take_calls(struct stages *stages);

/** Make the calls of the target to the transport. */
void stages_take_answers(struct stages *stages);

#endif
