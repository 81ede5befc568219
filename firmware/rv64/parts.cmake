# SPDX-License-Identifier: BSD-2-Clause
#
# The parts of the firmware that do not depend on the kind of hart: included by
# this directory's CMakeLists.txt and by that of firmware/native_hart.

# essd_part(name dir...): one library of the directories' sources, built only
# when something is linked with it (or with the target "everything").
add_custom_target(everything)
function(essd_part name)
    set(all)
    foreach(dir ${ARGN})
        essd_sources(sources ${top}/${dir} RV64)
        list(TRANSFORM sources PREPEND ${top}/${dir}/)
        list(APPEND all ${sources})
    endforeach()
    add_library(${name} OBJECT EXCLUDE_FROM_ALL ${all})
    add_dependencies(everything ${name})
endfunction()

# Unused functions are left out at link time (--gc-sections), so that the ROM
# links with all of "base" as well.
essd_part(base lib firmware/hal firmware/drivers firmware/store)
essd_part(boot firmware/boot)
essd_part(signature firmware/signature)
# The RoCE transport is hardware, the NVMe-oF host is a test tool: neither is
# part of the firmware.
essd_part(app firmware/app firmware/bmc firmware/console firmware/discovery firmware/echo storage/ftl storage/ftl/base
    storage/ftl/ops storage/ftl/space storage/ftl/map storage/ftl/pages storage/ftl/rows storage/ftl/background
    storage/ftl/mount storage/ftl/io firmware/hosts firmware/loop
    firmware/medium firmware/memory firmware/mgmt firmware/net firmware/operations firmware/peripherals firmware/power
    firmware/report firmware/requests firmware/services firmware/settings firmware/stages
    firmware/tcp firmware/telemetry firmware/text firmware/update firmware/usage firmware/vendor storage/volume
    net/wire net/stack net/cm net/mpa net/mpa_cm
    nvmeof/wire nvmeof/bufs nvmeof/rdma nvmeof/tcp nvmeof/aoe nvmeof/auth nvmeof/tls nvmeof/target
    nvmeof/target/base nvmeof/target/request nvmeof/target/connect nvmeof/target/admin nvmeof/target/logs
    nvmeof/target/features nvmeof/target/namespaces nvmeof/target/io nvmeof/target/reservations nvmeof/target/events
    firmware/crypto)
essd_mbedtls(${top})
target_link_libraries(app PRIVATE mbedtls_headers)
target_compile_options(app PRIVATE ${ESSD_FLOORS})
essd_sodium(${top})
target_link_libraries(signature PRIVATE sodium_headers)
target_link_libraries(app PRIVATE sodium_headers)
