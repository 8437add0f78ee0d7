# How every target of the project is made, so that no directory repeats a flag.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)

# Warnings, sanitizers and the include root: what all our own code is compiled with.
add_library(memspan_flags INTERFACE)
target_compile_features(memspan_flags INTERFACE cxx_std_20 c_std_11)
target_include_directories(memspan_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_options(memspan_flags INTERFACE -Wall -Wextra -Wshadow
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:Clang>>:-Wthread-safety>
  $<$<BOOL:${MEMSPAN_DEVELOPER}>:-Werror>)
target_compile_definitions(memspan_flags INTERFACE MEMSPAN_VERSION="${PROJECT_VERSION}")
target_link_libraries(memspan_flags INTERFACE Threads::Threads)
# The same bytes wherever the sources lie; debuggers of other configurations want to know where.
target_compile_options(memspan_flags INTERFACE $<$<CONFIG:Release>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>)
# A static libfmt is linked. Debian has none, and a shared one would be one more thing that users must
# install and every process loads: then fmt is compiled once (core/fmt.cc).
get_target_property(fmt_type fmt::fmt TYPE)
if(MEMSPAN_SYSTEM_FMT OR fmt_type STREQUAL STATIC_LIBRARY)
  set(MEMSPAN_LINKS_FMT TRUE)
  target_link_libraries(memspan_flags INTERFACE fmt::fmt)
endif()
if(MEMSPAN_STATIC_RUNTIME)
  # Not libgcc: exceptions pass through two libraries (memspan/memspan.h), which share its tables.
  # And no debug information, which would be nine tenths of a wheel.
  add_library(memspan_static_runtime STATIC ${PROJECT_SOURCE_DIR}/src/core/static_runtime.cc)
  set_target_properties(memspan_static_runtime PROPERTIES POSITION_INDEPENDENT_CODE ON)
  # libstdc++ comes last and asks for it, so the linker is told to take it before.
  target_link_options(memspan_static_runtime INTERFACE LINKER:--undefined=arc4random)
  target_link_libraries(memspan_flags INTERFACE memspan_static_runtime)
  target_link_options(memspan_flags INTERFACE -static-libstdc++ $<$<NOT:$<CONFIG:Debug>>:-s>)
endif()
if(MEMSPAN_SANITIZE)
  # vptr needs RTTI, which the rooms have not; clang's `function` a runtime that programs in C are not
  # linked with; TSan does not know fences, and says so at each one.
  target_compile_options(memspan_flags INTERFACE -fsanitize=${MEMSPAN_SANITIZE} -fno-sanitize=vptr
    $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function> -fno-omit-frame-pointer -fno-sanitize-recover=all $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  target_link_options(memspan_flags INTERFACE -fsanitize=${MEMSPAN_SANITIZE})
endif()

# How objects are compiled, which a build that takes another's objects must agree with.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
set(memspan_object_flags "${PROJECT_VERSION} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_SYSTEM_PROCESSOR} TLS=${MEMSPAN_TLS} PMIX=${MEMSPAN_HAS_PMIX} FMT=${MEMSPAN_LINKS_FMT} ${MEMSPAN_SANITIZE} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}")

# A wheel and Debian packages are linked from the objects of build/ where scripts/build.sh made it with the
# same flags, after what changed has been compiled there; a wheel for another processor from those of build/aarch64,
# which scripts/build_wheel.sh makes.
set(MEMSPAN_TAKES_OBJECTS FALSE)
set(others ${PROJECT_SOURCE_DIR}/build)
if(CMAKE_CROSSCOMPILING)
  string(APPEND others /${CMAKE_SYSTEM_PROCESSOR})
endif()
if((SKBUILD OR MEMSPAN_DEB) AND EXISTS ${others}/objects.cmake)
  include(${others}/objects.cmake)
  if(memspan_object_flags_there STREQUAL memspan_object_flags)
    message(STATUS "The library's objects are those of ${others}")
    execute_process(COMMAND ${CMAKE_COMMAND} --build ${others} --parallel --target memspan memspan_objects launcher_parts info_parts perf_parts process_reader_parts top_parts store_tool_parts json_parts system_files_parts
      COMMAND_ERROR_IS_FATAL ANY)
    include(${others}/objects.cmake)
    set(MEMSPAN_TAKES_OBJECTS TRUE)
  else()
    message(STATUS "The library is compiled here: ${others} has \"${memspan_object_flags_there}\", this is \"${memspan_object_flags}\"")
  endif()
endif()

# Two thirds of the time of compiling one file are headers, so a folder's files are compiled together, twelve at most:
# that is enough to share headers and leaves every core something to do. Files with options of their own stay apart.
function(memspan_unite target)
  if(NOT MEMSPAN_UNITY)
    return()
  endif()
  foreach(source IN LISTS ARGN)
    get_filename_component(folder ${source} ABSOLUTE)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
    get_filename_component(folder ${folder} DIRECTORY)
    string(REPLACE / _ folder ${folder})
    if(NOT DEFINED members_${folder})
      set(members_${folder} 0)
    endif()
    math(EXPR batch "${members_${folder}} / 12")
    math(EXPR members_${folder} "${members_${folder}} + 1")
    set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${folder}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# memspan_add_objects(target SOURCES a.cc b.cc LIBRARIES x): an object library for libmemspan.so or a
# program. Those of this build are named in <build>/objects.cmake, so that a wheel's can take them.
function(memspan_add_objects target)
  cmake_parse_arguments(OBJECTS "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(MEMSPAN_TAKES_OBJECTS)
    add_library(${target} OBJECT IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES IMPORTED_OBJECTS "${${target}_objects}")
    target_link_libraries(${target} INTERFACE memspan_flags ${OBJECTS_LIBRARIES})
    return()
  endif()
  add_library(${target} OBJECT ${OBJECTS_SOURCES})
  target_link_libraries(${target} PUBLIC memspan_flags ${OBJECTS_LIBRARIES})
  memspan_unite(${target} ${OBJECTS_SOURCES})
  set_property(GLOBAL APPEND_STRING PROPERTY MEMSPAN_OBJECTS "set(${target}_objects \"$<TARGET_OBJECTS:${target}>\")\n")
endfunction()

# memspan_add_room(NAME memory DEPENDS core device SOURCES a.cc b.cc)
# An object library `memspan_room_<name>`; libmemspan.so is the sum of the rooms.
function(memspan_add_room)
  cmake_parse_arguments(ROOM "" "NAME" "DEPENDS;SOURCES;LIBRARIES" ${ARGN})
  set(target memspan_room_${ROOM_NAME})
  memspan_add_library_objects(${target} SOURCES ${ROOM_SOURCES} LIBRARIES ${ROOM_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY MEMSPAN_ROOMS ${target})
  if(NOT MEMSPAN_TAKES_OBJECTS)
    foreach(room IN LISTS ROOM_DEPENDS)
      add_dependencies(${target} memspan_room_${room})
    endforeach()
  endif()
endfunction()

# The same as memspan_add_objects, for what libmemspan.so is made of.
function(memspan_add_library_objects target)
  memspan_add_objects(${target} ${ARGN})
  if(NOT MEMSPAN_TAKES_OBJECTS)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
      C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>
      $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:Clang>>:-Wexit-time-destructors>) # core/lifetime.h
  endif()
endfunction()

# Programs that look inside are many; this linker needs half the time of the usual one. Of clang's
# AddressSanitizer it complains in hundreds of lines.
include(CheckLinkerFlag)
if(NOT (MEMSPAN_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang"))
  check_linker_flag(CXX -fuse-ld=gold MEMSPAN_HAS_GOLD)
endif()

# memspan_add_executable(NAME x SOURCES ... [LOADS_TLS]): a program of ours that is linked with
# what it uses of the rooms (tests and tools look inside), not with the shared library.
function(memspan_add_executable)
  cmake_parse_arguments(EXE "LOADS_TLS" "NAME" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${EXE_NAME} ${EXE_SOURCES})
  if(MEMSPAN_HAS_GOLD AND NOT CMAKE_CROSSCOMPILING)
    target_link_options(${EXE_NAME} PRIVATE -fuse-ld=gold)
  endif()
  if(EXE_LOADS_TLS)
    target_link_libraries(${EXE_NAME} PRIVATE memspan_rooms ${EXE_LIBRARIES})
  else()
    target_link_libraries(${EXE_NAME} PRIVATE memspan_objects ${EXE_LIBRARIES})
  endif()
endfunction()

# memspan_add_program(NAME x SOURCES ...): a program linked with libmemspan.so, as a user's would be.
function(memspan_add_program)
  cmake_parse_arguments(EXE "" "NAME" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${EXE_NAME} ${EXE_SOURCES})
  target_include_directories(${EXE_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/include/openshmem
    ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${EXE_NAME} PRIVATE memspan ${EXE_LIBRARIES})
  if(MEMSPAN_SANITIZE)
    target_compile_options(${EXE_NAME} PRIVATE -fsanitize=${MEMSPAN_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${EXE_NAME} PRIVATE -fsanitize=${MEMSPAN_SANITIZE})
  endif()
endfunction()

# memspan_module(etcd FOLDER SOURCES... LIBRARIES...): libmemspan_etcd.so, which libmemspan.so loads where it
# is needed, of the room core and the sources; FOLDER/etcd_module.map says what it exports.
function(memspan_module name folder)
  cmake_parse_arguments(MODULE "" "" "SOURCES;LIBRARIES" ${ARGN})
  set(others ${MODULE_SOURCES})
  list(FILTER others INCLUDE REGEX "TARGET_OBJECTS")
  list(FILTER MODULE_SOURCES EXCLUDE REGEX "TARGET_OBJECTS")
  memspan_add_library_objects(memspan_${name}_parts SOURCES ${MODULE_SOURCES} LIBRARIES ${MODULE_LIBRARIES})
  add_library(memspan_${name} MODULE $<TARGET_OBJECTS:memspan_${name}_parts> ${others}
    $<TARGET_OBJECTS:memspan_room_core> $<TARGET_OBJECTS:memspan_room_net>)
  target_link_libraries(memspan_${name} PRIVATE memspan_flags ${MODULE_LIBRARIES})
  set_target_properties(memspan_${name} PROPERTIES OUTPUT_NAME memspan_${name} LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LINK_DEPENDS ${folder}/${name}_module.map)
  target_link_options(memspan_${name} PRIVATE LINKER:--version-script=${folder}/${name}_module.map)
  add_dependencies(memspan memspan_${name})
endfunction()
