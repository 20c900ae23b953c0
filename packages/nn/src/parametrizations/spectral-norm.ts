import {
  check,
  checkGenerator,
  checkOptions,
  defaultGenerator,
  type Generator,
  isRecomputing,
  keep,
  noGrad,
  randn,
  type Tensor,
  tidy,
} from "@opt/core";
import { ConvTranspose1d } from "../layers/conv/conv-transpose1d";
import { ConvTranspose2d } from "../layers/conv/conv-transpose2d";
import { ConvTranspose3d } from "../layers/conv/conv-transpose3d";
import type { Module } from "../module/module";
import { normalize } from "../similarity/similarity";
import { type Originals, parameterOf, parametrize } from "./parametrize";

export interface SpectralNormOptions {
  /** Steps of the power iteration in each forward in training. Default 1. */
  readonly nPowerIterations?: number;
  /** The least length by which a vector is divided. Default 1e-12. */
  readonly eps?: number;
  /** The axis of the matrix's rows. Default 0, the outputs; 1 for transposed convolutions. */
  readonly axis?: number;
  /** Draws the first vectors; by default the generator that `manualSeed` seeds. */
  readonly generator?: Generator;
}

const OPTIONS = { nPowerIterations: "number", eps: "number", axis: "number", generator: "object" } as const;
/** As PyTorch's, before the first forward. */
const FIRST_ITERATIONS = 15;

/**
 * Divides a weight by its largest singular value, as a matrix [rows, the other axes together] (Miyato et al. 2018). Singular vectors follow
 * by power iteration, in each forward in training. The state then has `parametrizations.weight.original`, and the vectors as
 * `parametrizations.weight.0._u` and `_v`, as PyTorch's `torch.nn.utils.parametrizations.spectral_norm`.
 *
 * @param name which parameter of the module. Default "weight"
 * @returns the module
 * @throws OptError BAD_ARGUMENT for a name that is no parameter, and options out of range; BAD_STATE for a parameter that is computed
 * @example
 * const critic = spectralNorm(new Linear(4, 1));
 */
export function spectralNorm<M extends Module>(module: M, name = "weight", options: SpectralNormOptions = {}): M {
  const where = "spectralNorm";
  const weight = parameterOf(where, module, name);
  checkOptions(where, options, OPTIONS);
  const isTransposed = [ConvTranspose1d, ConvTranspose2d, ConvTranspose3d].some((layer) => module instanceof layer);
  const { nPowerIterations = 1, eps = 1e-12, axis = isTransposed ? 1 : 0, generator = defaultGenerator } = options;
  checkGenerator(where, generator);
  const isCount = Number.isInteger(nPowerIterations) && nPowerIterations >= 1;
  check(isCount, "BAD_ARGUMENT", where, () => `nPowerIterations must be an integer >= 1, got ${nPowerIterations}.`);
  check(eps >= 0, "BAD_ARGUMENT", where, () => `eps must be >= 0, got ${eps}.`, "Use 1e-12.");
  const rank = weight.shape.length;
  const isAxis = Number.isInteger(axis) && axis >= -rank && axis < rank;
  check(isAxis, "BAD_ARGUMENT", where, () => `axis must be one of [${weight.shape}], got ${axis}.`, "Use 0.");
  const along = axis < 0 ? axis + rank : axis;
  if (rank === 1) {
    // The matrix is a column, whose largest singular value is its length.
    const compute = ({ original }: Originals) => normalize(original as Tensor, { axis: 0, eps });
    return parametrize(module, name, { originals: { original: weight }, compute });
  }
  const matrixOf = (x: Tensor) => {
    const order = [along, ...[...x.shape.keys()].filter((i) => i !== along)];
    const rows = x.shape[along]!;
    return (along === 0 ? x : x.permute(order)).reshape([rows, x.size / rows]);
  };
  const unit = (x: Tensor) => normalize(x, { axis: 0, eps });
  const iterate = (matrix: Tensor, u: Tensor, v: Tensor, times: number) =>
    noGrad(() =>
      tidy(() => {
        for (let i = 0; i < times; i++) {
          u.set(unit(matrix.matmul(v)));
          v.set(unit(u.matmul(matrix)));
        }
      }),
    );
  const [u, v] = noGrad(() =>
    tidy(() => {
      const matrix = matrixOf(weight.detach());
      const place = { dtype: weight.dtype, device: weight.device, generator };
      const [u, v] = matrix.shape.map((extent) => keep(unit(randn([extent], place)))) as [Tensor, Tensor];
      iterate(matrix, u, v, FIRST_ITERATIONS);
      return [u, v] as const;
    }),
  );
  return parametrize(module, name, {
    originals: { original: weight, 0: { _u: u, _v: v } },
    compute: (originals, isForward) =>
      tidy(() => {
        const original = originals.original as Tensor;
        const { _u: u, _v: v } = originals[0] as { readonly _u: Tensor; readonly _v: Tensor };
        const matrix = matrixOf(original);
        if (isForward && module.training && !isRecomputing()) iterate(matrix.detach(), u, v, nPowerIterations);
        // Copies, since the next forward moves the vectors.
        const [left, right] = noGrad(() => [u.clone(), v.clone()]);
        return original.div(left.mul(matrix.matmul(right)).sum());
      }),
  });
}
