/**
 * Reductions over the middle axis of [outer, length, inner], in several passes where lines are long: parts of all lines first,
 * then parts of those, until a line has one. Lines along the last axis have a workgroup each, others an invocation.
 */
import type { Launch, Slice, Spec, Specs } from "@opt/core/backend";
import type { Execution, KernelSource, Target } from "../kernel";
import {
  IS_NAN,
  LARGER,
  largestOfLanes,
  type SharedDType,
  sharedDType,
  sharedValues,
  sumInTurns,
  sumOfLanes,
} from "../shader/group";
import { LANES, type Shader } from "../shader/shader";

type ReduceOp = Specs["reduce"]["op"];

/** Elements that an invocation reduces before a second pass pays. */
const CHUNK = 64;
/** Lines with closer neighbours are read one by each invocation: memory is then read in order. */
const COLUMNS = 16;
const SHORT = 32;

const PARAMS = { lines: "u32", length: "u32", inner: "u32", chunk: "u32", parts: "u32", divisor: "f32" } as const;

/** `line`, `part` and its elements: `at(l)` is where element l of the line lies. */
function walk(lanes: number): string {
  return [
    lanes === 1 ? `let item = group * ${LANES}u + lane;` : "let item = group;",
    "if (item >= params.lines * params.parts) { return; }",
    "let line = item % params.lines;",
    "let begin = item / params.lines * params.chunk;",
    "let until = min(begin + params.chunk, params.length);",
    "let base = line / params.inner * params.length * params.inner + line % params.inner;",
  ].join("\n");
}

const START = (lanes: number) => (lanes === 1 ? "begin" : "begin + lane");

function numberShader(op: "sum" | "max", type: SharedDType, lanes: number, subgroups: boolean): Shader {
  const sum = op === "sum";
  const usesSubgroups = subgroups && sum && lanes > 1;
  const value = "input(base + l * params.inner)";
  return {
    name: `reduce ${op}`,
    slices: { input: type, output: type },
    params: PARAMS,
    subgroups: usesSubgroups,
    declarations: [
      sharedValues(lanes, type),
      sum ? sumOfLanes(lanes, usesSubgroups, type) : `${IS_NAN}\n${LARGER[type]}${largestOfLanes(lanes, type)}`,
    ].join("\n"),
    body: () =>
      [
        walk(lanes),
        sum ? `var own = ${type}(0);` : "var own = input(base + begin * params.inner);",
        ...(sum
          ? sumInTurns("own", { index: "l", start: START(lanes), end: "until", step: `${lanes}u`, type }, [], value)
          : [`for (var l = ${START(lanes)}; l < until; l += ${lanes}u) { own = larger(own, ${value}); }`]),
        sum
          ? `put_output(item, sum_of_lanes(own, lane)${type === "f32" ? " / params.divisor" : ""});`
          : "put_output(item, largest_of_lanes(own, lane));",
      ].join("\n"),
  };
}

/** Position of the largest, by one invocation a part. `second` reads the positions that the first pass found. */
function positionShader(type: SharedDType, second: boolean): Shader {
  const isNan = type === "f32" ? "is_nan" : "never_nan";
  return {
    name: second ? "reduce argmax, second pass" : "reduce argmax",
    slices: second ? { values: type, positions: "i32", output: "i32" } : { values: type, largest: type, output: "i32" },
    params: { ...PARAMS, keep: "u32" },
    declarations: type === "f32" ? IS_NAN : "fn never_nan(x: i32) -> bool { return false; }",
    body: () =>
      [
        walk(1),
        "var best = begin;",
        "var best_value = values(base + begin * params.inner);",
        `for (var l = begin + 1u; l < until && !${isNan}(best_value); l++) {`,
        "  let value = values(base + l * params.inner);",
        `  if (value > best_value || ${isNan}(value)) {`,
        "    best = l;",
        "    best_value = value;",
        "  }",
        "}",
        second ? "put_output(item, positions(base + best * params.inner));" : "put_output(item, i32(best));",
        ...(second ? [] : ["if (params.keep != 0u) { put_largest(item, best_value); }"]),
      ].join("\n"),
  };
}

interface PreparedReduce {
  readonly op: ReduceOp;
  readonly columns: Shader;
  readonly rows: Shader;
  readonly second: Shader;
}

export const reduce: KernelSource<"reduce", PreparedReduce> = {
  prepare({ op, dtype }: Spec<"reduce">, { subgroups }: Target) {
    const type = sharedDType(dtype);
    if (op === "argmax") {
      const first = positionShader(type, false);
      return { op, columns: first, rows: first, second: positionShader(type, true) };
    }
    const kind = op === "max" ? "max" : "sum";
    const columns = numberShader(kind, type, 1, false);
    return { op, columns, rows: numberShader(kind, type, LANES, subgroups), second: columns };
  },

  launch({ input, output, outer, length, inner }: Launch<"reduce">, prepared: PreparedReduce, execution: Execution) {
    const lines = outer * inner;
    if (lines === 0) return;
    const { op, second } = prepared;
    const wide = op !== "argmax" && inner < COLUMNS && length > SHORT;
    const chunk = Math.max(1, wide ? CHUNK * LANES : CHUNK * Math.ceil(lines / 4096));
    const parts = Math.max(1, Math.ceil(length / chunk));
    const shader = wide ? prepared.rows : prepared.columns;
    const divisor = op === "mean" ? length : 1;
    const groups = wide ? lines * parts : Math.ceil((lines * parts) / LANES);
    const shape = { lines, length, inner, chunk, parts };
    const last = { lines, length: parts, inner: lines, chunk: parts, parts: 1, divisor };
    const lastGroups = Math.ceil(lines / LANES);
    if (op === "argmax") {
      // One part keeps no values: any slice will do in their place.
      const largest: Slice = parts === 1 ? output : execution.scratch(lines * parts);
      const positions = parts === 1 ? output : execution.scratch(lines * parts);
      const keep = parts === 1 ? 0 : 1;
      execution.dispatch(shader, [input, largest, positions], { ...shape, divisor, keep }, groups);
      if (parts > 1) execution.dispatch(second, [largest, positions, output], { ...last, keep: 0 }, lastGroups);
      return;
    }
    if (parts === 1) {
      execution.dispatch(shader, [input, output], { ...shape, divisor }, groups);
      return;
    }
    let partial = execution.scratch(lines * parts);
    execution.dispatch(shader, [input, partial], { ...shape, divisor: 1 }, groups);
    // Parts of parts, while a line has many.
    for (let left = parts; left > 1; left = Math.ceil(left / CHUNK)) {
      const next = Math.ceil(left / CHUNK);
      const target = next === 1 ? output : execution.scratch(lines * next);
      const pass = { lines, length: left, inner: lines, chunk: CHUNK, parts: next, divisor: next === 1 ? divisor : 1 };
      execution.dispatch(second, [partial, target], pass, Math.ceil((lines * next) / LANES));
      partial = target;
    }
  },
};
