"""For tests with other people's clients: a server of a model, and models with other templates."""
import os
import re
import subprocess
import tempfile

KEY = "a-key-for-the-tests-only"
QUESTION = "What is the capital of France?"
PARIS = "The capital of France is Paris."
TOOL_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<c>{{ c.function | tojson }}</c>{% endfor %}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}{# #}")


class Server:
    """A server of a model, for those who have the key; without one, for all."""

    def __init__(self, program, *arguments, key=KEY):
        self.process = subprocess.Popen(
            [program, "serve", *arguments, "--port", "0", "--request-log", "none"],
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
            env={**os.environ, **({"CAIRN_API_KEY": key} if key else {})})
        said = self.process.stderr.readline()
        url = re.search(r"http://\S+", said)
        assert url, said
        self.url = url[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        code = self.process.wait(timeout=60)
        self.process.stderr.close()
        assert code == 0, code


def with_template(model, template):
    """The model's file with another chat template, padded so that what follows stays aligned."""
    key = b"tokenizer.chat_template"
    at = model.index(key) + len(key) + 4  # Behind the value's type.
    old = int.from_bytes(model[at:at + 8], "little")
    template = template.encode()
    padding = (old - len(template)) % 32
    template = template[:-2] + b" " * padding + template[-2:]
    return model[:at] + len(template).to_bytes(8, "little") + template + model[at + 8 + old:]


class ToolModel:
    """The built-in model's file with a template that writes calls."""

    def __enter__(self):
        source = os.path.join(os.path.dirname(__file__), "..", "..", "assets", "nano.gguf")
        self.file = tempfile.NamedTemporaryFile(suffix=".gguf")
        with open(source, "rb") as file:
            self.file.write(with_template(file.read(), TOOL_TEMPLATE))
        self.file.flush()
        return self.file.name

    def __exit__(self, *_):
        self.file.close()
