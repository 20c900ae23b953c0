/** An optimizer from outside of the packages computes the same on every exact device. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { Generator, init, listDevices, parameter, randn, type TypedArray, tensor } from "@opt/core";
import { EXACT_DEVICES } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Lion } from "./lion";

const SIZES = [1, 3, 1027, 70_001];
const STEPS = 20;

/** Parameters and momenta after training on noise. */
async function train(deviceName: string, dtype: "f32" | "f64"): Promise<TypedArray[]> {
  const device = await init(deviceName);
  const generator = new Generator(11);
  const params = SIZES.map((size) =>
    parameter(randn([size], { generator, dtype, device: "js" }).dataSync(), { dtype, device }),
  );
  const lion = new Lion(params, { lr: 0.01, weightDecay: 0.1 });
  for (let step = 0; step < STEPS; step++) {
    for (const param of params) {
      param.grad = tensor(randn(param.shape, { generator, dtype, device: "js" }).dataSync(), { dtype, device });
    }
    lion.step();
  }
  const states = Object.values(lion.stateDict().state).map(({ exp_avg }) => exp_avg as (typeof params)[number]);
  return Promise.all([...params, ...states].map((tensor) => tensor.data()));
}

describe("Lion, defined in one file", async () => {
  const devices = (await listDevices()).filter(({ name }) => EXACT_DEVICES.includes(name));
  it("takes the step of its formula", async () => {
    const param = parameter([1, -2, 3]);
    param.grad = tensor([0.5, 0, -4]);
    new Lion([param], { lr: 0.25, weightDecay: 0.5 }).step();
    expect(await param.data()).toAgreeWith([0.875 - 0.25, -1.75, 2.625 + 0.25], "bits");
  });

  for (const dtype of ["f32", "f64"] as const) {
    const onJs = train("js", dtype);
    for (const { name, available, reason } of devices.filter((device) => device.name !== "js")) {
      it(`gives the bits of js on ${name}, ${dtype}`, async ({ skip }) => {
        if (!available) skip(reason);
        const expected = await onJs;
        (await train(name, dtype)).forEach((values, i) => {
          expect(values).toAgreeWith(expected[i]!, "bits");
        });
      });
    }
  }
});
