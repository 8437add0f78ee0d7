# Runs first in an installation: notes, for `uninstall`, the folders that are not there yet. Those of an
# installation before stay noted; they are ours too.
file(WRITE "${memspan_binary_dir}/install_prefix.txt" "${CMAKE_INSTALL_PREFIX}")
set(record "${memspan_binary_dir}/install_folders.txt")
foreach(folder IN LISTS memspan_folders)
  get_filename_component(path "${CMAKE_INSTALL_PREFIX}/${folder}" ABSOLUTE)
  while(NOT EXISTS "$ENV{DESTDIR}${path}")
    file(APPEND "${record}" "${path}\n")
    get_filename_component(path "${path}" DIRECTORY)
  endwhile()
endforeach()
