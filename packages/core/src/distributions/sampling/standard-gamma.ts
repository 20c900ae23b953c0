/** Samples of gamma distributions of rate 1, and how they move with their concentration. */
import { rand, randn } from "../../create";
import { tidy } from "../../device/scope";
import type { DrawOptions } from "../../draws";
import { cast } from "../../ops";
import { digammaOfPositive } from "../../ops/elementwise/special";
import type { Expression } from "../../rule/expression";
import { add, div, exp, less, log, mul, neg, pow, sqrt, sub, where } from "../../rule/symbols";
import { overSamples } from "../../tensor/batching";
import { noGrad, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { tiniestOf } from "../../values/float-limits";
import { formula, slopeOfSamples } from "./formula";

type E = Expression;

/** All of them are rejected in 2e-8 of the cases, which get d: so every device draws as many numbers. */
const PROPOSALS = 6;

/** d = a - 1/3, where a is the concentration, or one more where that is below 1. */
const shiftedOf = (a: E) => sub(where(less(a, 1), add(a, 1), a), 1 / 3);

/** Marsaglia & Tsang 2000: v where the proposal of a normal x and a uniform u is rejected, else (1 + x / sqrt(9 d))^3. */
const proposed = /* @__PURE__ */ formula((a, v, x, u) => {
  const d = shiftedOf(a!);
  const root = add(1, div(x!, sqrt(mul(9, d))));
  const cube = mul(root, mul(root, root));
  const bound = add(mul(0.5, mul(x!, x!)), mul(d, add(sub(1, cube), log(cube))));
  return where(less(log(u!), bound), cube, v!);
});

/** d v, times u^(1 / a) where the concentration a is below 1. */
const scaled = /* @__PURE__ */ formula((a, v, u) => {
  const value = mul(shiftedOf(a!), v!);
  return where(less(a!, 1), mul(value, pow(u!, div(1, a!))), value);
});

/** Its logarithm, which small concentrations don't take below the smallest number. */
const scaledLog = /* @__PURE__ */ formula((a, v, u) => {
  const value = log(mul(shiftedOf(a!), v!));
  return where(less(a!, 1), add(value, div(log(u!), a!)), value);
});

function drawn(alpha: Tensor, { generator }: DrawOptions, finish: typeof scaled): Tensor {
  const compute = alpha.dtype === "f64" ? "f64" : "f32";
  const options = { dtype: compute, device: alpha.device, ...(generator && { generator }) } as const;
  const { shape } = alpha;
  return noGrad(() =>
    tidy(() => {
      const a = cast(alpha, compute);
      let value = a.mul(0).add(1);
      for (let i = 0; i < PROPOSALS; i++) value = proposed(a, value, randn(shape, options), rand(shape, options));
      return finish(a, value, rand(shape, options).neg().add(1));
    }),
  );
}

/** The logarithms of samples, without a gradient: in float32 for 16 bits. */
export const logStandardGamma = (alpha: Tensor, options: DrawOptions): Tensor => drawn(alpha, options, scaledLog);

/** A sample for each concentration, with PyTorch's gradient (`torch._standard_gamma_grad`). */
export function standardGamma(alpha: Tensor, options: DrawOptions): Tensor {
  const samples = overSamples(standardGamma, alpha, options);
  if (samples) return samples;
  const { dtype } = alpha;
  const output = noGrad(() => tidy(() => cast(drawn(alpha, options, scaled), dtype).maximum(tiniestOf(dtype))));
  return record("standardGamma", output, [alpha], [alpha, output], (g, [a, x]) => [
    tidy(() => g.mul(standardGammaSlope(a!, x!))),
  ]);
}

const float = Math.fround;

/** -(d cdf / d a) / density, of small x by a Taylor series. */
function slopeOfSmall(a: E, x: E): E {
  let numerator: E | number = 1;
  let sum = div(1, a);
  let sumOfSquares = div(1, mul(a, a));
  for (let i = 1; i <= 5; i++) {
    const below = add(a, i);
    numerator = mul(numerator, div(neg(x), i));
    sum = add(sum, div(numerator, below));
    sumOfSquares = add(sumOfSquares, div(numerator, mul(below, below)));
  }
  const power = pow(x, a);
  const density = mul(pow(x, sub(a, 1)), exp(neg(x)));
  const distribution = mul(power, sum);
  const slope = sub(mul(sub(log(x), digammaOfPositive(a)), distribution), mul(power, sumOfSquares));
  return numberOrZero(div(neg(slope), density));
}

/** Rice's saddle point expansion of large a, at x near a. */
function slopeNearMean(a: E, x: E): E {
  const first = add(1, mul(mul(24, a), add(1, mul(12, a))));
  const second = add(
    sub(add(mul(1440, mul(a, a)), mul(mul(6, x), sub(53, mul(120, x)))), div(mul(mul(65, x), x), a)),
    mul(a, add(107, mul(3600, x))),
  );
  return div(mul(first, second), mul(1244160, mul(mul(a, a), mul(a, a))));
}

/** The same expansion elsewhere. */
function slopeOfLarge(a: E, x: E): E {
  const root = sqrt(mul(8, a));
  const second = div(root, sub(a, x));
  const third = pow(sub(sub(x, a), mul(a, log(div(x, a)))), -1.5);
  const both = where(less(x, a), sub(second, third), add(second, third));
  const square = mul(sub(a, x), sub(a, x));
  const first = sub(mul(log(div(x, a)), both), div(mul(sqrt(div(2, a)), add(a, x)), square));
  const stirling = add(1, mul(div(1, mul(12, a)), add(1, div(1, mul(24, a)))));
  return div(mul(neg(stirling), mul(x, first)), root);
}

/** PyTorch's rational approximation in log(x / a), by rows, and log(a). */
const RATIONAL = [
  [0.16009398, -0.094634809, 0.025146376, -0.0030648343, 1, 0.32668115, 0.10406089, 0.0014179084],
  [0.53487893, 0.1298071, 0.065735949, -0.0015649758, 0.16639465, 0.020070113, -0.0035938915, -0.00058392623],
  [0.040121004, -0.0065914022, -0.0026286047, -0.0013441777, 0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-7],
] as const;

function slopeBetween(a: E, x: E): E {
  const [u, v] = [log(div(x, a)), log(a)];
  const [zero, one, two] = RATIONAL;
  const factors = zero.map((_, i) => add(zero[i]!, mul(u, add(one[i]!, mul(u, two[i]!)))));
  const cubic = ([c0, c1, c2, c3]: readonly E[]) => add(c0!, mul(v, add(c1!, mul(v, add(c2!, mul(v, c3!))))));
  return exp(div(cubic(factors.slice(0, 4)), cubic(factors.slice(4))));
}

/** 0 where it is NaN. */
export const numberOrZero = (x: E) => where(less(x, Number.POSITIVE_INFINITY), x, where(less(0, x), x, 0));

/** By concentration a and sample x, in the four regions of PyTorch. */
export const standardGammaSlope = /* @__PURE__ */ slopeOfSamples("standardGamma", (a, x) => {
  const isNear = (yes: E, no: E) =>
    where(less(x!, mul(float(0.9), a!)), no, where(less(mul(float(1.1), a!), x!), no, yes));
  const ofLarge = isNear(slopeNearMean(a!, x!), slopeOfLarge(a!, x!));
  return where(less(x!, float(0.8)), slopeOfSmall(a!, x!), where(less(8, a!), ofLarge, slopeBetween(a!, x!)));
});
