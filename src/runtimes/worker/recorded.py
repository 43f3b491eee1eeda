"""cairn's recorded step of a model, op by op, in the words of another array library. The ops mean
what src/device/op.h says; a library is a class with the dozen functions used here, in which arrays
have + - * / of their own. Knows no model."""


# What cairn has recorded, and where the numbers are that its ops read.
class Recording:
    def __init__(self, description):
        import numpy

        self.numpy = numpy
        self.planes = description["planes"]
        self.ops = [(kind, fields) for kind, fields in description["ops"]]
        size = description["weights_bytes"]
        self.bytes = numpy.frombuffer(mmap.mmap(WEIGHTS, size, prot=mmap.PROT_READ), numpy.uint8)
        self.masks = {
            (fields["window"], fields["chunked"]) for kind, fields in self.ops if kind == "Attend"
        }
        self.has_slopes = any(fields.get("slopes") for _, fields in self.ops)
        self.tables = [
            (fields["out"][0], self.constant(fields["frequencies"]).copy(), fields["magnitude"])
            for kind, fields in self.ops
            if kind == "RopeTable"
        ]
        self.scales = [
            (at, fields) for at, (kind, fields) in enumerate(self.ops) if kind == "ScaleByPosition"
        ]

    # [first byte, type, shape]
    def constant(self, place):
        first, kind, shape = place
        count = int(self.numpy.prod(shape))
        numbers = self.bytes[first : first + count * int(kind[1])].view(kind)
        return numbers.reshape(shape)

    # Where all numbers are that ops read, each place once.
    def places(self):
        names = ("table", "weight", "bias", "gain", "of_columns", "slopes")
        found = {}
        for kind, fields in self.ops:
            for name in names:
                if kind not in ("Rope", "RopeTable") and fields.get(name):
                    found[fields[name][0]] = fields[name]
        return list(found.values())

    # What a step reads beside weights: angles in f64, rounded once, as cairn's own.
    def inputs(self, tokens, begin):
        np = self.numpy
        end = begin + len(tokens)
        positions = np.arange(begin, end)
        made = {"tokens": np.array(tokens, np.int32), "positions": positions.astype(np.int32)}
        for value, frequencies, magnitude in self.tables:
            angles = positions[:, None] * frequencies
            made[f"cos{value}"] = (np.cos(angles) * magnitude).astype(np.float32)
            made[f"sin{value}"] = (np.sin(angles) * magnitude).astype(np.float32)
        back = positions[:, None] - np.arange(end)
        for window, chunked in self.masks:
            first = np.zeros_like(positions)
            if window > 0:
                first = positions // window * window if chunked else positions + 1 - window
            hidden = (back < 0) | (np.arange(end) < first[:, None])
            made[mask_name(window, chunked)] = np.where(hidden, -np.inf, 0).astype(np.float32)
        if self.has_slopes:
            made["back"] = -np.abs(back).astype(np.float32)
        for at, fields in self.scales:
            steps = np.floor((positions + fields["offset"]) / fields["original_context"])
            factors = 1 + np.float32(fields["factor"]) * np.log1p(steps.astype(np.float32))
            made[f"scale{at}"] = factors.astype(np.float32)[:, None]
        return made


def mask_name(window, chunked):
    return f"mask{window}{'c' if chunked else ''}"


