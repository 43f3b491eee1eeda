// From the table of sampling to options and back.
#include "cli/options/sampling_arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

namespace cairn::cli {

namespace {

Result<uint64_t> parse_seed(const std::string& text) {
  uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, seed);
  if (read.ec == std::errc() && read.ptr == end) return seed;
  return fail(ErrorCode::invalid_argument,
              "--seed: expected a whole number from 0 to {}, or -1 for a new one, found \"{}\"",
              UINT64_MAX, text);
}

}  // namespace

void SamplingArguments::add_to(command_line::Options& command) {
  command.begin_group("Sampling", true);
  const sample::SamplingParams defaults;
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    // The longer name is llama.cpp's too.
    const std::string option =
        "--" + std::string(field.option) + (field.option == "temp" ? ",--temperature" : "");
    values_.emplace_back();
    flags_.push_back(false);
    if (field.flag != nullptr) {
      command.add_flag(option, flags_.back(), std::string(field.doc));
      continue;
    }
    command.add(option, values_.back(), std::string(field.doc))
        .takes(field.real != nullptr ? "X" : "N")
        .with_default_text(show(defaults, field));
  }
  for (const sample::SamplingList& list : sample::sampling_lists()) {
    lists_.emplace_back();
    const std::string option = "--" + std::string(list.option);
    command
        .add(option + (list.option == "logit-bias" ? ",-l" : ""), lists_.back(),
             std::string(list.doc))
        .repeatable()
        .with_default_text(std::string(list.default_text));
  }
  command
      .add("--seed,-s", seed_,
           "seed of the random numbers: the same seed gives the same answer; -1: a random one, "
           "which is shown")
      .takes("N")
      .with_default_text("a random one");
}

Result<session::SamplingChoice> SamplingArguments::read() const {
  session::SamplingChoice choice{.tells_seed = seed_ == "-1"};
  if (!seed_.empty() && !choice.tells_seed) {
    CAIRN_TRY(choice.seed, parse_seed(seed_));
  }
  sample::SamplingParams checked;
  const auto fields = sample::sampling_fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!values_[i] && !flags_[i]) continue;
    const double value = flags_[i] ? 1 : *values_[i];
    if (const Status status = set(checked, fields[i], value); !status) {
      return command_line::as_option(status.error());
    }
    choice.said.emplace_back(&fields[i], value);
  }
  for (size_t i = 0; i < lists_.size(); ++i) {
    if (lists_[i].empty()) continue;
    const sample::SamplingList& list = sample::sampling_lists()[i];
    if (const Status status = list.set(checked, lists_[i]); !status) {
      return command_line::as_option(status.error());
    }
    choice.lists.emplace_back(&list, lists_[i]);
  }
  return choice;
}

}  // namespace cairn::cli
