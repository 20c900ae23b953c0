/**
 * Fused multiply-add, a * b + c with one rounding, where the hardware gives none.
 * Follows Boldo & Melquiond, "Emulation of FMA and correctly rounded sums" (2008).
 */

const FLOAT_MAX = 2 ** 128 - 2 ** 104;
const FLOAT_OVERFLOW_TIE = 2 ** 128 - 2 ** 103;

/** fma of three float32 values, correctly rounded to float32. */
export function fma32(a: number, b: number, c: number): number {
  const product = a * b; // exact: 48 significant bits
  const sum = product + c;
  const rounded = Math.fround(sum);
  return rounded === sum ? rounded : roundedUnlessTie(product, c, sum, rounded);
}

/** Rounding twice (to double, then to float) errs only when the double lies midway between two floats and was itself inexact. */
function roundedUnlessTie(product: number, c: number, sum: number, rounded: number): number {
  if (!Number.isFinite(rounded)) {
    if (Math.abs(sum) !== FLOAT_OVERFLOW_TIE) return rounded;
    return errorOfSum(product, c, sum) * sum < 0 ? Math.sign(sum) * FLOAT_MAX : rounded;
  }
  const other = sum + (sum - rounded); // the float on the far side, if `sum` is midway
  if (other === rounded || Math.fround(other) !== other) return rounded;
  const error = errorOfSum(product, c, sum);
  if (error === 0) return rounded;
  return error > 0 ? Math.max(rounded, other) : Math.min(rounded, other);
}

/** The exact value of (a + b) - sum, where sum = fl(a + b) (Knuth's two-sum). */
function errorOfSum(a: number, b: number, sum: number): number {
  const shadow = sum - a;
  return a - (sum - shadow) + (b - shadow);
}

const SPLITTER = 2 ** 27 + 1;
const double = new Float64Array(1);
/** Its bits, low word first: every platform of JavaScript is little-endian. */
const words = new Uint32Array(double.buffer);
const bits = new DataView(double.buffer);

/** fma of three float64 values, correctly rounded to float64. */
export function fma64(a: number, b: number, c: number): number {
  const product = a * b;
  if (a === 0 || b === 0 || !Number.isFinite(a) || !Number.isFinite(b)) return product + c;
  if (!Number.isFinite(c)) return c; // the product may overflow here, but it is finite
  if (c === 0) return product;
  if (!inSafeRange(a) || !inSafeRange(b) || !inSafeRange(c) || !inSafeRange(product)) return fmaExact(a, b, c);
  const productError = errorOfProduct(a, b, product);
  const low = c + productError;
  const lowError = errorOfSum(c, productError, low);
  const high = product + low;
  const highError = errorOfSum(product, low, high);
  return high + addToOdd(lowError, highError);
}

/** Magnitudes for which no step of the fast path can overflow or lose bits to underflow. */
function inSafeRange(x: number): boolean {
  const magnitude = Math.abs(x);
  return magnitude > 2 ** -900 && magnitude < 2 ** 900;
}

/** The exact value of a * b - product (Dekker's product with Veltkamp's splitting). */
function errorOfProduct(a: number, b: number, product: number): number {
  const scaledA = SPLITTER * a;
  const highA = scaledA - (scaledA - a);
  const lowA = a - highA;
  const scaledB = SPLITTER * b;
  const highB = scaledB - (scaledB - b);
  const lowB = b - highB;
  return lowA * lowB - (product - highA * highB - lowA * highB - highA * lowB);
}

/** a + b rounded to odd: when inexact, of the two neighbours the one whose last bit is 1. */
function addToOdd(a: number, b: number): number {
  const sum = a + b;
  const error = errorOfSum(a, b, sum);
  if (error === 0) return sum;
  double[0] = sum;
  const low = words[0]!;
  if ((low & 1) === 1) return sum;
  // An even last bit becomes odd without a carry; only one step towards zero can borrow.
  if (error > 0 === sum > 0) words[0] = low + 1;
  else {
    words[0] = low - 1;
    if (low === 0) words[1]!--;
  }
  return double[0];
}

/** The slow way for extreme exponents: integers. */
function fmaExact(a: number, b: number, c: number): number {
  const [mantissaA, exponentA] = decompose(a);
  const [mantissaB, exponentB] = decompose(b);
  const [mantissaC, exponentC] = decompose(c);
  const exponent = Math.min(exponentA + exponentB, exponentC);
  const sum =
    ((mantissaA * mantissaB) << BigInt(exponentA + exponentB - exponent)) + (mantissaC << BigInt(exponentC - exponent));
  return roundToDouble(sum, exponent);
}

/** x as integer * 2^exponent. */
function decompose(x: number): [bigint, number] {
  bits.setFloat64(0, x);
  const pattern = bits.getBigUint64(0);
  const biased = Number((pattern >> 52n) & 0x7ffn);
  const fraction = pattern & 0xfffffffffffffn;
  const mantissa = biased === 0 ? fraction : fraction | 0x10000000000000n;
  return [x < 0 ? -mantissa : mantissa, Math.max(biased, 1) - 1075];
}

/** integer * 2^exponent, rounded to nearest even. */
function roundToDouble(integer: bigint, exponent: number): number {
  if (integer === 0n) return 0;
  const magnitude = integer < 0n ? -integer : integer;
  const length = magnitude.toString(2).length;
  const target = Math.max(length + exponent - 53, -1074);
  const shift = target - exponent;
  let mantissa = magnitude;
  if (shift > 0) {
    const remainder = magnitude & ((1n << BigInt(shift)) - 1n);
    const half = 1n << BigInt(shift - 1);
    mantissa = magnitude >> BigInt(shift);
    if (remainder > half || (remainder === half && (mantissa & 1n) === 1n)) mantissa += 1n;
  } else {
    mantissa = magnitude << BigInt(-shift);
  }
  // Two exact steps: 2^target alone may be below the smallest double.
  const value = Number(mantissa) * 2 ** Math.max(target, -1022) * 2 ** Math.min(target + 1022, 0);
  return integer < 0n ? -value : value;
}
