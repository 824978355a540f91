# rowmill_test(NAME SOURCES files LINK targets [RANKS 1 2 3 | SHARDS n] [LABELS labels] [TIMEOUT s])
# Without RANKS the program runs alone under ctest. With RANKS it links the MPI test main (tests/mpi_main.cpp) and is
# run once for each number of ranks under mpirun. With SHARDS its tests are dealt among so many runs, for programs that
# mostly wait. The name of the folder is a label besides.
set(ROWMILL_MPI_ENV
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader OMPI_MCA_mpi_yield_when_idle=1
  OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 HWLOC_HIDE_ERRORS=2)
# What all test programs share, compiled once: the headers of GoogleTest, and the mains.
function(rowmill_test_parts)
  # a program, so that it is compiled with the options of programs
  add_executable(rowmill_test_headers ${CMAKE_SOURCE_DIR}/tests/precompiled.cpp)
  target_precompile_headers(rowmill_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  rowmill_test_options(rowmill_test_headers rowmill_core)
  add_library(rowmill_mpi_main OBJECT ${CMAKE_SOURCE_DIR}/tests/mpi_main.cpp)
  rowmill_test_options(rowmill_mpi_main MPI::MPI_C)
  add_library(rowmill_test_main OBJECT ${CMAKE_SOURCE_DIR}/tests/main.cpp)
  rowmill_test_options(rowmill_test_main)
endfunction()

# Tests need not be fast, but soon built.
function(rowmill_test_options name)
  target_link_libraries(${name} PRIVATE rowmill_options ${ARGN} GTest::gtest GTest::gmock)
  target_compile_options(${name} PRIVATE -O0)
  target_compile_definitions(${name} PRIVATE ROWMILL_BIN_DIR="${CMAKE_BINARY_DIR}/bin" ROWMILL_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
endfunction()

function(rowmill_test name)
  cmake_parse_arguments(A "" "TIMEOUT;SHARDS" "SOURCES;LINK;RANKS;LABELS" ${ARGN})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  get_filename_component(_room ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  list(APPEND A_LABELS ${_room})
  list(REMOVE_DUPLICATES A_LABELS)
  add_executable(${name} ${A_SOURCES})
  rowmill_test_options(${name} ${A_LINK} rowmill_core)
  target_precompile_headers(${name} REUSE_FROM rowmill_test_headers)
  if(ROWMILL_SANITIZE)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:rowmill_sanitizer_support$<$<BOOL:${A_RANKS}>:_mpi>>)
    target_link_options(${name} PRIVATE -rdynamic)
  endif()
  if(A_RANKS)
    if(ROWMILL_SANITIZE)
      # what more ranks add is shown as released; here each costs a second of waiting in turns
      list(FILTER A_RANKS INCLUDE REGEX "^[123]$")
    endif()
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:rowmill_mpi_main>)
    target_link_libraries(${name} PRIVATE MPI::MPI_C)
    foreach(n ${A_RANKS})
      add_test(NAME ${name}.${n}ranks COMMAND ${MPIEXEC_EXECUTABLE} -q --oversubscribe -n ${n} $<TARGET_FILE:${name}>)
      set_tests_properties(${name}.${n}ranks PROPERTIES ENVIRONMENT "${ROWMILL_MPI_ENV}" TIMEOUT ${A_TIMEOUT} LABELS "mpi;${A_LABELS}"
        PROCESSORS 2 SKIP_RETURN_CODE 77)
    endforeach()
  elseif(A_SHARDS)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:rowmill_test_main>)
    math(EXPR _last "${A_SHARDS} - 1")
    foreach(i RANGE ${_last})
      add_test(NAME ${name}.${i} COMMAND ${name})
      set_tests_properties(${name}.${i} PROPERTIES ENVIRONMENT "${ROWMILL_MPI_ENV};GTEST_TOTAL_SHARDS=${A_SHARDS};GTEST_SHARD_INDEX=${i}"
        TIMEOUT ${A_TIMEOUT} LABELS "${A_LABELS}" SKIP_RETURN_CODE 77)
    endforeach()
  else()
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:rowmill_test_main>)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${ROWMILL_MPI_ENV}" TIMEOUT ${A_TIMEOUT} LABELS "${A_LABELS}" SKIP_RETURN_CODE 77)
  endif()
endfunction()
