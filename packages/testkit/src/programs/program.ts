/** A program as plain data: what a user's training script does, so that it can be run on any device, in any mode, shrunk and printed. */
import type { DType, ErrorCode } from "@opt/core";

export type Id = string;
export type Shape = readonly number[];

/** Shape and element type: all that an op's result is known by before it runs. */
export interface Spec {
  readonly shape: Shape;
  readonly dtype: DType;
}

/**
 * Numbers made from a seed. Grid: sixteenths that every float dtype holds; ties: few different ones; whole: 0 .. below - 1; labels: the same, or -100;
 * special: NaN, infinities, zeros, subnormals among others; extreme: zeros, and numbers whose products leave float32.
 */
export interface Fill {
  readonly kind: "grid" | "ties" | "whole" | "labels" | "small" | "special" | "extreme" | "ones";
  readonly seed: number;
  readonly below?: number;
}

/** A tensor that is there before anything else: what is trained, other leaves with gradients, data. */
export interface Leaf extends Spec {
  readonly id: Id;
  readonly kind: "parameter" | "marked" | "data";
  readonly fill: Fill;
  /** The layer that made it, and what it is called there. */
  readonly of?: { readonly layer: Id; readonly name: string };
}

/** A layer of `@opt/nn`, by its class; its weights are leaves. */
export interface Layer {
  readonly id: Id;
  readonly kind: string;
  /** Of the constructor, before its options. */
  readonly sizes: readonly number[];
  readonly options: Options;
  readonly dtype: DType;
}

/** Of brackets: a position, a range, null for a whole axis, or the next index tensor: positions, or a mask. */
export type IndexItem = number | readonly (number | null)[] | null | "tensor" | "mask";

export type Options = Readonly<Record<string, unknown>>;

export interface OptimizerUse {
  readonly id: Id;
  /** Its class, in the table that the runner is given. */
  readonly kind: string;
  readonly options: Options;
  readonly groups: readonly { readonly params: readonly Id[]; readonly options: Options }[];
  readonly schedule: { readonly kind: string; readonly options: Options } | null;
  readonly hooks?: readonly Hook[];
}

/** Running averages of parameters, beside the optimizers. */
export interface AverageUse {
  readonly id: Id;
  readonly params: readonly Id[];
  readonly options: Options;
}

/** What an optimizer calls at each of its steps. */
export interface Hook {
  readonly event: "beforeStep" | "afterStep";
  readonly body: readonly Statement[];
}

export type Statement =
  /** id = op(of, options). An operand may be the name of a number that the body is given, or finds outside. */
  | {
      readonly do: "op";
      readonly id: Id;
      readonly op: string;
      readonly of: readonly (Id | number)[];
      readonly options?: Options;
    }
  | { readonly do: "constant"; readonly id: Id; readonly shape: Shape; readonly dtype: DType; readonly fill: Fill }
  /** Drawn from the program's generator: anew in every round. */
  | { readonly do: "random"; readonly id: Id; readonly shape: Shape; readonly dtype: DType; readonly normal: boolean }
  /** Overwrites in place. */
  | { readonly do: "set"; readonly to: Id; readonly from: Id | Fill }
  /** Overwrites elements of a tensor by other elements of it, which may be some of the same. */
  | { readonly do: "move"; readonly of: Id; readonly from: number; readonly to: number; readonly count: number }
  /** Overwrites where an index chooses. `tensors` are those that it names. */
  | {
      readonly do: "assign";
      readonly of: Id;
      readonly index: readonly IndexItem[];
      readonly tensors: readonly Id[];
      readonly from: Id;
    }
  /** Overwrites the result of an op that takes a part of a tensor. */
  | { readonly do: "writePart"; readonly of: Id; readonly op: string; readonly options: Options; readonly from: Id }
  /** Overwrites one factor of a product by the other: its backward must be rejected, and change nothing. */
  | { readonly do: "stale"; readonly of: Id; readonly by: Id }
  | { readonly do: "tidy"; readonly body: readonly Statement[]; readonly returns: readonly Id[] }
  | { readonly do: "noGrad"; readonly body: readonly Statement[] }
  | { readonly do: "keep" | "dispose"; readonly of: Id }
  /** `scaled`: of the program's scaler's larger loss. `retain`: the tape stays for another one. */
  | {
      readonly do: "backward";
      readonly of: Id;
      readonly gradient: Id | null;
      readonly scaled?: boolean;
      readonly retain?: boolean;
    }
  /** The gradient of one element by one tensor, which can be differentiated itself. */
  | { readonly do: "grad"; readonly id: Id; readonly of: Id; readonly by: Id }
  /** Assigns a gradient by hand: nothing, numbers, a tensor's, or the present one times a number. */
  | { readonly do: "gradient"; readonly of: Id; readonly value: null | Fill | Id | number }
  | {
      readonly do: "clip";
      readonly how: "norm" | "each" | "value";
      readonly params: readonly Id[];
      readonly limit: number;
      readonly normType?: number;
    }
  | { readonly do: "step"; readonly optimizer: Id; readonly scaled?: boolean }
  | { readonly do: "schedule" | "save" | "load" | "reset" | "unscale"; readonly optimizer: Id }
  /** Of the scaler, after the steps that it has made. */
  | { readonly do: "update" }
  /** Takes parameters in, or puts the averages in their place and them back. */
  | { readonly do: "average" | "averaged"; readonly average: Id }
  | { readonly do: "zeroGrad"; readonly optimizer: Id; readonly setToNull: boolean }
  | { readonly do: "addGroup"; readonly optimizer: Id; readonly params: readonly Id[]; readonly options: Options }
  /** Runs `body` if the argument `flag` is true. */
  | { readonly do: "when"; readonly flag: Id; readonly body: readonly Statement[] }
  | { readonly do: "freeze"; readonly of: Id; readonly frozen: boolean }
  /** Freezes a layer, or gives its parameters the numbers of another layer's. */
  | { readonly do: "freezeLayer"; readonly layer: Id }
  | { readonly do: "follow"; readonly layer: Id; readonly other: Id }
  /** Another layer of the same kind in a layer's place, or another number as its property. */
  | { readonly do: "replace"; readonly layer: Id; readonly seed: number }
  | { readonly do: "property"; readonly layer: Id; readonly name: string; readonly value: number }
  /** Switches layers, by default every one, to training or to evaluation. */
  | { readonly do: "train"; readonly training: boolean; readonly layers?: readonly Id[] }
  /** Puts a tensor in the place of a layer's own weight. */
  | { readonly do: "tie"; readonly layer: Id; readonly name: string; readonly to: Id }
  /** From now on each result of a layer is multiplied by a number. */
  | { readonly do: "onForward"; readonly layer: Id; readonly factor: number }
  /** From now on the body runs in each backward that reaches the leaf, when its gradient is complete. */
  | { readonly do: "onGradient"; readonly of: Id; readonly body: readonly Statement[] }
  | {
      readonly do: "option";
      readonly optimizer: Id;
      readonly group: number;
      readonly name: string;
      readonly value: unknown;
    };

