# Installs files by `cmake --install` and `cpack`. There are two components: `runtime` runs artifacts and needs no LLVM;
# `compiler` is the rest and needs the runtime. Each has its own export file, so that the runtime can be installed
# alone. A third, `images`, is the plug-in that reads image files, if its libraries were there.
include(CMakePackageConfigHelpers)
set(packageDir "${CMAKE_INSTALL_LIBDIR}/cmake/burin")

# burin_component(name LIBRARY target PROGRAMS target… INCLUDES folder…)
function(burin_component name)
  cmake_parse_arguments(ARG "" "LIBRARY" "PROGRAMS;INCLUDES" ${ARGN})
  install(TARGETS ${ARG_LIBRARY} EXPORT burin-${name} COMPONENT ${name} INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT burin-${name} COMPONENT ${name} NAMESPACE burin:: FILE ${name}.cmake DESTINATION "${packageDir}")
  install(TARGETS ${ARG_PROGRAMS} COMPONENT ${name})
  foreach(folder IN LISTS ARG_INCLUDES)
    install(DIRECTORY "${folder}/burin" COMPONENT ${name} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
      FILES_MATCHING PATTERN "*.h")
  endforeach()
endfunction()

# burin_pkgconfig(component file LIBS … [REQUIRES …]): installs a relocatable .pc file.
function(burin_pkgconfig component file)
  cmake_parse_arguments(ARG "" "DESCRIPTION;LIBS;REQUIRES" "" ${ARGN})
  file(RELATIVE_PATH prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  configure_file("${CMAKE_SOURCE_DIR}/tools/cmake/burin.pc.in" "${CMAKE_BINARY_DIR}/${file}.pc" @ONLY)
  install(FILES "${CMAKE_BINARY_DIR}/${file}.pc" COMPONENT ${component} DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()

burin_component(runtime LIBRARY burin_runtime PROGRAMS burin-run INCLUDES "${CMAKE_SOURCE_DIR}/runtime/include")
burin_pkgconfig(runtime burin-runtime DESCRIPTION "Runs compiled burin artifacts" LIBS -lburin_runtime)
burin_component(compiler LIBRARY burin PROGRAMS burin-cli burin-opt INCLUDES
  "${CMAKE_SOURCE_DIR}/ir/include" "${CMAKE_SOURCE_DIR}/frontend/include" "${CMAKE_BINARY_DIR}/include")
if(TARGET burin_images)
  install(TARGETS burin_images COMPONENT images LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/burin")
endif()
burin_pkgconfig(compiler burin DESCRIPTION "Graph compiler with imperative tracing" LIBS -lburin REQUIRES burin-runtime)

configure_package_config_file(tools/cmake/burinConfig.cmake.in burinConfig.cmake INSTALL_DESTINATION "${packageDir}"
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(burinConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/burinConfig.cmake" "${CMAKE_BINARY_DIR}/burinConfigVersion.cmake"
  COMPONENT runtime DESTINATION "${packageDir}")
install(FILES LICENSE COMPONENT runtime DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES "${CMAKE_BINARY_DIR}/docs/reference/ops.md" COMPONENT compiler DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# libMLIR is not on the system's library path: the compiler finds Debian's LLVM through its run path.
set_target_properties(burin_runtime PROPERTIES EXPORT_NAME runtime
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
# The C++ ABI is not stable before 1.0: any minor version may break it.
set_target_properties(burin PROPERTIES VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set_target_properties(burin burin-cli burin-opt PROPERTIES
  INSTALL_RPATH "${CMAKE_INSTALL_RPATH};${LLVM_LIBRARY_DIR}")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The burin developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Graph compiler with imperative tracing")
set(CPACK_RESOURCE_FILE_LICENSE "${CMAKE_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime compiler)
if(TARGET burin_images)
  list(APPEND CPACK_COMPONENTS_ALL images)
endif()
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Runs compiled burin artifacts; needs no LLVM.")
set(CPACK_COMPONENT_COMPILER_DESCRIPTION "The burin C++ API, compiler and command line.")
set(CPACK_COMPONENT_COMPILER_DEPENDS runtime)
set(CPACK_COMPONENT_IMAGES_DESCRIPTION "Reads PNG and JPEG files as training data.")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME burin-runtime)
set(CPACK_DEBIAN_COMPILER_PACKAGE_NAME burin)
set(CPACK_DEBIAN_IMAGES_PACKAGE_NAME burin-images)
# The packages' dependencies on Debian's libraries are derived from the binaries.
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
if(DPKG_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}" "${LLVM_LIBRARY_DIR}")
endif()
include(CPack)
