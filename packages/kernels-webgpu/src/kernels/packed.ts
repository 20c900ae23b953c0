/** State packed in blocks, as WGSL: a word of scale, then 64 words of four codes. */
import { codebookOf, indent, LEAST_SCALE, PACKED_BLOCK, PACKED_BYTES, type PackedDType } from "@opt/core/backend";
import { LANES } from "../shader/shader";

/** Of one packed block; an invocation has four neighbours, whose codes are a word. */
const WORDS = PACKED_BYTES / 4;
const EACH = PACKED_BLOCK / LANES;

const float = (value: number) => `${value}f`;

/** Functions of a format: a byte's value, and a number's byte. */
function codesOf(format: PackedDType): string {
  const { edges, slope, offset, cap, step, start } = codebookOf(format);
  const signed = format === "q8";
  const places = [...step.keys()].slice(1);
  return [
    `fn value_${format}(byte: u32) -> f32 {`,
    signed ? "  let code = bitcast<i32>(byte << 24u) >> 24u;" : "  let code = bitcast<i32>(byte);",
    `  let place = ${signed ? "2 * abs(code) + 1" : "code + 1"};`,
    "  var line = vec2f(0.0, 0.0);",
    ...places.map((e) => `  if (place >= ${2 ** e}) { line = vec2f(${float(step[e]!)}, ${float(start[e]!)}); }`),
    "  let value = f32(abs(code)) * line.x + line.y;",
    "  return select(value, -value, code < 0);",
    "}",
    `fn byte_${format}(value: f32, scale: f32) -> u32 {`,
    "  if (key_of(value) == 0u || scale == 0.0) { return 0u; }",
    "  let x = value * (1.0 / scale);",
    `  let magnitude = ${signed ? "abs(x)" : "max(x, 0.0)"};`,
    `  var line = vec3f(${float(slope[0]!)}, ${float(offset[0]!)}, ${float(cap[0]!)});`,
    ...[...edges].map((edge, e) => {
      const parts = [slope, offset, cap].map((list) => float(list[e + 1]!));
      return `  if (magnitude >= ${float(edge)}) { line = vec3f(${parts.join(", ")}); }`;
    }),
    "  let n = u32(min(magnitude * line.x + line.y, line.z));",
    signed ? "  return select(min(n, 127u), (256u - n) & 255u, x < 0.0);" : "  return n;",
    "}",
    `fn scale_${format}(largest: u32) -> f32 {`,
    "  let magnitude = bitcast<f32>(largest >> 1u);",
    `  if (magnitude < ${float(LEAST_SCALE)}) { return 0.0; }`,
    `  return select(-magnitude, magnitude, ${signed ? "(largest & 1u) == 0u" : "(largest & 1u) != 0u"});`,
    "}",
  ].join("\n");
}

/** Ordered by magnitude, a positive one of two above the negative one; 0 for what is not finite. */
const KEY = `
fn key_of(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  if ((bits & 0x7fffffffu) >= 0x7f800000u) { return 0u; }
  return ((bits << 1u) | (bits >> 31u)) ^ 1u;
}`.trim();

/** A packed buffer of a rule. */
export interface PackedSlot {
  readonly slot: number;
  readonly format: PackedDType;
  readonly isWritten: boolean;
}

export function packedDeclarations(slots: readonly PackedSlot[]): string[] {
  const formats = [...new Set(slots.map(({ format }) => format))];
  const written = slots.filter(({ isWritten }) => isWritten);
  return [KEY, ...formats.map(codesOf), ...written.map(({ slot }) => `var<workgroup> largest${slot}: atomic<u32>;`)];
}

/** The element of a packed slot that `overPackedBlocks` is at. */
export function readPacked({ slot, format }: PackedSlot): string {
  return `value_${format}((codes${slot} >> (8u * k)) & 255u) * scale${slot}`;
}

export function keepPacked({ slot }: PackedSlot, value: string): string {
  return `fresh${slot}[k] = ${value};\nmost${slot} = max(most${slot}, key_of(fresh${slot}[k]));`;
}

/** A loop over the packed blocks of a block of the list, whose barriers all invocations reach. */
export function overPackedBlocks(
  block: number,
  slots: readonly PackedSlot[],
  buffers: Readonly<Record<number, string>>,
  atomic: boolean,
  element: readonly string[],
): string {
  const at = (slot: number, word: string) => `${buffers[slot]}[at${slot} + block * ${WORDS}u + ${word}]`;
  const read = (place: string) => (atomic ? `atomicLoad(&${place})` : place);
  const write = (place: string, value: string) =>
    atomic ? `atomicStore(&${place}, ${value});` : `${place} = ${value};`;
  const written = slots.filter(({ isWritten }) => isWritten);
  return [
    `for (var turn = 0u; turn < ${block / PACKED_BLOCK}u; turn++) {`,
    ...written.map(({ slot }) => `  if (lane == 0u) { atomicStore(&largest${slot}, 0u); }`),
    "  workgroupBarrier();",
    `  let first = start + turn * ${PACKED_BLOCK}u + lane * ${EACH}u;`,
    `  let block = first / ${PACKED_BLOCK}u;`,
    ...written.map(({ slot }) => `  var fresh${slot}: array<f32, ${EACH}>;\n  var most${slot} = 0u;`),
    "  if (first < end) {",
    ...slots.flatMap(({ slot }) => [
      `    let scale${slot} = bitcast<f32>(${read(at(slot, "0u"))});`,
      `    let codes${slot} = ${read(at(slot, "1u + lane"))};`,
    ]),
    `    for (var k = 0u; k < ${EACH}u; k++) {`,
    "      let i = first + k;",
    "      if (i >= end) { break; }",
    ...indent(element, 6),
    "    }",
    ...written.map(({ slot }) => `    atomicMax(&largest${slot}, most${slot});`),
    "  }",
    "  workgroupBarrier();",
    "  if (first < end) {",
    ...written.flatMap(({ slot, format }) => [
      `    let fitted${slot} = scale_${format}(atomicLoad(&largest${slot}));`,
      `    if (lane == 0u) { ${write(at(slot, "0u"), `bitcast<u32>(fitted${slot})`)} }`,
      `    var word${slot} = 0u;`,
      `    for (var k = 0u; k < ${EACH}u; k++) { word${slot} |= byte_${format}(fresh${slot}[k], fitted${slot}) << (8u * k); }`,
      `    ${write(at(slot, "1u + lane"), `word${slot}`)}`,
    ]),
    "  }",
    "  workgroupBarrier();",
    "}",
  ].join("\n");
}
