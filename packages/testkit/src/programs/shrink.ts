/** Smaller programs that still do something like a given one, and the smallest that still fails. */
import { type Id, innerOf, madeBy, type Program, type Statement, statementsOf, usedBy } from "./program";

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
  const { rounds, bodies, optimizers, leaves, resume } = program;
  for (let i = rounds.length - 1; i >= 0 && rounds.length > 2; i--) {
    yield {
      ...program,
      rounds: rounds.toSpliced(i, 1),
      resume: { ...resume, round: Math.max(1, resume.round - (i < resume.round ? 1 : 0)) },
    };
  }
  for (const [i] of bodies.entries()) {
    if (bodies.length > 1) {
      const kept = rounds
        .filter(({ body }) => body !== i)
        .map((round) => ({ ...round, body: round.body - (round.body > i ? 1 : 0) }));
      if (kept.length > 1)
        yield { ...program, bodies: bodies.toSpliced(i, 1), rounds: kept, resume: { ...resume, round: 1 } };
    }
  }
  // Statements, the later ones first: fewer depend on them.
  const paths = pathsOf(program).reverse();
  for (const path of paths) yield without(program, path);
  for (const path of paths) if (innerOf(at(program, path)).length > 0) yield unwrapped(program, path);
  for (const path of paths) {
    const statement = at(program, path);
    if (statement.do !== "op") continue;
    for (const operand of new Set(usedBy(statement))) yield renamed(replaced(program, path, []), statement.id, operand);
  }
  for (const [b, { results }] of bodies.entries()) {
    for (const [r] of results.entries()) {
      yield { ...program, bodies: bodies.with(b, { ...bodies[b]!, results: results.toSpliced(r, 1) }) };
    }
  }
  for (const [o, optimizer] of optimizers.entries()) {
    const { id, groups, options, schedule } = optimizer;
    if (optimizers.length > 1 || program.bodies.every(({ statements }) => !mentions(statements, id))) {
      yield pruned({ ...program, optimizers: optimizers.toSpliced(o, 1) });
    }
    const change = (next: object) => ({ ...program, optimizers: optimizers.with(o, { ...optimizer, ...next }) });
    if (schedule) yield change({ schedule: null });
    if (groups.length > 1) {
      yield change({ groups: [{ params: groups.flatMap(({ params }) => params), options: {} }] });
    }
    for (const key of Object.keys(options)) yield change({ options: omit(options, key) });
    for (const [g, group] of groups.entries()) {
      for (const [p] of group.params.entries()) {
        const params = group.params.toSpliced(p, 1);
        yield change({ groups: params.length > 0 ? groups.with(g, { ...group, params }) : groups.toSpliced(g, 1) });
      }
      for (const key of Object.keys(group.options)) {
        yield change({ groups: groups.with(g, { ...group, options: omit(group.options, key) }) });
      }
    }
  }
  for (const [a] of program.averages.entries())
    yield pruned({ ...program, averages: program.averages.toSpliced(a, 1) });
  if (program.scaler !== null) yield unscaled(program);
  for (const leaf of leaves) yield withoutValues(program, new Set([leaf.id]));
  for (const [i, round] of rounds.entries()) {
    if (round.eager) yield { ...program, rounds: rounds.with(i, { before: round.before, body: round.body }) };
  }
  for (const [i, leaf] of leaves.entries()) {
    if (leaf.dtype !== "f32") yield { ...program, leaves: leaves.with(i, { ...leaf, dtype: "f32" }) };
  }
}

const omit = (options: object, key: string) =>
  Object.fromEntries(Object.entries(options).filter(([name]) => name !== key));

/** Where a statement stands: prelude, body or round, then positions. */
type Path = readonly [
  list: "prelude" | `body ${number}` | `round ${number}` | `hook ${number} ${number}`,
  ...positions: number[],
];

