# What `make install` puts where.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/calyx)

install(FILES include/calyx/calyx.h include/calyx/calyx.hpp include/calyx/inline.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/calyx)
install(TARGETS calyx calyx_static EXPORT calyx)

file(RELATIVE_PATH to_prefix /${pkgconfig_dir} /)
string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
configure_file(cmake/calyx.pc.in calyx.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/calyx.pc DESTINATION ${pkgconfig_dir})

if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(compatible SameMinorVersion)
else()
    set(compatible SameMajorVersion)
endif()
write_basic_package_version_file(calyxConfigVersion.cmake
    COMPATIBILITY ${compatible})
install(FILES cmake/calyxConfig.cmake
              ${PROJECT_BINARY_DIR}/calyxConfigVersion.cmake
        DESTINATION ${package_dir})
install(EXPORT calyx NAMESPACE calyx:: FILE calyxTargets.cmake
        DESTINATION ${package_dir})

file(GLOB manual_pages CONFIGURE_DEPENDS doc/*.3)
install(FILES ${manual_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
