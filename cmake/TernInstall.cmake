# What `cmake --install` lays down: both libraries, the plug-in and the packs of kernels beside them, the program, the public headers, find_package(tern).
set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "Folder of the libraries below the prefix")  # the program looks for the plug-in in ../lib
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tern")

install(TARGETS tern_static tern_shared EXPORT ternTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET tern-llvm)
  install(TARGETS tern-llvm LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
if(TERN_PACK_FILES)  # optional: a tree that was built in part installs what it has, and `tern info --build` tells
  install(FILES ${TERN_PACK_FILES} DESTINATION "${CMAKE_INSTALL_LIBDIR}/tern-packs" OPTIONAL)
endif()
if(TARGET tern)
  install(TARGETS tern RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/tern" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

install(EXPORT ternTargets NAMESPACE tern:: DESTINATION "${package_dir}")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/ternConfig.cmake.in" "${CMAKE_CURRENT_BINARY_DIR}/ternConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/ternConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/ternConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/ternConfigVersion.cmake" DESTINATION "${package_dir}")
