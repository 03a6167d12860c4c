# SPDX-License-Identifier: BSD-2-Clause
# Language level, warnings, hardening, sanitizers: for every target of this project, and for no
# target of a project that includes this one.

include(CheckCCompilerFlag)
include(CheckIPOSupported)
include(CheckPIESupported)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# No -march: code for a newer processor is chosen at run time, by function attributes.
add_compile_definitions(_POSIX_C_SOURCE=200809L)
add_compile_options(
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow
    -Wstrict-prototypes -Wmissing-prototypes -Wvla)
if(TAMIS_WERROR)
    add_compile_options(-Werror)
endif()
if(TAMIS_CHECKS)
    add_compile_definitions(TM_CHECKS=1)
endif()

# Executables are position independent; CMake adds -pie only after this check.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
check_pie_supported(LANGUAGES C)

# Hardening. A distribution may define _FORTIFY_SOURCE already, hence the -U. It needs optimised
# code, and sanitizers replace it.
add_compile_options(-fstack-protector-strong)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    add_link_options(-Wl,-z,relro,-z,now)
endif()
if(NOT TAMIS_SANITIZE AND NOT TAMIS_FUZZ)
    set(optimised $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
    add_compile_options($<${optimised}:-U_FORTIFY_SOURCE> $<${optimised}:-D_FORTIFY_SOURCE=2>)
endif()

if(TAMIS_SANITIZE)
    set(sanitizer_flags -fsanitize=${TAMIS_SANITIZE} -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
    add_compile_options(${sanitizer_flags} -O1)
    add_link_options(${sanitizer_flags})
endif()
if(TAMIS_FUZZ)
    # Coverage feedback for all code; only the fuzz programs themselves get libFuzzer's main().
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(TAMIS_COVERAGE)
    add_compile_options(--coverage -fprofile-update=atomic)
    add_link_options(--coverage)
endif()

if(TAMIS_LTO)
    check_ipo_supported(LANGUAGES C)
    set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
        # Machine code too, so that the installed archive does not depend on this very compiler.
        add_compile_options(-ffat-lto-objects)
    endif()
endif()
