/** Optimizer updates: one dispatch for a whole group of parameters. */
import { type Launch, type Program, type Spec, type StoredFormats, withMirror } from "@opt/core/backend";
import { renamed } from "../emit/names";
import { writeProgram } from "../emit/program";
import type { Execution, KernelSource } from "../kernel";
import type { Shader } from "../shader/shader";
import { conversionsOf } from "./convert";
import { dispatchPart, findTensor, LIST_PARAMS, overBlock, partsOf } from "./tensor-list";

/** Elements of a workgroup. */
const BLOCK = 1024;

/** Elements of 16 bits share their words with others, which other invocations write: they are set by atomic operations on their own bits. */
export function ruleShader(name: string, traced: Program, stored?: StoredFormats): Shader {
  const program = renamed(withMirror(traced, stored));
  const formatOf = (slot: number) => stored?.[slot] ?? "f32";
  const atomic = program.outputs.some(({ slot }) => formatOf(slot) !== "f32");
  const read = (word: string) => (atomic ? `atomicLoad(&${word})` : word);
  const load = (slot: number, buffer: string) => {
    const format = formatOf(slot);
    if (format === "f32") return `bitcast<f32>(${read(`${buffer}[at${slot} + i]`)})`;
    const bits = `((${read(`${buffer}[(at${slot} + i) >> 1u]`)} >> (((at${slot} + i) & 1u) * 16u)) & 0xffffu)`;
    return format === "bf16" ? `bitcast<f32>(${bits} << 16u)` : `from_half(${bits})`;
  };
  const store = (slot: number, buffer: string, value: string) => {
    const format = formatOf(slot);
    const word = `${buffer}[at${slot} + i]`;
    if (format === "f32")
      return atomic ? `atomicStore(&${word}, bitcast<u32>(${value}));` : `${word} = bitcast<u32>(${value});`;
    const half = `${buffer}[(at${slot} + i) >> 1u]`;
    const shift = `(((at${slot} + i) & 1u) * 16u)`;
    const bits = `${format === "bf16" ? "to_bfloat" : "to_half"}(${value})`;
    return `atomicAnd(&${half}, ~(0xffffu << ${shift}));\natomicOr(&${half}, ${bits} << ${shift});`;
  };
  const write = (buffers: Readonly<Record<string, string>>) =>
    writeProgram(program, {
      load: (slot, buffer) => load(slot, buffers[buffer]!),
      store: (slot, buffer, value) => store(slot, buffers[buffer]!, value),
    });
  const { element, declarations } = write({});
  const views = program.buffers.map((buffer, slot) => [buffer, formatOf(slot) === "f32" ? "words" : "halves"] as const);
  return {
    name: `rule ${name}`,
    slices: { ...Object.fromEntries(views), table: "u32" },
    params: { ...LIST_PARAMS, ...Object.fromEntries(program.scalars.map((scalar) => [scalar, "f32"])) },
    atomic,
    declarations: [declarations, ...conversionsOf(element.join("\n"))].join("\n"),
    body(buffers) {
      const { uniform, element } = write(buffers);
      return [findTensor(program.buffers.length, BLOCK), ...uniform, overBlock(element)].join("\n");
    },
  };
}

interface Prepared {
  readonly shader: Shader;
  readonly scalars: readonly string[];
}

export const rule: KernelSource<"rule", Prepared> = {
  prepare: ({ rule: { name, program }, stored }: Spec<"rule">) => ({
    shader: ruleShader(name, program, stored),
    scalars: renamed(program).scalars,
  }),

  launch({ kernel, tensors, scalars }: Launch<"rule">, prepared: Prepared, execution: Execution) {
    const params = Object.fromEntries(prepared.scalars.map((name, i) => [name, scalars[i]!]));
    const units = (tensors[0] ?? []).map((_, slot) => ((kernel.spec.stored?.[slot] ?? "f32") === "f32" ? 4 : 2));
    const listed = tensors.map((slices) => ({ slices, extra: 0 }));
    for (const part of partsOf(listed, BLOCK, execution.largestBinding, units)) {
      dispatchPart(execution, prepared, prepared.shader, part, BLOCK, params);
    }
  },
};
