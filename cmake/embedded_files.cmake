# The assembler puts files into a library; a table, which HEADER declares, names them:
#   std::span<const type> function(), each with the file's name and its bytes.
#   cairn_embed_files(TARGET SCOPE namespace TYPE type ACCESSOR function HEADER header FILES path…)
function(cairn_embed_files target)
  cmake_parse_arguments(E "" "SCOPE;TYPE;ACCESSOR;HEADER" "FILES" ${ARGN})
  set(blobs "#if defined(__CET__)\n#include <cet.h>\n#endif\n")
  string(APPEND blobs ".section .rodata.cairn_${E_ACCESSOR}, \"a\", %progbits\n")
  set(symbols "")
  set(entries "")
  set(index 0)
  foreach(path ${E_FILES})
    get_filename_component(name ${path} NAME)
    set(begin cairn_${E_ACCESSOR}_${index}_begin)
    set(end cairn_${E_ACCESSOR}_${index}_end)
    string(APPEND blobs ".global ${begin}\n.hidden ${begin}\n${begin}:\n.incbin \"${path}\"\n"
           ".global ${end}\n.hidden ${end}\n${end}:\n.byte 0\n")
    string(APPEND symbols "extern const char ${begin}[], ${end}[];\n")
    string(APPEND entries "    {\"${name}\", {${begin}, ${end}}},\n")
    math(EXPR index "${index} + 1")
  endforeach()
  string(APPEND blobs ".section .note.GNU-stack, \"\", %progbits\n")
  set(code ${CMAKE_CURRENT_BINARY_DIR}/${E_ACCESSOR})
  file(GENERATE OUTPUT ${code}.S CONTENT "${blobs}")
  file(GENERATE OUTPUT ${code}.cpp CONTENT
       "#include \"${E_HEADER}\"
extern \"C\" {
${symbols}}
namespace ${E_SCOPE} {
std::span<const ${E_TYPE}> ${E_ACCESSOR}() {
  static const ${E_TYPE} files[] = {
${entries}  };
  return files;
}
}  // namespace ${E_SCOPE}
")
  target_sources(${target} PRIVATE ${code}.S ${code}.cpp)
  set_source_files_properties(${code}.S TARGET_DIRECTORY ${target} PROPERTIES
    OBJECT_DEPENDS "${E_FILES}" SKIP_UNITY_BUILD_INCLUSION ON)
  set_source_files_properties(${code}.cpp TARGET_DIRECTORY ${target} PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
endfunction()
