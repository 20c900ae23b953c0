import { check, checkOptions, checkTensor, lowered, type Tensor, tidy } from "@opt/core";
import { uniform } from "../initializers/initializers";
import { holdParameters } from "../module/held";
import { Module } from "../module/module";
import { checkExtents } from "./extent";
import { drawnBy, LAYER_OPTIONS, type LayerOptions, weightOf } from "./layer-options";

export interface LinearOptions extends LayerOptions {
  readonly bias?: boolean;
}

/**
 * y = x W^T + b. x [..., in], weight [out, in], bias [out], y [..., out].
 * Weight and bias begin as U[-k, k], k = 1 / sqrt(in), as PyTorch's.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE
 * @example
 * const logits = new Linear(784, 10, { generator: new Generator(1) }).forward(rand([2, 784])); // [2, 10]
 */
export class Linear extends Module {
  weight: Tensor;
  bias: Tensor | null;

  constructor(inFeatures: number, outFeatures: number, options: LinearOptions = {}) {
    super();
    checkOptions("Linear", options, { bias: "boolean", ...LAYER_OPTIONS });
    checkExtents("Linear", { inFeatures, outFeatures });
    const { bias = true, ...layer } = options;
    const bound = 1 / Math.sqrt(inFeatures);
    this.weight = uniform(weightOf([outFeatures, inFeatures], layer), -bound, bound, drawnBy(options));
    this.bias = bias ? uniform(weightOf([outFeatures], layer), -bound, bound, drawnBy(options)) : null;
    holdParameters(this, ["weight"]);
  }

  forward(x: Tensor): Tensor {
    checkTensor("Linear", x);
    return product("Linear", x, this.weight, this.bias);
  }

  override describe(): string {
    const [outFeatures, inFeatures] = this.weight.shape;
    return `inFeatures=${inFeatures}, outFeatures=${outFeatures}, bias=${this.bias !== null}`;
  }
}

/**
 * x W^T + b: `Linear` with weights of your own. x [..., in], weight [out, in] and bias [out] give [..., out]; weight [in] and a bias []
 * give [...].
 *
 * @throws OptError BAD_SHAPE, DEVICE_MISMATCH; BAD_ARGUMENT for what is no tensor
 * @example
 * linear(tensor([[1, 2]]), tensor([[3, 4], [5, 6]]), tensor([10, 20])); // [[21, 37]]
 */
export function linear(x: Tensor, weight: Tensor, bias: Tensor | null = null): Tensor {
  checkTensor("linear", x);
  checkTensor("linear", weight, "weight");
  if (bias !== null) checkTensor("linear", bias, "bias");
  const { shape } = weight;
  const isMatrix = shape.length === 2;
  check(
    isMatrix || shape.length === 1,
    "BAD_SHAPE",
    "linear",
    () => `weight must be [out, in] or [in], got [${shape}].`,
    "Reshape it.",
  );
  const out = isMatrix ? shape.slice(0, 1) : [];
  const fits = bias === null || String(bias.shape) === String(out);
  check(fits, "BAD_SHAPE", "linear", () => `bias must be [${out}], got [${bias!.shape}].`, "One number per output.");
  if (isMatrix) return product("linear", x, weight, bias);
  return tidy(() => product("linear", x, weight.unsqueeze(0), bias?.unsqueeze(0) ?? null).squeeze(-1));
}

function product(where: string, x: Tensor, weight: Tensor, bias: Tensor | null): Tensor {
  const [outFeatures, inFeatures] = weight.shape as [number, number];
  check(
    x.shape.at(-1) === inFeatures,
    "BAD_SHAPE",
    where,
    () => `the last axis of the input must be ${inFeatures}, got shape [${x.shape}].`,
    "Reshape the input, or change inFeatures.",
  );
  return tidy(() => {
    // One matrix product over all leading axes: faster than a batch of small ones, and vectors need no special case.
    const leading = x.shape.slice(0, -1);
    const rows = x.reshape([leading.reduce((a, b) => a * b, 1), inFeatures]);
    const product = rows.matmul(weight, { transposeB: true });
    const sum = bias === null ? product : product.add(lowered(bias));
    return sum.reshape([...leading, outFeatures]);
  });
}
