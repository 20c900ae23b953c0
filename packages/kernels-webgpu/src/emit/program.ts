/** Programs as statements of WGSL, with the declarations that they need. */
import { type Access, type Program, writeStatements } from "@opt/core/backend";
import { libraryOf } from "./functions";
import { NON_FINITE, wgsl, wgslIntegers, wgslQuads } from "./wgsl";

export interface ProgramText {
  readonly uniform: readonly string[];
  readonly element: readonly string[];
  readonly declarations: string;
}

const DIALECTS = { f32: wgsl, vec4f: wgslQuads, i32: wgslIntegers } as const;

export function writeProgram(
  program: Program,
  access: Omit<Access, "scalar"> & Partial<Pick<Access, "scalar">>,
  type: keyof typeof DIALECTS = "f32",
): ProgramText {
  const scalar = (_slot: number, name: string) => `params.${name}`;
  const { uniform, element } = writeStatements(program, DIALECTS[type], "f32", { scalar, ...access });
  return { uniform, element, declarations: declarationsOf([...uniform, ...element]) };
}

/** What statements need to be declared, once. */
export function declarationsOf(lines: readonly string[]): string {
  const library = libraryOf(lines.join("\n"));
  const usesBits = [...lines, ...library].some((text) => text.includes("Bits)"));
  return [...(usesBits ? [NON_FINITE] : []), ...library].join("\n");
}
