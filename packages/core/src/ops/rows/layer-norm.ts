/** Layer normalisation over the last axes. */

import { withPass } from "../../compile/passes/carried-passes";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { layerNormGradAddRows, layerNormGradRows, layerNormRows } from "../../rule/row-programs/layer-norm";
import { overSamples } from "../../tensor/batching";
import { isTaping, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { computeDType, isFloat, promote } from "../../values/dtype";
import { sameShape, showShape } from "../../values/shape";
import { inFloat32 } from "../autocast-operands";
import { computeIn } from "../cast";
import { checkDevice } from "../check-device";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { fill } from "../map";
import { mean, sumTo } from "../reduce/reduce";
import { launchRows } from "./launch-rows";

const GRADIENTS = /* @__PURE__ */ withPass(layerNormGradRows, async () =>
  (await import("../../compile/passes/add-to-rows")).addToRows(layerNormGradRows, layerNormGradAddRows),
);

/**
 * (x - mean) / sqrt(variance + eps) * weight + bias over the trailing axes that `weight` covers (Ba, Kiros & Hinton 2016). Integers give f32.
 *
 * @throws OptError BAD_SHAPE if weight and bias are not of x's trailing shape
 */
export const layerNorm = /* @__PURE__ */ definePrimitive(
  { torch: "F.layer_norm(a, (4,), b, c)", tensors: ["n4", "4", "4"] },
  (x: Tensor, weight: Tensor, bias: Tensor | null = null, eps = 1e-5): Tensor => {
    const samples = overSamples(layerNorm, x, weight, bias, eps);
    if (samples) return samples;
    checkTensor("layerNorm", x);
    checkTensor("layerNorm", weight, "weight");
    if (bias !== null) checkTensor("layerNorm", bias, "bias");
    const isEps = typeof eps === "number" && eps >= 0;
    checkValue(isEps, "layerNorm", "eps", ">= 0", eps, "Use 1e-5.");
    const trailing = x.shape.slice(x.shape.length - weight.shape.length);
    const got = () => `${showShape(weight.shape)}${bias === null ? "" : ` and ${showShape(bias.shape)}`}`;
    check(
      sameShape(trailing, weight.shape) && (bias === null || sameShape(bias.shape, weight.shape)),
      "BAD_SHAPE",
      "layerNorm",
      () => `weight and bias must have the trailing shape of x ${showShape(x.shape)}, got ${got()}.`,
      "Normalise over the last axes.",
    );
    const given = bias === null ? [x, weight] : [x, weight, bias];
    const device = checkDevice("layerNorm", given);
    const inFull = inFloat32(given, (wide, w, b) => layerNorm(wide!, w!, b ?? null, eps));
    if (inFull !== null) return inFull;
    const promoted = given.map((t) => t.dtype).reduce(promote);
    const dtype = isFloat(promoted) ? promoted : "f32";
    const compute = computeDType(dtype);
    if (given.some((t) => t.dtype !== compute)) {
      return computeIn(compute, given, dtype, (wide, w, b) => layerNorm(wide!, w!, b ?? null, eps));
    }
    const shift = bias ?? fill(weight.shape, 0, compute, device);
    const length = weight.size;
    const rows = length === 0 ? 0 : x.size / length;
    const output = Tensor.empty(x.shape, compute, device);
    const average = Tensor.empty([rows], compute, device);
    const rstd = Tensor.empty([rows], compute, device);
    launchRows(layerNormRows, {
      inputs: { x, w: weight, b: shift },
      outputs: { y: output, mean: average, rstd },
      scalars: { eps },
      rows,
      length,
    });
    const recorded = record("layerNorm", output, [x, weight, shift], [x, weight, average, rstd], (g, saved) =>
      isTaping() ? recordedGrad(g, saved, eps) : layerNormGrad(g, saved, rows, length),
    );
    average.dispose(); // the tape holds its own
    rstd.dispose();
    if (shift !== bias) shift.dispose();
    return recorded;
  },
);

/** The gradients by ops that are recorded: of what was saved, x and weight have gradients themselves. */
function recordedGrad(g: Tensor, [x, weight]: readonly Tensor[], eps: number): Tensor[] {
  const [mul, sub] = (["mul", "sub"] as const).map((op) => (a: Tensor, b: Tensor) => elementwise(op, [a, b])) as [
    Op,
    Op,
  ];
  const axes = weight!.shape.map((_, i) => x!.shape.length - weight!.shape.length + i);
  const average = (values: Tensor) => (axes.length === 0 ? values : mean(values, axes, true));
  const centered = sub(x!, average(x!));
  const variance = average(mul(centered, centered));
  const rstd = elementwise("div", [1, elementwise("sqrt", [elementwise("add", [variance, eps])])]);
  const normal = mul(centered, rstd);
  const scaled = mul(g, weight!);
  const along = mul(normal, average(mul(scaled, normal)));
  const input = mul(rstd, sub(sub(scaled, average(scaled)), along));
  return [input, sumTo(mul(g, normal), weight!.shape), sumTo(g, weight!.shape)];
}

type Op = (a: Tensor, b: Tensor) => Tensor;

function layerNormGrad(gradient: Tensor, saved: readonly Tensor[], rows: number, length: number): Tensor[] {
  const [x, weight, average, rstd] = saved as [Tensor, Tensor, Tensor, Tensor];
  const { device } = x;
  const inputGradient = Tensor.empty(x.shape, x.dtype, device);
  const weightGradient = Tensor.empty(weight.shape, x.dtype, device);
  const biasGradient = Tensor.empty(weight.shape, x.dtype, device);
  launchRows(GRADIENTS, {
    inputs: { x, w: weight, mean: average, rstd, g: gradient },
    outputs: { dx: inputGradient, dw: weightGradient, db: biasGradient },
    rows,
    length,
  });
  return [inputGradient, weightGradient, biasGradient];
}
