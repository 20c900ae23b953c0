/** The words of a launch that lie in memory: more than a call has arguments. */
import { type FunctionBuilder, i32, type Local, type Operand } from "../assembler";

/** The words from `table` on, by their names. */
export function readWords<const Name extends string>(
  f: FunctionBuilder,
  table: Operand<"i32">,
  names: readonly Name[],
): Readonly<Record<Name, Local<"i32">>> {
  const words = names.map((name, w) => [name, f.local("i32", i32.load(table, 4 * w))]);
  return Object.fromEntries(words) as Record<Name, Local<"i32">>;
}
