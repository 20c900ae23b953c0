/** Calls of norms, of which PyTorch knows values, gradients, second ones and running statistics. */
import type { TorchCall } from "@opt/testkit";
import { BatchNorm1d, BatchNorm2d, GroupNorm, InstanceNorm1d, InstanceNorm2d, RMSNorm } from "../../src/index";
import { layerCall } from "../layer-call";
import { python, RandomInputs } from "../random-inputs";

const KINDS = { BatchNorm1d, BatchNorm2d, InstanceNorm1d, InstanceNorm2d } as const;

/** Each norm in `count` random configurations. */
export function normCalls(count: number): TorchCall[] {
  const make = new RandomInputs(17);
  const kinds = Object.keys(KINDS) as (keyof typeof KINDS)[];
  return Array.from({ length: count }, (_, i) => {
    const dtype = i % 2 === 0 ? "f64" : "f32";
    const channels = kinds.map((kind) => channelNorm(make, i, kind, dtype));
    return [...channels, groupNorm(make, i, dtype), rmsNorm(make, i, dtype)];
  }).flat();
}

function channelNorm(make: RandomInputs, i: number, kind: keyof typeof KINDS, dtype: "f32" | "f64"): TorchCall {
  const channels = make.between(1, 3);
  const isInstance = kind.startsWith("Instance");
  const whole = [make.between(isInstance ? 1 : 2, 4), channels, make.between(3, 5), make.between(1, 4)];
  const shape = whole.slice(0, kind.endsWith("1d") ? 3 : 4);
  const isShort = make.flip() && kind !== "BatchNorm2d";
  const given = !isShort ? shape : isInstance ? shape.slice(1) : shape.slice(0, 2);
  const [momentum, eps] = [make.random.pick([0.1, 0.5, null]), make.random.pick([1e-5, 0.1])];
  const [affine, trackRunningStats, training] = [make.flip(), make.flip(), make.flip()];
  const settings = `eps=${eps}, momentum=${python(momentum)}, affine=${python(affine)}, track_running_stats=${python(trackRunningStats)}`;
  return layerCall(make, {
    name: `${i}: ${kind}(${channels}, ${settings}) [${given}]${training ? "" : " in evaluation"}`,
    torch: `nn.${kind}(${channels}, ${settings})`,
    make: (place) => new KINDS[kind](channels, { eps, momentum, affine, trackRunningStats, ...place }),
    dtype,
    inputs: [make.numbers(given, dtype)],
    buffers: {
      running_mean: (shape) => make.numbers(shape, dtype, { requiresGrad: false }),
      running_var: (shape) => make.numbers(shape, dtype, { low: 0.2, requiresGrad: false }),
      num_batches_tracked: () => ({ values: [3], shape: [], dtype: "i32" }),
    },
    training,
    second: dtype === "f64",
  });
}

function groupNorm(make: RandomInputs, i: number, dtype: "f32" | "f64"): TorchCall {
  const groups = make.between(1, 3);
  const channels = groups * make.between(1, 3);
  // Norms of two numbers are badly conditioned.
  const shape = [make.between(1, 3), channels, make.between(3, 4), make.between(1, 4)].slice(0, make.between(3, 4));
  return layerCall(make, {
    name: `${i}: GroupNorm ${groups} [${shape}]`,
    torch: `nn.GroupNorm(${groups}, ${channels})`,
    make: (place) => new GroupNorm(groups, channels, place),
    dtype,
    inputs: [make.numbers(shape, dtype)],
    second: dtype === "f64",
  });
}

function rmsNorm(make: RandomInputs, i: number, dtype: "f32" | "f64"): TorchCall {
  const shape = Array.from({ length: make.between(1, 3) }, () => make.between(1, 4));
  const over = shape.slice(-make.between(1, shape.length));
  const eps = make.random.pick([null, 1e-3]);
  return layerCall(make, {
    name: `${i}: RMSNorm [${over}] of [${shape}], ${eps}`,
    torch: `nn.RMSNorm(${JSON.stringify(over)}, ${python(eps)})`,
    make: (place) => new RMSNorm(over, { eps, ...place }),
    dtype,
    inputs: [make.numbers(shape, dtype)],
    second: dtype === "f64",
  });
}
