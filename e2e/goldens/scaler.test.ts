/** GradScaler against torch.amp.GradScaler("cpu"): factor, growth tracker, skipped steps and weights over long runs with planted infinities. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { execFileSync } from "node:child_process";
import { AdamW } from "@opt/adam-amsgrad";
import { clipGradNorm, compile, type Device, Generator, GradScaler, init, listDevices, type Optimizer, parameter, randn, type Tensor, tensor } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { EXACT_DEVICES, sample, torchPython, withoutTorch } from "@opt/testkit";
import { beforeAll, describe, expect, it } from "vitest";

const STEPS = 500;
const SIZE = 37;

interface Run {
  readonly name: string;
  readonly optimizers: number;
  readonly growthFactor: number;
  readonly backoffFactor: number;
  /** Unscale, clip by this norm, step. */
  readonly clip?: number;
}

const RUNS: readonly Run[] = [
  { name: "one optimizer", optimizers: 1, growthFactor: 2, backoffFactor: 0.5 },
  { name: "two optimizers", optimizers: 2, growthFactor: 2, backoffFactor: 0.5 },
  { name: "factors that float32 rounds", optimizers: 1, growthFactor: 1.7, backoffFactor: 0.3 },
  { name: "unscale, then clip", optimizers: 2, growthFactor: 2, backoffFactor: 0.5, clip: 1.5 },
];

/** Gradients by step and optimizer. Infinities and NaN are planted; now and then gradients are so large that the loss scale decides. */
function gradientsOf({ optimizers }: Run): number[][][] {
  const generator = new Generator(5);
  const random = new Generator(6);
  return Array.from({ length: STEPS }, (_, step) =>
    Array.from({ length: optimizers }, (_, o) => {
      const values = [...randn([SIZE], { generator, device: "js" }).dataSync()];
      if (random.nextFloat() < 0.04) values[step % SIZE] = [Infinity, -Infinity, NaN][step % 3]!;
      if (step % 50 > 44 && o === 0) values[3] = 2 ** 112;
      return values;
    }),
  );
}

interface Trace {
  readonly scales: number[];
  readonly trackers: number[];
  readonly weights: number[][];
}

function optimizersOf(weights: readonly Tensor[], clip?: number): Optimizer<never>[] {
  const options = clip === undefined ? {} : { clip: { norm: clip } };
  return weights.map((w, o) =>
    (o === 0 ? new AdamW([w], { lr: 0.01, ...options }) : new NAdam([w], { lr: 0.02, ...options })) as unknown as Optimizer<never>,
  );
}

type How = "eager" | "fused clip" | "compiled" | "resumed";

async function train(run: Run, gradients: number[][][], device: Device, how: How = "eager"): Promise<Trace> {
  const weights = Array.from({ length: run.optimizers }, () => parameter(new Float32Array(SIZE).fill(1), { device }));
  const fused = how === "fused clip" ? run.clip : undefined;
  const optimizers = optimizersOf(weights, fused);
  const options = { initScale: 1024, growthInterval: 7, growthFactor: run.growthFactor, backoffFactor: run.backoffFactor };
  let scaler = new GradScaler(options);
  const inputs = weights.map(() => tensor(new Float32Array(SIZE), { device }));
  const body = () => {
    for (const optimizer of optimizers) optimizer.zeroGrad();
    for (const [o, w] of weights.entries()) scaler.scale(w.mul(inputs[o]!).sum()).backward();
    if (run.clip !== undefined && fused === undefined) {
      for (const optimizer of optimizers) scaler.unscale(optimizer);
      for (const w of weights) clipGradNorm([w], run.clip);
    }
    for (const optimizer of optimizers) scaler.step(optimizer);
    scaler.update();
  };
  const iterate = how === "compiled" ? compile(body) : body;
  const trace: Trace = { scales: [], trackers: [], weights: [] };
  for (const [step, each] of gradients.entries()) {
    for (const [o, values] of each.entries()) inputs[o]!.set(values);
    iterate();
    if (how === "resumed" && step % 40 === 39) {
      const saved = scaler.stateDict();
      scaler.dispose();
      scaler = new GradScaler({ enabled: true });
      scaler.loadStateDict(JSON.parse(JSON.stringify(saved)));
    }
    const { scale, _growth_tracker } = scaler.stateDict();
    trace.scales.push(scale!);
    trace.trackers.push(_growth_tracker!);
  }
  for (const w of weights) trace.weights.push([...w.dataSync()]);
  return trace;
}

