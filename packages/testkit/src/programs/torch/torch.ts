/** PyTorch as a second oracle: programs run in its float64, beside js in float64. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Device } from "@opt/core";

import { isFloat, numbersOf } from "../numbers";
import type { Observation } from "../observe";
import { type Failure, gentler, type Setup } from "../oracle";
import { type Argument, type Fill, type Program, type Shape, type Statement, statementsOf } from "../program";
import { run } from "../run";

export interface TorchReport {
  /** Compared to their end. */
  compared: number;
  /** Rejected by PyTorch or by us: by us for the code, by it for its words. */
  readonly rejected: Record<string, number>;
  readonly failures: (Failure & { readonly program: Program })[];
}

type Rounds = readonly Readonly<Record<string, readonly (number | null)[]>>[];
type Answer = { readonly rounds: Rounds } | { readonly rejected: string };

const script = fileURLToPath(new URL("run.py", import.meta.url));

/** False for what PyTorch draws otherwise, and for numbers that JSON does not have. */
export function torchCan(program: Program): boolean {
  const isDrawn = statementsOf(program).some(({ do: kind }) => kind === "random" || kind === "train");
  const hasDropout = program.layers.some(({ kind }) => kind === "Dropout");
  // Scalers, averages, Muon's 16 bits and options that PyTorch does not have are compared by tests of their own.
  const hasAround = program.scaler !== null || program.averages.length > 0;
  const others =
    /"kind":"(special|Muon)"|"clip":|"name":"clip"|"stateDType"|"stochasticRounding"|"lazyMode"|"trackRunningStats":true/.test(
      JSON.stringify(program),
    );
  return !isDrawn && !hasDropout && !hasAround && !others;
}

/**
 * Runs programs by the Python that `python` names, and compares values, gradients and optimizer state after each round. What differs is
 * run again with optimizers that do not make steps of the rounding that is left of a gradient.
 */
export async function compareWithTorch(
  python: string,
  programs: readonly Program[],
  setup: Setup,
): Promise<TorchReport> {
  const report = await compared(python, programs, setup);
  if (report.failures.length === 0) return report;
  const calm = await compared(
    python,
    report.failures.map(({ program }) => gentler(program)),
    setup,
  );
  const seeds = new Set(calm.failures.map(({ program }) => program.seed));
  return { ...report, failures: report.failures.filter(({ program }) => seeds.has(program.seed)) };
}

async function compared(python: string, programs: readonly Program[], setup: Setup): Promise<TorchReport> {
  const input = programs.map((program) => `${JSON.stringify(withNumbers(program))}\n`).join("");
  const output = execFileSync(python, [script], { input, encoding: "utf8", maxBuffer: 2 ** 30 });
  const answers = output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Answer);
  const report: TorchReport = { compared: 0, rejected: {}, failures: [] };
  const { optimizers, layers } = setup;
  const device = setup.devices[0] as Device;
  for (const [i, program] of programs.entries()) {
    const ours = await run(program, { device, optimizers, layers, dtype: (dtype) => (isFloat(dtype) ? "f64" : dtype) });
    const theirs = answers[i]!;
    const why = "rejected" in theirs ? theirs.rejected.slice(0, 60) : ours.rejected?.code;
    if (why !== undefined) report.rejected[why] = (report.rejected[why] ?? 0) + 1;
    else {
      report.compared++;
      const detail = differenceOf(ours.rounds, (theirs as { rounds: Rounds }).rounds);
      if (detail !== null) report.failures.push({ rule: "js f64 = PyTorch", detail, program });
    }
  }
  return report;
}

function differenceOf(ours: readonly Observation[], theirs: Rounds): string | null {
  for (const [round, seen] of ours.entries()) {
    for (const [name, values] of Object.entries(theirs[round] ?? {})) {
      const own = seen.get(name);
      if (own === undefined || typeof own === "string") return `after round ${round}, ${name} is ${own ?? "missing"}`;
      if (own.data.length !== values.length) return `after round ${round}, ${name} has ${own.data.length} elements`;
      const scale = values.reduce<number>((most, x) => Math.max(most, Math.abs(x ?? 0)), 1);
      const at = values.findIndex((x, i) => x !== null && !(Math.abs(own.data[i]! - x) <= 1e-8 * scale));
      if (at >= 0) return `after round ${round}, ${name}[${at}] is ${own.data[at]}, in PyTorch ${values[at]}`;
    }
    for (const name of seen.keys()) {
      if (name.endsWith(".grad") && theirs[round]![name] === undefined) return `after round ${round}, ${name} is there`;
    }
  }
  return null;
}

/** The program with the numbers of each fill in its place. */
function withNumbers(program: Program): unknown {
  const shapes = new Map(program.leaves.map(({ id, shape }) => [id, shape]));
  const numbers = (fill: Fill, shape: Shape) => [...numbersOf(fill, shape)];
  const passed = (given: Argument, [first, ...rest]: Shape = []): unknown => {
    if (typeof given !== "object" || !("fill" in given)) return given;
    const shape = first === undefined ? [] : [given.rows ?? first, ...rest];
    return { shape, numbers: numbers(given.fill, shape) };
  };
  const isFill = (value: unknown): value is Fill => typeof value === "object" && value !== null && "seed" in value;
  const filled = (statement: Statement): unknown => {
    switch (statement.do) {
      case "constant":
        return { ...statement, numbers: numbers(statement.fill, statement.shape) };
      case "set":
        return isFill(statement.from)
          ? { ...statement, from: numbers(statement.from, shapes.get(statement.to)!) }
          : statement;
      case "gradient":
        return isFill(statement.value)
          ? { ...statement, value: numbers(statement.value, shapes.get(statement.of)!) }
          : statement;
      case "tidy":
      case "noGrad":
      case "when":
        return { ...statement, body: statement.body.map(filled) };
      default:
        return statement;
    }
  };
  return {
    ...program,
    leaves: program.leaves.map((leaf) => ({ ...leaf, numbers: numbers(leaf.fill, leaf.shape) })),
    prelude: program.prelude.map(filled),
    bodies: program.bodies.map((body) => ({ ...body, statements: body.statements.map(filled) })),
    rounds: program.rounds.map(({ args, ...round }) => ({
      ...round,
      before: round.before.map(filled),
      args: Object.fromEntries(Object.entries(args).map(([id, given]) => [id, passed(given, shapes.get(id))])),
    })),
  };
}
