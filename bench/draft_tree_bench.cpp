// What trees of drafts could gain over chains, of recorded texts: chances calibrated as they go,
// rows chosen while they pay, what steps take given. Nothing is computed but a draft model's
// choices.
//   draft_tree_bench texts VOCABULARY FILE…
//   draft_tree_bench models TARGET DRAFT EXIT_LAYER FILE…
// texts: recycle, lookup (up to four, three choices) and both. models: the draft model's first two
// choices behind each token against the target's likeliest; of its layers EXIT_LAYER run, 0: all.
// FILE: a text, or a transcript (*.json), whose answers are said.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/transcript.h"
#include "engine/engine.h"
#include "engine/model_text.h"

namespace {

using namespace cairn;
using bench::read_turns;
using bench::StepCurve;
using bench::Turn;
using Tokens = std::vector<Token>;

// As measured; and what kernels are meant to reach there.
const std::array kCurves = {
    StepCurve{"measured", bench::kLlamaCurve.points},
    StepCurve{"goal", {{1, 1}, {2, 1.05}, {4, 1.08}, {8, 1.33}, {16, 2}, {32, 4}}},
};
constexpr size_t kNodesMost = 16;

// How often what was drafted like this was right, with what is expected before it is known.
class Rates {
 public:
  double of(uint32_t kind, double expected) const {
    const auto found = rates_.find(kind);
    const auto [right, total] = found == rates_.end() ? std::pair(0.0, 0.0) : found->second;
    return (right + 4 * expected) / (total + 4);
  }
  void count(uint32_t kind, bool is_right) {
    auto& [right, total] = rates_[kind];
    constexpr double kForgotten = 1.0 / 500;
    right += (is_right ? 1 : 0) - kForgotten * right;
    total += 1 - kForgotten * total;
  }

 private:
  std::map<uint32_t, std::pair<double, double>> rates_;
};

struct Node {
  Token token;
  int32_t parent = -1;  // -1: what is known.
  int32_t depth = 0;
  double reach = 1;
};

struct Figures {
  double tokens = 0, steps = 0, time = 0, rows = 0;

  double rate() const { return tokens / time; }
  Figures& operator+=(const Figures& other) {
    tokens += other.tokens;
    steps += other.steps;
    time += other.time;
    rows += other.rows;
    return *this;
  }
};

// How many of the nodes, which descend by reach, make a token cheapest. `cost`: of what the drafts
// themselves take.
template <class Cost>
size_t best_count(const std::vector<Node>& nodes, const StepCurve& curve, Cost cost) {
  double sum = 1, best = 1 / (curve.at(1) + cost(0));
  size_t count = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    sum += nodes[i].reach;
    const double rate = sum / (curve.at(i + 2) + cost(i + 1));
    if (rate > best) {
      best = rate;
      count = i + 1;
    }
  }
  return count;
}

// What was said behind ends of texts of several lengths: the last different ones first.
class Successors {
 public:
  static constexpr std::array<size_t, 8> kLengths = {1, 2, 3, 4, 6, 8, 12, 16};
  static constexpr size_t kChoicesMost = 4;

  void learn(std::span<const Token> text, Token next) {
    for (size_t i = 0; i < kLengths.size() && kLengths[i] <= text.size(); ++i) {
      Choices& choices = tables_[i][key(text.last(kLengths[i]))];
      auto found = std::find_if(choices.begin(), choices.end(),
                                [next](const Choice& each) { return each.token == next; });
      if (found == choices.end()) {
        if (choices.size() == kChoicesMost) choices.pop_back();
        choices.push_back({next, 0});
        found = choices.end() - 1;
      }
      ++found->count;
      std::rotate(choices.begin(), found, found + 1);
    }
  }

  struct Choice {
    Token token;
    uint32_t count;
  };
  using Choices = std::vector<Choice>;
  // Of the longest end that was there; its place in kLengths, from `least` on; null: none was.
  const Choices* find(std::span<const Token> text, size_t least, size_t most, size_t& place) const {
    for (place = most + 1; place-- > least;) {
      if (kLengths[place] > text.size()) continue;
      const auto found = tables_[place].find(key(text.last(kLengths[place])));
      if (found != tables_[place].end()) return &found->second;
    }
    return nullptr;
  }

