/** Adapters by peft's numbers. `OPT_TORCH_PYTHON` with peft compares live and opens files; goldens hold its losses for every run. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AdamW } from "@opt/adam-amsgrad";
import { memoryFileSystem } from "@opt/checkpoint";
import { compile, type Device, Generator, init, manualSeed, noGrad, rand, type Tensor, tensor, tidy } from "@opt/core";
import { Linear, Sequential } from "@opt/nn";
import { EXACT_DEVICES, eachDevice, expectCode, torchPython } from "@opt/testkit";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { batchesOf, SIZES, TinyTransformer } from "../../testing/tiny-transformer";
import { causalLoss } from "../data/causal-loss";
import { lora, merge, unmerge } from "./lora";
import { loadAdapter, saveAdapter } from "./peft-files";

const STEPS = 50;
const LR = 1e-2;
const BATCHES = batchesOf(STEPS, 4, 12, SIZES.tokens);
const IDS = BATCHES[0]!.input;
const GOLDENS = fileURLToPath(new URL("../../testing/peft.json", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../../testing/peft_runs.py", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "opt-peft-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Run {
  readonly losses: number[];
  readonly logits: number[];
  readonly merged: number[];
  readonly names: string[];
}

const CASES = {
  lora: { rank: 4, alpha: 8, targets: ["q_proj", "v_proj"] },
  "lora on every layer": { rank: 3, alpha: 5, targets: [/_proj$/] },
  dora: { rank: 4, alpha: 8, targets: ["q_proj", "down_proj"], dora: true },
} as const;
type Case = keyof typeof CASES;
const cases = Object.keys(CASES) as Case[];

/** A model of the same first numbers on each device; B begins with numbers, so that A has a gradient in the first step. */
function adapted(name: Case, device: Device): TinyTransformer {
  const generator = new Generator(2);
  const model = lora(new TinyTransformer(SIZES, device), { ...CASES[name], generator });
  for (const [key, matrix] of model.namedParameters()) {
    if (!key.endsWith("lora_B.weight")) continue;
    const values = Float32Array.from({ length: matrix.size }, () => 0.2 * (generator.nextFloat() - 0.5));
    matrix.set(tensor(values, { shape: matrix.shape, device }));
  }
  return model;
}

const numbersOf = (model: TinyTransformer, isAdapter: boolean) =>
  Object.fromEntries(
    Object.entries(model.stateDict())
      .filter(([key]) => key.includes(".lora_") === isAdapter)
      .map(([key, value]) => [isAdapter ? `base_model.model.${key}` : key, nested(value)]),
  );
const nested = (x: Tensor) => {
  const values = [...x.dataSync()] as number[];
  const [rows, columns] = x.shape as [number, number | undefined];
  return columns === undefined
    ? values
    : Array.from({ length: rows }, (_, i) => values.slice(i * columns, (i + 1) * columns));
};

const idsOn = (device: Device, ids: number[][]) => tensor(ids, { dtype: "i32", device });
const logitsOf = (model: TinyTransformer, device: Device) =>
  tidy(() => noGrad(() => [...model.forward(idsOn(device, IDS)).dataSync()]));

/** Every loss. */
function train(model: TinyTransformer, device: Device, batches = BATCHES): number[] {
  const optimizer = new AdamW(model.namedParameters(), { lr: LR });
  const step = compile((input: Tensor, labels: Tensor) => {
    const { sum, count } = causalLoss(model.forward(input), labels);
    const loss = sum.div(count);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss.detach();
  });
  return batches.map(({ input, labels }) =>
    tidy(() => step(idsOn(device, input), tensor(labels, { dtype: "i32", device })).dataSync()[0]!),
  );
}

interface Ask {
  readonly name: Case;
  readonly model: TinyTransformer;
  readonly batches?: typeof BATCHES;
  readonly folder?: string;
  readonly load?: string;
}

const ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj"];