# One step: logits of its last row. `kit`: the library; `inputs`: its arrays, by name; `weights`:
# what kit.constant() makes of a place.
class Step:
    def __init__(self, kit, recording, weights, inputs, caches):
        self.kit, self.recording, self.weights = kit, recording, weights
        self.inputs, self.caches = inputs, caches
        self.values, self.widths = {}, {}

    def run(self):
        for at, (kind, fields) in enumerate(self.recording.ops):
            self.at = at
            getattr(self, kind)(fields)
            last = fields.get("out")
        return self.values[last[0]]

    def read(self, rows):
        value, column, width = rows
        x = self.values[value]
        whole = column == 0 and width == self.widths[value]
        return x if whole else self.kit.columns(x, column, column + width)

    def write(self, rows, x):
        value, column, width = rows
        whole = self.widths.setdefault(value, width)
        if width < whole:
            old, end = self.values[value], column + width
            parts = [self.kit.columns(old, 0, column)] if column > 0 else []
            parts.append(x)
            parts += [self.kit.columns(old, end, whole)] if end < whole else []
            x = self.kit.concat(parts, 1)
        self.values[value] = x

    def number(self, value):
        return self.kit.number(value)

    def Embed(self, f):
        ids = self.inputs["positions" if f["by_position"] else "tokens"]
        x = self.kit.rows(self.weights(f["table"]), ids)
        self.write(f["out"], x * self.number(f["scale"]) if f["scale"] != 1 else x)

    def MatMul(self, f):
        x = self.kit.linear(self.read(f["x"]), self.weights(f["weight"]))
        if f["scale"] != 1:
            x = x * self.number(f["scale"])
        self.write(f["out"], x + self.weights(f["bias"]) if f["bias"] else x)

    def norm(self, f, is_centred):
        width, group = f["out"][2], f["group"]
        x = self.kit.reshape(self.read(f["x"]), [-1, width // group, group])
        if is_centred:
            x = x - self.kit.mean(x)
        x = x / self.kit.sqrt(self.kit.mean(x * x) + self.number(f["epsilon"]))
        per_element = f["gain_per_element"]
        for name in ("gain", "bias"):
            if not f.get(name):
                continue
            by = self.weights(f[name])
            by = self.kit.reshape(by, [1, width // group if per_element else 1, group])
            x = x * by if name == "gain" else x + by
        self.write(f["out"], self.kit.reshape(x, [-1, width]))

    def RmsNorm(self, f):
        self.norm(f, False)

    def LayerNorm(self, f):
        self.norm(f, True)

    def Add(self, f):
        b = self.read(f["b"])
        b = b * self.number(f["scale"]) if f["scale"] != 1 else b
        self.write(f["out"], self.read(f["a"]) + b)

    def Scale(self, f):
        x = self.read(f["x"]) * self.number(f["factor"])
        self.write(f["out"], x * self.weights(f["of_columns"]) if f["of_columns"] else x)

    def Clamp(self, f):
        self.write(f["out"], self.kit.clamp(self.read(f["x"]), f["limit"]))

    def activate(self, kind, x):
        kit, number = self.kit, self.number
        if kind == "silu":
            return x * kit.sigmoid(x)
        if kind == "gelu_erf":
            return x * number(0.5) * (number(1) + kit.erf(x * number(0.5**0.5)))
        if kind == "gelu_tanh":
            inner = (x + x * x * x * number(0.044715)) * number(0.7978845608028654)
            return x * number(0.5) * (number(1) + kit.tanh(inner))
        return {"relu": kit.relu, "sigmoid": kit.sigmoid, "tanh": kit.tanh, "none": lambda x: x}[
            kind
        ](x)

    def Activate(self, f):
        self.write(f["out"], self.activate(f["activation"], self.read(f["x"])))

    def Gate(self, f):
        if f["run"] > 0:
            runs = f["out"][2] // f["run"]
            value, column, width = f["gate"]
            both = self.read([value, column, width + f["run"]])
            both = self.kit.reshape(both, [-1, runs, 2 * f["run"]])
            gate, x = (
                self.kit.reshape(self.kit.columns(both, first, first + f["run"]), [-1, f["out"][2]])
                for first in (0, f["run"])
            )
        else:
            gate, x = self.read(f["gate"]), self.read(f["x"])
        self.write(f["out"], self.activate(f["activation"], gate) * x)

    def RopeTable(self, f):
        pass  # Its angles are inputs.

    def Rope(self, f):
        kit, dim, pairs = self.kit, f["head_dim"], f["pair_count"]
        width, table = f["x"][2], f["table"][0]
        heads = width // dim
        x = kit.reshape(self.read(f["x"]), [-1, heads, dim])
        cos, sin = (
            kit.reshape(self.inputs[f"{name}{table}"], [-1, 1, pairs]) for name in ("cos", "sin")
        )
        if f["halves"]:
            a, b = kit.columns(x, 0, pairs), kit.columns(x, pairs, 2 * pairs)
            turned = kit.concat([a * cos - b * sin, a * sin + b * cos], 2)
        else:
            by_pair = kit.reshape(kit.columns(x, 0, 2 * pairs), [-1, heads, pairs, 2])
            a, b = (
                kit.reshape(kit.columns(by_pair, side, side + 1), [-1, heads, pairs])
                for side in (0, 1)
            )
            sides = [a * cos - b * sin, a * sin + b * cos]
            turned = kit.concat([kit.reshape(side, [-1, heads, pairs, 1]) for side in sides], 3)
            turned = kit.reshape(turned, [-1, heads, 2 * pairs])
        if 2 * pairs < dim:
            turned = kit.concat([turned, kit.columns(x, 2 * pairs, dim)], 2)
        self.write(f["x"], kit.reshape(turned, [-1, width]))

    def ScaleByPosition(self, f):
        self.write(f["x"], self.read(f["x"]) * self.inputs[f"scale{self.at}"])

    def StoreKv(self, f):
        self.caches.store(f["plane"], "k", self.read(f["k"]))
        if f["v"]:
            self.caches.store(f["plane"], "v", self.read(f["v"]))

    # q is [kv head, query heads of it, rows, dim].
    def Attend(self, f):
        kit = self.kit
        kv_heads, key_dim, value_dim, values_in_keys = self.recording.planes[f["plane"]]
        group = f["head_count"] // kv_heads
        q = kit.reshape(self.read(f["q"]), [-1, kv_heads, group, key_dim])
        q = kit.transpose(q, [1, 2, 0, 3])
        kept = kit.reshape(self.caches.kept(f["plane"], "k"), [1, -1, kv_heads, key_dim])
        if values_in_keys:
            v = kit.columns(kept, 0, value_dim)
        else:
            v = kit.reshape(self.caches.kept(f["plane"], "v"), [1, -1, kv_heads, value_dim])
        v = kit.transpose(v, [2, 0, 1, 3])
        scores = kit.matmul(q, kit.transpose(kept, [2, 0, 3, 1])) * self.number(f["scale"])
        if f["softcap"] > 0:
            cap = self.number(f["softcap"])
            scores = kit.tanh(scores / cap) * cap
        if f["slopes"]:
            slopes = kit.reshape(self.weights(f["slopes"]), [kv_heads, group, 1, 1])
            scores = scores + slopes * self.inputs["back"]
        scores = scores + self.inputs[mask_name(f["window"], f["chunked"])]
        out = kit.transpose(kit.matmul(kit.softmax(scores), v), [2, 0, 1, 3])
        out = kit.reshape(out, [-1, f["head_count"] * value_dim])
        self.write(f["out"], kit.layer_end(out))

    def GatherOutputs(self, f):
        self.write(f["out"], self.kit.last_row(self.read(f["x"])))