 private:
  static uint64_t key(std::span<const Token> tokens) {
    uint64_t hash = 1469598103934665603u;
    for (const Token token : tokens) {
      hash = (hash ^ uint64_t(uint32_t(index_of(token)))) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    return hash;
  }
  std::array<std::unordered_map<uint64_t, Choices>, kLengths.size()> tables_;
};

// A drafter of trees, or of chains, from what was said before.
class TextDrafts {
 public:
  struct Form {
    const char* name;
    size_t least, most;  // Places in Successors::kLengths.
    size_t width;        // Choices behind a token; 1: chains.
  };
  explicit TextDrafts(const Form& form) : form_(form) {}

  void read(std::span<const Token> text) {
    for (const Token token : text) add(token);
  }
  // The answer behind what was read.
  Figures answer(std::span<const Token> said, const StepCurve& curve) {
    Figures figures;
    for (size_t at = 0; at < said.size();) {
      const std::vector<Node> nodes = draft();
      const size_t count = best_count(nodes, curve, [](size_t) { return 0.0; });
      size_t accepted = 0;
      int32_t end = -1;
      for (size_t i = 0; i < count && at + accepted + 1 < said.size(); ++i) {
        if (nodes[i].parent != end || nodes[i].token != said[at + accepted]) continue;
        end = int32_t(i);
        ++accepted;
      }
      figures += {double(accepted + 1), 1, curve.at(count + 1), double(count + 1)};
      for (size_t i = 0; i <= accepted; ++i) add(said[at + i]);
      at += accepted + 1;
    }
    return figures;
  }

 private:
  struct Offered {
    Token token;
    uint32_t kind;
    double chance;
  };
  std::vector<Offered> choices_behind(std::span<const Token> text) const {
    std::vector<Offered> offered;
    size_t place = 0;
    size_t most = form_.most;
    while (offered.size() < form_.width) {
      const Successors::Choices* const found = said_.find(text, form_.least, most, place);
      if (found == nullptr) break;
      for (const Successors::Choice& choice : *found) {
        const bool is_known = std::any_of(offered.begin(), offered.end(), [&](const Offered& each) {
          return each.token == choice.token;
        });
        if (is_known || offered.size() == form_.width) continue;
        const uint32_t kind =
            uint32_t(place * 100 + offered.size() * 10 + std::min<uint32_t>(choice.count, 4));
        const double expected = double(place + 2) / 10 / double(1 + 3 * offered.size());
        offered.push_back({choice.token, kind, rates_.of(kind, expected)});
      }
      if (place == form_.least) break;
      most = place - 1;
    }
    return offered;
  }
  // The likeliest first.
  std::vector<Node> draft() const {
    std::vector<Node> nodes, open;
    Tokens text(text_.end() - std::ptrdiff_t(std::min<size_t>(text_.size(), 32)), text_.end());
    const size_t known = text.size();
    const auto expand = [&](int32_t parent) {
      text.resize(known);
      std::vector<Token> path;
      for (int32_t at = parent; at >= 0; at = nodes[size_t(at)].parent) {
        path.push_back(nodes[size_t(at)].token);
      }
      text.insert(text.end(), path.rbegin(), path.rend());
      const double reach = parent < 0 ? 1 : nodes[size_t(parent)].reach;
      for (const Offered& choice : choices_behind(text)) {
        open.push_back({choice.token, parent, int32_t(path.size()), reach * choice.chance});
      }
    };
    expand(-1);
    while (nodes.size() < kNodesMost && !open.empty()) {
      const auto next = std::max_element(
          open.begin(), open.end(), [](const Node& a, const Node& b) { return a.reach < b.reach; });
      nodes.push_back(*next);
      open.erase(next);
      expand(int32_t(nodes.size()) - 1);
    }
    return nodes;
  }
  void add(Token token) {
    for (const Offered& choice : choices_behind(text_)) {
      rates_.count(choice.kind, choice.token == token);
    }
    said_.learn(text_, token);
    text_.push_back(token);
  }

