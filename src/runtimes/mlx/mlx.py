"""MLX behind cairn. Arrays are constant values there, so a snapshot is a few references, and what
is cancelled or fails leaves a session as it was. mlx.core.compile is not used: on a processor it
calls a compiler."""


class Kit:
    def __init__(self, mx, link):
        self.mx, self.link = mx, link
        self.reshape, self.transpose, self.matmul = mx.reshape, mx.transpose, mx.matmul
        self.sqrt, self.tanh, self.erf, self.sigmoid = mx.sqrt, mx.tanh, mx.erf, mx.sigmoid
        self.concat = mx.concatenate
        self.number = mx.array

    def constant(self, numbers):
        return self.mx.array(numbers).astype(self.mx.float32)

    def rows(self, table, ids):
        return table[ids]

    def columns(self, x, first, end):
        return x[..., first:end]

    def linear(self, x, weight):
        return x @ weight.T

    def mean(self, x):
        return self.mx.mean(x, axis=-1, keepdims=True)

    def softmax(self, x):
        return self.mx.softmax(x, axis=-1, precise=True)

    def relu(self, x):
        return self.mx.maximum(x, 0.0)

    def clamp(self, x, limit):
        return self.mx.clip(x, -limit, limit)

    def last_row(self, x):
        return x[-1:]

    # Nothing is computed before it is asked for: by layer, so that one can be cancelled.
    def layer_end(self, x):
        self.mx.eval(x)
        self.link.check_cancelled()
        return x


# What a step has stored, beside what was there before.
class Caches:
    def __init__(self, kit, arrays):
        self.kit, self.arrays = kit, dict(arrays)

    def store(self, plane, side, rows):
        before = self.arrays.get((plane, side))
        self.arrays[plane, side] = rows if before is None else self.kit.concat([before, rows], 0)

    def kept(self, plane, side):
        return self.arrays[plane, side]


class Session:
    def __init__(self, runtime):
        self.runtime, self.length, self.arrays = runtime, 0, {}

    def append(self, inputs):
        runtime = self.runtime
        caches = Caches(runtime.kit, self.arrays)
        arrays = {name: runtime.mx.array(numbers) for name, numbers in inputs.items()}
        row = Step(runtime.kit, runtime.recording, runtime.weights, arrays, caches).run()
        runtime.mx.eval(row, *caches.arrays.values())
        self.arrays = caches.arrays
        return row

    def cut(self, length):
        if length < self.length:
            self.arrays = {key: array[:length] for key, array in self.arrays.items() if length > 0}
            self.length = length

    def state(self):
        return self.arrays, sum(array.nbytes for array in self.arrays.values())

    def restore(self, state):
        self.arrays = state


class Runtime:
    modules = [("mlx", "mlx"), ("numpy", "numpy")]
    install = "'mlx[cpu]' numpy"

    def load(self, recording, threads, link):
        import mlx.core as mx

        mx.set_default_device(mx.cpu)
        self.mx, self.kit, self.recording = mx, Kit(mx, link), recording
        self.arrays = {}
        for place in recording.places():
            self.arrays[place[0]] = self.kit.constant(recording.constant(place))
        mx.eval(*self.arrays.values())

    def weights(self, place):
        return self.arrays[place[0]]

    def open(self):
        return Session(self)


serve(Runtime())
