// What was said before in the conversations of one tenant: prompts, answers, abandoned branches,
// results of tools. Append-only, so that rewinds and forks never touch it. Never holds a token of a
// draft, and never what another tenant said: what is drafted shows in how long answers take.
// Thread rule: the engine's thread.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "draft/match_chances.h"
#include "draft/recycle_table.h"
#include "draft/text_index.h"

namespace cairn::draft {

class Corpus {
 public:
  explicit Corpus(size_t budget_bytes) : index_(budget_bytes) {}

  // A text from its beginning, of which the first `known_count` tokens were appended before, by
  // whatever call: a conversation whose next turn repeats its beginning is not kept twice.
  void append(std::span<const Token> text, size_t known_count);
  // The same, with the tokens that are here already found by following the text: for texts from a
  // store, or of whom nobody knows what was appended.
  void append(std::span<const Token> text) { append(text, known_count(text)); }
  size_t known_count(std::span<const Token> text) const;

  void forget() { index_.forget(); }
  const TextIndex& index() const { return index_; }
  size_t bytes() const { return index_.bytes(); }

 private:
  TextIndex index_;
};

// What drafts of one tenant are made from.
struct Knowledge {
  explicit Knowledge(size_t corpus_bytes) : said(corpus_bytes) {}
  size_t bytes() const { return said.bytes() + successors.bytes() + sizeof(chances); }

  Corpus said;
  RecycleTable successors;
  MatchChances chances;
};

// The knowledge of all tenants, within a budget. Who is used least recently loses it.
class Corpora {
 public:
  struct Budget {
    size_t tenant_bytes = size_t(32) << 20;  // Of a corpus.
    size_t bytes = size_t(256) << 20;
  };
  explicit Corpora(Budget budget) : budget_(budget) {}

  // Stays what it is for whoever holds it; the budget may empty it.
  std::shared_ptr<Knowledge> of(std::string_view tenant);
  // To be called after appending: keeps the budget.
  void trim();
  size_t bytes() const;

 private:
  struct Tenant {
    std::string name;
    std::shared_ptr<Knowledge> knowledge;
  };
  Budget budget_;
  std::list<Tenant> tenants_;  // The last used one first.
  std::map<std::string_view, std::list<Tenant>::iterator> by_name_;
};

}  // namespace cairn::draft
