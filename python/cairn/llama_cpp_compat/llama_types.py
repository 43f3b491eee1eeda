"""Dictionaries that go in and out of completions, as in OpenAI's HTTP interface."""

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union

__all__ = [
    "ChatCompletion",
    "ChatCompletionChoice",
    "ChatCompletionChunk",
    "ChatCompletionChunkChoice",
    "ChatCompletionChunkDelta",
    "ChatCompletionChunkDeltaEmpty",
    "ChatCompletionFunction",
    "ChatCompletionFunctionCall",
    "ChatCompletionFunctionCallOption",
    "ChatCompletionFunctionParameters",
    "ChatCompletionFunctions",
    "ChatCompletionLogprobToken",
    "ChatCompletionLogprobs",
    "ChatCompletionMessage",
    "ChatCompletionMessageToolCall",
    "ChatCompletionMessageToolCallChunk",
    "ChatCompletionMessageToolCallChunkFunction",
    "ChatCompletionMessageToolCallFunction",
    "ChatCompletionMessageToolCalls",
    "ChatCompletionNamedToolChoice",
    "ChatCompletionNamedToolChoiceFunction",
    "ChatCompletionRequestAssistantMessage",
    "ChatCompletionRequestAssistantMessageFunctionCall",
    "ChatCompletionRequestFunctionCall",
    "ChatCompletionRequestFunctionCallOption",
    "ChatCompletionRequestFunctionMessage",
    "ChatCompletionRequestMessage",
    "ChatCompletionRequestMessageContentPart",
    "ChatCompletionRequestMessageContentPartImage",
    "ChatCompletionRequestMessageContentPartImageImageUrl",
    "ChatCompletionRequestMessageContentPartText",
    "ChatCompletionRequestResponseFormat",
    "ChatCompletionRequestSystemMessage",
    "ChatCompletionRequestToolMessage",
    "ChatCompletionRequestUserMessage",
    "ChatCompletionResponseChoice",
    "ChatCompletionResponseFunction",
    "ChatCompletionResponseFunctionCall",
    "ChatCompletionResponseMessage",
    "ChatCompletionStreamResponse",
    "ChatCompletionStreamResponseChoice",
    "ChatCompletionStreamResponseDelta",
    "ChatCompletionStreamResponseDeltaEmpty",
    "ChatCompletionStreamResponseDeltaFunctionCall",
    "ChatCompletionTool",
    "ChatCompletionToolChoiceOption",
    "ChatCompletionToolFunction",
    "ChatCompletionTopLogprobToken",
    "Completion",
    "CompletionChoice",
    "CompletionChunk",
    "CompletionLogprobs",
    "CompletionUsage",
    "CreateChatCompletionResponse",
    "CreateChatCompletionStreamResponse",
    "CreateCompletionResponse",
    "CreateCompletionStreamResponse",
    "CreateEmbeddingResponse",
    "Embedding",
    "EmbeddingData",
    "EmbeddingUsage",
    "JsonType",
]

JsonType = Union[None, int, str, bool, List[Any], Dict[str, Any]]

class EmbeddingUsage(TypedDict):
    prompt_tokens: int
    total_tokens: int


class Embedding(TypedDict):
    index: int
    object: str
    embedding: Union[List[float], List[List[float]]]


class CreateEmbeddingResponse(TypedDict):
    object: Literal["list"]
    model: str
    data: List[Embedding]
    usage: EmbeddingUsage


class CompletionLogprobs(TypedDict):
    text_offset: List[int]
    token_logprobs: List[Optional[float]]
    tokens: List[str]
    top_logprobs: List[Optional[Dict[str, float]]]


class CompletionChoice(TypedDict):
    text: str
    index: int
    logprobs: Optional[CompletionLogprobs]
    finish_reason: Optional[Literal["stop", "length"]]


