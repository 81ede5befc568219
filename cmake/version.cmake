# SPDX-License-Identifier: BSD-2-Clause
#
# Sets ESSD_VERSION to the version in firmware/app/version.h, the one place that
# has it; tools/essd/build/fw_build.py reads the same line.  Include it before
# project().
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../firmware/app/version.h version_line
    REGEX "define ESSD_FW_VERSION")
string(REGEX REPLACE ".*\"([^\"]+)\".*" "\\1" ESSD_VERSION "${version_line}")
