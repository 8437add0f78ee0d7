# memspan_compile_kernels(TARGET...): the C++ sources of these targets are in AscendC, kernels and their
# launches; they run on the host device. memspan_KERNELS is the program that the compiler goes through.
function(memspan_compile_kernels)
  foreach(target IN LISTS ARGN)
    set(launcher ${memspan_KERNELS})
    get_target_property(others ${target} CXX_COMPILER_LAUNCHER)
    if(others)
      list(APPEND launcher ${others})
    endif()
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${launcher}")
    target_link_libraries(${target} PRIVATE memspan::cann)
    target_compile_features(${target} PRIVATE cxx_std_17)
  endforeach()
endfunction()
