// The lines of the table.
#include "sample/params.h"
#include "serve/fields.h"

namespace cairn::serve {

namespace {

using K = FieldKind;
constexpr double kTokensMax = 1 << 30;
constexpr uint32_t kNamed = kChat | kCompletion | kEmbedding | kTokenize | kDetokenize |
                            kApplyTemplate | kLlama | kOllama | kOllamaEmbed | kOllamaShow |
                            kAnthropic | kResponses | kRerank | kSession | kVectors;
constexpr double kTextBytesMax = 32 << 20;

constexpr Field kFields[] = {
    {"model", K::text, kNamed, 0, 512, "the one that was used last",
     "the model's name; where one is served from a file, any"},
    {"messages", K::list, kChat | kApplyTemplate, 1, 8192, "",
     "the conversation: objects with role (system, developer, user, assistant, tool) and content, "
     "a string or a list of parts of type text; of assistants also tool_calls and "
     "reasoning_content, of tools tool_call_id",
     true},
    {"prompt", K::any, kCompletion, 0, 0, "",
     "the text that is continued: a string, a list of strings, token ids, or lists of these", true},
    {"suffix", K::text, kCompletion, 0, kTextBytesMax, "",
     "what stands behind the text that is made, for models with tokens for that"},
    {"echo", K::boolean, kCompletion, 0, 0, "false",
     "the answer's text begins with the prompt's, and with logprobs its lists with the prompt's "
     "tokens"},
    {"input", K::any, kEmbedding, 0, 0, "",
     "what is embedded: a string, a list of strings, token ids, or lists of these", true},
    {"content", K::any, kVectors, 0, 0, "", "the same as input, and goes before it"},
    {"input", K::any, kVectors, 0, 0, "",
     "what is embedded: a string, a list of strings, token ids, or lists of these"},
    {"embd_normalize", K::integer, kVectors, -1, 2, "2",
     "2: vectors have length 1, but for those of single tokens; -1: they are as the model has "
     "them"},
    {"encoding_format", K::text, kEmbedding, 0, 16, "float",
     "float: numbers; base64: the bytes of little-endian 32-bit floats"},
    {"dimensions", K::integer, kEmbedding | kOllamaEmbed, 1, 1 << 20, "all",
     "the first numbers of each vector, normalised again"},
    {"max_tokens", K::integer, kAnswers | kLlama, -1, kTokensMax, "-1",
     "the most tokens of an answer; -1: as many as the model likes; 0: read the prompt only"},
    {"max_completion_tokens", K::integer, kAnswers | kLlama, -1, kTokensMax, "-1",
     "the same, before max_tokens"},
    {"n_predict", K::integer, kAnswers | kLlama, -2, kTokensMax, "-1",
     "the same, before both; below 0: as many as the model likes"},
    {"n", K::integer, kChat | kCompletion, 1, 16, "1",
     "answers to each prompt; they share its memory"},
    {"best_of", K::integer, kCompletion, 1, 1, "1", "no other value than 1 is known"},
    {"stop", K::texts, kSampled & ~uint32_t(kMessages), 0, 16, "",
     "texts that end the answer, without them"},
    {"stop_sequences", K::texts, kMessages, 0, 16, "", "texts that end the answer, without them"},
    {"stream", K::boolean, kAnswers | kLlama | kMessages | kResponses, 0, 0, "false",
     "send pieces as they are made"},
    {"stream", K::boolean, kOllama, 0, 0, "true", "send pieces as they are made"},
    {"stream_options", K::object, kAnswers, 0, 0, "", "include_usage: a last piece with the usage"},
    {"seed", K::integer, kSampled, -1, 9007199254740991.0, "a new one",
     "of the random numbers: equal seeds give equal answers; -1: a new one"},
    {"logit_bias", K::any, kSampled, 0, 0, "",
     "added to logits: {\"15043\": 1.5}, or [[15043, 1.5], [\"text\", false]]; false: never"},
    {"logprobs", K::boolean, kOllama, 0, 0, "false", "the probability of each token"},
    {"logprobs", K::any, kAnswers, 0, 0, "false",
     "chat: true, to have the probability of each token; completions: of how many likeliest "
     "tokens, 0 to 100"},
    {"top_logprobs", K::integer, kChats | kOllama, 0, 100, "0",
     "with logprobs: how many of the likeliest tokens are told too"},
    {"response_format", K::object, kChats, 0, 0, "",
     "type text, json_object, or json_schema with json_schema.schema"},
    {"json_schema", K::object, kSampled, 0, 0, "", "what the answer is JSON of"},
    {"grammar", K::text, kSampled, 0, 256 << 10, "", "what the answer looks like, in GBNF"},
    {"regex", K::text, kAnswers, 0, 64 << 10, "", "a regular expression that the answer matches"},
    {"choices", K::texts, kAnswers, 0, 65536, "", "texts of which the answer is one"},
    {"draft", K::text, kSampled, 0, 256, "the server's",
     "who proposes tokens that the model then checks, which changes no token: auto, off, or kinds "
     "with commas between them"},
    {"speculative.n_max", K::integer, kSampled, 0, 64, "the server's",
     "the most tokens that are proposed at a time; 0: none"},
    {"prediction", K::object, kChat, 0, 0, "",
     "type content, and in content a text, or parts of one, that the answer is expected to be "
     "like: what is the same comes faster"},
    {"tools", K::list, kChats | kApplyTemplate | kOllamaChat | kAnthropic | kResponses, 0, 1024, "",
     "what the model may call"},
    {"tool_choice", K::any, kChats | kResponses, 0, 0, "auto",
     "none, auto, required, or an object that names a function"},
    {"parallel_tool_calls", K::boolean, kChats | kResponses, 0, 0, "true",
     "whether one answer may have several calls; where it may not, they fit the tools' schemas"},
    {"reasoning_effort", K::text, kChats | kApplyTemplate, 0, 32, "the template's",
     "none: no reasoning; others are told to the template"},
    {"reasoning_tokens", K::integer, kChats, -1, kTokensMax, "-1",
     "the most tokens of reasoning; then its end is forced"},
    {"chat_template_kwargs", K::object, kChats | kApplyTemplate, 0, 0, "",
     "variables of the chat template, such as enable_thinking"},
    {"continue_final_message", K::boolean, kChat, 0, 0, "false",
     "the last message, an assistant's, is the beginning of the answer, which goes on from there"},
    {"add_generation_prompt", K::boolean, kApplyTemplate | kChat, 0, 0, "true",
     "the prompt ends where the answer begins; of a chat completion, false only with "
     "continue_final_message"},
    {"content", K::text, kTokenize, 0, kTextBytesMax, "", "the text", true},
    {"add_special", K::boolean, kTokenize, 0, 0, "false",
     "with the tokens that the model wants around a text"},
    {"parse_special", K::boolean, kTokenize, 0, 0, "true",
     "texts of special tokens are these tokens"},
    {"with_pieces", K::boolean, kTokenize, 0, 0, "false", "each id with its text"},
    {"tokens", K::list, kDetokenize, 0, 1 << 20, "", "token ids", true},
    {"user", K::text, kChat | kCompletion | kEmbedding | kResponses, 0, 4096, "",
     "is not looked at"},
    {"prompt", K::any, kNative, 0, 0, "",
     "the text that is continued: a string, a list of strings and token ids, or a list of these",
     true},
    {"prompt", K::text, kInfill, 0, kTextBytesMax, "", "what the text in the gap begins with"},
    {"input_prefix", K::text, kInfill, 0, kTextBytesMax, "", "what stands before the gap"},
    {"input_suffix", K::text, kInfill, 0, kTextBytesMax, "", "what stands behind the gap"},
    {"input_extra", K::list, kInfill, 0, 1024, "",
     "other files: objects with filename and text; where there is no room for all, the first are "
     "left out"},
    {"return_tokens", K::boolean, kLlama, 0, 0, "false", "the answer's tokens, beside its text"},
    {"response_fields", K::list, kLlama, 0, 256, "all",
     "the members of the reply that are wanted; a/b: the member b of a, at the top by this name"},
    {"lora", K::list, kLlama, 0, 256, "those of /lora-adapters",
     "adapters of this request: objects with id and scale; others are not used"},
    {"adapters", K::list, kAdapters, 0, 256, "",
     "objects with id and scale; the list alone may be sent too", true},
    {"messages", K::list, kOllamaChat, 0, 8192, "",
     "the conversation: objects with role (system, user, assistant, tool), content, thinking, "
     "tool_calls and tool_name; none: nothing is answered"},
    {"prompt", K::text, kOllamaGenerate | kOllamaEmbed, 0, kTextBytesMax, "",
     "what is answered, or embedded; none: nothing is answered"},
    {"input", K::any, kOllamaEmbed, 0, 0, "", "what is embedded: a string or a list of strings"},
    {"truncate", K::boolean, kOllamaEmbed, 0, 0, "true",
     "texts that are longer than the context are cut off; else refused"},
    {"suffix", K::text, kOllamaGenerate, 0, kTextBytesMax, "",
     "what stands behind the text that is made, for models with tokens for that"},
    {"system", K::text, kOllamaGenerate, 0, kTextBytesMax, "", "what the model is told first"},
    {"template", K::text, kOllamaGenerate, 0, kTextBytesMax, "", "is refused"},
    {"raw", K::boolean, kOllamaGenerate, 0, 0, "false", "the prompt is all that the model reads"},
    {"context", K::list, kOllamaGenerate, 0, 1 << 20, "",
     "of an earlier reply, whose tokens go before the prompt's"},
    {"images", K::list, kOllamaGenerate, 0, 64, "", "are refused"},
    {"think", K::any, kOllama, 0, 0, "the template's",
     "whether the model reasons: true, false, or how much, which the template is told"},
    {"format", K::any, kOllama, 0, 0, "", "json, or a schema: what the answer is JSON of"},
    {"options", K::object, kOllama, 0, 0, "",
     "settings by the names of the other requests' fields, num_predict and num_ctx"},
    {"keep_alive", K::any, kOllama | kOllamaEmbed, 0, 0, "as long as there is room",
     "how long the model stays in memory: seconds, or \"5m\"; 0: not at all; below 0: as long as "
     "there is room; one that is served from a file always stays"},
    {"num_predict", K::integer, kOllamaOptions, -2, kTokensMax, "-1",
     "the most tokens of an answer; below 0: as many as the model likes"},
    {"num_ctx", K::integer, kOllamaOptions, 0, kTokensMax, "the server's",
     "the context that is needed; more than the server has is refused"},
    {"messages", K::list, kAnthropic, 1, 8192, "",
     "the conversation: objects with role (user, assistant) and content, a string or a list of "
     "blocks of type text, thinking, tool_use and tool_result",
     true},
    {"system", K::any, kAnthropic, 0, 0, "", "what the model is told first: a string, or blocks"},
    {"max_tokens", K::integer, kMessages, 0, kTokensMax, "",
     "the most tokens of an answer; 0: read the prompt only", true},
    {"tool_choice", K::object, kAnthropic, 0, 0, "auto",
     "type auto, any, none, or tool with the name of one"},
    {"thinking", K::object, kAnthropic, 0, 0, "disabled",
     "type enabled with budget_tokens, adaptive, or disabled"},
    {"output_config", K::object, kAnthropic, 0, 0, "",
     "format: type json_schema, and in schema what the answer is JSON of; effort: low, medium, "
     "high, xhigh or max, which the template is told where there is thinking"},
    {"input", K::any, kResponses, 0, 0, "",
     "a string, or a list of messages, calls, their outputs, and reasoning", true},
    {"instructions", K::text, kResponses, 0, kTextBytesMax, "", "what the model is told first"},
    {"max_output_tokens", K::integer, kResponses, 0, kTokensMax, "as many as the model likes",
     "the most tokens of an answer"},
    {"previous_response_id", K::text, kResponses, 0, 256, "",
     "the answer that this one follows; it is kept for a while"},
    {"store", K::boolean, kResponses, 0, 0, "true", "whether another request can follow"},
    {"text", K::object, kResponses, 0, 0, "", "format: type text, json_object, or json_schema"},
    {"reasoning", K::object, kResponses, 0, 0, "",
     "effort: none: no reasoning; others are told to the template"},
    {"metadata", K::object, kResponses, 0, 0, "", "is told again"},
    {"truncation", K::text, kResponses, 0, 16, "disabled", "no other value than disabled is known"},
    {"query", K::text, kRerank, 1, kTextBytesMax, "", "what is looked for", true},
    {"documents", K::list, kRerank, 1, 2048, "", "texts, or objects with text"},
    {"texts", K::list, kRerank, 1, 2048, "",
     "instead of documents: the reply is that of Text Embeddings Inference"},
    {"top_n", K::integer, kRerank, 1, 2048, "all", "how many of the best are told"},
    {"return_documents", K::boolean, kRerank, 0, 0, "false", "the texts are told too"},
    {"return_text", K::boolean, kRerank, 0, 0, "false", "the same beside texts"},
    {"raw_scores", K::boolean, kRerank, 0, 0, "false",
     "beside texts: scores as the model has them; else each is the sigmoid of that"},
    {"truncate", K::boolean, kRerank, 0, 0, "false",
     "texts that leave the context no room are cut off at their ends; else refused"},
    {"truncation_direction", K::text, kRerank, 0, 16, "right",
     "no other value than right is known"},
    {"name", K::text, kOllamaShow, 0, 512, "", "another word for model"},
    {"id", K::text, kSession | kSessionFork, 1, 128, "a new one",
     "the session's name: letters, digits, \".\", \"_\" and \"-\""},
    {"messages", K::list, kSession | kSessionAnswer, 0, 8192, "",
     "what is said in it, as chat completions have it; an assistant's may have token_ids, as saved "
     "conversations have them"},
    {"messages", K::list, kSessionMessages, 1, 8192, "",
     "what is said in it, as chat completions have it", true},
    {"vocabulary", K::text, kSession, 16, 16, "", "that token_ids belong to"},
    {"sampling", K::object, kSession, 0, 0, "",
     "of a saved conversation: by what its last answer goes on"},
    {"keep", K::integer, kSessionAnswer | kSessionRewind | kSessionFork, 0, 8192, "all",
     "the messages that stay, before others are added"},
    {"turns", K::integer, kSessionRewind, 1, 8192, "",
     "the turns that are taken back: a message of the user and what follows it, each"},
    {"snapshot", K::text, kSessionRewind | kSessionFork, 1, 128, "",
     "what was said when this snapshot was made"},
    {"continue_answer", K::boolean, kSessionAnswer, 0, 0, "false",
     "the last message, an answer that was stopped or cut off, is gone on with"},
    {"name", K::text, kSessionName, 1, 128, "", "of the snapshot or branch", true},
    {"receipt", K::boolean, kChats, 0, 0, "false",
     "each answer comes with a receipt (docs/receipts.md), and its id"},
    {"receipt", K::integer, kReceipt, 1, 1, "", "the format of the receipt that is the body", true},
    {"fingerprint", K::object, kReceipt, 0, 0, "", "what decides the bits", true},
    {"prompt", K::object, kReceipt, 0, 0, "", "its tokens", true},
    {"context", K::object, kReceipt, 0, 0, "", "its size, and what happens when it is full", true},
    {"form", K::object, kReceipt, 0, 0, "", "what the answer had to look like", true},
    {"sampling", K::object, kReceipt, 0, 0, "", "the seed and all parameters", true},
    {"answer", K::object, kReceipt, 0, 0, "", "its tokens, and digests of their logits", true},
    {"samplers", K::any, kSampled, 0, 0, "docs/sampling.md",
     "the samplers in their order: names, in a list or with \";\" between them"},
    {"dry_sequence_breakers", K::texts, kSampled, 0, 64, "docs/sampling.md",
     "DRY: texts that end repeated sequences"},
};

Field field_of(const sample::SamplingField& sampling) {
  const K kind = sampling.flag != nullptr    ? K::boolean
                 : sampling.count != nullptr ? K::integer
                                             : K::number;
  // OpenAI's requests have other names for these.
  const bool is_llama = sampling.name == "n_probs" || sampling.name == "post_sampling_probs";
  const uint32_t endpoints = is_llama ? kLlama : kSampled;
  return {sampling.name,      kind,        endpoints, sampling.min, sampling.max,
          "docs/sampling.md", sampling.doc};
}

}  // namespace

std::span<const Field> all_fields() {
  static const std::vector<Field> fields = [] {
    std::vector<Field> all(std::begin(kFields), std::end(kFields));
    for (const sample::SamplingField& sampling : sample::sampling_fields()) {
      all.push_back(field_of(sampling));
    }
    return all;
  }();
  return fields;
}

}  // namespace cairn::serve
