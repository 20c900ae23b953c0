/** Elementwise maps with broadcasting. */
import { indent, type Launch, type MapDType, type Program, type Slice, type Spec } from "@opt/core/backend";
import { renamed } from "../emit/names";
import { writeProgram } from "../emit/program";
import type { Execution, KernelSource, Target } from "../kernel";
import { isOversized } from "../memory/heaps";
import { sharedDType } from "../shader/group";
import { LANES, type Parameter, type Shader } from "../shader/shader";
import { pieceOf } from "./tensor-list";

/** Elements of a workgroup, on GPUs. */
const BLOCK = 256;

export function mapShader(traced: Program, rank: number, dtype: MapDType = "f32", block: number = BLOCK): Shader {
  const type = sharedDType(dtype);
  const program = renamed(traced);
  const slots = program.buffers.map((_, slot) => slot);
  const { uniform, element, declarations } = writeProgram(
    program,
    {
      load: (slot) => `in${slot}(offset${slot})`,
      store: (_slot, _name, value) => `put_result(i, ${value});`,
    },
    type,
  );
  const axes = Array.from({ length: rank }, (_, axis) => axis);
  const params: [string, Parameter][] = [
    ["size", "u32"],
    ...axes.slice(1).map((axis): [string, Parameter] => [`shape${axis}`, "u32"]),
    ...slots.flatMap((slot) => axes.map((axis): [string, Parameter] => [`stride${slot}_${axis}`, "u32"])),
    ...program.scalars.map((scalar): [string, Parameter] => [scalar, type]),
  ];
  const position = axes
    .slice(1)
    .reverse()
    .flatMap((axis) => [`let axis${axis} = rest % params.shape${axis};`, `rest /= params.shape${axis};`]);
  const offset = (slot: number) =>
    axes.map((axis) => `${axis === 0 ? (rank === 1 ? "i" : "rest") : `axis${axis}`} * params.stride${slot}_${axis}`);
  return {
    name: `map ${
      program.nodes
        .map(({ op }) => op)
        .filter((op) => op !== "buffer" && op !== "scalar")
        .join(" ") || "copy"
    }`,
    slices: { ...Object.fromEntries(slots.map((slot) => [`in${slot}`, type])), result: type },
    params: Object.fromEntries(params),
    declarations,
    body: () =>
      [
        ...uniform,
        `let start = group * ${block}u;`,
        `let end = min(start + ${block}u, params.size);`,
        `for (var i = start + lane; i < end; i += ${LANES}u) {`,
        ...(rank > 1 ? ["  var rest = i;"] : []),
        ...indent(position),
        ...slots.map((slot) => `  let offset${slot} = ${offset(slot).join(" + ")};`),
        ...indent(element),
        "}",
      ].join("\n"),
  };
}

interface PreparedMap {
  readonly program: Program;
  readonly dtype: MapDType;
  readonly scalars: readonly string[];
  readonly block: number;
  readonly byRank: Map<number, Shader>;
}

export const map: KernelSource<"map", PreparedMap> = {
  prepare: ({ program, dtype }: Spec<"map">, { grain }: Target) => ({
    program,
    dtype,
    scalars: renamed(program).scalars,
    block: BLOCK * grain,
    byRank: new Map(),
  }),

  launch({ inputs, output, scalars, shape, strides }: Launch<"map">, prepared: PreparedMap, execution: Execution) {
    const size = shape.reduce((product, extent) => product * extent, 1);
    if (size === 0) return;
    let shader = prepared.byRank.get(shape.length);
    if (shader === undefined) {
      shader = mapShader(prepared.program, shape.length, prepared.dtype, prepared.block);
      prepared.byRank.set(shape.length, shader);
    }
    const params: Record<string, number> = { size };
    shape.forEach((extent, axis) => {
      params[`shape${axis}`] = extent;
    });
    strides.forEach((list, slot) => {
      list.forEach((stride, axis) => {
        params[`stride${slot}_${axis}`] = stride;
      });
    });
    prepared.scalars.forEach((name, i) => {
      params[name] = scalars[i]!;
    });
    const step = shape.length === 1 ? stepFor([...inputs, output], execution.largestBinding, prepared.block) : size;
    for (let from = 0; from < size; from += step) {
      const length = Math.min(step, size - from);
      const shown = inputs.map((input, slot) => {
        const stride = strides[slot]!.at(-1)!;
        return step === size ? input : pieceOf(input, from * stride, (length - 1) * stride + 1);
      });
      const target = step === size ? output : pieceOf(output, from, length);
      execution.dispatch(shader, [...shown, target], { ...params, size: length }, Math.ceil(length / prepared.block));
    }
  },
};

/** Elements that a dispatch on these dense slices may take: all, or what a binding shows of an oversized memory. */
function stepFor(slices: readonly Slice[], largestBinding: number, block: number): number {
  if (!slices.some(isOversized)) return slices.at(-1)!.length;
  return Math.max(1, Math.floor(largestBinding / 4 / block) - 1) * block;
}
