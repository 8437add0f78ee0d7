# Sources with kernels as CUDA: compiled by nvcc, where a toolkit is. The library itself needs none.
set(MEMSPAN_CUDA AUTO CACHE STRING "Compile kernels by nvcc: AUTO (if a toolkit is there), ON or OFF")
set_property(CACHE MEMSPAN_CUDA PROPERTY STRINGS AUTO ON OFF)
set(MEMSPAN_CUDA_ARCHITECTURE native CACHE STRING "What nvcc compiles programs for, as its -arch: native, sm_90, ...")
set(MEMSPAN_HAS_CUDA FALSE)
if(NOT MEMSPAN_CUDA STREQUAL "OFF" AND NOT CMAKE_CROSSCOMPILING)
  find_program(MEMSPAN_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(MEMSPAN_NVCC)
    set(MEMSPAN_HAS_CUDA TRUE)
  elseif(MEMSPAN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "MEMSPAN_CUDA=ON, and there is no nvcc in PATH or /usr/local/cuda/bin")
  endif()
endif()
set(MEMSPAN_NVCC_OPTIONS -x cu -std=c++17 -O2 -Werror all-warnings -I${PROJECT_SOURCE_DIR}/include/openshmem -I${PROJECT_SOURCE_DIR}/include
  -I${PROJECT_SOURCE_DIR}/examples/kernels)
if(MEMSPAN_HAS_CUDA)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/bin/cuda)
  add_custom_target(cuda_programs)
endif()

# memspan_add_cuda_program(name file): bin/cuda/<name>, of the target cuda_programs, which is not part of `all`;
# and a test that compiles it, for which no GPU is needed.
function(memspan_add_cuda_program name file)
  if(NOT MEMSPAN_HAS_CUDA)
    return()
  endif()
  set(program ${PROJECT_BINARY_DIR}/bin/cuda/${name})
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/memspan/*.h ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  add_custom_command(OUTPUT ${program} VERBATIM
    COMMAND ${MEMSPAN_NVCC} ${MEMSPAN_NVCC_OPTIONS} -arch=${MEMSPAN_CUDA_ARCHITECTURE} ${CMAKE_CURRENT_SOURCE_DIR}/${file}
      -o ${program} -L${PROJECT_BINARY_DIR}/lib -lmemspan -Xlinker -rpath=${PROJECT_BINARY_DIR}/lib
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${headers} memspan
    COMMENT "Compiling bin/cuda/${name} by nvcc")
  add_custom_target(cuda_program_${name} DEPENDS ${program})
  add_dependencies(cuda_programs cuda_program_${name})
  if(MEMSPAN_BUILD_TESTS)
    memspan_add_cuda_compile_test(${name} sm_90 ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endif()
endfunction()

# memspan_add_cuda_compile_test(name architecture source)
function(memspan_add_cuda_compile_test name architecture source)
  set(test capi.kernel_cuda_compiles.${name})
  add_test(NAME ${test} COMMAND ${MEMSPAN_NVCC} ${MEMSPAN_NVCC_OPTIONS} -arch=${architecture}
    -c ${source} -o ${PROJECT_BINARY_DIR}/bin/cuda/${name}.o ${ARGN})
  set_tests_properties(${test} PROPERTIES LABELS "capi;cuda" TIMEOUT 900)
endfunction()
