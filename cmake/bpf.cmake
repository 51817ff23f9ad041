# BPF programs: clang compiles them for the kernel's virtual machine, and bpftool turns them into a
# C header that contains them. The header depends neither on the processor nor on the builder's
# kernel. The kernel types that a program reads are in a header of ours, and libbpf adapts them to
# the kernel that loads the program (CO-RE).
find_program(CGPHASE_BPF_CLANG NAMES clang-19 clang)
# Ubuntu's bpftool is a script that runs the version of the running kernel. The bpftool of any
# kernel works.
file(GLOB tools_of_kernels /usr/lib/linux-tools/*)
find_program(CGPHASE_BPFTOOL bpftool PATHS ${tools_of_kernels} NO_DEFAULT_PATH)
find_program(CGPHASE_BPFTOOL bpftool)
if(NOT CGPHASE_BPF_CLANG OR NOT CGPHASE_BPFTOOL)
  message(FATAL_ERROR "BPF programs are compiled with clang and bpftool, and one is missing: run "
    "scripts/install-dependencies, or install the packages clang-19 and bpftool")
endif()

# cgphase_bpf_program(NAME SOURCE): an interface library with <skeletons/NAME.skel.h>, which has the
# programs of SOURCE as struct NAME.
function(cgphase_bpf_program name source)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/bpf)
  set(object ${folder}/${name}.o)
  set(skeleton ${folder}/skeletons/${name}.skel.h)
  file(MAKE_DIRECTORY ${folder}/skeletons)
  # -mcpu=v2: every kernel with typed tracing can run it. -g: the types, of which bpftool keeps only
  # the kernel's form. The result does not depend on the path of the tree.
  add_custom_command(OUTPUT ${object}.new
    COMMAND ${CGPHASE_BPF_CLANG} -target bpf -mcpu=v2 -O2 -g -std=gnu17
      -Wall -Wextra -Werror -Wno-unused-parameter
      -fdebug-compilation-dir=. -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.
      -I ${PROJECT_SOURCE_DIR} -idirafter /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}
      -MD -MF ${object}.d -MT ${object}.new -c ${source} -o ${object}.new
    DEPENDS ${source} DEPFILE ${object}.d
    COMMENT "Building BPF program ${name}" VERBATIM)
  add_custom_command(OUTPUT ${skeleton}
    COMMAND ${CGPHASE_BPFTOOL} gen object ${object} ${object}.new
    COMMAND ${CGPHASE_BPFTOOL} gen skeleton ${object} name ${name} > ${skeleton}
    DEPENDS ${object}.new COMMENT "Generating skeletons/${name}.skel.h" VERBATIM)
  add_custom_target(bpf_${name} DEPENDS ${skeleton})
  add_library(cgphase_bpf_${name} INTERFACE)
  add_dependencies(cgphase_bpf_${name} bpf_${name})
  target_include_directories(cgphase_bpf_${name} SYSTEM INTERFACE ${folder})
  target_link_libraries(cgphase_bpf_${name} INTERFACE cgphase_libbpf)
endfunction()
