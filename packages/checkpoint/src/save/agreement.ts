/** What ranks that can talk agree on before they write: the shape of every whole tensor, and who has which. */
import type { StoredDType } from "../format/dtype";
import type { LocalTensor } from "../format/tensors";
import { type Layout, wholeShape } from "../layout/layout";
import type { ShardableTensor } from "./writers";

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

/** `described` holds every rank's tensors. Throws BAD_SHAPE, naming the tensor, where slices do not fit each other. */
export function agreeOnShapes(
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
