# How tests are declared. Every Catch2 case and every lit file is one ctest test, so ctest is the only counter.
find_package(Catch2 2.13 REQUIRED CONFIG)
include(Catch)
find_program(LIT NAMES lit llvm-lit PATHS "${LLVM_TOOLS_BINARY_DIR}" NO_DEFAULT_PATH REQUIRED)

# Tests get a kernel cache of their own: they neither read nor fill the one of the person who runs them.
set(burinTestCache "${CMAKE_BINARY_DIR}/test/cache")

# burin_test(name SOURCES … [LINK …] [TIMEOUT seconds]): the Catch2 cases of one executable. A case's name may not
# contain ";", where Catch2's discovery would cut it in two.
function(burin_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT TARGET burin_test_main)
    add_library(burin_test_main STATIC "${CMAKE_SOURCE_DIR}/test/Main.cpp")
    target_include_directories(burin_test_main PRIVATE "${CMAKE_SOURCE_DIR}")
    target_link_libraries(burin_test_main PUBLIC Catch2::Catch2)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE burin_test_main ${ARG_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/test/bin")
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  # "-w NoTests": a case that is no longer there fails instead of passing as an empty run.
  catch_discover_tests(${name} TEST_PREFIX "${name}:" EXTRA_ARGS -w NoTests
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77 ENVIRONMENT "XDG_CACHE_HOME=${burinTestCache}")
endfunction()

# burin_lit_suite(): every .mlir and .test file below the current directory; `lit <build>/test` runs them too.
function(burin_lit_suite)
  configure_file(lit.site.cfg.py.in lit.site.cfg.py @ONLY)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" *.mlir *.test)
  foreach(file IN LISTS files)
    if(NOT file MATCHES "(^|/)inputs/")
      add_test(NAME "lit: ${file}" COMMAND "${LIT}" -v "${CMAKE_CURRENT_BINARY_DIR}/${file}")
      set_tests_properties("lit: ${file}" PROPERTIES TIMEOUT 120 SKIP_REGULAR_EXPRESSION "UNSUPPORTED: ")
    endif()
  endforeach()
endfunction()
