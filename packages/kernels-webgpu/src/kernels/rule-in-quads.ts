/** Updates of float32 tensors that begin at multiples of four words: an invocation loads and stores four neighbours at once. */
import { indent, type Program, type Slice, type StoredFormats, withMirror } from "@opt/core/backend";
import { renamed } from "../emit/names";
import { declarationsOf, writeProgram } from "../emit/program";
import type { HeapMemory } from "../memory/heaps";
import { LANES, type Shader, wordOfWide } from "../shader/shader";
import { findTensor, LIST_PARAMS } from "./tensor-list";

const QUAD_BYTES = 16;

/** No word of a quad is written by two invocations: whatever else begins within one is not aligned. */
export function inQuads(slices: readonly Slice[], stored: StoredFormats | undefined): boolean {
  const isPlain = slices.every((_, slot) => (stored?.[slot] ?? "f32") === "f32");
  return (
    isPlain && slices.every(({ memory, byteOffset }) => ((memory as HeapMemory).start + byteOffset) % QUAD_BYTES === 0)
  );
}

export function quadRuleShader(
  name: string,
  traced: Program,
  stored: StoredFormats | undefined,
  onDevice: readonly boolean[],
  block: number,
): Shader {
  const program = renamed(withMirror(traced, stored));
  const number = (slot: number, scalar: string) => (onDevice[slot] ? `${scalar}(0u)` : `params.${scalar}`);
  const given = program.scalars.filter((_, slot) => !onDevice[slot]);
  const read = program.scalars.filter((_, slot) => onDevice[slot]);
  const quads = (buffers: Readonly<Record<string, string>>) => {
    const at = (slot: number, buffer: string) => `${buffers[buffer]}[quad${slot} + q]`;
    return writeProgram(
      program,
      {
        load: (slot, buffer) => `bitcast<vec4f>(${at(slot, buffer)})`,
        store: (slot, buffer, value) => `${at(slot, buffer)} = bitcast<vec4u>(${value});`,
        scalar: (slot, scalar) => `vec4f(${number(slot, scalar)})`,
      },
      "vec4f",
    );
  };
  const single = (buffers: Readonly<Record<string, string>>) => {
    const at = (slot: number, buffer: string) => wordOfWide(buffers[buffer]!, `at${slot} + i`);
    return writeProgram(program, {
      load: (slot, buffer) => `bitcast<f32>(${at(slot, buffer)})`,
      store: (slot, buffer, value) => `${at(slot, buffer)} = bitcast<u32>(${value});`,
      scalar: number,
    });
  };
  return {
    name: `rule ${name} in quads`,
    slices: {
      ...Object.fromEntries(program.buffers.map((buffer) => [buffer, "words"] as const)),
      table: "u32",
      ...Object.fromEntries(read.map((scalar) => [scalar, "f32"] as const)),
    },
    params: { ...LIST_PARAMS, ...Object.fromEntries(given.map((scalar) => [scalar, "f32"] as const)) },
    wide: true,
    declarations: declarationsOf([quads({}), single({})].flatMap(({ uniform, element }) => [...uniform, ...element])),
    body(buffers) {
      const [four, one] = [quads(buffers), single(buffers)];
      return [
        findTensor(program.buffers.length, block),
        ...program.buffers.map((_, slot) => `let quad${slot} = at${slot} >> 2u;`),
        "{",
        ...indent(four.uniform),
        `  for (var q = (start >> 2u) + lane; q < (end >> 2u); q += ${LANES}u) {`,
        ...indent(four.element, 4),
        "  }",
        "}",
        "let i = (end & ~3u) + lane;",
        "if (i < end) {",
        ...indent([...one.uniform, ...one.element]),
        "}",
      ].join("\n");
    },
  };
}
