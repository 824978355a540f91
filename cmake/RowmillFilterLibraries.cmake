# Rowmill::filter_libraries: the libraries that undo filters of storage chunks.
pkg_check_modules(FILTER_LIBRARIES REQUIRED IMPORTED_TARGET libdeflate liblz4 libzstd liblzf blosc)
# libaec comes without a description for pkg-config
find_path(AEC_INCLUDE_DIR libaec.h REQUIRED)
find_library(AEC_LIBRARY aec REQUIRED)
add_library(rowmill_filter_libraries INTERFACE)
add_library(Rowmill::filter_libraries ALIAS rowmill_filter_libraries)
target_include_directories(rowmill_filter_libraries SYSTEM INTERFACE ${AEC_INCLUDE_DIR})
target_link_libraries(rowmill_filter_libraries INTERFACE PkgConfig::FILTER_LIBRARIES ${AEC_LIBRARY})
