/** Smaller programs that still do something like a given one, and the smallest that still fails. */
import { type Id, innerOf, madeBy, type Program, type Statement, statementsOf } from "./program";

/** The smallest program found by taking parts away as long as `fails` holds. */
export async function smallest(program: Program, fails: (smaller: Program) => Promise<boolean>): Promise<Program> {
  let least = program;
  for (let found = true; found; ) {
    found = false;
    for (const candidate of smaller(least)) {
      if (!(await fails(candidate))) continue;
      least = candidate;
      found = true;
      break;
    }
  }
  return least;
}

function* smaller(program: Program): Generator<Program> {
  const { rounds, bodies, optimizers, leaves, layers, averages, resume } = program;
  for (let i = rounds.length - 1; i >= 0 && rounds.length > 2; i--) {
    const round = Math.max(1, resume.round - (i < resume.round ? 1 : 0));
    yield { ...program, rounds: rounds.toSpliced(i, 1), resume: { ...resume, round } };
  }
  for (const [i] of bodies.entries()) {
    const kept = rounds.filter(({ body }) => body !== i);
    if (bodies.length === 1 || kept.length < 2) continue;
    const moved = kept.map((round) => ({ ...round, body: round.body - (round.body > i ? 1 : 0) }));
    yield { ...program, bodies: bodies.toSpliced(i, 1), rounds: moved, resume: { ...resume, round: 1 } };
  }
  // Statements, the later ones first: fewer depend on them.
  const statements = statementsOf(program).reverse();
  for (const one of statements) yield replaced(program, one, []);
  for (const one of statements) if (innerOf(one).length > 0) yield replaced(program, one, innerOf(one));
  for (const one of statements) {
    if (one.do !== "op") continue;
    for (const operand of new Set(one.of)) {
      if (typeof operand === "string" && !/^[ke]/.test(operand))
        yield renamed(swapped(program, one, []), one.id, operand);
    }
  }
  for (const { id } of [...optimizers, ...layers, ...averages, ...leaves]) yield without(program, new Set([id]));
  for (const [path, value] of parts(program)) {
    if (Array.isArray(value)) for (const [i] of value.entries()) yield changed(program, path, value.toSpliced(i, 1));
    else for (const key of Object.keys(value)) yield changed(program, path, omit(value, key));
  }
  for (const [o, optimizer] of optimizers.entries()) {
    const change = (next: object) => ({ ...program, optimizers: optimizers.with(o, { ...optimizer, ...next }) });
    if (optimizer.schedule) yield change({ schedule: null });
    if (optimizer.groups.length > 1) {
      yield change({ groups: [{ params: optimizer.groups.flatMap(({ params }) => params), options: {} }] });
    }
  }
  if (program.scaler !== null) yield unscaled(program);
  for (const [i, { eager, ...round }] of rounds.entries()) {
    if (eager) yield { ...program, rounds: rounds.with(i, round) };
  }
  for (const [i, leaf] of leaves.entries()) {
    if (leaf.dtype !== "f32") yield { ...program, leaves: leaves.with(i, { ...leaf, dtype: "f32" }) };
  }
  if (program.check !== "never") yield { ...program, check: "never" };
}

type Path = readonly (string | number)[];

/** Lists and objects of which each part can be left out, and where they are. */
function* parts(value: unknown, path: Path = []): Generator<[Path, object]> {
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    const here = [...path, key];
    if (/^(args|results|returns|params)$/.test(key)) yield [here, inner as object];
    else if (key === "options" && path[0] === "optimizers") yield [here, inner as object];
    else yield* parts(inner, here);
  }
}

function changed<T>(value: T, [key, ...path]: Path, by: unknown): T {
  if (key === undefined) return by as T;
  const inner = changed((value as Record<string, unknown>)[key], path, by);
  return Array.isArray(value) ? (value.with(Number(key), inner) as T) : { ...value, [key]: inner };
}

const omit = (options: object, key: string) =>
  Object.fromEntries(Object.entries(options).filter(([name]) => name !== key));

