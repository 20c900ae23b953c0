// 10,000 steps of training: neither the device's memory nor the host's grows.
import { AdamW } from "@opt/adam-amsgrad";
import { init, tensor, tidy } from "@opt/core";
import { crossEntropy, Linear, ReLU, Sequential } from "@opt/nn";
import { useSoftwareVulkan, whyUnavailable } from "@opt/testkit";
import { expect, it } from "vitest";
import { openWebGpuBackend, type WebGpuBackend } from "./index";

useSoftwareVulkan();
const reason = await whyUnavailable(() => openWebGpuBackend());

it.skipIf(reason !== undefined)(
  `10,000 training steps grow nothing${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  { timeout: 900_000 },
  async () => {
    const device = await init("webgpu");
    const backend = device.backend as WebGpuBackend;
    const model = new Sequential(new Linear(8, 8), new ReLU(), new Linear(8, 4));
    const optimizer = new AdamW(model.namedParameters());
    const step = () =>
      tidy(() => {
        const loss = crossEntropy(
          model.forward(tensor(new Float32Array(32), { shape: [4, 8] })),
          Uint8Array.of(0, 1, 2, 3),
        );
        loss.backward();
        optimizer.step();
        optimizer.zeroGrad();
      });
    const run = async (steps: number) => {
      for (let i = 0; i < steps; i++) {
        step();
        if (i % 10 === 9) await device.sync();
      }
      globalThis.gc?.();
      return { ...backend.counters, ...device.memory(), rss: process.memoryUsage().rss };
    };
    const before = await run(1000);
    const after = await run(10_000);
    for (const key of ["reserved", "used", "pipelines", "bytes", "tensors"] as const)
      expect(after[key], key).toBe(before[key]);
    expect(after.submits - before.submits, "submits").toBeLessThanOrEqual(10_000);
    expect(after.rss - before.rss, "bytes of the process").toBeLessThan(32 * 2 ** 20);
    console.log(`resident set: ${(before.rss / 2 ** 20).toFixed(1)} MiB, then ${(after.rss / 2 ** 20).toFixed(1)} MiB`);
  },
);
