# Every outside library comes from Debian 12 packages and has one owner folder
# (docs/internals/architecture.md).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd)

# Linked from archives, because each distribution has other versions of the shared library. So one
# package runs on all of them (tests/package/portable_test).
# cgphase_archive(NAME MODULE FILE LIBRARY...): FILE of the pkg-config MODULE, which needs LIBRARY.
function(cgphase_archive name module file)
  pkg_check_modules(${name} REQUIRED ${module})
  find_library(${name}_ARCHIVE ${file} REQUIRED)
  add_library(${name} INTERFACE)
  target_include_directories(${name} SYSTEM INTERFACE ${${name}_INCLUDE_DIRS})
  target_link_libraries(${name} INTERFACE ${${name}_ARCHIVE} ${ARGN})
endfunction()
cgphase_archive(cgphase_sqlite sqlite3>=3.40 libsqlite3.a m)
cgphase_archive(cgphase_libcgroup libcgroup>=2.0 libcgroup.a Threads::Threads)
cgphase_archive(cgphase_libelf libelf libelf.a ZLIB::ZLIB)
cgphase_archive(cgphase_libbpf libbpf>=1.1 libbpf.a cgphase_libelf)

# Header-only libraries without a CMake target, or whose target would link a shared library. Their
# headers are on the default path.
function(cgphase_header_library name header)
  find_path(${name}_HEADER ${header} REQUIRED)
  add_library(${name} INTERFACE)
  target_compile_definitions(${name} INTERFACE ${ARGN})
endfunction()
cgphase_header_library(cgphase_toml toml++/toml.h TOML_HEADER_ONLY=1)
find_path(cgphase_fmt_HEADER fmt/format.h REQUIRED)
cgphase_library(cgphase_fmt cmake/fmt.cpp)
# These headers cost three seconds in each file that includes them itself.
set(CGPHASE_PRECOMPILED_HEADERS
  <algorithm> <array> <chrono> <cmath> <cstdint> <filesystem> <fstream> <functional> <map>
  <memory> <optional> <set> <span> <string> <string_view> <thread> <vector>
  <fmt/format.h> <nlohmann/json.hpp>)
if(CGPHASE_PRECOMPILE)
  target_precompile_headers(cgphase_fmt PRIVATE ${CGPHASE_PRECOMPILED_HEADERS})
  set(CGPHASE_PRECOMPILED_BY cgphase_fmt)
endif()
if(CGPHASE_TESTS)
  cgphase_header_library(cgphase_doctest doctest/doctest.h)
endif()
