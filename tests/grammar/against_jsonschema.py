#!/usr/bin/env python3
"""Random schemas, random walks through their masks: every finished text must be JSON and valid for
the Python package jsonschema. Exits 77 where that is not installed.

  against_jsonschema.py grammar_session PAIRS MODEL.gguf...
"""
import json
import random
import sys

from session import Refused, Session, choose

try:
    import jsonschema
except ImportError:
    print("the Python package jsonschema is not installed")
    sys.exit(77)

FORMATS = ["date", "time", "date-time", "uuid", "ipv4", "ipv6", "email", "hostname", "duration"]
PATTERNS = ["^[a-z]{2,5}$", "^(foo|bar)+\\d*$", "ab?c", "^\\w+@\\w+\\.(com|org)$", "x$|^y",
            "^[^\\s\"]{1,8}$", "^.{3,6}$", "^[\\u00e0-\\u00ff\\\\/]+$"]
COUNTED_PATTERNS = ["^[a-z]+$", "^(foo|ba)*\\d?$", "^[A-Z][a-z]*( [A-Z][a-z]*)?$", "a.?b",
                    "^\\w+@\\w+$", "^(a|bb|[c-e]{3})+$"]
NAMES = ["a", "b", "name", "na", "name2", "é", "with \"quotes\"", "tab\t", "", "long property name"]


class Schemas:
    def __init__(self, seed):
        self.rng = random.Random(seed)

    def bounds(self, low, high, minimum, maximum, scale=1):
        ends = sorted(self.rng.randint(low, high) / scale for _ in range(2))
        if scale == 1:
            ends = [int(end) for end in ends]
        result = {}
        if self.rng.random() < 0.5:
            result[minimum] = ends[0]
        if self.rng.random() < 0.5:
            result[maximum] = ends[1]
        return result

    def string(self):
        kind = self.rng.random()
        if kind < 0.15:
            return {"type": "string", "format": self.rng.choice(FORMATS)}
        if kind < 0.35:
            return {"type": "string", "pattern": self.rng.choice(PATTERNS)}
        if kind < 0.45:
            return {"type": "string", "pattern": self.rng.choice(COUNTED_PATTERNS),
                    "minLength": self.rng.randint(0, 3), "maxLength": self.rng.randint(3, 12)}
        if kind < 0.65:
            return {"type": "string", **self.bounds(0, 40, "minLength", "maxLength")}
        if kind < 0.75:
            return {"type": "string", "not": {"enum": self.rng.sample(NAMES, 3)}}
        return {"type": "string"}

    def number(self):
        if self.rng.random() < 0.5:
            bounds = self.bounds(-300, 300, "minimum", "maximum")
            if self.rng.random() < 0.3 and len(bounds) == 2:
                bounds["multipleOf"] = self.rng.randint(1, 4)
                bounds["minimum"] -= 5
            if self.rng.random() < 0.2:
                # Steps that doubles hold exactly: the package divides by them.
                step = {"multipleOf": self.rng.choice([0.5, 0.25, 1.5, 0.125, 3, 7.5])}
                return {"type": self.rng.choice(["number", "integer"]), **step}
            return {"type": "integer", **bounds}
        return {"type": "number", **self.bounds(-5000, 5000, *self.rng.choice([
            ("minimum", "maximum"), ("exclusiveMinimum", "maximum")]), scale=100)}

    def leaf(self):
        return self.rng.choice([
            self.string, self.number, lambda: {"type": "boolean"}, lambda: {"type": "null"},
            lambda: {"enum": self.rng.sample([1, -2.5, "x", None, True, [1, "é"], {"k": []}], 3)},
            lambda: {"const": self.rng.choice(["c\n", 0, {"a": [None]}])},
            lambda: {"type": self.rng.sample(["string", "integer", "null", "boolean"], 2)}])()

    def array(self, depth):
        result = {"type": "array", "items": self.schema(depth - 1),
                  **self.bounds(0, 4, "minItems", "maxItems")}
        if self.rng.random() < 0.2:
            result["items"] = {"enum": self.rng.sample([1, 2, "x", None, True, "é", -7], 5)}
            result["uniqueItems"] = True
        elif self.rng.random() < 0.25:
            result["prefixItems"] = [self.schema(depth - 1) for _ in range(2)]
        return result

    def object(self, depth):
        names = self.rng.sample(NAMES, self.rng.randint(0, 5))
        result = {"type": "object",
                  "properties": {name: self.schema(depth - 1) for name in names},
                  "required": [name for name in names if self.rng.random() < 0.5]}
        kind = self.rng.random()
        if kind < 0.3:
            result["additionalProperties"] = False
        elif kind < 0.5:
            result["additionalProperties"] = self.leaf()
        elif kind < 0.6:
            result["additionalProperties"] = True
        elif kind < 0.75:
            pattern = self.rng.choice(["^x-", "^n", "[0-9]$", "^[a-c]+$"])
            result["patternProperties"] = {pattern: self.leaf()}
            result["additionalProperties"] = self.rng.random() < 0.5
        return result

    def schema(self, depth):
        if depth == 0:
            return self.leaf()
        kind = self.rng.random()
        if kind < 0.4:
            return self.object(depth)
        if kind < 0.6:
            return self.array(depth)
        if kind < 0.7:
            return {"anyOf": [self.schema(depth - 1) for _ in range(self.rng.randint(1, 3))]}
        if kind < 0.75:
            return {"allOf": [{"type": "object", "properties": {
                name: self.leaf() for name in self.rng.sample(NAMES, 2)}} for _ in range(2)]}
        if kind < 0.8:
            return {"$ref": "#/$defs/shared"}
        return self.leaf()

    def root(self):
        schema = self.schema(self.rng.randint(0, 3))
        shared = {"type": "object", "properties": {
            "value": self.leaf(),
            "next": {"anyOf": [{"$ref": "#/$defs/shared"}, {"type": "null"}]}},
            "required": ["value"], "additionalProperties": False}
        return {**schema, "$defs": {"shared": shared}}


