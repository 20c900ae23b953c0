/** Plans of memory by what steps really took. Alone: other tests' tensors would count. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { type Device, defaultGenerator, Generator, noGrad, tensor, tidy } from "@opt/core";
import { EXACT_DEVICES, eachDevice, expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { batchesOf, TinyTransformer } from "../../testing/tiny-transformer";
import { lora } from "../adapters/lora";
import { quantize } from "../adapters/quantize";
import { causalLoss } from "../data/causal-loss";
import { fitsIn } from "./fits-in";

const SIZES = { tokens: 96, width: 32, hidden: 64, heads: 4, blocks: 3 };
const [BATCH, LENGTH] = [4, 64];

/** The most bytes on the device since then. */
function watched({ pool }: Device) {
  const allocate = pool.allocate.bind(pool);
  let most = 0;
  pool.allocate = (bytes) => {
    const memory = allocate(bytes);
    most = Math.max(most, pool.bytes);
    return memory;
  };
  return () => {
    pool.allocate = allocate;
    return most;
  };
}

const CASES = ["whole", "lora", "recomputed", "q8", "nf4"] as const;

async function make(name: (typeof CASES)[number], device: Device): Promise<TinyTransformer> {
  const model = new TinyTransformer(SIZES, device, name === "recomputed");
  if (name === "whole") return model;
  if (name === "q8" || name === "nf4") await quantize(model, name, { targets: [/_proj$/] });
  return lora(model, { rank: 4, targets: ["q_proj", "v_proj"], generator: new Generator(1) });
}

await eachDevice((device) => {
  it.each(CASES)("plans steps within a tenth of what they take: %s", async (name) => {
    const live = device.memory().bytes;
    const model = await make(name, device);
    const optimizer = new AdamW(model.namedParameters());
    const weights = model.parameters().map((each) => [...each.dataSync()]);
    const generator = defaultGenerator.stateDict();
    const { bytes, parts } = fitsIn(model, { batch: BATCH, length: LENGTH, optimizer });
    expect(model.parameters().map((each) => [...each.dataSync()])).toEqual(weights);
    expect(defaultGenerator.stateDict()).toEqual(generator);
    expect(model.parameters().every(({ grad }) => grad === null)).toBe(true);
    const trained = model.parameters({ trainable: true }).reduce((sum, { size }) => sum + 4 * size, 0);
    expect([parts.gradients, parts.cache]).toEqual([trained, 0]);
    expect(parts.state / (2 * trained)).toBeGreaterThanOrEqual(1); // optimizers align what they keep
    expect(parts.state / (2 * trained)).toBeLessThan(1.05);
    expect(parts.weights + parts.adapter).toBe(device.memory().bytes - live);

    const peak = watched(device);
    for (const { input, labels } of batchesOf(2, BATCH, LENGTH, SIZES.tokens))
      tidy(() => {
        const ids = tensor(input, { dtype: "i32", device });
        const { sum, count } = causalLoss(model.forward(ids), tensor(labels, { dtype: "i32", device }));
        sum.div(count).backward();
        optimizer.step();
        optimizer.zeroGrad();
      });
    const measured = peak() - live;
    expect(bytes / measured).toBeGreaterThan(0.9);
    expect(bytes / measured).toBeLessThan(1.1);
    for (const each of [...model.parameters(), ...model.buffers()]) each.dispose();
    optimizer.dispose();
  });

  it("plans generation: no gradients, but a cache", async () => {
    const live = device.memory().bytes;
    const model = Object.assign(new TinyTransformer(SIZES, device), { config: { layers: 3, kvHeads: 2, headDim: 8 } });
    const { bytes, parts } = fitsIn(model, { batch: 2, length: LENGTH });
    expect([parts.gradients, parts.state, parts.cache]).toEqual([0, 0, 2 * 4 * 3 * 2 * 2 * 8 * LENGTH]);
    const peak = watched(device);
    const { input } = batchesOf(1, 2, LENGTH, SIZES.tokens)[0]!;
    tidy(() => noGrad(() => void model.forward(tensor(input, { dtype: "i32", device }))));
    const ratio = (bytes - parts.cache) / (peak() - live);
    expect([ratio > 0.9, ratio < 1.1], `${ratio}`).toEqual([true, true]);
    expectCode("BAD_ARGUMENT", () => fitsIn(model, { batch: 0, length: 8 }));
    expectCode("BAD_ARGUMENT", () => fitsIn(model, { batch: 1, length: 1.5 }));
    for (const each of model.parameters()) each.dispose();
  });
}, EXACT_DEVICES);
