# SPDX-License-Identifier: BSD-2-Clause
#
# Mbed TLS, a library of others: tools/essd/mbedtls.py fetches the release that
# is known to work and says where it is.  In an installed package, that module
# is beside the sources.

# essd_mbedtls(top): add the object library "mbedtls" of the few files that the
# drive needs, and the interface library "mbedtls_headers".
function(essd_mbedtls top)
    set(tools ${top}/tools)
    if(NOT EXISTS ${tools}/essd/mbedtls.py)
        get_filename_component(tools ${top}/../.. REALPATH)
    endif()
    find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
    execute_process(
        COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${tools} PYTHONDONTWRITEBYTECODE=1
            ${Python3_EXECUTABLE} -m essd.mbedtls
        OUTPUT_VARIABLE dir OUTPUT_STRIP_TRAILING_WHITESPACE
        RESULT_VARIABLE status)
    if(status)
        message(FATAL_ERROR "Mbed TLS cannot be fetched; see above.")
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
        ${tools}/essd/mbedtls.py)
    add_library(mbedtls_headers INTERFACE)
    target_include_directories(mbedtls_headers SYSTEM INTERFACE
        ${dir}/include ${dir}/library)
    target_compile_definitions(mbedtls_headers INTERFACE
        MBEDTLS_CONFIG_FILE="${top}/firmware/crypto/mbedtls_config.h")
    set(sources bignum.c bignum_core.c constant_time.c platform_util.c sha256.c
        sha512.c)
    list(TRANSFORM sources PREPEND ${dir}/library/)
    add_library(mbedtls OBJECT EXCLUDE_FROM_ALL ${sources})
    target_link_libraries(mbedtls PUBLIC mbedtls_headers)
    # Warnings in the code of others are theirs to judge.
    target_compile_options(mbedtls PRIVATE -w -O2)
endfunction()
