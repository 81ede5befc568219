/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU generates one header for each trace-events file.  This includes the one
 * of this directory.
 */
#include "trace/trace-essd_hw_model_qemu.h"
