/** Programs as statements of WGSL, with the declarations that they need. */
import { type Access, type Program, writeStatements } from "@opt/core/backend";
import { libraryOf } from "./functions";
import { NON_FINITE, wgsl, wgslIntegers } from "./wgsl";

export interface ProgramText {
  readonly uniform: readonly string[];
  readonly element: readonly string[];
  readonly declarations: string;
}

export function writeProgram(
  program: Program,
  access: Omit<Access, "scalar"> & Partial<Pick<Access, "scalar">>,
  type: "f32" | "i32" = "f32",
): ProgramText {
  const scalar = (_slot: number, name: string) => `params.${name}`;
  const { uniform, element } = writeStatements(program, type === "i32" ? wgslIntegers : wgsl, "f32", {
    scalar,
    ...access,
  });
  const library = libraryOf([...uniform, ...element].join("\n"));
  const text = [...uniform, ...element, ...library].join("\n");
  return { uniform, element, declarations: [...(text.includes("Bits)") ? [NON_FINITE] : []), ...library].join("\n") };
}
