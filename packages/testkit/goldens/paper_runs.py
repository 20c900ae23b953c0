"""Writes runs of plain float64 programs of papers' formulas: testing/paper.json of a package, by its testing/paper.py.

A program is a function of options, parameters and `gradients(step)` that yields the parameters after each step.
"""
import base64, json, pathlib
import numpy


def numbers(shape, tensor, step):
    """At step 0 the parameter, then gradients: `runNumbers` of testkit."""
    values = []
    for i in range(int(numpy.prod(shape))):
        if step == 0:
            values.append(((i * 37 + tensor * 11) % 64 - 31) / 16)
        else:
            values.append(((step * step * 7 + i * 13 * step + tensor * 5 + i * i) % 101 - 50) / 32)
    return numpy.array(values, numpy.float64).reshape(shape)


MASK = numpy.uint64(0xFFFFFFFF)
SHIFT = numpy.uint64(32)


def normals_at(seed, step, count):
    """Core's `normalsAt`: Philox 4x32-10 with the counter [place / 4, step], and Box & Muller's numbers of two words each."""
    blocks = (count + 3) // 4
    counter = [numpy.arange(blocks, dtype=numpy.uint64), numpy.zeros(blocks, numpy.uint64), numpy.full(blocks, step, numpy.uint64), numpy.zeros(blocks, numpy.uint64)]
    k0, k1 = numpy.uint64(seed & 0xFFFFFFFF), numpy.uint64(seed >> 32)
    for _ in range(10):
        a, b = counter[0] * numpy.uint64(0xD2511F53), counter[2] * numpy.uint64(0xCD9E8D57)
        counter = [(b >> SHIFT) ^ counter[1] ^ k0, b & MASK, (a >> SHIFT) ^ counter[3] ^ k1, a & MASK]
        k0, k1 = (k0 + numpy.uint64(0x9E3779B9)) & MASK, (k1 + numpy.uint64(0xBB67AE85)) & MASK
    uniform = (numpy.stack(counter, 1).reshape(-1, 2) >> numpy.uint64(8)).astype(numpy.float64) * 2.0**-24
    radius, angle = numpy.sqrt(-2 * numpy.log(1 - uniform[:, 0])), 2 * numpy.pi * uniform[:, 1]
    return numpy.stack([radius * numpy.cos(angle), radius * numpy.sin(angle)], 1).reshape(-1)[:count]


def write(program_file, runs, shapes, steps=200):
    """`runs`: (class, options, program) each."""
    folder = pathlib.Path(program_file).parent
    at = lambda step: [numbers(shape, k, step) for k, shape in enumerate(shapes)]

    def run(name, options, program):
        params = at(0)
        sign = -1 if options.get("maximize") else 1
        step = program(params, **{key: value for key, value in options.items() if key != "maximize"})
        for t in range(1, steps + 1):
            step([sign * gradient for gradient in at(t)])
        text = [base64.b64encode(param.astype(numpy.float64).tobytes()).decode() for param in params]
        return {"optimizer": name, "options": options, "dtype": "float64", "steps": steps, "params": text}

    lines = ",\n".join(json.dumps(run(*each), separators=(",", ":")) for each in runs)
    (folder / "paper.json").write_text(f'{{"shapes":{json.dumps(shapes)},"runs":[\n{lines}\n]}}\n')
