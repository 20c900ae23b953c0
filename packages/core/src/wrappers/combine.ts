/** One optimizer of two classes: one for the matrices inside of a model, one for the rest. */
import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import type { BaseOptions, GroupOptions } from "../optimizer/algorithm";
import type { Group } from "../optimizer/group";
import { algorithmOf, type OptimizerClass } from "../optimizer/optimizer-class";
import { itemsOf, toParameters } from "../optimizer/parameters";
import type { Tensor } from "../tensor/tensor";
import { OptimizerWrapper, type Wrappable } from "./wrapper";

const WHERE = "combine";

/** Segments of names of what looks up or scores tokens and classes, in lower case and without "_". */
const EDGES = new Set([
  ...["embed", "embedding", "embeddings", "embedtokens", "embedpositions", "wte", "wpe"],
  ...["tokembedding", "tokembeddings", "tokenembedding", "tokenembeddings", "wordembedding", "wordembeddings"],
  ...["posembed", "posembedding", "posembeddings", "positionembedding", "positionembeddings", "tokentypeembeddings"],
  ...["head", "lmhead", "classifier", "logits", "unembed", "unembedding"],
]);

/** What `model.namedParameters()` of a model gives. */
export type NamedParameters = Iterable<readonly [name: string, parameter: Tensor]>;

export interface CombineRouting {
  /** Whether a parameter goes to `matrices`. Default: 2-dimensional ones, unless a segment of the name says embedding or head. */
  readonly isMatrix?: (name: string, parameter: Tensor) => boolean;
}

/** What `combine` makes. */
export class CombinedOptimizer<
  Matrices extends BaseOptions = BaseOptions,
  Rest extends BaseOptions = BaseOptions,
> extends OptimizerWrapper<Group<Matrices> | Group<Rest>> {
  constructor(parts: readonly Wrappable<Group<Matrices> | Group<Rest>>[]) {
    super("CombinedOptimizer", parts);
  }
}

/**
 * One optimizer of two classes: `matrices` steps the 2-dimensional parameters inside of a model, `rest` steps its embeddings, heads,
 * biases and norms. Parameters are known as embeddings and heads by a segment of their names, such as `embed`, `wte`, `wpe`, `head`,
 * `lmHead`, `lm_head`, `classifier`, `logits` or `unembed`.
 *
 * It has one step and one state dict. `groups` has the group of `matrices` first. `clip: { norm }` in both parts limits the norm
 * over both together.
 *
 * @param model a model, or its `[name, tensor]` pairs
 * @param routing `isMatrix` decides otherwise
 * @throws OptError BAD_ARGUMENT for unknown parts, for options out of range, and where no parameter is a matrix; DUPLICATE
 * @example
 * const params = [["blocks.0.weight", parameter([[1, 2], [3, 4]])], ["blocks.0.bias", parameter([0, 0])]];
 * const optimizer = combine(params, { matrices: Muon, rest: AdamW }, { matrices: { lr: 0.02 }, rest: { lr: 3e-4 } });
 */
export function combine<Matrices extends BaseOptions, Rest extends BaseOptions>(
  model: { namedParameters(): NamedParameters } | NamedParameters,
  classes: { readonly matrices: OptimizerClass<Matrices>; readonly rest: OptimizerClass<Rest> },
  options: {
    readonly matrices?: Partial<Matrices> & GroupOptions;
    readonly rest?: Partial<Rest> & GroupOptions;
  } = {},
  routing: CombineRouting = {},
): CombinedOptimizer<Matrices, Rest> {
  checkOptions(WHERE, classes, { matrices: "any", rest: "any" });
  checkOptions(WHERE, options, { matrices: "object", rest: "object" });
  checkOptions(WHERE, routing, { isMatrix: "function" });
  algorithmOf(`${WHERE} matrices`, classes.matrices);
  algorithmOf(`${WHERE} rest`, classes.rest);
  const { isMatrix = isInnerMatrix } = routing;
  const named = namedOf(model);
  const matrices = named.filter(([name, parameter]) => isMatrix(name, parameter));
  check(
    matrices.length > 0,
    "BAD_ARGUMENT",
    WHERE,
    () => `some parameters must be matrices, got none among ${named.length}.`,
    "Use the optimizer of the rest alone, or pass { isMatrix }.",
  );
  const rest = named.filter((pair) => !matrices.includes(pair));
  const parts = [
    new classes.matrices(matrices, options.matrices),
    ...(rest.length > 0 ? [new classes.rest(rest, options.rest)] : []),
  ];
  return new CombinedOptimizer<Matrices, Rest>(parts);
}

function isInnerMatrix(name: string, { shape }: Tensor): boolean {
  const isEdge = name.split(".").some((segment) => EDGES.has(segment.replaceAll("_", "").toLowerCase()));
  return shape.length === 2 && !isEdge;
}

/** The parameters, each with a name of its own. @throws OptError BAD_ARGUMENT, DUPLICATE */
function namedOf(model: { namedParameters(): NamedParameters } | NamedParameters): [string, Tensor][] {
  const isModel = typeof Object(model).namedParameters === "function";
  const given = isModel
    ? (model as { namedParameters(): NamedParameters }).namedParameters()
    : (model as NamedParameters);
  const named = toParameters(WHERE, itemsOf(WHERE, given) as unknown as NamedParameters).map(({ name, tensor }) => {
    checkValue(
      name !== null,
      WHERE,
      "a parameter",
      "[name, tensor]",
      tensor,
      "Pass the model or model.namedParameters().",
    );
    return [name, tensor] as [string, Tensor];
  });
  for (const seen of [new Set(named.map(([name]) => name)), new Set(named.map(([, tensor]) => tensor))])
    check(
      seen.size === named.length,
      "DUPLICATE",
      WHERE,
      () => `parameters and their names must occur once, got ${named.length} with ${seen.size} different.`,
      "Tied weights are listed once.",
    );
  return named;
}
