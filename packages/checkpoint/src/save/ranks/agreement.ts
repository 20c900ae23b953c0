/** What ranks agree on before they write: that they save the same, the shape of every whole tensor, and who has which. */
import { check } from "@opt/core";
import type { StoredDType } from "../../format/dtype";
import type { LocalTensor } from "../../format/tensors";
import { type Layout, wholeShape } from "../../layout/layout";
import type { ShardableTensor } from "../shards/writers";

export interface TensorDescription {
  readonly name: string;
  readonly dtype: StoredDType;
  /** Of the slice, or of the whole where boxes are explicit. */
  readonly shape: readonly number[];
  readonly follows?: string;
  readonly explicit: boolean;
}

export interface AgreedTensors {
  readonly [name: string]: {
    readonly dtype: StoredDType;
    readonly shape: readonly number[];
    readonly follows?: string;
    readonly explicit: boolean;
    /** The ranks that have it, where not all do. */
    readonly holders?: readonly number[];
  };
}

export function describeTensor({ name, dtype, shape, follows, boxes }: LocalTensor): TensorDescription {
  return { name, dtype, shape, ...(follows === undefined ? {} : { follows }), explicit: boxes !== undefined };
}

/** What each rank says at first. */
export interface Hello {
  /** Must be every rank's. */
  readonly terms: string;
  readonly tensors: readonly TensorDescription[];
}

/** `hellos` in rank order. Throws BAD_ARGUMENT where terms differ, BAD_SHAPE, naming the tensor, where slices do not fit each other. */
export function agree(layout: Layout, hellos: readonly Hello[], whole: boolean): AgreedTensors {
  const { terms } = hellos[0]!;
  hellos.forEach((hello, rank) => {
    const problem = () => `all ranks must say the same, but rank 0 says ${terms}; rank ${rank} says ${hello.terms}.`;
    check(hello.terms === terms, "BAD_ARGUMENT", "saveCheckpoint", problem, "Start all ranks alike.");
  });
  return agreeOnShapes(
    layout,
    hellos.map(({ tensors }) => tensors),
    whole,
  );
}

function agreeOnShapes(
  layout: Layout,
  described: readonly (readonly TensorDescription[])[],
  whole: boolean,
): AgreedTensors {
  const holders = new Map<string, Map<number, TensorDescription>>();
  for (const [rank, tensors] of described.entries()) {
    for (const tensor of tensors) {
      if (!holders.has(tensor.name)) holders.set(tensor.name, new Map());
      holders.get(tensor.name)!.set(rank, tensor);
    }
  }
  const agreed = new Map<string, AgreedTensors[string]>();
  for (const [name, ranks] of holders) {
    const { name: _, ...first } = [...ranks.values()][0]!;
    const isWhole = whole || first.explicit;
    const asked = { ...first, name, rank: first.shape.length };
    const shape = isWhole ? first.shape : wholeShape(layout, asked, (rank) => ranks.get(rank)?.shape);
    const some = ranks.size < described.length ? { holders: [...ranks.keys()] } : {};
    agreed.set(name, { ...first, shape, ...some });
  }
  return Object.fromEntries(agreed);
}

/** Tensors of other ranks only: each rank must count them to know who writes what. */
export function unseenTensors(agreed: AgreedTensors, own: readonly { name: string }[]): ShardableTensor[] {
  const names = new Set(own.map(({ name }) => name));
  return Object.entries(agreed)
    .filter(([name, { explicit }]) => !names.has(name) && !explicit)
    .map(([name, tensor]) => ({ name, ...tensor }));
}
