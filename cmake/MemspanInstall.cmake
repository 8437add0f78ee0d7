# What `cmake --install` puts where, and how others find it. The installed tree can be moved: every
# path in it is relative.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# Each file is of one component: library, ucx, etcd, development, openshmem (the launcher and the compilers
# that OpenSHMEM names), tools (what is of no other), python (a wheel), python3 (packages for the system's Python).
# cmake/MemspanPackages.cmake makes a Debian package of each.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME tools)
# Where libmemspan.so looks for its modules: beside it, or in the folder memspan there (src/core/module.cc).
set(MEMSPAN_INSTALL_MODULEDIR ${CMAKE_INSTALL_LIBDIR} CACHE STRING "Where modules of the library are installed")

set(MEMSPAN_TEMPLATES ${CMAKE_CURRENT_LIST_DIR})
set(generated ${PROJECT_BINARY_DIR}/generated)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/memspan)

set(platform ${CMAKE_SYSTEM_PROCESSOR}-linux)

# Every folder into which something goes below, for `uninstall`; first, since it looks at what is there.
set(completion_dir ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions)
set(memspan_folders
  ${CMAKE_INSTALL_BINDIR} ${package_dir} ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  ${CMAKE_INSTALL_INCLUDEDIR}/memspan ${CMAKE_INSTALL_INCLUDEDIR}/mpp ${CMAKE_INSTALL_INCLUDEDIR}/smem/host ${CMAKE_INSTALL_INCLUDEDIR}/smem/device/lowlevel
  ${CMAKE_INSTALL_INCLUDEDIR}/hybm
  ${CMAKE_INSTALL_INCLUDEDIR}/aclshmem/host/init ${CMAKE_INSTALL_INCLUDEDIR}/aclshmem/host/mem ${CMAKE_INSTALL_INCLUDEDIR}/aclshmem/host/team
  ${CMAKE_INSTALL_INCLUDEDIR}/aclshmem/host/data_plane ${CMAKE_INSTALL_INCLUDEDIR}/aclshmem/host/utils ${CMAKE_INSTALL_INCLUDEDIR}/aclshmem/host_device
  ${CMAKE_INSTALL_INCLUDEDIR}/aclshmem/utils/prof ${CMAKE_INSTALL_INCLUDEDIR}/aclshmem/device/gm2gm/engine ${CMAKE_INSTALL_INCLUDEDIR}/aclshmem/device/ub2gm/engine ${CMAKE_INSTALL_INCLUDEDIR}/aclshmem/device/team
  ${CMAKE_INSTALL_INCLUDEDIR}/aclshmem/device_simt/gm2gm/engine ${CMAKE_INSTALL_INCLUDEDIR}/aclshmem/device_simt/ub2gm/engine ${CMAKE_INSTALL_INCLUDEDIR}/aclshmem/device_simt/team
  ${CMAKE_INSTALL_INCLUDEDIR}/cann/acl ${CMAKE_INSTALL_INCLUDEDIR}/cann/opdev ${CMAKE_INSTALL_INCLUDEDIR}/cann/runtime
  ${platform} ${CMAKE_INSTALL_MANDIR}/man1 ${CMAKE_INSTALL_DOCDIR} ${completion_dir})
install(CODE "set(memspan_binary_dir \"${PROJECT_BINARY_DIR}\")\nset(memspan_folders \"${memspan_folders}\")")
install(SCRIPT ${MEMSPAN_TEMPLATES}/note_folders.cmake)

