# How every target of the project is made, so that no directory repeats a flag.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)

# Warnings, sanitizers and the include root: what all our own code is compiled with.
add_library(memspan_flags INTERFACE)
target_compile_features(memspan_flags INTERFACE cxx_std_20 c_std_11)
target_include_directories(memspan_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_options(memspan_flags INTERFACE -Wall -Wextra -Wshadow
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:Clang>>:-Wthread-safety>
  $<$<BOOL:${MEMSPAN_DEVELOPER}>:-Werror>)
target_compile_definitions(memspan_flags INTERFACE SPDLOG_HEADER_ONLY SPDLOG_FMT_EXTERNAL
  MEMSPAN_VERSION="${PROJECT_VERSION}")
target_link_libraries(memspan_flags INTERFACE Threads::Threads)
if(MEMSPAN_STATIC_RUNTIME)
  # Not libgcc: exceptions pass through two libraries (memspan/memspan.h), which share its tables.
  target_link_options(memspan_flags INTERFACE -static-libstdc++)
endif()
if(MEMSPAN_SANITIZE)
  # vptr needs RTTI, which the rooms have not; TSan does not know fences, and says so at each one.
  target_compile_options(memspan_flags INTERFACE -fsanitize=${MEMSPAN_SANITIZE} -fno-sanitize=vptr
    -fno-omit-frame-pointer -fno-sanitize-recover=all $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  target_link_options(memspan_flags INTERFACE -fsanitize=${MEMSPAN_SANITIZE})
endif()

# memspan_add_room(NAME memory DEPENDS core device SOURCES a.cc b.cc)
# An object library `memspan_room_<name>`; libmemspan.so is the sum of the rooms.
function(memspan_add_room)
  cmake_parse_arguments(ROOM "" "NAME" "DEPENDS;SOURCES;LIBRARIES" ${ARGN})
  set(target memspan_room_${ROOM_NAME})
  add_library(${target} OBJECT ${ROOM_SOURCES})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
  target_link_libraries(${target} PUBLIC memspan_flags ${ROOM_LIBRARIES})
  foreach(room IN LISTS ROOM_DEPENDS)
    add_dependencies(${target} memspan_room_${room})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY MEMSPAN_ROOMS ${target})
endfunction()

# Every test has all objects of the library in it; this linker needs half the time of the usual one.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=gold MEMSPAN_HAS_GOLD)

# memspan_add_executable(NAME x SOURCES ... [LOADS_TLS]): a program of ours that is linked with
# the objects of all rooms (tests and tools look inside), not with the shared library.
function(memspan_add_executable)
  cmake_parse_arguments(EXE "LOADS_TLS" "NAME" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${EXE_NAME} ${EXE_SOURCES})
  target_include_directories(${EXE_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
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
    ${PROJECT_SOURCE_DIR}/include/aclshmem ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${EXE_NAME} PRIVATE memspan ${EXE_LIBRARIES})
  if(MEMSPAN_SANITIZE)
    target_compile_options(${EXE_NAME} PRIVATE -fsanitize=${MEMSPAN_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${EXE_NAME} PRIVATE -fsanitize=${MEMSPAN_SANITIZE})
  endif()
endfunction()
