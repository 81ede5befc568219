# SPDX-License-Identifier: BSD-2-Clause
#
# libsodium, a library of others: tools/essd/sodium.py fetches the release that
# is known to work and says where it is.  In an installed package, that module
# is beside the sources.

# essd_sodium(top): add the object library "sodium" of the few files that check
# signatures of firmware images, and the interface library "sodium_headers".
# firmware/signature/sodium_parts.c has what these files need of others.
function(essd_sodium top)
    set(tools ${top}/tools)
    if(NOT EXISTS ${tools}/essd/sodium.py)
        get_filename_component(tools ${top}/../.. REALPATH)
    endif()
    find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
    execute_process(
        COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${tools} PYTHONDONTWRITEBYTECODE=1
            ${Python3_EXECUTABLE} -m essd.sodium
        OUTPUT_VARIABLE dir OUTPUT_STRIP_TRAILING_WHITESPACE
        RESULT_VARIABLE status)
    if(status)
        message(FATAL_ERROR "libsodium cannot be fetched; see above.")
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
        ${tools}/essd/sodium.py)
    set(source ${dir}/src/libsodium)
    add_library(sodium_headers INTERFACE)
    target_include_directories(sodium_headers SYSTEM INTERFACE
        ${source}/include/sodium ${source}/include/sodium/private
        ${source}/crypto_sign/ed25519/ref10)
    target_compile_definitions(sodium_headers INTERFACE SODIUM_STATIC
        HAVE_TI_MODE=1)
    add_library(sodium OBJECT EXCLUDE_FROM_ALL
        ${source}/crypto_core/ed25519/ref10/ed25519_ref10.c
        ${source}/crypto_hash/sha512/cp/hash_sha512_cp.c
        ${source}/crypto_sign/ed25519/ref10/open.c
        ${source}/crypto_verify/sodium/verify.c)
    target_link_libraries(sodium PUBLIC sodium_headers)
    # Warnings in the code of others are theirs to judge.
    target_compile_options(sodium PRIVATE -w -O2)
endfunction()
