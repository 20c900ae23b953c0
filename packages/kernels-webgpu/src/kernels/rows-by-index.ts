/** Gathering rows by index, and adding rows up by index. */
import type { Launch, Spec } from "@opt/core/backend";
import { NON_FINITE } from "../emit/wgsl";
import type { Execution, KernelSource } from "../kernel";
import { type SharedDType, sharedDType } from "../shader/group";
import { LANES, type Shader } from "../shader/shader";

/** i32 has no NaN for what is out of range. */
const NONE: Readonly<Record<SharedDType, string>> = { f32: "bitcast<f32>(nanBits)", i32: "0i" };

const gatherShader = (type: SharedDType): Shader => ({
  name: "gather",
  slices: { source: type, indices: "i32", output: type },
  params: { rows: "i32", width: "u32", size: "u32" },
  declarations: type === "f32" ? NON_FINITE : "",
  body: () =>
    [
      `let i = group * ${LANES}u + lane;`,
      "if (i >= params.size) { return; }",
      "let index = indices(i / params.width);",
      `if (index < 0 || index >= params.rows) { put_output(i, ${NONE[type]}); }`,
      "else { put_output(i, source(u32(index) * params.width + i % params.width)); }",
    ].join("\n"),
});

export const gather: KernelSource<"gather", Shader> = {
  prepare: ({ dtype }: Spec<"gather">) => gatherShader(sharedDType(dtype)),
  launch({ table, indices, output, rows, width, count }: Launch<"gather">, shader: Shader, execution: Execution) {
    const size = width * count;
    execution.dispatch(shader, [table, indices, output], { rows, width, size }, Math.ceil(size / LANES));
  },
};

/** An invocation owns some rows of one column and goes through all indices: the order of the additions is that of the indices. */
const scatterAddShader = (type: SharedDType): Shader => ({
  name: "scatter add",
  slices: { source: type, indices: "i32", output: type },
  params: { rows: "i32", width: "u32", count: "u32", shares: "u32" },
  body: () =>
    [
      `let item = group * ${LANES}u + lane;`,
      "if (item >= params.width * params.shares) { return; }",
      "let column = item % params.width;",
      "let share = item / params.width;",
      `for (var row = share; row < u32(params.rows); row += params.shares) { put_output(row * params.width + column, ${type}(0)); }`,
      "for (var i = 0u; i < params.count; i++) {",
      "  let index = indices(i);",
      "  if (index < 0 || index >= params.rows || u32(index) % params.shares != share) { continue; }",
      "  let at = u32(index) * params.width + column;",
      "  put_output(at, output(at) + source(i * params.width + column));",
      "}",
    ].join("\n"),
});

/** So many invocations keep a device busy; more would only read the indices more often. */
const ENOUGH_INVOCATIONS = 4096;

export const scatterAdd: KernelSource<"scatterAdd", Shader> = {
  prepare: ({ dtype }: Spec<"scatterAdd">) => scatterAddShader(sharedDType(dtype)),
  launch({ source, indices, output, rows, width, count }: Launch<"scatterAdd">, shader: Shader, execution: Execution) {
    if (rows * width === 0) return;
    const shares = Math.max(1, Math.min(rows, 64, Math.floor(ENOUGH_INVOCATIONS / width)));
    const groups = Math.ceil((width * shares) / LANES);
    execution.dispatch(shader, [source, indices, output], { rows, width, count, shares }, groups);
  },
};
