/** MessagePack in each form that its specification has for a value, the shortest or longer ones. */
export type Packable = null | boolean | number | string | readonly Packable[] | Map<string, Packable>;

/** `longer`: how many forms longer than the shortest that fits. */
export function messagePackOf(value: Packable, longer = 0): Uint8Array {
  const inside = (each: Packable) => messagePackOf(each, longer);
  if (value === null) return Uint8Array.of(0xc0);
  if (typeof value === "boolean") return Uint8Array.of(value ? 0xc3 : 0xc2);
  if (typeof value === "number") return numberOf(value, longer);
  if (typeof value === "string") {
    const text = Buffer.from(value);
    const forms: Form[] = [
      [32, 0xa0],
      [2 ** 8, 0xd9, 1],
      [2 ** 16, 0xda, 2],
      [2 ** 32, 0xdb, 4],
    ];
    return Buffer.concat([head(text.length, forms, longer), text]);
  }
  if (value instanceof Map) {
    const forms: Form[] = [
      [16, 0x80],
      [2 ** 16, 0xde, 2],
      [2 ** 32, 0xdf, 4],
    ];
    const members = [...value].flatMap(([key, each]) => [inside(key), inside(each)]);
    return Buffer.concat([head(value.size, forms, longer), ...members]);
  }
  const forms: Form[] = [
    [16, 0x90],
    [2 ** 16, 0xdc, 2],
    [2 ** 32, 0xdd, 4],
  ];
  return Buffer.concat([head(value.length, forms, longer), ...value.map(inside)]);
}

/** Below which number it is possible, its code, and the bytes of the number behind it: without, the code has it. */
type Form = readonly [below: number, code: number, bytes?: number];

function head(count: number, forms: readonly Form[], longer: number): Uint8Array {
  const fitting = forms.filter(([below]) => count < below);
  const [, code, bytes] = fitting[Math.min(longer, fitting.length - 1)]!;
  if (bytes === undefined) return Uint8Array.of(code + count);
  const result = Buffer.alloc(1 + bytes);
  result[0] = code;
  result.writeUIntBE(count, 1, bytes);
  return result;
}

function numberOf(value: number, longer: number): Uint8Array {
  if (!Number.isInteger(value)) {
    const result = Buffer.alloc(9, 0xcb);
    result.writeDoubleBE(value, 1);
    return result;
  }
  if (value >= 0)
    return head(
      value,
      [
        [128, 0],
        [2 ** 8, 0xcc, 1],
        [2 ** 16, 0xcd, 2],
        [2 ** 32, 0xce, 4],
      ],
      longer,
    );
  if (value >= -32 && longer === 0) return Uint8Array.of(256 + value);
  const widths = [1, 2, 4].filter((bytes) => value >= -(2 ** (8 * bytes - 1)));
  const bytes = widths[Math.min(longer, widths.length - 1)]!;
  const result = Buffer.alloc(1 + bytes, 0xd0 + Math.log2(bytes));
  result.writeIntBE(value, 1, bytes);
  return result;
}