def walk(session, rng):
    """A finished text, or nothing where it became too long."""
    text, complete, finished = b"", False, False
    for step in range(400):
        if finished:
            return text
        tokens = session.allowed(session.mask())
        assert tokens, f"no token is allowed behind {text!r}"
        token = choose(session, tokens, step > 60, rng)
        if session.kinds[token] == "e":
            assert complete, f"an end where the text is not complete: {text!r}"
            return text
        text += session.pieces[token]
        complete, finished = session.take(token)
    return None


def main():
    program, pairs, models = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    counts = {"valid": 0, "cut": 0, "refused": 0}
    for number, model in enumerate(models):
        session = Session(program, model)
        for pair in range(pairs):
            seed = number * 1_000_003 + pair
            schema = Schemas(seed).root()
            try:
                session.compile("schema", json.dumps(schema, ensure_ascii=seed % 2 == 0))
            except Refused as refusal:
                # What nothing fits is refused; so are combinations that the documentation names.
                assert "can never end" in str(refusal) or "can be followed" in str(refusal) or (
                    "cannot be followed" in str(refusal)), f"seed {seed}: {refusal}: {schema}"
                counts["refused"] += 1
                continue
            text = walk(session, random.Random(seed))
            if text is None:
                counts["cut"] += 1
                continue
            try:
                value = json.loads(text)
                jsonschema.Draft202012Validator(schema, format_checker=checker).validate(value)
            except (ValueError, jsonschema.ValidationError) as error:
                print(f"seed {seed}: {json.dumps(schema)}\n{text!r}\n{error}")
                return 1
            counts["valid"] += 1
        session.close()
    print(counts)
    # Most walks end, or the test says nothing.
    return 0 if counts["valid"] > 0.7 * pairs * len(models) else 1


if __name__ == "__main__":
    sys.exit(main())