  Form form_;
  Tokens text_;
  Successors said_;
  Rates rates_;
};

void print_head() {
  fmt::print("{:22} {:22} {:9} {:>13} {:>13} {:>8} {:>8} {:>7}\n", "text", "drafts", "rows cost",
             "tokens a step", "(tree: rows)", "chain", "tree", "gain");
}

void print_row(std::string_view text, std::string_view drafts, const StepCurve& curve,
               const Figures& chain, const Figures& tree) {
  fmt::print(
      "{:22} {:22} {:9} {:5.2f} {:5.2f}   {:6.1f} {:5.1f}   {:6.2f} x {:6.2f} x {:+6.1f} %\n",
      text.substr(text.rfind('/') + 1), drafts, curve.name, chain.tokens / chain.steps,
      tree.tokens / tree.steps, chain.rows / chain.steps, tree.rows / tree.steps, chain.rate(),
      tree.rate(), 100 * (tree.rate() / chain.rate() - 1));
}

Status compare_texts(const std::string& vocabulary, std::span<const std::string> paths) {
  CAIRN_TRY(const gguf::File file, gguf::File::open(vocabulary));
  CAIRN_TRY(const std::unique_ptr<ModelText> text, ModelText::load(file));
  print_head();
  constexpr size_t kLast = Successors::kLengths.size() - 1;
  for (const std::string& path : paths) {
    CAIRN_TRY(const std::vector<Turn> turns, read_turns(path, *text->tokenizer()));
    for (const TextDrafts::Form& form : {TextDrafts::Form{"recycle", 0, 0, 4},
                                         {"lookup", 1, kLast, 3},
                                         {"lookup, recycle", 0, kLast, 4}}) {
      for (const StepCurve& curve : kCurves) {
        std::array<Figures, 2> figures;
        for (const bool is_tree : {false, true}) {
          TextDrafts drafts({form.name, form.least, form.most, is_tree ? form.width : 1});
          for (const Turn& turn : turns) {
            drafts.read(turn.asked);
            figures[is_tree ? 1 : 0] += drafts.answer(turn.answered, curve);
          }
        }
        print_row(path, form.name, curve, figures[0], figures[1]);
      }
    }
  }
  return Ok{};
}

// What a model says behind each token of a text: its likeliest token and the second one.
struct Said {
  Token first, second;
  float first_chance, second_chance;
};

Result<std::vector<Said>> read_by(Engine& engine, std::span<const Token> text) {
  memory::Sequence sequence = engine.memory().new_sequence();
  std::vector<Said> said;
  const size_t rows = size_t(engine.runner().row_count_max());
  std::vector<int32_t> outputs(rows);
  std::iota(outputs.begin(), outputs.end(), 0);
  for (size_t at = 0; at < text.size(); at += rows) {
    const std::span<const Token> slice = text.subspan(at, std::min(rows, text.size() - at));
    const StepItem item{
        .sequence = &sequence, .tokens = slice, .outputs = std::span(outputs).first(slice.size())};
    CAIRN_TRY(engine.step({&item, 1}, [&](size_t, const StepOutputs& made) {
      for (int32_t row = 0; row < made.count(); ++row) {
        const std::span<const float> logits = made.logits(row);
        size_t first = 0, second = 1;
        double sum = 0;
        for (size_t i = 0; i < logits.size(); ++i) {
          if (logits[i] > logits[first]) {
            second = std::exchange(first, i);
          } else if (i != first && (second == first || logits[i] > logits[second])) {
            second = i;
          }
        }
        for (const float logit : logits) sum += std::exp(double(logit) - double(logits[first]));
        const double other = std::exp(double(logits[second]) - double(logits[first]));
        said.push_back(
            {Token(int32_t(first)), Token(int32_t(second)), float(1 / sum), float(other / sum)});
      }
      return int32_t(slice.size());
    }));
  }
  return said;
}

class ModelDrafts {
 public:
  // `cost`: of a token of the draft model, in parts of a step of one row.
  ModelDrafts(const StepCurve& curve, double cost, bool is_tree)
      : curve_(curve), cost_(cost), is_tree_(is_tree) {}

  Figures answer(const std::vector<Said>& drafted, const std::vector<Token>& right) {
    Figures figures;
    for (size_t at = 0; at < right.size();) {
      const Choice choice = choose(std::span(drafted).subspan(at));
      size_t depth = 0;
      while (depth < choice.chain && at + depth + 1 < right.size() &&
             drafted[at + depth].first == right[at + depth]) {
        ++depth;
      }
      const bool is_beside = depth < choice.chain && choice.beside[depth] &&
                             drafted[at + depth].second == right[at + depth];
      const size_t accepted = depth + (is_beside ? 1 : 0);
      const double rows = double(choice.rows);
      figures +=
          {double(accepted + 1), 1, curve_.at(choice.rows) + double(choice.chain) * cost_, rows};
      // Who was compared, right or wrong: all up to the first wrong one.
      for (size_t i = 0; i <= depth && at + i < right.size(); ++i) {
        const Said& said = drafted[at + i];
        rates_.count(kind_of(said, false), said.first == right[at + i]);
        rates_.count(kind_of(said, true), said.second == right[at + i]);
      }
      at += accepted + 1;
    }
    return figures;
  }

