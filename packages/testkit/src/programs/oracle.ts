/** What must hold of every program, on every device. */
import type { Device, DType } from "@opt/core";
import { bitDifference, coarsest, distance, isOutgrown } from "./compare";
import type { LayerClasses } from "./layers";
import { EPSILON, isFloat, sizeOf } from "./numbers";
import type { Observation } from "./observe";
import { type Options, type Program, type Statement, statementsOf } from "./program";
import { type Outcome, run } from "./run";
import { asJson, type Store } from "./store";
import type { Mode, OptimizerClasses } from "./world";

export interface Setup {
  /** The first is the reference of the others: js. */
  readonly devices: readonly Device[];
  readonly optimizers: OptimizerClasses;
  readonly layers: LayerClasses;
  /** Keeps what some programs save; the others keep it as JSON. */
  readonly checkpoints?: Store;
  /** Compiled and resumed on every device; else on the one that the program's seed says. */
  readonly thorough?: boolean;
  /** Only compiled programs are compared with eager ones. */
  readonly onlyCompiled?: boolean;
}

export interface Failure {
  /** What did not hold: the same words for the same kind of failure. */
  readonly rule: string;
  readonly detail: string;
}

export interface Result {
  readonly failure: Failure | null;
  /** The code with which every device rejected the program. */
  readonly rejected: string | null;
  /** Calls of compiled bodies that did not run the function. */
  readonly replays: number;
}

const inF64 = (dtype: DType): DType => (isFloat(dtype) ? "f64" : dtype);
const inF32 = (dtype: DType): DType => (dtype === "f64" ? "f32" : dtype);

/** The contract of these is absolute: 1e-6 in float32. */
const CANCELLING =
  /^(BatchNorm1d|BatchNorm2d|GroupNorm|RMSNorm|LSTM|GRU|MultiheadAttention|softmax|logSoftmax|crossEntropy|layerNorm|erf|gelu|geluTanh|tanh|sin|cos|log)$/;

/** Their slopes are differences of numbers near 1. */
const SATURATING = /^(LSTM|GRU|tanh|sigmoid|erf|gelu|geluTanh)$/;

/** Perturbed runs that say what rounding does to a program, made only where a device differs. */
const JITTERS = 12;

