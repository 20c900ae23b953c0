/**
 * Functions within a few ulp of float32, for all numbers, NaN and infinities: WGSL's own may be off by 2^-11, and need not know NaN.
 * Compilers may reassociate, as (1 + x) - 1 to x, but not through `exactly`; NaN and infinities are found by their bits.
 */
import { IS_NAN } from "../shader/group";
import { ZERO_BITS } from "../shader/shader";

const number = (value: number) => `${Math.fround(value)}f`;

/** Horner's scheme in `variable`, lowest coefficient first. */
function polynomial(variable: string, coefficients: readonly number[]): string {
  return coefficients.map(number).reduceRight((rest, coefficient) => `fma(${variable}, ${rest}, ${coefficient})`);
}

/** A sum that no compiler takes apart: it can't know that these bits are 0. */
const exactly = `fn exactly(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ ${ZERO_BITS}); }`;
const exactlyQuads = `fn exactly_quads(x: vec4f) -> vec4f { return bitcast<vec4f>(bitcast<vec4u>(x) ^ vec4u(${ZERO_BITS})); }`;

/** ln 2 in two parts (Moshier's Cephes): whole numbers below 2^12 times the first are exact. */
const LN2 = [0.693359375, -2.1219444005469057e-4] as const;

/** exp of a number and of a much smaller one, which is added: exp(r) is a polynomial for |r| <= ln(2) / 2 (Cephes). Results below 2^-126 are 0. */
const expOfSum = `
fn exp_of_sum(x: f32, small: f32) -> f32 {
  let bounded = clamp(x, -104f, 89f);
  let n = round(bounded * ${number(Math.LOG2E)});
  let r = fma(n, ${number(-LN2[1])}, fma(n, ${number(-LN2[0])}, bounded)) + small;
  let p = fma(r * r, ${polynomial("r", [5.0000001201e-1, 1.6666665459e-1, 4.1665795894e-2, 8.3334519073e-3, 1.3981999507e-3, 1.98756915e-4])}, r) + 1f;
  let bits = bitcast<i32>(p) + (i32(n) << 23u);
  let exponent = (bitcast<i32>(p) >> 23u) + i32(n);
  return bitcast<f32>(select(select(bits, 0, exponent <= 0), 0x7f800000, exponent >= 255));
}`;

const exponential = `
fn exponential(x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  return exp_of_sum(x, 0f);
}`;

/** The number above is 2^exponent times 1 + fraction, between the roots of 1/2 and 2. Positive, also subnormal. */
const parts = `
struct LogParts { exponent: f32, fraction: f32 }
fn log_parts(positive: u32) -> LogParts {
  let shift = select(0u, countLeadingZeros(positive) - 8u, positive < 0x800000u);
  let bits = positive << shift;
  let exponent = bitcast<i32>(bits - 0x3f3504f3u) >> 23u;
  let fraction = bitcast<f32>(bits - (bitcast<u32>(exponent) << 23u)) - 1f;
  return LogParts(f32(exponent - i32(shift)), fraction);
}
fn log_rest(f: f32) -> f32 {
  return ${polynomial("f", [3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1, -1.6668057665e-1, 1.4249322787e-1, -1.2420140846e-1, 1.167699874e-1, -1.151461031e-1, 7.0376836292e-2])};
}`;

