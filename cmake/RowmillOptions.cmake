# One interface target that every target of ours links: warnings, sanitizers, include folders.
add_library(rowmill_options INTERFACE)
target_include_directories(rowmill_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)
set(_warnings -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
  # the bits of a result must not depend on which products the compiler fuses
  -ffp-contract=off)
target_compile_options(rowmill_options INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:${_warnings};-Wpedantic>"
  # GCC 12 warns of its own std::string (GCC bug 105651)
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>>)
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
endif()
if(ROWMILL_FUZZ)
  # every program is watched; only the fuzz targets get the fuzzer's main
  target_compile_options(rowmill_options INTERFACE -fsanitize=fuzzer-no-link -fno-sanitize-recover=all)
endif()

# rowmill_room(NAME SOURCES... LINK targets...): a static library of one room.
function(rowmill_room name)
  cmake_parse_arguments(A "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  target_link_libraries(${name} PUBLIC rowmill_options ${A_LINK} PRIVATE ${A_PRIVATE_LINK})
endfunction()
