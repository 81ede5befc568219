/* SPDX-License-Identifier: BSD-2-Clause */
/* A wipe of all blocks, after which the translation layer starts anew. */
#ifndef ESSD_FTL_WIPE_H
#define ESSD_FTL_WIPE_H

#include "storage/ftl/state.h"

/** Go on with the wipe, if there is one. */
bool ftl_wipe_step(struct ftl *ftl);
/** An erasure, or a program into the keeper, has ended. */
bool ftl_wipe_done(struct ftl *ftl, struct ftl_request *request,
                   enum ftl_flash_status status);

#endif
