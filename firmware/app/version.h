/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one place of the version: image header, boot log, Identify Controller FR,
 * CMake (cmake/version.cmake) and ./essd --version take it from here.
 * CHANGELOG.md has an entry for each version.
 */
#ifndef ESSD_APP_VERSION_H
#define ESSD_APP_VERSION_H

#define ESSD_FW_VERSION "0.1.0" /* at most 8 characters */

#endif
