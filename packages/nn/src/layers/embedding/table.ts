/** What Embedding and EmbeddingBag share: a table of rows, of which one may stand for padding. */
import { arange, check, div, gather, gatherSparse, noGrad, norm, show, type Tensor, tidy, where } from "@opt/core";
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

/** How long rows may be, for layers' options. */
export interface LengthOptions {
  /** Rows that are looked up and longer than this are shortened to it first, in the weight itself. Default null: none. */
  readonly maxNorm?: number | null;
  /** Which norm `maxNorm` means. Default 2. */
  readonly normType?: number;
}

/** For `checkOptions`. */
export const LENGTH_OPTIONS = { maxNorm: "any", normType: "number" } as const;

/** @throws OptError BAD_ARGUMENT */
export function lengthsOf(owner: string, { maxNorm = null, normType = 2 }: LengthOptions) {
  const isLength = maxNorm === null || (typeof maxNorm === "number" && maxNorm >= 0);
  check(isLength, "BAD_ARGUMENT", owner, () => `maxNorm must be null or >= 0, got ${show(maxNorm)}.`, "For example 1.");
  check(normType > 0, "BAD_ARGUMENT", owner, () => `normType must be > 0, got ${show(normType)}.`, "Use 2.");
  return { maxNorm, normType };
}

export interface Table {
  readonly weight: Tensor;
  readonly sparse: boolean;
  readonly paddingIdx: number | null;
  readonly maxNorm: number | null;
  readonly normType: number;
}

/** Added to lengths by which rows are divided, as PyTorch's `embedding_renorm_` does. */
const LEAST = 1e-7;

function shorten({ weight, maxNorm, normType }: Table, indices: Tensor): void {
  if (maxNorm === null || indices.size === 0) return;
  noGrad(() =>
    tidy(() => {
      const places = indices.reshape([indices.size]).to("i32");
      const rows = gather(weight, places);
      const lengths = norm(rows, normType, 1, true);
      const factor = where(lengths.gt(maxNorm), div<Tensor>(maxNorm, lengths.add(LEAST)), 1);
      weight.assign([places], rows.mul(factor));
    }),
  );
}

/** The rows at indices [...]: those of padding have no gradient. */
export function lookUp(table: Table, indices: Tensor): Tensor {
  const { weight, sparse, paddingIdx } = table;
  shorten(table, indices);
  if (sparse) return gatherSparse(weight, indices, paddingIdx === null ? {} : { paddingIdx });
  if (paddingIdx === null) return gather(weight, indices);
  return tidy(() => {
    const rows = gather(weight, indices);
    return where(indices.ne(paddingIdx).unsqueeze(-1), rows, rows.detach());
  });
}
