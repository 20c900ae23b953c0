/** How ZeRO-1 divides the parameters of a group: by elements, or whole ones where a step needs whole parameters. */
import type { Box } from "@opt/checkpoint";
import { keep, span, type Tensor } from "@opt/core";
import { ownersOf } from "@opt/core/backend";
import { boxesOfRange } from "./boxes";
import { type Range, rangesOf } from "./ranges";

export interface Division {
  /** Of each parameter the elements of each rank. */
  ranges(params: readonly Tensor[], ranks: number): Range[][];
  /** The part in the parameter's own memory. */
  part(x: Tensor, range: Range): Tensor;
  /** Where the elements of a rank's state belong in the whole one. */
  boxes(state: Tensor, param: Tensor, range: Range): { shape: readonly number[]; boxes: Box[] };
}

/** Of elementwise steps: parameters lie one behind the other, and each rank has an equal range. */
export const byElements: Division = {
  ranges: (params, ranks) =>
    rangesOf(
      params.map(({ size }) => size),
      ranks,
    ),
  part: (x, { begin, end }) => keep(span(x, begin, end)),
  boxes: (_, { shape }, { begin, end }) => ({ shape, boxes: boxesOfRange(shape, begin, end) }),
};

/** Of steps that need whole parameters: each belongs to one rank, balanced by their costs. Other ranks have no rows of it. */
export const byOwners: Division = {
  ranges: (params, ranks) => {
    // Ranks that have other parts of a parameter find the same owner.
    const owners = ownersOf(
      params.map(({ shape, placement }) => placement?.shape ?? shape),
      ranks,
    );
    return params.map(({ size }, i) =>
      Array.from({ length: ranks }, (_, rank) => ({ begin: 0, end: rank === owners[i] ? size : 0 })),
    );
  },
  part: (x, { end }) => keep(end > 0 ? x.detach() : span(x, 0, 0).reshape([0, ...x.shape.slice(1)])),
  boxes: ({ shape }) => ({ shape, boxes: [{ offset: shape.map(() => 0), size: [...shape] }] }),
};
