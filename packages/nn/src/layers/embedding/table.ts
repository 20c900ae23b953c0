/** What Embedding and EmbeddingBag share: a table of rows, of which one may stand for padding. */
import { arange, check, gather, gatherSparse, show, type Tensor, tidy, where } from "@opt/core";
import { normal } from "../../initializers/initializers";
import { checkExtents } from "../extent";
import { drawnBy, type LayerOptions, weightOf } from "../layer-options";

/** Counted from 0 on. @throws OptError BAD_ARGUMENT */
export function paddingRow(owner: string, paddingIdx: number | null, count: number): number | null {
  checkExtents(owner, { count });
  if (paddingIdx === null) return null;
  const isRow = Number.isInteger(paddingIdx) && paddingIdx >= -count && paddingIdx < count;
  check(
    isRow,
    "BAD_ARGUMENT",
    owner,
    () => `paddingIdx must be null or a row of ${count}, got ${show(paddingIdx)}.`,
    "For example 0.",
  );
  return paddingIdx < 0 ? paddingIdx + count : paddingIdx;
}

/** N(0, 1), and zeros in the row of padding. @throws OptError BAD_ARGUMENT */
export function tableOf(
  owner: string,
  count: number,
  width: number,
  paddingIdx: number | null,
  options: LayerOptions,
): Tensor {
  checkExtents(owner, { width });
  const { dtype, device } = options;
  const weight = normal(weightOf([count, width], { dtype, device }), 0, 1, drawnBy(options));
  if (paddingIdx === null) return weight;
  tidy(() => {
    const places = arange(count, { dtype: "i32", device: weight.device }).unsqueeze(-1);
    weight.set(where(places.ne(paddingIdx), weight.detach(), 0));
  });
  return weight;
}

export interface Table {
  readonly weight: Tensor;
  readonly sparse: boolean;
  readonly paddingIdx: number | null;
}

/** The rows at indices [...]: those of padding have no gradient. */
export function lookUp({ weight, sparse, paddingIdx }: Table, indices: Tensor): Tensor {
  if (sparse) return gatherSparse(weight, indices, paddingIdx === null ? {} : { paddingIdx });
  if (paddingIdx === null) return gather(weight, indices);
  return tidy(() => {
    const rows = gather(weight, indices);
    return where(indices.ne(paddingIdx).unsqueeze(-1), rows, rows.detach());
  });
}
