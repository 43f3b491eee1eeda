# Headers that are read once instead of once for each source, which is most of a compilation. All
# modules share cmake/precompiled.h, and those that answer requests and commands
# cmake/precompiled_once.h; one with a precompiled.h of its own has that instead. Sources include
# what they use nonetheless: tools/tidy.py checks the standard library's names and the project's
# types. Files for one instruction set have flags of their own, so they read headers one by one.
option(CAIRN_PRECOMPILED "Precompile headers" ON)

if(CAIRN_PRECOMPILED)
  # A cache of objects takes these only if it may trust macros' names and dates. By the text of all
  # headers (depend mode), not by what the preprocessor leaves of them: g++ knows the headers within
  # a precompiled one by their text, comments too. Under a name of its own, for what was kept
  # otherwise.
  if(CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1
        CCACHE_NAMESPACE=cairn ${CCACHE})
  endif()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cpp
       CONTENT "// Nothing: cmake/precompiled.h is compiled for the sake of others.\n")
  # Modules that compute, and those that run once, have flags of their own.
  set(libraries cairn_precompiled cairn_precompiled_computing)
  if(NOT CAIRN_KERNELS_ONLY)
    list(APPEND libraries cairn_precompiled_once)
  endif()
  foreach(library ${libraries})
    add_library(${library} OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
    target_link_libraries(${library} PRIVATE cairn_flags fmt::fmt)
    # By a name that is the same in every clone, so that a cache serves them all.
    target_include_directories(${library} PRIVATE ${CMAKE_SOURCE_DIR})
    target_precompile_headers(${library} PRIVATE <cmake/precompiled.h>)
  endforeach()
  set_target_properties(cairn_precompiled_computing PROPERTIES CAIRN_COMPUTES ON)
  if(TARGET cairn_precompiled_once)
    target_precompile_headers(cairn_precompiled_once PRIVATE <cmake/precompiled_once.h>)
    target_compile_options(cairn_precompiled_once PRIVATE ${CAIRN_ONCE_FLAGS})
  endif()
endif()

# g++ 12 forgets which of the headers are the system's and repeats within them the mistake that
# CMakeLists.txt names (GCC 105651), in three warnings more.
function(cairn_hush_precompiled target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow>
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overread>
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds>)
endfunction()

function(cairn_precompile target folder)
  if(NOT CAIRN_PRECOMPILED)
    return()
  endif()
  get_filename_component(module ${folder} NAME)
  if(EXISTS ${folder}/precompiled.h)
    target_precompile_headers(${target} PRIVATE <${module}/precompiled.h>)
  else()
    set(headers cairn_precompiled)
    get_target_property(computes ${target} CAIRN_COMPUTES)
    if(computes)
      string(APPEND headers _computing)
    elseif(module IN_LIST CAIRN_ONCE_MODULES)
      string(APPEND headers _once)
    endif()
    target_precompile_headers(${target} REUSE_FROM ${headers})
  endif()
  cairn_hush_precompiled(${target})
endfunction()

# COUNT small sources are compiled as one: most of what each reads is the same. Those in the list
# single_sources are left out. Where many files use the same names for things of their own (an
# architecture's Config and Layer, a test's helpers), each has a namespace of its own name.
function(cairn_join_sources target count)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
  set_source_files_properties(${single_sources} TARGET_DIRECTORY ${target}
                              PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
