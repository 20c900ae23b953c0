/** What brackets choose, as ops. */
import { at, indexPut, type Tensor } from "@opt/core";
import { interpretOp } from "./interpret/interpret";
import type { OpKind } from "./op-kind";
import type { IndexItem } from "./program";

type Index = Parameters<typeof at>[1];

/** An index with its tensors. */
export function indexOf(index: readonly IndexItem[], tensors: readonly Tensor[]): Index[] {
  const left = [...tensors];
  return index.map((item) => (typeof item === "string" ? left.shift()! : (item as Index)));
}

export const INDEXING: Readonly<Record<string, OpKind>> = {
  at: {
    run: ([x, ...tensors], { index }) => at(x as Tensor, ...indexOf(index as IndexItem[], tensors as Tensor[])),
    spec: (tensors, options) => ({ shape: interpretOp("at", tensors, options) ?? [], dtype: tensors[0]!.dtype }),
  },
  indexPut: {
    run: ([x, value, ...tensors], { index, accumulate }) => {
      const given = indexOf(index as IndexItem[], tensors as Tensor[]);
      return indexPut(x as Tensor, given, value as Tensor, { accumulate: accumulate === true });
    },
    spec: ([x]) => x!,
  },
};
