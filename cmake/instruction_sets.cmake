# Compile flags of the files for one instruction set. Flags belong to files, not to a library, so
# that nothing else can use an instruction that the machine may lack.
set(CAIRN_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(CAIRN_FLAGS_avxvnni ${CAIRN_FLAGS_avx2} -mavxvnni)
set(CAIRN_FLAGS_avx512 ${CAIRN_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni
    -mavx512vbmi)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Its AVX-512 headers read variables before they are set, on purpose, and warn about it.
  list(APPEND CAIRN_FLAGS_avx512 -Wno-uninitialized -Wno-maybe-uninitialized)
endif()
set(CAIRN_FLAGS_avx512bf16 ${CAIRN_FLAGS_avx512} -mavx512bf16)
set(CAIRN_FLAGS_amx ${CAIRN_FLAGS_avx512} -mamx-tile -mamx-int8)
set(CAIRN_FLAGS_amxbf16 ${CAIRN_FLAGS_avx512bf16} -mamx-tile -mamx-int8 -mamx-bf16)
set(CAIRN_FLAGS_neon -march=armv8.2-a+dotprod)

# One source text of a kernel becomes dozens of functions, and each load in it a dozen checks: ten
# times the compile time. Under the sanitizers these files keep the checks of bounds and of
# overflow, and leave out those of what the processor refuses by itself (null, alignment).
if(CAIRN_SANITIZE MATCHES "undefined")
  set(CAIRN_FLAGS_sanitized_kernels -O1 -gline-tables-only
      -fno-sanitize=alignment,null,pointer-overflow,object-size,vptr,function)
  if(CAIRN_FUZZ)
    list(APPEND CAIRN_FLAGS_sanitized_kernels -mllvm -asan-instrumentation-with-call-threshold=0)
  endif()
  # The same texts are compiled for AVX2: what is undefined in one shows there.
  foreach(isa avxvnni avx512 avx512bf16)
    list(APPEND CAIRN_FLAGS_${isa} -fno-sanitize=undefined)
  endforeach()
endif()

# Takes the files for another machine's instruction sets out of a list.
function(cairn_keep_native list)
  if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    list(FILTER ${list} EXCLUDE REGEX "_(avx2|avxvnni|avx512|avx512bf16|amx|amxbf16)\\.cpp$")
  endif()
  if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    list(FILTER ${list} EXCLUDE REGEX "_neon\\.cpp$")
  endif()
  set(${list} ${${list}} PARENT_SCOPE)
endfunction()

# Those of the target's sources whose names end in _avx2, _avx512 … get their flags.
function(cairn_instruction_sets target)
  foreach(source ${ARGN})
    foreach(isa avx2 avxvnni avx512 avx512bf16 amx amxbf16 neon)
      if(source MATCHES "_${isa}\\.cpp$")
        set_source_files_properties(${source} TARGET_DIRECTORY ${target}
          PROPERTIES COMPILE_OPTIONS "${CAIRN_FLAGS_${isa}};${CAIRN_FLAGS_sanitized_kernels}"
                     SKIP_PRECOMPILE_HEADERS ON)
      endif()
    endforeach()
    if(source MATCHES "/product_avx2\\.cpp$" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # Products fill all 16 registers. Without this, g++ 12 moves loads of operands so far ahead
      # that a quarter of the instructions are spills.
      set_property(SOURCE ${source} TARGET_DIRECTORY ${target} APPEND
                   PROPERTY COMPILE_OPTIONS -flive-range-shrinkage)
    endif()
  endforeach()
endfunction()
