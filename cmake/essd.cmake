# SPDX-License-Identifier: BSD-2-Clause
#
# What the native build and the RISC-V build share: the lists of sources and
# the warnings.
#
# A directory with C sources has a sources.cmake, which sets up to three lists:
#   SOURCES         compiled in every build
#   NATIVE_SOURCES  compiled in the native build and in QEMU only
#   RV64_SOURCES    compiled into the boot ROM and the firmware only
# To add a source, add one line there.  QEMU's build reads the same lists and
# the same warnings (tools/essd/build/qemu_build.py); tools/check_sources.py
# fails when a source is in no list.

# One flag a line.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/warnings.txt ESSD_WARNINGS REGEX "^-")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${CMAKE_CURRENT_LIST_DIR}/warnings.txt)

# What a file needs that includes storage/ftl/state.h: a struct may contain another
# one without a name for it (storage/ftl/base/base_floor.h).
set(ESSD_FLOORS -fms-extensions -Wno-microsoft-anon-tag)

# essd_sources(out dir build): set `out` to the sources of the absolute path
# `dir`, relative to it; build is NATIVE or RV64.
function(essd_sources out dir build)
    set(SOURCES)
    set(NATIVE_SOURCES)
    set(RV64_SOURCES)
    include(${dir}/sources.cmake)
    set(${out} ${SOURCES} ${${build}_SOURCES} PARENT_SCOPE)
endfunction()
