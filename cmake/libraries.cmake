# SPDX-License-Identifier: BSD-2-Clause
#
# Libraries of others that the firmware is linked with, Mbed TLS and libsodium,
# and lwIP, with which tests are linked.
# tools/essd/build/libraries.py fetches the releases that are known to work and
# says where they are.  In an installed package, that module is beside the
# sources.

# essd_foreign_folder(top name dir): set the variable `dir` to the folder with
# the sources of the library `name`.  `top` is the folder of this project.
function(essd_foreign_folder top name dir)
    set(module essd/build/libraries.py)
    set(tools ${top}/tools)
    if(NOT EXISTS ${tools}/${module})
        get_filename_component(tools ${top}/../.. REALPATH)
    endif()
    find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
    execute_process(
        COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${tools} PYTHONDONTWRITEBYTECODE=1
            ${Python3_EXECUTABLE} -m essd.build.libraries ${name}
        OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE
        ERROR_VARIABLE said ECHO_ERROR_VARIABLE ERROR_STRIP_TRAILING_WHITESPACE
        RESULT_VARIABLE status)
    if(status)
        string(REGEX MATCH "[^\n]*$" why "${said}")
        message(FATAL_ERROR "The sources of ${name} cannot be fetched: ${why}")
    endif()
    # If the folder is deleted, the next build configures again, which fetches it.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
        ${tools}/${module} ${found})
    set(${dir} ${found} PARENT_SCOPE)
endfunction()

# essd_foreign_objects(target headers FILE...): add the object library `target`
# of these files, which see the interface library `headers`.  Warnings in the
# code of others are theirs to judge.
function(essd_foreign_objects target headers)
    add_library(${target} OBJECT EXCLUDE_FROM_ALL ${ARGN})
    target_link_libraries(${target} PUBLIC ${headers})
    target_compile_options(${target} PRIVATE -w -O2)
endfunction()

# essd_mbedtls(top): add the object library "mbedtls" of the few files that the
# drive needs, and the interface library "mbedtls_headers".
function(essd_mbedtls top)
    essd_foreign_folder(${top} mbedtls dir)
    add_library(mbedtls_headers INTERFACE)
    target_include_directories(mbedtls_headers SYSTEM INTERFACE
        ${dir}/include ${dir}/library)
    target_compile_definitions(mbedtls_headers INTERFACE
        MBEDTLS_CONFIG_FILE="${top}/firmware/crypto/mbedtls_config.h")
    set(sources aes.c bignum.c bignum_core.c block_cipher.c constant_time.c gcm.c
        platform_util.c sha256.c sha512.c)
    list(TRANSFORM sources PREPEND ${dir}/library/)
    essd_foreign_objects(mbedtls mbedtls_headers ${sources})
endfunction()

# essd_sodium(top): add the object library "sodium" of the few files that check
# signatures of firmware images and have X25519, and the interface library
# "sodium_headers".
# firmware/signature/sodium_parts.c has what these files need of others.
function(essd_sodium top)
    essd_foreign_folder(${top} libsodium dir)
    set(source ${dir}/src/libsodium)
    add_library(sodium_headers INTERFACE)
    target_include_directories(sodium_headers SYSTEM INTERFACE
        ${source}/include/sodium ${source}/include/sodium/private
        ${source}/crypto_sign/ed25519/ref10)
    target_compile_definitions(sodium_headers INTERFACE SODIUM_STATIC
        HAVE_TI_MODE=1)
    essd_foreign_objects(sodium sodium_headers
        ${source}/crypto_core/ed25519/ref10/ed25519_ref10.c
        ${source}/crypto_hash/sha512/cp/hash_sha512_cp.c
        ${source}/crypto_scalarmult/curve25519/ref10/x25519_ref10.c
        ${source}/crypto_scalarmult/curve25519/scalarmult_curve25519.c
        ${source}/crypto_sign/ed25519/ref10/open.c
        ${source}/crypto_verify/sodium/verify.c)
endfunction()

# essd_lwip(top): add the object library "lwip" with TCP over IPv4, and the
# interface library "lwip_headers".
function(essd_lwip top)
    essd_foreign_folder(${top} lwip dir)
    add_library(lwip_headers INTERFACE)
    target_include_directories(lwip_headers SYSTEM INTERFACE
        ${dir}/src/include ${top}/tests/tcp/stacks/lwip)
    set(sources def.c inet_chksum.c init.c ip.c mem.c memp.c netif.c pbuf.c
        tcp.c tcp_in.c tcp_out.c timeouts.c ipv4/icmp.c ipv4/ip4.c
        ipv4/ip4_addr.c ipv4/ip4_frag.c)
    list(TRANSFORM sources PREPEND ${dir}/src/core/)
    essd_foreign_objects(lwip lwip_headers ${sources})
endfunction()
