// A run of `fit` on a device that does not answer at once saves, reports and resumes as on js: scales and skips are equal.
import { AdamW } from "@opt/adam-amsgrad";
import { loadCheckpoint, memoryFileSystem, optimizerState, saveCheckpoint } from "@opt/checkpoint";
import {
  type Device,
  ExponentialMovingAverage,
  Generator,
  GradScaler,
  init,
  manualSeed,
  type Tensor,
  tensor,
} from "@opt/core";
import { LinearLR } from "@opt/core/schedules";
import { openWebGpuBackend } from "@opt/kernels-webgpu";
import { crossEntropy, Linear, ReLU, Sequential } from "@opt/nn";
import { useSoftwareVulkan, whyUnavailable } from "@opt/testkit";
import { expect, it, vi } from "vitest";
import { checkpoints } from "../callbacks/checkpoints";
import { earlyStopping } from "../callbacks/early-stopping";
import { logger } from "../callbacks/logger";
import { fit } from "../fit";
import { accuracy } from "../metrics/metrics";
import type { Callback } from "./events";

useSoftwareVulkan();
const reason = await whyUnavailable(() => openWebGpuBackend());

/** Six batches, of which the third and fifth overflow. */
function batchesOn(device: Device): [Tensor, Tensor][] {
  const generator = new Generator(2);
  return Array.from({ length: 6 }, (_, i) => {
    const values = Float32Array.from({ length: 24 }, () => generator.nextFloat() - 0.5);
    if (i === 2) values[3] = Number.NaN;
    if (i === 4) values[7] = Infinity;
    return [tensor(values, { shape: [4, 6], device }), tensor([0, 1, 2, 1], { dtype: "i32", device })];
  });
}

function begin(device: Device) {
  manualSeed(5);
  const generator = new Generator(1);
  const model = new Sequential(
    new Linear(6, 8, { generator, device }),
    new ReLU(),
    new Linear(8, 3, { generator, device }),
  );
  const optimizer = new AdamW(model.namedParameters(), { lr: 0.02 });
  const scaler = new GradScaler({ initScale: 8, growthInterval: 3 });
  const ema = new ExponentialMovingAverage(model.namedParameters(), { decay: 0.9 });
  return {
    model,
    optimizer,
    scaler,
    ema,
    schedule: new LinearLR(optimizer, { startFactor: 1, endFactor: 0.1, totalIters: 6 }),
  };
}

async function run(name: string) {
  const device = await init(name);
  const fileSystem = memoryFileSystem();
  const scales: unknown[] = [];
  const train = async (more: object, others: readonly Callback[] = []) => {
    const { model, ...parts } = begin(device);
    const follow: Callback = {
      name: "follow",
      onStepEnd() {
        scales.push(parts.scaler.stateDict());
      },
    };
    const callbacks = [
      checkpoints("runs/a", { every: 1, fileSystem }),
      earlyStopping({ patience: 5 }),
      logger(() => {}),
      follow,
      ...others,
    ];
    const data = batchesOn(device);
    const options = {
      ...parts,
      data,
      validation: data.slice(0, 2),
      metrics: [accuracy()],
      loss: crossEntropy,
      epochs: 2,
      callbacks,
    };
    const history = await fit(model, { ...options, ...more });
    const weights = [];
    for (const weight of [...model.parameters(), ...Object.values(parts.ema.stateDict())])
      if (typeof weight !== "number") weights.push(...(await weight.data()));
    return { history, weights, steps: parts.optimizer.stateDict().state["0.weight"]?.step };
  };
  const controller = new AbortController();
  await train({ signal: controller.signal }, [{ onStepEnd: ({ step }) => step === 4 && controller.abort() }]);
  const { weights, steps, history } = await train({ resume: true });
  const records = history.epochs.map(({ epoch, accuracy, val_accuracy }) => [epoch, accuracy, val_accuracy]);
  return { scales, weights, steps, records, losses: history.losses.map((loss) => loss.toFixed(4)) };
}

it.skipIf(reason !== undefined)(
  "fit with a scaler, averages and checkpoints on webgpu",
  { timeout: 120_000 },
  async () => {
    vi.spyOn(console, "warn").mockImplementation(() => {}); // of losses that are NaN
    const [found, right] = [await run("webgpu"), await run("js")];
    expect(found.scales).toEqual(right.scales);
    expect(right.scales.map((state) => (state as { scale: number }).scale)).toEqual([
      8, 8, 4, 4, 2, 2, 2, 4, 2, 2, 1, 1,
    ]);
    expect([found.steps, found.records, found.losses]).toEqual([right.steps, right.records, right.losses]);
    expect(right.losses).toHaveLength(12);
    expect(right.steps).toBe(8);
    expect(Float32Array.from(found.weights)).toAgreeWith(right.weights, { absolute: 1e-6, relative: 1e-5 });
  },
);

it.skipIf(reason !== undefined)("counters that other programs save as tensors load on webgpu", async () => {
  const fileSystem = memoryFileSystem();
  await init("js");
  const step = tensor(3);
  const ones = { w: tensor([1, 2]), "w.exp_avg": tensor([1, 2]), "w.exp_avg_sq": tensor([1, 2]) };
  const average = { n_averaged: tensor(7, { dtype: "i32" }), "module.w": tensor([3, 4]) };
  await saveCheckpoint("runs/a", { tensors: { ...ones, "w.step": step, ...average }, step: 3 }, { fileSystem });
  const device = await init("webgpu");
  const loaded = await loadCheckpoint("runs/a", { fileSystem });
  expect(optimizerState(loaded).state.w!.step).toBe(3);
  const averages = new ExponentialMovingAverage([["w", tensor([1, 2], { device, requiresGrad: true })]]);
  averages.loadStateDict(loaded.tensors);
  expect(averages.stateDict().n_averaged).toBe(7);
  expect([...(await averages.stateDict()["module.w"]!.data())]).toEqual([3, 4]);
});
