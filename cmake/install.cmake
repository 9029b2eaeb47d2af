include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY GLE_ROOMS)
install(TARGETS ${rooms} EXPORT gleTargets)
install(EXPORT gleTargets NAMESPACE gle:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gle)
foreach(room ${rooms})
  string(REPLACE gle_ "" folder ${room})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gle FILES_MATCHING PATTERN "*.h")
endforeach()

configure_package_config_file(cmake/gleConfig.cmake.in ${PROJECT_BINARY_DIR}/gleConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gle)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gleConfig.cmake ${PROJECT_BINARY_DIR}/gleConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gle)