/** Runs a program in every mode on every device. */
export async function examine(program: Program, setup: Setup): Promise<Result> {
  const { optimizers, layers, thorough, onlyCompiled } = setup;
  // Elsewhere scaled steps are promises, which no body can wait for.
  const devices = setup.devices.filter(({ backend }) => program.scaler === null || backend.readSync !== undefined);
  let replays = 0;
  const fail = (rule: string, detail: string, outcome?: Outcome): Result => ({
    failure: { rule, detail: outcome?.rejected ? `${detail} (${outcome.rejected.message})` : detail },
    rejected: null,
    replays,
  });
  const [js] = devices as [Device];
  const play = (mode: Omit<Mode, "optimizers" | "layers">) => run(program, { ...mode, optimizers, layers });

  const hasSpecials = special(program);
  const isApart = thorough || program.seed % 2 === 0;
  // Scaled float16 gradients overflow where float64 ones do not.
  const isShort = program.scaler !== null && dtypesOf(program).includes("f16");
  const isReferred = !hasSpecials && !isShort && !onlyCompiled;
  const reference = isReferred ? await play({ device: js, dtype: inF64, apart: isApart }) : null;
  if (reference?.broken) {
    return fail(`js f64${isApart ? ", operands apart" : ""} ${reference.broken.what}`, reference.broken.detail);
  }
  // What works on copies cannot be rejected for what is overwritten.
  const inDoubles = isApart ? null : reference;

  // Functions of float64 are each platform's own.
  const inFloat32 = !dtypesOf(program).includes("f64");
  const hasWords = ({ portable }: Device) => portable && inFloat32;
  const hasMuon = program.optimizers.some(({ kind }) => kind === "Muon");
  let first: Outcome | undefined;
  for (const [i, device] of devices.entries()) {
    const isChosen = thorough || i === program.seed % devices.length;
    if (onlyCompiled && !isChosen) continue;
    const { name } = device;
    const { exact } = device.backend;
    const dtype = device.backend.dtypes.includes("f64") ? undefined : inF32;
    const on = { device, ...(dtype && { dtype }) };
    const eager = await play(on);
    if (eager.broken) return fail(`${name} ${eager.broken.what}`, eager.broken.detail);
    first ??= eager;
    const { rejected } = eager;
    if (rejected !== null && !program.mayReject.includes(rejected.code)) {
      return fail(`${name} rejects: ${rejected.code}`, `at ${rejected.at}`, eager);
    }
    if (rejected?.code !== first.rejected?.code || rejected?.at !== first.rejected?.at) {
      return fail(`${name} rejects as js does`, `${show(eager)}, js ${show(first)}`, rejected ? eager : first);
    }
    // 16-bit numbers are saved for backward as they were widened: what is overwritten cannot reach those.
    const codes = [rejected?.code, inDoubles?.rejected?.code];
    if (inDoubles && codes[0] !== codes[1] && !codes.includes("CHANGED")) {
      return fail("f64 rejects as f32 does", `${show(eager)}, f64 ${show(inDoubles)}`, rejected ? eager : inDoubles);
    }
    // What devices that are not exact make of special values is not promised, nor how matrix products of 16 bits are rounded.
    const isCompared = !hasMuon && (!hasSpecials || exact) && !onlyCompiled;
    const trial = { program, js, on, play, still: first, hasSpecials };
    const tooFar = isCompared ? await tooFarFrom(reference ?? first, eager, trial) : null;
    if (tooFar !== null && !mayTie(program)) {
      // Numbers that nearly cancel, divided by themselves: an optimizer that divides by less noise must agree.
      const gentle = gentler(program);
      const again = (mode: Omit<Mode, "optimizers" | "layers">) => run(gentle, { ...mode, optimizers, layers });
      const [target, ours, still] = [
        await again(reference === null ? { device: js } : { device: js, dtype: inF64, apart: isApart }),
        await again(on),
        await again({ ...on, device: js }),
      ];
      const calm = { program: gentle, js, on, play: again, still, hasSpecials };
      if ((await tooFarFrom(target, ours, calm)) !== null) return fail(`${name} = js f64`, tooFar);
    }
    if (i > 0 && hasWords(device) && !rejected && !onlyCompiled) {
      const differs = roundsDiffer(eager, first, bitDifference);
      if (differs !== null) return fail(`${name} = js, bit for bit`, differs);
    }

    // Compiling, saving and loading are more core's than the device's: one of them will do.
    if (!isChosen) continue;
    const { check } = program;
    for (const [words, passes] of [
      ["compiled without passes", false],
      ["compiled", true],
    ] as const) {
      const compiled = await play({ ...on, compile: { check, passes } });
      replays += compiled.replays;
      if (compiled.broken) return fail(`${name} ${words} ${compiled.broken.what}`, compiled.broken.detail);
      const code = compiled.rejected?.code;
      // A trace still has what was disposed later, and takes no argument that was.
      const isDisposed = program.mayReject.includes("DISPOSED") && (code ?? rejected?.code) === "DISPOSED";
      // Functions that cannot be compiled are rejected in some way.
      const mayReject = code !== undefined && !program.compiles;
      if (code !== rejected?.code && !isDisposed && !mayReject) {
        const rule = `${name} ${words} rejects as eager does: ${code}, eager ${rejected?.code}`;
        return fail(rule, `${show(compiled)}, eager ${show(eager)}`, compiled.rejected ? compiled : eager);
      }
      const differs =
        exact || !passes || hasSpecials
          ? roundsDiffer(compiled, eager, bitDifference)
          : await tooFarFrom(eager, compiled, trial);
      if (differs !== null && !(hasSpecials && !exact)) return fail(`${name} ${words} = eager`, differs);
    }
    if (onlyCompiled) continue;

    const isCompiled = exact && program.seed % 2 === 1 && rejected === null && program.compiles;
    const store = program.seed % 7 < 2 && setup.checkpoints !== undefined ? setup.checkpoints : asJson;
    const next = devices[(i + 1) % devices.length]!;
    const onto = program.seed % 5 === 0 && hasWords(device) && hasWords(next) ? next : device;
    const resumed = await play({ ...on, resumed: store, onto, ...(isCompiled && { compile: { check } }) });
    if (resumed.broken) return fail(`${name} resumed ${resumed.broken.what}`, resumed.broken.detail);
    if (resumed.rejected?.code !== rejected?.code) {
      const detail = `${show(resumed)}, uninterrupted ${show(eager)}`;
      return fail(`${name} resumes`, detail, resumed.rejected ? resumed : eager);
    }
    const differs = rejected ? null : roundsDiffer(resumed, eager, bitDifference);
    if (differs !== null) return fail(`${name} resumed = uninterrupted`, differs);
  }
  return { failure: null, rejected: first?.rejected?.code ?? null, replays };
}

interface Trial {
  readonly program: Program;
  readonly js: Device;
  readonly on: Pick<Mode, "device" | "dtype">;
  play(mode: Omit<Mode, "optimizers" | "layers">): Promise<Outcome>;
  /** What js has made of the same dtypes. */
  readonly still: Outcome;
  readonly hasSpecials: boolean;
}

