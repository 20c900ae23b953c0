/** What the rules of one system say about the names in a checkpoint. */
import type { Json, SourceTensor, TensorSource } from "../../format/source";

/** Under this key the values keep how PyTorch nested its names, so that it is written again as it was. */
export const STRUCTURE_KEY = "torch";

/** What the user says about names. */
export interface NameOptions {
  /** New names: each key is a tensor's name, or its beginning up to a dot or slash. It goes before what the format itself tells. */
  readonly map?: Readonly<Record<string, string>>;
  /**
   * "model": each group of the optimizer lists its parameters in the model's order, as `model.parameters()` does. Files do not say so,
   * and parameters of equal shape cannot be told apart without it.
   */
  readonly parameterOrder?: "model";
}

/** What a rule sees: the file whose names it gives, and the tensors and files that were opened together with it. */
export interface NamingContext extends NameOptions {
  readonly source: TensorSource;
  readonly tensors: ReadonlyMap<string, SourceTensor>;
  readonly beside: readonly TensorSource[];
}

/** A state whose parameter nothing proves. */
export interface UnprovenState {
  /** Its name, or what the names of its tensors begin with: the key to use in a map. */
  readonly key: string;
  /** What is known of the name to write there, for people. */
  readonly meaning: string;
  /** Patterns of names that are too many: copies of the model, such as an average. */
  readonly surplus?: readonly string[];
  /** Its group lists it, and it has no tensors. */
  readonly isStateless?: boolean;
}

/** What a format's rules find out. */
export interface Renaming {
  readonly names: ReadonlyMap<string, string>;
  /** Whose state a tensor is, by its new name, where the format itself says so: its states may have any name. */
  readonly follows?: ReadonlyMap<string, string>;
  /** Tensors whose numbers are among the values: nothing but the structure of the file needs them. */
  readonly kept?: ReadonlySet<string>;
  /** The tensor that counts the steps of all parameters together. */
  readonly counter?: string;
  readonly steps?: ReadonlyMap<string, number>;
  readonly unproven?: readonly UnprovenState[];
  /** Keys of parameters without state, which a map may name too. */
  readonly stateless?: readonly string[];
  readonly values?: { readonly [key: string]: Json };
}
