# Flags for every target of this project, but not for outside headers.
set(CGPHASE_SANITIZE "" CACHE STRING "sanitizers to build with, as for -fsanitize=")
option(CGPHASE_WERROR "warnings are errors" ON)
option(CGPHASE_PRECOMPILE "read the headers that most files include from one precompiled file" OFF)

# ccache reuses what this machine compiled before, also after a change of branches or in a new
# build folder. The variable and the option are what it needs for precompiled headers of g++.
option(CGPHASE_CCACHE "compile with ccache if it is installed" ON)
find_program(CGPHASE_CCACHE_PROGRAM ccache)
if(CGPHASE_CCACHE AND CGPHASE_CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CGPHASE_CCACHE_PROGRAM})
  if(CGPHASE_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-fpch-preprocess)
  endif()
endif()

add_library(cgphase_flags INTERFACE)
target_include_directories(cgphase_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(cgphase_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  # Designated initializers name the fields that they set; the rest have their defaults.
  -Wno-missing-field-initializers
  # Fused multiply-add makes results differ between processors; a replay must not differ.
  -ffp-contract=off
  # The result does not depend on the path of the tree.
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
if(CGPHASE_WERROR)
  target_compile_options(cgphase_flags INTERFACE -Werror)
endif()
# Files that are joined to compile faster, as in the presets, see each other's file-local names and
# includes, and all see the precompiled headers. scripts/package compiles each file alone.
target_compile_options(cgphase_flags INTERFACE
  $<$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>:-Wno-shadow -Wno-subobject-linkage>)
# The preset `asan` leaves alignment, null, object-size and vptr of `undefined` to the fuzz targets,
# which use all of it. These checks are a quarter of the compile time.
if(CGPHASE_SANITIZE)
  target_compile_options(cgphase_flags INTERFACE
    -fsanitize=${CGPHASE_SANITIZE} -fno-omit-frame-pointer
    # Undefined behaviour ends the test instead of only printing.
    -fno-sanitize-recover=all
    # With sanitizers, g++ cannot follow what is initialized.
    -Wno-maybe-uninitialized)
  target_link_options(cgphase_flags INTERFACE -fsanitize=${CGPHASE_SANITIZE})
  target_compile_definitions(cgphase_flags INTERFACE CGPHASE_SANITIZED=1)
endif()

function(cgphase_target name)
  target_link_libraries(${name} PRIVATE cgphase_flags)
  if(CGPHASE_PRECOMPILED_BY)  # a target, set once it exists
    target_precompile_headers(${name} REUSE_FROM ${CGPHASE_PRECOMPILED_BY})
  endif()
endfunction()

# cgphase_library(NAME SOURCE...): a static library with the project's flags.
function(cgphase_library name)
  add_library(${name} STATIC ${ARGN})
  cgphase_target(${name})
  # The daemon stays in memory, so the linker can then drop the parts that it does not use.
  target_compile_options(${name} PRIVATE -ffunction-sections -fdata-sections)
endfunction()

# cgphase_portable(NAME): the program needs no C++ library of the host, which may be older than the
# builder's. Without the parts that it does not use, it also needs an older C library and less
# memory.
function(cgphase_portable name)
  if(NOT CGPHASE_SANITIZE)
    target_link_options(${name} PRIVATE -static-libstdc++ -Wl,--gc-sections)
  endif()
endfunction()

# cgphase_program(NAME SOURCE...)
function(cgphase_program name)
  add_executable(${name} ${ARGN})
  cgphase_target(${name})
  if(CGPHASE_SANITIZE)
    # A start takes a quarter less; tests start the command a thousand times.
    target_link_options(${name} PRIVATE -no-pie)
  endif()
endfunction()
