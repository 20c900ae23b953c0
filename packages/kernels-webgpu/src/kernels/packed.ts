/** State packed in blocks, as WGSL: a word of scale, then 64 words of four codes; or 128 words of 16 bits, then 64 of four corrections. */
import {
  blockBytes,
  type CodedDType,
  codebookOf,
  indent,
  LEAST_SCALE,
  PACKED_BLOCK,
  type PackedDType,
  packedHead,
} from "@opt/core/backend";
import { LANES } from "../shader/shader";

/** An invocation has four neighbours, whose codes are a word. */
const EACH = PACKED_BLOCK / LANES;

const float = (value: number) => `${value}f`;

/** Functions of a format: a byte's value, and a number's byte. */
function codesOf(format: CodedDType): string {
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

/** State in 24 bits: core's rule/corrected.ts says what they mean. */
const CORRECTED = `
fn value_bf16x(high: u32, byte: u32) -> f32 {
  return bitcast<f32>((high << 16u) + bitcast<u32>(bitcast<i32>(byte << 24u) >> 16u));
}
fn upper_bf16x(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  let rounded = (bits + 127u + ((bits >> 8u) & 1u)) >> 8u;
  return select(0x7fc000u, rounded, (bits & 0x7fffffffu) <= 0x7f800000u);
}`.trim();

/** A packed buffer of a rule. */
export interface PackedSlot {
  readonly slot: number;
  readonly format: PackedDType;
  readonly isWritten: boolean;
}

export function packedDeclarations(slots: readonly PackedSlot[]): string[] {
  const formats = [...new Set(slots.map(({ format }) => format))];
  const coded = slots.filter(({ isWritten, format }) => isWritten && format !== "bf16x");
  const functions = formats.map((format) => (format === "bf16x" ? CORRECTED : codesOf(format)));
  return [KEY, ...functions, ...coded.map(({ slot }) => `var<workgroup> largest${slot}: atomic<u32>;`)];
}

/** The element of a packed slot that `overPackedBlocks` is at. */
export function readPacked({ slot, format }: PackedSlot): string {
  const byte = `(codes${slot} >> (8u * k)) & 255u`;
  if (format === "bf16x") return `value_bf16x((high${slot}[k >> 1u] >> (16u * (k & 1u))) & 0xffffu, ${byte})`;
  return `value_${format}(${byte}) * scale${slot}`;
}

export function keepPacked({ slot, format }: PackedSlot, value: string): string {
  if (format === "bf16x") return `fresh${slot}[k] = ${value};`;
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
  const at = ({ slot, format }: PackedSlot, word: string) =>
    `${buffers[slot]}[at${slot} + block * ${blockBytes(format) / 4}u + ${word}]`;
  const codesAt = (packed: PackedSlot) => at(packed, `${packedHead(packed.format) / 4}u + lane`);
  const read = (place: string) => (atomic ? `atomicLoad(&${place})` : place);
  const write = (place: string, value: string) =>
    atomic ? `atomicStore(&${place}, ${value});` : `${place} = ${value};`;
  const written = slots.filter(({ isWritten }) => isWritten);
  const coded = written.filter(({ format }) => format !== "bf16x");
  const highAt = (packed: PackedSlot, k: number) => at(packed, `2u * lane + ${k}u`);
  return [
    `for (var turn = 0u; turn < ${block / PACKED_BLOCK}u; turn++) {`,
    ...coded.map(({ slot }) => `  if (lane == 0u) { atomicStore(&largest${slot}, 0u); }`),
    "  workgroupBarrier();",
    `  let first = start + turn * ${PACKED_BLOCK}u + lane * ${EACH}u;`,
    `  let block = first / ${PACKED_BLOCK}u;`,
    ...written.map(({ slot }) => `  var fresh${slot}: array<f32, ${EACH}>;\n  var most${slot} = 0u;`),
    "  if (first < end) {",
    ...slots.flatMap((packed) => [
      packed.format === "bf16x"
        ? `    let high${packed.slot} = vec2u(${read(highAt(packed, 0))}, ${read(highAt(packed, 1))});`
        : `    let scale${packed.slot} = bitcast<f32>(${read(at(packed, "0u"))});`,
      `    let codes${packed.slot} = ${read(codesAt(packed))};`,
    ]),
    `    for (var k = 0u; k < ${EACH}u; k++) {`,
    "      let i = first + k;",
    "      if (i >= end) { break; }",
    ...indent(element, 6),
    "    }",
    ...coded.map(({ slot }) => `    atomicMax(&largest${slot}, most${slot});`),
    "  }",
    "  workgroupBarrier();",
    "  if (first < end) {",
    ...written.flatMap((packed) => {
      const { slot, format } = packed;
      const word = `word${slot}`;
      const each = (...lines: string[]) => `    for (var k = 0u; k < ${EACH}u; k++) { ${lines.join(" ")} }`;
      const codes = [`    var ${word} = 0u;`];
      if (format === "bf16x") {
        codes.push(
          `    var upper${slot} = vec2u(0u, 0u);`,
          each(
            `let w = upper_bf16x(fresh${slot}[k]);`,
            `upper${slot}[k >> 1u] |= (((w + 128u) >> 8u) & 0xffffu) << (16u * (k & 1u));`,
            `${word} |= (w & 255u) << (8u * k);`,
          ),
          ...[0, 1].map((k) => `    ${write(highAt(packed, k), `upper${slot}[${k}]`)}`),
        );
      } else {
        codes.push(
          `    let fitted${slot} = scale_${format}(atomicLoad(&largest${slot}));`,
          `    if (lane == 0u) { ${write(at(packed, "0u"), `bitcast<u32>(fitted${slot})`)} }`,
          each(`${word} |= byte_${format}(fresh${slot}[k], fitted${slot}) << (8u * k);`),
        );
      }
      return [...codes, `    ${write(codesAt(packed), word)}`];
    }),
    "  }",
    "  workgroupBarrier();",
    "}",
  ].join("\n");
}
