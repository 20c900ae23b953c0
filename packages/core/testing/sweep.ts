/** The sweep of ops: rare arguments of each, as digests of PyTorch's answers in `goldens/sweep.json`. */
import type { Sweep, TorchCall } from "@opt/testkit";
import { drawnCall, type Row } from "./draw";
import { indexCalls } from "./index-calls";
import { indexingCalls } from "./indexing-calls";
import { OP_ROWS } from "./op-calls";
import { COMPOSITIONS } from "./rare/composed";
import { ELEMENTWISE } from "./rare/elementwise";
import { LINEAR_ALGEBRA } from "./rare/linear-algebra";
import { NUMBERS } from "./rare/numbers";
import { PRODUCTS } from "./rare/products";
import { REDUCTIONS } from "./rare/reductions";
import { SHAPES } from "./rare/shapes";
import { WINDOWS } from "./rare/windows";

export const RARE: Readonly<Record<string, Row>> = {
  ...REDUCTIONS,
  ...LINEAR_ALGEBRA,
  ...PRODUCTS,
  ...WINDOWS,
  ...SHAPES,
  ...ELEMENTWISE,
  ...COMPOSITIONS,
};

/** Calls of each row. What has more arguments has more of them. */
const COUNTS = { usual: 4, rare: 12, numbers: 14, windows: 24, linearAlgebra: 20 } as const;

function countOf(name: string): number {
  if (name in WINDOWS) return COUNTS.windows;
  return name in LINEAR_ALGEBRA ? COUNTS.linearAlgebra : COUNTS.rare;
}

/** The same calls each time. */
export function opSweep(): Sweep {
  const drawn = (name: string, row: Row, count: number, seed: number, dtypes?: readonly ("f64" | "f32")[]) =>
    Array.from({ length: count }, (_, i) => drawnCall(i, name, row, seed + 1_000_003 * i, dtypes));
  const usual = Object.entries(OP_ROWS).map(([name, row], i) => [name, drawn(name, row, COUNTS.usual, 7 + i)]);
  const rare = Object.entries(RARE).map(([name, row], i) => [
    `${name}, rare`,
    drawn(name, row, countOf(name), 5003 + i, ["f64", "f64", "f32"]),
  ]);
  const numbers = Object.entries(NUMBERS).map(([name, row], i) => [
    `${name}, of numbers`,
    drawn(name, row, COUNTS.numbers, 9001 + i),
  ]);
  const chosen = byFunction([...indexCalls(91, 12), ...indexingCalls(191, 16)]);
  return Object.fromEntries([...usual, ...rare, ...numbers, ...chosen]);
}

/** By the first word of their names. */
function byFunction(calls: readonly TorchCall[]): [string, TorchCall[]][] {
  const groups = new Map<string, TorchCall[]>();
  for (const call of calls) {
    const name = `${/^\d+: (\w+)/.exec(call.name)![1]} by indices`;
    groups.set(name, [...(groups.get(name) ?? []), call]);
  }
  return [...groups];
}
