# For parts that are built where what they need is there: their options are AUTO, ON or OFF.

# memspan_optional(PMIX "Start under ..."): the option MEMSPAN_PMIX; without_pmix in the caller says why it
# is not built, as far as the option says.
macro(memspan_optional part description)
  set(MEMSPAN_${part} AUTO CACHE STRING "${description}: AUTO, ON or OFF")
  set_property(CACHE MEMSPAN_${part} PROPERTY STRINGS AUTO ON OFF)
  set(MEMSPAN_HAS_${part} FALSE)
  string(TOLOWER without_${part} memspan_reason)
  set(${memspan_reason} "")
  if(NOT MEMSPAN_${part} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "MEMSPAN_${part} is \"${MEMSPAN_${part}}\"; allowed are AUTO, ON and OFF")
  elseif(MEMSPAN_${part} STREQUAL OFF)
    set(${memspan_reason} "MEMSPAN_${part} is OFF")
  endif()
endmacro()

# memspan_leave_out(UCX "why" CONDITION...): where the condition holds, unless the option is ON.
macro(memspan_leave_out part why)
  string(TOLOWER without_${part} memspan_reason)
  if(MEMSPAN_${part} STREQUAL AUTO AND "${${memspan_reason}}" STREQUAL "" AND (${ARGN}))
    set(${memspan_reason} "${why}")
  endif()
endmacro()

# memspan_find_version(RESULT file PREFIX): "1.13" of lines like "#define PREFIX_MAJOR 1".
function(memspan_find_version result file prefix)
  file(STRINGS ${file} version REGEX "define ${prefix}_M[A-Z]+ +[0-9]+")
  string(REGEX REPLACE "[^0-9;]" "" version "${version}")
  list(JOIN version . version)
  set(${result} ${version} PARENT_SCOPE)
endfunction()

# memspan_tell_optional(PMIX "Starting by ..." version): says whether it is built; an error when it is ON
# and cannot be.
function(memspan_tell_optional part what version)
  string(TOLOWER without_${part} reason)
  if(MEMSPAN_HAS_${part})
    message(STATUS "${what} is built (${version})")
  elseif(MEMSPAN_${part} STREQUAL ON)
    message(FATAL_ERROR "${what} cannot be built: ${${reason}}")
  else()
    message(STATUS "${what} is not built: ${${reason}}")
  endif()
endfunction()
