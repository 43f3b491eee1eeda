// The lines of the table.
#include "serve/reply_types.h"

namespace cairn::serve {

namespace {

constexpr ReplyType kTypes[] = {
    {"Error", "{error: object | string, type?: \"error\"}"},
    // What answers of all APIs have.
    {"Timings",
     "{cache_n: integer, prompt_n: integer, prompt_ms: number, prompt_per_token_ms: number,"
     " prompt_per_second: number, predicted_n: integer, predicted_ms: number,"
     " predicted_per_token_ms: number, predicted_per_second: number, draft_n?: integer,"
     " draft_n_accepted?: integer, drafts?: Drafts}"},
    {"Drafts",
     "{steps: integer, saved_ms: number, off_reason?: string,"
     " by: {*: {drafted: integer, accepted: integer, off_reason?: string}}}"},
    {"AnswerMemory",
     "{reused: integer, recomputed: integer, replayed: integer, left_out: integer,"
     " source: \"cache\" | \"disk\" | \"tier\" | \"peer\" | \"none\", reason?: string,"
     " session?: string, pinned?: integer, tier?: string, program?: string}"},
    {"Usage",
     "{prompt_tokens: integer, completion_tokens: integer, total_tokens: integer,"
     " prompt_tokens_details: {cached_tokens: integer},"
     " completion_tokens_details: {reasoning_tokens: integer,"
     " accepted_prediction_tokens?: integer, rejected_prediction_tokens?: integer}}"},
    {"TokenText", "{id: integer, token: string, bytes: [integer]}"},
    {"TokenLogprob",
     "{...TokenText, logprob: number, top_logprobs: [{...TokenText, logprob: number}]}"},
    {"TokenShare", "{...TokenText, prob: number, top_probs: [{...TokenText, prob: number}]}"},
    {"Finish", "\"stop\" | \"length\" | \"tool_calls\""},
    {"ObjectHead", "{id: string, created: integer, model: string, system_fingerprint: string}"},

    // OpenAI's chat and text completions.
    {"ToolCall", "{id: string, type: \"function\", function: {name: string, arguments: string}}"},
    {"ChatEnd",
     "{cut_by?: string, message_count?: integer, receipt_id?: string, receipt?: Receipt | null}"},
    {"ChatMessage",
     "{role: \"assistant\", content: string | null, reasoning_content?: string,"
     " tool_calls?: [ToolCall], refusal: null}"},
    {"ChatCompletion",
     "{...ObjectHead, object: \"chat.completion\", choices: [{index: integer,"
     " message: ChatMessage, logprobs: {content: [TokenLogprob], refusal: null} | null,"
     " finish_reason: Finish, ...ChatEnd}],"
     " usage: Usage, timings: Timings, memory: AnswerMemory}"},
    {"ChatDelta",
     "{role?: \"assistant\", content?: string, reasoning_content?: string,"
     " tool_calls?: [{index: integer, id?: string, type?: \"function\","
     " function: {name?: string, arguments: string}}]}"},
    {"ChatChunk",
     "{...ObjectHead, object: \"chat.completion.chunk\", choices: [{index: integer,"
     " delta: ChatDelta, logprobs: {content: [TokenLogprob]} | null,"
     " finish_reason: Finish | null}],"
     " usage?: Usage | null, timings?: Timings, memory?: AnswerMemory, ...ChatEnd}"},
    {"TextLogprobs",
     "{tokens: [string], token_logprobs: [number | null], top_logprobs: [{*: number} | null],"
     " text_offset: [integer]}"},
    {"TextChoice",
     "{index: integer, text: string, logprobs: TextLogprobs | null, cut_by?: string}"},
    {"TextCompletion",
     "{...ObjectHead, object: \"text_completion\", choices: [{...TextChoice,"
     " finish_reason: Finish}], usage: Usage, timings: Timings, memory: AnswerMemory}"},
    {"TextChunk",
     "{...ObjectHead, object: \"text_completion\", choices: [{...TextChoice,"
     " finish_reason: Finish | null}], usage?: Usage | null, timings?: Timings,"
     " memory?: AnswerMemory}"},
    {"InputTokens", "{object: \"response.input_tokens\", input_tokens: integer}"},

    // Vectors and scores.
    {"TextUsage", "{prompt_tokens: integer, total_tokens: integer}"},
    {"Embeddings",
     "{object: \"list\", model: string, data: [{object: \"embedding\", index: integer,"
     " embedding: [number] | string}], usage: TextUsage}"},
    {"TokenVectors", "[{index: integer, embedding: [[number]]}]"},
    {"TextScores", "[{index: integer, score: number, text?: string}]"},
    {"Ranking",
     "{object: \"list\", model: string, usage: TextUsage, results: [{index: integer,"
     " relevance_score: number, document?: {text: string}}]}"},

    // Models.
    {"Model",
     "{id: string, object: \"model\", created: integer, owned_by: string,"
     " max_model_len: integer, context_length: integer,"
     " state: \"not-loaded\" | \"loading\" | \"loaded\" | \"unloading\","
     " type: \"llm\" | \"embeddings\", aliases: [string], meta: {n_ctx: integer,"
     " n_vocab: integer, n_embd: integer, n_params: integer, architecture: string}}"},
    {"StudioModel",
     "{id: string, object: \"model\", type: \"llm\" | \"embeddings\", publisher: string,"
     " arch: string, compatibility_type: \"gguf\", quantization: string,"
     " state: \"loaded\" | \"not-loaded\", max_context_length: integer,"
     " loaded_context_length?: integer, capabilities: [string]}"},

    // OpenAI's responses.
    {"ResponseStatus", "\"in_progress\" | \"completed\" | \"incomplete\" | \"failed\""},
    {"ResponsePart",
     "{type: \"output_text\", text: string, annotations: [any], logprobs: [any]} |"
     " {type: \"reasoning_text\", text: string}"},
    {"ResponseItem",
     "{type: \"message\", id: string, status: ResponseStatus, role: \"assistant\","
     " content: [ResponsePart]} |"
     " {type: \"reasoning\", id: string, status: ResponseStatus, summary: [any],"
     " content: [ResponsePart]} |"
     " {type: \"function_call\", id: string, status: ResponseStatus, call_id: string,"
     " name: string, arguments: string}"},
    {"ResponseUsage",
     "{input_tokens: integer, input_tokens_details: {cached_tokens: integer},"
     " output_tokens: integer, output_tokens_details: {reasoning_tokens: integer},"
     " total_tokens: integer}"},
    {"Response",
     "{id: string, object: \"response\", created_at: integer, completed_at?: integer,"
     " status: ResponseStatus, error: {code: string, message: string} | null,"
     " incomplete_details: {reason: \"max_output_tokens\"} | null, model: string,"
     " output: [ResponseItem], usage: ResponseUsage | null,"
     " instructions: string | null, metadata: object | null,"
     " previous_response_id: string | null, reasoning: object | null, text: object | null,"
     " user: string | null, tools: [any], tool_choice: string | object,"
     " parallel_tool_calls: boolean, max_output_tokens: integer | null, temperature: number,"
     " top_p: number, store: boolean, truncation: \"disabled\", background: false,"
     " timings?: Timings, memory?: AnswerMemory, cut_by?: string}"},
    {"ResponseEvent",
     "{type: string, sequence_number: integer, response?: Response, output_index?: integer,"
     " item?: ResponseItem, item_id?: string, content_index?: integer, part?: ResponsePart,"
     " delta?: string, text?: string, logprobs?: [any], arguments?: string, name?: string}"},
    {"ResponseInputItems",
     "{object: \"list\", data: [{id: string, type: string, ...}], first_id: string | null,"
     " last_id: string | null, has_more: boolean}"},
    {"ResponseDeleted", "{id: string, object: \"response\", deleted: true}"},

    // Anthropic's messages.
    {"MessageUsage",
     "{input_tokens: integer, cache_creation_input_tokens: integer,"
     " cache_read_input_tokens: integer, output_tokens: integer}"},
    {"MessageBlock",
     "{type: \"text\", text: string} | {type: \"thinking\", thinking: string, signature: string} |"
     " {type: \"tool_use\", id: string, name: string, input: object}"},
    {"MessageStop",
     "{stop_reason: \"end_turn\" | \"max_tokens\" | \"stop_sequence\" | \"tool_use\" | null,"
     " stop_sequence: string | null}"},
    {"MessageStart",
     "{id: string, type: \"message\", role: \"assistant\", model: string,"
     " content: [MessageBlock], usage: MessageUsage, ...MessageStop}"},
    {"MessageEnd",
     "{usage: MessageUsage, timings: Timings, memory: AnswerMemory, cut_by?: string}"},
    {"Message", "{...MessageStart, ...MessageEnd}"},
    {"MessageDelta",
     "{type: \"text_delta\", text: string} | {type: \"thinking_delta\", thinking: string} |"
     " {type: \"signature_delta\", signature: string} |"
     " {type: \"input_json_delta\", partial_json: string}"},
    {"MessageEvent",
     "{type: \"ping\"} | {type: \"message_start\", message: MessageStart} |"
     " {type: \"content_block_start\", index: integer, content_block: MessageBlock} |"
     " {type: \"content_block_delta\", index: integer, delta: MessageDelta} |"
     " {type: \"content_block_stop\", index: integer} |"
     " {type: \"message_delta\", delta: MessageStop, ...MessageEnd} | {type: \"message_stop\"} |"
     " {type: \"error\", error: object}"},

    // Ollama's.
    {"OllamaEnd",
     "{model: string, created_at: string, done: boolean,"
     " done_reason?: \"stop\" | \"length\" | \"load\" | \"unload\", total_duration?: integer,"
     " load_duration?: integer, prompt_eval_count?: integer, prompt_eval_duration?: integer,"
     " eval_count?: integer, eval_duration?: integer, memory?: AnswerMemory, cut_by?: string,"
     " logprobs?: [TokenLogprob]}"},
    {"OllamaChat",
     "{...OllamaEnd, message: {role: \"assistant\", content: string, thinking?: string,"
     " tool_calls?: [{id: string, function: {index: integer, name: string, arguments: object}}]}}"},
    {"OllamaText", "{...OllamaEnd, response: string, thinking?: string, context?: [integer]}"},
    {"OllamaVectors",
     "{model: string, embeddings: [[number]], total_duration: integer, load_duration: integer,"
     " prompt_eval_count: integer}"},
    {"OllamaDetails",
     "{parent_model: string, format: \"gguf\", family: string, families: [string],"
     " parameter_size: string, quantization_level: string}"},
    {"OllamaModel",
     "{name: string, model: string, modified_at: string, size: integer, digest: string,"
     " details: OllamaDetails}"},
    {"OllamaCard",
     "{modelfile: string, parameters: string, template: string, details: OllamaDetails,"
     " model_info: object, capabilities: [string], modified_at: string}"},

    // llama.cpp's own.
    {"NativeAnswer",
     "{index: integer, content: string, tokens: [integer], id_slot: integer, stop: true,"
     " model: string, tokens_predicted: integer, tokens_evaluated: integer,"
     " generation_settings: object, prompt: string, has_new_line: boolean, truncated: boolean,"
     " stop_type: \"eos\" | \"word\" | \"limit\", stopping_word: string, tokens_cached: integer,"
     " timings: Timings, memory: AnswerMemory, left_out_files?: integer, cut_by?: string,"
     " completion_probabilities?: [TokenLogprob | TokenShare]}"},
    {"NativePiece",
     "{index: integer, content: string, tokens: [integer], stop: false, id_slot: integer,"
     " tokens_predicted: integer, tokens_evaluated: integer,"
     " completion_probabilities?: [TokenLogprob | TokenShare]}"},
    {"Properties",
     "{default_generation_settings: {n_ctx: integer, params: object}, total_slots: integer,"
     " model_alias: string, model_path: string, modalities: {vision: boolean, audio: boolean},"
     " endpoint_slots: boolean, endpoint_props: boolean, endpoint_metrics: boolean,"
     " is_sleeping: boolean, build_info: string, program?: string,"
     " chat_template: string, bos_token?: string, eos_token?: string}"},
    {"Slot", "{id: integer, n_ctx: integer, speculative: boolean, is_processing: boolean}"},
    {"Adapter", "{id: integer, name: string, path: string, scale: number}"},

    // cairn's own: sessions, receipts, memory.
    {"Session",
     "{id: string, object: \"session\", created: integer, model: string,"
     " survives_restart: boolean, message_count: integer, turns: integer, branch: string,"
     " branches: [{name: string, messages: integer}],"
     " snapshots: [{name: string, messages: integer}], bytes: integer, expires_at?: integer}"},
    {"WholeSession",
     "{...Session, messages: [object], vocabulary?: string,"
     " sampling?: {seed: string, state?: string}}"},
    {"PricedSession",
     "{...Session, memory: {reused: integer, recomputed: integer, replayed: integer,"
     " on_disk: boolean, reason?: string}}"},
    {"ForkedSession", "{...PricedSession, forked_from: string, shared_messages: integer}"},
    {"Receipt",
     "{receipt: integer, program: string, fingerprint: object, prompt: object, context: object,"
     " form: any, sampling: object, sampler_state: any, answer: object}"},
    {"Replay",
     "{object: \"receipt.replay\", equal: boolean | null, tokens: integer, fingerprint: string,"
     " field?: string, token?: integer, expected?: any, found?: any, computed_tokens: integer,"
     " cut_by?: string}"},
    {"MemoryTotals",
     "{process: {resident: integer, files: integer, weights: integer, steps: integer,"
     " conversations: integer, rest: integer} | null,"
     " conversations: {pages: integer, states: integer, logs: integer, rows: integer,"
     " warm: integer, budget: integer} | null,"
     " engine: {running: integer, waiting: integer, steps: integer, decode_rows: integer,"
     " prompt_rows: integer} | null,"
     " store: {entries: integer, bytes: integer, budget: integer, hits: integer,"
     " misses: integer} | null}"},
    {"MemorySequence",
     "{id: string, use: \"reading\" | \"answering\" | \"kept\" | \"pinned\", length: integer,"
     " common: integer, stored: boolean, marks: [[integer | string]],"
     " groups: [{blocks: integer, shared: integer, bytes: integer, whole: boolean,"
     " runs: [integer], stored: [integer]}]}"},
    {"Memory",
     "{object: \"memory\", ...MemoryTotals, groups: [{kind: string, window: integer,"
     " page_tokens: integer, block_bytes: integer, layers: [integer]}], left_out: integer,"
     " order: [string], sequences: [MemorySequence]}"},
    {"MemoryPlan",
     "{object: \"memory.plan\", prompt_tokens: integer, reused: integer, recomputed: integer,"
     " replayed: integer, on_disk: integer, stored: [[integer]], message_starts: [integer],"
     " reason: string | null, sequence: string | null}"},
};

}  // namespace

std::span<const ReplyType> reply_types() {
  return kTypes;
}

}  // namespace cairn::serve
