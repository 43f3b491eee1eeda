# For cross-builds: libraries as headers and sources, which serve every machine. Debian's packages
# for this machine have them, so that nothing of the other machine needs to be installed.

# A folder with these headers alone: /usr/include itself belongs to this machine's C library.
function(cairn_link_headers folder)
  file(MAKE_DIRECTORY ${folder})
  foreach(name ${ARGN})
    if(NOT EXISTS /usr/include/${name})
      message(FATAL_ERROR "cross-build: expected the headers /usr/include/${name}, found none")
    endif()
    file(CREATE_LINK /usr/include/${name} ${folder}/${name} SYMBOLIC)
  endforeach()
endfunction()

set(portable_headers ${CMAKE_BINARY_DIR}/portable)
cairn_link_headers(${portable_headers} fmt spdlog)
add_library(portable_fmt INTERFACE)
target_include_directories(portable_fmt SYSTEM INTERFACE ${portable_headers})
target_compile_definitions(portable_fmt INTERFACE FMT_HEADER_ONLY)
add_library(fmt::fmt ALIAS portable_fmt)
add_library(portable_spdlog INTERFACE)
target_link_libraries(portable_spdlog INTERFACE portable_fmt)
add_library(spdlog::spdlog ALIAS portable_spdlog)

# GoogleTest from Debian's package of its sources.
set(portable_gtest /usr/src/googletest/googletest)
add_library(portable_gtest STATIC EXCLUDE_FROM_ALL
  ${portable_gtest}/src/gtest-all.cc ${portable_gtest}/src/gtest_main.cc)
target_include_directories(portable_gtest SYSTEM
  PUBLIC ${portable_gtest}/include PRIVATE ${portable_gtest})
target_link_libraries(portable_gtest PUBLIC Threads::Threads)
add_library(GTest::gtest ALIAS portable_gtest)
add_library(GTest::gtest_main ALIAS portable_gtest)
