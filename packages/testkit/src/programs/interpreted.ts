/** What must hold of a small program: every device does what its interpretation says, eagerly and compiled. */
import type { DType } from "@opt/core";
import { canInterpret, type Interpreted, interpret } from "./interpret/interpret";
import { EPSILON, isFloat } from "./numbers";
import type { Observation } from "./observe";
import type { Result, Setup } from "./oracle";
import { type Id, type Program, statementsOf } from "./program";
import { type Outcome, run } from "./run";

/** Interpretations from numbers that are moved a little: what they change, rounding may change. */
const JITTERS = 4;
/** Times what a unit in the last place changes, and units in the last place of the largest number. */
const FACTOR = 32;
const UNITS = 64;
/** Of the largest gradient, which others may cancel. */
const UNITS_OF_LARGEST = 8;

const inF32 = (dtype: DType): DType => (dtype === "f64" ? "f32" : dtype);

/** Runs a small program on every device, and compiled on the one that its seed says. */
export async function examineSmall(program: Program, setup: Setup): Promise<Result> {
  const { optimizers, layers } = setup;
  // Of a generated program parts may have been taken away that belong together.
  if (!canInterpret(program)) return { failure: null, rejected: null, replays: 0 };
  const expected = interpret(program);
  let replays = 0;
  let rejected: string | null = null;
  const fail = (rule: string, detail: string): Result => ({ failure: { rule, detail }, rejected: null, replays });
  const devices = setup.devices.filter(
    ({ backend }) =>
      (program.scaler === null || backend.readSync !== undefined) && (!isExtreme(program) || backend.exact),
  );
  for (const [i, device] of devices.entries()) {
    const dtype = device.backend.dtypes.includes("f64") ? undefined : inF32;
    const on = { device, optimizers, layers, ...(dtype && { dtype }) };
    const isCompiled = i === program.seed % devices.length || setup.thorough;
    const modes = isCompiled && !isTrusted(program) ? [undefined, { check: program.check }] : [undefined];
    for (const compile of modes) {
      const words = compile === undefined ? device.name : `${device.name} compiled`;
      const outcome = await run(program, { ...on, ...(compile && { compile }) });
      replays += outcome.replays;
      if (outcome.broken) return fail(`${words} ${outcome.broken.what}`, outcome.broken.detail);
      if (outcome.rejected === null && device.backend.readSync === undefined && failsByIndex(expected)) continue;
      if (compile !== undefined && changesOutside(program) && outcome.rejected?.code !== "CHANGED")
        return fail(`${words} finds what changes outside`, `goes on, ${outcome.replays} calls are replayed`);
      const problem = rejectionProblem(outcome, expected, program, compile !== undefined);
      if (problem !== null) return fail(`${words} rejects what must be rejected`, problem);
      if (compile === undefined) rejected = outcome.rejected?.code ?? null;
      const coarsest = Math.max(unitOf(program, dtype), device.backend.exact ? 0 : 2 ** -21);
      const difference = firstDifference(outcome, expected, program, coarsest);
      if (difference !== null) return fail(`${words} = interpreted`, difference);
    }
  }
  return { failure: null, rejected, replays };
}

/** A body reads a number outside of it, and its calls are not checked: replays have the first number. */
const isTrusted = (program: Program): boolean => program.check === "never" && outsideOf(program).length > 0;

/** By the third call, or by the fourth where the first call's gradients are there from the second one on. */
const changesOutside = (program: Program): boolean => program.rounds.length > 3 && outsideOf(program).length > 0;

/** Numbers that ops find in variables outside of their body. */
function outsideOf({ rounds, bodies }: Program): Id[] {
  const used = new Set(
    bodies.flatMap(({ statements }) => statements.flatMap((one) => (one.do === "op" ? one.of : []))),
  );
  const own = new Set(bodies.flatMap(({ args }) => args));
  return Object.keys(rounds[0]?.args ?? {}).filter((id) => used.has(id) && !own.has(id));
}

/** Only devices that answer at once look at indices before they pick; what others pick beyond a table is undefined. */
function failsByIndex({ rejected }: Interpreted): boolean {
  return rejected !== null && /gather|scatter|index|assign|"at"/i.test(JSON.stringify(rejected.at));
}

function rejectionProblem(
  { rejected }: Outcome,
  expected: Interpreted,
  { mayReject, compiles }: Program,
  isCompiled: boolean,
): string | null {
  if (rejected === null) {
    return expected.rejected === null
      ? null
      : `goes through, must be rejected at ${JSON.stringify(expected.rejected.at)}`;
  }
  const isFree = mayReject.includes(rejected.code) || (isCompiled && !compiles);
  if (expected.rejected !== null || isFree) return null;
  return `${rejected.code} at ${rejected.at}: ${rejected.message}`;
}

