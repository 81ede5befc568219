/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QEMU generates one header per trace-events file; this names ours. */
#include "trace/trace-essd_hw_model_qemu.h"
