/** How samples of Dirichlet and beta distributions move with their concentrations. */
import { digammaOfPositive } from "../../ops/elementwise/special";
import type { Expression } from "../../rule/expression";
import { add, div, less, log, mul, neg, pow, sqrt, sub, where } from "../../rule/symbols";
import { slopeOfSamples } from "./formula";
import { numberOrZero } from "./standard-gamma";

type E = Expression;

/** By alpha, of x near 0. */
function slopeByAlpha(x: E, alpha: E, beta: E): E {
  const factor = sub(sub(digammaOfPositive(alpha), digammaOfPositive(add(alpha, beta))), log(x));
  let numerator: E | number = 1;
  let series = mul(div(1, alpha), add(factor, div(1, alpha)));
  for (let i = 1; i <= 10; i++) {
    numerator = mul(numerator, div(mul(sub(i, beta), x), i));
    const below = add(alpha, i);
    series = add(series, mul(div(numerator, below), add(factor, div(1, below))));
  }
  return numberOrZero(mul(mul(x, pow(sub(1, x), neg(beta))), series));
}

/** By beta, of x near 0. */
function slopeByBeta(x: E, alpha: E, beta: E): E {
  const factor = sub(digammaOfPositive(add(alpha, beta)), digammaOfPositive(beta));
  let numerator: E | number = 1;
  let betas: E | number = 1;
  let slopes: E | number = 0;
  let series = div(factor, alpha);
  for (let i = 1; i <= 8; i++) {
    numerator = mul(numerator, div(neg(x), i));
    slopes = add(mul(slopes, sub(beta, i)), betas);
    betas = mul(betas, sub(beta, i));
    series = add(series, mul(div(numerator, add(alpha, i)), add(slopes, mul(factor, betas))));
  }
  return numberOrZero(mul(neg(pow(sub(1, x), sub(1, beta))), series));
}

/** a x^3 + ..., from the highest factor on. */
const nested = (x: E, ...factors: (E | number)[]): E =>
  factors.slice(1).reduce<E>((sum, factor) => add(factor, mul(x, sum)), factors[0] as E);

/** By alpha, of large alpha and beta at x near the mean. */
function slopeNearMean(x: E, alpha: E, beta: E): E {
  const total = add(alpha, beta);
  const square = mul(beta, beta);
  const polynomial = nested(
    alpha,
    mul(mul(8, sub(1, x)), sub(mul(135, beta), 11)),
    mul(sub(add(453, mul(mul(1620, beta), sub(1, x))), mul(455, x)), beta),
    mul(mul(3, sub(add(59, mul(180, beta)), mul(90, x))), square),
    mul(mul(add(43, mul(mul(20, add(16, mul(27, beta))), x)), square), beta),
    mul(mul(47, x), mul(square, square)),
  );
  const above = div(mul(add(1, mul(12, alpha)), add(1, mul(12, beta))), mul(total, total));
  const below = mul(mul(12960, mul(mul(mul(alpha, alpha), alpha), square)), add(1, mul(12, total)));
  return div(mul(div(above, sub(1, x)), polynomial), below);
}

/** 1 + 1 / (12 x) + 1 / (288 x^2) */
const stirling = (x: E) => add(add(1, div(1, mul(12, x))), div(1, mul(288, mul(x, x))));