/** What is further from a reference than rounding explains; runs that are moved a little are made where it seems to be. */
async function tooFarFrom(reference: Outcome, eager: Outcome, trial: Trial): Promise<string | null> {
  const { program, js, on, play, still, hasSpecials } = trial;
  const dtypes = dtypesOf(program);
  const [epsilon, short] = [coarsest(dtypes), dtypes.includes("f16")];
  const cancels = statementsOf(program).some((one) => one.do === "op" && CANCELLING.test(one.op));
  // Rows that are nearly constant are divided by no less than the root of layerNorm's eps.
  const normalizes = statementsOf(program).some(
    (one) => one.do === "op" && /^(layerNorm|BatchNorm[12]d|GroupNorm)$/i.test(one.op),
  );
  // Of 1 - tanh(x)^2, and of softmax's gradient on equal numbers, rounding leaves nothing or a unit, once for each element of a sum.
  const saturates = statementsOf(program).some((one) => one.do === "op" && SATURATING.test(one.op));
  const summed = saturates || cancels ? Math.max(...program.leaves.map(({ shape }) => sizeOf(shape))) : 0;
  // Sums cancel to what rounding left of them, and so do gradients that a cast has rounded.
  const units = cancels || normalizes || saturates ? Math.max(8, summed) : epsilon > EPSILON.f32 ? 2 : 8;
  const floor = Math.max(units * epsilon, normalizes ? 300 * EPSILON.f32 : 0);
  const { initScale = 65536, growthFactor = 2 } = program.scaler ?? { initScale: 1, growthFactor: 1 };
  const scaled = Number(initScale) * Number(growthFactor) ** (program.rounds.length - 1);
  const runs = [still];
  const outgrown = reference.rounds.findIndex(isOutgrown);
  const far = () =>
    roundsDiffer(eager, reference, (a, b, round) => {
      if (!hasSpecials && outgrown >= 0 && round >= outgrown) return null;
      const moved = runs.flatMap(({ rounds }) => rounds[round] ?? []);
      const before = reference.rounds.slice(0, round);
      return distance(a, b, { runs: moved, before, epsilon, factor: 16, floor, scaled, short, special: hasSpecials });
    });
  let tooFar = far();
  for (let jitter = 1; jitter <= JITTERS && tooFar !== null; jitter++) {
    runs.push(await play({ ...on, device: js, jitter }));
    tooFar = far();
  }
  return tooFar;
}

/** The program with optimizers that do not make much of gradients that are nearly nothing, and without the jump of l1 at 0. */
export function gentler(program: Program): Program {
  const calm = (options: Options, kind = ""): Options => {
    const isL1 = (options.regularizer as { kind?: string } | null | undefined)?.kind === "l1";
    return { ...options, ...(kind !== "SGD" && { eps: 0.01 }), ...(isL1 && { regularizer: null }) };
  };
  const calmed = (statement: Statement): Statement =>
    statement.do === "option"
      ? { ...statement, value: calm({ [statement.name]: statement.value })[statement.name] }
      : statement;
  return {
    ...program,
    optimizers: program.optimizers.map((optimizer) => ({
      ...optimizer,
      options: calm(optimizer.options, optimizer.kind),
      groups: optimizer.groups.map((group) => ({ ...group, options: calm(group.options, optimizer.kind) })),
    })),
    rounds: program.rounds.map((round) => ({ ...round, before: round.before.map(calmed) })),
  };
}

/** True if NaN, infinities or subnormals are among its numbers. */
function special({ leaves, rounds, bodies, prelude, ...program }: Program): boolean {
  return JSON.stringify([leaves, rounds, bodies, prelude, program]).includes('"kind":"special"');
}

/** True if numbers may be equal only because they were rounded to 1 or to 16 bits, and their equality decides whose the gradient is. */
function mayTie(program: Program): boolean {
  const ops = statementsOf(program).map((one) => (one.do === "op" ? one.op : ""));
  const isCoarse = dtypesOf(program).some((dtype) => dtype === "f16" || dtype === "bf16");
  const isRounded = isCoarse || ops.some((op) => SATURATING.test(op));
  return (
    (isCoarse ||
      ops.some((op) => /^(erf|gelu|geluTanh|tanh|sigmoid|softmax|sin|cos|LSTM|GRU|MultiheadAttention)$/.test(op))) &&
    ops.some((op) => /^(max|maximum|minimum|maxPool2d)$/.test(op) || (isRounded && /^(abs|relu)$/.test(op)))
  );
}

/** The float dtypes of a program. */
function dtypesOf(program: Program): DType[] {
  const made = statementsOf(program).map((one) => {
    if (one.do === "random" || one.do === "constant") return one.dtype;
    return (one.do === "op" ? one.options?.dtype : undefined) as DType | undefined;
  });
  const dtypes = [...program.leaves.map(({ dtype }) => dtype), ...made.filter((dtype) => dtype !== undefined)];
  const narrow: DType[] = JSON.stringify(program.optimizers).includes('"stateDType":"bf16"') ? ["bf16"] : [];
  return [...dtypes.filter(isFloat), ...narrow, "f32"];
}

/** Compares round by round, as far as both went. */
function roundsDiffer(
  actual: Outcome,
  expected: Outcome,
  differs: (a: Observation, b: Observation, round: number) => string | null,
): string | null {
  const isWhole = actual.rejected === null && expected.rejected === null;
  const count = Math.min(actual.rounds.length, expected.rounds.length) - (isWhole ? 0 : 1);
  for (let round = 0; round < count; round++) {
    const difference = differs(actual.rounds[round]!, expected.rounds[round]!, round);
    if (difference !== null) return `after round ${round}, ${difference}`;
  }
  return null;
}

function show({ rejected }: Outcome): string {
  return rejected === null ? "goes through" : `${rejected.code} at ${rejected.at}`;
}