/** A function of a training script: run eagerly, or compiled. */
export interface Body {
  /** Its arguments: leaves, and names that stand for a number or a boolean. Other such names are variables outside of it. */
  readonly args: readonly Id[];
  readonly statements: readonly Statement[];
  /** Values that it returns. */
  readonly results: readonly Id[];
}

/**
 * What a round passes: a number, a boolean, a new tensor, what the last round returned, or what it passes for another argument, too.
 * A leaf that is not named is passed itself.
 */
export type Argument =
  | number
  | boolean
  | {
      readonly fill: Fill;
      /** The first extent, if it is another than the leaf's. */
      readonly rows?: number;
      /** It is a part of a larger tensor. */
      readonly inside?: boolean;
    }
  | { readonly result: Id }
  | { readonly as: Id };

/** One call of a body. */
export interface Round {
  /** What is done before the call. */
  readonly before: readonly Statement[];
  readonly body: number;
  readonly args: Readonly<Record<Id, Argument>>;
  /** Runs eagerly even where the body is compiled. */
  readonly eager?: boolean;
}

export interface Program {
  readonly seed: number;
  readonly leaves: readonly Leaf[];
  readonly layers: readonly Layer[];
  readonly optimizers: readonly OptimizerUse[];
  readonly averages: readonly AverageUse[];
  /** Options of the GradScaler, if there is one. */
  readonly scaler: Options | null;
  /** Done once, outside of every round. */
  readonly prelude: readonly Statement[];
  readonly bodies: readonly Body[];
  readonly rounds: readonly Round[];
  /** In resumed runs: everything is saved and built anew before this round, in this order. */
  readonly resume: { readonly round: number; readonly order: readonly ("model" | "optimizer" | "schedule")[] };
  /** Rejections that are right, if every device rejects alike. */
  readonly mayReject: readonly ErrorCode[];
  /** True if every body can be compiled. */
  readonly compiles: boolean;
  /** The option of `compile`. */
  readonly check: "always" | "spaced" | "never";
}

/** The statements directly inside a statement. */
export function innerOf(statement: Statement): readonly Statement[] {
  return "body" in statement ? statement.body : [];
}

/** The value that a statement makes. */
export function madeBy(statement: Statement): Id | undefined {
  return "id" in statement ? statement.id : undefined;
}

/** All statements of a program, those inside of others too. */
export function statementsOf({ prelude, bodies, rounds, optimizers }: Program): Statement[] {
  const all = (statements: readonly Statement[]): Statement[] =>
    statements.flatMap((statement) => [statement, ...all(innerOf(statement))]);
  return all([
    ...prelude,
    ...bodies.flatMap(({ statements }) => statements),
    ...rounds.flatMap(({ before }) => before),
    ...optimizers.flatMap(({ hooks = [] }) => hooks.flatMap(({ body }) => body)),
  ]);
}
