// How few commands a step takes: counted, not assumed.
import { AdamW } from "@opt/adam-amsgrad";
import { clipGradNorm, compile, type Device, init, parameter, type Tensor, tensor, tidy } from "@opt/core";
import { crossEntropy, Linear, ReLU, Sequential } from "@opt/nn";
import { useSoftwareVulkan, whyUnavailable } from "@opt/testkit";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { collectGarbage } from "../../core/src/host/garbage";
import { openWebGpuBackend, type WebGpuBackend } from "./index";

useSoftwareVulkan();
const reason = await whyUnavailable(() => openWebGpuBackend());

/** What a test made. Were it only dropped, the garbage collector would give it back in the middle of another's count. */
const made: { dispose(): void }[] = [];

function kept<T extends { dispose(): void }>(thing: T): T {
  made.push(thing);
  return thing;
}

function network(): Sequential {
  const model = new Sequential(new Linear(20, 16), new ReLU(), new Linear(16, 10));
  for (const param of model.parameters()) kept(param);
  return model;
}

function parameters(count: number, size: number, device: Device): Tensor[] {
  return Array.from({ length: count }, (_, i) => {
    const param = kept(parameter(new Float32Array(size).fill(i), { device }));
    param.grad = kept(tensor(new Float32Array(size).fill(1 + i), { device }));
    return param;
  });
}

describe.skipIf(reason !== undefined)(
  `commands of a step${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let backend: WebGpuBackend;
    let device: Device;
    beforeAll(async () => {
      device = await init("webgpu");
      backend = device.backend as WebGpuBackend;
    });

    afterEach(() => {
      for (const thing of made.splice(0).reverse()) thing.dispose();
    });

    /** What the device was asked for meanwhile. */
    async function counted(body: () => unknown) {
      // What other tests dropped comes back now, and not in the middle of the count.
      for (let i = 0; i < 3; i++) {
        collectGarbage();
        await new Promise((resolve) => setTimeout(resolve));
      }
      await device.sync();
      const before = backend.counters;
      await body();
      await device.sync();
      const after = backend.counters;
      return {
        dispatches: after.dispatches - before.dispatches,
        submits: after.submits - before.submits,
        pipelines: after.pipelines - before.pipelines,
        reserved: after.reserved - before.reserved,
        used: after.used - before.used,
      };
    }

    it("AdamW steps 1000 tensors in one dispatch, again and again without an upload or an allocation", async () => {
      const params = parameters(1000, 37, device);
      const optimizer = kept(new AdamW(params));
      optimizer.step();
      const steps = await counted(() => {
        for (let i = 0; i < 10; i++) optimizer.step();
      });
      expect(steps).toEqual({ dispatches: 10, submits: 1, pipelines: 0, reserved: 0, used: 0 });
      const last = await params[999]!.data();
      expect(last[36]).toBeCloseTo(999 * (1 - 1e-5) ** 11 - 11e-3, 3);
    });

    it("sums the squares of 1000 gradients in two dispatches", async () => {
      const params = parameters(1000, 37, device);
      kept(clipGradNorm(params, 1e9));
      const { dispatches } = await counted(() => kept(clipGradNorm(params, 1e9)));
      expect(dispatches).toBeLessThan(1000 + 20); // two, a handful for the norm, and one to scale each gradient
    });

    it("a training step of a network is one submit, without a new pipeline or memory", async () => {
      const model = network();
      const optimizer = kept(new AdamW(model.namedParameters()));
      const step = () =>
        tidy(() => {
          const images = tensor(new Float32Array(8 * 20).fill(0.1), { shape: [8, 20] });
          const loss = crossEntropy(model.forward(images), Uint8Array.of(0, 1, 2, 3, 4, 5, 6, 7));
          loss.backward();
          optimizer.step();
          optimizer.zeroGrad();
          return loss.detach();
        });
      for (let i = 0; i < 12; i++) step().dispose();
      const { submits, pipelines, reserved, used } = await counted(() => step().dispose());
      expect({ submits, pipelines, reserved, used }).toEqual({ submits: 1, pipelines: 0, reserved: 0, used: 0 });
    });

    it("a compiled step is one submit, and trains on", async () => {
      const model = network();
      const optimizer = kept(new AdamW(model.namedParameters()));
      const images = kept(tensor(new Float32Array(8 * 20).fill(0.1), { shape: [8, 20] }));
      const labels = kept(tensor(Int32Array.of(0, 0, 0, 0, 0, 0, 0, 1)));
      const step = compile((images: Tensor) => {
        const loss = crossEntropy(model.forward(images), labels);
        loss.backward();
        optimizer.step();
        optimizer.zeroGrad();
        return loss.detach();
      });
      const first = await step(images).item();
      for (let i = 0; i < 9; i++) step(images).dispose(); // the ninth call is checked, and gives memory of replays back
      const { submits, pipelines, reserved, used } = await counted(() => {
        images.set(new Float32Array(8 * 20).fill(0.1));
        step(images).dispose();
      });
      expect({ submits, pipelines, reserved, used }).toEqual({ submits: 1, pipelines: 0, reserved: 0, used: 0 });
      expect(await step(images).item()).toBeLessThan(first);
      step.dispose();
    });

    it("submits by itself when the program gives way", async () => {
      const params = parameters(1, 5, device);
      const optimizer = kept(new AdamW(params));
      await device.sync();
      const before = backend.counters.submits;
      optimizer.step();
      await Promise.resolve();
      expect(backend.counters.submits).toBeGreaterThan(before);
    });
  },
);
