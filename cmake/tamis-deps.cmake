# SPDX-License-Identifier: BSD-2-Clause
# The libraries tamis is linked with: tamis::lz4, tamis::xxhash, Threads::Threads. Included by the
# build, and, installed beside tamisConfig.cmake, by every project that calls find_package(tamis).

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

foreach(tamis_dep lz4 xxhash)
    if(TARGET tamis::${tamis_dep})
        continue()
    endif()
    find_path(TAMIS_${tamis_dep}_INCLUDE_DIR ${tamis_dep}.h)
    find_library(TAMIS_${tamis_dep}_LIBRARY ${tamis_dep})
    mark_as_advanced(TAMIS_${tamis_dep}_INCLUDE_DIR TAMIS_${tamis_dep}_LIBRARY)
    if(NOT TAMIS_${tamis_dep}_INCLUDE_DIR OR NOT TAMIS_${tamis_dep}_LIBRARY)
        message(FATAL_ERROR "tamis needs lib${tamis_dep} and ${tamis_dep}.h "
            "(Debian: lib${tamis_dep}-dev); tools/install-deps.sh installs all that is missing.")
    endif()
    add_library(tamis::${tamis_dep} UNKNOWN IMPORTED)
    set_target_properties(tamis::${tamis_dep} PROPERTIES
        IMPORTED_LOCATION "${TAMIS_${tamis_dep}_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${TAMIS_${tamis_dep}_INCLUDE_DIR}")
endforeach()
unset(tamis_dep)
