/** Kernels that treat each row of a matrix by itself: short rows have an invocation each, long ones a workgroup. */
import { IS_NAN, LARGER, largestOfLanes, sharedValues, sumOfLanes } from "../shader/group";
import { LANES, type Parameter, type Shader, type View } from "../shader/shader";

/** Longer rows are worth a workgroup. */
const SHORT = 64;

interface RowKernel {
  readonly name: string;
  readonly slices: Readonly<Record<string, View>>;
  readonly params: Readonly<Record<string, Parameter>>;
  /** Which functions of the lanes it calls. */
  readonly uses: { readonly sum?: boolean; readonly largest?: boolean };
  readonly declarations?: string;
  /**
   * Statements for one row: `row`, its first element `first`, and `each(line)`, a loop over its elements `i`.
   * Every invocation of a row runs them in step.
   */
  body(each: (...lines: string[]) => string): string;
}

/** A kernel in both forms. */
export interface RowShaders {
  readonly short: Shader;
  readonly long: Shader;
}

export function rowShaders(kernel: RowKernel, subgroups: boolean): RowShaders {
  return { short: rowShader(kernel, 1, false), long: rowShader(kernel, LANES, subgroups) };
}

/** The form for rows of a length, and the workgroups it takes. */
export function rowsOf({ short, long }: RowShaders, rows: number, length: number): [Shader, number] {
  return length <= SHORT ? [short, Math.ceil(rows / LANES)] : [long, rows];
}

function rowShader(kernel: RowKernel, lanes: number, subgroups: boolean): Shader {
  const { name, slices, params, uses, declarations = "" } = kernel;
  const each = (...lines: string[]) =>
    [
      lanes === 1
        ? "for (var i = first; i < first + params.length; i++) {"
        : `for (var i = first + lane; i < first + params.length; i += ${lanes}u) {`,
      ...lines.map((line) => `  ${line}`),
      "}",
    ].join("\n");
  const usesSubgroups = subgroups && lanes > 1 && uses.sum === true;
  return {
    name,
    slices,
    params: { rows: "u32", length: "u32", ...params },
    subgroups: usesSubgroups,
    declarations: [
      uses.largest || uses.sum ? sharedValues(lanes) : "",
      uses.largest ? `${IS_NAN}\n${LARGER.f32}${largestOfLanes(lanes)}` : "",
      uses.sum ? sumOfLanes(lanes, usesSubgroups) : "",
      declarations,
    ]
      .filter((text) => text !== "")
      .join("\n"),
    body: () =>
      [
        lanes === 1 ? `let row = group * ${LANES}u + lane;` : "let row = group;",
        "if (row >= params.rows) { return; }",
        "let first = row * params.length;",
        kernel.body(each).trim(),
      ].join("\n"),
  };
}

/** Statements that leave `largest` and `log_sum` of a row: log(sum(exp(x - largest))). */
export function logSumExp(value: string, each: (...lines: string[]) => string): string {
  return [
    "var own_largest = -3.4028234663852886e38f;",
    each(`own_largest = larger(own_largest, ${value});`),
    "let largest = largest_of_lanes(own_largest, lane);",
    "var own_sum = 0f;",
    each(`own_sum += exp(${value} - largest);`),
    "let log_sum = log(sum_of_lanes(own_sum, lane));",
  ].join("\n");
}
