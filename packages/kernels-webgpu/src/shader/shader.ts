/** A compute shader before its text exists: the text depends on which of its slices share a buffer. */

/** How a slice is seen: typed, with functions to read and write it; or as words of its buffer, addressed by the body. */
export type View = "f32" | "i32" | "u32" | "words" | "halves" | "bytes";

export type Parameter = "u32" | "i32" | "f32";

export interface Shader {
  /** For labels and errors. */
  readonly name: string;
  /**
   * In the order in which a launch gives them. `x: "f32"` declares `x(i)` and `put_x(i, value)`; `x: "bytes"` declares the parameter
   * `x_at` (its first byte), and `x: "words"` or "halves" nothing: these are read through the buffer's name, which `body` is given.
   */
  readonly slices: Readonly<Record<string, View>>;
  /** Members of `params`. */
  readonly params: Readonly<Record<string, Parameter>>;
  /** Invocations of a workgroup: `lane` counts them. By default 64. */
  readonly lanes?: number;
  /** Buffers hold atomics: for writes of less than a word. */
  readonly atomic?: boolean;
  /** Buffers hold four words in each element, which the body reads at once where they are aligned. */
  readonly wide?: boolean;
  /** Uses subgroups; the entry point sets `subgroup` and `subgroups`. */
  readonly subgroups?: boolean;
  /** Functions and workgroup variables. */
  readonly declarations?: string;
  /** Statements of the entry point, which knows `group` (the workgroup) and `lane`. `buffers` are the names of the slices' buffers. */
  body(buffers: Readonly<Record<string, string>>): string;
}

export const LANES = 64;

/** A name of bits that are 0, as only the host knows: the entry point sets it where a shader uses it. */
export const ZERO_BITS = "zero_bits";

/** The text of a shader whose slice number k lies in buffer `pattern[k]`. */
export function writeShader(shader: Shader, pattern: readonly number[]): string {
  const { name, slices, lanes = LANES, atomic = false, wide = false, subgroups = false, declarations = "" } = shader;
  const entries = Object.entries(slices);
  const buffers = Object.fromEntries(entries.map(([slice], k) => [slice, `heap${pattern[k]}`]));
  const count = pattern.reduce((most, index) => Math.max(most, index + 1), 0);
  const word = atomic ? "atomic<u32>" : wide ? "vec4u" : "u32";
  const body = shader.body(buffers).trim();
  const usesZero = [declarations, body].some((text) => text.includes(ZERO_BITS));
  const members = memberNames(shader).map(([member, type]) => `  ${member}: ${type},`);
  return [
    `// ${name}`,
    ...(subgroups ? ["enable subgroups;", "requires subgroup_id;"] : []),
    ...(members.length > 0 ? ["struct Params {", ...members, "}"] : []),
    ...(members.length > 0 ? ["@group(0) @binding(0) var<uniform> params: Params;"] : []),
    ...Array.from(
      { length: count },
      (_, k) => `@group(0) @binding(${k + 1}) var<storage, read_write> heap${k}: array<${word}>;`,
    ),
    ...(usesZero ? [`var<private> ${ZERO_BITS}: u32;`] : []),
    ...(subgroups ? ["var<private> subgroup: u32;", "var<private> subgroups: u32;"] : []),
    "",
    ...entries.flatMap(([slice, view]) => accessors(slice, view, buffers[slice]!, { atomic, wide })),
    ...(declarations === "" ? [] : [declarations.trim()]),
    "",
    `@compute @workgroup_size(${lanes})`,
    "fn main(",
    "  @builtin(workgroup_id) workgroup: vec3u,",
    "  @builtin(num_workgroups) workgroups: vec3u,",
    "  @builtin(local_invocation_index) lane: u32,",
    ...(subgroups
      ? ["  @builtin(subgroup_id) subgroup_id: u32,", "  @builtin(num_subgroups) num_subgroups: u32,"]
      : []),
    ") {",
    "  let group = workgroup.x + workgroup.y * workgroups.x;",
    ...(usesZero ? [`  ${ZERO_BITS} = workgroup.z;`] : []), // grids have two dimensions
    ...(subgroups ? ["  subgroup = subgroup_id;", "  subgroups = num_subgroups;"] : []),
    ...body.split("\n").map((line) => (line === "" ? "" : `  ${line}`)),
    "}",
    "",
  ].join("\n");
}

/** False where the body knows by itself where the slice starts. */
export function passesStart(view: View): boolean {
  return view !== "words" && view !== "halves";
}

/** The members of `params` in order: where typed slices start (in elements, all of them words; `bytes` in bytes), then the shader's own. */
export function memberNames({ slices, params }: Shader): [string, Parameter][] {
  const starts = Object.entries(slices).filter(([, view]) => passesStart(view));
  return [...starts.map(([slice]): [string, Parameter] => [`${slice}_at`, "u32"]), ...Object.entries(params)];
}

/** The word at an index of a buffer whose elements hold four. */
export function wordOfWide(buffer: string, index: string): string {
  return `${buffer}[(${index}) >> 2u][(${index}) & 3u]`;
}

function accessors(
  slice: string,
  view: View,
  buffer: string,
  { atomic, wide }: { readonly atomic: boolean; readonly wide: boolean },
): string[] {
  if (view === "words" || view === "halves" || view === "bytes") return [];
  const index = `params.${slice}_at + i`;
  const word = wide ? wordOfWide(buffer, index) : `${buffer}[${index}]`;
  const read = atomic ? `atomicLoad(&${word})` : word;
  const lines = [`fn ${slice}(i: u32) -> ${view} { return ${view === "u32" ? read : `bitcast<${view}>(${read})`}; }`];
  if (!atomic) {
    const bits = view === "u32" ? "value" : "bitcast<u32>(value)";
    lines.push(`fn put_${slice}(i: u32, value: ${view}) { ${word} = ${bits}; }`);
  }
  return lines;
}

/** Bytes of one element of a view, as offsets count them. */
export function unitOf(view: View): number {
  return view === "bytes" ? 1 : view === "halves" ? 2 : 4;
}
