# SPDX-License-Identifier: BSD-2-Clause
# What `cmake --install` puts where: headers, libraries, command, manual, pkg-config, CMake package.

include(CMakePackageConfigHelpers)

install(FILES ${tamis_public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS tamis tamis_static
    EXPORT tamisTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET tamis_command)
    install(TARGETS tamis_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

file(GLOB tamis_man_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.1)
if(tamis_man_pages)
    install(FILES ${tamis_man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

# pkg-config. Paths start at the file's own place, so an installed tree can be moved.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH tamis_pc_prefix
    ${CMAKE_INSTALL_PREFIX}/${pkgconfig_dir} ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" tamis_pc_prefix "${tamis_pc_prefix}")
configure_file(cmake/tamis.pc.in ${PROJECT_BINARY_DIR}/tamis.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tamis.pc DESTINATION ${pkgconfig_dir})

# CMake package: find_package(tamis) gives tamis::tamis and tamis::tamis_static.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tamis)
configure_package_config_file(cmake/tamisConfig.cmake.in ${PROJECT_BINARY_DIR}/tamisConfig.cmake
    INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tamisConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES
    ${PROJECT_BINARY_DIR}/tamisConfig.cmake
    ${PROJECT_BINARY_DIR}/tamisConfigVersion.cmake
    cmake/tamis-deps.cmake
    DESTINATION ${package_dir})
install(EXPORT tamisTargets NAMESPACE tamis:: DESTINATION ${package_dir})