/** One process for all runs: it starts for seconds. */
function askPeft(asked: readonly Ask[]): Run[] {
  const runs = asked.map(({ name, model, ...places }) => {
    const { rank, alpha, targets, ...others } = CASES[name];
    const target_modules = targets.flatMap((target) => (typeof target === "string" ? target : ALL));
    const options = { r: rank, lora_alpha: alpha, target_modules, use_dora: "dora" in others };
    const [state, adapter] = [false, true].map((isAdapter) => numbersOf(model, isAdapter));
    return { state, adapter, options, batches: BATCHES, ...places };
  });
  const input = JSON.stringify({ sizes: SIZES, ids: IDS, lr: LR, runs });
  return JSON.parse(execFileSync(torchPython!, ["-W", "ignore", PROGRAM], { input, encoding: "utf8" }));
}

const hasPeft = (() => {
  if (torchPython === undefined) return false;
  try {
    execFileSync(torchPython, ["-c", "import peft, transformers"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

const WITHOUT = " (skipped: OPT_TORCH_PYTHON names no Python with peft)";
const close = { absolute: 1e-5, relative: 1e-5 };

if (process.env.OPT_WRITE_GOLDENS === "1" && hasPeft) {
  const device = await init("js");
  const rounded = ({ losses, logits }: Run) => ({ losses, logits: logits.slice(0, 64) });
  const all = askPeft(cases.map((name) => ({ name, model: adapted(name, device) })));
  const runs = cases.map((name, i) => [name, rounded(all[i]!)]);
  writeFileSync(GOLDENS, `${JSON.stringify(Object.fromEntries(runs))}\n`);
}
const goldens = JSON.parse(readFileSync(GOLDENS, "utf8")) as Record<Case, Pick<Run, "losses" | "logits">>;

await eachDevice((device) => {
  it.each(cases)("%s trains with peft's losses, and merges", (name) => {
    const model = adapted(name, device);
    expect(train(model, device)).toAgreeWith(goldens[name].losses, close);
    const before = logitsOf(model.eval(), device);
    expect(before.slice(0, 64)).toAgreeWith(goldens[name].logits, { absolute: 1e-4, relative: 1e-4 });
    const weights = JSON.stringify(numbersOf(model, false));

    merge(model);
    expect(Object.keys(model.stateDict()).filter((key) => key.includes("lora"))).toEqual([]);
    expect(logitsOf(model, device)).toAgreeWith(before, close);
    expect(JSON.stringify(numbersOf(model, false)) === weights).toBe(false);
    unmerge(model);
    expect(JSON.stringify(numbersOf(model, false)) === weights).toBe(true);
    expect(logitsOf(model, device)).toEqual(before);
  });
}, EXACT_DEVICES);

it.skipIf(!hasPeft)(`peft has the losses and names, and adapters open both ways${hasPeft ? "" : WITHOUT}`, async () => {
  const device = await init("js");
  const asked = cases.map((name, i) => ({ name, model: adapted(name, device), folder: join(folder, `theirs-${i}`) }));
  const theirs = askPeft(asked);
  for (const [i, { model, folder: saved }] of asked.entries()) {
    expect(train(model, device)).toAgreeWith(theirs[i]!.losses, close);
    expect(Object.keys(numbersOf(model, true)).sort()).toEqual(theirs[i]!.names);
    const opened = await loadAdapter(new TinyTransformer(SIZES, device), saved);
    expect(logitsOf(opened.eval(), device)).toAgreeWith(theirs[i]!.logits, close);
    expect(logitsOf(merge(opened), device)).toAgreeWith(theirs[i]!.merged, close);
    await saveAdapter(model, join(folder, `ours-${i}`), { base: "tiny" });
  }
  const few = BATCHES.slice(0, 5);
  const again = askPeft(asked.map((ask, i) => ({ ...ask, load: join(folder, `ours-${i}`), batches: few })));
  for (const [i, { model }] of asked.entries()) expect(train(model, device, few)).toAgreeWith(again[i]!.losses, close);
});

describe("lora", () => {
  const net = () => new Sequential(new Linear(4, 4), new Linear(4, 2));

  it("begins with the base's bits, and trains its own matrices alone", async () => {
    const device = await init("js");
    const model = new TinyTransformer(SIZES, device);
    const before = logitsOf(model, device);
    lora(model, { rank: 2, targets: ["q_proj"] });
    expect(logitsOf(model, device)).toEqual(before);
    expect(model.namedParameters({ trainable: true }).map(([name]) => name)).toEqual(
      [0, 1].flatMap((i) => ["A", "B"].map((matrix) => `layers.${i}.q_proj.lora_${matrix}.weight`)),
    );
  });

  it("a second adapter leaves the first one to be trained", async () => {
    await init("js");
    const model = lora(lora(net(), { rank: 1, targets: ["0"] }), { rank: 2, targets: ["1"] });
    expect(model.namedParameters({ trainable: true }).map(([name]) => name)).toEqual(
      ["0", "1"].flatMap((layer) => ["A", "B"].map((matrix) => `${layer}.lora_${matrix}.weight`)),
    );
  });

  it("drops inputs of A in training alone", async () => {
    const device = await init("js");
    manualSeed(1);
    const model = lora(new TinyTransformer(SIZES, device), {
      ...{ rank: 2, alpha: 4, dropout: 0.5, targets: ["q_proj"], generator: new Generator(3) },
    });
    for (const [name, weight] of model.namedParameters()) if (name.includes("lora_B")) weight.set(weight.add(0.3));
    const [first, second] = [logitsOf(model, device), logitsOf(model, device)];
    expect(first).not.toEqual(second);
    model.eval();
    expect(logitsOf(model, device)).toEqual(logitsOf(model, device));
  });

  it("DoRA with dropout computes all of its layer from what is left", async () => {
    await init("js");
    const model = lora(new Sequential(new Linear(4, 3)), {
      ...{ rank: 1, dropout: 0.999999, dora: true, targets: ["0"], generator: new Generator(1) },
    });
    const layer = model.at(0) as Linear & { lora_magnitude_vector: Tensor };
    layer.lora_magnitude_vector.set(layer.lora_magnitude_vector.mul(2));
    const [y, plain] = [
      model.forward(tensor([[1, 2, 3, 4]])),
      tensor([[1, 2, 3, 4]]).matmul(layer.weight, { transposeB: true }),
    ];
    expect(await y.data()).toAgreeWith(await plain.add(layer.bias!).data(), { absolute: 1e-6, relative: 1e-6 });
  });

  it("rejects targets that match nothing, and names the nearest", async () => {
    await init("js");
    const model = new TinyTransformer(SIZES, await init("js"));
    expect(() => lora(model, { targets: ["q_porj"] })).toThrow(/"q_porj".*nearest names are q_proj/);
    expectCode("BAD_ARGUMENT", () => lora(model, { targets: [/^nothing/] }));
    expectCode("BAD_ARGUMENT", () => lora(model, { targets: [] }));
    expectCode("BAD_ARGUMENT", () => lora(model, { targets: ["q_proj"], rank: 0 }));
    expectCode("BAD_ARGUMENT", () => lora(model, { targets: ["q_proj"], alpha: Number.NaN }));
    expect(model.parameters({ trainable: true }).length).toBeGreaterThan(10); // nothing is frozen
  });

  it("takes one adapter for a layer, and merges what is there", async () => {
    await init("js");
    const model = net();
    expectCode("BAD_STATE", () => merge(model));
    expectCode("BAD_STATE", () => unmerge(model));
    lora(model, { rank: 1, targets: ["0"] });
    expectCode("BAD_STATE", () => lora(model, { targets: ["0"] }));
    merge(model);
    expectCode("BAD_STATE", () => merge(model));
    lora(model, { rank: 2, targets: [/^0$/] }); // upon what was merged, for good
    expectCode("BAD_STATE", () => unmerge(model));
  });

  const drawn = fc.record({
    ...{ rank: fc.integer({ min: 1, max: 3 }), alpha: fc.constantFrom(-2, 0.5, 5), dropout: fc.constantFrom(0, 0.5) },
    ...{ dora: fc.boolean(), bias: fc.boolean(), dtype: fc.constantFrom("f32", "f64") },
    targets: fc.constantFrom<string[]>(["0"], ["1"], ["0", "1"]),
    /** Both layers are one. */
    shared: fc.boolean(),
    /** In training: before lora, while merged. */
    modes: fc.tuple(fc.boolean(), fc.boolean()),
  });

  it("computes by the formula in eval mode, whatever the options and modes: adapted, merged, unmerged, from files", async () => {
    await init("js");
    await fc.assert(
      fc.asyncProperty(drawn, fc.nat(99), async ({ bias, dtype, modes, shared, targets, ...own }, seed) => {
        const options = { ...own, targets: shared ? [/./] : targets };
        const generator = new Generator(seed);
        const base = () => {
          const layer = () => new Linear(3, 3, { bias, dtype: dtype as "f32", generator: new Generator(seed) });
          const first = layer();
          return new Sequential(first, shared ? first : layer()).train(modes[0]);
        };
        const model = lora(base(), { ...options, generator });
        const modesOf = () => new Set(model.modules().map(({ training }) => training));
        expect(modesOf()).toEqual(new Set([modes[0]]));
        for (const [name, part] of model.namedParameters({ trainable: true })) {
          expect(part.dtype).toBe(dtype);
          part.set(name.includes("lora_A") ? part : rand(part.shape, { generator, dtype: part.dtype }));
        }
        const x = rand([2, 3], { generator, dtype: dtype as "f32" });
        const expected = tidy(() =>
          ["0", "1"]
            .reduce((x, name, i) => {
              type Adapted = Linear & { lora_A?: Linear; lora_B?: Linear; lora_magnitude_vector?: Tensor };
              const { weight: w, bias: b, ...own } = model.at(i) as Adapted;
              const [a, up, length] = [own.lora_A?.weight, own.lora_B?.weight, own.lora_magnitude_vector];
              const sum = a && up ? w.add(up.matmul(a).mul(options.alpha / options.rank)) : w;
              const rows = length ? sum.mul(length.div(sum.mul(sum).sum(1).sqrt()).unsqueeze(1)) : sum;
              expect(Boolean(a)).toBe(shared || targets.includes(name));
              const y = x.matmul(rows, { transposeB: true });
              return b ? y.add(b) : y;
            }, x)
            .dataSync()
            .slice(),
        );
        const close = { absolute: 1e-5, relative: 1e-5 };
        const outputs = (of: Sequential) => tidy(() => of.forward(x).dataSync().slice());
        const first = outputs(model.eval());
        expect(first).toAgreeWith(expected, close);
        const fileSystem = memoryFileSystem();
        await saveAdapter(model, "adapter", { fileSystem });
        const opened = await loadAdapter(base(), "adapter", { fileSystem });
        expect(new Set(opened.modules().map(({ training }) => training))).toEqual(new Set([modes[0]]));
        expect(outputs(opened.eval())).toEqual(first);
        model.train(modes[0]);
        expect(outputs(merge(model))).toAgreeWith(expected, close);
        unmerge(model.train(modes[1]));
        expect(modesOf()).toEqual(new Set([modes[1]]));
        expect(outputs(model.eval())).toEqual(first);
      }),
      { seed: 1, numRuns: 20 },
    );
  });

  it("holds its matrices, and of what is merged a copy, after any calls", async () => {
    const device = await init("js");
    const calls = fc.array(fc.constantFrom("lora", "dora", "merge", "unmerge"), { maxLength: 7 });
    await fc.assert(
      fc.asyncProperty(calls, async (calls) => {
        const model = net();
        const { tensors } = device.memory();
        let [parts, isMerged, former] = [0, false, 0];
        const run = {
          ...{ merge: () => merge(model), unmerge: () => unmerge(model) },
          ...{
            lora: () => lora(model, { rank: 1, targets: ["0"] }),
            dora: () => lora(model, { rank: 1, targets: ["0"], dora: true }),
          },
        };
        for (const call of calls as (keyof typeof run)[]) {
          const isNew = call === "lora" || call === "dora";
          const fits = isNew ? parts === 0 || isMerged : parts > 0 && isMerged === (call === "unmerge");
          if (!fits) await expectCode("BAD_STATE", run[call]);
          else {
            run[call]();
            if (isNew) former += parts; // optimizers may still hold them
            if (isNew) parts = call === "dora" ? 3 : 2;
            isMerged = call === "merge";
          }
          expect(device.memory().tensors - tensors).toBeLessThanOrEqual(former + parts + Number(isMerged));
        }
      }),
      { seed: 1, numRuns: 40 },
    );
  });
});

it("unmerge undoes one merge, and no second one", async () => {
  await init("js");
  const model = unmerge(merge(lora(new Sequential(new Linear(2, 2)), { rank: 1, targets: ["0"] })));
  expectCode("BAD_STATE", () => unmerge(model));
  merge(model);
  expectCode("BAD_STATE", () => merge(model));
});
