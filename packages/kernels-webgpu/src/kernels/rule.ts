/** Optimizer updates: one dispatch for a whole group of parameters. */
import { type Launch, type Program, type Slice, type Spec, type StoredFormats, withMirror } from "@opt/core/backend";
import { renamed } from "../emit/names";
import { writeProgram } from "../emit/program";
import type { Execution, KernelSource } from "../kernel";
import type { Shader } from "../shader/shader";
import { conversionsOf, readStored } from "./convert";
import { dispatchPart, findTensor, LIST_PARAMS, overBlock, partsOf } from "./tensor-list";

/** Elements of a workgroup. */
const BLOCK = 1024;

/** Elements of 16 bits share their words with others, which other invocations write: they are set by atomic operations on their own bits. */
export function ruleShader(
  name: string,
  traced: Program,
  stored?: StoredFormats,
  onDevice: readonly boolean[] = [],
): Shader {
  const program = renamed(withMirror(traced, stored));
  const formatOf = (slot: number) => stored?.[slot] ?? "f32";
  const atomic = program.outputs.some(({ slot }) => formatOf(slot) !== "f32");
  const load = (slot: number, buffer: string) => readStored(buffer, `at${slot} + i`, formatOf(slot), atomic);
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
      scalar: (slot, scalar) => (onDevice[slot] ? `${scalar}(0u)` : `params.${scalar}`),
    });
  const given = program.scalars.filter((_, slot) => !onDevice[slot]);
  const read = program.scalars.filter((_, slot) => onDevice[slot]);
  const { element, declarations } = write({});
  const views = program.buffers.map((buffer, slot) => [buffer, formatOf(slot) === "f32" ? "words" : "halves"] as const);
  return {
    name: `rule ${name}`,
    slices: {
      ...Object.fromEntries(views),
      table: "u32",
      ...Object.fromEntries(read.map((scalar) => [scalar, "f32"])),
    },
    params: { ...LIST_PARAMS, ...Object.fromEntries(given.map((scalar) => [scalar, "f32"])) },
    atomic,
    declarations: [declarations, ...conversionsOf(element.join("\n"))].join("\n"),
    body(buffers) {
      const { uniform, element } = write(buffers);
      return [findTensor(program.buffers.length, BLOCK), ...uniform, overBlock(element)].join("\n");
    },
  };
}

interface Prepared {
  /** By which scalars the device has. */
  readonly shaders: Map<string, Shader>;
  readonly scalars: readonly string[];
}

export const rule: KernelSource<"rule", Prepared> = {
  prepare: ({ rule: { program } }: Spec<"rule">) => ({ shaders: new Map(), scalars: renamed(program).scalars }),

  launch({ kernel, tensors, scalars }: Launch<"rule">, prepared: Prepared, execution: Execution) {
    const { rule, stored } = kernel.spec;
    const onDevice = scalars.map((scalar) => typeof scalar !== "number");
    const key = onDevice.join();
    let shader = prepared.shaders.get(key);
    if (shader === undefined) {
      shader = ruleShader(rule.name, rule.program, stored, onDevice);
      prepared.shaders.set(key, shader);
    }
    const params: Record<string, number> = {};
    const rest: Slice[] = [];
    scalars.forEach((scalar, s) => {
      if (typeof scalar === "number") params[prepared.scalars[s]!] = scalar;
      else rest.push(scalar);
    });
    const units = (tensors[0] ?? []).map((_, slot) => ((stored?.[slot] ?? "f32") === "f32" ? 4 : 2));
    const listed = tensors.map((slices) => ({ slices, extra: 0 }));
    for (const part of partsOf(listed, BLOCK, execution.largestBinding, units)) {
      dispatchPart(execution, prepared, shader, part, BLOCK, params, rest);
    }
  },
};
