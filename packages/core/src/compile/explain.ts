/** What a compiled function consists of, for people. */
import { memoriesOf } from "../backend/launches";
import type { Spec } from "../backend/spec";
import type { Program } from "../rule/program";
import type { RowProgram } from "../rule/rows/row-program";
import type { Rule } from "../rule/rule";
import type { OptimizedTrace } from "./passes/memory-plan";

export interface Explanation {
  /** How many launches a run has. */
  readonly launches: number;
  /** How many launches of the function became part of others, or fell out. */
  readonly fused: number;
  /** Bytes that the launches read and write. */
  readonly bytes: number;
  /** Bytes of temporaries, all together. */
  readonly peakBytes: number;
  /** The same for the function as it was written. */
  readonly eager: { readonly launches: number; readonly peakBytes: number };
  /** What launch i computes. */
  text(i: number): string;
}

/** @param eager the function as it was written */
export function explain({ steps, arenaBytes }: OptimizedTrace, eager: Explanation["eager"]): Explanation {
  const launches = steps.flatMap((step) => (step.kind === "launch" ? [step.launch] : []));
  return {
    launches: launches.length,
    fused: eager.launches - launches.length,
    bytes: launches.reduce(
      (sum, launch) => sum + [...memoriesOf(launch)].reduce((bytes, memory) => bytes + memory.bytes, 0),
      0,
    ),
    peakBytes: arenaBytes,
    eager,
    text: (i) => (launches[i] === undefined ? "" : kernelText(launches[i].kernel.spec)),
  };
}

/** What a kernel computes. */
export function kernelText({ kind, ...parts }: Spec): string {
  const words = Object.entries(parts).map(([name, value]) => `${name} ${textOf(value)}`);
  return `${kind} ${words.join(", ")}`;
}

function textOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  if ("nodes" in value) return programText(value as Program | RowProgram);
  if ("program" in value)
    return `${(value as unknown as Rule).name}: ${programText((value as unknown as Rule).program)}`;
  return JSON.stringify(value);
}

/** A program, or one of rows, as statements. */
function programText(program: Program | RowProgram): string {
  const { scalars, nodes, outputs } = program;
  const [inputs, results] =
    "buffers" in program
      ? [program.buffers, program.outputs.map(({ slot }) => program.buffers[slot] ?? "out")]
      : [program.inputs.map(({ name }) => name), program.outputs.map(({ name }) => name)];
  const values: string[] = [];
  for (const { op, args, value } of nodes) {
    if (op === "buffer" || op === "input") values.push(inputs[value]!);
    else if (op === "scalar") values.push(scalars[value]!);
    else if (op === "constant") values.push(String(value));
    else values.push(`${op}(${args.map((arg) => values[arg]).join(", ")})`);
  }
  return outputs.map(({ node }, i) => `${results[i]} = ${values[node]}`).join("; ");
}
