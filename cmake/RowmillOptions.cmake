# One interface target that every target of ours links: warnings, sanitizers, include folders.
add_library(rowmill_options INTERFACE)
target_include_directories(rowmill_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)
set(_warnings -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
  # the bits of a result must not depend on which products the compiler fuses
  -ffp-contract=off)
target_compile_options(rowmill_options INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:${_warnings};-Wpedantic>"
  # GCC 12 warns of its own std::string (GCC bugs 105651 and 105562)
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-maybe-uninitialized>>)
if(ROWMILL_HAVE_CUDA)
  list(JOIN _warnings , _warnings)
  target_compile_options(rowmill_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:$<$<BOOL:${ROWMILL_WERROR}>:-Werror all-warnings> --fmad=false -Xcompiler=${_warnings}>")
endif()
target_compile_definitions(rowmill_options INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
if(ROWMILL_SANITIZE)
  target_compile_options(rowmill_options INTERFACE -fsanitize=${ROWMILL_SANITIZE} -fno-omit-frame-pointer
    # whatever program it is in, also one that nobody listens to: what is found ends it
    -fno-sanitize-recover=all)
  target_link_options(rowmill_options INTERFACE -fsanitize=${ROWMILL_SANITIZE})
  target_compile_definitions(rowmill_options INTERFACE ROWMILL_SANITIZED)
endif()
if(ROWMILL_FUZZ)
  # every program is watched; only the fuzz targets get the fuzzer's main
  target_compile_options(rowmill_options INTERFACE -fsanitize=fuzzer-no-link -fno-sanitize-recover=all)
endif()

# Builds with a sanitizer are made often and from nothing: the headers of libraries that many files include are compiled
# once there. Elsewhere each file shows that it includes what it uses.
set(ROWMILL_COMMON_HEADERS <algorithm> <chrono> <functional> <future> <map> <nlohmann/json.hpp> <string> <thread> <vector>)
function(rowmill_common_headers name)
  if(ROWMILL_SANITIZE)
    target_precompile_headers(${name} ${ARGN})
  endif()
endfunction()

# Options of the sanitizers and suppressions, for programs.
if(ROWMILL_SANITIZE)
  # the second for programs that may start MPI
  foreach(_support rowmill_sanitizer_support rowmill_sanitizer_support_mpi)
    add_library(${_support} OBJECT ${CMAKE_SOURCE_DIR}/tests/sanitizer_support.cpp)
    target_link_libraries(${_support} PRIVATE rowmill_options)
  endforeach()
  target_compile_definitions(rowmill_sanitizer_support_mpi PRIVATE ROWMILL_MAY_START_MPI)
endif()

# rowmill_room(NAME [BUSY] SOURCES... LINK targets...): a static library of one room. BUSY: where the time of runs goes,
# so that it is optimised in builds with a sanitizer too.
function(rowmill_room name)
  cmake_parse_arguments(A "BUSY" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  target_link_libraries(${name} PUBLIC rowmill_options ${A_LINK} PRIVATE ${A_PRIVATE_LINK})
  if(A_BUSY)
    if(ROWMILL_SANITIZE)
      target_compile_options(${name} PRIVATE -O1)
    endif()
    return()
  endif()
  if(ROWMILL_SANITIZE AND NOT TARGET rowmill_room_headers)
    file(WRITE ${CMAKE_BINARY_DIR}/generated/room_headers.cpp "// for the headers that are compiled with it\n")
    add_library(rowmill_room_headers STATIC ${CMAKE_BINARY_DIR}/generated/room_headers.cpp)
    target_link_libraries(rowmill_room_headers PRIVATE rowmill_options nlohmann_json::nlohmann_json)
    rowmill_common_headers(rowmill_room_headers PRIVATE ${ROWMILL_COMMON_HEADERS})
  endif()
  rowmill_common_headers(${name} REUSE_FROM rowmill_room_headers)
endfunction()