 private:
  struct Choice {
    size_t chain = 0, rows = 1;
    std::array<bool, kNodesMost> beside{};  // At each depth, the second choice too.
  };
  static uint32_t kind_of(const Said& said, bool is_second) {
    const float chance = is_second ? said.second_chance : said.first_chance;
    return uint32_t(std::min(9.0f, chance * 10)) + (is_second ? 100 : 0);
  }
  Choice choose(std::span<const Said> drafted) const {
    Choice best;
    double best_rate = 1 / curve_.at(1), reach = 1, sum = 1;
    std::vector<std::pair<double, size_t>> seconds;  // Reach and depth.
    for (size_t chain = 1; chain <= std::min(kNodesMost, drafted.size()); ++chain) {
      const Said& said = drafted[chain - 1];
      if (is_tree_) {
        seconds.push_back({reach * rates_.of(kind_of(said, true), said.second_chance), chain - 1});
      }
      reach *= rates_.of(kind_of(said, false), said.first_chance);
      sum += reach;
      std::sort(seconds.rbegin(), seconds.rend());
      double with_seconds = sum;
      for (size_t count = 0; count <= seconds.size() && chain + count <= kNodesMost; ++count) {
        if (count > 0) with_seconds += seconds[count - 1].first;
        const double rate = with_seconds / (curve_.at(chain + count + 1) + double(chain) * cost_);
        if (rate <= best_rate) continue;
        best_rate = rate;
        best = {.chain = chain, .rows = chain + count + 1};
        for (size_t i = 0; i < count; ++i) best.beside[seconds[i].second] = true;
      }
    }
    return best;
  }

  const StepCurve& curve_;
  double cost_;
  bool is_tree_;
  Rates rates_;
};

Status compare_models(const std::string& target_path, const std::string& draft_path,
                      int32_t exit_layer, std::span<const std::string> paths) {
  // What it takes does not matter.
  EngineOptions options{.thread_count = 1, .row_count_max = 64};
  CAIRN_TRY(gguf::File target_file, gguf::File::open(target_path));
  CAIRN_TRY(const std::unique_ptr<Engine> target, Engine::load(std::move(target_file), options));
  CAIRN_TRY(gguf::File draft_file, gguf::File::open(draft_path));
  options.program.exit_layer = exit_layer;
  CAIRN_TRY(const std::unique_ptr<Engine> draft, Engine::load(std::move(draft_file), options));
  print_head();
  for (const std::string& path : paths) {
    CAIRN_TRY(const std::vector<Turn> turns, read_turns(path, *target->tokenizer()));
    Tokens text;
    for (const Turn& turn : turns) {
      text.insert(text.end(), turn.asked.begin(), turn.asked.end());
      text.insert(text.end(), turn.answered.begin(), turn.answered.end());
    }
    text.resize(std::min(text.size(), size_t(target->options().context_tokens)));
    CAIRN_TRY(const std::vector<Said> drafted, read_by(*draft, text));
    CAIRN_TRY(const std::vector<Said> said, read_by(*target, text));
    Tokens right;
    size_t first = 0, second = 0;
    for (size_t i = 0; i < said.size(); ++i) {
      right.push_back(said[i].first);
      first += drafted[i].first == said[i].first ? 1 : 0;
      second += drafted[i].second == said[i].first ? 1 : 0;
    }
    const double count = double(said.size());
    fmt::print("{}: the first choice is right {:.1f} % of the time, the second {:.1f} %\n", path,
               100 * double(first) / count, 100 * double(second) / count);
    for (const double cost : {0.05, 0.15}) {
      for (const StepCurve& curve : kCurves) {
        const Figures chain = ModelDrafts(curve, cost, false).answer(drafted, right);
        const Figures tree = ModelDrafts(curve, cost, true).answer(drafted, right);
        print_row(path, fmt::format("model, {:.2f} a token", cost), curve, chain, tree);
      }
    }
  }
  return Ok{};
}

int usage() {
  fmt::print(stderr,
             "draft_tree_bench texts VOCABULARY FILE…\n"
             "draft_tree_bench models TARGET DRAFT EXIT_LAYER FILE…\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> all(argv + 1, argv + argc);
  if (all.empty()) return usage();
  Status compared = Ok{};
  if (all[0] == "texts" && all.size() > 2) {
    compared = compare_texts(all[1], std::span(all).subspan(2));
  } else if (all[0] == "models" && all.size() > 4) {
    compared = compare_models(all[1], all[2], std::atoi(all[3].c_str()), std::span(all).subspan(4));
  } else {
    return usage();
  }
  if (compared) return 0;
  fmt::print(stderr, "draft_tree_bench: {}\n", compared.error().message);
  return 1;
}
