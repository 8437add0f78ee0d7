# Debian packages by CPack, one of each component; packaging/deb.sh runs it (docs/packages.md).
#
#   libmemspan0        library      libmemspan.so.0 and the module for TLS
#   memspan-ucx        ucx          the module over UCX: one more dependency, of few users
#   memspan-etcd       etcd         the module for stores on etcd: the same
#   libmemspan-dev     development  headers, CMake and pkg-config files
#   memspan-openshmem  openshmem    oshrun, oshcc and their kin: names that Open MPI's package has, too
#   memspan-tools      tools        programs that nobody else has
#   python3-memspan    python3      packages for the system's Python
set(folder ${PROJECT_SOURCE_DIR}/packaging/deb)
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_PACKAGE_NAME memspan)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${folder}/finish.cmake)
set(CPACK_MEMSPAN_SOURCE_DIR ${PROJECT_SOURCE_DIR})

set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The memspan authors <authors@memspan.invalid>")
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
set(library "libmemspan0 (= ${version})")

# memspan_add_package(COMPONENT package SECTION "first line" "the rest" VARIABLE value...)
function(memspan_add_package component package section summary text)
  string(TOUPPER ${component} COMPONENT)
  set(values PACKAGE_NAME ${package} PACKAGE_SECTION ${section} ${ARGN})
  while(values)
    list(POP_FRONT values name value)
    set(CPACK_DEBIAN_${COMPONENT}_${name} "${value}" PARENT_SCOPE)
  endwhile()
  string(REPLACE " / " "\n" text "${text}")
  set(CPACK_COMPONENT_${COMPONENT}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
endfunction()

set(about "memspan implements OpenSHMEM, CANN SHMEM and MemFabric (smem_*) for any / Linux machine: a symmetric heap that processes put to and get from, pools / of memory that processes join and leave, and transfers between them.")
set(CPACK_COMPONENTS_ALL "")
memspan_add_package(library libmemspan0 libs "one span of memory across processes and hosts (library)"
  "${about} / . / This is the shared library, with TLS between hosts."
  PACKAGE_SUGGESTS "memspan-ucx, memspan-etcd" PACKAGE_CONTROL_EXTRA ${folder}/libmemspan0/triggers)
if(MEMSPAN_HAS_UCX)
  memspan_add_package(ucx memspan-ucx libs "one span of memory across processes and hosts (UCX)"
    "${about} / . / This is the module that reaches other hosts over UCX (MEMSPAN_CARRIER=ucx)." PACKAGE_DEPENDS ${library})
endif()
if(MEMSPAN_HAS_ETCD)
  memspan_add_package(etcd memspan-etcd libs "one span of memory across processes and hosts (etcd)"
    "${about} / . / This is the module for jobs that meet over a store on etcd (etcd:// addresses)." PACKAGE_DEPENDS ${library})
endif()
memspan_add_package(development libmemspan-dev libdevel "one span of memory across processes and hosts (development files)"
  "${about} / . / These are headers, CMake and pkg-config files."
  PACKAGE_DEPENDS ${library} PACKAGE_RECOMMENDS memspan-openshmem PACKAGE_SUGGESTS memspan-tools)
memspan_add_package(openshmem memspan-openshmem utils "launcher and compilers of OpenSHMEM, by memspan"
  "${about} / . / These are oshrun, oshcc, oshc++ and their other names. Open MPI has programs / of the same names: one of the two packages can be installed."
  PACKAGE_DEPENDS "${library}, memspan-tools (= ${version})" PACKAGE_RECOMMENDS libmemspan-dev PACKAGE_CONFLICTS openmpi-bin)
memspan_add_package(tools memspan-tools utils "one span of memory across processes and hosts (tools)"
  "${about} / . / These are memspan-info, memspan-perf, memspan-store, memspan-top, memspan-explain and memspan-kernels."
  PACKAGE_DEPENDS ${library} PACKAGE_RECOMMENDS memspan-openshmem)
if(MEMSPAN_BUILD_PYTHON)
  find_package(Python3 COMPONENTS Interpreter REQUIRED) # that of python/ is not seen here
  math(EXPR next_minor "${Python3_VERSION_MINOR} + 1")
  memspan_add_package(python3 python3-memspan python "one span of memory across processes and hosts (Python 3)"
    "${about} / . / These are the Python packages shmem, mf_smem, memfabric_hybrid, mf_adapter and / memspan, for the Python of the distribution."
    PACKAGE_DEPENDS "${library}, python3 (>= 3.${Python3_VERSION_MINOR}~), python3 (<< 3.${next_minor})"
    PACKAGE_RECOMMENDS "memspan-openshmem, python3-numpy" PACKAGE_SUGGESTS libmemspan-dev)
  set(CPACK_DEBIAN_PYTHON3_PACKAGE_CONTROL_EXTRA ${folder}/python3/postinst ${folder}/python3/prerm)
endif()

include(CPack)