const logarithm = `
fn logarithm(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if ((bits << 1u) == 0u) { return bitcast<f32>(minusInfinityBits); }
  if (bits > 0x7f800000u) { return bitcast<f32>(nanBits); }
  if (bits == 0x7f800000u) { return x; }
  let p = log_parts(bits);
  let f = p.fraction;
  let rest = fma(f * f * f, log_rest(f), fma(p.exponent, ${number(LN2[1])}, -0.5f * f * f));
  return (f + rest) + p.exponent * ${number(LN2[0])};
}`;

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
  if (is_nan(x)) { return x; }
  if (a < 1f) {
    let square = x * x;
    return x * ${polynomial("square", ERF)};
  }
  let b = min(a, 4f);
  let t = 1f / (1f + 0.5f * b);
  let tail = exp_of_sum(-b * b, 0f) * ${polynomial("t", ERFC)};
  return sign(x) * (1f - tail);
}`;

/** Near 0 the Taylor series, where the quotient of exponentials would cancel. */
const tanh = `
fn hyperbolic_tangent(x: f32) -> f32 {
  let a = abs(x);
  if (is_nan(x)) { return x; }
  if (a < 0.25f) {
    let square = x * x;
    return x * ${polynomial("square", [1, -1 / 3, 2 / 15, -17 / 315, 62 / 2835])};
  }
  let shrunk = exp_of_sum(-2f * a, 0f);
  return sign(x) * (1f - shrunk) / (1f + shrunk);
}`;

/** pi / 2 in parts of few bits, whose products with whole numbers up to 8 are exact (Cody & Waite 1980). */
const HALF_PI = Math.PI / 2;
const first = Math.floor(HALF_PI * 2 ** 8) / 2 ** 8;
const second = Math.floor((HALF_PI - first) * 2 ** 20) / 2 ** 20;
const third = HALF_PI - first - second;

/** The first bits of 1 / (2 pi), for products with 32 bits of a number of any size (Payne & Hanek 1983). */
const TURNS = ["28be60db", "9391054a", "7f09d5f4", "7d4d3770", "36d8a566", "4f10e410", "7f9458ea", "f7aef158"];

const trigonometry = `
struct Angle { rest: f32, quadrant: i32 }
fn wide_product(a: u32, b: u32) -> vec2u {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
  let upper = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
  return vec2u((upper << 16u) | (low & 0xffffu), (a >> 16u) * (b >> 16u) + (middle >> 16u) + (upper >> 16u));
}
fn turns(i: u32) -> u32 {
  const words = array<u32, ${TURNS.length}>(${TURNS.map((word) => `0x${word}u`).join(", ")});
  var all = words;
  return all[i];
}
fn far_angle(x: f32) -> Angle {
  let bits = bitcast<u32>(x);
  let exponent = ((bits >> 23u) & 0xffu) - 126u;
  let whole = (bits << 8u) | 0x80000000u;
  let word = exponent >> 5u;
  let shift = exponent & 31u;
  var high = 0u;
  if (word > 0u) { high = turns(word - 1u); }
  var middle = turns(word);
  var low = turns(word + 1u);
  if (shift > 0u) {
    high = (high << shift) | (middle >> (32u - shift));
    middle = (middle << shift) | (low >> (32u - shift));
    low = (low << shift) | (turns(word + 2u) >> (32u - shift));
  }
  let carried = wide_product(whole, low).y;
  let product = wide_product(whole, middle);
  var rest_low = product.x + carried;
  var rest_high = product.y + select(0u, 1u, rest_low < carried) + whole * high;
  var quadrant = i32(rest_high >> 30u);
  rest_high &= 0x3fffffffu;
  let turns_over = (rest_high & 0x20000000u) != 0u;
  if (turns_over) { // 1 - rest
    quadrant += 1;
    rest_low = ~rest_low + 1u;
    rest_high = (0x40000000u - rest_high) - select(0u, 1u, rest_low != 0u);
  }
  let zeros = select(countLeadingZeros(rest_high), 32u + countLeadingZeros(rest_low), rest_high == 0u);
  var top = rest_low << (zeros & 31u);
  if (zeros < 32u) { top = (rest_high << zeros) | select(0u, rest_low >> (32u - zeros), zeros > 0u); }
  let scale = bitcast<f32>((127u - 30u - min(zeros, 90u)) << 23u);
  let rest = f32(top) * scale * ${number(HALF_PI)};
  let positive = select(rest, -rest, turns_over);
  if (x < 0f) { return Angle(-positive, -quadrant); }
  return Angle(positive, quadrant);
}
fn angle_of(x: f32) -> Angle {
  if (abs(x) >= 8f) { return far_angle(x); }
  let q = round(x * ${number(2 / Math.PI)});
  return Angle(fma(q, ${number(-third)}, fma(q, ${number(-second)}, fma(q, ${number(-first)}, x))), i32(q));
}
fn wave(x: f32, ahead: i32) -> f32 {
  if ((bitcast<u32>(x) & 0x7f800000u) == 0x7f800000u) { return bitcast<f32>(nanBits); }
  let angle = angle_of(x);
  let quadrant = angle.quadrant + ahead;
  let r = angle.rest;
  let square = r * r;
  let odd = r * ${polynomial("square", [1, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880])};
  let even = ${polynomial("square", [1, -1 / 2, 1 / 24, -1 / 720, 1 / 40320])};
  let value = select(odd, even, (quadrant & 1) != 0);
  return select(value, -value, (quadrant & 2) != 0);
}
fn sine(x: f32) -> f32 { return wave(x, 0); }
fn cosine(x: f32) -> f32 { return wave(x, 1); }`;

/** C's pow. The logarithm and its product with y are sums of two numbers, because the exponential magnifies their errors by up to 88. */
const pow = `
fn upper_half(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u); }
fn power_of_positive(x: f32, y: f32) -> f32 {
  let p = log_parts(bitcast<u32>(x));
  let f = p.fraction;
  let f1 = upper_half(f);
  let f2 = exactly(f - f1);
  let square = f1 * f1;
  let small = fma(f * f * f, log_rest(f), fma(p.exponent, ${number(LN2[1])}, -(f1 * f2) - 0.5f * f2 * f2));
  let a = p.exponent * ${number(LN2[0])};
  let b = exactly(f - 0.5f * square);
  let b_rest = exactly(exactly(f - b) - 0.5f * square);
  let sum = exactly(a + b);
  let from_b = exactly(sum - a);
  let sum_rest = exactly(a - exactly(sum - from_b)) + exactly(b - from_b);
  let low = small + (b_rest + sum_rest);
  let log = exactly(sum + low);
  let log_low = exactly(low - exactly(log - sum));
  let product = y * log;
  if (product > 200f) { return bitcast<f32>(infinityBits); }
  if (product < -200f) { return 0f; }
  let y1 = upper_half(y);
  let y2 = exactly(y - y1);
  let log1 = upper_half(log);
  let log2 = exactly(log - log1);
  let product_rest = exactly(exactly(exactly(y1 * log1) - product) + y1 * log2) + y2 * log1 + (y2 * log2 + y * log_low);
  return exp_of_sum(product, product_rest);
}
fn power(x: f32, y: f32) -> f32 {
  if (y == 0f || x == 1f) { return 1f; }
  if (is_nan(x) || is_nan(y)) { return bitcast<f32>(nanBits); }
  let nothing = 0f;
  let infinity = bitcast<f32>(infinityBits);
  let a = abs(x);
  let a_bits = bitcast<u32>(x) & 0x7fffffffu;
  let y_bits = bitcast<u32>(y) & 0x7fffffffu;
  if (y_bits == 0x7f800000u) {
    if (a_bits == 0x3f800000u) { return 1f; }
    return select(nothing, infinity, (a_bits > 0x3f800000u) == (bitcast<u32>(y) == y_bits));
  }
  let is_whole = floor(y) == y;
  let is_odd = is_whole && y_bits < 0x4b800000u && fract(y * 0.5f) != 0f;
  let is_negative = bitcast<u32>(x) != a_bits;
  var magnitude: f32;
  if (a_bits == 0u) { magnitude = select(nothing, infinity, y < 0f); }
  else if (a_bits == 0x7f800000u) { magnitude = select(infinity, nothing, y < 0f); }
  else if (is_negative && !is_whole) { return bitcast<f32>(nanBits); }
  else { magnitude = power_of_positive(a, y); }
  return select(magnitude, -magnitude, is_negative && is_odd);
}`;

/** Near 0 2 atanh(s) with s = x / (2 + x), where 1 + x would round x away. */
const log1p = `
fn log_of_more(x: f32) -> f32 {
  if (abs(x) >= 0.3f) { return logarithm(1f + x); }
  let s = x / (2f + x);
  let square = s * s;
  return s * ${polynomial("square", [2, 2 / 3, 2 / 5, 2 / 7, 2 / 9])};
}`;

/** Near 0 the Taylor series, where the difference would cancel. */
const expm1 = `
fn exp_less_one(x: f32) -> f32 {
  if (abs(x) >= 0.5f) { return exponential(x) - 1f; }
  return x * ${polynomial("x", [1, 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040, 1 / 40320])};
}`;

const FUNCTIONS: Readonly<Record<string, string>> = {
  is_nan: IS_NAN,
  exactly,
  exactly_quads: exactlyQuads,
  exp_of_sum: expOfSum,
  exponential,
  log_parts: parts,
  logarithm,
  error_function: erf,
  hyperbolic_tangent: tanh,
  sine: trigonometry,
  cosine: trigonometry,
  power: pow,
  log_of_more: log1p,
  exp_less_one: expm1,
};

/** `name` of each of four elements. */
function quadsOf(name: string): string {
  const operands = name === "power" ? ["x", "y"] : ["x"];
  const elements = ["x", "y", "z", "w"].map(
    (element) => `${name}(${operands.map((x) => `${x}.${element}`).join(", ")})`,
  );
  return `fn ${name}_quads(${operands.map((x) => `${x}: vec4f`).join(", ")}) -> vec4f { return vec4f(${elements.join(", ")}); }`;
}

/** The functions that some text calls, and those that these call. `declared` are there already. */
export function libraryOf(text: string, declared = ""): string[] {
  const found = new Set<string>();
  const search = (part: string) => {
    for (const [, name, quads] of part.matchAll(/\b([a-z_]+?)(_quads)?\(/g)) {
      const own = FUNCTIONS[`${name}${quads ?? ""}`];
      const whole = own ?? (quads !== undefined && name! in FUNCTIONS ? quadsOf(name!) : undefined);
      if (whole === undefined || found.has(whole) || declared.includes(whole)) continue;
      found.add(whole);
      search(whole);
    }
  };
  search(text);
  return [...found];
}
