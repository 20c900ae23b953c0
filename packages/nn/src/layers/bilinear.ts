/** Products of two inputs. */
import { check, checkOptions, checkTensor, type Tensor, tidy } from "@opt/core";
import { uniform } from "../initializers/initializers";
import { holdParameters } from "../module/held";
import { Module } from "../module/module";
import { checkExtents } from "./extent";
import { drawnBy, LAYER_OPTIONS, weightOf } from "./layer-options";
import type { LinearOptions } from "./linear";

/**
 * y[k] = a^T W[k] b + bias[k]. a [..., inFeatures1], b [..., inFeatures2], weight [out, inFeatures1, inFeatures2], y [..., out].
 * Weight and bias begin as U[-k, k], k = 1 / sqrt(inFeatures1), as PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE
 * @example
 * const scores = new Bilinear(3, 4, 2).forward(rand([5, 3]), rand([5, 4])); // [5, 2]
 */
export class Bilinear extends Module {
  weight: Tensor;
  bias: Tensor | null;

  constructor(inFeatures1: number, inFeatures2: number, outFeatures: number, options: LinearOptions = {}) {
    super();
    checkOptions("Bilinear", options, { bias: "boolean", ...LAYER_OPTIONS });
    checkExtents("Bilinear", { inFeatures1, inFeatures2, outFeatures });
    const { bias = true, ...layer } = options;
    const bound = 1 / Math.sqrt(inFeatures1);
    const drawn = (shape: readonly number[]) => uniform(weightOf(shape, layer), -bound, bound, drawnBy(options));
    this.weight = drawn([outFeatures, inFeatures1, inFeatures2]);
    this.bias = bias ? drawn([outFeatures]) : null;
    holdParameters(this, ["weight"]);
  }

  forward(a: Tensor, b: Tensor): Tensor {
    return bilinear(a, b, this.weight, this.bias);
  }

  override describe(): string {
    const [outFeatures, inFeatures1, inFeatures2] = this.weight.shape;
    return `${inFeatures1}, ${inFeatures2}, ${outFeatures}, bias=${this.bias !== null}`;
  }
}

/**
 * a^T W[k] b + bias[k] for each k: `Bilinear` with weights of your own. a [..., n], b [..., m], weight [out, n, m], result [..., out].
 *
 * @throws OptError BAD_SHAPE, DEVICE_MISMATCH; BAD_ARGUMENT for what is no tensor
 * @example
 * bilinear(tensor([1, 2]), tensor([3]), tensor([[[10], [1]]])); // [36]
 */
export function bilinear(a: Tensor, b: Tensor, weight: Tensor, bias: Tensor | null = null): Tensor {
  const where = "bilinear";
  checkTensor(where, a, "the first input");
  checkTensor(where, b, "the second input");
  checkTensor(where, weight, "weight");
  if (bias !== null) checkTensor(where, bias, "bias");
  const [out, n, m] = weight.shape as [number, number, number];
  const leading = a.shape.slice(0, -1);
  check(
    weight.shape.length === 3 &&
      String(a.shape) === String([...leading, n]) &&
      String(b.shape) === String([...leading, m]),
    "BAD_SHAPE",
    where,
    () => `needs [..., n], [..., m] and a weight [out, n, m], got [${a.shape}], [${b.shape}] and [${weight.shape}].`,
    "The leading axes of both inputs must be equal.",
  );
  const fits = bias === null || String(bias.shape) === String([out]);
  check(fits, "BAD_SHAPE", where, () => `bias must be [${out}], got [${bias!.shape}].`, "One number per output.");
  return tidy(() => {
    const rows = leading.reduce((x, y) => x * y, 1);
    const products = a.reshape([rows, n]).matmul(weight.permute([1, 0, 2]).reshape([n, out * m]));
    const sums = products
      .reshape([rows, out, m])
      .mul(b.reshape([rows, 1, m]))
      .sum(-1);
    return (bias === null ? sums : sums.add(bias)).reshape([...leading, out]);
  });
}
