/** Rare options of norms: no momentum or all of it, an eps of 0 and one that outweighs the variance, no weight or no bias. */
import type { Sweep, TorchCall } from "@opt/testkit";
import * as nn from "../../src/index";
import { type LayerCall, layerCall } from "../layer-call";
import { python, RandomInputs } from "../random-inputs";

const { BatchNorm1d, BatchNorm2d, InstanceNorm1d, InstanceNorm2d } = nn;
const CHANNELS = { BatchNorm1d, BatchNorm2d, InstanceNorm1d, InstanceNorm2d } as const;
const EPS = [0, 1e-5, 0.3, 2] as const;

type Drawn = Pick<LayerCall<nn.Module>, "torch" | "make"> & { readonly shape: readonly number[] };

export function rareNorms(count: number): Sweep {
  const make = new RandomInputs(2203);
  const kinds = Object.keys(CHANNELS) as (keyof typeof CHANNELS)[];
  const rows: [string, (make: RandomInputs) => Drawn][] = [
    ...kinds.map((kind): [string, typeof layerNorm] => [kind, (make) => channelNorm(make, kind)]),
    ["LayerNorm", layerNorm],
    ["GroupNorm", groupNorm],
    ["RMSNorm", rmsNorm],
  ];
  return Object.fromEntries(
    rows.map(([name, of]) => [`${name}, rare`, Array.from({ length: count }, (_, i) => called(make, i, of(make)))]),
  );
}

function called(make: RandomInputs, i: number, { shape, ...drawn }: Drawn): TorchCall {
  const dtype = i % 3 === 2 ? "f32" : "f64";
  const training = make.random.below(4) > 0;
  return layerCall(make, {
    ...drawn,
    name: `${i}: ${drawn.torch} [${shape}]${training ? "" : " in evaluation"}`,
    dtype,
    inputs: [make.numbers(shape, dtype)],
    buffers: {
      running_mean: (of) => make.numbers(of, dtype, { requiresGrad: false }),
      running_var: (of) => make.numbers(of, dtype, { low: 0.2, requiresGrad: false }),
      num_batches_tracked: () => ({ values: [make.between(0, 5)], shape: [], dtype: "i32" }),
    },
    training,
    second: dtype === "f64",
  });
}

/** Extents of which a norm of at least six numbers is well conditioned without eps. */
const extents = (make: RandomInputs, axes: number) =>
  Array.from({ length: axes }, () => make.between(axes > 1 ? 3 : 6, 7));

function channelNorm(make: RandomInputs, kind: keyof typeof CHANNELS): Drawn {
  const channels = make.between(1, 3);
  // PyTorch's BatchNorm takes no eps of 0 in training.
  const eps = make.random.pick(kind.startsWith("Batch") ? EPS.slice(1) : EPS);
  const momentum = make.random.pick([0, 0, 0.25, 1, null]);
  const [affine, trackRunningStats] = [make.flip(), make.random.below(4) > 0];
  const options = { eps, momentum, affine, trackRunningStats };
  return {
    shape: [make.between(1, 3), channels, ...extents(make, kind.endsWith("1d") ? 1 : 2)],
    torch: `nn.${kind}(${channels}, eps=${eps}, momentum=${python(momentum)}, affine=${python(affine)}, track_running_stats=${python(trackRunningStats)})`,
    make: (place) => new CHANNELS[kind](channels, { ...options, ...place }),
  };
}

function layerNorm(make: RandomInputs): Drawn {
  const over = extents(make, make.between(1, 2));
  const [eps, elementwiseAffine, bias] = [make.random.pick(EPS), make.flip(), make.flip()];
  return {
    shape: [...(make.flip() ? [make.between(1, 3)] : []), ...over],
    torch: `nn.LayerNorm([${over}], eps=${eps}, elementwise_affine=${python(elementwiseAffine)}, bias=${python(bias)})`,
    make: (place) => new nn.LayerNorm(over, { eps, elementwiseAffine, bias, ...place }),
  };
}

function groupNorm(make: RandomInputs): Drawn {
  const groups = make.between(1, 3);
  const channels = groups * make.between(1, 2);
  const [eps, affine] = [make.random.pick(EPS), make.flip()];
  return {
    shape: [make.between(1, 3), channels, ...extents(make, make.between(1, 2))],
    torch: `nn.GroupNorm(${groups}, ${channels}, eps=${eps}, affine=${python(affine)})`,
    make: (place) => new nn.GroupNorm(groups, channels, { eps, affine, ...place }),
  };
}

function rmsNorm(make: RandomInputs): Drawn {
  const over = extents(make, make.between(1, 2));
  const [eps, elementwiseAffine] = [make.random.pick([...EPS, null]), make.flip()];
  return {
    shape: [make.between(1, 3), ...over],
    torch: `nn.RMSNorm([${over}], eps=${python(eps)}, elementwise_affine=${python(elementwiseAffine)})`,
    make: (place) => new nn.RMSNorm(over, { eps, elementwiseAffine, ...place }),
  };
}
