/** Written by tools/coefficients.ts. Polynomial coefficients, lowest power first. */

/** (exp(r) - 1) / r for |r| <= ln(2) / 2; relative error 2.7e-10. */
export const EXPM1 = [1, 0.5000000047, 0.1666666672, 0.041666353, 0.008333298, 0.00139411, 0.00019899];

/** atanh(s) / s in t = s^2, for (1 + s) / (1 - s) in [sqrt(1/2), sqrt(2)]; relative error 4.4e-12. */
export const ATANH = [1.0000000000042, 0.33333332624, 0.2000019234, 0.14267526, 0.1180818];

/** sin(r) / r in t = r^2, for |r| <= pi / 2; relative error 2.7e-11. */
export const SIN = [0.999999999983, -0.166666666168, 0.0083333309742, -0.0001984086118, 0.000002752527, -2.388922e-8];

/** erf(x) / x in t = x^2 for |x| <= 4, as a quotient; relative error 2.6e-9. */
export const ERF = [
  [1.12837917, 0.1928788324, 0.055749598059, 0.00422649849445, 0.000411280012598, 0.0000067914377292],
  [1, 0.50426784849, 0.1174954290285, 0.01629516416475, 0.001421211541983, 0.0000725644399376, 2.6048956738e-7],
];

/** pi in three parts, the first two of 33 bits. */
export const PI = [3.1415926534682512, 1.2154201012607932e-10, 4.044532497591899e-21];
