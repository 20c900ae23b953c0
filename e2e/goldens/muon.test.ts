/**
 * Muon against PyTorch on every device that opens: 30 random configurations, 200 steps. The momentum has PyTorch's bits. Where sums are
 * added in another order a bfloat16 of the orthogonal direction may be rounded the other way: weights are within a tenth of a step.
 * OPT_TORCH_PYTHON names a Python that has torch; without it the goldens judge.
 */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { execFileSync } from "node:child_process";
import { init, listDevices } from "@opt/core";
import { Muon } from "@opt/muon";
import { muonGoldens, type OptimizerOptions, runOptimizer, seededArray, useSoftwareVulkan, torchPython, withoutTorch } from "@opt/testkit";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";

useSoftwareVulkan();
const [CASES, STEPS] = [30, 200];

const torchProgram = `
import base64, json, re, sys, torch
torch.set_num_threads(1)
def snake(key): return re.sub("[A-Z]", lambda m: "_" + m.group(0).lower(), key)
def run(case):
    dtype = getattr(torch, case["dtype"])
    read = lambda text: torch.frombuffer(bytearray(base64.b64decode(text)), dtype=dtype).reshape(case["shape"])
    write = lambda tensor: base64.b64encode(tensor.detach().contiguous().numpy().tobytes()).decode()
    param = torch.nn.Parameter(read(case["start"]))
    optimizer = torch.optim.Muon([param], **{snake(key): value for key, value in case["options"].items()})
    for gradient in case["gradients"]:
        param.grad = read(gradient)
        optimizer.step()
    return {"param": write(param), "momentum": write(optimizer.state[param]["momentum_buffer"])}
print(json.dumps([run(case) for case in json.load(sys.stdin)]))
`;

const real = (min: number, max: number) => fc.double({ min, max, noNaN: true });
const configuration = fc.record({
  shape: fc.tuple(fc.integer({ min: 1, max: 24 }), fc.integer({ min: 1, max: 24 })),
  dtype: fc.constantFrom("f32", "f64"),
  options: fc.record(
    {
      lr: real(1e-4, 0.1),
      weightDecay: fc.oneof(fc.constant(0), real(1e-4, 0.3)),
      momentum: real(0, 0.99),
      nesterov: fc.boolean(),
      nsSteps: fc.integer({ min: 0, max: 7 }),
      eps: fc.constantFrom(1e-7, 0.1),
      adjustLrFn: fc.constantFrom("original", "match_rms_adamw"),
    },
    { requiredKeys: ["lr"] },
  ),
});

const base64 = (array: ArrayBufferView) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("base64");
const numbers = (text: string, dtype: string) => {
  const { buffer } = Uint8Array.from(Buffer.from(text, "base64"));
  return dtype === "f32" ? new Float32Array(buffer) : new Float64Array(buffer);
};

const cases = fc.sample(configuration, { numRuns: CASES, seed: 13 }).map(({ shape, dtype, options }, i) => {
  const drawn = (n: number) => seededArray(dtype as "f32", shape[0] * shape[1], { seed: i * (STEPS + 1) + n });
  const gradients = Array.from({ length: STEPS }, (_, step) => drawn(step + 1));
  return { shape, dtype: dtype as "f32" | "f64", options: options as OptimizerOptions, start: drawn(0), gradients };
});

/** A tenth of the learning rate, as it is for this matrix. */
function tenthOfStep([rows, columns]: readonly [number, number], { lr = 1e-3, adjustLrFn }: OptimizerOptions): number {
  const isScaled = adjustLrFn === "match_rms_adamw";
  return 0.1 * Number(lr) * (isScaled ? 0.2 * Math.sqrt(Math.max(rows, columns)) : Math.sqrt(Math.max(1, rows / columns)));
}

let expected: { param: string; momentum: string }[] = [];
beforeAll(() => {
  if (torchPython === undefined) return;
  const stored = cases.map(({ start, gradients, dtype, ...others }) => ({
    ...others,
    dtype: dtype === "f32" ? "float32" : "float64",
    start: base64(start),
    gradients: gradients.map(base64),
  }));
  const input = { input: JSON.stringify(stored), encoding: "utf8", maxBuffer: 1 << 28 } as const;
  expected = JSON.parse(execFileSync(torchPython, ["-c", torchProgram], input));
}, 120_000);

const available = (await listDevices()).filter((device) => device.available).map(({ name }) => name);

describe.each(["js", "wasm", "cpu", "webgpu"].filter((name) => available.includes(name)))("on %s", (on) => {
  it.skipIf(torchPython === undefined || on === "webgpu")(`is as PyTorch's${withoutTorch}`, { timeout: 120_000 }, async () => {
    const device = await init(on);
    for (const [i, { shape, dtype, options, ...run }] of cases.entries()) {
      const { trace, state } = await runOptimizer(Muon, { ...run, shape, dtype, options, device });
      const what = `${shape} ${dtype} ${JSON.stringify(options)}`;
      const { param, momentum } = expected[i]!;
      const bits = dtype === "f32" ? "bits" : { absolute: 1e-12, relative: 1e-12 };
      expect(state.get("momentum_buffer"), what).toAgreeWith(numbers(momentum, dtype), bits);
      const tolerance = { absolute: tenthOfStep(shape, options), relative: 0 };
      expect(trace.at(-1), what).toAgreeWith(numbers(param, dtype), tolerance);
    }
  });

  it("keeps to the goldens", async () => {
    const device = await init(on);
    for (const { shape, options, param, momentum, ...run } of muonGoldens()) {
      const { trace, state } = await runOptimizer(Muon, { ...run, shape, options, device });
      const bits = on === "webgpu" ? { absolute: 1e-6, relative: 0 } : "bits";
      expect(state.get("momentum_buffer")).toAgreeWith(momentum, bits);
      expect(trace.at(-1)).toAgreeWith(param, { absolute: tenthOfStep(shape, options), relative: 0 });
    }
  });
});
