/** Floats as words: their hexadecimal digits and how many representable values lie between two of them. */

export type FloatFormat = "f32" | "f64";

const view = new DataView(new ArrayBuffer(8));

/** The word of `value` in the format, as hexadecimal digits. */
export function hexadecimal(value: number, format: FloatFormat): string {
  if (format === "f64") {
    view.setFloat64(0, value);
    return `0x${view.getBigUint64(0).toString(16).padStart(16, "0")}`;
  }
  view.setFloat32(0, value);
  return `0x${view.getUint32(0).toString(16).padStart(8, "0")}`;
}

/** Position of a value on the line of all values of the format, 0 for both zeros. */
function position(value: number, format: FloatFormat): bigint {
  if (format === "f64") {
    view.setFloat64(0, value);
    const word = view.getBigInt64(0);
    return word >= 0n ? word : -(word & 0x7fffffffffffffffn);
  }
  view.setFloat32(0, value);
  const word = view.getInt32(0);
  return BigInt(word >= 0 ? word : -(word & 0x7fffffff));
}

/** Steps from one representable value to the other; infinite if exactly one is NaN, 0 if both are. */
export function ulpDistance(a: number, b: number, format: FloatFormat): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) && Number.isNaN(b) ? 0 : Number.POSITIVE_INFINITY;
  const distance = position(a, format) - position(b, format);
  return Number(distance < 0n ? -distance : distance);
}