class CompletionUsage(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class _CreateCompletionResponseAlways(TypedDict):
    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: List[CompletionChoice]


class CreateCompletionResponse(_CreateCompletionResponseAlways, total=False):
    usage: CompletionUsage
    memory: Optional[Dict[str, Any]]


class ChatCompletionResponseFunctionCall(TypedDict):
    name: str
    arguments: str


class ChatCompletionMessageToolCallFunction(TypedDict):
    name: str
    arguments: str


class ChatCompletionMessageToolCall(TypedDict):
    id: str
    type: Literal["function"]
    function: ChatCompletionMessageToolCallFunction


class _ChatCompletionResponseMessageAlways(TypedDict):
    content: Optional[str]
    role: Literal["assistant", "function"]


class ChatCompletionResponseMessage(_ChatCompletionResponseMessageAlways, total=False):
    tool_calls: List[ChatCompletionMessageToolCall]
    function_call: ChatCompletionResponseFunctionCall


class _ChatCompletionFunctionAlways(TypedDict):
    name: str
    parameters: Dict[str, JsonType]


class ChatCompletionFunction(_ChatCompletionFunctionAlways, total=False):
    description: str


class ChatCompletionTopLogprobToken(TypedDict):
    token: str
    logprob: float
    bytes: Optional[List[int]]


class ChatCompletionLogprobToken(TypedDict):
    token: str
    logprob: float
    bytes: Optional[List[int]]
    top_logprobs: List[ChatCompletionTopLogprobToken]


class ChatCompletionLogprobs(TypedDict):
    content: Optional[List[ChatCompletionLogprobToken]]
    refusal: Optional[List[ChatCompletionLogprobToken]]


class ChatCompletionResponseChoice(TypedDict):
    index: int
    message: ChatCompletionResponseMessage
    logprobs: Optional[ChatCompletionLogprobs]
    finish_reason: Optional[str]


class _CreateChatCompletionResponseAlways(TypedDict):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: List[ChatCompletionResponseChoice]
    usage: CompletionUsage


class CreateChatCompletionResponse(_CreateChatCompletionResponseAlways, total=False):
    memory: Optional[Dict[str, Any]]


class ChatCompletionMessageToolCallChunkFunction(TypedDict):
    name: Optional[str]
    arguments: str


class _ChatCompletionMessageToolCallChunkAlways(TypedDict):
    index: int
    type: Literal["function"]
    function: ChatCompletionMessageToolCallChunkFunction


class ChatCompletionMessageToolCallChunk(_ChatCompletionMessageToolCallChunkAlways, total=False):
    id: str


class ChatCompletionStreamResponseDeltaEmpty(TypedDict):
    pass


class ChatCompletionStreamResponseDeltaFunctionCall(TypedDict):
    name: str
    arguments: str


class ChatCompletionStreamResponseDelta(TypedDict, total=False):
    content: Optional[str]
    function_call: Optional[ChatCompletionStreamResponseDeltaFunctionCall]
    tool_calls: Optional[List[ChatCompletionMessageToolCallChunk]]
    role: Optional[Literal["system", "user", "assistant", "tool"]]


class _ChatCompletionStreamResponseChoiceAlways(TypedDict):
    index: int
    delta: Union[ChatCompletionStreamResponseDelta, ChatCompletionStreamResponseDeltaEmpty]
    finish_reason: Optional[Literal["stop", "length", "tool_calls", "function_call"]]


class ChatCompletionStreamResponseChoice(_ChatCompletionStreamResponseChoiceAlways, total=False):
    logprobs: Optional[ChatCompletionLogprobs]


class CreateChatCompletionStreamResponse(TypedDict):
    id: str
    model: str
    object: Literal["chat.completion.chunk"]
    created: int
    choices: List[ChatCompletionStreamResponseChoice]


class _ChatCompletionFunctionsAlways(TypedDict):
    name: str
    parameters: Dict[str, JsonType]


class ChatCompletionFunctions(_ChatCompletionFunctionsAlways, total=False):
    description: str


class ChatCompletionFunctionCallOption(TypedDict):
    name: str


class _ChatCompletionRequestResponseFormatAlways(TypedDict):
    type: Literal["text", "json_object", "json_schema"]


class ChatCompletionRequestResponseFormat(_ChatCompletionRequestResponseFormatAlways, total=False):
    schema: JsonType
    json_schema: Dict[str, JsonType]


class ChatCompletionRequestMessageContentPartText(TypedDict):
    type: Literal["text"]
    text: str


class _ChatCompletionRequestMessageContentPartImageImageUrlAlways(TypedDict):
    url: str


class ChatCompletionRequestMessageContentPartImageImageUrl(
    _ChatCompletionRequestMessageContentPartImageImageUrlAlways, total=False
):
    detail: Literal["auto", "low", "high"]


class ChatCompletionRequestMessageContentPartImage(TypedDict):
    type: Literal["image_url"]
    image_url: Union[str, ChatCompletionRequestMessageContentPartImageImageUrl]

ChatCompletionRequestMessageContentPart = Union[
    ChatCompletionRequestMessageContentPartText,
    ChatCompletionRequestMessageContentPartImage,
]

class ChatCompletionRequestSystemMessage(TypedDict):
    role: Literal["system"]
    content: Optional[str]


class ChatCompletionRequestUserMessage(TypedDict):
    role: Literal["user"]
    content: Optional[Union[str, List[ChatCompletionRequestMessageContentPart]]]


class ChatCompletionRequestAssistantMessageFunctionCall(TypedDict):
    name: str
    arguments: str


class _ChatCompletionRequestAssistantMessageAlways(TypedDict):
    role: Literal["assistant"]


class ChatCompletionRequestAssistantMessage(
    _ChatCompletionRequestAssistantMessageAlways, total=False
):
    content: Optional[str]
    tool_calls: List[ChatCompletionMessageToolCall]
    function_call: ChatCompletionRequestAssistantMessageFunctionCall


class ChatCompletionRequestToolMessage(TypedDict):
    role: Literal["tool"]
    content: Optional[str]
    tool_call_id: str


class ChatCompletionRequestFunctionMessage(TypedDict):
    role: Literal["function"]
    content: Optional[str]
    name: str

ChatCompletionRequestMessage = Union[
    ChatCompletionRequestSystemMessage,
    ChatCompletionRequestUserMessage,
    ChatCompletionRequestAssistantMessage,
    ChatCompletionRequestToolMessage,
    ChatCompletionRequestFunctionMessage,
]

class ChatCompletionRequestFunctionCallOption(TypedDict):
    name: str

ChatCompletionRequestFunctionCall = Union[
    Literal["none", "auto"],
    ChatCompletionRequestFunctionCallOption,
]
ChatCompletionFunctionParameters = Dict[str, JsonType]

class _ChatCompletionToolFunctionAlways(TypedDict):
    name: str
    parameters: ChatCompletionFunctionParameters


class ChatCompletionToolFunction(_ChatCompletionToolFunctionAlways, total=False):
    description: str


class ChatCompletionTool(TypedDict):
    type: Literal["function"]
    function: ChatCompletionToolFunction


class ChatCompletionNamedToolChoiceFunction(TypedDict):
    name: str


class ChatCompletionNamedToolChoice(TypedDict):
    type: Literal["function"]
    function: ChatCompletionNamedToolChoiceFunction

ChatCompletionToolChoiceOption = Union[
    Literal["none", "auto", "required"],
    ChatCompletionNamedToolChoice,
]
ChatCompletionMessageToolCalls = List[ChatCompletionMessageToolCall]
EmbeddingData = Embedding
CompletionChunk = CreateCompletionResponse
Completion = CreateCompletionResponse
CreateCompletionStreamResponse = CreateCompletionResponse
ChatCompletionMessage = ChatCompletionResponseMessage
ChatCompletionChoice = ChatCompletionResponseChoice
ChatCompletion = CreateChatCompletionResponse
ChatCompletionChunkDeltaEmpty = ChatCompletionStreamResponseDeltaEmpty
ChatCompletionChunkChoice = ChatCompletionStreamResponseChoice
ChatCompletionChunkDelta = ChatCompletionStreamResponseDelta
ChatCompletionChunk = CreateChatCompletionStreamResponse
ChatCompletionStreamResponse = CreateChatCompletionStreamResponse
ChatCompletionResponseFunction = ChatCompletionFunction
ChatCompletionFunctionCall = ChatCompletionResponseFunctionCall
