/* SPDX-License-Identifier: BSD-2-Clause */
/* The firmware's version: image header, boot log, Identify Controller FR. */
#ifndef ESSD_APP_VERSION_H
#define ESSD_APP_VERSION_H

#define ESSD_FW_VERSION "0.1.0" /* at most 8 characters */

#endif
