# Settings of all layers: language level, warnings, sanitizers, LLVM/MLIR, the precompiled header.
include(GNUInstallDirs)

option(BURIN_BUILD_TESTS "Build the tests" ON)
option(BURIN_WERROR "Treat warnings as errors" OFF)
option(BURIN_ASSERTIONS "Keep assert() in optimised builds" OFF)
set(BURIN_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize= (empty: none)")

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

find_program(CCACHE ccache)
if(CCACHE)
  # Precompiled headers contain times and macro definitions, which ccache must ignore. -Werror changes no object;
  # ccache prints the warnings of the first compilation again, and .ci/run fails on them.
  set(launcher "${CMAKE_COMMAND}" -E env "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
      "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1 CCACHE_IGNOREOPTIONS=-Werror "${CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# The headers of GCC 12's standard library use functions that they deprecate.
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-deprecated-declarations)
if(BURIN_WERROR)
  add_compile_options(-Werror)
endif()
add_link_options(-Wl,--as-needed)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>" -fdiagnostics-color=always)
  add_link_options(-fuse-ld=lld)
endif()
if(BURIN_ASSERTIONS)
  foreach(flags CMAKE_CXX_FLAGS_RELEASE CMAKE_CXX_FLAGS_RELWITHDEBINFO CMAKE_C_FLAGS_RELWITHDEBINFO)
    string(REPLACE "-DNDEBUG" "" ${flags} "${${flags}}")
  endforeach()
  add_compile_options(-g1 -gsplit-dwarf)
endif()
if(BURIN_SANITIZE)
  add_compile_options("-fsanitize=${BURIN_SANITIZE}" -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options("-fsanitize=${BURIN_SANITIZE}")
  if(BURIN_SANITIZE MATCHES undefined)
    # These checks need the type information of MLIR classes, which is inside Debian's libMLIR.
    add_compile_options(-fno-sanitize=vptr,function)
  endif()
  add_library(burin_sanitizer_defaults OBJECT "${CMAKE_SOURCE_DIR}/tools/cmake/SanitizerDefaults.c")
  link_libraries("$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:burin_sanitizer_defaults>>")
endif()

find_package(Threads REQUIRED)
find_package(MLIR 22.1 REQUIRED CONFIG)
find_package(LLD REQUIRED CONFIG HINTS "${LLVM_DIR}/../lld")
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# The MLIR headers, for the compiler layers only; the runtime and the public headers do not include them.
add_library(burin_mlir INTERFACE)
target_include_directories(burin_mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_definitions(burin_mlir INTERFACE _GNU_SOURCE __STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS BURIN_IN_LIBRARY)
target_link_libraries(burin_mlir INTERFACE MLIR LLVM)

# One precompiled MLIR header for all compiler layers: a heavy source compiles in 4 s instead of 18.
file(WRITE "${CMAKE_BINARY_DIR}/empty.cpp.in" "")
configure_file("${CMAKE_BINARY_DIR}/empty.cpp.in" "${CMAKE_BINARY_DIR}/mlir_pch.cpp" COPYONLY)
add_library(burin_pch OBJECT "${CMAKE_BINARY_DIR}/mlir_pch.cpp")
target_link_libraries(burin_pch PUBLIC burin_mlir)
target_include_directories(burin_pch PRIVATE "${CMAKE_SOURCE_DIR}")
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(burin_pch PRIVATE -fpch-instantiate-templates)
endif()
target_precompile_headers(burin_pch PRIVATE "${CMAKE_SOURCE_DIR}/tools/cmake/MlirPrecompiled.h")

# A precompiled header contains absolute paths. With this file (CCACHE_PCH_EXTSUM), ccache hashes the given sum instead
# of the header, so that checkouts in different folders share objects.
file(SHA256 "${CMAKE_SOURCE_DIR}/tools/cmake/MlirPrecompiled.h" pchSum)
string(SHA256 pchSum "${pchSum} ${CMAKE_CXX_COMPILER_VERSION} ${LLVM_PACKAGE_VERSION} ${CMAKE_BUILD_TYPE} ${BURIN_SANITIZE} ${BURIN_ASSERTIONS}")
file(WRITE "${CMAKE_BINARY_DIR}/CMakeFiles/burin_pch.dir/cmake_pch.hxx.pch.sum" "${pchSum}")

# burin_layer(name SOURCES … LINK …): a static library of one compiler layer.
function(burin_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC "${CMAKE_SOURCE_DIR}" "${CMAKE_BINARY_DIR}"
    "${CMAKE_SOURCE_DIR}/runtime/include" "${CMAKE_SOURCE_DIR}/ir/include")
  target_link_libraries(${name} PUBLIC burin_mlir ${ARG_LINK})
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(${name} PRIVATE -fpch-instantiate-templates)
  endif()
  target_precompile_headers(${name} REUSE_FROM burin_pch)
endfunction()