/** The program with every list of statements changed. */
function mapped(program: Program, change: (statements: readonly Statement[]) => readonly Statement[]): Program {
  const all = (statements: readonly Statement[]): readonly Statement[] =>
    change(statements).map((one) => ("body" in one ? ({ ...one, body: all(one.body) } as Statement) : one));
  return {
    ...program,
    prelude: all(program.prelude),
    bodies: program.bodies.map((body) => ({ ...body, statements: all(body.statements) })),
    rounds: program.rounds.map((round) => ({ ...round, before: all(round.before) })),
    optimizers: program.optimizers.map(({ hooks, ...rest }) => {
      const left = hooks?.map((hook) => ({ ...hook, body: all(hook.body) })).filter(({ body }) => body.length > 0);
      return left === undefined || left.length === 0 ? rest : { ...rest, hooks: left };
    }),
  };
}

/** The program with others in a statement's place. */
function swapped(program: Program, statement: Statement, by: readonly Statement[]): Program {
  return mapped(program, (list) => list.flatMap((one) => (one === statement ? by : [one])));
}

/** The same without what can no longer be. */
function replaced(program: Program, statement: Statement, by: readonly Statement[]): Program {
  const next = swapped(program, statement, by);
  const kept = new Set(statementsOf(next).map(madeBy));
  const gone = statementsOf(program)
    .map(madeBy)
    .filter((id) => id !== undefined && !kept.has(id));
  return without(next, new Set(gone as Id[]));
}

/** The program with another value in the place of one that is gone. */
function renamed(program: Program, from: Id, to: Id): Program {
  const rename = (key: string, value: unknown): unknown => {
    if (/^(results|returns)$/.test(key)) return (value as Id[]).filter((id) => id !== from);
    return value === from ? to : value;
  };
  const isAbout = (one: Statement) => (one.do === "keep" || one.do === "dispose") && one.of === from;
  const next = mapped(program, (list) => list.filter((one) => !isAbout(one)));
  return JSON.parse(JSON.stringify(next, rename)) as Program;
}

/** Takes values, optimizers, layers and averages away, and all that depends on them. */
function without(program: Program, gone: Set<Id>): Program {
  let next = program;
  for (let before = -1; before !== gone.size; ) {
    before = gone.size;
    next = pruned(next, gone);
    const used = new Set(statementsOf(next).map((one) => (one.do === "op" ? one.options?.layer : undefined)));
    for (const { id } of next.layers) if (!used.has(id)) gone.add(id);
    for (const { id, of } of next.leaves) if (of !== undefined && gone.has(of.layer)) gone.add(id);
  }
  return next;
}

/** Lists that may have fewer members, and those of them that must have one. */
const LISTS =
  /^(args|results|returns|leaves|layers|optimizers|averages|statements|before|prelude|hooks|body|groups|params)$/;
const FULL = /^(body|groups|params)$/;

/** Without what names what is gone. */
function pruned(program: Program, gone: Set<Id>): Program {
  const NOTHING = Symbol("gone");
  const prune = (value: unknown, key: string): unknown => {
    if (typeof value === "string") return gone.has(value) && !/^(op|do|kind|dtype)$/.test(key) ? NOTHING : value;
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) {
      const items = value.map((item) => prune(item, key));
      if (!items.includes(NOTHING)) return items;
      const left = items.filter((item) => item !== NOTHING);
      return !LISTS.test(key) || (FULL.test(key) && left.length === 0) ? NOTHING : left;
    }
    const entries = Object.entries(value).map(([name, item]) => [name, prune(item, name)] as const);
    if (key === "args")
      return Object.fromEntries(entries.filter(([name, item]) => item !== NOTHING && !gone.has(name)));
    if (entries.every(([, item]) => item !== NOTHING)) return Object.fromEntries(entries);
    if ("id" in value) gone.add(value.id as Id);
    return NOTHING;
  };
  return prune(program, "") as Program;
}

/** Without the scaler. */
function unscaled(program: Program): Program {
  return mapped({ ...program, scaler: null }, (list) =>
    list.flatMap((one): Statement[] => {
      if (one.do === "unscale" || one.do === "update") return [];
      if (one.do !== "step" && one.do !== "backward") return [one];
      const { scaled, ...rest } = one;
      return [rest];
    }),
  );
}
