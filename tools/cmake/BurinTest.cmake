# Functions that declare tests. Every Catch2 case and every lit file is one ctest test, so that ctest's count is the
# number of tests.
find_package(Catch2 2.13 REQUIRED CONFIG)
include(Catch)
find_program(LIT NAMES lit llvm-lit PATHS "${LLVM_TOOLS_BINARY_DIR}" NO_DEFAULT_PATH REQUIRED)

# Tests use a kernel cache of their own, separate from that of the user who runs them.
set(burinTestCache "${CMAKE_BINARY_DIR}/test/cache")

# burin_test(name SOURCES … [LINK …]): declares the Catch2 cases of one executable. A case's name may
# not contain ";", at which Catch2's discovery would split it.
function(burin_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  if(NOT TARGET burin_test_main)
    add_library(burin_test_main STATIC "${CMAKE_SOURCE_DIR}/test/Main.cpp")
    target_include_directories(burin_test_main PRIVATE "${CMAKE_SOURCE_DIR}")
    target_link_libraries(burin_test_main PUBLIC Catch2::Catch2)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE burin_test_main ${ARG_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/test/bin")
  # "-w NoTests": a case that no longer exists fails, rather than passing as an empty run.
  catch_discover_tests(${name} TEST_PREFIX "${name}:" EXTRA_ARGS -w NoTests
    PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT "XDG_CACHE_HOME=${burinTestCache}")
endfunction()

# burin_lit_suite(): declares every .mlir and .test file below the current directory; `lit <build>/test` also runs them.
function(burin_lit_suite)
  configure_file(lit.site.cfg.py.in lit.site.cfg.py @ONLY)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" *.mlir *.test)
  foreach(file IN LISTS files)
    if(NOT file MATCHES "(^|/)inputs/")
      add_test(NAME "lit: ${file}" COMMAND "${LIT}" -v "${CMAKE_CURRENT_BINARY_DIR}/${file}")
      set_tests_properties("lit: ${file}" PROPERTIES SKIP_REGULAR_EXPRESSION "UNSUPPORTED: ")
    endif()
  endforeach()
endfunction()
