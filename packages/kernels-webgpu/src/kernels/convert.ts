/** Conversions between stored elements, on their bits: no driver's rounding of halves is relied on. */
import { OptError } from "@opt/core";
import type { DType, StoredDType } from "@opt/core/backend";

/** Bytes of one stored element. */
export const BYTES: Readonly<Record<Exclude<DType, "f64">, number>> = {
  f32: 4,
  i32: 4,
  f16: 2,
  bf16: 2,
  u8: 1,
  bool: 1,
};

export type StoredKind = keyof typeof BYTES;

/** @throws OptError UNSUPPORTED for f64 */
export function checkStored(dtype: DType): asserts dtype is StoredKind {
  if (dtype === "f64") {
    throw new OptError(
      "UNSUPPORTED",
      "webgpu",
      "WGSL has no 64-bit floats, got f64.",
      `Cast with .to("f32") on another device.`,
    );
  }
}

const isFloat = (dtype: StoredKind) => dtype === "f32" || dtype === "f16" || dtype === "bf16";

const FROM_HALF = `
fn from_half(bits: u32) -> f32 {
  let sign = (bits & 0x8000u) << 16u;
  let magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) { return bitcast<f32>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13u)); }
  if (magnitude >= 0x400u) { return bitcast<f32>(sign | ((magnitude << 13u) + 0x38000000u)); }
  return bitcast<f32>(sign | bitcast<u32>(f32(magnitude) * 5.960464477539063e-8f)); // a multiple of 2^-24
}`;

/** To nearest, ties to even. */
const TO_HALF = `
fn to_half(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  let sign = (bits >> 16u) & 0x8000u;
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) { return sign | 0x7e00u; }
  if (magnitude >= 0x477ff000u) { return sign | 0x7c00u; } // from 65520 on
  if (magnitude >= 0x38800000u) {
    let rebased = magnitude - 0x38000000u;
    return sign | ((rebased + 0xfffu + ((rebased >> 13u) & 1u)) >> 13u);
  }
  let exponent = magnitude >> 23u;
  if (exponent < 102u) { return sign; } // below half of the smallest
  let significand = (magnitude & 0x7fffffu) | 0x800000u;
  let shift = 126u - exponent;
  let whole = significand >> shift;
  let rest = significand & ((1u << shift) - 1u);
  let half = 1u << (shift - 1u);
  return sign | (whole + select(0u, 1u, rest > half || (rest == half && (whole & 1u) == 1u)));
}`;

const TO_BFLOAT = `
fn to_bfloat(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}`;

/** The same by 16 random bits, in 2^-16 parts of the gap. */
const TO_HALF_BY = `
fn to_half_by(value: f32, draw: u32) -> u32 {
  let bits = bitcast<u32>(value);
  let sign = (bits >> 16u) & 0x8000u;
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) { return sign | 0x7e00u; }
  if (magnitude >= 0x47800000u) { return sign | 0x7c00u; } // 2^16
  if (magnitude >= 0x38800000u) { return sign | ((((magnitude - 0x38000000u) << 3u) + draw) >> 16u); }
  return sign | ((u32(abs(value) * 1099511627776f) + draw) >> 16u); // 2^40
}`;

const TO_BFLOAT_BY = `
fn to_bfloat_by(value: f32, draw: u32) -> u32 {
  let bits = bitcast<u32>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
  return (bits + draw) >> 16u;
}`;

/** Truncates and saturates; NaN gives 0. */
const TO_INT = `
fn to_int(value: f32) -> i32 {
  if ((bitcast<u32>(value) & 0x7fffffffu) > 0x7f800000u) { return 0; }
  if (value >= 2147483648f) { return 2147483647; }
  if (value <= -2147483648f) { return -2147483647 - 1; }
  return i32(value);
}`;

const LIBRARY = {
  "from_half(": FROM_HALF,
  "to_half(": TO_HALF,
  "to_bfloat(": TO_BFLOAT,
  "to_half_by(": TO_HALF_BY,
  "to_bfloat_by(": TO_BFLOAT_BY,
  "to_int(": TO_INT,
};

const DECODE: Readonly<Record<StoredKind, string>> = {
  f32: "bitcast<f32>(bits)",
  i32: "bitcast<i32>(bits)",
  f16: "from_half(bits)",
  bf16: "bitcast<f32>(bits << 16u)",
  u8: "i32(bits)",
  bool: "i32(bits)",
};

/** The bits of `value`, an f32 or an i32. */
function encode(to: StoredKind, fromFloat: boolean): string {
  const float = fromFloat ? "value" : "f32(value)";
  const whole = fromFloat ? "to_int(value)" : "value";
  switch (to) {
    case "f32":
      return `bitcast<u32>(${float})`;
    case "f16":
      return `to_half(${float})`;
    case "bf16":
      return `to_bfloat(${float})`;
    case "i32":
      return `bitcast<u32>(${whole})`;
    case "u8":
      return `u32(clamp(${whole}, 0, 255))`;
    case "bool": // by its bits: subnormals and NaN are not 0
      return fromFloat ? "select(0u, 1u, (bitcast<u32>(value) & 0x7fffffffu) != 0u)" : "select(0u, 1u, value != 0)";
  }
}

/** The functions of this file that some text calls. */
export function conversionsOf(text: string): string[] {
  return Object.entries(LIBRARY).flatMap(([call, body]) => (text.includes(call) ? [body.trim()] : []));
}

/** Element `at` of a buffer of words that is stored so, as an f32. */
export function readStored(buffer: string, at: string, stored: StoredDType, atomic = false): string {
  const read = (word: string) => (atomic ? `atomicLoad(&${buffer}[${word}])` : `${buffer}[${word}]`);
  if (stored === "f32") return `bitcast<f32>(${read(at)})`;
  const bits = `((${read(`(${at}) >> 1u`)} >> (((${at}) & 1u) * 16u)) & 0xffffu)`;
  return stored === "bf16" ? `bitcast<f32>(${bits} << 16u)` : `from_half(${bits})`;
}

/** A function `convert(bits)` from stored bits to stored bits, with what it needs. */
export function writeConvert(from: StoredKind, to: StoredKind): string {
  const body =
    from === to ? "  return bits;" : `  let value = ${DECODE[from]};\n  return ${encode(to, isFloat(from))};`;
  return [...conversionsOf(body), `fn convert(bits: u32) -> u32 {\n${body}\n}`].join("\n");
}
