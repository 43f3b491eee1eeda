// For code between code (llama.cpp's infill sampler): ends the text where the ends together are
// likely, gives each token the probability of those that it begins or that begin it, and keeps what
// is clearly ahead.
#include <algorithm>

#include "base/elementary.h"
#include "sample/stage.h"
#include "tokenize/tokenizer.h"

namespace cairn::sample {

namespace {

constexpr size_t kCountMax = 256;  // Pairs are compared; orders with infill have top_k before it.
constexpr float kShareMin = 0.2f;

// Ends and marks have no text.
std::string_view text_of(Token token, const tokenize::Tokenizer& words) {
  return words.is_control(token) ? std::string_view() : words.piece(token);
}

// A token whose text begins another's, or that another begins: the less likely one of both gives
// its share to the other.
void join_beginnings(std::span<const Candidate> list, std::vector<float>& shares,
                     const tokenize::Tokenizer& words) {
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string_view beginning = text_of(list[i].token, words);
    for (size_t j = 0; j < list.size() && shares[i] > 0; ++j) {
      if (i == j || shares[j] == 0 || beginning.empty()) continue;
      if (!text_of(list[j].token, words).starts_with(beginning)) continue;
      const bool is_less = shares[j] > shares[i];
      const size_t to = is_less ? j : i, from = is_less ? i : j;
      shares[to] += shares[from];
      shares[from] = 0;
    }
  }
}

std::optional<Token> end_of(const tokenize::Tokenizer& words) {
  const auto& ids = words.special_ids();
  return ids.eot ? ids.eot : ids.eos;
}

bool is_on(const SamplingParams&) {
  return true;
}

void apply(Candidates& candidates, StageContext& context) {
  const tokenize::Tokenizer& words = *context.tokenizer;
  candidates.keep_top(kCountMax);
  const float best = candidates.max_logit();
  const float total = float(candidates.exp_sums().total);
  const auto is_allowed = [&](Token token) { return candidates.is_allowed(token); };
  candidates.change_list([&](std::vector<Candidate>& list) {
    std::sort(list.begin(), list.end(), is_before);
    std::vector<float> shares;
    float ends = 0, others = 0;
    for (const Candidate& c : list) {
      shares.push_back(elementary::exp(c.logit - best) / total);
      (words.is_end_of_generation(c.token) ? ends : others) += shares.back();
    }
    if (3 * ends * float(list.size()) > others) {
      std::erase_if(list, [&](const Candidate& c) { return !words.is_end_of_generation(c.token); });
      return;
    }
    join_beginnings(list, shares, words);
    const auto keep = [&](float share_min) {
      size_t kept = 0;
      for (size_t i = 0; i < list.size(); ++i) {
        const bool is_end = words.is_end_of_generation(list[i].token);
        if (shares[i] == 0 || (shares[i] < share_min && !is_end)) continue;
        list[kept] = list[i];
        shares[kept++] = shares[i];
      }
      list.resize(kept);
      shares.resize(kept);
    };
    const auto is_text = [&](const Candidate& c) { return !words.is_end_of_generation(c.token); };
    std::vector<Candidate> all = list;
    keep(kShareMin);
    const auto text_count = std::count_if(list.begin(), list.end(), is_text);
    if (text_count == 0) {
      // Nothing stands out: the text ends, where it can.
      const std::optional<Token> end = end_of(words);
      list = {{end && is_allowed(*end) ? *end : all[0].token, 0.0f}};
      return;
    }
    float sum = 0;
    for (const float share : shares) sum += share;
    for (float& share : shares) share /= sum;
    keep(1.0f / float(text_count + 1));
  });
}

}  // namespace

extern const SamplerStage sampler_infill;
constinit const SamplerStage sampler_infill{
    .name = "infill", .letter = 'i', .needs_words = true, .is_on = is_on, .apply = apply};

}  // namespace cairn::sample
