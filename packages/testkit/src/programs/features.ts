/** Where faults hide: what a program has of each kind. A campaign that draws too few of one says nothing about it. */
import { isFloat, sizeOf } from "./numbers";
import { type Id, innerOf, type Leaf, type Program, type Statement, statementsOf } from "./program";

type Of<Kind extends Statement["do"]> = Extract<Statement, { do: Kind }>;

const all = <Kind extends Statement["do"]>(program: Program, kind: Kind): Of<Kind>[] =>
  statementsOf(program).filter((one): one is Of<Kind> => one.do === kind);

const opsOf = (program: Program, pattern: RegExp): Of<"op">[] =>
  all(program, "op").filter(({ op }) => pattern.test(op));

const leafOf = (program: Program, id: Id | number): Leaf | undefined => program.leaves.find((leaf) => leaf.id === id);

/** The statements of a body in their order. */
const inOrder = (list: readonly Statement[]): Statement[] => list.flatMap((one) => [one, ...inOrder(innerOf(one))]);

/** What a statement overwrites in place. */
function writtenBy(program: Program, one: Statement): readonly Id[] {
  if (one.do === "set") return [one.to];
  if (one.do === "assign" || one.do === "move" || one.do === "writePart") return [one.of];
  if (one.do !== "step") return [];
  return program.optimizers.find(({ id }) => id === one.optimizer)!.groups.flatMap(({ params }) => params);
}

/** A leaf is read, then overwritten, and what was read is used after that. */
function writesBetweenReads(program: Program): boolean {
  return program.bodies.some((body) => {
    const list = inOrder(body.statements);
    return list.some((one, at) =>
      writtenBy(program, one).some((id) => {
        const early = list.slice(0, at).flatMap((each) => (each.do === "op" && each.of.includes(id) ? [each.id] : []));
        return list.slice(at).some((each) => each.do === "op" && early.some((read) => each.of.includes(read)));
      }),
    );
  });
}

/** Places of the queries and of the keys. */
function isUneven(program: Program, { op, of }: Of<"op">): boolean {
  const axis = op === "CrossAttention" ? 0 : -2;
  return leafOf(program, of[0]!)?.shape.at(axis) !== leafOf(program, of[1]!)?.shape.at(axis);
}

const causal = (program: Program, pattern: RegExp): Of<"op">[] =>
  opsOf(program, pattern).filter((one) => one.options?.isCausal && isUneven(program, one));

const CHOOSING = /^(sort|argsort|topk|max|min|argmax|argmin|maximum|minimum)$/;

/** Backwards of one loss, in a body. */
const repeated = (program: Program): boolean => {
  const losses = all(program, "backward").map(({ of }) => of);
  return new Set(losses).size < losses.length;
};

const FEATURES: Readonly<Record<string, (program: Program) => boolean>> = {
  "writes between reads": writesBetweenReads,
  "writes between reads, compiled without a check": (one) => writesBetweenReads(one) && one.check === "never",
  "a step between reads": (one) =>
    writesBetweenReads({
      ...one,
      bodies: one.bodies.filter(({ statements }) => inOrder(statements).some((each) => each.do === "step")),
    }),
  "a part in a mode of its own": (one) => all(one, "train").some(({ layers }) => layers !== undefined),
  "a frozen batch norm": (one) =>
    one.prelude.some(
      (each) =>
        each.do === "train" &&
        each.layers?.some((id) => /BatchNorm/.test(one.layers.find((layer) => layer.id === id)!.kind)),
    ),
  "dropout between recurrent layers": ({ layers }) =>
    layers.some(({ kind, options }) => /^(RNN|GRU|LSTM)$/.test(kind) && options.dropout === 1),
  "recurrent layers in both directions": ({ layers }) => layers.some(({ options }) => options.bidirectional === true),
  "dropped attention": ({ layers }) =>
    layers.some(({ kind, options }) => /Attention/.test(kind) && options.dropout === 1),
  "causal attention of uneven lengths": (one) => causal(one, /^scaledDotProductAttention$/).length > 0,
  "the same in heads, with weights": (one) =>
    causal(one, /^Cross/).some(({ options }) => options!.needWeights === true),
  "masked attention": (one) => opsOf(one, /^scaledDot/).some(({ of }) => of.length > 3),
  "ties where elements are chosen": (one) =>
    opsOf(one, CHOOSING).some(({ of }) => leafOf(one, of[0]!)?.fill.kind === "ties"),
  "ties in rows longer than a block": (one) =>
    opsOf(one, CHOOSING).some(({ of }) => {
      const leaf = leafOf(one, of[0]!);
      return leaf?.fill.kind === "ties" && leaf.shape.some((extent) => extent > 2048);
    }),
  "rows longer than a block that are sorted": (one) =>
    opsOf(one, /^(arg)?sort$/).some(({ of }) => leafOf(one, of[0]!)?.shape.some((extent) => extent > 2048)),
  "sums of rows longer than a block": (one) =>
    opsOf(one, /sum|softmax|mean|norm|var|entropy/i).some(({ of }) =>
      leafOf(one, of[0]!)?.shape.some((extent) => extent > 2048),
    ),
  "no elements": ({ leaves }) =>
    leaves.some(({ shape, dtype, kind }) => kind !== "data" && isFloat(dtype) && sizeOf(shape) === 0),
  "no axes": ({ leaves }) =>
    leaves.some(({ shape, dtype, kind }) => kind !== "data" && isFloat(dtype) && shape.length === 0),
  "batches of several sizes": ({ rounds }) =>
    new Set(rounds.flatMap(({ args }) => Object.values(args)).flatMap((given) => Object(given).rows ?? [])).size > 1,
  "second gradients": (one) => all(one, "grad").length > 0,
  "a second backward": (one) => repeated(one) && all(one, "backward").some(({ retain }) => retain === true),
  "a second backward of a freed graph": (one) =>
    repeated(one) && all(one, "backward").every(({ retain }) => retain !== true),
  "a hook after forward": (one) => all(one, "onForward").length > 0,
  "a hook after a gradient": (one) => all(one, "onGradient").length > 0,
  "a hook of a step": ({ optimizers }) => optimizers.some(({ hooks }) => hooks !== undefined),
  "gradients of several calls": (one) => all(one, "when").some(({ body }) => body.some((each) => each.do === "step")),
  "tied weights": (one) => all(one, "tie").length > 0,
  "a number in a variable outside": ({ bodies, rounds }) =>
    rounds.some(({ args }) => Object.keys(args).some((id) => bodies.every((body) => !body.args.includes(id)))),
};

/** The first programs that have each of the features, so many times as `times` says. */
export function programsOfFeatures(programs: readonly Program[], times: number): Program[] {
  return [...new Set(Object.values(FEATURES).flatMap((has) => programs.filter(has).slice(0, times)))];
}

/** How many of the programs have each of the features. */
export function countFeatures(programs: readonly Program[]): Record<string, number> {
  return Object.fromEntries(Object.entries(FEATURES).map(([name, has]) => [name, programs.filter(has).length]));
}
