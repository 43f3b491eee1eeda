#!/usr/bin/env python3
"""Libraries that stand on other people's clients, against one `cairn serve`: litellm, instructor,
langchain-openai, langchain-ollama, LlamaIndex. Exits 77 where none of them is installed.

  more_clients.py CAIRN FOLDER

FOLDER: where they are installed beside other versions of what they stand on; it may be missing.
"""
import faulthandler
import gc
import os
import sys

# Read when litellm is imported: prices from its own files, not from the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
# httpcore's pool of connections waits for itself where a collection of garbage closes an unfinished
# stream while the pool is locked.
gc.disable()
# Whatever hangs nevertheless says where.
faulthandler.dump_traceback_later(240, exit=True)

from serving import KEY, PARIS, QUESTION, Server

FRANCE = [{"role": "user", "content": QUESTION}]


def test_litellm(url):
    import litellm
    litellm.suppress_debug_info = True
    asked = dict(messages=FRANCE, api_key=KEY, temperature=0, max_tokens=50)
    for model, base in (("openai/m", url + "/v1"), ("anthropic/m", url),
                        ("ollama_chat/m", url)):
        answer = litellm.completion(model=model, api_base=base, **asked)
        assert answer.choices[0].message.content == PARIS, (model, answer)
        assert answer.usage.completion_tokens > 0, (model, answer)
        parts = litellm.completion(model=model, api_base=base, stream=True, **asked)
        text = "".join(part.choices[0].delta.content or "" for part in parts)
        assert text == PARIS, (model, text)
    try:
        litellm.completion(model="openai/m", api_base=url + "/v1", messages=FRANCE, api_key=KEY,
                           max_tokens=-5, num_retries=0)
    except litellm.BadRequestError as error:
        assert "max_tokens" in str(error), error
    else:
        raise AssertionError("expected an error, found an answer")


def test_instructor(url):
    import instructor
    import openai
    import pydantic

    class City(pydantic.BaseModel):
        name: str = pydantic.Field(max_length=8)
        is_large: bool

    plain = openai.OpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0)
    client = instructor.from_openai(plain, mode=instructor.Mode.JSON_SCHEMA)
    made = client.chat.completions.create(
        model="m", response_model=City, messages=FRANCE, max_retries=0, temperature=0)
    assert isinstance(made, City) and len(made.name) <= 8, made


def test_langchain_openai(url):
    import langchain_openai
    model = langchain_openai.ChatOpenAI(
        base_url=url + "/v1", api_key=KEY, model="m", temperature=0, max_retries=0)
    answer = model.invoke(QUESTION)
    assert answer.content == PARIS and answer.usage_metadata["output_tokens"] > 0, answer
    assert "".join(part.content for part in model.stream(QUESTION)) == PARIS
    schema = {"title": "city", "type": "object", "additionalProperties": False,
              "properties": {"name": {"type": "string", "maxLength": 8}}, "required": ["name"]}
    formed = model.with_structured_output(schema, method="json_schema").invoke(QUESTION)
    assert list(formed) == ["name"], formed


def test_langchain_ollama(url):
    import langchain_ollama
    model = langchain_ollama.ChatOllama(
        base_url=url, model="m", temperature=0,
        client_kwargs={"headers": {"Authorization": f"Bearer {KEY}"}})
    answer = model.invoke(QUESTION)
    assert answer.content == PARIS and answer.response_metadata["done_reason"] == "stop", answer
    assert "".join(part.content for part in model.stream(QUESTION)) == PARIS


def test_llama_index(url):
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.openai_like import OpenAILike
    model = OpenAILike(api_base=url + "/v1", api_key=KEY, model="m", is_chat_model=True,
                       temperature=0)
    question = [ChatMessage(role="user", content=QUESTION)]
    assert model.chat(question).message.content == PARIS
    assert "".join(part.delta or "" for part in model.stream_chat(question)) == PARIS


def main():
    program, folder = sys.argv[1:]
    sys.path.insert(0, folder)
    tested = 0
    with Server(program, "-c", "1024") as server:
        for test in (test_litellm, test_instructor, test_langchain_openai, test_langchain_ollama,
                     test_llama_index):
            try:
                test(server.url)
            except ModuleNotFoundError as missing:
                print(f"{test.__name__}: {missing}")
            else:
                tested += 1
    sys.exit(0 if tested > 0 else 77)


if __name__ == "__main__":
    main()
