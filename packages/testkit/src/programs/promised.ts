/** Which numbers of a program have promised bits: those that no reduction, product or transcendental function has touched. */
import { broadcast } from "./op-kind";
import { OPS } from "./ops";
import type { Hook, Id, Program, Round, Spec, Statement } from "./program";

interface Known extends Spec {
  /** The memory that it may share. */
  readonly root: Id;
  /** Nothing on the way from the leaves is inexact, forward or backward. */
  readonly exactTape: boolean;
  readonly leaves: readonly Id[];
}

/** For each round: true if a name of an observation after it has the same bits on every exact device. */
export function promised(program: Program): readonly ((name: string) => boolean)[] {
  const follower = new Follower(program);
  return program.rounds.map((_, i) => follower.round(i));
}

/** Follows a program statement by statement. */
class Follower {
  private readonly known = new Map<Id, Known>();
  /** Roots of memory, "leaf.grad" and "optimizer.leaf" whose bits depend on the device. */
  private readonly inexact = new Set<string>();
  private readonly added: { readonly optimizer: Id; readonly params: readonly Id[] }[] = [];
  private recording = true;
  private flags: Round["args"] = {};
  /** Some step is scaled by a norm, which is a sum. */
  private readonly limitsNorm: boolean;
  constructor(private readonly program: Program) {
    this.limitsNorm = /"clip"[^}]*"norm"/.test(JSON.stringify([program.optimizers, program.rounds]));
    for (const { id, shape, dtype, kind } of program.leaves) {
      this.known.set(id, { shape, dtype, root: id, exactTape: true, leaves: kind === "data" ? [] : [id] });
    }
    this.follow(program.prelude);
  }

  /** Does the next round. */
  round(index: number): (name: string) => boolean {
    const { before, body, args } = this.program.rounds[index]!;
    this.follow(before);
    this.flags = args;
    const own = new Map<Id, Known>();
    for (const [id, given] of Object.entries(args)) {
      if (typeof given !== "object" || "fill" in given) continue;
      const known = this.known.get(id)!;
      if ("result" in given) {
        if (!this.isExactValue(given.result)) this.mark(known.root, false);
        continue;
      }
      own.set(id, known);
      this.known.set(id, { ...known, root: this.known.get(given.as)!.root });
    }
    this.follow(this.program.bodies[body]!.statements);
    for (const [id, known] of own) {
      if (!this.isExactValue(id)) this.mark(known.root, false);
      this.known.set(id, known);
    }
    const inexact = new Set(this.inexact);
    return (name) => {
      const [first, second, third] = name.split(".");
      const [, ofCall] = /^(?:result|argument) (.*)$/.exec(name) ?? [];
      if (ofCall !== undefined) return this.isExactValue(ofCall, inexact);
      if (second === "grad") return !inexact.has(name);
      if (third !== undefined) return !inexact.has(`${first}.${second}`);
      return name.includes(" ") || this.isExactValue(first!, inexact);
    };
  }

  private isExactValue(id: Id, inexact: ReadonlySet<string> = this.inexact): boolean {
    const known = this.known.get(id);
    return known === undefined || !inexact.has(known.root);
  }

  private mark(name: string, exact: boolean): void {
    if (exact) this.inexact.delete(name);
    else this.inexact.add(name);
  }

  private follow(statements: readonly Statement[]): void {
    for (const statement of statements) this.one(statement);
  }

  private one(statement: Statement): void {
    switch (statement.do) {
      case "op":
        this.op(statement);
        return;
      case "constant":
      case "random":
        this.known.set(statement.id, { ...statement, root: statement.id, exactTape: true, leaves: [] });
        this.mark(statement.id, true);
        return;
      case "set":
        if (typeof statement.from === "string" && !this.isExactValue(statement.from)) {
          this.mark(this.known.get(statement.to)!.root, false);
        } // a view that is overwritten leaves the rest of its memory as it was
        return;
      case "stale":
        if (!this.isExactValue(statement.of)) this.mark(this.known.get(statement.by)!.root, false);
        return;
      case "when":
        if (this.flags[statement.flag] !== true) return;
        this.follow(statement.body);
        return;
      case "tidy":
        this.follow(statement.body);
        return;
      case "noGrad": {
        this.recording = false;
        this.follow(statement.body);
        this.recording = true;
        return;
      }
      case "backward": {
        const { leaves, exactTape } = this.known.get(statement.of)!;
        for (const leaf of leaves) if (!exactTape) this.mark(`${leaf}.grad`, false);
        return;
      }
      case "gradient":
        if (typeof statement.value === "number") return;
        this.mark(`${statement.of}.grad`, typeof statement.value !== "string" || this.isExactValue(statement.value));
        return;
      case "clip":
        if (statement.how !== "value") for (const id of statement.params) this.mark(`${id}.grad`, false);
        return;
      case "addGroup":
        this.added.push(statement);
        return;
      case "step": {
        this.hooks(statement.optimizer, "beforeStep");
        const isMuon = this.program.optimizers.some(({ id, kind }) => id === statement.optimizer && kind === "Muon");
        for (const { id, params } of this.trained(statement.optimizer)) {
          for (const param of params) {
            const names = [this.known.get(param)!.root, `${param}.grad`, `${id}.${param}`];
            const exact = !this.limitsNorm && !isMuon && names.every((name) => !this.inexact.has(name));
            this.mark(names[0]!, exact);
            this.mark(names[2]!, exact);
          }
        }
        this.hooks(statement.optimizer, "afterStep");
        return;
      }
      case "unscale":
        return; // by a power of two, or by what all devices made of one
      case "average": {
        const { params } = this.program.averages.find(({ id }) => id === statement.average)!;
        for (const param of params) {
          if (!this.isExactValue(param)) this.mark(`${statement.average}.${param}`, false);
        }
        return;
      }
      case "zeroGrad":
        for (const { params } of this.trained(statement.optimizer)) {
          for (const param of params) this.mark(`${param}.grad`, true);
        }
        return;
      default:
        return;
    }
  }

  private hooks(id: Id, at: Hook["event"]): void {
    const { hooks = [] } = this.program.optimizers.find((optimizer) => optimizer.id === id)!;
    for (const { event, body } of hooks) if (event === at) this.follow(body);
  }

  private trained(id: Id): { id: Id; params: readonly Id[] }[] {
    const { groups } = this.program.optimizers.find((optimizer) => optimizer.id === id)!;
    return [...groups, ...this.added.filter(({ optimizer }) => optimizer === id)].map(({ params }) => ({ id, params }));
  }

  private op({ id, op, of, options = {} }: Extract<Statement, { do: "op" }>): void {
    const kind = OPS[op]!;
    const operands = of.flatMap((operand) => (typeof operand === "string" && this.known.get(operand)) || []);
    const numbers = of.filter((operand) => typeof operand === "number");
    const spec = kind.spec(operands, options, numbers);
    const isExact = kind.exact === true && operands.every(({ root }) => !this.inexact.has(root));
    const isStretched =
      operands.length > 1 &&
      op !== "gather" &&
      op !== "concat" &&
      broadcast(operands.map(({ shape }) => shape)) !== null
        ? operands.some(({ shape }) => String(shape) !== String(spec.shape))
        : false;
    const hasTape = this.recording && op !== "detach";
    this.known.set(id, {
      ...spec,
      root: kind.view ? operands[0]!.root : id,
      exactTape: kind.exact === true && !isStretched && isExact && operands.every((operand) => operand.exactTape),
      leaves: hasTape ? [...new Set(operands.flatMap(({ leaves }) => leaves))] : [],
    });
    if (!kind.view) this.mark(id, isExact);
    // Running statistics.
    for (const leaf of this.program.leaves) {
      if (leaf.kind === "data" && leaf.of !== undefined && leaf.of.layer === options.layer) this.mark(leaf.id, false);
    }
  }
}