const torchProgram = `
import json, sys, torch
torch.Tensor.sqrt = lambda self: torch.sqrt(self.double()).to(self.dtype)
def run(case):
    weights = [torch.nn.Parameter(torch.ones(${SIZE})) for _ in range(case["optimizers"])]
    optimizers = [[torch.optim.AdamW([w], lr=0.01, foreach=False), torch.optim.NAdam([w], lr=0.02, foreach=False)][o] for o, w in enumerate(weights)]
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=7, growth_factor=case["growthFactor"], backoff_factor=case["backoffFactor"])
    scales, trackers = [], []
    for step in case["gradients"]:
        for optimizer in optimizers: optimizer.zero_grad()
        for w, g in zip(weights, step): scaler.scale((w * torch.tensor([float(x) for x in g])).sum()).backward()
        if "clip" in case:
            for optimizer in optimizers: scaler.unscale_(optimizer)
            for w in weights: torch.nn.utils.clip_grad_norm_([w], case["clip"])
        for optimizer in optimizers: scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale()); trackers.append(scaler.state_dict()["_growth_tracker"])
    return {"scales": scales, "trackers": trackers, "weights": [w.tolist() for w in weights]}
print(json.dumps([run(case) for case in json.load(sys.stdin)]))
`;

const gradients = RUNS.map(gradientsOf);
const js = await init("js");
const ours = await Promise.all(RUNS.map((run, r) => train(run, gradients[r]!, js)));

it("meets overflow and growth", () => {
  for (const { scales } of ours) {
    expect(scales.filter((scale, i) => scale < (scales[i - 1] ?? scale)).length).toBeGreaterThan(15);
    expect(scales.filter((scale, i) => scale > (scales[i - 1] ?? scale)).length).toBeGreaterThan(15);
  }
});

describe.skipIf(torchPython === undefined)(`torch.amp.GradScaler${withoutTorch}`, () => {
  let theirs: Trace[] = [];
  beforeAll(() => {
    const input = JSON.stringify(
      RUNS.map((run, r) => ({ ...run, gradients: gradients[r]!.map((step) => step.map((each) => each.map(String))) })),
    ).replaceAll("Infinity", "inf");
    theirs = JSON.parse(execFileSync(torchPython as string, ["-c", torchProgram], { input, maxBuffer: 2 ** 28 }).toString());
  }, 300_000);

  it.each(RUNS.map(({ name }, r) => [name, r] as const))("has the same factors, trackers and weights: %s", (_, r) => {
    expect(ours[r]!.scales).toEqual(theirs[r]!.scales);
    expect(ours[r]!.trackers).toEqual(theirs[r]!.trackers);
    if (RUNS[r]!.clip === undefined) expect(ours[r]!.weights).toEqual(theirs[r]!.weights);
    // PyTorch adds up the squares of a norm in another order.
    else expect(ours[r]!.weights.flat()).toAgreeWith(theirs[r]!.weights.flat(), { absolute: 1e-5, relative: 0 });
  });
});

const devices = (await listDevices()).filter(({ name, available }) => available && EXACT_DEVICES.includes(name)).map(({ name }) => name);

describe("GradScaler gives the same", () => {
  const rows = RUNS.flatMap((run, r) => devices.map((name) => [run.name, name, r] as const));
  it.each(sample(rows, 2))("%s on %s, eager and compiled", async (_, name, r) => {
    const device = await init(name);
    const eager = await train(RUNS[r]!, gradients[r]!, device);
    expect(await train(RUNS[r]!, gradients[r]!, device, "compiled")).toEqual(eager);
    // Devices add up the squares of a norm in orders of their own.
    if (RUNS[r]!.clip === undefined) expect(eager).toEqual(ours[r]);
    else expect([eager.scales, eager.trackers]).toEqual([ours[r]!.scales, ours[r]!.trackers]);
  });

  it.each(sample(RUNS.map(({ name }, r) => [name, r] as const), 2))("%s, resumed every 40 steps", async (_, r) => {
    expect(await train(RUNS[r]!, gradients[r]!, js, "resumed")).toEqual(ours[r]);
  });

  it("clipping as an option of the optimizer", async () => {
    expect(await train(RUNS[3]!, gradients[3]!, js, "fused clip")).toEqual(ours[3]);
  });
});