function lists(program: Program): [Path[0], readonly Statement[]][] {
  return [
    ["prelude", program.prelude],
    ...program.bodies.map(({ statements }, i) => [`body ${i}`, statements] as [Path[0], readonly Statement[]]),
    ...program.rounds.map(({ before }, i) => [`round ${i}`, before] as [Path[0], readonly Statement[]]),
    ...program.optimizers.flatMap(({ hooks = [] }, o) =>
      hooks.map(({ body }, h) => [`hook ${o} ${h}`, body] as [Path[0], readonly Statement[]]),
    ),
  ];
}

function pathsOf(program: Program): Path[] {
  const inside = (path: Path, statements: readonly Statement[]): Path[] =>
    statements.flatMap((statement, i) => {
      const here: Path = [...path, i];
      return [here, ...inside(here, innerOf(statement))];
    });
  return lists(program).flatMap(([name, statements]) => inside([name], statements));
}

function at(program: Program, [list, ...positions]: Path): Statement {
  let statements = lists(program).find(([name]) => name === list)![1];
  let found: Statement | undefined;
  for (const position of positions) {
    found = statements[position]!;
    statements = innerOf(found);
  }
  return found!;
}

/** The program with every list of statements changed. */
function mapped(
  program: Program,
  change: (statements: readonly Statement[], list: Path[0]) => readonly Statement[],
): Program {
  return {
    ...program,
    prelude: change(program.prelude, "prelude"),
    bodies: program.bodies.map((body, i) => ({ ...body, statements: change(body.statements, `body ${i}`) })),
    rounds: program.rounds.map((round, i) => ({ ...round, before: change(round.before, `round ${i}`) })),
    optimizers: program.optimizers.map((optimizer, o) =>
      optimizer.hooks === undefined
        ? optimizer
        : {
            ...optimizer,
            hooks: optimizer.hooks
              .map((hook, h) => ({ ...hook, body: change(hook.body, `hook ${o} ${h}`) }))
              .filter(({ body }) => body.length > 0),
          },
    ),
  };
}

/** The program with one statement replaced by others. */
function replaced(program: Program, [list, ...positions]: Path, by: readonly Statement[]): Program {
  const inside = (statements: readonly Statement[], [first, ...rest]: readonly number[]): readonly Statement[] => {
    if (rest.length === 0) return statements.toSpliced(first!, 1, ...by);
    const outer = statements[first!]!;
    return statements.with(first!, { ...outer, body: inside(innerOf(outer), rest) } as Statement);
  };
  return mapped(program, (statements, name) => (name === list ? inside(statements, positions) : statements));
}

function unwrapped(program: Program, path: Path): Program {
  return replaced(program, path, innerOf(at(program, path)));
}

/** The program with another value in the place of one that is gone. */
function renamed(program: Program, from: Id, to: Id): Program {
  const other = <Operand>(id: Operand) => (id === from ? to : id) as Operand;
  const change = (statement: Statement): Statement => {
    switch (statement.do) {
      case "op":
        return { ...statement, of: statement.of.map(other) };
      case "set":
        return { ...statement, to: other(statement.to), from: other(statement.from) };
      case "stale":
        return { ...statement, of: other(statement.of), by: other(statement.by) };
      case "gradient":
        return { ...statement, of: other(statement.of), value: other(statement.value) };
      case "backward":
        return { ...statement, of: other(statement.of), gradient: other(statement.gradient) };
      case "tidy":
        return {
          ...statement,
          body: changed(statement.body),
          returns: statement.returns.filter((id) => id !== from),
        };
      case "noGrad":
        return { ...statement, body: changed(statement.body) };
      default:
        return statement;
    }
  };
  const changed = (statements: readonly Statement[]): readonly Statement[] =>
    statements
      .filter((statement) => !((statement.do === "keep" || statement.do === "dispose") && statement.of === from))
      .map(change);
  const next = mapped(program, changed);
  return {
    ...next,
    bodies: next.bodies.map((body) => ({ ...body, results: body.results.filter((id) => id !== from) })),
  };
}

