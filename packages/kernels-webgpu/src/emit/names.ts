/** Names of rules and maps in WGSL, whose many reserved words and whose shaders' own names they must not meet. */
import type { Program } from "@opt/core/backend";

/** No keyword, builtin or name of ours begins with it. */
const PREFIX = "u_";

/** The program with names that WGSL accepts: `target` becomes `u_target`. */
export function renamed(program: Program): Program {
  const rename = (name: string) => PREFIX + name;
  return { ...program, buffers: program.buffers.map(rename), scalars: program.scalars.map(rename) };
}
