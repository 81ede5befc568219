/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket of the world follows the streams of PDUs. */
#include "tcp_world.h"

const bool world_follows = true;
