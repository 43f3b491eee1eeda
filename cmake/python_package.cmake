# What the Python package has beside its own files, as component `python`: the library and the
# program, without their symbols. Both come from this build, or, with CAIRN_PREBUILT, from another.
add_custom_target(python_package)
if(CAIRN_PREBUILT)
  set(library ${CAIRN_PREBUILT}/libcairn.so.${PROJECT_VERSION})
  set(program ${CAIRN_PREBUILT}/cairn)
else()
  add_dependencies(python_package cairn_shared cairn)
  set(library $<TARGET_FILE:cairn_shared>)
  set(program $<TARGET_FILE:cairn>)
endif()
install(PROGRAMS ${library} DESTINATION cairn/_lib COMPONENT python RENAME libcairn.so)
install(PROGRAMS ${program} DESTINATION cairn/_lib COMPONENT python RENAME cairn)
if(CMAKE_STRIP)
  install(CODE "
    set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/cairn/_lib\")
    execute_process(COMMAND ${CMAKE_STRIP} \${folder}/libcairn.so \${folder}/cairn
                    COMMAND_ERROR_IS_FATAL ANY)" COMPONENT python)
endif()
