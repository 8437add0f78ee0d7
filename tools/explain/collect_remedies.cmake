# Copies every remedy that a source declares (src/core/status.h) into the table of memspan-explain:
#
#   cmake -D ROOT=<source tree> -D OUT=<table> -P collect_remedies.cmake
#
# The text between the parentheses becomes an entry as it is, so the C++ compiler reads its strings. The sources are found
# by their folders: a list of those that have remedies would be a second list to maintain. <table>.d names what was read.
cmake_minimum_required(VERSION 3.19)
set(table "")
set(read "")
file(GLOB_RECURSE found LIST_DIRECTORIES true RELATIVE ${ROOT} ${ROOT}/src/* ${ROOT}/tools/* ${ROOT}/python/*)
foreach(path IN LISTS found)
  if(path MATCHES "\\.cc$")
    set(begins "MEMSPAN_REMEDY(")
  elseif(path MATCHES "^python/.*\\.py$")
    set(begins " = remedy(")
  elseif(IS_DIRECTORY ${ROOT}/${path} AND NOT path MATCHES "__pycache__")
    string(APPEND read " ${ROOT}/${path}") # changes when a file comes or goes
    continue()
  else()
    continue()
  endif()
  string(APPEND read " ${ROOT}/${path}")
  file(READ ${ROOT}/${path} text)
  string(LENGTH "${begins}" skipped)
  string(FIND "${text}" "${begins}" at)
  while(NOT at EQUAL -1)
    math(EXPR at "${at} + ${skipped}")
    string(SUBSTRING "${text}" ${at} -1 text)
    string(FIND "${text}" "\")" end)
    math(EXPR end "${end} + 1")
    string(FIND "${text}" "\"" first) # behind the name of the constant
    math(EXPR length "${end} - ${first}")
    string(SUBSTRING "${text}" ${first} ${length} strings)
    string(APPEND table "{${strings}},\n")
    string(FIND "${text}" "${begins}" at)
  endwhile()
endforeach()

set(before "")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT before STREQUAL table)
  file(WRITE ${OUT} "${table}")
endif()
file(WRITE ${OUT}.d "${OUT}:${read}\n")