/** The same elsewhere: Rice's saddle point expansion. */
function slopeOfLarge(x: E, alpha: E, beta: E): E {
  const total = add(alpha, beta);
  const prefactor = div(neg(x), sqrt(div(mul(mul(2, alpha), beta), total)));
  const correction = div(mul(stirling(alpha), stirling(beta)), stirling(total));
  const distance = add(mul(alpha, sub(x, 1)), mul(beta, x));
  const above = sub(
    add(mul(mul(2, mul(alpha, alpha)), sub(x, 1)), mul(mul(alpha, beta), sub(x, 1))),
    mul(x, mul(beta, beta)),
  );
  const below = mul(mul(sqrt(div(mul(2, alpha), beta)), pow(total, 1.5)), mul(distance, distance));
  const ofAlpha = log(div(alpha, mul(total, x)));
  const third = div(sqrt(div(mul(mul(8, alpha), beta), total)), distance);
  const divergence = add(mul(beta, log(div(beta, mul(total, sub(1, x))))), mul(alpha, ofAlpha));
  const fourth = pow(divergence, -1.5);
  const sum = add(third, where(less(x, div(alpha, total)), fourth, neg(fourth)));
  return mul(mul(correction, prefactor), add(div(above, below), mul(mul(0.5, ofAlpha), sum)));
}

/** Factors of PyTorch's rational correction: of u^i a^j b^k. */
const ABOVE = [
  [
    [1.003668233, -0.01061107488, -0.0657888334, 0.01201642863],
    [0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033],
    [-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013],
  ],
  [
    [0.221950385, -0.3187676331, 0.01799915743, 0.01074823814],
    [-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057],
    [0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-5],
  ],
  [
    [-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565],
    [0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181],
    [0.005900514878, -0.001936558688, -9.495446725e-6, 5.385558597e-5],
  ],
] as const;
const BELOW = [
  [
    [1, -0.02924021934, -0.04438342661, 0.007285809825],
    [0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521],
    [-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149],
  ],
  [
    [0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273],
    [0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956],
    [-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-5],
  ],
  [
    [0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-5],
    [0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-5],
    [-0.0003477407336, 6.959756487e-5, 1.097287507e-5, -1.650964693e-6],
  ],
] as const;

function slopeBetween(x: E, alpha: E, total: E): E {
  const u = log(x);
  const a = sub(log(alpha), u);
  const b = sub(log(total), a);
  const powers = (of: E) => [null, of, mul(of, of)] as const;
  const [ofU, ofA] = [powers(u), powers(a)];
  const polynomial = (factors: typeof ABOVE | typeof BELOW) =>
    factors
      .flatMap((row, i) =>
        row.map(([c0, c1, c2, c3], j) => {
          const cubic = add(c0, mul(b, add(c1, mul(b, add(c2, mul(b, c3))))));
          return [ofU[i], ofA[j]].reduce<E>((term, power) => (power ? mul(term, power) : term), cubic);
        }),
      )
      .reduce((sum, term) => add(sum, term));
  const approximation = div(mul(x, sub(digammaOfPositive(total), digammaOfPositive(alpha))), sub(total, alpha));
  return mul(div(polynomial(ABOVE), polynomial(BELOW)), approximation);
}

/** By sample x, concentration and total concentration, in the regions of PyTorch (`torch._dirichlet_grad`). */
export const dirichletSlope = /* @__PURE__ */ slopeOfSamples("Dirichlet", (x, alpha, total) => {
  const beta = sub(total!, alpha!);
  const boundary = mul(mul(total!, x!), sub(1, x!));
  const mean = div(alpha!, total!);
  const width = mul(0.1, div(sqrt(div(mul(alpha!, beta), add(total!, 1))), total!));
  const ofLarge = where(
    less(x!, sub(mean, width)),
    slopeOfLarge(x!, alpha!, beta),
    where(less(add(mean, width), x!), slopeOfLarge(x!, alpha!, beta), slopeNearMean(x!, alpha!, beta)),
  );
  const between = slopeBetween(x!, alpha!, total!);
  const inside = where(less(6, alpha!), where(less(6, beta), ofLarge, between), between);
  const small = slopeByAlpha(x!, alpha!, beta);
  const ofOther = neg(slopeByBeta(sub(1, x!), beta, alpha!));
  const right = where(less(x!, 0.5), inside, where(less(boundary, 0.75), ofOther, inside));
  return where(less(0.5, x!), right, where(less(boundary, 2.5), small, right));
});