# ---- the library and its headers ------------------------------------------------------------------
add_library(memspan::openshmem ALIAS memspan)
target_include_directories(memspan INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/openshmem>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(memspan PROPERTIES EXPORT_NAME openshmem)
install(TARGETS memspan EXPORT memspanTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
if(MEMSPAN_TLS)
  install(TARGETS memspan_tls LIBRARY DESTINATION ${MEMSPAN_INSTALL_MODULEDIR} COMPONENT library)
endif()
if(MEMSPAN_HAS_ETCD)
  install(TARGETS memspan_etcd LIBRARY DESTINATION ${MEMSPAN_INSTALL_MODULEDIR} COMPONENT etcd)
endif()
if(MEMSPAN_HAS_UCX)
  install(TARGETS memspan_ucx LIBRARY DESTINATION ${MEMSPAN_INSTALL_MODULEDIR} COMPONENT ucx)
endif()
# The other faces, of the same library.
add_library(memspan_smem INTERFACE)
add_library(memspan_aclshmem INTERFACE)
foreach(face smem aclshmem)
  add_library(memspan::${face} ALIAS memspan_${face})
  target_link_libraries(memspan_${face} INTERFACE memspan)
  set_target_properties(memspan_${face} PROPERTIES EXPORT_NAME ${face})
endforeach()
# CANN SHMEM's programs include <shmem.h>, which is OpenSHMEM's elsewhere.
target_include_directories(memspan_aclshmem BEFORE INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/aclshmem> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/aclshmem>)
# Sources in AscendC include what their chip's toolkit has, too.
include(${CMAKE_CURRENT_LIST_DIR}/MemspanKernels.cmake)
set(memspan_KERNELS ${PROJECT_BINARY_DIR}/bin/memspan-kernels)
add_library(memspan_cann INTERFACE)
add_library(memspan::cann ALIAS memspan_cann)
target_link_libraries(memspan_cann INTERFACE memspan_aclshmem)
target_include_directories(memspan_cann INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/cann> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/cann>)
set_target_properties(memspan_cann PROPERTIES EXPORT_NAME cann)
# MemFabric's documents include its headers with and without their folder.
foreach(folder smem/host smem/device hybm)
  target_include_directories(memspan_smem INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/${folder}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/${folder}>)
endforeach()
install(TARGETS memspan_smem memspan_aclshmem memspan_cann EXPORT memspanTargets)
install(FILES ${PROJECT_BINARY_DIR}/lib/libshmem.so ${PROJECT_BINARY_DIR}/lib/libmf_smem.so
  ${PROJECT_BINARY_DIR}/lib/libmf_hybm_core.so DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)

# OpenSHMEM's own folder vanishes: users write <shmem.h>.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/openshmem/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/include/shmem_api.h ${PROJECT_SOURCE_DIR}/include/aclshmem.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development)
# MemFabric's documents compile with the folders smem/host, smem/device and hybm, CANN SHMEM's with aclshmem.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/memspan ${PROJECT_SOURCE_DIR}/include/smem
  ${PROJECT_SOURCE_DIR}/include/hybm ${PROJECT_SOURCE_DIR}/include/aclshmem
  ${PROJECT_SOURCE_DIR}/include/cann DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development FILES_MATCHING PATTERN "*.h")

# ---- MemFabric's layout ---------------------------------------------------------------------------
# Its documents' compile and link lines, and programs that load the library by its path, look below
# ${MEMFABRIC_HYBRID_HOME_PATH}/$(arch)-linux: links to the one copy.
function(memspan_add_layout_link name target)
  file(RELATIVE_PATH there ${CMAKE_INSTALL_PREFIX}/${platform} ${target})
  file(MAKE_DIRECTORY ${generated}/${platform})
  file(CREATE_LINK ${there} ${generated}/${platform}/${name} SYMBOLIC)
  install(FILES ${generated}/${platform}/${name} DESTINATION ${platform} COMPONENT development)
endfunction()
# Not below /usr.
if(NOT MEMSPAN_DEB)
  memspan_add_layout_link(include ${CMAKE_INSTALL_FULL_INCLUDEDIR})
  memspan_add_layout_link(lib64 ${CMAKE_INSTALL_FULL_LIBDIR})
endif()

# ---- programs -------------------------------------------------------------------------------------
file(RELATIVE_PATH from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH include ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
file(RELATIVE_PATH library ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})

# memspan_add_wrapper(oshcc MEMSPAN_CC cc shmemcc...): a compiler wrapper and its other names.
function(memspan_add_wrapper name variable compiler)
  configure_file(${PROJECT_SOURCE_DIR}/tools/wrappers/oshcc.in ${generated}/${name} @ONLY)
  install(PROGRAMS ${generated}/${name} DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT openshmem)
  foreach(alias IN LISTS ARGN)
    memspan_add_link(${CMAKE_INSTALL_BINDIR} ${name} ${alias} openshmem)
  endforeach()
endfunction()

# memspan_add_link(FOLDER NAME OTHER COMPONENT): in this folder of the installation OTHER is a link to NAME.
function(memspan_add_link folder name other component)
  file(MAKE_DIRECTORY ${generated}/links/${folder})
  file(CREATE_LINK ${name} ${generated}/links/${folder}/${other} SYMBOLIC)
  install(FILES ${generated}/links/${folder}/${other} DESTINATION ${folder} COMPONENT ${component})
endfunction()

memspan_add_wrapper(oshcc MEMSPAN_CC cc shmemcc)
memspan_add_wrapper(oshc++ MEMSPAN_CXX c++ oshcxx oshCC shmemc++ shmemcxx shmemCC)
if(TARGET oshrun)
  install(TARGETS memspan-info memspan-perf memspan-store memspan-kernels memspan-top memspan-explain RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(TARGETS oshrun RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT openshmem)
  memspan_add_link(${CMAKE_INSTALL_BINDIR} oshrun shmemrun openshmem)
endif()

# ---- what people read ------------------------------------------------------------------------------
function(memspan_add_page page component)
  configure_file(${PROJECT_SOURCE_DIR}/docs/man/${page}.1.in ${generated}/${page}.1 @ONLY)
  install(FILES ${generated}/${page}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component})
endfunction()
foreach(page memspan-info memspan-perf memspan-store memspan-kernels memspan-top memspan-explain)
  memspan_add_page(${page} tools)
endforeach()
memspan_add_page(oshrun openshmem)
memspan_add_page(oshcc openshmem)
foreach(other oshc++ oshcxx oshCC shmemcc shmemc++ shmemcxx shmemCC)
  memspan_add_link(${CMAKE_INSTALL_MANDIR}/man1 oshcc.1 ${other}.1 openshmem)
endforeach()
memspan_add_link(${CMAKE_INSTALL_MANDIR}/man1 oshrun.1 shmemrun.1 openshmem)
# One file for all programs, under the name of each.
install(FILES ${PROJECT_SOURCE_DIR}/tools/completion/oshrun.bash DESTINATION ${completion_dir} RENAME memspan-info)
foreach(other memspan-perf memspan-store memspan-top memspan-explain)
  memspan_add_link(${completion_dir} memspan-info ${other} tools)
endforeach()
foreach(other oshrun shmemrun)
  memspan_add_link(${completion_dir} memspan-info ${other} openshmem)
endforeach()
# A Debian package has these in its own way.
if(NOT MEMSPAN_DEB)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/packaging/copyright ${PROJECT_SOURCE_DIR}/VERSION
    DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()

# ---- find_package(memspan) ------------------------------------------------------------------------
install(EXPORT memspanTargets NAMESPACE memspan:: DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(${MEMSPAN_TEMPLATES}/memspanConfig.cmake.in ${generated}/memspanConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${generated}/memspanConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${generated}/memspanConfig.cmake ${generated}/memspanConfigVersion.cmake
  ${MEMSPAN_TEMPLATES}/MemspanKernels.cmake DESTINATION ${package_dir} COMPONENT development)

# ---- pkg-config -----------------------------------------------------------------------------------
file(RELATIVE_PATH from_pkgconfig ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${MEMSPAN_TEMPLATES}/memspan.pc.in ${generated}/memspan.pc @ONLY)
install(FILES ${generated}/memspan.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
# memspan_add_alias(PACKAGE FACE [FOLDER...]): the package of a face; the folders are of headers.
function(memspan_add_alias package face)
  list(TRANSFORM ARGN PREPEND "-I\${includedir}/" OUTPUT_VARIABLE flags)
  list(JOIN flags " " flags)
  configure_file(${MEMSPAN_TEMPLATES}/alias.pc.in ${generated}/${package}.pc @ONLY)
  install(FILES ${generated}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()
memspan_add_alias(shmem OpenSHMEM)
memspan_add_alias(openshmem OpenSHMEM)
memspan_add_alias(aclshmem "CANN SHMEM" aclshmem)
memspan_add_alias(smem "MemFabric's smem" smem/host smem/device hybm)

# ---- uninstall ------------------------------------------------------------------------------------
if(MEMSPAN_TOP_LEVEL)
  configure_file(${MEMSPAN_TEMPLATES}/uninstall.cmake.in ${generated}/uninstall.cmake @ONLY)
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -P ${generated}/uninstall.cmake VERBATIM)
endif()
