/** Written by tools/coefficients.ts. Polynomial coefficients, lowest power first. */

/** (exp(r) - 1) / r for |r| <= ln(2) / 2; relative error 2.7e-10. */
export const EXPM1 = [1, 0.5000000047, 0.1666666672, 0.041666353, 0.008333298, 0.00139411, 0.00019899];

/** atanh(s) / s in t = s^2, for (1 + s) / (1 - s) in [sqrt(1/2), sqrt(2)]; relative error 4.4e-12. */
export const ATANH = [1.0000000000042, 0.33333332624, 0.2000019234, 0.14267526, 0.1180818];

/** sin(r) / r in t = r^2, for |r| <= pi / 4; relative error 4.8e-12. */
export const SIN = [0.9999999999957, -0.166666666316, 0.0083333287824, -0.000198392022, 0.000002717346];

/** cos(r) in t = r^2, for |r| <= pi / 4; relative error 6.7e-11. */
export const COS = [0.999999999952, -0.49999999615, 0.04166661669, -0.0013886618, 0.00002437983];

/** erf(x) / x in u = x^2 / 8 - 1, for |x| <= 4; relative error 2.0e-9. */
export const ERF = [
  0.35353099634, -0.17657623356, 0.13167500462, -0.10771040125, 0.09021197584, -0.07472896228, 0.05985653048,
  -0.0457539337, 0.03321488465, -0.022530381, 0.0139126742, -0.00844506106, 0.00557199946, -0.00284384265,
  0.00061991864, -0.00036323932, 0.0005955966, -0.00023753037,
];

/** The fraction bits of 2/pi, highest word first. */
export const TWO_OVER_PI = [
  0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
];

/** pi/2 in three parts, the first two of 33 bits. */
export const HALF_PI = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487959495e-21];
