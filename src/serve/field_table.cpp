// The lines of the table.
#include "sample/params.h"
#include "serve/fields.h"

namespace cairn::serve {

namespace {

using K = FieldKind;
constexpr double kTokensMax = 1 << 30;
constexpr double kTextBytesMax = 32 << 20;

constexpr Field kFields[] = {
    {"model", K::text, kChat | kCompletion | kEmbedding, 0, 512, "the model that is served",
     "the model's name, or nothing"},
    {"messages", K::list, kChat | kApplyTemplate, 1, 8192, "",
     "the conversation: objects with role (system, developer, user, assistant, tool) and content, "
     "a string or a list of parts of type text; of assistants also tool_calls and "
     "reasoning_content, of tools tool_call_id",
     true},
    {"prompt", K::any, kCompletion, 0, 0, "",
     "the text that is continued: a string, a list of strings, token ids, or lists of these", true},
    {"suffix", K::text, kCompletion, 0, kTextBytesMax, "",
     "what stands behind the text that is made, for models with tokens for that"},
    {"echo", K::boolean, kCompletion, 0, 0, "false", "the answer's text begins with the prompt's"},
    {"input", K::any, kEmbedding, 0, 0, "",
     "what is embedded: a string, a list of strings, token ids, or lists of these", true},
    {"encoding_format", K::text, kEmbedding, 0, 16, "float",
     "float: numbers; base64: the bytes of little-endian 32-bit floats"},
    {"dimensions", K::integer, kEmbedding, 1, 1 << 20, "all",
     "the first numbers of each vector, normalised again"},
    {"max_tokens", K::integer, kAnswers, -1, kTokensMax, "-1",
     "the most tokens of an answer; -1: as many as the model likes; 0: read the prompt only"},
    {"max_completion_tokens", K::integer, kChat, -1, kTokensMax, "-1",
     "the same, before max_tokens"},
    {"n", K::integer, kAnswers, 1, 16, "1", "answers to each prompt; they share its memory"},
    {"best_of", K::integer, kCompletion, 1, 1, "1", "no other value than 1 is known"},
    {"stop", K::texts, kAnswers, 0, 16, "", "texts that end the answer, without them"},
    {"stream", K::boolean, kAnswers, 0, 0, "false", "send pieces as they are made"},
    {"stream_options", K::object, kAnswers, 0, 0, "", "include_usage: a last piece with the usage"},
    {"seed", K::integer, kAnswers, -1, 9007199254740991.0, "a new one",
     "of the random numbers: equal seeds give equal answers; -1: a new one"},
    {"logit_bias", K::any, kAnswers, 0, 0, "",
     "added to logits: {\"15043\": 1.5}, or [[15043, 1.5], [\"text\", false]]; false: never"},
    {"logprobs", K::any, kAnswers, 0, 0, "false",
     "chat: true, to have the probability of each token; completions: of how many likeliest "
     "tokens, 0 to 100"},
    {"top_logprobs", K::integer, kChat, 0, 100, "0",
     "with logprobs: how many of the likeliest tokens are told too"},
    {"response_format", K::object, kChat, 0, 0, "",
     "type text, json_object, or json_schema with json_schema.schema"},
    {"json_schema", K::object, kAnswers, 0, 0, "", "what the answer is JSON of"},
    {"grammar", K::text, kAnswers, 0, 256 << 10, "", "what the answer looks like, in GBNF"},
    {"regex", K::text, kAnswers, 0, 64 << 10, "", "a regular expression that the answer matches"},
    {"choices", K::texts, kAnswers, 0, 65536, "", "texts of which the answer is one"},
    {"tools", K::list, kChat | kApplyTemplate, 0, 1024, "", "what the model may call"},
    {"tool_choice", K::any, kChat, 0, 0, "auto",
     "none, auto, required, or an object that names a function"},
    {"parallel_tool_calls", K::boolean, kChat, 0, 0, "true",
     "whether one answer may have several calls; false is refused"},
    {"reasoning_effort", K::text, kChat, 0, 32, "the template's",
     "none: no reasoning; others are told to the template"},
    {"reasoning_tokens", K::integer, kChat, -1, kTokensMax, "-1",
     "the most tokens of reasoning; then its end is forced"},
    {"chat_template_kwargs", K::object, kChat | kApplyTemplate, 0, 0, "",
     "variables of the chat template, such as enable_thinking"},
    {"continue_final_message", K::boolean, kChat, 0, 0, "false",
     "the last message, an assistant's, is the beginning of the answer, which goes on from there"},
    {"add_generation_prompt", K::boolean, kApplyTemplate, 0, 0, "true",
     "the prompt ends where the answer begins"},
    {"content", K::text, kTokenize, 0, kTextBytesMax, "", "the text", true},
    {"add_special", K::boolean, kTokenize, 0, 0, "false",
     "with the tokens that the model wants around a text"},
    {"parse_special", K::boolean, kTokenize, 0, 0, "true",
     "texts of special tokens are these tokens"},
    {"with_pieces", K::boolean, kTokenize, 0, 0, "false", "each id with its text"},
    {"tokens", K::list, kDetokenize, 0, 1 << 20, "", "token ids", true},
    {"user", K::text, kChat | kCompletion | kEmbedding, 0, 4096, "", "is not looked at"},
    {"samplers", K::any, kAnswers, 0, 0, "docs/sampling.md",
     "the samplers in their order: names, in a list or with \";\" between them"},
    {"dry_sequence_breakers", K::texts, kAnswers, 0, 64, "docs/sampling.md",
     "DRY: texts that end repeated sequences"},
};

Field field_of(const sample::SamplingField& sampling) {
  const K kind = sampling.flag != nullptr    ? K::boolean
                 : sampling.count != nullptr ? K::integer
                                             : K::number;
  return {sampling.name,      kind,        kAnswers, sampling.min, sampling.max,
          "docs/sampling.md", sampling.doc};
}

}  // namespace

std::span<const Field> all_fields() {
  static const std::vector<Field> fields = [] {
    std::vector<Field> all(std::begin(kFields), std::end(kFields));
    for (const sample::SamplingField& sampling : sample::sampling_fields()) {
      // Requests have other names for these.
      if (sampling.name == "n_probs" || sampling.name == "post_sampling_probs") continue;
      all.push_back(field_of(sampling));
    }
    return all;
  }();
  return fields;
}

}  // namespace cairn::serve
