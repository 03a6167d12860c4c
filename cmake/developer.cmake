# SPDX-License-Identifier: BSD-2-Clause
# Targets for people who change the code: format, format-check, tidy, coverage. Each exists only
# where its program does; clang-format's output differs between versions, so that one is pinned.

set(TAMIS_CLANG_FORMAT_VERSION 14)

file(GLOB_RECURSE c_files
    base/*.[ch] filter/*.[ch] wal/*.[ch] sstable/*.[ch] lsm/*.[ch] tools/*.[ch] tests/*.[ch])

find_program(TAMIS_CLANG_FORMAT NAMES clang-format-${TAMIS_CLANG_FORMAT_VERSION} clang-format)
mark_as_advanced(TAMIS_CLANG_FORMAT)
if(TAMIS_CLANG_FORMAT AND c_files)
    execute_process(COMMAND ${TAMIS_CLANG_FORMAT} --version OUTPUT_VARIABLE found)
    if(found MATCHES "version ${TAMIS_CLANG_FORMAT_VERSION}\\.")
        add_custom_target(format
            COMMAND ${TAMIS_CLANG_FORMAT} -i ${c_files} VERBATIM)
        add_custom_target(format-check
            COMMAND ${TAMIS_CLANG_FORMAT} --dry-run -Werror ${c_files} VERBATIM)
    endif()
endif()

find_program(TAMIS_CLANG_TIDY clang-tidy)
mark_as_advanced(TAMIS_CLANG_TIDY)
if(TAMIS_CLANG_TIDY)
    add_custom_target(tidy
        COMMAND ${TAMIS_CLANG_TIDY} --quiet -p ${PROJECT_BINARY_DIR} ${tamis_sources}
        COMMAND_EXPAND_LISTS VERBATIM)
endif()

find_program(TAMIS_GCOVR gcovr)
mark_as_advanced(TAMIS_GCOVR)
if(TAMIS_COVERAGE AND TAMIS_GCOVR)
    # clang's coverage files are read by its own gcov.
    if(CMAKE_C_COMPILER_ID MATCHES "Clang")
        set(gcov "llvm-cov gcov")
    else()
        set(gcov gcov)
    endif()
    add_custom_target(coverage
        COMMAND ${TAMIS_GCOVR} --root ${PROJECT_SOURCE_DIR} --object-directory ${PROJECT_BINARY_DIR}
            --gcov-executable ${gcov} --exclude ${PROJECT_SOURCE_DIR}/tests/
            --print-summary
        VERBATIM)
endif()