function without(program: Program, path: Path): Program {
  const gone = new Set<Id>();
  const note = (statement: Statement) => {
    const id = madeBy(statement);
    if (id !== undefined) gone.add(id);
    innerOf(statement).forEach(note);
  };
  note(at(program, path));
  return withoutValues(replaced(program, path, []), gone);
}

/** Takes values away, and all that depends on them. */
function withoutValues(program: Program, gone: Set<Id>): Program {
  const keep = (statements: readonly Statement[]): readonly Statement[] =>
    statements.flatMap((statement): Statement[] => {
      if (statement.do === "clip" || statement.do === "addGroup") {
        const params = statement.params.filter((id) => !gone.has(id));
        return params.length > 0 ? [{ ...statement, params }] : [];
      }
      if (usedBy(statement).some((id) => gone.has(id))) {
        const id = madeBy(statement);
        if (id !== undefined) gone.add(id);
        return [];
      }
      if (statement.do === "tidy") {
        const body = keep(statement.body);
        return body.length > 0
          ? [{ ...statement, body, returns: statement.returns.filter((id) => !gone.has(id)) }]
          : [];
      }
      if (statement.do === "noGrad") {
        const body = keep(statement.body);
        return body.length > 0 ? [{ ...statement, body }] : [];
      }
      return [statement];
    });
  const next = mapped(program, keep);
  return pruned({
    ...next,
    leaves: next.leaves.filter(({ id }) => !gone.has(id)),
    bodies: next.bodies.map((body) => ({ ...body, results: body.results.filter((id) => !gone.has(id)) })),
    optimizers: next.optimizers.map((optimizer) => ({
      ...optimizer,
      groups: optimizer.groups
        .map((group) => ({ ...group, params: group.params.filter((id) => !gone.has(id)) }))
        .filter(({ params }) => params.length > 0),
    })),
    averages: next.averages
      .map((average) => ({ ...average, params: average.params.filter((id) => !gone.has(id)) }))
      .filter(({ params }) => params.length > 0),
  });
}

/** Without the scaler. */
function unscaled(program: Program): Program {
  const plain = (statements: readonly Statement[]): readonly Statement[] =>
    statements.flatMap((statement): Statement[] => {
      if (statement.do === "unscale" || statement.do === "update") return [];
      if (statement.do === "tidy" || statement.do === "noGrad") return [{ ...statement, body: plain(statement.body) }];
      if (statement.do !== "step" && statement.do !== "backward") return [statement];
      const { scaled, ...rest } = statement;
      return [rest];
    });
  return mapped({ ...program, scaler: null }, plain);
}

/** Without optimizers that train nothing, and statements about optimizers and averages that are gone. */
function pruned(program: Program): Program {
  const optimizers = program.optimizers.filter(({ groups }) => groups.length > 0);
  const known = new Set([...optimizers, ...program.averages].map(({ id }) => id));
  const keep = (statements: readonly Statement[]): readonly Statement[] =>
    statements
      .filter((statement) => !("optimizer" in statement) || known.has(statement.optimizer))
      .filter((statement) => !("average" in statement) || known.has(statement.average))
      .map((statement) =>
        innerOf(statement).length > 0 ? ({ ...statement, body: keep(innerOf(statement)) } as Statement) : statement,
      );
  const next = mapped({ ...program, optimizers }, keep);
  const used = new Set(statementsOf(next).map((statement) => statement.do === "op" && statement.options?.layer));
  const isUsed = ({ of }: Program["leaves"][number]) => of === undefined || used.has(of.layer);
  const idle = next.leaves.filter((leaf) => !isUsed(leaf)).map(({ id }) => id);
  const rest = { ...next, layers: next.layers.filter(({ id }) => used.has(id)) };
  return idle.length > 0 ? withoutValues(rest, new Set(idle)) : rest;
}

function mentions(statements: readonly Statement[], optimizer: Id): boolean {
  return statements.some(
    (statement) =>
      ("optimizer" in statement && statement.optimizer === optimizer) || mentions(innerOf(statement), optimizer),
  );
}
