/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket of the world knows nothing of PDUs. */
#include "tcp_world.h"

const bool world_follows = false;
