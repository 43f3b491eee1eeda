// Characters as Python's str sees them: counting and finding code points in UTF-8, white space,
// classes and cases. REQUIRES everywhere: well-formed UTF-8. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::jinja {

size_t count_characters(std::string_view text);
// The byte where the character with this index starts; the size where there are not that many.
size_t offset_of_character(std::string_view text, size_t character);
// The byte after the character that starts here.
size_t next_character(std::string_view text, size_t offset);
// The byte where the character before this offset starts. REQUIRES: offset > 0.
size_t previous_character(std::string_view text, size_t offset);
char32_t character_at(std::string_view text, size_t offset);

bool is_python_space(char32_t code);  // str.isspace, what strip() and split() take off.
bool is_line_break(char32_t code);    // What str.splitlines cuts at.
bool is_alphabetic(char32_t code);    // str.isalpha: the categories L*.
bool is_decimal(char32_t code);       // str.isdecimal: the category Nd.
bool is_digit(char32_t code);         // str.isdigit: also superscripts and the like.
bool is_numeric(char32_t code);  // str.isnumeric: the categories N*, and ideographs of numbers.
bool is_upper(char32_t code);
bool is_lower(char32_t code);
bool is_title(char32_t code);
bool is_case_ignorable(char32_t code);  // What may stand inside a word and has no say in its case.
bool is_printable(char32_t code);       // Whether repr() shows it as it is.
bool is_identifier_start(char32_t code);
bool is_identifier_part(char32_t code);

// Full mappings: one character may become up to three.
void append_upper(char32_t code, std::string& out);
void append_lower(char32_t code, std::string& out);
void append_title(char32_t code, std::string& out);

}  // namespace cairn::jinja
