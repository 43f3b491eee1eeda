// The chain and the choice.
#include "sample/sampler.h"

#include <algorithm>
#include <limits>
#include <map>

#include "sample/dry_breakers.h"
#include "sample/noise.h"
#include "tokenize/tokenizer.h"

namespace cairn::sample {

namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

const SamplerStage* stage_named(std::string_view name) {
  const auto stages = all_stages();
  const auto at = std::find_if(stages.begin(), stages.end(),
                               [name](const SamplerStage* stage) { return stage->name == name; });
  CHECK(at != stages.end());
  return *at;
}

// The stages that do something, in their order. What learns chooses, so it comes last.
std::vector<const SamplerStage*> stages_of(const SamplingParams& params) {
  std::vector<const SamplerStage*> stages;
  if (params.mirostat != 0) {
    stages = {stage_named("temperature"), stage_named("mirostat")};
  } else {
    for (const std::string_view name : params.samplers) stages.push_back(stage_named(name));
  }
  std::erase_if(stages, [&](const SamplerStage* stage) { return !stage->is_on(params); });
  std::stable_partition(stages.begin(), stages.end(),
                        [](const SamplerStage* stage) { return stage->learn == nullptr; });
  while (stages.size() > 1 && stages[stages.size() - 2]->learn != nullptr) stages.pop_back();
  return stages;
}

// Whether no noise matters, whatever the stages before leave.
bool takes_likeliest(const SamplerStage* stage, const SamplingParams& params) {
  return stage->name == "temperature" && params.temperature <= 0 && params.dynatemp_range <= 0;
}

}  // namespace

bool Sampler::needs_tokenizer(const SamplingParams& params) {
  const auto stages = stages_of(params);
  const bool has_words = std::any_of(stages.begin(), stages.end(),
                                     [](const SamplerStage* stage) { return stage->needs_words; });
  const bool has_text = std::any_of(params.logit_bias.begin(), params.logit_bias.end(),
                                    [](const LogitBias& bias) { return !bias.text.empty(); });
  const bool has_breakers =
      !params.dry_breakers.empty() &&
      std::find(stages.begin(), stages.end(), stage_named("dry")) != stages.end();
  return has_words || has_text || has_breakers || params.ignore_eos;
}

Sampler::Sampler(const SamplingParams& params, const tokenize::Tokenizer* tokenizer)
    : params_(params), tokenizer_(tokenizer) {
  CHECK(tokenizer != nullptr || !needs_tokenizer(params));
  if (params_.mirostat != 0) params_.dynatemp_range = 0;  // Its temperature is a plain one.
  collect_biases(tokenizer);
  build_chain();
}

void Sampler::collect_biases(const tokenize::Tokenizer* tokenizer) {
  std::map<Token, float> biases;
  for (const LogitBias& bias : params_.logit_bias) {
    if (bias.text.empty()) {
      biases[bias.token] += bias.bias;
    } else {
      for (const Token token : tokenizer->encode(bias.text)) biases[token] += bias.bias;
    }
  }
  for (size_t i = 0; params_.ignore_eos && i < tokenizer->token_count(); ++i) {
    if (tokenizer->is_end_of_generation(Token(i))) biases[Token(i)] = kNone;
  }
  for (const auto& [token, bias] : biases) {
    biased_.push_back(token);
    biases_.push_back(bias);
  }
}

void Sampler::build_chain() {
  chain_ = stages_of(params_);
  if (!chain_.empty() && chain_.back()->learn != nullptr) learner_ = chain_.back();
  // Where the likeliest is taken in the end, what keeps it need not run.
  const auto end = std::find_if(chain_.begin(), chain_.end(), [&](const SamplerStage* stage) {
    return takes_likeliest(stage, params_);
  });
  if (end != chain_.end()) {
    const auto needed = std::stable_partition(
        chain_.begin(), end, [](const SamplerStage* stage) { return !stage->keeps_likeliest; });
    chain_.erase(needed, end);
  }
  const bool has_dry = std::any_of(chain_.begin(), chain_.end(),
                                   [](const SamplerStage* stage) { return stage->name == "dry"; });
  if (!has_dry) return;
  breakers_ = tokenizer_ != nullptr
                  ? std::make_shared<const DryBreakers>(*tokenizer_, params_.dry_breakers)
                  : std::make_shared<const DryBreakers>(std::vector<std::vector<Token>>());
}

Result<Token> Sampler::sample(const SampleInput& input) {
  logits_ = input.logits;
  candidates_.reset(input.logits, input.allowed);
  if (!biased_.empty()) {
    candidates_.change(biased_, [&](size_t i, float logit) { return logit + biases_[i]; });
  }
  StageContext context{.params = params_,
                       .position = input.position,
                       .history = input.history,
                       .tokenizer = tokenizer_,
                       .breakers = breakers_.get()};
  if (learner_ != nullptr) context.before = state_.before(input.position, input.history);
  for (const SamplerStage* stage : chain_) {
    if (candidates_.empty()) break;
    stage->apply(candidates_, context);
  }
  if (candidates_.empty()) {
    return fail(ErrorCode::invalid_data,
                "the model's output: expected at least one {}logit that is a number, found {} NaN "
                "or -infinity",
                input.allowed != nullptr ? "allowed " : "", input.logits.size());
  }
  chosen_ = choose(input.position);
  if (learner_ != nullptr) {
    learner_->learn(candidates_, chosen_, context);
    state_.record(input.position, chosen_, context.memory);
  }
  return chosen_;
}

// The largest logit with noise; of equal ones the lowest id. Noise is drawn in full only for tokens
// whose random word says that they may win, and not at all for most of a large vocabulary.
Token Sampler::choose(int32_t position) {
  const Passes& loops = passes();
  const float floor = candidates_.max_logit() - (kNoiseMax - kNoiseMin);
  const NoiseKey key{params_.seed, uint32_t(position), uint32_t(NoiseStream::choice)};
  Token best = Token(-1);
  float best_score = kNone;
  uint32_t words[kChunk];
  candidates_.for_each_chunk([&](const Candidate* tokens, size_t first, const float* values,
                                 size_t count) {
    const float largest = loops.largest(values, count);
    if (largest < floor || largest + kNoiseMax < best_score) return;
    // The noise of u is above d only where u < e^-d: what lies above that word can be passed
    // over.
    const uint32_t word_max = word_for_noise(best_score - largest);
    const bool is_run = tokens == nullptr && word_max != ~uint32_t(0);
    if (is_run) loops.noise_words(key, uint32_t(first), count, words);
    for (size_t i = 0; i < count; ++i) {
      if (!(values[i] >= floor)) continue;
      const Token token = tokens != nullptr ? tokens[i].token : Token(first + i);
      const uint32_t word =
          is_run ? words[i] : noise_word(params_.seed, position, NoiseStream::choice, token);
      if (word > word_max) continue;
      const float score = std::min(values[i], std::numeric_limits<float>::max()) + noise_of(word);
      if (score > best_score || (score == best_score && token < best)) {
        best = token;
        best_score = score;
      }
    }
  });
  return best;
}

LogProbabilities Sampler::probabilities() {
  const size_t count = size_t(params_.probability_count);
  return params_.post_sampling_probs ? log_probabilities(candidates_, chosen_, count)
                                     : log_probabilities(logits_, chosen_, count);
}

}  // namespace cairn::sample
