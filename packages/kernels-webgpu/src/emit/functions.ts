/** What WGSL lacks or leaves imprecise, within a few ulp of float32: erf, tanh, sin, cos (specified to 2^-11 only) and pow of any sign; log1p and expm1. */

/** pi / 2 in parts of few bits, whose products with small whole numbers are exact (Cody & Waite 1980). */
const HALF_PI = Math.PI / 2;
const first = Math.floor(HALF_PI * 2 ** 8) / 2 ** 8;
const second = Math.floor((HALF_PI - first) * 2 ** 20) / 2 ** 20;
const third = HALF_PI - first - second;

const number = (value: number) => `${Math.fround(value)}f`;

/** Horner's scheme in `variable`, lowest coefficient first. */
function polynomial(variable: string, coefficients: readonly number[]): string {
  return coefficients.map(number).reduceRight((rest, coefficient) => `fma(${variable}, ${rest}, ${coefficient})`);
}

/** erf(x) / x as a polynomial of x^2 on [0, 1], by least squares at Chebyshev nodes. Error of erf: 1.6e-7 relative. */
const ERF = [
  1.1283791658814897, -0.37612626903544216, 0.11283597463194243, -0.026854328785934665, 0.005189311925758186,
  -0.0008018854857152515, 0.00007882496692115422,
];

/** (1 - erf(x)) exp(x^2) as a polynomial of 1 / (1 + x / 2) on [1, 4], likewise. Error of erf: 5e-8 absolute. */
const ERFC = [
  0.0006238107962860615, 0.27336323953956304, 0.3323505457836088, 0.09662163636488408, 0.411697371905855,
  -0.06428095343794635, -0.05103375207862547,
];

const erf = `
fn error_function(x: f32) -> f32 {
  let a = abs(x);
  if (a < 1f) {
    let square = x * x;
    return x * ${polynomial("square", ERF)};
  }
  let b = min(a, 4f);
  let t = 1f / (1f + 0.5f * b);
  let tail = exp(-b * b) * ${polynomial("t", ERFC)};
  return sign(x) * (1f - tail);
}`;

/** Near 0 the Taylor series, where the quotient of exponentials would cancel. */
const tanh = `
fn hyperbolic_tangent(x: f32) -> f32 {
  let a = abs(x);
  if (a < 0.25f) {
    let square = x * x;
    return x * ${polynomial("square", [1, -1 / 3, 2 / 15, -17 / 315, 62 / 2835])};
  }
  let shrunk = exp(-2f * a);
  return sign(x) * (1f - shrunk) / (1f + shrunk);
}`;

const trigonometry = `
fn quadrant_of(x: f32) -> f32 { return round(x * ${number(2 / Math.PI)}); }
fn remainder_of(x: f32, quadrant: f32) -> f32 {
  return fma(quadrant, ${number(-third)}, fma(quadrant, ${number(-second)}, fma(quadrant, ${number(-first)}, x)));
}
fn wave(r: f32, quadrant: i32) -> f32 {
  let square = r * r;
  let odd = r * ${polynomial("square", [1, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880])};
  let even = ${polynomial("square", [1, -1 / 2, 1 / 24, -1 / 720, 1 / 40320])};
  let value = select(odd, even, (quadrant & 1) != 0);
  return select(value, -value, (quadrant & 2) != 0);
}
fn sine(x: f32) -> f32 { let q = quadrant_of(x); return wave(remainder_of(x, q), i32(q)); }
fn cosine(x: f32) -> f32 { let q = quadrant_of(x); return wave(remainder_of(x, q), i32(q) + 1); }`;

/** Whole exponents of negative numbers are allowed; other exponents of them give NaN. */
const pow = `
fn power(x: f32, y: f32) -> f32 {
  if (y == 0f || x == 1f) { return 1f; }
  let magnitude = pow(abs(x), y);
  if (x >= 0f) { return magnitude; }
  if (floor(y) != y) { return bitcast<f32>(nanBits); }
  return select(magnitude, -magnitude, fract(y * 0.5f) != 0f);
}`;

/** Near 0 2 atanh(s) with s = x / (2 + x), where 1 + x would round x away. */
const log1p = `
fn log_of_more(x: f32) -> f32 {
  if (abs(x) >= 0.3f) { return log(1f + x); }
  let s = x / (2f + x);
  let square = s * s;
  return s * ${polynomial("square", [2, 2 / 3, 2 / 5, 2 / 7, 2 / 9])};
}`;

/** Near 0 the Taylor series, where the difference would cancel. */
const expm1 = `
fn exp_less_one(x: f32) -> f32 {
  if (abs(x) >= 0.5f) { return exp(x) - 1f; }
  return x * ${polynomial("x", [1, 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040, 1 / 40320])};
}`;

const LIBRARY: Readonly<Record<string, string>> = {
  "error_function(": erf,
  "hyperbolic_tangent(": tanh,
  "sine(": trigonometry,
  "cosine(": trigonometry,
  "power(": pow,
  "log_of_more(": log1p,
  "exp_less_one(": expm1,
};

/** The functions that some text calls. */
export function libraryOf(text: string): string[] {
  return [...new Set(Object.keys(LIBRARY).flatMap((call) => (text.includes(call) ? [LIBRARY[call]!] : [])))];
}