/** The unit in the last place of the coarsest dtype. */
function unitOf(program: Program, dtype: (dtype: DType) => DType = (own) => own): number {
  const made = statementsOf(program).map((one) => {
    if (one.do === "constant") return one.dtype;
    return one.do === "op" ? (one.options?.dtype as DType | undefined) : undefined;
  });
  const dtypes = [...program.leaves.map((leaf) => leaf.dtype), ...made].filter((one) => one !== undefined);
  return Math.max(...dtypes.filter(isFloat).map((one) => EPSILON[dtype(one)]), EPSILON.f64);
}

/** The first name whose numbers are further from the interpretation than rounding explains. Rejected programs agree as far as they went. */
function firstDifference(outcome: Outcome, expected: Interpreted, program: Program, epsilon: number): string | null {
  const rounds = Math.min(expected.rounds.length, outcome.rounds.length - (outcome.rejected === null ? 0 : 1));
  const limit = endOf(program);
  let moved: Interpreted[] | null = null;
  for (let round = 0; round < rounds; round++) {
    if ([...expected.rounds[round]!.values()].some((numbers) => numbers.some((x) => Math.abs(x) > limit))) return null;
    const names = namesOf(expected.rounds[round]!, outcome.rounds[round]!, program);
    for (const name of names) {
      const right = expected.rounds[round]!.get(name);
      const actual = outcome.rounds[round]!.get(name);
      const at = `after round ${round}, ${name}`;
      if (right === undefined) return `${at} is there, must be null`;
      if (actual === undefined) return `${at} is missing`;
      if (typeof actual === "string") return `${at} is ${actual}`;
      if (right.length !== actual.data.length)
        return `${at} has ${actual.data.length} elements, must have ${right.length}`;
      let difference = firstFar(actual, right, epsilon, expected.largest, []);
      if (difference === null) continue;
      moved ??= Array.from({ length: JITTERS }, (_, i) => interpret(program, { seed: i + 1, epsilon }));
      const others = moved.map(({ rounds: own }) => own[round]?.get(name)).filter((one) => one !== undefined);
      difference = firstFar(actual, right, epsilon, expected.largest, others);
      if (difference !== null) return `${at}: ${difference}`;
    }
  }
  return null;
}

/** What both have: results, leaves and gradients. A scaler's gradients are larger until it takes that off. */
function namesOf(expected: ReadonlyMap<string, unknown>, actual: Observation, { scaler, leaves }: Program): string[] {
  const ids = leaves.map(({ id }) => id);
  const seen = [...actual.keys()].filter((name) => ids.includes(name.replace(/\.grad$/, "")));
  return [...new Set([...expected.keys(), ...seen])].filter((name) => scaler === null || !name.endsWith(".grad"));
}

const isExtreme = ({ leaves }: Program): boolean => leaves.some(({ fill }) => fill.kind === "extreme");

/** Larger numbers are not compared. PyTorch makes running products of f32 in float64, but those of bf16 in float32. */
function endOf(program: Program): number {
  if (!isExtreme(program)) return 2 ** 100;
  return program.leaves.some(({ dtype }) => dtype === "bf16") ? LARGEST : Number.POSITIVE_INFINITY;
}

/** Where float32 ends, and from where on it has fewer digits. */
const [LARGEST, SMALLEST] = [3.4028235677973366e38, 2 ** -126];

function firstFar(
  { dtype, data }: { readonly dtype: DType; readonly data: ArrayLike<number> },
  right: Float64Array,
  epsilon: number,
  largest: number,
  moved: readonly Float64Array[],
): string | null {
  const isExact = !isFloat(dtype);
  let scale = 1;
  let spread = 0;
  for (let i = 0; i < right.length; i++) {
    if (Number.isFinite(right[i]) && Math.abs(right[i]!) < 1e6) scale = Math.max(scale, Math.abs(right[i]!));
    for (const other of moved) spread = Math.max(spread, Math.abs(other[i]! - right[i]!) || 0);
  }
  const tolerance = isExact
    ? 0
    : FACTOR * spread + epsilon * (UNITS * scale + UNITS_OF_LARGEST * Math.min(largest, 1e6));
  for (let i = 0; i < right.length; i++) {
    const x = data[i]!;
    const y =
      dtype !== "f64" && Math.abs(right[i]!) > LARGEST ? Math.sign(right[i]!) * Number.POSITIVE_INFINITY : right[i]!;
    if (Object.is(x, y) || x === y) continue;
    const own = Math.abs(y) > 1e6 ? UNITS * epsilon * Math.abs(y) : tolerance;
    if (!(Math.abs(x - y) <= own + SMALLEST)) return `[${i}] is ${x}, must be ${y} within ${own}`;
  }
  return null;
}
