/** Written by tools/coefficients.ts. Polynomial coefficients, lowest power first. */
// biome-ignore-all lint/suspicious/noApproximativeNumericConstant: in as few digits as cost a small part of the error.

/** (2^r - 1) / r for |r| <= 1 / 2; relative error 2.6e-10. */
export const EXP2M1 = [
  0.69314718056, 0.24022650922, 0.05550410884, 0.0096180567, 0.0013333502, 0.0001546144, 0.0000152973,
];

/** (exp(r) - 1) / r for |r| <= ln(2) / 2, in float32; relative error 1.3e-8. */
export const EXPM1 = [1.000000011, 0.500000001, 0.16666505, 0.04166647, 0.00836915, 0.0013934];

/** 2 atanh(s) / (ln(2) s) in t = s^2, for (1 + s) / (1 - s) in [sqrt(1/2), sqrt(2)]; relative error 4.2e-12. */
export const LOG2 = [2.88539008179, 0.96179667345, 0.577083566, 0.41167377, 0.340712];

/** sin(r) / r in t = r^2, for |r| <= pi / 2; relative error 2.7e-11. */
export const SIN = [0.999999999983, -0.166666666168, 0.0083333309742, -0.0001984086118, 0.000002752527, -2.388922e-8];

/** erf(x) / x in t = x^2 for |x| <= 4, as a quotient; relative error 2.6e-9. */
export const ERF = [
  [1.12837917, 0.1928788324, 0.055749598059, 0.00422649849445, 0.000411280012598, 0.0000067914377292],
  [1, 0.50426784849, 0.1174954290285, 0.01629516416475, 0.001421211541983, 0.0000725644399376, 2.6048956738e-7],
];

/** pi in three parts, the first two of 33 bits. */
export const PI = [3.1415926534682512, 1.2154201012607932e-10, 4.044532497591899e-21];
