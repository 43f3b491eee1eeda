// Characters: strict UTF-8 (no overlong forms, no surrogates), the classes of characters that
// tokenizers ask about, and the alphabet in which byte-level vocabularies spell bytes. Knows
// nothing of tokens. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::unicode {

struct Character {
  char32_t code;    // The code point, or 0 where length is 0.
  uint32_t length;  // Bytes, 1 to 4; 0 where no well-formed character starts.
};

// The character at the start of the text. REQUIRES: not empty.
Character first_character(std::string_view text);

// How many leading bytes are well-formed UTF-8.
size_t valid_utf8_bytes(std::string_view text);

// How many bytes at the end (0 to 3) begin a character whose remaining bytes may still come.
size_t unfinished_utf8_bytes(std::string_view text);

// REQUIRES: a code point up to U+10FFFF that is no surrogate.
void append_utf8(char32_t code, std::string& out);

// Byte-level vocabularies (GPT-2) spell each byte as one printable character: bytes that are
// printable in Latin-1 as themselves, the other 68 as U+0100 and up, in order.
char32_t symbol_of_byte(uint8_t byte);
// The byte that the symbol spells, or -1.
int byte_of_symbol(char32_t symbol);

// BERT's classes (Devlin et al., the reference tokenizer).
bool is_space(char32_t code);        // Unicode White_Space without the controls that BERT drops.
bool is_control(char32_t code);      // Categories C*, but not tab, line feed, carriage return.
bool is_punctuation(char32_t code);  // Categories P*, and every ASCII symbol.
bool is_ideograph(char32_t code);    // The CJK blocks that BERT sets apart, its own list.

struct Folding {
  bool strip_accents = true;
  bool lowercase = true;
};

// The character as BERT's normalizer leaves it: decomposed, without marks of category Mn (none but
// these: vowel signs of Indic scripts are Mc and stay), in lower case. Hangul becomes its letters.
void append_folded(char32_t code, Folding folding, std::u32string& out);

}  // namespace cairn::unicode
