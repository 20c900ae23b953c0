// Instance normalisation, also in random configurations against PyTorch: values, gradients, second ones, running statistics.
import { noGrad, zeros } from "@opt/core";
import { expectCode, type TorchCall } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { InstanceNorm1d, InstanceNorm2d } from "../../index";
import { layerCall } from "../../testing/layer-call";
import { liveSuite } from "../../testing/live-suite";
import { RandomInputs } from "../../testing/random-inputs";

describe("InstanceNorm", () => {
  it("has no state unless it is asked for, and PyTorch's names then", () => {
    expect(new InstanceNorm1d(2).namedTensors()).toEqual([]);
    const whole = new InstanceNorm2d(2, { affine: true, trackRunningStats: true });
    const names = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"];
    expect(Object.keys(whole.stateDict())).toEqual(names);
    expect(whole.namedParameters().map(([name]) => name)).toEqual(["weight", "bias"]);
  });

  it("leaves nothing behind but its result", () => {
    const [layer, x] = [new InstanceNorm2d(2, { affine: true, trackRunningStats: true }), zeros([2, 2, 3, 3])];
    const { tensors } = x.device.memory();
    noGrad(() => layer.forward(x));
    expect(x.device.memory().tensors).toBe(tensors + 1);
  });

  const rows: [string, () => unknown, string][] = [
    ["one value per channel of a sample", () => new InstanceNorm1d(2).forward(zeros([3, 2, 1])), "BAD_SHAPE"],
    ["other channels", () => new InstanceNorm1d(2).forward(zeros([4, 3, 5])), "BAD_SHAPE"],
    ["other axes", () => new InstanceNorm2d(2).forward(zeros([4, 2])), "BAD_SHAPE"],
    ["a momentum beyond 1", () => new InstanceNorm2d(2, { momentum: 2 }), "BAD_ARGUMENT"],
  ];
  it.each(rows)("rejects %s", (_, body, code) => expectCode(code as "BAD_SHAPE", body));
});

const make = new RandomInputs(17);
const calls: TorchCall[] = [];
const python = (value: unknown) =>
  value === null ? "None" : value === true ? "True" : value === false ? "False" : value;
const LAYERS = { 1: InstanceNorm1d, 2: InstanceNorm2d } as const;

for (let i = 0; i < 400; i++) {
  const dtype = i % 2 === 0 ? "f32" : "f64";
  const axes = make.random.pick([1, 2] as const);
  const channels = make.between(1, 3);
  const shape = [make.between(1, 3), channels, make.between(3, 5), make.between(1, 4)].slice(0, axes + 2);
  const given = make.flip() ? shape : shape.slice(1);
  const momentum = make.random.pick([0.1, 0.5, null]);
  const eps = make.random.pick([1e-5, 0.1]);
  const [affine, trackRunningStats, training] = [make.flip(), make.flip(), make.flip()];
  const settings = `eps=${eps}, momentum=${python(momentum)}, affine=${python(affine)}, track_running_stats=${python(trackRunningStats)}`;
  calls.push(
    layerCall(make, {
      name: `${i}: InstanceNorm${axes}d(${channels}, ${settings}) [${given}]${training ? "" : " in evaluation"}`,
      torch: `nn.InstanceNorm${axes}d(${channels}, ${settings})`,
      make: (place) => new LAYERS[axes](channels, { eps, momentum, affine, trackRunningStats, ...place }),
      dtype,
      inputs: [make.numbers(given, dtype)],
      buffers: {
        running_mean: (shape) => make.numbers(shape, dtype, { requiresGrad: false }),
        running_var: (shape) => make.numbers(shape, dtype, { low: 0.2, requiresGrad: false }),
        num_batches_tracked: () => ({ values: [3], shape: [], dtype: "i32" }),
      },
      training,
      second: dtype === "f64",
    }),
  );
}

liveSuite(calls);
