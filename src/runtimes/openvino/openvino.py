"""OpenVINO behind cairn: the recorded step becomes a graph once, whose keys and values are
variables. All in f32, variables too, so that what is read of one and written again is the same to
the bit."""


class Kit:
    def __init__(self, ov, numpy):
        self.ov, self.np, self.op = ov, numpy, ov.opset13
        self.sqrt, self.tanh, self.erf = self.op.sqrt, self.op.tanh, self.op.erf
        self.sigmoid, self.relu, self.concat = self.op.sigmoid, self.op.relu, self.op.concat

    def number(self, value):
        return self.op.constant(self.np.float32(value))

    # Half floats stay so where they are weights.
    def constant(self, numbers):
        made = self.op.constant(numbers)
        return made if numbers.dtype == self.np.float32 else self.op.convert(made, "f32")

    def whole(self, numbers):
        return self.op.constant(self.np.array(numbers, self.np.int64))

    def reshape(self, x, shape):
        return self.op.reshape(x, self.whole(shape), False)

    def transpose(self, x, axes):
        return self.op.transpose(x, self.whole(axes))

    def matmul(self, a, b):
        return self.op.matmul(a, b, False, False)

    def linear(self, x, weight):
        return self.op.matmul(x, weight, False, True)

    def rows(self, table, ids):
        return self.op.gather(table, ids, self.whole(0))

    def columns(self, x, first, end):
        return self.op.slice(
            x, self.whole([first]), self.whole([end]), self.whole([1]), self.whole([-1])
        )

    def mean(self, x):
        return self.op.reduce_mean(x, self.whole([-1]), True)

    def softmax(self, x):
        return self.op.softmax(x, -1)

    def clamp(self, x, limit):
        return self.op.clamp(x, -limit, limit)

    def last_row(self, x):
        return self.op.gather(x, self.whole([-1]), self.whole(0))

    def layer_end(self, x):
        return x


class Caches:
    """Variables of [tokens, width], to which each step adds its rows."""

    def __init__(self, kit):
        self.kit, self.now, self.sinks = kit, {}, []

    def store(self, plane, side, rows):
        kit, name = self.kit, f"{plane}{side}"
        width = rows.get_output_partial_shape(0)[1].get_length()
        empty = kit.op.constant(kit.np.zeros([0, width], kit.np.float32))
        shape = kit.ov.PartialShape([-1, width])
        before = kit.ov.opset6.read_value(empty, name, kit.ov.Type.f32, shape)
        self.now[plane, side] = kit.concat([before, rows], 0)
        self.sinks.append(kit.ov.opset6.assign(self.now[plane, side], name))

    def kept(self, plane, side):
        return self.now[plane, side]


class Session:
    def __init__(self, runtime):
        self.runtime, self.length = runtime, 0
        self.request = runtime.compiled.create_infer_request()

    # Never ended in the middle: the variables of all sessions would be neither as before the step
    # nor as behind it.
    def append(self, inputs):
        try:
            self.request.infer(inputs, share_inputs=True)
        except RuntimeError as error:
            raise Broken(error)
        return self.request.get_output_tensor(0).data

    def cut(self, length):
        for variable in self.request.query_state():
            rows = variable.state.data[:length].copy()
            variable.state = self.runtime.ov.Tensor(rows)
        self.length = length

    def state(self):
        rows = {each.name: each.state.data.copy() for each in self.request.query_state()}
        return rows, sum(array.nbytes for array in rows.values())

    def restore(self, state):
        for variable in self.request.query_state():
            variable.state = self.runtime.ov.Tensor(state[variable.name].copy())


class Runtime:
    modules = [("openvino", "openvino"), ("numpy", "numpy")]
    install = "openvino"

    def load(self, recording, threads, link):
        import numpy
        import openvino

        self.ov = openvino
        kit = Kit(openvino, numpy)
        caches = Caches(kit)
        made = {}
        for name, numbers in recording.inputs([0], 0).items():
            kind = openvino.Type.i32 if numbers.dtype == numpy.int32 else openvino.Type.f32
            by_position = name.startswith(("mask", "back"))  # A column for each, at any length.
            shape = [-1] + [-1 if by_position else count for count in numbers.shape[1:]]
            made[name] = kit.op.parameter(shape, kind, name)
            made[name].output(0).set_names({name})

        def weights(place):
            return kit.constant(recording.constant(place))

        row = Step(kit, recording, weights, made, caches).run()
        model = openvino.Model([row.output(0)], caches.sinks, list(made.values()), "step")
        settings = {
            "INFERENCE_PRECISION_HINT": "f32",
            "KV_CACHE_PRECISION": "f32",
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
        }
        if threads > 0:
            settings["INFERENCE_NUM_THREADS"] = threads
        self.compiled = openvino.Core().compile_model(model, "CPU", settings)

    def open(self):
        return Session(self)


serve(Runtime())
