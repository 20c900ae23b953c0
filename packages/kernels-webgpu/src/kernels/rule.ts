/** Optimizer updates: one dispatch for a whole group of parameters. */
import type { Launch, Program, Spec } from "@opt/core/backend";
import { renamed } from "../emit/names";
import { writeProgram } from "../emit/program";
import type { Execution, KernelSource } from "../kernel";
import type { Shader } from "../shader/shader";
import { dispatchPart, findTensor, LIST_PARAMS, overBlock, partsOf } from "./tensor-list";

/** Elements of a workgroup. */
const BLOCK = 1024;

export function ruleShader(name: string, traced: Program): Shader {
  const program = renamed(traced);
  const word = (buffers: Readonly<Record<string, string>>, slot: number, buffer: string) =>
    `${buffers[buffer]}[at${slot} + i]`;
  const write = (buffers: Readonly<Record<string, string>>) =>
    writeProgram(program, {
      load: (slot, buffer) => `bitcast<f32>(${word(buffers, slot, buffer)})`,
      store: (slot, buffer, value) => `${word(buffers, slot, buffer)} = bitcast<u32>(${value});`,
    });
  return {
    name: `rule ${name}`,
    slices: { ...Object.fromEntries(program.buffers.map((buffer) => [buffer, "words"])), table: "u32" },
    params: { ...LIST_PARAMS, ...Object.fromEntries(program.scalars.map((scalar) => [scalar, "f32"])) },
    declarations: write({}).declarations,
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
  prepare: ({ rule: { name, program } }: Spec<"rule">) => ({
    shader: ruleShader(name, program),
    scalars: renamed(program).scalars,
  }),

  launch({ tensors, scalars }: Launch<"rule">, prepared: Prepared, execution: Execution) {
    const params = Object.fromEntries(prepared.scalars.map((name, i) => [name, scalars[i]!]));
    const listed = tensors.map((slices) => ({ slices, extra: 0 }));
    for (const part of partsOf(listed, BLOCK, execution.largestBinding)) {
      dispatchPart(execution, prepared, prepared.shader, part, BLOCK, params);
    }
  },
};
